//! Dependencies point one way, as ARCHITECTURE.md has them, and what computes needs no operating system beneath it.

use fairpace_checks::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// The crates that drive real I/O. Whatever is not here computes.
const WITH_SOCKETS: [&str; 6] = ["net", "emu", "fsocket", "realtime", "python", "cli"];
/// The packages that must not be beneath a crate that computes, other than the crates above.
const SYSTEM: [&str; 4] = ["nix", "socket2", "tun-rs", "caps"];
/// Built without an operating system, with all that is beneath them.
const EVERYWHERE: [&str; 2] = ["fairpace-papers", "fairpace-rtp"];
/// Computes, with a library in C beneath (zstd), which another target has to have a compiler for.
const WITH_C: &str = "columns";
const WASM: &str = "wasm32-unknown-unknown";

/// The normal dependencies of each package, by name.
struct Packages(BTreeMap<String, BTreeSet<String>>);

impl Packages {
    fn read() -> Packages {
        // Crates of other platforms need not be on this machine.
        let cargo =
            |args: &[&str]| Command::new(env!("CARGO")).args(args).current_dir(root()).output().expect("cargo runs");
        let version = String::from_utf8(cargo(&["-vV"]).stdout).expect("text");
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host");
        let out = cargo(&["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let all: Value = serde_json::from_slice(&out.stdout).expect("cargo writes JSON");
        let packages = all["packages"].as_array().expect("packages");
        let name = |id: &Value| {
            let package = packages.iter().find(|p| p["id"] == *id).expect("every id is a package's");
            package["name"].as_str().expect("a name").to_owned()
        };
        let is_normal =
            |d: &&Value| d["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k["kind"].is_null()));
        let node = |n: &Value| {
            let deps = n["deps"].as_array().expect("dependencies").iter().filter(is_normal);
            (name(&n["id"]), deps.map(|d| name(&d["pkg"])).collect())
        };
        Packages(all["resolve"]["nodes"].as_array().expect("nodes").iter().map(node).collect())
    }

    /// Our own crates that one depends on, without the prefix.
    fn own(&self, package: &str) -> BTreeSet<&str> {
        self.0[package].iter().filter_map(|name| name.strip_prefix("fairpace-")).collect()
    }

    /// Everything beneath a package.
    fn beneath(&self, package: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = self.0[package].iter().map(String::as_str).collect();
        while let Some(package) = next.pop() {
            if found.insert(package) {
                next.extend(self.0[package].iter().map(String::as_str));
            }
        }
        found
    }
}

/// The rows of the map in ARCHITECTURE.md: a crate, and what it depends on.
fn map() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is read");
    let row = |line: &str| {
        let [_, folder, _, depends, _] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else { return None };
        let name = folder.strip_prefix("`crates/")?.strip_suffix('`')?;
        Some((name.to_owned(), depends.to_owned()))
    };
    text.lines().filter_map(row).collect()
}

fn package(folder: &str) -> String {
    if folder == "cli" { "fairpace".to_owned() } else { format!("fairpace-{folder}") }
}

/// The folders of all crates.
fn folders() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates/ is read");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_map_has_each_crate_below_all_that_it_depends_on_and_says_what_that_is() {
    let (packages, map) = (Packages::read(), map());
    assert_eq!(map.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), folders());
    let mut above = BTreeSet::new();
    for (name, depends) in &map {
        let found = packages.own(&package(name));
        let said: BTreeSet<&str> = match depends.as_str() {
            "–" => BTreeSet::new(),
            some => match some.strip_prefix("all but ") {
                // The command line, on top of everything.
                Some(not) => above.iter().copied().filter(|name| !not.split(", ").any(|not| not == *name)).collect(),
                None => some.split(", ").collect(),
            },
        };
        assert_eq!(
            found, said,
            "ARCHITECTURE.md's dependencies of `{name}` (right) are not those of its Cargo.toml (left)"
        );
        let below: Vec<_> = found.difference(&above).collect();
        assert!(below.is_empty(), "`{name}` depends on {below:?}, further down in ARCHITECTURE.md");
        above.insert(name.as_str());
    }
}

#[test]
fn what_computes_has_neither_sockets_nor_devices_beneath_it() {
    let packages = Packages::read();
    let forbidden: BTreeSet<String> =
        WITH_SOCKETS.iter().map(|name| package(name)).chain(SYSTEM.map(str::to_owned)).collect();
    for folder in folders().iter().filter(|folder| !WITH_SOCKETS.contains(&folder.as_str())) {
        let beneath = packages.beneath(&package(folder));
        let wrong: Vec<_> = beneath.iter().filter(|name| forbidden.contains(**name)).collect();
        assert!(
            wrong.is_empty(),
            "`{folder}` has {wrong:?} beneath it: `cargo tree -e normal -i {}` shows how",
            wrong[0]
        );
    }
    // And the names are those of real packages.
    assert!(SYSTEM.iter().all(|name| packages.beneath("fairpace").contains(name)));
}

/// Clippy takes the nearest `clippy.toml` alone: one in a crate's folder would lift what the root's forbids.
#[test]
fn sockets_are_a_lint_error_in_every_crate_that_computes() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    for folder in folders() {
        let own = root().join("crates").join(&folder).join("clippy.toml");
        let expected = WITH_SOCKETS.contains(&folder.as_str()).then(|| "../../clippy-sockets.toml".into());
        assert_eq!(fs::read_link(own).ok(), expected, "crates/{folder}/clippy.toml");
    }
    let rules = |file: &str| -> Vec<String> {
        let text = read(file);
        let rows = text.lines().map(str::trim).filter(|line| line.starts_with("{ path = "));
        rows.map(str::to_owned).collect()
    };
    let (everywhere, with_sockets) = (rules("clippy.toml"), rules("clippy-sockets.toml"));
    let more: Vec<_> = everywhere.iter().filter(|rule| !with_sockets.contains(rule)).collect();
    assert_eq!(everywhere.len(), with_sockets.len() + more.len(), "clippy-sockets.toml has a rule of its own");
    for name in ["std::net::UdpSocket", "std::net::TcpStream", "std::os::fd::AsFd"] {
        assert!(more.iter().any(|rule| rule.contains(&format!("\"{name}\""))), "{name} is allowed everywhere");
    }
}

/// Needs the target's standard library: `rustup target add wasm32-unknown-unknown`.
#[test]
fn what_computes_is_built_without_an_operating_system() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = Command::new(rustc).args(["--print", "target-libdir", "--target", WASM]).output();
    let libraries = libraries.ok().map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    if !libraries.is_some_and(|folder| fs::exists(folder).unwrap_or(false)) {
        eprintln!("skipped: this machine has no standard library for {WASM}; `rustup target add {WASM}` installs one");
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--offline", "--locked", "--quiet", "--target", WASM]).current_dir(root());
    // A folder of its own: the one of this test is in use.
    cargo.args(["--target-dir", concat!(env!("CARGO_TARGET_TMPDIR"), "/wasm")]);
    let out = cargo.args(EVERYWHERE.iter().flat_map(|name| ["-p", *name])).output().expect("cargo runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // Between them they cover every crate that computes.
    let packages = Packages::read();
    let built: BTreeSet<&str> = EVERYWHERE.iter().flat_map(|name| packages.beneath(name)).chain(EVERYWHERE).collect();
    let others = ["checks", "fuzz", WITH_C];
    let computes = |folder: &&String| !WITH_SOCKETS.iter().chain(&others).any(|name| name == folder);
    for folder in folders().iter().filter(computes) {
        assert!(built.contains(package(folder).as_str()), "`{folder}` is not built for {WASM}");
    }
}
