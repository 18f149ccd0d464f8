use super::*;
use crate::feedback::Message;
use crate::registry::Safety;
use crate::testing::{SIZE, at, made, paper, settings, tell};
use crate::{Flow, FlowParams, StopReason, Transmit};
use std::collections::VecDeque;
use std::fmt::Write as _;

fn tpba(pairs: &[(&str, &str)]) -> Tpba {
    let given = settings(pairs);
    let mut c = Tpba::new(&Settings::new(&INFO, &given).unwrap(), &paper()).unwrap();
    c.start(Instant::ZERO, None);
    c
}

fn estimator() -> RttEstimator {
    RttEstimator::new(crate::rtt::RttParams::default())
}

/// So many bytes are acknowledged by then, and the window was reduced so often.
fn told(c: &mut Tpba, t: f64, acked: u64, reductions: u64) {
    let srtt = Some(Duration::from_millis(100));
    let (acked, cwnd, mss) = (Bytes::new(acked), Bytes::new(20_000), Bytes::new(1_000));
    c.on_progress(at(t), &TcpProgress { acked, cwnd, mss, reductions, srtt, ..TcpProgress::default() });
}

/// One cycle of the probing period that ends at `t`.
fn cycle(c: &mut Tpba, t: f64, acked: u64) {
    told(c, t, acked, 0);
    assert_eq!(c.poll_timer(), at(t));
    c.on_timer(at(t), &estimator());
}

fn kbps(c: &Tpba) -> f64 {
    c.status().rate.as_bps() / 1e3
}

fn orders(c: &mut Tpba) -> Vec<TcpOrder> {
    std::iter::from_fn(|| c.take_order()).collect()
}

/// To the running period at 3.2 s with r_s = 408 kbit/s and cwnd_old = 20 segments.
fn running(pairs: &[(&str, &str)]) -> Tpba {
    let mut c = tpba(pairs);
    for (t, acked) in [(1.0, 50_000), (2.0, 102_000), (3.0, 153_000)] {
        c.on_sent(at(t), &sent(0));
        cycle(&mut c, t, acked);
    }
    c.on_adu_end(at(3.1));
    c.on_drained(at(3.2));
    c
}

fn sent(seq: u64) -> Sent {
    Sent { kind: Kind::Data, class: fairpace_units::Class::Normal, seq, size: SIZE }
}

/// 51 packets/s, every second one beside the numbers: each takes its time.
#[test]
fn a_packet_beside_the_numbers_takes_its_time() {
    let mut c = running(&[]);
    let mut departures = Vec::new();
    let mut now = at(3.2);
    while departures.len() < 11 {
        match c.poll_send(now, true) {
            SendPoll::Wait(at) => now = at,
            SendPoll::Send(_) if departures.len() % 2 == 1 => {
                c.on_sent_unnumbered(now, SIZE);
                departures.push(now);
            }
            SendPoll::Send(_) => {
                c.on_sent(now, &sent(200 + departures.len() as u64));
                departures.push(now);
            }
            other => panic!("{other:?}"),
        }
    }
    let took = departures[10].since(departures[0]).as_secs_f64();
    assert!((took - 10.0 / 51.0).abs() < 1e-6, "{took}");
}

/// The controller's way through both periods, every number by hand.
#[test]
fn a_whole_turn_by_hand() {
    let mut c = tpba(&[]);
    assert_eq!((c.via(), c.status().state), (Via::Tcp, "probing"));
    c.on_sent(at(0.1), &sent(0));
    cycle(&mut c, 1.0, 50_000); // 400 kbit/s
    cycle(&mut c, 2.0, 102_000); // 416
    assert_eq!((kbps(&c), orders(&mut c)), (416.0, vec![]));
    cycle(&mut c, 3.0, 153_000); // 408: |400 - 408| and |416 - 408| are below 30
    assert_eq!((kbps(&c), orders(&mut c)), (408.0, vec![TcpOrder::NoDelay(true)]));
    assert_eq!((c.status().state, c.poll_send(at(3.0), true)), ("probing", SendPoll::Send(Kind::Data)));
    c.on_drained(at(3.0)); // not yet: the data unit has not ended
    assert_eq!(c.status().state, "probing");
    c.on_adu_end(at(3.1));
    assert_eq!((c.via(), c.status().state), (Via::Tcp, "draining"));
    assert_eq!(c.poll_send(at(3.1), true), SendPoll::WaitForFeedback);
    c.on_drained(at(3.2));
    assert_eq!((c.via(), c.status().state, kbps(&c)), (Via::Udp, "running", 408.0));
    assert_eq!(c.target_rate(), Rate::kbps(408.0));
    // 100 packets and a report before each adaptation point; numbers below 200 went by TCP
    let mut lost = 0;
    for (t, first, new, expected) in [
        (6.2, 200, 10, 285.6),  // p = 0.1: 408 · 0.7
        (9.2, 300, 0, 285.6),   // never a rise
        (12.2, 400, 5, 242.76), // p = 0.05: 285.6 · 0.85
    ] {
        for seq in first..first + 100 {
            c.on_sent(at(t - 2.0), &sent(seq));
        }
        lost += new;
        let report = ReceiverReport::new(first + 99, 0.0, Duration::from_secs(1));
        c.on_receiver_report(at(t - 1.0), &ReceiverReport { lost: Some(lost), ..report }, &estimator());
        assert_eq!(c.poll_timer(), at(t));
        c.on_timer(at(t), &estimator());
        assert!((kbps(&c) - expected).abs() < 1e-9, "{t}: {}", kbps(&c));
    }
    c.on_adu_end(at(13.1));
    assert_eq!(c.via(), Via::Udp, "T_running is over at 13.2 s");
    c.on_adu_end(at(13.3));
    assert_eq!((c.via(), c.status().state), (Via::Tcp, "probing"));
    // ceil(20,000 · 242.76 / (1,000 · 408)) = ceil(11.9)
    assert_eq!(orders(&mut c), [TcpOrder::SetCwnd(Bytes::new(12_000)), TcpOrder::NoDelay(false)]);
    // cycles from there: two rates that agree are not three
    c.on_sent(at(13.3), &sent(500));
    for (t, acked) in [(14.3, 183_000), (15.3, 213_000)] {
        cycle(&mut c, t, acked); // 240 kbit/s
        assert_eq!(orders(&mut c), []);
    }
    cycle(&mut c, 16.3, 243_000);
    assert_eq!(orders(&mut c), [TcpOrder::NoDelay(true)]);
}

/// Feeds the rates of cycles of a second, in kbit/s; gives after how many the probing period ended.
fn cycles(pairs: &[(&str, &str)], rates: &[u64]) -> Option<usize> {
    let mut c = tpba(pairs);
    let mut acked = 0;
    c.on_sent(Instant::ZERO, &sent(0));
    (1..).zip(rates).find_map(|(n, rate)| {
        acked += rate * 125;
        cycle(&mut c, n as f64, acked);
        (!orders(&mut c).is_empty()).then_some(n)
    })
}

#[test]
fn the_stop_rules_by_hand() {
    let percent: &[_] = &[("stop", "percent")];
    // |90 - 125| is above 30 kbit/s; then 131, 125, 120 agree within 30, and not within 5 %
    assert_eq!(cycles(&[], &[90, 131, 125, 120]), Some(4));
    assert_eq!(cycles(percent, &[90, 131, 125, 120, 110, 118, 119, 118]), Some(8));
    // 4 Mbit/s: 150 kbit/s are 3.75 % and no epsilon
    assert_eq!(cycles(&[], &[4_000, 3_900, 4_050, 4_000]), None);
    assert_eq!(cycles(percent, &[4_000, 3_900, 4_050, 4_000]), Some(3));
    // exactly epsilon is not below it
    assert_eq!(cycles(&[], &[430, 400, 400]), None);
    // the first of the three may not differ either
    assert_eq!(cycles(&[], &[400, 480, 481, 482]), Some(4));
    // cycles without an acknowledged byte are no rates: neither three of them, nor what lies around one
    assert_eq!(cycles(&[], &[0, 0, 0, 0, 0]), None);
    assert_eq!(cycles(&[], &[400, 400, 0, 400, 400]), None);
    assert_eq!(cycles(&[], &[400, 400, 0, 400, 400, 400]), Some(6));
}

/// r[i] over the time between two reductions: 1.5, 1.5 and 2 s from the first reduction on.
#[test]
fn a_cycle_of_the_window_is_a_cycle_of_the_rate() {
    let mut c = tpba(&[("stop", "cwnd-cycle")]);
    c.on_sent(Instant::ZERO, &sent(0));
    told(&mut c, 0.9, 150_000, 0);
    told(&mut c, 1.0, 200_000, 1); // start-up is no cycle
    told(&mut c, 2.0, 220_000, 1);
    told(&mut c, 2.5, 275_000, 2); // 75,000 bytes in 1.5 s: 400 kbit/s
    assert_eq!(kbps(&c), 400.0);
    told(&mut c, 4.0, 353_000, 3); // 416
    assert_eq!(orders(&mut c), []);
    told(&mut c, 6.0, 455_000, 4); // 102,000 in 2 s: 408; 8 of 408 are 2 %
    assert_eq!((kbps(&c), orders(&mut c)), (408.0, vec![TcpOrder::NoDelay(true)]));
    // Never reduced: T_running each, the first of which is start-up.
    let mut c = tpba(&[("stop", "cwnd-cycle")]);
    c.on_sent(Instant::ZERO, &sent(0));
    for n in 1..=4_u32 {
        assert_eq!(orders(&mut c), []);
        cycle(&mut c, f64::from(n) * 10.0, u64::from(n) * 500_000);
    }
    assert_eq!(orders(&mut c), [TcpOrder::NoDelay(true)]);
}

#[test]
fn where_the_end_of_a_data_unit_has_just_left_draining_begins_at_once() {
    let mut c = tpba(&[]);
    c.on_sent(at(0.1), &sent(0));
    c.on_adu_end(at(0.1));
    for (t, acked) in [(1.0, 50_000), (2.0, 100_000), (3.0, 150_000)] {
        assert_eq!(c.status().state, "probing");
        cycle(&mut c, t, acked);
    }
    assert_eq!((c.status().state, c.via()), ("draining", Via::Tcp));
}

/// A data unit of half a minute: r_s is what TCP does at its end, and is what is sent then.
#[test]
fn the_rate_is_the_last_before_the_end_of_the_data_unit() {
    let mut c = tpba(&[]);
    for n in 1..=20_u32 {
        c.on_sent(at(f64::from(n) - 0.5), &sent(n.into()));
        cycle(&mut c, f64::from(n), u64::from(n * 50_000 + if n == 20 { 20_000 } else { 0 }));
    }
    assert_eq!(orders(&mut c), [TcpOrder::NoDelay(true)], "once");
    c.on_adu_end(at(20.5));
    c.on_drained(at(20.6));
    assert_eq!((c.status().state, kbps(&c)), ("running", 560.0));
}

#[test]
fn a_rate_far_below_r_s_ends_the_period_where_asked() {
    for (below, via) in [("0", Via::Udp), ("0.5", Via::Tcp)] {
        let mut c = running(&[("reprobe_below", below)]);
        for seq in 200..300 {
            c.on_sent(at(4.0), &sent(seq));
        }
        let report = ReceiverReport::new(299, 0.2, Duration::from_secs(1));
        c.on_receiver_report(at(5.0), &report, &estimator());
        c.on_adu_end(at(6.0));
        assert_eq!(c.via(), Via::Udp);
        c.on_timer(at(6.2), &estimator());
        assert!((kbps(&c) - 408.0 * 0.4).abs() < 1e-9);
        c.on_adu_end(at(6.3));
        assert_eq!(c.via(), via);
    }
}

/// r_min holds for r_s and for every reduction, and cwnd_new is a segment at least.
#[test]
fn r_min_holds_everywhere() {
    let mut c = running(&[("r_min", "500 kbit/s")]);
    assert_eq!(kbps(&c), 500.0);
    c.on_sent(at(4.0), &sent(0));
    c.on_receiver_report(at(5.0), &ReceiverReport::new(0, 1.0, Duration::from_secs(1)), &estimator());
    c.on_timer(at(6.2), &estimator());
    assert_eq!(kbps(&c), 500.0);
    let mut c = running(&[("r_min", "1 kbit/s")]);
    c.on_sent(at(4.0), &sent(0));
    c.on_receiver_report(at(5.0), &ReceiverReport::new(0, 1.0, Duration::from_secs(1)), &estimator());
    c.on_timer(at(6.2), &estimator());
    assert_eq!(kbps(&c), 1.0);
    orders(&mut c);
    c.on_adu_end(at(14.0));
    assert_eq!(orders(&mut c)[0], TcpOrder::SetCwnd(Bytes::new(1_000)));
    // The window is TCP's own affair where asked.
    let mut c = running(&[("keep_cwnd", "off")]);
    orders(&mut c);
    c.on_adu_end(at(14.0));
    assert_eq!(orders(&mut c), [TcpOrder::NoDelay(false)]);
}

/// An encoder that did what TCP has measured would never do more: it is told what the window allows, 20,000 bytes in
/// 100 ms, up to twice what was measured.
#[test]
fn while_probing_an_encoder_is_told_what_the_window_allows() {
    let mut c = tpba(&[]);
    assert_eq!(c.target_rate(), Rate::kbps(10.0), "nothing is known");
    told(&mut c, 0.05, 0, 0);
    assert_eq!(c.target_rate(), Rate::kbps(1_600.0));
    // start-up is not the rate: 20,000 bytes under way and 5,000 acknowledged in half a second
    told(&mut c, 0.5, 5_000, 0);
    assert_eq!(c.target_rate(), Rate::kbps(400.0));
    c.on_sent(at(0.5), &sent(0));
    cycle(&mut c, 1.0, 50_000);
    assert_eq!(c.target_rate(), Rate::kbps(800.0));
    cycle(&mut c, 2.0, 50_000 + 125_000);
    assert_eq!(c.target_rate(), Rate::kbps(1_600.0));
    cycle(&mut c, 3.0, 50_000 + 125_000 + 250_000);
    assert_eq!(c.target_rate(), Rate::kbps(1_600.0), "what the window has lost since, an encoder is told at once");
    c.set_demand(at(3.0), Some(Rate::kbps(300.0)));
    assert_eq!(c.target_rate(), Rate::kbps(300.0));
}

#[test]
fn an_application_that_wants_less_gets_less_and_r_stays() {
    let mut c = running(&[]);
    c.set_demand(at(4.0), Some(Rate::kbps(100.0)));
    assert_eq!((kbps(&c), c.target_rate()), (100.0, Rate::kbps(100.0)));
    c.set_demand(at(5.0), None);
    assert_eq!(kbps(&c), 408.0);
}

// --- through Flow --------------------------------------------------------------------------------

/// A driver with a TCP half that delivers at a rate, a receiver that counts, and data units of ten packets.
struct Driver {
    flow: Flow,
    now: Instant,
    /// TCP's rate from a time on, and whether UDP gets through.
    tcp_rate: fn(f64) -> f64,
    udp: fn(f64) -> bool,
    /// Numbers of the UDP packets lost, one in so many; 0: none.
    lose: u64,
    given: f64,
    acked: f64,
    tcp_at: Instant,
    highest: u64,
    lost: i64,
    next_report: Instant,
    sent: Vec<(Instant, Via, u64)>,
    late: VecDeque<(Instant, u64, i64)>,
    trace: String,
}

impl Driver {
    fn new(pairs: &[(&str, &str)], safety: Safety, tcp_rate: fn(f64) -> f64) -> Driver {
        let env = crate::Env { safety, min_rate: Rate::kbps(1.0), ..paper() };
        let mut flow = Flow::new(made("tpba", pairs, &env), FlowParams { trace: true, ..FlowParams::new(&env) });
        flow.start(Instant::ZERO, Some(Duration::from_millis(100)));
        Driver {
            flow,
            now: Instant::ZERO,
            tcp_rate,
            udp: |_| true,
            lose: 0,
            given: 0.0,
            acked: 0.0,
            tcp_at: Instant::ZERO,
            highest: 0,
            lost: 0,
            next_report: at(1.0),
            sent: Vec::new(),
            late: VecDeque::new(),
            trace: String::new(),
        }
    }

    fn tcp(&mut self) {
        let t = self.tcp_at.as_secs_f64();
        let bytes = (self.tcp_rate)(t) / 8.0 * self.now.since(self.tcp_at).as_secs_f64();
        self.acked = (self.acked + bytes).min(self.given);
        self.tcp_at = self.now;
        let (acked, cwnd, mss) = (Bytes::new(self.acked as u64), Bytes::new(20_000), SIZE);
        let srtt = Some(Duration::from_millis(100));
        self.flow.on_tcp(self.now, &TcpProgress { acked, cwnd, mss, reductions: 0, srtt, ..TcpProgress::default() });
        if self.flow.status().state == "draining" && self.acked >= self.given {
            self.flow.on_tcp_drained(self.now);
        }
        while let Some(order) = self.flow.take_tcp_order() {
            writeln!(self.trace, "{:.3} {order:?}", self.now.as_secs_f64()).unwrap();
        }
    }

    /// Runs to `end` in steps of at most 10 ms; `has_data` says when there is some.
    fn run(&mut self, end: f64, has_data: impl Fn(f64) -> bool) -> Option<StopReason> {
        while self.now < at(end) {
            let t = self.now.as_secs_f64();
            self.tcp();
            if self.now >= self.next_report {
                self.next_report += Duration::from_secs(1);
                // The round trip of a report: what was true 100 ms ago.
                self.late.push_back((self.now, self.highest, self.lost));
                let (_, highest, lost) = *self.late.front().unwrap();
                if self.late.len() > 1 {
                    self.late.pop_front();
                }
                let report = ReceiverReport::new(highest, 0.0, Duration::from_secs(1));
                let report = ReceiverReport { lost: Some(lost), rtt: Some(Duration::from_millis(100)), ..report };
                if (self.udp)(t) {
                    tell(&mut self.flow, self.now, Message::Report(&report));
                }
            }
            let until = loop {
                let via = self.flow.via();
                let room = via == Via::Udp || self.given + 1_000.0 <= self.acked + 20_000.0;
                match self.flow.poll(self.now, has_data(t) && room) {
                    Transmit::Send(p) => {
                        assert_eq!(p.via, via, "nothing but the ends of data units changes it");
                        self.flow.on_sent(self.now, p, SIZE);
                        match p.via {
                            Via::Tcp => self.given += 1_000.0,
                            Via::Udp if !(self.udp)(t) => {}
                            Via::Udp if self.lose > 0 && p.seq % self.lose == 0 => self.lost += 1,
                            Via::Udp => self.highest = p.seq,
                        }
                        if p.via == Via::Tcp {
                            self.highest = p.seq;
                        }
                        self.sent.push((self.now, p.via, p.seq));
                        if p.seq % 10 == 9 {
                            self.flow.on_adu_end(self.now);
                            self.tcp();
                        }
                    }
                    Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
                    Transmit::Stopped(reason) => return Some(reason),
                }
            };
            let status = self.flow.status();
            let line = format!("{} {:.1} kbit/s: {}", status.state, status.rate.as_bps() / 1e3, status.reason);
            if self.trace.lines().rfind(|l| l.contains(':') && !l.contains('(')).is_none_or(|l| !l.ends_with(&line)) {
                writeln!(self.trace, "{:.3} {line}", self.now.as_secs_f64()).unwrap();
            }
            self.now = until.min(self.now + Duration::from_millis(10));
        }
        None
    }
}

/// TCP gets 400 kbit/s, then 600; one in 50 datagrams is lost. The transport changes between data units only, numbers
/// go on without a gap, and the trace is what the documentation says.
#[test]
fn the_golden_trace_of_two_periods() {
    let mut d = Driver::new(&[], Safety::Paper, |t| if t < 10.0 { 4e5 } else { 6e5 });
    d.lose = 50;
    assert_eq!(d.run(26.0, |_| true), None);
    assert!(d.sent.iter().zip(0..).all(|((_, _, seq), n)| *seq == n), "numbers without a gap");
    let turns: Vec<u64> = d.sent.windows(2).filter(|w| w[0].1 != w[1].1).map(|w| w[1].2).collect();
    assert!(turns.len() == 3 && turns.iter().all(|seq| seq % 10 == 0), "{turns:?}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/tpba-two-periods.txt");
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::write(path, &d.trace).expect(path);
    }
    assert_eq!(d.trace, std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}")));
}

#[test]
fn a_tcp_that_is_dead_ends_the_flow_after_15_s() {
    // in the middle of probing
    let mut d = Driver::new(&[], Safety::Default, |t| if t < 2.5 { 4e5 } else { 0.0 });
    let after = Duration::from_secs(15);
    assert_eq!(d.run(60.0, |_| true), Some(StopReason::FeedbackTimeout { after }));
    assert!(d.now >= at(17.4) && d.now <= at(17.6), "{:?}", d.now);
    // while it is drained
    let mut d = Driver::new(&[], Safety::Default, |t| if t < 3.1 { 4e5 } else { 0.0 });
    assert_eq!(d.run(60.0, |_| true), Some(StopReason::FeedbackTimeout { after }));
    assert_eq!(d.flow.status().state, "draining");
    assert!(d.now >= at(18.0) && d.now <= at(18.5), "{:?}", d.now);
    // an application that says nothing for a minute has not killed it
    let mut d = Driver::new(&[], Safety::Default, |_| 4e5);
    assert_eq!(d.run(62.0, |t| !(1.5..61.0).contains(&t)), None);
    assert_eq!(d.flow.status().state, "probing");
}

/// TCP alone gets through: 10 s of running, halved on the way, and 5 s of the next running period.
#[test]
fn a_path_that_lets_no_datagram_through_ends_the_flow_after_15_s_of_running() {
    let mut d = Driver::new(&[], Safety::Default, |_| 4e5);
    d.udp = |_| false;
    let after = Duration::from_secs(15);
    assert_eq!(d.run(60.0, |_| true), Some(StopReason::FeedbackTimeout { after }));
    let running = d.sent.windows(2).filter(|w| w[0].1 == Via::Udp && w[1].1 == Via::Udp);
    let silent: f64 = running.map(|w| w[1].0.since(w[0].0).as_secs_f64()).sum();
    assert!((13.0..=15.5).contains(&silent), "{silent}");
    assert!(d.trace.contains("no reports: halved"), "{}", d.trace);
    // The simulated paper goes on for ever.
    let mut d = Driver::new(&[], Safety::Paper, |_| 4e5);
    d.udp = |_| false;
    assert_eq!(d.run(60.0, |_| true), None);
}
