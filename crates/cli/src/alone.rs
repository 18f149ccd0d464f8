//! The machine for a run in real time.

use crate::error::Outcome;
use crate::term::note;
use fairpace_emu::RealTimeLock;

/// Takes the lock of runs in real time. A run of another user is told of and not waited for.
///
/// # Errors
/// A run of this user's, or of root's, is under way.
pub(crate) fn take(quiet: bool) -> Outcome<RealTimeLock> {
    let lock = RealTimeLock::acquire()?;
    if let Some(holder) = lock.beside() {
        note(
            quiet,
            &format!("note: another user's run in real time is under way{holder}: each may make the other late"),
        );
    }
    Ok(lock)
}
