//! Whom to send to, and how.

use super::Adaptation;
use crate::address::{canonical, ip_overhead};
use crate::tcp_half::TcpConfig;
use crate::{Buffers, Key, NetError, seal};
use fairpace_control::{BreakerParams, Controller, Env, Flow, FlowParams, QuickStartParams, Safety};
use fairpace_rtp::{Codec, LEAST_PATH_MTU, SenderConfig};
use fairpace_units::{Bytes, Duration, Rate, format_rate};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A longer quantum would be a burst: so much is made up for after a stall on the shortest paths, too.
pub const MAX_QUANTUM: Duration = Duration::from_millis(5);
/// The largest packet of an Ethernet; larger packets are for paths that are known.
const LARGEST_PACKET_SIZE: Bytes = Bytes::new(1_500);

/// Makes a controller for a flow with these limits.
#[derive(Clone)]
pub struct MakeController(pub Arc<Make>);

type Make = dyn Fn(&Env) -> Box<dyn Controller> + Send + Sync;

impl fmt::Debug for MakeController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a controller from outside")
    }
}

/// Whom to send to, and how.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// The receiver: somebody must have named it. IPv4 as IPv4, as [`SendConfig::new`] makes of an IPv6-mapped address.
    pub peer: SocketAddr,
    /// The rate controller, by its name in the registry.
    pub scheme: String,
    /// Its parameters, as a scenario gives them.
    pub settings: BTreeMap<String, String>,
    /// A controller from outside of the registry, in the place of `scheme`.
    pub custom: Option<MakeController>,
    /// Lowest rate; default 50 kbit/s.
    pub min_rate: Rate,
    /// First rate, where the scheme has no rule of its own.
    pub start_rate: Option<Rate>,
    /// Highest rate, data and dummies together; default 10 Mbit/s. There is no way to send without one.
    pub max_rate: Rate,
    /// The pacing quantum ([`FlowParams::quantum`]): packets that are due within it leave together, in one wake-up and
    /// one batch. Default 1 ms, at most [`MAX_QUANTUM`]; flows that send less than a packet per quantum are paced as
    /// with zero.
    pub quantum: Duration,
    /// The circuit breaker; `None` switches it off.
    pub breaker: Option<BreakerParams>,
    /// The session: packet size, marks, queue, retransmission. The codec, the header sizes and the wall
    /// clock are filled in.
    pub session: SenderConfig,
    /// The key that the receiver has too: everything is encrypted and authenticated. `None`: in clear.
    pub key: Option<Key>,
    /// Socket buffers to ask for.
    pub buffers: Buffers,
    /// The encoding of the frames.
    pub codec: Codec,
    /// The TCP half of controllers that have one (`tpba`).
    pub tcp: TcpConfig,
    /// Who makes the encoder's rate fit the controller's.
    pub adaptation: Adaptation,
    /// Frames are left in the source while so much waits to leave: for sources that wait. `None`: live ones do not.
    pub queue_limit: Option<Bytes>,
    /// After the end of source or duration, what waits may take so long to leave.
    pub leave_within: Duration,
    /// How long to send, from the peer's first answer; until the source ends if `None`.
    pub duration: Option<Duration>,
    /// Distance of the samples.
    pub sample: Duration,
    /// When the peer's machine says that nobody listens (three times within 5 s), and nothing came from it
    /// for this long, it has vanished. Such messages can be forged: never below a few round trips.
    pub refused_silence: Duration,
    /// Ask the routers for this rate at the start and after idle times, rounded up to one that the option can say; `None`: never. Only
    /// for controllers that can use it (`tfrc`, `tfrc-sp`), and a process with CAP_NET_RAW.
    pub quick_start: Option<Rate>,
    /// Collect the controller's events.
    pub trace: bool,
}

impl SendConfig {
    /// RCS to this peer with the defaults.
    pub fn new(peer: SocketAddr) -> SendConfig {
        SendConfig {
            peer: canonical(peer),
            scheme: "auto".to_owned(),
            settings: BTreeMap::new(),
            custom: None,
            min_rate: Rate::kbps(50.0),
            start_rate: None,
            max_rate: Rate::mbps(10.0),
            quantum: Duration::from_millis(1),
            breaker: Some(BreakerParams::default()),
            session: SenderConfig::default(),
            key: None,
            buffers: Buffers::default(),
            codec: Codec::Vp8,
            tcp: TcpConfig::default(),
            adaptation: Adaptation::Encoder,
            queue_limit: None,
            leave_within: Duration::from_secs(3),
            duration: None,
            sample: Duration::from_millis(100),
            refused_silence: Duration::from_secs(5),
            quick_start: None,
            trace: false,
        }
    }

    /// Whether the peer is one machine, packets are of a size that can be sent there, and the buffer is of a size that can be kept.
    ///
    /// # Errors
    /// [`NetError::Config`] if not.
    pub fn check(&self) -> Result<(), NetError> {
        one_machine(self.peer)?;
        self.adaptation.check()?;
        let (size, least) = (
            self.session.packet_size,
            SenderConfig { ip_overhead: self.ip_overhead(), ..self.session.clone() }.least_packet_size(),
        );
        if (least..=LARGEST_PACKET_SIZE).contains(&size) {
            return Ok(());
        }
        let allowed = format!("{least} to {LARGEST_PACKET_SIZE}");
        Err(NetError::Config { field: "packet_size", found: size.to_string(), allowed })
    }

    /// The session, with what follows from the peer, the codec and the key.
    ///
    /// # Errors
    /// [`NetError::Io`] if the system has no random bits.
    pub(super) fn wire_session(&self) -> Result<SenderConfig, NetError> {
        let mut session = SenderConfig { ip_overhead: self.ip_overhead(), codec: self.codec, ..self.session.clone() };
        if self.key.is_some() {
            session.challenge_overhead = seal::CHALLENGE_OVERHEAD;
            // Both ends count wraps of the sequence number: the first should not come before the receiver has heard anything
            // [RFC 3711 §3.3.1].
            let first = u32::from_be_bytes(crate::random::random()?) & 0x7fff;
            session.first_sequence = session.first_sequence.or(Some(first));
        }
        Ok(session)
    }

    /// The bytes of a packet around the RTP packet.
    fn ip_overhead(&self) -> Bytes {
        ip_overhead(&self.peer) + if self.key.is_some() { seal::OVERHEAD } else { Bytes::ZERO }
    }

    fn env(&self) -> Env {
        Env {
            packet_size: self.session.packet_size,
            min_rate: self.min_rate,
            start_rate: self.start_rate,
            max_rate: self.max_rate,
            // A real network always gets the protections.
            safety: Safety::Default,
        }
    }

    /// The controller as it is set up.
    ///
    /// # Errors
    /// [`NetError::Control`] if there is none of that name, or a setting is not allowed.
    pub fn controller(&self) -> Result<Box<dyn Controller>, NetError> {
        let env = self.env();
        Ok(match &self.custom {
            Some(make) => (make.0)(&env),
            None => fairpace_control::build(&self.scheme, &self.settings, &env)?,
        })
    }

    /// The flow with that controller.
    pub(super) fn flow(&self) -> Result<Flow, NetError> {
        let (env, mut controller) = (self.env(), self.controller()?);
        let quick_start = self.quick_start_params(&mut *controller)?;
        let (breaker, trace, quantum, lead) = (self.breaker, self.trace, self.quantum, self.adaptation.lead());
        self.adaptation.suits(&*controller, &self.scheme)?;
        Ok(Flow::new(controller, FlowParams { breaker, trace, quantum, lead, quick_start, ..FlowParams::new(&env) }))
    }

    /// The request; its QS TTLs and nonces are such that nobody can guess them [RFC 4782 §3.4].
    fn quick_start_params(&self, controller: &mut dyn Controller) -> Result<Option<QuickStartParams>, NetError> {
        let Some(rate) = self.quick_start else { return Ok(None) };
        if controller.quick_start().is_none() {
            return Err(NetError::Config {
                field: "quick_start",
                found: format!("{} for `{}`", format_rate(rate), self.scheme),
                allowed: "none: of the controllers only `tfrc` and `tfrc-sp` can use an approved rate".to_owned(),
            });
        }
        let seed = u64::from_be_bytes(crate::random::random()?);
        // Packet sizes count all headers.
        Ok(Some(QuickStartParams { header: Bytes::ZERO, ..QuickStartParams::new(rate, seed)? }))
    }

    /// Makes packets as large as this machine's device carries, and says whether that is less than was asked for. Below
    /// [`LEAST_PATH_MTU`] nothing is cut: the kernel does it.
    pub(super) fn cut(&mut self, device_mtu: Option<Bytes>) -> bool {
        let size = &mut self.session.packet_size;
        let carried = device_mtu.map_or(*size, |mtu| mtu.max(LEAST_PATH_MTU).min(*size));
        let is_cut = carried < *size;
        *size = carried;
        is_cut
    }
}

/// One receiver answers one sender: not a group, not everybody, not an address that names nobody.
fn one_machine(peer: SocketAddr) -> Result<(), NetError> {
    let ip = peer.ip();
    let nobody = ip.is_unspecified() || matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    if ip.is_multicast() || nobody {
        return Err(NetError::Config {
            field: "HOST:PORT",
            found: peer.to_string(),
            allowed: "the address of one machine".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_cut_to_what_the_device_carries_but_not_to_less_than_every_host_takes() {
        let mut config = SendConfig::new("192.0.2.1:5004".parse().expect("an address"));
        let cases = [
            (None, (false, 1_200)),
            (Some(1_200), (false, 1_200)),
            (Some(1_199), (true, 1_199)),
            (Some(575), (true, 576)),
            (Some(68), (false, 576)),
        ];
        for (mtu, expected) in cases {
            let is_cut = config.cut(mtu.map(Bytes::new));
            assert_eq!((is_cut, config.session.packet_size.get()), expected);
        }
        // Whoever asks for less may have it.
        config.session.packet_size = Bytes::new(500);
        assert!(!config.cut(Some(Bytes::new(400))));
        assert_eq!(config.session.packet_size, Bytes::new(500));
    }

    #[test]
    fn with_a_key_packets_are_as_large_as_without_and_numbers_begin_below_a_half() {
        let peers = [("192.0.2.1:5004", 28), ("[2001:db8::1]:5004", 48)];
        for (peer, headers) in peers {
            let mut config = SendConfig::new(peer.parse().expect("an address"));
            let clear = config.wire_session().expect("random bits");
            assert_eq!((clear.ip_overhead, clear.challenge_overhead), (Bytes::new(headers), Bytes::ZERO));
            assert_eq!(clear.first_sequence, None);
            config.key = Some(Key::new([1; 32]));
            for _ in 0..50 {
                let sealed = config.wire_session().expect("random bits");
                // The tag of a packet; and 12 + 16 + 32 B behind a challenge.
                assert_eq!((sealed.ip_overhead.get(), sealed.challenge_overhead.get()), (headers + 16, 64 - 16));
                assert!(sealed.first_sequence.is_some_and(|first| first < 1 << 15));
            }
            config.session.packet_size = config.wire_session().expect("random bits").least_packet_size();
            assert!(config.check().is_ok());
            config.key = None;
            let less = config.wire_session().expect("random bits").least_packet_size();
            assert_eq!(config.session.packet_size, less + Bytes::new(16));
        }
    }
}
