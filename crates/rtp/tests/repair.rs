//! Repair: lost media again, or a key frame in its place. Golden traces, written anew by
//! `FAIRPACE_BLESS=1 cargo test -p fairpace-rtp --test repair`.

mod pair;

use fairpace_rtp::rtcp::{Nack, emit_nack};
use fairpace_rtp::{Codec, ReceiverConfig, SenderConfig, SenderEvent, What, playout};
use fairpace_units::{Dscp, Duration, Ecn, Instant, Rate};
use pair::{Pair, Wire, at, flow, ms, sender_config};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

/// A sender of 25 frames of two packets a second, 100 ms of round trip, a receiver that asks again and shows frames after `delay`.
fn repairing(delay: Duration, refreshes: bool) -> Pair {
    let sender = SenderConfig { retransmission: true, refreshes, codec: Codec::Vp8, ..sender_config() };
    let receiver = ReceiverConfig { nack: true, ..ReceiverConfig::default() };
    let mut p = Pair::new(sender, receiver, flow("fixed", &[("rate", "200 pkt/s")], Rate::mbps(10.0)), ms(50));
    p.frame_bytes = Some(1_600);
    p.receiver.set_playout(Instant::ZERO, delay);
    p
}

/// A sender under that controller, and a receiver that asks again and shows frames after a second.
fn repairing_with(scheme: &str, settings: &[(&str, &str)], max: Rate) -> Pair {
    let sender = SenderConfig { retransmission: true, fec: false, codec: Codec::Vp8, ..sender_config() };
    let receiver = ReceiverConfig { nack: true, ..ReceiverConfig::default() };
    let mut p = Pair::new(sender, receiver, flow(scheme, settings, max), ms(50));
    p.frame_bytes = Some(1_600);
    p.receiver.set_playout(Instant::ZERO, ms(1_000));
    p
}

type Log = Rc<RefCell<String>>;

/// Writes down what leaves of these kinds, and loses what `loses` says: how many of that kind have left at that time.
fn watched(
    log: &Log,
    kinds: &'static [What],
    mut loses: impl FnMut(What, Instant, u32) -> bool + 'static,
) -> pair::Disturb {
    let (log, mut counts) = (Rc::clone(log), [0_u32; What::ALL.len()]);
    Box::new(move |now, wire: Wire| {
        let n = counts[wire.what as usize];
        counts[wire.what as usize] += 1;
        let lost = loses(wire.what, now, n);
        if kinds.contains(&wire.what) || lost {
            let fate = if lost { "  lost" } else { "" };
            writeln!(log.borrow_mut(), "{:7.1} ms  {}{fate}", now.as_secs_f64() * 1e3, wire.what.as_str()).unwrap();
        }
        if lost { Vec::new() } else { vec![(Duration::ZERO, wire)] }
    })
}

fn golden(name: &str, trace: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, trace).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(trace, kept, "tests/golden/{name} differs; FAIRPACE_BLESS=1 writes it anew");
}

const REPAIR: &[What] = &[What::Nack, What::Retransmission, What::KeyFrameRequest];

/// One media packet is lost; of the requests and the answers so many at the beginning.
fn one_loss(delay: Duration, requests: u32, answers: u32) -> (String, Pair) {
    let log = Log::default();
    let mut p = repairing(delay, true);
    p.forward.disturb = watched(&log, REPAIR, move |what, now, n| match what {
        What::Media => n == 60,
        What::Retransmission => now < at(9.0) && n < answers,
        _ => false,
    });
    p.back.disturb = watched(&log, REPAIR, move |what, _, n| what == What::Nack && n < requests);
    p.run_until(at(4.0));
    let trace = log.borrow().clone();
    (trace, p)
}

#[test]
fn a_lost_packet_is_asked_for_twice_and_comes_again_once() {
    let (trace, p) = one_loss(ms(700), 0, 0);
    golden("repair-one-loss.txt", &trace);
    assert_eq!((p.count(What::Retransmission), p.receiver.stats().repaired), (1, 1));
    let mut frames: Vec<_> = p.assembled.iter().map(|f| (f.first_sequence, f.last_sequence)).collect();
    frames.sort_unstable();
    assert!(frames.windows(2).all(|w| w[1].0 == w[0].1 + 1), "no hole");
}

#[test]
fn a_request_that_is_lost_was_said_twice_and_if_both_are_lost_it_is_said_again() {
    let (trace, p) = one_loss(ms(700), 1, 0);
    golden("repair-lost-request.txt", &trace);
    assert_eq!((p.count(What::Retransmission), p.receiver.stats().repaired), (1, 1));
    let (trace, p) = one_loss(ms(700), 2, 0);
    golden("repair-lost-requests.txt", &trace);
    assert_eq!((p.count(What::Retransmission), p.receiver.stats().repaired), (1, 1));
}

#[test]
fn an_answer_that_cannot_come_a_second_time_has_a_copy() {
    // 700 ms leave time to ask again when the answer is lost; 220 ms do not: two round trips and what a loss takes to be seen.
    let (trace, p) = one_loss(ms(700), 0, 1);
    golden("repair-lost-answer.txt", &trace);
    assert_eq!((p.count(What::Retransmission), p.receiver.stats().repaired), (2, 1));
    let (trace, p) = one_loss(ms(220), 0, 1);
    golden("repair-copy.txt", &trace);
    assert_eq!((p.count(What::Retransmission), p.receiver.stats().repaired), (2, 1));
    let repaired = p.received.iter().find(|g| g.retransmitted).unwrap();
    let sent = p.sent.iter().filter(|l| l.what == What::Media).nth(60).unwrap().at;
    assert!(repaired.arrived.since(sent) < ms(50 + 220), "in time");
}

#[test]
fn after_a_blackout_a_key_frame_of_the_silence_is_shown_and_little_is_sent_again() {
    let log = Log::default();
    let mut p = repairing(ms(300), true);
    let dark = |now: Instant| (at(4.0)..at(6.0)).contains(&now);
    p.forward.disturb = watched(&log, &[], move |what, now, _| what != What::Media && dark(now));
    let inner = std::mem::replace(&mut p.forward.disturb, pair::undisturbed());
    let mut inner = inner;
    p.forward.disturb = Box::new(move |now, wire| if dark(now) { Vec::new() } else { inner(now, wire) });
    p.back.disturb = Box::new(move |now, wire| if dark(now) { Vec::new() } else { vec![(Duration::ZERO, wire)] });
    let asked = |p: &Pair, from: f64, to: f64| {
        p.sender_events
            .iter()
            .filter(|(t, e)| *e == SenderEvent::KeyFrameRequest && (at(from)..at(to)).contains(t))
            .count()
    };
    p.run_until(at(4.0));
    assert_eq!(asked(&p, 0.0, 4.0), 0, "no silence, no key frames");
    p.run_until(at(8.0));
    // The last feedback came at 4.05 s; a key frame 150 ms later, and each 300 ms until 6.1 s.
    assert_eq!(asked(&p, 4.0, 6.2), 7);
    let again = p.count(What::Retransmission);
    assert!(again <= 20, "of 100 packets {again} are sent again");
    // A key frame that was encoded in the silence comes through: 300 ms, one way, and its own sending at most after the end.
    let first = p.assembled.iter().find(|f| f.completed > at(6.0) && f.key).unwrap();
    assert!(first.completed < at(6.0 + 0.3 + 0.05 + 0.02), "{}", first.completed);
    let mut after: Vec<_> = p.assembled.iter().filter(|f| f.first_sequence >= first.first_sequence).collect();
    after.sort_by_key(|f| f.first_sequence);
    assert!(after.windows(2).all(|w| w[1].first_sequence == w[0].last_sequence + 1), "and so does all behind it");
}

#[test]
fn a_source_that_gives_no_key_frames_gets_everything_again_that_is_kept() {
    let again = |refreshes: bool| {
        let mut p = repairing(ms(300), refreshes);
        p.forward.disturb =
            Box::new(
                |now, wire| {
                    if (at(4.0)..at(5.0)).contains(&now) { Vec::new() } else { vec![(Duration::ZERO, wire)] }
                },
            );
        p.run_until(at(8.0));
        (p.count(What::Retransmission), p.sender.stats().too_late)
    };
    let (with, refused) = again(true);
    let (without, _) = again(false);
    // A second of 50 packets is lost; some leave twice.
    assert!((50..=70).contains(&without), "{without}");
    assert!(with < 25 && refused > 25, "{with} again, {refused} refused");
}

#[test]
fn a_storm_of_requests_brings_each_packet_once_in_three_quarters_of_a_round_trip_and_eight_times_in_all() {
    let mut p = repairing(ms(700), true);
    p.run_until(at(2.0));
    let (receiver, media) = (p.receiver_ssrc(), p.sender.ssrcs()[0]);
    let last = p.received.last().unwrap().sequence;
    let wanted: Vec<u16> = (last - 9..=last).map(|s| s as u16).collect();
    let mut bytes = Vec::new();
    emit_nack(&mut bytes, receiver, media, &wanted);
    let before = p.count(What::Retransmission);
    for i in 0..2_000 {
        p.sender.handle_datagram(p.now, &bytes, Dscp::DEFAULT, Ecn::NotEct);
        p.run_until(at(2.0 + 0.001 * f64::from(i)));
    }
    let again = p.count(What::Retransmission) - before;
    // 2 s are 26 times three quarters of 100 ms; eight times is the most, and less if a key frame comes in their place.
    assert!((50..=80).contains(&again), "{again} of ten packets, asked for 2,000 times");
    assert!(p.stopped.is_none());
}

#[test]
fn the_sender_knows_the_play_out_delay_from_its_receiver_alone() {
    let mut p = repairing(ms(300), true);
    p.run_until(at(1.0));
    assert_eq!(p.sender.playout(), ms(300));
    p.receiver.set_playout(p.now, ms(310));
    p.run_until(at(1.5));
    assert_eq!(p.sender.playout(), ms(300), "less than a tenth is no news");
    p.receiver.set_playout(p.now, ms(900));
    p.run_until(at(2.0));
    assert_eq!(p.sender.playout(), ms(900));
    let mut forged = Vec::new();
    playout::emit(p.receiver_ssrc() ^ 1, ms(1), &mut forged);
    let before = p.sender.stats().rejected.wrong_ssrc;
    p.sender.handle_datagram(p.now, &forged, Dscp::DEFAULT, Ecn::NotEct);
    assert_eq!((p.sender.playout(), p.sender.stats().rejected.wrong_ssrc), (ms(900), before + 1));
}

/// The round trip is 100 ms, and 200 where packets queue. A frame may wait three fifths of the play-out delay, and of a constant rate
/// new ones are taken while what waits leaves within four fifths of that: or within all of it, as far as the rest suffices for a
/// repair, one and a half round trips. At 200 packets/s of 1,000 B a frame of 900 B takes 962.
#[test]
fn a_live_source_is_not_asked_while_too_much_waits() {
    for (playout, queues, room) in [(500, false, 300), (300, false, 150), (225, false, 108), (505, true, 242)] {
        let mut p = repairing(ms(playout), true);
        if queues {
            p.forward.disturb = Box::new(|now, w| vec![(if now > at(1.0) { ms(100) } else { ms(0) }, w)]);
        }
        p.run_until(at(3.0));
        assert!(p.sender.wants_frame());
        p.fps = 0;
        for n in 0..80 {
            let frame = fairpace_rtp::Frame { data: vec![1; 900], timestamp_90k: 90_000 * (n + 100), key: false };
            assert_eq!(p.sender.wants_frame(), n <= room * 200 / 962, "{playout} ms, {queues}: frame {n}");
            p.sender.push_frame(p.now, frame);
        }
        p.run_until(at(4.0));
        assert!(p.sender.wants_frame());
    }
}

/// The sender shows that it hears with a second challenge, whose echo leaves a moment before the first media comes: a round trip is
/// counted from the first echo. An answer that cannot come again in time has a copy, and nothing comes more often.
#[test]
fn a_proof_does_not_make_answers_seem_quick() {
    let sender = SenderConfig { retransmission: true, fec: false, codec: Codec::Vp8, ..sender_config() };
    let receiver = ReceiverConfig { nack: true, ask_proof: true, one_by_one: true, ..ReceiverConfig::default() };
    let mut p = Pair::new(sender, receiver, flow("fixed", &[("rate", "50 pkt/s")], Rate::mbps(10.0)), ms(275));
    p.frame_bytes = Some(900);
    p.receiver.set_playout(Instant::ZERO, ms(1_000));
    let log = Log::default();
    p.forward.disturb = watched(&log, &[], |what, _, n| what == What::Media && n % 100 == 99);
    // A live source has its first picture a moment after the peer has answered.
    let fps = core::mem::take(&mut p.fps);
    p.run_until(at(0.56));
    p.fps = fps;
    p.run_until(at(30.0));
    assert!(p.receiver.stats().proven);
    let lost = log.borrow().lines().count();
    let again = p.count(What::Retransmission);
    assert!(lost >= 7 && p.receiver.stats().repaired as usize >= lost - 1, "{lost} lost");
    assert!(again <= 2 * lost, "{lost} lost, {again} sent again");
}

/// Each scheme loses a fortieth of its packets, and the answers to the requests arrive.
#[test]
fn under_every_controller_a_lost_packet_comes_again() {
    let schemes = fairpace_control::schemes().iter().map(|info| info.name).filter(|name| *name != "tpba");
    let own = schemes.map(|name| (name, &[][..]));
    for (name, settings) in own.chain([("tfrc", &[("measured_by", "receiver")][..])]) {
        let log = Log::default();
        let mut p = repairing_with(name, settings, Rate::mbps(2.0));
        p.forward.disturb = watched(&log, &[], |what, _, n| what == What::Media && n % 40 == 39);
        p.run_until(at(60.0));
        let lost = log.borrow().lines().count();
        let repaired = p.receiver.stats().repaired as usize;
        assert!(lost >= 3 && repaired + 2 >= lost, "{name}: {repaired} of {lost}");
        assert_eq!(p.stopped, None, "{name}");
        // A receiver that measures tells packet by packet of what is sent again, which its sender has not asked for.
        assert!(!settings.is_empty() || p.sender.stats().rejected == Default::default(), "{name}");
        // Media and what is sent again are all told of, or none is lost in the ledger that was not on the way.
        let data = p.sender.flow().counters().data;
        assert!(data.lost as usize <= lost + 1, "{name}: {} of {lost} lost", data.lost);
        // Feedback of every form ends the silence.
        let wanted = p.sender.flow().controller().target_rate();
        assert!(
            p.sender.target_rate() >= wanted * 0.9,
            "{name} {settings:?}: {:?} of {wanted:?}",
            p.sender.target_rate()
        );
    }
}

/// Where packets leave in pairs, which the highest rate holds 10 ms apart here, an answer waits for the second of a pair. Frames
/// have five packets each.
#[test]
fn nothing_that_is_sent_again_comes_between_the_packets_of_a_pair() {
    let log = Log::default();
    let mut p = repairing_with("lda", &[("r_0", "80 pkt/s"), ("r_min", "80 pkt/s")], Rate::kbps(800.0));
    p.frame_bytes = Some(4_000);
    p.forward.disturb = watched(&log, &[], |what, _, n| what == What::Media && n % 5 == 2);
    p.run_until(at(60.0));
    let data: Vec<_> = p.sent.iter().filter(|l| matches!(l.what, What::Media | What::Retransmission)).collect();
    assert!(data.iter().filter(|l| l.what == What::Retransmission).count() > 500);
    let media = data.iter().enumerate().filter(|(_, l)| l.what == What::Media);
    // Pairs by the media's numbers, whatever left beside them: 8.2 ms apart or less, where others have 10.2.
    let apart: Vec<f64> = media.clone().map(|(_, l)| l.at.as_secs_f64()).collect();
    let pairs = apart.chunks(16).filter(|c| c.len() > 1 && c[1] - c[0] < 0.0092).count();
    assert!(pairs * 16 > apart.len() / 2, "{pairs} pairs of {} packets", apart.len());
    let firsts = media.enumerate().step_by(16).filter(|(n, _)| n % 5 != 4);
    let seconds: Vec<_> = firsts.filter_map(|(_, (i, _))| data.get(i + 1)).map(|l| l.what).collect();
    assert!(seconds.len() > 100 && seconds.iter().all(|what| *what == What::Media), "{seconds:?}");
}

#[test]
fn a_request_names_what_was_lost() {
    // The traces do not show the numbers in the request.
    let mut p = repairing(ms(700), true);
    let seen: Rc<RefCell<Vec<u16>>> = Rc::default();
    let log = Rc::clone(&seen);
    p.forward.disturb = watched(&Log::default(), &[], |what, _, n| what == What::Media && (n == 60 || n == 63));
    p.back.disturb = Box::new(move |_, wire: Wire| {
        if wire.what == What::Nack
            && let Some(fairpace_rtp::rtcp::Rtcp::Nack(nack)) =
                fairpace_rtp::rtcp::Compound::parse(&wire.bytes).unwrap().next()
        {
            log.borrow_mut().extend(Nack::lost(&nack));
        }
        vec![(Duration::ZERO, wire)]
    });
    p.run_until(at(4.0));
    let first = p.received[0].sequence as u16;
    let mut lost = seen.borrow().clone();
    lost.sort_unstable();
    lost.dedup();
    assert_eq!(lost.iter().map(|s| s.wrapping_sub(first)).collect::<Vec<_>>(), [60, 63]);
}
