//! Two FlowSockets on loopback: nothing is lost, split or reordered by changing from TCP to UDP and back, and every way to
//! fail says what it was.

use fairpace_net::flow_socket::{FlowSocketConfig, FlowSocketStats, Received};
use fairpace_net::{Clock, FlowSocket, NetError};
use fairpace_units::{Instant, Rate};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

fn localhost() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Periods as short as they may be; every rate that is measured ends the probing period.
fn nervous() -> FlowSocketConfig {
    let settings =
        [("t_running", "20ms"), ("t_tcp", "5ms"), ("epsilon", "1Gbps"), ("t_rtcp", "100ms"), ("t_adapt", "300ms")];
    FlowSocketConfig {
        settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        max_rate: Rate::mbps(40.0),
        ..FlowSocketConfig::default()
    }
}

/// What a receiver got: each ADU with what was told of its last bytes.
type Got = (Vec<(Vec<u8>, Received)>, FlowSocketStats);

fn receive_all(mut socket: FlowSocket) -> JoinHandle<Result<Got, NetError>> {
    thread::spawn(move || {
        socket.accept()?;
        let (mut adus, mut adu, mut buffer) = (Vec::new(), Vec::new(), [0; 700]);
        while let Some(got) = socket.recv(&mut buffer)? {
            adu.extend_from_slice(&buffer[..got.len]);
            if got.adu_end {
                adus.push((std::mem::take(&mut adu), got));
            }
        }
        assert!(adu.is_empty(), "the flow ended within an ADU");
        Ok((adus, socket.close()?))
    })
}

fn pair(config: FlowSocketConfig, at: SocketAddr) -> (FlowSocket, JoinHandle<Result<Got, NetError>>) {
    let receiver = FlowSocket::bind_with(at, config.clone()).unwrap();
    let to = receiver.local_address().unwrap();
    let receiving = receive_all(receiver);
    let mut sender = FlowSocket::bind_with(SocketAddr::new(at.ip(), 0), config).unwrap();
    sender.connect(to).unwrap();
    (sender, receiving)
}

/// ADU `n`: its number, then bytes that depend on it; lengths from 1 B to several packets.
fn adu(n: u64) -> Vec<u8> {
    let len = 8 + (n * 7_919 % 5_000) as usize;
    n.to_be_bytes().into_iter().chain((0..len).map(|i| (n as usize + i) as u8)).collect()
}

#[test]
fn a_thousand_changes_of_transport_lose_split_and_reorder_nothing() {
    let (sender, receiving) = pair(nervous(), localhost());
    let clock = Clock::start();
    let mut sent = 0;
    while sender.stats().switches < 1_000 && clock.now() < Instant::from_secs_f64(100.0) {
        let data = adu(sent);
        // In parts, as a program would write them.
        let (head, tail) = data.split_at(data.len() / 3);
        sender.send(head, false).unwrap();
        sender.send(tail, true).unwrap();
        sent += 1;
    }
    let told = sender.close().unwrap();
    let (adus, got) = receiving.join().unwrap().unwrap();
    assert!(told.switches >= 1_000, "{} changes in {}", told.switches, clock.now());
    assert_eq!(adus.len() as u64, sent, "{got:?}");
    for (n, (data, _)) in adus.iter().enumerate() {
        assert!(*data == adu(n as u64), "ADU {n}");
    }
    assert_eq!((got.split, got.missing, got.late, got.overflowed), (0, 0, 0, 0));
    assert_eq!(got.received.unwrap().media.lost, 0);
    // Each change is seen at the receiver, unless a period without any data lies between two.
    assert!(got.switches >= 990 && got.switches <= told.switches, "{} of {}", got.switches, told.switches);

    // For the eye: j_A within a period and at changes.
    let mut within = Vec::new();
    let mut at_change = Vec::new();
    for pair in adus.windows(2) {
        let gap = pair[1].1.completed.since(pair[0].1.completed).as_secs_f64() * 1e3;
        if pair[0].1.via == pair[1].1.via { &mut within } else { &mut at_change }.push(gap);
    }
    for (name, gaps) in [("within a period", &mut within), ("at a change", &mut at_change)] {
        gaps.sort_by(f64::total_cmp);
        let at = |p: f64| gaps[((gaps.len() - 1) as f64 * p) as usize];
        println!(
            "j_A {name}: n {} p50 {:.3} p95 {:.3} p99 {:.3} max {:.3} ms",
            gaps.len(),
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0)
        );
    }
    println!("{} ADUs, {} changes in {}; TCP: {:?}", sent, told.switches, clock.now(), told.tcp);
}
