//! The time that a packet needs on an empty path: the deterministic part of its delay, to which jitter adds.

use fairpace_path::{ArqSpec, LinkSpec, RateModel};
use fairpace_units::{Bytes, Duration};

use crate::config::{FlowConfig, SimConfig};
use crate::hop::HopConfig;
use crate::radio::RadioConfig;

impl SimConfig {
    /// The one-way delay of a full packet of that flow when nobody is before it: transmission and propagation on each
    /// hop, and its slots on the radio. A rate that varies counts with its greatest value, that of a recording with
    /// none at all, a satellite's terminal with the propagation, a medium from outside with nothing: then it is a
    /// lower bound.
    pub fn min_owd(&self, flow: &FlowConfig) -> Duration {
        let size = flow.packet_size;
        let access = [&flow.access.forward_in, &flow.access.forward_out].map(|link| least(link.as_ref(), size));
        let hops = self.hops_of(flow).map(|hop| match hop {
            HopConfig::Links { forward, .. } => least(Some(forward), size),
            HopConfig::Satellite { spec, .. } => spec.propagation,
            HopConfig::Radio { radio, .. } => {
                let ArqSpec { slot, slot_size, delay, .. } = &radio.downlink;
                let pieces = size.get().div_ceil(slot_size.get().max(1)).max(1);
                slot.saturating_mul(u32::try_from(pieces).unwrap_or(u32::MAX)).saturating_add(*delay)
            }
            HopConfig::Custom { .. } => Duration::ZERO,
        });
        access.into_iter().chain(hops).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// R as time [aimd §II]: [`SimConfig::min_owd`] and the same of its feedback, of `ack_size`. The packet's own
    /// slot on the radio is in it, waiting for that slot to begin is not: it is 0 for packets that feedback
    /// releases if all the rest is a multiple of the slot.
    pub fn min_rtt(&self, flow: &FlowConfig) -> Duration {
        let size = flow.ack_size;
        let access = [&flow.access.back_in, &flow.access.back_out].map(|link| least(link.as_ref(), size));
        let hops = self.hops_of(flow).map(|hop| match hop {
            HopConfig::Links { back, .. } => least(Some(back), size),
            HopConfig::Satellite { spec, .. } => spec.propagation,
            HopConfig::Radio { radio, .. } => least(radio.uplink.as_ref(), size),
            HopConfig::Custom { .. } => Duration::ZERO,
        });
        access.into_iter().chain(hops).fold(self.min_owd(flow), Duration::saturating_add)
    }

    /// The one-way delay beyond which a packet's delay jitter is above `tolerable`, D [aimd §III-C]: what
    /// [`FlowConfig::delay_bound`] should be. Over the radio jitter counts from R in whole slots: where
    /// [`SimConfig::min_rtt`] is not a multiple of the slot, packets that feedback releases wait for one each time.
    pub fn delay_bound(&self, flow: &FlowConfig, tolerable: Duration) -> Duration {
        let aligned = self.radio_of(flow).map_or(Duration::ZERO, |(radio, _)| {
            let (rtt, slot) = (self.min_rtt(flow).as_nanos(), radio.downlink.slot.as_nanos().max(1));
            Duration::from_nanos(u64::try_from(rtt.next_multiple_of(slot) - rtt).unwrap_or(0))
        });
        self.min_owd(flow).saturating_add(aligned).saturating_add(tolerable)
    }

    /// The first radio on a flow's route, and the flow's user there.
    pub fn radio_of(&self, flow: &FlowConfig) -> Option<(&RadioConfig, u32)> {
        flow.route.iter().find_map(|via| match self.hops.get(via.hop as usize) {
            Some(HopConfig::Radio { radio, .. }) => Some((radio, via.ports[0])),
            _ => None,
        })
    }

    /// The hops of a flow's route that are there.
    fn hops_of<'a>(&'a self, flow: &'a FlowConfig) -> impl Iterator<Item = &'a HopConfig> {
        flow.route.iter().filter_map(|via| self.hops.get(via.hop as usize))
    }
}

/// On one link; none if there is no such hop.
fn least(link: Option<&LinkSpec>, size: Bytes) -> Duration {
    let Some(link) = link else { return Duration::ZERO };
    let rate = match &link.rate {
        RateModel::Fixed(rate) => Some(*rate),
        RateModel::Schedule(entries) => entries.iter().map(|(_, rate)| *rate).reduce(|a, b| a.max(b)),
        RateModel::Unlimited | RateModel::Trace(_) => None,
    };
    // Rounded up, as links do it: a nanosecond too late is a slot later.
    let transmission = rate.map_or(0.0, |rate| (size.as_f64() * 8e9 / rate.as_bps() - 1e-6).ceil());
    Duration::from_nanos(transmission as u64).saturating_add(link.delay.propagation)
}
