//! Giving up what a command does not need once its sockets and files are open.

use crate::error::Outcome;
use crate::term::note;
use fairpace_emu::{CallFilter, drop_privileges};

/// Gives up every capability, for this thread and those that it starts: to be called while there is no other.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub(crate) fn drop_capabilities() -> Outcome {
    Ok(drop_privileges()?)
}

/// Binds all threads to the filter, where the system has filters of system calls. A note says where there are none: the packets that are
/// sent and received are the same.
pub(crate) fn filter_calls(filter: CallFilter, quiet: bool) {
    if let Err(e) = filter.apply() {
        note(quiet, &format!("note: {e}; `fairpace doctor` says more"));
    }
}
