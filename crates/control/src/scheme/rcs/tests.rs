//! RCS by hand: the paper's own numbers, each transition, each reading both ways.

use super::*;
use crate::facts::LossHow;
use crate::rtt::RttParams;
use crate::testing::{Packet, Path, SIZE, acknowledge, at, made, made_as, paper, settings};
use crate::{Flow, FlowParams, StopReason, Transmit, build};
use fairpace_units::{Class, Ecn};

const SRTT: f64 = 0.55;
const RTT: Duration = Duration::from_millis(550);

/// A controller alone, told things by hand.
struct Alone {
    rcs: Rcs,
    rtt: RttEstimator,
    now: Instant,
    seq: u64,
}

impl Alone {
    /// In Steady at `s` packets/s and 550 ms, just after Initial.
    fn steady(s: f64, pairs: &[(&str, &str)]) -> Alone {
        Alone::with(s, pairs, &paper())
    }

    fn with(s: f64, pairs: &[(&str, &str)], env: &Env) -> Alone {
        let rcs: Rcs = made_as("rcs", pairs, env);
        let mut rtt = RttEstimator::new(RttParams::default());
        rtt.update(RTT);
        let mut a = Alone { rcs, rtt, now: Instant::ZERO, seq: 0 };
        a.rcs.start(a.now, Some(RTT));
        a.timer();
        a.rcs.set_rate(s, "the test says so");
        a
    }

    /// Lets time pass to the next timer and runs it.
    fn timer(&mut self) {
        self.now = self.rcs.poll_timer();
        self.rcs.on_timer(self.now, &self.rtt);
    }

    fn ack(&mut self, kind: Kind) {
        self.ack_after(kind, RTT);
    }

    /// A packet is acknowledged after this round trip.
    fn ack_after(&mut self, kind: Kind, rtt: Duration) {
        let ack = Acked {
            late: false,
            kind,
            seq: 0,
            size: SIZE,
            sent_at: self.now,
            rtt: Some(rtt),
            ecn: Ecn::NotEct,
            arrived_at: None,
            outstanding: 0,
        };
        self.rcs.on_ack(self.now, &ack, &self.rtt);
    }

    /// The smoothed round trip comes to this.
    fn round_trips(&mut self, rtt: Duration) {
        for _ in 0..100 {
            self.rtt.update(rtt);
            self.ack_after(Kind::Data, rtt);
        }
    }

    fn acks(&mut self, kind: Kind, n: u32) {
        for _ in 0..n {
            self.ack(kind);
        }
    }

    fn send_data(&mut self, n: u64) {
        for _ in 0..n {
            let sent = Sent { kind: Kind::Data, class: Class::Normal, seq: self.seq, size: SIZE };
            self.rcs.on_sent(self.now, &sent);
            self.seq += 1;
        }
    }

    fn lose(&mut self, seq: u64) {
        let loss = Loss { seq, sent_at: self.now, highest_sent: self.seq, how: LossHow::LaterAcks };
        self.rcs.on_loss(self.now, &loss, &self.rtt);
    }

    fn state(&self) -> &'static str {
        self.rcs.state().name()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

// --- by hand: rates and wdsn ---------------------------------------------------------------------

/// S_0 = 7/s: S = 3.5, wdsn = round(0.55 · 3.5 = 1.925) = 2, dummies = floor(3.85) = 3. Two dummy
/// ACKs are swallowed, the third adds 1/0.55 = 1.818...: 5.318/s, within a packet per SRTT of S_0.
#[test]
fn at_7_packets_per_second_wdsn_swallows_two_dummy_acks() {
    let mut a = Alone::steady(7.0, &[]);
    a.lose(0);
    assert_eq!((a.state(), a.rcs.s(), a.rcs.wdsn()), ("Detected", 3.5, 2.0));
    a.ack(Kind::Data);
    a.timer();
    assert_eq!(a.state(), "Steady");
    for (wdsn, s) in [(1.0, 3.5), (0.0, 3.5), (0.0, 3.5 + 1.0 / SRTT)] {
        a.ack(Kind::Dummy);
        assert_eq!(a.rcs.wdsn(), wdsn);
        assert!(close(a.rcs.s(), s), "{} instead of {s}", a.rcs.s());
    }
    assert!(7.0 - a.rcs.s() < 1.0 / SRTT && a.rcs.s() <= 7.0);
}

/// S_0 = 40/0.55/s, a whole number of packets per SRTT: wdsn = 20 exactly, 40 dummies, and with
/// all of them acknowledged S is S_0 exactly [rcs equation (7)].
#[test]
fn all_dummy_acks_regain_exactly_s0() {
    let s0 = 40.0 / SRTT;
    let mut a = Alone::steady(s0, &[]);
    a.lose(0);
    assert_eq!(a.rcs.wdsn(), 20.0);
    let State::Detected { dummies_left, .. } = *a.rcs.state() else { panic!() };
    assert_eq!(dummies_left, 40);
    a.ack(Kind::Data);
    a.timer();
    a.acks(Kind::Dummy, 20);
    assert!(close(a.rcs.s(), s0 / 2.0), "the first half raises nothing");
    a.acks(Kind::Dummy, 20);
    assert!(close(a.rcs.s(), s0), "{} instead of {s0}", a.rcs.s());
}

/// S_0 = 100/s, SRTT = 0.91 s above a base of 0.55 s: 9 dummies instead of 90, none within 10/S = 0.2 s of another. Neither
/// without a queue, nor where the parameter or `safety = "paper"` says so.
#[test]
fn a_loss_while_a_queue_stands_gives_detected_a_tenth_of_its_dummies() {
    let queue = Duration::from_millis(910);
    let detected = |pairs: &[(&str, &str)], env: &Env, rtt: Duration| {
        let mut a = Alone::with(100.0, pairs, env);
        a.ack(Kind::Data);
        a.round_trips(rtt);
        a.lose(0);
        let State::Detected { dummies_left, .. } = *a.rcs.state() else { panic!() };
        (dummies_left, a.rcs.s(), a.rcs.dummy_gap(0.0))
    };
    let ignored = [("loss_with_queue", "ignore")];
    assert_eq!(detected(&[], &Env::default(), queue), (9, 50.0, 0.2));
    assert_eq!(detected(&[], &Env::default(), Duration::from_millis(565)), (56, 50.0, 0.0), "jitter is no queue");
    assert_eq!(detected(&ignored, &Env::default(), queue), (90, 50.0, 0.0));
    assert_eq!(detected(&[], &paper(), queue), (90, 50.0, 0.0));
}

/// The queue is asked anew at each loss.
#[test]
fn a_loss_after_the_queue_has_gone_has_all_its_dummies() {
    let mut a = Alone::with(100.0, &[], &Env::default());
    a.ack(Kind::Data);
    a.send_data(10);
    a.round_trips(Duration::from_millis(900));
    a.lose(0);
    a.timer();
    a.round_trips(RTT);
    a.send_data(10);
    let s0 = a.rcs.s();
    a.lose(15);
    let State::Detected { dummies_left, .. } = *a.rcs.state() else { panic!("{}", a.state()) };
    assert_eq!(dummies_left, formula::dummies_in_detected(SRTT, s0));
}

#[test]
fn initial_ends_after_two_srtt_at_what_was_acknowledged_and_wdsn_is_minus_one() {
    let rcs: Rcs = made_as("rcs", &[("s_target", "200 pkt/s")], &paper());
    let mut rtt = RttEstimator::new(RttParams::default());
    rtt.update(RTT);
    let mut a = Alone { rcs, rtt, now: Instant::ZERO, seq: 0 };
    a.rcs.start(a.now, Some(RTT));
    a.acks(Kind::Dummy, 66);
    a.ack(Kind::Data); // of an earlier life: not counted
    a.timer();
    assert_eq!((a.now, a.state(), a.rcs.wdsn()), (at(1.1), "Steady", -1.0));
    assert!(close(a.rcs.s(), 120.0), "66 / 0.55 = 120, not {}", a.rcs.s());
}

#[test]
fn the_timed_increase_adds_a_packet_per_srtt_each_srtt_up_to_s_target() {
    let mut a = Alone::steady(20.0, &[("s_target", "25 pkt/s")]);
    let t0 = a.now;
    for n in 1..=5 {
        a.timer();
        assert_eq!(a.now, t0 + RTT * n);
        // 20, 21.82, 23.64, then 25 and no more
        assert!(close(a.rcs.s(), (20.0 + f64::from(n) / SRTT).min(25.0)));
    }
}

#[test]
fn a_late_driver_gets_one_increase_and_not_all_it_missed() {
    let mut a = Alone::steady(20.0, &[]);
    a.now += Duration::from_secs(3_600);
    a.rcs.on_timer(a.now, &a.rtt);
    assert!(close(a.rcs.s(), 20.0 + 1.0 / SRTT));
    assert_eq!(a.rcs.poll_timer(), a.now + RTT);
}

// --- each transition -----------------------------------------------------------------------------

#[test]
fn detected_goes_to_steady_with_any_ack_and_to_backoff_without() {
    for kind in [Kind::Data, Kind::Dummy] {
        let mut a = Alone::steady(22.0, &[]);
        a.lose(0);
        let t0 = a.now;
        a.ack(kind);
        a.timer();
        assert_eq!((a.state(), a.now), ("Steady", t0 + RTT));
    }
    let mut a = Alone::steady(22.0, &[]);
    a.lose(0);
    a.timer();
    assert_eq!((a.state(), a.rcs.wdsn(), a.rcs.s()), ("Backoff", 0.0, 11.0));
}

#[test]
fn a_timeout_in_steady_is_a_loss() {
    let mut a = Alone::steady(22.0, &[]);
    a.rcs.on_timeout(a.now, &a.rtt);
    assert_eq!((a.state(), a.rcs.s()), ("Detected", 11.0));
    a.rcs.on_timeout(a.now, &a.rtt);
    a.timer();
    assert_eq!((a.state(), a.rcs.s()), ("Backoff", 11.0));
    a.rcs.on_timeout(a.now, &a.rtt);
    assert_eq!((a.state(), a.rcs.s()), ("Backoff", 11.0));
}

#[test]
fn any_ack_ends_backoff_at_the_rate_it_held() {
    let mut a = Alone::steady(22.0, &[]);
    a.lose(0);
    a.timer();
    a.ack(Kind::Dummy);
    assert_eq!((a.state(), a.rcs.s()), ("Steady", 11.0));
    // wdsn is 0, so each further dummy ACK counts at once.
    a.ack(Kind::Dummy);
    assert!(close(a.rcs.s(), 11.0 + 1.0 / SRTT));
}

#[test]
fn backoff_gives_up_after_t_b_and_probes_anew() {
    for (t_b, wait) in [("10 SRTT", 5.5), ("2 s", 2.0), ("1 SRTT", 0.55)] {
        let mut a = Alone::steady(22.0, &[("t_b", t_b)]);
        a.lose(0);
        a.timer();
        let t0 = a.now;
        a.timer();
        assert_eq!((a.state(), a.now), ("Initial", t0 + Duration::from_secs_f64(wait)), "{t_b}");
    }
    let mut a = Alone::steady(22.0, &[("t_b", "none")]);
    a.lose(0);
    a.timer();
    assert_eq!((a.state(), a.rcs.poll_timer()), ("Backoff", Instant::NEVER));
}

#[test]
fn without_backoff_a_silent_detected_phase_goes_back_to_steady() {
    let mut a = Alone::steady(22.0, &[("backoff", "off")]);
    a.lose(0);
    a.timer();
    assert_eq!(a.state(), "Steady");
    a.rcs.on_timeout(a.now, &a.rtt);
    assert_eq!((a.state(), a.rcs.s()), ("Detected", 5.5));
}

#[test]
fn dummies_of_an_earlier_backoff_do_not_count_as_initials() {
    let mut a = Alone::steady(22.0, &[]);
    a.lose(0);
    a.timer();
    let in_backoff = a.now;
    a.timer();
    assert_eq!(a.state(), "Initial");
    let ack = Acked {
        late: false,
        kind: Kind::Dummy,
        seq: 0,
        size: SIZE,
        sent_at: in_backoff,
        rtt: None,
        ecn: Ecn::NotEct,
        arrived_at: None,
        outstanding: 0,
    };
    for _ in 0..50 {
        a.rcs.on_ack(a.now, &ack, &a.rtt);
    }
    a.timer();
    assert!(close(a.rcs.s(), 1.0 / SRTT), "max(1, 0) / 0.55, not {}", a.rcs.s());
}

#[test]
#[should_panic(expected = "RCS may not go from Steady to Backoff")]
fn an_illegal_step_is_our_own_bug_and_says_so() {
    let mut a = Alone::steady(22.0, &[]);
    let never = State::Backoff { until: a.now, next_halving: a.now, halve_every: RTT };
    a.rcs.enter(never, "never");
}

// --- traps and readings --------------------------------------------------------------------------

/// The figure tests `== 0`, so -1 only counts down; the text raises S at every late dummy ACK.
#[test]
fn late_dummy_acks_of_initial_raise_nothing_by_the_figure_and_ramp_by_the_text() {
    let mut figure = Alone::steady(22.0, &[]);
    figure.acks(Kind::Dummy, 1_000);
    assert_eq!((figure.rcs.s(), figure.rcs.wdsn()), (22.0, -1_001.0));
    let mut text = Alone::steady(22.0, &[("wdsn_test", "text")]);
    text.acks(Kind::Dummy, 10);
    assert!(close(text.rcs.s(), 22.0 + 10.0 / SRTT));
    // After a loss both swallow the same number, and the guard is gone.
    for a in [&mut figure, &mut text] {
        a.rcs.s = 22.0;
        a.lose(0);
        a.ack(Kind::Data);
        a.timer();
        a.acks(Kind::Dummy, 6);
        assert!(close(a.rcs.s(), 11.0));
        a.ack(Kind::Dummy);
        assert!(close(a.rcs.s(), 11.0 + 1.0 / SRTT));
    }
}

/// 1.925 goes to 0.925, -0.075, ...: never zero, so the scheme is plain AIMD.
#[test]
fn a_fractional_wdsn_never_lets_a_dummy_ack_raise_s() {
    let mut a = Alone::steady(7.0, &[("wdsn_rounding", "exact")]);
    a.lose(0);
    a.ack(Kind::Data);
    a.timer();
    a.acks(Kind::Dummy, 1_000);
    assert_eq!(a.rcs.s(), 3.5);
}

/// 0.55 · 11 = 6.05: six, seven and six.
#[test]
fn rounding_up_swallows_one_dummy_ack_more() {
    for (rounding, swallowed) in [("nearest", 6), ("up", 7), ("down", 6)] {
        let mut a = Alone::steady(22.0, &[("wdsn_rounding", rounding)]);
        a.lose(0);
        a.ack(Kind::Data);
        a.timer();
        a.acks(Kind::Dummy, swallowed);
        assert_eq!(a.rcs.s(), 11.0, "{rounding}");
        a.ack(Kind::Dummy);
        assert!(a.rcs.s() > 11.0, "{rounding}");
    }
}

/// The loops of Figs. 3 to 5 as printed send and raise at every pass.
#[test]
fn polling_a_thousand_times_sends_one_packet_and_raises_nothing() {
    let mut a = Alone::steady(22.0, &[]);
    a.lose(0);
    for phase in ["Detected", "Backoff"] {
        assert_eq!(a.state(), phase);
        let (s, mut data) = (a.rcs.s(), 0);
        for _ in 0..1_000 {
            if a.rcs.poll_send(a.now, true) == SendPoll::Send(Kind::Data) {
                a.send_data(1);
                data += 1;
            }
        }
        assert_eq!((data, a.rcs.s()), (1, s), "{phase}");
        if phase == "Detected" {
            a.timer();
        }
    }
}

#[test]
fn losses_in_detected_and_of_older_packets_are_one_event_unless_told_otherwise() {
    let cut = |pairs: &[(&str, &str)]| {
        let mut a = Alone::steady(22.0, pairs);
        a.send_data(20); // 0 to 19
        a.lose(3);
        a.lose(5); // in Detected
        let in_detected = a.rcs.s();
        a.send_data(10); // 20 to 29
        a.ack(Kind::Data);
        a.timer();
        a.lose(19); // sent before Detected
        let old = a.rcs.s();
        if a.state() == "Steady" {
            a.lose(20); // sent in Detected
        }
        (in_detected, old, a.rcs.s())
    };
    assert_eq!(cut(&[]), (11.0, 11.0, 5.5));
    assert_eq!(cut(&[("old_losses", "count")]), (11.0, 5.5, 5.5));
    assert_eq!(cut(&[("loss_in_detected", "restart")]).0, 11.0); // 5 was sent before the phase
    assert_eq!(cut(&[("loss_in_detected", "restart"), ("old_losses", "count")]).0, 5.5);
}

#[test]
fn the_gap_a_blackout_leaves_is_no_new_loss_unless_told_otherwise() {
    for (gap, s) in [("ignore", 11.0), ("count", 5.5)] {
        let mut a = Alone::steady(22.0, &[("gap_after_backoff", gap)]);
        a.send_data(20);
        a.lose(3);
        a.timer();
        a.send_data(10); // 20 to 29, in Backoff
        a.ack(Kind::Data);
        assert_eq!(a.state(), "Steady");
        a.lose(25);
        assert_eq!(a.rcs.s(), s, "{gap}");
    }
}

#[test]
fn dummy_acks_in_detected_count_only_if_told_to() {
    for (choice, wdsn) in [("ignore", 6.0), ("count", 2.0)] {
        let mut a = Alone::steady(22.0, &[("dummy_acks_in_detected", choice)]);
        a.lose(0);
        a.acks(Kind::Dummy, 4);
        assert_eq!(a.rcs.wdsn(), wdsn, "{choice}");
    }
}

#[test]
fn each_increase_can_be_had_alone() {
    for (increase, timed, dummy) in [("both", true, true), ("timed", true, false), ("dummy", false, true)] {
        let mut a = Alone::steady(22.0, &[("increase", increase)]);
        a.rcs.wdsn = 0.0;
        a.ack(Kind::Dummy);
        assert_eq!(a.rcs.s() > 22.0, dummy, "{increase}");
        a.rcs.s = 22.0;
        a.timer();
        assert_eq!(a.rcs.s() > 22.0, timed, "{increase}");
    }
}

// --- on a path -----------------------------------------------------------------------------------

/// In Steady near 22/s (12 dummies of Initial get through: 12 / 0.55 = 21.8), as Figs. 12 to 16.
fn on_a_path(pairs: &[(&str, &str)]) -> Path {
    let mut pairs = pairs.to_vec();
    pairs.push(("s_target", "200 pkt/s"));
    let env = paper();
    let mut path = Path::new(made("rcs", &pairs, &env), &env, RTT);
    path.run(at(1.2), |p| p.kind == Kind::Data || p.seq < 12);
    assert_eq!((path.flow.status().state, path.pps().round()), ("Steady", 22.0));
    path
}

#[test]
fn initial_sends_one_srtt_of_dummies_and_no_data() {
    let path = on_a_path(&[]);
    // at 5, 10, ..., 550 ms
    assert_eq!(path.count(Kind::Dummy, Instant::ZERO, at(1.1)), 110);
    assert_eq!(path.sent[0].at, at(0.005));
    assert!(path.sent.iter().filter(|p| p.kind == Kind::Dummy).all(|p| p.at <= at(0.55)));
    assert_eq!(path.sent.iter().find(|p| p.kind == Kind::Data).map(|p| p.at), Some(at(1.1)));
}

/// `rcs.fig12`: S_0/2 while Detected lasts, at least 0.95 S_0 two SRTT later (and a tenth).
#[test]
fn a_link_error_halves_s_and_two_srtt_later_it_is_back() {
    let mut path = on_a_path(&[]);
    let lost = 10;
    path.run(at(2.4), |p| p.kind == Kind::Dummy || p.seq != lost);
    let t0 = path.trace.iter().find(|(_, _, s)| *s == "Detected").expect("detected").0;
    let s0 = path.trace.iter().rev().find(|(t, _, _)| *t < t0).expect("before").1;
    path.run(at(t0 + 0.55 * 2.2), |_| true);
    let of = |state| path.trace.iter().filter(move |(t, _, s)| *s == state && *t >= t0);
    assert!(of("Detected").all(|(_, r, _)| close(*r, s0 / 2.0)));
    assert_eq!(of("Backoff").count(), 0);
    let s = path.pps();
    // No dummy brings more than S_0; the timed increase acts as well: two packets per SRTT at most.
    assert!(s >= 0.95 * s0 && s <= s0 + 2.01 / SRTT, "{s} against {s0}");
    // SRTT · S_0 dummies and half as many data packets.
    let (from, to) = (at(t0), at(t0) + RTT);
    let expected = (s0 * SRTT + 1e-6).floor(); // s0 went through bits per second
    assert_eq!(path.count(Kind::Dummy, from, to) as f64, expected);
    assert!((path.count(Kind::Data, from, to) as f64 - s0 / 2.0 * SRTT).abs() <= 1.0);
}

/// `rcs.fig14`: the path takes S_0, so of the dummies only the first half's worth gets through:
/// every other one is dropped, and S stays at S_0/2 but for the timed increase.
#[test]
fn congestion_keeps_s_at_half_plus_one_packet_per_srtt_each_srtt() {
    let mut path = on_a_path(&[]);
    path.run(at(2.4), |p| p.kind == Kind::Dummy && p.seq % 2 == 0 || p.kind == Kind::Data && p.seq != 10);
    let t0 = path.trace.iter().find(|(_, _, s)| *s == "Detected").expect("detected").0;
    let half = path.trace.iter().find(|(t, _, s)| *t == t0 && *s == "Detected").expect("halved").1;
    path.run(at(t0 + 0.55 * 6.5), |p| p.kind == Kind::Data || p.seq % 2 == 0);
    let rates: Vec<f64> = path.trace.iter().filter(|(t, _, s)| *t > t0 && *s == "Steady").map(|(_, r, _)| *r).collect();
    assert_eq!(rates.len(), 6, "one step each SRTT: {rates:?}"); // Steady itself, then five steps
    for (n, rate) in rates.iter().enumerate() {
        assert!(close(*rate, half + n as f64 / SRTT), "step {n}: {rate}");
    }
}

/// ACKs of dummies are low priority as well: where the way back is full of other traffic none
/// returns, and RCS is no faster than its timed increase, but no slower either.
#[test]
fn a_full_way_back_starves_the_recovery_and_not_the_timed_increase() {
    let mut path = on_a_path(&[]);
    path.run(at(2.4), |p| p.kind == Kind::Data && p.seq != 10);
    let t0 = path.trace.iter().find(|(_, _, s)| *s == "Detected").expect("detected").0;
    let half = path.trace.iter().find(|(t, _, s)| *t == t0 && *s == "Detected").expect("halved").1;
    path.run(at(t0 + 0.55 * 10.5), |p| p.kind == Kind::Data);
    assert!(close(path.pps(), half + 9.0 / SRTT), "{} after nine steps from {half}", path.pps());
}

/// `rcs.fig16`: a loss, then two SRTT without signal in either direction: one halving, Backoff,
/// and S_0 again one SRTT after the first ACK.
#[test]
fn a_blackout_halves_s_once_and_s0_is_back_an_srtt_after_the_first_ack() {
    let mut path = on_a_path(&[]);
    path.run(at(2.4), |p| p.kind == Kind::Dummy || p.seq != 10);
    let t0 = path.trace.iter().find(|(_, _, s)| *s == "Detected").expect("detected").0;
    let s0 = path.trace.iter().rev().find(|(t, _, _)| *t < t0).expect("before").1;
    // Run again: what is in flight when the signal goes, and what is sent until it is back, is lost.
    let (gone, back) = (at(t0), at(t0) + RTT * 2);
    let mut path = on_a_path(&[]);
    let signal = |p: Packet| p.at + RTT <= gone || p.at >= back;
    path.run(at(t0 + 0.55 * 4.2), |p| signal(p) && (p.kind == Kind::Dummy || p.seq != 10));
    let states: Vec<&str> = path.trace.iter().filter(|(t, _, _)| *t >= t0).map(|(_, _, s)| *s).collect();
    let mut order = states.clone();
    order.dedup();
    assert_eq!(order, ["Detected", "Backoff", "Steady"]);
    // Backoff: data and dummies alike at S, half a gap apart.
    let backoff = path.trace.iter().find(|(_, _, s)| *s == "Backoff").expect("Backoff").0;
    let ipg = 2.0 / s0;
    let dummies: Vec<f64> = path
        .sent
        .iter()
        .filter(|p| p.kind == Kind::Dummy && p.at > at(backoff))
        .map(|p| (p.at.as_secs_f64() - backoff) / ipg)
        .collect();
    assert!(dummies.len() >= 10);
    assert!(dummies.iter().enumerate().all(|(n, t)| (t - n as f64 - 0.5).abs() < 1e-6), "{dummies:?}");
    let least = path.trace.iter().filter(|(t, _, _)| *t >= t0).map(|(_, r, _)| *r).fold(f64::INFINITY, f64::min);
    assert!(close(least, s0 / 2.0), "one halving: {least} of {s0}");
    let s = path.pps();
    assert!(s >= 0.9 * s0 && s <= 1.1 * s0, "{s} against {s0}");
}

// --- fit for a real network ----------------------------------------------------------------------

fn real() -> Env {
    Env { safety: Safety::Default, max_rate: Rate::packets_per_second(2_000.0, SIZE), ..paper() }
}

#[test]
fn initial_sends_at_most_a_thousand_dummies() {
    let long = Duration::from_secs(3);
    for (env, dummies) in [(real(), 1_000), (Env { safety: Safety::Paper, ..real() }, 6_000)] {
        let mut path = Path::new(made("rcs", &[], &env), &env, long);
        path.run(at(5.9), |_| true);
        assert_eq!(path.count(Kind::Dummy, Instant::ZERO, at(5.9)), dummies);
    }
}

#[test]
fn backoff_halves_s_four_times_and_ends_by_15_s() {
    for (t_b, seconds) in [("none", 15.0), ("20 s", 15.0), ("10 SRTT", 5.5)] {
        let mut a = Alone::with(64.0, &[("t_b", t_b)], &real());
        a.lose(0);
        a.timer();
        let t0 = a.now;
        let mut rates = vec![a.rcs.s()];
        while a.state() == "Backoff" {
            a.timer();
            rates.push(a.rcs.s());
        }
        assert_eq!((a.now, a.state()), (t0 + Duration::from_secs_f64(seconds), "Initial"));
        assert_eq!(rates, [32.0, 16.0, 8.0, 4.0, 4.0], "{t_b}");
    }
}

/// 60 s on a dead path: the paper's rule sends S data and S dummies all the time.
#[test]
fn a_dead_path_is_sent_a_quarter_of_what_the_paper_sends() {
    let sent = |safety, t_b| {
        let env = Env { safety, ..real() };
        let settings = settings(&[("s_target", "200 pkt/s"), ("t_b", t_b)]);
        let params = FlowParams { breaker: None, ..FlowParams::new(&env) };
        let mut path = Path::new(build("rcs", &settings, &env).unwrap(), &env, RTT);
        path.flow = Flow::new(build("rcs", &settings, &env).unwrap(), params);
        path.flow.start(Instant::ZERO, Some(RTT));
        path.run(at(10.0), |p| p.at < at(9.0));
        path.run(at(70.0), |_| false);
        path.sent.iter().filter(|p| p.at >= at(10.0)).count() as f64
    };
    let (naive, ours) = (sent(Safety::Paper, "none"), sent(Safety::Default, "10 SRTT"));
    assert!(ours > 0.0 && ours <= 0.25 * naive, "{ours} of {naive}");
}

#[test]
fn the_breaker_ends_a_dead_path_within_15_s_and_an_rtt() {
    let mut path = Path::new(made("rcs", &[("s_target", "200 pkt/s")], &real()), &real(), RTT);
    path.run(at(30.0), |_| true);
    let reason = path.run(at(60.0), |p| p.at < at(30.0));
    assert_eq!(reason, Some(StopReason::FeedbackTimeout { after: Duration::from_secs(15) }));
    assert!(path.now <= at(30.0) + RTT + Duration::from_millis(15_001), "{}", path.now);
}

#[test]
fn limited_dummies_are_a_tenth_of_the_data() {
    let env = real();
    let mut path = Path::new(made("rcs", &[("s_target", "200 pkt/s")], &env), &env, RTT);
    path.flow.set_dummies_limited(true);
    let every_100th = |p: Packet| p.kind == Kind::Dummy || p.seq % 100 != 99;
    path.run(at(60.0), every_100th);
    let (data, dummies) =
        (path.count(Kind::Data, at(2.0), at(60.0)) as f64, path.count(Kind::Dummy, at(2.0), at(60.0)) as f64);
    assert!(dummies > 0.0 && dummies <= 0.1 * data + 1.0, "{dummies} to {data}");
    // Initial: 0.55 s at 20/s
    assert_eq!(path.count(Kind::Dummy, Instant::ZERO, at(1.1)), 11);
}

#[test]
fn a_source_that_uses_less_than_half_of_s_does_not_grow_it() {
    let mut a = Alone::with(22.0, &[], &real());
    a.send_data(6); // of 12.1
    a.timer();
    assert!(close(a.rcs.s(), 22.0));
    a.send_data(7);
    a.timer();
    assert!(close(a.rcs.s(), 22.0 + 1.0 / SRTT));
    let mut paper = Alone::steady(22.0, &[]);
    paper.timer();
    assert!(close(paper.rcs.s(), 22.0 + 1.0 / SRTT));
}

#[test]
fn without_an_rtt_it_asks_every_three_seconds_and_then_begins() {
    let env = paper();
    let mut flow = Flow::new(made("rcs", &[("s_target", "200 pkt/s")], &env), FlowParams::new(&env));
    flow.start(Instant::ZERO, None);
    let mut times = Vec::new();
    let mut now = Instant::ZERO;
    while now < at(7.0) {
        match flow.poll(now, true) {
            Transmit::Send(p) => {
                assert_eq!(p.kind, Kind::Dummy);
                times.push(now.as_secs_f64());
                flow.on_sent(now, p, SIZE);
            }
            Transmit::WaitUntil(t) => now = t,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(times, [0.0, 3.0, 6.0]);
    acknowledge(&mut flow, at(7.0), &[crate::Ack::immediate(Kind::Dummy, 2)]);
    assert_eq!(flow.srtt(), Some(Duration::from_secs(1)));
    assert_eq!(flow.poll(at(7.0), true), Transmit::WaitUntil(at(7.005)));
}

#[test]
fn demand_is_an_s_target() {
    let mut a = Alone::steady(22.0, &[]);
    a.rcs.set_demand(a.now, Some(Rate::packets_per_second(10.0, SIZE)));
    assert!(close(a.rcs.s(), 10.0));
    a.timer();
    assert!(close(a.rcs.s(), 10.0));
    a.rcs.set_demand(a.now, None);
    a.timer();
    assert!(close(a.rcs.s(), 10.0 + 1.0 / SRTT));
}

#[test]
fn short_packets_take_their_share_of_the_schedule() {
    let mut a = Alone::steady(10.0, &[]);
    let t0 = a.now;
    assert_eq!(a.rcs.poll_send(t0, true), SendPoll::Send(Kind::Data));
    let quarter = Sent { kind: Kind::Data, class: Class::Normal, seq: 0, size: Bytes::new(250) };
    a.rcs.on_sent(t0, &quarter);
    assert_eq!(a.rcs.poll_send(t0, true), SendPoll::Wait(t0 + Duration::from_millis(25)));
}

#[test]
fn every_bad_setting_names_the_field_and_what_is_allowed() {
    for info in INFO.params {
        for bad in ["", "-1", "nan", "inf", "1e308", "bogus", "٣", "0 s", "-0.0"] {
            let result = build("rcs", &settings(&[(info.name, bad)]), &real());
            let error = match result {
                Err(e) => e,
                Ok(_) => panic!("`{}` accepts `{bad}`", info.name),
            };
            assert_eq!(error.field(), Some(info.name));
            assert!(error.to_string().contains(info.name), "{error}");
        }
    }
}

/// Initial probes at S_Target: without one, dummies would leave without a gap, and no run would end.
#[test]
fn without_a_highest_rate_a_target_is_asked_for() {
    let unbounded = Env { max_rate: Rate::MAX, ..paper() };
    let error = build("rcs", &settings(&[]), &unbounded).expect_err("no bound").to_string();
    assert_eq!(error, "`rcs.s_target` is `max`; allowed is a rate, or a `max_rate` of the flow");
    build("rcs", &settings(&[("s_target", "1 Mbit/s")]), &unbounded).expect("a target");
}

/// After a loss at the highest rate Detected would send half of S as data and as much as S as dummies beside.
#[test]
fn dummies_and_data_together_stay_within_the_cap() {
    let env = Env { max_rate: Rate::packets_per_second(200.0, SIZE), ..real() };
    let mut path = Path::new(made("rcs", &[("s_target", "200 pkt/s")], &env), &env, RTT);
    path.run(at(30.0), |_| true);
    path.run(at(32.0), |p| p.seq % 100 != 99);
    let sent =
        |from: f64, to: f64| path.count(Kind::Data, at(from), at(to)) + path.count(Kind::Dummy, at(from), at(to));
    assert!(sent(29.0, 30.0) >= 190, "at the cap before: {}", sent(29.0, 30.0));
    assert!(path.count(Kind::Dummy, at(30.0), at(33.0)) > 0, "and losses bring dummies");
    for n in 0..10 {
        let from = 30.0 + 0.2 * f64::from(n);
        assert!(sent(from, from + 0.5) <= 101 + 1, "{} in half a second from {from} on", sent(from, from + 0.5));
    }
}
