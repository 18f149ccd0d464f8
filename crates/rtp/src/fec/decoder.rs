//! The receiver's half [RFC 8627 §6.3]: linear equations over GF(2), solved as they come.
//!
//! Each repair packet is an equation: the sum of the packets that it covers and that are missing equals its payload
//! with those subtracted that are there. The equations are kept reduced: each has a pivot, its lowest missing number,
//! that no other equation contains. Hence a packet follows from the equations exactly when it is alone in one.

#![allow(clippy::indexing_slicing, reason = "the indices are those of its own tables; tests mutate what it reads")]

use super::header::{Header, Kind, protected_ssrc};
use super::symbol::{FIELDS, MAX_PACKET, Symbol, sequence, ssrc};
use crate::WireError;
use crate::packet::{HEADER_LEN, Packet};
use fairpace_units::{Seq16, Unwrapper16};
use std::collections::VecDeque;

/// Media numbers that are remembered, from the highest down: at 1,200 bytes 0.5 s of 20 Mbit/s.
const WINDOW: u64 = 1_024;
/// Equations that are kept: more losses than that at once are given up, the oldest first.
const EQUATIONS: usize = 64;
/// Packets recovered and not yet fetched. One input recovers [`EQUATIONS`] at most.
const READY: usize = 4 * EQUATIONS;

/// Counts of what came in and of what followed from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecoderStats {
    /// Repair packets, the refused ones apart.
    pub repair: u64,
    /// Repair packets that told nothing new.
    pub useless: u64,
    /// Media packets recovered.
    pub recovered: u64,
    /// Equations given up: too old, too many, or covering what was forgotten.
    pub given_up: u64,
    /// Equations whose solution is no packet, or that contradict the others: a sender's fault, or forged.
    pub wrong: u64,
}

/// An equation: the sum of the packets `missing` (ascending, never empty) is `sum`.
#[derive(Debug)]
struct Equation {
    missing: Vec<u64>,
    sum: Symbol,
}

impl Equation {
    fn add(&mut self, other: &Equation) {
        self.sum.add(&other.sum);
        let (a, b) = (std::mem::take(&mut self.missing), &other.missing);
        let only_a = a.iter().filter(|n| b.binary_search(n).is_err());
        let only_b = b.iter().filter(|n| a.binary_search(n).is_err());
        self.missing = only_a.chain(only_b).copied().collect();
        self.missing.sort_unstable();
    }

    fn has(&self, number: u64) -> bool {
        self.missing.binary_search(&number).is_ok()
    }
}

/// Recovers lost media packets of one stream from those that came and from repair packets.
///
/// Memory is bounded: 1,024 media packets, 64 equations over them and 256 recovered packets, each packet of at most
/// [`MAX_PACKET`] bytes, some 2.6 MB in all. So is work: a datagram costs at most 400 sums of one packet's length.
///
/// The UDP checksum is the only protection against damage on the way: a repair packet proves nothing. A solution that
/// is no RTP packet, or has something behind its end, is not handed out.
#[derive(Debug)]
pub struct Decoder {
    protected: u32,
    numbers: Unwrapper16,
    /// The packets `[end - known.len(), end)`; `None` is missing.
    known: VecDeque<Option<Symbol>>,
    end: u64,
    equations: Vec<Equation>,
    ready: VecDeque<Vec<u8>>,
    stats: DecoderStats,
}

impl Decoder {
    /// A decoder for the media stream with the SSRC `protected`.
    pub fn new(protected: u32) -> Self {
        Decoder {
            protected,
            numbers: Unwrapper16::default(),
            known: VecDeque::new(),
            end: 0,
            equations: Vec::new(),
            ready: VecDeque::new(),
            stats: DecoderStats::default(),
        }
    }

    /// Counts so far.
    pub const fn stats(&self) -> DecoderStats {
        self.stats
    }

    /// A media packet has come (the whole RTP packet), for the first time or again. Other streams' are passed over.
    ///
    /// # Errors
    /// [`WireError`] if the datagram is no RTP packet or longer than what can be protected. Nothing has changed then.
    pub fn on_media(&mut self, datagram: &[u8]) -> Result<(), WireError> {
        let mut symbol = Symbol(Vec::with_capacity(datagram.len().min(MAX_PACKET)));
        symbol.set(datagram)?;
        if ssrc(datagram) == Some(self.protected) {
            let number = self.numbers.unwrap(Seq16(sequence(datagram).unwrap_or_default()));
            self.learn(number, symbol);
        }
        Ok(())
    }

    /// A repair packet has come (the whole RTP packet). Those for other streams are passed over.
    ///
    /// # Errors
    /// [`WireError`] if the packet cannot be read, or repairs longer ones than can be protected. Nothing has changed then.
    pub fn on_repair(&mut self, datagram: &[u8]) -> Result<(), WireError> {
        let protected = protected_ssrc(datagram)?;
        let (header, body) = Header::parse(Packet::parse(datagram)?.payload)?;
        if body.len() > MAX_PACKET - HEADER_LEN {
            let found = u32::try_from(body.len()).unwrap_or(u32::MAX);
            return Err(WireError::Field { what: "length of a repair payload", found, allowed: "up to 1488" });
        }
        if protected != self.protected {
            return Ok(());
        }
        self.stats.repair += 1;
        if self.known.is_empty() {
            self.stats.given_up += 1; // before the first media packet nothing says where the numbers stand
            return Ok(());
        }
        let mut sum = Symbol(Vec::with_capacity(FIELDS + body.len()));
        sum.0.extend_from_slice(&header.flags);
        let length = if let Kind::Retransmission { .. } = header.kind { body.len() as u16 } else { header.length };
        sum.0.extend_from_slice(&length.to_be_bytes());
        sum.0.extend_from_slice(&header.timestamp.to_be_bytes());
        sum.0.extend_from_slice(body);
        let mut equation = Equation { missing: Vec::new(), sum };
        match header.kind {
            Kind::Retransmission { sequence } => {
                let number = self.numbers.peek(Seq16(sequence));
                if !self.cover(&mut equation, number) {
                    return Ok(());
                }
            }
            Kind::Parity { base, cover } => {
                let base = self.numbers.peek(Seq16(base));
                for distance in cover.distances() {
                    if !self.cover(&mut equation, base + u64::from(distance)) {
                        return Ok(());
                    }
                }
            }
        }
        for i in 0..self.equations.len() {
            if equation.has(self.equations[i].missing[0]) {
                equation.add(&self.equations[i]);
            }
        }
        if equation.missing.is_empty() {
            self.stats.useless += 1;
            self.stats.wrong += u64::from(equation.sum.0.iter().any(|b| *b != 0));
        } else {
            self.insert(equation);
        }
        Ok(())
    }

    /// The next recovered media packet, bit for bit as it was sent. Call until `None` after each input.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    fn start(&self) -> u64 {
        self.end - self.known.len() as u64
    }

    /// The place of a number in the window.
    fn place(&self, number: u64) -> Option<usize> {
        let i = usize::try_from(number.checked_sub(self.start())?).ok()?;
        (i < self.known.len()).then_some(i)
    }

    /// One covered number more: subtracted if there, else missing. False, and counted, if the number was forgotten or
    /// lies beyond what can be remembered.
    fn cover(&mut self, equation: &mut Equation, number: u64) -> bool {
        match self.place(number) {
            Some(i) => match &self.known[i] {
                Some(symbol) => equation.sum.add(symbol),
                None => equation.missing.push(number),
            },
            // Repair packets may overtake the last media packets that they cover.
            None if number >= self.end && number - self.start() < WINDOW => equation.missing.push(number),
            None => {
                self.stats.given_up += 1;
                return false;
            }
        }
        true
    }

    /// Remembers a media packet, and takes it out of the equations.
    fn learn(&mut self, number: u64, symbol: Symbol) {
        if self.known.is_empty() {
            self.end = number;
        }
        if number >= self.end {
            if number - self.end >= WINDOW {
                self.known.clear();
                self.end = number;
            }
            while self.end <= number {
                self.known.push_back(None);
                self.end += 1;
            }
            while self.known.len() as u64 > WINDOW {
                self.known.pop_front();
            }
            let start = self.start();
            let before = self.equations.len();
            self.equations.retain(|e| e.missing[0] >= start);
            self.stats.given_up += (before - self.equations.len()) as u64;
        }
        let Some(i) = self.place(number) else { return };
        if self.known[i].is_some() {
            return;
        }
        let mut pivot = None;
        for (k, equation) in self.equations.iter_mut().enumerate() {
            if let Ok(at) = equation.missing.binary_search(&number) {
                equation.missing.remove(at);
                equation.sum.add(&symbol);
                if at == 0 {
                    pivot = Some(k);
                }
            }
        }
        self.known[i] = Some(symbol);
        // The equation that lost its pivot has none of the others' in it, and takes its place anew.
        if let Some(k) = pivot {
            let equation = self.equations.swap_remove(k);
            if equation.missing.is_empty() {
                self.stats.useless += 1;
                self.stats.wrong += u64::from(equation.sum.0.iter().any(|b| *b != 0));
            } else {
                self.insert(equation);
            }
        }
        self.hand_out();
    }

    /// Adds an equation that contains no pivot, clears its pivot from the others, and hands out what follows.
    fn insert(&mut self, equation: Equation) {
        let pivot = equation.missing[0];
        for other in self.equations.iter_mut().filter(|e| e.has(pivot)) {
            other.add(&equation);
        }
        self.equations.push(equation);
        if self.equations.len() > EQUATIONS {
            let oldest = (0..self.equations.len()).min_by_key(|&i| self.equations[i].missing[0]).unwrap_or(0);
            self.equations.swap_remove(oldest);
            self.stats.given_up += 1;
        }
        self.hand_out();
    }

    /// Equations with one packet are solved: the packet is known from now on, and in no other equation.
    fn hand_out(&mut self) {
        while let Some(k) = self.equations.iter().position(|e| e.missing.len() == 1) {
            let Equation { missing, sum } = self.equations.swap_remove(k);
            let packet = sum.packet(missing[0] as u16, self.protected);
            match packet.filter(|p| Packet::parse(p).is_ok()) {
                Some(packet) if self.ready.len() < READY => {
                    self.stats.recovered += 1;
                    let mut symbol = sum;
                    symbol.0.truncate(FIELDS + packet.len() - HEADER_LEN);
                    // A packet that repair packets have brought before any later one came.
                    while self.end <= missing[0] {
                        self.known.push_back(None);
                        self.end += 1;
                    }
                    if let Some(i) = self.place(missing[0]) {
                        self.known[i] = Some(symbol);
                    }
                    self.ready.push_back(packet);
                }
                Some(_) => self.stats.given_up += 1,
                None => self.stats.wrong += 1,
            }
        }
    }
}
