//! An experiment of the papers takes at most [`MOST`] lines of Rust for a figure.
//!
//! The lines of an experiment are those of the items that no other experiment needs, without tests, comments and
//! documentation. A measurement (`Measure`) of its own, and what only that needs, is counted apart:
//! looking at a run in a new way is no part of drawing a figure. Items that experiments of one paper share are shown
//! beside them.
//!
//! `cargo test -p fairpace-checks --test figures -- --nocapture` prints the table; with `FIGURE=rcs.fig20` the items of
//! that experiment, too.

mod source;

use fairpace_checks::root;
use source::{Item, Name, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Lines of a figure.
const MOST: usize = 60;

/// Experiments that show more than the one figure that their ids name, and what that is.
const MORE: &[(&str, usize, &str)] = &[
    ("aimd.eq1", 2, "against beta; against the capacity"),
    ("aimd.fig1", 2, "the window over time; what the link carries against rwnd"),
    ("aimd.eq2", 2, "stage I against B; whole cycles"),
    ("aimd.fig8", 2, "goodput; loss"),
    ("aimd.plan", 3, "promised throughput; promised outage; offers in place of needs that cannot be met"),
    ("aimd.replan", 3, "windows over time; throughput by phase; outage by phase"),
    ("qsd.fig3", 2, "the large frame; the small frame"),
    ("qsd.fig5", 2, "delays from the start on; nine other readings"),
    ("qsd.fig6", 2, "the large frame; the small frame in units of three sizes"),
    ("qsd.fig7", 2, "the course in one phase; the greatest delay against T_q"),
    ("qsd.eq6", 2, "delays against T_q; humps against T_q"),
    ("qsd.fig8", 3, "the median; the percentiles about it; one flow alone"),
    ("qsd.fig9", 3, "calls; video calls; television"),
    ("qsd.table3", 3, "losses by age; the table; the table of what was produced after the response"),
    ("rcs.fig7-9", 5, "Figs. 7 to 9; an encoder at one rate, Fig. 6(a); without a buffer, Fig. 10"),
    ("tpba.fig19", 2, "f over periods of 1 s; f of the mean rates"),
    ("tpba.fig29-31", 4, "Figs. 29 to 31; R_f where the queue loses"),
    ("tpba.rules", 3, "time over TCP; how far r_s is off; fairness"),
    ("agreement.theory", 11, "eleven formulas"),
    (
        "agreement.loss",
        5,
        "rates beside ns-2's; over the square root; over the equation; all numbers beside ns-2's; rates beside the kernel's",
    ),
    ("agreement.kernel", 3, "throughputs in both worlds; their deviations; what is simulated alone"),
];

/// An experiment in the source: its id, and the function that runs it.
struct Experiment {
    id: String,
    run: Name,
}

/// The lists of experiments: `experiment!("rcs", "fig12", "…", traces::fig12)`.
fn experiments(source: &Source) -> Vec<Experiment> {
    let mut found = Vec::new();
    for (module, text) in &source.texts {
        let Some((_, list)) = text.split_once("const EXPERIMENTS: &[Experiment] = &[") else { continue };
        let list = list.split("];").next().expect("a list ends");
        for entry in list.split("!(").skip(1) {
            let words: Vec<&str> = entry.split('"').collect();
            let path = words.last().and_then(|end| end.split(')').next()).expect("an entry ends with its function");
            // Its readings may stand behind.
            let path = path.trim_matches([',', ' ', '\n']).split(',').next().unwrap_or_default();
            let path: Vec<&str> = path.split("::").map(str::trim).collect();
            let id =
                if words.len() > 5 { format!("{}.{}", words[1], words[3]) } else { format!("{module}.{}", words[1]) };
            let run = source.resolve(module, &path).unwrap_or_else(|| panic!("{id}: {path:?} is in no module"));
            found.push(Experiment { id, run });
        }
    }
    found
}

/// The figures of an experiment: `fig22a-b` are two, `fig7-12` are six, others one unless [`MORE`] says so.
fn figures(id: &str) -> usize {
    if let Some((_, n, _)) = MORE.iter().find(|(of, ..)| *of == id) {
        return *n;
    }
    let Some((from, to)) = id.split_once('-').filter(|_| id.contains(".fig")) else { return 1 };
    let letter = |text: &str| text.chars().next_back().filter(char::is_ascii_lowercase).map(|c| c as usize);
    let number = |text: &str| text.rsplit("fig").next().and_then(|n| n.parse::<usize>().ok());
    match (letter(from).zip(letter(to)), number(from).zip(number(to))) {
        (Some((from, to)), _) | (None, Some((from, to))) => to + 1 - from,
        _ => 1,
    }
}

/// The lines of an experiment.
#[derive(Debug, Default)]
struct Size {
    id: String,
    /// Of its figures.
    own: usize,
    /// Of a measurement of its own.
    measurement: usize,
    /// Of what it shares with experiments of its paper only.
    shared: usize,
}

/// The size of every experiment, and the items that none of them needs.
fn sizes(source: &Source) -> (Vec<Size>, Vec<&Name>) {
    let all: Vec<(Experiment, BTreeSet<Name>)> =
        experiments(source).into_iter().map(|e| (source.reached([&e.run]), e)).map(|(r, e)| (e, r)).collect();
    let mut users: BTreeMap<&Name, BTreeSet<&str>> = BTreeMap::new();
    for (e, reached) in &all {
        reached.iter().for_each(|name| _ = users.entry(name).or_default().insert(&e.id));
    }
    let paper = |id: &str| id.split('.').next().unwrap_or(id).to_owned();
    let is_measure = |name: &&Name| source.items[*name].code.contains("Measure {");
    let chosen = std::env::var("FIGURE").unwrap_or_default();
    let mut sizes = Vec::new();
    for (e, reached) in &all {
        let measured = source.reached(reached.iter().filter(|name| users[name].len() == 1).filter(is_measure));
        let mut size = Size { id: e.id.clone(), ..Size::default() };
        for name in reached {
            let lines = source.items[name].lines;
            let is_shared = users[name].iter().all(|id| paper(id) == paper(&e.id));
            match (users[name].len(), measured.contains(name)) {
                (1, true) => size.measurement += lines,
                (1, false) => size.own += lines,
                _ => size.shared += if is_shared { lines } else { 0 },
            }
            if users[name].len() == 1 && chosen == e.id {
                println!(
                    "{lines:4} {}::{}{}",
                    name.0,
                    name.1,
                    if measured.contains(name) { ", measurement" } else { "" }
                );
            }
        }
        sizes.push(size);
    }
    // The list of experiments, the readings that it names, and what runs them, belong to none.
    let is_list = |name: &Name| {
        name.1 == "EXPERIMENTS" || ["choose", "matrix"].contains(&name.0.as_str()) || name.0.ends_with("::readings")
    };
    let of_one = |(name, item): &(&Name, &Item)| !name.0.is_empty() && !is_list(name) && item.lines > 0;
    let idle = source.items.iter().filter(of_one).map(|(name, _)| name);
    (sizes, idle.filter(|name| !users.contains_key(name)).collect())
}

#[test]
fn an_experiment_takes_at_most_60_lines_for_a_figure() {
    let source = Source::read(&root().join("crates/papers/src"));
    let (sizes, idle) = sizes(&source);
    println!("| experiment | figures | lines | for a figure | and a measurement | shared in its paper |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut over = Vec::new();
    for Size { id, own, measurement, shared } in &sizes {
        let n = figures(id);
        let more = MORE.iter().find(|(of, ..)| of == id).map_or(String::new(), |(.., what)| format!(": {what}"));
        println!("| {id} | {n}{more} | {own} | {} | {measurement} | {shared} |", own.div_ceil(n));
        if *own > MOST * n {
            over.push(format!("{id}: {own} lines for {n}"));
        }
    }
    assert!(sizes.len() > 50 && sizes.iter().all(|size| size.own + size.shared > 0), "{sizes:#?}");
    // A name that was not found would make an experiment look short.
    assert!(idle.is_empty(), "no experiment seems to need {idle:#?}");
    assert!(over.is_empty(), "more than {MOST} lines for a figure: {over:#?}");
    for (id, ..) in MORE {
        assert!(sizes.iter().any(|size| size.id == *id), "{id} is no experiment");
    }
}

#[test]
fn lines_belong_to_the_experiment_that_alone_needs_them() {
    let source = Source::parse([
        ("", ""),
        (
            "x",
            r#"
mod a;
mod kit;
#[cfg(test)]
mod small;
const EXPERIMENTS: &[Experiment] = &[
    experiment!("x", "fig1-2", "two; one {", a::two),
    experiment!("x", "eq3", "one", kit::one),
];
"#,
        ),
        (
            "x::a",
            r#"
use super::kit::{self, Trace, both as each};
/// A comment: helper() is named, and not needed.
const OWN: Measure<Trace> = Measure { name: "own", of: own };
fn own(job: &Job) -> Trace {
    Trace::of(job)
}
pub fn two(both: u8) {
    each(both); // helper()

    let text = "kit::one()";
    kit::second(OWN, text)
}
fn idle() {}
"#,
        ),
        (
            "x::kit",
            r#"
pub struct Trace;
impl Trace {
    fn of() {}
}
pub fn both() {}
pub fn second() {
    helper()
}
fn helper() {}
pub fn one() {
    both()
}
#[cfg(test)]
mod tests {
    fn one() {
        helper()
    }
}
"#,
        ),
        ("x::small", "pub fn no_experiment() {}"),
    ]);
    let (sizes, idle) = sizes(&source);
    let of = |i: usize| (sizes[i].id.as_str(), sizes[i].own, sizes[i].measurement, sizes[i].shared);
    // `two` 5, `second` 3, `helper` 1; the measurement 4, `Trace` 4; `both` 1.
    assert_eq!(of(0), ("x.fig1-2", 9, 8, 1));
    assert_eq!(of(1), ("x.eq3", 3, 0, 1));
    assert_eq!(idle, [&("x::a".to_owned(), "idle".to_owned())]);
    assert_eq!(["rcs.fig17a", "rcs.fig22a-b", "rcs.fig10-12", "rcs.eq2"].map(figures), [1, 2, 3, 1]);
}
