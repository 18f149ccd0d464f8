//! The size of packets: as asked for, what the path carries, and what is refused.

mod common;

use common::{connect, loopback, run_beside};
use fairpace_media::ConstantSource;
use fairpace_net::send::{self, SendEnd, SendObserver, SendReport};
use fairpace_net::{DatagramIo, Mark, RecvOutcome, SendOutcome, SocketCounters, UdpSocket};
use fairpace_rtp::{SenderEvent, What};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// IP and UDP.
const HEADERS: u64 = 28;

/// A socket of a path that carries no larger IP packets.
struct Narrow {
    socket: UdpSocket,
    mtu: u64,
    largest: u64,
}

impl DatagramIo for Narrow {
    fn send(&mut self, to: Option<SocketAddr>, bytes: &[u8], mark: Mark) -> SendOutcome {
        self.send_batch(to, bytes, bytes.len(), mark).1
    }
    fn send_batch(&mut self, to: Option<SocketAddr>, bytes: &[u8], segment: usize, mark: Mark) -> (usize, SendOutcome) {
        let size = segment.min(bytes.len()) as u64 + HEADERS;
        if size > self.mtu {
            return (0, SendOutcome::TooLarge { mtu: Some(Bytes::new(self.mtu)) });
        }
        self.largest = self.largest.max(size);
        self.socket.send_batch(to, bytes, segment, mark)
    }
    fn recv(&mut self, buffer: &mut [u8]) -> RecvOutcome {
        self.socket.recv(buffer)
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }
    fn counters(&self) -> SocketCounters {
        self.socket.counters()
    }
}

#[derive(Default)]
struct PacketSizes(Vec<Bytes>);

impl SendObserver for PacketSizes {
    fn on_event(&mut self, _: Instant, event: &SenderEvent) {
        if let SenderEvent::PacketSize(size) = event {
            self.0.push(*size);
        }
    }
}

/// A second of that size over a path of that MTU: the report, the largest packet, what was told.
fn run(scheme: &str, size: u64, mtu: u64) -> (SendReport, u64, Vec<Bytes>) {
    let (receiver, mut config, clock) = loopback();
    config.scheme = scheme.to_owned();
    config.session.packet_size = Bytes::new(size);
    config.max_rate = Rate::mbps(1.0);
    config.duration = Some(Duration::from_secs(1));
    let (mut io, mut told) = (Narrow { socket: connect(&config, clock), mtu, largest: 0 }, PacketSizes::default());
    let mut source = ConstantSource::new(Rate::kbps(400.0), Duration::from_millis(40));
    let send = |stop: &_| send::run_on(&mut io, &config, clock, &mut source, &mut told, stop);
    let (sent, _) = run_beside(receiver, send).unwrap();
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    (sent, io.largest, told.0)
}

#[test]
fn packets_are_as_large_as_was_asked_for() {
    for size in [72, 300, 1_500] {
        let (sent, largest, told) = run("rcs", size, 65_536);
        // A frame is cut into equal parts; RTCP has a size of its own.
        let media = sent.stats.sent.of(What::Media);
        let mean = media.bytes as f64 / media.packets as f64 + HEADERS as f64;
        assert!(mean > 0.6 * size as f64 && mean <= size as f64, "{mean} for {size}");
        assert!(largest <= size || size == 72, "{largest} for {size}");
        assert!(sent.flow.data.acked > 0, "{size}: {:?}", sent.flow);
        assert_eq!((sent.packet_size, sent.not_sent, told), (Bytes::new(size), 0, vec![]));
    }
}

#[test]
fn a_path_that_turns_out_to_carry_less_is_told_once_and_kept_to() {
    let (sent, largest, told) = run("fixed", 1_200, 700);
    assert_eq!((sent.packet_size, told), (Bytes::new(700), vec![Bytes::new(700)]));
    assert!(largest > 350 && largest <= 700, "{largest}");
    assert!(sent.not_sent > 0 && sent.flow.data.acked > 0, "{} {:?}", sent.not_sent, sent.flow);
}
