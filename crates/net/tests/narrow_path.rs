//! A next hop that carries less than this machine's device does, behind the kernel's own router, in networks of the test's own.
//! Skips, with the reason, without root.

mod common;

use common::{ip, network, run_beside};
use fairpace_control::FlowCounters;
use fairpace_media::ConstantSource;
use fairpace_net::Clock;
use fairpace_net::receive::{ReceiveConfig, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd, SendObserver, SendReport, SendSample};
use fairpace_rtp::SenderEvent;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;

const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 2);

/// A new network, in which this thread is from now on.
fn new_network() -> Option<File> {
    network()?;
    Some(File::open("/proc/thread-self/ns/net").expect("/proc"))
}

fn enter(network: &File) {
    setns(network, CloneFlags::CLONE_NEWNET).expect("it was made by this thread");
}

/// Sender, router and receiver in a row; the networks end with the files and the threads. The devices of the first hop carry 1,500 B, those of
/// the second `mtu`.
fn in_a_row(mtu: u32) -> Option<[File; 3]> {
    let [sender, receiver, router] = [new_network()?, new_network()?, new_network()?];
    let path = |network: &File| format!("/proc/{}/fd/{}", std::process::id(), network.as_raw_fd());
    ip(&format!("link add left type veth peer name out netns {}", path(&sender)));
    ip(&format!("link add right mtu {mtu} type veth peer name in mtu {mtu} netns {}", path(&receiver)));
    for (address, device) in [("10.9.1.1/24", "left"), ("10.9.2.1/24", "right")] {
        ip(&format!("address add {address} dev {device}"));
        ip(&format!("link set {device} up"));
    }
    if let Err(e) = std::fs::write("/proc/sys/net/ipv4/ip_forward", "1") {
        println!("skipped: the kernel may not be made a router here: {e}");
        return None;
    }
    for (network, address, device, gateway) in
        [(&sender, "10.9.1.2/24", "out", "10.9.1.1"), (&receiver, "10.9.2.2/24", "in", "10.9.2.1")]
    {
        enter(network);
        ip(&format!("address add {address} dev {device}"));
        ip(&format!("link set {device} up"));
        ip(&format!("route add default via {gateway}"));
    }
    Some([sender, router, receiver])
}

/// When the sender told of another size, and what had become of its packets by then.
#[derive(Default)]
struct Told {
    size: Option<(Instant, Bytes)>,
    then: Option<FlowCounters>,
}

impl SendObserver for Told {
    fn on_event(&mut self, now: Instant, event: &SenderEvent) {
        if let SenderEvent::PacketSize(size) = event {
            self.size = Some((now, *size));
        }
    }

    fn on_sample(&mut self, sample: &SendSample) {
        if self.size.is_some() {
            self.then.get_or_insert(sample.flow);
        }
    }
}

fn over(networks: &[File; 3], scheme: &str, duration: Duration) -> (SendReport, Told) {
    let [sender, _, receiver] = networks;
    let clock = Clock::start();
    enter(receiver);
    let receiver = Receiver::open(ReceiveConfig::new(0), clock).unwrap();
    let mut config = SendConfig::new(SocketAddr::from((RECEIVER, receiver.address().unwrap().port())));
    config.scheme = scheme.to_owned();
    if scheme == "fixed" {
        config.settings.insert("rate".to_owned(), "2 Mbit/s".to_owned());
    }
    config.max_rate = Rate::mbps(2.0);
    config.duration = Some(duration);
    enter(sender);
    let (mut source, mut told) = (ConstantSource::new(Rate::mbps(1.0), Duration::from_millis(20)), Told::default());
    let (sent, _) = run_beside(receiver, |stop| send::run(&config, clock, &mut source, &mut told, stop)).unwrap();
    (sent, told)
}

/// The size was found in time, and what left afterwards arrived.
fn assert_found(sent: &SendReport, told: &Told, within: f64, sizes: RangeInclusive<u64>) {
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    let (at, size) = told.size.expect("a size is found");
    assert!(sizes.contains(&size.get()) && sent.packet_size == size, "{size}, {}", sent.packet_size);
    assert!(at < Instant::from_secs_f64(within), "found at {at}");
    let then = told.then.expect("a sample afterwards").data;
    let (left, arrived) = (sent.flow.data.sent - then.sent, sent.flow.data.acked - then.acked);
    assert!(left > 300 && arrived * 10 > left * 9, "{arrived} of {left} packets");
}

/// A veth hands a batch to the router as one packet.
#[test]
fn a_kernel_router_before_a_narrow_hop_drops_no_answer_to_the_question_of_the_size() {
    let Some(networks) = in_a_row(700) else { return };
    let (sent, told) = over(&networks, "fixed", Duration::from_secs(8));
    assert!(sent.socket.hints > 0, "the router has said what it carries: {:?}", sent.socket);
    assert_found(&sent, &told, 5.0, 700..=700);
}

#[test]
fn a_kernel_router_before_a_narrow_hop_need_not_say_what_it_carries() {
    let Some(networks) = in_a_row(700) else { return };
    let [_, router, _] = &networks;
    enter(router);
    ip("rule add iif lo ipproto icmp blackhole");
    let (sent, told) = over(&networks, "auto", Duration::from_secs(12));
    assert_eq!(sent.socket.hints, 0, "the router says nothing");
    assert_found(&sent, &told, 9.0, 668..=700);
}
