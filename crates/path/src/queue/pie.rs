//! PIE: drops arrivals by a chance that a controller of the queuing delay sets.
//!
//! Source: RFC 8033, §4 and Appendix A (pseudo-code). Page: `docs/links/pie.md`.
//!
//! | RFC | here | unit | set by |
//! | --- | --- | --- | --- |
//! | QDELAY_REF, T_UPDATE, MAX_BURST | `target`, `update_interval`, `max_burst` | ns | parameter, 15, 15, 150 ms |
//! | alpha, beta | `alpha`, `beta` | 1/s | parameter, 1/8, 5/4 |
//! | MEAN_PKTSIZE | `mean_packet_size` | bytes | parameter |
//! | `drop_prob_` | `drop_probability` | – | each update |
//! | `current_qdelay_`, `qdelay_old_` | `delay`, `old_delay` | ns | each begin of a transmission; each update |
//! | `burst_allowance_` | `burst_allowance` | ns | arrivals after a quiet time, each update |
//!
//! **Readings.** (a) The delay is that of the packet whose transmission began last, from its time
//! stamp [§4.3]; once nobody waits it is zero, or a stale one would drive the chance in an idle time.
//! (b) Updates happen at multiples of T_UPDATE since the run began, after departures and before
//! arrivals of the same instant. (c) The queue of §4.1 is what waits, without the packet in
//! transmission; the hard limit counts that too. (d) An increase is at most 0.02 while the chance is
//! at least 0.1 [§5.5, optional; Linux has it].
//!
//! **Not implemented.** The estimate from the departure rate [§5.2], which a time stamp makes
//! needless here, switching PIE off while the queue is short [§5.3], de-randomization [§5.4].

use super::{Found, Room, Verdict};
use crate::{DropReason, LinkError, PieParams};
use fairpace_units::{Instant, RandomStream};
use std::collections::VecDeque;

/// The state of a PIE queue. It never takes back what it admitted, so it holds no packets, only
/// when they begin.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    room: Room,
    target: u64,
    update_interval: u64,
    max_burst: u64,
    alpha: f64,
    beta: f64,
    mean_packet_size: u64,
    ecn: bool,
    mark_threshold: f64,
    drop_probability: f64,
    delay: u64,
    old_delay: u64,
    burst_allowance: u64,
    next_update: u64,
    /// When each admitted packet's transmission begins, and how long it will have waited.
    begins: VecDeque<(Instant, u64)>,
    random: RandomStream,
}

impl Pie {
    pub(crate) fn new(params: &PieParams, random: RandomStream) -> Result<Self, LinkError> {
        let bad = |field, found, allowed| Err(LinkError::BadQueue { field, found, allowed });
        for (field, duration) in [("target", params.target), ("update_interval", params.update_interval)] {
            if duration.is_zero() {
                return bad(field, 0.0, "above 0 s");
            }
        }
        for (field, found) in [("alpha", params.alpha), ("beta", params.beta)] {
            if !(found >= 0.0 && found.is_finite()) {
                return bad(field, found, "0 or above");
            }
        }
        if !(0.0..=1.0).contains(&params.mark_threshold) {
            return bad("mark_threshold", params.mark_threshold, "from 0 to 1");
        }
        if params.mean_packet_size.get() == 0 {
            return bad("mean_packet_size", 0.0, "at least 1 byte");
        }
        let nanos = |duration| (Instant::ZERO + duration).as_nanos();
        Ok(Pie {
            room: Room::new(params.capacity)?,
            target: nanos(params.target),
            update_interval: nanos(params.update_interval),
            max_burst: nanos(params.max_burst),
            alpha: params.alpha,
            beta: params.beta,
            mean_packet_size: params.mean_packet_size.get(),
            ecn: params.ecn,
            mark_threshold: params.mark_threshold,
            drop_probability: 0.0,
            delay: 0,
            old_delay: 0,
            burst_allowance: 0,
            next_update: nanos(params.update_interval),
            begins: VecDeque::new(),
            random,
        })
    }

    pub(crate) fn mean_packet_size(&self) -> u64 {
        self.mean_packet_size
    }

    /// Whether an arrival of `size` is let in [RFC 8033 §4.1, §4.4].
    pub(crate) fn decide(&mut self, now: Instant, found: Found, size: u64, ecn_capable: bool) -> Verdict {
        self.update_until(now);
        self.observe(now);
        // Drawn for each arrival, needed or not: a parameter shifts no later draw.
        let chance = self.random.uniform();
        if !self.room.fits(found.held, size) {
            return Verdict::Drop(DropReason::QueueFull);
        }
        if self.drop_probability == 0.0 && self.low(self.delay) && self.low(self.old_delay) {
            self.burst_allowance = self.max_burst;
        }
        let spared = self.burst_allowance > 0
            || (self.low(self.old_delay) && self.drop_probability < 0.2)
            || found.waiting.bytes <= 2 * self.mean_packet_size;
        if spared || chance >= self.drop_probability {
            Verdict::Admit
        } else if self.ecn && ecn_capable && self.drop_probability < self.mark_threshold {
            Verdict::Mark
        } else {
            Verdict::Drop(DropReason::Early)
        }
    }

    /// A packet that was let in at `arrival` has its transmission begin at `start`.
    pub(crate) fn admitted(&mut self, arrival: Instant, start: Instant) {
        self.begins.push_back((start, start.as_nanos() - arrival.as_nanos()));
    }

    /// All updates up to `now`.
    fn update_until(&mut self, now: Instant) {
        while self.next_update <= now.as_nanos() {
            self.observe(Instant::from_nanos(self.next_update));
            let quiet = self.begins.is_empty() && self.old_delay == 0;
            self.update();
            self.next_update = self.next_update.saturating_add(self.update_interval);
            // After a quiet time nothing changes any more: no need to walk through it.
            if quiet && self.drop_probability == 0.0 && self.burst_allowance == 0 && self.next_update <= now.as_nanos()
            {
                let behind = (now.as_nanos() - self.next_update) / self.update_interval;
                self.next_update += (behind + 1) * self.update_interval;
            }
        }
    }

    /// The delay at that time: of the packet that began last, and none once nobody waits.
    fn observe(&mut self, now: Instant) {
        while let Some(&(start, waited)) = self.begins.front()
            && start <= now
        {
            self.delay = waited;
            self.begins.pop_front();
        }
        if self.begins.is_empty() {
            self.delay = 0;
        }
    }

    /// p ← p + scale × (α (delay − target) + β (delay − old delay)) [RFC 8033 §4.2], then decay,
    /// bounds, and the burst allowance of §4.4.
    fn update(&mut self) {
        const DECAY: f64 = 0.98;
        const MOST_AT_ONCE: f64 = 0.02;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut step = self.alpha * (seconds(self.delay) - seconds(self.target))
            + self.beta * (seconds(self.delay) - seconds(self.old_delay));
        step /= scale(self.drop_probability);
        if self.drop_probability >= 0.1 {
            step = step.min(MOST_AT_ONCE);
        }
        self.drop_probability += step;
        if self.delay == 0 && self.old_delay == 0 {
            self.drop_probability *= DECAY;
        }
        self.drop_probability = self.drop_probability.clamp(0.0, 1.0);
        self.old_delay = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.update_interval);
    }

    fn low(&self, delay: u64) -> bool {
        delay < self.target / 2
    }
}

/// By how much steps are smaller while the chance is low, so that they stay in proportion to it
/// [RFC 8033 §4.2].
fn scale(drop_probability: f64) -> f64 {
    match drop_probability {
        p if p < 0.000_001 => 2_048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}
