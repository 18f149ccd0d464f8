//! How much protection: from the loss, the round trip and the play-out delay to a [`Plan`], or to none.
//!
//! Two things repair a loss: to send again, which costs little and takes a round trip, and repair packets, which cost
//! bandwidth all the time and take a few packets. So repair packets are for what sending again cannot bring in time.
//!
//! - p: loss; b: mean length of its bursts, in packets; n: packets per second, D: play-out delay.
//! - Sending again: k = floor((D - 30 ms) / RTT) answers come in time, all of them lost with q = q1^(k - 1) q2. A request is said twice,
//!   and of the last answer a copy leaves 30 ms after (`docs/rtp/repair.md`): the second of two is lost with the first with
//!   c = max(p, (1 - 1/b)^(n 30 ms)), that a burst lasts so long. q1 = 1 - (1 - p c) (1 - p) for a request and one answer, q2 = 1 - (1 - p c)^2
//!   with its copy. Bursts are taken to be shorter than a round trip.
//! - Repair packets: R of them per window of w packets repair r(R) = R - 2 losses (a random matrix over GF(2) lacks 1.6
//!   ranks on average), and one in any case, because each media packet is in the very next repair packet. The losses
//!   among N = w + R packets are those of bursts that begin at random (Poisson, mean lambda = p N / b), each of geometric
//!   length: the distribution of Pólya and Aeppli [Johnson, Kemp, Kotz, Univariate Discrete Distributions]. With
//!   t = 1 - 1/b:
//!   P(0) = exp(-lambda), i P(i) = (lambda (1 - t) + 2 t (i - 1)) P(i - 1) - t^2 (i - 2) P(i - 2).
//!   Then f(R) = (p N - sum over i <= r(R) of i P(i)) / N stays lost. Runs leave between twice that, because losses of the
//!   window before wait too, and a sixth where little stays.
//! - The least R with f(R) q below what is tolerated is taken: min(b, m) / (n T), which damages one frame of m packets in
//!   T = 30 s, where losses of one burst fall into one frame.

use super::encoder::Plan;
use super::header::MASK_BITS;
use fairpace_units::{Duration, Instant, Probability};

/// Mean time between damaged frames that is tolerated.
const TOLERATED: Duration = Duration::from_secs(30);
/// From the arrival of what shows a gap to the request, said twice: `docs/rtp/repair.md`.
const DETECTION: Duration = Duration::from_millis(30);
/// Between the two sendings of a request, and of the last answer that can be in time.
const APART_S: f64 = 0.03;
/// A lower need counts after it has lasted this long; a higher one at once.
const HOLD: Duration = Duration::from_secs(5);

/// The path and the media as they are now, measured by whoever asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Share of packets lost.
    pub loss: Probability,
    /// Mean number of packets lost in a row, 1 or more; less counts as 1.
    pub burst: f64,
    /// Round-trip time.
    pub rtt: Duration,
    /// The receiver's play-out delay: a packet is of use so long after it would have arrived.
    pub playout: Duration,
    /// Media packets per second.
    pub packets_per_s: f64,
    /// Media packets of a usual frame, 1 or more; less counts as 1.
    pub frame: f64,
    /// Whether lost packets are sent again when asked for.
    pub retransmission: bool,
    /// Share of the target rate that is sent again, measured.
    pub sent_again: Probability,
}

/// The reason for a [`Decision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Losses are so rare that nothing need be done.
    Quiet,
    /// Sending again brings enough in time.
    RetransmissionSuffices,
    /// Repair packets bring the loss below what is tolerated.
    Protects,
    /// As many repair packets as the share allows: they help, but not as much as wanted.
    Limited,
    /// Repair packets within the share would not halve the loss: too much of it, bursts too long, or too few packets
    /// within the play-out delay.
    Hopeless,
}

impl Reason {
    /// A word for tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Quiet => "quiet",
            Reason::RetransmissionSuffices => "retransmission_suffices",
            Reason::Protects => "protects",
            Reason::Limited => "limited",
            Reason::Hopeless => "hopeless",
        }
    }
}

/// Whether to send repair packets, how many, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// `None`: no repair packets.
    pub plan: Option<Plan>,
    /// The reason for that.
    pub reason: Reason,
}

impl Decision {
    fn overhead(&self) -> f64 {
        self.plan.map_or(0.0, |p| p.overhead.get())
    }
}

/// Decides how much protection, again and again. More is decided at once, less after it has sufficed for 5 s.
#[derive(Clone, Debug)]
pub struct Protection {
    share: Probability,
    current: Decision,
    /// Since when less would do, with the most that was needed since.
    less: Option<(Instant, Decision)>,
}

impl Protection {
    /// Protection where repair packets and what is sent again take at most `share` of the target rate together.
    pub const fn new(share: Probability) -> Self {
        let current = Decision { plan: None, reason: Reason::Quiet };
        Protection { share, current, less: None }
    }

    /// The decision in force.
    pub const fn current(&self) -> Decision {
        self.current
    }

    /// The decision for what was measured up to `now`; `now` does not go back.
    pub fn update(&mut self, now: Instant, conditions: &Conditions) -> Decision {
        let wanted = decide(conditions, self.share);
        // The share is a bound at every instant, also while a lower need waits.
        let bound = most(conditions, self.share);
        if wanted.overhead() >= self.current.overhead() || self.current.overhead() > bound {
            self.current = wanted;
            self.less = None;
            return self.current;
        }
        let (since, most) = match self.less {
            Some((since, most)) if most.overhead() >= wanted.overhead() => (since, most),
            Some((since, _)) => (since, wanted),
            None => (now, wanted),
        };
        self.less = Some((since, most));
        if now >= since + HOLD {
            self.current = most;
            self.less = None;
        }
        self.current
    }
}

/// The most repair packets per media packet that the share leaves: of a rate, h / (1 + h) are repair packets.
fn most(c: &Conditions, share: Probability) -> f64 {
    let left = (share.get() - c.sent_again.get()).clamp(0.0, 0.5);
    left / (1.0 - left)
}

fn decide(c: &Conditions, share: Probability) -> Decision {
    let off = |reason| Decision { plan: None, reason };
    let (p, b) = (c.loss.get(), c.burst.max(1.0));
    if !(c.packets_per_s > 0.0 && b.is_finite()) {
        return off(Reason::Quiet);
    }
    let tolerated = b.min(c.frame.max(1.0)) / (c.packets_per_s * TOLERATED.as_secs_f64());
    if p <= tolerated {
        return off(Reason::Quiet);
    }
    let again = if c.retransmission { all_answers_lost(c) } else { 1.0 };
    if p * again <= tolerated {
        return off(Reason::RetransmissionSuffices);
    }
    let within = (c.packets_per_s * c.playout.as_secs_f64()).min(f64::from(MASK_BITS));
    let window = within as u16;
    let limit = (f64::from(window) * most(c, share)) as u16;
    let plan = |repairs: u16| {
        let overhead = f64::from(repairs) / f64::from(window);
        Some(Plan { window, overhead: Probability::new(overhead).unwrap_or(Probability::ONE) })
    };
    for repairs in 1..=limit {
        if remaining(p, b, window, repairs) * again <= tolerated {
            return Decision { plan: plan(repairs), reason: Reason::Protects };
        }
    }
    if limit > 0 && remaining(p, b, window, limit) <= p / 2.0 {
        return Decision { plan: plan(limit), reason: Reason::Limited };
    }
    off(Reason::Hopeless)
}

/// q of the file's head: the probability that each answer which could come within the play-out delay is lost; 1 if none could.
fn all_answers_lost(c: &Conditions) -> f64 {
    let (p, b) = (c.loss.get(), c.burst.max(1.0));
    let tries = c.playout.saturating_sub(DETECTION).as_nanos() / c.rtt.as_nanos().max(1);
    let Some(earlier) = tries.min(64).checked_sub(1) else { return 1.0 };
    let both = p * libm::pow(1.0 - 1.0 / b, c.packets_per_s * APART_S).max(p);
    let (one, last) = (1.0 - (1.0 - both) * (1.0 - p), 1.0 - (1.0 - both) * (1.0 - both));
    (0..earlier).fold(last, |all, _| all * one)
}

/// f(R) of the file's head: the share of packets that stays lost with so many repair packets per window.
fn remaining(p: f64, b: f64, window: u16, repairs: u16) -> f64 {
    let n = f64::from(window) + f64::from(repairs);
    let (lambda, t) = (p * n / b, 1.0 - 1.0 / b);
    let (mut before, mut last, mut repaired) = (0.0, libm::exp(-lambda), 0.0);
    let most = repairs.saturating_sub(2).max(1).min(repairs);
    for i in 1..=most {
        let i = f64::from(i);
        let next = ((lambda * (1.0 - t) + 2.0 * t * (i - 1.0)) * last - t * t * (i - 2.0) * before) / i;
        (before, last) = (last, next);
        repaired += i * next;
    }
    ((p * n - repaired) / n).max(0.0)
}

#[cfg(test)]
mod tests;
