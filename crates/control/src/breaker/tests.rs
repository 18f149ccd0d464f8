//! The vectors of RFC 8083, and each step of the breaker.

use super::congestion::{cb_interval, tcp_rate};
use super::timeouts::media_timeout;
use super::*;

/// A breaker of a flow that does not give way.
fn breaker(params: BreakerParams) -> Breaker {
    Breaker::new(params, false)
}

fn s(x: f64) -> Duration {
    Duration::from_secs_f64(x)
}

fn params(tf: f64, tdr: f64) -> BreakerParams {
    BreakerParams { tf: s(tf), tdr: s(tdr), ..BreakerParams::default() }
}

fn report(highest_seq: u64, fraction_lost: f64) -> ReceiverReport {
    ReceiverReport::new(highest_seq, fraction_lost, s(5.0))
}

/// Ten times TCP's rate is 3.718 Mbit/s, 0.7 of it 2.603. After one report of 5 s at 5 Mbit/s the other two of the
/// window may have (2.603 · 15 - 5 · 5) / 10 = 1.404 Mbit/s; after a slow one no more than the share itself.
#[test]
fn what_was_sent_before_is_taken_off_what_is_bearable() {
    let bearable = |rate: Rate| {
        let mut b = breaker(params(0.033, 5.0));
        sending(&mut b, rate, 0.1, 1);
        b.bearable(None, 0.7).map(|r| (r.as_bps() / 1e3).round())
    };
    assert_eq!(bearable(Rate::mbps(5.0)), Some(1_404.0));
    assert_eq!(bearable(Rate::mbps(1.0)), Some(2_603.0));
    assert_eq!(bearable(Rate::mbps(50.0)), Some(651.0), "a quarter of the share at least");
    assert_eq!(breaker(params(0.033, 5.0)).bearable(None, 0.7), None);
}

/// [RFC 8083 §4.2], k = 5: ceil(5·5/5), ceil(5·0.6/0.5), ceil(5·1/0.5).
//= 8083-4.2-1
#[test]
fn media_timeout_vectors() {
    assert_eq!(media_timeout(&params(0.033, 5.0), s(0.1)), 5);
    assert_eq!(media_timeout(&params(0.033, 0.5), s(0.6)), 6);
    assert_eq!(media_timeout(&params(1.0, 0.5), s(0.1)), 10);
}

/// [RFC 8083 §4.3]: 3·min(15, 15)/15 = 3; 3·min(6, 15)/1.5 = 12.
//= 8083-4.3-4
#[test]
fn cb_interval_vectors() {
    assert_eq!(cb_interval(&params(0.033, 5.0), s(0.1)), 3);
    assert_eq!(cb_interval(&params(0.033, 0.5), s(0.6)), 12);
}

/// 1200 / (0.1 · sqrt(0.2 / 3)) = 46,475.8 byte/s; ten times that is 3.718 Mbit/s.
//= 8083-4.3-3
#[test]
fn tcp_rate_vector() {
    let x = tcp_rate(Bytes::new(1_200), s(0.1), 0.1);
    assert!((x.as_bps() / 8.0 - 46_475.8).abs() < 0.05, "{}", x.as_bps() / 8.0);
}

/// Sends at `rate` for `reports` intervals of 5 s, each reported with a share of `lost`, and gives each answer.
fn sending(b: &mut Breaker, rate: Rate, lost: f64, reports: u64) -> Vec<Option<Trip>> {
    let mut interval = || {
        for _ in 0..(rate * s(5.0)).get() / 1_200 {
            b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        }
        b.on_report(&report(b.media.highest_seq() + 1, lost), Some(s(0.1)), Counts::Yes)
    };
    (0..reports).map(|_| interval()).collect()
}

/// Ten times TCP's rate at a tenth lost and 0.1 s.
const ALLOWED: f64 = 3_718_064.0;

fn is_cut(trip: Option<Trip>, to: Rate) -> bool {
    matches!(trip, Some(Trip::Cut(rate)) if (rate.as_bps() / to.as_bps() - 1.0).abs() < 1e-3)
}

//= 8083-4.3-1
//= 8083-4.3-3
//= 8083-4.3-5
#[test]
fn ten_times_tcps_rate_cuts_the_flow_to_a_tenth_after_three_reports() {
    for responsive in [false, true] {
        let b = || Breaker::new(params(0.033, 5.0), responsive);
        assert_eq!(sending(&mut b(), Rate::mbps(3.71), 0.1, 9), [None; 9]);
        let trips = sending(&mut b(), Rate::mbps(3.73), 0.1, 3);
        assert_eq!(trips[..2], [None; 2]);
        assert!(is_cut(trips[2], Rate::mbps(0.373)), "{trips:?}");
    }
}

/// A tenth of 50 Mbit/s would still be over: 0.35 of what is allowed, 1.301 Mbit/s, is not.
#[test]
fn the_cut_goes_below_what_is_allowed() {
    let mut b = Breaker::new(params(0.033, 5.0), true);
    assert!(is_cut(sending(&mut b, Rate::mbps(50.0), 0.1, 3)[2], Rate::kbps(1_301.3)));
}

//= 8083-4.3-6
#[test]
fn a_flow_that_is_still_over_after_two_intervals_ceases() {
    let mut b = Breaker::new(params(0.033, 5.0), true);
    sending(&mut b, Rate::mbps(5.0), 0.1, 3);
    let trips = sending(&mut b, Rate::mbps(5.0), 0.1, 2);
    assert_eq!(trips[0], None);
    let Some(Trip::Stop(StopReason::Congestion { sent, allowed, lost })) = trips[1] else { panic!("{trips:?}") };
    assert!((sent.as_bps() / 5e6 - 1.0).abs() < 1e-3 && (lost - 0.1).abs() < 1e-12);
    assert!((allowed.as_bps() - ALLOWED).abs() < 100.0, "{}", allowed.as_bps());
    assert_eq!(sending(&mut b, Rate::mbps(5.0), 0.1, 9), [None; 9], "once");
}

/// 5 Mbit/s has tripped: 0.5, and after two intervals 1, 2 and 4 Mbit/s, each for one, then no limit.
//= 8083-4.3-7
#[test]
fn a_cut_that_has_helped_is_taken_back_by_doubling() {
    let mut b = Breaker::new(params(0.033, 5.0), true);
    assert!(is_cut(sending(&mut b, Rate::mbps(5.0), 0.1, 3)[2], Rate::kbps(500.0)));
    let mut limits = Vec::new();
    for trip in sending(&mut b, Rate::kbps(500.0), 0.1, 9) {
        limits.push(match trip {
            Some(Trip::Raise(rate)) => (rate.as_bps() / 1e6).round(),
            Some(Trip::Lift) => 0.0,
            None => -1.0,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(limits, [-1.0, 1.0, 2.0, 4.0, 0.0, -1.0, -1.0, -1.0, -1.0]);
    // And the rule may trip again, on the way back as after it.
    assert!(is_cut(sending(&mut b, Rate::mbps(50.0), 0.1, 1)[0], Rate::kbps(1_301.3)));
    assert!(matches!(sending(&mut b, Rate::kbps(500.0), 0.0, 2)[1], Some(Trip::Raise(_))));
    assert!(matches!(sending(&mut b, Rate::mbps(50.0), 0.1, 1)[0], Some(Trip::Cut(_))));
}

/// Nothing that is lost in the two intervals, and still the flow ends: it would go on as before.
#[test]
fn a_flow_that_does_not_give_way_gets_two_intervals_at_a_tenth() {
    let mut b = breaker(params(0.033, 5.0));
    assert!(is_cut(sending(&mut b, Rate::mbps(5.0), 0.1, 3)[2], Rate::kbps(500.0)));
    let trips = sending(&mut b, Rate::kbps(500.0), 0.0, 2);
    assert_eq!(trips[0], None);
    let Some(Trip::Stop(StopReason::Congestion { sent, allowed, .. })) = trips[1] else { panic!("{trips:?}") };
    assert!((sent.as_bps() / 5e6 - 1.0).abs() < 1e-3, "the rate that tripped: {sent}");
    assert!((allowed.as_bps() - ALLOWED).abs() < 100.0, "{allowed}");
}

/// A third is lost of the first interval after the cut, while a buffer empties, and nothing of the second: 0.5 Mbit/s over
/// both is more than ten times TCP's rate at their mean loss and 1 s, 0.288 Mbit/s, and the flow goes on.
#[test]
fn loss_that_ends_in_the_first_interval_after_the_cut_is_over() {
    for (second, ends) in [(0.0, false), (0.3, true)] {
        let mut b = Breaker::new(params(0.033, 5.0), true);
        sending(&mut b, Rate::mbps(5.0), 0.1, 3);
        let mut last = None;
        for lost in [0.3, second] {
            for _ in 0..(Rate::kbps(500.0) * s(5.0)).get() / 1_200 {
                b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
            }
            last = b.on_report(&report(b.media.highest_seq() + 1, lost), Some(s(1.0)), Counts::Yes);
        }
        assert_eq!(matches!(last, Some(Trip::Stop(_))), ends, "{last:?}");
    }
}

/// 30 % of the packets of 5 s were lost before the cut, and its report comes after it: the interval is judged with the
/// next, 10 s long, at the rate of both.
#[test]
fn a_report_about_packets_from_before_the_cut_is_none_of_the_two() {
    let mut b = Breaker::new(params(0.033, 5.0), true);
    sending(&mut b, Rate::mbps(5.0), 0.1, 3);
    b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
    assert_eq!(b.on_report(&report(100, 0.3), Some(s(0.1)), Counts::Later), None);
    assert_eq!(sending(&mut b, Rate::kbps(500.0), 0.0, 1), [None]);
    assert!(matches!(sending(&mut b, Rate::kbps(500.0), 0.0, 1)[0], Some(Trip::Raise(_))));
}

/// Round trips of 0.1, 0.1 and 1.9 s have a mean of 0.7 s: ten times TCP's rate is 531 kbit/s. By the last one alone it
/// were 196 kbit/s.
//= 8083-4.3-2
#[test]
fn the_round_trip_is_the_mean_over_the_intervals_of_the_loss() {
    for (rate, trips) in [(525.0, false), (537.0, true)] {
        let mut b = Breaker::new(params(0.033, 5.0), true);
        let mut last = None;
        for (n, rtt) in [0.1, 0.1, 1.9].into_iter().enumerate() {
            for _ in 0..(Rate::kbps(rate) * s(5.0)).get() / 1_200 {
                b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
            }
            last = b.on_report(&report(n as u64 + 1, 0.1), Some(s(rtt)), Counts::Yes);
        }
        assert_eq!(last.is_some(), trips, "{rate} kbit/s");
    }
}

/// 2 s into the first interval 5 Mbit/s have been sent and a tenth was lost: the mean of 2.603 Mbit/s over 15 s leaves
/// (2.603 · 15 - 5 · 2) / 13 = 2.234 Mbit/s. Dummies are counted.
#[test]
fn between_reports_what_was_sent_since_the_last_one_is_taken_off() {
    let partial = Partial { time: s(2.0), lost: 0.1, rtt: s(0.1) };
    for dummies in [false, true] {
        let mut b = Breaker::new(params(0.033, 5.0), true);
        for n in 0..(Rate::mbps(5.0) * s(2.0)).get() / 1_200 {
            b.on_sent(Instant::ZERO, Bytes::new(1_200), !dummies || n == 0);
        }
        let rate = b.bearable(Some(partial), 0.7).expect("something was lost");
        assert!((rate.as_bps() / 1e3 - 2_234.0).abs() < 1.0, "{rate}");
        assert_eq!(b.bearable(None, 0.7), None);
        assert_eq!(b.bearable(Some(Partial { lost: 0.0, ..partial }), 0.7), None);
        assert_eq!(b.bearable(Some(Partial { rtt: Duration::ZERO, ..partial }), 0.7), None);
    }
}

//= 8083-4.3-2
#[test]
fn the_mean_loss_is_weighted_by_the_length_of_the_intervals() {
    let mut b = breaker(params(0.033, 5.0));
    // (0.3 · 1 + 0 · 9 + 0 · 5) / 15 = 0.02: 10 X = 8.314 Mbit/s; unweighted 0.1: 3.718 Mbit/s
    for (n, (lost, length)) in [(0.3, 1.0), (0.0, 9.0), (0.0, 5.0)].into_iter().enumerate() {
        for _ in 0..(Rate::mbps(6.0) * s(length)).get() / 1_200 {
            b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        }
        let r = ReceiverReport::new(n as u64 + 1, lost, s(length));
        assert_eq!(b.on_report(&r, Some(s(0.1)), Counts::Yes), None);
    }
}

//= 8083-4.3-1
#[test]
fn no_loss_or_no_rtt_never_trips_on_congestion() {
    let mut b = breaker(params(0.033, 5.0));
    for n in 1..100 {
        b.on_sent(Instant::ZERO, Bytes::new(u64::from(u32::MAX)), true);
        assert_eq!(b.on_report(&report(n, 0.0), Some(s(0.1)), Counts::Yes), None);
    }
    for n in 100..200 {
        b.on_sent(Instant::ZERO, Bytes::new(u64::from(u32::MAX)), true);
        assert_eq!(b.on_report(&report(n, 1.0), None, Counts::Yes), None);
    }
}

//= 8083-4.2-2
#[test]
fn five_reports_without_media_stop_the_flow() {
    let mut b = breaker(params(0.033, 5.0));
    b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
    assert_eq!(b.on_report(&report(9, 0.0), Some(s(0.1)), Counts::Yes), None);
    for n in 1..=5 {
        b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        let expected = (n == 5).then_some(Trip::Stop(StopReason::MediaTimeout { reports: 5 }));
        assert_eq!(b.on_report(&report(9, 0.0), Some(s(0.1)), Counts::Yes), expected);
    }
}

/// Reports that come each 150 ms, where each 5 s one is due.
#[test]
fn reports_that_come_too_fast_end_nothing_sooner() {
    let mut b = breaker(params(0.033, 5.0));
    let report = ReceiverReport::new(9, 0.0, s(0.15));
    b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
    b.on_report(&report, Some(s(0.1)), Counts::Yes);
    for n in 1..=100 {
        b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        // 3 Td = 15 s, as for silence
        let expected = (n == 100).then_some(Trip::Stop(StopReason::MediaTimeout { reports: n }));
        assert_eq!(b.on_report(&report, Some(s(0.1)), Counts::Yes), expected, "{n}");
    }
}

#[test]
fn reports_without_media_while_nothing_is_sent_are_no_timeout() {
    let mut b = breaker(params(0.033, 5.0));
    for _ in 0..100 {
        assert_eq!(b.on_report(&report(9, 0.0), Some(s(0.1)), Counts::Yes), None);
    }
}

//= 8083-4.2-3
#[test]
fn a_longer_rtt_extends_the_media_timeout_and_a_shorter_one_does_not_take_it_back() {
    let mut b = breaker(params(0.033, 0.5));
    let r = ReceiverReport::new(9, 0.0, s(0.5));
    b.on_report(&r, Some(s(0.1)), Counts::Yes);
    let mut n = 0;
    loop {
        b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        n += 1;
        // Tr = 0.6 s once: ceil(5 · 0.6 / 0.5) = 6 instead of 5
        if b.on_report(&r, Some(s(if n == 2 { 0.6 } else { 0.1 })), Counts::Yes).is_some() {
            break;
        }
    }
    assert_eq!(n, 6);
}

//= 8083-5-2
//= 8083-4.1-1
#[test]
fn fifteen_seconds_of_silence_stop_the_flow_and_any_feedback_holds_it_off() {
    let at = Instant::from_secs_f64;
    let mut b = breaker(BreakerParams::default());
    for n in 0..150 {
        b.on_sent(at(f64::from(n) * 0.1), Bytes::new(1_200), true);
        assert_eq!(b.on_timer(at(f64::from(n) * 0.1)), None);
    }
    assert_eq!(b.next(), at(15.0));
    let mut heard = b.clone();
    heard.on_feedback();
    assert_eq!((heard.next(), heard.on_timer(at(15.0))), (Instant::NEVER, None));
    let stop = Trip::Stop(StopReason::FeedbackTimeout { after: s(15.0) });
    assert_eq!(b.on_timer(at(15.0)), Some(stop));
}

/// A packet every 4.6 s, the floor of `lda`, none of which is told of: echoes hold the end off for as long as 30 packets
/// take, and no longer. A flow of 10 packets a second has sent more than those by its first echo.
#[test]
fn an_echo_holds_off_the_end_of_a_flow_that_sends_hardly_anything() {
    let at = Instant::from_secs_f64;
    for (spacing, end) in [(4.6, 30.0 * 4.6 + 15.0), (0.1, 15.0)] {
        let mut b = breaker(BreakerParams::default());
        let (mut next_packet, mut next_echo, mut stopped) = (0.0_f64, 5.0_f64, None);
        while stopped.is_none() {
            let t = next_echo.min(next_packet).min(b.next().as_secs_f64());
            stopped = b.on_timer(at(t)).map(|_| t);
            if t >= next_packet {
                b.on_sent(at(t), Bytes::new(58), true);
                next_packet += spacing;
            }
            if t >= next_echo {
                b.on_echo(at(t));
                next_echo += 5.0;
            }
            assert!(t < 300.0, "a flow that nothing tells of never ends");
        }
        // To the last echo before the 31st packet.
        let stopped = stopped.unwrap_or_default();
        assert!((end - 5.0..=end).contains(&stopped), "{spacing}: {stopped}");
    }
    // While TCP carries the data, an echo is about datagrams; and without a packet there is nothing to wait for.
    let mut b = breaker(BreakerParams::default());
    b.on_echo(at(1.0));
    assert_eq!(b.next(), Instant::NEVER);
    for t in [0.0, 0.1, 0.2] {
        b.on_sent(at(t), Bytes::new(58), true);
    }
    b.pause(at(1.0));
    b.on_echo(at(2.0));
    b.resume(at(3.0));
    assert_eq!(b.next(), at(17.0));
}

/// Ten seconds by UDP and five by TCP. An acknowledgement of TCP starts TCP's clock anew, and leaves that of the
/// datagrams.
#[test]
fn fifteen_seconds_of_silence_by_one_transport_and_then_the_other_stop_the_flow() {
    let at = Instant::from_secs_f64;
    let mut b = breaker(BreakerParams::default());
    for n in 0..=100 {
        b.on_sent(at(f64::from(n) * 0.1), Bytes::new(1_200), true);
    }
    b.pause(at(10.0));
    assert_eq!(b.next(), Instant::NEVER);
    b.await_tcp(at(10.0));
    b.await_tcp(at(11.0));
    assert_eq!(b.next(), at(15.0));
    let mut alive = b.clone();
    alive.on_tcp_progress();
    alive.await_tcp(at(12.0));
    assert_eq!(alive.next(), at(27.0));
    alive.on_tcp_progress();
    alive.on_feedback();
    alive.resume(at(13.0));
    assert_eq!(alive.next(), at(18.0));
    // An application that had nothing to send meanwhile was not unheard.
    let mut idle = breaker(BreakerParams::default());
    for t in [0.0, 0.1, 0.2] {
        idle.on_sent(at(t), Bytes::new(1_200), true);
    }
    idle.on_idle(at(0.3));
    idle.pause(at(10.0));
    idle.await_tcp(at(10.0));
    assert_eq!(idle.next(), at(25.0));
}

/// Timeouts that double, as a window makes them: the seventh packet leaves at 12.6 s, 6.4 s after the sixth.
#[test]
fn packets_far_apart_that_nothing_answers_are_one_silence() {
    let at = Instant::from_secs_f64;
    let mut b = breaker(BreakerParams::default());
    for t in [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6] {
        b.on_sent(at(t), Bytes::new(1_200), true);
        // Another packet is there after a moment each time.
        b.on_idle(at(t + 0.01));
        b.on_sent(at(t + 0.02), Bytes::new(1_200), true);
    }
    assert_eq!((b.next(), b.on_timer(at(14.9))), (at(15.0), None));
    assert!(b.on_timer(at(15.0)).is_some());
}

/// Three packets, all lost, before a pause of the application; the next three are timed anew.
#[test]
fn a_pause_of_the_application_is_not_a_dead_path() {
    let at = Instant::from_secs_f64;
    let mut b = breaker(BreakerParams::default());
    for from in [0.0, 60.0] {
        for t in [0.0, 0.1, 0.2] {
            b.on_sent(at(from + t), Bytes::new(1_200), true);
        }
        assert_eq!(b.next(), at(from + 15.0));
        b.on_idle(at(from + 0.3));
        b.on_idle(at(from + 10.0));
        assert_eq!((b.on_timer(at(from + 15.0)), b.next()), (None, Instant::NEVER));
    }
    // One of less than Td changes nothing.
    let mut b = breaker(BreakerParams::default());
    for t in [0.0, 0.1, 0.2, 5.1] {
        b.on_sent(at(t), Bytes::new(1_200), true);
        b.on_idle(at(t + 0.01));
    }
    b.on_sent(at(10.0), Bytes::new(1_200), true);
    assert_eq!(b.next(), at(15.0));
}

#[test]
fn a_report_with_nonsense_in_it_is_ignored() {
    let mut b = breaker(BreakerParams::default());
    for lost in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        assert_eq!(b.on_report(&report(1, lost), Some(s(0.1)), Counts::Yes), None);
    }
    assert_eq!(b.media.highest_seq(), 0);
}

//= 8083-5-1
#[test]
fn feedback_without_a_report_judges_nothing() {
    let mut b = Breaker::new(params(0.033, 5.0), true);
    sending(&mut b, Rate::mbps(5.0), 0.1, 2);
    for _ in 0..100 {
        b.on_sent(Instant::ZERO, Bytes::new(1_200), true);
        b.on_feedback();
    }
    // Still the third report decides.
    assert!(matches!(sending(&mut b, Rate::mbps(5.0), 0.1, 1)[0], Some(Trip::Cut(_))));
}
