//! The tables of parameters in `docs/` are made of the rows that the reader, the check and the schema go by: between
//! `<!-- parameters: NAME -->` and `<!-- end -->`. With `FAIRPACE_BLESS=1` this test writes them.

use fairpace_scenario::channel::Fading;
use fairpace_scenario::loss::Loss;
use fairpace_scenario::param::{Row, Usual};
use fairpace_scenario::part::{About, about};
use fairpace_scenario::queue::Queue;
use fairpace_scenario::{SCENARIO, STREAM};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every table, by the name in its marker.
fn tables() -> BTreeMap<String, String> {
    let mut tables = BTreeMap::new();
    for (family, kinds) in [("queue", about::<Queue>()), ("loss", about::<Loss>()), ("channel", about::<Fading>())] {
        if family == "queue" {
            tables.insert("all of queue".to_owned(), all_of(&kinds));
        }
        for kind in kinds {
            tables.insert(format!("{family} {}", kind.name), of_kind(&kind));
        }
    }
    for table in SCENARIO.about() {
        let at = if table.at.is_empty() { "top" } else { &table.at };
        tables.insert(format!("table {at}"), of_fields(&table.fields));
    }
    tables.insert("streams".to_owned(), of_fields(&STREAM.about()[0].fields));
    for scheme in fairpace_control::schemes() {
        let mut text = "| name | symbol | default | allowed | meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
        for p in scheme.params {
            let symbol = if p.symbol.is_empty() { "–" } else { p.symbol };
            text.push_str(&line(&[&format!("`{}`", p.name), symbol, &format!("`{}`", p.default), &p.range(), p.doc]));
        }
        tables.insert(format!("controller {}", scheme.name), text);
    }
    tables
}

/// One kind's parameters.
fn of_kind(kind: &About) -> String {
    of_fields(&kind.parameters)
}

/// The fields of a table, or the parameters of a kind.
fn of_fields(fields: &[(&Row, Option<String>)]) -> String {
    let symbols = fields.iter().any(|(row, _)| !row.symbol.is_empty());
    let heads = ["field", "symbol", "default", "allowed", "meaning"];
    let cells = |cells: [&str; 5]| {
        let shown = cells.iter().enumerate().filter(|(column, _)| symbols || *column != 1).map(|(_, cell)| *cell);
        line(&shown.collect::<Vec<_>>())
    };
    let mut text = cells(heads) + &cells(["---"; 5]);
    for (row, usual) in fields {
        let symbol = if row.symbol.is_empty() { "–" } else { row.symbol };
        let needed = if matches!(row.usual, Usual::Needed) { "must be given" } else { "–" };
        text.push_str(&cells([
            &format!("`{}`", row.name),
            symbol,
            usual.as_deref().unwrap_or(needed),
            &row.allowed(),
            row.doc,
        ]));
    }
    text
}

/// All kinds of queue, each with its page and its parameters.
fn all_of(kinds: &[About]) -> String {
    let mut text = "| kind | field | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for kind in kinds {
        text.push_str(&line(&[&format!("[`{0}`](links/{0}.md)", kind.name), "", "", kind.doc]));
        for (row, usual) in &kind.parameters {
            let default = usual.as_deref().unwrap_or("–");
            text.push_str(&line(&["", &format!("`{}`", row.name), default, row.doc]));
        }
    }
    text
}

fn line(cells: &[&str]) -> String {
    format!("| {} |\n", cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
}

/// Every page below `docs/`.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

/// The page with its tables written anew; each name that was found goes to `found`.
fn filled(page: &str, tables: &BTreeMap<String, String>, found: &mut Vec<String>) -> String {
    const BEGIN: &str = "<!-- parameters: ";
    const END: &str = "<!-- end -->";
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find(BEGIN) {
        let (before, marked) = rest.split_at(at);
        let (name, after) = marked[BEGIN.len()..].split_once(" -->").expect("a marker ends with ` -->`");
        let table = tables.get(name).unwrap_or_else(|| panic!("nothing has the parameters of `{name}`"));
        let (_, after) = after.split_once(END).unwrap_or_else(|| panic!("`{name}` has no `{END}`"));
        text.push_str(&format!("{before}{BEGIN}{name} -->\n\n{table}\n{END}"));
        found.push(name.to_owned());
        rest = after;
    }
    text + rest
}

#[test]
fn every_table_of_parameters_is_that_of_the_code_and_none_is_missing() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let tables = tables();
    let (mut files, mut found, mut stale) = (Vec::new(), Vec::new(), Vec::new());
    pages(&docs, &mut files);
    for file in files {
        let page = std::fs::read_to_string(&file).unwrap();
        let fresh = filled(&page, &tables, &mut found);
        if fresh != page {
            if std::env::var_os("FAIRPACE_BLESS").is_some() {
                std::fs::write(&file, &fresh).unwrap();
            } else {
                stale.push(file);
            }
        }
    }
    assert!(stale.is_empty(), "run this test with FAIRPACE_BLESS=1; stale are {stale:?}");
    let empty = |text: &str| text.lines().count() <= 2;
    // Schemes of one paper may have one table.
    let shown: Vec<&String> = found.iter().map(|name| &tables[name]).collect();
    let missing: Vec<_> = tables.iter().filter(|(_, text)| !empty(text) && !shown.contains(text)).collect();
    assert!(missing.is_empty(), "no page has {:?}", missing.iter().map(|(name, _)| name).collect::<Vec<_>>());
}

#[test]
fn a_default_that_a_page_has_otherwise_is_found() {
    let tables = BTreeMap::from([("x".to_owned(), "| a | 1 |\n".to_owned())]);
    let page = |n: u32| format!("# X\n\n<!-- parameters: x -->\n\n| a | {n} |\n\n<!-- end -->\n\nmore\n");
    assert_eq!(filled(&page(1), &tables, &mut Vec::new()), page(1));
    assert_eq!(filled(&page(2), &tables, &mut Vec::new()), page(1));
}
