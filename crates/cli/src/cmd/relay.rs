//! `fairpace relay`: a path in real time between two ports.

use crate::alone;
use crate::args::Relay as Args;
use crate::capture::Capture;
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::stop::Stop;
use crate::term::note;
use fairpace_emu::CallFilter;
use fairpace_emu::relay::{LinkSample, Relay, RelayConfig, RelayReport, RelaySample};
use fairpace_net::{Clock, resolve};
use fairpace_path::quick_start::QsCounters;
use fairpace_path::{ClassCounters, Count, DropReason};
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{
    FlowConfig, HopConfig, Observer, PacketEvent, PcapWriter, Protocol, RouteHop, SimConfig, SimReport,
};
use fairpace_units::format_duration;
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) fn run(args: &Args) -> Outcome {
    let scenario = Scenario::load_path(&args.link)?;
    fairpace_scenario::controllers::simulated(&scenario)?;
    let seed = args.seed.unwrap_or_else(|| scenario.seed.get());
    let to = resolve(&args.to, args.ip.family())?[0];
    let mut config = config(sim_config(&scenario, seed, Record::default())?, args.listen, to)?;
    config.family = args.ip.family();
    config.peers = args.peer.into_iter().collect();
    config.duration = args.seconds;
    let beside = config.flows.len();
    let _alone = alone::take(args.quiet)?;
    let stop = Stop::install()?;
    let mut relay = Relay::open(config, Clock::awake())?;
    let (capture, out) = args.pcap.as_deref().map(|f| Capture::create(f, args.force)).transpose()?.unzip();
    let recording = out.map(Recording::new);
    if let Some(recording) = &recording {
        relay.watch(Box::new(recording.clone()));
    }
    // Sockets and files are open: nothing that the network sends may use more than these.
    if relay.has_quick_start() {
        // An option that came is set again on the packet that goes on.
        confine::keep_ip_options()?;
        if let Err(e) = relay.may_quick_start() {
            note(
                args.quiet,
                &format!("note: {e}: packets go on without it, and the receiver sees none; run the relay as root"),
            );
        }
    } else {
        confine::drop_capabilities()?;
    }
    confine::filter_calls(CallFilter::Packets, args.quiet);
    note(
        args.quiet,
        &format!(
            "relaying {} to {to} through `{}`, {beside} TCP flows beside; Ctrl-C ends it",
            relay.address()?,
            scenario.name
        ),
    );
    let live = !args.quiet && std::io::stderr().is_terminal();
    let mut before = None;
    let report = relay.run(
        |sample| {
            if live {
                eprint!("\r{}\x1b[K", line(sample, before.as_ref()));
            }
            before = Some(sample.clone());
            // Each second, though nothing comes.
            if let Some(recording) = &recording {
                recording.flush();
            }
        },
        stop.flag(),
    )?;
    if live {
        eprintln!();
    }
    if let Some(recording) = recording {
        recording.finish();
    }
    capture.map_or(Ok(()), Capture::finish)?;
    show(args, &report)?;
    if stop.asked() {
        return Err(Failure::silent(code::INTERRUPTED));
    }
    Ok(())
}

/// The capture of `--pcap` while the relay runs: failures are the file's to tell.
#[derive(Clone)]
struct Recording(Arc<Mutex<Option<Pcap>>>);

type Pcap = PcapWriter<Box<dyn Write + Send>>;

impl Recording {
    fn new(out: Box<dyn Write + Send>) -> Recording {
        // The relay's two links come first; its TCP flows have no links of their own.
        let writer = PcapWriter::new(out, vec!["forward".to_owned(), "back".to_owned()]);
        Recording(Arc::new(Mutex::new(Some(writer))))
    }

    /// Gives all that was written so far to the system: a killed relay does not take it along.
    fn flush(&self) {
        if let Some(writer) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            writer.flush();
        }
    }

    fn finish(self) {
        let writer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A failure is kept by the capture.
        let _ = writer.map(PcapWriter::finish);
    }
}

impl Observer for Recording {
    fn on_packet(&mut self, event: &PacketEvent) {
        if let Some(writer) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            writer.write(event);
        }
    }
}

/// The relay's set-up from a scenario's: its path, and its TCP flows beside. Other flows of the scenario are what the real packets stand
/// for.
///
/// # Errors
/// Nothing says which way real packets take, or a base station plans windows.
pub(crate) fn config(sim: SimConfig, listen: u16, to: std::net::SocketAddr) -> Outcome<RelayConfig> {
    let mut config = RelayConfig::new(listen, to);
    let links = sim.only_links().map(|[forward, back]| (forward.clone(), back.clone()));
    match links {
        Some(links) => (config.forward, config.back) = links,
        None => config.shared = Some((sim.hops.clone(), way(&sim)?)),
    }
    config.seed = sim.seed;
    config.flows = sim.flows.into_iter().filter(|f: &FlowConfig| matches!(f.protocol, Protocol::Tcp(..))).collect();
    Ok(config)
}

/// The hops that the real packets pass, at which ports: those of the scenario's first flow that is no TCP flow, and stands for them.
fn way(sim: &SimConfig) -> Outcome<Vec<RouteHop>> {
    refuse_plan(sim)?;
    let stands = sim.flows.iter().find(|f| !matches!(f.protocol, Protocol::Tcp(..)));
    stands.map(|flow| flow.route.clone()).ok_or_else(|| {
        Failure::new(code::SCENARIO, "the scenario has no flow but TCP's, so that nothing says which way real packets go")
            .hint("give it one `[[flows]]` with another controller: its terminals, user or route are those of the real packets")
    })
}

/// Refuses a base station that plans windows: only a cell writes them into real packets.
pub(crate) fn refuse_plan(sim: &SimConfig) -> Outcome {
    let is_radio = |hop: &HopConfig| matches!(hop, HopConfig::Radio { radio, .. } if radio.base_station.is_some());
    if sim.hops.iter().any(is_radio) {
        let what = "`wireless.plan` is given, and here no base station tells senders their windows";
        return Err(Failure::new(code::SCENARIO, what)
            .hint("`fairpace cell` is the base station of real senders; or leave `plan` out"));
    }
    Ok(())
}

fn line(now: &RelaySample, before: Option<&RelaySample>) -> String {
    let (from, relayed) = before.map_or((0.0, 0), |b| (b.at.as_secs_f64(), b.relayed.get()));
    let span = (now.at.as_secs_f64() - from).max(1e-3);
    let kbps = (now.relayed.get() - relayed) as f64 * 8.0 / span / 1e3;
    let beside: u64 = now.flows.iter().map(|f| f.counts.received.bytes.get()).sum::<u64>()
        - before.map_or(0, |b| b.flows.iter().map(|f| f.counts.received.bytes.get()).sum());
    format!(
        "{:6.0} s  relayed {kbps:.0} kbit/s, TCP beside {:.0} kbit/s, queue {} packets",
        now.at.as_secs_f64(),
        beside as f64 * 8.0 / span / 1e3,
        now.forward.queue
    )
}

/// The fates of the packets of one direction.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fates {
    pub(crate) offered: Count,
    pub(crate) delivered: Count,
    /// In the order of [`DropReason::ALL`].
    pub(crate) drops: [Count; DropReason::ALL.len()],
}

impl From<&ClassCounters> for Fates {
    fn from(total: &ClassCounters) -> Fates {
        let ClassCounters { offered, delivered, .. } = *total;
        Fates { offered, delivered, drops: DropReason::ALL.map(|reason| total.dropped(reason)) }
    }
}

/// The fate of the packets of one direction, simulated flows' included: "912 of 1000 packets passed; dropped: …".
pub(crate) fn passed(total: &Fates) -> String {
    let drops: Vec<String> = DropReason::ALL
        .iter()
        .zip(&total.drops)
        .map(|(r, dropped)| (dropped.packets.get(), r.as_str().replace('_', " ")))
        .filter(|(n, _)| *n > 0)
        .map(|(n, reason)| format!("{n} {reason}"))
        .collect();
    format!(
        "{} of {} packets passed; dropped: {}",
        total.delivered.packets.get(),
        total.offered.packets.get(),
        if drops.is_empty() { "none".to_owned() } else { drops.join(", ") }
    )
}

/// Packets that were dropped, by reason.
pub(crate) fn drops(total: &Fates) -> Value {
    let reasons = DropReason::ALL.iter().zip(&total.drops);
    Value::Object(reasons.map(|(r, dropped)| (r.as_str().to_owned(), json!(dropped.packets.get()))).collect())
}

/// The decisions of all routers and terminals of the path together; `None` if none has made any.
fn quick_start(path: &SimReport) -> Option<QsCounters> {
    let links = path.links.iter().filter_map(|link| link.quick_start.as_deref().copied());
    let terminals = path.satellites.iter().flat_map(|s| &s.terminals).filter_map(|terminal| terminal.quick_start);
    links.chain(terminals).reduce(|a, b| QsCounters {
        approved: a.approved + b.approved,
        reduced: a.reduced + b.reduced,
        refused: std::array::from_fn(|i| a.refused[i] + b.refused[i]),
        reports: a.reports + b.reports,
        below_free: a.below_free + b.below_free,
    })
}

fn show(args: &Args, report: &RelayReport) -> Outcome {
    let mut out = std::io::stdout().lock();
    let last = report.series.last();
    let has_links = report.path.satellites.is_empty() && report.path.radios.is_empty();
    let asked = quick_start(&report.path);
    if args.json {
        let link = |pick: fn(&RelaySample) -> &LinkSample| {
            last.filter(|_| has_links).map_or(Value::Null, |s| {
                let total = Fates::from(&pick(s).counters.total());
                json!({
                    "offered_packets": total.offered.packets.get(), "delivered_packets": total.delivered.packets.get(),
                    "drops_packets": drops(&total),
                })
            })
        };
        let flows: Vec<Value> = last.map_or(Vec::new(), |s| {
            s.flows
                .iter()
                .map(|f| json!({ "name": f.name, "delivered_bytes": f.counts.received.bytes.get() }))
                .collect()
        });
        let object = json!({
            "elapsed_s": report.elapsed.as_secs_f64(),
            "relayed_bytes": last.map_or(0, |s| s.relayed.get()),
            "forward": link(|s| &s.forward), "back": link(|s| &s.back), "flows": flows,
            "lateness_us": { "p50": report.lateness.p50.as_secs_f64() * 1e6, "p99": report.lateness.p99.as_secs_f64() * 1e6 },
            "quick_start": asked.map(|q| json!({ "approved": q.approved, "reduced": q.reduced, "refused": q.refused.iter().sum::<u64>(), "reports": q.reports })),
            "cpu": report.cpu, "clients": report.clients,
            "withheld_packets": report.withheld, "invalid": report.invalid,
        });
        writeln!(out, "{}", serde_json::to_string(&object)?)?;
    } else {
        writeln!(
            out,
            "relayed {} kB in {}; packets released late by p50 {}, p99 {}; CPU {:.0} %",
            last.map_or(0, |s| s.relayed.get()) / 1000,
            format_duration(report.elapsed),
            format_duration(report.lateness.p50),
            format_duration(report.lateness.p99),
            report.cpu * 100.0
        )?;
        if let Some(sample) = last.filter(|_| has_links) {
            for (way, link) in [("forward", &sample.forward), ("back", &sample.back)] {
                writeln!(out, "{way}: {}", passed(&Fates::from(&link.counters.total())))?;
            }
        }
        if let Some(q) = asked {
            let refused: u64 = q.refused.iter().sum();
            writeln!(out, "Quick-Start: {} approved, {} lowered, {refused} refused", q.approved, q.reduced)?;
        }
        for flow in last.iter().flat_map(|s| &s.flows) {
            writeln!(out, "beside: {} got {} kB", flow.name, flow.counts.received.bytes.get() / 1000)?;
        }
    }
    if report.withheld > 0 {
        let what =
            "were withheld from a client that had not shown that it hears: name it with `--peer` if it is to get all";
        note(args.quiet, &format!("warning: {} packets {what}", report.withheld));
    }
    for why in &report.invalid {
        note(args.quiet, &format!("warning: the relay did not keep up: {why}"));
    }
    Ok(())
}
