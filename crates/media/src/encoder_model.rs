//! An adaptive encoder without a codec: frame sizes that behave like a live encoder's.
//!
//! Deterministic: same parameters, seed and calls, same sizes on every machine. In the spirit of the
//! synthetic model of RFC 8593 §5 (frame sizes around a target with noise, a bounded reaction latency);
//! key frames and the encoder's own rate correction are added, because both shape what a pacer sees.
//!
//! Per captured picture, with T the frame interval and b the budget of one frame:
//!
//! ```text
//! r  <- r + (target - r) (1 - exp(-T / reaction))     the encoder's rate runs after its target
//! b   = r (1 + overshoot) T
//! size = max( (w b - repay debt) noise, b / 10 )       w = key_ratio for a key frame, else 1
//! debt <- debt + size - b                              so that the mean comes back to the target
//! noise = exp(sigma N(0,1) - sigma^2 / 2)              lognormal with mean 1
//! ```
//!
//! Symbols: `target` is what `set_rate` said, kept within `[min_rate, max_rate]`; all sizes in bits.
//!
//! With `smaller` the size of the pictures follows the target as the real encoder's does ([`PictureFit`], at 640x360): each size has a
//! least rate of its own, and a change is a key frame.
//!
//! Not modelled: scenes (a cut costs a real encoder a large frame), quality, skipped pictures. How near it comes to a real encoder:
//! `docs/media/README.md`.

use crate::constant::skip_missed;
use crate::filler::filler;
use crate::fit::PictureFit;
use crate::{Codec, EncodedFrame, Format, FrameSource, MediaError, timestamp_90k};
use fairpace_units::{Duration, Instant, RandomStream, Rate};

/// Full size, where the size follows.
const FULL: (u32, u32) = (640, 360);

/// Parameters of [`EncoderModel`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EncoderModelParams {
    /// Rate before the first `set_rate`.
    pub start_rate: Rate,
    /// The encoder cannot go below.
    pub min_rate: Rate,
    /// The encoder cannot go above.
    pub max_rate: Rate,
    /// Time between two pictures.
    pub frame_interval: Duration,
    /// Time constant of following the target; zero follows at once.
    pub reaction: Duration,
    /// Deviation of the logarithm of a frame's size.
    pub sigma: f64,
    /// Size of a key frame in ordinary ones.
    pub key_ratio: f64,
    /// Pictures from one key frame to the next; 0 for only the first and those asked for.
    pub key_interval: u32,
    /// Share of the accumulated excess that the next frame gives back.
    pub repay: f64,
    /// By how much the mean exceeds the target: 0.05 is 5 %.
    pub overshoot: f64,
    /// The lowest rates at three quarters and half of the size; `None`: all pictures have the full size.
    pub smaller: Option<[Rate; PictureFit::STEPS - 1]>,
}

impl Default for EncoderModelParams {
    /// Like the VP8 encoder at 640x360 and 25 pictures/s.
    fn default() -> Self {
        EncoderModelParams {
            start_rate: Rate::kbps(300.0),
            min_rate: Rate::kbps(50.0),
            max_rate: Rate::mbps(5.0),
            frame_interval: Duration::from_millis(40),
            reaction: Duration::from_millis(200),
            sigma: 0.3,
            key_ratio: 4.0,
            key_interval: 250,
            repay: 0.1,
            overshoot: 0.0,
            smaller: None,
        }
    }
}

impl EncoderModelParams {
    /// # Errors
    /// [`MediaError::Parameter`] names the field, what was found and what is allowed.
    pub fn check(&self) -> Result<(), MediaError> {
        let wrong = |field, found: String, allowed| Err(MediaError::Parameter { field, found, allowed });
        if self.min_rate <= Rate::ZERO {
            return wrong("min_rate", self.min_rate.to_string(), "it must be above zero");
        }
        if self.smaller.is_some_and(|rates| rates.into_iter().any(|rate| rate <= Rate::ZERO || rate > self.max_rate)) {
            return wrong("smaller", format!("{:?}", self.smaller), "each must be above zero and at most max_rate");
        }
        if self.max_rate < self.min_rate {
            return wrong("max_rate", self.max_rate.to_string(), "it must be at least min_rate");
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&self.frame_interval) {
            return wrong("frame_interval", format!("{:?}", self.frame_interval), "it must be from 1 ms to 10 s");
        }
        let ranges = [
            ("sigma", self.sigma, 0.0..=2.0, "it must be from 0 to 2"),
            ("key_ratio", self.key_ratio, 1.0..=50.0, "it must be from 1 to 50"),
            ("repay", self.repay, 0.0..=1.0, "it must be from 0 to 1"),
            ("overshoot", self.overshoot, -0.5..=1.0, "it must be from -0.5 to 1"),
        ];
        for (field, value, range, allowed) in ranges {
            if !range.contains(&value) {
                return wrong(field, value.to_string(), allowed);
            }
        }
        Ok(())
    }
}

/// The model as a source; the first capture is at zero.
#[derive(Clone, Debug)]
pub struct EncoderModel {
    params: EncoderModelParams,
    noise: RandomStream,
    /// The size of the pictures, where that follows.
    fit: Option<PictureFit>,
    /// As it was set, and the same kept within what the encoder can do.
    wanted: Rate,
    target: Rate,
    /// r: what the encoder's rate control aims at now.
    rate: Rate,
    debt_bits: f64,
    since_key: u32,
    key_wanted: bool,
    next: Instant,
}

impl EncoderModel {
    /// A model with its noise stream (by custom `<flow>.encoder`).
    ///
    /// # Errors
    /// As [`EncoderModelParams::check`].
    pub fn new(params: EncoderModelParams, noise: RandomStream) -> Result<Self, MediaError> {
        params.check()?;
        let rate = params.start_rate.clamp(params.min_rate, params.max_rate);
        Ok(EncoderModel {
            params,
            noise,
            fit: params.smaller.map(|_| PictureFit::new(FULL, params.frame_interval)),
            wanted: params.start_rate,
            target: rate,
            rate,
            debt_bits: 0.0,
            since_key: 0,
            key_wanted: true,
            next: Instant::ZERO,
        })
    }

    /// The size of the last picture: a step of [`PictureFit`].
    pub fn size_step(&self) -> usize {
        self.fit.map_or(0, |fit| fit.step())
    }

    /// The least rate at the present size.
    fn least(&self) -> Rate {
        let smaller = self.size_step().checked_sub(1).and_then(|i| self.params.smaller?.get(i).copied());
        smaller.unwrap_or(self.params.min_rate)
    }

    /// The next frame's size in bits: the formulas of the head.
    fn next_size(&mut self, key: bool) -> f64 {
        let p = &self.params;
        let t_s = p.frame_interval.as_secs_f64();
        let follow = match p.reaction.as_secs_f64() {
            0.0 => 1.0,
            reaction_s => 1.0 - libm::exp(-t_s / reaction_s),
        };
        self.rate = Rate::bps(self.rate.as_bps() + (self.target.as_bps() - self.rate.as_bps()) * follow);
        let b = self.rate.as_bps() * (1.0 + p.overshoot) * t_s;
        let w = if key { p.key_ratio } else { 1.0 };
        // Always drawn, so that another sigma shifts no later draw.
        let noise = libm::exp(p.sigma * self.noise.normal() - p.sigma * p.sigma / 2.0);
        let size = ((w * b - p.repay * self.debt_bits) * noise).max(b / 10.0);
        self.debt_bits += size - b;
        size
    }
}

impl FrameSource for EncoderModel {
    fn format(&self) -> Format {
        let frame_interval = self.params.frame_interval;
        Format {
            codec: Codec::Filler,
            width: 0,
            height: 0,
            frame_interval,
            follows_rate: true,
            scaled_from: None,
            sound: false,
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.wanted = rate;
        self.target = rate.clamp(self.least(), self.params.max_rate);
    }

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
        let capture = skip_missed(&mut self.next, self.params.frame_interval, now);
        let periodic = self.params.key_interval > 0 && self.since_key >= self.params.key_interval;
        let asked = std::mem::take(&mut self.key_wanted) || periodic;
        let resized = self.fit.as_mut().is_some_and(|fit| fit.on_picture(now, self.wanted, asked));
        if resized {
            self.set_rate(self.wanted);
        }
        let key = asked || resized;
        self.since_key = if key { 1 } else { self.since_key.saturating_add(1) };
        let bits = self.next_size(key);
        // Rounding to whole bytes joins the debt, so that it cannot add up.
        let data = filler((bits / 8.0) as u64, key);
        self.debt_bits += data.len() as f64 * 8.0 - bits;
        if let Some(fit) = &mut self.fit {
            fit.on_frame(now, data.len(), key);
        }
        Ok(Some(EncodedFrame { data, capture, timestamp_90k: timestamp_90k(capture), key }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(params: EncoderModelParams) -> EncoderModel {
        EncoderModel::new(params, RandomStream::named(1, "test.encoder")).unwrap()
    }

    fn sizes(m: &mut EncoderModel, n: usize) -> Vec<usize> {
        let mut next = || {
            let now = m.next_frame_at();
            m.next_frame(now).unwrap().unwrap().data.len()
        };
        (0..n).map(|_| next()).collect()
    }

    /// No noise, no lag: 1 Mbit/s in 25 frames/s is a budget of 5,000 B.
    fn plain() -> EncoderModelParams {
        EncoderModelParams {
            start_rate: Rate::mbps(1.0),
            sigma: 0.0,
            reaction: Duration::ZERO,
            key_interval: 0,
            ..EncoderModelParams::default()
        }
    }

    #[test]
    fn a_key_frame_is_paid_back_by_those_that_follow() {
        // b = 5,000 B. Key: 4 b = 20,000, debt 15,000. Then 5,000 - 1,500 = 3,500, debt 13,500;
        // 5,000 - 1,350 = 3,650, debt 12,150; 5,000 - 1,215 = 3,785.
        assert_eq!(sizes(&mut model(plain()), 4), [20_000, 3_500, 3_650, 3_785]);
    }

    #[test]
    fn the_rate_runs_after_its_target_with_the_time_constant_of_its_reaction() {
        let params = EncoderModelParams { reaction: Duration::from_millis(200), key_ratio: 1.0, ..plain() };
        let mut m = model(params);
        sizes(&mut m, 10);
        m.set_rate(Rate::mbps(2.0));
        let s = sizes(&mut m, 5);
        // After five frames, 200 ms: 1 - 1/e of the way from 5,000 to 10,000 B = 8,160.6
        assert!((s[4] as f64 - 8_160.6).abs() <= 2.0, "{s:?}");
        // After the first: 1 - exp(-0.2) = 0.18127 of the way
        assert!((s[0] as f64 - 5_906.3).abs() <= 2.0, "{s:?}");
    }

    #[test]
    fn overshoot_raises_the_mean_by_as_much() {
        let params = EncoderModelParams { overshoot: 0.05, key_ratio: 1.0, ..plain() };
        assert_eq!(sizes(&mut model(params), 2), [5_250, 5_250]);
    }

    #[test]
    fn the_mean_over_40_seconds_keeps_to_the_target_within_2_percent() {
        let mut m = model(EncoderModelParams { start_rate: Rate::kbps(500.0), ..EncoderModelParams::default() });
        let total: usize = sizes(&mut m, 1_000).iter().sum();
        let share = total as f64 * 8.0 / 40.0 / 500e3;
        // The difference is the debt: a few frames of 2,500 B in 2,500,000.
        assert!((0.98..=1.02).contains(&share), "{share}");
    }

    #[test]
    fn single_frames_scatter_by_sigma() {
        // Without repayment, log size is normal with deviation 0.2; over 2,000 frames the
        // deviation's own error is 0.2 / sqrt(4,000) = 0.0032; four of them are allowed.
        let mut m = model(EncoderModelParams { sigma: 0.2, repay: 0.0, key_ratio: 1.0, ..plain() });
        let logs: Vec<f64> = sizes(&mut m, 2_000).iter().map(|&s| libm::log(s as f64)).collect();
        let mean = logs.iter().sum::<f64>() / 2_000.0;
        let sd = libm::sqrt(logs.iter().map(|l| (l - mean) * (l - mean)).sum::<f64>() / 1_999.0);
        assert!((sd - 0.2).abs() <= 4.0 * 0.0032, "{sd}");
    }

    #[test]
    fn targets_outside_its_range_are_kept_inside() {
        let mut m = model(EncoderModelParams { key_ratio: 1.0, ..plain() });
        m.set_rate(Rate::mbps(100.0));
        assert_eq!(sizes(&mut m, 1), [25_000]); // 5 Mbit/s
        m.set_rate(Rate::ZERO);
        assert_eq!(sizes(&mut m, 1), [250]); // 50 kbit/s
    }

    #[test]
    fn key_frames_come_at_their_interval_and_on_request() {
        let mut m = model(EncoderModelParams { key_interval: 3, ..plain() });
        let mut key = |ask: bool| {
            if ask {
                m.request_key_frame();
            }
            let now = m.next_frame_at();
            m.next_frame(now).unwrap().unwrap().key
        };
        let keys = [key(false), key(false), key(false), key(false), key(true), key(false), key(false), key(false)];
        assert_eq!(keys, [true, false, false, true, true, false, false, true]);
    }

    #[test]
    fn a_low_rate_makes_pictures_smaller_and_each_size_goes_down_to_its_own_least_rate() {
        let smaller = Some([Rate::kbps(100.0), Rate::kbps(40.0)]);
        let params = EncoderModelParams { key_ratio: 1.0, min_rate: Rate::kbps(200.0), repay: 0.0, smaller, ..plain() };
        let mut m = model(params);
        // 1 Mbit/s: 5,000 B, of full size.
        assert_eq!((sizes(&mut m, 1), m.size_step()), (vec![5_000], 0));
        // 50 kbit/s is 0.009 bit per pixel. For a second the encoder gives the 200 kbit/s of full size, 1,000 B; then 250 B.
        m.set_rate(Rate::kbps(50.0));
        let (mut found, mut keys) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            let f = m.next_frame(m.next_frame_at()).unwrap().unwrap();
            found.push(f.data.len());
            keys.push(f.key);
        }
        assert_eq!((found[0], found[24], m.size_step()), (1_000, 1_000, 2));
        let key = keys.iter().position(|key| *key);
        assert_eq!((key, found[59]), (Some(25), 250), "a change of size is a key frame: {found:?}");
        // Without smaller sizes it stays at its least.
        let mut full = model(EncoderModelParams { smaller: None, ..params });
        full.set_rate(Rate::kbps(50.0));
        assert_eq!((sizes(&mut full, 60)[59], full.size_step()), (1_000, 0));
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let params = EncoderModelParams { sigma: f64::NAN, ..plain() };
        let e = EncoderModel::new(params, RandomStream::named(1, "x")).unwrap_err();
        assert_eq!(e.to_string(), "`sigma` is NaN, but it must be from 0 to 2");
        let params = EncoderModelParams { smaller: Some([Rate::ZERO; 2]), ..plain() };
        assert!(params.check().unwrap_err().to_string().contains("`smaller` is"));
    }

    proptest! {
        /// Whatever the targets: no frame is empty or beyond the key frame of the highest rate with
        /// six deviations of noise, and the same calls give the same sizes.
        #[test]
        fn sizes_stay_within_bounds_and_repeat(targets in prop::collection::vec(0.0_f64..1e8, 1..100), seed: u64) {
            let params = EncoderModelParams::default();
            let run = || {
                let mut m = EncoderModel::new(params, RandomStream::named(seed, "x")).unwrap();
                targets.iter().map(|&bps| { m.set_rate(Rate::bps(bps)); sizes(&mut m, 1)[0] }).collect::<Vec<_>>()
            };
            let first = run();
            // 5 Mbit/s x 40 ms = 25,000 B; x 4 for a key frame; x exp(6 sigma) = 6; and as much
            // again for what frames below budget have saved up.
            for &s in &first {
                prop_assert!((3..=2 * 600_000).contains(&s), "{}", s);
            }
            prop_assert_eq!(first, run());
        }
    }
}
