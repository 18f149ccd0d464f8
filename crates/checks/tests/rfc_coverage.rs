//! The tests of each requirement of an RFC: `docs/rfc/*.toml` lists requirements, a test that covers one carries the
//! line `//= ID`, and `docs/rfc/*.md` shows both side by side.
//!
//! Fails if a requirement has neither a test nor an exception with its reason, if a test names what
//! is not listed, or if the pages are out of date. `FAIRPACE_BLESS=1` writes the pages.

use fairpace_checks::root;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const LEVELS: [&str; 6] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "says"];

/// `docs/rfc/NUMBER.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rfc {
    rfc: u32,
    title: String,
    requirement: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    /// RFC-SECTION-N.
    id: String,
    /// The RFC's key word; `says` where there is none.
    level: String,
    /// In our words.
    summary: String,
    /// Why no test covers it.
    exception: Option<String>,
}

impl Requirement {
    fn section(&self) -> &str {
        self.id.split('-').nth(1).unwrap_or_default()
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files below a folder that end so, in order.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|e| e.expect("a folder's entry").path()) {
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// `control::scheme::tfrc::history::tests` for `control/src/scheme/tfrc/history/tests.rs`, `control::equation` for
/// `control/tests/equation.rs`.
fn module(file: &Path) -> String {
    let inside = file.strip_prefix(root().join("crates")).expect("a file of a crate").with_extension("");
    let parts = inside.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).enumerate();
    let parts = parts.filter(|(i, p)| !(*i == 1 && (p == "src" || p == "tests") || p == "lib" || p == "mod"));
    parts.map(|(_, p)| p).collect::<Vec<_>>().join("::")
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Each citation in a file: the id and the test around it, or just below it.
fn citations(file: &Path, text: &str) -> Result<Vec<(String, String)>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let belongs_to_head = |l: &&str| l.starts_with("//") || l.starts_with("#[");
    let mut found = Vec::new();
    for (i, id) in lines.iter().enumerate().filter_map(|(i, l)| Some((i, l.strip_prefix("//= ")?.trim()))) {
        let below = i + lines[i..].iter().take_while(|l| belongs_to_head(l)).count();
        let head = if lines.get(below).copied().and_then(function).is_some() {
            Some(below)
        } else {
            (0..i).rev().find(|i| function(lines[*i]).is_some())
        };
        let is_test = |head: usize| {
            lines[..head].iter().rev().take_while(|l| belongs_to_head(l)).any(|l| l.starts_with("#[test]"))
        };
        let name = head.filter(|h| is_test(*h)).and_then(|h| function(lines[h]));
        let Some(name) = name else { return Err(format!("{}:{}: `{id}` belongs to no test", file.display(), i + 1)) };
        let inline =
            text.lines().any(|l| l == "mod tests {") && text.lines().nth(i).is_some_and(|l| l.starts_with(' '));
        let tests = if inline { "::tests" } else { "" };
        found.push((id.to_owned(), format!("{}{tests}::{name}", module(file))));
    }
    Ok(found)
}

/// The faults of a list itself.
fn check(rfc: &Rfc, stem: &str, faults: &mut Vec<String>) {
    if stem != rfc.rfc.to_string() {
        faults.push(format!("docs/rfc/{stem}.toml: `rfc` is {}", rfc.rfc));
    }
    let mut ids = std::collections::BTreeSet::new();
    for r in &rfc.requirement {
        let parts: Vec<&str> = r.id.split('-').collect();
        let is_id = parts.len() == 3 && parts[0] == stem && parts[2].parse::<u32>().is_ok();
        if !is_id || !ids.insert(&r.id) {
            faults.push(format!("docs/rfc/{stem}.toml: `{}` must be {stem}-SECTION-NUMBER, and once", r.id));
        }
        if !LEVELS.contains(&r.level.as_str()) {
            faults.push(format!("{}: level is `{}`; allowed are {}", r.id, r.level, LEVELS.join(", ")));
        }
        if r.summary.trim().is_empty() || r.exception.as_ref().is_some_and(|e| e.trim().is_empty()) {
            faults.push(format!("{}: an empty summary or exception", r.id));
        }
    }
}

/// `docs/rfc/NUMBER.md`.
fn page(rfc: &Rfc, tests: &BTreeMap<String, Vec<String>>) -> String {
    let mut out = format!(
        "# RFC {}: {}\n\n\
         The requirements, in our words, with the tests that cover them (`crate::path::test`) or the reason why none does.\n\
         Written by `crates/checks/tests/rfc_coverage.rs` from [{}.toml]({}.toml) and the lines `//= ID` in the tests.\n\n\
         | id | section | level | what | tests |\n| --- | --- | --- | --- | --- |\n",
        rfc.rfc, rfc.title, rfc.rfc, rfc.rfc
    );
    for r in &rfc.requirement {
        let covered = match (tests.get(&r.id), &r.exception) {
            (Some(tests), _) => tests.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join("<br>"),
            (None, Some(reason)) => format!("*exception:* {reason}"),
            (None, None) => "**missing**".to_owned(),
        };
        let what = r.summary.replace('|', "\\|");
        writeln!(out, "| {} | §{} | {} | {what} | {covered} |", r.id, r.section(), r.level).expect("a string");
    }
    out
}

/// `docs/rfc/README.md`.
fn index(rfcs: &[Rfc], tests: &BTreeMap<String, Vec<String>>) -> String {
    let mut out = "# RFCs, requirement by requirement\n\n\
         A requirement is in `NUMBER.toml` with an id, the RFC's key word and our words for it. A test that covers it\n\
         carries the line `//= ID` above its `fn`, or in it. A requirement that no test can cover has an `exception` with the reason.\n\
         `cargo test -p fairpace-checks --test rfc_coverage` compares both; with `FAIRPACE_BLESS=1` it writes these pages.\n\n\
         | RFC | title | requirements | tested | exceptions |\n| --- | --- | --- | --- | --- |\n"
        .to_owned();
    for rfc in rfcs {
        let all = &rfc.requirement;
        let tested = all.iter().filter(|r| tests.contains_key(&r.id)).count();
        let excepted = all.iter().filter(|r| r.exception.is_some()).count();
        let n = rfc.rfc;
        writeln!(out, "| [{n}]({n}.md) | {} | {} | {tested} | {excepted} |", rfc.title, all.len()).expect("a string");
    }
    out
}

#[test]
fn every_requirement_is_tested_or_excepted_and_the_pages_say_where() {
    let folder = root().join("docs/rfc");
    let mut faults = Vec::new();
    let mut rfcs = Vec::new();
    for file in files(&folder, ".toml") {
        let rfc: Rfc = toml::from_str(&read(&file)).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        check(&rfc, &file.file_stem().expect("a name").to_string_lossy(), &mut faults);
        rfcs.push(rfc);
    }
    assert!(!rfcs.is_empty(), "no list in {}", folder.display());
    rfcs.sort_by_key(|r| r.rfc);

    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files(&root().join("crates"), ".rs") {
        match citations(&file, &read(&file)) {
            Ok(found) => found.into_iter().for_each(|(id, test)| tests.entry(id).or_default().push(test)),
            Err(fault) => faults.push(fault),
        }
    }
    for r in rfcs.iter().flat_map(|r| &r.requirement) {
        match (tests.contains_key(&r.id), &r.exception) {
            (false, None) => faults.push(format!("{} has no test and no exception: {}", r.id, r.summary)),
            (true, Some(_)) => faults.push(format!("{} has a test: its exception is out of date", r.id)),
            _ => {}
        }
    }
    for (id, tests) in &tests {
        if !rfcs.iter().flat_map(|r| &r.requirement).any(|r| r.id == *id) {
            faults.push(format!("{} cites {id}, which no docs/rfc/*.toml lists", tests.join(", ")));
        }
    }

    let pages = rfcs.iter().map(|r| (format!("{}.md", r.rfc), page(r, &tests)));
    for (name, expected) in pages.chain([("README.md".to_owned(), index(&rfcs, &tests))]) {
        let path = folder.join(&name);
        if std::env::var_os("FAIRPACE_BLESS").is_some() {
            std::fs::write(&path, &expected).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        } else if std::fs::read_to_string(&path).unwrap_or_default() != expected {
            faults.push(format!("docs/rfc/{name} is out of date: FAIRPACE_BLESS=1 writes it anew"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_citation_belongs_to_the_test_below_or_around_it() {
    let file = root().join("crates/control/src/scheme/tfrc/history/tests.rs");
    let of = |text: &str| citations(&file, text);
    let named = |name: &str, id: &str| (id.to_owned(), format!("control::scheme::tfrc::history::tests::{name}"));
    let above = "#[test]\n//= 1-2-3\n//= 1-2-4\nfn first() {\n}\n//= 1-2-5\n#[test]\nfn second() {\n    //= 1-2-6\n}\n";
    let all = [named("first", "1-2-3"), named("first", "1-2-4"), named("second", "1-2-5"), named("second", "1-2-6")];
    assert_eq!(of(above), Ok(all.to_vec()));
    assert!(of("//= 1-2-3\nfn helper() {}\n").is_err_and(|e| e.ends_with("tests.rs:1: `1-2-3` belongs to no test")));
    let foot = root().join("crates/rtp/src/rtx.rs");
    let found = citations(&foot, "mod tests {\n    #[test]\n    //= 1-2-3\n    fn it() {}\n}\n");
    assert_eq!(found, Ok(vec![("1-2-3".to_owned(), "rtp::rtx::tests::it".to_owned())]));
}
