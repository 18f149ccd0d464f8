//! The bounds of a number: one value for the check and for the words that a message, a table or a schema has for it.

use crate::{Bytes, Duration, Rate, exact_duration};
use core::fmt;

/// From one end to the other; each end counts, does not count, or is not there.
///
/// ```
/// use fairpace_units::{Bounds, Duration};
/// let timeout = Bounds::of(Duration::from_millis(1), Duration::from_secs(60));
/// assert!(timeout.contain(Duration::from_millis(1)) && !timeout.contain(Duration::ZERO));
/// assert_eq!(timeout.to_string(), "from 1 ms to 60 s");
/// assert_eq!(Bounds::above(0.0).up_to(1.0).to_string(), "above 0, at most 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds<T> {
    /// The least.
    pub low: End<T>,
    /// The most.
    pub high: End<T>,
}

/// One end of [`Bounds`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End<T> {
    /// This value counts.
    At(T),
    /// This value does not count, but every one before it.
    Beyond(T),
    /// No end.
    Open,
}

impl<T: Copy> Bounds<T> {
    /// Any number.
    pub const ANY: Bounds<T> = Bounds { low: End::Open, high: End::Open };

    /// From `low` to `high`.
    pub const fn of(low: T, high: T) -> Self {
        Bounds { low: End::At(low), high: End::At(high) }
    }

    /// `low` or more.
    pub const fn at_least(low: T) -> Self {
        Bounds { low: End::At(low), high: End::Open }
    }

    /// More than `low`.
    pub const fn above(low: T) -> Self {
        Bounds { low: End::Beyond(low), high: End::Open }
    }

    /// The same, and at most `high`.
    #[must_use]
    pub const fn up_to(self, high: T) -> Self {
        Bounds { low: self.low, high: End::At(high) }
    }

    /// The same, and less than `high`.
    #[must_use]
    pub const fn below(self, high: T) -> Self {
        Bounds { low: self.low, high: End::Beyond(high) }
    }
}

impl<T: Copy + PartialOrd> Bounds<T> {
    /// Whether `x` lies between the ends; never true of what is not a number.
    pub fn contain(&self, x: T) -> bool {
        let after = match self.low {
            End::At(low) => x >= low,
            End::Beyond(low) => x > low,
            End::Open => true,
        };
        let before = match self.high {
            End::At(high) => x <= high,
            End::Beyond(high) => x < high,
            End::Open => true,
        };
        after && before && x.partial_cmp(&x).is_some()
    }
}

/// A number in words, exact.
pub trait InWords {
    /// As a person writes it.
    fn in_words(&self) -> String;
}

impl InWords for Duration {
    fn in_words(&self) -> String {
        exact_duration(*self)
    }
}

impl InWords for Bytes {
    fn in_words(&self) -> String {
        format!("{} B", self.get())
    }
}

impl InWords for Rate {
    fn in_words(&self) -> String {
        let bps = self.as_bps();
        let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
        let (each, unit) = units.into_iter().find(|(each, _)| bps >= *each).unwrap_or((1.0, "bit/s"));
        format!("{} {unit}", bps / each)
    }
}

impl InWords for f64 {
    fn in_words(&self) -> String {
        self.to_string()
    }
}

impl InWords for u64 {
    fn in_words(&self) -> String {
        self.to_string()
    }
}

impl<T: InWords> fmt::Display for Bounds<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use End::{At, Beyond, Open};
        let say = |words: &str, x: &T| format!("{words} {}", x.in_words());
        let text = match (&self.low, &self.high) {
            (At(low), At(high)) => format!("{} to {}", say("from", low), high.in_words()),
            (At(low), Beyond(high)) => format!("{} to below {}", say("from", low), high.in_words()),
            (At(low), Open) => say("at least", low),
            (Beyond(low), At(high)) => format!("{}, {}", say("above", low), say("at most", high)),
            (Beyond(low), Beyond(high)) => format!("{}, {}", say("above", low), say("below", high)),
            (Beyond(low), Open) => say("above", low),
            (Open, At(high)) => say("at most", high),
            (Open, Beyond(high)) => say("below", high),
            (Open, Open) => "any".to_owned(),
        };
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_counts_or_does_not_and_the_words_say_which() {
        let (closed, open) = (Bounds::of(1.0, 2.0), Bounds::above(1.0).below(2.0));
        for (x, in_closed, in_open) in
            [(0.999, false, false), (1.0, true, false), (1.5, true, true), (2.0, true, false), (f64::NAN, false, false)]
        {
            assert_eq!((closed.contain(x), open.contain(x)), (in_closed, in_open), "{x}");
        }
        assert_eq!((closed.to_string(), open.to_string()), ("from 1 to 2".to_owned(), "above 1, below 2".to_owned()));
        assert_eq!(Bounds::at_least(Bytes::new(1)).to_string(), "at least 1 B");
        assert!(!Bounds::ANY.contain(f64::NAN) && Bounds::ANY.contain(-1e300));
        let hour = Bounds::of(Duration::from_micros(1), Duration::from_secs(3_600));
        assert_eq!(hour.to_string(), "from 1 us to 1 h");
        let option = Bounds::of(Rate::kbps(80.0), Rate::mbps(1_310.72));
        assert_eq!(option.to_string(), "from 80 kbit/s to 1.31072 Gbit/s");
        assert_eq!(Bounds::at_least(Rate::bps(1.0)).to_string(), "at least 1 bit/s");
    }
}
