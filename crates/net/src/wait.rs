//! Waiting for an instant or for a socket, whichever comes first: one `ppoll` over the sockets and
//! a timerfd. Every driver of this crate sleeps here and nowhere else.
//!
//! Why a timerfd and not `ppoll`'s own timeout: the kernel stretches that by 0.1 % of the wait
//! (up to 100 ms) whatever the timer slack says; a timerfd is an exact timer. Absolute times, so
//! that what passes between the question and the sleep is not added. Timer slack 1 ns instead of
//! the default 50 us [measured: `docs/net/README.md`].
//!
//! Waking up takes 10 to 30 us on any machine, most of it the same each time. So the timer is set a
//! little early, by what the quickest tenth of the wake-ups took lately, and the rest is spun away:
//! nothing returns early, one wake-up in ten spins for a few microseconds, and the others are later
//! by that much less.

use crate::{Clock, NetError};
use fairpace_units::{Duration, Instant};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as SleepClock, ClockNanosleepFlags, clock_nanosleep};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};

/// The event that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Woken {
    /// The instant has come.
    pub timer: bool,
    /// Bit `i`: socket `i` of the list has something to read, or room if that was asked for (or an error to collect).
    pub readable: u64,
    /// A signal came: time to look at the stop flag.
    pub interrupted: bool,
}

/// One thread's alarm clock. Making a `Waiter` sets the timer slack of the calling thread, so make it on the thread
/// that waits (it cannot be sent to another).
#[derive(Debug)]
pub struct Waiter {
    clock: Clock,
    timer: TimerFd,
    /// The time that the timer is set to; set again only when it changes.
    armed: Option<Instant>,
    /// How much earlier than asked the timer is set: the tenth percentile of the time that waking up
    /// takes, in nanoseconds.
    head_start_ns: u64,
    not_send: PhantomData<*const ()>,
}

impl Waiter {
    /// An alarm clock on this thread.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel gives no timer (out of file descriptors).
    pub fn new(clock: Clock) -> Result<Waiter, NetError> {
        // A refusal costs accuracy only, and the lateness we report would show it.
        let _ = nix::sys::prctl::set_timerslack(1);
        let timer = TimerFd::new(timer_of(clock), TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
            .map_err(|e| NetError::io("make a timer", e))?;
        Ok(Waiter { clock, timer, armed: None, head_start_ns: 0, not_send: PhantomData })
    }

    /// The clock whose instants this waits for.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Sleeps until `until`, or until one of `sockets` (at most 8) is readable, or a signal comes.
    /// An instant that has passed returns at once, with the sockets' state.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel refuses to wait (out of memory, a closed descriptor).
    pub fn wait(&mut self, until: Instant, sockets: &[BorrowedFd<'_>]) -> Result<Woken, NetError> {
        self.wait_for_room(until, sockets, 0)
    }

    /// As [`Waiter::wait`]; where bit `i` of `room` is set, room to write to socket `i` ends the wait too.
    ///
    /// # Errors
    /// As [`Waiter::wait`].
    pub fn wait_for_room(&mut self, until: Instant, sockets: &[BorrowedFd<'_>], room: u64) -> Result<Woken, NetError> {
        let begin = self.clock.now();
        // When to wake up; what is left then is spun.
        let alarm = if until == Instant::NEVER { until } else { until - Duration::from_nanos(self.head_start_ns) };
        let due = alarm <= begin;
        if !due && self.armed != Some(alarm) {
            let spec = if alarm == Instant::NEVER { TimeSpec::new(0, 0) } else { self.clock.kernel_time(alarm) };
            self.timer
                .set(Expiration::OneShot(spec), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
                .map_err(|e| NetError::io("set the timer", e))?;
            self.armed = Some(alarm);
        }
        // At most the timer and a few sockets: on the stack, nothing allocated per wait.
        let mut fds = [const { None }; MAX_SOCKETS + 1];
        let n = sockets.len().min(MAX_SOCKETS);
        fds[0] = Some(PollFd::new(self.timer.as_fd(), PollFlags::POLLIN));
        for (i, (slot, fd)) in fds[1..].iter_mut().zip(sockets).enumerate() {
            let out = if room >> i & 1 == 1 { PollFlags::POLLOUT } else { PollFlags::empty() };
            *slot = Some(PollFd::new(*fd, PollFlags::POLLIN | out));
        }
        let mut fds: [PollFd<'_>; MAX_SOCKETS + 1] =
            fds.map(|fd| fd.unwrap_or_else(|| PollFd::new(self.timer.as_fd(), PollFlags::empty())));
        // A past instant only looks at the sockets; the timer is left alone.
        let timeout = if due { PollTimeout::ZERO } else { PollTimeout::NONE };
        let first = usize::from(due);
        match poll(&mut fds[first..=n], timeout) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Woken { interrupted: true, ..Woken::default() }),
            Err(e) => return Err(NetError::io("wait for a packet or the timer", e)),
        }
        let mut woken = Woken::default();
        for (i, fd) in fds[1..=n].iter().enumerate() {
            if fd.any() == Some(true) {
                woken.readable |= 1 << i;
            }
        }
        let rang = !due && fds[0].any() == Some(true);
        if rang {
            self.armed = None;
            self.learn(self.clock.now().since(alarm));
        }
        // A packet that is there already is news, and worth more than the last microseconds.
        if (rang || due) && woken.readable == 0 {
            while self.clock.now() < until {
                std::hint::spin_loop();
            }
        }
        woken.timer = self.clock.now() >= until;
        Ok(woken)
    }

    /// Sleeps until `until`, whatever comes, or until a signal: for waits so short that a packet can wait until their
    /// end. One call of the kernel in place of two, and no sockets to look at: with a pacing quantum, wake-ups are what
    /// a sender costs.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel has no such clock.
    pub fn sleep(&mut self, until: Instant) -> Result<(), NetError> {
        let alarm = until - Duration::from_nanos(self.head_start_ns);
        if alarm > self.clock.now() {
            match clock_nanosleep(self.clock.id(), ClockNanosleepFlags::TIMER_ABSTIME, &self.clock.kernel_time(alarm)) {
                Ok(_) => self.learn(self.clock.now().since(alarm)),
                Err(Errno::EINTR) => return Ok(()),
                Err(e) => return Err(NetError::io("sleep", e)),
            }
        }
        while self.clock.now() < until {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Moves the head start towards the tenth percentile of what waking up takes: nine small steps up balance
    /// one large step down.
    fn learn(&mut self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.head_start_ns = if took < self.head_start_ns {
            self.head_start_ns.saturating_sub(STEP_NS * 9)
        } else {
            (self.head_start_ns + STEP_NS).min(MAX_HEAD_START_NS)
        };
    }
}

/// The timers' name for a clock.
fn timer_of(clock: Clock) -> ClockId {
    if clock.id() == SleepClock::CLOCK_BOOTTIME { ClockId::CLOCK_BOOTTIME } else { ClockId::CLOCK_MONOTONIC }
}

/// How fast the head start moves: from 0 to 20 us within 200 wake-ups.
const STEP_NS: u64 = 100;
/// Most of what may be spun away per wake-up, however slow the machine.
const MAX_HEAD_START_NS: u64 = 40_000;

/// The drivers wait for one socket or two, or for a few more with a TCP half.
const MAX_SOCKETS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_alarm_never_rings_early() {
        let clock = Clock::start();
        let mut waiter = Waiter::new(clock).unwrap();
        waiter.head_start_ns = MAX_HEAD_START_NS; // woken 40 us before, the rest is spun
        for ms in [1, 3, 2] {
            let until = clock.now() + Duration::from_millis(ms);
            let woken = waiter.wait(until, &[]).unwrap();
            assert!(woken.timer && clock.now() >= until);
            let until = clock.now() + Duration::from_millis(ms);
            waiter.sleep(until).unwrap();
            assert!(clock.now() >= until);
        }
        // Nearer than the head start: no sleep at all, and still not early.
        let until = clock.now() + Duration::from_micros(30);
        assert!(waiter.wait(until, &[]).unwrap().timer && clock.now() >= until);
    }

    #[test]
    fn the_head_start_settles_at_the_tenth_percentile_and_stays_small() {
        let mut waiter = Waiter::new(Clock::start()).unwrap();
        // Wake-ups take 10, 11, ..., 109 us in a mixed order: 37 is prime to 100. The tenth percentile
        // is 20 us; the steps are 0.1 and 0.9 us.
        for i in 0..20_000_u64 {
            waiter.learn(Duration::from_micros(10 + i * 37 % 100));
        }
        assert!((15_000..25_000).contains(&waiter.head_start_ns), "{}", waiter.head_start_ns);
        for _ in 0..10_000 {
            waiter.learn(Duration::from_secs(1));
        }
        assert_eq!(waiter.head_start_ns, MAX_HEAD_START_NS);
    }

    #[test]
    fn a_past_instant_returns_at_once_with_the_sockets_state() {
        let clock = Clock::start();
        let mut waiter = Waiter::new(clock).unwrap();
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        let quiet = UdpSocket::bind("127.0.0.1:0").unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        b.send_to(b"x", a.local_addr().unwrap()).unwrap();
        let woken = waiter.wait(Instant::ZERO, &[quiet.as_fd(), a.as_fd()]).unwrap();
        assert_eq!(woken, Woken { timer: true, readable: 0b10, interrupted: false });
    }

    #[test]
    fn a_packet_ends_the_wait_before_the_alarm_and_the_alarm_still_rings() {
        let clock = Clock::start();
        let mut waiter = Waiter::new(clock).unwrap();
        let a = UdpSocket::bind("127.0.0.1:0").unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").unwrap();
        b.send_to(b"x", a.local_addr().unwrap()).unwrap();
        let until = clock.now() + Duration::from_millis(300);
        let woken = waiter.wait(until, &[a.as_fd()]).unwrap();
        assert!(woken.readable == 1 && !woken.timer);
        a.recv(&mut [0; 8]).unwrap();
        let woken = waiter.wait(until, &[a.as_fd()]).unwrap();
        assert!(woken.timer && woken.readable == 0 && clock.now() >= until);
    }
}
