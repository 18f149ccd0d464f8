//! The memory of the look at events before they come: the routes whose packets arrive soon.

/// So many are remembered.
const MOST: usize = 4;

/// The routes whose packets arrive at the events that were looked at last.
#[derive(Default)]
pub(super) struct Arrivals {
    /// And one place for a route that is noted and not counted.
    routes: [u32; MOST + 1],
    count: usize,
}

impl Arrivals {
    /// Notes a route if a packet of it arrives: without a branch.
    #[inline(always)]
    pub(super) fn note(&mut self, route: u32, arrives: bool) {
        if let Some(place) = self.routes.get_mut(self.count) {
            *place = route;
            self.count += usize::from(arrives);
        }
    }

    #[inline(always)]
    pub(super) fn all(&self) -> &[u32] {
        self.routes.get(..self.count).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}
