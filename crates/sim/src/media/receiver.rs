//! The receiver half of a media flow: which feedback goes back, and when.

use std::collections::VecDeque;

use fairpace_control::feedback::{Form, twcc};
use fairpace_control::packet_pair::BottleneckEstimator;
use fairpace_control::quick_start;
use fairpace_control::tfrc::receiver::{RatedArrival, TfrcReceiver};
use fairpace_control::{
    Ack, AckReceiver, Arrival, Controller, RateHeader, RateReport, ReceiverReport, SackReceiver, SackVector,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Kind, QsOption, QsResponse, Via};

use super::liar::{Liar, SentReport};
use crate::config::MediaConfig;
use crate::packet::{Body, Outgoing, QuickStart, micros};

/// Acknowledgements kept after they were sent, for feedback still on its way.
const LOG_LEN: usize = 65_536;

/// Transport-wide reports kept likewise.
const TRANSPORT_REPORTS_KEPT: usize = 4_096;

/// RTCP reports kept likewise: those of a minute, five times a second.
const REPORTS_KEPT: usize = 300;

/// The bytes that each further acknowledgement adds to a feedback packet: one metric block [RFC 8888 §3.1].
const BYTES_PER_ACK: u32 = 2;

/// The producer of feedback, by its [`Form`].
enum Feedback {
    Packets(AckReceiver),
    SackVector(SackReceiver),
    Twcc(Box<Twcc>),
    Measured(Box<TfrcReceiver>),
    /// RTCP reports only, which the other forms have beside their own feedback; with the bottleneck's rate.
    Reports(BottleneckEstimator),
}

/// Both ends of transport-wide feedback: here a number and its report go by way of the network, and their contents do not.
struct Twcc {
    sender: twcc::Sender,
    receiver: twcc::Receiver,
    /// The newest [`TRANSPORT_REPORTS_KEPT`] reports; the first has number `first`.
    reports: VecDeque<twcc::Report>,
    first: u64,
}

impl Twcc {
    /// The report that is due.
    fn poll(&mut self, now: Instant, liar: Option<&Liar>, ack_size: u32) -> Option<Outgoing> {
        let (from, report) = self.receiver.poll(now)?;
        let told = || (from..).zip(&report.deltas).filter_map(|(number, delta)| delta.map(|_| number));
        let proven = liar.is_none_or(|liar| liar.holds(told().filter_map(|number| self.sender.packet(number))));
        // A delta for each packet that has arrived, and a chunk for each seven told of.
        let size = ack_size + told().count() as u32 + 2 * report.deltas.len().div_ceil(7) as u32;
        if self.reports.len() == TRANSPORT_REPORTS_KEPT {
            self.reports.pop_front();
            self.first += 1;
        }
        self.reports.push_back(report.clone());
        let start = self.first + self.reports.len() as u64 - 1;
        let len = report.deltas.len() as u32;
        Some(Outgoing::feedback(Body::Feedback { start, len, proven }, size, Class::Normal))
    }
}

/// The contents of one feedback packet of the log.
#[derive(Clone, Copy, Default)]
pub(super) struct Batch<'a> {
    /// Packets of which nobody will tell.
    pub(super) untold: &'a [(Kind, u64)],
    /// Acknowledgements.
    pub(super) acks: &'a [Ack],
}

/// The header of an arriving packet.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) sent_at: Instant,
    /// As in [`Body::Media`].
    pub(super) note: u32,
}

/// The receiver half: acknowledgements and reports.
pub(super) struct Receiver {
    form: Form,
    feedback: Feedback,
    /// `None`: it is honest.
    liar: Option<Box<Liar>>,
    /// The answer to a Quick-Start request, for the next feedback.
    response: Option<QsResponse>,
    /// Acknowledgements sent in batches, the newest [`LOG_LEN`]; the first has number `log_start`.
    log: VecDeque<Ack>,
    /// A report that lies across the end of the log's ring.
    across: Vec<Ack>,
    log_start: u64,
    /// Feedback that came when its contents were forgotten.
    pub(super) expired: u64,
    pub(super) report_interval: Option<Duration>,
    next_report: Instant,
    last_report: Instant,
    /// The number that arrived first.
    base: u64,
    highest: Option<u64>,
    /// When it left.
    highest_sent_at: Instant,
    received: u64,
    /// Expected and received as of the last report.
    reported: (u64, u64),
    /// When the sender's last report left, and when it arrived.
    sender_report: Option<(Instant, Instant)>,
    /// The newest [`REPORTS_KEPT`] reports; the first has number `first_told`.
    told: VecDeque<SentReport>,
    first_told: u64,
}

impl Receiver {
    pub(super) fn new(config: &MediaConfig, controller: &dyn Controller, seed: u64) -> Self {
        let needed = controller.feedback_form();
        let form = config.form.filter(|form| form.serves(needed)).unwrap_or(needed);
        Receiver {
            form,
            feedback: match form {
                Form::Ccfb => Feedback::Packets(AckReceiver::new(config.feedback)),
                Form::SackVector => Feedback::SackVector(SackReceiver::new(config.feedback)),
                Form::Twcc => Feedback::Twcc(Box::new(Twcc {
                    sender: twcc::Sender::new(0, None),
                    receiver: twcc::Receiver::new(config.feedback),
                    reports: VecDeque::new(),
                    first: 0,
                })),
                Form::RtpTfrc => Feedback::Measured(Box::new(TfrcReceiver::new(controller.receiver_params()))),
                Form::Reports => Feedback::Reports(BottleneckEstimator::new()),
            },
            liar: Liar::new(config.receiver, matches!(form, Form::RtpTfrc | Form::Reports), seed),
            response: None,
            log: VecDeque::new(),
            across: Vec::new(),
            log_start: 0,
            expired: 0,
            report_interval: controller.report_interval().or(config.report_interval).filter(|i| !i.is_zero()),
            next_report: Instant::NEVER,
            last_report: Instant::ZERO,
            base: 0,
            highest: None,
            highest_sent_at: Instant::ZERO,
            received: 0,
            reported: (0, 0),
            sender_report: None,
            told: VecDeque::new(),
            first_told: 0,
        }
    }

    /// In which form it tells.
    pub(super) const fn form(&self) -> Form {
        self.form
    }

    /// The header field of the packet that leaves now, number `seq` of its kind.
    pub(super) fn note(&mut self, kind: Kind, seq: u64, srtt: Option<Duration>) -> u32 {
        if let Feedback::Twcc(t) = &mut self.feedback {
            let number = t.sender.next_number();
            t.sender.on_sent(kind, seq);
            return number as u32;
        }
        srtt.map_or(0, micros)
    }

    /// Whether feedback tells of congestion marks: only then may packets be ECN-capable.
    pub(super) fn tells_of_marks(&self) -> bool {
        self.form != Form::Twcc
    }

    /// A packet has arrived.
    pub(super) fn on_packet(&mut self, now: Instant, arrival: &Arrival, size: Bytes, header: &Header, via: Via) {
        match &mut self.liar {
            None => self.take(now, arrival, size, header, via),
            Some(liar) => {
                for shown in liar.on_packet(now, arrival, header.sent_at) {
                    // A packet that it makes up has a number as far from this one's.
                    let note = header.note.wrapping_add(shown.seq.wrapping_sub(arrival.seq) as u32);
                    self.take(now, &shown, size, &Header { note, ..*header }, via);
                }
            }
        }
    }

    fn take(&mut self, now: Instant, arrival: &Arrival, size: Bytes, header: &Header, via: Via) {
        if arrival.kind == Kind::Data {
            if self.highest.is_none()
                && let Some(interval) = self.report_interval
            {
                self.base = arrival.seq;
                (self.last_report, self.next_report) = (now, now + interval);
            }
            if self.highest.is_none_or(|highest| arrival.seq > highest) {
                self.highest = Some(arrival.seq);
                self.highest_sent_at = header.sent_at;
            }
            self.received += 1;
        }
        match &mut self.feedback {
            Feedback::Packets(acks) => acks.on_packet(now, arrival),
            Feedback::SackVector(acks) => acks.on_packet(now, arrival),
            Feedback::Twcc(t) => {
                t.receiver.on_packet(now, header.note as u16);
            }
            Feedback::Measured(tfrc) => {
                let Arrival { seq, ecn, .. } = *arrival;
                let rtt = (header.note > 0).then(|| Duration::from_micros(header.note.into()));
                let header = RateHeader { sent_at: header.sent_at, rtt };
                tfrc.on_packet(now, &RatedArrival { seq, size, header, ecn });
            }
            Feedback::Reports(pairs) => {
                if via == Via::Udp {
                    pairs.on_packet(now, arrival.seq, size);
                }
            }
        }
    }

    /// A report of the sender has arrived that left at `sent_at`.
    pub(super) fn on_sender_report(&mut self, now: Instant, sent_at: Instant) {
        if self.sender_report.is_none_or(|(last, _)| sent_at > last) {
            self.sender_report = Some((sent_at, now));
        }
    }

    /// The packet that arrived last has a Quick-Start option. A request for nothing, or one that a router has
    /// refused, gets no answer [RFC 4782 §4.3].
    pub(super) fn on_quick_start(&mut self, now: Instant, option: &QsOption) {
        let Some(response) = quick_start::answer(option) else { return };
        self.response = Some(self.liar.as_mut().map_or(response, |liar| liar.raise(response)));
        match &mut self.feedback {
            Feedback::Packets(acks) => acks.on_quick_start_request(now),
            Feedback::Twcc(t) => t.receiver.hurry(now),
            // The answer goes with the next acknowledgement, which is due at the latest in its interval.
            Feedback::SackVector(_) | Feedback::Reports(_) => {}
            Feedback::Measured(tfrc) => tfrc.on_quick_start_request(now),
        }
    }

    pub(super) fn poll(&mut self, now: Instant, ack_size: u32) -> Option<Outgoing> {
        if let Some(again) = self.liar.as_mut().and_then(|liar| liar.repeat()) {
            return Some(again);
        }
        if now >= self.next_report {
            let report = self.report(now, ack_size);
            // Beside other feedback it is not worth a lie of its own.
            if let (Some(liar), Feedback::Reports(_)) = (&mut self.liar, &self.feedback) {
                liar.on_feedback(report);
            }
            return Some(report);
        }
        let mut feedback = self.feedback(now, ack_size)?;
        feedback.quick_start = self.response.take().map(QuickStart::Response);
        if let Some(liar) = &mut self.liar {
            liar.on_feedback(feedback);
        }
        Some(feedback)
    }

    fn feedback(&mut self, now: Instant, ack_size: u32) -> Option<Outgoing> {
        let acks = match &mut self.feedback {
            Feedback::Packets(acks) => acks,
            Feedback::SackVector(acks) => return acks.poll(now).map(|sack| self.sack_vector(&sack, ack_size)),
            Feedback::Measured(tfrc) => return tfrc.poll(now).map(|report| self.rate_report(now, &report, ack_size)),
            Feedback::Twcc(t) => return t.poll(now, self.liar.as_deref(), ack_size),
            Feedback::Reports(_) => return None,
        };
        let feedback = acks.poll(now)?;
        let class = feedback.class;
        let proven =
            self.liar.as_ref().is_none_or(|liar| liar.holds(feedback.acks.iter().map(|ack| (ack.kind, ack.seq))));
        let lie = self.liar.as_ref().map_or(Duration::ZERO, |liar| liar.extra_delay());
        if let [Ack { kind, seq, ecn, arrived_at, ack_delay: Duration::ZERO }] = *feedback.acks
            && lie.is_zero()
        {
            let arrived_at = Instant::ZERO + arrived_at.unwrap_or_default();
            return Some(Outgoing::feedback(Body::MediaAck { kind, ecn, proven, seq, arrived_at }, ack_size, class));
        }
        let (start, len) = (self.log_start + self.log.len() as u64, feedback.acks.len() as u32);
        self.log.extend(feedback.acks.iter().map(|ack| Ack { ack_delay: ack.ack_delay + lie, ..*ack }));
        let excess = self.log.len().saturating_sub(LOG_LEN);
        self.log.drain(..excess);
        self.log_start += excess as u64;
        let body = Body::Feedback { start, len, proven };
        Some(Outgoing::feedback(body, ack_size + BYTES_PER_ACK * (len - 1), class))
    }

    fn sack_vector(&self, sack: &SackVector, ack_size: u32) -> Outgoing {
        let SackVector { ack, vector, rwnd, ecn, ack_delay, .. } = *sack;
        let mut delay = ack_delay;
        let mut proven = true;
        if let Some(liar) = &self.liar {
            delay += liar.extra_delay();
            // Packet ack_a is one of the latest that came, or were claimed.
            let ack = self.highest.and_then(|highest| sack.unwrap_near(highest + 1));
            proven = ack.is_none_or(|ack| liar.holds(sack.numbers(ack).map(|seq| (Kind::Data, seq))));
        }
        let (delay_us, sent_at) = (micros(delay), self.highest_sent_at);
        let body = Body::SackVector { vector, ecn, proven, ack, rwnd, delay_us, sent_at };
        Outgoing::feedback(body, ack_size, Class::Normal)
    }

    fn rate_report(&self, now: Instant, report: &RateReport, ack_size: u32) -> Outgoing {
        let mut report = *report;
        if let Some(liar) = &self.liar {
            liar.embellish(now, &mut report);
        }
        let RateReport { echoed, delay, received_rate, loss_event_rate } = report;
        let body = Body::RateReport { delay_us: micros(delay), echoed, received_rate, loss_event_rate };
        Outgoing::feedback(body, ack_size, Class::Normal)
    }

    /// When feedback other than an RTCP report is due.
    pub(super) fn next_feedback(&self) -> Instant {
        match &self.feedback {
            Feedback::Packets(acks) => acks.next(),
            Feedback::SackVector(acks) => acks.next(),
            Feedback::Twcc(t) => t.receiver.next(),
            Feedback::Measured(tfrc) => tfrc.next(),
            Feedback::Reports(_) => Instant::NEVER,
        }
    }

    pub(super) fn next(&self) -> Instant {
        self.next_feedback().min(self.next_report)
    }

    /// The contents of the feedback that begins at `start`, now that it has reached the sender; empty if they are
    /// forgotten.
    pub(super) fn logged(&mut self, start: u64, len: u32) -> Batch<'_> {
        if let Feedback::Twcc(t) = &mut self.feedback {
            let report = start.checked_sub(t.first).and_then(|place| t.reports.get(place as usize));
            self.expired += u64::from(report.is_none());
            let heard = report.and_then(|report| t.sender.on_report(report).ok());
            return heard.map_or(Batch::default(), |h| Batch { untold: h.untold, acks: h.acks });
        }
        let Some(first) = start.checked_sub(self.log_start).map(|f| f as usize) else {
            self.expired += 1;
            return Batch::default();
        };
        let end = (first + len as usize).min(self.log.len());
        let (head, tail) = self.log.as_slices();
        let acks = if end <= head.len() {
            &head[first.min(end)..end]
        } else if let Some(first) = first.checked_sub(head.len()) {
            &tail[first.min(tail.len())..end - head.len()]
        } else {
            // The ring's end lies within: one report stays one.
            self.across.clear();
            self.across.extend(self.log.range(first..end));
            &self.across
        };
        Batch { untold: &[], acks }
    }

    /// The contents of the report with that number, which reaches the sender now. The round trip is what LSR and DLSR
    /// tell, without the rounding to 2^-16 s.
    pub(super) fn told(&mut self, now: Instant, number: u64) -> Option<ReceiverReport> {
        let told = number.checked_sub(self.first_told).and_then(|place| self.told.get(place as usize)).copied();
        self.expired += u64::from(told.is_none());
        let SentReport { report, echo } = told?;
        let rtt = echo.and_then(|(left, held)| now.since(left).checked_sub(held));
        Some(ReceiverReport { rtt, ..report })
    }

    /// [RFC 3550 §6.4.1, §A.3]
    fn report(&mut self, now: Instant, ack_size: u32) -> Outgoing {
        let highest = self.highest.unwrap_or(0);
        let expected_in_all = highest + 1 - self.base;
        let (expected, received) = (expected_in_all - self.reported.0, self.received - self.reported.1);
        let lost = expected.saturating_sub(received);
        let fraction_lost = if expected == 0 { 0.0 } else { 1.0 - received as f32 / expected as f32 };
        let interval = now.since(self.last_report);
        self.reported = (expected_in_all, self.received);
        self.last_report = now;
        self.next_report = now + self.report_interval.unwrap_or(Duration::MAX);
        let mut told = SentReport {
            report: ReceiverReport::new(highest, f64::from(fraction_lost.clamp(0.0, 1.0)), interval),
            echo: self.sender_report.map(|(left, arrived)| (left, now.since(arrived))),
        };
        if let Feedback::Reports(pairs) = &self.feedback {
            // The field has eight bits, the counter beside it is exact.
            told.report.fraction_lost = (256 * lost).checked_div(expected).unwrap_or(0) as f64 / 256.0;
            told.report.lost = Some(expected_in_all as i64 - self.received as i64);
            told.report.bottleneck = pairs.estimate();
            if let Some(liar) = &self.liar {
                liar.embellish_receiver_report(&mut told);
            }
        }
        if self.told.len() == REPORTS_KEPT {
            self.told.pop_front();
            self.first_told += 1;
        }
        self.told.push_back(told);
        let number = self.first_told + self.told.len() as u64 - 1;
        Outgoing::feedback(Body::Report { number }, ack_size, Class::Normal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ControllerSpec, ReceiverBehaviour};
    use fairpace_control::{Env, FlowParams};
    use fairpace_units::Ecn;

    /// 2 packets/s in pairs of [`BottleneckEstimator`]'s rule 1 ms apart, 552 B: 4.416 Mbit/s. Numbers 40 to 49 are lost,
    /// and 96 to 127 come over TCP, in pairs that would say 44.16 Mbit/s.
    #[test]
    fn a_receiver_report_counts_all_packets_measures_pairs_over_udp_only_and_answers_the_senders_report() {
        let env = Env::default();
        let config = MediaConfig::new(ControllerSpec::named("lda", env), FlowParams::new(&env));
        let controller = super::super::controller(&config).unwrap();
        let mut receiver = Receiver::new(&config, &*controller, 1);
        let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut reports = Vec::new();
        for seq in (0..176).filter(|seq| !(40..50).contains(seq)) {
            let via = if (96..128).contains(&seq) { Via::Tcp } else { Via::Udp };
            let gap = if via == Via::Tcp { Duration::from_micros(100) } else { Duration::from_millis(1) };
            let at = if seq % 16 == 1 { ms(500 * (seq - 1)) + gap } else { ms(500 * seq) };
            if seq == 100 {
                receiver.on_sender_report(ms(49_970), ms(49_930));
            }
            let arrival = Arrival { kind: Kind::Data, class: Class::Normal, seq, ecn: Ecn::NotEct };
            receiver.on_packet(at, &arrival, Bytes::new(552), &Header { sent_at: at, note: 0 }, via);
            while let Some(Outgoing { body: Body::Report { number }, .. }) = receiver.poll(at, 40) {
                reports.push(receiver.told(at + Duration::from_millis(30), number).unwrap());
            }
        }
        let lost = |n: usize| (reports[n].highest_seq, reports[n].fraction_lost, reports[n].lost);
        // Of the 11 from 40 to 50 ten are missing: 232.7/256.
        let with = reports.iter().position(|r| r.fraction_lost > 0.0).unwrap();
        assert_eq!(lost(with - 1).2, Some(0));
        assert_eq!((lost(with).1 * 256.0).fract(), 0.0);
        assert!((0.8..10.0 / 11.0).contains(&lost(with).1), "{:?}", lost(with));
        let last = reports.last().unwrap();
        assert_eq!((last.lost, last.bottleneck), (Some(10), Some(fairpace_units::Rate::mbps(4.416))));
        // The pair that ends at 160 is the eighth to count: one pair was lost, two came over TCP.
        assert!(reports.iter().filter(|r| r.highest_seq < 161).all(|r| r.bottleneck.is_none()), "{reports:?}");
        // 40 ms there, 30 ms back, however long it was held.
        assert!(reports.iter().all(|r| r.rtt.is_none() || r.rtt == Some(Duration::from_millis(70))));
        assert_eq!(last.rtt, Some(Duration::from_millis(70)));
    }

    /// Packet 0 and, in the same instant, a number that never left: an ACK of what came, with its proof, then one without.
    #[test]
    fn a_sack_vector_is_proven_by_the_packets_that_it_names_itself() {
        let env = Env::default();
        let spec = ControllerSpec::named("aimd", env);
        let config =
            MediaConfig { receiver: ReceiverBehaviour::Invented, ..MediaConfig::new(spec, FlowParams::new(&env)) };
        let controller = super::super::controller(&config).unwrap();
        let mut receiver = Receiver::new(&config, &*controller, 1);
        let arrival = Arrival { kind: Kind::Data, class: Class::Normal, seq: 0, ecn: Ecn::NotEct };
        let header = Header { sent_at: Instant::ZERO, note: 0 };
        receiver.on_packet(Instant::ZERO, &arrival, Bytes::new(125), &header, Via::Udp);
        let told: Vec<(bool, bool)> = std::iter::from_fn(|| receiver.poll(Instant::ZERO, 40))
            .filter_map(|feedback| match feedback.body {
                Body::SackVector { ack, proven, .. } => Some((ack == 0, proven)),
                _ => None,
            })
            .collect();
        assert_eq!(told, [(true, true), (false, false)]);
    }
}
