//! Loss by link errors as a scenario writes it.

use crate::field::{Field, Param};
use crate::param::{CHANCE, Row};
use crate::part::{AnyKind, Family, Kind, Part};
use crate::quantity::Chance;
use fairpace_path::{GilbertElliott, LossModel};
use fairpace_units::Probability;

/// All kinds of loss.
#[derive(Debug)]
pub enum Loss {}

/// Loss by link errors.
pub type LossSpec = Part<Loss>;

impl Family for Loss {
    type Model = LossModel;
    type Context = ();
    const NAME: &'static str = "LossSpec";
    const DOC: &'static str = "Loss by link errors.";
    const KINDS: &'static [&'static dyn AnyKind<Loss>] = &[&NONE, &RANDOM, &GILBERT_ELLIOTT];
}

const NONE: Kind<Loss, ()> = Kind {
    name: "none",
    doc: "no packet is lost",
    example: "",
    params: &[],
    usual: |_, _| (),
    check: |_, _| None,
    model: |_, _, _| LossModel::None,
};

const RANDOM: Kind<Loss, Probability> = Kind {
    name: "random",
    doc: "each packet is lost independently",
    example: "p = 0.01",
    params: &[Param {
        row: Row::new("p", "P_Loss", CHANCE, "probability that a packet is lost").needed(),
        at: |p| Field::Probability(p),
    }],
    usual: |_, _| Probability::ZERO,
    check: |_, _| None,
    model: |p, _, _| LossModel::Bernoulli(p),
};

const GILBERT_ELLIOTT: Kind<Loss, GilbertElliott> = Kind {
    name: "gilbert-elliott",
    doc: "packets are lost in bursts: a good and a bad state",
    example: "good_to_bad = 0.001, bad_to_good = 0.1",
    params: &[
        Param {
            row: Row::new("good_to_bad", "p", CHANCE, "probability of going from good to bad after a packet").needed(),
            at: |chain| Field::Probability(&mut chain.good_to_bad),
        },
        Param {
            row: Row::new("bad_to_good", "r", CHANCE, "probability of going from bad to good after a packet").needed(),
            at: |chain| Field::Probability(&mut chain.bad_to_good),
        },
        Param {
            row: Row::new("loss_in_good", "1 - k", CHANCE, "probability that a packet sent in the good state is lost"),
            at: |chain| Field::Probability(&mut chain.loss_in_good),
        },
        Param {
            row: Row::new("loss_in_bad", "1 - h", CHANCE, "probability that a packet sent in the bad state is lost"),
            at: |chain| Field::Probability(&mut chain.loss_in_bad),
        },
    ],
    // The simplest model: all is well in the good state, and nothing passes in the bad one.
    usual: |_, _| GilbertElliott {
        good_to_bad: Probability::ZERO,
        bad_to_good: Probability::ONE,
        loss_in_good: Probability::ZERO,
        loss_in_bad: Probability::ONE,
    },
    check: |_, _| None,
    model: |chain, _, _| LossModel::GilbertElliott(chain),
};

impl LossSpec {
    /// Independent loss with probability `p`; no loss at 0 or what is no probability.
    pub fn random(p: f64) -> LossSpec {
        match Chance::new(p) {
            Some(p) if p != Chance::ZERO => LossSpec::of("random").with("p", p),
            _ => LossSpec::default(),
        }
    }
}
