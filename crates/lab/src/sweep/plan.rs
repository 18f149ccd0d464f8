//! The plan of a sweep: its points, the seeds of each, and the tasks that follow.

use super::axis::{Axis, meaning};
use super::design::{Design, Point, lay_out};
use super::error::SweepError;
use super::numbers::Metric;
use super::recordings::{check_recordings, recordings};
use super::task::{MAX_SWEEP_SEEDS, TASK, Task};
use crate::metrics::RunSummary;
use crate::pool::{self, Hooks};
use crate::stats::{half_width, mean};
use crate::study::digits;
use fairpace_scenario::{FieldPath, Record, Scenario, controllers, sim_config};
use fairpace_sim::Network;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// The world of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator.
    #[default]
    Sim,
    /// The emulator, in real time.
    Emu,
}

impl World {
    /// [`SIMULATED`](crate::study::SIMULATED) or [`EMULATED`](crate::study::EMULATED).
    pub fn name(self) -> &'static str {
        match self {
            World::Sim => crate::study::SIMULATED,
            World::Emu => crate::study::EMULATED,
        }
    }
}

/// The axes, their layout, and the seeds of each point.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Spec {
    /// The axes, each as [`Axis::parse`] reads it.
    pub vary: Vec<String>,
    /// Their layout.
    pub design: Design,
    /// The seeds of each point.
    pub seeds: SeedRule,
    /// The metric that ranks the points, as [`Metric::parse`] reads it; `None`: the first group's `goodput_bps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}

/// The seeds of each point, counting up from the scenario's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedRule {
    /// The number from the start, at least 1.
    pub seeds: u32,
    /// The number in a batch: one task, one file; at least 1.
    pub batch: u32,
    /// Further batches until an interval is narrow enough; `None`: no further ones.
    pub narrow: Option<Narrow>,
}

impl Default for SeedRule {
    /// Five seeds in one batch.
    fn default() -> Self {
        SeedRule { seeds: 5, batch: 5, narrow: None }
    }
}

/// The width at which an interval is narrow enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Narrow {
    /// The metric, as [`Metric::parse`] reads it.
    pub metric: String,
    /// The greatest half-width of its 95 % interval.
    pub width: Width,
    /// The most seeds, whatever the width.
    pub most: u32,
}

/// The greatest half-width of a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// As a share of the mean.
    Share(f64),
    /// In the metric's unit.
    Absolute(f64),
}

impl Width {
    /// Reads `5%` or `20000`.
    ///
    /// # Errors
    /// [`SweepError::Vary`]: the text is no number above zero.
    pub fn parse(text: &str) -> Result<Width, SweepError> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        let found = match text.trim().strip_suffix('%') {
            Some(share) => number(share).map(|share| Width::Share(share / 100.0)),
            None => number(text).map(Width::Absolute),
        };
        found.ok_or_else(|| SweepError::Vary {
            found: text.to_owned(),
            wrong: "is no width of an interval".to_owned(),
            allowed: "write a share of the mean, as in `5%`, or a number in the metric's unit".to_owned(),
        })
    }
}

impl Narrow {
    /// Whether these values are known well enough. Values that are all missing are: more seeds would not help.
    pub(super) fn is_narrow(&self, values: &[f64]) -> bool {
        let Some(half) = half_width(values) else { return values.is_empty() };
        match self.width {
            Width::Share(share) => half <= share * mean(values).abs(),
            Width::Absolute(width) => half <= width,
        }
    }
}

/// The batches that a point may get: where each begins, counted from the first seed, and its length.
pub type Batches = Vec<(u64, u32)>;

impl SeedRule {
    /// All batches that a point may get, in order; those that begin before [`SeedRule::seeds`] it gets in any case.
    pub fn batches(&self) -> Batches {
        let most = self.narrow.as_ref().map_or(self.seeds, |n| n.most.max(self.seeds));
        let mut found = Vec::new();
        for (from, to) in [(0, self.seeds), (self.seeds, most)] {
            let mut at = from;
            while at < to {
                let len = self.batch.clamp(1, to - at);
                found.push((u64::from(at), len));
                at += len;
            }
        }
        found
    }

    /// The number of seeds that a point needs by the values of those that it has, in their order. The answer depends on the values up to
    /// where the rule stops, and on nothing behind; `known` is an earlier answer for fewer of them, or the least number.
    pub(super) fn needed(&self, values: &[Option<f64>], known: usize) -> usize {
        let Some(narrow) = &self.narrow else { return self.seeds as usize };
        let most = narrow.most.max(self.seeds) as usize;
        let mut needed = known.max(self.seeds as usize);
        while needed < most && values.len() >= needed {
            let known: Vec<f64> = values[..needed].iter().copied().flatten().collect();
            if narrow.is_narrow(&known) {
                break;
            }
            needed = (needed + self.batch.max(1) as usize).min(most);
        }
        needed
    }
}

/// A task by its place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The point's number, from 0.
    pub point: usize,
    /// The first seed, counted from the scenario's.
    pub offset: u64,
    /// The number of seeds.
    pub count: u32,
}

/// A sweep, laid out.
#[derive(Clone, Debug)]
pub struct Plan {
    scenario: Scenario,
    folder: PathBuf,
    code: String,
    world: World,
    axes: Vec<Axis>,
    fields: Vec<FieldPath>,
    points: Vec<Point>,
    /// Whether points name recordings of their own, which are read with each.
    reads_recordings: bool,
    /// The digest of the recordings that each point's scenario names; one, where all name the same.
    recordings: Vec<String>,
    spec: Spec,
    metric: Option<Metric>,
    digest: String,
}

impl Plan {
    /// Lays the points out. `code` is the program's version to the byte: batches of another one are not taken.
    ///
    /// # Errors
    /// An axis is not understood, there is no point, the first point is no scenario, or there is no such metric.
    pub fn new(scenario: &Scenario, spec: &Spec, world: World, code: &str) -> Result<Plan, SweepError> {
        let given: Vec<Axis> = spec.vary.iter().map(|text| Axis::parse(text)).collect::<Result<_, _>>()?;
        let axes: Vec<Axis> = given.iter().map(Axis::distinct).collect();
        let fields = axes.iter().map(|axis| FieldPath::parse(&axis.field)).collect::<Result<Vec<_>, _>>()?;
        for (i, field) in fields.iter().enumerate() {
            if let Some(other) = fields[..i].iter().find(|other| field.overlaps(other, scenario)) {
                return Err(SweepError::Vary {
                    found: field.text().to_owned(),
                    wrong: format!("is varied by `{}` already", other.text()),
                    allowed: "give each field one axis, with all of its values".to_owned(),
                });
            }
        }
        let seeds = &spec.seeds;
        let most = seeds.narrow.as_ref().map_or(seeds.seeds, |n| n.most);
        for (found, what) in [(seeds.seeds, "seeds"), (seeds.batch, "seeds of a batch"), (most, "seeds at most")] {
            if found == 0 || found > MAX_SWEEP_SEEDS {
                return Err(SweepError::Vary {
                    found: format!("{found} {what}"),
                    wrong: "is too few or too many".to_owned(),
                    allowed: format!("from 1 to {MAX_SWEEP_SEEDS}"),
                });
            }
        }
        if most < seeds.seeds {
            return Err(SweepError::Vary {
                found: format!("{most} seeds at most"),
                wrong: format!("is less than the {} that every point gets", seeds.seeds),
                allowed: "ask for fewer from the start, or allow more".to_owned(),
            });
        }
        let digest = digest_of(scenario, world, code);
        let mut plan = Plan {
            scenario: scenario.clone(),
            folder: absolute(scenario.folder()),
            code: code.to_owned(),
            world,
            points: Vec::new(),
            reads_recordings: false,
            recordings: Vec::new(),
            spec: spec.clone(),
            metric: None,
            digest,
            axes,
            fields,
        };
        // In a list a value may stand with several of another axis.
        let values = lay_out(if spec.design == Design::List { &given } else { &plan.axes }, spec.design)?;
        // By its field, or within a table that is a value.
        plan.reads_recordings = plan.fields.iter().any(FieldPath::is_of_a_recording)
            || values.iter().flatten().any(|value| value.contains("trace"));
        if !plan.reads_recordings {
            plan.recordings.push(recordings(scenario));
        }
        plan.points = values.into_iter().map(|values| Point { id: String::new(), values }).collect();
        for index in 0..plan.points.len() {
            // A recording's name says nothing of what is in it.
            let own = if plan.reads_recordings { recordings(&plan.read(index)?) } else { String::new() };
            plan.points[index].id = plan.id_of(index, &own);
            if plan.reads_recordings {
                plan.recordings.push(own);
            }
        }
        if plan.points.is_empty() {
            return Err(SweepError::Vary {
                found: "the sweep".to_owned(),
                wrong: "has no point".to_owned(),
                allowed: String::new(),
            });
        }
        let first = plan.scenario(0)?;
        if let Some(narrow) = &seeds.narrow {
            plan.metric = Some(plan.metric_of(&first, &narrow.metric)?);
        }
        Ok(plan)
    }

    /// The metric of that name, in a scenario of this plan.
    fn metric_of(&self, first: &Scenario, name: &str) -> Result<Metric, SweepError> {
        let mut groups: Vec<String> = Vec::new();
        for flow in &first.flows {
            if !groups.contains(&flow.group) {
                groups.push(flow.group.clone());
            }
        }
        // A network in which nothing has moved yet has its links.
        let config = sim_config(first, first.seed.get(), Record::default());
        let links = config.ok().and_then(|config| {
            let report = Network::new(&config).ok()?.into_report();
            let summary = RunSummary::new(first, first.seed.get(), &report, config.duration, false);
            Some(summary.links.into_iter().map(|l| l.name).collect::<Vec<_>>())
        });
        Metric::parse(name, &groups, &links.unwrap_or_default())
    }

    /// The metric of that name.
    ///
    /// # Errors
    /// [`SweepError::Metric`] with the nearest name.
    pub fn metric_named(&self, name: &str) -> Result<Metric, SweepError> {
        self.metric_of(&self.scenario(0)?, name)
    }

    /// The metric by which points are ranked.
    ///
    /// # Errors
    /// [`SweepError::Metric`] with the nearest name.
    pub fn ranked_by(&self) -> Result<Metric, SweepError> {
        self.metric_named(self.spec.metric.as_deref().unwrap_or("goodput_bps"))
    }

    /// Whether every point can be run: before anything is.
    ///
    /// # Errors
    /// The first point that cannot, with its settings; or the stop flag was set.
    pub fn check(&self, hooks: &Hooks<'_>) -> Result<(), SweepError> {
        let places: Vec<usize> = (0..self.points.len()).collect();
        let chunks: Vec<&[usize]> = places.chunks(64).collect();
        let silent = Hooks { progress: &|_, _, _| (), ..*hooks };
        let checked = pool::map(
            &chunks,
            &silent,
            |_| String::new(),
            |chunk| {
                chunk.iter().try_for_each(|index| {
                    let scenario = self.scenario(*index)?;
                    match self.world {
                        World::Sim => controllers::simulated(&scenario).map_err(|error| self.refused(*index, error)),
                        World::Emu => Ok(()),
                    }
                })
            },
        )?;
        if checked.iter().any(Option::is_none) {
            return Err(crate::RunError::Interrupted.into());
        }
        Ok(())
    }

    /// The scenario as it was given.
    pub fn base(&self) -> &Scenario {
        &self.scenario
    }

    /// The folder that names of recordings start from, so that another process finds them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program's version.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The world.
    pub fn world(&self) -> World {
        self.world
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The request as it was given.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The metric whose interval is to be narrow, if one is.
    pub fn metric(&self) -> Option<&Metric> {
        self.metric.as_ref()
    }

    /// 32 hexadecimal digits of scenario, recordings, world and program.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Field and value of each axis.
    pub fn settings(&self, point: usize) -> Vec<(String, String)> {
        let values = self.points.get(point).map_or(&[][..], |p| &p.values);
        self.axes.iter().map(|a| a.field.clone()).zip(values.iter().cloned()).collect()
    }

    /// The same in one line: `path.loss.p=0.001 flow.video.controller=rcs`.
    pub fn label(&self, point: usize) -> String {
        let settings = self.settings(point);
        settings.iter().map(|(field, value)| format!("{field}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// The points that were asked for; equal ones are one.
    pub fn asked(&self) -> usize {
        match self.spec.design {
            Design::Random { points, .. } | Design::LatinHypercube { points, .. } => points,
            Design::Grid | Design::List => self.points.len(),
        }
    }

    /// A point's scenario.
    ///
    /// # Errors
    /// The values do not go together ([`Plan::check`] finds it first), a recording is no longer what it was, or there is no such point.
    pub fn scenario(&self, point: usize) -> Result<Scenario, SweepError> {
        let scenario = self.read(point)?;
        if self.reads_recordings {
            check_recordings(&scenario, self.recordings_of(point))?;
        }
        Ok(scenario)
    }

    /// A point's scenario for a file that may lie anywhere: a recording's name starts from where the sweep's scenario was.
    ///
    /// # Errors
    /// As [`Plan::scenario`].
    pub fn scenario_apart(&self, point: usize) -> Result<Scenario, SweepError> {
        let apart = self.scenario(point)?.modify(|s| {
            if let Some(trace) = &mut s.path.trace {
                trace.file = self.folder().join(&trace.file).display().to_string();
            }
        });
        apart.map_err(|error| self.refused(point, error))
    }

    /// The digest of the recordings that a point's scenario names; empty if it names none.
    fn recordings_of(&self, point: usize) -> &str {
        let own = if self.reads_recordings { point } else { 0 };
        self.recordings.get(own).map_or("", String::as_str)
    }

    fn read(&self, point: usize) -> Result<Scenario, SweepError> {
        let Some(found) = self.points.get(point) else {
            return Err(SweepError::Task(format!("there is no point {point}: there are {}", self.points.len())));
        };
        let values = self.fields.iter().zip(found.values.iter().map(String::as_str));
        self.scenario.with_values(values).map_err(|error| self.refused(point, error))
    }

    fn refused(&self, point: usize, error: fairpace_scenario::ScenarioError) -> SweepError {
        SweepError::Point { settings: self.label(point), error }
    }

    /// A task, whole.
    ///
    /// # Errors
    /// As [`Plan::scenario`].
    pub fn task(&self, id: &TaskId) -> Result<Task, SweepError> {
        Ok(self.task_of(id, &self.scenario(id.point)?))
    }

    pub(super) fn task_of(&self, id: &TaskId, scenario: &Scenario) -> Task {
        Task { scenario: scenario.to_toml(), ..self.bare_task(id) }
    }

    /// A task without its scenario's text, for who has the scenario.
    pub fn bare_task(&self, id: &TaskId) -> Task {
        Task {
            format: TASK.to_owned(),
            code: self.code.clone(),
            world: self.world.name().to_owned(),
            point: self.points.get(id.point).map_or_else(String::new, |p| p.id.clone()),
            settings: self.settings(id.point),
            first: self.scenario.seed.get() + id.offset,
            count: id.count,
            folder: self.folder.clone(),
            name: self.scenario.name.clone(),
            recordings: self.recordings_of(id.point).to_owned(),
            scenario: String::new(),
        }
    }

    fn id_of(&self, point: usize, recordings: &str) -> String {
        let settings = self.settings(point);
        // However a value is spelt: a later session may write `0.05 s` for `50ms`.
        let parts: Vec<String> = settings
            .into_iter()
            .flat_map(|(field, value)| {
                let (kind, bits) = meaning(&value);
                [field, kind, format!("{bits:x}")]
            })
            .collect();
        let parts = [self.digest.as_str(), recordings].into_iter().chain(parts.iter().map(String::as_str));
        hash(parts).chars().take(16).collect()
    }
}

/// The folder from the root on; as it is where there is no such thing.
fn absolute(folder: &Path) -> PathBuf {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::path::absolute(here).unwrap_or_else(|_| folder.to_owned())
}

/// The digest of all that decides a result beside a point's own values.
fn digest_of(scenario: &Scenario, world: World, code: &str) -> String {
    hash([code, world.name(), &scenario.to_toml(), &recordings(scenario)])
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    digits(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_begin_anew_behind_the_seeds_that_every_point_gets() {
        let rule = |seeds, batch, most| SeedRule {
            seeds,
            batch,
            narrow: Some(Narrow { metric: String::new(), width: Width::Share(0.05), most }),
        };
        assert_eq!(rule(5, 2, 9).batches(), [(0, 2), (2, 2), (4, 1), (5, 2), (7, 2)]);
        assert_eq!(rule(5, 9, 3).batches(), [(0, 5)]);
        assert_eq!(SeedRule { seeds: 7, batch: 5, narrow: None }.batches(), [(0, 5), (5, 2)]);
    }

    #[test]
    fn the_rule_stops_at_the_first_batch_that_is_narrow_whatever_stands_behind() {
        let rule = SeedRule {
            seeds: 2,
            batch: 2,
            narrow: Some(Narrow { metric: String::new(), width: Width::Share(0.05), most: 7 }),
        };
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(rule.needed(&[], 0), 2);
        // 10, 10.01: t(1) 12.706 * 0.00707 / sqrt(2) = 0.064, 0.6 % of 10.
        assert_eq!(rule.needed(&some(&[10.0, 10.01]), 0), 2);
        assert_eq!(rule.needed(&some(&[10.0, 10.01, 99.0, 1.0]), 0), 2);
        assert_eq!(rule.needed(&some(&[1.0, 9.0]), 0), 4);
        assert_eq!(rule.needed(&some(&[1.0, 9.0, 1.0, 9.0]), 4), 6);
        assert_eq!(rule.needed(&some(&[1.0, 9.0, 1.0, 9.0, 1.0, 9.0]), 0), 7);
        assert_eq!(rule.needed(&some(&[1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0]), 0), 7);
        // Nothing to know: more seeds would not help. One number of two says nothing.
        assert_eq!(rule.needed(&[None, None], 0), 2);
        assert_eq!(rule.needed(&[None, Some(1.0)], 0), 4);
        assert_eq!(Width::parse("5%").unwrap(), Width::Share(0.05));
        assert_eq!(Width::parse("200").unwrap(), Width::Absolute(200.0));
        assert!(["", "0", "-1", "5 %%", "x"].iter().all(|t| Width::parse(t).is_err()));
    }
}
