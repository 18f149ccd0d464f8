//! Sentences have a noun for their subject, in comments and in the book.
//!
//! "When." over a field says less than its name; "Whose packets are those of ..." is a riddle; "It fails." leaves the
//! reader to guess the subject, and "What it may be." to guess the noun. All of these are refused where a sentence begins.
//! Questions are sentences; a heading, a cell of a table and a title in italics or quotation marks are none.

use std::path::{Path, PathBuf};

/// Words that are no sentence on their own.
const INTERROGATIVES: &[&str] = &["How", "What", "When", "Where", "Which", "Who", "Whose", "Why"];

/// Words that no sentence begins with, unless it is a question.
const RIDDLES: &[&str] = &["It ", "What ", "Which ", "Whose ", "That of ", "Those of "];

/// Ends of words with a full stop that end no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "vs.", "cf.", " Fig.", " Figs.", " eq.", " no.", " p.", " pp."];

/// The files below a folder whose names end so, generated ones apart.
fn sources(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|e| e.expect("a folder's entry").path()) {
        if path.is_dir() && !path.ends_with("target") {
            found.extend(sources(&path, end));
        } else if path.extension().is_some_and(|has| has == end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text of a comment's line, with its kind; `None` for any other line.
fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let kind = ["///", "//!", "//"].into_iter().find(|kind| line.starts_with(kind))?;
    Some((kind, line[kind.len()..].trim()))
}

/// The sentences of consecutive lines of text, each with the line at which it begins.
fn sentences(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    let (mut found, mut sentence, mut begins) = (Vec::new(), String::new(), 0);
    for word in lines.iter().flat_map(|(at, text)| text.split_whitespace().map(move |word| (*at, word))) {
        let (at, word) = word;
        if sentence.is_empty() {
            begins = at;
        } else {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let full_stop = word.trim_end_matches(['"', ')', '*', '_']).ends_with(['.', '!', '?']);
        if full_stop && !ABBREVIATIONS.iter().any(|end| sentence.ends_with(end)) {
            found.push((begins, std::mem::take(&mut sentence)));
        }
    }
    if !sentence.is_empty() {
        found.push((begins, sentence));
    }
    found
}

/// Whether a sentence begins with a word that hides its subject.
fn is_riddle(sentence: &str) -> bool {
    let words = sentence.strip_prefix("- ").unwrap_or(sentence).trim_start_matches("**").trim_start_matches('(');
    let alone = INTERROGATIVES.contains(&words.trim_end_matches(['.', '?']));
    alone
        || !words.trim_end_matches(['"', ')', '*']).ends_with('?')
            && RIDDLES.iter().any(|begin| words.starts_with(begin))
}

/// The lines of a Rust file at which a sentence of a comment begins with a word that hides its subject, from 1.
fn riddles(text: &str) -> Vec<usize> {
    let mut faults = Vec::new();
    let (mut block, mut kind, mut code): (Vec<(usize, &str)>, &str, bool) = (Vec::new(), "", false);
    let mut close = |block: &mut Vec<(usize, &str)>| {
        faults.extend(sentences(block).iter().filter(|(_, sentence)| is_riddle(sentence)).map(|(at, _)| *at));
        block.clear();
    };
    for (i, line) in text.lines().enumerate() {
        let Some((this, words)) = comment(line) else {
            close(&mut block);
            (kind, code) = ("", false);
            continue;
        };
        let fence = words.starts_with("```");
        let item = words.starts_with("- ") || words.starts_with('|') || words.starts_with("//=");
        if this != kind || words.is_empty() || fence || item {
            close(&mut block);
        }
        (kind, code) = (this, code != fence);
        if !code && !fence && !words.is_empty() && !words.starts_with('|') {
            block.push((i + 1, words));
        }
    }
    close(&mut block);
    faults
}

/// The same of a page in Markdown, its code and tables apart.
fn riddles_of_a_page(text: &str) -> Vec<usize> {
    let mut code = false;
    let mut as_comments = String::new();
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        // Each line as a comment's; code, headings, tables and marks of generated parts end a paragraph.
        let skip = code || line.starts_with("    ") || line.trim_start().starts_with(['|', '#', '<', '>', '`', '!']);
        as_comments.push_str(if skip { "//\n" } else { "// " });
        if !skip {
            as_comments.push_str(line);
            as_comments.push('\n');
        }
    }
    riddles(&as_comments)
}

/// The faults of files, each as `NAME:LINE`.
fn faults(root: &Path, files: &[PathBuf], judge: fn(&str) -> Vec<usize>) -> Vec<String> {
    let of = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.strip_prefix(root).expect("a file of the repository").display().to_string();
        judge(&text).into_iter().map(move |line| format!("{name}:{line}")).collect::<Vec<_>>()
    };
    files.iter().flat_map(of).collect()
}

#[test]
fn no_sentence_of_a_comment_hides_its_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = sources(&root.join("crates"), "rs");
    files.retain(|path| !path.ends_with("checks/tests/words.rs"));
    assert!(files.len() > 100, "only {} files found", files.len());
    let faults = faults(&root, &files, riddles);
    assert!(faults.is_empty(), "say in a sentence with a noun for its subject what this is:\n{}", faults.join("\n"));
}

#[test]
fn no_sentence_of_the_book_hides_its_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = sources(&root.join("docs"), "md");
    assert!(pages.len() > 50, "only {} pages found", pages.len());
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|page| root.join(page)),
    );
    let faults = faults(&root, &pages, riddles_of_a_page);
    assert!(faults.is_empty(), "say in a sentence with a noun for its subject what this is:\n{}", faults.join("\n"));
}

#[test]
fn a_riddle_is_a_lone_interrogative_or_a_sentence_that_hides_its_subject() {
    assert_eq!(
        riddles("/// When.\nat: Instant,\n    /// Why?\n/// What\n"),
        [1, 3, 4],
        "lone words, also two in a row"
    );
    assert_eq!(riddles("/// Whose slot it is.\n/// Those of them that failed.\n"), [1, 2], "each sentence counts");
    assert_eq!(riddles("//! That of the flow.\n//!\n//! Those of the link.\n"), [1, 3]);
    assert_eq!(riddles("// The link waits.\n// Then it sends. It fails\n// in the end.\n"), [2]);
    assert_eq!(riddles("/// - What is left.\n/// - **It** falls.\n/// (It falls.)\n"), [1, 3]);
    assert_eq!(riddles("/// What is left?\n/// When it left.\n/// See e.g. What else\n"), [0_usize; 0]);
    assert_eq!(
        riddles("/// ```\n/// // It runs.\n/// ```\n/// The owner.\nlet whose = \"/// Whose.\";\n"),
        [0_usize; 0]
    );
}

#[test]
fn a_page_is_judged_without_its_code_tables_and_headings() {
    let page = "# What it is\n\nThe link. It waits.\n\n```\nIt runs.\n```\n\n| It | What it is. |\n\nWhat is it?\n- Which one.\n";
    assert_eq!(riddles_of_a_page(page), [3, 12]);
}

#[test]
fn no_file_has_two_versions_of_a_place_at_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["crates", "docs", "scripts", "bench"].map(|folder| root.join(folder));
    let ends = ["rs", "md", "toml", "txt"];
    let markers = ["<<<<<<< ", ">>>>>>> "];
    let sources = files.iter().flat_map(|folder| ends.iter().flat_map(move |end| sources(folder, end)));
    let unmerged = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| markers.iter().any(|m| line.starts_with(m)))
    };
    let found: Vec<_> = sources.filter(unmerged).collect();
    assert!(found.is_empty(), "unmerged: {found:?}");
}
