//! A live source: pictures captured at the caller's times, encoded beside the caller.

use super::clip::{Clip, Pictures};
use super::decoder::Input;
use super::encoder::{Encoder, EncoderParams};
use super::format::ClipFormat;
use crate::constant::skip_missed;
use crate::{Codec, EncodedFrame, Format, FrameSource, MediaError, PictureFit, PictureWish, timestamp_90k};
use fairpace_units::{Duration, Instant, Rate};
use std::io::Read;
use std::path::Path;

/// First look at the encoder after a capture, and the time between further looks.
const LOOK: Duration = Duration::from_millis(2);
/// Pictures in the encoder beyond which captures are skipped: the machine is too slow.
const MAX_IN_FLIGHT: usize = 3;

/// Real video as a [`FrameSource`]: captures at fixed intervals from zero on, loops files, ends with a pipe.
#[derive(Debug)]
pub struct GstSource {
    pictures: Pictures,
    encoder: Encoder,
    /// Of a source of whose pictures nobody has wished for a size.
    fit: Option<PictureFit>,
    /// The encoder's rate.
    rate: Rate,
    interval: Duration,
    next_capture: Instant,
    look_at: Instant,
    key_wanted: bool,
    ended: bool,
    skipped: GstSkipped,
}

/// Captures that were left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GstSkipped {
    /// The rate allowed no frame, even at the coarsest quality.
    pub by_rate: u32,
    /// The encoder was still busy with earlier ones.
    pub by_encoder: u32,
}

impl GstSource {
    /// A file, looped.
    ///
    /// # Errors
    /// As [`Clip::load`], and if vp8enc is missing.
    pub fn open(
        path: impl AsRef<Path>,
        wish: impl Into<PictureWish>,
        params: EncoderParams,
    ) -> Result<Self, MediaError> {
        let wish = wish.into();
        Self::new(Pictures::open(Input::File(path.as_ref().to_owned()), wish)?, wish, params)
    }

    /// A clip in memory, looped; the same one can feed several sources.
    ///
    /// # Errors
    /// vp8enc is missing, or a parameter out of range.
    pub fn from_clip(clip: &Clip, params: EncoderParams) -> Result<Self, MediaError> {
        Self::new(Pictures::from_clip(clip), clip.format().into(), params)
    }

    /// A moving test pattern, of 640x360 at 25/s unless wished otherwise.
    ///
    /// # Errors
    /// As [`Clip::test_pattern`].
    pub fn test_pattern(wish: impl Into<PictureWish>, params: EncoderParams) -> Result<Self, MediaError> {
        let (wish, usual) = (wish.into(), ClipFormat::default());
        let (width, height) = wish.size.unwrap_or((usual.width, usual.height));
        let frames_per_second = wish.frames_per_second.unwrap_or(usual.frames_per_second);
        let clip = Clip::test_pattern(ClipFormat { width, height, frames_per_second })?;
        Self::new(Pictures::from_clip(&clip), wish, params)
    }

    /// Video in any container that can be read from front to back; ends with it. `name` is for messages.
    ///
    /// # Errors
    /// As [`Clip::load`].
    pub fn pipe(
        reader: impl Read + Send + 'static,
        name: impl Into<String>,
        wish: impl Into<PictureWish>,
        params: EncoderParams,
    ) -> Result<Self, MediaError> {
        let wish = wish.into();
        Self::new(Pictures::pipe(reader, name.into(), wish)?, wish, params)
    }

    /// Without a wish for a size, pictures are smaller at low rates.
    fn new(pictures: Pictures, wish: PictureWish, params: EncoderParams) -> Result<Self, MediaError> {
        let encoder = Encoder::new(&pictures.name, &pictures.format, params)?;
        let (interval, ClipFormat { width, height, .. }) = (pictures.format.interval(), pictures.format);
        Ok(GstSource {
            pictures,
            encoder,
            fit: wish.size.is_none().then(|| PictureFit::new((width, height), interval)),
            rate: params.start_rate,
            interval,
            next_capture: Instant::ZERO,
            look_at: Instant::NEVER,
            key_wanted: true,
            ended: false,
            skipped: GstSkipped::default(),
        })
    }

    /// Captures left out so far, and why.
    pub fn skipped(&self) -> GstSkipped {
        self.skipped
    }

    fn capture(&mut self, now: Instant) -> Result<(), MediaError> {
        let capture = skip_missed(&mut self.next_capture, self.interval, now);
        let Some(picture) = self.pictures.next()? else {
            self.next_capture = Instant::NEVER;
            return Ok(());
        };
        if self.encoder.in_flight() >= MAX_IN_FLIGHT {
            self.skipped.by_encoder += 1;
        } else if self.encoder.must_skip(capture) {
            self.skipped.by_rate += 1;
        } else {
            let key = std::mem::take(&mut self.key_wanted);
            let ClipFormat { width, height, .. } = self.pictures.format;
            let rate = self.rate;
            if let Some(fit) = &mut self.fit
                && fit.on_picture(capture, rate, key)
            {
                self.encoder.set_size(PictureFit::size(fit.step(), (width, height)));
            }
            self.encoder.push(&picture, capture, self.interval, key)?;
            self.look_at = now + LOOK;
        }
        Ok(())
    }

    fn step(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        if now >= self.next_capture {
            self.capture(now)?;
        }
        if now < self.look_at {
            return Ok(None);
        }
        let frame = self.encoder.pull(Duration::ZERO)?;
        self.look_at = match (&frame, self.encoder.in_flight()) {
            (_, 0) => Instant::NEVER,
            (Some(_), _) => now,
            (None, _) => now + LOOK,
        };
        if let (Some(fit), Some(frame)) = (&mut self.fit, &frame) {
            fit.on_frame(now, frame.data.len(), frame.key);
        }
        Ok(frame.map(|f| EncodedFrame {
            data: f.data,
            capture: f.capture,
            timestamp_90k: timestamp_90k(f.capture),
            key: f.key,
        }))
    }
}

impl FrameSource for GstSource {
    fn format(&self) -> Format {
        let ClipFormat { width, height, .. } = self.pictures.format;
        let scaled_from = self.pictures.input_size.filter(|size| *size != (width, height));
        Format {
            codec: Codec::Vp8,
            width,
            height,
            frame_interval: self.interval,
            follows_rate: true,
            scaled_from,
            sound: self.pictures.has_sound(),
            cut_off: false,
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.encoder.set_rate(rate);
    }

    fn request_key_frame(&mut self) {
        self.key_wanted = true;
    }

    fn next_frame_at(&self) -> Instant {
        if self.ended { Instant::NEVER } else { self.next_capture.min(self.look_at) }
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        if self.ended || now < self.next_frame_at() {
            return Ok(None);
        }
        let result = self.step(now);
        self.ended = result.is_err();
        result
    }
}
