//! The wireless last hop as a scenario writes it, beside `[path]`, the backbone: slots, channel, what is done about
//! failures, users, their uplinks, and the base station's plan. Symbols and defaults are those of [aimd §IV].
//!
//! What can be sent over is [`ArqSpec::validate`]'s and the channel's to say; [`WirelessSpec::problem`] says
//! it in a scenario's words.

use crate::channel::Slot;
use crate::part::PartProblem;
use crate::quantity;
use crate::{Capacity, Chance, ChannelSpec, Count, LossSpec, QueueSpec, Room, Size, Speed, Time, WindowPlanner};
use fairpace_analysis::qos::QosError;
use fairpace_path::{ArqError, ArqScheme, ArqSpec, ArqUser, ChannelError};
use fairpace_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wireless link behind the backbone, in slots: one packet or piece of one in each, which fails or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WirelessSpec {
    /// What the downlink carries if every slot succeeds.
    pub rate: Speed,
    /// How long a slot lasts (τ); as long as `slot_size` takes at `rate` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Time>,
    /// What a slot carries; `packet_size`, or with `slot` what fits into it at `rate`, if absent. Larger packets are cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot_size: Option<Size>,
    /// What is done about a failure: `none` (the packet is lost), `persistent` (again in the next slot), `limited` (so
    /// too, with `retries`), or `optimal` (a slot of silence, then again).
    #[serde(deserialize_with = "quantity::choice")]
    pub scheme: ArqKind,
    /// `limited`: how often a piece is sent again before its packet is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Count<0, 1_000_000>>,
    /// Slots between a failure and the next try, beside the silence of `optimal`.
    pub retry_delay: Count<0, 10_000>,
    /// From the end of a packet's last slot to its arrival.
    pub delay: Time,
    /// Whether the slots of users who have nothing to send go to others; if not, they are lost.
    pub work_conserving: bool,
    /// How slots fail.
    pub channel: ChannelSpec,
    /// What a user's queue at the base station holds, the packet under way included. With `plan` the base station sets
    /// that of users whose flows it tells their windows.
    pub buffer: Room,
    /// The users, numbered from 0 in this order; one if absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<WirelessUser>,
    /// The way of each user's feedback to the backbone, which all of its flows share; a wire if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<UplinkSpec>,
    /// The base station tells each flow its window (`rwnd`), anew when flows join or leave; it does not if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSpec>,
}

/// What the link layer does about a failed slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArqKind {
    /// Nothing: the packet is lost.
    None,
    /// It is sent again in the next slot, until it succeeds.
    #[default]
    Persistent,
    /// The same, at most `retries` times.
    Limited,
    /// It is sent again after a slot of silence, until it succeeds.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WirelessUser {
    /// How many alike.
    pub count: Count<1, 1_000>,
    /// Its part of the slots, against the weights of the others.
    pub weight: Count<1, 10_000>,
    /// What its queue holds, instead of `wireless.buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Room>,
    /// How its slots fail, instead of `wireless.channel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelSpec>,
}

/// A user's way back to the backbone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UplinkSpec {
    /// Capacity, as in the path's `rate`.
    pub rate: Capacity,
    /// Propagation.
    pub delay: Time,
    /// The queue before it.
    pub queue: QueueSpec,
    /// Loss of feedback.
    pub loss: LossSpec,
}

/// What the base station plans windows for: the delay jitter of at most so many packets is longer than so much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanSpec {
    /// D: the tolerable delay jitter.
    pub max_jitter: Time,
    /// How many packets may have more, at most; 0.01 if absent.
    #[serde(default = "one_percent")]
    pub outage: Chance,
}

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
            delay: super::none(),
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

impl Default for UplinkSpec {
    fn default() -> Self {
        UplinkSpec {
            rate: Capacity::Unlimited,
            delay: super::none(),
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

    /// What a slot carries, with rates in packets of `size`.
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

    /// What is done about failures.
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
        if self.rate.get().with_packets_of(size) < Rate::bps(1.0) {
            return bad("rate", self.rate.text(), "passes nothing", "at least 1 bit/s");
        }
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
        let outage = plan.outage.get().get();
        if outage <= 0.0 || outage >= 1.0 {
            let allowed = "above 0, below 1, as in `outage = 0.01`".to_owned();
            return bad("plan.outage", outage.to_string(), "is out of range", allowed);
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

    /// What the ARQ link refuses, in the scenario's words.
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
            ArqError::OutOfRange { field: "delay", .. } => {
                bad("delay".to_owned(), self.delay.text().to_owned(), "is out of range", "at most 31 years")
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
mod tests {
    use super::super::Scenario;
    use crate::{Record, sim_config};
    use fairpace_path::{ArqScheme, Capacity, Channel};
    use fairpace_units::{Bytes, Duration, Packets};

    fn text(wireless: &str, flow: &str) -> String {
        format!(
            "duration = \"60 s\"\npacket_size = \"125 B\"\n[wireless]\n{wireless}\n[path]\nrate = \"10 Mbit/s\"\n\
             [[flows]]\ncontroller = \"aimd\"\n{flow}\n"
        )
    }

    fn read(wireless: &str, flow: &str) -> Scenario {
        Scenario::parse(&text(wireless, flow), "wlan.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    fn refusal(wireless: &str, flow: &str) -> String {
        let Err(e) = Scenario::parse(&text(wireless, flow), "wlan.toml") else {
            panic!("accepted:\n{}", text(wireless, flow))
        };
        format!("{e}\nhint: {}", e.hint().unwrap_or_default())
    }

    fn compare(table: &[(&str, &str, &str)]) {
        let wrong = table.iter().filter_map(|(wireless, flow, expected)| {
            let found = refusal(wireless, flow);
            (found != *expected).then(|| format!("--- expected\n{expected}\n+++ found\n{found}\n\n"))
        });
        let wrong: String = wrong.collect();
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn the_defaults_are_the_papers_slot_and_a_slot_is_made_of_its_length_or_its_size() {
        let spec = |wireless: &str| read(wireless, "").wireless.as_ref().unwrap().downlink(Bytes::new(125)).unwrap();
        let paper = spec("");
        assert_eq!((paper.slot, paper.slot_size), (Duration::from_millis(5), Bytes::new(125)));
        assert_eq!((paper.scheme, paper.retry_delay, paper.users.len()), (ArqScheme::Persistent, 0, 1));
        assert_eq!(paper.users[0].channel, Channel::memoryless(0.0).unwrap());
        let longer = spec("slot = \"8 ms\"");
        assert_eq!((longer.slot, longer.slot_size), (Duration::from_millis(8), Bytes::new(200)));
        let larger = spec("slot_size = \"250 B\"\nscheme = \"limited\"\nretries = 2");
        assert_eq!((larger.slot, larger.slot_size), (Duration::from_millis(10), Bytes::new(250)));
        assert_eq!(larger.scheme, ArqScheme::Limited { retries: 2 });
    }

    #[test]
    fn users_are_counted_out_with_weights_buffers_and_channels_of_their_own() {
        let wireless = "buffer = \"10 pkt\"\nchannel = { kind = \"two-state\", error_probability = 0.1 }\n\
                        users = [{ count = 2 }, { weight = 3, buffer = \"4 pkt\", \
                        channel = { kind = \"two-state\", error_probability = 0.1, memory = 0.35 } }]";
        let config = sim_config(&read(wireless, "user = 2"), 1, Record::default()).unwrap();
        let users = config.radio.unwrap().downlink.users;
        let weights: Vec<u32> = users.iter().map(|u| u.weight).collect();
        assert_eq!(weights, [1, 1, 3]);
        let room = |n| Capacity::Packets(Packets::new(n));
        assert_eq!((users[1].buffer, users[2].buffer), (room(10), room(4)));
        assert_eq!(users[0].channel, Channel::memoryless(0.1).unwrap());
        assert_eq!(users[2].channel, Channel::two_state(0.1, 0.35).unwrap());
        assert_eq!(config.flows[0].user, Some(2));
    }

    #[test]
    fn fading_counts_its_doppler_frequency_over_a_slot_and_its_bits_in_a_slot() {
        let wireless = "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 9.2, threshold_db = 10 }";
        let channel =
            &read(wireless, "").wireless.as_ref().unwrap().downlink(Bytes::new(125)).unwrap().users[0].channel;
        // 1 - e^(10 dB - 20 dB): what is below the threshold.
        assert_eq!(channel.states(), 8);
        assert!((channel.error_probability() - 0.095_162_58).abs() < 1e-6, "{}", channel.error_probability());
        let worse = wireless.replace("threshold_db = 10", "modulation = \"dbpsk\", states = 4");
        let worse = &read(&worse, "").wireless.as_ref().unwrap().downlink(Bytes::new(125)).unwrap().users[0].channel;
        assert_eq!(worse.states(), 4);
        assert!(worse.error.windows(2).all(|e| e[0] > e[1]), "{:?}", worse.error);
    }

    #[test]
    fn a_tolerable_jitter_is_counted_from_the_least_delay() {
        let flow = "user = 0\ntolerable_jitter = \"50 ms\"\naccess = { rtt = \"30 ms\" }";
        let config =
            sim_config(&read("uplink = { rate = \"100 kbit/s\" }\ndelay = \"1 ms\"", flow), 1, Record::default())
                .unwrap();
        // 15 ms of propagation, 125 B at 10 Mbit/s, a slot of 5 ms, 1 ms behind it, and the jitter.
        let least = Duration::from_micros(15_000 + 100 + 5_000 + 1_000);
        assert_eq!(config.flows[0].delay_bound, Some(least + Duration::from_millis(50)));
        assert!(config.radio.unwrap().uplink.is_some());
    }

    #[test]
    fn every_refusal_of_a_wireless_link_names_file_line_field_value_and_remedy() {
        compare(&[
            (
                "rate = \"0 bit/s\"",
                "",
                "wlan.toml:4: `wireless.rate` is `0 bit/s`, which passes nothing\nhint: at least 1 bit/s",
            ),
            (
                "slot = \"5 ms\"\nslot_size = \"125 B\"",
                "",
                "wlan.toml:4: `wireless.slot` is `5 ms`, which stands beside `slot_size` of `125 B`, and `rate` makes one \
                 from the other\nhint: keep one of them",
            ),
            (
                "slot = \"1 us\"",
                "",
                "wlan.toml:4: `wireless.slot` is `1 us`, which carries less than a byte at `200 kbit/s`\n\
                 hint: a longer slot",
            ),
            (
                "slot = \"61 s\"",
                "",
                "wlan.toml:4: `wireless.slot` is `61 s`, which is out of range\n\
                 hint: what makes a slot of 1 us to 60 s",
            ),
            (
                "rate = \"1 bit/s\"",
                "",
                "wlan.toml:4: `wireless.rate` is `1 bit/s`, which makes a slot of 1000 s\n\
                 hint: what makes a slot of 1 us to 60 s",
            ),
            (
                "scheme = \"limited\"",
                "",
                "wlan.toml:3: `wireless.retries` is missing\n\
                 hint: scheme `limited` needs it: how often a piece is sent again, as in `retries = 3`",
            ),
            (
                "retries = 3",
                "",
                "wlan.toml:4: `wireless.retries` has no effect with scheme `persistent`\n\
                 hint: write `scheme = \"limited\"`, or leave `retries` out",
            ),
            (
                "scheme = \"none\"\nretry_delay = 1",
                "",
                "wlan.toml:5: `wireless.retry_delay` has no effect with scheme `none`\n\
                 hint: write another `scheme`, or leave `retry_delay` out",
            ),
            (
                "users = [{ weight = 9000 }, { weight = 1001 }]",
                "",
                "wlan.toml:4: `wireless.users` is `10001`, which is the sum of their weights\n\
                 hint: at most 10000: divide them by a common factor",
            ),
            (
                "users = [{ count = 900 }, { count = 101 }]",
                "",
                "wlan.toml:4: `wireless.users` is `1001`, which is out of range\nhint: from 1 to 1000 users",
            ),
            (
                "channel = { error_probability = 0.1 }",
                "",
                "wlan.toml:4: `wireless.channel.error_probability` has no effect with kind `clear`\n\
                 hint: write `kind = \"two-state\"`, or leave `error_probability` out",
            ),
            (
                "channel = { kind = \"two-state\" }",
                "",
                "wlan.toml:4: `wireless.channel.error_probability` is missing\n\
                 hint: kind `two-state` needs it: a number from 0 to below 1",
            ),
            (
                "channel = { kind = \"two-state\", error_probability = 1 }",
                "",
                "wlan.toml:4: `wireless.channel.error_probability` is `1`, which is out of range\n\
                 hint: from 0 to below 1",
            ),
            (
                "channel = { kind = \"two-state\", error_probability = 0.1, memory = -0.2 }",
                "",
                "wlan.toml:4: `wireless.channel.memory` is `-0.2`, which cannot be with an error probability of 0.1\n\
                 hint: from -0.111111 to below 1",
            ),
            (
                "channel = { kind = \"markov\", transition = [[0.9, 0.2], [0.5, 0.5]], error = [0, 1] }",
                "",
                "wlan.toml:4: `wireless.channel.transition[0]` is `a row that sums to 1.1`, which is no distribution\n\
                 hint: numbers from 0 to 1 that sum to 1",
            ),
            (
                "channel = { kind = \"markov\", transition = [[1]], error = [0, 1] }",
                "",
                "wlan.toml:4: `wireless.channel.transition` is `1 long`, which does not fit the 2 states that `error` \
                 has\nhint: a square of 2 rows",
            ),
            (
                "channel = { kind = \"markov\", transition = [[1, 0], [0.5, 0.5]], error = [0, 1] }",
                "",
                "wlan.toml:4: `wireless.channel.transition` is `without a way from state 0 to state 1`, which leaves \
                 states for ever\nhint: leave out the states that do not come back",
            ),
            (
                "users = [{ channel = { kind = \"markov\", transition = [[1]], error = [1] } }]",
                "",
                "wlan.toml:4: `wireless.users[0].channel.error` is `1 in every state`, which passes nothing\n\
                 hint: below 1 in at least one of the states",
            ),
            (
                "channel = { kind = \"markov\", transition = [[1]], error = [-0.5] }",
                "",
                "wlan.toml:4: `wireless.channel.error[0]` is `-0.5`, which is out of range\nhint: from 0 to 1",
            ),
            (
                "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 10 }",
                "",
                "wlan.toml:4: `wireless.channel.threshold_db` is missing\n\
                 hint: say which slots fail: those below `threshold_db`, or by the `modulation`, one of the two",
            ),
            (
                "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 0, threshold_db = 10 }",
                "",
                "wlan.toml:4: `wireless.channel.doppler_hz` is `0`, which is out of range\n\
                 hint: from 0.002 to 20000 Hz: 0.00001 to 100 over a slot",
            ),
            (
                "channel = { kind = \"rayleigh\", mean_snr_db = 20, doppler_hz = 10, threshold_db = 40 }",
                "",
                "wlan.toml:4: `wireless.channel.threshold_db` is `40`, which is out of range\n\
                 hint: from 90 dB below to 13 dB above `mean_snr_db`",
            ),
            (
                "uplink = { delay = \"2 h\" }",
                "",
                "wlan.toml:4: `wireless.uplink.delay` is `2 h`, which is out of range\nhint: at most 1 h",
            ),
            (
                "plan = { max_jitter = \"4 ms\" }",
                "",
                "wlan.toml:4: `wireless.plan.max_jitter` is `4 ms`, which is out of range\n\
                 hint: from one slot of 5 ms to 1 h",
            ),
            (
                "plan = { max_jitter = \"50 ms\", outage = 0 }",
                "",
                "wlan.toml:4: `wireless.plan.outage` is `0`, which is out of range\n\
                 hint: above 0, below 1, as in `outage = 0.01`",
            ),
            (
                "scheme = \"none\"\nplan = { max_jitter = \"50 ms\" }",
                "",
                "wlan.toml:5: `wireless.plan` has no effect with scheme `none`, where packets are lost instead of \
                 waiting\nhint: write `scheme = \"persistent\"` or `\"optimal\"`, or leave `plan` out",
            ),
        ]);
    }

    #[test]
    fn every_refusal_of_a_flow_over_it_names_file_line_field_value_and_remedy() {
        compare(&[
            (
                "",
                "user = 1",
                "wlan.toml:9: `flows[0].user` is `1`, which names a user that there is not: there are 1, numbered from 0\n\
                 hint: at most 0, or more `wireless.users`",
            ),
            (
                "",
                "user = 0\nshare = 2",
                "wlan.toml:10: `flows[0].share` has no effect where no base station plans\n\
                 hint: give the flow a `user` and `[wireless]` a `plan`, or leave it out",
            ),
            (
                "plan = { max_jitter = \"50 ms\" }",
                "user = 0\nshare = 0",
                "wlan.toml:10: `flows[0].share` is `0`, which is out of range\nhint: above 0, at most 1000000",
            ),
            (
                "",
                "tolerable_jitter = \"0 s\"",
                "wlan.toml:9: `flows[0].tolerable_jitter` is `0 s`, which is out of range\nhint: above 0 s, at most 1 h",
            ),
            (
                "buffer = \"20 pkt\"\nplan = { max_jitter = \"50 ms\" }",
                "user = 0",
                "wlan.toml:4: `wireless.buffer` stands beside `plan`, which sets it to the windows of `aimd` and those \
                 beside it\nhint: keep one of them",
            ),
        ]);
        let alone = "[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"aimd\"\nuser = 0\n";
        let e = Scenario::parse(alone, "wlan.toml").unwrap_err();
        assert_eq!(
            format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
            "wlan.toml:5: `flows[0].user` has no effect without a wireless link\nhint: write `[wireless]`, or leave it out"
        );
        let both = "[satellite]\n[wireless]\n[[flows]]\ncontroller = \"aimd\"\nterminals = [1, 2]\n";
        let e = Scenario::parse(both, "wlan.toml").unwrap_err();
        assert_eq!(
            format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
            "wlan.toml:2: `wireless` stands beside `satellite`, and is the last hop behind a `[path]`\n\
             hint: keep one of them"
        );
    }

    #[test]
    fn it_prints_back_to_itself() {
        let wireless = "scheme = \"optimal\"\nchannel = { kind = \"markov\", \
                        transition = [[0.9, 0.1], [0.5, 0.5]], error = [0.01, 1] }\nusers = [{ count = 2 }, { weight = 2 }]\n\
                        uplink = { rate = \"100 kbit/s\", queue = { kind = \"red\" } }\n\
                        plan = { max_jitter = \"50 ms\" }";
        let printed = read(wireless, "user = 1\nshare = 2\ntolerable_jitter = \"50 ms\"").to_toml();
        for line in ["outage = 0.01", "scheme = \"optimal\"", "share = 2.0", "rate = \"200 kbit/s\"", "max_p = 0.1"] {
            assert!(printed.contains(line), "{line} is not in\n{printed}");
        }
        let again = Scenario::parse(&printed, "wlan.toml").unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(again.to_toml(), printed);
    }
}
