//! Unsafe code is where a list says, and every crate without any forbids it.

use fairpace_checks::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The files with unsafe code, and what it is.
const UNSAFE: [&str; 8] = [
    // Calls of C: pointers in.
    "crates/fsocket/src/c_api.rs",
    "crates/fsocket/tests/targets.rs",
    // Options and system calls that nix has not.
    "crates/emu/src/priority.rs",
    "crates/net/src/kernel_tcp.rs",
    "crates/net/src/socket/options.rs",
    // Calls by their numbers in another ABI.
    "crates/emu/tests/call_filter.rs",
    // A processor's instruction.
    "crates/sim/src/prefetch.rs",
    // An allocator that counts.
    "crates/path/benches/dama.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The path below the repository.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned()
}

#[test]
fn no_other_file_allows_unsafe_code() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let allows = |path: &&PathBuf| {
        let text = fs::read_to_string(path).expect("text");
        text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("#") && line.contains("allow(") && line.contains("unsafe_code")
        })
    };
    let mut found: Vec<_> = files.iter().filter(allows).map(|path| name(path)).collect();
    found.sort();
    let mut listed = UNSAFE.map(str::to_owned).to_vec();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn every_crate_whose_sources_have_none_forbids_it() {
    for entry in fs::read_dir(root().join("crates")).expect("crates/ is read") {
        let folder = entry.expect("an entry").path();
        let source = folder.join("src");
        let has_some = UNSAFE.iter().any(|path| root().join(path).starts_with(&source));
        let main = [source.join("lib.rs"), source.join("main.rs")].into_iter().find(|path| path.exists());
        let text = fs::read_to_string(main.expect("a crate")).expect("text");
        let forbids = text.lines().any(|line| line == "#![forbid(unsafe_code)]");
        assert_eq!(forbids, !has_some, "{}", folder.display());
    }
}
