//! Ctrl-C: the first asks for an orderly end, the second ends at once.

use crate::error::{Outcome, code};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first Ctrl-C (or SIGTERM); long work looks at it and hands in what it has.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over the two signals.
    pub(crate) fn install() -> Outcome<Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal finds the flag down and only raises it; the
            // second finds it up and ends the process.
            flag::register_conditional_shutdown(signal, i32::from(code::INTERRUPTED), Arc::clone(&stop))?;
            flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Stop(stop))
    }

    /// Whether somebody has asked for the end.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for the crates that watch it.
    pub(crate) fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}
