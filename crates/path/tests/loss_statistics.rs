//! Damage: the frequencies against the formulas, four standard deviations allowed, seeds fixed;
//! and what stays the same when a probability changes.

mod common;

use common::*;
use fairpace_path::{DelayModel, DropReason, GilbertElliott, Link, LinkSpec, LossModel, Plain};
use fairpace_units::{Duration, Instant, Packets, Probability};

fn p(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

/// The packets of `n`, one per microsecond, that are lost.
fn lost(loss: LossModel, seed: u64, n: usize) -> Vec<bool> {
    let mut link: Link<Plain> = Link::new(&LinkSpec { loss, ..LinkSpec::default() }, seed, "link").unwrap();
    (0..n)
        .map(|i| {
            let now = Instant::ZERO + Duration::from_micros(i as u64);
            link.push(now, normal(i as u64));
            link.pop(now).is_none()
        })
        .collect()
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64
}

#[test]
fn bernoulli_loses_its_share() {
    for (seed, q) in [(1, 1e-3), (2, 0.05), (3, 0.5)] {
        let n = 200_000;
        let sd = (q * (1.0 - q) / n as f64).sqrt();
        let measured = share(&lost(LossModel::Bernoulli(p(q)), seed, n));
        assert!((measured - q).abs() < 4.0 * sd, "{measured} for {q}, sd {sd}");
    }
}

#[test]
fn probabilities_zero_and_one_mean_never_and_always() {
    assert_eq!(share(&lost(LossModel::Bernoulli(p(0.0)), 1, 10_000)), 0.0);
    assert_eq!(share(&lost(LossModel::Bernoulli(p(1.0)), 1, 10_000)), 1.0);
}

#[test]
fn gilbert_elliott_has_the_mean_loss_and_the_burst_length_of_its_formulas() {
    let (to_bad, to_good) = (0.01, 0.2);
    let n = 1_000_000;
    // Simplest model: every packet of the bad state is lost, so a burst is a stay in it.
    let model =
        GilbertElliott { good_to_bad: p(to_bad), bad_to_good: p(to_good), loss_in_good: p(0.0), loss_in_bad: p(1.0) };
    let lost = lost(LossModel::GilbertElliott(model), 4, n);
    // Mean p / (p + r) = 0.0476. A chain with second eigenvalue g = 1 - p - r = 0.79 has the
    // variance of an independent one times (1 + g) / (1 - g) = 8.5.
    let mean = to_bad / (to_bad + to_good);
    assert!((model.mean_loss() - mean).abs() < 1e-15);
    let g = 1.0 - to_bad - to_good;
    let sd = (mean * (1.0 - mean) / n as f64 * (1.0 + g) / (1.0 - g)).sqrt();
    assert!((share(&lost) - mean).abs() < 4.0 * sd, "{} for {mean}, sd {sd}", share(&lost));
    // Bursts are geometric with mean 1 / r = 5 and deviation sqrt(1 - r) / r.
    let bursts: Vec<usize> = lost.split(|&l| !l).map(<[bool]>::len).filter(|&len| len > 0).collect();
    let length = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
    let sd = (1.0 - to_good).sqrt() / to_good / (bursts.len() as f64).sqrt();
    assert!((length - 1.0 / to_good).abs() < 4.0 * sd, "{length} in {} bursts, sd {sd}", bursts.len());
}

#[test]
fn gilbert_elliott_mixes_the_losses_of_its_two_states() {
    let model = GilbertElliott { good_to_bad: p(0.1), bad_to_good: p(0.3), loss_in_good: p(0.02), loss_in_bad: p(0.5) };
    // 0.25 × 0.5 + 0.75 × 0.02 = 0.14
    assert!((model.mean_loss() - 0.14).abs() < 1e-15);
    let n = 500_000;
    // Variance of the mean: independent part 0.14 × 0.86 / n, plus twice the covariances
    // pi_B pi_G (0.48)^2 sum of 0.6^k = 0.1875 × 0.2304 × 1.5 each / n.
    let sd = ((0.14 * 0.86 + 2.0 * 0.1875 * 0.2304 * 1.5) / n as f64).sqrt();
    let measured = share(&lost(LossModel::GilbertElliott(model), 5, n));
    assert!((measured - 0.14).abs() < 4.0 * sd, "{measured}, sd {sd}");
}

#[test]
fn a_link_starts_in_the_bad_state_as_often_as_it_is_there() {
    let model = GilbertElliott { good_to_bad: p(0.2), bad_to_good: p(0.2), loss_in_good: p(0.0), loss_in_bad: p(1.0) };
    let first = (0..4_000).filter(|&seed| lost(LossModel::GilbertElliott(model), seed, 1)[0]).count() as f64;
    // Half of 4,000; sd = sqrt(4000 / 4) = 31.6
    assert!((first - 2_000.0).abs() < 4.0 * 31.6, "{first}");
}

#[test]
fn a_higher_probability_loses_the_same_packets_and_more() {
    let few = lost(LossModel::Bernoulli(p(0.01)), 6, 50_000);
    let many = lost(LossModel::Bernoulli(p(0.03)), 6, 50_000);
    assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
    assert!(share(&many) > 2.0 * share(&few));
}

#[test]
fn losses_shift_no_later_packets_jitter() {
    let exits = |loss| {
        let delay = DelayModel { propagation: span(1.0), jitter: span(10.0), reorder: true };
        let mut link = Link::new(&LinkSpec { delay, loss, ..LinkSpec::default() }, 7, "link").unwrap();
        let mut out = run(&mut link, (0..1_000).map(|id| (ms(id as f64), normal(id))));
        out.sort_by_key(|&(_, id)| id);
        out
    };
    let (all, some) = (exits(LossModel::None), exits(LossModel::Bernoulli(p(0.3))));
    assert_eq!(all.len(), 1_000);
    assert!((600..800).contains(&some.len()));
    assert!(some.iter().all(|&(at, id)| all[id as usize] == (at, id)));
}

#[test]
fn jitter_keeps_the_order_unless_told_otherwise_and_stays_within_its_bounds() {
    for reorder in [false, true] {
        let delay = DelayModel { propagation: span(10.0), jitter: span(5.0), reorder };
        let mut link = Link::new(&LinkSpec { delay, ..LinkSpec::default() }, 8, "link").unwrap();
        let out = run(&mut link, (0..10_000).map(|id| (ms(id as f64), normal(id))));
        let delays: Vec<f64> = out.iter().map(|&(at, id)| at.since(ms(id as f64)).as_secs_f64() * 1e3).collect();
        assert!(delays.iter().all(|d| (10.0..15.0).contains(d)));
        let in_order = out.is_sorted_by_key(|&(_, id)| id);
        assert_eq!(in_order, !reorder);
        if reorder {
            // Uniform: mean 12.5 ms, sd of the mean 5 / sqrt(12 × 10,000) = 0.0144.
            let mean = delays.iter().sum::<f64>() / 10_000.0;
            assert!((mean - 12.5).abs() < 4.0 * 0.0144, "{mean}");
        }
    }
}

#[test]
fn a_damaged_packet_has_used_the_links_time_and_is_counted_when_it_has_left() {
    use fairpace_path::RateModel;
    use fairpace_units::Rate;
    let spec = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(8.0)),
        loss: LossModel::Bernoulli(p(1.0)),
        queue: drop_tail(5),
        ..LinkSpec::default()
    };
    let mut link = Link::new(&spec, 1, "link").unwrap();
    link.record_drops(true);
    link.push(ms(0.0), normal(1));
    link.push(ms(0.0), normal(2));
    link.advance(ms(1.5));
    assert_eq!(link.counters().dropped(DropReason::LinkError).packets, Packets::new(1));
    assert_eq!((link.queue_len(), link.inside()), (1, 1));
    link.advance(ms(2.0));
    assert_eq!(drops(&mut link), [(ms(1.0), DropReason::LinkError, 1), (ms(2.0), DropReason::LinkError, 2)]);
    assert_eq!(link.counters().busy(), span(2.0));
}
