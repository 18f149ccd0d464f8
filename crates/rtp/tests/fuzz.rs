//! Whatever the network brings, nothing panics and nothing grows without a bound.

mod pair;

use fairpace_rtp::{Out, ReceiverConfig, ReceiverSession, Secret, SenderSession, What};
use fairpace_units::{Dscp, Duration, Ecn, Instant, RandomStream, Rate};
use pair::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Real datagrams of a run, both ways, of every kind.
fn corpus() -> Vec<Vec<u8>> {
    let config = fairpace_rtp::SenderConfig { retransmission: true, fec: true, ..sender_config() };
    let receiver = ReceiverConfig { nack: true, fec: true, ..ReceiverConfig::default() };
    let mut p = Pair::new(config, receiver, flow("rcs", &[], Rate::mbps(10.0)), ms(50));
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    let (forward, mut lose) = (tapped.clone(), lossy(1, 0.05));
    p.forward.disturb = Box::new(move |now, w| {
        forward.borrow_mut().push_back((now, w.clone()));
        lose(now, w)
    });
    p.back.disturb = tap(tapped.clone());
    // No answer comes in time: there are repair packets, too.
    p.receiver.set_playout(p.now, ms(90));
    p.run_until(at(6.0));
    p.receiver.request_key_frame(p.now);
    p.run_until(at(7.0));
    p.sender.stop(p.now);
    p.run_until(at(7.1));
    // And the feedback of the other forms.
    let mut kinds: Vec<Vec<u8>> = Vec::new();
    for (scheme, settings) in OTHER_FORMS {
        let receiver = ReceiverConfig { rwnd: Some(25), ..ReceiverConfig::default() };
        let mut p = Pair::new(sender_config(), receiver, flow(scheme, settings, Rate::mbps(10.0)), ms(50));
        let tapped = Rc::new(RefCell::new(VecDeque::new()));
        (p.forward.disturb, p.back.disturb) = (tap(tapped.clone()), tap(tapped.clone()));
        p.run_until(at(2.0));
        let all = tapped.borrow();
        for what in [What::Challenge, What::Echo, What::Media, What::Feedback] {
            kinds.extend(all.iter().filter(|(_, w)| w.what == what).take(3).map(|(_, w)| w.bytes.clone()));
        }
    }
    let all = tapped.borrow();
    What::ALL
        .into_iter()
        .flat_map(|what| all.iter().filter(move |(_, w)| w.what == what).take(3).map(|(_, w)| w.bytes.clone()))
        .chain(kinds)
        .collect()
}

/// Schemes whose feedback is not per packet in CCFB.
const OTHER_FORMS: [(&str, &[(&str, &str)]); 2] = [("tfrc", &[("measured_by", "receiver")]), ("aimd", &[])];

thread_local! {
    static CORPUS: Vec<Vec<u8>> = corpus();
}

fn mutate(bytes: &mut Vec<u8>, edits: &[(u16, u8, u8)]) {
    for &(place, kind, value) in edits {
        if bytes.is_empty() {
            return;
        }
        let i = usize::from(place) % bytes.len().min(80); // headers are where it hurts
        match kind % 4 {
            0 => bytes[i] = value,
            1 => bytes[i] ^= 1 << (value % 8),
            2 => bytes.truncate(usize::from(place) % bytes.len()),
            _ => bytes.extend_from_slice(&[value; 3]),
        }
    }
}

fn feed(bytes: &[u8], sender: &mut SenderSession, receiver: &mut ReceiverSession, now: Instant) {
    sender.handle_datagram(now, bytes, Dscp::DEFAULT, Ecn::Ce);
    receiver.handle_datagram(now, bytes, Dscp::LE, Ecn::Ce, SENDER.parse().unwrap());
    while receiver.next_recovered(&mut Vec::new()).is_some() {}
    while let Out::Datagram(d) = receiver.poll(now) {
        assert!(d.bytes.len() <= 1_300);
    }
    while let Out::Datagram(_) = sender.poll(now) {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn mutated_real_packets_do_no_harm(
        picks in prop::collection::vec((any::<u16>(), prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>()), 0..4)), 1..6),
    ) {
        let scheme = ["rcs", "aimd"][picks.len() % 2];
        let mut sender = SenderSession::new(sender_config(), flow(scheme, &[], Rate::mbps(1.0)), Secret::from_seed(1));
        let mut receiver = ReceiverSession::new(ReceiverConfig { nack: true, fec: true, ..ReceiverConfig::default() }, Secret::from_seed(2));
        CORPUS.with(|corpus| {
            for (i, (pick, edits)) in picks.iter().enumerate() {
                let mut bytes = corpus[usize::from(*pick) % corpus.len()].clone();
                mutate(&mut bytes, edits);
                feed(&bytes, &mut sender, &mut receiver, Instant::ZERO + ms(30 * i as u64));
            }
        });
    }

    #[test]
    fn mutated_repair_packets_do_no_harm(
        lost in 0_u32.., edits in prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>()), 1..6),
    ) {
        use fairpace_rtp::{fec, packet::Packet};
        let plan = fec::Plan { window: 60, overhead: fairpace_units::Probability::ONE };
        let (mut encoder, mut random) = (fec::Encoder::new(plan), RandomStream::named(1, "masks"));
        let mut decoder = fec::Decoder::new(7);
        for n in 0..32_u16 {
            let of = |payload_type, ssrc| Packet {
                marker: false, payload_type, sequence: n, timestamp: 9, ssrc, extensions: Default::default(), payload: &[5; 20],
            };
            let mut media = Vec::new();
            of(96, 7).emit(&mut media);
            encoder.on_sent(&media).unwrap();
            if lost >> n & 1 == 0 {
                decoder.on_media(&media).unwrap();
            }
            let (mut payload, mut repair) = (Vec::new(), Vec::new());
            prop_assert!(encoder.poll(&mut random, &mut payload));
            fec::emit_packet_header(&of(fec::PAYLOAD_TYPE, 8), 7, &mut repair);
            repair.extend_from_slice(&payload);
            if n % 3 == 0 {
                mutate(&mut repair, &edits);
            }
            let _ = decoder.on_repair(&repair);
            while let Some(packet) = decoder.poll() {
                prop_assert!(Packet::parse(&packet).is_ok_and(|p| p.ssrc == 7));
            }
        }
        prop_assert!(decoder.stats().recovered <= 64);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..100), first in 0x80_u8..0xc0, second in 190_u8..226) {
        // All forms of feedback are read.
        for (scheme, settings) in OTHER_FORMS {
            let flow = flow(scheme, settings, Rate::mbps(1.0));
            let mut sender = SenderSession::new(sender_config(), flow, Secret::from_seed(1));
            let config = ReceiverConfig { rate_profile: Some(Default::default()), ..ReceiverConfig::default() };
            let mut receiver = ReceiverSession::new(config, Secret::from_seed(2));
            let mut shaped = bytes.clone();
            if let [a, b, ..] = shaped.as_mut_slice() { (*a, *b) = (first, second); }
            feed(&bytes, &mut sender, &mut receiver, Instant::ZERO);
            feed(&shaped, &mut sender, &mut receiver, Instant::ZERO + ms(1));
        }
    }
}

#[test]
fn the_corpus_has_every_kind() {
    // 10 kinds; up to 3 of each; four kinds of each of two forms more.
    assert!(CORPUS.with(|c| c.len()) >= 24 + 20, "{}", CORPUS.with(|c| c.len()));
}

#[test]
fn a_running_pair_survives_a_path_that_corrupts_reorders_and_duplicates() {
    let hurt = |seed| -> Disturb {
        let mut random = RandomStream::named(seed, "hurt");
        Box::new(move |_, mut w| {
            let dice = random.below(100);
            if dice < 2 && w.what != What::Challenge {
                let i = random.below(w.bytes.len() as u64) as usize;
                w.bytes[i] ^= random.bits() as u8;
            }
            let jitter = random.duration_below(Duration::from_millis(if dice < 25 { 5 } else { 1 }));
            if dice < 10 { vec![(jitter, w.clone()), (jitter * 2, w)] } else { vec![(jitter, w)] }
        })
    };
    // Acknowledgements in both forms; and a receiver that measures, whose damaged stamps and reports nothing proves.
    let measured = &[("measured_by", "receiver")];
    for (scheme, settings, least) in [("rcs", &[][..], 1_000), ("tfrc", measured, 500), ("aimd", &[], 500)] {
        let config = fairpace_rtp::SenderConfig { retransmission: true, fec: true, ..sender_config() };
        let receiver = ReceiverConfig { nack: true, fec: true, ..ReceiverConfig::default() };
        let mut p = Pair::new(config, receiver, flow(scheme, settings, Rate::mbps(10.0)), ms(50));
        (p.forward.disturb, p.back.disturb) = (hurt(1), hurt(2));
        p.receiver.set_playout(p.now, ms(90));
        p.run_until(at(20.0));
        assert_eq!(p.stopped, None, "{scheme}");
        assert!(p.received.len() > least, "{scheme}: {}", p.received.len());
        let mut sequences: Vec<_> = p.received.iter().map(|g| g.sequence).collect();
        sequences.sort_unstable();
        assert!(sequences.windows(2).all(|w| w[0] != w[1]), "{scheme}: nothing is handed out twice");
    }
}

#[test]
fn a_day_of_packets_wraps_without_a_slip() {
    // 24 h at 2,000 packets/s are 2,636 wraps; here 50 wraps through the receiver alone, with
    // reordering.
    let mut r = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(1));
    let mut last = 0;
    let mut n = 0_u64;
    while n < 50 * 65_536 {
        // Every seventh group swapped; 65,536 is no multiple of 21, so all alignments with the wrap occur.
        for k in if n % 21 == 12 { [1, 0, 2] } else { [0, 1, 2] } {
            let sequence = n + k;
            let mut bytes = Vec::new();
            fairpace_rtp::packet::Packet {
                marker: false,
                payload_type: 96,
                sequence: sequence as u16,
                timestamp: 0,
                ssrc: 5,
                extensions: Default::default(),
                payload: &[0; 40],
            }
            .emit(&mut bytes);
            let now = Instant::from_nanos(n * 500_000);
            if let Some(m) = r.handle_datagram(now, &bytes, Dscp::DEFAULT, Ecn::NotEct, SENDER.parse().unwrap()) {
                assert_eq!((m.sequence - sequence) % 65_536, 0);
                last = m.sequence;
            }
        }
        n += 3;
        if n.is_multiple_of(300) {
            while let Out::Datagram(_) = r.poll(Instant::from_nanos(n * 500_000)) {}
        }
    }
    assert_eq!(last, (1 << 16) + n - 1);
    assert_eq!(r.stats().media.lost, 0);
}
