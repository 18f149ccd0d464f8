//! TFRC and TCP beside ns-2's, point by point within 10 %; some seeds here, `--example ns2_table` runs more.

#[path = "ns2/scenario.rs"]
#[allow(dead_code)] // the example uses the rest
mod scenario;

#[path = "ns2/dumbbell.rs"]
#[allow(dead_code)]
mod dumbbell;

/// Where a share is off by more than 10 %, TCP's by more than `tcp_tolerance`.
fn far_off(seeds: u64, tcp_tolerance: f64, expected: usize, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let rows = dumbbell::rows(wanted);
    assert_eq!(rows.len(), expected);
    let mut bad = Vec::new();
    for (name, dumbbell, row) in rows {
        let ours = dumbbell.mean(&dumbbell::ns2_tfrc(dumbbell.packet()), seeds);
        for (what, ours, column, tolerance) in
            [("TCP", ours.tcp, "tcp_norm", tcp_tolerance), ("TFRC", ours.media, "tfrc_norm", 0.1)]
        {
            let theirs = row.number(column);
            if (ours / theirs - 1.0).abs() > tolerance {
                bad.push(format!("{name}: {what} {ours:.3}, ns-2 {theirs:.3}"));
            }
        }
    }
    bad
}

fn is_beyond_25_percent(name: &str) -> bool {
    name.ends_with("30 %") || name.ends_with("35 %")
}

/// The standard error of the table's means is 2 % on average and 4 % at worst, of ours with eight seeds half of that.
#[test]
fn at_5_kbit_s_each_and_up_to_25_percent_error_tfrc_and_reno_get_what_they_get_in_ns2() {
    assert_eq!(far_off(8, 0.1, 18, |name| name.ends_with('%') && !is_beyond_25_percent(name)), [""; 0]);
}

/// TCP's share is small there and varies more: sixteen runs of ns-2 give 0.424 and 0.431 where three gave
/// the table's 0.403 and 0.444 (jitter, 512 B; 30 %). Ours: 0.471 and 0.411.
#[test]
fn beyond_25_percent_error_tfrc_gets_what_it_gets_in_ns2_and_reno_nearly() {
    assert_eq!(far_off(8, 0.2, 5, is_beyond_25_percent), [""; 0]);
}

/// One seed. Left out are flows in step (drop-tail without jitter: ns-2's own runs of one row vary from 0.60
/// to 1.12) and one flow of each kind (0.17 from seed to seed).
#[test]
fn at_15_mbit_s_without_errors_they_share_as_in_ns2() {
    let in_step = |name: &str| name.contains("DropTail") && (!name.contains("jitter") || name.contains("1+1"));
    assert_eq!(far_off(1, 0.1, 7, |name| name.starts_with("clean") && !in_step(name)), [""; 0]);
}
