//! A results folder: what was run, on what, and what came out, each file written whole or not at all.
//!
//! | file | holds |
//! | --- | --- |
//! | `manifest.json` | version, command, machine, what is in the folder; not part of any comparison |
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
//! | `seed-N.pcapng` | every packet, if asked for |

use crate::run::RunSet;
use crate::{adus, tables};
use serde::Serialize;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The facts that the library cannot know: the caller, the time, the machine. The caller says it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Manifest {
    /// `fairpace` and its version, with the commit if it is known.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Wall time of the start, RFC 3339; null if the caller has no clock.
    pub started_at: Option<String>,
    /// How long it took.
    pub elapsed_s: Option<f64>,
    /// Operating system, kernel, processor, cores: anything that may matter.
    pub machine: std::collections::BTreeMap<String, String>,
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
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        // Nothing half-written stays behind; the first error is the one that matters.
        let _ = fs::remove_file(&temporary);
        WriteError { path: path.to_owned(), error }
    })
}

/// Writes a run's folder. The manifest comes last: a folder without one is not finished.
///
/// # Errors
/// [`WriteError`] names the file that could not be written.
pub fn write(folder: &Path, set: &RunSet, manifest: &Manifest) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|error| WriteError { path: folder.to_owned(), error })?;
    // A manifest of an earlier run must not vouch for what is being replaced.
    let manifest_path = folder.join("manifest.json");
    match fs::remove_file(&manifest_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(WriteError { path: manifest_path, error });
        }
        _ => {}
    }
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("scenario.toml".to_owned(), set.scenario.to_toml().into_bytes()),
        ("summary.json".to_owned(), pretty(&set.json())),
        ("flows.csv".to_owned(), tables::flows_csv(set).into_bytes()),
        ("links.csv".to_owned(), tables::links_csv(set).into_bytes()),
        ("series.csv".to_owned(), tables::series_csv(set).into_bytes()),
        ("link_series.csv".to_owned(), tables::link_series_csv(set).into_bytes()),
        ("events.csv".to_owned(), tables::events_csv(set).into_bytes()),
    ];
    if set.scenario.satellite.is_some() {
        files.push(("terminals.csv".to_owned(), tables::terminals_csv(set).into_bytes()));
        files.push(("slots.csv".to_owned(), tables::slots_csv(set).into_bytes()));
        files.push(("events.jsonl".to_owned(), tables::events_jsonl(set).into_bytes()));
    }
    if set.scenario.wireless.is_some() {
        files.push(("users.csv".to_owned(), tables::users_csv(set).into_bytes()));
        let jitter = tables::jitter_csv(set);
        let refused = |error| WriteError { path: folder.join("jitter.csv"), error: io::Error::other(error) };
        files.push(("jitter.csv".to_owned(), jitter.map_err(refused)?.into_bytes()));
        files.push(("radio_slots.csv".to_owned(), tables::radio_slots_csv(set).into_bytes()));
        files.push(("windows.csv".to_owned(), tables::windows_csv(set).into_bytes()));
    }
    if adus::any(&set.scenario) {
        files.push(("adus.csv".to_owned(), tables::adus_csv(set).into_bytes()));
    }
    for run in &set.runs {
        if let Some(pcap) = &run.report.pcapng {
            files.push((format!("seed-{}.pcapng", run.seed), pcap.clone()));
        }
    }
    for (name, bytes) in &files {
        write_whole(&folder.join(name), bytes)?;
    }
    let document = serde_json::json!({
        "made_by": manifest,
        "scenario": set.scenario.name,
        "world": set.world(),
        "seeds": set.runs.iter().map(|r| r.seed).collect::<Vec<_>>(),
        "complete": !set.interrupted,
        "files": files.iter().map(|(name, bytes)| (name, bytes.len())).collect::<std::collections::BTreeMap<_, _>>(),
        "emulated": set.runs.iter().filter_map(|r| {
            let mut about = serde_json::to_value(r.summary.emulated.as_ref()?).ok()?;
            about["seed"] = r.seed.into();
            Some(about)
        }).collect::<Vec<_>>(),
        "engine": set.runs.iter().map(|r| serde_json::json!({
            "seed": r.seed,
            "events": r.report.engine.events,
            "packet_hops": r.report.engine.packet_hops,
        })).collect::<Vec<_>>(),
    });
    write_whole(&manifest_path, &pretty(&document))
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
