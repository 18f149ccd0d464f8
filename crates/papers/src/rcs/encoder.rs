//! A real encoder behind RCS: R(t), S(t), the buffer between them [rcs §III-F, Figs. 6 to 10].
//!
//! The encoder runs twice for each seed of the random loss: following S(t) [rcs Figs. 6(b), 10], and at one rate [rcs Fig. 6(a)]. The paper does not give that rate: here it is
//! the mean of S(t), so that only the changes of S(t) fill the buffer.

use super::readings::{FILM, VP8, VP8_WHOLE};
use super::traces::{Trace, traces};
use crate::builtin::base;
use crate::figure::{point, table, text};
use crate::{Bench, Bound, Claim, Effort, Encoder, Experiment, Footage, Outcome, Point, Tools};
use fairpace_lab::stats::{Estimate, short};
use fairpace_lab::{RunError, pool};
use fairpace_media::buffer_model::{self, Buffer, BufferSample};
use fairpace_report::{Axis, Chart, Series};
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// Sizes of the buffer of Fig. 6(b): as printed, and the one that its delays need.
const PRINTED_BITS: f64 = 16e3;
const READ_BITS: f64 = 16e6;

/// Seeds of the random loss, and so of S(t), of a full run. An encoder takes a hundred times as long as a simulation: a usual run has one.
const SEEDS_FULL: usize = 5;

/// S(t) of a seed, from the first moment data may leave: from then on time counts, as the encoder starts when RCS lets it.
struct Course {
    steps: Vec<(Instant, Rate)>,
    length: Duration,
    /// The mean of S(t), all the time.
    one_rate: Vec<(Instant, Rate)>,
}

impl Course {
    /// None if the flow sent nothing.
    fn of(trace: &Trace, end: Instant, interval: Duration) -> Option<Course> {
        let s_of_t = sending(trace);
        let &(start, _) = s_of_t.first()?;
        let steps: Vec<_> = s_of_t.iter().map(|&(t, rate)| (Instant::ZERO + t.since(start), rate)).collect();
        let length = end.since(start);
        // Without an encoder: the mean of S(t).
        let sent = buffer_model::run(&[], interval, &steps, Buffer::None, Instant::ZERO + length);
        let one_rate = sent.last().map(|s| (Instant::ZERO, s.mu_s)).into_iter().collect();
        Some(Course { steps, length, one_rate })
    }
}

/// A seed: the pictures of an encoder that follows, and what became of its buffers.
struct Seed {
    course: Course,
    frames: Vec<(Instant, Bytes)>,
    buffers: Buffers<'static>,
}

impl Seed {
    fn new(
        course: Course,
        frames: Vec<(Instant, Bytes)>,
        at_one_rate: &[(Instant, Bytes)],
        interval: Duration,
    ) -> Seed {
        let run = |frames: &[_], buffer| {
            buffer_model::run(frames, interval, &course.steps, buffer, Instant::ZERO + course.length)
        };
        let buffers = [
            ("none", run(&frames, Buffer::None)),
            ("16 kbit", run(&frames, Buffer::Bits(PRINTED_BITS))),
            ("16 Mbit", run(&frames, Buffer::Bits(READ_BITS))),
            ("16 Mbit, one rate", run(at_one_rate, Buffer::Bits(READ_BITS))),
        ];
        Seed { course, frames, buffers }
    }

    fn buffer(&self, n: usize) -> &[BufferSample] {
        &self.buffers[n].1
    }
}

/// The places among a seed's buffers.
const NONE: usize = 0;
/// See [`NONE`].
const READ: usize = 2;
/// See [`NONE`].
const ONE_RATE: usize = 3;

pub(super) fn fig7_9(e: &Experiment, bench: &mut Bench<'_>, tools: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let section = e.section();
    let not_run = |why: String| {
        let section = e.section().text(format!("Not run: {why}."));
        Outcome { experiment: e.id.to_owned(), not_run: Some(why), section, ..Outcome::default() }
    };
    let interval = tools.frame_interval;
    let encoder = match (tools.reading.has(VP8), tools.reading.has(VP8_WHOLE)) {
        (true, _) => Encoder::Vp8,
        (_, true) => Encoder::Vp8Whole,
        _ => Encoder::Mpeg2,
    };
    let (footage, of) = match tools.reading.has(FILM) {
        true => (Footage::Film, format!("a film of {} and others", tools.clip_name)),
        false => (Footage::Clip, tools.clip_name.clone()),
    };
    let name = format!("{} of {of}", encoder.name());
    let Some(encode) = &tools.encoder else {
        return Ok(not_run("it needs a real encoder; build with the `gst` feature".to_owned()));
    };
    let scenario = base(e);
    let end = Instant::ZERO + scenario.duration.get();
    let seeds = if bench.effort() == Effort::Quick { 1 } else { bench.seeds(1, SEEDS_FULL).max(1) };
    let courses: Option<Vec<Course>> =
        traces(e, bench, seeds)?.iter().map(|trace| Course::of(trace, end, interval)).collect();
    let Some(courses) = courses else { return Ok(not_run("the flow sent nothing".to_owned())) };
    let of = |(n, course): (usize, &Course)| [false, true].map(|one_rate| (n, one_rate, course.length));
    let jobs: Vec<(usize, bool, Duration)> = courses.iter().enumerate().flat_map(of).collect();
    let label = |(n, _, length): &(usize, bool, Duration)| {
        format!("{} encoding {} s as {name}, seed {}", e.id, length.as_secs(), n + 1)
    };
    let encoded = pool::map(&jobs, bench.hooks(), label, |&(n, one_rate, length)| {
        let rates = if one_rate { &courses[n].one_rate } else { &courses[n].steps };
        encode(encoder, footage, rates, length)
    });
    let encoded = match encoded {
        Ok(all) => all.into_iter().collect::<Option<Vec<_>>>().ok_or(RunError::Interrupted)?,
        Err(why) => return Ok(not_run(why)),
    };
    let mut encoded = encoded.into_iter();
    let mut all = Vec::new();
    for course in courses {
        let (Some(frames), Some(at_one_rate)) = (encoded.next(), encoded.next()) else { break };
        all.push(Seed::new(course, frames, &at_one_rate, interval));
    }
    let Some(first) = all.first() else { return Err(RunError::Interrupted) };
    let (claims, points) = (claims(e, &all), points(&all));
    let seed = scenario.seed.get();
    let length_s = first.course.length.as_secs_f64();
    let caption = format!("{}, flow 1; {name}, {length_s:.0} s", e.file);
    let section = charts(section, &format!("{caption}; seed {seed}, {} pictures", first.frames.len()), first);
    let section = section.table(worst(&all, format!("{caption}; {seeds} seeds from seed {seed} on")));
    Ok(e.outcome(points, claims, section))
}

/// S(t) from the first moment data may leave.
fn sending(trace: &Trace) -> Vec<(Instant, Rate)> {
    let first = trace.first_entry("Steady").unwrap_or(f64::MAX);
    let mut now = 0.0;
    let mut steps = Vec::new();
    for &(t, pps) in &trace.rate {
        if t < first {
            now = pps;
            continue;
        }
        if steps.is_empty() && t > first && now > 0.0 {
            steps.push((Instant::from_secs_f64(first), to_rate(now)));
        }
        steps.push((Instant::from_secs_f64(t), to_rate(pps)));
    }
    steps
}

fn to_rate(pps: f64) -> Rate {
    Rate::packets_per_second(pps, Bytes::new(1_000))
}

/// d(t) in seconds; where S(t) stays zero, of no use as a number.
fn delay_s(s: &BufferSample) -> f64 {
    s.delay.min(Duration::from_secs(1_000_000)).as_secs_f64()
}

fn longest_s(samples: &[BufferSample]) -> Option<f64> {
    samples.iter().map(delay_s).reduce(f64::max)
}

/// How the longest delay came about.
fn build_up(samples: &[BufferSample]) -> String {
    let worst = (0..samples.len()).max_by(|&a, &b| delay_s(&samples[a]).total_cmp(&delay_s(&samples[b])));
    let Some(to) = worst.map(|i| &samples[i]) else { return String::new() };
    let empty = samples.iter().take_while(|s| s.t < to.t).filter(|s| s.k_bits <= 0.0).last();
    let Some(from) = empty else { return String::new() };
    let span_s = to.t.since(from.t).as_secs_f64();
    let sum = |s: &BufferSample, mean: Rate| mean.as_bps() * s.t.as_secs_f64() / 1e3;
    let rate = |of: fn(&BufferSample) -> Rate| short((sum(to, of(to)) - sum(from, of(from))) / span_s);
    format!(
        "The longest delay is met at {} s, with {} kbit waiting: in the {} s since the buffer was last empty R(t) was {} kbit/s and S(t) {}",
        short(to.t.as_secs_f64()),
        short(to.k_bits / 1e3),
        short(span_s),
        rate(|s| s.mu_r),
        rate(|s| s.mu_s)
    )
}

/// The mean delay while S(t) is below its median, over that while it is not.
fn when_low(samples: &[BufferSample]) -> Option<f64> {
    let held: Vec<_> =
        samples.windows(2).map(|w| (w[0].s, delay_s(&w[0]), w[1].t.since(w[0].t).as_secs_f64())).collect();
    let mut rates: Vec<_> = held.iter().map(|&(s, _, span_s)| (s.as_bps(), span_s)).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = rates.iter().map(|(_, span_s)| span_s).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    let (median, _) = rates.into_iter().find(|(_, span_s)| {
        passed += span_s;
        passed >= half
    })?;
    let mean = |low: bool| {
        let part = held.iter().filter(|(s, ..)| (s.as_bps() < median) == low);
        let (sum, span_s) = part.fold((0.0, 0.0), |(sum, all), (_, d, span_s)| (sum + d * span_s, all + span_s));
        (span_s > 0.0).then(|| sum / span_s)
    };
    Some(mean(true)? / mean(false).filter(|&d| d > 0.0)?)
}

/// One number per seed; none if a seed has none.
fn over(all: &[Seed], number: impl Fn(&Seed) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&all.iter().map(number).collect::<Option<Vec<f64>>>()?)
}

fn claims(e: &Experiment, all: &[Seed]) -> Vec<Claim> {
    let ratio = |seed: &Seed| {
        let last = seed.buffer(NONE).last().filter(|l| l.mu_s > Rate::ZERO)?;
        Some(last.mu_r.as_bps() / last.mu_s.as_bps())
    };
    let longest = |n: usize| move |seed: &Seed| longest_s(seed.buffer(n));
    let more = |seed: &Seed| {
        let following = longest_s(seed.buffer(READ)).filter(|d| *d > 0.0)?;
        Some(longest_s(seed.buffer(ONE_RATE))? / following)
    };
    // Of the seed whose delay is the longest.
    let build_up = |n: usize| {
        let of = |seed: &&Seed| longest_s(seed.buffer(n)).unwrap_or(0.0);
        all.iter().max_by(|a, b| of(a).total_cmp(&of(b))).map_or(String::new(), |seed| build_up(seed.buffer(n)))
    };
    let adapts = "an encoder that follows S(t) incurs less delay than one at one rate, the mean of S(t) (Fig. 6(a))";
    let low =
        "at one rate (Fig. 6(a)) the delay is higher while S(t) is low (ours: below its median) than while it is high";
    let meet = "the running means mu_R and mu_S are within 5 % at the end";
    let long = "with the 16-Mbit buffer of Fig. 6(b) the delay can be higher than 30 s";
    let none = "without a buffer (Fig. 10) none is added (the set-up)";
    let zero = "longest d(t) in s: zero by construction, since nothing waits";
    vec![
        e.claim("means-meet", meet, Bound::Within(0.95, 1.05), "mu_R / mu_S at the end").number(over(all, ratio)),
        e.claim("delay-16mbit", long, Bound::Above(30.0), "longest d(t) in s")
            .because(build_up(READ))
            .number(over(all, longest(READ))),
        e.claim("no-buffer-no-delay", none, Bound::AtMost(0.0), zero).number(over(all, longest(NONE))),
        e.claim(
            "one-rate-delays-more",
            adapts,
            Bound::Above(1.0),
            "longest d(t), over that with an encoder that follows",
        )
        .because(build_up(ONE_RATE))
        .number(over(all, more)),
        e.claim("delay-when-low", low, Bound::Above(1.0), "mean d(t), over that while S(t) is high")
            .number(over(all, |seed| when_low(seed.buffer(ONE_RATE)))),
    ]
}

/// Buffers by name, each with what became of it.
type Buffers<'a> = [(&'a str, Vec<BufferSample>); 4];

/// A number of a buffer's course.
type Told = fn(&[BufferSample]) -> Option<f64>;

/// The numbers of each buffer, by metric.
const TOLD: [(&str, Told); 5] = [
    ("mu_r_bps", |samples| Some(samples.last()?.mu_r.as_bps())),
    ("mu_s_bps", |samples| Some(samples.last()?.mu_s.as_bps())),
    ("delay_max_s", longest_s),
    ("buffer_max_bits", |samples| samples.iter().map(|s| s.k_bits).reduce(f64::max)),
    ("lost_bits", |samples| Some(samples.last()?.lost_bits)),
];

fn points(all: &[Seed]) -> Vec<Point> {
    let mut points = Vec::new();
    for (n, (name, samples)) in all.first().iter().flat_map(|first| first.buffers.iter().enumerate()) {
        let Some(last) = samples.last() else { continue };
        let name = if *name == "none" { "no buffer" } else { name };
        for (metric, told) in TOLD {
            let estimate = over(all, |seed| told(seed.buffer(n)));
            points.extend(point(name, &[("t_s", last.t.as_secs_f64())], metric, estimate));
        }
    }
    points
}

/// The table of what became of each buffer.
fn worst(all: &[Seed], caption: String) -> fairpace_report::Table {
    let row = |(n, (name, _)): (usize, &(&str, Vec<BufferSample>))| {
        let told = |key: &str, by: f64| {
            let of = TOLD.iter().find(|(metric, _)| *metric == key);
            text(of.and_then(|(_, told)| over(all, |seed| Some(told(seed.buffer(n))? / by))))
        };
        vec![
            (*name).to_owned(),
            told("delay_max_s", 1.0),
            told("buffer_max_bits", 1e3),
            told("lost_bits", 1e3),
            told("mu_r_bps", 1e3),
            told("mu_s_bps", 1e3),
        ]
    };
    let rows = all.first().into_iter().flat_map(|first| first.buffers.iter().enumerate().map(row));
    table(
        "The buffer at its worst, and the means at the end",
        format!("{caption}; mean ± half-width of the 95 % interval"),
        ["buffer", "longest delay (s)", "fullest (kbit)", "lost (kbit)", "mu_R (kbit/s)", "mu_S (kbit/s)"],
        rows,
    )
}

/// At most this many points per line: the eye sees no more.
const MOST_POINTS: usize = 2_000;

fn thinned(samples: &[BufferSample]) -> impl Iterator<Item = &BufferSample> {
    let step = samples.len().div_ceil(MOST_POINTS).max(1);
    samples.iter().step_by(step)
}

fn charts(mut section: fairpace_report::Section, caption: &str, seed: &Seed) -> fairpace_report::Section {
    let Seed { course: Course { steps, length, .. }, frames, buffers } = seed;
    let time = || Axis::new("time since the encoder began", "s");
    let kbps = |r: Rate| r.as_bps() / 1e3;
    // R(t) by the second: single pictures scatter by a factor of ten.
    let seconds = length.as_secs() as usize;
    let mut per_second = vec![0.0; seconds];
    for (at, size) in frames {
        if let Some(sum) = per_second.get_mut(at.as_secs_f64() as usize) {
            *sum += size.as_f64() * 8.0 / 1e3;
        }
    }
    let x: Vec<f64> = (0..seconds).map(|i| i as f64).collect();
    section = section.chart(
        Chart::new("The encoder follows S(t)", time(), Axis::new("rate", "kbit/s"))
            .caption(format!("{caption}; R(t) by the second"))
            .series(Series::stepped(
                "S(t)",
                "rcs",
                steps.iter().map(|(t, _)| t.as_secs_f64()).collect(),
                steps.iter().map(|(_, r)| kbps(*r)).collect(),
            ))
            .series(Series::stepped("R(t)", "encoder", x, per_second)),
    );
    let mut k = Chart::new("What waits in the buffer", time(), Axis::new("buffer k(t)", "kbit")).caption(caption);
    let mut d = Chart::new("What the buffer adds to the delay", time(), Axis::new("delay d(t)", "s")).caption(caption);
    for (name, samples) in buffers {
        let xs: Vec<f64> = thinned(samples).map(|s| s.t.as_secs_f64()).collect();
        let delay = |s: &BufferSample| if s.delay < Duration::MAX { s.delay.as_secs_f64() } else { f64::NAN };
        let key = format!("buffer {name}");
        k = k.series(Series::line(*name, &key, xs.clone(), thinned(samples).map(|s| s.k_bits / 1e3).collect()));
        d = d.series(Series::line(*name, &key, xs, thinned(samples).map(delay).collect()));
    }
    section = section.chart(k).chart(d);
    if let Some((_, samples)) = buffers.first() {
        let xs: Vec<f64> = thinned(samples).map(|s| s.t.as_secs_f64()).collect();
        section = section.chart(
            Chart::new("The running means meet", time(), Axis::new("running mean", "kbit/s"))
                .caption(caption)
                .series(Series::line("mu_S(t)", "rcs", xs.clone(), thinned(samples).map(|s| kbps(s.mu_s)).collect()))
                .series(Series::line("mu_R(t)", "encoder", xs, thinned(samples).map(|s| kbps(s.mu_r)).collect())),
        );
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 Mbit/s against 0.5 Mbit/s for 8 s and 2 Mbit/s for 12 s more. k(t) is 0.5 t Mbit up to 4 at 8 s, and falls by 1 Mbit/s. d(t) is t up to
    /// 4 s, where 2 Mbit wait and S(t) takes just 4 s for them; then 6 s - t / 2, and from 8 s on k(t) / 2 Mbit/s.
    fn samples() -> Vec<BufferSample> {
        let at = |s: f64| Instant::from_secs_f64(s);
        let frames: Vec<_> = (0..500).map(|i| (at(0.04 * f64::from(i)), Bytes::new(5_000))).collect();
        let steps = [(at(0.0), Rate::mbps(0.5)), (at(8.0), Rate::mbps(2.0))];
        buffer_model::run(&frames, Duration::from_millis(40), &steps, Buffer::Bits(READ_BITS), at(20.0))
    }

    #[test]
    fn the_reason_of_a_delay_is_what_the_rates_were_while_the_buffer_filled() {
        let said = build_up(&samples());
        let expected = "The longest delay is met at 4.000 s, with 2000 kbit waiting: in the 4.000 s since the buffer was last empty \
                        R(t) was 1000 kbit/s and S(t) 500.0";
        assert_eq!(said, expected);
    }

    #[test]
    fn the_delay_while_the_rate_is_low_is_compared_with_that_while_it_is_high() {
        // Low: 8 s² up to 4 s and 12 s² up to 8 s, over 8 s, are 2.5 s. High: 4 s² over 12 s. In steps of 40 ms, 1 % off at most.
        let ratio = when_low(&samples()).unwrap();
        assert!((ratio / 7.5 - 1.0).abs() < 0.015, "{ratio}");
        assert_eq!(when_low(&[]), None);
    }
}
