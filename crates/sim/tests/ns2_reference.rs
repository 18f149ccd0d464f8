//! RAP and TCP beside ns-2: delivered packets/s per flow within 10 % at each point of the satellite,
//! one seed here; `--example ns2_table` runs every row with all seeds.

#[path = "ns2/scenario.rs"]
#[allow(dead_code)] // the example uses the rest
mod scenario;

use fairpace_units::Duration;
use scenario::{MIXED_JITTER, Peer, RAP_SATELLITE, TCP_SATELLITE, mixed, outcome, satellite, table};

/// Where `protocol` is off by more than 10 %. Noise: the tables' standard deviations are 1 to 3 % of
/// the mean, 6 % for TCP at P <= 1e-4.
fn far_off(csv: &str, protocol: &str, fine_grain: bool) -> Vec<String> {
    let mut bad = Vec::new();
    let mut rows = 0;
    for row in table(csv) {
        // The buffer sweep at P = 1e-3 repeats one point: the link is never full there.
        let wanted = row.text("protocol") == protocol && (row.number("fine_grain") > 0.0) == fine_grain;
        if !wanted || row.text("sweep") == "K" {
            continue;
        }
        rows += 1;
        let rtt = Duration::from_secs_f64(row.number("rtt_s"));
        let peer = Peer::of(protocol, fine_grain, Duration::ZERO);
        let o = outcome(satellite(peer, row.number("p_loss"), rtt, row.number("k_pkts") as u64, 1, 450));
        for (what, ours, theirs) in [
            ("50-450 s", o.pps["all"], row.number("perflow_pps")),
            ("0-200 s", o.pps_0_200, row.number("perflow_pps_0_200s")),
        ] {
            if !(0.9..=1.1).contains(&(ours / theirs)) {
                let at = (row.text("p_loss"), row.text("rtt_s"), row.text("k_pkts"));
                bad.push(format!("{protocol} {what} at {at:?}: {ours:.1}, ns-2 {theirs:.1}"));
            }
        }
    }
    assert!(rows >= 3, "the table has {protocol}");
    bad
}

#[test]
fn rap_gets_what_ns2s_rap_gets() {
    assert_eq!(far_off(RAP_SATELLITE, "RAP", false), [""; 0]);
}

#[test]
fn rap_with_fine_grain_gets_what_ns2s_gets() {
    assert_eq!(far_off(RAP_SATELLITE, "RAP", true), [""; 0]);
}

#[test]
fn reno_gets_what_ns2s_reno_gets() {
    assert_eq!(far_off(TCP_SATELLITE, "Reno", false), [""; 0]);
}

#[test]
fn newreno_gets_what_ns2s_newreno_gets() {
    assert_eq!(far_off(TCP_SATELLITE, "Newreno", false), [""; 0]);
}

#[test]
fn sack_gets_what_ns2s_sack1_gets() {
    assert_eq!(far_off(TCP_SATELLITE, "Sack1", false), [""; 0]);
}

/// RAP over long lossy links against TCP over short clean ones, with send jitter: both shares. One
/// seed against a mean of three whose standard deviation is up to 12 % of X's share.
#[test]
fn rap_against_tcp_of_a_fifth_of_its_rtt_shares_as_in_ns2() {
    for row in table(MIXED_JITTER) {
        let jitter = Duration::from_micros(770);
        let [x, y] = ["x_protocol", "y_protocol"].map(|c| Peer::of(row.text(c), false, jitter));
        let rtt = ["rtt_x_s", "rtt_y_s"].map(|c| Duration::from_secs_f64(row.number(c)));
        let o = outcome(mixed(x, y, row.number("p_loss_x"), row.number("k_pkts") as u64, rtt, 1, 450));
        for (group, column, tolerance) in [("x", "x_perflow_pps", 0.2), ("y", "y_perflow_pps", 0.05)] {
            let ratio = o.pps[group] / row.number(column);
            assert!((ratio - 1.0).abs() < tolerance, "{group} at P = {}: {ratio:.3}", row.text("p_loss_x"));
        }
    }
}
