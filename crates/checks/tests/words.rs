//! Documentation comments are sentences with a noun for their subject.
//!
//! "When." over a field says less than its name; "Whose packets are those of ..." is a riddle. Both are refused.

use std::path::{Path, PathBuf};

/// Words that are no sentence on their own.
const INTERROGATIVES: &[&str] = &["How", "What", "When", "Where", "Which", "Who", "Whose", "Why"];

/// Words that no documentation comment begins with.
const RIDDLES: &[&str] = &["That of ", "Those of ", "Whose "];

/// The Rust files below a folder, generated ones apart.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|e| e.expect("a folder's entry").path()) {
        if path.is_dir() && !path.ends_with("target") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text of a documentation comment's line; `None` for any other line.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    Some(line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim())
}

/// The lines at which a documentation comment begins with what no sentence begins with, counted from 1.
fn riddles(text: &str) -> Vec<usize> {
    let lines: Vec<Option<&str>> = text.lines().map(comment).collect();
    let is_riddle = |i: usize| {
        let begins = lines[i].filter(|_| i == 0 || lines[i - 1].is_none_or(str::is_empty));
        let ends = lines.get(i + 1).is_none_or(|next| next.is_none_or(str::is_empty));
        begins.is_some_and(|text| {
            let alone = ends && INTERROGATIVES.contains(&text.trim_end_matches(['.', '?']));
            alone || RIDDLES.iter().any(|riddle| text.starts_with(riddle))
        })
    };
    (0..lines.len()).filter(|i| is_riddle(*i)).map(|i| i + 1).collect()
}

#[test]
fn no_documentation_comment_is_a_riddle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut files, mut faults) = (0, Vec::new());
    for path in sources(&crates) {
        let name = path.strip_prefix(&crates).expect("a file of a crate").to_path_buf();
        if name == Path::new("checks/tests/words.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        files += 1;
        faults.extend(riddles(&text).into_iter().map(|line| format!("crates/{}:{line}", name.display())));
    }
    assert!(files > 100, "only {files} files found");
    assert!(faults.is_empty(), "say in a sentence with a noun for its subject what this is:\n{}", faults.join("\n"));
}

#[test]
fn a_riddle_is_a_lone_interrogative_or_begins_with_one_that_owns() {
    assert_eq!(riddles("/// When.\nat: Instant,\n    /// Why?\n/// What\n"), [1], "two lines are no lone word");
    assert_eq!(riddles("/// Whose slot it is.\n/// Those of them that failed.\n"), [1], "one comment, one beginning");
    assert_eq!(riddles("//! That of the flow.\n//!\n//! Those of the link.\n"), [1, 3]);
    assert_eq!(riddles("// When.\n/// When it left.\n/// The owner.\nlet whose = \"/// Whose.\";\n"), [0_usize; 0]);
}
