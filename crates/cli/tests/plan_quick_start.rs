//! `fairpace plan quick-start`: what it prints for people and machines, and what it says of a link that cannot be.

mod common {
    pub(crate) mod plan;
}

use serde_json::Value;

fn plan(args: &str) -> (String, String, Option<i32>) {
    common::plan::plan("quick-start", args)
}

fn json(args: &str) -> Value {
    let (out, err, code) = plan(&format!("{args} --json"));
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

fn near(found: &Value, expected: f64, by: f64) {
    assert!((found.as_f64().unwrap() - expected).abs() <= by, "{found}, expected {expected}");
}

const PAST_TIMER: &str = "warning: T_q = 1273 ms + RTT_m = 2050 ms is past the no-feedback timer of 2 s: it expires \
    before the answer comes, and halves the rate (tfrc's `first_timer = \"3 s\"` waits longer)\n";

#[test]
fn the_large_frame_with_formulas_numbers_and_delays() {
    let (out, err, code) = plan("--frame large --release in-force");
    assert_eq!((err.as_str(), code), (PAST_TIMER, Some(0)));
    let expected = "\
Quick-Start for a stream of 256 kbit/s from an otherwise idle satellite terminal

  T_f    273.5 ms   multi-frame of 144 slots
  T_r    820.4 ms   super-frame of 432 slots
  T_a    1640.7 ms  a request is answered 2 super-frames later
  T_p    252.0 ms   from terminal to terminal
  RTT_m  777.5 ms   T_f + 2 T_p

T_q,max = T_r/2 + T_a - RTT_m = 410.2 + 1640.7 - 777.5 = 1273.5 ms
T_q,opt = (2 (T_r + T_a) - 3 RTT_m) / 5 = (2 (820.4 + 1640.7) - 3 · 777.5) / 5 = 518.0 ms
shortest hold without a second hump, by the fluid model: T_q = 326 ms

ask for 320 kbit/s (code 3): the lowest rate of the option from 1.25 times the stream on

  strategy                   longest delay        median delay       second hump
  none                  8.19 / 8.81 / 9.15  7.59 / 8.10 / 8.44                 –
  qs                    2.94 / 3.08 / 3.23  2.43 / 2.57 / 2.86  0.46 s, at 5.4 s
  qsd, T_q = 0.0 ms     1.84 / 2.18 / 2.52  1.03 / 1.14 / 1.91  0.17 s, at 3.1 s
  qsd, T_q = 518.0 ms   1.92 / 2.26 / 2.60  0.58 / 0.94 / 1.29                 –
  qsd, T_q = 1273.5 ms  2.36 / 2.36 / 2.69  1.36 / 1.36 / 1.66                 –

end-to-end delay in s, least / median / greatest over 456 phases; median: of the first 10 s
";
    assert_eq!(out, expected);
}

#[test]
fn the_papers_own_numbers_within_2_percent() {
    let large = json("--frame large");
    near(&large["t_q_max_ms"], 1_273.0, 0.02 * 1_273.0);
    let small = json("--frame small");
    near(&small["t_q_max_ms"], 339.0, 0.02 * 339.0);
    // [qsd §3.5] has T_p = 250 ms; with the 252 of Table I the small frame's is 53.
    near(&json("--frame large --propagation 250ms")["t_q_opt_ms"], 520.0, 0.02 * 520.0);
    near(&json("--frame small --propagation 250ms")["t_q_opt_ms"], 55.0, 0.02 * 55.0);
    near(&small["t_q_opt_ms"], 53.0, 0.02 * 53.0);
    near(&large["rtt_m_ms"], 777.0, 1.0);
    near(&small["t_a_ms"], 820.0, 1.0);
}

#[test]
fn the_json_has_units_in_its_names_and_one_entry_per_strategy() {
    let all = json("--frame large --release in-force");
    assert_eq!((&all["request_code"], &all["approved_bps"]), (&3.into(), &320_000.0.into()));
    assert_eq!((&all["t_q_without_second_hump_ms"], &all["release"]), (&326.0.into(), &"in-force".into()));
    let strategies = all["strategies"].as_array().unwrap();
    let names: Vec<_> = strategies.iter().map(|s| s["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "qs", "qsd", "qsd", "qsd"]);
    near(&strategies[0]["max_e2ed_ms"]["median"], 8_810.0, 10.0);
    near(&strategies[2]["second_hump"]["rise_ms"], 173.0, 1.0);
    assert!(strategies[3]["second_hump"].is_null() && strategies[3]["packets_max_e2ed_ms"].is_null(), "{all}");
    let past: Vec<_> = strategies.iter().map(|s| s["past_first_timer"].as_bool().unwrap()).collect();
    assert_eq!(past, [false, false, false, false, true]);
    assert_eq!(all["warnings"].as_array().unwrap().len(), 1);
    assert!(json("--frame large --first-timer 3s")["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn what_is_decided_and_falls_before_it_is_used_leaves_no_hold_without_a_hump() {
    let (out, _, _) = plan("--frame large");
    assert!(
        out.contains(
            "by the fluid model: none up to T_q,max; what is asked for falls before it is used (`--release in-force`: \
             not until then)"
        ),
        "{out}"
    );
    assert!(json("--frame small")["t_q_without_second_hump_ms"].is_null());
}

#[test]
fn a_capacity_that_comes_in_time_needs_no_hold() {
    // T_f = 11.39 ms, T_r = 22.79, T_a = 2 T_r = 45.58, RTT_m = 31.39: T_q,max = 25.58, T_q,opt = 8.51 ms
    let near_by = "--slots-per-multi-frame 6 --slots-per-super-frame 12 --allocation-delay 2 --propagation 10ms";
    near(&json(near_by)["t_q_opt_ms"], 8.509, 1e-3);
    // T_a = 4 T_r of the small frame: T_q,opt = (2 (136.7 + 546.9) - 3 · 549.6) / 5 = -56.3 ms, T_q,max = 65.7
    let (out, _, code) = plan("--frame small --allocation-delay 4 --release in-force");
    assert_eq!(code, Some(0));
    assert!(
        out.contains(
            "/ 5 = -56.3 ms\n  not above 0: the second report already tells of the new capacity, and no hold is needed\n"
        ),
        "{out}"
    );
    // No row for it: it is that of T_q = 0.
    assert_eq!(out.matches("qsd, ").count(), 2, "{out}");
    // T_f = T_r = 546.9 ms, T_p = 500: T_q,max = 273.5 + 1093.8 - 1546.9 ms
    let (out, _, code) =
        plan("--slots-per-multi-frame 288 --slots-per-super-frame 288 --allocation-delay 2 --propagation 500ms");
    assert_eq!(code, Some(0));
    assert!(
        out.contains("= -179.6 ms\n  not above 0: the capacity is there before the answer, and no hold is needed\n"),
        "{out}"
    );
    assert_eq!(out.matches("qsd, ").count(), 1, "{out}");
}

#[test]
fn a_slot_that_comes_less_than_once_in_a_multi_frame_is_warned_of() {
    let (_, err, _) = plan("--frame small");
    assert_eq!(
        err,
        "warning: with its minimum of 44 kbit/s a terminal has a slot every 273 ms only, not in each T_f: the first \
         round trip takes up to twice that longer than RTT_m, and a hold near T_q,max lets the capacity come too early\n"
    );
    assert_eq!(plan("--frame small --granularity 264kbit/s").1, "");
}

#[test]
fn a_request_that_the_terminal_would_lower_is_warned_of() {
    // 1.25 · 2 Mbit/s: code 6, 2.56 Mbit/s. A source may have a quarter of 0.8 · 6.336 - 0.22 = 4.85 Mbit/s: code 4.
    let all = json("--rate 2Mbit/s");
    assert_eq!((&all["request_code"], &all["approved_bps"]), (&6.into(), &640_000.0.into()));
    let (_, err, _) = plan("--rate 2Mbit/s --first-timer 3s");
    assert_eq!(
        err,
        "warning: a terminal with the default agent approves 640 kbit/s (code 4) of the 2.56 Mbit/s; the table has all \
         of it approved\n"
    );
}

#[test]
fn packets_stand_beside_the_model() {
    let all = json("--frame large --release in-force --verify");
    for row in &all["strategies"].as_array().unwrap()[2..] {
        let model = row["max_e2ed_ms"]["median"].as_f64().unwrap();
        near(&row["packets_max_e2ed_ms"]["median"], model, 0.1 * model);
    }
}

#[test]
fn what_cannot_be_is_refused_with_field_found_and_allowed() {
    let cases = [
        (
            "--rate 0kbit/s",
            "error: `--rate` is `0kbit/s`: it is zero\n\nhint: write a rate above it, as in `2.5 Mbit/s`",
        ),
        (
            "--rate 2Gbit/s",
            "error: `--rate` is 2 Gbit/s; the Quick-Start option has no rate 1.25 times that\n\nhint: allowed is at most 1048 Mbit/s: its highest rate is 1310.72",
        ),
        (
            "--rate 6.2Mbit/s",
            "error: `--rate` is 6.2 Mbit/s; it must be above 0, and at most 6.16 Mbit/s: what the others leave of the \
             carrier\n\nhint: `fairpace plan quick-start --help` has the defaults",
        ),
        (
            "--packet-size 0B",
            "error: `--packet-size` is 0 B; it must be at least 1 B\n\nhint: `fairpace plan quick-start --help` has the \
             defaults",
        ),
        (
            "--allocation-delay 1",
            "error: `--allocation-delay` is 1 super-frames; a request needs 1 to the NCC and the TBTP 1 back \
             (`--propagation` 0.252 s, super-frame 0.820364 s): give at least 2\n\nhint: `fairpace plan quick-start \
             --help` has the defaults",
        ),
        (
            "--slots-per-super-frame 100",
            "error: `--slots-per-super-frame` is 100, not a whole number of times `--slots-per-multi-frame` (144); the \
             nearest that can be scheduled are 144 and 288\n\nhint: a multi-frame is whole frames of 6, a super-frame \
             whole multi-frames: give both",
        ),
        (
            "--granularity 7Mbit/s",
            "error: `--granularity` is 7 Mbit/s, more than the carrier's `--capacity` of 6.336 Mbit/s; give at most \
             that\n\nhint: `fairpace plan quick-start --help` has the defaults",
        ),
        (
            "--terminals 0",
            "error: `--terminals` is `0`: it must be at least 1\n\nhint: write a whole number from 1 to 10000000",
        ),
        (
            "--terminals 1 --verify",
            "error: `--terminals` is 1; with `--verify` packets need one to go to\n\nhint: give at least 2",
        ),
        (
            "--minimum 200",
            "error: `--minimum` is 200 units for each of 1 terminals on a carrier of 144 units; give at most 144",
        ),
    ];
    for (args, expected) in cases {
        let (out, err, code) = plan(args);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{args}: {err}");
        assert!(err.starts_with(expected), "{args}:\n{err}\nexpected\n{expected}");
    }
}
