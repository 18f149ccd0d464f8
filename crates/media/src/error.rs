//! The errors of media, each with its remedy.

use std::path::PathBuf;

/// The remedy that belongs to an error; printed after it as `hint:`.
pub trait Hint {
    /// The remedy, if there is a known one.
    fn hint(&self) -> Option<String>;
}

/// Why a source or sink could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// A file could not be opened, read or written.
    #[error("`{}`: cannot {doing}: {source}", path.display())]
    File {
        /// The file; `-` is standard input.
        path: PathBuf,
        /// `open`, `read`, `write`.
        doing: &'static str,
        /// The system's message.
        source: std::io::Error,
    },
    /// A list of frame sizes has a line that is not one.
    #[error("{name}:{line}: `{found}` {problem}; {allowed}")]
    SizeList {
        /// The list's file.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The field as found.
        found: String,
        /// The fault that was found.
        problem: &'static str,
        /// The values that would have been accepted.
        allowed: &'static str,
    },
    /// An IVF stream is not one, or ends in the middle.
    #[error("`{name}`: not readable as IVF at byte {offset}: {problem}")]
    Ivf {
        /// The stream's file; `-` is standard input.
        name: String,
        /// Bytes before the place.
        offset: u64,
        /// The value found, and the values allowed.
        problem: String,
    },
    /// A parameter is out of its range.
    #[error("`{field}` is {found}, but {allowed}")]
    Parameter {
        /// The parameter's name.
        field: &'static str,
        /// The value given.
        found: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// GStreamer could not decode or encode.
    #[error("`{input}`: {element} of GStreamer says: {message}")]
    Gst {
        /// The file, `-` or `test-pattern`.
        input: String,
        /// The element that failed.
        element: String,
        /// Its words.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// The input has no video, or none that ends up as a picture.
    #[error("`{input}` has no video that can be decoded{}", said(message))]
    NoVideo {
        /// The file, or `-`.
        input: String,
        /// The decoder's message; may be empty.
        message: String,
    },
    /// A URL where a file is to be named.
    #[error("`{url}` is a URL, and sources are files, `test-pattern` or standard input")]
    Url {
        /// The source as given.
        url: String,
    },
    /// This build cannot do it.
    #[error("`{input}` needs GStreamer, and this build has no support for it")]
    NeedsGst {
        /// The source asked for.
        input: String,
    },
    /// The program `ffmpeg` is missing or failed.
    #[error("ffmpeg on `{}`: {message}", path.display())]
    Ffmpeg {
        /// The file it was to read.
        path: PathBuf,
        /// The encoder's message.
        message: String,
        /// Whether the program is not installed at all.
        missing: bool,
    },
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl Hint for MediaError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            MediaError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "check the path; `test-pattern` needs no file".to_owned()
            }
            MediaError::File { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                "the disk is full; all that was written before is in the file".to_owned()
            }
            MediaError::Gst { hint, .. } if !hint.is_empty() => hint.clone(),
            MediaError::NoVideo { .. } => {
                "`ffprobe FILE` shows what is in the file; for H.264 and most others install \
                 `gstreamer1.0-libav`, or send `test-pattern`"
                    .to_owned()
            }
            MediaError::Url { url } => {
                let quoted = url.replace('\'', "'\\''");
                let listen = if url.starts_with("rtsp://") { "-rtsp_transport tcp " } else { "" };
                format!(
                    "let ffmpeg read it: `ffmpeg {listen}-i '{quoted}' -map 0:v -c copy -f matroska - | fairpace send - HOST:PORT`"
                )
            }
            MediaError::NeedsGst { .. } => {
                "build with `--features gst` (packages/demo.txt lists what it needs), or send an IVF file".to_owned()
            }
            MediaError::Ffmpeg { missing: true, .. } => "install the package `ffmpeg`".to_owned(),
            _ => return None,
        })
    }
}
