//! A sweep's folder: each batch in a file of its own, written whole or not at all.
//!
//! | file | holds |
//! | --- | --- |
//! | `sweep.json` | what is swept: axes, design, seeds, program, world |
//! | `scenario.toml` | the scenario as it was given, every default filled in |
//! | `batches/3f/3f…-1-5.json` | the batch of a point, its first seed, and how many: two lines of JSON, the SHA-256 of the second and the batch |
//! | `.shard-1-of-4.lock` | locked while a process is at work on that share of the points |
//!
//! A batch is flushed to disk before it gets its name, once. A kill loses the batches under way, and nothing else. A file that is
//! torn or changed is found by its sum, and its batch run again. Several processes share a folder when each has its own shard.

use super::error::SweepError;
use super::plan::Plan;
use super::progress::Sweep;
use super::recordings::changed;
use super::task::Batch;
use crate::pool::{self, Hooks};
use crate::results::{UNFINISHED, WriteError, write_whole_as};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const FORMAT: &str = "fairpace-sweep/1";
/// The file that says what is swept.
pub(super) const ABOUT: &str = "sweep.json";
const SCENARIO: &str = "scenario.toml";
const BATCHES: &str = "batches";
/// Files and folders that whoever finishes a sweep makes of its batches (`fairpace sweep`, `fairpace report`).
const MADE: [&str; 8] =
    ["groups", "links", "failed", "groups.csv", "links.csv", "failed.csv", "report.html", "manifest.json"];
/// The beginning of the names of locks.
const LOCK: &str = ".shard-";

/// A share of the points. Each `of` points in a row have one of every shard, in an order that turns from row to row: else a shard of two
/// had one of two controllers alone, with all that this takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The share's number, from 1 to `of`.
    pub index: usize,
    /// The number of shares.
    pub of: usize,
}

impl Default for Shard {
    /// All points.
    fn default() -> Self {
        Shard { index: 1, of: 1 }
    }
}

impl Shard {
    /// Reads `2/8`.
    ///
    /// # Errors
    /// [`SweepError::Vary`]: the text is no share.
    pub fn parse(text: &str) -> Result<Shard, SweepError> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) && of <= 100_000 => Ok(Shard { index, of }),
            _ => Err(SweepError::Vary {
                found: text.to_owned(),
                wrong: "is no shard".to_owned(),
                allowed: "write which one, from 1, and of how many, as in `2/8`".to_owned(),
            }),
        }
    }

    /// Whether the point of that number is this shard's.
    pub fn has(self, point: usize) -> bool {
        let mut turned = point;
        let mut rows = point / self.of;
        // The digits of a number to the base of the shards, added up: their remainders are as even over each row, and follow no axis.
        while rows > 0 && self.of > 1 {
            turned += rows % self.of;
            rows /= self.of;
        }
        turned % self.of == self.index - 1
    }

    fn name(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }
}

/// The contents of `sweep.json`, the same for every shard.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct About {
    format: String,
    code: String,
    world: super::plan::World,
    digest: String,
    scenario: String,
    folder: PathBuf,
    points: usize,
    #[serde(flatten)]
    spec: super::plan::Spec,
}

impl About {
    fn of(plan: &Plan) -> About {
        About {
            format: FORMAT.to_owned(),
            code: plan.code().to_owned(),
            world: plan.world(),
            digest: plan.digest().to_owned(),
            scenario: plan.base().name.clone(),
            folder: plan.folder().to_owned(),
            points: plan.points().len(),
            spec: plan.spec().clone(),
        }
    }
}

/// The entries of a folder; none of one that another shard has removed meanwhile.
fn entries(folder: &Path) -> io::Result<Vec<io::Result<fs::DirEntry>>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => Ok(entries?.collect()),
    }
}

/// The batches of a folder, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Batches of this sweep.
    pub taken: usize,
    /// Batches of points or seeds that this sweep does not have.
    pub others: usize,
    /// Files that are torn or changed; their batches are run again.
    pub torn: usize,
    /// Batches that came to nothing and are to be run again.
    pub again: usize,
}

impl Loaded {
    /// The counts that are not zero, in words; none if the folder had nothing.
    pub fn account(&self) -> Option<String> {
        let counts = [
            (self.taken, "taken from an earlier run"),
            (self.others, "of points, seeds or batches not asked for"),
            (self.torn, "torn or changed, run again"),
            (self.again, "that came to nothing, run again"),
        ];
        let words: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// A sweep's folder, open for one shard.
#[derive(Debug)]
pub struct SweepStore {
    path: PathBuf,
    /// The beginning of the names of this shard's unfinished files.
    unfinished: String,
    /// Folders of batches that are there for certain.
    made: Mutex<BTreeSet<String>>,
    _lock: File,
}

impl SweepStore {
    /// Makes the folder, or goes on in the one that is there: it must be empty or hold a sweep of the same scenario, world and program.
    /// Axes and seeds may be others: batches that are of this sweep, too, are taken. Every point is checked before
    /// anything is written, unless the folder says that it has been. With `anew` the batches that are there go, and the tables of them.
    ///
    /// # Errors
    /// The folder holds something else ([`SweepError::Occupied`]); another process has the shard ([`SweepError::Busy`]); a point
    /// cannot be run; the folder cannot be read or written.
    pub fn open(
        path: &Path,
        plan: &Plan,
        shard: Shard,
        anew: bool,
        hooks: &Hooks<'_>,
    ) -> Result<SweepStore, SweepError> {
        let unwritable = |error| WriteError { path: path.to_owned(), error };
        let about = About::of(plan);
        let found = found_in(path)?;
        match &found {
            Found::Nothing => {}
            Found::Other => {
                return Err(SweepError::Foreign { path: path.to_owned() });
            }
            Found::Sweep(there) if !anew => {
                if let Some(holds) = difference(path, there, plan) {
                    return Err(SweepError::Occupied { path: path.to_owned(), holds });
                }
            }
            Found::Sweep(_) => {}
        }
        let is_checked = matches!(&found, Found::Sweep(there) if **there == about);
        if !is_checked {
            plan.check(hooks)?;
        }
        fs::create_dir_all(path.join(BATCHES)).map_err(unwritable)?;
        let lock = path.join(format!("{LOCK}{}.lock", shard.name()));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&lock);
        let file = file.map_err(|error| WriteError { path: lock.clone(), error })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let shard = format!("{}/{}", shard.index, shard.of);
                return Err(SweepError::Busy { path: path.to_owned(), shard });
            }
            Err(TryLockError::Error(error)) => return Err(WriteError { path: lock, error }.into()),
        }
        if anew {
            refuse_if_busy(path, shard)?;
            fs::remove_dir_all(path.join(BATCHES)).map_err(unwritable)?;
            // Else whoever kills this sweep finds an earlier one's tables in its folder.
            for made in MADE {
                let made = path.join(made);
                let gone = if made.is_dir() { fs::remove_dir_all(&made) } else { fs::remove_file(&made) };
                match gone {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error).into()),
                    _ => {}
                }
            }
            fs::create_dir_all(path.join(BATCHES)).map_err(unwritable)?;
        }
        let store = SweepStore {
            path: path.to_owned(),
            unfinished: format!("{UNFINISHED}{}-", shard.name()),
            made: Mutex::default(),
            _lock: file,
        };
        store.remove_torn(shard).map_err(unwritable)?;
        if !is_checked || anew {
            let text = serde_json::to_string_pretty(&about).unwrap_or_default() + "\n";
            store.write(SCENARIO, plan.base().to_toml().as_bytes())?;
            store.write(ABOUT, text.as_bytes())?;
        }
        Ok(store)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of the folder whole or not at all.
    ///
    /// # Errors
    /// [`WriteError`] names it.
    pub fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| WriteError { path: folder.to_owned(), error })?;
        }
        write_whole_as(&self.unfinished, &path, bytes)
    }

    /// Keeps a batch: it is on disk when this returns.
    ///
    /// # Errors
    /// The bytes are no batch, or the file cannot be written.
    pub fn keep(&self, bytes: &[u8]) -> Result<(), SweepError> {
        let batch = Batch::from_bytes(bytes)?;
        Ok(self.keep_as(&batch.point, batch.first, batch.count, bytes)?)
    }

    pub(super) fn keep_as(&self, point: &str, first: u64, count: u32, bytes: &[u8]) -> Result<(), WriteError> {
        let folder = point.get(..2).unwrap_or("00");
        let at = self.path.join(BATCHES).join(folder);
        // Made by one thread while the others wait.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.contains(folder) {
            fs::create_dir_all(&at).map_err(|error| WriteError { path: at.clone(), error })?;
            made.insert(folder.to_owned());
        }
        drop(made);
        let mut text = format!("{{\"sha256\":\"{}\"}}\n", sum(bytes)).into_bytes();
        text.extend_from_slice(bytes);
        text.push(b'\n');
        write_whole_as(&self.unfinished, &at.join(format!("{point}-{first}-{count}.json")), &text)
    }

    /// Hands every batch that the folder has to the sweep, those of other shards too. With `again` batches that came to nothing are
    /// left out, and so run again.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn load(&self, sweep: &mut Sweep, again: bool, hooks: &Hooks<'_>) -> Result<Loaded, SweepError> {
        load(&self.path, sweep, again, hooks)
    }

    /// Removes what killed processes of this shard had not finished; who has all points, those of shards whose lock nobody has, too.
    /// (One of many shards takes no other's lock: another may begin just then.)
    fn remove_torn(&self, shard: Shard) -> io::Result<()> {
        let mut dead = vec![self.unfinished.clone()];
        let mut locks = Vec::new();
        for entry in fs::read_dir(&self.path)?.filter(|_| shard.of == 1) {
            let entry = entry?;
            let name = entry.file_name();
            let Some(shard) = name.to_str().and_then(|n| n.strip_prefix(LOCK)?.strip_suffix(".lock")) else { continue };
            let lock = OpenOptions::new().write(true).open(entry.path())?;
            if lock.try_lock().is_ok() {
                dead.push(format!("{UNFINISHED}{shard}-"));
                // Held until the files are gone.
                locks.push(lock);
            }
        }
        // Batches have folders, and so have the parts of tables.
        let mut folders = vec![self.path.clone()];
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            next += 1;
            for entry in entries(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        for folder in &folders {
            for entry in entries(folder)? {
                let entry = entry?;
                let name = entry.file_name();
                if dead.iter().any(|begin| name.as_encoded_bytes().starts_with(begin.as_bytes())) {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }
}

/// Refuses a folder in which another shard is at work.
fn refuse_if_busy(path: &Path, own: Shard) -> Result<(), SweepError> {
    let unreadable = |error| SweepError::Read { path: path.to_owned(), error };
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let Some(shard) = name.to_str().and_then(|n| n.strip_prefix(LOCK)?.strip_suffix(".lock")) else { continue };
        let lock = OpenOptions::new().write(true).open(entry.path()).map_err(unreadable)?;
        if shard != own.name() && matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(SweepError::Busy { path: path.to_owned(), shard: shard.replace("-of-", "/") });
        }
    }
    Ok(())
}

/// The sweep of a folder, with all of its batches, as the folder says what was swept. Nothing is written.
///
/// # Errors
/// The folder holds no sweep, or cannot be read, or a recording that its scenario names has changed ([`SweepError::Recording`]).
pub fn read(path: &Path, hooks: &Hooks<'_>) -> Result<Sweep, SweepError> {
    let Found::Sweep(about) = found_in(path)? else {
        return Err(SweepError::Occupied { path: path.to_owned(), holds: "holds no sweep".to_owned() });
    };
    let at = path.join(SCENARIO);
    let text = fs::read_to_string(&at).map_err(|error| SweepError::Read { path: at, error })?;
    let scenario = fairpace_scenario::Scenario::parse_from(&text, &about.scenario, about.folder.clone())?;
    let mut sweep = Sweep::new(Plan::new(&scenario, &about.spec, about.world, &about.code)?);
    if sweep.plan().digest() != about.digest {
        return Err(changed(&scenario));
    }
    load(path, &mut sweep, false, hooks)?;
    Ok(sweep)
}

/// Whether a folder holds a sweep.
pub fn is_sweep(path: &Path) -> bool {
    path.join(ABOUT).is_file()
}

fn load(path: &Path, sweep: &mut Sweep, again: bool, hooks: &Hooks<'_>) -> Result<Loaded, SweepError> {
    let root = path.join(BATCHES);
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| SweepError::Read { path, error }
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(&root).map_err(unreadable(&root))? {
        folders.push(entry.map_err(unreadable(&root))?.path());
    }
    folders.sort();
    let silent = Hooks { progress: &|_, _, _| (), stop: &pool::NEVER_STOP, ..*hooks };
    let read = pool::map(
        &folders,
        &silent,
        |_| String::new(),
        |folder| {
            let mut found = Vec::new();
            for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
                let entry = entry.map_err(unreadable(folder))?;
                // A file that another shard is writing.
                if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                    let path = entry.path();
                    found.push(whole(&fs::read(&path).map_err(unreadable(&path))?));
                }
            }
            Ok::<_, SweepError>(found)
        },
    )?;
    let mut loaded = Loaded::default();
    for batch in read.into_iter().flatten().flatten() {
        match batch {
            None => loaded.torn += 1,
            Some(batch) if again && batch.failed.is_some() => loaded.again += 1,
            Some(batch) => {
                let taken = sweep.take_batch(batch);
                loaded.taken += usize::from(taken);
                loaded.others += usize::from(!taken);
            }
        }
    }
    Ok(loaded)
}

/// The batch of a file, if its sum is right.
fn whole(bytes: &[u8]) -> Option<Batch> {
    #[derive(Deserialize)]
    struct Head {
        sha256: String,
    }
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let (head, rest) = bytes.split_at(end);
    let body = rest.strip_prefix(b"\n")?.strip_suffix(b"\n")?;
    let head: Head = serde_json::from_slice(head).ok()?;
    (head.sha256 == sum(body)).then(|| Batch::from_bytes(body).ok()).flatten()
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

enum Found {
    Nothing,
    Other,
    Sweep(Box<About>),
}

fn found_in(path: &Path) -> Result<Found, SweepError> {
    let unreadable = |error| SweepError::Read { path: path.to_owned(), error };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(unreadable(error)),
    };
    let mut is_empty = true;
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        // The rest of a beginning that came to nothing.
        let begun = [SCENARIO, BATCHES].iter().any(|n| name == *n) || name.as_encoded_bytes().starts_with(b".");
        is_empty &= begun;
    }
    let Ok(text) = fs::read(path.join(ABOUT)) else {
        return Ok(if is_empty { Found::Nothing } else { Found::Other });
    };
    Ok(serde_json::from_slice(&text).map_or(Found::Other, |about| Found::Sweep(Box::new(about))))
}

/// The difference that keeps a sweep from going on in the folder, in words.
fn difference(path: &Path, there: &About, plan: &Plan) -> Option<String> {
    let holds = if there.format != FORMAT {
        format!("holds a sweep of the form `{}`, and this program knows `{FORMAT}`", there.format)
    } else if there.code != plan.code() {
        let of_package = |code: &str| code.contains(", library ");
        // The command by itself, and the package, which it asks for a cluster.
        let whose = if of_package(&there.code) == of_package(plan.code()) {
            ""
        } else if of_package(&there.code) {
            " (begun by the Python package or with `--dask`: go on in that way)"
        } else {
            " (begun by the command without `--dask`: go on in that way)"
        };
        format!(
            "holds a sweep of another version of the program: `{}`, and this is `{}`{whose}",
            there.code,
            plan.code()
        )
    } else if there.world != plan.world() {
        format!("holds a sweep of another world: `{}`", there.world.name())
    } else if there.digest != plan.digest() {
        // With equal text a recording is another.
        let text = fs::read_to_string(path.join(SCENARIO)).unwrap_or_default();
        let where_ = other_line(&text, &plan.base().to_toml());
        format!("holds a sweep of another scenario: {}", where_.as_deref().unwrap_or("its recording has changed"))
    } else {
        return None;
    };
    Some(holds)
}

/// The first line that two scenarios as they are printed do not share, with the table that it stands in.
fn other_line(there: &str, here: &str) -> Option<String> {
    let mut table = "";
    let (mut old, mut new) = (there.lines(), here.lines());
    loop {
        let (was, is) = (old.next(), new.next());
        if was == is {
            // Both have ended, or go on alike.
            let line = is?;
            table = if line.starts_with('[') { line } else { table };
            continue;
        }
        let said = |line: Option<&str>| line.map_or("nothing".to_owned(), |l| format!("`{l}`"));
        let within = if table.is_empty() { String::new() } else { format!(", in `{table}`") };
        return Some(format!("it has {} where this has {}{within}", said(was), said(is)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_every_point_once_as_many_as_each_other_and_no_value_of_an_axis_alone() {
        for of in [1, 2, 3, 8, 1_000] {
            let shards: Vec<Shard> = (1..=of).map(|index| Shard { index, of }).collect();
            let mut count = vec![0; of];
            // The values of a last axis that each shard meets; it has as many as there are shards.
            let mut met = vec![BTreeSet::new(); of];
            for point in 0..of * 16 {
                let whose: Vec<usize> = (0..of).filter(|i| shards[*i].has(point)).collect();
                assert_eq!(whose.len(), 1, "point {point} of {of} shards");
                count[whose[0]] += 1;
                met[whose[0]].insert(point % of);
            }
            assert!(count.iter().all(|n| *n == 16), "{of} shards: {count:?}");
            assert!(met.iter().all(|m| m.len() >= of.min(8)), "{of} shards");
        }
    }

    #[test]
    fn another_scenario_is_told_by_its_first_other_line() {
        let there = "seed = 1\n[path]\nrate = \"1 Mbit/s\"\n";
        assert_eq!(other_line(there, there), None);
        let found = other_line(there, "seed = 1\n[path]\nrate = \"2 Mbit/s\"\n").unwrap();
        assert_eq!(found, "it has `rate = \"1 Mbit/s\"` where this has `rate = \"2 Mbit/s\"`, in `[path]`");
        let found = other_line(there, "seed = 1\n").unwrap();
        assert_eq!(found, "it has `[path]` where this has nothing");
        assert_eq!(other_line("a = 1\n", "b = 1\n").unwrap(), "it has `a = 1` where this has `b = 1`");
    }
}
