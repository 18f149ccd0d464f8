//! Fixed: a constant rate that answers nothing. The smallest controller, and the template for a
//! new one: copy the file, and add its entry to `scheme.rs`.
//!
//! The scheme exists for comparison: an encoder without rate control on a path. On real networks the circuit breaker
//! above it [RFC 8083] is what ends it.

use crate::controller::{Controller, SendPoll};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::pacer::Pacer;
use crate::param::{Allowed, ParamError, ParamInfo};
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::RttEstimator;
use fairpace_units::{Duration, Instant, Rate};

/// The registry's entry.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "fixed",
    title: "Fixed rate, unresponsive",
    source: "none: a baseline",
    make: |settings, env| Ok(Box::new(Fixed::new(settings, env)?)),
    params: &[ParamInfo {
        name: "rate",
        symbol: "",
        default: "start",
        allowed: &[Allowed::FlowRate, Allowed::Word("start", "the flow's start rate, 1 Mbit/s if it has none")],
        doc: "what is sent, whatever happens",
    }],
};

/// A constant rate.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The rate that the scenario asked for.
    rate: Rate,
    /// The rate sent: `rate`, or less if the application wants less.
    sending: Rate,
    min_rate: Rate,
    pacer: Pacer,
    srtt: Duration,
}

impl Fixed {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Fixed, ParamError> {
        let start = env.start_rate.unwrap_or(Rate::mbps(1.0)).clamp(env.min_rate, env.max_rate);
        let rate = settings.rate_or("rate", "start", start, env)?;
        Ok(Fixed {
            rate,
            sending: rate,
            min_rate: env.min_rate,
            pacer: Pacer::starting(Instant::NEVER),
            srtt: Duration::from_secs(1),
        })
    }
}

impl Controller for Fixed {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.pacer = Pacer::starting(now);
        self.srtt = srtt.unwrap_or(self.srtt);
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.pacer.sent(now, sent.size.as_f64() * 8.0 / self.sending.as_bps(), self.srtt);
    }

    fn on_ack(&mut self, _now: Instant, _ack: &Acked, rtt: &RttEstimator) {
        self.srtt = rtt.srtt().unwrap_or(self.srtt);
    }

    fn on_loss(&mut self, _now: Instant, _loss: &Loss, _rtt: &RttEstimator) {}

    fn on_timeout(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn on_timer(&mut self, _now: Instant, _rtt: &RttEstimator) {}

    fn is_responsive(&self) -> bool {
        false
    }

    fn set_demand(&mut self, _now: Instant, max: Option<Rate>) {
        self.sending = self.rate.min(max.unwrap_or(Rate::MAX)).max(self.min_rate);
    }

    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.pacer.poll_data(now, has_data)
    }

    fn poll_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn target_rate(&self) -> Rate {
        self.sending
    }

    fn status(&self) -> Status {
        Status { state: "Fixed", rate: self.sending, reason: "configured", p: None }
    }
}
