//! UDP without and with ARQ, and AIMD, over one wireless link [aimd §IV-D, Fig. 8].

use super::setup::{DROPPED, FlowStats, LATE, PACKETS, caption, measure, of_first, packets, seeds, wireless};
use crate::builtin::base;
use crate::figure::{Abscissa, Figure, Quantity, Scheme, brief, scaled};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::study::{Measurements, Number, largest};
use fairpace_scenario::{ArqKind, FlowSpec, RawScenario, SourceKind, SourceSpec, Speed};

/// The base station's queue for UDP, the packet under way included [aimd §IV-D].
const BUFFER: u32 = 10;
/// Seeds per point.
const SEEDS: usize = 10;
const SLOTS_PER_SECOND: f64 = 200.0;
/// 1 - p_e of the scenario: what the link delivers, packets per slot.
const FULL: f64 = 0.9;

const FIG8: Figure<Vec<FlowStats>> = Figure {
    x: Abscissa::new("source_packets_per_slot", "source rate", "packets per slot"),
    places: &[0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1],
    schemes: &[
        Scheme::new("udp", "UDP without ARQ", "").setting(|s| udp(s, ArqKind::None)),
        Scheme::new("udp-arq", "UDP with ARQ", "").setting(|s| udp(s, ArqKind::Persistent)),
        Scheme::new("aimd", "AIMD, always something to send", "").setting(always_full),
        Scheme::new("aimd-source", "AIMD, a source of that rate", "").setting(short_buffer),
    ],
    vary: set_rate,
    quantities: &[GOODPUT, LOSS, DROPPED, LATE],
};
const GOODPUT: Quantity<Vec<FlowStats>> =
    of_first("goodput_packets_per_slot", "goodput", "packets per slot", |run| run.first().map(FlowStats::goodput));
const LOSS: Quantity<Vec<FlowStats>> = of_first("loss", "loss", PACKETS, |run| run.first().map(FlowStats::failed));

fn set_rate(s: &mut RawScenario, packets_per_slot: f64) {
    let rate = Some(Speed::packets_per_second(packets_per_slot * SLOTS_PER_SECOND));
    for flow in &mut s.flows {
        flow.source = Some(SourceSpec { kind: SourceKind::Constant, rate: rate.clone(), packets: None });
    }
}

/// AIMD with as much to send as it may: the paper's.
fn always_full(s: &mut RawScenario) {
    s.flows.iter_mut().for_each(|f| f.source = None);
}

/// Up to ten packets of the source wait at the sender.
fn short_buffer(s: &mut RawScenario) {
    s.flows.iter_mut().for_each(|f| f.send_buffer = Some(packets(BUFFER)));
}

/// UDP at the source's rate in place of AIMD.
fn udp(s: &mut RawScenario, arq: ArqKind) {
    (wireless(s).scheme, wireless(s).buffer) = (arq, packets(BUFFER));
    for flow in &mut s.flows {
        flow.parameters.clear();
        let rate = flow.source.take().and_then(|source| source.rate);
        *flow = FlowSpec { controller: "constant".to_owned(), rate, ..flow.clone() };
    }
}

pub(super) fn fig8(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let seeds = seeds(bench, SEEDS);
    let found = measure(e, FIG8.cases(&base(e)), seeds, bench)?;
    let got = brief(found.estimate("aimd", 1.0, GOODPUT.get));
    let best = brief(largest(found.along("udp-arq", GOODPUT.get)).1);
    let late = brief(found.estimate("aimd", 1.0, LOSS.get).map(|e| scaled(e, 100.0)));
    let goodput = format!("AIMD gets {got} packets per slot in time, UDP with ARQ {best} at its best source rate");
    let loss = format!(
        "Of AIMD's packets {late} % are late or lost; UDP with ARQ loses less at low rates, and far more at high ones"
    );
    let caption = caption(e, seeds);
    let section = e.section().text(
        "Goodput is what comes with a delay jitter of at most D = 10 slots. Loss is what is dropped on the way, or comes \
         later than that; of AIMD with a source, also what its send buffer has no room for.",
    );
    let section = FIG8.shown_in(section, &found, &GOODPUT, goodput, &caption);
    let section = FIG8.shown_in(section, &found, &LOSS, loss, &caption);
    let section = section.table(FIG8.table(&found, &DROPPED, "Dropped, as a part of the packets sent"));
    Ok(e.outcome(FIG8.points(&found), claims(e, &found), section))
}

fn claims(e: &Experiment, found: &Measurements<Vec<FlowStats>>) -> Vec<Claim> {
    let lead = |udp: &str, number: Number<Vec<FlowStats>>| {
        FIG8.places.iter().map(|&rate| (rate, found.difference("aimd", udp, rate, number))).collect::<Vec<_>>()
    };
    let mut claims = Vec::new();
    for (key, name, why_goodput, why_loss) in
        [("udp", "UDP without ARQ", at_full_rate(found), ""), ("udp-arq", "UDP with ARQ", String::new(), LOW_RATES)]
    {
        let statement = format!("AIMD's goodput is above that of {name}, at every source rate");
        let what = "least AIMD - UDP, packets per slot, at a source rate of {at} packets per slot";
        claims.push(
            e.claim(format!("goodput-{key}"), statement, Bound::Above(0.0), what)
                .because(why_goodput)
                .everywhere(lead(key, GOODPUT.get)),
        );
        let statement = format!("AIMD's loss is below that of {name}, at every source rate");
        claims.push(
            e.claim(format!("loss-{key}"), statement, Bound::Below(0.0), MOST)
                .because(why_loss)
                .everywhere(lead(key, LOSS.get)),
        );
    }
    let busy = lead("udp-arq", LOSS.get).into_iter().filter(|(rate, _)| *rate >= FULL);
    let statement = "AIMD's loss is below that of UDP with ARQ, at source rates from 1 - p_e on";
    claims.push(e.claim("loss-udp-arq-busy", statement, Bound::Below(0.0), MOST).everywhere(busy));
    let statement = "without ARQ UDP loses about p_e = 0.1 of its packets, at every source rate the link carries (ours: a tenth of that)";
    let what = "dropped or late, as a part of the packets sent, at a source rate of {at} packets per slot";
    let carried = FIG8.places.iter().filter(|rate| **rate <= 1.0);
    claims.push(
        e.claim("udp-loses-p-e", statement, Bound::Within(0.09, 0.11), what)
            .everywhere(carried.map(|&rate| (rate, found.estimate("udp", rate, LOSS.get)))),
    );
    let statement = "with ARQ UDP loses excessively from the mean throughput of the link on (ours: a twentieth)";
    let from_full = FIG8.places.iter().filter(|rate| **rate >= FULL);
    claims.push(
        e.claim("udp-arq-excessive", statement, Bound::AtLeast(0.05), what)
            .everywhere(from_full.map(|&rate| (rate, found.estimate("udp-arq", rate, LOSS.get)))),
    );
    let statement = "with B = rwnd none of AIMD's packets is dropped";
    let what = "dropped / sent, at {at} packets per slot";
    claims
        .push(e.claim("no-overflow", statement, Bound::AtMost(0.0), what).everywhere(found.along("aimd", DROPPED.get)));
    claims
}

const MOST: &str = "largest AIMD - UDP of packets dropped or late, at a source rate of {at} packets per slot";
/// The numbers of UDP without ARQ and of AIMD where UDP sends a packet in each slot.
fn at_full_rate(found: &Measurements<Vec<FlowStats>>) -> String {
    let of = |scheme, y: Quantity<Vec<FlowStats>>| brief(found.estimate(scheme, 1.0, y.get));
    format!(
        "At full rate UDP without ARQ delivers {} packets per slot in time and loses {} of what it sends, AIMD {} and {}; of AIMD's \
         packets {} are late, of UDP's {}",
        of("udp", GOODPUT),
        of("udp", LOSS),
        of("aimd", GOODPUT),
        of("aimd", LOSS),
        of("aimd", LATE),
        of("udp", LATE)
    )
}

const LOW_RATES: &str = "At low rates the queue is short, and UDP with ARQ loses next to nothing. AIMD, which here always has something to \
                         send, keeps the queue as long as the promised outage allows; with a source of the same rate it \
                         loses as little";
