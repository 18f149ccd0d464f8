//! TFRC through a flow: who measures, what is data-limited, idle or capped, and pacing.

use super::receiver::{RatedArrival, TfrcReceiver};
use super::*;
use crate::feedback::RateHeader;
use crate::feedback::{Form, Message};
use crate::quick_start::answer;
use crate::testing::{SIZE, acknowledge, as_scheme, at, made, paper, tell};
use crate::{Ack, Flow, FlowParams, IgnoredFeedback, Transmit};
use fairpace_units::{QsFunction, QsOption, QsResponse};
use std::collections::BTreeMap;
use std::fmt::Write as _;

mod golden;
mod quick_start;
mod reports;

const RTT: Duration = Duration::from_millis(100);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The data that the application has to send.
#[derive(Clone, Copy)]
enum App {
    /// Always something.
    Bulk,
    /// A packet every so often, since that time.
    Every(Duration, Instant),
    /// Nothing.
    Silent,
}

/// A packet as the test sees it leave.
#[derive(Clone, Copy)]
struct Packet {
    at: Instant,
    seq: u64,
}

enum Back {
    Ack(Ack),
    Report(RateReport),
    Response(QsResponse),
}

/// A path with a constant RTT, a bottleneck if wanted, losses chosen by the test; ACKs or a receiver
/// that measures.
struct Run {
    flow: Flow,
    now: Instant,
    rtt: Duration,
    /// Packets per second, and how many may wait.
    bottleneck: Option<(f64, usize)>,
    link_free: Instant,
    /// The receiver gathers ACKs and sends them this often.
    bundle: Option<Duration>,
    size: Bytes,
    app: App,
    taken: u64,
    receiver: Option<TfrcReceiver>,
    /// The packets to the measuring receiver and the feedback on the way, by time of arrival.
    there: BTreeMap<(Instant, u64), RatedArrival>,
    back: BTreeMap<(Instant, u64), Back>,
    n: u64,
    sent: Vec<Packet>,
    /// Reports that were handed in.
    heard: Vec<RateReport>,
    /// The routers' change of a Quick-Start request, and the answers of the receiver by packet.
    routers: fn(&mut QsOption),
    answers: BTreeMap<u64, QsResponse>,
    /// Quick-Start options that left.
    options: Vec<(Instant, QsOption)>,
}

impl Run {
    fn new(settings: &[(&str, &str)], rtt: Duration) -> Run {
        Run::of("tfrc", settings, &paper(), rtt)
    }

    fn of(scheme: &str, settings: &[(&str, &str)], env: &Env, rtt: Duration) -> Run {
        Run::with(scheme, settings, env, rtt, FlowParams::new(env))
    }

    fn with(scheme: &str, settings: &[(&str, &str)], env: &Env, rtt: Duration, params: FlowParams) -> Run {
        let controller = made(scheme, settings, env);
        let tfrc: &Tfrc = as_scheme(&*controller);
        let reports = tfrc.feedback_form() == Form::RtpTfrc;
        let receiver = reports.then(|| TfrcReceiver::new(tfrc.receiver_params()));
        Run {
            flow: Flow::new(controller, FlowParams { trace: true, ..params }),
            now: Instant::ZERO,
            rtt,
            bottleneck: None,
            link_free: Instant::ZERO,
            bundle: None,
            size: SIZE,
            app: App::Bulk,
            taken: 0,
            receiver,
            there: BTreeMap::new(),
            back: BTreeMap::new(),
            n: 0,
            sent: Vec::new(),
            heard: Vec::new(),
            routers: |_| {},
            answers: BTreeMap::new(),
            options: Vec::new(),
        }
    }

    /// As `new`, started with the RTT known.
    fn started(settings: &[(&str, &str)], rtt: Duration) -> Run {
        let mut run = Run::new(settings, rtt);
        run.flow.start(Instant::ZERO, Some(rtt));
        run
    }

    fn tfrc(&self) -> &Tfrc {
        as_scheme(self.flow.controller())
    }

    /// X in packets per second of 1,000 bytes.
    fn x(&self) -> f64 {
        self.tfrc().x().as_packets_per_second(SIZE)
    }

    fn p(&self) -> f64 {
        self.flow.status().p.expect("TFRC has a p")
    }

    fn has_data(&self) -> bool {
        match self.app {
            App::Bulk => true,
            App::Silent => false,
            App::Every(..) => self.next_data() <= self.now,
        }
    }

    fn next_data(&self) -> Instant {
        match self.app {
            App::Every(gap, since) => since + gap * self.taken as u32,
            _ => Instant::NEVER,
        }
    }

    fn set_app(&mut self, app: App) {
        (self.app, self.taken) = (app, 0);
    }

    /// Runs to `end`; `arrives` says whether a packet gets through the path.
    fn run(&mut self, end: Instant, mut arrives: impl FnMut(Packet) -> bool) {
        loop {
            self.feed();
            let until = loop {
                match self.flow.poll(self.now, self.has_data()) {
                    Transmit::Send(p) => {
                        let packet = Packet { at: self.now, seq: p.seq };
                        self.flow.on_sent(self.now, p, self.size);
                        self.taken += 1;
                        self.sent.push(packet);
                        self.options.extend(p.quick_start.map(|option| (self.now, option)));
                        if let Some(mut option) = p.quick_start {
                            (self.routers)(&mut option);
                            self.answers.extend(answer(&option).map(|response| (p.seq, response)));
                        }
                        if arrives(packet) {
                            self.deliver(packet);
                        }
                    }
                    Transmit::WaitUntil(t) => break t,
                    Transmit::WaitForData(t) => break t.min(self.next_data()),
                    Transmit::WaitForFeedback(t) => break t,
                    Transmit::Stopped(reason) => panic!("{reason}"),
                }
            };
            let receiver = self.receiver.as_ref().map_or(Instant::NEVER, TfrcReceiver::next);
            let first = |t: Option<Instant>| t.unwrap_or(Instant::NEVER);
            let next = until
                .min(receiver)
                .min(first(self.there.keys().next().map(|k| k.0)))
                .min(first(self.back.keys().next().map(|k| k.0)));
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next.max(self.now);
        }
    }

    fn deliver(&mut self, packet: Packet) {
        let mut leaves = self.now;
        if let Some((pps, queue)) = self.bottleneck {
            let wait = self.link_free.since(self.now).as_secs_f64();
            if wait * pps > queue as f64 {
                return;
            }
            self.link_free = self.link_free.max(self.now) + Duration::from_secs_f64(1.0 / pps);
            leaves = self.link_free;
        }
        self.n += 1;
        if self.receiver.is_some() {
            let header = RateHeader { sent_at: self.now, rtt: self.tfrc().rtt() };
            let arrival = RatedArrival { seq: packet.seq, size: self.size, header, ecn: Ecn::NotEct };
            self.there.insert((leaves + self.rtt / 2, self.n), arrival);
        } else {
            let arrived = leaves + self.rtt / 2;
            let ack_delay = self.bundle.map_or(Duration::ZERO, |every| {
                let every = every.as_nanos() as u64;
                Duration::from_nanos(arrived.as_nanos().next_multiple_of(every) - arrived.as_nanos())
            });
            let ack = Ack { ack_delay, ..Ack::immediate(Kind::Data, packet.seq) };
            let back = arrived + ack_delay + self.rtt / 2;
            self.back.insert((back, self.n), Back::Ack(ack));
            self.answer(packet.seq, back);
        }
    }

    /// The receiver's answer to the request on that packet, if there was one, arrives at `back` after the
    /// feedback it comes with.
    fn answer(&mut self, seq: u64, back: Instant) {
        if let Some(response) = self.answers.remove(&seq) {
            self.n += 1;
            self.back.insert((back, self.n), Back::Response(response));
        }
    }

    /// Delivers the packets that have arrived by now, at either end.
    fn feed(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            while let Some(entry) = self.there.first_entry().filter(|e| e.key().0 <= self.now) {
                let arrival = entry.remove();
                receiver.on_packet(self.now, &arrival);
                if self.answers.contains_key(&arrival.seq) {
                    receiver.on_quick_start_request(self.now);
                }
                while let Some(report) = receiver.poll(self.now) {
                    self.n += 1;
                    self.back.insert((self.now + self.rtt / 2, self.n), Back::Report(report));
                }
                self.answer(arrival.seq, self.now + self.rtt / 2);
            }
            while let Some(report) = receiver.poll(self.now) {
                self.n += 1;
                self.back.insert((self.now + self.rtt / 2, self.n), Back::Report(report));
            }
            self.receiver = Some(receiver);
        }
        while let Some(entry) = self.back.first_entry().filter(|e| e.key().0 <= self.now) {
            match entry.remove() {
                Back::Ack(ack) => acknowledge(&mut self.flow, self.now, &[ack]),
                Back::Report(report) => {
                    tell(&mut self.flow, self.now, Message::Measured(&report));
                    self.heard.push(report);
                }
                Back::Response(response) => self.flow.on_quick_start_response(self.now, &response),
            }
        }
    }

    /// Packets per second that left in that time.
    fn rate(&self, from: f64, to: f64) -> f64 {
        self.sent.iter().filter(|p| p.at >= at(from) && p.at < at(to)).count() as f64 / (to - from)
    }
}

const BY_EITHER: [&str; 2] = ["sender", "receiver"];

/// 4380 bytes per RTT of 0.1 s, in packets of 1,000: W_init = min(4000, 4380), 40 packets/s.
/// Nothing is known of the path but its RTT, so it doubles each RTT twice; then twice what arrives,
/// which is what was sent two reports ago.
//= 5348-4.3-8
#[test]
fn slow_start_as_seen_from_outside() {
    for by in BY_EITHER {
        let mut run = Run::started(&[("measured_by", by)], RTT);
        run.run(at(0.099), |_| true);
        assert_eq!((run.x(), run.flow.status().state), (40.0, "SlowStart"), "{by}");
        run.run(at(1.0), |_| true);
        let x = run.x();
        assert!((300.0..=2_000.0).contains(&x), "{by}: {x}");
        assert_eq!(run.p(), 0.0);
    }
}

/// Every 200th packet is lost: p = 0.005, and 1000/(0.1 * 0.06033518) = 165.74 packets/s.
//= 5348-7-1
//= 5348-8.1-1
#[test]
fn every_200th_packet_lost_is_what_the_equation_says_at_1_in_200() {
    for by in BY_EITHER {
        let mut run = Run::started(&[("measured_by", by)], RTT);
        run.run(at(60.0), |p| p.seq % 200 != 199);
        assert!((run.p() - 0.005).abs() < 5e-5, "{by}: {}", run.p());
        assert!((run.x() - 165.74).abs() < 0.5, "{by}: {}", run.x());
        let rate = run.rate(40.0, 60.0);
        assert!((rate - 165.74).abs() < 1.0, "{by}: {rate}");
    }
}

/// The first loss at some 1,000 packets/s: p is what the equation needs for the rate that arrived, not
/// one in the number of packets so far; X is about what arrived.
//= 5348-6.3.1-1
#[test]
fn the_first_loss_leaves_the_rate_that_arrived() {
    let mut run = Run::started(&[], RTT);
    run.bottleneck = Some((500.0, 20));
    let mut first = None;
    run.run(at(3.0), |p| {
        first.get_or_insert(p.at);
        true
    });
    let reached = run.flow.drain_events().find(|e| matches!(e.what, crate::FlowEventKind::Lost { .. }));
    let t = reached.expect("the queue is short").at.as_secs_f64();
    // Packets arrive at 500 per second at the most, and X came from there.
    let rate = run.rate(t + 0.2, t + 0.6);
    assert!((350.0..=520.0).contains(&rate), "{rate} at {t}");
}

/// X_target is half a packet per RTT if the very first packet is lost: 1/p = 4.844 with the RFC's equation.
//= 5348-6.3.1-2
#[test]
fn a_flow_whose_first_packet_is_lost_begins_with_half_a_packet_per_rtt() {
    let mut run = Run::started(&[], RTT);
    run.run(at(0.6), |p| p.seq != 0);
    let first: Vec<f64> = run.tfrc().measured.events.intervals().collect();
    assert!((first[0] - 4.844).abs() < 0.001, "{first:?}");
}

#[test]
fn both_measure_nearly_the_same_on_a_shared_bottleneck() {
    let rates = BY_EITHER.map(|by| {
        let mut run = Run::started(&[("measured_by", by)], RTT);
        run.bottleneck = Some((200.0, 10));
        run.run(at(60.0), |_| true);
        run.rate(20.0, 60.0)
    });
    assert!(rates.iter().all(|r| (165.0..=200.5).contains(r)), "{rates:?}");
}

/// A path of 1 ms whose receiver acknowledges every 20 ms: the no-feedback timer of 4R would expire four times
/// between two of its bundles. At 1 in 50 the equation allows 7,300 packets/s, the flow 1,000.
#[test]
fn acknowledgements_in_bundles_are_no_lack_of_feedback() {
    let env = Env { max_rate: Rate::packets_per_second(1_000.0, SIZE), ..paper() };
    let mut run = Run::of("tfrc", &[], &env, ms(1));
    run.bundle = Some(ms(20));
    run.flow.start(Instant::ZERO, Some(ms(1)));
    run.run(at(10.0), |p| p.seq % 50 != 49);
    let rate = run.rate(5.0, 10.0);
    assert!((990.0..=1_001.0).contains(&rate), "{rate}");
    assert!((run.p() - 0.02).abs() < 0.002, "{}", run.p());
}

// --- before an RTT is known ----------------------------------------------------------------------

//= 5348-4.2-1
//= 5348-4.2-2
//= 5348-4.4-1
#[test]
fn without_an_rtt_a_packet_a_second_until_the_timer_halves_that() {
    let mut run = Run::new(&[], RTT);
    run.flow.start(Instant::ZERO, None);
    run.run(at(20.0), |_| false);
    // 1/s until 2 s, 1/2 s until 6 s, 1/4 s until 14 s, then 1/8 s.
    let times: Vec<f64> = run.sent.iter().map(|p| p.at.as_secs_f64()).collect();
    assert_eq!(times, [0.0, 1.0, 3.0, 5.0, 9.0, 13.0], "{times:?}");
    assert_eq!(run.flow.status().state, "Waiting");
}

/// The first packet's feedback gives R; the packet that was due after a second leaves at once.
//= 5348-4.2-3
//= 5348-4.2-5
#[test]
fn the_first_rtt_is_used_at_once() {
    for by in BY_EITHER {
        let mut run = Run::new(&[("measured_by", by)], RTT);
        run.flow.start(Instant::ZERO, None);
        run.run(at(0.15), |_| true);
        let times: Vec<f64> = run.sent.iter().map(|p| p.at.as_secs_f64()).collect();
        assert_eq!(times, [0.0, 0.1, 0.125], "{by}");
        assert_eq!((run.x(), run.tfrc().rtt()), (40.0, Some(RTT)), "{by}");
        // And reports go on once per RTT: X has doubled twice.
        run.run(at(0.45), |_| true);
        assert_eq!(run.x(), 160.0, "{by}");
    }
}

// --- data-limited, idle, held back ---------------------------------------------------------------

/// A packet in time at 1000 ms, all others late for lack of data; reports echo before it, at it, and up to
/// an RTT after it.
//= 5348-8.2.1-1
#[test]
fn an_interval_is_data_limited_if_no_packet_in_it_left_in_time() {
    let t = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut held = Held::default();
    for ms in (0..=2_000).step_by(20) {
        held.on_sent(t(ms), ms == 1_000, RTT);
    }
    assert!(!held.was_data_limited(t(500), RTT), "the first report");
    for (echoed, limited) in [(980, true), (1_000, false), (1_080, false), (1_099, false), (1_100, true)] {
        assert_eq!(held.was_data_limited(t(echoed), RTT), limited, "{echoed}");
    }
    // Asked twice, in any order, two reports within an RTT have the same answer.
    assert!(!held.was_data_limited(t(1_020), RTT) && !held.was_data_limited(t(1_021), RTT));
}

/// Stretches of 1 s every 3 s; reports come 1.5 s late, when the next one has begun.
//= 5348-8.2.1-1
#[test]
fn earlier_stretches_are_remembered_until_reports_about_them_have_come() {
    let t = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut held = Held { reported: true, ..Held::default() };
    for ms in (0..30_000).step_by(10) {
        held.on_sent(t(ms), ms % 3_000 < 1_000, RTT);
        if ms >= 6_000 {
            let echoed = ms - 1_500;
            // The last packet in time is the one at 990 ms.
            assert_eq!(held.was_data_limited(t(echoed), RTT), echoed % 3_000 >= 990 + 100, "{echoed}");
        }
    }
}

/// 50 packets/s wanted where p = 0.005 allows 165.7: X must not fall to twice 50 but stay.
//= 5348-4.3-5
//= 5348-8.2.1-1
#[test]
fn an_application_that_sends_less_keeps_its_allowed_rate() {
    for by in BY_EITHER {
        let mut run = Run::started(&[("measured_by", by)], RTT);
        run.run(at(40.0), |p| p.seq % 200 != 199);
        run.set_app(App::Every(ms(20), at(40.0)));
        run.run(at(60.0), |_| true);
        assert!(run.x() > 165.0, "{by}: {}", run.x());
        assert_eq!(run.rate(45.0, 60.0), 50.0, "{by}");
        // And it goes on at X the moment there is more to send.
        run.set_app(App::Bulk);
        run.run(at(61.0), |_| true);
        assert!(run.rate(60.0, 61.0) > 160.0, "{by}: {}", run.rate(60.0, 61.0));
    }
}

/// The same, losing: X is held to what really went through until the next report without a loss.
//= 5348-4.3-4
#[test]
fn an_application_that_sends_less_and_loses_is_held_to_what_arrived() {
    let mut run = Run::started(&[], RTT);
    run.run(at(40.0), |p| p.seq % 200 != 199);
    run.set_app(App::Every(ms(20), at(40.0)));
    let mut lowest = f64::INFINITY;
    let seq = run.sent.len() as u64 + 250;
    for n in 1..=1_000 {
        run.run(at(40.0 + 0.01 * f64::from(n)), |p| p.seq != seq);
        lowest = lowest.min(run.x());
    }
    // The set held 165.7 or so: max(165.7/2, 0.85 * 50) = 83.
    assert!((75.0..=90.0).contains(&lowest), "{lowest}");
    assert!(run.x() > 90.0, "{}", run.x());
}

/// A bound below X is not a lack of data: losses cost what the equation says, and no 15 % on top. So for
/// a demand and for what the breaker bears, which comes the same way.
#[test]
fn a_flow_held_back_by_a_bound_is_not_data_limited() {
    let mut run = Run::started(&[], RTT);
    run.run(at(20.0), |p| p.seq % 200 != 199);
    run.flow.set_demand(run.now, Some(Rate::packets_per_second(100.0, SIZE)));
    let mut lowest = f64::INFINITY;
    for n in 1..=400 {
        run.run(at(20.0 + 0.05 * f64::from(n)), |p| p.seq % 200 != 199);
        lowest = lowest.min(run.x());
    }
    assert!(lowest > 160.0, "{lowest}");
    assert!((run.rate(20.0, 40.0) - 100.0).abs() <= 1.0, "{}", run.rate(20.0, 40.0));
    run.flow.set_demand(run.now, None);
    run.run(at(41.0), |p| p.seq % 200 != 199);
    assert!(run.rate(40.0, 41.0) > 155.0);
}

/// A pause of 20 s: no report, the timer expires again and again. p = 0.005, so X_recv is halved until it
/// is below the recover_rate of 40 packets/s, and no further; then twice that, and slow start up again.
//= 5348-4.4-2
#[test]
fn an_idle_sender_comes_back_at_no_less_than_the_recover_rate() {
    for by in BY_EITHER {
        let mut run = Run::started(&[("measured_by", by)], RTT);
        run.run(at(39.0), |p| p.seq % 200 != 199);
        run.run(at(40.0), |_| true);
        run.set_app(App::Silent);
        run.run(at(60.0), |_| true);
        assert!((40.0..=80.0).contains(&run.x()), "{by}: {}", run.x());
        run.set_app(App::Bulk);
        run.run(at(60.15), |_| true);
        // The report of the first packet, one per RTT, is no reason to send two per RTT. (A timer set in
        // the pause may expire before that report comes, and then costs one half: it is not idle any more.)
        assert!(run.x() >= 20.0, "{by}: {}", run.x());
        run.run(at(62.0), |_| true);
        assert!(run.x() > 165.0, "{by}: {}", run.x());
    }
}

/// The same path gone dead: X halves at every expiry, each at least 0.4 s, and the flow ends by the breaker, not
/// by itself; here there is none.
//= 5348-4.4-4
//= 5348-4.4-5
//= 5348-4.4-7
#[test]
fn a_dead_path_takes_x_to_the_floor() {
    for by in BY_EITHER {
        let mut run = Run::started(&[("measured_by", by)], RTT);
        run.run(at(40.0), |p| p.seq % 200 != 199);
        run.run(at(1_200.0), |_| false);
        // s/64 = 15.6 byte/s
        assert!((run.x() - 1.0 / 64.0).abs() < 1e-6, "{by}: {}", run.x());
        let last: Vec<f64> = run.sent.iter().rev().take(3).map(|p| p.at.as_secs_f64()).collect();
        assert!((last[0] - last[1] - 64.0).abs() < 1e-6, "{by}: {last:?}");
        // The rate comes back: with the first packet's ACK, in up to 64 s, and then at once; a receiver that follows
        // §5.2 takes its time, for each packet at the floor was a loss event.
        run.run(at(1_270.0), |_| true);
        assert!(run.x() > if by == "sender" { 150.0 } else { 0.1 }, "{by}: {}", run.x());
    }
}

/// Eight seconds without anything at 1 in 100, R = 100 ms: as one event p stays near 0.01, as one per R it is
/// 0.67 and X one packet in several seconds.
//= 5348-5.2-3
#[test]
fn an_outage_is_one_loss_event_unless_the_rfc_is_to_be_followed() {
    let after = |outage| {
        let mut run = Run::started(&[("outage", outage)], RTT);
        run.run(at(10.0), |p| p.seq % 100 != 99);
        run.run(at(18.0), |_| false);
        run.run(at(28.0), |p| p.seq % 100 != 99);
        (run.p(), run.rate(27.0, 28.0))
    };
    let (p, rate) = after("one");
    assert!((0.009..=0.013).contains(&p) && (95.0..=120.0).contains(&rate), "{p}, {rate}");
    let (p, rate) = after("rfc");
    assert!((0.5..=0.7).contains(&p) && rate <= 1.0, "{p}, {rate}");
}

// --- pacing --------------------------------------------------------------------------------------

/// At 165.7 packets/s and R = 100 ms a driver that slept for 5 s may make up for 25 ms: 4 packets and the
/// one that is due. At R = 10 ms and 1,657 packets/s for no more than R: 17.
//= 5348-4.6-1
#[test]
fn a_late_driver_makes_up_for_no_more_than_an_rtt() {
    for (rtt, wanted) in [(RTT, 3..=5), (ms(10), 4..=17)] {
        let mut run = Run::started(&[], rtt);
        run.run(at(40.0), |p| p.seq % 200 != 199);
        let before = run.sent.len();
        run.now = at(40.2);
        run.run(at(40.2) + Duration::from_nanos(1), |_| true);
        let burst = run.sent.len() - before;
        assert!(wanted.contains(&burst), "{rtt:?}: {burst} at {}", run.x());
    }
}

/// t_ipi = 25 ms, t_gran = 10 ms, R = 100 ms: half of the least is 5 ms. The schedule itself is not
/// shifted: ten packets take ten times t_ipi.
//= 5348-8.3-1
#[test]
fn a_coarse_driver_may_send_half_a_tick_early() {
    let sent = |t_gran| {
        let mut run = Run::started(&[("t_gran", t_gran)], RTT);
        run.run(at(0.099), |_| true);
        run.sent.iter().map(|p| p.at.as_nanos() / 1_000).collect::<Vec<u64>>()
    };
    assert_eq!(sent("0 ms"), [0, 25_000, 50_000, 75_000]);
    assert_eq!(sent("10 ms"), [0, 20_000, 45_000, 70_000, 95_000]);
    // min(25, 80, 100)/2 = 12.5
    assert_eq!(sent("80 ms"), [0, 12_500, 37_500, 62_500, 87_500]);
}

/// Packets of 400 and 600 bytes by turns where 1,000 is the largest: s = 500, so that as many packets leave
/// as p allows, and half the bytes.
//= 5348-4.1-1
#[test]
fn where_sizes_vary_s_is_their_mean() {
    let mut run = Run::started(&[], RTT);
    for n in 1..=12_000 {
        run.size = Bytes::new(if n % 2 == 0 { 400 } else { 600 });
        run.run(at(0.005 * f64::from(n)), |p| p.seq % 200 != 199);
    }
    assert!((run.rate(40.0, 60.0) - 165.74).abs() < 3.0, "{}", run.rate(40.0, 60.0));
    let s = run.tfrc().sizes.mean().expect("sent");
    assert!((s - 500.0).abs() < 25.0, "{s}");
}

/// Over the open interval and four before it.
//= 5348-4.1-1
//= 4828-3-5
#[test]
fn the_mean_size_forgets_the_fifth_loss_interval() {
    let mut sizes = Sizes::default();
    assert_eq!(sizes.mean(), None);
    sizes.add(Bytes::new(100));
    for size in [200, 300, 400, 500] {
        sizes.next_interval();
        sizes.add(Bytes::new(size));
    }
    assert_eq!(sizes.mean(), Some(300.0));
    sizes.next_interval();
    assert_eq!(sizes.mean(), Some(350.0));
}

// --- marks ---------------------------------------------------------------------------------------

//= 5348-9-1
#[test]
fn a_mark_counts_as_a_loss_only_if_marks_are_heeded() {
    for ecn in ["on", "off"] {
        let mut run = Run::started(&[("ecn", ecn)], RTT);
        run.run(at(1.0), |_| true);
        let heeds = ecn == "on";
        assert_eq!(run.flow.controller().heeds_ecn(), heeds);
        let seq = run.back.values().find_map(|b| match b {
            Back::Ack(ack) => Some(ack.seq),
            Back::Report(_) | Back::Response(_) => None,
        });
        let marked = Ack { ecn: Ecn::Ce, ..Ack::immediate(Kind::Data, seq.expect("in flight")) };
        acknowledge(&mut run.flow, at(1.001), &[marked]);
        run.flow.poll(at(1.001), false);
        assert_eq!(run.p() > 0.0, heeds, "{ecn}");
        assert_eq!(run.flow.counters().data.lost, 0);
    }
}

/// The span of a report ends with the last departure that was acknowledged, in whatever order ACKs come.
#[test]
fn an_acknowledgement_that_was_overtaken_does_not_bring_t_recvdata_back() {
    let mut run = Run::started(&[], RTT);
    run.run(at(0.3), |_| true);
    let newest = run.sent.len() - 1;
    let acks = [newest, newest - 1].map(|i| Ack::immediate(Kind::Data, run.sent[i].seq));
    acknowledge(&mut run.flow, run.now, &acks);
    assert_eq!(run.tfrc().measured.latest, run.sent[newest].at);
}

/// A packet that comes after all takes its loss event back, in time for the next report.
//= 5348-5.1-2
#[test]
fn a_late_packet_takes_the_loss_back() {
    let mut run = Run::started(&[], RTT);
    run.run(at(0.6), |p| p.seq != 20);
    assert!(run.p() > 0.0 && run.sent.len() < 500, "{}", run.sent.len());
    acknowledge(&mut run.flow, run.now, &[Ack::immediate(Kind::Data, 20)]);
    run.run(at(0.8), |_| true);
    assert_eq!(run.p(), 0.0);
}

// --- TFRC-SP -------------------------------------------------------------------------------------

fn voice() -> Env {
    Env { packet_size: Bytes::new(160), ..paper() }
}

/// However fast the equation is, packets leave 10 ms apart; with a coarse timer three within 30 ms.
//= 4828-3-2
//= 5622-5-1
#[test]
fn small_packets_leave_10_ms_apart() {
    for t_gran in ["0 ms", "10 ms"] {
        let mut run = Run::of("tfrc-sp", &[("t_gran", t_gran)], &voice(), RTT);
        run.size = Bytes::new(160);
        run.flow.start(Instant::ZERO, Some(RTT));
        run.run(at(10.0), |_| true);
        let apart = |n: usize| run.sent.windows(n + 1).map(|w| w[n].at.since(w[0].at)).min();
        assert!(apart(3) >= Some(ms(30)), "{t_gran}: {:?}", apart(3));
        if t_gran == "0 ms" {
            assert_eq!(apart(1), Some(ms(10)));
        }
        assert!((run.rate(5.0, 10.0) - 100.0).abs() <= 1.0, "{t_gran}: {}", run.rate(5.0, 10.0));
        assert_eq!(run.flow.target_rate(), Rate::packets_per_second(100.0, Bytes::new(160)));
        // A driver that slept for a second makes up for nothing, or for two.
        let before = run.sent.len();
        run.now = at(11.0);
        run.run(at(11.0) + Duration::from_nanos(1), |_| true);
        assert!(run.sent.len() - before <= if t_gran == "0 ms" { 1 } else { 3 });
    }
}

/// p = 0.05 at R = 0.1 s: 1,460-byte segments may use 53,814 byte/s; 160-byte packets get 160/200 of it,
/// 43,051 byte/s or 269 packets/s, of which 100 leave; at p = 0.2, 7,834 * 0.8 / 160 = 39.2 packets/s.
//= 4828-3-1
//= 4828-4.2-1
#[test]
fn small_packets_get_the_bytes_of_large_ones_less_their_headers() {
    for (every, wanted) in [(20, 100.0), (5, 39.17)] {
        let mut run = Run::of("tfrc-sp", &[], &voice(), RTT);
        run.size = Bytes::new(160);
        run.flow.start(Instant::ZERO, Some(RTT));
        run.run(at(80.0), |p| p.seq % every != 0);
        let rate = run.rate(40.0, 80.0);
        assert!((rate / wanted - 1.0).abs() < 0.03, "{every}: {rate} packets/s at p = {}", run.p());
    }
}
