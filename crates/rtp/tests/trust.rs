//! The trust of a session, and the peers to which it sends. The letters T1 to T21 name threats; see
//! docs/rtp/safety.md.

mod pair;

use fairpace_control::{Env, Flow, FlowParams, build};
use fairpace_rtp::challenge::{self, Echo, Message};
use fairpace_rtp::feedback::ccfb::wire::{self as ccfb, Metric};
use fairpace_rtp::feedback::claim::{self, Claim};
use fairpace_rtp::feedback::rtp_tfrc::wire as tfrc;
use fairpace_rtp::playout;
use fairpace_rtp::rtcp::{self, Compound, Rtcp};
use fairpace_rtp::{
    Admission, Out, ReceiverConfig, ReceiverSession, Secret, SenderConfig, SenderEvent, SenderSession, StopReason, What,
};
use fairpace_units::{Duration, Ecn, Instant, RandomStream, Rate};
use pair::*;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

fn rcs() -> fairpace_control::Flow {
    flow("rcs", &[], Rate::mbps(10.0))
}

/// Polls until it waits or stops; what left, and what it said last.
fn drain(s: &mut SenderSession, now: Instant) -> (Vec<(What, Vec<u8>)>, Option<Instant>) {
    let mut out = Vec::new();
    loop {
        match s.poll(now) {
            Out::Datagram(d) => out.push((d.what, d.bytes.to_vec())),
            Out::Wait(until) => return (out, Some(until)),
            Out::Stopped(_) => return (out, None),
        }
    }
}

// --- T12: nobody is sent anything that has not been asked for ------------------------------------

#[test]
fn an_address_that_does_not_answer_gets_three_challenges_and_nothing_else() {
    let mut p = Pair::usual("rcs", &[]);
    p.receiver_alive = false;
    p.run_until(at(100.0));
    assert_eq!(p.stopped, Some((at(7.0), StopReason::Unreachable)));
    // At 0, 1 and 3 s, in both classes.
    let when: Vec<_> = p.sent.iter().map(|l| (l.at, l.what, l.len)).collect();
    let expected: Vec<_> = [0.0, 0.0, 1.0, 1.0, 3.0, 3.0].map(|t| (at(t), What::Challenge, challenge::LEN)).into();
    assert_eq!(when, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn before_an_echo_nothing_but_challenges_leaves_whatever_arrives(
        seed: u64,
        responder: bool,
        inputs in prop::collection::vec((0_u64..2_000, prop::collection::vec(any::<u8>(), 0..60), 0_u8..8), 0..12),
    ) {
        let admission = if responder { Admission::Responder } else { Admission::Initiator };
        let mut s = SenderSession::new(SenderConfig { admission, ..sender_config() }, rcs(), Secret::from_seed(seed));
        let [media, ..] = s.ssrcs();
        let mut now = Instant::ZERO;
        let (mut bytes_in, mut bytes_out, mut challenges) = (0, 0, 0);
        for (wait, junk, kind) in inputs {
            s.push_frame(now, fairpace_rtp::Frame { data: vec![0; 3_000], timestamp_90k: 0, key: true });
            // Junk, and well-formed lies that know our SSRC.
            let mut bytes = Vec::new();
            match kind {
                0 => rtcp::emit_receiver_report(&mut bytes, 1, &[rtcp::ReportBlock { ssrc: media, ..Default::default() }]),
                1 => rtcp::emit_picture_loss(&mut bytes, 1, media),
                2 => rtcp::emit_bye(&mut bytes, &[1], "x"),
                3 => Echo {
                    receiver: 1, token: wait, dscp: Default::default(), ecn: Ecn::NotEct,
                    delay: Duration::ZERO, rwnd: None, feedback_interval: Duration::ZERO, next_report: 0, taken: false, fec: false, busy: false, ends: false, show: false,
                }.emit(&mut bytes),
                4 => ccfb::emit(&mut bytes, 1, 2, [(media, 0, vec![Metric::received(Ecn::NotEct, Duration::ZERO); 4])]),
                5 => rtcp::emit_nack(&mut bytes, 1, media, &[1, 2, 3]),
                _ => bytes = junk,
            }
            bytes_in += bytes.len();
            s.handle_datagram(now, &bytes, Default::default(), Ecn::NotEct);
            for (what, bytes) in drain(&mut s, now).0 {
                prop_assert_eq!(what, What::Challenge);
                bytes_out += bytes.len();
                challenges += 1;
            }
            if responder {
                prop_assert!(bytes_out <= 3 * bytes_in, "{} out, {} in", bytes_out, bytes_in);
            }
            now += Duration::from_millis(wait);
        }
        prop_assert!(challenges <= 6);
        prop_assert!(!s.is_validated());
    }
}

#[test]
fn a_responder_answers_a_request_with_at_most_three_times_its_bytes() {
    for (request, allowed) in [(0, 0), (11, 0), (12, 1), (24, 2), (1_000, 6)] {
        let config = SenderConfig { admission: Admission::Responder, ..sender_config() };
        let mut s = SenderSession::new(config, rcs(), Secret::from_seed(1));
        s.handle_datagram(Instant::ZERO, &vec![0; request], Default::default(), Ecn::NotEct);
        let mut sent = 0;
        let mut now = Instant::ZERO;
        while let (out, Some(until)) = drain(&mut s, now) {
            sent += out.len();
            now = until;
        }
        assert_eq!(sent, allowed, "a request of {request} B; a challenge has 36 B");
    }
}

/// The answer to a challenge, if these bytes are one.
fn answer(bytes: &[u8]) -> Option<Echo> {
    let Some(Rtcp::App(app)) = Compound::parse(bytes).ok()?.next() else { return None };
    let Ok(Some(Message::Challenge(challenge))) = Message::parse(&app) else { return None };
    Some(Echo {
        receiver: 5,
        token: challenge.token,
        dscp: Default::default(),
        ecn: Ecn::NotEct,
        delay: Duration::ZERO,
        rwnd: None,
        feedback_interval: Duration::ZERO,
        next_report: 0,
        taken: false,
        fec: false,
        busy: false,
        ends: false,
        show: false,
    })
}

fn hear(s: &mut SenderSession, now: Instant, echo: &Echo) {
    let mut bytes = Vec::new();
    echo.emit(&mut bytes);
    s.handle_datagram(now, &bytes, Default::default(), Ecn::NotEct);
}

/// Each challenge is answered by TAKEN with another number, before the session and while it runs.
#[test]
fn a_receiver_that_takes_no_proof_gets_no_more_challenges_for_it() {
    for begun in [false, true] {
        let mut s = SenderSession::new(sender_config(), rcs(), Secret::from_seed(77));
        let (mut asked, mut number) = (0, 0);
        for ms in 0..5_000_u64 {
            let now = Instant::from_nanos(ms * 1_000_000);
            if ms % 40 == 0 {
                // Nothing tells of them: they are asked about.
                s.push_frame(now, fairpace_rtp::Frame { data: vec![0; 100], timestamp_90k: 90 * ms as u32, key: true });
            }
            for (what, bytes) in drain(&mut s, now).0 {
                let Some(echo) = answer(&bytes).filter(|_| what == What::Challenge) else { continue };
                (asked, number) = (asked + 1, number + 1);
                let taken = !(begun && ms == 0);
                hear(&mut s, now, &Echo { taken, next_report: number, ..echo });
            }
        }
        assert_eq!(s.is_validated(), begun);
        assert!(asked > 2 && asked <= 30, "{asked} in 5 s, begun: {begun}");
    }
}

/// The path's round trip is 100 ms. Whatever the receiver says that it held the answer, no more than half of that is believed; an
/// honest one that held the first answer is asked again, and measured.
#[test]
fn a_receiver_that_says_it_held_the_answer_makes_no_path_shorter() {
    let after = |round_trip: &[u64], delays: &[Duration]| {
        let mut s = SenderSession::new(sender_config(), rcs(), Secret::from_seed(77));
        let mut now = at(0.0);
        for (round_trip, delay) in round_trip.iter().zip(delays) {
            let asked = drain(&mut s, now).0;
            now += ms(*round_trip);
            for (_, bytes) in asked {
                if let Some(echo) = answer(&bytes) {
                    hear(&mut s, now, &Echo { delay: *delay, ..echo });
                }
            }
        }
        let validated = core::iter::from_fn(|| s.next_event()).find_map(|e| match e {
            SenderEvent::PeerValidated { srtt, .. } => Some(srtt),
            _ => None,
        });
        validated.unwrap()
    };
    for lie in [Duration::from_micros(99_900), ms(100), Duration::from_secs(3_600)] {
        assert_eq!(after(&[100, 100], &[lie, lie]), ms(50), "{lie:?}");
    }
    assert_eq!(after(&[2_005, 5], &[ms(2_000), Duration::ZERO]), ms(5));
    assert_eq!(after(&[105], &[ms(5)]), ms(100));
}

/// Large reports in the name of a sender whose SSRC nobody knows.
#[test]
fn forged_reports_do_not_make_a_receivers_own_rare() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    let mut forged = Vec::new();
    rtcp::emit_receiver_report(&mut forged, 9, &[rtcp::ReportBlock::default(); 31]);
    for ssrc in 0..90_u32 {
        rtcp::emit_receiver_report(&mut forged, ssrc, &[rtcp::ReportBlock::default(); 31]);
    }
    assert!(forged.len() > 60_000);
    let when = Rc::new(RefCell::new(Vec::new()));
    let seen = when.clone();
    p.back.disturb = Box::new(move |now, w| {
        if w.what == What::Report {
            seen.borrow_mut().push(now);
        }
        vec![(ms(0), w)]
    });
    for tenth in 0..400_u32 {
        p.run_until(at(f64::from(tenth) / 10.0));
        p.receiver.handle_datagram(p.now, &forged, Default::default(), Ecn::NotEct, SENDER.parse().unwrap());
    }
    let when = when.borrow();
    let longest = when.windows(2).map(|w| w[1].since(w[0])).max();
    assert!(when.len() >= 5 && longest < Some(ms(7_500)), "{} reports, {longest:?} apart", when.len());
}

#[test]
fn a_token_answers_once_and_only_if_it_is_ours() {
    let mut s = SenderSession::new(sender_config(), rcs(), Secret::from_seed(1));
    let (out, _) = drain(&mut s, Instant::ZERO);
    let token = |bytes: &[u8]| match Compound::parse(bytes).unwrap().next() {
        Some(Rtcp::App(app)) => match Message::parse(&app) {
            Ok(Some(Message::Challenge(c))) => c.token,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let echo = |token, receiver| {
        let mut bytes = Vec::new();
        Echo {
            receiver,
            token,
            dscp: Default::default(),
            ecn: Ecn::NotEct,
            delay: Duration::ZERO,
            rwnd: None,
            feedback_interval: Duration::ZERO,
            next_report: 0,
            taken: false,
            busy: false,
            ends: false,
            show: false,
            fec: false,
        }
        .emit(&mut bytes);
        bytes
    };
    s.handle_datagram(at(0.1), &echo(token(&out[0].1) ^ 1, 7), Default::default(), Ecn::NotEct);
    assert!(!s.is_validated());
    s.handle_datagram(at(0.1), &echo(token(&out[0].1), 7), Default::default(), Ecn::NotEct);
    assert!(s.is_validated());
    // Again, from another: the first stays.
    s.handle_datagram(at(0.1), &echo(token(&out[0].1), 8), Default::default(), Ecn::NotEct);
    assert_eq!(s.stats().rejected.token, 2);
}

#[test]
fn the_receiver_answers_no_address_with_more_than_three_times_what_came_from_it() {
    use fairpace_rtp::ReceiverSession;
    // Small packets of plain RTP, feedback at every packet: 13 bytes in, some 60 out for each, if unchecked.
    let config = ReceiverConfig { feedback_interval: Duration::ZERO, ..ReceiverConfig::default() };
    let mut r = ReceiverSession::new(config, Secret::from_seed(1));
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for n in 0..2_000_u16 {
        let now = at(f64::from(n) * 0.01);
        let mut bytes = Vec::new();
        fairpace_rtp::packet::Packet {
            marker: true,
            payload_type: 96,
            sequence: n,
            timestamp: 0,
            ssrc: 9,
            extensions: Default::default(),
            payload: &[1],
        }
        .emit(&mut bytes);
        bytes_in += bytes.len();
        r.handle_datagram(now, &bytes, Default::default(), Ecn::NotEct, SENDER.parse().unwrap());
        while let Out::Datagram(d) = r.poll(now) {
            bytes_out += d.bytes.len();
        }
        assert!(bytes_out <= 3 * bytes_in, "{bytes_out} out, {bytes_in} in");
    }
    assert!(r.stats().held_back > 0 && bytes_out > bytes_in, "the limit was reached, and used");
}

/// T6 where nothing proves a report (`check_nonces` off): one report of the first seconds, in place of all that come later.
#[test]
fn a_report_without_proof_that_is_replayed_renews_no_consent() {
    let env = Env { max_rate: Rate::mbps(2.0), ..Env::default() };
    let controller = build("fixed", &Default::default(), &env).unwrap();
    // Without the circuit breaker, which misses news sooner.
    let flow = Flow::new(controller, FlowParams { breaker: None, ..FlowParams::new(&env) });
    let mut p =
        Pair::new(SenderConfig { check_nonces: false, ..sender_config() }, ReceiverConfig::default(), flow, ms(50));
    let mut kept: Option<Wire> = None;
    p.back.disturb = Box::new(move |now, w| {
        let found = |p| matches!(p, Rtcp::CongestionFeedback(..));
        if w.what == What::Feedback && Compound::parse(&w.bytes).unwrap().any(found) && kept.is_none() {
            // The claims go before the report, 24 bytes for one stream.
            let mut plain = w.clone();
            plain.bytes.drain(..24);
            assert!(Compound::parse(&plain.bytes).unwrap().any(found));
            kept = Some(plain);
        }
        let shown = if now < at(5.0) { Some(w) } else { kept.clone() };
        shown.into_iter().map(|w| (Duration::ZERO, w)).collect()
    });
    p.run_until(at(60.0));
    let (when, reason) = p.stopped.expect("nobody is there");
    assert_eq!(reason, StopReason::ConsentExpired);
    assert!((at(34.0)..at(37.0)).contains(&when), "{when}");
}

#[test]
fn consent_is_asked_for_again_while_nothing_is_sent_and_ends_after_30_s() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.fps = 0;
    p.run_until(at(100.0));
    assert_eq!(p.stopped, None);
    // Every 15 s: 15, 30, ...; the first two are the opening ones.
    assert!((7..=9).contains(&p.count(What::Challenge)), "{}", p.count(What::Challenge));
    p.receiver_alive = false;
    p.run_until(at(140.0));
    let (when, reason) = p.stopped.unwrap();
    assert_eq!(reason, StopReason::ConsentExpired);
    assert!(when > at(100.0) && when <= at(130.1), "{when}");
}

// --- T14: a dead path ----------------------------------------------------------------------------

#[test]
fn a_peer_that_vanishes_stops_the_flow_within_15_s_and_a_round_trip() {
    for scheme in ["rcs", "rap", "fixed"] {
        let mut p = Pair::usual(scheme, &[]);
        p.run_until(at(10.0));
        p.receiver_alive = false;
        p.run_until(at(40.0));
        let (when, reason) = p.stopped.unwrap_or_else(|| panic!("{scheme} goes on"));
        assert!(matches!(reason, StopReason::Breaker(_)), "{scheme}: {reason:?}");
        assert!(when > at(24.0) && when <= at(25.1), "{scheme}: {when}");
        assert_eq!(p.sender_events.last().map(|e| e.1), Some(SenderEvent::Stopped(reason)));
        // Three BYEs, then silence.
        assert_eq!(p.sent.last().map(|l| (l.what, l.at)), Some((What::Bye, when + ms(250))));
        assert_eq!(p.count(What::Bye), 3);
    }
}

// --- T2, T6: feedback that comes twice -----------------------------------------------------------

fn trace(disturb: Disturb) -> (Vec<Left>, u64) {
    let mut p = Pair::usual("rcs", &[]);
    p.forward.disturb = lossy(3, 0.01);
    p.back.disturb = disturb;
    p.run_until(at(8.0));
    (p.sent, p.sender.stats().rejected.replayed)
}

#[test]
fn duplicated_feedback_changes_nothing() {
    let (clean, _) = trace(undisturbed());
    assert!(clean.len() > 1_000);
    for k in [2, 10] {
        let (multiplied, rejected) = trace(Box::new(move |_, w| vec![(Duration::ZERO, w); k]));
        assert_eq!(multiplied, clean);
        assert!(rejected > 100);
    }
}

#[test]
fn replayed_feedback_changes_nothing() {
    let (clean, _) = trace(undisturbed());
    let mut stream = RandomStream::named(9, "replay");
    let replays: Disturb = Box::new(move |_, w| {
        let mut all = vec![(Duration::ZERO, w.clone())];
        if w.what == What::Feedback {
            all.extend((0..5).map(|_| (stream.duration_below(Duration::from_secs(4)), w.clone())));
        }
        all
    });
    let (replayed, rejected) = trace(replays);
    assert_eq!(replayed, clean);
    assert!(rejected > 500);
}

#[test]
fn reordered_feedback_loses_no_acknowledgement() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let mut n = 0_u64;
    p.back.disturb = Box::new(move |_, w| {
        n += 1;
        vec![(ms(n % 3 * 25), w)]
    });
    p.run_until(at(5.0));
    let c = p.sender.flow().counters();
    assert_eq!((c.data.lost, p.sender.stats().rejected), (0, Default::default()));
    assert!(c.data.acked + 50 > c.data.sent);
}

// --- T1, T3, T9: feedback that lies --------------------------------------------------------------

#[test]
fn rewriting_nothing_changes_nothing() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.back.disturb = rewrite(|_, _, _| {});
    p.run_until(at(3.0));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
}

#[test]
fn acknowledging_early_is_caught_at_the_first_claim_and_stops_the_flow_at_the_third() {
    // Five packets more than arrived: they are on their way, but their nonces are not known.
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    p.back.disturb = rewrite(|_, blocks, _| blocks[0].2.extend([received(); 5]));
    p.run_until(at(5.0));
    let (when, reason) = p.stopped.unwrap();
    assert_eq!(reason, StopReason::PeerLied);
    // First data at 0.1 s and its feedback at 0.2 s. Three lies about different packets: a report tells of the
    // last three intervals and 25 ms ahead, so a range is clear of the last after 5 reports of 20 ms.
    assert!(when < at(0.45), "{when}");
    assert_eq!(p.sender.flow().counters().data.acked, 0, "not one false acknowledgement was credited");
    let rejected = p.sender.stats().rejected;
    assert!((3..=20).contains(&(rejected.nonce + rejected.unsent)), "{rejected:?}");
}

#[test]
fn hiding_a_loss_is_caught() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    p.forward.disturb = lossy(4, 0.05);
    p.back.disturb = rewrite(|_, blocks, _| blocks[0].2.fill(received()));
    p.run_until(at(5.0));
    assert_eq!(p.stopped.map(|s| s.1), Some(StopReason::PeerLied));
    assert!(p.sender.stats().rejected.nonce >= 3);
}

#[test]
fn one_wrong_sum_is_dropped_and_forgiven() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let mut n = 0;
    p.back.disturb = rewrite(move |_, _, claims| {
        n += 1;
        if n % 3 == 0 {
            claims[0].nonce_sum ^= 1;
        }
    });
    p.run_until(at(5.0));
    assert_eq!(p.stopped, None);
    assert!(p.sender.stats().rejected.nonce > 50);
    let c = p.sender.flow().counters();
    assert_eq!(c.data.lost, 0, "what one report could not prove, the next did");
}

#[test]
fn one_damaged_nonce_does_not_make_a_liar_although_reports_overlap() {
    // No UDP checksum, say. The packet stands in three reports in a row, and all three are wrong.
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let mut n = 0;
    p.forward.disturb = Box::new(move |_, mut w| {
        n += u32::from(w.what == What::Media);
        if w.what == What::Media && n % 50 == 0 {
            w.bytes[21] ^= 0xff; // header 12, extension head 4, send time 4, nonce's head 1
        }
        vec![(Duration::ZERO, w)]
    });
    p.run_until(at(5.0));
    assert_eq!(p.stopped, None);
    // Some 19 damaged packets, in three reports each.
    assert!((45..=60).contains(&p.sender.stats().rejected.nonce), "{:?}", p.sender.stats().rejected);
}

#[test]
fn packets_that_were_never_sent_are_not_acknowledged() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    p.back.disturb = rewrite(|_, blocks, _| blocks[0].1 = blocks[0].1.wrapping_add(2_000));
    p.run_until(at(2.0));
    assert_eq!(p.stopped.map(|s| s.1), Some(StopReason::PeerLied));
    assert_eq!(p.sender.stats().rejected.unsent, 3);
}

#[test]
fn feedback_from_another_ssrc_is_nothing_to_this_flow() {
    let counted = Rc::new(Cell::new(0));
    let seen = counted.clone();
    let (clean, _) = trace(undisturbed());
    // Beside each true report a forged one, from an SSRC that has echoed nothing: claims all lost, or all here.
    let mut forge = rewrite(|reporter, blocks, _| {
        *reporter ^= 1;
        blocks[0].2.fill(Metric::NotReceived);
    });
    let forged: Disturb = Box::new(move |now, w| {
        let mut all = forge(now, w.clone());
        if w.what != What::Feedback {
            return vec![(Duration::ZERO, w)];
        }
        seen.set(seen.get() + 1);
        all.push((Duration::ZERO, w));
        all
    });
    let (with, _) = trace(forged);
    assert_eq!(with, clean);
    assert!(counted.get() > 200);
}

#[test]
fn blind_forgeries_are_not_believed() {
    // SSRCs are 32 bits, report numbers 32, nonce sums 32: 100,000 guesses at everything but the form.
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    p.run_until(at(1.0));
    let [media, ..] = p.sender.ssrcs();
    let before = (*p.sender.flow().counters(), p.sender.stats().feedback);
    let mut random = RandomStream::named(1, "forger");
    for i in 0..100_000_u32 {
        let mut bytes = Vec::new();
        let reporter = random.bits() as u32;
        // Half of them know our SSRC, as one who saw an SDP or an old capture might.
        let about = if i % 2 == 0 { media } else { random.bits() as u32 };
        match i % 7 {
            0 | 1 => {
                claim::emit(&mut bytes, reporter, random.bits() as u32, [Claim::default()]);
                ccfb::emit(&mut bytes, reporter, 0, [(about, random.bits() as u16, vec![received(); 8])]);
            }
            2 => rtcp::emit_bye(&mut bytes, &[reporter], ""),
            3 => rtcp::emit_receiver_report(
                &mut bytes,
                reporter,
                &[rtcp::ReportBlock {
                    ssrc: about,
                    fraction_lost: 255,
                    highest: random.bits() as u32,
                    ..Default::default()
                }],
            ),
            4 => rtcp::emit_nack(&mut bytes, reporter, about, &[random.bits() as u16]),
            5 => rtcp::emit_picture_loss(&mut bytes, reporter, about),
            _ => playout::emit(reporter, Duration::from_secs(1), &mut bytes),
        }
        p.sender.handle_datagram(p.now, &bytes, Default::default(), Ecn::NotEct);
    }
    assert_eq!((*p.sender.flow().counters(), p.sender.stats().feedback), before);
    assert_eq!(p.sender.stats().rejected.wrong_ssrc, 100_000);
    p.run_until(at(3.0));
    assert_eq!(p.stopped, None);
}

/// The receiver's first echo, and its SSRC from there.
fn first_echo(tapped: &VecDeque<(Instant, Wire)>) -> (Vec<u8>, u32) {
    let echo = tapped.iter().find(|(_, wire)| wire.what == What::Echo).map(|(_, wire)| wire.bytes.clone()).unwrap();
    let receiver = u32::from_be_bytes(echo[4..8].try_into().unwrap());
    (echo, receiver)
}

#[test]
fn a_forged_bye_ends_nothing_while_packets_flow() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    p.back.disturb = tap(tapped.clone());
    p.run_until(at(2.0));
    let [media, ..] = p.sender.ssrcs();
    // Worst case: the forger knows every SSRC and both addresses.
    let (_, receiver) = first_echo(&tapped.borrow());
    let mut bye = Vec::new();
    rtcp::emit_bye(&mut bye, &[receiver], "");
    p.sender.handle_datagram(p.now, &bye, Default::default(), Ecn::NotEct);
    let mut bye = Vec::new();
    rtcp::emit_bye(&mut bye, &[media], "");
    p.receiver.handle_datagram(p.now, &bye, Default::default(), Ecn::NotEct, SENDER.parse().unwrap());
    p.run_until(at(5.0));
    assert_eq!(p.stopped, None);
    assert_eq!((p.sender.stats().byes_ignored, p.receiver.stats().byes_ignored), (1, 1));
    assert_eq!(p.receiver_events.len(), 1, "only the source itself");
}

#[test]
fn another_address_cannot_take_the_place_of_a_sender_that_is_there() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(2.0));
    let mut intruder = SenderSession::new(sender_config(), rcs(), Secret::from_seed(77));
    let (out, _) = drain(&mut intruder, p.now);
    let elsewhere = "198.51.100.9:1".parse().unwrap();
    for (_, bytes) in &out {
        p.receiver.handle_datagram(p.now, bytes, Default::default(), Ecn::NotEct, elsewhere);
    }
    assert_eq!(p.receiver.stats().wrong_address, 2);
    assert_eq!(p.receiver.peer(), Some(SENDER.parse().unwrap()));
    p.strangers = Some(Vec::new());
    p.run_until(at(3.0));
    // All goes to SENDER but one word to the intruder.
    assert_eq!(p.strangers.replace(Vec::new()).map(|words| words.len()), Some(1));
    assert_eq!(p.stopped, None);
    // After 30 s of silence its consent is over, and the place is free.
    p.forward.disturb = Box::new(|_, _| vec![]);
    p.run_until(at(33.0));
    p.receiver.handle_datagram(p.now, &out[0].1, Default::default(), Ecn::NotEct, elsewhere);
    assert_eq!(p.receiver.peer(), Some(SENDER.parse().unwrap()));
    p.strangers = Some(Vec::new());
    p.run_until(at(33.2));
    p.receiver.handle_datagram(p.now, &out[0].1, Default::default(), Ecn::NotEct, elsewhere);
    assert_eq!(p.receiver.peer(), Some(elsewhere));
}

/// The echoes that a receiver sends now, and where they go.
fn echoes(r: &mut ReceiverSession, now: Instant) -> Vec<(std::net::SocketAddr, Echo)> {
    let mut echoes = Vec::new();
    while let Out::Datagram(d) = r.poll(now) {
        if let Some(Rtcp::App(app)) = Compound::parse(d.bytes).ok().and_then(|mut c| c.next())
            && let Ok(Some(Message::Echo(echo))) = Message::parse(&app)
        {
            echoes.push((d.to.unwrap(), echo));
        }
    }
    echoes
}

#[test]
fn an_address_that_is_not_allowed_gets_no_answer_and_no_place() {
    let from = vec!["192.0.2.1".parse().unwrap(), "203.0.113.0/24".parse().unwrap()];
    let config = ReceiverConfig { from, ..ReceiverConfig::default() };
    let mut r = ReceiverSession::new(config, Secret::from_seed(2));
    let mut s = SenderSession::new(sender_config(), rcs(), Secret::from_seed(77));
    let (challenges, _) = drain(&mut s, at(0.0));
    let mut ask = |from: &str| {
        for (_, bytes) in &challenges {
            let got = r.handle_datagram(at(0.0), bytes, Default::default(), Ecn::NotEct, from.parse().unwrap());
            assert_eq!(got, None);
        }
        // Media of another tool, which challenges nobody.
        for sequence in 1..5 {
            r.handle_datagram(at(0.0), &plain_rtp(7, sequence), Default::default(), Ecn::NotEct, from.parse().unwrap());
        }
        (echoes(&mut r, at(0.0)).len(), r.peer(), r.stats().not_allowed)
    };
    assert_eq!(ask("198.51.100.9:1"), (0, None, 6));
    assert_eq!(ask("203.0.113.200:1").1, Some("203.0.113.200:1".parse().unwrap()));
}

/// The last sender is killed at 2 s; what it sent last arrives 50 ms later. One of another port of its machine, which has the key, has to
/// show that it is there.
#[test]
fn a_challenge_from_another_port_is_answered_as_soon_as_the_place_is_free() {
    let config = ReceiverConfig { keyed: true, ..ReceiverConfig::default() };
    let mut p = Pair::new(sender_config(), config, flow("fixed", &[("rate", "100 pkt/s")], Rate::mbps(10.0)), ms(50));
    p.run_until(at(2.0));
    p.forward.disturb = Box::new(|_, _| vec![]);
    p.run_until(at(3.0));
    let mut next = SenderSession::new(sender_config(), rcs(), Secret::from_seed(77));
    let (out, _) = drain(&mut next, p.now);
    let elsewhere = "192.0.2.1:6000".parse().unwrap();
    for (_, bytes) in &out {
        p.receiver.handle_datagram(p.now, bytes, Default::default(), Ecn::NotEct, elsewhere);
    }
    let told = echoes(&mut p.receiver, at(3.9));
    assert!(matches!(told[..], [(to, Echo { busy: true, .. })] if to == elsewhere), "{told:?}");
    let until = match p.receiver.poll(at(3.9)) {
        Out::Wait(until) => until,
        other => panic!("{other:?}"),
    };
    assert!(until > at(3.95) && until < at(4.1), "{until:?}");
    let answered = echoes(&mut p.receiver, until);
    assert_eq!(answered.iter().map(|(to, e)| (*to, e.taken)).collect::<Vec<_>>(), [(elsewhere, true); 2]);
    assert!(answered.iter().all(|(_, e)| e.delay == until.since(at(3.0))), "the wait is none of the path's");
    for (_, echo) in answered {
        let mut bytes = Vec::new();
        echo.emit(&mut bytes);
        next.handle_datagram(until, &bytes, Default::default(), Ecn::NotEct);
    }
    for (_, bytes) in &drain(&mut next, until).0 {
        p.receiver.handle_datagram(until, bytes, Default::default(), Ecn::NotEct, elsewhere);
    }
    assert_eq!(p.receiver.peer(), Some(elsewhere));
}

/// A sender is killed, and another one begins at its address: it shows that it sees what goes there, and is let in at once.
#[test]
fn a_new_sender_at_the_address_of_a_killed_one_is_let_in_after_two_round_trips() {
    for scheme in ["rcs", "aimd", "lda", "tfrc"] {
        let mut p = Pair::usual(scheme, &[]);
        p.run_until(at(3.0));
        let old = p.sender.ssrcs()[0];
        let flow = flow(scheme, &[], Rate::mbps(1.0));
        p.sender = SenderSession::new(sender_config(), flow, Secret::from_seed(77));
        p.run_until(at(3.6));
        let stats = p.receiver.stats();
        assert_eq!(stats.media.ssrc, p.sender.ssrcs()[0], "{scheme}");
        assert!(stats.media.received > 0 && stats.media.ssrc != old, "{scheme}: {stats:?}");
        p.run_until(at(10.0));
        assert!(p.sender.stats().feedback.packets > 0 && p.sender.flow().stopped().is_none(), "{scheme}");
    }
}

/// RTP packets in sequence in somebody's name, so many a second, while the pair runs until then.
fn run_beside_forged_media(p: &mut Pair, until: Instant, per_second: u64) {
    let from = "198.51.100.9:1".parse().unwrap();
    let mut sequence = 0;
    while p.now < until {
        p.receiver.handle_datagram(p.now, &plain_rtp(7, sequence), Default::default(), Ecn::NotEct, from);
        sequence = sequence.wrapping_add(1);
        p.run_until((p.now + Duration::from_nanos(1_000_000_000 / per_second)).min(until));
    }
}

#[test]
fn forged_media_keeps_no_sender_out_of_an_idle_receiver() {
    for per_second in [1, 10, 300] {
        let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
        p.strangers = Some(Vec::new());
        for sequence in 60_000..60_010 {
            let from = "198.51.100.9:1".parse().unwrap();
            p.receiver.handle_datagram(at(0.0), &plain_rtp(7, sequence), Default::default(), Ecn::NotEct, from);
        }
        assert_eq!(p.receiver.peer(), Some("198.51.100.9:1".parse().unwrap()), "the place is taken");
        run_beside_forged_media(&mut p, at(5.0), per_second);
        assert_eq!(p.receiver.peer(), Some(SENDER.parse().unwrap()), "{per_second}");
        assert!(p.receiver.stats().media.received > 400, "{per_second}: {:?}", p.receiver.stats().media);
    }
}

#[test]
fn forged_media_does_not_end_a_stream_whose_receiver_is_started_again() {
    let mut p = Pair::usual("rcs", &[]);
    p.strangers = Some(Vec::new());
    run_beside_forged_media(&mut p, at(3.0), 300);
    p.receiver = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(99));
    run_beside_forged_media(&mut p, at(20.0), 300);
    assert_eq!((p.stopped, p.receiver.peer()), (None, Some(SENDER.parse().unwrap())));
    assert!(p.received.iter().any(|got| got.arrived > at(19.5)), "media arrives");
}

#[test]
fn a_challenge_that_is_replayed_keeps_no_place_for_a_sender_that_is_gone() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    p.forward.disturb = tap(tapped.clone());
    p.run_until(at(2.0));
    p.forward.disturb = Box::new(|_, _| vec![]);
    let kept: Vec<_> = tapped.borrow().iter().filter(|(_, w)| w.what == What::Challenge).cloned().collect();
    assert!(!kept.is_empty());
    for second in 2..36 {
        p.run_until(at(f64::from(second)));
        for (_, wire) in &kept {
            let from = SENDER.parse().unwrap();
            p.receiver.handle_datagram(p.now, &wire.bytes, Default::default(), Ecn::NotEct, from);
        }
    }
    assert!(
        p.receiver_events.iter().any(|(_, e)| *e == fairpace_rtp::ReceiverEvent::Vanished),
        "{:?}",
        p.receiver_events
    );
}

/// Challenges with a forged address, media in sequence behind them, proofs guessed and proofs of another time.
#[test]
fn forged_challenges_do_not_throw_out_a_sender_that_is_there() {
    let honest = {
        let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
        p.run_until(at(10.0));
        p.receiver.stats().media.received
    };
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    let mut stream = RandomStream::named(1, "forger");
    let mut forged = 0;
    for n in 1..=90_u32 {
        p.run_until(at(1.0 + 0.1 * f64::from(n)));
        let mut session = SenderSession::new(sender_config(), rcs(), Secret::from_seed(1_000 + u64::from(n)));
        for (_, bytes) in drain(&mut session, p.now).0 {
            let asked = Compound::parse(&bytes).unwrap().next();
            let Some(Rtcp::App(app)) = asked else { panic!("a challenge") };
            let Ok(Some(Message::Challenge(c))) = Message::parse(&app) else { panic!("a challenge") };
            let mut guessed = Vec::new();
            challenge::Challenge { proof: Some(stream.bits() as u32), ..c }.emit(&mut guessed);
            for bytes in [bytes, guessed] {
                p.receiver.handle_datagram(p.now, &bytes, Default::default(), Ecn::NotEct, SENDER.parse().unwrap());
                forged += 1;
            }
            for sequence in 0..3 {
                let rtp = plain_rtp(c.media.1, sequence);
                let media =
                    p.receiver.handle_datagram(p.now, &rtp, Default::default(), Ecn::NotEct, SENDER.parse().unwrap());
                assert_eq!(media, None);
            }
        }
    }
    assert_eq!(forged, 360);
    assert_eq!(p.receiver.stats().media.ssrc, p.sender.ssrcs()[0]);
    assert_eq!(p.receiver.stats().media.received, honest);
    assert_eq!(p.stopped, None);
}

/// Half a minute in which the sender has nothing to send but reports, while challenges come with its address, and then media
/// that nobody announced. The session goes on afterwards, and keeps its consent.
#[test]
fn forgeries_do_not_throw_out_a_sender_that_has_nothing_to_send() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(3.0));
    p.fps = 0;
    let from = SENDER.parse().unwrap();
    let mut forged = SenderSession::new(sender_config(), rcs(), Secret::from_seed(77));
    let challenges = drain(&mut forged, p.now).0;
    for n in 1..=300_u32 {
        p.run_until(at(3.0 + 0.1 * f64::from(n)));
        for (_, bytes) in &challenges {
            p.receiver.handle_datagram(p.now, bytes, Default::default(), Ecn::NotEct, from);
        }
    }
    for sequence in 0..3 {
        p.receiver.handle_datagram(p.now, &plain_rtp(9, sequence), Default::default(), Ecn::NotEct, from);
    }
    p.run_until(at(36.0));
    assert_eq!(p.receiver.peer(), Some(from));
    let before = p.received.len();
    p.fps = 25;
    p.run_until(at(80.0));
    assert_eq!(p.stopped, None);
    assert!(p.received.len() > before + 1_000, "{}", p.received.len() - before);
    assert_eq!(p.receiver.stats().media.ssrc, p.sender.ssrcs()[0]);
}

// --- T18: wrap -----------------------------------------------------------------------------------

#[test]
fn starting_just_before_the_wrap_gives_the_identical_run() {
    let run = |first: u32| {
        let config = SenderConfig { first_sequence: Some(first), retransmission: true, ..sender_config() };
        let receiver = ReceiverConfig { nack: true, ..ReceiverConfig::default() };
        let mut p = Pair::new(config, receiver, rcs(), ms(50));
        p.forward.disturb = lossy(3, 0.02);
        p.back.disturb = lossy(4, 0.02);
        p.run_until(at(15.0));
        let offset = u64::from(first);
        let got: Vec<_> = p.received.iter().map(|g| (g.sequence - offset, g.arrived, g.len, g.retransmitted)).collect();
        (p.sent, got, *p.sender.flow().counters(), p.sender.stats().sent)
    };
    let base = run(0);
    assert!(base.1.len() > 1_000);
    for first in [65_535, 65_036, 32_000] {
        let wrapped = run(first);
        assert!(base == wrapped, "from {first}");
    }
}

// --- T17, T21: resources -------------------------------------------------------------------------

fn plain_rtp(ssrc: u32, sequence: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    fairpace_rtp::packet::Packet {
        marker: true,
        payload_type: 96,
        sequence,
        timestamp: 0,
        ssrc,
        extensions: Default::default(),
        payload: &[0x10, 0, 0],
    }
    .emit(&mut bytes);
    bytes
}

#[test]
fn a_flood_of_sources_neither_fills_memory_nor_disturbs_the_sender_that_is_there() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(1.0));
    let feed = |p: &mut Pair, from: &str, n: u32| {
        for i in 0..n {
            let bytes = plain_rtp(i.wrapping_mul(2_654_435_761), (i % 3) as u16);
            let out = p.receiver.handle_datagram(p.now, &bytes, Default::default(), Ecn::NotEct, from.parse().unwrap());
            assert_eq!(out, None);
        }
    };
    feed(&mut p, "198.51.100.9:1", 100_000);
    feed(&mut p, SENDER, 100_000);
    assert_eq!(p.receiver.sources(), 1, "the media stream");
    p.run_until(at(2.0));
    assert_eq!((p.stopped, p.receiver.stats().media.lost), (None, 0));
    // An idle receiver has no sender to protect: 1,024 newcomers at most, the oldest goes first.
    let mut idle = fairpace_rtp::ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(3));
    for i in 0..300_000_u32 {
        idle.handle_datagram(at(1.0), &plain_rtp(i, 7), Default::default(), Ecn::NotEct, SENDER.parse().unwrap());
        assert!(idle.sources() <= 1_024);
    }
    // And then a real one comes: believed at its second packet, not announced, so VP8 is assumed.
    let mut media = 0;
    for n in 0..10 {
        let from = SENDER.parse().unwrap();
        media += u32::from(
            idle.handle_datagram(at(1.1), &plain_rtp(1 << 31, n), Default::default(), Ecn::NotEct, from).is_some(),
        );
    }
    assert_eq!(media, 9);
    assert!(idle.peer().is_some());
}

#[test]
fn a_second_stream_from_another_tool_does_not_mix_with_the_first() {
    let mut r = fairpace_rtp::ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(3));
    let from = SENDER.parse().unwrap();
    let mut media = Vec::new();
    for n in 0..400_u16 {
        let now = at(f64::from(n) * 0.02);
        for ssrc in [1, 2] {
            // The first stops after 4 s.
            if ssrc == 2 || n < 200 {
                let bytes = plain_rtp(ssrc, n);
                let m = r.handle_datagram(now, &bytes, Default::default(), Ecn::NotEct, from);
                media.extend(m.map(|m| (m.ssrc, n)));
            }
        }
        while let Out::Datagram(_) = r.poll(now) {}
    }
    let first: Vec<_> = media.iter().filter(|m| m.0 == 1).collect();
    let second: Vec<_> = media.iter().filter(|m| m.0 == 2).collect();
    assert_eq!(first.len(), 199);
    // 2 s of silence after packet 199: from packet 299 on.
    assert_eq!(second.first().map(|m| m.1), Some(299));
    assert_eq!(second.len(), 101);
}

#[test]
fn the_largest_datagram_is_judged_in_milliseconds() {
    #[allow(clippy::disallowed_methods)] // measures, and steers nothing
    let clock = std::time::Instant::now;
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    p.back.disturb = tap(tapped.clone());
    p.run_until(at(1.0));
    let [media, ..] = p.sender.ssrcs();
    let (echo, receiver) = first_echo(&tapped.borrow());
    let next = u32::from_be_bytes(echo[32..36].try_into().unwrap()).wrapping_add(500);
    // As many metrics as 65,507 bytes hold, from the right SSRC, with a fresh number and two claims.
    let mut bytes = Vec::new();
    claim::emit(&mut bytes, receiver, next, [Claim::default(); 2]);
    let blocks = [16_384, 16_300].map(|n| (media, 0, vec![received(); n]));
    ccfb::emit(&mut bytes, receiver, 0, blocks);
    assert!(bytes.len() > 65_400 && bytes.len() <= 65_507, "{}", bytes.len());
    let best = (0..5)
        .map(|_| {
            let start = clock();
            p.sender.handle_datagram(p.now, &bytes, Default::default(), Ecn::NotEct);
            start.elapsed()
        })
        .min()
        .unwrap();
    assert!(best < Duration::from_millis(2), "{best:?}");
}

#[test]
fn of_the_nacks_in_one_datagram_no_more_than_1024_packets_are_looked_at_however_many_they_are() {
    let config = SenderConfig { retransmission: true, ..sender_config() };
    let mut p = Pair::new(config, ReceiverConfig::default(), rcs(), ms(50));
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    p.back.disturb = tap(tapped.clone());
    p.run_until(at(1.0));
    let [media, ..] = p.sender.ssrcs();
    let (_, receiver) = first_echo(&tapped.borrow());
    let asked = |p: &mut Pair, nacks: u16, each: u16| {
        let mut bytes = Vec::new();
        for n in 0..nacks {
            let lost: Vec<u16> = (n * each..(n + 1) * each).collect();
            rtcp::emit_nack(&mut bytes, receiver, media, &lost);
        }
        assert!(bytes.len() <= 65_507, "{}", bytes.len());
        let before = p.sender.stats().nacked;
        p.sender.handle_datagram(p.now, &bytes, Default::default(), Ecn::NotEct);
        p.sender.stats().nacked - before
    };
    assert_eq!(asked(&mut p, 3, 17), 51);
    assert_eq!(asked(&mut p, 1, 17 * 100), 1_024);
    assert_eq!(asked(&mut p, 100, 17), 1_024);
    // As many as the largest datagram holds; and the next datagram is looked at again.
    assert_eq!(asked(&mut p, 4_094, 15), 1_024);
    assert_eq!(asked(&mut p, 1, 17), 17);
}

// --- the same over the equation family -----------------------------------------------------------

/// Whatever steers the rate, acknowledgements are proven below it.
const EQUATIONS: [&str; 5] = ["tfrc", "tfrc-sp", "srp", "crp", "mrp"];

#[test]
fn acknowledging_early_is_caught_and_hiding_losses_gets_nothing_under_every_equation() {
    for scheme in EQUATIONS {
        let mut p = Pair::usual(scheme, &[]);
        p.back.disturb = rewrite(|_, blocks, _| blocks[0].2.extend([received(); 5]));
        p.run_until(at(10.0));
        assert_eq!(p.stopped.map(|s| s.1), Some(StopReason::PeerLied), "{scheme}, early");
        assert_eq!(p.sender.flow().counters().data.acked, 0, "{scheme}");

        // At 27 packets/s a report tells of two or three packets. Those that hide a loss are refused, those
        // between them are honest: the flow goes on, and knows of every loss.
        let run = |hide: bool| {
            let mut p = Pair::usual(scheme, &[]);
            p.forward.disturb = lossy(4, 0.05);
            if hide {
                p.back.disturb = rewrite(|_, blocks, _| blocks[0].2.fill(received()));
            }
            p.run_until(at(30.0));
            p
        };
        let (honest, liar) = (run(false), run(true));
        assert!(liar.sender.stats().rejected.nonce > 0, "{scheme}: {:?}", liar.sender.stats().rejected);
        let caught = liar.stopped.is_some_and(|s| s.1 == StopReason::PeerLied);
        let (gets, should) = (rate_of(&liar), rate_of(&honest));
        assert!(caught || gets < 1.2 * should, "{scheme}: {gets:.0} bit/s, honest {should:.0}");
    }
}

#[test]
fn feedback_that_comes_twice_or_late_again_changes_nothing_under_any_equation() {
    for scheme in EQUATIONS {
        let trace = |disturb: Disturb| {
            let mut p = Pair::usual(scheme, &[]);
            p.forward.disturb = lossy(3, 0.01);
            p.back.disturb = disturb;
            p.run_until(at(8.0));
            (p.sent, p.sender.stats().rejected.replayed)
        };
        let (clean, none) = trace(undisturbed());
        assert!(clean.len() > 200 && none == 0, "{scheme}: {} packets, {none} replays", clean.len());
        let mut stream = RandomStream::named(9, "replay");
        let (replayed, rejected) = trace(Box::new(move |_, w| {
            let mut all = vec![(Duration::ZERO, w.clone()); 2];
            if w.what == What::Feedback {
                all.extend((0..5).map(|_| (stream.duration_below(Duration::from_secs(4)), w.clone())));
            }
            all
        }));
        assert_eq!(replayed, clean, "{scheme}");
        assert!(rejected > 200, "{scheme}: {rejected}");
    }
}

// --- T3 to T6 with a receiver that measures: nothing proves what it says --------------------------

/// A run of `seconds` over 5 % loss whose reports are rewritten, each into any number of reports.
fn measured(seconds: f64, change: impl FnMut(tfrc::Report) -> Vec<tfrc::Report> + 'static) -> Pair {
    measured_at(Rate::mbps(10.0), seconds, change)
}

/// As [`measured`], at no more than that rate.
fn measured_at(most: Rate, seconds: f64, mut change: impl FnMut(tfrc::Report) -> Vec<tfrc::Report> + 'static) -> Pair {
    let settings = &[("measured_by", "receiver")];
    let flow = flow("tfrc", settings, most);
    let mut p = Pair::new(sender_config(), ReceiverConfig::default(), flow, ms(50));
    p.forward.disturb = lossy(4, 0.05);
    p.back.disturb = Box::new(move |_, w| {
        if w.what != What::Feedback {
            return vec![(Duration::ZERO, w)];
        }
        let Some(Rtcp::TransportFeedback { fmt, sender, media, fci }) = Compound::parse(&w.bytes).unwrap().last()
        else {
            panic!()
        };
        let reports = change(tfrc::Report::parse(sender, media, fci).unwrap());
        let rewritten = reports.into_iter().map(|r| {
            let mut bytes = Vec::new();
            r.emit(fmt, &mut bytes);
            (Duration::ZERO, Wire { bytes, ..w.clone() })
        });
        rewritten.collect()
    });
    p.run_until(at(seconds));
    p
}

/// Mean rate from 5 s on, bit/s of IP packets.
fn rate_of(p: &Pair) -> f64 {
    let bytes: usize = p.sent.iter().filter(|l| l.at > at(5.0)).map(|l| l.len + 28).sum();
    bytes as f64 * 8.0 / (p.stopped.map_or(p.now, |s| s.0).as_secs_f64() - 5.0)
}

#[test]
fn an_inflated_receive_rate_is_cut_to_what_was_sent() {
    let honest = rate_of(&measured(20.0, |r| vec![r]));
    for factor in [2, 1_000, u32::MAX] {
        let p = measured(20.0, move |r| {
            vec![tfrc::Report { received_rate: r.received_rate.saturating_mul(factor).max(1), ..r }]
        });
        assert_eq!(p.stopped, None);
        let rate = rate_of(&p);
        // T4. With losses the equation decides, and X_recv only bounds it.
        assert!(rate < 1.1 * honest && rate > 0.7 * honest, "x {factor}: {rate:.0}, honest {honest:.0}");
    }
}

/// Where nothing is lost, and the application sends a tenth of what it might, X_recv is the only brake.
#[test]
fn an_inflated_receive_rate_allows_no_more_where_nothing_is_lost() {
    let run = |factor: u32| {
        let mut p = Pair::usual("tfrc", &[("measured_by", "receiver")]);
        p.frame_bytes = Some(1_000);
        p.back.disturb = Box::new(move |_, mut w| {
            let report = Compound::parse(&w.bytes).unwrap().find_map(|packet| match packet {
                Rtcp::TransportFeedback { fmt, sender, media, fci } => {
                    Some((fmt, tfrc::Report::parse(sender, media, fci).unwrap()))
                }
                _ => None,
            });
            if let Some((fmt, r)) = report.filter(|_| w.what == What::Feedback) {
                w.bytes.clear();
                tfrc::Report { received_rate: r.received_rate.saturating_mul(factor), ..r }.emit(fmt, &mut w.bytes);
            }
            vec![(Duration::ZERO, w)]
        });
        p.run_until(at(20.0));
        assert_eq!(p.stopped, None);
        p.sender.target_rate().as_bps()
    };
    let (honest, liar) = (run(1), run(1_000));
    assert!(liar < 1.5 * honest, "{liar:.0} bit/s, honest {honest:.0}");
}

#[test]
fn a_delay_that_is_a_lie_never_makes_the_round_trip_shorter_than_the_path() {
    let honest = rate_of(&measured(20.0, |r| vec![r]));
    for lie in [0, 10_000, 99_000, 99_998] {
        let p = measured(20.0, move |r| vec![tfrc::Report { delay: r.delay + lie, ..r }]);
        let srtt = p.sender.flow().srtt().unwrap();
        // T5. The first report is believed to have been sent at once, and no later one is from a shorter path.
        assert!(srtt >= ms(99), "{lie} us: {srtt:?}");
        assert!(rate_of(&p) < 1.1 * honest, "{lie} us: {:.0}, honest {honest:.0}", rate_of(&p));
    }
    // Longer than the whole round trip, or than anything: refused, and the flow ends for lack of feedback.
    for lie in [200_000, u32::MAX] {
        let p = measured(20.0, move |r| vec![tfrc::Report { delay: r.delay.saturating_add(lie), ..r }]);
        assert!(p.sender.stats().rejected.measured > 0 && p.sender.stats().feedback.packets == 0);
        let peak = p.sent.iter().filter(|l| l.what == What::Media).count();
        assert!(peak < 200, "{lie} us: {peak} packets");
    }
}

#[test]
fn a_receiver_that_talks_the_round_trip_away_does_not_keep_the_sender_awake() {
    for scheme in ["rcs", "rap", "tfrc", "aimd", "lda", "auto"] {
        let mut p = Pair::usual(scheme, &[]);
        // The delay in the echo leaves a microsecond of 100 ms.
        p.back.disturb = Box::new(|_, mut wire| {
            if wire.what == What::Echo {
                wire.bytes[24..28].copy_from_slice(&99_999_u32.to_be_bytes());
            }
            vec![(Duration::ZERO, wire)]
        });
        p.run_until(at(5.0));
        assert!(p.sender.is_validated(), "{scheme}");
        // Each packet leaves, and arrives.
        let packets = 2 * p.sent.len() as u64;
        assert!(p.turns < packets + 3_000, "{scheme}: {} turns in 5 s, {packets} packets", p.turns);
    }
}

#[test]
fn a_stamp_that_was_never_sent_is_not_echoed() {
    // Packets leave 80 ms apart: none left within 1 ms of 5 ms before another.
    let p = measured_at(Rate::kbps(100.0), 10.0, |r| {
        let before = |micros: u32| 0_u32.wrapping_sub(micros);
        let moved = [1_000_000, u32::MAX / 2, before(30_000_000), before(5_000)].map(|by| r.echoed.wrapping_add(by));
        moved.map(|echoed| tfrc::Report { echoed, ..r }).into()
    });
    let stats = p.sender.stats();
    assert_eq!(stats.feedback.packets, 0);
    assert!(stats.rejected.measured > 20, "{:?}", stats.rejected);
}

#[test]
fn replayed_reports_change_nothing() {
    let clean = measured(10.0, |r| vec![r]);
    let mut kept = Vec::new();
    let replayed = measured(10.0, move |r| {
        // The newest twice, and then everything of the last seconds.
        kept.push(r);
        [r, r].into_iter().chain(kept.iter().rev().take(20).copied()).collect()
    });
    // T6. The same bytes at the same times.
    assert_eq!(clean.sent, replayed.sent);
    assert!(replayed.sender.stats().rejected.measured > 1_000, "{:?}", replayed.sender.stats().rejected);
}

#[test]
fn a_report_about_another_stream_or_from_another_receiver_is_nothing_to_this_flow() {
    let p = measured(10.0, |r| {
        vec![tfrc::Report { reporter: r.reporter ^ 1, ..r }, tfrc::Report { media: r.media ^ 1, ..r }]
    });
    assert_eq!(p.sender.stats().feedback.packets, 0);
    assert!(p.sender.stats().rejected.wrong_ssrc > 20);
}

#[test]
fn a_receiver_that_hides_every_loss_is_held_by_the_circuit_breaker() {
    // T3. Its p is its word, and cannot be checked. But RTCP's own reports are judged apart, and a responsive flow is
    // held at 0.7 of the ten times TCP's rate that RFC 8083 bears, by its simple equation: 0.7 · 10 · 8,000 bit /
    // (0.1 s · sqrt(2 · 0.05 / 3)) = 3.07 Mbit/s. That is 14 times what an honest receiver gets.
    let p = measured(60.0, |r| vec![tfrc::Report { loss_event_rate: 0, ..r }]);
    let rate = rate_of(&p);
    assert!(p.stopped.is_none() && rate < 1.1 * 3.07e6, "{rate:.0}, {:?}", p.stopped);
}
