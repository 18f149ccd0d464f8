//! Several AIMD flows in one FIFO of the link: windows by eq. (4), and the delay outage of each.
//!
//! Flows are numbered as they are given, in any order of their RTTs. A packet counts when it leaves the queue, as in
//! eq. (3).

use super::walk::{Rule, Walk};
use super::{Process, QosError, Start, check, check_bound, most_below};
use std::cmp::Reverse;

/// The distance to a whole number within which a number counts as whole.
const ROUNDING: f64 = 1e-9;

/// One of the flows that share a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedFlow {
    /// R_i: minimal RTT, slots.
    pub r: u32,
    /// D_i: tolerable delay jitter, slots.
    pub d: u32,
    /// The delay outage that it tolerates.
    pub bound: f64,
    /// p_i: wanted share of what the link delivers. Relative: shares need not add up to 1.
    pub share: f64,
}

/// Windows for flows that share a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// rwnd_i that satisfy eq. (4), as real numbers; they add up to the total.
    pub exact: Vec<f64>,
    /// rwnd_i in whole packets; they add up to the total.
    pub windows: Vec<u32>,
    /// By how many packets the whole windows miss eq. (4): the most over all pairs of flows.
    pub violation: f64,
    /// Each flow's share under the whole windows, in deliveries per slot ([`shared_throughput`]).
    pub throughput: Vec<f64>,
}

/// Windows of `total` packets in all by eq. (4). With p_i the shares, adding up to 1,
///
/// ```text
/// rwnd_i = p_i (Q + E[T_(R_i - 1)]),   Q = total - sum over j of p_j E[T_(R_j - 1)]
/// ```
///
/// Q is the mean queue: by Little's law, with the same mean wait for all, flow i has p_i of it, and the other term
/// on its way. Whole numbers by the largest remainder, the lower number first among equals.
///
/// # Errors
/// No flow; a share that is not positive; a total that leaves a flow without a packet.
pub fn split(process: &Process, flows: &[SharedFlow], total: u32) -> Result<Split, QosError> {
    let shares = shares(flows)?;
    let on_the_way: Vec<f64> = flows.iter().map(|f| mean_on_the_way(process, f.r)).collect();
    let mean = |values: &[f64]| -> f64 { shares.iter().zip(values).map(|(p, e)| p * e).sum() };
    let queue = f64::from(total) - mean(&on_the_way);
    let exact: Vec<f64> = shares.iter().zip(&on_the_way).map(|(p, e)| p * (queue + e)).collect();
    if exact.iter().any(|w| *w < 1.0 - ROUNDING) {
        let least = smallest_total(&shares, &on_the_way, mean(&on_the_way));
        return Err(QosError::OutOfRange {
            field: "sum of the windows",
            found: total.to_string(),
            allowed: format!("at least {least}, so that eq. (4) leaves each flow a packet"),
            nearest: least.to_string(),
        });
    }
    let mut windows: Vec<u32> = exact.iter().map(|w| (w + ROUNDING) as u32).collect();
    let rest: Vec<f64> = exact.iter().zip(&windows).map(|(e, w)| e - f64::from(*w)).collect();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    // Stable: of equal remainders the lower number is first.
    order.sort_by_key(|&i| Reverse((rest[i] / ROUNDING) as i64));
    let missing = total.saturating_sub(windows.iter().sum());
    for &i in order.iter().take(missing as usize) {
        windows[i] += 1;
    }
    let mut violation: f64 = 0.0;
    for i in 0..flows.len() {
        for j in 0..flows.len() {
            let right = shares[i] / shares[j] * f64::from(windows[j]) + shares[i] * (on_the_way[i] - on_the_way[j]);
            violation = violation.max((f64::from(windows[i]) - right).abs());
        }
    }
    let throughput = shared_throughput(process, flows, &windows)?;
    Ok(Split { exact, windows, violation, throughput })
}

/// The windows of the largest sum that, split by eq. (4), keep every flow's delay outage within its bound; and
/// those outages.
///
/// # Errors
/// As [`split`]; a bound outside (0, 1); [`QosError::OutageAboveBound`] where even the smallest windows are late
/// too often.
pub fn largest_split(process: &Process, flows: &[SharedFlow], start: Start) -> Result<(Split, Vec<f64>), QosError> {
    let shares = shares(flows)?;
    let on_the_way: Vec<f64> = flows.iter().map(|f| mean_on_the_way(process, f.r)).collect();
    let on_average = shares.iter().zip(&on_the_way).map(|(p, e)| p * e).sum();
    let least = smallest_total(&shares, &on_the_way, on_average);
    // The shares that are wanted do not depend on the sum: one distribution per flow says which sum is possible.
    let mut total = u32::MAX;
    for (i, flow) in flows.iter().enumerate() {
        check_bound(flow.bound)?;
        total = total.min(most_below(&counts(process, flows, &shares, i, start), flow.bound).unwrap_or(0));
    }
    // Whole windows give slightly other shares.
    let mut total = total.max(least);
    loop {
        let windows = split(process, flows, total)?;
        let outages = shared_outage(process, flows, &windows.windows, start)?;
        let Some(over) = flows.iter().zip(&outages).position(|(f, o)| *o > f.bound) else {
            return Ok((windows, outages));
        };
        if total <= least {
            let (bound, outage) = (flows[over].bound, outages[over]);
            return Err(QosError::OutageAboveBound { bound, window: total, outage });
        }
        total -= 1;
    }
}

/// The delay outage of each flow, its RTT more than `d` slots above its `r`, when the flows have `windows` packets.
///
/// A packet finds in the queue all packets but those on their way. Of the successes in lag l before its arrival
/// (lag 1 is the slot that ends when it arrives) those of flow j are still on their way if l < R_j. So, as in eq. (3),
/// Pr{d_q > D_i} is the probability that fewer packets than the sum of the windows are counted in
///
/// ```text
/// lags max R - 1 .. 1, of the successes the share of the flows with R_j > l;   D_i + 1 slots from the arrival on, all
/// ```
///
/// For equal R_j this is eq. (3) for the sum of the windows, and exact. Otherwise it is an approximation in this: the
/// flows' packets are taken as evenly mixed. Between two RTTs, of x successes of which the share p counts, p x count,
/// rounded up or down at random so that the mean is p x; the shares are those of [`shared_throughput`]. Packets that
/// arrive at the same instant are ahead. With [`Start::AfterSuccess`] the packet's own success was in lag R_i.
///
/// # Errors
/// As [`split`]; not as many windows as flows; a window, R or D of zero.
pub fn shared_outage(
    process: &Process,
    flows: &[SharedFlow],
    windows: &[u32],
    start: Start,
) -> Result<Vec<f64>, QosError> {
    let throughput = shared_throughput(process, flows, windows)?;
    let sum: f64 = throughput.iter().sum();
    let shares: Vec<f64> = throughput.iter().map(|t| t / sum).collect();
    let total: usize = windows.iter().map(|w| *w as usize).sum();
    let late = |i| counts(process, flows, &shares, i, start).iter().take(total).sum::<f64>().min(1.0);
    Ok((0..flows.len()).map(late).collect())
}

/// Deliveries per slot of each flow when the flows have `windows` packets: by Little's law
///
/// ```text
/// throughput_i = rwnd_i / (R_i - 1 + w)
/// ```
///
/// with the wait w, the packet's own slot included, at which they add up to what the link delivers; at least one
/// slot, so that windows which do not fill the link have rwnd_i / R_i. The mean wait is taken as the same for all.
///
/// # Errors
/// As [`shared_outage`].
pub fn shared_throughput(process: &Process, flows: &[SharedFlow], windows: &[u32]) -> Result<Vec<f64>, QosError> {
    shares(flows)?;
    if windows.len() != flows.len() {
        return Err(QosError::OutOfRange {
            field: "number of windows",
            found: windows.len().to_string(),
            allowed: "that of the flows".to_owned(),
            nearest: flows.len().to_string(),
        });
    }
    for (flow, window) in flows.iter().zip(windows) {
        check(flow.r, Some(flow.d), Some(*window))?;
    }
    let each = |wait: f64| -> Vec<f64> {
        flows.iter().zip(windows).map(|(f, w)| f64::from(*w) / (f64::from(f.r) - 1.0 + wait)).collect()
    };
    let capacity = process.departure_rate();
    let (mut low, mut high) = (1.0, windows.iter().map(|w| f64::from(*w)).sum::<f64>() / capacity + 1.0);
    // Falls in the wait; at `high` the link is not filled. Bisected until there is no number between.
    while each(low).iter().sum::<f64>() > capacity {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if each(middle).iter().sum::<f64>() > capacity { low = middle } else { high = middle }
    }
    let delivered = process.throughput() / capacity;
    Ok(each(low).iter().map(|t| t * delivered).collect())
}

/// E[T_(R-1)], stationary.
fn mean_on_the_way(process: &Process, r: u32) -> f64 {
    process.departure_rate() * f64::from(r.saturating_sub(1))
}

/// The smallest sum of windows that leaves each flow a packet.
fn smallest_total(shares: &[f64], on_the_way: &[f64], on_average: f64) -> u32 {
    let queue = shares.iter().zip(on_the_way).map(|(p, e)| 1.0 / p - e).fold(f64::NEG_INFINITY, f64::max);
    let total = queue + on_average;
    let whole = total.round();
    (if (total - whole).abs() < ROUNDING * whole { whole } else { total.ceil() }) as u32
}

/// Shares that add up to 1, of flows that can be.
fn shares(flows: &[SharedFlow]) -> Result<Vec<f64>, QosError> {
    if flows.is_empty() {
        return Err(QosError::OutOfRange {
            field: "number of flows",
            found: "0".to_owned(),
            allowed: "at least 1".to_owned(),
            nearest: "1".to_owned(),
        });
    }
    for flow in flows {
        check(flow.r, Some(flow.d), None)?;
        check_share(flow.share)?;
    }
    let sum: f64 = flows.iter().map(|f| f.share).sum();
    Ok(flows.iter().map(|f| f.share / sum).collect())
}

pub(super) fn check_share(share: f64) -> Result<(), QosError> {
    if share > 0.0 && share.is_finite() {
        return Ok(());
    }
    Err(QosError::OutOfRange {
        field: "share",
        found: share.to_string(),
        allowed: "above 0".to_owned(),
        nearest: "0.001".to_owned(),
    })
}

/// The distribution that [`shared_outage`] explains, for flow `i`.
fn counts(process: &Process, flows: &[SharedFlow], shares: &[f64], i: usize, start: Start) -> Vec<f64> {
    let (r, d) = (flows[i].r, flows[i].d);
    let mut rtts: Vec<u32> = flows.iter().map(|f| f.r).collect();
    rtts.sort_unstable();
    rtts.dedup();
    let (shortest, longest) = (rtts[0], rtts[rtts.len() - 1]);
    let own_in_midst = start == Start::AfterSuccess && r < longest;
    let seeds = process.seeds(if own_in_midst { Start::Stationary } else { start });
    let mut counts = Vec::new();
    let mut kept = 0.0;
    for seed in seeds {
        let mut walk = Walk::new(process, &seed, (longest + d) as usize, 1);
        // The highest count so far.
        let mut most = 0;
        for pair in rtts.windows(2).rev() {
            let (near, far) = (pair[0], pair[1]);
            let share = flows.iter().zip(shares).filter(|(f, _)| f.r >= far).map(|(_, p)| p).sum::<f64>().min(1.0);
            // The count of these slots alone is kept beside the count so far.
            let slots = (far - near) as usize + 1;
            walk.recount((most + 1) * slots, |x| [(x * slots, 1.0), (0, 0.0)]);
            for lag in (near..far).rev() {
                walk.step(if own_in_midst && lag == r { Rule::FORCED } else { Rule::DEPARTURES });
            }
            let part = |x: usize| share * (x % slots) as f64;
            most += part(slots - 1).ceil() as usize;
            walk.recount(most + 1, |x| {
                let (whole, rest) = (part(x).floor(), part(x).fract());
                let low = x / slots + whole as usize;
                [(low, 1.0 - rest), (low + 1, rest)]
            });
        }
        let rest = (shortest + d) as usize;
        walk.recount(most + rest + 1, |x| [(x, 1.0), (0, 0.0)]);
        for _ in 0..rest {
            walk.step(Rule::DEPARTURES);
        }
        kept += walk.total();
        counts.resize(most + rest + 1, 0.0);
        walk.add_to(&mut counts);
    }
    counts.iter_mut().for_each(|c| *c /= kept);
    counts
}
