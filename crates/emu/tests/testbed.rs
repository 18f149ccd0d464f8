//! A path between two namespaces, with real sockets at its ends. One process with one thread at its start, which
//! the kernel demands: no test harness. Skips, with the reason, where the system gives no namespaces or no devices.

mod common;
#[path = "common/named.rs"]
mod named;

use fairpace_emu::{EmuError, EmuReport, NetNs, Running, Sandbox, Side, SideReport, Testbed, TestbedOptions};
use fairpace_net::kernel_tcp::tcp_info;
use fairpace_net::{Buffers, Clock, DatagramIo, Family, Mark, RecvOutcome, SendOutcome, UdpSocket, Waiter};
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{Capacity, CoDelParams, Count, DelayModel, LinkSpec, QueueModel, RateModel};
use fairpace_rtp::quick_start;
use fairpace_sim::{FlowConfig, HopConfig, Protocol, SimConfig, SimReport};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant, Packets, QsFunction, QsNonce, QsOption, QsRate, Rate};
use socket2::{Domain, Protocol as IpProtocol, SockAddr, Socket, Type};
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

fn main() {
    let Some(sandbox) = common::sandbox() else { return };
    named::run(&sandbox, Testbed::open(&config(1, LinkSpec::default()), options(&sandbox)), TESTS);
}

const TESTS: &[(&str, named::Test)] = &[
    ("ping_takes_the_path_and_not_less", ping_takes_the_path_and_not_less),
    ("kernel_tcp_comes_through_whole", kernel_tcp_comes_through_whole),
    ("marks_of_real_packets_are_read_and_written", marks_of_real_packets_are_read_and_written),
    ("routers_answer_a_real_quick_start_request", routers_answer_a_real_quick_start_request),
    ("a_device_may_be_down_for_a_while_and_taken_away", a_device_may_be_down_for_a_while_and_taken_away),
    ("tshark_reads_both_sides", tshark_reads_both_sides),
    ("what_cannot_be_is_refused", what_cannot_be_is_refused),
];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// `flows` real flows, the same link each way.
fn config(flows: usize, link: LinkSpec) -> SimConfig {
    let flow =
        |i| FlowConfig { packet_size: Bytes::new(1_500), ..FlowConfig::new(format!("flow{i}"), Protocol::External) };
    SimConfig {
        hops: vec![HopConfig::path(link.clone(), link)],
        flows: (0..flows).map(flow).collect(),
        ..SimConfig::default()
    }
}

fn delay(delay: Duration) -> LinkSpec {
    LinkSpec { delay: DelayModel::constant(delay), ..LinkSpec::default() }
}

fn options(sandbox: &Sandbox) -> TestbedOptions {
    let [senders, receivers] = ["senders", "receivers"].map(|name| sandbox.namespace(name).expect("may be made"));
    TestbedOptions::new(senders, receivers)
}

/// One echo request after the other from `from`; the shortest round trip.
fn ping(from: IpAddr, to: IpAddr, times: u16) -> Duration {
    let (domain, protocol, kind) = match to {
        IpAddr::V4(_) => (Domain::IPV4, IpProtocol::ICMPV4, 8),
        IpAddr::V6(_) => (Domain::IPV6, IpProtocol::ICMPV6, 128),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).expect("ping_group_range has our group");
    socket.bind(&SockAddr::from(SocketAddr::new(from, 0))).expect("one of ours");
    socket.set_read_timeout(Some(ms(10_000))).expect("a timeout");
    let trips = (0..times).map(|n| {
        let mut request = vec![kind, 0, 0, 0, 0, 0];
        request.extend(n.to_be_bytes());
        request.extend([7; 48]);
        let clock = Clock::start();
        socket.send_to(&request, &SockAddr::from(SocketAddr::new(to, 0))).expect("there is a route");
        let mut buffer = [MaybeUninit::uninit(); 256];
        let length = socket.recv(&mut buffer).expect("an answer within ten seconds");
        assert_eq!(length, request.len());
        clock.now().since(Instant::ZERO)
    });
    trips.min().expect("at least one")
}

fn ping_takes_the_path_and_not_less(sandbox: &Sandbox) {
    let testbed = Testbed::open(&config(2, delay(ms(25))), options(sandbox)).expect("opens");
    let running = testbed.start().expect("starts");
    let pairs = [running.addresses(0), running.addresses(1), running.addresses_v6(0), running.addresses_v6(1)];
    for pair in pairs {
        if pair.sender.is_ipv6() && !has_ipv6() {
            continue;
        }
        for side in Side::BOTH {
            let (from, to) = (pair.at(side), pair.at(side.far()));
            let least = running.enter(side, || ping(from, to, 3)).expect("entered");
            println!("  {from} to {to}: {least:?}");
            assert!(least >= ms(50), "{least:?}: a packet was early");
        }
    }
    let (sim, emu) = running.finish();
    println!("  {emu:?}");
    assert_eq!(emu.unknown(), 0);
    for flow in &sim.flows {
        // Three each way for each family, there and back.
        assert_eq!(flow.whole.feedback_received.packets.get(), 24);
    }
}

/// Sends `bytes` over the kernel's TCP from the sender to the receiver of a flow; the least round trip it saw.
fn transfer(testbed: Testbed, flow: u32, six: bool, bytes: usize) -> (Duration, SimReport, EmuReport) {
    let pair = if six { testbed.addresses_v6(flow) } else { testbed.addresses(flow) };
    let listener =
        testbed.enter(Side::Receivers, || TcpListener::bind((pair.receiver, 5_001))).expect("entered").expect("bound");
    let running = testbed.start().expect("starts");
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let (mut buffer, mut sum, mut total) = (vec![0; 1 << 16], 0_u64, 0);
        loop {
            match stream.read(&mut buffer).expect("no reset") {
                0 => break (total, sum),
                n => {
                    for byte in &buffer[..n] {
                        sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
                    }
                    total += n;
                }
            }
        }
    });
    let (min_rtt, sum) = running
        .enter(Side::Senders, || {
            let socket =
                Socket::new(Domain::for_address((pair.sender, 0).into()), Type::STREAM, None).expect("a socket");
            socket.bind(&SockAddr::from(SocketAddr::new(pair.sender, 0))).expect("ours");
            socket.connect(&SockAddr::from(SocketAddr::new(pair.receiver, 5_001))).expect("somebody listens");
            let mut stream = TcpStream::from(socket);
            let (mut sum, mut left, mut x) = (0_u64, bytes, 1_u32);
            let mut block = vec![0; 1 << 16];
            while left > 0 {
                let n = left.min(block.len());
                for byte in &mut block[..n] {
                    x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *byte = (x >> 24) as u8;
                    sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
                }
                stream.write_all(&block[..n]).expect("the path is up");
                left -= n;
            }
            let rtt = tcp_info(&stream).expect("TCP_INFO").min_rtt;
            stream.shutdown(std::net::Shutdown::Write).expect("open");
            (rtt.expect("there were ACKs"), sum)
        })
        .expect("entered");
    let got = receiver.join().expect("no panic");
    assert_eq!(got, (bytes, sum), "what was received is not what was sent");
    let (sim, emu) = running.finish();
    (min_rtt, sim, emu)
}

fn kernel_tcp_comes_through_whole(sandbox: &Sandbox) {
    for (six, offload) in [(false, true), (false, false), (true, true), (true, false)] {
        if six && !has_ipv6() {
            continue;
        }
        let options = TestbedOptions { offload, ..options(sandbox) };
        let testbed = Testbed::open(&config(1, delay(ms(25))), options).expect("opens");
        let bytes = 4_000_000;
        let (min_rtt, sim, emu) = transfer(testbed, 0, six, bytes);
        println!("  IPv6 {six}, offload {offload}: least RTT {min_rtt:?}; {emu:?}");
        assert!(min_rtt >= ms(50), "{min_rtt:?}: a packet was early");
        let flow = &sim.flows[0].whole;
        assert!(flow.received.bytes.get() >= bytes as u64 && flow.dropped_in_all().packets.get() == 0);
        assert_eq!(emu.side(Side::Senders).read_joined > 0, offload);
        // The last ACKs may be under way; nothing else is missing.
        let packets = |f: fn(&SideReport) -> Count| emu.sides.iter().map(|s| f(s).packets.get()).sum::<u64>();
        assert_eq!(packets(|s| s.read), packets(|s| s.written) + emu.under_way);
        assert_eq!((emu.unknown(), emu.side(Side::Receivers).malformed), (0, 0));
    }
}

fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

/// The path marks instead of dropping, and the receiver sees that, and the DSCP, in what the kernel gives it.
fn marks_of_real_packets_are_read_and_written(sandbox: &Sandbox) {
    let codel = CoDelParams { ecn: true, target: ms(1), interval: ms(10), ..CoDelParams::new(Capacity::Unlimited) };
    let rate = RateModel::Fixed(Rate::mbps(2.0));
    let link = LinkSpec { rate, queue: QueueModel::CoDel(codel), ..LinkSpec::default() };
    let running = Testbed::open(&config(1, link), options(sandbox)).expect("opens").start().expect("starts");
    for pair in [running.addresses(0), running.addresses_v6(0)] {
        if pair.sender.is_ipv6() && !has_ipv6() {
            continue;
        }
        let to = SocketAddr::new(pair.receiver, 5_004);
        let clock = Clock::start();
        let listen = || UdpSocket::listen(5_004, Family::Any, Buffers::default(), clock).expect("free");
        let mut receiver = running.enter(Side::Receivers, listen).expect("entered");
        let connect = || UdpSocket::connect(to, Buffers::default(), clock).expect("a route");
        let mut sender = running.enter(Side::Senders, connect).expect("entered");
        // Expedited forwarding, which is no class of its own here.
        let mark = Mark { dscp: Dscp::new(46), ecn: Ecn::Ect0 };
        for _ in 0..60 {
            assert_eq!(sender.send(None, &[0; 1_000], mark), SendOutcome::Sent);
        }
        let (mut seen, mut buffer) = (Vec::new(), [0; 2_000]);
        let mut waiter = Waiter::new(clock).expect("a timer");
        let end = clock.now() + ms(10_000);
        while seen.len() < 60 && clock.now() < end {
            match receiver.recv(&mut buffer) {
                RecvOutcome::Packet(packet) => seen.push(packet.mark),
                RecvOutcome::Empty => waiter.wait(end, &[receiver.descriptor()]).map(|_| ()).expect("waits"),
                other => panic!("{other:?}"),
            }
        }
        let marked = seen.iter().filter(|m| m.ecn == Ecn::Ce).count();
        println!("  {to}: {} came, {marked} marked", seen.len());
        assert!(seen.len() == 60 && marked > 0, "{seen:?}");
        assert!(seen.iter().all(|m| m.dscp == mark.dscp && [Ecn::Ect0, Ecn::Ce].contains(&m.ecn)), "{seen:?}");
    }
    let (sim, emu) = running.finish();
    assert!(sim.flows[0].whole.marked.packets.get() > 0 && emu.side(Side::Receivers).not_written == 0);
}

/// A raw packet with the option goes through a router that knows it and arrives with a lower rate, both TTLs
/// lowered, and a checksum that the receiving kernel accepts.
fn routers_answer_a_real_quick_start_request(sandbox: &Sandbox) {
    let rate = RateModel::Fixed(Rate::mbps(10.0));
    let link = LinkSpec { rate, quick_start: Some(RouterParams::default()), ..LinkSpec::default() };
    let running = Testbed::open(&config(1, link), options(sandbox)).expect("opens").start().expect("starts");
    let (IpAddr::V4(from), IpAddr::V4(to)) = (running.addresses(0).sender, running.addresses(0).receiver) else {
        panic!("IPv4 asked for")
    };
    let (function, nonce) = (QsFunction::Request, QsNonce::new(7));
    let asked = QsOption { function, rate: QsRate::MAX, qs_ttl: 90, ip_ttl: 64, nonce };
    // The kernel fills in the length and the checksum.
    let mut packet = vec![0x47, 0, 0, 0, 0, 1, 0, 0, asked.ip_ttl, 17, 0, 0];
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(quick_start::ipv4_option(&asked));
    packet.extend([0x13, 0x8c, 0x13, 0x8c, 0, 9, 0, 0, b'x']); // UDP, port 5004, no checksum
    let raw = |protocol| move || Socket::new(Domain::IPV4, Type::RAW, Some(protocol)).expect("privileged in here");
    let mut receiver = running.enter(Side::Receivers, raw(IpProtocol::UDP)).expect("entered");
    receiver.set_read_timeout(Some(ms(10_000))).expect("a timeout");
    let sender = running.enter(Side::Senders, raw(IpProtocol::from(255))).expect("entered");
    sender.set_header_included_v4(true).expect("a raw socket");
    sender.send_to(&packet, &SockAddr::from(SocketAddr::from((to, 0)))).expect("a route");
    let mut buffer = [0; 256];
    let length = receiver.read(&mut buffer).expect("it comes");
    let got = &buffer[..length];
    assert!(quick_start::ipv4_checksum_holds(got));
    let option = quick_start::parse(got).expect("a header").expect("with its option");
    println!("  asked {asked:?}, got {option:?}");
    assert_eq!((option.ip_ttl, option.qs_ttl), (63, 89));
    assert!(option.rate > QsRate::ZERO && option.rate.rate() <= Rate::mbps(10.0));
    assert_eq!(got[28..], packet[28..]);
    running.finish();
}

/// One datagram from the sender to the receiver of flow 0: whether it came.
fn datagram_comes(running: &Running, wait: Duration) -> bool {
    let pair = running.addresses(0);
    let bind = |address| move || std::net::UdpSocket::bind((address, 5_005)).expect("free");
    let receiver = running.enter(Side::Receivers, bind(pair.receiver)).expect("entered");
    let sender = running.enter(Side::Senders, bind(pair.sender)).expect("entered");
    receiver.set_read_timeout(Some(wait)).expect("a timeout");
    // While a device of the sender is down there is no route.
    let _ = sender.send_to(b"hello", (pair.receiver, 5_005));
    receiver.recv(&mut [0; 16]).is_ok()
}

fn a_device_may_be_down_for_a_while_and_taken_away(sandbox: &Sandbox) {
    let ip = |running: &Running, arguments: &[&str]| {
        running.enter(Side::Receivers, || Command::new("ip").args(arguments).status()).expect("entered")
    };
    let running = Testbed::open(&config(1, delay(ms(1))), options(sandbox)).expect("opens").start().expect("starts");
    if ip(&running, &["-V"]).is_err() {
        return println!("  not tried: there is no `ip` program");
    }
    let done = |arguments: &[&str]| assert!(ip(&running, arguments).expect("there is one").success(), "{arguments:?}");
    assert!(datagram_comes(&running, ms(10_000)));
    done(&["link", "set", "fairpace0", "down"]);
    assert!(!datagram_comes(&running, ms(300)));
    done(&["link", "set", "fairpace0", "up"]);
    assert!(datagram_comes(&running, ms(10_000)));
    if has_ipv6() {
        let pair = running.addresses_v6(0);
        // The kernel makes it ready again in its own time.
        let end = Clock::start();
        let ready = || {
            while std::net::UdpSocket::bind((pair.receiver, 0)).is_err() && end.now() < Instant::ZERO + ms(10_000) {}
        };
        running.enter(Side::Receivers, ready).expect("entered");
        let least = running.enter(Side::Senders, || ping(pair.sender, pair.receiver, 1)).expect("entered");
        assert!(least >= ms(2), "{least:?}");
    }
    done(&["link", "delete", "fairpace0"]);
    assert!(!datagram_gone(&running), "nobody has that address any more");
    let (_, emu) = running.finish();
    println!("  {emu:?}");
    let side = emu.side(Side::Receivers);
    assert!(side.down >= 1 && side.gone && !emu.is_valid());
    assert!(emu.invalid.iter().any(|why| why.contains("taken away")), "{:?}", emu.invalid);
}

/// Sends to where no device is: whether anything came back.
fn datagram_gone(running: &Running) -> bool {
    let pair = running.addresses(0);
    running
        .enter(Side::Senders, || {
            let sender = std::net::UdpSocket::bind((pair.sender, 5_006)).expect("free");
            sender.set_read_timeout(Some(ms(200))).expect("a timeout");
            sender.send_to(b"hello", (pair.receiver, 5_006)).expect("its own device is there");
            sender.recv(&mut [0; 16]).is_ok()
        })
        .expect("entered")
}

fn tshark_reads_both_sides(sandbox: &Sandbox) {
    if Command::new("tshark").arg("--version").output().is_err() {
        return println!("  not tried: there is no `tshark`");
    }
    let folder = std::env::temp_dir().join(format!("fairpace-emu-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("both.pcapng");
    // A queue of twenty packets: some are dropped.
    let capacity = Capacity::Packets(Packets::new(20));
    let rate = RateModel::Fixed(Rate::mbps(10.0));
    let link = LinkSpec { rate, queue: QueueModel::DropTail { capacity }, ..delay(ms(20)) };
    let capture: Box<dyn Write + Send> = Box::new(std::fs::File::create(&file).expect("a file"));
    let options = TestbedOptions { capture: Some(capture), ..options(sandbox) };
    let testbed = Testbed::open(&config(1, link), options).expect("opens");
    let (_, sim, emu) = transfer(testbed, 0, false, 1_000_000);
    let shark = |filter: &str| {
        let arguments =
            ["-T", "fields", "-e", "frame.interface_id", "-e", "frame.time_epoch", "-e", "tcp.seq_raw", "-e", "ip.len"];
        let out =
            Command::new("tshark").arg("-r").arg(&file).args(["-Y", filter]).args(arguments).output().expect("runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let sent = shark("frame.interface_id == 0 && ip.src == 10.77.0.1 && tcp.dstport == 5001");
    let came = shark("frame.interface_id == 1 && ip.src == 10.77.0.1 && tcp.dstport == 5001");
    let lost = shark("frame.interface_id == 2 && frame.comment contains \"queue_full\" && ip.src == 10.77.0.1");
    assert_eq!(shark("_ws.malformed"), Vec::<String>::new());
    let packets = |side: Side, f: fn(&SideReport) -> Count| f(emu.side(side)).packets.get() as usize;
    assert_eq!(sent.len(), packets(Side::Senders, |s| s.read));
    assert_eq!(came.len(), packets(Side::Receivers, |s| s.written));
    assert_eq!(lost.len() as u64, sim.flows[0].whole.dropped_in_all().packets.get());
    println!("  {} sent, {} came, {} lost", sent.len(), came.len(), lost.len());
    assert!(!lost.is_empty());
    // The first packet came 20 ms and its transmission after it was sent.
    let time = |line: &String| line.split('\t').nth(1).expect("a time").parse::<f64>().expect("seconds");
    assert!(time(&came[0]) - time(&sent[0]) >= 0.02);
    std::fs::remove_dir_all(folder).expect("ours");
}

fn what_cannot_be_is_refused(sandbox: &Sandbox) {
    let refused = |config: SimConfig, change: fn(&mut TestbedOptions)| {
        let mut options = options(sandbox);
        change(&mut options);
        match Testbed::open(&config, options) {
            Ok(_) => panic!("opened"),
            Err(e) => e,
        }
    };
    let plain = || config(1, LinkSpec::default());
    let small = refused(plain(), |o| o.mtu = 1_400);
    assert!(matches!(small, EmuError::MtuTooSmall { .. }), "{small:?}");
    assert_eq!(small.to_string(), "the MTU 1400 is too small: 1500 is the least (the flows' packets)");
    let none = SimConfig { flows: Vec::new(), ..plain() };
    assert!(matches!(refused(none, |_| ()), EmuError::Sim(_)));
    let network = refused(plain(), |o| o.network = 200);
    assert!(matches!(network, EmuError::Config { field: "network", .. }), "{network:?}");
    assert_eq!(network.to_string(), "`network` is 200; allowed: 0 to 122");
    let stray = refused(plain(), |o| o.stray = Some(1));
    assert_eq!(stray.to_string(), "`stray` is 1; allowed: a flow of `Protocol::External`");
    // Two of one kind in one namespace.
    let first = options(sandbox);
    let again = |namespace: &NetNs| namespace.run(|| NetNs::current("again")).expect("entered").expect("/proc");
    let second = TestbedOptions::new(again(&first.senders), again(&first.receivers));
    let held = Testbed::open(&plain(), first).expect("opens");
    match Testbed::open(&plain(), second) {
        Err(EmuError::DeviceTaken { name }) => assert_eq!(name, "fairpace0"),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("opened"),
    }
    // Whoever does not finish leaves nothing behind either.
    let namespace = again(held.namespace(Side::Senders));
    let devices =
        || namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).expect("entered").expect("/proc");
    let running = held.start().expect("starts");
    assert!(devices().contains("fairpace0:"));
    drop(running);
    assert!(!devices().contains("fairpace0:"));
}
