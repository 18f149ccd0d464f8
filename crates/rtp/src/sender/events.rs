//! The events that a sending session tells its application, and its counts.

use crate::feedback::Refusal;
use crate::out::Counts;
use crate::{Count, StopReason};
use fairpace_control::QsVerdict;
use fairpace_units::{Bytes, Class, Dscp, Duration, Instant, Rate};
use std::collections::VecDeque;

/// Requests for a key frame reach the encoder at most this often.
const ENCODER_KEY_FRAME_SPACING: Duration = Duration::from_millis(200);
const MOST_EVENTS: usize = 256;

/// The events that the application should know of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SenderEvent {
    /// The peer is there, and wants this.
    PeerValidated {
        /// The first round trip.
        srtt: Duration,
        /// The code point that the normal challenge arrived with; `None` if a report stood in for its echo.
        dscp_seen: Option<Dscp>,
    },
    /// The network keeps or changes a class's code point; told when it becomes known and when it changes.
    DscpSeen {
        /// The class.
        class: Class,
        /// The DSCP that we sent.
        sent: Dscp,
        /// The DSCP that arrived.
        arrived: Dscp,
    },
    /// The receiver serves a sender of another address. Unless that one goes, the session ends with [`StopReason::Busy`].
    ReceiverBusy,
    /// Another receiver answers at the peer's address, and is the peer from now on: the first one was started again. The
    /// flow goes on.
    ReceiverChanged,
    /// This machine slept for longer than consent lasts, and the receiver has answered a new question: the flow goes on, from its initial rate.
    Awake,
    /// The TCP half is there too.
    TcpUp,
    /// The encoder should produce this much: wire rate of data packets. See
    /// [`SenderSession::media_rate`](super::SenderSession::media_rate).
    TargetRate(Rate),
    /// The encoder must give a key frame: the peer lost something, or frames were dropped here.
    KeyFrameRequest,
    /// Full packets have this IP size from now on: the path carries less than was asked for, or more again.
    PacketSize(Bytes),
    /// A Quick-Start request is settled like this.
    QuickStart(QsVerdict),
    /// That many frames were dropped because the queue was too old, or full.
    FramesDropped(u64),
    /// The session is over.
    Stopped(StopReason),
}

/// Feedback that was not believed, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RejectedFeedback {
    /// Not RTCP, or RTCP that breaks a rule of form.
    pub malformed: u64,
    /// From an SSRC that has not echoed our challenge, or about a stream that is not ours.
    pub wrong_ssrc: u64,
    /// A report number seen before, too old, or too far ahead.
    pub replayed: u64,
    /// Without claims, with fewer claims than blocks, or in a form that was not asked for; receiver reports of no loss that
    /// nothing proves.
    pub unproven: u64,
    /// The sum of nonces is wrong: a packet is claimed that has not arrived.
    pub nonce: u64,
    /// A packet is claimed that has not been sent.
    pub unsent: u64,
    /// An echo whose token we did not send.
    pub token: u64,
    /// A receiver report about packets not sent, or not newer than the last one.
    pub report: u64,
    /// A report of a receiver that measures, which cannot be true or is older than another.
    pub measured: u64,
}

/// The queue between encoder and network, since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// The most that waited: k(t) at its highest [rcs §III-F].
    pub fullest: Bytes,
    /// The longest that a packet waited, from the encoder on: d(t) at its highest.
    pub longest_wait: Duration,
    /// Media dropped.
    pub dropped: Bytes,
}

/// The counts of a sending session.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SenderStats {
    /// Sent, by kind.
    pub sent: Counts,
    /// Datagrams received.
    pub received: u64,
    /// Feedback accepted, per packet or measured: datagrams and UDP payload bytes.
    pub feedback: Count,
    /// The feedback that was not believed.
    pub rejected: RejectedFeedback,
    /// Frames handed in.
    pub frames: u64,
    /// Frames dropped because the queue was too old, or full.
    pub frames_dropped: u64,
    /// The queue between encoder and network.
    pub queue: QueueStats,
    /// Key frames asked for by the peer.
    pub key_frame_requests: u64,
    /// Packets asked for again by the peer.
    pub nacked: u64,
    /// Of those, not sent again: nobody needs them any more, or a key frame comes in their place.
    pub too_late: u64,
    /// BYEs that were ignored because feedback went on.
    pub byes_ignored: u64,
    /// RTT from the last receiver report (LSR, DLSR), for the eye only.
    pub report_rtt: Option<Duration>,
    /// Fraction of media lost in the last receiver report's interval.
    pub fraction_lost: Option<f64>,
    /// Interarrival jitter of the last receiver report.
    pub jitter: Option<Duration>,
}

impl RejectedFeedback {
    pub(super) const fn count(&mut self, refusal: Refusal) {
        *match refusal {
            Refusal::Malformed => &mut self.malformed,
            Refusal::WrongSsrc => &mut self.wrong_ssrc,
            Refusal::Replayed => &mut self.replayed,
            Refusal::Unproven => &mut self.unproven,
            Refusal::Nonce => &mut self.nonce,
            Refusal::Unsent => &mut self.unsent,
            Refusal::Measured => &mut self.measured,
        } += 1;
    }
}

/// The events that wait for the application.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<SenderEvent>,
    last_key_request: Option<Instant>,
    rate: Rate,
}

impl Events {
    pub(super) fn push(&mut self, event: SenderEvent) {
        if self.waiting.len() >= MOST_EVENTS {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<SenderEvent> {
        self.waiting.pop_front()
    }

    pub(super) fn request_key_frame(&mut self, now: Instant) {
        if self.last_key_request.is_none_or(|at| now.since(at) >= ENCODER_KEY_FRAME_SPACING) {
            self.last_key_request = Some(now);
            self.push(SenderEvent::KeyFrameRequest);
        }
    }

    /// Of several target rates only the latest is kept.
    pub(super) fn tell_rate(&mut self, rate: Rate) {
        if rate != self.rate {
            self.rate = rate;
            self.waiting.retain(|e| !matches!(e, SenderEvent::TargetRate(_)));
            self.push(SenderEvent::TargetRate(rate));
        }
    }
}
