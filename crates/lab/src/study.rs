//! A study: scenarios x readings x seeds, and a measurement `R` of each run, in any world.
//!
//! - [`Study`] says what is run and measured, [`Bench`] where, how much, and where points are kept; [`Measurements`] has
//!   all measurements and the statistics over them.
//! - A [`Case`] is a scheme in a place. A scheme under another reading of its source is a scheme with a key of its own
//!   (`srp`, `srp-round`): readings stand beside each other as schemes do, in charts, points and ratios.
//! - Seeds are the same for every case (common random numbers), so that ratios and differences of schemes are taken seed
//!   by seed.
//! - Every measurement is made once. Studies that share a scenario and a [`Measure`] share the runs; with a [`Store`]
//!   each point is on disk as soon as it is known, and a later session goes on from there.
//! - Results do not depend on threads, on the order of the runs, or on what the store had.

mod measurements;
pub(crate) mod store;

pub use measurements::{Cell, Measurements, largest, smallest};
pub use store::{Store, StoreError};

use crate::pool::{self, Hooks};
use crate::simulate::{RunError, SeedRun, simulate};
use crate::stats::{MAX_SEEDS, MIN_SEEDS, seeds_wanted};
use fairpace_path::Trace;
use fairpace_scenario::{RawScenario, Record, SafetyMode, Scenario};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher};
use std::rc::Rc;

/// The effort of a session: how many seeds each study gets.
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

/// The seeds of [`Effort::Quick`].
pub const QUICK_SEEDS: usize = 2;

/// Runs one seed of a scenario somewhere.
pub type Runner<'a> = dyn Fn(&Scenario, u64, Record, &Hooks<'_>) -> Result<SeedRun, RunError> + Sync + 'a;

/// The name of the simulator in summaries.
pub const SIMULATED: &str = "sim";
/// The name of the emulator in summaries.
pub const EMULATED: &str = "emu";

/// The world in which scenarios are run.
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
    /// The errors of [`simulate`], or of the runner.
    pub fn run(self, s: &Scenario, seed: u64, record: Record, hooks: &Hooks<'_>) -> Result<SeedRun, RunError> {
        match self {
            World::Sim => simulate(s, seed, record, hooks),
            World::RealTime(run) => run(s, seed, record, hooks),
        }
    }

    /// Whether this is the simulator.
    pub fn is_sim(self) -> bool {
        matches!(self, World::Sim)
    }

    /// [`SIMULATED`] or [`EMULATED`].
    pub fn name(self) -> &'static str {
        if self.is_sim() { SIMULATED } else { EMULATED }
    }
}

impl core::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// One case of a study: a scheme in a place.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scheme's key, its reading included: `rcs`, `rap-fine`, `tcp-newreno`, …
    pub scheme: String,
    /// The place: a coordinate per axis.
    pub x: Vec<f64>,
    /// The scenario to run.
    pub scenario: Scenario,
}

impl Case {
    /// A case on one axis.
    pub fn new(scheme: impl Into<String>, x: f64, scenario: Scenario) -> Case {
        Case { scheme: scheme.into(), x: vec![x], scenario }
    }
}

/// One run that is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The seed; what else it may mean is the [`Measure`]'s to say.
    pub seed: u64,
    /// The world to run in.
    pub world: World<'a>,
    /// The stop flag and the progress callback.
    pub hooks: &'a Hooks<'a>,
    /// Whether rules of our own may decide in a scenario with `safety = "paper"`; see [`Bench::as_published`].
    pub own_rules: bool,
}

impl Job<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The errors of [`World::run`]; and [`RunError::Interrupted`] for a run that was cut short.
    pub fn run(&self, record: Record) -> Result<SeedRun, RunError> {
        let run = self.world.run(self.scenario, self.seed, record, self.hooks)?;
        if run.summary.interrupted {
            return Err(RunError::Interrupted);
        }
        self.allow(run.summary.own_rules)?;
        Ok(run)
    }

    /// Refuses a run in which rules of our own decided so many times, if none may.
    ///
    /// # Errors
    /// [`RunError::OwnRules`].
    pub fn allow(&self, own_rules: u64) -> Result<(), RunError> {
        if own_rules == 0 || self.own_rules || self.scenario.safety != SafetyMode::Paper {
            return Ok(());
        }
        Err(RunError::OwnRules { scenario: self.scenario.name.clone(), seed: self.seed, times: own_rules })
    }
}

/// A measurement of a run, by name. Everything that decides the measurement is in the scenario, the seed and the world.
#[derive(Clone, Copy, Debug)]
pub struct Measure<R> {
    /// The name under which points are kept: one per function.
    pub name: &'static str,
    /// Runs and measures.
    pub of: fn(&Job<'_>) -> Result<R, RunError>,
}

/// A number of a measurement; none if it has no such number.
pub type Number<R> = fn(&R) -> Option<f64>;

/// The precision to which a study is to know its points.
#[derive(Clone, Copy)]
pub struct Precision<R: 'static> {
    /// Each of these decides the number of seeds of a case.
    pub numbers: &'static [Number<R>],
    /// Cases (scheme, first coordinate) that get the most seeds from the start: a claim's bound is so near that fewer
    /// leave it undecided.
    pub most_seeds: fn(&str, f64) -> bool,
}

impl<R> Precision<R> {
    /// As many seeds as these numbers need, nowhere more.
    pub const fn of(numbers: &'static [Number<R>]) -> Precision<R> {
        Precision { numbers, most_seeds: |_, _| false }
    }

    /// The number of seeds that a case with these runs should have.
    fn seeds(&self, case: &Case, have: &[Rc<R>]) -> usize {
        if (self.most_seeds)(&case.scheme, case.x.first().copied().unwrap_or(0.0)) {
            return MAX_SEEDS;
        }
        let wanted = self.numbers.iter().map(|number| {
            let values: Vec<f64> = have.iter().filter_map(|r| number(r)).collect();
            // Without the number (nothing arrived in some run) more seeds would not help.
            if values.len() < have.len() { MIN_SEEDS } else { seeds_wanted(&values) }
        });
        wanted.max().unwrap_or(MIN_SEEDS)
    }
}

/// The seeds of each case.
#[derive(Clone)]
pub enum Sampling<R: 'static> {
    /// So many, from the scenario's own on.
    Count(usize),
    /// These, whatever the scenario's own is.
    Exactly(Vec<u64>),
    /// From the scenario's own on: at least five, until the half-width of the 95 % interval of each number is below 5 %
    /// of its mean, at most twenty.
    Enough(Precision<R>),
}

/// Scenarios, readings and seeds, and what is measured of them.
#[derive(Clone)]
pub struct Study<R: 'static> {
    /// The study's name in the progress report.
    pub name: String,
    /// The measurement of each run.
    pub measure: Measure<R>,
    /// The cases to run.
    pub cases: Vec<Case>,
    /// The seeds of each case.
    pub sampling: Sampling<R>,
}

/// The key of a measurement: its [`digest`] and its seed.
type Key = (String, u64);

/// A session: the world and the effort of its studies, and every measurement so far.
pub struct Bench<'a> {
    hooks: Hooks<'a>,
    effort: Effort,
    world: World<'a>,
    store: Option<Store>,
    /// Only asks for runs, each once: see [`Bench::planning`].
    planned: Option<BTreeSet<Key>>,
    known: BTreeMap<Key, Rc<dyn Any>>,
    simulated: usize,
    own_rules: bool,
    /// The change to every scenario.
    reading: Option<Change>,
}

/// A change to every scenario of a session: another reading of a paper.
pub type Change = std::sync::Arc<dyn Fn(&Scenario) -> Scenario>;

impl core::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bench").field("effort", &self.effort).field("world", &self.world).finish_non_exhaustive()
    }
}

impl<'a> Bench<'a> {
    /// In the simulator, keeping nothing on disk.
    pub fn new(hooks: Hooks<'a>, effort: Effort) -> Bench<'a> {
        let known = BTreeMap::new();
        Bench {
            hooks,
            effort,
            world: World::Sim,
            store: None,
            planned: None,
            known,
            simulated: 0,
            own_rules: true,
            reading: None,
        }
    }

    /// The same in another world.
    #[must_use]
    pub fn in_world(self, world: World<'a>) -> Bench<'a> {
        Bench { world, ..self }
    }

    /// The same with points kept on disk.
    #[must_use]
    pub fn kept_in(self, store: Option<Store>) -> Bench<'a> {
        Bench { store, ..self }
    }

    /// One that runs nothing: `asked` is told of each run that the first study would make in real time, and fails. A point
    /// that is kept on disk ([`Bench::kept_in`]) needs no run.
    pub fn planning(effort: Effort, asked: &'a Runner<'a>) -> Bench<'a> {
        let world = World::RealTime(asked);
        Bench { planned: Some(BTreeSet::new()), world, ..Bench::new(Hooks::default(), effort) }
    }

    /// The same for papers: a run with `safety = "paper"` in which a rule of our own decided is an error.
    #[must_use]
    pub fn as_published(self) -> Bench<'a> {
        Bench { own_rules: false, ..self }
    }

    /// From here on every scenario of every study is changed so; `None`: none is.
    pub fn read_as(&mut self, reading: Option<Change>) {
        self.reading = reading;
    }

    /// The session's world.
    pub fn world(&self) -> World<'a> {
        self.world
    }

    /// The session's effort.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// The stop flag and the progress callback.
    pub fn hooks(&self) -> &Hooks<'a> {
        &self.hooks
    }

    /// The seeds of a study that usually has so many, and for [`Effort::Full`] so many.
    pub fn seeds(&self, usual: usize, full: usize) -> usize {
        match self.effort {
            Effort::Seeds(n) => n,
            Effort::Usual => usual,
            Effort::Full => full,
            Effort::Quick => QUICK_SEEDS,
        }
    }

    /// The number of runs made so far, without the points that the store had.
    pub fn simulated(&self) -> usize {
        self.simulated
    }

    /// The number of runs on which the measurements rest: those made so far, and those that the store had.
    pub fn measured(&self) -> usize {
        self.known.len()
    }

    /// The store, if points are kept on disk.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The measurement under this key, if this run of the program has made it or asked for it.
    fn known<R: 'static>(&self, key: &Key) -> Option<Rc<R>> {
        self.known.get(key).cloned().and_then(|r| r.downcast().ok())
    }

    /// Measures each key that is not known yet, by the case beside it.
    fn make<R>(&mut self, study: &Study<R>, world: World<'a>, wanted: &[(Key, usize)]) -> Result<(), RunError>
    where
        R: Serialize + DeserializeOwned + Send + 'static,
    {
        let mut missing: Vec<&(Key, usize)> = Vec::new();
        let mut seen = BTreeSet::new();
        for place in wanted {
            let key = &place.0;
            if self.known.contains_key(key) || !seen.insert(key) {
                continue;
            }
            match self.store.as_mut().and_then(|store| store.take::<R>(&key.0, key.1)) {
                Some(kept) => {
                    self.known.insert(key.clone(), Rc::new(kept));
                }
                None => missing.push(place),
            }
        }
        // In real time one after the other, if nothing else was said.
        let least = usize::from(!world.is_sim());
        let own_rules = self.own_rules;
        let hooks = Hooks { threads: self.hooks.threads.max(least), ..self.hooks };
        let job = |(key, case): &(Key, usize)| {
            let scenario = &study.cases[*case].scenario;
            (study.measure.of)(&Job { scenario, seed: key.1, world, hooks: &hooks, own_rules })
        };
        if let Some(planned) = &mut self.planned {
            for place in missing.into_iter().filter(|place| planned.insert(place.0.clone())) {
                let _ = job(place);
            }
            let is_known = wanted.iter().all(|(key, _)| self.known.contains_key(key));
            return if is_known { Ok(()) } else { Err(RunError::Interrupted) };
        }
        let label = |(key, case): &&(Key, usize)| study.label(&study.cases[*case], key.1);
        let store = self.store.as_ref();
        let made = pool::map(&missing, &hooks, label, |place| {
            let made = job(place)?;
            if let Some(store) = store {
                store.append(&place.0.0, study.measure.name, place.0.1, &made)?;
            }
            Ok::<R, RunError>(made)
        })?;
        for ((key, _), result) in missing.into_iter().zip(made) {
            let result: R = result.ok_or(RunError::Interrupted)?;
            self.simulated += 1;
            self.known.insert(key.clone(), Rc::new(result));
        }
        Ok(())
    }
}

impl<R: Serialize + DeserializeOwned + Send + 'static> Study<R> {
    /// Runs every case and seed that is not known yet, in the world of the bench.
    ///
    /// # Errors
    /// A scenario is refused, a point cannot be kept, or the stop flag was set.
    pub fn run(&self, bench: &mut Bench<'_>) -> Result<Measurements<R>, RunError> {
        self.run_in(bench.world(), bench)
    }

    /// The same in the simulator, whatever the world of the bench.
    ///
    /// # Errors
    /// The errors of [`Study::run`].
    pub fn simulate(&self, bench: &mut Bench<'_>) -> Result<Measurements<R>, RunError> {
        self.run_in(World::Sim, bench)
    }

    fn run_in<'a>(&self, world: World<'a>, bench: &mut Bench<'a>) -> Result<Measurements<R>, RunError> {
        if let Some(reading) = bench.reading.clone() {
            let read = |c: &Case| Case { scenario: reading(&c.scenario), ..c.clone() };
            let sampling = match &self.sampling {
                Sampling::Count(n) => Sampling::Count(*n),
                Sampling::Exactly(seeds) => Sampling::Exactly(seeds.clone()),
                Sampling::Enough(Precision { numbers, most_seeds }) => {
                    Sampling::Enough(Precision { numbers, most_seeds: *most_seeds })
                }
            };
            let measure = Measure { name: self.measure.name, of: self.measure.of };
            let cases = self.cases.iter().map(read).collect();
            let study = Study { name: self.name.clone(), measure, cases, sampling };
            return study.run_as_written(world, bench);
        }
        self.run_as_written(world, bench)
    }

    fn run_as_written<'a>(&self, world: World<'a>, bench: &mut Bench<'a>) -> Result<Measurements<R>, RunError> {
        let mut known = Recordings::default();
        let scenarios = self.cases.iter().map(|case| &case.scenario);
        let keys: Vec<String> =
            scenarios.map(|scenario| digest::<R>(self.measure.name, world.name(), scenario, &mut known)).collect();
        let runs = match &self.sampling {
            Sampling::Count(n) => self.listed(world, bench, &keys, |case| from(&case.scenario).take(*n).collect())?,
            Sampling::Exactly(seeds) => self.listed(world, bench, &keys, |_| seeds.clone())?,
            Sampling::Enough(precision) => self.enough(world, bench, &keys, precision)?,
        };
        let cell = |(case, runs): (&Case, Vec<Rc<R>>)| Cell { scheme: case.scheme.clone(), x: case.x.clone(), runs };
        Ok(Measurements { cells: self.cases.iter().zip(runs).map(cell).collect() })
    }

    fn listed<'a>(
        &self,
        world: World<'a>,
        bench: &mut Bench<'a>,
        keys: &[String],
        seeds: impl Fn(&Case) -> Vec<u64>,
    ) -> Result<Vec<Vec<Rc<R>>>, RunError> {
        let of_case = |(index, key): (usize, &String)| -> Vec<(Key, usize)> {
            seeds(&self.cases[index]).into_iter().map(|seed| ((key.clone(), seed), index)).collect()
        };
        let places: Vec<Vec<(Key, usize)>> = keys.iter().enumerate().map(of_case).collect();
        bench.make(self, world, &places.concat())?;
        let known = |of: &Vec<(Key, usize)>| of.iter().map(|(key, _)| bench.known(key)).collect::<Option<Vec<_>>>();
        places.iter().map(known).collect::<Option<Vec<_>>>().ok_or(RunError::Interrupted)
    }

    fn enough<'a>(
        &self,
        world: World<'a>,
        bench: &mut Bench<'a>,
        keys: &[String],
        precision: &Precision<R>,
    ) -> Result<Vec<Vec<Rc<R>>>, RunError> {
        let first = |index: usize| from(&self.cases[index].scenario);
        loop {
            // Another study may have run some of these seeds: this one goes on from there.
            let mut have: Vec<Vec<Rc<R>>> = keys
                .iter()
                .enumerate()
                .map(|(index, key)| first(index).map_while(|seed| bench.known(&(key.clone(), seed))).collect())
                .collect();
            let mut wanted: Vec<(Key, usize)> = Vec::new();
            for (index, (key, runs)) in keys.iter().zip(&mut have).enumerate() {
                let seeds = |runs: &[Rc<R>]| match bench.effort {
                    Effort::Seeds(n) => n,
                    Effort::Quick => QUICK_SEEDS,
                    Effort::Usual | Effort::Full => precision.seeds(&self.cases[index], runs),
                };
                // The rule stops where it would have stopped had no other study run these seeds.
                let mut judged = 0;
                let needed = loop {
                    let needed = seeds(&runs[..judged]);
                    if needed <= judged || needed > runs.len() {
                        break needed.max(judged);
                    }
                    judged = needed;
                };
                runs.truncate(needed);
                wanted.extend(first(index).take(needed).skip(runs.len()).map(|seed| ((key.clone(), seed), index)));
            }
            if wanted.is_empty() {
                return Ok(have);
            }
            bench.make(self, world, &wanted)?;
        }
    }

    fn label(&self, case: &Case, seed: u64) -> String {
        let x: Vec<String> = case.x.iter().map(f64::to_string).collect();
        format!("{} {} at {} seed {seed}", self.name, case.scheme, x.join(", "))
    }
}

/// The seeds of a scenario: its own, and those after it.
fn from(scenario: &Scenario) -> impl Iterator<Item = u64> {
    scenario.seed.get()..
}

/// The digest of a measure's name and its type, world, scenario and its recordings; the scenario's name and title do not count.
pub(crate) fn digest<'a, R>(measure: &str, world: &str, scenario: &'a Scenario, known: &mut Recordings<'a>) -> String {
    let mut bare = RawScenario::clone(scenario);
    bare.name.clear();
    bare.title.clear();
    let mut hash = Sha256::new();
    for part in [measure, core::any::type_name::<R>(), world, &bare.to_toml()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    for recording in scenario.recordings() {
        hash.update(known.digest(recording).as_bytes());
    }
    digits(hash)
}

/// Digests of recordings, every step of them. Scenarios of a study share theirs, and each is read once.
#[derive(Default)]
pub(crate) struct Recordings<'a>(Vec<(&'a Trace, String)>);

impl<'a> Recordings<'a> {
    /// 32 hexadecimal digits.
    pub(crate) fn digest(&mut self, recording: &'a Trace) -> &str {
        let at = self.0.iter().position(|(known, _)| core::ptr::eq(*known, recording)).unwrap_or_else(|| {
            let mut sum = Sum(Sha256::new());
            recording.hash(&mut sum);
            self.0.push((recording, digits(sum.0)));
            self.0.len() - 1
        });
        self.0.get(at).map_or("", |(_, digest)| digest)
    }
}

/// A hasher that takes a digest: all bytes go into the sum as they are.
struct Sum(Sha256);

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not the sum, which is longer.
    fn finish(&self) -> u64 {
        0
    }
}

/// The first 32 hexadecimal digits.
pub(crate) fn digits(hash: Sha256) -> String {
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
