//! When the next packet of a paced stream may leave.
//!
//! A packet of `size` at rate `S` uses `size / S` of time; the next one leaves when that is over.
//! The fraction of a nanosecond is carried, so that n packets take n times the exact time. A
//! driver that comes late may catch up, but by no more than [`CREDIT`] or one RTT, whichever is
//! less [RFC 5348 §4.6], and on the shortest paths by [`LEAST_CREDIT`]; time during which there was
//! nothing to send earns nothing.

use crate::controller::SendPoll;
use fairpace_units::{Duration, Instant, Kind};

/// How far behind its schedule a paced stream may be and still make it up. Too short, and a clock
/// that ticks every 10 ms costs throughput; too long, and it is a burst. Two ticks and a half.
pub(crate) const CREDIT: Duration = Duration::from_millis(25);

/// Where the RTT is shorter than this, so much may be made up all the same: a busy machine's scheduler
/// lets a process wait for one or two time slices of 3 ms, and on a path of 0.1 ms nothing of that could
/// be made up: the encoder is told a rate that never leaves. 5 ms of the default cap are five packets,
/// half of TCP's initial window [RFC 6928].
pub(crate) const LEAST_CREDIT: Duration = Duration::from_millis(5);

/// A span of time computed in seconds, to the nearest nanosecond; 584 years at most, where the flow's min_rate is next
/// to nothing.
pub(crate) fn seconds(s: f64) -> Duration {
    Duration::from_nanos((s * 1e9 + 0.5) as u64)
}

/// The schedule of one paced stream.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// When the next packet may leave.
    next: Instant,
    /// The remainder of rounding `next` down, in nanoseconds.
    rest_ns: f64,
    /// When the last packet was due, and the rest then.
    last: (Instant, f64),
    /// A packet was due and there was nothing to send: being late is not the driver's fault.
    starved: bool,
    /// There was nothing to send when the driver asked last.
    empty: bool,
    /// When the next packet would have left if the rate had not risen: only what is later than that is late.
    before: Instant,
}

impl Pacer {
    /// The first packet may leave at `first`.
    pub fn starting(first: Instant) -> Self {
        Pacer {
            next: first,
            rest_ns: 0.0,
            last: (Instant::NEVER, 0.0),
            starved: false,
            empty: false,
            before: Instant::ZERO,
        }
    }

    /// When the next packet may leave.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Whether a packet may leave now.
    pub fn due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// The answer of a scheme that sends data only, whenever the gap is over.
    pub fn poll_data(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.asked(now, has_data);
        if !self.due(now) {
            SendPoll::Wait(self.next)
        } else if has_data {
            SendPoll::Send(Kind::Data)
        } else {
            SendPoll::WaitForData
        }
    }

    /// The driver asks, as it does whenever there is something to send again. A packet that was due before that starved, whether the
    /// driver asked in between or not: how often it asks is none of the schedule's business, else a stranger's datagrams changed it. TFRC, which sends data only and is asked when a packet
    /// is due, notes by itself that it starves.
    pub(crate) fn asked(&mut self, now: Instant, has_data: bool) {
        self.starved |= self.due(now) && (self.empty || !has_data);
        self.empty = !has_data;
    }

    /// Notes that a packet was due, and that there was nothing to send.
    pub(crate) fn starve(&mut self) {
        self.starved = true;
    }

    /// Not before `at`.
    pub(crate) fn hold_until(&mut self, at: Instant) {
        if at > self.next {
            *self = Pacer { empty: self.empty, ..Pacer::starting(at) };
        }
    }

    /// The next packet may leave at `at`, if it might not before.
    pub(crate) fn hasten(&mut self, at: Instant) {
        if at < self.next {
            (self.next, self.rest_ns) = (at, 0.0);
        }
    }

    /// A packet left at `now`; the next may follow `gap_s` seconds after this one's due time.
    /// `rtt` bounds what may be made up for; zero where it is not known.
    pub fn sent(&mut self, now: Instant, gap_s: f64, rtt: Duration) {
        let slack = if self.starved { Duration::ZERO } else { rtt.clamp(LEAST_CREDIT, CREDIT) };
        self.starved = false;
        let earliest = (now - slack).max(self.before.min(now));
        self.before = Instant::ZERO;
        if self.next < earliest {
            self.next = earliest;
            self.rest_ns = 0.0;
        }
        self.last = (self.next, self.rest_ns);
        (self.next, self.rest_ns) = self.after_last(gap_s);
    }

    /// The next packet follows the last one's due time after `gap_s` seconds, whatever was said when
    /// it left: the rate has changed. If that is past it is due at once, but a higher rate is no credit:
    /// nothing is made up for. Without effect before the first packet.
    pub fn regap(&mut self, gap_s: f64) {
        if self.last.0 == Instant::NEVER {
            return;
        }
        let (next, rest_ns) = self.after_last(gap_s);
        if next < self.next {
            self.before = self.before.max(self.next);
        }
        (self.next, self.rest_ns) = (next, rest_ns);
    }

    fn after_last(&self, gap_s: f64) -> (Instant, f64) {
        let (last, rest_ns) = self.last;
        // Saturates: a rate of nothing is a gap of for ever.
        let gap_ns = gap_s * 1e9 + rest_ns;
        let whole = gap_ns as u64;
        (last + Duration::from_nanos(whole), if gap_ns < 1e18 { gap_ns - whole as f64 } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(550);

    #[test]
    fn n_packets_take_n_times_the_exact_time() {
        let mut p = Pacer::starting(Instant::ZERO);
        for _ in 0..1_300 {
            p.sent(p.next(), 1.0 / 1_300.0, RTT);
        }
        // 1,300 gaps of 769,230.77 ns are one second; rounding each down would lose a microsecond.
        assert!(Instant::from_secs_f64(1.0).since(p.next()) <= Duration::from_nanos(1), "{:?}", p.next().as_nanos());
        assert!(p.next() <= Instant::from_secs_f64(1.0));
    }

    #[test]
    fn a_late_driver_makes_up_for_25_ms_and_no_more() {
        let mut p = Pacer::starting(Instant::ZERO);
        let now = Instant::from_secs_f64(10.0);
        let mut n = 0;
        while p.due(now) {
            p.sent(now, 0.001, RTT);
            n += 1;
        }
        // due at 10.000 - 0.025, then every millisecond up to and including 10.000
        assert_eq!(n, 26);
    }

    #[test]
    fn on_a_short_path_it_makes_up_for_one_rtt() {
        let mut p = Pacer::starting(Instant::ZERO);
        let now = Instant::from_secs_f64(10.0);
        let mut n = 0;
        while p.due(now) {
            p.sent(now, 0.001, Duration::from_millis(9));
            n += 1;
        }
        assert_eq!(n, 10);
    }

    #[test]
    fn where_an_rtt_is_less_than_a_time_slice_it_makes_up_for_5_ms_and_no_more() {
        let mut p = Pacer::starting(Instant::ZERO);
        let rtt = Duration::from_micros(100);
        // 10,000 packets/s by a driver that comes every 4 ms: none is lost, 40 at a time
        for turn in 1..=250_u32 {
            let now = Instant::ZERO + Duration::from_millis(4) * turn;
            let mut n = 0;
            while p.due(now) {
                p.sent(now, 0.0001, rtt);
                n += 1;
            }
            assert_eq!(n, if turn == 1 { 41 } else { 40 });
        }
        // after a stall of a second: due at -5.0 ms, -4.9 ms ... 0
        let now = Instant::from_secs_f64(2.0);
        let mut n = 0;
        while p.due(now) {
            p.sent(now, 0.0001, rtt);
            n += 1;
        }
        assert_eq!(n, 51);
    }

    #[test]
    fn a_stream_with_nothing_to_send_earns_no_burst() {
        let mut p = Pacer::starting(Instant::ZERO);
        p.starve();
        let now = Instant::from_secs_f64(10.0);
        p.sent(now, 0.001, RTT);
        assert_eq!(p.next(), now + Duration::from_millis(1));
    }

    #[test]
    fn how_often_the_driver_asks_changes_nothing() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        // Due at 10 ms; the data comes at 15 ms and leaves at 16, kept by something else.
        let next = |asks: &[u64]| {
            let mut p = Pacer::starting(Instant::ZERO);
            p.sent(at(0), 0.01, RTT);
            asks.iter().for_each(|ms| p.asked(at(*ms), false));
            p.asked(at(15), true);
            p.asked(at(16), true);
            p.sent(at(16), 0.01, RTT);
            p.next()
        };
        assert_eq!(next(&[0]), at(26));
        assert_eq!(next(&[0, 5, 11, 14]), at(26));
        // The same after a wait that something else imposed.
        let mut p = Pacer::starting(Instant::ZERO);
        p.asked(at(0), false);
        p.hold_until(at(10));
        p.asked(at(15), true);
        p.sent(at(16), 0.01, RTT);
        assert_eq!(p.next(), at(26));
        // Data that was there when the packet was due: being late is the driver's fault.
        let mut p = Pacer::starting(Instant::ZERO);
        p.sent(at(0), 0.01, RTT);
        p.asked(at(0), false);
        p.asked(at(9), true);
        p.sent(at(16), 0.01, RTT);
        assert_eq!(p.next(), at(20));
    }

    #[test]
    fn a_new_rate_holds_from_the_last_packet_on() {
        let at = Instant::from_secs_f64;
        let mut p = Pacer::starting(at(0.0));
        p.regap(5.0);
        assert_eq!(p.next(), at(0.0), "no packet has left");
        p.sent(at(0.0), 1.0, RTT);
        p.regap(0.25);
        assert_eq!(p.next(), at(0.25));
        p.regap(2.0);
        assert_eq!(p.next(), at(2.0));
        // Brought forward to what is past by now: at once, and then a gap from there.
        p.regap(0.25);
        assert!(p.due(at(0.26)));
        p.sent(at(0.26), 0.25, RTT);
        assert_eq!(p.next(), at(0.51));
        // A driver that comes 10 ms after what it was told makes up for those, rise or not.
        p.regap(0.01);
        p.sent(at(0.52), 0.25, RTT);
        assert_eq!(p.next(), at(0.76));
    }

    #[test]
    fn rate_zero_is_never() {
        let mut p = Pacer::starting(Instant::ZERO);
        p.sent(Instant::ZERO, f64::INFINITY, RTT);
        assert_eq!(p.next(), Instant::NEVER);
    }
}
