//! The page of a run with data units.

use fairpace_lab::adus::arrivals;
use fairpace_lab::{Hooks, RunOptions, Seeds, results, run};
use fairpace_report::folder::{run_page, run_page_of};
use fairpace_scenario::{Record, Scenario};

/// Four data units per second over TCP and over UDP.
const STEADY: &str = include_str!("../../lab/tests/data-units.toml");

#[test]
fn the_report_has_a_chart_of_each_flows_data_units_with_the_stretches_over_tcp_shaded() {
    let scenario = Scenario::parse(STEADY, "steady.toml").unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { seeds: Seeds::Count(2), record: Record { series: true, ..Record::default() } };
    let set = run::run(&scenario, &options, &Hooks::default()).unwrap();
    let folder = std::env::temp_dir().join(format!("fairpace-adus-{}", std::process::id()));
    results::write(&folder, &set, &results::Manifest::default(), None).unwrap();
    let page = run_page(&folder).unwrap();
    assert!(page.to_html() == run_page_of(&set).to_html(), "from its folder and from memory");
    let rows = std::fs::read_to_string(folder.join("adus.csv")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let first = run::simulate(&scenario, scenario.seed.get(), options.record, &Hooks::default()).unwrap();
    let complete = first.report.flows.iter().map(|f| arrivals(f).len()).sum::<usize>();
    assert_eq!(rows.lines().count(), 1 + complete, "the first seed's");
    assert!(rows.starts_with("seed,flow,adu,began_s,complete_s,gap_ms,via,switched\n1,media,0,0,0."), "{rows}");
    let section = page.sections.iter().find(|s| s.id == "adus").unwrap();
    let [chart] = &section.charts[..] else { panic!("one flow") };
    // Three probing periods, the last of which goes on.
    assert_eq!((chart.bands.len(), chart.series[0].x.len()), (3, complete - 1));
    assert_eq!(section.tables[0].rows[0][..1], ["media"]);
    assert_eq!(section.tables[0].rows[0].len(), section.tables[0].head.len());
    let states = page.sections.iter().flat_map(|s| &s.charts).flat_map(|c| &c.lanes);
    let labels: Vec<&str> = states.flat_map(|l| &l.spans).map(|span| span.label.as_str()).collect();
    assert!(labels.starts_with(&["Probing", "Running", "Probing"]), "{labels:?}");
}
