//! Asking and judging, and the stages of using an approved rate, by hand.

use super::*;

const RTT: Duration = Duration::from_millis(800);

fn at(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

fn code(n: u8) -> QsRate {
    QsRate::from_code(n).expect("up to 15")
}

fn requester() -> Requester {
    Requester::new(QuickStartParams::new(Rate::kbps(256.0), 7).expect("256 kbit/s can be asked for"))
}

/// Sends the request of `q` at `now` and gives it.
fn ask(q: &mut Requester, now: f64) -> QsOption {
    let option = q.request(QsRate::MAX).expect("a rate is wanted");
    q.on_sent(at(now), option, Some(RTT));
    option
}

fn report(q: &mut Requester, now: f64) -> Option<QsOption> {
    let report = q.report()?;
    q.on_sent(at(now), report, Some(RTT));
    Some(report)
}

// --- what can be asked for -----------------------------------------------------------------------

/// 256 kbit/s is asked for as 320; 40 kbit/s times 2^15 is the most.
//= 5634-2.1-3
//= 4782-4.1-2
#[test]
fn the_rate_is_rounded_up_to_what_the_option_can_say() {
    let asked = |kbps: f64| QuickStartParams::new(Rate::kbps(kbps), 0).map(|p| p.rate.rate());
    assert_eq!(asked(256.0), Ok(Rate::kbps(320.0)));
    assert_eq!(asked(0.001), Ok(Rate::kbps(80.0)));
    assert_eq!(asked(1_310_720.0), Ok(Rate::kbps(1_310_720.0)));
    for kbps in [0.0, 1_310_721.0] {
        let message = asked(kbps).expect_err("not in the option's range").to_string();
        assert!(
            message.ends_with("allowed is above 0 and up to 1310.72 Mbit/s, the highest rate of the option"),
            "{message}"
        );
    }
}

/// A limit below the wish lowers the code; one below 80 kbit/s leaves nothing to ask for.
#[test]
fn a_request_names_no_more_than_the_limit() {
    let q = requester();
    assert_eq!(q.request(code(2)).map(|o| o.rate), Some(code(2)));
    assert_eq!(q.request(QsRate::ZERO), None);
}

/// Each request has its own QS TTL and nonce, and asking what to send draws none.
//= 4782-3.1-2
//= 4782-3.4-1
//= 4782-3.4-4
#[test]
fn qs_ttl_and_nonce_are_drawn_anew_for_each_request() {
    let mut q = requester();
    let first = q.request(QsRate::MAX);
    assert_eq!(first, q.request(QsRate::MAX));
    let first = ask(&mut q, 0.0);
    let second = ask(&mut q, 10.0);
    assert_ne!((first.qs_ttl, first.nonce), (second.qs_ttl, second.nonce));
    let other = Requester::new(QuickStartParams { seed: 8, ..*q.params() }).request(QsRate::MAX).expect("a request");
    assert_ne!((first.qs_ttl, first.nonce), (other.qs_ttl, other.nonce));
}

// --- the Quick-Start Interval --------------------------------------------------------------------

/// Never answered: 6, 12, 24, 48 s, and 96 is beyond 64: no more.
//= 5634-2.1.1-1
//= 5634-2.1.1-2
//= 5634-2.1.1-3
//= 5634-2.1.1-4
//= 5634-2.8-2
#[test]
fn the_interval_doubles_until_there_are_no_more_requests() {
    let mut q = requester();
    let mut now = 0.0;
    for interval in [6.0, 12.0, 24.0, 48.0] {
        ask(&mut q, now);
        assert!(!q.may_ask(at(now + interval - 1e-6), Some(RTT)), "{interval} s");
        assert!(q.may_ask(at(now + interval), Some(RTT)), "{interval} s");
        now += interval;
    }
    let last = ask(&mut q, now);
    assert!(!q.may_ask(at(1e6), Some(RTT)), "96 s is more than 64 s");
    q.on_response(at(now + 0.8), &last.response());
    report(&mut q, now + 0.8);
    assert!(!q.may_ask(at(now + 5.9), Some(RTT)) && q.may_ask(at(now + 6.0), Some(RTT)), "approved after all");
}

/// 4 RTT of 20 s are more than twice 6 s, and more than 64 s.
//= 5634-2.1.1-3
//= 4782-4.1-3
#[test]
fn a_long_rtt_makes_the_interval_longer() {
    let mut q = requester();
    let rtt = Some(Duration::from_secs(10));
    for now in [0.0, 10.0] {
        let option = q.request(QsRate::MAX).expect("a rate is wanted");
        assert!(q.may_ask(at(now), Some(RTT)));
        q.on_sent(at(now), option, rtt);
        assert!(!q.may_ask(at(now + 9.999), Some(RTT)), "not twice per RTT");
    }
    assert!(!q.may_ask(at(49.9), Some(RTT)) && q.may_ask(at(50.0), Some(RTT)), "4 RTT");
}

/// 6, 12, then an approval: 6 again, from the request that was approved.
//= 5634-2.1.1-5
//= 5634-2.3-3
#[test]
fn an_approval_resets_the_interval() {
    let mut q = requester();
    ask(&mut q, 0.0);
    let option = ask(&mut q, 6.0);
    assert!(!q.may_ask(at(12.0), Some(RTT)));
    q.on_response(at(6.8), &option.response());
    report(&mut q, 6.8);
    assert!(!q.may_ask(at(11.9), Some(RTT)) && q.may_ask(at(12.0), Some(RTT)));
    ask(&mut q, 12.0);
    assert!(!q.may_ask(at(23.9), Some(RTT)) && q.may_ask(at(24.0), Some(RTT)));
}

//= 5634-2.1.1-1
#[test]
fn an_initial_interval_below_6_s_is_6_s() {
    let mut q = Requester::new(QuickStartParams { interval: Duration::from_secs(1), ..*requester().params() });
    ask(&mut q, 0.0);
    assert!(!q.may_ask(at(5.9), Some(RTT)) && q.may_ask(at(6.0), Some(RTT)));
}

// --- answering ------------------------------------------------------------------------------------

/// Three routers have lowered both TTLs, one of them the rate.
//= 5634-2.2-3
//= 5634-2.2-5
//= 4782-3.4-3
//= 4782-4.3-1
//= 4782-4.3-2
#[test]
fn the_receiver_repeats_what_arrived() {
    let sent = requester().request(QsRate::MAX).expect("a request");
    let (qs_ttl, ip_ttl) = (sent.qs_ttl.wrapping_sub(3), sent.ip_ttl - 3);
    let arrived = QsOption { qs_ttl, ip_ttl, rate: code(2), nonce: QsNonce::new(5), ..sent };
    let response = QsResponse { rate: code(2), ttl_diff: sent.ttl_diff(), nonce: QsNonce::new(5) };
    assert_eq!(answer(&arrived), Some(response));
    assert_eq!(answer(&QsOption { rate: QsRate::ZERO, ..arrived }), None);
    assert_eq!(answer(&QsOption { function: QsFunction::Report, ..arrived }), None);
}

// --- judging answers -----------------------------------------------------------------------------

/// Each of four kinds of lie, its worth, and the report to the routers.
//= 5634-2.3-1
//= 5634-2.3-2
//= 4782-3.1-8
//= 4782-3.1-11
//= 4782-4.4-1
//= 4782-4.4-2
//= 4782-4.4-4
//= 4782-4.4-5
#[test]
fn an_answer_is_judged_by_ttl_rate_and_nonce() {
    let asked = |q: &mut Requester| {
        let option = ask(q, 0.0);
        (option, option.response())
    };
    type Lie = fn(QsOption, QsResponse) -> QsResponse;
    let lies: [(Lie, QsVerdict); 6] = [
        (|_, r| r, QsVerdict::Approved(code(3))),
        // A router lowered it by one step: the pair above is anew.
        (
            |o, r| QsResponse { rate: code(2), nonce: o.nonce.lowered(code(3), code(2), !o.nonce.get()), ..r },
            QsVerdict::Approved(code(2)),
        ),
        (|_, r| QsResponse { rate: QsRate::ZERO, ..r }, QsVerdict::Denied),
        (|_, r| QsResponse { ttl_diff: r.ttl_diff.wrapping_sub(1), ..r }, QsVerdict::BadTtl),
        (|_, r| QsResponse { rate: code(4), ..r }, QsVerdict::BadRate),
        (|_, r| QsResponse { nonce: QsNonce::new(r.nonce.get() ^ 1), ..r }, QsVerdict::BadNonce),
    ];
    for (lie, verdict) in lies {
        let mut q = requester();
        let (option, response) = asked(&mut q);
        assert_eq!(q.on_response(at(0.8), &lie(option, response)), (verdict, RTT));
        let approved = match verdict {
            QsVerdict::Approved(rate) => rate,
            _ => QsRate::ZERO,
        };
        let told = report(&mut q, 0.8).expect("a report is always sent");
        assert_eq!((told.function, told.rate, told.nonce), (QsFunction::Report, approved, option.nonce));
        assert_eq!(q.may_ask(at(100.0), Some(RTT)), verdict != QsVerdict::BadNonce, "{verdict:?}");
        // The same again, or anything else, is no answer any more.
        assert_eq!(q.on_response(at(0.9), &response).0, QsVerdict::Stray);
    }
}

/// A path so slow that nothing was heard in 6 s: no second request whose answer the first one's could be taken for.
#[test]
fn without_an_rtt_it_does_not_ask_twice() {
    let mut q = requester();
    let option = ask(&mut q, 0.0);
    assert!(!q.may_ask(at(7.0), None));
    assert_eq!(q.on_response(at(20.0), &option.response()).0, QsVerdict::Approved(code(3)));
    let mut q = requester();
    ask(&mut q, 0.0);
    assert!(q.may_ask(at(7.0), Some(RTT)), "lost");
    ask(&mut q, 7.0);
    assert_eq!((q.counters().asked, q.counters().unanswered), (2, 1));
}

#[test]
fn an_answer_to_no_request_changes_nothing() {
    let mut q = requester();
    let response = q.request(QsRate::MAX).expect("a request").response();
    assert_eq!(q.on_response(at(0.0), &response), (QsVerdict::Stray, Duration::ZERO));
    assert_eq!((q.report(), q.may_ask(at(0.0), Some(RTT))), (None, true));
    assert_eq!(*q.counters(), QsCounters { stray: 1, ..QsCounters::default() });
}

/// The first feedback on what cannot have overtaken the request may be handed in before its answer; the next cannot.
//= 5634-2.4-2
//= 4782-3.1-10
#[test]
fn feedback_without_an_answer_is_a_refusal() {
    let mut q = requester();
    let option = ask(&mut q, 1.0);
    assert_eq!(q.on_feedback(at(1.5), at(0.9)), None, "of what left before");
    for (now, departure) in [(1.8, 1.0), (1.9, 1.1), (4.7, 3.9)] {
        assert_eq!(q.on_feedback(at(now), at(departure)), None, "it may have been overtaken");
    }
    assert_eq!(q.on_feedback(at(4.8), at(4.0)), None);
    assert_eq!(q.on_feedback(at(4.8), at(4.0)), None, "the same feedback in two calls");
    assert_eq!(q.on_feedback(at(4.9), at(4.1)), Some(QsVerdict::Unanswered));
    assert_eq!(q.report(), Some(QsOption { function: QsFunction::Report, rate: QsRate::ZERO, ..option }));
    assert_eq!(q.on_response(at(5.0), &option.response()).0, QsVerdict::Stray);
    assert!(!q.may_ask(at(6.9), Some(RTT)), "not before the interval is over");
}

// --- using an approved rate ----------------------------------------------------------------------

/// 40,000 byte/s, 1,316 and 32 bytes: 39,050.445 byte/s.
//= 5634-3.2.3-4
#[test]
fn headers_count_in_what_was_approved() {
    assert!((send_rate(code(3), 1_316.0, 32.0) - 39_050.445).abs() < 5e-4);
    assert_eq!(send_rate(code(3), 1_316.0, 0.0), 40_000.0);
}

fn using(ends: Until) -> QuickStart {
    QuickStart::begin(at(0.8), 40_000.0, 1_645.0, RTT, ends)
}

/// One RTT of Mode, two of validation; feedback on the first packet comes, on the last it does not.
//= 5634-2.3.1-2
//= 5634-2.3.2-2
//= 5634-3.2.4-1
#[test]
fn mode_ends_after_one_rtt_and_validation_after_two_more() {
    let mut q = using(Until::All);
    for k in 0..20 {
        q.on_sent(at(0.8 + 0.04 * f64::from(k)));
    }
    assert_eq!((q.state(), q.next()), ("QuickStart", at(1.6)));
    assert_eq!(q.on_timer(at(1.59)), None);
    assert_eq!(q.state(), "QuickStart");
    assert_eq!(q.on_timer(at(1.7)), None, "a late driver gains nothing");
    assert_eq!((q.state(), q.next()), ("Validation", at(3.2)));
    assert!(!q.on_feedback(at(2.4), at(0.9)));
    assert_eq!(q.on_timer(at(3.2)), Some(QsEnd::TimeUp));
}

/// Nothing heard in the validation: min(1,645, 20,000), or 20,000 if more was allowed before.
//= 5634-3.2.4-3
#[test]
fn without_feedback_x_is_what_it_was_or_half_of_what_was_approved() {
    let mut q = using(Until::All);
    q.on_sent(at(0.8));
    assert_eq!(q.on_timer(at(1.6)), None);
    assert_eq!((q.on_timer(at(3.2)), q.fallback()), (Some(QsEnd::NoFeedback), 1_645.0));
    assert_eq!(QuickStart::begin(at(0.8), 40_000.0, 30_000.0, RTT, Until::All).fallback(), 20_000.0);
}

/// Feedback on the first of two packets ends the mode early, and is not yet feedback of the validation.
//= 5634-2.3.1-2
//= 5634-2.3.2-1
//= 5634-3.2.3-6
//= 5634-3.2.4-1
#[test]
fn feedback_on_one_packet_ends_the_mode_and_on_all_the_validation() {
    let mut q = using(Until::All);
    assert!(!q.on_feedback(at(0.8), at(0.0)), "of the request");
    q.on_sent(at(0.8));
    q.on_sent(at(1.0));
    assert!(!q.on_feedback(at(1.2), at(0.8)));
    assert_eq!((q.state(), q.next()), ("Validation", at(2.8)));
    q.on_sent(at(1.3)); // no Quick-Start packet any more
    let mut alone = q;
    assert_eq!(alone.on_timer(at(2.8)), Some(QsEnd::NoFeedback));
    assert!(q.on_feedback(at(1.5), at(1.0)));
}

/// [qsd]: the report of the first packet is discarded, the next throttles.
#[test]
fn or_the_next_feedback_ends_it() {
    let mut q = using(Until::Next);
    assert!(!q.on_feedback(at(0.8), at(0.0)), "of the request");
    for k in 0..20 {
        q.on_sent(at(0.8 + 0.04 * f64::from(k)));
    }
    q.on_timer(at(1.6));
    assert!(!q.on_feedback(at(1.61), at(0.8)), "the first on a Quick-Start packet");
    assert!(q.on_feedback(at(2.4), at(0.92)));
}

/// An application without data for an RTT; for 3 s where the RTT is longer.
//= 4782-4.4-6
#[test]
fn what_is_not_used_in_time_is_void() {
    let mut q = using(Until::All);
    assert_eq!(q.on_timer(at(1.6)), Some(QsEnd::Unused));
    let mut slow = QuickStart::begin(at(0.0), 40_000.0, 100.0, Duration::from_secs(10), Until::All);
    let mut used = slow;
    assert_eq!(slow.on_timer(at(3.0)), Some(QsEnd::Unused));
    used.on_sent(at(2.9));
    assert_eq!((used.on_timer(at(3.0)), used.next()), (None, at(10.0)));
}

/// Each answer to a packet apart without the option, and its consequences.
#[test]
fn where_the_option_does_not_arrive_or_is_not_known_it_is_asked_no_more_and_no_report_leaves() {
    let cases = [
        (QsEcho::Missing, QsVerdict::Stripped, QsCounters { asked: 1, stripped: 1, ..QsCounters::default() }),
        (QsEcho::Silent, QsVerdict::Unknown, QsCounters { asked: 1, unknown: 1, ..QsCounters::default() }),
    ];
    for (echo, verdict, counted) in cases {
        let mut q = requester();
        let option = q.request(QsRate::MAX).expect("a rate is wanted");
        q.on_sent_apart(at(1.0), option, Some(RTT));
        assert_eq!(q.on_echo(at(1.5), &echo), (verdict, Duration::from_millis(500)));
        assert_eq!((q.report(), q.may_ask(at(1e6), Some(RTT)), *q.counters()), (None, false, counted));
        assert_eq!(q.on_echo(at(1.6), &echo).0, QsVerdict::Stray);
    }
    let mut q = requester();
    let option = q.request(QsRate::MAX).expect("a rate is wanted");
    q.on_sent_apart(at(1.0), option, Some(RTT));
    assert_eq!(q.on_feedback(at(4.8), at(3.9)), None, "a terminal may hold the request for 3 s");
    assert_eq!(q.on_feedback(at(4.8), at(4.0)), None, "the answer may be right behind");
    assert_eq!(q.on_feedback(at(4.9), at(4.1)), Some(QsVerdict::Dropped));
    let counted = QsCounters { asked: 1, dropped: 1, ..QsCounters::default() };
    assert_eq!((q.report(), q.may_ask(at(1e6), Some(RTT)), *q.counters()), (None, false, counted));
}

/// Where options have passed, a request without an answer is a lost packet.
#[test]
fn a_lost_request_on_a_path_that_options_pass_is_no_reason_to_ask_no_more() {
    let mut q = requester();
    let option = q.request(QsRate::MAX).expect("a rate is wanted");
    q.on_sent_apart(at(1.0), option, Some(RTT));
    let response = QsEcho::Came(option.response());
    assert_eq!(q.on_echo(at(1.5), &response).0, QsVerdict::Approved(code(3)));
    assert!(report(&mut q, 1.6).is_some());
    let option = q.request(QsRate::MAX).expect("a rate is wanted");
    q.on_sent_apart(at(20.0), option, Some(RTT));
    assert_eq!(q.on_feedback(at(24.0), at(23.5)), None);
    assert_eq!(q.on_feedback(at(24.1), at(23.6)), Some(QsVerdict::Unanswered));
    assert!(q.report().is_some() && q.counters().dropped == 0);
    assert!(report(&mut q, 24.2).is_some());
    assert!(q.may_ask(at(60.0), Some(RTT)));
    // A router that refuses leaves neither QS TTL nor nonce, and is no liar.
    let option = q.request(QsRate::MAX).expect("a rate is wanted");
    q.on_sent_apart(at(60.0), option, Some(RTT));
    let refused = QsOption { rate: QsRate::ZERO, qs_ttl: 0, nonce: QsNonce::default(), ..option };
    assert_eq!(q.on_echo(at(60.5), &QsEcho::Came(refused.response())).0, QsVerdict::Denied);
    assert_eq!(q.report().map(|r| r.rate), Some(QsRate::ZERO));
}
