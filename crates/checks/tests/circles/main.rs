//! Inside a crate, files name each other in one direction: no file is on a circle.
//!
//! A file names another where one of its `use` lines, or a path in its code (`super::slots()`, `walk::Walk`), leads to
//! an item that the other defines. A path is followed through re-exports to the file of the definition. So a parent's
//! `mod` and `pub use` of its children are no circle, however many names they hand on; a parent that uses its
//! children's items is on one as soon as a child uses an item of the parent: what both need belongs into a file below
//! them. Code under `#[cfg(test)]` and comments do not count, nor do methods: an `impl` of a parent's type may stand in a
//! child that the parent only declares.

mod source;

use fairpace_checks::root;
use source::{Arrows, arrows};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The Rust files below a crate's `src`, by their paths in it.
fn files(folder: &Path, within: &str, found: &mut BTreeMap<String, String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries.map(|e| e.expect("a folder's entry")) {
        let (path, name) = (entry.path(), format!("{within}{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            files(&path, &format!("{name}/"), found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            found.insert(name, text);
        }
    }
}

/// All files that can be reached from one.
fn reach<'a>(arrows: &'a Arrows, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(file) = next.pop() {
        for to in arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    found
}

/// The circles, as sets of files that reach each other.
fn circles(arrows: &Arrows) -> BTreeSet<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|f| (f.as_str(), reach(arrows, f))).collect();
    let mut found = BTreeSet::new();
    for (file, to) in reached.iter().filter(|(file, to)| to.contains(*file)) {
        let back = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(file));
        found.insert(to.iter().filter(back).copied().collect());
    }
    found
}

/// A circle for people: each arrow, with the names that it stands for.
fn described(name: &str, circle: &BTreeSet<&str>, arrows: &Arrows) -> String {
    let mut text = format!("{} files of `{name}` are on a circle:\n", circle.len());
    for from in circle {
        for (to, names) in arrows[*from].iter().filter(|(to, _)| circle.contains(to.as_str())) {
            text += &format!("  {from} -> {to}: {}\n", names.iter().cloned().collect::<Vec<_>>().join(", "));
        }
    }
    text
}

#[test]
fn no_file_is_on_a_circle() {
    let crates = root().join("crates");
    let (mut read, mut faults) = (0, Vec::new());
    for entry in fs::read_dir(&crates).expect("crates/ is read") {
        let entry = entry.expect("a crate's folder");
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut sources = BTreeMap::new();
        files(&entry.path().join("src"), "", &mut sources);
        read += sources.len();
        let arrows = arrows(&sources);
        faults.extend(circles(&arrows).iter().map(|circle| described(&name, circle, &arrows)));
    }
    assert!(read > 300, "only {read} files found");
    assert!(faults.is_empty(), "move what both need into a file below them:\n{}", faults.join("\n"));
}

/// The circles of a crate made of these files.
fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files: BTreeMap<String, String> = files.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect();
    let arrows = arrows(&files);
    circles(&arrows).iter().map(|c| c.iter().map(|f| (*f).to_owned()).collect()).collect()
}

#[test]
fn two_files_that_name_each_other_are_a_circle_by_use_lines_and_by_paths_in_the_code() {
    let lib = ("lib.rs", "mod a;\nmod b;\n");
    let b = ("b.rs", "use crate::a::{self, A};\npub struct B;\n");
    assert_eq!(of(&[lib, ("a.rs", "pub struct A;\nuse crate::b::B;\n"), b]), [["a.rs", "b.rs"]]);
    assert_eq!(of(&[lib, ("a.rs", "pub struct A;\nfn f(_: super::b::B) {}\n"), b]), [["a.rs", "b.rs"]]);
    assert_eq!(of(&[lib, ("a.rs", "pub struct A(u8);\n// use crate::b::B;\n"), b]), [[""; 0]; 0]);
    // In a test, or in a text, nothing counts.
    let tests = "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\nconst T: &str = \"crate::b::B\";\n";
    assert_eq!(of(&[lib, ("a.rs", tests), b]), [[""; 0]; 0]);
}

#[test]
fn a_circle_may_be_long_and_go_through_what_a_parent_hands_on() {
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\n");
    let (a, b) = (("a.rs", "use crate::b::B;\npub struct A;\n"), ("b.rs", "use crate::C;\npub struct B;\n"));
    assert_eq!(of(&[lib, a, b, ("c.rs", "pub struct C;\n")]), [[""; 0]; 0]);
    // A lifetime before a name is no definition.
    let uses = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\nfn f(_: &'static C, _: a::A) {}\n");
    assert_eq!(of(&[uses, a, b, ("c.rs", "pub struct C;\n")]), [[""; 0]; 0]);
    assert_eq!(of(&[lib, a, b, ("c.rs", "pub struct C(crate::a::A);\n")]), [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn a_parent_may_hand_on_what_its_children_have_but_not_both_use_it_and_be_used() {
    let lib = ("lib.rs", "mod a;\n");
    let child = ("a/child.rs", "use super::Own;\npub struct Child;\nimpl Own {}\n");
    assert_eq!(of(&[lib, ("a.rs", "mod child;\npub use child::Child;\npub struct Own;\n"), child]), [[""; 0]; 0]);
    let using = ("a.rs", "mod child;\nuse child::Child;\npub struct Own(Child);\n");
    assert_eq!(of(&[lib, using, child]), [["a.rs", "a/child.rs"]]);
    // A sibling by way of the parent's own `use` is the sibling's.
    let sibling = ("a/child.rs", "use super::Other;\npub struct Child;\n");
    let parent =
        ("a.rs", "mod child;\nmod other;\nuse child::Child;\nuse other::Other;\npub struct Own(Child, Other);\n");
    assert_eq!(of(&[lib, parent, sibling, ("a/other.rs", "pub struct Other;\n")]), [[""; 0]; 0]);
}
