//! The refusals of the analysis.

use fairpace_path::{ArqError, ChannelError};

/// The inputs that cannot be analysed, and the needs that cannot be met.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum QosError {
    /// The channel is none.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The link is none.
    #[error(transparent)]
    Link(#[from] ArqError),
    /// A number out of its range.
    #[error("{field} is {found}; it must be {allowed}; the nearest possible is {nearest}")]
    OutOfRange {
        /// The name of the number.
        field: &'static str,
        /// The value given.
        found: String,
        /// The values that are allowed.
        allowed: String,
        /// The allowed value next to it.
        nearest: String,
    },
    /// The link cannot carry what is asked for.
    #[error("{needed:.4} packets per slot are needed; the link delivers at most {possible:.4} in the long run")]
    NeedAboveCapacity {
        /// Packets per slot that are asked for.
        needed: f64,
        /// Packets per slot that are delivered.
        possible: f64,
    },
    /// No window is small enough.
    #[error("no window keeps the delay outage at {bound}: the smallest, {window}, has {outage:.3e}")]
    OutageAboveBound {
        /// The outage that is tolerated.
        bound: f64,
        /// The smallest window there is: 1 packet per flow.
        window: u32,
        /// Its outage.
        outage: f64,
    },
    /// No packet is ever delivered.
    #[error("the channel delivers nothing: each try fails in every state that tries are made in")]
    NothingArrives,
    /// The long run depends on the beginning.
    #[error(
        "the silence after a failure is in step with the channel's period: which states are tried depends on how it \
         begins for ever; choose another `retry_delay`"
    )]
    Locked,
}
