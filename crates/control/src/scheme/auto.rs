//! Auto: TCP's fair share at least, and the capacity beyond that nobody waits for. The default where nothing is known
//! of the path.
//!
//! Source: ours. Two laws side by side, and the higher rate is the one in force: X is that of TFRC, which counts every
//! loss (`tfrc.rs`) [RFC 5348]; G is this file's, and counts only what shows that others wait (`auto/free.rs`).
//!
//! ```text
//!             a queue: G = 0.85 delivered          lost in a queue: G = X; X above 0.85 delivered
//!  Start ------------------------------------> Free <------------------------------> Fair
//!    |   each round without a queue: 2 G        |  ^     a round without: G + step     ^
//!    |                                          |  |                                   |
//!    |                                          '--' a queue stands, or stays:         |
//!    |                                               G = 0.85 delivered, X at least    |
//!    '---------------------------------------------------------------------------------'
//!                                  lost in a queue: G = X
//! ```
//!
//! Where TCP keeps a queue, G falls to X: the flow is TFRC. Where random loss keeps TCP below the capacity, the queue is
//! empty, and G grows into what is left over, until the circuit breaker's bound (`Breaker::bearable`), seven times
//! TCP's rate at the loss measured.
//!
//! # Symbols
//!
//! | symbol | unit | set |
//! | --- | --- | --- |
//! | X, TFRC's allowed rate: `Tfrc::x` | byte/s | by TFRC |
//! | G: `Free::rate` | byte/s | each round, each sign of a queue, each expiry of the no-feedback timer |
//! | W, the waiting: a round trip less the least of the last half to whole minute (`base_rtt.rs`) | s | each ACK |
//! | J, the jitter: how much a round trip differs from the one before, in the mean [RFC 3550 §6.4.1] | s | each ACK |
//! | a round: SRTT, 100 ms and 4 packets at least | – | one after the other; after a cut, of packets that left since |
//!
//! # Rules
//!
//! - **A queue stands** when five packets in a row found one: W above 15 ms + 2 J. G goes to 0.85 of what this round delivered so
//!   far, or of itself before half a round is over, as GCC does [draft-ietf-rmcat-gcc-02 §5.5].
//! - **A queue stays**: what a cut changed is not heard of for a round trip, and that takes seconds where the capacity has fallen. Until then packets that left
//!   before it, if all of them found a queue, hold G to 0.85 of what the path delivers of them, measured over 300 ms and four packets at least, from report to
//!   report. Each measurement is of the path and not of G: several do not multiply, and the least of them counts.
//! - **A loss in a queue** is congestion: the packets sent just before and after it waited 5 ms + 2 J in the mean; 5 ms
//!   are what CoDel calls a standing queue [RFC 8289 §4.3]. G falls to X. Losses elsewhere are the path's own: they lower X and not G. To
//!   judge a loss by its neighbours' delay is an old idea; what it costs to be wrong is the rate of TFRC.
//! - **Much is lost**, more than a tenth of a round [draft-ietf-rmcat-gcc-02 §6]: as if a queue stood.
//! - **Growth**: after a round without either, of which 70 % of G was used, the next carries three packets more, or what G
//!   sends in 6 ms if that is more, and at most a quarter of G. Before the first sign of a queue it doubles G. A round that
//!   used less than half of G leaves twice what was delivered, as TFRC's recv_limit does.
//! - **Silence**: when TFRC's no-feedback timer expires, G halves with X.
//!
//! # Readings
//!
//! - The round trip is the sender's own measurement, less the delay that the receiver says it held an ACK back. One that
//!   overstates that delay hides a part of a queue; `docs/sim/liars.md` has what each lie gains, less than a fifth. One that holds
//!   reports back unevenly, by H at most, makes J up to H, and may hide a queue of 2 H more; no lie of the tables does.
//! - The start is GCC's 300 kbit/s, unless the flow has a start rate, or W_init per RTT if that is more.
//!
//! # Not implemented
//!
//! ECN, Quick-Start and small packets (TFRC has them), receivers that measure.

mod free;

use super::tfrc::{self, Tfrc};
use crate::controller::{Controller, LossPolicy, SendPoll};
use crate::facts::{Acked, Loss, Sent, Status};
use crate::param::ParamError;
use crate::registry::{Env, SchemeInfo, Settings};
use crate::rtt::RttEstimator;
use fairpace_units::{Duration, Instant, Kind, Rate};
use free::Free;
pub use free::Phase;
use std::collections::BTreeMap;

/// The registry's entry.
pub const INFO: SchemeInfo = SchemeInfo {
    name: "auto",
    title: "Auto: the fair share, and the capacity beyond that nobody waits for",
    source: "ours, over RFC 5348",
    make: |settings, env| Ok(Box::new(Auto::new(settings, env)?)),
    params: free::PARAMS,
};

/// The sender.
#[derive(Clone, Debug)]
pub struct Auto {
    /// X, pacing, and everything that TFRC does with feedback.
    fair: Tfrc,
    /// G.
    free: Free,
}

impl Auto {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(settings: &Settings<'_>, env: &Env) -> Result<Auto, ParamError> {
        let fair = Tfrc::new(&Settings::new(&tfrc::INFO, &BTreeMap::new())?, env)?;
        Ok(Auto { fair, free: Free::new(settings, env)? })
    }

    /// X, TCP's fair share.
    pub fn x(&self) -> Rate {
        self.fair.x()
    }

    /// G.
    pub fn g(&self) -> Rate {
        Rate::bps(self.free.rate() * 8.0)
    }

    /// The law in force.
    pub fn phase(&self) -> Phase {
        self.free.phase()
    }

    /// X may have risen above G, or G changed.
    fn pace(&mut self) {
        self.free.raise_to(self.fair.x().as_bps() / 8.0);
        self.fair.pace_at_least(self.free.rate());
    }
}

impl Controller for Auto {
    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.fair.start(now, srtt);
        self.free.start(now);
        self.pace();
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.fair.on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        self.fair.on_ack(now, ack, rtt);
        if ack.kind == Kind::Data {
            self.free.on_ack(now, ack, rtt.srtt());
            self.pace();
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, rtt: &RttEstimator) {
        self.fair.on_loss(now, loss, rtt);
        self.free.on_loss(now, loss);
        self.pace();
    }

    fn on_timeout(&mut self, now: Instant, rtt: &RttEstimator) {
        self.fair.on_timeout(now, rtt);
    }

    fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        if self.fair.is_silent(now) {
            self.free.on_silence(now);
        }
        self.fair.on_timer(now, rtt);
        self.pace();
    }

    fn set_demand(&mut self, now: Instant, max: Option<Rate>) {
        self.fair.set_demand(now, max);
    }

    fn poll_send(&mut self, at: Instant, has_data: bool) -> SendPoll {
        self.fair.poll_send(at, has_data)
    }

    fn poll_timer(&self) -> Instant {
        self.fair.poll_timer()
    }

    fn target_rate(&self) -> Rate {
        self.fair.target_rate()
    }

    fn status(&self) -> Status {
        let (state, reason) = (self.phase().name(), self.free.reason());
        Status { state, reason, ..self.fair.status() }
    }

    fn loss_policy(&self) -> LossPolicy {
        self.fair.loss_policy()
    }
}

#[cfg(test)]
mod tests;
