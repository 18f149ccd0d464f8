//! How a receiving session is set up, and what comes out of it.

use super::allowed::AllowedSender;
use crate::NtpTime;
use crate::challenge::CONSENT;
use crate::codec::Codec;
use crate::feedback::rtp_tfrc::wire::Profile;
use crate::out::Counts;
use core::net::SocketAddr;
use fairpace_control::feedback::Form;
use fairpace_units::{Bytes, Dscp, Duration, Instant, Rate, Via};

/// How a receiving session is set up.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Senders are taken from these addresses only: datagrams of others are counted, and get no answer. Empty: from any.
    pub from: Vec<AllowedSender>,
    /// Per-packet feedback at most this often; zero = at every packet.
    pub feedback_interval: Duration,
    /// Each packet is told in this many reports, so that one lost report loses nothing. 1 to 16.
    pub feedback_repeats: usize,
    /// Sack vectors at most this often, but with every eighth packet; zero = with every packet, as in the paper.
    pub ack_interval: Duration,
    /// The window to advertise with sack vectors, in packets, 0 to 65,534; `None`: none.
    pub rwnd: Option<u32>,
    /// The numbers of the TFRC profile agreed on with a sender that cannot announce them, that is another tool.
    /// A challenge's announcement takes precedence.
    pub rate_profile: Option<Profile>,
    /// The form in which to tell another tool, which cannot ask for one; `None`: by [`Self::rate_profile`], or of every
    /// packet.
    pub form: Option<Form>,
    /// Ask for lost media again [RFC 4585, RFC 4588].
    pub nack: bool,
    /// Give up asking for a packet after that long, until
    /// [`set_playout`](super::ReceiverSession::set_playout) says how long its frame can wait.
    pub nack_deadline: Duration,
    /// Take repair packets [RFC 8627]: a sender that has some is told so.
    pub fec: bool,
    /// Tell a sender how its Quick-Start requests came [RFC 4782 §4.3]; else the receiver is one that does not know Quick-Start.
    pub quick_start: bool,
    /// RTCP's canonical name; must not tell the host's name. Empty: a random one.
    pub cname: String,
    /// The bandwidth of which RTCP takes 5 %.
    pub session_bandwidth: Rate,
    /// RTCP as often as 360 s / (kbit/s) allows, in place of 5 s.
    pub reduced_minimum: bool,
    /// A sender that is silent for this long has vanished: its state is freed. By default after
    /// [`CONSENT`](crate::challenge::CONSENT): for so long a sender may go on without an answer.
    pub vanish_after: Duration,
    /// After a session nobody is let in before [`next_session`](super::ReceiverSession::next_session): senders that ask meanwhile wait,
    /// and are told that the receiver is busy. A session is a sender's time in the place, from its first media to its goodbye, its
    /// disappearance, or the stream of another address in its place. Else the place is free at once.
    pub one_by_one: bool,
    /// Ask each sender that takes the place for a proof that it sees what goes to its address ([`crate::challenge`]), which costs it one challenge
    /// more and no time: [`ReceiverStats::proven`] tells.
    pub ask_proof: bool,
    /// Only who has a key is heard: one of the sender's machine that asks is the sender started again.
    pub keyed: bool,
    /// IP and UDP headers: 28 B for IPv4, 48 B for IPv6.
    pub ip_overhead: Bytes,
    /// Code point of normal-class feedback and RTCP. Feedback on dummies is LE whatever this is.
    pub data_dscp: Dscp,
    /// The wall clock's time at [`Instant::ZERO`].
    pub ntp_at_zero: NtpTime,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        ReceiverConfig {
            from: Vec::new(),
            feedback_interval: Duration::from_millis(20),
            feedback_repeats: 3,
            ack_interval: Duration::ZERO,
            rwnd: None,
            rate_profile: None,
            form: None,
            nack: false,
            nack_deadline: Duration::from_secs(2),
            fec: false,
            quick_start: true,
            cname: String::new(),
            session_bandwidth: Rate::mbps(1.0),
            reduced_minimum: false,
            vanish_after: CONSENT,
            one_by_one: false,
            ask_proof: false,
            keyed: false,
            ip_overhead: Bytes::new(28),
            data_dscp: Dscp::DEFAULT,
            ntp_at_zero: NtpTime::default(),
        }
    }
}

/// A media packet, as it comes out of the session. The payload borrows from the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPacket<'d> {
    /// The media stream, also of a retransmission.
    pub ssrc: u32,
    /// Sequence number in that stream; never wraps.
    pub sequence: u64,
    /// Media time, 90 kHz.
    pub timestamp: u32,
    /// Last packet of its frame.
    pub marker: bool,
    /// Payload type of the media stream.
    pub payload_type: u8,
    /// The RTP payload, descriptor included.
    pub payload: &'d [u8],
    /// When it arrived.
    pub arrived: Instant,
    /// Our clock at arrival less the sender's at departure, in ns; absolute only if both clocks agree.
    /// Modulo 64 s, from -32 s to 32 s.
    pub one_way_delay: Option<i64>,
    /// The data came as a retransmission.
    pub retransmitted: bool,
    /// The data followed from repair packets ([`super::ReceiverSession::next_recovered`]).
    pub recovered: bool,
    /// The transport that it came by.
    pub via: Via,
    /// The encoding, if the sender announced it; else VP8 is assumed.
    pub codec: Codec,
}

/// The events that the application should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// Media from a new source begins.
    NewSource {
        /// Its SSRC.
        ssrc: u32,
        /// Where it comes from.
        from: SocketAddr,
        /// Its payload type.
        payload_type: u8,
        /// The encoding.
        codec: Codec,
    },
    /// Another tool's packets lack what the form tells by that was agreed on: they are told of packet by packet
    /// (RFC 8888) instead.
    NotTold {
        /// That form: [`Form::Twcc`] goes by the transport-wide number, [`Form::RtpTfrc`] by the send time.
        form: Form,
    },
    /// The sender's TCP half is there.
    TcpUp {
        /// The sender's UDP address.
        from: SocketAddr,
    },
    /// The sender has said goodbye, and has been silent since.
    Bye {
        /// The reason that the peer gave.
        reason: String,
    },
    /// The sender has been silent for too long; its state is freed.
    Vanished,
    /// Another sender, which has shown where it is, comes in place of a silent one, whose session is over
    /// ([`ReceiverConfig::one_by_one`]).
    Replaced,
}

/// The counts of one received stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StreamStats {
    /// The stream.
    pub ssrc: u32,
    /// Packets, duplicates included.
    pub received: u64,
    /// Packets that should have come.
    pub expected: u64,
    /// The difference, as a report block has it [RFC 3550 §6.4.1]; negative if duplicates outweigh losses.
    pub lost: i64,
    /// Packets that came twice or more.
    pub duplicates: u64,
    /// Packets that came behind a later one.
    pub reordered: u64,
    /// Packets with CE.
    pub ce_marks: u64,
    /// UDP payload.
    pub bytes: u64,
    /// Interarrival jitter [RFC 3550 A.8].
    pub jitter: Duration,
    /// Code point of the newest packet.
    pub dscp: Dscp,
    /// How often the source has begun anew without saying so.
    pub restarts: u32,
}

impl StreamStats {
    /// Packets that never came; one that came twice makes good for no other, as it does in [`lost`](Self::lost).
    pub fn missing(&self) -> u64 {
        self.expected.saturating_sub(self.received.saturating_sub(self.duplicates))
    }

    /// This stream's counts, behind those of an earlier one.
    #[must_use]
    pub(crate) fn behind(self, earlier: &StreamStats) -> StreamStats {
        StreamStats {
            received: earlier.received + self.received,
            expected: earlier.expected + self.expected,
            lost: earlier.lost + self.lost,
            duplicates: earlier.duplicates + self.duplicates,
            reordered: earlier.reordered + self.reordered,
            ce_marks: earlier.ce_marks + self.ce_marks,
            bytes: earlier.bytes + self.bytes,
            restarts: earlier.restarts + self.restarts,
            ..self
        }
    }
}

/// The counts of a receiving session, and of those before it where [`ReceiverConfig::one_by_one`] does not part them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReceiverStats {
    /// Sent, by kind. Feedback, of either form, is counted apart from RTCP's own reports.
    pub sent: Counts,
    /// Datagrams received.
    pub received: u64,
    /// Their UDP payload.
    pub received_bytes: u64,
    /// Neither RTP nor RTCP, or broken.
    pub malformed: u64,
    /// From an address that [`ReceiverConfig::from`] does not allow.
    pub not_allowed: u64,
    /// From an address other than that of the sender that holds the place.
    pub wrong_address: u64,
    /// From sources that are not believed yet.
    pub unproven: u64,
    /// Media packets repaired by retransmission.
    pub repaired: u64,
    /// Media packets that followed from repair packets.
    pub recovered: u64,
    /// Feedback and reports not sent because more than three times the bytes received would have gone out.
    pub held_back: u64,
    /// The sender that has the place, or had it last, has shown that it sees what goes to its address: by a proof in a challenge, or its TCP
    /// connection. A tool without challenges never does.
    pub proven: bool,
    /// BYEs that were ignored because packets went on coming.
    pub byes_ignored: u64,
    /// Media, dummies, retransmissions.
    pub media: StreamStats,
    /// Dummies.
    pub dummy: StreamStats,
    /// Retransmissions.
    pub retransmission: StreamStats,
    /// Repair packets.
    pub fec: StreamStats,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_came_twice_makes_good_for_none_that_never_came() {
        // Of ten packets seven came, three of them twice.
        let stats = StreamStats { expected: 10, received: 10, duplicates: 3, lost: 0, ..StreamStats::default() };
        assert_eq!((stats.missing(), stats.lost), (3, 0));
        let more = StreamStats { expected: 2, received: 4, duplicates: 2, lost: -2, ..StreamStats::default() };
        assert_eq!(more.missing(), 0);
    }
}
