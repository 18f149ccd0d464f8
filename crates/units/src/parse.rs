//! Quantities as people write them: `550 ms`, `1300 pkt/s`, `2.5 Mbit/s`, `1000 B`.

use crate::{Bytes, Duration, Instant, Rate};

/// Why a quantity could not be read: what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not {what}: {reason}; {allowed}")]
pub struct ParseUnitError {
    /// The text as given.
    pub found: String,
    /// The expected kind of value, with its article: "a duration".
    pub what: &'static str,
    /// The reason for which the text was refused.
    pub reason: &'static str,
    /// The texts that would have been accepted.
    pub allowed: &'static str,
}

/// A rate as a scenario gives it: in bits, or in packets whose size the flow knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateSpec {
    /// Bits per second.
    Bits(Rate),
    /// Packets per second.
    PacketsPerSecond(f64),
}

impl RateSpec {
    /// The rate, for packets of `size`.
    pub fn with_packets_of(self, size: Bytes) -> Rate {
        match self {
            RateSpec::Bits(rate) => rate,
            RateSpec::PacketsPerSecond(pps) => Rate::packets_per_second(pps, size),
        }
    }
}

const DURATIONS: &str = "write a number and ns, us, ms, s, min or h, as in `550 ms`";
const RATES: &str = "write a number and bit/s, kbit/s, Mbit/s, Gbit/s (or k, M, G) or pkt/s, as in `2.5 Mbit/s`";
const SIZES: &str = "write a number and B, kB, MB, KiB or MiB, as in `1000 B`";

/// Reads a duration, unit required (`0` needs none).
///
/// # Errors
/// [`ParseUnitError`] if there is no finite, non-negative number followed by a time unit.
///
/// ```
/// use fairpace_units::{Duration, parse_duration};
/// assert_eq!(parse_duration("550 ms"), Ok(Duration::from_millis(550)));
/// assert!(parse_duration("550").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    let err = |reason| ParseUnitError { found: text.to_owned(), what: "a duration", reason, allowed: DURATIONS };
    let (number, unit) = split(text).map_err(err)?;
    let seconds = match unit {
        "ns" => number * 1e-9,
        "us" | "µs" => number * 1e-6,
        "ms" => number * 1e-3,
        "s" => number,
        "min" => number * 60.0,
        "h" => number * 3_600.0,
        "" if number == 0.0 => 0.0,
        "" => return Err(err("it has no unit")),
        _ => return Err(err("the unit is not a time")),
    };
    if seconds > 1e9 {
        return Err(err("it is longer than 31 years"));
    }
    Ok(Instant::from_secs_f64(seconds).since(Instant::ZERO))
}

/// Reads a rate, unit required.
///
/// # Errors
/// [`ParseUnitError`] if there is no finite, non-negative number followed by a rate unit.
pub fn parse_rate(text: &str) -> Result<RateSpec, ParseUnitError> {
    let err = |reason| ParseUnitError { found: text.to_owned(), what: "a rate", reason, allowed: RATES };
    let (number, unit) = split(text).map_err(err)?;
    let bps = match unit {
        "bit/s" | "bps" => number,
        "kbit/s" | "kbps" | "k" => number * 1e3,
        "Mbit/s" | "Mbps" | "M" => number * 1e6,
        "Gbit/s" | "Gbps" | "G" => number * 1e9,
        "pkt/s" | "packets/s" | "pps" => return Ok(RateSpec::PacketsPerSecond(number)),
        "" => return Err(err("it has no unit")),
        _ => return Err(err("the unit is not a rate")),
    };
    if bps > Rate::MAX.as_bps() {
        return Err(err("it is above 1 Pbit/s"));
    }
    Ok(RateSpec::Bits(Rate::bps(bps)))
}

/// Reads a size in bytes, unit required.
///
/// # Errors
/// [`ParseUnitError`] if there is no finite, non-negative number followed by a size unit.
pub fn parse_size(text: &str) -> Result<Bytes, ParseUnitError> {
    let err = |reason| ParseUnitError { found: text.to_owned(), what: "a size", reason, allowed: SIZES };
    let (number, unit) = split(text).map_err(err)?;
    let bytes = match unit {
        "B" | "bytes" => number,
        "kB" => number * 1e3,
        "MB" => number * 1e6,
        "KiB" => number * 1_024.0,
        "MiB" => number * 1_048_576.0,
        "" => return Err(err("it has no unit")),
        _ => return Err(err("the unit is not a size")),
    };
    if bytes.fract() != 0.0 || bytes > 1e15 {
        return Err(err("it is not a whole number of bytes below 1 PB"));
    }
    Ok(Bytes::new(bytes as u64))
}

/// A number and what follows it. Only digits, one point and an exponent count as a number, so
/// that `nan`, `inf` and digits of other scripts are refused.
fn split(text: &str) -> Result<(f64, &str), &'static str> {
    let text = text.trim();
    let mut end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+')).unwrap_or(text.len());
    let rest = text.get(end..).unwrap_or_default();
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let digits = exponent.trim_start_matches(['-', '+']);
        let n = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if n > 0 {
            end += 1 + (exponent.len() - digits.len()) + n;
        }
    }
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| "it does not begin with a number")?;
    if number.is_sign_negative() && number != 0.0 {
        return Err("it is negative");
    }
    if !number.is_finite() {
        return Err("it is too large");
    }
    Ok((number, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{exact_duration, format_duration, format_rate};

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!(parse_duration("550 ms"), Ok(Duration::from_millis(550)));
        assert_eq!(parse_duration("1.5e-3s"), Ok(Duration::from_micros(1_500)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_rate("2.5M"), Ok(RateSpec::Bits(Rate::mbps(2.5))));
        assert_eq!(parse_rate("1300 pkt/s"), Ok(RateSpec::PacketsPerSecond(1_300.0)));
        assert_eq!(parse_size("1000 B"), Ok(Bytes::new(1_000)));
        assert_eq!(parse_size("16 KiB"), Ok(Bytes::new(16_384)));
    }

    #[test]
    fn nonsense_is_refused_with_the_reason_and_what_is_allowed() {
        for bad in ["", "ms", "-1 ms", "nan s", "inf s", "5 parsec", "1e400 s", "٣ s", "5", "1..2 s"] {
            let error = parse_duration(bad).unwrap_err().to_string();
            assert!(error.contains("as in `550 ms`"), "{bad}: {error}");
        }
        assert_eq!(
            parse_rate("10 ms").unwrap_err().to_string(),
            "`10 ms` is not a rate: the unit is not a rate; write a number and bit/s, kbit/s, \
             Mbit/s, Gbit/s (or k, M, G) or pkt/s, as in `2.5 Mbit/s`"
        );
        assert!(parse_size("0.5 B").is_err());
    }

    #[test]
    fn what_is_printed_reads_back() {
        for bps in [0.0, 999.0, 1_500.0, 64e3, 2.5e6, 10.4e6, 1e9] {
            assert_eq!(parse_rate(&format_rate(Rate::bps(bps))), Ok(RateSpec::Bits(Rate::bps(bps))));
        }
        assert_eq!(format_duration(Duration::from_millis(550)), "550 ms");
        assert_eq!(format_duration(Duration::from_millis(12_500)), "12.5 s");
        for (ns, text) in [(0, "0 s"), (1, "1 ns"), (12_500_000_000, "12500 ms"), (7_200_000_000_000, "2 h")] {
            assert_eq!(exact_duration(Duration::from_nanos(ns)), text);
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)));
        }
    }
}
