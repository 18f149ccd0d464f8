//! How uneven arrivals are.

/// Interarrival jitter [RFC 3550 A.8], in media time units, with the RFC's integer arithmetic (scaled
/// by 16, rounded).
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    transit: Option<u32>,
    scaled: u64,
}

impl Jitter {
    /// A packet with this timestamp arrived when the media clock showed `arrival`.
    pub fn update(&mut self, timestamp: u32, arrival: u32) {
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(last) = self.transit.replace(transit) {
            let d = u64::from((transit.wrapping_sub(last) as i32).unsigned_abs());
            self.scaled = self.scaled + d - ((self.scaled + 8) >> 4);
        }
    }

    /// The estimate, in media time units.
    pub fn get(&self) -> u32 {
        (self.scaled >> 4).try_into().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_moves_a_sixteenth_of_the_way_with_rounding() {
        // Transit 0, then 160 later: J = 0 + 160 - ((0 + 8) >> 4) = 160 scaled = 10 units; then equal
        // transit: 160 - ((160 + 8) >> 4 = 10) = 150 scaled = 9 units.
        let mut j = Jitter::default();
        j.update(0, 0);
        j.update(3_000, 3_160);
        assert_eq!(j.get(), 10);
        j.update(6_000, 6_160);
        assert_eq!(j.get(), 9);
        // A timestamp that wraps changes nothing.
        let mut w = Jitter::default();
        w.update(u32::MAX - 1_000, 0);
        w.update(1_999, 3_000);
        assert_eq!(w.get(), 0);
    }
}
