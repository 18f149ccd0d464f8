//! Scenarios: which flows, which controllers, which path, for how long; and the simulator's configuration that
//! follows.
//!
//! TOML, units as text, one [`ScenarioError`] with file, line, field, value and remedy for
//! everything that is wrong. A [`Scenario`] that exists has passed every check that needs no other
//! file; [`Scenario::load`] also reads the traces that it names.
//!
//! ```
//! use fairpace_scenario::Scenario;
//!
//! let text = "duration = \"10 s\"\n[path]\nrate = \"2 Mbit/s\"\nrtt = \"50 ms\"\n[[flows]]\nname = \"video\"\ncontroller = \"rcs\"\n";
//! let scenario = Scenario::parse(text, "first.toml")?;
//! // A change gives a new scenario, or says what is wrong with the whole.
//! let wrong = scenario.modify(|raw| raw.flows[0].controller = "rsc".to_owned()).unwrap_err();
//! assert!(wrong.to_string().contains("`rsc`"));
//! assert_eq!(scenario.flows.len(), 1);
//! # Ok::<(), fairpace_scenario::ScenarioError>(())
//! ```
//!
//! Read first: [`SCENARIO`] (the fields), `check.rs` (what is refused beside bounds), [`sim_config`], `docs/scenarios.md`.

pub mod channel;
mod check;
mod config;
pub mod controllers;
pub mod encoder;
mod error;
mod field;
mod flow;
mod hop;
mod locate;
pub mod loss;
pub mod param;
pub mod part;
mod path;
mod quantity;
pub mod queue;
mod quick_start;
mod satellite;
mod schema;
mod source;
mod table;
mod tcp;
#[cfg(test)]
mod tests;
mod variant;
mod window_planner;
mod wireless;

pub use channel::ChannelSpec;
pub use config::{Instance, Record, instances, sim_config};
pub use error::{Problem, ScenarioError, ScenarioWarning, nearest};
pub use field::{Field, Named, Param};
pub use flow::{ACCESS, AccessSpec, FLOW, FlowSpec, Parameter, Priority, Terminals};
pub use hop::{HOP, Hop, HopKind, HopSpec};
pub use loss::LossSpec;
pub use param::Table;
pub use part::Part;
pub use path::{
    Capacity, OUTAGE, OutageDirection, OutageSpec, PATH, PathSpec, REVERSE, RateStep, ReverseSpec, STEP, TRACE,
    TraceFormat, TraceGaps, TraceSpec,
};
pub use quantity::{Chance, Count, Feedback, FeedbackRule, Real, Room, Size, Speed, Time};
pub use queue::QueueSpec;
pub use quick_start::{LoadStatistic, QuickStartSpec, ROUTER, RouterSpec};
pub use satellite::{
    AGENTS, AgentKind, EstimatorKind, FADE, FadeSpec, FrameSpec, Hold, OWN_FRAME, OwnFrame, RELEASE, ReleaseKind,
    ReleaseSpec, SATELLITE, SatelliteQuickStart, SatelliteSpec, SlotPlacement,
};
pub use source::{ARRIVALS, ArrivalsSpec, Lengths, ON_OFF, OnOffSpec, SOURCE, SourceKind, SourceSpec};
pub use table::AboutTable;
pub use tcp::{TCP, TcpKind, TcpSpec};
pub use variant::{replace_controller, with_controller};
pub use window_planner::WindowPlanner;
pub use wireless::{ArqKind, PLAN, PlanSpec, UPLINK, USER, UplinkSpec, WIRELESS, WirelessSpec, WirelessUser};

use fairpace_path::Trace;
use fairpace_units::{Bounds, Bytes, Duration};
use param::{Form, Row};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest scenario file that is read.
const MAX_FILE: u64 = 1 << 20;

/// A scenario: flows over one path, for so long. Every check that needs no other file has passed, and the recordings
/// that it names are read.
///
/// Its fields are read as those of a [`RawScenario`], and changed by [`Scenario::modify`] only, which checks again:
///
/// ```compile_fail
/// # use fairpace_scenario::Scenario;
/// # let mut scenario = Scenario::parse("", "x.toml").unwrap();
/// scenario.flows.clear(); // does not compile: nobody would have checked what is left
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    raw: RawScenario,
    files: Files,
    warnings: Vec<ScenarioWarning>,
}

/// The files beside the scenario's.
#[derive(Clone, Debug, PartialEq)]
struct Files {
    /// The folder that relative names start from.
    folder: PathBuf,
    /// Recordings that were read, each with the entry that names it.
    traces: Vec<(TraceSpec, Arc<Trace>)>,
}

impl Files {
    fn recording(&self, spec: &TraceSpec) -> Option<&Arc<Trace>> {
        self.traces.iter().find(|(known, _)| known == spec).map(|(_, trace)| trace)
    }
}

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

/// A size that fits into a datagram.
pub(crate) const PACKET_SIZE: Form = Form::Size(Bounds::of(Bytes::new(1), Bytes::new(65_507)));
pub(crate) const DATAGRAM: &str = "what fits into a datagram";
pub(crate) const FEEDBACK: Form = Form::Other(
    "`every packet`, or an interval from 1 ms to 10 s; the form `ccfb` or `twcc` before that",
    |generator| generator.subschema_for::<Feedback>(),
);
/// Up to an hour.
pub(crate) const SOME_TIME: Form = Form::Time(Bounds::ANY.up_to(Duration::from_secs(3_600)));

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

impl Scenario {
    /// Reads a scenario file and the traces that it names.
    ///
    /// # Errors
    /// [`ScenarioError`] with file, line, field, what was found and what is allowed.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        let unreadable = |reason: String| ScenarioError {
            file: file.clone(),
            line: 0,
            problem: Box::new(Problem::Unreadable { reason }),
        };
        let about = std::fs::metadata(path).map_err(|e| unreadable(reason(&e)))?;
        if !about.is_file() {
            return Err(unreadable(
                if about.is_dir() { "it is a folder" } else { "it is not a regular file" }.to_owned(),
            ));
        }
        if about.len() > MAX_FILE {
            return Err(unreadable(format!("it has {} bytes; at most 1 MiB is read", about.len())));
        }
        let bytes = std::fs::read(path).map_err(|e| unreadable(reason(&e)))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Scenario::parse_in(&text, &file, &stem, folder)
    }

    /// Reads a scenario from text; `file` is what errors call it, its stem is the default name.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        let path = Path::new(file);
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Scenario::parse_in(text, file, &stem, path.parent().unwrap_or(Path::new("")).to_owned())
    }

    fn parse_in(text: &str, file: &str, stem: &str, folder: PathBuf) -> Result<Scenario, ScenarioError> {
        let document = toml::de::DeTable::parse(text).map_err(|e| ScenarioError::from_toml(&e, file, None))?;
        let locator = locate::Locator::new(text, &document);
        let mut raw = RawScenario::deserialize(toml::de::Deserializer::from(document))
            .map_err(|e| ScenarioError::from_toml(&e, file, Some(&locator)))?;
        if raw.name.is_empty() {
            stem.clone_into(&mut raw.name);
        }
        let mut scenario = Scenario { raw, files: Files { folder, traces: Vec::new() }, warnings: Vec::new() };
        check::check(&mut scenario, file, &locator)?;
        Ok(scenario)
    }

    /// The scenario after a change, checked as if it had been read so. Recordings that it names already are not read
    /// again.
    ///
    /// # Errors
    /// As [`Scenario::load`], with the scenario's name in the place of the file's, and no line.
    ///
    /// ```
    /// # use fairpace_scenario::Scenario;
    /// use fairpace_scenario::Time;
    /// # let text = "[path]\nrate = \"10 Mbit/s\"\n[[flows]]\ncontroller = \"rcs\"";
    /// # let scenario = Scenario::parse(text, "geo.toml").unwrap();
    /// let longer = scenario.modify(|s| s.duration = Time::seconds(600.0)).unwrap();
    /// assert_eq!(longer.duration.text(), "600 s");
    /// let error = scenario.modify(|s| s.warmup = Time::seconds(60.0)).unwrap_err();
    /// assert!(error.to_string().starts_with("geo: `warmup` is `60 s`, which leaves nothing"));
    /// ```
    pub fn modify(&self, change: impl FnOnce(&mut RawScenario)) -> Result<Scenario, ScenarioError> {
        let mut scenario = self.clone();
        change(&mut scenario.raw);
        let name = scenario.raw.name.clone();
        check::check(&mut scenario, &name, &locate::Locator::nowhere())?;
        Ok(scenario)
    }

    /// The oddities with which the scenario may still be run, and their consequences.
    pub fn warnings(&self) -> &[ScenarioWarning] {
        &self.warnings
    }

    /// The recording that an entry names.
    pub(crate) fn recording(&self, spec: &TraceSpec) -> Option<&Arc<Trace>> {
        self.files.recording(spec)
    }

    /// An error in a field of this scenario, outside of any file.
    pub(crate) fn error(&self, problem: Problem) -> ScenarioError {
        ScenarioError { file: self.name.clone(), line: 0, problem: Box::new(problem) }
    }

    /// The JSON Schema of scenario files, as `docs/scenario.schema.json` holds it.
    pub fn json_schema() -> String {
        let mut schema =
            schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RawScenario>();
        schema.insert("title".to_owned(), "Fairpace scenario".into());
        serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
    }
}

impl RawScenario {
    /// The scenario as TOML with every default filled in, controllers' parameters included:
    /// what a results folder keeps. Reads back to the same scenario.
    pub fn to_toml(&self) -> String {
        let resolved = check::resolve(self);
        // Only maps with keys that are not text can fail, and there are none.
        toml::to_string(&resolved).unwrap_or_default()
    }
}

impl std::ops::Deref for Scenario {
    type Target = RawScenario;

    fn deref(&self) -> &RawScenario {
        &self.raw
    }
}

/// A system error in plain words, without the number.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
