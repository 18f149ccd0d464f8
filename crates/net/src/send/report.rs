//! The reports of a sender: while it runs, and in the end.

use super::Adaptation;
use crate::{LatenessSummary, NetError, SocketCounters, TcpHalfStats};
use fairpace_control::feedback::Form;
use fairpace_control::quick_start::{QsCounters, QsVerdict};
use fairpace_control::{FlowCounters, FlowEvent};
use fairpace_rtp::{QueueStats, SenderEvent, SenderStats, fec};
use fairpace_units::{Bytes, Dscp, Duration, Instant, Rate, Via};
use std::net::SocketAddr;

/// The sender at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SendSample {
    /// Time since the run began.
    pub at: Instant,
    /// The controller's state.
    pub state: &'static str,
    /// Why state or rate last changed.
    pub reason: &'static str,
    /// The transport of the next packet.
    pub via: Via,
    /// The rate it allows.
    pub rate: Rate,
    /// The rate that the encoder was asked for (payload).
    pub media_rate: Rate,
    /// How much media is protected by repair packets, and why.
    pub protection: fec::Decision,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The TCP half's congestion window, segments; `None` without one.
    pub tcp_cwnd: Option<u32>,
    /// Who makes the encoder's rate fit the controller's.
    pub adaptation: Adaptation,
    /// Frames and bytes waiting.
    pub queue: (usize, Bytes),
    /// How long the oldest of these has waited.
    pub queue_wait: Duration,
    /// The queue since the beginning.
    pub queue_stats: QueueStats,
    /// Packets sent, acknowledged, lost since the beginning.
    pub flow: FlowCounters,
}

/// The fate of a flow's Quick-Start requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuickStartReport {
    /// All requests, by their fate.
    pub counters: QsCounters,
    /// The verdict on the first request, and how long after the beginning of the run it was known; `None`: nothing was asked, or
    /// nothing was known by the end.
    pub first: Option<(Duration, QsVerdict)>,
}

/// Looks on while a sender runs. All methods may be left out.
pub trait SendObserver {
    /// Something happened to the session.
    fn on_event(&mut self, _now: Instant, _event: &SenderEvent) {}
    /// Packets go by another transport from now on.
    fn on_switch(&mut self, _now: Instant, _via: Via) {}
    /// The controller did something (only with [`super::SendConfig::trace`]).
    fn on_flow_event(&mut self, _event: &FlowEvent) {}
    /// The state, every [`super::SendConfig::sample`].
    fn on_sample(&mut self, _sample: &SendSample) {}
}

impl SendObserver for () {}

/// How a sender ended.
#[derive(Debug)]
pub enum SendEnd {
    /// The source or the duration ended.
    Finished,
    /// The stop flag was set.
    Interrupted,
    /// The receiver said goodbye.
    PeerBye,
    /// Something went wrong.
    Failed(NetError),
}

/// The record of a sender; complete however it ended.
#[derive(Debug)]
pub struct SendReport {
    /// The receiver.
    pub peer: SocketAddr,
    /// From the peer's first answer to the end; zero if it never answered.
    pub elapsed: Duration,
    /// The first round trip, and the code point that arrived with it, if the peer said; `None` if it never answered.
    pub validated: Option<(Duration, Option<Dscp>)>,
    /// Who made the encoder's rate fit the controller's.
    pub adaptation: Adaptation,
    /// The session's counts.
    pub stats: SenderStats,
    /// Pictures that the source took, from the first frame to the last: those left out, by the encoder or because too much waited, are
    /// among them.
    pub captures: u64,
    /// The flow's counts. Where the receiver measures it knows of no single packet: none is acknowledged or lost.
    pub flow: FlowCounters,
    /// Whether single packets were acknowledged, and how, or the receiver measured.
    pub feedback_form: Form,
    /// The window that the receiver advertised last, in packets, if it did.
    pub rwnd: Option<u32>,
    /// The last loss event rate that the controller went by, if it has one.
    pub p: Option<f64>,
    /// The socket's counts.
    pub socket: SocketCounters,
    /// The TCP half, if there was one.
    pub tcp: Option<TcpHalfStats>,
    /// How often packets changed from one transport to the other.
    pub switches: u64,
    /// IP size of a full packet at the end: as asked for, or what the path carries if that is less.
    pub packet_size: Bytes,
    /// The fate of Quick-Start requests; `None` if none were to be sent.
    pub quick_start: Option<QuickStartReport>,
    /// How late paced packets left.
    pub pacing: LatenessSummary,
    /// Packets that the session gave and the kernel did not take.
    pub not_sent: u64,
    /// Datagrams that were not sealed with the session's key, or had come before; zero without a key.
    pub unsealed: u64,
    /// The source's data that still waited at the end: to leave, or for TCP's acknowledgement.
    pub left_behind: Bytes,
    /// CPU time / time.
    pub cpu: f64,
    /// How it ended.
    pub end: SendEnd,
}
