//! `--stats FILE|-`: a JSON line each second while `send` or `receive` runs.

use crate::error::{Failure, Outcome};
use crate::outputs;
use crate::term::note;
use fairpace_units::{Duration, Instant};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The lines' distance.
const EACH: Duration = Duration::from_secs(1);

/// Where the lines go, and when the next is due.
pub(crate) struct Stats {
    out: Option<Box<dyn Write + Send>>,
    /// As messages call it.
    name: String,
    next: Instant,
    lost: Lost,
}

/// Whether the lines of a command, in one file or several, could all be written. A session goes on without them.
#[derive(Clone, Default)]
pub(crate) struct Lost(Arc<Mutex<Option<Failure>>>);

impl Lost {
    /// Something could not be written; the first failure counts.
    pub(crate) fn tell(&self, failure: impl FnOnce() -> Failure) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(failure);
    }

    /// # Errors
    /// The first failure to write a line.
    pub(crate) fn outcome(&self) -> Outcome {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

impl Stats {
    /// To a file, which is there only with `force`, or with `-` to standard output; `None`: nowhere.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn open(to: Option<&Path>, force: bool) -> Outcome<Stats> {
        match to {
            None => Ok(Stats::new(None, String::new())),
            Some(_) if Stats::is_stdout(to) => {
                Ok(Stats::new(Some(Box::new(io::stdout())), "standard output".to_owned()))
            }
            Some(path) => Stats::to_file(outputs::create(path, force)?, path),
        }
    }

    /// To a file that is open already.
    ///
    /// # Errors
    /// The system does not say what it is.
    pub(crate) fn to_file(file: File, path: &Path) -> Outcome<Stats> {
        if file.metadata()?.file_type().is_fifo() {
            // A reader that stalls would else stall the session.
            fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
        }
        Ok(Stats::new(Some(Box::new(file)), format!("`{}`", path.display())))
    }

    fn new(out: Option<Box<dyn Write + Send>>, name: String) -> Stats {
        Stats { out, name, next: Instant::ZERO + EACH, lost: Lost::default() }
    }

    /// The same; the fate of the lines is told there.
    pub(crate) fn telling(self, lost: &Lost) -> Stats {
        Stats { lost: lost.clone(), ..self }
    }

    /// Where it is told what became of the lines.
    pub(crate) fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Whether standard output is for the lines: a summary for people goes elsewhere then.
    pub(crate) fn is_stdout(to: Option<&Path>) -> bool {
        to == Some(Path::new("-"))
    }

    /// The clock begins at zero again, as it does with each session.
    pub(crate) fn begin_anew(&mut self) {
        self.next = Instant::ZERO + EACH;
    }

    /// Writes the line that is due. A reader that has gone ends the lines, and nothing else; so does a disk that is full, which
    /// [`Lost`] tells.
    pub(crate) fn sample(&mut self, at: Instant, line: impl FnOnce() -> Value) {
        let Some(out) = self.out.as_mut().filter(|_| at >= self.next) else { return };
        while self.next <= at {
            self.next += EACH;
        }
        // One write per line: a reader never sees half of one. Where a pipe is full because nobody reads, the line is left out.
        let written = out.write_all(format!("{}\n", line()).as_bytes()).and_then(|()| out.flush());
        match written {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => {
                note(false, &format!("note: no more lines to {}: {e}", self.name));
                self.out = None;
                if e.kind() != io::ErrorKind::BrokenPipe {
                    self.lost.tell(|| Failure::io(format!("cannot write all lines of {}: {e}", self.name), &e));
                }
            }
            _ => {}
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
    fn a_reader_of_a_pipe_that_stalls_stalls_nothing_and_misses_lines() {
        let path = std::env::temp_dir().join(format!("fairpace-stats-pipe-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let refused = Stats::open(Some(&path), false).err().unwrap().to_string();
        assert!(refused.contains("nobody reads from the pipe"), "{refused}");
        let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut stats = Stats::open(Some(&path), false).unwrap();
        for second in 1..200 {
            stats.sample(Instant::ZERO + Duration::from_secs(second), || json!({ "text": "x".repeat(1_000) }));
        }
        assert!(stats.out.is_some(), "lines may come again when it reads");
        drop(reader);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_disk_that_is_full_ends_the_lines_and_is_told_once() {
        let mut stats = Stats::open(Some(Path::new("/dev/full")), true).unwrap();
        let lost = stats.lost();
        let mut lines = 0;
        for second in 1..5 {
            stats.sample(Instant::ZERO + Duration::from_secs(second), || {
                lines += 1;
                json!({ "second": second })
            });
        }
        let failure = lost.outcome().unwrap_err().to_string();
        assert!(
            failure.contains("cannot write all lines of `/dev/full`") && failure.contains("disk is full"),
            "{failure}"
        );
        assert!(lines == 1 && lost.outcome().is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error_before_anything_is_sent() {
        assert!(Stats::open(Some(Path::new("/nowhere/x.jsonl")), true).is_err());
        Stats::open(None, false).unwrap().sample(Instant::NEVER, || unreachable!("nobody reads"));
    }
}
