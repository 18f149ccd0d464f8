//! TPBA's rate has one unit, bytes on the wire, in the simulator and over the kernel's sockets. `crates/fsocket/tests/c_program.rs` has the same
//! of the library for C, `python/tests/test_run.py` of Python's runs, `crates/sim/tests/rate_probing.rs` what is worked out by hand.

#![allow(clippy::disallowed_methods, reason = "the test waits until another run in real time is over")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod program;
    pub(crate) mod turn;
}

use common::program::{command, folder, text};
use common::turn::wait_for;
use std::path::Path;

const PRIVILEGE: i32 = 4;
/// The bottleneck, bit/s. A window of 16 segments fills it and its queue loses nothing, so that TCP measures the whole of it.
const RATE: f64 = 400e3;
/// Payload of 64 B in packets of 104 B over UDP, and in segments of 512 of 552 B over TCP.
const SCENARIO: &str = "\
duration = \"9 s\"
safety = \"paper\"
sample = \"1 s\"
ack_size = \"40 B\"
[path]
rate = \"400 kbit/s\"
rtt = \"20 ms\"
queue = { kind = \"drop-tail\", capacity = \"40 pkt\" }
[[flows]]
name = \"media\"
controller = \"tpba\"
parameters = { t_tcp = \"1 s\", epsilon = \"1 Gbit/s\", t_running = \"1 min\" }
packet_size = \"104 B\"
source = { kind = \"adus\", packets = 1 }
tcp = { max_window = 16, segment_size = \"552 B\" }
";

/// The rate that TCP has measured, and what then comes over UDP, bit/s; none where the system allows no namespaces.
fn measured(world: &str) -> Option<(f64, f64)> {
    let dir = folder("tpba-unit");
    let (file, out) = (dir.join("unit.toml"), dir.join(world));
    std::fs::write(&file, SCENARIO).unwrap();
    let [file, out_name] = [&file, &out].map(|path| path.to_str().unwrap());
    let args = ["run", file, "--world", world, "--quiet", "--force", "--out", out_name];
    let ran = wait_for(|| command(&args).output().unwrap());
    if ran.status.code() == Some(PRIVILEGE) {
        println!("skipped: {}", text(&ran.stderr));
        return None;
    }
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    Some(running(&out.join("series.csv")))
}

/// The last seconds, all over UDP: the rate in force, and the mean of what came.
fn running(series: &Path) -> (f64, f64) {
    let table = std::fs::read_to_string(series).unwrap();
    let head: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let place = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let [target, came, state] = ["target_rate_bps", "throughput_bps", "state"].map(place);
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let last = &rows[rows.len() - 4..];
    assert!(last.iter().all(|row| row[state] == "running"), "{table}");
    let number = |row: &Vec<&str>, at: usize| row[at].parse::<f64>().unwrap();
    let came = last.iter().map(|row| number(row, came)).sum::<f64>() / last.len() as f64;
    (number(&last[0], target), came)
}

/// Were TCP's stream taken for the wire, the rate would be 512 / 552 of it, 371 kbit/s; were UDP's payload paced by it, 650 kbit/s would be sent.
/// In real time a busy machine moves both by some percent.
#[test]
fn the_rate_of_tpba_is_on_the_wire_in_the_simulator_and_in_the_emulator() {
    let mut all = Vec::new();
    for world in ["sim", "emu"] {
        let Some((rate, came)) = measured(world) else { continue };
        println!("{world}: TCP measured {rate:.0} bit/s, UDP brings {came:.0}");
        assert!((0.95 * RATE..=1.02 * RATE).contains(&rate), "{world}: {rate}");
        assert!((came / rate - 1.0).abs() < 0.05, "{world}: {came} of {rate}");
        all.push(rate);
    }
    if let [simulated, emulated] = all[..] {
        assert!((emulated / simulated - 1.0).abs() < 0.05, "{emulated} emulated, {simulated} simulated");
    }
}
