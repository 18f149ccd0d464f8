//! `fairpace shell`: a command behind an emulated link.
//!
//! ```text
//!   CMD, in a namespace of its own ── TUN ── path ── TUN ── the far end: a second namespace of ours,
//!                                                           the surrounding shell's, or the host's
//! ```

mod files;
mod link;
mod log;
mod tally;

use crate::alone;
use crate::args::Shell as Args;
use crate::capture::Capture;
use crate::cmd::relay::{Fates, drops, passed};
use crate::error::{Failure, Outcome};
use crate::term::note;
use fairpace_emu::process::{self, Inside, Program};
use fairpace_emu::{EmuReport, FarEnd, NetNs, Sandbox, Side, Testbed, TestbedOptions, drop_privileges, netlink};
use fairpace_net::Clock;
use fairpace_sim::{BOTTLENECK, REVERSE, SimReport};
use fairpace_units::{Duration, Instant, format_duration};
use files::Files;
use link::Link;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{getpgrp, tcgetpgrp, tcsetpgrp};
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tally::Tally;

/// Tells a command which shell's namespace it is in, as `inode/network`.
const MARK: &str = "FAIRPACE_SHELL";
/// How long a command may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
/// Signals are looked at this often.
const LOOK_UP: Duration = Duration::from_millis(20);
/// And the logs this often, for lines that nobody has written after a pause.
const LOOK_AT_LOGS: Duration = Duration::from_millis(100);

/// The far end of the path.
enum Around {
    /// A namespace of the sandbox.
    Ours,
    /// The namespace that this process is in: that of the shell around this one, or the host's.
    Here(NetNs),
}

pub(crate) fn run(args: &Args) -> Outcome {
    let link = Link::read(args)?;
    let program = program(args)?;
    let (around, network) = around(args)?;
    let mtu = u16::try_from(args.mtu).unwrap_or(u16::MAX);
    let signals = Signals::install()?;
    let config = link.path();
    // Before files are made: they may be those of the run that has it.
    let lock = alone::take(args.quiet)?;
    let mut files = Files::new(args.force);
    let pcap = args.pcap.as_ref().map(|f| Ok::<_, Failure>(Capture::of(files.create(f)?, f))).transpose()?;
    let (capture, stream) = pcap.unzip();
    let report_file = args.report.as_ref().map(|f| files.create(f)).transpose()?;
    let log = log::Log::create(args, link.links(), &mut files)?;
    // Links count what passes them; of other paths it is counted here.
    let tally = link.links().is_none().then(Tally::default);

    // Its device is made while we are in its namespace: nothing leads back.
    let far_end = match &around {
        Around::Ours => None,
        Around::Here(namespace) => Some(FarEnd::open(&config, namespace, network, mtu)?),
    };
    let sandbox = Sandbox::enter()?;
    let inner = sandbox.namespace("the command's")?;
    // Shells in this one have their way out through it.
    for (key, value) in [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
    ] {
        if fairpace_emu::sandbox::has_ipv6() || !key.starts_with("net.ipv6") {
            inner.set_sysctl(key, value)?;
        }
    }
    let inode = inner.inode();
    let mut options = TestbedOptions::new(inner, NetNs::current("far end")?);
    options.network = network;
    options.mtu = mtu;
    options.stray = Some(0);
    options.far_end = far_end;
    options.capture = stream;
    options.observer = tally.as_ref().map_or_else(|| log.observer(), |tally| Some(tally.observer()));
    let testbed = Testbed::open(&config, options)?;
    let device = format!("fairpace{network}");
    testbed.enter(Side::Senders, || everywhere(&device))??;
    if let Around::Ours = around {
        testbed.enter(Side::Receivers, || everywhere(&device))??;
    }
    let far = [testbed.addresses(0).receiver, testbed.addresses_v6(0).receiver];
    let running = testbed.start()?;

    let serve = args.serve.as_ref().map(|command| Program {
        command: vec!["sh".into(), "-c".into(), command.clone()],
        background: true,
        ..Program::default()
    });
    let serve = serve.map(|program| Inside::start(sandbox.outer(), program)).transpose()?;
    let environment = vec![
        ("FAIRPACE_FAR", far[0].to_string().into()),
        ("FAIRPACE_FAR_IPV6", far[1].to_string().into()),
        ("MAHIMAHI_BASE", far[0].to_string().into()),
        (MARK, format!("{inode}/{network}").into()),
    ];
    note(
        args.quiet || !args.command.is_empty(),
        &format!("behind {}: the far end is $FAIRPACE_FAR = {} and {}; `exit` ends it", link.name, far[0], far[1]),
    );
    let inside = Inside::start(running.namespace(Side::Senders), Program { environment, ..program })?;
    drop_privileges()?;
    files.keep();
    let mut look = Instant::ZERO;
    let ended = signals.wait_for(&inside, || {
        let now = running.now();
        if now >= look {
            look = now + LOOK_AT_LOGS;
            log.flush(now);
        }
    })?;
    let served = serve.as_ref().map(|s| s.wait(Duration::ZERO)).transpose()?.flatten();
    drop(serve);
    take_terminal_back();
    let (sim, emu) = running.finish();
    drop(lock);
    log.finish(emu.elapsed)?;
    if !args.quiet {
        show(&ways(&sim, tally.as_ref()), &emu);
    }
    if let Some(code) = served.filter(|code| *code != 0) {
        note(args.quiet, &format!("warning: what --serve started ended before, with code {code}"));
    }
    if let Some(mut file) = report_file {
        let text = serde_json::to_string_pretty(&object(&ways(&sim, tally.as_ref()), &emu, ended))?;
        let path = args.report.as_deref().unwrap_or_else(|| Path::new(""));
        writeln!(file, "{text}").map_err(|e| Failure::file("write", path, &e))?;
    }
    capture.map_or(Ok(()), Capture::finish)?;
    if ended == 0 { Ok(()) } else { Err(Failure::silent(ended)) }
}

/// The program to run: it must exist before anything is set up.
fn program(args: &Args) -> Outcome<Program> {
    let command = if args.command.is_empty() {
        vec![std::env::var_os("SHELL").filter(|s| !s.is_empty()).unwrap_or_else(|| "/bin/sh".into())]
    } else {
        args.command.clone()
    };
    let program = Program { command, terminal: args.command.is_empty(), ..Program::default() };
    program.find().map_err(|code| {
        let name = program.command.first().map(|c| c.display().to_string()).unwrap_or_default();
        match code {
            process::NOT_FOUND => Failure::new(code, format!("there is no command `{name}`"))
                .hint("is it installed, and its folder in $PATH? Options of the command stand behind `--`"),
            _ => Failure::new(code, format!("`{name}` may not be run")).hint("`chmod +x` makes a script a command"),
        }
    })?;
    Ok(program)
}

/// The far end, and the number of this shell's network: the next behind the surrounding shell's.
fn around(args: &Args) -> Outcome<(Around, u8)> {
    let here = NetNs::current("far end")?;
    if args.on_host {
        return Ok((Around::Here(here), 0));
    }
    let mark = std::env::var(MARK).unwrap_or_default();
    let shell = mark
        .split_once('/')
        .and_then(|(inode, network)| Some((inode.parse::<u64>().ok()?, network.parse::<u8>().ok()?)));
    match shell {
        // The variable alone proves nothing: it may have been carried out of the shell.
        Some((inode, network)) if here.inode() == inode => {
            if args.serve.is_some() {
                return Err(Failure::usage("`--serve` is not for a shell in a shell: its far end is this one")
                    .hint("start it here, in the background, before"));
            }
            Ok((Around::Here(here), network.saturating_add(1)))
        }
        _ => Ok((Around::Ours, 0)),
    }
}

/// Whatever is not on this machine is behind the link.
fn everywhere(device: &str) -> Result<(), fairpace_emu::EmuError> {
    netlink::route(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, device, None)?;
    if fairpace_emu::sandbox::has_ipv6() {
        netlink::route(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0, device, None)?;
    }
    Ok(())
}

/// Signals that come to us. The command's end ends us, so that none of them does.
struct Signals {
    /// Ctrl-C and Ctrl-\: the terminal sends them to the command as well.
    keys: Arc<AtomicBool>,
    /// Somebody wants the end.
    end: Arc<AtomicBool>,
}

impl Signals {
    fn install() -> Outcome<Signals> {
        let signals = Signals { keys: Arc::default(), end: Arc::default() };
        for (signal, flag) in
            [(SIGINT, &signals.keys), (SIGQUIT, &signals.keys), (SIGTERM, &signals.end), (SIGHUP, &signals.end)]
        {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
        }
        Ok(signals)
    }

    /// Waits for the command's end and gives its code; meanwhile calls `beside` again and again. A command that is asked to end and does
    /// not is killed.
    fn wait_for(&self, inside: &Inside, mut beside: impl FnMut()) -> Outcome<u8> {
        let clock = Clock::start();
        let terminal = File::open("/dev/tty").is_ok();
        let mut patience: Option<Instant> = None;
        loop {
            if let Some(code) = inside.wait(LOOK_UP)? {
                return Ok(code);
            }
            beside();
            let key = self.keys.swap(false, Ordering::Relaxed);
            if self.end.swap(false, Ordering::Relaxed) || (key && !terminal) {
                inside.signal(Signal::SIGTERM);
                patience.get_or_insert(clock.now() + GRACE);
            }
            if patience.is_some_and(|until| clock.now() >= until) {
                inside.signal(Signal::SIGKILL);
            }
        }
    }
}

/// An interactive shell makes itself the terminal's foreground, and cannot hand it back to a group of processes that it
/// does not see from its namespace: whoever started us would read no more key.
fn take_terminal_back() {
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else { return };
    let Ok(foreground) = tcgetpgrp(&terminal) else { return };
    if killpg(foreground, None) != Err(Errno::ESRCH) {
        return;
    }
    // From the background: the kernel would stop us.
    let stop = SigSet::from(Signal::SIGTTOU);
    if stop.thread_block().is_ok() {
        let _ = tcsetpgrp(&terminal, getpgrp());
        let _ = stop.thread_unblock();
    }
}

/// One way of the path: its name, what became of its packets, and how many are inside.
type Way = (&'static str, Fates, u64);

/// Both ways of the path.
fn ways(sim: &SimReport, tally: Option<&Tally>) -> Vec<Way> {
    let links = [("up", BOTTLENECK), ("down", REVERSE)];
    match tally {
        Some(tally) => {
            links.into_iter().zip(tally.counters()).map(|((name, _), (all, inside))| (name, all, inside)).collect()
        }
        None => {
            let link = |i: u32| sim.links.get(i as usize).map(|link| (Fates::from(&link.whole.total()), link.inside));
            links.into_iter().filter_map(|(name, i)| link(i).map(|(all, inside)| (name, all, inside))).collect()
        }
    }
}

fn show(ways: &[Way], emu: &EmuReport) {
    for (name, all, _) in ways {
        note(false, &format!("{name}: {}", passed(all)));
    }
    let (p50, p99) = (format_duration(emu.lateness.p50), format_duration(emu.lateness.p99));
    let (time, cpu) = (format_duration(emu.elapsed), emu.cpu * 100.0);
    let verdict = if emu.is_valid() { "the emulator kept up" } else { "not valid" };
    note(false, &format!("{verdict}: {time}, packets late by p50 {p50}, p99 {p99}; CPU {cpu:.0} %"));
    for why in &emu.invalid {
        note(false, &format!("warning: the emulator did not keep up: {why}"));
    }
}

/// The report as JSON.
fn object(ways: &[Way], emu: &EmuReport, ended: u8) -> Value {
    let us = |d: Duration| d.as_secs_f64() * 1e6;
    let way = |total: &Fates, inside: u64| {
        json!({
            "offered_packets": total.offered.packets.get(), "offered_bytes": total.offered.bytes.get(),
            "delivered_packets": total.delivered.packets.get(), "delivered_bytes": total.delivered.bytes.get(),
            "drops_packets": drops(total), "inside_packets": inside,
        })
    };
    let mut object: Map<String, Value> =
        ways.iter().map(|(name, all, inside)| ((*name).to_owned(), way(all, *inside))).collect();
    let lateness = json!({ "p50": us(emu.lateness.p50), "p99": us(emu.lateness.p99), "max": us(emu.lateness.max) });
    object.extend([
        ("exit_code".to_owned(), json!(ended)),
        ("elapsed_s".to_owned(), json!(emu.elapsed.as_secs_f64())),
        ("lateness_us".to_owned(), lateness),
        ("cpu".to_owned(), json!(emu.cpu)),
        ("invalid".to_owned(), json!(emu.invalid)),
    ]);
    Value::Object(object)
}
