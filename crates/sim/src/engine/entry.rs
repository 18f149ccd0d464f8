//! An event, as others see it and as it waits, and which of two comes first.

use std::cmp::Ordering;

use fairpace_units::Instant;

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The instant at which it comes.
    pub at: Instant,
    /// The number of the medium or timer that it is of.
    pub target: u32,
    /// A number that comes with it; [`Event::NOTHING`] if it was pushed without. The order does not depend on it: whoever has several
    /// events of one target brings none of them to one instant.
    pub cargo: u32,
}

impl Event {
    /// The bits of a target behind its kind.
    pub const INDEX_BITS: u32 = 28;

    /// The bit of targets whose order among those of their kind changes from instant to instant.
    pub const DRAWN: u32 = 1 << 31;

    /// The cargo of an event that has none.
    pub const NOTHING: u32 = u32::MAX;
}

/// A pending event, in two words, which are copied in registers: of more parts, it would be written to the stack and read at once, which stalls. In the
/// order in which events come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    pub(super) at: u64,
    /// The target, above it the cargo.
    target_and_cargo: u64,
}

impl Entry {
    /// No event, behind all.
    pub(super) const LAST: Entry = Entry { at: u64::MAX, target_and_cargo: u64::MAX };

    #[inline(always)]
    pub(super) fn new(at: Instant, target: u32, cargo: u32) -> Self {
        Entry { at: at.as_nanos(), target_and_cargo: u64::from(target) | u64::from(cargo) << 32 }
    }

    #[inline(always)]
    pub(super) fn target(self) -> u32 {
        self.target_and_cargo as u32
    }

    #[inline(always)]
    pub(super) fn event(self) -> Event {
        Event { at: Instant::from_nanos(self.at), target: self.target(), cargo: (self.target_and_cargo >> 32) as u32 }
    }

    /// Whether the other one comes first. Equal times are few, and compared apart.
    #[inline(always)]
    pub(super) fn is_after(&self, other: &Entry) -> bool {
        self.at > other.at || (self.at == other.at && self.ranks_after(other))
    }

    /// Whether the other one, of the same instant, comes first.
    #[cold]
    #[inline(never)]
    fn ranks_after(&self, other: &Entry) -> bool {
        rank(self.at, self.target()) > rank(other.at, other.target())
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        let ranks = || rank(self.at, self.target()).cmp(&rank(other.at, other.target()));
        self.at.cmp(&other.at).then_with(ranks).then_with(|| self.target_and_cargo.cmp(&other.target_and_cargo))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The place of a target among those of one instant: its kind, for those that are drawn a number made of time and target, and the target.
pub(super) fn rank(at: u64, target: u32) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (kind, index) = (target >> Event::INDEX_BITS, u64::from(target & ((1 << Event::INDEX_BITS) - 1)));
    let drawn = if target & Event::DRAWN == 0 { 0 } else { mixed(at ^ index.wrapping_mul(ODD)) >> 32 };
    (u64::from(kind) << 32 | drawn) << Event::INDEX_BITS | index
}

/// A number of which each bit depends on all of that one: the last step of SplitMix64 [Steele, Lea and Flood 2014].
fn mixed(mut number: u64) -> u64 {
    for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
        number = (number ^ (number >> shift)).wrapping_mul(factor);
    }
    number ^ (number >> 31)
}
