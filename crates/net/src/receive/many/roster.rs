//! Who has which place, and who may have one: each question costs a logarithm of the places.

use fairpace_rtp::network;
use fairpace_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// A sender that has a place and sends no media keeps it from others for so long.
const IDLE: Duration = Duration::from_secs(10);

/// The places, numbered from 0.
#[derive(Debug)]
pub(super) struct Roster {
    taken: BTreeMap<usize, Taken>,
    free: BTreeSet<usize>,
    /// The places whose senders come from that address: a network may give one sender's address to another. The last one goes there now.
    by_address: BTreeMap<SocketAddr, Vec<usize>>,
    by_stream: BTreeMap<u32, usize>,
    /// Places without media, the oldest first.
    silent: BTreeSet<(Instant, usize)>,
    /// The same of each network.
    of_network: BTreeMap<IpAddr, BTreeSet<(Instant, usize)>>,
    /// The networks, by how many places without media they have.
    crowds: BTreeSet<(usize, IpAddr)>,
    /// Once all places are taken, a network has so many without media to itself.
    share: usize,
}

/// A place that is taken.
#[derive(Debug)]
struct Taken {
    address: SocketAddr,
    stream: u32,
    /// Since when it is without media, and of which network it was then; `None`: media has come.
    silent: Option<(Instant, IpAddr)>,
}

impl Roster {
    pub(super) fn new(places: usize) -> Roster {
        Roster {
            taken: BTreeMap::new(),
            free: (0..places).collect(),
            by_address: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            silent: BTreeSet::new(),
            of_network: BTreeMap::new(),
            crowds: BTreeSet::new(),
            share: (places / 4).max(1),
        }
    }

    /// Places that are taken.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn of_address(&self, address: SocketAddr) -> Option<usize> {
        self.by_address.get(&address)?.last().copied()
    }

    pub(super) fn of_stream(&self, stream: u32) -> Option<usize> {
        self.by_stream.get(&stream).copied()
    }

    /// The place that a sender at that address may have with a stream that has none; who has it loses it. First comes the place of the same address,
    /// whose sender was started again; then a free one, if `may_grow`; then one without media: the oldest from [`IDLE`] on, or the oldest of
    /// the network that has most of them, if that is more than its share. Those go to networks alone that have less than theirs.
    pub(super) fn vacancy(&self, now: Instant, from: SocketAddr, may_grow: bool) -> Option<usize> {
        let own = self.of_address(from).filter(|number| may_grow || !self.has_media(*number));
        let free = || self.free.first().copied().filter(|_| may_grow);
        own.or_else(free).or_else(|| {
            if self.of_network.get(&network(from.ip())).map_or(0, BTreeSet::len) >= self.share {
                return None;
            }
            let idle = self.silent.first().filter(|(since, _)| now.since(*since) >= IDLE);
            let crowd = || {
                let (_, network) = self.crowds.last().filter(|(len, _)| *len > self.share)?;
                self.of_network.get(network)?.first()
            };
            idle.or_else(crowd).map(|(_, number)| *number)
        })
    }

    fn has_media(&self, number: usize) -> bool {
        self.taken.get(&number).is_some_and(|taken| taken.silent.is_none())
    }

    /// A free place is taken.
    pub(super) fn enter(&mut self, number: usize, now: Instant, address: SocketAddr, stream: u32) {
        let network = network(address.ip());
        self.free.remove(&number);
        self.by_address.entry(address).or_default().push(number);
        self.by_stream.insert(stream, number);
        self.silent.insert((now, number));
        self.crowd(network, |places| {
            places.insert((now, number));
        });
        self.taken.insert(number, Taken { address, stream, silent: Some((now, network)) });
    }

    /// Its first media has come.
    pub(super) fn on_media(&mut self, number: usize) {
        let Some((since, network)) = self.taken.get_mut(&number).and_then(|taken| taken.silent.take()) else { return };
        self.silent.remove(&(since, number));
        self.crowd(network, |places| {
            places.remove(&(since, number));
        });
    }

    /// Its sender has shown that it is at another address.
    pub(super) fn on_moved(&mut self, number: usize, address: SocketAddr) {
        let Some(taken) = self.taken.get_mut(&number) else { return };
        let old = std::mem::replace(&mut taken.address, address);
        self.leave_address(number, old);
        self.by_address.entry(address).or_default().push(number);
    }

    /// The place is free again.
    pub(super) fn leave(&mut self, number: usize) {
        self.on_media(number);
        let Some(taken) = self.taken.remove(&number) else { return };
        self.leave_address(number, taken.address);
        if self.of_stream(taken.stream) == Some(number) {
            self.by_stream.remove(&taken.stream);
        }
        self.free.insert(number);
    }

    fn leave_address(&mut self, number: usize, address: SocketAddr) {
        let Some(all) = self.by_address.get_mut(&address) else { return };
        all.retain(|other| *other != number);
        if all.is_empty() {
            self.by_address.remove(&address);
        }
    }

    /// A change to the places without media of a network.
    fn crowd(&mut self, network: IpAddr, change: impl FnOnce(&mut BTreeSet<(Instant, usize)>)) {
        let places = self.of_network.entry(network).or_default();
        self.crowds.remove(&(places.len(), network));
        change(places);
        if places.is_empty() {
            self.of_network.remove(&network);
        } else {
            self.crowds.insert((places.len(), network));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    #[test]
    fn whose_address_goes_to_another_has_it_again_once_that_one_has_left() {
        let mut roster = Roster::new(2);
        roster.enter(0, at(0), address(1, 1), 10);
        roster.enter(1, at(0), address(2, 2), 20);
        // Both come from behind a translator that was started again.
        roster.on_moved(0, address(2, 2));
        assert_eq!((roster.of_address(address(2, 2)), roster.of_address(address(1, 1))), (Some(0), None));
        roster.on_moved(1, address(1, 1));
        assert_eq!([2, 1].map(|n| roster.of_address(address(n, n.into()))), [Some(0), Some(1)]);
        roster.on_moved(0, address(1, 1));
        roster.leave(0);
        assert_eq!([2, 1].map(|n| roster.of_address(address(n, n.into()))), [None, Some(1)]);
        assert_eq!((roster.len(), roster.of_stream(10), roster.of_stream(20)), (1, None, Some(1)));
    }

    #[test]
    fn one_network_without_media_keeps_no_more_than_its_share_from_others_however_often_it_asks() {
        let mut roster = Roster::new(8);
        for n in 0..8 {
            let number = roster.vacancy(at(0), address(1, n), true).unwrap();
            roster.enter(number, at(0), address(1, n), n.into());
        }
        let later = at(20_000);
        assert_eq!(roster.vacancy(later, address(1, 9), true), None, "one that has more than its share");
        let mut honest = Vec::new();
        while let Some(number) = roster.vacancy(at(1), address(2, 7), true) {
            roster.leave(number);
            roster.enter(number, at(1), address(2, 100 + honest.len() as u16), 100 + honest.len() as u32);
            roster.on_media(number);
            honest.push(number);
        }
        // Two are the share of eight.
        assert_eq!(honest, [0, 1, 2, 3, 4, 5]);
        assert_eq!(roster.vacancy(at(9_999), address(2, 7), true), None);
        assert_eq!(roster.vacancy(at(10_000), address(2, 7), true), Some(6), "after ten seconds");
        assert_eq!(roster.vacancy(at(10_000), address(2, 100), true), Some(0), "of a sender that was started again");
        assert_eq!(roster.vacancy(at(0), address(2, 100), false), None, "whose session would be one too many");
    }

    /// A taken place: since when, from where, its stream, whether media has come, and of which network it was at first.
    type Plain = (u64, SocketAddr, u32, bool, IpAddr);

    proptest! {
        /// Beside plain lists that are searched each time.
        #[test]
        fn the_indices_tell_what_a_search_of_all_places_tells(
            steps in prop::collection::vec((0_u8..4, 0_usize..6, 0_u8..4, 0_u16..3), 1..80),
        ) {
            let mut roster = Roster::new(6);
            let mut plain: Vec<Option<Plain>> = vec![None; 6];
            for (now, (what, number, host, port)) in (0_u64..).step_by(700).zip(steps) {
                let (new, stream) = (address(host, port), now as u32);
                match (what, plain[number]) {
                    (0 | 1, None) => {
                        roster.enter(number, at(now), new, stream);
                        plain[number] = Some((now, new, stream, false, new.ip()));
                    }
                    (1, Some(_)) => {
                        roster.on_media(number);
                        plain[number].as_mut().unwrap().3 = true;
                    }
                    (2, Some(_)) => {
                        roster.on_moved(number, new);
                        plain[number].as_mut().unwrap().1 = new;
                    }
                    (3, _) => {
                        roster.leave(number);
                        plain[number] = None;
                    }
                    _ => {}
                }
                let taken = |n: usize| plain[n].map(|p| (n, p));
                let all: Vec<_> = (0..6).filter_map(taken).collect();
                prop_assert_eq!(roster.len(), all.len());
                for (n, (_, from, stream, ..)) in &all {
                    let there = roster.of_address(*from);
                    prop_assert!(there.is_some_and(|n| plain[n].is_some_and(|p| p.1 == *from)));
                    prop_assert_eq!(roster.of_stream(*stream), Some(*n));
                }
                let silent = |ip: IpAddr| all.iter().filter(|(_, p)| !p.3 && p.4 == ip).count();
                let asks = address(9, 9);
                let crowd = (0..4).any(|host| silent(address(host, 0).ip()) > 1);
                let is_idle = all.iter().any(|(_, p)| !p.3 && now - p.0 >= 10_000);
                let found = roster.vacancy(at(now), asks, true);
                prop_assert_eq!(found.is_some(), all.len() < 6 || is_idle || crowd);
                if let Some((since, _, _, has_media, ip)) = found.and_then(|n| plain[n]) {
                    prop_assert!(!has_media && all.len() == 6);
                    prop_assert!(now - since >= 10_000 || silent(ip) > 1);
                }
                prop_assert_eq!(roster.crowds.len(), roster.of_network.len());
                prop_assert_eq!(roster.silent.len(), all.iter().filter(|(_, p)| !p.3).count());
            }
        }
    }
}
