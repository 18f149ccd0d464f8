//! Reports that lie, repeat or come too often.

use super::*;
use crate::Equation;
use crate::tfrc::history::Discounting;

fn report(echoed: Instant, delay: Duration, x_recv: f64, p: f64) -> RateReport {
    RateReport { echoed, delay, received_rate: Rate::packets_per_second(x_recv, SIZE), loss_event_rate: p }
}

/// 60 s measured by an honest receiver at 1 in 200; all feedback under way is dropped.
fn steady() -> Run {
    steady_with(&[("measured_by", "receiver")])
}

fn steady_with(settings: &[(&str, &str)]) -> Run {
    let mut run = Run::started(settings, RTT);
    run.run(at(20.0), |p| p.seq % 200 != 199);
    (run.there, run.back, run.receiver) = (BTreeMap::new(), BTreeMap::new(), None);
    assert_eq!(run.flow.counters().bad, IgnoredFeedback::default());
    run
}

fn last(run: &Run, back: usize) -> Instant {
    run.sent[run.sent.len() - 1 - back].at
}

//= 5348-10-1
#[test]
fn impossible_reports_are_counted_and_change_nothing() {
    let mut run = steady();
    let now = run.now;
    let (echoed, x) = (last(&run, 1), run.x());
    let lies = [
        ("p is not a number", report(echoed, Duration::ZERO, x, f64::NAN)),
        ("p above 1", report(echoed, Duration::ZERO, x, 1.0 + 1e-9)),
        ("p below 0", report(echoed, Duration::ZERO, x, -1e-9)),
        ("p infinite", report(echoed, Duration::ZERO, x, f64::INFINITY)),
        ("held back since before it was sent", report(echoed, now.since(echoed) + Duration::from_nanos(1), x, 0.0)),
        ("held back for ever", report(echoed, Duration::MAX, x, 0.0)),
        ("echoes the future", report(now + Duration::from_nanos(1), Duration::ZERO, x, 0.0)),
        ("echoes never", report(Instant::NEVER, Duration::ZERO, x, 0.0)),
        ("echoes no departure", report(echoed + ms(2), Duration::ZERO, x, 0.0)),
        ("echoes the start", report(Instant::ZERO, Duration::ZERO, x, 0.0)),
    ];
    let before = (run.x(), run.p(), run.tfrc().rtt(), run.flow.rtt().clone(), run.flow.flight());
    for (n, (why, lie)) in lies.into_iter().enumerate() {
        tell(&mut run.flow, now, Message::Measured(&lie));
        let after = (run.x(), run.p(), run.tfrc().rtt(), run.flow.rtt().clone(), run.flow.flight());
        assert_eq!(before, after, "{why}");
        assert_eq!(
            run.flow.counters().bad,
            IgnoredFeedback { report: n as u64 + 1, ..IgnoredFeedback::default() },
            "{why}"
        );
    }
    // And a true one does.
    tell(&mut run.flow, now, Message::Measured(&report(echoed, Duration::ZERO, x, 0.02)));
    assert_eq!(run.p(), 0.02);
}

#[test]
fn a_scheme_that_takes_acknowledgements_takes_no_reports() {
    let mut run = Run::started(&[], RTT);
    run.run(at(1.0), |_| true);
    let x = run.x();
    let first = report(last(&run, 0), Duration::ZERO, 1e6, 0.5);
    tell(&mut run.flow, at(1.0), Message::Measured(&first));
    assert_eq!((run.x(), run.flow.counters().bad.report), (x, 1));
}

/// `Flow`'s SRTT goes into each packet's header; where the receiver measures it is R, whatever the queue does.
//= 5348-5.2-5
#[test]
fn the_rtt_that_packets_carry_is_r() {
    let mut run = Run::started(&[("measured_by", "receiver")], RTT);
    run.bottleneck = Some((200.0, 10));
    run.run(at(30.0), |_| true);
    let r = run.tfrc().rtt().expect("measured");
    assert!(r > RTT + ms(10), "a queue: {r:?}");
    let carried = run.flow.srtt().expect("measured");
    assert!(carried.abs_diff(r) < Duration::from_micros(1), "{carried:?}, {r:?}");
}

/// The settings that a receiver must have to fit its sender.
#[test]
fn the_receivers_settings_are_the_senders() {
    let of = |scheme, settings: &[(&str, &str)]| Run::of(scheme, settings, &paper(), RTT).tfrc().receiver_params();
    assert_eq!(of("tfrc", &[]), ReceiverParams::default());
    let settings = [
        ("equation", "simple"),
        ("discounting", "on"),
        ("header", "36"),
        ("measured_by", "receiver"),
        ("losses", "ns2"),
    ];
    let discounting = Discounting::ToQuarter;
    let wanted = ReceiverParams {
        equation: Equation::Simple,
        discounting,
        small_packets: Some(36.0),
        as_ns2: true,
        ..ReceiverParams::default()
    };
    assert_eq!(of("tfrc-sp", &settings), wanted);
}

/// A sender that measures by itself counts losses and makes reports by the RFC: what it was asked for besides is refused.
#[test]
fn what_only_a_receiver_does_is_refused_where_the_sender_measures() {
    for name in ["losses", "reports"] {
        let new = |settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            crate::build("tfrc", &settings, &paper()).map(drop)
        };
        let refused = new(&[(name, "ns2")]).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("`tfrc.{name}` is `ns2`; allowed is `rfc`, or `ns2` with `measured_by = \"receiver\"`")
        );
        new(&[(name, "rfc")]).unwrap();
        new(&[(name, "ns2"), ("measured_by", "receiver")]).unwrap();
    }
}

/// (t_now - t_recvdata) - t_delay: 150 - 30 = 120 ms; R = 0.9 * 100 + 0.1 * 120.
//= 5348-4.3-1
#[test]
fn the_sample_is_the_time_since_departure_less_what_the_report_was_held_back() {
    let mut run = steady();
    let echoed = last(&run, 0);
    let r = run.tfrc().rtt().expect("measured").as_secs_f64();
    tell(&mut run.flow, echoed + ms(150), Message::Measured(&report(echoed, ms(30), 100.0, 0.005)));
    let wanted = 0.9 * r + 0.1 * 0.12;
    let got = run.tfrc().rtt().expect("measured").as_secs_f64();
    assert!((got - wanted).abs() < 2e-9, "{got}, not {wanted}");
}

/// Held back for almost all of the round trip, always: R stays what the path takes.
#[test]
fn an_overstated_delay_does_not_shorten_the_path() {
    let mut run = steady();
    for n in 1..=200 {
        let echoed = last(&run, 0);
        let now = echoed + ms(100);
        let lie = report(echoed, ms(99), 165.0, 0.005);
        tell(&mut run.flow, now, Message::Measured(&lie));
        run.now = now;
        run.run(now + ms(10), |_| true);
        assert!(run.tfrc().rtt() >= Some(ms(100)), "{n}: {:?}", run.tfrc().rtt());
    }
    assert!(run.x() < 175.0, "{}", run.x());
}

/// A receiver that claims the largest rate there is, and no loss: X may double per RTT, as for an honest one, but
/// only from what was really sent, and the application sends 50 packets/s.
#[test]
fn a_claimed_rate_counts_as_far_as_it_was_sent() {
    let mut run = Run::started(&[("measured_by", "receiver")], RTT);
    run.receiver = None;
    run.set_app(App::Every(ms(20), at(0.0)));
    let mut most = 0.0_f64;
    for n in 1..=600 {
        let now = at(0.1 * f64::from(n));
        run.run(now, |_| false);
        // The newest packet that can have been echoed.
        let echoed = run.sent.iter().rev().map(|p| p.at).find(|t| now.since(*t) >= RTT).expect("sent");
        tell(&mut run.flow, now, Message::Measured(&report(echoed, Duration::ZERO, 1e9, 0.0)));
        if n > 3 {
            most = most.max(run.x());
        }
    }
    // Six packets left within 100 ms when what the first RTTs had held back went out, else five; twice that is
    // 120. A data-limited sender keeps it.
    let windows = |n: usize| run.sent.windows(n + 1).any(|w| w[n].at.since(w[0].at) < RTT);
    assert!(windows(5) && !windows(6));
    assert!((100.0..=120.0 + 1e-6).contains(&most), "{most}");
    assert_eq!(run.flow.counters().bad.report, 0);
}

#[test]
fn old_reports_again_change_nothing() {
    let mut run = Run::started(&[("measured_by", "receiver")], RTT);
    let mut twin = Run::started(&[("measured_by", "receiver")], RTT);
    let mut replayed = 0;
    for n in 1..=400 {
        let now = at(0.05 * f64::from(n));
        run.run(now, |p| p.seq % 50 != 49);
        twin.run(now, |p| p.seq % 50 != 49);
        for report in run.heard.clone() {
            tell(&mut run.flow, now, Message::Measured(&report));
            replayed += 1;
        }
        assert_eq!((run.x(), run.p(), run.tfrc().rtt()), (twin.x(), twin.p(), twin.tfrc().rtt()), "{now}");
    }
    assert!(run.heard.len() > 150 && run.p() > 0.01, "{}", run.heard.len());
    assert_eq!((run.sent.len(), run.flow.counters().bad.report), (twin.sent.len(), replayed));
}

/// A report for each packet, at once, with a rising p now and then: each is a real departure, so each is taken,
/// and X follows the last.
#[test]
fn a_flood_of_true_reports_costs_one_step_each() {
    let mut run = steady();
    let echoes: Vec<Instant> = run.sent.iter().rev().take(15).rev().map(|p| p.at).collect();
    for (n, echoed) in echoes.iter().enumerate() {
        for _ in 0..1_000 {
            tell(
                &mut run.flow,
                run.now,
                Message::Measured(&report(*echoed, Duration::ZERO, 165.0, 0.005 + 0.001 * n as f64)),
            );
        }
    }
    assert_eq!(run.flow.counters().bad.report, 15 * 999);
    assert_eq!(run.p(), 0.019);
    // The reports acknowledge no packet, but they settle the packets that they cover: none is in flight.
    assert_eq!(run.flow.flight().0, 0);
}

/// X falls from 166 packets/s to what the equation has at 1 in 50. By the RFC the packet that waits leaves later, too; in ns-2 its time
/// was set when the one before it left, and only the next gap is a new one.
#[test]
fn as_ns2_a_report_moves_only_the_packets_behind_the_one_that_waits() {
    for (pacing, moves) in [("rfc", true), ("ns2", false)] {
        let mut run = steady_with(&[("measured_by", "receiver"), ("smoothing", "off"), ("pacing", pacing)]);
        let waits_until = run.tfrc().next();
        let low = report(last(&run, 1), Duration::ZERO, run.x(), 0.02);
        tell(&mut run.flow, run.now, Message::Measured(&low));
        assert!(run.x() < 100.0, "{}", run.x());
        assert_eq!(run.tfrc().next() > waits_until, moves, "{pacing}");
        let leaves = run.tfrc().next();
        run.run(leaves + Duration::from_nanos(1), |_| false);
        assert_eq!(last(&run, 0), leaves, "{pacing}");
        let gap = run.tfrc().next().since(leaves).as_secs_f64();
        assert!((gap * run.x() - 1.0).abs() < 1e-6, "{pacing}: {gap}");
    }
}

/// The path is dead: in ns-2 a packet leaves as the timer expires, the next 1/X later.
#[test]
fn as_ns2_a_packet_leaves_when_the_no_feedback_timer_expires() {
    for (pacing, leaves) in [("rfc", false), ("ns2", true)] {
        let mut run = steady_with(&[("measured_by", "receiver"), ("smoothing", "off"), ("pacing", pacing)]);
        let expiry = run.tfrc().no_feedback;
        run.run(expiry + Duration::from_nanos(1), |_| false);
        assert_eq!(last(&run, 0) == expiry, leaves, "{pacing}");
        let gap = run.tfrc().next().since(last(&run, 0)).as_secs_f64();
        assert!((gap * run.x() - 1.0).abs() < 1e-6, "{pacing}: {gap}");
    }
}

/// In slow start each report lets a packet leave: the second packet would wait for a second, the third for a quarter of an RTT.
#[test]
fn as_ns2_a_packet_leaves_with_each_report_of_slow_start() {
    let mut run = Run::new(&[("measured_by", "receiver"), ("pacing", "ns2")], ms(110));
    run.flow.start(Instant::ZERO, None);
    run.run(at(0.14), |_| true);
    assert_eq!(run.sent.iter().map(|p| p.at).collect::<Vec<_>>(), [at(0.0), at(0.11), at(0.1375)]);
}

/// Once X is doubled, packets leave at the X before and each a little faster, until they leave at X.
#[test]
fn as_ns2_slow_start_comes_up_to_x_packet_by_packet() {
    let settings = [("measured_by", "receiver"), ("rfc", "3448"), ("w_init", "rfc3390"), ("smoothing", "off")];
    let with = |more: &[(&'static str, &'static str)]| {
        let mut run = Run::new(&[&settings[..], more].concat(), RTT);
        run.flow.start(Instant::ZERO, None);
        run.run(at(0.9), |_| true);
        let doubled = run.tfrc().sender.last_doubled().expect("slow start");
        let left = run.sent.iter().map(|p| p.at).filter(|at| *at > doubled).collect::<Vec<_>>();
        let gaps = left.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64());
        gaps.map(|gap| 1.0 / gap / run.x()).collect::<Vec<_>>()
    };
    let shares = with(&[("reports", "ns2")]);
    assert!(shares.len() > 3 && shares.iter().all(|share| (share - 1.0).abs() < 1e-3), "{shares:?}");
    let shares = with(&[("reports", "ns2"), ("pacing", "ns2")]);
    assert!(shares.len() > 3 && shares[0] < 0.7 && shares.iter().all(|share| *share < 1.0), "{shares:?}");
    let steps: Vec<_> = shares.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step > 0.01 && (step - steps[0]).abs() < 1e-3), "{steps:?}");
}

/// Copies of a report let no flood of packets leave: ns-2's repetition, which is older, is one, the rest is ignored.
#[test]
fn as_ns2_a_report_is_believed_twice_and_no_more() {
    let mut run =
        Run::started(&[("measured_by", "receiver"), ("losses", "ns2"), ("reports", "ns2"), ("pacing", "ns2")], RTT);
    run.run(at(1.0), |_| true);
    let ignored = |run: &mut Run, delay| {
        let before = run.flow.counters().bad;
        let again = report(last(run, 1), delay, 100.0, 0.0);
        tell(&mut run.flow, run.now, Message::Measured(&again));
        run.flow.counters().bad != before
    };
    // News, a copy, what is older by then, and the same again, older still.
    let all = [(0, false), (0, true), (5, false), (5, true), (6, true)];
    run.now += ms(10);
    for (delay, expected) in all {
        assert_eq!(ignored(&mut run, ms(delay)), expected, "{delay} ms");
    }
}

/// Neither reports nor the timer let packets leave above the flow's highest rate.
#[test]
fn as_ns2_slow_start_keeps_the_highest_rate() {
    let settings =
        [("measured_by", "receiver"), ("rfc", "3448"), ("w_init", "rfc3390"), ("reports", "ns2"), ("pacing", "ns2")];
    let env = Env { max_rate: Rate::kbps(80.0), ..paper() };
    let mut run = Run::of("tfrc", &settings, &env, RTT);
    run.flow.start(Instant::ZERO, None);
    run.run(at(20.0), |_| true);
    let least = env.packet_size / env.max_rate;
    let gaps = run.sent.windows(2).map(|pair| pair[1].at.since(pair[0].at));
    assert!(run.sent.len() > 100);
    assert!(
        gaps.min() >= Some(least - Duration::from_nanos(2)),
        "{:?}",
        run.sent.windows(2).map(|p| p[1].at.since(p[0].at)).min()
    );
}

/// Every third packet is lost, and less than a packet per RTT leaves: ns-2's receiver reports a packet again 1.5 R later, and is believed.
#[test]
fn as_ns2_a_packet_may_be_reported_twice() {
    let repeated = |reports| {
        let mut run = Run::started(&[("measured_by", "receiver"), ("losses", "ns2"), ("reports", reports)], RTT);
        run.run(at(30.0), |p| p.seq % 3 != 2);
        assert_eq!(run.flow.counters().bad, IgnoredFeedback::default(), "{reports}");
        run.heard.windows(2).filter(|pair| pair[0].echoed == pair[1].echoed).count()
    };
    assert!(repeated("ns2") > 20 && repeated("rfc") == 0, "{}", repeated("ns2"));
}
