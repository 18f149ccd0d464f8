//! The choice of readings: names looked up in what an experiment declares, contradictions refused, and the changes to scenarios that
//! follow.

use crate::Experiment;
use crate::builtin::with;
use crate::reading::{Asked, Chosen, DEFAULT, Reading, What};
use fairpace_lab::study::Change;
use fairpace_scenario::{RawScenario, Scenario};
use std::sync::Arc;

impl Chosen {
    /// A scenario under it.
    pub(crate) fn of(&self, scenario: &Scenario) -> Scenario {
        self.change().map_or_else(|| scenario.clone(), |change| change(scenario))
    }

    /// Its changes to scenarios; none if it makes none.
    pub(crate) fn change(&self) -> Option<Change> {
        let sets: Vec<fn(&mut RawScenario)> = self
            .parts
            .iter()
            .filter_map(|r| match r.what {
                What::Scenario(set) => Some(set),
                What::Experiment | What::Set(_) => None,
            })
            .collect();
        if sets.is_empty() {
            return None;
        }
        Some(Arc::new(move |s: &Scenario| with(s, |raw| sets.iter().for_each(|set| set(raw)))))
    }
}

/// Readings that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReading {
    /// None of the experiments has it.
    #[error("`{found}` is not a reading of {of}")]
    Unknown {
        /// As given.
        found: String,
        /// The experiments that were asked.
        of: String,
        /// The nearest that there is.
        near: Option<String>,
    },
    /// Two of them answer one question in two ways.
    #[error("the readings `{one}` and `{other}` of `{experiment}` contradict each other")]
    Contradiction {
        /// The experiment.
        experiment: String,
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
}

impl BadReading {
    /// The remedy.
    pub fn hint(&self) -> String {
        match self {
            BadReading::Unknown { near: Some(near), .. } => {
                format!("did you mean `{near}`? `fairpace list experiments` shows all")
            }
            BadReading::Unknown { near: None, .. } => "`fairpace list experiments` shows all".to_owned(),
            BadReading::Contradiction { .. } => "name one of them, or each in a `--reading` of its own".to_owned(),
        }
    }
}

impl Experiment {
    /// A reading of this experiment by name.
    pub fn reading(&self, key: &str) -> Option<&'static Reading> {
        self.readings.iter().find(|r| r.key == key)
    }

    /// A reading with its parts; none if this experiment has not all of them.
    fn chosen(&self, name: &str) -> Option<Chosen> {
        let mut parts: Vec<&'static Reading> = Vec::new();
        for key in name.split('+') {
            if key == DEFAULT {
                continue;
            }
            let reading = self.reading(key)?;
            match reading.what {
                What::Set(members) => {
                    for member in members {
                        parts.push(self.reading(member)?);
                    }
                }
                What::Scenario(_) | What::Experiment => parts.push(reading),
            }
        }
        Some(Chosen { name: name.to_owned(), parts })
    }

    /// The readings under which it is to be run, of those that were asked for.
    ///
    /// # Errors
    /// Two parts of one reading contradict each other.
    pub fn asked(&self, asked: &Asked) -> Result<Vec<Chosen>, BadReading> {
        let names: Vec<String> = match asked {
            Asked::Default => vec![DEFAULT.to_owned()],
            Asked::All if self.readings.is_empty() => vec![DEFAULT.to_owned()],
            Asked::All => self.readings.iter().map(|r| r.key.to_owned()).collect(),
            Asked::Named(names) => names.clone(),
        };
        let chosen: Vec<Chosen> = names.iter().filter_map(|name| self.chosen(name)).collect();
        for Chosen { parts, .. } in &chosen {
            for (i, one) in parts.iter().enumerate() {
                for other in &parts[i + 1..] {
                    if one.against.contains(&other.key) || other.against.contains(&one.key) {
                        let [one, other] = [one, other].map(|r| r.key.to_owned());
                        return Err(BadReading::Contradiction { experiment: self.id.to_owned(), one, other });
                    }
                }
            }
        }
        Ok(chosen)
    }
}

/// Looks at everything that was asked for, before any work starts.
///
/// # Errors
/// A name that none of the experiments has, or a contradiction.
pub fn check_readings(experiments: &[&Experiment], asked: &Asked) -> Result<(), BadReading> {
    for e in experiments {
        e.asked(asked)?;
    }
    let Asked::Named(names) = asked else { return Ok(()) };
    for name in names {
        if experiments.iter().any(|e| e.chosen(name).is_some()) {
            continue;
        }
        let known = || experiments.iter().flat_map(|e| e.readings).map(|r| r.key).chain([DEFAULT]);
        let found = name.split('+').find(|part| !known().any(|key| key == *part)).unwrap_or(name).to_owned();
        let of = match experiments {
            [one] => format!("`{}`", one.id),
            _ => "any of these experiments".to_owned(),
        };
        let near = fairpace_scenario::nearest(&found, known()).map(str::to_owned);
        return Err(BadReading::Unknown { found, of, near });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    #[test]
    fn each_experiment_declares_its_default_first_and_every_name_in_it_is_one() {
        let mut declared = 0;
        for e in experiments().filter(|e| !e.readings.is_empty()) {
            declared += 1;
            assert_eq!(e.readings[0].key, DEFAULT, "{}", e.id);
            let mut keys: Vec<&str> = e.readings.iter().map(|r| r.key).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), e.readings.len(), "{}: two readings have one name", e.id);
            for r in e.readings {
                assert!(!r.words.is_empty() && !r.changes.is_empty(), "{}: {}", e.id, r.key);
                for member in r.members() {
                    assert!(e.reading(member).is_some(), "{}: {} names {member}", e.id, r.key);
                }
                for other in r.against {
                    let known = experiments().any(|e| e.reading(other).is_some());
                    assert!(known, "{}: {} is against {other}", e.id, r.key);
                    // Refused in either order, whichever of the two declares it.
                    for both in [format!("{}+{other}", r.key), format!("{other}+{}", r.key)] {
                        let asked = e.reading(other).map(|_| e.asked(&Asked::Named(vec![both.clone()])));
                        let refused = matches!(asked, None | Some(Err(BadReading::Contradiction { .. })));
                        assert!(refused, "{}: {both}", e.id);
                    }
                }
                for touched in r.touches {
                    assert!(crate::select(&[(*touched).to_owned()]).is_ok(), "{}: {} touches {touched}", e.id, r.key);
                }
            }
            // No set contradicts itself.
            e.asked(&Asked::All).unwrap();
        }
        assert!(declared >= 10, "{declared}");
    }

    #[test]
    fn a_change_of_scenarios_changes_every_scenario() {
        // A reading without an effect is a name for the default.
        for e in experiments() {
            for chosen in e.asked(&Asked::All).unwrap() {
                let Some(change) = chosen.change() else { continue };
                let base = crate::builtin::base(e);
                let text = |s: &Scenario| serde_json::to_string(&RawScenario::clone(s)).unwrap();
                let schemes = ["srp", "crp", "mrp", "tfrc:measured_by=receiver,losses=ns2", "tfrc-sp"];
                let changed = |s: &Scenario| text(&change(s)) != text(s);
                let with = |c: &str| fairpace_scenario::replace_controller(&base, c, |f| f.group == "main").unwrap();
                assert!(
                    changed(&base) || schemes.iter().any(|c| changed(&with(c))),
                    "{}: {} changes nothing",
                    e.id,
                    chosen.name
                );
            }
        }
    }

    #[test]
    fn what_is_unknown_and_what_contradicts_is_refused_with_the_nearest_name() {
        let fig5 = crate::select(&["qsd.fig5".to_owned()]).unwrap();
        let asked = |names: &[&str]| Asked::Named(names.iter().map(|&n| n.to_owned()).collect());
        let wrong = check_readings(&fig5, &asked(&["slots-contigous"])).unwrap_err();
        assert_eq!(wrong.to_string(), "`slots-contigous` is not a reading of `qsd.fig5`");
        assert!(wrong.hint().starts_with("did you mean `slots-contiguous`?"), "{}", wrong.hint());
        assert_eq!(check_readings(&fig5, &asked(&["x-inst+timer-3s", "default"])), Ok(()));
        let paired = crate::select(&["lossy.fig28-29".to_owned()]).unwrap();
        // A set counts as its members.
        for both in ["over-run+over-round", "over-run+tfrc-like", "literal-round+tfrc-like"] {
            let wrong = check_readings(&paired, &asked(&[both])).unwrap_err();
            assert!(matches!(wrong, BadReading::Contradiction { .. }), "{both}: {wrong}");
        }
        let named = check_readings(&paired, &asked(&["over-run+over-round"])).unwrap_err().to_string();
        assert_eq!(named, "the readings `over-run` and `over-round` of `lossy.fig28-29` contradict each other");
    }
}
