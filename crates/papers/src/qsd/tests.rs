use super::phases::{ALL, PhaseRun, Phases, each_phase, hump, over_phases, phases};
use super::setup::Strategy;
use super::spread::Spread;
use super::*;
use crate::builtin::{base, with};
use crate::{Bench, Effort, Tools};
use fairpace_lab::Hooks;
use fairpace_lab::study::Measure;
use fairpace_path::DamaSpec;

fn experiment(id: &str) -> &'static Experiment {
    EXPERIMENTS.iter().find(|e| e.id == id).unwrap()
}

#[test]
fn steps_of_1_8_ms_make_456_phases_of_the_large_super_frame_and_76_of_the_small_one() {
    // 820.4 / 1.8 = 455.8, 136.7 / 1.8 = 76.0 (75.96).
    assert_eq!(phases(&DamaSpec::large(), Effort::Usual, ALL).len(), 456);
    assert_eq!(phases(&DamaSpec::small(), Effort::Usual, ALL).len(), 76);
    let three = phases(&DamaSpec::large(), Effort::Seeds(3), ALL);
    assert_eq!(three, [0, 152, 304]);
}

#[test]
fn a_hump_is_a_rise_after_a_fall_of_more_than_the_quantum() {
    // Falls from 3 to 2.9: not yet a fall. Then to 1, and up by 1.5.
    assert!((hump(&[1.0, 3.0, 2.9, 3.2, 1.0, 2.5, 0.5], 0.3) - 1.5).abs() < 1e-12);
    assert_eq!(hump(&[1.0, 3.0, 2.0, 1.0], 0.3), 0.0);
    assert_eq!(hump(&[3.0, 2.9, 3.0], 0.3), 0.0);
}

#[test]
fn the_middle_of_the_phases_and_their_ends() {
    let s = Spread::of((0..=40).rev().map(f64::from).collect()).unwrap();
    assert_eq!((s.median, s.least, s.greatest, s.middle), (20.0, 0.0, 40.0, [1.0, 39.0]));
    assert_eq!(Spread::of(vec![1.0, f64::NAN]), None);
}

/// Figs. 4 and 5 at a super-frame's beginning, by hand. The request is in the first slot of terminal 1, the fourth of
/// the multi-frame: received 2 T_slots and T_p later; the report waits for the slots of terminal 2 and takes T_p. QSD
/// with T_q = 520 ms: so much later, plus what the slots make of it.
#[test]
fn the_response_comes_after_a_round_trip_and_the_hold() {
    let scenario = |strategy: Strategy| with(&base(experiment("qsd.fig5")), |s| strategy.set(s));
    let mut bench = Bench::new(Hooks::default(), Effort::Seeds(1));
    let scenarios = [scenario(Strategy::Qs), scenario(Strategy::Qsd(520.0)), scenario(Strategy::None)];
    const APPROVED: Measure<Option<(f64, f64)>> =
        Measure { name: "approved", of: |job| Ok(PhaseRun::run(job)?.approved()) };
    let all = each_phase(experiment("qsd.fig5"), &scenarios, ALL, &mut bench, APPROVED).unwrap().cells;
    let (qs, x) = all[0].runs[0].unwrap();
    // 2 T_p + a wait of less than T_f each way; packet sizes count headers here, so that H = 0.
    assert!((0.504..0.504 + 2.0 * 0.2735).contains(&qs), "{qs}");
    assert!((x - 320_000.0).abs() < 1.0, "{x}");
    let (qsd, _) = all[1].runs[0].unwrap();
    assert!((qsd - qs - 0.520).abs() < 0.2735, "{qsd}");
    assert_eq!(*all[2].runs[0], None);
}

#[test]
fn without_quick_start_the_delay_is_seconds_more_and_every_packet_arrives() {
    let e = experiment("qsd.fig5");
    let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
    let scenarios = [Strategy::None, Strategy::Qsd(520.0)].map(|strategy| with(&base(e), |s| strategy.set(s)));
    let all = over_phases(e, &scenarios, &mut bench).unwrap();
    // 30 s at one packet in 41.125 ms: 730 packets.
    assert_eq!(all.iter().map(Phases::len).collect::<Vec<_>>(), [730, 730]);
    for (none, qsd) in all[0].peaks().into_iter().zip(all[1].peaks()) {
        assert!(none > 5.0 && qsd < 3.0, "{none} {qsd}");
    }
    // In the end there is nothing left but slots and T_p: 0.252 to 0.252 + T_f and a packet.
    let last = all[1].flows[0].last().unwrap().e2ed();
    assert!((0.252..0.252 + all[1].quantum).contains(&last), "{last}");
}

#[test]
fn every_single_flow_experiment_runs_in_two_phases_and_shows_what_it_found() {
    for id in ["qsd.fig3", "qsd.fig4", "qsd.fig5", "qsd.fig6", "qsd.eq3", "qsd.appendix"] {
        let e = experiment(id);
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2)).as_published();
        let outcome = (e.run)(e, &mut bench, &mut Tools::default()).unwrap();
        assert!(!outcome.points.is_empty() && !outcome.claims.is_empty() && !outcome.section.tables.is_empty(), "{id}");
        assert!(outcome.claims.iter().all(|c| c.id.starts_with(&format!("{id}/")) && c.measured.is_some()), "{id}");
        assert!(!serde_json::to_string(&outcome).unwrap().contains("NaN"), "{id}");
    }
}

/// A share of a source cuts the request of a lone flow, and such a run is refused; every other experiment runs under the
/// same guard (`small.rs`, `reproduce`).
#[test]
fn a_run_that_a_rule_of_our_own_touches_is_no_run_of_the_paper() {
    let e = experiment("qsd.fig4");
    let written = e.scenario.replace("agent = \"qs\"", "agent = \"qs\"\nsource_share = 0.05");
    assert_ne!(written, e.scenario);
    let run = |e: &Experiment| {
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(1)).as_published();
        (e.run)(e, &mut bench, &mut Tools::default())
    };
    assert!(run(e).is_ok());
    let error = run(&Experiment { scenario: written.leak(), ..*e }).unwrap_err().to_string();
    assert!(error.contains("a rule that the paper does not have decided 1 times"), "{error}");
}
