//! Media at both ends: sources of encoded frames that follow a rate, and the receiver's play-out.
//!
//! Read first: [`FrameSource`] and [`FrameSink`], the two borders; the drivers of the wire pull
//! frames through the one and push them into the other. Rules for users: `docs/media/README.md`.
//!
//! - Sources: [`ConstantSource`], [`RecordedSource`], [`EncoderModel`] (deterministic, no codec),
//!   [`IvfSource`] (already encoded), and with the feature `gst` the module `gst` (any file or a
//!   test pattern, decoded and encoded again as VP8 at a rate that follows the controller).
//! - Receiver: [`Playout`] judges each frame in time, late or lost; [`Recorder`] is a play-out
//!   that writes what a viewer would have seen as an IVF file; [`stills()`] takes pictures from it.
//! - [`PictureFit`]: the size of pictures that suits a rate.
//! - [`STREAM_PRESETS`]: telephone call, video call, television over IP, as numbers [qsd Table II].
//! - [`buffer_model`]: the encoder's buffer with a controlled output rate [rcs §III-F].
//!
//! Nothing here reads a clock: `now` is an argument. The GStreamer source does real work (it
//! decodes and encodes in its own threads), but when a frame is captured is the caller's `now`.

#![forbid(unsafe_code)]

pub mod buffer_model;
mod constant;
mod encoder_model;
mod error;
mod filler;
mod fit;
#[cfg(feature = "gst")]
pub mod gst;
mod ivf;
mod open;
mod phased;
mod playout;
mod presets;
mod recorded;
mod recorder;
mod source;
mod stills;
pub mod vp8;
mod wish;

pub use constant::ConstantSource;
pub use encoder_model::{EncoderModel, EncoderModelParams};
pub use error::{Hint, MediaError};
pub use fit::PictureFit;
pub use ivf::{IvfFrame, IvfReader, IvfSource, IvfWriter};
pub use open::{SourceSpec, open_stream};
pub use phased::Phased;
pub use playout::{Adaptive, Judged, LostFrame, Playout, PlayoutParams, PlayoutSecond, PlayoutTotals, Verdict};
pub use presets::{STREAM_PRESETS, StreamPreset};
pub use recorded::{RecordedFrame, RecordedSource};
pub use recorder::{FrameRecord, Recorder};
pub use source::{
    Codec, EncodedFrame, Format, FrameFates, FrameSink, FrameSource, ReceivedFrame, media_rate, timestamp_90k,
};
pub use stills::{Still, stills};
pub use wish::PictureWish;
