//! A synthetic source some time later than by itself.
//!
//! Sources without a camera take their pictures at whole multiples of their interval from the run's beginning on. Several of them in
//! one process would all do so at once, as no two cameras do.

use crate::{EncodedFrame, Format, FrameSource, MediaError, timestamp_90k};
use fairpace_units::{Duration, Instant, Rate};

/// The frames of `source`, all of them `by` later.
#[derive(Clone, Debug)]
pub struct Phased<S> {
    source: S,
    by: Duration,
}

impl<S: FrameSource> Phased<S> {
    /// The source, so much later.
    pub const fn new(source: S, by: Duration) -> Phased<S> {
        Phased { source, by }
    }
}

impl<S: FrameSource> FrameSource for Phased<S> {
    fn format(&self) -> Format {
        self.source.format()
    }

    fn set_rate(&mut self, rate: Rate) {
        self.source.set_rate(rate);
    }

    fn request_key_frame(&mut self) {
        self.source.request_key_frame();
    }

    fn next_frame_at(&self) -> Instant {
        let at = self.source.next_frame_at();
        if at == Instant::NEVER { at } else { at + self.by }
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        if now < Instant::ZERO + self.by {
            return Ok(None);
        }
        let frame = self.source.next_frame(now - self.by)?;
        Ok(frame.map(|frame| EncodedFrame {
            capture: frame.capture + self.by,
            timestamp_90k: frame.timestamp_90k.wrapping_add(timestamp_90k(Instant::ZERO + self.by)),
            ..frame
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConstantSource;

    #[test]
    fn frames_come_later_with_their_times_and_are_the_same_otherwise() {
        let (interval, by) = (Duration::from_millis(40), Duration::from_millis(13));
        let mut plain = ConstantSource::new(Rate::mbps(1.0), interval);
        let mut later = Phased::new(plain.clone(), by);
        assert!(later.next_frame(Instant::ZERO).unwrap().is_none());
        for n in 0..3 {
            let now = later.next_frame_at();
            assert_eq!(now, Instant::ZERO + interval * n + by);
            let (a, b) = (plain.next_frame(now - by).unwrap().unwrap(), later.next_frame(now).unwrap().unwrap());
            assert_eq!((b.capture, b.timestamp_90k), (now, timestamp_90k(now)));
            assert_eq!((b.data, b.key), (a.data, a.key));
        }
    }
}
