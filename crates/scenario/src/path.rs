//! The shared path as a scenario writes it: `[path]`, its capacity, its recordings, its outages, and its way back.

use crate::forms::{SOME_RATE, SOME_TIME};
use crate::param::{Form, Row};
use crate::quantity::{self, Speed, Time};
use crate::table::written;
use crate::{LossSpec, QueueSpec, ROUTER, RouterSpec, Table};
use fairpace_units::{Bounds, Duration};
use serde::{Deserialize, Serialize};

/// The shared bottleneck, forward, and its way back.
///
/// The rows of [`PATH`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct PathSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Capacity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSpec>,
    pub rtt: Time,
    pub jitter: Time,
    pub reorder: bool,
    pub queue: QueueSpec,
    pub loss: LossSpec,
    pub outages: Vec<OutageSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<RouterSpec>,
    pub reverse: ReverseSpec,
}

/// `[path]`.
pub const PATH: Table = Table::of::<PathSpec>(
    "PathSpec",
    "the shared bottleneck, forward, and its way back",
    &[
        capacity("capacity; this or `trace`").optional(),
        Row::new("trace", "", Form::Table(&TRACE), "capacity from a recording, which repeats when it ends").optional(),
        Row::new("rtt", "", SOME_TIME, "propagation there and back, half each way, without queues"),
        Row::new("jitter", "", SOME_TIME, "random extra delay forward, uniform from 0 to this"),
        Row::new(
            "reorder",
            "",
            Form::Flag,
            "whether that may reorder packets; if not, a packet waits for the one before it",
        ),
        Row::new("queue", "", QUEUE, "the queue before the bottleneck"),
        Row::new(
            "loss",
            "",
            LOSS,
            "loss by link errors, forward, after the transmitter: a lost packet has used capacity",
        ),
        Row::new("outages", "", Form::Tables(&OUTAGE), "times without signal"),
        Row::new(
            "quick_start",
            "",
            Form::Table(&ROUTER),
            "the router before the bottleneck knows Quick-Start; without it every request fails here",
        )
        .optional(),
        Row::new("reverse", "", Form::Table(&REVERSE), "the way back").usually("a wire"),
    ],
);

/// A link's capacity.
const CAPACITY: Form = Form::Either(&[SOME_RATE, Form::Word(&["unlimited"]), Form::Tables(&STEP)]);
/// The row of a link's capacity.
pub(crate) const fn capacity(doc: &'static str) -> Row {
    Row::new("rate", "", CAPACITY, doc).wrong("passes nothing").note("0 only as a step or by `outages`")
}
/// A link's queue.
pub(crate) const QUEUE: Form =
    Form::Other("a queue, as in `{ kind, capacity, … }`", |generator| generator.subschema_for::<QueueSpec>());
/// A link's loss.
pub(crate) const LOSS: Form =
    Form::Other("a loss, as in `{ kind, … }`", |generator| generator.subschema_for::<LossSpec>());

/// The way back, which carries feedback and TCP's ACKs. Its delay is half the path's `rtt`.
///
/// The rows of [`REVERSE`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct ReverseSpec {
    pub rate: Capacity,
    pub queue: QueueSpec,
    pub loss: LossSpec,
    pub jitter: Time,
    pub reorder: bool,
}

/// `[path.reverse]`.
pub const REVERSE: Table = Table::of::<ReverseSpec>(
    "ReverseSpec",
    "the way back, which carries feedback and TCP's ACKs; its delay is half the path's `rtt`",
    &[
        capacity("capacity"),
        Row::new("queue", "", QUEUE, "the queue before it"),
        Row::new("loss", "", LOSS, "loss of feedback and ACKs"),
        Row::new("jitter", "", SOME_TIME, "random extra delay, uniform from 0 to this"),
        Row::new("reorder", "", Form::Flag, "whether the random delay may reorder packets"),
    ],
);

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
///
/// The rows of [`STEP`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct RateStep {
    pub at: Time,
    pub rate: Speed,
}

/// A step of `rate`.
pub const STEP: Table = Table::of::<RateStep>(
    "RateStep",
    "one step of a rate that changes",
    &[
        Row::new("at", "", Form::Time(Bounds::ANY), "from when on; the first step is at `0 s`").needed(),
        Row::new("rate", "", Form::Rate(Bounds::ANY), "the rate from then on").needed(),
    ],
);

/// A recorded link.
///
/// The rows of [`TRACE`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TraceSpec {
    pub file: String,
    #[serde(default, deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub format: Option<TraceFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    #[serde(default, deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub gaps: Option<TraceGaps>,
}

/// `trace`.
pub const TRACE: Table = Table::of::<TraceSpec>(
    "TraceSpec",
    "a recorded link",
    &[
        Row::new("file", "", Form::Text, "the recording, relative to the scenario file").needed(),
        Row::new(
            "format",
            "",
            Form::Word(&["mahimahi", "csv"]),
            "`mahimahi`: a line for each packet of 1,500 B, its time in ms; `csv`: a table with the time in its first column",
        )
        .usually("by the file's ending"),
        Row::new(
            "column",
            "",
            Form::Text,
            "`csv`: the column with the rate in Mbit/s, or in kbit/s or bit/s where its name ends in `_kbps` or `_bps`",
        )
        .optional(),
        Row::new(
            "gaps",
            "",
            Form::Word(&["hold", "zero", "cut"]),
            "`csv`: the rate where samples are missing: the last one, or zero; or the gap is left out",
        )
    ],
)
.usually(|| written(&TraceSpec { gaps: Some(TraceGaps::default()), ..TraceSpec::default() }));

impl TraceSpec {
    /// As written, or by the file's ending.
    pub fn format(&self) -> TraceFormat {
        let by_ending = if self.file.ends_with(".csv") { TraceFormat::Csv } else { TraceFormat::Mahimahi };
        self.format.unwrap_or(by_ending)
    }
}

/// The rate in a gap of a CSV recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceGaps {
    /// The last rate stays.
    #[default]
    Hold,
    /// Nothing passes.
    Zero,
    /// The gap is left out.
    Cut,
}

/// How a recording is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceFormat {
    /// One line per delivery opportunity of 1,500 bytes: the time in ms.
    Mahimahi,
    /// A table with `time_s` and rates in Mbit/s.
    Csv,
}

/// A time without signal.
///
/// The rows of [`OUTAGE`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct OutageSpec {
    pub start: Time,
    pub length: Time,
    #[serde(default, deserialize_with = "quantity::choice")]
    pub direction: OutageDirection,
    #[serde(default, deserialize_with = "quantity::choice")]
    pub in_flight: InFlight,
}

/// One of `outages`.
pub const OUTAGE: Table = Table::of::<OutageSpec>(
    "OutageSpec",
    "a time without signal",
    &[
        Row::new("start", "", Form::Time(Bounds::ANY), "when it begins, within the run").needed(),
        Row::new("length", "", Form::Time(Bounds::above(Duration::ZERO)), "how long it lasts")
            .needed()
            .wrong("has no effect"),
        Row::new("direction", "", Form::Word(&["both", "forward", "reverse"]), "which way is dark"),
        Row::new(
            "in_flight",
            "",
            Form::Word(&["delivered", "lost"]),
            "what becomes of packets that are on the link when it begins",
        ),
    ],
);

/// The fate of the packets that are on the link when an outage begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InFlight {
    /// They arrive: only the sending end is dark.
    #[default]
    Delivered,
    /// They are lost: the whole link is dark.
    Lost,
}

/// The direction that is dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
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
