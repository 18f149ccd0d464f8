//! Needs that can be met, close to those that cannot.

use super::{FlowPlan, Need, Planner, longest};
use crate::qos::{QosError, SharedFlow, split};
use fairpace_units::{Duration, Rate, format_duration};
use std::fmt;

/// A need that the link cannot meet beside the others, and what it can.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// The flow that has the need, from zero.
    pub flow: usize,
    /// The shortage.
    pub lack: Lack,
    /// Changes of the needs: each by itself makes a plan possible, the other needs as they are.
    pub nearest: Vec<Nearest>,
}

/// The kind of shortage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lack {
    /// The flow's share of the link is less than it needs.
    Throughput {
        /// The need.
        needed: Rate,
        /// Its share of what the link delivers.
        possible: Rate,
    },
    /// The windows that keep the delay promise give it less than it needs.
    Window {
        /// The need.
        needed: Rate,
        /// The throughput that is possible.
        possible: Rate,
        /// The largest sum of windows with which all are in time.
        total: u32,
    },
    /// Even the smallest windows are late too often.
    Outage {
        /// Their sum.
        total: u32,
        /// The flow's delay outage with them.
        outage: f64,
        /// The part that the flow tolerates.
        bound: f64,
    },
    /// More is given up after the last try than may be lost.
    Loss {
        /// The part that is given up.
        given_up: f64,
        /// The part that may be lost.
        bound: f64,
    },
}

/// A need that could be met instead, or a change that would make the needs possible.
#[derive(Clone, Debug, PartialEq)]
pub enum Nearest {
    /// Throughputs of at most so much, one per flow.
    Throughput(Vec<Rate>),
    /// A link of at least this rate, its packets and errors the same.
    Link(Rate),
    /// Jitters of at least so much, one per flow.
    Jitter(Vec<Duration>),
    /// Outages of at least so much, one per flow, with the windows that have them.
    Outage {
        /// The windows.
        windows: Vec<u32>,
        /// The outages of the flows, rounded up.
        outage: Vec<f64>,
    },
    /// A loss of at least so much, with which an outage of `outage` is left.
    Loss(f64),
    /// Tries until it succeeds.
    Persistent,
}

impl Planner {
    /// Step 3: whether the link is enough.
    pub(super) fn enough(&self, needs: &[Need], flows: &[SharedFlow]) -> Result<(), Box<Unmet>> {
        let given_up = self.process.give_up_ratio();
        for (flow, need) in needs.iter().enumerate() {
            if let Some(bound) = need.loss.filter(|loss| *loss <= given_up) {
                // As much is left for what is late as is tolerated of it anyway.
                let loss = up(given_up + (1.0 - given_up) * need.outage);
                let nearest = vec![Nearest::Loss(loss), Nearest::Persistent];
                return Err(Box::new(Unmet { flow, lack: Lack::Loss { given_up, bound }, nearest }));
            }
        }
        let capacity = self.process.throughput();
        let possible: Vec<f64> = flows.iter().map(|f| f.share * capacity).collect();
        if self.fast_enough(needs, &possible) {
            return Ok(());
        }
        let factor = |i: usize| needs[i].throughput.map_or(0.0, |t| self.per_slot(t) / possible[i]);
        // The flow that lacks most.
        let flow = (0..flows.len()).fold(0, |most, i| if factor(i) > factor(most) { i } else { most });
        let lack = Lack::Throughput {
            needed: needs[flow].throughput.unwrap_or_default(),
            possible: self.rate(possible[flow]),
        };
        let link = Rate::bps((self.rate(1.0).as_bps() * factor(flow)).ceil());
        let nearest = vec![Nearest::Throughput(self.at_most(needs, &possible)), Nearest::Link(link)];
        Err(Box::new(Unmet { flow, lack, nearest }))
    }

    /// Even the smallest windows are late too often.
    pub(super) fn too_late(&self, needs: &[Need], flows: &[SharedFlow]) -> Result<Box<Unmet>, QosError> {
        // The first sum that eq. (4) can split.
        let total = match split(&self.process, flows, 1) {
            Ok(_) => 1,
            Err(QosError::OutOfRange { nearest, .. }) => nearest.parse().unwrap_or(flows.len() as u32),
            Err(other) => return Err(other),
        };
        let planned = self.with_total(needs, total)?;
        let excess = |i: usize| planned[i].outage / flows[i].bound;
        let flow = (0..flows.len()).fold(0, |most, i| if excess(i) > excess(most) { i } else { most });
        let lack = Lack::Outage { total, outage: planned[flow].outage, bound: flows[flow].bound };
        Ok(Box::new(Unmet { flow, lack, nearest: self.for_windows(needs, flows, &planned)? }))
    }

    /// The windows that keep the delays are too slow: `most` is the largest sum of windows that keeps them.
    pub(super) fn too_slow(&self, needs: &[Need], flows: &[SharedFlow], most: u32) -> Result<Box<Unmet>, QosError> {
        let has = self.throughputs(flows, &split(&self.process, flows, most)?.windows)?;
        let missing = |i: usize| needs[i].throughput.map_or(0.0, |t| self.per_slot(t) / has[i]);
        let flow = (0..flows.len()).fold(0, |most, i| if missing(i) > missing(most) { i } else { most });
        let lack = Lack::Window {
            needed: needs[flow].throughput.unwrap_or_default(),
            possible: self.rate(has[flow]),
            total: most,
        };
        let mut nearest = vec![Nearest::Throughput(self.at_most(needs, &has))];
        // From some sum on rounding is all that is left between a flow and its share.
        let enough = 4 * self.process.full_window(longest(flows)) + 16 * flows.len() as u32;
        for total in most + 1..=enough.max(most + 1) {
            let windows = split(&self.process, flows, total)?.windows;
            if self.fast_enough(needs, &self.throughputs(flows, &windows)?) {
                nearest.extend(self.for_windows(needs, flows, &self.planned(flows, &windows)?)?);
                break;
            }
        }
        Ok(Box::new(Unmet { flow, lack, nearest }))
    }

    /// The losses and outages that would have to be tolerated for windows as in `planned`.
    fn for_windows(
        &self,
        needs: &[Need],
        flows: &[SharedFlow],
        planned: &[FlowPlan],
    ) -> Result<Vec<Nearest>, QosError> {
        let windows: Vec<u32> = planned.iter().map(|f| f.rwnd).collect();
        let mut jitters = Vec::new();
        let mut found: Vec<(usize, u32)> = Vec::new();
        for (i, need) in needs.iter().enumerate() {
            let flow = &flows[i];
            // The same for all that ask for the same.
            let known =
                found.iter().find(|(j, _)| (flows[*j].r, flows[*j].d, flows[*j].bound) == (flow.r, flow.d, flow.bound));
            let d = match known {
                Some((_, d)) => Some(*d),
                None => self.smallest_jitter(flows, &windows, i)?,
            };
            let Some(d) = d else { break };
            found.push((i, d));
            // Unchanged where it is enough.
            let slots = self.slot.saturating_mul(flow.r + d);
            jitters.push(if d == flow.d { need.max_jitter } else { slots.saturating_sub(need.min_rtt) });
        }
        let mut nearest = Vec::new();
        if jitters.len() == needs.len() {
            nearest.push(Nearest::Jitter(jitters));
        }
        let outage = planned.iter().zip(needs).map(|(f, need)| need.outage.max(up(f.outage)));
        let outage: Vec<f64> = outage.collect();
        if outage.iter().all(|o| *o < 1.0) && needs.iter().all(|n| n.loss.is_none()) {
            nearest.push(Nearest::Outage { windows, outage });
        }
        Ok(nearest)
    }

    /// The smallest jitter of flow `i`, in slots and not below what it tolerates, with which `windows` keep its
    /// outage; none up to ten times what a full window takes.
    fn smallest_jitter(&self, flows: &[SharedFlow], windows: &[u32], i: usize) -> Result<Option<u32>, QosError> {
        let outage = |d| -> Result<f64, QosError> {
            let mut flows = flows.to_vec();
            flows[i].d = d;
            Ok(self.outages(&flows, windows)?[i])
        };
        let bound = flows[i].bound;
        let total: u32 = windows.iter().sum();
        let most = flows[i].d + 10 * (f64::from(total) / self.process.departure_rate()).ceil() as u32;
        let (mut low, mut high) = (flows[i].d, flows[i].d);
        while outage(high)? > bound {
            if high >= most {
                return Ok(None);
            }
            low = high + 1;
            high = (high * 2).min(most);
        }
        // The loss falls in D.
        while low < high {
            let middle = low + (high - low) / 2;
            if outage(middle)? > bound { low = middle + 1 } else { high = middle }
        }
        Ok(Some(high))
    }

    /// The rates that flows with throughputs `has` can ask for, but not more than they do; whole bits per second,
    /// rounded down.
    fn at_most(&self, needs: &[Need], has: &[f64]) -> Vec<Rate> {
        let of = |(need, has): (&Need, &f64)| {
            let most = Rate::bps((self.rate(*has).as_bps() * (1.0 + 1e-12)).floor());
            need.throughput.map_or(most, |t| t.min(most))
        };
        needs.iter().zip(has).map(of).collect()
    }
}

/// A rate as it is printed, in four digits, so that who types it in has no more than `rate`.
fn at_most(rate: Rate) -> Rate {
    four_digits(rate, f64::floor)
}

fn four_digits(rate: Rate, round: impl Fn(f64) -> f64) -> Rate {
    let bps = rate.as_bps();
    if bps <= 0.0 {
        return rate;
    }
    let unit = 10.0_f64.powi(bps.log10().floor() as i32 - 3);
    // A value that is a multiple but for rounding stays.
    let digits = bps / unit;
    let whole = digits.round();
    Rate::bps(if (digits - whole).abs() < 1e-7 { whole } else { round(digits) } * unit)
}

/// Two digits, upwards.
fn up(p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    let unit = 10.0_f64.powi(p.log10().floor() as i32 - 1);
    // A value that is a multiple but for rounding stays.
    ((p / unit - 1e-9).ceil() * unit).min(1.0)
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flow = self.flow + 1;
        match self.lack {
            Lack::Throughput { needed, possible } => {
                write!(f, "flow {flow} needs {needed}; its share of what the link delivers is {}", at_most(possible))
            }
            Lack::Window { needed, possible, total } => write!(
                f,
                "flow {flow} needs {needed}; windows of {total} in all, the largest that keep the delays, give it {}",
                at_most(possible)
            ),
            Lack::Outage { total, outage, bound } => write!(
                f,
                "flow {flow} is late in {} of its packets even with windows of {total} in all, the smallest; {} is allowed",
                percent(outage),
                percent(bound)
            ),
            Lack::Loss { given_up, bound } => write!(
                f,
                "{} of the packets are given up after the last try; flow {flow} may lose {}",
                percent(given_up),
                percent(bound)
            ),
        }
    }
}

impl std::error::Error for Unmet {}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nearest::Throughput(rates) => {
                write!(f, "a throughput of at most {}", list(rates, |r| at_most(*r).to_string()))
            }
            Nearest::Link(rate) => write!(f, "a link of at least {}", four_digits(*rate, f64::ceil)),
            Nearest::Jitter(jitters) => {
                write!(f, "a tolerable jitter of at least {}", list(jitters, |d| format_duration(*d)))
            }
            Nearest::Outage { windows, outage } => write!(
                f,
                "a delay outage of at least {} (rwnd {})",
                list(outage, |p| percent(*p)),
                list(windows, u32::to_string)
            ),
            Nearest::Loss(loss) => write!(f, "a loss of at least {}", percent(*loss)),
            Nearest::Persistent => write!(f, "tries until it succeeds (persistent)"),
        }
    }
}

/// One number where all are the same.
fn list<T: PartialEq>(values: &[T], show: impl Fn(&T) -> String) -> String {
    let shown = if values.windows(2).all(|w| w[0] == w[1]) { values.get(..1).unwrap_or_default() } else { values };
    shown.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// A part of a whole for people, two digits: `1.4 %`.
pub fn percent(p: f64) -> String {
    let digits = if p > 0.0 { (1 - (p * 100.0).log10().floor() as i32).clamp(0, 12) as usize } else { 0 };
    let text = format!("{:.digits$}", p * 100.0);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}
