//! Opening the source of a stream, whatever time that takes.

use crate::error::{Failure, Outcome};
use crate::stop::Stop;
use fairpace_media::{FrameSource, MediaError, PictureWish, SourceSpec};
use fairpace_units::{Duration, RandomStream};
use std::io::ErrorKind;
use std::sync::mpsc::{self, RecvTimeoutError};

/// Opens a source, with that seed of its noise; `None` if Ctrl-C came first. A decoder takes a while to start, and a pipe may never begin: a
/// thread waits for them, and ends with the process.
pub(super) fn open(
    spec: SourceSpec,
    wish: PictureWish,
    seed: u64,
    stop: &Stop,
) -> Outcome<Option<Box<dyn FrameSource>>> {
    let noise = RandomStream::named(seed, "media.model");
    let (give, take) = mpsc::sync_channel(1);
    let opening = std::thread::spawn(move || {
        // Nobody takes it after Ctrl-C.
        let _ = give.send(spec.open(wish, noise));
    });
    while !stop.asked() {
        match take.recv_timeout(Duration::from_millis(20)) {
            Ok(source) => return Ok(Some(source.map_err(unopened)?)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match opening.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => break,
            },
        }
    }
    Ok(None)
}

/// Root may not read every file: its capabilities are gone by then.
fn unopened(error: MediaError) -> Failure {
    let denied = matches!(&error, MediaError::File { source, .. } if source.kind() == ErrorKind::PermissionDenied);
    let failure = Failure::from(error);
    if denied && nix::unistd::geteuid().is_root() {
        return failure
            .hint("`send` reads a file as its user without capabilities: let root read it by its mode, or send `-`");
    }
    failure
}
