//! From what applications ask for and what a link is like to windows: the five-step procedure [aimd §III-D].
//!
//! | step | paper | here |
//! | --- | --- | --- |
//! | 1 | the application's throughput, D, delay outage, loss; beta | [`Need`], `beta` |
//! | 2 | alpha, TCP-friendly | [`Plan::alpha`], eq. (1) |
//! | 3 | the link's profile, and enough of it | [`Planner::new`]; [`Lack::Throughput`] if it is not |
//! | 4 | W_max and B | [`FlowPlan::rwnd`], [`Plan::buffer`]; eq. (3), (4) |
//! | 5 | the sender is told | [`WindowPlanner`], in the simulator |
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
//!   (3). With memory, and for unequal RTTs (where the largest R is taken), they are approximations.
//! - **With limited tries** what is given up looks like congestion. What the flow has is then at most sqrt(1.5 / g)
//!   packets per RTT at a share g of packets given up [12 of the paper], a bound, not a promise.
//!
//! # Not in the model
//!
//! Losses and queues in the wires: what is promised is promised while the wireless link is the bottleneck. Packets
//! larger than a slot.

mod nearest;
#[cfg(test)]
mod tests;

pub use nearest::{Lack, Nearest, Unmet};

use super::{
    Process, QosError, SharedFlow, Start, largest_split, shared_outage, shared_throughput, slots, split, tail,
};
use super::{full_utilization_buffer, tcp_friendly_alpha};
use fairpace_path::ArqSpec;
use fairpace_sim::{BaseStation, BaseStationSpec, Member};
use fairpace_units::{Bytes, Duration, Instant, Rate};

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
    /// Which part of its packets may have a longer one, above 0 and below 1.
    pub outage: f64,
    /// Which part may be lost on the link or be late, above 0 and below 1; none: what `outage` allows, and what is
    /// given up.
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

/// What one flow is told, and what it can expect.
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
    /// What it delivers while the wireless link is the bottleneck.
    pub throughput: Rate,
    /// Pr{d_q > D}.
    pub outage: f64,
    /// Which part of its packets is given up or late.
    pub loss: f64,
}

/// The outcome of the procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Packets per RTT by which the window grows.
    pub alpha: f64,
    /// What remains of the window after a decrease.
    pub beta: f64,
    /// B: the base station's buffer for these flows, packets: the sum of the windows.
    pub buffer: u32,
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
    /// The sum of the windows is too small to keep the link busy at all times.
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

    /// What the link delivers in the long run if the queue is never empty.
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
        let planned = self.planned(&flows, &windows)?;
        let r = longest(&flows);
        Ok(Plan {
            alpha,
            beta,
            buffer: windows.iter().sum(),
            full_utilization_buffer: full_utilization_buffer(beta, r)?,
            delivered: planned.iter().map(|f| self.per_slot(f.throughput)).sum(),
            flows: planned,
            full_window: self.process.full_window(r),
        })
    }

    /// What windows of `total` packets in all, split by eq. (4), would give the flows of `needs`.
    ///
    /// # Errors
    /// A number that cannot be; a sum that leaves a flow without a packet.
    pub fn with_total(&self, needs: &[Need], total: u32) -> Result<Vec<FlowPlan>, QosError> {
        let flows = self.flows(needs)?;
        let windows = split(&self.process, &flows, total)?.windows;
        self.planned(&flows, &windows)
    }

    /// The needs in slots and shares of 1. What is given up leaves less of the loss for what is late.
    fn flows(&self, needs: &[Need]) -> Result<Vec<SharedFlow>, QosError> {
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
        // What is asked for to the last digit is had.
        let enough =
            |(need, has): (&Need, &f64)| need.throughput.is_none_or(|t| self.per_slot(t) <= has * (1.0 + 1e-9));
        needs.iter().zip(throughputs).all(enough)
    }

    /// The delay outage of each flow, below R too.
    fn outages(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<Vec<f64>, QosError> {
        let total = windows.iter().sum();
        let on_the_way = tail(&self.process, longest(flows) - 1, total, Start::AfterSuccess);
        let outages = shared_outage(&self.process, flows, windows, Start::AfterSuccess)?;
        Ok(outages.iter().map(|outage| (outage / on_the_way).min(1.0)).collect())
    }

    /// Deliveries per slot of each flow, below R too.
    fn throughputs(&self, flows: &[SharedFlow], windows: &[u32]) -> Result<Vec<f64>, QosError> {
        let (r, total) = (longest(flows), windows.iter().sum());
        let sent = |n, below| tail(&self.process, n, below, Start::Stationary);
        let delivered = self.process.throughput() * (sent(r - 1, total) / sent(r, total + 1)).min(1.0);
        let each = shared_throughput(&self.process, flows, windows)?;
        let given_up = self.process.give_up_ratio();
        let sum: f64 = each.iter().sum();
        let friendly = |flow: &SharedFlow| match given_up {
            g if g > 0.0 => (1.5 / g).sqrt() / f64::from(flow.r),
            _ => f64::INFINITY,
        };
        let slowed = |(t, flow): (&f64, &SharedFlow)| (t * (delivered / sum).min(1.0)).min(friendly(flow));
        Ok(each.iter().zip(flows).map(slowed).collect())
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

fn longest(flows: &[SharedFlow]) -> u32 {
    flows.iter().map(|f| f.r).max().unwrap_or(1)
}

/// Step 5, in the simulator: a base station that plans again whenever a flow joins or leaves.
#[derive(Clone, Debug)]
pub struct WindowPlanner {
    /// By user.
    planners: Vec<Planner>,
    max_jitter: Duration,
    outage: f64,
}

impl WindowPlanner {
    /// For all users of the link: every flow's RTT is to be more than `max_jitter` above its least in at most the part
    /// `outage` of its packets.
    ///
    /// # Errors
    /// A link that cannot be analysed, a jitter below one slot, an outage outside (0, 1).
    pub fn new(link: &ArqSpec, max_jitter: Duration, outage: f64) -> Result<WindowPlanner, QosError> {
        slots(link.slot, max_jitter, link.slot)?;
        super::check_bound(outage)?;
        let planners = (0..link.users.len() as u32).map(|user| Planner::new(link, user));
        Ok(WindowPlanner { planners: planners.collect::<Result<_, _>>()?, max_jitter, outage })
    }

    /// A station of this kind for each run.
    pub fn spec(self) -> BaseStationSpec {
        BaseStationSpec::new(move || Box::new(self.clone()))
    }

    /// The largest windows that keep the promise to the flows of one user; one packet each where none does, as a
    /// flow has come and has to be served.
    fn of_user(&self, planner: &Planner, members: &[Member]) -> Vec<u32> {
        let need = |m: &Member| Need {
            // An access link may make it less than a slot only where there is no radio.
            min_rtt: m.min_rtt.max(planner.slot),
            share: m.share,
            throughput: None,
            max_jitter: self.max_jitter,
            outage: self.outage,
            loss: None,
        };
        let needs: Vec<Need> = members.iter().map(need).collect();
        let windows = planner.flows(&needs).and_then(|flows| match planner.largest_sum(&flows)? {
            Some(total) => Ok(split(&planner.process, &flows, total)?.windows),
            None => Ok(vec![1; flows.len()]),
        });
        windows.unwrap_or_else(|_| vec![1; members.len()])
    }
}

impl BaseStation for WindowPlanner {
    fn plan(&mut self, _now: Instant, members: &[Member]) -> Vec<u32> {
        let mut windows = vec![1; members.len()];
        for (user, planner) in (0..).zip(&self.planners) {
            let own: Vec<usize> = (0..members.len()).filter(|&i| members[i].user == user).collect();
            let of_user: Vec<Member> = own.iter().map(|&i| members[i]).collect();
            if of_user.is_empty() {
                continue;
            }
            for (i, window) in own.into_iter().zip(self.of_user(planner, &of_user)) {
                windows[i] = window;
            }
        }
        windows
    }
}
