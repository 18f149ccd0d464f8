//! Independent jobs on all cores, results in the order of the jobs whatever the thread count.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The contacts of long work with its caller: a progress callback and a stop flag.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Called as work gets done, from any thread: done, total, what was just finished.
    pub progress: &'a (dyn Fn(usize, usize, &str) + Sync),
    /// Set it (from Ctrl-C, say) and the work ends soon, with what it has.
    pub stop: &'a AtomicBool,
    /// Threads to use; 0 is one per core.
    pub threads: usize,
}

pub(crate) static NEVER_STOP: AtomicBool = AtomicBool::new(false);

impl Default for Hooks<'_> {
    /// Silent, unstoppable, all cores.
    fn default() -> Self {
        Hooks { progress: &|_, _, _| (), stop: &NEVER_STOP, threads: 0 }
    }
}

impl core::fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hooks").field("threads", &self.threads).field("stopped", &self.stopped()).finish()
    }
}

impl Hooks<'_> {
    /// Whether somebody asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn worker_count(&self, jobs: usize) -> usize {
        let cores = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        cores.min(jobs).max(1)
    }
}

/// Runs `work` on every job; the answer's n-th place belongs to the n-th job. A place is None if
/// the stop flag was set before its job began. `label` names a job for the progress callback.
///
/// # Errors
/// The first in the order of the jobs. After an error no new job begins.
pub fn map<J: Sync, R: Send, E: Send>(
    jobs: &[J],
    hooks: &Hooks<'_>,
    label: impl Fn(&J) -> String + Sync,
    work: impl Fn(&J) -> Result<R, E> + Sync,
) -> Result<Vec<Option<R>>, E> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<R, E>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let worker = || {
            while !hooks.stopped() && !failed.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let (Some(job), Some(place)) = (jobs.get(index), results.get(index)) else { break };
                let result = work(job);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                if let Ok(mut place) = place.lock() {
                    *place = Some(result);
                }
                let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
                (hooks.progress)(finished, jobs.len(), &label(job));
            }
        };
        for _ in 1..hooks.worker_count(jobs.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    results.into_iter().map(|place| place.into_inner().ok().flatten().transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_whatever_the_thread_count() {
        let jobs: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7] {
            let hooks = Hooks { threads, ..Hooks::default() };
            let squares = map(&jobs, &hooks, |j| j.to_string(), |j| Ok::<_, ()>(j * j));
            assert_eq!(squares.unwrap(), jobs.iter().map(|j| Some(j * j)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn after_the_stop_flag_no_new_job_begins_and_what_is_done_is_kept() {
        let stop = AtomicBool::new(false);
        let hooks = Hooks { stop: &stop, threads: 1, ..Hooks::default() };
        let answers = map(
            &[1, 2, 3, 4],
            &hooks,
            |_| String::new(),
            |j| {
                if *j == 2 {
                    stop.store(true, Ordering::Relaxed);
                }
                Ok::<_, ()>(*j)
            },
        );
        assert_eq!(answers.unwrap(), [Some(1), Some(2), None, None]);
    }

    #[test]
    fn after_an_error_no_new_job_begins() {
        let begun = AtomicUsize::new(0);
        let work = |j: &u32| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *j == 2 { Err("the disk is full") } else { Ok(*j) }
        };
        let hooks = Hooks { threads: 1, ..Hooks::default() };
        assert_eq!(map(&[1, 2, 3, 4], &hooks, |_| String::new(), work), Err("the disk is full"));
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn progress_counts_every_job_once() {
        let seen = Mutex::new(Vec::new());
        let progress =
            |done: usize, total: usize, label: &str| seen.lock().unwrap().push((done, total, label.to_owned()));
        let hooks = Hooks { progress: &progress, threads: 1, ..Hooks::default() };
        map(&["a", "b"], &hooks, |j| (*j).to_owned(), |_| Ok::<_, ()>(())).unwrap();
        assert_eq!(*seen.lock().unwrap(), [(1, 2, "a".to_owned()), (2, 2, "b".to_owned())]);
    }
}
