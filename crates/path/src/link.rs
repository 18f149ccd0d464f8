//! The composition: queue → rate → loss and outage → delay, caught up lazily.
//!
//! Every call that takes a time first brings the link up to it: departures at that instant count
//! before the arrival that is being pushed. Between calls nothing happens, so a driver needs one
//! event per packet and link: the packet's exit.
//!
//! Nearly all links of a run are plain: first in, first out, at one rate, over one distance. Those have a path of their own
//! (`plain.rs`), which does no more per packet than such a link needs; all others are put together of their parts
//! (`composed.rs`). Nobody outside can tell which a link is: a test pushes the same packets into both.

mod account;
mod cold;
mod composed;
mod lane;
mod plain;
mod queueing;
mod usage;

use crate::quick_start::QsCounters;
use crate::{Datagram, DropReason, LinkCounters, LinkError, LinkSpec};
use composed::Composed;
use fairpace_units::{Bytes, Instant, QsOption, Rate};
pub use lane::Lane;
pub use plain::PlainLink;

/// A link between two nodes, one direction.
///
/// In a run of many flows most media are access links that carry a packet now and then, and what a packet costs there is
/// the memory that it touches. So a plain link is small, and its ring takes memory with its first packet.
#[derive(Clone, Debug)]
pub struct Link<T>(Kind<T>);

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // nearly all are plain, and a pointer in between costs each packet
enum Kind<T> {
    Plain(PlainLink<T>),
    Composed(Box<Composed<T>>),
}

/// A plain link is so many bytes, packets apart: with what a network keeps of it, four cache lines.
const _: () = assert!(size_of::<Link<crate::Plain>>() <= 232);

/// Asks whichever kind of link it is.
macro_rules! ask {
    ($self:expr, $link:ident => $answer:expr) => {
        match $self {
            Kind::Plain($link) => $answer,
            Kind::Composed($link) => $answer,
        }
    };
}

impl<T: Datagram> Link<T> {
    /// The link if it is a plain one: whoever has many packets asks once for both push and `next`, or pop and `next`.
    #[inline(always)]
    pub fn plain(&mut self) -> Option<&mut PlainLink<T>> {
        match &mut self.0 {
            Kind::Plain(link) => Some(link),
            Kind::Composed(_) => None,
        }
    }

    /// The link if it is a plain one, to look at.
    #[inline(always)]
    pub fn as_plain(&self) -> Option<&PlainLink<T>> {
        match &self.0 {
            Kind::Plain(link) => Some(link),
            Kind::Composed(_) => None,
        }
    }

    /// Builds the link that `spec` describes. Its random streams are called `<name>.loss`,
    /// `<name>.jitter` and, if its queue draws, `<name>.red`, `<name>.rio`, `<name>.pie` or `<name>.fq_codel`, of the
    /// run's `seed`.
    ///
    /// # Errors
    /// [`LinkError`] names the field of `spec` that cannot be.
    pub fn new(spec: &LinkSpec, seed: u64, name: &str) -> Result<Self, LinkError> {
        Ok(match PlainLink::new(spec, seed, name)? {
            Some(plain) => Link(Kind::Plain(plain)),
            None => Link::composed(spec, seed, name)?,
        })
    }

    /// As [`Link::new`], put together of its parts however plain the link is. For tests: nobody can tell the two apart.
    ///
    /// # Errors
    /// As [`Link::new`].
    pub fn composed(spec: &LinkSpec, seed: u64, name: &str) -> Result<Self, LinkError> {
        Ok(Link(Kind::Composed(Box::new(Composed::new(spec, seed, name)?))))
    }

    /// A packet arrives at the queue.
    #[inline]
    pub fn push(&mut self, now: Instant, packet: T) {
        match &mut self.0 {
            Kind::Plain(link) => link.push(now, packet),
            Kind::Composed(link) => link.push(now, packet),
        }
    }

    /// A packet of the flow `source` with a Quick-Start option is about to be pushed at that instant, and the option is not in
    /// the packet ([`Datagram::quick_start`] says none): the option as the router in front of the queue leaves it.
    #[cold]
    pub fn judge(&mut self, now: Instant, source: u64, option: QsOption) -> QsOption {
        match &mut self.0 {
            Kind::Plain(_) => plain::pass(option),
            Kind::Composed(link) => {
                link.advance(now);
                link.route(now, source, option)
            }
        }
    }

    /// The earliest instant at which something may come out; [`Instant::NEVER`] if nothing will.
    /// The instant is exact, except that a queue that chooses behind a lost packet may make it too early. Only a push
    /// or a pop changes it.
    #[inline]
    pub fn next(&self) -> Instant {
        ask!(&self.0, link => link.next())
    }

    /// The next packet that is out by `now`. Call it until there is none.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        match &mut self.0 {
            Kind::Plain(link) => link.pop(now),
            Kind::Composed(link) => link.pop(now),
        }
    }

    /// Brings the link up to `now` without taking anything out: before reading the counters, and
    /// at the end of a run.
    pub fn advance(&mut self, now: Instant) {
        ask!(&mut self.0, link => link.advance(now));
    }

    /// Whether dropped packets are kept for [`Link::take_dropped`]. Off at first.
    pub fn record_drops(&mut self, on: bool) {
        ask!(&mut self.0, link => link.record_drops(on));
    }

    /// Whether [`Link::take_dropped`] has one.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        ask!(&self.0, link => link.has_dropped())
    }

    /// The next dropped packet, why and when it was dropped, in order of time. Call it until there
    /// is none.
    pub fn take_dropped(&mut self) -> Option<(Instant, DropReason, T)> {
        ask!(&mut self.0, link => link.take_dropped())
    }

    /// How fast packets leave at that time; [`Rate::MAX`] if serialization takes none. For a
    /// mahimahi trace, the mean over the second around `now`.
    pub fn capacity_at(&self, now: Instant) -> Rate {
        ask!(&self.0, link => link.capacity_at(now))
    }

    /// How many bits the link could have carried between two instants; `None` if unlimited.
    pub fn capacity_between(&self, from: Instant, to: Instant) -> Option<f64> {
        ask!(&self.0, link => link.capacity_between(from, to))
    }

    /// The counts up to the latest time that any call has told: [`Link::advance`] first.
    pub fn counters(&self) -> LinkCounters {
        ask!(&self.0, link => link.counters())
    }

    /// The counts of the link's Quick-Start router so far, if there is one.
    pub fn quick_start(&self) -> Option<&QsCounters> {
        match &self.0 {
            Kind::Plain(_) => None,
            Kind::Composed(link) => link.quick_start(),
        }
    }

    /// Forgets the largest queue seen, so that it is that of the time from now on. If packets are passed ([`PlainLink::pass`]), the link needs a new
    /// [`Lane`] then, since one packet of each size is to be counted.
    pub fn restart_maximum(&mut self) {
        ask!(&mut self.0, link => link.restart_maximum());
    }

    /// Packets in the queue and in transmission.
    pub fn queue_len(&self) -> usize {
        ask!(&self.0, link => link.queue_len())
    }

    /// Bytes in the queue and in transmission, the packet under way in full.
    pub fn queue_bytes(&self) -> Bytes {
        ask!(&self.0, link => link.queue_bytes())
    }

    /// Packets that were pushed and have neither come out nor been dropped: waiting, in
    /// transmission or in flight.
    pub fn inside(&self) -> usize {
        ask!(&self.0, link => link.inside())
    }

    #[cfg(test)]
    pub(crate) fn queue(&self) -> &crate::queue::Queue<T> {
        match &self.0 {
            Kind::Plain(_) => panic!("a plain link has none of these"),
            Kind::Composed(link) => link.queue(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, DelayModel, LossModel, Plain, QueueModel, RateModel};
    use fairpace_units::{Class, Duration, Packets, Probability, RandomStream};

    /// A plain link's spec: with losses or without, its queue limited in packets, in bytes or not.
    fn spec(random: &mut RandomStream) -> LinkSpec {
        let capacity = match random.below(3) {
            0 => Capacity::Packets(Packets::new(1 + random.below(20))),
            1 => Capacity::Bytes(Bytes::new(1 + random.below(20_000))),
            _ => Capacity::Unlimited,
        };
        let loss = match random.below(3) {
            0 => LossModel::None,
            1 => LossModel::Bernoulli(Probability::new(random.uniform()).unwrap_or(Probability::ZERO)),
            _ => LossModel::Bernoulli(Probability::new(0.1).unwrap_or(Probability::ZERO)),
        };
        // At 8 Mbit/s 1,000 bytes take 1 ms, so that departures, exits and arrivals coincide.
        let rate = if random.below(2) == 0 { Rate::mbps(8.0) } else { Rate::kbps(1.0 + random.below(50_000) as f64) };
        LinkSpec {
            rate: RateModel::Fixed(rate),
            delay: DelayModel::constant(Duration::from_millis([0, 1, random.below(30)][random.below(3) as usize])),
            queue: QueueModel::DropTail { capacity },
            loss,
            ..LinkSpec::default()
        }
    }

    #[test]
    fn a_plain_link_is_the_composed_one_of_the_same_spec() {
        for seed in 0..400 {
            let mut random = RandomStream::named(seed, "plain");
            let spec = spec(&mut random);
            let mut plain = Link::new(&spec, seed, "link").unwrap();
            assert!(matches!(plain.0, Kind::Plain(_)));
            let mut composed = Link::composed(&spec, seed, "link").unwrap();
            let recording = random.below(2) == 0;
            plain.record_drops(recording);
            composed.record_drops(recording);
            let mut now = Instant::ZERO;
            for id in 0..400 {
                let step = Duration::from_micros([0, 1_000, random.below(3_000)][random.below(3) as usize]);
                now += step;
                // Sometimes a driver comes in time, sometimes late.
                if random.below(4) > 0 && plain.next() < now {
                    now = plain.next();
                }
                assert_eq!(plain.next(), composed.next(), "seed {seed}");
                match random.below(6) {
                    0..=2 => {
                        // Large ones fill the sums of time, and are served in pieces.
                        let large = if seed % 4 == 0 { 1_000_000_000 } else { 1_500 };
                        let size = [1_000, 40, 1 + random.below(3_000), large][random.below(4) as usize];
                        let size = Bytes::new(size);
                        let class = if random.below(4) == 0 { Class::Low } else { Class::Normal };
                        let packet = Plain { class, id, ..Plain::new(size) };
                        plain.push(now, packet);
                        composed.push(now, packet);
                    }
                    3 | 4 => loop {
                        let out = plain.pop(now);
                        assert_eq!(out, composed.pop(now), "seed {seed}");
                        if out.is_none() || random.below(8) == 0 {
                            break;
                        }
                    },
                    _ if random.below(5) == 0 => {
                        plain.restart_maximum();
                        composed.restart_maximum();
                    }
                    _ => {
                        plain.advance(now);
                        composed.advance(now);
                    }
                }
                assert_eq!(plain.has_dropped(), composed.has_dropped(), "seed {seed}");
                if random.below(3) > 0 {
                    assert_eq!(plain.take_dropped(), composed.take_dropped(), "seed {seed}");
                }
                assert_eq!(plain.counters(), composed.counters(), "seed {seed}");
                assert_eq!(
                    (plain.queue_len(), plain.queue_bytes(), plain.inside()),
                    (composed.queue_len(), composed.queue_bytes(), composed.inside()),
                );
                assert_eq!(plain.capacity_between(Instant::ZERO, now), composed.capacity_between(Instant::ZERO, now));
            }
        }
    }

    /// The state of a link, as anybody may ask for it.
    type State = (LinkCounters, usize, Bytes, usize);

    fn state<T: Datagram>(link: &Link<T>) -> State {
        (link.counters(), link.queue_len(), link.queue_bytes(), link.inside())
    }

    /// Two links in a row, read now and then; `early`: what the first one lets out before the next reading goes into the second at once, and nothing is
    /// popped from that. Returns what comes out of the second and when, and both links at each reading.
    fn in_a_row(seed: u64, early: bool) -> (Vec<(Instant, u64)>, Vec<[State; 2]>) {
        let mut random = RandomStream::named(seed, "row");
        let random = &mut random;
        let specs = [spec(random), LinkSpec { loss: LossModel::None, ..spec(random) }];
        let [mut first, mut second] = specs.map(|spec| Link::<Plain>::new(&spec, seed, "link").unwrap());
        // Packets of low priority are counted apart, and are in the way of counting those that are alone.
        let low_too = random.below(2) == 0;
        let variety = 1 + random.below(5);
        let (mut out, mut inside, mut read, mut lane) = (Vec::new(), Vec::new(), Vec::new(), Lane::default());
        let (mut arrival, mut reading, mut id) = (Instant::ZERO, Instant::ZERO, 0);
        let end = loop {
            let at = arrival.min(reading).min(first.next()).min(second.next());
            if at == reading {
                inside.retain(|(exit, _): &(Instant, Plain)| *exit >= at);
                for link in [&mut first, &mut second] {
                    link.advance(at);
                }
                if early {
                    first.plain().unwrap().let_go(at);
                    second.plain().unwrap().restore(&mut lane, inside.iter().copied());
                }
                for link in [&mut first, &mut second] {
                    if random.below(20) == 0 {
                        link.restart_maximum();
                        lane = Lane::default();
                    }
                }
                read.push([state(&first), state(&second)]);
                if id >= 600 {
                    break at;
                }
                let most = [2_000, 100_000][random.below(2) as usize];
                reading += Duration::from_micros(1 + random.below(most));
                continue;
            }
            if at == first.next() {
                if early {
                    first.advance(at);
                    first.plain().unwrap().let_go(at + Duration::from_nanos(1));
                }
                while let Some(packet) = first.pop(at) {
                    if early {
                        inside.extend(second.plain().unwrap().pass(&mut lane, at, packet).map(|exit| (exit, packet)));
                        out.extend(
                            inside.last().filter(|(_, last)| last.id == packet.id).map(|(exit, _)| (*exit, packet.id)),
                        );
                    } else {
                        second.push(at, packet);
                    }
                }
            } else if at == second.next() {
                while let Some(packet) = second.pop(at) {
                    out.push((at, packet.id));
                }
            } else {
                let size =
                    Bytes::new([1_000, 1_000, 1_000, 40, 1 + random.below(3_000)][random.below(variety) as usize]);
                let class = if low_too && random.below(4) == 0 { Class::Low } else { Class::Normal };
                first.push(at, Plain { class, id, ..Plain::new(size) });
                id += 1;
                arrival += Duration::from_micros([0, 1_000, random.below(4_000)][random.below(3) as usize]);
            }
            if early {
                let (first, second) = (first.plain().unwrap(), second.plain().unwrap());
                let mut due = Vec::new();
                first.to_pop(1 + id as usize % 9, &mut due);
                due.retain(|(exit, _)| *exit < reading);
                let passed = due.iter().map_while(|(exit, packet)| {
                    second.pass_early(&mut lane, at, *exit, *packet).map(|out| (out, *packet))
                });
                let before = inside.len();
                inside.extend(passed);
                out.extend(inside[before..].iter().map(|(exit, packet)| (*exit, packet.id)));
                first.hand_on(inside.len() - before);
            }
        };
        out.retain(|(exit, _)| *exit < end);
        (out, read)
    }

    #[test]
    fn a_lane_is_closed_at_first_for_packets_of_any_size() {
        for size in [0, 1, 1_000, u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(Lane::default().pass(Instant::from_nanos(7), size), None);
            let mut link = Link::<Plain>::new(
                &LinkSpec { rate: RateModel::Fixed(Rate::mbps(8_000.0)), ..LinkSpec::default() },
                1,
                "link",
            )
            .unwrap();
            let (link, mut lane) = (link.plain().unwrap(), Lane::default());
            let packet = Plain::new(Bytes::new(size.min(1 << 40)));
            let exits = [0, 1_000].map(|at| link.pass(&mut lane, Instant::from_nanos(at), packet));
            // A byte takes a nanosecond, one packet behind the other.
            let takes = size.min(1 << 40);
            assert_eq!(exits, [takes, takes.max(1_000) + takes].map(|at| Some(Instant::from_nanos(at))));
        }
    }

    #[test]
    fn packets_that_are_handed_on_before_they_come_out_leave_the_same_behind() {
        for seed in 0..400 {
            assert!(in_a_row(seed, true) == in_a_row(seed, false), "seed {seed}");
        }
    }
}
