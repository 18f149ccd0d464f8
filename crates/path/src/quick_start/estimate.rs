//! How much of a channel is free: what a Quick-Start router must know before it approves anything.
//!
//! Source: [qsd App. A]; the moving average and the moving peak are those of Sarolahti, Allman and Floyd
//! (2007), the peak is also in [RFC 4782 App. D]. Page: `docs/links/quick-start.md`.
//!
//! | way | [qsd App. A] | what counts as used | delay of the request | seen by |
//! | --- | --- | --- | --- | --- |
//! | `Broadcast` | A.1.1 | what was granted on request | none | all alike |
//! | `OnDemand` | A.1.2 | the same, as the NCC has it now | RTT_m | who asks |
//! | `TbtpSum` | A.2.1 | every slot that is somebody's, FCA included | none | all alike |
//! | `Listening` | A.2.2 | what is heard to be sent | none | each for itself |
//!
//! **Readings.** (a) The NCC's figure takes capacity handed out by FCA for free, which it is: the NCC can
//! take it back. That holds until a terminal asks for it, as F of eq. (1). A sum over the TBTP cannot tell it
//! apart: so with FCA everything looks taken, which is why the paper goes on to listening. (b) Listening is inaccurate by itself, as it sees bursts instead of
//! requests; `inaccuracy` is a terminal's own error on top. (c) In a deep fade the terminal takes bursts
//! it cannot hear for silence, and so believes in more room than there is. (d) With several spots it
//! neither hears the other spots' share nor speaks for it: capacity and load are those of its own.

use super::QsError;
use fairpace_units::{Duration, Instant, RandomStream, Rate};
use std::collections::VecDeque;

/// The longest window.
const MOST_OBSERVATIONS: usize = 1_000;

/// Shorter means would be noise, and slow to follow over a long time.
const SHORTEST_FADE: Duration = Duration::from_millis(1);

/// A router's estimate of its channel when a request arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Free {
    /// The channel's capacity.
    pub capacity: Rate,
    /// The part of the capacity that is taken.
    pub used: Rate,
}

/// The traffic of a channel since the observation before: with DAMA, one per TBTP [qsd App. A].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The channel's capacity.
    pub capacity: Rate,
    /// Granted because it was asked for or is a terminal's own: minimum, CRA, RBDC, VBDC.
    pub assigned: Rate,
    /// Granted beyond that, so as to leave nothing idle: FCA.
    pub free_assigned: Rate,
    /// Sent by the terminals, asked for or not.
    pub sent: Rate,
}

/// The number that stands for the last N observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Statistic {
    /// Their mean.
    #[default]
    Average,
    /// The highest load among them: slower to believe that something is free.
    Peak,
}

/// The moving average or the moving peak of N equally spaced observations [qsd App. A].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWindow {
    /// Average or peak.
    pub statistic: Statistic,
    /// N, 1 to 1,000; the paper's value is 1: the last alone.
    pub observations: usize,
}

impl LoadWindow {
    pub(super) fn validate(&self) -> Result<(), QsError> {
        if (1..=MOST_OBSERVATIONS).contains(&self.observations) {
            return Ok(());
        }
        let found = self.observations as f64;
        Err(QsError { field: "load.observations", found, allowed: "from 1 to 1000" })
    }
}

impl Default for LoadWindow {
    fn default() -> Self {
        LoadWindow { statistic: Statistic::Average, observations: 1 }
    }
}

/// How a terminal learns what is free on its carrier [qsd App. A].
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Estimator {
    /// The NCC says it with each TBTP [qsd §A.1.1]: no delay, FCA known for what it is. The paper's.
    #[default]
    Broadcast,
    /// The terminal asks the NCC for each request and holds it until the answer is there, one RTT_m
    /// later [qsd §A.1.2]. The NCC answers with its latest allocation, so there is nothing to average.
    OnDemand,
    /// The slots of the last TBTP that are nobody's [qsd §A.2.1]. With FCA there are none left.
    TbtpSum,
    /// The terminal hears who sends [qsd §A.2.2].
    Listening {
        /// Half-width of the relative error of a measurement, 0 to 1: what it takes for the load is
        /// uniform within `1 ± inaccuracy` of what it hears.
        inaccuracy: f64,
        /// Times of deep fading [qsd §A.2.2.2]; `None` if the sky is always clear.
        fade: Option<Fade>,
        /// Spots among which the carrier's traffic is spread evenly, at least 1. A terminal hears its own,
        /// and can speak for that share of the carrier only [qsd §A.2.2.3].
        spots: u32,
    },
}

impl Estimator {
    pub(super) fn validate(&self) -> Result<(), QsError> {
        let Estimator::Listening { inaccuracy, fade, spots } = self else { return Ok(()) };
        let bad = |field, found, allowed| Err(QsError { field, found, allowed });
        if !(0.0..=1.0).contains(inaccuracy) {
            return bad("estimator.inaccuracy", *inaccuracy, "from 0 to 1");
        }
        if *spots == 0 {
            return bad("estimator.spots", 0.0, "at least 1");
        }
        let Some(Fade { clear, length, heard }) = fade else { return Ok(()) };
        for (field, mean) in [("estimator.fade.clear", clear), ("estimator.fade.length", length)] {
            if *mean < SHORTEST_FADE {
                return bad(field, mean.as_secs_f64(), "at least 0.001 s");
            }
        }
        if !(0.0..=1.0).contains(heard) {
            return bad("estimator.fade.heard", *heard, "from 0 to 1");
        }
        Ok(())
    }
}

/// When a terminal fades, and what it still hears then [qsd §A.2.2.2].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fade {
    /// Mean length of a time of clear sky, exponential; at least 1 ms.
    pub clear: Duration,
    /// Mean length of a fade, exponential; at least 1 ms.
    pub length: Duration,
    /// The share of the bursts that it hears in a fade, 0 to 1. The terminal takes the other bursts for silence.
    pub heard: f64,
}

/// The shared knowledge of one carrier: the observations that every terminal on it shares.
#[derive(Clone, Debug)]
pub struct Channel {
    window: LoadWindow,
    seen: VecDeque<Observation>,
    /// The NCC's decision that is not yet announced.
    decided: Option<Observation>,
}

impl Channel {
    /// A channel that nothing is known of: nothing of it is free. Tell it at once what holds at the beginning.
    pub fn new(window: LoadWindow) -> Self {
        Channel { window, seen: VecDeque::new(), decided: None }
    }

    /// The NCC has decided: what it answers a terminal that asks from now on ([`Estimator::OnDemand`]).
    pub fn decided(&mut self, allocation: Observation) {
        self.decided = Some(allocation);
    }

    /// A TBTP has arrived: what it says, and what was sent since the one before.
    pub fn observe(&mut self, observation: Observation) {
        if self.seen.len() >= self.window.observations {
            self.seen.pop_front();
        }
        self.seen.push_back(observation);
    }

    /// The traffic sent, over the window.
    pub(crate) fn sent(&self) -> Free {
        self.over_window(|o| o.sent)
    }

    /// The statistic of `load` over the window, and the capacity last seen.
    fn over_window(&self, load: impl Fn(&Observation) -> Rate) -> Free {
        let Some(last) = self.seen.back() else { return Free { capacity: Rate::ZERO, used: Rate::ZERO } };
        let loads = self.seen.iter().map(|o| load(o).as_bps());
        let used = match self.window.statistic {
            Statistic::Average => loads.sum::<f64>() / self.seen.len() as f64,
            Statistic::Peak => loads.fold(0.0, f64::max),
        };
        Free { capacity: last.capacity, used: Rate::bps(used) }
    }
}

/// One terminal's way of knowing: its estimator, and what only it goes through.
#[derive(Clone, Debug)]
pub struct Ear {
    estimator: Estimator,
    random: RandomStream,
    fading: bool,
    /// Until when it stays so.
    until: Instant,
}

impl Ear {
    /// The terminal whose random numbers are `random`. The weather begins as clear sky.
    pub fn new(estimator: Estimator, mut random: RandomStream) -> Self {
        let until = match estimator {
            Estimator::Listening { fade: Some(fade), .. } => Instant::ZERO + random.exponential(fade.clear),
            _ => Instant::NEVER,
        };
        Ear { estimator, random, fading: false, until }
    }

    /// This terminal's estimate at `now`. Each call is a measurement of its own.
    pub fn estimate(&mut self, now: Instant, channel: &Channel) -> Free {
        match self.estimator {
            Estimator::Broadcast => channel.over_window(|o| o.assigned),
            Estimator::OnDemand => match channel.decided {
                Some(o) => Free { capacity: o.capacity, used: o.assigned },
                None => channel.over_window(|o| o.assigned),
            },
            Estimator::TbtpSum => channel.over_window(|o| o.assigned + o.free_assigned),
            Estimator::Listening { inaccuracy, fade, spots } => {
                let Free { capacity, used } = channel.sent();
                let heard = fade.filter(|fade| self.fades(now, fade)).map_or(1.0, |fade| fade.heard);
                let error = 1.0 + inaccuracy * (2.0 * self.random.uniform() - 1.0);
                let share = 1.0 / f64::from(spots.max(1));
                Free { capacity: capacity * share, used: used * (share * heard * error) }
            }
        }
    }

    /// Whether the terminal is in a fade at `now`.
    fn fades(&mut self, now: Instant, fade: &Fade) -> bool {
        while self.until <= now {
            self.fading = !self.fading;
            let mean = if self.fading { fade.length } else { fade.clear };
            self.until += self.random.exponential(mean).max(Duration::from_nanos(1));
        }
        self.fading
    }
}

#[cfg(test)]
mod tests;
