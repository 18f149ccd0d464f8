//! The packet of the simulated links: a small value, copied, never allocated.

use fairpace_path::Datagram;
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, QsOption, QsResponse, Rate};

use crate::tcp::{Range, SACK_BLOCKS};

/// A flow's number: its place in [`SimConfig::flows`](crate::SimConfig::flows), and behind these the place among those of
/// [`SimConfig::coming`](crate::SimConfig::coming). To media, and queues that tell flows apart, one that came has the number of its place in the network, which others
/// had before.
pub type FlowId = u32;

/// The direction in which a packet travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// From the flow's sender to its receiver.
    Forward = 0,
    /// From receiver to sender: acknowledgements, reports.
    Back = 1,
}

/// A packet: size, marks, where it is on its route, and what its endpoints know about it. In a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// When it entered the network.
    pub sent_at: Instant,
    /// The packet's contents.
    pub body: Body,
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// Size on the wire in bytes.
    pub size: u32,
    /// Where it is going.
    pub direction: Direction,
    /// Priority.
    pub class: Class,
    /// ECN field.
    pub ecn: Ecn,
    /// Its Quick-Start option, or the answer to one.
    pub quick_start: Option<QuickStart>,
}

/// The Quick-Start option of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuickStart {
    /// The option of its IP header: routers read and change it.
    Option(QsOption),
    /// The receiver's answer to a request, in its feedback.
    Response(QsResponse),
}

/// The meaning of a packet to its endpoints.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A TCP segment.
    TcpData {
        /// Its number.
        seq: u32,
        /// True if it was sent before.
        retransmission: bool,
        /// The sender has reduced its window (CWR) [RFC 3168 §6.1.2].
        cwr: bool,
    },
    /// A TCP acknowledgement: [`TcpAck`](crate::tcp::TcpAck), field by field, since a struct would not share its
    /// padding with the tag.
    TcpAck {
        /// The next segment wanted.
        next: u32,
        /// The ranges that have arrived above.
        sack: [Range; SACK_BLOCKS],
        /// ECN-Echo.
        ece: bool,
    },
    /// A data or dummy packet of a rate-controlled flow.
    Media {
        /// Data or dummy.
        kind: Kind,
        /// The video frame it belongs to; `u32::MAX` if none.
        frame: u32,
        /// The header field of the form of feedback: the sender's RTT in microseconds, 0 if it knows none; or its
        /// number among all packets of the flow.
        note: u32,
        /// Its number among the packets of its kind.
        seq: u64,
        /// When the source produced it.
        born: Instant,
    },
    /// The acknowledgement of one such packet, sent at once.
    MediaAck {
        /// Data or dummy.
        kind: Kind,
        /// The ECN field it arrived with.
        ecn: Ecn,
        /// The receiver has what it acknowledges: the sum of nonces is right.
        proven: bool,
        /// Its number.
        seq: u64,
        /// When it arrived.
        arrived_at: Instant,
    },
    /// The acknowledgement of several, kept in the flow's log.
    Feedback {
        /// Place of the first in the log.
        start: u64,
        /// How many.
        len: u32,
        /// As above, of all of them.
        proven: bool,
    },
    /// AIMD's acknowledgement: [`SackVector`](fairpace_control::SackVector), whose `arrived_at` is `ack_delay`
    /// before the packet left.
    SackVector {
        /// Bit i - 1: packet `ack` - i was received.
        vector: u8,
        /// The ECN field of what caused it.
        ecn: Ecn,
        /// As above, of all that it acknowledges.
        proven: bool,
        /// The largest number received, its lowest 24 bits.
        ack: u32,
        /// The window that the receiver or the base station allows, in packets.
        rwnd: Option<u32>,
        /// Its `ack_delay` in microseconds.
        delay_us: u32,
        /// When packet `ack` left: for what the report says of RTTs; its sender goes by what it remembers.
        sent_at: Instant,
    },
    /// The report of a receiver that measures: [`RateReport`](fairpace_control::RateReport).
    RateReport {
        /// Its `delay` in microseconds.
        delay_us: u32,
        /// Departure of the last packet received.
        echoed: Instant,
        /// Data received per time.
        received_rate: Rate,
        /// p.
        loss_event_rate: f64,
    },
    /// A receiver's report on the data packets [RFC 3550 §6.4], kept in the flow's log.
    Report {
        /// The number of the report, from 0.
        number: u64,
    },
    /// A sender's report [RFC 3550 §6.4.1], of which only the time counts: when the packet left.
    SenderReport,
    /// "Are you there, and do you want this?" before a media flow begins, and the answer to it.
    Challenge {
        /// When the question left.
        asked_at: Instant,
        /// In the answer: the window that the base station allows, in packets.
        rwnd: Option<u32>,
    },
    /// Uncontrolled traffic.
    Constant {
        /// Its number.
        seq: u64,
    },
    /// Somebody else's packet; the bytes stay with whoever injected it.
    External {
        /// The injector's token, returned with the packet.
        token: u64,
        /// The kind of traffic that the packet counts as.
        carries: Carries,
        /// The window that a base station on the way wrote beside it, in packets.
        rwnd: Option<u32>,
    },
}

/// The kind of traffic in an injected packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Carries {
    /// The data that the flow exists for.
    #[default]
    Data,
    /// Nothing, at low priority: it probes the path \[rcs\].
    Dummy,
    /// Neither: a connection being set up, an ACK without data, a report. Counted with the feedback.
    Control,
}

/// The kind of traffic that a packet is counted as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Traffic {
    /// The data that the flow exists for.
    Data,
    /// A dummy packet, which carries nothing.
    Dummy,
    /// Acknowledgements and reports, and what sets a connection up.
    Feedback,
}

impl Packet {
    #[inline]
    pub(crate) fn traffic(&self) -> Traffic {
        if self.direction == Direction::Back {
            return Traffic::Feedback;
        }
        match self.body {
            Body::Media { kind: Kind::Dummy, .. } | Body::External { carries: Carries::Dummy, .. } => Traffic::Dummy,
            Body::Challenge { .. } | Body::SenderReport | Body::External { carries: Carries::Control, .. } => {
                Traffic::Feedback
            }
            _ => Traffic::Data,
        }
    }
}

impl Datagram for Packet {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    #[inline]
    fn class(&self) -> Class {
        self.class
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    /// Each direction of each flow.
    #[inline]
    fn flow(&self) -> u64 {
        (u64::from(self.flow) << 1) | self.direction as u64
    }
    #[inline]
    fn quick_start(&mut self) -> Option<&mut QsOption> {
        match &mut self.quick_start {
            Some(QuickStart::Option(option)) => Some(option),
            Some(QuickStart::Response(_)) | None => None,
        }
    }
}

// Packets are copied from ring to ring: one cache line is the limit.
const _: () = assert!(size_of::<Packet>() <= 64);

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) body: Body,
    pub(crate) size: u32,
    pub(crate) class: Class,
    pub(crate) ecn: Ecn,
    pub(crate) quick_start: Option<QuickStart>,
}

impl Outgoing {
    /// Feedback is not marked: nobody would slow down because of it.
    pub(crate) fn feedback(body: Body, size: u32, class: Class) -> Self {
        Outgoing { body, size, class, ecn: Ecn::NotEct, quick_start: None }
    }
}

/// As packets carry times; 71 minutes at most.
pub(crate) fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}
