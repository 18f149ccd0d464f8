//! The radio behind the backbone: users' downlinks in slots ([`Arq`]), their uplinks, and the base station that
//! tells senders their windows.
//!
//! Source: [aimd §III-C, §III-D, §IV Fig. 2]. Page: `docs/sim/README.md`, "The radio".
//!
//! **Readings.** (a) The paper's base station informs the sender "during connection establishment": here it writes
//! `rwnd` into the answer to the challenge, and into the feedback that passes, as soon as that leaves the uplink.
//! So a new plan reaches a sender one trip from the base station later, as long as feedback comes. (b) Its buffer
//! is the sum of the windows at every instant. While a plan is on its way, more than that may be: what a
//! lowered window still has under way and what the new one sends. What does not fit is dropped.

use std::fmt;
use std::sync::Arc;

use fairpace_path::arq::{ArqCounters, ArqSlot};
use fairpace_path::{Arq, ArqSpec, Capacity, LinkSpec};
use fairpace_units::{Duration, Instant, Packets, Rate};

use crate::packet::{Body, FlowId, Packet};
use crate::report::per_second;

/// Users whose series are kept: the first so many.
pub const MOST_USERS_NOTED: u32 = 64;

/// Slots that are kept, the first so many; and as many windows.
pub const MOST_SLOTS_NOTED: usize = 1 << 18;

/// The links of users who are reached by radio.
#[derive(Clone, Debug)]
pub struct RadioConfig {
    /// From the base station to its users; its streams are `radio.*`.
    pub downlink: ArqSpec,
    /// From each user to the base station, one each, with streams `radio.user0.uplink.*` and so on; `None`: feedback
    /// is there at once.
    pub uplink: Option<LinkSpec>,
    /// Who plans windows; `None`: nobody, and the buffers stay those of `downlink`.
    pub base_station: Option<BaseStationSpec>,
}

/// A flow over the radio, as the base station sees it when it plans.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// Which flow.
    pub flow: FlowId,
    /// Whose downlink it takes, from zero.
    pub user: u32,
    /// R of the paper, as time: [`SimConfig::min_rtt`](crate::SimConfig::min_rtt).
    pub min_rtt: Duration,
    /// p of eq. (4), not normalized: what it is to have of its user's downlink is this / the sum of it over that
    /// user's members. Above zero.
    pub share: f64,
}

/// The resource allocation of a base station [aimd §III-D, steps 4 and 5].
pub trait BaseStation: Send {
    /// The flow that is last in `members` has begun, or one that was among them has ended (none may be left): the
    /// `rwnd` of each from now on, in packets, in their order; zero: it may send nothing. Members are the flows whose
    /// receivers send sack vectors, in the order in which they began. Each window is in the feedback of its flow
    /// from then on, and in the answer to its challenge; a user's buffer becomes the sum of its members' windows,
    /// one packet at least, and that of a user without members stays.
    /// A member for which there is no number keeps what it had.
    fn plan(&mut self, now: Instant, members: &[Member]) -> Vec<u32>;
}

/// A base station, made anew for each run.
#[derive(Clone)]
pub struct BaseStationSpec(pub Arc<dyn Fn() -> Box<dyn BaseStation> + Send + Sync>);

impl BaseStationSpec {
    /// From what makes one.
    pub fn new(make: impl Fn() -> Box<dyn BaseStation> + Send + Sync + 'static) -> Self {
        BaseStationSpec(Arc::new(make))
    }
}

impl fmt::Debug for BaseStationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base station")
    }
}

/// What happened on the radio.
#[derive(Clone, Debug, Default)]
pub struct RadioReport {
    /// All of them, in order.
    pub users: Vec<UserReport>,
    /// Rows at every sampling interval for the first [`MOST_USERS_NOTED`], user by user.
    pub series: Vec<UserRow>,
    /// The slots in which somebody sent, in order: the first [`MOST_SLOTS_NOTED`]; empty unless tracing.
    pub slots: Vec<ArqSlot>,
    /// Slots in which somebody sent that are not among them.
    pub slots_left_out: u64,
    /// The windows that the base station gave: when, to whom, how much; a row whenever one changed, the first
    /// [`MOST_SLOTS_NOTED`].
    pub windows: Vec<WindowRow>,
}

/// One user.
#[derive(Clone, Copy, Debug)]
pub struct UserReport {
    /// Its number, from zero.
    pub user: u32,
    /// The index of its uplink in [`SimReport::links`](crate::SimReport::links).
    pub uplink: u32,
    /// Counts of its downlink in the whole run.
    pub whole: ArqCounters,
    /// Counts in the measured window; maxima are the window's too.
    pub measured: ArqCounters,
    /// Packets still waiting or in flight at the end.
    pub inside: u64,
}

/// One user's downlink at one sampling instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UserRow {
    /// When.
    pub at: Instant,
    /// Whose.
    pub user: u32,
    /// Packets in its queue now, the one under way included.
    pub queue_packets: u64,
    /// What it transmitted in the interval.
    pub throughput: Rate,
    /// Its slots of the interval.
    pub used: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Slots of silence after a failure, in the interval.
    pub silent: u64,
    /// Packets dropped in the interval, for any reason.
    pub drops: u64,
}

/// A window that the base station has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowRow {
    /// When.
    pub at: Instant,
    /// Whose.
    pub flow: FlowId,
    /// `rwnd`, in packets.
    pub rwnd: u32,
}

/// A flow that the base station gives a window while it lasts.
struct Candidate {
    member: Member,
    rwnd: Option<u32>,
}

/// The links, their entry in the event set, and what has been noted.
pub(crate) struct Radio {
    pub(crate) arq: Arq<Packet>,
    /// When its entry in the event set comes up; never if it has none.
    pub(crate) armed: Instant,
    /// The link of the first user's uplink; the others' come behind it.
    pub(crate) first_uplink: u32,
    base_station: Option<Box<dyn BaseStation>>,
    /// In order of their flows.
    candidates: Vec<Candidate>,
    /// Places among the candidates, in the order in which they joined.
    joined: Vec<usize>,
    users: Vec<Noted>,
    series: Vec<UserRow>,
    slots: Vec<ArqSlot>,
    slots_left_out: u64,
    windows: Vec<WindowRow>,
}

/// A user's counts at earlier instants.
#[derive(Clone, Default)]
struct Noted {
    at_warmup: ArqCounters,
    at_sample: ArqCounters,
}

impl Radio {
    pub(crate) fn new(mut arq: Arq<Packet>, config: &RadioConfig, first_uplink: u32, trace: bool) -> Self {
        arq.record_drops(true);
        arq.record_slots(trace);
        Radio {
            armed: Instant::NEVER,
            first_uplink,
            base_station: config.base_station.as_ref().map(|spec| (spec.0)()),
            candidates: Vec::new(),
            joined: Vec::new(),
            users: vec![Noted::default(); config.downlink.users.len()],
            series: Vec::new(),
            slots: Vec::new(),
            slots_left_out: 0,
            windows: Vec::new(),
            arq,
        }
    }

    /// A flow that may join; flows come in order.
    pub(crate) fn attach(&mut self, member: Member) {
        self.candidates.push(Candidate { member, rwnd: None });
    }

    fn place(&self, flow: FlowId) -> Option<usize> {
        self.candidates.binary_search_by_key(&flow, |c| c.member.flow).ok()
    }

    /// A flow begins.
    pub(crate) fn join(&mut self, at: Instant, flow: FlowId) {
        if let Some(place) = self.place(flow)
            && !self.joined.contains(&place)
        {
            self.joined.push(place);
            self.plan(at);
        }
    }

    /// A flow has ended; more than once is once.
    pub(crate) fn leave(&mut self, at: Instant, flow: FlowId) {
        let Some(place) = self.place(flow) else { return };
        let before = self.joined.len();
        self.joined.retain(|p| *p != place);
        if self.joined.len() < before {
            self.plan(at);
        }
    }

    fn plan(&mut self, at: Instant) {
        let Some(base_station) = &mut self.base_station else { return };
        let members: Vec<Member> = self.joined.iter().map(|place| self.candidates[*place].member).collect();
        let windows = base_station.plan(at, &members);
        for (place, rwnd) in self.joined.iter().zip(windows) {
            let candidate = &mut self.candidates[*place];
            if candidate.rwnd != Some(rwnd) && self.windows.len() < MOST_SLOTS_NOTED {
                self.windows.push(WindowRow { at, flow: candidate.member.flow, rwnd });
            }
            candidate.rwnd = Some(rwnd);
        }
        let mut sums = vec![None; self.users.len()];
        for place in &self.joined {
            let Candidate { member, rwnd } = &self.candidates[*place];
            if let Some(rwnd) = rwnd {
                *sums[member.user as usize].get_or_insert(0) += u64::from(*rwnd);
            }
        }
        for (user, sum) in (0..).zip(sums) {
            if let Some(sum) = sum {
                // At least one packet: it cannot be refused.
                let _ = self.arq.set_buffer(user, Capacity::Packets(Packets::new(sum.max(1))));
            }
        }
    }

    /// What passes the base station on its way to a sender carries that sender's window from here on. (Receivers in
    /// the simulator have room for more, and say nothing.)
    pub(crate) fn write_window(&self, packet: &mut Packet) {
        let (Body::SackVector { rwnd, .. } | Body::Challenge { rwnd, .. }) = &mut packet.body else { return };
        if let Some(place) = self.place(packet.flow)
            && let planned @ Some(_) = self.candidates[place].rwnd
        {
            *rwnd = planned;
        }
    }

    /// Takes what the link has to tell.
    pub(crate) fn collect_slots(&mut self) {
        while let Some(slot) = self.arq.take_slot() {
            if self.slots.len() < MOST_SLOTS_NOTED {
                self.slots.push(slot);
            } else {
                self.slots_left_out += 1;
            }
        }
    }

    pub(crate) fn end_warmup(&mut self, at: Instant) {
        self.arq.advance(at);
        for (user, noted) in (0..).zip(&mut self.users) {
            self.arq.restart_maximum(user);
            noted.at_warmup = *self.arq.counters(user);
        }
    }

    pub(crate) fn sample(&mut self, at: Instant, interval: Duration) {
        self.arq.advance(at);
        for (user, noted) in (0..MOST_USERS_NOTED).zip(&mut self.users) {
            let counters = *self.arq.counters(user);
            let since = counters.since(&noted.at_sample);
            noted.at_sample = counters;
            self.series.push(UserRow {
                at,
                user,
                queue_packets: self.arq.queue_len(user) as u64,
                throughput: per_second(since.link.transmitted.bytes, interval),
                used: since.used,
                failed: since.failed,
                silent: since.silent,
                drops: since.link.total().dropped_in_all().packets.get(),
            });
        }
    }

    /// Packets transmitted so far.
    pub(crate) fn transmitted(&self) -> u64 {
        (0..).zip(&self.users).map(|(user, _)| self.arq.counters(user).link.transmitted.packets.get()).sum()
    }

    /// What was found up to the instant that the link has been brought to.
    pub(crate) fn report(&mut self) -> RadioReport {
        self.collect_slots();
        let report = |(user, noted): (u32, &Noted)| {
            let whole = *self.arq.counters(user);
            let all = whole.link.total();
            UserReport {
                user,
                uplink: self.first_uplink + user,
                whole,
                measured: whole.since(&noted.at_warmup),
                inside: (all.offered.packets - all.dropped_in_all().packets - all.delivered.packets).get(),
            }
        };
        RadioReport {
            users: (0..).zip(&self.users).map(report).collect(),
            series: self.series.clone(),
            slots: self.slots.clone(),
            slots_left_out: self.slots_left_out,
            windows: self.windows.clone(),
        }
    }
}
