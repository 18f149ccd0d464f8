//! Times without signal: what is transmitted (or received) then is lost.

use crate::{Outage, OutageAt};
use fairpace_units::Instant;

/// The outages of a link: sorted, apart from each other, none of them empty.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    at: OutageAt,
    /// First dark instant, first instant with signal again.
    dark: Vec<(Instant, Instant)>,
}

impl Outages {
    pub(crate) fn new(outages: &[Outage], at: OutageAt) -> Self {
        let mut all: Vec<_> = outages.iter().map(|o| (o.start, o.start + o.length)).filter(|(a, b)| a < b).collect();
        all.sort_unstable();
        let mut dark: Vec<(Instant, Instant)> = Vec::with_capacity(all.len());
        for (start, end) in all {
            match dark.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => dark.push((start, end)),
            }
        }
        Outages { at, dark }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.dark.is_empty()
    }

    /// Whether a packet is lost whose first bit leaves at `start`, whose last leaves at
    /// `departure` and arrives at `exit`.
    #[inline]
    pub(crate) fn hit(&self, start: Instant, departure: Instant, exit: Instant) -> bool {
        match self.at {
            OutageAt::Transmitter => self.dark_within(start, departure),
            OutageAt::Receiver => self.dark_within(start + exit.since(departure), exit),
        }
    }

    /// Whether there was no signal at some time from `first` on and before `last`; if they are
    /// equal, at that instant.
    fn dark_within(&self, first: Instant, last: Instant) -> bool {
        let next = self.dark.partition_point(|&(_, end)| end <= first);
        self.dark.get(next).is_some_and(|&(start, _)| start < last || start <= first)
    }
}
