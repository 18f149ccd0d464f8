//! All phases of a super-frame: what is the best, the usual and the worst, and whether there is a second hump.

use super::{Delay, Flow, Link, Strategy, run};
use fairpace_units::Duration;

/// From phase to phase [qsd §3.2].
pub const PHASE_STEP: Duration = Duration::from_micros(1_800);
/// In a super-frame of many seconds the steps are longer, so that there are no more than so many.
const MOST_PHASES: u32 = 1_000;
/// From one T_q to the next in [`smallest_t_q`].
const T_Q_STEP: Duration = Duration::from_millis(1);
/// A rise of the delay that counts as a hump: less than a slot, but more than rounding. Seconds.
const HUMP: f64 = 1e-3;

/// The phases in which a flow may start: every 1.8 ms of a super-frame (76 of the small, 456 of the large
/// frame), from 0.
pub fn phases(link: &Link) -> impl Iterator<Item = Duration> {
    let step = PHASE_STEP.max(link.t_b / MOST_PHASES);
    let t_b = link.t_b;
    (0..=MOST_PHASES).map(move |i| step * i).take_while(move |phase| *phase < t_b)
}

/// A rise of the delay after its first maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hump {
    /// When the bit at its top was made, seconds after the flow's start.
    pub at: f64,
    /// The end-to-end delay there, seconds.
    pub delay: f64,
    /// How far above the lowest delay before it, seconds.
    pub rise: f64,
}

/// The highest rise after the first maximum of the end-to-end delay, if it rises again at all.
pub fn second_hump(delays: &[Delay]) -> Option<Hump> {
    let (mut most, mut least, mut past_first) = (f64::NEG_INFINITY, f64::INFINITY, false);
    let mut hump: Option<Hump> = None;
    for delay in delays {
        let (at, delay) = (delay.at, delay.end_to_end());
        most = most.max(delay);
        past_first |= delay < most - HUMP;
        if past_first {
            least = least.min(delay);
            let rise = delay - least;
            if rise > hump.map_or(HUMP, |h| h.rise) {
                hump = Some(Hump { at, delay, rise });
            }
        }
    }
    hump
}

/// The longest end-to-end delay, seconds.
pub fn max_delay(delays: &[Delay]) -> f64 {
    delays.iter().map(Delay::end_to_end).fold(0.0, f64::max)
}

/// The median end-to-end delay of the bits made in the first `over`, seconds.
pub fn median_delay(delays: &[Delay], over: Duration) -> f64 {
    let over = over.as_secs_f64();
    let (mut low, mut high) = (0.0, max_delay(delays));
    // Bits are made at a constant rate: a share of them is a share of the time.
    let share = |limit: f64| {
        let mut below = 0.0;
        for pair in delays.windows(2) {
            let [(t0, d0), (t1, d1)] = [pair[0], pair[1]].map(|d| (d.at, d.end_to_end()));
            // The piece, cut off at `over`.
            let cut = ((over - t0) / (t1 - t0)).clamp(0.0, 1.0);
            let (length, d1) = ((t1 - t0) * cut, d0 + (d1 - d0) * cut);
            let (least, most) = (d0.min(d1), d0.max(d1));
            below += if most <= limit {
                length
            } else if least > limit {
                0.0
            } else {
                length * (limit - least) / (most - least)
            };
        }
        // Past the end nothing changes any more.
        match delays.last() {
            Some(last) if last.at < over && last.end_to_end() <= limit => (below + over - last.at) / over,
            _ => below / over,
        }
    };
    // Halved down to 2^-40 of the longest.
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if share(middle) < 0.5 { low = middle } else { high = middle }
    }
    high
}

/// A number over all phases, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// In the phase in which it is least.
    pub best: f64,
    /// Half of the phases have no more.
    pub median: f64,
    /// In the phase in which it is most.
    pub worst: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or_default();
        Spread { best: at(0), median: at(values.len() / 2), worst: at(values.len().saturating_sub(1)) }
    }
}

/// A strategy over all phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The longest end-to-end delay.
    pub max: Spread,
    /// The median end-to-end delay of what is made in the first [`MEDIAN_OVER`].
    pub median: Spread,
    /// The highest second hump of any phase.
    pub hump: Option<Hump>,
}

/// The time over which [`Summary::median`] is taken: at its end nearly all strategies are at rest.
pub const MEDIAN_OVER: Duration = Duration::from_secs(10);

/// The ways to start that are worth a look: without Quick-Start, with it, and with a hold of 0, T_q,opt and T_q,max, each once.
pub fn strategies(link: &Link) -> Vec<Strategy> {
    let mut found = vec![Strategy::None, Strategy::Qs];
    for hold in [0.0, link.t_q_opt_s(), link.t_q_max_s()] {
        let strategy = Strategy::Qsd(Duration::try_from_secs_f64(hold).unwrap_or_default());
        if !found.contains(&strategy) {
            found.push(strategy);
        }
    }
    found
}

/// The effect of a strategy on a flow, over all phases.
pub fn summary(link: &Link, flow: &Flow, strategy: Strategy) -> Summary {
    let (mut max, mut median, mut hump) = (Vec::new(), Vec::new(), None::<Hump>);
    for phase in phases(link) {
        let delays = run(link, flow, strategy, phase).delays();
        max.push(max_delay(&delays));
        median.push(median_delay(&delays, MEDIAN_OVER));
        hump = match (hump, second_hump(&delays)) {
            (Some(a), Some(b)) => Some(if b.rise > a.rise { b } else { a }),
            (a, b) => a.or(b),
        };
    }
    Summary { max: Spread::of(max), median: Spread::of(median), hump }
}

/// The smallest T_q, in whole milliseconds from 0 to `most`, with which the delay has no second hump in any
/// phase; `None` if there is none.
pub fn smallest_t_q(link: &Link, flow: &Flow, most: Duration) -> Option<Duration> {
    let phases: Vec<Duration> = phases(link).collect();
    // The phase that was the obstacle last is the one to ask first: most T_q cost a single run.
    let mut first = 0;
    let mut t_q = Duration::ZERO;
    while t_q <= most {
        let has_hump = |i: &usize| second_hump(&run(link, flow, Strategy::Qsd(t_q), phases[*i]).delays()).is_some();
        let order = (first..phases.len()).chain(0..first);
        match order.into_iter().find(has_hump) {
            None => return Some(t_q),
            Some(i) => first = i,
        }
        t_q += T_Q_STEP;
    }
    None
}
