//! Real video through GStreamer: decode anything, encode it as VP8 at a rate that follows.
//!
//! ```text
//! decode   filesrc | appsrc (a pipe) | videotestsrc -> decodebin -> convert, scale, rate -> I420
//! encode   appsrc -> vp8enc -> appsink, one frame in, one frame out
//!          ffmpeg, a group of pictures at a time: MPEG-2, in virtual time only
//! ```
//!
//! The two are apart: a small clip is decoded once and looped from memory, and what is captured
//! when is decided by the caller's `now`, not by a pipeline's clock. Read first: `encoder.rs`, how
//! vp8enc is made to follow, and what its numbers mean.

mod batch;
mod clip;
mod decoder;
mod encoder;
mod film;
mod format;
mod mpeg2;
mod source;

pub use batch::{encode_following, encode_following_with};
pub use clip::Clip;
pub use encoder::EncoderParams;
pub use format::ClipFormat;
pub use mpeg2::{Groups, encode_mpeg2_following};
pub use source::{GstSkipped, GstSource};

use crate::MediaError;
use gstreamer as gst;
use gstreamer::glib;
use gstreamer::prelude::*;
use std::sync::OnceLock;

/// Starts GStreamer, once.
pub(crate) fn init(input: &str) -> Result<(), MediaError> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| gst::init().map_err(|e| e.to_string())).clone().map_err(|message| MediaError::Gst {
        input: input.to_owned(),
        element: "the library".to_owned(),
        message,
        hint: "is GStreamer 1.22 or newer installed? packages/demo.txt lists what is needed".to_owned(),
    })
}

/// An element, or which package would have it.
fn make(factory: &str, input: &str) -> Result<gst::Element, MediaError> {
    gst::ElementFactory::make(factory).build().map_err(|_| MediaError::Gst {
        input: input.to_owned(),
        element: factory.to_owned(),
        message: "there is no such element".to_owned(),
        hint: format!(
            "install `{}`, then `rm -r ~/.cache/gstreamer-1.0` if it is still not found",
            match factory {
                "vp8enc" | "vp8dec" => "gstreamer1.0-plugins-good",
                _ => "gstreamer1.0-plugins-base",
            }
        ),
    })
}

/// A step of building a pipeline that GStreamer refused.
fn refused(input: &str, element: &str) -> impl Fn(glib::BoolError) -> MediaError {
    move |e| MediaError::Gst {
        input: input.to_owned(),
        element: element.to_owned(),
        message: e.to_string(),
        hint: String::new(),
    }
}

/// Starts a pipeline; what it says about a failure is on its bus.
fn play(pipeline: &gst::Pipeline, input: &str) -> Result<(), MediaError> {
    match pipeline.set_state(gst::State::Playing) {
        Ok(_) => Ok(()),
        Err(e) => Err(bus_error(pipeline, input).unwrap_or_else(|| MediaError::Gst {
            input: input.to_owned(),
            element: "the pipeline".to_owned(),
            message: e.to_string(),
            hint: String::new(),
        })),
    }
}

/// The first error on the pipeline's bus, in GStreamer's words and with our remedy.
fn bus_error(pipeline: &gst::Pipeline, input: &str) -> Option<MediaError> {
    let bus = pipeline.bus()?;
    let mut missing = None;
    while let Some(message) = bus.pop_filtered(&[gst::MessageType::Error, gst::MessageType::Element]) {
        match message.view() {
            gst::MessageView::Element(e) => {
                let s = e.structure().filter(|s| s.name() == "missing-plugin");
                missing = s.and_then(|s| s.get::<String>("name").ok()).or(missing);
            }
            gst::MessageView::Error(e) => {
                let element = e.src().map_or_else(|| "an element".to_owned(), factory_name);
                let mut text = e.error().to_string();
                // The second line of the debug text is what the element itself wrote; the first is
                // a place in its source.
                if let Some(detail) = e.debug().as_deref().and_then(|d| d.split_once('\n')).map(|(_, detail)| detail) {
                    // Caps carry whole codec headers in hexadecimal: the first words are enough.
                    let detail: String = detail.split(" (").next().unwrap_or_default().replace('\n', " ");
                    text = format!("{} ({})", text.trim_end_matches('.'), detail.trim().trim_end_matches('.'));
                }
                return Some(explain(input, element, text, missing));
            }
            _ => {}
        }
    }
    None
}

fn factory_name(object: &gst::Object) -> String {
    let factory = object.downcast_ref::<gst::Element>().and_then(|e| e.factory());
    factory.map_or_else(|| object.name().to_string(), |f| f.name().to_string())
}

fn explain(input: &str, element: String, message: String, missing: Option<String>) -> MediaError {
    let (message, hint) = match missing {
        // The message that follows ("internal data stream error") would only hide the cause.
        Some(what) => {
            let hint = if what.contains("demuxer") {
                another_container(input)
            } else {
                "install `gstreamer1.0-libav`".to_owned()
            };
            (format!("there is no {what}"), hint)
        }
        None => (message, "is it a video? `ffprobe FILE` shows what is in it; `test-pattern` needs no file".to_owned()),
    };
    MediaError::Gst { input: input.to_owned(), element, message, hint }
}

/// The remedy for a container that GStreamer does not open, such as MPEG-TS: `gstreamer1.0-libav` brings decoders, and no demuxer
/// for it.
fn another_container(input: &str) -> String {
    let quoted = input.replace('\'', "'\\''");
    format!(
        "install `gstreamer1.0-plugins-bad`, or let ffmpeg change the container: `ffmpeg -i '{quoted}' -map 0:v -c copy -f matroska - | fairpace send - HOST:PORT`"
    )
}

/// Stops a pipeline when its owner goes, whatever happened.
#[derive(Debug)]
struct Running(gst::Pipeline);

impl Drop for Running {
    fn drop(&mut self) {
        // Cannot fail downwards, and nobody is left to tell.
        let _ = self.0.set_state(gst::State::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hint;

    /// The names are decodebin's own, of GStreamer 1.22.
    #[test]
    fn a_missing_demuxer_is_not_sought_among_the_decoders() {
        let hint = |what: &str, input: &str| {
            let e =
                explain(input, "decodebin".to_owned(), "Internal data stream error".to_owned(), Some(what.to_owned()));
            assert_eq!(e.to_string(), format!("`{input}`: decodebin of GStreamer says: there is no {what}"));
            e.hint().unwrap()
        };
        let piped = hint("MPEG-2 Transport Stream demuxer", "-");
        assert!(piped.contains("`gstreamer1.0-plugins-bad`") && !piped.contains("libav"), "{piped}");
        assert!(piped.contains("ffmpeg -i '-' -map 0:v -c copy -f matroska - | fairpace send -"), "{piped}");
        assert!(hint("MPEG-2 Transport Stream demuxer", "it's.ts").contains("-i 'it'\\''s.ts'"));
        assert_eq!(hint("H.264 decoder", "-"), "install `gstreamer1.0-libav`");
    }
}
