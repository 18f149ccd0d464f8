//! The path of a relay: two links, told the real time.

use super::{LinkSample, RelayConfig, RelaySample};
use crate::{Mark, NetError};
use fairpace_path::{Datagram, Link, LinkSpec};
use fairpace_units::{Bytes, Class, Ecn, Instant, Rate};

/// Which way a packet travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From client to target.
    Forward,
    /// From target to client.
    Back,
}

/// A packet as the links see it; its bytes are in the store.
#[derive(Clone, Copy, Debug)]
struct Carried {
    size: Bytes,
    class: Class,
    ecn: Ecn,
    token: u64,
}

impl Datagram for Carried {
    fn size(&self) -> Bytes {
        self.size
    }
    fn class(&self) -> Class {
        self.class
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

/// A packet that came out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) direction: Direction,
    pub(super) token: u64,
    pub(super) size: Bytes,
    pub(super) ecn: Ecn,
    pub(super) at: Instant,
}

#[derive(Debug)]
pub(super) struct World {
    now: Instant,
    forward: Link<Carried>,
    back: Link<Carried>,
}

impl World {
    pub(super) fn new(config: &RelayConfig) -> Result<World, NetError> {
        let link = |field, spec: &LinkSpec, name| {
            let mut link = Link::new(spec, config.seed, name).map_err(|e| NetError::Config {
                field,
                found: "not a link".to_owned(),
                allowed: e.to_string(),
            })?;
            link.record_drops(true);
            Ok::<_, NetError>(link)
        };
        Ok(World {
            now: Instant::ZERO,
            forward: link("forward", &config.forward, "bottleneck")?,
            back: link("back", &config.back, "reverse")?,
        })
    }

    /// A packet arrives at the path; not before what it was told last.
    pub(super) fn inject(&mut self, at: Instant, direction: Direction, size: Bytes, mark: Mark, token: u64) {
        self.now = self.now.max(at);
        let packet = Carried { size, class: mark.dscp.class(), ecn: mark.ecn, token };
        match direction {
            Direction::Forward => self.forward.push(self.now, packet),
            Direction::Back => self.back.push(self.now, packet),
        }
    }

    pub(super) fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }

    pub(super) fn next(&self) -> Instant {
        self.forward.next().min(self.back.next())
    }

    /// What has come out, each direction in order.
    pub(super) fn take_delivered(&mut self) -> Option<Delivered> {
        for direction in [Direction::Forward, Direction::Back] {
            let link = if direction == Direction::Forward { &mut self.forward } else { &mut self.back };
            let at = link.next();
            if at <= self.now
                && let Some(p) = link.pop(self.now)
            {
                return Some(Delivered { direction, token: p.token, size: p.size, ecn: p.ecn, at });
            }
        }
        None
    }

    pub(super) fn take_dropped(&mut self) -> Option<u64> {
        self.forward.take_dropped().or_else(|| self.back.take_dropped()).map(|(_, _, p)| p.token)
    }

    pub(super) fn sample(&mut self, at: Instant, relayed: Bytes) -> RelaySample {
        self.now = self.now.max(at);
        let now = self.now;
        let link = |link: &mut Link<Carried>| {
            link.advance(now);
            let capacity = link.capacity_at(now);
            LinkSample {
                counters: *link.counters(),
                queue: link.queue_len() as u64,
                queue_bytes: link.queue_bytes(),
                capacity: (capacity < Rate::MAX).then_some(capacity),
            }
        };
        RelaySample { at, forward: link(&mut self.forward), back: link(&mut self.back), flows: Vec::new(), relayed }
    }
}
