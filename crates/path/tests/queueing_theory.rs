//! The drop-tail link against the formulas for Poisson arrivals and constant service (M/D/1).

mod common;

use common::*;
use fairpace_path::{DropReason, Link, LinkSpec, Plain, RateModel};
use fairpace_units::{Instant, RandomStream, Rate};

/// Mean of `batches` values and the standard error of that mean.
fn mean_and_error(batches: &[f64]) -> (f64, f64) {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Feeds Poisson arrivals of `load` per service time of 1 ms; one value per batch of 20,000.
fn batches(spec: &LinkSpec, load: f64, value: impl Fn(&Link<Plain>, &fairpace_path::LinkCounters) -> f64) -> Vec<f64> {
    let mut link: Link<Plain> = Link::new(spec, 1, "link").unwrap();
    let mut random = RandomStream::named(3, "arrivals");
    let mut now = Instant::ZERO;
    let mut before = link.counters();
    (0..50)
        .map(|_| {
            for id in 0..20_000 {
                now += random.exponential(span(1.0 / load));
                while link.pop(now).is_some() {}
                link.push(now, normal(id));
            }
            link.advance(now);
            let window = link.counters().since(&before);
            before = link.counters();
            value(&link, &window)
        })
        .collect()
}

#[test]
fn the_mean_queue_and_the_utilization_are_those_of_m_d_1() {
    let spec = LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), ..LinkSpec::default() };
    for load in [0.5, 0.8] {
        // Pollaczek-Khinchine with constant service: L = load + load² / (2 (1 - load)).
        let expected = load + load * load / (2.0 * (1.0 - load));
        let (mean, error) = mean_and_error(&batches(&spec, load, |_, c| c.mean_queue()));
        assert!((mean - expected).abs() < 4.0 * error && error < 0.03 * expected, "{mean} ± {error}, not {expected}");
        let (mean, error) = mean_and_error(&batches(&spec, load, |_, c| c.utilization()));
        assert!((mean - load).abs() < 4.0 * error && error < 0.01 * load, "{mean} ± {error}, not {load}");
    }
}

#[test]
fn a_link_without_waiting_room_drops_as_erlang_says() {
    // M/D/1/1: the blocking probability load / (1 + load) holds for any service time.
    let spec = LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), queue: drop_tail(1), ..LinkSpec::default() };
    let dropped = |_: &Link<Plain>, c: &fairpace_path::LinkCounters| {
        c.dropped(DropReason::QueueFull).packets.as_f64() / c.total().offered.packets.as_f64()
    };
    let (mean, error) = mean_and_error(&batches(&spec, 0.9, dropped));
    let expected = 0.9 / 1.9;
    assert!((mean - expected).abs() < 4.0 * error && error < 0.01 * expected, "{mean} ± {error}, not {expected}");
}
