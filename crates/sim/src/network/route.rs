//! Where packets go: for each flow and direction a short list of hops, all of them in one array.

use crate::hop::Hop;
use crate::packet::{Direction, FlowId};

/// The number of a route. (By value: a packet that is pointed at would be copied.)
#[inline]
pub(super) const fn route_of(flow: FlowId, direction: Direction) -> usize {
    flow as usize * 2 + direction as usize
}

/// The direction of a route.
#[inline]
pub(super) const fn direction_of(route: usize) -> Direction {
    if route.is_multiple_of(2) { Direction::Forward } else { Direction::Back }
}

/// The routes of all flows; that of flow f in direction d has the number 2 f + d.
#[derive(Debug)]
pub(super) struct Routes {
    /// One route behind the other, each with [`Hop::ENDPOINT`] at its end.
    hops: Vec<Hop>,
    /// Where in `hops` each begins.
    starts: Vec<u32>,
}

impl Routes {
    /// None yet, with room for so many.
    pub(super) fn with_capacity(routes: usize) -> Self {
        Routes { hops: Vec::with_capacity(2 * routes), starts: Vec::with_capacity(routes) }
    }

    /// The next route. No hop may be in it twice: a packet that comes out of one is found by that.
    pub(super) fn push(&mut self, hops: impl IntoIterator<Item = Hop>) {
        self.starts.push(self.hops.len() as u32);
        self.hops.extend(hops);
        self.hops.push(Hop::ENDPOINT);
    }

    /// The next two routes: as those of that flow.
    pub(super) fn repeat(&mut self, flow: FlowId) {
        for direction in [Direction::Forward, Direction::Back] {
            let mut place = self.starts[route_of(flow, direction)] as usize;
            self.starts.push(self.hops.len() as u32);
            loop {
                let hop = self.hops[place];
                self.hops.push(hop);
                place += 1;
                if hop == Hop::ENDPOINT {
                    break;
                }
            }
        }
    }

    /// Gives back what was reserved for longer routes.
    pub(super) fn shrink(&mut self) {
        self.hops.shrink_to_fit();
    }

    /// All routes, in order, without their ends.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Hop]> {
        self.hops.split(|hop| *hop == Hop::ENDPOINT).take(self.starts.len())
    }

    /// The first hop of a route.
    pub(super) fn first(&self, route: usize) -> Hop {
        self.hops[self.starts[route] as usize]
    }

    /// The hop that comes after `here`, which has no place before `from` in the route.
    #[inline(always)] // a call costs 2 % more instructions
    pub(super) fn after(&self, route: usize, here: Hop, from: u16) -> Hop {
        let mut place = self.starts[route] as usize + usize::from(from);
        // Where all routes have a medium at the same place, the first look finds it.
        while self.hops[place] != here {
            place += 1;
        }
        self.hops[place + 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_goes_from_hop_to_hop_wherever_its_route_has_them() {
        let hop = |medium, port| Hop { medium, port };
        let mut routes = Routes::with_capacity(3);
        routes.push([hop(7, 0), hop(1, 4), hop(1, 2)]);
        routes.push([]);
        routes.push([hop(1, 2), hop(7, 0)]);
        let walk = |route| {
            let (mut hops, mut next) = (Vec::new(), routes.first(route));
            while next != Hop::ENDPOINT {
                hops.push(next);
                next = routes.after(route, next, 0);
            }
            hops
        };
        for (route, hops) in routes.iter().enumerate() {
            assert_eq!(walk(route), hops);
        }
        assert_eq!((walk(0).len(), walk(1).len(), walk(2).len()), (3, 0, 2));
        // The search may begin where the hop is.
        assert_eq!(routes.after(0, hop(1, 4), 1), hop(1, 2));
    }
}
