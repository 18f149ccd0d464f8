//! The part of a plain link that most packets touch.

use fairpace_units::Instant;

/// A plain link as a packet sees it that is as large as those before: such packets pass by arithmetic, and are only counted. Apart from its link, so that a
/// driver of many links can have many of them in a near cache. Whatever else passes takes [`PlainLink::pass`], which leaves the lane as it
/// is to be then.
///
/// A lane belongs to one link, and is closed at first.
///
/// [`PlainLink::pass`]: super::PlainLink::pass
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    /// When the last packet departs.
    pub(super) busy_until: Instant,
    /// How large each is that may pass here.
    pub(super) size: u32,
    /// How long each is transmitted, in nanoseconds.
    pub(super) took: u32,
    /// How long each may stay in queue and transmitter, since there is no room for more; 4.29 s at most. Only as long as it is transmitted where packets do
    /// not follow each other in whole nanoseconds, or others than these are in front; less than that, if none may pass.
    pub(super) limit: u32,
    /// Nanoseconds on the way.
    pub(super) propagation: u32,
    /// Packets that passed, and are not in the link's counts.
    pub(super) packets: u32,
    /// How long one of them stayed at most, and all together.
    pub(super) longest_ns: u32,
    pub(super) stay_ns: u64,
    /// How long the transmitter was idle before them.
    pub(super) idle_ns: u64,
}

impl Default for Lane {
    fn default() -> Self {
        Lane {
            busy_until: Instant::ZERO,
            size: u32::MAX,
            took: 1,
            limit: 0,
            propagation: 0,
            packets: 0,
            longest_ns: 0,
            stay_ns: 0,
            idle_ns: 0,
        }
    }
}

impl Lane {
    /// A packet of so many bytes and of normal priority enters the link at that instant, no earlier than any before. When it comes out; `None` if it
    /// cannot pass here, and nothing has changed.
    #[inline(always)]
    pub fn pass(&mut self, at: Instant, size: u64) -> Option<Instant> {
        if size != u64::from(self.size) {
            return None;
        }
        let (arrival, busy_until) = (at.as_nanos(), self.busy_until.as_nanos());
        let begin = arrival.max(busy_until);
        let departure = begin.checked_add(self.took.into())?;
        let stay = departure - arrival;
        if stay > self.limit.into() {
            return None;
        }
        self.packets = self.packets.checked_add(1)?;
        self.idle_ns += begin - busy_until;
        // So many stays of 32 bits.
        self.stay_ns += stay;
        self.longest_ns = self.longest_ns.max(stay as u32);
        self.busy_until = Instant::from_nanos(departure);
        Some(Instant::from_nanos(departure.saturating_add(self.propagation.into())))
    }
}
