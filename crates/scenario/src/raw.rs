//! The scenario as a file writes it, and the rows of its fields: the top of the tree of tables.

use crate::error::{Problem, ScenarioError};
use crate::flow::{FLOW, FlowSpec};
use crate::forms::{DATAGRAM, FEEDBACK, PACKET_SIZE};
use crate::hop::{HOP, HopSpec};
use crate::param::{Form, Row, Table};
use crate::path::{PATH, PathSpec};
use crate::quantity::{self, Count, Feedback, FeedbackRule, Size, Time};
use crate::satellite::{SATELLITE, SatelliteSpec};
use crate::wireless::{WIRELESS, WirelessSpec};
use fairpace_units::{Bounds, Duration};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// A scenario as it is written: each field by itself can be, but nobody has checked that they go together.
///
/// The rows of [`SCENARIO`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct RawScenario {
    pub name: String,
    pub title: String,
    pub seed: Count,
    pub duration: Time,
    pub warmup: Time,
    #[serde(deserialize_with = "quantity::choice")]
    pub safety: SafetyMode,
    pub packet_size: Size,
    pub ack_size: Size,
    pub feedback: Feedback,
    pub sample: Time,
    #[serde(skip_serializing_if = "PathSpec::is_absent")]
    pub path: PathSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satellite: Option<SatelliteSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessSpec>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hop: Vec<HopSpec>,
    pub flows: Vec<FlowSpec>,
}

/// A scenario file.
pub static SCENARIO: Table = Table::of::<RawScenario>(
    "RawScenario",
    "flows over one path, for so long",
    &[
        Row::new("name", "", Form::Text, "short name, in results and reports").usually("the file's name"),
        Row::new("title", "", Form::Text, "the scenario's message in a sentence, in reports").optional(),
        Row::new(
            "seed",
            "",
            Form::Whole(0, 9_007_199_254_740_991),
            "seed of the first run; further runs count up from it",
        ),
        Row::new(
            "duration",
            "",
            Form::Time(Bounds::above(Duration::ZERO).up_to(Duration::from_secs(7 * 86_400))),
            "how long the run lasts",
        )
        .note("a week"),
        Row::new(
            "warmup",
            "",
            Form::Time(Bounds::ANY),
            "how much of the beginning is left out of all measurements; shorter than `duration`",
        ),
        Row::new(
            "safety",
            "",
            Form::Word(&["default", "paper"]),
            "`paper` switches the circuit breaker, the challenge, the dummy cap, the rate cap and Backoff's halving off, \
             as the papers' own simulations had none",
        ),
        Row::new("packet_size", "", PACKET_SIZE, "a data packet on the wire, headers included").note(DATAGRAM),
        Row::new("ack_size", "", PACKET_SIZE, "an acknowledgement on the wire").note(DATAGRAM),
        Row::new(
            "feedback",
            "",
            FEEDBACK,
            "when receivers of media flows send feedback; a form before that, or alone, as in `twcc 50 ms`",
        ),
        Row::new("sample", "", Form::Time(Bounds::at_least(Duration::from_millis(1))), "spacing of the time series")
            .note("at most the `duration`"),
        Row::new("path", "", Form::Table(&PATH), "the shared bottleneck").optional(),
        Row::new(
            "satellite",
            "",
            Form::Table(&SATELLITE),
            "terminals that share a satellite's slots; in place of `path`, or a hop of its own",
        )
        .optional(),
        Row::new(
            "wireless",
            "",
            Form::Table(&WIRELESS),
            "the wireless last hop behind `path`, for flows with a `user`; or a hop of its own",
        )
        .optional(),
        Row::new(
            "hop",
            "",
            Form::Tables(&HOP),
            "several hops in sequence, in the order in which data passes them; in place of `path`",
        )
        .optional(),
        Row::new("flows", "", Form::Tables(&FLOW), "the flows").needed(),
    ],
);

impl JsonSchema for RawScenario {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SCENARIO.name.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        SCENARIO.schema(generator)
    }
}

/// The set of defences against doing harm that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SafetyMode {
    /// All of them.
    #[default]
    Default,
    /// None, as in the papers' own simulations.
    Paper,
}

impl Default for RawScenario {
    fn default() -> Self {
        RawScenario {
            name: String::new(),
            title: String::new(),
            seed: Count::new(1),
            duration: Duration::from_secs(60).into(),
            warmup: Duration::ZERO.into(),
            safety: SafetyMode::Default,
            packet_size: Size::bytes(1_000),
            ack_size: Size::bytes(40),
            feedback: FeedbackRule { form: None, interval: Some(Duration::from_millis(20)) }.into(),
            sample: Duration::from_millis(500).into(),
            path: PathSpec::default(),
            satellite: None,
            wireless: None,
            hop: Vec::new(),
            flows: Vec::new(),
        }
    }
}

impl RawScenario {
    /// An error in a field of this scenario, outside of any file.
    pub(crate) fn error(&self, problem: Problem) -> ScenarioError {
        ScenarioError { file: self.name.clone(), line: 0, problem: Box::new(problem) }
    }
}
