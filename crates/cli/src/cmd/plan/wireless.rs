//! `fairpace plan wireless`: the five steps from needs and a link to windows [aimd §III-D].

use super::slotted::{self, Outcome as Measured};
use crate::args::{Scheme, Wireless};
use crate::error::{Failure, Outcome, code};
use crate::term::{Columns, Ink, note, paint};
use clap::ValueEnum as _;
use fairpace_analysis::qos::plan::{
    FlowPlan, Lack, Nearest, Need, Plan, PlanError, PlannedLink, Planner, Unmet, percent,
};
use fairpace_analysis::qos::{QosError, Start};
use fairpace_lab::stats::Estimate;
use fairpace_path::{ArqScheme, ArqSpec, Channel, ChannelError, FadingError, Rayleigh};
use fairpace_units::{Bytes, Duration, Rate, format_duration};
use serde_json::{Value, json};
use std::io::Write;

pub(super) fn run(args: &Wireless) -> Outcome {
    no_effect(args)?;
    let needs = needs(args)?;
    let link = link(args, &needs)?;
    let planner = Planner::new(&link, 0).map_err(|e| wrong(&e))?;
    let mut out = std::io::stdout().lock();
    let windows: Option<Vec<u32>> = (0..needs.len()).map(|i| of(&args.rwnd, i)).collect();
    let plan = match &windows {
        Some(windows) => planner.given(args.beta, &needs, windows).map_err(PlanError::Qos),
        None => planner.plan(args.beta, &needs),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(PlanError::Qos(error)) => return Err(wrong(&error)),
        Err(PlanError::Unmet(unmet)) => {
            if args.json {
                writeln!(out, "{}", serde_json::to_string_pretty(&unmet_json(&unmet))?)?;
            }
            return Err(impossible(&unmet));
        }
    };
    let measured = args.verify.then(|| slotted::simulate(&link, args.beta, &needs, &plan, args.seeds)).transpose();
    let measured = measured.map_err(|e| Failure::new(code::FAILED, e.to_string()))?;
    let more = if windows.is_none() { planner.with_total(&needs, plan.buffer + 1).ok() } else { None };
    let shown = Shown { args, needs, link, planner, plan, more, measured };
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&shown.json())?)?;
    } else {
        shown.print(&mut out)?;
    }
    for warning in shown.warnings() {
        note(false, &format!("warning: {warning}"));
    }
    Ok(())
}

/// Refuses options that would be ignored.
fn no_effect(args: &Wireless) -> Outcome<()> {
    if args.transition.is_none() && args.error.len() > 1 {
        let text = format!("`--error` has {} values; only `--transition` has states of their own", args.error.len());
        return Err(Failure::usage(text).hint("give one error probability, or the matrix too"));
    }
    let refuse = |option: &str, hint: &str| {
        let scheme = args.scheme.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
        Err(Failure::usage(format!("`{option}` has no effect with `--scheme {scheme}`")).hint(hint))
    };
    if args.retries.is_some() && args.scheme != Scheme::Limited {
        return refuse("--retries", "write `--scheme limited`, or leave it out");
    }
    if args.retry_delay > 0 && args.scheme == Scheme::None {
        return refuse("--retry-delay", "leave it out, or write another scheme");
    }
    Ok(())
}

/// Step 1, from lists that have an entry per flow, or one for all.
fn needs(args: &Wireless) -> Outcome<Vec<Need>> {
    let lists = [
        ("--rtt", args.rtt.len()),
        ("--max-jitter", args.max_jitter.len()),
        ("--outage", args.outage.len()),
        ("--loss", args.loss.len()),
        ("--throughput", args.throughput.len()),
        ("--share", args.share.len()),
        ("--rwnd", args.rwnd.len()),
    ];
    let longest = lists.iter().map(|(_, n)| *n).max().unwrap_or(1);
    let flows = args.flows.map_or(longest, |n| n as usize);
    if let Some((name, n)) = lists.iter().find(|(_, n)| *n > 1 && *n != flows) {
        let hint = format!("give one value for all, or {flows}, separated by commas");
        return Err(Failure::usage(format!("`{name}` has {n} values for {flows} flows")).hint(hint));
    }
    let mut needs = Vec::new();
    for i in 0..flows {
        let throughput = of(&args.throughput, i);
        needs.push(Need {
            min_rtt: of(&args.rtt, i).unwrap_or_default(),
            share: of(&args.share, i).or(throughput.map(Rate::as_bps)).unwrap_or(1.0),
            throughput,
            max_jitter: of(&args.max_jitter, i).unwrap_or_default(),
            outage: of(&args.outage, i).unwrap_or_default(),
            loss: of(&args.loss, i),
        });
    }
    Ok(needs)
}

/// The entry of flow `i`.
fn of<T: Copy>(values: &[T], i: usize) -> Option<T> {
    if values.len() == 1 { values.first().copied() } else { values.get(i).copied() }
}

/// Step 3.
fn link(args: &Wireless, needs: &[Need]) -> Outcome<ArqSpec> {
    let slot = args.packet_size / args.rate;
    let link = PlannedLink {
        rate: args.rate,
        packet_size: args.packet_size,
        channel: channel(args, slot).map_err(|e| wrong(&QosError::Channel(e)))?,
        scheme: match args.scheme {
            Scheme::None => Some(ArqScheme::None),
            Scheme::Persistent => Some(ArqScheme::Persistent),
            Scheme::Limited => Some(ArqScheme::Limited { retries: args.retries.unwrap_or_default() }),
            Scheme::Optimal => Some(ArqScheme::Optimal),
            Scheme::Auto => None,
        },
        retry_delay: args.retry_delay,
        slots: args.slots,
    };
    Ok(link.spec(needs))
}

fn channel(args: &Wireless, slot: Duration) -> Result<Channel, ChannelError> {
    if let (Some(mean_snr_db), Some(snr_db), Some(doppler)) = (args.snr, args.threshold, args.doppler) {
        return Channel::rayleigh(&Rayleigh {
            states: args.states as usize,
            mean_snr_db,
            doppler: doppler * slot.as_secs_f64(),
            error: FadingError::Threshold { snr_db },
        });
    }
    if let Some(rows) = &args.transition {
        let channel = Channel { transition: rows.0.clone(), error: args.error.clone() };
        return channel.validate().map(|()| channel);
    }
    let p_e = args.error.first().copied().unwrap_or(0.1);
    if args.memory == 0.0 { Channel::memoryless(p_e) } else { Channel::two_state(p_e, args.memory) }
}

/// The analysis' words, as options of this command.
fn wrong(error: &QosError) -> Failure {
    let mut text = error.to_string();
    let fields = [
        ("tolerable delay jitter", "--max-jitter"),
        ("minimal RTT", "--rtt"),
        ("delay outage", "--outage"),
        ("loss", "--loss"),
        ("beta", "--beta"),
        ("share", "--share"),
        ("rwnd", "--rwnd"),
        ("`error_probability`", "--error"),
        ("`memory`", "--memory"),
        ("`mean_snr_db`", "--snr"),
        ("`error.snr_db`", "--threshold"),
        ("`slot_size`", "--packet-size"),
        ("`slot`", "a slot, --packet-size / --rate,"),
    ];
    for (field, option) in fields {
        if let Some(rest) = text.strip_prefix(field) {
            text = if option.starts_with("--") { format!("`{option}`{rest}") } else { format!("{option}{rest}") };
            break;
        }
    }
    Failure::usage(text).hint("`fairpace plan wireless --help` has the defaults, the paper's example")
}

fn impossible(unmet: &Unmet) -> Failure {
    let nearest: Vec<String> = unmet.nearest.iter().map(ToString::to_string).collect();
    let failure = Failure::new(code::UNMET, unmet.to_string());
    if nearest.is_empty() { failure } else { failure.hint(format!("possible is {}", nearest.join(", or "))) }
}

struct Shown<'a> {
    args: &'a Wireless,
    needs: Vec<Need>,
    link: ArqSpec,
    planner: Planner,
    plan: Plan,
    /// With one packet more in all.
    more: Option<Vec<FlowPlan>>,
    /// With `--verify`.
    measured: Option<Vec<Measured>>,
}

impl Shown<'_> {
    fn print(&self, out: &mut impl Write) -> Outcome {
        let (plan, flows) = (&self.plan, self.needs.len());
        let title = match flows {
            1 => "A window for a flow over a wireless link".to_owned(),
            n => format!("Windows for {n} flows over a wireless link"),
        };
        writeln!(out, "{}\n", paint(&title, Ink::Bold))?;
        let mut steps = Columns::default();
        let mut step = |name: &str, what: String| steps.row([name.to_owned(), what]);
        step("1  needs", self.asked());
        step(
            "2  sender",
            format!(
                "alpha = 3 (1 - beta) / (1 + beta) = {} packets per RTT; beta = {} remains after a decrease",
                short(plan.alpha),
                short(plan.beta)
            ),
        );
        step("3  link", self.profile());
        step("", format!("{}: {}", self.scheme(), self.capacity()));
        step(
            "4  buffer",
            format!(
                "B = {}, the sum of the windows; from {} on the link is never idle",
                packets(plan.buffer),
                plan.full_window
            ),
        );
        step("5  told", "rwnd, with each acknowledgement".to_owned());
        steps.print_plain(out, "  ")?;
        writeln!(out)?;
        self.table().print(out, "  ")?;
        if let Some(more) = &self.more {
            let outages: Vec<(f64, f64)> = more.iter().zip(&self.needs).map(|(f, n)| (f.outage, n.outage)).collect();
            let shown = same(&outages, |&(outage, bound)| beside(outage, bound));
            writeln!(out, "\nwith {} in all the delay outage would be {shown}", packets(plan.buffer + 1))?;
        }
        if let Some(measured) = &self.measured {
            writeln!(out)?;
            self.verified(measured).print(out, "  ")?;
            writeln!(
                out,
                "\nsimulated in {} runs, greedy flows, means with 95 % intervals; holds: throughput within 0.5 % or not \
                 decidedly below, outage and loss not decidedly above what was asked for",
                self.args.seeds
            )?;
        }
        Ok(())
    }

    /// The needs in words.
    fn asked(&self) -> String {
        let mut text = format!(
            "delay jitter above {} in at most {} of the packets",
            same(&self.needs, |n| format_duration(n.max_jitter)),
            same(&self.needs, |n| percent(n.outage))
        );
        if self.needs.iter().any(|n| n.throughput.is_some()) {
            let rate = |n: &Need| n.throughput.map_or("–".to_owned(), |t| t.to_string());
            text += &format!("; at least {}", same(&self.needs, rate));
        }
        if self.needs.iter().any(|n| n.loss.is_some()) {
            let loss = |n: &Need| n.loss.map_or("–".to_owned(), percent);
            text += &format!("; lost or late at most {}", same(&self.needs, loss));
        }
        text
    }

    fn profile(&self) -> String {
        let channel = self.channel();
        let mut text = format!(
            "{}: a packet of {} in a slot of {}; error probability {}, memory {}",
            self.args.rate,
            self.link.slot_size,
            format_duration(self.link.slot),
            percent(channel.error_probability()),
            short(channel.memory()),
        );
        let (own, all) = self.args.slots;
        if own < all {
            text += &format!("; {own} of {all} slots");
        }
        text
    }

    fn channel(&self) -> &Channel {
        &self.link.users[0].channel
    }

    fn scheme(&self) -> String {
        let name = match self.link.scheme {
            ArqScheme::None => "no ARQ".to_owned(),
            ArqScheme::Persistent => "persistent ARQ".to_owned(),
            ArqScheme::Limited { retries } => format!("ARQ, tries after the first: {retries}"),
            ArqScheme::Optimal => "'optimal' ARQ, a slot of silence after a failure".to_owned(),
        };
        let chosen = match (self.args.scheme, self.link.scheme) {
            (Scheme::Auto, ArqScheme::Optimal) => " (there is memory)",
            (Scheme::Auto, _) if self.channel().memory() > 1e-9 => " (the 'optimal' one is too slow)",
            (Scheme::Auto, _) => " (no memory)",
            _ => "",
        };
        name + chosen
    }

    fn capacity(&self) -> String {
        format!("{} packets per slot, {}", short(self.planner.process().throughput()), self.planner.capacity())
    }

    fn table(&self) -> Columns {
        let mut table = Columns::new(&[
            "flow",
            "min. RTT",
            "R",
            "D",
            "share",
            "rwnd",
            "throughput",
            "delay outage",
            "lost or late",
        ]);
        for (i, (need, flow)) in self.needs.iter().zip(&self.plan.flows).enumerate() {
            table.row([
                (i + 1).to_string(),
                format_duration(need.min_rtt),
                flow.r.to_string(),
                flow.d.to_string(),
                percent(flow.share),
                flow.rwnd.to_string(),
                flow.throughput.to_string(),
                percent(flow.outage),
                percent(flow.loss),
            ]);
        }
        table
    }

    fn verified(&self, measured: &[Measured]) -> Columns {
        let mut table = Columns::new(&[
            "flow",
            "throughput",
            "simulated",
            "delay outage",
            "simulated",
            "lost or late",
            "simulated",
            "",
        ]);
        for (i, (flow, seen)) in self.plan.flows.iter().zip(measured).enumerate() {
            let kept = if self.kept(i, seen) { paint("holds", Ink::Good) } else { paint("fails", Ink::Bad) };
            table.row([
                (i + 1).to_string(),
                flow.throughput.to_string(),
                format!("{} kbit/s", scaled(&seen.throughput, 1e-3)),
                percent(flow.outage),
                format!("{} %", scaled(&seen.outage, 100.0)),
                percent(flow.loss),
                format!("{} %", scaled(&seen.loss, 100.0)),
                kept,
            ]);
        }
        table
    }

    /// Whether what came of the plan of flow `i` may be what it promises.
    fn kept(&self, i: usize, seen: &Measured) -> bool {
        let (need, flow) = (&self.needs[i], &self.plan.flows[i]);
        // With packets given up it is an upper bound.
        let promised = flow.throughput.as_bps();
        let bound = self.planner.process().give_up_ratio() > 0.0;
        let fast =
            if bound { seen.throughput.low() <= promised * 1.005 } else { seen.throughput.high() >= promised * 0.995 };
        fast && seen.outage.low() <= need.outage && seen.loss.low() <= need.loss.unwrap_or(1.0)
    }

    /// The promises that hold only with a reservation.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        // Only windows that were given can fall short.
        for ((i, flow), need) in (1..).zip(&self.plan.flows).zip(&self.needs) {
            if flow.outage > need.outage {
                let (has, bound) = (beside(flow.outage, need.outage), percent(need.outage));
                warnings.push(format!("flow {i}: a delay outage of {has} is above the {bound} that are tolerated"));
            }
            if let Some(loss) = need.loss.filter(|loss| flow.loss > *loss) {
                let (has, bound) = (beside(flow.loss, loss), percent(loss));
                warnings.push(format!("flow {i}: {has} lost or late is above the {bound} that are tolerated"));
            }
            if let Some(wanted) = need.throughput.filter(|t| flow.throughput.as_bps() * (1.0 + 1e-9) < t.as_bps()) {
                warnings.push(format!("flow {i}: {} is below the {wanted} that are needed", flow.throughput));
            }
        }
        let given_up = self.planner.process().give_up_ratio();
        let idle = 1.0 - self.plan.delivered / self.planner.process().throughput();
        if self.plan.starves() && given_up == 0.0 && idle > 0.001 {
            let exact = self.channel().states() == 1
                && matches!(self.link.scheme, ArqScheme::Persistent)
                && self.link.users.len() == 1
                && self.needs.iter().all(|n| n.min_rtt == self.needs[0].min_rtt);
            warnings.push(format!(
                "windows of {} in all leave {} of the link unused, as the queue is empty at times; {}",
                packets(self.plan.buffer),
                percent(idle),
                if exact { "throughput and outage allow for that" } else { "throughput and outage are estimates then" }
            ));
        }
        if given_up > 0.0 {
            warnings.push(format!(
                "{} of the packets are given up after their last try: the sender takes that for congestion, and the \
                 throughput is a bound, not a promise",
                percent(given_up)
            ));
        }
        warnings
    }

    fn json(&self) -> Value {
        let (plan, channel) = (&self.plan, self.channel());
        let flows: Vec<Value> = (0..self.needs.len()).map(|i| self.flow_json(i)).collect();
        json!({
            "possible": true,
            "alpha_packets_per_rtt": plan.alpha,
            "beta": plan.beta,
            "buffer_packets": plan.buffer,
            "full_window_packets": plan.full_window,
            "full_utilization_buffer_packets": plan.full_utilization_buffer,
            "fixed_capacity": {
                "utilization_stage_one": plan.utilization.stage_one,
                "utilization_cycle": plan.utilization.cycle,
            },
            "link": {
                "rate_bps": self.args.rate.as_bps(),
                "packet_size_bytes": Bytes::get(self.link.slot_size),
                "slot_ms": ms(self.link.slot),
                "slots_own": self.args.slots.0,
                "slots_all": self.args.slots.1,
                "error_probability": channel.error_probability(),
                "memory": channel.memory(),
                "states": channel.states(),
                "scheme": match self.link.scheme {
                    ArqScheme::None => "none",
                    ArqScheme::Persistent => "persistent",
                    ArqScheme::Limited { .. } => "limited",
                    ArqScheme::Optimal => "optimal",
                },
                "delivers_packets_per_slot": self.planner.process().throughput(),
                "delivers_bps": self.planner.capacity().as_bps(),
                "given_up": self.planner.process().give_up_ratio(),
            },
            "delivered_packets_per_slot": plan.delivered,
            "flows": flows,
            "warnings": self.warnings(),
        })
    }

    fn flow_json(&self, i: usize) -> Value {
        let (need, flow) = (&self.needs[i], &self.plan.flows[i]);
        let estimate = |e: &Estimate| json!({ "mean": e.mean, "ci95": e.ci95, "n": e.n });
        let simulated = self.measured.as_ref().and_then(|all| all.get(i)).map(|seen| {
            json!({
                "throughput_bps": estimate(&seen.throughput),
                "delay_outage": estimate(&seen.outage),
                "lost_or_late": estimate(&seen.loss),
                "holds": self.kept(i, seen),
            })
        });
        json!({
            "min_rtt_ms": ms(need.min_rtt),
            "max_jitter_ms": ms(need.max_jitter),
            "r_slots": flow.r,
            "d_slots": flow.d,
            "share": flow.share,
            "needed_bps": need.throughput.map(Rate::as_bps),
            "rwnd_packets": flow.rwnd,
            "rwnd_by_equation_4": flow.exact_rwnd,
            "throughput_bps": flow.throughput.as_bps(),
            "delay_outage": flow.outage,
            "lost_or_late": flow.loss,
            "successes_in_r_plus_d_slots": self.planner.process().successes(flow.r + flow.d, Start::AfterSuccess),
            "delay_outage_with_one_packet_more": self.more.as_ref().and_then(|m| m.get(i)).map(|f| f.outage),
            "simulated": simulated,
        })
    }
}

/// The needs that cannot be met, for machines.
fn unmet_json(unmet: &Unmet) -> Value {
    let lack = match unmet.lack {
        Lack::Throughput { .. } => "throughput",
        Lack::Window { .. } => "window",
        Lack::Outage { .. } => "outage",
        Lack::Loss { .. } => "loss",
    };
    let mut nearest = json!({});
    for near in &unmet.nearest {
        match near {
            Nearest::Throughput(rates) => {
                nearest["throughput_bps"] = json!(rates.iter().map(|r| r.as_bps()).collect::<Vec<_>>());
            }
            Nearest::Link(rate) => nearest["rate_bps"] = json!(rate.as_bps()),
            Nearest::Jitter(jitters) => {
                nearest["max_jitter_ms"] = json!(jitters.iter().map(|d| ms(*d)).collect::<Vec<_>>());
            }
            Nearest::Outage { windows, outage } => {
                nearest["delay_outage"] = json!(outage);
                nearest["rwnd_packets"] = json!(windows);
            }
            Nearest::Loss(loss) => nearest["lost_or_late"] = json!(loss),
            Nearest::Persistent => nearest["scheme"] = json!("persistent"),
        }
    }
    json!({
        "possible": false,
        "flow": unmet.flow + 1,
        "lack": lack,
        "problem": unmet.to_string(),
        "nearest": nearest,
    })
}

/// One text where all have the same.
fn same<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    let mut shown: Vec<String> = values.iter().map(show).collect();
    if shown.windows(2).all(|w| w[0] == w[1]) {
        shown.truncate(1);
    }
    shown.join(", ")
}

/// An outage that is above its bound is never shown as the bound.
fn beside(outage: f64, bound: f64) -> String {
    let (shown, limit) = (percent(outage), percent(bound));
    if outage > bound && shown == limit { format!("just above {limit}") } else { shown }
}

fn packets(n: u32) -> String {
    format!("{n} packet{}", if n == 1 { "" } else { "s" })
}

/// Three digits at most behind the point.
fn short(x: f64) -> String {
    let text = format!("{x:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// In another unit.
fn scaled(e: &Estimate, unit: f64) -> String {
    Estimate { mean: e.mean * unit, ci95: e.ci95.map(|c| c.map(|x| x * unit)), n: e.n }.text()
}
