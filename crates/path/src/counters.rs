//! Counters of a link: packets and bytes per class, drops by reason, how long it was busy and how full the queue was.

use fairpace_units::{Bytes, Class, Duration, Packets};

/// Why a packet did not come out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// The packet arrived at a queue without room for it.
    QueueFull,
    /// The queue's management dropped it, on arrival or when its turn came, though there was room.
    Early,
    /// The packet was waiting, and a normal packet needed its place.
    PushedOut,
    /// The packet was transmitted and damaged on the way.
    LinkError,
    /// The packet was transmitted while the link was dark.
    Outage,
}

impl DropReason {
    /// All reasons, in the order of their columns.
    pub const ALL: [DropReason; 5] =
        [DropReason::QueueFull, DropReason::Early, DropReason::PushedOut, DropReason::LinkError, DropReason::Outage];
    /// How many there are.
    pub const COUNT: usize = DropReason::ALL.len();

    /// The word used in CSV, JSON and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Early => "early",
            DropReason::PushedOut => "pushed_out",
            DropReason::LinkError => "link_error",
            DropReason::Outage => "outage",
        }
    }
}

/// A number of packets and the bytes in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// How many.
    pub packets: Packets,
    /// How large together.
    pub bytes: Bytes,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, size: Bytes) {
        self.packets += Packets::new(1);
        self.bytes += size;
    }

    pub(crate) fn plus(self, other: Count) -> Count {
        Count { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    pub(crate) fn minus(self, other: Count) -> Count {
        Count { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

/// The counts of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounters {
    /// Handed to [`Link::push`](crate::Link::push).
    pub offered: Count,
    /// Handed out by [`Link::pop`](crate::Link::pop).
    pub delivered: Count,
    pub(crate) drops: [Count; DropReason::COUNT],
}

impl ClassCounters {
    /// Dropped for that reason. Damage and outage count when the packet's last bit leaves the
    /// transmitter, the others when they happen.
    pub const fn dropped(&self, reason: DropReason) -> Count {
        self.drops[reason as usize]
    }

    /// Dropped for any reason.
    pub fn dropped_in_all(&self) -> Count {
        self.drops.iter().fold(Count::default(), |sum, &c| sum.plus(c))
    }

    fn combine(&self, other: &ClassCounters, op: fn(Count, Count) -> Count) -> ClassCounters {
        ClassCounters {
            offered: op(self.offered, other.offered),
            delivered: op(self.delivered, other.delivered),
            drops: core::array::from_fn(|i| op(self.drops[i], other.drops[i])),
        }
    }
}

/// The counts of a link since it was made, up to the latest time that any call has told it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    pub(crate) classes: [ClassCounters; 2],
    /// Packets whose last bit has left the transmitter, lost later or not. The bits of these
    /// divided by what the link could carry ([`Link::capacity_between`](crate::Link::capacity_between))
    /// is its utilization when the rate varies.
    pub transmitted: Count,
    /// Packets that the queue marked "congestion experienced" instead of dropping them; lost later
    /// or not.
    pub marked: Count,
    /// The most packets the queue ever held, the one in transmission included.
    pub max_queue: Packets,
    /// The most bytes the queue ever held, the packet in transmission included.
    pub max_queue_bytes: Bytes,
    pub(crate) elapsed_ns: u64,
    pub(crate) busy_ns: u64,
    // Integrals of the queue over time: exact, and too large for 64 bits after an hour or so.
    pub(crate) packet_ns: u128,
    pub(crate) byte_ns: u128,
}

impl LinkCounters {
    /// The counts of one class.
    pub const fn class(&self, class: Class) -> &ClassCounters {
        &self.classes[class as usize]
    }

    /// Both classes together.
    pub fn total(&self) -> ClassCounters {
        self.classes[0].combine(&self.classes[1], Count::plus)
    }

    /// Dropped for that reason, both classes together.
    pub fn dropped(&self, reason: DropReason) -> Count {
        self.classes[0].dropped(reason).plus(self.classes[1].dropped(reason))
    }

    /// The time that the averages cover.
    pub const fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns)
    }

    /// How long there was a packet in the queue or in transmission. A transmitter that stalls at
    /// rate zero with a packet in hand is busy.
    pub const fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns)
    }

    /// Busy time / elapsed time: the utilization of a link of fixed rate. Zero before any time has
    /// passed.
    pub fn utilization(&self) -> f64 {
        ratio(u128::from(self.busy_ns), self.elapsed_ns)
    }

    /// The queue averaged over time, in packets, the one in transmission included.
    pub fn mean_queue(&self) -> f64 {
        ratio(self.packet_ns, self.elapsed_ns)
    }

    /// The queue averaged over time, in bytes, the packet in transmission included in full.
    pub fn mean_queue_bytes(&self) -> f64 {
        ratio(self.byte_ns, self.elapsed_ns)
    }

    /// The counts after `earlier`, a copy of the same link's counters: the measured window. The maxima stay those of
    /// the whole run unless [`Link::restart_maximum`](crate::Link::restart_maximum) was called at the beginning of
    /// the window.
    #[must_use]
    pub fn since(&self, earlier: &LinkCounters) -> LinkCounters {
        LinkCounters {
            classes: core::array::from_fn(|i| self.classes[i].combine(&earlier.classes[i], Count::minus)),
            transmitted: self.transmitted.minus(earlier.transmitted),
            marked: self.marked.minus(earlier.marked),
            elapsed_ns: self.elapsed_ns.saturating_sub(earlier.elapsed_ns),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            packet_ns: self.packet_ns.saturating_sub(earlier.packet_ns),
            byte_ns: self.byte_ns.saturating_sub(earlier.byte_ns),
            ..*self
        }
    }
}

fn ratio(part: u128, whole_ns: u64) -> f64 {
    if whole_ns == 0 { 0.0 } else { part as f64 / whole_ns as f64 }
}
