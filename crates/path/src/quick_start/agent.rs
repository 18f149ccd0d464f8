//! The Quick-Start agent of a satellite terminal, and QSD: Quick-Start that speaks with DAMA.
//!
//! Source: [qsd §2.4, §3.4, App. A].

use super::{Channel, Ear, Estimator, QsError, QsRouter, QsVerdict, RouterParams, pass_unaware};
use fairpace_units::{Duration, Instant, QsOption, RandomStream, Rate};

/// The behaviour of a terminal towards a Quick-Start request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Agent {
    /// Nothing: it is a router that does not know Quick-Start, and so the request fails.
    #[default]
    Off,
    /// Answers as a router, and tells nobody (QS).
    Qs,
    /// Answers, adds what it approved to the next DAMA request, and holds the packet (QSD).
    Qsd {
        /// T_q: how long an approved request is held.
        hold: Duration,
    },
}

/// The Quick-Start agent of each terminal, as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct AgentSpec {
    /// The agent's behaviour.
    pub agent: Agent,
    /// How it decides.
    pub router: RouterParams,
    /// How it learns what is free. `router.load` says over how many TBTPs.
    pub estimator: Estimator,
}

impl AgentSpec {
    /// The paper's: the NCC's broadcast, and approvals remembered for T_r + T_a, the longest that one may
    /// take to show in a TBTP: `state_delay` = (T_r + T_a) / M [qsd App. A].
    pub fn new(agent: Agent, measurement_interval: Duration, allocation_delay: Duration) -> Self {
        let router = RouterParams::default();
        let router =
            RouterParams { state_delay: (measurement_interval + allocation_delay) / router.intervals, ..router };
        AgentSpec { agent, router, estimator: Estimator::default() }
    }
}

/// An agent's decision about a packet with a Quick-Start option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The router's answer; `None` from an agent that is off.
    pub verdict: Option<QsVerdict>,
    /// When the packet may join the uplink queue; `now` if it need not wait.
    pub hold_until: Instant,
    /// To be added to the terminal's next capacity request.
    pub add_to_request: Rate,
}

/// The agent of one terminal.
#[derive(Clone, Debug)]
pub struct QsAgent {
    agent: Agent,
    router: QsRouter,
    ear: Ear,
    /// The delay of asking the NCC: RTT_m, or nothing.
    query: Duration,
}

impl QsAgent {
    /// The agent of the terminal called `name`; `mean_rtt` is RTT_m of its network. Its random streams are
    /// `<name>.quick_start` and `<name>.listening`.
    ///
    /// # Errors
    /// [`QsError`] names the parameter that cannot be.
    pub fn new(spec: &AgentSpec, mean_rtt: Duration, seed: u64, name: &str) -> Result<Self, QsError> {
        spec.validate()?;
        Ok(QsAgent {
            agent: spec.agent,
            router: QsRouter::new(&spec.router, RandomStream::named(seed, &format!("{name}.quick_start")))?,
            ear: Ear::new(spec.estimator, RandomStream::named(seed, &format!("{name}.listening"))),
            query: spec.query(mean_rtt),
        })
    }

    /// A packet with a Quick-Start option arrives from `source`: changes the option as a router does, and
    /// says what becomes of the packet.
    pub fn on_request(&mut self, now: Instant, option: &mut QsOption, source: u64, channel: &Channel) -> Decision {
        let pass = Decision { verdict: None, hold_until: now, add_to_request: Rate::ZERO };
        let hold = match self.agent {
            Agent::Off => {
                pass_unaware(option);
                return pass;
            }
            Agent::Qs => Duration::ZERO,
            Agent::Qsd { hold } => hold,
        };
        let ear = &mut self.ear;
        let verdict = self.router.on_request(now, source, option, || ear.estimate(now, channel));
        let query = if verdict.was_considered() { self.query } else { Duration::ZERO };
        let (hold, add_to_request) = match (verdict.approved(), self.agent) {
            (Some(rate), Agent::Qsd { .. }) => (hold, rate.rate()),
            _ => (Duration::ZERO, Rate::ZERO),
        };
        Decision { verdict: Some(verdict), hold_until: now + query + hold, add_to_request }
    }

    /// Its router, for the counters.
    pub fn router(&self) -> &QsRouter {
        &self.router
    }
}

/// A T_q at which the sender's no-feedback timer expires before the answer can come [qsd §3.5].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`hold` (T_q) of {} ms makes the first round trip {} ms long: the sender's no-feedback timer of {} ms will have expired before the answer is there; the longest `hold` below it is {} ms",
    hold.as_millis(), first_rtt.as_millis(), timer.as_millis(), longest.as_millis()
)]
pub struct HoldWarning {
    /// T_q.
    pub hold: Duration,
    /// T_q + RTT_m, and one RTT_m more if the agent asks the NCC.
    pub first_rtt: Duration,
    /// How long the sender waits for its first feedback: 2 s by RFC 3448.
    pub timer: Duration,
    /// The T_q at which the answer would just come in time.
    pub longest: Duration,
}

impl AgentSpec {
    /// Whether an agent can go by it.
    ///
    /// # Errors
    /// [`QsError`] names the parameter that cannot be.
    pub fn validate(&self) -> Result<(), QsError> {
        self.router.validate()?;
        self.estimator.validate()
    }

    /// The warning for a user if senders that wait `timer` for their first feedback would give up.
    pub fn hold_warning(&self, mean_rtt: Duration, timer: Duration) -> Option<HoldWarning> {
        let Agent::Qsd { hold } = self.agent else { return None };
        let rest = mean_rtt + self.query(mean_rtt);
        let first_rtt = rest + hold;
        (first_rtt > timer).then(|| HoldWarning { hold, first_rtt, timer, longest: timer.saturating_sub(rest) })
    }

    /// The delay of asking the NCC: RTT_m, or nothing [qsd §A.1.2].
    fn query(&self, mean_rtt: Duration) -> Duration {
        if self.estimator == Estimator::OnDemand { mean_rtt } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests;
