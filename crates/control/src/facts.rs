//! The facts about single packets that a controller gets, and its account of itself: plain values.

use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, Rate};

/// One packet has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Media or dummy.
    pub kind: Kind,
    /// The priority it was marked with.
    pub class: Class,
    /// Its number among the packets of its kind; never wraps.
    pub seq: u64,
    /// Its size on the wire, in the same terms as `packet_size`.
    pub size: Bytes,
}

/// One packet is acknowledged, for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// Media or dummy.
    pub kind: Kind,
    /// Its number among the packets of its kind.
    pub seq: u64,
    /// Its size on the wire.
    pub size: Bytes,
    /// When it left.
    pub sent_at: Instant,
    /// The packet had been declared lost: a late recovery, and the loss was none.
    pub late: bool,
    /// The round trip it measured, the receiver's delay taken out; `None` if that was not
    /// believable (then it is counted and not used).
    pub rtt: Option<Duration>,
    /// The ECN field it arrived with.
    pub ecn: Ecn,
    /// When it arrived, on the receiver's clock, if the feedback says.
    pub arrived_at: Option<Duration>,
    /// Packets of its kind that are still outstanding: neither acknowledged nor declared lost.
    pub outstanding: usize,
}

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossHow {
    /// Enough later packets were acknowledged.
    LaterAcks,
    /// The timeout.
    Timeout,
}

/// One data packet is declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The number of the lost data packet.
    pub seq: u64,
    /// When it left.
    pub sent_at: Instant,
    /// The highest data number sent so far.
    pub highest_sent: u64,
    /// How it was noticed. [`LossHow::Timeout`] only under [`TimeoutRule::PerPacket`](crate::TimeoutRule::PerPacket); the
    /// other rule's timeout is [`Controller::on_timeout`](crate::Controller::on_timeout).
    pub how: LossHow,
}

/// The present activity of a scheme, for the eye and for logs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// The scheme's own word for its state.
    pub state: &'static str,
    /// The data rate it allows.
    pub rate: Rate,
    /// Why state or rate last changed.
    pub reason: &'static str,
    /// The loss (event) rate that the scheme goes by, in `[0, 1]`; `None` if it has no such number.
    pub p: Option<f64>,
}
