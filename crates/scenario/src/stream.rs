//! The fields of files of streams.

use crate::flow::{PARAMETERS, Parameter};
use crate::forms::SOME_RATE;
use crate::param::{Form, Row, Table};
use crate::quantity::{Count, Size, Speed, Time};
use fairpace_units::{Bounds, Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A stream, or what holds for all where they say nothing else. The names are those of the options of `fairpace send`.
///
/// The rows of [`STREAM`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct StreamSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<BTreeMap<String, Parameter>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder_rate: Option<Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fps: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_repair: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_fec: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Count>,
}

/// `defaults`, and one of `[[streams]]`.
pub const STREAM: Table = Table::of::<StreamSpec>(
    "StreamSpec",
    "a stream",
    &[
        Row::new("name", "", Form::Text, "of a stream: for summaries and statistics; no two have the same").optional(),
        Row::new(
            "source",
            "",
            Form::Text,
            "a video file, `test-pattern`, or another of `fairpace list media`; not `-`",
        )
        .optional(),
        Row::new("to", "", Form::Text, "HOST:PORT where the receiver listens").optional(),
        Row::new("control", "", Form::Text, "the controller, of `fairpace list controllers`").usually("`auto`"),
        Row::new(
            "set",
            "",
            PARAMETERS,
            "the controller's own parameters, by name; a stream's replace those of the defaults",
        )
        .optional(),
        Row::new("max_rate", "", SOME_RATE, "never faster than this, all packets counted")
            .usually("10 Mbit/s")
            .wrong("sends nothing"),
        Row::new("min_rate", "", SOME_RATE, "never slower than this, where the controller has a lowest rate")
            .usually("50 kbit/s, or `max_rate` if that is less")
            .wrong("sends nothing"),
        Row::new(
            "adaptation",
            "",
            Form::Word(&["encoder", "buffer", "unbuffered"]),
            "who makes the encoder's rate fit the controller's: the encoder, a buffer that sends what an encoder of one rate gives, or \
             nobody, so that frames leave as they come",
        )
        .usually("`encoder`"),
        Row::new("encoder_rate", "", SOME_RATE, "with `adaptation = \"buffer\"`: the rate that the encoder keeps")
            .usually("1 Mbit/s, or `max_rate` if that is less")
            .wrong("encodes nothing"),
        Row::new(
            "buffer",
            "",
            Form::Size(Bounds::of(Bytes::new(1), Bytes::new(16 << 20))),
            "with `adaptation = \"buffer\"`: the media that may wait",
        )
        .usually("2 MB")
        .wrong("is no buffer"),
        Row::new(
            "quantum",
            "",
            Form::Time(Bounds::ANY.up_to(Duration::from_millis(5))),
            "packets that are due within this leave together",
        )
        .usually("1 ms")
        .wrong("would be a burst"),
        Row::new(
            "packet_size",
            "",
            Form::Size(Bounds::of(Bytes::new(74), Bytes::new(1_500))),
            "a full data packet, headers included",
        )
        .usually("1200 B"),
        Row::new("size", "", Form::Text, "size of the pictures, as in `640x360`").usually("as of `send`"),
        Row::new("fps", "", Form::Whole(1, 120), "pictures per second").usually("as of `send`"),
        Row::new(
            "seconds",
            "",
            Form::Time(Bounds::above(Duration::ZERO)),
            "the stream ends so long after the receiver's answer",
        )
        .usually("the source's end, or Ctrl-C"),
        Row::new("no_repair", "", Form::Flag, "lost packets are not sent again, and there are no repair packets")
            .usually("`false`"),
        Row::new("no_fec", "", Form::Flag, "no repair packets").usually("`false`"),
        Row::new("key_file", "", Form::Text, "the key that the receiver has too; `fairpace key FILE` makes one")
            .usually("in clear"),
        Row::new(
            "seed",
            "",
            Form::Whole(0, (1 << 53) - 1),
            "of the noise of the source `model`, and of when synthetic pictures are taken",
        )
        .usually("the stream's place in the list, from 1"),
    ],
);

/// A file of streams, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawStreams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) defaults: Option<StreamSpec>,
    pub(crate) streams: Vec<StreamSpec>,
}

/// The top of a file of streams.
pub const STREAMS: Table = Table::of::<RawStreams>(
    "Streams",
    "streams that one process sends",
    &[
        Row::new("defaults", "", Form::Table(&STREAM), "what holds for a stream that says nothing else").optional(),
        Row::new("streams", "", Form::Tables(&STREAM), "the streams, 1 to 1000").needed(),
    ],
);

impl StreamSpec {
    /// The name of its controller.
    pub fn controller(&self) -> &str {
        self.control.as_deref().unwrap_or("auto")
    }

    /// The controller's parameters, each as text.
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.set.iter().flatten().map(|(name, value)| (name.clone(), value.text())).collect()
    }

    /// Its highest rate.
    pub fn most(&self) -> Rate {
        bits(self.max_rate.as_ref()).unwrap_or(Rate::mbps(10.0))
    }

    /// Who makes the encoder's rate fit the controller's.
    pub fn adaptation(&self) -> &str {
        self.adaptation.as_deref().unwrap_or("encoder")
    }

    /// The rate that its encoder keeps, if it says one.
    pub fn encoder_rate(&self) -> Option<Rate> {
        bits(self.encoder_rate.as_ref())
    }

    /// Its lowest rate.
    pub fn least(&self) -> Rate {
        bits(self.min_rate.as_ref()).unwrap_or(Rate::kbps(50.0).min(self.most()))
    }
}

/// In bits per second; the check has refused packets.
fn bits(rate: Option<&Speed>) -> Option<Rate> {
    rate.map(|rate| rate.get().with_packets_of(Bytes::ZERO))
}

/// A stream with what the defaults say where it says nothing.
pub(crate) fn filled(stream: &StreamSpec, defaults: &StreamSpec) -> StreamSpec {
    let (stream, mut defaults) = (stream.clone(), defaults.clone());
    // They are another controller's.
    if stream.control.is_some() && stream.controller() != defaults.controller() {
        defaults.set = None;
    }
    // They are a buffer's.
    if stream.adaptation.is_some() && stream.adaptation() != defaults.adaptation() {
        (defaults.encoder_rate, defaults.buffer) = (None, None);
    }
    StreamSpec {
        name: stream.name,
        source: stream.source.or(defaults.source),
        to: stream.to.or(defaults.to),
        control: stream.control.or(defaults.control),
        set: stream.set.or(defaults.set),
        max_rate: stream.max_rate.or(defaults.max_rate),
        min_rate: stream.min_rate.or(defaults.min_rate),
        adaptation: stream.adaptation.or(defaults.adaptation),
        encoder_rate: stream.encoder_rate.or(defaults.encoder_rate),
        buffer: stream.buffer.or(defaults.buffer),
        quantum: stream.quantum.or(defaults.quantum),
        packet_size: stream.packet_size.or(defaults.packet_size),
        size: stream.size.or(defaults.size),
        fps: stream.fps.or(defaults.fps),
        seconds: stream.seconds.or(defaults.seconds),
        no_repair: stream.no_repair.or(defaults.no_repair),
        no_fec: stream.no_fec.or(defaults.no_fec),
        key_file: stream.key_file.or(defaults.key_file),
        seed: stream.seed.or(defaults.seed),
    }
}
