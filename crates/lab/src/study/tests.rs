use super::*;
use crate::stats::Estimate;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::path::{Path, PathBuf};

fn scenario(seconds: u64, title: &str) -> Scenario {
    let text = format!(
        "title = \"{title}\"\nduration = \"{seconds} s\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"10 ms\"\n[[flows]]\n\
         controller = \"rap\"\n"
    );
    Scenario::parse(&text, "study.toml").unwrap()
}

/// Nothing is run: ten times the duration in s, and the seed.
const TENFOLD: Measure<f64> =
    Measure { name: "tenfold", of: |job| Ok(job.scenario.duration.get().as_secs_f64() * 10.0 + job.seed as f64) };

fn study(cases: &[(u64, &str)], sampling: Sampling<f64>) -> Study<f64> {
    let case = |(seconds, title): &(u64, &str)| Case::new("rap", *seconds as f64, scenario(*seconds, title));
    Study { name: "test".to_owned(), measure: TENFOLD, cases: cases.iter().map(case).collect(), sampling }
}

fn values(found: &Measurements<f64>) -> Vec<Vec<f64>> {
    found.cells.iter().map(|c| c.runs.iter().map(|r| **r).collect()).collect()
}

/// A file of its own for each test, which goes away with it.
struct PointsFile(PathBuf);

impl PointsFile {
    fn new(name: &str) -> PointsFile {
        let path = std::env::temp_dir().join(format!("fairpace-study-{name}-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        PointsFile(path)
    }

    fn bench(&self, version: &str) -> Bench<'static> {
        // A process that another test starts has, until it is the program that it is to be, this one's open files, and so their locks.
        let busy = |e: &StoreError| e.error.kind() == std::io::ErrorKind::ResourceBusy;
        let mut store = Store::open(&self.0, version);
        while store.as_ref().is_err_and(busy) {
            std::thread::yield_now();
            store = Store::open(&self.0, version);
        }
        Bench::new(Hooks::default(), Effort::Usual).kept_in(Some(store.unwrap()))
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for PointsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_scenario_is_measured_once_for_all_studies_that_show_it_and_answers_come_in_order() {
    let mut bench = Bench::new(Hooks::default(), Effort::Usual);
    let first = study(&[(2, "a"), (1, "a"), (2, "a")], Sampling::Count(1)).run(&mut bench).unwrap();
    assert_eq!(values(&first), [[21.0], [11.0], [21.0]]);
    assert_eq!(bench.simulated(), 2);
    let second = study(&[(2, "another title"), (1, "a")], Sampling::Count(2)).run(&mut bench).unwrap();
    assert_eq!(values(&second), [[21.0, 22.0], [11.0, 12.0]]);
    assert_eq!(bench.simulated(), 4);
    // Another measure of the same run is another point.
    let other = Study { measure: Measure { name: "other", ..TENFOLD }, ..study(&[(1, "a")], Sampling::Count(1)) };
    other.run(&mut bench).unwrap();
    assert_eq!(bench.simulated(), 5);
}

#[test]
fn seeds_that_are_listed_are_taken_as_they_are() {
    let mut bench = Bench::new(Hooks::default(), Effort::Quick);
    let found = study(&[(1, "a")], Sampling::Exactly(vec![7, 3])).run(&mut bench).unwrap();
    assert_eq!(values(&found), [[17.0, 13.0]]);
}

#[test]
fn seeds_are_added_until_the_interval_is_narrow_and_effort_decides_otherwise() {
    // 11, 12, 13, 14, 15: s = 1.58, the half-width is 15 % of 13; with all of 20 still 13 % of 20.5.
    let count = |effort, most_seeds| {
        let precision = Precision { numbers: &[|r: &f64| Some(*r)], most_seeds };
        let mut bench = Bench::new(Hooks::default(), effort);
        let cases = [(1, "a"), (1_000, "a")];
        let found = study(&cases, Sampling::Enough(precision)).run(&mut bench).unwrap();
        found.cells.iter().map(|c| c.runs.len()).collect::<Vec<_>>()
    };
    let never = |_: &str, _: f64| false;
    assert_eq!(count(Effort::Usual, never), [MAX_SEEDS, MIN_SEEDS]);
    assert_eq!(count(Effort::Usual, |_, x| x == 1_000.0), [MAX_SEEDS, MAX_SEEDS]);
    assert_eq!(count(Effort::Quick, never), [QUICK_SEEDS, QUICK_SEEDS]);
    assert_eq!(count(Effort::Seeds(3), never), [3, 3]);
}

#[test]
fn a_study_that_is_stopped_gives_nothing_and_one_that_is_planned_asks_for_each_run_once() {
    let stop = AtomicBool::new(true);
    let mut bench = Bench::new(Hooks { stop: &stop, ..Hooks::default() }, Effort::Usual);
    let stopped = study(&[(1, "a")], Sampling::Count(1)).run(&mut bench);
    assert!(matches!(stopped, Err(RunError::Interrupted)) && bench.simulated() == 0);

    let asked = AtomicUsize::new(0);
    let note = |_: &Scenario, _: u64, _: Record, _: &Hooks<'_>| {
        asked.fetch_add(1, Ordering::Relaxed);
        Err(RunError::Interrupted)
    };
    let runs: Measure<f64> = Measure { name: "run", of: |job| Ok(job.run(Record::default())?.seed as f64) };
    let mut bench = Bench::planning(Effort::Usual, &note);
    for _ in 0..2 {
        let planned = Study { measure: runs, ..study(&[(1, "a"), (2, "a"), (1, "a")], Sampling::Count(2)) };
        assert!(planned.run(&mut bench).is_err());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[test]
fn a_plan_leaves_out_the_runs_whose_points_are_kept() {
    let place = PointsFile::new("planned");
    let runs: Measure<f64> = Measure { name: "run", of: |job| Ok(job.run(Record::default())?.seed as f64) };
    let of = |cases: &[(u64, &str)], seeds| Study { measure: runs, ..study(cases, Sampling::Count(seeds)) };
    let real = |s: &Scenario, seed: u64, record: Record, hooks: &Hooks<'_>| World::Sim.run(s, seed, record, hooks);
    of(&[(1, "a")], 2).run(&mut place.bench("1").in_world(World::RealTime(&real))).unwrap();

    let asked = std::sync::Mutex::new(Vec::new());
    let note = |s: &Scenario, seed: u64, _: Record, _: &Hooks<'_>| {
        asked.lock().unwrap().push((s.name.clone(), seed));
        Err(RunError::Interrupted)
    };
    let planned = |cases: &[(u64, &str)], seeds| {
        let store = Store::open(&place.0, "1").unwrap();
        let plan = of(cases, seeds).run(&mut Bench::planning(Effort::Usual, &note).kept_in(Some(store)));
        (plan.is_ok(), asked.lock().unwrap().drain(..).map(|(_, seed)| seed).collect::<Vec<_>>())
    };
    // A third seed is new, and so is another scenario; a plan of nothing new goes through.
    assert_eq!(planned(&[(1, "a")], 3), (false, vec![3]));
    assert_eq!(planned(&[(1, "a"), (2, "a")], 2), (false, vec![1, 2]));
    assert_eq!(planned(&[(1, "a")], 2), (true, vec![]));
}

#[test]
fn a_later_session_takes_every_point_from_disk_to_the_bit() {
    // Numbers that a careless reader rounds.
    const AWKWARD: Measure<Vec<f64>> = Measure {
        name: "awkward",
        of: |job| {
            let x = job.seed as f64;
            Ok(vec![0.1 * x + 0.2, 1.0 / (3.0 * x), 1e-308 * x, 123_456_789.123_456_79 * x, -0.0])
        },
    };
    let place = PointsFile::new("bits");
    let cases = vec![Case::new("rap", 1.0, scenario(1, "a"))];
    let study = Study { name: "test".to_owned(), measure: AWKWARD, cases, sampling: Sampling::Count(500) };
    let bits = |bench: &mut Bench<'_>| -> Vec<u64> {
        study.run(bench).unwrap().cells[0].runs.iter().flat_map(|r| r.iter().map(|x| x.to_bits())).collect()
    };
    let (mut first, fresh) = (place.bench("1"), place.text());
    let made = bits(&mut first);
    assert_eq!((fresh.as_str(), first.simulated(), place.text().lines().count()), ("", 500, 500));
    drop(first);
    let mut second = place.bench("1");
    assert!(bits(&mut second) == made && second.simulated() == 0 && second.measured() == 500);
    assert_eq!(place.text().lines().count(), 500, "a point that was taken is not written again");
}

#[test]
fn what_another_version_or_scenario_measured_is_noticed_kept_and_not_used() {
    let place = PointsFile::new("stale");
    let cases = [(1, "a"), (2, "a")];
    study(&cases, Sampling::Count(1)).run(&mut place.bench("1")).unwrap();
    let old = place.text();
    let mut bench = place.bench("2");
    study(&cases[..1], Sampling::Count(1)).run(&mut bench).unwrap();
    assert_eq!(bench.simulated(), 1);
    let account = bench.store().unwrap().account().unwrap();
    assert!(account.ends_with(": 2 of another version of the program not used"), "{account}");
    // The first version's points are still there, and are taken where they belong.
    assert!(place.text().starts_with(&old));
    drop(bench);
    let mut bench = place.bench("1");
    study(&[(1, "a"), (3, "a")], Sampling::Count(1)).run(&mut bench).unwrap();
    assert_eq!(bench.simulated(), 1);
    let account = bench.store().unwrap().account().unwrap();
    let words = ": 1 taken from an earlier run, 1 of other scenarios not asked for, 1 of another version";
    assert!(account.contains(words), "{account}");
}

#[test]
fn results_do_not_depend_on_what_the_store_had() {
    let place = PointsFile::new("more");
    study(&[(1, "a")], Sampling::Count(MAX_SEEDS)).run(&mut place.bench("1")).unwrap();
    // Twenty seeds are there; five are asked for.
    let precision = Precision { numbers: &[|_: &f64| Some(1.0)], most_seeds: |_, _| false };
    let found = study(&[(1, "a")], Sampling::Enough(precision)).run(&mut place.bench("1")).unwrap();
    assert_eq!(found.cells[0].runs.len(), MIN_SEEDS);
}

#[test]
fn results_do_not_depend_on_what_other_studies_have_run() {
    for effort in [Effort::Usual, Effort::Seeds(3)] {
        let precision = || Precision { numbers: &[|_: &f64| Some(1.0)], most_seeds: |_, _| false };
        let alone = study(&[(1, "a")], Sampling::Enough(precision())).run(&mut Bench::new(Hooks::default(), effort));
        let mut bench = Bench::new(Hooks::default(), effort);
        study(&[(1, "a")], Sampling::Count(MAX_SEEDS)).run(&mut bench).unwrap();
        let after = study(&[(1, "a")], Sampling::Enough(precision())).run(&mut bench);
        assert_eq!(values(&after.unwrap()), values(&alone.unwrap()));
    }
}

#[test]
fn two_measures_of_one_name_and_two_types_are_two() {
    let mut bench = Bench::new(Hooks::default(), Effort::Quick);
    study(&[(1, "a")], Sampling::Count(1)).run(&mut bench).unwrap();
    let measure: Measure<u64> = Measure { name: TENFOLD.name, of: |job| Ok(job.seed) };
    let cases = study(&[(1, "a")], Sampling::Count(1)).cases;
    let whole = Study { name: "test".to_owned(), measure, cases, sampling: Sampling::Count(1) };
    assert_eq!(*whole.run(&mut bench).unwrap().cells[0].runs[0], 1);
}

/// Cuts the file at every byte, as a kill in the middle of a write would.
#[test]
fn a_file_cut_anywhere_loses_no_whole_point_and_goes_on() {
    let place = PointsFile::new("torn");
    let all = study(&[(1, "a")], Sampling::Count(3));
    let whole = values(&all.run(&mut place.bench("1")).unwrap());
    let bytes = place.text().into_bytes();
    for cut in 0..=bytes.len() {
        std::fs::write(&place.0, &bytes[..cut]).unwrap();
        let complete = bytes[..cut].iter().filter(|b| **b == b'\n').count();
        // A line that lacks nothing but its end is whole, too.
        let ended = bytes.get(cut) == Some(&b'\n');
        let mut bench = place.bench("1");
        assert_eq!(values(&all.run(&mut bench).unwrap()), whole, "cut at {cut}");
        assert_eq!(bench.simulated(), 3 - complete - usize::from(ended), "cut at {cut}");
        drop(bench);
        let mut again = place.bench("1");
        assert_eq!((values(&all.run(&mut again).unwrap()), again.simulated()), (whole.clone(), 0), "cut at {cut}");
    }
}

#[test]
fn a_point_that_cannot_be_read_back_is_measured_again() {
    // JSON has no NaN.
    let place = PointsFile::new("nan");
    let nan =
        Study { measure: Measure { name: "nan", of: |_| Ok(f64::NAN) }, ..study(&[(1, "a")], Sampling::Count(1)) };
    for _ in 0..2 {
        let mut bench = place.bench("1");
        assert!(nan.run(&mut bench).unwrap().cells[0].runs[0].is_nan());
        assert_eq!(bench.simulated(), 1);
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = Store::open(Path::new("/nowhere/points.jsonl"), "1").unwrap_err();
    assert!(error.to_string().starts_with("the points in `/nowhere/points.jsonl` cannot be written: "), "{error}");
}

#[test]
fn two_processes_do_not_measure_into_one_file() {
    let points = PointsFile::new("busy");
    let first = Store::open(&points.0, "1").unwrap();
    let busy = Store::open(&points.0, "1").unwrap_err().to_string();
    assert!(busy.ends_with("another process is at work on them"), "{busy}");
    // A copy is the same process's.
    let copy = first.copy().unwrap();
    drop(first);
    assert!(Store::open(&points.0, "1").is_err());
    drop(copy);
    Store::open(&points.0, "1").unwrap();
}

#[test]
#[cfg(unix)]
fn points_are_not_written_through_a_link() {
    let (target, link) = (PointsFile::new("somebodys"), PointsFile::new("link"));
    std::fs::write(&target.0, "somebody's").unwrap();
    std::os::unix::fs::symlink(&target.0, &link.0).unwrap();
    assert!(Store::open(&link.0, "1").is_err());
    assert_eq!(target.text(), "somebody's");
}

/// Who can read a file can lock it, and keep its user from it.
#[test]
#[cfg(unix)]
fn points_are_their_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let points = PointsFile::new("alone");
    let mode = || std::fs::metadata(&points.0).unwrap().permissions().mode() & 0o777;
    drop(Store::open(&points.0, "1").unwrap());
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&points.0, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&points.0, "1").unwrap());
    assert_eq!(mode(), 0o600, "one of before");
}

/// In the folder of somebody else there may be anything.
#[test]
#[cfg(unix)]
fn points_are_kept_in_no_pipe_or_device() {
    for path in ["/dev/null", "/dev/zero"] {
        let refused = Store::open(Path::new(path), "1").unwrap_err().to_string();
        assert!(refused.contains("no file"), "{refused}");
    }
    let pipe = PointsFile::new("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
    let refused = Store::open(&pipe.0, "1").unwrap_err().to_string();
    assert!(refused.contains("no file"), "{refused}");
}

#[test]
fn pairs_are_taken_seed_by_seed_and_one_place_without_a_number_leaves_all_unknown() {
    let mut bench = Bench::new(Hooks::default(), Effort::Usual);
    let found = study(&[(1, "a"), (2, "a")], Sampling::Count(3)).run(&mut bench).unwrap();
    let number = |r: &f64| Some(*r);
    // (21 - 11), (22 - 12), (23 - 13): no spread; 21/11, 22/12, 23/13.
    let growth = found.growth("rap", 1.0, 2.0, number).unwrap();
    assert_eq!((growth.mean, growth.half_width()), (10.0, 0.0));
    let ratio = found.relative("rap", 2.0, 1.0, number).unwrap();
    assert!((ratio.mean - (21.0 / 11.0 + 22.0 / 12.0 + 23.0 / 13.0) / 3.0).abs() < 1e-12);
    let of =
        |means: [Option<f64>; 3]| means.map(|m| m.map(Estimate::exact)).into_iter().enumerate().collect::<Vec<_>>();
    assert_eq!(smallest(of([Some(2.0), Some(1.0), Some(1.0)])), (1, Some(Estimate::exact(1.0))));
    assert_eq!(largest(of([Some(2.0), Some(1.0), Some(2.0)])), (0, Some(Estimate::exact(2.0))));
    assert_eq!(smallest(of([Some(2.0), None, Some(1.0)])), (1, None));
}

/// One scheme with these numbers at three places, one per seed.
fn line(cells: [(f64, &[f64]); 3]) -> Measurements<f64> {
    let cell = |(x, of): (f64, &[f64])| {
        let runs = of.iter().map(|y| Rc::new(*y)).collect();
        Cell { scheme: "a".to_owned(), x: vec![x], runs }
    };
    Measurements { cells: cells.map(cell).to_vec() }
}

#[test]
fn a_line_goes_along_the_places_in_rising_order_and_keeps_one_without_a_number() {
    let found = line([(3.0, &[6.0, 8.0]), (1.0, &[1.0, 3.0]), (2.0, &[])]);
    let along: Vec<(f64, Option<f64>)> =
        found.along("a", |y| Some(*y)).into_iter().map(|(x, e)| (x, e.map(|e| e.mean))).collect();
    assert_eq!(along, [(1.0, Some(2.0)), (2.0, None), (3.0, Some(7.0))]);
}

#[test]
fn a_level_is_crossed_between_two_places_in_every_seed_or_not_at_all() {
    let found = line([(20.0, &[10.0, 9.0]), (40.0, &[4.0, 8.0]), (80.0, &[3.0, 6.0])]);
    let crossing = |places: &[f64], level: f64| found.crossing("a", places, level, |y| Some(*y));
    // From 10 to 4 over 20 to 40: 7 is crossed at 30, 8.5 at 25. From 8 to 6 over 40 to 80: 7 at 60; from 9 to 8: 8.5 at 30.
    assert_eq!(crossing(&[20.0, 40.0, 80.0], 7.0).map(|e| (e.mean, e.n)), Some((45.0, 2)));
    assert_eq!(crossing(&[20.0, 40.0, 80.0], 8.5).map(|e| e.mean), Some(27.5));
    // A level that is reached is crossed: 10 falls through 8 after a third of the way, 9 at its end.
    assert!((crossing(&[20.0, 40.0, 80.0], 8.0).unwrap().mean - 100.0 / 3.0).abs() < 1e-12);
    // The second seed never falls so low; the first is below from its first place on.
    assert_eq!(crossing(&[20.0, 40.0, 80.0], 5.0), None);
    assert_eq!(crossing(&[40.0, 80.0], 7.0), None);
    // A seed without a number at one place is not taken for the next seed.
    let holed = |y: &f64| (*y != 8.0).then_some(*y);
    assert_eq!(found.crossing("a", &[20.0, 40.0, 80.0], 7.0, holed), None);
}

#[test]
fn a_recording_that_changed_under_its_name_is_measured_again() {
    let folder = std::env::temp_dir().join(format!("fairpace-study-recording-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = "duration = \"10 s\"\n[path]\nrtt = \"10 ms\"\ntrace = { file = \"link.mahimahi\" }\n\
                [[flows]]\ncontroller = \"rap\"\n";
    let recorded = |lines: &str| {
        std::fs::write(folder.join("link.mahimahi"), lines).unwrap();
        let scenario = Scenario::parse_from(text, "study.toml", folder.clone()).unwrap();
        digest::<f64>("tenfold", "sim", &scenario, &mut Recordings::default())
    };
    let (before, same, after) = (recorded("10\n20\n"), recorded("10\n20\n"), recorded("10\n21\n"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(before, same);
    assert_ne!(before, after);
}
