//! The inputs of a receiver that measures, from the scheme and from each packet, and its reports: the messages of
//! [`Form::RtpTfrc`](super::Form::RtpTfrc). Who measures is `scheme/tfrc/receiver.rs`.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing,))]

use crate::equation::Equation;
use crate::tfrc::history::Discounting;
use fairpace_units::{Duration, Instant, Rate};

/// How a receiver measures. The choice should be the sender's too: [`crate::Controller::receiver_params`] says which
/// that is. On a real path nothing tells the receiver, and it takes the defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverParams {
    /// The equation with which the first loss interval is computed.
    pub equation: Equation,
    /// Whether older loss intervals count less while the open one is long [RFC 5348 §5.5].
    pub discounting: Discounting,
    /// TFRC-SP: the bytes of headers on each packet, H of RFC 4828 §4.2. `None`: TFRC.
    pub small_packets: Option<f64>,
    /// Find losses as ns-2 does: [`crate::tfrc::history::Arrivals::as_ns2`].
    pub as_ns2: bool,
    /// Report as ns-2 does: at each loss event and with the first packet an R after the last report, and 1.5 R after the last report if
    /// that was made when a packet came or one has come since, whether there is news or not.
    pub reports_as_ns2: bool,
}

impl Default for ReceiverParams {
    fn default() -> Self {
        ReceiverParams {
            equation: Equation::Tfrc,
            discounting: Discounting::Off,
            small_packets: None,
            as_ns2: false,
            reports_as_ns2: false,
        }
    }
}

/// The header of every packet when the receiver measures [RFC 5348 §3.2.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateHeader {
    /// When it left, on the sender's clock.
    pub sent_at: Instant,
    /// The sender's RTT; `None` before the first sample.
    pub rtt: Option<Duration>,
}

/// The report of a receiver that measures [RFC 5348 §3.2.2]. All of it is the receiver's word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateReport {
    /// t_recvdata: `sent_at` of the last packet received, echoed.
    pub echoed: Instant,
    /// t_delay: from the arrival of that packet to this report.
    pub delay: Duration,
    /// X_recv: data received per time since the last report, or over the last RTT.
    pub received_rate: Rate,
    /// p: the loss event rate, in `[0, 1]`.
    pub loss_event_rate: f64,
}
