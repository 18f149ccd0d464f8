//! The media that a flow passes, and in which order.
//!
//! A scenario without `[[hop]]` has the hops that its tables `[path]`, `[satellite]` and `[wireless]` say; both ways of
//! writing are one list here ([`RawScenario::hops`]), and everything that follows from it is written once.

use crate::{FlowSpec, HopKind, HopSpec, PathSpec, RawScenario, SatelliteSpec, WirelessSpec};
use std::ops::RangeInclusive;

/// A hop, however the scenario says it.
#[derive(Clone, Copy, Debug)]
pub enum Hop<'a> {
    /// A link each way.
    Link(&'a PathSpec),
    /// A satellite.
    Satellite(&'a SatelliteSpec),
    /// A wireless link.
    Wireless(&'a WirelessSpec),
}

/// Why a flow's `enter` and `leave` name no way.
pub(super) enum NoWay {
    /// `enter` or `leave` names no hop.
    Unknown(&'static str),
    /// `leave` comes before `enter`.
    Backwards,
}

impl RawScenario {
    /// The hops in the order in which data passes them, with their names; `None` for those that `[path]`, `[satellite]`
    /// and `[wireless]` say, whose names are the usual ones. A `[path]` is there even if a satellite takes its place.
    pub fn hops(&self) -> Vec<(Option<&str>, Hop<'_>)> {
        if self.hop.is_empty() {
            let satellite = self.satellite.as_ref().map(Hop::Satellite);
            let wireless = self.wireless.as_ref().map(Hop::Wireless);
            let all = std::iter::once(Hop::Link(&self.path)).chain(satellite).chain(wireless);
            return all.map(|hop| (None, hop)).collect();
        }
        self.hop.iter().filter_map(|h| Some((Some(h.name.as_str()), hop_of(self, h)?))).collect()
    }

    /// The places in [`RawScenario::hops`] of those that a flow passes, in order.
    pub fn way(&self, flow: &FlowSpec) -> Vec<usize> {
        if self.hop.is_empty() {
            let first = usize::from(self.satellite.is_some());
            let last = self.wireless.is_some() && flow.user.is_some();
            return std::iter::once(first).chain(last.then_some(first + 1)).collect();
        }
        self.range(flow).map_or_else(|_| Vec::new(), |range| range.collect())
    }

    /// The hops from a flow's `enter` to its `leave`, where the scenario has `[[hop]]`.
    pub(super) fn range(&self, flow: &FlowSpec) -> Result<RangeInclusive<usize>, NoWay> {
        let place = |key, name: &Option<String>, default| match name {
            None => Ok(default),
            Some(name) => self.hop.iter().position(|h| h.name == *name).ok_or(NoWay::Unknown(key)),
        };
        let (enter, leave) =
            (place("enter", &flow.enter, 0)?, place("leave", &flow.leave, self.hop.len().saturating_sub(1))?);
        if enter > leave { Err(NoWay::Backwards) } else { Ok(enter..=leave) }
    }

    /// Whether a flow passes a hop of that kind.
    pub fn passes(&self, flow: &FlowSpec, kind: HopKind) -> bool {
        let hops = self.hops();
        self.way(flow).iter().filter_map(|i| hops.get(*i)).any(|(_, hop)| hop.kind() == kind)
    }
}

impl Hop<'_> {
    /// The kind of the hop.
    pub fn kind(&self) -> HopKind {
        match self {
            Hop::Link(_) => HopKind::Link,
            Hop::Satellite(_) => HopKind::Satellite,
            Hop::Wireless(_) => HopKind::Wireless,
        }
    }
}

/// `None` if what the hop needs is missing, which a checked scenario is not.
fn hop_of<'a>(scenario: &'a RawScenario, hop: &'a HopSpec) -> Option<Hop<'a>> {
    match hop.kind {
        HopKind::Link => hop.link.as_ref().map(Hop::Link),
        HopKind::Satellite => scenario.satellite.as_ref().map(Hop::Satellite),
        HopKind::Wireless => scenario.wireless.as_ref().map(Hop::Wireless),
    }
}
