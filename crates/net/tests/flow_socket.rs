//! Two FlowSockets on loopback: nothing is lost, split or reordered by changing from TCP to UDP and back, and every way to
//! fail says what it was.

use fairpace_net::flow_socket::{FlowSocketConfig, FlowSocketStats, Received};
use fairpace_net::receive::{ReceiveConfig, Receiver};
use fairpace_net::{Clock, Family, FlowSocket, NetError, Waiter};
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The receiver's ADUs, each with the facts about its last bytes.
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

#[test]
fn a_flow_over_ipv6_carries_units_as_long_as_the_queue_and_refuses_longer_ones() {
    let (sender, receiving) = pair(FlowSocketConfig::default(), (Ipv6Addr::LOCALHOST, 0).into());
    let limit = 64 << 10;
    let whole = vec![7; limit];
    sender.send(&whole, true).unwrap();
    sender.send(&whole[1..], false).unwrap();
    let error = sender.send(b"xx", true).unwrap_err();
    assert!(matches!(error, NetError::Config { field: "ADU", .. }), "{error}");
    // The ADU that was begun is gone with the error; an end without bytes is none.
    sender.send(b"", true).unwrap();
    sender.send(b"after", true).unwrap();
    assert_eq!(sender.close().unwrap().adus, 2);
    let (adus, _) = receiving.join().unwrap().unwrap();
    assert_eq!(adus.iter().map(|(data, got)| (data.len(), got.missing)).collect::<Vec<_>>(), [(limit, 0), (5, 0)]);
}

#[test]
fn a_receiver_that_does_not_read_holds_the_sender_back_and_memory_is_bounded() {
    // The first probing period lasts: no rate is within 1 bit/s of the one before.
    let settings = [("epsilon".to_owned(), "1bps".to_owned())].into();
    let queue = Bytes::new(32 << 10);
    let config = FlowSocketConfig { settings, receive_queue: queue, max_rate: Rate::mbps(100.0), ..Default::default() };
    let mut receiver = FlowSocket::bind_with(localhost(), config.clone()).unwrap();
    let to = receiver.local_address().unwrap();
    let accepting = thread::spawn(move || receiver.accept().map(|_| receiver));
    let mut sender = FlowSocket::bind_with(localhost(), config).unwrap();
    sender.connect(to).unwrap();
    let receiver = accepting.join().unwrap().unwrap();
    let sending = thread::spawn(move || {
        let sent = (0..400_u64).try_for_each(|n| sender.send(&[n as u8; 10_000], true));
        sent.and_then(|()| sender.close())
    });
    // Nothing is read until the whole way is full: queues, and the kernel's buffers.
    let mut before = u64::MAX;
    while receiver.stats().received.is_none() {
        let now = sending.is_finished();
        assert!(!now, "4 MB fit nowhere");
        pause(300);
        let waiting = receiver.waiting().get();
        assert!(waiting <= queue.get() + 2 * 10_000, "{waiting} B wait to be read");
        if waiting == before {
            break;
        }
        before = waiting;
    }
    let (mut adus, mut buffer) = (0_u64, [0; 10_000]);
    while let Some(got) = receiver.recv(&mut buffer).unwrap() {
        assert!(got.adu_end && got.missing == 0 && buffer[..got.len].iter().all(|b| *b == adus as u8));
        adus += 1;
    }
    assert_eq!(adus, 400);
    assert_eq!(sending.join().unwrap().unwrap().adus, 400);
}

/// 20 kB at 200 kbit/s: 0.8 s from the first packet to the last, by either transport.
#[test]
fn an_adu_may_be_longer_under_way_than_one_waits_for_those_before_it() {
    let mut config = FlowSocketConfig { max_rate: Rate::kbps(200.0), ..nervous() };
    config.settings.insert("t_tcp".to_owned(), "200ms".to_owned());
    let (sender, receiving) = pair(config, localhost());
    for n in 0..4 {
        sender.send(&[n; 20_000], true).unwrap();
    }
    sender.close().unwrap();
    let (adus, got) = receiving.join().unwrap().unwrap();
    assert_eq!(
        adus.iter().map(|(data, _)| (data.len(), data[0])).collect::<Vec<_>>(),
        [0, 1, 2, 3].map(|n| (20_000, n))
    );
    assert!(got.switches >= 1, "{got:?}");
}

/// 60 kB at 100 kbit/s are 5 s.
#[test]
fn a_close_that_leaves_something_behind_says_so() {
    let config = FlowSocketConfig { linger: Duration::from_millis(200), max_rate: Rate::kbps(100.0), ..nervous() };
    for adu in [60_000, 1_000] {
        let (sender, receiving) = pair(config.clone(), localhost());
        for _ in 0..60_000 / adu {
            sender.send(&vec![1; adu], true).unwrap();
        }
        let error = sender.close().unwrap_err();
        assert!(error.to_string().contains("leave") && matches!(error, NetError::Io { .. }), "{error}");
        let (adus, _) = receiving.join().unwrap().unwrap();
        assert!(adus.len() < 60_000 / adu);
    }
}

/// Data that TCP has delivered to the receiver's kernel is still unread when datagrams come that left after it, more
/// packets than RTP takes for reordering.
#[test]
fn what_came_by_tcp_is_in_order_before_what_came_by_udp_although_nobody_reads() {
    let settings = [("t_running", "1h"), ("t_tcp", "100ms"), ("epsilon", "1Gbps")];
    let config = FlowSocketConfig {
        settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        receive_queue: Bytes::new(2_000),
        max_rate: Rate::mbps(1.0),
        ..FlowSocketConfig::default()
    };
    let mut receiver = FlowSocket::bind_with(localhost(), config.clone()).unwrap();
    let to = receiver.local_address().unwrap();
    let accepting = thread::spawn(move || receiver.accept().map(|_| receiver));
    let mut sender = FlowSocket::bind_with(localhost(), config).unwrap();
    sender.connect(to).unwrap();
    let receiver = accepting.join().unwrap().unwrap();
    // Then on until datagrams have gone for a while.
    let (mut sent, mut over_udp) = (0_u64, 0);
    while over_udp < 200 {
        sender.send(&[sent.to_be_bytes(); 8].concat(), true).unwrap();
        sent += 1;
        over_udp += u64::from(sender.stats().via == Via::Udp);
    }
    let sending = thread::spawn(move || sender.close());
    let (mut by_tcp, mut by_udp, mut buffer) = (Vec::new(), Vec::new(), [0; 64]);
    while let Some(got) = receiver.recv(&mut buffer).unwrap() {
        let number = u64::from_be_bytes(buffer[..8].try_into().unwrap());
        if got.via == Some(Via::Tcp) { &mut by_tcp } else { &mut by_udp }.push(number);
    }
    sending.join().unwrap().unwrap();
    let stats = receiver.close().unwrap();
    assert_eq!(by_tcp, (0..by_tcp.len() as u64).collect::<Vec<_>>(), "{stats:?}");
    assert!(by_tcp.len() > 150, "{stats:?}");
    assert!(by_udp.iter().all(|n| *n >= by_tcp.len() as u64), "{stats:?}");
    assert_eq!((stats.late, stats.split), (0, 0));
}

#[test]
fn patience_is_for_a_sender_and_not_for_its_first_unit() {
    let patience = Some(Duration::from_secs(1));
    let (sender, receiving) = pair(FlowSocketConfig { patience, ..FlowSocketConfig::default() }, localhost());
    pause(1_500);
    sender.send(b"late", true).unwrap();
    sender.close().unwrap();
    assert_eq!(receiving.join().unwrap().unwrap().0.len(), 1);
}

#[test]
fn nobody_there_no_tcp_half_and_a_port_in_use_are_told_apart() {
    // A receiver without the TCP half: it echoes challenges, and its TCP port is closed.
    let stop = AtomicBool::new(false);
    let receiver =
        Receiver::open(ReceiveConfig { family: Family::V4, ..ReceiveConfig::new(0) }, Clock::start()).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, receiver.address().unwrap().port()));
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut (), &mut (), &stop).unwrap());
        let error = FlowSocket::bind(localhost()).unwrap().connect(to).unwrap_err();
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(error, NetError::NoTcpHalf { peer, .. } if peer == to), "{error}");
        assert!(error.to_string().contains("refuses"), "{error}");
        assert!(error.hint().unwrap().contains("--tcp"));
        receiving.join().unwrap();
    });

    let taken = FlowSocket::bind(localhost()).unwrap();
    let error = FlowSocket::bind(taken.local_address().unwrap()).unwrap_err();
    assert!(matches!(error, NetError::PortInUse { .. }), "{error}");
    // Of UDP it is free, of TCP it is not.
    let listener = TcpListener::bind(localhost()).unwrap();
    let error = FlowSocket::bind(listener.local_addr().unwrap()).unwrap_err();
    assert!(matches!(error, NetError::TcpPortInUse { .. }), "{error}");
    assert!(error.hint().unwrap().contains("ss -ltnp"));

    let settings = [("t_running".to_owned(), "soon".to_owned())].into();
    let error = FlowSocket::bind_with(localhost(), FlowSocketConfig { settings, ..Default::default() }).unwrap_err();
    assert!(matches!(error, NetError::Control(_)), "{error}");
    let mut config = FlowSocketConfig::default();
    config.tcp.algorithm = "none-such".to_owned();
    let (error, _) = failed_connect(config);
    assert!(matches!(error, NetError::Config { field: "TCP algorithm", .. }), "{error}");
}

/// The error of a sender that cannot begin, and the receiver that it could not reach.
fn failed_connect(config: FlowSocketConfig) -> (NetError, Result<SocketAddr, NetError>) {
    let patience = Some(Duration::from_secs(2));
    let mut receiver =
        FlowSocket::bind_with(localhost(), FlowSocketConfig { patience, ..FlowSocketConfig::default() }).unwrap();
    let to = receiver.local_address().unwrap();
    let accepting = thread::spawn(move || receiver.accept());
    let error = FlowSocket::bind_with(localhost(), config).unwrap().connect(to).unwrap_err();
    (error, accepting.join().unwrap())
}

#[test]
fn a_peer_that_goes_ends_the_flow_with_an_error_and_a_flow_that_ended_stays_so() {
    let (sender, receiving) = pair(FlowSocketConfig::default(), localhost());
    drop(sender); // says goodbye, though nothing was sent
    let (adus, stats) = receiving.join().unwrap().unwrap();
    assert_eq!((adus.len(), stats.adus), (0, 0));

    let mut receiver = FlowSocket::bind(localhost()).unwrap();
    let to = receiver.local_address().unwrap();
    let accepting = thread::spawn(move || receiver.accept().map(|_| receiver));
    let mut sender = FlowSocket::bind(localhost()).unwrap();
    sender.connect(to).unwrap();
    drop(accepting.join().unwrap().unwrap());
    // Its goodbye, or the end of its TCP half.
    let error = loop {
        if let Err(e) = sender.send(&[1; 1_000], true) {
            break e;
        }
        pause(5);
    };
    assert!(matches!(error, NetError::PeerVanished { .. }), "{error}");
    assert!(matches!(sender.send(b"more", true), Err(NetError::Io { .. })));
    assert!(matches!(sender.recv(&mut [0; 8]), Err(NetError::Io { .. })), "who connects sends");
}

#[test]
fn strangers_on_the_tcp_port_get_nothing_and_disturb_nothing() {
    let mut receiver = FlowSocket::bind(localhost()).unwrap();
    let to = receiver.local_address().unwrap();
    let receiving = thread::spawn(move || {
        receiver.accept()?;
        let (mut buffer, mut adus) = ([0; 2_000], 0);
        while let Some(got) = receiver.recv(&mut buffer)? {
            adus += u32::from(got.adu_end);
        }
        receiver.close().map(|stats| (adus, stats))
    });
    // Before a sender is there: every connection is closed without a word.
    let mut early = TcpStream::connect(to).unwrap();
    assert_eq!(early.read(&mut [0; 8]).unwrap_or(0), 0);
    let mut sender = FlowSocket::bind(localhost()).unwrap();
    sender.connect(to).unwrap();
    // Afterwards too, whatever they say.
    let mut strangers: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(to).unwrap()).collect();
    for (i, s) in strangers.iter_mut().enumerate() {
        let _ = s.write_all(&[[0, 200].as_slice(), &[i as u8; 200], &[255, 255]].concat());
    }
    for n in 0..200_u8 {
        sender.send(&[n; 1_500], true).unwrap();
    }
    for mut s in strangers {
        assert_eq!(s.read(&mut [0; 8]).unwrap_or(0), 0);
    }
    sender.close().unwrap();
    let (adus, stats) = receiving.join().unwrap().unwrap();
    assert_eq!((adus, stats.split, stats.missing), (200, 0, 0));
}

fn pause(ms: u64) {
    let clock = Clock::start();
    Waiter::new(clock).unwrap().wait(clock.now() + Duration::from_millis(ms), &[]).unwrap();
}
