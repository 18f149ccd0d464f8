//! MPEG-2 that follows a rate as the encoders of its time did: by groups of pictures, with what one group spent too much taken
//! from the next. In virtual time; nothing of it is sent.
//! Source: [TM5], the model encoder's rate control, step 1; [rcs §III-F] names an encoder of that family.
//!
//! | symbol | here | meaning |
//! | --- | --- | --- |
//! | N | [`GROUP`] | pictures of a group: I B B P B B P … |
//! | G = S·T_N | `allotted` | bits that the rate gives to a group of N pictures |
//! | R | `left` | bits that are left: `R += G` when a group begins, `R -=` what it took |
//! | X = S·Q | `complexity` | bits of a group times its quantizer: what its pictures are like |
//! | Q | `quantizer` | X / R, a whole number within [`FINEST`] and [`COARSEST`] |
//!
//! Readings:
//! - The quantizer holds for a group: each group is encoded by itself. [TM5]'s steps 2 and 3, which move it within a picture, are left out.
//! - No picture is left out, however much was spent: at [`COARSEST`] the encoder gives what it gives, and R becomes negative.
//! - Pictures leave in the encoder's order, one in each interval.
//!
//! The program `ffmpeg` encodes. GStreamer's `avenc_mpeg2video` of Debian 12 (1.22.0) refuses every rate of pictures: it hands its library a
//! clock of nanoseconds, of which MPEG-2 knows none.

use super::Clip;
use crate::MediaError;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use gstreamer as gst;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Pictures of a group.
const GROUP: usize = 12;
/// B pictures between two others.
const BETWEEN: &str = "2";
/// The quantizers of MPEG-2.
const FINEST: u8 = 1;
/// See [`FINEST`].
const COARSEST: u8 = 31;
/// [TM5]'s first: d0 = 10 r / 31.
const FIRST: u8 = 10;

/// The sizes of groups that have been encoded, by their pictures and their quantizer: a group does not depend on what was before it, and few series
/// need many that another has not needed.
#[derive(Debug, Default)]
pub struct Groups(Mutex<BTreeMap<(Vec<usize>, u8), Group>>);

#[derive(Debug)]
struct Group {
    sizes: Arc<[Bytes]>,
    /// Kept so that no other picture comes to lie where one of these was.
    _pictures: Vec<gst::Buffer>,
}

impl Groups {
    /// Sizes of the pictures of a closed group that begins with that picture of the clip, in the encoder's order.
    fn of(&self, clip: &Clip, first: usize, quantizer: u8) -> Result<Arc<[Bytes]>, MediaError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pictures: Vec<&gst::Buffer> =
            (first..first + GROUP).map(|n| &clip.pictures[n % clip.pictures.len()]).collect();
        let key = (pictures.iter().map(|picture| picture.as_ptr() as usize).collect(), quantizer);
        if let Some(group) = known().get(&key) {
            return Ok(Arc::clone(&group.sizes));
        }
        // Others may look meanwhile.
        let sizes: Arc<[Bytes]> = encode_group(clip, &pictures, quantizer)?.into();
        let group = Group { sizes: Arc::clone(&sizes), _pictures: pictures.into_iter().cloned().collect() };
        known().insert(key, group);
        Ok(sizes)
    }
}

/// The frame sizes R(t) of an MPEG-2 encoder, looping the clip for `duration`, when its target is the series S(t) [rcs §III-F Fig. 7]:
/// as [`encode_following`](super::encode_following), whose entries these are like. Each picture gives one. The same call gives the same sizes,
/// whatever is in `groups`.
///
/// # Errors
/// `ffmpeg` is missing or fails; an empty series, a clip without pictures.
pub fn encode_mpeg2_following(
    clip: &Clip,
    groups: &Groups,
    rates: &[(Instant, Rate)],
    duration: Duration,
) -> Result<Vec<(Instant, Bytes)>, MediaError> {
    let empty = |field| {
        let allowed = "it must have at least one entry";
        MediaError::Parameter { field, found: "empty".to_owned(), allowed }
    };
    let Some(&(_, mut rate)) = rates.first() else { return Err(empty("rates")) };
    if clip.pictures() == 0 {
        return Err(empty("clip"));
    }
    let (interval, end) = (clip.format().interval(), Instant::ZERO + duration);
    let mut control = RateControl::default();
    let mut sizes: Vec<(Instant, Bytes)> = Vec::new();
    let mut rates = rates.iter().copied().peekable();
    let mut now = Instant::ZERO;
    while now < end {
        while let Some((_, next)) = rates.next_if(|&(from, _)| from <= now) {
            rate = next;
        }
        let quantizer = control.begin_group(rate.as_bps() * interval.as_secs_f64() * GROUP as f64);
        let frames = groups.of(clip, sizes.len() % clip.pictures(), quantizer)?;
        control.end_group(frames.iter().map(|size| size.as_f64() * 8.0).sum());
        for size in frames.iter() {
            sizes.push((now, *size));
            now += interval;
        }
    }
    sizes.retain(|&(at, _)| at < end);
    Ok(sizes)
}

/// [TM5] step 1, for groups.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct RateControl {
    left: f64,
    quantizer: u8,
    /// Of the group before; none before the first.
    complexity: Option<f64>,
}

impl RateControl {
    /// A group begins to which the rate gives so many bits; its quantizer.
    fn begin_group(&mut self, allotted: f64) -> u8 {
        self.left += allotted;
        self.quantizer = match self.complexity {
            None => FIRST,
            Some(_) if self.left <= 0.0 => COARSEST,
            Some(complexity) => (complexity / self.left).round().clamp(FINEST.into(), COARSEST.into()) as u8,
        };
        self.quantizer
    }

    /// The group took so many bits.
    fn end_group(&mut self, bits: f64) {
        self.left -= bits;
        self.complexity = Some(bits * f64::from(self.quantizer));
    }
}

/// Sizes of the pictures of a closed group, in the encoder's order.
fn encode_group(clip: &Clip, pictures: &[&gst::Buffer], quantizer: u8) -> Result<Vec<Bytes>, MediaError> {
    let format = clip.format();
    let failed = |message: String, missing| MediaError::Ffmpeg { path: PathBuf::from(&clip.name), message, missing };
    let io = |e: std::io::Error| failed(e.to_string(), e.kind() == std::io::ErrorKind::NotFound);
    let mut child = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-video_size"])
        .arg(format!("{}x{}", format.width, format.height))
        .args(["-framerate", &format.frames_per_second.to_string(), "-i", "-", "-c:v", "mpeg2video"])
        .args(["-qmin", "1", "-qmax", "31", "-qscale:v", &quantizer.to_string(), "-g", &GROUP.to_string()])
        // A line for each packet: stream, times, duration, size, checksum.
        .args(["-bf", BETWEEN, "-threads", "1", "-f", "framecrc", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io)?;
    if let Some(mut pipe) = child.stdin.take() {
        for picture in pictures {
            let bytes = picture.map_readable().map_err(|e| failed(e.to_string(), false))?;
            // One that wants no more has a reason to say.
            if pipe.write_all(&bytes).is_err() {
                break;
            }
        }
    }
    let output = child.wait_with_output().map_err(io)?;
    let size = |line: &str| line.split(',').nth(4)?.trim().parse().ok().map(Bytes::new);
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let sizes: Vec<Bytes> = lines.lines().filter(|line| !line.starts_with('#')).filter_map(size).collect();
    if sizes.len() != GROUP {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = words.lines().last().unwrap_or("it said nothing");
        return Err(failed(format!("{} of {GROUP} pictures came out: {last}", sizes.len()), false));
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_spent_too_much_is_taken_from_the_next() {
        let mut control = RateControl::default();
        // The first group knows nothing: 150 of 100 bits at 10. The next has 50, where 150 × 10 / 50 = 30 is due.
        assert_eq!(control.begin_group(100.0), FIRST);
        control.end_group(150.0);
        assert_eq!(control.begin_group(100.0), 30);
        control.end_group(50.0);
        // All is paid: 50 × 30 / 100.
        assert_eq!(control.begin_group(100.0), 15);
        // Nothing is left, and less than that: the coarsest.
        control.end_group(300.0);
        assert_eq!(control.begin_group(100.0), COARSEST);
        control.end_group(60.0);
        // -160 + 1,000 bits, 60 × 31 of complexity: 2.2.
        assert_eq!(control.begin_group(1_000.0), 2);
        // Never finer than the finest.
        control.end_group(1.0);
        assert_eq!(control.begin_group(1e6), FINEST);
    }
}
