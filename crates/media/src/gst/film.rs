//! Long films with cuts: shots of several subjects, one after the other.
//!
//! A clip of seconds in a loop asks the same of an encoder over and over. A film does not: what its shots need differs, a cut is new from
//! edge to edge, and an encoder's buffer fills over minutes. Here a film is a list of shots:
//!
//! | | |
//! | --- | --- |
//! | length of a shot | 2 to 8 s, any as likely as another |
//! | subject | any but the one before |
//! | begins | anywhere in the subject, which goes on at its beginning when it ends |
//!
//! All three come from one random stream, in this order for each shot. The film shares the pictures of its subjects: 300 s take no more memory than
//! these.

use super::{Clip, ClipFormat, init};
use crate::MediaError;
use fairpace_units::{Duration, RandomStream};
use gstreamer as gst;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The shortest shot.
const SHORTEST: Duration = Duration::from_secs(2);
/// The longest.
const LONGEST: Duration = Duration::from_secs(8);

impl Clip {
    /// A film of these subjects, which are of one format: see the file's head. At least so long; of one subject it has no cuts but to itself.
    ///
    /// # Errors
    /// No subject, or two of different formats.
    pub fn film(subjects: &[Clip], length: Duration, random: &mut RandomStream) -> Result<Clip, MediaError> {
        let allowed = "a film needs at least one, and all of one format";
        let wrong = |found: String| MediaError::Parameter { field: "subjects", found, allowed };
        let first = subjects.first().ok_or_else(|| wrong("none".to_owned()))?;
        if let Some(other) = subjects.iter().find(|s| s.format != first.format) {
            return Err(wrong(format!("{:?} and {:?}", first.format, other.format)));
        }
        let interval = first.format.interval();
        let pictures = |span: Duration| (span.as_nanos() / interval.as_nanos()) as u64;
        let (shortest, longest, wanted) = (pictures(SHORTEST), pictures(LONGEST), pictures(length));
        let mut film: Vec<gst::Buffer> = Vec::new();
        let mut before = None;
        while (film.len() as u64) < wanted {
            let shot = shortest + random.below(longest - shortest + 1);
            let others: Vec<usize> =
                (0..subjects.len()).filter(|i| subjects.len() == 1 || Some(*i) != before).collect();
            let subject = others[random.below(others.len() as u64) as usize];
            let from = &subjects[subject].pictures;
            let start = random.below(from.len() as u64) as usize;
            film.extend(from.iter().cycle().skip(start).take(shot as usize).cloned());
            before = Some(subject);
        }
        let names: Vec<&str> = subjects.iter().map(|s| s.name.as_str()).collect();
        let name = format!("a film of {}", names.join(", "));
        Ok(Clip { name, format: first.format, pictures: film.into(), truncated: false })
    }

    /// That many pictures of one of ffmpeg's own sources, as its option `-i` has it after `-f lavfi`, of which `{size}` and `{rate}` become the format's.
    ///
    /// # Errors
    /// `ffmpeg` is missing, or fails.
    pub fn generated(name: &str, source: &str, pictures: usize, format: ClipFormat) -> Result<Clip, MediaError> {
        format.check()?;
        init(name)?;
        let failed = |message: String, missing| MediaError::Ffmpeg { path: PathBuf::from(name), message, missing };
        let io = |e: std::io::Error| failed(e.to_string(), e.kind() == std::io::ErrorKind::NotFound);
        let source = source
            .replace("{size}", &format!("{}x{}", format.width, format.height))
            .replace("{rate}", &format.frames_per_second.to_string());
        let mut child = Command::new("ffmpeg")
            .args(["-nostdin", "-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", &source])
            .args(["-frames:v", &pictures.to_string(), "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(io)?;
        let mut made: Vec<gst::Buffer> = Vec::new();
        if let Some(pipe) = &mut child.stdout {
            for _ in 0..pictures {
                // I420: the luma, and two planes of a fourth of it.
                let mut picture = vec![0; (format.width * format.height * 3 / 2) as usize];
                if pipe.read_exact(&mut picture).is_err() {
                    break;
                }
                made.push(gst::Buffer::from_slice(picture));
            }
        }
        let output = child.wait_with_output().map_err(io)?;
        if made.len() != pictures || pictures == 0 {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            let last = words.lines().last().unwrap_or("it said nothing");
            return Err(failed(format!("{} of {pictures} pictures came out: {last}", made.len()), false));
        }
        Ok(Clip { name: name.to_owned(), format, pictures: made.into(), truncated: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: ClipFormat = ClipFormat { width: 64, height: 36, frames_per_second: 25 };

    /// The pictures of a clip, by their addresses.
    fn addresses(clip: &Clip) -> Vec<usize> {
        clip.pictures.iter().map(|p| p.map_readable().unwrap().as_ptr() as usize).collect()
    }

    #[test]
    fn a_film_is_of_shots_of_2_to_8_s_each_of_another_subject_than_the_one_before() {
        let subject = |source: &str| Clip::generated("x", source, 250, FORMAT).unwrap();
        let subjects = ["testsrc2=size={size}:rate={rate}", "smptebars=size={size}:rate={rate}"].map(subject);
        let film = |seed| Clip::film(&subjects, Duration::from_secs(300), &mut RandomStream::named(seed, "x")).unwrap();
        let (one, same, other) = (film(1), film(1), film(2));
        assert_eq!(addresses(&one), addresses(&same));
        assert_ne!(addresses(&one), addresses(&other));
        let of = subjects.each_ref().map(addresses);
        // Pictures that follow each other in a subject, the last one before the first, are of one shot.
        let (all, mut shots) = (addresses(&one), Vec::new());
        let place = |address: usize| {
            let found = of.iter().enumerate().find_map(|(s, all)| Some((s, all.iter().position(|a| *a == address)?)));
            found.expect("the film has its subjects' pictures")
        };
        for pair in all.windows(2) {
            let ((before, from), (after, to)) = (place(pair[0]), place(pair[1]));
            if shots.is_empty() || before != after {
                shots.push(1);
            }
            assert!(before != after || to == (from + 1) % 250, "within a shot pictures follow each other");
            *shots.last_mut().unwrap() += 1;
        }
        // The first counts its first picture, too; the others begin with the second of a pair.
        shots.iter_mut().skip(1).for_each(|n| *n -= 1);
        assert_eq!(shots.iter().sum::<usize>(), all.len());
        assert!((7_500..7_700).contains(&all.len()), "{}", all.len());
        assert!(shots.iter().all(|n| (50..=200).contains(n)), "{shots:?}");
        // 5 s in the mean: 60 shots, 1.73 s / sqrt(60) of deviation each; five of these are allowed.
        assert!((49..=76).contains(&shots.len()), "{}", shots.len());
    }

    #[test]
    fn what_makes_no_film_is_refused() {
        let random = &mut RandomStream::named(1, "x");
        let said = |e: MediaError| e.to_string();
        let none = Clip::film(&[], Duration::from_secs(1), random).map_err(said).unwrap_err();
        assert_eq!(none, "`subjects` is none, but a film needs at least one, and all of one format");
        let small = Clip::generated("x", "testsrc2=size={size}:rate={rate}", 1, FORMAT).unwrap();
        let large = ClipFormat { width: 128, ..FORMAT };
        let large = Clip::generated("x", "testsrc2=size={size}:rate={rate}", 1, large).unwrap();
        assert!(Clip::film(&[small, large], Duration::from_secs(1), random).map_err(said).is_err());
        let error = Clip::generated("x", "nosuchsource", 1, FORMAT).map_err(said).unwrap_err();
        assert!(error.starts_with("ffmpeg on `x`: 0 of 1 pictures came out: "), "{error}");
    }
}
