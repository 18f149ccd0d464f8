//! A cumulative curve: how many bits have passed a point by when, in straight pieces.

/// Bits over time, never falling, with exact corners. Known up to the last corner; there it stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Time in seconds, rising; bits, not falling.
    corners: Vec<(f64, f64)>,
}

impl Curve {
    /// Nothing passes until `start` (seconds).
    pub(super) fn from(start: f64) -> Curve {
        Curve { corners: vec![(start, 0.0)] }
    }

    /// The next corner. One that does not lie later, or that lies on the piece before it, adds nothing.
    pub(super) fn to(&mut self, t: f64, bits: f64) {
        let last = self.corners.len() - 1;
        if t <= self.corners[last].0 {
            return;
        }
        // Rates are exact in the loop that draws: a piece that goes on has the very same slope but for rounding.
        if last > 0 {
            let ((t0, b0), (t1, b1)) = (self.corners[last - 1], self.corners[last]);
            if ((b1 - b0) * (t - t1) - (bits - b1) * (t1 - t0)).abs() <= 1e-9 * (t - t0) {
                self.corners[last] = (t, bits);
                return;
            }
        }
        self.corners.push((t, bits));
    }

    /// The same, `by` seconds later.
    pub(super) fn later(&self, by: f64) -> Curve {
        Curve { corners: self.corners.iter().map(|&(t, bits)| (t + by, bits)).collect() }
    }

    /// Its corners: time in seconds, bits.
    pub fn corners(&self) -> &[(f64, f64)] {
        &self.corners
    }

    /// The last corner's bits: as far as the curve is known.
    pub fn end_bits(&self) -> f64 {
        self.corners.last().map_or(0.0, |c| c.1)
    }

    /// Bits passed by `t` (seconds).
    pub fn bits_at(&self, t: f64) -> f64 {
        let i = self.corners.partition_point(|c| c.0 <= t);
        match (i.checked_sub(1).map(|i| self.corners[i]), self.corners.get(i)) {
            (None, _) => 0.0,
            (Some(last), None) => last.1,
            (Some((t0, b0)), Some(&(t1, b1))) => b0 + (b1 - b0) * ((t - t0) / (t1 - t0)),
        }
    }

    /// When `bits` had passed, in seconds; `None` beyond the end. Of a level piece, its end: when the next
    /// bit came.
    pub fn time_of(&self, bits: f64) -> Option<f64> {
        let i = self.corners.partition_point(|c| c.1 <= bits);
        match (i.checked_sub(1).map(|i| self.corners[i]), self.corners.get(i)) {
            (None, _) => self.corners.first().map(|c| c.0),
            (Some(last), None) => (last.1 >= bits).then_some(last.0),
            (Some((t0, b0)), Some(&(t1, b1))) => Some(t0 + (t1 - t0) * ((bits - b0) / (b1 - b0))),
        }
    }
}
