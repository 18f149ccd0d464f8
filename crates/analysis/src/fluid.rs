//! The fluid model: one flow that starts on an idle return link, as four cumulative curves.
//!
//! Source: `qsd` (Secchi et al.), §3.4, §3.5 and Fig. 7. Nothing here knows packets, slots
//! or the simulator: this is what the packet simulation is checked against, and what plans in
//! milliseconds. The equations, and how (3) and (6) follow: `docs/fluid.md`.
//!
//! ```text
//!             transmit buffer      uplink queue          radio
//!  generator -----------------> S ---------------> U ------------> receiver
//!     G         rate X (TFRC)       rate B (DAMA)      RTT_m / 2       V
//!               ^                   ^       |                          |
//!               |                   '-------'                          |
//!               |                  T_r, then T_a                       |
//!               '------------------------------------------------------'
//!                                once per RTT_m + T_q
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | T_f | [`Link::t_f`] | s | parameter |
//! | T_b = T_r | [`Link::t_b`] | s | parameter |
//! | T_a | [`Link::t_a`] | s | parameter, whole T_b |
//! | T_p | [`Link::t_p`] | s | parameter |
//! | RTT_m | [`Link::rtt_m`] | s | T_f + 2 T_p |
//! | T_q | [`Strategy::Qsd`] | s | parameter |
//! | T_q,max, T_q,opt | [`Link::t_q_max_s`], [`Link::t_q_opt_s`] | s | eq. (3), (6) |
//! | RTT | `rtt` in `flow.rs` | s | RTT_m + T_q |
//! | R(t), q(t), T_s, C | `Dama::boundary` in `dama.rs` | bit/s, bit, s, bit/s | each super-frame |
//! | N_B, N_L | `Dama::boundary` in `dama.rs` | bit/s, not bursts | each super-frame |
//! | X | `Tfrc` in `flow.rs` | bit/s | each RTT |
//!
//! # Readings
//!
//! - **The radio link is RTT_m / 2 long**, in both directions, so that eq. (4) holds: the report that is
//!   sent at t is of what left the uplink queue until t - RTT_m/2. (The text under Fig. 7 has RTT_m
//!   between the third and the fourth curve, which no one-way delay can be.)
//! - **When TFRC learns.** With Quick-Start the sender has the approved rate after one RTT. The report
//!   that comes with it is ignored, the next comes after three RTT [qsd §3.3 (c)], of the RTT before it
//!   left [qsd eq. (4)], then one each RTT. Without Quick-Start there is one each RTT from the first on.
//! - **min, not max**: X becomes the smaller of twice the report and twice X [RFC 3448 §4.3]. The paper
//!   says "maximum".
//! - **Before the first RTT** one packet per second leaves [RFC 3448 §4.2], and at least one in all: in a
//!   fluid s / min(RTT, 1 s).
//! - The hold T_q is part of the RTT; the trickle's fluid itself is not held.
//! - Grants are rounded up to [`Link::unit`]: without this 256 kbit/s would be granted to the bit, and a
//!   queue at the uplink never empty. A unit of nothing switches it off.
//! - **The capacity that falls by eq. (2)** is the one in force or the one decided last ([`ReleaseOf`]). Both
//!   readings are here, because the choice decides whether a hold helps (`docs/fluid.md`). That capacity neither
//!   falls below the request nor rises.
//!
//! # Not in the model
//!
//! Packets, slots and their quantisation (of X_recv above all), losses, the no-feedback timer, an RTT that
//! grows with the queue, other traffic, access links, FCA.

mod curve;
mod dama;
mod flow;
mod request;
mod sweep;

pub use curve::Curve;
pub use flow::{Delay, Flow, Run, Strategy, run};
pub use request::approved;
pub use sweep::{
    Hump, MEDIAN_OVER, PHASE_STEP, Spread, Summary, max_delay, median_delay, phases, second_hump, smallest_t_q,
    strategies, summary,
};

use fairpace_path::{DamaError, DamaSpec, ReleaseOf};
use fairpace_units::{Bytes, Duration, Rate, format_duration};

/// The return link as one terminal sees it while all others are idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// T_f: the multi-frame, in which each terminal has its slots once.
    pub t_f: Duration,
    /// T_b = T_r: the super-frame. The time between two TBTP, and that over which a terminal measures.
    pub t_b: Duration,
    /// T_a: from a request to the slots that answer it, in super-frames.
    pub t_a: u32,
    /// T_p: from terminal to terminal through the satellite.
    pub t_p: Duration,
    /// The capacity of the terminal without a request.
    pub minimum: Rate,
    /// Granularity: grants are multiples of it. Zero: any rate.
    pub unit: Rate,
    /// The most that the terminal can be granted: the carrier less what the others have without asking.
    pub available: Rate,
    /// C of eq. (1): rate that is always requested. Zero: none.
    pub c: Rate,
    /// T_s of eq. (1): time in which the queue is to be emptied. None: no volume is requested.
    pub t_s: Option<Duration>,
    /// a of eq. (2).
    pub a: f64,
    /// b of eq. (2).
    pub b: f64,
    /// The capacity that eq. (2) lowers.
    pub release: ReleaseOf,
}

/// A stream asks for so many times its rate: what it has gathered in the first round trip must drain. 320 kbit/s
/// for 256 [qsd §3.3].
pub const HEADROOM: f64 = 1.25;

/// The inputs that the model cannot treat.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FluidError {
    /// Not a return link at all.
    #[error(transparent)]
    Link(#[from] DamaError),
    /// A capacity category that is not in the model.
    #[error("`{field}` is {found}; the fluid model has {allowed}")]
    NotModelled {
        /// The field of the specification.
        field: &'static str,
        /// The setting found.
        found: bool,
        /// The settings that the model can treat.
        allowed: &'static str,
    },
    /// A rate so high that the flow cannot ask for it.
    #[error("`rate` is {rate}; the Quick-Start option has no rate {HEADROOM} times that")]
    NoRequest {
        /// The rate of the flow.
        rate: Rate,
        /// The highest for which the option has one.
        most: Rate,
    },
    /// A number out of its range.
    #[error("`{field}` is {found}; it must be {allowed}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The value given.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
}

impl TryFrom<&DamaSpec> for Link {
    type Error = FluidError;

    /// The numbers of `spec`, for the flow of one of its terminals. Its Quick-Start agents are not asked: that is
    /// [`Strategy`].
    fn try_from(spec: &DamaSpec) -> Result<Link, FluidError> {
        spec.validate()?;
        if spec.fca {
            return Err(FluidError::NotModelled { field: "fca", found: true, allowed: "no FCA" });
        }
        if !spec.rbdc {
            return Err(FluidError::NotModelled { field: "rbdc", found: false, allowed: "RBDC always" });
        }
        let minimum = spec.granularity * f64::from(spec.minimum);
        let others = f64::from(spec.terminals_per_carrier() - 1);
        Ok(Link {
            t_f: spec.multi_frame(),
            t_b: spec.super_frame(),
            t_a: spec.allocation_delay,
            t_p: spec.propagation,
            minimum,
            unit: spec.granularity,
            available: Rate::bps(spec.capacity.as_bps() - others * minimum.max(spec.cra).as_bps()),
            c: spec.cra,
            t_s: spec.vbdc,
            a: spec.release_a,
            b: spec.release_b,
            release: spec.release_of,
        })
    }
}

impl Link {
    /// Whether the model can say something of that flow on this link: a super-frame of at least a millisecond,
    /// and a flow that the link can carry.
    ///
    /// # Errors
    /// The first number that is out of range.
    pub fn check(&self, flow: &Flow) -> Result<(), FluidError> {
        let out = |field, found: String, allowed: String| Err(FluidError::OutOfRange { field, found, allowed });
        if self.t_b < Duration::from_millis(1) {
            return out("super-frame", format_duration(self.t_b), "at least 1 ms".to_owned());
        }
        if flow.packet == Bytes::ZERO {
            return out("packet size", flow.packet.to_string(), "at least 1 B".to_owned());
        }
        if flow.rate == Rate::ZERO || flow.rate > self.available {
            let allowed = format!("above 0, and at most {}: what the others leave of the carrier", self.available);
            return out("rate", flow.rate.to_string(), allowed);
        }
        Ok(())
    }

    /// T_a as time.
    pub fn allocation_delay(&self) -> Duration {
        self.t_b.saturating_mul(self.t_a)
    }

    /// RTT_m = T_f + 2 T_p: half a multi-frame until the slot comes, at either end [qsd Table I].
    pub fn rtt_m(&self) -> Duration {
        self.t_f + 2 * self.t_p
    }

    /// Eq. (3): `T_q,max = T_r/2 + T_a - RTT_m`, in seconds. At or below zero the slots are there before
    /// the response is, and nothing need be held.
    pub fn t_q_max_s(&self) -> f64 {
        self.t_b.as_secs_f64() / 2.0 + self.allocation_delay().as_secs_f64() - self.rtt_m().as_secs_f64()
    }

    /// Eq. (6): `T_q,opt = (2 (T_r + T_a) - 3 RTT_m) / 5`, in seconds; may be negative, as eq. (3).
    pub fn t_q_opt_s(&self) -> f64 {
        (2.0 * (self.t_b + self.allocation_delay()).as_secs_f64() - 3.0 * self.rtt_m().as_secs_f64()) / 5.0
    }
}
