//! How punctual our paced sending is, beside the barest loop there is: `clock_nanosleep` and
//! `send`. Both on the same thread, in turns, so that whatever else the machine does hits both.
//!
//! One packet leaves at each tick. Lateness is the clock just before the packet is given to the
//! kernel, minus the tick. Neither method skips ticks: a late one is followed at once by the next.

use crate::{
    Buffers, Clock, DatagramIo, Family, LatenessHistogram, LatenessSummary, Mark, NetError, UdpSocket, Waiter,
};
use fairpace_units::{Bytes, Duration, Instant};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::net::{Ipv4Addr, SocketAddr};

/// UDP payload of the measurement, as in every table of this project.
pub const PAYLOAD: usize = 1_200;

/// One packet per tick at one rate: ours and the bare loop, measured in turns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacingComparison {
    /// Packets per second.
    pub packets_per_second: u32,
    /// The loop of our drivers: timerfd, `ppoll` over the socket, `sendmsg` with a mark.
    pub ours: LatenessSummary,
    /// `clock_nanosleep` to an absolute time with timer slack 1 ns, and `send`.
    pub bare: LatenessSummary,
    /// CPU time of our loop as a part of the time it ran.
    pub ours_cpu: f64,
    /// The same of the bare loop.
    pub bare_cpu: f64,
}

impl PacingComparison {
    /// Ours / bare, median; not-a-number never: 1 if both are zero.
    pub fn p50_ratio(&self) -> f64 {
        ratio(self.ours.p50, self.bare.p50)
    }

    /// Ours / bare, 99th percentile.
    pub fn p99_ratio(&self) -> f64 {
        ratio(self.ours.p99, self.bare.p99)
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    // The histogram's unit, 1 ns, stands in for zero.
    a.as_nanos().max(1) as f64 / b.as_nanos().max(1) as f64
}

/// Measures both for `each` at `packets_per_second`, in turns of `turn`.
///
/// # Errors
/// [`NetError`] if there is no socket, no timer, or the rate is zero.
pub fn compare(packets_per_second: u32, each: Duration, turn: Duration) -> Result<PacingComparison, NetError> {
    if packets_per_second == 0 || turn.is_zero() {
        return Err(NetError::Config {
            field: "packets_per_second",
            found: packets_per_second.to_string(),
            allowed: "1 or more, in turns longer than zero".to_owned(),
        });
    }
    let clock = Clock::start();
    let mut waiter = Waiter::new(clock)?;
    // Nobody reads it: what does not fit into the smallest buffer is dropped in the kernel.
    let sink = UdpSocket::listen(0, Family::V4, Buffers { receive: Bytes::ZERO, send: Bytes::ZERO }, clock)?;
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, sink.local_address()?.port()));
    let mut ours = UdpSocket::connect(to, Buffers::default(), clock)?;
    let bare = std::net::UdpSocket::bind("127.0.0.1:0").map_err(|e| NetError::io("make a UDP socket", e))?;
    bare.connect(to).map_err(|e| NetError::io("connect a UDP socket", e))?;

    let payload = [0_u8; PAYLOAD];
    let tick = Duration::from_nanos(1_000_000_000 / u64::from(packets_per_second));
    let (mut late_ours, mut late_bare) = (LatenessHistogram::new(), LatenessHistogram::new());
    let (mut cpu_ours, mut cpu_bare) = (Duration::ZERO, Duration::ZERO);
    let mut measured = Duration::ZERO;
    while measured < each {
        cpu_ours += run(clock, tick, turn, &mut late_ours, |due| {
            while clock.now() < due {
                waiter.wait(due, &[ours.descriptor()])?;
            }
            let at = clock.now();
            ours.send(None, &payload, Mark::default());
            Ok(at)
        })?;
        cpu_bare += run(clock, tick, turn, &mut late_bare, |due| {
            let until = clock.kernel_time(due);
            while clock_nanosleep(clock.id(), ClockNanosleepFlags::TIMER_ABSTIME, &until).is_err() {}
            let at = clock.now();
            // The sink refuses nothing; a failure here would only cost less time.
            let _ = bare.send(&payload);
            Ok(at)
        })?;
        measured += turn;
    }
    Ok(PacingComparison {
        packets_per_second,
        ours: late_ours.summary(),
        bare: late_bare.summary(),
        ours_cpu: cpu_ours.as_secs_f64() / measured.as_secs_f64(),
        bare_cpu: cpu_bare.as_secs_f64() / measured.as_secs_f64(),
    })
}

/// One turn: a packet at each tick for `turn`; gives the CPU time it took.
fn run(
    clock: Clock,
    tick: Duration,
    turn: Duration,
    late: &mut LatenessHistogram,
    mut send_at: impl FnMut(Instant) -> Result<Instant, NetError>,
) -> Result<Duration, NetError> {
    let cpu = thread_cpu();
    let begin = clock.now();
    let mut due = begin + tick;
    while due.since(begin) <= turn {
        let at = send_at(due)?;
        late.record(at.since(due));
        due += tick;
    }
    Ok(thread_cpu().saturating_sub(cpu))
}

/// CPU time of this thread.
pub fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_methods_send_one_packet_per_tick_and_never_early() {
        let c = compare(1_000, Duration::from_millis(100), Duration::from_millis(50)).unwrap();
        // two turns of 50 ticks each
        assert_eq!((c.ours.count, c.bare.count), (100, 100));
        assert!(c.p50_ratio() > 0.0 && c.p99_ratio().is_finite(), "{c:?}");
        assert!(c.ours_cpu < 1.0 && c.bare_cpu < 1.0, "neither spins: {c:?}");
    }

    #[test]
    fn no_rate_is_an_error_and_not_a_division_by_zero() {
        assert!(compare(0, Duration::from_millis(1), Duration::from_millis(1)).is_err());
    }
}
