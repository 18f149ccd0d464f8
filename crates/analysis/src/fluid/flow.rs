//! The layer-4 loop, and the four curves that come of it.

use super::dama::Dama;
use super::{Curve, FluidError, HEADROOM, Link};
use fairpace_units::{Bytes, Duration, QsRate, Rate};

/// A flow that has not come to rest by then never will, seconds.
const LONGEST: f64 = 600.0;

/// A flow of constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The rate of the application.
    pub rate: Rate,
    /// s: the packets of which one leaves per RTT when X is lowest.
    pub packet: Bytes,
    /// The rate of the Quick-Start request; approved, as the link is idle.
    pub quick_start: QsRate,
}

impl Flow {
    /// A flow that asks for the lowest rate of the option that leaves [`HEADROOM`].
    ///
    /// # Errors
    /// [`FluidError::NoRequest`]: the option has no such rate.
    pub fn asking(rate: Rate, packet: Bytes) -> Result<Flow, FluidError> {
        let most = QsRate::MAX.rate() / HEADROOM;
        let quick_start = QsRate::at_least(rate * HEADROOM).ok_or(FluidError::NoRequest { rate, most })?;
        Ok(Flow { rate, packet, quick_start })
    }
}

/// How the flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Slow start.
    None,
    /// Quick-Start; the terminal's requests do not know of it.
    Qs,
    /// Quick-Start; the terminal adds the rate to its next request, and holds the packet that asks for T_q.
    Qsd(Duration),
}

impl Strategy {
    /// T_q: how long the first packet is held.
    pub fn t_q(self) -> Duration {
        match self {
            Strategy::None | Strategy::Qs => Duration::ZERO,
            Strategy::Qsd(t_q) => t_q,
        }
    }
}

/// Where a bit was, and how long. All in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// When the application made it.
    pub at: f64,
    /// In TFRC's transmit buffer: from G to S.
    pub transmit: f64,
    /// In the uplink queue: from S to U.
    pub uplink: f64,
    /// On the radio link: from U to V.
    pub radio: f64,
}

impl Delay {
    /// End to end: from G to V.
    pub fn end_to_end(&self) -> f64 {
        self.transmit + self.uplink + self.radio
    }
}

/// The result: four cumulative curves, in bits over seconds since the flow's start.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// G: made by the application.
    pub generator: Curve,
    /// S: out of TFRC's transmit buffer.
    pub sent: Curve,
    /// U: out of the uplink queue.
    pub uplink: Curve,
    /// V: received.
    pub receiver: Curve,
}

/// The flow from its start until nothing can change any more. `phase`: how long before the start a super-frame
/// began, less than T_b.
pub fn run(link: &Link, flow: &Flow, strategy: Strategy, phase: Duration) -> Run {
    let r = flow.rate.as_bps();
    let (t_r, phase) = (link.t_b.as_secs_f64(), phase.as_secs_f64());
    let mut tfrc = Tfrc::new(link, flow, strategy);
    let mut dama = Dama::new(link);
    let mut approved = if let Strategy::Qsd(_) = strategy { flow.quick_start.rate().as_bps() } else { 0.0 };
    // With no queue for so long, every request under way and every report is of the flow's own rate.
    let calm = link.allocation_delay().as_secs_f64() + 2.0 * t_r + 2.0 * tfrc.rtt;

    let (mut sent, mut uplink) = (Curve::from(0.0), Curve::from(0.0));
    // Now: the time, G, S and U. S at the last boundary; when there was a queue last.
    let (mut t, mut g, mut s, mut u) = (0.0, 0.0, 0.0, 0.0);
    let (mut measured, mut busy) = (0.0, 0.0);
    let (mut k, mut boundary) = (1.0, t_r - phase);
    // Whether there is a queue, or there will be, as more comes than goes.
    let (mut held, mut queued) = (false, false);
    while t < (busy + calm).min(LONGEST) {
        let b = dama.granted();
        held |= tfrc.x < r;
        let out = if held { tfrc.x } else { r };
        queued |= out > b;
        let served = if queued { b } else { out };
        // Nothing changes until a queue is empty, the super-frame ends, or TFRC learns.
        let emptied = |level: f64, comes: f64, goes: f64| match goes > comes {
            true => t + level.max(0.0) / (goes - comes),
            false => f64::INFINITY,
        };
        let (buffer_empty, queue_empty) = (emptied(g - s, r, out), emptied(s - u, out, served));
        let until = tfrc.next.min(boundary).min(buffer_empty).min(queue_empty);
        if held || queued {
            busy = until;
        }
        held &= until < buffer_empty;
        queued &= until < queue_empty;
        g = r * until;
        s = if held { s + out * (until - t) } else { g };
        u = if queued { u + served * (until - t) } else { s };
        t = until;
        sent.to(t, s);
        uplink.to(t, u);
        if t >= boundary {
            dama.boundary((s - measured) / t_r, s - u, approved);
            (measured, approved) = (s, 0.0);
            k += 1.0;
            boundary = t_r * k - phase;
        }
        if t >= tfrc.next {
            tfrc.learn(&uplink);
        }
    }
    let mut generator = Curve::from(0.0);
    generator.to(t, g);
    Run { generator, sent, receiver: uplink.later(link.rtt_m().as_secs_f64() / 2.0), uplink }
}

impl Run {
    /// The delay of each bit at which the course of any of its parts changes, in order; in between all of them
    /// are straight.
    pub fn delays(&self) -> Vec<Delay> {
        let radio = self.receiver.corners()[0].0 - self.uplink.corners()[0].0;
        let mut bits: Vec<f64> = self.sent.corners().iter().chain(self.uplink.corners()).map(|c| c.1).collect();
        bits.sort_by(f64::total_cmp);
        bits.dedup();
        let delay = |bits| {
            let (at, s, u) = (self.generator.time_of(bits)?, self.sent.time_of(bits)?, self.uplink.time_of(bits)?);
            // Where there is no queue, rounding alone is between the curves.
            Some(Delay { at, transmit: (s - at).max(0.0), uplink: (u - s).max(0.0), radio })
        };
        bits.into_iter().filter_map(delay).collect()
    }
}

/// X, and what changes it. Rates in bit/s, times in seconds.
struct Tfrc {
    x: f64,
    /// s / RTT: never less.
    least: f64,
    rtt: f64,
    rtt_m: f64,
    /// QS rate, if the flow has asked.
    quick_start: Option<f64>,
    /// The step that comes next: at so many RTT.
    n: f64,
    /// When that is.
    next: f64,
}

impl Tfrc {
    fn new(link: &Link, flow: &Flow, strategy: Strategy) -> Tfrc {
        let rtt_m = link.rtt_m().as_secs_f64();
        let rtt = rtt_m + strategy.t_q().as_secs_f64();
        let packet = flow.packet.as_f64() * 8.0;
        Tfrc {
            x: packet / rtt.min(1.0),
            least: packet / rtt,
            rtt,
            rtt_m,
            quick_start: (strategy != Strategy::None).then(|| flow.quick_start.rate().as_bps()),
            n: 1.0,
            next: rtt,
        }
    }

    /// Feedback has come, at `next`. `uplink`: U until then.
    fn learn(&mut self, uplink: &Curve) {
        let mut steps = 1.0;
        if self.n == 1.0 {
            // The first report says X_recv = 0, or is ignored.
            self.x = self.quick_start.unwrap_or(0.0).max(self.least);
            if self.quick_start.is_some() {
                // The packet after two RTT belongs to the trickle: the paper has the next after three.
                steps = 2.0;
            }
        } else {
            // Eq. (4): of what left the uplink queue in the RTT that ended RTT_m ago.
            let end = self.next - self.rtt_m;
            let report = (uplink.bits_at(end) - uplink.bits_at(end - self.rtt)) / self.rtt;
            self.x = (2.0 * self.x).min(2.0 * report).max(self.least);
        }
        self.n += steps;
        self.next = self.rtt * self.n;
    }
}
