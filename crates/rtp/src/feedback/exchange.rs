//! The values that pass between a session and a form of feedback, at either end.

use super::trust::Trust;
use crate::NtpTime;
use crate::feedback::claim::Claims;
use crate::feedback::reports::pairs::PairReport;
use crate::packet::Packet;
use crate::receiver::sources::Role;
use crate::sent::Streams;
use fairpace_control::feedback::{Ack, Message};
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Instant, Kind, Via};

/// The parts of a datagram that belong to a later or an earlier packet in it.
#[derive(Debug, Default)]
pub(crate) struct Attached<'d> {
    /// The claims before a report.
    pub(super) claims: Option<Claims<'d>>,
    /// The measurements of packet pairs, behind a receiver report.
    pub(super) pairs: Option<PairReport>,
}

/// The session's state that is lent for judging feedback.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    pub(crate) now: Instant,
    /// No challenge has been answered yet.
    pub(crate) challenging: bool,
    pub(crate) trust: &'a mut Trust,
    pub(crate) streams: &'a mut Streams,
}

/// Whether feedback renews consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The receiver holds what is claimed.
    Proven,
    /// If the flow finds the message believable.
    ByFlow,
}

impl Proof {
    /// Acknowledgements as a message, and their worth. A report without claims is worth something only with news: a replay,
    /// which nothing else tells apart there, has none.
    pub(crate) fn of_acks(proven: bool, acks: &[Ack], made_at: Option<Duration>) -> (Option<Message<'_>>, Proof) {
        let message = Message::Acks { acks, made_at };
        if proven { (Some(message), Proof::Proven) } else { ((!acks.is_empty()).then_some(message), Proof::ByFlow) }
    }
}

/// The code points with which the network has delivered packets of a class.
pub(crate) type Seen = [Option<(Class, Dscp)>; 4];

/// Feedback that is verified.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    /// Packets of which nobody will tell, to be told first.
    pub(crate) untold: &'a [(Kind, u64)],
    /// The message for the flow; `None` if the flow has had it before, or has forgotten those packets.
    pub(crate) message: Option<Message<'a>>,
    pub(crate) proof: Proof,
    pub(crate) seen: Seen,
    /// The receiver's SSRC.
    pub(crate) reporter: u32,
}

/// A packet that has arrived for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) packet: &'a Packet<'a>,
    /// Its extended number.
    pub(crate) sequence: u64,
    /// Its size in the flow's terms, headers included.
    pub(crate) size: Bytes,
    pub(crate) ecn: Ecn,
    pub(crate) via: Via,
    pub(crate) role: Role,
    /// The packet is of the stream that is played.
    pub(crate) is_media: bool,
    /// The sender is a Fairpace: a challenge has announced its streams.
    pub(crate) announced: bool,
}

/// The parts that every datagram of a receiver has.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) ssrc: u32,
    pub(crate) cname: &'a str,
    /// The number of the next feedback.
    pub(crate) number: &'a mut u32,
    /// Code point of normal-class feedback.
    pub(crate) dscp: Dscp,
    pub(crate) ntp_at_zero: NtpTime,
}

impl Envelope<'_> {
    /// The number of the next feedback.
    pub(super) const fn take_number(&mut self) -> u32 {
        let number = *self.number;
        *self.number = number.wrapping_add(1);
        number
    }
}
