//! A path of constant RTT that loses and delays as it is told, so that runs over it can be compared.

use crate::model::{Left, tell};
use crate::setup::{SIZE, Setup};
use crate::tcp::Tcp;
use fairpace_control::feedback::{Form, Message};
use fairpace_control::tfrc::receiver::{RatedArrival, ReceiverParams, TfrcReceiver};
use fairpace_control::{
    Ack, Arrival, Controller, Flow, FlowEvent, RateHeader, RateReport, ReceiverReport, SackReceiver, SackVector,
    Transmit,
};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, Via};
use std::collections::{BTreeMap, VecDeque};

/// The fate of each packet on the path, repeated for ever: lost, or how much later than the RTT its ACK comes.
pub(crate) type Fates = Vec<Option<Duration>>;

/// The visible course of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) sent: Vec<Left>,
    pub(crate) events: Vec<FlowEvent>,
    pub(crate) rates: Vec<(Instant, &'static str, f64)>,
    pub(crate) srtt: Option<Duration>,
}

/// How feedback is delivered.
pub(crate) struct Delivery {
    /// Each ACK so many times, in as many messages.
    pub(crate) copies: usize,
    /// Old ACKs again, at every wake-up: one in so many, none if 0.
    pub(crate) replay: usize,
    pub(crate) first_seq: [u64; 2],
    pub(crate) quantum: Duration,
    pub(crate) lead: Duration,
}

pub(crate) const PLAIN: Delivery =
    Delivery { copies: 1, replay: 0, first_seq: [0, 0], quantum: Duration::ZERO, lead: Duration::ZERO };

/// Feedback of any form.
#[derive(Clone, Copy)]
pub(crate) enum Feedback {
    Ack(Ack),
    Report(RateReport),
    Sack(SackVector),
    Rtcp(ReceiverReport),
}

impl Feedback {
    pub(crate) fn hand_to(self, flow: &mut Flow, now: Instant) {
        match self {
            Feedback::Ack(ack) => tell(flow, now, Message::acks(&[ack])),
            Feedback::Report(report) => tell(flow, now, Message::Measured(&report)),
            Feedback::Sack(sack) => tell(flow, now, Message::SackVector(&sack)),
            Feedback::Rtcp(report) => tell(flow, now, Message::Report(&report)),
        }
    }
}

/// The receiver half of a scheme that wants more than an ACK of each packet.
pub(crate) enum Receiver {
    Measures(Box<TfrcReceiver>),
    Sacks(SackReceiver),
    Counts(Rtcp),
}

/// A receiver that counts, and reports at even intervals from the first packet on.
pub(crate) struct Rtcp {
    pub(crate) interval: Duration,
    pub(crate) next: Instant,
    pub(crate) first: u64,
    pub(crate) highest: u64,
    pub(crate) received: u64,
}

impl Receiver {
    pub(crate) fn of(controller: &dyn Controller) -> Option<Receiver> {
        match controller.feedback_form() {
            Form::Ccfb | Form::Twcc => None,
            Form::Reports => {
                let interval = controller.report_interval().expect("it says how often");
                Some(Receiver::Counts(Rtcp { interval, next: Instant::NEVER, first: 0, highest: 0, received: 0 }))
            }
            Form::RtpTfrc => Some(Receiver::Measures(Box::new(TfrcReceiver::new(ReceiverParams::default())))),
            Form::SackVector => Some(Receiver::Sacks(SackReceiver::new(None))),
        }
    }

    pub(crate) fn on_packet(&mut self, now: Instant, arrival: &RatedArrival) {
        match self {
            Receiver::Measures(r) => r.on_packet(now, arrival),
            Receiver::Sacks(r) => {
                let RatedArrival { seq, ecn, .. } = *arrival;
                r.on_packet(now, &Arrival { kind: Kind::Data, class: Class::Normal, seq, ecn });
            }
            Receiver::Counts(r) => {
                if r.next == Instant::NEVER {
                    (r.next, r.first) = (now + r.interval, arrival.seq);
                }
                r.highest = r.highest.max(arrival.seq);
                r.received += 1;
            }
        }
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Feedback> {
        match self {
            Receiver::Measures(r) => r.poll(now).map(Feedback::Report),
            Receiver::Sacks(r) => r.poll(now).map(Feedback::Sack),
            Receiver::Counts(r) if r.next <= now => {
                r.next += r.interval;
                let lost = (r.highest - r.first + 1) as i64 - r.received as i64;
                let report = ReceiverReport::new(r.highest, 0.0, r.interval);
                Some(Feedback::Rtcp(ReceiverReport { lost: Some(lost), rtt: Some(RTT), ..report }))
            }
            Receiver::Counts(_) => None,
        }
    }

    pub(crate) fn next(&self) -> Instant {
        match self {
            Receiver::Measures(r) => r.next(),
            Receiver::Sacks(r) => r.next(),
            Receiver::Counts(r) => r.next,
        }
    }
}

/// The round trip of [`run`]'s path.
pub(crate) const RTT: Duration = Duration::from_millis(200);

/// The packets that its TCP half may have outstanding.
pub(crate) const WINDOW: usize = 40;

pub(crate) fn run(setup: &Setup, fates: &Fates, length: Duration, d: &Delivery) -> (Trace, Flow) {
    let mut flow = setup.flow(|p| (p.first_seq, p.quantum, p.lead) = (d.first_seq, d.quantum, d.lead));
    let mut receiver = Receiver::of(flow.controller());
    let rtt = RTT;
    let probes = setup.has_tcp_half();
    let mut tcp = Tcp::new();
    let mut tcp_acks: VecDeque<Instant> = VecDeque::new();
    let end = Instant::ZERO + length;
    let mut now = Instant::ZERO;
    let mut on_the_way: BTreeMap<(Instant, usize), Feedback> = BTreeMap::new();
    let mut to_receiver: BTreeMap<(Instant, usize), RatedArrival> = BTreeMap::new();
    let mut made = 0;
    let mut old: VecDeque<Feedback> = VecDeque::new();
    let mut trace = Trace { sent: Vec::new(), events: Vec::new(), rates: Vec::new(), srtt: None };
    flow.start(now, setup.srtt.map(|_| rtt));
    while now < end && trace.sent.len() < 3_000 {
        if let Some(receiver) = &mut receiver {
            while let Some(entry) = to_receiver.first_entry().filter(|e| e.key().0 <= now) {
                receiver.on_packet(now, &entry.remove());
            }
            while let Some(feedback) = receiver.poll(now) {
                made += 1;
                on_the_way.insert((now + rtt / 2, made), feedback);
            }
        }
        while let Some(entry) = on_the_way.first_entry().filter(|e| e.key().0 <= now) {
            let feedback = entry.remove();
            for _ in 0..d.copies {
                feedback.hand_to(&mut flow, now);
            }
            old.push_back(feedback);
        }
        if probes {
            while tcp_acks.front().is_some_and(|at| *at <= now) {
                tcp_acks.pop_front();
                tcp.progress.acked += SIZE;
            }
            tcp.given = tcp.progress.acked + Bytes::new(SIZE.get() * tcp_acks.len() as u64);
            flow.on_tcp(now, &tcp.progress);
            tcp.after(&mut flow, now);
        }
        if d.replay > 0 {
            for feedback in old.iter().step_by(d.replay) {
                feedback.hand_to(&mut flow, now);
            }
            old.truncate(2_000);
        }
        let until = loop {
            match flow.poll(now, flow.via() == Via::Udp || tcp_acks.len() < WINDOW) {
                Transmit::Send(p) => {
                    flow.on_sent(now, p, SIZE);
                    let n = trace.sent.len();
                    let fate = match p.via {
                        Via::Udp => fates[n % fates.len()],
                        Via::Tcp => {
                            tcp_acks.push_back(now + rtt);
                            tcp.given += SIZE;
                            Some(Duration::ZERO)
                        }
                    };
                    if probes && n % 3 == 2 {
                        flow.on_adu_end(now);
                        tcp.after(&mut flow, now);
                    }
                    match fate {
                        None => {}
                        Some(later) if receiver.is_some() => {
                            let header = RateHeader { sent_at: now, rtt: flow.srtt() };
                            let arrival = RatedArrival { seq: p.seq, size: SIZE, header, ecn: Ecn::NotEct };
                            to_receiver.insert((now + rtt / 2 + later, n), arrival);
                        }
                        Some(later) => {
                            let ack = Ack::immediate(p.kind, p.seq);
                            on_the_way.insert((now + rtt + later, n), Feedback::Ack(ack));
                        }
                    }
                    let base = d.first_seq[usize::from(p.kind == Kind::Dummy)];
                    trace.sent.push(Left { at: now, kind: p.kind, seq: p.seq - base });
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => break t,
                Transmit::Stopped(_) => {
                    now = end;
                    break end;
                }
            }
        };
        let status = flow.status();
        trace.rates.push((now, status.state, status.rate.as_bps()));
        let mut next = receiver.as_ref().map_or(until, |r| until.min(r.next()));
        next = on_the_way.first_key_value().map_or(next, |((at, _), _)| next.min(*at));
        next = tcp_acks.front().map_or(next, |at| next.min(*at));
        next = to_receiver.first_key_value().map_or(next, |((at, _), _)| next.min(*at));
        now = next.max(now);
    }
    trace.events = flow.drain_events().collect();
    trace.srtt = flow.srtt();
    (trace, flow)
}
