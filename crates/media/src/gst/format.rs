//! Size and rate of pictures.

use crate::{MediaError, PictureWish};
use fairpace_units::Duration;
use gstreamer as gst;

/// Larger inputs are made smaller unless another size is wished: VP8's coarsest pictures of 1280x720 take more than lossy paths give, so that
/// most of them are left out (over the demo's path 35 to 86 %; of 640x360 some 4 to 40 %).
const MOST_SIZE: (u32, u32) = (640, 360);
/// Inputs with more pictures a second lose some.
const MOST_PER_SECOND: u32 = 60;
/// Taken where the input does not say.
const USUAL_PER_SECOND: u32 = 25;
/// With less, bits per pixel, VP8's coarsest pictures are too large, and pictures are left out instead.
const LEAST_BITS_PER_PIXEL: f64 = 0.02;
/// The sides of a picture, pixels.
const SIDE: std::ops::RangeInclusive<u32> = 16..=16_382;

/// Size and rate of the pictures that are encoded. The input is scaled (with bars if its shape
/// differs) and its rate converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClipFormat {
    /// Pixels; even.
    pub width: u32,
    /// Pixels; even.
    pub height: u32,
    /// Pictures per second.
    pub frames_per_second: u32,
}

impl Default for ClipFormat {
    /// 640x360 at 25/s: what one core encodes many times over in real time.
    fn default() -> Self {
        ClipFormat { width: 640, height: 360, frames_per_second: 25 }
    }
}

impl ClipFormat {
    /// # Errors
    /// [`MediaError::Parameter`] if a size is odd or beyond VP8's 16,383, or the rate is not in 1 to 120.
    pub fn check(&self) -> Result<(), MediaError> {
        for (field, value) in [("width", self.width), ("height", self.height)] {
            if !SIDE.contains(&value) || value % 2 != 0 {
                let allowed = "it must be an even number of pixels from 16 to 16382";
                return Err(MediaError::Parameter { field, found: value.to_string(), allowed });
            }
        }
        if !(1..=120).contains(&self.frames_per_second) {
            return Err(MediaError::Parameter {
                field: "frames_per_second",
                found: self.frames_per_second.to_string(),
                allowed: "it must be from 1 to 120",
            });
        }
        Ok(())
    }

    /// The format for an input of that size (in square pixels) and that many pictures a second, 0 if it does not say.
    ///
    /// # Errors
    /// As [`check`](Self::check), of a wish that is out of range.
    pub(super) fn suiting(wish: &PictureWish, input: (u32, u32), per_second: f64) -> Result<ClipFormat, MediaError> {
        let known = if per_second >= 0.5 { per_second.round() as u32 } else { USUAL_PER_SECOND };
        let frames_per_second = wish.frames_per_second.unwrap_or(known.clamp(1, MOST_PER_SECOND));
        let (width, height) = wish.size.unwrap_or_else(|| {
            let [w, h] = [input.0, input.1].map(|side| f64::from(side.max(1)));
            // Portrait video turns the bounds around.
            let (long, short) = (f64::from(MOST_SIZE.0), f64::from(MOST_SIZE.1));
            let fits = (long / w.max(h)).min(short / w.min(h)).min(1.0);
            let pixels = w * h * f64::from(frames_per_second);
            let bears = wish.most_rate.map_or(1.0, |rate| (rate.as_bps() / LEAST_BITS_PER_PIXEL / pixels).sqrt());
            let even =
                |side: f64| (((side * fits.min(bears) / 2.0).round() as u32) * 2).clamp(*SIDE.start(), *SIDE.end());
            (even(w), even(h))
        });
        let format = ClipFormat { width, height, frames_per_second };
        format.check()?;
        Ok(format)
    }

    /// Time between two pictures.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / u64::from(self.frames_per_second.max(1)))
    }

    pub(super) fn caps(&self) -> gst::Caps {
        gst::Caps::builder("video/x-raw")
            .field("format", "I420")
            .field("width", self.width as i32)
            .field("height", self.height as i32)
            .field("framerate", gst::Fraction::new(self.frames_per_second as i32, 1))
            .field("pixel-aspect-ratio", gst::Fraction::new(1, 1))
            .build()
    }
}

/// That size and rate, whatever the input's are.
impl From<ClipFormat> for PictureWish {
    fn from(format: ClipFormat) -> Self {
        PictureWish {
            size: Some((format.width, format.height)),
            frames_per_second: Some(format.frames_per_second),
            most_rate: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Rate;

    fn suiting(wish: PictureWish, input: (u32, u32), per_second: f64) -> (u32, u32, u32) {
        let f = ClipFormat::suiting(&wish, input, per_second).unwrap();
        (f.width, f.height, f.frames_per_second)
    }

    #[test]
    fn pictures_are_as_the_inputs_within_reason() {
        let any = PictureWish::default();
        assert_eq!(suiting(any, (1_280, 720), 25.0), (640, 360, 25));
        assert_eq!(suiting(any, (720, 1_280), 29.97), (360, 640, 30), "portrait");
        assert_eq!(suiting(any, (320, 240), 15.0), (320, 240, 15), "small enough");
        assert_eq!(suiting(any, (321, 179), 0.0), (322, 180, 25), "odd, and of a variable rate");
        assert_eq!(suiting(any, (640, 480), 120.0), (480, 360, 60));
        assert_eq!(suiting(any, (8, 4), 0.4), (16, 16, 25), "VP8 has a least");
        assert_eq!(suiting(any, (100_000, 2), 25.0), (640, 16, 25));
    }

    #[test]
    fn wishes_go_first_and_a_low_rate_makes_pictures_smaller() {
        let wish =
            PictureWish { size: Some((320, 240)), frames_per_second: Some(10), most_rate: Some(Rate::kbps(1.0)) };
        assert_eq!(suiting(wish, (1_280, 720), 25.0), (320, 240, 10));
        // 50 kbit/s / 0.02 bit / 25 pictures: 100,000 pixels, of 230,400.
        let low = PictureWish { most_rate: Some(Rate::kbps(50.0)), ..PictureWish::default() };
        assert_eq!(suiting(low, (640, 360), 25.0), (422, 238, 25));
        let enough = PictureWish { most_rate: Some(Rate::mbps(10.0)), ..low };
        assert_eq!(suiting(enough, (640, 360), 25.0), (640, 360, 25));
        let odd = PictureWish { size: Some((321, 240)), ..PictureWish::default() };
        assert!(ClipFormat::suiting(&odd, (64, 64), 25.0).unwrap_err().to_string().contains("even number of pixels"));
    }
}
