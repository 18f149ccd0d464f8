//! Namespaces of our own, tried for real. One process with one thread at its start, which the kernel demands:
//! no test harness. Skips, with the reason, where the system gives no namespaces.

mod common;

use fairpace_emu::process::{Inside, Program, arguments, init};
use fairpace_emu::{EmuError, NetNs, RealTimeLock, Rights, Sandbox, drop_privileges, privileged_threads, spawn_first};
use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(arguments) = arguments() {
        return init(&arguments).into();
    }
    let allowed = may_have_real_time_priority();
    let outside = NetNs::current("host").expect("/proc is there");
    // The traces that a joined thread leaves for a moment do not count as a thread.
    let last = std::thread::spawn(|| std::thread::park_timeout(Duration::from_millis(50)));
    let Some(sandbox) = common::sandbox() else { return ExitCode::SUCCESS };
    last.join().expect("no panic");
    // The lock is one of a network: a run inside a sandbox is let through.
    drop(RealTimeLock::acquire().expect("free in here"));
    each_namespace_is_another(&outside, &sandbox);
    sysctls_are_of_one_namespace(&sandbox);
    a_socket_stays_where_it_was_opened(&sandbox);
    devices_are_made_inside(&sandbox);
    real_time_priority_is_had_where_it_is_allowed(&sandbox, allowed);
    privileges_go_on_every_thread(&sandbox);
    println!("ok");
    ExitCode::SUCCESS
}

fn each_namespace_is_another(outside: &NetNs, sandbox: &Sandbox) {
    let inner = sandbox.namespace("inner").expect("may be made");
    let mut inodes = vec![outside.inode(), sandbox.outer().inode(), inner.inode()];
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), 3);
    assert_eq!(NetNs::current("here").expect("/proc").inode(), sandbox.outer().inode());
    let seen = inner.run(|| NetNs::current("there").expect("/proc").inode()).expect("may be entered");
    assert_eq!(seen, inner.inode());
    // Nothing but the loopback device, which works at once over both families.
    let devices = inner.run(|| fs::read_to_string("/proc/thread-self/net/dev").expect("/proc")).expect("entered");
    assert_eq!(devices.lines().skip(2).count(), 1, "{devices}");
    for address in ["127.0.0.1:0", "[::1]:0"] {
        inner.run(|| loopback(address)).expect("entered");
    }
}

fn loopback(address: &str) {
    let receiver = match UdpSocket::bind(address) {
        Ok(socket) => socket,
        Err(e) if address.starts_with('[') => return println!("no IPv6 here: {e}"),
        Err(e) => panic!("{e}"),
    };
    let sender = UdpSocket::bind(address).expect("a port is free");
    sender.send_to(b"to myself", receiver.local_addr().expect("bound")).expect("the device is up");
    let mut buffer = [0; 16];
    assert_eq!(receiver.recv(&mut buffer).expect("it arrives"), 9);
}

fn sysctls_are_of_one_namespace(sandbox: &Sandbox) {
    const ALGORITHM: &str = "net.ipv4.tcp_congestion_control";
    const IDLE: &str = "net.ipv4.tcp_slow_start_after_idle";
    let (one, other) = (sandbox.namespace("one").expect("made"), sandbox.namespace("other").expect("made"));
    // Whatever the host's default is.
    assert_eq!(one.sysctl(ALGORITHM).expect("there is one"), "reno");
    one.set_sysctl(IDLE, "0").expect("ours to set");
    assert_eq!(one.sysctl(IDLE).expect("there is one"), "0");
    assert_eq!(other.sysctl(IDLE).expect("there is one"), "1");
    // The host's may be a router's.
    for namespace in [sandbox.outer(), &one] {
        for key in ["net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter"] {
            assert_eq!(namespace.sysctl(key).expect("there is one"), "0", "{key}");
        }
    }
    match one.set_sysctl("net.ipv4.no_such", "1") {
        Err(EmuError::Io { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::NotFound),
        other => panic!("{other:?}"),
    }
}

fn a_socket_stays_where_it_was_opened(sandbox: &Sandbox) {
    let inner = sandbox.namespace("inner").expect("made");
    let there = inner.run(|| TcpListener::bind("127.0.0.1:0")).expect("entered").expect("bound");
    let address = there.local_addr().expect("bound");
    // Out here that port is another machine's.
    assert!(std::net::TcpStream::connect(address).is_err());
    let client = inner.run(|| std::net::TcpStream::connect(address)).expect("entered").expect("listens there");
    let (_served, peer) = there.accept().expect("from here, over there");
    assert_eq!(peer, client.local_addr().expect("connected"));
}

fn devices_are_made_inside(sandbox: &Sandbox) {
    if let Err(e) = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return println!("no device is tried: /dev/net/tun: {e}");
    }
    let inner = sandbox.namespace("inner").expect("made");
    let device = inner
        .run(|| {
            let device = tun_rs::DeviceBuilder::new().name("ours").ipv4("10.77.0.1", 24, None).build_sync();
            assert!(fs::read_to_string("/proc/thread-self/net/dev").expect("/proc").contains("ours:"));
            fairpace_emu::netlink::route([0, 0, 0, 0].into(), 0, "ours", None).expect("a default route");
            let routes = fs::read_to_string("/proc/thread-self/net/route").expect("/proc");
            assert!(routes.lines().any(|l| l.starts_with("ours\t00000000\t")), "{routes}");
            device
        })
        .expect("entered")
        .expect("made");
    assert!(!fs::read_to_string("/proc/thread-self/net/dev").expect("/proc").contains("ours:"));
    drop(device);
    let left = inner.run(|| fs::read_to_string("/proc/thread-self/net/dev")).expect("entered").expect("/proc");
    assert!(!left.contains("ours:"), "{left}");
}

/// Last: this thread's go too.
#[allow(clippy::disallowed_methods)] // a test waits
fn privileges_go_on_every_thread(sandbox: &Sandbox) {
    let inner = sandbox.namespace("inner").expect("made");
    let door = inner.door(Rights::Dropped).expect("made");
    let (go_on, until) = mpsc::channel::<()>();
    let (go_on_too, until_too) = mpsc::channel::<()>();
    let without = inner.spawn("without", Rights::Dropped, move || until.recv().is_ok()).expect("started");
    let with = inner
        .spawn("with", Rights::Kept, move || {
            until_too.recv().expect("told");
            drop_privileges().expect("may always be dropped");
            NetNs::current("with").expect("/proc").inode()
        })
        .expect("started");
    // A thread takes its name, and drops its privileges, in its own first moments.
    let mut named = Vec::new();
    for _ in 0..500 {
        named = privileged_threads().expect("/proc");
        if named.iter().any(|n| n == "with") && !named.iter().any(|n| n == "without" || n == "inner") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(named.iter().any(|n| n == "with"), "{named:?}");
    assert!(!named.iter().any(|n| n == "without" || n == "inner"), "{named:?}");
    go_on_too.send(()).expect("it listens");
    assert_eq!(with.join().expect("no panic"), inner.inode());
    drop_privileges().expect("may always be dropped");
    assert_eq!(privileged_threads().expect("/proc"), Vec::<String>::new());
    let status = fs::read_to_string("/proc/thread-self/status").expect("/proc");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    // And do not come back.
    assert!(matches!(inner.run(|| ()), Err(EmuError::Denied { .. })));
    assert!(matches!(sandbox.namespace("more"), Err(EmuError::Denied { .. })));
    // But for the door that was left open, through which one may do what takes no right.
    assert_eq!(door.run(|| NetNs::current("there").expect("/proc").inode()).expect("it is there"), inner.inode());
    assert!(door.run(|| fairpace_emu::netlink::up("lo")).expect("it is there").is_err());
    go_on.send(()).expect("it listens");
    assert!(without.join().expect("no panic"));
}

/// Whoever may have it has it on the thread that asks for it, and nowhere else.
fn real_time_priority_is_had_where_it_is_allowed(sandbox: &Sandbox, allowed: bool) {
    // SCHED_OTHER, but for one who has started this as a batch or idle process.
    let usual = policy();
    let first = spawn_first("first", policy).expect("started").join().expect("no panic");
    // A container may forbid even settings that are allowed elsewhere.
    assert!(first == usual || allowed && first == "1", "{first:?}, {allowed}");
    println!("real-time priority: allowed {allowed}, policy {}", first);
    assert_eq!(policy(), usual);
    assert_eq!(std::thread::spawn(policy).join().expect("no panic"), usual);
    let command = ["awk", "{ exit $41 }", "/proc/self/stat"].map(Into::into).to_vec();
    let program = Program { command, background: true, ..Program::default() };
    let inside = Inside::start(sandbox.outer(), program).expect("may be started");
    assert_eq!(inside.wait(Duration::from_secs(20)).expect("it ends"), usual.parse().ok());
}

/// This thread's: 0 is SCHED_OTHER, 1 SCHED_FIFO, 3 SCHED_BATCH, 5 SCHED_IDLE.
fn policy() -> String {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("/proc");
    // Field 41 of proc(5); the second is a name, and the third is the first behind it.
    stat.rsplit(") ").next().expect("a line").split(' ').nth(38).expect("Linux has it").to_owned()
}

/// With CAP_SYS_NICE over the host (bit 23), or a limit.
fn may_have_real_time_priority() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let caps = status.lines().find_map(|l| l.strip_prefix("CapEff:")).expect("Linux has it").trim();
    let caps = u64::from_str_radix(caps, 16).expect("hexadecimal");
    caps >> 23 & 1 == 1 || getrlimit(Resource::RLIMIT_RTPRIO).expect("every process has limits").0 > 0
}
