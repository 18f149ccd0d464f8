//! The share of one core that forward error correction takes at 20 Mbit/s of media, 1,200-byte packets.
//!
//!     cargo bench -p fairpace-rtp --bench fec
//!
//! Encoder and decoder alone; beside them the one operation that RLC over GF(2^8) would repeat for each
//! packet of its window: a multiple of a packet added to a sum, by a table of products; and both sessions together over a path that
//! loses, with repair packets and without. The fastest of several rounds. In `make bench`; the bound is 5 % of a core.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark reads the clock")]

#[path = "../tests/pair/mod.rs"]
mod pair;

use fairpace_rtp::fec::{Decoder, Encoder, PAYLOAD_TYPE, Plan, emit_packet_header};
use fairpace_rtp::packet::Packet;
use fairpace_rtp::{Codec, ReceiverConfig, SenderConfig, What};
use fairpace_units::{Probability, RandomStream};
use std::hint::black_box;
use std::time::{Duration, Instant};

const MEDIA_PER_S: f64 = 20e6 / 8.0 / 1_200.0;
const PACKETS: u16 = 20_000;

fn packet(sequence: u16, payload_type: u8, payload: &[u8]) -> Vec<u8> {
    let p = Packet {
        marker: false,
        payload_type,
        sequence,
        timestamp: 0,
        ssrc: 1,
        extensions: Default::default(),
        payload,
    };
    let mut out = Vec::new();
    p.emit(&mut out);
    out
}

fn fastest(mut f: impl FnMut() -> Duration) -> f64 {
    (0..7).map(|_| f()).min().unwrap_or_default().as_secs_f64()
}

/// Both sessions of a flow of 20 Mbit/s over a path of 20 ms that loses that share of the packets, and a play-out delay in which no
/// answer comes: share of a core, in %, and how much of what is sent are repair packets, in %.
fn sessions(loss: f64, fec: bool) -> (f64, f64) {
    const SECONDS: f64 = 20.0;
    let mut repairs = 0.0;
    let spent = fastest(|| {
        let sender = SenderConfig { retransmission: true, fec, codec: Codec::Vp8, ..pair::sender_config() };
        let receiver = ReceiverConfig { nack: true, fec, ..ReceiverConfig::default() };
        let flow = pair::flow("fixed", &[("rate", "20 Mbit/s")], fairpace_units::Rate::mbps(30.0));
        let mut p = pair::Pair::new(sender, receiver, flow, pair::ms(10));
        p.receiver.set_playout(fairpace_units::Instant::ZERO, pair::ms(25));
        p.forward.disturb = pair::lossy(1, loss);
        // The measure of loss first.
        p.run_until(pair::at(5.0));
        let begin = Instant::now();
        p.run_until(pair::at(5.0 + SECONDS));
        let spent = begin.elapsed();
        assert_eq!(p.stopped, None);
        repairs = 100.0 * p.count(What::Fec) as f64 / p.sent.len() as f64;
        assert_eq!(fec, repairs > 0.0, "repair packets are sent where they are on");
        spent
    });
    (100.0 * spent / SECONDS, repairs)
}

fn main() {
    for loss in [0.01, 0.03] {
        let ((with, repairs), (without, _)) = (sessions(loss, true), sessions(loss, false));
        println!(
            "sessions, loss {loss}: {with:.2} % of a core at 20 Mbit/s with repair packets ({repairs:.1} % of all), {without:.2} % without: {:+.2} %",
            with - without
        );
    }
    let media: Vec<Vec<u8>> = (0..PACKETS).map(|n| packet(n, 96, &[n as u8; 1_188])).collect();
    for (overhead, loss) in [(0.1, 0.01), (0.2, 0.05), (0.33, 0.1)] {
        let mut work = Vec::new();
        let encode = fastest(|| {
            let plan = Plan { window: 110, overhead: Probability::new(overhead).expect("a fraction") };
            let (mut encoder, mut random) = (Encoder::new(plan), RandomStream::named(1, "masks"));
            work.clear();
            let (mut spent, mut repairs) = (Duration::ZERO, 0);
            for p in &media {
                let begin = Instant::now();
                encoder.on_sent(p).expect("a media packet");
                let mut payload = Vec::new();
                let due = encoder.poll(&mut random, &mut payload);
                spent += begin.elapsed();
                work.push((true, p.clone()));
                if due {
                    let shell = Packet::parse(p).expect("a media packet");
                    let mut out = Vec::new();
                    emit_packet_header(
                        &Packet { payload_type: PAYLOAD_TYPE, ssrc: 2, sequence: repairs, ..shell },
                        1,
                        &mut out,
                    );
                    out.extend_from_slice(&payload);
                    repairs += 1;
                    work.push((false, out));
                }
            }
            spent
        });
        let mut recovered = 0;
        let decode = fastest(|| {
            let (mut decoder, mut random) = (Decoder::new(1), RandomStream::named(1, "loss"));
            let begin = Instant::now();
            for (is_media, datagram) in &work {
                if random.uniform() < loss {
                    continue;
                }
                let read = if *is_media { decoder.on_media(datagram) } else { decoder.on_repair(datagram) };
                read.expect("what was written");
                while decoder.poll().is_some_and(|p| !black_box(p).is_empty()) {}
            }
            recovered = decoder.stats().recovered;
            begin.elapsed()
        });
        let share = |s: f64| 100.0 * s / f64::from(PACKETS) * MEDIA_PER_S;
        println!(
            "overhead {overhead}, loss {loss}: encoder {:.2} % of a core at 20 Mbit/s, decoder {:.2} % ({recovered} recovered)",
            share(encode),
            share(decode)
        );
    }
    // RLC: sum += c * packet, c's products in a table.
    let mut products = [[0_u8; 256]; 256];
    for (c, row) in products.iter_mut().enumerate() {
        for (x, product) in row.iter_mut().enumerate() {
            let (mut a, mut b, mut sum) = (c, x, 0);
            while b > 0 {
                sum ^= if b & 1 == 1 { a } else { 0 };
                (a, b) = (if a & 0x80 != 0 { a << 1 ^ 0x11d } else { a << 1 }, b >> 1);
            }
            *product = sum as u8;
        }
    }
    let mut sum = vec![0_u8; 1_196];
    let each = fastest(|| {
        let begin = Instant::now();
        for (i, p) in media.iter().enumerate() {
            let row = &products[i % 255 + 1];
            sum.iter_mut().zip(p).for_each(|(s, b)| *s ^= row[usize::from(*b)]);
        }
        black_box(&sum);
        begin.elapsed()
    }) / f64::from(PACKETS);
    let share = 100.0 * each * MEDIA_PER_S * 0.2 * 110.0;
    println!(
        "RLC by table: {:.0} ns per packet of the window, {share:.1} % of a core at overhead 0.2, window 110",
        each * 1e9
    );
}
