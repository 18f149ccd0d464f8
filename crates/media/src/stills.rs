//! Pictures from a received video, for a page.
//!
//! The program `ffmpeg` decodes: it takes a stream with holes as it is, knows IVF, and a damaged file is
//! its crash, not ours. The frame on the screen at a given time is looked up here, in the file's own frames; so the
//! decoder never seeks, and all pictures come out of one pass.

use crate::{IvfReader, MediaError, vp8};
use fairpace_units::Duration;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

/// A picture of what was on the screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Still {
    /// The time asked for.
    pub time: Duration,
    /// When the picture that was on the screen then had been taken: earlier, if it stood still.
    pub taken: Duration,
    /// The picture as JPEG.
    pub jpeg: Vec<u8>,
}

/// The pictures that a viewer of this IVF file saw at these times, `width` pixels wide. A time before the first
/// picture has `None`: nothing was on the screen.
///
/// # Errors
/// The file cannot be read or has no VP8; ffmpeg is missing or fails.
pub fn stills(path: impl AsRef<Path>, times: &[Duration], width: u32) -> Result<Vec<Option<Still>>, MediaError> {
    let path = path.as_ref();
    let shown = shown_times(path)?;
    // For each time the number of pictures shown until then; the last of them is on the screen.
    let wanted: Vec<Option<usize>> =
        times.iter().map(|&time| shown.partition_point(|&t| t <= time).checked_sub(1)).collect();
    let mut numbers: Vec<usize> = wanted.iter().copied().flatten().collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return Ok(vec![None; times.len()]);
    }
    let pictures = decode(path, &numbers, width)?;
    Ok(std::iter::zip(times, wanted)
        .map(|(&time, number)| {
            let number = number?;
            let jpeg = pictures.get(numbers.binary_search(&number).ok()?)?.clone();
            Some(Still { time, taken: shown[number], jpeg })
        })
        .collect())
}

/// Times of the pictures that a player shows: a decoder starts at the first key frame.
fn shown_times(path: &Path) -> Result<Vec<Duration>, MediaError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| MediaError::File { path: path.to_owned(), doing: "open", source })?;
    let mut reader = IvfReader::new(BufReader::new(file), name)?;
    let (mut times, mut begun) = (Vec::new(), false);
    // A file that ends in the middle of a frame (the receiver was killed) still has its pictures.
    while let Ok(Some(frame)) = reader.next_frame() {
        let Some(header) = vp8::header(&frame.data) else { continue };
        begun |= header.key;
        if begun && header.shown {
            times.push(frame.time);
        }
    }
    Ok(times)
}

/// The pictures with these numbers, counted as ffmpeg's decoder gives them out, as JPEG.
fn decode(path: &Path, numbers: &[usize], width: u32) -> Result<Vec<Vec<u8>>, MediaError> {
    let failed = |message: String, missing| MediaError::Ffmpeg { path: path.to_owned(), message, missing };
    let select: Vec<String> = numbers.iter().map(|n| format!("eq(n\\,{n})")).collect();
    // Even height, square pixels; passthrough: one picture out for each one in.
    let filter = format!("select={},scale={}:-2", select.join("+"), width.clamp(16, 4_096) & !1);
    let output = Command::new("ffmpeg")
        // One graph for all sizes of pictures: with another one for each, their numbers begin anew.
        .args(["-nostdin", "-hide_banner", "-loglevel", "error", "-reinit_filter", "0", "-f", "ivf", "-i"])
        .arg(path)
        .args(["-an", "-vf", &filter, "-vsync", "passthrough", "-c:v", "mjpeg", "-q:v", "5", "-f", "image2pipe", "-"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => failed("the program is not installed".to_owned(), true),
            _ => failed(e.to_string(), false),
        })?;
    let pictures = split_jpegs(&output.stdout);
    if pictures.len() != numbers.len() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().last().unwrap_or("it said nothing");
        return Err(failed(format!("{} of {} pictures came out: {last}", pictures.len(), numbers.len()), false));
    }
    Ok(pictures)
}

/// JPEGs one after the other. Inside one, a marker FF D9 (end) or FF D8 (begin) cannot occur: ffmpeg writes
/// no thumbnails, and in coded data FF is always followed by 00 or a restart marker.
fn split_jpegs(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pictures = Vec::new();
    let mut start = None;
    for i in 0..bytes.len().saturating_sub(1) {
        match (bytes[i], bytes[i + 1], start) {
            (0xff, 0xd8, None) => start = Some(i),
            (0xff, 0xd9, Some(from)) => {
                pictures.push(bytes[from..i + 2].to_vec());
                start = None;
            }
            _ => {}
        }
    }
    pictures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jpegs_in_a_row_are_told_apart() {
        let two = [0xff, 0xd8, 1, 0xff, 0, 2, 0xff, 0xd9, 0xff, 0xd8, 3, 0xff, 0xd9];
        assert_eq!(split_jpegs(&two), [vec![0xff, 0xd8, 1, 0xff, 0, 2, 0xff, 0xd9], vec![0xff, 0xd8, 3, 0xff, 0xd9]]);
        assert_eq!(split_jpegs(&[0xff, 0xd8, 1]), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_missing_file_is_named() {
        let e = stills("/nowhere/x.ivf", &[Duration::ZERO], 480).unwrap_err().to_string();
        assert!(e.starts_with("`/nowhere/x.ivf`: cannot open: "), "{e}");
    }
}
