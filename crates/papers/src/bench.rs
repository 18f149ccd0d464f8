//! The old grids, until every paper stands on a study.

use fairpace_lab::metrics::RunSummary;
use fairpace_lab::run::{RunError, simulate};
use fairpace_lab::stats::{Estimate, MAX_SEEDS, MIN_SEEDS, seeds_wanted};
pub(crate) use fairpace_lab::study::{Bench, Effort, QUICK_SEEDS, World};
use fairpace_lab::study::{largest as l, smallest as s};
use fairpace_scenario::{Record, Scenario};
use std::rc::Rc;

/// One point of a grid: a scheme in a place.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The scheme's key: `rcs`, `rap-fine`, `tcp-newreno`, …
    pub(crate) scheme: &'static str,
    /// Where on the abscissa.
    pub(crate) x: f64,
    /// What is run.
    pub(crate) scenario: Scenario,
}

/// A number of one run; none if the run has no such number.
pub(crate) type Metric = fn(&RunSummary) -> Option<f64>;

/// How well a grid is to be known.
#[derive(Clone, Copy)]
pub(crate) struct Precision<'m> {
    /// Each of these decides the number of seeds of a cell.
    pub(crate) metrics: &'m [Metric],
    /// Cells (scheme, place) that get the most seeds from the start: a claim's bound is so near that
    /// fewer leave it undecided.
    pub(crate) most_seeds: fn(&str, f64) -> bool,
}

impl<'m> Precision<'m> {
    /// As many seeds as these numbers need, nowhere more.
    pub(crate) fn of(metrics: &'m [Metric]) -> Precision<'m> {
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
pub(crate) struct Measured {
    /// The scheme's key.
    pub(crate) scheme: &'static str,
    /// Where on the abscissa.
    pub(crate) x: f64,
    /// One per seed.
    pub(crate) runs: Rc<Vec<RunSummary>>,
}

/// What the old papers ask of a bench.
pub(crate) trait Old {
    fn measure(&mut self, name: &str, cells: &[Cell], precision: &Precision<'_>) -> Result<Grid, RunError>;
}

impl Old for Bench<'_> {
    fn measure(&mut self, name: &str, cells: &[Cell], precision: &Precision<'_>) -> Result<Grid, RunError> {
        let mut runs: Vec<Vec<RunSummary>> = vec![Vec::new(); cells.len()];
        loop {
            let mut jobs = Vec::new();
            let mut of = Vec::new();
            for (i, cell) in cells.iter().enumerate() {
                let wanted = match self.effort() {
                    Effort::Seeds(n) => n,
                    Effort::Quick => QUICK_SEEDS,
                    Effort::Usual | Effort::Full => precision.seeds(cell, &runs[i]),
                };
                for n in runs[i].len()..wanted {
                    jobs.push((cell.scenario.clone(), cell.scenario.seed.get() + n as u64));
                    of.push(i);
                }
            }
            if jobs.is_empty() {
                break;
            }
            let label = |_: &Scenario, seed: u64| format!("{name} seed {seed}");
            let made = self.keep(&jobs, label, |s, seed, hooks| {
                let run = simulate(s, seed, Record::default(), hooks)?.summary;
                if run.interrupted { Err(RunError::Interrupted) } else { Ok(run) }
            })?;
            for (i, run) in of.into_iter().zip(made) {
                runs[i].push((*run).clone());
            }
        }
        let measured =
            cells.iter().zip(runs).map(|(cell, runs)| Measured { scheme: cell.scheme, x: cell.x, runs: Rc::new(runs) });
        Ok(Grid { cells: measured.collect() })
    }
}

/// Everything measured for one figure.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// The cells, in the order in which they were asked for.
    pub(crate) cells: Vec<Measured>,
}

impl Grid {
    /// The schemes, in order of appearance.
    pub(crate) fn schemes(&self) -> Vec<&'static str> {
        let mut schemes = Vec::new();
        for cell in &self.cells {
            if !schemes.contains(&cell.scheme) {
                schemes.push(cell.scheme);
            }
        }
        schemes
    }

    /// Where a scheme was measured, in rising order.
    pub(crate) fn xs(&self, scheme: &str) -> Vec<f64> {
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
    pub(crate) fn values(&self, scheme: &str, x: f64, metric: Metric) -> Vec<f64> {
        self.by_seed(scheme, x, metric).into_iter().flatten().collect()
    }

    /// The mean over the seeds with its interval.
    pub(crate) fn estimate(&self, scheme: &str, x: f64, metric: Metric) -> Option<Estimate> {
        Estimate::of(&self.values(scheme, x, metric))
    }
}

pub(super) fn smallest(of: impl Iterator<Item = (f64, Option<Estimate>)>) -> (f64, Option<Estimate>) {
    s(of)
}

pub(super) fn largest(of: impl Iterator<Item = (f64, Option<Estimate>)>) -> (f64, Option<Estimate>) {
    l(of)
}
