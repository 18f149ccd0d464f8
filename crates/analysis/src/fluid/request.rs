//! The answer of the terminal's router to a flow's Quick-Start request.

use super::Flow;
use fairpace_path::DamaSpec;
use fairpace_path::quick_start::{Agent, Free, QsRouter, QsVerdict};
use fairpace_units::{Instant, QsFunction, QsNonce, QsOption, QsRate, RandomStream};

/// The part of the flow's request that a terminal with the default agent approves while all terminals have their minimum; the model
/// itself has all of it approved.
pub fn approved(spec: &DamaSpec, flow: &Flow) -> QsRate {
    let used = spec.granularity * f64::from(spec.minimum) * f64::from(spec.terminals_per_carrier());
    let free = || Free { capacity: spec.capacity, used };
    let nonce = QsNonce::default();
    let mut option = QsOption { function: QsFunction::Request, rate: flow.quick_start, qs_ttl: 1, ip_ttl: 1, nonce };
    let agent = spec.clone().with_agent(Agent::Qs).quick_start;
    let random = RandomStream::named(0, "plan");
    match QsRouter::new(&agent.router, random).map(|mut r| r.on_request(Instant::ZERO, 0, &mut option, free)) {
        Ok(QsVerdict::Approved(rate) | QsVerdict::Reduced(rate)) => rate,
        Ok(QsVerdict::Refused(_) | QsVerdict::Report) | Err(_) => QsRate::ZERO,
    }
}
