//! Media that flows share: a satellite with its terminals, a wireless link with its users.

use super::links::share;
use crate::delays::ms;
use fairpace_path::{DamaSpec, DropReason};
use fairpace_sim::{RadioReport, SatelliteReport, TerminalReport, UserReport};
use fairpace_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

/// A satellite, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SatelliteSummary {
    /// Carriers that the terminals share.
    pub carriers: u32,
    /// Bits transmitted / bits that all carriers could have carried.
    pub utilization: f64,
    /// T_f.
    pub multi_frame_ms: f64,
    /// T_b = T_r.
    pub super_frame_ms: f64,
    /// T_a.
    pub allocation_delay_ms: f64,
    /// RTT_m.
    pub mean_rtt_ms: f64,
    /// The terminals that flows are attached to.
    pub terminals: Vec<TerminalSummary>,
}

/// A terminal, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerminalSummary {
    /// Its number, from 0.
    pub terminal: u32,
    /// The carrier it is on.
    pub carrier: u32,
    /// The rate that left in the terminal's slots.
    pub throughput_bps: f64,
    /// Packets that came to its uplink queue.
    pub offered_packets: u64,
    /// Of these, refused because the queue was full.
    pub dropped_packets: u64,
    /// Packets that left in its slots.
    pub transmitted_packets: u64,
    /// Slots in which it sent something.
    pub slots_used: u64,
    /// Time in the queue, to the end of the packet's last slot; null if nothing left.
    pub wait_mean_ms: Option<f64>,
    /// The longest its queue ever was.
    pub queue_max_packets: u64,
    /// The decisions of the terminal's Quick-Start agent; null if the agent was never asked.
    pub quick_start: Option<AgentSummary>,
}

/// A wireless link, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WirelessSummary {
    /// How long a slot lasts (τ).
    pub slot_ms: f64,
    /// Bytes that a slot carries.
    pub slot_bytes: u64,
    /// One per user.
    pub users: Vec<UserSummary>,
}

/// A user of a wireless link, over the measured window. Each slot of the link is one of used, silent, waiting and idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserSummary {
    /// Its number, from 0.
    pub user: u32,
    /// The rate that reached the user.
    pub throughput_bps: f64,
    /// The same in packets per slot of the link: normalized throughput.
    pub packets_per_slot: f64,
    /// Packets dropped at the base station because the queue was full.
    pub dropped_packets: u64,
    /// Packets lost on the link: not sent again, or given up.
    pub given_up_packets: u64,
    /// Slots in which something was sent to it.
    pub slots_used: u64,
    /// Of these, those that failed.
    pub slots_failed: u64,
    /// Slots of silence after a failure, with something to send.
    pub slots_silent: u64,
    /// Slots of others, with something to send.
    pub slots_waiting: u64,
    /// Slots with nothing to send.
    pub slots_idle: u64,
    /// Failed / used; null if nothing was sent.
    pub error_ratio: Option<f64>,
    /// Queue averaged over time, the packet under way included.
    pub queue_mean_packets: f64,
    /// The longest the queue was.
    pub queue_max_packets: u64,
}

/// The decisions of a terminal's Quick-Start agent, in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Requests approved as they were.
    pub approved: u64,
    /// Requests approved at a lower rate.
    pub reduced: u64,
    /// Requests refused, for whatever reason.
    pub refused: u64,
}

impl WirelessSummary {
    pub(super) fn new(slot: Duration, slot_size: Bytes, found: &RadioReport, window: Duration) -> WirelessSummary {
        WirelessSummary {
            slot_ms: ms(slot),
            slot_bytes: slot_size.get(),
            users: found.users.iter().map(|u| UserSummary::new(u, window, slot)).collect(),
        }
    }
}

impl UserSummary {
    pub(super) fn new(u: &UserReport, window: Duration, slot: Duration) -> UserSummary {
        let m = &u.measured;
        let all = m.link.total();
        let seconds = window.as_secs_f64();
        let delivered = all.delivered;
        UserSummary {
            user: u.user,
            throughput_bps: share(delivered.bytes.as_f64() * 8.0, seconds).unwrap_or(0.0),
            packets_per_slot: share(delivered.packets.as_f64() * slot.as_secs_f64(), seconds).unwrap_or(0.0),
            dropped_packets: all.dropped(DropReason::QueueFull).packets.get(),
            given_up_packets: all.dropped(DropReason::LinkError).packets.get(),
            slots_used: m.used,
            slots_failed: m.failed,
            slots_silent: m.silent,
            slots_waiting: m.waiting,
            slots_idle: m.idle,
            error_ratio: share(m.failed as f64, m.used as f64),
            queue_mean_packets: m.link.mean_queue(),
            queue_max_packets: m.link.max_queue.get(),
        }
    }
}

impl SatelliteSummary {
    pub(super) fn new(spec: &DamaSpec, found: &SatelliteReport, window: Duration) -> SatelliteSummary {
        SatelliteSummary {
            carriers: found.carriers,
            utilization: found.utilization,
            multi_frame_ms: ms(spec.multi_frame()),
            super_frame_ms: ms(spec.super_frame()),
            allocation_delay_ms: ms(spec.allocation_delay()),
            mean_rtt_ms: ms(spec.mean_rtt()),
            terminals: found.terminals.iter().map(|t| TerminalSummary::new(t, window)).collect(),
        }
    }
}

impl TerminalSummary {
    pub(super) fn new(t: &TerminalReport, window: Duration) -> TerminalSummary {
        let m = &t.measured;
        TerminalSummary {
            terminal: t.terminal,
            carrier: t.carrier,
            throughput_bps: share(m.transmitted.bytes.as_f64() * 8.0, window.as_secs_f64()).unwrap_or(0.0),
            offered_packets: m.offered.packets.get(),
            dropped_packets: m.dropped.packets.get(),
            transmitted_packets: m.transmitted.packets.get(),
            slots_used: m.slots_used,
            wait_mean_ms: (m.transmitted.packets.get() > 0).then(|| ms(m.mean_wait())),
            queue_max_packets: m.max_queue.get(),
            quick_start: t.quick_start.map(|q| AgentSummary {
                approved: q.approved,
                reduced: q.reduced,
                refused: q.refused.iter().sum(),
            }),
        }
    }
}
