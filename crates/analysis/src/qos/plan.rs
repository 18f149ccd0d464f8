//! From what applications ask for and what a link is like to windows: the five-step procedure [aimd §III-D].
//!
//! | step | paper | here |
//! | --- | --- | --- |
//! | 1 | the application's throughput, D, delay outage, loss; beta | [`Need`], `beta` |
//! | 2 | alpha, TCP-friendly | [`Plan::alpha`], eq. (1) |
//! | 3 | the link's profile, and enough of it | [`Planner::new`]; [`Lack::Throughput`] if it is not |
//! | 4 | W_max and B | [`FlowPlan::rwnd`], [`Plan::buffer`]; eq. (3), (4) |
//! | 5 | the sender is told | `fairpace_scenario::WindowPlanner`, in the simulator |
//!
//! # Readings
//!
//! - **Counted from a success** ([`Start::AfterSuccess`]): what a packet meets, so that the promise holds on a channel
//!   with memory too.
//! - **The largest windows** that keep all promises: they absorb most of the wires' jitter [aimd §III-C]. If rounding
//!   to whole packets leaves a flow short of its throughput, a smaller sum is tried that rounds better.
//! - **Loss** is what is given up after the last try or is late [aimd §III-C]; B = the sum of the windows, so that
//!   nothing overflows.
//! - **Windows below R** are possible here. While the queue is empty slots are wasted, and what is on its way is fewer
//!   than W: without memory the successes of the last R - 1 slots are binomial under exactly that condition, so that
//!
//! ```text
//! Pr{d_q > D | W} = Pr{S_(R+D) < W} / Pr{S_(R-1) < W}
//! throughput(W)   = q Pr{S_(R-1) < W} / Pr{S_R <= W}
//! ```
//!
//!   with S_n successes in n slots of a queue that is never empty and q per slot. From W = R on both are those of eq.
//!   (3). With memory, and for unequal RTTs, the first is an approximation, and the throughput is W / (R + mean jitter)
//!   by Little's law (for unequal RTTs the second, with what of S_(R-1) is still on its way).
//! - **With limited tries** a packet given up looks like congestion. The flow then has at most sqrt(1.5 / g) packets
//!   per RTT at a share g of packets given up [12 of the paper], a bound, not a promise.
//!
//! # Not in the model
//!
//! Losses and queues in the wires: what is promised is promised while the wireless link is the bottleneck. Packets
//! larger than a slot.

mod link;
mod nearest;
#[cfg(test)]
mod tests;

pub use link::PlannedLink;
pub use nearest::{Lack, Nearest, Unmet, percent};

use super::{
    Process, QosError, SharedFlow, Start, Utilization, full_utilization_buffer, largest_split, outage_curve,
    shared_outage,
};
use super::{shared_throughput, slots, split, tail, tcp_friendly_alpha, utilization};
use fairpace_path::ArqSpec;
use fairpace_units::{Bytes, Duration, Rate};

/// Step 1: what the application of one flow asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Its minimal RTT: everything but waiting, the packet's own slot included; at least one slot.
    pub min_rtt: Duration,
    /// Its part of what the link delivers, relative to those of the others; above 0.
    pub share: f64,
    /// The least throughput; none: what its share gives.
    pub throughput: Option<Rate>,
    /// D: how much longer than `min_rtt` an RTT may take; at least one slot.
    pub max_jitter: Duration,
    /// The part of the flow's packets that may take longer, above 0 and below 1.
    pub outage: f64,
    /// The part of the packets that may be lost on the link or be late, above 0 and below 1; none: the part that
    /// `outage` allows and the part given up.
    pub loss: Option<f64>,
}

impl Need {
    /// A voice of the paper [aimd §IV]: RTT 85 ms, jitter above 50 ms for at most 1 % of the packets.
    pub fn paper() -> Need {
        Need {
            min_rtt: Duration::from_millis(85),
            share: 1.0,
            throughput: None,
            max_jitter: Duration::from_millis(50),
            outage: 0.01,
            loss: None,
        }
    }
}

/// The settings that one flow is given, and the service that it can expect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPlan {
    /// R in slots.
    pub r: u32,
    /// D in slots.
    pub d: u32,
    /// Its part of what the link delivers; those of all flows add up to 1.
    pub share: f64,
    /// Its window, packets.
    pub rwnd: u32,
    /// The window that eq. (4) has for it, before rounding.
    pub exact_rwnd: f64,
    /// The flow's throughput while the wireless link is the bottleneck.
    pub throughput: Rate,
    /// Pr{d_q > D}.
    pub outage: f64,
    /// The part of the flow's packets that is given up or late.
    pub loss: f64,
}

/// The outcome of the procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Packets per RTT by which the window grows.
    pub alpha: f64,
    /// The part of the window that remains after a decrease.
    pub beta: f64,
    /// B: the base station's buffer for these flows, packets: the sum of the windows.
    pub buffer: u32,
    /// The utilization by a flow of the largest R of a link of fixed capacity with that buffer, if no rwnd bound it:
    /// eq. (2), and the whole cycle.
    pub utilization: Utilization,
    /// From which buffer on a link of fixed capacity stays busy after a decrease, whatever rwnd is: (1 - beta) R / beta
    /// packets of the largest R.
    pub full_utilization_buffer: f64,
    /// One per need, in their order.
    pub flows: Vec<FlowPlan>,
    /// Packets per slot that the link delivers to them together.
    pub delivered: f64,
    /// The sum of windows from which on the queue is never empty, and all that the link can deliver is used.
    pub full_window: u32,
}

impl Plan {
    /// The sum of the windows is too small for the queue never to be empty.
    pub fn starves(&self) -> bool {
        self.buffer < self.full_window
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Something that cannot be: it, what is allowed, and the nearest of that.
    #[error(transparent)]
    Qos(#[from] QosError),
    /// Each need could be, but not all of them on this link; with the nearest that can.
    #[error(transparent)]
    Unmet(#[from] Box<Unmet>),
}

/// Step 3: one user of a wireless link, ready to plan for the flows in its queue.
#[derive(Clone, Debug)]
pub struct Planner {
    process: Process,
    slot: Duration,
    payload: Bytes,
}

impl Planner {
    /// User `user` of the link, from zero. On a work-conserving link it is planned with what it has while all others
    /// send.
    ///
    /// # Errors
    /// A link or a user that cannot be analysed.
    pub fn new(link: &ArqSpec, user: u32) -> Result<Planner, QosError> {
        let process = Process::of_user(link, user as usize)?;
        Ok(Planner { process, slot: link.slot, payload: link.slot_size })
    }

    /// When which slot delivers something.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The link's throughput in the long run if the queue is never empty.
    pub fn capacity(&self) -> Rate {
        self.rate(self.process.throughput())
    }

    /// Steps 2 to 4, for flows that share this user's queue.
    ///
    /// # Errors
    /// [`PlanError::Qos`]: a number that cannot be. [`PlanError::Unmet`]: needs that this link cannot meet, and the
    /// nearest that it can.
    pub fn plan(&self, beta: f64, needs: &[Need]) -> Result<Plan, PlanError> {
        let alpha = tcp_friendly_alpha(beta)?;
        let flows = self.flows(needs)?;
        self.enough(needs, &flows)?;
        let windows = self.windows(needs, &flows)?;
        Ok(self.of(alpha, beta, &flows, &windows)?)
    }

    /// The service under given windows, one per need, whether or not the needs are met.
    ///
    /// # Errors
    /// A number that cannot be; not as many windows as needs; a sum that leaves a flow without a packet by eq. (4).
    pub fn given(&self, beta: f64, needs: &[Need], windows: &[u32]) -> Result<Plan, QosError> {
        let alpha = tcp_friendly_alpha(beta)?;
        windows.iter().try_for_each(|w| super::at_least("rwnd", *w, 1))?;
        self.of(alpha, beta, &self.flows(needs)?, windows)
    }

    /// The largest windows that keep the delay promises alone, one per need; one packet each where none does, as a flow
    /// that has come has to be served.
    ///
    /// # Errors
    /// A number that cannot be.
    pub fn largest(&self, needs: &[Need]) -> Result<Vec<u32>, QosError> {
        let flows = self.flows(needs)?;
        match self.largest_sum(&flows)? {
            Some(total) => Ok(split(&self.process, &flows, total)?.windows),
            None => Ok(vec![1; flows.len()]),
        }
    }

    fn of(&self, alpha: f64, beta: f64, flows: &[SharedFlow], windows: &[u32]) -> Result<Plan, QosError> {
        let planned = self.planned(flows, windows)?;
        let r = longest(flows);
        let buffer = windows.iter().sum();
        Ok(Plan {
            alpha,
            beta,
            buffer,
            utilization: utilization(beta, r, buffer, None)?,
            full_utilization_buffer: full_utilization_buffer(beta, r)?,
            delivered: planned.iter().map(|f| self.per_slot(f.throughput)).sum(),
            flows: planned,
            full_window: self.process.full_window(r),
        })
    }

    /// The service for the flows of `needs` under windows of `total` packets in all, split by eq. (4).
    ///
    /// # Errors
    /// A number that cannot be; a sum that leaves a flow without a packet.
    pub fn with_total(&self, needs: &[Need], total: u32) -> Result<Vec<FlowPlan>, QosError> {
        let flows = self.flows(needs)?;
        let windows = split(&self.process, &flows, total)?.windows;
        self.planned(&flows, &windows)
    }

    /// The needs in slots and shares of 1. Packets given up leave a smaller share of the tolerated loss for late
    /// ones.
    fn flows(&self, needs: &[Need]) -> Result<Vec<SharedFlow>, QosError> {
        // As they were given: of their parts of the sum nobody can tell which was wrong.
        needs.iter().try_for_each(|n| super::shared::check_share(n.share))?;
        let sum: f64 = needs.iter().map(|n| n.share).sum();
        let given_up = self.process.give_up_ratio();
        let flow = |need: &Need| {
            let (r, d) = slots(need.min_rtt, need.max_jitter, self.slot)?;
            for (field, value) in [("delay outage", Some(need.outage)), ("loss", need.loss)] {
                value.map_or(Ok(()), |v| super::in_open_interval(field, v))?;
            }
            let late = need.loss.map_or(1.0, |loss| (loss - given_up) / (1.0 - given_up));
            Ok(SharedFlow { r, d, bound: need.outage.min(late), share: need.share / sum })
        };
        needs.iter().map(flow).collect()
    }

    /// The windows: the largest sum that keeps the delay promises and gives each flow what it needs.
    fn windows(&self, needs: &[Need], flows: &[SharedFlow]) -> Result<Vec<u32>, PlanError> {
        let most = self.largest_sum(flows)?;
        let Some(most) = most else { return Err(self.too_late(needs, flows)?.into()) };
        let needed: f64 = needs.iter().filter_map(|n| n.throughput).map(|t| self.per_slot(t)).sum();
        for total in (1..=most).rev() {
            // Below the smallest sum that eq. (4) can split.
            let Ok(windows) = split(&self.process, flows, total).map(|s| s.windows) else { break };
            let throughputs = self.throughputs(flows, &windows)?;
            if self.fast_enough(needs, &throughputs) && self.in_time(flows, &windows)? {
                return Ok(windows);
            }
            // With smaller windows they have even less together.
            if throughputs.iter().sum::<f64>() * (1.0 + 1e-9) < needed {
                break;
            }
        }
        Err(self.too_slow(needs, flows, most)?.into())
    }

    /// The largest sum of windows with which all delays are as promised; none if no sum is small enough.
    fn largest_sum(&self, flows: &[SharedFlow]) -> Result<Option<u32>, QosError> {
        let most = match largest_split(&self.process, flows, Start::AfterSuccess) {
            Ok((split, _)) => split.windows.iter().sum::<u32>(),
            Err(QosError::OutageAboveBound { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        for total in (1..=most).rev() {
            match split(&self.process, flows, total) {
                Ok(split) if self.in_time(flows, &split.windows)? => return Ok(Some(total)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(None)
    }

    fn in_time(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<bool, QosError> {
        Ok(self.outages(flows, windows)?.iter().zip(flows).all(|(outage, flow)| *outage <= flow.bound))
    }

    fn fast_enough(&self, needs: &[Need], throughputs: &[f64]) -> bool {
        // A need that equals the maximum is met despite rounding.
        let enough =
            |(need, has): (&Need, &f64)| need.throughput.is_none_or(|t| self.per_slot(t) <= has * (1.0 + 1e-9));
        needs.iter().zip(throughputs).all(enough)
    }

    /// The delay outage of each flow, below R too.
    fn outages(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<Vec<f64>, QosError> {
        let queued = self.queued(flows, windows, Start::AfterSuccess)?;
        let late = shared_outage(&self.process, flows, windows, Start::AfterSuccess)?;
        let outage = |((late, queued), flow): ((&f64, &f64), &SharedFlow)| match *queued {
            queued if queued < least(flows) => self.sparse(flows, windows).outage(&self.process, flow.d),
            queued => (late / queued).min(1.0),
        };
        Ok(late.iter().zip(&queued).zip(flows).map(outage).collect())
    }

    /// Pr{S_(R-1) < W} as each flow sees it: of the windows not all is on its way, if the queue were never empty.
    fn queued(&self, flows: &[SharedFlow], windows: &[u32], start: Start) -> Result<Vec<f64>, QosError> {
        if flows.iter().any(|f| f.r < 3) {
            // So short a way holds no more than two.
            return Ok(vec![1.0; flows.len()]);
        }
        // The packets that leave in R - 1 slots are those that eq. (3) counts for R - 2 and D = 1.
        let way: Vec<SharedFlow> = flows.iter().map(|f| SharedFlow { r: f.r - 2, d: 1, ..*f }).collect();
        shared_outage(&self.process, &way, windows, start)
    }

    /// Deliveries per slot of each flow, below R too.
    fn throughputs(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<Vec<f64>, QosError> {
        let each = shared_throughput(&self.process, flows, windows)?;
        let sum: f64 = each.iter().sum();
        let delivered = self.delivered(flows, windows)?;
        let given_up = self.process.give_up_ratio();
        let friendly = |flow: &SharedFlow| match given_up {
            g if g > 0.0 => (1.5 / g).sqrt() / f64::from(flow.r),
            _ => f64::INFINITY,
        };
        let slowed = |(t, flow): (&f64, &SharedFlow)| (t * (delivered / sum).min(1.0)).min(friendly(flow));
        Ok(each.iter().zip(flows).map(slowed).collect())
    }

    /// Deliveries per slot of all flows together.
    fn delivered(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<f64, QosError> {
        let (process, r, total) = (&self.process, longest(flows), windows.iter().sum::<u32>());
        if total >= process.full_window(r) {
            return Ok(process.throughput());
        }
        let delivered = process.throughput() / process.departure_rate();
        if flows.iter().any(|f| f.r != r) {
            // The queue is empty where all is on its way and the last slot failed.
            let q = process.departure_rate();
            let mut one_more = windows.to_vec();
            one_more[0] += 1;
            let mean = |values: Vec<f64>| -> f64 { values.iter().zip(flows).map(|(v, f)| v * f.share).sum() };
            let queued = mean(self.queued(flows, windows, Start::Stationary)?);
            let none = (mean(self.queued(flows, &one_more, Start::Stationary)?) - queued).max(0.0);
            if queued >= least(flows) {
                return Ok(delivered * q * queued / (queued + (1.0 - q) * none));
            }
            return Ok(delivered * self.sparse(flows, windows).throughput);
        }
        let queued = tail(process, r - 1, total, Start::AfterSuccess);
        if queued < least(flows) {
            return Ok(delivered * self.sparse(flows, windows).throughput);
        }
        // Little's law: W packets, each for an RTT of R and the mean jitter.
        let curve = outage_curve(process, r, 8 * (r + total), total, Start::AfterSuccess)?;
        let jitter: f64 = curve.iter().map(|late| late / queued).sum();
        Ok(delivered * (f64::from(total) / (f64::from(r) + jitter)).min(process.departure_rate()))
    }

    /// Windows far below R, whose condition is too rare to be calculated with.
    fn sparse(&self, flows: &[SharedFlow], windows: &[u32]) -> Sparse {
        let q = self.process.departure_rate();
        let r: f64 = flows.iter().map(|f| f.share * f64::from(f.r)).sum();
        let window: f64 = windows.iter().map(|w| f64::from(*w)).sum();
        // Of a binomial distribution far below its mean, one success fewer is so much rarer.
        let ratio = (window * (1.0 - q) / ((r - window).max(1.0) * q)).min(1.0);
        let wait = 1.0 / ((1.0 - ratio).max(f64::MIN_POSITIVE) * q);
        Sparse { ratio, throughput: (window / (r - 1.0 + wait)).min(q) }
    }

    fn planned(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<Vec<FlowPlan>, QosError> {
        let total = windows.iter().sum();
        let exact = split(&self.process, flows, total)?.exact;
        let outages = self.outages(flows, windows)?;
        let throughputs = self.throughputs(flows, windows)?;
        let given_up = self.process.give_up_ratio();
        let plan = |i: usize| FlowPlan {
            r: flows[i].r,
            d: flows[i].d,
            share: flows[i].share,
            rwnd: windows[i],
            exact_rwnd: exact[i],
            throughput: self.rate(throughputs[i]),
            outage: outages[i],
            loss: outages[i] + (1.0 - outages[i]) * given_up,
        };
        Ok((0..flows.len()).map(plan).collect())
    }

    fn rate(&self, packets_per_slot: f64) -> Rate {
        Rate::bps(packets_per_slot * self.payload.as_f64() * 8.0 / self.slot.as_secs_f64())
    }

    fn per_slot(&self, rate: Rate) -> f64 {
        rate.as_packets_per_second(self.payload) * self.slot.as_secs_f64()
    }
}

/// Below this probability a condition is not calculated with: the recursion drops what is much less; and for unequal
/// RTTs, whose packets it takes as mixed as a queue that is never empty would, it holds no longer.
fn least(flows: &[SharedFlow]) -> f64 {
    if flows.iter().all(|f| f.r == flows[0].r) { 1e-25 } else { 0.1 }
}

/// A queue that is mostly empty: it has k packets, a new one among them, with (1 - ratio) ratio^(k - 1).
struct Sparse {
    ratio: f64,
    /// Departures per slot.
    throughput: f64,
}

impl Sparse {
    /// The new one is still there after `d` + 1 slots.
    fn outage(&self, process: &Process, d: u32) -> f64 {
        let counts = process.departures(d + 1, Start::AfterSuccess);
        // ratio^x is the probability of more than x packets.
        let more = |(x, p): (usize, &f64)| p * self.ratio.powi(i32::try_from(x).unwrap_or(i32::MAX));
        counts.iter().enumerate().map(more).sum::<f64>().min(1.0)
    }
}

fn longest(flows: &[SharedFlow]) -> u32 {
    flows.iter().map(|f| f.r).max().unwrap_or(1)
}
