//! A scheme for the registry: its entry, the settings that are given for its parameters, and the surroundings that its
//! controller is made for. The list of schemes is in `scheme.rs`.

use crate::controller::Controller;
use crate::param::{Allowed, ParamError, ParamInfo, nearest};
use core::fmt;
use fairpace_units::{Bytes, Duration, Rate, parse_duration, parse_rate};
use std::collections::BTreeMap;

/// One scheme.
#[derive(Clone, Copy, Debug)]
pub struct SchemeInfo {
    /// As in a scenario file.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [ParamInfo],
    /// Its constructor; [`crate::build`] calls it.
    pub make: Constructor,
}

/// Makes a controller from settings that name no parameter which the scheme lacks. The values are read, and refused,
/// here.
pub type Constructor = fn(&Settings<'_>, &Env) -> Result<Box<dyn Controller>, ParamError>;

/// Whether the protections that the papers leave out are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Safety {
    /// As the paper has it: no cap, no breaker, no halving in RCS's Backoff. For simulations.
    Paper,
    /// Fit for a real network.
    #[default]
    Default,
}

/// The facts about its surroundings that a scheme must know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// The size of a full data packet on the wire, and of every dummy: what a paper's "packet" is.
    pub packet_size: Bytes,
    /// No controller goes below this.
    pub min_rate: Rate,
    /// The data rate before anything is known, where a scheme has no rule of its own.
    pub start_rate: Option<Rate>,
    /// No controller goes above this.
    pub max_rate: Rate,
    /// Whether the protections are on.
    pub safety: Safety,
}

impl Default for Env {
    fn default() -> Self {
        Env {
            packet_size: Bytes::new(1_000),
            min_rate: Rate::bps(100.0),
            start_rate: None,
            max_rate: Rate::mbps(10.0),
            safety: Safety::Default,
        }
    }
}

impl Env {
    /// Refuses limits that contradict each other.
    ///
    /// # Errors
    /// [`ParamError::BadEnv`].
    pub(crate) fn check(&self) -> Result<(), ParamError> {
        let bad = |name, found: &dyn fmt::Display, allowed: &str| {
            Err(ParamError::BadEnv { name, found: found.to_string(), allowed: allowed.to_owned() })
        };
        if !(1..=65_535).contains(&self.packet_size.get()) {
            return bad("packet_size", &self.packet_size, "1 B to 65535 B");
        }
        if self.min_rate <= Rate::ZERO {
            return bad("min_rate", &self.min_rate, "above 0");
        }
        if self.max_rate < self.min_rate {
            return bad("max_rate", &self.max_rate, &format!("at least min_rate, {}", self.min_rate));
        }
        match self.start_rate {
            Some(r) if r < self.min_rate || r > self.max_rate => {
                let allowed = format!("from {} (min_rate) to {} (max_rate)", self.min_rate, self.max_rate);
                bad("start_rate", &r, &allowed)
            }
            _ => Ok(()),
        }
    }
}

/// A scheme's settings, read through its table: every default and every error comes from there.
#[derive(Debug)]
pub struct Settings<'a> {
    scheme: &'static SchemeInfo,
    given: &'a BTreeMap<String, String>,
}

impl<'a> Settings<'a> {
    /// Refuses parameters that the scheme does not have.
    ///
    /// # Errors
    /// [`ParamError::UnknownParam`].
    pub fn new(scheme: &'static SchemeInfo, given: &'a BTreeMap<String, String>) -> Result<Self, ParamError> {
        let names = || scheme.params.iter().map(|p| p.name);
        match given.keys().find(|key| !names().any(|name| name == key.as_str())) {
            None => Ok(Settings { scheme, given }),
            Some(key) => Err(ParamError::UnknownParam {
                scheme: scheme.name,
                found: key.clone(),
                allowed: names().collect(),
                nearest: nearest(key, names()),
            }),
        }
    }

    /// The name of the scheme that is being built.
    pub fn scheme(&self) -> &'static str {
        self.scheme.name
    }

    /// The text of a setting, or its default; and its entry.
    pub fn text(&self, name: &str) -> (&str, &'static ParamInfo) {
        let info = self.scheme.params.iter().find(|p| p.name == name);
        // A scheme that asks for what its own table lacks is a bug that the first test shows.
        let info = info.unwrap_or_else(|| panic!("`{}` has no parameter `{name}` in its table", self.scheme.name));
        (self.given.get(name).map_or(info.default, |text| text.trim()), info)
    }

    /// The error for this setting.
    pub fn bad(&self, name: &str) -> ParamError {
        let (text, info) = self.text(name);
        ParamError::BadValue {
            scheme: self.scheme.name,
            name: info.name,
            found: text.to_owned(),
            allowed: info.range(),
        }
    }

    /// A rate within the flow's limits, or the `word` that stands for `value`.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn rate_or(&self, name: &str, word: &str, value: Rate, env: &Env) -> Result<Rate, ParamError> {
        let (text, info) = self.text(name);
        if text == word {
            return Ok(value);
        }
        let rate = parse_rate(text).map_err(|_| self.bad(name))?.with_packets_of(env.packet_size);
        if rate < env.min_rate || rate > env.max_rate {
            return Err(ParamError::BadValue {
                scheme: self.scheme.name,
                name: info.name,
                found: text.to_owned(),
                allowed: format!("from {} (the flow's min_rate) to {} (its max_rate)", env.min_rate, env.max_rate),
            });
        }
        Ok(rate)
    }

    /// A rate above nought.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn rate(&self, name: &str, env: &Env) -> Result<Rate, ParamError> {
        let rate = parse_rate(self.text(name).0).map(|r| r.with_packets_of(env.packet_size));
        rate.ok().filter(|r| *r > Rate::ZERO).ok_or_else(|| self.bad(name))
    }

    /// A duration within the bounds of the table.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn duration(&self, name: &str) -> Result<Duration, ParamError> {
        let (text, info) = self.text(name);
        let read = parse_duration(text).ok();
        read.filter(|d| info.allowed.iter().any(|a| matches!(a, Allowed::Duration(bounds) if bounds.contain(*d))))
            .ok_or_else(|| self.bad(name))
    }

    /// A bare number within the bounds of the table.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn number(&self, name: &str) -> Result<f64, ParamError> {
        let (text, info) = self.text(name);
        let read = text.parse().ok();
        read.filter(|x| info.allowed.iter().any(|a| matches!(a, Allowed::Number(_, bounds) if bounds.contain(*x))))
            .ok_or_else(|| self.bad(name))
    }

    /// A whole number within the bounds of the table.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn whole(&self, name: &str) -> Result<u64, ParamError> {
        let (text, info) = self.text(name);
        let within =
            |n: &u64| info.allowed.iter().any(|a| matches!(a, Allowed::Whole(_, min, max) if (min..=max).contains(&n)));
        text.parse().ok().filter(within).ok_or_else(|| self.bad(name))
    }

    /// A number before the word that the table has for it; `None` if something else is written.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn times(&self, name: &str) -> Result<Option<f64>, ParamError> {
        let (text, info) = self.text(name);
        let with_word = info.allowed.iter().find_map(|a| match a {
            Allowed::Times(word, bounds) => Some((text.strip_suffix(word)?, bounds)),
            _ => None,
        });
        let Some((number, bounds)) = with_word else { return Ok(None) };
        let number = number.trim().parse().ok().filter(|x| bounds.contain(*x));
        number.map(Some).ok_or_else(|| self.bad(name))
    }

    /// `on` or `off`.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn flag(&self, name: &str) -> Result<bool, ParamError> {
        self.choice(name, &[("on", true), ("off", false), ("true", true), ("false", false)])
    }

    /// One of several words.
    ///
    /// # Errors
    /// [`ParamError::BadValue`].
    pub fn choice<T: Copy>(&self, name: &str, options: &[(&str, T)]) -> Result<T, ParamError> {
        let (text, _) = self.text(name);
        options.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| self.bad(name))
    }
}
