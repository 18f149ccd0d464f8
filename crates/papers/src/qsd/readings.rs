//! The greatest delay of each start of Fig. 5 under other readings of the paper.

use super::frame::Frame;
use super::phases::{SWEEP, Summit, peaks, quantum, summits};
use super::setup::satellite;
use crate::builtin::{base, time_ms, with};
use crate::figure::table;
use crate::{Bench, Experiment};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::Table;
use fairpace_scenario::{Parameter, RawScenario, ReleaseKind, SlotPlacement};

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

/// The greatest delay of each start under each reading.
pub(super) fn readings(e: &Experiment, frame: Frame, bench: &mut Bench<'_>) -> Result<Table, RunError> {
    let starts = frame.strategies();
    let scenarios = READINGS.iter().flat_map(|reading| {
        starts.map(|(strategy, _)| {
            with(&base(e), |s| {
                frame.set(s);
                (reading.set)(s);
                strategy.set(s);
            })
        })
    });
    let all = summits(e, &scenarios.collect::<Vec<_>>(), SWEEP, bench)?;
    let quantum = quantum(&base(e));
    let cell = |summits: &Vec<Summit>| {
        let Some(peaks) = peaks(summits) else { return "–".to_owned() };
        let humps = summits.iter().filter(|s| s.hump > quantum).count();
        let worst = summits.iter().map(|s| s.hump).fold(0.0, f64::max);
        let hump = if humps == 0 { "none".to_owned() } else { format!("{humps}, {}", short(worst)) };
        format!("{}; hump: {hump}", peaks.text())
    };
    let row = |(reading, of): (&Reading, &[Vec<Summit>])| {
        std::iter::once(reading.words.to_owned()).chain(of.iter().map(cell)).collect()
    };
    let caption = format!(
        "{}; greatest end-to-end delay in s: median over the phases (least to greatest); second hump: in how many of the \
         phases, and its height in the worst, s",
        e.file
    );
    let head = std::iter::once("reading".to_owned()).chain(starts.iter().map(|(s, _)| s.name()));
    let rows = READINGS.iter().zip(all.chunks(starts.len())).map(row);
    Ok(table("The same under other readings", caption, head, rows))
}
