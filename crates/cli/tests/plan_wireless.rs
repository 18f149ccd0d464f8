//! `fairpace plan wireless`: what it prints for people and machines, and what it says of needs that cannot be met.

mod common {
    pub(crate) mod plan;
}

use serde_json::Value;

fn plan(args: &str) -> (String, String, Option<i32>) {
    common::plan::plan("wireless", args)
}

fn json(args: &str) -> Value {
    let (out, err, code) = plan(&format!("{args} --json"));
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

fn near(found: &Value, expected: f64, by: f64) {
    assert!((found.as_f64().unwrap() - expected).abs() <= by, "{found}, expected {expected}");
}

#[test]
fn without_options_the_papers_example_in_five_steps() {
    let (out, err, code) = plan("");
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let expected = "\
A window for a flow over a wireless link

  1  needs   delay jitter above 50 ms in at most 1 % of the packets
  2  sender  alpha = 3 (1 - beta) / (1 + beta) = 0.2 packets per RTT; beta = 0.875 remains after a decrease
  3  link    200 kbit/s: a packet of 125 B in a slot of 5 ms; error probability 10 %, memory 0
             persistent ARQ (no memory): 0.9 packets per slot, 180 kbit/s
  4  buffer  B = 20 packets, the sum of the windows; from 17 on the link is never idle
  5  told    rwnd, with each acknowledgement

  flow  min. RTT   R   D  share  rwnd  throughput  delay outage  lost or late
  1        85 ms  17  10  100 %    20  180 kbit/s        0.39 %        0.39 %

with 21 packets in all the delay outage would be 1.5 %
";
    assert_eq!(out, expected);
    // 1.002 %: not what is tolerated.
    let (out, _, _) = plan("--error 5%");
    assert!(out.ends_with("\nwith 23 packets in all the delay outage would be just above 1 %\n"), "{out}");
}

#[test]
fn the_json_has_units_in_its_names_and_one_entry_per_flow() {
    let all = json("--rtt 85ms,125ms --share 2,1 --error 5%");
    near(&all["alpha_packets_per_rtt"], 0.2, 1e-12);
    assert_eq!((&all["possible"], &all["link"]["scheme"]), (&true.into(), &"persistent".into()));
    near(&all["link"]["delivers_bps"], 190e3, 1e-6);
    let flows = all["flows"].as_array().unwrap();
    let sum: u64 = flows.iter().map(|f| f["rwnd_packets"].as_u64().unwrap()).sum();
    assert_eq!((flows.len(), all["buffer_packets"].as_u64()), (2, Some(sum)));
    near(&flows[1]["share"], 1.0 / 3.0, 1e-12);
    assert!(flows.iter().all(|f| f["delay_outage"].as_f64().unwrap() <= 0.01 && f["simulated"].is_null()), "{all}");
    // Shares follow what is needed.
    let all = json("--throughput 120kbit/s,60kbit/s --error 5%");
    near(&all["flows"][0]["share"], 2.0 / 3.0, 1e-12);
    near(&all["flows"][1]["needed_bps"], 60e3, 1e-9);
}

#[test]
fn windows_that_are_given_are_judged() {
    let all = json("--rwnd 21 --throughput 185kbit/s");
    let flow = &all["flows"][0];
    // Pr{fewer than 21 of 27 slots succeed}, each with 0.9: a binomial sum.
    near(&flow["delay_outage"], 0.01466777840214, 1e-12);
    near(&flow["rwnd_packets"], 21.0, 0.0);
    let t = flow["successes_in_r_plus_d_slots"].as_array().unwrap();
    near(&t[27], 0.9_f64.powi(27), 1e-12);
    let late: f64 = t[..21].iter().map(|p| p.as_f64().unwrap()).sum();
    near(&flow["delay_outage"], late, 1e-12);
    // R = 17, B = 21: (1 - beta) R / beta = 2.4 is enough.
    near(&all["fixed_capacity"]["utilization_cycle"], 1.0, 0.0);
    let warnings: Vec<&str> = all["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(
        warnings,
        [
            "flow 1: a delay outage of 1.5 % is above the 1 % that are tolerated",
            "flow 1: 180 kbit/s is below the 185 kbit/s that are needed"
        ]
    );
    // Eq. (2) by hand: beta (R + B) / R = 0.5 * 21 / 17.
    let small = json("--rwnd 4 --beta 0.5");
    near(&small["fixed_capacity"]["utilization_stage_one"], (1.0 + 0.5 * 21.0 / 17.0) / 2.0, 1e-12);
    let (_, err, code) = plan("--rwnd 0");
    assert!(err.starts_with("error: `--rwnd` is 0; it must be at least 1; the nearest possible is 1\n"), "{err}");
    assert_eq!(code, Some(2));
    let (_, err, _) = plan("--rtt 85ms,125ms --rwnd 5,6,7");
    assert!(err.starts_with("error: `--rtt` has 2 values for 3 flows"), "{err}");
}

#[test]
fn the_channel_as_memory_matrix_or_fading() {
    let memory = json("--memory 0.35 --outage 2%");
    assert_eq!(memory["link"]["scheme"], "optimal");
    near(&memory["link"]["memory"], 0.35, 1e-12);
    // A try fails with 0.1 · 0.65 after a success; after a failure and the silent slot with 0.1 + 0.35^2 · 0.9.
    let (first, again) = (0.1 * 0.65, 0.1 + 0.35 * 0.35 * 0.9);
    // Tries: failures f, successes 1 - f, f = (1 - f) first + f again; a failure takes two slots.
    let f = first / (1.0 + first - again);
    near(&memory["link"]["delivers_packets_per_slot"], (1.0 - f) / (1.0 + f), 1e-9);
    let matrix = json("--transition 0.935,0.065;0.585,0.415 --error 0,1 --scheme optimal --outage 2%");
    near(&matrix["link"]["memory"], 0.35, 1e-12);
    assert_eq!(matrix["flows"][0]["rwnd_packets"], memory["flows"][0]["rwnd_packets"]);
    let fading = json("--snr 20 --threshold 10 --doppler 9.3 --states 2 --max-jitter 100ms");
    near(&fading["link"]["error_probability"], 1.0 - (-0.1_f64).exp(), 1e-9);
    assert_eq!(fading["link"]["states"], 2);
    // One of four slots.
    near(&json("--slots 1/4 --max-jitter 200ms")["link"]["delivers_bps"], 45e3, 1e-6);
}

#[test]
fn a_promise_holds_when_simulated() {
    let all = json("--rtt 85ms,125ms --verify --seeds 5");
    for flow in all["flows"].as_array().unwrap() {
        let seen = &flow["simulated"];
        assert_eq!((&seen["holds"], &seen["throughput_bps"]["n"]), (&true.into(), &5.into()), "{flow}");
        let promised = flow["throughput_bps"].as_f64().unwrap();
        near(&seen["throughput_bps"]["mean"], promised, 0.02 * promised);
        assert!(seen["delay_outage"]["mean"].as_f64().unwrap() < 0.01, "{flow}");
    }
    let (out, _, _) = plan("--verify --seeds 2");
    assert!(out.contains("simulated in 2 runs") && out.contains("holds\n"), "{out}");
}

#[test]
fn windows_that_leave_the_link_idle_are_warned_of() {
    let (_, err, code) = plan("--max-jitter 10ms");
    assert_eq!(code, Some(0));
    assert_eq!(
        err,
        "warning: windows of 10 packets in all leave 36 % of the link unused, as the queue is empty at times; throughput \
         and outage allow for that\n"
    );
    let (_, err, _) = plan("--scheme none");
    assert!(err.starts_with("warning: 10 % of the packets are given up after their last try: "), "{err}");
}

#[test]
fn what_cannot_be_had_is_answered_with_the_nearest() {
    let cases = [
        (
            "--throughput 190kbit/s",
            "error: flow 1 needs 190 kbit/s; its share of what the link delivers is 180 kbit/s\n\nhint: possible is a \
             throughput of at most 180 kbit/s, or a link of at least 211.2 kbit/s\n",
        ),
        (
            "--max-jitter 10ms --throughput 180kbit/s",
            "error: flow 1 needs 180 kbit/s; windows of 10 in all, the largest that keep the delays, give it 115.8 \
             kbit/s\n\nhint: possible is a throughput of at most 115.8 kbit/s, or a tolerable jitter of at least 30 ms, or \
             a delay outage of at least 30 % (rwnd 17)\n",
        ),
        (
            "--error 20% --max-jitter 5ms",
            "error: flow 1 is late in 4 % of its packets even with windows of 1 in all, the smallest; 1 % is allowed\n\n\
             hint: possible is a tolerable jitter of at least 10 ms, or a delay outage of at least 4 % (rwnd 1)\n",
        ),
        (
            "--scheme limited --retries 1 --loss 1%",
            "error: 1 % of the packets are given up after the last try; flow 1 may lose 1 %\n\nhint: possible is a loss of \
             at least 2 %, or tries until it succeeds (persistent)\n",
        ),
    ];
    for (args, expected) in cases {
        assert_eq!(plan(args), (String::new(), expected.to_owned(), Some(8)), "{args}");
    }
    let (out, _, code) = plan("--max-jitter 10ms --throughput 180kbit/s --json");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["possible"], &answer["lack"]), (Some(8), &false.into(), &"window".into()));
    assert_eq!(answer["nearest"]["max_jitter_ms"][0], 30.0);
    assert_eq!(plan("--max-jitter 30ms --throughput 180kbit/s").2, Some(0));
}

#[test]
fn what_cannot_be_is_refused_with_option_found_and_allowed() {
    let cases = [
        (
            "--max-jitter 4ms",
            "error: `--max-jitter` is 4 ms; it must be at least one slot, 5 ms; the nearest possible is 5 ms",
        ),
        ("--beta 1", "error: `--beta` is 1; it must be above 0 and below 1; the nearest possible is 0.999"),
        ("--outage 0", "error: `--outage` is 0; it must be above 0 and below 1; the nearest possible is 0.001"),
        ("--rtt 1ms", "error: `--rtt` is 1 ms; it must be at least one slot, 5 ms; the nearest possible is 5 ms"),
        ("--error 1", "error: `--error` is 1; it must be from 0 to below 1"),
        ("--error 0.1 --memory 1", "error: `--memory` is 1; with an error probability of 0.1 it must be from -0.111"),
        ("--transition 0.9,0.2;0.4,0.6 --error 0,1", "error: `transition[0]` sums to 1.1, not to 1 (within 1e-9)"),
        ("--share 0,1", "error: `--share` is 0; it must be above 0"),
        ("--share 0", "error: `--share` is 0; it must be above 0"),
        (
            "--error 0.1,0.2",
            "error: `--error` has 2 values; only `--transition` has states of their own\n\nhint: give one",
        ),
        ("--retries 3", "error: `--retries` has no effect with `--scheme auto`\n\nhint: write `--scheme limited`"),
        (
            "--scheme none --retry-delay 1",
            "error: `--retry-delay` has no effect with `--scheme none`\n\nhint: leave it",
        ),
        (
            "--rtt 85ms,125ms --share 1,1,1",
            "error: `--rtt` has 2 values for 3 flows\n\nhint: give one value for all, or 3, separated by commas",
        ),
    ];
    for (args, expected) in cases {
        let (out, err, code) = plan(args);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{args}: {err}");
        assert!(err.starts_with(expected), "{args}:\n{err}\nexpected\n{expected}");
    }
    for args in ["--error 1.2", "--slots 3/2", "--scheme limited", "--snr 20", "--memory 0.1 --snr 20", "--flows 0"] {
        let (out, err, code) = plan(args);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{args}: {err}");
    }
}
