//! The set-ups that the experiments of `tpba` share: flow 3, its data units, seeds.

use crate::builtin::ours;
use crate::figure::counted;
use crate::{Bench, Effort, Experiment, World};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Cell, Measure, QUICK_SEEDS};
use fairpace_scenario::{Count, Parameter, RawScenario, Scenario, Size, Time};
use fairpace_units::Duration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::rc::Rc;

/// The time between two rows of a series.
pub(super) const SAMPLE: Duration = Duration::from_millis(100);
/// Rows of S_average = 1 s.
pub(super) const PER_SECOND: usize = 10;
/// Headers of a packet, and of a segment.
pub(super) const HEADER: f64 = 40.0;

pub(super) fn parse(text: &str, file: &str) -> Scenario {
    Scenario::parse(text, file).unwrap_or_else(|e| ours(&e))
}

pub(super) fn seconds(n: u32) -> Time {
    Time::seconds(f64::from(n))
}

pub(super) fn bytes(n: u64) -> Size {
    Size::bytes(n)
}

pub(super) fn number(x: f64) -> Parameter {
    Parameter::Number(x)
}

pub(super) fn words(text: &str) -> Parameter {
    Parameter::Text(text.to_owned())
}

/// Whether a flow of the scenario is flow 3.
pub(super) fn is_media(group: &str) -> bool {
    group == "flow 3"
}

/// The application's data units [tpba §6.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Adu {
    /// One 64-byte payload.
    One,
    /// Ten 512-byte payloads.
    Two,
}

impl Adu {
    /// Gives flow 3 such data units. TCP's segments stay.
    pub(super) fn set(self, s: &mut RawScenario) {
        if self == Adu::Two {
            return;
        }
        let segment = s.packet_size.clone();
        for flow in s.flows.iter_mut().filter(|f| is_media(&f.group)) {
            flow.packet_size = Some(bytes(64 + HEADER as u64));
            if let Some(source) = &mut flow.source {
                source.packets = Some(Count::new(1));
            }
            if let Some(tcp) = &mut flow.tcp {
                tcp.segment_size = Some(segment.clone());
            }
        }
    }
}

/// The seeds of an experiment that usually has so many; few in real time if it is to be quick.
pub(super) fn seeds(bench: &Bench<'_>, usual: usize, quick_in_real_time: usize) -> usize {
    match (bench.effort(), bench.world().is_sim()) {
        (Effort::Quick, false) => quick_in_real_time,
        (Effort::Quick, true) => QUICK_SEEDS,
        _ => bench.seeds(usual, usual),
    }
}

/// Each scenario with so many seeds; a cell for each, in their order.
pub(super) fn each<R: Serialize + DeserializeOwned + Send + 'static>(
    e: &Experiment,
    bench: &mut Bench<'_>,
    scenarios: impl IntoIterator<Item = Scenario>,
    seeds: usize,
    measure: Measure<R>,
) -> Result<Vec<Cell<R>>, RunError> {
    let case = |(i, scenario): (usize, Scenario)| Case::new("set-up", i as f64, scenario);
    Ok(counted(e, bench, measure, scenarios.into_iter().enumerate().map(case).collect(), seeds)?.cells)
}

/// A number of each run that has it, over the seeds.
pub(super) fn estimate<R>(runs: &[Rc<R>], number: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&runs.iter().filter_map(|r| number(r)).collect::<Vec<f64>>())
}

pub(super) fn caption(e: &Experiment, world: World<'_>, rest: &str) -> String {
    let place = if matches!(world, World::Sim) { "" } else { ", emulated" };
    format!("{}{place}; {rest}", e.file)
}
