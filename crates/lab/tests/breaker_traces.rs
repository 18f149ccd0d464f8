//! Every controller over a recorded link with a deep buffer, the quick form of `examples/breaker_traces.rs`: the circuit
//! breaker limits what gives way, and ends what does not.

use fairpace_control::{StopReason, schemes};
use fairpace_lab::pool::Hooks;
use fairpace_lab::run::simulate;
use fairpace_scenario::{Record, Scenario};
use std::path::Path;

/// Two minutes of 1, 4, 2 and 8 Mbit/s, a second each, behind 200 packets.
fn scenario(controller: &str) -> Scenario {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces/staircase.mahimahi");
    let more = match controller {
        "tpba" => "tcp = { variant = \"sack\" }\nsource = { kind = \"adus\", packets = 10 }",
        "fixed" => "parameters = { rate = \"9 Mbit/s\" }",
        _ => "",
    };
    let text = format!(
        r#"
        title = "A recorded link"
        duration = "120 s"
        feedback = "20 ms"
        [path]
        trace = {{ file = "{}" }}
        rtt = "60 ms"
        jitter = "10 ms"
        queue = {{ kind = "drop-tail", capacity = "200 pkt" }}
        [[flows]]
        name = "media"
        controller = "{controller}"
        {more}
        "#,
        trace.display()
    );
    Scenario::parse(&text, "breaker.toml").expect("a scenario")
}

#[test]
fn no_responsive_flow_ends_by_the_congestion_rule_and_a_fixed_rate_above_the_capacity_does() {
    let (mut cuts, mut wrong) = (0, Vec::new());
    for scheme in schemes() {
        for seed in 1..=2 {
            let record = Record { series: false, events: false, pcap: false };
            let run = simulate(&scenario(scheme.name), seed, record, &Hooks::default()).expect("a run");
            let flow = &run.report.flows[0];
            let ended = matches!(flow.stopped, Some(StopReason::Congestion { .. }));
            if ended != (scheme.name == "fixed") || (flow.stopped.is_some() && !ended) {
                wrong.push(format!("{} with seed {seed}: {:?}", scheme.name, flow.stopped));
            }
            cuts += flow.media.as_ref().map_or(0, |media| media.counters.cuts);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(cuts > 10, "the steps were taken: {cuts} cuts");
}
