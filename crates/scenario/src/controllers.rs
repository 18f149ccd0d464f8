//! The names that `flows[].controller` may have, and what stands behind them: the registry of media
//! controllers, the simulator's TCP, and no control at all.

mod build;

pub(crate) use build::refused;
pub use build::{BadParameter, build, defaults, env, packet_size, safety, simulated, uses_quick_start};

use crate::Problem;
use fairpace_control::Allowed;

/// TCP in three variants.
pub const TCP: [&str; 3] = ["tcp-reno", "tcp-newreno", "tcp-sack"];
/// TCP of the kernel's only: these run in the emulator, and nowhere else.
pub const KERNEL_TCP: [&str; 2] = ["tcp-cubic", "tcp-bbr"];
/// Packets at a fixed rate, no feedback: background traffic.
pub const CONSTANT: &str = "constant";

/// The kind of flow that a controller makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A media controller of the registry.
    Media,
    /// The simulator's TCP.
    Tcp,
    /// Background traffic without feedback.
    Constant,
}

/// Every name there is, media controllers first.
pub fn names() -> Vec<&'static str> {
    fairpace_control::schemes().iter().map(|s| s.name).chain(TCP).chain(KERNEL_TCP).chain([CONSTANT]).collect()
}

/// The kind of flow that the name makes, if it names a controller at all.
pub fn family(name: &str) -> Option<Family> {
    if TCP.contains(&name) || KERNEL_TCP.contains(&name) {
        Some(Family::Tcp)
    } else if name == CONSTANT {
        Some(Family::Constant)
    } else {
        fairpace_control::schemes().iter().any(|s| s.name == name).then_some(Family::Media)
    }
}

/// A name that no controller has.
pub(crate) fn unknown(field: &str, found: &str) -> Problem {
    Problem::UnknownName {
        field: field.to_owned(),
        found: found.to_owned(),
        what: "a controller",
        allowed: names().into_iter().map(str::to_owned).collect(),
        list: Some("fairpace list controllers"),
    }
}

/// Whether a media controller sends over a TCP of the flow's own too.
pub fn has_tcp(controller: &str) -> bool {
    controller == fairpace_control::tpba::INFO.name
}

/// Whether the refused setting is one of the flow's own limits and not a parameter.
pub fn is_limit(name: &str) -> bool {
    matches!(name, "min_rate" | "max_rate" | "start_rate" | "packet_size")
}

/// The names of a controller's parameters.
pub fn parameter_names(controller: &str) -> Vec<&'static str> {
    let scheme = fairpace_control::schemes().iter().find(|s| s.name == controller);
    scheme.map_or(Vec::new(), |s| s.params.iter().map(|p| p.name).collect())
}

/// Whether the parameter of that name is a whole number, with every controller that has one.
pub(crate) fn is_whole(parameter: &str) -> bool {
    let schemes = fairpace_control::schemes().iter();
    let mut found = schemes.flat_map(|s| s.params.iter()).filter(|p| p.name == parameter).peekable();
    found.peek().is_some() && found.all(|p| p.allowed.iter().any(|a| matches!(a, Allowed::Whole(..))))
}

/// Every controller's parameters in one text, for the schema.
pub fn parameters_text() -> String {
    let mut text = String::from("The controller's own parameters, by name.");
    for scheme in fairpace_control::schemes() {
        let params: Vec<String> =
            scheme.params.iter().map(|p| format!("{} ({}; default {})", p.name, p.doc, p.default)).collect();
        text.push_str(&format!(
            " {}: {}.",
            scheme.name,
            if params.is_empty() { "none".to_owned() } else { params.join(", ") }
        ));
    }
    text
}
