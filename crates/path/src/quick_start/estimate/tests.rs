//! The estimate of each method for the same channel, worked out by hand.

use super::*;
use crate::quick_start::AgentSpec;

fn mbps(x: f64) -> Rate {
    Rate::mbps(x)
}

/// 6.336 Mbit/s, so much granted on request, so much by FCA, so much sent.
fn seen(assigned: f64, free_assigned: f64, sent: f64) -> Observation {
    Observation {
        capacity: mbps(6.336),
        assigned: mbps(assigned),
        free_assigned: mbps(free_assigned),
        sent: mbps(sent),
    }
}

fn channel(statistic: Statistic, observations: usize, seen: &[Observation]) -> Channel {
    let mut channel = Channel::new(LoadWindow { statistic, observations });
    seen.iter().for_each(|o| channel.observe(*o));
    channel
}

fn ear(estimator: Estimator) -> Ear {
    Ear::new(estimator, RandomStream::named(1, "terminal.listening"))
}

fn used(estimator: Estimator, channel: &Channel) -> f64 {
    ear(estimator).estimate(Instant::ZERO, channel).used.as_bps() / 1e6
}

const CLEAR: Estimator = Estimator::Listening { inaccuracy: 0.0, fade: None, spots: 1 };

#[test]
fn each_way_counts_what_it_can_see() {
    // 2 Mbit/s were granted on request, FCA handed out the other 4.336, and 1.5 were used.
    let channel = channel(Statistic::Average, 1, &[seen(2.0, 4.336, 1.5)]);
    assert_eq!(used(Estimator::Broadcast, &channel), 2.0);
    assert_eq!(used(Estimator::OnDemand, &channel), 2.0);
    assert_eq!(used(Estimator::TbtpSum, &channel), 6.336, "with FCA no slot is nobody's");
    assert_eq!(used(CLEAR, &channel), 1.5);
}

#[test]
fn who_asks_the_ncc_is_told_what_it_has_just_decided() {
    let mut channel = channel(Statistic::Peak, 4, &[seen(5.0, 0.0, 0.0), seen(2.0, 0.0, 0.0)]);
    channel.decided(seen(3.0, 0.0, 0.0));
    assert_eq!(used(Estimator::OnDemand, &channel), 3.0);
    assert_eq!(used(Estimator::Broadcast, &channel), 5.0, "the others wait for the next TBTP");
}

#[test]
fn average_and_peak_of_the_last_observations() {
    let loads = [6.0, 1.0, 3.0, 2.0].map(|load| seen(load, 0.0, 0.0));
    let over = |statistic, n| used(Estimator::Broadcast, &channel(statistic, n, &loads));
    assert_eq!([1, 2, 3, 4].map(|n| over(Statistic::Average, n)), [2.0, 2.5, 2.0, 3.0]);
    assert_eq!([1, 2, 3, 4, 9].map(|n| over(Statistic::Peak, n)), [2.0, 3.0, 3.0, 6.0, 6.0]);
}

#[test]
fn of_a_channel_that_nothing_is_known_of_nothing_is_free() {
    let nothing = Free { capacity: Rate::ZERO, used: Rate::ZERO };
    for estimator in [Estimator::Broadcast, Estimator::OnDemand, Estimator::TbtpSum, CLEAR] {
        assert_eq!(ear(estimator).estimate(Instant::ZERO, &Channel::new(LoadWindow::default())), nothing);
    }
}

#[test]
fn an_inaccurate_terminal_is_as_often_above_as_below() {
    let channel = channel(Statistic::Average, 1, &[seen(0.0, 0.0, 2.0)]);
    let mut ear = ear(Estimator::Listening { inaccuracy: 0.1, fade: None, spots: 1 });
    let heard: Vec<f64> = (0..10_000).map(|_| ear.estimate(Instant::ZERO, &channel).used.as_bps() / 2e6).collect();
    assert!(heard.iter().all(|x| (0.9..=1.1).contains(x)));
    // Uniform in 0.9 ... 1.1: deviation 0.2 / sqrt(12) = 0.0577, of the mean 0.000577; four of them.
    let mean = heard.iter().sum::<f64>() / 1e4;
    assert!((mean - 1.0).abs() < 0.0024, "{mean}");
    assert!(heard.iter().any(|x| *x < 0.905) && heard.iter().any(|x| *x > 1.095));
}

#[test]
fn a_terminal_in_a_fade_takes_what_it_cannot_hear_for_silence() {
    let channel = channel(Statistic::Average, 1, &[seen(0.0, 0.0, 4.0)]);
    let fade = Fade { clear: Duration::from_secs(30), length: Duration::from_secs(10), heard: 0.25 };
    let mut ear = ear(Estimator::Listening { inaccuracy: 0.0, fade: Some(fade), spots: 1 });
    let (mut faded, mut changes, mut before) = (0, 0, 4.0);
    for s in 0..200_000 {
        let used = ear.estimate(Instant::ZERO + Duration::from_secs(s), &channel).used.as_bps() / 1e6;
        assert!(used == 4.0 || used == 1.0, "{used}");
        faded += u32::from(used == 1.0);
        changes += u32::from(used != before);
        before = used;
    }
    // A quarter of the time: about 5,000 cycles of 40 s, of which the faded part has a deviation of about
    // 2 sqrt(30 x 10 x ...) / 40, in all below 0.005; three of them.
    let share = f64::from(faded) / 2e5;
    assert!((share - 0.25).abs() < 0.015, "{share}");
    assert!((8_000..=10_500).contains(&changes), "two changes for each 40 s, a few too short to see: {changes}");
}

#[test]
fn a_terminal_speaks_for_its_own_spot_only() {
    let channel = channel(Statistic::Average, 1, &[seen(0.0, 0.0, 2.0)]);
    let of_four = ear(Estimator::Listening { inaccuracy: 0.0, fade: None, spots: 4 }).estimate(Instant::ZERO, &channel);
    assert_eq!(of_four, Free { capacity: mbps(1.584), used: mbps(0.5) });
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let error = |estimator| {
        let spec = AgentSpec { estimator, ..AgentSpec::default() };
        spec.validate().expect_err("refused").to_string()
    };
    let listening = |inaccuracy, fade, spots| Estimator::Listening { inaccuracy, fade, spots };
    let second = Duration::from_secs(1);
    let fade = |clear, length, heard| Some(Fade { clear, length, heard });
    let found = error(listening(1.5, None, 1));
    assert_eq!(found, "`quick_start.estimator.inaccuracy` is 1.5; it must be from 0 to 1");
    assert!(error(listening(0.0, None, 0)).contains("`quick_start.estimator.spots` is 0; it must be at least 1"));
    assert!(error(listening(0.0, fade(Duration::ZERO, second, 0.5), 1)).contains("estimator.fade.clear` is 0"));
    assert!(error(listening(0.0, fade(second, Duration::ZERO, 0.5), 1)).contains("estimator.fade.length` is 0"));
    assert!(error(listening(0.0, fade(second, second, -0.5), 1)).contains("estimator.fade.heard` is -0.5"));
}
