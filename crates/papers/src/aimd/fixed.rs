//! AIMD without a radio: eq. (1) beside TCP, and one flow on a link of fixed capacity [aimd §III-A, §III-B.1, Fig. 1].

use super::setup::{self, SLOT, packets};
use crate::builtin::{base, with};
use crate::claim::exact;
use crate::figure::{Abscissa, Figure, Numbers, Quantity, Scheme, brief, caption, counted, point};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_analysis::qos;
use fairpace_control::aimd::friendly_alpha;
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_lab::study::{Case, Cell, Job, Measure, Precision, largest, smallest};
use fairpace_report::{Axis, BandKind, Chart, Series};
use fairpace_scenario::{Capacity, Parameter, RawScenario, Record, Scenario, Speed};
use serde::{Deserialize, Serialize};

// --- eq. (1) -------------------------------------------------------------------------------------------------------

/// beta of eq. (1)'s runs.
const BETAS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.875, 0.95];
const RED: Scheme = Scheme::new("aimd", "RED", "").setting(|s| s.path.queue.kind = "red".into());
const DROP_TAIL: Scheme =
    Scheme::new("aimd-drop-tail", "drop-tail", "").setting(|s| s.path.queue.kind = "drop-tail".into());
const EQ1: Figure<Option<f64>> = Figure {
    x: Abscissa::new("beta", "beta, what remains after a decrease", ""),
    places: &BETAS,
    schemes: &[RED, DROP_TAIL],
    vary: set_beta,
    quantities: &[SHARE],
};
/// "No matter what the bottleneck link capacity is" [aimd §III-A]: at the paper's beta, Mbit/s.
const CAPACITIES: [f64; 4] = [5.0, 10.0, 20.0, 40.0];
const BY_CAPACITY: Figure<Option<f64>> = Figure {
    x: Abscissa::log("capacity_mbps", "bottleneck", "Mbit/s"),
    places: &CAPACITIES,
    schemes: &[RED],
    vary: set_capacity,
    ..EQ1
};
/// The throughput of an AIMD flow over that of a TCP flow.
const SHARE: Quantity<Option<f64>> =
    Quantity { key: "aimd_to_tcp", label: "AIMD / TCP, mean throughput of a flow", unit: "", get: share };
const SHARES: Measure<Option<f64>> = Measure { name: "aimd / tcp", of: shares };

fn shares(job: &Job<'_>) -> Result<Option<f64>, RunError> {
    let run = job.run(Record::default())?.summary;
    let of = |group: &str| run.group(group).map(|g| g.throughput_bps);
    Ok(of("tcp").filter(|t| *t > 0.0).and_then(|tcp| Some(of("main")? / tcp)))
}

/// The queue keeps one and a half times what the path holds.
fn set_capacity(s: &mut RawScenario, mbps: f64) {
    let held = mbps * 1e6 * s.path.rtt.get().as_secs_f64() / (8.0 * s.packet_size.get().as_f64());
    s.path.rate = Some(Capacity::Fixed(Speed::kbps(1e3 * mbps)));
    s.path.queue.set_capacity(packets((1.5 * held).round() as u32));
}

fn share(run: &Option<f64>) -> Option<f64> {
    *run
}

pub(super) fn eq1(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = EQ1.measured(e, bench, SHARES, Precision::of(&[share]))?;
    let mut claims: Vec<Claim> = Vec::new();
    for (beta, alpha) in [(0.5, 1.0), (0.875, 0.2)] {
        let statement = format!("3 (1 - beta) / (1 + beta) is {alpha} at beta = {beta} (the set-up)");
        let bound = Bound::Within(alpha - 1e-12, alpha + 1e-12);
        let what = "alpha of the flows, packets per RTT";
        claims.push(e.claim(format!("alpha-{beta}"), statement, bound, what).exact(friendly_alpha(beta)));
    }
    let shares = |key: &'static str| BETAS.map(|beta| (beta, found.estimate(key, beta, share)));
    let least = |key| brief(smallest(shares(key)).1);
    let most = |key| brief(largest(shares(key)).1);
    for (Scheme { key, name, .. }, suffix) in [(RED, "red"), (DROP_TAIL, "drop-tail")] {
        for (end, words, bound) in [
            ("friendly", "takes at most 10 % more than TCP (ours)", Bound::AtMost(1.1)),
            ("not-starved", "gets at least 80 % of what TCP gets (ours)", Bound::AtLeast(0.8)),
        ] {
            let statement = format!("with alpha by (1) AIMD {words}, at every beta, {name}");
            claims.push(
                e.claim(format!("{end}-{suffix}"), statement, bound, "AIMD / TCP at beta = {at}")
                    .because(format!(
                        "Over the betas AIMD gets {} to {} times what TCP gets with RED, {} to {} times with drop-tail",
                        least(RED.key),
                        most(RED.key),
                        least(DROP_TAIL.key),
                        most(DROP_TAIL.key)
                    ))
                    .everywhere(BETAS.map(|beta| (beta, found.estimate(key, beta, share)))),
            );
        }
    }
    let by_capacity = BY_CAPACITY.measured(e, bench, SHARES, Precision::of(&[share]))?;
    for (end, words, bound) in [
        ("friendly", "takes at most 10 % more than TCP (ours)", Bound::AtMost(1.1)),
        ("not-starved", "gets at least 80 % of what TCP gets (ours)", Bound::AtLeast(0.8)),
    ] {
        let statement = format!("with beta = 0.875 AIMD {words}, at every capacity from 5 to 40 Mbit/s, RED");
        claims.push(
            e.claim(format!("{end}-any-capacity"), statement, bound, "AIMD / TCP at {at} Mbit/s")
                .everywhere(CAPACITIES.map(|mbps| (mbps, by_capacity.estimate(RED.key, mbps, share)))),
        );
    }
    let at = |key| brief(found.estimate(key, 0.875, share));
    let title = format!(
        "At beta = 0.875 an AIMD flow gets {} times what TCP gets with RED, {} times with drop-tail",
        at(RED.key),
        at(DROP_TAIL.key)
    );
    let as_much = Series::line("as much as TCP", "reference", vec![0.5, 0.95], vec![1.0; 2]).reference();
    let section = e
        .section()
        .chart(EQ1.chart(&found, &SHARE, title, &caption(e, &found)).series(as_much))
        .table(EQ1.table(&found, &SHARE, "AIMD / TCP against beta"))
        .table(BY_CAPACITY.table(&by_capacity, &SHARE, "AIMD / TCP against the capacity, beta = 0.875"));
    let points = [EQ1.points(&found), BY_CAPACITY.points(&by_capacity)].concat();
    Ok(e.outcome(points, claims, section))
}

// --- one flow on a link of fixed capacity --------------------------------------------------------------------------

/// One flow alone on a link that takes a packet per slot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Alone {
    /// R, slots; the packet's own is in it.
    rtt: u32,
    /// B, packets that wait.
    buffer: u32,
    /// beta, what remains.
    beta: f64,
    /// Bound of the window, packets.
    rwnd: Option<u32>,
}

impl Alone {
    fn scenario(&self, e: &Experiment) -> Scenario {
        with(&base(e), |s| {
            set_beta(s, self.beta);
            if let Some(rwnd) = self.rwnd {
                set_rwnd(s, rwnd);
            }
            s.path.rtt = setup::slots(f64::from(self.rtt) - 1.0);
            s.path.queue.set_capacity(packets(self.buffer + 1));
            for flow in &mut s.flows {
                flow.initial_rtt = Some(setup::slots(f64::from(self.rtt)));
            }
        })
    }
}

fn set_beta(s: &mut RawScenario, beta: f64) {
    for flow in s.flows.iter_mut().filter(|f| f.controller == "aimd") {
        flow.parameters.insert("beta".to_owned(), Parameter::Number(beta));
    }
}

fn set_rwnd(s: &mut RawScenario, rwnd: u32) {
    for flow in s.flows.iter_mut().filter(|f| f.controller == "aimd") {
        flow.parameters.insert("rwnd".to_owned(), Parameter::Whole(i64::from(rwnd)));
    }
}

/// One slot of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Slot {
    /// When it ended, s.
    at: f64,
    /// The window then, packets.
    cwnd: f64,
    /// Packets waiting or in transmission then.
    queue: u64,
    /// Packets transmitted in it.
    sent: f64,
}

/// The slots of a run after its warm-up, and the packets lost in them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Trace {
    slots: Vec<Slot>,
    lost: u64,
}

const TRACE: Measure<Trace> = Measure { name: "aimd slots", of: trace };

fn trace(job: &Job<'_>) -> Result<Trace, RunError> {
    let scenario = job.scenario;
    let run = job.run(Record { series: true, ..Record::default() })?;
    let warm = scenario.warmup.get().as_secs_f64();
    let packet = scenario.packet_size.get().as_f64() * 8.0;
    let flow = run.report.series.iter().filter(|r| r.flow == 0);
    let link = run.report.link_series.iter().filter(|r| r.link == 0);
    let slot = |(flow, link): (&fairpace_sim::SeriesRow, &fairpace_sim::LinkRow)| Slot {
        at: flow.at.as_secs_f64(),
        cwnd: flow.cwnd,
        queue: link.queue_packets,
        sent: link.throughput.as_bps() * SLOT.as_secs_f64() / packet,
    };
    let slots = flow.zip(link).map(slot).filter(|s| s.at > warm).collect();
    let lost = run.report.flows.first().map_or(0, |f| f.measured.dropped_in_all().packets.get());
    Ok(Trace { slots, lost })
}

/// The use of a link, in parts of its capacity.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
struct Utilization {
    /// In stage I, from the first slot without a packet until the window reaches R, in whole rounds of R slots; 1 if there
    /// is none.
    stage_one: f64,
    /// In whole cycles, from one decrease to the next.
    cycle: f64,
    /// How many cycles there were.
    cycles: usize,
}

impl Trace {
    /// Places of the decreases.
    fn decreases(&self) -> Vec<usize> {
        let falls = |(_, pair): &(usize, &[Slot])| pair[1].cwnd < pair[0].cwnd - 1e-6;
        self.slots.windows(2).enumerate().filter(falls).map(|(i, _)| i + 1).collect()
    }

    /// None without a whole cycle.
    fn utilization(&self, r: u32) -> Option<Utilization> {
        let decreases = self.decreases();
        let (&first, &last) = (decreases.first()?, decreases.last()?);
        let share = |of: &[Slot]| (of.iter().map(|s| s.sent).sum::<f64>(), of.len() as f64);
        let (mut sent, mut slots) = (0.0, 0.0);
        for pair in decreases.windows(2) {
            let cycle = &self.slots[pair[0]..pair[1]];
            let idle = cycle.iter().position(|s| s.queue == 0);
            let full = cycle.iter().position(|s| s.cwnd >= f64::from(r));
            if let (Some(from), Some(to)) = (idle, full) {
                // A round begins with the idle slots: a part of one would count them alone.
                let rounds = (to.saturating_sub(from) as f64 / f64::from(r)).round() as usize;
                let (a, b) = share(cycle.get(from..from + rounds * r as usize).unwrap_or(&[]));
                (sent, slots) = (sent + a, slots + b);
            }
        }
        let (all, length) = share(self.slots.get(first..last).filter(|s| !s.is_empty())?);
        let stage_one = if slots > 0.0 { sent / slots } else { 1.0 };
        Some(Utilization { stage_one, cycle: all / length, cycles: decreases.len() - 1 })
    }
}

const UTILIZATION: Measure<Option<Utilization>> = Measure { name: "aimd utilization", of: utilization };

fn utilization(job: &Job<'_>) -> Result<Option<Utilization>, RunError> {
    let r = (job.scenario.path.rtt.get() + SLOT).as_nanos() / SLOT.as_nanos();
    Ok(trace(job)?.utilization(r as u32))
}

/// R of eq. (2)'s runs, slots. The paper's 17 is beside them.
const RTTS: [u32; 3] = [50, 100, 150];
const PAPERS_RTT: u32 = 17;
const EQ2_BETAS: [f64; 3] = [0.5, 0.7, 0.875];
/// B as parts of (1 - beta) R / beta, from which on the link is to be full.
const BUFFERS: [f64; 5] = [0.25, 0.5, 0.75, 1.0, 1.5];
/// How far the simulation may be from eq. (2).
const NEAR: f64 = 0.02;

/// The set-ups of eq. (2): without two that are the same, and each with at least two packets of buffer.
fn set_ups(rtts: &[u32]) -> Vec<Alone> {
    let mut all = Vec::new();
    for &rtt in rtts {
        for beta in EQ2_BETAS {
            for part in BUFFERS {
                let full = (1.0 - beta) * f64::from(rtt) / beta;
                let buffer = (part * full).ceil().max(2.0) as u32;
                let alone = Alone { rtt, buffer, beta, rwnd: None };
                if !all.contains(&alone) {
                    all.push(alone);
                }
            }
        }
    }
    all
}

/// A set-up, how much of the link was used, and how much by formula.
type Row = (Alone, Utilization, qos::Utilization);

/// Stage I by simulation, less by eq. (2).
fn off((_, used, formula): &Row) -> f64 {
    used.stage_one - formula.stage_one
}

pub(super) fn eq2(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let all = [set_ups(&RTTS), set_ups(&[PAPERS_RTT])].concat();
    let cases = all.iter().map(|a| Case::new("aimd", f64::from(a.rtt), a.scenario(e))).collect();
    let found = counted(e, bench, UTILIZATION, cases, 1)?;
    let row = |(a, cell): (&Alone, &Cell<Option<Utilization>>)| {
        Some((*a, (**cell.runs.first()?)?, qos::utilization(a.beta, a.rtt, a.buffer, a.rwnd).ok()?))
    };
    let rows: Vec<Row> = all.iter().zip(&found.cells).filter_map(row).collect();
    let mut section = e.section().text(
        "Stage I is what lies between the first slot in which the link has nothing to send, after a decrease, and the slot in \
         which the window reaches R. B counts packets that wait; R + B are outstanding without a loss."
            .to_owned(),
    );
    for beta in EQ2_BETAS {
        section = section.chart(eq2_chart(e, beta, &rows));
    }
    let mut numbers = Numbers::default();
    for (a, used, formula) in &rows {
        let x = [("rtt_slots", f64::from(a.rtt)), ("beta", a.beta), ("buffer_packets", f64::from(a.buffer))];
        let by = [("aimd", used.stage_one, used.cycle), ("formula", formula.stage_one, formula.cycle)];
        for (who, stage_one, cycle) in by {
            let words = [a.rtt.to_string(), a.beta.to_string(), a.buffer.to_string(), who.to_owned()];
            let both = [("utilization_stage_one", exact(stage_one)), ("utilization_cycle", exact(cycle))];
            numbers.row(words, (who, &x), &both);
        }
    }
    let caption = format!("{}; one run each, nothing is random", e.file);
    let head = ["R (slots)", "beta", "B (packets)", "by", "stage I", "whole cycle"];
    let table = numbers.table("Utilization, simulated and by formula", caption, head);
    let set_ups = rows.len() as f64 / all.len() as f64;
    Ok(e.outcome(numbers.points, eq2_claims(e, &rows, set_ups), section.table(table).folded()))
}

fn eq2_claims(e: &Experiment, rows: &[Row], set_ups: f64) -> Vec<Claim> {
    let large = || rows.iter().filter(|row| row.0.rtt != PAPERS_RTT);
    let is_full = |a: &Alone| f64::from(a.buffer) >= (1.0 - a.beta) * f64::from(a.rtt) / a.beta;
    let full = large().filter(|row| is_full(&row.0)).map(|row| row.1.cycle).fold(1.0, f64::min);
    let worst = |numbers: &mut dyn Iterator<Item = f64>| {
        numbers.fold(0.0, |worst: f64, x| if x.abs() > worst.abs() { x } else { worst })
    };
    let whole = "every set-up goes through whole cycles (the set-up)";
    let cycle = "the whole cycle uses what follows for it, within 2 % (ours)";
    let farthest = "simulated - formula, the set-up where it is farthest from 0";
    let always = "from B = (1 - beta) R / beta on the link is always full";
    let near = Bound::Within(-NEAR, NEAR);
    let mut claims = vec![
        e.claim("set-ups", whole, Bound::AtLeast(1.0), "set-ups with at least one whole cycle / set-ups")
            .exact(set_ups),
        e.claim("cycle", cycle, near, farthest).exact(worst(&mut large().map(|row| row.1.cycle - row.2.cycle))),
        e.claim("full", always, Bound::AtLeast(0.995), "least utilization of a whole cycle there")
            .because(WHOLE_PACKETS)
            .exact(full),
    ];
    for rtt in RTTS.iter().rev().chain([&PAPERS_RTT]) {
        let of = rows.iter().filter(|row| row.0.rtt == *rtt);
        let statement =
            format!("R = {rtt} slots: stage I uses what equation (2) says, within 2 %, at every beta and B");
        claims.push(
            e.claim(format!("stage-one-{rtt}"), statement, near, farthest)
                .because(WHOLE_PACKETS)
                .exact(worst(&mut of.map(off))),
        );
    }
    claims
}

const WHOLE_PACKETS: &str = "Eq. (2) is of windows that are not whole and grow from the first round on. Outstanding is the largest whole \
                             number of packets that is not above cwnd, half a packet less on the average, 0.5 / R of the \
                             link; and in the round after a decrease cwnd does not grow, as its ACKs speak of the path before";

/// Stage I against B, simulated and by formula, one line per R.
fn eq2_chart(e: &Experiment, beta: f64, rows: &[Row]) -> Chart {
    let of = |rtt: u32| rows.iter().filter(move |r| r.0.rtt == rtt && (r.0.beta - beta).abs() < 1e-9);
    let worst = RTTS.iter().chain([&PAPERS_RTT]).flat_map(|r| of(*r)).map(|r| off(r).abs()).fold(0.0, f64::max);
    let title = format!("beta = {beta}: the simulation is at most {:.1} % off equation (2)", worst * 100.0);
    let part = |a: &Alone| f64::from(a.buffer) * a.beta / ((1.0 - a.beta) * f64::from(a.rtt));
    let (x, y) = (Axis::new("B / ((1 - beta) R / beta)", ""), Axis::new("utilization of stage I", ""));
    let mut chart = Chart::new(title, x, y).caption(format!("{}; one run per point, nothing is random", e.file));
    let xs: Vec<f64> = (0..=40).map(|i| f64::from(i) * 0.05).collect();
    // With B = x (1 - beta) R / beta eq. (2) is the same for every R.
    let ys = xs.iter().map(|x| ((1.0 + beta + (1.0 - beta) * x) / 2.0).min(1.0)).collect();
    chart = chart.series(Series::line("eq. (2)", "reference", xs, ys).reference());
    for rtt in std::iter::once(PAPERS_RTT).chain(RTTS) {
        let (x, y) = of(rtt).map(|(a, used, _)| (part(a), used.stage_one)).unzip();
        chart = chart.series(Series::sweep(format!("R = {rtt} slots"), format!("R = {rtt}"), x, y));
    }
    chart
}

// --- Fig. 1 --------------------------------------------------------------------------------------------------------

/// R and B of Fig. 1's run.
const FIG1: Alone = Alone { rtt: 17, buffer: 10, beta: 0.875, rwnd: None };

pub(super) fn fig1(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let full = FIG1.rtt + FIG1.buffer;
    let windows: Vec<u32> = (FIG1.rtt - 5..=full + 3).collect();
    let bounded = windows.iter().map(|&w| Alone { rwnd: Some(w), ..FIG1 });
    let all: Vec<Alone> = std::iter::once(FIG1).chain(bounded).collect();
    let case = |a: &Alone| Case::new("aimd", a.rwnd.map_or(0.0, f64::from), a.scenario(e));
    let found = counted(e, bench, TRACE, all.iter().map(case).collect(), 1)?;
    let traces: Vec<&Trace> = found.cells.iter().filter_map(|c| Some(&**c.runs.first()?)).collect();
    let Some((free, bounded)) = traces.split_first() else { return Err(RunError::Interrupted) };
    let [r, top] = [FIG1.rtt, full].map(f64::from);
    let highest = free.slots.iter().map(|s| s.cwnd).fold(f64::NAN, f64::max);
    let lowest = free.slots.iter().map(|s| s.cwnd).fold(f64::NAN, f64::min);
    let used = |t: &Trace| t.slots.iter().map(|s| s.sent).sum::<f64>() / t.slots.len().max(1) as f64;
    let within: Vec<(u32, &Trace)> =
        windows.iter().copied().zip(bounded.iter().copied()).filter(|(w, _)| *w <= full).collect();
    let off = |(w, t): &(u32, &Trace)| (used(t) - f64::from((*w).min(FIG1.rtt)) / r).abs();
    let rises = "the window rises to R + B, and falls (within two packets: ours)";
    let falls = "it falls to beta (R + B) (within two packets: ours)";
    let bottom = Bound::Within(0.875 * top - 1.0, 0.875 * top + 2.0);
    let carries = "the link's utilization is min(rwnd, R) / R when rwnd <= R + B";
    let lossless = "nothing is lost when rwnd <= R + B";
    let claims = vec![
        e.claim("top", rises, Bound::Within(top, top + 2.0), "highest window, packets").exact(highest),
        e.claim("bottom", falls, bottom, "lowest window, packets").exact(lowest),
        e.claim("no-loss", lossless, Bound::AtMost(0.0), "packets lost, rwnd from 12 to R + B = 27")
            .exact(within.iter().map(|(_, t)| t.lost as f64).sum::<f64>()),
        e.claim("utilization", carries, Bound::AtMost(0.005), "largest |simulated - min(rwnd, R) / R|")
            .exact(within.iter().map(off).fold(0.0, f64::max)),
        e.claim(
            "loss",
            "packets are lost when rwnd is larger",
            Bound::AtLeast(1.0),
            "packets lost without a bound, 75 s",
        )
        .exact(free.lost as f64),
    ];
    let part = |t: &Trace| t.slots.iter().map(|s| (s.at, s.cwnd)).filter(|(at, _)| *at <= 45.0).unzip();
    let (x, y): (Vec<f64>, Vec<f64>) = part(free);
    let ends = || vec![x.first().copied().unwrap_or(0.0), x.last().copied().unwrap_or(0.0)];
    let title = format!("The window rises from {} to {} packets and falls again", short(lowest), short(highest));
    let chart = Chart::new(title, Axis::new("time", "s"), Axis::new("window", "packets"))
        .caption(format!("{}; R = 17 slots, B = 10 packets; nothing is random", e.file))
        .series(Series::line("R + B", "reference", ends(), vec![top; 2]).reference())
        .series(Series::line("beta (R + B)", "reference", ends(), vec![0.875 * top; 2]).reference())
        .series(Series::line("R", "reference", ends(), vec![r; 2]).reference())
        .series(Series::stepped("AIMD, rwnd > R + B", "aimd", x.clone(), y));
    let (mut xs, mut ys, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for (w, t) in windows.iter().zip(bounded) {
        xs.push(f64::from(*w));
        ys.push(used(t));
        lost.push(t.lost as f64);
    }
    let mut points = Vec::new();
    for ((x, y), n) in xs.iter().zip(&ys).zip(&lost) {
        points.extend(point("aimd", &[("rwnd_packets", *x)], "utilization", exact(*y)));
        points.extend(point("aimd", &[("rwnd_packets", *x)], "lost_packets", exact(*n)));
    }
    let formula = xs.iter().map(|w| w.min(r) / r).collect();
    let second = Chart::new(
        "With rwnd <= R + B the link carries min(rwnd, R) / R and nothing is lost",
        Axis::new("rwnd", "packets"),
        Axis::new("utilization", ""),
    )
    .caption(format!("{}; R = 17 slots, B = 10 packets; nothing is random", e.file))
    .band(top + 0.5, f64::from(full + 3), "packets are lost", BandKind::Note)
    .series(Series::line("min(rwnd, R) / R", "reference", xs.clone(), formula).reference())
    .series(Series::sweep("simulated", "aimd", xs, ys));
    Ok(e.outcome(points, claims, e.section().chart(chart).chart(second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(at: f64, cwnd: f64, queue: u64, sent: f64) -> Slot {
        Slot { at, cwnd, queue, sent }
    }

    #[test]
    fn stage_one_is_whole_rounds_from_the_first_idle_slot_until_the_window_is_r() {
        // R = 5. Two decreases, at the second and the last slot; between them 2 full slots, a round of stage I with 4
        // packets, a full slot.
        let slots = vec![
            slot(0.0, 7.0, 4, 1.0),
            slot(1.0, 4.0, 3, 1.0),
            slot(2.0, 4.0, 1, 1.0),
            slot(3.0, 4.2, 0, 0.0),
            slot(4.0, 4.8, 1, 1.0),
            slot(5.0, 4.9, 0, 1.0),
            slot(6.0, 4.9, 1, 1.0),
            slot(7.0, 5.4, 1, 1.0),
            slot(8.0, 6.0, 2, 1.0),
            slot(9.0, 4.0, 2, 1.0),
        ];
        let used = Trace { slots, lost: 2 }.utilization(5).unwrap();
        assert_eq!(used, Utilization { stage_one: 0.8, cycle: 7.0 / 8.0, cycles: 1 });
    }

    #[test]
    fn without_a_whole_cycle_nothing_is_known() {
        let rising = (0..5).map(|i| slot(f64::from(i), 5.0 + f64::from(i), 0, 1.0)).collect();
        assert_eq!(Trace { slots: rising, lost: 0 }.utilization(10), None);
    }

    #[test]
    fn buffers_are_parts_of_what_fills_the_link() {
        // R = 100, beta = 0.875: 14.3 packets fill it.
        let all = set_ups(&[100]);
        let buffers: Vec<u32> = all.iter().filter(|a| a.beta > 0.8).map(|a| a.buffer).collect();
        assert_eq!(buffers, [4, 8, 11, 15, 22]);
        // R = 17: 2.4 packets; the smallest two fall together.
        assert_eq!(set_ups(&[17]).iter().filter(|a| a.beta > 0.8).map(|a| a.buffer).collect::<Vec<_>>(), [2, 3, 4]);
    }
}
