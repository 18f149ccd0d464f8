//! The relay by itself, on loopback. Times are bounded below by the path, and above only so far
//! that a busy machine passes.

use fairpace_emu::relay::{Begin, Relay, RelayConfig, RelayReport};
use fairpace_net::{Buffers, Clock, DatagramIo, Mark, NetError, Received, RecvOutcome, SendOutcome, UdpSocket, Waiter};
use fairpace_path::{Capacity, DelayModel, DropReason, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_rtp::challenge::{Challenge, Echo};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{FlowConfig, Protocol};
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Packets, Probability, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const NORMAL: Mark = Mark { dscp: Dscp::DEFAULT, ecn: Ecn::Ect0 };
const LOW: Mark = Mark { dscp: Dscp::LE, ecn: Ecn::NotEct };

fn two_priority(rate: Rate, delay: Duration, packets: u64) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(rate),
        delay: DelayModel::constant(delay),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(packets)) },
        ..LinkSpec::default()
    }
}

/// A client, a relay running in a thread, and a target.
struct Bench {
    clock: Clock,
    client: UdpSocket,
    target: UdpSocket,
    waiter: Waiter,
}

impl Bench {
    /// Runs `work` beside a relay, stops it, and gives its report.
    fn with<T>(
        ip: IpAddr,
        change: impl FnOnce(&mut RelayConfig),
        work: impl FnOnce(&mut Bench) -> T,
    ) -> (T, RelayReport) {
        let clock = Clock::start();
        let target = UdpSocket::bind(SocketAddr::new(ip, 0), true, Buffers::default(), clock).unwrap();
        let mut config = RelayConfig::new(0, target.local_address().unwrap());
        change(&mut config);
        let relay = Relay::open(config, clock).unwrap();
        let address = SocketAddr::new(ip, relay.address().unwrap().port());
        let client = UdpSocket::connect(address, Buffers::default(), clock).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let running = scope.spawn(|| relay.run(|_| {}, &stop));
            let mut bench = Bench { clock, client, target, waiter: Waiter::new(clock).unwrap() };
            // A failure ends the relay, too.
            let out = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut bench)));
            stop.store(true, Ordering::Relaxed);
            let out = out.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (out, running.join().unwrap().unwrap())
        })
    }

    fn pause(&mut self, ms: u64) {
        let until = self.clock.now() + Duration::from_millis(ms);
        while self.clock.now() < until {
            self.waiter.wait(until, &[]).unwrap();
        }
    }

    /// All datagrams that come to the target until it has been quiet for `quiet`.
    fn collect(&mut self, quiet: Duration) -> Vec<(Vec<u8>, Received)> {
        until_quiet(self.clock, &mut self.waiter, &mut self.target, quiet)
    }

    /// All datagrams that come to the client until it has been quiet for 100 ms.
    fn answers(&mut self) -> Vec<Vec<u8>> {
        let got = until_quiet(self.clock, &mut self.waiter, &mut self.client, Duration::from_millis(100));
        got.into_iter().map(|(bytes, _)| bytes).collect()
    }

    /// The client sends, and the target answers with all of `answers`. Gives the packets that came to the client.
    fn exchange(&mut self, bytes: &[u8], answers: &[&[u8]]) -> Vec<Vec<u8>> {
        assert_eq!(self.client.send(None, bytes, NORMAL), SendOutcome::Sent);
        let entrance = self.collect(Duration::from_millis(50))[0].1.from;
        for answer in answers {
            assert_eq!(self.target.send(Some(entrance), answer, NORMAL), SendOutcome::Sent);
        }
        self.answers()
    }
}

fn until_quiet(clock: Clock, waiter: &mut Waiter, socket: &mut UdpSocket, quiet: Duration) -> Vec<(Vec<u8>, Received)> {
    let mut got = Vec::new();
    let mut until = clock.now() + quiet;
    let mut buffer = [0; 2_048];
    while clock.now() < until {
        while let RecvOutcome::Packet(r) = socket.recv(&mut buffer) {
            got.push((buffer[..r.len].to_vec(), r));
            until = clock.now() + quiet;
        }
        waiter.wait(until, &[socket.descriptor()]).unwrap();
    }
    got
}

#[test]
fn packets_keep_bytes_order_and_marks_and_none_is_early_or_doubled() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let delay = Duration::from_millis(50);
        let change = |c: &mut RelayConfig| c.forward = two_priority(Rate::mbps(1.0), delay, 100);
        let ((sent_at, got), report) = Bench::with(ip, change, |b| {
            let sent_at = b.clock.now();
            for i in 0..20_u8 {
                let mark = if i % 2 == 0 { NORMAL } else { LOW };
                assert_eq!(b.client.send(None, &[i; 97], mark), SendOutcome::Sent);
            }
            (sent_at, b.collect(Duration::from_millis(400)))
        });
        assert_eq!(got.len(), 20, "{report:?}");
        // 97 B + 28 B = 125 B = 1 ms at 1 Mbit/s over IPv4; 145 B = 1.16 ms over IPv6
        let per_packet = Duration::from_micros(if ip.is_ipv4() { 1_000 } else { 1_160 });
        for (i, (bytes, r)) in got.iter().enumerate() {
            assert_eq!(bytes, &[i as u8; 97], "in order, each once");
            assert_eq!(r.mark, if i % 2 == 0 { NORMAL } else { LOW });
            // Mapping the kernel's stamp onto our clock is worth a few microseconds.
            let earliest = delay + per_packet * (i as u32 + 1) - Duration::from_millis(1);
            assert!(r.at.since(sent_at) >= earliest, "packet {i} after {:?}", r.at.since(sent_at));
        }
        let last = report.series.last().unwrap();
        let low = last.forward.counters.class(Class::Low);
        assert_eq!((low.offered.packets.get(), low.delivered.packets.get()), (10, 10));
        assert_eq!(report.lateness.count, 20);
        assert_eq!((report.under_way, report.not_sent, report.store_full), (0, 0, 0));
        assert_eq!(report.clients, 1);
    }
}

#[test]
fn a_full_queue_pushes_low_packets_out_for_normal_ones() {
    // 10 packets of room at 200 kbit/s: 1,000 B take 40 ms each, so a burst of 10 low fills it and
    // the 6 normal ones behind push out 6 waiting low ones.
    let change = |c: &mut RelayConfig| c.forward = two_priority(Rate::kbps(200.0), Duration::ZERO, 10);
    let (got, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), change, |b| {
        for i in 0..16 {
            let mark = if i < 10 { LOW } else { NORMAL };
            b.client.send(None, &[0; 972], mark);
        }
        b.collect(Duration::from_millis(500))
    });
    let low = got.iter().filter(|(_, r)| r.mark == LOW).count();
    let normal = got.iter().filter(|(_, r)| r.mark == NORMAL).count();
    let pushed_out = report.series.last().unwrap().forward.counters.dropped(DropReason::PushedOut).packets.get();
    assert_eq!(normal, 6, "no normal packet is lost: {report:?}");
    // On a stalled machine one more low packet may have left before the normal ones came.
    assert_eq!(low as u64 + pushed_out, 10);
    assert!((4..=6).contains(&pushed_out), "{pushed_out}");
}

#[test]
fn random_loss_is_the_paths_and_is_counted_by_reason() {
    let p = Probability::new(0.3).unwrap();
    let change = |c: &mut RelayConfig| c.forward.loss = LossModel::Bernoulli(p);
    let (got, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), change, |b| {
        for i in 0..300 {
            b.client.send(None, &[0; 100], NORMAL);
            if i % 50 == 49 {
                b.pause(2);
            }
        }
        b.collect(Duration::from_millis(200)).len() as u64
    });
    let lost = report.series.last().unwrap().forward.counters.dropped(DropReason::LinkError).packets.get();
    assert_eq!(got + lost, 300);
    // 300 draws at 0.3: 90, sd = sqrt(300 * 0.3 * 0.7) = 7.9; four of them
    assert!((58..=122).contains(&lost), "{lost}");
}

#[test]
fn answers_travel_back_through_their_own_link_to_the_client() {
    let change = |c: &mut RelayConfig| c.back.delay = DelayModel::constant(Duration::from_millis(80));
    let (rtt, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), change, |b| {
        let begin = b.clock.now();
        b.client.send(None, b"ping", NORMAL);
        let got = b.collect(Duration::from_millis(100));
        b.target.send(Some(got[0].1.from), b"pong", LOW);
        let until = b.clock.now() + Duration::from_secs(2);
        let mut buffer = [0; 10];
        loop {
            if let RecvOutcome::Packet(r) = b.client.recv(&mut buffer) {
                assert_eq!((&buffer[..r.len], r.mark), (&b"pong"[..], LOW));
                break r.at.since(begin);
            }
            assert!(b.clock.now() < until, "no answer");
            b.waiter.wait(until, &[b.client.descriptor()]).unwrap();
        }
    });
    assert!(rtt >= Duration::from_millis(79), "{rtt:?}");
    assert_eq!(report.series.last().unwrap().back.counters.total().delivered.packets.get(), 1);
}

#[test]
fn a_stranger_does_not_take_a_talking_clients_place() {
    let (_, report) = Bench::with(
        Ipv4Addr::LOCALHOST.into(),
        |_| {},
        |b| {
            b.client.send(None, b"mine", NORMAL);
            assert_eq!(b.collect(Duration::from_millis(60)).len(), 1);
            let mut stranger = UdpSocket::connect(b.client.peer().unwrap(), Buffers::default(), b.clock).unwrap();
            stranger.send(None, b"not mine", NORMAL);
            assert_eq!(b.collect(Duration::from_millis(60)).len(), 0);
            b.client.send(None, b"mine", NORMAL);
            assert_eq!(b.collect(Duration::from_millis(60)).len(), 1);
        },
    );
    assert_eq!((report.clients, report.strangers), (1, 1));
}

#[test]
fn who_has_shown_that_it_hears_has_its_place_back_after_a_pause() {
    let stream = [&[7_u8; 1_000][..]; 20];
    let ((), report) = Bench::with(
        Ipv4Addr::LOCALHOST.into(),
        |_| {},
        |b| {
            b.exchange(&[1; 38], &[&challenge(7)]);
            assert_eq!(b.exchange(&echo(7), &stream).len(), 20);
            b.pause(2_100);
            let mut stranger = UdpSocket::connect(b.client.peer().unwrap(), Buffers::default(), b.clock).unwrap();
            stranger.send(None, b"mine now", NORMAL);
            assert_eq!(b.collect(Duration::from_millis(60)).len(), 1, "a place that is silent is free");
            // At once, and without showing anything again.
            assert_eq!(b.exchange(&[1; 38], &stream).len(), 20);
            stranger.send(None, b"mine still", NORMAL);
            assert_eq!(b.collect(Duration::from_millis(60)).len(), 0);
        },
    );
    assert_eq!((report.clients, report.strangers), (3, 1));
}

#[test]
fn memory_is_bounded_and_running_out_of_it_makes_the_run_invalid() {
    let change = |c: &mut RelayConfig| {
        c.memory = Bytes::new(5_000);
        c.forward.delay = DelayModel::constant(Duration::from_millis(100));
    };
    let (got, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), change, |b| {
        for _ in 0..10 {
            b.client.send(None, &[0; 1_000], NORMAL);
        }
        b.collect(Duration::from_millis(250)).len() as u64
    });
    assert_eq!((got, report.store_full, report.peak_memory), (5, 5, Bytes::new(5_000)));
    assert!(!report.is_valid() && report.invalid.iter().any(|r| r.contains("memory")), "{:?}", report.invalid);
}

#[test]
fn the_duration_counts_in_the_paths_time_and_ends_the_run() {
    let clock = Clock::start();
    let mut config = RelayConfig::new(0, "127.0.0.1:9".parse().unwrap());
    (config.begin, config.duration) = (Begin::AtOnce, Some(Duration::from_millis(250)));
    config.sample = Duration::from_millis(100);
    let report = Relay::open(config, clock).unwrap().run(|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(report.elapsed >= Duration::from_millis(250) && report.elapsed < Duration::from_secs(5));
    // 100, 200 and the last; on a stalled machine missed ones are one
    assert!((2..=3).contains(&report.series.len()), "{:?}", report.series.len());
}

#[test]
fn a_port_in_use_and_a_link_that_cannot_be_are_errors_with_names() {
    let clock = Clock::start();
    let to = "127.0.0.1:9".parse().unwrap();
    let first = Relay::open(RelayConfig::new(0, to), clock).unwrap();
    let port = first.address().unwrap().port();
    let error = Relay::open(RelayConfig::new(port, to), clock).unwrap_err();
    assert!(matches!(error, NetError::PortInUse { .. }) && error.to_string().contains(&port.to_string()), "{error}");
    let mut config = RelayConfig::new(0, to);
    config.forward.rate = RateModel::Fixed(Rate::ZERO);
    let error = Relay::open(config, clock).unwrap_err();
    assert!(error.to_string().contains("forward"), "{error}");
    assert!(matches!(error, NetError::Config { .. }), "{error:?}");
}

#[test]
fn simulated_tcp_shares_the_bottleneck_with_real_packets_in_real_time() {
    // TCP alone fills 1 Mbit/s with 20 packets of room (40 ms round trip: 5 packets of 1,000 B in
    // flight are enough); the real packets, 10 % of the link, find its queue in their way.
    let change = |c: &mut RelayConfig| {
        c.forward = two_priority(Rate::mbps(1.0), Duration::from_millis(20), 20);
        c.back.delay = DelayModel::constant(Duration::from_millis(20));
        c.flows = vec![FlowConfig::new("tcp", Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))];
        c.begin = Begin::AtOnce;
        c.sample = Duration::from_millis(500);
    };
    let (got, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), change, |b| {
        for _ in 0..100 {
            b.client.send(None, &[0; 97], NORMAL);
            b.pause(19);
        }
        b.collect(Duration::from_millis(300)).len() as u64
    });
    let last = report.series.last().unwrap();
    let tcp = &last.flows[0];
    let seconds = last.at.as_secs_f64();
    let tcp_bps = tcp.counts.received.bytes.as_f64() * 8.0 / seconds;
    // 100 packets of 125 B in about 2 s are 50 kbit/s; TCP takes most of the rest. TCP needs half a second to get
    // going, and loses something to the queue.
    assert!((500e3..=1_000e3).contains(&tcp_bps), "{tcp_bps:.0} bit/s in {seconds} s");
    assert!(last.forward.counters.max_queue > Packets::new(5), "TCP keeps a queue: {last:?}");
    let dropped = last.forward.counters.class(Class::Normal).dropped(DropReason::QueueFull).packets.get();
    assert!(got > 50 && got + dropped >= 100, "{got} of 100 arrived, {dropped} dropped in all");
    assert!(report.series.len() >= 4);
}

/// A forger sends one packet under the address of a victim, and the target answers it with a stream.
#[test]
fn a_forged_packet_brings_its_victim_three_times_its_bytes_and_no_more() {
    let stream = [&[7_u8; 38][..]; 100];
    let (got, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), |_| {}, |b| b.exchange(&[1; 38], &stream));
    assert_eq!(got.iter().map(Vec::len).sum::<usize>(), 114, "{report:?}");
    assert_eq!((report.withheld, report.not_sent), (97, 0));
    // Headers count too: a packet that came pays for three, however short they are. An empty one pays for none.
    let short = [&[7_u8; 1][..]; 100];
    let (got, _) = Bench::with(Ipv4Addr::LOCALHOST.into(), |_| {}, |b| b.exchange(&[1; 38], &short));
    assert_eq!(got.len(), 3);
}

#[test]
fn a_configured_peer_is_sent_whatever_there_is_and_nobody_else_is_a_client() {
    let stream = [&[7_u8; 1_000][..]; 50];
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (got, report) =
        Bench::with(Ipv4Addr::LOCALHOST.into(), |c| c.peers = vec![any_port], |b| b.exchange(&[1; 38], &stream));
    assert_eq!((got.len(), report.withheld, report.strangers), (50, 0, 0));
    let other = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let change = |c: &mut RelayConfig| c.peers = vec![other];
    let (got, report) = Bench::with(Ipv4Addr::LOCALHOST.into(), change, |b| {
        b.client.send(None, &[1; 38], NORMAL);
        b.collect(Duration::from_millis(50)).len()
    });
    assert_eq!((got, report.clients, report.strangers), (0, 0, 1));
}

fn challenge(token: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let form = fairpace_rtp::feedback::Request::Ccfb;
    let (media, dummy) = ((96, 1), (97, 2));
    let codec = fairpace_rtp::Codec::Generic;
    let streams = Challenge {
        token,
        class: Class::Normal,
        codec,
        media,
        dummy,
        retransmission: None,
        fec: None,
        form,
        proof: None,
    };
    streams.emit(&mut bytes);
    bytes
}

fn echo(token: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let zero = Duration::ZERO;
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
    let answer = Echo {
        receiver: 3,
        token,
        dscp,
        ecn,
        delay: zero,
        rwnd: None,
        feedback_interval: zero,
        next_report: 4,
        taken: false,
        fec: false,
        busy: false,
        ends: false,
        show: false,
    };
    answer.emit(&mut bytes);
    bytes
}

/// A handshake packet of SRT: INDUCTION (1) or CONCLUSION (-1).
fn srt_handshake(kind: u32, cookie: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[0] = 0x80;
    bytes[36..40].copy_from_slice(&kind.to_be_bytes());
    bytes[44..48].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

#[test]
fn who_gives_back_a_token_or_a_cookie_that_went_to_it_has_shown_that_it_hears() {
    let stream = [&[7_u8; 1_000][..]; 20];
    let (induction, conclusion) = (1, u32::MAX);
    let (token, cookie) = (0x1234_5678_9abc_def0, 0x89ab_cdef_u32);
    let cookie_of = |packet: &[u8]| u32::from_be_bytes(*packet[44..].first_chunk().unwrap());
    type Answer<'a> = &'a dyn Fn(&[u8], u32) -> Vec<u8>;
    // Each with the answer to what came, off by so much; that of SRT has the cookie that came, which is another one for each client.
    let of_ours: Answer<'_> = &|_, off| echo(token ^ u64::from(off));
    let of_srt: Answer<'_> = &|came, off| srt_handshake(conclusion, cookie_of(came) ^ off);
    for (question, answer) in [(challenge(token), of_ours), (srt_handshake(induction, cookie), of_srt)] {
        let ((by_guess, by_answer), report) = Bench::with(
            Ipv4Addr::LOCALHOST.into(),
            |_| {},
            |b| {
                let came = b.exchange(&[1; 38], &[&question]).remove(0);
                (b.exchange(&answer(&came, 1), &stream).len(), b.exchange(&answer(&came, 0), &stream).len())
            },
        );
        assert_eq!((by_guess, by_answer), (0, 20), "{report:?}");
        // A number that a forger sent itself, and the target gave back, proves nothing.
        let ((), report) = Bench::with(
            Ipv4Addr::LOCALHOST.into(),
            |_| {},
            |b| {
                b.exchange(&question, &[&question]);
                assert_eq!(b.exchange(&answer(&question, 0), &stream).len(), 0);
            },
        );
        assert_eq!(report.withheld, 20);
    }
}
