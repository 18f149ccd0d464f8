//! A satellite network as a scenario writes it, in place of `[path]`: the frame, the terminals, how capacity is
//! asked for and given, and the terminals' Quick-Start agents. Symbols and defaults are those of [qsd Table I].
//!
//! [`DamaSpec::validate`] decides what can be scheduled; [`SatelliteSpec::blame`] puts its refusals into a scenario's
//! words.

mod agents;
mod blame;

pub use agents::{AGENTS, AgentKind, EstimatorKind, FADE, FadeSpec, Hold, SatelliteQuickStart};

use super::param::{CHANCE, Form, Row};
use super::part::PartProblem;
use super::quantity::{self, refuse};
use super::{Chance, Count, Room, Size, Speed, Table, Time};
use fairpace_path::{Capacity, DamaSpec, ReleaseOf, SlotLayout};
use fairpace_units::{Bounds, Bytes, Packets};
use serde::{Deserialize, Serialize};

/// A satellite with demand-assigned capacity (DAMA): terminals that share the slots of a frame. In place of `path`.
///
/// The rows of [`SATELLITE`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct SatelliteSpec {
    pub frame: FrameSpec,
    pub capacity: Speed,
    pub terminals: Count,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carriers: Option<Count>,
    pub propagation: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_delay: Option<Count>,
    pub granularity: Speed,
    pub minimum: Count,
    pub cra: Speed,
    pub rbdc: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vbdc: Option<Time>,
    pub fca: bool,
    pub release: ReleaseSpec,
    pub queue: Room,
    #[serde(deserialize_with = "quantity::choice")]
    pub slots: SlotPlacement,
    pub quick_start: SatelliteQuickStart,
}

/// `[satellite]`.
pub const SATELLITE: Table = Table::of::<SatelliteSpec>(
    "SatelliteSpec",
    "a satellite with demand-assigned capacity (DAMA): terminals that share the slots of a frame; in place of `path`",
    &[
        Row::new(
            "frame",
            "",
            Form::Either(&[Form::Word(&["small", "large"]), Form::Table(&OWN_FRAME)]),
            "`small`: multi-frames of 24 slots, T_f = 45.6 ms; `large`: 144 slots, 273 ms; super-frames are three of them \
             (T_b = T_r); or numbers of slots",
        ),
        Row::new("capacity", "", Form::Rate(DamaSpec::CAPACITY), "the rate of a carrier, shared by its terminals")
            .wrong("passes nothing"),
        Row::new("terminals", "", COUNT, "how many terminals; numbered from 0"),
        Row::new("carriers", "", COUNT, "how many carriers the terminals are spread over, evenly and in order")
            .usually("as many as `minimum` and `cra` need"),
        Row::new(
            "propagation",
            "T_p",
            Form::Time(DamaSpec::PROPAGATION),
            "from a terminal over the satellite to a terminal, or to the NCC",
        ),
        Row::new(
            "allocation_delay",
            "T_a",
            Form::Whole(1, DamaSpec::LONGEST_DELAY as u64),
            "super-frames from the boundary at which a request is made to that from which its answer holds",
        )
        .usually("2 (large), 6 (small); of a frame of its own as few as T_p lets"),
        Row::new(
            "granularity",
            "",
            Form::Rate(DamaSpec::GRANULARITY),
            "the unit in which capacity is given; divides the capacity",
        )
        .wrong("is nothing"),
        Row::new(
            "minimum",
            "",
            Form::Whole(0, 10_000_000),
            "the capacity that every terminal always has, in units of `granularity`",
        ),
        Row::new(
            "cra",
            "C",
            Form::Rate(Bounds::ANY),
            "constant rate assignment [qsd eq. (1)]: at least this is given to each terminal, whatever it asks",
        ),
        Row::new(
            "rbdc",
            "",
            Form::Flag,
            "rate-based capacity: a terminal asks for the rate at which packets came in the super-frame before",
        ),
        Row::new(
            "vbdc",
            "T_s",
            Form::Time(DamaSpec::VBDC),
            "volume-based capacity: a terminal also asks for what empties its queue in this time",
        )
        .note("or left out")
        .usually("off"),
        Row::new("fca", "", Form::Flag, "free capacity assignment: the rest is given away in equal shares"),
        Row::new(
            "release",
            "",
            Form::Table(&RELEASE),
            "how capacity is taken back from a terminal that asks for less [qsd eq. (2)]",
        )
        .usually("as below"),
        Row::new("queue", "", Form::Room, "the room of a terminal's uplink queue").note("here in packets only"),
        Row::new(
            "slots",
            "",
            Form::Word(&["contiguous", "spread"]),
            "where a terminal's slots lie in the multi-frame: one after the other, or spread evenly",
        ),
        Row::new(
            "quick_start",
            "",
            Form::Table(&AGENTS),
            "how the terminals answer Quick-Start requests of flows, and whether capacity is asked for with them",
        )
        .usually("no agents"),
    ],
);

/// A number of terminals, carriers or slots.
const COUNT: Form = Form::Whole(1, DamaSpec::LARGEST as u64);

/// A `frame` of its own.
pub const OWN_FRAME: Table = Table::of::<OwnFrame>(
    "OwnFrame",
    "a frame in numbers",
    &[
        Row::new("slot", "", Form::Size(DamaSpec::SLOT_SIZE), "the size of a slot; the default is eight MPEG packets"),
        Row::new("multi_frame", "T_f", COUNT, "slots of a multi-frame, in which every terminal has its turn").needed(),
        Row::new(
            "super_frame",
            "T_b, T_r",
            COUNT,
            "slots of a super-frame, for which they are given out: a multiple of `multi_frame`",
        )
        .needed(),
    ],
);

/// `release`.
pub const RELEASE: Table = Table::of::<ReleaseSpec>(
    "ReleaseSpec",
    "N(t+1) = a N(t) + b (N_L(t) - N(t)): the next plan's grant to a terminal that asks for less, from the \
     terminal's present one and from its traffic, N_L [qsd eq. (2)]",
    &[
        Row::new("a", "a", CHANCE, "weight of the present grant"),
        Row::new("b", "b", CHANCE, "weight of the difference between the traffic and that grant, at most `a`"),
        Row::new(
            "of",
            "",
            Form::Word(&["decided", "in-force"]),
            "`decided`: the NCC's last decision falls, by the traffic that the request tells of; `in-force`: the \
             terminal's present capacity falls, by its traffic until now, which no real NCC hears of in time",
        ),
    ],
);

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
///
/// The rows of [`OWN_FRAME`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct OwnFrame {
    #[serde(default = "eight_mpeg_packets")]
    pub slot: Size,
    pub multi_frame: Count,
    pub super_frame: Count,
}

/// Where a terminal's slots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
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
///
/// The rows of [`RELEASE`] say what its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct ReleaseSpec {
    pub a: Chance,
    pub b: Chance,
    #[serde(deserialize_with = "quantity::choice")]
    pub of: ReleaseKind,
}

/// The capacity that eq. (2) takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
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

impl Default for OwnFrame {
    fn default() -> Self {
        OwnFrame { slot: eight_mpeg_packets(), multi_frame: Count::new(1), super_frame: Count::new(1) }
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
        if !matches!(self.queue.get(), Capacity::Packets(_)) {
            let allowed = "a number of packets, as in `1000 pkt`";
            return bad("queue", self.queue.text(), "is not in packets, which a terminal counts", allowed);
        }
        if let Some(problem) = self.quick_start.problem(self.fca) {
            return Some(problem);
        }
        self.dama(size).validate().err().map(|error| self.blame(&error))
    }
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

#[cfg(test)]
mod tests;
