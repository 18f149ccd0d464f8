//! TFRC and TCP, AIMD and TCP beside ns-2's, point by point within 10 %; some seeds here, `--example ns2_table` runs more.

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

/// TCP's share is small there and varies more, in ns-2 by 0.037 to 0.044 from seed to seed: 0.428 and 0.407 there (jitter,
/// 512 B; 30 %). Ours: 0.471 and 0.411.
#[test]
fn beyond_25_percent_error_tfrc_gets_what_it_gets_in_ns2_and_reno_nearly() {
    assert_eq!(far_off(8, 0.2, 5, is_beyond_25_percent), [""; 0]);
}

/// One seed; sixteen for one flow of each kind, which differs by 0.17 from seed to seed. Left out are flows in step (drop-tail without jitter:
/// ns-2's own runs of one row vary from 0.60 to 1.12).
#[test]
fn at_15_mbit_s_without_errors_they_share_as_in_ns2() {
    let in_step = |name: &str| name.contains("DropTail") && (!name.contains("jitter") || name.contains("1+1"));
    let of_each = |name: &str| name.contains("1+1");
    let wanted = |name: &str| name.starts_with("clean") && !in_step(name);
    assert_eq!(far_off(1, 0.1, 6, |name| wanted(name) && !of_each(name)), [""; 0]);
    assert_eq!(far_off(16, 0.1, 1, |name| wanted(name) && of_each(name)), [""; 0]);
}

/// AIMD / TCP over RED, ours / ns-2's, where the rows have no more than 10 Mbit/s and several flows.
fn aimd_ratios(
    wanted: impl Fn(&str) -> bool,
    outcome: impl Fn(&dumbbell::Dumbbell, &fairpace_sim::ControllerSpec, &scenario::Row) -> dumbbell::Shares,
) -> Vec<(String, f64)> {
    let rows = dumbbell::aimd_rows().into_iter().filter(|(name, ..)| wanted(name));
    rows.map(|(name, dumbbell, aimd, row)| {
        let ours = outcome(&dumbbell, &aimd, &row);
        (name, ours.media / ours.tcp / row.number("ratio_aimd_over_tcp"))
    })
    .collect()
}

/// Four seeds. ns-2's AIMD is TCP with other constants: beside SACK, which hardly times out, that makes no difference.
#[test]
fn over_red_aimd_gets_beside_tcp_with_sack_what_it_gets_in_ns2() {
    let ratios = aimd_ratios(|name| name.contains("Sack1 1Mbps"), |dumbbell, aimd, _| dumbbell.mean(aimd, 4));
    assert_eq!(ratios.len(), 2);
    for (name, ratio) in ratios {
        assert!((0.9..=1.1).contains(&ratio), "{name}: {ratio:.3}");
    }
}

/// Two seeds. Beside Reno ns-2's AIMD is a Reno itself, and every tenth of its cuts is a timeout; ours has none. TCP(alpha, beta)
/// with its retransmissions gets what it gets in ns-2, so the difference is those timeouts.
#[test]
fn over_red_tcp_with_aimds_constants_gets_beside_reno_what_it_gets_in_ns2_and_aimd_more() {
    let wanted = |name: &str| name.contains("Reno 20Mbps");
    let [(_, tcp)] = &aimd_ratios(wanted, |dumbbell, _, row| dumbbell.mean_of_tcp(row, 2))[..] else { panic!("a row") };
    let [(_, aimd)] = &aimd_ratios(wanted, |dumbbell, aimd, _| dumbbell.mean(aimd, 2))[..] else { panic!("a row") };
    assert!((0.9..=1.1).contains(tcp), "TCP(0.2, 0.875): {tcp:.3}");
    assert!((1.05..=1.25).contains(aimd), "AIMD(0.2, 0.875): {aimd:.3}");
}
