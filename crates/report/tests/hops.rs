//! The page of a run over several hops.

use fairpace_lab::{Hooks, RunOptions, Seeds, results, run};
use fairpace_report::folder::{compare_page, compare_page_of, run_page, run_page_of};
use fairpace_scenario::{Record, Scenario};

#[test]
fn the_report_shows_the_queue_of_each_hop_on_the_way_forward() {
    let text = include_str!("../../../scenarios/parking-lot.toml");
    let short = text.replace("duration = \"120 s\"", "duration = \"30 s\"");
    assert_ne!(short, text);
    let scenario = Scenario::parse(&short, "parking-lot.toml").unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { seeds: Seeds::Count(1), record: Record { series: true, ..Record::default() } };
    let set = run::run(&scenario, &options, &Hooks::default()).unwrap();
    let folder = std::env::temp_dir().join(format!("fairpace-hops-{}", std::process::id()));
    results::write(&folder.join("tfrc"), &set, &results::Manifest::default(), None).unwrap();
    let page = run_page(&folder.join("tfrc")).unwrap();
    let compared = compare_page(&folder, &["tfrc".to_owned(), "tfrc".to_owned()]).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(page.to_html() == run_page_of(&set).to_html(), "from its folder and from memory");
    let in_memory = compare_page_of([("tfrc", &set), ("tfrc", &set)]).unwrap();
    assert!(compared.to_html() == in_memory.to_html(), "from its folder and from memory");
    let mut charts = page.sections.iter().flat_map(|s| &s.charts);
    let chart = charts.find(|c| c.title == "Packets waiting before each hop").expect("a chart of queues");
    let names: Vec<&str> = chart.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    for series in &chart.series {
        assert!(series.x.len() > 20 && series.y.iter().any(|packets| *packets > 10.0), "{}", series.name);
    }
}
