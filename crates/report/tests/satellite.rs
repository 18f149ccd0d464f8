//! The ready scenarios over a satellite: what each of them shows is measured here.

use fairpace_lab::metrics::{FlowSummary, RunSummary};
use fairpace_lab::{Hooks, RunOptions, RunSet, Seeds, results, run};
use fairpace_report::folder::{run_page, run_page_of};
use fairpace_scenario::{AgentKind, RawScenario, Record, Scenario, Time};
use std::collections::BTreeSet;
use std::path::Path;

fn load(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Scenario::load(&file).unwrap_or_else(|e| panic!("{e}"))
}

fn run_set(scenario: &Scenario) -> RunSet {
    let record = Record { series: true, events: true, pcap: false };
    run::run(scenario, &RunOptions { seeds: Seeds::Count(1), record }, &Hooks::default()).unwrap()
}

fn summary(scenario: &Scenario) -> RunSummary {
    run_set(scenario).runs.remove(0).summary
}

/// The same scenario with another agent at the terminals, and flows that do not ask where there is none.
fn with_agent(name: &str, agent: AgentKind) -> Scenario {
    let changed = load(name).modify(|s| {
        let satellite = s.satellite.as_mut().unwrap();
        (satellite.quick_start.agent, satellite.quick_start.hold) = (agent, None);
        if agent == AgentKind::None {
            s.flows.iter_mut().for_each(|f| f.quick_start = None);
        }
    });
    changed.unwrap_or_else(|e| panic!("{e}"))
}

fn flow<'a>(run: &'a RunSummary, name: &str) -> &'a FlowSummary {
    run.flows.iter().find(|f| f.name == name).unwrap()
}

fn longest_wait_ms(run: &RunSummary, name: &str) -> f64 {
    flow(run, name).e2e_ms.unwrap().max
}

#[test]
fn on_an_idle_satellite_qsd_waits_less_than_qs_and_qs_less_than_nothing() {
    let [none, qs] = [AgentKind::None, AgentKind::Qs].map(|agent| summary(&with_agent("dvb-rcs-idle.toml", agent)));
    let qsd = summary(&load("dvb-rcs-idle.toml"));
    let waits = [&none, &qs, &qsd].map(|run| longest_wait_ms(run, "tv"));
    assert!(waits[0] > 1.2 * waits[1] && waits[1] > 1.2 * waits[2], "{waits:?}");
    let asked = flow(&qsd, "tv").quick_start.unwrap();
    assert_eq!((asked.asked, asked.approved, asked.invalid), (1, 1, 0));
    let terminal = &qsd.satellite.as_ref().unwrap().terminals[0];
    assert_eq!((terminal.terminal, terminal.quick_start.unwrap().approved), (1, 1));
    // Nothing is lost: 256 kbit/s in 1,316 bytes is 24.3 packets/s, over 59 of 60 s.
    let tv = flow(&qsd, "tv");
    assert_eq!((tv.loss_ratio, tv.lost_in_send_buffer, tv.late), (Some(0.0), Some(0.0), Some(0.0)));
    assert!((1_405..=1_435).contains(&tv.received_packets), "{}", tv.received_packets);
}

#[test]
fn where_others_use_a_terminal_too_a_stream_waits_less_than_alone_without_quick_start() {
    let light = summary(&load("dvb-rcs-light.toml"));
    let alone = summary(&with_agent("dvb-rcs-idle.toml", AgentKind::None));
    assert_eq!(flow(&light, "tv").quick_start.unwrap().approved, 1);
    let waits = [&light, &alone].map(|run| longest_wait_ms(run, "tv"));
    assert!(waits[0] < waits[1], "{waits:?}");
    let used = light.satellite.as_ref().unwrap().utilization;
    assert!((0.05..0.2).contains(&used), "{used}");
}

#[test]
fn on_a_busy_satellite_the_request_is_refused_and_the_stream_starts_slowly() {
    let busy = summary(&load("dvb-rcs-busy.toml"));
    let asked = flow(&busy, "tv").quick_start.unwrap();
    assert_eq!((asked.asked, asked.approved, asked.invalid), (1, 0, 0), "{asked:?}");
    let satellite = busy.satellite.as_ref().unwrap();
    assert!((0.83..0.95).contains(&satellite.utilization), "{}", satellite.utilization);
    let refused: u64 = satellite.terminals.iter().filter_map(|t| t.quick_start).map(|q| q.refused).sum();
    assert_eq!(refused, 1);
    let idle = summary(&load("dvb-rcs-idle.toml"));
    assert!(longest_wait_ms(&busy, "tv") > 1.5 * longest_wait_ms(&idle, "tv"));
}

#[test]
fn the_classes_together_use_a_third_of_the_carrier_and_their_report_stays_small() {
    let long = |s: &mut RawScenario| (s.duration, s.sample) = (Time::seconds(300.0), Time::seconds(4.0));
    let scenario = load("dvb-rcs-aggregate.toml").modify(long).unwrap();
    let set = run_set(&scenario);
    let run = &set.runs[0].summary;
    // Of the last 180 s: 180 that start there, and 60 x (1 - e^-2) = 52 that go on; Poisson, four standard deviations
    // of 15.
    let calls = run.group("voip").unwrap();
    assert!((172..=292).contains(&calls.flows), "{}", calls.flows);
    // There are many: the events of the first hundred of a group are kept.
    let folder = std::env::temp_dir().join(format!("fairpace-aggregate-{}", std::process::id()));
    results::write(&folder, &set, &results::Manifest::default(), None).unwrap();
    let events = std::fs::read_to_string(folder.join("events.csv")).unwrap();
    let traced: BTreeSet<&str> = events.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(traced.iter().filter(|name| name.starts_with("voip-")).count(), 100);
    assert!(traced.iter().any(|name| name.starts_with("video-call-")), "{traced:?}");
    // From 120 s on nearly all calls and video calls of a steady state go on, 960 and about 250 kbit/s, and two thirds of
    // the television, 430; television alone varies by half of that.
    let used = run.satellite.as_ref().unwrap().utilization;
    assert!((0.15..0.4).contains(&used), "{used}");
    // Rates are those of a flow while it goes on: 16 kbit/s, less what is on its way as it ends or lost.
    assert!((13e3..17e3).contains(&calls.throughput_bps), "{}", calls.throughput_bps);
    // A packet of a call takes 0.25 s at the very least, and tolerates 0.1 s of jitter.
    let wait = calls.e2e_ms.unwrap();
    assert!(wait.p50 > 250.0 && wait.p50 < 1_000.0, "{wait:?}");
    assert!(calls.late.unwrap() > 0.0 && calls.lost_in_send_buffer.is_some());
    for (name, head) in [
        ("terminals.csv", "seed,t_s,terminal,offered_bps,requested_bps,granted_bps,throughput_bps,slots_used,"),
        ("slots.csv", "seed,carrier,super_frame,start_s,slot,terminal\n"),
    ] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.starts_with(head) && text.lines().count() > 100, "{name}: {}", text.lines().next().unwrap());
    }
    let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    for line in events.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["t_s"].is_number() && event["event"].is_string(), "{line}");
    }
    assert!(["request", "tbtp", "grant", "quick_start"].iter().all(|e| events.contains(&format!("\"event\":\"{e}\""))));
    let page = run_page(&folder).unwrap().to_html();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(page == run_page_of(&set).to_html(), "from its folder and from memory");
    assert!(page.contains("class=\"slot-map\"") && page.contains("nobody’s"));
    assert!(page.len() < 2_000_000, "{}", page.len());
}

#[test]
fn the_folder_of_a_run_over_a_satellite_is_the_same_bytes_each_time() {
    let folder = |name: &str| {
        let path = std::env::temp_dir().join(format!("fairpace-satellite-{}-{name}", std::process::id()));
        results::write(&path, &run_set(&load("dvb-rcs-idle.toml")), &results::Manifest::default(), None).unwrap();
        let mut files: Vec<_> = std::fs::read_dir(&path).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        let bytes: Vec<_> =
            files.iter().map(|f| (f.file_name().unwrap().to_owned(), std::fs::read(f).unwrap())).collect();
        std::fs::remove_dir_all(&path).unwrap();
        bytes
    };
    let (one, two) = (folder("a"), folder("b"));
    assert_eq!(one.len(), 11);
    assert!(one == two);
}
