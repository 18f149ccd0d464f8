//! Each patch of `tests/defences` still takes its defence out of the tree as it is, and names a test that there is.
//! `scripts/defences` runs them.

use fairpace_checks::root;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn patches() -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(root().join("tests/defences"))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "patch"))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "no patch in tests/defences");
    all
}

#[test]
fn each_patch_applies_to_the_tree_as_it_is() {
    for patch in patches() {
        let out =
            Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root()).output().expect("git runs");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{} does not apply: write it anew.\n{said}", patch.display());
    }
}

#[test]
fn each_patch_names_its_threat_and_a_test_that_there_is_and_the_page_names_the_patch() {
    let page = fs::read_to_string(root().join("docs/safety/README.md")).expect("the page is there");
    let sources = Command::new("git").args(["ls-files", "crates"]).current_dir(root()).output().expect("git runs");
    let sources: String = String::from_utf8(sources.stdout)
        .expect("text")
        .lines()
        .filter(|path| path.ends_with(".rs"))
        .filter_map(|path| fs::read_to_string(root().join(path)).ok())
        .collect();
    for patch in patches() {
        let (path, text) = (patch.display(), fs::read_to_string(&patch).expect("the patch is text"));
        let (head, _) = text.split_once("diff --git ").unwrap_or_else(|| panic!("{path} has no diff"));
        let field = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("{path} has no line `{name}: ...`"))
        };
        let test = field("Test").rsplit([' ', ':']).next().unwrap_or_default();
        assert!(sources.contains(&format!("fn {test}(")), "{path}: there is no test `{test}`");
        assert!(field("Threat").starts_with('T') && !field("Defence").is_empty(), "{path}");
        let stem = patch.file_stem().unwrap_or_default().to_string_lossy();
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{stem}`")));
        let row = row.unwrap_or_else(|| panic!("docs/safety/README.md has no row with `{stem}`"));
        let mut changed = text.lines().filter_map(|line| line.strip_prefix("+++ b/crates/"));
        let named = |file: &str| {
            let last = file.rsplit('/').next().unwrap_or_default();
            row.contains(&format!("`{file}`")) || row.contains(&format!("`{last}`"))
        };
        assert!(changed.any(named), "docs/safety/README.md names none of the files of `{stem}`:\n{row}");
    }
}
