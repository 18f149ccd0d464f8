//! Challenges, their echoes, and consent: whether anything may be sent to the peer's address, and for how long.

use super::config::Admission;
use crate::Secret;
use crate::budget::Budget;
use crate::challenge::{CONSENT, Echo};
use crate::secret::Purpose;
use fairpace_units::{Class, Dscp, Duration, Instant, RandomStream};
use std::collections::VecDeque;

/// The time to the next question while no answer comes: the round trip, within this and 1 s, times 0.8 to 1.2. Deviation
/// from RFC 7675 §5.1, which asks every 5 s: where half of all packets are lost both ways, three questions in 15 s fail
/// with a probability of (3/4)^3 = 0.42, thirty with 2e-4. At 72 B with all headers they take 1.2 kbit/s, for 30 s at
/// most.
const REPEAT: Duration = Duration::from_millis(500);
/// Where half of what was sent is lost, a round trip that was measured late says little.
const LONGEST_REPEAT: Duration = Duration::from_secs(1);
/// Packets that left so long ago should have been told of, beside twice the interval of feedback.
const DOUBT: Duration = Duration::from_secs(1);
/// An answer is worth so much while packets are still not told of: after that, times 0.8 to 1.2, the next question leaves. Window
/// schemes wait longer than that for the next packet, and the circuit breaker for 15 s.
const ANSWER: Duration = Duration::from_secs(3);
/// A receiver cannot say that it means to tell more seldom.
pub(super) const LONGEST_INTERVAL: Duration = Duration::from_secs(5);
/// A proof is shown so often at most while the receiver goes on asking for it: one that arrives is answered without.
const MOST_SHOWN: u32 = 30;
/// Questions of 13 s at least.
const MOST_TOKENS: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Token {
    value: u64,
    class: Class,
    sent: Instant,
}

/// The answer in an echo.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// Nobody was asked with that token in the last 30 s, or the answer has come before.
    Unknown,
    /// Somebody else has the place at the receiver: a challenge with a proof follows.
    Taken,
    /// The echo waited at the receiver, so that it tells little of the path: the next one counts.
    Held,
    /// A sender of another address has the place. News: this was not known.
    Busy { news: bool },
    /// The receiver ends, with the session of another sender.
    Ends,
    /// The peer is there.
    There {
        /// The class of the challenge that is answered.
        class: Class,
        /// Its token.
        token: u64,
        /// No later challenge has been answered before.
        is_newest: bool,
        /// The round trip, less what the receiver says that it held the echo, half of it at most.
        rtt: Duration,
        /// Nothing was sent since this machine slept.
        was_held: bool,
    },
}

#[derive(Debug)]
pub(super) struct Admitting {
    who: Admission,
    /// Challenges to send at once.
    questions: VecDeque<Class>,
    tokens: VecDeque<Token>,
    tokens_made: u64,
    /// The number that an echo wanted to see again.
    proof: Option<u32>,
    /// Another number is answered by challenges from then on.
    retry_from: Instant,
    /// When an echo that says that it was held for most of its time was asked for once more.
    asked_again: Option<Instant>,
    /// The receiver has asked to see it: how often a challenge may yet carry the proof unasked, and when the next one is due.
    showing: Option<(u32, Instant)>,
    /// The receiver serves another sender, and nothing else has been heard of it since.
    busy: bool,
    /// Bytes that may go to an address that is not proven.
    budget: Budget,
    consent: Instant,
    /// When this machine woke up last, if no question that left since has been answered: what comes may have waited in the socket.
    woken: Option<Instant>,
    /// Consent ended while it slept.
    held: bool,
    /// The peer answers questions.
    echoes: bool,
    /// The shortest time from a question to its answer.
    least: Option<Duration>,
    next_try: Instant,
    /// When the newest challenge left that has been answered.
    answered: Instant,
    /// When the last challenge left.
    asked: Instant,
    /// When packets that nothing has told of, nor an echo since, are asked about; NEVER if there are none.
    doubt: Instant,
    random: RandomStream,
    seen: [Option<Dscp>; 2],
}

impl Admitting {
    /// `random` spreads the questions.
    pub(super) fn new(who: Admission, random: RandomStream) -> Self {
        Admitting {
            who,
            questions: VecDeque::new(),
            tokens: VecDeque::new(),
            tokens_made: 0,
            proof: None,
            retry_from: Instant::ZERO,
            asked_again: None,
            showing: None,
            busy: false,
            budget: Budget::default(),
            consent: Instant::ZERO,
            woken: None,
            held: false,
            echoes: false,
            least: None,
            next_try: Instant::NEVER,
            answered: Instant::ZERO,
            asked: Instant::ZERO,
            doubt: Instant::NEVER,
            random,
            seen: [None; 2],
        }
    }

    /// Whether challenges may go out unasked.
    pub(super) fn is_initiator(&self) -> bool {
        self.who == Admission::Initiator
    }

    pub(super) const fn proof(&self) -> Option<u32> {
        self.proof
    }

    /// Whether the receiver serves another sender, by the last word that has come.
    pub(super) const fn is_busy(&self) -> bool {
        self.busy
    }

    /// A datagram has come from an address that is not proven.
    pub(super) fn on_unproven(&mut self, len: usize) {
        self.budget.on_received(len);
    }

    /// A challenge is to leave in each class.
    pub(super) fn ask_both(&mut self) {
        self.questions.extend([Class::Normal, Class::Low]);
    }

    /// The class of the next challenge of `len` bytes that may leave to an address that is not proven.
    pub(super) fn next_unproven(&mut self, len: usize) -> Option<Class> {
        while let Some(class) = self.questions.pop_front() {
            let allowed = match self.who {
                Admission::Initiator => true,
                Admission::Responder => self.budget.afford(len),
            };
            if allowed {
                return Some(class);
            }
        }
        None
    }

    /// The class of the next challenge that is to leave to the peer, if one is; `srtt` is the round trip.
    pub(super) fn next_question(&mut self, now: Instant, srtt: Option<Duration>) -> Option<Class> {
        let shows_at = self.shows_at();
        if now >= self.next_try.min(self.doubt).min(shows_at) {
            let spacing = srtt.unwrap_or_default().clamp(REPEAT, LONGEST_REPEAT);
            let again = now + self.spread(spacing);
            if let Some((left, at)) = self.showing.as_mut().filter(|_| now >= shows_at) {
                (*left, *at) = (left.saturating_sub(1), again);
            }
            for due in [&mut self.next_try, &mut self.doubt].into_iter().filter(|due| **due <= now) {
                *due = again;
            }
            self.questions.push_back(Class::Normal);
        }
        self.questions.pop_front()
    }

    /// Each interval is drawn, so that the questions of many senders do not fall together [RFC 7675 §5.1].
    fn spread(&mut self, interval: Duration) -> Duration {
        interval.mul_f64(0.8 + 0.4 * self.random.uniform())
    }

    /// A packet has left that the peer should tell of, within a round trip and an `interval` between its feedback.
    pub(super) fn on_sent(&mut self, now: Instant, srtt: Option<Duration>, interval: Duration) {
        if self.doubt == Instant::NEVER {
            let patience = DOUBT.max(srtt.unwrap_or_default() * 2) + interval.min(LONGEST_INTERVAL) * 2;
            self.doubt = now + patience;
        }
    }

    /// Whether packets are out that nothing has told of for longer than it should take.
    pub(super) fn doubts(&self) -> bool {
        self.doubt != Instant::NEVER
    }

    /// The peer has told of a packet.
    pub(super) const fn heard(&mut self) {
        self.doubt = Instant::NEVER;
    }

    /// Somebody else than the peer tells of our packets: the peer may have been started again, or somebody forges reports.
    /// A question decides, no more often than unanswered ones.
    pub(super) fn suspect(&mut self, now: Instant) {
        self.doubt = self.doubt.min(now.max(self.asked + REPEAT));
    }

    /// The least round trip that a peer's word is believed for: half of the shortest that an answer to a question took. `None`: none was
    /// answered.
    pub(super) fn least_believed(&self) -> Option<Duration> {
        self.least.map(|least| least / 2)
    }

    /// The token of a challenge that leaves now.
    pub(super) fn token(&mut self, now: Instant, class: Class, media: u32, secret: &Secret) -> u64 {
        let value = secret.value(Purpose::Token, media, self.tokens_made);
        self.tokens_made += 1;
        if self.tokens.len() >= MOST_TOKENS {
            self.tokens.pop_front();
        }
        self.tokens.push_back(Token { value, class, sent: now });
        self.asked = now;
        value
    }

    pub(super) fn on_echo(&mut self, now: Instant, echo: &Echo) -> Answer {
        // An answer that has waited in the socket while this machine slept says nothing of who is there now.
        let is_worth = |t: &Token| t.value == echo.token && now.since(t.sent) < CONSENT;
        let Some(i) = self.tokens.iter().position(is_worth) else { return Answer::Unknown };
        // The challenge waits at the receiver, and may still be answered.
        if echo.busy {
            if echo.ends {
                return Answer::Ends;
            }
            return Answer::Busy { news: !core::mem::replace(&mut self.busy, true) };
        }
        // A token answers once.
        let Some(token) = self.tokens.remove(i) else { return Answer::Unknown };
        if echo.taken {
            // The receiver has another sender with our address: an earlier one, or a forged one. The next challenges
            // carry the proof that this sender is there. One that names another number each time gets no more challenges for it.
            if self.proof.replace(echo.next_report) != Some(echo.next_report) {
                if now >= self.retry_from {
                    self.retry_from = now + REPEAT;
                    self.ask_both();
                } else {
                    self.doubt = self.doubt.min(self.retry_from);
                }
            }
            return Answer::Taken;
        }
        // The receiver says how long it held the echo, as where a challenge waited for the place. No more than half of the time is
        // believed; such echoes are asked for again once, since the answer need not wait then.
        let round_trip = now.since(token.sent);
        let rtt = round_trip - echo.delay.min(round_trip / 2);
        if echo.delay > round_trip / 2 && !self.echoes && self.asked_again.is_none_or(|at| token.sent < at) {
            if self.asked_again.replace(self.asked_again.unwrap_or(now)).is_none() {
                self.ask_both();
            }
            return Answer::Held;
        }
        self.echoes = true;
        self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
        self.showing = if echo.show {
            self.proof = Some(echo.next_report);
            self.showing.or(Some((MOST_SHOWN, now)))
        } else {
            None
        };
        let was_held = if self.woken.is_some_and(|woken| token.sent >= woken) {
            self.woken = None;
            core::mem::take(&mut self.held)
        } else {
            false
        };
        self.renew(now);
        if self.doubt != Instant::NEVER {
            self.doubt = now + self.spread(ANSWER);
        }
        let is_newest = token.sent >= self.answered;
        self.answered = self.answered.max(token.sent);
        Answer::There { class: token.class, token: token.value, is_newest, rtt, was_held }
    }

    /// The peer is known: nothing more need be asked for now.
    pub(super) fn settle(&mut self) {
        self.questions.clear();
    }

    /// This machine, or this program, slept. The peer is asked, and nothing else renews consent until it has answered; if consent
    /// has ended meanwhile, nothing else is sent. A peer that answers no questions has nothing that tells old words from new ones: there the
    /// flow ends with the consent.
    pub(super) fn on_stall(&mut self, now: Instant) {
        if !self.echoes {
            return;
        }
        self.next_try = self.next_try.min(now);
        self.woken = Some(now);
        if self.is_expired(now) {
            self.held = true;
            self.consent = now;
        }
    }

    /// Whether nothing may be sent but questions.
    pub(super) const fn is_held(&self) -> bool {
        self.held
    }

    /// The peer is there, and wants this.
    pub(super) fn renew(&mut self, now: Instant) {
        if self.woken.is_some() {
            return;
        }
        self.busy = false;
        self.consent = now;
        self.next_try = now + CONSENT / 2;
    }

    pub(super) fn is_expired(&self, now: Instant) -> bool {
        now.since(self.consent) >= CONSENT
    }

    /// When consent ends, or is asked for, or the proof is shown.
    pub(super) fn next(&self) -> Instant {
        self.next_try.min(self.doubt).min(self.shows_at()).min(self.consent + CONSENT)
    }

    /// Whether the receiver has asked to see the proof, and has not said yet that it has come.
    pub(super) const fn is_showing(&self) -> bool {
        self.showing.is_some()
    }

    /// When a challenge is due that shows the proof.
    fn shows_at(&self) -> Instant {
        self.showing.filter(|(left, _)| *left > 0).map_or(Instant::NEVER, |(_, at)| at)
    }

    /// Packets of that class arrive with that code point: whether this is news.
    pub(super) fn saw(&mut self, class: Class, arrived: Dscp) -> bool {
        let [normal, low] = &mut self.seen;
        let seen = if class == Class::Low { low } else { normal };
        seen.replace(arrived) != Some(arrived)
    }

    /// Whether it is known how low-class packets arrive.
    pub(super) const fn knows_low(&self) -> bool {
        let [_, low] = self.seen;
        low.is_some()
    }
}
