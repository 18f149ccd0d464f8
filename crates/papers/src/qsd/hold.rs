//! For how long to hold a request: equations (3) and (6), and the least T_q without a second hump [qsd §3.5, Table I].

use super::frame::{FRAMES, Frame};
use super::phases::{ALL, Summit, peaks, quantum, summits};
use super::setup::{Strategy, dama, satellite};
use super::spread::{Curve, Spread, T_Q, curves_chart, of_phases, steps};
use crate::builtin::{base, time_ms, with};
use crate::figure::table;
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::{BandKind, Chart, Series, Table};

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
        let (spec, key) = (dama(&set(0.0)), frame.key());
        let [opt, max, t_f] = [spec.t_q_opt(), spec.t_q_max(), spec.multi_frame()].map(|t| t.as_secs_f64() * 1e3);
        let words = format!("(2 (T_r + T_a) - 3 RTT_m) / 5, {key} frame, T_p = 250 ms");
        claims.push(formula_claim(e, format!("t-q-opt-{key}"), "T_q,opt", &words, opt / 1e3, frame.t_q().0));
        let holds = steps(max, STEPS);
        let scenarios: Vec<_> = holds.iter().map(|t_q| set(*t_q)).collect();
        let all = summits(e, &scenarios, ALL, bench)?;
        let sweep = Sweep { frame, opt, t_f, quantum: quantum(&set(0.0)), at: holds.into_iter().zip(all).collect() };
        let least = sweep.least_without_hump();
        let statement = format!(
            "the least T_q without a second hump in any phase is near T_q,opt (ours: within T_f = {} ms of {} ms), {key} frame",
            short(t_f),
            short(opt)
        );
        let none = match least {
            Some(0.0) => "Without any hold there is none already",
            Some(_) => "",
            None => "There is one at every T_q",
        };
        claims.push(
            e.claim(format!("simulated-{key}"), statement, Bound::Within(-t_f, t_f), "that T_q - T_q,opt, ms")
                .because(none)
                .exact(least.map(|t_q| t_q - opt)),
        );
        let (x, phases) = ([("t_p_ms", 250.0)], sweep.at[0].1.len());
        points.extend(of_phases(key, &x, "t_q_opt_ms", opt, 1));
        points.extend(of_phases(key, &x, "t_q_without_hump_ms", least.unwrap_or(f64::NAN), phases));
        section = section.chart(sweep.chart(e)).table(sweep.table(e));
    }
    let section = section.table(formulas(e));
    Ok(e.outcome(points, claims, section))
}

/// The delays of a frame with every T_q, in every phase.
struct Sweep {
    frame: Frame,
    /// T_q,opt and T_f, ms.
    opt: f64,
    t_f: f64,
    /// A rise of no more than this is no hump, s.
    quantum: f64,
    at: Vec<(f64, Vec<Summit>)>,
}

impl Sweep {
    /// The highest second hump of all phases, s.
    fn worst(summits: &[Summit]) -> f64 {
        summits.iter().map(|s| s.hump).fold(0.0, f64::max)
    }

    fn least_without_hump(&self) -> Option<f64> {
        self.at.iter().find(|(_, summits)| Sweep::worst(summits) <= self.quantum).map(|(t_q, _)| *t_q)
    }

    fn chart(&self, e: &Experiment) -> Chart {
        let least = self.least_without_hump().map_or("none".to_owned(), |t_q| format!("{} ms", short(t_q)));
        let title = format!(
            "{} frame: the least T_q without a second hump in any phase: {least}; T_q,opt is {} ms, T_f {} ms",
            self.frame.key(),
            short(self.opt),
            short(self.t_f)
        );
        let phases = self.at.first().map_or(0, |(_, summits)| summits.len());
        let caption = format!("{}; {phases} phases; medians, bars from the least to the greatest", e.file);
        let curve = |name: &str, colour, number: fn(&Summit) -> f64| {
            let of = |summits: &[Summit]| Spread::of(summits.iter().map(number).collect());
            Curve { name: name.to_owned(), colour, at: self.at.iter().map(|(t_q, s)| (*t_q, of(s))).collect() }
        };
        let curves =
            [curve("greatest end-to-end delay", "qsd-opt", |s| s.peak), curve("second hump", "qsd-0", |s| s.hump)];
        let x: Vec<f64> = self.at.iter().map(|(t_q, _)| *t_q).collect();
        let quanta = vec![self.quantum; x.len()];
        curves_chart(title, caption, &T_Q, "delay", &curves)
            .band((self.opt - self.t_f).max(0.0), self.opt + self.t_f, "T_q,opt ± T_f", BandKind::Note)
            .series(Series::line("T_f and a packet: up to it is no hump", "reference", x, quanta).reference())
    }

    fn table(&self, e: &Experiment) -> Table {
        let row = |(t_q, summits): &(f64, Vec<Summit>)| {
            let with = summits.iter().filter(|s| s.hump > self.quantum).count();
            let greatest = peaks(summits).map_or("–".to_owned(), |s| s.text());
            vec![short(*t_q), greatest, format!("{with} of {}", summits.len()), short(Sweep::worst(summits))]
        };
        table(
            format!("Against T_q, {} frame", self.frame.key()),
            format!(
                "{}; s, median over the phases (least to greatest); a rise of more than T_f and a packet after the first \
                 fall is a second hump",
                e.file
            ),
            ["T_q (ms)", "greatest delay (s)", "phases with a second hump", "highest second hump (s)"],
            self.at.iter().map(row),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_t_q_is_the_first_without_a_hump_in_any_phase() {
        let least = |humps: [[f64; 2]; 4]| {
            let summits = humps.map(|of| of.map(|hump| Summit { peak: 3.0, hump }).to_vec());
            let at = [0.0, 100.0, 200.0, 300.0].into_iter().zip(summits).collect();
            Sweep { frame: Frame::Large, opt: 520.0, t_f: 273.0, quantum: 1.0, at }.least_without_hump()
        };
        assert_eq!(least([[2.0, 0.1], [0.1, 0.1], [0.1, 2.0], [0.1, 0.1]]), Some(100.0));
        assert_eq!(least([[0.1; 2]; 4]), Some(0.0));
        assert_eq!(least([[0.1, 1.1]; 4]), None);
    }
}
