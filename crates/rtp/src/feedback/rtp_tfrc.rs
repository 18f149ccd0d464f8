//! Feedback of a receiver that measures itself: the TFRC profile ([`wire`]). A report proves only that
//! somebody saw the stamp that is echoed; the flow judges whether the rest can be true.

pub mod wire;

use self::wire::{Profile, Report, Stamp};
use super::{Arrived, Envelope, Heard, Lent, Proof, Refusal};
use crate::rtcp;
use fairpace_control::feedback::Message;
use fairpace_control::tfrc::receiver::{RatedArrival, ReceiverParams, TfrcReceiver};
use fairpace_control::{RateHeader, RateReport};
use fairpace_units::{Duration, Instant};

/// A peer that has echoed no challenge gets a packet to report on at most this often: TFRC's own pace before it
/// has any feedback [RFC 5348 §4.2].
const PROBE_SPACING: Duration = Duration::from_secs(1);
/// So many fit between the first challenge's end and the last one's: at 1 to 6 s.
const MOST_PROBES: usize = 6;

/// Whole µs since [`Instant::ZERO`].
const fn micros(t: Instant) -> u64 {
    t.as_nanos() / 1_000
}

/// The sender's end.
#[derive(Debug)]
pub(crate) struct Sender {
    profile: Profile,
    /// Added to every time sent, so that nobody can guess one.
    offset: u32,
    /// The newest stamp's time, µs since [`Instant::ZERO`].
    stamped: Option<u64>,
    /// When an empty packet may next leave to a peer that has not answered.
    next_probe: Instant,
    /// The times sent of those that have left, newest first: the first report must echo one of them exactly.
    probes: [Option<u64>; MOST_PROBES],
    /// The report that is being told.
    told: Option<RateReport>,
}

impl Sender {
    pub(crate) const fn new(profile: Profile, offset: u32) -> Self {
        let probes = [None; MOST_PROBES];
        Sender { profile, offset, stamped: None, next_probe: Instant::ZERO, probes, told: None }
    }

    pub(crate) const fn profile(&self) -> Profile {
        self.profile
    }

    /// The stamp of a packet that leaves now, under the extension's number.
    pub(crate) fn stamp(&self, now: Instant, srtt: Option<Duration>) -> (u8, Stamp) {
        let sent = (micros(now) as u32).wrapping_add(self.offset);
        (self.profile.extension, Stamp::new(srtt, sent))
    }

    /// A stamped packet has left.
    pub(crate) const fn on_sent(&mut self, now: Instant) {
        self.stamped = Some(micros(now));
    }

    /// When the next empty packet may leave to a peer that has not answered.
    pub(crate) const fn next_probe(&self) -> Instant {
        self.next_probe
    }

    /// An empty packet leaves to a peer that has not answered.
    pub(crate) fn on_probe(&mut self, now: Instant) {
        self.next_probe = now + PROBE_SPACING;
        let [a, b, c, d, e, _] = self.probes;
        self.probes = [Some(micros(now)), a, b, c, d, e];
    }

    pub(crate) fn on_report(&mut self, report: &Report, lent: &Lent<'_>) -> Result<Heard<'_>, Refusal> {
        let from_peer = match lent.trust.peer() {
            Some(peer) => peer == report.reporter,
            // No stamp was sent before the first challenge went unanswered: then there is nothing to echo.
            None => lent.challenging,
        };
        if !from_peer || report.media != lent.streams.media.ssrc {
            return Err(Refusal::WrongSsrc);
        }
        let now = lent.now;
        let echoed = wire::unwrap(micros(now), report.echoed.wrapping_sub(self.offset));
        // The flow takes a time for a departure's that is within a millisecond of it; in place of a challenge's
        // echo that would be ten bits less to guess.
        let proven = lent.trust.peer().is_some() || self.probes.contains(&Some(echoed));
        if !proven || self.stamped.is_none_or(|newest| echoed > newest) {
            return Err(Refusal::Measured);
        }
        // All packets that left within that microsecond had arrived.
        self.told = Some(report.measured(Instant::from_nanos(echoed * 1_000 + 999).min(now)));
        let message = self.told.as_ref().map(Message::Measured);
        Ok(Heard { untold: &[], message, proof: Proof::ByFlow, seen: [None; 4], reporter: report.reporter })
    }
}

/// The measuring of a stream that carries stamps.
#[derive(Debug)]
struct Measuring {
    ssrc: u32,
    receiver: TfrcReceiver,
    /// The newest time sent, µs; unwrapped.
    clock: u64,
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct Receiver {
    profile: Profile,
    state: Option<Measuring>,
}

impl Receiver {
    pub(crate) const fn new(profile: Profile) -> Self {
        Receiver { profile, state: None }
    }

    /// The source has begun anew.
    pub(crate) fn restart(&mut self) {
        self.state = None;
    }

    /// A media packet has arrived; `false` if the stream is not to be measured.
    pub(crate) fn on_packet(&mut self, now: Instant, arrived: &Arrived<'_>) -> bool {
        let packet = arrived.packet;
        let Some((_, stamp)) = packet.extensions.stamp else {
            // A stamp was damaged on its way, or the other tool agreed to stamp and does not.
            return self.state.is_some() || arrived.announced;
        };
        if self.state.as_ref().is_none_or(|m| m.ssrc != packet.ssrc) {
            // One wrap up, so that a packet overtaken by the first does not lie before all time.
            let clock = 1 << 32 | u64::from(stamp.sent);
            let receiver = TfrcReceiver::new(ReceiverParams::default());
            self.state = Some(Measuring { ssrc: packet.ssrc, receiver, clock });
        }
        let Some(m) = &mut self.state else { return false };
        let sent = wire::unwrap(m.clock, stamp.sent);
        m.clock = m.clock.max(sent);
        let header = RateHeader { sent_at: Instant::from_nanos(sent.saturating_mul(1_000)), rtt: stamp.rtt() };
        let Arrived { sequence: seq, size, ecn, .. } = *arrived;
        m.receiver.on_packet(now, &RatedArrival { seq, size, header, ecn });
        true
    }

    pub(crate) fn next(&self) -> Instant {
        self.state.as_ref().map_or(Instant::NEVER, |m| m.receiver.next())
    }

    /// Writes the report, if one is due. A report is as urgent as per-packet feedback, and paced by the
    /// receiver that measures, about once per RTT; other tools take it only in a compound that begins with an RR
    /// and an SDES [RFC 4585 §3.1]. The RR is empty: the blocks' loss fractions count from report to report, and
    /// those of RTCP's own pace are what the circuit breaker goes by.
    pub(crate) fn poll(&mut self, now: Instant, envelope: &Envelope<'_>, out: &mut Vec<u8>) -> Option<()> {
        let m = self.state.as_mut()?;
        let report = m.receiver.poll(now)?;
        let echoed = (report.echoed.as_nanos() / 1_000) as u32;
        let report = Report::new(envelope.ssrc, m.ssrc, echoed, &report);
        out.clear();
        rtcp::emit_receiver_report(out, envelope.ssrc, &[]);
        rtcp::emit_sdes(out, &[envelope.ssrc], envelope.cname);
        report.emit(self.profile.fmt, out);
        Some(())
    }
}
