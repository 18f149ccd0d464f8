//! Claims x readings: which claim holds under which reading, as a table that is made of the results.

use crate::claim::{Claim, Verdict};
use crate::figure::table;
use crate::reading::Reading;
use crate::{Experiment, Outcome};
use fairpace_lab::stats::short;
use fairpace_report::Table;

/// The mark of a verdict: one that can be told apart without colour.
const fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "✓",
        Verdict::Fails => "✗",
        Verdict::NotDecided => "?",
    }
}

const MARKS: &str = "✓ holds, ✗ fails, ? is not decided at 95 %; beside each the number that decides";

/// `✓ 1.20`; empty where the reading has no such claim.
fn cell(claim: Option<&Claim>) -> String {
    claim.map_or(String::new(), |c| {
        let number = c.measured.map_or("not measured".to_owned(), short);
        format!("{} {number}", mark(c.verdict()))
    })
}

/// A row per claim, a column per reading; none where an experiment ran under one reading.
fn matrix(outcome: &Outcome) -> Option<Table> {
    let readings = outcome.readings();
    if readings.len() < 2 {
        return None;
    }
    let mut ids: Vec<&str> = Vec::new();
    for claim in &outcome.claims {
        if !ids.contains(&claim.id.as_str()) {
            ids.push(&claim.id);
        }
    }
    let of = |id: &str, reading: &str| outcome.claims.iter().find(|c| c.id == id && c.reading == reading);
    let rows = ids.iter().map(|id| {
        let name = id.split_once('/').map_or(*id, |(_, key)| key).to_owned();
        std::iter::once(name).chain(readings.iter().map(|r| cell(of(id, r)))).collect()
    });
    let head = std::iter::once("claim").chain(readings.iter().copied());
    let mut found = table(format!("{}: claims under each reading", outcome.experiment), MARKS, head, rows);
    let held = |r: &&str| {
        let all = || outcome.claims.iter().filter(|c| c.reading == **r);
        let n = all().filter(|c| c.verdict() == Verdict::Holds).count();
        format!("{n} of {}", all().count())
    };
    found.rows.push(std::iter::once("hold".to_owned()).chain(readings.iter().map(held)).collect());
    Some(found)
}

/// The meaning of each reading, and its place in the paper.
fn legend(experiment: &Experiment, outcome: &Outcome) -> Option<Table> {
    let readings = outcome.readings();
    let known: Vec<&Reading> = experiment.readings.iter().filter(|r| readings.contains(&r.key)).collect();
    if known.len() < 2 {
        return None;
    }
    let row = |r: &&Reading| {
        let words = match (r.words, r.members()) {
            (_, members @ [_, ..]) => members.join(" + "),
            ("silent", _) => "silent".to_owned(),
            (words, _) => format!("“{words}”"),
        };
        let list = |of: &[&str]| if of.is_empty() { "–".to_owned() } else { of.join(", ") };
        let others = r.against.iter().copied().filter(|&key| key != r.key && experiment.reading(key).is_some());
        let against: Vec<&str> = others.collect();
        let place = if r.place.is_empty() { "–" } else { r.place };
        [r.key.to_owned(), words, place.to_owned(), r.changes.to_owned(), list(r.touches), list(&against)].to_vec()
    };
    let head = ["reading", "the paper’s words", "place", "change, or reason of a set", "decides also", "contradicts"];
    Some(table(format!("{}: readings", experiment.id), "", head, known.iter().map(row)))
}

/// The outcome with its readings in its section.
pub(crate) fn shown(experiment: &Experiment, mut outcome: Outcome) -> Outcome {
    outcome.matrix = matrix(&outcome).into_iter().chain(legend(experiment, &outcome)).collect();
    let section = std::mem::take(&mut outcome.section);
    outcome.section = outcome.matrix.iter().cloned().fold(section, fairpace_report::Section::table);
    outcome
}

/// The matrices of all experiments, for the beginning of the report.
pub(crate) fn tables(outcomes: &[Outcome]) -> Vec<Table> {
    outcomes.iter().filter_map(matrix).collect()
}

/// Everything about readings as Markdown.
pub(crate) fn markdown(outcomes: &[Outcome]) -> Option<String> {
    let mut page = String::new();
    for outcome in outcomes.iter().filter(|o| !o.matrix.is_empty()) {
        page.push_str(&format!("## {}\n\n", outcome.experiment));
        for table in &outcome.matrix {
            let line = |cells: &[String]| {
                let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
                format!("| {} |\n", cells.join(" | "))
            };
            page.push_str(&line(&table.head));
            page.push_str(&line(&vec!["---".to_owned(); table.head.len()]));
            for row in &table.rows {
                page.push_str(&line(row));
            }
            page.push('\n');
        }
    }
    if page.is_empty() {
        return None;
    }
    Some(format!("{MARKS}.\n\n{}\n", page.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bound;
    use fairpace_lab::stats::Estimate;

    fn outcome() -> Outcome {
        let claim = |id: &str, mean: f64, half: f64, reading: &str| {
            let e = Estimate { mean, ci95: Some([mean - half, mean + half]), n: 5 };
            Claim { reading: reading.to_owned(), ..Claim::check(id, "s", Some(e), Bound::Above(1.0), "ratio") }
        };
        let claims = vec![
            claim("x/a", 2.0, 0.1, "default"),
            claim("x/b", 0.5, 0.1, "default"),
            claim("x/a", 1.1, 0.3, "other"),
            claim("x/b", 3.0, 0.5, "other"),
        ];
        Outcome { experiment: "x".to_owned(), reading: "default".to_owned(), claims, ..Outcome::default() }
    }

    #[test]
    fn a_claim_says_under_which_readings_it_holds_fails_and_is_not_decided() {
        let o = outcome();
        assert_eq!(o.verdicts("x/a").as_deref(), Some("holds under default; not decided under other"));
        assert_eq!(o.verdicts("x/b").as_deref(), Some("holds under other; fails under default"));
        assert_eq!(o.decided_first().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["x/a", "x/b"]);
        let alone = Outcome { claims: o.claims[..2].to_vec(), ..o };
        assert_eq!((alone.verdicts("x/a"), matrix(&alone).is_none()), (None, true));
    }

    #[test]
    fn the_matrix_has_a_row_per_claim_and_a_column_per_reading() {
        let table = matrix(&outcome()).unwrap();
        assert_eq!(table.head, ["claim", "default", "other"]);
        assert_eq!(table.rows[0], ["a", "✓ 2.000", "? 1.100"]);
        assert_eq!(table.rows[1], ["b", "✗ 0.5000", "✓ 3.000"]);
        assert_eq!(table.rows[2], ["hold", "1 of 2", "1 of 2"]);
        let all = markdown(&[Outcome { matrix: vec![table], ..outcome() }]).unwrap();
        assert!(all.contains("| a | ✓ 2.000 | ? 1.100 |\n"), "{all}");
    }
}
