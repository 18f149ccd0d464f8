//! The satellite between terminals: the network's side of [`Dama`], and what is noted of it.

use fairpace_path::Count;
use fairpace_path::dama::{BurstTimePlan, Dama, DamaEvent, TerminalCounters};
use fairpace_path::quick_start::QsCounters;
use fairpace_units::{Bytes, Duration, Instant, Rate};

use crate::counts::per_second;
use crate::packet::Packet;

/// Terminals whose events and series are kept: the first so many of those that carry flows.
pub const MOST_TERMINALS_NOTED: usize = 64;

/// Events of the satellite that are kept: the first so many.
pub const MOST_SATELLITE_EVENTS: usize = 1 << 18;

/// The results of a satellite.
#[derive(Clone, Debug, Default)]
pub struct SatelliteReport {
    /// The hop's name.
    pub name: String,
    /// How many carriers its terminals share.
    pub carriers: u32,
    /// Bits of packets transmitted / bits that all carriers could have carried, in the measured window.
    pub utilization: f64,
    /// Those terminals that flows are attached to, in order.
    pub terminals: Vec<TerminalReport>,
    /// Rows at every sampling interval for the first [`MOST_TERMINALS_NOTED`] of these, terminal by terminal.
    pub series: Vec<TerminalRow>,
    /// Requests, TBTPs, grants and Quick-Start decisions of the same terminals, in order of time: the first
    /// [`MOST_SATELLITE_EVENTS`]; empty unless tracing.
    pub events: Vec<DamaEvent>,
    /// Events of these terminals that are not among them.
    pub events_left_out: u64,
    /// The owners of all slots, at the instants of [`SimConfig::plans`](crate::SimConfig::plans), on the carriers of
    /// the same terminals.
    pub plans: Vec<CarrierPlan>,
}

/// One terminal.
#[derive(Clone, Copy, Debug)]
pub struct TerminalReport {
    /// Its number, from zero.
    pub terminal: u32,
    /// The carrier it is on.
    pub carrier: u32,
    /// Counts of the whole run.
    pub whole: TerminalCounters,
    /// Counts in the measured window; the maximum is the whole run's.
    pub measured: TerminalCounters,
    /// Packets still held, waiting or in flight at the end.
    pub inside: u64,
    /// The decisions of the terminal's Quick-Start agent; `None` if the agent was never asked.
    pub quick_start: Option<QsCounters>,
}

/// One terminal at one sampling instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TerminalRow {
    /// The instant of the sample.
    pub at: Instant,
    /// The terminal's number, from zero.
    pub terminal: u32,
    /// Packets in its uplink queue, the one under way included.
    pub queue_packets: u64,
    /// The bytes of these.
    pub queue_bytes: Bytes,
    /// The rate offered to the terminal in the interval.
    pub offered: Rate,
    /// The rate that left in the terminal's slots in the interval.
    pub throughput: Rate,
    /// The terminal's request at the last boundary.
    pub requested: Rate,
    /// The terminal's capacity in this super-frame.
    pub granted: Rate,
    /// Slots in which it sent something, in the interval.
    pub slots_used: u64,
    /// Packets that its queue refused, in the interval.
    pub drops: u64,
}

/// The owners of the slots of one carrier in one super-frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CarrierPlan {
    /// The carrier's number, from zero.
    pub carrier: u32,
    /// The super-frame and its slots.
    pub plan: BurstTimePlan,
}

/// A terminal that carries flows.
struct Noted {
    terminal: u32,
    at_warmup: TerminalCounters,
    at_sample: TerminalCounters,
}

/// The records of a satellite.
pub(crate) struct Satellite {
    name: Box<str>,
    /// Its place among the network's media.
    pub(crate) medium: u32,
    /// In order of their numbers.
    terminals: Vec<Noted>,
    series: Vec<TerminalRow>,
    events: Vec<DamaEvent>,
    events_left_out: u64,
    plans: Vec<CarrierPlan>,
}

impl Satellite {
    /// `dama` keeps what is to be noted from now on.
    pub(crate) fn new(name: &str, medium: u32, dama: &mut Dama<Packet>, trace: bool) -> Self {
        dama.record_events(trace);
        Satellite {
            name: name.into(),
            medium,
            terminals: Vec::new(),
            series: Vec::new(),
            events: Vec::new(),
            events_left_out: 0,
            plans: Vec::new(),
        }
    }

    /// A flow is attached to that terminal.
    pub(crate) fn attach(&mut self, terminal: u32) {
        if let Err(place) = self.terminals.binary_search_by_key(&terminal, |noted| noted.terminal) {
            let zero = TerminalCounters::default();
            self.terminals.insert(place, Noted { terminal, at_warmup: zero, at_sample: zero });
        }
    }

    /// Takes what the link has to tell.
    pub(crate) fn collect_events(&mut self, dama: &mut Dama<Packet>) {
        while let Some(event) = dama.take_event() {
            let noted = self.noted();
            if noted.binary_search_by_key(&event.terminal, |noted| noted.terminal).is_err() {
                continue;
            }
            if self.events.len() < MOST_SATELLITE_EVENTS {
                self.events.push(event);
            } else {
                self.events_left_out += 1;
            }
        }
    }

    fn noted(&self) -> &[Noted] {
        &self.terminals[..self.terminals.len().min(MOST_TERMINALS_NOTED)]
    }

    pub(crate) fn end_warmup(&mut self, dama: &mut Dama<Packet>, at: Instant) {
        dama.advance(at);
        for noted in &mut self.terminals {
            noted.at_warmup = *dama.counters(noted.terminal);
        }
    }

    pub(crate) fn sample(&mut self, dama: &mut Dama<Packet>, at: Instant, interval: Duration) {
        dama.advance(at);
        for noted in self.terminals.iter_mut().take(MOST_TERMINALS_NOTED) {
            let terminal = noted.terminal;
            let since = dama.counters(terminal).since(&noted.at_sample);
            noted.at_sample = *dama.counters(terminal);
            self.series.push(TerminalRow {
                at,
                terminal,
                queue_packets: dama.queue_len(terminal) as u64,
                queue_bytes: dama.queue_bytes(terminal),
                offered: per_second(since.offered.bytes, interval),
                throughput: per_second(since.transmitted.bytes, interval),
                requested: dama.requested(terminal),
                granted: dama.granted(terminal),
                slots_used: since.slots_used,
                drops: since.dropped.packets.get(),
            });
        }
    }

    /// Notes the plan of the super-frame that `at` lies in.
    pub(crate) fn note_plans(&mut self, dama: &mut Dama<Packet>, at: Instant) {
        dama.advance(at);
        let mut carriers: Vec<u32> = self.noted().iter().map(|n| dama.carrier_of(n.terminal)).collect();
        carriers.dedup();
        let plans = carriers.into_iter().map(|carrier| CarrierPlan { carrier, plan: dama.plan(carrier) });
        self.plans.extend(plans.collect::<Vec<_>>());
    }

    /// Packets transmitted so far.
    pub(crate) fn transmitted(&self, dama: &Dama<Packet>) -> u64 {
        self.terminals.iter().map(|n| dama.counters(n.terminal).transmitted.packets.get()).sum()
    }

    /// The results from `warmup` to `end`, which the link has been brought to.
    pub(crate) fn report(&mut self, dama: &mut Dama<Packet>, warmup: Instant, end: Instant) -> SatelliteReport {
        self.collect_events(dama);
        let terminals: Vec<TerminalReport> = self
            .terminals
            .iter()
            .map(|&Noted { terminal, at_warmup, .. }| {
                let whole = *dama.counters(terminal);
                let packets = |count: Count| count.packets.get();
                TerminalReport {
                    terminal,
                    carrier: dama.carrier_of(terminal),
                    whole,
                    measured: whole.since(&at_warmup),
                    inside: packets(whole.offered) - packets(whole.dropped) - packets(whole.delivered),
                    quick_start: dama.agent(terminal).map(|agent| *agent.router().counters()),
                }
            })
            .collect();
        let carried: f64 = terminals.iter().map(|t| t.measured.transmitted.bytes.as_f64() * 8.0).sum();
        let could = dama.spec().capacity.as_bps() * f64::from(dama.carriers()) * end.since(warmup).as_secs_f64();
        SatelliteReport {
            name: self.name.to_string(),
            carriers: dama.carriers(),
            utilization: if could > 0.0 { carried / could } else { 0.0 },
            terminals,
            series: self.series.clone(),
            events: self.events.clone(),
            events_left_out: self.events_left_out,
            plans: self.plans.clone(),
        }
    }
}
