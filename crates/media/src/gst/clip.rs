//! Raw pictures: a clip in memory, or a long one as it is decoded.

use super::decoder::{Decoder, Input, Step};
use super::format::ClipFormat;
use crate::{MediaError, PictureWish};
use fairpace_units::Duration;
use gstreamer as gst;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// How much raw video is kept: at 640x360 (345,600 B a picture) 776 pictures, 31 s at 25/s.
const MEMORY: usize = 256 << 20;
/// Length of the test pattern's loop.
const PATTERN_SECONDS: u32 = 10;

/// Decoded pictures in memory, to be encoded any number of times. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Clip {
    pub(super) name: String,
    pub(super) format: ClipFormat,
    pub(super) pictures: Arc<[gst::Buffer]>,
    /// The input goes on beyond what memory is kept for (256 MiB of raw pictures).
    pub truncated: bool,
}

impl Clip {
    /// Decodes a file.
    ///
    /// # Errors
    /// The file cannot be opened, or has no video that can be decoded: GStreamer's words and the remedy.
    pub fn load(path: impl AsRef<Path>, format: ClipFormat) -> Result<Clip, MediaError> {
        Self::decode(Input::File(path.as_ref().to_owned()), format)
    }

    /// A moving pattern of ten seconds with the time in it.
    ///
    /// # Errors
    /// GStreamer lacks `videotestsrc`.
    pub fn test_pattern(format: ClipFormat) -> Result<Clip, MediaError> {
        Self::decode(Input::TestPattern(PATTERN_SECONDS * format.frames_per_second), format)
    }

    fn decode(input: Input, format: ClipFormat) -> Result<Clip, MediaError> {
        format.check()?;
        let mut decoder = Decoder::open(input, format.into())?;
        let name = decoder.name().to_owned();
        let (mut pictures, mut bytes, mut truncated) = (Vec::new(), 0, false);
        while let Some(picture) = decoder.next()? {
            bytes += picture.size();
            if bytes > MEMORY && !pictures.is_empty() {
                truncated = true;
                break;
            }
            pictures.push(own(&picture, &name)?);
        }
        if pictures.is_empty() {
            return Err(MediaError::NoVideo { input: name, message: String::new() });
        }
        Ok(Clip { name, format, pictures: pictures.into(), truncated })
    }

    /// Size and rate of the pictures.
    pub fn format(&self) -> ClipFormat {
        self.format
    }

    /// How many pictures a loop has.
    pub fn pictures(&self) -> usize {
        self.pictures.len()
    }

    /// Length of a loop.
    pub fn length(&self) -> Duration {
        self.format.interval() * u32::try_from(self.pictures.len()).unwrap_or(u32::MAX)
    }
}

/// A picture in memory of its own: the decoder's pool gets its buffer back.
fn own(picture: &gst::Buffer, name: &str) -> Result<gst::Buffer, MediaError> {
    picture.copy_deep().map_err(super::refused(name, "appsink"))
}

/// Pictures without end: from memory as soon as the whole input is known to fit, from the decoder until then.
#[derive(Debug)]
pub(super) struct Pictures {
    pub(super) name: String,
    pub(super) format: ClipFormat,
    /// Size of the input's pictures, in square pixels.
    pub(super) input_size: Option<(u32, u32)>,
    decoder: Option<Decoder>,
    /// All pictures so far, or the whole clip.
    kept: Vec<gst::Buffer>,
    bytes: usize,
    /// How many bytes of pictures may be kept.
    limit: usize,
    /// `kept` is not everything: the input is too long.
    overflown: bool,
    position: usize,
    last: Option<gst::Buffer>,
    ended: bool,
    sound: bool,
}

impl Pictures {
    pub(super) fn from_clip(clip: &Clip) -> Self {
        Pictures {
            name: clip.name.clone(),
            format: clip.format,
            input_size: None,
            decoder: None,
            kept: clip.pictures.to_vec(),
            bytes: 0,
            limit: MEMORY,
            overflown: false,
            position: 0,
            last: None,
            ended: false,
            sound: false,
        }
    }

    /// Decodes as it goes. The first picture is waited for, so that a bad file is an error here.
    pub(super) fn open(input: Input, wish: PictureWish) -> Result<Self, MediaError> {
        let mut decoder = Decoder::open(input, wish)?;
        let name = decoder.name().to_owned();
        let (Some(first), Some(format)) = (decoder.next()?, decoder.format()?) else {
            return Err(MediaError::NoVideo { input: name, message: String::new() });
        };
        let first = own(&first, &name)?;
        Ok(Pictures {
            name,
            format,
            input_size: decoder.input_size(),
            decoder: Some(decoder),
            bytes: first.size(),
            kept: vec![first],
            limit: MEMORY,
            overflown: false,
            position: 0,
            last: None,
            ended: false,
            sound: false,
        })
    }

    /// From a reader: a pipe is shown once, then has ended.
    pub(super) fn pipe(
        reader: impl Read + Send + 'static,
        name: String,
        wish: PictureWish,
    ) -> Result<Self, MediaError> {
        Self::open(Input::Pipe(Box::new(reader), name), wish)
    }

    /// Whether the input has sound, as far as is known.
    pub(super) fn has_sound(&self) -> bool {
        self.sound || self.decoder.as_ref().is_some_and(Decoder::has_sound)
    }

    /// The picture to capture now; `None` at the end of a pipe. Never waits: if the decoder has
    /// nothing yet, the picture before stands still.
    pub(super) fn next(&mut self) -> Result<Option<gst::Buffer>, MediaError> {
        if self.ended {
            return Ok(None);
        }
        if let Some(picture) = self.kept.get(self.position).cloned() {
            self.position += 1;
            self.last = Some(picture.clone());
            return Ok(Some(picture));
        }
        let Some(decoder) = &mut self.decoder else {
            // All of it is in memory: from the beginning.
            self.position = 0;
            self.ended = self.kept.is_empty();
            return if self.ended { Ok(None) } else { self.next() };
        };
        match decoder.step(Duration::ZERO)? {
            Step::Wait => Ok(self.last.clone()),
            Step::Picture(picture) => {
                let picture = own(&picture, &self.name)?;
                if !self.overflown && self.bytes + picture.size() <= self.limit {
                    self.bytes += picture.size();
                    self.kept.push(picture.clone());
                    self.position = self.kept.len();
                } else {
                    // Too long to keep: what was kept is of no use any more.
                    self.overflown = true;
                    self.kept.clear();
                    self.position = 0;
                }
                self.last = Some(picture.clone());
                Ok(Some(picture))
            }
            Step::End if self.overflown => {
                if decoder.rewind() {
                    Ok(self.last.clone())
                } else {
                    self.ended = true;
                    Ok(None)
                }
            }
            Step::End if decoder.is_pipe() => {
                self.ended = true;
                Ok(None)
            }
            Step::End => {
                self.sound |= decoder.has_sound();
                self.decoder = None;
                self.next()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_too_long_for_memory_is_rewound_at_its_end() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../media/bigbuckbunny.mp4");
        let format = ClipFormat { width: 64, height: 36, frames_per_second: 25 };
        let mut pictures = Pictures::open(Input::File(file.into()), format.into()).unwrap();
        pictures.limit = 10 * 64 * 36 * 3 / 2;
        let bytes = |b: &gst::Buffer| b.map_readable().map(|m| m.to_vec()).unwrap();
        let first = bytes(&pictures.next().unwrap().unwrap());
        let (mut last, mut changes) = (first.clone(), 0);
        // `next` never waits, so a picture may come several times; each call lets the decoder work.
        for _ in 0..20_000 {
            let picture = bytes(&pictures.next().unwrap().expect("a file does not end"));
            if picture != last {
                changes += 1;
                last = picture;
            }
            if changes > 20 && last == first {
                break;
            }
            std::thread::park_timeout(Duration::from_micros(500));
        }
        // 132 pictures, then the first again; some neighbours may be equal at this size.
        assert!(last == first && (100..=132).contains(&changes), "{changes}");
        assert!(pictures.overflown && pictures.kept.is_empty());
    }
}
