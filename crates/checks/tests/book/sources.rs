//! Whoever is cited stands in the bibliography.

use crate::pages::root;
use std::collections::BTreeSet;
use std::path::Path;

/// Adds the RFCs, drafts and papers that the files below `folder` cite.
fn cited(folder: &Path, keys: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            cited(&path, keys);
        } else if path.extension().is_some_and(|e| ["rs", "md", "py", "toml"].iter().any(|known| e == *known)) {
            let text = std::fs::read_to_string(&path).unwrap();
            for (at, _) in text.match_indices("RFC ") {
                let number: String = text[at + 4..].chars().take_while(char::is_ascii_digit).collect();
                if number.len() >= 3 {
                    keys.insert(format!("RFC {number}"));
                }
            }
            for (at, _) in text.match_indices("draft-") {
                let draft = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
                let name: String = text[at..].chars().take_while(draft).collect();
                if name.matches('-').count() >= 3 {
                    keys.insert(name);
                }
            }
            // [rcs §III], [aimd eq. (3)]: a word in lower case, then a place.
            for part in text.split('[').skip(1) {
                let Some((key, place)) = part.split_once(' ') else { continue };
                let is_place = ["§", "eq.", "Fig", "Table", "App."].iter().any(|p| place.starts_with(p));
                if is_place && key.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
                    keys.insert(format!("`{key}`"));
                }
            }
        }
    }
}

#[test]
fn every_source_that_is_cited_stands_in_the_bibliography() {
    let mut keys = BTreeSet::new();
    for folder in ["crates", "docs", "scenarios"] {
        cited(&root().join(folder), &mut keys);
    }
    assert!(keys.len() > 50 && keys.contains("`rcs`"), "only {keys:?}: the reader of citations is broken");
    let bibliography = std::fs::read_to_string(root().join("docs/bibliography.md")).unwrap();
    let rows: String = bibliography.lines().filter(|l| l.starts_with('|')).collect();
    let missing: Vec<_> = keys.iter().filter(|key| !rows.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/bibliography.md has no row for {missing:?}");
}
