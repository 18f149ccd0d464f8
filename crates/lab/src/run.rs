//! Runs: a scenario and seeds in, results out; several controllers over the same path.
//!
//! Seeds run in parallel; results come in the order of the seeds, the same bytes whatever the
//! thread count. Comparisons use common random numbers: the same seeds, the same names of streams,
//! so that every controller meets the same losses.

use crate::metrics::RunSummary;
use crate::pool::{self, Hooks};
use crate::seed_results::SeedResults;
use crate::stats::{Estimate, seeds_wanted};
use crate::study::{Recordings, Runner, Store, World, digest};
use crate::summary::{self, GroupMetric, Metric, Summary};
use crate::table::{Table, number, text, whole};
use fairpace_scenario::{Record, Scenario, ScenarioError, with_controller};
use std::collections::BTreeSet;

pub use crate::simulate::{Outputs, RunError, SeedRun, simulate, simulate_into, simulate_observed};

/// The most flows that `run --json` prints one by one.
const MOST_FLOWS: usize = 1_000;

/// How many seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// Exactly so many, at least one.
    Count(usize),
    /// At least five, until the half-width of the 95 % interval of every group's throughput is below
    /// 5 % of its mean, at most twenty. In real time five: all are set up before the first runs.
    Enough,
}

impl Seeds {
    /// How many there should be, after these.
    fn wanted(self, runs: &[SeedResults]) -> usize {
        match self {
            Seeds::Count(n) => n.max(1),
            Seeds::Enough => {
                let groups = runs.first().map_or(Vec::new(), |r| r.summary.groups.clone());
                let needs = groups.iter().map(|g| seeds_wanted(&throughputs(runs, &g.name)));
                needs.max().unwrap_or(crate::stats::MIN_SEEDS)
            }
        }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// How many seeds, counted up from the scenario's.
    pub seeds: Seeds,
    /// The records to keep beside the counters.
    pub record: Record,
}

impl Default for RunOptions {
    /// One seed, with time series and events.
    fn default() -> Self {
        RunOptions { seeds: Seeds::Count(1), record: Record { series: true, events: true, pcap: false } }
    }
}

/// One scenario's results over its seeds.
#[derive(Clone, Debug)]
pub struct RunSet {
    /// The scenario as run.
    pub scenario: Scenario,
    /// One per seed that was run, in order of the seeds; the last may be cut short.
    pub runs: Vec<SeedResults>,
    /// True if somebody stopped it: what is here is valid, but not all that was asked for.
    pub interrupted: bool,
}

/// Runs the scenario in the simulator with as many seeds as asked for.
///
/// # Errors
/// The scenario is refused by the simulator, or nothing was finished before the stop flag.
pub fn run(scenario: &Scenario, options: &RunOptions, hooks: &Hooks<'_>) -> Result<RunSet, RunError> {
    run_in(World::Sim, scenario, options, None, hooks)
}

/// The same in any world. With a store each seed is on disk as soon as it is finished, and none that is there already is
/// run again (but where packets are to be recorded, which the store does not keep).
///
/// # Errors
/// As [`run`], and those of the world and of the store.
pub fn run_in(
    world: World<'_>,
    scenario: &Scenario,
    options: &RunOptions,
    store: Option<&mut Store>,
    hooks: &Hooks<'_>,
) -> Result<RunSet, RunError> {
    let store = store.filter(|_| !options.record.pcap).map(|store| (store, digest_of(world.name(), scenario)));
    run_seeds(&|s, seed, record, hooks| world.run(s, seed, record, hooks), scenario, options, store, hooks)
}

/// As [`run`], each seed by a function: where parts of it are not the scenario's to say.
///
/// # Errors
/// Those of the function, or nothing was finished before the stop flag.
pub fn run_by(
    one: &Runner<'_>,
    scenario: &Scenario,
    options: &RunOptions,
    hooks: &Hooks<'_>,
) -> Result<RunSet, RunError> {
    run_seeds(one, scenario, options, None, hooks)
}

/// Runs as many seeds as asked for, but those that the store has under a digest.
fn run_seeds(
    one: &Runner<'_>,
    scenario: &Scenario,
    options: &RunOptions,
    mut store: Option<(&mut Store, String)>,
    hooks: &Hooks<'_>,
) -> Result<RunSet, RunError> {
    let first = scenario.seed.get();
    let mut runs: Vec<SeedResults> = Vec::new();
    loop {
        let wanted = options.seeds.wanted(&runs);
        if runs.len() >= wanted || hooks.stopped() {
            break;
        }
        let mut seeds: Vec<u64> = (first..).take(wanted).skip(runs.len()).collect();
        if let Some((store, digest)) = &mut store {
            let before = runs.len();
            seeds.retain(|seed| {
                store.take(digest, *seed).is_none_or(|kept| {
                    runs.push(kept);
                    false
                })
            });
            // The kept seeds may be all that is wanted.
            if seeds.is_empty() && runs.len() > before {
                continue;
            }
        }
        let label = |seed: &u64| format!("{} seed {seed}", scenario.name);
        let store = store.as_ref().map(|(store, digest)| (&**store, digest));
        let made = pool::map(&seeds, hooks, label, |seed| {
            let results = SeedResults::new(scenario, one(scenario, *seed, options.record, hooks)?)?;
            if let Some((store, digest)) = store.filter(|_| !results.summary.interrupted) {
                store.append(digest, MEASURE, *seed, &results)?;
            }
            Ok::<_, RunError>(results)
        })?;
        runs.extend(made.into_iter().flatten());
        runs.sort_by_key(SeedResults::seed);
    }
    // A hole in the middle would pair wrong seeds: keep what is before it.
    let whole = runs.iter().zip(first..).take_while(|(run, seed)| run.seed() == *seed).count();
    runs.truncate(whole);
    if runs.is_empty() {
        return Err(RunError::Interrupted);
    }
    let interrupted = hooks.stopped() || runs.iter().any(|r| r.summary.interrupted);
    Ok(RunSet { scenario: scenario.clone(), runs, interrupted })
}

/// The name under which whole runs are kept.
const MEASURE: &str = "run";

/// The digest under which a scenario's runs in a world (its name) are kept; of its recordings, too.
pub fn digest_of(world: &str, scenario: &Scenario) -> String {
    digest::<SeedResults>(MEASURE, world, scenario, &mut Recordings::default())
}

/// The same path with each of several controllers: `rcs`, or with parameters `rap:fine_grain=on,alpha=2`.
///
/// # Errors
/// A name that is not a controller, and parameters that it has not.
pub fn variants(scenario: &Scenario, controllers: &[String]) -> Result<Vec<(String, Scenario)>, ScenarioError> {
    controllers.iter().map(|name| Ok((name.clone(), with_controller(scenario, name)?))).collect()
}

fn throughputs(runs: &[SeedResults], group: &str) -> Vec<f64> {
    runs.iter().filter_map(|r| r.summary.group(group)).map(|g| g.throughput_bps).collect()
}

impl RunSet {
    /// Whether the seeds are different runs; none with one seed. Without anything random in a scenario they are one run, and a spread of
    /// zero says nothing about it.
    pub fn seeds_differ(&self) -> Option<bool> {
        let first = self.runs.first()?;
        (self.runs.len() > 1).then(|| self.runs.iter().any(|r| r.summary.groups != first.summary.groups))
    }

    /// Every group's numbers over the seeds: mean, interval, n. Without an interval where nothing is random, so that the seeds are one run.
    pub fn metrics(&self) -> Vec<GroupMetric> {
        let is_still = self.seeds_differ() == Some(false);
        let mut metrics = Vec::new();
        let groups = self.runs.first().map_or(&[][..], |r| &r.summary.groups);
        for group in groups {
            for metric in Metric::ALL {
                let values: Vec<f64> =
                    self.runs.iter().filter_map(|r| r.summary.group(&group.name).and_then(|g| metric.of(g))).collect();
                if let Some(mut estimate) = Estimate::of(&values) {
                    estimate.ci95 = estimate.ci95.filter(|_| !is_still);
                    metrics.push(GroupMetric { group: group.name.clone(), metric, estimate });
                }
            }
        }
        metrics
    }

    /// [`metrics`](Self::metrics) as a table.
    pub fn metrics_table(&self) -> Table {
        let mut t = Table::new(&[
            text("group"),
            text("metric"),
            number("mean"),
            number("ci95_low"),
            number("ci95_high"),
            whole("seeds"),
        ]);
        for GroupMetric { group, metric, estimate } in self.metrics() {
            t.text(&group).text(metric.name()).number(estimate.mean).number(estimate.ci95.map(|c| c[0]));
            t.number(estimate.ci95.map(|c| c[1])).whole(estimate.n as u64).end();
        }
        t
    }

    /// The names of its tables: [`SeedResults::tables`].
    pub fn table_names(&self) -> BTreeSet<&str> {
        self.runs.iter().flat_map(|r| r.tables.keys()).map(String::as_str).collect()
    }

    /// One table of all its seeds, in their order; none of that name if no seed has it.
    pub fn table(&self, name: &str) -> Option<Table> {
        Table::stacked(self.runs.iter().filter_map(|r| r.tables.get(name)))
    }

    /// `sim` or `emu`.
    pub fn world(&self) -> &str {
        self.runs.first().map_or("sim", |r| &r.summary.world)
    }

    /// Why which runs in real time are not to be trusted: seed and reason.
    pub fn invalid(&self) -> impl Iterator<Item = (u64, &str)> {
        let emulated = self.runs.iter().filter_map(|r| r.summary.emulated.as_ref().map(|e| (r.seed(), e)));
        emulated.flat_map(|(seed, e)| e.invalid.iter().map(move |why| (seed, why.as_str())))
    }

    /// The output of `run --json`: the run itself if there was one seed, else all of them and the means. Of each at
    /// most `MOST_FLOWS` flows: all of them are in `flows.csv`.
    pub fn summary(&self) -> Summary {
        let mut runs: Vec<RunSummary> = self.runs.iter().map(|r| r.summary.clone()).collect();
        for run in &mut runs {
            run.flows_left_out = run.flows.len().saturating_sub(MOST_FLOWS) as u64;
            run.flows.truncate(MOST_FLOWS);
        }
        match <[RunSummary; 1]>::try_from(runs) {
            Ok([run]) => Summary::One(Box::new(run)),
            Err(runs) => Summary::Several(summary::Seeds {
                scenario: self.scenario.name.clone(),
                world: self.world().to_owned(),
                seeds: self.runs.iter().map(SeedResults::seed).collect(),
                interrupted: self.interrupted,
                metrics: self.metrics(),
                runs,
            }),
        }
    }

    /// [`RunSet::summary`] as JSON.
    pub fn json(&self) -> serde_json::Value {
        // Its keys are text, and no number of it is without a value.
        serde_json::to_value(self.summary()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// One second of 1,300 packets/s, lossy, two controllers and background.
    const SMALL: &str = include_str!("../../scenario/tests/small.toml");

    fn small() -> Scenario {
        Scenario::parse(SMALL, "small.toml").unwrap()
    }

    fn options(n: usize) -> RunOptions {
        RunOptions { seeds: Seeds::Count(n), ..RunOptions::default() }
    }

    #[test]
    fn another_seed_gives_other_numbers() {
        let set = run(&small(), &options(2), &Hooks::default()).unwrap();
        assert_ne!(set.runs[0].summary.flows[0].received_packets, set.runs[1].summary.flows[0].received_packets);
    }

    #[test]
    fn the_json_of_one_run_has_the_published_shape_and_no_nan() {
        let set = run(&small(), &options(1), &Hooks::default()).unwrap();
        let json = set.json();
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["scenario", "world", "seed", "duration_s", "warmup_s", "interrupted", "flows", "groups", "links"]
        );
        assert_eq!(json["scenario"], "small");
        assert_eq!(json["duration_s"], 12.0);
        let flow = &json["flows"][0];
        for key in ["throughput_bps", "throughput_pps", "overhead", "loss_ratio"] {
            assert!(flow[key].is_number(), "{key}: {flow}");
        }
        assert!(flow["owd_ms"]["p95"].as_f64().unwrap() >= 50.0, "half the RTT at least");
        assert!(json["groups"][0]["jain_index"].as_f64().unwrap() > 0.5);
        let bottleneck = &json["links"][0];
        assert_eq!(bottleneck["name"], "bottleneck");
        assert!((0.0..=1.0).contains(&bottleneck["utilization"].as_f64().unwrap()));
        assert!(bottleneck["drops_packets"]["link_error"].as_u64().unwrap() > 0);
        // The background sends no dummies and nobody answers it: what it lacks is null, not NaN.
        let background = &json["flows"][3];
        assert!(background["srtt_ms"].is_null() && background["timeouts"].is_null());
        assert!(!json.to_string().contains("NaN"));
    }

    #[test]
    fn several_seeds_come_with_means_and_intervals() {
        let set = run(&small(), &options(3), &Hooks::default()).unwrap();
        let json = set.json();
        assert_eq!(json["seeds"], serde_json::json!([1, 2, 3]));
        let metric = &json["metrics"][0];
        assert_eq!((&metric["group"], &metric["metric"]), (&"video".into(), &"throughput_bps".into()));
        assert_eq!(metric["n"], 3);
        let (low, mean, high) = (
            metric["ci95"][0].as_f64().unwrap(),
            metric["mean"].as_f64().unwrap(),
            metric["ci95"][1].as_f64().unwrap(),
        );
        assert!(low < mean && mean < high);
    }

    #[test]
    fn stopping_keeps_what_is_finished_and_a_valid_part_of_the_run_in_hand() {
        let stop = AtomicBool::new(false);
        let done = AtomicUsize::new(0);
        let progress = |_: usize, _: usize, _: &str| {
            done.fetch_add(1, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        };
        let hooks = Hooks { progress: &progress, stop: &stop, threads: 1 };
        let set = run(&small(), &options(10), &hooks).unwrap();
        assert!(set.interrupted);
        assert_eq!((set.runs.len(), set.runs[0].summary.interrupted), (1, false));
        // Stopped before the first chunk: nothing to show, and it says so.
        assert!(matches!(run(&small(), &options(1), &hooks), Err(RunError::Interrupted)));
        let cut = simulate(&small(), 1, Record::default(), &hooks).unwrap();
        assert!(cut.summary.interrupted);
        assert_eq!(cut.summary.duration_s, 0.0);
        assert!(!serde_json::to_string(&cut.summary).unwrap().contains("NaN"));
    }

    #[test]
    fn a_run_hears_the_stop_flag_however_much_happens_in_a_moment() {
        // TCP without any delay or bound: slow start does not get past the first millisecond in any time.
        let text = "[path]\nrate = \"unlimited\"\nrtt = \"1 us\"\n[[flows]]\ncontroller = \"tcp-sack\"\n";
        let scenario = Scenario::parse(text, "busy.toml").unwrap();
        let stop = AtomicBool::new(false);
        let hooks = Hooks { stop: &stop, ..Hooks::default() };
        let run = std::thread::scope(|scope| {
            let run = scope.spawn(|| simulate(&scenario, 1, Record::default(), &hooks).unwrap());
            std::thread::park_timeout(std::time::Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
            run.join().unwrap()
        });
        assert!(run.summary.interrupted && run.summary.duration_s < 60.0, "{}", run.summary.duration_s);
    }

    #[test]
    fn a_comparison_changes_only_the_controllers_under_comparison() {
        let names = ["rap".to_owned(), "rap:fine_grain=on".to_owned(), "tcp-reno".to_owned()];
        let variants = variants(&small(), &names).unwrap();
        let results: Vec<RunSet> =
            variants.iter().map(|(_, v)| run(v, &options(1), &Hooks::default()).unwrap()).collect();
        let controllers = |i: usize| -> Vec<&str> {
            results[i].runs[0].summary.flows.iter().map(|f| f.controller.as_str()).collect()
        };
        assert_eq!(controllers(0), ["rap", "rap", "tcp-sack", "constant"]);
        assert_eq!(controllers(2), ["tcp-reno", "tcp-reno", "tcp-sack", "constant"]);
        assert_eq!(results[1].scenario.flows[0].parameters["fine_grain"].text(), "on");
        assert!(!results[0].scenario.flows[0].parameters.contains_key("s_target"));
    }

    #[test]
    fn enough_seeds_are_at_least_five_and_at_most_twenty() {
        let s = small().modify(|s| s.duration = fairpace_scenario::Time::seconds(5.0)).unwrap();
        let options = RunOptions { seeds: Seeds::Enough, record: Record::default() };
        let set = run(&s, &options, &Hooks::default()).unwrap();
        assert!((5..=20).contains(&set.runs.len()), "{}", set.runs.len());
        for (i, run) in set.runs.iter().enumerate() {
            assert_eq!(run.seed(), 1 + i as u64);
        }
    }

    #[test]
    fn an_encoder_that_follows_the_controller_sends_about_what_it_may() {
        let text = SMALL.replace("start_spread = \"500 ms\"", "source = { kind = \"encoder\", rate = \"400 kbit/s\" }");
        let set = run(&Scenario::parse(&text, "e.toml").unwrap(), &options(1), &Hooks::default()).unwrap();
        // The ceiling of 400 kbit/s is the media's, and with 44 bytes on each packet of 1,000 the wire
        // carries at most 5 % more (10 % where frames leave the last packet short); RCS allows far more.
        let bps = set.runs[0].summary.groups[0].throughput_bps;
        assert!((300e3..460e3).contains(&bps), "{bps}");
    }
}
