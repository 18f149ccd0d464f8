//! Quick-Start at the sender: asking the routers for a rate, judging the answer, and using it.
//!
//! Source: RFC 4782 §4 (asking, judging), RFC 5634 §2 and §3.2 (the interval between requests, the mode, the
//! validation). Two halves that know nothing of each other: [`Requester`] is [`crate::Flow`]'s and the same
//! for every scheme; [`QuickStart`] is for a controller that can use an approved rate (`tfrc.rs` does).
//!
//! ```text
//!                    response, approved       feedback on a QS packet,
//!          request   rate > X                or one RTT               feedback on all QS packets, or two RTT
//!  Off -----------> Asked --------> Mode ------------------> Validation ----------------------> Off
//!                     |             X = QS_sendrate          X stays                            X as the scheme says
//!                     | denied, invalid, none                no feedback: X = min(X before, QS_sendrate/2)
//!                     v             a loss or a mark in either: X as the scheme says, at once
//!                    Off
//! ```
//!
//! # Symbols
//!
//! | RFC | here | unit |
//! | --- | --- | --- |
//! | Rate Request, Approved Rate | `QsOption::rate`, `QsResponse::rate` | bit/s, one of 15 |
//! | Quick-Start Interval, Initial_QSI | `Requester::interval`, [`QuickStartParams::interval`] | s |
//! | R, s, H | approved rate, mean packet size, [`QuickStartParams::header`] | byte/s, bytes |
//! | QS_sendrate | [`send_rate`], [`QuickStart::rate`] | byte/s |
//! | Quick-Start Packets | what leaves in `Stage::Mode`, by departure | |
//!
//! # Readings
//!
//! - A request leaves with the first data packet, and with the first after an idle time; not after a time in
//!   which the application had little to send, which RFC 5634 §2.1 allows and RFC 4782 §4.1 advises against.
//! - The interval runs from the request, also after an approval: that only undoes the doubling, and the end of all
//!   requests if it answers the last one.
//! - The request is the lowest of the option's rates that is enough, as RFC 4782 §4.1 allows, unless the scheme's
//!   limit is below; then the highest that the limit allows.
//! - A request is unanswered when feedback on what left 3 s later has no answer: a report of a receiver that
//!   measures names the newest packet only, and what is newer may have overtaken a request that a terminal holds.
//! - "All Quick-Start packets are acknowledged": the newest of them is, and no loss is known. A report of a receiver
//!   that measures tells of older ones by its p.
//! - Feedback that covers no Quick-Start packet does not change X, but its losses do.
//! - An approval of which nothing was used within an RTT, or within 3 s [RFC 4782 §4.4], is void.
//! - Limited Slow-Start [RFC 4782 §4.4] bounds the growth of a window; here twice what was received does.
//!
//! - A driver may send the option on a packet of its own behind the data packet that it would have travelled on, where the receiver
//!   answers each such packet ([`Requester::on_sent_apart`]): a network that drops options then takes no data along. That answer
//!   says whether the option came, and how ([`QsEcho`]). Where packets do not arrive with the option, or arrive without it,
//!   or at a receiver that does not know it, the flow asks no more.
//!
//! # Not implemented
//!
//! Requests after a change of the path [RFC 5634 §2.6]: nothing here hears of one. A packet only for the
//! report [RFC 5634 §2.3]: it waits for the next data packet.

use crate::param::ParamError;
use core::ops::RangeInclusive;
use fairpace_units::{Bytes, Duration, Instant, QsFunction, QsNonce, QsOption, QsRate, QsResponse, RandomStream, Rate};

/// Initial_QSI is at least this [RFC 5634 §2.1.1].
pub const LEAST_INTERVAL: Duration = Duration::from_secs(6);
/// When the next interval would be longer than this, no more requests are sent [RFC 5634 §2.1.1].
pub const LONGEST_INTERVAL: Duration = Duration::from_secs(64);
/// An approved rate must come into use within this, or an RTT if that is less [RFC 4782 §4.4].
const USE_WITHIN: Duration = Duration::from_secs(3);
/// Packets that left up to this much after a request may overtake it, where a terminal holds it for its
/// capacity to come: well above any T_q [qsd §3.4].
const OVERTAKEN: Duration = Duration::from_secs(3);
/// The Quick-Start Validation Time, in RTTs [RFC 5634 §2.3.2].
const VALIDATION_RTTS: u32 = 2;

/// The Quick-Start request of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuickStartParams {
    /// The rate to ask for, headers included.
    pub rate: QsRate,
    /// The seed of the random QS TTLs and nonces. Whoever can guess it can lie about the rate: outside of
    /// simulations it must come from a source fit for secrets [RFC 4782 §3.4].
    pub seed: u64,
    /// The TTL (hop limit) that the driver sends packets with.
    pub ip_ttl: u8,
    /// H: bytes of each packet's headers that packet sizes do not count; 0 where they do. TFRC-SP goes by
    /// its own `header`.
    pub header: Bytes,
    /// Initial_QSI; what is below 6 s counts as 6 s.
    pub interval: Duration,
}

impl QuickStartParams {
    /// Asks for the lowest rate of the option that is not below `rate`: TTL 64, H = 32 bytes (DCCP over
    /// IPv4) [RFC 5634 §3.2.3], Initial_QSI = 6 s.
    ///
    /// # Errors
    /// [`ParamError::BadEnv`] if the option cannot say the rate.
    pub fn new(rate: Rate, seed: u64) -> Result<Self, ParamError> {
        match QsRate::at_least(rate) {
            Some(rate) if rate != QsRate::ZERO => {
                Ok(QuickStartParams { rate, seed, ip_ttl: 64, header: Bytes::new(32), interval: LEAST_INTERVAL })
            }
            _ => Err(ParamError::BadEnv {
                name: "quick_start",
                found: rate.to_string(),
                allowed: "above 0 and up to 1310.72 Mbit/s, the highest rate of the option".to_owned(),
            }),
        }
    }
}

/// The counts of a flow's requests by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QsCounters {
    /// Requests sent.
    pub asked: u64,
    /// Of those, approved, at whatever rate.
    pub approved: u64,
    /// Answered with rate zero.
    pub denied: u64,
    /// Acknowledged without an answer, or nothing heard of it before the next.
    pub unanswered: u64,
    /// Answers that show a router on the way that does not know Quick-Start.
    pub bad_ttl: u64,
    /// Answers with more than was asked: a fault of a router or of the receiver.
    pub bad_rate: u64,
    /// Answers with a nonce that the routers cannot have left: a lie. The flow asks no more.
    pub bad_nonce: u64,
    /// Answers to no request.
    pub stray: u64,
    /// Reports of an approved rate sent.
    pub reports: u64,
    /// Requests that did not arrive, while packets without the option did: the network drops the option. The flow asks no more.
    pub dropped: u64,
    /// Requests that arrived without the option: the network takes the option off. The flow asks no more.
    pub stripped: u64,
    /// Requests to a receiver that does not know Quick-Start. The flow asks no more.
    pub unknown: u64,
}

/// The verdict on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QsVerdict {
    /// That rate may be used.
    Approved(QsRate),
    /// A router, or the receiver, said no.
    Denied,
    /// The request was acknowledged without an answer.
    Unanswered,
    /// A router on the way did not know Quick-Start: its TTL Diff changed.
    BadTtl,
    /// More than was asked for.
    BadRate,
    /// The nonce does not go with the rate.
    BadNonce,
    /// Nothing was asked.
    Stray,
    /// Packets with the option do not arrive, and others do: the network drops them.
    Dropped,
    /// The packet arrived, and the option did not: the network takes the option off.
    Stripped,
    /// The packet arrived, and the receiver does not know Quick-Start.
    Unknown,
}

/// The receiver's answer to a packet of its own that a request travelled on, as far as the request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QsEcho {
    /// The option came like this. A rate of zero: a router has refused.
    Came(QsResponse),
    /// The packet came without the option.
    Missing,
    /// Nothing: the receiver does not know Quick-Start.
    Silent,
}

impl QsVerdict {
    /// The rate that may be used: zero unless it was approved.
    pub fn rate(self) -> Rate {
        match self {
            QsVerdict::Approved(rate) => rate.rate(),
            _ => Rate::ZERO,
        }
    }

    /// One word, for programs.
    pub const fn code(self) -> &'static str {
        match self {
            QsVerdict::Approved(_) => "approved",
            QsVerdict::Denied => "denied",
            QsVerdict::Unanswered => "unanswered",
            QsVerdict::BadTtl => "bad_ttl",
            QsVerdict::BadRate => "bad_rate",
            QsVerdict::BadNonce => "bad_nonce",
            QsVerdict::Stray => "stray",
            QsVerdict::Dropped => "dropped",
            QsVerdict::Stripped => "stripped",
            QsVerdict::Unknown => "unknown",
        }
    }

    /// For logs.
    pub const fn name(self) -> &'static str {
        match self {
            QsVerdict::Approved(_) => "approved",
            QsVerdict::Denied => "denied",
            QsVerdict::Unanswered => "unanswered",
            QsVerdict::BadTtl => "a router did not know of it",
            QsVerdict::BadRate => "more than was asked",
            QsVerdict::BadNonce => "the nonce is wrong",
            QsVerdict::Stray => "nothing was asked",
            QsVerdict::Dropped => "packets with the option do not arrive",
            QsVerdict::Stripped => "the network takes the option off",
            QsVerdict::Unknown => "the receiver does not know of it",
        }
    }
}

/// A request that has left.
#[derive(Clone, Copy, Debug)]
struct Asked {
    option: QsOption,
    at: Instant,
    /// When feedback came on a packet that did not overtake it, without the answer so far.
    acknowledged: Option<Instant>,
    /// The packet of the option carries no data, and the receiver answers that packet.
    apart: bool,
}

/// Asks for a rate and judges the answers, for one flow [RFC 4782 §4] [RFC 5634 §2.1, §2.3].
#[derive(Clone, Debug)]
pub struct Requester {
    params: QuickStartParams,
    stream: RandomStream,
    /// The Quick-Start Interval; zero before the first request.
    interval: Duration,
    /// No request before this; NEVER: none at all any more.
    next_at: Instant,
    /// The next request's QS TTL and nonce, drawn already so that asking what to send changes nothing.
    drawn: (u8, QsNonce),
    asked: Option<Asked>,
    /// The report that the routers are still to get.
    report: Option<QsOption>,
    /// Packets with the option have arrived.
    passes: bool,
    counters: QsCounters,
}

impl Requester {
    /// Nothing asked yet.
    pub fn new(params: QuickStartParams) -> Requester {
        let mut stream = RandomStream::named(params.seed, "flow.quick-start");
        Requester {
            drawn: draw(&mut stream),
            stream,
            interval: Duration::ZERO,
            next_at: Instant::ZERO,
            asked: None,
            report: None,
            passes: false,
            counters: QsCounters::default(),
            params,
        }
    }

    /// The parameters of the request.
    pub fn params(&self) -> &QuickStartParams {
        &self.params
    }

    /// The counts of requests by their fate.
    pub fn counters(&self) -> &QsCounters {
        &self.counters
    }

    /// May a request leave now? Not within the interval, nor while an earlier one may still be on its way: where no
    /// RTT is known, that is until it is answered. (An answer to the earlier one would look like a lie.)
    pub fn may_ask(&self, now: Instant, rtt: Option<Duration>) -> bool {
        now >= self.next_at && self.report.is_none() && (self.asked.is_none() || rtt.is_some())
    }

    /// The report that is owed to the routers, for the next packet.
    pub fn report(&self) -> Option<QsOption> {
        self.report
    }

    /// The request for `rate`, at most what the parameters say; `None` for rate zero.
    pub fn request(&self, rate: QsRate) -> Option<QsOption> {
        let rate = rate.min(self.params.rate);
        let (qs_ttl, nonce) = self.drawn;
        let function = QsFunction::Request;
        (rate != QsRate::ZERO).then_some(QsOption { function, rate, qs_ttl, ip_ttl: self.params.ip_ttl, nonce })
    }

    /// A data packet left with `option`. `rtt`: `None` while none is known.
    pub fn on_sent(&mut self, now: Instant, option: QsOption, rtt: Option<Duration>) {
        self.note_sent(now, option, rtt, false);
    }

    /// A packet that carries nothing else left with `option`, and the receiver will answer that packet ([`Requester::on_echo`]). So a
    /// network that drops such packets takes no data along, and is told from a receiver that does not answer.
    pub fn on_sent_apart(&mut self, now: Instant, option: QsOption, rtt: Option<Duration>) {
        self.note_sent(now, option, rtt, true);
    }

    fn note_sent(&mut self, now: Instant, option: QsOption, rtt: Option<Duration>, apart: bool) {
        if option.function == QsFunction::Report {
            self.report = None;
            self.counters.reports += 1;
            return;
        }
        self.counters.asked += 1;
        self.counters.unanswered += u64::from(self.asked.is_some());
        self.drawn = draw(&mut self.stream);
        let rtt = rtt.unwrap_or(Duration::ZERO);
        self.interval = if self.interval.is_zero() {
            self.params.interval.max(LEAST_INTERVAL)
        } else {
            (self.interval * 2).max(rtt * 4)
        };
        // Not twice per RTT either, even one above 6 s [RFC 4782 §4.1].
        self.next_at = if self.interval > LONGEST_INTERVAL { Instant::NEVER } else { now + self.interval.max(rtt) };
        self.asked = Some(Asked { option, at: now, acknowledged: None, apart });
    }

    /// Feedback has come on what left at `departure`, or before. If it is later feedback than the first on what
    /// left so long after the request that it cannot have overtaken it, there will be no answer [RFC 4782 §4.4].
    pub fn on_feedback(&mut self, now: Instant, departure: Instant) -> Option<QsVerdict> {
        let asked = self.asked.as_mut()?;
        match asked.acknowledged {
            None if departure >= asked.at + OVERTAKEN => asked.acknowledged = Some(now),
            Some(at) if now > at && asked.apart && !self.passes => {
                self.counters.dropped += 1;
                self.give_up();
                return Some(QsVerdict::Dropped);
            }
            Some(at) if now > at => {
                self.counters.unanswered += 1;
                self.answer(QsRate::ZERO);
                return Some(QsVerdict::Unanswered);
            }
            _ => {}
        }
        None
    }

    /// The receiver's answer: what it is worth, and how long after the request it came. In the RFC's order:
    /// TTL Diff, rate, nonce [RFC 4782 §4.4].
    pub fn on_response(&mut self, now: Instant, response: &QsResponse) -> (QsVerdict, Duration) {
        let Some(Asked { option, at, .. }) = self.asked else {
            self.counters.stray += 1;
            return (QsVerdict::Stray, Duration::ZERO);
        };
        let c = &mut self.counters;
        let verdict = if response.ttl_diff != option.ttl_diff() {
            c.bad_ttl += 1;
            QsVerdict::BadTtl
        } else if response.rate > option.rate {
            c.bad_rate += 1;
            QsVerdict::BadRate
        } else if !option.nonce.agrees(response.nonce, response.rate) {
            c.bad_nonce += 1;
            QsVerdict::BadNonce
        } else if response.rate == QsRate::ZERO {
            c.denied += 1;
            QsVerdict::Denied
        } else {
            c.approved += 1;
            QsVerdict::Approved(response.rate)
        };
        match verdict {
            QsVerdict::Approved(rate) => {
                self.interval = self.params.interval.max(LEAST_INTERVAL);
                self.next_at = (at + self.interval).max(now);
                self.answer(rate);
            }
            QsVerdict::BadNonce => {
                self.next_at = Instant::NEVER;
                self.answer(QsRate::ZERO);
            }
            _ => self.answer(QsRate::ZERO),
        }
        (verdict, now.since(at))
    }

    /// The receiver has answered the packet of the request: what the answer is worth, and how long after the request it came. After
    /// anything but [`QsEcho::Came`] the flow asks no more, and tells the routers nothing: no option would arrive there.
    pub fn on_echo(&mut self, now: Instant, echo: &QsEcho) -> (QsVerdict, Duration) {
        let Some(Asked { at, .. }) = self.asked else {
            self.counters.stray += 1;
            return (QsVerdict::Stray, Duration::ZERO);
        };
        let (counter, verdict) = match echo {
            QsEcho::Came(response) => {
                self.passes = true;
                if response.rate != QsRate::ZERO {
                    return self.on_response(now, response);
                }
                // A router that refuses leaves neither QS TTL nor nonce.
                self.counters.denied += 1;
                self.answer(QsRate::ZERO);
                return (QsVerdict::Denied, now.since(at));
            }
            QsEcho::Missing => (&mut self.counters.stripped, QsVerdict::Stripped),
            QsEcho::Silent => (&mut self.counters.unknown, QsVerdict::Unknown),
        };
        *counter += 1;
        self.give_up();
        (verdict, now.since(at))
    }

    /// No request any more, and no report.
    fn give_up(&mut self) {
        (self.asked, self.report, self.next_at) = (None, None, Instant::NEVER);
    }

    /// The request is settled: the routers are told what was approved.
    fn answer(&mut self, rate: QsRate) {
        if let Some(Asked { option, .. }) = self.asked.take() {
            self.report = Some(QsOption { function: QsFunction::Report, rate, ..option });
        }
    }
}

fn draw(stream: &mut RandomStream) -> (u8, QsNonce) {
    let bits = stream.bits();
    ((bits >> 32) as u8, QsNonce::new(bits as u32))
}

/// The receiver's answer to the option of a packet that has arrived: nothing to a report, nor to a request for
/// nothing [RFC 4782 §4.3]. The answer goes into the next feedback, once: lost, it is not sent again.
pub fn answer(option: &QsOption) -> Option<QsResponse> {
    (option.function == QsFunction::Request && option.rate != QsRate::ZERO).then(|| option.response())
}

/// QS_sendrate = R s / (s + H): what of an approved rate is left for packets of `size` bytes with `header`
/// bytes of headers, bytes per second [RFC 5634 §3.2.3].
pub fn send_rate(approved: QsRate, size: f64, header: f64) -> f64 {
    approved.rate().as_bps() / 8.0 * size / (size + header)
}

/// When the validation ends, if nothing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// With feedback on all Quick-Start packets [RFC 5634 §2.3.2].
    All,
    /// With the next feedback after the first that covers a Quick-Start packet, as in [qsd §3.3].
    Next,
}

/// How the use of an approved rate ended, if not by feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QsEnd {
    /// Nothing was sent: back to [`QuickStart::before`].
    Unused,
    /// The validation's time is up: X is what the last feedback makes it.
    TimeUp,
    /// No feedback came in the validation: back to [`QuickStart::fallback`].
    NoFeedback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Mode,
    Validation,
}

/// The use of an approved rate, from the response on: Quick-Start Mode and validation [RFC 5634 §2.3, §3.2].
///
/// While there is one, the controller sends at [`QuickStart::rate`] and lets no feedback change that.
#[derive(Clone, Copy, Debug)]
pub struct QuickStart {
    rate: f64,
    before: f64,
    ends: Until,
    rtt: Duration,
    began: Instant,
    stage: Stage,
    /// When the stage ends at the latest.
    until: Instant,
    /// When the last Quick-Start packet left.
    last: Option<Instant>,
    /// Feedback on a Quick-Start packet has come.
    covered: bool,
    /// Feedback has come in the validation.
    heard: bool,
}

impl QuickStart {
    /// QS_sendrate is `rate`, X was `before`, both in bytes per second.
    pub fn begin(now: Instant, rate: f64, before: f64, rtt: Duration, ends: Until) -> QuickStart {
        QuickStart {
            rate,
            before,
            ends,
            rtt,
            began: now,
            stage: Stage::Mode,
            until: now + rtt.min(USE_WITHIN),
            last: None,
            covered: false,
            heard: false,
        }
    }

    /// QS_sendrate, bytes per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// X before, bytes per second.
    pub fn before(&self) -> f64 {
        self.before
    }

    /// For [`crate::Controller::status`].
    pub fn state(&self) -> &'static str {
        match self.stage {
            Stage::Mode => "QuickStart",
            Stage::Validation => "Validation",
        }
    }

    /// A packet has left.
    pub fn on_sent(&mut self, now: Instant) {
        if self.stage == Stage::Mode {
            if self.last.is_none() {
                self.until = self.began + self.rtt;
            }
            self.last = Some(now);
        }
    }

    /// From when to when Quick-Start packets left; `None` before the first.
    pub fn packets(&self) -> Option<RangeInclusive<Instant>> {
        Some(self.began..=self.last?)
    }

    /// A packet that left at `departure` was acknowledged by itself. True if all Quick-Start packets now
    /// are: the controller should look at its feedback.
    pub fn on_ack(&mut self, now: Instant, departure: Instant) -> bool {
        self.heard |= self.stage == Stage::Validation;
        let Some(last) = self.last.filter(|_| departure >= self.began) else { return false };
        self.validate(now);
        departure >= last
    }

    /// Feedback without a loss, on what left until `departure`. True if this ends it: the controller goes
    /// by that feedback.
    pub fn on_feedback(&mut self, now: Instant, departure: Instant) -> bool {
        let all = self.on_ack(now, departure);
        let covers = self.last.is_some() && departure >= self.began;
        let another = covers && core::mem::replace(&mut self.covered, true);
        all || (another && self.ends == Until::Next)
    }

    /// When [`QuickStart::on_timer`] is wanted.
    pub fn next(&self) -> Instant {
        self.until
    }

    /// The time of a stage is up: how it all ended, or `None` if the validation begins.
    pub fn on_timer(&mut self, now: Instant) -> Option<QsEnd> {
        match (self.stage, self.last) {
            _ if now < self.until => None,
            (Stage::Mode, None) => Some(QsEnd::Unused),
            (Stage::Mode, Some(_)) => {
                self.validate(self.until);
                None
            }
            (Stage::Validation, _) if self.heard => Some(QsEnd::TimeUp),
            (Stage::Validation, _) => Some(QsEnd::NoFeedback),
        }
    }

    /// min(X before, QS_sendrate/2): the most that may be sent without feedback [RFC 5634 §3.2.4].
    pub fn fallback(&self) -> f64 {
        self.before.min(self.rate / 2.0)
    }

    fn validate(&mut self, now: Instant) {
        if self.stage == Stage::Mode {
            self.stage = Stage::Validation;
            self.until = now + self.rtt * VALIDATION_RTTS;
        }
    }
}

#[cfg(test)]
mod tests;
