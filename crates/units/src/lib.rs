//! The words that every other crate speaks: time without a clock, rates, sizes, probabilities,
//! sequence numbers, packet marks and named random streams.
//!
//! Nothing here reads a clock, the environment or a global generator. An [`Instant`] is a number
//! that somebody passed in; a [`RandomStream`] is seeded by its name. That is what lets the same
//! controller run in the simulator, the emulator and on real sockets.
//!
//! ```
//! use fairpace_units::{Bytes, Duration, Instant, Rate};
//!
//! let size = Bytes::new(1_250);
//! // Physics as operators: a size over a rate is a time, a rate for a time is a size.
//! assert_eq!(size / Rate::mbps(1.0), Duration::from_millis(10));
//! assert_eq!(Rate::mbps(1.0) * Duration::from_millis(10), size);
//! assert_eq!((Instant::ZERO + Duration::from_secs(2)).since(Instant::ZERO), Duration::from_secs(2));
//! ```
//!
//! Conventions: a [`Rate`] is bits per second, kilo is 1,000; [`Bytes`] and [`Packets`] do not
//! add; a paper's packet/s becomes a [`Rate`] only together with a packet size.

#![forbid(unsafe_code)]

mod bounds;
mod instant;
mod mark;
mod parse;
mod print;
mod probability;
mod quick_start;
mod random;
mod rate;
mod seq;
mod size;

pub use bounds::{Bounds, End, InWords};
pub use instant::Instant;
pub use mark::{Class, Dscp, Ecn, Kind, Via};
pub use parse::{ParseUnitError, RateSpec, parse_duration, parse_rate, parse_size};
pub use print::{exact_duration, format_duration};
pub use probability::{NotAProbability, Probability};
pub use quick_start::{QsFunction, QsNonce, QsOption, QsRate, QsResponse};
pub use random::RandomStream;
pub use rate::{Rate, format_rate};
pub use seq::{Seq16, Unwrapper16};
pub use size::{Bytes, Packets};

pub use core::time::Duration;
