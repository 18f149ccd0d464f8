//! The delay jitter of flows over the wireless link: what a run measured, beside what eq. (3) has for their windows.
//!
//! In steps of a slot: an RTT is a whole number of slots where acknowledgements release packets. One-way delays are
//! measured; what comes on top of the least is the RTT's jitter, as long as feedback does not queue.

use fairpace_analysis::qos::{self, Process, SharedFlow, Start};
use fairpace_scenario::{ArqKind, Parameter, Record, Scenario, ScenarioError, sim_config};
use fairpace_sim::{FlowConfig, SimConfig, SimReport};
use fairpace_units::{Duration, Instant};

/// Flows whose jitter is noted, the first ones over the wireless link.
const MOST_FLOWS: usize = 64;
/// The most slots of jitter.
const MOST_SLOTS: u32 = 200;
/// Fewer, where flows of unequal RTT share a queue: each is a recursion of its own.
const MOST_SLOTS_SHARED: u32 = 40;

/// One flow.
pub(crate) struct JitterCurve {
    /// Its index in the report.
    pub(crate) flow: usize,
    /// Row d: an RTT of R + d slots.
    pub(crate) rows: Vec<JitterRow>,
}

/// How many packets have more jitter than so much.
pub(crate) struct JitterRow {
    /// The jitter: d slots, and what the least RTT lacks of R slots.
    pub(crate) above: Duration,
    /// Of the packets received in the measured window.
    pub(crate) measured: f64,
    /// Pr{d_q > D | W}; none where the window was not the same all along, is not full, or packets are given up.
    pub(crate) analytic: Option<f64>,
}

/// The jitter of each flow with a user.
///
/// # Errors
/// As [`sim_config`].
pub(crate) fn curves(scenario: &Scenario, seed: u64, report: &SimReport) -> Result<Vec<JitterCurve>, ScenarioError> {
    let config = sim_config(scenario, seed, Record::default())?;
    let over = config.flows.iter().zip(&report.flows).enumerate();
    let over = over.filter_map(|(i, (flow, found))| Some((i, flow, found, config.radio_of(flow)?.0.downlink.slot)));
    let mut curves: Vec<JitterCurve> = Vec::new();
    for (index, flow, found, slot) in over.take(MOST_FLOWS) {
        if found.owd.share_from(Duration::ZERO).is_none() {
            continue;
        }
        let (r, least) = least(&config, flow, slot);
        let rest = least - config.min_owd(flow);
        let above = |d: u32| {
            // Half a slot later: what is measured in microseconds must not fall beside its slot.
            let at = least + slot * d + slot / 2;
            found.owd.share_from(at).unwrap_or(0.0)
        };
        let mut rows = Vec::new();
        for d in 0..=MOST_SLOTS {
            let measured = above(d);
            rows.push(JitterRow { above: rest + slot * d, measured, analytic: None });
            if measured == 0.0 && d > 0 {
                break;
            }
        }
        let d_max = rows.len().saturating_sub(1) as u32;
        if let Some(analytic) = analytic(scenario, &config, report, index, r, d_max) {
            for (row, p) in rows.iter_mut().zip(analytic) {
                row.analytic = Some(p);
            }
        }
        curves.push(JitterCurve { flow: index, rows });
    }
    Ok(curves)
}

/// R in slots, and the one-way delay of a packet whose RTT is that.
fn least(config: &SimConfig, flow: &FlowConfig, slot: Duration) -> (u32, Duration) {
    let min_rtt = config.min_rtt(flow);
    let r = min_rtt.as_nanos().div_ceil(slot.as_nanos().max(1)).min(u128::from(u32::MAX)) as u32;
    (r, config.min_owd(flow) + (slot.saturating_mul(r) - min_rtt))
}

/// Pr{d_q > d | W} of one flow for d from 0 to `d_max` at the most.
fn analytic(
    scenario: &Scenario,
    config: &SimConfig,
    report: &SimReport,
    index: usize,
    r: u32,
    d_max: u32,
) -> Option<Vec<f64>> {
    let scheme = scenario.wireless.as_ref()?.scheme;
    let (radio, user) = config.radio_of(config.flows.get(index)?)?;
    let downlink = &radio.downlink;
    if !matches!(scheme, ArqKind::Persistent | ArqKind::Optimal) {
        return None;
    }
    let beside: Vec<usize> = (0..config.flows.len())
        .filter(|i| {
            config.radio_of(&config.flows[*i]).is_some_and(|(other, u)| std::ptr::eq(radio, other) && u == user)
        })
        .collect();
    let windows: Vec<u32> = beside.iter().map(|i| window(scenario, config, report, *i)).collect::<Option<_>>()?;
    let rs: Vec<u32> = beside.iter().map(|i| least(config, &config.flows[*i], downlink.slot).0).collect();
    let process = Process::of_user(downlink, user as usize).ok()?;
    let total: u32 = windows.iter().sum();
    if total < process.full_window(*rs.iter().max()?) {
        return None;
    }
    if rs.iter().all(|other| *other == r) {
        return qos::outage_curve(&process, r, d_max, total, Start::AfterSuccess).ok();
    }
    let place = beside.iter().position(|i| *i == index)?;
    let outage = |d: u32| {
        let flows: Vec<SharedFlow> = rs.iter().map(|r| SharedFlow { r: *r, d, bound: 0.5, share: 1.0 }).collect();
        qos::shared_outage(&process, &flows, &windows, Start::AfterSuccess).ok()?.get(place).copied()
    };
    (0..=d_max.min(MOST_SLOTS_SHARED)).map(|d| outage(d.max(1))).collect()
}

/// Whether a flow is one of those that the scenario calls `name`: `call`, or `call-1`, `call-2`.
fn is_one_of(flow: &str, name: &str) -> bool {
    let number = flow.strip_prefix(name);
    number.is_some_and(|n| n.is_empty() || n.strip_prefix('-').is_some_and(|n| n.parse::<u64>().is_ok()))
}

/// The window that a flow has in all of the measured time, if it has one.
fn window(scenario: &Scenario, config: &SimConfig, report: &SimReport, index: usize) -> Option<u32> {
    let (flow, found) = (config.flows.get(index)?, report.flows.get(index)?);
    let from = Instant::ZERO + config.warmup;
    let goes_on = found.started <= from && flow.stop.is_none_or(|stop| stop >= Instant::ZERO + config.duration);
    let spec = scenario.flows.iter().find(|f| f.group == flow.group && is_one_of(&flow.name, &f.name))?;
    let own = spec.parameters.get("rwnd").map(Parameter::text).and_then(|text| text.parse::<u32>().ok());
    let mut planned = report.radios.iter().flat_map(|r| &r.windows).filter(|w| w.flow as usize == index);
    let steady = planned.clone().all(|w| w.at <= from);
    let last = planned.next_back().map(|w| w.rwnd);
    let window = match (own, last) {
        (Some(own), Some(last)) => Some(own.min(last)),
        (own, last) => own.or(last),
    };
    window.filter(|_| goes_on && steady)
}

#[cfg(test)]
mod tests {
    use super::is_one_of;

    #[test]
    fn a_name_that_begins_like_another_is_not_it() {
        assert!(is_one_of("call", "call") && is_one_of("call-12", "call"));
        assert!(!is_one_of("caller", "call") && !is_one_of("call-far", "call") && !is_one_of("cal", "call"));
    }
}
