//! TCP as a state machine: Reno, NewReno and SACK senders, a receiver with optional delayed ACKs.
//! Sources: [RFC 5681] (Reno), [RFC 6582] (NewReno), [RFC 6675] (SACK), [RFC 6298] (timeout),
//! [RFC 3042] (limited transmit), [RFC 3168 §6.1] (ECN). Read first: `docs/sim/tcp.md`, then [`sender`](TcpSender).
//!
//! Sequence numbers count whole segments, as the papers and ns-2 do, and do not wrap: 2^32 segments
//! of 1,000 B are 4 TB. The halves do no I/O: the network engine, or the relay in real time, carries
//! their segments.
//!
//! | RFC | field | unit |
//! | --- | --- | --- |
//! | cwnd, ssthresh | `cwnd`, `ssthresh` | segments, with a fraction |
//! | SND.UNA, SND.NXT | `snd_una`, `snd_nxt` | segment number |
//! | recover [RFC 6582] | `recover` | one past the highest segment sent when recovery began |
//! | HighRxt [RFC 6675] | `high_rxt` | one past the highest segment retransmitted in this recovery |
//!
//! Not modelled: the close of a connection, timestamps, F-RTO, D-SACK, the receiver's window
//! closing. Nagle's algorithm is where it matters: in the TCP half of a media flow (`media/tcp_half.rs`), the one source
//! that may leave a segment part empty.

pub(crate) mod endpoint;
mod ranges;
mod receiver;
mod rto;
mod sack;
mod sender;
mod tally;

pub use ranges::{Range, RangeSet};
pub use receiver::{DelayedAck, SACK_BLOCKS, TcpAck, TcpReceiver};
pub use sender::{Segment, TcpPhase, TcpSender};
pub(crate) use tally::TcpStanding;
pub use tally::{TcpAreas, TcpCounters, TcpTally};

use fairpace_units::{Bytes, Duration, Packets};

use crate::bursts::OnOff;

/// The sender's kind of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TcpVariant {
    /// Fast retransmit and fast recovery, left at the first new ACK [RFC 5681 §3.2]; one window cut
    /// per window of data, so that several losses in one window end in a timeout.
    Reno,
    /// Stays in recovery until all of the window is acknowledged; one retransmission per partial ACK
    /// [RFC 6582].
    #[default]
    NewReno,
    /// Selective acknowledgements, recovery by the size of the pipe [RFC 6675].
    Sack,
}

impl TcpVariant {
    /// The name in reports and scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            TcpVariant::Reno => "reno",
            TcpVariant::NewReno => "newreno",
            TcpVariant::Sack => "sack",
        }
    }
}

/// Everything a TCP connection can be told. The defaults are those of the reference measurements
/// (`reference/ns2/README.md`): no delayed ACKs, initial window 2, a 10-ms clock.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpParams {
    /// Loss recovery; default NewReno.
    pub variant: TcpVariant,
    /// First window, in segments, 1 to 10; default 2 [RFC 5681 §3.1 allows 2 to 4, RFC 6928 10].
    pub initial_window: Packets,
    /// The connection is opened first: segment 0 is a SYN of 40 B, alone, and with its ACK the window is the initial one, as in ns-2
    /// (`delay_growth_`). A SYN that is lost is sent again after `initial_rto`; the initial window stays what it is then, as in ns-2 and, after one loss,
    /// in Linux (RFC 5681 §3.1 has one segment). Default off: data begins at once.
    pub handshake: bool,
    /// The receiver's window: the sender never has more outstanding; default 100,000 segments.
    pub max_window: Packets,
    /// Where slow start ends the first time; default: the receiver's window.
    pub initial_ssthresh: Option<Packets>,
    /// Floor of the timeout; default 200 ms (RFC 6298 says 1 s; every kernel in use has about 200 ms).
    pub min_rto: Duration,
    /// Ceiling of the timeout, back-off included; default 60 s [RFC 6298 §2.5].
    pub max_rto: Duration,
    /// Timeout before the first RTT sample; default 3 s (RFC 2988; RFC 6298 §2.1 lowered it to 1 s).
    pub initial_rto: Duration,
    /// Tick of the clock that measures the RTT; default 10 ms, zero for an exact clock.
    pub tick: Duration,
    /// Duplicate ACKs that mean a loss; default 3 [RFC 5681 §3.2].
    pub dup_threshold: u32,
    /// Send a new segment for each of the first two duplicate ACKs [RFC 3042]; default on.
    pub limited_transmit: bool,
    /// Loss recovery as Linux has it (seen in 6.18), instead of as the RFCs and ns-2 have it. With SACK the window is reduced in
    /// proportion to what arrives [RFC 6937], a segment or a retransmission is lost when one that was sent after it has arrived
    /// [RFC 8985; outside a repair with the third SACK, or an eighth of the smoothed RTT after the first], and a timeout keeps the
    /// scoreboard; RTT samples and the timer go by SACKs, too. NewReno's timer restarts at each partial ACK ("slow but steady"), and not at the first only ("impatient")
    /// [RFC 6582 §4]. For all, `min_rto` is what is added to the smoothed RTT at least, and the
    /// window is whole: it grows by one after as many ACKs as it has segments, and is halved for each timeout's time of a pause
    /// [RFC 2861 §3]. Default off.
    pub linux: bool,
    /// Recovery of SACK as ns-2's Sack1 has it, instead of by RFC 6675: the pipe is a count, one fewer with each ACK, two with a partial
    /// one, one more with each segment; every hole below a SACK is sent again, one above all SACKs after new segments; three duplicate
    /// ACKs begin a recovery, and the window that is halved keeps its fraction. Of SACK only, and not with `linux`. Default off.
    pub ns2: bool,
    /// The growth of the window per RTT in congestion avoidance, in segments; default 1. With `decrease`, ns-2's
    /// `increase_num_` and `decrease_num_`: TCP(alpha, beta).
    pub increase: f64,
    /// The share of the window that remains after a loss or a mark, in (0, 1); default 0.5. The first cut, any cut
    /// in slow start, and ssthresh at a timeout are by half, as in ns-2.
    pub decrease: f64,
    /// New data goes out as ECT(0), and a congestion mark is answered as a loss is [RFC 3168 §6.1];
    /// default off.
    pub ecn: bool,
    /// Each sending opportunity waits a uniform time in `[0, send_jitter)`, as ns-2's `overhead_`:
    /// one service time of the bottleneck removes phase effects at drop-tail queues. Default 0.
    pub send_jitter: Duration,
    /// The receiver's delayed ACKs; default none: every segment is acknowledged.
    pub delayed_ack: Option<DelayedAck>,
    /// After a timeout's time without sending the window restarts at the initial one [RFC 5681 §4.1]; default on. Off
    /// is Linux's `tcp_slow_start_after_idle = 0`, and what [tpba §4] did to FreeBSD.
    pub restart_after_idle: bool,
}

impl TcpParams {
    /// The window with which data begins, in segments.
    fn first_window(&self) -> f64 {
        self.initial_window.as_f64().clamp(1.0, self.max_window.as_f64().max(1.0))
    }
}

impl Default for TcpParams {
    fn default() -> Self {
        TcpParams {
            variant: TcpVariant::NewReno,
            initial_window: Packets::new(2),
            handshake: false,
            max_window: Packets::new(100_000),
            initial_ssthresh: None,
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            initial_rto: Duration::from_secs(3),
            tick: Duration::from_millis(10),
            dup_threshold: 3,
            limited_transmit: true,
            linux: false,
            ns2: false,
            increase: 1.0,
            decrease: 0.5,
            ecn: false,
            send_jitter: Duration::ZERO,
            delayed_ack: None,
            restart_after_idle: true,
        }
    }
}

/// The data of a TCP connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TcpSource {
    /// A file without end: always more to send.
    Ftp,
    /// Bursts: more to send while on, nothing while off.
    OnOff(OnOff),
    /// This many bytes on the wire, then the connection is done.
    Transfer(Bytes),
}
