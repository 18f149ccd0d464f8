//! Real sockets through the command: listeners on a port that is free, and senders to them.

use super::program::{command, text};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Starts a listener and waits for the line that names its port; a relay waits until nobody else runs in real time.
pub(crate) fn listening(args: &[&str]) -> (Child, u16) {
    let (child, port, _) = listening_with_messages(args);
    (child, port)
}

/// As [`listening`], with all that the listener says after that line, once it has ended.
pub(crate) fn listening_with_messages(args: &[&str]) -> (Child, u16, JoinHandle<String>) {
    let until = Instant::now() + Duration::from_secs(300);
    let (child, lines, line) = loop {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        if !line.contains("another run in real time is under way") || Instant::now() > until {
            break (child, lines, line);
        }
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(200));
    };
    // "listening on [::]:40123; …" or "relaying 0.0.0.0:40123 to …"
    let word = line
        .split([' ', ';'])
        .find(|w| w.contains(':') && w.ends_with(|c: char| c.is_ascii_digit()))
        .unwrap_or_else(|| panic!("{line}"));
    let port = word.rsplit(':').next().unwrap().parse().unwrap();
    // Somebody must go on reading, or the child would stop at a full pipe.
    let said = std::thread::spawn(move || lines.map_while(Result::ok).map(|line| line + "\n").collect());
    (child, port, said)
}

/// The object that a command prints under `--json`.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stdout)))
}
