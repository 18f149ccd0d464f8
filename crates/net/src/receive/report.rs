//! The reports of a receiver: while it runs, and in the end.

use crate::{Granted, NetError, SocketCounters, TcpReceiverStats};
use fairpace_media::FrameFates;
use fairpace_rtp::{ReceiverEvent, ReceiverStats};
use fairpace_units::{Bytes, Duration, Instant, Via};
use std::net::SocketAddr;

/// The receiver at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReceiveSample {
    /// Time since the run began.
    pub at: Instant,
    /// The session's counts.
    pub stats: ReceiverStats,
    /// Complete frames so far.
    pub frames: u64,
    /// The frames' fates so far; `None` if the sink plays nothing out.
    pub fates: Option<FrameFates>,
    /// Datagrams that this machine's kernel dropped because we were slow: not the path's loss.
    pub kernel_drops: u64,
    /// Datagrams that were not sealed with the key, or had come before; zero without a key.
    pub unsealed: u64,
}

/// One media packet, for delay series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketNote {
    /// Sequence number; never wraps.
    pub sequence: u64,
    /// When the kernel got it; what came by TCP, when it was read.
    pub arrived: Instant,
    /// Arrival less departure in ns, on two clocks: absolute only if they agree.
    pub one_way_delay: Option<i64>,
    /// RTP payload.
    pub size: Bytes,
    /// The data came as a retransmission.
    pub retransmitted: bool,
    /// The data followed from repair packets.
    pub recovered: bool,
    /// The transport that it came by.
    pub via: Via,
}

/// Looks on while a receiver runs. All methods may be left out.
pub trait ReceiveObserver {
    /// Something happened to the session.
    fn on_event(&mut self, _now: Instant, _event: &ReceiverEvent) {}
    /// A media packet came.
    fn on_packet(&mut self, _packet: &PacketNote) {}
    /// The sender of the last session has gone, and does not count ([`ReceiveReport::counts`]): the session goes on with the next one.
    fn on_uncounted(&mut self, _now: Instant) {}
    /// The state, every [`super::ReceiveConfig::sample`].
    fn on_sample(&mut self, _sample: &ReceiveSample) {}
}

impl ReceiveObserver for () {}

/// How a receiver ended.
#[derive(Debug)]
pub enum ReceiveEnd {
    /// The sender said goodbye.
    Bye(String),
    /// The duration was over.
    Finished,
    /// The sender fell silent, and another one, which begins a session of its own, has come in its place.
    Replaced,
    /// The stop flag was set.
    Interrupted,
    /// No sender came, the sender vanished, or the sink failed.
    Failed(NetError),
}

/// The record of a session of a receiver; complete however it ended.
#[derive(Debug)]
pub struct ReceiveReport {
    /// From the first media packet to the end; zero if none came.
    pub elapsed: Duration,
    /// The sender.
    pub peer: Option<SocketAddr>,
    /// The session's counts.
    pub stats: ReceiverStats,
    /// Complete frames.
    pub frames: u64,
    /// Packets of frames that were never complete.
    pub abandoned_packets: u64,
    /// The socket's counts, of all sessions.
    pub socket: SocketCounters,
    /// Datagrams that this machine's kernel dropped in this session because we were slow: not the path's loss.
    pub kernel_drops: u64,
    /// Socket buffers, asked and granted.
    pub buffers: Granted,
    /// The TCP half, of all sessions, if there was one.
    pub tcp: Option<TcpReceiverStats>,
    /// Packets passed on to the player.
    pub forwarded: u64,
    /// Packets that could not be passed on (nobody listens there yet, say).
    pub not_forwarded: u64,
    /// Feedback packets that the kernel did not take.
    pub not_sent: u64,
    /// Datagrams that were not sealed with the key, or had come before; zero without a key.
    pub unsealed: u64,
    /// CPU time / time.
    pub cpu: f64,
    /// The sender has shown that it sees what goes to its address, has the key, or is of an address that
    /// [`ReceiverConfig::from`](fairpace_rtp::ReceiverConfig::from) names. Who forges addresses, and can do nothing of that, ends no receiver of
    /// several sessions ([`super::Last::IfItCounts`]).
    pub counts: bool,
    /// Another session may follow ([`super::Sessions::serve`]).
    pub goes_on: bool,
    /// How it ended.
    pub end: ReceiveEnd,
}
