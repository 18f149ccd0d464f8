//! A satellite network as a scenario writes it, in place of `[path]`: the frame, the terminals, how capacity is
//! asked for and given, and the terminals' Quick-Start agents. Symbols and defaults are those of [qsd Table I].
//!
//! What can be scheduled is [`DamaSpec::validate`]'s to say; [`SatelliteSpec::blame`] says it in a scenario's words.

use super::part::PartProblem;
use super::quantity::{self, refuse};
use super::{Chance, Count, LoadStatistic, Room, RouterSpec, Size, Speed, Time};
use fairpace_path::quick_start::{Agent, Estimator, Fade, QsError};
use fairpace_path::{Capacity, DamaError, DamaSpec, ReleaseOf, SlotLayout};
use fairpace_units::{Bytes, Duration, Packets, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A satellite with demand-assigned capacity (DAMA): terminals that share the slots of a frame. In place of `path`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SatelliteSpec {
    /// `small` (24 slots in a multi-frame), `large` (144), or a frame of its own: `{ slot, multi_frame, super_frame }`.
    pub frame: FrameSpec,
    /// What one carrier carries, shared by its terminals.
    pub capacity: Speed,
    /// How many terminals; numbered from 0.
    pub terminals: Count<1, 1_000_000>,
    /// How many carriers the terminals are spread over; as many as their minimum needs if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carriers: Option<Count<1, 1_000_000>>,
    /// T_p: from a terminal over the satellite to a terminal, or to the NCC.
    pub propagation: Time,
    /// T_a: super-frames from the boundary at which a request is made to that from which its answer holds. 2 in the
    /// large frame, 6 in the small one, as few as the propagation lets in one of its own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_delay: Option<Count<1, 1_000>>,
    /// The unit in which capacity is given.
    pub granularity: Speed,
    /// What every terminal always has, in units of `granularity`.
    pub minimum: Count<0, 10_000_000>,
    /// Constant rate assignment: at least this is given to each terminal, whatever it asks.
    pub cra: Speed,
    /// Rate-based capacity: a terminal asks for the rate at which packets came in the super-frame before.
    pub rbdc: bool,
    /// Volume-based capacity: it also asks for what empties its queue in this time (T_s); off if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vbdc: Option<Time>,
    /// Free capacity assignment: what is left over is given away in equal shares.
    pub fca: bool,
    /// How capacity is taken back from a terminal that asks for less [qsd eq. (2)].
    pub release: ReleaseSpec,
    /// What a terminal's uplink queue holds.
    pub queue: Room,
    /// Where a terminal's slots lie in the multi-frame: `contiguous`, or `spread` evenly.
    #[serde(deserialize_with = "quantity::choice")]
    pub slots: SlotPlacement,
    /// Quick-Start at the terminals: how requests of flows are answered, and whether capacity is asked for with them.
    pub quick_start: SatelliteQuickStart,
}

/// The frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameSpec {
    /// Multi-frames of 24 slots, 45.6 ms; three of them are a super-frame.
    Small,
    /// Multi-frames of 144 slots, 273 ms; three of them are a super-frame.
    Large,
    /// Any other.
    Own(OwnFrame),
}

/// A frame in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnFrame {
    /// What a slot carries; 1,504 B (eight MPEG packets) if absent.
    #[serde(default = "eight_mpeg_packets")]
    pub slot: Size,
    /// Slots of a multi-frame, in which every terminal has its turn (T_f).
    pub multi_frame: Count<1, 1_000_000>,
    /// Slots of a super-frame, for which they are given out (T_b, T_r): a multiple of `multi_frame`.
    pub super_frame: Count<1, 1_000_000>,
}

/// Where a terminal's slots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlotPlacement {
    /// One after the other: a packet waits half a multi-frame on average.
    #[default]
    Contiguous,
    /// As evenly over the multi-frame as they can.
    Spread,
}

/// N(t+1) = a N(t) + b (N_L(t) - N(t)): what the next plan gives to a terminal that asks for less, from what it has
/// and from its traffic, N_L [qsd eq. (2)].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReleaseSpec {
    /// Weight of what it has.
    pub a: Chance,
    /// Weight of what its traffic lacks of that.
    pub b: Chance,
    /// What falls: `decided`, the NCC's last decision, by the traffic that the request tells of; or `in-force`, what
    /// the terminal has, by its traffic until now, which no real NCC hears of in time.
    #[serde(deserialize_with = "quantity::choice")]
    pub of: ReleaseKind,
}

/// What eq. (2) takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseKind {
    /// The NCC's last decision.
    #[default]
    Decided,
    /// What the terminal has.
    InForce,
}

/// Quick-Start at a terminal: it is a router to the requests of its flows [RFC 4782], and may ask the NCC for the
/// capacity with them [qsd §3.4]. What is absent has the default that is said there, where it has an effect.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SatelliteQuickStart {
    /// `none` (requests pass and fail), `qs` (they are answered), or `qsd` (and the capacity is asked for at once).
    #[serde(deserialize_with = "quantity::choice")]
    pub agent: AgentKind,
    /// `qsd`: T_q, how long a request is held back: a time, `max` [qsd eq. (3)], or `opt` [qsd eq. (6)]. 0 s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Share of the capacity up to which requests are approved (qs_thresh); 0.8 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Chance>,
    /// For how many intervals of `state_delay` an approval is remembered (M); 2 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Count<1, 1_000>>,
    /// Length of such an interval; (T_r + T_a) / M if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_delay: Option<Time>,
    /// How a terminal knows what is free: `broadcast`, `on-demand`, `tbtp-sum` or `listening` [qsd Appendix A];
    /// `broadcast` if absent.
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub estimator: Option<EstimatorKind>,
    /// What stands for the load: the `average` or the `peak` of the last `observations`; `average` if absent.
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub statistic: Option<LoadStatistic>,
    /// How many plans that is taken over (N); 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<Count<1, 1_000>>,
    /// `listening`: half-width of the relative error of what a terminal hears; 0 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inaccuracy: Option<Chance>,
    /// `listening`: spots over which the traffic is spread, of which a terminal hears its own; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Count<1, 1_000>>,
    /// `listening`: times of deep fading, in which a terminal hears less; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeSpec>,
    /// Requests per second that are considered from one source; 10 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_source: Option<Count<1, 1_000_000>>,
    /// Requests per second that are considered in all; 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_all: Option<Count<1, 1_000_000>>,
    /// Share of what the others leave that one source may hold in approvals; 0.25 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_share: Option<Chance>,
}

/// What a terminal does with a Quick-Start request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// It does not know it: the request passes, and its TTL tells the sender that it failed.
    #[default]
    None,
    /// It answers as a router does.
    Qs,
    /// It answers, asks the NCC for the approved rate at the next boundary, and holds the packet back.
    Qsd,
}

/// How a terminal estimates the free capacity [qsd Appendix A].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FadeSpec {
    /// Mean time of clear sky, exponential.
    pub clear: Time,
    /// Mean length of a fade, exponential.
    pub length: Time,
    /// Share of the bursts that it hears in a fade; the others it takes for silence.
    pub heard: Chance,
}

fn eight_mpeg_packets() -> Size {
    Size::bytes(1_504)
}

fn chance(p: f64) -> Chance {
    Chance::new(p).unwrap_or(Chance::ZERO)
}

impl Default for SatelliteSpec {
    fn default() -> Self {
        SatelliteSpec {
            frame: FrameSpec::Large,
            capacity: Speed::kbps(6_336.0),
            terminals: Count::new(5),
            carriers: None,
            propagation: Time::ms(252.0),
            allocation_delay: None,
            granularity: Speed::kbps(44.0),
            minimum: Count::new(1),
            cra: Speed::bps(0.0),
            rbdc: true,
            vbdc: None,
            fca: false,
            release: ReleaseSpec::default(),
            queue: Room::packets(1_000),
            slots: SlotPlacement::Contiguous,
            quick_start: SatelliteQuickStart::default(),
        }
    }
}

impl Default for ReleaseSpec {
    fn default() -> Self {
        ReleaseSpec { a: chance(1.0), b: chance(0.5), of: ReleaseKind::Decided }
    }
}

impl SatelliteSpec {
    /// The simulator's satellite, with rates in packets of `size`.
    pub fn dama(&self, size: Bytes) -> DamaSpec {
        let rate = |speed: &Speed| speed.get().with_packets_of(size);
        let small = self.frame == FrameSpec::Small;
        let mut spec = if small { DamaSpec::small() } else { DamaSpec::large() };
        if let FrameSpec::Own(frame) = &self.frame {
            spec.slot_size = frame.slot.get();
            // Frames of their own length are of no consequence: slots are given out for the multi-frame.
            spec.slots_per_frame = 1;
            spec.slots_per_multi_frame = frame.multi_frame.get() as u32;
            spec.slots_per_super_frame = frame.super_frame.get() as u32;
        }
        spec.capacity = rate(&self.capacity);
        spec.terminals = self.terminals.get() as u32;
        spec.carriers = self.carriers.map(|n| n.get() as u32);
        spec.propagation = self.propagation.get();
        spec.granularity = rate(&self.granularity);
        spec.minimum = self.minimum.get() as u32;
        spec.cra = rate(&self.cra);
        spec.rbdc = self.rbdc;
        spec.vbdc = self.vbdc.as_ref().map(Time::get);
        spec.fca = self.fca;
        (spec.release_a, spec.release_b) = (self.release.a.get().get(), self.release.b.get().get());
        spec.release_of = match self.release.of {
            ReleaseKind::Decided => ReleaseOf::Decided,
            ReleaseKind::InForce => ReleaseOf::InForce,
        };
        spec.queue = match self.queue.get() {
            Capacity::Packets(n) => n,
            Capacity::Bytes(_) | Capacity::Unlimited => Packets::new(u64::MAX), // refused by `problem`
        };
        spec.layout = match self.slots {
            SlotPlacement::Contiguous => SlotLayout::Contiguous,
            SlotPlacement::Spread => SlotLayout::Spread,
        };
        match (self.allocation_delay, &self.frame) {
            (Some(n), _) => spec.allocation_delay = n.get() as u32,
            (None, FrameSpec::Own(_)) => {
                let super_frame = spec.super_frame().as_nanos().max(1);
                let one_way = spec.propagation.as_nanos().div_ceil(super_frame);
                spec.allocation_delay = u32::try_from(2 * one_way).unwrap_or(u32::MAX).max(1);
            }
            (None, FrameSpec::Small | FrameSpec::Large) => {}
        }
        self.quick_start.set(spec)
    }

    /// The first thing that is wrong, with rates in packets of `size`.
    pub(super) fn problem(&self, size: Bytes) -> Option<PartProblem> {
        let bad = |key: &str, found: &str, wrong: &str, allowed: &str| {
            let (key, found) = (key.to_owned(), found.to_owned());
            Some(PartProblem::Bad(key, found, wrong.to_owned(), allowed.to_owned()))
        };
        // What the DAMA link would refuse as well, but cannot name as it is written.
        if self.capacity.get().with_packets_of(size) < Rate::bps(1.0) {
            return bad("capacity", self.capacity.text(), "passes nothing", "at least 1 bit/s");
        }
        if self.granularity.get().with_packets_of(size) < Rate::bps(1.0) {
            return bad("granularity", self.granularity.text(), "is nothing", "at least 1 bit/s, as in `44 kbit/s`");
        }
        if !matches!(self.queue.get(), Capacity::Packets(_)) {
            let allowed = "a number of packets, as in `1000 pkt`";
            return bad("queue", self.queue.text(), "is not in packets, which a terminal counts", allowed);
        }
        if let Some(vbdc) = self.vbdc.as_ref().filter(|t| t.get() < Duration::from_millis(1)) {
            return bad("vbdc", vbdc.text(), "is out of range", "at least 1 ms; leave it out to switch it off");
        }
        if let Some(problem) = self.quick_start.problem(self.fca) {
            return Some(problem);
        }
        self.dama(size).validate().err().map(|error| self.blame(&error))
    }

    /// What the DAMA link refuses, in the scenario's words.
    fn blame(&self, error: &DamaError) -> PartProblem {
        let (key, wrong, allowed) = match error {
            DamaError::OutOfRange { field, allowed, .. } => {
                let key = match *field {
                    "slot_size" => "frame.slot",
                    "slots_per_multi_frame" => "frame.multi_frame",
                    "slots_per_super_frame" => "frame.super_frame",
                    "release_a" => "release.a",
                    "release_b" => "release.b",
                    "capacity / granularity" => "granularity",
                    other => other,
                };
                let allowed = allowed.split(" (found in").next().unwrap_or(allowed);
                (key, "is out of range".to_owned(), allowed.replace("`release_a`", "`a`"))
            }
            DamaError::SlotLength { found_us, .. } => (
                if matches!(self.frame, FrameSpec::Own(_)) { "frame.slot" } else { "capacity" },
                format!("makes a slot of {found_us} us"),
                "what makes a slot of 1 us to 60 s".to_owned(),
            ),
            DamaError::NotWhole { length, below, above, .. } => (
                "frame.super_frame",
                format!("is not a multiple of the {length} slots of a multi-frame"),
                format!("a multiple of `multi_frame`, such as {below} or {above}"),
            ),
            DamaError::GranularityAboveCapacity { .. } => (
                "granularity",
                format!("is above the capacity of `{}`", self.capacity),
                "at most `capacity`".to_owned(),
            ),
            DamaError::GranularityNotWhole { units, below, above, .. } => (
                "granularity",
                format!("does not divide the capacity of `{}`, which holds {units:.2} of it", self.capacity),
                format!("such as {} or {}", exact(*below), exact(*above)),
            ),
            DamaError::TooManyCarriers { terminals, allowed, .. } => (
                "carriers",
                format!("is too many to spread {terminals} terminals over evenly"),
                format!("at most {allowed}"),
            ),
            DamaError::MinimumAboveFrame { terminals, units, .. } => (
                "minimum",
                format!("is more than a carrier has for {terminals} terminals: {units} units"),
                "fewer units, fewer terminals, or more carriers".to_owned(),
            ),
            DamaError::ConstantAboveCapacity { terminals, allowed, .. } => (
                "cra",
                format!("is more than the capacity of `{}` has for {terminals} terminals", self.capacity),
                format!("at most {}, fewer terminals, or more carriers", exact(*allowed)),
            ),
            DamaError::AllocationDelayTooShort { one_way, least, .. } => (
                "allocation_delay",
                format!("is too short: a request takes {one_way} super-frames to the NCC, and its answer as many back"),
                format!("at least {least}"),
            ),
            DamaError::NothingToGrant => (
                "minimum",
                "is all there is: `cra`, `rbdc`, `vbdc` and `fca` are off, and nobody would ever get a slot".to_owned(),
                "at least 1, or switch one of them on".to_owned(),
            ),
            DamaError::QuickStart(QsError { field, found, allowed }) => {
                let (key, found) = (format!("quick_start.{field}"), found.to_string());
                return PartProblem::Bad(key, found, "is out of range".to_owned(), (*allowed).to_owned());
            }
        };
        PartProblem::Bad(key.to_owned(), self.written(key), wrong, allowed)
    }

    /// A field as it stands in the file, or its default.
    fn written(&self, key: &str) -> String {
        let own = |pick: fn(&OwnFrame) -> String| match &self.frame {
            FrameSpec::Own(frame) => pick(frame),
            FrameSpec::Small | FrameSpec::Large => String::new(),
        };
        match key {
            "capacity" => self.capacity.text().to_owned(),
            "terminals" => self.terminals.get().to_string(),
            "carriers" => self.carriers.map_or_else(String::new, |n| n.get().to_string()),
            "propagation" => self.propagation.text().to_owned(),
            "granularity" => self.granularity.text().to_owned(),
            "minimum" => self.minimum.get().to_string(),
            "cra" => self.cra.text().to_owned(),
            "queue" => self.queue.text().to_owned(),
            "release.a" => self.release.a.get().get().to_string(),
            "release.b" => self.release.b.get().get().to_string(),
            "frame.slot" => own(|f| f.slot.text().to_owned()),
            "frame.multi_frame" => own(|f| f.multi_frame.get().to_string()),
            "frame.super_frame" => own(|f| f.super_frame.get().to_string()),
            _ => self.dama(Bytes::ZERO).allocation_delay.to_string(),
        }
    }
}

impl SatelliteQuickStart {
    /// The agents of a satellite whose other numbers stand.
    fn set(&self, spec: DamaSpec) -> DamaSpec {
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

    fn problem(&self, fca: bool) -> Option<PartProblem> {
        let problem = |key: &str, found: &str, wrong: &str, allowed: &str| {
            let (key, found) = (key.to_owned(), found.to_owned());
            Some(PartProblem::Bad(key, found, wrong.to_owned(), allowed.to_owned()))
        };
        if let Some(Hold::Time(hold)) = &self.hold
            && hold.get() > Duration::from_secs(60)
        {
            return problem("quick_start.hold", hold.text(), "is out of range", "at most 60 s");
        }
        if let Some((key, found, wrong, allowed)) = self.router().problem() {
            return problem(&format!("quick_start.{key}"), &found, wrong, allowed);
        }
        if self.estimator == Some(EstimatorKind::TbtpSum) && fca {
            let wrong = "sums the slots that are nobody's, and `fca` leaves none";
            return problem(
                "quick_start.estimator",
                "tbtp-sum",
                wrong,
                "`broadcast`, `on-demand`, `listening`, or no `fca`",
            );
        }
        if let Some(fade) = &self.fade {
            for (key, time) in [("quick_start.fade.clear", &fade.clear), ("quick_start.fade.length", &fade.length)] {
                if time.get() < Duration::from_millis(1) {
                    return problem(key, time.text(), "is out of range", "at least 1 ms");
                }
            }
        }
        None
    }

    /// The first field that has no effect as it is: the field, what stands against it, what it needs.
    pub(super) fn without_effect(&self) -> Option<(&'static str, &'static str, &'static str)> {
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

/// A rate with so many digits that it can be written back into the file.
fn exact(rate: Rate) -> String {
    let text = format!("{:.6}", rate.as_bps() / 1e3);
    format!("{} kbit/s", text.trim_end_matches('0').trim_end_matches('.'))
}

const FRAMES: &str = "write `small`, `large`, or `{ multi_frame = 24, super_frame = 72 }` with their numbers of slots";

impl Serialize for FrameSpec {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            FrameSpec::Small => s.serialize_str("small"),
            FrameSpec::Large => s.serialize_str("large"),
            FrameSpec::Own(frame) => frame.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for FrameSpec {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = FrameSpec;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`small`, `large`, or a table `{ multi_frame, super_frame }`")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FrameSpec, E> {
                match text {
                    "small" => Ok(FrameSpec::Small),
                    "large" => Ok(FrameSpec::Large),
                    _ => Err(refuse(text, "is not a frame", FRAMES)),
                }
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<FrameSpec, A::Error> {
                OwnFrame::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(FrameSpec::Own)
            }
        }
        d.deserialize_any(Any)
    }
}

impl JsonSchema for FrameSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FrameSpec".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let own = generator.subschema_for::<OwnFrame>();
        schemars::json_schema!({ "anyOf": [{ "type": "string", "enum": ["small", "large"] }, own] })
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

impl JsonSchema for Hold {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hold".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let time = generator.subschema_for::<Time>();
        schemars::json_schema!({ "anyOf": [time, { "type": "string", "enum": ["max", "opt"] }] })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    /// A scenario with these lines of `[satellite]` and of its flow.
    fn text(satellite: &str, flow: &str) -> String {
        format!(
            "duration = \"60 s\"\n[satellite]\n{satellite}\n[[flows]]\ncontroller = \"tfrc\"\n\
             source = {{ kind = \"constant\", rate = \"256 kbit/s\" }}\n{flow}\n"
        )
    }

    /// What is said to them: `geo.toml:3: ...` and the hint.
    fn refusal(satellite: &str, flow: &str) -> String {
        let text = text(satellite, flow);
        match Scenario::parse(&text, "geo.toml") {
            Ok(s) => panic!("accepted:\n{text}\n{s:?}"),
            Err(e) => format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
        }
    }

    const BETWEEN: &str = "terminals = [1, 2]";

    #[test]
    fn every_refusal_of_a_satellite_names_file_line_field_value_and_remedy() {
        let table = [
            (
                "terminals = 0",
                "geo.toml:3: `satellite.terminals` is `0`, which is out of range\n\
                 hint: write a whole number from 1 to 1000000",
            ),
            (
                "terminals = 1",
                "geo.toml:3: `satellite.terminals` is `1`, which is the only terminal, and a flow goes from one to another\n\
                 hint: at least 2",
            ),
            (
                "granularity = \"7 Mbit/s\"",
                "geo.toml:3: `satellite.granularity` is `7 Mbit/s`, which is above the capacity of `6.336 Mbit/s`\n\
                 hint: at most `capacity`",
            ),
            (
                "granularity = \"0 bit/s\"",
                "geo.toml:3: `satellite.granularity` is `0 bit/s`, which is nothing\n\
                 hint: at least 1 bit/s, as in `44 kbit/s`",
            ),
            (
                "granularity = \"45 kbit/s\"",
                "geo.toml:3: `satellite.granularity` is `45 kbit/s`, which does not divide the capacity of `6.336 \
                 Mbit/s`, which holds 140.80 of it\nhint: such as 44.93617 kbit/s or 45.257143 kbit/s",
            ),
            (
                "terminals = 300\nminimum = 2\ncarriers = 2",
                "geo.toml:4: `satellite.minimum` is `2`, which is more than a carrier has for 150 terminals: 144 units\n\
                 hint: fewer units, fewer terminals, or more carriers",
            ),
            (
                "cra = \"1.3 Mbit/s\"\ncarriers = 1",
                "geo.toml:3: `satellite.cra` is `1.3 Mbit/s`, which is more than the capacity of `6.336 Mbit/s` has for 5 \
                 terminals\nhint: at most 1267.2 kbit/s, fewer terminals, or more carriers",
            ),
            (
                "frame = \"small\"\nallocation_delay = 3",
                "geo.toml:4: `satellite.allocation_delay` is `3`, which is too short: a request takes 2 super-frames to the \
                 NCC, and its answer as many back\nhint: at least 4",
            ),
            (
                "minimum = 0\nrbdc = false",
                "geo.toml:3: `satellite.minimum` is `0`, which is all there is: `cra`, `rbdc`, `vbdc` and `fca` are off, and \
                 nobody would ever get a slot\nhint: at least 1, or switch one of them on",
            ),
            (
                "queue = \"64 kB\"",
                "geo.toml:3: `satellite.queue` is `64 kB`, which is not in packets, which a terminal counts\n\
                 hint: a number of packets, as in `1000 pkt`",
            ),
            (
                "release = { a = 0.5, b = 0.6 }",
                "geo.toml:3: `satellite.release.b` is `0.6`, which is out of range\n\
                 hint: from 0 to `a`: above, a grant would fall below nothing",
            ),
            (
                "capacity = \"0 bit/s\"",
                "geo.toml:3: `satellite.capacity` is `0 bit/s`, which passes nothing\nhint: at least 1 bit/s",
            ),
            (
                "carriers = 6",
                "geo.toml:3: `satellite.carriers` is `6`, which is too many to spread 5 terminals over evenly\nhint: at most 5",
            ),
            (
                "frame = \"medium\"",
                "geo.toml:3: `satellite.frame` is `medium`, which is not a frame\n\
                 hint: write `small`, `large`, or `{ multi_frame = 24, super_frame = 72 }` with their numbers of slots",
            ),
            (
                "frame = { multi_frame = 24, super_frame = 100 }",
                "geo.toml:3: `satellite.frame.super_frame` is `100`, which is not a multiple of the 24 slots of a \
                 multi-frame\nhint: a multiple of `multi_frame`, such as 96 or 120",
            ),
            (
                "frame = { multi_frame = 24 }",
                "geo.toml:3: `satellite.frame.super_frame` is missing\n\
                 hint: a whole number of slots, as in `super_frame = 72`",
            ),
            (
                "frame = { slot = \"0 B\", multi_frame = 24, super_frame = 72 }",
                "geo.toml:3: `satellite.frame.slot` is `0 B`, which is out of range\nhint: from 1 to 1000000 bytes",
            ),
            (
                "propagation = \"11 s\"",
                "geo.toml:3: `satellite.propagation` is `11 s`, which is out of range\nhint: from 0 to 10 s",
            ),
            (
                "vbdc = \"0 s\"",
                "geo.toml:3: `satellite.vbdc` is `0 s`, which is out of range\n\
                 hint: at least 1 ms; leave it out to switch it off",
            ),
            (
                "slots = \"random\"",
                "geo.toml:3: `satellite.slots` is `random`, which is not one of the choices\n\
                 hint: allowed: `contiguous`, `spread`",
            ),
            (
                "quick_start = { agent = \"qs\", hold = \"520 ms\" }",
                "geo.toml:3: `satellite.quick_start.hold` has no effect with agent `qs`\n\
                 hint: write `agent = \"qsd\"`, or leave `hold` out",
            ),
            (
                "quick_start = { threshold = 0.9 }",
                "geo.toml:3: `satellite.quick_start.threshold` has no effect with agent `none`\n\
                 hint: write `agent = \"qs\"`, or leave `threshold` out",
            ),
            (
                "quick_start = { agent = \"qs\", spots = 4 }",
                "geo.toml:3: `satellite.quick_start.spots` has no effect with estimator `broadcast`\n\
                 hint: write `estimator = \"listening\"`, or leave `spots` out",
            ),
            (
                "quick_start = { agent = \"qs\", estimator = \"on-demand\", observations = 4 }",
                "geo.toml:3: `satellite.quick_start.observations` has no effect with estimator `on-demand`\n\
                 hint: write `estimator = \"broadcast\"`, or leave `observations` out",
            ),
            (
                "fca = true\nquick_start = { agent = \"qs\", estimator = \"tbtp-sum\" }",
                "geo.toml:4: `satellite.quick_start.estimator` is `tbtp-sum`, which sums the slots that are nobody's, and \
                 `fca` leaves none\nhint: `broadcast`, `on-demand`, `listening`, or no `fca`",
            ),
            (
                "quick_start = { agent = \"qsd\", hold = \"61 s\" }",
                "geo.toml:3: `satellite.quick_start.hold` is `61 s`, which is out of range\nhint: at most 60 s",
            ),
            (
                "quick_start = { agent = \"qsd\", hold = \"best\" }",
                "geo.toml:3: `satellite.quick_start.hold` is `best`, which is not a duration: it does not begin with a \
                 number\nhint: write a number and ns, us, ms, s, min or h, as in `550 ms`",
            ),
            (
                "quick_start = { agent = \"qs\", threshold = 0 }",
                "geo.toml:3: `satellite.quick_start.threshold` is `0`, which approves nothing\nhint: above 0, at most 1",
            ),
            (
                "quick_start = { agent = \"qs\", state_delay = \"0 s\" }",
                "geo.toml:3: `satellite.quick_start.state_delay` is `0 s`, which is out of range\nhint: at least 1 ms",
            ),
            (
                "quick_start = { agent = \"qs\", estimator = \"listening\", \
                 fade = { clear = \"0 s\", length = \"1 s\", heard = 0.5 } }",
                "geo.toml:3: `satellite.quick_start.fade.clear` is `0 s`, which is out of range\nhint: at least 1 ms",
            ),
            (
                "[path]\nrate = \"1 Mbit/s\"",
                "geo.toml:3: `path` stands beside `satellite`, and both say what the flows cross\nhint: keep one of them",
            ),
        ];
        let wrong = table.into_iter().filter_map(|(satellite, expected)| {
            let found = refusal(satellite, BETWEEN);
            (found != expected).then(|| format!("--- expected\n{expected}\n+++ found\n{found}\n\n"))
        });
        let wrong: String = wrong.collect();
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn every_refusal_of_a_flow_over_it_names_file_line_field_value_and_remedy() {
        let table = [
            (
                "",
                "geo.toml:4: `flows[0].terminals` is missing\n\
                 hint: say where data enters and leaves, as in `terminals = [1, 2]`, or `\"random\"`",
            ),
            (
                "terminals = [1, 5]",
                "geo.toml:7: `flows[0].terminals` is `[1, 5]`, which names a terminal that there is not: there are 5, \
                 numbered from 0\nhint: from 0 to 4",
            ),
            (
                "terminals = [1, 1]",
                "geo.toml:7: `flows[0].terminals` is `[1, 1]`, which is one terminal twice\nhint: two different terminals",
            ),
            (
                "terminals = [1]",
                "geo.toml:7: `flows[0].terminals` is `1 numbers`, which are not two terminals\n\
                 hint: write where data enters and leaves, as in `[1, 2]`, or `random`",
            ),
            (
                "terminals = \"any\"",
                "geo.toml:7: `flows[0].terminals` is `any`, which names no terminals\n\
                 hint: write where data enters and leaves, as in `[1, 2]`, or `random`",
            ),
            (
                "terminals = [1, 2]\nquick_start = \"79 kbit/s\"",
                "geo.toml:8: `flows[0].quick_start` is `79 kbit/s`, which is out of the range of the Quick-Start option\n\
                 hint: from 80 kbit/s to 1,310.72 Mbit/s [RFC 4782 §3.1]",
            ),
            (
                "terminals = [1, 2]\nquick_start = \"1311 Mbit/s\"",
                "geo.toml:8: `flows[0].quick_start` is `1311 Mbit/s`, which is out of the range of the Quick-Start option\n\
                 hint: from 80 kbit/s to 1,310.72 Mbit/s [RFC 4782 §3.1]",
            ),
            (
                "terminals = [1, 2]\nquick_start = \"320 kbit/s\"\n[[flows]]\ncontroller = \"rap\"\nterminals = [1, 2]\n\
                 quick_start = \"320 kbit/s\"",
                "geo.toml:12: `flows[1].quick_start` has no effect on controller `rap`, which does not ask for a rate\n\
                 hint: write `tfrc` or `tfrc-sp`, or leave it out",
            ),
            (
                "terminals = [1, 2]\nsend_buffer = \"0 pkt\"",
                "geo.toml:8: `flows[0].send_buffer` is `0 pkt`, which is not a capacity: it is zero\n\
                 hint: write a whole number of pkt, or of B, kB, MB, KiB or MiB, as in `50 pkt`, or `unlimited`",
            ),
            (
                "terminals = [1, 2]\ntolerable_delay = \"0 s\"",
                "geo.toml:8: `flows[0].tolerable_delay` is `0 s`, which is out of range\nhint: above 0 s, at most 1 h",
            ),
            (
                "terminals = [1, 2]\narrivals = { interval = \"1 s\" }",
                "geo.toml:8: `flows[0].arrivals.length` is missing\n\
                 hint: a mean time, such as `\"60 s\"`; only a kind of stream has its own",
            ),
            (
                "terminals = [1, 2]\narrivals = { interval = \"0 s\", length = \"60 s\" }",
                "geo.toml:8: `flows[0].arrivals.interval` is `0 s`, which is out of range\nhint: at least 1 ms",
            ),
            (
                "terminals = [1, 2]\nstop = \"9 s\"\narrivals = { interval = \"1 s\", length = \"60 s\" }",
                "geo.toml:8: `flows[0].stop` stands beside `arrivals`, which says when flows start and stop\n\
                 hint: keep one of them",
            ),
            (
                "terminals = [1, 2]\narrivals = { interval = \"1 ms\", length = \"200 s\" }",
                "geo.toml:1: `sample` is `500 ms`, which makes 24000000 rows for 200000 flows\n\
                 hint: a longer interval: at most 10000000 rows",
            ),
        ];
        let wrong = table.into_iter().filter_map(|(flow, expected)| {
            let found = refusal("", flow);
            (found != expected).then(|| format!("--- expected\n{expected}\n+++ found\n{found}\n\n"))
        });
        let wrong: String = wrong.collect();
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn more_flows_than_a_run_can_hold_are_refused() {
        let text = text("", "terminals = [1, 2]\narrivals = { interval = \"1 ms\", length = \"1 s\" }");
        let text = text.replace("duration = \"60 s\"", "duration = \"300 s\"");
        let e = Scenario::parse(&text, "geo.toml").unwrap_err();
        assert_eq!(
            format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
            "geo.toml:8: `flows[0].arrivals.interval` is `1 ms`, which makes about 300000 flows in all\n\
             hint: a longer interval: at most 200000 flows"
        );
    }

    #[test]
    fn a_hold_past_the_no_feedback_timer_runs_with_a_warning_that_names_the_consequence() {
        // RTT_m = 777 ms; 777 + 1,273 = 2,050 > 2,000.
        let warnings = |hold: &str, flow: &str| {
            let quick_start = format!("quick_start = {{ agent = \"qsd\", hold = \"{hold}\" }}");
            let s = Scenario::parse(&text(&quick_start, flow), "geo.toml").unwrap_or_else(|e| panic!("{e}"));
            s.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let asks = "terminals = [1, 2]\nquick_start = \"320 kbit/s\"";
        assert_eq!(
            warnings("max", asks),
            [
                "geo.toml:3: `satellite.quick_start.hold` (T_q) is 1273 ms, which makes the first round trip of `tfrc` 2051 ms: \
              its no-feedback timer of 2000 ms expires before the answer is there, and halves its rate; with at most \
              1222 ms it would not, nor with a `first_timer` above 2051 ms"
            ]
        );
        assert_eq!(warnings("opt", asks), [""; 0]);
        assert_eq!(warnings("max", "terminals = [1, 2]"), [""; 0]);
        assert_eq!(warnings("max", &format!("{asks}\nparameters = {{ first_timer = \"3 s\" }}")), [""; 0]);
    }

    #[test]
    fn what_belongs_to_a_satellite_is_refused_without_one() {
        let refusal = |flow: &str| {
            let text = format!("[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"tfrc\"\n{flow}\n");
            let e = Scenario::parse(&text, "geo.toml").unwrap_err();
            format!("{e}\nhint: {}", e.hint().unwrap_or_default())
        };
        assert_eq!(
            refusal("terminals = [1, 2]"),
            "geo.toml:5: `flows[0].terminals` has no effect without a satellite\n\
             hint: write `[satellite]` in place of `[path]`, or leave it out"
        );
        assert_eq!(
            refusal("send_buffer = \"2 pkt\""),
            "geo.toml:5: `flows[0].send_buffer` has no effect on a saturated source, which makes a packet when one may be \
             sent\nhint: give the flow a `source` with a rate, or leave it out"
        );
    }

    #[test]
    fn a_satellite_prints_back_to_itself_with_what_its_kinds_of_stream_imply() {
        let text = "duration = \"60 s\"\n[satellite]\nframe = \"small\"\n\
                    quick_start = { agent = \"qsd\", hold = \"opt\", estimator = \"listening\" }\n\
                    [[flows]]\nname = \"tv\"\ncontroller = \"tfrc\"\nsource = { kind = \"iptv\" }\n\
                    terminals = \"random\"\narrivals = { length = \"10 s\" }\nquick_start = \"320 kbit/s\"\n";
        let printed = Scenario::parse(text, "tv.toml").unwrap_or_else(|e| panic!("{e}")).to_toml();
        for line in [
            "frame = \"small\"",
            "capacity = \"6.336 Mbit/s\"",
            "hold = \"opt\"",
            "kind = \"iptv\"",
            "packet_size = \"1316 B\"",
            "send_buffer = \"128 pkt\"",
            "tolerable_delay = \"5 s\"",
            "interval = \"120 s\"",
            "length = \"10 s\"",
            "quick_start = \"320 kbit/s\"",
        ] {
            assert!(printed.contains(line), "{line} is not in\n{printed}");
        }
        assert!(!printed.contains("[path]"), "{printed}");
        let again = Scenario::parse(&printed, "tv.toml").unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(again.to_toml(), printed);
    }
}
