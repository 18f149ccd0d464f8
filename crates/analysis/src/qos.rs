//! Windows that keep a delay promise: the analysis of AIMD flows over a slotted wireless link.
//!
//! Source: `aimd` (Cai, Shen, Mark, Pan), §III. Exact by recursion, nothing is sampled, nothing is simulated.
//! The derivations in the paper's letters, and what is an approximation: `docs/qos.md`.
//!
//! ```text
//!            W packets go round: in the queue, or for R - 1 slots on their way
//!      .--------------------------------------------------------------.
//!      |                                                              |
//!      '-->  queue of the base station  --[slot: success or not]------'
//!            FIFO, never empty from W = R on        T_n: successes in n slots
//! ```
//!
//! ```
//! use fairpace_analysis::qos::{Process, Start, largest_window, outage};
//! use fairpace_path::{ArqScheme, Channel};
//!
//! let channel = Channel::memoryless(0.1)?;
//! let process = Process::new(&channel, ArqScheme::Persistent, 0)?;
//! // At most 1 % of the packets more than 10 slots above an RTT of 17.
//! let w_max = largest_window(&process, 17, 10, 0.01, Start::AfterSuccess)?;
//! assert_eq!(w_max, 20);
//! assert!(outage(&process, 17, 10, w_max, Start::AfterSuccess)? < 0.004);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Symbols
//!
//! | paper | here | unit | set |
//! | --- | --- | --- | --- |
//! | R, R_i | `r` | slots | minimal RTT, the packet's own slot included: [`slots`] |
//! | D | `d` | slots | tolerable delay jitter: [`slots`] |
//! | d_q | `delay_jitter` | slots | RTT - R |
//! | W, rwnd | `window` | packets | parameter |
//! | B | `buffer` | packets | parameter, the packet in the slot included |
//! | T_n(x) | [`Process::successes`] | – | exact |
//! | E\[T_n\] | [`Process::mean_successes`] | packets | exact |
//! | Pr{d_q > D \| W} | [`outage`] | – | eq. (3) |
//! | W_max | [`largest_window`] | packets | eq. (3) |
//! | r(W) | [`loss_in_window`] | – | §III-C |
//! | p_i | `share` | – | share of the link's deliveries |
//! | alpha, beta | [`tcp_friendly_alpha`] | packets per RTT; what remains after a decrease | eq. (1) |
//! | eta_I | [`utilization`] | – | eq. (2) |
//!
//! # Readings
//!
//! - **T_n(x) is the probability of exactly x successes in n slots** of a queue that is never empty.
//! - **From where the slots are counted**: [`Start`]. A packet's RTT runs from a success to the W-th success after
//!   it, so that eq. (3) is exact for [`Start::AfterSuccess`]; the paper's is [`Start::Stationary`].
//! - **E\[T_(R-1)\] in eq. (4) is stationary**: by Little's law it is what a flow has on its way on average.
//! - **Eq. (2) is of stage I only**; the whole cycle stands beside it.
//! - **r(W)** is the probability that a packet of the window is lost or late. With B = rwnd and unlimited tries it
//!   is the delay outage, as the paper has it.
//! - With limited tries what moves the queue is each packet that leaves it, delivered or not: eq. (3) counts those.
//!
//! # Not in the model
//!
//! Windows below R ([`Process::full_window`]): the queue is empty at times, slots are wasted, and eq. (3), which
//! counts them as used, promises too much. Jitter of the wires before the link. The sender's reaction to losses.

mod counts;
mod error;
mod matrix;
pub mod plan;
mod process;
mod rest;
mod shared;
mod utilization;
mod walk;

#[cfg(test)]
mod tests;

pub use error::QosError;
pub use process::{Process, Start};
pub use shared::{SharedFlow, Split, largest_split, shared_outage, shared_throughput, split};
pub use utilization::{Utilization, full_utilization_buffer, tcp_friendly_alpha, tcp_friendly_beta, utilization};

use fairpace_units::{Duration, format_duration};
use walk::{Rule, Walk};

/// R and D in slots: the minimal RTT, the packet's own slot included, rounded up to where the slots let it be, and
/// what the RTT may be above it so that it stays within `min_rtt + jitter`.
///
/// # Errors
/// A slot or RTT of zero; a jitter bound below one slot.
pub fn slots(min_rtt: Duration, jitter: Duration, slot: Duration) -> Result<(u32, u32), QosError> {
    let shown = |d: Duration| format_duration(d);
    let out = |field, found, allowed: &str, nearest| {
        Err(QosError::OutOfRange { field, found: shown(found), allowed: allowed.to_owned(), nearest: shown(nearest) })
    };
    if slot == Duration::ZERO {
        return out("slot", slot, "above 0", Duration::from_nanos(1));
    }
    if min_rtt < slot {
        return out("minimal RTT", min_rtt, &format!("at least one slot, {}", shown(slot)), slot);
    }
    if jitter < slot {
        return out("tolerable delay jitter", jitter, &format!("at least one slot, {}", shown(slot)), slot);
    }
    let most = slot.saturating_mul(MOST_SLOTS);
    for (field, time) in [("minimal RTT", min_rtt), ("tolerable delay jitter", jitter)] {
        if time > most {
            return out(field, time, &format!("at most {}", shown(most)), most);
        }
    }
    // All of them are at most MOST_SLOTS.
    let r = min_rtt.as_nanos().div_ceil(slot.as_nanos()) as u32;
    let last = ((min_rtt + jitter).as_nanos() / slot.as_nanos()) as u32;
    if last <= r {
        let nearest = slot.saturating_mul(r + 1) - min_rtt;
        return out("tolerable delay jitter", jitter, "one slot more than the RTT has in whole slots", nearest);
    }
    Ok((r, last - r))
}

/// The most slots, and packets, of any question: what the recursion does in seconds.
const MOST_SLOTS: u32 = 10_000;

/// Eq. (3): Pr{d_q > D | W} `= sum over x < W of T_(R+D)(x)`, the probability that a packet's RTT is more than `d`
/// slots above `r`. For `window` packets, whether of one flow or of several with the same R.
///
/// # Errors
/// A number that is zero or too large.
pub fn outage(process: &Process, r: u32, d: u32, window: u32, start: Start) -> Result<f64, QosError> {
    check(r, Some(d), Some(window))?;
    Ok(tail(process, r + d, window, start))
}

/// Eq. (3) for each jitter: element d is Pr{d_q > d | W}, d = 0 ..= `d_max`.
///
/// # Errors
/// As [`outage`].
pub fn outage_curve(process: &Process, r: u32, d_max: u32, window: u32, start: Start) -> Result<Vec<f64>, QosError> {
    check(r, None, Some(window))?;
    at_most("jitter in slots", d_max, MOST_SLOTS)?;
    let mut curve = vec![0.0; d_max as usize + 1];
    for seed in process.seeds(start) {
        let mut walk = Walk::new(process, &seed, (r + d_max) as usize, window as usize);
        for _ in 0..r {
            walk.step(Rule::DEPARTURES);
        }
        curve[0] += walk.total();
        for c in &mut curve[1..] {
            walk.step(Rule::DEPARTURES);
            *c += walk.total();
        }
    }
    Ok(curve)
}

/// W_max: the largest window whose delay outage is at most `bound`. Monotone, as eq. (3) is.
///
/// # Errors
/// As [`outage`]; a bound outside (0, 1); [`QosError::OutageAboveBound`] where a single packet is late more often.
pub fn largest_window(process: &Process, r: u32, d: u32, bound: f64, start: Start) -> Result<u32, QosError> {
    check(r, Some(d), None)?;
    check_bound(bound)?;
    let counts = process.departures(r + d, start);
    most_below(&counts, bound).ok_or(QosError::OutageAboveBound { bound, window: 1, outage: counts[0] })
}

/// The smallest D in slots, at least 1, at which `window` has a delay outage of at most `bound`.
///
/// # Errors
/// As [`largest_window`]; no jitter of up to a thousand times R + W is enough.
pub fn smallest_jitter(process: &Process, r: u32, window: u32, bound: f64, start: Start) -> Result<u32, QosError> {
    check(r, None, Some(window))?;
    check_bound(bound)?;
    let most = (r + window).saturating_mul(1_000).min(MOST_SLOTS);
    let mut d_max = (r + window).min(most);
    loop {
        let curve = outage_curve(process, r, d_max, window, start)?;
        if let Some(d) = (1..curve.len()).find(|&d| curve[d] <= bound) {
            return Ok(d as u32);
        }
        if d_max >= most {
            return Err(QosError::OutOfRange {
                field: "delay outage",
                found: bound.to_string(),
                allowed: format!("at least {:.3e}, even for a jitter of {most} slots", curve[curve.len() - 1]),
                nearest: format!("{:.3e}", curve[curve.len() - 1]),
            });
        }
        d_max = d_max.saturating_mul(4).min(most);
    }
}

/// The fates of a window's packets, as shares of all: r(W) and its parts. They exclude each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLoss {
    /// Refused by the buffer.
    pub overflow: f64,
    /// Still in the queue when R + D slots have gone by.
    pub late: f64,
    /// Given up after the last try, before that.
    pub given_up: f64,
}

impl WindowLoss {
    /// r(W): all that does not arrive in time.
    pub fn total(&self) -> f64 {
        self.overflow + self.late + self.given_up
    }
}

/// r(W) [aimd §III-C]: the probability that a packet of a full window does not arrive in time. `buffer` counts the
/// packet in the slot; where it is at least `window` nothing overflows, and with unlimited tries r(W) is eq. (3).
///
/// Of the first losses: what the sender does about them is not in it. With limited tries the window is taken as full
/// all the same.
///
/// # Errors
/// As [`outage`]; a buffer of zero.
pub fn loss_in_window(
    process: &Process,
    r: u32,
    d: u32,
    window: u32,
    buffer: u32,
    start: Start,
) -> Result<WindowLoss, QosError> {
    check(r, Some(d), Some(window))?;
    at_least("buffer", buffer, 1)?;
    let mut loss = WindowLoss { overflow: 0.0, late: 0.0, given_up: 0.0 };
    let last = window as usize - 1;
    for seed in process.seeds(start) {
        let mut walk = Walk::new(process, &seed, (r + d) as usize, window as usize);
        // The packet in question is the window's W-th to leave.
        let mut slot = |walk: &mut Walk| {
            loss.given_up += walk.give_up_at(last);
            walk.step(Rule::DEPARTURES);
        };
        for _ in 1..r {
            slot(&mut walk);
        }
        // The packet arrives with window - x packets in the queue, itself among them, x of them having left.
        loss.overflow += walk.drop_below(window.saturating_sub(buffer) as usize);
        for _ in 0..=d {
            slot(&mut walk);
        }
        loss.late += walk.total();
    }
    Ok(loss)
}

/// Whether `packets_per_slot` can be had of the link, in the long run.
///
/// # Errors
/// [`QosError::NeedAboveCapacity`] with what can be had; a need that is not a positive number.
pub fn check_need(process: &Process, packets_per_slot: f64) -> Result<(), QosError> {
    let possible = process.throughput();
    if !(packets_per_slot > 0.0 && packets_per_slot.is_finite()) {
        return Err(QosError::OutOfRange {
            field: "throughput in packets per slot",
            found: packets_per_slot.to_string(),
            allowed: format!("above 0, and at most {possible:.4}"),
            nearest: format!("{:.4}", if packets_per_slot > 0.0 { possible } else { f64::MIN_POSITIVE }),
        });
    }
    // A need that equals the maximum is met despite rounding.
    if packets_per_slot > possible * (1.0 + 1e-9) {
        return Err(QosError::NeedAboveCapacity { needed: packets_per_slot, possible });
    }
    Ok(())
}

/// The sum of T_n(x) over x < `window`.
fn tail(process: &Process, n: u32, window: u32, start: Start) -> f64 {
    let of = |seed| {
        let mut walk = Walk::new(process, &seed, n as usize, window as usize);
        for _ in 0..n {
            walk.step(Rule::DEPARTURES);
        }
        walk.total()
    };
    process.seeds(start).into_iter().map(of).sum()
}

/// The most packets whose tail of `counts` is at most `bound`; None if that of one is above.
fn most_below(counts: &[f64], bound: f64) -> Option<u32> {
    let mut sum = 0.0;
    let fits = counts.iter().take_while(|c| {
        sum += **c;
        sum <= bound
    });
    Some(fits.count() as u32).filter(|w| *w > 0)
}

fn check(r: u32, d: Option<u32>, window: Option<u32>) -> Result<(), QosError> {
    at_least("minimal RTT in slots", r, 1)?;
    at_most("minimal RTT in slots", r, MOST_SLOTS)?;
    if let Some(d) = d {
        at_least("tolerable delay jitter in slots", d, 1)?;
        at_most("tolerable delay jitter in slots", d, MOST_SLOTS)?;
    }
    if let Some(window) = window {
        at_least("rwnd", window, 1)?;
        at_most("rwnd", window, MOST_SLOTS)?;
    }
    Ok(())
}

/// Refuses a delay outage that cannot be promised.
///
/// # Errors
/// [`QosError::OutOfRange`]: not above 0 and below 1.
pub fn check_bound(bound: f64) -> Result<(), QosError> {
    in_open_interval("delay outage", bound)
}

/// (0, 1), the nearest possible value to the resolution that is worth talking of.
fn in_open_interval(field: &'static str, found: f64) -> Result<(), QosError> {
    if found > 0.0 && found < 1.0 {
        return Ok(());
    }
    let nearest = if found >= 1.0 { "0.999" } else { "0.001" };
    Err(QosError::OutOfRange {
        field,
        found: found.to_string(),
        allowed: "above 0 and below 1".to_owned(),
        nearest: nearest.to_owned(),
    })
}

fn at_least(field: &'static str, found: u32, least: u32) -> Result<(), QosError> {
    if found >= least {
        return Ok(());
    }
    Err(QosError::OutOfRange {
        field,
        found: found.to_string(),
        allowed: format!("at least {least}"),
        nearest: least.to_string(),
    })
}

fn at_most(field: &'static str, found: u32, most: u32) -> Result<(), QosError> {
    if found <= most {
        return Ok(());
    }
    Err(QosError::OutOfRange {
        field,
        found: found.to_string(),
        allowed: format!("at most {most}"),
        nearest: most.to_string(),
    })
}
