//! How the slots of a wireless link fail, as a scenario writes it.

use crate::field::{Field, Named, Param};
use crate::param::{Form, Row, Value};
use crate::part::{AnyKind, Family, Kind, Part, PartProblem};
use crate::quantity::{Chance, Real};
use fairpace_path::{Channel, ChannelError, FadingError, Modulation, Rayleigh};
use fairpace_units::{Bounds, Bytes, Duration};

/// All channels.
#[derive(Debug)]
pub enum Fading {}

/// A channel: a Markov chain that steps with every slot, with an error probability in each state.
pub type ChannelSpec = Part<Fading>;

/// The slot that a channel steps with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Its length (τ).
    pub length: Duration,
    /// The size of the packet in a slot.
    pub size: Bytes,
}

impl Family for Fading {
    type Model = Result<Channel, ChannelError>;
    type Context = Slot;
    const NAME: &'static str = "ChannelSpec";
    const DOC: &'static str =
        "How slots fail: a Markov chain that steps with every slot, with an error probability in each state.";
    const KINDS: &'static [&'static dyn AnyKind<Fading>] = &[&CLEAR, &TWO_STATE, &MARKOV, &RAYLEIGH];
}

const CLEAR: Kind<Fading, ()> = Kind {
    name: "clear",
    doc: "no slot fails",
    example: "",
    params: &[],
    usual: |_, _| (),
    check: |_, _| None,
    model: |_, _, _| Channel::memoryless(0.0),
};

/// p_e and λ.
struct TwoState {
    error_probability: f64,
    memory: f64,
}

const TWO_STATE: Kind<Fading, TwoState> = Kind {
    name: "two-state",
    doc: "a good state and a bad one",
    example: "error_probability = 0.1, memory = 0.35",
    params: &[
        Param {
            row: Row::new("error_probability", "p_e", BELOW_ONE, "which part of the slots fails").needed(),
            at: |two| Field::Number(&mut two.error_probability),
        },
        Param {
            row: Row::new(
                "memory",
                "λ",
                NUMBER,
                "the second eigenvalue, below 1: what is left of a failure's surprise one slot later",
            ),
            at: |two| Field::Number(&mut two.memory),
        },
    ],
    usual: |_, _| TwoState { error_probability: 0.0, memory: 0.0 },
    check: |_, _| None,
    model: |two, _, _| match two.memory {
        0.0 => Channel::memoryless(two.error_probability),
        lambda => Channel::two_state(two.error_probability, lambda),
    },
};

const MARKOV: Kind<Fading, Channel> = Kind {
    name: "markov",
    doc: "any chain",
    example: "transition = [[0.9, 0.1], [0.5, 0.5]], error = [0.01, 1]",
    params: &[
        Param {
            row: Row::new(
                "transition",
                "",
                Form::Matrix,
                "from each state, the probability of each state in the next slot; every row sums to 1",
            )
            .note("a row of probabilities for each state")
            .needed(),
            at: |chain| Field::Matrix(&mut chain.transition),
        },
        Param {
            row: Row::new("error", "", Form::Reals, "the probability that a slot fails in each state")
                .note("a probability for each state")
                .needed(),
            at: |chain| Field::Reals(&mut chain.error),
        },
    ],
    usual: |_, _| Channel { transition: Vec::new(), error: Vec::new() },
    check: |_, _| None,
    model: |chain, _, _| chain.validate().map(|()| chain),
};

/// Rayleigh fading, its Doppler frequency not yet over a slot.
struct Fader {
    states: usize,
    mean_snr_db: f64,
    doppler_hz: f64,
    threshold_db: f64,
    modulation: Modulation,
}

const RAYLEIGH: Kind<Fading, Fader> = Kind {
    name: "rayleigh",
    doc: "Rayleigh fading, as a chain",
    example: "mean_snr_db = 20, doppler_hz = 9.2, threshold_db = 10",
    params: &[
        Param {
            row: Row::new("states", "M", Form::Whole(2, 64), "states of the chain"),
            at: |fader| Field::Usize(&mut fader.states),
        },
        Param {
            row: Row::new("mean_snr_db", "γ̄", NUMBER, "the mean SNR in dB").needed(),
            at: |fader| Field::Number(&mut fader.mean_snr_db),
        },
        Param {
            row: Row::new("doppler_hz", "f_D", NUMBER, "the Doppler frequency in Hz: speed / wavelength").needed(),
            at: |fader| Field::Number(&mut fader.doppler_hz),
        },
        Param {
            row: Row::new(
                "threshold_db",
                "",
                NUMBER,
                "slots below this SNR fail, the others do not; this or `modulation`",
            )
            .optional(),
            at: |fader| Field::Number(&mut fader.threshold_db),
        },
        Param {
            row: Row::new(
                "modulation",
                "",
                Form::Word(&["bpsk", "qpsk", "dbpsk", "fsk"]),
                "how bits are sent: a slot fails if one of its bits is wrong",
            )
            .optional(),
            at: |fader| Field::Word(&mut fader.modulation),
        },
    ],
    usual: |_, _| Fader {
        states: 8,
        mean_snr_db: 0.0,
        doppler_hz: 0.0,
        threshold_db: 0.0,
        modulation: Modulation::Bpsk,
    },
    check: |given, _| {
        let both = [given.get("threshold_db"), given.get("modulation")];
        let allowed = "say which slots fail: those below `threshold_db`, or by the `modulation`, one of the two";
        let one = both.iter().flatten().count() == 1;
        (!one).then(|| PartProblem::Missing("threshold_db".to_owned(), allowed.to_owned()))
    },
    model: |fader, given, slot| {
        let error = match given.get("modulation") {
            None => FadingError::Threshold { snr_db: fader.threshold_db },
            Some(_) => FadingError::Modulation {
                kind: fader.modulation,
                bits: u32::try_from(slot.size.get() * 8).unwrap_or(u32::MAX),
            },
        };
        let doppler = fader.doppler_hz * slot.length.as_secs_f64();
        Channel::rayleigh(&Rayleigh { states: fader.states, mean_snr_db: fader.mean_snr_db, doppler, error })
    },
};

const NUMBER: Form = Form::Real(Bounds::ANY);
const BELOW_ONE: Form = Form::Chance(Bounds::at_least(0.0).below(1.0));

const MODULATIONS: [(&str, Modulation); 4] =
    [("bpsk", Modulation::Bpsk), ("qpsk", Modulation::Qpsk), ("dbpsk", Modulation::Dbpsk), ("fsk", Modulation::Fsk)];

impl Named for Modulation {
    fn name(&self) -> &'static str {
        MODULATIONS.iter().find(|(_, m)| m == self).map_or("", |(name, _)| name)
    }

    fn choose(&mut self, name: &str) {
        if let Some((_, m)) = MODULATIONS.iter().find(|(known, _)| *known == name) {
            *self = *m;
        }
    }
}

impl ChannelSpec {
    /// A channel that fails with probability `p_e`, with memory `lambda`; a clear one if `p_e` is no probability.
    pub fn two_state(p_e: f64, lambda: f64) -> ChannelSpec {
        let Some(p_e) = Chance::new(p_e) else { return ChannelSpec::default() };
        ChannelSpec::of("two-state").with("error_probability", p_e).with("memory", Real::new(lambda))
    }

    /// Any chain.
    pub fn markov(chain: &Channel) -> ChannelSpec {
        let row = |row: &Vec<f64>| row.iter().copied().map(Real::new).collect::<Vec<Real>>();
        let transition = Value::Matrix(chain.transition.iter().map(row).collect());
        ChannelSpec::of("markov").with("transition", transition).with("error", Value::Reals(row(&chain.error)))
    }

    /// The fault of the channel, for slots like that.
    pub(crate) fn refusal(&self, slot: Slot) -> Option<PartProblem> {
        self.problem(&slot).or_else(|| self.model(&slot).err().map(|error| self.blame(&error, slot)))
    }

    /// The reason for which a channel is refused, in the scenario's words.
    fn blame(&self, error: &ChannelError, slot: Slot) -> PartProblem {
        let bad = |key: &str, found: String, wrong: String, allowed: String| {
            PartProblem::Bad(key.to_owned(), found, wrong, allowed)
        };
        let out = || "is out of range".to_owned();
        match error {
            ChannelError::OutOfRange { field, .. } if field == "doppler" => {
                let found = self.get("doppler_hz").map_or_else(String::new, Value::to_string);
                let [low, high] = [1e-5, 100.0].map(|x| x / slot.length.as_secs_f64());
                bad("doppler_hz", found, out(), format!("from {low} to {high} Hz: 0.00001 to 100 over a slot"))
            }
            ChannelError::OutOfRange { field, found, allowed } => {
                let key = match field.as_str() {
                    "error.snr_db" => "threshold_db",
                    "states" => "error",
                    other => other,
                };
                bad(key, found.to_string(), out(), (*allowed).to_owned())
            }
            ChannelError::NotSquare { field, found, states } => bad(
                field,
                format!("{found} long"),
                format!("does not fit the {states} states that `error` has"),
                format!("a square of {states} rows"),
            ),
            ChannelError::RowSum { row, found } => bad(
                &format!("transition[{row}]"),
                format!("a row that sums to {found}"),
                "is no distribution".to_owned(),
                "numbers from 0 to 1 that sum to 1".to_owned(),
            ),
            ChannelError::NotIrreducible { from, to } => bad(
                "transition",
                format!("without a way from state {from} to state {to}"),
                "leaves states for ever".to_owned(),
                "leave out the states that do not come back".to_owned(),
            ),
            ChannelError::NothingPasses => bad(
                "error",
                "1 in every state".to_owned(),
                "passes nothing".to_owned(),
                "below 1 in at least one of the states".to_owned(),
            ),
            ChannelError::Memory { found, p_e, least } => bad(
                "memory",
                found.to_string(),
                format!("cannot be with an error probability of {p_e}"),
                format!("from {least:.6} to below 1"),
            ),
        }
    }
}
