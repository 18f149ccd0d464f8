//! Sawtooth: up by a step each round trip, down by half on a loss. The controller of the tutorial.
//!
//! Source: none. RAP (`rap.rs`) is the published scheme of this kind.
//!
//! | symbol | here | unit | set |
//! | --- | --- | --- | --- |
//! | S | `rate` | bit/s | each round trip, each loss |
//! | step | `step` | bit/s | parameter |

use crate::controller::{Controller, SendPoll};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::pacer::Pacer;
use crate::param::{Allowed, ParamError, ParamInfo};
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::RttEstimator;
use fairpace_units::{Duration, Instant, Rate};

/// The entry of the list of schemes.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "sawtooth",
    title: "Sawtooth: a step up per round trip, half on a loss",
    source: "the tutorial",
    make: |settings, env| Ok(Box::new(Sawtooth::new(settings, env)?)),
    params: &[ParamInfo {
        name: "step",
        symbol: "",
        default: "20 kbit/s",
        allowed: &[Allowed::Rate],
        doc: "what each round trip without a loss adds",
    }],
};

/// The sender.
#[derive(Clone, Debug)]
pub struct Sawtooth {
    step: Rate,
    rate: Rate,
    min: Rate,
    max: Rate,
    /// `max`, or less if the application wants less.
    limit: Rate,
    srtt: Duration,
    /// The next step up.
    next_step: Instant,
    /// Losses up to this number belong to the last cut.
    cut_until: Option<u64>,
    reason: &'static str,
    pacer: Pacer,
}

impl Sawtooth {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Sawtooth, ParamError> {
        Ok(Sawtooth {
            step: settings.rate("step", env)?,
            rate: env.start_rate.unwrap_or(Rate::kbps(200.0)).clamp(env.min_rate, env.max_rate),
            min: env.min_rate,
            max: env.max_rate,
            limit: env.max_rate,
            srtt: Duration::from_secs(1),
            next_step: Instant::NEVER,
            cut_until: None,
            reason: "start",
            pacer: Pacer::starting(Instant::NEVER),
        })
    }

    fn set_rate(&mut self, now: Instant, rate: Rate, reason: &'static str) {
        self.rate = rate.clamp(self.min, self.limit);
        self.reason = reason;
        self.next_step = now + self.srtt;
    }
}

impl Controller for Sawtooth {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.srtt = srtt.unwrap_or(self.srtt);
        self.pacer = Pacer::starting(now);
        self.next_step = now + self.srtt;
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.pacer.sent(now, sent.size.as_f64() * 8.0 / self.rate.as_bps(), self.srtt);
    }

    fn on_ack(&mut self, _now: Instant, _ack: &Acked, rtt: &RttEstimator) {
        self.srtt = rtt.srtt().unwrap_or(self.srtt);
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, _rtt: &RttEstimator) {
        if self.cut_until.is_none_or(|last| loss.seq > last) {
            self.cut_until = Some(loss.highest_sent);
            self.set_rate(now, Rate::bps(self.rate.as_bps() / 2.0), "packet lost");
        }
    }

    fn on_timeout(&mut self, now: Instant, _rtt: &RttEstimator) {
        self.set_rate(now, Rate::bps(self.rate.as_bps() / 2.0), "timeout");
    }

    fn on_timer(&mut self, now: Instant, _rtt: &RttEstimator) {
        self.set_rate(now, Rate::bps(self.rate.as_bps() + self.step.as_bps()), "round trip without loss");
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.limit = max.unwrap_or(self.max).clamp(self.min, self.max);
        self.rate = self.rate.min(self.limit);
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        self.next_step
    }

    fn target_rate(&self) -> Rate {
        self.rate
    }

    fn status(&self) -> Status {
        Status { state: "Sawtooth", rate: self.rate, reason: self.reason, p: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::LossHow;
    use crate::testing::{at, paper};
    use std::collections::BTreeMap;

    #[test]
    fn two_losses_of_one_flight_halve_the_rate_once_and_a_round_trip_adds_a_step() {
        let given = BTreeMap::new();
        let mut c = Sawtooth::new(&Settings::new(&INFO, &given).unwrap(), &paper()).unwrap();
        let rtt = RttEstimator::new(c.loss_policy().rtt);
        c.start(at(0.0), Some(Duration::from_millis(100)));
        let lost = |seq| Loss { seq, sent_at: at(0.0), highest_sent: 9, how: LossHow::LaterAcks };
        c.on_loss(at(0.05), &lost(4), &rtt);
        c.on_loss(at(0.06), &lost(7), &rtt);
        assert_eq!(c.target_rate(), Rate::kbps(100.0), "200/2");
        assert_eq!(c.poll_timer(), at(0.15), "a round trip after the cut");
        c.on_timer(at(0.15), &rtt);
        assert_eq!(c.target_rate(), Rate::kbps(120.0), "100 + 20");
    }
}
