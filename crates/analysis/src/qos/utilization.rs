//! Utilization of a link by one AIMD flow, and TCP-friendliness: `[aimd §III-A, §III-B]`, eq. (1) and (2).

use super::{QosError, at_least, in_open_interval};

/// Eq. (1): `alpha = 3 (1 - beta) / (1 + beta)`, packets per RTT, at which AIMD(alpha, beta) takes what TCP takes.
/// `beta` is what remains of the window after a decrease.
///
/// # Errors
/// `beta` outside (0, 1).
pub fn tcp_friendly_alpha(beta: f64) -> Result<f64, QosError> {
    in_open_interval("beta", beta)?;
    Ok(fairpace_control::aimd::friendly_alpha(beta))
}

/// Eq. (1) solved for `beta = (3 - alpha) / (3 + alpha)`, what remains of the window after a decrease.
///
/// # Errors
/// `alpha` outside (0, 3).
pub fn tcp_friendly_beta(alpha: f64) -> Result<f64, QosError> {
    if alpha > 0.0 && alpha < 3.0 {
        return Ok((3.0 - alpha) / (3.0 + alpha));
    }
    Err(QosError::OutOfRange {
        field: "alpha",
        found: alpha.to_string(),
        allowed: "above 0 and below 3".to_owned(),
        nearest: if alpha >= 3.0 { "2.999" } else { "0.001" }.to_owned(),
    })
}

/// The share of a link of fixed capacity, one packet per slot, that one AIMD flow uses in steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utilization {
    /// eta_I, eq. (2): of the rounds in which the window is below R.
    pub stage_one: f64,
    /// Of the whole cycle, from one decrease to the next.
    pub cycle: f64,
    /// Whether packets are lost in each cycle: the window outgrows R + B.
    pub overflows: bool,
}

/// Utilization of a link by a flow of minimal RTT `r` slots that keeps `beta` of its window after a loss, with a
/// buffer of `buffer` packets and windows up to `rwnd` (None: unlimited). Alpha does not matter: it is the speed at
/// which the cycle is run through.
///
/// Windows above R + B are cut back to beta (R + B) by a loss [aimd §III-B case (a)]; with u = (R + B) / R and
/// beta u < 1
///
/// ```text
/// eta_I = (1 + beta u) / 2                                    eq. (2)
/// eta   = (1 - beta^2) u^2 / (1 - 2 beta u + u^2)             whole cycle
/// ```
///
/// and both are 1 otherwise. An rwnd of at most R + B is never lost from, and gives min(rwnd, R) / R, case (b).
///
/// # Errors
/// `beta` outside (0, 1); an RTT or rwnd of zero.
pub fn utilization(beta: f64, r: u32, buffer: u32, rwnd: Option<u32>) -> Result<Utilization, QosError> {
    in_open_interval("beta", beta)?;
    at_least("minimal RTT in slots", r, 1)?;
    at_least("rwnd", rwnd.unwrap_or(1), 1)?;
    let full = u64::from(r) + u64::from(buffer);
    let r = f64::from(r);
    if let Some(rwnd) = rwnd.filter(|w| u64::from(*w) <= full) {
        let eta = f64::from(rwnd).min(r) / r;
        return Ok(Utilization { stage_one: eta, cycle: eta, overflows: false });
    }
    let u = full as f64 / r;
    if beta * u >= 1.0 {
        return Ok(Utilization { stage_one: 1.0, cycle: 1.0, overflows: true });
    }
    let cycle = (1.0 - beta * beta) * u * u / (1.0 - 2.0 * beta * u + u * u);
    Ok(Utilization { stage_one: (1.0 + beta * u) / 2.0, cycle, overflows: true })
}

/// The buffer in packets from which on the link is never idle: `(1 - beta) R / beta` [aimd eq. (2)].
///
/// # Errors
/// `beta` outside (0, 1); an RTT of zero.
pub fn full_utilization_buffer(beta: f64, r: u32) -> Result<f64, QosError> {
    in_open_interval("beta", beta)?;
    at_least("minimal RTT in slots", r, 1)?;
    Ok((1.0 - beta) * f64::from(r) / beta)
}
