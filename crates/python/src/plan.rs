//! The calculations of `fairpace plan`: a path's promises, in advance.

use crate::error::raise;
use crate::table::Table;
use fairpace_control::{Equation, TcpPath};
use fairpace_lab::table::{Table as Rows, number, text};
use fairpace_units::{Bytes, Duration, Probability, parse_duration, parse_size};
use pyo3::prelude::*;

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
    let wrong = |name: &str, found: &str, allowed: &str| {
        raise(py, "ScenarioError", &format!("`{name}` is `{found}`"), Some(&format!("allowed is {allowed}")))
    };
    let time = |name: &str, found: &str| parse_duration(found).map_err(|e| wrong(name, found, &e.to_string()));
    let size: Bytes = parse_size(packet_size).map_err(|e| wrong("packet_size", packet_size, &e.to_string()))?;
    let rtt = time("rtt", rtt)?;
    let rto = match rto {
        Some(rto) => time("rto", rto)?,
        // [RFC 5348 §3.1], at least TCP's 1 s [RFC 6298 §2.4].
        None => rtt.saturating_mul(4).clamp(Duration::from_secs(1), TcpPath::MAX_RTO.max(rtt)),
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
