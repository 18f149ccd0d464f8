//! Step 3: the link of a plan, and the choice of its ARQ.

use super::{Need, Planner};
use fairpace_path::{ArqScheme, ArqSpec, ArqUser, Capacity, Channel};
use fairpace_units::{Bytes, Duration, Rate};

/// A wireless link of slots that hold one packet each. The flows that are planned for are user 0; who else has slots is user 1.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLink {
    /// The rate if every slot succeeds.
    pub rate: Rate,
    /// The packets, headers included; each takes a slot.
    pub packet_size: Bytes,
    /// The channel, one step per slot.
    pub channel: Channel,
    /// The answer to a failed slot; none: the paper's choice, [`PlannedLink::spec`].
    pub scheme: Option<ArqScheme>,
    /// Slots between a failure and the next try.
    pub retry_delay: u32,
    /// The slots that the flows have, and those that there are.
    pub slots: (u32, u32),
}

impl PlannedLink {
    /// A slot: the time of one packet.
    pub fn slot(&self) -> Duration {
        self.packet_size / self.rate
    }

    /// The link, with the scheme that is given. Without one it is the paper's choice [aimd §IV]: `optimal` for a channel with
    /// memory, unless that is too slow for what the flows need together, else `persistent`.
    pub fn spec(&self, needs: &[Need]) -> ArqSpec {
        let user = |weight| ArqUser { weight, buffer: Capacity::Unlimited, channel: self.channel.clone() };
        let (own, all) = self.slots;
        let users = if own == all { vec![user(1)] } else { vec![user(own), user(all - own)] };
        let with = |scheme| ArqSpec {
            slot: self.slot(),
            slot_size: self.packet_size,
            scheme,
            retry_delay: self.retry_delay,
            delay: Duration::ZERO,
            work_conserving: false,
            users: users.clone(),
        };
        if let Some(scheme) = self.scheme {
            return with(scheme);
        }
        let silent = with(ArqScheme::Optimal);
        let needed: Rate = needs.iter().filter_map(|n| n.throughput).fold(Rate::ZERO, |sum, rate| sum + rate);
        let enough = || Planner::new(&silent, 0).is_ok_and(|p| p.capacity() >= needed);
        // Rounding leaves a trace of memory where there is none.
        if self.channel.memory() > 1e-9 && enough() { silent } else { with(ArqScheme::Persistent) }
    }
}
