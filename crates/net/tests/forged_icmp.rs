//! ICMP messages that anybody can forge, in a network of the test's own. Skips, with the reason, without root.

mod common;

use common::{loopback_to, network, run_beside};
use fairpace_media::ConstantSource;
use fairpace_net::receive::{ReceiveConfig, ReceiveReport};
use fairpace_net::send::{self, SendEnd, SendReport};
use fairpace_net::{Buffers, Clock, DatagramIo, Family, Mark, SendOutcome, UdpSocket};
use fairpace_rtp::What;
use fairpace_units::{Bytes, Duration, Rate};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let (words, _) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|w| u32::from(u16::from_be_bytes(*w))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!(folded as u16 + (folded >> 16) as u16)).to_be_bytes()
}

/// A message that says something untrue.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// A packet was too big for the next hop, which carries so much.
    TooBig(u16),
    /// Nobody hears at that port.
    PortUnreachable,
    /// Another type and code.
    Other(u8, u8),
}

impl Lie {
    /// Type and code, over IPv4 or IPv6.
    fn kind(self, v4: bool) -> [u8; 2] {
        match (self, v4) {
            (Lie::TooBig(_), true) => [3, 4],
            (Lie::TooBig(_), false) => [2, 0],
            (Lie::PortUnreachable, true) => [3, 3],
            (Lie::PortUnreachable, false) => [1, 4],
            (Lie::Other(kind, code), _) => [kind, code],
        }
    }
}

/// A message about a datagram between these ports of loopback. Over IPv4 the type and code are those of RFC 792 and RFC 1191 §4, over IPv6
/// those of RFC 4443 §3.1 and §3.2, whose checksum the kernel adds.
fn message(lie: Lie, ip: IpAddr, from: u16, to: u16) -> Vec<u8> {
    let udp = |m: &mut Vec<u8>| {
        m.extend(from.to_be_bytes());
        m.extend(to.to_be_bytes());
        m.extend([0x04, 0x9c, 0, 0]);
    };
    let mtu = if let Lie::TooBig(mtu) = lie { mtu } else { 0 };
    match ip {
        IpAddr::V4(ip) => {
            let [kind, code] = lie.kind(true);
            let mut m = vec![kind, code, 0, 0, 0, 0];
            m.extend(mtu.to_be_bytes());
            m.extend([0x45, 0, 4, 0xb0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
            m.extend([ip.octets(), ip.octets()].concat());
            udp(&mut m);
            let sum = checksum(&m);
            m[2..4].copy_from_slice(&sum);
            m
        }
        IpAddr::V6(ip) => {
            let [kind, code] = lie.kind(false);
            let mut m = vec![kind, code, 0, 0, 0, 0];
            m.extend(mtu.to_be_bytes());
            m.extend([0x60, 0, 0, 0, 0x04, 0x9c, 17, 64]);
            m.extend([ip.octets(), ip.octets()].concat());
            udp(&mut m);
            m
        }
    }
}

fn raw(ip: IpAddr) -> Socket {
    let (domain, protocol) = match ip {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    Socket::new(domain, Type::RAW, Some(protocol)).expect("root may")
}

/// Forges until told to stop, for every ephemeral port in turn: whoever does that need not know anything.
fn forge(ip: IpAddr, to: u16, lie: Lie, stop: &AtomicBool) -> u64 {
    let socket = raw(ip);
    let target = SockAddr::from(SocketAddr::from((ip, 0)));
    let mut forged = 0;
    while !stop.load(Ordering::Relaxed) {
        for from in 32_768..=60_999 {
            forged += u64::from(socket.send_to(&message(lie, ip, from, to), &target).is_ok());
        }
    }
    forged
}

/// Sends for 3 s over loopback while such messages are forged.
fn under_attack(ip: IpAddr, lie: Option<Lie>) -> (SendReport, ReceiveReport, u64) {
    let mut receive = ReceiveConfig::new(0);
    receive.family = if ip.is_ipv6() { Family::V6 } else { Family::V4 };
    let (receiver, mut config, clock) = loopback_to(receive);
    let to = receiver.address().unwrap().port();
    config.peer = (ip, to).into();
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "2 Mbit/s".to_owned());
    config.duration = Some(Duration::from_secs(3));
    let mut source = ConstantSource::new(Rate::mbps(1.5), Duration::from_millis(20));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let attack = lie.map(|lie| {
            scope.spawn({
                let stop = &stop;
                move || forge(ip, to, lie, stop)
            })
        });
        let done = run_beside(receiver, |stop| send::run(&config, clock, &mut source, &mut (), stop));
        stop.store(true, Ordering::Relaxed);
        let forged = attack.map_or(0, |attack| attack.join().unwrap());
        let (sent, received) = done.unwrap();
        (sent, received, forged)
    })
}

#[test]
fn forged_messages_that_packets_are_too_big_cost_nothing_now_and_nothing_later() {
    if network().is_none() {
        return;
    }
    let v4: IpAddr = Ipv4Addr::LOCALHOST.into();
    for mtu in [68, 552, 900, 0] {
        costs_nothing(v4, Some(Lie::TooBig(mtu)));
    }
    costs_nothing(v4, None);
    // Where the kernel has no IPv6 the rest is as good as tried.
    if Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).is_err() {
        return println!("skipped in part: this kernel has no IPv6");
    }
    let v6: IpAddr = Ipv6Addr::LOCALHOST.into();
    for mtu in [1_280, 1_290] {
        costs_nothing(v6, Some(Lie::TooBig(mtu)));
    }
}

#[test]
fn forged_messages_that_nobody_hears_end_no_stream() {
    if network().is_none() {
        return;
    }
    costs_nothing(Ipv4Addr::LOCALHOST.into(), Some(Lie::PortUnreachable));
    if Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).is_err() {
        return println!("skipped in part: this kernel has no IPv6");
    }
    costs_nothing(Ipv6Addr::LOCALHOST.into(), Some(Lie::PortUnreachable));
}

fn costs_nothing(ip: IpAddr, lie: Option<Lie>) {
    let (sent, received, forged) = under_attack(ip, lie);
    assert!(matches!(sent.end, SendEnd::Finished), "{ip} {lie:?}: {:?}", sent.end);
    // The messages have come: the kernel hands those about a size over as hints, and others as refusals.
    assert!(lie.is_none() || forged > 28_000, "{ip} {lie:?}: {forged}");
    let heard = match lie {
        None => true,
        Some(Lie::TooBig(_)) => sent.socket.hints > 0,
        Some(Lie::PortUnreachable) => sent.socket.refused > 0,
        Some(Lie::Other(..)) => unreachable!("one at a time, below"),
    };
    assert!(heard, "{ip} {lie:?}: {:?}", sent.socket);
    assert_eq!((sent.packet_size, sent.not_sent), (Bytes::new(1_200), 0), "{ip} {lie:?}");
    let media = sent.stats.sent.of(What::Media).packets;
    assert!(media > 300, "{ip} {lie:?}: {media}");
    let kernel = received.socket.kernel_drops;
    assert!(received.stats.media.received + kernel >= media, "{ip} {lie:?}: {:?} of {media}", received.stats.media);
}

/// The kernel fails the next call of a connected socket with each of these, in place of its work: it is done all the same.
#[test]
fn forged_messages_of_any_kind_keep_no_datagram_from_leaving() {
    if network().is_none() {
        return;
    }
    let v4: IpAddr = Ipv4Addr::LOCALHOST.into();
    // Protocol, host unknown, isolated, prohibited, filtered, precedence; a bad header.
    for (kind, code) in [(3, 2), (3, 6), (3, 7), (3, 8), (3, 9), (3, 10), (3, 13), (3, 14), (3, 15), (12, 0)] {
        leaves_in_spite_of(v4, Lie::Other(kind, code));
    }
    if Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).is_err() {
        return println!("skipped in part: this kernel has no IPv6");
    }
    // Prohibited, by policy, rejected; a header that is not known.
    for (kind, code) in [(1, 1), (1, 5), (1, 6), (4, 1)] {
        leaves_in_spite_of(Ipv6Addr::LOCALHOST.into(), Lie::Other(kind, code));
    }
}

fn leaves_in_spite_of(ip: IpAddr, lie: Lie) {
    let clock = Clock::start();
    let receiver = std::net::UdpSocket::bind((ip, 0)).unwrap();
    let to = receiver.local_addr().unwrap();
    let mut socket = UdpSocket::connect(to, Buffers::default(), clock).unwrap();
    let from = socket.local_address().unwrap().port();
    let forger = raw(ip);
    for batch in [false, true] {
        let sent = forger.send_to(&message(lie, ip, from, to.port()), &SockAddr::from(SocketAddr::from((ip, 0))));
        assert!(sent.is_ok());
        let outcome = match batch {
            false => (1, socket.send(None, &[1; 100], Mark::default())),
            true => socket.send_batch(None, &[2; 300], 100, Mark::default()),
        };
        assert_eq!(outcome, (if batch { 3 } else { 1 }, SendOutcome::Sent), "{ip} {lie:?}");
    }
    assert!(socket.batches(), "{ip} {lie:?}");
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    for _ in 0..4 {
        assert_eq!(receiver.recv(&mut [0; 200]).unwrap(), 100, "{ip} {lie:?}");
    }
}
