//! A path for tests: constant RTT, losses chosen by the test, every packet acknowledged at once.

use crate::feedback::{Form, Message};
use crate::sack_vector::{ACK_BITS, SackVector};
use crate::{Ack, Controller, Env, Flow, FlowEventKind, FlowParams, Safety, Transmit, build};
use core::any::{Any, type_name};
use fairpace_units::{Bytes, Duration, Instant, Kind, Rate};
use std::collections::{BTreeMap, VecDeque};

pub(crate) const SIZE: Bytes = Bytes::new(1_000);

pub(crate) fn at(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

/// The scenario of the paper: packets of 1,000 bytes, no protections, nearly no limits.
pub(crate) fn paper() -> Env {
    Env {
        packet_size: SIZE,
        min_rate: Rate::bps(1.0),
        start_rate: None,
        max_rate: Rate::packets_per_second(10_000.0, SIZE),
        safety: Safety::Paper,
    }
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

pub(crate) fn made(scheme: &str, pairs: &[(&str, &str)], env: &Env) -> Box<dyn Controller> {
    build(scheme, &settings(pairs), env).unwrap_or_else(|e| panic!("{e}"))
}

/// As [`made`], as the type that it is.
pub(crate) fn made_as<T: Controller>(scheme: &str, pairs: &[(&str, &str)], env: &Env) -> T {
    let controller: Box<dyn Any> = made(scheme, pairs, env);
    *controller.downcast().unwrap_or_else(|_| panic!("`{scheme}` is no {}", type_name::<T>()))
}

/// A controller as the type that it is.
pub(crate) fn as_scheme<T: Controller>(controller: &dyn Controller) -> &T {
    let any: &dyn Any = controller;
    any.downcast_ref().unwrap_or_else(|| panic!("{controller:?} is no {}", type_name::<T>()))
}

/// Hands in a message; the flow's counters say what became of it.
pub(crate) fn tell(flow: &mut Flow, now: Instant, message: Message<'_>) {
    let _ = flow.on_feedback(now, message);
}

/// Acknowledges packets in the flow's own form.
pub(crate) fn acknowledge(flow: &mut Flow, now: Instant, acks: &[Ack]) {
    if flow.form() != Form::SackVector {
        return tell(flow, now, Message::acks(acks));
    }
    for &Ack { seq, ecn, arrived_at, ack_delay, .. } in acks {
        let ack = (seq & ((1 << ACK_BITS) - 1)) as u32;
        tell(flow, now, Message::SackVector(&SackVector { ack, vector: 0, rwnd: None, ecn, ack_delay, arrived_at }));
    }
}

/// The test's decision about a packet.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) at: Instant,
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
}

pub(crate) struct Path {
    pub(crate) flow: Flow,
    pub(crate) now: Instant,
    pub(crate) rtt: Duration,
    acks: VecDeque<(Instant, Ack)>,
    pub(crate) sent: Vec<Packet>,
    /// (time, data rate in packets/s, state) whenever either changed.
    pub(crate) trace: Vec<(f64, f64, &'static str)>,
}

impl Path {
    pub(crate) fn new(controller: Box<dyn Controller>, env: &Env, rtt: Duration) -> Path {
        let mut flow = Flow::new(controller, FlowParams { trace: true, ..FlowParams::new(env) });
        flow.start(Instant::ZERO, Some(rtt));
        Path { flow, now: Instant::ZERO, rtt, acks: VecDeque::new(), sent: Vec::new(), trace: Vec::new() }
    }

    /// Runs to `end`; `arrives` says whether a packet, and its ACK, get through.
    pub(crate) fn run(&mut self, end: Instant, mut arrives: impl FnMut(Packet) -> bool) -> Option<crate::StopReason> {
        loop {
            while self.acks.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, ack) = self.acks.pop_front().expect("looked at");
                acknowledge(&mut self.flow, self.now, &[ack]);
            }
            let until = loop {
                match self.flow.poll(self.now, true) {
                    Transmit::Send(p) => {
                        self.flow.on_sent(self.now, p, SIZE);
                        let packet = Packet { at: self.now, kind: p.kind, seq: p.seq };
                        self.sent.push(packet);
                        if arrives(packet) {
                            self.acks.push_back((self.now + self.rtt, Ack::immediate(p.kind, p.seq)));
                        }
                    }
                    Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
                    Transmit::Stopped(reason) => return Some(reason),
                }
            };
            self.note();
            let next = self.acks.front().map_or(until, |(at, _)| until.min(*at));
            if next >= end {
                return None;
            }
            self.now = next;
        }
    }

    fn note(&mut self) {
        let mut changes: Vec<(f64, f64, &'static str)> = Vec::new();
        let (mut rate, mut state) = match self.trace.last() {
            Some((_, rate, state)) => (*rate, *state),
            None => (0.0, ""),
        };
        for e in self.flow.drain_events() {
            match e.what {
                FlowEventKind::RateChanged { rate: r, .. } => rate = r.as_packets_per_second(SIZE),
                FlowEventKind::StateChanged { to, .. } => state = to,
                _ => continue,
            }
            let t = e.at.as_secs_f64();
            changes.retain(|(at, _, _)| *at != t);
            changes.push((t, rate, state));
        }
        self.trace.extend(changes);
    }

    /// The data rate, packets/s.
    pub(crate) fn pps(&self) -> f64 {
        self.flow.controller().target_rate().as_packets_per_second(SIZE)
    }

    pub(crate) fn count(&self, kind: Kind, from: Instant, to: Instant) -> usize {
        self.sent.iter().filter(|p| p.kind == kind && p.at >= from && p.at < to).count()
    }
}
