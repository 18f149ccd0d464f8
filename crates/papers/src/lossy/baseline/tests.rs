use super::runs::{B, Observed, P, Runs};
use super::*;
use crate::builtin::with;
use crate::lossy::EXPERIMENTS;
use crate::{Claim, Effort};
use fairpace_lab::Hooks;
use fairpace_scenario::Time;
use std::rc::Rc;

/// The default.
const CUTS: Reading = Reading { runs: Runs::EveryPacket, p: P::Cuts, b: B::Complex };
/// p by loss indications, b = 1.
const INDICATIONS: Reading = Reading { p: P::Indications, b: B::One, ..CUTS };

fn mini() -> Experiment {
    Experiment { id: "mini", ..*EXPERIMENTS.iter().find(|e| e.id == "lossy.fig1-3").unwrap() }
}

/// Figs. 1 to 3 in small: 1,000 s, two seeds, three errors.
fn miniature(runs: Runs) -> Data {
    let s = with(&base(&mini()), |s| s.duration = Time::seconds(1000.0));
    Data::measure(&mini(), &s, &mut Bench::new(Hooks::default(), Effort::Seeds(2)), runs, &[5.0, 20.0, 40.0]).unwrap()
}

fn claim<'a>(claims: &'a [Claim], name: &str) -> &'a Claim {
    claims.iter().find(|c| c.id.starts_with(&format!("mini/{name}"))).unwrap()
}

#[test]
fn the_miniature_of_figs_1_to_3_decides_its_claims_from_the_runs() {
    let data = miniature(Runs::EveryPacket);
    let claims = fig1_3_claims(&mini(), &data, &INDICATIONS);
    // At 40 % error nearly every loss is a timeout, of which the simple equation knows nothing.
    for name in ["simple-over", "simple-grows"] {
        assert!(claim(&claims, name).holds, "{claims:#?}");
    }
    // The complex equation is far better at 20 than at 40 %.
    let best = claim(&claims, "complex-best-15-25-above");
    assert!(best.holds && best.measured.unwrap() < 0.5, "{best:#?}");
    // ns-2: +48.7 and +202.6 % at 5 and 17.5 % on its twelve combinations.
    let simple = data.deviation(&INDICATIONS, Equation::Simple, 5.0).unwrap().mean;
    assert!((30.0..75.0).contains(&simple), "{simple}");
}

#[test]
fn the_same_claims_fail_where_tcp_sends_ten_times_as_much() {
    let mut data = miniature(Runs::EveryPacket);
    for run in data.0.cells.iter_mut().flat_map(|c| &mut c.runs) {
        // p stays.
        *run = Rc::new(run.map(|o| Observed { sent_bps: 100.0 * o.sent_bps, ..o }));
    }
    let claims = fig1_3_claims(&mini(), &data, &INDICATIONS);
    for name in ["simple-over", "simple-90"] {
        assert!(!claim(&claims, name).holds, "{claims:#?}");
    }
    assert!(claim(&claims, "complex-under").holds, "{claims:#?}");
}

#[test]
fn the_modified_equation_is_closer_only_where_the_numbers_say_so() {
    let mut data = miniature(Runs::EveryPacket);
    let measured = fig25_27_claims(&mini(), &data, &INDICATIONS);
    // A TCP that does what the simple equation says: the modified one is nearly that.
    for cell in &mut data.0.cells {
        for run in &mut cell.runs {
            let of =
                |o: Observed| Observed { sent_bps: INDICATIONS.estimate(Equation::Simple, &o, &cell.x).unwrap(), ..o };
            *run = Rc::new(run.map(of));
        }
    }
    let obedient = fig25_27_claims(&mini(), &data, &INDICATIONS);
    assert!(!measured[1].holds && obedient.iter().all(|c| c.holds), "{measured:#?} {obedient:#?}");
}

#[test]
fn delayed_acks_are_counted_in_the_acks() {
    let [every, delayed] = [Runs::EveryPacket, Runs::Delayed].map(|runs| (miniature(runs), runs));
    let b = |(data, runs): &(Data, Runs)| data.estimate(*runs, 5.0, |o, _| Some(o.b)).unwrap().mean;
    assert!((b(&every) - 1.0).abs() < 0.02, "{}", b(&every));
    assert!((1.4..2.0).contains(&b(&delayed)), "{}", b(&delayed));
}

#[test]
fn a_reading_decides_p_and_b_and_the_equation_that_gets_it() {
    let data = miniature(Runs::EveryPacket);
    let p = |reading: &Reading, error| {
        data.estimate(Runs::EveryPacket, error, |o, _| Some(reading.p_of(o, error))).unwrap().mean
    };
    // A timeout after a timeout is one cut more and no indication more: at 40 % most are.
    let at = |error| [CUTS, INDICATIONS].map(|reading| p(&reading, error));
    let ([few_cuts, few], [cuts, indications]) = (at(5.0), at(40.0));
    assert!(few_cuts >= few && cuts > 1.5 * indications, "{few_cuts} {few} {cuts} {indications}");
    assert!((p(&Reading { p: P::Injected, ..CUTS }, 40.0) - 0.4).abs() < 1e-12);
    // b = 2 lowers the complex equation by at most sqrt 2, and no other.
    let one = Reading { b: B::One, ..CUTS };
    let of = |reading: &Reading, equation| 100.0 + data.deviation(reading, equation, 5.0).unwrap().mean;
    let ratio = of(&CUTS, Equation::Complex) / of(&one, Equation::Complex);
    assert!((0.7..0.95).contains(&ratio), "{ratio}");
    for equation in [Equation::Simple, Equation::Modified] {
        assert!((of(&CUTS, equation) - of(&one, equation)).abs() < 1e-9);
    }
}
