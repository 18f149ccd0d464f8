//! From the words of a command line to a source.

use crate::{
    ConstantSource, EncoderModel, EncoderModelParams, FrameSource, IvfSource, MediaError, PictureWish, RecordedSource,
};
use fairpace_units::{Duration, RandomStream, Rate, RateSpec, parse_rate};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// A source of media, as a user names it.
#[derive(Clone, PartialEq, Debug)]
pub enum SourceSpec {
    /// `test-pattern`: a moving picture, encoded live. Needs the feature `gst`.
    TestPattern,
    /// `-`: standard input; IVF is sent as it is, any other container is decoded and encoded live (`gst`).
    Stdin,
    /// `model`: frame sizes of [`EncoderModel`].
    Model,
    /// `constant:RATE`: frames of equal size.
    Constant(Rate),
    /// `sizes:FILE`: a list of frame sizes, looped.
    Sizes(PathBuf),
    /// Any other word: a file. IVF is sent as it is, others are decoded, looped and encoded live (`gst`).
    File(PathBuf),
}

impl SourceSpec {
    /// Reads a user's word. A file whose name is one of the others, or has `://` in it, is `./NAME`.
    ///
    /// # Errors
    /// `constant:` without a rate in bit/s; a URL.
    pub fn parse(text: &str) -> Result<Self, MediaError> {
        Ok(match text {
            "test-pattern" => SourceSpec::TestPattern,
            "-" => SourceSpec::Stdin,
            "model" => SourceSpec::Model,
            url if is_url(url) => return Err(MediaError::Url { url: url.to_owned() }),
            _ => match (text.strip_prefix("constant:"), text.strip_prefix("sizes:")) {
                (Some(rate), _) => match parse_rate(rate) {
                    Ok(RateSpec::Bits(rate)) if rate > Rate::ZERO => SourceSpec::Constant(rate),
                    _ => {
                        let allowed = "it must be a rate in bits above zero, as in `constant:1.5 Mbit/s`";
                        return Err(MediaError::Parameter { field: "constant", found: format!("`{rate}`"), allowed });
                    }
                },
                (_, Some(path)) => SourceSpec::Sizes(path.into()),
                _ => SourceSpec::File(text.into()),
            },
        })
    }

    /// Whether the frames are made here, at times that follow from the run's alone: such a source may be [`Phased`](crate::Phased).
    pub const fn is_synthetic(&self) -> bool {
        matches!(self, SourceSpec::Model | SourceSpec::Constant(_) | SourceSpec::Sizes(_))
    }

    /// Starts GStreamer, where the source may need it. Its list of plugins may be out of date; then a program of GStreamer's
    /// own writes another. A process that is to start no program calls this before. A failure shows in [`SourceSpec::open`].
    pub fn prepare(&self) {
        if matches!(self, SourceSpec::TestPattern | SourceSpec::Stdin | SourceSpec::File(_)) {
            start();
        }
    }

    /// Opens the source. Frames without pictures come 25 a second, the test pattern is of 640x360 at 25/s unless wished otherwise;
    /// the model's noise comes from `noise`.
    ///
    /// # Errors
    /// The input is missing, unreadable, or needs a feature that this build lacks.
    pub fn open(&self, wish: PictureWish, noise: RandomStream) -> Result<Box<dyn FrameSource>, MediaError> {
        let interval = Duration::from_millis(40);
        Ok(match self {
            SourceSpec::Model => Box::new(EncoderModel::new(EncoderModelParams::default(), noise)?),
            SourceSpec::Constant(rate) => Box::new(ConstantSource::new(*rate, interval)),
            SourceSpec::Sizes(path) => Box::new(RecordedSource::open(path, interval)?),
            SourceSpec::TestPattern => test_pattern(wish)?,
            SourceSpec::Stdin => {
                let stdin = io::stdin();
                open_stream(stdin, "-", wish)?
            }
            SourceSpec::File(path) if is_ivf(path)? => {
                let file = File::open(path).map_err(|source| unopened(path, source))?;
                Box::new(IvfSource::of_file(BufReader::new(file), path.display().to_string())?)
            }
            SourceSpec::File(path) => video_file(path, wish)?,
        })
    }
}

/// A stream that can be read once: IVF is sent as it is, any other container goes to the decoder.
///
/// # Errors
/// As [`SourceSpec::open`]. Waits for the first bytes.
pub fn open_stream(
    mut input: impl Read + Send + 'static,
    name: &str,
    wish: PictureWish,
) -> Result<Box<dyn FrameSource>, MediaError> {
    let mut head = Vec::new();
    input.by_ref().take(4).read_to_end(&mut head).map_err(|source| MediaError::File {
        path: name.into(),
        doing: "read",
        source,
    })?;
    let ivf = head == b"DKIF";
    let whole = Cursor::new(head).chain(input);
    if ivf { Ok(Box::new(IvfSource::new(whole, name)?)) } else { video_stream(whole, name, wish) }
}

/// `SCHEME://...`
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && !Path::new(text).exists()
    })
}

fn unopened(path: &Path, source: io::Error) -> MediaError {
    MediaError::File { path: path.to_owned(), doing: "open", source }
}

fn is_ivf(path: &Path) -> Result<bool, MediaError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|f| f.take(4).read_to_end(&mut head));
    read.map_err(|source| unopened(path, source))?;
    Ok(head == b"DKIF")
}

#[cfg(feature = "gst")]
mod real {
    use crate::PictureWish;
    use crate::gst::{EncoderParams, GstSource};
    use crate::{FrameSource, MediaError};
    use std::io::Read;
    use std::path::Path;

    pub(super) fn start() {
        // The same failure is told again by whoever needs GStreamer.
        let _ = crate::gst::init("");
    }

    pub(super) fn test_pattern(wish: PictureWish) -> Result<Box<dyn FrameSource>, MediaError> {
        Ok(Box::new(GstSource::test_pattern(wish, EncoderParams::live())?))
    }

    pub(super) fn video_file(path: &Path, wish: PictureWish) -> Result<Box<dyn FrameSource>, MediaError> {
        Ok(Box::new(GstSource::open(path, wish, EncoderParams::live())?))
    }

    pub(super) fn video_stream(
        input: impl Read + Send + 'static,
        name: &str,
        wish: PictureWish,
    ) -> Result<Box<dyn FrameSource>, MediaError> {
        Ok(Box::new(GstSource::pipe(input, name, wish, EncoderParams::live())?))
    }
}

#[cfg(not(feature = "gst"))]
mod real {
    use crate::PictureWish;
    use crate::{FrameSource, MediaError};
    use std::io::Read;
    use std::path::Path;

    fn needs(input: impl ToString) -> Result<Box<dyn FrameSource>, MediaError> {
        Err(MediaError::NeedsGst { input: input.to_string() })
    }

    pub(super) fn start() {}

    pub(super) fn test_pattern(_: PictureWish) -> Result<Box<dyn FrameSource>, MediaError> {
        needs("test-pattern")
    }

    pub(super) fn video_file(path: &Path, _: PictureWish) -> Result<Box<dyn FrameSource>, MediaError> {
        needs(path.display())
    }

    pub(super) fn video_stream(
        _: impl Read + Send + 'static,
        name: &str,
        _: PictureWish,
    ) -> Result<Box<dyn FrameSource>, MediaError> {
        needs(name)
    }
}

use real::{start, test_pattern, video_file, video_stream};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hint, IvfWriter};
    use fairpace_units::Instant;

    fn noise() -> RandomStream {
        RandomStream::named(1, "test.encoder")
    }

    #[test]
    fn a_users_words_name_their_sources() {
        let parse = |text| SourceSpec::parse(text).unwrap();
        assert_eq!(parse("test-pattern"), SourceSpec::TestPattern);
        assert_eq!(parse("-"), SourceSpec::Stdin);
        assert_eq!(parse("constant:1.5 Mbit/s"), SourceSpec::Constant(Rate::mbps(1.5)));
        assert_eq!(parse("sizes:a.csv"), SourceSpec::Sizes("a.csv".into()));
        assert_eq!(parse("./model"), SourceSpec::File("./model".into()));
        let e = SourceSpec::parse("constant:fast").unwrap_err().to_string();
        assert_eq!(e, "`constant` is `fast`, but it must be a rate in bits above zero, as in `constant:1.5 Mbit/s`");
        assert!(SourceSpec::parse("constant:20 pkt/s").is_err());
        assert!(SourceSpec::parse("constant:0 Mbit/s").is_err());
    }

    #[test]
    fn sources_without_a_codec_open_in_every_build() {
        for word in ["model", "constant:1 Mbit/s"] {
            let mut source = SourceSpec::parse(word).unwrap().open(PictureWish::default(), noise()).unwrap();
            assert!(source.next_frame(Instant::ZERO).unwrap().is_some_and(|f| f.key), "{word}");
        }
    }

    #[test]
    fn a_missing_file_is_an_error_with_a_remedy() {
        let Err(e) = SourceSpec::File("/nowhere/clip.mp4".into()).open(PictureWish::default(), noise()) else {
            panic!("it opened")
        };
        assert!(e.to_string().starts_with("`/nowhere/clip.mp4`: cannot open: "), "{e}");
        assert!(e.hint().is_some_and(|h| h.contains("test-pattern")));
    }

    #[test]
    fn a_url_is_refused_with_the_pipe_that_works() {
        for (url, command) in [
            (
                "srt://host:9000?mode=caller",
                "ffmpeg -i 'srt://host:9000?mode=caller' -map 0:v -c copy -f matroska - | fairpace send -",
            ),
            ("rtsp://cam/it's", "ffmpeg -rtsp_transport tcp -i 'rtsp://cam/it'\\''s' -map 0:v -c copy"),
        ] {
            let e = SourceSpec::parse(url).unwrap_err();
            assert!(e.to_string().contains("is a URL"), "{e}");
            assert!(e.hint().unwrap().contains(command), "{:?}", e.hint());
        }
        for file in ["clip.mp4", "a:b.mp4", "/a//b.mp4", "./srt://x", "1a://x"] {
            assert_eq!(SourceSpec::parse(file).unwrap(), SourceSpec::File(file.into()));
        }
    }

    #[test]
    fn an_ivf_stream_is_known_by_its_first_bytes() {
        let writer = IvfWriter::new(Cursor::new(Vec::new())).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        let source = open_stream(Cursor::new(bytes), "-", PictureWish::default()).unwrap();
        assert!(!source.format().follows_rate);
    }

    #[cfg(not(feature = "gst"))]
    #[test]
    fn a_build_without_gstreamer_says_so() {
        let Err(e) = open_stream(Cursor::new(b"RIFFxxxx"), "-", PictureWish::default()) else { panic!("it opened") };
        assert_eq!(e.to_string(), "`-` needs GStreamer, and this build has no support for it");
        assert!(e.hint().is_some_and(|h| h.contains("--features gst")));
    }
}
