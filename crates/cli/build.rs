//! Writes the commit into the binary, for `fairpace --version` and the reports.

use std::process::Command;

fn main() {
    // A packager's build has no repository: it may say what it builds, or the answer is "unknown".
    println!("cargo::rerun-if-env-changed=FAIRPACE_COMMIT");
    let given = std::env::var("FAIRPACE_COMMIT").ok().filter(|c| !c.is_empty());
    let commit = given.or_else(from_git).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=FAIRPACE_COMMIT={commit}");
    println!("cargo::rustc-env=FAIRPACE_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

fn from_git() -> Option<String> {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
    };
    let dir = git(&["rev-parse", "--git-dir"])?;
    // HEAD names a branch, whose file changes with each commit; the log of HEAD covers both.
    println!("cargo::rerun-if-changed={dir}/HEAD");
    println!("cargo::rerun-if-changed={dir}/logs/HEAD");
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    Some(commit)
}
