//! Times without signal: what is transmitted (or received) then is lost.

use crate::{InFlight, Outage, OutageAt};
use fairpace_units::Instant;

/// The outages of a link.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    at: OutageAt,
    /// Of one end of the link.
    ends: Dark,
    /// Of the whole link.
    whole: Dark,
}

/// First dark instants, first instants with signal again: sorted, apart from each other, none of them empty.
#[derive(Clone, Debug)]
struct Dark(Vec<(Instant, Instant)>);

impl Dark {
    fn new(outages: &[Outage], in_flight: InFlight) -> Self {
        let of = outages.iter().filter(|o| o.in_flight == in_flight);
        let mut all: Vec<_> = of.map(|o| (o.start, o.start + o.length)).filter(|(a, b)| a < b).collect();
        all.sort_unstable();
        let mut dark: Vec<(Instant, Instant)> = Vec::with_capacity(all.len());
        for (start, end) in all {
            match dark.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => dark.push((start, end)),
            }
        }
        Dark(dark)
    }

    /// Whether there was no signal at some time from `first` on and before `last`; if they are
    /// equal, at that instant.
    fn within(&self, first: Instant, last: Instant) -> bool {
        let next = self.0.partition_point(|&(_, end)| end <= first);
        self.0.get(next).is_some_and(|&(start, _)| start < last || start <= first)
    }
}

impl Outages {
    pub(crate) fn new(outages: &[Outage], at: OutageAt) -> Self {
        let [ends, whole] = [InFlight::Delivered, InFlight::Lost].map(|in_flight| Dark::new(outages, in_flight));
        Outages { at, ends, whole }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.0.is_empty() && self.whole.0.is_empty()
    }

    /// Whether a packet is lost whose first bit leaves at `start`, whose last leaves at
    /// `departure` and arrives at `exit`.
    #[inline]
    pub(crate) fn hit(&self, start: Instant, departure: Instant, exit: Instant) -> bool {
        let (first, last) = match self.at {
            OutageAt::Transmitter => (start, departure),
            OutageAt::Receiver => (start + exit.since(departure), exit),
        };
        self.ends.within(first, last) || self.whole.within(start, exit)
    }
}
