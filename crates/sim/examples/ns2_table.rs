//! Every row of the ns-2 tables beside ours: `cargo run --release -p fairpace-sim --example ns2_table`.
//! An argument keeps the rows whose first columns contain it, e.g. `Newreno`; a second one is the number of seeds for
//! AIMD's rows.

// The reader serves two programs; each uses a part of it.
#[allow(dead_code)]
#[path = "../tests/ns2/scenario.rs"]
mod scenario;

#[path = "../tests/ns2/dumbbell.rs"]
mod dumbbell;

use fairpace_units::Duration;
use scenario::{
    Channel, MIXED, MIXED_JITTER, Outcome, Peer, RAP_SATELLITE, RENO_BASELINE, Row, TCP_SATELLITE, channel_outcome,
    column, mean, mixed, outcome, satellite, table,
};

const SECONDS: u64 = 450;
/// More than the table's three, so that the noise that remains is the table's.
const CHANNEL_SEEDS: u64 = 16;
/// As above.
const DUMBBELL_SEEDS: u64 = 16;

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    channel_table(&only);
    dumbbell_table(&only);
    aimd_table(&only, std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(DUMBBELL_SEEDS));
    println!("Delivered packets/s per flow, mean over seeds; the ratio is ours / ns-2.\n");
    println!(
        "{:<34} {:>8} {:>8} {:>6}   {:>8} {:>8} {:>6}   {:>5} {:>5}   {:>8} {:>8}",
        "satellite", "ours", "ns-2", "ratio", "0-200 s", "ns-2", "ratio", "jain", "ns-2", "q.drop", "ns-2"
    );
    let mut worst = 1.0_f64;
    for row in table(RAP_SATELLITE).iter().chain(&table(TCP_SATELLITE)) {
        let label = format!(
            "{:<8}{:<5}P={:<7}RTT={:<5}K={}",
            row.text("protocol"),
            if row.number("fine_grain") > 0.0 { "fine" } else { "" },
            row.text("p_loss"),
            row.text("rtt_s"),
            row.text("k_pkts")
        );
        if !label.contains(&only) {
            continue;
        }
        let peer = Peer::of(row.text("protocol"), row.number("fine_grain") > 0.0, Duration::ZERO);
        let rtt = Duration::from_secs_f64(row.number("rtt_s"));
        let outcomes: Vec<Outcome> = seeds(row)
            .map(|seed| outcome(satellite(peer, row.number("p_loss"), rtt, row.number("k_pkts") as u64, seed, SECONDS)))
            .collect();
        let (ours, theirs) = (mean(&outcomes, |o| o.pps["all"]), row.number("perflow_pps"));
        let (early, their_early) = (mean(&outcomes, |o| o.pps_0_200), row.number("perflow_pps_0_200s"));
        worst = if (ours / theirs - 1.0).abs() > (worst - 1.0).abs() { ours / theirs } else { worst };
        println!(
            "{label:<34} {ours:>8.1} {theirs:>8.1} {:>6.3}   {early:>8.1} {their_early:>8.1} {:>6.3}   {:>5.3} {:>5.3}   {:>8.5} {:>8.5}",
            ours / theirs,
            early / their_early,
            mean(&outcomes, |o| o.jain),
            row.number("jain"),
            mean(&outcomes, |o| o.queue_drop_frac),
            row.number("queue_drop_frac"),
        );
    }
    println!("worst ratio on the satellite: {worst:.3}\n");
    for (name, csv, jitter) in [("mixed", MIXED, 0), ("mixed, jitter", MIXED_JITTER, 770)] {
        println!(
            "{name:<34} {:>8} {:>8} {:>6}   {:>8} {:>8} {:>6}   {:>5} {:>5}   {:>8} {:>8}",
            "x ours", "ns-2", "ratio", "y ours", "ns-2", "ratio", "jain", "ns-2", "q.drop", "ns-2"
        );
        for row in &table(csv) {
            let label = format!(
                "{:<5}| {:<8}P={:<7}K={}",
                row.text("x_protocol"),
                row.text("y_protocol"),
                row.text("p_loss_x"),
                row.text("k_pkts")
            );
            if !label.contains(&only) {
                continue;
            }
            let jitter = Duration::from_micros(jitter);
            let [x, y] = ["x_protocol", "y_protocol"].map(|c| Peer::of(row.text(c), false, jitter));
            let rtt = ["rtt_x_s", "rtt_y_s"].map(|c| Duration::from_secs_f64(row.number(c)));
            let outcomes: Vec<Outcome> = seeds(row)
                .map(|seed| {
                    outcome(mixed(x, y, row.number("p_loss_x"), row.number("k_pkts") as u64, rtt, seed, SECONDS))
                })
                .collect();
            let (x, their_x) = (mean(&outcomes, |o| o.pps["x"]), row.number("x_perflow_pps"));
            let (y, their_y) = (mean(&outcomes, |o| o.pps["y"]), row.number("y_perflow_pps"));
            println!(
                "{label:<34} {x:>8.1} {their_x:>8.1} {:>6.3}   {y:>8.1} {their_y:>8.1} {:>6.3}   {:>5.3} {:>5.3}   {:>8.5} {:>8.5}",
                x / their_x,
                y / their_y,
                mean(&outcomes, |o| o.jain),
                row.number("jain_all_flows"),
                mean(&outcomes, |o| o.queue_drop_frac),
                row.number("queue_drop_frac"),
            );
        }
        println!();
    }
}

/// The single channel: rate, and everything that the throughput models are fed with. 20,000 s each.
fn channel_table(only: &str) {
    println!("Ratios are ours / ns-2, {CHANNEL_SEEDS} seeds of ours; `to` is timeout sequences / loss indications.\n");
    println!(
        "{:<40} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7}",
        "one Reno, one channel",
        "bit/s",
        "ns-2",
        "sent",
        "good",
        "p_ind",
        "p_cuts",
        "rtt",
        "rto",
        "cwnd",
        "to",
        "ns-2",
        "q.drop",
        "ns-2"
    );
    let mut far = Vec::new();
    for row in &table(RENO_BASELINE) {
        let label = format!(
            "Reno {:<7}{:<5}B {:<6}bit/s {:<5}s e={}",
            row.text("error_position"),
            row.text("packet_B"),
            row.text("bandwidth_bps"),
            row.text("delay_s"),
            row.text("error")
        );
        if !label.contains(only) {
            continue;
        }
        let runs: Vec<Channel> = (1..=CHANNEL_SEEDS).map(|seed| channel_outcome(row, seed, 20_000)).collect();
        let ratio = |name: &str| column(&runs, name) / row.number(name);
        let sent = ratio("sent_bps");
        print!("{label:<40} {:>7.0} {:>7.0} {sent:>6.3}", column(&runs, "sent_bps"), row.number("sent_bps"));
        for name in ["goodput_bps", "p_ind", "p_cuts", "rtt_s", "rto_s", "cwnd_pkts"] {
            print!(" {:>6.3}", ratio(name));
        }
        print!(" {:>6.3} {:>6.3}", column(&runs, "timeout_frac"), row.number("timeout_frac"));
        println!(" {:>7.5} {:>7.5}", column(&runs, "queue_drop_frac"), row.number("queue_drop_frac"));
        if (sent - 1.0).abs() > 0.1 {
            far.push((sent, label));
        }
    }
    println!("rows more than 10 % off in `sent`: {}", far.len());
    for (sent, label) in far {
        println!("  {label} {sent:.3}");
    }
}

fn seeds(row: &Row) -> impl Iterator<Item = u64> {
    1..=row.number("seeds") as u64
}

/// TFRC beside TCP, then other schemes in TFRC's place.
fn dumbbell_table(only: &str) {
    println!("As many TFRC as TCP: mean share of the fair one, {DUMBBELL_SEEDS} seeds; the ratio is ours / ns-2.\n");
    println!(
        "{:<34} {:>6} {:>6} {:>6}   {:>6} {:>6} {:>6}   {:>7} {:>7}",
        "dumbbell", "TCP", "ns-2", "ratio", "TFRC", "ns-2", "ratio", "q.drop", "ns-2"
    );
    let rows = dumbbell::rows(|name| name.contains(only));
    for (name, dumbbell, row) in &rows {
        let ours = dumbbell.mean(&dumbbell::ns2_tfrc(dumbbell.packet()), DUMBBELL_SEEDS);
        let (tcp, tfrc) = (row.number("tcp_norm"), row.number("tfrc_norm"));
        println!(
            "{name:<34} {:>6.3} {tcp:>6.3} {:>6.3}   {:>6.3} {tfrc:>6.3} {:>6.3}   {:>7.4} {:>7.4}",
            ours.tcp,
            ours.tcp / tcp,
            ours.media,
            ours.media / tfrc,
            ours.queue_drop_frac,
            row.number("queue_drop_frac"),
        );
    }
    let schemes = ["tfrc", "srp", "crp", "mrp"];
    println!("\nThe same with other schemes, as they are by default: theirs / TCP's.\n");
    println!("{:<34} {}", "dumbbell", schemes.map(|s| format!("{s:>15}")).concat());
    for (name, dumbbell, _) in &rows {
        print!("{name:<34} ");
        for scheme in schemes {
            let shares = dumbbell.mean(&dumbbell::scheme(scheme, dumbbell.packet()), 3);
            print!("  {:>5.3} / {:>5.3}", shares.media, shares.tcp);
        }
        println!();
    }
    println!();
}

/// AIMD(alpha, beta) beside TCP; then ns-2's own scheme, TCP(alpha, beta) with its retransmissions, in AIMD's place;
/// then both with drop-tail queues, of which there is no table.
fn aimd_table(only: &str, seeds: u64) {
    println!("As many AIMD(alpha, beta) as TCP: mean share of the fair one, {seeds} seeds; ratios are ours / ns-2.\n");
    println!(
        "{:<40} {:>5} {:>5} {:>5} {:>5}   {:>8} {:>5} {:>5} {:>5}   {:>8} {:>5}   {:>6} {:>6}   {:>9} {:>8}",
        "AIMD",
        "TCP",
        "ns-2",
        "AIMD",
        "ns-2",
        "AIMD/TCP",
        "ns-2",
        "std",
        "ratio",
        "TCP(a,b)",
        "ratio",
        "q.drop",
        "ns-2",
        "drop-tail",
        "TCP(a,b)"
    );
    for (name, dumbbell, aimd, row) in dumbbell::aimd_rows() {
        if !name.contains(only) {
            continue;
        }
        let ours = dumbbell.mean(&aimd, seeds);
        let theirs = row.number("ratio_aimd_over_tcp");
        let ratio = ours.media / ours.tcp;
        print!("{name:<40} {:>5.3} {:>5.3} {:>5.3}", ours.tcp, row.number("tcp_norm"), ours.media);
        print!(" {:>5.3}   {ratio:>8.3} {theirs:>5.3}", row.number("aimd_norm"));
        print!(" {:>5.3} {:>5.3}", row.number("ratio_aimd_over_tcp_std"), ratio / theirs);
        let tcp = dumbbell.mean_of_tcp(&row, seeds);
        print!("   {:>8.3} {:>5.3}", tcp.media / tcp.tcp, tcp.media / tcp.tcp / theirs);
        print!("   {:>6.4} {:>6.4}", ours.queue_drop_frac, row.number("queue_drop_frac"));
        let dumbbell = dumbbell.drop_tail();
        let (drop_tail, tcp) = (dumbbell.mean(&aimd, seeds), dumbbell.mean_of_tcp(&row, seeds));
        println!("   {:>9.3} {:>8.3}", drop_tail.media / drop_tail.tcp, tcp.media / tcp.tcp);
    }
    println!();
}
