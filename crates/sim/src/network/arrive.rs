//! The end of a route: the endpoint says what came of the packet, the network counts that once and does what follows.

use fairpace_control::feedback::Message;
use fairpace_control::{Ack, RateReport, SackVector};
use fairpace_path::Count;
use fairpace_units::{Duration, Ecn, Instant, Kind};

use super::notes::Group;
use super::{Delivered, Network, RECEIVER, nanos};
use crate::counts::count;
use crate::flow_state::{Endpoint, FlowState};
use crate::media::{Delivery, MediaEndpoint};
use crate::packet::{Body, Direction, FlowId, Packet, QuickStart, Traffic};
use crate::tcp::TcpAck;
use crate::tcp::endpoint::TcpEndpoint;

/// The outcome of a packet at its endpoint.
struct Outcome {
    /// Data that its receiver has for the first time; over TCP, data that is in order now.
    unique: Count,
    /// Data packets that its sender knows now to have arrived.
    acknowledged: u64,
    /// A packet that is delivered to the application.
    delivery: Option<Delivery>,
    next: Next,
}

/// The action that follows a packet's arrival.
enum Next {
    Nothing,
    /// The sender is asked for packets.
    Send,
    /// The receiver is asked for feedback.
    Feedback,
    /// The packet goes back as it came.
    Return,
    /// The packet is handed to whoever injected it.
    Hand,
}

impl Outcome {
    #[inline]
    fn then(next: Next) -> Self {
        Outcome { unique: Count::default(), acknowledged: 0, delivery: None, next }
    }
}

impl Network {
    /// The packet of that place in the store has passed its last hop.
    #[inline(never)]
    pub(super) fn arrive(&mut self, at: Instant, place: u32) {
        match self.store.take_brief(place) {
            Some(brief) => self.see_arrival(at, brief.packet(), |network| network.store.at_place(place)),
            None => self.arrive_whole(at, place),
        }
    }

    /// [`Network::arrive`] of a packet that is no brief.
    #[inline(never)]
    fn arrive_whole(&mut self, at: Instant, place: u32) {
        let packet = self.store.take_whole(place);
        self.see_arrival(at, packet, |network| network.store.at_place(place));
    }

    /// As [`Network::arrive`], of a packet that is in no store.
    #[inline(never)]
    pub(super) fn arrive_from_afar(&mut self, at: Instant, packet: Packet) {
        self.see_arrival(at, packet, |_| packet);
    }

    /// A packet has passed its last hop. Of TCP's only what is asked for is read; a packet whose address went out of here would be copied
    /// as a whole, so for others it is given once more.
    #[inline(always)]
    fn see_arrival(&mut self, at: Instant, packet: Packet, again: impl Fn(&Network) -> Packet) {
        if self.observed {
            let packet = again(self);
            self.note_fate(at, &packet, crate::PacketFate::Received);
        }
        let i = packet.flow as usize;
        let groups = if self.many { self.groups.as_mut_slice() } else { &mut [] };
        self.flows[i].count_arrival(at, &packet, groups);
        match (&mut self.flows[i].endpoint, packet.body) {
            (Endpoint::Tcp(tcp), Body::TcpData { seq, cwr, .. }) => {
                let (unique, ack) = tcp.on_segment(at, &packet, seq, cwr);
                let timer = tcp.rx.poll_timer();
                count(&mut self.flows[i].counts.unique, unique, packet.size);
                self.arm(i, RECEIVER, timer);
                if let Some(ack) = ack {
                    self.send_tcp_ack(at, i, ack);
                }
            }
            (Endpoint::Tcp(tcp), Body::TcpAck { next, sack, ece }) => {
                let acknowledged = tcp.on_ack(at, &TcpAck { next, sack, ece });
                let finished = tcp.finished.is_some();
                let flow = &mut self.flows[i];
                flow.counts.acknowledged += acknowledged;
                flow.finished = finished;
                self.pump(at, i);
            }
            _ => {
                let packet = again(self);
                self.arrive_apart(at, &packet);
            }
        }
        self.retire(i as FlowId);
    }

    /// [`Network::arrive`] for all but TCP.
    #[inline(never)]
    fn arrive_apart(&mut self, at: Instant, packet: &Packet) {
        let outcome = match &mut self.flows[packet.flow as usize].endpoint {
            Endpoint::Media(media) => media.arrive(at, packet),
            _ => unheard(packet),
        };
        self.conclude(at, packet, outcome);
    }

    /// Counts what came of a packet, and does what follows.
    fn conclude(&mut self, at: Instant, packet: &Packet, outcome: Outcome) {
        let i = packet.flow as usize;
        let counts = &mut self.flows[i].counts;
        let Outcome { unique, acknowledged, mut delivery, next } = outcome;
        counts.unique.packets += unique.packets;
        counts.unique.bytes += unique.bytes;
        counts.acknowledged += acknowledged;
        while let Some(Delivery { size, born, late }) = delivery {
            let flow = &mut self.flows[i];
            count(&mut flow.counts.late, u64::from(late), size);
            delivery = match &mut flow.endpoint {
                Endpoint::Media(media) => media.take_delivered(at, packet),
                _ => None,
            };
            self.note_e2ed(i, at.since(born), born);
        }
        match next {
            Next::Nothing => {}
            Next::Send => self.pump(at, i),
            Next::Feedback => self.pump_feedback(at, i),
            Next::Return => self.send(at, Packet { direction: Direction::Back, sent_at: at, ..*packet }),
            Next::Hand => self.hand_over(at, packet),
        }
    }

    /// A packet of somebody else's is ready to be taken.
    fn hand_over(&mut self, at: Instant, packet: &Packet) {
        let Packet { flow, direction, ecn, body, .. } = *packet;
        let Body::External { token, rwnd, .. } = body else { return };
        let quick_start = match packet.quick_start {
            Some(QuickStart::Option(option)) => Some(option),
            Some(QuickStart::Response(_)) | None => None,
        };
        self.delivered.push_back(Delivered { flow, direction, token, ecn, quick_start, rwnd, at });
    }
}

impl FlowState {
    /// Counts a packet that has arrived. The groups are those of many flows, or none.
    #[inline(always)]
    fn count_arrival(&mut self, at: Instant, packet: &Packet, groups: &mut [Group]) {
        let (counts, size) = (&mut self.counts, packet.size);
        if packet.ecn == Ecn::Ce && packet.direction == Direction::Forward {
            count(&mut counts.marked, 1, size);
        }
        match packet.traffic() {
            Traffic::Data => {
                count(&mut counts.received, 1, size);
                let owd = at.as_nanos().saturating_sub(packet.sent_at.as_nanos());
                match groups.get_mut(self.group as usize) {
                    Some(group) if group.shared => self.owd.record_among(owd, &mut group.owd),
                    Some(_) | None => self.owd.record_ns(owd),
                }
                if owd > self.delay_bound {
                    count(&mut counts.outage, 1, size);
                }
            }
            Traffic::Dummy => count(&mut counts.dummies_received, 1, size),
            Traffic::Feedback => {
                count(&mut counts.feedback_received, 1, size);
                if let Body::SackVector { sent_at, .. } = packet.body {
                    counts.rtt_samples += 1;
                    counts.rtt_outage += u64::from(nanos(at.since(sent_at)) > self.rtt_bound);
                }
            }
        }
    }
}

impl TcpEndpoint {
    /// A segment has arrived: how many are in order that were not, and the ACK to send at once.
    #[inline]
    fn on_segment(&mut self, at: Instant, packet: &Packet, seq: u32, cwr: bool) -> (u64, Option<TcpAck>) {
        let before = self.rx.in_order();
        if cwr || packet.ecn == Ecn::Ce {
            self.rx.on_ecn(packet.ecn == Ecn::Ce, cwr);
        }
        let ack = self.rx.on_segment(at, seq);
        (u64::from(self.rx.in_order() - before), ack)
    }

    /// How many segments it acknowledges.
    #[inline]
    fn on_ack(&mut self, at: Instant, ack: &TcpAck) -> u64 {
        let before = self.tx.acknowledged();
        self.tx.on_ack(at, ack);
        self.note_progress(at);
        u64::from(self.tx.acknowledged() - before)
    }
}

impl MediaEndpoint {
    fn arrive(&mut self, at: Instant, packet: &Packet) -> Outcome {
        match packet.body {
            Body::Media { kind, frame, note, seq, born } => {
                let mut outcome = Outcome::then(Next::Feedback);
                if kind == Kind::Data {
                    count(&mut outcome.unique, 1, packet.size);
                    let late = self.on_data(at, seq, frame, born);
                    outcome.delivery = Some(Delivery { size: packet.size, born, late });
                }
                self.on_packet(at, packet, kind, seq, note);
                outcome
            }
            Body::TcpData { seq, cwr, .. } => {
                let unique = self.on_segment(at, packet, seq, cwr);
                let delivery = self.take_delivered(at, packet);
                Outcome { unique, delivery, ..Outcome::then(Next::Feedback) }
            }
            Body::TcpAck { next, sack, ece } => {
                let acknowledged = u64::from(self.on_tcp_ack(at, &TcpAck { next, sack, ece }));
                Outcome { acknowledged, ..Outcome::then(Next::Send) }
            }
            Body::SenderReport => {
                self.on_sender_report(at, packet.sent_at);
                Outcome::then(Next::Nothing)
            }
            Body::Challenge { .. } if packet.direction == Direction::Forward => Outcome::then(Next::Return),
            Body::Constant { .. } | Body::External { .. } => unheard(packet),
            _ => {
                let before = self.flow.counters().data.acked;
                self.on_feedback_packet(at, packet);
                let acknowledged = self.flow.counters().data.acked.saturating_sub(before);
                Outcome { acknowledged, ..Outcome::then(Next::Send) }
            }
        }
    }

    /// Feedback of its receiver's, or the answer to its challenge.
    fn on_feedback_packet(&mut self, at: Instant, packet: &Packet) {
        match packet.body {
            Body::MediaAck { kind, ecn, proven, seq, arrived_at } => {
                let arrived_at = Some(arrived_at.since(Instant::ZERO));
                let ack = Ack { kind, seq, ecn, arrived_at, ack_delay: Duration::ZERO };
                self.on_feedback(at, Message::Acks { acks: &[ack], made_at: arrived_at }, proven);
            }
            Body::Feedback { start, len, proven } => self.on_batch(at, packet.sent_at, (start, len), proven),
            Body::SackVector { vector, ecn, proven, ack, rwnd, delay_us, .. } => {
                let ack_delay = Duration::from_micros(delay_us.into());
                let arrived_at = Some(packet.sent_at.since(Instant::ZERO).saturating_sub(ack_delay));
                let sack = SackVector { ack, vector, rwnd, ecn, ack_delay, arrived_at };
                self.on_feedback(at, Message::SackVector(&sack), proven);
            }
            Body::RateReport { delay_us, echoed, received_rate, loss_event_rate } => {
                let delay = Duration::from_micros(delay_us.into());
                let report = RateReport { echoed, delay, received_rate, loss_event_rate };
                self.on_feedback(at, Message::Measured(&report), true);
            }
            Body::Report { number } => self.on_report(at, number),
            Body::Challenge { asked_at, rwnd } => self.on_challenge_answered(at, asked_at, rwnd),
            Body::TcpData { .. }
            | Body::TcpAck { .. }
            | Body::Media { .. }
            | Body::SenderReport
            | Body::Constant { .. }
            | Body::External { .. } => debug_assert!(false, "no feedback"),
        }
        if let Some(QuickStart::Response(response)) = &packet.quick_start {
            self.on_quick_start_response(at, response);
        }
    }
}

/// No endpoint of ours hears of this packet.
#[cold]
fn unheard(packet: &Packet) -> Outcome {
    let (next, is_data) = match packet.body {
        Body::External { .. } => (Next::Hand, packet.traffic() == Traffic::Data),
        Body::Constant { .. } => (Next::Nothing, true),
        _ => (Next::Nothing, false),
    };
    let mut outcome = Outcome::then(next);
    count(&mut outcome.unique, u64::from(is_data), packet.size);
    outcome
}
