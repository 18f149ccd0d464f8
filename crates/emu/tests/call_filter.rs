//! The filters of system calls, tried for real: each in a process of its own, which is this test program once more.

#![allow(clippy::disallowed_methods, reason = "what a filter does to files, programs and clocks is what is tested")]

use fairpace_emu::{CallFilter, EmuError};
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output};
use std::time::Duration;

/// Runs that helper of this file alone.
fn helper(name: &str) -> Output {
    let args = ["--ignored", "--exact", name, "--nocapture", "--test-threads", "1"];
    Command::new(std::env::current_exe().unwrap()).args(args).output().unwrap()
}

/// The helper's words on each of its tries, as `NAME: RESULT`.
fn tries(name: &str) -> Vec<String> {
    let output = helper(name);
    let text = String::from_utf8(output.stdout).unwrap();
    if let Some(why) = text.lines().find_map(|line| line.strip_prefix("no filter: ")) {
        assert!(CallFilter::supported().is_err(), "{why}");
        println!("skipped: {why}");
        return Vec::new();
    }
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter(|line| line.starts_with("try ")).map(|line| line["try ".len()..].to_owned()).collect()
}

fn say<T>(name: &str, result: io::Result<T>) {
    match result {
        Ok(_) => println!("\ntry {name}: done"),
        Err(e) => println!("\ntry {name}: {}", Errno::from_raw(e.raw_os_error().unwrap_or(0))),
    }
}

fn apply(filter: CallFilter) -> bool {
    match filter.apply() {
        Ok(()) => true,
        Err(EmuError::NoCallFilter(e)) => {
            println!("\nno filter: {e}");
            false
        }
        Err(e) => panic!("{e}"),
    }
}

fn program() -> io::Result<std::process::ExitStatus> {
    Command::new("/bin/true").status()
}

#[test]
#[ignore = "cannot be undone: a process of its own runs this"]
fn helper_packets() {
    let folder = tempfile();
    let mut file = File::create(&folder).unwrap();
    let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    one.connect(other.local_addr().unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // A thread that was there before is bound too.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let before = std::thread::spawn(move || wait.recv().map(|()| UdpSocket::bind("127.0.0.1:0")));
    if !apply(CallFilter::Packets) {
        return;
    }
    // The loops' own calls.
    say("write", file.write_all(b"frame").and_then(|()| file.sync_all()));
    say("datagram", one.send(b"packet").and_then(|_| other.recv(&mut [0; 16])));
    say(
        "accept",
        listener.accept().and_then(|(mut served, _)| {
            client.write_all(b"x")?;
            served.set_nodelay(true)?;
            served.read_exact(&mut [0])
        }),
    );
    std::thread::sleep(Duration::from_millis(1));
    say("thread", std::thread::Builder::new().name("new".into()).spawn(|| vec![1_u8; 1 << 22].len()).map(|t| t.join()));
    // Calls that neither makes.
    say("program", program());
    say("read a file", File::open("/proc/self/status"));
    say("make a file", File::create(folder.with_extension("2")));
    say("remove a file", std::fs::remove_file(&folder));
    say("socket", UdpSocket::bind("127.0.0.1:0"));
    say("unix socket", UnixStream::pair());
    say("socket on a thread", go.send(()).map(|()| before.join().unwrap().unwrap()).unwrap());
    say("namespace", unshare(CloneFlags::CLONE_NEWUSER).map_err(Into::into));
    say("signal", nix::sys::signal::kill(nix::unistd::getppid(), None).map_err(Into::into));
    say("another process", nix::sys::uio::process_vm_readv(nix::unistd::getppid(), &mut [], &[]).map_err(Into::into));
}

fn tempfile() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("call-filter-{}", std::process::id()))
}

#[test]
fn the_list_for_packets_allows_the_loops_and_refuses_the_rest() {
    let tries = tries("helper_packets");
    let [allowed, refused] = [&tries[..tries.len().min(4)], &tries[tries.len().min(4)..]];
    assert!(allowed.iter().all(|line| line.ends_with(": done")), "{tries:?}");
    assert!(refused.iter().all(|line| line.ends_with(": ENOSYS: Function not implemented")), "{tries:?}");
    assert!(tries.is_empty() || refused.len() == 10, "{tries:?}");
}

#[test]
#[ignore = "cannot be undone: a process of its own runs this"]
fn helper_plugins() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let before = std::thread::spawn(move || wait.recv().map(|()| program()));
    if !apply(CallFilter::Plugins) {
        return;
    }
    // The plugins' calls.
    say("thread", std::thread::Builder::new().spawn(|| 1).map(|t| t.join()));
    say("file", File::open("/proc/self/status"));
    say("socket", UdpSocket::bind("127.0.0.1:0"));
    say("unix socket", UnixStream::pair());
    // How a libc lists the machine's addresses.
    say("netlink socket", Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, None));
    // Calls that neither makes.
    say("program", program());
    say("program on a thread", go.send(()).map(|()| before.join().unwrap().unwrap()).unwrap());
    say("raw socket", Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)));
    say("raw socket of IPv6", Socket::new(Domain::IPV6, Type::RAW.nonblocking(), Some(Protocol::ICMPV6)));
    say("packet socket", Socket::new(Domain::PACKET, Type::DGRAM, None));
    say("namespace", unshare(CloneFlags::CLONE_NEWUSER).map_err(Into::into));
    say("another process", nix::sys::uio::process_vm_readv(nix::unistd::getppid(), &mut [], &[]).map_err(Into::into));
    let none = None::<&str>;
    say("mount", nix::mount::mount(none, "/", none, nix::mount::MsFlags::MS_PRIVATE, none).map_err(Into::into));
    say("chroot", nix::unistd::chroot("/").map_err(Into::into));
}

#[test]
fn the_list_for_plugins_refuses_what_no_decoder_needs() {
    let tries = tries("helper_plugins");
    let [allowed, refused] = [&tries[..tries.len().min(5)], &tries[tries.len().min(5)..]];
    assert!(allowed.iter().all(|line| line.ends_with(": done")), "{tries:?}");
    assert!(refused.iter().all(|line| line.ends_with(": EPERM: Operation not permitted")), "{tries:?}");
    assert!(tries.is_empty() || refused.len() == 9, "{tries:?}");
}

/// To ask leaves no trace: this process goes on starting programs.
#[test]
fn whether_there_are_filters_is_asked_without_one() {
    println!("{:?}", CallFilter::supported());
    assert!(program().unwrap().success());
}

/// Calls by their numbers in the x32 ABI: none does anything but make a socket if let through.
#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "cannot be undone: a process of its own runs this"]
#[allow(unsafe_code, reason = "no library makes calls of another ABI")]
fn helper_x32() {
    const X32: i64 = 0x4000_0000;
    /// The one call with an x32 number of its own.
    const X32_IOCTL: i64 = 514;
    if !apply(CallFilter::Plugins) {
        return;
    }
    let call = |name: &str, number: i64, [one, two, three]: [i64; 3]| {
        // SAFETY: no argument is an address. The kernel finds a fault with the arguments of each call that gets to it, or makes a socket.
        let done = unsafe { libc::syscall(number | X32, one, two, three, 0_i64, 0_i64) };
        say(name, if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) });
    };
    // A namespace of users beside a shared file system: the kernel makes no such thing.
    let flags = [i64::from(libc::CLONE_NEWUSER | libc::CLONE_FS), 0, 0];
    call("clone", libc::SYS_clone, flags);
    call("clone3", libc::SYS_clone3, [0; 3]);
    call("unshare", libc::SYS_unshare, flags);
    call("socket", libc::SYS_socket, [libc::AF_INET.into(), libc::SOCK_RAW.into(), libc::IPPROTO_ICMP.into()]);
    for number in [libc::SYS_ioctl, X32_IOCTL] {
        call("ioctl", number, [-1, libc::TIOCSTI as i64, 0]);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_list_for_plugins_refuses_the_same_calls_by_their_x32_numbers() {
    let tries = tries("helper_x32");
    assert!(tries.is_empty() || tries.len() == 6, "{tries:?}");
    assert!(tries.iter().all(|line| line.ends_with(": EPERM: Operation not permitted")), "{tries:?}");
}
