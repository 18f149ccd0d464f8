//! A results folder: what was run, on what, and what came out, each file written whole or not at all.
//!
//! | file | holds |
//! | --- | --- |
//! | `manifest.json` | version, command, machine, what is in the folder and whether it is complete; not part of any comparison |
//! | `scenario.toml` | the scenario as run, every default filled in |
//! | `summary.json` | what `--json` prints |
//! | `flows.csv` | one row per seed and flow |
//! | `links.csv` | one row per seed and link |
//! | `series.csv` | one row per seed, sampling instant and flow |
//! | `link_series.csv` | one row per seed, sampling instant and shared link |
//! | `events.csv` | what the controllers did: states, rates, losses |
//! | `terminals.csv` | with a satellite: one row per seed, sampling instant and terminal |
//! | `slots.csv` | with a satellite: whose slot is whose, in a few super-frames |
//! | `events.jsonl` | with a satellite: requests, burst time plans, grants, Quick-Start decisions |
//! | `users.csv` | with a wireless link: one row per seed, sampling instant and user |
//! | `jitter.csv` | with a wireless link: how many packets have more delay jitter, measured and by eq. (3) |
//! | `radio_slots.csv` | with a wireless link: what became of each slot, of the first seed |
//! | `windows.csv` | with a wireless link: the windows that the base station gave |
//! | `adus.csv` | with data units: when each was complete, and which way it took, of the first seed |
//! | `NAME.parquet` | where the caller has a form for columns: the table of `NAME.csv` in it, types and all |
//! | `seed-N.pcapng` | every packet, if asked for |
//! | `seeds.jsonl` | in a [`Folder`]: each seed's summary and tables, from the moment it is finished |
//!
//! A [`Folder`] loses no finished seed however the program ends: the same run goes on from there.

use crate::run::RunSet;
use crate::study::{Store, StoreError};
use crate::table::Table;
use fairpace_scenario::Scenario;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use crate::seed_results::SeedResults;

const SCENARIO: &str = "scenario.toml";
const MANIFEST: &str = "manifest.json";
/// How the names of files begin while they are written.
pub(crate) const UNFINISHED: &str = ".fairpace-unfinished-";
/// The seeds of a [`Folder`].
pub const SEEDS: &str = "seeds.jsonl";

/// The facts that the library cannot know: the caller, the time, the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Manifest {
    /// `fairpace` and its version, with the commit if it is known.
    pub version: String,
    /// The program to the byte, and options: with scenario and seed these decide results.
    pub program: String,
    /// The command line.
    pub command: Vec<String>,
    /// Wall time of the start, RFC 3339; null if the caller has no clock.
    pub started_at: Option<String>,
    /// How long it took.
    pub elapsed_s: Option<f64>,
    /// Operating system, kernel, processor, cores: anything that may matter.
    pub machine: BTreeMap<String, String>,
}

/// Why a results folder could not be written.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be written: {error}", path.display())]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// As the system says it.
    pub error: io::Error,
}

/// Writes a file whole or not at all: a temporary beside it, flushed to disk, then renamed.
///
/// # Errors
/// [`WriteError`] names the file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write_whole_as(UNFINISHED, path, bytes)
}

/// The same with a beginning of its own for the temporary's name.
pub(crate) fn write_whole_as(unfinished: &str, path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        // Of a name that nobody can foresee, and gone again unless it gets its own.
        let mut builder = tempfile::Builder::new();
        builder.prefix(unfinished);
        // As any file that the caller makes: the umask decides.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| WriteError { path: path.to_owned(), error })
}

/// Why a folder does not take the results of a run.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is something in it, which would be lost.
    #[error("`{}` {holds}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// The contents that are in the way: `holds results of another scenario`, …
        holds: &'static str,
    },
    /// The folder cannot be made or written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder's seeds cannot be read or kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A table as the bytes of a Parquet file, by the crate that writes such files.
pub type Columns<'a> = &'a dyn Fn(&Table) -> io::Result<Vec<u8>>;

/// A results folder while its run goes on.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The seeds that are finished: for [`run_in`](crate::run::run_in).
    pub store: Store,
}

impl Folder {
    /// Makes the folder, or goes on in the one that is there: it must be empty, or be of the same scenario, world (`sim`,
    /// `emu`) and program. With `anew` nothing is taken from it, and files of these names are replaced; other files
    /// stay.
    ///
    /// # Errors
    /// [`OpenError`]; then nothing in it has changed. Another process that is at work in it is one.
    pub fn open(
        path: &Path,
        scenario: &Scenario,
        world: &str,
        manifest: &Manifest,
        anew: bool,
    ) -> Result<Folder, OpenError> {
        let failed = |error| WriteError { path: path.to_owned(), error };
        fs::create_dir_all(path).map_err(failed)?;
        let occupied = |holds| Err(OpenError::Occupied { path: path.to_owned(), holds });
        let text = scenario.to_toml();
        if !anew && !is_empty(path).map_err(failed)? {
            let Ok(made_of) = fs::read_to_string(path.join(SCENARIO)) else {
                return occupied("holds other things than results");
            };
            if made_of != text {
                return occupied("holds results of another scenario");
            }
            let about = fs::read(path.join(MANIFEST)).unwrap_or_default();
            let about: serde_json::Value = serde_json::from_slice(&about).unwrap_or_default();
            if about["world"] != world {
                return occupied("holds results of another world");
            }
            if about["made_by"]["program"] != manifest.program.as_str() {
                return occupied("holds results of another version of the program");
            }
        }
        let mut store = Store::open(&path.join(SEEDS), &manifest.program)?;
        if anew {
            store.clear()?;
        }
        remove_torn(path).map_err(failed)?;
        let document = serde_json::json!({
            "made_by": manifest,
            "scenario": scenario.name,
            "world": world,
            "complete": false,
        });
        write_whole(&path.join(MANIFEST), &pretty(&document))?;
        write_whole(&path.join(SCENARIO), text.as_bytes())?;
        Ok(Folder { path: path.to_owned(), store })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An account of the seeds that an earlier run left; none if it left none.
    pub fn account(&self) -> Option<String> {
        self.store.account()
    }

    /// Writes the run's files, its tables as `columns`, too.
    ///
    /// # Errors
    /// [`WriteError`] names the file that could not be written. The seeds are kept.
    pub fn finish(self, set: &RunSet, manifest: &Manifest, columns: Option<Columns<'_>>) -> Result<(), WriteError> {
        write(&self.path, set, manifest, columns)
    }
}

/// Whether there is nothing in the folder but the beginning of a run that came to nothing.
fn is_empty(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_begun = name == SCENARIO || name == MANIFEST || name == SEEDS && entry.metadata()?.len() == 0;
        if !is_begun && !is_torn(&name) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file of this name is what a killed process had not finished writing.
fn is_torn(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
}

/// Removes what killed processes have not finished.
///
/// # Errors
/// The system's.
pub fn remove_torn(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_torn(&entry.file_name()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Writes a run's folder over what is there. The manifest comes last: a folder whose manifest does not say `complete` is
/// not finished.
///
/// # Errors
/// [`WriteError`] names the file that could not be written.
pub fn write(folder: &Path, set: &RunSet, manifest: &Manifest, columns: Option<Columns<'_>>) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|error| WriteError { path: folder.to_owned(), error })?;
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    let mut file = |name: &str, bytes: &[u8]| {
        files.insert(name.to_owned(), bytes.len());
        write_whole(&folder.join(name), bytes)
    };
    file(SCENARIO, set.scenario.to_toml().as_bytes())?;
    file("summary.json", &pretty(&set.json()))?;
    for name in set.table_names() {
        let Some(table) = set.table(name) else { continue };
        file(&format!("{name}.csv"), table.csv().as_bytes())?;
        if let Some(columns) = columns {
            let bytes =
                columns(&table).map_err(|error| WriteError { path: folder.join(format!("{name}.parquet")), error })?;
            file(&format!("{name}.parquet"), &bytes)?;
        }
    }
    let events: String = set.runs.iter().filter_map(|r| r.terminal_events.as_deref()).collect();
    if set.runs.iter().any(|r| r.terminal_events.is_some()) {
        file("events.jsonl", events.as_bytes())?;
    }
    for run in &set.runs {
        if let Some(pcap) = &run.pcapng {
            file(&format!("seed-{}.pcapng", run.seed()), pcap)?;
        }
    }
    let document = serde_json::json!({
        "made_by": manifest,
        "scenario": set.scenario.name,
        "world": set.world(),
        "seeds": set.runs.iter().map(SeedResults::seed).collect::<Vec<_>>(),
        "complete": !set.interrupted,
        "files": files,
        "emulated": set.runs.iter().filter_map(|r| {
            let mut about = serde_json::to_value(r.summary.emulated.as_ref()?).ok()?;
            about["seed"] = r.seed().into();
            Some(about)
        }).collect::<Vec<_>>(),
        "engine": set.runs.iter().map(|r| serde_json::json!({
            "seed": r.seed(),
            "events": r.engine.events,
            "packet_hops": r.engine.packet_hops,
        })).collect::<Vec<_>>(),
    });
    write_whole(&folder.join(MANIFEST), &pretty(&document))
}

fn pretty(value: &serde_json::Value) -> Vec<u8> {
    // Serializing a value cannot fail: its keys are text.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("fairpace-results-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_temporary_stays() {
        let dir = folder("whole");
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("summary.json");
        write_whole(&file, b"a long first version").unwrap();
        write_whole(&file, b"second").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_of_a_name_that_can_be_foreseen_is_in_nobodys_way() {
        let dir = folder("foreseen");
        fs::create_dir_all(&dir).unwrap();
        let planted = dir.join(UNFINISHED);
        fs::write(&planted, b"somebody's").unwrap();
        write_whole(&dir.join("summary.json"), b"ours").unwrap();
        assert_eq!(fs::read(&planted).unwrap(), b"somebody's");
        assert_eq!(fs::read(dir.join("summary.json")).unwrap(), b"ours");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let error = write_whole(Path::new("/proc/no/such/folder.json"), b"x").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("`/proc/no/such/folder.json` cannot be written: "), "{text}");
        // A file where the folder should be.
        let dir = folder("file");
        fs::write(&dir, b"").unwrap();
        assert!(write_whole(&dir.join("x.csv"), b"x").is_err());
        fs::remove_file(&dir).unwrap();
    }
}
