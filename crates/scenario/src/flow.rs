//! Flows as a scenario writes them: what each sends, when, under which controller, and over which link of its own.

use crate::forms::{DATAGRAM, FEEDBACK, PACKET_SIZE, SOME_RATE, SOME_TIME};
use crate::param::{Form, Row};
use crate::path::{LOSS, QUEUE, capacity};
use crate::quantity::{self, Count, Feedback, Real, Room, Size, Speed, Time};
use crate::table::written;
use crate::{
    ARRIVALS, ArrivalsSpec, Capacity, LossSpec, ON_OFF, OnOffSpec, QueueSpec, QuickStartSpec, SOURCE, SourceSpec, TCP,
    Table, TcpSpec, controllers,
};
use fairpace_control::Env;
use fairpace_units::{Bounds, Bytes, Duration, QsRate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A flow, or several alike.
///
/// The rows of [`FLOW`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct FlowSpec {
    pub name: String,
    pub count: Count,
    pub group: String,
    pub controller: String,
    pub parameters: BTreeMap<String, Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Speed>,
    #[serde(deserialize_with = "quantity::choice")]
    pub class: Priority,
    pub start: Time,
    pub start_spread: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOffSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminals: Option<Terminals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Real>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerable_jitter: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<QuickStartSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Room>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerable_delay: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rtt: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_rate: Option<Speed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_access: Option<AccessSpec>,
}

/// One of `[[flows]]`.
pub const FLOW: Table = Table::of::<FlowSpec>(
    "FlowSpec",
    "a flow, or several alike",
    &[
        Row::new("name", "", Form::Text, "several alike get numbers: `video-1`, `video-2`").usually("the controller"),
        Row::new(
            "count",
            "",
            Form::Whole(1, 100_000),
            "how many alike, at most 100,000 flows in all, and as many as fit into memory; with `arrivals`: how many sources",
        ),
        Row::new("group", "", Form::Text, "flows of one group are averaged together").usually("the name"),
        Row::new(
            "controller",
            "",
            CONTROLLER,
            "the part that decides the rate: a media controller, one of the simulator's TCPs, with `--world emu` also one of the \
             kernel's, or `constant`: packets at a fixed rate, no feedback",
        )
        .needed(),
        Row::new("parameters", "", PARAMETERS, "media controllers: the controller's own, by name").optional(),
        Row::new("tcp", "", Form::Table(&TCP), "`tcp-` controllers, and `tpba`, which sends over TCP and UDP in turn")
            .optional(),
        Row::new("rate", "", SOME_RATE, "`constant`: the rate while it is on").wrong("sends nothing").optional(),
        Row::new(
            "class",
            "",
            Form::Word(&["normal", "low"]),
            "media controllers, `constant`: `low` data goes first in a full two-priority queue",
        ),
        Row::new("start", "", Form::Time(Bounds::ANY), "when it starts"),
        Row::new("start_spread", "", Form::Time(Bounds::ANY), "each flow starts at a random time within so much after `start`"),
        Row::new("stop", "", Form::Time(Bounds::ANY), "when it stops sending").usually("the end"),
        Row::new(
            "on_off",
            "",
            Form::Table(&ON_OFF),
            "`constant`, TCP: sends for a time, is silent for a time, and so on",
        )
        .usually("always on"),
        Row::new("transfer", "", Form::Size(Bounds::at_least(Bytes::new(1))), "TCP: ends after so much")
            .usually("endless")
            .wrong("sends nothing"),
        Row::new("source", "", Form::Table(&SOURCE), "media controllers: the data that the application has to send")
            .usually("saturated"),
        Row::new("enter", "", Form::Text, "with `[[hop]]`: name of the first hop that its data passes")
            .usually("the first of all"),
        Row::new("leave", "", Form::Text, "with `[[hop]]`: name of the last hop that its data passes")
            .usually("the last of all"),
        Row::new(
            "terminals",
            "",
            TERMINALS,
            "over a satellite: data enters at the first and leaves at the second, feedback the other way; `random`: two \
             for each flow, from the seed",
        )
        .optional(),
        Row::new(
            "user",
            "",
            Form::Whole(0, 999),
            "with `wireless`: the user whose downlink is the flow's last hop, and whose uplink its feedback's first",
        )
        .usually("none, the flow ends on a wire"),
        Row::new(
            "share",
            "",
            Form::Real(Bounds::above(0.0).up_to(1e6)),
            "with `wireless.plan`: the flow's part of its user's downlink, against the sum of all shares there",
        ),
        Row::new(
            "tolerable_jitter",
            "D",
            TOLERABLE,
            "a packet whose one-way delay is more than this above the least that there can be counts as delay outage",
        )
        .usually("any"),
        Row::new(
            "quick_start",
            "",
            Form::Rate(QsRate::RANGE),
            "`tfrc`, `tfrc-sp`: the rate asked of the routers at the start and after idle times [RFC 4782], rounded up to one that the option can say; `constant` asks with each packet, whatever is \
             answered (a flood). The flow's `access` links know Quick-Start",
        )
        .wrong("is out of the range of the Quick-Start option")
        .optional(),
        Row::new(
            "send_buffer",
            "",
            Form::Room,
            "media controllers with a source that has a rate: the room for packets that wait at the sender; a packet that finds no room is lost",
        ),
        Row::new(
            "tolerable_delay",
            "",
            TOLERABLE,
            "media controllers with a source that has a rate: a packet whose end-to-end delay is more than this above the \
             flow's shortest so far is late",
        )
        .usually("any"),
        Row::new(
            "arrivals",
            "",
            Form::Table(&ARRIVALS),
            "flows that come and go: their starts are a Poisson process from `start` on, their lengths exponential; named \
             `NAME-1`, `NAME-2` … in order of their starts, at most 200,000 on average",
        )
        .optional(),
        Row::new("packet_size", "", PACKET_SIZE, "a data packet of this flow on the wire").note(DATAGRAM).usually("the scenario's"),
        Row::new(
            "feedback",
            "",
            FEEDBACK,
            "media controllers: when this flow's receiver sends feedback; not where the receiver measures (`tfrc` with \
             `measured_by = \"receiver\"`) or RTCP reports do (`lda`, `ldaf`, `tpba`: their parameter `t_rtcp`)",
        )
        .usually("the scenario's"),
        Row::new(
            "initial_rtt",
            "",
            Form::Time(Bounds::of(Duration::from_micros(100), Duration::from_secs(60))),
            "media controllers: the RTT known at the start",
        )
        .usually("measured by a challenge"),
        Row::new("max_rate", "", SOME_RATE, "media controllers: cap on data and dummies together")
            .wrong("sends nothing")
            .usually("10 Mbit/s; none with `safety = \"paper\"`"),
        Row::new("min_rate", "", SOME_RATE, "media controllers: floor of the controller's rate").wrong("sends nothing"),
        Row::new("start_rate", "", SOME_RATE, "media controllers: rate before anything is known")
            .wrong("sends nothing")
            .usually("the controller's"),
        Row::new("access", "", Form::Table(&ACCESS), "the flow's own link to the bottleneck").usually("none"),
        Row::new("far_access", "", Form::Table(&ACCESS), "the flow's own link from the last hop to the receiver").usually("none"),
    ],
)
.usually(|| {
    written(&FlowSpec {
        share: Some(Real::new(1.0)),
        send_buffer: Some(Room::unlimited()),
        min_rate: Some(Speed::bps(Env::default().min_rate.as_bps())),
        ..FlowSpec::default()
    })
});

const CONTROLLER: Form = Form::Other(
    "a controller of `fairpace list controllers`",
    |_| schemars::json_schema!({ "type": "string", "enum": controllers::names() }),
);
pub(crate) const PARAMETERS: Form = Form::Other("a table of text, numbers, `true`, `false`", |_| {
    schemars::json_schema!({
        "description": controllers::parameters_text(), "type": "object",
        "additionalProperties": { "type": ["boolean", "number", "string"] },
    })
});
const TERMINALS: Form = Form::Either(&[
    Form::Word(&["random"]),
    Form::Other("two terminals, as in `[1, 2]`", |_| {
        schemars::json_schema!({
            "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 2, "maxItems": 2,
        })
    }),
]);
const TOLERABLE: Form = Form::Time(Bounds::above(Duration::ZERO).up_to(Duration::from_secs(3_600)));

/// A controller's parameter as written.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Ordinary.
    #[default]
    Normal,
    /// Goes first in a full two-priority queue.
    Low,
}

/// The terminals of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminals {
    /// Data enters the satellite at the first and leaves it at the second; feedback the other way round.
    Fixed([u64; 2]),
    /// Two different ones for each flow, from the scenario's seed.
    Random,
}

/// A flow's own link, before the bottleneck or behind the last hop.
///
/// The rows of [`ACCESS`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct AccessSpec {
    pub rtt: Time,
    pub rtt_spread: Time,
    pub rate: Capacity,
    pub queue: QueueSpec,
    pub loss: LossSpec,
    pub reverse_loss: LossSpec,
}

/// `access` and `far_access` of a flow.
pub const ACCESS: Table = Table::of::<AccessSpec>(
    "AccessSpec",
    "a flow's own link, before the bottleneck or behind the last hop",
    &[
        Row::new("rtt", "", SOME_TIME, "propagation there and back that this link adds"),
        Row::new("rtt_spread", "", SOME_TIME, "each flow's `rtt` is longer by a random part up to this"),
        capacity("capacity, each way"),
        Row::new("queue", "", QUEUE, "the queue before it"),
        Row::new("loss", "", LOSS, "loss by link errors, forward"),
        Row::new("reverse_loss", "", LOSS, "loss by link errors on the way back"),
    ],
);

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
            far_access: None,
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
                let mut numbers: Vec<Count> = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Usual;

    #[test]
    fn the_cap_in_words_is_the_controllers() {
        let Usual::Words(words) = FLOW.find("max_rate").unwrap().usual else { panic!("no words") };
        let cap = Speed::parse(words.split(';').next().unwrap()).unwrap();
        assert_eq!(cap, Speed::bps(Env::default().max_rate.as_bps()));
    }
}
