//! Random numbers with a name: one stream per purpose.
//!
//! Every stream is seeded from the run's seed and the stream's own name, so that switching one
//! thing on (a flow, a loss model) changes no other stream's draws. The generator is PCG
//! XSL-RR 128/64 (`Pcg64Mcg`), whose output is documented and the same on every machine; the
//! distributions use `libm`, because the standard library's `ln` may differ in the last bit.

use crate::{Duration, Probability};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// A random stream of one purpose. Cloning it repeats its draws.
///
/// ```
/// use fairpace_units::RandomStream;
/// let mut a = RandomStream::named(1, "link.ab.loss");
/// let mut b = RandomStream::named(1, "link.ab.loss");
/// let mut other = RandomStream::named(1, "link.ab.jitter");
/// assert_eq!(a.uniform(), b.uniform());
/// assert_ne!(a.uniform(), other.uniform());
/// ```
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64Mcg);

impl RandomStream {
    /// The stream called `name` of the run with this `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a (64 bit) over the seed's bytes and the name, then SplitMix64 to fill the state.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in seed.to_le_bytes().into_iter().chain(name.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut split_mix = || {
            hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let state = (u128::from(split_mix()) << 64) | u128::from(split_mix());
        RandomStream(Pcg64Mcg::new(state))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`, in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `[0, n)`; zero if `n` is zero. The bias is below `n` / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True with probability `p`. Always draws, so that changing `p` shifts no later draw.
    pub fn chance(&mut self, p: Probability) -> bool {
        self.uniform() < p.get()
    }

    /// Uniform in `[0, max)`.
    pub fn duration_below(&mut self, max: Duration) -> Duration {
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos))
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        mean.mul_f64(-libm::log(1.0 - self.uniform()))
    }

    /// Normal with mean 0 and deviation 1 (Box-Muller; always two draws).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(2.0 * core::f64::consts::PI * v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_pinned_so_that_old_results_stay_repeatable() {
        let mut s = RandomStream::named(1, "test");
        let first: Vec<u64> = (0..3).map(|_| s.bits()).collect();
        assert_eq!(first, PINNED);
    }
    const PINNED: [u64; 3] = [913_985_837_955_995_345, 6_387_523_609_512_529_283, 1_660_910_836_647_452_381];

    #[test]
    fn a_fair_coin_is_fair_to_four_standard_deviations() {
        let mut s = RandomStream::named(7, "coin");
        let p = Probability::new(0.5).unwrap();
        let heads = (0..10_000).filter(|_| s.chance(p)).count() as f64;
        assert!((heads - 5_000.0).abs() < 4.0 * 50.0, "{heads}"); // sd = sqrt(10^4 / 4) = 50
    }

    #[test]
    fn the_exponential_has_its_mean() {
        let mut s = RandomStream::named(7, "exp");
        let n = 100_000;
        let sum: f64 = (0..n).map(|_| s.exponential(Duration::from_secs(1)).as_secs_f64()).sum();
        assert!((sum / f64::from(n) - 1.0).abs() < 4.0 / f64::from(n).sqrt());
    }
}
