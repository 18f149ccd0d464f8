//! The experiments of `rcs` (Akyildiz, Akan, Morabito): §V, Figs. 7 to 22.
//!
//! Common set-up [rcs §V-A]: ten sources, one bottleneck of 1,300 packets/s of 1,000 bytes, a
//! two-priority buffer of 50 packets with push-out, RTT 550 ms, link errors with probability P on
//! the way forward, 450 s of which the first 50 s are left out (ours: the paper gives no lengths).
//! `safety = "paper"`. S_Target = 200 packets/s: above the fair share of 130, so that the network
//! limits and not the cap; below twice it, so that ten Initial phases do not swamp the queue.
//!
//! Readings that the figures show side by side: ACKs never lost, or lost with P too; RAP with and
//! without fine-grain adaptation; T_B = 10 SRTT and without limit (Fig. 22). "Gain" is the ratio of
//! throughputs, "improvement" is that minus one.
//!
//! Where a claim says "nearly", "slightly" or "about", the bound is ours, and printed.

mod blackout;
mod encoder;
mod fairness;
mod sweeps;
mod traces;

use super::Experiment;
use super::bench::Cell;
use super::builtin::{base, ours, time_ms, with};
use super::show::Look;
use fairpace_lab::metrics::RunSummary;
use fairpace_lab::stats::jain_index;
use fairpace_scenario::{LossSpec, RawScenario, Scenario, Speed, replace_controller};

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("rcs", "fig7-9", "a real encoder follows S(t)", encoder::fig7_9),
    experiment!("rcs", "fig12", "one loss by a link error", traces::fig12),
    experiment!("rcs", "fig14", "loss by congestion", traces::fig14),
    experiment!("rcs", "fig16", "a signal loss of two SRTT", traces::fig16),
    experiment!("rcs", "fig17a", "throughput against the loss probability", sweeps::fig17a),
    experiment!("rcs", "fig17b", "throughput against the round-trip time", sweeps::fig17b),
    experiment!("rcs", "fig17c", "throughput against low-priority background traffic", sweeps::fig17c),
    experiment!("rcs", "fig17d", "throughput against the buffer size", sweeps::fig17d),
    experiment!("rcs", "fig18", "overhead and gain against the loss probability", sweeps::fig18),
    experiment!("rcs", "fig19", "overhead against the round-trip time", sweeps::fig19),
    experiment!("rcs", "homogeneous", "ten RCS flows share a link", fairness::homogeneous),
    experiment!("rcs", "fig20", "RCS beside TCP over the same satellite", fairness::fig20),
    experiment!("rcs", "fig21a-c", "RCS beside TCP that has a better path", fairness::fig21),
    experiment!("rcs", "fig22a-b", "a signal loss of up to a minute", blackout::fig22),
];

/// A scheme of the figures.
#[derive(Clone, Copy, Debug)]
struct Scheme {
    look: Look,
    /// As `compare` takes it.
    controller: &'static str,
    /// ACKs are lost with P too.
    acks_lost: bool,
}

const fn scheme(key: &'static str, name: &'static str, controller: &'static str, acks_lost: bool) -> Scheme {
    Scheme { look: Look { key, name }, controller, acks_lost }
}

const RCS: Scheme = scheme("rcs", "RCS", "rcs", false);
const RCS_ACKS: Scheme = scheme("rcs-acks-lost", "RCS, ACKs lost with P", "rcs", true);
const RAP: Scheme = scheme("rap", "RAP", "rap", false);
const RAP_ACKS: Scheme = scheme("rap-acks-lost", "RAP, ACKs lost with P", "rap", true);
const RAP_FINE: Scheme = scheme("rap-fine", "RAP, fine grain", "rap:fine_grain=on", false);
const RENO: Scheme = scheme("tcp-reno", "TCP Reno", "tcp-reno", false);
const NEWRENO: Scheme = scheme("tcp-newreno", "TCP NewReno", "tcp-newreno", false);
const SACK: Scheme = scheme("tcp-sack", "TCP SACK", "tcp-sack", false);

/// The scenario with the flows of group `main` under a scheme.
fn under(base: &Scenario, scheme: &Scheme) -> Scenario {
    let s = replace_controller(base, scheme.controller, |f| f.group == "main").unwrap_or_else(|e| ours(&e));
    if scheme.acks_lost { with(&s, |s| s.path.reverse.loss = s.path.loss.clone()) } else { s }
}

/// Cells for schemes and places; `vary` sets the place, before the scheme is put in.
fn cells(base: &Scenario, schemes: &[Scheme], places: &[f64], vary: impl Fn(&mut RawScenario, f64)) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in schemes {
        for &x in places {
            let s = with(base, |s| vary(s, x));
            cells.push(Cell { scheme: scheme.look.key, x, scenario: under(&s, scheme) });
        }
    }
    cells
}

fn looks(schemes: &[Scheme]) -> Vec<Look> {
    schemes.iter().map(|s| s.look).collect()
}

fn set_loss(s: &mut RawScenario, p: f64) {
    s.path.loss = LossSpec::random(p);
}

fn set_rtt(s: &mut RawScenario, ms: f64) {
    s.path.rtt = time_ms(ms);
    for flow in &mut s.flows {
        if flow.initial_rtt.is_some() {
            flow.initial_rtt = Some(time_ms(ms));
        }
    }
}

fn packets_per_second(pps: f64) -> Speed {
    Speed::packets_per_second(pps)
}

fn set_buffer(s: &mut RawScenario, packets: f64) {
    s.path.queue.capacity = fairpace_scenario::Room::packets(packets as u64);
}

/// Low-priority background at `pps` packets/s in all: the scenario's constant flow; none at 0.
fn set_background(s: &mut RawScenario, pps: f64) {
    s.flows.retain(|f| f.name != "background" || pps > 0.0);
    for flow in s.flows.iter_mut().filter(|f| f.name == "background") {
        flow.rate = Some(packets_per_second(pps));
    }
}

// Numbers of one run.

const MAIN: &str = "main";

fn throughput(r: &RunSummary) -> Option<f64> {
    r.group(MAIN).map(|g| g.throughput_pps)
}

fn tcp_throughput(r: &RunSummary) -> Option<f64> {
    r.group("tcp").map(|g| g.throughput_pps)
}

fn overhead(r: &RunSummary) -> Option<f64> {
    r.group(MAIN).and_then(|g| g.overhead)
}

/// Jain's index over every flow but the background [rcs eq. (8)].
fn jain_of_all(r: &RunSummary) -> Option<f64> {
    let x: Vec<f64> = r.flows.iter().filter(|f| f.group != "background").map(|f| f.throughput_pps).collect();
    jain_index(&x)
}

/// The same with each flow replaced by the mean of its group: without unfairness inside a group.
fn jain_of_groups(r: &RunSummary) -> Option<f64> {
    let (main, tcp) = (throughput(r)?, tcp_throughput(r)?);
    jain_index(&[main, tcp])
}

fn acknowledged_jain(r: &RunSummary) -> Option<f64> {
    let x: Vec<f64> = r.flows.iter().map(|f| f.acknowledged_packets as f64).collect();
    jain_index(&x)
}

const THROUGHPUT: super::show::Quantity =
    super::show::Quantity { key: "throughput_pps", label: "throughput per flow", unit: "packets/s", get: throughput };
const OVERHEAD: super::show::Quantity =
    super::show::Quantity { key: "overhead", label: "overhead: dummies / (data + dummies)", unit: "", get: overhead };
const P_LOSS: super::show::Abscissa =
    super::show::Abscissa { key: "p_loss", label: "packet loss probability P", unit: "", log: true };
const RTT: super::show::Abscissa =
    super::show::Abscissa { key: "rtt_ms", label: "round-trip time", unit: "ms", log: false };
const BUFFER: super::show::Abscissa =
    super::show::Abscissa { key: "k_packets", label: "buffer K", unit: "packets", log: false };
const BACKGROUND: super::show::Abscissa =
    super::show::Abscissa { key: "s_l_pps", label: "low-priority background S_L", unit: "packets/s", log: false };

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_scenario::Feedback;

    #[test]
    fn every_built_in_scenario_reads_and_says_paper_safety() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, fairpace_scenario::SafetyMode::Paper, "{}", e.id);
            assert_eq!(s.feedback, Feedback::parse("every packet").unwrap(), "{}", e.id);
            assert!(s.flows.iter().any(|f| f.group == MAIN), "{}", e.id);
        }
    }
}
