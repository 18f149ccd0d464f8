//! The duties of every experiment, tried on scenarios that are made short.

use crate::{Bench, Effort, Experiment, Outcome, Tools};
use fairpace_lab::Hooks;

/// Runs an experiment on another text of its scenario, as published: a run of `safety = "paper"` in which a rule of our own
/// decided ends it with an error ([`fairpace_lab::RunError::OwnRules`]). The outcome has points, claims with ids of their own, charts or tables, and
/// no number that is none.
pub(crate) fn runs(e: &Experiment, scenario: String, effort: Effort) -> Outcome {
    let small = Experiment { scenario: scenario.leak(), ..*e };
    let mut bench = Bench::new(Hooks::default(), effort).as_published();
    let outcome = (small.run)(&small, &mut bench, &mut Tools::default()).unwrap();
    assert!(bench.simulated() > 0 && !outcome.points.is_empty() && !outcome.claims.is_empty(), "{}", e.id);
    assert!(!outcome.section.charts.is_empty() || !outcome.section.tables.is_empty(), "{}", e.id);
    for chart in &outcome.section.charts {
        assert!(!chart.title.is_empty() && !chart.title.contains("NaN"), "{}: {}", e.id, chart.title);
        assert!(chart.series.iter().any(|s| !s.x.is_empty()), "{}: {} is empty", e.id, chart.title);
    }
    for table in &outcome.section.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}: {}", e.id, table.title);
    }
    let mut ids: Vec<&str> = outcome.claims.iter().map(|c| c.id.as_str()).collect();
    assert!(ids.iter().all(|id| id.starts_with(&format!("{}/", e.id))), "{ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), outcome.claims.len(), "{}: two claims have one id", e.id);
    assert!(!serde_json::to_string(&outcome).unwrap().contains("NaN"), "{}", e.id);
    outcome
}
