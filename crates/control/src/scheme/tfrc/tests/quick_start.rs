//! TFRC that asks the routers [RFC 5634 §3.2] [qsd §3.3].

use super::*;
use crate::{QsCounters, QuickStartParams};

/// [qsd §3.3]: 256 kbit/s in packets of 1,316 bytes, so 320 kbit/s are asked for.
fn video() -> (Env, FlowParams) {
    let env = Env { packet_size: Bytes::new(1_316), ..paper() };
    let quick_start = QuickStartParams::new(Rate::kbps(256.0), 1).expect("256 kbit/s can be asked for");
    (env, FlowParams { quick_start: Some(quick_start), trace: true, ..FlowParams::new(&env) })
}

const R: Duration = Duration::from_millis(800);
/// s/R and QS_sendrate, bytes per second.
const S_PER_R: f64 = 1_645.0;
const QS: f64 = 39_050.445;

/// RFC 3448 and a receiver that measures, as in [qsd].
const QSD: [(&str, &str); 4] =
    [("rfc", "3448"), ("measured_by", "receiver"), ("smoothing", "off"), ("qs_validation", "next")];

fn path(settings: &[(&str, &str)], rtt: Duration) -> Run {
    let (env, params) = video();
    let mut run = Run::with("tfrc", settings, &env, rtt, params);
    run.size = env.packet_size;
    run
}

/// X in bytes per second.
fn x(flow: &Flow) -> f64 {
    as_scheme::<Tfrc>(flow.controller()).x().as_bps() / 8.0
}

fn counters(flow: &Flow) -> QsCounters {
    *flow.quick_start().expect("this flow asks")
}

/// A flow whose feedback the test makes up.
struct Script {
    flow: Flow,
    now: f64,
    departures: Vec<Instant>,
    options: Vec<(f64, QsOption)>,
}

impl Script {
    fn new(settings: &[(&str, &str)], srtt: Option<Duration>) -> Script {
        let (env, params) = video();
        let mut flow = Flow::new(made("tfrc", settings, &env), params);
        flow.start(at(0.0), srtt);
        Script { flow, now: 0.0, departures: Vec::new(), options: Vec::new() }
    }

    /// Sends what is due before `end`, with data always there.
    fn run(&mut self, end: f64) {
        while self.now < end {
            self.now = match self.flow.poll(at(self.now), true) {
                Transmit::Send(p) => {
                    self.flow.on_sent(at(self.now), p, Bytes::new(1_316));
                    self.departures.push(at(self.now));
                    self.options.extend(p.quick_start.map(|o| (self.now, o)));
                    continue;
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => {
                    t.as_secs_f64().min(end)
                }
                Transmit::Stopped(reason) => panic!("{reason}"),
            };
        }
    }

    /// A report on the packets up to number `seq`, without delay but for what exceeds one RTT.
    fn report(&mut self, seq: usize, x_recv: f64, p: f64) {
        let echoed = self.departures[seq];
        let delay = at(self.now).since(echoed).saturating_sub(R);
        let report = RateReport { echoed, delay, received_rate: Rate::bps(8.0 * x_recv), loss_event_rate: p };
        tell(&mut self.flow, at(self.now), Message::Measured(&report));
        assert_eq!(self.flow.counters().bad, IgnoredFeedback::default(), "at {}", self.now);
    }

    /// Runs the timers.
    fn x(&mut self) -> f64 {
        self.flow.poll(at(self.now), false);
        x(&self.flow)
    }

    fn state(&self) -> &'static str {
        self.flow.status().state
    }

    /// The request of the first packet, and the response to it.
    fn request(&self) -> QsOption {
        self.options[0].1
    }
}

/// The single flow of [qsd §3.3, §3.5] by hand. R = 0.8 s. The terminal has 44 kbit/s = 5,500 byte/s until
/// 3.1 s as the receiver sees it, then 40,000 byte/s. s = 1,316, H = 32, so QS_sendrate = 39,050.445 byte/s.
///
/// | report | sent | arrives | covers | X_recv | X |
/// | --- | --- | --- | --- | --- | --- |
/// | first, with the response | 0.4 | 0.8 | nothing | 0 | s/R = 1,645, then 39,050.445 |
/// | of the first QS packet | 1.2 | 1.6 | to 1.2 | s/R = 1,645 | stays |
/// | second | 2.0 | 2.4 | 1.2 to 2.0 | 5,500 | min(2 · 39,050, 2 · 5,500) = 11,000 |
/// | third | 2.8 | 3.2 | 2.0 to 2.8 | 5,500 | min(2 · 11,000, 2 · 5,500) = 11,000 |
/// | fourth | 3.6 | 4.0 | 2.8 to 3.6 | (0.3 · 5,500 + 0.5 · 40,000)/0.8 = 27,062.5 | min(2 · 11,000, 54,125) = 22,000 |
/// | fifth | 4.4 | 4.8 | 3.6 to 4.4 | 40,000 | min(2 · 22,000, 80,000) = 44,000: above 256 kbit/s |
///
/// With `qs_validation = all` the second report does not end the validation, of which not all packets are
/// acknowledged: its time, two RTT, ends with the third report.
//= 5634-2-1
//= 5634-2.1-1
//= 5634-2.1-4
//= 5634-2.3-4
//= 5634-2.3-5
//= 5634-3.2.1-1
//= 5634-3.2.3-1
//= 5634-3.2.4-2
//= 4782-3.1-9
//= 4782-4.1-1
#[test]
fn the_five_reports_of_the_papers_flow() {
    for (validation, second, state) in [("next", 11_000.0, "SlowStart"), ("all", QS, "Validation")] {
        let mut settings = QSD;
        settings[3].1 = validation;
        let mut t = Script::new(&settings, None);
        t.run(0.8);
        let [(asked_at, request)] = t.options[..] else { panic!("{:?}", t.options) };
        assert_eq!((asked_at, request.function, request.rate.rate()), (0.0, QsFunction::Request, Rate::kbps(320.0)));
        assert_eq!((t.x(), t.state()), (1_316.0, "Waiting"));
        t.report(0, 0.0, 0.0);
        assert!((t.x() - S_PER_R).abs() < 1e-6);
        t.flow.on_quick_start_response(at(0.8), &request.response());
        assert!((t.x() - QS).abs() < 1e-3);
        assert_eq!((t.state(), t.flow.status().reason), ("QuickStart", "Quick-Start"));

        // When it arrives, the last packet it covers, X_recv; X and the state then. Quick-Start packet k leaves at
        // 0.8 s + 33.7 ms k, and is number k + 1.
        let reports = [
            (1.6, 1, S_PER_R, QS, "Validation"),
            (2.4, 4, 5_500.0, second, state),
            (3.2, 7, 5_500.0, 11_000.0, "SlowStart"),
            (4.0, 24, 27_062.5, 22_000.0, "SlowStart"),
            (4.8, 48, 40_000.0, 44_000.0, "SlowStart"),
        ];
        for (arrives, seq, x_recv, wanted, state) in reports {
            t.run(arrives);
            t.report(seq, x_recv, 0.0);
            let x = t.x();
            assert!((x - wanted).abs() < 1e-3, "{validation}, at {arrives}: {x}, not {wanted}");
            assert_eq!(t.state(), state, "{validation}, at {arrives}");
        }
        // The routers are told with the first Quick-Start packet.
        let (told_at, told) = t.options[1];
        assert_eq!(
            (told_at, told.function, told.rate, told.nonce),
            (0.8, QsFunction::Report, request.rate, request.nonce)
        );
        assert_eq!(counters(&t.flow), QsCounters { asked: 1, approved: 1, reports: 1, ..QsCounters::default() });
    }
}

/// The sixth report of the same flow, sent at 5.2 s and there at 5.6: the queue still gives 40,000 byte/s, and what
/// comes left at 11,000 byte/s and 22,000, numbers 48 to 72. The receiver is believed only where bursts are expected:
/// X = min(2 · 44,000, 2 · 39,480), with 39,480 = 24 · 1,316 / 0.8 that left between the two echoes; otherwise twice
/// the 14,264 at which they left: 228 kbit/s, and less than the media.
#[test]
fn what_a_granted_link_delivers_is_not_taken_for_a_lie() {
    for (bursty_path, least, most) in [(true, 78_959.0, 78_961.0), (false, 28_000.0, 29_000.0)] {
        let (env, params) = video();
        let mut t = Script::new(&QSD, None);
        t.flow = Flow::new(made("tfrc", &QSD, &env), FlowParams { bursty_path, ..params });
        t.flow.start(at(0.0), None);
        t.run(0.8);
        t.report(0, 0.0, 0.0);
        t.flow.on_quick_start_response(at(0.8), &t.request().response());
        for (arrives, seq, x_recv) in [
            (1.6, 1, S_PER_R),
            (2.4, 4, 5_500.0),
            (3.2, 7, 5_500.0),
            (4.0, 24, 27_062.5),
            (4.8, 48, 40_000.0),
            (5.6, 72, 40_000.0),
        ] {
            t.run(arrives);
            t.report(seq, x_recv, 0.0);
        }
        let x = t.x();
        assert!((least..=most).contains(&x), "{bursty_path}: {x}");
    }
}

/// Paced: at 0.8 s + 1,316 / 39,050.445 s each, 24 of them in Quick-Start Mode.
//= 5634-2.3.1-1
//= 5634-3.2.3-5
//= 4782-4.4-8
#[test]
fn quick_start_packets_are_paced() {
    let mut t = Script::new(&QSD, None);
    t.run(0.8);
    t.report(0, 0.0, 0.0);
    t.flow.on_quick_start_response(at(0.8), &t.request().response());
    t.run(1.6);
    assert_eq!(t.departures.len(), 1 + 24);
    for (k, departure) in t.departures[1..].iter().enumerate() {
        let due = at(0.8 + k as f64 * 1_316.0 / QS);
        assert!(departure.since(due).max(due.since(*departure)) < Duration::from_micros(1), "{k}: {departure}");
    }
}

/// A loss, in the mode (reported with the request's packet once more) and in the validation. The equation at p = 0.1,
/// R = 0.8 s gives 1,316 / (0.8 (sqrt(0.2/3) + 12 sqrt(0.0375) 0.1 · 1.32)) = 2,911.818 byte/s, far below twice what
/// was received. No more requests after that, whatever the idle time.
//= 5634-2.5-1
//= 5634-3.2.3-6
//= 5634-3.2.5-1
//= 5634-3.2.5-2
//= 4782-4.6-1
//= 4782-4.6-2
//= 4782-4.6-3
#[test]
fn a_loss_ends_it_at_once_and_for_good() {
    for (when, seq, state) in [(1.2, 0, "QuickStart"), (1.8, 5, "Validation")] {
        let mut t = Script::new(&QSD, None);
        t.run(0.8);
        t.report(0, 0.0, 0.0);
        t.flow.on_quick_start_response(at(0.8), &t.request().response());
        t.run(when);
        assert_eq!(t.state(), state);
        t.report(seq, 30_000.0, 0.1);
        let x = t.x();
        assert_eq!(t.state(), "Avoidance");
        assert!((x - 2_911.818).abs() < 1e-3, "{x}");
        t.now = 60.0;
        t.x();
        t.run(61.0);
        assert_eq!(counters(&t.flow).asked, 1);
    }
}

/// The last Quick-Start packet but one is lost, or all of them: the validation is over, by the ACK
/// of the last one or because nothing was heard, when that is known. A packet sent later and lost does not count.
//= 4782-4.6-3
#[test]
fn a_quick_start_packet_that_is_known_lost_only_later_was_the_last_to_be_asked_for() {
    let asked = |lost: fn(u64) -> bool| {
        let mut run = path(&[], ms(500));
        run.flow.start(Instant::ZERO, None);
        run.run(at(5.0), |p| !lost(p.seq));
        run.set_app(App::Silent);
        run.run(at(65.0), |_| true);
        run.set_app(App::Bulk);
        run.run(at(66.0), |_| true);
        let mode = run.sent.iter().filter(|p| (at(0.5)..at(1.0)).contains(&p.at)).map(|p| p.seq);
        assert!(mode.eq(1..=15), "the Quick-Start packets");
        counters(&run.flow).asked
    };
    assert_eq!(asked(|_| false), 2);
    assert_eq!(asked(|seq| seq == 14), 1, "the last but one");
    assert_eq!(asked(|seq| (1..=44).contains(&seq)), 1, "all, and those of the validation");
    assert_eq!(asked(|seq| seq == 40), 2, "one of those that left later");
}

/// A loss that is reported with the response: the approval is reported, and not used.
//= 5634-3.2.3-3
#[test]
fn a_loss_since_the_request_keeps_the_rate_as_it_is() {
    let mut t = Script::new(&QSD, None);
    t.run(0.8);
    t.report(0, S_PER_R, 0.1);
    let x = t.x();
    t.flow.on_quick_start_response(at(0.8), &t.request().response());
    assert_eq!((t.x(), t.state()), (x, "Avoidance"));
    t.run(2.0);
    assert_eq!(t.options[1].1.rate, t.request().rate);
}

/// The first report shows an RTT of 0.1 s: W_init of 4,380 bytes in that time is more than was approved.
//= 5634-3.2.3-2
//= 4782-3.1-12
#[test]
fn an_approval_below_the_rate_changes_nothing() {
    let mut t = Script::new(&[("measured_by", "receiver")], None);
    t.run(0.1);
    t.report(0, 0.0, 0.0);
    assert!((t.x() - 43_800.0).abs() < 1e-6);
    t.flow.on_quick_start_response(at(0.1), &t.request().response());
    assert_eq!(t.state(), "SlowStart");
    assert!((t.x() - 43_800.0).abs() < 1e-6);
    assert_eq!(counters(&t.flow).approved, 1);
}

/// Everything sent at the approved rate is lost: 0.8 s of mode, 1.6 s of validation, then min(1,645, 19,525); the
/// no-feedback timer runs from there, 4 R.
//= 5634-3.2.3-7
//= 5634-3.2.4-3
//= 5634-3.2.4-4
#[test]
fn without_feedback_the_rate_is_what_it_was() {
    let mut t = Script::new(&QSD, None);
    t.run(0.8);
    t.report(0, 0.0, 0.0);
    t.flow.on_quick_start_response(at(0.8), &t.request().response());
    t.run(3.199);
    assert!((t.x() - QS).abs() < 1e-3);
    assert_eq!(t.state(), "Validation");
    t.run(3.2);
    assert!((t.x() - S_PER_R).abs() < 1e-6);
    assert_eq!(t.flow.status().reason, "no feedback after Quick-Start");
    t.run(6.399);
    t.x();
    assert_eq!(t.flow.status().reason, "no feedback after Quick-Start");
    t.run(6.4);
    t.x();
    assert_eq!(t.flow.status().reason, "no feedback");
}

/// As in the table above, but the second report lowers X to X_recv, 5,500, from where the third doubles it as there.
#[test]
fn the_second_report_lowers_x_to_what_was_received_if_that_is_the_reading() {
    let settings = [&QSD[..], &[("qs_limit", "received")]].concat();
    let mut t = Script::new(&settings, None);
    t.run(0.8);
    t.report(0, 0.0, 0.0);
    t.flow.on_quick_start_response(at(0.8), &t.request().response());
    for (arrives, seq, x_recv, wanted) in
        [(1.6, 1, S_PER_R, QS), (2.4, 4, 5_500.0, 5_500.0), (3.2, 7, 5_500.0, 11_000.0), (4.0, 24, 27_062.5, 22_000.0)]
    {
        t.run(arrives);
        t.report(seq, x_recv, 0.0);
        let x = t.x();
        assert!((x - wanted).abs() < 1e-3, "at {arrives}: {x}, not {wanted}");
    }
}

/// While it waits for the response it sends a packet per second, or nothing more; both until the timer of 2 s, or 3 s.
#[test]
fn what_leaves_before_the_response_and_when_it_gives_up() {
    let departures = |settings: &[(&str, &str)]| {
        let mut t = Script::new(settings, None);
        t.run(6.5);
        assert_eq!(t.options.len(), 1, "asked once");
        t.departures.iter().map(|t| t.as_secs_f64()).collect::<Vec<_>>()
    };
    // The first expiry halves X: a packet in 2 s.
    assert_eq!(departures(&[]), [0.0, 1.0, 3.0, 5.0]);
    assert_eq!(departures(&[("first_timer", "3 s")]), [0.0, 1.0, 2.0, 4.0, 6.0]);
    assert_eq!(departures(&[("qs_wait", "on")]), [0.0, 2.0, 4.0]);
    assert_eq!(departures(&[("qs_wait", "on"), ("first_timer", "3 s")]), [0.0, 3.0, 5.0]);
}

/// With `qs_wait` a feedback without an answer lets it go on, and so does the answer.
//= 5634-2.4-1
#[test]
fn waiting_ends_with_any_feedback() {
    for answered in [true, false] {
        let mut t = Script::new(&[QSD[0], QSD[1], ("qs_wait", "on")], None);
        t.run(1.5);
        assert_eq!(t.departures.len(), 1);
        t.report(0, 0.0, 0.0);
        if answered {
            t.flow.on_quick_start_response(at(1.5), &t.request().response());
        }
        t.run(1.6);
        assert_eq!(t.departures[1], at(1.5));
        assert_eq!(t.state(), if answered { "QuickStart" } else { "SlowStart" });
    }
}

// --- on a path -----------------------------------------------------------------------------------

/// 320 kbit/s on an empty path of 0.5 s, from whatever is known at the start, whoever measures: approved after one
/// RTT, used, acknowledged, and slow start goes on from there.
//= 5634-2.3.2-3
#[test]
fn on_an_empty_path_slow_start_goes_on_from_the_approved_rate() {
    for by in BY_EITHER {
        for rfc in ["3448", "5348"] {
            for srtt in [None, Some(ms(500))] {
                let mut run = path(&[("measured_by", by), ("rfc", rfc)], ms(500));
                run.flow.start(Instant::ZERO, srtt);
                let case = format!("{by}, {rfc}, {srtt:?}");
                run.run(at(0.75), |_| true);
                assert_eq!(run.flow.status().state, "QuickStart", "{case}");
                assert!((x(&run.flow) - QS).abs() < 1e-3, "{case}: {}", x(&run.flow));
                run.run(at(1.25), |_| true);
                assert_eq!(run.flow.status().state, "Validation", "{case}");
                run.run(at(2.5), |_| true);
                assert_eq!(run.flow.status().state, "SlowStart", "{case}");
                assert!(x(&run.flow) > 1.5 * QS, "{case}: {}", x(&run.flow));
                assert_eq!(run.flow.counters().data.lost, 0, "{case}");
                let rates: Vec<_> = run.options.iter().map(|(_, o)| (o.function, o.rate.code())).collect();
                assert_eq!(rates, [(QsFunction::Request, 3), (QsFunction::Report, 3)], "{case}");
            }
        }
    }
}

/// An RTT of 2.05 s, as with T_q = 1,273 ms, and one of 20 s: the no-feedback timer expires before the response, more
/// than once; X comes down and the approval is used all the same.
#[test]
fn a_response_that_takes_longer_than_the_first_timer_is_used() {
    for by in BY_EITHER {
        for wait in ["on", "off"] {
            for rtt in [2.05, 20.0] {
                let rtt = Duration::from_secs_f64(rtt);
                let mut run = path(&[("measured_by", by), ("qs_wait", wait), ("rfc", "3448")], rtt);
                run.flow.start(Instant::ZERO, None);
                let answered = Instant::ZERO + rtt;
                run.run(answered, |_| true);
                let case = format!("{by}, {wait}, {rtt:?}");
                assert_eq!((run.flow.status().state, run.flow.status().reason), ("Waiting", "no feedback"), "{case}");
                run.run(answered + ms(1), |_| true);
                assert_eq!(run.flow.status().state, "QuickStart", "{case}");
                run.run(answered + rtt * 7 / 2, |_| true);
                assert!(x(&run.flow) > 1.5 * QS, "{case}: {}", x(&run.flow));
                assert_eq!(
                    counters(&run.flow),
                    QsCounters { asked: 1, approved: 1, reports: 1, ..QsCounters::default() }
                );
            }
        }
    }
}

/// The path holds 8 packets and carries 15 per second, half of what its routers approved: the losses bring X to what it bears.
//= 5634-3.2.5-1
#[test]
fn an_approval_that_was_wrong_is_taken_back_by_its_losses() {
    for by in BY_EITHER {
        let mut run = path(&[("measured_by", by)], ms(500));
        run.bottleneck = Some((15.0, 8));
        run.flow.start(Instant::ZERO, None);
        run.run(at(30.0), |_| true);
        let rate = run.rate(20.0, 30.0);
        assert!((8.0..=16.0).contains(&rate), "{by}: {rate} packets/s");
        assert_eq!(counters(&run.flow).asked, 1, "{by}");
    }
}

/// A router that refuses, and one that does not know of Quick-Start.
//= 5634-2.4-1
//= 4782-4.4-3
#[test]
fn without_an_approval_it_is_as_without_a_request() {
    let plain = |by| {
        let mut run = path(&[("measured_by", by)], ms(500));
        run.flow = Flow::new(made("tfrc", &[("measured_by", by)], &video().0), FlowParams::new(&video().0));
        run.flow.start(Instant::ZERO, None);
        run.run(at(5.0), |_| true);
        run.sent.iter().map(|p| p.at).collect::<Vec<_>>()
    };
    type Refusal = (fn(&mut QsOption), QsCounters);
    let refused: [Refusal; 2] = [
        (|o| o.rate = QsRate::ZERO, QsCounters { asked: 1, unanswered: 1, reports: 1, ..QsCounters::default() }),
        (|o| o.ip_ttl -= 1, QsCounters { asked: 1, bad_ttl: 1, reports: 1, ..QsCounters::default() }),
    ];
    for by in BY_EITHER {
        for (routers, wanted) in refused {
            let mut run = path(&[("measured_by", by)], ms(500));
            run.routers = routers;
            run.flow.start(Instant::ZERO, None);
            run.run(at(5.0), |_| true);
            assert_eq!(counters(&run.flow), wanted, "{by}");
            assert!(plain(by) == run.sent.iter().map(|p| p.at).collect::<Vec<_>>(), "{by}");
            let (_, report) = run.options[1];
            assert_eq!((report.function, report.rate), (QsFunction::Report, QsRate::ZERO));
        }
    }
}

/// Idle from 5 s to 35 s: X has come down to what it could start with, and it asks again.
//= 5634-2.1-2
//= 5634-3.2.1-2
#[test]
fn after_an_idle_time_it_asks_again() {
    for by in BY_EITHER {
        let mut run = path(&[("measured_by", by)], ms(500));
        run.flow.start(Instant::ZERO, None);
        run.run(at(5.0), |_| true);
        run.set_app(App::Silent);
        run.run(at(35.0), |_| true);
        let before = x(&run.flow);
        assert!(before < 20_000.0, "{by}: {before}");
        run.set_app(App::Bulk);
        run.run(at(36.0), |_| true);
        assert_eq!(counters(&run.flow).approved, 2, "{by}");
        assert!((x(&run.flow) - QS).abs() < 1e-3, "{by}");
        let requests: Vec<_> = run.options.iter().filter(|(_, o)| o.function == QsFunction::Request).collect();
        assert_eq!(requests[1].0, at(35.0), "{by}: with the first packet");
    }
}

/// p = 0.01 and R = 0.5 s, so 1,316 · 11.2 / 0.5 = 29,560 byte/s without headers: 236 kbit/s, and 160 are asked for.
//= 5634-3.2.1-3
#[test]
fn a_request_names_no_more_than_the_equation_gives() {
    for by in BY_EITHER {
        let mut run = path(&[("measured_by", by)], ms(500));
        run.routers = |o| o.rate = QsRate::ZERO;
        run.flow.start(Instant::ZERO, None);
        run.run(at(60.0), |p| p.seq % 100 != 99);
        let p = run.p();
        assert!((0.008..0.012).contains(&p), "{by}: {p}");
        run.set_app(App::Silent);
        run.run(at(120.0), |_| true);
        assert!(x(&run.flow) < 20_000.0, "{by}: {}", x(&run.flow));
        run.set_app(App::Bulk);
        run.run(at(120.1), |_| true);
        let (_, last) = run.options.last().expect("asked again");
        assert_eq!((last.function, last.rate.rate()), (QsFunction::Request, Rate::kbps(160.0)), "{by}");
    }
}

/// The first Quick-Start packet is marked. Its ACK comes 0.5 s after it left, and at that instant it is over.
//= 5634-2.5-1
//= 5634-3.2.5-1
//= 4782-4.6-1
#[test]
fn a_mark_is_a_loss() {
    for (ecn, state) in [("on", "Avoidance"), ("off", "Validation")] {
        let mut run = path(&[("ecn", ecn)], ms(500));
        run.flow.start(Instant::ZERO, None);
        run.run(at(0.9), |_| true);
        let marked = Ack { ecn: Ecn::Ce, ..Ack::immediate(Kind::Data, 1) };
        assert_eq!(run.sent[1].at, at(0.5));
        run.back.clear();
        run.run(at(1.0), |_| false);
        acknowledge(&mut run.flow, at(1.0), &[marked]);
        run.flow.poll(at(1.0), false);
        assert_eq!(run.flow.status().state, state, "{ecn}");
    }
}

// --- TFRC-SP -------------------------------------------------------------------------------------

/// 16 kbit/s in packets of 160 bytes, H = 40 of its own: 100 packets/s are 160 kbit/s with headers, so of 1 Mbit/s 160
/// kbit/s are asked for, and give 20,000 · 160/200 = 16,000 byte/s: 100 packets/s. The parameters' 32 bytes do not count.
//= 5634-3.3.1-1
//= 5634-3.3.3-1
//= 5634-3.3.3-2
#[test]
fn small_packets_ask_for_100_per_second_at_most_and_count_headers_once() {
    let env = Env { packet_size: Bytes::new(160), ..paper() };
    let quick_start = Some(QuickStartParams::new(Rate::mbps(1.0), 1).expect("1 Mbit/s can be asked for"));
    let mut run = Run::with("tfrc-sp", &[], &env, ms(500), FlowParams { quick_start, ..FlowParams::new(&env) });
    run.size = env.packet_size;
    run.flow.start(Instant::ZERO, None);
    run.run(at(0.75), |_| true);
    assert_eq!(run.options[0].1.rate.rate(), Rate::kbps(160.0));
    assert_eq!((x(&run.flow), run.flow.status().state), (16_000.0, "QuickStart"));
    // A loss: the equation of TFRC-SP.
    run.run(at(1.3), |p| p.at < at(0.9));
    run.run(at(3.0), |_| true);
    assert_eq!((run.flow.status().state, run.flow.status().reason), ("Avoidance", "the equation"));
}

/// 20 bytes: 100 packets of 60 bytes per second are 48 kbit/s, less than the option can say.
//= 5634-3.3.1-1
#[test]
fn the_smallest_packets_have_nothing_to_ask_for() {
    let env = Env { packet_size: Bytes::new(20), ..paper() };
    let quick_start = Some(QuickStartParams::new(Rate::kbps(80.0), 1).expect("80 kbit/s can be asked for"));
    let mut run = Run::with("tfrc-sp", &[], &env, ms(500), FlowParams { quick_start, ..FlowParams::new(&env) });
    run.size = env.packet_size;
    run.flow.start(Instant::ZERO, None);
    run.run(at(2.0), |_| true);
    assert_eq!(counters(&run.flow), QsCounters::default());
}
