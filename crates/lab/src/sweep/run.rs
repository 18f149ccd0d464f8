//! The executor of this machine: as many tasks beside each other as there are cores, each batch on disk when it is done.
//!
//! Some threads work, others write: while the disk flushes one batch the next is under way. A batch waits for a writer in the
//! hands of the thread that made it, so that a kill loses little.

use super::error::SweepError;
use super::progress::Sweep;
use super::store::SweepStore;
use super::task::{Task, simulated};
use crate::pool::Hooks;
use crate::simulate::RunError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The performer of a task.
#[derive(Clone, Copy)]
pub enum Executor<'a> {
    /// The simulator, in this process.
    Sim,
    /// A function from the task to the bytes of its batch, called from several threads. An error ends the sweep: a batch that says
    /// what failed is no error.
    Each(&'a (dyn Fn(&Task) -> Result<Vec<u8>, SweepError> + Sync)),
}

impl core::fmt::Debug for Executor<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Executor::Sim => "Sim",
            Executor::Each(_) => "Each",
        })
    }
}

/// Batches that are flushed to disk beside each other: the file system joins what it has to write, and a disk that takes a millisecond or two
/// for one takes hardly longer for four.
const WRITERS: usize = 4;
/// A thread that has nothing to do looks at the stop flag this often.
const LOOK_UP: Duration = Duration::from_millis(100);

/// A batch that is to be written.
struct Finished {
    point: String,
    first: u64,
    count: u32,
    label: String,
    bytes: Vec<u8>,
}

/// The parts that threads share.
struct Shared<'s> {
    sweep: Mutex<&'s mut Sweep>,
    /// A batch has come in: there may be a task.
    news: Condvar,
    /// The first error.
    error: Mutex<Option<SweepError>>,
    broken: AtomicBool,
    written: AtomicUsize,
}

impl<'s> Shared<'s> {
    fn sweep(&self) -> MutexGuard<'_, &'s mut Sweep> {
        self.sweep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: SweepError) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.broken.store(true, Ordering::Relaxed);
        self.news.notify_all();
    }
}

/// Runs what is left of the sweep's share. Each batch goes to the store, if there is one, before progress is reported: done, total
/// as far as it is known, the point.
///
/// # Errors
/// The stop flag was set ([`RunError::Interrupted`]), a batch cannot be kept, or a task cannot be performed at all. Batches that are done
/// stay.
pub fn run(
    sweep: &mut Sweep,
    store: Option<&SweepStore>,
    executor: Executor<'_>,
    hooks: &Hooks<'_>,
) -> Result<(), SweepError> {
    let (before, left) = sweep.counts();
    let workers = hooks.worker_count(left.saturating_sub(before).max(1));
    let shared = Shared {
        sweep: Mutex::new(sweep),
        news: Condvar::new(),
        error: Mutex::new(None),
        broken: AtomicBool::new(false),
        written: AtomicUsize::new(before),
    };
    let (send, receive) = sync_channel(0);
    let receive = Mutex::new(receive);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| write_all(&shared, store, &receive, hooks));
        }
        for _ in 0..workers {
            let send = send.clone();
            let shared = &shared;
            scope.spawn(move || work(shared, executor, &send, hooks));
        }
        // Writers end when the last worker has.
        drop(send);
    });
    let error = shared.error.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(error) => Err(error),
        None if hooks.stopped() && !sweep.is_share_complete() => Err(RunError::Interrupted.into()),
        None => Ok(()),
    }
}

fn work(shared: &Shared<'_>, executor: Executor<'_>, send: &SyncSender<Finished>, hooks: &Hooks<'_>) {
    loop {
        let mut sweep = shared.sweep();
        let id = loop {
            if hooks.stopped() || shared.broken.load(Ordering::Relaxed) {
                return;
            }
            if let Some(id) = sweep.ready() {
                break id;
            }
            if sweep.open() == 0 {
                shared.news.notify_all();
                return;
            }
            sweep = shared.news.wait_timeout(sweep, LOOK_UP).unwrap_or_else(PoisonError::into_inner).0;
        };
        let plan = sweep.plan_shared();
        drop(sweep);
        let made = plan.scenario(id.point).and_then(|scenario| match executor {
            Executor::Sim => {
                let task = plan.bare_task(&id);
                let batch = task.perform_on(&scenario, |s, seed| simulated(s, seed, hooks))?;
                Ok((batch.to_bytes(), batch))
            }
            Executor::Each(perform) => {
                let bytes = perform(&plan.task_of(&id, &scenario))?;
                let batch = super::task::Batch::from_bytes(&bytes)?;
                Ok((bytes, batch))
            }
        });
        match made {
            Ok((bytes, batch)) => {
                let label = plan.label(id.point);
                let finished =
                    Finished { point: batch.point.clone(), first: batch.first, count: batch.count, label, bytes };
                let is_it = plan.points()[id.point].id == batch.point && id.count == batch.count;
                if !(is_it && shared.sweep().take_batch(batch)) {
                    shared.sweep().give_back(&id);
                    return shared
                        .fail(SweepError::Task(format!("{}: the batch that came is another task's", finished.label)));
                }
                shared.news.notify_all();
                if send.send(finished).is_err() {
                    return;
                }
            }
            Err(SweepError::Run(RunError::Interrupted)) => {
                shared.sweep().give_back(&id);
                return;
            }
            Err(error) => {
                shared.sweep().give_back(&id);
                return shared.fail(error);
            }
        }
    }
}

fn write_all(shared: &Shared<'_>, store: Option<&SweepStore>, receive: &Mutex<Receiver<Finished>>, hooks: &Hooks<'_>) {
    loop {
        let next = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(finished) = next else { return };
        let kept =
            store.map_or(Ok(()), |s| s.keep_as(&finished.point, finished.first, finished.count, &finished.bytes));
        match kept {
            Ok(()) => {
                let done = shared.written.fetch_add(1, Ordering::Relaxed) + 1;
                let (_, total) = shared.sweep().counts();
                (hooks.progress)(done, total.max(done), &finished.label);
            }
            // The others that are waiting are not written either; they are run again.
            Err(error) => shared.fail(error.into()),
        }
    }
}
