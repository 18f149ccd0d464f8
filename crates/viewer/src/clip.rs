//! How pictures look: recorded tables of SSIM, by which a ledger is judged as its viewer would.

use crate::ledger::{Fate, Ledger};
use fairpace_media::EncoderModelParams;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use serde::Deserialize;

/// Frames over whose mean size the encoder's rate is taken: half a second.
const RATE_OVER: usize = 12;

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
    quality: ByRate,
    frozen: ByTime,
    damaged: ByLosses,
    skipped: ByLosses,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByRate {
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

    /// An encoder whose frames vary as this clip's do, and that goes no lower than its coarsest quantizer.
    pub fn encoder(&self) -> EncoderModelParams {
        let usual = EncoderModelParams::default();
        let min_rate = self.table.quality.kbps.first().map_or(usual.min_rate, |kbps| Rate::kbps(*kbps));
        EncoderModelParams { key_ratio: self.table.key_ratio, sigma: self.table.sigma, min_rate, ..usual }
    }

    /// SSIM of a picture of an encoder at that rate, in kbit/s.
    pub fn quality(&self, kbps: f64) -> f64 {
        between(&self.table.quality.kbps, &self.table.quality.ssim, kbps)
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
            }
            if frame.fate == Fate::Open {
                continue;
            }
            let last = sizes.get(sizes.len().saturating_sub(RATE_OVER)..).unwrap_or_default();
            let mean = last.iter().map(|size| size.as_f64()).sum::<f64>() / last.len().max(1) as f64;
            let quality = self.quality(mean * 8e-3 / interval_s);
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
            let rates = [100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0].map(|kbps| clip.quality(kbps));
            assert!(rates.is_sorted() && rates[0] > 0.3 && rates[5] < 1.0, "{}: {rates:?}", clip.name);
            let frozen = [0, 20, 40, 400, 1_200].map(|ms| clip.frozen(Duration::from_millis(ms)));
            assert!(frozen.is_sorted_by(|a, b| a >= b) && frozen[0] == 1.0, "{}: {frozen:?}", clip.name);
            let skipped = [1, 4, 16, 100].map(|frames| clip.skipped(frames));
            assert!(skipped.is_sorted_by(|a, b| a >= b) && skipped[0] < 1.0, "{}: {skipped:?}", clip.name);
            // A frame left out, and a second of damage, is better than a picture that stands for a fifth of one.
            assert!(skipped[0] > clip.frozen(Duration::from_millis(200)), "{}", clip.name);
            let damaged = [1, 4, 16, 100].map(|lost| clip.damaged(lost));
            assert!(damaged.is_sorted_by(|a, b| a >= b) && damaged[0] < 1.0, "{}: {damaged:?}", clip.name);
            clip.encoder().check().unwrap();
        }
    }

    #[test]
    fn a_screen_that_stands_still_is_judged_by_the_picture_on_it() {
        let clip = Clip::named("film").unwrap();
        let (good, hole) = (Fate::InTime, Fate::Hole);
        let all = ssim(&clip, &[good; 4]);
        assert!((all - clip.quality(800.0)).abs() < 1e-9);
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
