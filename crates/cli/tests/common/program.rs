//! The command as a test starts it: without colours, without a terminal, in a folder of the tests' own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairpace"));
    command.args(args).env("NO_COLOR", "1").stdin(Stdio::null()).current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("what it says is UTF-8")
}

/// A folder of the test file `of`, which is there.
pub(crate) fn folder(of: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(of);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
