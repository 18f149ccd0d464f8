//! How pictures look: recorded tables of SSIM, by which a ledger is judged as its viewer would.

use crate::ledger::{Fate, Ledger};
use fairpace_media::EncoderModelParams;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use serde::Deserialize;

/// Frames over whose mean size the encoder's rate is taken: half a second.
const RATE_OVER: usize = 12;
/// Key frames are counted over so long, and at the beginning of a stream over so long at least.
const KEYS_OVER: Duration = Duration::from_secs(10);
const KEYS_AT_LEAST: Duration = Duration::from_secs(2);
/// The tables are recorded with a key frame each so many seconds.
const KEYS_S: [f64; 2] = [2.0, 10.0];

/// A clip, as measured by `scripts/record-clips`: how a viewer sees it when it is encoded at some rate, when it stands still,
/// and when a decoder goes on after a loss. SSIM is that of the luma against the source, 0 to 1.
#[derive(Clone, Debug)]
pub struct Clip {
    /// `film`, `zoom` or `cuts`.
    pub name: &'static str,
    table: Table,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    key_ratio: f64,
    sigma: f64,
    quality: Vec<ByRate>,
    frozen: ByTime,
    damaged: ByLosses,
    skipped: ByLosses,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByRate {
    /// Of width and height of full size.
    quarters: u32,
    /// From one key frame to the next.
    key_s: f64,
    kbps: Vec<f64>,
    ssim: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByTime {
    s: Vec<f64>,
    ssim: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByLosses {
    lost: Vec<f64>,
    ssim: Vec<f64>,
}

/// The clips that are built in.
const CLIPS: [(&str, &str); 3] = [
    ("film", include_str!("../clips/film.toml")),
    ("zoom", include_str!("../clips/zoom.toml")),
    ("cuts", include_str!("../clips/cuts.toml")),
];

impl Clip {
    /// All clips.
    pub fn all() -> Vec<Clip> {
        CLIPS.iter().filter_map(|(name, text)| Some(Clip { name, table: toml::from_str(text).ok()? })).collect()
    }

    /// The clip of that name.
    pub fn named(name: &str) -> Option<Clip> {
        Clip::all().into_iter().find(|clip| clip.name == name)
    }

    /// The table of a size, with key frames so far apart.
    fn by_rate(&self, step: usize, key_s: f64) -> Option<&ByRate> {
        let quarters = 4_usize.checked_sub(step)?;
        self.table.quality.iter().find(|t| t.quarters as usize == quarters && t.key_s == key_s)
    }

    /// A number of those tables, for a stream whose share of a key frame each two seconds (0: each ten) is `share`.
    fn mixed(&self, step: usize, share: f64, of: impl Fn(&ByRate) -> f64) -> f64 {
        let [often, seldom] = KEYS_S.map(|key_s| self.by_rate(step, key_s).map_or(0.0, &of));
        seldom + (often - seldom) * share
    }

    /// An encoder whose frames vary as this clip's do, with a key frame each `key_interval` frames at least: the size of its
    /// pictures follows the rate, and no size goes lower than its coarsest quantizer.
    pub fn encoder(&self, key_interval: u32) -> EncoderModelParams {
        let usual = EncoderModelParams { key_interval, ..EncoderModelParams::default() };
        let apart_s = usual.frame_interval.as_secs_f64() * f64::from(key_interval.max(1));
        let least =
            |step| Rate::kbps(self.mixed(step, often(1.0 / apart_s), |t| t.kbps.first().copied().unwrap_or(0.0)));
        let (key_ratio, sigma) = (self.table.key_ratio, self.table.sigma);
        EncoderModelParams { key_ratio, sigma, min_rate: least(0), smaller: Some([least(1), least(2)]), ..usual }
    }

    /// SSIM of a picture of an encoder at that rate, in kbit/s, at a size (a step of [`fairpace_media::PictureFit`]). `keys_per_s`: as often there
    /// were key frames in the last seconds; after each the pictures are coarser for a while.
    pub fn quality(&self, kbps: f64, step: usize, keys_per_s: f64) -> f64 {
        self.mixed(step, often(keys_per_s), |t| between(&t.kbps, &t.ssim, kbps))
    }

    /// SSIM of a picture that stands on the screen so long after its capture, of that when it was new.
    pub fn frozen(&self, after: Duration) -> f64 {
        let first = self.table.frozen.s.first().copied().unwrap_or(0.0);
        match after.as_secs_f64() {
            new if new <= 0.0 => 1.0,
            // From 1 at its capture on.
            soon if soon < first => {
                1.0 - (1.0 - between(&self.table.frozen.s, &self.table.frozen.ssim, first)) * soon / first
            }
            later => between(&self.table.frozen.s, &self.table.frozen.ssim, later),
        }
    }

    /// SSIM of a picture of a decoder that went on after so many datagrams were lost since the last key frame, of that
    /// without loss.
    pub fn damaged(&self, lost: u32) -> f64 {
        match lost {
            0 => 1.0,
            _ => between(&self.table.damaged.lost, &self.table.damaged.ssim, f64::from(lost)),
        }
    }

    /// SSIM of a picture of a decoder that went on after so many frames were left out since the last key frame, of that
    /// without loss.
    pub fn skipped(&self, frames: u32) -> f64 {
        match frames {
            0 => 1.0,
            _ => between(&self.table.skipped.lost, &self.table.skipped.ssim, f64::from(frames)),
        }
    }

    /// Mean SSIM of the screen against the source, over every capture whose time to be shown came: a screen that stands
    /// still shows the last picture, one that showed nothing yet counts as 0.
    pub fn ssim(&self, ledger: &Ledger) -> Option<f64> {
        let mut sizes: Vec<Bytes> = Vec::new();
        let (mut keys, mut began): (Vec<Instant>, Option<Instant>) = (Vec::new(), None);
        // When the picture on the screen was captured, and how good it was then.
        let mut screen: Option<(Instant, f64)> = None;
        // Datagrams missing, and frames left out, since the last picture that was whole.
        let (mut missing, mut skipped) = (0_u32, 0_u32);
        let mut sum = 0.0;
        let mut captures = 0_u32;
        let interval_s = EncoderModelParams::default().frame_interval.as_secs_f64();
        for frame in &ledger.frames {
            if frame.size > Bytes::ZERO {
                sizes.push(frame.size);
                began.get_or_insert(frame.capture);
                keys.extend(frame.key.then_some(frame.capture));
            }
            if frame.fate == Fate::Open {
                continue;
            }
            let last = sizes.get(sizes.len().saturating_sub(RATE_OVER)..).unwrap_or_default();
            let mean = last.iter().map(|size| size.as_f64()).sum::<f64>() / last.len().max(1) as f64;
            keys.retain(|at| frame.capture.since(*at) < KEYS_OVER);
            let span = began.map_or(Duration::ZERO, |at| frame.capture.since(at)).clamp(KEYS_AT_LEAST, KEYS_OVER);
            let quality = self.quality(mean * 8e-3 / interval_s, frame.step, keys.len() as f64 / span.as_secs_f64());
            missing = missing.saturating_add(frame.missing);
            skipped = skipped.saturating_add(frame.skipped);
            if frame.fate == Fate::InTime {
                (missing, skipped) = (0, 0);
                screen = Some((frame.capture, quality));
            } else if frame.damaged {
                screen = Some((frame.capture, quality * self.damaged(missing) * self.skipped(skipped)));
            }
            captures += 1;
            sum += screen.map_or(0.0, |(taken, quality)| quality * self.frozen(frame.capture.since(taken)));
        }
        (captures > 0).then(|| sum / f64::from(captures))
    }
}

/// How near key frames that come so often are to one each two seconds, 1, from one each ten, 0: each costs the pictures after it the
/// same, so that the number counts.
fn often(keys_per_s: f64) -> f64 {
    let [often, seldom] = KEYS_S.map(f64::recip);
    ((keys_per_s - seldom) / (often - seldom)).clamp(0.0, 1.0)
}

/// Between the points of a table, straight; outside as at its ends.
fn between(x: &[f64], y: &[f64], at: f64) -> f64 {
    let above = x.partition_point(|x| *x <= at);
    let point = |i: usize| Some((*x.get(i)?, *y.get(i)?));
    match (above.checked_sub(1).and_then(point), point(above)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (at - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some((_, y))) => y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::FrameEntry;

    /// Of 800 kbit/s.
    fn frame(n: u64, fate: Fate) -> FrameEntry {
        FrameEntry::new(Instant::from_nanos(40_000_000 * n), n == 0, Bytes::new(4_000), fate)
    }

    fn ssim(clip: &Clip, fates: &[Fate]) -> f64 {
        let frames = (0..).zip(fates).map(|(n, fate)| frame(n, *fate)).collect();
        clip.ssim(&Ledger { frames, longest_freeze: Duration::ZERO }).unwrap()
    }

    #[test]
    fn every_clip_is_read_and_looks_better_at_a_higher_rate_and_worse_the_longer_it_stands() {
        let all = Clip::all();
        assert_eq!(all.iter().map(|c| c.name).collect::<Vec<_>>(), ["film", "zoom", "cuts"]);
        for clip in &all {
            for (step, keys) in [(0, 0.5), (0, 0.1), (1, 0.5), (1, 0.1), (2, 0.5), (2, 0.1)] {
                let rates = [100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0].map(|kbps| clip.quality(kbps, step, keys));
                assert!(rates.is_sorted() && rates[0] > 0.3 && rates[5] < 1.0, "{} {step}: {rates:?}", clip.name);
            }
            // One key frame each 10/3 s, 0.3 a second, is halfway from 0.1 to 0.5.
            let halfway = (clip.quality(300.0, 0, 0.1) + clip.quality(300.0, 0, 0.5)) / 2.0;
            assert!((clip.quality(300.0, 0, 0.3) - halfway).abs() < 1e-9);
            let encoder = clip.encoder(250);
            let [three, half] = encoder.smaller.unwrap();
            assert!(half < three && three < encoder.min_rate, "{encoder:?}");
            let frozen = [0, 20, 40, 400, 1_200].map(|ms| clip.frozen(Duration::from_millis(ms)));
            assert!(frozen.is_sorted_by(|a, b| a >= b) && frozen[0] == 1.0, "{}: {frozen:?}", clip.name);
            let skipped = [1, 4, 16, 100].map(|frames| clip.skipped(frames));
            assert!(skipped.is_sorted_by(|a, b| a >= b) && skipped[0] < 1.0, "{}: {skipped:?}", clip.name);
            // A frame left out, and a second of damage, is better than a picture that stands for a fifth of one.
            assert!(skipped[0] > clip.frozen(Duration::from_millis(200)), "{}", clip.name);
            let damaged = [1, 4, 16, 100].map(|lost| clip.damaged(lost));
            assert!(damaged.is_sorted_by(|a, b| a >= b) && damaged[0] < 1.0, "{}: {damaged:?}", clip.name);
            encoder.check().unwrap();
        }
    }

    #[test]
    fn key_frames_and_smaller_pictures_count_as_they_were_recorded() {
        let clip = Clip::named("film").unwrap();
        // A minute of 200 kbit/s, 1,000 B a frame, key frames each so many, whatever the size of each.
        let run = |each: u64, step: usize| {
            let entry = |n| {
                FrameEntry::new(Instant::from_nanos(40_000_000 * n), n % each == 0, Bytes::new(1_000), Fate::InTime)
            };
            let frames = (0..1_500).map(|n| FrameEntry { step, ..entry(n) }).collect();
            clip.ssim(&Ledger { frames, longest_freeze: Duration::ZERO }).unwrap()
        };
        // Of the film, where key frames take from the others and coincide with no cut.
        assert!(clip.quality(200.0, 0, 0.1) > clip.quality(200.0, 0, 0.5) + 0.02);
        assert!(clip.encoder(50).min_rate > clip.encoder(250).min_rate);
        for (each, step) in [(50, 0), (250, 0), (50, 2), (250, 2)] {
            let steady = clip.quality(200.0, step, 25.0 / each as f64);
            // In the first ten seconds the first key frame counts for more.
            assert!((run(each, step) - steady).abs() < 0.006, "{each} {step}: {} {steady}", run(each, step));
        }
    }

    #[test]
    fn a_screen_that_stands_still_is_judged_by_the_picture_on_it() {
        let clip = Clip::named("film").unwrap();
        let (good, hole) = (Fate::InTime, Fate::Hole);
        let all = ssim(&clip, &[good; 4]);
        assert!((all - clip.quality(800.0, 0, 0.5)).abs() < 1e-9);
        // Two of four are the picture before, 40 and 80 ms old.
        let still = ssim(&clip, &[good, hole, hole, good]);
        let age = |ms| clip.frozen(Duration::from_millis(ms));
        assert!((still - all * (2.0 + age(40) + age(80)) / 4.0).abs() < 1e-9);
        // Nothing on the screen yet is nothing; a frame that is not due yet counts nowhere.
        assert!((ssim(&clip, &[hole, good, Fate::Open]) - all / 2.0).abs() < 1e-9);
        let mut hurt = frame(1, Fate::Reference);
        (hurt.damaged, hurt.missing) = (true, 3);
        let ledger = Ledger { frames: vec![frame(0, good), hurt], longest_freeze: Duration::ZERO };
        let expected = all * (1.0 + clip.damaged(3)) / 2.0;
        assert!((clip.ssim(&ledger).unwrap() - expected).abs() < 1e-9);
        // A hole, one old picture, and after it damage by one frame that was left out.
        let mut hole = frame(1, Fate::Hole);
        hole.skipped = 1;
        let mut after = frame(2, Fate::Reference);
        after.damaged = true;
        let ledger = Ledger { frames: vec![frame(0, good), hole, after], longest_freeze: Duration::ZERO };
        let expected = all * (1.0 + age(40) + clip.skipped(1)) / 3.0;
        assert!((clip.ssim(&ledger).unwrap() - expected).abs() < 1e-9);
        assert_eq!(clip.ssim(&Ledger::default()), None);
    }
}
