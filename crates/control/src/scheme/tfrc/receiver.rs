//! TFRC's receiver that measures: from packets with a rate header to reports once per RTT.
//!
//! Source: RFC 5348 §6. Read first: §6.1, §6.2. The meaning of p is in `history.rs`. Used where the sender has
//! `measured_by = receiver`; otherwise the sender measures, and the receiver acknowledges packets.
//!
//! # Symbols
//!
//! | RFC | here | unit | set |
//! | --- | --- | --- | --- |
//! | R_m | `r`: what the packet with the highest number carries | s | each packet |
//! | R_(m-1) | `period`: R_m when the timer was last set | s | each report |
//! | X_recv | `x_recv()` | byte/s | each report |
//! | X_target | `most`, and `x_recv()` now | byte/s | the first loss event |
//! | p, p_prev | `LossEvents::loss_event_rate`, `reported_p` | – | each report |
//! | t_recvdata, t_delay | [`RateReport::echoed`], [`RateReport::delay`] | s | each report |
//! | N, H (RFC 4828) | mean size of what came, `small_packets` | bytes | the first loss event |
//!
//! # Readings
//!
//! - X_recv goes back to the last report that is at least R_(m-1) ago (the RFC's MAY), and in the first
//!   RTT to the first packet, but is divided by no less than R_(m-1). The first packet itself is where
//!   the counting begins.
//! - s is the mean size of what has come, so that the loss interval does not depend on knowing the
//!   sender's: the equation is inverted in packets per RTT.
//! - For TFRC-SP the equation's packet is 1,460 bytes and X_recv counts N of each N + H: as the sender
//!   does, backwards. RFC 4828 does not say.
//! - p_prev is the p last reported.
//! - While no packet has carried an RTT, R is 1 s [RFC 8085 §3.1.1]. With the first that does, the timer
//!   runs that R from the last report on, and X_recv is over that R.
//! - That the first packet was lost cannot be seen: numbers begin anywhere.
//!
//! # Deviations
//!
//! - Echoed is the packet with the highest number, not the last to arrive: a report that echoes an
//!   older packet than the one before looks like an old report.
//! - R_m is taken as 1 ms to 64 s, whatever a header says.
//!
//! # Not implemented
//!
//! Coarse timestamps (RFC 4342's window counter); several reports per RTT.

use super::history::{Arrivals, Heard, HistoryParams};
use crate::equation::TcpPath;
pub use crate::feedback::ReceiverParams;
use crate::feedback::{RateHeader, RateReport};
use crate::meter::Meter;
use fairpace_units::{Bytes, Duration, Ecn, Instant, Rate};
use std::collections::VecDeque;

/// R while no packet has carried one [RFC 8085 §3.1.1].
const INITIAL_RTT: Duration = Duration::from_secs(1);
/// The least and the longest R that is believed.
const BELIEVABLE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(64));
/// The least X_target, packets per RTT [RFC 5348 §6.3.1].
const LEAST_TARGET: f64 = 0.5;
/// The equation's packet in TFRC-SP, bytes [RFC 4828 §3].
const SP_SEGMENT: f64 = 1_460.0;

/// A packet with a rate header has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatedArrival {
    /// Its number; never wraps.
    pub seq: u64,
    /// Its size, in the terms in which rates are meant.
    pub size: Bytes,
    /// The packet's departure and the sender's RTT, as its header says.
    pub header: RateHeader,
    /// The ECN field it arrived with.
    pub ecn: Ecn,
}

/// The packet with the highest number so far.
#[derive(Clone, Copy, Debug)]
struct Newest {
    seq: u64,
    size: Bytes,
    sent_at: Instant,
    arrived: Instant,
}

/// Measures p and X_recv, and reports them once per RTT while packets come.
///
/// Hand in arrivals, call [`TfrcReceiver::poll`], wake up at [`TfrcReceiver::next`]. A packet in
/// order costs O(1); memory is bounded, whatever arrives.
#[derive(Clone, Debug)]
pub struct TfrcReceiver {
    params: ReceiverParams,
    /// One byte per packet, one second per RTT, t_RTO = 4R: rates are packets per RTT.
    unit: TcpPath,
    arrivals: Arrivals,
    /// When the first packet came, and its size; `None` before.
    first: Option<(Instant, Bytes)>,
    newest: Option<Newest>,
    /// All that came: bytes and packets.
    bytes: u64,
    packets: u64,
    /// The data that came after the first packet.
    meter: Meter,
    r: Option<Duration>,
    period: Duration,
    /// When the feedback timer expires, or expired without anything to report.
    timer: Instant,
    /// When the next report is due; NEVER while nothing came since the last.
    due: Instant,
    reported_p: f64,
    /// The highest X_recv so far, bytes per second.
    most: f64,
    /// The last report and the packets since, where reports are ns-2's.
    ns2: Option<Ns2>,
}

/// The memory of ns-2's receiver (`tcp/tfrc-sink.cc`).
#[derive(Clone, Debug, Default)]
struct Ns2 {
    /// When the last report left, and how many packets have come since.
    reported: Instant,
    since: u64,
    /// When the packets of the last R came, the latest [`Ns2::MOST`] of them.
    arrivals: VecDeque<Instant>,
}

impl Ns2 {
    /// R is what headers say: X_recv within an R of a report is so many packets per R at most.
    const MOST: usize = 1 << 16;

    /// A packet has come; whether it is reported at once, loss or not.
    fn on_packet(&mut self, now: Instant, r: Duration) -> bool {
        self.since += 1;
        self.arrivals.push_back(now);
        while self.arrivals.len() > Self::MOST || self.arrivals.front().is_some_and(|at| *at + r <= now) {
            self.arrivals.pop_front();
        }
        now.since(self.reported) >= r
    }

    /// X_recv in packets per second: what came since the last report, if that is an R ago, or in the R before the last packet; one
    /// where nothing came.
    fn x_recv(&self, now: Instant, r: Duration) -> f64 {
        let since = now.since(self.reported);
        match (since >= r, self.since) {
            (true, 0) => 1.0,
            (true, n) => n as f64 / since.as_secs_f64(),
            (false, _) => self.arrivals.len() as f64 / r.as_secs_f64(),
        }
    }
}

impl TfrcReceiver {
    /// Nothing has arrived.
    pub fn new(params: ReceiverParams) -> Self {
        let second = Duration::from_secs(1);
        let history = HistoryParams { discounting: params.discounting, short_packets: params.small_packets.is_some() };
        TfrcReceiver {
            params,
            unit: TcpPath::new(Bytes::new(1), second, 4 * second, 1.0).expect("a path"),
            arrivals: Arrivals::new(&history).as_ns2(params.as_ns2),
            first: None,
            newest: None,
            bytes: 0,
            packets: 0,
            meter: Meter::starting(Instant::ZERO),
            r: None,
            period: INITIAL_RTT,
            timer: Instant::ZERO,
            due: Instant::NEVER,
            reported_p: 0.0,
            most: 0.0,
            ns2: params.reports_as_ns2.then(Ns2::default),
        }
    }

    /// p as of now.
    pub fn loss_event_rate(&self) -> f64 {
        self.arrivals.events().loss_event_rate()
    }

    /// A packet has arrived [RFC 5348 §6.1]. Duplicates change nothing.
    pub fn on_packet(&mut self, now: Instant, arrival: &RatedArrival) {
        let rtt = arrival.header.rtt.map(|r| r.clamp(BELIEVABLE.0, BELIEVABLE.1));
        let no_loss_before = self.arrivals.events().is_empty();
        let r = rtt.or(self.r).unwrap_or(INITIAL_RTT);
        let heard = self.arrivals.on_packet(arrival.seq, now, r, arrival.ecn == Ecn::Ce);
        if heard == Heard::Known {
            return;
        }
        let is_due = self.ns2.as_mut().is_some_and(|ns2| ns2.on_packet(now, r));
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(arrival.size.get());
        if self.first.is_none() {
            self.first = Some((now, arrival.size));
            self.meter = Meter::starting(now);
            self.period = r;
        } else {
            self.meter.add(arrival.size.get());
        }
        if self.newest.is_none_or(|n| arrival.seq > n.seq) {
            let RateHeader { sent_at, .. } = arrival.header;
            self.newest = Some(Newest { seq: arrival.seq, size: arrival.size, sent_at, arrived: now });
            if let (None, Some(r), true) = (self.r, rtt, self.packets > 1) {
                // So far R was a guess: the timer and X_recv go by what it is.
                self.timer = self.timer - self.period + r;
                self.period = r;
            }
            self.r = rtt.or(self.r);
        }
        if heard == Heard::LossEvent && no_loss_before {
            self.begin_history(now);
        }
        let at_once = match heard {
            Heard::LossEvent => self.ns2.is_some() || self.loss_event_rate() > self.reported_p,
            Heard::Repaired => true,
            Heard::New | Heard::Known => is_due,
        };
        let due = if at_once || self.r.is_none() { now } else { self.timer.max(now) };
        self.due = self.due.min(due);
    }

    /// The packet that arrived last brought a Quick-Start request: a report is due at once, and the feedback
    /// timer runs from it [RFC 5634 §3.2.2].
    pub fn on_quick_start_request(&mut self, now: Instant) {
        if self.newest.is_some() {
            self.due = now;
        }
    }

    /// The report, if one is due [RFC 5348 §6.2].
    pub fn poll(&mut self, now: Instant) -> Option<RateReport> {
        let newest = self.newest.filter(|_| now >= self.due)?;
        let x_recv = self.x_recv(now);
        self.most = self.most.max(x_recv);
        self.reported_p = self.loss_event_rate();
        self.meter.mark(now, self.period);
        self.period = self.r.unwrap_or(INITIAL_RTT);
        self.timer = now + self.period;
        self.due = Instant::NEVER;
        if let Some(ns2) = &mut self.ns2 {
            (ns2.reported, ns2.since) = (now, 0);
            if let Some(r) = self.r {
                self.timer = now + r * 3 / 2;
                // One that was made when a packet came is followed by another.
                self.due = if newest.arrived == now { self.timer } else { Instant::NEVER };
            }
        }
        Some(RateReport {
            echoed: newest.sent_at,
            delay: now.since(newest.arrived),
            received_rate: Rate::bps(x_recv * 8.0),
            loss_event_rate: self.reported_p,
        })
    }

    /// When the next report is due; [`Instant::NEVER`] if none is before another packet comes. If the timer
    /// has expired by then, that packet's report is due at once.
    pub fn next(&self) -> Instant {
        self.due
    }

    /// X_recv, bytes per second [RFC 5348 §6.2]: 0 at the first packet, then one packet per RTT or more.
    fn x_recv(&self, now: Instant) -> f64 {
        let (Some((began, first)), Some(newest)) = (self.first, self.newest) else { return 0.0 };
        if let (Some(ns2), Some(r)) = (&self.ns2, self.r) {
            return ns2.x_recv(now, r) * newest.size.as_f64();
        }
        if self.packets == 1 {
            return 0.0;
        }
        let rate = if now.since(began) < self.period {
            (self.bytes - first.get()) as f64 / self.period.as_secs_f64()
        } else {
            self.meter.rate(now, self.period).unwrap_or(0.0)
        };
        rate.max(newest.size.as_f64() / self.period.as_secs_f64())
    }

    /// The first loss interval: what gives X_target by the equation [RFC 5348 §6.3.1].
    fn begin_history(&mut self, now: Instant) {
        // ns-2 goes by what came last.
        let highest = if self.ns2.is_some() { 0.0 } else { self.most };
        let target = highest.max(self.x_recv(now));
        let mean = self.bytes as f64 / self.packets as f64;
        let (segment, share) = match self.params.small_packets {
            None => (mean, 1.0),
            Some(header) => (SP_SEGMENT, mean / (mean + header)),
        };
        let r = self.r.unwrap_or(INITIAL_RTT).as_secs_f64();
        let per_rtt = (target * r / (share * segment)).max(LEAST_TARGET);
        let p = self.params.equation.loss_rate(&self.unit, Rate::bps(per_rtt * 8.0));
        self.arrivals.set_first_interval(1.0 / p.get());
    }
}

#[cfg(test)]
mod tests;
