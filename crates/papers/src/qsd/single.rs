//! One flow on an idle satellite: what DAMA, Quick-Start and QSD do to its start [qsd §3, Figs. 3 to 5].

use super::course::{self, Course};
use super::frame::{FRAMES, Frame};
use super::phases::{ALL, Packet, PhaseRun, Phases, each_phase, over_phases};
use super::setup::{Strategy, satellite};
use crate::builtin::{base, kbps, with};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_lab::study::{Job, Measure};
use fairpace_scenario::{AgentKind, EstimatorKind, RawScenario, Scenario};
use serde::{Deserialize, Serialize};

// --- Fig. 3 --------------------------------------------------------------------------------------------------------

/// A fifth of the carrier for good, in place of DAMA [qsd §3.3].
fn assign_constant_rate(s: &mut RawScenario) {
    let satellite = satellite(s);
    (satellite.cra, satellite.rbdc) = (kbps(6_336.0 / 5.0), false);
    // All slots are assigned: what is free is what nobody sends in.
    if satellite.quick_start.agent != AgentKind::None {
        satellite.quick_start.estimator = Some(EstimatorKind::Listening);
    }
}

/// Key, colour and name; the assignment of capacity; the start of the flow.
type Line = (&'static str, &'static str, &'static str, fn(&mut RawScenario), Strategy);

const FIG3: [Line; 4] = [
    ("cra-none", "qsd-opt", "CRA, no Quick-Start", assign_constant_rate, Strategy::None),
    ("cra-qs", "qsd-max", "CRA, QS", assign_constant_rate, Strategy::Qs),
    ("no-qs", "no-qs", "DAMA, no Quick-Start", |_| (), Strategy::None),
    ("qs", "qs", "DAMA, QS", |_| (), Strategy::Qs),
];

pub(super) fn fig3(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points, mut section) = (Vec::new(), Vec::new(), e.section());
    let mut with_quick_start = Vec::new();
    for frame in FRAMES {
        let scenarios = FIG3.map(|(.., assign, strategy)| {
            with(&base(e), |s| {
                frame.set(s);
                strategy.set(s);
                assign(s);
            })
        });
        let four = over_phases(e, &scenarios, bench)?;
        let course = |((key, colour, name, ..), phases): (Line, _)| Course::new(key, name, colour, phases);
        let courses: Vec<Course<'_>> = FIG3.into_iter().zip(&four).map(course).collect();
        let [cra, cra_qs, dama, dama_qs] = &courses[..] else { continue };
        let [a, b, c, d] = [cra, dama, cra_qs, dama_qs].map(Course::peak);
        let peaks = format!("peaks at {a} s with CRA and {b} s with DAMA; with Quick-Start at {c} and {d} s");
        let title = format!("{} frame: the median end-to-end delay {peaks}", frame.key());
        claims.extend(fig3_claims(e, frame, [cra, cra_qs, dama, dama_qs].map(|course| course.phases)));
        section = course::shown(e, section, frame, title, &courses);
        points.extend(course::points(frame, &courses));
        with_quick_start.push((dama_qs.phases.peak_of_median(), dama_qs.phases.widest()));
    }
    if let [large, small] = with_quick_start[..] {
        for (key, words, what, ratio) in [
            ("delay", "the delay", "greatest median delay of a packet", small.0 / large.0),
            (
                "variability",
                "its variability",
                "greatest - least over the phases, the packet with most",
                small.1 / large.1,
            ),
        ] {
            let statement = format!(
                "DAMA with Quick-Start: {words} is significantly reduced in the small frame (ours: by a quarter at least)"
            );
            let claim =
                e.claim(format!("small-frame-{key}"), statement, Bound::AtMost(0.75), format!("{what}, small / large"));
            claims.push(claim.exact(ratio));
        }
    }
    Ok(e.outcome(points, claims, section))
}

fn fig3_claims(e: &Experiment, frame: Frame, [cra, cra_qs, dama, dama_qs]: [&Phases; 4]) -> Vec<Claim> {
    let claim = |id: &str, statement: &str, bound, what: &str| {
        e.claim(format!("{id}-{}", frame.key()), format!("{statement}, {} frame", frame.key()), bound, what)
    };
    let twice = "with DAMA the greatest delay is at least twice that with CRA (ours)";
    let what = "greatest delay with DAMA / with CRA";
    let mut claims = vec![
        claim("cra-far-below", twice, Bound::AtLeast(2.0), what).over_phases(dama.over(cra)),
        claim("cra-far-below-qs", "the same with Quick-Start", Bound::AtLeast(2.0), what)
            .over_phases(dama_qs.over(cra_qs)),
    ];
    for (id, name, with, without) in [("qs-helps-dama", "DAMA", dama_qs, dama), ("qs-helps-cra", "CRA", cra_qs, cra)] {
        let statement = format!("Quick-Start lowers the greatest delay over {name}");
        let what = "greatest delay with Quick-Start / without";
        claims.push(claim(id, &statement, Bound::Below(1.0), what).over_phases(with.over(without)));
    }
    if frame == Frame::Large {
        let statement = "DAMA with Quick-Start is still seconds in the large frame (ours: at least 2 s)";
        let what = "greatest delay with DAMA and Quick-Start, s";
        claims.push(e.claim("still-seconds", statement, Bound::AtLeast(2.0), what).over_phases(dama_qs.peaks()));
    }
    claims
}

// --- Fig. 4 --------------------------------------------------------------------------------------------------------

/// The sender's course in one phase. Times in s since the flow's start, rates in bit/s.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Start {
    /// When the rate that the routers approved came into use, and which that is.
    response: Option<(f64, f64)>,
    /// When X first fell after that, and how far within the next RTT.
    throttled: Option<(f64, f64)>,
}

impl Start {
    const MEASURE: Measure<Start> = Measure { name: "qsd start", of: Start::watch };

    fn watch(job: &Job<'_>) -> Result<Start, RunError> {
        let run = PhaseRun::run(job)?;
        let rates = run.rates();
        let response = run.approved();
        let throttled = response.and_then(|(at, approved)| {
            let (first, _) = rates.iter().copied().find(|(t, x)| *t > at && *x < 0.99 * approved)?;
            let least =
                rates.iter().filter(|(t, _)| *t >= first && *t <= first + at).map(|r| r.1).fold(f64::NAN, f64::min);
            Some((first, least))
        });
        Ok(Start { response, throttled })
    }
}

pub(super) fn fig4(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let scenario = [base(e)];
    let all = over_phases(e, &scenario, bench)?;
    let starts = each_phase(e, &scenario, ALL, bench, Start::MEASURE)?;
    let (Some(phases), Some(starts)) = (all.first(), starts.cells.first()) else { return Err(RunError::Interrupted) };
    let widest = phases.widest();
    let of = |number: fn(&Start) -> Option<f64>| starts.values(number);
    let seconds = "the end-to-end delay of a packet differs by seconds from phase to phase (ours: at least 1 s)";
    let response = "the QS-Response comes after one RTT, 0.8 s (ours: within 10 %)";
    let first = "the first feedback report does not lower the approved rate: it is in use for at least one RTT";
    let second = "the second report comes after three RTT, at 2.3 s (ours: within 10 %)";
    let throttles = "it throttles the sender much below the approved rate (ours: to at most half)";
    let most = "greatest - least over the phases, the packet with most, s";
    let in_use = "time from the response until X falls, in first RTTs";
    let lowest = "lowest X in the RTT from then on / the approved rate";
    let claims = vec![
        e.claim("phase-effect", seconds, Bound::AtLeast(1.0), most).exact(widest),
        e.claim("response", response, Bound::Within(0.72, 0.88), "when X became the approved rate, s")
            .over_phases(of(|s| s.response.map(|r| r.0))),
        e.claim("first-report-ignored", first, Bound::AtLeast(1.0), in_use)
            .over_phases(of(|s| Some((s.throttled?.0 - s.response?.0) / s.response?.0))),
        e.claim("second-report", second, Bound::Within(2.07, 2.53), "when X falls for the first time, s")
            .over_phases(of(|s| s.throttled.map(|t| t.0))),
        e.claim("throttled", throttles, Bound::AtMost(0.5), lowest)
            .over_phases(of(|s| Some(s.throttled?.1 / s.response?.1))),
    ];
    let courses = [Course::new("qs", "DAMA, QS", "qs", phases)];
    let one_way = Course::new("qs", "one way", "one-way", phases);
    let lines = vec![courses[0].line(Packet::e2ed), one_way.line(Packet::owd)];
    let title = format!(
        "Large frame, DAMA and QS: up to {} s between the best and the worst phase of one packet; what is not one-way delay is the sender's buffer",
        short(widest)
    );
    let section = e.section().chart(course::chart(e, title, &courses, lines));
    let section = section.table(course::numbers(e, Frame::Large, &courses));
    Ok(e.outcome(course::points(Frame::Large, &courses), claims, section))
}

// --- Fig. 5 --------------------------------------------------------------------------------------------------------

pub(super) fn fig5(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let starts = Frame::Large.strategies();
    let scenarios: Vec<Scenario> = starts.iter().map(|(strategy, _)| with(&base(e), |s| strategy.set(s))).collect();
    let all = over_phases(e, &scenarios, bench)?;
    let course = |((strategy, key), phases): ((Strategy, _), _)| Course::new(key, strategy.name(), key, phases);
    let courses: Vec<Course<'_>> = starts.into_iter().zip(&all).map(course).collect();
    let [none, qs, qsd0, opt, max] = &courses[..] else { return Err(RunError::Interrupted) };
    let title = format!(
        "Large frame: the median peaks at {} s without Quick-Start, {} s with QS, {} s with QSD at T_q = 0, {} s at 520 ms, {} s at 1,273 ms",
        none.peak(),
        qs.peak(),
        qsd0.peak(),
        opt.peak(),
        max.peak(),
    );
    let claims = fig5_claims(e, [none, qs, qsd0, opt, max].map(|course| course.phases));
    let section = course::shown(e, e.section(), Frame::Large, title, &courses);
    Ok(e.outcome(course::points(Frame::Large, &courses), claims, section))
}

fn fig5_claims(e: &Experiment, [none, qs, qsd0, opt, max]: [&Phases; 5]) -> Vec<Claim> {
    let alike = Bound::Within(0.8, 1.25);
    let rise = "highest rise after the first fall in the worst phase, s; up to T_f and a packet it is none";
    let no_hump = |key: &str, phases: &Phases, t_q: &str| {
        let statement = format!("no second hump at T_q = {t_q}, in any phase");
        e.claim(key, statement, Bound::AtMost(phases.quantum), rise).exact(phases.worst_hump())
    };
    let greater = "without Quick-Start the delay is greater than with it";
    let like_qs = "QSD with T_q = 0 is like QS (ours: within a quarter)";
    let like_opt = "T_q = 1,273 ms is like 520 ms (ours: within a quarter)";
    let better = "QSD with T_q = 520 ms is better than with 0";
    let at_0 = "with T_q = 0 there is a second hump in the worst phase";
    vec![
        e.claim("none-worst", greater, Bound::Above(1.0), "greatest delay without / with QS")
            .over_phases(none.over(qs)),
        e.claim("qsd0-like-qs", like_qs, alike, "greatest delay with QSD, T_q = 0 / with QS")
            .over_phases(qsd0.over(qs)),
        e.claim("opt-better", better, Bound::Above(1.0), "greatest delay with T_q = 0 / with 520 ms")
            .because(format!(
                "The highest second hump of all phases is {} s with T_q = 0 and {} s with 520 ms; the claim is about the \
                 greatest delay",
                short(qsd0.worst_hump()),
                short(opt.worst_hump())
            ))
            .over_phases(qsd0.over(opt)),
        e.claim("max-like-opt", like_opt, alike, "greatest delay with T_q = 1,273 ms / with 520 ms")
            .over_phases(max.over(opt)),
        e.claim("hump-at-0", at_0, Bound::Above(qsd0.quantum), rise).exact(qsd0.worst_hump()),
        no_hump("no-hump-520", opt, "520 ms"),
        no_hump("no-hump-1273", max, "1,273 ms"),
    ]
}
