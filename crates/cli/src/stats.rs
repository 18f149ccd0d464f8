//! `--stats FILE|-`: a JSON line each second while `send` or `receive` runs.

use crate::error::Outcome;
use crate::outputs;
use crate::term::note;
use fairpace_units::{Duration, Instant};
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

/// The lines' distance.
const EACH: Duration = Duration::from_secs(1);

/// Where the lines go, and when the next is due.
pub(crate) struct Stats {
    out: Option<Box<dyn Write>>,
    name: String,
    next: Instant,
}

impl Stats {
    /// To a file, which is there only with `force`, or with `-` to standard output; `None`: nowhere.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn open(to: Option<&Path>, force: bool) -> Outcome<Stats> {
        let out: Option<Box<dyn Write>> = match to {
            None => None,
            Some(_) if Stats::is_stdout(to) => Some(Box::new(io::stdout())),
            Some(path) => Some(Box::new(outputs::create(path, force)?)),
        };
        let name = to.map_or_else(String::new, |path| path.display().to_string());
        Ok(Stats { out, name, next: Instant::ZERO + EACH })
    }

    /// Whether standard output is for the lines: a summary for people goes elsewhere then.
    pub(crate) fn is_stdout(to: Option<&Path>) -> bool {
        to == Some(Path::new("-"))
    }

    /// The clock begins at zero again, as it does with each session.
    pub(crate) fn begin_anew(&mut self) {
        self.next = Instant::ZERO + EACH;
    }

    /// Writes the line that is due. A reader that has gone ends the lines, and nothing else.
    pub(crate) fn sample(&mut self, at: Instant, line: impl FnOnce() -> Value) {
        let Some(out) = self.out.as_mut().filter(|_| at >= self.next) else { return };
        while self.next <= at {
            self.next += EACH;
        }
        // One write per line: a reader never sees half of one.
        let written = out.write_all(format!("{}\n", line()).as_bytes()).and_then(|()| out.flush());
        if let Err(e) = written {
            note(false, &format!("note: no more lines to `{}`: {e}", self.name));
            self.out = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_written_each_second_and_after_a_stall_one_for_all_that_were_missed() {
        let path = std::env::temp_dir().join(format!("fairpace-stats-{}.jsonl", std::process::id()));
        let mut stats = Stats::open(Some(&path), false).unwrap();
        for ms in (0..5_000).step_by(100).filter(|ms| !(2_050..4_000).contains(ms)) {
            stats.sample(Instant::from_nanos(ms * 1_000_000), || json!({ "ms": ms }));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "{\"ms\":1000}\n{\"ms\":2000}\n{\"ms\":4000}\n");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error_before_anything_is_sent() {
        assert!(Stats::open(Some(Path::new("/nowhere/x.jsonl")), true).is_err());
        Stats::open(None, false).unwrap().sample(Instant::NEVER, || unreachable!("nobody reads"));
    }
}
