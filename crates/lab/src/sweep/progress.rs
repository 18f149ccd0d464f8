//! A sweep under way: which tasks are ready, which batches are in, what they add up to.

use super::axis::Axis;
use super::error::SweepError;
use super::numbers::{GROUP_COLUMNS, LINK_COLUMNS, Metric, RunNumbers};
use super::plan::{Batches, Plan, TaskId};
use super::task::Batch;
use crate::stats::Estimate;
use crate::table::{Column, Table};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A point that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The point's number.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// The error.
    pub reason: String,
}

/// A point's batches.
#[derive(Clone, Debug, Default)]
struct State {
    /// By their offsets.
    batches: BTreeMap<u64, Batch>,
    /// Batches handed out and not in yet.
    open: BTreeSet<u64>,
    /// Whether it is of the share that is run here.
    own: bool,
    /// Whether it stands in the queue.
    queued: bool,
    /// The first of the batches that it needs and that came to nothing. None behind it is wanted; those before are, so that the
    /// failure is the same in whatever order batches come.
    failed: Option<u64>,
    /// The seeds that it needs by what is in.
    needed: usize,
}

/// A sweep under way. Tasks are asked for and batches handed in, in any order; results do not depend on it.
#[derive(Clone, Debug)]
pub struct Sweep {
    plan: Arc<Plan>,
    batches: Batches,
    states: Vec<State>,
    by_id: BTreeMap<String, usize>,
    /// Own points that may have a task for somebody.
    queue: VecDeque<usize>,
    /// Batches under way.
    open: usize,
    /// Own batches that are in, and with those that are needed by what is known.
    have: usize,
    total: usize,
}

impl Sweep {
    /// Nothing is in yet; every point is to be run.
    pub fn new(plan: Plan) -> Sweep {
        Sweep::of_share(plan, |_| true)
    }

    /// The same of some points only, by their numbers: a shard's. Batches of the others are taken, and not asked for.
    pub fn of_share(plan: Plan, own: impl Fn(usize) -> bool) -> Sweep {
        let needed = plan.spec().seeds.seeds as usize;
        let state = |i| State { own: own(i), queued: own(i), needed, ..State::default() };
        let states: Vec<State> = (0..plan.points().len()).map(state).collect();
        let queue: VecDeque<usize> = (0..states.len()).filter(|i| states[*i].own).collect();
        let by_id = plan.points().iter().enumerate().map(|(i, p)| (p.id.clone(), i)).collect();
        let batches = plan.spec().seeds.batches();
        let total = queue.len() * batches.iter().filter(|(offset, _)| *offset < needed as u64).count();
        Sweep { batches, plan: Arc::new(plan), states, by_id, queue, open: 0, have: 0, total }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn plan_shared(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// The next task that can be run now, each given once. None: nothing is to be done, or only when batches that are under way
    /// are in.
    pub fn ready(&mut self) -> Option<TaskId> {
        while let Some(&point) = self.queue.front() {
            let next = self.wanted(point).find(|(offset, _)| !self.states[point].open.contains(offset));
            match next {
                Some((offset, count)) => {
                    self.states[point].open.insert(offset);
                    self.open += 1;
                    return Some(TaskId { point, offset, count });
                }
                None => {
                    self.states[point].queued = false;
                    self.queue.pop_front();
                }
            }
        }
        None
    }

    /// The batches that a point needs by what is known, and that are not in.
    fn wanted(&self, point: usize) -> impl Iterator<Item = (u64, u32)> + '_ {
        let state = &self.states[point];
        let end = state.failed.unwrap_or(state.needed as u64);
        let missing = move |(offset, _): &(u64, u32)| *offset < end && !state.batches.contains_key(offset);
        self.batches.iter().copied().filter(missing)
    }

    /// The seeds that a point needs by what is known.
    fn needed(&self, point: usize) -> usize {
        let rule = &self.plan.spec().seeds;
        let Some(metric) = self.plan.metric() else { return rule.seeds as usize };
        let values: Vec<Option<f64>> = self.whole(point).map(|run| metric.value(run)).collect();
        rule.needed(&values, self.states[point].needed)
    }

    /// The runs of a point up to the first batch that is not in.
    fn whole(&self, point: usize) -> impl Iterator<Item = &RunNumbers> {
        let state = &self.states[point];
        let batches = self.batches.iter().map_while(|(offset, _)| state.batches.get(offset));
        batches.take_while(|b| b.failed.is_none()).flat_map(|b| &b.runs)
    }

    /// Takes a batch. Whether it is one of this sweep: one of another plan is not, and one that is in already changes nothing.
    ///
    /// # Errors
    /// The bytes are no batch.
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool, SweepError> {
        Ok(self.take_batch(Batch::from_bytes(bytes)?))
    }

    /// The same as it was read already.
    pub fn take_batch(&mut self, batch: Batch) -> bool {
        let Some(&point) = self.by_id.get(&batch.point) else { return false };
        let Some(offset) = batch.first.checked_sub(self.plan.base().seed.get()) else { return false };
        if !self.batches.contains(&(offset, batch.count)) || batch.code != self.plan.code() {
            return false;
        }
        self.open -= usize::from(self.states[point].open.remove(&offset));
        if self.states[point].batches.contains_key(&offset) {
            return true;
        }
        let missing_before = self.wanted(point).count();
        self.states[point].batches.insert(offset, batch);
        let needed = self.needed(point);
        let state = &mut self.states[point];
        state.needed = needed;
        let failed = |(offset, batch): (&u64, &Batch)| batch.failed.is_some().then_some(*offset);
        state.failed = state.batches.range(..needed as u64).find_map(failed);
        let missing = self.wanted(point).count();
        let state = &mut self.states[point];
        if state.own {
            self.have += 1;
            self.total = self.total + 1 + missing - missing_before;
            if missing > 0 && !state.queued {
                state.queued = true;
                self.queue.push_back(point);
            }
        }
        true
    }

    /// Gives a task back that came to nothing for a reason that has nothing to do with it: it is ready again.
    pub fn give_back(&mut self, task: &TaskId) {
        if let Some(state) = self.states.get_mut(task.point)
            && state.open.remove(&task.offset)
        {
            self.open -= 1;
            if !state.queued {
                state.queued = true;
                self.queue.push_front(task.point);
            }
        }
    }

    /// Batches that are under way.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a point has all that it needs, or has failed and has all before that.
    pub fn is_finished(&self, point: usize) -> bool {
        self.wanted(point).next().is_none()
    }

    /// Whether all points are finished, those of other shards too.
    pub fn is_complete(&self) -> bool {
        (0..self.states.len()).all(|point| self.is_finished(point))
    }

    /// Whether all points of the share that is run here are finished.
    pub fn is_share_complete(&self) -> bool {
        (0..self.states.len()).all(|point| !self.states[point].own || self.is_finished(point))
    }

    /// Batches that this share has, and needs by what is known so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.have, self.total)
    }

    /// The points that came to nothing, in order; of each the first seed that did.
    pub fn failed(&self) -> Vec<Failed> {
        let first = |(point, state): (usize, &State)| {
            let failure = state.batches.get(&state.failed?)?.failed.clone()?;
            Some(Failed { point, seed: failure.seed, reason: failure.reason })
        };
        self.states.iter().enumerate().filter_map(first).collect()
    }

    /// The runs of a point, in order of their seeds: as many as it needs. None of a point that is not finished, or failed.
    pub fn runs(&self, point: usize) -> Vec<&RunNumbers> {
        match self.states.get(point) {
            Some(state) if state.failed.is_none() && self.is_finished(point) => {
                self.whole(point).take(state.needed).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The finished points whose interval is wider than was asked for ([`SeedRule::narrow`](super::SeedRule)) with as many seeds as they may
    /// have.
    pub fn too_wide(&self) -> Vec<usize> {
        let (Some(narrow), Some(metric)) = (&self.plan.spec().seeds.narrow, self.plan.metric()) else {
            return Vec::new();
        };
        let is_wide = |point: &usize| {
            let values: Vec<f64> = self.runs(*point).into_iter().filter_map(|run| metric.value(run)).collect();
            !values.is_empty() && !narrow.is_narrow(&values)
        };
        (0..self.states.len()).filter(is_wide).collect()
    }

    /// A metric over the seeds of a point.
    pub fn estimate(&self, point: usize, metric: &Metric) -> Option<Estimate> {
        let values: Vec<f64> = self.runs(point).into_iter().filter_map(|run| metric.value(run)).collect();
        Estimate::of(&values)
    }

    /// A row per finished point, seed and group of flows: `point`, the axes, `seed`, `group`, [`GROUP_COLUMNS`].
    pub fn groups(&self) -> Table {
        self.table("group", &GROUP_COLUMNS.map(|(name, _)| name), |run| &run.groups)
    }

    /// A row per finished point, seed and link: `point`, the axes, `seed`, `link`, [`LINK_COLUMNS`].
    pub fn links(&self) -> Table {
        self.table("link", &LINK_COLUMNS.map(|(name, _)| name), |run| &run.links)
    }

    fn table(&self, of: &str, names: &[&str], rows: impl Fn(&RunNumbers) -> &Vec<(String, Vec<Option<f64>>)>) -> Table {
        let mut points: Vec<usize> = Vec::new();
        let (mut seeds, mut who, mut invalid) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers: Vec<Vec<Option<f64>>> = vec![Vec::new(); names.len()];
        for point in 0..self.states.len() {
            for run in self.runs(point) {
                for (name, values) in rows(run) {
                    points.push(point);
                    seeds.push(Some(run.seed));
                    who.push(name.clone());
                    invalid.push(run.invalid.join("; "));
                    for (column, value) in numbers.iter_mut().zip(values) {
                        column.push(*value);
                    }
                }
            }
        }
        let named = |name: &str, column| (name.to_owned(), column);
        let ids = points.iter().map(|p| &self.plan.points()[*p].id).collect();
        let mut columns = vec![named("point", Column::Text(ids))];
        for (place, axis) in self.plan.axes().iter().enumerate() {
            let texts = points.iter().map(|p| &self.plan.points()[*p].values[place]);
            let column = if axis.is_numeric() {
                Column::Number(texts.map(|t| Axis::number(t)).collect())
            } else {
                Column::Text(texts.collect())
            };
            columns.push((axis.column(), column));
        }
        columns.push(named("seed", Column::Whole(seeds)));
        columns.push(named(of, Column::Text(who.iter().collect())));
        columns.extend(names.iter().zip(numbers).map(|(name, values)| named(name, Column::Number(values))));
        if self.plan.world() == super::plan::World::Emu {
            columns.push(named("invalid", Column::Text(invalid.iter().collect())));
        }
        Table::of(columns)
    }
}
