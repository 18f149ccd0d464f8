//! Real-time scheduling of a run's threads, where the system allows it.
//!
//! A path is hardware in other people's networks: it never waits for a processor. As a thread among others it does, for
//! milliseconds, as soon as anybody else on the machine computes. With Linux's first-in-first-out policy it runs when
//! its timer says so. The kernel lets a thread take it whose process has a limit `RLIMIT_RTPRIO` above zero: root may raise
//! that, before it is root of a namespace only; others have what the administrator gives them (`limits.conf(5)`, `rtprio`).
//! No capability is kept for it. The kernel leaves other programs a twentieth of each second
//! (`kernel.sched_rt_runtime_us`).

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use std::sync::OnceLock;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Whose turn comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// The ends of flows that run on our own threads: before everybody else's programs.
    Ends = 1,
    /// The path: before the ends.
    Path = 2,
}

/// The limit that all of them need: with less the ends would come before the path.
const ENOUGH: rlim_t = Priority::Path as rlim_t;

/// The limits, soft and hard, as they were before [`allow`].
static BEFORE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Raises the limit as far as needed and allowed; for as long as this process still has the host's rights.
pub(crate) fn allow() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_RTPRIO) else { return };
    BEFORE.get_or_init(|| (soft, hard));
    if soft < ENOUGH {
        let _ = setrlimit(Resource::RLIMIT_RTPRIO, ENOUGH, hard.max(ENOUGH));
    }
}

/// Makes the limit what it was: for programs of others. Threads keep what they have taken.
pub(crate) fn give_back() {
    if let Some((soft, hard)) = BEFORE.get() {
        let _ = setrlimit(Resource::RLIMIT_RTPRIO, *soft, *hard);
    }
}

impl Priority {
    /// Gives it to this thread; `false`: the system does not allow it, and the thread waits for its turn like any other.
    pub fn take(self) -> bool {
        if getrlimit(Resource::RLIMIT_RTPRIO).is_ok_and(|(soft, _)| soft < ENOUGH) {
            return false;
        }
        let Ok(value) = (self as u8).try_into() else { return false };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(value), policy).is_ok()
    }
}
