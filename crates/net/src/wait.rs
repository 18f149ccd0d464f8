//! Waiting for an instant or for a socket, whichever comes first: one `ppoll` over the sockets and
//! a timerfd. Every driver of this crate sleeps here and nowhere else.
//!
//! Why a timerfd and not `ppoll`'s own timeout: the kernel stretches that by 0.1 % of the wait
//! (up to 100 ms) whatever the timer slack says; a timerfd is an exact timer. Absolute times, so
//! that what passes between the question and the sleep is not added. Timer slack 1 ns instead of
//! the default 50 us [measured: `docs/net/README.md`].

use crate::{Clock, NetError};
use fairpace_units::Instant;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Woken {
    /// The instant has come.
    pub timer: bool,
    /// Bit `i`: socket `i` of the list has something to read (or an error to collect).
    pub readable: u64,
    /// A signal came: time to look at the stop flag.
    pub interrupted: bool,
}

/// One thread's alarm clock. It sets the timer slack of the thread that makes it, so make it on
/// the thread that waits (it cannot be sent to another).
#[derive(Debug)]
pub struct Waiter {
    clock: Clock,
    timer: TimerFd,
    /// What the timer is set to; set again only when it changes.
    armed: Option<Instant>,
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
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
            .map_err(|e| NetError::io("make a timer", e))?;
        Ok(Waiter { clock, timer, armed: None, not_send: PhantomData })
    }

    /// The clock whose instants this waits for.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Sleeps until `until`, or until one of `sockets` (at most 64) is readable, or a signal comes.
    /// An instant that has passed returns at once, with the sockets' state.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel refuses to wait (out of memory, a closed descriptor).
    pub fn wait(&mut self, until: Instant, sockets: &[BorrowedFd<'_>]) -> Result<Woken, NetError> {
        let due = until <= self.clock.now();
        if !due && self.armed != Some(until) {
            let alarm = if until == Instant::NEVER { TimeSpec::new(0, 0) } else { self.clock.monotonic(until) };
            self.timer
                .set(Expiration::OneShot(alarm), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
                .map_err(|e| NetError::io("set the timer", e))?;
            self.armed = Some(until);
        }
        // At most the timer and a few sockets: on the stack, nothing allocated per wait.
        let mut fds = [const { None }; MAX_SOCKETS + 1];
        let n = sockets.len().min(MAX_SOCKETS);
        fds[0] = Some(PollFd::new(self.timer.as_fd(), PollFlags::POLLIN));
        for (slot, fd) in fds[1..].iter_mut().zip(sockets) {
            *slot = Some(PollFd::new(*fd, PollFlags::POLLIN));
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
        let mut woken = Woken { timer: due, ..Woken::default() };
        if !due && fds[0].any() == Some(true) {
            woken.timer = true;
            self.armed = None;
        }
        for (i, fd) in fds[1..=n].iter().enumerate() {
            if fd.any() == Some(true) {
                woken.readable |= 1 << i;
            }
        }
        Ok(woken)
    }
}

/// The drivers wait for one socket or two.
const MAX_SOCKETS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Duration;
    use std::net::UdpSocket;

    #[test]
    fn the_alarm_never_rings_early() {
        let clock = Clock::start();
        let mut waiter = Waiter::new(clock).unwrap();
        for ms in [1, 3, 2] {
            let until = clock.now() + Duration::from_millis(ms);
            let woken = waiter.wait(until, &[]).unwrap();
            assert!(woken.timer && clock.now() >= until);
        }
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
