//! SRP, CRP and MRP by hand.

use super::*;
use crate::testing::{Path, SIZE, at, made, made_as, paper, settings};
use crate::{LossHow, build};
use fairpace_units::{Class, Kind};

const RTT: Duration = Duration::from_millis(500);
const SCHEMES: [&str; 3] = ["srp", "crp", "mrp"];

/// One of them alone, told things by hand; RTT 0.5 s, so that one packet per round is 2 packets/s. A
/// packet leaves every 100 ms: losses more than five apart are two indications.
struct Alone {
    rbp: Rbp,
    rtt: RttEstimator,
    now: Instant,
    seq: u64,
}

impl Alone {
    fn new(scheme: &str, pairs: &[(&str, &str)]) -> Alone {
        let mut rbp: Rbp = made_as(scheme, pairs, &paper());
        let mut rtt = RttEstimator::new(rbp.loss_policy().rtt);
        rtt.update(RTT);
        rbp.start(Instant::ZERO, Some(RTT));
        Alone { rbp, rtt, now: Instant::ZERO, seq: 0 }
    }

    /// With `n` packets acknowledged but for those of `lost`, over the run, and S as given.
    fn after(scheme: &str, n: u64, lost: &[u64], pps: f64) -> Alone {
        let mut a = Alone::new(scheme, &[("p_over", "run")]);
        for seq in 0..n {
            a.send();
            if lost.contains(&seq) { a.lose(seq) } else { a.ack(seq, RTT) }
        }
        a.rbp.pps = pps;
        a
    }

    fn send(&mut self) {
        let sent = Sent { kind: Kind::Data, class: Class::Normal, seq: self.seq, size: SIZE };
        self.rbp.on_sent(self.now, &sent);
        self.seq += 1;
    }

    fn ack_with(&mut self, seq: u64, rtt: Duration, ecn: Ecn) {
        self.rtt.update(rtt);
        let sent_at = at(seq as f64 / 10.0);
        let ack = Acked {
            kind: Kind::Data,
            seq,
            size: SIZE,
            sent_at,
            late: false,
            rtt: Some(rtt),
            ecn,
            arrived_at: None,
            outstanding: 0,
        };
        self.rbp.on_ack(self.now, &ack, &self.rtt);
    }

    fn ack(&mut self, seq: u64, rtt: Duration) {
        self.ack_with(seq, rtt, Ecn::NotEct);
    }

    fn lose(&mut self, seq: u64) {
        let sent_at = at(seq as f64 / 10.0);
        let loss = Loss { seq, sent_at, highest_sent: self.seq - 1, how: LossHow::LaterAcks };
        self.rbp.on_loss(self.now, &loss, &self.rtt);
    }

    fn timer(&mut self) {
        self.now = self.rbp.poll_timer();
        self.rbp.on_timer(self.now, &self.rtt);
    }

    /// A round in which `n` packets were sent and acknowledged.
    fn round(&mut self, n: u64) {
        for _ in 0..n {
            self.send();
            self.ack(self.seq - 1, RTT);
        }
        self.timer();
    }

    fn pps_is(&self, expected: f64) {
        assert!((self.rbp.pps - expected).abs() < 1e-3, "{}, not {expected}: {}", self.rbp.pps, self.rbp.reason);
    }

    fn p_is(&self, expected: f64) {
        let p = self.rbp.status().p.expect("it has one");
        assert!((p - expected).abs() < 1e-12, "p = {p}, not {expected}");
    }
}

#[test]
fn it_begins_with_one_packet_per_rtt_and_adds_one_per_round() {
    for scheme in SCHEMES {
        let mut a = Alone::new(scheme, &[]);
        a.pps_is(2.0);
        for n in 1..=20_u32 {
            a.round(u64::from(n));
            assert_eq!(a.now, Instant::ZERO + RTT * n);
            a.pps_is(2.0 * f64::from(n + 1));
        }
    }
}

/// Three indications in 50 packets: p = 0.06, R sqrt(2p/3) = 0.5 · 0.2 = 0.1 s. RTTVAR = 0.25 · 0.75^n is
/// next to nothing, so RTO = 0.51 s, and the timeouts' term is 0.51 · 0.45 · 0.06 · 1.1152 = 0.015356 s for
/// the complex equation. For the modified one w = 6.667 and P(Q) = 1.94 · 0.06^3.667 / (2 · 0.33799).
#[test]
fn above_the_equation_it_comes_down_to_it_at_the_end_of_the_round() {
    let p_q = 1.94 * 0.06_f64.powf(20.0 / 3.0 - 3.0) / (2.0 * (1.0 - 0.94_f64.powf(20.0 / 3.0)));
    for (scheme, expected) in
        [("srp", 1.0 / 0.1), ("crp", 1.0 / (0.1 + 0.015_356)), ("mrp", 1.0 / (0.1 + 0.51 * p_q * 0.06 * 1.115_2))]
    {
        let mut a = Alone::after(scheme, 50, &[10, 20, 30], 40.0);
        a.pps_is(40.0);
        a.timer();
        a.pps_is(expected);
        a.p_is(0.06);
        assert_eq!(a.rbp.status().state, "AtEquation");
    }
}

#[test]
fn below_the_equation_a_round_with_a_loss_holds_and_one_without_adds_a_packet_up_to_it() {
    // 100 packets, 6 indications: X = 10/s as above
    let mut a = Alone::after("srp", 100, &[10, 20, 30, 40, 50, 60], 7.0);
    a.timer();
    a.pps_is(7.0);
    assert_eq!(a.rbp.reason, "increase withheld: loss");
    a.round(4);
    a.pps_is(9.0);
    // p = 6/109: 2 sqrt(1.5 · 109/6) = 10.44
    a.round(5);
    a.pps_is(2.0 * (1.5 * 109.0 / 6.0_f64).sqrt());
}

#[test]
fn a_round_without_any_acknowledgement_goes_on() {
    let mut a = Alone::new("crp", &[]);
    a.send();
    a.timer();
    a.timer();
    a.pps_is(2.0);
    assert_eq!(a.rbp.reason, "increase withheld: nothing acknowledged");
    // one sent of three permitted
    a.ack(0, RTT);
    a.timer();
    a.pps_is(2.0);
    assert_eq!(a.rbp.reason, "increase withheld: too little sent");
    a.round(1);
    a.pps_is(4.0);
}

#[test]
fn a_longer_rtt_brings_it_down_without_any_loss() {
    let mut a = Alone::after("srp", 50, &[10, 20, 30], 10.0);
    a.timer();
    a.pps_is(10.0);
    for seq in 50..100 {
        a.send();
        a.ack(seq, RTT * 2);
    }
    a.timer();
    // p = 0.03, SRTT = 1 - 0.5 · (7/8)^50 = 0.99937 s: 1 / (0.99937 · sqrt(0.02))
    a.pps_is(1.0 / (0.02_f64.sqrt() * (1.0 - 0.5 * 0.875_f64.powi(50))));
}

#[test]
fn a_timeout_halves_and_those_that_follow_halve_again_but_are_no_new_indication() {
    let mut a = Alone::after("mrp", 99, &[], 16.0);
    a.send();
    a.now = at(9.9);
    a.rbp.on_timeout(a.now, &a.rtt);
    // p = 1/100, X = 2 sqrt(150) = 24.5
    a.pps_is(8.0);
    assert_eq!((a.rbp.status().state, a.rbp.poll_timer()), ("TimedOut", at(9.9) + RTT));
    for _ in 0..2 {
        a.now += Duration::from_secs(1);
        a.send();
        a.rbp.on_timeout(a.now, &a.rtt);
    }
    a.pps_is(2.0);
    a.p_is(1.0 / 102.0);
    a.send();
    a.ack(102, RTT);
    assert_eq!(a.rbp.status().state, "Below");
}

/// p = 0.06: SRP's equation gives 10/s, less than half of 40.
#[test]
fn a_timeout_goes_down_to_the_equation_if_that_is_less_than_half() {
    let mut a = Alone::after("srp", 49, &[10, 20], 40.0);
    a.now = at(4.9);
    a.send();
    a.rbp.on_timeout(a.now, &a.rtt);
    a.pps_is(10.0);
}

#[test]
fn a_timeout_begins_a_new_round_and_its_losses_do_not_hold_the_next_one() {
    let mut a = Alone::after("srp", 100, &[60], 8.0);
    a.rbp.on_timeout(a.now, &a.rtt);
    a.pps_is(4.0);
    a.round(2);
    a.pps_is(6.0);
}

/// b = 2: R sqrt(2bp/3) = 0.5 · 0.28284, 3 sqrt(3bp/8) = 0.63640. RTO = 1 s: 0.6364 · 0.06 · 1.1152 = 0.042582.
#[test]
fn b_and_the_least_timeout_enter_the_equation() {
    let mut a = Alone::new("crp", &[("p_over", "run"), ("b", "2"), ("min_rto", "1 s")]);
    for seq in 0..50 {
        a.send();
        if [10, 20, 30].contains(&seq) { a.lose(seq) } else { a.ack(seq, RTT) }
    }
    a.rbp.pps = 40.0;
    a.timer();
    a.pps_is(1.0 / (0.5 * 0.08_f64.sqrt() + 0.042_582));
    assert_eq!(a.rbp.loss_policy().rto.min, Duration::from_secs(1));
}

/// SRTT = 7/8 · 0.5 + 1/8 · 0.9 = 0.55 s.
#[test]
fn the_step_and_the_round_are_an_srtt_as_it_is_now() {
    let mut a = Alone::new("mrp", &[]);
    a.send();
    a.ack(0, Duration::from_millis(900));
    a.timer();
    a.pps_is(2.0 + 1.0 / 0.55);
    assert_eq!(a.rbp.poll_timer(), at(0.5 + 0.55));
}

#[test]
fn a_short_packet_is_a_part_of_one_in_the_schedule_and_in_what_was_sent() {
    let mut a = Alone::new("srp", &[]);
    a.rbp.pps = 10.0;
    // of five permitted, ten quarters
    for n in 0..9 {
        a.rbp.on_sent(a.now, &Sent { kind: Kind::Data, class: Class::Normal, seq: n, size: Bytes::new(250) });
    }
    assert_eq!(a.rbp.poll_send(a.now, true), SendPoll::Wait(at(9.0 * 0.025)));
    a.ack(0, RTT);
    a.timer();
    assert_eq!(a.rbp.reason, "increase withheld: too little sent");
    for n in 9..19 {
        a.rbp.on_sent(a.now, &Sent { kind: Kind::Data, class: Class::Normal, seq: n, size: Bytes::new(250) });
    }
    a.ack(9, RTT);
    a.timer();
    a.pps_is(12.0);
}

#[test]
fn a_mark_is_a_loss_if_it_heeds_marks_and_nothing_otherwise() {
    for (flag, p) in [("on", 1.0 / 60.0), ("off", 0.0)] {
        let mut a = Alone::new("crp", &[("p_over", "run"), ("ecn", flag)]);
        for seq in 0..60 {
            a.send();
            a.ack_with(seq, RTT, if seq == 40 { Ecn::Ce } else { Ecn::Ect0 });
        }
        a.p_is(p);
        assert_eq!(a.rbp.heeds_ecn(), flag == "on");
        a.timer();
        a.pps_is(if flag == "on" { 2.0 } else { 4.0 });
    }
}

/// One loss among five packets is p = 1/5; the next round knows no p, so nothing bounds it.
#[test]
fn over_the_round_a_loss_stops_it_nearly_and_the_next_round_lifts_the_bound() {
    let mut a = Alone::new("srp", &[("p_over", "round")]);
    a.rbp.pps = 12.0;
    for seq in 0..5 {
        a.send();
        if seq == 1 { a.lose(seq) } else { a.ack(seq, RTT) }
    }
    a.timer();
    a.pps_is(2.0 * (1.5 * 5.0_f64).sqrt());
    a.round(3);
    a.pps_is(2.0 * (1.5 * 5.0_f64).sqrt() + 2.0);
    assert_eq!(a.rbp.status().state, "Below");
}

/// The same, with X of the round with the loss in force in the next: the packet more that the round would bring is above it.
#[test]
fn over_the_round_the_last_x_bounds_the_next_round_if_it_is_kept() {
    let mut a = Alone::new("srp", &[("p_over", "round"), ("without_loss", "kept")]);
    a.rbp.pps = 12.0;
    for seq in 0..5 {
        a.send();
        if seq == 1 { a.lose(seq) } else { a.ack(seq, RTT) }
    }
    a.timer();
    let x = 2.0 * (1.5 * 5.0_f64).sqrt();
    a.pps_is(x);
    a.round(3);
    a.pps_is(x);
    assert_eq!(a.rbp.status().state, "AtEquation");
}

/// 100 packets, 6 indications: X = 10/s, and S was 7.
#[test]
fn a_loss_raises_the_rate_to_the_equations_if_that_is_the_reading() {
    for (after_loss, expected) in [("bound", 7.0), ("equation", 10.0)] {
        let mut a = Alone::new("srp", &[("p_over", "run"), ("after_loss", after_loss)]);
        for seq in 0..100 {
            a.send();
            if [10, 20, 30, 40, 50, 60].contains(&seq) { a.lose(seq) } else { a.ack(seq, RTT) }
        }
        a.rbp.pps = 7.0;
        a.timer();
        a.pps_is(expected);
    }
}

#[test]
fn without_an_rtt_it_sends_a_packet_a_second_and_then_begins() {
    let mut rbp: Rbp = made_as("mrp", &[], &paper());
    rbp.start(Instant::ZERO, None);
    rbp.on_sent(Instant::ZERO, &Sent { kind: Kind::Data, class: Class::Normal, seq: 0, size: SIZE });
    assert_eq!((rbp.poll_send(at(0.2), true), rbp.poll_timer()), (SendPoll::Wait(at(1.0)), Instant::NEVER));
    let mut a = Alone { rbp, rtt: RttEstimator::new(Default::default()), now: at(0.2), seq: 1 };
    a.ack(0, Duration::from_millis(200));
    a.pps_is(5.0);
    // The gap of a second is not waited out.
    assert_eq!((a.rbp.poll_send(at(0.2), true), a.rbp.poll_timer()), (SendPoll::Send(Kind::Data), at(0.4)));
}

#[test]
fn the_flows_start_rate_is_where_it_begins() {
    let env = Env { start_rate: Some(Rate::packets_per_second(30.0, SIZE)), ..paper() };
    let mut rbp: Rbp = made_as("crp", &[], &env);
    rbp.start(Instant::ZERO, Some(RTT));
    assert_eq!(rbp.target_rate(), Rate::packets_per_second(30.0, SIZE));
}

#[test]
fn it_keeps_to_what_the_application_wants() {
    let mut a = Alone::after("srp", 50, &[], 20.0);
    a.rbp.set_demand(a.now, Some(Rate::packets_per_second(11.0, SIZE)));
    a.pps_is(11.0);
    a.timer();
    a.pps_is(11.0);
    a.rbp.set_demand(a.now, None);
    a.round(6);
    a.pps_is(13.0);
}

/// Every hundredth packet lost: all intervals are 100, p = 0.01, SRTT 0.5 s, RTO 0.51 s. In the steady state
/// each round ends at the equation's rate: it never rises above, and a lost packet does not change p.
#[test]
fn under_even_losses_it_settles_at_the_equations_rate() {
    let path = TcpPath::new(SIZE, RTT, Duration::from_millis(510), 1.0).expect("a fair path");
    let p = Probability::new(0.01).expect("a probability");
    for (scheme, equation) in SCHEMES.into_iter().zip([Equation::Simple, Equation::Complex, Equation::Modified]) {
        let env = paper();
        let mut run = Path::new(made(scheme, &[], &env), &env, RTT);
        run.run(at(200.0), |p| p.seq % 100 != 50);
        let expected = equation.rate(&path, p).as_packets_per_second(SIZE);
        assert!((run.pps() / expected - 1.0).abs() < 0.002, "{scheme}: {}, {expected}", run.pps());
        let sent = run.count(Kind::Data, at(100.0), at(200.0)) as f64 / 100.0;
        assert!((sent / expected - 1.0).abs() < 0.01, "{scheme} sent {sent}/s, {expected}");
    }
}

/// On a dead path the gaps at least double with each packet once they are longer than the timeout, as
/// TCP's do, down to the flow's least rate; and the flow comes back by itself.
#[test]
fn on_a_dead_path_it_comes_down_to_its_least_rate_and_comes_back() {
    for scheme in SCHEMES {
        let env = Env { min_rate: Rate::packets_per_second(1.0 / 30.0, SIZE), ..paper() };
        let mut path = Path::new(made(scheme, &[], &env), &env, RTT);
        path.run(at(20.0), |_| true);
        assert!(path.pps() > 70.0, "{scheme}: {}", path.pps());
        path.run(at(200.0), |_| false);
        assert!((path.pps() - 1.0 / 30.0).abs() < 1e-9, "{scheme}: {}", path.pps());
        let gaps: Vec<f64> =
            path.sent.windows(2).map(|w| w[1].at.since(w[0].at).as_secs_f64()).filter(|gap| *gap > 1.0).collect();
        assert!(gaps.len() >= 5 && gaps.windows(2).all(|w| w[1] > 1.9 * w[0] || w[1] > 29.9), "{scheme}: {gaps:?}");
        path.run(at(260.0), |_| true);
        assert!(path.pps() > 20.0, "{scheme}: {}", path.pps());
    }
}

#[test]
fn every_bad_setting_names_the_field_and_what_is_allowed() {
    for info in SRP.params {
        for bad in ["", "-1", "nan", "inf", "1e308", "bogus", "1 packets", "1.5 packets", "0 s", "-0.0"] {
            let error = match build("srp", &settings(&[(info.name, bad)]), &paper()) {
                Err(e) => e,
                Ok(_) => panic!("`{}` accepts `{bad}`", info.name),
            };
            assert_eq!(error.field(), Some(info.name));
        }
    }
    let error = build("mrp", &settings(&[("p_over", "1 packets")]), &paper()).expect_err("one packet");
    assert_eq!(
        error.to_string(),
        "`mrp.p_over` is `1 packets`; allowed is `intervals`, `round`, `run`, or a number of `packets` from 2 to \
         1000000"
    );
    for good in ["round", "run", "500 packets", "2packets"] {
        assert!(build("mrp", &settings(&[("p_over", good)]), &paper()).is_ok(), "{good}");
    }
}

/// CRP on a path of 0.5 s: S in packets/s at the end of each round, or at each timeout. Packet 100 is lost, and
/// everything from 20 s to 24 s.
#[test]
fn a_run_that_a_person_can_follow() {
    let env = paper();
    let mut path = Path::new(made("crp", &[], &env), &env, RTT);
    path.run(at(40.0), |p| p.seq != 100 && !(p.at >= at(20.0) && p.at < at(24.0)));
    let (mut found, mut last) = (String::new(), "");
    for (t, pps, state) in &path.trace {
        if *state != last {
            found += &format!("\n{t:5.2} s {state:10}");
            last = state;
        }
        found += &format!(" {pps:.1}");
    }
    // p = 1/100 at 7.5 s: 1 / (0.5 · 0.08165 + 0.51 · 0.1837 · 0.01 · 1.0032) = 23.9, and no more until the open
    // interval is longer than 100. RTO 0.51 s, after 20.5 s counted from the last packet that left before.
    let expected = "
 0.00 s Below      2.0 4.0 6.0 8.0 10.0 12.0 14.0 16.0 18.0 20.0 22.0 24.0 26.0 28.0 30.0
 7.50 s AtEquation 23.9 24.4 25.9 27.3 28.6 30.1 31.5 32.9 34.2 35.7 37.1 38.5 39.9 41.4 42.8 44.2 45.7 47.1 48.5 49.9
20.99 s TimedOut   25.0 12.5 6.2 3.1 1.6 0.8
25.77 s Below      0.8 2.8 4.8 6.8 8.8 10.8 12.8 14.8 16.8 18.8 20.8 22.8 24.8 26.8 28.8 30.8 32.8 34.8 36.8 38.8 40.8 \
        42.8 44.8
36.99 s AtEquation 46.8 47.5 48.2 48.9 49.7 50.4 51.1";
    assert_eq!(found, expected, "{found}");
}
