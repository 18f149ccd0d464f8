//! How accurate the relay is: the demo's path with two TCP flows in it, and a sender at 150 packets/s.
//!
//! `cargo run --release -p fairpace-net --example relay [SECONDS]`

use fairpace_emu::relay::{Begin, Relay, RelayConfig};
use fairpace_net::{Buffers, Clock, DatagramIo, Family, Mark, UdpSocket, Waiter};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{FlowConfig, Protocol};
use fairpace_units::{Duration, Instant, Packets, Probability, Rate, format_rate};
use std::sync::atomic::AtomicBool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(10), |s| s.parse())?;
    let clock = Clock::awake();
    let target = UdpSocket::listen(0, Family::V4, Buffers::default(), clock)?;
    let mut config = RelayConfig::new(0, ([127, 0, 0, 1], target.local_address()?.port()).into());
    config.forward = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(2.0)),
        delay: DelayModel::constant(Duration::from_millis(275)),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(50)) },
        loss: LossModel::Bernoulli(Probability::new(0.01)?),
        ..LinkSpec::default()
    };
    config.back.delay = DelayModel::constant(Duration::from_millis(275));
    config.flows = ["tcp-1", "tcp-2"]
        .map(|name| FlowConfig::new(name, Protocol::Tcp(TcpParams::default(), TcpSource::Ftp)))
        .to_vec();
    (config.begin, config.duration) = (Begin::AtOnce, Some(Duration::from_secs(seconds)));
    let relay = Relay::open(config, clock)?;
    let mut client = UdpSocket::connect(([127, 0, 0, 1], relay.address()?.port()).into(), Buffers::default(), clock)?;
    let stop = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| relay.run(|_| {}, &stop));
        let mut waiter = Waiter::new(clock)?;
        let mut due = clock.now();
        let end = due + Duration::from_secs(seconds);
        while due < end {
            waiter.wait(due, &[])?;
            client.send(None, &[0; 1_000], Mark::default());
            due += Duration::from_nanos(1_000_000_000 / 150);
        }
        running.join().unwrap_or_else(|_| panic!("the relay failed"))
    })?;
    let us = |d: Duration| d.as_secs_f64() * 1e6;
    let l = report.lateness;
    println!(
        "{} packets released, late by p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us",
        l.count,
        us(l.p50),
        us(l.p99),
        us(l.p999)
    );
    println!("CPU {:.2} %, {} under way at most, valid: {}", report.cpu * 100.0, report.peak_memory, report.is_valid());
    if let Some(last) = report.series.last() {
        let rate = |bytes: fairpace_units::Bytes| {
            format_rate(Rate::bps(bytes.as_f64() * 8.0 / last.at.since(Instant::ZERO).as_secs_f64()))
        };
        println!("relayed {}", rate(last.relayed));
        for flow in &last.flows {
            println!("{} {}", flow.name, rate(flow.counts.received.bytes));
        }
    }
    for reason in &report.invalid {
        println!("invalid: {reason}");
    }
    Ok(())
}
