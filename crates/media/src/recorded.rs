//! Frame sizes that somebody measured, sent again: a list, looped.
//!
//! The list is text, one frame a line, in the order they were encoded:
//!
//! ```text
//! # anything after a hash is a comment; empty lines are skipped
//! bytes,key        <- a head of names is allowed
//! 12840,1          <- a key frame: 1, key or I
//! 2210,0           <- another: 0, delta, P or B
//! 1985             <- without the second field: a key frame only if it is the first of the list
//! ```

use crate::constant::skip_missed;
use crate::filler::filler;
use crate::{Codec, EncodedFrame, Format, FrameSource, MediaError, timestamp_90k};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// No real frame is larger.
const MAX_SIZE: u64 = 1 << 26;

/// The longest list that is read, in bytes: some two days of frames.
const MAX_LIST: u64 = 1 << 26;

/// A recorded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedFrame {
    /// Its size.
    pub size: Bytes,
    /// Needs no other frame.
    pub key: bool,
}

/// Plays a list of frame sizes at a fixed interval, over and over.
#[derive(Clone, Debug)]
pub struct RecordedSource {
    frames: Vec<RecordedFrame>,
    interval: Duration,
    position: usize,
    next: Instant,
    /// The list's own mean, if sizes are to be scaled from it to the target.
    scale_from: Option<Rate>,
    target: Option<Rate>,
    /// Bytes that rounding has held back; below 1.
    carried: f64,
}

impl RecordedSource {
    /// Reads a list; the frames come each `interval` (at least 1 ms).
    ///
    /// # Errors
    /// [`MediaError::File`], or [`MediaError::SizeList`] with the line.
    pub fn open(path: impl AsRef<Path>, interval: Duration) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let cannot = |source| MediaError::File { path: path.to_owned(), doing: "read", source };
        let file = File::open(path).map_err(cannot)?;
        let mut text = String::new();
        let read = file.take(MAX_LIST + 1).read_to_string(&mut text).map_err(cannot)?;
        if read as u64 > MAX_LIST {
            let too_long = io::Error::new(io::ErrorKind::FileTooLarge, "a list of more than 64 MiB");
            return Err(cannot(too_long));
        }
        Self::parse(&text, &path.display().to_string(), interval)
    }

    /// As [`RecordedSource::open`], from the list's text; `name` is for messages.
    ///
    /// # Errors
    /// [`MediaError::SizeList`] with the line.
    pub fn parse(text: &str, name: &str, interval: Duration) -> Result<Self, MediaError> {
        let mut frames: Vec<RecordedFrame> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line_number = i + 1;
            let wrong = |found: &str, problem, allowed| MediaError::SizeList {
                name: name.to_owned(),
                line: line_number,
                found: found.to_owned(),
                problem,
                allowed,
            };
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() || (frames.is_empty() && content.starts_with("bytes")) {
                continue;
            }
            let mut fields = content.split([',', ';', '\t']).map(str::trim);
            let size = fields.next().unwrap_or_default();
            let key = fields.next();
            if let Some(extra) = fields.next() {
                return Err(wrong(extra, "is one field too many", "a line is `bytes` or `bytes,key`"));
            }
            let bytes = size.parse::<u64>().ok().filter(|b| (1..=MAX_SIZE).contains(b)).ok_or_else(|| {
                wrong(size, "is not a frame size", "write a whole number of bytes from 1 to 67108864")
            })?;
            let key = match key {
                None => frames.is_empty(),
                Some("1" | "key" | "I" | "i") => true,
                Some("0" | "delta" | "P" | "p" | "B" | "b") => false,
                Some(other) => {
                    return Err(wrong(
                        other,
                        "does not say whether it is a key frame",
                        "write 1, key or I, or 0, delta, P or B",
                    ));
                }
            };
            frames.push(RecordedFrame { size: Bytes::new(bytes), key });
        }
        if frames.is_empty() {
            let line = text.lines().count().max(1);
            let (problem, allowed) = ("has no frames in it", "at least one line must hold a size");
            return Err(MediaError::SizeList { name: name.to_owned(), line, found: name.to_owned(), problem, allowed });
        }
        Ok(Self::new(frames, interval))
    }

    /// From frames known otherwise, at least one.
    ///
    /// # Panics
    /// If there is none: a list without frames is a bug of the caller's.
    pub fn new(frames: Vec<RecordedFrame>, interval: Duration) -> Self {
        assert!(!frames.is_empty(), "a recorded source needs at least one frame");
        let interval = interval.max(Duration::from_millis(1));
        RecordedSource {
            frames,
            interval,
            position: 0,
            next: Instant::ZERO,
            scale_from: None,
            target: None,
            carried: 0.0,
        }
    }

    /// Lets the sizes follow the target: each is multiplied by target / the list's own mean, as if the same
    /// scenes had been encoded at another rate.
    #[must_use]
    pub fn scaled(mut self) -> Self {
        self.scale_from = Some(self.mean_rate());
        self
    }

    /// The list's own mean rate.
    pub fn mean_rate(&self) -> Rate {
        let bits: f64 = self.frames.iter().map(|f| f.size.as_f64() * 8.0).sum();
        Rate::bps(bits / (self.frames.len() as f64 * self.interval.as_secs_f64()))
    }
}

impl FrameSource for RecordedSource {
    fn format(&self) -> Format {
        let follows_rate = self.scale_from.is_some();
        Format {
            codec: Codec::Filler,
            width: 0,
            height: 0,
            frame_interval: self.interval,
            follows_rate,
            scaled_from: None,
            sound: false,
            cut_off: false,
        }
    }

    /// No effect unless [`scaled`](RecordedSource::scaled).
    fn set_rate(&mut self, rate: Rate) {
        self.target = Some(rate);
    }

    /// Starts the list again at its next key frame, if it has one after here; a recording cannot do more.
    fn request_key_frame(&mut self) {
        let n = self.frames.len();
        let ahead = (0..n).map(|i| (self.position + i) % n).find(|&i| self.frames[i].key);
        self.position = ahead.unwrap_or(self.position);
    }

    fn next_frame_at(&self) -> Instant {
        self.next
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        if now < self.next {
            return Ok(None);
        }
        let capture = skip_missed(&mut self.next, self.interval, now);
        let frame = self.frames[self.position];
        self.position = (self.position + 1) % self.frames.len();
        let scale = match (self.scale_from, self.target) {
            (Some(from), Some(to)) => to.as_bps() / from.as_bps(),
            _ => 1.0,
        };
        let exact = frame.size.as_f64() * scale + self.carried;
        let bytes = exact as u64;
        self.carried = exact - bytes as f64;
        let data = filler(bytes, frame.key);
        Ok(Some(EncodedFrame { data, capture, timestamp_90k: timestamp_90k(capture), key: frame.key }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS40: Duration = Duration::from_millis(40);

    fn sizes(s: &mut RecordedSource, n: usize) -> Vec<(usize, bool)> {
        let mut next = || {
            let now = s.next_frame_at();
            s.next_frame(now).unwrap().unwrap()
        };
        (0..n).map(|_| next()).map(|f| (f.data.len(), f.key)).collect()
    }

    #[test]
    fn a_list_is_played_in_order_and_looped() {
        let text = "# a clip\nbytes,key\n1000,I\n200,0\n\n300 # the last\n";
        let mut s = RecordedSource::parse(text, "x", MS40).unwrap();
        assert_eq!(sizes(&mut s, 4), [(1_000, true), (200, false), (300, false), (1_000, true)]);
        assert_eq!(s.next_frame_at(), Instant::from_nanos(160_000_000));
    }

    #[test]
    fn a_list_without_end_is_not_read_to_it() {
        let error = RecordedSource::open("/dev/zero", MS40).unwrap_err().to_string();
        assert_eq!(error, "`/dev/zero`: cannot read: a list of more than 64 MiB");
    }

    #[test]
    fn scaled_sizes_have_the_mean_of_the_target() {
        // 1,500 B in 3 x 40 ms are 100 kbit/s; at 250 kbit/s each frame is 2.5 times as large.
        let mut s = RecordedSource::parse("1000\n200\n300", "x", MS40).unwrap().scaled();
        assert_eq!(s.mean_rate(), Rate::kbps(100.0));
        s.set_rate(Rate::kbps(250.0));
        assert_eq!(sizes(&mut s, 3), [(2_500, true), (500, false), (750, false)]);
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_allowed() {
        let say = |text: &str| RecordedSource::parse(text, "sizes.csv", MS40).unwrap_err().to_string();
        assert_eq!(
            say("100\n\n-5,1\n"),
            "sizes.csv:3: `-5` is not a frame size; write a whole number of bytes from 1 to 67108864"
        );
        assert_eq!(
            say("100,x"),
            "sizes.csv:1: `x` does not say whether it is a key frame; write 1, key or I, or 0, delta, P or B"
        );
        assert_eq!(say("1,1,7"), "sizes.csv:1: `7` is one field too many; a line is `bytes` or `bytes,key`");
        for bad in ["0", "1.5", "1e3", "99999999999999999999", "67108865", "ten"] {
            assert!(say(bad).contains("is not a frame size"), "{bad}");
        }
        assert_eq!(
            say("# empty\n"),
            "sizes.csv:1: `sizes.csv` has no frames in it; at least one line must hold a size"
        );
    }

    #[test]
    fn a_key_frame_request_goes_on_to_the_next_one_of_the_list() {
        let mut s = RecordedSource::parse("900,I\n1,P\n2,P\n800,I\n3,P", "x", MS40).unwrap();
        sizes(&mut s, 2);
        s.request_key_frame();
        assert_eq!(sizes(&mut s, 1), [(800, true)]);
    }
}
