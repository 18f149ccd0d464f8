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

impl Adaptation {
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
