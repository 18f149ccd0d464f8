//! The beginning that both tests in namespaces share.

use fairpace_emu::{EmuError, Sandbox};

/// A sandbox; `None`, with the reason, where the system gives none.
pub(crate) fn sandbox() -> Option<Sandbox> {
    match Sandbox::enter() {
        Ok(sandbox) => Some(sandbox),
        Err(EmuError::NoNamespaces { what, source }) => {
            println!("skipped: this system gives no namespaces: {what}: {source}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}
