//! The 16 cases of Table 4 in three numbers [tpba §6.2, Figs. 29 to 31].

use super::{CASES, Case, MEASURE, Run, SHARED, TRIALS, Times, invalid, runs};
use crate::builtin::{base, with};
use crate::claim::exact;
use crate::figure::{brief, curve, point, table, text, with_doubts};
use crate::tpba::lda::set_up;
use crate::tpba::setup::{caption, each, estimate, parse, seeds};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools, World};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean, short};
use fairpace_report::{Axis, Chart, Series, Style, Table};
use std::rc::Rc;

/// One of them.
type Statistic = fn(&Differences) -> Option<Estimate>;

/// The three numbers of a case.
struct Differences {
    intra: Option<Estimate>,
    ave1: Option<Estimate>,
    ave2: Option<Estimate>,
}

pub(in crate::tpba) fn differences(
    e: &Experiment,
    bench: &mut Bench<'_>,
    _: &mut Tools<'_>,
) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, TRIALS, 1);
    let times = Times::of(bench.effort());
    let all = runs(e, bench, seeds, Some(&base(e)))?;
    let mut alone = all.iter().skip(CASES.len()).map(|c| &c.runs);
    let found: Vec<Differences> = CASES
        .iter()
        .zip(all.iter().map(|c| &c.runs))
        .map(|(c, runs)| {
            let (steady, until) = if c.is_slow() { (alone.next(), times.alone) } else { (Some(runs), times.change) };
            let steady: Vec<Option<(f64, f64)>> =
                steady.map_or(&[][..], Vec::as_slice).iter().map(|r| r.steady(c, until)).collect();
            let after: Vec<Option<f64>> = runs.iter().map(|r| r.after_change(times)).collect();
            let each: Vec<[Option<f64>; 3]> =
                steady.iter().zip(&after).map(|(s, a)| [s.map(|s| s.0), s.map(|s| s.1), *a]).collect();
            let of = |i: usize| Estimate::of(&each.iter().filter_map(|x| x[i]).collect::<Vec<f64>>());
            Differences { intra: of(0), ave1: of(1), ave2: of(2) }
        })
        .collect();
    let scheme = |name: &'static str| CASES.iter().zip(&found).filter(move |(c, _)| c.scheme == name);
    let mut claims = Vec::new();
    for (key, name, i) in [("ave1", "delta R_ave1", 1), ("ave2", "delta R_ave2", 2)] {
        let of = |d: &Differences| if i == 1 { d.ave1 } else { d.ave2 };
        let means = |s: &'static str| scheme(s).map(|(_, d)| Some(of(d)?.mean)).collect::<Option<Vec<f64>>>();
        let (tpba, lda) = (means("tpba"), means("lda"));
        let both = tpba.as_ref().zip(lda.as_ref());
        claims.push(
            e.claim(
                format!("{key}-mean"),
                format!("{name}: TPBA's is below LDA's, on the average of their cases"),
                Bound::Below(0.0),
                "TPBA less LDA, kbit/s",
            )
            .number(both.and_then(|(t, l)| exact(mean(t) - mean(l)))),
        );
        let most = |of: &[f64]| of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
        claims.push(
            e.claim(
                format!("{key}-every"),
                format!("{name}: every case of TPBA's is below every case of LDA's"),
                Bound::Below(0.0),
                "TPBA's largest less LDA's smallest, kbit/s",
            )
            .number(both.and_then(|(t, l)| exact(most(t) - least(l)))),
        );
    }
    let (of_r_f, compared) = reduction(e, bench, seeds, times)?;
    claims.extend(of_r_f);
    let mut points: Vec<Point> = Vec::new();
    let mut rows = Vec::new();
    for (c, d) in CASES.iter().zip(&found) {
        rows.push(vec![c.name.to_owned(), text(d.intra), text(d.ave1), text(d.ave2)]);
        for (key, x) in [("delta_r_intra_kbps", d.intra), ("delta_r_ave1_kbps", d.ave1), ("delta_r_ave2_kbps", d.ave2)]
        {
            points.extend(point(c.name, &[], key, x));
        }
    }
    let mut section = e.section();
    let figures: [(&str, Statistic); 3] = [
        ("delta R_intra, the widest range of a flow's rate in the steady state", |d| d.intra),
        ("delta R_ave1, the difference of mean rates in the steady state", |d| d.ave1),
        ("delta R_ave2, the difference of mean rates after flow 4 has joined", |d| d.ave2),
    ];
    for (name, of) in figures {
        section = section.chart(comparison(e, bench.world(), name, seeds, &found, of));
    }
    let table = table(
        "The three numbers, kbit/s",
        format!("{seeds} seeds each, mean ± half-width of the 95 % interval"),
        ["case", "delta R_intra", "delta R_ave1", "delta R_ave2"],
        rows,
    );
    Ok(e.outcome(points, claims, with_doubts(section, invalid(&all)).table(table).table(compared)))
}

/// Cases of R_f = 3 and of 6 [tpba Table 4].
const REDUCTIONS: [(&str, &str, &str); 4] = [
    ("tpba", "TPBA-3-1-10-3", "TPBA-3-1-10-6"),
    ("ldaf", "LDAF-3-1-10-3", "LDAF-3-1-10-6"),
    ("lda-10", "LDA-3-1-10-3", "LDA-3-1-10-6"),
    ("lda-100", "LDA-3-1-100-3", "LDA-3-1-100-6"),
];
/// The queue that loses, packets: the 96 KiB of the other runs take all windows, and R_f reduces nothing where nothing is lost.
const SMALL_QUEUE: u64 = 50;
/// No difference: by so many kbit/s, 7 % of the fair share of 300.
const ALIKE_KBPS: f64 = 20.0;

/// "We also cannot observe a significant difference between the cases in which R_f is 3.0 and 6.0" [tpba §6.2].
fn reduction(
    e: &Experiment,
    bench: &mut Bench<'_>,
    seeds: usize,
    times: Times,
) -> Result<(Vec<Claim>, Table), RunError> {
    let case = |name: &str| CASES.iter().find(|c| c.name == name);
    let cases: Vec<&Case> = REDUCTIONS.iter().flat_map(|(_, a, b)| [case(a), case(b)]).flatten().collect();
    let scenarios: Vec<_> = cases
        .iter()
        .map(|c| {
            with(&parse(SHARED.0, SHARED.1), |s| {
                times.set(s);
                c.set(s);
                set_up(s, Some(SMALL_QUEUE), false);
            })
        })
        .collect();
    let all = each(e, bench, scenarios, seeds, MEASURE)?;
    // The three numbers of each seed, and the packets of flow 3 that are lost, in percent.
    type Found<'a> = (&'a Case, Vec<[Option<f64>; 3]>, Option<Estimate>);
    let found: Vec<Found<'_>> = cases
        .iter()
        .zip(&all)
        .map(|(c, cell)| {
            let of = |r: &Rc<Run>| {
                let steady = r.steady(c, times.change);
                [steady.map(|s| s.0), steady.map(|s| s.1), r.after_change(times)]
            };
            (*c, cell.runs.iter().map(of).collect(), estimate(&cell.runs, |r| Some(r.lost * 100.0)))
        })
        .collect();
    let numbers = [("intra", "delta R_intra"), ("ave1", "delta R_ave1"), ("ave2", "delta R_ave2")];
    let mut claims = Vec::new();
    for ((key, a, _), pair) in REDUCTIONS.iter().zip(found.chunks(2)) {
        let [(_, three, lost_3), (_, six, lost_6)] = pair else { continue };
        let why = format!(
            "Flow 3 loses {} % of its packets with 3 and {} % with 6, and each report of a loss takes R_f times it off the rate",
            brief(*lost_3),
            brief(*lost_6)
        );
        for (i, (number, name)) in numbers.iter().enumerate() {
            let pairs: Vec<f64> = three.iter().zip(six).filter_map(|(three, six)| Some(six[i]? - three[i]?)).collect();
            claims.push(
                e.claim(
                    format!("r-f-{number}-{key}"),
                    format!(
                        "{name}: where the queue loses, R_f of 6 makes no difference to {a} (ours: {ALIKE_KBPS} kbit/s)"
                    ),
                    Bound::Within(-ALIKE_KBPS, ALIKE_KBPS),
                    "R_f = 6 less R_f = 3, seed by seed, kbit/s",
                )
                .because(why.clone())
                .number(Estimate::of(&pairs)),
            );
        }
    }
    let rows = found.iter().map(|(c, each, lost)| {
        let of = |i: usize| text(Estimate::of(&each.iter().filter_map(|x| x[i]).collect::<Vec<f64>>()));
        vec![c.name.to_owned(), text(*lost), of(0), of(1), of(2)]
    });
    let table = table(
        format!("R_f of 3 and of 6 with a queue of {SMALL_QUEUE} packets, kbit/s"),
        format!("{seeds} seeds each, mean ± half-width of the 95 % interval"),
        ["case", "flow 3's packets lost (%)", "delta R_intra", "delta R_ave1", "delta R_ave2"],
        rows,
    );
    Ok((claims, table))
}

/// A number of every case, a colour per scheme.
fn comparison(
    e: &Experiment,
    world: World<'_>,
    name: &str,
    seeds: usize,
    found: &[Differences],
    of: Statistic,
) -> Chart {
    let mut means = Vec::new();
    let axis = Axis::new("case of Table 4: TPBA 1 to 5, LDAF 6 to 10, LDA 11 to 16", "");
    let what = name.split(',').next().unwrap_or(name);
    let mut chart = Chart::new("", axis, Axis::new(what, "kbit/s"));
    for scheme in ["tpba", "ldaf", "lda"] {
        let own = CASES.iter().zip(found).enumerate().filter(|(_, (c, _))| c.scheme == scheme);
        let places = own.map(|(i, (_, d))| (i as f64 + 1.0, of(d)));
        let line = Series { style: Style::Points, ..curve(scheme.to_uppercase(), scheme, places) };
        let average = if line.y.is_empty() { "–".to_owned() } else { short(mean(&line.y)) };
        means.push(format!("{} {average}", scheme.to_uppercase()));
        if !line.x.is_empty() {
            chart = chart.series(line);
        }
    }
    chart.title = format!("{name}: {} kbit/s on the average of their cases", means.join(", "));
    chart.caption(caption(e, world, &format!("{seeds} seeds per case; bars are 95 % intervals (Student's t)")))
}
