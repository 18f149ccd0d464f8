//! Recordings: what they mean, by hand; what is refused, and in which words; the one we ship.

mod common;

use common::*;
use fairpace_path::{Gaps, Link, LinkSpec, Plain, RateModel, Trace};
use fairpace_units::{Class, Duration, Instant, Rate};
use proptest::prelude::*;

fn link(trace: Trace) -> Link<Plain> {
    Link::new(&LinkSpec { rate: RateModel::Trace(trace.into()), ..LinkSpec::default() }, 1, "link").unwrap()
}

fn mahimahi(text: &str) -> Link<Plain> {
    link(Trace::parse_mahimahi(text).unwrap())
}

fn of(size: u64, ids: std::ops::Range<u64>) -> impl Iterator<Item = (Instant, Plain)> {
    ids.map(move |id| (ms(0.0), packet(id, Class::Normal, size)))
}

#[test]
fn an_opportunity_carries_several_small_packets() {
    // 1,500 bytes at 5 ms: 500 + 500 + 500; the fourth waits for the next.
    assert_eq!(run(&mut mahimahi("5\n9\n"), of(500, 0..4)), [(ms(5.0), 0), (ms(5.0), 1), (ms(5.0), 2), (ms(9.0), 3)]);
}

#[test]
fn a_large_packet_carries_over_and_the_rest_of_its_last_opportunity_serves_the_next() {
    // 2,000 bytes: all of 5 ms and 500 bytes of 9 ms, which has 1,000 left for the second one.
    let arrivals = [2_000, 1_000, 1].into_iter().zip(0..).map(|(size, id)| (ms(0.0), packet(id, Class::Normal, size)));
    assert_eq!(run(&mut mahimahi("5\n9\n12\n"), arrivals), [(ms(9.0), 0), (ms(9.0), 1), (ms(12.0), 2)]);
}

#[test]
fn several_lines_of_one_millisecond_are_several_opportunities() {
    assert_eq!(
        run(&mut mahimahi("5\n5\n5\n"), of(1_500, 0..4)),
        [(ms(5.0), 0), (ms(5.0), 1), (ms(5.0), 2), (ms(10.0), 3)]
    );
}

#[test]
fn the_recording_begins_again_where_it_ended() {
    // Opportunities at 0, 3, 7 | 7, 10, 14 | 14, …: the one at 0 of each round falls on the last
    // of the round before. The very first is over before the packets arrive.
    let out: Vec<f64> =
        run(&mut mahimahi("0\n3\n7\n"), of(1_500, 0..7)).iter().map(|o| o.0.as_secs_f64() * 1e3).collect();
    assert_eq!(out, [3.0, 7.0, 7.0, 10.0, 14.0, 14.0, 17.0]);
}

#[test]
fn an_opportunity_that_nobody_waits_for_is_lost_with_what_it_has_left() {
    let arrivals = [
        (ms(0.0), packet(0, Class::Normal, 100)), // leaves at 5 ms; 1,400 bytes are lost
        (ms(5.0), packet(1, Class::Normal, 100)), // arrives as that opportunity passes: too late
        (ms(1_000.5), packet(2, Class::Normal, 100)), // long after: rounds of 8 ms, next 1,005 ms
    ];
    assert_eq!(run(&mut mahimahi("5\n8\n"), arrivals), [(ms(5.0), 0), (ms(8.0), 1), (ms(1_005.0), 2)]);
}

#[test]
fn the_capacity_of_opportunities_is_their_number_times_12000_bits() {
    let link = mahimahi("0\n3\n7\n");
    // (0, 7]: 3 and 7, and the next round's 0; (7, 700]: 99 rounds of three.
    assert_eq!(link.capacity_between(ms(0.0), ms(7.0)), Some(3.0 * 12_000.0));
    assert_eq!(link.capacity_between(ms(7.0), ms(700.0)), Some(99.0 * 3.0 * 12_000.0));
    // 3 × 12,000 bits each 7 ms = 5.14 Mbit/s; a second holds 142 or 143 rounds.
    let around = link.capacity_at(ms(50_000.0)).as_bps();
    assert!((around - 36_000.0 / 0.007).abs() < 36_000.0, "{around}");
}

#[test]
fn a_csv_rate_holds_until_the_next_sample_and_repeats() {
    // 8 Mbit/s for 10 ms, 4 Mbit/s for 10 ms, again and again: 1,000 bytes take 1 or 2 ms.
    let mut link = link(Trace::parse_csv("time_ms,mbps\n0,8\n10,4\n", "mbps", Gaps::Hold).unwrap());
    let out = run(&mut link, of(1_000, 0..31));
    let at = |id: usize| out[id].0;
    assert_eq!((at(9), at(10), at(14), at(15)), (ms(10.0), ms(12.0), ms(20.0), ms(21.0)));
    assert_eq!((at(29), at(30)), (ms(40.0), ms(41.0)));
    assert_eq!(link.capacity_at(ms(35.0)), Rate::mbps(4.0));
    assert_eq!(link.capacity_between(ms(5.0), ms(45.0)), Some(40e3 + 40e3 + 80e3 + 40e3 + 40e3));
}

#[test]
fn gaps_hold_the_last_rate_or_are_silent_or_are_cut_out() {
    // One sample per second, but none at 2 and 3 s.
    let text = "time,down_mbps\n10,8\n11,4\n14,2\n15,1\n";
    let rates = |gaps| {
        let trace = Trace::parse_csv(text, "down_mbps", gaps).unwrap();
        let length = trace.duration().as_secs_f64();
        let link = link(trace);
        let rates: Vec<f64> = (0..6).map(|s| link.capacity_at(ms(1e3 * f64::from(s))).as_bps() / 1e6).collect();
        (length, rates)
    };
    assert_eq!(rates(Gaps::Hold), (6.0, vec![8.0, 4.0, 4.0, 4.0, 2.0, 1.0]));
    assert_eq!(rates(Gaps::Zero), (6.0, vec![8.0, 4.0, 0.0, 0.0, 2.0, 1.0]));
    assert_eq!(rates(Gaps::Cut), (4.0, vec![8.0, 4.0, 2.0, 1.0, 8.0, 4.0]));
}

#[test]
fn units_are_in_the_column_names_and_a_table_without_names_counts_its_columns() {
    let at_zero =
        |text: &str, column: &str| link(Trace::parse_csv(text, column, Gaps::Hold).unwrap()).capacity_at(Instant::ZERO);
    assert_eq!(at_zero("t_ms,x_kbps\n0,500\n1,1\n", "x_kbps"), Rate::kbps(500.0));
    assert_eq!(at_zero("t,x_bps\n0,64000\n1,1\n", "x_bps"), Rate::kbps(64.0));
    assert_eq!(at_zero("0,7,9\n1,7,9\n", "3"), Rate::mbps(9.0));
}

#[test]
fn a_crawling_trace_is_not_walked_step_by_step() {
    // 1/1024 bit/s (the least there is) for 1 ms of each 1.001 s, since the median distance of the
    // samples is 1 ms: 8,000 bits take 8,192,000,000 rounds, which is 260 years.
    let text = "t_ms,r_bps\n0,0.001\n1,0\n999,0\n1000,0\n";
    let mut link = link(Trace::parse_csv(text, "r_bps", Gaps::Hold).unwrap());
    let out = run(&mut link, of(1_000, 0..1));
    assert_eq!(out[0].0, Instant::ZERO + Duration::from_millis(1_001 * 8_191_999_999 + 1));
    assert_eq!(link.capacity_between(Instant::ZERO, out[0].0), Some(8_000.0));
}

#[test]
fn line_ends_byte_order_marks_comments_and_a_missing_last_newline_do_not_matter() {
    let plain = Trace::parse_csv("time_s,mbps\n0,1\n1,2\n", "mbps", Gaps::Hold).unwrap();
    for same in [
        "\u{feff}time_s,mbps\r\n0,1\r\n1,2\r\n",
        "time_s,mbps\n0,1\n1,2",
        "# from a car\n time_s , mbps \n0, 1\n\n1,2,extra\n\n",
        "time_s,mbps\n7,1\n8,9\n8.0,2\n", // begins at 7 s; the second sample of 8 s counts
    ] {
        assert_eq!(Trace::parse_csv(same, "mbps", Gaps::Hold).as_ref(), Ok(&plain), "{same:?}");
    }
    let plain = Trace::parse_mahimahi("1\n2\n").unwrap();
    assert_eq!(Trace::parse_mahimahi("\u{feff}1\r\n2").as_ref(), Ok(&plain));
}

const MAHIMAHI: &str = "; a mahimahi trace has one delivery opportunity per line, its time in whole milliseconds \
                        (0 to 4294967295), none earlier than the one before, the last after 0";

#[test]
fn bad_mahimahi_traces_are_refused_with_line_finding_and_what_is_allowed() {
    for (text, problem) in [
        ("", "the trace is empty"),
        ("0\n0\n", "the trace lasts 0 ms"),
        ("1\n\n2\n", "line 2: the line is empty"),
        ("1\n-2\n", "line 2: `-2` is not a whole number"),
        ("1\n+2\n", "line 2: `+2` is not a whole number"),
        ("1.5\n", "line 1: `1.5` is not a whole number"),
        ("NaN\n", "line 1: `NaN` is not a whole number"),
        ("٣\n", "line 1: `٣` is not a whole number"),
        ("1 2\n", "line 1: `1 2` is not a whole number"),
        ("5\n7\n6\n", "line 3: `6` is earlier than the `7` before it"),
        ("4294967296\n", "line 1: `4294967296` is too large"),
        ("99999999999999999999999999\n", "line 1: `99999999999999999999999999` is too large"),
        ("time_s,mbps\n0,1\n", "line 1: `time_s,mbps` is not a whole number"),
        ("\u{0}\u{1}\n", "line 1: `\\0\\u{1}` is not a whole number"),
    ] {
        let error = Trace::parse_mahimahi(text).unwrap_err().to_string();
        assert_eq!(error, format!("{problem}{MAHIMAHI}"), "{text:?}");
    }
    let long = Trace::parse_mahimahi(&"x".repeat(1_000_000)).unwrap_err().to_string();
    assert!(long.contains(&format!("line 1: `{}…`", "x".repeat(40))) && long.len() < 400);
}

#[test]
fn bad_tables_are_refused_with_line_finding_and_what_is_allowed() {
    let head = "time_s,mbps\n";
    let time = "; a time is a number of seconds (or of milliseconds, if the column's name ends in `_ms`) from 0 to 1e9, \
                none earlier than the one before";
    let rate = "; a rate is a number of Mbit/s (or of kbit/s or bit/s, if the column's name ends in `_kbps` or `_bps`) \
                from 0 to 1 Pbit/s";
    let table = "; a CSV trace has a header line, then at least two lines with different times; the first column is the \
                 time";
    for (rows, problem, allowed) in [
        ("", "there are fewer than two samples", table),
        ("0,1\n", "there are fewer than two samples", table),
        ("0,1\n0,2\n", "there are fewer than two samples", table),
        ("0,0\n1,0\n", "every rate is zero", table),
        ("0,1\n1,-2\n", "line 3: the rate `-2` is negative", rate),
        ("0,1\n-1,2\n", "line 3: the time `-1` is negative", time),
        ("0,1\n1,NaN\n", "line 3: the rate `NaN` is not a finite number", rate),
        ("0,1\ninf,1\n", "line 3: the time `inf` is not a finite number", time),
        ("0,1\n1,1e400\n", "line 3: the rate `1e400` is not a finite number", rate),
        ("0,1\n1,1e10\n", "line 3: the rate `1e10` is too large", rate),
        ("0,1\n1e10,1\n", "line 3: the time `1e10` is too large", time),
        ("0,1\n1,\n", "line 3: the rate is missing", rate),
        ("0,1\n1\n", "line 3: the rate is missing", rate),
        ("0,1\n,2\n", "line 3: the time is missing", time),
        ("0,1\n1,fast\n", "line 3: the rate `fast` is not a finite number", rate),
        ("0,1\n1,٣\n", "line 3: the rate `٣` is not a finite number", rate),
        ("0;1\n1;2\n", "line 2: the time `0;1` is not a finite number", time),
        ("5,1\n7,2\n6,3\n", "line 4: the time `6` is earlier than the `7` before it", time),
        ("5,1\n4,2\n", "line 3: the time `4` is earlier than the `5` before it", time),
    ] {
        let error = Trace::parse_csv(&format!("{head}{rows}"), "mbps", Gaps::Hold).unwrap_err();
        assert_eq!(error.to_string(), format!("{problem}{allowed}"), "{rows:?}");
    }
    let error = |text, column| Trace::parse_csv(text, column, Gaps::Hold).unwrap_err().to_string();
    assert_eq!(error("", "mbps"), format!("the trace is empty{table}"));
    assert_eq!(
        error("time_s,down,up\n0,1,2\n", "dwon"),
        "line 1: there is no rate column `dwon`; the rates are in `down`, `up`"
    );
    assert_eq!(
        error("time_s,down,up\n0,1,2\n", "time_s"),
        "line 1: there is no rate column `time_s`; the rates are in `down`, `up`"
    );
    assert_eq!(error("just text", "x"), format!("line 1: there is no rate column `x`{table}"));
}

fn shipped(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../scenarios/traces/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_starlink_recording_loads_and_its_gaps_are_found() {
    let text = shipped("starlink-autobahn-2024.csv");
    let cut = Trace::parse_csv(&text, "down_mbps", Gaps::Cut).unwrap();
    let held = Trace::parse_csv(&text, "down_mbps", Gaps::Hold).unwrap();
    let silent = Trace::parse_csv(&text, "down_mbps", Gaps::Zero).unwrap();
    // From 0 to 8,459 s and a last sample of 1 s.
    assert_eq!(held.duration(), Duration::from_secs(8_460));
    assert_eq!(silent.duration(), held.duration());
    // 4,861 samples of about a second each once the gaps are cut out.
    assert!((4_800.0..=4_861.0).contains(&cut.duration().as_secs_f64()), "{cut:?}");
    // Where it measured, it carries the same: silence only stretches it.
    let bits = |t: &Trace| t.mean_rate().as_bps() * t.duration().as_secs_f64();
    assert!((bits(&cut) / bits(&silent) - 1.0).abs() < 0.01, "{cut:?} {silent:?}");
    assert!(bits(&held) > 1.1 * bits(&silent));
    // Plain mean of the 4,861 values of the column.
    let values: Vec<f64> = text.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((cut.mean_rate().as_bps() / 1e6 / mean - 1.0).abs() < 0.01, "{cut:?} against {mean}");
    assert!(Trace::parse_csv(&text, "up_mbps", Gaps::Zero).is_ok());
}

#[test]
fn the_made_up_mahimahi_trace_loads() {
    let trace = Trace::parse_mahimahi(&shipped("staircase.mahimahi")).unwrap();
    assert_eq!(trace.duration(), Duration::from_secs(4));
    // 1, 4, 2 and 8 opportunities each 12 ms, about 84 times each: 3.75 Mbit/s.
    assert!((trace.mean_rate().as_bps() - 3.75e6).abs() < 0.05e6, "{trace:?}");
}

/// Text that a reader might take for numbers.
fn nearly_a_trace() -> impl Strategy<Value = String> {
    let cell = prop_oneof![
        4 => (0..20_u32).prop_map(|n| n.to_string()),
        1 => any::<f64>().prop_map(|x| format!("{x:e}")),
        1 => any::<u64>().prop_map(|n| n.to_string()),
        1 => Just(String::new()),
        1 => "[-+.eE0-9a-z#\r\u{feff}٣]{0,6}",
    ];
    let row = prop::collection::vec(cell, 1..4).prop_map(|cells| cells.join(","));
    prop::collection::vec(row, 0..12).prop_map(|rows| rows.join("\n"))
}

proptest! {
    #[test]
    fn whatever_the_text_it_is_refused_in_a_short_message_or_it_can_be_driven(
        text in prop_oneof![nearly_a_trace(), any::<String>()],
        column in prop_oneof![Just("2"), Just("3"), Just("mbps")],
        gaps in prop_oneof![Just(Gaps::Hold), Just(Gaps::Zero), Just(Gaps::Cut)],
    ) {
        for result in [Trace::parse_mahimahi(&text), Trace::parse_csv(&text, column, gaps)] {
            match result {
                Err(error) => prop_assert!(error.to_string().len() < 600, "{}", error),
                Ok(trace) => {
                    prop_assert!(trace.duration() > Duration::ZERO && trace.mean_rate() >= Rate::ZERO);
                    let mut link = link(trace);
                    for (id, at) in [0.0, 0.1, 5e3, 1e12].into_iter().enumerate() {
                        link.push(ms(at), packet(id as u64, Class::Normal, 4_000));
                        prop_assert!(link.capacity_at(ms(at)) <= Rate::MAX);
                    }
                    prop_assert!(link.next() >= ms(1e12));
                }
            }
        }
    }
}
