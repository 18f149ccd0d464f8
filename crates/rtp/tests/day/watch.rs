//! The rules that hold at every step, whatever the weather.

use fairpace_rtp::What;
use fairpace_units::{Duration, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Consent [RFC 7675 §5.1], and the longest that a word is on its way.
const CONSENT: Duration = Duration::from_secs(30);
const ON_ITS_WAY: Duration = Duration::from_secs(4);
/// An empty packet to a receiver that measures, which may answer no challenge.
const EMPTY: usize = 60;
/// Numbers that are remembered.
const WINDOW: u64 = 4_096;

/// A process that sends, as far as the rules need it.
#[derive(Debug)]
pub(crate) struct OfSender {
    /// When the last word of the receiver left it that has arrived; a word from before the process began is to another.
    word: Option<Instant>,
    began: Instant,
    /// Bytes that have left beyond the highest rate, and when that was.
    level: f64,
    at: Instant,
    cap: Rate,
    packet: u64,
}

impl OfSender {
    pub(crate) fn new(now: Instant, cap: Rate, packet: u64) -> OfSender {
        OfSender { word: None, began: now, level: 0.0, at: now, cap, packet }
    }

    /// A datagram of the receiver arrives that left it then.
    pub(crate) fn on_word(&mut self, left: Instant) {
        if left >= self.began {
            self.word = self.word.max(Some(left));
        }
    }

    /// `Err` with what is wrong with this datagram.
    pub(crate) fn on_sent(&mut self, now: Instant, what: What, len: usize) -> Result<(), String> {
        // RTCP has its own share beside the flow's packets; a quantum of packets may leave at once.
        let drained = self.cap.as_bps() / 8.0 * 1.05 * now.since(self.at).as_secs_f64();
        self.level = (self.level - drained).max(0.0) + len as f64 + 28.0;
        self.at = now;
        let most = 14 * self.packet;
        if self.level > most as f64 {
            return Err(format!("{:.0} B beyond {}: at most {most} B", self.level, self.cap));
        }
        let is_media = !matches!(what, What::Challenge | What::Report | What::Bye);
        match self.word {
            _ if !is_media => Ok(()),
            None if len <= EMPTY => Ok(()),
            None => Err(format!("{what:?} before any word of the receiver")),
            Some(word) if now.since(word) <= CONSENT + ON_ITS_WAY => Ok(()),
            Some(word) => Err(format!("{what:?} although the receiver's last word left {:?} ago", now.since(word))),
        }
    }
}

/// Bytes from an address, and to it.
#[derive(Debug, Default)]
pub(crate) struct Amplification(BTreeMap<SocketAddr, (u64, u64)>);

impl Amplification {
    pub(crate) fn on_received(&mut self, from: SocketAddr, len: usize) {
        self.0.entry(from).or_default().0 += len as u64;
    }

    /// `Err` with what is wrong.
    pub(crate) fn on_sent(&mut self, to: SocketAddr, len: usize) -> Result<(), String> {
        let (received, sent) = self.0.entry(to).or_default();
        *sent += len as u64;
        if *sent > 3 * *received { Err(format!("{sent} B to {to} for {received} B")) } else { Ok(()) }
    }
}

/// The numbers of a source that were handed out.
#[derive(Debug, Default)]
pub(crate) struct HandedOut(BTreeSet<u64>);

impl HandedOut {
    pub(crate) fn begin_anew(&mut self) {
        self.0.clear();
    }

    /// `Err` if the packet was handed out before.
    pub(crate) fn on_media(&mut self, sequence: u64) -> Result<(), String> {
        let highest = self.0.last().copied().unwrap_or(sequence).max(sequence);
        if !self.0.insert(sequence) {
            return Err(format!("packet {sequence} is handed out twice"));
        }
        while self.0.first().is_some_and(|first| first + WINDOW < highest) {
            self.0.pop_first();
        }
        Ok(())
    }
}
