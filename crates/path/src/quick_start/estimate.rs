//! How much of a channel is free: what a Quick-Start router must know before it approves anything.
//!
//! Source: [qsd App. A], after RFC 4782 App. D and Sarolahti, Allman and Floyd (2007).

use fairpace_units::{Duration, Instant, RandomStream, Rate};
use std::collections::VecDeque;

/// What a router believes of its channel when a request arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Free {
    /// What the channel carries.
    pub capacity: Rate,
    /// What of it is taken.
    pub used: Rate,
}

/// What happened on a channel since the observation before: with DAMA, one per TBTP [qsd App. A].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// What the channel carries.
    pub capacity: Rate,
    /// Granted because it was asked for or is a terminal's own: minimum, CRA, RBDC, VBDC.
    pub assigned: Rate,
    /// Granted beyond that, so as to leave nothing idle: FCA.
    pub free_assigned: Rate,
    /// Sent by the terminals, asked for or not.
    pub sent: Rate,
}

/// Which number stands for the last N observations.
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
    /// N, at least 1; the paper's value is 1: the last alone.
    pub observations: usize,
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

/// When a terminal fades, and what it still hears then [qsd §A.2.2.2].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fade {
    /// Mean length of a time of clear sky, exponential; above zero.
    pub clear: Duration,
    /// Mean length of a fade, exponential; above zero.
    pub length: Duration,
    /// The share of the bursts that it hears in a fade, 0 to 1. It takes the others for silence.
    pub heard: f64,
}

/// What is known of one carrier: the observations that every terminal on it shares.
#[derive(Clone, Debug)]
pub struct Channel {
    window: LoadWindow,
    seen: VecDeque<Observation>,
    /// What the NCC has decided and not yet told.
    decided: Option<Observation>,
}

impl Channel {
    /// A channel that nothing is known of: nothing of it is free.
    pub fn new(window: LoadWindow) -> Self {
        Channel { window, seen: VecDeque::with_capacity(window.observations), decided: None }
    }

    /// The NCC has decided: what it answers a terminal that asks from now on ([`Estimator::OnDemand`]).
    pub fn decided(&mut self, allocation: Observation) {
        self.decided = Some(allocation);
    }

    /// A TBTP has arrived: what it says, and what was sent since the one before.
    pub fn observe(&mut self, observation: Observation) {
        if self.seen.len() >= self.window.observations.max(1) {
            self.seen.pop_front();
        }
        self.seen.push_back(observation);
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
    /// The terminal whose random numbers are `random`. It begins in clear sky.
    pub fn new(estimator: Estimator, mut random: RandomStream) -> Self {
        let until = match estimator {
            Estimator::Listening { fade: Some(fade), .. } => Instant::ZERO + random.exponential(fade.clear),
            _ => Instant::NEVER,
        };
        Ear { estimator, random, fading: false, until }
    }

    /// What this terminal believes at `now`. Each call is a measurement of its own.
    pub fn estimate(&mut self, now: Instant, channel: &Channel) -> Free {
        match self.estimator {
            Estimator::Broadcast => channel.over_window(|o| o.assigned),
            Estimator::OnDemand => match channel.decided {
                Some(o) => Free { capacity: o.capacity, used: o.assigned },
                None => channel.over_window(|o| o.assigned),
            },
            Estimator::TbtpSum => channel.over_window(|o| o.assigned + o.free_assigned),
            Estimator::Listening { inaccuracy, fade, spots } => {
                let Free { capacity, used } = channel.over_window(|o| o.sent);
                let heard = fade.filter(|fade| self.fades(now, fade)).map_or(1.0, |fade| fade.heard);
                let error = 1.0 + inaccuracy * (2.0 * self.random.uniform() - 1.0);
                let share = 1.0 / f64::from(spots.max(1));
                Free { capacity: capacity * share, used: (used * (share * heard * error)).min(capacity * share) }
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
