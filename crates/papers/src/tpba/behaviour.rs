//! TPBA beside TCP that comes and goes: rates, fairness, arrivals of data units [tpba §6.1, Figs. 10 to 12, 14 to 18].

use super::lda::set_up;
use super::numbers::{self, Gap, Harm};
use super::setup::{Adu, HEADER, PER_SECOND, SAMPLE, caption, each, estimate, is_media, seeds, words};
use super::trace::{Trace, rates_chart, shade, slices, trace};
use crate::builtin::{base, with};
use crate::figure::{brief, point, table, text, with_doubts};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools, World};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_lab::study::{Cell, Measure};
use fairpace_report::{Axis, Chart, Section, Series};
use fairpace_scenario::{Scenario, Time};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::rc::Rc;

/// When flow 2 starts and stops, s.
const COMES: usize = 10;
const GOES: usize = 25;
/// Trials.
const TRIALS: usize = 10;
/// How long after its coming f is looked at, s: three cycles of T_TCP.
const WATCHED: usize = 3;
/// And before it.
const BEFORE: usize = 5;

/// The results of one run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct RunStats {
    trace: Trace,
    /// f per second, of the flows that are there.
    f: Vec<Option<f64>>,
    gaps: Vec<Gap>,
    harm: Harm,
    /// Mean f in the last seconds before flow 2 comes.
    before: Option<f64>,
    /// How long the first probing period is, s; all of the run if it does not end.
    first: f64,
    /// Least f in the first seconds after.
    dip: Option<f64>,
    /// Mean f in the running period after the next whole probing period.
    with_two: Option<f64>,
    /// The same after flow 2 has gone.
    without_two: Option<f64>,
    /// Running periods that a loss shortened: the rate at their end, and that of the next one's start, over the rate at
    /// their start.
    cut: Vec<(f64, f64)>,
    /// Mean f of the running period after such a one.
    after_cut: Vec<f64>,
}

/// Whole seconds between two rows.
fn whole_seconds(from: usize, to: usize) -> Range<usize> {
    from.div_ceil(PER_SECOND)..(to / PER_SECOND).max(from.div_ceil(PER_SECOND))
}

fn mean_of(f: &[Option<f64>], of: Range<usize>) -> Option<f64> {
    let known: Vec<f64> = f.get(of)?.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| mean(&known))
}

/// f of every second, of the flows that are there.
fn fairness(trace: &Trace) -> Vec<Option<f64>> {
    let of = |groups: &[&str], seconds: Range<usize>| {
        let rates = trace.over(PER_SECOND, groups);
        let end = rates.iter().map(Vec::len).min().unwrap_or(0);
        numbers::fairness(&slices(&rates), seconds.start.min(end)..seconds.end.min(end))
    };
    let all = ["flow 1", "flow 2", "flow 3"];
    let two = ["flow 1", "flow 3"];
    [of(&two, 0..COMES), of(&all, COMES..GOES), of(&two, GOES..usize::MAX)].concat()
}

const MEASURE: Measure<RunStats> = Measure { name: "tpba behaviour", of: |job| Ok(run_stats(&trace(job)?)) };

fn run_stats(trace: &Trace) -> RunStats {
    let f = fairness(trace);
    let periods = trace.periods();
    // Three cycles of T_TCP must have seen the change.
    let running = |change: usize, until: usize| {
        let begun = (change + WATCHED) * PER_SECOND;
        let period = periods.iter().find(|p| p.state == "running" && p.from >= begun)?;
        mean_of(&f, whole_seconds(period.from, period.to.min(until * PER_SECOND)))
    };
    let watched = f.get(COMES..COMES + WATCHED).unwrap_or(&[]);
    let runs: Vec<_> = periods.iter().filter(|p| p.state == "running").collect();
    let rate = |row: usize| trace.allowed.get(row).copied().unwrap_or(f64::NAN);
    let (mut cut, mut after_cut) = (Vec::new(), Vec::new());
    for pair in runs.windows(2) {
        let (start, end, next) = (rate(pair[0].from), rate(pair[0].to - 1), rate(pair[1].from));
        if end < start * 0.999 {
            cut.push((end / start, next / start));
            after_cut.extend(mean_of(&f, whole_seconds(pair[1].from, pair[1].to)));
        }
    }
    let gaps = numbers::gaps(&trace.adus);
    RunStats {
        harm: numbers::harm(&trace.adus, &gaps),
        first: periods.iter().find(|p| p.state == "running").map_or(trace.states.len(), |p| p.from) as f64
            * SAMPLE.as_secs_f64(),
        before: mean_of(&f, COMES - BEFORE..COMES),
        dip: watched.iter().copied().flatten().reduce(f64::min),
        with_two: running(COMES, GOES),
        without_two: running(GOES, usize::MAX / PER_SECOND),
        cut,
        after_cut,
        f,
        gaps,
        trace: Trace { adus: Vec::new(), ..trace.clone() },
    }
}

/// The j_A of a run that are of one kind, without those over data units that never came.
fn of_kind(found: &RunStats, kind: impl Fn(&Gap) -> bool) -> Vec<f64> {
    found.gaps.iter().filter(|g| g.missing == 0 && kind(g)).map(|g| g.ms).collect()
}

fn to_udp(g: &Gap) -> bool {
    g.switch && g.udp
}

fn to_tcp(g: &Gap) -> bool {
    g.switch && !g.udp
}

fn probing(g: &Gap) -> bool {
    !g.switch && !g.udp
}

fn running(g: &Gap) -> bool {
    !g.switch && g.udp
}

/// A set-up of an experiment.
struct SetUp {
    key: &'static str,
    name: &'static str,
    adu: Adu,
    other: Option<Deviation>,
}

/// The difference from the scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deviation {
    /// The queue of an ordinary interface.
    SmallQueue,
    /// Hosts that send within 1 ms.
    PromptHosts,
    /// T_TCP of 500 ms.
    ShortCycle,
}

impl SetUp {
    fn scenario(&self, e: &Experiment) -> Scenario {
        with(&base(e), |s| {
            self.adu.set(s);
            match self.other {
                None => {}
                Some(Deviation::SmallQueue) => set_up(s, Some(50), false),
                Some(Deviation::PromptHosts) => {
                    let soon = Time::ms(1.0);
                    s.flows.iter_mut().filter_map(|f| f.tcp.as_mut()).for_each(|t| t.send_jitter = Some(soon.clone()));
                }
                Some(Deviation::ShortCycle) => {
                    for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
                        flow.parameters.insert("t_tcp".to_owned(), words("500 ms"));
                    }
                }
            }
        })
    }
}

const ADU2: SetUp = SetUp { key: "adu2", name: "ADU2", adu: Adu::Two, other: None };
const ADU1: SetUp = SetUp { key: "adu1", name: "ADU1", adu: Adu::One, other: None };
const SMALL: SetUp =
    SetUp { key: "adu2-50p", name: "ADU2, queue of 50 packets", adu: Adu::Two, other: Some(Deviation::SmallQueue) };
const PROMPT: SetUp =
    SetUp { key: "adu2-1ms", name: "ADU2, hosts send within 1 ms", adu: Adu::Two, other: Some(Deviation::PromptHosts) };
const SHORT: SetUp =
    SetUp { key: "adu2-500ms", name: "ADU2, T_TCP = 500 ms", adu: Adu::Two, other: Some(Deviation::ShortCycle) };

pub(super) fn topology_1(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let set_ups = [ADU2, ADU1, SMALL, PROMPT, SHORT];
    let seeds = seeds(bench, TRIALS, 1);
    let all = each(e, bench, set_ups.each_ref().map(|u| u.scenario(e)), seeds, MEASURE)?;
    let mut claims = Vec::new();
    for (u, runs) in set_ups.iter().zip(runs_of(&all)).filter(|(u, _)| u.other.is_none()) {
        claims.extend(changes(e, u, runs));
    }
    let of =
        |key: &str| set_ups.iter().zip(&all).find(|(u, _)| u.key == key).map_or(&[][..], |(_, c)| c.runs.as_slice());
    for u in [&ADU2, &ADU1, &SMALL, &PROMPT] {
        claims.extend(switching(e, u, of(u.key)));
    }
    let adu2 = of(ADU2.key);
    claims.extend([falls_to(e, &ADU2, adu2), fluctuates(e, &ADU2, adu2), sooner(e, adu2, of(SHORT.key))]);
    let mut section = e.section();
    for (u, runs) in set_ups.iter().zip(runs_of(&all)).filter(|(u, _)| u.other.is_none()) {
        section = charts(e, bench.world(), section, u, runs);
    }
    let section = finish(section, &set_ups, &all, seeds).table(printed(adu2));
    Ok(e.outcome(points(&set_ups, &all), claims, section))
}

pub(super) fn topology_2(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let set_ups = [ADU2, ADU1];
    // Not every run has a loss in a running period.
    let seeds = seeds(bench, 2 * TRIALS, 3);
    let all = each(e, bench, set_ups.each_ref().map(|u| u.scenario(e)), seeds, MEASURE)?;
    let mut claims = Vec::new();
    let mut section = e.section().text(path(&base(e)));
    for (u, runs) in set_ups.iter().zip(runs_of(&all)) {
        let first = |f: &RunStats| f.cut.first().copied();
        claims.push(
            e.claim(
                format!("{}-cut", u.key),
                format!("{}: a loss lowers the rate of the running period", u.name),
                Bound::Below(1.0),
                "rate at the end of a running period with loss / at its start, first of each run that has one",
            )
            .number(estimate(runs, |f| first(f).map(|c| c.0))),
        );
        claims.push(
            e.claim(
                format!("{}-back", u.key),
                format!("{}: the next probing period brings the rate back (ours: within 10 %)", u.name),
                Bound::AtLeast(0.9),
                "rate at the start of the next running period / at the start of the one with loss",
            )
            .number(estimate(runs, |f| first(f).map(|c| c.1))),
        );
        claims.push(
            e.claim(
                format!("{}-fair", u.key),
                format!("{}: and f is near 1 then (ours: above 0.95)", u.name),
                Bound::AtLeast(0.95),
                "mean f over the next running period",
            )
            .number(estimate(runs, |f| f.after_cut.first().copied())),
        );
        claims.extend(switching(e, u, runs));
        section = charts(e, bench.world(), section, u, runs);
    }
    let of = |n: usize| all.get(n).map_or(&[][..], |c: &Cell<RunStats>| c.runs.as_slice());
    claims.push(fluctuates(e, &ADU2, of(0)));
    claims.push(apart(e, &ADU2, of(0)));
    claims.push(alike(e, of(0), of(1)));
    Ok(e.outcome(points(&set_ups, &all), claims, finish(section, &set_ups, &all, seeds)))
}

/// A description of Topology 2.
pub(super) fn path(s: &Scenario) -> String {
    let rate = match &s.path.rate {
        Some(fairpace_scenario::Capacity::Fixed(rate)) => rate.to_string(),
        _ => "not bounded".to_owned(),
    };
    let loss = toml::to_string(&s.path.loss).unwrap_or_default().trim().replace('\n', ", ").replace('"', "");
    format!(
        "Topology 2, which the paper describes by its RTT only: capacity {rate}, RTT {}, jitter {}, queue {}, loss: {loss} (per \
         packet).",
        s.path.rtt,
        s.path.jitter,
        s.path.queue.capacity()
    )
}

/// The runs of each set-up.
fn runs_of(all: &[Cell<RunStats>]) -> impl Iterator<Item = &[Rc<RunStats>]> {
    all.iter().map(|c| c.runs.as_slice())
}

/// The effect of flow 2 on f.
fn changes(e: &Experiment, u: &SetUp, runs: &[Rc<RunStats>]) -> Vec<Claim> {
    let note = if u.adu == Adu::One { small_packets() } else { String::new() };
    let key = |what: &str| format!("{}-{what}", u.key);
    vec![
        e.claim(
            key("falls"),
            format!("{}: f falls when flow 2 starts", u.name),
            Bound::Below(0.0),
            "least f in the 3 s after, less the mean f of the 5 s before",
        )
        .number(estimate(runs, |f| Some(f.dip? - f.before?))),
        e.claim(
            key("recovers"),
            format!("{}: f is back above 0.95 after the next probing period", u.name),
            Bound::Above(0.95),
            "mean f over the running period that follows, until flow 2 stops",
        )
        .because(note.clone())
        .number(estimate(runs, |f| f.with_two)),
        e.claim(
            key("rises"),
            format!(
                "{}: after flow 2 has ended, the next probing period shares what is left (ours: f above 0.95)",
                u.name
            ),
            Bound::Above(0.95),
            "mean f over the running period that follows",
        )
        .because(note.clone())
        .number(estimate(runs, |f| f.without_two)),
    ]
}

/// "Fairness f is dropped to 0.7" [tpba §6.1].
fn falls_to(e: &Experiment, u: &SetUp, runs: &[Rc<RunStats>]) -> Claim {
    e.claim(
        format!("{}-falls-to", u.key),
        format!("{}: when flow 2 starts f falls to 0.7 (ours: rounded, 0.65 to 0.75)", u.name),
        Bound::Within(0.65, 0.75),
        "least f in the 3 s after",
    )
    .number(estimate(runs, |f| f.dip))
}

/// The spread of j_A in a run: the standard deviation.
fn spread(found: &RunStats, kind: impl Fn(&Gap) -> bool) -> Option<f64> {
    let all = of_kind(found, kind);
    let middle = mean(&all);
    let squares: Vec<f64> = all.iter().map(|ms| (ms - middle) * (ms - middle)).collect();
    (squares.len() > 1).then(|| mean(&squares).sqrt())
}

/// "Fluctuation of j_A is larger in the rate-probing period than in the running period" [tpba §6.1, Figs. 12 and 16; §7].
fn fluctuates(e: &Experiment, u: &SetUp, runs: &[Rc<RunStats>]) -> Claim {
    e.claim(
        format!("{}-fluctuates", u.key),
        format!("{}: j_A fluctuates more within probing periods than within running periods", u.name),
        Bound::Above(0.0),
        "standard deviation of j_A within probing periods less that within running periods, seed by seed, ms",
    )
    .number(estimate(runs, |f| Some(spread(f, probing)? - spread(f, running)?)))
}

/// "A smaller T_tcp allows an earlier switch to the running period" [tpba §6.1, after Table 3].
fn sooner(e: &Experiment, second: &[Rc<RunStats>], half: &[Rc<RunStats>]) -> Claim {
    let pairs: Vec<f64> = half.iter().zip(second).map(|(half, second)| half.first - second.first).collect();
    e.claim(
        "t-tcp",
        "ADU2: with T_TCP = 500 ms the first probing period is shorter than with 1 s",
        Bound::Below(0.0),
        "length of the first probing period with 500 ms less that with 1 s, seed by seed, s",
    )
    .number(Estimate::of(&pairs))
}

/// Over the long path flow 2 is not felt [tpba §6.1].
fn apart(e: &Experiment, u: &SetUp, runs: &[Rc<RunStats>]) -> Claim {
    let of = |f: &RunStats, beside: bool| {
        let counts = |j: usize| {
            if beside { (COMES + 1..GOES).contains(&j) } else { j >= COMES - BEFORE && !(COMES..=GOES).contains(&j) }
        };
        let rates = f.trace.over(PER_SECOND, &["flow 1", "flow 3"]);
        let all: Vec<f64> =
            rates.iter().flat_map(|r| r.iter().enumerate().filter(|(j, _)| counts(*j)).map(|(_, x)| *x)).collect();
        (!all.is_empty()).then(|| mean(&all))
    };
    let ratio = |f: &RunStats| Some(of(f, true)? / of(f, false)?);
    e.claim(
        format!("{}-apart", u.key),
        format!("{}: flow 2 does not influence the rates of flows 1 and 3 (ours: by no more than a tenth)", u.name),
        Bound::Within(0.9, 1.1),
        "mean rate of flows 1 and 3 while flow 2 is there / before and after",
    )
    .number(estimate(runs, ratio))
}

/// "There is no key difference between the results for ADU1 and ADU2" [tpba §6.1, Figs. 17 and 18].
fn alike(e: &Experiment, adu2: &[Rc<RunStats>], adu1: &[Rc<RunStats>]) -> Claim {
    let of = |f: &RunStats| mean_of(&f.f, COMES - BEFORE..f.f.len());
    let pairs: Vec<f64> = adu1.iter().zip(adu2).filter_map(|(one, two)| Some(of(one)? - of(two)?)).collect();
    e.claim(
        "alike",
        "f is the same for ADU1 and ADU2 (ours: to 0.05)",
        Bound::Within(-0.05, 0.05),
        "mean f from 5 s on with ADU1 less that with ADU2, seed by seed",
    )
    .because(small_packets())
    .number(Estimate::of(&pairs))
}

/// The numbers of the text beside ours.
fn printed(runs: &[Rc<RunStats>]) -> fairpace_report::Table {
    let of = |number: fn(&RunStats) -> Option<f64>| text(estimate(runs, number));
    let second = |f: &RunStats| {
        let periods = f.trace.periods();
        let first = periods.iter().find(|p| p.state == "running")?.to;
        let next = periods.iter().find(|p| p.state == "probing" && p.from >= first)?;
        Some(next.from as f64 * SAMPLE.as_secs_f64())
    };
    let rows = [
        ("f when flow 2 starts at 10 s, ADU2", "§6.1", "0.7", of(|f| f.dip)),
        ("flow 3 probes again, s", "§6.1", "13.8", of(second)),
        ("f in the running period after that", "§6.1", "near 1", of(|f| f.with_two)),
    ];
    let rows = rows.map(|(what, place, paper, ours)| [what, place, paper, &ours].map(str::to_owned).to_vec());
    table("Numbers of the paper's text", "Topology 1, ADU2", ["what", "place", "paper", "here"], rows.to_vec())
}

/// The effect of switching on data units.
fn switching(e: &Experiment, u: &SetUp, runs: &[Rc<RunStats>]) -> Vec<Claim> {
    let key = |what: &str| format!("{}-{what}", u.key);
    let ratio = |f: &RunStats, of: fn(&Gap) -> bool, q: f64| {
        let most = numbers::quantile(&of_kind(f, of), 1.0)?;
        Some(most / numbers::quantile(&of_kind(f, probing), q)?)
    };
    let jump = |kind: fn(&Gap) -> bool, what: &str, words: &str| {
        e.claim(
            key(what),
            format!(
                "{}: no jump of j_A where {words} (ours: no longer than the longest within probing periods)",
                u.name
            ),
            Bound::AtMost(1.0),
            "longest j_A at such a switch / longest j_A within probing periods",
        )
        .because(DRAINING)
        .number(estimate(runs, |f| ratio(f, kind, 1.0)))
    };
    let harm = |f: &RunStats| (f.harm.split + f.harm.lost + f.harm.reordered) as f64;
    vec![
        jump(to_udp, "jump-to-udp", "TCP gives way to UDP"),
        jump(to_tcp, "jump-to-tcp", "UDP gives way to TCP"),
        e.claim(
            key("whole"),
            format!("{}: no data unit is split, lost or overtaken by switching", u.name),
            Bound::AtMost(0.0),
            "data units harmed per run",
        )
        .number(estimate(runs, |f| Some(harm(f)))),
    ]
}

const DRAINING: &str = "Nothing is sent while TCP drains, which takes a round trip through the queue after the last segment; then the \
                        first data unit over UDP is paced";

/// f where flow 3 has the others' rate on the wire: rates are of payload, and its packets have more headers.
fn small_packets() -> String {
    let part = |payload: f64| payload / (payload + HEADER);
    let share = part(64.0) / part(512.0);
    let f = |others: f64| (others + share).powi(2) / ((others + 1.0) * (others + share * share));
    format!(
        "At the same rate on the wire flow 3 has {share:.3} of the others' payload: f is {:.3} beside one flow, {:.3} beside two",
        f(1.0),
        f(2.0)
    )
}

/// A number of a run.
type Statistic = fn(&RunStats) -> Option<f64>;
/// Whether a j_A is of that kind.
type GapFilter = fn(&Gap) -> bool;

const KINDS: [(&str, GapFilter); 4] =
    [("probing (TCP)", probing), ("TCP to UDP", to_udp), ("running (UDP)", running), ("UDP to TCP", to_tcp)];

fn finish(section: Section, set_ups: &[SetUp], all: &[Cell<RunStats>], seeds: usize) -> Section {
    let mut gaps = Vec::new();
    let mut rest = Vec::new();
    for (u, runs) in set_ups.iter().zip(runs_of(all)) {
        for (name, kind) in KINDS {
            let of = |q: f64| text(estimate(runs, |f| numbers::quantile(&of_kind(f, kind), q)));
            let number: usize = runs.iter().map(|f| of_kind(f, kind).len()).sum();
            gaps.push(vec![u.name.to_owned(), name.to_owned(), number.to_string(), of(0.5), of(0.95), of(1.0)]);
        }
        let of = |number: fn(&RunStats) -> Option<f64>| text(estimate(runs, number));
        let lost: usize = runs.iter().map(|f| f.gaps.iter().map(|g| g.missing).sum::<usize>()).sum();
        rest.push(vec![
            u.name.to_owned(),
            of(|f| Some(f.first)),
            of(|f| f.before),
            of(|f| f.dip),
            of(|f| f.with_two),
            of(|f| f.without_two),
            of(|f| Some(f.trace.dropped)),
            lost.to_string(),
        ]);
    }
    let head = |of: &[&str]| of.iter().map(|s| (*s).to_owned()).collect::<Vec<String>>();
    let caption = format!("{seeds} seeds each, mean ± half-width of the 95 % interval");
    let f = table(
        "f, and what UDP loses",
        caption.clone(),
        head(&[
            "data units",
            "first probing period (s)",
            "f before flow 2",
            "least f in 3 s",
            "f after the next probing",
            "f after flow 2 and the next probing",
            "packets of flow 3 lost",
            "data units that never came",
        ]),
        rest,
    );
    let j = table(
        "Times between data units, j_A",
        format!("{caption}; without those over units that never came"),
        head(&["data units", "where", "number", "median (ms)", "95th percentile (ms)", "longest (ms)"]),
        gaps,
    );
    with_doubts(section, runs_of(all).flatten().map(|f| &f.trace.invalid)).table(f).table(j)
}

/// Seed 1: rates, f and j_A over time.
fn charts(e: &Experiment, world: World<'_>, section: Section, u: &SetUp, runs: &[Rc<RunStats>]) -> Section {
    let Some(first) = runs.first() else { return section };
    let caption =
        |rest: &str| caption(e, world, &format!("{}; seed 1, {rest}; shaded: flow 3 probes over TCP", u.name));
    let number = |of: fn(&RunStats) -> Option<f64>| of(first).map_or("–".to_owned(), short);
    let share = estimate(runs, |f| {
        let rates = f.trace.each_second();
        Some(mean(rates.get(2)?) / mean(rates.first()?))
    });
    let share = brief(share);
    let title = format!("{}: flow 3 gets {share} times what flow 1 gets", u.name);
    let rates = shade(rates_chart(title, caption("means over 500 ms"), &first.trace, 5), &first.trace);
    let (x, y): (Vec<f64>, Vec<f64>) =
        first.f.iter().enumerate().filter_map(|(j, f)| Some((j as f64 + 1.0, (*f)?))).unzip();
    let then = match first.with_two {
        Some(f) => format!("is {} after the next probing period", short(f)),
        None => "no running period follows before flow 2 stops".to_owned(),
    };
    let title = format!("{}: f falls to {} when flow 2 starts and {then}", u.name, number(|f| f.dip));
    let f = Chart::new(title, Axis::new("time", "s"), Axis::new("fairness f", "").range(0.0, 1.0))
        .caption(caption("over sampling periods of 1 s"))
        .series(Series::line("f", "tpba", x, y));
    let median = |kind: fn(&Gap) -> bool| brief(estimate(runs, |f| numbers::quantile(&of_kind(f, kind), 0.5)));
    let title = format!(
        "{}: j_A is {} ms at a switch to UDP, {} ms within probing periods, {} ms within running periods",
        u.name,
        median(to_udp),
        median(probing),
        median(running)
    );
    let mut j = Chart::new(title, Axis::new("time", "s"), Axis::new("time between data units, j_A", "ms"))
        .caption(caption("medians over all seeds in the title"));
    let groups: [(&str, &str, GapFilter); 3] =
        [("over TCP", "flow 1", probing), ("over UDP", "flow 3", running), ("at a switch", "failed", |g| g.switch)];
    for (name, colour, kind) in groups {
        let (x, y): (Vec<f64>, Vec<f64>) = first.gaps.iter().filter(|g| kind(g)).map(|g| (g.at, g.ms)).unzip();
        if !x.is_empty() {
            let style = fairpace_report::Style::Points;
            j = j.series(Series { style, ..Series::line(name, colour, thin(&x), thin(&y)) });
        }
    }
    let (f, j) = (shade(f, &first.trace), shade(j, &first.trace));
    section.chart(rates).chart(f).chart(j)
}

/// At most 2,000 of many points.
fn thin(of: &[f64]) -> Vec<f64> {
    of.iter().step_by(of.len().div_ceil(2_000).max(1)).copied().collect()
}

fn points(set_ups: &[SetUp], all: &[Cell<RunStats>]) -> Vec<Point> {
    let mut points = Vec::new();
    for (u, runs) in set_ups.iter().zip(runs_of(all)) {
        let numbers: [(&str, Statistic); 4] = [
            ("f_before", |f| f.before),
            ("f_least", |f| f.dip),
            ("f_with_flow_2", |f| f.with_two),
            ("f_after_flow_2", |f| f.without_two),
        ];
        points.extend(numbers.into_iter().filter_map(|(key, of)| point(u.key, &[], key, estimate(runs, of))));
        for (key, kind) in
            [("j_probing_ms", KINDS[0].1), ("j_to_udp_ms", to_udp), ("j_running_ms", running), ("j_to_tcp_ms", to_tcp)]
        {
            let median = estimate(runs, |f| numbers::quantile(&of_kind(f, kind), 0.5));
            points.extend(point(u.key, &[], key, median));
        }
    }
    points
}

#[cfg(test)]
mod tests;
