//! A satellite network as a scenario writes it, in place of `[path]`: the frame, the terminals, how capacity is
//! asked for and given, and the terminals' Quick-Start agents. Symbols and defaults are those of [qsd Table I].
//!
//! [`DamaSpec::validate`] decides what can be scheduled; [`SatelliteSpec::blame`] puts its refusals into a scenario's
//! words.

mod agents;

pub use agents::{AgentKind, EstimatorKind, FadeSpec, Hold, SatelliteQuickStart};

use super::part::PartProblem;
use super::quantity::{self, refuse};
use super::{Chance, Count, Room, Size, Speed, Time};
use fairpace_path::quick_start::QsError;
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
    /// Capacity of one carrier, shared by its terminals.
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
    /// Capacity that every terminal always has, in units of `granularity`.
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
    /// Size of a terminal's uplink queue.
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
    /// Size of a slot; 1,504 B (eight MPEG packets) if absent.
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
    /// The capacity that falls: `decided`, the NCC's last decision, by the traffic that the request tells of; or
    /// `in-force`, the terminal's present capacity, by its traffic until now, which no real NCC hears of in time.
    #[serde(deserialize_with = "quantity::choice")]
    pub of: ReleaseKind,
}

/// The capacity that eq. (2) takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseKind {
    /// The NCC's last decision.
    #[default]
    Decided,
    /// The terminal's present capacity.
    InForce,
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
        // The DAMA link would refuse this too, but cannot name the field as the scenario writes it.
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

    /// The DAMA link's refusal, in the scenario's words.
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

#[cfg(test)]
mod tests;
