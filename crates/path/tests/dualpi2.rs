//! DualPI2 behind a link of 8 Mbit/s with packets of 1,000 bytes, so that one packet leaves each millisecond: how the
//! two queues share it [RFC 9332].

mod common;

use common::*;
use fairpace_path::{Capacity, DualPi2Params, Link, LinkSpec, Plain, QueueModel, RateModel};
use fairpace_units::{Ecn, Instant, Rate};

const SECONDS: f64 = 60.0;
const SETTLED: f64 = 20_000.0;

/// A stream of so many packets per second.
#[derive(Clone, Copy)]
struct Stream {
    ecn: Ecn,
    per_second: f64,
}

/// The packets that came out after the first 20 s.
#[derive(Debug)]
struct Share {
    packets_per_second: f64,
    mean_wait_ms: f64,
    longest_wait_ms: f64,
}

/// Sends both streams for a minute; the shares of the first and the second.
fn share(params: DualPi2Params, streams: [Stream; 2]) -> [Share; 2] {
    let spec =
        LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), queue: QueueModel::DualPi2(params), ..LinkSpec::default() };
    let mut link: Link<Plain> = Link::new(&spec, 1, "d").unwrap();
    let mut arrivals: Vec<(Instant, usize)> = Vec::new();
    for (i, stream) in streams.iter().enumerate() {
        let n = (SECONDS * stream.per_second) as u64;
        // Half a distance apart, so that the two never come at once.
        arrivals.extend((0..n).map(|k| (ms((k as f64 + 0.5 * i as f64) * 1_000.0 / stream.per_second), i)));
    }
    arrivals.sort();
    let packets = arrivals.iter().enumerate();
    let packets = packets.map(|(id, &(at, i))| (at, Plain { ecn: streams[i].ecn, ..normal(id as u64) }));
    let out = run(&mut link, packets.collect::<Vec<_>>());
    let of = |stream: usize| {
        let waits: Vec<f64> = out
            .iter()
            .filter(|(at, id)| arrivals[*id as usize].1 == stream && *at >= ms(SETTLED) && *at < ms(SECONDS * 1_000.0))
            .map(|(at, id)| at.since(arrivals[*id as usize].0).as_secs_f64() * 1e3 - 1.0)
            .collect();
        Share {
            packets_per_second: waits.len() as f64 / (SECONDS - SETTLED / 1_000.0),
            mean_wait_ms: waits.iter().sum::<f64>() / waits.len() as f64,
            longest_wait_ms: waits.iter().copied().fold(0.0, f64::max),
        }
    };
    [of(0), of(1)]
}

fn usual() -> DualPi2Params {
    DualPi2Params::new(Capacity::Unlimited)
}

//= 9332-2.2-1
//= 9332-2-1
#[test]
fn a_thin_low_latency_stream_does_not_wait_for_an_overloaded_classic_queue() {
    let classic = Stream { ecn: Ecn::NotEct, per_second: 1_100.0 };
    let low_latency = Stream { ecn: Ecn::Ect1, per_second: 50.0 };
    let [classic, low_latency] = share(usual(), [classic, low_latency]);
    // Of 1,100 packets 950 get through beside the 50: one in seven is dropped, p'² = 0.136.
    assert!((948.0..=952.0).contains(&classic.packets_per_second), "{classic:?}");
    assert!((12.0..=18.0).contains(&classic.mean_wait_ms), "{classic:?}");
    // For the one in transmission, a millisecond, and now and then for a turn of the classic queue.
    assert_eq!(low_latency.packets_per_second, 50.0, "{low_latency:?}");
    assert!(low_latency.longest_wait_ms <= 2.1, "{low_latency:?}");
}

//= 9332-2.2-2
#[test]
fn a_low_latency_stream_that_does_not_give_way_takes_no_more_than_its_part() {
    let low_latency = Stream { ecn: Ecn::Ect1, per_second: 1_500.0 };
    let classic = Stream { ecn: Ecn::NotEct, per_second: 500.0 };
    // Twice what the link carries: both queues drop every other packet, whatever the weight.
    for weight in [0.1, 0.3] {
        let [low_latency, classic] = share(DualPi2Params { classic_weight: weight, ..usual() }, [low_latency, classic]);
        assert!((240.0..=260.0).contains(&classic.packets_per_second), "{weight}: {classic:?}");
        assert!((740.0..=760.0).contains(&low_latency.packets_per_second), "{weight}: {low_latency:?}");
        assert!(classic.mean_wait_ms < 20.0, "{weight}: {classic:?}");
    }
}

//= 9332-A.2-1
//= 9332-2.5-1
#[test]
fn an_overloaded_low_latency_queue_is_kept_short_by_drops() {
    let low_latency = Stream { ecn: Ecn::Ect1, per_second: 1_500.0 };
    let classic = Stream { ecn: Ecn::NotEct, per_second: 1.0 };
    let [low_latency, classic] = share(usual(), [low_latency, classic]);
    assert!((990.0..=1_000.0).contains(&low_latency.packets_per_second), "{low_latency:?}");
    assert!((12.0..=18.0).contains(&low_latency.mean_wait_ms), "{low_latency:?}");
    // A third of all packets is dropped, here as there.
    assert!((0.5..=0.9).contains(&classic.packets_per_second), "{classic:?}");
}
