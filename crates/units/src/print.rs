//! Quantities for people: four digits at most, in the unit that makes them short.

use crate::Duration;

/// A duration for people: `550 ms`, `12.5 s`.
pub fn format_duration(d: Duration) -> String {
    let s = d.as_secs_f64();
    match s {
        0.0 => "0 s".to_owned(),
        s if s >= 1.0 => format!("{} s", short(s)),
        s if s >= 1e-3 => format!("{} ms", short(s * 1e3)),
        s if s >= 1e-6 => format!("{} us", short(s * 1e6)),
        s => format!("{} ns", short(s * 1e9)),
    }
}

/// The same with every digit, in the largest unit that has no fraction: `12500 ms`, `1 h`.
pub fn exact_duration(d: Duration) -> String {
    const UNITS: [(u128, &str); 5] =
        [(3_600_000_000_000, "h"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let ns = d.as_nanos();
    let (each, unit) = UNITS.into_iter().find(|(each, _)| ns > 0 && ns.is_multiple_of(*each)).unwrap_or(UNITS[1]);
    format!("{} {unit}", ns / each)
}

/// Four significant digits at most, without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let digits = if value >= 1_000.0 {
        0
    } else if value >= 100.0 {
        1
    } else if value >= 10.0 {
        2
    } else {
        3
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
