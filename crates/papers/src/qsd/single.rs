//! One flow on an idle satellite: what DAMA, Quick-Start and QSD do to its start [qsd §3, Figs. 3 to 6].

use super::{
    ALL, InPhase, Line, Packet, Phases, SWEEP, Spread, Strategy, Summit, base, chart, dama, each_phase, exact_claim,
    kbps, over_phases, over_phases_claim, point, quantum, request, satellite, summits, time_ms, with,
};
use crate::show;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::{Axis, BandKind, Chart, Series, Table};
use fairpace_scenario::{
    AgentKind, EstimatorKind, FrameSpec, Parameter, RawScenario, ReleaseKind, Scenario, SlotPlacement,
};

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
    fn strategies(self) -> [(Strategy, &'static str); 5] {
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

/// What was run, and what came of it.
struct Course<'a> {
    key: String,
    name: String,
    phases: &'a Phases,
}

/// The numbers of charts of delay.
fn courses_table(title: &str, caption: String, courses: &[Course<'_>]) -> Table {
    let mut table = Table {
        title: title.to_owned(),
        caption,
        head: [
            "start",
            "peak of the median (s)",
            "greatest delay: median (s)",
            "least (s)",
            "greatest (s)",
            "median of the packet of 5 s (s)",
            "of 10 s (s)",
            "of 20 s (s)",
            "second hump, worst phase (s)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: Vec::new(),
    };
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
                point(&course.key, &x, "e2ed_median_peak_s", course.phases.peak_of_median(), n),
                point(&course.key, &x, "e2ed_peak_median_s", of(|s| s.median), n),
                point(&course.key, &x, "e2ed_peak_least_s", of(|s| s.least), n),
                point(&course.key, &x, "e2ed_peak_greatest_s", of(|s| s.greatest), n),
                point(&course.key, &x, "second_hump_worst_s", course.phases.worst_hump(), n),
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
    let mut scenarios = Vec::new();
    for frame in FRAMES {
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
    }
    let all = over_phases(e.id, &scenarios, bench)?;
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = show::section(e);
    for (frame, four) in FRAMES.into_iter().zip(all.chunks(FIG3.len())) {
        let [cra, cra_qs, dama, dama_qs] = four else { continue };
        claims.extend(fig3_claims(e.id, frame, [cra, cra_qs, dama, dama_qs]));
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
    Ok(show::outcome(e, points, claims, section))
}

fn fig3_claims(id: &str, frame: Frame, [cra, cra_qs, dama, dama_qs]: [&Phases; 4]) -> Vec<Claim> {
    let key = frame.key();
    let ratio = |a: &Phases, b: &Phases| a.peaks().iter().zip(b.peaks()).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let mut claims = vec![
        over_phases_claim(
            format!("{id}/cra-far-below-{key}"),
            format!("with DAMA the greatest delay is at least twice that with CRA (ours), {key} frame"),
            ratio(dama, cra),
            Bound::AtLeast(2.0),
            "greatest delay with DAMA / with CRA, neither with Quick-Start",
        ),
        over_phases_claim(
            format!("{id}/cra-far-below-qs-{key}"),
            format!("the same with Quick-Start, {key} frame"),
            ratio(dama_qs, cra_qs),
            Bound::AtLeast(2.0),
            "greatest delay with DAMA / with CRA, both with Quick-Start",
        ),
        over_phases_claim(
            format!("{id}/qs-helps-dama-{key}"),
            format!("Quick-Start lowers the greatest delay over DAMA, {key} frame"),
            ratio(dama_qs, dama),
            Bound::Below(1.0),
            "greatest delay with Quick-Start / without, DAMA",
        ),
        over_phases_claim(
            format!("{id}/qs-helps-cra-{key}"),
            format!("Quick-Start lowers the greatest delay over CRA, {key} frame"),
            ratio(cra_qs, cra),
            Bound::Below(1.0),
            "greatest delay with Quick-Start / without, CRA",
        ),
    ];
    if frame == Frame::Large {
        claims.push(over_phases_claim(
            format!("{id}/still-seconds"),
            "DAMA with Quick-Start is still seconds in the large frame (ours: at least 2 s)".to_owned(),
            dama_qs.peaks(),
            Bound::AtLeast(2.0),
            "greatest delay with DAMA and Quick-Start, s",
        ));
    }
    claims
}

// --- Fig. 4 --------------------------------------------------------------------------------------------------------

/// What the sender did in one phase. Times in s since the flow's start, rates in bit/s.
#[derive(Clone, Debug, PartialEq)]
struct Start {
    /// When the rate that the routers approved came into use, and which that is.
    response: Option<(f64, f64)>,
    /// When X first fell after that, and how far within the next RTT.
    throttled: Option<(f64, f64)>,
}

impl Start {
    fn of(run: &InPhase<'_>) -> Start {
        let rates = run.rates();
        let response = run.approved();
        let throttled = response.and_then(|(at, approved)| {
            let (first, _) = rates.iter().copied().find(|(t, x)| *t > at && *x < 0.99 * approved)?;
            let least =
                rates.iter().filter(|(t, _)| *t >= first && *t <= first + at).map(|r| r.1).fold(f64::NAN, f64::min);
            Some((first, least))
        });
        Start { response, throttled }
    }
}

pub(super) fn fig4(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let scenario = base(e);
    let all = over_phases(e.id, std::slice::from_ref(&scenario), bench)?;
    let starts = each_phase(e.id, std::slice::from_ref(&scenario), ALL, bench, Start::of)?;
    let (Some(phases), Some(starts)) = (all.first(), starts.first()) else { return Err(RunError::Interrupted) };
    let widest = phases.spread(Packet::e2ed).iter().map(|s| s.greatest - s.least).fold(f64::NAN, f64::max);
    let of = |number: fn(&Start) -> Option<f64>| starts.iter().filter_map(number).collect::<Vec<f64>>();
    let claims = vec![
        exact_claim(
            format!("{}/phase-effect", e.id),
            "the end-to-end delay of a packet differs by seconds from phase to phase (ours: at least 1 s)".to_owned(),
            widest,
            Bound::AtLeast(1.0),
            "greatest - least over the phases, the packet with most, s",
        ),
        over_phases_claim(
            format!("{}/response", e.id),
            "the QS-Response comes after one RTT, 0.8 s (ours: within 10 %)".to_owned(),
            of(|s| s.response.map(|r| r.0)),
            Bound::Within(0.72, 0.88),
            "when X became the approved rate, s",
        )
        .if_it_fails(LOCKSTEP),
        over_phases_claim(
            format!("{}/first-report-ignored", e.id),
            "the first feedback report does not lower the approved rate: it is in use for at least one RTT".to_owned(),
            of(|s| Some((s.throttled?.0 - s.response?.0) / s.response?.0)),
            Bound::AtLeast(1.0),
            "time from the response until X falls, in first RTTs",
        ),
        over_phases_claim(
            format!("{}/second-report", e.id),
            "the second report comes after three RTT, at 2.3 s (ours: within 10 %)".to_owned(),
            of(|s| s.throttled.map(|t| t.0)),
            Bound::Within(2.07, 2.53),
            "when X falls for the first time, s",
        ),
        over_phases_claim(
            format!("{}/throttled", e.id),
            "it throttles the sender much below the approved rate (ours: to at most half)".to_owned(),
            of(|s| Some(s.throttled?.1 / s.response?.1)),
            Bound::AtMost(0.5),
            "lowest X in the RTT from then on / the approved rate",
        ),
    ];
    let line = |name: &str, colour, delay| Line { name: name.to_owned(), colour, phases, delay };
    let lines = [line("end to end", "qs", Packet::e2ed), line("one way", "one-way", Packet::owd)];
    let title = format!(
        "Large frame, DAMA and QS: up to {} s between the best and the worst phase of one packet; what is not one-way delay is the sender's buffer",
        short(widest)
    );
    let courses = [Course { key: "qs".to_owned(), name: "DAMA, QS".to_owned(), phases }];
    let section = show::section(e).chart(chart(title, phases_caption(e, phases), &lines)).table(courses_table(
        "End-to-end delay, large frame",
        phases_caption(e, phases),
        &courses,
    ));
    let points = courses_points(Frame::Large, &courses);
    Ok(show::outcome(e, points, claims, section))
}

const LOCKSTEP: &str = "The request waits 0 to T_f for its slot, but the report does not wait T_f/2 on average: it is there \
                        T_p = 252 ms after that slot, and the slot of the other terminal comes 273 ms after it, 21 ms \
                        later. So the RTT is 0.53 to 0.80 s, not RTT_m";

// --- Fig. 5 --------------------------------------------------------------------------------------------------------

pub(super) fn fig5(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let five = Frame::Large.strategies();
    let scenarios: Vec<Scenario> = five.iter().map(|(strategy, _)| with(&base(e), |s| strategy.set(s))).collect();
    let all = over_phases(e.id, &scenarios, bench)?;
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
    let claims = fig5_claims(e.id, [none, qs, qsd0, opt, max]);
    let section = show::section(e)
        .chart(chart(title, phases_caption(e, none), &lines))
        .table(courses_table("End-to-end delay, large frame", phases_caption(e, none), &courses))
        .table(readings(e, Frame::Large, bench)?);
    let points = courses_points(Frame::Large, &courses);
    Ok(show::outcome(e, points, claims, section))
}

fn fig5_claims(id: &str, [none, qs, qsd0, opt, max]: [&Phases; 5]) -> Vec<Claim> {
    let ratio = |a: &Phases, b: &Phases| a.peaks().iter().zip(b.peaks()).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let alike = Bound::Within(0.8, 1.25);
    let hump = |claim: &str, phases: &Phases, t_q: &str| {
        exact_claim(
            format!("{id}/{claim}"),
            format!("no second hump at T_q = {t_q}, in any phase"),
            phases.worst_hump(),
            Bound::AtMost(phases.quantum),
            "highest rise after the first fall in the worst phase, s; up to T_f and a packet it is none",
        )
    };
    vec![
        over_phases_claim(
            format!("{id}/none-worst"),
            "without Quick-Start the delay is greater than with it".to_owned(),
            ratio(none, qs),
            Bound::Above(1.0),
            "greatest delay without / with QS",
        ),
        over_phases_claim(
            format!("{id}/qsd0-like-qs"),
            "QSD with T_q = 0 is like QS (ours: within a quarter)".to_owned(),
            ratio(qsd0, qs),
            alike,
            "greatest delay with QSD, T_q = 0 / with QS",
        ),
        over_phases_claim(
            format!("{id}/opt-better"),
            "QSD with T_q = 520 ms is better than with 0".to_owned(),
            ratio(qsd0, opt),
            Bound::Above(1.0),
            "greatest delay with T_q = 0 / with 520 ms",
        )
        .if_it_fails(FIRST_HUMP),
        over_phases_claim(
            format!("{id}/max-like-opt"),
            "T_q = 1,273 ms is like 520 ms (ours: within a quarter)".to_owned(),
            ratio(max, opt),
            alike,
            "greatest delay with T_q = 1,273 ms / with 520 ms",
        ),
        exact_claim(
            format!("{id}/hump-at-0"),
            "with T_q = 0 there is a second hump in the worst phase".to_owned(),
            qsd0.worst_hump(),
            Bound::Above(qsd0.quantum),
            "rise after the first fall in the worst phase, s; up to T_f and a packet it is none",
        ),
        hump("no-hump-520", opt, "520 ms"),
        hump("no-hump-1273", max, "1,273 ms"),
    ]
}

const FIRST_HUMP: &str = "In most phases the first maximum is the greatest: it is the wait for the first grant, which is the same. \
                          What T_q changes is what follows: the worst phase, and the delay 5 s after the start";

// --- readings ------------------------------------------------------------------------------------------------------

/// What else the paper can be read to say, or leaves open.
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
    let all = summits(e.id, &scenarios, SWEEP, bench)?;
    let quantum = quantum(&base(e));
    let mut table = Table {
        title: "The same under other readings".to_owned(),
        caption: format!(
            "{}; greatest end-to-end delay in s: median over the phases (least to greatest); second hump: in how many of \
             the phases, and its height in the worst, s",
            e.file
        ),
        head: std::iter::once("reading".to_owned()).chain(strategies.iter().map(|(s, _)| s.name())).collect(),
        rows: Vec::new(),
    };
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

// --- Fig. 6 --------------------------------------------------------------------------------------------------------

/// Rates of the flow in kbit/s; the paper's are not readable from the text.
const RATES: [f64; 6] = [64.0, 128.0, 256.0, 384.0, 512.0, 1_024.0];

/// Units of the small frame, in kbit/s, and what they are [qsd §2.2].
const UNITS: [(f64, &str); 3] =
    [(44.0, "a slot in two super-frames"), (88.0, "a slot in a super-frame"), (264.0, "a slot in a multi-frame")];

pub(super) fn fig6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = show::section(e).text(
        "A flow of another rate asks for the lowest rate that the option can say from 1.25 times its own on, as 320 is \
         for 256 kbit/s."
            .to_owned(),
    );
    let set_ups =
        [(Frame::Large, UNITS[0]), (Frame::Small, UNITS[0]), (Frame::Small, UNITS[1]), (Frame::Small, UNITS[2])];
    for (frame, (unit, slots)) in set_ups {
        let strategies = frame.strategies();
        let mut scenarios = Vec::new();
        for (strategy, _) in strategies {
            for rate in RATES {
                scenarios.push(with(&base(e), |s| {
                    frame.set(s);
                    satellite(s).granularity = kbps(unit);
                    for flow in &mut s.flows {
                        if let Some(source) = &mut flow.source {
                            source.rate = Some(kbps(rate));
                        }
                        flow.quick_start = Some(request(rate));
                    }
                    strategy.set(s);
                }));
            }
        }
        let all = summits(e.id, &scenarios, SWEEP, bench)?;
        let curves: Vec<Curve> = strategies
            .iter()
            .zip(all.chunks(RATES.len()))
            .map(|((strategy, key), row)| Curve {
                strategy: *strategy,
                key,
                at: row.iter().map(|s| peaks(s)).collect(),
            })
            .collect();
        let words = match frame {
            Frame::Large => "large frame".to_owned(),
            Frame::Small => format!("small frame, units of {unit} kbit/s"),
        };
        claims.extend(fig6_claims(e.id, frame, unit, &words, &curves));
        section = section.chart(fig6_chart(e, &words, &curves)).table(fig6_table(e, &words, slots, &curves));
        for curve in &curves {
            for (rate, spread) in RATES.into_iter().zip(&curve.at) {
                let Some(s) = spread else { continue };
                let x = [("rate_kbps", rate), ("slots_per_multi_frame", frame.slots()), ("unit_kbps", unit)];
                points.extend(point(curve.key, &x, "e2ed_peak_median_s", s.median, s.n));
                points.extend(point(curve.key, &x, "e2ed_peak_greatest_s", s.greatest, s.n));
            }
        }
    }
    Ok(show::outcome(e, points, claims, section))
}

const NOT_FLAT: &str = "The paper's rates are not readable. In the large frame it is flat from 128 to 512 kbit/s; a slower \
                        flow needs little of what comes late, and at 1,024 kbit/s what is granted is just what is sent, \
                        so that nothing drains the queue";

fn peaks(summits: &[Summit]) -> Option<Spread> {
    Spread::of(summits.iter().map(|s| s.peak).collect())
}

/// The greatest delay of a strategy against [`RATES`].
struct Curve {
    strategy: Strategy,
    key: &'static str,
    at: Vec<Option<Spread>>,
}

impl Curve {
    fn median(&self, i: usize) -> f64 {
        self.at.get(i).and_then(Option::as_ref).map_or(f64::NAN, |s| s.median)
    }

    /// The median at the highest rate over that at the lowest.
    fn growth(&self) -> f64 {
        self.median(RATES.len() - 1) / self.median(0)
    }
}

fn fig6_claims(id: &str, frame: Frame, unit: f64, words: &str, curves: &[Curve]) -> Vec<Claim> {
    let suffix = match frame {
        Frame::Large => "large".to_owned(),
        Frame::Small => format!("small-{unit}"),
    };
    let [none, qs, qsd0, _, max] = curves else { return Vec::new() };
    let grows = |key: &str, name: &str, curve: &Curve| {
        exact_claim(
            format!("{id}/grows-{key}-{suffix}"),
            format!(
                "the greatest delay grows with the flow's rate {name} (ours: by half from 64 to 1,024 kbit/s), {words}"
            ),
            curve.growth(),
            Bound::AtLeast(1.5),
            "median over the phases at 1,024 kbit/s / at 64 kbit/s",
        )
    };
    let highest = (0..RATES.len()).map(|i| max.median(i)).fold(f64::NAN, f64::max);
    let lowest = (0..RATES.len()).map(|i| max.median(i)).fold(f64::NAN, f64::min);
    vec![
        grows("none", "without Quick-Start", none),
        grows("qs", "with QS", qs),
        grows("qsd-0", "with QSD, T_q = 0", qsd0),
        exact_claim(
            format!("{id}/flat-{suffix}"),
            format!("with QSD, T_q,max it is flat (ours: within a quarter), {words}"),
            highest / lowest,
            Bound::AtMost(1.25),
            "highest of the medians over the rates / lowest",
        )
        .if_it_fails(NOT_FLAT),
        exact_claim(
            format!("{id}/low-{suffix}"),
            format!("and at 256 kbit/s lower than with any other start but T_q,opt, {words}"),
            max.median(2) / [none, qs, qsd0].map(|c| c.median(2)).into_iter().fold(f64::INFINITY, f64::min),
            Bound::Below(1.0),
            "median with T_q,max / least of the medians without Quick-Start, with QS, with T_q = 0",
        ),
    ]
}

fn fig6_chart(e: &Experiment, words: &str, curves: &[Curve]) -> Chart {
    let at = |i: usize| curves.get(i).map_or("–".to_owned(), |c| short(c.growth()));
    let title = format!(
        "{words}: from 64 to 1,024 kbit/s the greatest delay grows {} times without Quick-Start, {} times with QS, {} times with QSD at T_q,max",
        at(0),
        at(1),
        at(4)
    );
    let mut chart =
        Chart::new(title, Axis::new("rate of the flow", "kbit/s").log(), Axis::new("greatest end-to-end delay", "s"))
            .caption(format!("{}; medians over the phases, bars from the least to the greatest", e.file));
    for curve in curves {
        let found: Vec<(f64, Spread)> =
            RATES.into_iter().zip(&curve.at).filter_map(|(r, s)| Some((r, (*s)?))).collect();
        let of = |number: fn(&Spread) -> f64| found.iter().map(|(_, s)| number(s)).collect::<Vec<f64>>();
        let series =
            Series::sweep(curve.strategy.name(), curve.key, found.iter().map(|f| f.0).collect(), of(|s| s.median));
        chart = chart.series(series.interval(of(|s| s.least), of(|s| s.greatest)));
    }
    chart
}

fn fig6_table(e: &Experiment, words: &str, slots: &str, curves: &[Curve]) -> Table {
    let head = std::iter::once("rate (kbit/s)".to_owned()).chain(curves.iter().map(|c| c.strategy.name())).collect();
    let cell = |s: &Option<Spread>| {
        s.map_or("–".to_owned(), |s| format!("{} ({} to {})", short(s.median), short(s.least), short(s.greatest)))
    };
    let row = |(i, rate): (usize, &f64)| {
        std::iter::once(short(*rate)).chain(curves.iter().map(|c| c.at.get(i).map_or("–".to_owned(), cell))).collect()
    };
    Table {
        title: format!("Greatest end-to-end delay, {words}"),
        caption: format!("{}; s, median over the phases (least to greatest); minimum and unit: {slots}", e.file),
        head,
        rows: RATES.iter().enumerate().map(row).collect(),
    }
}

// --- equations (3) and (6) -----------------------------------------------------------------------------------------

/// How near a formula must come to the paper's number.
const FORMULA: f64 = 0.02;

fn formula_claim(id: String, name: &str, words: &str, seconds: f64, printed_ms: f64) -> Claim {
    exact_claim(
        id,
        format!("{name} is {printed_ms} ms, to within 2 %: {words}"),
        seconds * 1e3,
        Bound::Within(printed_ms * (1.0 - FORMULA), printed_ms * (1.0 + FORMULA)),
        "ms",
    )
}

/// Both formulas for both frames and both T_p.
fn formulas(e: &Experiment) -> Table {
    let mut table = Table {
        title: "Equations (3) and (6)".to_owned(),
        caption: format!("{}; ms", e.file),
        head: ["frame", "T_p", "T_f", "T_r = T_b", "T_a", "RTT_m", "T_q,max, eq. (3)", "T_q,opt, eq. (6)"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    for frame in FRAMES {
        for t_p in [252.0, 250.0] {
            let spec = dama(&with(&base(e), |s| {
                frame.set(s);
                satellite(s).propagation = time_ms(t_p);
            }));
            let ms = |d: fairpace_units::Duration| format!("{:.1}", d.as_secs_f64() * 1e3);
            table.rows.push(vec![
                frame.key().to_owned(),
                short(t_p),
                ms(spec.multi_frame()),
                ms(spec.super_frame()),
                ms(spec.allocation_delay()),
                ms(spec.mean_rtt()),
                ms(spec.t_q_max()),
                ms(spec.t_q_opt()),
            ]);
        }
    }
    table
}

pub(super) fn eq3(e: &Experiment, _: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    for frame in FRAMES {
        let spec = dama(&with(&base(e), |s| frame.set(s)));
        let t_q = spec.t_q_max().as_secs_f64();
        let id = format!("{}/t-q-max-{}", e.id, frame.key());
        let words = format!("T_r/2 + T_a - RTT_m, {} frame, T_p = 252 ms", frame.key());
        claims.push(formula_claim(id, "T_q,max", &words, t_q, frame.t_q().1));
        points.extend(point(frame.key(), &[("t_p_ms", 252.0)], "t_q_max_ms", t_q * 1e3, 1));
    }
    let text = "With T_q,max the QS-Response comes when the capacity does, on average: a request waits T_r/2 for the next \
                super-frame and T_a for its answer, while the response takes T_q + RTT_m.";
    let section = show::section(e).text(text.to_owned()).table(formulas(e));
    Ok(show::outcome(e, points, claims, section))
}

/// T_q of a sweep: so many steps to T_q,max.
const STEPS: usize = 14;

pub(super) fn eq6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = show::section(e).text(
        "T_q,opt is to be the least T_q with which the delay only falls after its first maximum. Each T_q is run in \
         every phase; what counts is the worst."
            .to_owned(),
    );
    for frame in FRAMES {
        let set = |t_q: f64| {
            with(&base(e), |s| {
                frame.set(s);
                Strategy::Qsd(t_q).set(s);
            })
        };
        let spec = dama(&set(0.0));
        let (opt, max) = (spec.t_q_opt().as_secs_f64() * 1e3, spec.t_q_max().as_secs_f64() * 1e3);
        let id = format!("{}/t-q-opt-{}", e.id, frame.key());
        let words = format!("(2 (T_r + T_a) - 3 RTT_m) / 5, {} frame, T_p = 250 ms", frame.key());
        claims.push(formula_claim(id, "T_q,opt", &words, opt / 1e3, frame.t_q().0));
        points.extend(point(frame.key(), &[("t_p_ms", 250.0)], "t_q_opt_ms", opt, 1));
        // To whole milliseconds, T_q,max included.
        let grid: Vec<f64> = (0..STEPS).map(|i| (max * i as f64 / (STEPS - 1) as f64).round()).collect();
        let scenarios: Vec<Scenario> = grid.iter().map(|t_q| set(*t_q)).collect();
        let all = summits(e.id, &scenarios, ALL, bench)?;
        let (quantum, t_f) = (quantum(&set(0.0)), spec.multi_frame().as_secs_f64() * 1e3);
        let worst: Vec<f64> = all.iter().map(|s| s.iter().map(|s| s.hump).fold(0.0, f64::max)).collect();
        let found = least_without(&grid, &worst, quantum);
        claims.push(
            exact_claim(
                format!("{}/simulated-{}", e.id, frame.key()),
                format!(
                    "the least T_q without a second hump in any phase is near T_q,opt (ours: within T_f = {} ms of {} ms), {} frame",
                    short(t_f),
                    short(opt),
                    frame.key()
                ),
                found.map_or(f64::NAN, |t_q| t_q - opt),
                Bound::Within(-t_f, t_f),
                "that T_q - T_q,opt, ms",
            )
            .if_it_fails(if found == Some(0.0) { "Without any hold there is none already" } else { "There is one at every T_q" }),
        );
        points.extend(point(
            frame.key(),
            &[("t_p_ms", 250.0)],
            "t_q_without_hump_ms",
            found.unwrap_or(f64::NAN),
            all[0].len(),
        ));
        section = section
            .chart(eq6_chart(e, frame, [opt, t_f], found, &grid, &all, quantum))
            .table(eq6_table(e, frame, &grid, &all, quantum));
    }
    let section = section.table(formulas(e));
    Ok(show::outcome(e, points, claims, section))
}

/// The least place of the grid with nothing above the quantum.
fn least_without(grid: &[f64], worst: &[f64], quantum: f64) -> Option<f64> {
    grid.iter().zip(worst).find(|(_, w)| **w <= quantum).map(|(t_q, _)| *t_q)
}

fn eq6_chart(
    e: &Experiment,
    frame: Frame,
    [opt, t_f]: [f64; 2],
    found: Option<f64>,
    grid: &[f64],
    all: &[Vec<Summit>],
    quantum: f64,
) -> Chart {
    let least = found.map_or("none".to_owned(), |t_q| format!("{} ms", short(t_q)));
    let title = format!(
        "{} frame: the least T_q without a second hump in any phase: {least}; T_q,opt is {} ms, T_f {} ms",
        frame.key(),
        short(opt),
        short(t_f)
    );
    let spreads = |number: fn(&Summit) -> f64| -> Vec<Spread> {
        all.iter().filter_map(|s| Spread::of(s.iter().map(number).collect())).collect()
    };
    let mut chart = Chart::new(title, Axis::new("T_q", "ms"), Axis::new("delay", "s"))
        .caption(format!(
            "{}; {} phases; medians, bars from the least to the greatest",
            e.file,
            all.first().map_or(0, Vec::len)
        ))
        .band((opt - t_f).max(0.0), opt + t_f, "T_q,opt ± T_f", BandKind::Note);
    for (name, colour, number) in [
        ("greatest end-to-end delay", "qsd-opt", (|s| s.peak) as fn(&Summit) -> f64),
        ("second hump", "qsd-0", |s| s.hump),
    ] {
        let s = spreads(number);
        let of = |number: fn(&Spread) -> f64| s.iter().map(number).collect::<Vec<f64>>();
        chart = chart.series(
            Series::sweep(name, colour, grid.to_vec(), of(|s| s.median)).interval(of(|s| s.least), of(|s| s.greatest)),
        );
    }
    chart.series(
        Series::line("T_f and a packet: up to it is no hump", "reference", grid.to_vec(), vec![quantum; grid.len()])
            .reference(),
    )
}

fn eq6_table(e: &Experiment, frame: Frame, grid: &[f64], all: &[Vec<Summit>], quantum: f64) -> Table {
    let row = |(t_q, summits): (&f64, &Vec<Summit>)| {
        let with = summits.iter().filter(|s| s.hump > quantum).count();
        let worst = summits.iter().map(|s| s.hump).fold(0.0, f64::max);
        let s = peaks(summits);
        let of = |number: fn(&Spread) -> f64| s.as_ref().map_or("–".to_owned(), |s| short(number(s)));
        vec![
            short(*t_q),
            of(|s| s.median),
            of(|s| s.least),
            of(|s| s.greatest),
            format!("{with} of {}", summits.len()),
            short(worst),
        ]
    };
    Table {
        title: format!("Against T_q, {} frame", frame.key()),
        caption: format!(
            "{}; delays in s; a rise of more than T_f and a packet after the first fall is a second hump",
            e.file
        ),
        head: [
            "T_q (ms)",
            "greatest delay: median (s)",
            "least (s)",
            "greatest (s)",
            "phases with a second hump",
            "highest second hump (s)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: grid.iter().zip(all).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_t_q_is_the_first_without_a_hump() {
        let grid = [0.0, 100.0, 200.0, 300.0];
        assert_eq!(least_without(&grid, &[2.0, 0.1, 2.0, 0.1], 1.0), Some(100.0));
        assert_eq!(least_without(&grid, &[0.1; 4], 1.0), Some(0.0));
        assert_eq!(least_without(&grid, &[1.1; 4], 1.0), None);
    }
}
