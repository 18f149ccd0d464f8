//! The parts of a run, as plain data: the dumbbell, its flows, what to record.
//!
//! ```text
//!   sender 0 --forward_in--\                              /--forward_out--> receiver 0
//!   sender 1 --forward_in---> [ bottleneck ] ------------>----forward_out--> receiver 1
//!            <--back_out----- [ reverse    ] <------------<----back_in------
//! ```
//!
//! A flow without an access link on some side is attached there directly. In place of the shared pair of links, or
//! behind it, there may be any hops ([`HopConfig`]) in sequence, and a flow may pass only some of them (its
//! [`FlowConfig::route`]). At a satellite it has a terminal on each side:
//!
//! ```text
//!   sender --forward_in--> terminal a --\              /--> terminal b --forward_out--> receiver
//!          <--back_out----             --> satellite --                <--back_in-----
//! ```
//!
//! Behind a base station it has a user: data takes that user's downlink, where slots are shared
//! and failed packets sent again, and feedback that user's uplink:
//!
//! ```text
//!   sender --forward_in--> [ bottleneck ] --> base station --user's downlink--> receiver
//!          <--back_out---- [ reverse    ] <-- base station <--user's uplink----
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fairpace_control::feedback::Form;
use fairpace_control::{Controller, Env, FlowParams};
use fairpace_path::{Capacity, LinkSpec};
use fairpace_units::{Bytes, Class, Duration, Instant, QsRate, Rate};

use crate::bursts::OnOff;
use crate::hop::{HopConfig, RouteHop};
use crate::tcp::{TcpParams, TcpSource, TcpVariant};

/// A whole run. Same value, same bytes out.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Simulated time.
    pub duration: Duration,
    /// The time before this is left out of [`FlowReport::measured`](crate::FlowReport::measured).
    pub warmup: Duration,
    /// The shared hops, in the order in which data passes them.
    pub hops: Vec<HopConfig>,
    /// The flows, at least one, names unique.
    pub flows: Vec<FlowConfig>,
    /// Flows that come one after another, and of which there is nothing in memory before and after. `flows` may be empty then.
    pub coming: Option<Coming>,
    /// Distance of the rows of [`SimReport::series`](crate::SimReport::series); none if `None`.
    pub sample: Option<Duration>,
    /// The beginning of a flow, for [`GroupReport::opening`](crate::GroupReport::opening); `None`: nothing goes there.
    pub opening: Option<Duration>,
    /// Instants at which every flow's counts are noted, in [`FlowReport::checkpoints`](crate::FlowReport::checkpoints).
    pub checkpoints: Vec<Instant>,
    /// Instants whose super-frames' burst time plans are kept, in
    /// [`SatelliteReport::plans`](crate::SatelliteReport::plans).
    pub plans: Vec<Instant>,
    /// Collect the events of the controllers (states, rates, losses) and of the satellite. In a run of
    /// [`MANY_FLOWS`](crate::MANY_FLOWS) and more only the first [`MOST_FLOWS_TRACED`](crate::MOST_FLOWS_TRACED)
    /// flows of each group have any.
    pub trace: bool,
    /// Write every packet, sent, received and dropped, into [`SimReport::pcapng`](crate::SimReport::pcapng).
    pub pcap: bool,
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            seed: 1,
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default())],
            flows: Vec::new(),
            coming: None,
            sample: None,
            opening: None,
            checkpoints: Vec::new(),
            plans: Vec::new(),
            trace: false,
            pcap: false,
        }
    }
}

impl SimConfig {
    /// The two links of a path that is nothing else; `None` if there are more hops, or one of another kind.
    pub fn only_links(&self) -> Option<[&LinkSpec; 2]> {
        match &self.hops[..] {
            [hop] => hop.as_links(),
            _ => None,
        }
    }
}

/// Flows that come one after another, told as they come: hundreds of thousands of short ones take the memory of those that go on at one time.
///
/// The run is one of many flows ([`SimReport::flows`](crate::SimReport::flows)). They are told in the order of their starts, perhaps without an end: those after the run
/// are not asked for. Each has a name of its own, which nobody compares. They have as few groups as there are kinds of them, since each
/// group has distributions of delays; [`FlowConfig::new`] would give each its own. None has links of its own, a spread of its start, windows, requests of Quick-Start, or a driver outside.
///
/// ```
/// use fairpace_sim::tcp::{TcpParams, TcpSource};
/// use fairpace_sim::{Coming, FlowConfig, Network, Protocol, SimConfig};
/// use fairpace_units::{Bytes, Duration, Instant};
///
/// // A page of 100 kB each 50 ms.
/// let coming = Coming::new(|| {
///     (0..200).map(|i| FlowConfig {
///         group: "pages".to_owned(),
///         start: Instant::ZERO + Duration::from_millis(50) * i,
///         ..FlowConfig::new(format!("page{i}"), Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(100_000))))
///     })
/// });
/// let config = SimConfig { duration: Duration::from_secs(20), coming: Some(coming), ..SimConfig::default() };
/// let (mut network, mut pages) = (Network::new(&config)?, 0);
/// for second in 1..=20 {
///     network.advance(Instant::ZERO + Duration::from_secs(second));
///     pages += network.take_ended().into_iter().filter(|(_, page)| page.finished.is_some()).count();
/// }
/// assert_eq!(pages, 200);
/// # Ok::<(), fairpace_sim::SimError>(())
/// ```
#[derive(Clone)]
pub struct Coming(Arc<dyn Fn() -> Box<dyn Iterator<Item = FlowConfig> + Send> + Send + Sync>);

impl Coming {
    /// The flows of an iterator, which is made anew for each run and each look, and gives the same each time.
    pub fn new<I>(flows: impl Fn() -> I + Send + Sync + 'static) -> Self
    where
        I: Iterator<Item = FlowConfig> + Send + 'static,
    {
        Coming(Arc::new(move || Box::new(flows())))
    }

    pub(crate) fn flows(&self) -> Box<dyn Iterator<Item = FlowConfig> + Send> {
        (self.0)()
    }
}

impl fmt::Debug for Coming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flows that come")
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Its name, unique; its random streams are `flow.<name>.*`.
    pub name: String,
    /// The group with which the flow is averaged in reports.
    pub group: String,
    /// When it begins at the earliest.
    pub start: Instant,
    /// A uniform random time in `[0, start_spread)` is added to `start` (stream `flow.<name>.start`).
    pub start_spread: Duration,
    /// When it stops sending; what is in flight still arrives.
    pub stop: Option<Instant>,
    /// Its own links.
    pub access: Access,
    /// The hops that its data passes, in that order; its feedback passes them in the opposite one. None twice.
    pub route: Vec<RouteHop>,
    /// The flow's wanted share of its user's downlink beside other flows: a weight above zero, relative to the sum of
    /// theirs. Only a base station reads it, in [`Member::share`](crate::Member::share).
    pub share: f64,
    /// Data whose one-way delay is longer counts in [`FlowCounts::outage`](crate::FlowCounts::outage) too.
    /// `None`: nothing does. [`SimConfig::min_owd`] is what a delay jitter is added to.
    pub delay_bound: Option<Duration>,
    /// Data packets on the wire, headers included.
    pub packet_size: Bytes,
    /// Acknowledgements on the wire.
    pub ack_size: Bytes,
    /// Sends everything of this flow in that class, instead of the one its protocol chooses.
    pub class_override: Option<Class>,
    /// The protocol of the flow.
    pub protocol: Protocol,
}

impl FlowConfig {
    /// A flow that starts at once and passes the first hop, with 1,000-B packets, 40-B acknowledgements and no access
    /// links.
    pub fn new(name: impl Into<String>, protocol: Protocol) -> Self {
        let name = name.into();
        FlowConfig {
            group: name.clone(),
            name,
            start: Instant::ZERO,
            start_spread: Duration::ZERO,
            stop: None,
            access: Access::default(),
            route: vec![RouteHop::links(0)],
            share: 1.0,
            delay_bound: None,
            packet_size: Bytes::new(1_000),
            ack_size: Bytes::new(40),
            class_override: None,
            protocol,
        }
    }
}

/// A flow's own links; `None` is no hop at all.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// From the sender to the first hop.
    pub forward_in: Option<LinkSpec>,
    /// From the last hop to the receiver.
    pub forward_out: Option<LinkSpec>,
    /// From the receiver to the last hop.
    pub back_in: Option<LinkSpec>,
    /// From the first hop to the sender.
    pub back_out: Option<LinkSpec>,
}

/// The protocol and source of a flow.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one per flow, set up once
pub enum Protocol {
    /// A TCP connection.
    Tcp(TcpParams, TcpSource),
    /// A rate-controlled flow of media.
    Media(MediaConfig),
    /// Traffic that listens to nobody.
    Constant(ConstantConfig),
    /// Packets that somebody injects: see [`Network::inject`](crate::Network::inject).
    External,
}

/// Traffic at a constant rate, perhaps in bursts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ConstantConfig {
    /// Rate while on, headers included.
    pub rate: Rate,
    /// Priority; [`FlowConfig::class_override`] overrides it.
    pub class: Class,
    /// Bursts and silences; `None`: always on.
    pub on_off: Option<OnOff>,
    /// Every packet carries a Quick-Start request for that rate, whatever is answered: a flood of them
    /// [RFC 4782 §9.6]. `None`: no packet does. The stream `flow.<name>.quick_start` has TTLs and nonces.
    pub quick_start: Option<QsRate>,
}

/// A rate-controlled flow of media.
#[derive(Clone, Debug)]
pub struct MediaConfig {
    /// Its rate controller.
    pub controller: ControllerSpec,
    /// Caps, safety and tracing of the flow around it.
    pub flow: FlowParams,
    /// Where its data comes from.
    pub source: Source,
    /// The form of feedback; `None`, and any that does not serve the controller: the controller's own.
    pub form: Option<Form>,
    /// How often the receiver sends feedback; `None`: for every packet, as in the papers.
    pub feedback: Option<Duration>,
    /// The RTT it starts from; `None`: see `challenge`.
    pub initial_rtt: Option<Duration>,
    /// Without an `initial_rtt`, ask the peer first and take the answer's, as on the wire. If not, it
    /// begins at once and knows none: as DCCP does, and [qsd §3.2]'s simulator.
    pub challenge: bool,
    /// How often the receiver sends an RTCP report (for the circuit breaker); `None`: never.
    pub report_interval: Option<Duration>,
    /// The room for data waiting at the sender: packets of a constant source, or frames, which are dropped whole. Who
    /// comes when there is no room goes (drop-tail), and is counted in
    /// [`FlowCounts::overflowed`](crate::FlowCounts::overflowed).
    pub send_buffer: Capacity,
    /// The receiver's de-jitter buffer: what comes too late for it is counted and discarded. `None`: whatever
    /// comes is of use.
    pub de_jitter: Option<DeJitter>,
    /// Keep a [`FrameRecord`](crate::FrameRecord) for each frame.
    pub record_frames: bool,
    /// Keep a [`PacketRecord`](crate::PacketRecord) for each data packet that is produced in so much time from
    /// the flow's beginning; `None`: for none.
    pub record_packets: Option<Duration>,
    /// The receiver's behaviour: honest or lying.
    pub receiver: ReceiverBehaviour,
    /// Each packet carries a nonce, and feedback the sum of those it acknowledges, as on the wire:
    /// feedback that claims a packet which has not arrived is dropped whole, three in a row end the
    /// flow. (Modelled by its outcome. The model says nothing about the numbers in a
    /// [`RateReport`](fairpace_control::RateReport).)
    pub check_nonces: bool,
    /// The TCP connection beside its datagrams: a controller that sends over both (`tpba`) needs one, others must not
    /// have one.
    pub tcp: Option<TcpHalf>,
}

/// The TCP connection of a flow that sends over TCP and UDP in turn: the paper's flow pair [tpba §5.1].
#[derive(Clone, PartialEq, Debug)]
pub struct TcpHalf {
    /// Its TCP. The paper's is Reno, and keeps its window while it is idle.
    pub params: TcpParams,
    /// A full segment on the wire; `None`: as large as the flow's packets, each of which is then one segment. Headers
    /// take 40 B of a segment and of a packet; the payloads of packets are a stream of bytes, which fills segments.
    pub segment_size: Option<Bytes>,
}

impl Default for TcpHalf {
    fn default() -> Self {
        let params = TcpParams { variant: TcpVariant::Reno, restart_after_idle: false, ..TcpParams::default() };
        TcpHalf { params, segment_size: None }
    }
}

/// A de-jitter buffer: it holds each packet until its time to be played out, which lies
/// `tolerable` behind the earliest that the baseline allows. A packet is late if its end-to-end delay is
/// more than `tolerable` above the baseline's [qsd §4: "tolerable delay"].
///
/// *Reading.* The paper calls the tolerable delay a maximum jitter and does not say above what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeJitter {
    /// How much later than the baseline a packet may come; 100 ms for speech, 5 s for television
    /// [qsd Table II].
    pub tolerable: Duration,
    /// Later than what.
    pub above: DelayBaseline,
}

/// The zero from which a [`DeJitter`] buffer measures lateness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayBaseline {
    /// The least end-to-end delay of all packets so far: a receiver that adapts its play-out downwards.
    #[default]
    Least,
    /// The first packet's: a receiver that starts its play-out with it and never changes.
    First,
}

/// The behaviour of a receiver in its feedback: the truth, or one kind of lie. T1 to T7 are the dangers of
/// `docs/rtp/safety.md`; a lie that needs a field which the scheme's feedback does not have is the truth.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum ReceiverBehaviour {
    /// The truth.
    #[default]
    Honest,
    /// The receiver claims that share of the packets that it sees are missing (T3).
    HideLosses {
        /// In `[0, 1]`.
        share: f64,
    },
    /// The receiver acknowledges packets before they come, so that the path looks `factor` times as short (T1).
    EarlyAcks {
        /// From 1.
        factor: f64,
    },
    /// Its reports say that it receives `factor` times what it does (T4).
    InflateRate {
        /// From 1.
        factor: f64,
    },
    /// The receiver claims to have held each feedback back for that share of an RTT longer than it did (T5).
    LieDelay {
        /// In `[0, 1]`; from 1 on nothing is left of the RTT.
        share: f64,
    },
    /// Its reports say that nothing is lost (T3).
    ZeroLossReports,
    /// After each feedback packet it sends an old one again, from when the flow was young (T6).
    Replay,
    /// The receiver sends each feedback packet a hundred times (T2).
    Flood,
    /// The receiver acknowledges numbers that were never sent, or echoes a time that has not come.
    Invented,
    /// The receiver answers Quick-Start requests with a rate that is higher by so many steps, and guesses the part of
    /// the nonce that goes with them (T7).
    RaiseQuickStart {
        /// 1 to 15.
        steps: u8,
    },
}

impl MediaConfig {
    /// A greedy flow with feedback for every packet from an honest receiver, no limit, no reports.
    pub fn new(controller: ControllerSpec, flow: FlowParams) -> Self {
        MediaConfig {
            controller,
            flow,
            source: Source::Greedy,
            form: None,
            feedback: None,
            initial_rtt: None,
            challenge: true,
            report_interval: None,
            send_buffer: Capacity::Unlimited,
            de_jitter: None,
            record_frames: false,
            record_packets: None,
            receiver: ReceiverBehaviour::Honest,
            check_nonces: false,
            tcp: None,
        }
    }
}

/// A controller with its settings.
#[derive(Clone)]
pub enum ControllerSpec {
    /// From the registry, by name.
    Named {
        /// `rcs`, `rap`, `fixed`, …
        scheme: String,
        /// Its parameters as a scenario gives them.
        settings: BTreeMap<String, String>,
        /// The parts of the world around the controller that it may use.
        env: Env,
    },
    /// One from outside, made anew for each run.
    Custom(Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>),
}

impl ControllerSpec {
    /// A controller of the registry with its defaults.
    pub fn named(scheme: impl Into<String>, env: Env) -> Self {
        ControllerSpec::Named { scheme: scheme.into(), settings: BTreeMap::new(), env }
    }

    /// With one parameter set.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        if let ControllerSpec::Named { settings, .. } = &mut self {
            settings.insert(name.to_owned(), value.to_string());
        }
        self
    }
}

impl fmt::Debug for ControllerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerSpec::Named { scheme, settings, .. } => write!(f, "{scheme} {settings:?}"),
            ControllerSpec::Custom(_) => f.write_str("custom controller"),
        }
    }
}

/// Where a media flow's data comes from.
#[derive(Clone)]
pub enum Source {
    /// Always a full packet ready: the papers' sources.
    Greedy,
    /// The same in application data units of so many full packets: the next is produced when the first packet of it
    /// may leave. Each is a frame in [`MediaReport::frame_records`](crate::MediaReport::frame_records).
    Adus {
        /// Packets of each, at least 1.
        packets: u32,
    },
    /// Full packets at a constant rate (wire size), whatever the controller wants; they wait in the
    /// send buffer.
    Constant(Rate),
    /// Recorded video frames, over and over.
    Frames {
        /// Payload of each frame.
        sizes: Arc<[Bytes]>,
        /// Time between frames.
        interval: Duration,
        /// The bytes that each packet adds to its payload on the wire.
        header: Bytes,
    },
    /// An encoder that is told the rate it should produce; made anew for each run with the run's seed.
    Adaptive {
        /// Makes the encoder.
        build: Arc<dyn Fn(u64) -> Box<dyn FrameSource> + Send + Sync>,
        /// The bytes that each packet adds to its payload on the wire.
        header: Bytes,
    },
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Greedy => f.write_str("greedy"),
            Source::Adus { packets } => write!(f, "data units of {packets} packets"),
            Source::Constant(rate) => write!(f, "constant {rate}"),
            Source::Frames { sizes, interval, .. } => write!(f, "{} frames every {interval:?}", sizes.len()),
            Source::Adaptive { .. } => f.write_str("adaptive"),
        }
    }
}

/// An encoder, seen from the network: asked for one frame at a time.
pub trait FrameSource: Send {
    /// The frame captured at `now`, when the encoder should produce `target` (wire rate of data
    /// packets).
    fn next_frame(&mut self, now: Instant, target: Rate) -> EncodedSize;
}

/// The size of one encoded picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodedSize {
    /// Payload; zero: the picture was skipped.
    pub size: Bytes,
    /// Decodable on its own.
    pub key: bool,
    /// Time until the next picture; must not be zero.
    pub interval: Duration,
}
