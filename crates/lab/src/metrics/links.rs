//! Links, and the reasons for which packets are dropped.

use fairpace_path::DropReason;
use fairpace_sim::LinkReport;
use fairpace_units::Class;
use serde::{Deserialize, Serialize};

/// One link, over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// `bottleneck`, `reverse`, or an access link's name.
    pub name: String,
    /// Bits transmitted / bits it could have carried; null if unlimited.
    pub utilization: Option<f64>,
    /// Packets that left the transmitter.
    pub transmitted_packets: u64,
    /// The same in bytes.
    pub transmitted_bytes: u64,
    /// Normal packets dropped, by reason.
    pub drops_packets: Drops,
    /// Low-priority packets dropped, by reason.
    pub low_drops_packets: Drops,
    /// Packets that the queue marked "congestion experienced".
    pub marked_packets: u64,
    /// Queue averaged over time, the packet in transmission included.
    pub queue_mean_packets: f64,
    /// The longest the queue was.
    pub queue_max_packets: u64,
}

/// Drops by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// No room in the queue.
    pub queue_full: u64,
    /// Dropped by the queue's management, though there was room.
    pub early: u64,
    /// Pushed out of the queue by an arrival that needed the place.
    pub pushed_out: u64,
    /// Damaged on the link.
    pub link_error: u64,
    /// The signal was gone.
    pub outage: u64,
}

/// `part / whole`, null if there is no whole.
pub(super) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl Drops {
    pub(super) fn by(count: impl Fn(DropReason) -> u64) -> Drops {
        Drops {
            queue_full: count(DropReason::QueueFull),
            early: count(DropReason::Early),
            pushed_out: count(DropReason::PushedOut),
            link_error: count(DropReason::LinkError),
            outage: count(DropReason::Outage),
        }
    }

    /// For any reason.
    pub fn in_all(&self) -> u64 {
        self.queue_full + self.early + self.pushed_out + self.link_error + self.outage
    }
}

impl LinkSummary {
    pub(super) fn new(l: &LinkReport) -> LinkSummary {
        let by = |class| Drops::by(|reason| l.measured().class(class).dropped(reason).packets.get());
        LinkSummary {
            name: l.name.clone(),
            utilization: l.utilization,
            transmitted_packets: l.measured().transmitted.packets.get(),
            transmitted_bytes: l.measured().transmitted.bytes.get(),
            drops_packets: by(Class::Normal),
            low_drops_packets: by(Class::Low),
            marked_packets: l.measured().marked.packets.get(),
            queue_mean_packets: l.measured().mean_queue(),
            queue_max_packets: l.measured().max_queue.get(),
        }
    }
}
