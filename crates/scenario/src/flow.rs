//! Flows as a scenario writes them: what each sends, when, under which controller, and over which link of its own.

use crate::quantity::{self, Count, Feedback, Real, Room, Size, Speed, Time};
use crate::{Capacity, LossSpec, QueueSpec, QuickStartSpec};
use fairpace_media::StreamPreset;
use fairpace_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The part that decides the rate: a media controller (`fairpace list controllers`), `tcp-reno`, `tcp-newreno`,
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
    /// With `[[hop]]`: the name of the first hop that its data passes; the first of all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter: Option<String>,
    /// With `[[hop]]`: the name of the last hop that its data passes; the last of all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave: Option<String>,
    /// With `satellite`: the terminals at which it enters and leaves, `[1, 2]`, or `random` ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminals: Option<Terminals>,
    /// With `wireless`: the user whose downlink is its last hop, and whose uplink its feedback's first. The path ends
    /// on a wire if absent.
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

/// TCP's parameters. An absent field has the simulator's default.
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

/// The data that a media flow's application has to send.
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
    /// Mean time between two starts, of all `count` sources together. The default is that of the kind of stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// Mean length of a flow. The default is that of the kind of stream.
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
            start: Duration::ZERO.into(),
            start_spread: Duration::ZERO.into(),
            stop: None,
            on_off: None,
            transfer: None,
            source: None,
            enter: None,
            leave: None,
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
            rtt: Duration::ZERO.into(),
            rtt_spread: Duration::ZERO.into(),
            rate: Capacity::Unlimited,
            queue: QueueSpec::default(),
            loss: LossSpec::default(),
            reverse_loss: LossSpec::default(),
        }
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
