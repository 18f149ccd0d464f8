//! UDP without and with ARQ, and AIMD, over one wireless link [aimd §IV-D, Fig. 8].

use super::{
    D, Got, Link, OUTAGE, PERSISTENT, R, Runs, START, base, caption, measure, packets, point, seeds, set_windows, text,
    with,
};
use crate::bench::{Bench, largest, smallest};
use crate::show;
use crate::{Bound, Claim, Experiment, Outcome, Tools};
use fairpace_analysis::qos;
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_report::{Axis, Chart, Series, Table};
use fairpace_scenario::{ArqKind, FlowSpec, Scenario, SourceKind, SourceSpec, Speed};

/// Source rates, packets per slot.
const RATES: [f64; 11] = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1];
/// p_e, percent.
const PERCENT: f64 = 10.0;
/// What waits at the base station for UDP, the packet under way included [aimd §IV-D].
const BUFFER: u32 = 10;
/// Seeds per point.
const SEEDS: usize = 10;
const SLOTS_PER_SECOND: f64 = 200.0;

/// A number of a flow, and what it is called.
type Number = (&'static str, fn(&Got) -> f64);

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sender {
    /// UDP, failed packets are lost.
    Udp,
    /// UDP, failed packets are sent again.
    UdpArq,
    /// AIMD with as much to send as it may: the paper's.
    Aimd,
    /// AIMD with a source of that rate, of which up to ten packets wait at the sender.
    AimdSource,
}

const SENDERS: [Sender; 4] = [Sender::Udp, Sender::UdpArq, Sender::Aimd, Sender::AimdSource];

impl Sender {
    fn key(self) -> &'static str {
        match self {
            Sender::Udp => "udp",
            Sender::UdpArq => "udp-arq",
            Sender::Aimd => "aimd",
            Sender::AimdSource => "aimd-source",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sender::Udp => "UDP without ARQ",
            Sender::UdpArq => "UDP with ARQ",
            Sender::Aimd => "AIMD, always something to send",
            Sender::AimdSource => "AIMD, a source of that rate",
        }
    }

    fn scenario(self, base: &Scenario, rate: f64) -> Scenario {
        let rate = Speed::packets_per_second(rate * SLOTS_PER_SECOND);
        with(base, |s| {
            let link = if self == Sender::Udp { Link { scheme: ArqKind::None, memory: 0.0 } } else { PERSISTENT };
            link.set(s, PERCENT);
            match self {
                Sender::Udp | Sender::UdpArq => {
                    super::wireless(s).buffer = packets(BUFFER);
                    for flow in &mut s.flows {
                        *flow = udp(flow, rate.clone());
                    }
                }
                Sender::Aimd => set_windows(s, &[window()]),
                Sender::AimdSource => {
                    set_windows(s, &[window()]);
                    for flow in &mut s.flows {
                        let source = SourceSpec { kind: SourceKind::Constant, rate: Some(rate.clone()), packets: None };
                        flow.source = Some(source);
                        flow.send_buffer = Some(packets(BUFFER));
                    }
                }
            }
        })
    }
}

/// The largest window by eq. (3).
fn window() -> u32 {
    let process = PERSISTENT.process(PERCENT);
    process.and_then(|p| qos::largest_window(&p, R, D, OUTAGE, START)).unwrap_or(R)
}

/// UDP in a flow's place.
fn udp(flow: &FlowSpec, rate: Speed) -> FlowSpec {
    FlowSpec {
        controller: "constant".to_owned(),
        rate: Some(rate),
        name: flow.name.clone(),
        group: flow.group.clone(),
        user: flow.user,
        tolerable_jitter: flow.tolerable_jitter.clone(),
        access: flow.access.clone(),
        ..FlowSpec::default()
    }
}

/// Everything measured: who, at which rate.
struct Grid(Vec<(Sender, f64, Runs)>);

impl Grid {
    fn estimate(&self, sender: Sender, rate: f64, number: fn(&Got) -> f64) -> Option<Estimate> {
        self.runs(sender, rate)?.flow(0, number)
    }

    fn runs(&self, sender: Sender, rate: f64) -> Option<&Runs> {
        self.0.iter().find(|(s, r, _)| *s == sender && (r - rate).abs() < 1e-9).map(|(_, _, runs)| runs)
    }

    /// AIMD's number - UDP's, seed by seed, at that rate.
    fn lead(&self, udp: Sender, rate: f64, number: fn(&Got) -> f64) -> Option<Estimate> {
        let of = |sender| {
            let runs = self.runs(sender, rate)?;
            Some(runs.0.iter().map(|run| run.first().map_or(f64::NAN, number)).collect::<Vec<f64>>())
        };
        let both: Vec<f64> = of(Sender::Aimd)?.iter().zip(of(udp)?).map(|(a, u)| a - u).collect();
        Estimate::of(&both)
    }
}

pub(super) fn fig8(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = seeds(bench, SEEDS);
    let cells: Vec<(Sender, f64)> = SENDERS.iter().flat_map(|s| RATES.map(|r| (*s, r))).collect();
    let scenarios: Vec<Scenario> = cells.iter().map(|(sender, rate)| sender.scenario(&base, *rate)).collect();
    let runs = measure(e, &scenarios, seeds, bench)?;
    let grid = Grid(cells.into_iter().zip(runs).map(|((sender, rate), runs)| (sender, rate, runs)).collect());
    let mut claims = Vec::new();
    for (udp, why_goodput, why_loss) in [(Sender::Udp, FULL_RATE, ""), (Sender::UdpArq, "", LOW_RATES)] {
        let (key, name) = (udp.key(), udp.name());
        let (at, least) = smallest(RATES.iter().map(|r| (*r, grid.lead(udp, *r, Got::goodput))));
        claims.push(
            Claim::check(
                format!("{}/goodput-{key}", e.id),
                format!("AIMD's goodput is above that of {name}, at every source rate"),
                least,
                Bound::Above(0.0),
                format!("least AIMD - UDP, packets per slot, at a source rate of {at} packets per slot"),
            )
            .if_it_fails(why_goodput),
        );
        let (at, most) = largest(RATES.iter().map(|r| (*r, grid.lead(udp, *r, Got::failed))));
        claims.push(
            Claim::check(
                format!("{}/loss-{key}", e.id),
                format!("AIMD's loss is below that of {name}, at every source rate"),
                most,
                Bound::Below(0.0),
                format!("largest AIMD - UDP of packets dropped or late, at a source rate of {at} packets per slot"),
            )
            .if_it_fails(why_loss),
        );
    }
    let busy = || RATES.iter().filter(|r| **r >= 1.0 - PERCENT / 100.0);
    let (at, most) = largest(busy().map(|r| (*r, grid.lead(Sender::UdpArq, *r, Got::failed))));
    claims.push(Claim::check(
        format!("{}/loss-udp-arq-busy", e.id),
        "AIMD's loss is below that of UDP with ARQ, at source rates from 1 - p_e on",
        most,
        Bound::Below(0.0),
        format!("largest AIMD - UDP of packets dropped or late, at a source rate of {at} packets per slot"),
    ));
    let (at, lost) = largest(RATES.iter().map(|r| (*r, grid.estimate(Sender::Aimd, *r, |g| g.lost))));
    claims.push(Claim::check(
        format!("{}/no-overflow", e.id),
        "with B = rwnd none of AIMD's packets is dropped",
        lost,
        Bound::AtMost(0.0),
        format!("dropped / sent, at {at} packets per slot"),
    ));
    let goodput = grid.estimate(Sender::Aimd, 1.0, Got::goodput);
    let best =
        RATES.iter().filter_map(|r| Some(grid.estimate(Sender::UdpArq, *r, Got::goodput)?.mean)).fold(0.0, f64::max);
    let title = format!(
        "AIMD gets {:.3} packets per slot in time, UDP with ARQ {best:.3} at its best source rate",
        goodput.map_or(f64::NAN, |e| e.mean)
    );
    let late = grid.estimate(Sender::Aimd, 1.0, Got::failed).map_or(f64::NAN, |e| e.mean * 100.0);
    let section = show::section(e)
        .text(
            "Goodput is what comes with a delay jitter of at most D = 10 slots. Loss is what is dropped on the way, or comes \
             later than that; of AIMD with a source, also what its send buffer has no room for."
                .to_owned(),
        )
        .chart(chart(e, &grid, seeds, title, "goodput", "packets per slot", Got::goodput))
        .chart(chart(
            e,
            &grid,
            seeds,
            format!("Of AIMD's packets {late:.2} % are late or lost; UDP with ARQ loses less at low rates, and far more at high ones"),
            "loss",
            "part of the packets",
            Got::failed,
        ))
        .table(table(e, &grid, "Goodput in packets per slot", Got::goodput))
        .table(table(e, &grid, "Loss: dropped or late, as a part of the packets sent", Got::failed))
        .table(table(e, &grid, "Dropped, as a part of the packets sent", |g| g.lost));
    let mut points = Vec::new();
    for (sender, rate, runs) in &grid.0 {
        let x = [("source_packets_per_slot", *rate)];
        let numbers: [Number; 4] = [
            ("goodput_packets_per_slot", Got::goodput),
            ("loss", Got::failed),
            ("dropped", |g| g.lost),
            ("outage", |g| g.outage),
        ];
        for (metric, number) in numbers {
            points.extend(point(sender.key(), &x, metric, runs.flow(0, number)));
        }
    }
    Ok(show::outcome(e, points, claims, section))
}

const FULL_RATE: &str = "At full rate UDP without ARQ delivers 1 - p_e = 0.90 packets per slot, none of them late; AIMD delivers as many, \
                         of which 0.4 % are late. UDP loses a tenth of its packets for it";
const LOW_RATES: &str = "At low rates the queue is short, and UDP with ARQ loses next to nothing. AIMD, which here always has something to \
                         send, keeps the queue as long as the promised outage allows; with a source of the same rate it \
                         loses as little";

fn chart(
    e: &Experiment,
    grid: &Grid,
    seeds: u64,
    title: String,
    label: &str,
    unit: &str,
    number: fn(&Got) -> f64,
) -> Chart {
    let mut chart = Chart::new(title, Axis::new("source rate", "packets per slot"), Axis::new(label, unit))
        .caption(caption(e, seeds));
    for sender in SENDERS {
        let known: Vec<(f64, Estimate)> =
            RATES.iter().filter_map(|r| Some((*r, grid.estimate(sender, *r, number)?))).collect();
        let of = |number: fn(&Estimate) -> f64| known.iter().map(|(_, e)| number(e)).collect::<Vec<f64>>();
        chart = chart.series(
            Series::sweep(sender.name(), sender.key(), known.iter().map(|k| k.0).collect(), of(|e| e.mean))
                .interval(of(Estimate::low), of(Estimate::high)),
        );
    }
    chart
}

fn table(e: &Experiment, grid: &Grid, title: &str, number: fn(&Got) -> f64) -> Table {
    let mut head = vec!["source rate (packets per slot)".to_owned()];
    head.extend(SENDERS.map(|s| s.name().to_owned()));
    let row = |rate: &f64| {
        let cells = SENDERS.map(|s| text(grid.estimate(s, *rate, number)));
        std::iter::once(rate.to_string()).chain(cells).collect()
    };
    Table {
        title: title.to_owned(),
        caption: format!("{}; mean ± half-width of the 95 % interval", e.file),
        head,
        rows: RATES.iter().map(row).collect(),
    }
}
