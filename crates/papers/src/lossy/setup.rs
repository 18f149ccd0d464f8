//! The set-ups and the measurement that the experiments of `lossy` share.

use fairpace_lab::RunError;
use fairpace_lab::study::{Job, Measure};
use fairpace_scenario::{RawScenario, Record, Room, Size};
use serde::{Deserialize, Serialize};

pub(super) fn set_packet_size(s: &mut RawScenario, bytes: u64) {
    s.packet_size = Size::bytes(bytes);
}

/// Room for so many bytes of waiting packets, and the packet in transmission.
pub(super) fn set_buffer(s: &mut RawScenario, bytes: f64) {
    let waiting = (bytes / s.packet_size.get().as_f64()).round().max(1.0);
    s.path.queue.set_capacity(Room::packets(waiting as u64 + 1));
}

/// The throughput of a run's flows together, by group, and the number of flows.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct RunStats {
    /// Mean over the rate-based flows, bit/s.
    pub(super) main_bps: Option<f64>,
    /// Mean over the TCP flows beside them, bit/s.
    pub(super) tcp_bps: Option<f64>,
    pub(super) flows: usize,
}

pub(super) const MEASURE: Measure<RunStats> = Measure { name: "lossy", of: run_stats };

pub(super) fn run_stats(job: &Job<'_>) -> Result<RunStats, RunError> {
    let run = job.run(Record::default())?.summary;
    let bps = |group: &str| run.group(group).map(|g| g.throughput_bps);
    Ok(RunStats { main_bps: bps("main"), tcp_bps: bps("tcp"), flows: run.groups.iter().map(|g| g.flows).sum() })
}
