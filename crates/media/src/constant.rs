//! A constant source: the same rate for ever, whatever the controller says.
//!
//! The smallest [`FrameSource`], and the template for new ones. Beside an unresponsive controller
//! it is the fixed-rate sender that the adaptive ones are compared with.

use crate::filler::filler;
use crate::{Codec, EncodedFrame, Format, FrameSource, MediaError, timestamp_90k};
use fairpace_units::{Duration, Instant, Rate};

/// Frames of equal size at a fixed interval; a key frame first and on request (no larger).
#[derive(Clone, Debug)]
pub struct ConstantSource {
    rate: Rate,
    interval: Duration,
    next: Instant,
    key_wanted: bool,
    /// Bits that rounding down to whole bytes has held back; below 8.
    carried_bits: f64,
}

impl ConstantSource {
    /// `rate` of frame bytes, one frame each `interval` (at least 1 ms), the first at zero.
    pub fn new(rate: Rate, interval: Duration) -> Self {
        let interval = interval.max(Duration::from_millis(1));
        ConstantSource { rate, interval, next: Instant::ZERO, key_wanted: true, carried_bits: 0.0 }
    }
}

impl FrameSource for ConstantSource {
    fn format(&self) -> Format {
        Format {
            codec: Codec::Filler,
            width: 0,
            height: 0,
            frame_interval: self.interval,
            follows_rate: false,
            scaled_from: None,
            sound: false,
            cut_off: false,
        }
    }

    /// No effect: that is what constant means.
    fn set_rate(&mut self, _rate: Rate) {}

    fn request_key_frame(&mut self) {
        self.key_wanted = true;
    }

    fn next_frame_at(&self) -> Instant {
        self.next
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        if now < self.next {
            return Ok(None);
        }
        let capture = skip_missed(&mut self.next, self.interval, now);
        let bits = self.rate.as_bps() * self.interval.as_secs_f64() + self.carried_bits;
        let bytes = (bits / 8.0 + 1e-9) as u64;
        self.carried_bits = (bits - bytes as f64 * 8.0).max(0.0);
        let key = std::mem::take(&mut self.key_wanted);
        let data = filler(bytes, key);
        Ok(Some(EncodedFrame { data, capture, timestamp_90k: timestamp_90k(capture), key }))
    }
}

/// The capture that is due at `now`: of those missed in a stall only the last one, and moves
/// `next` on by whole intervals, so that the frame clock keeps its phase.
pub(crate) fn skip_missed(next: &mut Instant, interval: Duration, now: Instant) -> Instant {
    let missed = now.since(*next).as_nanos() / interval.as_nanos().max(1);
    let step = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    let capture = Instant::from_nanos(next.as_nanos().saturating_add(step.saturating_mul(missed as u64)));
    *next = capture + interval;
    capture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_frames_a_second_carry_exactly_their_rate() {
        // 1 Mbit/s in 30 frames/s is 4,166.67 bytes a frame: after 3 s, 375,000 bytes less the
        // part of a byte that is still carried.
        let mut s = ConstantSource::new(Rate::mbps(1.0), Duration::from_nanos(33_333_333));
        let mut bytes = 0;
        for _ in 0..90 {
            let now = s.next_frame_at();
            bytes += s.next_frame(now).unwrap().unwrap().data.len();
            assert!(s.next_frame(now).unwrap().is_none());
        }
        assert!((374_998..=375_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn after_a_stall_the_missed_frames_are_skipped_and_the_phase_kept() {
        let mut s = ConstantSource::new(Rate::mbps(1.0), Duration::from_millis(40));
        s.next_frame(Instant::ZERO).unwrap().unwrap();
        let f = s.next_frame(Instant::from_nanos(1_010_000_000)).unwrap().unwrap();
        assert_eq!(f.capture, Instant::from_nanos(1_000_000_000));
        assert_eq!(s.next_frame_at(), Instant::from_nanos(1_040_000_000));
    }

    #[test]
    fn a_key_frame_comes_first_and_when_asked_for() {
        let mut s = ConstantSource::new(Rate::mbps(1.0), Duration::from_millis(40));
        let mut key = |ask: bool| {
            if ask {
                s.request_key_frame();
            }
            let now = s.next_frame_at();
            s.next_frame(now).unwrap().unwrap().key
        };
        assert_eq!([key(false), key(false), key(true), key(false)], [true, false, true, false]);
    }
}
