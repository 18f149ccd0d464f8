use super::*;
use crate::tpba::trace::FlowRates;

/// 40 s. Flow 3 probes in 0 to 3 s, 13 to 16 s and 26 to 29 s, and runs at 550, 360 and 540 between.
fn trace() -> Trace {
    let line = |group: &str, at: &dyn Fn(usize) -> f64| FlowRates {
        group: group.to_owned(),
        kbps: (0..400).map(|row| at(row / PER_SECOND)).collect(),
    };
    let two = |s: usize| (COMES..GOES).contains(&s);
    let flow_3 = |s: usize| {
        if s < 16 {
            550.0
        } else if s < 29 {
            360.0
        } else {
            540.0
        }
    };
    let flow_2 = |s: usize| if two(s) { (1_100.0 - flow_3(s)) / 2.0 } else { 0.0 };
    let flow_1 = |s: usize| 1_100.0 - flow_3(s) - flow_2(s);
    let state = |s: usize| if s < 3 || (13..16).contains(&s) || (26..29).contains(&s) { "probing" } else { "running" };
    let states = (0..400).map(|row| state(row / PER_SECOND).to_owned()).collect();
    // A loss in the first running period takes 2 % off.
    let allowed = (0..400).map(|row| if (60..130).contains(&row) { 539.0 } else { flow_3(row / PER_SECOND) });
    Trace {
        flows: vec![line("flow 1", &flow_1), line("flow 2", &flow_2), line("flow 3", &flow_3)],
        states,
        allowed: allowed.collect(),
        ..Trace::default()
    }
}

#[test]
fn f_is_of_the_flows_that_are_there_before_between_and_after() {
    let f = run_stats(&trace());
    assert_eq!((f.f.len(), f.before, f.first), (40, Some(1.0), 3.0));
    // 550, 275, 275: 1,100^2 / (3 * 453,750)
    assert!((f.dip.unwrap() - 1_210_000.0 / 1_361_250.0).abs() < 1e-12, "{:?}", f.dip);
    // 360, 370, 370 from 16 s on.
    assert!(f.with_two.unwrap() > 0.999 && f.with_two.unwrap() < 1.0);
    // 540 and 560 from 29 s on.
    assert!((f.without_two.unwrap() - 1_210_000.0 / (2.0 * 605_200.0)).abs() < 1e-12);
}

#[test]
fn a_running_period_that_ends_lower_is_one_with_loss_and_the_next_starts_anew() {
    let f = run_stats(&trace());
    assert_eq!(f.cut.len(), 1);
    assert!((f.cut[0].0 - 539.0 / 550.0).abs() < 1e-12 && (f.cut[0].1 - 360.0 / 550.0).abs() < 1e-12);
    assert_eq!(f.after_cut.len(), 1);
}

#[test]
fn seconds_are_whole_ones() {
    assert_eq!((whole_seconds(31, 99), whole_seconds(30, 100), whole_seconds(31, 38)), (4..9, 3..10, 4..4));
}
