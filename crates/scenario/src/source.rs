//! Sources, on and off periods and arrivals as a scenario writes them.

use crate::Table;
use crate::forms::SOME_RATE;
use crate::param::{Form, Row};
use crate::quantity::{self, Count, Speed, Time};
use fairpace_media::StreamPreset;
use fairpace_units::{Bounds, Duration};
use serde::{Deserialize, Serialize};

/// On and off periods.
///
/// The rows of [`ON_OFF`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct OnOffSpec {
    pub on: Time,
    pub off: Time,
    #[serde(default, deserialize_with = "quantity::choice")]
    pub lengths: Lengths,
}

/// `on_off` of a flow.
pub const ON_OFF: Table = Table::of::<OnOffSpec>(
    "OnOffSpec",
    "on and off periods",
    &[
        Row::new("on", "", AT_LEAST_MS, "mean length of an on period").needed(),
        Row::new("off", "", AT_LEAST_MS, "mean length of an off period").needed(),
        Row::new("lengths", "", Form::Word(&["fixed", "exponential"]), "`fixed`, or `exponential` around the means"),
    ],
);

/// How long on and off periods are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lengths {
    /// Always the same.
    #[default]
    Fixed,
    /// Exponentially distributed around the mean.
    Exponential,
}

/// The data that a media flow's application has to send.
///
/// The rows of [`SOURCE`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct SourceSpec {
    #[serde(deserialize_with = "quantity::choice")]
    pub kind: SourceKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Speed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Count>,
}

/// `source` of a flow.
pub const SOURCE: Table = Table::of::<SourceSpec>(
    "SourceSpec",
    "the data that a media flow's application has to send",
    &[
        Row::new(
            "kind",
            "",
            Form::Word(&["saturated", "adus", "constant", "encoder", "voip", "video-call", "iptv"]),
            "`saturated`; `adus`: the same in data units of so many `packets`; `constant`: at most `rate`; `encoder`: a \
             model of an adaptive video encoder, 25 pictures per second; the others: kinds of stream at a constant rate \
             that also set `packet_size`, `send_buffer`, `tolerable_delay` and `arrivals` where the flow does not",
        )
        .needed(),
        Row::new(
            "rate",
            "",
            SOME_RATE,
            "`constant`: the application's rate; `encoder`: its highest rate; a kind of stream: instead of its own",
        )
        .wrong("sends nothing")
        .optional(),
        Row::new("packets", "", Form::Whole(1, 10_000), "`adus`: packets of each data unit").optional(),
    ],
);

/// The kinds of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Always has data.
    #[default]
    Saturated,
    /// Always has data, in application data units: what may not be split, and is of use when it is complete.
    Adus,
    /// A constant bit rate, at most what the controller allows.
    Constant,
    /// Frames at 25 per second whose size follows the controller's rate.
    Encoder,
    /// A telephone call: 16 kbit/s in packets of 160 B.
    Voip,
    /// A video call: 64 kbit/s in packets of 512 B.
    VideoCall,
    /// Television over IP: 256 kbit/s in packets of 1,316 B.
    Iptv,
}

impl SourceKind {
    /// The stream that it names, if it names one.
    pub fn preset(self) -> Option<&'static StreamPreset> {
        match self {
            SourceKind::Voip => StreamPreset::named("voip"),
            SourceKind::VideoCall => StreamPreset::named("video-call"),
            SourceKind::Iptv => StreamPreset::named("iptv"),
            SourceKind::Saturated | SourceKind::Adus | SourceKind::Constant | SourceKind::Encoder => None,
        }
    }
}

/// Flows that come and go.
///
/// The rows of [`ARRIVALS`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct ArrivalsSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Time>,
}

/// `arrivals` of a flow.
pub const ARRIVALS: Table = Table::of::<ArrivalsSpec>(
    "ArrivalsSpec",
    "flows that come and go",
    &[
        Row::new("interval", "", AT_LEAST_MS, "mean time between two starts, of all `count` sources together")
            .usually("that of the kind of stream"),
        Row::new("length", "", AT_LEAST_MS, "mean length of a flow").usually("that of the kind of stream"),
    ],
);

const AT_LEAST_MS: Form = Form::Time(Bounds::at_least(Duration::from_millis(1)));
