//! The shared path as a scenario writes it: `[path]`, its capacity, its recordings, its outages, and its way back.

use crate::quantity::{self, Speed, Time};
use crate::{LossSpec, QueueSpec, RouterSpec};
use fairpace_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shared bottleneck, forward, and its way back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathSpec {
    /// Capacity: a rate, `unlimited`, or steps `[{ at = "0 s", rate = "2 Mbit/s" }, …]`. Either this or `trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Capacity>,
    /// Capacity from a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSpec>,
    /// Propagation there and back, without queues; half of it each way.
    pub rtt: Time,
    /// Random extra delay forward, uniform from 0 to this.
    pub jitter: Time,
    /// Whether the random delay may reorder packets.
    pub reorder: bool,
    /// The queue before the bottleneck.
    pub queue: QueueSpec,
    /// Loss by link errors, forward, after the transmitter.
    pub loss: LossSpec,
    /// Times without signal.
    pub outages: Vec<OutageSpec>,
    /// The router before the bottleneck knows Quick-Start; it does not if absent, and requests fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<RouterSpec>,
    /// The way back.
    pub reverse: ReverseSpec,
}

/// The way back, which carries feedback and TCP's ACKs. Its delay is half the path's `rtt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReverseSpec {
    /// Capacity, as in the path's `rate`.
    pub rate: Capacity,
    /// The queue before it.
    pub queue: QueueSpec,
    /// Loss of feedback and ACKs.
    pub loss: LossSpec,
    /// Random extra delay, uniform from 0 to this.
    pub jitter: Time,
    /// Whether the random delay may reorder packets.
    pub reorder: bool,
}

/// How fast a link is.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Takes no time.
    Unlimited,
    /// The same for ever.
    Fixed(Speed),
    /// From each instant on, that rate.
    Steps(Vec<RateStep>),
}

/// One step of a rate that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// From when on; the first is `0 s`.
    pub at: Time,
    /// The rate from then on.
    pub rate: Speed,
}

/// A recorded link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The recording, relative to the scenario file.
    pub file: String,
    /// `mahimahi` (delivery times in ms) or `csv` (time_s and a column in Mbit/s). By the file's ending if absent.
    #[serde(default, deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub format: Option<TraceFormat>,
    /// Column of a CSV recording, such as `down_mbps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The rate where a CSV recording has no samples: `hold` the last rate, `zero`, or `cut` the gap out. `hold` if
    /// absent.
    #[serde(default, deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub gaps: Option<TraceGaps>,
}

/// The rate in a gap of a CSV recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceGaps {
    /// The last rate stays.
    Hold,
    /// Nothing passes.
    Zero,
    /// The gap is left out.
    Cut,
}

/// How a recording is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceFormat {
    /// One line per delivery opportunity of 1,500 bytes: the time in ms.
    Mahimahi,
    /// A table with `time_s` and rates in Mbit/s.
    Csv,
}

/// A time without signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// When it begins.
    pub start: Time,
    /// How long it lasts.
    pub length: Time,
    /// `both` ways, `forward` only or `reverse` only.
    #[serde(default, deserialize_with = "quantity::choice")]
    pub direction: OutageDirection,
}

/// The direction that is dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutageDirection {
    /// Both.
    #[default]
    Both,
    /// Data only.
    Forward,
    /// Feedback and ACKs only.
    Reverse,
}

impl Default for PathSpec {
    fn default() -> Self {
        PathSpec {
            rate: None,
            trace: None,
            rtt: Duration::ZERO.into(),
            jitter: Duration::ZERO.into(),
            reorder: false,
            queue: QueueSpec::default(),
            loss: LossSpec::default(),
            outages: Vec::new(),
            quick_start: None,
            reverse: ReverseSpec::default(),
        }
    }
}

impl Default for ReverseSpec {
    fn default() -> Self {
        ReverseSpec {
            rate: Capacity::Unlimited,
            queue: QueueSpec::default(),
            loss: LossSpec::default(),
            jitter: Duration::ZERO.into(),
            reorder: false,
        }
    }
}

impl PathSpec {
    /// No path at all: one that is has a `rate` or a `trace`.
    pub(crate) fn is_absent(&self) -> bool {
        *self == PathSpec::default()
    }
}

impl Serialize for Capacity {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Capacity::Unlimited => s.serialize_str("unlimited"),
            Capacity::Fixed(speed) => speed.serialize(s),
            Capacity::Steps(steps) => steps.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = Capacity;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a rate as text, such as \"10 Mbit/s\", or a list of steps { at, rate }")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Capacity, E> {
                if text.trim() == "unlimited" {
                    return Ok(Capacity::Unlimited);
                }
                Speed::deserialize(serde::de::value::StrDeserializer::new(text)).map(Capacity::Fixed)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Capacity, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = items.next_element()? {
                    steps.push(step);
                }
                Ok(Capacity::Steps(steps))
            }
        }
        d.deserialize_any(Any)
    }
}

impl JsonSchema for Capacity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Capacity".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let speed = generator.subschema_for::<Speed>();
        let steps = generator.subschema_for::<Vec<RateStep>>();
        schemars::json_schema!({ "anyOf": [{ "const": "unlimited" }, speed, steps] })
    }
}
