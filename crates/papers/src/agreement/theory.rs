//! Single parts of the simulator beside formulas.
//!
//! | formula | of | source |
//! | --- | --- | --- |
//! | L = rho + rho² / (2 (1 - rho)) | mean queue, Poisson arrivals, constant service | Pollaczek and Khinchine |
//! | rho / (1 + rho) | blocked without waiting room | Erlang |
//! | 1 / r, p / (p + r) | mean burst and share of losses of a two-state channel | Gilbert |
//! | C(alpha, beta) / (R sqrt(p)) | rate of TCP(alpha, beta) under independent loss | [`random_loss_constant`] |
//! | that rate = c / N at the queue that makes p | RED's mean queue | [`red_queue`] |
//! | sum of INTERVAL / sqrt(k) | instants of CoDel's drops | [RFC 8289 §5] |

use super::compare::{Deviation, Theirs};
use crate::builtin::{base, with};
use crate::figure::{Numbers, counted};
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::run::simulate_observed;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Job, Measure};
use fairpace_path::{
    Capacity, CoDelParams, DropReason, GilbertElliott, Link, LinkCounters, LinkSpec, LossModel, Plain, QueueModel,
    RateModel,
};
use fairpace_scenario::{Count, LossSpec, QueueSpec, Record, Room, Scenario, sim_config};
use fairpace_sim::Protocol;
use fairpace_units::{Bytes, Duration, Instant, Packets, Probability, RandomStream, Rate};

/// A formula and the number of ours that it is about.
struct Formula {
    key: &'static str,
    words: &'static str,
    expected: fn() -> f64,
    measure: Measure<f64>,
    /// The part of itself that it may be off by.
    within: f64,
    set: fn(&Scenario) -> Scenario,
}

const ALONE: fn(&Scenario) -> Scenario = Scenario::clone;

const FORMULAS: [Formula; 11] = [
    md1("md1-queue-0.5", "M/D/1: mean queue at a load of 0.5", || mean_queue(0.5), |j| queue(j, 0.5)),
    md1("md1-queue-0.8", "M/D/1: mean queue at a load of 0.8", || mean_queue(0.8), |j| queue(j, 0.8)),
    md1("md1-queue-0.9", "M/D/1: mean queue at a load of 0.9", || mean_queue(0.9), |j| queue(j, 0.9)),
    Formula { within: 0.01, ..md1("md1-blocked", "M/D/1/1: part blocked at a load of 0.9", || 0.9 / 1.9, blocked) },
    Formula {
        within: 0.02,
        ..md1("gilbert-burst", "Gilbert: mean length of a burst of losses", || 1.0 / RECOVERS, burst)
    },
    Formula {
        within: 0.02,
        ..md1("gilbert-share", "Gilbert: part of the packets lost", || FAILS / (FAILS + RECOVERS), lost_in_bursts)
    },
    rate_under_loss(
        "tcp-1-0.5",
        "TCP(1, 1/2): rate at p = 0.001",
        || expected_rate(1.0, 0.5),
        |j| general_tcp(j, 1.0, 0.5),
    ),
    rate_under_loss(
        "tcp-0.2-0.875",
        "TCP(0.2, 7/8), AIMD's constants: rate at p = 0.001",
        || expected_rate(0.2, 0.875),
        |j| general_tcp(j, 0.2, 0.875),
    ),
    rate_under_loss(
        "tcp-2-0.5",
        "TCP(2, 1/2), two for one: rate at p = 0.001",
        || expected_rate(2.0, 0.5),
        |j| general_tcp(j, 2.0, 0.5),
    ),
    Formula {
        key: "red-queue",
        words: "RED: mean queue of 20 TCP",
        expected: || red_queue(2_500.0, 20.0, 0.1, [50.0, 400.0], 0.02),
        measure: Measure { name: "agreement red-queue", of: mean_queue_of_red },
        within: 0.1,
        set: ALONE,
    },
    Formula { within: 0.01, ..md1("codel-spacing", "CoDel: from the first drop to the 400th", codel_law, codel_drops) },
];

const fn md1(key: &'static str, words: &'static str, expected: fn() -> f64, of: Of) -> Formula {
    Formula { key, words, expected, measure: Measure { name: key, of }, within: 0.03, set: ALONE }
}

const fn rate_under_loss(key: &'static str, words: &'static str, expected: fn() -> f64, of: Of) -> Formula {
    Formula { within: 0.05, set: wide_and_lossy, ..md1(key, words, expected, of) }
}

type Of = fn(&Job<'_>) -> Result<f64, RunError>;

pub(super) fn run(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let seeds = bench.seeds(10, 20);
    let (mut numbers, mut claims) = (Numbers::default(), Vec::new());
    for formula in &FORMULAS {
        let cases = vec![Case::new(formula.key, 0.0, (formula.set)(&base))];
        let found = counted(e, bench, formula.measure, cases, seeds)?;
        let values = found.values(formula.key, 0.0, |x| Some(*x));
        let deviation = Deviation::of(&values, Theirs::exact((formula.expected)()));
        let words = [
            formula.words.to_owned(),
            deviation.map_or("–".to_owned(), |d| d.text()),
            deviation.map_or("–", |d| d.verdict(formula.within)).to_owned(),
        ];
        let of = |f: fn(&Deviation) -> Estimate| deviation.as_ref().map(f);
        let theirs = Some(Estimate::exact((formula.expected)()));
        numbers.row(
            words,
            (formula.key, &[]),
            &[("ours", of(|d| d.ours)), ("formula", theirs), ("deviation", of(|d| d.relative))],
        );
        let statement = format!("{}: the formula's, to {} % (ours)", formula.words, 100.0 * formula.within);
        let bound = Bound::Within(-formula.within, formula.within);
        claims
            .push(e.claim(formula.key, statement, bound, "ours over the formula's, less 1").number(of(|d| d.relative)));
    }
    let head = ["number", "deviation, % (standard deviations)", "verdict", "ours", "formula", "ours / formula - 1"];
    let table = numbers.table("Formulas", format!("{seeds} seeds; 95 % intervals"), head);
    Ok(e.outcome(numbers.points, claims, e.section().table(table)))
}

// --- a single link -------------------------------------------------------------------------------------------------

/// Arrivals of a run.
const ARRIVALS: u64 = 400_000;
/// A two-state channel, per packet.
const FAILS: f64 = 0.01;
const RECOVERS: f64 = 0.25;
/// Drops of CoDel that are timed.
const DROPS: usize = 400;

/// 1,000 packets/s of 1,000 B.
fn of_1000_per_second() -> LinkSpec {
    LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), ..LinkSpec::default() }
}

fn mean_queue(load: f64) -> f64 {
    load + load * load / (2.0 * (1.0 - load))
}

fn refused(error: &dyn std::error::Error) -> RunError {
    RunError::World(error.to_string().into())
}

/// Poisson arrivals at a link whose service time is 1 ms.
fn poisson(job: &Job<'_>, spec: &LinkSpec, load: f64) -> Result<LinkCounters, RunError> {
    let mut link: Link<Plain> = Link::new(spec, job.seed, "link").map_err(|e| refused(&e))?;
    let mut random = RandomStream::named(job.seed, "arrivals");
    let mut now = Instant::ZERO;
    for id in 0..ARRIVALS {
        now += random.exponential(Duration::from_secs_f64(1e-3 / load));
        while link.pop(now).is_some() {}
        link.push(now, Plain { id, ..Plain::new(Bytes::new(1_000)) });
    }
    link.advance(now);
    Ok(link.counters())
}

fn queue(job: &Job<'_>, load: f64) -> Result<f64, RunError> {
    Ok(poisson(job, &of_1000_per_second(), load)?.mean_queue())
}

fn blocked(job: &Job<'_>) -> Result<f64, RunError> {
    let queue = QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(1)) };
    let counters = poisson(job, &LinkSpec { queue, ..of_1000_per_second() }, 0.9)?;
    Ok(counters.dropped(DropReason::QueueFull).packets.as_f64() / counters.total().offered.packets.as_f64())
}

/// The numbers of the lost packets of a two-state channel.
fn gilbert(job: &Job<'_>) -> Result<Vec<u64>, RunError> {
    let chance = |p: f64| Probability::new(p).map_err(|e| refused(&e));
    let model = GilbertElliott {
        good_to_bad: chance(FAILS)?,
        bad_to_good: chance(RECOVERS)?,
        loss_in_good: chance(0.0)?,
        loss_in_bad: chance(1.0)?,
    };
    let spec = LinkSpec { loss: LossModel::GilbertElliott(model), ..of_1000_per_second() };
    let mut link: Link<Plain> = Link::new(&spec, job.seed, "link").map_err(|e| refused(&e))?;
    link.record_drops(true);
    let mut lost = Vec::new();
    for id in 0..ARRIVALS {
        let now = Instant::ZERO + Duration::from_millis(id);
        while link.pop(now).is_some() {}
        lost.extend(std::iter::from_fn(|| link.take_dropped()).map(|(_, _, packet)| packet.id));
        link.push(now, Plain { id, ..Plain::new(Bytes::new(1_000)) });
    }
    Ok(lost)
}

fn burst(job: &Job<'_>) -> Result<f64, RunError> {
    let lost = gilbert(job)?;
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    Ok(lost.len() as f64 / bursts as f64)
}

fn lost_in_bursts(job: &Job<'_>) -> Result<f64, RunError> {
    Ok(gilbert(job)?.len() as f64 / ARRIVALS as f64)
}

/// Seconds from the first drop to the [`DROPS`]th at a link that is offered a quarter more than it carries.
fn codel_drops(_: &Job<'_>) -> Result<f64, RunError> {
    let spec = LinkSpec { queue: QueueModel::CoDel(CoDelParams::new(Capacity::Unlimited)), ..of_1000_per_second() };
    let mut link: Link<Plain> = Link::new(&spec, 1, "link").map_err(|e| refused(&e))?;
    link.record_drops(true);
    let mut drops = Vec::new();
    for id in 0..ARRIVALS {
        let now = Instant::ZERO + Duration::from_micros(800 * id);
        while link.pop(now).is_some() {}
        link.push(now, Plain { id, ..Plain::new(Bytes::new(1_000)) });
        drops.extend(std::iter::from_fn(|| link.take_dropped()).map(|(at, ..)| at));
        if let (Some(first), Some(last)) = (drops.first(), drops.get(DROPS - 1)) {
            return Ok(last.since(*first).as_secs_f64());
        }
    }
    Err(RunError::World(format!("CoDel dropped {} times", drops.len()).into()))
}

fn codel_law() -> f64 {
    (1..DROPS).map(|k| 0.1 / (k as f64).sqrt()).sum()
}

// --- TCP -----------------------------------------------------------------------------------------------------------

/// TCP alone on 200 Mbit/s, 100 ms, p = 0.001.
fn wide_and_lossy(base: &Scenario) -> Scenario {
    with(base, |s| {
        s.path.rate = Some(fairpace_scenario::Capacity::Fixed(fairpace_scenario::Speed::kbps(200e3)));
        s.path.queue = QueueSpec::of("drop-tail").with("capacity", Room::packets(100_000));
        s.path.loss = LossSpec::random(1e-3);
        s.duration = fairpace_scenario::Time::seconds(650.0);
        s.flows[0].count = Count::new(1);
        s.flows[0].tcp.get_or_insert_default().initial_ssthresh = Some(Count::new(40));
    })
}

/// Segments sent per second by the scenario's TCP with an increase and a decrease of its own.
fn general_tcp(job: &Job<'_>, increase: f64, decrease: f64) -> Result<f64, RunError> {
    let mut config = sim_config(job.scenario, job.seed, Record::default())?;
    for flow in &mut config.flows {
        if let Protocol::Tcp(tcp, _) = &mut flow.protocol {
            (tcp.increase, tcp.decrease) = (increase, decrease);
        }
    }
    let (report, now) = simulate_observed(&job.scenario.name, &config, None, job.hooks)?;
    if now < Instant::ZERO + config.duration {
        return Err(RunError::Interrupted);
    }
    let sent = report.flows.iter().map(|f| f.measured.sent.packets.as_f64() / f.window.as_secs_f64());
    Ok(sent.sum())
}

/// The rate, in packets/s, at p = 0.001 and the round trip of the set-up, a packet's transmission included.
fn expected_rate(increase: f64, decrease: f64) -> f64 {
    random_loss_constant(increase, decrease) / ((0.1 + 40e-6) * 1e-3_f64.sqrt())
}

/// C of the rate C / (R sqrt(p)) of a window that grows by `increase` per round trip and of which `decrease` remains after
/// a loss, where each packet is lost with probability p, independently, and p is small.
///
/// Counted in packets, W grows by increase / W per packet, so that V = W² / (2 increase) grows by 1 per packet, and falls to
/// decrease² V at a loss. Losses are a Poisson process of rate p, so p V is distributed as the sum of q^k E_k, with
/// q = decrease² and independent exponential E_k of mean 1. A packet takes R / W, and the rate is 1 / E\[R / W\]:
/// C = sqrt(2 increase) / E\[(p V)^(-1/2)\], where E\[X^(-1/2)\] is 2 / sqrt(pi) times the integral of X's Laplace transform at u²
/// over u from 0 to infinity. For (1, 1/2) it is 1.3098, the constant of \[Ott, Kemperman and Mathis 1996\].
pub(super) fn random_loss_constant(increase: f64, decrease: f64) -> f64 {
    const STEPS: u32 = 4_000;
    let q = decrease * decrease;
    let transform = |u: f64| {
        let (mut product, mut s) = (1.0, u * u);
        while s > 1e-12 {
            product /= 1.0 + s;
            s *= q;
        }
        product
    };
    // Simpson's rule in x, u = x / (1 - x); at x = 1 the transform has vanished faster than the change of variable grows.
    let integrand = |i: u32| {
        let x = f64::from(i) / f64::from(STEPS);
        if i == STEPS { 0.0 } else { transform(x / (1.0 - x)) / ((1.0 - x) * (1.0 - x)) }
    };
    let weight = |i: u32| if i == 0 || i == STEPS { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
    let integral = (0..=STEPS).map(|i| weight(i) * integrand(i)).sum::<f64>() / (3.0 * f64::from(STEPS));
    (2.0 * increase).sqrt() / (2.0 / std::f64::consts::PI.sqrt() * integral)
}

/// The mean number of packets at a RED queue with `n` TCP: where each has a rate of c / n by [`random_loss_constant`] under
/// the losses that RED makes of its average, one in 1.5 / p_b arrivals where drops keep a distance (`wait`).
fn red_queue(c: f64, n: f64, rtt: f64, [min, max]: [f64; 2], max_p: f64) -> f64 {
    let constant = random_loss_constant(1.0, 0.5);
    let rate = |queue: f64| {
        let p = max_p * (queue - min) / (max - min) / 1.5;
        // The packet in transmission, too.
        constant / ((rtt + (queue + 1.0) / c) * p.sqrt())
    };
    let (mut low, mut high) = (min, max);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        // A longer queue makes more losses, and a smaller rate.
        if rate(middle) > c / n { low = middle } else { high = middle }
    }
    low + 1.0
}

fn mean_queue_of_red(job: &Job<'_>) -> Result<f64, RunError> {
    let run = job.run(Record::default())?;
    Ok(run.report.links.first().map_or(f64::NAN, |link| link.measured().mean_queue()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small::runs;
    use crate::{Effort, agreement};

    #[test]
    fn the_constant_is_that_of_the_literature_and_that_of_periodic_loss_where_nothing_varies() {
        // [Ott, Kemperman and Mathis 1996]: 1.3098.
        assert!((random_loss_constant(1.0, 0.5) - 1.3098).abs() < 5e-4, "{}", random_loss_constant(1.0, 0.5));
        // Nearly nothing is lost of the window: it hardly varies, and C -> sqrt(alpha (1 + beta) / (2 (1 - beta))).
        let beta: f64 = 0.98;
        let periodic = ((1.0 + beta) / (2.0 * (1.0 - beta))).sqrt();
        assert!((random_loss_constant(1.0, beta) / periodic - 1.0).abs() < 0.01, "{}", random_loss_constant(1.0, beta));
    }

    #[test]
    fn reds_queue_is_where_the_rate_is_the_share() {
        // By hand at the result: 2,500 packets/s for 20 is 125 each.
        let queue = red_queue(2_500.0, 20.0, 0.1, [50.0, 400.0], 0.02) - 1.0;
        let p = 0.02 * (queue - 50.0) / 350.0 / 1.5;
        let rate = 1.3098 / ((0.1 + (queue + 1.0) / 2_500.0) * p.sqrt());
        assert!((rate / 125.0 - 1.0).abs() < 1e-3, "{queue}: {rate}");
    }

    #[test]
    fn a_short_run_gives_every_number() {
        let e = agreement::EXPERIMENTS.iter().find(|e| e.id == "agreement.theory").unwrap();
        let outcome = runs(e, e.scenario.to_owned(), Effort::Seeds(2));
        assert_eq!(outcome.claims.len(), FORMULAS.len());
        // Two seeds know the deterministic ones and those of many packets.
        for key in ["md1-queue-0.5", "md1-blocked", "gilbert-share", "codel-spacing"] {
            let claim = outcome.claims.iter().find(|c| c.id == format!("agreement.theory/{key}")).unwrap();
            assert!(claim.holds, "{}", claim.line());
        }
    }
}
