//! The success process: which slots of a user deliver a packet while its queue is never empty.
//!
//! The channel moves one step per slot, whether or not something is sent. A try in a slot of the user's own
//! fails with the error probability of the channel's state there. After a success (or after the last try of
//! a packet) the next try is in the user's next slot; after a failure it is in the user's first slot after
//! the silence. So tries are a Markov chain of their own, over (which of the user's slots, state of the
//! channel, number of the try), and between them the channel moves by a power of its matrix.

use super::error::QosError;
use super::matrix::{Matrix, stationary};
use fairpace_path::{ArqScheme, ArqSpec, Channel};

/// From where the n slots of T_n are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An arbitrary slot of a link that has been sending for long. The paper's; means of it are exact.
    Stationary,
    /// The slot after a success. A packet leaves the sender when an ACK arrives, thus an RTT after a success:
    /// what a packet meets. The same as stationary on a channel without memory that never falls silent.
    AfterSuccess,
}

/// The successes of one user of a slotted wireless link, its queue never empty.
#[derive(Clone, Debug)]
pub struct Process {
    /// P(fail) by state.
    pub(super) error: Vec<f64>,
    /// Of each slot of the cycle in which the link's slots are given: the number of the user's turn, if it is his.
    pub(super) turn_at: Vec<Option<usize>>,
    /// The user's turns in a cycle.
    pub(super) turns: Vec<Turn>,
    /// How many tries of a packet are told apart: 1 if their number is not limited.
    pub(super) stages: usize,
    /// Whether a packet is given up after the last stage.
    pub(super) limited: bool,
    /// Tries per cycle in steady state, by turn, stage and state.
    tries: Vec<Vec<Vec<f64>>>,
    throughput: f64,
    give_ups: f64,
}

/// One of the slots that the user has in a cycle.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Its place in the cycle.
    at: usize,
    /// Slots until the user's next, which follows a success.
    pub(super) next: usize,
    /// Slots until the next try after a failure.
    pub(super) retry: usize,
    /// The channel over `next` slots.
    pub(super) over_next: Matrix,
    /// The channel over `retry` slots.
    pub(super) over_retry: Matrix,
}

/// Where the count begins: a place in the cycle of slots, and the tries that are pending there.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// Place of the first slot in the cycle.
    pub(super) at: usize,
    /// Slots ahead, stage, mass by the channel's state in that slot.
    pub(super) pending: Vec<(usize, usize, Vec<f64>)>,
}

/// Above this many turns times states the steady state takes seconds.
const MOST_STATES: usize = 1_024;
/// The longest silence, slots: as of the link.
const MOST_DELAY: u32 = 10_000;
/// The most tries of a packet that are told apart.
const MOST_TRIES: u32 = 1_024;

impl Process {
    /// A user that has all slots of the link. `retry_delay` is in slots, on top of the scheme's own silence.
    ///
    /// # Errors
    /// A channel that is none, or on which nothing arrives.
    pub fn new(channel: &Channel, scheme: ArqScheme, retry_delay: u32) -> Result<Process, QosError> {
        Process::in_turns(channel, scheme, retry_delay, &[true])
    }

    /// A user that has the slots in which `turns`, repeated for ever, is true; the others' are lost to it.
    ///
    /// # Errors
    /// As [`Process::new`]; no turn at all, or more than the analysis can do.
    pub fn in_turns(
        channel: &Channel,
        scheme: ArqScheme,
        retry_delay: u32,
        turns: &[bool],
    ) -> Result<Process, QosError> {
        channel.validate()?;
        if retry_delay > MOST_DELAY {
            return Err(QosError::OutOfRange {
                field: "retry_delay",
                found: retry_delay.to_string(),
                allowed: format!("at most {MOST_DELAY}"),
                nearest: MOST_DELAY.to_string(),
            });
        }
        let states = channel.error.len();
        let own: Vec<usize> = (0..turns.len()).filter(|&i| turns[i]).collect();
        if own.is_empty() || own.len().saturating_mul(states) > MOST_STATES {
            return Err(QosError::OutOfRange {
                field: "turns of the user in a cycle, times states of the channel",
                found: (own.len() * states).to_string(),
                allowed: format!("1 to {MOST_STATES}"),
                nearest: if own.is_empty() { "1".to_owned() } else { MOST_STATES.to_string() },
            });
        }
        let (stages, limited) = match scheme {
            ArqScheme::None => (1, true),
            ArqScheme::Limited { retries } if retries >= MOST_TRIES => {
                return Err(QosError::OutOfRange {
                    field: "retries",
                    found: retries.to_string(),
                    allowed: format!("0 to {}, or `persistent`", MOST_TRIES - 1),
                    nearest: (MOST_TRIES - 1).to_string(),
                });
            }
            ArqScheme::Limited { retries } => (retries as usize + 1, true),
            ArqScheme::Persistent | ArqScheme::Optimal => (1, false),
        };
        let silence = retry_delay as usize + usize::from(matches!(scheme, ArqScheme::Optimal));
        let step = Matrix::from_rows(&channel.transition);
        let gap = |at: usize, silent: usize| {
            // Found within the cycle after the silence: there is a turn in each.
            (silent + 1..=silent + turns.len()).find(|g| turns[(at + g) % turns.len()]).unwrap_or(silent + 1)
        };
        let turn = |at: usize| {
            let (next, retry) = (gap(at, 0), gap(at, silence));
            Turn { at, next, retry, over_next: step.power(next), over_retry: step.power(retry) }
        };
        let mut turn_at = vec![None; turns.len()];
        for (k, &at) in own.iter().enumerate() {
            turn_at[at] = Some(k);
        }
        let mut process = Process {
            error: channel.error.clone(),
            turn_at,
            turns: own.iter().map(|&at| turn(at)).collect(),
            stages,
            limited,
            tries: Vec::new(),
            throughput: 0.0,
            give_ups: 0.0,
        };
        process.settle()?;
        Ok(process)
    }

    /// User `user` of `spec`, with the slots that its weight gives it. On a work-conserving link that is what it
    /// has while all others send, and no less otherwise.
    ///
    /// # Errors
    /// As [`Process::in_turns`]; a specification that is none.
    pub fn of_user(spec: &ArqSpec, user: usize) -> Result<Process, QosError> {
        spec.validate()?;
        let Some(of_user) = spec.users.get(user) else {
            return Err(QosError::OutOfRange {
                field: "user",
                found: user.to_string(),
                allowed: format!("0 to {}", spec.users.len() - 1),
                nearest: (spec.users.len() - 1).to_string(),
            });
        };
        let turns: Vec<bool> = spec.frame().iter().map(|&owner| owner as usize == user).collect();
        Process::in_turns(&of_user.channel, spec.scheme, spec.retry_delay, &turns)
    }

    /// Deliveries per slot in the long run, between 0 and 1.
    pub fn throughput(&self) -> f64 {
        self.throughput
    }

    /// The share of the packets that are given up after their last try; 0 where tries are not limited.
    pub fn give_up_ratio(&self) -> f64 {
        self.give_ups / (self.throughput + self.give_ups)
    }

    /// Packets per slot that leave the queue, delivered or given up.
    pub fn departure_rate(&self) -> f64 {
        self.throughput + self.give_ups
    }

    /// The smallest window at which the queue of flows of minimal RTT `r` slots is never empty: one more than can
    /// be on their way in r - 1 slots. Of a user that has all slots it is R. From there on eq. (3) is exact.
    pub fn full_window(&self, r: u32) -> u32 {
        let (cycle, span) = (self.turn_at.len(), r.saturating_sub(1) as usize);
        let in_slots = |from: usize, n: usize| (from..from + n).filter(|i| self.turn_at[i % cycle].is_some()).count();
        let rest = (0..cycle).map(|from| in_slots(from, span % cycle)).max().unwrap_or(0);
        (span / cycle * self.turns.len() + rest + 1) as u32
    }

    /// All places of the cycle in which the n slots can begin, each with what is pending there; the masses of all
    /// of them add up to 1.
    pub(super) fn seeds(&self, start: Start) -> Vec<Seed> {
        let cycle = self.turn_at.len();
        match start {
            Start::AfterSuccess => {
                let seeds = self.turns.iter().zip(&self.tries).map(|(turn, tries)| {
                    let scale = 1.0 / (self.throughput * cycle as f64);
                    let good = self.sum(tries, |e| (1.0 - e) * scale);
                    let pending = vec![(turn.next - 1, 0, turn.over_next.apply(&good))];
                    Seed { at: (turn.at + 1) % cycle, pending }
                });
                seeds.collect()
            }
            Start::Stationary => {
                let longest = self.turns.iter().map(|t| t.retry).max().unwrap_or(1);
                let seeds = (0..cycle).map(|at| {
                    let mut pending = Vec::new();
                    // A try d slots ago is followed by one now or later.
                    for d in 1..=longest {
                        let Some(k) = self.turn_at[(at + d * (cycle - 1)) % cycle] else { continue };
                        let turn = &self.turns[k];
                        let scale = 1.0 / cycle as f64;
                        if turn.next >= d {
                            let mut mass = self.sum(&self.tries[k], |e| (1.0 - e) * scale);
                            if self.limited {
                                let last = &self.tries[k][self.stages - 1];
                                for ((m, y), e) in mass.iter_mut().zip(last).zip(&self.error) {
                                    *m += y * e * scale;
                                }
                            }
                            pending.push((turn.next - d, 0, turn.over_next.apply(&mass)));
                        }
                        if turn.retry >= d {
                            for (stage, tries) in self.tries[k].iter().enumerate() {
                                let Some(to) = self.after_failure(stage) else { continue };
                                let bad: Vec<f64> = tries.iter().zip(&self.error).map(|(y, e)| y * e * scale).collect();
                                pending.push((turn.retry - d, to, turn.over_retry.apply(&bad)));
                            }
                        }
                    }
                    Seed { at, pending }
                });
                seeds.collect()
            }
        }
    }

    /// The stage of the next try of a packet whose try of `stage` failed; none: it is given up.
    pub(super) fn after_failure(&self, stage: usize) -> Option<usize> {
        match self.limited {
            false => Some(stage),
            true => (stage + 1 < self.stages).then_some(stage + 1),
        }
    }

    fn sum(&self, tries: &[Vec<f64>], weight: impl Fn(f64) -> f64) -> Vec<f64> {
        let of_state = |i: usize| tries.iter().map(|y| y[i]).sum::<f64>() * weight(self.error[i]);
        (0..self.error.len()).map(of_state).collect()
    }

    /// The steady state: how often each kind of try is made.
    fn settle(&mut self) -> Result<(), QosError> {
        let (states, turns) = (self.error.len(), self.turns.len());
        let size = turns * states;
        // From the first try of a packet to the first of the next.
        let rows: Vec<Vec<f64>> = (0..size)
            .map(|row| {
                let mut first = vec![0.0; size];
                let mut v = vec![0.0; size];
                v[row] = 1.0;
                for stage in 0..self.stages {
                    self.move_on(&v, 1.0, -1.0, false, &mut first);
                    let mut again = vec![0.0; size];
                    match self.after_failure(stage) {
                        None => self.move_on(&v, 0.0, 1.0, false, &mut first),
                        Some(to) if to == stage => self.move_on(&v, 0.0, 1.0, true, &mut first),
                        Some(_) => self.move_on(&v, 0.0, 1.0, true, &mut again),
                    }
                    v = again;
                }
                first
            })
            .collect();
        let mut v = stationary(&rows).ok_or(QosError::Locked)?;
        let mut tries = vec![vec![vec![0.0; states]; self.stages]; turns];
        for stage in 0..self.stages {
            for (k, of_turn) in tries.iter_mut().enumerate() {
                of_turn[stage].copy_from_slice(&v[k * states..(k + 1) * states]);
            }
            let mut again = vec![0.0; size];
            self.move_on(&v, 0.0, 1.0, true, &mut again);
            v = again;
        }
        // Each slot lies between a try (included) and the next (excluded).
        let (mut slots, mut good, mut given_up) = (0.0, 0.0, 0.0);
        for (turn, of_turn) in self.turns.iter().zip(&tries) {
            for (stage, of_stage) in of_turn.iter().enumerate() {
                for (y, e) in of_stage.iter().zip(&self.error) {
                    let retried = self.after_failure(stage).is_some();
                    slots += y * ((1.0 - e) * turn.next as f64);
                    slots += y * e * if retried { turn.retry } else { turn.next } as f64;
                    good += y * (1.0 - e);
                    given_up += if retried { 0.0 } else { y * e };
                }
            }
        }
        if good <= 0.0 {
            return Err(QosError::NothingArrives);
        }
        let cycle = self.turn_at.len() as f64;
        tries.iter_mut().flatten().flatten().for_each(|y| *y *= cycle / slots);
        self.tries = tries;
        self.throughput = good / slots;
        self.give_ups = given_up / slots;
        Ok(())
    }

    /// Adds to `to` where the tries `v` lead that end with probability `constant + slope e`: to the user's next slot
    /// or, `retry`, to the next try of the same packet.
    fn move_on(&self, v: &[f64], constant: f64, slope: f64, retry: bool, to: &mut [f64]) {
        let states = self.error.len();
        let cycle = self.turn_at.len();
        for (turn, v) in self.turns.iter().zip(v.chunks(states)) {
            let (gap, over) = if retry { (turn.retry, &turn.over_retry) } else { (turn.next, &turn.over_next) };
            let Some(k) = self.turn_at[(turn.at + gap) % cycle] else { continue };
            let part: Vec<f64> = v.iter().zip(&self.error).map(|(v, e)| v * (constant + slope * e)).collect();
            for (to, m) in to[k * states..(k + 1) * states].iter_mut().zip(over.apply(&part)) {
                *to += m;
            }
        }
    }
}
