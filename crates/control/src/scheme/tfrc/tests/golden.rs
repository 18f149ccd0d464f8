//! Six runs as text that a person can read, one line per 200 ms or more; `FAIRPACE_BLESS=1` writes them anew.

use super::*;
use std::path::PathBuf;

/// Notes the state at each step.
fn line(out: &mut String, run: &mut Run, losses: &mut u64) {
    let status = run.flow.status();
    let lost = run.flow.counters().data.lost;
    writeln!(
        out,
        "{:8.2} {:9.2} {:9.2} {:9.6} {:8.2} {:5} {:<9} {}",
        run.now.as_secs_f64(),
        run.x(),
        status.rate.as_packets_per_second(SIZE),
        run.p(),
        run.tfrc().rtt().map_or(0.0, |r| r.as_secs_f64() * 1e3),
        lost - *losses,
        status.state,
        status.reason,
    )
    .expect("a string takes it");
    *losses = lost;
}

/// Until when, how far apart the lines, what there is to send, and what gets through.
type Phase = (f64, f64, App, fn(Packet) -> bool);

fn check(name: &str, about: &str, mut run: Run, phases: &[Phase]) {
    let mut out = format!(
        "# {about}\n# time s, X and the pace in packets/s, p, R in ms, packets lost since the last line, state, reason\n"
    );
    let mut losses = 0;
    line(&mut out, &mut run, &mut losses);
    for &(until, step, app, arrives) in phases {
        run.set_app(match app {
            App::Every(gap, _) => App::Every(gap, run.now),
            other => other,
        });
        while run.now < at(until) {
            run.run(at(until).min(run.now + Duration::from_secs_f64(step)), arrives);
            line(&mut out, &mut run, &mut losses);
        }
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("has a folder")).expect("a folder for golden files");
        std::fs::write(&path, &out).expect("a golden file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(out == wanted, "{} differs:\n{out}", path.display());
}

fn queued(pps: f64, queue: usize) -> Run {
    let mut run = Run::started(&[], RTT);
    run.bottleneck = Some((pps, queue));
    run
}

const ALL: fn(Packet) -> bool = |_| true;

#[test]
fn slow_start_first_loss_and_steady() {
    let about = "slow start into a bottleneck of 200 packets/s that holds 20, and what follows";
    check("tfrc-slow-start.txt", about, queued(200.0, 20), &[(4.0, 0.1, App::Bulk, ALL), (30.0, 2.0, App::Bulk, ALL)]);
}

#[test]
fn one_loss() {
    let about = "one packet lost, the 100th, on a path that is never full";
    let one: fn(Packet) -> bool = |p| p.seq != 100;
    check(
        "tfrc-one-loss.txt",
        about,
        Run::started(&[], RTT),
        &[(1.4, 0.1, App::Bulk, one), (20.0, 2.0, App::Bulk, one)],
    );
}

#[test]
fn blackout() {
    let about = "every 100th lost; from 10 s to 18 s everything";
    let hundredth: fn(Packet) -> bool = |p| p.seq % 100 != 99;
    let none: fn(Packet) -> bool = |_| false;
    let phases = [(10.0, 2.0, App::Bulk, hundredth), (18.0, 0.4, App::Bulk, none), (30.0, 1.0, App::Bulk, hundredth)];
    check("tfrc-blackout.txt", about, Run::started(&[], RTT), &phases);
}

#[test]
fn idle_and_application_limited() {
    let about = "every 200th lost; silence from 10 s to 14 s, 30 packets/s from 18 s to 24 s";
    let some: fn(Packet) -> bool = |p| p.seq % 200 != 199;
    let little = App::Every(Duration::from_micros(33_333), Instant::ZERO);
    let phases = [
        (10.0, 2.0, App::Bulk, some),
        (14.0, 0.4, App::Silent, some),
        (15.0, 0.1, App::Bulk, some),
        (18.0, 1.0, App::Bulk, some),
        (24.0, 0.5, little, some),
        (26.0, 0.2, App::Bulk, some),
    ];
    check("tfrc-idle.txt", about, Run::started(&[], RTT), &phases);
}

#[test]
fn minimum_rate() {
    let about = "nothing arrives at all, after 1 s of everything";
    let none: fn(Packet) -> bool = |_| false;
    let phases = [(1.0, 0.2, App::Bulk, ALL), (20.0, 1.0, App::Bulk, none), (600.0, 50.0, App::Bulk, none)];
    check("tfrc-min-rate.txt", about, Run::started(&[], RTT), &phases);
}

#[test]
fn without_an_rtt_and_measured_by_the_receiver() {
    let about = "the receiver measures; nothing known at the start; every 100th lost";
    let mut run = Run::new(&[("measured_by", "receiver")], RTT);
    run.flow.start(Instant::ZERO, None);
    let hundredth: fn(Packet) -> bool = |p| p.seq % 100 != 99;
    check("tfrc-receiver.txt", about, run, &[(2.0, 0.1, App::Bulk, hundredth), (20.0, 2.0, App::Bulk, hundredth)]);
}
