//! The site in a real browser: every page opens from disk, with its pictures, and the console stays silent.
//!
//! Runs when `FAIRPACE_BOOK` names the folder that `make book` wrote, as `make soak` does. Needs `chromium`.

#![allow(clippy::disallowed_methods, reason = "the test waits for another process")]

use crate::pages::Page;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The browser's view of `page`: the document as its scripts left it, and the lines on the console.
fn open(page: &Path, work: &Path) -> (String, Vec<String>) {
    let (out, err) = (work.join("out"), work.join("err"));
    let mut child = Command::new("chromium")
        .args("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --enable-logging=stderr --v=0 --virtual-time-budget=3000 --dump-dom".split(' '))
        .arg(format!("--user-data-dir={}", work.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap())
        .spawn()
        .expect("`chromium` can be started (Debian: apt-get install chromium)");
    // A browser that hangs must not hang the test.
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            let log = String::from_utf8_lossy(&std::fs::read(err).unwrap()).into_owned();
            let console = log.lines().filter(|l| l.contains("CONSOLE")).map(str::to_owned).collect();
            return (std::fs::read_to_string(out).unwrap(), console);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    let _ = child.wait();
    panic!("the browser did not end within a minute on {}", page.display());
}

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
    std::fs::create_dir_all(&work).unwrap();
    let mut pictures = 0;
    for (target, _) in Page::read(Path::new("docs/SUMMARY.md")).links {
        let page = in_site(&site, &target);
        let (dom, console) = open(&page, &work);
        // A picture, style or script that is not there is a line on the console.
        assert!(console.is_empty(), "{target}: {console:#?}");
        let source = Page::read(&Path::new("docs").join(&target));
        // mdBook puts each picture there twice, the second time for a look at its full size.
        let shown: BTreeSet<&str> =
            dom.split("<img src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let wanted: BTreeSet<&String> = source.links.iter().filter(|l| l.1).map(|l| &l.0).collect();
        assert_eq!(shown.len(), wanted.len(), "{target}: {shown:?} instead of {wanted:?}");
        pictures += shown.len();
        assert!(dom.contains("<h1"), "{target}: no heading");
        // The summary beside the page is made by a script.
        assert!(dom.matches("class=\"chapter-item").count() > 50, "{target}: no summary beside it");
    }
    assert!(pictures > 10, "only {pictures} pictures in all of the book");
}
