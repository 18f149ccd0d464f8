//! Receiver reports as the only feedback: what arrives of them, and that a receiver cannot hide losses.

mod pair;

use fairpace_control::packet_pair;
use fairpace_rtp::challenge::{Challenge, Message};
use fairpace_rtp::feedback::Request;
use fairpace_rtp::feedback::reports::pairs::PairReport;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{Out, ReceiverConfig, ReceiverSession, Secret, SenderEvent, StopReason, What};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, Rate, Via};
use pair::{Pair, SENDER, Wire, at, flow, lossy, ms, sender_config, tap};

fn lda(settings: &[(&str, &str)]) -> Pair {
    Pair::usual("lda", settings)
}

/// Time of each report to the sender, with the media block's cumulative loss and what pairs say.
fn reports(taken: &[(Instant, Wire)]) -> Vec<(Instant, i32, Option<PairReport>)> {
    taken
        .iter()
        .filter(|(_, w)| w.what == What::Report)
        .map(|(t, w)| {
            let lost = Compound::parse(&w.bytes).unwrap().find_map(|p| match p {
                Rtcp::ReceiverReport(_, mut blocks) => blocks.next().map(|b| b.cumulative_lost),
                _ => None,
            });
            let pairs = Compound::parse(&w.bytes).unwrap().find_map(|p| match p {
                Rtcp::App(app) => PairReport::parse(&app).unwrap(),
                _ => None,
            });
            (*t, lost.unwrap_or(0), pairs)
        })
        .collect()
}

#[test]
fn a_report_comes_each_t_rtcp_and_nothing_else_but_echoes() {
    let mut p = lda(&[("t_rtcp", "500ms")]);
    let taken = std::rc::Rc::default();
    p.back.disturb = tap(std::rc::Rc::clone(&taken));
    p.run_until(at(10.0));
    let taken: Vec<_> = taken.take().into();
    assert!(taken.iter().all(|(_, w)| matches!(w.what, What::Report | What::Echo)));
    let reports = reports(&taken);
    // The first challenge arrives at 50 ms; from then on 500 ms each.
    let times: Vec<_> = reports.iter().map(|r| r.0).collect();
    assert_eq!(times, (1..20).map(|n| at(0.05 + 0.5 * f64::from(n))).collect::<Vec<_>>());
    assert!(reports.iter().all(|r| r.1 == 0 && r.2.is_some()));
    assert_eq!(p.sender.stats().rejected, Default::default());
    // LSR and DLSR measure the path's 100 ms, in 1/65,536 s; the flow has no other samples.
    let rtt = p.sender.stats().report_rtt.unwrap();
    assert!(rtt.as_secs_f64() > 0.0999 && rtt.as_secs_f64() < 0.1001, "{rtt:?}");
    assert!(p.sender.flow().srtt().unwrap().as_secs_f64() < 0.1001);
    assert_eq!((p.count(What::Dummy), p.stopped), (0, None));
}

#[test]
fn a_sender_that_has_nothing_to_send_keeps_its_place() {
    let mut p = lda(&[]);
    p.fps = 0;
    p.run_until(at(60.0));
    assert_eq!((p.receiver_events.len(), p.stopped), (0, None), "{:?}", p.receiver_events);
    p.fps = 25;
    p.run_until(at(62.0));
    assert!(p.assembled.len() > 20);
}

#[test]
fn what_pairs_measure_reaches_the_controller() {
    let mut p = lda(&[("r_0", "400kbps")]);
    // A bottleneck of 2 Mbit/s behind the delay: the second of two packets is 4 ms behind a full first one.
    let mut free = Instant::ZERO;
    p.forward.disturb = Box::new(move |now, w| {
        free = free.max(now) + Bytes::new(w.bytes.len() as u64 + 28) / Rate::mbps(2.0);
        vec![(free.since(now), w)]
    });
    p.frame_bytes = Some(4_000);
    p.run_until(at(20.0));
    let estimate = {
        let taken = std::rc::Rc::default();
        p.back.disturb = tap(std::rc::Rc::clone(&taken));
        p.run_until(at(22.0));
        let taken: Vec<_> = taken.take().into();
        reports(&taken).last().unwrap().2.unwrap().bottleneck.unwrap()
    };
    assert!((estimate.as_bps() - 2e6).abs() < 2e4, "{estimate}");
    assert!(p.sender.flow().status().rate <= Rate::mbps(2.0));
    // RTP's numbers and the flow's have the same remainder, so that both ends mean the same pairs.
    assert_eq!(p.received[0].sequence % packet_pair::PERIOD, 0);
}

#[test]
fn losses_that_a_receiver_hides_count_as_lost_and_the_rate_does_not_rise() {
    // Means over forty seeds: at this loss rates of 5 to 30 kbit/s come out.
    let rate_and_unproven = |p: f64, lies: bool| {
        let (mut rate, mut unproven) = (0.0, Vec::new());
        for seed in 0..40 {
            let mut pair = lda(&[]);
            pair.forward.disturb = lossy(seed, p);
            if lies {
                // An RR's first block begins behind its eight bytes: SSRC, then fraction and cumulative number lost.
                pair.back.disturb = Box::new(|_, mut w| {
                    if w.what == What::Report && w.bytes.len() >= 32 {
                        w.bytes[12..16].fill(0);
                    }
                    vec![(Duration::ZERO, w)]
                });
            }
            pair.run_until(at(60.0));
            rate += pair.sender.flow().status().rate.as_bps() / 40.0;
            unproven.push(pair.sender.stats().rejected.unproven);
        }
        (rate, unproven)
    };
    let (lossless, none) = rate_and_unproven(0.0, false);
    let (lossy, _) = rate_and_unproven(0.05, false);
    let (liar, unproven) = rate_and_unproven(0.05, true);
    assert!(lossless > 1.2 * lossy, "{lossless} {lossy}");
    // Over 400 seeds the liar's rate is 11.5 kbit/s, the honest one's 9.4, and without loss it is 188.
    assert!(liar <= 1.5 * lossy && liar < lossless / 10.0, "{liar} against {lossy}");
    assert!(unproven.iter().all(|n| *n > 10), "{unproven:?}");
    assert!(none.iter().all(|n| *n == 0), "{none:?}");
}

/// Each DLSR is made so long that 1 ms of the path's 100 is left.
#[test]
fn a_receiver_that_says_it_held_each_report_makes_no_path_shorter() {
    let mut p = lda(&[("t_rtcp", "500ms")]);
    p.back.disturb = Box::new(|now, mut w| {
        // The first block of a report stands behind its SSRC; LSR and DLSR are its last two words.
        if w.what == What::Report && w.bytes.len() >= 32 && w.bytes[0] & 0x1f > 0 {
            let word = |at: usize| u32::from_be_bytes(w.bytes[at..at + 4].try_into().unwrap());
            if word(24) != 0 {
                let arrives = now + ms(50);
                let longer = (arrives.since(at(0.0)).as_secs_f64() * 65_536.0) as u32;
                let dlsr = longer.wrapping_sub(word(24)).wrapping_sub(66);
                w.bytes[28..32].copy_from_slice(&dlsr.to_be_bytes());
            }
        }
        vec![(ms(0), w)]
    });
    p.run_until(at(20.0));
    assert_eq!(p.stopped, None);
    let told = p.sender.stats().report_rtt.unwrap();
    assert!(told < ms(3), "the lie has come: {told:?}");
    assert!(p.sender.flow().srtt().unwrap() >= ms(50), "{:?}", p.sender.flow().srtt());
}

#[test]
fn a_report_that_comes_again_is_refused() {
    let mut p = lda(&[("t_rtcp", "500ms")]);
    p.back.disturb = Box::new(|_, w| vec![(Duration::ZERO, w.clone()), (ms(200), w)]);
    p.run_until(at(20.0));
    let (believed, refused) = (p.sender.stats().feedback.packets, p.sender.stats().rejected.report);
    assert!(believed > 20 && refused + 2 >= believed, "{believed} believed, {refused} refused");
}

/// One packet in a hundred is 700 ms late: lost in one report, and there in the next.
#[test]
fn a_packet_that_comes_after_the_report_on_it_is_proven_to_have_come() {
    let mut p = lda(&[("t_rtcp", "500ms"), ("r_0", "400kbps")]);
    let mut n = 0;
    p.forward.disturb = Box::new(move |_, w| {
        n += u64::from(w.what == What::Media);
        let late = w.what == What::Media && n % 100 == 50;
        vec![(Duration::from_millis(if late { 700 } else { 0 }), w)]
    });
    let taken = std::rc::Rc::default();
    p.back.disturb = tap(std::rc::Rc::clone(&taken));
    p.run_until(at(20.0));
    let taken: Vec<_> = taken.take().into();
    let reports = reports(&taken);
    let told = reports.iter().filter(|r| r.1 == 1).count();
    assert!(told >= 3 && reports.iter().all(|r| r.1 <= 1), "{reports:?}");
    assert_eq!(p.sender.stats().rejected, Default::default());
    assert!(p.sender.flow().counters().data.lost <= 1);
}

/// The departures: kind, transport, bytes.
type Left = Vec<(What, Via, Vec<u8>)>;

fn poll_all(s: &mut fairpace_rtp::SenderSession, now: Instant) -> (Left, Result<Instant, StopReason>) {
    let mut out = Vec::new();
    loop {
        match s.poll(now) {
            Out::Datagram(d) => out.push((d.what, d.via, d.bytes.to_vec())),
            Out::Wait(t) => return (out, Ok(t)),
            Out::Stopped(r) => return (out, Err(r)),
        }
    }
}

/// Challenges and echoes over UDP between a sender of `tpba` and a receiver, no delay.
fn greeted() -> (fairpace_rtp::SenderSession, ReceiverSession) {
    let flow = flow("tpba", &[], Rate::mbps(10.0));
    let mut s = fairpace_rtp::SenderSession::new(sender_config(), flow, Secret::from_seed(1));
    let mut r = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(2));
    let from = SENDER.parse().unwrap();
    assert!(!s.wants_tcp() && !r.wants_tcp());
    for (what, via, bytes) in poll_all(&mut s, at(0.0)).0 {
        assert_eq!((what, via), (What::Challenge, Via::Udp));
        r.handle_datagram(at(0.0), &bytes, Dscp::DEFAULT, Ecn::NotEct, from);
    }
    while let Out::Datagram(d) = r.poll(at(0.0)) {
        s.handle_datagram(at(0.0), d.bytes, d.dscp, d.ecn);
    }
    let _ = poll_all(&mut s, at(0.0));
    assert!(s.wants_tcp() && r.wants_tcp() && !s.is_connected() && !r.has_tcp());
    (s, r)
}

#[test]
fn nothing_is_sent_before_the_tcp_half_has_proven_itself_at_both_ends() {
    let (mut s, mut r) = greeted();
    let from: std::net::SocketAddr = SENDER.parse().unwrap();
    s.on_tcp_connected(at(0.1));
    let (out, _) = poll_all(&mut s, at(0.1));
    let [(What::Challenge, Via::Tcp, hello)] = &out[..] else { panic!("{out:?}") };
    // From elsewhere, with another token, or something else: not taken, and no answer.
    assert_eq!(r.accept_tcp(at(0.1), hello, "192.0.2.9".parse().unwrap()), None);
    let Some(Rtcp::App(app)) = Compound::parse(hello).unwrap().next() else { panic!() };
    let Ok(Some(Message::Challenge(c))) = Message::parse(&app) else { panic!() };
    assert_eq!(c.form, Request::Reports { interval: Duration::from_secs(1), tcp: true });
    let mut forged = Vec::new();
    Challenge { token: c.token ^ 1, ..c }.emit(&mut forged);
    assert_eq!(r.accept_tcp(at(0.1), &forged, from.ip()), None);
    assert_eq!(r.accept_tcp(at(0.1), &[0x80; 40], from.ip()), None);
    assert_eq!(r.handle_tcp_packet(at(0.1), hello), None);
    assert!(!r.has_tcp());
    let echo = r.accept_tcp(at(0.1), hello, from.ip()).unwrap();
    assert!(r.has_tcp() && !r.wants_tcp());
    assert_eq!(r.accept_tcp(at(0.1), hello, from.ip()), None, "one connection");

    // An echo of somebody who only read the token has another SSRC.
    let mut other = echo.clone();
    other[4] ^= 1;
    s.handle_tcp_packet(at(0.2), &other);
    s.handle_tcp_packet(at(0.2), &[]);
    assert!(!s.is_connected());
    assert_eq!((s.stats().rejected.wrong_ssrc, s.stats().rejected.malformed), (1, 1));
    s.handle_tcp_packet(at(0.2), &echo);
    assert!(s.is_connected());
    assert!(std::iter::from_fn(|| s.next_event()).any(|e| e == SenderEvent::TcpUp));
}

#[test]
fn frames_go_by_tcp_while_it_has_room_and_reports_by_udp() {
    let (mut s, mut r) = greeted();
    let from: std::net::SocketAddr = SENDER.parse().unwrap();
    s.on_tcp_connected(at(0.1));
    let hello = poll_all(&mut s, at(0.1)).0.remove(0).2;
    let echo = r.accept_tcp(at(0.1), &hello, from.ip()).unwrap();
    s.handle_tcp_packet(at(0.1), &echo);
    s.set_tcp_room(false);
    let frame = fairpace_rtp::Frame { data: vec![7; 3_000], timestamp_90k: 0, key: true };
    s.push_frame(at(0.2), frame);
    assert_eq!(poll_all(&mut s, at(0.2)).0, []);
    s.set_tcp_room(true);
    // The cap of 10 Mbit/s lets a packet go each 0.8 ms.
    let out: Vec<_> = [0.30, 0.31, 0.32, 0.33, 1.3].iter().flat_map(|&t| poll_all(&mut s, at(t)).0).collect();
    assert_eq!(out.iter().filter(|o| o.0 == What::Media).map(|o| o.1).collect::<Vec<_>>(), [Via::Tcp; 4]);
    assert_eq!(out.iter().filter(|o| o.0 == What::Report).map(|o| o.1).collect::<Vec<_>>(), [Via::Udp]);
    let media = out.iter().filter(|o| o.0 == What::Media);
    let got: Vec<_> = media.filter_map(|o| r.handle_tcp_packet(at(1.3), &o.2).map(|m| (m.via, m.marker))).collect();
    assert_eq!(got, [(Via::Tcp, false), (Via::Tcp, false), (Via::Tcp, false), (Via::Tcp, true)]);
}

#[test]
fn a_peer_without_the_tcp_half_ends_the_session_with_that_reason_and_a_goodbye() {
    let (mut s, _) = greeted();
    // 5 s of patience from the echo on
    assert_eq!(poll_all(&mut s, at(4.9)), (vec![], Ok(at(5.0))));
    let (out, end) = poll_all(&mut s, at(5.0));
    assert_eq!((out.len(), out[0].0, end), (1, What::Bye, Ok(at(5.1))), "said again");
    assert_eq!(poll_all(&mut s, at(5.1)).1, Ok(at(5.25)));
    assert_eq!(poll_all(&mut s, at(5.25)).1, Err(StopReason::NoTcp));
    let (mut s, _) = greeted();
    s.on_tcp_closed(at(0.1));
    for (now, end) in [(0.1, Ok(at(0.2))), (0.2, Ok(at(0.35))), (0.35, Err(StopReason::NoTcp))] {
        assert_eq!(poll_all(&mut s, at(now)).1, end);
    }
    // The flow has not begun: nothing is told to a controller that has sent nothing.
    assert_eq!(s.flow().controller().via(), Via::Tcp);
    assert_eq!(s.flow().counters().data.sent, 0);
}
