//! A client as the base station of a cell sees it: what its packets say of the flow, which window it was told, whether it keeps to that,
//! and how late its data is. Nothing here reads a clock or sends.
//!
//! ```text
//!  a challenge asks for sack vectors ─▶ the target lets it in ─▶ planned: it has a window until it says BYE or is silent
//!                                   (sealed with a key: its feedback cannot be rewritten, and it is not planned)
//!  a challenge asks for something else ─▶ it cannot be told a window, and is not planned
//! ```
//!
//! **Who can lie.** A client is believed to be there when the target answers it; the target is the one that the operator has named. A forged
//! BYE takes a flow out of the plan for a second at most: its media, which goes on, brings it back. Outstanding packets are counted by what
//! passed here, and never by what anybody says of himself.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use fairpace_net::is_sealed;
use fairpace_rtp::base_station::{Sign, signs};
use fairpace_rtp::packet::is_rtcp;
use fairpace_sim::Promise;
use fairpace_units::{Bytes, Duration, Instant};
use std::net::SocketAddr;

/// A client of which nothing has come for so long has left. A sender's reports come every 6 s at the latest (`docs/rtp/timing.md`).
pub const LEFT_AFTER: Duration = Duration::from_secs(10);
/// Packets that come within this after a BYE were on their way already.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// And without anything for so long the client is gone.
const GONE_AFTER: Duration = Duration::from_secs(2);
/// A client that has left the plan is in none for so long: each change is a plan for all, and a client could ask for one at each round trip.
const AGAIN: Duration = Duration::from_secs(1);
/// A window that was lowered need not have reached its sender before.
const REACHES_SENDER: Duration = Duration::from_secs(1);
/// The least timeout of a sender [RFC 5681; `docs/controllers/aimd.md`]: without an acknowledgement for so long it may take what is
/// outstanding for lost, and send more.
const LEAST_RTO: Duration = Duration::from_millis(200);
/// Packets from which on an interval tells whether a window is kept.
const ENOUGH: u64 = 10;

/// How a client stands to the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// The client has not said what it is: no challenge has come.
    #[default]
    Unknown,
    /// Its sender does not want sack vectors, so that no window can reach it: it passes unplanned.
    NoWindow,
    /// Its packets are sealed with a key, and its feedback passes as it is: it passes unplanned.
    Sealed,
    /// The client wants to be told a window, and the target has not answered yet.
    Asking,
    /// The client has a window, or had one.
    Planned,
}

/// Why a client is no longer there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gone {
    /// One of its ends said goodbye.
    Bye,
    /// Nothing came for [`LEFT_AFTER`].
    Silent,
    /// Another client has its place.
    Replaced,
    /// The relay has ended.
    End,
}

/// The numbers of one client, from the path's warm-up on.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tally {
    /// Data packets that left the cell for the target, and their bytes on the wire.
    pub data: u64,
    /// The bytes of these, IP headers included.
    pub bytes: Bytes,
    /// Of these packets, those that left more than the tolerable jitter above the least delay after they had come: delays of this machine
    /// included.
    pub late: u64,
    /// The same by the path's clock alone.
    pub late_in_path: u64,
    /// Of these packets, those that are larger than the plan takes them to be.
    pub larger: u64,
    /// Data packets that the path dropped.
    pub dropped: u64,
    /// The first and the last departure of these.
    pub span: Option<(Instant, Instant)>,
    /// Of these packets, those that left while a promise held for the flow.
    pub promised: u64,
    /// How many of them were to be late at most by the plan then in force: outages, added up packet by packet.
    pub late_by_plan: f64,
    /// Bits that the plan gives the flow in the time for which it had one.
    pub bits_by_plan: f64,
    /// That time.
    pub planned_for: Duration,
    /// Windows written into its feedback.
    pub windows_written: u64,
    /// Feedback of a sealed client that passed as it was.
    pub sealed_feedback: u64,
    /// Data packets that came with more outstanding than any window that its sender may have known of.
    pub over_window: u64,
}

/// A client's stay, from its first packet to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct Visit {
    /// The place's number, from zero.
    pub place: usize,
    /// The place's name: that of a flow of the scenario.
    pub name: String,
    /// The client's address.
    pub client: SocketAddr,
    /// When its first packet came, in the path's time.
    pub from: Instant,
    /// When it ended, and why; `None`: it is there.
    pub end: Option<(Instant, Gone)>,
    /// How it stands to the plan, or stood.
    pub standing: Standing,
    /// The window that it was told last, in packets.
    pub window: Option<u32>,
    /// The service that it may expect now, or might last; `None`: nothing can be promised.
    pub promise: Option<Promise>,
    /// The client sends more than its window allows.
    pub ignores_window: bool,
    /// Its numbers.
    pub tally: Tally,
}

/// The consequence of a packet for the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// The client is there, and is to have a window.
    Joins,
    /// The client is not there any more.
    Leaves,
}

/// A client at its place.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) visit: Visit,
    /// Tolerable delay.
    bound: Option<Duration>,
    /// The size of a full packet.
    packet_size: Bytes,
    /// Whether the client takes part in the plan now.
    in_plan: bool,
    /// The SSRC of its media.
    media: Option<u32>,
    said_bye: Option<Instant>,
    /// When it left the plan last.
    unplanned: Option<Instant>,
    /// The window before the one that was told last, and since when that is so: for a while it may still count.
    before: Option<(u32, Instant)>,
    /// The largest number acknowledged to it, the lowest 16 bits, and when that last grew.
    acknowledged: Option<(u16, Instant)>,
    /// Data packets of this interval, and those with too much outstanding.
    interval: (u64, u64),
    planned_since: Option<Instant>,
    /// Nothing counts before.
    warmup: Instant,
}

impl Guest {
    pub(super) fn new(
        place: usize,
        name: &str,
        client: SocketAddr,
        from: Instant,
        (bound, packet_size): (Option<Duration>, Bytes),
        warmup: Instant,
    ) -> Guest {
        Guest {
            visit: Visit {
                place,
                name: name.to_owned(),
                client,
                from,
                end: None,
                standing: Standing::Unknown,
                window: None,
                promise: None,
                ignores_window: false,
                tally: Tally::default(),
            },
            bound,
            packet_size,
            in_plan: false,
            media: None,
            said_bye: None,
            unplanned: None,
            before: None,
            acknowledged: None,
            interval: (0, 0),
            planned_since: None,
            warmup,
        }
    }

    pub(super) fn is_planned(&self) -> bool {
        self.in_plan
    }

    /// Whether it said goodbye, and nothing has come since that contradicts it.
    pub(super) fn has_left(&self) -> bool {
        self.said_bye.is_some()
    }

    /// Whether it said goodbye so long ago that nothing more is to be expected.
    pub(super) fn is_gone(&self, at: Instant) -> bool {
        self.said_bye.is_some_and(|bye| at.since(bye) >= GONE_AFTER)
    }

    /// A packet came from the client.
    pub(super) fn on_sent(&mut self, at: Instant, bytes: &[u8]) -> Change {
        if !is_rtcp(bytes) {
            self.on_media(at, bytes);
            return Change::None;
        }
        let mut change = Change::None;
        for sign in signs(bytes) {
            match sign {
                Sign::Asked { media, takes_window } => {
                    self.returns(at);
                    self.media = Some(media);
                    let standing = match (takes_window, is_sealed(bytes)) {
                        (false, _) => Standing::NoWindow,
                        (true, true) => Standing::Sealed,
                        (true, false) => Standing::Asking,
                    };
                    if (self.visit.standing, standing) != (Standing::Planned, Standing::Asking) {
                        change = self.leaves(at);
                        self.visit.standing = standing;
                    }
                }
                Sign::Bye => change = self.on_bye(at),
                Sign::LetIn | Sign::Acknowledged(_) => {}
            }
        }
        change
    }

    /// A packet for the client came from the target.
    pub(super) fn on_answered(&mut self, at: Instant, bytes: &[u8]) -> Change {
        if !is_rtcp(bytes) {
            return Change::None;
        }
        if self.visit.standing == Standing::Sealed {
            // Challenges are answered in clear; all else is sealed.
            let is_feedback = !signs(bytes).any(|sign| sign == Sign::LetIn);
            self.visit.tally.sealed_feedback = self.visit.tally.sealed_feedback.saturating_add(is_feedback.into());
            return Change::None;
        }
        let mut change = Change::None;
        for sign in signs(bytes) {
            match sign {
                Sign::LetIn | Sign::Acknowledged(_)
                    if matches!(self.visit.standing, Standing::Asking | Standing::Planned)
                        && !self.in_plan
                        && self.unplanned.is_none_or(|left| at.since(left) >= AGAIN)
                        && self.said_bye.is_none() =>
                {
                    self.visit.standing = Standing::Planned;
                    self.in_plan = true;
                    self.planned_since = Some(at);
                    change = Change::Joins;
                }
                Sign::Bye => change = self.on_bye(at),
                _ => {}
            }
        }
        change
    }

    fn on_bye(&mut self, at: Instant) -> Change {
        self.said_bye.get_or_insert(at);
        self.leaves(at)
    }

    /// The client is out of the plan from now on.
    pub(super) fn leaves(&mut self, at: Instant) -> Change {
        if !self.is_planned() {
            return Change::None;
        }
        self.settle(at);
        self.in_plan = false;
        self.planned_since = None;
        self.unplanned = Some(at);
        Change::Leaves
    }

    /// Something came that nobody sends who has gone.
    fn returns(&mut self, at: Instant) {
        if self.said_bye.is_some_and(|bye| at.since(bye) >= LAST_WORDS) {
            self.said_bye = None;
        }
    }

    fn on_media(&mut self, at: Instant, bytes: &[u8]) {
        let Some(([_, _, high, low, _, _, _, _], rest)) = bytes.split_first_chunk::<8>() else { return };
        let ssrc = rest.first_chunk::<4>().map(|b| u32::from_be_bytes(*b));
        if ssrc.is_none() || ssrc != self.media {
            return;
        }
        self.returns(at);
        let Some(allowed) = self.allowed(at) else { return };
        let Some((acknowledged, grew)) = self.acknowledged else { return };
        if at.since(grew) > LEAST_RTO {
            return;
        }
        let outstanding = u16::from_be_bytes([*high, *low]).wrapping_sub(acknowledged);
        // Half of the numbers lie behind: an old packet that comes late.
        let is_over = outstanding < 0x8000 && u32::from(outstanding) > allowed.max(1);
        let (all, over) = &mut self.interval;
        (*all, *over) = (all.saturating_add(1), over.saturating_add(is_over.into()));
        self.visit.tally.over_window = self.visit.tally.over_window.saturating_add(is_over.into());
    }

    /// The largest window that its sender may know of.
    fn allowed(&self, at: Instant) -> Option<u32> {
        let now = self.visit.window.filter(|_| self.is_planned())?;
        let before = self.before.filter(|(_, since)| at.since(*since) <= REACHES_SENDER);
        Some(before.map_or(now, |(before, _)| now.max(before)))
    }

    /// The end of an interval: whether it is news that the client ignores its window.
    pub(super) fn judge(&mut self) -> bool {
        let (all, over) = std::mem::take(&mut self.interval);
        let ignores = all >= ENOUGH && over.saturating_mul(2) > all;
        let is_news = ignores && !self.visit.ignores_window;
        self.visit.ignores_window |= ignores;
        is_news
    }

    /// A feedback packet leaves for the client, with that window where it has a place for one.
    pub(super) fn on_told(&mut self, at: Instant, bytes: &[u8], rwnd: Option<u32>, written: u32) {
        self.visit.tally.windows_written = self.visit.tally.windows_written.saturating_add(written.into());
        for sign in signs(bytes) {
            match sign {
                Sign::Acknowledged(number) => {
                    let number = number as u16;
                    let is_newer = |(before, _): (u16, Instant)| (1..0x8000).contains(&number.wrapping_sub(before));
                    if self.acknowledged.is_none_or(is_newer) {
                        self.acknowledged = Some((number, at));
                    }
                }
                Sign::LetIn => {}
                Sign::Asked { .. } | Sign::Bye => continue,
            }
            let Some(rwnd) = rwnd else { continue };
            if let Some(known) = self.visit.window.replace(rwnd)
                && known != rwnd
            {
                let before = self.before.filter(|(_, since)| at.since(*since) <= REACHES_SENDER);
                self.before = Some((before.map_or(known, |(before, _)| before.max(known)), at));
            }
        }
    }

    /// The plan has changed: from now on this promise holds.
    pub(super) fn on_promise(&mut self, at: Instant, promise: Option<Promise>) {
        self.settle(at);
        self.visit.promise = promise;
    }

    /// Adds up what the plan gave until now.
    fn settle(&mut self, at: Instant) {
        let (Some(since), true) = (self.planned_since.replace(at), self.is_planned()) else { return };
        if let Some(promise) = self.visit.promise {
            let (tally, time) = (&mut self.visit.tally, at.since(since.max(self.warmup)));
            tally.planned_for = tally.planned_for.saturating_add(time);
            tally.bits_by_plan += promise.throughput.as_bps() * time.as_secs_f64();
        }
    }

    /// A data packet of its left the path `in_path` after it had come, and this machine `delay` after.
    pub(super) fn on_delivered(&mut self, at: Instant, size: Bytes, in_path: Duration, delay: Duration) {
        if at < self.warmup {
            return;
        }
        let tally = &mut self.visit.tally;
        let late = |delay: Duration| u64::from(self.bound.is_some_and(|bound| delay > bound));
        tally.data = tally.data.saturating_add(1);
        tally.bytes = Bytes::new(tally.bytes.get().saturating_add(size.get()));
        tally.larger = tally.larger.saturating_add((size > self.packet_size).into());
        tally.late = tally.late.saturating_add(late(delay));
        tally.late_in_path = tally.late_in_path.saturating_add(late(in_path));
        tally.span = Some((tally.span.map_or(at, |(first, _)| first), at));
        if let (true, Some(promise)) = (self.in_plan, self.visit.promise) {
            tally.promised = tally.promised.saturating_add(1);
            tally.late_by_plan += promise.outage;
        }
    }

    /// The path dropped one of its data packets.
    pub(super) fn on_dropped(&mut self, at: Instant) {
        let counts = u64::from(at >= self.warmup);
        self.visit.tally.dropped = self.visit.tally.dropped.saturating_add(counts);
    }

    /// The client's stay is over.
    pub(super) fn end(mut self, at: Instant, why: Gone) -> Visit {
        self.settle(at);
        self.visit.end = Some((at, why));
        self.visit
    }

    /// The stay so far.
    pub(super) fn so_far(&mut self, at: Instant) -> Visit {
        self.settle(at);
        self.visit.clone()
    }
}

impl Tally {
    /// The part of its data that was late; `None` if there was none.
    pub fn outage(&self) -> Option<f64> {
        (self.data > 0).then(|| self.late as f64 / self.data as f64)
    }

    /// The part that was to be late by the plans in force as it left.
    pub fn outage_by_plan(&self) -> Option<f64> {
        (self.promised > 0).then(|| self.late_by_plan / self.promised as f64)
    }

    /// Its data's rate between the first and the last departure.
    pub fn rate(&self) -> Option<fairpace_units::Rate> {
        let (first, last) = self.span.filter(|(first, last)| last > first)?;
        Some(fairpace_units::Rate::bps(self.bytes.as_f64() * 8.0 / last.since(first).as_secs_f64()))
    }

    /// The rate that the plans gave it, as long as it had one.
    pub fn rate_by_plan(&self) -> Option<fairpace_units::Rate> {
        let time = self.planned_for.as_secs_f64();
        (time > 0.0).then(|| fairpace_units::Rate::bps(self.bits_by_plan / time))
    }
}

#[cfg(test)]
mod tests;
