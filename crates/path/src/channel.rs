//! The wireless channel: a Markov chain with an error probability per state, one step per slot.
//!
//! Source: [aimd §IV], the M-state Markov model; the error probability p_e and the memory λ of its two-state
//! channel. Rayleigh fading as such a chain: `channel/fading.rs`. Page: `docs/links/arq.md`.
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | M | `error.len()` | states |
//! | p_e | `p_e`, [`Channel::error_probability`] | probability |
//! | λ | `lambda`, [`Channel::memory`] | – |
//!
//! **Reading.** The paper's memory λ is the second eigenvalue of the success/failure chain: what of the
//! excess probability of a failure, right after a failure, is left one slot later.

mod fading;

pub use fading::{FadingError, Modulation, Rayleigh};

use fairpace_units::RandomStream;

/// A channel: in each slot it is in one of its states, and what is sent then fails with the probability of
/// that state. After each slot, whether or not anything was sent in it, the state changes by `transition`;
/// the state of the first slot is drawn from the stationary distribution.
///
/// The constructors make valid channels. One that is put together by hand must pass [`Channel::validate`]
/// before anything else is asked of it.
///
/// ```
/// use fairpace_path::Channel;
/// let channel = Channel::two_state(0.1, 0.35)?;
/// assert!((channel.transition[1][1] - (0.1 + 0.35 * 0.9)).abs() < 1e-12); // bad stays bad
/// assert!((channel.error_probability() - 0.1).abs() < 1e-12);
/// assert!((channel.memory() - 0.35).abs() < 1e-12);
/// # Ok::<(), fairpace_path::ChannelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Row i: from state i, the probability of each state in the next slot. 1 to 64 states; each row sums to
    /// one within 1e-9, and every state can be reached from every other.
    pub transition: Vec<Vec<f64>>,
    /// The probability with which what is sent in each state fails, from 0 to 1; not 1 in all of them.
    pub error: Vec<f64>,
}

/// The most states.
const MOST_STATES: usize = 64;

/// How far a row may be from summing to one.
const ROW_TOLERANCE: f64 = 1e-9;

/// Why a [`Channel`] is refused: the field, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChannelError {
    /// A number out of its range.
    #[error("`{field}` is {found}; it must be {allowed}")]
    OutOfRange {
        /// The field.
        field: String,
        /// The value given.
        found: f64,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// Not as many rows, columns and error probabilities as states.
    #[error("`{field}` has {found} entries for {states} states (as many as `error` has)")]
    NotSquare {
        /// The vector of the wrong length.
        field: String,
        /// Its length.
        found: usize,
        /// The states.
        states: usize,
    },
    /// A row that is no distribution.
    #[error("`transition[{row}]` sums to {found}, not to 1 (within 1e-9)")]
    RowSum {
        /// The row's index, from zero.
        row: usize,
        /// Its sum.
        found: f64,
    },
    /// A state that is left for ever, or never entered.
    #[error(
        "state {to} cannot be reached from state {from} by `transition`; leave out the states that do not come back"
    )]
    NotIrreducible {
        /// From there.
        from: usize,
        /// No way there.
        to: usize,
    },
    /// A channel that passes nothing.
    #[error("`error` is 1 in every state: nothing would ever pass")]
    NothingPasses,
    /// A two-state channel whose memory would need a negative probability.
    #[error("`memory` is {found}; with an error probability of {p_e} it must be from {least} to below 1")]
    Memory {
        /// The memory given.
        found: f64,
        /// The error probability given.
        p_e: f64,
        /// The least memory at that error probability.
        least: f64,
    },
}

impl Channel {
    /// Each slot fails with probability `p_e` (from 0 to below 1), whatever happened before: one state.
    ///
    /// # Errors
    /// [`ChannelError::OutOfRange`] outside that range.
    pub fn memoryless(p_e: f64) -> Result<Channel, ChannelError> {
        in_range("error_probability", p_e, (0.0..1.0).contains(&p_e), "from 0 to below 1")?;
        Ok(Channel { transition: vec![vec![1.0]], error: vec![p_e] })
    }

    /// A good state in which nothing fails and a bad one in which all does, in this order; `p_e` of the slots
    /// are bad (from 0 to below 1), and the second eigenvalue is `lambda`: P(bad → bad) = p_e + λ (1 - p_e),
    /// P(good → bad) = p_e (1 - λ). λ is below 1, and not so far below 0 that one of these were negative. An
    /// error probability of 0 makes a channel of one state, as the bad one would never be entered.
    ///
    /// # Errors
    /// [`ChannelError::OutOfRange`] or [`ChannelError::Memory`], with what is allowed.
    pub fn two_state(p_e: f64, lambda: f64) -> Result<Channel, ChannelError> {
        in_range("error_probability", p_e, (0.0..1.0).contains(&p_e), "from 0 to below 1")?;
        let least = -(p_e / (1.0 - p_e)).min((1.0 - p_e) / p_e);
        // Where only just allowed, rounding may put a probability below zero.
        if !(least - 1e-12..1.0).contains(&lambda) {
            return Err(ChannelError::Memory { found: lambda, p_e, least });
        }
        if p_e == 0.0 {
            return Self::memoryless(0.0);
        }
        let stay_bad = (p_e + lambda * (1.0 - p_e)).clamp(0.0, 1.0);
        let turn_bad = (p_e * (1.0 - lambda)).clamp(0.0, 1.0);
        let transition = vec![vec![1.0 - turn_bad, turn_bad], vec![1.0 - stay_bad, stay_bad]];
        Ok(Channel { transition, error: vec![0.0, 1.0] })
    }

    /// Whether this is a channel.
    ///
    /// # Errors
    /// The first field that cannot be.
    pub fn validate(&self) -> Result<(), ChannelError> {
        let states = self.error.len();
        let allowed = "from 1 to 64";
        in_range("states", states as f64, (1..=MOST_STATES).contains(&states), allowed)?;
        let square = |field: String, found| {
            if found == states { Ok(()) } else { Err(ChannelError::NotSquare { field, found, states }) }
        };
        square("transition".to_owned(), self.transition.len())?;
        for (i, row) in self.transition.iter().enumerate() {
            square(format!("transition[{i}]"), row.len())?;
            for (j, &p) in row.iter().enumerate() {
                in_range(&format!("transition[{i}][{j}]"), p, (0.0..=1.0).contains(&p), "from 0 to 1")?;
            }
            let found: f64 = row.iter().sum();
            if (found - 1.0).abs() > ROW_TOLERANCE {
                return Err(ChannelError::RowSum { row: i, found });
            }
        }
        for (i, &e) in self.error.iter().enumerate() {
            in_range(&format!("error[{i}]"), e, (0.0..=1.0).contains(&e), "from 0 to 1")?;
        }
        if self.error.iter().all(|&e| e == 1.0) {
            return Err(ChannelError::NothingPasses);
        }
        for from in 0..states {
            if let Some(to) = self.reached_from(from).iter().position(|&reached| !reached) {
                return Err(ChannelError::NotIrreducible { from, to });
            }
        }
        Ok(())
    }

    /// How many states.
    pub fn states(&self) -> usize {
        self.error.len()
    }

    /// In which part of the slots it is in each state, in the long run. By the algorithm of Grassmann, Taksar
    /// and Heyman (1985), which has no subtraction in it: exact to rounding for every channel that
    /// [`Channel::validate`] lets pass.
    pub fn stationary(&self) -> Vec<f64> {
        let states = self.states();
        let mut p = self.transition.clone();
        // State n is taken out: whoever went there goes on to where it leads, n itself apart.
        for n in (1..states).rev() {
            let leave: f64 = p[n][..n].iter().sum();
            let (before, rest) = p.split_at_mut(n);
            for row in before {
                row[n] /= leave;
                for j in 0..n {
                    row[j] += row[n] * rest[0][j];
                }
            }
        }
        let mut pi = vec![1.0; states];
        for n in 1..states {
            pi[n] = (0..n).map(|i| pi[i] * p[i][n]).sum();
        }
        let sum: f64 = pi.iter().sum();
        pi.iter().map(|x| x / sum).collect()
    }

    /// p_e: which part of what is sent fails, if something is sent in every slot.
    pub fn error_probability(&self) -> f64 {
        self.stationary().iter().zip(&self.error).map(|(pi, e)| pi * e).sum()
    }

    /// λ: the eigenvalue of `transition` that is second in modulus, from -1 to 1; zero for one state. With
    /// two states the covariance of two failures n slots apart falls as λ^n, exactly; with more it does so
    /// in the end. If that eigenvalue is complex, or there is one of the other sign beside it, the modulus.
    pub fn memory(&self) -> f64 {
        let states = self.states();
        if states == 2 {
            return self.transition[0][0] + self.transition[1][1] - 1.0;
        }
        // A = P - 1 π has the eigenvalues of P but for the one. A^(2^k) by squaring, its norm kept apart:
        // |λ| = lim |A^n|^(1/n).
        let pi = self.stationary();
        let a: Vec<Vec<f64>> =
            self.transition.iter().map(|row| row.iter().zip(&pi).map(|(p, pi)| p - pi).collect()).collect();
        let (mut power, mut log_norm, mut n) = (a.clone(), 0.0, 1.0);
        for _ in 0..50 {
            let size = norm(&power);
            if size < 1e-14 {
                return 0.0;
            }
            power.iter_mut().flatten().for_each(|x| *x /= size);
            log_norm += libm::log(size) / n;
            power = product(&power, &power);
            n *= 2.0;
        }
        let modulus = libm::exp(log_norm).min(1.0);
        // One step more multiplies by λ, if it is real and alone.
        let next = product(&power, &a);
        let dot = |x: &[Vec<f64>], y: &[Vec<f64>]| -> f64 {
            x.iter().flatten().zip(y.iter().flatten()).map(|(x, y)| x * y).sum()
        };
        let ratio = dot(&next, &power) / dot(&power, &power);
        if (ratio + modulus).abs() < 1e-6 * modulus { -modulus } else { modulus }
    }

    /// The states that can be reached from that one, itself included.
    fn reached_from(&self, from: usize) -> Vec<bool> {
        let mut reached = vec![false; self.states()];
        let mut todo = vec![from];
        reached[from] = true;
        while let Some(i) = todo.pop() {
            for (j, &p) in self.transition[i].iter().enumerate() {
                if p > 0.0 && !reached[j] {
                    reached[j] = true;
                    todo.push(j);
                }
            }
        }
        reached
    }
}

fn in_range(field: &str, found: f64, ok: bool, allowed: &'static str) -> Result<(), ChannelError> {
    if ok { Ok(()) } else { Err(ChannelError::OutOfRange { field: field.to_owned(), found, allowed }) }
}

/// The largest sum of moduli in a row.
fn norm(a: &[Vec<f64>]) -> f64 {
    a.iter().map(|row| row.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max)
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let columns = b.first().map_or(0, Vec::len);
    let mut c = vec![vec![0.0; columns]; a.len()];
    for (row, into) in a.iter().zip(&mut c) {
        for (x, other) in row.iter().zip(b) {
            for (sum, y) in into.iter_mut().zip(other) {
                *sum += x * y;
            }
        }
    }
    c
}

/// A [`Channel`] in time: whether what is sent in a slot fails.
///
/// One draw per slot decides on state and failure together, so that they are a function of the seed and the
/// slot alone, whatever was sent before. Failures have the lower end of the draws: of two memoryless channels
/// of one name, or two with the same memory, the one with the higher p_e fails in all slots in which the other does.
#[derive(Clone, Debug)]
pub(crate) struct Fading {
    /// The states that may follow each state.
    rows: Vec<Vec<Outcome>>,
    transition: Vec<Vec<f64>>,
    random: RandomStream,
    state: u32,
    fails: bool,
    /// Slots that were stepped through.
    slots: u64,
}

#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// A draw below this, and not below that of the one before.
    below: f64,
    state: u32,
    fails: bool,
}

/// From so many slots on, a gap is taken in one step, by a power of the matrix.
const LONG_GAP: u64 = 1 << 20;

impl Fading {
    /// The channel must be valid.
    pub(crate) fn new(channel: &Channel, random: RandomStream) -> Fading {
        let outcomes = |weights: &[f64]| outcomes(weights, &channel.error);
        let mut rows: Vec<Vec<Outcome>> = channel.transition.iter().map(|row| outcomes(row)).collect();
        // As if the state before the first slot led to it by the stationary distribution.
        rows.push(outcomes(&channel.stationary()));
        let state = channel.states() as u32;
        Fading { rows, transition: channel.transition.clone(), random, state, fails: false, slots: 0 }
    }

    /// Whether what is sent in that slot fails. Slots must not be asked for in falling order. Those between
    /// are stepped through, 1,048,576 or more of them by one draw from the power of the matrix.
    pub(crate) fn fails(&mut self, slot: u64) -> bool {
        if slot.saturating_sub(self.slots) >= LONG_GAP {
            self.skip_to(slot);
        }
        while self.slots <= slot {
            let u = self.random.uniform();
            let row = &self.rows[self.state as usize];
            // The last is not below anything: rows sum to one only nearly.
            let found = row.iter().find(|outcome| u < outcome.below).or(row.last());
            if let Some(&Outcome { state, fails, .. }) = found {
                (self.state, self.fails) = (state, fails);
            }
            self.slots += 1;
        }
        self.fails
    }

    /// To the state of the slot before that one.
    #[cold]
    fn skip_to(&mut self, slot: u64) {
        if self.slots == 0 {
            self.fails(0);
        }
        let mut row = vec![vec![0.0; self.transition.len()]];
        row[0][self.state as usize] = 1.0;
        let (mut power, mut n) = (self.transition.clone(), slot - self.slots);
        while n > 0 {
            if n & 1 == 1 {
                row = product(&row, &power);
            }
            power = product(&power, &power);
            for row in &mut power {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|p| *p /= sum);
            }
            n >>= 1;
        }
        let mut u = self.random.uniform() * row[0].iter().sum::<f64>();
        let mut state = self.state;
        for (i, &p) in row[0].iter().enumerate().filter(|&(_, &p)| p > 0.0) {
            state = i as u32;
            if u < p {
                break;
            }
            u -= p;
        }
        self.state = state;
        self.slots = slot;
    }
}

/// First all that fail, then all that do not.
fn outcomes(weights: &[f64], error: &[f64]) -> Vec<Outcome> {
    let mut below = 0.0;
    let mut found = Vec::new();
    for fails in [true, false] {
        for (state, (weight, e)) in weights.iter().zip(error).enumerate() {
            let p = weight * if fails { *e } else { 1.0 - e };
            if p > 0.0 {
                below += p;
                found.push(Outcome { below, state: state as u32, fails });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
