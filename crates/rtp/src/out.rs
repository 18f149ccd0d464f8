//! The actions that a session wants: the answers of `poll`.

use core::net::SocketAddr;
use fairpace_units::{Dscp, Ecn, Instant, QsOption, Via};

/// The next action, and the time of the next question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Out<'a> {
    /// Send this, then ask again.
    Datagram(Datagram<'a>),
    /// Nothing until then, unless something is handed in before.
    Wait(Instant),
    /// The session is over; every further `poll` says the same.
    Stopped(StopReason),
}

/// One UDP payload and how to mark it. The bytes live until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The UDP payload.
    pub bytes: &'a [u8],
    /// The code point to send it with; its class is `dscp.class()`.
    pub dscp: Dscp,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// The kind of the datagram, for counters and captures.
    pub what: What,
    /// Where to: `None` from a sender (it has one peer), an address from a receiver.
    pub to: Option<SocketAddr>,
    /// Routers may cut the packet in pieces: IPv4's DF is not set. `false` but where a path carries less than the smallest size that packets are cut to.
    pub fragments: bool,
    /// By which transport; by TCP it goes framed ([`crate::framing`]), and marks are the connection's.
    pub via: Via,
    /// The Quick-Start option to put into the packet's IP header, with the TTL to send the packet with; only of a sender whose flow asks
    /// for a rate. A driver that cannot set it sends the packet without.
    pub quick_start: Option<QsOption>,
}

impl core::fmt::Display for StopReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            StopReason::Requested => f.write_str("it was asked to stop"),
            StopReason::Unreachable => f.write_str("the peer did not answer three challenges within 7 s"),
            StopReason::Busy => f.write_str("the peer serves another sender"),
            StopReason::PeerEnded => f.write_str("the peer has ended, with the session of another sender"),
            StopReason::ConsentExpired => f.write_str("the peer has not been heard for 30 s"),
            StopReason::PeerLied => f.write_str("the peer acknowledged packets that it cannot have received"),
            StopReason::NoTcp => f.write_str("the peer took no TCP connection, or did not answer there"),
            StopReason::TcpLost => f.write_str("the TCP connection has ended"),
            StopReason::PeerBye => f.write_str("the peer said goodbye"),
            StopReason::Breaker(reason) => write!(f, "circuit breaker: {reason}"),
        }
    }
}

/// Packets and bytes of each kind; bytes are UDP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts([Count; What::ALL.len()]);

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// Their UDP payload.
    pub bytes: u64,
}

impl Counts {
    #[allow(clippy::indexing_slicing, reason = "there is a place for each kind")]
    pub(crate) fn add(&mut self, what: What, bytes: usize) {
        let c = &mut self.0[what as usize];
        c.packets += 1;
        c.bytes += bytes as u64;
    }

    /// The count of one kind.
    #[allow(clippy::indexing_slicing, reason = "there is a place for each kind")]
    pub const fn of(&self, what: What) -> Count {
        self.0[what as usize]
    }

    /// All together.
    pub fn total(&self) -> Count {
        self.0.iter().fold(Count::default(), |t, c| Count { packets: t.packets + c.packets, bytes: t.bytes + c.bytes })
    }
}

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// "Are you there?", sent in both classes before anything else.
    Challenge,
    /// The answer to a challenge, with the marks it arrived with.
    Echo,
    /// Media.
    Media,
    /// Media again [RFC 4588].
    Retransmission,
    /// A repair packet: the sum of media packets [RFC 8627].
    Fec,
    /// A dummy packet.
    Dummy,
    /// SR or RR with SDES, at RTCP's own pace.
    Report,
    /// Per-packet feedback [RFC 8888].
    Feedback,
    /// PLI: the decoder needs a key frame [RFC 4585 §6.3.1].
    KeyFrameRequest,
    /// Generic NACK [RFC 4585 §6.2.1].
    Nack,
    /// The end.
    Bye,
}

impl What {
    /// All kinds, in the order of their counters.
    pub const ALL: [What; 11] = [
        What::Challenge,
        What::Echo,
        What::Media,
        What::Retransmission,
        What::Fec,
        What::Dummy,
        What::Report,
        What::Feedback,
        What::KeyFrameRequest,
        What::Nack,
        What::Bye,
    ];

    /// A word for tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            What::Challenge => "challenge",
            What::Echo => "echo",
            What::Media => "media",
            What::Retransmission => "retransmission",
            What::Fec => "fec",
            What::Dummy => "dummy",
            What::Report => "report",
            What::Feedback => "feedback",
            What::KeyFrameRequest => "key_frame_request",
            What::Nack => "nack",
            What::Bye => "bye",
        }
    }
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// `stop` was called.
    Requested,
    /// No challenge was echoed, after three tries.
    Unreachable,
    /// The peer serves another sender, and that one has not gone while this one asked.
    Busy,
    /// The peer has ended, with the session of another sender, while this one asked.
    PeerEnded,
    /// Nothing from the peer has confirmed for 30 s that it wants this flow.
    ConsentExpired,
    /// The peer claimed packets it cannot have received.
    PeerLied,
    /// The peer said goodbye.
    PeerBye,
    /// The controller needs a TCP connection, and the peer took none, or did not answer there.
    NoTcp,
    /// The TCP connection has ended.
    TcpLost,
    /// The circuit breaker ended the flow.
    Breaker(fairpace_control::StopReason),
}
