//! Links, pictures and the summary.

use crate::pages::{Page, all, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// `path` without `.` and `..`; `None` if it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => normal.pop().then_some(())?,
            part => normal.push(part),
        }
    }
    Some(normal)
}

/// The file that `target`, a link on `page`, means, and the anchor in it; `None` for a link to another site.
fn resolve(page: &Page, target: &str) -> Option<Result<(PathBuf, Option<String>), String>> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a.to_owned())));
    let path = if file.is_empty() {
        Some(page.path.clone())
    } else {
        normal(&page.path.parent().expect("a file has a folder").join(file))
    };
    Some(path.map(|p| (p, anchor)).ok_or_else(|| format!("{}: {target} leaves the repository", page.path.display())))
}

#[test]
fn every_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let pages = all();
    let mut dead = vec![];
    let mut checked = 0;
    for page in &pages {
        for (target, _) in &page.links {
            let Some(resolved) = resolve(page, target) else { continue };
            checked += 1;
            let (file, anchor) = match resolved {
                Ok(found) => found,
                Err(why) => {
                    dead.push(why);
                    continue;
                }
            };
            let at = page.path.display();
            if !root().join(&file).is_file() {
                dead.push(format!("{at}: {target}: no such file (a link to a folder names its README.md)"));
            } else if let Some(anchor) = anchor {
                match pages.iter().find(|p| p.path == file) {
                    Some(page) if page.anchors.contains(&anchor) => {}
                    Some(_) => dead.push(format!("{at}: {target}: no such heading")),
                    None => dead.push(format!("{at}: {target}: not a page, so it has no headings")),
                }
            }
        }
    }
    assert!(dead.is_empty(), "{} dead links:\n{}", dead.len(), dead.join("\n"));
    assert!(checked > 200, "only {checked} links found: the reader of pages is broken");
}

#[test]
fn every_file_that_a_page_names_in_backticks_is_there() {
    let mut gone = vec![];
    let mut checked = 0;
    // The changelog tells of files as they were.
    for page in all().iter().filter(|p| !p.path.ends_with("CHANGELOG.md")) {
        for name in &page.code {
            let ours = ["crates/", "docs/", "scenarios/", "scripts/", "bench/", "packages/"];
            // `NAME.rs`, `dama-*.txt` and `x.{toml,md}` stand for many.
            let many = |c: char| c.is_whitespace() || "*{<…".contains(c);
            let stands_for_many = name.contains(many) || ["NAME", "NUMBER", "PAPER"].iter().any(|w| name.contains(w));
            if stands_for_many || !ours.iter().any(|folder| name.starts_with(folder)) {
                continue;
            }
            checked += 1;
            if !root().join(name).exists() {
                gone.push(format!("{}: `{name}`", page.path.display()));
            }
        }
    }
    assert!(gone.is_empty(), "named, and not there:\n{}", gone.join("\n"));
    assert!(checked > 100, "only {checked} names found: the reader of pages is broken");
}

#[test]
fn every_picture_of_the_book_is_shown_on_a_page() {
    let shown: BTreeSet<PathBuf> = all()
        .iter()
        .flat_map(|page| page.links.iter().filter(|l| l.1).map(|l| resolve(page, &l.0)).collect::<Vec<_>>())
        .filter_map(|found| Some(found?.ok()?.0))
        .collect();
    let there: BTreeSet<PathBuf> = std::fs::read_dir(root().join("docs/images"))
        .unwrap()
        .map(|entry| Path::new("docs/images").join(entry.unwrap().file_name()))
        .collect();
    let unseen: Vec<_> = there.difference(&shown).collect();
    assert!(unseen.is_empty(), "no page shows {unseen:?}");
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = Page::read(Path::new("docs/SUMMARY.md"));
    let mut listed = BTreeSet::new();
    for (target, _) in &summary.links {
        let (file, _) = resolve(&summary, target).expect("the summary lists pages").expect("of this repository");
        assert!(listed.insert(file), "docs/SUMMARY.md lists {target} twice");
    }
    let pages: BTreeSet<PathBuf> = all().into_iter().map(|p| p.path).filter(|p| *p != summary.path).collect();
    // `scripts/book` adds the page of a controller that has no line.
    let needs_a_line = |page: &PathBuf| page.parent() != Some(Path::new("docs/controllers"));
    let missing: Vec<_> = pages.difference(&listed).filter(|page| needs_a_line(page)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
    let gone: Vec<_> = listed.difference(&pages).collect();
    assert!(gone.is_empty(), "docs/SUMMARY.md lists {gone:?}, which are not there");
}
