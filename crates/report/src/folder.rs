//! The page of a run: of one that has just ended from memory, of one that is a year old from its folder. Both are the same.
//!
//! Of a folder it reads `summary.json`, `scenario.toml`, `series.csv` and `link_series.csv`, with a satellite `terminals.csv`,
//! `slots.csv` and `events.jsonl`, with a wireless link `users.csv`, `radio_slots.csv` and `jitter.csv`, and with data
//! units `adus.csv`, as `fairpace_lab::results` writes them. Columns are found by name, so that a folder with more of them is read as
//! well.

mod adus;
mod error;
mod numbers;
mod over_time;
mod rows;
mod run;
mod satellite;
mod shown;
mod wireless;

pub use error::FolderError;

use crate::{Page, Section, Table};
use fairpace_lab::RunSet;
use run::Run;
use std::path::Path;

/// The page of one run's folder.
///
/// # Errors
/// [`FolderError`] if the folder is not a run's.
pub fn run_page(folder: &Path) -> Result<Page, FolderError> {
    Ok(page_of(&Run::read(folder, None)?))
}

/// The page of one run that is in memory: [`run_page`] of the folder that it would be written to.
pub fn run_page_of(set: &RunSet) -> Page {
    page_of(&Run::of(set, None))
}

fn page_of(run: &Run) -> Page {
    let mut page = Page::new(run.title()).subtitle(match run.waits() {
        waits if waits.is_empty() => run.result(),
        waits => format!("{}. End to end, 95 % of packets: {waits}", run.result()),
    });
    page = run.in_real_time(run.describe(page, run.world())).section(run.numbers());
    if let Some(section) = run.satellite() {
        page = page.section(section);
    }
    for section in run.wireless() {
        page = page.section(section);
    }
    if let Some(section) = run.adus() {
        page = page.section(section);
    }
    page.section(run.over_time(std::slice::from_ref(run))).section(run.each_flow())
}

/// The page of several runs of the same path: the name of each and its folder below `folder`.
///
/// # Errors
/// As [`run_page`].
pub fn compare_page(folder: &Path, names: &[String]) -> Result<Page, FolderError> {
    let runs: Vec<Run> =
        names.iter().map(|n| Run::read(&folder.join(folder_name(n)), Some(n))).collect::<Result<_, _>>()?;
    let nothing = || FolderError::Malformed { path: folder.to_owned(), problem: "it holds no run".into() };
    side_by_side(&runs).ok_or_else(nothing)
}

/// The page of several runs of the same path that are in memory, each with its name; none of none.
pub fn compare_page_of<'a>(runs: impl IntoIterator<Item = (&'a str, &'a RunSet)>) -> Option<Page> {
    side_by_side(&runs.into_iter().map(|(name, set)| Run::of(set, Some(name))).collect::<Vec<_>>())
}

fn side_by_side(runs: &[Run]) -> Option<Page> {
    let first = runs.first()?;
    let names: Vec<String> = runs.iter().map(Run::label).collect();
    let mut page = Page::new(format!("{}: {}", first.title(), names.join(", ")))
        .subtitle(runs.iter().map(|r| format!("{}: {}", r.label(), r.result())).collect::<Vec<_>>().join(". "));
    let mut worlds: Vec<&str> = runs.iter().map(Run::world).collect();
    worlds.dedup();
    page = first.describe(page, &worlds.join(", "));
    for run in runs {
        page = run.in_real_time(page);
    }
    let mut section = Section::new("numbers", "In numbers");
    let mut table = Table { title: "Groups".into(), caption: first.caption(), ..Table::default() };
    for run in runs {
        let t = run.groups();
        table.head = [vec!["with".into()], t.head].concat();
        table.rows.extend(t.rows.into_iter().map(|row| [vec![run.label()], row].concat()));
    }
    section = section.table(table);
    Some(page.section(section).section(first.over_time(runs)))
}

/// The folder of one of several runs, below that of all: `rap:fine_grain=on` has characters that no file should have, and
/// whatever stands there, the name leads neither up nor elsewhere, is not hidden, and no longer than names of files are.
pub fn folder_name(name: &str) -> String {
    /// Names of files end at 255 bytes.
    const LONGEST: usize = 200;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().take(LONGEST).map(plain).collect();
    match name.strip_prefix('.') {
        Some(rest) => format!("-{rest}"),
        None if name.is_empty() => "-".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controllers_settings_make_a_plain_folder_name() {
        assert_eq!(folder_name("rap:fine_grain=on"), "rap-fine_grain-on");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let long = "x".repeat(300);
        let corpus = [
            "",
            ".",
            "..",
            "...",
            "../x",
            "../../etc/passwd",
            "/etc/passwd",
            "//x",
            "x/../../y",
            "./x",
            "x/",
            "/",
            "\\",
            "..\\x",
            "C:\\x",
            "\\\\host\\share",
            "~",
            "~root/x",
            "$HOME",
            "`id`",
            "$(id)",
            "x;y",
            "x\0y",
            "x\ny",
            "x\u{1b}[2Jy",
            "-rf",
            "x y",
            "..\u{2215}x",
            "\u{ff0e}\u{ff0e}/x",
            "%2e%2e%2fx",
            "con",
            ".bashrc",
            "\u{202e}cod.exe",
            &long,
        ];
        for name in corpus {
            let plain = folder_name(name);
            let parts: Vec<_> = Path::new(&plain).components().collect();
            assert!(matches!(parts[..], [std::path::Component::Normal(_)]), "{name:?}: {plain:?}");
            assert!(!plain.starts_with('.') && plain.len() <= 200 && plain.is_ascii(), "{name:?}: {plain:?}");
            assert!(!plain.contains(|c: char| c.is_control() || "/\\;$`~% ".contains(c)), "{name:?}: {plain:?}");
        }
    }

    #[test]
    fn a_folder_without_a_run_is_said_to_be_so() {
        let error = run_page(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.starts_with("`/nonexistent/summary.json` cannot be read"), "{error}");
    }

    /// One that has no end, behind a link.
    #[test]
    fn a_device_in_the_place_of_a_file_is_not_read() {
        let folder = std::env::temp_dir().join(format!("fairpace-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("summary.json")).unwrap();
        let error = run_page(&folder).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.ends_with("summary.json` cannot be read: not a regular file"), "{error}");
    }
}
