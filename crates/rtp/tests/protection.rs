//! Repair packets between a sender and a receiver. The golden trace is written anew by
//! `FAIRPACE_BLESS=1 cargo test -p fairpace-rtp --test protection`.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_control::{Env, Flow, FlowParams, build};
use fairpace_rtp::fec::{Decoder, Header, Kind, PAYLOAD_TYPE, Reason};
use fairpace_rtp::packet::Packet;
use fairpace_rtp::rtcp::{self, Compound, Rtcp};
use fairpace_rtp::{Codec, ReceiverConfig, SenderConfig, What};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, RandomStream, Rate};
use pair::{Disturb, Pair, Wire, at, flow, ms, sender_config};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

/// A sender of 25 frames of four packets a second, 100 ms of round trip, a receiver that shows frames after `playout`.
fn pair(sends: bool, takes: bool, playout: Duration) -> Pair {
    told(None, sends, takes, playout)
}

/// The same with that form of feedback.
fn told(form: Option<Form>, sends: bool, takes: bool, playout: Duration) -> Pair {
    by(flow("fixed", &[("rate", "200 pkt/s")], Rate::mbps(10.0)), form, sends, takes, playout)
}

/// The same by another flow.
fn by(flow: Flow, form: Option<Form>, sends: bool, takes: bool, playout: Duration) -> Pair {
    let sender = SenderConfig { retransmission: true, fec: sends, form, codec: Codec::Vp8, ..sender_config() };
    let receiver = ReceiverConfig { nack: true, fec: takes, ..ReceiverConfig::default() };
    let mut p = Pair::new(sender, receiver, flow, ms(50));
    p.frame_bytes = Some(3_600);
    p.receiver.set_playout(Instant::ZERO, playout);
    p
}

/// A play-out delay in which no answer comes.
const SHORT: Duration = Duration::from_millis(90);

/// Loses the media packets that `loses` names, by how many have left.
fn losing(mut loses: impl FnMut(u64) -> bool + 'static) -> Disturb {
    let mut n = 0;
    Box::new(move |_, wire: Wire| {
        let lost = wire.what == What::Media && {
            n += 1;
            loses(n - 1)
        };
        if lost { Vec::new() } else { vec![(Duration::ZERO, wire)] }
    })
}

fn recovered(p: &Pair) -> u64 {
    p.received.iter().filter(|g| g.recovered).count() as u64
}

fn golden(name: &str, trace: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::write(&path, trace).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(trace, kept, "tests/golden/{name} differs; FAIRPACE_BLESS=1 writes it anew");
}

#[test]
fn a_burst_is_recovered_from_the_repair_packets_that_follow() {
    let log = Rc::new(RefCell::new(String::new()));
    let mut p = pair(true, true, SHORT);
    let (trace, mut n, mut first) = (Rc::clone(&log), 0_u64, None);
    // One packet of 25 is lost from the beginning, and three in a row after 15 s.
    p.forward.disturb = Box::new(move |now, wire: Wire| {
        let mut lost = false;
        let number = Packet::parse(&wire.bytes).map_or(0, |packet| packet.sequence);
        if wire.what == What::Media {
            first.get_or_insert(number);
        }
        let Some(first) = first else { return vec![(Duration::ZERO, wire)] };
        if wire.what == What::Media {
            lost = n % 25 == 7 || (1_503..1_506).contains(&n);
            n += 1;
        }
        let shown = (1_500..1_520).contains(&n);
        let mut line = format!("{:9.1} ms  {}", now.as_secs_f64() * 1e3, wire.what.as_str());
        match wire.what {
            What::Media => write!(line, " {}", number.wrapping_sub(first)).unwrap(),
            What::Fec => {
                let (header, _) = Header::parse(Packet::parse(&wire.bytes).unwrap().payload).unwrap();
                let Kind::Parity { base, cover } = header.kind else { panic!("parity") };
                let of: Vec<_> = cover.distances().map(|d| base.wrapping_add(d).wrapping_sub(first)).collect();
                write!(line, " of {of:?}").unwrap();
            }
            _ => {}
        }
        if shown && matches!(wire.what, What::Media | What::Fec) {
            writeln!(trace.borrow_mut(), "{line}{}", if lost { "  lost" } else { "" }).unwrap();
        }
        if lost { Vec::new() } else { vec![(Duration::ZERO, wire)] }
    });
    p.run_until(at(20.0));
    let first = p.received[0].sequence;
    let mut trace = log.borrow().clone();
    for g in p.received.iter().filter(|g| g.recovered && (1_500..1_520).contains(&(g.sequence - first))) {
        writeln!(trace, "{:9.1} ms  recovered {}", g.arrived.as_secs_f64() * 1e3, g.sequence - first).unwrap();
    }
    golden("fec-burst.txt", &trace);
    for n in 1_503..1_506 {
        let g = p.received.iter().find(|g| g.sequence == first + n).unwrap();
        assert!(g.recovered, "{n}");
    }
    let mut frames: Vec<_> = p.assembled.iter().filter(|f| f.completed > at(10.0)).collect();
    frames.sort_unstable_by_key(|f| f.first_sequence);
    assert!(frames.windows(2).all(|w| w[1].first_sequence == w[0].last_sequence + 1), "no hole");
}

#[test]
fn a_recovered_packet_is_told_as_lost_and_not_asked_for_any_more() {
    let mut p = pair(true, true, SHORT);
    p.forward.disturb = losing(|n| n % 25 == 7);
    let asked: Rc<RefCell<Vec<(Instant, u16)>>> = Rc::default();
    let log = Rc::clone(&asked);
    p.back.disturb = Box::new(move |now, wire: Wire| {
        if let Some(Rtcp::Nack(nack)) = Compound::parse(&wire.bytes).unwrap().next() {
            log.borrow_mut().extend(nack.lost().map(|s| (now, s)));
        }
        vec![(Duration::ZERO, wire)]
    });
    p.run_until(at(20.0));
    let recovered: Vec<_> = p.received.iter().filter(|g| g.recovered).collect();
    assert!(recovered.len() > 50, "{}", recovered.len());
    assert_eq!(p.receiver.stats().recovered, recovered.len() as u64);
    for g in &recovered {
        let again = asked.borrow().iter().filter(|(t, s)| *s == g.sequence as u16 && *t > g.arrived).count();
        assert_eq!(again, 0, "{} was there at {}", g.sequence, g.arrived);
    }
    // Nothing but media is lost, and all that is lost counts: what was recovered, too.
    let media = p.sender.stats().sent.of(What::Media).packets;
    let lost = (media - 400) / 25;
    let counted = p.sender.flow().counters().data.lost;
    assert!(counted >= lost, "{counted} of some {}", media / 25);
    assert_eq!(
        p.receiver.stats().media.lost as u64,
        p.receiver.stats().media.expected - p.receiver.stats().media.received
    );
    assert!(p.receiver.stats().media.lost as u64 >= lost);
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
}

#[test]
fn transport_wide_feedback_tells_of_losses_as_well() {
    let overhead = |form| {
        let mut p = told(form, true, true, SHORT);
        p.forward.disturb = losing(|n| n % 25 == 7);
        p.run_until(at(20.0));
        assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
        let lost = (p.sender.stats().sent.of(What::Media).packets - 400) / 25;
        let counted = p.sender.flow().counters().data.lost;
        assert!(counted >= lost, "{counted} of some {lost}: what was recovered is told as lost");
        assert!(recovered(&p) > 50, "{}", recovered(&p));
        p.sender.protection().plan.unwrap().overhead.get()
    };
    let (usual, wide) = (overhead(None), overhead(Some(Form::Twcc)));
    assert!((wide / usual - 1.0).abs() < 0.1, "{wide} {usual}");
}

#[test]
fn where_no_feedback_tells_of_single_packets_requests_and_receiver_reports_do() {
    for (scheme, form) in [("tfrc", Some(Form::RtpTfrc)), ("lda", None), ("ldaf", None)] {
        let run = |sends, loses: fn(u64) -> bool| {
            let packet_size = Bytes::new(pair::PACKET);
            let env = Env { packet_size, start_rate: Some(Rate::kbps(800.0)), ..Env::default() };
            let flow = Flow::new(build(scheme, &BTreeMap::new(), &env).unwrap(), FlowParams::new(&env));
            let mut p = by(flow, form, sends, true, SHORT);
            p.forward.disturb = losing(loses);
            p.run_until(at(40.0));
            assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()), "{scheme}");
            p
        };
        let (with, without) = (run(true, |n| n % 50 == 7), run(false, |n| n % 50 == 7));
        // Half of what is lost is recovered, and the repair packets do not end because nothing is asked for any more.
        let lost = with.sender.stats().sent.of(What::Media).packets / 50;
        assert!(recovered(&with) > lost / 2, "{scheme}: {} of {lost}", recovered(&with));
        let late = with.sent.iter().filter(|l| l.what == What::Fec && l.at > at(35.0)).count();
        assert!(late > 5, "{scheme}: {late}");
        // They take part in the flow's pace, and in nothing that it learns by.
        let bytes = |p: &Pair| p.sent.iter().map(|l| l.len).sum::<usize>() as f64;
        let ratio = bytes(&with) / bytes(&without);
        assert!((0.75..1.25).contains(&ratio), "{scheme}: {ratio}");
        assert_eq!(run(true, |_| false).count(What::Fec), 0, "{scheme}");
    }
}

/// A lie of a receiver, on the way back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// All that repair packets could have brought is told as received.
    Recovered,
    /// Each of the last packets is asked for, whether it came or not.
    Requests,
}

impl Lie {
    fn tell(self, media: u32) -> Disturb {
        match self {
            Lie::None => pair::undisturbed(),
            Lie::Recovered => pair::rewrite(move |_, blocks, _| {
                blocks.iter_mut().filter(|b| b.0 == media).for_each(|b| b.2.fill(pair::received()));
            }),
            Lie::Requests => {
                let mut highest = 0_u16;
                Box::new(move |_, wire: Wire| {
                    let blocks = Compound::parse(&wire.bytes).unwrap();
                    let reporter = u32::from_be_bytes(wire.bytes[4..8].try_into().unwrap());
                    for packet in blocks {
                        if let Rtcp::ReceiverReport(_, blocks) = packet {
                            blocks.filter(|b| b.ssrc == media).for_each(|b| highest = b.highest as u16);
                        }
                    }
                    let mut nack = wire.clone();
                    nack.bytes.clear();
                    let asked: Vec<u16> = (0..200).map(|n| highest.wrapping_add(n)).collect();
                    rtcp::emit_nack(&mut nack.bytes, reporter, media, &asked);
                    nack.what = What::Nack;
                    vec![(Duration::ZERO, wire), (Duration::ZERO, nack)]
                })
            }
        }
    }
}

#[test]
fn no_lie_about_what_repair_packets_bring_gains_anything() {
    // Bytes in 30 s over 2 % of loss, and the share of repair packets.
    let once = |scheme: &str, form, lie: Lie, seed| {
        let packet_size = Bytes::new(pair::PACKET);
        let env = Env { packet_size, start_rate: Some(Rate::kbps(400.0)), ..Env::default() };
        let flow = Flow::new(build(scheme, &BTreeMap::new(), &env).unwrap(), FlowParams::new(&env));
        let mut p = by(flow, form, true, true, SHORT);
        p.frame_bytes = None;
        p.forward.disturb = pair::lossy(seed, 0.02);
        p.back.disturb = lie.tell(p.sender.ssrcs()[0]);
        p.run_until(at(30.0));
        let repair = p.count(What::Fec) as f64 / p.sent.len() as f64;
        if lie == Lie::Recovered {
            // Each such report is dropped whole; who tells true ones between is not ended.
            assert!(p.sender.stats().rejected.nonce >= 3, "{scheme}: {:?}", p.sender.stats().rejected);
        }
        (p.sent.iter().map(|l| l.len).sum::<usize>() as f64, repair)
    };
    // Means of three losses: what differs changes which packets are lost, and with that the rate.
    let run = |scheme: &str, form, lie: Lie| {
        let runs = [7, 8, 9].map(|seed| once(scheme, form, lie, seed));
        (runs.iter().map(|r| r.0).sum::<f64>() / 3.0, runs.iter().map(|r| r.1).sum::<f64>() / 3.0)
    };
    for (scheme, form) in [("auto", None), ("tfrc", None), ("rcs", None), ("auto", Some(Form::Twcc))] {
        let (honest, repair) = run(scheme, form, Lie::None);
        assert!(repair > 0.02, "{scheme}: {repair}");
        if form.is_none() {
            let (told, _) = run(scheme, form, Lie::Recovered);
            assert!(told < 1.2 * honest, "{scheme}: {}", told / honest);
        }
        let (asked, more) = run(scheme, form, Lie::Requests);
        // Requests decide nothing where feedback tells of each packet.
        assert!(asked < 1.2 * honest && more < repair + 0.02, "{scheme}: {} {repair} {more}", asked / honest);
    }
    for (scheme, form) in [("tfrc", Some(Form::RtpTfrc)), ("lda", None)] {
        // Here they do: the liar has more repair packets and less media, at the same rate, and no more than the share.
        let (honest, _) = run(scheme, form, Lie::None);
        let (asked, repair) = run(scheme, form, Lie::Requests);
        assert!(asked < 1.2 * honest && repair < 0.31, "{scheme}: {} {repair}", asked / honest);
    }
}

#[test]
fn packets_of_which_no_report_tells_are_no_losses() {
    let mut p = told(Some(Form::Twcc), true, true, SHORT);
    // Three of ten reports are lost, and no packet.
    p.back.disturb = pair::lossy(5, 0.3);
    p.run_until(at(30.0));
    assert!(p.sender.stats().feedback.packets > 200);
    assert_eq!((p.count(What::Fec), p.sender.protection().reason), (0, Reason::Quiet));
}

/// A media packet without its header extensions, as sums have it.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let packet = Packet::parse(bytes).unwrap();
    assert!(packet.extensions.nonce.is_some());
    let mut out = Vec::new();
    Packet { extensions: Default::default(), ..packet }.emit(&mut out);
    out
}

#[test]
fn the_nonce_of_a_recovered_packet_is_not_to_be_had() {
    let mut p = pair(true, true, SHORT);
    let taken: Rc<RefCell<Vec<(bool, Wire)>>> = Rc::default();
    let (log, mut n) = (Rc::clone(&taken), 0);
    p.forward.disturb = Box::new(move |_, wire: Wire| {
        n += u64::from(wire.what == What::Media);
        let lost = wire.what == What::Media && n % 25 == 7;
        log.borrow_mut().push((lost, wire.clone()));
        if lost { Vec::new() } else { vec![(Duration::ZERO, wire)] }
    });
    p.run_until(at(12.0));
    let taken = taken.borrow();
    // Everything that a receiver could try: sums over packets as they came, and without their extensions.
    let recovered = |form: fn(&[u8]) -> Vec<u8>| {
        let (mut decoder, mut all) = (Decoder::new(p.sender.ssrcs()[0]), Vec::new());
        for (_, wire) in taken.iter().filter(|(lost, _)| !lost) {
            match wire.what {
                What::Media => decoder.on_media(&form(&wire.bytes)).unwrap(),
                What::Fec => decoder.on_repair(&wire.bytes).unwrap(),
                _ => {}
            }
            all.extend(std::iter::from_fn(|| decoder.poll()));
        }
        all
    };
    let lost: Vec<_> = taken.iter().filter(|(lost, _)| *lost).map(|(_, wire)| plain(&wire.bytes)).collect();
    let without = recovered(plain);
    assert!(without.len() > 30 && without.iter().all(|packet| lost.contains(packet)), "{}", without.len());
    let nonces: Vec<_> =
        taken.iter().filter(|(l, _)| *l).map(|(_, w)| Packet::parse(&w.bytes).unwrap().extensions.nonce).collect();
    let whole = recovered(<[u8]>::to_vec);
    assert!(whole.iter().all(|packet| !nonces.contains(&Packet::parse(packet).unwrap().extensions.nonce)));
}

#[test]
fn who_knows_no_repair_packets_gets_none_and_nothing_changes_for_him() {
    let run = |sends, takes| {
        let mut p = pair(sends, takes, SHORT);
        p.forward.disturb = losing(|n| n % 25 == 7);
        p.run_until(at(15.0));
        p
    };
    assert!(run(true, true).count(What::Fec) > 20);
    let usual: Vec<_> = run(false, false).sent.iter().filter(|l| l.what == What::Media).map(|l| l.len).collect();
    for (sends, takes) in [(true, false), (false, true)] {
        let p = run(sends, takes);
        assert_eq!((p.count(What::Fec), p.sender.protection().plan), (0, None));
        let lens: Vec<_> = p.sent.iter().filter(|l| l.what == What::Media).map(|l| l.len).collect();
        assert_eq!(lens, usual, "packets are as long as ever");
    }
}

#[test]
fn without_loss_or_with_time_to_ask_again_there_is_none() {
    let decided = |playout, lost: u64| {
        let mut p = pair(true, true, playout);
        p.forward.disturb = losing(move |n| lost > 0 && n % lost == 7);
        p.run_until(at(15.0));
        (p.count(What::Fec) > 0, p.sender.protection().reason)
    };
    assert_eq!(decided(SHORT, 0), (false, Reason::Quiet));
    assert_eq!(decided(ms(700), 25), (false, Reason::RetransmissionSuffices));
    assert!(decided(SHORT, 25).0);
}

#[test]
fn repair_packets_are_part_of_the_rate_and_of_their_share() {
    let mut p = pair(true, true, SHORT);
    p.frame_bytes = None; // as the rate allows
    p.forward.disturb = pair::lossy(3, 0.06);
    p.run_until(at(30.0));
    let sent = p.sender.stats().sent;
    let (media, again, repair) = (sent.of(What::Media), sent.of(What::Retransmission), sent.of(What::Fec));
    assert!(repair.packets > 300, "{repair:?}");
    // 200 packets/s of 1,000 B, whatever they are; all are told of.
    let packets = media.packets + again.packets + repair.packets;
    let bytes = media.bytes + again.bytes + repair.bytes + 28 * packets;
    assert!((5_500_000..=6_000_000).contains(&bytes), "{bytes}");
    let share = (again.bytes + repair.bytes) as f64 / (media.bytes + again.bytes + repair.bytes) as f64;
    assert!(share < 0.33, "{share}");
    // The encoder is told less: at this loss repair packets take a fifth of the rate.
    let mut without = pair(false, true, SHORT);
    without.run_until(at(1.0));
    let told = p.sender.media_rate().as_bps() / without.sender.media_rate().as_bps();
    assert!((0.5..0.9).contains(&told), "{told}");
    assert!(recovered(&p) > 200, "{}", recovered(&p));
}

#[test]
fn what_comes_too_late_or_in_a_storm_changes_nothing() {
    let mut p = pair(true, true, SHORT);
    // Each repair packet comes 50 times, and 2 s late.
    let mut media = losing(|n| n % 25 == 7);
    p.forward.disturb = Box::new(
        move |now, wire: Wire| {
            if wire.what == What::Fec { vec![(ms(2_000), wire); 50] } else { media(now, wire) }
        },
    );
    p.run_until(at(20.0));
    assert!(p.count(What::Fec) > 50);
    let mut numbers: Vec<_> = p.received.iter().map(|g| g.sequence).collect();
    let handed_out = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), handed_out, "nothing twice");
    assert_eq!(p.stopped, None);
}

#[test]
fn no_repair_packet_makes_the_receiver_fail_or_forget() {
    let mut p = pair(true, true, SHORT);
    p.run_until(at(2.0));
    let ([media, _, _, repair], mut random) = (p.sender.ssrcs(), RandomStream::named(1, "junk"));
    let (from, before) = (pair::SENDER.parse().unwrap(), p.receiver.stats());
    let highest = p.received.last().unwrap().sequence;
    for n in 0..20_000_u32 {
        let len = 10 + random.below(60) as usize;
        let mut payload: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        // Masks near what was sent, ahead of it, and anywhere.
        if n % 3 > 0 {
            payload[0] &= 0x3f;
            let base = (highest as u16).wrapping_add(if n % 3 == 1 { 0 } else { 65_500 });
            payload[8..10].copy_from_slice(&base.to_be_bytes());
        }
        let header = Packet {
            marker: false,
            payload_type: PAYLOAD_TYPE,
            sequence: n as u16,
            timestamp: 0,
            ssrc: repair,
            extensions: Default::default(),
            payload: &[],
        };
        let mut bytes = Vec::new();
        fairpace_rtp::fec::emit_packet_header(&header, media, &mut bytes);
        bytes.extend_from_slice(&payload);
        let mut buffer = Vec::new();
        assert_eq!(p.receiver.handle_datagram(p.now, &bytes, Dscp::DEFAULT, Ecn::NotEct, from), None);
        while let Some(m) = p.receiver.next_recovered(&mut buffer) {
            assert!(m.ssrc == media && m.sequence <= highest + 220, "{m:?}");
        }
    }
    let after = p.receiver.stats();
    assert_eq!((after.media.received, after.media.lost), (before.media.received, before.media.lost));
}
