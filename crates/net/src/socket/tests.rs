use super::*;
use crate::Waiter;
use fairpace_units::{Dscp, Ecn};

#[derive(Clone, Copy, Debug)]
struct NoChecksum;
nix::setsockopt_impl!(NoChecksum, libc::SOL_SOCKET, libc::SO_NO_CHECK, libc::c_int, sockopt::SetStruct<libc::c_int>);

const LE: Mark = Mark { dscp: Dscp::LE, ecn: Ecn::NotEct };

fn pair(to: IpAddr, family: Family) -> (UdpSocket, UdpSocket, Clock) {
    let clock = Clock::start();
    let listener = UdpSocket::listen(0, family, Buffers::default(), clock).unwrap();
    let port = listener.local_address().unwrap().port();
    let sender = UdpSocket::connect(SocketAddr::new(to, port), Buffers::default(), clock).unwrap();
    (sender, listener, clock)
}

/// Reads one datagram, waiting up to two seconds.
fn read(socket: &mut UdpSocket, clock: Clock, buffer: &mut [u8]) -> Received {
    let mut waiter = Waiter::new(clock).unwrap();
    let until = clock.now() + Duration::from_secs(2);
    loop {
        match socket.recv(buffer) {
            RecvOutcome::Packet(received) => return received,
            RecvOutcome::Empty if clock.now() < until => waiter.wait(until, &[socket.descriptor()]).unwrap(),
            other => panic!("{other:?}"),
        };
    }
}

/// The route back would choose 127.0.0.1.
#[test]
fn an_answer_leaves_from_the_address_that_was_asked() {
    let asked = IpAddr::from([127, 0, 0, 2]);
    for family in [Family::V4, Family::Any] {
        let (mut sender, mut listener, clock) = pair(asked, family);
        assert_eq!(sender.send(None, b"ask", LE), SendOutcome::Sent);
        let mut buffer = [0; 32];
        let received = read(&mut listener, clock, &mut buffer);
        // A connected socket hears nobody else, alone or in a batch.
        assert_eq!(listener.send(Some(received.from), b"answer", LE), SendOutcome::Sent);
        assert_eq!(read(&mut sender, clock, &mut buffer).from.ip(), asked, "{family:?}");
        assert_eq!(listener.send_batch(Some(received.from), b"two of", 3, LE), (2, SendOutcome::Sent));
        assert_eq!([3, 3], [(); 2].map(|()| read(&mut sender, clock, &mut buffer).len), "{family:?}");
    }
}

#[test]
fn two_classes_and_all_ecn_marks_share_one_socket_over_ipv4_ipv6_and_mapped() {
    let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
    let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
    for (to, family) in [(v4, Family::V4), (v6, Family::V6), (v4, Family::Any), (v6, Family::Any)] {
        let (mut sender, mut listener, clock) = pair(to, family);
        for (dscp, bits) in [(Dscp::DEFAULT, 0), (Dscp::LE, 1), (Dscp::new(46), 2), (Dscp::LE, 3)] {
            let mark = Mark { dscp, ecn: Ecn::from_bits(bits) };
            assert_eq!(sender.send(None, b"marked", mark), SendOutcome::Sent);
            let mut buffer = [0; 32];
            let received = read(&mut listener, clock, &mut buffer);
            assert_eq!((received.mark, received.len), (mark, 6), "to {to}, listening on {family:?}");
            assert_eq!(received.from.ip(), to, "addresses come back unmapped");
            // and back, from the unconnected (perhaps dual-stack) socket
            assert_eq!(listener.send(Some(received.from), b"back", mark), SendOutcome::Sent);
            assert_eq!(read(&mut sender, clock, &mut buffer).mark, mark, "back to {to}, {family:?}");
        }
    }
}

#[test]
fn the_kernel_stamps_arrival_and_not_our_reading() {
    let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
    let mut waiter = Waiter::new(clock).unwrap();
    // The kernel begins to stamp a little after the first socket asked for it, and stamps
    // what came before when it is read: hence some tries.
    let stamped_on_arrival = (0..20).any(|_| {
        let before = clock.now();
        assert_eq!(sender.send(None, b"x", Mark::default()), SendOutcome::Sent);
        let after = clock.now();
        waiter.wait(after + Duration::from_millis(60), &[]).unwrap();
        let at = read(&mut listener, clock, &mut [0; 8]).at;
        // Mapping two clocks may be off by the time between reading one and the other.
        let slop = Duration::from_millis(20);
        at + slop >= before && at <= after + slop
    });
    assert!(stamped_on_arrival);
}

#[test]
fn a_batch_arrives_as_separate_datagrams_of_one_class() {
    let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::Any);
    let bytes: Vec<u8> = (0..2_500_u32).map(|i| i as u8).collect();
    assert_eq!(sender.send_batch(None, &bytes, 1_000, LE), (3, SendOutcome::Sent));
    let mut got = Vec::new();
    for len in [1_000, 1_000, 500] {
        let mut buffer = [0; 2_000];
        let received = read(&mut listener, clock, &mut buffer);
        assert_eq!((received.len, received.mark), (len, LE));
        got.extend_from_slice(&buffer[..received.len]);
    }
    assert_eq!(got, bytes);
    assert_eq!(sender.counters().sent, 3);
}

#[test]
fn after_a_refused_batch_packets_go_one_by_one_and_it_is_counted() {
    // Without a checksum the kernel will not segment (EINVAL): stands for a device that cannot.
    let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
    setsockopt(&sender.socket, NoChecksum, &1).unwrap();
    assert!(sender.batches());
    assert_eq!(sender.send_batch(None, &[7; 300], 100, LE), (3, SendOutcome::Sent));
    for _ in 0..3 {
        let received = read(&mut listener, clock, &mut [0; 400]);
        assert_eq!((received.len, received.mark), (100, LE));
    }
    let counters = sender.counters();
    assert_eq!((counters.batch_failures, counters.batched, counters.sent), (1, 0, 3));
    assert!(!sender.batches());
    assert_eq!(sender.send_batch(None, &[7; 200], 100, LE), (2, SendOutcome::Sent));
    assert_eq!(sender.counters().batch_failures, 1, "not tried again");
}

#[test]
fn a_packet_above_the_path_mtu_is_not_sent_and_says_what_fits() {
    let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
    // Loopback carries 65,536; a UDP payload over IPv4 ends at 65,507.
    let outcome = sender.send(None, &[0; 65_520], Mark::default());
    assert!(matches!(outcome, SendOutcome::TooLarge { mtu: Some(_) }), "{outcome:?}");
    assert_eq!((sender.counters().sent, sender.counters().too_large), (0, 1));
    assert_eq!(sender.send(None, b"fits", Mark::default()), SendOutcome::Sent);
    assert_eq!(read(&mut listener, clock, &mut [0; 8]).len, 4);
}

#[test]
fn a_closed_port_is_reported_once_and_the_socket_lives_on() {
    let (mut sender, listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
    drop(listener);
    assert_eq!(sender.send(None, b"x", Mark::default()), SendOutcome::Sent);
    let mut waiter = Waiter::new(clock).unwrap();
    waiter.wait(clock.now() + Duration::from_secs(1), &[sender.descriptor()]).unwrap();
    assert_eq!(sender.recv(&mut [0; 8]), RecvOutcome::Refused);
    assert_eq!(sender.recv(&mut [0; 8]), RecvOutcome::Empty);
    assert_eq!(sender.counters().refused, 1);
}

#[test]
fn packets_dropped_by_a_full_socket_buffer_are_counted_apart() {
    let clock = Clock::start();
    let small = Buffers { receive: Bytes::new(4_096), send: Bytes::new(1 << 20) };
    let mut listener = UdpSocket::listen(0, Family::V4, small, clock).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_address().unwrap().port()));
    let mut sender = UdpSocket::connect(to, Buffers::default(), clock).unwrap();
    for _ in 0..100 {
        assert_eq!(sender.send(None, &[0; 1_000], Mark::default()), SendOutcome::Sent);
    }
    let read_all = |listener: &mut UdpSocket| {
        let mut n = 0;
        while let RecvOutcome::Packet(_) = listener.recv(&mut [0; 1_100]) {
            n += 1;
        }
        n
    };
    let first = read_all(&mut listener);
    assert!((1..100).contains(&first), "{first}");
    // The kernel tells its count with the next packet.
    let mut then = 0;
    for _ in 0..3 {
        sender.send(None, b"after", Mark::default());
        then += read_all(&mut listener);
    }
    assert_eq!(then, 3);
    assert_eq!(first + listener.counters().kernel_drops, 100, "its total is not added again each time");
}

#[test]
fn a_datagram_longer_than_the_buffer_is_marked_truncated() {
    let (mut sender, mut listener, clock) = pair(Ipv4Addr::LOCALHOST.into(), Family::V4);
    sender.send(None, &[1; 100], Mark::default());
    let received = read(&mut listener, clock, &mut [0; 10]);
    assert!(received.truncated && received.len == 10);
    assert_eq!(listener.counters().truncated, 1);
}

#[test]
fn an_empty_datagram_is_a_datagram() {
    let (mut sender, mut listener, clock) = pair(Ipv6Addr::LOCALHOST.into(), Family::V6);
    assert_eq!(sender.send(None, &[], LE), SendOutcome::Sent);
    assert_eq!(read(&mut listener, clock, &mut [0; 10]).len, 0);
}

#[test]
fn a_port_in_use_names_the_port_and_the_remedy() {
    let clock = Clock::start();
    let first = UdpSocket::listen(0, Family::Any, Buffers::default(), clock).unwrap();
    let port = first.local_address().unwrap().port();
    let error = UdpSocket::listen(port, Family::Any, Buffers::default(), clock).unwrap_err();
    assert!(matches!(error, NetError::PortInUse { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("port {port} is in use")), "{error}");
    assert!(error.hint().unwrap().contains("ss -lunp"));
}

#[test]
fn granted_buffers_are_told_beside_what_was_asked() {
    let clock = Clock::start();
    let huge = Buffers { receive: Bytes::new(1 << 30), send: Bytes::new(4_096) };
    let socket = UdpSocket::listen(0, Family::V4, huge, clock).unwrap();
    assert_eq!(socket.buffers().asked, huge);
    assert!(socket.buffers().granted.receive > Bytes::ZERO);
    assert!(socket.buffers().granted.receive <= huge.receive);
}
