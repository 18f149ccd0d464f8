//! The points of studies on disk: one line of JSON each, appended when the point is known.
//!
//! A line has the code's version, the digest of scenario, world and measure, the seed, and the measurement. Nothing is
//! ever removed or rewritten. A line that was torn (the program was killed, the disk was full) stays where it is and
//! counts for nothing; the next one begins on a line of its own. Points of another version of the code stay, too, and are
//! not used. The file is locked while it is open: a second process would measure the same points again.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Why points cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("the points in `{}` cannot be {action}: {error}", path.display())]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// `read` or `written`.
    pub action: &'static str,
    /// As the system says it.
    pub error: io::Error,
}

/// A line.
#[derive(Serialize)]
struct PointLine<'a, R> {
    version: &'a str,
    digest: &'a str,
    /// For people: the digest has it.
    measure: &'a str,
    seed: u64,
    point: R,
}

/// A line as read, its point still text.
#[derive(Deserialize)]
struct StoredPoint {
    version: String,
    digest: String,
    seed: u64,
    point: Box<serde_json::value::RawValue>,
}

/// The end of the file.
#[derive(Debug)]
struct Tail {
    file: File,
    /// The last write failed, and may have left a part of a line.
    torn: bool,
}

/// Reads, appends and makes; follows no link, which may lead out of the folder, and waits for nobody at the other end of a pipe. The file is
/// its user's alone: who can read it can lock it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, OWN);
    let file = options.open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file, but a device or a pipe"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Made by an earlier version. Another user's file is as that one wants it.
        if about.permissions().mode() & 0o777 != OWN {
            let _ = file.set_permissions(std::fs::Permissions::from_mode(OWN));
        }
    }
    Ok(file)
}

#[cfg(unix)]
const OWN: u32 = 0o600;

/// A file of points.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    version: String,
    file: Mutex<Tail>,
    /// Points of this version that nobody has asked for yet.
    kept: BTreeMap<(String, u64), Box<serde_json::value::RawValue>>,
    taken: usize,
    of_other_versions: usize,
    torn: usize,
}

impl Store {
    /// Opens the file, or makes it. `version` is that of the code: points of another one are not used.
    ///
    /// # Errors
    /// The file can neither be read nor made, or another process has it open.
    pub fn open(path: &Path, version: &str) -> Result<Store, StoreError> {
        let failed = |action| move |error| StoreError { path: path.to_owned(), action, error };
        let mut file = open(path).map_err(failed("written"))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let busy = io::Error::new(io::ErrorKind::ResourceBusy, "another process is at work on them");
            return Err(failed("written")(busy));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed("read"))?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(failed("written"))?;
        }
        let mut store = Store {
            path: path.to_owned(),
            version: version.to_owned(),
            file: Mutex::new(Tail { file, torn: false }),
            kept: BTreeMap::new(),
            taken: 0,
            of_other_versions: 0,
            torn: 0,
        };
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<StoredPoint>(line) {
                Ok(kept) if kept.version == version => {
                    store.kept.insert((kept.digest, kept.seed), kept.point);
                }
                Ok(_) => store.of_other_versions += 1,
                Err(_) => store.torn += 1,
            }
        }
        Ok(store)
    }

    /// The same points again, of which each can be taken once more.
    ///
    /// # Errors
    /// The system gives no further handle of the file.
    pub fn copy(&self) -> Result<Store, StoreError> {
        let tail = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = tail.file.try_clone();
        let file = file.map_err(|error| StoreError { path: self.path.clone(), action: "read", error })?;
        Ok(Store {
            path: self.path.clone(),
            version: self.version.clone(),
            file: Mutex::new(Tail { file, torn: tail.torn }),
            kept: self.kept.clone(),
            ..*self
        })
    }

    /// Forgets all points, on disk too.
    pub(crate) fn clear(&mut self) -> Result<(), StoreError> {
        let tail = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        tail.file.set_len(0).map_err(|error| StoreError { path: self.path.clone(), action: "written", error })?;
        tail.torn = false;
        self.kept.clear();
        (self.taken, self.of_other_versions, self.torn) = (0, 0, 0);
        Ok(())
    }

    /// The point, if an earlier session kept it; given once.
    pub(crate) fn take<R: DeserializeOwned>(&mut self, digest: &str, seed: u64) -> Option<R> {
        let text = self.kept.remove(&(digest.to_owned(), seed))?;
        let point = serde_json::from_str(text.get()).ok();
        match &point {
            Some(_) => self.taken += 1,
            None => self.torn += 1,
        }
        point
    }

    /// Whether an earlier session kept the point, and nobody has taken it.
    pub fn has(&self, digest: &str, seed: u64) -> bool {
        self.kept.contains_key(&(digest.to_owned(), seed))
    }

    /// Keeps a point: one write of a whole line.
    pub(crate) fn append<R: Serialize>(
        &self,
        digest: &str,
        measure: &str,
        seed: u64,
        point: &R,
    ) -> Result<(), StoreError> {
        let failed = |error| StoreError { path: self.path.clone(), action: "written", error };
        let line = PointLine { version: &self.version, digest, measure, seed, point };
        let line = serde_json::to_string(&line).map_err(|e| failed(e.into()))?;
        let mut tail = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = if tail.torn { "\n" } else { "" };
        tail.torn = true;
        tail.file.write_all(format!("{begin}{line}\n").as_bytes()).map_err(failed)?;
        tail.torn = false;
        Ok(())
    }

    /// An account of the points that the file had when it was opened; none if it had none.
    pub fn account(&self) -> Option<String> {
        let counts = [
            (self.taken, "taken from an earlier run"),
            (self.kept.len(), "of other scenarios not asked for"),
            (self.of_other_versions, "of another version of the program not used"),
            (self.torn, "torn and not readable"),
        ];
        let words: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}")).collect();
        (!words.is_empty()).then(|| format!("points in `{}`: {}", self.path.display(), words.join(", ")))
    }
}
