//! A number in `[0, 1]`, checked once.

use core::fmt;

/// A probability or a fraction: within `[0, 1]`, by construction.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

/// The value that was given instead of a probability.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a probability: it must lie in [0, 1]")]
pub struct NotAProbability(pub f64);

impl Probability {
    /// An event that never happens.
    pub const ZERO: Probability = Probability(0.0);
    /// An event that always happens.
    pub const ONE: Probability = Probability(1.0);

    /// `p`, if it lies in `[0, 1]`.
    ///
    /// # Errors
    /// [`NotAProbability`] outside that range and for not-a-number.
    pub fn new(p: f64) -> Result<Self, NotAProbability> {
        if (0.0..=1.0).contains(&p) { Ok(Probability(p)) } else { Err(NotAProbability(p)) }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Probability {
    type Error = NotAProbability;
    fn try_from(p: f64) -> Result<Self, NotAProbability> {
        Self::new(p)
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_unit_interval_is_accepted() {
        assert!(Probability::new(0.0).is_ok() && Probability::new(1.0).is_ok());
        for bad in [-1e-9, 1.0 + 1e-9, f64::NAN, f64::INFINITY] {
            assert!(Probability::new(bad).is_err(), "{bad}");
        }
    }
}
