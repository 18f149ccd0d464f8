//! ICMP messages that anybody can forge, in a network of the test's own. Skips, with the reason, without root.

mod common;

use common::{loopback, network, run_beside};
use fairpace_media::ConstantSource;
use fairpace_net::receive::ReceiveReport;
use fairpace_net::send::{self, SendEnd, SendReport};
use fairpace_rtp::What;
use fairpace_units::{Bytes, Duration, Rate};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let (words, _) = bytes.as_chunks::<2>();
    let sum: u32 = words.iter().map(|w| u32::from(u16::from_be_bytes(*w))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!(folded as u16 + (folded >> 16) as u16)).to_be_bytes()
}

/// "Fragmentation needed" about a datagram between these ports of loopback; `mtu` for the next hop [RFC 1191 §4].
fn too_big(from: u16, to: u16, mtu: u16) -> Vec<u8> {
    let mut m = vec![3, 4, 0, 0, 0, 0];
    m.extend(mtu.to_be_bytes());
    m.extend([0x45, 0, 4, 0xb0, 0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    m.extend(from.to_be_bytes());
    m.extend(to.to_be_bytes());
    m.extend([0x04, 0x9c, 0, 0]);
    let sum = checksum(&m);
    m[2..4].copy_from_slice(&sum);
    m
}

/// Forges until told to stop, for every ephemeral port in turn: whoever does that need not know anything.
fn forge(to: u16, mtu: u16, stop: &AtomicBool) -> u64 {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).expect("root may");
    let target = SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let mut forged = 0;
    while !stop.load(Ordering::Relaxed) {
        for from in 32_768..=60_999 {
            forged += u64::from(socket.send_to(&too_big(from, to, mtu), &target).is_ok());
        }
    }
    forged
}

/// Sends for 3 s while messages of that MTU are forged.
fn under_attack(mtu: Option<u16>) -> (SendReport, ReceiveReport, u64) {
    let (receiver, mut config, clock) = loopback();
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "2 Mbit/s".to_owned());
    config.duration = Some(Duration::from_secs(3));
    let to = receiver.address().unwrap().port();
    let mut source = ConstantSource::new(Rate::mbps(1.5), Duration::from_millis(20));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let attack = mtu.map(|mtu| {
            scope.spawn({
                let stop = &stop;
                move || forge(to, mtu, stop)
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
    for mtu in [Some(68), Some(552), Some(900), Some(0), None] {
        let (sent, received, forged) = under_attack(mtu);
        assert!(matches!(sent.end, SendEnd::Finished), "{mtu:?}: {:?}", sent.end);
        assert!(mtu.is_none() || forged > 28_000 && sent.socket.hints > 0, "{mtu:?}: {forged}, {:?}", sent.socket);
        assert_eq!((sent.packet_size, sent.not_sent), (Bytes::new(1_200), 0), "{mtu:?}");
        let media = sent.stats.sent.of(What::Media).packets;
        assert!(media > 300, "{mtu:?}: {media}");
        let kernel = received.socket.kernel_drops;
        assert!(received.stats.media.received + kernel >= media, "{mtu:?}: {:?} of {media}", received.stats.media);
    }
}
