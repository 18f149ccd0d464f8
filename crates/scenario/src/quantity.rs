//! Quantities as a scenario writes them: text with a unit, kept as written, checked when read.
//!
//! A value that exists is right by construction. The text is kept so that a scenario printed back
//! says what its author said.

use fairpace_control::feedback::Form;
use fairpace_path::Capacity;
use fairpace_units::{
    Bytes, Duration, Instant, Packets, ParseUnitError, Probability, Rate, RateSpec, exact_duration, parse_duration,
    parse_rate, parse_size,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::StrDeserializer;
use serde::de::{Error, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Parts of a message inside the one string that serde lets an error carry: what was found, what
/// is wrong with it, what is allowed. `error.rs` takes it apart again.
pub(super) const PART: char = '\u{1f}';

pub(super) fn refuse<E: Error>(found: &str, wrong: &str, allowed: &str) -> E {
    E::custom(format!("{found}{PART}{wrong}{PART}{allowed}"))
}

fn refuse_unit<E: Error>(error: ParseUnitError) -> E {
    refuse(&error.found, &format!("is not {}: {}", error.what, error.reason), error.allowed)
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $value:ty, $parse:expr, $write:expr, $expecting:literal, $format:literal, $pattern:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            value: $value,
            text: Cow<'static, str>,
        }

        impl $name {
            /// Reads the text.
            ///
            /// # Errors
            /// The text is not such a quantity.
            pub fn parse(text: impl Into<Cow<'static, str>>) -> Result<Self, ParseUnitError> {
                let text = text.into();
                let parse: fn(&str) -> Result<$value, ParseUnitError> = $parse;
                Ok($name { value: parse(&text)?, text })
            }

            /// The value.
            pub fn get(&self) -> $value {
                self.value
            }

            /// The text as written.
            pub fn text(&self) -> &str {
                &self.text
            }
        }

        impl From<$value> for $name {
            fn from(value: $value) -> Self {
                let write: fn($value) -> String = $write;
                $name { value, text: write(value).into() }
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.value == other.value
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text.to_owned()).map_err(refuse_unit)
                    }
                }
                d.deserialize_any(Text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $format, "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}

quantity!(
    /// A span of time: `550 ms`.
    Time, Duration, parse_duration, exact_duration, "a duration as text, such as \"550 ms\"", "fairpace-duration",
    "^[0-9.+eE-]+ *(ns|us|µs|ms|s|min|h)$|^0$", "550 ms"
);
quantity!(
    /// A rate in bits or packets per second: `10 Mbit/s`, `1300 pkt/s`.
    Speed, RateSpec, parse_rate, write_rate, "a rate as text, such as \"10 Mbit/s\"", "fairpace-rate",
    "^[0-9.+eE-]+ *((k|M|G)?(bit/s|bps)|k|M|G|pkt/s|packets/s|pps)$", "10 Mbit/s"
);
quantity!(
    /// A size: `1000 B`.
    Size, Bytes, parse_size, write_size, "a size as text, such as \"1000 B\"", "fairpace-size",
    "^[0-9.+eE-]+ *(B|bytes|kB|MB|KiB|MiB)$", "1000 B"
);
quantity!(
    /// The room of a queue: `50 pkt`, `64 kB`, or `unlimited`.
    Room, Capacity, parse_room, write_room, "a capacity as text, such as \"50 pkt\"", "fairpace-capacity",
    "^unlimited$|^[0-9.+eE-]+ *(pkt|packets|B|bytes|kB|MB|KiB|MiB)$", "50 pkt"
);
quantity!(
    /// When a receiver tells of packets: `every packet`, or every so often: `20 ms`; before that, or alone, the form in
    /// which it does: `ccfb 20 ms`.
    Feedback, FeedbackRule, parse_feedback, write_feedback, "\"every packet\" or an interval such as \"20 ms\"", "fairpace-feedback",
    "^([a-z][a-z-]* )?(every packet|[0-9.+eE-]+ *(ns|us|µs|ms|s|min|h))$|^[a-z][a-z-]*$", "every packet"
);

/// In the largest unit that keeps every digit of the number and leaves it at 1 or more.
fn write_rate(rate: RateSpec) -> String {
    match rate {
        RateSpec::PacketsPerSecond(n) => format!("{n} pkt/s"),
        RateSpec::Bits(rate) => {
            let bps = rate.as_bps();
            let exact = |each: f64| bps >= each && (bps / each) * each == bps;
            let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
            let (each, unit) = units.into_iter().find(|(each, _)| exact(*each)).unwrap_or((1.0, "bit/s"));
            format!("{} {unit}", bps / each)
        }
    }
}

fn write_size(size: Bytes) -> String {
    format!("{} B", size.get())
}

fn write_room(room: Capacity) -> String {
    match room {
        Capacity::Packets(n) => format!("{} pkt", n.get()),
        Capacity::Bytes(n) => write_size(n),
        Capacity::Unlimited => "unlimited".to_owned(),
    }
}

fn write_feedback(rule: FeedbackRule) -> String {
    let interval = rule.interval.map_or_else(|| "every packet".to_owned(), exact_duration);
    rule.form.map_or(interval.clone(), |form| format!("{form} {interval}"))
}

impl Default for Time {
    fn default() -> Time {
        Duration::ZERO.into()
    }
}

impl Default for Speed {
    fn default() -> Speed {
        Speed::bps(0.0)
    }
}

impl Time {
    /// So many seconds, to the nanosecond; 0 s for a negative number.
    pub fn seconds(s: f64) -> Time {
        Instant::from_secs_f64(s).since(Instant::ZERO).into()
    }

    /// So many milliseconds.
    pub fn ms(ms: f64) -> Time {
        Time::seconds(ms * 1e-3)
    }
}

impl Speed {
    /// So many bits per second.
    pub fn bps(bps: f64) -> Speed {
        RateSpec::Bits(Rate::bps(bps)).into()
    }

    /// So many thousand bits per second.
    pub fn kbps(kbps: f64) -> Speed {
        Speed::bps(kbps * 1e3)
    }

    /// So many packets per second, of the size that the scenario's or the flow's packets have.
    pub fn packets_per_second(n: f64) -> Speed {
        RateSpec::PacketsPerSecond(n).into()
    }
}

impl Size {
    /// So many bytes.
    pub fn bytes(n: u64) -> Size {
        Bytes::new(n).into()
    }
}

impl Room {
    /// So many packets, the one in transmission included.
    pub fn packets(n: u64) -> Room {
        Capacity::Packets(Packets::new(n)).into()
    }

    /// So many bytes.
    pub fn bytes(n: u64) -> Room {
        Capacity::Bytes(Bytes::new(n)).into()
    }

    /// No bound.
    pub fn unlimited() -> Room {
        Capacity::Unlimited.into()
    }
}

/// The words for a [`Count`]; `error.rs` adds the bounds of the field.
pub(super) const WHOLE: &str = "a whole number";

/// Reads one of the choices that an enum names; anything but text is refused with the choices.
pub(super) fn choice<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<T, D::Error> {
    struct Text<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Text<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            // Serde's message about an unknown name: "unknown variant ``, expected `a` or `b`".
            let nobody: StrDeserializer<'_, serde::de::value::Error> = "".into_deserializer();
            let said = T::deserialize(nobody).err().map_or_else(String::new, |e| e.to_string());
            f.write_str(said.split_once("expected ").map_or("text", |(_, names)| names))
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            T::deserialize(text.into_deserializer())
        }
    }
    d.deserialize_any(Text(std::marker::PhantomData))
}

/// The same where the field may be absent.
pub(super) fn choice_if_any<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<T>, D::Error> {
    choice(d).map(Some)
}

fn parse_room(text: &str) -> Result<Capacity, ParseUnitError> {
    let allowed = "write a whole number of pkt, or of B, kB, MB, KiB or MiB, as in `50 pkt`, or `unlimited`";
    let err = |reason| ParseUnitError { found: text.to_owned(), what: "a capacity", reason, allowed };
    let text = text.trim();
    if text == "unlimited" {
        return Ok(Capacity::Unlimited);
    }
    let room = match text.strip_suffix("packets").or_else(|| text.strip_suffix("pkt")) {
        Some(number) => {
            let n: u64 = number.trim().parse().map_err(|_| err("it is not a whole number of packets"))?;
            if n > 100_000_000 {
                return Err(err("it is above a hundred million packets"));
            }
            Capacity::Packets(Packets::new(n))
        }
        None => Capacity::Bytes(parse_size(text).map_err(|e| err(e.reason))?),
    };
    if matches!(room, Capacity::Packets(Packets::ZERO) | Capacity::Bytes(Bytes::ZERO)) {
        return Err(err("it is zero"));
    }
    Ok(room)
}

/// How a receiver tells of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackRule {
    /// The form; `None`: the one that the controller needs.
    pub form: Option<Form>,
    /// How often; `None`: with every packet.
    pub interval: Option<Duration>,
}

/// Where only the form is given.
const FEEDBACK_INTERVAL: Duration = Duration::from_millis(20);

fn parse_feedback(text: &str) -> Result<FeedbackRule, ParseUnitError> {
    let trimmed = text.trim();
    let (first, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
    match first.parse::<Form>() {
        Ok(form) if rest.is_empty() => Ok(FeedbackRule { form: Some(form), interval: Some(FEEDBACK_INTERVAL) }),
        Ok(form) => parse_interval(text, rest.trim()).map(|interval| FeedbackRule { form: Some(form), interval }),
        Err(_) => parse_interval(text, trimmed).map(|interval| FeedbackRule { form: None, interval }),
    }
}

/// `whole`: what stands in the file.
fn parse_interval(whole: &str, text: &str) -> Result<Option<Duration>, ParseUnitError> {
    if text == "every packet" {
        return Ok(None);
    }
    let allowed = "write `every packet`, or an interval of 1 ms to 10 s, as in `20 ms`";
    let err = |reason| ParseUnitError { found: whole.to_owned(), what: "a feedback interval", reason, allowed };
    let interval = parse_duration(text).map_err(|e| err(e.reason))?;
    if interval < Duration::from_millis(1) || interval > Duration::from_secs(10) {
        return Err(err("it is not between 1 ms and 10 s"));
    }
    Ok(Some(interval))
}

/// A probability as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chance(Probability);

impl Chance {
    /// Never.
    pub const ZERO: Chance = Chance(Probability::ZERO);

    /// From a number in [0, 1].
    pub fn new(p: f64) -> Option<Chance> {
        Probability::new(p).ok().map(Chance)
    }

    /// The probability.
    pub fn get(self) -> Probability {
        self.0
    }
}

impl Serialize for Chance {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0.get())
    }
}

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Chance;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability as a number from 0 to 1, such as 0.001")
            }
            fn visit_f64<E: Error>(self, p: f64) -> Result<Chance, E> {
                Chance::new(p).ok_or_else(|| {
                    refuse(&p.to_string(), "is not a probability", "write a number from 0 to 1, such as 0.001")
                })
            }
            fn visit_i64<E: Error>(self, p: i64) -> Result<Chance, E> {
                self.visit_f64(p as f64)
            }
            fn visit_u64<E: Error>(self, p: u64) -> Result<Chance, E> {
                self.visit_f64(p as f64)
            }
        }
        d.deserialize_any(Number)
    }
}

impl JsonSchema for Chance {
    fn schema_name() -> Cow<'static, str> {
        "Chance".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "format": "fairpace-probability", "minimum": 0, "maximum": 1, "examples": [0.001] })
    }
}

/// A number that may be anything finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Real(f64);

impl Real {
    /// The number; zero for what is not finite.
    pub fn new(x: f64) -> Real {
        Real(if x.is_finite() { x } else { 0.0 })
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Real;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, such as 0.35")
            }
            fn visit_f64<E: Error>(self, x: f64) -> Result<Real, E> {
                if x.is_finite() {
                    Ok(Real(x))
                } else {
                    Err(refuse(&x.to_string(), "is not a number", "write a finite one"))
                }
            }
            fn visit_i64<E: Error>(self, x: i64) -> Result<Real, E> {
                self.visit_f64(x as f64)
            }
            fn visit_u64<E: Error>(self, x: u64) -> Result<Real, E> {
                self.visit_f64(x as f64)
            }
        }
        d.deserialize_any(Number)
    }
}

impl JsonSchema for Real {
    fn schema_name() -> Cow<'static, str> {
        "Real".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// A whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
    /// From a number. Whether the number is within the bounds of its field is checked with the scenario.
    pub const fn new(n: u64) -> Self {
        Count(n)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(WHOLE)
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<Count, E> {
                Ok(Count(n))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Count, E> {
                u64::try_from(n).map(Count).map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
            }
        }
        d.deserialize_any(Number)
    }
}
