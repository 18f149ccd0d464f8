//! The link of a shell: the path of a scenario, of as many hops as it has, or options as mahimahi's shells have them.

use crate::args::Shell as Args;
use crate::cmd::relay::refuse_plan;
use crate::error::{Failure, Outcome, code};
use fairpace_path::{DelayModel, LinkSpec, LossModel, QueueModel, RateModel, Trace, TraceError};
use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{FlowConfig, HopConfig, Protocol, RouteHop, SimConfig};
use fairpace_units::{Probability, Rate, RateSpec, parse_rate};
use std::path::Path;
use std::sync::Arc;

/// Larger files are no traces: this is two days of 12 Mbit/s.
const MAX_TRACE: u64 = 2 << 30;

/// The path between the command and the far end.
pub(super) struct Link {
    /// For messages.
    pub(super) name: String,
    hops: Vec<HopConfig>,
    /// The hops that packets pass from the command to the far end, and at which ports.
    route: Vec<RouteHop>,
    seed: u64,
}

impl Link {
    /// A link each way.
    fn pair(name: String, up: LinkSpec, down: LinkSpec, seed: u64) -> Link {
        Link { name, hops: vec![HopConfig::path(up, down)], route: vec![RouteHop::links(0)], seed }
    }

    /// The path, with one flow: the command's packets.
    pub(super) fn path(&self) -> SimConfig {
        let flow = FlowConfig { route: self.route.clone(), ..FlowConfig::new("shell", Protocol::External) };
        SimConfig { seed: self.seed, hops: self.hops.clone(), flows: vec![flow], ..SimConfig::default() }
    }

    /// From the command to the far end, and back, if that is a link each way and nothing else.
    pub(super) fn links(&self) -> Option<[&LinkSpec; 2]> {
        match &*self.hops {
            [HopConfig::Links { forward, back, .. }] => Some([forward, back]),
            _ => None,
        }
    }

    /// The link that the command line asks for.
    pub(super) fn read(args: &Args) -> Outcome<Link> {
        match &args.link {
            Some(file) if file.extension().is_some_and(|e| e == "toml") => {
                if args.describes_a_link() {
                    let what = format!("`{}` says what the link is; so do the other options", file.display());
                    return Err(Failure::usage(what).hint("give a scenario, or traces and options"));
                }
                of_scenario(file, args.seed)
            }
            Some(file) if args.up.is_some() || args.down.is_some() => {
                let what = format!("`{}` is for both ways, and so is not for `--up` or `--down`", file.display());
                Err(Failure::usage(what).hint("leave one of them out"))
            }
            Some(file) => {
                let both = trace(file)?;
                Ok(of_options(args, file.display().to_string(), both.clone(), both))
            }
            None if args.describes_a_link() => {
                let way = |given: &Option<String>| given.as_deref().map_or(Ok(RateModel::Unlimited), capacity);
                Ok(of_options(args, "the link".to_owned(), way(&args.up)?, way(&args.down)?))
            }
            None => Err(Failure::usage("there is no link").hint(
                "name a scenario or a trace, or give `--up`, `--down`, `--delay`, `--loss`; `fairpace shell --help` shows how",
            )),
        }
    }
}

fn of_scenario(file: &Path, seed: Option<u64>) -> Outcome<Link> {
    let scenario = Scenario::load(file)?;
    let seed = seed.unwrap_or_else(|| scenario.seed.get());
    let config = sim_config(&scenario, seed, Record::default())?;
    if let Some([up, down]) = config.only_links() {
        return Ok(Link::pair(scenario.name.clone(), up.clone(), down.clone(), seed));
    }
    refuse_plan(&config)?;
    // No flow of the scenario runs: the command's packets go the first one's way, whatever its controller is.
    let route = config.flows.first().map(|flow| flow.route.clone());
    let route = route.filter(|route| !route.is_empty()).ok_or_else(|| {
        let what = format!("`{}` has no flow, so that nothing says which way the command's packets go", file.display());
        Failure::new(code::SCENARIO, what)
            .hint("give it one `[[flows]]`: its terminals, user or hops are those of the command's packets")
    })?;
    Ok(Link { name: scenario.name.clone(), hops: config.hops, route, seed })
}

fn of_options(args: &Args, name: String, up: RateModel, down: RateModel) -> Link {
    let spec = |rate, loss: Option<Probability>, queue: Option<QueueModel>| LinkSpec {
        rate,
        delay: DelayModel::constant(args.delay.unwrap_or_default()),
        queue: queue.or(args.queue).unwrap_or_default(),
        loss: loss.or(args.loss).map_or(LossModel::None, LossModel::Bernoulli),
        ..LinkSpec::default()
    };
    let (up, down) = (spec(up, args.up_loss, args.up_queue), spec(down, args.down_loss, args.down_queue));
    Link::pair(name, up, down, args.seed.unwrap_or(1))
}

/// `12Mbit/s`, or the name of a trace.
fn capacity(given: &str) -> Outcome<RateModel> {
    match parse_rate(given) {
        Ok(RateSpec::Bits(rate)) if rate > Rate::ZERO => Ok(RateModel::Fixed(rate)),
        Ok(_) if !Path::new(given).exists() => Err(Failure::usage(format!("no link carries `{given}`"))
            .hint("write a rate in bits, above zero, as in `12Mbit/s`, or name a mahimahi trace")),
        _ => trace(Path::new(given)),
    }
}

/// A recording of mahimahi's.
fn trace(file: &Path) -> Outcome<RateModel> {
    let unreadable = |e: &std::io::Error| {
        Failure { code: code::USAGE, ..Failure::file("read", file, e) }
            .hint("it is to be a mahimahi trace, or a rate as in `12Mbit/s`")
    };
    let about = std::fs::metadata(file).map_err(|e| unreadable(&e))?;
    if !about.is_file() || about.len() > MAX_TRACE {
        let what = if about.is_file() { "is larger than 2 GiB" } else { "is no file" };
        return Err(Failure::usage(format!("`{}` {what}", file.display())).hint("it is to be a mahimahi trace"));
    }
    let text = std::fs::read(file).map_err(|e| unreadable(&e))?;
    let trace = Trace::parse_mahimahi(&String::from_utf8_lossy(&text)).map_err(|e| {
        let TraceError { line, problem, allowed } = e;
        let place = line.map(|n| format!(":{n}")).unwrap_or_default();
        Failure::new(code::SCENARIO, format!("`{}`{place}: {problem}", file.display())).hint(allowed)
    })?;
    Ok(RateModel::Trace(Arc::new(trace)))
}
