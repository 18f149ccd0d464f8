//! When to send RTCP [RFC 3550 §6.2, §6.3, A.7].
//!
//! | | value | source |
//! | --- | --- | --- |
//! | RTCP's share of the session bandwidth | 5 % | §6.2 |
//! | of it for senders, while they are at most a quarter of the members | 25 % | §6.2 |
//! | minimum interval Tmin | 5 s, half before the first report | §6.2 |
//! | reduced minimum | 360 / (bandwidth in kbit/s) seconds | §6.2 |
//! | interval | Td × uniform [0.5, 1.5] / (e − 1.5) | §6.3.1 |
//! | BYE backs off with more than | 50 members | §6.3.7 |
//! | average packet size | 15/16 old + 1/16 new, with IP and UDP headers | §6.3.3 |
//!
//! Per-packet feedback ([`crate::feedback::ccfb`]) is not paced here: it is the transport's, is counted apart,
//! and must be as frequent as control needs it.

use fairpace_units::{Bytes, Duration, Instant, RandomStream, Rate};

/// e − 3/2: undoes the bias of reconsideration towards longer intervals [RFC 3550 §6.3.1].
const COMPENSATION: f64 = core::f64::consts::E - 1.5;
/// RTCP's share of the session bandwidth.
const RTCP_SHARE: f64 = 0.05;
/// The senders' share of RTCP.
const SENDER_SHARE: f64 = 0.25;
/// Tmin.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
/// Above this many members a BYE waits like any report.
const BYE_BACKOFF_MEMBERS: u32 = 50;

/// The inputs of the timing, beside time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The session's bandwidth, all senders together, IP and UDP headers included.
    pub session_bandwidth: Rate,
    /// Use 360 s / (kbit/s) in place of 5 s.
    pub reduced_minimum: bool,
    /// A report in each so long, and none of the rules above: where control goes by reports (T_rtcp). A deviation from RFC
    /// 3550, between two who agreed on it in the challenge; at 1 s and 100 B it is 0.8 kbit/s.
    pub fixed_interval: Option<Duration>,
    /// Size of the first report that will be sent, headers included: the first guess of the average.
    pub first_size: Bytes,
}

/// The action when the timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send a report (then call [`RtcpTiming::on_sent`]).
    Report,
    /// Send the BYE; then it is over.
    Bye,
    /// The group has grown meanwhile: not before [`RtcpTiming::next`].
    NotYet,
}

/// One participant's RTCP timer.
#[derive(Clone, Debug)]
pub struct RtcpTiming {
    params: Parameters,
    random: RandomStream,
    members: u32,
    /// `pmembers`: members when `tn` was last computed.
    members_then: u32,
    senders: u32,
    we_sent: bool,
    initial: bool,
    leaving: bool,
    average_size: f64,
    /// `tp`: when a report was last sent.
    previous: Instant,
    /// `tn`: when the next one is planned.
    next: Instant,
}

impl RtcpTiming {
    /// Joins at `now`. `random` is this participant's own.
    pub fn new(now: Instant, params: Parameters, we_sent: bool, random: RandomStream) -> Self {
        let mut timing = RtcpTiming {
            params,
            random,
            members: 1,
            members_then: 1,
            senders: u32::from(we_sent),
            we_sent,
            initial: true,
            leaving: false,
            average_size: params.first_size.as_f64(),
            previous: now,
            next: now,
        };
        timing.next = now + timing.draw();
        timing
    }

    /// When [`RtcpTiming::on_timer`] is wanted.
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Td, the deterministic interval [RFC 3550 §6.3.1], with the minimum that is configured.
    pub fn deterministic_interval(&self) -> Duration {
        self.interval_with_minimum(self.minimum())
    }

    fn minimum(&self) -> Duration {
        let minimum = if self.params.reduced_minimum && !self.leaving {
            let kbps = (self.params.session_bandwidth.as_bps() / 1e3).max(1e-3);
            Duration::from_secs_f64((360.0 / kbps).min(MIN_INTERVAL.as_secs_f64()))
        } else {
            MIN_INTERVAL
        };
        // Half before the first report, so that a newcomer is heard soon; the reduced one is short enough.
        if self.initial && !self.params.reduced_minimum { minimum / 2 } else { minimum }
    }

    fn interval_with_minimum(&self, minimum: Duration) -> Duration {
        let rtcp_bytes_per_s = self.params.session_bandwidth.as_bps() * RTCP_SHARE / 8.0;
        let few_senders = f64::from(self.senders) <= SENDER_SHARE * f64::from(self.members);
        let (n, share) = match (few_senders && self.senders > 0, self.we_sent) {
            (true, true) => (self.senders, SENDER_SHARE),
            (true, false) => (self.members - self.senders.min(self.members), 1.0 - SENDER_SHARE),
            (false, _) => (self.members, 1.0),
        };
        let seconds = self.average_size * f64::from(n.max(1)) / (rtcp_bytes_per_s * share).max(1e-9);
        Duration::from_secs_f64(seconds.min(1e9)).max(minimum)
    }

    /// T: Td spread over [0.5, 1.5] and divided by e − 1.5.
    fn draw(&mut self) -> Duration {
        if let Some(fixed) = self.params.fixed_interval {
            return fixed;
        }
        let td = self.deterministic_interval();
        td.mul_f64((self.random.uniform() + 0.5) / COMPENSATION)
    }

    /// From now on a report in each `interval`.
    pub fn fix_interval(&mut self, now: Instant, interval: Duration) {
        if self.params.fixed_interval != Some(interval) {
            self.params.fixed_interval = Some(interval);
            self.previous = now;
            self.next = now + interval;
        }
    }

    /// The timer has fired: send, or wait on (timer reconsideration, §6.3.6).
    pub fn on_timer(&mut self, now: Instant) -> Due {
        if now < self.next {
            return Due::NotYet;
        }
        let t = self.draw();
        if self.previous + t > now {
            self.next = self.previous + t;
            self.members_then = self.members;
            return Due::NotYet;
        }
        if self.leaving { Due::Bye } else { Due::Report }
    }

    /// The report has been sent; `size` with IP and UDP headers.
    pub fn on_sent(&mut self, now: Instant, size: Bytes) {
        self.average(size);
        self.previous = now;
        self.initial = false;
        self.members_then = self.members;
        self.next = now + self.draw();
    }

    /// Somebody's RTCP has arrived; `size` with IP and UDP headers.
    pub fn on_received(&mut self, size: Bytes) {
        self.average(size);
    }

    fn average(&mut self, size: Bytes) {
        self.average_size += (size.as_f64() - self.average_size) / 16.0;
    }

    /// How many take part, this one included, and how many of them send media. If some have left, the
    /// next report is drawn nearer (reverse reconsideration, §6.3.4).
    pub fn set_group(&mut self, now: Instant, members: u32, senders: u32, we_sent: bool) {
        let members = members.max(1);
        (self.senders, self.we_sent) = (senders, we_sent);
        if members < self.members && !self.leaving {
            // tn = tc + members/pmembers · (tn − tc); tp likewise
            let shrink = f64::from(members) / f64::from(self.members_then.max(members));
            self.next = now + self.next.since(now).mul_f64(shrink);
            self.previous = now - now.since(self.previous).mul_f64(shrink);
            self.members_then = members;
        }
        self.members = members;
    }

    /// Leaves: with up to 50 members the BYE may go at once (`true`), else the timer says when, and
    /// only other members' BYEs count as members meanwhile (§6.3.7).
    pub fn leave(&mut self, now: Instant, size: Bytes) -> bool {
        if self.members <= BYE_BACKOFF_MEMBERS {
            return true;
        }
        self.leaving = true;
        self.initial = true;
        self.we_sent = false;
        (self.members, self.members_then, self.senders) = (1, 1, 0);
        self.average_size = size.as_f64();
        self.previous = now;
        self.next = now + self.draw();
        false
    }

    /// Another member's BYE arrived while this one waits to send its own.
    pub fn on_bye_while_leaving(&mut self, size: Bytes) {
        if self.leaving {
            self.members = self.members.saturating_add(1);
            self.average(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timing(bandwidth: Rate, reduced_minimum: bool, seed: u64) -> RtcpTiming {
        let params = Parameters {
            session_bandwidth: bandwidth,
            reduced_minimum,
            fixed_interval: None,
            first_size: Bytes::new(100),
        };
        RtcpTiming::new(Instant::ZERO, params, false, RandomStream::named(seed, "rtcp"))
    }

    fn fire(t: &mut RtcpTiming, now: Instant, size: u64) -> bool {
        match t.on_timer(now) {
            Due::Report => {
                t.on_sent(now, Bytes::new(size));
                true
            }
            _ => false,
        }
    }

    fn fire_next(t: &mut RtcpTiming) -> bool {
        let next = t.next();
        fire(t, next, 100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn intervals_lie_within_half_and_one_and_a_half_of_the_compensated_one(seed: u64) {
            // Td = 2.5 s first: T in [0.5, 1.5] · 2.5 / 1.21828 = [1.026, 3.078]; then 5 s: [2.052, 6.156].
            let mut t = timing(Rate::mbps(1.0), false, seed);
            let mut last = Instant::ZERO;
            for bounds in [1.026..3.079, 2.052..6.157, 2.052..6.157] {
                let mut tries = 0;
                while !fire_next(&mut t) { tries += 1; prop_assert!(tries < 100); }
                let sent = t.previous;
                let interval = sent.since(last).as_secs_f64();
                prop_assert!(bounds.contains(&interval), "{interval} not in {bounds:?}");
                last = sent;
            }
        }
    }

    #[test]
    fn the_reduced_minimum_is_360_seconds_over_the_kilobits() {
        // 1,500 kbit/s: 0.24 s; the 5 % share would allow 100 B × 8 / 75 kbit/s = 0.011 s
        assert_eq!(timing(Rate::kbps(1_500.0), true, 1).deterministic_interval(), Duration::from_millis(240));
        // 36 kbit/s: 10 s, longer than the fixed minimum, which stays the larger bound
        assert_eq!(timing(Rate::kbps(36.0), true, 1).deterministic_interval(), Duration::from_secs(5));
    }

    #[test]
    fn a_quarter_of_rtcp_is_for_few_senders() {
        // 64 kbit/s: RTCP 400 B/s; 100 members, 100 B each.
        let mut t = timing(Rate::kbps(64.0), false, 1);
        t.set_group(Instant::ZERO, 100, 10, false);
        // 90 receivers share 300 B/s: 90 × 100 / 300 = 30 s
        assert_eq!(t.deterministic_interval(), Duration::from_secs(30));
        t.set_group(Instant::ZERO, 100, 10, true);
        // 10 senders share 100 B/s: 10 s
        assert_eq!(t.deterministic_interval(), Duration::from_secs(10));
        t.set_group(Instant::ZERO, 100, 30, true);
        // more than a quarter send: all share alike, 100 × 100 / 400 = 25 s
        assert_eq!(t.deterministic_interval(), Duration::from_secs(25));
    }

    /// One hour of a whole group, each with its own timer, all hearing each other at once.
    fn share_used(n: u32, bandwidth: Rate) -> f64 {
        const SIZE: u64 = 120;
        let end = Instant::from_secs_f64(3_600.0);
        let mut group: Vec<RtcpTiming> = (0..n)
            .map(|i| {
                let mut t = timing(bandwidth, false, i.into());
                t.average_size = SIZE as f64;
                t.set_group(Instant::ZERO, n, 0, false);
                t
            })
            .collect();
        let mut bytes = 0;
        while let Some((next, i)) = group.iter().enumerate().map(|(i, t)| (t.next(), i)).min() {
            if next > end {
                break;
            }
            if fire(&mut group[i], next, SIZE) {
                bytes += SIZE;
            }
        }
        bytes as f64 * 8.0 / 3_600.0 / bandwidth.as_bps()
    }

    #[test]
    fn an_hour_of_rtcp_takes_five_percent_whatever_the_group() {
        // The bandwidth is chosen so that the 5 s minimum does not bind: n × 120 B × 8 / (0.05 × B) > 5 s,
        // i.e. B < n × 3,840 bit/s. Randomness averages out over some 700 n intervals; 1,000 members have
        // fewer each, all start at once and speak at half the interval first.
        for (n, kbps) in [(1, 3.0), (2, 6.0), (50, 150.0), (200, 600.0)] {
            let share = share_used(n, Rate::kbps(kbps));
            assert!((0.045..=0.055).contains(&share), "{n} members: {share:.4}");
        }
    }

    #[test]
    fn a_thousand_members_stay_within_five_percent_too() {
        let share = share_used(1_000, Rate::kbps(400.0));
        // Td = 1,000 × 120 × 8 / 20,000 = 48 s: 75 rounds in the hour
        assert!((0.045..=0.055).contains(&share), "{share:.4}");
    }

    #[test]
    fn a_thousand_who_join_at_once_do_not_speak_at_once() {
        // Forward reconsideration: the one timer set with 1 member sees 1,000 when it fires, and waits:
        // Td = 1,000 × 100 B × 8 / (0.05 × 100 kbit/s) = 160 s, T at least 160 × 0.5 / 1.21828 = 65.7 s.
        let mut t = timing(Rate::kbps(100.0), false, 3);
        let planned = t.next();
        t.set_group(planned, 1_000, 0, false);
        assert_eq!(t.on_timer(planned), Due::NotYet);
        assert!(t.next().as_secs_f64() > 65.6, "{}", t.next());
    }

    #[test]
    fn when_most_leave_the_next_report_moves_nearer_in_proportion() {
        let mut t = timing(Rate::kbps(100.0), false, 3);
        t.set_group(Instant::ZERO, 1_000, 0, false);
        t.on_sent(Instant::ZERO, Bytes::new(100));
        let far = t.next();
        t.set_group(Instant::ZERO, 10, 0, false);
        let expected = far.since(Instant::ZERO).mul_f64(0.01);
        assert_eq!(t.next().since(Instant::ZERO), expected);
    }

    #[test]
    fn a_bye_waits_only_in_a_large_group() {
        let mut t = timing(Rate::kbps(100.0), false, 3);
        t.set_group(Instant::ZERO, 50, 0, false);
        assert!(t.leave(Instant::ZERO, Bytes::new(60)));
        t.set_group(Instant::ZERO, 51, 0, false);
        assert!(!t.leave(Instant::ZERO, Bytes::new(60)));
        // 1,000 others leave too: this BYE waits for its share of 5 kbit/s, 1,001 × 60 × 8 / 5,000 = 96 s
        (0..1_000).for_each(|_| t.on_bye_while_leaving(Bytes::new(60)));
        let first = t.next();
        assert_eq!(t.on_timer(first), Due::NotYet);
        assert!((39.0..119.0).contains(&t.next().as_secs_f64()), "{}", t.next());
        let mut tries = 0;
        while {
            let next = t.next();
            t.on_timer(next) != Due::Bye
        } {
            tries += 1;
            assert!(tries < 100);
        }
    }
}
