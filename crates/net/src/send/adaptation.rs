//! How the encoder's rate R(t) and the controller's S(t) come together [rcs §III-F].
//!
//! ```text
//! Fig. 6(a)  encoder at one rate -- R --> [buffer] -- S(t) --> network        Buffer
//! Fig. 6(b)  encoder <-- S(t);      -- R(t) --> [buffer] -- S(t) --> network  Encoder
//! Fig. 10    encoder <-- S(t);      -- R(t) ----------------> network         Unbuffered
//! ```
//!
//! Readings: no figure says what an overflow takes; here it is whole frames, up to the next key frame, since nothing before that can be
//! decoded. Fig. 10 leaves open by how much R(t) may exceed S(t) for a moment.
//!
//! Deviations: under Fig. 6(b) what has waited too long for the play-out is dropped before the buffer is full, no picture is taken while too much
//! waits, and the encoder is told of a part of S(t) ([`SenderSession::media_rate`](fairpace_rtp::SenderSession::media_rate)), as under
//! Fig. 10. There, data leads S(t) by [`LEAD`] and by a round trip at most, so that no more leaves at once than TCP may send, and never exceeds the
//! cap; of what is left of a frame the next picture waits.

use crate::NetError;
use fairpace_control::Controller;
use fairpace_rtp::{MOST_QUEUED, SenderConfig};
use fairpace_units::{Bytes, Duration, Rate, format_rate};

/// As much as the VP8 encoder may exceed its target before it leaves pictures out.
pub const LEAD: Duration = Duration::from_millis(500);

/// Who makes R(t) fit S(t).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Adaptation {
    /// The encoder follows S(t), and what exceeds S(t) for a moment waits [rcs Fig. 6(b)].
    #[default]
    Encoder,
    /// The encoder keeps one rate, and a buffer sends at S(t) [rcs Fig. 6(a)].
    Buffer {
        /// The encoder's rate: that of the frames' bytes. Without effect on a source that is encoded already.
        rate: Rate,
        /// The most that waits.
        size: Bytes,
    },
    /// The encoder follows S(t), and frames leave as they come, at S(t) in the mean [rcs Fig. 10].
    Unbuffered,
}

/// An encoder's rate where none is given: about the mean of S(t) in the set-up of [rcs Fig. 7], 130 packets/s of 1,000 B.
pub const ENCODER_RATE: Rate = Rate::mbps(1.0);
/// A buffer's size where none is given: the paper's 16 kb, read as the 16 Mbit that its delays need [rcs Fig. 8].
pub const BUFFER: Bytes = Bytes::new(2_000_000);
/// The names of all, the default first.
pub const ADAPTATIONS: [&str; 3] = ["encoder", "buffer", "unbuffered"];

/// The settings of an architecture that do not fit together. Fields are named as in files and in Python: `encoder_rate`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAdaptation {
    /// There is none of this name.
    #[error("`adaptation` is `{found}`, which is none")]
    Unknown {
        /// As given.
        found: String,
    },
    /// Only a buffer has these.
    #[error("{} under the adaptation `{under}`", no_effect(fields))]
    NoEffect {
        /// `buffer`, `encoder_rate`, or both.
        fields: Vec<&'static str>,
        /// The architecture that has none.
        under: &'static str,
    },
    /// A buffer of nothing, or of more than is worth waiting for.
    #[error("`buffer` is {found}")]
    Size {
        /// As given.
        found: Bytes,
    },
    /// The buffer would only fill.
    #[error("`encoder_rate` is {found}, and the flow may send {most} at most")]
    Rate {
        /// As given.
        found: String,
        /// The highest rate of the flow.
        most: String,
    },
}

/// `` `buffer` is of no effect ``; `` `buffer` and `encoder_rate` are of no effect ``.
fn no_effect(fields: &[&str]) -> String {
    let names: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
    format!("{} {} of no effect", names.join(" and "), if names.len() > 1 { "are" } else { "is" })
}

impl BadAdaptation {
    /// The field that is wrong; of several the first that a person would put right.
    pub fn field(&self) -> &'static str {
        match self {
            BadAdaptation::Unknown { .. } => "adaptation",
            BadAdaptation::NoEffect { fields, .. } => fields.first().copied().unwrap_or("buffer"),
            BadAdaptation::Size { .. } => "buffer",
            BadAdaptation::Rate { .. } => "encoder_rate",
        }
    }

    /// The values that are allowed, or the remedy.
    pub fn hint(&self) -> String {
        match self {
            BadAdaptation::Unknown { .. } => format!("one of `{}`", ADAPTATIONS.join("`, `")),
            BadAdaptation::NoEffect { .. } => "add the adaptation `buffer`, or leave it out".to_owned(),
            BadAdaptation::Size { .. } => format!("1 B to {MOST_QUEUED}"),
            BadAdaptation::Rate { .. } => {
                "lower it, or raise the flow's highest rate: the buffer would only fill".to_owned()
            }
        }
    }
}

impl Adaptation {
    /// The architecture of this name for a flow that may send so much, with the buffer's usual rate and size where none are given.
    ///
    /// # Errors
    /// What does not fit together: first what the architecture has no use for, then the buffer, then the encoder's rate.
    pub fn chosen(
        name: &str,
        encoder_rate: Option<Rate>,
        buffer: Option<Bytes>,
        most: Rate,
    ) -> Result<Adaptation, BadAdaptation> {
        let bare = match name {
            "encoder" => Adaptation::Encoder,
            "unbuffered" => Adaptation::Unbuffered,
            "buffer" => {
                let (rate, size) = (encoder_rate.unwrap_or(ENCODER_RATE.min(most)), buffer.unwrap_or(BUFFER));
                if size == Bytes::ZERO || size > MOST_QUEUED {
                    return Err(BadAdaptation::Size { found: size });
                }
                if rate > most {
                    let [found, most] = [rate, most].map(format_rate);
                    return Err(BadAdaptation::Rate { found, most });
                }
                return Ok(Adaptation::Buffer { rate, size });
            }
            other => return Err(BadAdaptation::Unknown { found: other.to_owned() }),
        };
        let given = [("buffer", buffer.is_some()), ("encoder_rate", encoder_rate.is_some())];
        let fields: Vec<&str> = given.into_iter().filter_map(|(field, given)| given.then_some(field)).collect();
        if fields.is_empty() { Ok(bare) } else { Err(BadAdaptation::NoEffect { fields, under: bare.name() }) }
    }

    /// The highest rate that an encoder is asked for, of a flow that may send so much.
    pub fn most_rate(self, most: Rate) -> Rate {
        match self {
            Adaptation::Buffer { rate, .. } => rate,
            Adaptation::Encoder | Adaptation::Unbuffered => most,
        }
    }

    /// Whether that controller can work so.
    ///
    /// # Errors
    /// [`NetError::Config`] if data may not leave before it is due, and would.
    pub fn suits(self, controller: &dyn Controller, scheme: &str) -> Result<(), NetError> {
        if self.lead().is_zero() || controller.may_leave_early() {
            return Ok(());
        }
        Err(NetError::Config {
            field: "adaptation",
            found: format!("{} for `{scheme}`", self.name()),
            allowed: "encoder or buffer: this controller has a least distance of two packets".to_owned(),
        })
    }

    /// As a command line names it.
    pub const fn name(self) -> &'static str {
        match self {
            Adaptation::Encoder => "encoder",
            Adaptation::Buffer { .. } => "buffer",
            Adaptation::Unbuffered => "unbuffered",
        }
    }

    /// Who does what, in words.
    pub const fn about(self) -> &'static str {
        match self {
            Adaptation::Encoder => {
                "the encoder follows the controller's rate, and what exceeds it waits [rcs Fig. 6(b)]"
            }
            Adaptation::Buffer { .. } => {
                "the encoder keeps one rate, and a buffer sends at the controller's [rcs Fig. 6(a)]"
            }
            Adaptation::Unbuffered => {
                "the encoder follows the controller's rate, and frames leave as they come [rcs Fig. 10]"
            }
        }
    }

    /// # Errors
    /// [`NetError::Config`]: a rate of zero, a buffer of nothing, or of more than is worth waiting for.
    pub(super) fn check(self) -> Result<(), NetError> {
        let wrong = |field, found, allowed| Err(NetError::Config { field, found, allowed });
        let Adaptation::Buffer { rate, size } = self else { return Ok(()) };
        if rate <= Rate::ZERO {
            return wrong("encoder_rate", format_rate(rate), "above zero".to_owned());
        }
        if size == Bytes::ZERO || size > MOST_QUEUED {
            return wrong("buffer", size.to_string(), format!("1 B to {MOST_QUEUED}"));
        }
        Ok(())
    }

    /// The session's queue, where it is the buffer: frames leave it in their turn or find no room, and a key frame that is asked for clears nothing.
    pub(super) fn apply(self, session: SenderConfig) -> SenderConfig {
        let Adaptation::Buffer { size, .. } = self else { return session };
        SenderConfig { max_queue_delay: Some(Duration::MAX), max_queue: size, refreshes: false, ..session }
    }

    /// By how much data may leave before it is due.
    pub(super) const fn lead(self) -> Duration {
        match self {
            Adaptation::Unbuffered => LEAD,
            Adaptation::Encoder | Adaptation::Buffer { .. } => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_effect_is_told_first_then_the_buffer_then_the_rate() {
        let most = Rate::mbps(2.0);
        let of = |name: &str, rate: Option<f64>, buffer: Option<u64>| {
            Adaptation::chosen(name, rate.map(Rate::mbps), buffer.map(Bytes::new), most)
        };
        let told = |name: &str, rate: Option<f64>, buffer: Option<u64>| {
            let wrong = of(name, rate, buffer).unwrap_err();
            (wrong.to_string(), wrong.field())
        };
        // A rate out of range and a buffer of nothing count for nothing where there is no buffer.
        let both = "`buffer` and `encoder_rate` are of no effect under the adaptation `encoder`".to_owned();
        assert_eq!(told("encoder", Some(3.0), Some(0)), (both, "buffer"));
        let rate = "`encoder_rate` is of no effect under the adaptation `unbuffered`".to_owned();
        assert_eq!(told("unbuffered", Some(1.0), None), (rate, "encoder_rate"));
        assert_eq!(told("buffer", Some(3.0), Some(0)), ("`buffer` is 0 B".to_owned(), "buffer"));
        let above = "`encoder_rate` is 3 Mbit/s, and the flow may send 2 Mbit/s at most".to_owned();
        assert_eq!(told("buffer", Some(3.0), None), (above, "encoder_rate"));
        assert_eq!(told("none", None, None), ("`adaptation` is `none`, which is none".to_owned(), "adaptation"));
        assert_eq!(of("buffer", None, None), Ok(Adaptation::Buffer { rate: ENCODER_RATE, size: BUFFER }));
        let slow = Adaptation::chosen("buffer", None, None, Rate::kbps(300.0)).unwrap();
        assert_eq!(slow.most_rate(Rate::kbps(300.0)), Rate::kbps(300.0));
        assert_eq!(ADAPTATIONS.map(|name| of(name, None, None).unwrap().name()), ADAPTATIONS);
    }
}
