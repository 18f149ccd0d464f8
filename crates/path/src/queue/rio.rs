//! RIO: RED with in and out, two REDs over one queue, by class.
//!
//! Source: Clark and Fang, "Explicit Allocation of Best-Effort Packet Delivery Service", IEEE/ACM ToN 6(4), 1998
//! [RIO]; ns-2 2.35 `queue/rio.cc` [ns-2] where the paper leaves a choice. Page: `docs/links/rio.md`.
//!
//! | symbol | here | unit | set by |
//! | --- | --- | --- | --- |
//! | avg_in | `inside`'s average | packets or bytes, normal packets that wait | each normal arrival |
//! | avg_total | `all`'s average | packets or bytes, all that wait | each arrival |
//! | min_in, max_in, P_max_in | `inside`'s parameters | | parameters |
//! | min_out, max_out, P_max_out | `all`'s parameters | | parameters |
//!
//! A normal packet is IN: its chance comes from avg_in. A low-priority packet is OUT: its chance comes from avg_total.
//! So low-priority packets go while the queue as a whole is long, and normal ones only while they themselves fill it.
//!
//! **Readings.** (a) avg_total is updated by every arrival [RIO §III-C]; ns-2 updates it by IN arrivals only. (b) The idle
//! time that avg_in decays by is the link's, summed up since the last IN arrival. (c) The hard limit is one for both,
//! and drops whatever arrives. (d) One random number is drawn for each arrival, needed or not. The rest is RED's
//! (`red.rs`).
//!
//! **Not implemented.** Marks by a meter (an IN packet is one of [`Class::Normal`]), more than two precedences.

use super::parts::{Held, Occupancy, Room, Verdict};
use super::red::Red;
use crate::{DropReason, LinkError, RedParams, RioParams};
use fairpace_units::{Class, RandomStream};
use std::collections::VecDeque;

/// The state of a RIO queue.
#[derive(Clone, Debug)]
pub(crate) struct Rio {
    room: Room,
    /// Of normal packets, by those that wait.
    inside: Red,
    /// Of low-priority packets, by all that wait.
    all: Red,
    /// The packets in queue and transmitter, oldest first.
    held: VecDeque<(Class, u64)>,
    /// The normal ones among them.
    normal: Held,
    /// How many packets could have left in the link's idle times since the last normal arrival.
    idle: u64,
    random: RandomStream,
}

impl Rio {
    pub(crate) fn new(params: &RioParams, random: RandomStream) -> Result<Self, LinkError> {
        let inside =
            RedParams { thresholds: params.inside, max_probability: params.inside_max_probability, ..params.all };
        Ok(Rio {
            room: Room::new(params.all.capacity)?,
            all: Red::new(&params.all, random.clone())?,
            inside: Red::new(&inside, random.clone()).map_err(of_normal_packets)?,
            held: VecDeque::new(),
            normal: Held::default(),
            idle: 0,
            random,
        })
    }

    /// The size of a mean packet, in bytes.
    pub(crate) fn mean_packet_size(&self) -> u64 {
        self.all.mean_packet_size()
    }

    /// Whether an arrival of `size` is let in.
    pub(crate) fn decide(&mut self, found: Occupancy, class: Class, size: u64, ecn_capable: bool) -> Verdict {
        self.forget_departed(found.held.packets);
        self.idle += found.could_have_left;
        let chance = self.random.uniform();
        self.all.update_average(found.waiting, found.could_have_left);
        let normal = self.normal_waiting();
        let (red, waiting) = match class {
            Class::Low => (&mut self.all, found.waiting),
            Class::Normal => {
                self.inside.update_average(normal, std::mem::take(&mut self.idle));
                (&mut self.inside, normal)
            }
        };
        let mut verdict = red.judge(waiting, size, ecn_capable, chance);
        if !self.room.fits(found.held, size) {
            red.restart_count();
            verdict = Verdict::Drop(DropReason::QueueFull);
        }
        if !matches!(verdict, Verdict::Drop(_)) {
            self.held.push_back((class, size));
            if class == Class::Normal {
                self.normal.packets += 1;
                self.normal.bytes += size;
            }
        }
        verdict
    }

    /// Packets leave in the order in which they came: all but the youngest `left` are gone.
    fn forget_departed(&mut self, left: u64) {
        while self.held.len() as u64 > left {
            if let Some((Class::Normal, size)) = self.held.pop_front() {
                self.normal.packets -= 1;
                self.normal.bytes -= size;
            }
        }
    }

    /// The normal packets behind the transmitter.
    fn normal_waiting(&self) -> Held {
        match self.held.front() {
            Some((Class::Normal, size)) => Held { packets: self.normal.packets - 1, bytes: self.normal.bytes - size },
            _ => self.normal,
        }
    }
}

/// The same refusal, of the parameters of normal packets.
fn of_normal_packets(error: LinkError) -> LinkError {
    match error {
        LinkError::BadQueue { field: "thresholds.min", found, allowed } => {
            LinkError::BadQueue { field: "inside.min", found, allowed }
        }
        LinkError::BadQueue { field: "max_probability", found, allowed } => {
            LinkError::BadQueue { field: "inside_max_probability", found, allowed }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, Thresholds};
    use fairpace_units::{Bytes, Packets};

    fn thresholds(min: u64, max: u64) -> Thresholds {
        Thresholds::Packets { min: Packets::new(min), max: Packets::new(max) }
    }

    /// Low-priority packets between 2 and 4 in all, normal ones between 5 and 9 of their own; the average is the queue.
    fn params() -> RioParams {
        let red = RedParams::for_capacity(Capacity::Packets(Packets::new(20)), Bytes::new(1_000));
        RioParams {
            all: RedParams { thresholds: thresholds(2, 4), weight: 1.0, gentle: false, ..red },
            inside: thresholds(5, 9),
            inside_max_probability: 0.02,
        }
    }

    fn rio(params: RioParams) -> Rio {
        Rio::new(&params, RandomStream::named(1, "test")).unwrap()
    }

    /// The queue as an arrival finds it: so many packets of 1,000 bytes, one of them in transmission.
    fn found(held: u64) -> Occupancy {
        let of = |packets| Held { packets, bytes: packets * 1_000 };
        Occupancy { held: of(held), waiting: of(held.saturating_sub(1)), could_have_left: 0 }
    }

    /// Fills an empty queue with these, and returns the verdicts.
    fn fill(rio: &mut Rio, classes: &[Class]) -> Vec<Verdict> {
        let mut held = 0;
        let arrive = |&class: &Class| {
            let verdict = rio.decide(found(held), class, 1_000, false);
            held += u64::from(verdict == Verdict::Admit);
            verdict
        };
        classes.iter().map(arrive).collect()
    }

    #[test]
    fn a_low_packet_goes_by_all_that_wait_and_a_normal_one_by_the_normal_ones() {
        let mut rio = rio(params());
        // Five normal packets: four wait, which is max_out for a low one and below min_in for a normal one.
        assert!(fill(&mut rio, &[Class::Normal; 5]).iter().all(|v| *v == Verdict::Admit));
        assert_eq!(rio.decide(found(5), Class::Low, 1_000, false), Verdict::Drop(DropReason::Early));
        assert_eq!(rio.decide(found(5), Class::Normal, 1_000, false), Verdict::Admit);
    }

    #[test]
    fn low_packets_in_the_queue_do_not_harm_normal_ones() {
        let lax = RedParams { thresholds: thresholds(15, 18), ..params().all };
        let mut rio = rio(RioParams { all: lax, ..params() });
        // Twelve low packets wait, more than max_in; of normal ones none waits.
        assert!(fill(&mut rio, &[Class::Low; 13]).iter().all(|v| *v == Verdict::Admit));
        assert_eq!(rio.decide(found(13), Class::Normal, 1_000, false), Verdict::Admit);
        assert_eq!(rio.inside.average(), 0.0);
        // With nine normal ones it is over for them.
        let mut full = self::rio(RioParams { all: lax, ..params() });
        let verdicts = fill(&mut full, &[Class::Normal; 12]);
        assert_eq!(verdicts[9], Verdict::Admit, "eight wait");
        assert_eq!(verdicts[10..], [Verdict::Drop(DropReason::Early); 2], "nine wait");
    }

    #[test]
    fn what_departs_leaves_the_normal_average_and_the_one_in_transmission_does_not_count() {
        let mut rio = rio(params());
        fill(&mut rio, &[Class::Normal, Class::Low, Class::Normal, Class::Normal]);
        // The two oldest have left: the third is in transmission, the fourth waits.
        rio.decide(found(2), Class::Normal, 1_000, false);
        assert_eq!(rio.inside.average(), 1.0);
        // All have left.
        rio.decide(found(0), Class::Normal, 1_000, false);
        assert_eq!(rio.inside.average(), 0.0);
    }

    #[test]
    fn idle_times_add_up_until_a_normal_packet_comes() {
        let mut rio = rio(RioParams { all: RedParams { weight: 0.5, ..params().all }, ..params() });
        fill(&mut rio, &[Class::Normal; 4]); // 0, 0, 1, 2 waited: 0, 0, 0.5, 1.25
        assert_eq!(rio.inside.average(), 1.25);
        let idle = |could_have_left| Occupancy { could_have_left, ..found(0) };
        rio.decide(idle(1), Class::Low, 1_000, false);
        assert_eq!(rio.inside.average(), 1.25, "a low packet does not touch it");
        rio.decide(idle(2), Class::Normal, 1_000, false);
        assert_eq!(rio.inside.average(), 1.25 / 16.0, "halved three times, and once by the arrival");
    }

    #[test]
    fn the_hard_limit_is_one_for_both_classes() {
        let lax = |red: RedParams| RedParams { thresholds: thresholds(30, 60), ..red };
        let open = RioParams { all: lax(params().all), inside: thresholds(30, 60), ..params() };
        for class in [Class::Low, Class::Normal] {
            assert_eq!(rio(open).decide(found(20), class, 1_000, false), Verdict::Drop(DropReason::QueueFull));
        }
    }

    #[test]
    fn a_parameter_out_of_range_is_refused_by_its_name() {
        let refusal = |p: RioParams| Rio::new(&p, RandomStream::named(1, "test")).unwrap_err().to_string();
        let inside = RioParams { inside: thresholds(9, 9), ..params() };
        assert_eq!(refusal(inside), "`queue.inside.min` is 9; it must be less than `max`");
        let chance = RioParams { inside_max_probability: 1.5, ..params() };
        assert_eq!(refusal(chance), "`queue.inside_max_probability` is 1.5; it must be above 0, at most 1");
        let all = RioParams { all: RedParams { thresholds: thresholds(5, 5), ..params().all }, ..params() };
        assert_eq!(refusal(all), "`queue.thresholds.min` is 5; it must be less than `max`");
    }
}
