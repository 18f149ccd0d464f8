//! The feedback of a receiver: its forms, one message of each, and the outcome of a message.
//!
//! A [`Form`] is agreed on once, before anything is sent; [`crate::Flow::on_feedback`] takes the messages of that form, and
//! refuses those of another one before they change anything. RTCP's receiver reports are beside every form: the circuit
//! breaker judges them.

mod rtp_tfrc;
pub mod twcc;

pub use rtp_tfrc::{RateHeader, RateReport, ReceiverParams};

use crate::breaker::ReceiverReport;
use crate::sack_vector::SackVector;
use core::fmt;
use core::str::FromStr;
use fairpace_units::{Duration, Ecn, Kind};

/// How a receiver tells its sender what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// An acknowledgement of every packet: [`crate::AckReceiver`]; RFC 8888 on the wire.
    #[default]
    Ccfb,
    /// The largest number received and which of the eight before it: [`SackVector`].
    SackVector,
    /// The receiver's own measurements, about once per RTT: [`RateReport`]; RTP-TFRC on the wire.
    RtpTfrc,
    /// RTCP receiver reports and nothing else: [`ReceiverReport`], each [`crate::Controller::report_interval`].
    Reports,
    /// As [`Form::Ccfb`], by transport-wide numbers: [`twcc`].
    Twcc,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 5] = [Form::Ccfb, Form::SackVector, Form::RtpTfrc, Form::Reports, Form::Twcc];

    /// As a person writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Ccfb => "ccfb",
            Form::SackVector => "sack-vector",
            Form::RtpTfrc => "rtp-tfrc",
            Form::Reports => "reports",
            Form::Twcc => "twcc",
        }
    }

    /// Whether a person chooses this form; the others follow from the controller.
    pub const fn is_chosen(self) -> bool {
        matches!(self, Form::Ccfb | Form::RtpTfrc | Form::Twcc)
    }

    /// Whether a controller hears all that it needs by this form, if it wants `needed`.
    /// Feedback on every packet says all that a sack vector does, but for the window.
    pub fn serves(self, needed: Form) -> bool {
        self == needed
            || matches!((self, needed), (Form::Twcc, Form::Ccfb) | (Form::Ccfb | Form::Twcc, Form::SackVector))
    }

    /// The form that serves a controller of this one where packets are sent again: a sack vector has no place for them.
    pub const fn with_repair(self) -> Form {
        match self {
            Form::SackVector => Form::Ccfb,
            form => form,
        }
    }

    /// A description of the form, for help and lists.
    pub const fn about(self) -> &'static str {
        match self {
            Form::Ccfb => "feedback on every packet, its arrival and its ECN mark (RFC 8888)",
            Form::SackVector => "sack vectors, with the largest number received and which of the eight before it",
            Form::RtpTfrc => {
                "reports of the rate received and the loss event rate, about once per round trip (draft-ietf-avt-tfrc-profile)"
            }
            Form::Reports => "RTCP receiver reports and nothing else",
            Form::Twcc => "transport-wide feedback on every packet and its arrival, as browsers send it",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no form of feedback.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a form of feedback; there are {}", Form::ALL.map(Form::name).join(", "))]
pub struct UnknownForm {
    /// The name as given.
    pub found: String,
}

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(s: &str) -> Result<Form, UnknownForm> {
        Form::ALL.into_iter().find(|form| form.name() == s).ok_or_else(|| UnknownForm { found: s.to_owned() })
    }
}

/// The acknowledgement of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Media or dummy.
    pub kind: Kind,
    /// The packet's number.
    pub seq: u64,
    /// The ECN field it arrived with.
    pub ecn: Ecn,
    /// When it arrived, on the receiver's clock, if known.
    pub arrived_at: Option<Duration>,
    /// How long the receiver held the acknowledgement back.
    pub ack_delay: Duration,
}

impl Ack {
    /// An acknowledgement sent at once, with nothing more to say.
    pub const fn immediate(kind: Kind, seq: u64) -> Ack {
        Ack { kind, seq, ecn: Ecn::NotEct, arrived_at: None, ack_delay: Duration::ZERO }
    }
}

/// One piece of feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message<'a> {
    /// [`Form::Ccfb`]: a report of acknowledgements.
    Acks {
        /// The acknowledgements, in the order in which they are to be credited.
        acks: &'a [Ack],
        /// When the receiver made the report, on its own clock, if known.
        made_at: Option<Duration>,
    },
    /// [`Form::Ccfb`]: packets whose fate nobody will tell, as the report on them was lost. They are neither
    /// acknowledged nor lost; to be handed in before the acknowledgements of later packets.
    Untold(&'a [(Kind, u64)]),
    /// [`Form::SackVector`].
    SackVector(&'a SackVector),
    /// [`Form::RtpTfrc`].
    Measured(&'a RateReport),
    /// An RTCP receiver report: beside every form for the circuit breaker, for the controller under [`Form::Reports`].
    Report(&'a ReceiverReport),
}

impl<'a> Message<'a> {
    /// Acknowledgements in a report that does not say when it was made.
    pub const fn acks(acks: &'a [Ack]) -> Self {
        Message::Acks { acks, made_at: None }
    }

    /// The form whose message this is; `None`: beside every form.
    pub const fn form(&self) -> Option<Form> {
        match self {
            Message::Acks { .. } | Message::Untold(_) => Some(Form::Ccfb),
            Message::SackVector(_) => Some(Form::SackVector),
            Message::Measured(_) => Some(Form::RtpTfrc),
            Message::Report(_) => None,
        }
    }
}

/// The worth of a message that was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets that were acknowledged for the first time.
    pub credited: u64,
    /// Acknowledgements that were ignored: repeated, too old, or of packets not sent.
    pub ignored: u64,
}

/// Why a message was refused: nothing of it was used. All but [`BadFeedback::NotRunning`] are counted in
/// [`crate::FlowCounters::bad`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFeedback {
    /// The flow has not begun, or has ended.
    #[error("the flow is not running")]
    NotRunning,
    /// Nobody asked for this form.
    #[error("feedback as {found}, where {wanted} was asked for")]
    Unasked {
        /// The message's form.
        found: Form,
        /// The flow's form.
        wanted: Form,
    },
    /// The message tells of a packet that has not been sent.
    #[error("a packet is acknowledged that has not been sent")]
    Unsent,
    /// A number that was left out on purpose is acknowledged; the flow has stopped.
    #[error("a packet is acknowledged that was left out on purpose")]
    Lie,
    /// The values cannot be true.
    #[error("a report of what cannot be")]
    Impossible,
    /// The message is as old as one that has come, or older.
    #[error("a report as old as one that has come, or older")]
    Old,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_by_its_name_and_an_unknown_one_is_told_all_names() {
        for form in Form::ALL {
            assert_eq!(form.name().parse(), Ok(form));
        }
        let error = "nack".parse::<Form>().expect_err("no form");
        assert_eq!(
            error.to_string(),
            "`nack` is not a form of feedback; there are ccfb, sack-vector, rtp-tfrc, reports, twcc"
        );
    }
}
