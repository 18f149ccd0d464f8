//! G: the rate that takes what nobody waits for. `auto.rs` says the rules; rates are in bytes per second.

use crate::base_rtt::BaseRtt;
use crate::facts::{Acked, Loss};
use crate::param::{Allowed, ParamError, ParamInfo};
use crate::registry::{Env, Settings};
use fairpace_units::{Bounds, Duration, Instant, Rate};

/// Packets in a row that find a queue, before one is believed: a burst of somebody's passes between them.
const IN_A_ROW: u32 = 5;
/// Waiting counts beyond so many times the path's jitter. A delay that is uniform from 0 to D has a jitter of D / 3 in the mean, with which no
/// packet of it finds a queue up to D = 45 ms.
const JITTERS: u32 = 2;
/// The part of the delivered rate that remains when a queue stands [draft-ietf-rmcat-gcc-02 §5.5].
const AFTER_QUEUE: f64 = 0.85;
/// The rate that the path delivers before a cut can show is measured over so long at least, and over `LEAST_ACKED` packets.
const LEAST_MEASURED: Duration = Duration::from_millis(300);
/// A round is no shorter: on a path of 10 ms G would else double a hundred times a second.
const LEAST_ROUND: Duration = Duration::from_millis(100);
/// Nor has it fewer packets.
const LEAST_ACKED: u32 = 4;
/// G grows if so much of it was delivered; an encoder is below its target by as much.
const USED: f64 = 0.7;
/// G is at most so many times what was delivered, as in TFRC's recv_limit.
const AT_MOST: f64 = 2.0;
/// A round carries more than the one before by as much as G sends in this time, s. A queue is heard of a round later, and is
/// as long as what the rounds since it began carried too much: a short buffer must not overflow before.
const STEP_TIME: f64 = 0.006;
/// By so many packets if that is more: TCP adds one, and a slow flow needs some to get anywhere.
const STEP_PACKETS: f64 = 3.0;
/// By no more than this share of G.
const MOST_STEP: f64 = 0.25;
/// The start where none is given: what browsers begin with.
const START: Rate = Rate::kbps(300.0);
/// Delays remembered to find a loss's neighbours: losses are noticed three packets later, in bursts of a few.
const NEIGHBOURS: usize = 16;

/// The parameters.
pub(super) const PARAMS: &[ParamInfo] = &[
    ParamInfo {
        name: "loss_waiting",
        symbol: "W",
        default: "5 ms",
        allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(1), Duration::from_secs(1)))],
        doc: "a loss whose neighbours waited so long in queues is congestion: the rate falls to TCP's fair share",
    },
    ParamInfo {
        name: "most_loss",
        symbol: "",
        default: "0.1",
        allowed: &[Allowed::Number("", Bounds::of(0.0, 1.0))],
        doc: "where more is lost than this share of a round, the path is taken for full, queue or not",
    },
];

/// The law in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the first sign of a queue: G doubles.
    Start,
    /// G is above X.
    Free,
    /// X is in force.
    Fair,
}

impl Phase {
    /// As in events and series.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Start => "Start",
            Phase::Free => "Free",
            Phase::Fair => "Fair",
        }
    }
}

/// The packets of a round, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Instant,
    acked: u32,
    bytes: u64,
    lost: u32,
}

/// A measurement of the rate that the path delivers of packets that left before a cut, while all of them found a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Stale {
    /// The instant of the report before the first that counts, and of the last that does: reports tell of several packets at once.
    began: Instant,
    last: Instant,
    acked: u32,
    bytes: u64,
}

impl Stale {
    /// A packet of that size has come. Gives bytes per second, measured up to the report before this one and over 300 ms and four packets at least; then the next
    /// measurement begins.
    fn add(&mut self, now: Instant, size: u64) -> Option<f64> {
        if now == self.began {
            return None;
        }
        let took = self.last.since(self.began);
        let is_over = now > self.last && took >= LEAST_MEASURED && self.acked >= LEAST_ACKED;
        let delivered = is_over.then(|| self.bytes as f64 / took.as_secs_f64());
        if is_over {
            *self = Stale { began: self.last, ..Stale::default() };
        }
        self.acked += 1;
        self.bytes += size;
        self.last = now;
        delivered
    }
}

/// G and what it goes by.
#[derive(Clone, Debug)]
pub(super) struct Free {
    /// The parameters.
    loss_waiting: Duration,
    most_loss: f64,
    /// The size of a packet, bytes; the start and the flow's limit, bytes per second.
    packet: f64,
    start: f64,
    max: f64,
    /// G.
    rate: f64,
    /// X, as last told.
    fair: f64,
    starting: bool,
    base: BaseRtt,
    jitter: Jitter,
    /// Packets in a row, up to the last acknowledged, that found a queue.
    in_a_row: u32,
    neighbours: Neighbours,
    round: Round,
    /// Since the last cut: what left before it says nothing of the rate now, but how much of it the path delivers.
    since: Instant,
    /// Of the packets that left before the last cut and have come since.
    stale: Stale,
    reason: &'static str,
}

impl Free {
    pub(super) fn new(settings: &Settings<'_>, env: &Env) -> Result<Free, ParamError> {
        let bytes_per_s = |rate: Rate| rate.as_bps() / 8.0;
        let start = env.start_rate.unwrap_or(START).clamp(env.min_rate, env.max_rate);
        Ok(Free {
            loss_waiting: settings.duration("loss_waiting")?,
            most_loss: settings.number("most_loss")?,
            packet: env.packet_size.as_f64(),
            start: bytes_per_s(start),
            max: bytes_per_s(env.max_rate),
            rate: 0.0,
            fair: 0.0,
            starting: true,
            base: BaseRtt::new(),
            jitter: Jitter::default(),
            in_a_row: 0,
            neighbours: Neighbours::default(),
            round: Round::default(),
            since: Instant::ZERO,
            stale: Stale::default(),
            reason: "not started",
        })
    }

    // --- what is known ---------------------------------------------------------------------------

    /// G.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn phase(&self) -> Phase {
        match (self.starting, self.rate > self.fair) {
            (true, _) => Phase::Start,
            (false, true) => Phase::Free,
            (false, false) => Phase::Fair,
        }
    }

    pub(super) fn reason(&self) -> &'static str {
        self.reason
    }

    // --- what happens ----------------------------------------------------------------------------

    pub(super) fn start(&mut self, now: Instant) {
        (self.since, self.round.began) = (now, now);
        self.set(self.start, "started");
    }

    /// X is this: G is no lower.
    pub(super) fn raise_to(&mut self, x: f64) {
        let before = self.phase();
        self.fair = x;
        self.rate = self.rate.max(x);
        match (before, self.phase()) {
            (Phase::Free, Phase::Fair) => self.reason = "X has risen",
            (Phase::Fair, Phase::Free) => self.reason = "X has fallen",
            _ => {}
        }
    }

    pub(super) fn on_ack(&mut self, now: Instant, ack: &Acked, srtt: Option<Duration>) {
        if let Some(rtt) = ack.rtt {
            self.base.on_sample(now, rtt);
            self.jitter.on_sample(rtt);
            self.neighbours.add(ack.seq, self.base.waiting(rtt));
        }
        if ack.sent_at < self.since {
            self.round = Round { began: now, ..Round::default() };
            return self.on_stale(now, ack);
        }
        if ack.rtt.is_some() {
            self.in_a_row = if self.found_queue(ack) { self.in_a_row + 1 } else { 0 };
        }
        let round = &mut self.round;
        round.acked += 1;
        round.bytes += ack.size.get();
        round.lost = round.lost.saturating_sub(u32::from(ack.late));
        let length = srtt.unwrap_or(Duration::from_secs(1)).max(LEAST_ROUND);
        if self.in_a_row >= IN_A_ROW {
            let rate = AFTER_QUEUE * self.delivered(now, length).map_or(self.rate, |rate| rate.min(self.rate));
            self.cut(now, rate, "a queue stands");
        } else if now.since(self.round.began) >= length && self.round.acked >= LEAST_ACKED {
            self.end_round(now, length);
        }
    }

    pub(super) fn on_loss(&mut self, now: Instant, loss: &Loss) {
        if loss.sent_at < self.since {
            return;
        }
        self.round.lost += 1;
        let queue = self.loss_waiting + self.jitter.waits();
        if self.neighbours.waiting(loss.seq).is_some_and(|waiting| waiting >= queue) {
            self.cut(now, self.fair, "lost in a queue");
        }
    }

    /// The no-feedback timer has expired.
    pub(super) fn on_silence(&mut self, now: Instant) {
        self.cut(now, self.rate / 2.0, "no feedback");
    }

    // --- inside ----------------------------------------------------------------------------------

    /// The packet waited for longer than jitter explains.
    fn found_queue(&self, ack: &Acked) -> bool {
        ack.rtt.is_some_and(|rtt| self.base.shows_queue(rtt.saturating_sub(self.jitter.waits())))
    }

    /// The rate delivered in this round so far, once half a round is over.
    fn delivered(&self, now: Instant, length: Duration) -> Option<f64> {
        let took = now.since(self.round.began);
        (took * 2 >= length).then(|| self.round.bytes as f64 / took.as_secs_f64())
    }

    fn end_round(&mut self, now: Instant, length: Duration) {
        let Round { acked, lost, .. } = self.round;
        let Some(delivered) = self.delivered(now, length) else { return };
        if f64::from(lost) > self.most_loss * f64::from(lost + acked) {
            return self.cut(now, AFTER_QUEUE * delivered.min(self.rate), "much is lost");
        }
        self.round = Round { began: now, ..Round::default() };
        if delivered < USED * self.rate {
            return self.set(self.rate.min(AT_MOST * delivered), "not used");
        }
        if self.starting {
            return self.set(2.0 * self.rate, "no queue yet");
        }
        let step = (STEP_TIME * self.rate).max(STEP_PACKETS * self.packet) / length.as_secs_f64();
        self.set(self.rate + step.min(MOST_STEP * self.rate), "no queue");
    }

    /// A packet is acknowledged that left before the last cut, whose effect is not heard of for a round trip: seconds, where the capacity has
    /// fallen. While a queue stands the flow keeps no more than its part of what the path delivers now.
    fn on_stale(&mut self, now: Instant, ack: &Acked) {
        if !self.found_queue(ack) || self.stale.began < self.since {
            self.stale = Stale { began: now, last: now, ..Stale::default() };
        }
        match self.stale.add(now, ack.size.get()) {
            Some(delivered) if AFTER_QUEUE * delivered < self.rate => {
                self.set(AFTER_QUEUE * delivered, "a queue stays")
            }
            _ => {}
        }
    }

    /// Down to `rate`; growth begins anew, with packets that leave from now on.
    fn cut(&mut self, now: Instant, rate: f64, reason: &'static str) {
        self.starting = false;
        self.in_a_row = 0;
        self.since = now;
        self.stale = Stale::default();
        self.round = Round { began: now, ..Round::default() };
        self.set(rate, reason);
    }

    fn set(&mut self, rate: f64, reason: &'static str) {
        self.rate = rate.min(self.max).max(self.fair);
        self.reason = reason;
    }
}

/// J, by how much a round trip differs from the one before, in the mean over the last sixteen or so [RFC 3550 §6.4.1]: a queue changes little from
/// packet to packet, and what a link or a busy machine adds changes each time.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    last: Option<Duration>,
    mean: Duration,
}

impl Jitter {
    fn on_sample(&mut self, rtt: Duration) {
        if let Some(last) = self.last.replace(rtt) {
            self.mean = (self.mean * 15 + rtt.max(last).saturating_sub(rtt.min(last))) / 16;
        }
    }

    /// The waiting that jitter explains.
    fn waits(&self) -> Duration {
        self.mean * JITTERS
    }
}

/// How long the packets acknowledged last had waited, by number.
#[derive(Clone, Debug, Default)]
struct Neighbours {
    delays: [Option<(u64, Duration)>; NEIGHBOURS],
    next: usize,
}

impl Neighbours {
    fn add(&mut self, seq: u64, waiting: Duration) {
        self.delays[self.next] = Some((seq, waiting));
        self.next = (self.next + 1) % NEIGHBOURS;
    }

    /// The mean of the packet before this one and the one after, or of the one that is known.
    fn waiting(&self, seq: u64) -> Option<Duration> {
        let known = || self.delays.iter().flatten();
        let before = known().filter(|(n, _)| *n < seq).max_by_key(|(n, _)| *n);
        let after = known().filter(|(n, _)| *n > seq).min_by_key(|(n, _)| *n);
        match (before, after) {
            (Some((_, a)), Some((_, b))) => Some((*a + *b) / 2),
            (one, other) => one.or(other).map(|(_, waiting)| *waiting),
        }
    }
}
