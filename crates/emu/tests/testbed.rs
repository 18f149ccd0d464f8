//! A path between two namespaces, with real sockets at its ends. One process with one thread at its start, which
//! the kernel demands: no test harness. Skips, with the reason, where the system gives no namespaces or no devices.

use fairpace_emu::{EmuError, EmuReport, Sandbox, Side, SideReport, Testbed, TestbedOptions};
use fairpace_net::Clock;
use fairpace_net::kernel_tcp::tcp_info;
use fairpace_path::{Count, DelayModel, LinkSpec};
use fairpace_sim::{FlowConfig, Protocol, SimConfig, SimReport};
use fairpace_units::{Bytes, Duration, Instant};
use socket2::{Domain, Protocol as IpProtocol, SockAddr, Socket, Type};
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;

fn main() -> ExitCode {
    let sandbox = match Sandbox::enter() {
        Ok(sandbox) => sandbox,
        Err(EmuError::NoNamespaces { what, source }) => {
            println!("skipped: this system gives no namespaces: {what}: {source}");
            return ExitCode::SUCCESS;
        }
        Err(e) => panic!("{e}"),
    };
    match Testbed::open(&config(1, LinkSpec::default()), options(&sandbox)) {
        Ok(_) => {}
        Err(EmuError::NoTun(e)) => {
            println!("skipped: no TUN device: {e}");
            return ExitCode::SUCCESS;
        }
        Err(e) => panic!("{e}"),
    }
    let wanted = std::env::args().nth(1);
    for (name, test) in TESTS {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            test(&sandbox);
            println!("{name}: ok");
        }
    }
    ExitCode::SUCCESS
}

type Test = fn(&Sandbox);

const TESTS: &[(&str, Test)] = &[
    ("ping_takes_the_path_and_not_less", ping_takes_the_path_and_not_less),
    ("kernel_tcp_comes_through_whole", kernel_tcp_comes_through_whole),
];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// `flows` real flows, the same link each way.
fn config(flows: usize, link: LinkSpec) -> SimConfig {
    let flow =
        |i| FlowConfig { packet_size: Bytes::new(1_500), ..FlowConfig::new(format!("flow{i}"), Protocol::External) };
    SimConfig { bottleneck: link.clone(), reverse: link, flows: (0..flows).map(flow).collect(), ..SimConfig::default() }
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
        if pair.sender.is_ipv6() && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
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
        if six && !std::path::Path::new("/proc/sys/net/ipv6").exists() {
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
