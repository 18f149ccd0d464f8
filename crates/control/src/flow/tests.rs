//! The flow around the controller: what it lets through, what it believes, when it ends.

use super::*;
use crate::IgnoredFeedback;
use crate::aimd::Aimd;
use crate::breaker::Trip;
use crate::feedback::{Ack, Message};
use crate::sack_vector::SackVector;
use crate::testing::{Path, SIZE, acknowledge, as_scheme, at, made, paper, tell};
use crate::{Env, ReceiverReport};
use fairpace_units::Probability;
use std::collections::VecDeque;

const RTT: Duration = Duration::from_millis(550);

fn real() -> Env {
    Env { safety: Safety::Default, max_rate: Rate::packets_per_second(1_000.0, SIZE), ..paper() }
}

fn rcs(env: &Env) -> Path {
    Path::new(made("rcs", &[("s_target", "125 pkt/s")], env), env, RTT)
}

fn fixed(rate: &str, env: &Env) -> Path {
    Path::new(made("fixed", &[("rate", rate)], env), env, RTT)
}

fn ack(kind: Kind, seq: u64) -> Ack {
    Ack::immediate(kind, seq)
}

#[test]
fn nothing_is_sent_before_the_start_and_feedback_before_it_is_ignored() {
    let mut flow = Flow::new(made("fixed", &[], &real()), FlowParams::new(&real()));
    assert_eq!(flow.poll(at(1.0), true), Transmit::WaitForFeedback(Instant::NEVER));
    acknowledge(&mut flow, at(1.0), &[ack(Kind::Data, 0)]);
    assert_eq!(flow.counters(), &FlowCounters::default());
}

#[test]
fn permits_count_each_kind_apart_and_mark_dummies_low() {
    let mut path = rcs(&paper());
    path.run(at(20.0), |p| p.seq != 100);
    for kind in [Kind::Data, Kind::Dummy] {
        let seqs: Vec<u64> = path.sent.iter().filter(|p| p.kind == kind).map(|p| p.seq).collect();
        assert!(seqs.len() > 100);
        assert!(seqs.iter().enumerate().all(|(n, seq)| n as u64 == *seq), "{kind:?}");
    }
    assert_eq!(path.flow.permit(Kind::Dummy).class, Class::Low);
    assert_eq!(path.flow.permit(Kind::Data).class, Class::Normal);
    let low = FlowParams { data_class: Class::Low, ..FlowParams::new(&paper()) };
    assert_eq!(Flow::new(made("rap", &[], &paper()), low).permit(Kind::Data).class, Class::Low);
}

#[test]
fn feedback_about_packets_never_sent_is_counted_and_moves_nothing() {
    let mut path = rcs(&real());
    path.run(at(10.0), |_| true);
    let before = (path.flow.status(), path.flow.rtt().clone(), path.flow.counters().data);
    let next = path.flow.permit(Kind::Data).seq;
    acknowledge(
        &mut path.flow,
        path.now,
        &[ack(Kind::Data, next), ack(Kind::Dummy, u64::MAX), ack(Kind::Data, next + 1_000)],
    );
    assert_eq!(path.flow.counters().bad.unsent, 3);
    assert_eq!((path.flow.status(), path.flow.rtt().clone(), path.flow.counters().data), before);
}

#[test]
fn a_receiver_that_overstates_its_delay_gets_its_packet_credited_and_nothing_off_the_rtt() {
    let mut path = fixed("100 pkt/s", &real());
    path.run(at(1.0), |_| false);
    let lie = Ack { ack_delay: Duration::from_secs(3_600), ..ack(Kind::Data, 0) };
    acknowledge(&mut path.flow, at(1.0), &[lie]);
    let c = path.flow.counters();
    // The packet left at 0 s: SRTT grows by an eighth of what 1 s exceeds it.
    assert_eq!((c.bad.rtt, c.data.acked, path.flow.srtt()), (1, 1, Some(RTT + (Duration::from_secs(1) - RTT) / 8)));
}

/// Packets that wait in a queue for 100 ms more than the first; held back for 10 ms, and 25 agreed.
#[test]
fn a_claimed_delay_hides_what_was_agreed_at_most_and_never_the_path() {
    let rtt_after = |ack_delay: u64, elapsed: u64| {
        let ms = Duration::from_millis;
        let mut path = fixed("100 pkt/s", &real());
        path.run(at(1.0), |_| false);
        let ack = |seq, ack_delay| Ack { ack_delay, ..ack(Kind::Data, seq) };
        // Packet n left at 10 n ms.
        let at = |seq: u64, rtt: Duration| Instant::ZERO + ms(10 * seq) + rtt;
        acknowledge(&mut path.flow, at(50, RTT), &[ack(50, Duration::ZERO)]);
        acknowledge(&mut path.flow, at(51, RTT + ms(elapsed)), &[ack(51, ms(ack_delay))]);
        path.flow.rtt().latest().expect("sampled") - RTT
    };
    for (claimed, elapsed, beyond_the_path) in
        [(10, 110, 100), (25, 125, 100), (60, 100, 75), (600, 100, 75), (25, 10, 0)]
    {
        assert_eq!(rtt_after(claimed, elapsed), Duration::from_millis(beyond_the_path), "{claimed} ms of {elapsed}");
    }
}

#[test]
fn dummies_measure_the_rtt_only_until_data_does() {
    let mut path = rcs(&real());
    path.run(at(5.0), |p| p.seq != 20);
    assert!(path.count(Kind::Dummy, at(1.2), at(5.0)) > 10);
    let rtt = path.flow.rtt().clone();
    let dummies = path.flow.permit(Kind::Dummy).seq;
    let late: Vec<Ack> = (0..dummies).map(|seq| ack(Kind::Dummy, seq)).collect();
    acknowledge(&mut path.flow, at(9.0), &late);
    assert_eq!(path.flow.rtt(), &rtt);
}

// --- the cap -------------------------------------------------------------------------------------

/// Detected wants 1.5 S_0 in all; with a cap of S_0 the dummies give way and data keeps S_0/2.
#[test]
fn under_the_cap_dummies_give_way_to_data() {
    let env = Env { max_rate: Rate::packets_per_second(125.0, SIZE), ..real() };
    let mut path = Path::new(made("rcs", &[], &env), &env, RTT);
    path.run(at(10.0), |p| p.kind == Kind::Dummy || p.seq != 300);
    let t0 = path.trace.iter().find(|(_, _, s)| *s == "Detected").expect("detected").0;
    let s0 = path.trace.iter().rev().find(|(t, _, _)| *t < t0).expect("before").1;
    assert_eq!(s0, 125.0);
    let (from, to) = (at(t0), at(t0) + RTT);
    let (data, dummies) = (path.count(Kind::Data, from, to) as f64, path.count(Kind::Dummy, from, to) as f64);
    // 62.5/s · 0.55 s = 34.4 of each
    assert!((data - 34.4).abs() <= 1.5 && (dummies - 34.4).abs() <= 1.5, "{data} data, {dummies} dummies");
}

#[test]
fn the_encoder_is_told_the_least_of_rate_demand_and_cap() {
    let env = real();
    let mut path = fixed("800 pkt/s", &env);
    assert_eq!(path.flow.target_rate(), Rate::packets_per_second(800.0, SIZE));
    path.flow.set_demand(at(0.0), Some(Rate::packets_per_second(300.0, SIZE)));
    assert_eq!(path.flow.target_rate(), Rate::packets_per_second(300.0, SIZE));
    path.flow.set_demand(at(0.0), Some(Rate::ZERO));
    assert_eq!(path.flow.target_rate(), Rate::ZERO, "the controller's floor is not the application's");
    let mut params = FlowParams::new(&env);
    params.max_rate = Rate::packets_per_second(100.0, SIZE);
    assert_eq!(Flow::new(made("fixed", &[("rate", "800 pkt/s")], &env), params).target_rate(), Rate::kbps(800.0));
}

#[test]
fn in_the_papers_scenarios_there_is_no_cap_and_no_breaker() {
    let env = Env { safety: Safety::Paper, ..real() };
    let mut path = fixed("1000 pkt/s", &env);
    path.flow.limits.cut(Some(Rate::bps(1.0)));
    let path_capped = Flow::new(made("fixed", &[], &env), FlowParams::new(&env));
    assert!(path_capped.limits.cap().is_none() && !path_capped.account.watch.is_on());
}

// --- who lies ------------------------------------------------------------------------------------

#[test]
fn a_receiver_that_acknowledges_a_number_left_out_is_found_out() {
    let env = real();
    let skip = FlowParams { skip: Some((1_024, 7)), ..FlowParams::new(&env) };
    for honest in [true, false] {
        let mut path = fixed("1000 pkt/s", &env);
        path.flow = Flow::new(made("fixed", &[("rate", "1000 pkt/s")], &env), skip.clone());
        path.flow.start(Instant::ZERO, Some(RTT));
        let mut reason = path.run(at(8.0), |_| honest);
        if !honest {
            // Acknowledges every number in order, whatever came.
            let all: Vec<Ack> = (0..path.flow.permit(Kind::Data).seq).map(|seq| ack(Kind::Data, seq)).collect();
            acknowledge(&mut path.flow, at(8.0), &all);
            reason = path.flow.stopped();
        }
        // 8,000 numbers: none left out with probability (1 - 1/1024)^8000 = 0.0004, and this
        // seed leaves some out.
        let last = path.sent.last().expect("packets").seq;
        assert!(last >= path.sent.len() as u64, "{last}");
        assert_eq!(reason, (!honest).then_some(StopReason::PeerLied));
        if honest {
            assert_eq!((path.flow.counters().data.lost, path.flow.counters().bad), (0, IgnoredFeedback::default()));
        } else {
            assert_eq!(path.flow.poll(at(8.0), true), Transmit::Stopped(StopReason::PeerLied));
        }
    }
}

/// ACKs at half the true RTT, then a tenth, for packets sent but not yet arrived: the rate stays
/// below the cap, and the RTT falls only after three confirmations.
#[test]
fn early_acks_never_lift_the_rate_above_the_cap() {
    for (scheme, params) in [("rcs", &[][..]), ("rap", &[])] {
        let env = real();
        let mut path = Path::new(made(scheme, params, &env), &env, RTT);
        path.run(at(20.0), |_| true);
        path.rtt = Duration::from_millis(55);
        let from = path.sent.len();
        path.run(at(40.0), |_| true);
        let sent = path.sent[from..].len() as f64;
        assert!(sent <= 1_000.0 * 20.0 + 1.0, "{scheme}: {sent}");
    }
}

// --- the breaker ---------------------------------------------------------------------------------

#[test]
fn an_unresponsive_flow_on_a_congested_path_is_cut_at_the_third_report_and_stopped_two_later() {
    let mut stream = RandomStream::named(1, "loss");
    let p = Probability::new(0.3).expect("a probability");
    // s · sqrt(3 / (2 · 0.3)) / 0.55 = 4.07 packets/s; ten times that is 40.7
    let mut path = fixed("45 pkt/s", &real());
    let Some(StopReason::Congestion { sent, allowed, lost }) = path.run(at(60.0), |_| !stream.chance(p)) else {
        panic!("not stopped: {:?}", path.flow.counters())
    };
    assert_eq!(path.now, at(25.0));
    let before = path.count(Kind::Data, at(5.0), at(15.0));
    let after = path.count(Kind::Data, at(15.0), at(25.0));
    assert_eq!((before, after), (450, 46), "the pacer enforces the tenth, and the last packet of the instant before");
    assert!((lost - 0.3).abs() < 0.06, "{lost}"); // 675 packets: sd 0.018
    assert!((sent.as_packets_per_second(SIZE) - 45.0).abs() < 0.5);
    assert!((allowed.as_packets_per_second(SIZE) - 40.7).abs() < 5.0);
    let mut path = fixed("30 pkt/s", &real());
    assert_eq!(path.run(at(60.0), |_| !stream.chance(p)), None);
}

/// 3 s without signal at 1 Mbit/s over 550 ms: with the outage counted, 10 to 20 % of the packets
/// of three reports would be lost, and ten times TCP's rate 0.4 to 0.6 Mbit/s.
#[test]
fn on_a_long_lossy_path_rcs_is_kept_within_what_the_breaker_bears_and_a_fixed_rate_is_stopped() {
    // At 0.2 % loss and 550 ms ten times TCP's rate is 10 · sqrt(3 / (2 · 0.002)) / 0.55 = 498 packets/s, whatever
    // their size. RCS begins at S_Target = 800 and regains much of it after each loss: left alone, seed 8's is stopped.
    let p = Probability::new(0.002).unwrap();
    let env = Env { max_rate: Rate::packets_per_second(3_000.0, SIZE), ..real() };
    for seed in 0..10 {
        let mut stream = RandomStream::named(seed, "loss");
        let mut path = Path::new(made("rcs", &[("s_target", "800 pkt/s")], &env), &env, RTT);
        path.run(at(120.0), |_| !stream.chance(p));
        assert_eq!(path.flow.stopped(), None, "seed {seed}");
        let late = path.count(Kind::Data, at(60.0), at(120.0)) as f64 / 60.0;
        assert!((50.0..498.0).contains(&late), "seed {seed}: {late} packets/s");

        let mut stream = RandomStream::named(seed, "loss");
        let mut path = fixed("800 pkt/s", &env);
        path.run(at(120.0), |_| !stream.chance(p));
        assert!(matches!(path.flow.stopped(), Some(StopReason::Congestion { .. })), "seed {seed}");
    }
}

/// Over 7 s a report every 5 s shows nothing of the cut: each of the two intervals is two reports long.
#[test]
fn an_interval_after_a_cut_lasts_a_round_trip_at_least() {
    for (rtt, seconds) in [(RTT, 10), (Duration::from_secs(7), 20)] {
        let mut stream = RandomStream::named(1, "loss");
        let p = Probability::new(0.3).expect("a probability");
        let env = real();
        let mut path = Path::new(made("fixed", &[("rate", "100 pkt/s")], &env), &env, rtt);
        let mut reports = 1..40;
        let mut run_until = |done: fn(&Flow) -> bool| {
            reports.find(|n| {
                path.run(at(5.0 * f64::from(*n) + 0.1), |_| !stream.chance(p));
                done(&path.flow)
            })
        };
        let cut = run_until(|flow| flow.counters().cuts == 1).expect("cut");
        let stopped = run_until(|flow| flow.stopped().is_some()).expect("stopped");
        assert_eq!((stopped - cut) * 5, seconds);
    }
}

/// A third is lost for 16 s, and the breaker cuts. Nothing is lost afterwards: the flow goes on, at the tenth for two
/// intervals.
#[test]
fn a_responsive_flow_goes_on_after_a_cut_that_has_helped() {
    let env = Env { max_rate: Rate::packets_per_second(3_000.0, SIZE), ..real() };
    let mut path = Path::new(made("rcs", &[("s_target", "800 pkt/s")], &env), &env, RTT);
    path.run(at(16.0), |p| p.seq % 3 != 0);
    assert!(path.flow.headroom.is_some());
    let rate = Rate::packets_per_second(5.0, SIZE);
    path.flow.apply(at(16.0), Some(Trip::Cut(rate)));
    assert!(path.flow.drain_events().any(|e| e.what == FlowEventKind::Capped { rate }));
    path.run(at(60.0), |_| true);
    assert_eq!((path.flow.stopped(), path.flow.counters().cuts), (None, 1));
    let left = path.count(Kind::Data, at(17.0), at(26.0)) + path.count(Kind::Dummy, at(17.0), at(26.0));
    assert!((40..=46).contains(&left), "the pacer enforces the cut: {left} packets");
    // The loss is out of the mean: nothing holds the flow.
    assert!(!path.flow.held && path.flow.headroom.is_none());
}

/// 5 % lost over 550 ms: ten times TCP's rate is 10 · sqrt(3 / (2 · 0.05)) / 0.55 = 99.6 packets/s, and 0.7 of it 69.7.
/// The mean over any second from the first reports on is no more, dummies included.
#[test]
fn data_and_dummies_together_are_held_below_a_share_of_what_the_breaker_bears() {
    let p = Probability::new(0.05).expect("a probability");
    for seed in 0..5 {
        let mut stream = RandomStream::named(seed, "loss");
        let mut path = rcs(&real());
        path.run(at(120.0), |_| !stream.chance(p));
        assert_eq!((path.flow.stopped(), path.flow.counters().cuts), (None, 0), "seed {seed}");
        for from in [30.0, 60.0, 90.0] {
            let all: usize = [Kind::Data, Kind::Dummy].iter().map(|k| path.count(*k, at(from), at(from + 30.0))).sum();
            assert!(all as f64 / 30.0 < 99.6, "seed {seed}: {} packets/s", all as f64 / 30.0);
        }
    }
}

/// Five packets at once each second, at a hold of ten packets per second: bursts are not spread. Above it the mean is kept.
#[test]
fn the_hold_is_a_mean_over_its_period_and_the_cut_spaces_packets() {
    let second = Duration::from_secs(1);
    let mut limits = Limits::new(&FlowParams::new(&paper()), true);
    let hold = Rate::packets_per_second(10.0, SIZE);
    limits.hold(Some(hold), second);
    for burst in 10..20 {
        for _ in 0..5 {
            assert_eq!(limits.permit(at(f64::from(burst)), true), Ok(()));
            limits.on_sent(at(f64::from(burst)), SIZE, Via::Udp);
        }
    }
    let mut left = 0;
    while limits.permit(at(20.0), true).is_ok() {
        limits.on_sent(at(20.0), SIZE, Via::Udp);
        left += 1;
    }
    assert_eq!(left, 11, "one second's worth, and the packet that begins");
    assert!(limits.take_refused() && !limits.take_refused());
    limits.hold(None, second);
    assert_eq!(limits.permit(at(20.0), true), Ok(()));
    let mut cut = Limits::new(&FlowParams::new(&paper()), true);
    cut.cut(Some(hold));
    cut.on_sent(at(0.0), SIZE, Via::Udp);
    assert!(cut.permit(at(0.09), true).is_err() && cut.permit(at(0.1), true).is_ok());
    cut.on_sent(at(1.0), SIZE, Via::Tcp);
    assert!(cut.permit(at(1.01), true).is_ok(), "TCP's packets are none of the breaker's");
}

#[test]
fn a_blackout_of_three_seconds_is_not_congestion() {
    for seed in 0..5 {
        let mut stream = RandomStream::named(seed, "loss");
        let p_loss = Probability::new(0.01).expect("a probability");
        let mut path = rcs(&real());
        let up = |t: Instant| t < at(13.0) || t >= at(16.0);
        let reason = path.run(at(60.0), |p| up(p.at) && !stream.chance(p_loss));
        assert_eq!(reason, None);
        assert!(path.count(Kind::Data, at(50.0), at(60.0)) > 300, "it recovers");
    }
}

/// All that went to a receiver that was stopped has come, and is acknowledged when the receiver goes on: nothing was lost, and the
/// time until then is no round trip.
#[test]
fn a_receiver_that_was_stopped_for_ten_seconds_has_lost_nothing() {
    for rate in ["60 pkt/s", "500 pkt/s"] {
        let env = real();
        let mut path = Path::new(made("fixed", &[("rate", rate)], &env), &env, Duration::from_millis(40));
        path.run(at(20.0), |_| true);
        let (from, srtt) = (path.flow.counters().data.acked, path.flow.srtt());
        path.run(at(30.0), |_| false);
        let sent: Vec<Ack> = (from..path.flow.permit(Kind::Data).seq).map(|seq| ack(Kind::Data, seq)).collect();
        assert!(sent.len() > 590, "{}", sent.len());
        let (old, last) = sent.split_at(sent.len() - 512);
        for acks in old.chunks(10) {
            acknowledge(&mut path.flow, at(30.0), acks);
            assert_eq!(path.flow.srtt(), srtt, "{rate}");
        }
        for acks in last.chunks(10) {
            acknowledge(&mut path.flow, at(30.0), acks);
        }
        path.run(at(60.0), |_| true);
        assert_eq!((path.flow.stopped(), path.flow.counters().data.lost), (None, 0), "{rate}");
    }
}

#[test]
fn silence_ends_every_flow_within_15_s_and_an_rtt_and_it_stays_ended() {
    let rtts = [Duration::from_millis(10), Duration::from_millis(40), RTT, Duration::from_secs(2)];
    for (scheme, rtt) in crate::schemes().iter().flat_map(|s| rtts.map(|rtt| (s, rtt))) {
        let mut path = Path::new(made(scheme.name, &[], &real()), &real(), rtt);
        path.run(at(20.0), |_| true);
        let reason = path.run(at(60.0), |_| false);
        let expected = StopReason::FeedbackTimeout { after: Duration::from_secs(15) };
        assert_eq!(reason, Some(expected), "{}", scheme.name);
        assert!(path.now <= at(35.0) + rtt + Duration::from_millis(100), "{}: {}", scheme.name, path.now);
        acknowledge(&mut path.flow, path.now, &[ack(Kind::Data, path.sent.len() as u64 - 1)]);
        assert_eq!(path.flow.poll(at(3_600.0), true), Transmit::Stopped(expected));
    }
}

#[test]
fn replayed_feedback_does_not_keep_a_dead_flow_alive() {
    let mut path = fixed("100 pkt/s", &real());
    path.run(at(10.0), |_| true);
    let old = ack(Kind::Data, 900);
    let mut stopped = None;
    for n in 0..200 {
        acknowledge(&mut path.flow, path.now, &[old]);
        stopped = path.run(at(10.0 + 0.1 * f64::from(n)), |_| false);
        if stopped.is_some() {
            break;
        }
    }
    assert!(matches!(stopped, Some(StopReason::FeedbackTimeout { .. })));
}

#[test]
fn a_driver_that_was_asleep_for_a_minute_has_not_heard_silence() {
    let mut path = fixed("100 pkt/s", &real());
    path.run(at(10.0), |_| true);
    path.run(at(12.0), |_| false); // 1.45 s unheard when it falls asleep
    path.now = at(70.0);
    // Timers run before the socket is read: what arrived meanwhile has not been handed in yet.
    assert!(!matches!(path.flow.poll(path.now, false), Transmit::Stopped(_)));
    assert_eq!(path.run(at(74.0), |_| true), None);
    assert_eq!(path.flow.counters().stalls, 1);
    // Awake and unheard for 15 s it ends all the same.
    let reason = path.run(at(120.0), |_| false);
    assert!(matches!(reason, Some(StopReason::FeedbackTimeout { .. })));
    assert!(path.now <= at(74.0) + RTT + Duration::from_millis(15_100), "{}", path.now);
}

#[test]
fn reports_that_data_does_not_arrive_end_the_flow_although_dummies_do() {
    let mut path = rcs(&real());
    path.run(at(10.0), |_| true);
    let highest_seq = path.flow.permit(Kind::Data).seq - 1;
    let report = ReceiverReport::new(highest_seq, 0.0, Duration::from_secs(5));
    let mut reports = 0;
    let reason = loop {
        tell(&mut path.flow, path.now, Message::Report(&report));
        reports += 1;
        let end = path.now + Duration::from_secs(5);
        if let Some(reason) = path.run(end, |p| p.kind == Kind::Dummy) {
            break reason;
        }
        path.now = end;
    };
    // The first only says what is true; five more say that nothing came since.
    assert_eq!((reports, reason), (6, StopReason::MediaTimeout { reports: 5 }));
}

/// Schemes whose packets are acknowledged.
fn acknowledged() -> impl Iterator<Item = &'static str> {
    let form = |name| made(name, &[], &real()).feedback_form();
    let all = crate::schemes().iter().map(|s| s.name);
    all.filter(move |name| matches!(form(name), Form::Ccfb | Form::SackVector))
}

/// The receiver goes on saying that nothing came after the last packet acknowledged: 15 s, not five reports.
#[test]
fn reports_of_nothing_new_do_not_keep_a_dead_flow_alive() {
    let interval = Duration::from_secs(5);
    for name in acknowledged() {
        let mut path = Path::new(made(name, &[], &real()), &real(), RTT);
        path.run(at(20.0), |_| true);
        let report = ReceiverReport::new(path.flow.account.data.next_seq() - 1, 0.0, interval);
        let mut stopped = None;
        for n in 1..=6 {
            stopped = stopped.or(path.run(at(20.0 + 5.0 * f64::from(n)), |_| false));
            tell(&mut path.flow, path.now, Message::Report(&report));
        }
        let expected = StopReason::FeedbackTimeout { after: Duration::from_secs(15) };
        assert_eq!(stopped, Some(expected), "{name}");
        assert!(path.now <= at(35.0) + RTT + Duration::from_millis(100), "{name}: {}", path.now);
        // Reports of packets of which nothing else tells do.
        let mut path = Path::new(made(name, &[], &real()), &real(), RTT);
        for n in 1..=6 {
            assert_eq!(path.run(at(5.0 * f64::from(n)), |_| false), None, "{name}");
            let report = ReceiverReport::new(path.flow.account.data.next_seq() - 1, 0.0, interval);
            tell(&mut path.flow, path.now, Message::Report(&report));
        }
    }
}

/// Talk of 0.5 s each 8 s, and every other time all of it is lost.
#[test]
fn a_source_with_pauses_over_a_path_with_outages_goes_on() {
    for name in acknowledged() {
        let mut flow = Flow::new(made(name, &[], &real()), FlowParams::new(&real()));
        flow.start(at(0.0), Some(Duration::from_millis(40)));
        let mut acks: Vec<(Instant, Ack)> = Vec::new();
        for tick in 0..12_000 {
            let now = Instant::ZERO + Duration::from_millis(10) * tick;
            let (talk, within) = (tick / 800, tick % 800);
            let due = acks.iter().take_while(|(at, _)| *at <= now).count();
            for (_, ack) in acks.drain(..due) {
                acknowledge(&mut flow, now, &[ack]);
            }
            while let Transmit::Send(permit) = flow.poll(now, within < 50) {
                flow.on_sent(now, permit, SIZE);
                if talk % 2 == 0 {
                    acks.push((now + Duration::from_millis(40), Ack::immediate(permit.kind, permit.seq)));
                }
            }
        }
        assert_eq!(flow.stopped(), None, "{name}");
        assert!(flow.counters().data.lost > 10, "{name}: {:?}", flow.counters());
    }
}

#[test]
fn a_report_about_packets_never_sent_or_with_nonsense_is_counted_and_ignored() {
    let mut path = fixed("100 pkt/s", &real());
    path.run(at(10.0), |_| true);
    let next = path.flow.permit(Kind::Data).seq;
    for (highest_seq, fraction_lost) in [(next, 0.5), (0, f64::NAN), (0, -1.0), (0, 2.0)] {
        let report = ReceiverReport::new(highest_seq, fraction_lost, Duration::from_secs(5));
        tell(&mut path.flow, path.now, Message::Report(&report));
    }
    assert_eq!(path.flow.counters().bad.report, 4);
    assert!(!path.flow.account.watch.is_reported());
}

/// The receiver says that nothing is lost; the ledger knows better.
#[test]
fn concealed_loss_does_not_fool_the_breaker() {
    let mut stream = RandomStream::named(1, "loss");
    let p = Probability::new(0.3).expect("a probability");
    let mut path = fixed("100 pkt/s", &real());
    let mut reason = None;
    for n in 1..=6 {
        reason = reason.or(path.run(at(5.0 * f64::from(n)), |_| !stream.chance(p)));
        path.now = at(5.0 * f64::from(n));
        let highest_seq = path.flow.permit(Kind::Data).seq - 60;
        let report = ReceiverReport::new(highest_seq, 0.0, Duration::from_secs(5));
        tell(&mut path.flow, path.now, Message::Report(&report));
    }
    assert!(matches!(path.flow.stopped(), Some(StopReason::Congestion { .. })), "{reason:?}");
}

// --- time ----------------------------------------------------------------------------------------

/// Detected ends at t0 + SRTT; the driver comes later, with an ACK that arrived after that. The
/// phase ended without one: Backoff first, and then Steady.
#[test]
fn what_was_due_before_feedback_happens_before_it() {
    let mut path = rcs(&paper());
    path.run(at(3.0), |_| true);
    path.run(at(8.0), |_| false);
    let t0 = path.trace.iter().find(|(_, _, s)| *s == "Detected").expect("detected").0;
    let mut path = rcs(&paper());
    path.run(at(3.0), |_| true);
    path.run(at(t0 + 0.3), |_| false);
    assert_eq!(path.flow.status().state, "Detected");
    path.flow.drain_events();
    let last = path.flow.permit(Kind::Data).seq - 1;
    acknowledge(&mut path.flow, at(t0 + 1.0), &[ack(Kind::Data, last)]);
    let states: Vec<&str> = path
        .flow
        .drain_events()
        .filter_map(|e| match e.what {
            FlowEventKind::StateChanged { to, .. } => Some(to),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["Backoff", "Steady"]);
}

#[test]
fn time_that_goes_back_is_taken_as_no_time_passing() {
    let mut path = fixed("100 pkt/s", &real());
    path.run(at(10.0), |_| true);
    let answer = path.flow.poll(at(10.0), true);
    assert_eq!(path.flow.poll(at(1.0), true), answer);
    acknowledge(&mut path.flow, at(0.0), &[ack(Kind::Data, 950)]);
    assert!(path.flow.srtt().expect("known") >= Duration::from_millis(400));
}

#[test]
fn timeouts_back_off_only_where_the_scheme_says_so() {
    for (setting, expected) in [("off", Duration::from_millis(200)), ("on", Duration::from_millis(800))] {
        let env = Env { safety: Safety::Paper, ..real() };
        let pairs = [("rto_backoff", setting), ("backoff", "off"), ("s_target", "100 pkt/s")];
        let rtt = Duration::from_millis(100);
        let mut path = Path::new(made("rcs", &pairs, &env), &env, rtt);
        path.run(at(10.0), |_| true);
        let mut end = 10.0;
        while path.flow.counters().timeouts < 2 {
            end += 0.01;
            path.run(at(end), |_| false);
        }
        // RTTVAR is 0 by now: RTO = max(200 ms, 100 + 10)
        assert_eq!(path.flow.rto(), expected, "{setting}");
        // Any ACK ends the back-off; the held-up sample itself may lengthen the timeout.
        let last = path.flow.permit(Kind::Data).seq - 1;
        acknowledge(&mut path.flow, path.now, &[ack(Kind::Data, last)]);
        assert_eq!(path.flow.rto(), path.flow.rtt().rto(&path.flow.policy.rto), "{setting}");
    }
}

// --- sack vectors --------------------------------------------------------------------------------

fn sack(ack: u64, vector: u8) -> SackVector {
    let ack = (ack & 0xFF_FFFF) as u32;
    SackVector { ack, vector, rwnd: None, ecn: Ecn::NotEct, ack_delay: Duration::ZERO, arrived_at: None }
}

/// A window of 10, all of it sent at 0; the numbers begin just below 2^24.
fn ten_sent() -> Flow {
    let params = FlowParams { first_seq: [FIRST, 0], ..FlowParams::new(&paper()) };
    let mut flow = Flow::new(made("aimd", &[("initial_window", "10")], &paper()), params);
    tell(&mut flow, Instant::ZERO, Message::SackVector(&sack(FIRST, 0)));
    assert_eq!(flow.counters(), &FlowCounters::default(), "not started");
    flow.start(Instant::ZERO, Some(RTT));
    for _ in 0..10 {
        let permit = loop {
            match flow.poll(flow.now, true) {
                Transmit::Send(permit) => break permit,
                Transmit::WaitUntil(t) => _ = flow.advance(t),
                other => panic!("{other:?}"),
            }
        };
        flow.on_sent(flow.now, permit, SIZE);
    }
    assert!(matches!(flow.poll(flow.now, true), Transmit::WaitForFeedback(_)));
    flow
}

const FIRST: u64 = (1 << 24) - 4;

#[test]
fn a_sack_vector_credits_each_packet_it_names_once_across_the_wrap() {
    let mut flow = ten_sent();
    // FIRST + 5 is number 1 on the wire; bits 1, 2 and 5: FIRST + 4, + 3, + 0.
    tell(&mut flow, at(0.55), Message::SackVector(&sack(FIRST + 5, 0b1_0011)));
    assert_eq!((flow.counters().data.acked, flow.flight().0, flow.counters().data.lost), (4, 4, 2));
    // Three later ones show that FIRST + 1 and + 2 are lost; the vector may still name them.
    tell(&mut flow, at(0.56), Message::SackVector(&sack(FIRST + 6, 0b11_0111)));
    let data = flow.counters().data;
    assert_eq!((data.acked, data.late, data.lost), (6, 1, 1), "FIRST + 6, and + 1 after all");
    assert_eq!(flow.counters().bad, IgnoredFeedback::default(), "a vector repeats, and that is no news");
    for _ in 0..3 {
        tell(&mut flow, at(0.57), Message::SackVector(&sack(FIRST + 6, 0b11_0111)));
    }
    assert_eq!((flow.counters().data, flow.counters().bad.duplicate), (data, 3));
}

#[test]
fn only_packet_ack_a_measures_the_rtt_and_only_once() {
    let mut flow = ten_sent();
    let sample = |flow: &Flow| flow.rtt().latest();
    tell(&mut flow, at(0.6), Message::SackVector(&sack(FIRST, 0)));
    assert_eq!(sample(&flow), Some(Duration::from_millis(600)));
    // FIRST + 3 measures; FIRST + 1, which it names too, does not.
    tell(&mut flow, at(0.7), Message::SackVector(&sack(FIRST + 3, 0b10)));
    let latest = sample(&flow).expect("measured");
    assert!(latest <= Duration::from_millis(700) && latest > Duration::from_millis(699), "{latest:?}");
    // Late by reordering: FIRST + 2 is news, ack_a is not.
    tell(&mut flow, at(1.5), Message::SackVector(&sack(FIRST + 3, 0b11)));
    assert_eq!((sample(&flow), flow.counters().data.acked), (Some(latest), 4));
    assert_eq!(flow.counters().bad, IgnoredFeedback::default());
}

#[test]
fn a_sack_vector_of_what_was_not_sent_is_ignored_with_all_it_says() {
    let mut flow = ten_sent();
    for ack in [FIRST + 10, FIRST + 1_000, FIRST + (1 << 23) - 1] {
        tell(&mut flow, at(0.55), Message::SackVector(&SackVector { rwnd: Some(1), ..sack(ack, 0xFF) }));
    }
    assert_eq!((flow.counters().bad.unsent, flow.counters().data.acked, flow.rwnd()), (3, 0, None));
    // Half the numbers away or more it is an old one.
    tell(&mut flow, at(0.55), Message::SackVector(&sack(FIRST - (1 << 23) + 10, 0)));
    assert_eq!((flow.counters().bad.unsent, flow.counters().bad.stale), (3, 1));
}

#[test]
fn a_sack_vector_that_names_a_number_left_out_ends_the_flow() {
    for liar in [true, false] {
        let params = FlowParams { skip: Some((2, 7)), ..FlowParams::new(&real()) };
        let mut flow = Flow::new(made("aimd", &[("initial_window", "10")], &real()), params);
        flow.start(Instant::ZERO, Some(RTT));
        let mut sent = Vec::new();
        while sent.len() < 10 {
            match flow.poll(flow.now, true) {
                Transmit::Send(permit) => {
                    sent.push(permit.seq);
                    flow.on_sent(flow.now, permit, SIZE);
                }
                Transmit::WaitUntil(t) => _ = flow.advance(t),
                other => panic!("{other:?}"),
            }
        }
        let last = sent.pop().expect("ten");
        let vector = (1..=8).filter(|i| liar || sent.contains(&(last - i))).map(|i| 1 << (i - 1)).sum();
        tell(&mut flow, at(0.55), Message::SackVector(&sack(last, vector)));
        assert_eq!(flow.stopped(), liar.then_some(StopReason::PeerLied));
        assert_eq!(flow.counters().bad.skipped, u64::from(liar));
    }
}

#[test]
fn the_newest_ack_says_what_rwnd_is() {
    let mut flow = ten_sent();
    let window = |flow: &Flow| as_scheme::<Aimd>(flow.controller()).window();
    let with = |seq, rwnd| SackVector { rwnd, ..sack(seq, 0xFF) };
    flow.set_window_limit(at(0.1), Some(9));
    assert_eq!((flow.rwnd(), window(&flow)), (Some(9), 9.0));
    tell(&mut flow, at(0.55), Message::SackVector(&with(FIRST + 4, Some(6))));
    assert_eq!((flow.rwnd(), window(&flow)), (Some(6), 6.0));
    tell(&mut flow, at(0.55), Message::SackVector(&with(FIRST + 3, Some(20))));
    assert_eq!(flow.rwnd(), Some(6), "overtaken");
    tell(&mut flow, at(0.55), Message::SackVector(&with(FIRST + 4, Some(7))));
    assert_eq!(flow.rwnd(), Some(7), "the same number: the receiver has changed its mind");
    tell(&mut flow, at(0.56), Message::SackVector(&with(FIRST + 5, None)));
    assert_eq!(flow.rwnd(), Some(7), "nothing said");
    // The window is 6 or 7: nothing for the base station to burst.
    assert!((6.0..=7.0).contains(&window(&flow)));
}

/// The outstanding data at a loss is the load that the path bore, whatever the window has become since: half of 10 in
/// slow start. rwnd bounds the window beside it.
#[test]
fn a_loss_after_a_lowered_rwnd_leaves_the_share_of_what_is_outstanding_not_of_rwnd() {
    for (rwnd, cwnd) in [(9, 5.0), (4, 4.0), (0, 1.0)] {
        let mut flow = ten_sent();
        flow.set_window_limit(at(0.1), Some(rwnd));
        // FIRST is lost.
        tell(&mut flow, at(0.55), Message::SackVector(&sack(FIRST + 3, 0b11)));
        assert_eq!(flow.counters().data.lost, 1);
        let aimd: &Aimd = as_scheme(flow.controller());
        assert_eq!((aimd.cwnd(), aimd.ssthresh()), (cwnd, 5.0), "rwnd {rwnd}");
    }
}

/// The departures until `end`, in milliseconds: one list entry per wake-up.
fn wakes(scheme: (&str, &[(&str, &str)]), quantum: Duration, end: f64) -> Vec<(f64, usize)> {
    let env = paper();
    let mut flow = Flow::new(made(scheme.0, scheme.1, &env), FlowParams { quantum, ..FlowParams::new(&env) });
    flow.start(Instant::ZERO, Some(RTT));
    let (mut now, mut all) = (Instant::ZERO, Vec::new());
    while now < at(end) {
        let mut n = 0;
        now = loop {
            match flow.poll(now, true) {
                Transmit::Send(p) => {
                    flow.on_sent(now, p, SIZE);
                    n += 1;
                }
                Transmit::WaitUntil(t) => {
                    all.extend((n > 0).then_some((now.as_secs_f64() * 1e3, n)));
                    break t;
                }
                other => panic!("{other:?}"),
            }
        };
    }
    all
}

#[test]
fn a_quantum_takes_along_what_is_due_within_it_and_keeps_the_rate() {
    let fast: (&str, &[(&str, &str)]) = ("fixed", &[("rate", "8000 pkt/s")]);
    // One each 0.125 ms: at 0 those of 0 to 1 ms leave, nine; the tenth's time is 1.125 ms, and it takes along the next eight.
    let all = wakes(fast, Duration::from_millis(1), 0.9);
    assert_eq!(&all[..3], [(0.0, 9), (1.125, 9), (2.25, 9)]);
    assert!(all.iter().all(|(_, n)| *n == 9));
    // 0.9 s are 800 wake-ups of nine packets, and 7,200 without a quantum.
    assert_eq!((all.len(), wakes(fast, Duration::ZERO, 0.9).len()), (800, 7_200));
    // Packets further apart than the quantum leave as they would without.
    let slow: (&str, &[(&str, &str)]) = ("fixed", &[("rate", "999 pkt/s")]);
    assert_eq!(wakes(slow, Duration::from_millis(1), 2.0), wakes(slow, Duration::ZERO, 2.0));
    assert_ne!(wakes(slow, Duration::from_micros(1_002), 2.0), wakes(slow, Duration::ZERO, 2.0));
}

#[test]
fn the_cap_allows_a_quantum_and_not_more() {
    // Paced at four times what the cap allows: 2,000 packets/s, two per millisecond.
    let env = Env { safety: Safety::Default, max_rate: Rate::packets_per_second(2_000.0, SIZE), ..paper() };
    let quantum = Duration::from_millis(1);
    let mut flow = Flow::new(
        made("fixed", &[("rate", "8000 pkt/s")], &paper()),
        FlowParams { quantum, breaker: None, ..FlowParams::new(&env) },
    );
    flow.start(Instant::ZERO, Some(Duration::from_millis(1)));
    let (mut now, mut left) = (Instant::ZERO, Vec::new());
    while left.len() < 90 {
        match flow.poll(now, true) {
            Transmit::Send(p) => {
                flow.on_sent(now, p, SIZE);
                left.push(now.as_secs_f64() * 1e3);
            }
            Transmit::WaitUntil(t) => now = t,
            other => panic!("{other:?}"),
        }
    }
    // Three at once, those of 0, 0.5 and 1 ms; three 1.5 ms later (1 us of tolerance).
    assert!(left.chunks(3).enumerate().all(|(i, c)| c.iter().all(|t| (t - 1.5 * i as f64).abs() < 0.01)), "{left:?}");
}

#[test]
fn tfrc_sp_keeps_its_10_ms_whatever_the_quantum() {
    let with = |quantum| wakes(("tfrc-sp", &[]), quantum, 5.0);
    let all = with(Duration::from_millis(5));
    assert_eq!(all, with(Duration::ZERO));
    assert!(all.len() > 10 && all.iter().all(|(_, n)| *n == 1));
}

/// The departures of frames of ten packets, one each 100 ms: how long after its frame each packet left, in ms. RTT: 550 ms.
fn waits(scheme: (&str, &[(&str, &str)]), lead: Duration, frames: usize) -> Vec<f64> {
    let env = paper();
    let mut flow = Flow::new(made(scheme.0, scheme.1, &env), FlowParams { lead, ..FlowParams::new(&env) });
    flow.start(Instant::ZERO, Some(RTT));
    let (mut now, mut waiting, mut all) = (Instant::ZERO, VecDeque::new(), Vec::new());
    for frame in 1..=frames {
        let end = at(0.1 * frame as f64);
        waiting.extend([now; 10]);
        while now < end {
            match flow.poll(now, !waiting.is_empty()) {
                Transmit::Send(p) => {
                    flow.on_sent(now, p, SIZE);
                    all.extend(waiting.pop_front().map(|since: Instant| now.since(since).as_secs_f64() * 1e3));
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) => now = t.min(end),
                other => panic!("{other:?}"),
            }
        }
    }
    all
}

#[test]
fn with_a_lead_frames_leave_as_they_come_until_they_are_a_round_trip_ahead() {
    // 125 packets/s, one each 8 ms: a frame of ten takes 80 ms of its 100.
    let fixed: (&str, &[(&str, &str)]) = ("fixed", &[("rate", "125 pkt/s")]);
    let paced = waits(fixed, Duration::ZERO, 20);
    assert!(paced.chunks(10).all(|frame| frame.iter().enumerate().all(|(i, w)| (w - 8.0 * i as f64).abs() < 1e-3)));
    assert_eq!(waits(fixed, Duration::from_millis(500), 20), [0.0; 200]);
    // 50 packets/s, one each 20 ms: each frame is 100 ms more ahead, until the lead is used up. Packet k leaves at 20 k ms less the lead;
    // before the end of a second those up to k = 49, 59, 74; and 77 with the round trip of 550 ms, of a lead of a second.
    let slow: (&str, &[(&str, &str)]) = ("fixed", &[("rate", "50 pkt/s")]);
    let sent = |lead_ms| waits(slow, Duration::from_millis(lead_ms), 10).len();
    assert_eq!([0, 200, 500, 1_000].map(sent), [50, 60, 75, 78]);
}

#[test]
fn a_scheme_with_a_spacing_of_its_own_has_no_lead() {
    assert_eq!(waits(("tfrc-sp", &[]), Duration::from_millis(500), 20), waits(("tfrc-sp", &[]), Duration::ZERO, 20));
}

/// Fifteen seconds end every flow; until then, less and less leaves of all that give way. RCS and RAP have no rule of their own
/// for it.
#[test]
fn in_silence_every_flow_that_gives_way_slows_down_and_after_it_has_its_rate_again() {
    let schemes = acknowledged().filter(|scheme| made(scheme, &[], &real()).is_responsive());
    for (scheme, rtt) in schemes.flat_map(|s| [40, 550].map(|ms| (s, Duration::from_millis(ms)))) {
        let mut path = Path::new(made(scheme, &[], &real()), &real(), rtt);
        let mut n = 0_u64;
        let mut arrives = |_| {
            n += 1;
            !u64::is_multiple_of(n, 100)
        };
        path.run(at(20.0), &mut arrives);
        path.run(at(30.0), |_| false);
        let rate = |path: &Path, from: f64, to: f64| {
            let sent = [Kind::Data, Kind::Dummy].map(|kind| path.count(kind, at(from), at(to)));
            (sent[0] + sent[1]) as f64 / (to - from)
        };
        // Ten seconds are four halvings at 550 ms, and what was on its way is heard of first.
        let (before, after) = (rate(&path, 10.0, 20.0), rate(&path, 28.0, 30.0));
        assert!(after <= (before / 6.0).max(2.0), "{scheme} {rtt:?}: {before} to {after} a second");
        if ["rcs", "rap"].contains(&scheme) {
            assert!(after > 0.0, "{scheme} {rtt:?}: the end is noticed");
        }
        if path.run(at(60.0), &mut arrives).is_some() {
            // The gap of its own timeouts had grown until none was to end within 15 s.
            assert!(["srp", "crp", "mrp", "aimd"].contains(&scheme), "{scheme} {rtt:?}");
            continue;
        }
        let again = path.count(Kind::Data, at(50.0), at(60.0)) as f64 / 10.0;
        assert!(again > path.count(Kind::Data, at(10.0), at(20.0)) as f64 / 40.0, "{scheme} {rtt:?}: {again}");
    }
}
