//! The wireless last hop as a scenario writes it, beside `[path]`, the backbone: slots, channel, what is done about
//! failures, users, their uplinks, and the base station's plan. Symbols and defaults are those of [aimd §IV].
//!
//! [`ArqSpec::validate`] and the channel decide what can be sent over; [`WirelessSpec::problem`] puts their refusals
//! into a scenario's words.

use crate::channel::Slot;
use crate::forms::{SOME_RATE, SOME_TIME};
use crate::param::{Form, Row};
use crate::part::PartProblem;
use crate::path::{LOSS, QUEUE, capacity};
use crate::quantity;
use crate::{Capacity, Chance, ChannelSpec, Count, LossSpec, QueueSpec, Room, Size, Speed, Table, Time, WindowPlanner};
use fairpace_analysis::qos::QosError;
use fairpace_path::{ArqError, ArqScheme, ArqSpec, ArqUser, ChannelError};
use fairpace_units::{Bounds, Bytes, Duration};
use serde::{Deserialize, Serialize};

/// A wireless link behind the backbone, in slots: one packet or piece of one in each, which fails or not.
///
/// The rows of [`WIRELESS`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct WirelessSpec {
    pub rate: Speed,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot_size: Option<Size>,
    #[serde(deserialize_with = "quantity::choice")]
    pub scheme: ArqKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Count>,
    pub retry_delay: Count,
    pub delay: Time,
    pub work_conserving: bool,
    pub channel: ChannelSpec,
    pub buffer: Room,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<WirelessUser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<UplinkSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSpec>,
}

/// `[wireless]`.
pub const WIRELESS: Table = Table::of::<WirelessSpec>(
    "WirelessSpec",
    "a wireless link behind the backbone, in slots: one packet or piece of one in each, which fails or not",
    &[
        Row::new("rate", "", SOME_RATE, "the downlink's rate if every slot succeeds").wrong("passes nothing"),
        Row::new(
            "slot",
            "τ",
            Form::Time(ArqSpec::SLOT),
            "how long a slot lasts; this or `slot_size`, the other follows from `rate`",
        )
        .usually("as long as `slot_size` takes at `rate`"),
        Row::new(
            "slot_size",
            "",
            Form::Size(ArqSpec::SLOT_SIZE),
            "the size of a slot; larger packets are cut, and each piece needs a slot",
        )
        .usually("`packet_size`"),
        Row::new(
            "scheme",
            "",
            Form::Word(&["none", "persistent", "limited", "optimal"]),
            "after a failure: `none`, the packet is lost; `persistent`, again in the next slot; `limited`, so too, at most \
             `retries` times; `optimal`, again after a slot of silence",
        ),
        Row::new(
            "retries",
            "",
            Form::Whole(0, 1_000_000),
            "`limited`: how often a piece is sent again before its packet is given up",
        )
        .optional(),
        Row::new(
            "retry_delay",
            "",
            Form::Whole(0, ArqSpec::LONGEST_RETRY_DELAY as u64),
            "slots between a failure and the next try, beside the silence of `optimal`",
        ),
        Row::new("delay", "", Form::Time(ArqSpec::DELAY), "from the end of a packet's last slot to its arrival"),
        Row::new(
            "work_conserving",
            "",
            Form::Flag,
            "whether the slots of users who have nothing to send go to others; if not, they are dedicated, and lost",
        ),
        Row::new("channel", "", CHANNEL, "how slots fail"),
        Row::new(
            "buffer",
            "",
            Form::Room,
            "the room of a user's queue at the base station, the packet under way included; with `plan` the base station \
             sets that of users whose flows it tells their windows",
        ),
        Row::new(
            "users",
            "",
            Form::Tables(&USER),
            "the users, numbered from 0 in this order; at most 1,000, and slots go by weight",
        )
        .usually("one"),
        Row::new(
            "uplink",
            "",
            Form::Table(&UPLINK),
            "the way of each user's feedback to the backbone, which all of its flows share",
        )
        .usually("a wire"),
        Row::new(
            "plan",
            "",
            Form::Table(&PLAN),
            "the base station tells each `aimd` flow the largest window (`rwnd`) that keeps a promise on delay jitter, anew \
             when flows join or leave, and sets the buffer to their sum",
        )
        .usually("none"),
    ],
);

const CHANNEL: Form =
    Form::Other("a channel, as in `{ kind, … }`", |generator| generator.subschema_for::<ChannelSpec>());

/// The link layer's answer to a failed slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArqKind {
    /// Nothing: the packet is lost.
    None,
    /// The packet is sent again in the next slot, until it succeeds.
    #[default]
    Persistent,
    /// The same, at most `retries` times.
    Limited,
    /// The packet is sent again after a slot of silence, until it succeeds.
    Optimal,
}

impl ArqKind {
    /// As a scenario writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ArqKind::None => "none",
            ArqKind::Persistent => "persistent",
            ArqKind::Limited => "limited",
            ArqKind::Optimal => "optimal",
        }
    }
}

/// A user of the downlink, or several alike.
///
/// The rows of [`USER`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct WirelessUser {
    pub count: Count,
    pub weight: Count,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Room>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelSpec>,
}

/// One of `users`.
pub const USER: Table = Table::of::<WirelessUser>(
    "WirelessUser",
    "a user of the downlink, or several alike",
    &[
        Row::new("count", "", Form::Whole(1, 1_000), "how many alike"),
        Row::new("weight", "", Form::Whole(1, 10_000), "a user's part of the slots, against the weights of the others"),
        Row::new("buffer", "", Form::Room, "the room of a user's queue").usually("`wireless.buffer`"),
        Row::new("channel", "", CHANNEL, "how the slots of a user fail").usually("`wireless.channel`"),
    ],
);

/// A user's way back to the backbone.
///
/// The rows of [`UPLINK`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct UplinkSpec {
    pub rate: Capacity,
    pub delay: Time,
    pub queue: QueueSpec,
    pub loss: LossSpec,
}

/// `uplink`.
pub const UPLINK: Table = Table::of::<UplinkSpec>(
    "UplinkSpec",
    "a user's way back to the backbone",
    &[
        capacity("capacity"),
        Row::new("delay", "", SOME_TIME, "propagation"),
        Row::new("queue", "", QUEUE, "the queue before it"),
        Row::new("loss", "", LOSS, "loss of feedback"),
    ],
);

/// The aim of the base station's windows: the delay jitter of at most so many packets is longer than so much.
///
/// The rows of [`PLAN`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct PlanSpec {
    pub max_jitter: Time,
    #[serde(default = "one_percent")]
    pub outage: Chance,
}

/// `plan`.
pub const PLAN: Table = Table::of::<PlanSpec>(
    "PlanSpec",
    "the promise for which the base station plans windows",
    &[
        Row::new("max_jitter", "D", SOME_TIME, "the tolerable delay jitter").note("at least one slot").needed(),
        Row::new(
            "outage",
            "",
            Form::Chance(Bounds::above(0.0).below(1.0)),
            "which part of the packets may have more, at most",
        ),
    ],
);

impl PlanSpec {
    /// The base station that plans for that downlink.
    ///
    /// # Errors
    /// A link that cannot be analysed.
    pub fn planner(&self, downlink: &ArqSpec) -> Result<WindowPlanner, QosError> {
        WindowPlanner::new(downlink, self.max_jitter.get(), self.outage.get().get())
    }
}

fn one_percent() -> Chance {
    Chance::new(0.01).unwrap_or(Chance::ZERO)
}

impl Default for WirelessSpec {
    fn default() -> Self {
        WirelessSpec {
            rate: Speed::kbps(200.0),
            slot: None,
            slot_size: None,
            scheme: ArqKind::Persistent,
            retries: None,
            retry_delay: Count::new(0),
            delay: Duration::ZERO.into(),
            work_conserving: true,
            channel: ChannelSpec::default(),
            buffer: Room::unlimited(),
            users: Vec::new(),
            uplink: None,
            plan: None,
        }
    }
}

impl Default for WirelessUser {
    fn default() -> Self {
        WirelessUser { count: Count::new(1), weight: Count::new(1), buffer: None, channel: None }
    }
}

impl Default for PlanSpec {
    fn default() -> Self {
        PlanSpec { max_jitter: Time::default(), outage: one_percent() }
    }
}

impl Default for UplinkSpec {
    fn default() -> Self {
        UplinkSpec {
            rate: Capacity::Unlimited,
            delay: Duration::ZERO.into(),
            queue: QueueSpec::default(),
            loss: LossSpec::default(),
        }
    }
}

impl WirelessSpec {
    /// Its users, counted out: weight, buffer, channel.
    fn each_user(&self) -> Vec<(usize, WirelessUser)> {
        if self.users.is_empty() {
            return vec![(0, WirelessUser::default())];
        }
        let each = self.users.iter().enumerate();
        each.flat_map(|(i, user)| (0..user.count.get()).map(move |_| (i, user.clone()))).collect()
    }

    /// How many users there are.
    pub fn user_count(&self) -> u64 {
        if self.users.is_empty() { 1 } else { self.users.iter().map(|u| u.count.get()).sum() }
    }

    /// The size of a slot, with rates in packets of `size`.
    pub fn slot_size(&self, size: Bytes) -> Bytes {
        match (&self.slot_size, &self.slot) {
            (Some(slot_size), _) => slot_size.get(),
            (None, Some(slot)) => self.rate.get().with_packets_of(size) * slot.get(),
            (None, None) => size,
        }
    }

    /// How long a slot lasts (τ), with rates in packets of `size`.
    pub fn slot(&self, size: Bytes) -> Duration {
        match &self.slot {
            Some(slot) => slot.get(),
            None => self.slot_size(size) / self.rate.get().with_packets_of(size),
        }
    }

    /// The answer to failures.
    pub fn arq_scheme(&self) -> ArqScheme {
        match self.scheme {
            ArqKind::None => ArqScheme::None,
            ArqKind::Persistent => ArqScheme::Persistent,
            ArqKind::Limited => ArqScheme::Limited { retries: self.retries.map_or(0, |n| n.get() as u32) },
            ArqKind::Optimal => ArqScheme::Optimal,
        }
    }

    /// The simulator's downlink, with rates in packets of `size`.
    ///
    /// # Errors
    /// If the channel of one of the users cannot be; a scenario that was read has none.
    pub fn downlink(&self, size: Bytes) -> Result<ArqSpec, ChannelError> {
        let (slot, slot_size) = (self.slot(size), self.slot_size(size));
        let user = |(_, user): &(usize, WirelessUser)| {
            Ok(ArqUser {
                weight: user.weight.get() as u32,
                buffer: user.buffer.as_ref().unwrap_or(&self.buffer).get(),
                channel: user
                    .channel
                    .as_ref()
                    .unwrap_or(&self.channel)
                    .model(&Slot { length: slot, size: slot_size })?,
            })
        };
        Ok(ArqSpec {
            slot,
            slot_size,
            scheme: self.arq_scheme(),
            retry_delay: self.retry_delay.get() as u32,
            delay: self.delay.get(),
            work_conserving: self.work_conserving,
            users: self.each_user().iter().map(user).collect::<Result<_, _>>()?,
        })
    }

    /// The first thing that is wrong, with rates in packets of `size`; `uplink` apart.
    pub(super) fn problem(&self, size: Bytes) -> Option<PartProblem> {
        let bad = |key: &str, found: &str, wrong: &str, allowed: &str| {
            Some(PartProblem::Bad(key.to_owned(), found.to_owned(), wrong.to_owned(), allowed.to_owned()))
        };
        if let (Some(slot), Some(slot_size)) = (&self.slot, &self.slot_size) {
            let wrong = format!("stands beside `slot_size` of `{slot_size}`, and `rate` makes one from the other");
            return bad("slot", slot.text(), &wrong, "keep one of them");
        }
        if self.slot.is_some() && self.slot_size(size) == Bytes::ZERO {
            let wrong = format!("carries less than a byte at `{}`", self.rate);
            return bad("slot", self.slot.as_ref().map_or("", Time::text), &wrong, "a longer slot");
        }
        match (self.scheme, &self.retries) {
            (ArqKind::Limited, None) => {
                let allowed = "scheme `limited` needs it: how often a piece is sent again, as in `retries = 3`";
                return Some(PartProblem::Missing("retries".to_owned(), allowed.to_owned()));
            }
            (kind, Some(_)) if kind != ArqKind::Limited => {
                let (key, with) = ("retries".to_owned(), format!("scheme `{}`", kind.as_str()));
                let remedy = "write `scheme = \"limited\"`, or leave `retries` out".to_owned();
                return Some(PartProblem::NoEffect(key, with, remedy));
            }
            _ => {}
        }
        if self.scheme == ArqKind::None && self.retry_delay.get() > 0 {
            let remedy = "write another `scheme`, or leave `retry_delay` out".to_owned();
            return Some(PartProblem::NoEffect("retry_delay".to_owned(), "scheme `none`".to_owned(), remedy));
        }
        let (slot, slot_size) = (self.slot(size), self.slot_size(size));
        let in_users = self
            .users
            .iter()
            .enumerate()
            .filter_map(|(i, u)| Some((format!("users[{i}].channel"), u.channel.as_ref()?)));
        for (key, channel) in [("channel".to_owned(), &self.channel)].into_iter().chain(in_users) {
            if let Some(problem) = channel.refusal(Slot { length: slot, size: slot_size }) {
                return Some(problem.below(&key));
            }
        }
        // Every channel has passed.
        if let Some(error) = self.downlink(size).ok()?.validate().err() {
            return Some(self.blame(&error, size));
        }
        self.plan_problem(slot, &self.downlink(size).ok()?)
    }

    fn plan_problem(&self, slot: Duration, downlink: &ArqSpec) -> Option<PartProblem> {
        let plan = self.plan.as_ref()?;
        let bad = |key: &str, found: String, wrong: &str, allowed: String| {
            Some(PartProblem::Bad(key.to_owned(), found, wrong.to_owned(), allowed))
        };
        if plan.max_jitter.get() < slot || plan.max_jitter.get() > Duration::from_secs(3_600) {
            let allowed = format!("from one slot of {} to 1 h", fairpace_units::format_duration(slot));
            return bad("plan.max_jitter", plan.max_jitter.text().to_owned(), "is out of range", allowed);
        }
        if matches!(self.scheme, ArqKind::None | ArqKind::Limited) {
            let with = format!("scheme `{}`, where packets are lost instead of waiting", self.scheme.as_str());
            let remedy = "write `scheme = \"persistent\"` or `\"optimal\"`, or leave `plan` out".to_owned();
            return Some(PartProblem::NoEffect("plan".to_owned(), with, remedy));
        }
        let error = plan.planner(downlink).err()?;
        let wrong = format!("cannot be kept: {error}");
        bad("plan.max_jitter", plan.max_jitter.text().to_owned(), &wrong, "another channel or `retry_delay`".to_owned())
    }

    /// The ARQ link's refusal, in the scenario's words.
    fn blame(&self, error: &ArqError, size: Bytes) -> PartProblem {
        let bad = |key: String, found: String, wrong: &str, allowed: &str| {
            PartProblem::Bad(key, found, wrong.to_owned(), allowed.to_owned())
        };
        match error {
            ArqError::OutOfRange { field: "slot", .. } => {
                let found = fairpace_units::format_duration(self.slot(size));
                let key = if self.slot.is_some() { "slot" } else { "rate" };
                let (found, wrong) = match &self.slot {
                    Some(slot) => (slot.text().to_owned(), "is out of range".to_owned()),
                    None => (self.rate.text().to_owned(), format!("makes a slot of {found}")),
                };
                bad(key.to_owned(), found, &wrong, "what makes a slot of 1 us to 60 s")
            }
            ArqError::OutOfRange { field: "slot_size", .. } => {
                let found = format!("{} B", self.slot_size(size).get());
                let key = if self.slot.is_some() { "slot" } else { "slot_size" };
                bad(key.to_owned(), found, "is out of range", "from 1 to 1000000 bytes in a slot")
            }
            ArqError::OutOfRange { field, found, allowed } => {
                bad((*field).to_owned(), found.to_string(), "is out of range", allowed)
            }
            ArqError::WeightSum { found } => bad(
                "users".to_owned(),
                found.to_string(),
                "is the sum of their weights",
                "at most 10000: divide them by a common factor",
            ),
            // A weight is at least 1, a capacity above zero, and channels have passed before.
            ArqError::NoWeight { user } | ArqError::NoBuffer { user } | ArqError::Channel { user, .. } => {
                bad(format!("users[{user}]"), String::new(), "cannot be", "")
            }
        }
    }
}

#[cfg(test)]
mod tests;
