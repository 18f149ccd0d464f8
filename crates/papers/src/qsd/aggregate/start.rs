//! The start of a run's flows: end-to-end delays by the flow's age, and the losses at the sender. Gathered while the
//! run goes on: so many flows have too many packets to keep.

use fairpace_lab::run::{RunError, simulate_observed};
use fairpace_lab::study::{Job, Measure};
use fairpace_scenario::{Record, sim_config};
use fairpace_sim::{Body, Direction, Observer, PacketEvent, PacketFate, Protocol, SimConfig, Source};
use fairpace_units::{Duration, Instant, Kind, Rate};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// How long a flow is young [qsd §4: "in the first 30 s of their lifetime"].
pub(super) const YOUTH_S: f64 = 30.0;
/// Packets are told apart by their flow's age when they were produced, in steps of this.
pub(super) const STEP_S: f64 = 0.5;
/// Steps in a youth.
pub(super) const STEPS: usize = (YOUTH_S / STEP_S) as usize;
/// A flow that lasts so much longer than its youth has sent or lost what it produced in it.
const MARGIN_S: f64 = 15.0;

/// Delays to 1.6 %: 64 classes per doubling from 1,024 us on, the first doubling for all that is shorter.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Delays {
    classes: Vec<u32>,
    /// How many.
    pub(super) count: u64,
    sum_us: u64,
}

const CLASS_BITS: u32 = 6;
const FIRST_OCTAVE: u32 = 10;

impl Delays {
    fn record(&mut self, us: u64) {
        let us = us.clamp(1 << FIRST_OCTAVE, u64::from(u32::MAX));
        let octave = us.ilog2();
        let within = (us >> (octave - CLASS_BITS)) as usize & ((1 << CLASS_BITS) - 1);
        let class = ((octave - FIRST_OCTAVE) << CLASS_BITS) as usize + within;
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += 1;
        self.count += 1;
        self.sum_us += us;
    }

    /// Where class `i` begins, in seconds.
    fn lower_s(i: usize) -> f64 {
        let octave = FIRST_OCTAVE + (i >> CLASS_BITS) as u32;
        let within = (i & ((1 << CLASS_BITS) - 1)) as u64;
        (((1 << CLASS_BITS) + within) << (octave - CLASS_BITS)) as f64 * 1e-6
    }

    pub(super) fn add(&mut self, other: &Delays) {
        if self.classes.len() < other.classes.len() {
            self.classes.resize(other.classes.len(), 0);
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_us += other.sum_us;
    }

    /// Their mean in seconds, exact; `None` of nothing.
    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us as f64 * 1e-6 / self.count as f64)
    }

    /// The delay that the fraction `q` of the data does not exceed, in seconds.
    pub(super) fn quantile_s(&self, q: f64) -> Option<f64> {
        let wanted = q * self.count as f64;
        let mut below = 0.0;
        for (i, n) in self.classes.iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = f64::from(*n);
            if below + n >= wanted {
                let (low, high) = (Self::lower_s(i), Self::lower_s(i + 1));
                return Some(low + (high - low) * ((wanted - below) / n).max(0.0));
            }
            below += n;
        }
        None
    }

    /// The fraction of them above `s` seconds; zero of nothing.
    pub(super) fn above(&self, s: f64) -> f64 {
        let classes = self.classes.iter().enumerate();
        let later = classes.map(|(i, n)| {
            let (low, high) = (Self::lower_s(i), Self::lower_s(i + 1));
            f64::from(*n) * ((high - s) / (high - low)).clamp(0.0, 1.0)
        });
        if self.count == 0 { 0.0 } else { later.sum::<f64>() / self.count as f64 }
    }
}

/// The flows of one class in one run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct ClassStart {
    /// The class: the scenario's group.
    pub(super) name: String,
    /// Flows that began in the measured window, a youth before its end at the latest.
    pub(super) flows: u64,
    /// End-to-end delays of what these flows produced, by their age in steps.
    pub(super) by_age: Vec<Delays>,
    /// Packets that all flows of the class produced in the measured window, and those of them that the
    /// transmit buffers had no room for.
    pub(super) produced: u64,
    /// See above.
    pub(super) overflowed: u64,
    /// Of the flows that outlive their youth: packets produced, and sent, by their age in steps.
    pub(super) young_produced: Vec<u64>,
    /// See above.
    pub(super) young_sent: Vec<u64>,
    /// Of the same flows: packets produced when young and after the first report came to the sender, and those of them that
    /// were sent.
    pub(super) after_produced: u64,
    /// See above.
    pub(super) after_sent: u64,
}

impl ClassStart {
    /// Delays of all that was produced up to an age in seconds.
    pub(super) fn delays_until(&self, age_s: f64) -> Delays {
        let mut all = Delays::default();
        for step in self.by_age.iter().take((age_s / STEP_S).round() as usize) {
            all.add(step);
        }
        all
    }

    /// Lost / produced, over the flows' whole lives; `None` of nothing.
    pub(super) fn lost(&self) -> Option<f64> {
        (self.produced > 0).then(|| self.overflowed as f64 / self.produced as f64)
    }

    /// Lost and produced up to 30 s, from the first report on.
    pub(super) fn after_response(&self) -> (u64, u64) {
        (self.after_produced.saturating_sub(self.after_sent), self.after_produced)
    }

    /// Lost and produced up to 30 s.
    pub(super) fn young(&self) -> (u64, u64) {
        let (produced, sent) = (self.young_produced.iter().sum::<u64>(), self.young_sent.iter().sum());
        (produced.saturating_sub(sent), produced)
    }
}

/// The results of one run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Start {
    /// In the order of the scenario.
    pub(super) classes: Vec<ClassStart>,
    /// Data that arrived in the measured window.
    pub(super) carried_bps: f64,
    /// Packets that the terminals' uplink queues had no room for, in the whole run.
    pub(super) queue_drops: u64,
}

/// The part of a flow that its packets need.
#[derive(Clone, Copy)]
struct Young {
    class: u16,
    /// The flow counts in the statistics.
    counts: bool,
    outlives: bool,
    began: Instant,
    /// Time between two packets that the source produces, in ns.
    spacing_ns: f64,
    /// When the first report came to the sender.
    heard: Option<Instant>,
}

impl Young {
    /// Packets that the source produces when the flow is young, after `from`.
    fn produced_after(&self, from: Instant) -> u64 {
        // Packet k is produced k spacings after the start.
        let before = |at: Instant| (at.since(self.began).as_nanos() as f64 / self.spacing_ns).floor() as u64 + 1;
        let end = self.began + Duration::from_secs_f64(YOUTH_S);
        // Of the two ends, the first is left out and the last does not belong to the youth.
        (((YOUTH_S * 1e9) / self.spacing_ns).ceil() as u64).saturating_sub(before(from.min(end)))
    }
}

/// Sees every packet.
struct Watch {
    flows: Vec<Young>,
    classes: Arc<Mutex<Vec<ClassStart>>>,
}

impl Observer for Watch {
    fn on_packet(&mut self, event: &PacketEvent) {
        let Some(flow) = self.flows.get_mut(event.packet.flow as usize).filter(|f| f.counts) else { return };
        let Body::Media { kind: Kind::Data, born, .. } = event.packet.body else {
            // Nothing but reports travels back.
            if event.packet.direction == Direction::Back && event.fate == PacketFate::Received && flow.heard.is_none() {
                flow.heard = Some(event.at);
                if flow.outlives
                    && let Some(class) =
                        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(usize::from(flow.class))
                {
                    class.after_produced += flow.produced_after(event.at);
                }
            }
            return;
        };
        let step = step(flow.began, born);
        if step >= STEPS {
            return;
        }
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(class) = classes.get_mut(usize::from(flow.class)) else { return };
        match event.fate {
            PacketFate::Sent if flow.outlives => {
                class.young_sent[step] += 1;
                class.after_sent += u64::from(flow.heard.is_some_and(|heard| born > heard));
            }
            PacketFate::Received => {
                let e2ed = event.at.since(born).as_micros();
                class.by_age[step].record(u64::try_from(e2ed).unwrap_or(u64::MAX));
            }
            PacketFate::Sent | PacketFate::Dropped { .. } => {}
        }
    }
}

/// In which step of its flow's age a packet was produced.
fn step(began: Instant, born: Instant) -> usize {
    (born.since(began).as_nanos() / (STEP_S * 1e9) as u128) as usize
}

/// Every flow's part, and the classes with what their flows produce when young.
fn young(config: &SimConfig) -> (Vec<Young>, Vec<ClassStart>) {
    let mut classes: Vec<ClassStart> = Vec::new();
    let (from, end) = (Instant::ZERO + config.warmup, Instant::ZERO + config.duration);
    let flows = config.flows.iter().map(|flow| {
        let class = classes.iter().position(|c| c.name == flow.group).unwrap_or_else(|| {
            let (by_age, none) = (vec![Delays::default(); STEPS], vec![0; STEPS]);
            let name = flow.group.clone();
            let (young_produced, young_sent) = (none.clone(), none);
            classes.push(ClassStart { name, by_age, young_produced, young_sent, ..ClassStart::default() });
            classes.len() - 1
        });
        let began = flow.start;
        let left_s = |until: Instant| until.since(began).as_secs_f64();
        let counts = began >= from && left_s(end) >= YOUTH_S;
        let outlives = counts && left_s(flow.stop.unwrap_or(end).min(end)) >= YOUTH_S + MARGIN_S;
        classes[class].flows += u64::from(counts);
        if let (true, Protocol::Media(media)) = (outlives, &flow.protocol)
            && let Source::Constant(rate) = media.source
        {
            // As the source does it: packet k is produced k spacings after the flow's start.
            let spacing_ns = flow.packet_size.as_f64() * 8e9 / rate.as_bps();
            let births = (0_u64..).map(|k| began + core::time::Duration::from_nanos((k as f64 * spacing_ns) as u64));
            for step in births.map(|born| step(began, born)).take_while(|step| *step < STEPS) {
                classes[class].young_produced[step] += 1;
            }
        }
        let spacing_ns = match &flow.protocol {
            Protocol::Media(media) => match media.source {
                Source::Constant(rate) => flow.packet_size.as_f64() * 8e9 / rate.as_bps(),
                _ => f64::INFINITY,
            },
            _ => f64::INFINITY,
        };
        Young { class: class as u16, counts, outlives, began, spacing_ns, heard: None }
    });
    (flows.collect(), classes)
}

/// A run, and the start of its flows.
pub(super) const WATCH: Measure<Start> = Measure { name: "qsd start of all", of: watch };

fn watch(job: &Job<'_>) -> Result<Start, RunError> {
    let config = sim_config(job.scenario, job.seed, Record::default())?;
    let (flows, classes) = young(&config);
    let classes = Arc::new(Mutex::new(classes));
    let watch = Watch { flows, classes: Arc::clone(&classes) };
    let (report, now) = simulate_observed(&job.scenario.name, &config, Some(Box::new(watch)), job.hooks)?;
    if now < Instant::ZERO + config.duration {
        return Err(RunError::Interrupted);
    }
    job.allow(report.by_own_rules())?;
    let mut start = Start::default();
    std::mem::swap(&mut start.classes, &mut classes.lock().unwrap_or_else(PoisonError::into_inner));
    let mut carried = Rate::ZERO;
    for flow in &report.flows {
        if let Some(class) = start.classes.iter_mut().find(|c| c.name == flow.group) {
            class.produced += flow.measured.produced.packets.get();
            class.overflowed += flow.measured.overflowed.packets.get();
        }
        carried = carried + flow.throughput();
    }
    start.carried_bps = carried.as_bps();
    let terminals = report.satellites.iter().flat_map(|s| &s.terminals);
    start.queue_drops = terminals.map(|t| t.whole.dropped.packets.get()).sum();
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_known_to_1_6_percent_and_their_mean_exactly() {
        let mut d = Delays::default();
        assert_eq!((d.mean_s(), d.quantile_s(0.5), d.above(0.0)), (None, None, 0.0));
        // 0.3, 0.31, ... 30.29 s
        for i in 0..3_000_u64 {
            d.record(300_000 + 10_000 * i);
        }
        assert!((d.mean_s().unwrap() - 15.295).abs() < 1e-9);
        for (q, exact) in [(0.05, 1.8), (0.5, 15.3), (0.95, 28.8), (1.0, 30.29)] {
            let found = d.quantile_s(q).unwrap();
            assert!((found / exact - 1.0).abs() < 0.016, "{q}: {found}");
        }
        for (s, exact) in [(0.0, 1.0), (15.3, 0.5), (28.8, 0.05), (40.0, 0.0)] {
            assert!((d.above(s) - exact).abs() < 0.01, "{s}: {}", d.above(s));
        }
        let mut twice = d.clone();
        twice.add(&d);
        assert_eq!((twice.count, twice.quantile_s(0.3)), (6_000, d.quantile_s(0.3)));
    }

    #[test]
    fn classes_of_delays_touch_each_other() {
        // 1,024 us is where the first begins; the 65th is the first of the next doubling.
        assert_eq!(Delays::lower_s(0), 1_024e-6);
        assert_eq!(Delays::lower_s(64), 2_048e-6);
        assert!((0..1_300).all(|i| Delays::lower_s(i) < Delays::lower_s(i + 1)));
        let mut d = Delays::default();
        d.record(5);
        d.record(2_047);
        d.record(2_048);
        assert_eq!((d.classes[0], d.classes[63], d.classes[64]), (1, 1, 1));
    }
}
