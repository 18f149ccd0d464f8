//! The only place of Fairpace that reads a clock.
//!
//! Control runs on `CLOCK_BOOTTIME`: a stepped wall clock changes nothing, and time goes on while the machine sleeps, so that no
//! consent outlives a night in a bag. An emulated network runs on `CLOCK_MONOTONIC`, which stands still then: its traffic sleeps too, and
//! need not be made up for. The wall clock is read for two things: the NTP stamp of an RTCP sender report, and to place the kernel's receive
//! stamps (which are wall time) on the run's axis.

use fairpace_units::{Duration, Instant};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// The kernel's stamp may be this much older than its reading before we stop believing it: then
/// the wall clock was stepped in between, or the process was stopped; in both cases "now" is the
/// safer answer, because a sender would read the difference as delay or as RTT.
const MAX_STAMP_AGE: Duration = Duration::from_secs(1);

/// Time since the run began, the machine's sleep included unless it is left out ([`Clock::awake`]). Copies share the beginning, so that threads
/// agree on instants.
///
/// ```
/// use fairpace_net::Clock;
/// let clock = Clock::start();
/// let (a, b) = (clock.now(), clock.now());
/// assert!(a <= b);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    id: ClockId,
    /// The clock of the kernel at the beginning, in nanoseconds.
    origin_ns: u64,
}

impl Clock {
    /// The run begins now.
    pub fn start() -> Clock {
        Clock::of(ClockId::CLOCK_BOOTTIME)
    }

    /// The run begins now, and stands still while the machine sleeps.
    pub fn awake() -> Clock {
        Clock::of(ClockId::CLOCK_MONOTONIC)
    }

    fn of(id: ClockId) -> Clock {
        Clock { id, origin_ns: read_ns(id) }
    }

    /// The kernel's clock that this counts by.
    pub(crate) const fn id(&self) -> ClockId {
        self.id
    }

    /// Time since the beginning.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read_ns(self.id).saturating_sub(self.origin_ns))
    }

    /// The kernel's clock at that instant, for timers with absolute times.
    pub(crate) fn kernel_time(&self, at: Instant) -> TimeSpec {
        timespec(at.as_nanos().saturating_add(self.origin_ns))
    }

    /// The wall clock's time at the run's zero, as time since 1970, judged by its time now. Read once per session,
    /// for sender reports.
    pub fn unix_at_zero(&self) -> Duration {
        let (wall, now) = (read_ns(ClockId::CLOCK_REALTIME), self.now());
        Duration::from_nanos(wall.saturating_sub(now.as_nanos()))
    }

    /// The kernel's receive stamp (wall time) on the run's axis; never after now, and now itself
    /// if the stamp cannot be right.
    pub(crate) fn place_kernel_stamp(&self, stamp: TimeSpec) -> Instant {
        let (wall, now) = (read_ns(ClockId::CLOCK_REALTIME), self.now());
        let stamp_ns = (stamp.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(stamp.tv_nsec() as u64);
        place_stamp(stamp_ns, wall, now)
    }
}

/// Where a wall-clock stamp lies on the run's axis, when the wall shows `wall_ns` at `now`.
fn place_stamp(stamp_ns: u64, wall_ns: u64, now: Instant) -> Instant {
    match wall_ns.checked_sub(stamp_ns).map(Duration::from_nanos) {
        Some(age) if age <= MAX_STAMP_AGE => now - age,
        _ => now,
    }
}

fn timespec(ns: u64) -> TimeSpec {
    TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64)
}

fn read_ns(id: ClockId) -> u64 {
    // These clocks exist on every Linux since 2.6.39; the call has no other way to fail.
    clock_gettime(id).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_clock_agree_and_never_go_back() {
        let a = Clock::start();
        let b = a;
        let (t1, t2, t3) = (a.now(), b.now(), a.now());
        assert!(t1 <= t2 && t2 <= t3, "{t1} {t2} {t3}");
    }

    /// Each goes with the kernel's clock of its name: only sleep tells them apart.
    #[test]
    fn a_run_counts_its_machines_sleep_unless_it_is_left_out() {
        for (clock, id) in [(Clock::start(), ClockId::CLOCK_BOOTTIME), (Clock::awake(), ClockId::CLOCK_MONOTONIC)] {
            let before = read_ns(id);
            let now = clock.now();
            let after = read_ns(id);
            let reading = clock.kernel_time(now);
            let reading = reading.tv_sec() as u64 * 1_000_000_000 + reading.tv_nsec() as u64;
            assert!((before..=after).contains(&reading), "{before} {reading} {after}");
            assert_eq!(clock.id(), id);
        }
    }

    #[test]
    fn the_wall_clock_at_zero_is_a_time_of_this_century() {
        // 2020-01-01 is 18,262 days after 1970
        let at_zero = Clock::start().unix_at_zero();
        assert!(at_zero > Duration::from_secs(18_262 * 86_400) && at_zero < Duration::from_secs(100_000 * 86_400));
    }

    #[test]
    fn a_kernel_stamp_moves_back_from_now_by_its_age() {
        let now = Instant::from_nanos(10_000_000);
        assert_eq!(place_stamp(97_000_000, 100_000_000, now), Instant::from_nanos(7_000_000));
    }

    #[test]
    fn a_stepped_wall_clock_leaves_arrivals_at_now() {
        let now = Instant::from_nanos(5_000_000_000);
        let hour = 3_600_000_000_000;
        assert_eq!(place_stamp(hour, 2 * hour, now), now, "wall went forward an hour after the stamp");
        assert_eq!(place_stamp(2 * hour, hour, now), now, "wall went back an hour after the stamp");
    }
}
