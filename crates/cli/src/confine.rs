//! Giving up what a command does not need once its sockets and files are open.

use crate::error::Outcome;
use crate::term::note;
use fairpace_emu::{CallFilter, Kept, drop_privileges, drop_privileges_but};

/// Gives up every capability, for this thread and those that it starts: to be called while there is no other.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub(crate) fn drop_capabilities() -> Outcome {
    Ok(drop_privileges()?)
}

/// As above, but for the right to put options into the headers of IP packets, where the process has it. [`filter_calls`] then refuses raw
/// sockets, for which the same right is enough.
///
/// # Errors
/// As above.
pub(crate) fn keep_ip_options() -> Outcome {
    Ok(drop_privileges_but(Kept::IpOptions)?)
}

/// Binds all threads to the filter, where the system has filters of system calls. A note says where there are none: the packets that are
/// sent and received are the same.
pub(crate) fn filter_calls(filter: CallFilter, quiet: bool) {
    if let Err(e) = filter.apply() {
        note(quiet, &format!("note: {e}; `fairpace doctor` says more"));
    }
}

/// The same for this thread alone: another one writes the results when this one is done.
pub(crate) fn filter_calls_of_thread(filter: CallFilter, quiet: bool) {
    if let Err(e) = filter.apply_to_thread() {
        note(quiet, &format!("note: {e}; `fairpace doctor` says more"));
    }
}
