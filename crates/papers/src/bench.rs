//! Cells of a grid, each with as many seeds as it needs, all cores busy, every number kept once.
//!
//! Seeds are the same for every cell (common random numbers), so that ratios and differences of
//! schemes are taken seed by seed.

use fairpace_lab::metrics::RunSummary;
use fairpace_lab::pool::{self, Hooks};
use fairpace_lab::run::{RunError, SeedRun, simulate};
use fairpace_lab::stats::{Estimate, MAX_SEEDS, MIN_SEEDS, seeds_wanted};
use fairpace_scenario::{RawScenario, Record, Scenario};
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How much of each experiment to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Effort {
    /// As many seeds as each point needs.
    #[default]
    Usual,
    /// So many seeds for every point.
    Seeds(usize),
    /// As [`Effort::Usual`], but the paper's own sizes where the usual ones are smaller.
    Full,
    /// Two seeds for every point, and shorter runs where an experiment has them.
    Quick,
}

/// Runs one seed of a scenario somewhere.
pub type Runner<'a> = dyn Fn(&Scenario, u64, Record, &Hooks<'_>) -> Result<SeedRun, RunError> + Sync + 'a;

/// Where scenarios are run.
#[derive(Clone, Copy, Default)]
pub enum World<'a> {
    /// In the simulator, all cores busy.
    #[default]
    Sim,
    /// In real time: as many runs beside each other as [`Hooks::threads`] says, where 0 is one.
    RealTime(&'a Runner<'a>),
}

impl World<'_> {
    /// Runs one seed.
    ///
    /// # Errors
    /// As [`simulate`], or as the runner.
    pub fn run(self, s: &Scenario, seed: u64, record: Record, hooks: &Hooks<'_>) -> Result<SeedRun, RunError> {
        match self {
            World::Sim => simulate(s, seed, record, hooks),
            World::RealTime(run) => run(s, seed, record, hooks),
        }
    }
}

impl core::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if matches!(self, World::Sim) { "Sim" } else { "RealTime" })
    }
}

/// The seeds of [`Effort::Quick`].
pub const QUICK_SEEDS: usize = 2;

/// One point of a grid: a scheme in a place.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The scheme's key: `rcs`, `rap-fine`, `tcp-newreno`, …
    pub scheme: &'static str,
    /// Where on the abscissa.
    pub x: f64,
    /// What is run.
    pub scenario: Scenario,
}

/// A number of one run; none if the run has no such number.
pub type Metric = fn(&RunSummary) -> Option<f64>;

/// How well a grid is to be known.
#[derive(Clone, Copy)]
pub struct Precision<'m> {
    /// Each of these decides the number of seeds of a cell.
    pub metrics: &'m [Metric],
    /// Cells (scheme, place) that get the most seeds from the start: a claim's bound is so near that
    /// fewer leave it undecided.
    pub most_seeds: fn(&str, f64) -> bool,
}

impl<'m> Precision<'m> {
    /// As many seeds as these numbers need, nowhere more.
    pub fn of(metrics: &'m [Metric]) -> Precision<'m> {
        Precision { metrics, most_seeds: |_, _| false }
    }

    /// The number of seeds that a cell with these runs should have.
    fn seeds(&self, cell: &Cell, have: &[RunSummary]) -> usize {
        if (self.most_seeds)(cell.scheme, cell.x) {
            return MAX_SEEDS;
        }
        let wanted = self.metrics.iter().map(|metric| {
            let values: Vec<f64> = have.iter().filter_map(metric).collect();
            // Without the number (nothing arrived in some run) more seeds would not help.
            if values.len() < have.len() { MIN_SEEDS } else { seeds_wanted(&values) }
        });
        wanted.max().unwrap_or(MIN_SEEDS)
    }
}

/// A cell and its runs, in order of the seeds.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The scheme's key.
    pub scheme: &'static str,
    /// Where on the abscissa.
    pub x: f64,
    /// One per seed.
    pub runs: Rc<Vec<RunSummary>>,
}

/// Runs cells, and remembers what was run: figures that show the same runs do not run them twice.
#[derive(Debug)]
pub struct Bench<'a> {
    hooks: Hooks<'a>,
    effort: Effort,
    world: World<'a>,
    /// Only asks for runs, each once: see [`Bench::planning`].
    planned: Option<BTreeSet<(TypeId, String, u64)>>,
    memory: BTreeMap<String, Rc<Vec<RunSummary>>>,
    /// What [`Bench::keep`] made of a scenario, by kind of result, scenario and seed.
    kept: BTreeMap<(TypeId, String, u64), Rc<dyn Any>>,
    simulated: usize,
}

impl<'a> Bench<'a> {
    /// An empty one.
    pub fn new(hooks: Hooks<'a>, effort: Effort) -> Bench<'a> {
        let (memory, kept) = (BTreeMap::new(), BTreeMap::new());
        Bench { hooks, effort, world: World::Sim, planned: None, memory, kept, simulated: 0 }
    }

    /// The same in another world.
    #[must_use]
    pub fn in_world(self, world: World<'a>) -> Bench<'a> {
        Bench { world, ..self }
    }

    /// One that runs nothing: `asked` is told of each run that [`Bench::keep`] would make, and fails.
    pub fn planning(effort: Effort, asked: &'a Runner<'a>) -> Bench<'a> {
        let world = World::RealTime(asked);
        Bench { planned: Some(BTreeSet::new()), world, ..Bench::new(Hooks::default(), effort) }
    }

    /// Where it runs.
    pub fn world(&self) -> World<'a> {
        self.world
    }

    /// How much is wanted.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// What to report to and listen to.
    pub fn hooks(&self) -> &Hooks<'a> {
        &self.hooks
    }

    /// As [`hooks`](Bench::hooks), for one simulation outside a grid, which is counted.
    pub fn single(&mut self) -> &Hooks<'a> {
        self.singles(1)
    }

    /// The same for so many.
    pub fn singles(&mut self, simulations: usize) -> &Hooks<'a> {
        self.simulated += simulations;
        &self.hooks
    }

    /// How many simulations were run so far.
    pub fn simulated(&self) -> usize {
        self.simulated
    }

    /// Runs every cell until each metric of `precision` is known well enough: at least five seeds,
    /// until the half-width of its 95 % interval is below 5 % of its mean, at most twenty.
    ///
    /// # Errors
    /// The simulator refuses a scenario, or the stop flag was set.
    pub fn measure(&mut self, name: &str, cells: &[Cell], precision: &Precision<'_>) -> Result<Grid, RunError> {
        let keys: Vec<String> = cells.iter().map(|c| key(&c.scenario)).collect();
        // What another figure ran may want more seeds for this figure's metric: it goes on from there.
        let mut runs: BTreeMap<&str, Vec<RunSummary>> = BTreeMap::new();
        for key in &keys {
            let before = self.memory.get(key).map_or(Vec::new(), |r| r.to_vec());
            runs.insert(key, before);
        }
        loop {
            let mut jobs: Vec<(usize, u64)> = Vec::new();
            // Per scenario, the cell that wants the most seeds of it.
            let mut planned: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
            for (index, (key, cell)) in keys.iter().zip(cells).enumerate() {
                let have = runs.get(key.as_str()).map_or(&[][..], Vec::as_slice);
                let wanted = match self.effort {
                    Effort::Seeds(n) => n,
                    Effort::Quick => QUICK_SEEDS,
                    Effort::Usual | Effort::Full => precision.seeds(cell, have),
                };
                let most = planned.entry(key).or_insert((wanted, index));
                *most = (wanted.max(most.0), most.1);
            }
            for (key, (wanted, index)) in planned {
                let have = runs.get(key).map_or(0, Vec::len);
                jobs.extend((have..wanted).map(|i| (index, cells[index].scenario.seed.get() + i as u64)));
            }
            if jobs.is_empty() {
                break;
            }
            let label = |(index, seed): &(usize, u64)| {
                let cell = &cells[*index];
                format!("{name} {} at {} seed {seed}", cell.scheme, cell.x)
            };
            let hooks = self.hooks;
            let results = pool::map(&jobs, &hooks, label, |(index, seed)| {
                simulate(&cells[*index].scenario, *seed, Record::default(), &hooks).map(|r| r.summary)
            });
            let whole =
                |r: &&Option<Result<RunSummary, RunError>>| matches!(r, Some(Ok(summary)) if !summary.interrupted);
            self.simulated += results.iter().filter(whole).count();
            for ((index, _), result) in jobs.iter().zip(results) {
                let summary = result.transpose()?.filter(|s| !s.interrupted).ok_or(RunError::Interrupted)?;
                if let Some(list) = runs.get_mut(keys[*index].as_str()) {
                    list.push(summary);
                }
            }
        }
        for (key, list) in runs {
            self.memory.insert(key.to_owned(), Rc::new(list));
        }
        let measured = cells.iter().zip(&keys).map(|(cell, key)| Measured {
            scheme: cell.scheme,
            x: cell.x,
            runs: self.memory.get(key).cloned().unwrap_or_default(),
        });
        Ok(Grid { cells: measured.collect() })
    }

    /// What `work` makes of each scenario and seed, in their order, all cores busy (in real time: [`World::RealTime`]). Each is made once, however
    /// many figures show it. (Asked for under another name, a scenario is the same.)
    ///
    /// # Errors
    /// As `work`, or the stop flag was set.
    pub fn keep<R: Send + 'static>(
        &mut self,
        jobs: &[(Scenario, u64)],
        label: impl Fn(&Scenario, u64) -> String + Sync,
        work: impl Fn(&Scenario, u64, &Hooks<'_>) -> Result<R, RunError> + Sync,
    ) -> Result<Vec<Rc<R>>, RunError> {
        let place = |(scenario, seed): &(Scenario, u64)| (TypeId::of::<R>(), key(scenario), *seed);
        let places: Vec<(TypeId, String, u64)> = jobs.iter().map(place).collect();
        let mut seen = BTreeSet::new();
        let missing: Vec<usize> =
            (0..jobs.len()).filter(|&i| !self.kept.contains_key(&places[i]) && seen.insert(&places[i])).collect();
        if let Some(planned) = &mut self.planned {
            for &i in &missing {
                if planned.insert(places[i].clone()) {
                    let _ = work(&jobs[i].0, jobs[i].1, &self.hooks);
                }
            }
            return Err(RunError::Interrupted);
        }
        let least = usize::from(matches!(self.world, World::RealTime(_)));
        let hooks = Hooks { threads: self.hooks.threads.max(least), ..self.hooks };
        let made =
            pool::map(&missing, &hooks, |&i| label(&jobs[i].0, jobs[i].1), |&i| work(&jobs[i].0, jobs[i].1, &hooks));
        for (&i, result) in missing.iter().zip(made) {
            let result = result.transpose()?.ok_or(RunError::Interrupted)?;
            self.simulated += 1;
            self.kept.insert(places[i].clone(), Rc::new(result));
        }
        let all = places.iter().map(|place| self.kept.get(place).cloned().and_then(|r| r.downcast().ok()));
        all.collect::<Option<Vec<Rc<R>>>>().ok_or(RunError::Interrupted)
    }
}

/// What a scenario computes, without its name and title.
fn key(scenario: &Scenario) -> String {
    let mut bare = RawScenario::clone(scenario);
    bare.name.clear();
    bare.title.clear();
    bare.to_toml()
}

/// Everything measured for one figure.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// The cells, in the order in which they were asked for.
    pub cells: Vec<Measured>,
}

impl Grid {
    /// The schemes, in order of appearance.
    pub fn schemes(&self) -> Vec<&'static str> {
        let mut schemes = Vec::new();
        for cell in &self.cells {
            if !schemes.contains(&cell.scheme) {
                schemes.push(cell.scheme);
            }
        }
        schemes
    }

    /// Where a scheme was measured, in rising order.
    pub fn xs(&self, scheme: &str) -> Vec<f64> {
        let mut xs: Vec<f64> = self.cells.iter().filter(|c| c.scheme == scheme).map(|c| c.x).collect();
        xs.sort_by(f64::total_cmp);
        xs
    }

    /// One place per seed, in their order; empty where the run has no such number.
    fn by_seed(&self, scheme: &str, x: f64, metric: Metric) -> Vec<Option<f64>> {
        let cell = self.cells.iter().find(|c| c.scheme == scheme && (c.x - x).abs() <= 1e-9 * x.abs());
        cell.map_or(Vec::new(), |c| c.runs.iter().map(metric).collect())
    }

    /// One number per seed that has it.
    pub fn values(&self, scheme: &str, x: f64, metric: Metric) -> Vec<f64> {
        self.by_seed(scheme, x, metric).into_iter().flatten().collect()
    }

    /// The mean over the seeds with its interval.
    pub fn estimate(&self, scheme: &str, x: f64, metric: Metric) -> Option<Estimate> {
        Estimate::of(&self.values(scheme, x, metric))
    }

    /// `combine(a, b)` seed by seed, over the seeds that both have.
    pub fn paired(
        &self,
        a: (&str, f64, Metric),
        b: (&str, f64, Metric),
        combine: impl Fn(f64, f64) -> f64,
    ) -> Option<Estimate> {
        let (left, right) = (self.by_seed(a.0, a.1, a.2), self.by_seed(b.0, b.1, b.2));
        let combined: Vec<f64> = left.into_iter().zip(right).filter_map(|(l, r)| Some(combine(l?, r?))).collect();
        Estimate::of(&combined)
    }

    /// `a / b` at the same place, seed by seed.
    pub fn ratio(&self, a: &str, b: &str, x: f64, metric: Metric) -> Option<Estimate> {
        self.paired((a, x, metric), (b, x, metric), |l, r| l / r)
    }

    /// The number at one place over the number at another, same scheme, seed by seed.
    pub fn relative(&self, scheme: &str, x: f64, to: f64, metric: Metric) -> Option<Estimate> {
        self.paired((scheme, x, metric), (scheme, to, metric), |l, r| l / r)
    }
}

/// The estimate with the smallest mean, and where it was.
pub(super) fn smallest(candidates: impl Iterator<Item = (f64, Option<Estimate>)>) -> (f64, Option<Estimate>) {
    extreme(candidates, |new, best| new < best)
}

/// The estimate with the largest mean, and where it was.
pub(super) fn largest(candidates: impl Iterator<Item = (f64, Option<Estimate>)>) -> (f64, Option<Estimate>) {
    extreme(candidates, |new, best| new > best)
}

/// One place without a number makes the whole unknown: a claim about "everywhere" needs them all.
fn extreme(
    candidates: impl Iterator<Item = (f64, Option<Estimate>)>,
    better: fn(f64, f64) -> bool,
) -> (f64, Option<Estimate>) {
    let mut best: (f64, Option<Estimate>) = (0.0, None);
    for (x, estimate) in candidates {
        match (estimate, best.1) {
            (None, _) => return (x, None),
            (Some(new), Some(old)) if !better(new.mean, old.mean) => {}
            (Some(_), _) => best = (x, estimate),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn a_scenario_is_worked_on_once_for_all_figures_that_show_it_and_answers_come_in_order() {
        let scenario = |seconds: u64, title: &str| {
            let text = format!(
                "title = \"{title}\"\nduration = \"{seconds} s\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"10 ms\"\n\
                 [[flows]]\ncontroller = \"rap\"\n"
            );
            Scenario::parse(&text, "keep.toml").unwrap()
        };
        let made = AtomicUsize::new(0);
        let work = |s: &Scenario, seed: u64, _: &Hooks<'_>| {
            made.fetch_add(1, Ordering::Relaxed);
            Ok(s.duration.get().as_secs_f64() as u64 * 10 + seed)
        };
        let label = |_: &Scenario, _: u64| String::new();
        let mut bench = Bench::new(Hooks::default(), Effort::Usual);
        let (one, two) = (scenario(1, "a"), scenario(2, "a"));
        let first = bench.keep(&[(two.clone(), 1), (one.clone(), 1), (two.clone(), 1)], label, work).unwrap();
        assert_eq!(first.iter().map(|r| **r).collect::<Vec<_>>(), [21, 11, 21]);
        let second = bench.keep(&[(scenario(2, "another title"), 1), (one, 2)], label, work).unwrap();
        assert_eq!(second.iter().map(|r| **r).collect::<Vec<_>>(), [21, 12]);
        assert_eq!((made.load(Ordering::Relaxed), bench.simulated()), (3, 3));

        let stop = AtomicBool::new(true);
        let mut stopped = Bench::new(Hooks { stop: &stop, ..Hooks::default() }, Effort::Usual);
        assert!(matches!(stopped.keep(&[(two, 1)], label, work), Err(RunError::Interrupted)));
    }
}
