//! The receivers' ends of per-packet feedback, and the sender's end of transport-wide feedback, under fuzzing: whatever numbers
//! and times arrive, feedback is bounded and tells of what arrived. (The senders' ends of the other forms and all controllers:
//! `properties`.)

use fairpace_control::feedback::twcc;
use fairpace_control::{AckReceiver, Arrival, SackReceiver};
use fairpace_fuzz::{Script, Target};
use fairpace_units::{Class, Duration, Ecn, Instant, Kind, RandomStream};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// Numbers of packets in sack vectors have 24 bits.
const NUMBERS: u32 = 0xff_ffff;

/// Packets in sequence with leaps, swaps and losses: how much later, a kind, and how far from the packet before.
fn scripts() -> impl Iterator<Item = Vec<u8>> {
    (0..8_u64).map(|seed| {
        let mut random = RandomStream::named(seed, "arrivals");
        let mut script = vec![random.bits() as u8, random.bits() as u8];
        for _ in 0..60 {
            let step = [1, 1, 1, 1, 1, 2, -1, 5, 400, -400, 1_200, 20_000][random.below(12) as usize];
            script.extend([random.below(30) as u8, random.bits() as u8 & 0x3f]);
            script.extend(i16::to_be_bytes(step));
        }
        script
    })
}

fn interval(byte: u8) -> Option<Duration> {
    (byte & 1 == 1).then(|| Duration::from_millis(byte.into()))
}

/// The arrivals of a script.
fn arrivals(script: &mut Script<'_>) -> impl Iterator<Item = (Instant, Arrival)> {
    let (mut now, mut seq) = (Instant::ZERO, 70_000_u64);
    core::iter::from_fn(move || {
        if script.is_over() {
            return None;
        }
        now += Duration::from_millis(script.byte().into());
        let what = script.byte();
        let step = script.number(2) as u16 as i16;
        // Now and then from far away.
        seq = if what >= 0xf8 { script.number(8) } else { seq.wrapping_add_signed(step.into()) };
        let arrival = Arrival {
            kind: if what & 3 == 3 { Kind::Dummy } else { Kind::Data },
            class: if what & 4 == 4 { Class::Low } else { Class::Normal },
            seq,
            ecn: Ecn::from_bits(what >> 4),
        };
        Some((now, arrival))
    })
}

#[test]
fn any_arrivals_are_acknowledged_once_each_in_bounded_batches() {
    Target::new("acks", HERE).seeds(scripts()).memory(1 << 20).cases(20_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let mut receiver = AckReceiver::new(interval(script.byte()));
        let is_slow = script.byte() & 1 == 1;
        let (mut arrived, mut told) = (0, 0);
        for (now, arrival) in arrivals(&mut script) {
            arrived += 1;
            receiver.on_packet(now, &arrival);
            // A driver that comes late, too.
            if is_slow && arrived % 50 != 0 {
                continue;
            }
            while let Some(feedback) = receiver.poll(now) {
                assert!(!feedback.acks.is_empty() && feedback.acks.len() <= 512);
                told += feedback.acks.len() as u64;
            }
            assert!(receiver.next() > now);
        }
        assert!(told + receiver.refused() <= arrived);
        while receiver.next() != Instant::NEVER {
            let now = receiver.next();
            while let Some(feedback) = receiver.poll(now) {
                told += feedback.acks.len() as u64;
            }
        }
        assert_eq!(told + receiver.refused(), arrived);
    });
}

#[test]
fn any_arrivals_make_sack_vectors_that_claim_only_what_arrived() {
    Target::new("sack_vectors", HERE).seeds(scripts()).memory(1 << 20).cases(20_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let mut receiver = SackReceiver::new(interval(script.byte()));
        receiver.set_rwnd(Some(script.byte().into()));
        let mut seen = std::collections::BTreeSet::new();
        for (now, arrival) in arrivals(&mut script) {
            if arrival.kind == Kind::Data {
                seen.insert(arrival.seq as u32 & NUMBERS);
            }
            receiver.on_packet(now, &arrival);
            let mut vectors = 0;
            while let Some(vector) = receiver.poll(now) {
                vectors += 1;
                assert!(vectors < 1_000 && seen.contains(&vector.ack), "{vector:?}");
                for back in 1..=8 {
                    let claimed = u32::from(vector.vector) << 1 >> back & 1 == 1;
                    let number = vector.ack.wrapping_sub(back) & NUMBERS;
                    assert!(!claimed || seen.contains(&number), "{vector:?}");
                }
            }
        }
    });
}

#[test]
fn any_numbers_make_transport_wide_reports_that_their_sender_reads_in_bounded_memory() {
    Target::new("twcc", HERE).seeds(scripts()).memory(2 << 20).cases(6_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let mut receiver = twcc::Receiver::new(interval(script.byte()));
        let first = script.number(1) as u16;
        let mut sender = twcc::Sender::new(first, None);
        let mut sent = 0_u64;
        for (now, arrival) in arrivals(&mut script) {
            while sent < 40_000 && sent + u64::from(first) <= arrival.seq % 30_000 {
                sender.on_sent(arrival.kind, sent);
                sent += 1;
            }
            receiver.on_packet(now, arrival.seq as u16);
            if arrival.ecn == Ecn::Ce {
                receiver.hurry(now);
            }
            let mut reports = 0;
            while let Some((_, report)) = receiver.poll(now) {
                reports += 1;
                assert!(reports < 1_000 && report.deltas.len() <= 400 && report.reference < 1 << 24);
                if let Ok(heard) = sender.on_report(report) {
                    assert!(heard.acks.len() <= 20_000);
                }
            }
        }
    });
}

#[test]
fn any_transport_wide_report_is_read_or_refused_by_a_sender_of_a_thousand_packets() {
    let seeds = scripts().map(|mut script| {
        script.truncate(120);
        script
    });
    Target::new("twcc_reports", HERE).seeds(seeds).memory(2 << 20).cases(6_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let mut sender = twcc::Sender::new(script.number(2) as u16, (script.byte() & 1 == 1).then_some((100, 1)));
        for seq in 0..1_000 {
            sender.on_sent(Kind::Data, seq);
        }
        while !script.is_over() {
            let many = usize::from(script.byte()) * usize::from(script.byte() & 7);
            let delta = script.number(2) as u16 as i16;
            let report = twcc::Report {
                base: script.number(2) as u16,
                reference: script.number(3) as u32,
                count: script.byte(),
                deltas: (0..many).map(|i| (i % 5 != 0).then_some(delta)).collect(),
                held: Duration::from_micros(script.number(3)),
            };
            if let Ok(heard) = sender.on_report(&report) {
                // Each packet once, and those that an earlier report left open.
                assert!(heard.acks.len() <= 1_000, "{}", heard.acks.len());
            }
        }
    });
}
