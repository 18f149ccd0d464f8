//! Rayleigh fading as a Markov chain: from mean SNR and Doppler frequency to states and error probabilities.
//!
//! Source: the states are those of Wang and Moayeri, "Finite-state Markov channel: a useful model for radio
//! communication channels" (IEEE Trans. Veh. Technol. 44(1), 1995), intervals of the SNR. With two states and a
//! threshold it is the model of Zorzi, Rao and Milstein, "On the accuracy of a first-order Markov model for data
//! transmission on fading channels" (ICUPC 1995).
//!
//! | literature | here | unit |
//! | --- | --- | --- |
//! | γ, γ̄ | SNR, `mean_snr_db` | ratio, dB |
//! | x = γ / γ̄ | SNR over its mean, exponential with mean 1 | – |
//! | f_D τ | `doppler` | – |
//! | A_0 = 0 < A_1 < … < A_M = ∞ | `edges`, of x | – |
//! | π_k | e^(-A_k) - e^(-A_k+1) | probability |
//! | r = J_0(2π f_D τ)^2 | `r` | correlation of two powers one slot apart |
//!
//! **Transitions.** With isotropic scattering (Clarke) the amplitudes of two slots are complex Gaussian with the
//! correlation J_0(2π f_D τ). The joint distribution of their powers is a mixture (Kibble): given a number K, geometric
//! with P(K = k) = (1 - r) r^k, both are independent, gamma-distributed with shape k + 1 and scale 1 - r. So
//!
//! P(i → j) = Σ_k (1 - r) r^k G_k(i) G_k(j) / π_i,
//!
//! where G_k(i) is the probability that such a variable lies in state i: to within about 1e-13, for every f_D τ
//! allowed. The chain has the stationary distribution π, and for slow
//! fading P(k → k + 1) tends to Wang and Moayeri's N(A_k+1) τ / π_k, where N(A) = √(2πA) f_D e^(-A) is the rate at which
//! level A is crossed; unlike that, it holds for any Doppler frequency, and crossings of several states are counted.
//!
//! **Readings.** (a) The SNR is constant in a slot. (b) The chain has the right probabilities for two
//! slots in succession; J_0 does not fall like the powers of a number, so that farther apart they are those of the chain.
//! (c) With a threshold, as many states lie below it as their part of the probability gives, but at least one, and at
//! least one above; they are equally probable on each side. With a modulation all are equally probable.
//!
//! **Not implemented.** Coding, diversity, a line of sight (Rice), shadowing.

use super::{Channel, ChannelError, in_range};
use core::f64::consts::{PI, SQRT_2};

/// A Rayleigh-fading channel, constant within a slot, to be made into a chain by [`Channel::rayleigh`].
///
/// ```
/// use fairpace_path::{Channel, FadingError, Rayleigh};
/// // At walking speed (5 km/h) and 2 GHz the Doppler frequency is 9.3 Hz: 0.046 per slot of 5 ms.
/// let error = FadingError::Threshold { snr_db: 10.0 };
/// let channel = Channel::rayleigh(&Rayleigh { states: 2, mean_snr_db: 20.0, doppler: 0.046, error })?;
/// assert!((channel.error_probability() - 0.0952).abs() < 1e-4); // 1 - e^(-10 dB - 20 dB)
/// assert!((channel.memory() - 0.627).abs() < 1e-3);
/// # Ok::<(), fairpace_path::ChannelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rayleigh {
    /// M: how many states, from 2 to 64.
    pub states: usize,
    /// γ̄: the mean SNR, from -100 to 100 dB.
    pub mean_snr_db: f64,
    /// f_D τ: the Doppler frequency (speed / wavelength) times the length of a slot, from 0.00001 to 100.
    pub doppler: f64,
    /// The error probability by SNR.
    pub error: FadingError,
}

/// The error probability of a packet by SNR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FadingError {
    /// Everything below that SNR, nothing from it on.
    Threshold {
        /// In dB, from 90 dB below the mean to 13 dB above it.
        snr_db: f64,
    },
    /// A slot of so many uncoded bits, if one of them or more is wrong: in each state by the average over its SNRs.
    Modulation {
        /// How bits are sent.
        kind: Modulation,
        /// Bits in a slot, at least 1.
        bits: u32,
    },
}

/// How bits are sent, and with it how many of them are wrong at an SNR γ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// Coherent binary phase-shift keying: erfc(√γ) / 2.
    Bpsk,
    /// Coherent quaternary phase-shift keying, Gray-coded, γ that of a symbol of two bits: erfc(√(γ / 2)) / 2.
    Qpsk,
    /// Differential binary phase-shift keying: e^-γ / 2.
    Dbpsk,
    /// Non-coherent orthogonal binary frequency-shift keying: e^(-γ / 2) / 2.
    Fsk,
}

impl Modulation {
    /// The probability that a bit is wrong at the SNR γ (a ratio).
    pub fn bit_error(self, gamma: f64) -> f64 {
        0.5 * match self {
            Modulation::Bpsk => libm::erfc(gamma.sqrt()),
            Modulation::Qpsk => libm::erfc(gamma.sqrt() / SQRT_2),
            Modulation::Dbpsk => libm::exp(-gamma),
            Modulation::Fsk => libm::exp(-gamma / 2.0),
        }
    }
}

impl Channel {
    /// The chain of a Rayleigh-fading channel, its states in order of the SNR, the lowest first. Takes milliseconds;
    /// at a `doppler` of 0.00001 and with 64 states about a second.
    ///
    /// # Errors
    /// [`ChannelError`] names the field of `fading` that cannot be.
    pub fn rayleigh(fading: &Rayleigh) -> Result<Channel, ChannelError> {
        fading.validate()?;
        let (edges, error) = fading.states();
        let j0 = libm::j0(2.0 * PI * fading.doppler);
        let channel = Channel { transition: transitions(&edges, j0 * j0), error };
        channel.validate()?;
        Ok(channel)
    }
}

impl Rayleigh {
    fn validate(&self) -> Result<(), ChannelError> {
        in_range("states", self.states as f64, (2..=super::MOST_STATES).contains(&self.states), "from 2 to 64")?;
        let mean = self.mean_snr_db;
        in_range("mean_snr_db", mean, (-100.0..=100.0).contains(&mean), "from -100 to 100 dB")?;
        let doppler = self.doppler;
        let allowed = "from 0.00001 to 100 (Doppler frequency times slot)";
        in_range("doppler", doppler, (1e-5..=100.0).contains(&doppler), allowed)?;
        match self.error {
            FadingError::Threshold { snr_db } => {
                let ok = (mean - 90.0..=mean + 13.0).contains(&snr_db);
                in_range("error.snr_db", snr_db, ok, "from 90 dB below to 13 dB above `mean_snr_db`")
            }
            FadingError::Modulation { bits, .. } => in_range("error.bits", f64::from(bits), bits >= 1, "at least 1"),
        }
    }

    /// A_0 … A_M, and the error probability of each state.
    fn states(&self) -> (Vec<f64>, Vec<f64>) {
        let states = self.states;
        match self.error {
            FadingError::Threshold { snr_db } => {
                let threshold = from_db(snr_db - self.mean_snr_db);
                let p_e = -libm::expm1(-threshold);
                let below = (states as f64 * p_e).round().clamp(1.0, (states - 1) as f64) as usize;
                let above = states - below;
                let low = (0..below).map(|i| -libm::log1p(-p_e * i as f64 / below as f64));
                let high = (0..=above).map(|i| threshold - libm::log1p(-(i as f64) / above as f64));
                (low.chain(high).collect(), (0..states).map(|i| if i < below { 1.0 } else { 0.0 }).collect())
            }
            FadingError::Modulation { kind, bits } => {
                let edges: Vec<f64> = (0..=states).map(|i| -libm::log1p(-(i as f64) / states as f64)).collect();
                let mean_snr = from_db(self.mean_snr_db);
                let fails = |x: f64| -libm::expm1(f64::from(bits) * libm::log1p(-kind.bit_error(mean_snr * x)));
                let error = edges.windows(2).map(|edge| average(fails, edge[0], edge[1])).collect();
                (edges, error)
            }
        }
    }
}

fn from_db(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// The mean of f(x) over an exponential x of mean 1, given that it lies between `low` and `high`; f lies in [0, 1].
///
/// By Simpson's rule over ln x: there a step of f is about as wide at any mean SNR.
fn average(f: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    // The part left out weighs e^-40 at the lower end and e^-50 at the upper.
    let to = libm::log(high.min(low + 50.0));
    let from = if low > 0.0 { libm::log(low) } else { to - 40.0 };
    let steps = 2.0 * ((to - from) / 0.01).ceil().max(1.0);
    let h = (to - from) / steps;
    let (mut sum, mut weight) = (0.0, 0.0);
    for i in 0..=steps as u32 {
        let x = libm::exp(from + h * f64::from(i));
        let simpson = match i {
            0 => 1.0,
            _ if f64::from(i) == steps => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let here = simpson * x * libm::exp(-x);
        sum += here * f(x);
        weight += here;
    }
    (sum / weight).clamp(0.0, 1.0)
}

/// P(i → j) of the states between the `edges`.
fn transitions(edges: &[f64], r: f64) -> Vec<Vec<f64>> {
    let states = edges.len() - 1;
    let mut p = vec![vec![0.0; states]; states];
    for i in 0..states {
        for j in i + 1..states {
            let joint = joint(edges, r, i, j);
            for (from, to) in [(i, j), (j, i)] {
                let pi = libm::exp(-edges[from]) * -libm::expm1(edges[from] - edges[from + 1]);
                p[from][to] = (joint / pi).min(1.0);
            }
        }
    }
    for (i, row) in p.iter_mut().enumerate() {
        let leave: f64 = row.iter().sum();
        if leave > 1.0 {
            row.iter_mut().for_each(|p| *p /= leave);
        }
        row[i] = (1.0 - leave).max(0.0);
    }
    p
}

/// The probability that one slot is in state i and the next in state j > i.
fn joint(edges: &[f64], r: f64, i: usize, j: usize) -> f64 {
    let z = |edge: usize| edges[edge] / (1.0 - r);
    // For smaller k the upper state is out of reach, for larger k the lower one.
    let (first, last) = ((z(j) - reach(z(j))).max(0.0), z(i + 1) + reach(z(i + 1)));
    if first > last {
        return 0.0;
    }
    let (first, last) = (first as u64, last as u64);
    let [low, low_end, high, high_end] = [i, i + 1, j, j + 1].map(|edge| gamma_below(first, last, z(edge)));
    let mut weight = (1.0 - r) * libm::pow(r, first as f64);
    let mut sum = 0.0;
    for ((low, low_end), (high, high_end)) in low.iter().zip(low_end).zip(high.iter().zip(high_end)) {
        // Rounding may put what is next to nothing below it.
        sum += weight * (low_end - low).max(0.0) * (high_end - high).max(0.0);
        weight *= r;
    }
    sum
}

/// Farther than this from its mean z a Poisson variable is with a probability below 1e-20.
fn reach(z: f64) -> f64 {
    10.0 * z.sqrt() + 50.0
}

/// For each k from `first` to `last`, the probability that a gamma variable of shape k + 1 lies below z: that a
/// Poisson variable of mean z is above k.
fn gamma_below(first: u64, last: u64, z: f64) -> Vec<f64> {
    let count = (last - first + 1) as usize;
    if z.is_infinite() || z - reach(z) > last as f64 {
        return vec![1.0; count];
    }
    if z == 0.0 || z + reach(z) < first as f64 {
        return vec![0.0; count];
    }
    // The probability of each number above `first`, from the most probable of them on in both directions; then
    // summed from above, where they are smallest.
    let top = (z + reach(z)) as u64 + 1;
    let most = (z as u64).clamp(first + 1, top);
    let mut p = vec![0.0; (top - first) as usize];
    let place = |n: u64| (n - first - 1) as usize;
    p[place(most)] = poisson(most as f64, z);
    for n in most + 1..=top {
        p[place(n)] = p[place(n - 1)] * z / n as f64;
    }
    for n in (first + 1..most).rev() {
        p[place(n)] = p[place(n + 1)] * (n + 1) as f64 / z;
    }
    let mut below = vec![0.0; count];
    let mut sum = 0.0;
    for k in (first..top).rev() {
        sum += p[place(k + 1)];
        if k <= last {
            below[(k - first) as usize] = sum;
        }
    }
    below
}

/// The probability that a Poisson variable of mean z is n, from 1. For large n by Stirling's series, so that no large
/// numbers are subtracted.
fn poisson(n: f64, z: f64) -> f64 {
    if n < 50.0 {
        return libm::exp(n * libm::log(z) - z - libm::lgamma(n + 1.0));
    }
    let d = (z - n) / n;
    let stirling = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1_260.0 * n * n)) / (n * n)) / n;
    libm::exp(n * (libm::log1p(d) - d) - stirling) / (2.0 * PI * n).sqrt()
}

#[cfg(test)]
mod tests;
