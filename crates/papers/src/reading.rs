//! Readings: the places where a paper can be understood in more than one way, and what a run does about them.
//!
//! An experiment declares its readings beside its claims. The first is the default: what the paper's own words and the
//! most of its figures support, whether the claims hold under it or not. The others are varied one at a time from
//! there; a [`Reading`] with members is a set of them that belong together, for the reason that it gives. A session
//! runs an experiment once for each reading that was asked for, and each point and claim says which.

use fairpace_scenario::RawScenario;

/// The name of an experiment's first reading, which it runs under if nothing else is asked for.
pub const DEFAULT: &str = "default";

/// One way to understand a paper.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Name, in claims, points and on the command line.
    pub key: &'static str,
    /// The paper's own words for it, short; or `silent`.
    pub words: &'static str,
    /// Where they stand: `§3.2`.
    pub place: &'static str,
    /// The difference to a run under the default; of a set, why its members belong together.
    pub changes: &'static str,
    /// Other figures that the same question decides.
    pub touches: &'static [&'static str],
    /// Readings that answer the same question in another way: not together with this one.
    pub against: &'static [&'static str],
    pub(crate) what: What,
}

/// How a reading comes into a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// As a change to every scenario, after the experiment has set it up.
    Scenario(fn(&mut RawScenario)),
    /// The experiment asks for it by name ([`Chosen::has`]).
    Experiment,
    /// Several readings, all at once.
    Set(&'static [&'static str]),
}

impl Reading {
    /// The default, in the paper's words.
    pub(crate) const fn default(words: &'static str, place: &'static str, changes: &'static str) -> Reading {
        Reading { key: DEFAULT, words, place, changes, touches: &[], against: &[], what: What::Experiment }
    }

    /// One that the experiment asks for by name.
    pub(crate) const fn new(
        key: &'static str,
        words: &'static str,
        place: &'static str,
        changes: &'static str,
    ) -> Reading {
        Reading { key, ..Reading::default(words, place, changes) }
    }

    /// The same as a change to every scenario.
    pub(crate) const fn setting(self, set: fn(&mut RawScenario)) -> Reading {
        Reading { what: What::Scenario(set), ..self }
    }

    /// Readings that belong together, and why.
    pub(crate) const fn set(key: &'static str, members: &'static [&'static str], reason: &'static str) -> Reading {
        Reading { what: What::Set(members), ..Reading::new(key, "a set", "", reason) }
    }

    /// The same with readings that contradict it.
    pub(crate) const fn against(self, against: &'static [&'static str]) -> Reading {
        Reading { against, ..self }
    }

    /// The same with other figures that it decides.
    pub(crate) const fn touching(self, touches: &'static [&'static str]) -> Reading {
        Reading { touches, ..self }
    }

    /// The readings that it is made of, if it is a set.
    pub fn members(&self) -> &'static [&'static str] {
        match self.what {
            What::Set(members) => members,
            What::Scenario(_) | What::Experiment => &[],
        }
    }
}

/// The readings that a session is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Each experiment's default.
    #[default]
    Default,
    /// All that an experiment has, the default first.
    All,
    /// These; `a+b` is two at once.
    Named(Vec<String>),
}

/// The reading of one run: by name, with its parts.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// `default`, `slots-spread`, `a+b`.
    pub name: String,
    pub(crate) parts: Vec<&'static Reading>,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen { name: DEFAULT.to_owned(), parts: Vec::new() }
    }
}

impl Chosen {
    /// Whether it has this reading in it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.parts.iter().any(|r| r.key == key)
    }
}
