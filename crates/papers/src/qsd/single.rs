//! One flow on an idle satellite: what DAMA, Quick-Start and QSD do to its start [qsd §3, Figs. 3 to 6].

use super::{
    ALL, InPhase, Line, Packet, Phases, SWEEP, Spread, Strategy, Summit, base, chart, each_phase, kbps, of_phases,
    over_phases, quantum, satellite, summits, time_ms, with,
};
use crate::figure::table;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_lab::study::{Job, Measure};
use fairpace_report::Table;
use fairpace_scenario::{
    AgentKind, EstimatorKind, FrameSpec, Parameter, RawScenario, ReleaseKind, Scenario, SlotPlacement,
};
use serde::{Deserialize, Serialize};

/// The frames, as scenarios, claims and readers name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Large,
    Small,
}

pub(super) const FRAMES: [Frame; 2] = [Frame::Large, Frame::Small];

impl Frame {
    pub(super) fn key(self) -> &'static str {
        match self {
            Frame::Large => "large",
            Frame::Small => "small",
        }
    }

    pub(super) fn set(self, s: &mut RawScenario) {
        if let Some(satellite) = &mut s.satellite {
            satellite.frame = match self {
                Frame::Large => FrameSpec::Large,
                Frame::Small => FrameSpec::Small,
            };
        }
    }

    /// Slots of a multi-frame.
    pub(super) fn slots(self) -> f64 {
        match self {
            Frame::Large => 144.0,
            Frame::Small => 24.0,
        }
    }

    /// T_q,opt of the text and T_q,max of Table I, in ms [qsd §3.5].
    pub(super) fn t_q(self) -> (f64, f64) {
        match self {
            Frame::Large => (520.0, 1_273.0),
            Frame::Small => (55.0, 339.0),
        }
    }

    /// The five of Fig. 5, with the keys of their colours.
    pub(super) fn strategies(self) -> [(Strategy, &'static str); 5] {
        let (opt, max) = self.t_q();
        [
            (Strategy::None, "no-qs"),
            (Strategy::Qs, "qs"),
            (Strategy::Qsd(0.0), "qsd-0"),
            (Strategy::Qsd(opt), "qsd-opt"),
            (Strategy::Qsd(max), "qsd-max"),
        ]
    }
}

fn phases_caption(e: &Experiment, phases: &Phases) -> String {
    format!(
        "{}; {} phases; lines are medians over the phases, bands from the least to the greatest",
        e.file,
        phases.flows.len()
    )
}

/// The runs, and their results.
struct Course<'a> {
    key: String,
    name: String,
    phases: &'a Phases,
}

/// The numbers of charts of delay.
fn courses_table(title: &str, caption: String, courses: &[Course<'_>]) -> Table {
    let mut table = table(
        title.to_owned(),
        caption,
        [
            "start",
            "peak of the median (s)",
            "greatest delay: median (s)",
            "least (s)",
            "greatest (s)",
            "median of the packet of 5 s (s)",
            "of 10 s (s)",
            "of 20 s (s)",
            "second hump, worst phase (s)",
        ],
        [],
    );
    for course in courses {
        let spread = course.phases.spread(Packet::e2ed);
        let born = course.phases.born();
        let at = |t: f64| {
            let n = born.partition_point(|b| *b < t);
            spread.get(n).map_or("–".to_owned(), |s| short(s.median))
        };
        let peaks = Spread::of(course.phases.peaks());
        let of = |number: fn(&Spread) -> f64| peaks.as_ref().map_or("–".to_owned(), |s| short(number(s)));
        table.rows.push(vec![
            course.name.clone(),
            short(course.phases.peak_of_median()),
            of(|s| s.median),
            of(|s| s.least),
            of(|s| s.greatest),
            at(5.0),
            at(10.0),
            at(20.0),
            short(course.phases.worst_hump()),
        ]);
    }
    table
}

fn courses_points(frame: Frame, courses: &[Course<'_>]) -> Vec<Point> {
    let mut points = Vec::new();
    for course in courses {
        let n = course.phases.flows.len();
        let x = [("slots_per_multi_frame", frame.slots())];
        let peaks = Spread::of(course.phases.peaks());
        let of = |number: fn(&Spread) -> f64| peaks.as_ref().map_or(f64::NAN, number);
        points.extend(
            [
                of_phases(&course.key, &x, "e2ed_median_peak_s", course.phases.peak_of_median(), n),
                of_phases(&course.key, &x, "e2ed_peak_median_s", of(|s| s.median), n),
                of_phases(&course.key, &x, "e2ed_peak_least_s", of(|s| s.least), n),
                of_phases(&course.key, &x, "e2ed_peak_greatest_s", of(|s| s.greatest), n),
                of_phases(&course.key, &x, "second_hump_worst_s", course.phases.worst_hump(), n),
            ]
            .into_iter()
            .flatten(),
        );
    }
    points
}

// --- Fig. 3 --------------------------------------------------------------------------------------------------------

/// A fifth of the carrier for good, in place of DAMA [qsd §3.3].
fn assign_constant_rate(s: &mut RawScenario) {
    if let Some(satellite) = &mut s.satellite {
        (satellite.cra, satellite.rbdc) = (kbps(6_336.0 / 5.0), false);
        // All slots are assigned: what is free is what nobody sends in.
        if satellite.quick_start.agent != AgentKind::None {
            satellite.quick_start.estimator = Some(EstimatorKind::Listening);
        }
    }
}

const FIG3: [(&str, &str); 4] =
    [("cra-none", "CRA, no Quick-Start"), ("cra-qs", "CRA, QS"), ("no-qs", "DAMA, no Quick-Start"), ("qs", "DAMA, QS")];

/// CRA has colours of its own.
fn fig3_colour(key: &'static str) -> &'static str {
    match key {
        "cra-none" => "qsd-opt",
        "cra-qs" => "qsd-max",
        dama => dama,
    }
}

pub(super) fn fig3(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = e.section();
    for frame in FRAMES {
        let mut scenarios = Vec::new();
        for constant in [true, false] {
            for strategy in [Strategy::None, Strategy::Qs] {
                scenarios.push(with(&base(e), |s| {
                    frame.set(s);
                    strategy.set(s);
                    if constant {
                        assign_constant_rate(s);
                    }
                }));
            }
        }
        let four = &over_phases(e, &scenarios, bench)?[..];
        let [cra, cra_qs, dama, dama_qs] = four else { continue };
        claims.extend(fig3_claims(e, frame, [cra, cra_qs, dama, dama_qs]));
        let lines: Vec<Line<'_>> = FIG3
            .iter()
            .zip(four)
            .map(|((key, name), phases)| Line {
                name: (*name).to_owned(),
                colour: fig3_colour(key),
                phases,
                delay: Packet::e2ed,
            })
            .collect();
        let title = format!(
            "{} frame: the median end-to-end delay peaks at {} s with CRA and {} s with DAMA; with Quick-Start at {} and {} s",
            frame.key(),
            short(cra.peak_of_median()),
            short(dama.peak_of_median()),
            short(cra_qs.peak_of_median()),
            short(dama_qs.peak_of_median())
        );
        section = section.chart(chart(title, phases_caption(e, dama), &lines));
        let courses: Vec<Course<'_>> = FIG3
            .iter()
            .zip(four)
            .map(|((key, name), phases)| Course { key: (*key).to_owned(), name: (*name).to_owned(), phases })
            .collect();
        let title = format!("End-to-end delay, {} frame", frame.key());
        section = section.table(courses_table(&title, phases_caption(e, dama), &courses));
        points.extend(courses_points(frame, &courses));
    }
    Ok(e.outcome(points, claims, section))
}

fn fig3_claims(e: &Experiment, frame: Frame, [cra, cra_qs, dama, dama_qs]: [&Phases; 4]) -> Vec<Claim> {
    let key = frame.key();
    let ratio = |a: &Phases, b: &Phases| a.peaks().iter().zip(b.peaks()).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let mut claims = vec![
        e.claim(
            format!("cra-far-below-{key}"),
            format!("with DAMA the greatest delay is at least twice that with CRA (ours), {key} frame"),
            Bound::AtLeast(2.0),
            "greatest delay with DAMA / with CRA, neither with Quick-Start",
        )
        .over_phases(ratio(dama, cra)),
        e.claim(
            format!("cra-far-below-qs-{key}"),
            format!("the same with Quick-Start, {key} frame"),
            Bound::AtLeast(2.0),
            "greatest delay with DAMA / with CRA, both with Quick-Start",
        )
        .over_phases(ratio(dama_qs, cra_qs)),
        e.claim(
            format!("qs-helps-dama-{key}"),
            format!("Quick-Start lowers the greatest delay over DAMA, {key} frame"),
            Bound::Below(1.0),
            "greatest delay with Quick-Start / without, DAMA",
        )
        .over_phases(ratio(dama_qs, dama)),
        e.claim(
            format!("qs-helps-cra-{key}"),
            format!("Quick-Start lowers the greatest delay over CRA, {key} frame"),
            Bound::Below(1.0),
            "greatest delay with Quick-Start / without, CRA",
        )
        .over_phases(ratio(cra_qs, cra)),
    ];
    if frame == Frame::Large {
        claims.push(
            e.claim(
                "still-seconds",
                "DAMA with Quick-Start is still seconds in the large frame (ours: at least 2 s)",
                Bound::AtLeast(2.0),
                "greatest delay with DAMA and Quick-Start, s",
            )
            .over_phases(dama_qs.peaks()),
        );
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
        let run = InPhase::run(job)?;
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
    let scenario = base(e);
    let all = over_phases(e, std::slice::from_ref(&scenario), bench)?;
    let starts = each_phase(e, std::slice::from_ref(&scenario), ALL, bench, Start::MEASURE)?;
    let (Some(phases), Some(starts)) = (all.first(), starts.cells.first()) else { return Err(RunError::Interrupted) };
    let widest = phases.spread(Packet::e2ed).iter().map(|s| s.greatest - s.least).fold(f64::NAN, f64::max);
    let of = |number: fn(&Start) -> Option<f64>| starts.values(number);
    let claims = vec![
        e.claim(
            "phase-effect",
            "the end-to-end delay of a packet differs by seconds from phase to phase (ours: at least 1 s)",
            Bound::AtLeast(1.0),
            "greatest - least over the phases, the packet with most, s",
        )
        .exact(widest),
        e.claim(
            "response",
            "the QS-Response comes after one RTT, 0.8 s (ours: within 10 %)",
            Bound::Within(0.72, 0.88),
            "when X became the approved rate, s",
        )
        .because(LOCKSTEP)
        .over_phases(of(|s| s.response.map(|r| r.0))),
        e.claim(
            "first-report-ignored",
            "the first feedback report does not lower the approved rate: it is in use for at least one RTT",
            Bound::AtLeast(1.0),
            "time from the response until X falls, in first RTTs",
        )
        .over_phases(of(|s| Some((s.throttled?.0 - s.response?.0) / s.response?.0))),
        e.claim(
            "second-report",
            "the second report comes after three RTT, at 2.3 s (ours: within 10 %)",
            Bound::Within(2.07, 2.53),
            "when X falls for the first time, s",
        )
        .over_phases(of(|s| s.throttled.map(|t| t.0))),
        e.claim(
            "throttled",
            "it throttles the sender much below the approved rate (ours: to at most half)",
            Bound::AtMost(0.5),
            "lowest X in the RTT from then on / the approved rate",
        )
        .over_phases(of(|s| Some(s.throttled?.1 / s.response?.1))),
    ];
    let line = |name: &str, colour, delay| Line { name: name.to_owned(), colour, phases, delay };
    let lines = [line("end to end", "qs", Packet::e2ed), line("one way", "one-way", Packet::owd)];
    let title = format!(
        "Large frame, DAMA and QS: up to {} s between the best and the worst phase of one packet; what is not one-way delay is the sender's buffer",
        short(widest)
    );
    let courses = [Course { key: "qs".to_owned(), name: "DAMA, QS".to_owned(), phases }];
    let section = e.section().chart(chart(title, phases_caption(e, phases), &lines)).table(courses_table(
        "End-to-end delay, large frame",
        phases_caption(e, phases),
        &courses,
    ));
    let points = courses_points(Frame::Large, &courses);
    Ok(e.outcome(points, claims, section))
}

const LOCKSTEP: &str = "The request waits 0 to T_f for its slot, but the report does not wait T_f/2 on average: it is there \
                        T_p = 252 ms after that slot, and the slot of the other terminal comes 273 ms after it, 21 ms \
                        later. So the RTT is 0.53 to 0.80 s, not RTT_m";

// --- Fig. 5 --------------------------------------------------------------------------------------------------------

pub(super) fn fig5(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let five = Frame::Large.strategies();
    let scenarios: Vec<Scenario> = five.iter().map(|(strategy, _)| with(&base(e), |s| strategy.set(s))).collect();
    let all = over_phases(e, &scenarios, bench)?;
    let courses: Vec<Course<'_>> = five
        .iter()
        .zip(&all)
        .map(|((strategy, key), phases)| Course { key: (*key).to_owned(), name: strategy.name(), phases })
        .collect();
    let lines: Vec<Line<'_>> = five
        .iter()
        .zip(&all)
        .map(|((strategy, colour), phases)| Line { name: strategy.name(), colour, phases, delay: Packet::e2ed })
        .collect();
    let [none, qs, qsd0, opt, max] = &all[..] else { return Err(RunError::Interrupted) };
    let title = format!(
        "Large frame: the median peaks at {} s without Quick-Start, {} s with QS, {} s with QSD at T_q = 0, {} s at 520 ms, {} s at 1,273 ms",
        short(none.peak_of_median()),
        short(qs.peak_of_median()),
        short(qsd0.peak_of_median()),
        short(opt.peak_of_median()),
        short(max.peak_of_median()),
    );
    let claims = fig5_claims(e, [none, qs, qsd0, opt, max]);
    let section = e
        .section()
        .chart(chart(title, phases_caption(e, none), &lines))
        .table(courses_table("End-to-end delay, large frame", phases_caption(e, none), &courses))
        .table(readings(e, Frame::Large, bench)?);
    let points = courses_points(Frame::Large, &courses);
    Ok(e.outcome(points, claims, section))
}

fn fig5_claims(e: &Experiment, [none, qs, qsd0, opt, max]: [&Phases; 5]) -> Vec<Claim> {
    let ratio = |a: &Phases, b: &Phases| a.peaks().iter().zip(b.peaks()).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let alike = Bound::Within(0.8, 1.25);
    let hump = |claim: &str, phases: &Phases, t_q: &str| {
        e.claim(
            claim,
            format!("no second hump at T_q = {t_q}, in any phase"),
            Bound::AtMost(phases.quantum),
            "highest rise after the first fall in the worst phase, s; up to T_f and a packet it is none",
        )
        .exact(phases.worst_hump())
    };
    vec![
        e.claim(
            "none-worst",
            "without Quick-Start the delay is greater than with it",
            Bound::Above(1.0),
            "greatest delay without / with QS",
        )
        .over_phases(ratio(none, qs)),
        e.claim(
            "qsd0-like-qs",
            "QSD with T_q = 0 is like QS (ours: within a quarter)",
            alike,
            "greatest delay with QSD, T_q = 0 / with QS",
        )
        .over_phases(ratio(qsd0, qs)),
        e.claim(
            "opt-better",
            "QSD with T_q = 520 ms is better than with 0",
            Bound::Above(1.0),
            "greatest delay with T_q = 0 / with 520 ms",
        )
        .because(FIRST_HUMP)
        .over_phases(ratio(qsd0, opt)),
        e.claim(
            "max-like-opt",
            "T_q = 1,273 ms is like 520 ms (ours: within a quarter)",
            alike,
            "greatest delay with T_q = 1,273 ms / with 520 ms",
        )
        .over_phases(ratio(max, opt)),
        e.claim(
            "hump-at-0",
            "with T_q = 0 there is a second hump in the worst phase",
            Bound::Above(qsd0.quantum),
            "rise after the first fall in the worst phase, s; up to T_f and a packet it is none",
        )
        .exact(qsd0.worst_hump()),
        hump("no-hump-520", opt, "520 ms"),
        hump("no-hump-1273", max, "1,273 ms"),
    ]
}

const FIRST_HUMP: &str = "In most phases the first maximum is the greatest: it is the wait for the first grant, which is the same. \
                          What T_q changes is what follows: the worst phase, and the delay 5 s after the start";

// --- readings ------------------------------------------------------------------------------------------------------

/// Another reading of the paper, or a point that it leaves open.
struct Reading {
    words: &'static str,
    set: fn(&mut RawScenario),
}

fn set_tfrc(s: &mut RawScenario, name: &str, value: &str) {
    for flow in &mut s.flows {
        flow.parameters.insert(name.to_owned(), Parameter::Text(value.to_owned()));
    }
}

const READINGS: [Reading; 9] = [
    Reading { words: "as drawn", set: |_| () },
    Reading { words: "eq. (2) on the NCC's last decision", set: |s| satellite(s).release.of = ReleaseKind::Decided },
    Reading { words: "T_p = 250 ms, as in the text", set: |s| satellite(s).propagation = time_ms(250.0) },
    Reading { words: "slots spread over the multi-frame", set: |s| satellite(s).slots = SlotPlacement::Spread },
    Reading { words: "the queue counts in eq. (1), T_s = T_r", set: |s| satellite(s).vbdc = Some(time_ms(820.4)) },
    Reading { words: "no-feedback timer of 3 s at first", set: |s| set_tfrc(s, "first_timer", "3 s") },
    Reading { words: "the sender waits for the response", set: |s| set_tfrc(s, "qs_wait", "on") },
    Reading { words: "the approved rate until the next report", set: |s| set_tfrc(s, "qs_validation", "next") },
    Reading { words: "X_inst in place of X [RFC 3448 §4.5]", set: |s| set_tfrc(s, "smoothing", "on") },
];

/// The greatest delay of each strategy under each reading.
fn readings(e: &Experiment, frame: Frame, bench: &mut Bench<'_>) -> Result<Table, RunError> {
    let strategies = frame.strategies();
    let mut scenarios = Vec::new();
    for reading in &READINGS {
        for (strategy, _) in strategies {
            scenarios.push(with(&base(e), |s| {
                frame.set(s);
                (reading.set)(s);
                strategy.set(s);
            }));
        }
    }
    let all = summits(e, &scenarios, SWEEP, bench)?;
    let quantum = quantum(&base(e));
    let mut table = table(
        "The same under other readings",
        format!(
            "{}; greatest end-to-end delay in s: median over the phases (least to greatest); second hump: in how many of \
             the phases, and its height in the worst, s",
            e.file
        ),
        std::iter::once("reading".to_owned()).chain(strategies.iter().map(|(s, _)| s.name())),
        [],
    );
    for (reading, five) in READINGS.iter().zip(all.chunks(strategies.len())) {
        let cell = |summits: &Vec<Summit>| {
            let Some(peaks) = Spread::of(summits.iter().map(|s| s.peak).collect()) else { return "–".to_owned() };
            let humps = summits.iter().filter(|s| s.hump > quantum).count();
            let worst = summits.iter().map(|s| s.hump).fold(0.0, f64::max);
            let hump = if humps == 0 { "none".to_owned() } else { format!("{humps}, {}", short(worst)) };
            format!("{} ({} to {}); hump: {hump}", short(peaks.median), short(peaks.least), short(peaks.greatest))
        };
        table.rows.push(std::iter::once(reading.words.to_owned()).chain(five.iter().map(cell)).collect());
    }
    Ok(table)
}
