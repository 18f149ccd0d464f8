//! The file of `--pcap` that a run fills while packets move, in whatever thread they do: on disk each second, and why it is not
//! whole is kept for the end.

use crate::error::{Failure, Outcome};
use crate::outputs::{self, Late};
use crate::stats::Lost;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The end of a run's command: another thread writes.
pub(crate) struct Capture {
    /// Of a file that was not there before: taken away again if no packet could have moved.
    new: Option<PathBuf>,
    begun: Arc<AtomicBool>,
    lost: Lost,
}

impl Capture {
    /// Makes the file as [`outputs::create_late`] does.
    ///
    /// # Errors
    /// Those of [`outputs::create_late`].
    pub(crate) fn create(path: &Path, force: bool) -> Outcome<(Capture, Box<dyn Write + Send>)> {
        let is_new = !path.exists();
        let (mut capture, writer) = Capture::of(outputs::create_late(path, force)?, path);
        capture.new = is_new.then(|| path.to_owned());
        Ok((capture, writer))
    }

    /// Of a file that is open already, and stays whatever happens.
    pub(crate) fn of(file: impl Into<Late>, path: &Path) -> (Capture, Box<dyn Write + Send>) {
        let (begun, lost) = (Arc::new(AtomicBool::new(false)), Lost::default());
        let writer = Writer {
            out: Some(BufWriter::new(file.into())),
            path: path.to_owned(),
            begun: Arc::clone(&begun),
            lost: lost.clone(),
        };
        (Capture { new: None, begun, lost }, Box::new(writer))
    }

    /// Nothing more is written: says what could not be.
    ///
    /// # Errors
    /// The first failure to write it.
    pub(crate) fn finish(self) -> Outcome {
        self.lost.outcome()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some(path) = self.new.as_ref().filter(|_| !self.begun.load(Ordering::Relaxed)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The end that is written to.
struct Writer {
    /// None once it is over.
    out: Option<BufWriter<Late>>,
    path: PathBuf,
    begun: Arc<AtomicBool>,
    lost: Lost,
}

impl Writer {
    fn told<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|e| {
            // Who has stopped reading wants no more.
            if e.kind() != io::ErrorKind::BrokenPipe {
                self.lost.tell(|| Failure::file("write", &self.path, e));
            }
        })
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes));
        self.told(written)
    }

    /// The first time when the run has begun, and not before.
    fn flush(&mut self) -> io::Result<()> {
        self.begun.store(true, Ordering::Relaxed);
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        self.told(flushed)
    }
}

impl Drop for Writer {
    /// The head of a run that did not begin is not written.
    fn drop(&mut self) {
        if !self.begun.load(Ordering::Relaxed)
            && let Some(out) = self.out.take()
        {
            let _ = out.into_parts();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_there_from_the_first_flush_on_and_nothing_is_left_of_one_that_did_not_begin() {
        let path = std::env::temp_dir().join(format!("fairpace-capture-{}", std::process::id()));
        let (capture, mut writer) = Capture::create(&path, false).unwrap();
        writer.write_all(b"the head").unwrap();
        drop((writer, capture));
        assert!(!path.exists());
        let (capture, mut writer) = Capture::create(&path, false).unwrap();
        writer.write_all(b"the head").unwrap();
        writer.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"the head", "while the run goes on");
        drop(writer);
        capture.finish().unwrap();
        // One that was there stays as it is where nothing begins, and is replaced where something does.
        let (capture, mut writer) = Capture::create(&path, true).unwrap();
        writer.write_all(b"he").unwrap();
        drop((writer, capture));
        assert_eq!(std::fs::read(&path).unwrap(), b"the head");
        let (capture, mut writer) = Capture::create(&path, true).unwrap();
        writer.write_all(b"he").unwrap();
        writer.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"he");
        drop((writer, capture));
        assert!(path.exists());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let (capture, mut writer) = Capture::create(Path::new("/dev/full"), false).unwrap();
        writer.write_all(b"the head").unwrap();
        writer.flush().unwrap_err();
        let failure = capture.finish().unwrap_err();
        assert_eq!(failure.code, crate::error::code::FAILED);
        let said = failure.to_string();
        assert!(said.contains("cannot write `/dev/full`") && said.contains("hint: the disk is full"), "{said}");
    }
}
