//! Recorded capacity: mahimahi's delivery opportunities, and CSV tables of a rate over time.
//!
//! A trace is read from text that the caller has in hand; an error names the line, what was found
//! and what is allowed, and leaves the file's name to the caller. Both kinds repeat when they end.

use crate::steps::{Steps, rate_of_units, rate_units};
use fairpace_units::{Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;

/// A recording that a link can follow. Share it: [`crate::RateModel::Trace`] takes an `Arc`.
#[derive(Clone, PartialEq, Hash)]
pub struct Trace {
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) enum Shape {
    Steps(Arc<Steps>),
    Opportunities(Arc<Opportunities>),
}

/// The treatment of gaps in a CSV trace. A gap is where two samples are further apart than one and a half times the
/// median distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Gaps {
    /// The last rate stays until the next sample.
    #[default]
    Hold,
    /// The last rate stays for one median distance, then nothing passes until the next sample.
    Zero,
    /// The gap is shortened to one median distance, as if it had not been.
    Cut,
}

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The line, from one; `None` if it is the file as a whole.
    pub line: Option<usize>,
    /// The problem, with the text that was found.
    pub problem: String,
    /// The text that would have been accepted.
    pub allowed: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}; {}", self.problem, self.allowed)
    }
}

/// The bytes that one delivery opportunity of a mahimahi trace carries.
pub(crate) const OPPORTUNITY_BYTES: u64 = 1_500;

const MAHIMAHI: &str = "a mahimahi trace has one delivery opportunity per line, its time in whole milliseconds \
                        (0 to 4294967295), none earlier than the one before, the last after 0";
const CSV_TIME: &str = "a time is a number of seconds (or of milliseconds, if the column's name ends in `_ms`) \
                        from 0 to 1e9, none earlier than the one before";
const CSV_RATE: &str = "a rate is a number of Mbit/s (or of kbit/s or bit/s, if the column's name ends in `_kbps` \
                        or `_bps`) from 0 to 1 Pbit/s";
const CSV: &str = "a CSV trace has a header line, then at least two lines with different times; the first column is \
                   the time";

impl Trace {
    /// Reads mahimahi's format: one opportunity of 1,500 bytes per line, its time in milliseconds.
    ///
    /// # Errors
    /// [`TraceError`] for an empty file, an empty line, anything but a whole number, a time
    /// earlier than the one before, and a recording that lasts 0 ms.
    ///
    /// ```
    /// use fairpace_path::Trace;
    /// let trace = Trace::parse_mahimahi("5\n5\n10\n")?; // 3 × 1,500 bytes each 10 ms
    /// assert_eq!(trace.mean_rate().to_string(), "3.6 Mbit/s");
    /// let error = Trace::parse_mahimahi("5\n4\n").unwrap_err();
    /// assert!(error.to_string().starts_with("line 2: `4` is earlier than the `5` before it; "));
    /// # Ok::<(), fairpace_path::TraceError>(())
    /// ```
    pub fn parse_mahimahi(text: &str) -> Result<Trace, TraceError> {
        let error = |line, problem| TraceError { line, problem, allowed: MAHIMAHI.to_owned() };
        let mut times: Vec<u32> = Vec::new();
        for (number, line) in lines(text) {
            let found = line.trim();
            let digits = !found.is_empty() && found.bytes().all(|b| b.is_ascii_digit());
            let time = match found.parse::<u32>() {
                Ok(time) if digits => time,
                _ if found.is_empty() => return Err(error(Some(number), "the line is empty".to_owned())),
                _ if digits => return Err(error(Some(number), format!("{} is too large", quote(found)))),
                _ => return Err(error(Some(number), format!("{} is not a whole number", quote(found)))),
            };
            if let Some(&last) = times.last()
                && time < last
            {
                return Err(error(Some(number), format!("`{time}` is earlier than the `{last}` before it")));
            }
            times.push(time);
        }
        match times.last() {
            None => Err(error(None, "the trace is empty".to_owned())),
            Some(0) => Err(error(None, "the trace lasts 0 ms".to_owned())),
            Some(_) => Ok(Trace { shape: Shape::Opportunities(Arc::new(Opportunities { times })) }),
        }
    }

    /// Reads a table of a rate over time: the first column is the time, `column` names the rate.
    ///
    /// Lines are separated by line ends, columns by commas; lines that begin with `#` are
    /// skipped. Without a header line the columns are called `1`, `2`, … Each rate holds from its
    /// time on until the next; of two samples of the same time the later line counts; the
    /// recording is moved to begin at 0, and its last sample holds for the median distance of the
    /// samples.
    ///
    /// # Errors
    /// [`TraceError`] for a missing column, a missing, negative, infinite or unreadable number, a
    /// time earlier than the one before, fewer than two times, and rates that are all zero.
    pub fn parse_csv(text: &str, column: &str, gaps: Gaps) -> Result<Trace, TraceError> {
        let whole = |problem: &str| TraceError { line: None, problem: problem.to_owned(), allowed: CSV.to_owned() };
        let mut rows = lines(text).filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty()).peekable();
        let Some(&(header_line, header)) = rows.peek() else { return Err(whole("the trace is empty")) };
        let has_header = cells(header).next().is_some_and(|first| first.parse::<f64>().is_err());
        let names: Vec<String> = if has_header {
            rows.next();
            cells(header).map(str::to_owned).collect()
        } else {
            (1..=cells(header).count()).map(|n| n.to_string()).collect()
        };
        let rate_column = match names.iter().position(|name| name == column) {
            Some(place) if place > 0 => place,
            _ => {
                let others: Vec<String> = names.iter().skip(1).map(|name| quote(name)).collect();
                let allowed = match others.is_empty() {
                    true => CSV.to_owned(),
                    false => format!("the rates are in {}", others.join(", ")),
                };
                let problem = format!("there is no rate column {}", quote(column));
                return Err(TraceError { line: Some(header_line), problem, allowed });
            }
        };
        let time_unit = if names.first().is_some_and(|name| name.ends_with("_ms")) { 1e-3 } else { 1.0 };
        let rate_unit = match column {
            c if c.ends_with("_kbps") => 1e3,
            c if c.ends_with("_bps") => 1.0,
            _ => 1e6,
        };

        // Seconds since the first sample, and its rate.
        let mut samples: Vec<(u64, u64)> = Vec::new();
        let mut first_time = None;
        let mut last_text = "";
        for (line, row) in rows {
            let error = |problem, allowed: &str| TraceError { line: Some(line), problem, allowed: allowed.to_owned() };
            let cell = |place: usize, what: &str, allowed: &str| match cells(row).nth(place) {
                None | Some("") => Err(error(format!("the {what} is missing"), allowed)),
                Some(text) => match text.parse::<f64>() {
                    Ok(value) if value.is_finite() && value >= 0.0 => Ok((text, value)),
                    Ok(value) if value.is_finite() => {
                        Err(error(format!("the {what} {} is negative", quote(text)), allowed))
                    }
                    _ => Err(error(format!("the {what} {} is not a finite number", quote(text)), allowed)),
                },
            };
            let (time_text, time) = cell(0, "time", CSV_TIME)?;
            let (rate_text, rate) = cell(rate_column, "rate", CSV_RATE)?;
            if time * time_unit > 1e9 {
                return Err(error(format!("the time {} is too large", quote(time_text)), CSV_TIME));
            }
            if rate * rate_unit > Rate::MAX.as_bps() {
                return Err(error(format!("the rate {} is too large", quote(rate_text)), CSV_RATE));
            }
            let nanos = Instant::from_secs_f64(time * time_unit).as_nanos();
            let Some(at) = nanos.checked_sub(*first_time.get_or_insert(nanos)) else {
                return Err(backwards(line, time_text, last_text));
            };
            let sample = (at, rate_units(Rate::bps(rate * rate_unit)));
            match samples.last_mut() {
                Some(last) if last.0 > at => return Err(backwards(line, time_text, last_text)),
                Some(last) if last.0 == at => *last = sample,
                _ => samples.push(sample),
            }
            last_text = time_text;
        }
        if samples.len() < 2 {
            return Err(whole("there are fewer than two samples"));
        }
        let (entries, period) = close_gaps(&samples, gaps);
        let steps = Steps::new(entries, Some(period)).ok_or_else(|| whole("every rate is zero"))?;
        Ok(Trace { shape: Shape::Steps(Arc::new(steps)) })
    }

    /// How long it lasts before it begins again.
    pub fn duration(&self) -> Duration {
        match &self.shape {
            Shape::Steps(s) => Duration::from_nanos(s.period.unwrap_or(u64::MAX)),
            Shape::Opportunities(o) => Duration::from_nanos(o.period()),
        }
    }

    /// The delivery opportunities of one repetition of a mahimahi trace, each 1,500 bytes, in milliseconds; `None` for
    /// a table of rates.
    pub fn opportunities(&self) -> Option<&[u32]> {
        match &self.shape {
            Shape::Opportunities(o) => Some(&o.times),
            Shape::Steps(_) => None,
        }
    }

    /// The bytes that one repetition carries, divided by its length; of a trace that carries any, no less than the smallest rate.
    pub fn mean_rate(&self) -> Rate {
        match &self.shape {
            Shape::Steps(s) => {
                let units = (s.work_per_period / u128::from(s.period.unwrap_or(u64::MAX))) as u64;
                rate_of_units(units.max(u64::from(s.work_per_period > 0)))
            }
            Shape::Opportunities(o) => {
                let bits = (o.times.len() as u64 * OPPORTUNITY_BYTES * 8) as f64;
                Rate::bps(bits * 1e9 / o.period() as f64)
            }
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, n) = match &self.shape {
            Shape::Steps(s) => ("steps", s.len()),
            Shape::Opportunities(o) => ("opportunities", o.times.len()),
        };
        write!(f, "Trace({n} {kind}, {} s, mean {})", self.duration().as_secs_f64(), self.mean_rate())
    }
}

fn backwards(line: usize, found: &str, before: &str) -> TraceError {
    let problem = format!("the time {} is earlier than the {} before it", quote(found), quote(before));
    TraceError { line: Some(line), problem, allowed: CSV_TIME.to_owned() }
}

/// Lines with their numbers, without the byte-order mark and carriage returns that some programs
/// write.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate().map(|(i, line)| (i + 1, line))
}

fn cells(row: &str) -> impl Iterator<Item = &str> {
    row.split(',').map(str::trim)
}

/// Text from a file, short and printable enough for a message.
fn quote(text: &str) -> String {
    const LONGEST: usize = 40;
    let shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let dots = if text.chars().count() > LONGEST { "…" } else { "" };
    format!("`{shown}{dots}`")
}

/// The steps of at least two samples, with the gaps treated, and the time after which they repeat.
fn close_gaps(samples: &[(u64, u64)], gaps: Gaps) -> (Vec<(u64, u64)>, u64) {
    let mut distances: Vec<u64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let middle = distances.len() / 2;
    let median = *distances.select_nth_unstable(middle).1;
    let mut entries = Vec::with_capacity(samples.len());
    let mut cut = 0;
    for (i, &(at, rate)) in samples.iter().enumerate() {
        let at = at - cut;
        entries.push((at, rate));
        if let Some(&(next, _)) = samples.get(i + 1)
            && next - cut - at > median + median / 2
        {
            match gaps {
                Gaps::Hold => {}
                Gaps::Zero => entries.push((at + median, 0)),
                Gaps::Cut => cut += next - cut - at - median,
            }
        }
    }
    let end = entries.last().map_or(0, |&(at, _)| at) + median;
    (entries, end)
}

/// Instants at which 1,500 bytes may leave; repeating.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct Opportunities {
    /// Milliseconds since the beginning of the repetition, never decreasing; the last is not zero
    /// and is where the next repetition begins.
    times: Vec<u32>,
}

const NS_PER_MS: u64 = 1_000_000;

impl Opportunities {
    fn period(&self) -> u64 {
        self.times.last().map_or(u64::MAX, |&ms| u64::from(ms) * NS_PER_MS)
    }

    pub(crate) fn instant(&self, base: u64, index: usize) -> Instant {
        Instant::from_nanos(base.saturating_add(u64::from(self.times[index]) * NS_PER_MS))
    }

    /// The opportunity after that one.
    pub(crate) fn following(&self, base: u64, index: usize) -> (u64, usize) {
        if index + 1 < self.times.len() { (base, index + 1) } else { (base.saturating_add(self.period()), 0) }
    }

    /// The first opportunity after `now`, not before the given one.
    pub(crate) fn first_after(&self, now: Instant, base: u64, index: usize) -> (u64, usize) {
        // Nearly always it is the next one or close to it.
        let (mut base, mut index) = (base, index);
        for _ in 0..4 {
            if self.instant(base, index) > now {
                return (base, index);
            }
            (base, index) = self.following(base, index);
        }
        let Some(since_base) = now.as_nanos().checked_sub(base) else { return (base, index) };
        base += since_base / self.period() * self.period();
        let since_base = now.as_nanos() - base;
        let place = self.times.partition_point(|&ms| u64::from(ms) * NS_PER_MS <= since_base);
        if place < self.times.len() { (base, place) } else { self.following(base, self.times.len() - 1) }
    }

    /// How many there are up to `now` and at it.
    pub(crate) fn count_until(&self, now: Instant) -> u64 {
        let (repetitions, rest) = (now.as_nanos() / self.period(), now.as_nanos() % self.period());
        let here = self.times.partition_point(|&ms| u64::from(ms) * NS_PER_MS <= rest);
        repetitions.saturating_mul(self.times.len() as u64).saturating_add(here as u64)
    }

    /// The mean rate over the second around `now` (over the first second, at the beginning).
    pub(crate) fn rate_around(&self, now: Instant) -> Rate {
        let from = now - Duration::from_millis(500);
        let to = from + Duration::from_secs(1);
        let n = self.count_until(to).saturating_sub(self.count_until(from));
        Rate::bps((n * OPPORTUNITY_BYTES * 8) as f64)
    }
}
