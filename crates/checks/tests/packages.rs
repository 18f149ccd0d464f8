//! `scripts/install-packages` never asks for privileges.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// Nobody, as on any Unix.
const NOBODY: u32 = 65_534;

/// Runs the script as a user who is not root, in a folder where `dpkg-query` says of each package that it is in that `state`, and where
/// a call of `sudo` or `apt-get` leaves a mark.
fn install(state: &str) -> (Output, bool) {
    let folder = std::env::temp_dir().join(format!("fairpace-packages-{}-{}", state.len(), std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = |name: &str, text: &str| {
        fs::write(folder.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("dpkg-query", &format!("printf '{state}'"));
    for called in ["sudo", "apt-get"] {
        program(called, &format!("touch {}/called", folder.display()));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-packages");
    fs::copy(script, folder.join("install-packages")).unwrap();
    fs::write(folder.join("list.txt"), "some-package # for something\n\n# none\nanother\n").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.arg("install-packages").arg("list.txt").env("PATH", path).current_dir(&folder);
    if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let called = folder.join("called").exists();
    fs::remove_dir_all(folder).unwrap();
    (output, called)
}

#[test]
fn who_is_not_root_is_told_what_to_run_and_nothing_is_installed() {
    let (output, called) = install("deinstall ok config-files");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), called), (Some(1), false), "{said}");
    let line = "  sudo apt-get update && sudo apt-get install --no-install-recommends some-package another";
    assert!(said.starts_with("error: ") && said.contains(line), "{said}");
}

#[test]
fn where_all_is_there_nobody_is_asked_for_anything() {
    let (output, called) = install("install ok installed");
    assert!(output.status.success() && !called && output.stderr.is_empty(), "{output:?}");
}
