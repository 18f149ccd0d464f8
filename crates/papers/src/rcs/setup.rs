//! The schemes, the set-ups and the measurements that the experiments of `rcs` share.

use crate::builtin::time_ms;
use crate::figure::{Abscissa, Quantity, Scheme};
use fairpace_lab::study::{Job, Measure};
use fairpace_lab::{RunError, stats::jain_index};
use fairpace_scenario::{LossSpec, RawScenario, Record, Room, Speed};
use serde::{Deserialize, Serialize};

pub(super) const RCS: Scheme = Scheme::new("rcs", "RCS", "rcs");
pub(super) const RAP: Scheme = Scheme::new("rap", "RAP", "rap");
pub(super) const RAP_FINE: Scheme = Scheme::new("rap-fine", "RAP, fine grain", "rap:fine_grain=on");
pub(super) const RENO: Scheme = Scheme::new("tcp-reno", "TCP Reno", "tcp-reno");
pub(super) const NEWRENO: Scheme = Scheme::new("tcp-newreno", "TCP NewReno", "tcp-newreno");
pub(super) const SACK: Scheme = Scheme::new("tcp-sack", "TCP SACK", "tcp-sack");

pub(super) fn set_loss(s: &mut RawScenario, p: f64) {
    s.path.loss = LossSpec::random(p);
}

pub(super) fn set_rtt(s: &mut RawScenario, ms: f64) {
    s.path.rtt = time_ms(ms);
    for flow in &mut s.flows {
        if flow.initial_rtt.is_some() {
            flow.initial_rtt = Some(time_ms(ms));
        }
    }
}

pub(super) fn packets_per_second(pps: f64) -> Speed {
    Speed::packets_per_second(pps)
}

pub(super) fn set_buffer(s: &mut RawScenario, packets: f64) {
    s.path.queue.set_capacity(Room::packets(packets as u64));
}

/// Low-priority background at `pps` packets/s in all: the scenario's constant flow; none at 0.
pub(super) fn set_background(s: &mut RawScenario, pps: f64) {
    s.flows.retain(|f| f.name != "background" || pps > 0.0);
    for flow in s.flows.iter_mut().filter(|f| f.name == "background") {
        flow.rate = Some(packets_per_second(pps));
    }
}

/// The measurements of one run, after the warm-up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct RunStats {
    /// Packets/s of a flow under study, mean over the group.
    pub(super) main: Option<f64>,
    /// Packets/s of a TCP flow beside it, mean over the group.
    pub(super) tcp: Option<f64>,
    /// Dummies / (data + dummies) sent by the flows under study.
    pub(super) overhead: Option<f64>,
    /// One per flow.
    pub(super) flows: Vec<FlowStats>,
}

/// The measurements of one flow.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct FlowStats {
    pub(super) name: String,
    pub(super) background: bool,
    pub(super) pps: f64,
    pub(super) acknowledged: u64,
    pub(super) overhead: Option<f64>,
}

pub(super) const MEASURE: Measure<RunStats> = Measure { name: "rcs", of: run_stats };
pub(super) const MAIN: &str = "main";

pub(super) fn run_stats(job: &Job<'_>) -> Result<RunStats, RunError> {
    let run = job.run(Record::default())?.summary;
    let of = |f: &fairpace_lab::metrics::FlowSummary| FlowStats {
        name: f.name.clone(),
        background: f.group == "background",
        pps: f.throughput_pps,
        acknowledged: f.acknowledged_packets,
        overhead: f.overhead,
    };
    Ok(RunStats {
        main: run.group(MAIN).map(|g| g.throughput_pps),
        tcp: run.group("tcp").map(|g| g.throughput_pps),
        overhead: run.group(MAIN).and_then(|g| g.overhead),
        flows: run.flows.iter().map(of).collect(),
    })
}

pub(super) fn throughput(r: &RunStats) -> Option<f64> {
    r.main
}

pub(super) fn tcp_throughput(r: &RunStats) -> Option<f64> {
    r.tcp
}

pub(super) fn overhead(r: &RunStats) -> Option<f64> {
    r.overhead
}

/// Jain's index over every flow but the background [rcs eq. (8)].
pub(super) fn jain_of_all(r: &RunStats) -> Option<f64> {
    jain_index(&r.flows.iter().filter(|f| !f.background).map(|f| f.pps).collect::<Vec<f64>>())
}

/// The same with each flow replaced by the mean of its group: without unfairness inside a group.
pub(super) fn jain_of_groups(r: &RunStats) -> Option<f64> {
    jain_index(&[r.main?, r.tcp?])
}

pub(super) fn acknowledged_jain(r: &RunStats) -> Option<f64> {
    jain_index(&r.flows.iter().map(|f| f.acknowledged as f64).collect::<Vec<f64>>())
}

pub(super) const THROUGHPUT: Quantity<RunStats> =
    Quantity { key: "throughput_pps", label: "throughput per flow", unit: "packets/s", get: throughput };
pub(super) const OVERHEAD: Quantity<RunStats> =
    Quantity { key: "overhead", label: "overhead: dummies / (data + dummies)", unit: "", get: overhead };
pub(super) const P_LOSS: Abscissa = Abscissa::log("p_loss", "packet loss probability P", "");
pub(super) const RTT: Abscissa = Abscissa::new("rtt_ms", "round-trip time", "ms");
pub(super) const BUFFER: Abscissa = Abscissa::new("k_packets", "buffer K", "packets");
pub(super) const BACKGROUND: Abscissa = Abscissa::new("s_l_pps", "low-priority background S_L", "packets/s");
