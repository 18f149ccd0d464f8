//! The controllers that are shown, and their set-up.

use crate::cmd::run::{join_settings, split_settings};
use crate::error::{Failure, Outcome};
use std::collections::BTreeMap;

/// The rate of the fixed scheme unless told otherwise, the best for this path: of 200, 300, ... 800 kbit/s the highest at which
/// the share of frames in time is within 2.5 % of the best (`cargo run -p fairpace-viewer --example ledger`, 20 seeds: 87.7,
/// 87.5, 86.7, 85.5, 82.1, 75.9, 65.3 %).
const FIXED_RATE: &str = "500 kbit/s";
/// RCS's rate at its best quality: too much for the slow stretch, and for two TCP flows beside.
const BEST_RATE: &str = "1.5 Mbit/s";

/// A scheme to be shown.
pub(super) struct Scheme {
    pub(super) name: String,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) label: String,
}

/// `rcs,rap:fine_grain=on,fixed` as schemes, each checked before anything is sent.
pub(super) fn schemes(names: &[String]) -> Outcome<Vec<Scheme>> {
    let mut out: Vec<Scheme> = Vec::new();
    for spec in join_settings(names) {
        let (name, mut settings) = split_settings("--control", &spec)?;
        let given = spec.split_once(':').map_or("", |(_, given)| given);
        if name == "rcs" {
            settings.entry("s_target".to_owned()).or_insert_with(|| BEST_RATE.to_owned());
            // The longest that is safe without feedback: Backoff halves S every T_B/4, so that the blackout of 3 s
            // costs no more than the halving of Detected.
            settings.entry("t_b".to_owned()).or_insert_with(|| "15 s".to_owned());
        }
        if name == "fixed" {
            settings.entry("rate".to_owned()).or_insert_with(|| FIXED_RATE.to_owned());
        }
        let env = fairpace_control::Env::default();
        fairpace_control::build(name, &settings, &env)?;
        let label = match (name, settings.get("rate")) {
            ("fixed", Some(rate)) => format!("Fixed {rate}"),
            _ if given.is_empty() => name.to_uppercase(),
            _ => format!("{} {given}", name.to_uppercase()),
        };
        if out.iter().any(|s| s.label == label) {
            return Err(Failure::usage(format!("`--control` names `{spec}` twice")).hint("name each scheme once"));
        }
        out.push(Scheme { name: name.to_owned(), settings, label });
    }
    if out.is_empty() {
        return Err(Failure::usage("`--control` is empty")
            .hint("name at least one controller, as in `--control rcs,rap,fixed`"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &str) -> Result<Vec<String>, String> {
        let names: Vec<String> = list.split(',').map(String::from).collect();
        schemes(&names).map(|s| s.into_iter().map(|s| s.label).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn schemes_are_named_for_people_and_checked_before_anything_is_sent() {
        assert_eq!(labels("rcs,rap,fixed").unwrap(), ["RCS", "RAP", "Fixed 500 kbit/s"]);
        assert_eq!(labels("fixed:rate=800 kbit/s").unwrap(), ["Fixed 800 kbit/s"]);
        assert!(labels("rcs,rcz").unwrap_err().contains("did you mean `rcs`?"));
        assert!(labels("rcs,rcs").unwrap_err().contains("twice"));
        assert!(labels("tcp-reno").unwrap_err().contains("in the simulator, the emulator and the relay only"));
    }
}
