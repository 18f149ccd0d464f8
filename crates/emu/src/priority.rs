//! Real-time priority for the thread that moves the packets, where the system allows it.
//!
//! A path is hardware in other people's networks: it never waits for a processor. As a thread among others it does, for
//! milliseconds, as soon as anybody else on the machine computes. With Linux's first-in-first-out policy [sched(7)] it runs when
//! its timer says so. The kernel leaves other programs a twentieth of each second (`kernel.sched_rt_runtime_us`).
//!
//! A thread may take the policy with `CAP_SYS_NICE` over the host, or under a limit `RLIMIT_RTPRIO` above zero. Inside the
//! sandbox no thread has `CAP_SYS_NICE`. So the entering thread first takes `SCHED_FIFO`, spawns a helper that inherits
//! it, then drops it. The helper has no other privilege, and later spawns the real-time threads. Programs never have the
//! policy.
#![allow(unsafe_code)] // sched_setscheduler(2), which nix has not

use crate::EmuError;
use crate::privileges::drop_privileges;
use nix::libc::{SCHED_FIFO, SCHED_OTHER, c_int, sched_getscheduler, sched_param, sched_setscheduler};
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Above the normal programs, below whatever of the system has real-time priority.
const LEAST: c_int = 1;

type Job = Box<dyn FnOnce() + Send>;

/// The thread that starts others, if there may be one.
static STARTER: OnceLock<Sender<Job>> = OnceLock::new();

/// Sets the policy of this thread.
fn set(policy: c_int, priority: c_int) -> bool {
    let param = sched_param { sched_priority: priority };
    // SAFETY: `param` lives during the call, which only reads it; 0 is the calling thread.
    unsafe { sched_setscheduler(0, policy, &raw const param) == 0 }
}

fn policy() -> c_int {
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { sched_getscheduler(0) }
}

/// Whether this thread has the priority.
pub(crate) fn is_first() -> bool {
    policy() == SCHED_FIFO
}

/// Runs `enter`, in which this thread, the only one, leaves the host's rights behind, and starts the starter.
pub(crate) fn across<R>(enter: impl FnOnce() -> Result<R, EmuError>) -> Result<R, EmuError> {
    // A program that somebody gave another policy keeps it.
    if policy() != SCHED_OTHER || !set(SCHED_FIFO, LEAST) {
        return enter();
    }
    let entered = enter().and_then(|entered| start().map(|()| entered));
    // Always allowed.
    set(SCHED_OTHER, 0);
    entered
}

fn start() -> Result<(), EmuError> {
    let (sender, jobs) = channel::<Job>();
    let (ready, is_ready) = channel();
    let thread = Builder::new().name("starter".to_owned()).spawn(move || {
        let dropped = drop_privileges();
        let go_on = dropped.is_ok();
        let _ = ready.send(dropped);
        if go_on {
            jobs.into_iter().for_each(|job| job());
        }
    });
    thread.map_err(|e| EmuError::io("start a thread", e))?;
    is_ready.recv().map_err(|_| EmuError::io("start a thread", ended()))??;
    // A process enters one sandbox.
    let _ = STARTER.set(sender);
    Ok(())
}

fn ended() -> io::Error {
    io::Error::other("the thread that starts others has ended")
}

/// Starts a thread that comes before those of other programs, where the system allows it; else like any other.
///
/// # Errors
/// There is no thread to be had.
pub fn spawn_first<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    let builder = Builder::new().name(name.to_owned());
    let Some(starter) = STARTER.get() else { return builder.spawn(work) };
    let (done, started) = channel();
    let job = move || {
        // Whoever asked waits for it.
        let _ = done.send(builder.spawn(work));
    };
    starter.send(Box::new(job)).map_err(|_| ended())?;
    started.recv().map_err(|_| ended())?
}
