//! Application data units: how far apart they are complete at the receiver.
//! Source: [tpba §4]: j_A, the time between the arrivals of data units, shows what a change of the transport does to them.
//!
//! Readings: an arrival is when the last byte of the data unit is there, whatever way it took; one of which a packet is
//! lost never arrives. j_A is the time since the arrival before it. The gap belongs to a switch if the two took
//! different ways.

use crate::delays::{Delays, ms};
use fairpace_scenario::{Scenario, SourceKind};
use fairpace_sim::FlowReport;
use fairpace_units::{Duration, Instant, Via};
use serde::{Deserialize, Serialize};

/// The data units of a flow, over the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AduSummary {
    /// Of whose packets the last has left.
    pub sent: u64,
    /// Complete at the receiver.
    pub complete: u64,
    /// Of these, over the flow's TCP.
    pub over_tcp: u64,
    /// Changes of the transport between two that are complete.
    pub switches: u64,
    /// j_A, time between two that are complete; null for fewer than two.
    pub adu_gap_ms: Option<Delays>,
    /// Of these, those at changes of the transport.
    pub switch_gap_ms: Option<Delays>,
}

/// A data unit that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number among the flow's data units, from 0.
    pub adu: usize,
    /// When its first packet left.
    pub began: Instant,
    /// When it was complete.
    pub at: Instant,
    /// j_A; `None` for the first.
    pub gap: Option<Duration>,
    /// The way that it took.
    pub via: Via,
    /// The one before it took the other way.
    pub switched: bool,
}

/// Whether a scenario has data units.
pub fn any(scenario: &Scenario) -> bool {
    scenario.flows.iter().any(|f| f.source.as_ref().is_some_and(|s| s.kind == SourceKind::Adus))
}

/// The data units of a flow that are complete, in order of time.
pub fn arrivals(flow: &FlowReport) -> Vec<Arrival> {
    let records = flow.media.iter().flat_map(|m| &m.frame_records).enumerate();
    let mut arrivals: Vec<Arrival> = records
        .filter_map(|(adu, r)| {
            let (began, via) = (r.captured, r.via());
            Some(Arrival { adu, began, at: r.complete?, gap: None, via, switched: false })
        })
        .collect();
    arrivals.sort_by_key(|arrival| (arrival.at, arrival.adu));
    for i in 1..arrivals.len() {
        let before = arrivals[i - 1];
        arrivals[i].gap = Some(arrivals[i].at.since(before.at));
        arrivals[i].switched = arrivals[i].via != before.via;
    }
    arrivals
}

impl AduSummary {
    /// Those that are complete after `from`, the end of the warm-up. `None` if there are none.
    pub(crate) fn new(flow: &FlowReport, from: Instant) -> Option<AduSummary> {
        let records = &flow.media.as_ref()?.frame_records;
        let own: Vec<Arrival> = arrivals(flow).into_iter().filter(|a| a.at >= from).collect();
        let count = |which: fn(&Arrival) -> bool| own.iter().filter(|a| which(a)).count() as u64;
        let gaps = |which: fn(&Arrival) -> bool| own.iter().filter(|a| which(a)).filter_map(|a| a.gap).collect();
        let left = |r: &&fairpace_sim::FrameRecord| r.packets > 0 && r.sent.is_some_and(|at| at >= from);
        let sent = records.iter().filter(left).count() as u64;
        (sent > 0).then(|| AduSummary {
            sent,
            complete: own.len() as u64,
            over_tcp: count(|a| a.via == Via::Tcp),
            switches: count(|a| a.switched),
            adu_gap_ms: delays(gaps(|_| true)),
            switch_gap_ms: delays(gaps(|a| a.switched)),
        })
    }
}

fn delays(mut gaps: Vec<Duration>) -> Option<Delays> {
    gaps.sort_unstable();
    let last = *gaps.last()?;
    let quantile = |q: f64| ms(gaps[((gaps.len() as f64 * q).ceil() as usize).clamp(1, gaps.len()) - 1]);
    let mean = gaps.iter().map(|gap| ms(*gap)).sum::<f64>() / gaps.len() as f64;
    Some(Delays { mean, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max: ms(last) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_scenario::{Record, sim_config};

    /// Four data units per second over TCP and over UDP.
    const STEADY: &str = include_str!("../tests/data-units.toml");

    #[test]
    fn gaps_are_those_of_the_rate_and_longer_by_the_draining_where_the_transport_changes() {
        let scenario = Scenario::parse(STEADY, "steady.toml").unwrap_or_else(|e| panic!("{e}"));
        let report = fairpace_sim::run(sim_config(&scenario, 1, Record::default()).unwrap()).unwrap();
        let found = AduSummary::new(&report.flows[0], Instant::from_secs_f64(1.0)).unwrap();
        assert_eq!((found.switches, found.sent - found.complete), (4, 1), "{found:?}");
        assert!((110..=116).contains(&found.complete), "{found:?}");
        let (all, switched) = (found.adu_gap_ms.unwrap(), found.switch_gap_ms.unwrap());
        // 250 ms each; TCP's come in rounds of 100 ms, two or three of them.
        assert!((245.0..=260.0).contains(&all.mean) && all.p99 <= 400.0, "{all:?}");
        // A round trip passes while TCP is drained.
        assert!(switched.max <= 450.0 && switched.max == all.max, "{switched:?}");
        // Ten rounds of four packets came in the first second.
        let over = arrivals(&report.flows[0]);
        assert!(over[0].gap.is_none() && over.iter().all(|a| a.at > a.began));
        assert_eq!(over.iter().filter(|a| a.via == Via::Tcp).count() as u64, found.over_tcp + 4);
    }
}
