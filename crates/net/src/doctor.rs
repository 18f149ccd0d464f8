//! The abilities of this machine, as data: each fact with the finding and, where it falls short, the remedy. Nothing
//! is changed, nothing leaves the machine.

use crate::pacing::{self, PacingComparison};
use crate::{
    Buffers, Clock, DatagramIo, Family, Mark, NetError, RecvOutcome, SendOutcome, SocketCounters, UdpSocket, Waiter,
};
use fairpace_units::{Bytes, Dscp, Duration, Ecn};
use nix::time::ClockId;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};

/// How good a fact is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Health {
    /// As it should be.
    Ok,
    /// Works, with less accuracy or without a feature.
    Limited,
    /// Something that Fairpace needs does not work.
    Broken,
}

/// One thing about this machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Fact {
    /// A stable name for machines: `dscp_ipv4`.
    pub id: &'static str,
    /// The same for people: `DSCP and ECN over IPv4`.
    pub title: &'static str,
    /// How good it is.
    pub health: Health,
    /// The finding, in one line.
    pub found: String,
    /// The remedy; `None` if nothing needs doing.
    pub remedy: Option<String>,
    /// Its numbers, each with its unit in the name.
    pub numbers: Vec<(&'static str, f64)>,
}

/// The subjects of the examination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoctorConfig {
    /// How long to measure each pacing method at each rate; zero leaves the timers out.
    pub pacing: Duration,
}

impl Default for DoctorConfig {
    /// 2 s per method and rate: 8 s in all.
    fn default() -> Self {
        DoctorConfig { pacing: Duration::from_secs(2) }
    }
}

/// Examines the machine; `progress` is told what comes next.
pub fn examine(config: DoctorConfig, mut progress: impl FnMut(&str)) -> Vec<Fact> {
    let mut facts = Vec::new();
    progress("kernel");
    facts.push(kernel());
    facts.push(monotonic_clock());
    progress("privileges");
    facts.push(tun());
    facts.push(namespaces());
    progress("TCP");
    facts.push(tcp_algorithms());
    progress("sockets");
    facts.push(marks("dscp_ipv4", "DSCP and ECN over IPv4", Ipv4Addr::LOCALHOST.into()));
    facts.push(marks("dscp_ipv6", "DSCP and ECN over IPv6", Ipv6Addr::LOCALHOST.into()));
    facts.push(buffers());
    facts.push(batches());
    if !config.pacing.is_zero() {
        for (pps, id, title) in
            [(1_000, "pacing_1k", "Pacing at 1,000 packets/s"), (10_000, "pacing_10k", "Pacing at 10,000 packets/s")]
        {
            progress(title);
            facts.push(pacing(pps, id, title, config.pacing));
        }
    }
    facts
}

fn ok(id: &'static str, title: &'static str, found: String) -> Fact {
    Fact { id, title, health: Health::Ok, found, remedy: None, numbers: Vec::new() }
}

fn short(id: &'static str, title: &'static str, health: Health, found: String, remedy: &str) -> Fact {
    Fact { id, title, health, found, remedy: Some(remedy.to_owned()), numbers: Vec::new() }
}

fn broken(id: &'static str, title: &'static str, e: &NetError) -> Fact {
    let remedy = e.hint().unwrap_or_else(|| "see the message; a container may need more rights".to_owned());
    Fact { id, title, health: Health::Broken, found: e.to_string(), remedy: Some(remedy), numbers: Vec::new() }
}

fn kernel() -> Fact {
    const ID: &str = "kernel";
    const TITLE: &str = "Kernel";
    let Ok(u) = nix::sys::utsname::uname() else {
        return short(ID, TITLE, Health::Limited, "unknown".to_owned(), "Fairpace's sockets are made for Linux");
    };
    let (system, release) = (u.sysname().to_string_lossy(), u.release().to_string_lossy());
    let found = format!("{system} {release}");
    // UDP segmentation offload came with Linux 4.18.
    if system == "Linux" && at_least(&release, 4, 18) {
        ok(ID, TITLE, found)
    } else {
        short(ID, TITLE, Health::Limited, found, "Linux 4.18 or newer has all that the sockets use")
    }
}

/// Whether a kernel release, `6.18.44-x`, is at least `major.minor`.
fn at_least(release: &str, major: u32, minor: u32) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
}

fn monotonic_clock() -> Fact {
    const ID: &str = "clock";
    const TITLE: &str = "Monotonic clock";
    let resolution = ClockId::CLOCK_MONOTONIC.res().map(Duration::from);
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.unwrap_or_else(|| "unknown source".to_owned());
    match resolution {
        Ok(r) if r <= Duration::from_micros(1) => {
            let mut fact = ok(ID, TITLE, format!("{} ns, {source}", r.as_nanos()));
            fact.numbers.push(("resolution_ns", r.as_nanos() as f64));
            fact
        }
        Ok(r) => short(
            ID,
            TITLE,
            Health::Limited,
            format!("{} us, {source}", r.as_micros()),
            "the kernel has no high-resolution timers (`CONFIG_HIGH_RES_TIMERS`); pacing will be coarse",
        ),
        Err(e) => short(ID, TITLE, Health::Broken, e.to_string(), "the system call filter forbids `clock_getres`"),
    }
}

fn tun() -> Fact {
    const ID: &str = "tun";
    const TITLE: &str = "TUN devices";
    let error = match fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => return ok(ID, TITLE, "/dev/net/tun opens".to_owned()),
        Err(e) => e,
    };
    let remedy = if error.kind() == std::io::ErrorKind::PermissionDenied {
        "`sudo chmod 0666 /dev/net/tun` (its usual mode: devices can be made in one's own namespaces only), or run as \
         root. Only emulation (`shell`, `run --world emu`) needs it: `relay` does not"
    } else {
        "`sudo modprobe tun`; in a container, `--device /dev/net/tun`. Only emulation (`shell`, `run --world emu`) \
         needs it: `relay` does not"
    };
    short(ID, TITLE, Health::Limited, format!("/dev/net/tun: {error}"), remedy)
}

fn namespaces() -> Fact {
    const ID: &str = "namespaces";
    const TITLE: &str = "User and network namespaces";
    const AS_NOBODY: [&str; 6] = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare"];
    // A namespace can only be tried by a process with one thread: util-linux's own.
    let tried = |program: &str, before: &[&str]| {
        Command::new(program)
            .args(before)
            .args(["--user", "--map-root-user", "--net", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    };
    let root = nix::unistd::geteuid().is_root();
    // Root may where others may not.
    let others = || tried("setpriv", &AS_NOBODY).is_ok_and(|status| status.success());
    match tried("unshare", &[]) {
        Ok(status) if status.success() && !root => ok(ID, TITLE, "may be made without root".to_owned()),
        Ok(status) if status.success() && others() => ok(ID, TITLE, "may be made, by every user".to_owned()),
        Ok(status) if status.success() => ok(ID, TITLE, "may be made, by root".to_owned()),
        Ok(_) => short(
            ID,
            TITLE,
            Health::Limited,
            format!(
                "refused (user.max_user_namespaces is {})",
                read("/proc/sys/user/max_user_namespaces").unwrap_or_else(|| "unknown".to_owned())
            ),
            "`sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`, on Ubuntu also \
             `kernel.apparmor_restrict_unprivileged_userns=0`; in a container, `--privileged`. Only emulation (`shell`, \
             `run --world emu`) needs them: `relay` does not",
        ),
        Err(e) => short(
            ID,
            TITLE,
            Health::Limited,
            format!("cannot be tried: `unshare`: {e}"),
            "install util-linux. Only emulation needs namespaces: `relay` does not",
        ),
    }
}

fn tcp_algorithms() -> Fact {
    const ID: &str = "tcp";
    const TITLE: &str = "TCP algorithms of the kernel";
    let available = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let default = read("/proc/sys/net/ipv4/tcp_congestion_control");
    let (Some(available), Some(default)) = (available, default) else {
        return short(
            ID,
            TITLE,
            Health::Limited,
            "unknown: /proc/sys/net is not readable".to_owned(),
            "mount /proc; only runs beside the kernel's own TCP need this",
        );
    };
    let allowed = read("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_else(|| "unknown".to_owned());
    // The emulator has that right in its own namespaces.
    let found = format!("default {default}; available {available}; without CAP_NET_ADMIN {allowed}");
    let missing: Vec<String> = ["reno", "cubic"]
        .into_iter()
        .filter(|a| !available.split_whitespace().any(|b| b == *a))
        .map(|a| format!("tcp_{a}"))
        .collect();
    if missing.is_empty() {
        ok(ID, TITLE, found)
    } else {
        short(ID, TITLE, Health::Limited, found, &format!("`sudo modprobe -a {}`", missing.join(" ")))
    }
}

/// A connected pair over loopback.
struct Loop {
    clock: Clock,
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Loop {
    fn new(address: IpAddr) -> Result<Loop, NetError> {
        let clock = Clock::start();
        let receiver = UdpSocket::bind(SocketAddr::new(address, 0), true, Buffers::default(), clock)?;
        let sender = UdpSocket::connect(receiver.local_address()?, Buffers::default(), clock)?;
        Ok(Loop { clock, sender, receiver })
    }

    /// The mark and length of the next datagram, or `None` after half a second.
    fn receive(&mut self) -> Result<Option<(Mark, usize)>, NetError> {
        let mut waiter = Waiter::new(self.clock)?;
        let until = self.clock.now() + Duration::from_millis(500);
        let mut buffer = [0; 2_048];
        loop {
            if let RecvOutcome::Packet(p) = self.receiver.recv(&mut buffer) {
                return Ok(Some((p.mark, p.len)));
            }
            if self.clock.now() >= until {
                return Ok(None);
            }
            waiter.wait(until, &[self.receiver.descriptor()])?;
        }
    }
}

fn marks(id: &'static str, title: &'static str, address: IpAddr) -> Fact {
    let mut pair = match Loop::new(address) {
        Ok(pair) => pair,
        Err(e) if address.is_ipv6() => {
            let remedy = "the machine has no IPv6: `sudo sysctl net.ipv6.conf.lo.disable_ipv6=0`, or use IPv4";
            return short(id, title, Health::Limited, e.to_string(), remedy);
        }
        Err(e) => return broken(id, title, &e),
    };
    let sent = [
        Mark { dscp: Dscp::LE, ecn: Ecn::NotEct },
        Mark { dscp: Dscp::DEFAULT, ecn: Ecn::Ect0 },
        Mark { dscp: Dscp::new(34), ecn: Ecn::Ect1 },
    ];
    for mark in sent {
        let outcome = pair.sender.send(None, b"doctor", mark);
        if outcome != SendOutcome::Sent {
            let remedy = "a firewall rule or a system call filter of this machine forbids it";
            return short(id, title, Health::Broken, format!("not sent: {outcome:?}"), remedy);
        }
        match pair.receive() {
            Ok(Some((got, _))) if got == mark => {}
            Ok(got) => {
                let found = format!("sent {mark:?}, received {:?}", got.map(|(m, _)| m));
                let remedy = "a rule of this machine rewrites the mark: `nft list ruleset` or `iptables -t mangle -S`";
                return short(id, title, Health::Broken, found, remedy);
            }
            Err(e) => return broken(id, title, &e),
        }
    }
    ok(id, title, "set per packet and received unchanged".to_owned())
}

fn buffers() -> Fact {
    const ID: &str = "buffers";
    const TITLE: &str = "Socket buffers";
    let granted = match UdpSocket::listen(0, Family::Any, Buffers::default(), Clock::start()) {
        Ok(socket) => socket.buffers(),
        Err(e) => return broken(ID, TITLE, &e),
    };
    let kib = |b: Bytes| b.get() / 1_024;
    let (got, asked) = (granted.granted, granted.asked);
    let found = format!(
        "receive {} of {} KiB, send {} of {} KiB granted",
        kib(got.receive),
        kib(asked.receive),
        kib(got.send),
        kib(asked.send)
    );
    let mut fact = if granted.in_full() {
        ok(ID, TITLE, found)
    } else {
        let remedy = format!(
            "`sudo sysctl net.core.rmem_max={} net.core.wmem_max={}`; until then fast senders may lose packets in \
             this machine's own kernel (they are counted apart)",
            asked.receive.get(),
            asked.send.get()
        );
        short(ID, TITLE, Health::Limited, found, &remedy)
    };
    fact.numbers = vec![
        ("receive_asked_bytes", asked.receive.as_f64()),
        ("receive_granted_bytes", got.receive.as_f64()),
        ("send_asked_bytes", asked.send.as_f64()),
        ("send_granted_bytes", got.send.as_f64()),
    ];
    fact
}

fn batches() -> Fact {
    const ID: &str = "gso";
    const TITLE: &str = "Batches (UDP GSO)";
    let mut pair = match Loop::new(Ipv4Addr::LOCALHOST.into()) {
        Ok(pair) => pair,
        Err(e) => return broken(ID, TITLE, &e),
    };
    let (sent, outcome) = pair.sender.send_batch(None, &[0; 3_600], 1_200, Mark { dscp: Dscp::LE, ecn: Ecn::NotEct });
    let arrived = (0..3).filter(|_| matches!(pair.receive(), Ok(Some((_, 1_200))))).count();
    let counters: SocketCounters = pair.sender.counters();
    if sent == 3 && arrived == 3 && counters.batched == 3 {
        return ok(ID, TITLE, "three packets in one call, received as three".to_owned());
    }
    short(
        ID,
        TITLE,
        Health::Limited,
        format!("{sent} of 3 sent ({outcome:?}), {arrived} received, {} in a batch", counters.batched),
        "packets leave one by one instead, which costs CPU above 100 Mbit/s; Linux 4.18 or newer has it",
    )
}

/// Half again the goal of 1.25: a two-second measurement on a busy machine strays that far.
const PACING_RATIO_LIMIT: f64 = 1.9;
/// Later than this at the median, and no timer of this machine deserves trust at 1,000 packets/s.
const PACING_P50_LIMIT: Duration = Duration::from_millis(1);

fn pacing(pps: u32, id: &'static str, title: &'static str, each: Duration) -> Fact {
    let c = match pacing::compare(pps, each, (each / 20).max(Duration::from_millis(10))) {
        Ok(c) => c,
        Err(e) => return broken(id, title, &e),
    };
    let PacingComparison { ours, bare, ours_cpu, bare_cpu, .. } = c;
    let us = |d: Duration| d.as_secs_f64() * 1e6;
    let found = format!(
        "late by p50 {:.0} us, p99 {:.0} us; bare clock_nanosleep {:.0} / {:.0} us; ratio {:.2} / {:.2}",
        us(ours.p50),
        us(ours.p99),
        us(bare.p50),
        us(bare.p99),
        c.p50_ratio(),
        c.p99_ratio()
    );
    let mut fact = if ours.p50 > PACING_P50_LIMIT {
        let remedy = "the machine is overloaded or has no high-resolution timers: stop other work, or `chrt -f 10`";
        short(id, title, Health::Limited, found, remedy)
    } else if c.p50_ratio() > PACING_RATIO_LIMIT {
        let remedy = "ours should be as punctual as the bare loop: stop other work and run it again";
        short(id, title, Health::Limited, found, remedy)
    } else {
        ok(id, title, found)
    };
    fact.numbers = vec![
        ("ours_p50_us", us(ours.p50)),
        ("ours_p99_us", us(ours.p99)),
        ("ours_p999_us", us(ours.p999)),
        ("bare_p50_us", us(bare.p50)),
        ("bare_p99_us", us(bare.p99)),
        ("bare_p999_us", us(bare.p999)),
        ("p50_ratio", c.p50_ratio()),
        ("p99_ratio", c.p99_ratio()),
        ("ours_cpu_ratio", ours_cpu),
        ("bare_cpu_ratio", bare_cpu),
    ];
    fact
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|s| s.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_named_once_and_a_shortcoming_has_a_remedy() {
        let facts = examine(DoctorConfig { pacing: Duration::from_millis(40) }, |_| {});
        let mut ids: Vec<_> = facts.iter().map(|f| f.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), facts.len());
        for f in &facts {
            assert_eq!(f.remedy.is_some(), f.health != Health::Ok, "{f:?}");
            assert!(!f.found.is_empty() && !f.found.contains('\n'), "{f:?}");
            assert!(f.numbers.iter().all(|(_, n)| n.is_finite()), "{f:?}");
        }
        // Loopback over IPv4 works on every machine that builds this.
        assert!(facts.iter().any(|f| f.id == "dscp_ipv4" && f.health == Health::Ok), "{facts:?}");
    }

    #[test]
    fn kernel_releases_compare_by_number() {
        assert!(at_least("6.18.44-fc-v595", 4, 18));
        assert!(at_least("4.18.0", 4, 18));
        assert!(!at_least("4.9.300", 4, 18));
        assert!(!at_least("", 4, 18));
    }
}
