//! A whole sender on loopback at a given packet rate: how late its paced packets leave, what it costs.
//!
//! `cargo run --release -p fairpace-net --example sender [PACKETS_PER_SECOND [SECONDS]]`

use fairpace_media::ConstantSource;
use fairpace_net::Clock;
use fairpace_net::receive::{ReceiveConfig, Receiver};
use fairpace_net::send::{self, SendConfig};
use fairpace_units::{Bytes, Duration, Rate};
use std::sync::atomic::AtomicBool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let pps: f64 = args.next().map_or(Ok(1_000.0), |s| s.parse())?;
    let seconds: u64 = args.next().map_or(Ok(3), |s| s.parse())?;
    let size = Bytes::new(1_228);
    let rate = Rate::packets_per_second(pps, size);
    let clock = Clock::start();
    let receiver = Receiver::open(ReceiveConfig::new(0), clock)?;
    let port = receiver.address()?.port();
    let mut config = SendConfig::new(([127, 0, 0, 1], port).into());
    config.session.packet_size = size;
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), format!("{pps} pkt/s"));
    config.max_rate = rate * 2.0;
    config.duration = Some(Duration::from_secs(seconds));
    let stop = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut (), &mut (), &stop));
        // More media than the flow allows, so that a packet is always ready.
        let mut source = ConstantSource::new(rate * 1.1, Duration::from_millis(20));
        let sent = send::run(&config, clock, &mut source, &mut (), &stop);
        receiving.join().map(|received| (sent, received)).map_err(|_| "the receiver failed")
    })?;
    let (sent, received) = (sent?, received?);
    let us = |d: Duration| d.as_secs_f64() * 1e6;
    let p = sent.pacing;
    println!("{:?}; {} packets sent, {} received", sent.end, sent.socket.sent, received.stats.media.received);
    println!(
        "late by p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us ({} sends)",
        us(p.p50),
        us(p.p99),
        us(p.p999),
        p.count
    );
    println!(
        "CPU sender {:.1} %, receiver {:.1} %; {} of {} packets in batches; {} dropped by this machine's kernel",
        sent.cpu * 100.0,
        received.cpu * 100.0,
        sent.socket.batched,
        sent.socket.sent,
        received.socket.kernel_drops
    );
    Ok(())
}
