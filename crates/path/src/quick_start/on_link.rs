//! The Quick-Start router in front of an ordinary link, which measures that link's load.
//!
//! Source: RFC 4782 §8.2, App. D: the bytes sent in each interval, and the average or the peak over the last N
//! intervals. The interval is `state_delay`, as in the RFC's example.
//!
//! **Readings.** (a) A link's capacity is what it could carry in the interval that ended last, so that a
//! changing one is known from measurement only. (b) Before the run began the link was idle.

use super::{Channel, Observation, QsCounters, QsError, QsRouter, RouterParams};
use fairpace_units::{Bytes, Duration, Instant, QsOption, RandomStream, Rate};

/// A router, and what it has measured.
#[derive(Clone, Debug)]
pub(crate) struct LinkRouter {
    router: QsRouter,
    channel: Channel,
    interval: Duration,
    /// The bytes that had been sent at the router's last look.
    sent: Bytes,
}

impl LinkRouter {
    pub(crate) fn new(params: &RouterParams, random: RandomStream, capacity: Rate) -> Result<Self, QsError> {
        let router = QsRouter::new(params, random)?;
        let mut link =
            LinkRouter { router, channel: Channel::new(params.load), interval: params.state_delay, sent: Bytes::ZERO };
        link.observe(capacity, Bytes::ZERO);
        Ok(link)
    }

    /// How long it measures.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// An interval ends: what the link could carry in it, and what it has sent in all its life.
    pub(crate) fn observe(&mut self, capacity: Rate, sent: Bytes) {
        let bits = (sent - self.sent).as_f64() * 8.0;
        self.sent = sent;
        let load = Rate::bps(bits / self.interval.as_secs_f64());
        self.channel.observe(Observation { capacity, assigned: load, free_assigned: Rate::ZERO, sent: load });
    }

    pub(crate) fn on_request(&mut self, now: Instant, source: u64, option: &mut QsOption) {
        self.router.on_request(now, source, option, || self.channel.sent());
    }

    pub(crate) fn counters(&self) -> &QsCounters {
        self.router.counters()
    }
}
