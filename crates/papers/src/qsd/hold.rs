//! For how long to hold a request: equations (3) and (6), and the least T_q without a second hump [qsd §3.5, Table I].

use super::rates::peaks;
use super::single::{FRAMES, Frame};
use super::{ALL, Spread, Strategy, Summit, base, dama, of_phases, quantum, satellite, summits, time_ms, with};
use crate::figure::table;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::{Axis, BandKind, Chart, Series, Table};
use fairpace_scenario::Scenario;

/// How near a formula must come to the paper's number.
const FORMULA: f64 = 0.02;

fn formula_claim(e: &Experiment, key: String, name: &str, words: &str, seconds: f64, printed_ms: f64) -> Claim {
    e.claim(
        key,
        format!("{name} is {printed_ms} ms, to within 2 %: {words}"),
        Bound::Within(printed_ms * (1.0 - FORMULA), printed_ms * (1.0 + FORMULA)),
        "ms",
    )
    .exact(seconds * 1e3)
}

/// Both formulas for both frames and both T_p.
fn formulas(e: &Experiment) -> Table {
    let mut table = table(
        "Equations (3) and (6)",
        format!("{}; ms", e.file),
        ["frame", "T_p", "T_f", "T_r = T_b", "T_a", "RTT_m", "T_q,max, eq. (3)", "T_q,opt, eq. (6)"],
        [],
    );
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
        let key = format!("t-q-max-{}", frame.key());
        let words = format!("T_r/2 + T_a - RTT_m, {} frame, T_p = 252 ms", frame.key());
        claims.push(formula_claim(e, key, "T_q,max", &words, t_q, frame.t_q().1));
        points.extend(of_phases(frame.key(), &[("t_p_ms", 252.0)], "t_q_max_ms", t_q * 1e3, 1));
    }
    let text = "With T_q,max the QS-Response comes when the capacity does, on average: a request waits T_r/2 for the next \
                super-frame and T_a for its answer, while the response takes T_q + RTT_m.";
    let section = e.section().text(text.to_owned()).table(formulas(e));
    Ok(e.outcome(points, claims, section))
}

/// T_q of a sweep: so many steps to T_q,max.
const STEPS: usize = 14;

pub(super) fn eq6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = e.section().text(
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
        let key = format!("t-q-opt-{}", frame.key());
        let words = format!("(2 (T_r + T_a) - 3 RTT_m) / 5, {} frame, T_p = 250 ms", frame.key());
        claims.push(formula_claim(e, key, "T_q,opt", &words, opt / 1e3, frame.t_q().0));
        points.extend(of_phases(frame.key(), &[("t_p_ms", 250.0)], "t_q_opt_ms", opt, 1));
        // To whole milliseconds, T_q,max included.
        let grid: Vec<f64> = (0..STEPS).map(|i| (max * i as f64 / (STEPS - 1) as f64).round()).collect();
        let scenarios: Vec<Scenario> = grid.iter().map(|t_q| set(*t_q)).collect();
        let all = summits(e, &scenarios, ALL, bench)?;
        let (quantum, t_f) = (quantum(&set(0.0)), spec.multi_frame().as_secs_f64() * 1e3);
        let worst: Vec<f64> = all.iter().map(|s| s.iter().map(|s| s.hump).fold(0.0, f64::max)).collect();
        let found = least_without(&grid, &worst, quantum);
        claims.push(
            e.claim(format!("simulated-{}", frame.key()), format!(
                    "the least T_q without a second hump in any phase is near T_q,opt (ours: within T_f = {} ms of {} ms), {} frame",
                    short(t_f),
                    short(opt),
                    frame.key()
                ), Bound::Within(-t_f, t_f), "that T_q - T_q,opt, ms").because(if found == Some(0.0) { "Without any hold there is none already" } else { "There is one at every T_q" }).exact(found.map_or(f64::NAN, |t_q| t_q - opt)),
        );
        points.extend(of_phases(
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
    Ok(e.outcome(points, claims, section))
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
    table(
        format!("Against T_q, {} frame", frame.key()),
        format!("{}; delays in s; a rise of more than T_f and a packet after the first fall is a second hump", e.file),
        [
            "T_q (ms)",
            "greatest delay: median (s)",
            "least (s)",
            "greatest (s)",
            "phases with a second hump",
            "highest second hump (s)",
        ],
        grid.iter().zip(all).map(row),
    )
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
