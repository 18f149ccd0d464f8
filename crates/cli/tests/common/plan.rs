//! The parts that the tests of `fairpace plan` share.

use std::process::{Command, Stdio};

/// stdout, stderr and exit code of `fairpace plan WHAT ...`.
pub(crate) fn plan(what: &str, args: &str) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_fairpace"))
        .args(["plan", what])
        .args(args.split_whitespace())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}
