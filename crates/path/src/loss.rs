//! Damage on the way: each transmitted packet alone, or in bursts.
//!
//! Every transmitted packet draws the same number of random numbers, whatever becomes of it, so
//! that two runs that differ only in a probability see the same draws (common random numbers).

use crate::{GilbertElliott, LossModel};
use fairpace_units::{Probability, RandomStream};

/// The state of a [`LossModel`].
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    None,
    Bernoulli(Box<(Probability, RandomStream)>),
    GilbertElliott(Box<Bursts>),
}

/// Losses in bursts.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    model: GilbertElliott,
    bad: bool,
    random: RandomStream,
}

impl Loss {
    pub(crate) fn new(model: &LossModel, mut random: RandomStream) -> Self {
        match *model {
            LossModel::None => Loss::None,
            LossModel::Bernoulli(p) => Loss::Bernoulli(Box::new((p, random))),
            LossModel::GilbertElliott(model) => {
                let bad = random.uniform() < model.time_in_bad();
                Loss::GilbertElliott(Box::new(Bursts { model, bad, random }))
            }
        }
    }

    /// Whether the next transmitted packet is lost.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        match self {
            Loss::None => false,
            Loss::Bernoulli(loss) => loss.1.chance(loss.0),
            Loss::GilbertElliott(bursts) => {
                let Bursts { model, bad, random } = &mut **bursts;
                let (loss, change) =
                    if *bad { (model.loss_in_bad, model.bad_to_good) } else { (model.loss_in_good, model.good_to_bad) };
                let lost = random.chance(loss);
                *bad ^= random.chance(change);
                lost
            }
        }
    }
}

impl GilbertElliott {
    /// The fraction of packets sent in the bad state, p / (p + r); zero if the state never
    /// changes.
    pub fn time_in_bad(&self) -> f64 {
        let (p, r) = (self.good_to_bad.get(), self.bad_to_good.get());
        if p + r == 0.0 { 0.0 } else { p / (p + r) }
    }

    /// The fraction of packets lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.time_in_bad();
        bad * self.loss_in_bad.get() + (1.0 - bad) * self.loss_in_good.get()
    }
}
