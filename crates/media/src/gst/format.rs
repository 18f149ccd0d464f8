//! Size and rate of pictures.

use crate::MediaError;
use fairpace_units::Duration;
use gstreamer as gst;

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
            if !(16..=16_382).contains(&value) || value % 2 != 0 {
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
