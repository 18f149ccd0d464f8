//! UDP without and with ARQ, and AIMD, over one wireless link [aimd §IV-D, Fig. 8].

use super::{D, Got, Link, OUTAGE, PERSISTENT, R, START, base, caption, measure, packets, seeds, set_windows, with};
use crate::figure::{Abscissa, Figure, Quantity, Scheme};
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_analysis::qos;
use fairpace_lab::RunError;
use fairpace_lab::study::{Case, Number};
use fairpace_scenario::{ArqKind, FlowSpec, Scenario, SourceKind, SourceSpec, Speed};

/// Source rates, packets per slot.
const RATES: [f64; 11] = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1];
/// p_e, percent.
const PERCENT: f64 = 10.0;
/// The base station's queue for UDP, the packet under way included [aimd §IV-D].
const BUFFER: u32 = 10;
/// Seeds per point.
const SEEDS: usize = 10;
const SLOTS_PER_SECOND: f64 = 200.0;

const FIG8: Figure<Vec<Got>> = Figure {
    x: Abscissa::new("source_packets_per_slot", "source rate", "packets per slot"),
    places: &RATES,
    schemes: &[
        Scheme::new("udp", "UDP without ARQ", ""),
        Scheme::new("udp-arq", "UDP with ARQ", ""),
        Scheme::new("aimd", "AIMD, always something to send", ""),
        Scheme::new("aimd-source", "AIMD, a source of that rate", ""),
    ],
    vary: |_, _| (),
    quantities: &[GOODPUT, LOSS, DROPPED, OUTAGES],
};
const GOODPUT: Quantity<Vec<Got>> =
    Quantity { key: "goodput_packets_per_slot", label: "goodput", unit: "packets per slot", get: OF_GOODPUT };
const LOSS: Quantity<Vec<Got>> = Quantity { key: "loss", label: "loss", unit: "part of the packets", get: OF_LOSS };
const DROPPED: Quantity<Vec<Got>> =
    Quantity { key: "dropped", label: "dropped", unit: "part of the packets", get: OF_DROPPED };
const OUTAGES: Quantity<Vec<Got>> = Quantity {
    key: "outage",
    label: "delay outage",
    unit: "part of the packets",
    get: |run| Some(run.first()?.outage),
};

const OF_GOODPUT: Number<Vec<Got>> = |run| run.first().map(Got::goodput);

const OF_LOSS: Number<Vec<Got>> = |run| run.first().map(Got::failed);

const OF_DROPPED: Number<Vec<Got>> = |run| run.first().map(|g| g.lost);

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

pub(super) fn fig8(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = seeds(bench, SEEDS);
    let case = |sender: Sender, rate: f64| Case::new(sender.key(), rate, sender.scenario(&base, rate));
    let cases = SENDERS.iter().flat_map(|sender| RATES.map(|rate| case(*sender, rate))).collect();
    let found = measure(e, cases, seeds, bench)?;
    let lead =
        |udp: &str, number: Number<Vec<Got>>| RATES.map(|rate| (rate, found.difference("aimd", udp, rate, number)));
    let mut claims = Vec::new();
    for (key, name, why_goodput, why_loss) in
        [("udp", "UDP without ARQ", FULL_RATE, ""), ("udp-arq", "UDP with ARQ", "", LOW_RATES)]
    {
        let statement = format!("AIMD's goodput is above that of {name}, at every source rate");
        let what = "least AIMD - UDP, packets per slot, at a source rate of {at} packets per slot";
        claims.push(
            e.claim(format!("goodput-{key}"), statement, Bound::Above(0.0), what)
                .because(why_goodput)
                .everywhere(lead(key, OF_GOODPUT)),
        );
        let statement = format!("AIMD's loss is below that of {name}, at every source rate");
        claims.push(
            e.claim(format!("loss-{key}"), statement, Bound::Below(0.0), MOST)
                .because(why_loss)
                .everywhere(lead(key, OF_LOSS)),
        );
    }
    let busy = lead("udp-arq", OF_LOSS).into_iter().filter(|(rate, _)| *rate >= 1.0 - PERCENT / 100.0);
    let statement = "AIMD's loss is below that of UDP with ARQ, at source rates from 1 - p_e on";
    claims.push(e.claim("loss-udp-arq-busy", statement, Bound::Below(0.0), MOST).everywhere(busy));
    let (statement, what) =
        ("with B = rwnd none of AIMD's packets is dropped", "dropped / sent, at {at} packets per slot");
    claims.push(
        e.claim("no-overflow", statement, Bound::AtMost(0.0), what)
            .everywhere(RATES.map(|rate| (rate, found.estimate("aimd", rate, OF_DROPPED)))),
    );
    let got = found.estimate("aimd", 1.0, OF_GOODPUT).map_or(f64::NAN, |e| e.mean);
    let best = RATES.iter().filter_map(|r| Some(found.estimate("udp-arq", *r, OF_GOODPUT)?.mean)).fold(0.0, f64::max);
    let late = found.estimate("aimd", 1.0, OF_LOSS).map_or(f64::NAN, |e| e.mean * 100.0);
    let title = format!("AIMD gets {got:.3} packets per slot in time, UDP with ARQ {best:.3} at its best source rate");
    let lossy = format!(
        "Of AIMD's packets {late:.2} % are late or lost; UDP with ARQ loses less at low rates, and far more at high ones"
    );
    let caption = caption(e, seeds);
    let section = e
        .section()
        .text(
            "Goodput is what comes with a delay jitter of at most D = 10 slots. Loss is what is dropped on the way, or comes \
             later than that; of AIMD with a source, also what its send buffer has no room for.",
        )
        .chart(FIG8.chart(&found, &GOODPUT, title, &caption))
        .chart(FIG8.chart(&found, &LOSS, lossy, &caption))
        .table(FIG8.table(&found, &GOODPUT, "Goodput in packets per slot"))
        .table(FIG8.table(&found, &LOSS, "Loss: dropped or late, as a part of the packets sent"))
        .table(FIG8.table(&found, &DROPPED, "Dropped, as a part of the packets sent"));
    Ok(e.outcome(FIG8.points(&found), claims, section))
}

const MOST: &str = "largest AIMD - UDP of packets dropped or late, at a source rate of {at} packets per slot";
const FULL_RATE: &str = "At full rate UDP without ARQ delivers 1 - p_e = 0.90 packets per slot, none of them late; AIMD delivers as many, \
                         of which 0.4 % are late. UDP loses a tenth of its packets for it";
const LOW_RATES: &str = "At low rates the queue is short, and UDP with ARQ loses next to nothing. AIMD, which here always has something to \
                         send, keeps the queue as long as the promised outage allows; with a source of the same rate it \
                         loses as little";
