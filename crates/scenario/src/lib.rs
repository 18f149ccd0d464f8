//! Scenarios: which flows, which controllers, which path, for how long; and the simulator's configuration that
//! follows.
//!
//! TOML, units as text, one [`ScenarioError`] with file, line, field, value and remedy for
//! everything that is wrong. A [`Scenario`] that exists has passed every check that needs no other
//! file; [`Scenario::load`] also reads the traces that it names.
//!
//! Read first: [`Scenario`] (the fields), `check.rs` (what is refused), [`sim_config`], `docs/scenarios.md`.

pub mod channel;
mod check;
mod config;
pub mod controllers;
pub mod encoder;
mod error;
mod locate;
pub mod loss;
pub mod param;
pub mod part;
mod quantity;
pub mod queue;
mod quick_start;
mod satellite;
#[cfg(test)]
mod tests;
mod variant;
mod window_planner;
mod wireless;

pub use channel::ChannelSpec;
pub use config::{Instance, Record, instances, sim_config};
pub use error::{Problem, ScenarioError, ScenarioWarning, nearest};
pub use loss::LossSpec;
pub use part::Part;
pub use quantity::{Chance, Count, Feedback, Real, Room, Size, Speed, Time};
pub use queue::QueueSpec;
pub use quick_start::{LoadStatistic, QuickStartSpec, RouterSpec};
pub use satellite::{
    AgentKind, EstimatorKind, FadeSpec, FrameSpec, Hold, OwnFrame, ReleaseKind, ReleaseSpec, SatelliteQuickStart,
    SatelliteSpec, SlotPlacement,
};
pub use variant::{replace_controller, with_controller};
pub use window_planner::WindowPlanner;
pub use wireless::{ArqKind, PlanSpec, UplinkSpec, WirelessSpec, WirelessUser};

use fairpace_media::StreamPreset;
use fairpace_path::Trace;
use fairpace_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawScenario {
    /// Short name; the file's name without ending if absent.
    pub name: String,
    /// What the scenario shows, in a sentence.
    pub title: String,
    /// Seed of the first run; further runs count up from it.
    pub seed: Count<0, 9_007_199_254_740_991>,
    /// How long the run lasts; at most a week.
    pub duration: Time,
    /// How much of the beginning is left out of the measurements.
    pub warmup: Time,
    /// `default`, or `paper`: no circuit breaker, challenge, dummy cap or Backoff halving, as the papers ran.
    #[serde(deserialize_with = "quantity::choice")]
    pub safety: SafetyMode,
    /// Size of a data packet on the wire, headers included.
    pub packet_size: Size,
    /// Size of an acknowledgement on the wire.
    pub ack_size: Size,
    /// When receivers of rate-controlled flows send feedback: `every packet`, or an interval.
    pub feedback: Feedback,
    /// Spacing of the time series.
    pub sample: Time,
    /// The shared bottleneck. Either this or `satellite`.
    #[serde(skip_serializing_if = "PathSpec::is_absent")]
    pub path: PathSpec,
    /// Terminals that share a satellite's slots. Either this or `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub satellite: Option<SatelliteSpec>,
    /// The wireless last hop behind `path`, for flows with a `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessSpec>,
    /// The flows; at least one.
    pub flows: Vec<FlowSpec>,
}

/// Which of the defences against doing harm are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SafetyMode {
    /// All of them.
    #[default]
    Default,
    /// None, as in the papers' own simulations.
    Paper,
}

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
    /// What holds where a CSV recording has no samples: `hold` the last rate, `zero`, or `cut` the gap out. `hold` if absent.
    #[serde(default, deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub gaps: Option<TraceGaps>,
}

/// What holds in a gap of a CSV recording.
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

/// Which way is dark.
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

/// A flow, or several alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowSpec {
    /// Name; several alike get numbers (`rcs-1`, `rcs-2`). The controller's name if absent.
    pub name: String,
    /// How many alike.
    pub count: Count<1, 10_000>,
    /// Flows of one group are averaged together. The name if absent.
    pub group: String,
    /// What decides the rate: a media controller (`fairpace list controllers`), `tcp-reno`, `tcp-newreno`,
    /// `tcp-sack`, or `constant` (no feedback at all).
    pub controller: String,
    /// The controller's own parameters, by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// TCP's parameters; with a `tcp-` controller, or `tpba`, which sends over TCP and UDP in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSpec>,
    /// Rate of a `constant` flow, while it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Speed>,
    /// Priority of the flow's data: `normal` or `low`.
    #[serde(deserialize_with = "quantity::choice")]
    pub class: Priority,
    /// When it starts.
    pub start: Time,
    /// Each flow starts at a random time within so much after `start`.
    pub start_spread: Time,
    /// When it stops; at the end if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Sends for a time, is silent for a time, and so on; only with `constant` or TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOffSpec>,
    /// TCP only: ends after so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Size>,
    /// Media controllers only: what the application has to send. Always something if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceSpec>,
    /// With `satellite`: the terminals at which it enters and leaves, `[1, 2]`, or `random` ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminals: Option<Terminals>,
    /// With `wireless`: the user whose downlink is its last hop, and whose uplink its feedback's first. It ends on a
    /// wire if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Count<0, 999>>,
    /// With `wireless.plan`: what it is to have of its user's downlink, as a part of the sum of all shares there; 1 if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Real>,
    /// Packets whose one-way delay is more than this above the least that there can be are counted as outage (D).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerable_jitter: Option<Time>,
    /// Asks the routers for this rate at the start [RFC 4782], from 80 kbit/s to 1,310.72 Mbit/s; a `constant` flow with
    /// each packet, whatever is answered (a flood).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<QuickStartSpec>,
    /// Media controllers with a source that has a rate: what may wait at the sender; more is lost there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Room>,
    /// Media controllers with a source that has a rate: what comes later than the flow's fastest packet by more than
    /// this counts as late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerable_delay: Option<Time>,
    /// Flows that come and go: their starts are a Poisson process, their lengths exponential. `count` sources make them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsSpec>,
    /// Size of this flow's data packets; the scenario's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Size>,
    /// When this flow's receiver sends feedback; as the scenario says if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// Media controllers only: the RTT known at the start. Measured by a challenge if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rtt: Option<Time>,
    /// Media controllers only: cap on data and dummies together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Speed>,
    /// Media controllers only: never below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Speed>,
    /// Media controllers only: the rate to start at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_rate: Option<Speed>,
    /// The flow's own link to the bottleneck; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSpec>,
}

/// A controller's parameter as written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Parameter {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// Text, with a unit where it is a quantity.
    Text(String),
}

impl Parameter {
    /// The text that the controller's own reader gets.
    pub fn text(&self) -> String {
        match self {
            Parameter::Switch(b) => b.to_string(),
            Parameter::Whole(n) => n.to_string(),
            Parameter::Number(x) => x.to_string(),
            Parameter::Text(t) => t.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl serde::de::Visitor<'_> for Any {
            type Value = Parameter;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text, a number, true or false")
            }
            fn visit_bool<E>(self, b: bool) -> Result<Parameter, E> {
                Ok(Parameter::Switch(b))
            }
            fn visit_i64<E>(self, n: i64) -> Result<Parameter, E> {
                Ok(Parameter::Whole(n))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Parameter, E> {
                i64::try_from(n)
                    .map(Parameter::Whole)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(n), &self))
            }
            fn visit_f64<E>(self, x: f64) -> Result<Parameter, E> {
                Ok(Parameter::Number(x))
            }
            fn visit_str<E>(self, text: &str) -> Result<Parameter, E> {
                Ok(Parameter::Text(text.to_owned()))
            }
        }
        d.deserialize_any(Any)
    }
}

/// Priority of a flow's data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Ordinary.
    #[default]
    Normal,
    /// Goes first in a full two-priority queue.
    Low,
}

/// TCP's parameters. What is absent has the simulator's default.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSpec {
    /// `tpba` only: `reno`, `newreno` or `sack`; `reno` if absent. (A `tcp-` controller's name says it.)
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub variant: Option<TcpKind>,
    /// `tpba` only: size of a full segment on the wire, headers of 40 B included; that of the flow's packets if absent.
    /// Smaller packets share segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_size: Option<Size>,
    /// The window falls to the initial one after a timeout's time without sending [RFC 5681 §4.1]; on if absent, off with
    /// `tpba`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_after_idle: Option<bool>,
    /// Initial window in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Count<1, 10>>,
    /// Where slow start ends the first time, in packets; the largest window if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Count<2, 10_000_000>>,
    /// Duplicate ACKs that mean a loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dup_threshold: Option<Count<1, 1_000>>,
    /// Largest window in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_window: Option<Count<1, 10_000_000>>,
    /// Shortest retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Time>,
    /// Longest retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rto: Option<Time>,
    /// Retransmission timeout before the first RTT sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Time>,
    /// Granularity of the RTT clock; `0 s` is an exact one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<Time>,
    /// The receiver delays ACKs at most so long (every second segment at once); at once if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Time>,
    /// Limited transmit [RFC 3042].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// New data goes out as ECT(0), and a queue's mark is answered as a loss [RFC 3168]; off if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Each packet leaves up to so much later, at random: breaks the phase effects of drop-tail queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_jitter: Option<Time>,
}

/// TCP's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpKind {
    /// [RFC 5681]
    Reno,
    /// [RFC 6582]
    Newreno,
    /// [RFC 6675]
    Sack,
}

/// On and off periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOffSpec {
    /// Mean length of an on period.
    pub on: Time,
    /// Mean length of an off period.
    pub off: Time,
    /// `fixed` lengths, or `exponential` around the means.
    #[serde(default, deserialize_with = "quantity::choice")]
    pub lengths: Lengths,
}

/// How long on and off periods are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lengths {
    /// Always the same.
    #[default]
    Fixed,
    /// Exponentially distributed around the mean.
    Exponential,
}

/// What a media flow's application has to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// `saturated`, `adus` (the same in data units of so many `packets`), `constant` (at most `rate`), `encoder` (a model of
    /// an adaptive video encoder), or a kind of stream at a constant rate: `voip`, `video-call`, `iptv`
    /// (docs/media/presets.md).
    #[serde(deserialize_with = "quantity::choice")]
    pub kind: SourceKind,
    /// `constant`: the application's rate. `encoder`: its highest rate. A kind of stream: instead of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Speed>,
    /// `adus`: packets of each data unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Count<1, 10_000>>,
}

/// The kinds of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Always has data.
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

/// The terminals of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminals {
    /// Data enters the satellite at the first and leaves it at the second; feedback the other way round.
    Fixed([u64; 2]),
    /// Two different ones for each flow, from the scenario's seed.
    Random,
}

/// Flows that come and go.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArrivalsSpec {
    /// Mean time between two starts, of all `count` sources together. That of the kind of stream if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// Mean length of a flow. That of the kind of stream if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Time>,
}

/// A flow's own link, before the bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSpec {
    /// Propagation there and back that this link adds.
    pub rtt: Time,
    /// Each flow's `rtt` is longer by a random part up to this.
    pub rtt_spread: Time,
    /// Capacity, each way.
    pub rate: Capacity,
    /// The queue before it.
    pub queue: QueueSpec,
    /// Loss by link errors, forward, before the bottleneck.
    pub loss: LossSpec,
    /// Loss by link errors on the way back.
    pub reverse_loss: LossSpec,
}

fn none() -> Time {
    Duration::ZERO.into()
}

impl Default for RawScenario {
    fn default() -> Self {
        RawScenario {
            name: String::new(),
            title: String::new(),
            seed: Count::new(1),
            duration: Duration::from_secs(60).into(),
            warmup: none(),
            safety: SafetyMode::Default,
            packet_size: Size::bytes(1_000),
            ack_size: Size::bytes(40),
            feedback: Some(Duration::from_millis(20)).into(),
            sample: Duration::from_millis(500).into(),
            path: PathSpec::default(),
            satellite: None,
            wireless: None,
            flows: Vec::new(),
        }
    }
}

impl Default for PathSpec {
    fn default() -> Self {
        PathSpec {
            rate: None,
            trace: None,
            rtt: none(),
            jitter: none(),
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
            jitter: none(),
            reorder: false,
        }
    }
}

impl Default for FlowSpec {
    fn default() -> Self {
        FlowSpec {
            name: String::new(),
            count: Count::new(1),
            group: String::new(),
            controller: String::new(),
            parameters: BTreeMap::new(),
            tcp: None,
            rate: None,
            class: Priority::Normal,
            start: none(),
            start_spread: none(),
            stop: None,
            on_off: None,
            transfer: None,
            source: None,
            terminals: None,
            user: None,
            share: None,
            tolerable_jitter: None,
            quick_start: None,
            send_buffer: None,
            tolerable_delay: None,
            arrivals: None,
            packet_size: None,
            feedback: None,
            initial_rtt: None,
            max_rate: None,
            min_rate: None,
            start_rate: None,
            access: None,
        }
    }
}

impl Default for AccessSpec {
    fn default() -> Self {
        AccessSpec {
            rtt: none(),
            rtt_spread: none(),
            rate: Capacity::Unlimited,
            queue: QueueSpec::default(),
            loss: LossSpec::default(),
            reverse_loss: LossSpec::default(),
        }
    }
}

impl PathSpec {
    /// No path at all: one that is has a `rate` or a `trace`.
    fn is_absent(&self) -> bool {
        *self == PathSpec::default()
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

    /// What the scenario may be run with all the same, and what comes of it.
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
        check::describe_parameters(&mut schema);
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

impl Serialize for Terminals {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Terminals::Fixed(both) => both.serialize(s),
            Terminals::Random => s.serialize_str("random"),
        }
    }
}

impl<'de> Deserialize<'de> for Terminals {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        const ALLOWED: &str = "write where data enters and leaves, as in `[1, 2]`, or `random`";
        struct Any;
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = Terminals;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("two terminals, as in `[1, 2]`, or \"random\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Terminals, E> {
                if text == "random" {
                    Ok(Terminals::Random)
                } else {
                    Err(quantity::refuse(text, "names no terminals", ALLOWED))
                }
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Terminals, A::Error> {
                let mut numbers: Vec<Count<0, 999_999>> = Vec::new();
                while let Some(number) = items.next_element()? {
                    numbers.push(number);
                }
                match numbers[..] {
                    [from, to] => Ok(Terminals::Fixed([from.get(), to.get()])),
                    _ => Err(quantity::refuse(&format!("{} numbers", numbers.len()), "are not two terminals", ALLOWED)),
                }
            }
        }
        d.deserialize_any(Any)
    }
}

impl JsonSchema for Terminals {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Terminals".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [
            { "type": "string", "enum": ["random"] },
            { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 2, "maxItems": 2 },
        ] })
    }
}
