//! A page in a real browser, for the tests of every crate that writes pages. Needs `chromium` (Debian package of that
//! name).

#![allow(clippy::disallowed_methods, reason = "waits for another process")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The browser's view of a page.
pub struct View {
    /// The browser's standard output: with `--dump-dom` the document as its scripts left it.
    pub out: String,
    /// The lines on the console: the page's own, and the browser's about the page.
    pub console: Vec<String>,
}

/// Opens the file `page` with the arguments `extra`; the browser's own files go to `work`, made anew. `None` without a
/// browser on this machine.
///
/// # Panics
///
/// When the browser does not end within a minute, or `work` cannot be written.
pub fn open(page: &Path, work: &Path, extra: &[String]) -> Option<View> {
    let _ = std::fs::remove_dir_all(work);
    std::fs::create_dir_all(work).unwrap();
    let (out, err) = (work.join("out"), work.join("err"));
    let mut child = Command::new("chromium")
        .args("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --enable-logging=stderr --v=0 --virtual-time-budget=3000".split(' '))
        .arg(format!("--user-data-dir={}", work.join("profile").display()))
        .args(extra)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap())
        .spawn()
        .ok()?;
    // A browser that hangs must not hang the test.
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            let log = String::from_utf8_lossy(&std::fs::read(err).unwrap()).into_owned();
            return Some(View { out: std::fs::read_to_string(out).unwrap(), console: console(&log) });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    let _ = child.wait();
    panic!("the browser did not end within a minute on {}", page.display());
}

/// The lines of the browser's `log` about a console. The browser has pages of its own, which it may open beside the one
/// that was asked for (a new tab) and which complain when the machine is busy: those are none of ours.
fn console(log: &str) -> Vec<String> {
    log.lines()
        .filter(|line| line.contains("CONSOLE") && !line.contains(", source: chrome://"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_page_of_the_browser_itself_is_none_of_ours() {
    let log = "[1:1:INFO:CONSOLE:574] \"Slow network is detected.\", source: chrome://resources/a.js (574)\n\
               [1:1:INFO:CONSOLE:3] \"Uncaught ReferenceError: x is not defined\", source: file:///report.html (3)\n\
               [1:1:INFO:CONSOLE:0] \"of two lines,\n\
               the source on the second\", source:  (0)\n\
               [1:1:WARNING:dbus/bus.cc:405] Failed to connect to the bus\n";
    let seen = console(log);
    assert_eq!(seen.len(), 2, "{seen:#?}");
    assert!(seen[0].contains("ReferenceError") && seen[1].contains("of two lines"), "{seen:#?}");
}
