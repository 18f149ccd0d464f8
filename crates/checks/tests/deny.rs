//! `scripts/deny`, which `make soak` runs: `deny.toml` decides where cargo-deny is installed, and a word says where not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the script with a Cargo that answers so, and writes its arguments to standard output.
fn deny(name: &str, cargo: &str) -> Output {
    let folder = std::env::temp_dir().join(format!("fairpace-deny-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("cargo");
    fs::write(&program, format!("#!/bin/sh\necho \"called: $*\"\n{cargo}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(root().join("scripts/deny")).env("CARGO", program).output().unwrap();
    fs::remove_dir_all(folder).unwrap();
    output
}

#[test]
fn where_cargo_deny_is_installed_its_verdict_is_the_scripts() {
    for (name, code) in [("good", 0), ("bad", 4)] {
        let output = deny(name, &format!("[ \"$2\" = --version ] || exit {code}"));
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(code), "called: deny check\n"));
    }
}

#[test]
fn where_it_is_not_installed_a_line_says_that_the_step_was_skipped() {
    let output = deny("absent", "exit 101");
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("skipped: cargo-deny is not installed"), "{said}");
}

#[test]
fn soak_runs_it() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let soak = makefile.split("\nsoak:").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    assert!(soak.lines().any(|line| line.trim() == "scripts/deny"), "{soak}");
}
