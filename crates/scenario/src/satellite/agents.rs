//! Quick-Start at a satellite's terminals, as a scenario writes it.

use crate::param::{CHANCE, Form, Row};
use crate::part::PartProblem;
use crate::quantity;
use crate::quick_start::{
    IN_ALL, INTERVALS, OBSERVATIONS, PER_SOURCE, SOURCE_SHARE, STATE_DELAY, STATISTIC, THRESHOLD,
};
use crate::table::written;
use crate::{Chance, Count, LoadStatistic, RouterSpec, Table, Time};
use fairpace_path::DamaSpec;
use fairpace_path::quick_start::{Agent, Estimator, Fade, RouterParams};
use fairpace_units::{Bounds, Duration};
use serde::{Deserialize, Serialize};

/// Quick-Start at a terminal: it is a router to the requests of its flows [RFC 4782], and may ask the NCC for the
/// capacity with them [qsd §3.4]. An absent field has the default that is said there, where it has an effect.
///
/// The rows of [`AGENTS`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct SatelliteQuickStart {
    #[serde(deserialize_with = "quantity::choice")]
    pub agent: AgentKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Chance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_delay: Option<Time>,
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub estimator: Option<EstimatorKind>,
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub statistic: Option<LoadStatistic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inaccuracy: Option<Chance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_source: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_all: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_share: Option<Chance>,
}

/// `[satellite.quick_start]`.
pub const AGENTS: Table = Table::of::<SatelliteQuickStart>(
    "SatelliteQuickStart",
    "Quick-Start at every terminal: a router to the requests of its flows [RFC 4782] that may ask the NCC for the capacity \
     with them [qsd §3.4]",
    &[
        Row::new(
            "agent",
            "",
            Form::Word(&["none", "qs", "qsd"]),
            "`none`: requests pass, and fail; `qs`: they are answered; `qsd`: and the approved rate is added to the \
             terminal's next request",
        ),
        Row::new(
            "hold",
            "T_q",
            Form::Either(&[Form::Time(Bounds::ANY.up_to(Duration::from_secs(60))), Form::Word(&["max", "opt"])]),
            "`qsd`: how long the request is held back: a time, `max` [qsd eq. (3)], or `opt` [qsd eq. (6)]",
        ),
        THRESHOLD,
        INTERVALS,
        STATE_DELAY.usually("(T_r + T_a) / `intervals`"),
        Row::new(
            "estimator",
            "",
            Form::Word(&["broadcast", "on-demand", "tbtp-sum", "listening"]),
            "how a terminal knows what is free [qsd Appendix A]: `broadcast` by the NCC; `on-demand`, an RTT_m later; \
             `tbtp-sum`, the slots that are nobody's, not with `fca`; `listening` to others",
        ),
        STATISTIC,
        OBSERVATIONS,
        Row::new("inaccuracy", "", CHANCE, "`listening`: half-width of the relative error of what a terminal hears"),
        Row::new(
            "spots",
            "",
            Form::Whole(1, 1_000),
            "`listening`: spots over which the traffic is spread, of which a terminal hears its own",
        ),
        Row::new("fade", "", Form::Table(&FADE), "`listening`: times of deep fading, in which a terminal hears less")
            .usually("none"),
        PER_SOURCE,
        IN_ALL,
        SOURCE_SHARE,
    ],
)
.usually(|| {
    let router = RouterSpec::of(&RouterParams::default());
    written(&SatelliteQuickStart {
        threshold: router.threshold,
        intervals: router.intervals,
        statistic: router.statistic,
        observations: router.observations,
        per_source: router.per_source,
        in_all: router.in_all,
        source_share: router.source_share,
        hold: Some(Hold::Time(Time::default())),
        estimator: Some(EstimatorKind::default()),
        inaccuracy: Some(Chance::ZERO),
        spots: Some(Count::new(1)),
        ..SatelliteQuickStart::default()
    })
});

/// The terminal's answer to a Quick-Start request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// The terminal does not know Quick-Start: the request passes, and its TTL tells the sender that it failed.
    #[default]
    None,
    /// The terminal answers as a router does.
    Qs,
    /// The terminal answers, asks the NCC for the approved rate at the next boundary, and holds the packet back.
    Qsd,
}

/// How a terminal estimates the free capacity [qsd Appendix A].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimatorKind {
    /// The NCC broadcasts it with each plan (A.1.1).
    #[default]
    Broadcast,
    /// The NCC answers when asked, a round trip later (A.1.2).
    OnDemand,
    /// From the unassigned slots of the plan (A.2.1); not with `fca`.
    TbtpSum,
    /// From what other terminals send (A.2.2).
    Listening,
}

/// How long a QSD agent holds a request back.
#[derive(Clone, Debug, PartialEq)]
pub enum Hold {
    /// So long.
    Time(Time),
    /// T_q,max: until the capacity asked for is there [qsd eq. (3)].
    Max,
    /// T_q,opt: as short as keeps the delay falling [qsd eq. (6)].
    Opt,
}

/// When a terminal fades, and what it still hears then.
///
/// The rows of [`FADE`] say what its fields are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct FadeSpec {
    pub clear: Time,
    pub length: Time,
    pub heard: Chance,
}

/// `fade` of listening agents.
pub const FADE: Table = Table::of::<FadeSpec>(
    "FadeSpec",
    "when a terminal fades, and what it still hears then",
    &[
        Row::new("clear", "", AT_LEAST_MS, "mean time of clear sky, exponential").needed(),
        Row::new("length", "", AT_LEAST_MS, "mean length of a fade, exponential").needed(),
        Row::new(
            "heard",
            "",
            CHANCE,
            "share of the bursts that a terminal hears in a fade; the others are taken for silence",
        )
        .needed(),
    ],
);

const AT_LEAST_MS: Form = Form::Time(Bounds::at_least(Duration::from_millis(1)));

impl SatelliteQuickStart {
    /// The agents of a satellite whose other numbers stand.
    pub(super) fn set(&self, spec: DamaSpec) -> DamaSpec {
        let agent = match self.agent {
            AgentKind::None => Agent::Off,
            AgentKind::Qs => Agent::Qs,
            AgentKind::Qsd => Agent::Qsd {
                hold: match &self.hold {
                    None => Duration::ZERO,
                    Some(Hold::Time(time)) => time.get(),
                    Some(Hold::Max) => spec.t_q_max(),
                    Some(Hold::Opt) => spec.t_q_opt(),
                },
            },
        };
        let remembered = spec.super_frame() + spec.allocation_delay();
        let mut spec = spec.with_agent(agent);
        let mut router = self.router().params(spec.quick_start.router);
        if self.state_delay.is_none() {
            router.state_delay = remembered / router.intervals.max(1);
        }
        spec.quick_start.router = router;
        spec.quick_start.estimator = match self.estimator.unwrap_or_default() {
            EstimatorKind::Broadcast => Estimator::Broadcast,
            EstimatorKind::OnDemand => Estimator::OnDemand,
            EstimatorKind::TbtpSum => Estimator::TbtpSum,
            EstimatorKind::Listening => Estimator::Listening {
                inaccuracy: self.inaccuracy.map_or(0.0, |c| c.get().get()),
                fade: self.fade.as_ref().map(|f| Fade {
                    clear: f.clear.get(),
                    length: f.length.get(),
                    heard: f.heard.get().get(),
                }),
                spots: self.spots.map_or(1, |n| n.get() as u32),
            },
        };
        spec
    }

    /// The router with the limits of `defaults` on requests and sources, where none is written.
    pub(crate) fn limits(&self, router: RouterParams, defaults: RouterParams) -> RouterParams {
        RouterParams {
            per_source: if self.per_source.is_some() { router.per_source } else { defaults.per_source },
            in_all: if self.in_all.is_some() { router.in_all } else { defaults.in_all },
            source_share: if self.source_share.is_some() { router.source_share } else { defaults.source_share },
            ..router
        }
    }

    /// The part of it that any router has.
    fn router(&self) -> RouterSpec {
        RouterSpec {
            threshold: self.threshold,
            intervals: self.intervals,
            state_delay: self.state_delay.clone(),
            statistic: self.statistic,
            observations: self.observations,
            per_source: self.per_source,
            in_all: self.in_all,
            source_share: self.source_share,
        }
    }

    pub(super) fn problem(&self, fca: bool) -> Option<PartProblem> {
        let problem = |key: &str, found: &str, wrong: &str, allowed: &str| {
            let (key, found) = (key.to_owned(), found.to_owned());
            Some(PartProblem::Bad(key, found, wrong.to_owned(), allowed.to_owned()))
        };
        if self.estimator == Some(EstimatorKind::TbtpSum) && fca {
            let wrong = "sums the slots that are nobody's, and `fca` leaves none";
            return problem(
                "quick_start.estimator",
                "tbtp-sum",
                wrong,
                "`broadcast`, `on-demand`, `listening`, or no `fca`",
            );
        }
        None
    }

    /// The first field that has no effect as it is: the field, what stands against it, what it needs.
    pub(crate) fn without_effect(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let has_agent = match self.agent {
            AgentKind::None => "agent `none`",
            AgentKind::Qs => "agent `qs`",
            AgentKind::Qsd => "agent `qsd`",
        };
        let (has_estimator, on_demand, listening) = match self.estimator.unwrap_or_default() {
            EstimatorKind::Broadcast => ("estimator `broadcast`", false, false),
            EstimatorKind::OnDemand => ("estimator `on-demand`", true, false),
            EstimatorKind::TbtpSum => ("estimator `tbtp-sum`", false, false),
            EstimatorKind::Listening => ("estimator `listening`", false, true),
        };
        let off = self.agent == AgentKind::None;
        let (qs, qsd, hears) = ("agent = \"qs\"", "agent = \"qsd\"", "estimator = \"listening\"");
        let table = [
            ("hold", self.hold.is_some(), self.agent != AgentKind::Qsd, has_agent, qsd),
            ("threshold", self.threshold.is_some(), off, has_agent, qs),
            ("intervals", self.intervals.is_some(), off, has_agent, qs),
            ("state_delay", self.state_delay.is_some(), off, has_agent, qs),
            ("estimator", self.estimator.is_some(), off, has_agent, qs),
            ("statistic", self.statistic.is_some(), off, has_agent, qs),
            ("statistic", self.statistic.is_some(), on_demand, has_estimator, "estimator = \"broadcast\""),
            ("observations", self.observations.is_some(), off, has_agent, qs),
            ("observations", self.observations.is_some(), on_demand, has_estimator, "estimator = \"broadcast\""),
            ("inaccuracy", self.inaccuracy.is_some(), !listening, has_estimator, hears),
            ("spots", self.spots.is_some(), !listening, has_estimator, hears),
            ("fade", self.fade.is_some(), !listening, has_estimator, hears),
            ("per_source", self.per_source.is_some(), off, has_agent, qs),
            ("in_all", self.in_all.is_some(), off, has_agent, qs),
            ("source_share", self.source_share.is_some(), off, has_agent, qs),
        ];
        let found = table.into_iter().find(|(_, given, idle, ..)| *given && *idle);
        found.map(|(key, _, _, has, needs)| (key, has, needs))
    }
}

impl Serialize for Hold {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Hold::Time(time) => time.serialize(s),
            Hold::Max => s.serialize_str("max"),
            Hold::Opt => s.serialize_str("opt"),
        }
    }
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Hold;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a duration as text, such as \"520 ms\", or \"max\" or \"opt\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Hold, E> {
                match text {
                    "max" => Ok(Hold::Max),
                    "opt" => Ok(Hold::Opt),
                    _ => Time::deserialize(serde::de::value::StrDeserializer::new(text)).map(Hold::Time),
                }
            }
        }
        d.deserialize_any(Text)
    }
}
