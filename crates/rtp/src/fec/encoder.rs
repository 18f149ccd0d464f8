//! The sender's half [RFC 8627 §6.2]: repair packets over a window that slides with the media.

use super::header::{Cover, Header, Kind, MASK_BITS};
use super::symbol::{FIELDS, Symbol, sequence};
use crate::WireError;
use fairpace_units::{Probability, RandomStream};
use std::collections::VecDeque;

/// How much protection: so many repair packets per media packet, each over so many of the latest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Media packets that a repair packet reaches back over, 1 to [`MASK_BITS`]; other values count as the nearest.
    pub window: u16,
    /// Repair packets per media packet.
    pub overhead: Probability,
}

/// Repair packets that wait for their turn; more than that are not made up for.
const MOST_DUE: f64 = 8.0;

/// Keeps the latest media packets, at most [`MASK_BITS`], and writes repair packets by a [`Plan`].
///
/// A repair packet covers every media packet since the last repair packet, so that a single loss is repaired by the very
/// next, and each older one of the window with probability one half: a random code over GF(2), in which any losses as
/// many as there are repair packets over them are recovered with probability 0.29, and with k more, 1 - 2^-k at least.
#[derive(Debug)]
pub struct Encoder {
    plan: Plan,
    kept: VecDeque<(u16, Symbol)>,
    spare: Vec<Symbol>,
    sum: Symbol,
    /// Repair packets that are due, with their fraction.
    credit: f64,
    /// The latest of `kept` that no repair packet covers yet.
    fresh: usize,
}

impl Encoder {
    /// An encoder that follows `plan`.
    pub fn new(plan: Plan) -> Self {
        Encoder { plan, kept: VecDeque::new(), spare: Vec::new(), sum: Symbol::default(), credit: 0.0, fresh: 0 }
    }

    /// Follows another plan from now on. Packets that were kept stay, as far as the window reaches.
    pub fn set_plan(&mut self, plan: Plan) {
        self.plan = plan;
        if plan.overhead == Probability::ZERO {
            self.credit = 0.0;
        }
    }

    /// The plan in force.
    pub const fn plan(&self) -> Plan {
        self.plan
    }

    /// A media packet (the whole RTP packet) has been sent; call [`Encoder::poll`] until it answers false.
    ///
    /// # Errors
    /// [`WireError`] if the packet is no RTP packet or too long to be protected. Nothing has changed then.
    pub fn on_sent(&mut self, packet: &[u8]) -> Result<(), WireError> {
        let mut symbol = self.spare.pop().unwrap_or_default();
        symbol.set(packet)?;
        let number = sequence(packet).unwrap_or_default();
        // A mask counts from the oldest: numbers that jump begin a new window.
        if self.kept.back().is_some_and(|(last, _)| number != last.wrapping_add(1)) {
            self.spare.extend(self.kept.drain(..).map(|(_, s)| s));
            self.fresh = 0;
        }
        self.kept.push_back((number, symbol));
        while self.kept.len() > self.window() {
            self.spare.extend(self.kept.pop_front().map(|(_, s)| s));
        }
        self.fresh = (self.fresh + 1).min(self.kept.len());
        self.credit = (self.credit + self.plan.overhead.get()).min(MOST_DUE);
        Ok(())
    }

    /// Whether a repair packet is due.
    pub fn is_due(&self) -> bool {
        self.credit >= 1.0 && !self.kept.is_empty()
    }

    /// Forgets the media packets that were kept: the next ones are protected among themselves.
    pub fn clear(&mut self) {
        self.spare.extend(self.kept.drain(..).map(|(_, s)| s));
        (self.fresh, self.credit) = (0, 0.0);
    }

    /// Appends the next repair packet's payload (FEC header and repair payload) to `out`, if one is due.
    /// `random` chooses the older packets.
    pub fn poll(&mut self, random: &mut RandomStream, out: &mut Vec<u8>) -> bool {
        if !self.is_due() {
            return false;
        }
        self.credit -= 1.0;
        let draws = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let fresh = u128::MAX << (self.kept.len() - self.fresh);
        let chosen = (draws | fresh) & u128::MAX >> (128 - self.kept.len());
        // A second repair packet at once, with nothing new and no draw, would cover nothing.
        let chosen = if chosen == 0 { 1 << (self.kept.len() - 1) } else { chosen };
        self.fresh = 0;
        let first = chosen.trailing_zeros();
        self.repair(first as usize, Cover::Mask(chosen >> first), out);
        true
    }

    /// Appends the payload of a repair packet with the cover, counted from the packet `first` of those kept.
    fn repair(&mut self, first: usize, cover: Cover, out: &mut Vec<u8>) {
        let mut sum = std::mem::take(&mut self.sum);
        sum.0.clear();
        sum.0.resize(FIELDS, 0);
        for i in cover.distances() {
            if let Some((_, symbol)) = self.kept.get(first + usize::from(i)) {
                sum.add(symbol);
            }
        }
        let base = self.kept.get(first).map_or(0, |(number, _)| *number);
        let (fields, body) = sum.0.split_first_chunk::<FIELDS>().unwrap_or((&[0; FIELDS], &[]));
        let header = Header {
            flags: [fields[0], fields[1]],
            length: u16::from_be_bytes([fields[2], fields[3]]),
            timestamp: u32::from_be_bytes([fields[4], fields[5], fields[6], fields[7]]),
            kind: Kind::Parity { base, cover },
        };
        header.emit(out);
        out.extend_from_slice(body);
        self.sum = sum;
    }

    fn window(&self) -> usize {
        usize::from(self.plan.window.clamp(1, MASK_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u16, first: [u8; 2], timestamp: u32, payload: &[u8]) -> Vec<u8> {
        let mut p = first.to_vec();
        p.extend_from_slice(&number.to_be_bytes());
        p.extend_from_slice(&timestamp.to_be_bytes());
        p.extend_from_slice(&[0, 0, 0, 9]);
        p.extend_from_slice(payload);
        p
    }

    fn plan(window: u16, overhead: f64) -> Plan {
        Plan { window, overhead: Probability::new(overhead).unwrap() }
    }

    //= 8627-6.2-1
    //= 8627-6.2-2
    //= 8627-6.2-3
    #[test]
    fn a_repair_packet_worked_out_by_hand() {
        // Two packets: marker and payload type 96 (0xe0), time 0x10, 3 bytes; no marker (0x60), time 0x31, 5 bytes.
        // Every repair packet covers what is new, so with one per two packets: both, mask 11.
        let mut e = Encoder::new(plan(2, 0.5));
        let (mut random, mut out) = (RandomStream::named(1, "fec"), Vec::new());
        e.on_sent(&packet(0xffff, [0x80, 0xe0], 0x10, &[1, 2, 3])).unwrap();
        assert!(!e.poll(&mut random, &mut out));
        e.on_sent(&packet(0, [0x80, 0x60], 0x31, &[0xff, 0, 3, 4, 5])).unwrap();
        assert!(e.poll(&mut random, &mut out));
        // The two first octets without the version: 00, e0 ^ 60 = 80; 3 ^ 5 = 6; 10 ^ 31 = 21; base ffff; k = 0,
        // 11 and thirteen zeros: 0110 0000 0000 0000; 01 ^ ff, 02 ^ 00, 03 ^ 03, 00 ^ 04, 00 ^ 05.
        let expected = [0, 0x80, 0, 6, 0, 0, 0, 0x21, 0xff, 0xff, 0x60, 0, 0xfe, 2, 0, 4, 5];
        assert_eq!(out, expected);
        assert!(!e.poll(&mut random, &mut out));
    }

    #[test]
    fn as_many_repair_packets_as_the_plan_says_and_none_after_zero() {
        let (mut e, mut random, mut out) = (Encoder::new(plan(30, 0.15)), RandomStream::named(1, "fec"), Vec::new());
        let mut repairs = 0;
        for n in 0..1_000 {
            e.on_sent(&packet(n, [0x80, 96], 0, &[7; 50])).unwrap();
            while e.poll(&mut random, &mut out) {
                repairs += 1;
            }
        }
        assert!((149..=150).contains(&repairs), "{repairs}"); // 1,000 x 0.15, the fraction of the last one left
        e.set_plan(plan(30, 0.0));
        for n in 1_000..1_100 {
            e.on_sent(&packet(n, [0x80, 96], 0, &[7; 50])).unwrap();
            assert!(!e.poll(&mut random, &mut out));
        }
    }

    #[test]
    fn each_packet_is_in_the_repair_packet_that_follows_next() {
        let (mut e, mut random) = (Encoder::new(plan(40, 0.125)), RandomStream::named(1, "fec"));
        let mut repairs = 0;
        for n in 0..400 {
            e.on_sent(&packet(n, [0x80, 96], 0, &[7; 50])).unwrap();
            let mut out = Vec::new();
            if e.poll(&mut random, &mut out) {
                let Kind::Parity { base, cover } = Header::parse(&out).unwrap().0.kind else { panic!("no parity") };
                let covered: Vec<u16> = cover.distances().map(|d| base + d).collect();
                assert!((n - 7..=n).all(|i| covered.contains(&i)), "{n}: {covered:?}"); // one per eight
                assert!(n - covered[0] < 40, "the window: {covered:?}");
                repairs += 1;
            }
        }
        assert_eq!(repairs, 50);
    }

    #[test]
    fn a_gap_in_the_numbers_begins_a_new_window() {
        let (mut e, mut random) = (Encoder::new(plan(10, 1.0)), RandomStream::named(1, "fec"));
        for n in [5, 6, 9] {
            e.on_sent(&packet(n, [0x80, 96], 0, &[7; 50])).unwrap();
            let mut out = Vec::new();
            assert!(e.poll(&mut random, &mut out));
            if n == 9 {
                let only = Kind::Parity { base: 9, cover: Cover::Mask(1) };
                assert_eq!(Header::parse(&out).unwrap().0.kind, only);
            }
        }
    }

    #[test]
    fn a_packet_that_cannot_be_protected_is_refused() {
        let mut e = Encoder::new(plan(10, 1.0));
        let mut random = RandomStream::named(1, "fec");
        assert!(e.on_sent(&[0x80; 11]).is_err());
        assert!(e.on_sent(&packet(1, [0x40, 96], 0, &[])).is_err(), "version 1");
        assert!(e.on_sent(&packet(1, [0x80, 96], 0, &[0; 1_489])).is_err(), "1,501 bytes");
        assert!(!e.poll(&mut random, &mut Vec::new()));
        assert!(e.on_sent(&packet(1, [0x80, 96], 0, &[0; 1_488])).is_ok());
    }
}
