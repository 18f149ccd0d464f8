//! One run in real time at a time, among tests too.

use std::process::Output;
use std::time::{Duration, Instant};

/// The exit code of a run while another has the machine.
pub(crate) const BUSY: i32 = 9;

/// Runs it, and again while another run in real time, of another test or another user, has the machine.
pub(crate) fn wait_for(mut run: impl FnMut() -> Output) -> Output {
    let until = Instant::now() + Duration::from_secs(300);
    loop {
        let output = run();
        if output.status.code() != Some(BUSY) || Instant::now() > until {
            return output;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
