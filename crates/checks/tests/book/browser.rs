//! The site in a real browser: every page opens from disk, with its pictures, and the console stays silent.
//!
//! Runs when `FAIRPACE_BOOK` names the folder that `make book` wrote, as `make soak` does. Needs `chromium`.

use crate::pages::Page;
use fairpace_checks::browser;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the site has the page that the summary calls `target`.
fn in_site(site: &Path, target: &str) -> PathBuf {
    let file = target.strip_prefix("../").map_or_else(|| format!("docs/{target}"), str::to_owned);
    let file =
        file.strip_suffix("README.md").map_or_else(|| file.replace(".md", ".html"), |f| format!("{f}index.html"));
    site.join(file)
}

#[test]
fn every_page_of_the_site_opens_with_its_pictures_and_a_silent_console() {
    let Some(site) = std::env::var_os("FAIRPACE_BOOK").map(PathBuf::from) else {
        eprintln!("skipped: FAIRPACE_BOOK does not name a built book; `make soak` does");
        return;
    };
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let mut pictures = 0;
    for (target, _) in Page::read(Path::new("docs/SUMMARY.md")).links {
        let page = in_site(&site, &target);
        let view = browser::open(&page, &work, &["--dump-dom".into()])
            .expect("`chromium` can be started (Debian: apt-get install chromium)");
        // A picture, style or script that is not there is a line on the console.
        assert!(view.console.is_empty(), "{target}: {:#?}", view.console);
        let source = Page::read(&Path::new("docs").join(&target));
        // mdBook puts each picture there twice, the second time for a look at its full size.
        let shown: BTreeSet<&str> =
            view.out.split("<img src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let wanted: BTreeSet<&String> = source.links.iter().filter(|l| l.1).map(|l| &l.0).collect();
        assert_eq!(shown.len(), wanted.len(), "{target}: {shown:?} instead of {wanted:?}");
        pictures += shown.len();
        assert!(view.out.contains("<h1"), "{target}: no heading");
        // The summary beside the page is made by a script.
        assert!(view.out.matches("class=\"chapter-item").count() > 50, "{target}: no summary beside it");
    }
    assert!(pictures > 10, "only {pictures} pictures in all of the book");
}
