//! The losses of the transmit buffers [qsd §4, Table III].

use super::super::readings::{AFTER_RESPONSE, FIRST_30_S};
use super::start::{ClassStart, STEP_S, STEPS, Start, YOUTH_S};
use super::{CLASSES, IPTV, NONE, QS, QSD_OPT, Runs, STRATEGIES, Strategy, VIDEO, VOIP, class_of};
use crate::figure::{brief, point, scaled, table, text};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_report::{Axis, Chart, Series};

pub(in crate::qsd) fn table3(
    e: &Experiment,
    bench: &mut Bench<'_>,
    tools: &mut Tools<'_>,
) -> Result<Outcome, RunError> {
    let runs = Runs::measure(e, bench)?;
    let counting = Counting::of(tools);
    let claims = table3_claims(e, &runs, counting);
    let caption = runs.caption(e);
    let mut section = e.section().text(
        "Packets for which the transmit buffer had no room while TFRC held the flow back. A fraction of all packets of \
         the flows' whole lives, and of those of their first 30 s: the paper does not say which it gives.",
    );
    for (class, name) in &CLASSES[..2] {
        let seconds = |s: &Strategy| brief(runs.estimate(s, &|run| seconds_lost(run, class)));
        let title = format!(
            "{name} loses {} s of a flow's start without Quick-Start, {} s with QS, {} s with QSD and T_q = 0.52 s",
            seconds(&NONE),
            seconds(&QS),
            seconds(&QSD_OPT)
        );
        let y = Axis::new("fraction of packets lost", "").range(0.0, 1.0);
        let mut chart = Chart::new(title, Axis::new("age of the flow", "s"), y);
        for strategy in &STRATEGIES {
            let at = |step: usize| {
                let lost = |run: &Start| {
                    let c = class_of(run, class)?;
                    Some(1.0 - *c.young_sent.get(step)? as f64 / *c.young_produced.get(step)? as f64)
                };
                ((step as f64 + 0.5) * STEP_S, runs.estimate(strategy, &lost))
            };
            let (x, y) = (0..STEPS).map(at).filter_map(|(x, e)| Some((x, e?.mean))).unzip();
            chart = chart.series(Series::line(strategy.name, strategy.key, x, y));
        }
        section = section.chart(chart.caption(&caption));
    }
    let mut points = Vec::new();
    let columns: [(&str, Option<&str>); 4] =
        [("in all", None), ("VoIP", Some(VOIP)), ("video", Some(VIDEO)), ("IPTV", Some(IPTV))];
    let head = || {
        let mut head = vec!["strategy".to_owned()];
        head.extend(columns.iter().flat_map(|(name, _)| [(*name).to_owned(), "paper".to_owned()]));
        head
    };
    for counting in [Counting::All, Counting::First30s, Counting::AfterResponse] {
        let (title, key, number) = counting.shown();
        let mut rows = Vec::new();
        for s in &STRATEGIES {
            let mut row = vec![s.name.to_owned()];
            for ((_, class), paper) in columns.iter().zip(s.paper) {
                let estimate = runs.estimate(s, &|run| number(run, *class));
                row.extend([text(estimate), format!("{paper}")]);
                points.extend(point(s.key, &[], format!("{}_{key}", class.unwrap_or("all")), estimate));
            }
            rows.push(row);
        }
        section = section.table(table(title.to_owned(), caption.clone(), head(), rows));
    }
    Ok(e.outcome(points, claims, section))
}

/// A fraction of a class, or of all.
type Fraction = fn(&Start, Option<&str>) -> Option<f64>;

/// The packets of which Table III gives fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// All that the flows produced.
    All,
    /// The flows' first 30 s.
    First30s,
    /// Of these, what came after the first report.
    AfterResponse,
}

impl Counting {
    fn of(tools: &Tools<'_>) -> Counting {
        match (tools.reading.has(FIRST_30_S), tools.reading.has(AFTER_RESPONSE)) {
            (true, _) => Counting::First30s,
            (_, true) => Counting::AfterResponse,
            _ => Counting::All,
        }
    }

    /// Title, key in points, number.
    fn shown(self) -> (&'static str, &'static str, Fraction) {
        match self {
            Counting::All => ("Fraction lost, of all packets", "lost_fraction", lost),
            Counting::First30s => {
                ("Fraction lost, of the packets of a flow's first 30 s", "lost_fraction_30s", young_lost)
            }
            Counting::AfterResponse => {
                ("Fraction lost, of those after the first report", "lost_fraction_after_response", late_lost)
            }
        }
    }
}

/// Lost / produced of a class, or of all.
fn lost(run: &Start, class: Option<&str>) -> Option<f64> {
    match class {
        Some(class) => class_of(run, class)?.lost(),
        None => {
            let (lost, produced) = run.classes.iter().fold((0, 0), |(l, p), c| (l + c.overflowed, p + c.produced));
            (produced > 0).then(|| lost as f64 / produced as f64)
        }
    }
}

/// The same of what flows produced in their first 30 s.
fn young_lost(run: &Start, class: Option<&str>) -> Option<f64> {
    let classes = run.classes.iter().filter(|c| class.is_none_or(|name| c.name == name));
    let (lost, produced) = classes.map(ClassStart::young).fold((0, 0), |(l, p), (a, b)| (l + a, p + b));
    (produced > 0).then(|| lost as f64 / produced as f64)
}

/// The same from the first report on.
fn late_lost(run: &Start, class: Option<&str>) -> Option<f64> {
    let classes = run.classes.iter().filter(|c| class.is_none_or(|name| c.name == name));
    let (lost, produced) = classes.map(ClassStart::after_response).fold((0, 0), |(l, p), (a, b)| (l + a, p + b));
    (produced > 0).then(|| lost as f64 / produced as f64)
}

/// Seconds of media lost in a flow's first 30.
fn seconds_lost(run: &Start, class: &str) -> Option<f64> {
    young_lost(run, Some(class)).map(|fraction| fraction * YOUTH_S)
}

/// The claims of Table III, from whatever was measured.
pub(super) fn table3_claims(e: &Experiment, runs: &Runs, counting: Counting) -> Vec<Claim> {
    let mut claims = Vec::new();
    let (_, _, number) = counting.shown();
    let span = match counting {
        Counting::All => "of all packets",
        Counting::First30s => "of those of the first 30 s",
        Counting::AfterResponse => "of those after the first report",
    };
    for (more, fewer) in STRATEGIES.iter().zip(&STRATEGIES[1..]) {
        claims.push(
            e.claim(
                format!("{}-above-{}", more.key, fewer.key),
                format!("more packets are lost with {} than with {}, {span}", more.name, fewer.name),
                Bound::Above(0.0),
                "difference of the fractions lost, all classes",
            )
            .number(runs.paired(more, fewer, &|run| number(run, None), |more, fewer| more - fewer)),
        );
    }
    claims.push(
        e.claim(
            "iptv-loses-without",
            "television loses 0.025 of its packets without Quick-Start (ours: within a factor of two)",
            Bound::Within(0.0125, 0.05),
            format!("fraction lost, {span}"),
        )
        .number(runs.estimate(&NONE, &|run| number(run, Some(IPTV)))),
    );
    let iptv = |s: &Strategy| (s.name, runs.estimate(s, &|run| lost(run, Some(IPTV))));
    let what = "the largest fraction lost, with {at}";
    claims.push(
        e.claim("iptv-loses-none", "television loses no packet with Quick-Start", Bound::AtMost(0.0), what)
            .everywhere(STRATEGIES[1..].iter().map(iptv)),
    );
    // Negated and back: the interval of no drops at all has ended in -0 from the first results on.
    let dropped = |run: &Start| Some(-(run.queue_drops as f64));
    let drops = |s: &Strategy| (s.name, runs.estimate(s, &dropped).map(|e| scaled(e, -1.0)));
    let statement = "no packet is lost to overflow of a terminal's uplink queue of 1,000 packets";
    let what = "packets dropped there in a run, the most of all, with {at}";
    claims.push(
        e.claim("uplink-queues-lose-none", statement, Bound::AtMost(0.0), what)
            .everywhere(STRATEGIES.iter().map(drops)),
    );
    claims
}
