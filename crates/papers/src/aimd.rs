//! The experiments of `aimd` (Cai, Shen, Mark, Pan): §III and §IV, eqs. (1) to (4), Figs. 1 to 8, and the base
//! station that plans anew, of which the paper only speaks.
//!
//! CH - r1 - r2 - BS - MH [aimd §IV Fig. 2]: the path is r1 - r2, a flow's access link CH - r1, the wireless link BS - MH;
//! r2 - BS carries what BS - MH does and no more, and is left out. 200 kbit/s in slots of 5 ms, packets of 125 bytes,
//! minimal RTT 17 slots, alpha = 0.2, beta = 0.875, 80 s of which the first 5 s do not count.
//!
//! # Readings
//!
//! - The delay jitter of a packet is its one-way delay above the least that there can be. On an uplink that takes the same
//!   time for each ACK that is its RTT above the minimal RTT.
//! - The analytic window is shown twice: with slots counted from any slot on (the paper's), and from the slot after a
//!   success on, which is what a packet meets (`docs/qos.md`). Claims are about the second; without memory they agree.
//! - "The same share" of N flows is 1/N each; their windows are the largest that eq. (4) and the outage of each allow.
//! - Numbers of TCP flows, their RTT, RED's thresholds, UDP's rates: the paper gives none. They stand in the scenarios.
//!
//! Where a claim says "near", "about" or "equal", the bound is ours, and printed.

mod fixed;
mod plan;
mod replan;
mod shared;
mod udp;
mod window;

use crate::builtin::{base, with};
use crate::figure::{Quantity, counted};
use crate::{Bench, Experiment};
use fairpace_analysis::qos::{Process, QosError, Start};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, MAX_SEEDS};
use fairpace_lab::study::{Case, Cell, Found, Job, Measure, Number};
use fairpace_path::{ArqScheme, Channel};
use fairpace_scenario::{ArqKind, ChannelSpec, Parameter, RawScenario, Record, Room, Time, WirelessSpec};
use fairpace_units::Duration;
use serde::{Deserialize, Serialize};

/// Every row, in the paper's order; the last one is ours.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!("aimd", "eq1", "AIMD with alpha by equation (1), beside TCP", fixed::eq1),
    experiment!("aimd", "fig1", "the window of one flow on a link of fixed capacity", fixed::fig1),
    experiment!("aimd", "eq2", "how much of a link of fixed capacity one flow uses", fixed::eq2),
    experiment!("aimd", "fig3", "the largest window, persistent scheme, light and heavy traffic", window::fig3),
    experiment!("aimd", "fig4", "the largest window, optimal scheme, light and heavy traffic", window::fig4),
    experiment!("aimd", "fig5", "throughput of one flow against TCP flows in the backbone", window::fig5),
    experiment!("aimd", "fig6", "two flows on one wireless link", shared::fig6),
    experiment!("aimd", "fig7", "four flows on one wireless link", shared::fig7),
    experiment!("aimd", "fig8", "AIMD and UDP over one wireless link", udp::fig8),
    experiment!("aimd", "plan", "what plans promise and what comes of them", plan::plan),
    experiment!("aimd", "replan", "a base station that plans anew when flows come and go", replan::replan),
];

/// A slot: 125 bytes at 200 kbit/s.
const SLOT: Duration = Duration::from_millis(5);
/// R, slots.
const R: u32 = 17;
/// D, slots.
const D: u32 = 10;
/// The delay outage that is tolerated.
const OUTAGE: f64 = 0.01;
/// p_e of Figs. 3, 4, 6, 7, in percent.
const ERRORS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

fn slots(n: f64) -> Time {
    Time::ms(n * SLOT.as_secs_f64() * 1e3)
}

fn packets(n: u32) -> Room {
    Room::packets(u64::from(n))
}

/// The wireless link of a scenario; those with users have one.
fn wireless(s: &mut RawScenario) -> &mut WirelessSpec {
    s.wireless.get_or_insert_with(WirelessSpec::default)
}

/// The channel's errors, and the link layer's answer to them [aimd §IV].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Link {
    scheme: ArqKind,
    /// lambda.
    memory: f64,
}

const PERSISTENT: Link = Link { scheme: ArqKind::Persistent, memory: 0.0 };
const OPTIMAL: Link = Link { scheme: ArqKind::Optimal, memory: 0.35 };

impl Link {
    fn key(self) -> &'static str {
        self.scheme.as_str()
    }

    /// Sets it up with an error probability in percent.
    fn set(self, s: &mut RawScenario, percent: f64) {
        let wireless = wireless(s);
        wireless.scheme = self.scheme;
        wireless.channel = ChannelSpec::two_state(percent / 100.0, self.memory);
    }

    /// The same for the analysis.
    fn process(self, percent: f64) -> Result<Process, QosError> {
        let scheme = if self.scheme == ArqKind::Optimal { ArqScheme::Optimal } else { ArqScheme::Persistent };
        Process::new(&Channel::two_state(percent / 100.0, self.memory)?, scheme, 0)
    }
}

/// Gives the AIMD flows their windows, in their order, and the base station a buffer of their sum.
fn set_windows(s: &mut RawScenario, windows: &[u32]) {
    let aimd = s.flows.iter_mut().filter(|f| f.controller == "aimd");
    for (flow, rwnd) in aimd.zip(windows) {
        flow.parameters.insert("rwnd".to_owned(), Parameter::Whole(i64::from(*rwnd)));
    }
    wireless(s).buffer = packets(windows.iter().sum());
}

/// The throughput and losses of one flow after the warm-up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Got {
    group: String,
    /// Packets received per slot.
    throughput: f64,
    /// Of these, the part whose delay jitter was too long; zero for flows without a bound.
    outage: f64,
    /// Of those sent, the part that was dropped.
    lost: f64,
}

impl Got {
    /// Packets received in time, per slot [aimd §IV-D].
    fn goodput(&self) -> f64 {
        self.throughput * (1.0 - self.outage)
    }

    /// Packets sent that were dropped, or came too late [aimd §III-C].
    fn failed(&self) -> f64 {
        self.lost + (1.0 - self.lost) * self.outage
    }
}

/// A number of the first flow.
const fn of_first(
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    get: Number<Vec<Got>>,
) -> Quantity<Vec<Got>> {
    Quantity { key, label, unit, get }
}

const PACKETS: &str = "part of the packets";
const DROPPED: Quantity<Vec<Got>> = of_first("dropped", "dropped", PACKETS, |run| run.first().map(|g| g.lost));
const LATE: Quantity<Vec<Got>> = of_first("outage", "delay outage", PACKETS, |run| run.first().map(|g| g.outage));

const MEASURE: Measure<Vec<Got>> = Measure { name: "aimd", of: got };

fn got(job: &Job<'_>) -> Result<Vec<Got>, RunError> {
    let run = job.run(Record::default())?;
    let one = |f: &fairpace_sim::FlowReport| {
        let received = f.measured.received.packets.as_f64();
        let sent = f.measured.sent.packets.as_f64();
        Got {
            group: f.group.clone(),
            throughput: f.throughput_pps() * SLOT.as_secs_f64(),
            outage: if received > 0.0 { f.measured.outage.packets.as_f64() / received } else { 0.0 },
            lost: if sent > 0.0 { f.measured.dropped_in_all().packets.as_f64() / sent } else { 0.0 },
        }
    };
    Ok(run.report.flows.iter().map(one).collect())
}

/// Each case with so many seeds.
fn measure(e: &Experiment, cases: Vec<Case>, seeds: usize, bench: &mut Bench<'_>) -> Result<Found<Vec<Got>>, RunError> {
    counted(e, bench, MEASURE, cases, seeds)
}

/// A number of the flow of that place, over the seeds.
fn of_flow(cell: &Cell<Vec<Got>>, place: usize, number: fn(&Got) -> f64) -> Option<Estimate> {
    cell.mean(|run| run.get(place).map_or(f64::NAN, number))
}

/// The seeds of an experiment that usually has so many.
fn seeds(bench: &Bench<'_>, usual: usize) -> usize {
    bench.seeds(usual, MAX_SEEDS)
}

fn caption(e: &Experiment, seeds: usize) -> String {
    format!("{}; {seeds} seeds per point; bars are 95 % intervals (Student's t)", e.file)
}

/// The slots of eq. (3) are counted from the slot after a success on.
const START: Start = Start::AfterSuccess;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;
    use fairpace_lab::Hooks;
    use fairpace_scenario::SafetyMode;

    #[test]
    fn every_built_in_scenario_reads_and_says_paper_safety() {
        for e in EXPERIMENTS {
            let s = base(e);
            assert_eq!(s.safety, SafetyMode::Paper, "{}", e.id);
            assert!(s.flows.iter().any(|f| f.group == "main" && f.controller == "aimd"), "{}", e.id);
            assert!(s.flows.iter().all(|f| f.user.is_none() || s.wireless.is_some()), "{}", e.id);
        }
    }

    #[test]
    fn the_minimal_rtt_is_17_slots_to_the_nanosecond() {
        for e in EXPERIMENTS {
            let s = base(e);
            let config = fairpace_scenario::sim_config(&s, 1, Record::default()).unwrap();
            for (flow, spec) in config.flows.iter().zip(&s.flows).filter(|(f, _)| config.radio_of(f).is_some()) {
                let far = ["aimd-2", "aimd-4"].contains(&spec.name.as_str());
                let r = if far { 25 } else { R };
                assert_eq!(config.min_rtt(flow), SLOT * r, "{} {}", e.id, flow.name);
                assert_eq!(flow.delay_bound, Some(config.min_owd(flow) + SLOT * D), "{} {}", e.id, flow.name);
            }
        }
    }

    #[test]
    fn loss_is_what_is_dropped_and_what_is_late_of_the_rest() {
        let got = Got { group: String::new(), throughput: 0.8, outage: 0.1, lost: 0.2 };
        assert!((got.goodput() - 0.72).abs() < 1e-12);
        assert!((got.failed() - 0.28).abs() < 1e-12);
    }

    /// Fig. 3 at p_e = 5 %, rwnd = 22, without cross traffic, 200 s: eq. (3) to the letter. P(Bin(27, 0.95) < 22) = 0.0022.
    #[test]
    fn the_simulated_outage_is_that_of_equation_3() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "aimd.fig3").unwrap();
        for (window, percent) in [(22, 5.0), (22, 10.0), (24, 5.0)] {
            let s = with(&base(e), |s| {
                s.flows.retain(|f| f.group == "main");
                PERSISTENT.set(s, percent);
                set_windows(s, &[window]);
                s.duration = Time::seconds(205.0);
            });
            let cases = vec![Case::new("aimd", 0.0, s)];
            let found = measure(e, cases, 3, &mut Bench::new(Hooks::default(), Effort::Usual)).unwrap();
            let simulated = of_flow(&found.cells[0], 0, |g| g.outage).unwrap();
            let formula =
                fairpace_analysis::qos::outage(&PERSISTENT.process(percent).unwrap(), R, D, window, START).unwrap();
            // Three runs of 38,000 packets; 27 in a row have most of their slots in common.
            let spread = (formula * 27.0 / (3.0 * 38_000.0)).sqrt();
            assert!((simulated.mean - formula).abs() < 5.0 * spread, "{window} {percent}: {simulated:?} {formula}");
            let used = of_flow(&found.cells[0], 0, |g| g.throughput).unwrap().mean;
            assert!((used / (1.0 - percent / 100.0) - 1.0).abs() < 0.005, "{used}");
        }
    }

    #[test]
    fn every_experiment_runs_in_small_and_shows_what_it_found() {
        for e in EXPERIMENTS {
            // A few seconds over a backbone of a tenth, one seed; the phases of `replan` are code.
            let text = e
                .scenario
                .replace("duration = \"80 s\"\nwarmup = \"5 s\"", "duration = \"4 s\"\nwarmup = \"2 s\"")
                .replace(
                    "\"30 s\"\nstart_spread = \"1 s\"\nstop = \"60 s\"",
                    "\"2 s\"\nstart_spread = \"1 s\"\nstop = \"3.5 s\"",
                )
                .replace("duration = \"220 s\"", "duration = \"30 s\"")
                .replace("duration = \"800 s\"", "duration = \"200 s\"")
                .replace("100 Mbit/s\"\nrtt", "10 Mbit/s\"\nrtt");
            crate::small::runs(e, text, Effort::Seeds(1));
        }
    }
}
