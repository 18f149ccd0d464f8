//! The input of endpoints to the network: their packets, and their timers in the event set.

use fairpace_units::{Class, Ecn, Instant};

use super::route::route_of;
use super::{
    CHECKPOINT, Network, PLAN, RECEIVER, SAMPLE, SENDER, SENDER_SOON, START, STOP, WARMUP, index_of, kind_of, target_of,
};
use crate::counts::count;
use crate::flow_state::{Endpoint, Place};
use crate::hop::Hop;
use crate::packet::{Body, Direction, FlowId, Outgoing, Packet, QuickStart, Traffic};
use crate::pcapng::PacketFate;
use crate::tcp::{Segment, TcpAck};

impl Network {
    /// A packet enters the network.
    #[inline(always)]
    pub(super) fn send(&mut self, at: Instant, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let (first, counts) = (flow.enters[packet.direction as usize], &mut flow.counts);
        let counter = match packet.traffic() {
            Traffic::Data => {
                if let Body::TcpData { retransmission: true, .. } = packet.body {
                    count(&mut counts.retransmitted, 1, packet.size);
                }
                &mut counts.sent
            }
            Traffic::Dummy => &mut counts.dummies_sent,
            Traffic::Feedback => &mut counts.feedback_sent,
        };
        count(counter, 1, packet.size);
        // Into the store piece by piece: a packet that is copied as a whole right after it was written stalls, and so does one whose address goes out of
        // here.
        let Packet { sent_at, body, flow, size, direction, class, ecn, quick_start } = packet;
        if self.observed {
            let copy = Packet { sent_at, body, flow, size, direction, class, ecn, quick_start };
            self.note_fate(at, &copy, PacketFate::Sent);
        }
        if self.entrances.get(first as usize).is_some_and(|entrance| entrance.is_link) {
            let ticket = self.store.put(packet);
            return self.enter(at, ticket, Hop::link(first));
        }
        let copy = Packet { sent_at, body, flow, size, direction, class, ecn, quick_start };
        self.send_apart(at, copy);
    }

    /// [`Network::send`] to where no link comes first.
    #[inline(never)]
    fn send_apart(&mut self, at: Instant, packet: Packet) {
        let first = self.routes.first(route_of(packet.flow, packet.direction));
        self.forward_packet(at, packet, first);
    }

    /// Sends all that a sender wants to send now, and arms its timer.
    #[inline]
    pub(super) fn pump(&mut self, at: Instant, i: usize) {
        loop {
            let flow = &mut self.flows[i];
            let Endpoint::Tcp(tcp) = &mut flow.endpoint else { return self.pump_apart(at, i) };
            let Some(segment) = tcp.tx.poll_transmit(at) else {
                let (slow, fast) = (tcp.tx.poll_timeout(), tcp.poll_fast_timer());
                self.arm(i, SENDER, slow);
                return self.arm(i, SENDER_SOON, fast);
            };
            let Segment { seq, retransmission, ecn, cwr } = segment;
            let body = Body::TcpData { seq, retransmission, cwr };
            let (size, class) = (tcp.size_of(seq), flow.class_override.unwrap_or(Class::Normal));
            let direction = Direction::Forward;
            self.send(at, Packet { sent_at: at, body, flow: i as u32, size, direction, class, ecn, quick_start: None });
        }
    }

    /// [`Network::pump`] for all but TCP.
    #[inline(never)]
    fn pump_apart(&mut self, at: Instant, i: usize) {
        loop {
            let flow = &mut self.flows[i];
            let (body, size, class, ecn, quick_start) = match &mut flow.endpoint {
                Endpoint::Media(media) => match media.poll_transmit(at) {
                    Some(Outgoing { body, size, class, ecn, quick_start }) => (body, size, class, ecn, quick_start),
                    None => break,
                },
                Endpoint::Constant(constant) => match constant.poll_transmit(at) {
                    Some((seq, size, class)) => {
                        let option = constant.quick_start().map(QuickStart::Option);
                        (Body::Constant { seq }, size, class, Ecn::NotEct, option)
                    }
                    None => break,
                },
                Endpoint::Tcp(_) | Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => break,
            };
            let class = flow.class_override.unwrap_or(class);
            let direction = Direction::Forward;
            self.send(at, Packet { sent_at: at, body, flow: i as u32, size, direction, class, ecn, quick_start });
        }
        let flow = &mut self.flows[i];
        let (slow, fast) = match &flow.endpoint {
            Endpoint::Media(media) => {
                (flow.counts.produced, flow.counts.overflowed) = (media.produced, media.overflowed);
                let timers = (media.poll_slow_timer(), media.poll_timer());
                if media.stopped().is_some() {
                    self.each_base_station(|station, arq| {
                        station.leave(arq, at, i as FlowId);
                    });
                }
                timers
            }
            Endpoint::Constant(constant) => (Instant::NEVER, constant.poll_timer()),
            Endpoint::Tcp(_) | Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => return,
        };
        self.arm(i, SENDER, slow);
        self.arm(i, SENDER_SOON, fast);
    }

    /// Sends all that a media receiver wants to send now, and arms its timer.
    pub(super) fn pump_feedback(&mut self, at: Instant, i: usize) {
        loop {
            let flow = &mut self.flows[i];
            let Endpoint::Media(media) = &mut flow.endpoint else { return };
            let Some(Outgoing { body, size, class, quick_start, .. }) = media.poll_feedback(at) else {
                let timer = media.poll_feedback_timer();
                return self.arm(i, RECEIVER, timer);
            };
            let class = flow.class_override.unwrap_or(class);
            self.send_back(at, i, body, size, class, quick_start);
        }
    }

    #[inline]
    pub(super) fn send_tcp_ack(&mut self, at: Instant, i: usize, ack: TcpAck) {
        let flow = &self.flows[i];
        let class = flow.class_override.unwrap_or(Class::Normal);
        let TcpAck { next, sack, ece } = ack;
        self.send_back(at, i, Body::TcpAck { next, sack, ece }, flow.ack_size, class, None);
    }

    #[inline(always)]
    fn send_back(
        &mut self,
        at: Instant,
        i: usize,
        body: Body,
        size: u32,
        class: Class,
        quick_start: Option<QuickStart>,
    ) {
        let (direction, ecn) = (Direction::Back, Ecn::NotEct);
        self.send(at, Packet { sent_at: at, body, flow: i as u32, size, direction, class, ecn, quick_start });
    }

    /// Makes sure that this timer of flow `i` is looked at by `at`.
    #[inline(always)]
    pub(super) fn arm(&mut self, i: usize, kind: u32, at: Instant) {
        let armed = &mut self.flows[i].armed[slot_of(kind)];
        if at < *armed {
            *armed = at;
            self.events.push(at, target_of(kind, i as u32));
        }
    }

    /// An entry of a timer has come up: false if it was overtaken by an earlier one.
    fn disarm(&mut self, i: usize, kind: u32, at: Instant) -> bool {
        let armed = &mut self.flows[i].armed[slot_of(kind)];
        let valid = *armed == at;
        if valid {
            *armed = Instant::NEVER;
        } else {
            self.stats.idle_events += 1;
        }
        valid
    }

    /// A flow that came may be over when a timer has run out, and nothing will arrive that would tell. (A flow of its own keeps its place anyway.)
    #[inline(always)]
    fn retire_comer(&mut self, i: usize) {
        if let Place::Comer { .. } = self.flows[i].place {
            self.retire(i as FlowId);
        }
    }

    pub(super) fn other_event(&mut self, at: Instant, target: u32) {
        self.stats.timer_events += 1;
        let i = index_of(target) as usize;
        match kind_of(target) {
            kind @ (SENDER | SENDER_SOON) => {
                if !self.disarm(i, kind, at) {
                    return;
                }
                match &mut self.flows[i].endpoint {
                    Endpoint::Tcp(tcp) => {
                        self.stats.idle_events += u64::from(at < tcp.poll_timer());
                        tcp.on_timer(at);
                    }
                    Endpoint::Constant(constant) => constant.on_timer(at),
                    Endpoint::Over(_) => self.stats.idle_events += 1,
                    // Media's timers run inside `poll_transmit`.
                    Endpoint::Media(_) | Endpoint::External | Endpoint::Planned(_) => {}
                }
                self.pump(at, i);
                self.retire_comer(i);
            }
            RECEIVER => {
                if !self.disarm(i, RECEIVER, at) {
                    return;
                }
                match &mut self.flows[i].endpoint {
                    Endpoint::Tcp(tcp) => {
                        let ack = tcp.rx.on_timer(at);
                        let timer = tcp.rx.poll_timer();
                        self.arm(i, RECEIVER, timer);
                        match ack {
                            Some(ack) => self.send_tcp_ack(at, i, ack),
                            None => self.stats.idle_events += 1,
                        }
                    }
                    Endpoint::Media(_) => self.pump_feedback(at, i),
                    Endpoint::Over(_) => self.stats.idle_events += 1,
                    Endpoint::Constant(_) | Endpoint::External | Endpoint::Planned(_) => {}
                }
                self.retire_comer(i);
            }
            START => {
                let comes = matches!(self.flows[i].place, Place::Comer { .. });
                self.groups[self.flows[i].group as usize].flows += u32::from(comes);
                self.flows[i].start(at);
                if self.many && self.sampling.is_some() && !self.flows[i].ended {
                    self.sampled.insert(i as FlowId);
                }
                // Packets from outside come when they come: their driver says when their flow does.
                if !self.flows[i].ended && !matches!(self.flows[i].endpoint, Endpoint::External) {
                    self.each_base_station(|station, arq| {
                        station.join(arq, at, i as FlowId);
                    });
                }
                self.pump(at, i);
                if comes {
                    self.expect_next();
                }
            }
            STOP if !self.stops(i, at) => self.stats.idle_events += 1,
            STOP => {
                self.flows[i].stop();
                self.each_base_station(|station, arq| {
                    station.leave(arq, at, i as FlowId);
                });
                self.retire(i as FlowId);
                self.set_early_until();
            }
            SAMPLE => {
                self.sample(at);
                self.set_early_until();
            }
            WARMUP => self.end_warmup(at),
            PLAN => self.note_plans(at),
            CHECKPOINT => {
                self.settle_shared(at);
                for flow in &mut self.flows {
                    flow.note_checkpoint(at);
                }
                self.pass_checkpoint(at);
                self.set_early_until();
            }
            _ => debug_assert!(false, "media have their own"),
        }
    }
}

/// Where [`FlowState::armed`] keeps that timer.
const fn slot_of(kind: u32) -> usize {
    match kind {
        SENDER => 0,
        RECEIVER => 1,
        _ => 2,
    }
}
