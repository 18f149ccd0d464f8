//! The invariants after every operation, whatever came before.

use crate::operation::Operation;
use crate::setup::{SIZE, Setup};
use crate::tcp::Tcp;
use fairpace_control::feedback::Message;
use fairpace_control::{Ack, Flow, QuickStartParams, RateReport, ReceiverReport, SackVector, Safety, Transmit};
use fairpace_units::{
    Bytes, Duration, Instant, Kind, QsFunction, QsNonce, QsOption, QsRate, QsResponse, RandomStream, Via,
};

/// A packet as the model saw it leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) at: Instant,
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
}

pub(crate) struct Model {
    pub(crate) setup: Setup,
    has_tcp_half: bool,
    pub(crate) flow: Flow,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<Left>,
    /// How many of `sent` are dummies.
    pub(crate) dummies: u64,
    /// Quick-Start options that left, and the last rate that was approved.
    pub(crate) options: Vec<(Instant, QsOption)>,
    pub(crate) approved: Option<QsRate>,
    pub(crate) routers: RandomStream,
    pub(crate) tcp: Tcp,
    /// The longest round trip that an acknowledgement has shown: a scheme may keep an SRTT of its own.
    longest_rtt: Duration,
}

impl Model {
    pub(crate) fn new(setup: Setup) -> Model {
        Model::with(setup, None)
    }

    /// A flow that asks the routers, if `quick_start` says for what.
    pub(crate) fn with(setup: Setup, quick_start: Option<QuickStartParams>) -> Model {
        let mut flow = setup.flow(|p| p.quick_start = quick_start);
        assert_eq!(flow.poll(Instant::ZERO, true), Transmit::WaitForFeedback(Instant::NEVER), "not started");
        flow.start(Instant::ZERO, setup.srtt);
        Model {
            has_tcp_half: setup.has_tcp_half(),
            setup,
            flow,
            now: Instant::ZERO,
            sent: Vec::new(),
            dummies: 0,
            options: Vec::new(),
            approved: None,
            routers: RandomStream::named(1, "routers"),
            tcp: Tcp::new(),
            longest_rtt: Duration::ZERO,
        }
    }

    /// An acknowledgement of what left then.
    fn on_answer(&mut self, left: Option<Instant>) {
        self.longest_rtt = self.longest_rtt.max(left.map_or(Duration::ZERO, |left| self.now.since(left)));
    }

    /// Polls and sends until a wait; gives its instant.
    pub(crate) fn drain(&mut self, has_data: bool) -> Instant {
        let mut burst = 0;
        if self.has_tcp_half {
            self.tcp.drive(&mut self.flow, self.now);
        }
        loop {
            let has_data = has_data && (self.flow.via() == Via::Udp || self.tcp.has_room());
            let via = self.flow.via();
            let answer = self.flow.poll(self.now, has_data);
            assert_eq!(answer, self.flow.poll(self.now, has_data), "asked twice");
            assert_eq!(via, self.flow.via(), "it changes at the end of a data unit and when TCP is drained only");
            match answer {
                Transmit::Send(p) => {
                    assert!(has_data || p.kind == Kind::Dummy, "sent data that is not there");
                    self.flow.on_sent(self.now, p, SIZE);
                    self.sent.push(Left { at: self.now, kind: p.kind, seq: p.seq });
                    self.options.extend(p.quick_start.map(|option| (self.now, option)));
                    self.dummies += u64::from(p.kind == Kind::Dummy);
                    burst += 1;
                    if p.via == Via::Tcp {
                        self.tcp.given += SIZE;
                    }
                    if self.has_tcp_half && p.seq % 3 == 2 {
                        self.flow.on_adu_end(self.now);
                        self.tcp.after(&mut self.flow, self.now);
                    }
                }
                Transmit::WaitUntil(t) | Transmit::WaitForData(t) | Transmit::WaitForFeedback(t) => {
                    assert!(t > self.now, "a wait for what is past");
                    self.check_burst(burst);
                    return t;
                }
                Transmit::Stopped(_) => return Instant::NEVER,
            }
        }
    }

    /// At one instant no more leaves than one RTT of the rate (5 ms where that is shorter), nor than
    /// 25 ms of it, and one packet each of data and dummies. (Dummies: twice the data rate in Detected; S_Target in
    /// Initial.)
    pub(crate) fn check_burst(&self, burst: usize) {
        let max = self.setup.env.max_rate.as_packets_per_second(SIZE);
        let rtt = self.flow.srtt().unwrap_or(Duration::from_secs(1)).max(self.longest_rtt);
        let rtt = rtt.clamp(Duration::from_millis(5), Duration::from_millis(25)).as_secs_f64();
        let allowed = match self.setup.env.safety {
            // The cap leaves room for one packet at a time.
            Safety::Default => 1.0,
            Safety::Paper => 3.0 * max * rtt + 2.0,
        };
        assert!(burst as f64 <= allowed + 1e-6, "{burst} packets at once, {allowed} allowed");
    }

    pub(crate) fn apply(&mut self, op: &Operation) {
        match *op {
            Operation::Drive { at_most, has_data } => {
                let end = self.now + at_most;
                loop {
                    let until = self.drain(has_data);
                    if until >= end || self.sent.len() > 5_000 {
                        break;
                    }
                    self.now = until;
                    self.check();
                }
                self.now = self.now.max(end);
            }
            Operation::Stall(late) => {
                let until = self.drain(true);
                self.now = if until == Instant::NEVER { self.now + late } else { until.min(self.now + late) + late };
                self.drain(true);
            }
            Operation::Acks { last, of, delay, ecn } => {
                let from = self.sent.len().saturating_sub(last);
                self.on_answer(self.sent.get(from).map(|p| p.at));
                let acks: Vec<Ack> = self.sent[from..]
                    .iter()
                    .step_by(of)
                    .map(|p| Ack { ecn, ack_delay: delay, ..Ack::immediate(p.kind, p.seq) })
                    .collect();
                tell(&mut self.flow, self.now, Message::acks(&acks));
            }
            Operation::Forged { kind, seq, delay } => {
                self.on_answer(self.sent.iter().find(|p| (p.kind, p.seq) == (kind, seq)).map(|p| p.at));
                tell(&mut self.flow, self.now, Message::acks(&[Ack { ack_delay: delay, ..Ack::immediate(kind, seq) }]));
            }
            Operation::Report { highest_seq, fraction_lost } => {
                let interval = Duration::from_secs(5);
                tell(
                    &mut self.flow,
                    self.now,
                    Message::Report(&ReceiverReport::new(highest_seq, fraction_lost, interval)),
                );
            }
            Operation::Rtcp { back, fraction_lost, lost, rtt, bottleneck } => {
                let next = self.sent.len() as u64 - self.dummies;
                let highest_seq = next.wrapping_sub_signed(back);
                let interval = Duration::from_secs(1);
                let report = ReceiverReport::new(highest_seq, fraction_lost, interval);
                tell(&mut self.flow, self.now, Message::Report(&ReceiverReport { lost, rtt, bottleneck, ..report }));
            }
            Operation::Tcp { rate, reduced, cwnd } => {
                self.tcp.advance(self.now);
                self.tcp.rate = rate;
                self.tcp.progress.reductions += u64::from(reduced);
                self.tcp.progress.cwnd = Bytes::new(cwnd);
            }
            Operation::Sack { back, vector, rwnd, delay, ecn } => {
                let next = self.sent.len() as u64 - self.dummies;
                let ack = (next.wrapping_sub_signed(back) & 0xFF_FFFF) as u32;
                let sack = SackVector { ack, vector, rwnd, ecn, ack_delay: delay, arrived_at: None };
                tell(&mut self.flow, self.now, Message::SackVector(&sack));
            }
            Operation::RateReport { back, off, delay, received_rate, loss_event_rate } => {
                let left = self.sent.iter().rev().nth(back).map_or(Instant::ZERO, |p| p.at);
                let echoed = left + Duration::from_micros(off);
                tell(
                    &mut self.flow,
                    self.now,
                    Message::Measured(&RateReport { echoed, delay, received_rate, loss_event_rate }),
                );
            }
            Operation::Demand(max) => self.flow.set_demand(self.now, max),
            Operation::LimitDummies(limited) => self.flow.set_dummies_limited(limited),
            Operation::Response { back, steps, ttl } => {
                let option = self.options.iter().rev().nth(back).map(|(_, option)| *option);
                let response = option.unwrap_or(NOTHING).response();
                let code = (response.rate.code() as i8 + steps).clamp(0, 15) as u8;
                let rate = QsRate::from_code(code).expect("up to 15");
                let nonce = if rate < response.rate {
                    response.nonce.lowered(response.rate, rate, self.routers.bits() as u32)
                } else {
                    response.nonce
                };
                let ttl_diff = response.ttl_diff.wrapping_add(ttl);
                let approvals = self.flow.quick_start().map_or(0, |c| c.approved);
                self.flow.on_quick_start_response(self.now, &QsResponse { rate, ttl_diff, nonce });
                if self.flow.quick_start().is_some_and(|c| c.approved > approvals) {
                    let asked = self.options.iter().rev().find(|(_, o)| o.function == QsFunction::Request);
                    assert!(asked.is_some_and(|(_, o)| rate <= o.rate), "more than was asked for: {rate:?}");
                    self.approved = Some(rate);
                }
            }
        }
        self.check();
    }

    /// The invariants of a flow that asks the routers.
    pub(crate) fn check_quick_start(&self, header: f64) {
        let c = self.flow.quick_start().expect("this flow asks");
        let settled = c.approved + c.denied + c.unanswered + c.bad_ttl + c.bad_rate + c.bad_nonce;
        assert!(settled == c.asked || settled + 1 == c.asked, "{c:?}");
        let answered = settled - c.unanswered;
        assert!(c.reports <= settled && answered <= c.reports + 1, "each answer is reported, once: {c:?}");
        let requests: Vec<_> = self.options.iter().filter(|(_, o)| o.function == QsFunction::Request).collect();
        assert_eq!((requests.len(), self.options.len()), (c.asked as usize, (c.asked + c.reports) as usize));
        assert!(requests.windows(2).all(|w| w[1].0 >= w[0].0 + Duration::from_secs(6)), "{requests:?}");
        if ["QuickStart", "Validation"].contains(&self.flow.status().state) {
            let approved = self.approved.expect("a rate was approved").rate() * (1_000.0 / (1_000.0 + header));
            let most = approved.max(self.setup.env.min_rate) * (1.0 + 1e-9);
            assert!(self.flow.status().rate <= most, "{:?} above {most:?}", self.flow.status().rate);
        }
    }

    pub(crate) fn check(&self) {
        let env = &self.setup.env;
        let status = self.flow.status().rate;
        for rate in [status, self.flow.target_rate()] {
            assert!(rate.as_bps().is_finite() && rate <= env.max_rate * (1.0 + 1e-9), "{rate:?}");
        }
        assert!(status >= env.min_rate * (1.0 - 1e-9), "{status:?} below {:?}", env.min_rate);
        assert!(self.flow.status().p.is_none_or(|p| (0.0..=1.0).contains(&p)), "{:?}", self.flow.status().p);
        let c = self.flow.counters();
        for (k, sent) in [(c.data, self.sent.len() as u64 - self.dummies), (c.dummy, self.dummies)] {
            assert_eq!(k.sent, sent);
            assert!(k.acked + k.lost <= k.sent, "{k:?}");
        }
    }
}

/// An option that no flow sends.
pub(crate) const NOTHING: QsOption =
    QsOption { function: QsFunction::Request, rate: QsRate::MAX, qs_ttl: 0, ip_ttl: 0, nonce: QsNonce::new(0) };

/// Hands in a message; the flow's counters say what became of it.
pub(crate) fn tell(flow: &mut Flow, now: Instant, message: Message<'_>) {
    let _ = flow.on_feedback(now, message);
}
