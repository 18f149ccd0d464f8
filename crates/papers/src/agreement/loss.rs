//! One TCP alone while each packet is lost with the same probability, from 1e-5 to 0.4: beside formulas, ns-2, and in real
//! time the kernel's TCP.

use super::compare::{Deviation, Theirs, median};
use super::theory::random_loss_constant;
use crate::builtin::{base, ours, with};
use crate::figure::{Abscissa, Numbers, curve, scaled, table, with_doubts};
use crate::{Bench, Bound, Claim, Effort, Experiment, Outcome, Tools};
use fairpace_control::{Equation, TcpPath};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::study::{Case, Cell, Job, Measure, Measurements, Sampling, Study};
use fairpace_lab::worlds::as_the_kernel;
use fairpace_report::{Axis, Chart, Series};
use fairpace_scenario::{LossSpec, Record, Scenario, Time};
use fairpace_units::{Bytes, Duration, Probability};
use serde::{Deserialize, Serialize};

/// The losses.
const P: [f64; 12] = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4];
/// The losses of the runs in real time, which last a minute.
const P_REAL: [f64; 8] = [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4];
/// Up to this loss the law of the square root holds: windows of a dozen packets and more.
const SMALL: f64 = 3e-3;
const APART: f64 = 0.1;

/// A TCP: its controller, its name in ns-2's table, and in charts.
const TCPS: [(&str, &str, &str); 3] =
    [("tcp-reno", "Reno", "Reno"), ("tcp-newreno", "Newreno", "NewReno"), ("tcp-sack", "Sack1", "SACK")];

/// The measurements of one run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Sender {
    sent_pps: f64,
    goodput_pps: f64,
    /// Cuts of the window, of all segments sent, and loss indications.
    p_cuts: f64,
    p_ind: f64,
    /// Of the cuts, those by timeout.
    timeout_share: f64,
    /// While there was an RTT estimate; none without any.
    rtt_s: Option<f64>,
    rto_s: Option<f64>,
    cwnd_pkts: Option<f64>,
    invalid: Vec<String>,
}

const MEASURE: Measure<Sender> = Measure { name: "agreement loss", of: watch };

fn watch(job: &Job<'_>) -> Result<Sender, RunError> {
    let run = job.run(Record::default())?;
    let Some(flow) = run.report.flows.first() else { return Ok(Sender::default()) };
    let Some(tcp) = flow.tcp.map(|t| t.measured) else { return Ok(Sender::default()) };
    let (c, seconds) = (tcp.counters, flow.window.as_secs_f64());
    let sent = flow.measured.sent.packets.as_f64();
    let cuts = (c.fast_retransmits + c.timeouts) as f64;
    let time = |t: Option<Duration>| t.map(|t| t.as_secs_f64());
    Ok(Sender {
        sent_pps: sent / seconds,
        goodput_pps: flow.goodput_pps(),
        p_cuts: cuts / sent,
        p_ind: c.loss_indications() as f64 / sent,
        timeout_share: if cuts > 0.0 { c.timeouts as f64 / cuts } else { 0.0 },
        rtt_s: time(tcp.mean_srtt()),
        rto_s: time(tcp.mean_rto()),
        cwnd_pkts: tcp.mean_cwnd_while_estimated(),
        invalid: run.summary.emulated.map_or(Vec::new(), |e| e.invalid),
    })
}

type Number = fn(&Sender) -> Option<f64>;

/// The columns of ns-2's table.
const COLUMNS: [(&str, Number); 7] = [
    ("sent_pps", |s| Some(s.sent_pps)),
    ("goodput_pps", |s| Some(s.goodput_pps)),
    ("p_cuts", |s| Some(s.p_cuts)),
    ("timeout_share", |s| Some(s.timeout_share)),
    ("rtt_s", |s| s.rtt_s),
    ("rto_s", |s| s.rto_s),
    ("cwnd_pkts", |s| s.cwnd_pkts),
];

const TABLE: &str = include_str!("../../../../reference/ns2/tcp_loss.csv");

/// ns-2's number.
fn ns2(variant: &str, p: f64, column: &str) -> Option<Theirs> {
    let mut lines = TABLE.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next()?;
    let place = |name: &str| head.iter().position(|h| *h == name);
    let is_row = |row: &Vec<&str>| row[0] == variant && row[1].parse().is_ok_and(|x: f64| (x - p).abs() <= 1e-9 * p);
    let row = lines.find(is_row)?;
    let number = |name: &str| row.get(place(name)?)?.parse::<f64>().ok();
    let seeds = number("seeds")? as usize;
    Some(Theirs { mean: number(column)?, sd: number(&format!("{column}_std")), seeds })
}

/// The simulated run of a TCP at a loss: a hundred losses at least, and longer where timeouts make the rate vary.
fn simulated(base: &Scenario, controller: &str, p: f64, effort: Effort) -> Scenario {
    let seconds = if p >= 0.05 { 5_000.0 } else { (100.0 / (13.1 * p.sqrt())).max(500.0) };
    let seconds = if effort == Effort::Quick { (seconds / 10.0).max(200.0) } else { seconds };
    with(base, |s| {
        s.path.loss = LossSpec::random(p);
        s.duration = Time::seconds(100.0 + seconds);
        controller.clone_into(&mut s.flows[0].controller);
    })
}

/// The same as the kernel has it, for a minute.
fn as_kernel(base: &Scenario, controller: &str, p: f64) -> Scenario {
    let scenario = with(base, |s| {
        s.path.loss = LossSpec::random(p);
        (s.warmup, s.duration) = (Time::seconds(10.0), Time::seconds(70.0));
        controller.clone_into(&mut s.flows[0].controller);
        s.flows[0].tcp = None;
    });
    as_the_kernel(&scenario).unwrap_or_else(|e| ours(&e)).0
}

pub(super) fn run(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let effort = bench.effort();
    let sim = bench.world().is_sim();
    let study =
        |cases, seeds| Study { name: e.id.to_owned(), measure: MEASURE, cases, sampling: Sampling::Count(seeds) };
    let mut emulated = None;
    if !sim {
        // The kernel's Reno is NewReno.
        let case = |c: &str, p: f64| Case::new(format!("{c}-as-kernel"), p, as_kernel(&base, c, p));
        let cases: Vec<Case> = TCPS[1..].iter().flat_map(|(c, ..)| P_REAL.map(|p| case(c, p))).collect();
        let seeds = match effort {
            Effort::Seeds(n) => n,
            Effort::Quick => 1,
            Effort::Usual | Effort::Full => 3,
        };
        let kernel = study(cases.clone(), seeds).run(bench)?;
        emulated = Some((kernel, study(cases, 20).simulate(bench)?));
    }
    let cases = TCPS.iter().flat_map(|(c, ..)| P.map(|p| Case::new(*c, p, simulated(&base, c, p, effort)))).collect();
    let seeds = match effort {
        Effort::Seeds(n) if sim => n,
        Effort::Quick => 2,
        _ => 8,
    };
    let found = study(cases, seeds).simulate(bench)?;
    let (mut numbers, mut beside_ns2) = (Numbers::default(), Vec::new());
    for (controller, theirs, name) in TCPS {
        for cell in found.of(controller) {
            let p = cell.at();
            let rate = cell.mean(|s| s.sent_pps);
            let over = |formula: Option<f64>| Some(scaled(rate?, 1.0 / formula?));
            let of_ns2 = Deviation::of(
                &cell.values(|s| Some(s.sent_pps)),
                ns2(theirs, p, "sent_pps").unwrap_or(Theirs::exact(0.0)),
            );
            beside_ns2.extend(of_ns2.map(|d| (name, p, d)));
            let words = [name.to_owned(), short(p), of_ns2.map_or("–".to_owned(), |d| d.text())];
            let timeouts = cell.mean(|s| s.timeout_share);
            numbers.row(
                words,
                (controller, &[("p", p)]),
                &[
                    ("sent_pps", rate),
                    ("ns2_deviation", of_ns2.map(|d| d.relative)),
                    ("over_square_root", over(Some(square_root(p)))),
                    ("over_padhye_of_losses", over(padhye(cell, |_| p))),
                    ("over_padhye_of_indications", over(padhye(cell, |s| s.p_ind))),
                    ("timeout_share", timeouts),
                ],
            );
        }
    }
    let head = [
        "TCP",
        "p",
        "from ns-2, %",
        "packets/s",
        "ours / ns-2 - 1",
        "over the square root",
        "over Padhye, p of losses",
        "over Padhye, p of indications",
        "timeouts of cuts",
    ];
    let rows = numbers.table(
        "Rates under random loss",
        format!("{}; {seeds} seeds, 95 % intervals; s: standard deviations", e.file),
        head,
    );
    let mut claims = claims(e, &found, &beside_ns2);
    let mut section = e.section().text(ABOUT).chart(chart(e, &found)).table(rows).table(columns(&found));
    if let Some((kernel, ours)) = &emulated {
        section = with_doubts(section, kernel.cells.iter().flat_map(|c| &c.runs).map(|r| &r.invalid));
        section = section.table(beside_the_kernel(e, kernel, ours, &mut numbers, &mut claims));
    }
    Ok(e.outcome(numbers.points, claims, section))
}

const ABOUT: &str = "The square root is 1.3098 / (R sqrt(p)), exact for independent small losses without timeouts; Padhye's is \
    the complex equation of docs/equations.md with the sender's own mean R and timeout and b = 1, with p the losses per packet, and \
    with p the loss indications per packet, which is what its derivation means.";

/// [Ott, Kemperman and Mathis 1996] at a round trip of 100 ms and a packet's transmission.
fn square_root(p: f64) -> f64 {
    random_loss_constant(1.0, 0.5) / ((0.1 + 40e-6) * p.sqrt())
}

/// Packets/s by the complex equation, fed with what the sender measured.
fn padhye(cell: &Cell<Sender>, p: impl Fn(&Sender) -> f64) -> Option<f64> {
    let mean = |number: Number| cell.estimate(number).map(|e| e.mean);
    let time = |s: f64| Duration::from_secs_f64(s);
    let (rtt, rto) = (time(mean(|s| s.rtt_s)?), time(mean(|s| s.rto_s)?));
    let path = TcpPath::new(Bytes::new(1_000), rtt, rto.max(rtt), 1.0).ok()?;
    let p = Probability::new(cell.mean(p)?.mean).ok()?;
    Some(Equation::Complex.rate(&path, p).as_bps() / 8e3)
}

fn claims(e: &Experiment, found: &Measurements<Sender>, beside: &[(&str, f64, Deviation)]) -> Vec<Claim> {
    let middle = median(beside.iter().map(|(.., d)| d.relative.mean.abs()).collect());
    let beyond = beside.iter().filter(|(.., d)| d.is_beyond(APART)).count();
    let small = found.cells.iter().filter(|c| c.at() <= SMALL);
    let ratio = |c: &Cell<Sender>| (c.at(), c.mean(|s| s.sent_pps).map(|r| scaled(r, 1.0 / square_root(c.at()))));
    let what = format!("median of |ours / ns-2's - 1| over {} rates", beside.len());
    vec![
        e.claim(
            "ns2-median",
            "the median deviation from ns-2's rates is at most 2 % (ours)",
            Bound::AtMost(0.02),
            what,
        )
        .exact(middle),
        e.claim(
            "ns2-within",
            "no rate is beyond 10 % of ns-2's unless its own seeds spread wider (ours)",
            Bound::AtMost(0.0),
            format!("rates, of {}, beyond 10 % and beyond their 95 % intervals", beside.len()),
        )
        .exact(beyond as f64),
        e.claim(
            "square-root",
            "up to p = 0.003 the rate is the square root's, to 10 % (ours)",
            Bound::Within(0.9, 1.1),
            "rate over 1.3098 / (R sqrt(p)), farthest from 1, at p = {at}",
        )
        .everywhere(small.map(ratio)),
    ]
}

const ABSCISSA: Abscissa = Abscissa::log("p", "packets lost at random", "");

/// Rates over Padhye's: ours and ns-2's.
fn chart(e: &Experiment, found: &Measurements<Sender>) -> Chart {
    let title = "Rate over the complex equation's with the p of losses, ours and ns-2's";
    let chart = Chart::new(title, ABSCISSA.axis(), Axis::new("rate over the equation's", ""))
        .caption(format!("{}; 95 % intervals", e.file));
    let of = |(controller, theirs, name): &(&'static str, &str, &str)| {
        let ratio = |c: &Cell<Sender>| Some(scaled(c.mean(|s| s.sent_pps)?, 1.0 / padhye(c, |_| c.at())?));
        let ours: Vec<(f64, Option<Estimate>)> = found.of(controller).map(|c| (c.at(), ratio(c))).collect();
        let ns2 = found.of(controller).filter_map(|c| {
            let rate = ns2(theirs, c.at(), "sent_pps")?;
            Some((c.at(), Some(Estimate::exact(rate.mean / padhye(c, |_| c.at())?))))
        });
        [
            curve(*name, *controller, ours),
            curve(format!("{name} of ns-2"), format!("ns2-{theirs}"), ns2.collect::<Vec<_>>()),
        ]
    };
    TCPS.iter().flat_map(of).filter(|line: &Series| !line.x.is_empty()).fold(chart, Chart::series)
}

/// Every other number beside ns-2's.
fn columns(found: &Measurements<Sender>) -> fairpace_report::Table {
    let mut rows = Vec::new();
    for (controller, theirs, name) in TCPS {
        for cell in found.of(controller) {
            let text = |(column, of): &(&str, Number)| {
                let theirs = ns2(theirs, cell.at(), column)?;
                Some(Deviation::of(&cell.values(of), theirs)?.text())
            };
            let cells = COLUMNS.iter().map(|c| text(c).unwrap_or_else(|| "–".to_owned()));
            rows.push([name.to_owned(), short(cell.at())].into_iter().chain(cells).collect());
        }
    }
    let head = ["TCP", "p"].into_iter().chain(COLUMNS.map(|(name, _)| name));
    table("All numbers beside ns-2's", "deviation in %, ± 95 % (standard deviations)", head, rows)
}

fn beside_the_kernel(
    e: &Experiment,
    kernel: &Measurements<Sender>,
    ours: &Measurements<Sender>,
    numbers: &mut Numbers,
    claims: &mut Vec<Claim>,
) -> fairpace_report::Table {
    let mut all = Vec::new();
    for (real, sim) in kernel.cells.iter().zip(&ours.cells) {
        let deviation = |of: Number| {
            let (theirs, ours) = (real.values(of), sim.values(of));
            Deviation::of(&ours, Theirs::of(&theirs)?)
        };
        let rate = deviation(|s| Some(s.sent_pps));
        all.extend(rate);
        let words = [real.scheme.clone(), short(real.at()), rate.map_or("–".to_owned(), |d| d.text())];
        let shares = [real, sim].map(|c| c.mean(|s| s.timeout_share));
        numbers.row(
            words,
            (&real.scheme, &[("p", real.at())]),
            &[
                ("simulated_pps", rate.map(|d| d.ours)),
                ("kernel_pps", real.mean(|s| s.sent_pps)),
                ("kernel_deviation", rate.map(|d| d.relative)),
                ("simulated_timeout_share", shares[1]),
                ("kernel_timeout_share", shares[0]),
            ],
        );
    }
    let middle = median(all.iter().map(|d| d.relative.mean.abs()).collect());
    let what = format!("median of |ours / the kernel's - 1| over {} rates", all.len());
    claims.push(
        e.claim(
            "kernel-median",
            "the median deviation from the kernel's rates is at most 5 % (ours)",
            Bound::AtMost(0.05),
            what,
        )
        .exact(middle),
    );
    let head = [
        "TCP",
        "p",
        "from the kernel's, %",
        "simulated, packets/s",
        "kernel, packets/s",
        "ours / kernel - 1",
        "timeouts of cuts, simulated",
        "kernel",
    ];
    numbers.table("Beside the kernel's TCP", "a minute each; 95 % intervals", head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement;
    use crate::small::runs;

    #[test]
    fn ns2_has_every_number_of_every_loss() {
        for (_, name, _) in TCPS {
            for p in P {
                for (column, _) in COLUMNS {
                    assert!(
                        ns2(name, p, column).is_some_and(|t| t.mean.is_finite() && t.seeds > 1),
                        "{name} {p} {column}"
                    );
                }
            }
        }
        assert_eq!(ns2("Reno", 0.5, "sent_pps"), None);
    }

    /// JSON has no word for what is not a number: such a point could not be read again, and its run was repeated each time.
    #[test]
    fn the_point_of_a_run_without_an_rtt_sample_can_be_read_again() {
        let e = agreement::EXPERIMENTS.iter().find(|e| e.id == "agreement.loss").unwrap();
        let scenario = with(&base(e), |s| (s.path.loss, s.duration) = (LossSpec::random(1.0), Time::seconds(200.0)));
        let mut bench = Bench::new(fairpace_lab::Hooks::default(), Effort::Quick).as_published();
        let study = Study {
            name: e.id.to_owned(),
            measure: MEASURE,
            cases: vec![Case::new("tcp-reno", 1.0, scenario)],
            sampling: Sampling::Count(1),
        };
        let found = study.simulate(&mut bench).unwrap();
        let sender: &Sender = &found.cells[0].runs[0];
        assert!(sender.sent_pps > 0.0 && sender.rtt_s.is_none());
        let kept: Sender = serde_json::from_str(&serde_json::to_string(sender).unwrap()).unwrap();
        assert_eq!((kept.sent_pps, kept.rtt_s), (sender.sent_pps, None));
    }

    #[test]
    fn a_short_run_gives_all_rates() {
        let e = agreement::EXPERIMENTS.iter().find(|e| e.id == "agreement.loss").unwrap();
        let outcome = runs(e, e.scenario.replace("200 Mbit/s", "4 Mbit/s"), Effort::Quick);
        assert!(outcome.points.iter().any(|p| p.metric == "over_padhye_of_losses"));
    }
}
