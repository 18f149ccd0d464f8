//! The papers' experiments: set-ups, grids, and claims that the runs themselves decide.
//!
//! One module per paper, and three of ours (`worlds`, `agreement`, `viewers`). Each experiment has a scenario in `scenarios/papers/`, built into the
//! program, so that `fairpace reproduce` needs no file. The variations are code here, beside the claims. Begin with `figure.rs` (a figure as data) and one
//! small experiment, `rcs/fairness.rs`; step by step: `CONTRIBUTING.md`, "An experiment".

#![forbid(unsafe_code)]

/// `PAPER.ID`, with the scenario `scenarios/papers/PAPER-ID.toml` built in.
macro_rules! experiment {
    ($paper:literal, $id:literal, $title:literal, $run:path) => {
        Experiment {
            id: concat!($paper, ".", $id),
            title: $title,
            file: concat!("scenarios/papers/", $paper, "-", $id, ".toml"),
            scenario: include_str!(concat!("../../../scenarios/papers/", $paper, "-", $id, ".toml")),
            run: $run,
            readings: &[],
        }
    };
    ($paper:literal, $id:literal, $title:literal, $run:path, $readings:expr) => {
        Experiment { readings: $readings, ..experiment!($paper, $id, $title, $run) }
    };
}

pub mod agreement;
pub mod aimd;
mod builtin;
mod choose;
mod claim;
mod experiment;
mod figure;
pub mod lossy;
mod matrix;
pub mod qsd;
pub mod rcs;
pub mod reading;
#[cfg(test)]
mod small;
pub mod tpba;
pub mod viewers;
mod worlds;

pub use choose::{BadReading, check_readings};
pub use claim::{Bound, Claim};
pub use experiment::{EncodeFollowing, Encoder, Experiment, Footage, Outcome, Point, Tools};
pub use fairpace_lab::study::{Bench, Effort, Runner, Store, World};
pub use reading::{Asked, Chosen, Reading};

use fairpace_lab::{Hooks, RunError};
use fairpace_report::{Page, Section, Table};
use fairpace_scenario::{Record, Scenario};
use fairpace_units::Duration;
use std::sync::{Mutex, PoisonError};

/// An id that names no experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not an experiment")]
pub struct UnknownExperiment {
    /// The id as given.
    pub found: String,
}

impl UnknownExperiment {
    /// The remedy.
    pub fn hint(&self) -> String {
        let near = fairpace_scenario::nearest(&self.found, experiments().map(|e| e.id));
        let near = near.map_or_else(String::new, |n| format!("did you mean `{n}`? "));
        format!("{near}`fairpace list experiments` shows all")
    }
}

/// Every experiment, in the order of the papers; those of ours last.
pub fn experiments() -> impl Iterator<Item = &'static Experiment> {
    rcs::EXPERIMENTS
        .iter()
        .chain(lossy::EXPERIMENTS)
        .chain(qsd::EXPERIMENTS)
        .chain(aimd::EXPERIMENTS)
        .chain(tpba::EXPERIMENTS)
        .chain(worlds::EXPERIMENTS)
        .chain(agreement::EXPERIMENTS)
        .chain(viewers::EXPERIMENTS)
}

/// The experiments that some ids mean: `rcs` is all of a paper, `rcs.fig17` all that begin so, nothing
/// and `all` are everything. In the order of the papers, each once.
///
/// # Errors
/// An id that means none.
pub fn select(ids: &[String]) -> Result<Vec<&'static Experiment>, UnknownExperiment> {
    let means = |id: &str, e: &Experiment| {
        id == "all"
            || e.id == id
            || e.id
                .strip_prefix(id)
                .is_some_and(|rest| !id.is_empty() && (rest.starts_with('.') || !rest.contains('.')))
    };
    for id in ids {
        if !experiments().any(|e| means(id, e)) {
            return Err(UnknownExperiment { found: id.clone() });
        }
    }
    Ok(experiments().filter(|e| ids.is_empty() || ids.iter().any(|id| means(id, e))).collect())
}

/// How long these runs take in real time, one after the other.
pub fn real_time(runs: &[(Scenario, u64, Record)]) -> Duration {
    runs.iter().map(|(scenario, ..)| scenario.duration.get()).sum()
}

/// The runs that experiments ask for in real time, each once: scenario, seed, and what to record. A run whose point is in
/// `kept` is not among them.
pub fn real_time_runs(
    experiments: &[&Experiment],
    effort: Effort,
    kept: Option<Store>,
) -> Vec<(Scenario, u64, Record)> {
    let asked = Mutex::new(Vec::new());
    let note = |s: &Scenario, seed: u64, record: Record, _: &Hooks<'_>| {
        asked.lock().unwrap_or_else(PoisonError::into_inner).push((s.clone(), seed, record));
        Err(RunError::Interrupted)
    };
    let mut bench = Bench::planning(effort, &note).kept_in(kept);
    for experiment in experiments.iter().filter(|e| e.in_real_time()) {
        // The experiment stops with the first lot of runs, which is all of them.
        let _ = (experiment.run)(experiment, &mut bench, &mut Tools::default());
    }
    asked.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The results of several experiments.
#[derive(Debug, Default)]
pub struct Reproduction {
    /// One per experiment that was finished, in order.
    pub outcomes: Vec<Outcome>,
    /// True if somebody stopped it: the outcomes here are whole, others are missing.
    pub interrupted: bool,
    /// How many simulations the results rest on, those of an earlier run among them.
    pub simulations: usize,
    /// The points that an earlier run had kept, in words.
    pub kept: Option<String>,
}

/// One experiment under each reading that was asked for, as one outcome.
fn run_readings(
    experiment: &Experiment,
    asked: &Asked,
    bench: &mut Bench<'_>,
    tools: &mut Tools<'_>,
) -> Result<Outcome, RunError> {
    let chosen = experiment.asked(asked).unwrap_or_default();
    let mut all: Option<Outcome> = None;
    for reading in chosen {
        bench.read_as(reading.change());
        tools.reading = reading;
        // The section is that of the first.
        tools.claims_only = all.is_some();
        let ran = (experiment.run)(experiment, bench, tools);
        bench.read_as(None);
        let outcome = ran?.under(&tools.reading.name);
        all = Some(match all {
            None => outcome,
            Some(first) => first.beside(outcome),
        });
    }
    (tools.reading, tools.claims_only) = (Chosen::default(), false);
    let Some(outcome) = all else {
        let not_run = Some("it has no such reading".to_owned());
        return Ok(Outcome { experiment: experiment.id.to_owned(), not_run, ..Outcome::default() });
    };
    Ok(matrix::shown(experiment, outcome))
}

/// Runs experiments under the readings that were asked for, telling `finished` of each as it is done. Stopped by the flag, it
/// keeps what is finished.
///
/// # Errors
/// The simulator refuses a scenario of ours: a bug. Readings are to be looked at before, with [`check_readings`]: one
/// that an experiment does not have leaves it out.
pub fn reproduce(
    experiments: &[&Experiment],
    effort: Effort,
    asked: &Asked,
    tools: &mut Tools<'_>,
    hooks: &Hooks<'_>,
    mut finished: impl FnMut(&Outcome),
) -> Result<Reproduction, RunError> {
    let mut bench = Bench::new(*hooks, effort).as_published().in_world(tools.world).kept_in(tools.store.take());
    let mut all = Reproduction::default();
    for experiment in experiments {
        let ran = if matches!(tools.world, World::RealTime(_)) && !experiment.in_real_time() {
            let not_run = Some("it runs in the simulator only".to_owned());
            Ok(Outcome { experiment: experiment.id.to_owned(), not_run, ..Outcome::default() })
        } else {
            run_readings(experiment, asked, &mut bench, tools)
        };
        match ran {
            Ok(outcome) => {
                finished(&outcome);
                all.outcomes.push(outcome);
            }
            Err(RunError::Interrupted) => {
                all.interrupted = true;
                break;
            }
            Err(e) => return Err(e),
        }
    }
    all.simulations = bench.measured();
    all.kept = bench.store().and_then(Store::account);
    Ok(all)
}

impl Reproduction {
    /// The readings of each experiment and its claims under them, as a page of Markdown; none if each experiment ran under one
    /// reading.
    pub fn readings_page(&self) -> Option<String> {
        matrix::markdown(&self.outcomes)
    }

    /// How many claims hold, in words.
    pub fn verdict(&self) -> String {
        let claims = || self.outcomes.iter().flat_map(Outcome::decided_first);
        match (claims().filter(|c| c.holds).count(), claims().count()) {
            (_, 0) => "no claim was decided".to_owned(),
            (held, total) => format!("{held} of {total} claims hold"),
        }
    }

    /// How many simulations the results rest on, in words.
    pub fn counted(&self) -> String {
        let s = if self.simulations == 1 { "" } else { "s" };
        format!("{} simulation{s}", self.simulations)
    }

    /// The whole report: every claim first, then each experiment.
    pub fn page(&self) -> Page {
        let claims = || self.outcomes.iter().flat_map(Outcome::decided_first);
        // No paper has these.
        let ours = |o: &Outcome| ["viewers.", "worlds.", "agreement."].iter().any(|p| o.experiment.starts_with(p));
        let title = if !self.outcomes.is_empty() && self.outcomes.iter().all(ours) {
            "Experiments of our own, with their claims"
        } else {
            "The papers' figures, measured again"
        };
        let mut page = Page::new(title).subtitle(format!("{}; {}", self.verdict(), self.counted()));
        if self.interrupted && self.outcomes.is_empty() {
            page = page.notice("Interrupted before any experiment was complete");
        } else if self.interrupted {
            page = page.notice("Interrupted: what is here is whole, but not every experiment was run");
        }
        for outcome in &self.outcomes {
            if let Some(why) = &outcome.not_run {
                page = page.notice(format!("{} was not run: {why}", outcome.experiment));
            }
        }
        let mut overview = Table {
            title: "Every claim".to_owned(),
            caption:
                "Decided by the mean, the interval then being Student's t over the seeds, 95 %; or, where a claim says \
                      so, by the median over the phases, with the middle 95 % of them"
                    .to_owned(),
            head: ["claim", "holds", "measured", "95 % interval", "bound"].map(str::to_owned).to_vec(),
            rows: Vec::new(),
        };
        for claim in claims() {
            let interval = claim.ci95.map_or("–".to_owned(), |[low, high]| {
                format!("{} to {}", fairpace_lab::stats::short(low), fairpace_lab::stats::short(high))
            });
            overview.rows.push(vec![
                claim.id.clone(),
                if claim.holds { "yes" } else { "no" }.to_owned(),
                claim.measured.map_or("–".to_owned(), fairpace_lab::stats::short),
                interval,
                claim.bound.clone(),
            ]);
        }
        if !overview.rows.is_empty() {
            let all = Section::new("claims", "Claims").table(overview);
            page = page.section(matrix::tables(&self.outcomes).into_iter().fold(all, Section::table));
        }
        for outcome in &self.outcomes {
            page = page.section(outcome.section.clone());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;

    #[test]
    fn a_single_trace_counts_as_a_simulation() {
        let chosen = select(&["rcs.fig12".to_owned()]).unwrap();
        let all = reproduce(&chosen, Effort::Usual, &Asked::Default, &mut Tools::default(), &Hooks::default(), |_| ())
            .unwrap();
        assert_eq!(all.counted(), "1 simulation");
        assert_eq!(all.verdict(), "3 of 3 claims hold");
    }

    #[test]
    fn what_was_stopped_before_anything_was_complete_shows_no_empty_table() {
        let stop = AtomicBool::new(true);
        let hooks = Hooks { stop: &stop, ..Hooks::default() };
        let chosen = select(&["rcs.fig17a".to_owned()]).unwrap();
        let all = reproduce(&chosen, Effort::Usual, &Asked::Default, &mut Tools::default(), &hooks, |_| ()).unwrap();
        assert!(all.interrupted && all.outcomes.is_empty());
        assert_eq!((all.verdict().as_str(), all.simulations), ("no claim was decided", 0));
        let page = all.page();
        assert_eq!(page.notices, ["Interrupted before any experiment was complete"]);
        assert!(page.sections.is_empty());
    }
}
