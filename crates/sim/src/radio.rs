//! The radio behind the backbone: users' downlinks in slots ([`Arq`]), their uplinks, and what is noted of them.
//!
//! Source: [aimd §III-C, §IV Fig. 2]. Page: `docs/sim/README.md`, "The radio". Who plans windows: `base_station.rs`.

use fairpace_path::arq::{ArqCounters, ArqSlot};
use fairpace_path::{Arq, ArqSpec, LinkSpec};
use fairpace_units::{Duration, Instant, Rate};

use crate::base_station::{BaseStationSpec, WindowRow};
use crate::counts::per_second;
use crate::packet::Packet;

/// Users whose series are kept: the first so many.
pub const MOST_USERS_NOTED: u32 = 64;

/// Slots that are kept: the first so many.
pub const MOST_SLOTS_NOTED: usize = 1 << 18;

/// The links of users who are reached by radio.
#[derive(Clone, Debug)]
pub struct RadioConfig {
    /// From the base station to its users; its streams are `<name of the hop>.*`.
    pub downlink: ArqSpec,
    /// From each user to the base station, one each, with streams `<name of the hop>.user0.uplink.*` and so on; `None`: feedback
    /// is there at once.
    pub uplink: Option<LinkSpec>,
    /// Who plans windows; `None`: nobody, and the buffers stay those of `downlink`.
    pub base_station: Option<BaseStationSpec>,
}

/// The results of a radio.
#[derive(Clone, Debug, Default)]
pub struct RadioReport {
    /// The hop's name.
    pub name: String,
    /// All of them, in order.
    pub users: Vec<UserReport>,
    /// Rows at every sampling interval for the first [`MOST_USERS_NOTED`], user by user.
    pub series: Vec<UserRow>,
    /// The slots in which somebody sent, in order: the first [`MOST_SLOTS_NOTED`]; empty unless tracing.
    pub slots: Vec<ArqSlot>,
    /// Slots in which somebody sent that are not among them.
    pub slots_left_out: u64,
    /// The windows that the base station gave: when, to whom, how much; a row whenever one changed, the first
    /// [`MOST_WINDOWS_NOTED`](crate::MOST_WINDOWS_NOTED).
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
    /// The instant of the sample.
    pub at: Instant,
    /// The user's number, from zero.
    pub user: u32,
    /// Packets in its queue now, the one under way included.
    pub queue_packets: u64,
    /// The rate transmitted in the interval.
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

/// The records of a radio.
pub(crate) struct Radio {
    name: Box<str>,
    /// The place of its downlink among the network's media.
    pub(crate) medium: u32,
    /// The number of the first user's uplink in reports; the others' come behind it.
    first_uplink: u32,
    users: Vec<Noted>,
    series: Vec<UserRow>,
    slots: Vec<ArqSlot>,
    slots_left_out: u64,
}

/// A user's counts at earlier instants.
#[derive(Clone, Default)]
struct Noted {
    at_warmup: ArqCounters,
    at_sample: ArqCounters,
}

impl Radio {
    /// `arq` keeps what is to be noted from now on.
    pub(crate) fn new(name: &str, medium: u32, arq: &mut Arq<Packet>, first_uplink: u32, trace: bool) -> Self {
        arq.record_slots(trace);
        Radio {
            name: name.into(),
            medium,
            first_uplink,
            users: vec![Noted::default(); arq.users() as usize],
            series: Vec::new(),
            slots: Vec::new(),
            slots_left_out: 0,
        }
    }

    /// Takes what the link has to tell.
    pub(crate) fn collect_slots(&mut self, arq: &mut Arq<Packet>) {
        while let Some(slot) = arq.take_slot() {
            if self.slots.len() < MOST_SLOTS_NOTED {
                self.slots.push(slot);
            } else {
                self.slots_left_out += 1;
            }
        }
    }

    pub(crate) fn end_warmup(&mut self, arq: &mut Arq<Packet>, at: Instant) {
        arq.advance(at);
        for (user, noted) in (0..).zip(&mut self.users) {
            arq.restart_maximum(user);
            noted.at_warmup = *arq.counters(user);
        }
    }

    pub(crate) fn sample(&mut self, arq: &mut Arq<Packet>, at: Instant, interval: Duration) {
        arq.advance(at);
        for (user, noted) in (0..MOST_USERS_NOTED).zip(&mut self.users) {
            let counters = *arq.counters(user);
            let since = counters.since(&noted.at_sample);
            noted.at_sample = counters;
            self.series.push(UserRow {
                at,
                user,
                queue_packets: arq.queue_len(user) as u64,
                throughput: per_second(since.link.transmitted.bytes, interval),
                used: since.used,
                failed: since.failed,
                silent: since.silent,
                drops: since.link.total().dropped_in_all().packets.get(),
            });
        }
    }

    /// Packets transmitted so far.
    pub(crate) fn transmitted(&self, arq: &Arq<Packet>) -> u64 {
        (0..).zip(&self.users).map(|(user, _)| arq.counters(user).link.transmitted.packets.get()).sum()
    }

    /// The results up to the instant that the link has been brought to.
    pub(crate) fn report(&mut self, arq: &mut Arq<Packet>, windows: Vec<WindowRow>) -> RadioReport {
        self.collect_slots(arq);
        let report = |(user, noted): (u32, &Noted)| {
            let whole = *arq.counters(user);
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
            name: self.name.to_string(),
            users: (0..).zip(&self.users).map(report).collect(),
            series: self.series.clone(),
            slots: self.slots.clone(),
            slots_left_out: self.slots_left_out,
            windows,
        }
    }
}
