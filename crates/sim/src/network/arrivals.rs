//! The memory of the look at events before they come: the routes whose packets arrive soon.

/// No packet arrives.
pub(super) const NOWHERE: u32 = u32::MAX;

/// So many looks are remembered.
const LOOKS: usize = 4;

/// The routes whose packets arrive at the latest events that were looked at, [`NOWHERE`] for the others.
pub(super) struct Arrivals {
    routes: [u32; LOOKS],
    looks: u32,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals { routes: [NOWHERE; LOOKS], looks: 0 }
    }
}

impl Arrivals {
    /// Notes what arrives at the event looked at now; what was noted so many looks ago, fewer than [`LOOKS`].
    #[inline(always)]
    pub(super) fn note(&mut self, route: u32, ago: u32) -> u32 {
        self.looks = self.looks.wrapping_add(1);
        self.routes[self.looks as usize % LOOKS] = route;
        self.routes[self.looks.wrapping_sub(ago) as usize % LOOKS]
    }
}
