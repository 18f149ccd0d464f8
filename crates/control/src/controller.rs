//! The interface of a rate controller: the sender half of a scheme, told only facts.
//!
//! Per-packet bookkeeping (who was acknowledged, what is lost, the RTT) is done once, in
//! [`crate::Flow`]; a controller hears derived facts and answers questions. Nothing here does I/O
//! or reads a clock. Read `fixed.rs` for the smallest instance, and the template for a new one.

use crate::breaker::ReceiverReport;
use crate::facts::{Acked, Loss, Sent, Status};
use crate::feedback::{Form, RateReport, ReceiverParams};
use crate::packet_report::{Fact, PacketReport};
use crate::quick_start::QuickStartParams;
use crate::rtt::{RtoParams, RttEstimator, RttParams};
use core::any::Any;
use core::fmt::Debug;
use fairpace_units::{Bytes, Duration, Instant, Kind, QsRate, Rate, Via};

/// The answer to "may I send now, and what?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendPoll {
    /// Send one packet of this kind now.
    Send(Kind),
    /// Nothing before that instant, unless something else happens first.
    Wait(Instant),
    /// Data may go as soon as there is some.
    WaitForData,
    /// Nothing before feedback (a windowed scheme whose window is full).
    WaitForFeedback,
}

/// How far the TCP half of a flow is, as its kernel (or the simulator) says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpProgress {
    /// Acknowledged since the connection began, as bytes on the wire: [`TcpProgress::on_the_wire`].
    pub acked: Bytes,
    /// Of the stream, written and not sent yet.
    pub unsent: Bytes,
    /// The congestion window.
    pub cwnd: Bytes,
    /// The maximum segment size: what `cwnd` counts in.
    pub mss: Bytes,
    /// Times the congestion window was reduced so far.
    pub reductions: u64,
    /// TCP's smoothed RTT; `None` before its first sample.
    pub srtt: Option<Duration>,
}

impl TcpProgress {
    /// So many bytes of the connection's stream as bytes on the wire, in segments that are full: `payload` of the stream in
    /// `segment` bytes each. Every driver counts so, whatever sizes the packets have that the application wrote.
    pub fn on_the_wire(stream: Bytes, payload: Bytes, segment: Bytes) -> Bytes {
        let wire = u128::from(stream.get()) * u128::from(segment.get()) / u128::from(payload.get().max(1));
        Bytes::new(u64::try_from(wire).unwrap_or(u64::MAX))
    }
}

/// The next step of the TCP half. A driver obeys as far as its TCP allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOrder {
    /// Set the congestion window: cwnd_new [tpba §4].
    SetCwnd(Bytes),
    /// Send small segments at once (Nagle's algorithm off), or not.
    NoDelay(bool),
}

/// How to notice losses on behalf of a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPolicy {
    /// A data packet is lost when this many data packets sent after it are acknowledged
    /// [RFC 5681 §3.2: three duplicate ACKs].
    pub dup_threshold: u8,
    /// The beginning of the timeout.
    pub timeout: TimeoutRule,
    /// The RTT filter.
    pub rtt: RttParams,
    /// The timeout computed from it.
    pub rto: RtoParams,
}

/// The beginning of the retransmission timeout (nothing is retransmitted here; the name is TCP's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutRule {
    /// From the last ACK, or the departure of the oldest outstanding packet if that is later:
    /// TCP's. When it expires, all outstanding data is given up and [`Controller::on_timeout`]
    /// called.
    SinceLastAck,
    /// From each packet's departure: RAP's. Expired packets come one by one through
    /// [`Controller::on_loss`].
    PerPacket,
    /// There is none: the scheme has a timer of its own (TFRC's no-feedback timer).
    Never,
}

impl Default for LossPolicy {
    fn default() -> Self {
        LossPolicy {
            dup_threshold: 3,
            timeout: TimeoutRule::SinceLastAck,
            rtt: RttParams::default(),
            rto: RtoParams::default(),
        }
    }
}

/// The bounds of the packets outstanding in a windowed scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// cwnd, packets; at least 1.
    pub cwnd: f64,
    /// rwnd in force, packets; 0 if the receiver has closed the window.
    pub rwnd: u32,
}

/// The sender half of a scheme.
///
/// Four kinds of methods: `on_*` say what happened and when; `set_*` are commands; `poll_*` are
/// questions; the rest are getters. `now` is monotonic: equal is fine, earlier never happens
/// ([`crate::Flow`] sees to it); only [`Controller::poll_send`] may also be asked about an instant ahead. Asking a question
/// twice gives the same answer; only time, an `on_*` and a `set_*` may change an answer.
///
/// Every rate a controller gives lies in `[min_rate, max_rate]` of its [`crate::Env`], whatever it
/// was told before. A timer may come late, once: a controller makes up for at most one period.
///
/// The methods come in groups. *Each scheme* has those without a body: they are the core. *Facts* never change once
/// the controller is made. *Feedback* of a form that the scheme did not ask for never comes, and a scheme may ignore
/// *limits* that it has no use for: those bodies do nothing. Features that few schemes have stand in traits
/// of their own, [`TcpHooks`] and [`QuickStartHooks`]; a scheme with such a feature overrides the one method that
/// returns the trait.
///
/// A controller is [`Any`]: who knows the scheme can get at its type, and at the getters that only it has.
pub trait Controller: Any + Debug + Send {
    // --- each scheme -----------------------------------------------------------------------------

    /// The flow begins. `srtt` comes from the echo of the challenge, or from the scenario; `None`
    /// if no round trip is known yet.
    fn start(&mut self, now: Instant, srtt: Option<Duration>);

    /// A packet it allowed has left.
    fn on_sent(&mut self, now: Instant, sent: &Sent);

    /// A packet is acknowledged; once per packet, whatever the feedback repeats.
    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator);

    /// A data packet is lost; once per packet, after the `on_ack` that revealed it.
    /// A lost packet may still be acknowledged: `on_ack` then comes with [`Acked::late`].
    fn on_loss(&mut self, now: Instant, loss: &Loss, rtt: &RttEstimator);

    /// A report on packets has come. By default [`Controller::on_ack`] and [`Controller::on_loss`] hear its facts one by
    /// one; a scheme that judges reports as a whole reads them here instead. Losses that a timeout reveals come through
    /// [`Controller::on_loss`] and [`Controller::on_timeout`] all the same.
    #[inline]
    fn on_packets(&mut self, report: &mut PacketReport<'_>) {
        read_one_by_one(self, report);
    }

    /// No ACK for the timeout of [`LossPolicy`] although data is outstanding. All of it now counts
    /// as lost; the next timeout is about packets sent later. (Only under
    /// [`TimeoutRule::SinceLastAck`].)
    fn on_timeout(&mut self, now: Instant, rtt: &RttEstimator);

    /// The instant that [`Controller::poll_timer`] named has come.
    fn on_timer(&mut self, now: Instant, rtt: &RttEstimator);

    /// The application wants at most this much (`None`: no limit of its own).
    fn set_demand(&mut self, now: Instant, max: Option<Rate>);

    /// May a packet leave at `at`, and which? `has_data`: the application has a packet ready.
    ///
    /// `at` is the present, or lies ahead where the scheme lets packets leave early ([`Controller::may_leave_early`]): at most a
    /// quantum ([`crate::FlowParams::quantum`]), or a lead while data waits ([`crate::FlowParams::lead`]). After a question ahead everything else still comes with
    /// the present time: [`Controller::on_sent`] of a packet that was allowed ahead, and the next question.
    fn poll_send(&mut self, at: Instant, has_data: bool) -> SendPoll;

    /// When [`Controller::on_timer`] is wanted; [`Instant::NEVER`] if it is not.
    fn poll_timer(&self) -> Instant;

    /// The rate that the encoder should produce: the wire rate of data packets.
    fn target_rate(&self) -> Rate;

    /// State, rate and the reason for the last change.
    fn status(&self) -> Status;

    // --- facts -----------------------------------------------------------------------------------

    /// How losses are to be noticed.
    fn loss_policy(&self) -> LossPolicy {
        LossPolicy::default()
    }

    /// Does the scheme lower its rate when the path is full? Such a flow is held within what the circuit breaker bears, and
    /// goes on after a cut that has helped; another one ends.
    fn is_responsive(&self) -> bool {
        true
    }

    /// The form of feedback that the receiver must send.
    fn feedback_form(&self) -> Form {
        Form::Ccfb
    }

    /// How often the receiver is to report; `None`: as it likes.
    fn report_interval(&self) -> Option<Duration> {
        None
    }

    /// How a receiver that measures is to do so; only under [`Form::RtpTfrc`].
    fn receiver_params(&self) -> ReceiverParams {
        ReceiverParams::default()
    }

    /// Whether a congestion mark counts as a loss: only then are packets sent as ECN-capable.
    fn heeds_ecn(&self) -> bool {
        false
    }

    /// Whether a packet may leave before its gap is over ([`crate::FlowParams::quantum`], [`crate::FlowParams::lead`]): not
    /// where the least distance of two packets is a rule of the scheme.
    fn may_leave_early(&self) -> bool {
        true
    }

    // --- feedback of other forms -----------------------------------------------------------------

    /// A packet it allowed has left beside the numbers ([`crate::Flow::on_sent_unnumbered`]); only under [`Form::Reports`].
    fn on_sent_unnumbered(&mut self, _now: Instant, _size: Bytes) {}

    /// A report of a receiver that measures, after it was found believable; only under
    /// [`Form::RtpTfrc`].
    fn on_report(&mut self, _now: Instant, _report: &RateReport, _rtt: &RttEstimator) {}

    /// An RTCP receiver report, after it was found possible; only under [`Form::Reports`].
    fn on_receiver_report(&mut self, _now: Instant, _report: &ReceiverReport, _rtt: &RttEstimator) {}

    // --- limits, and what is limited -------------------------------------------------------------

    /// The receiver, or a base station on the way, allows at most `rwnd` packets outstanding from now on; 0: none.
    /// Before the first call there is no such limit, and a limit is replaced, never lifted. Schemes without a window have
    /// nothing to do.
    fn set_window_limit(&mut self, _now: Instant, _rwnd: u32) {}

    /// cwnd and rwnd of a windowed scheme; `None` if the scheme has no window.
    fn windows(&self) -> Option<Windows> {
        None
    }

    /// The path forwards dummies like data (its routers erase the DSCP): keep them at or below a
    /// tenth of the data rate. Schemes without dummies have nothing to do.
    fn set_dummies_limited(&mut self, _limited: bool) {}

    // --- what few schemes have -------------------------------------------------------------------

    /// The transport of the next packet; UDP unless the scheme has a TCP half. The answer changes in
    /// [`TcpHooks::on_adu_end`] and [`TcpHooks::on_drained`] only, so that no data unit is split.
    fn via(&self) -> Via {
        Via::Udp
    }

    /// The scheme's TCP half; `None` if it has none.
    fn tcp(&mut self) -> Option<&mut dyn TcpHooks> {
        None
    }

    /// The scheme's use of a rate that routers approve; `None` if it has none.
    fn quick_start(&mut self) -> Option<&mut dyn QuickStartHooks> {
        None
    }
}

/// Reads what is left of a report fact by fact, through [`Controller::on_ack`] and [`Controller::on_loss`]: the default of
/// [`Controller::on_packets`].
#[inline]
pub fn read_one_by_one<C: Controller + ?Sized>(controller: &mut C, report: &mut PacketReport<'_>) {
    while let Some(fact) = report.next() {
        match fact {
            Fact::Acked(acked) => controller.on_ack(report.now(), &acked, report.rtt()),
            Fact::Lost(loss) => controller.on_loss(report.now(), &loss, report.rtt()),
        }
        report.note(|| controller.status());
    }
}

/// The hooks of a scheme that sends part of its packets over a TCP connection beside the flow [tpba §4].
pub trait TcpHooks {
    /// How far TCP is; before any other input of the same instant.
    fn on_progress(&mut self, now: Instant, progress: &TcpProgress);

    /// The last packet of an application data unit has left.
    fn on_adu_end(&mut self, now: Instant);

    /// All that was given to TCP is acknowledged.
    fn on_drained(&mut self, now: Instant);

    /// The next order for TCP; `None` when there is nothing more.
    fn take_order(&mut self) -> Option<TcpOrder>;
}

/// The hooks of a scheme that can begin at a rate which all routers on the path approve [RFC 5634 §3].
pub trait QuickStartHooks {
    /// The highest rate, headers included, that a request may name now; `None` if the scheme has no use
    /// for one: it is not at its start nor back from an idle time, or allows as much already.
    fn limit(&self, params: &QuickStartParams) -> Option<Rate>;

    /// A request has left; after the `on_sent` of its packet.
    fn on_asked(&mut self, now: Instant);

    /// All routers on the path approve of `rate`, headers of `header` bytes included, and nothing was lost since they
    /// were asked. `rtt`: SRTT, or what the request took if there is none.
    fn on_approved(&mut self, now: Instant, rate: QsRate, header: Bytes, rtt: Duration);
}
