//! How a sending session is set up, and the frames that go in.

use crate::codec::Codec;
use crate::feedback::rtp_tfrc::wire::Profile;
use crate::header_ext::Extensions;
use crate::send_queue::LEAST_PAYLOAD;
use crate::{NtpTime, fec, packet, rtx};
use fairpace_control::feedback::Form;
use fairpace_units::{Bytes, Dscp, Duration, Rate};

/// The end that began the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Admission {
    /// A person named the peer: challenges may go out unasked.
    #[default]
    Initiator,
    /// Somebody asked: until the address is proven, at most three times the bytes received go there.
    Responder,
}

/// How a sending session is set up.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// IP size of a full data packet and of every dummy; the flow's `packet_size`. From the headers (60 B over
    /// IPv4, with VP8's descriptor) and a few bytes to 1,500 B; larger frames are cut to it from
    /// [`least_packet_size`](Self::least_packet_size) on.
    pub packet_size: Bytes,
    /// IP and UDP headers: 28 B for IPv4, 48 B for IPv6. Counted in every size that the flow sees.
    pub ip_overhead: Bytes,
    /// Bytes by which the driver makes a challenge longer, beside [`ip_overhead`](Self::ip_overhead): where it authenticates them.
    pub challenge_overhead: Bytes,
    /// The encoding of the frames.
    pub codec: Codec,
    /// Code point of media and of normal-class RTCP. Dummies are LE whatever this is.
    pub data_dscp: Dscp,
    /// RTCP's canonical name; must not tell the host's name. Empty: a random one.
    pub cname: String,
    /// The bandwidth of which RTCP takes 5 %.
    pub session_bandwidth: Rate,
    /// RTCP as often as 360 s / (kbit/s) allows, in place of 5 s.
    pub reduced_minimum: bool,
    /// A frame that has waited longer than this is dropped. [`Duration::MAX`]: never. `None`: three fifths of the
    /// play-out delay; the queues of the path take the rest.
    pub max_queue_delay: Option<Duration>,
    /// At most this much media waits, whatever its age; a frame for which there is no room is dropped, with all that refer to it.
    pub max_queue: Bytes,
    /// Keep media and send it again when asked [RFC 4588].
    pub retransmission: bool,
    /// Send repair packets [RFC 8627] where sending again would come too late, to a receiver that knows them
    /// ([`crate::fec::Protection`] decides how many).
    pub fec: bool,
    /// The receiver's play-out delay, until the receiver tells its own: a packet that would come later is not worth as much as
    /// one that comes in time.
    pub playout: Duration,
    /// The time between two pictures of the source, for the receiver to count those that it does not get; `None`: not told.
    pub frame_interval: Option<Duration>,
    /// The source gives a key frame when it is asked for one: then more than a key frame's worth of late packets is not sent
    /// again. Off for sources that are encoded already.
    pub refreshes: bool,
    /// The form of feedback to ask for; `None`, and any that does not serve the controller: the controller's own.
    pub form: Option<Form>,
    /// Believe feedback only with the right sum of nonces. Off: for tests, and peers that prove nothing.
    pub check_nonces: bool,
    /// The numbers to use with a receiver that measures; of no effect if the controller wants every packet told.
    pub rate_profile: Profile,
    /// The end that began the exchange.
    pub admission: Admission,
    /// Where the numbers of all streams begin, 24 bits, of which the lowest 16 are RTP's; `None`: where nobody can
    /// guess.
    pub first_sequence: Option<u32>,
    /// The wall clock's time at [`Instant::ZERO`](fairpace_units::Instant::ZERO).
    pub ntp_at_zero: NtpTime,
}

impl Default for SenderConfig {
    fn default() -> Self {
        SenderConfig {
            packet_size: Bytes::new(1_200),
            ip_overhead: Bytes::new(28),
            challenge_overhead: Bytes::ZERO,
            codec: Codec::Generic,
            data_dscp: Dscp::DEFAULT,
            cname: String::new(),
            session_bandwidth: Rate::mbps(1.0),
            reduced_minimum: false,
            max_queue_delay: None,
            max_queue: MOST_QUEUED,
            retransmission: false,
            fec: false,
            playout: Duration::from_millis(700),
            frame_interval: None,
            refreshes: true,
            form: None,
            check_nonces: true,
            rate_profile: Profile::default(),
            admission: Admission::Initiator,
            first_sequence: None,
            ntp_at_zero: NtpTime::default(),
        }
    }
}

impl SenderConfig {
    /// How long a frame may wait, at that play-out delay.
    pub(super) fn max_queue_delay(&self, playout: Duration) -> Duration {
        self.max_queue_delay.unwrap_or(playout.mul_f64(0.6))
    }

    /// The size below which packets are not cut, by the IP version that [`ip_overhead`](Self::ip_overhead) says.
    pub(super) fn least_path_mtu(&self) -> Bytes {
        if self.ip_overhead >= HEADERS_V6 { LEAST_PATH_MTU_V6 } else { LEAST_PATH_MTU }
    }

    /// The smallest [`packet_size`](Self::packet_size) that frames of any length are cut to: the headers and 16 B of
    /// payload, descriptor included; 72 B over IPv4 without retransmission.
    pub fn least_packet_size(&self) -> Bytes {
        Bytes::new((overhead(self) + LEAST_PAYLOAD) as u64)
    }
}

/// One encoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The encoder's output.
    pub data: Vec<u8>,
    /// Capture time on a 90 kHz clock.
    pub timestamp_90k: u32,
    /// Can be decoded without any other. Set it on every frame of sources whose frames are independent.
    pub key: bool,
}

/// More media than this is not worth waiting for: at 1 Mbit/s these are two minutes.
pub const MOST_QUEUED: Bytes = Bytes::new(16 << 20);
/// The packet size that every IPv4 host must take [RFC 791 §3.1], in pieces if need be.
pub const LEAST_PATH_MTU: Bytes = Bytes::new(576);
/// The packet size that every IPv6 path carries [RFC 8200 §5].
const LEAST_PATH_MTU_V6: Bytes = Bytes::new(1_280);
/// IPv6 and UDP.
const HEADERS_V6: Bytes = Bytes::new(48);

/// The bytes in front of a packet's payload, those of a retransmission included.
pub(super) fn overhead(config: &SenderConfig) -> usize {
    let osn = if config.retransmission { rtx::OSN_LEN } else { 0 };
    config.ip_overhead.get() as usize + packet::HEADER_LEN + Extensions::FULL_LEN + osn
}

/// Bytes that a repair packet has in front of its repair payload and a media packet has not: the protected SSRC and the FEC header.
const FEC_LEN: usize = 4 + fec::MAX_HEADER;

/// RTP payload of a full packet, descriptor included. `protected`: a repair packet over it has to fit, too.
pub(super) fn max_payload(config: &SenderConfig, protected: bool) -> usize {
    let overhead = overhead(config);
    let osn = if config.retransmission { rtx::OSN_LEN } else { 0 };
    let overhead = if protected { overhead - osn + FEC_LEN } else { overhead };
    (config.packet_size.get() as usize).saturating_sub(overhead)
}
