//! The calculations of `fairpace plan`: a path's promises, in advance.

use crate::error::raise;
use crate::table::Table;
use fairpace_analysis::fluid::{self, Flow, FluidError, Link, Strategy};
use fairpace_analysis::qos::QosError;
use fairpace_analysis::qos::plan::{Need, PlanError, PlannedLink, Planner};
use fairpace_control::{Equation, TcpPath};
use fairpace_lab::table::{Table as Rows, number, text, whole};
use fairpace_path::{ArqScheme, Channel, DamaSpec};
use fairpace_units::{Bytes, Probability, Rate, parse_duration, parse_rate, parse_size};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fmt::Display;

fn refused(py: Python<'_>, name: &str, found: &str, allowed: &str) -> PyErr {
    raise(py, "ScenarioError", &format!("`{name}` is `{found}`"), Some(&format!("allowed is {allowed}")))
}

/// Reads a value with its unit.
fn read<T, E: Display>(py: Python<'_>, name: &str, found: &str, parse: fn(&str) -> Result<T, E>) -> PyResult<T> {
    parse(found).map_err(|e| raise(py, "ScenarioError", &format!("`{name}` is `{found}`"), Some(&e.to_string())))
}

/// TCP's rate at a loss rate, by each equation: bit/s, packets/s, and what triple duplicate ACKs and timeouts cost per packet.
///
/// `p` is the loss (event) rate, in (0, 1]; `rtt` and `rto` are times with their unit (`rto` is four round trips, at least 1 s,
/// if it is not given); `packet_size` is a size with its unit; `b` is how many packets an ACK is for.
#[pyfunction]
#[pyo3(signature = (p, rtt, *, rto=None, packet_size="1000 B", b=1.0))]
pub(crate) fn tcp_rate(
    py: Python<'_>,
    p: f64,
    rtt: &str,
    rto: Option<&str>,
    packet_size: &str,
    b: f64,
) -> PyResult<Table> {
    let wrong = |name: &str, found: &str, allowed: &str| refused(py, name, found, allowed);
    let time = |name: &str, found: &str| read(py, name, found, parse_duration);
    let size = read(py, "packet_size", packet_size, parse_size)?;
    let rtt = time("rtt", rtt)?;
    let rto = match rto {
        Some(rto) => time("rto", rto)?,
        None => TcpPath::assumed_rto(rtt),
    };
    let loss = Probability::new(p).map_err(|_| wrong("p", &p.to_string(), "a probability above 0, up to 1"))?;
    let path =
        TcpPath::new(size, rtt, rto, b).map_err(|e| wrong(e.field, &e.found.to_string(), &e.allowed.to_string()))?;
    let mut t = Rows::new(&[
        text("equation"),
        number("rate_bps"),
        number("rate_packets_per_s"),
        number("triple_dup_ms_per_packet"),
        number("timeout_ms_per_packet"),
    ]);
    for (name, equation) in Equation::NAMES {
        let (rate, terms) = (equation.rate(&path, loss), equation.terms(&path, loss));
        t.text(name).number(rate.as_bps()).number(rate.as_packets_per_second(size));
        t.number(terms.triple_dup_s * 1e3).number(terms.timeout_s * 1e3).end();
    }
    Table::new(t)
}

/// `fairpace.FlowNeed`.
#[derive(FromPyObject)]
pub(crate) struct FlowNeed {
    rtt: String,
    max_jitter: String,
    outage: f64,
    loss: Option<f64>,
    throughput: Option<String>,
    share: Option<f64>,
}

impl FlowNeed {
    fn need(&self, py: Python<'_>, packet_size: Bytes) -> PyResult<Need> {
        let throughput = self.throughput.as_deref().map(|t| read(py, "throughput", t, parse_rate)).transpose()?;
        let throughput = throughput.map(|rate| rate.with_packets_of(packet_size));
        Ok(Need {
            min_rtt: read(py, "rtt", &self.rtt, parse_duration)?,
            share: self.share.or(throughput.map(|rate| rate.as_bps())).unwrap_or(1.0),
            throughput,
            max_jitter: read(py, "max_jitter", &self.max_jitter, parse_duration)?,
            outage: self.outage,
            loss: self.loss,
        })
    }
}

/// Windows for flows over a wireless link with ARQ, so that each keeps its needs [aimd §III-D]: a row per flow.
///
/// The link has slots of one packet (`packet_size`, headers included) at `rate`; a slot fails with probability `error`, and `memory` is what
/// of the higher risk right after a failure is left one slot later. `scheme` is "none", "persistent", "limited" (with `retries`),
/// "optimal", or "auto": the paper's choice. The flows have `slots[0]` of `slots[1]` slots. `beta` is the part of a window that remains
/// after a decrease. `rwnd` has windows to judge, one per flow, instead of the largest that keep the needs.
#[pyfunction]
#[pyo3(
    signature = (flows, *, rate="200 kbit/s", packet_size="125 B", error=0.1, memory=0.0, scheme="auto", retries=None,
        retry_delay=0, slots=(1, 1), beta=0.875, rwnd=None),
    text_signature = "(flows, *, rate=\"200 kbit/s\", packet_size=\"125 B\", error=0.1, memory=0.0, scheme=\"auto\", \
        retries=None, retry_delay=0, slots=(1, 1), beta=0.875, rwnd=None)"
)]
#[allow(clippy::too_many_arguments)] // they are Python's, and have names there
pub(crate) fn plan_wireless(
    py: Python<'_>,
    flows: Vec<FlowNeed>,
    rate: &str,
    packet_size: &str,
    error: f64,
    memory: f64,
    scheme: &str,
    retries: Option<u32>,
    retry_delay: u32,
    slots: (u32, u32),
    beta: f64,
    rwnd: Option<Vec<u32>>,
) -> PyResult<Table> {
    let wrong = |error: QosError| raise(py, "ScenarioError", &error.to_string(), None);
    let packet_size = read(py, "packet_size", packet_size, parse_size)?;
    let rate = read(py, "rate", rate, parse_rate)?.with_packets_of(packet_size);
    if rate == Rate::ZERO || packet_size == Bytes::ZERO {
        return Err(refused(py, "rate", &rate.to_string(), "a rate and a size above 0"));
    }
    if slots.0 == 0 || slots.0 > slots.1 {
        return Err(refused(py, "slots", &format!("{slots:?}"), "(own, all): at least 1, and no more than there are"));
    }
    if retries.is_some() != (scheme == "limited") {
        return Err(PyValueError::new_err("`retries` is for the scheme \"limited\", which needs them"));
    }
    let scheme = match scheme {
        "auto" => None,
        "none" => Some(ArqScheme::None),
        "persistent" => Some(ArqScheme::Persistent),
        "limited" => Some(ArqScheme::Limited { retries: retries.unwrap_or_default() }),
        "optimal" => Some(ArqScheme::Optimal),
        other => {
            return Err(refused(py, "scheme", other, "\"auto\", \"none\", \"persistent\", \"limited\", \"optimal\""));
        }
    };
    let channel = if memory == 0.0 { Channel::memoryless(error) } else { Channel::two_state(error, memory) };
    let channel = channel.map_err(|e| wrong(e.into()))?;
    let needs = flows.iter().map(|flow| flow.need(py, packet_size)).collect::<PyResult<Vec<_>>>()?;
    let link = PlannedLink { rate, packet_size, channel, scheme, retry_delay, slots }.spec(&needs);
    let planner = Planner::new(&link, 0).map_err(wrong)?;
    let plan = match &rwnd {
        Some(windows) => planner.given(beta, &needs, windows).map_err(PlanError::Qos),
        None => planner.plan(beta, &needs),
    };
    let plan = plan.map_err(|error| match error {
        PlanError::Qos(error) => wrong(error),
        PlanError::Unmet(unmet) => {
            let nearest: Vec<String> = unmet.nearest.iter().map(ToString::to_string).collect();
            let possible = (!nearest.is_empty()).then(|| format!("possible is {}", nearest.join(", or ")));
            raise(py, "ScenarioError", &unmet.to_string(), possible.as_deref())
        }
    })?;
    let mut t = Rows::new(&[
        whole("flow"),
        whole("r_slots"),
        whole("d_slots"),
        number("share"),
        whole("rwnd_packets"),
        number("throughput_bps"),
        number("delay_outage"),
        number("lost_or_late"),
    ]);
    for (i, flow) in (1..).zip(&plan.flows) {
        t.whole(i).whole(u64::from(flow.r)).whole(u64::from(flow.d)).number(flow.share).whole(u64::from(flow.rwnd));
        t.number(flow.throughput.as_bps()).number(flow.outage).number(flow.loss).end();
    }
    Table::new(t)
}

/// Ways for a stream of constant `rate` to start on an idle satellite terminal, by the fluid model [qsd §3.4]: a row for each, without
/// Quick-Start, with it, and with a request that is held for 0, T_q,opt and T_q,max.
///
/// `frame` is the paper's "small" or "large" super-frame; `allocation_delay` in super-frames and `propagation`, a time, replace theirs.
/// Delays are end to end, over all phases of the super-frame; those called `median_` are medians of the first 10 s. `second_hump_ms` is the
/// highest second rise of the delay, if there is one in any phase.
#[pyfunction]
#[pyo3(signature = (rate, *, packet_size="1316 B", frame="large", propagation=None, allocation_delay=None))]
pub(crate) fn plan_quick_start(
    py: Python<'_>,
    rate: &str,
    packet_size: &str,
    frame: &str,
    propagation: Option<&str>,
    allocation_delay: Option<u32>,
) -> PyResult<Table> {
    let packet = read(py, "packet_size", packet_size, parse_size)?;
    let rate = read(py, "rate", rate, parse_rate)?.with_packets_of(packet);
    let frame = match frame {
        "small" => DamaSpec::small(),
        "large" => DamaSpec::large(),
        other => return Err(refused(py, "frame", other, "\"small\", \"large\"")),
    };
    let spec = DamaSpec {
        propagation: propagation
            .map(|t| read(py, "propagation", t, parse_duration))
            .transpose()?
            .unwrap_or(frame.propagation),
        allocation_delay: allocation_delay.unwrap_or(frame.allocation_delay),
        ..frame
    };
    let wrong = |error: FluidError| raise(py, "ScenarioError", &error.to_string(), None);
    let link = Link::try_from(&spec).map_err(wrong)?;
    let flow = Flow::asking(rate, packet).map_err(wrong)?;
    link.check(&flow).map_err(wrong)?;
    let mut t = Rows::new(&[
        text("strategy"),
        number("t_q_ms"),
        number("longest_least_ms"),
        number("longest_median_ms"),
        number("longest_greatest_ms"),
        number("median_least_ms"),
        number("median_median_ms"),
        number("median_greatest_ms"),
        number("second_hump_ms"),
    ]);
    for strategy in fluid::strategies(&link) {
        let model = py.detach(|| fluid::summary(&link, &flow, strategy));
        let name = match strategy {
            Strategy::None => "none",
            Strategy::Qs => "qs",
            Strategy::Qsd(_) => "qsd",
        };
        t.text(name).number(strategy.t_q().as_secs_f64() * 1e3);
        for spread in [model.max, model.median] {
            t.number(spread.best * 1e3).number(spread.median * 1e3).number(spread.worst * 1e3);
        }
        t.number(model.hump.map(|hump| hump.rise * 1e3)).end();
    }
    Table::new(t)
}
