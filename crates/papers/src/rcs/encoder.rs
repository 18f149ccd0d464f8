//! A real encoder behind RCS: R(t), S(t), the buffer between them [rcs §III-F, Figs. 7 to 10].

use super::readings::{VP8, VP8_WHOLE};
use super::traces::{Trace, trace};
use crate::builtin::base;
use crate::claim::exact;
use crate::figure::{point, table};
use crate::{Bench, Bound, Claim, Encoder, Experiment, Outcome, Point, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_media::buffer_model::{self, Buffer, BufferSample};
use fairpace_report::{Axis, Chart, Series};
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// Sizes of the buffer of Fig. 6(b): as printed, and the one that its delays need.
const PRINTED_BITS: f64 = 16e3;
const READ_BITS: f64 = 16e6;

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
    let name = format!("{} of {}", encoder.name(), tools.clip_name);
    let Some(encode) = &mut tools.encoder else {
        return Ok(not_run("it needs a real encoder; build with the `gst` feature".to_owned()));
    };
    let scenario = base(e);
    let end = Instant::ZERO + scenario.duration.get();
    let s_of_t = sending(&*trace(e, bench)?);
    let Some(&(start, _)) = s_of_t.first() else { return Ok(not_run("the flow sent nothing".to_owned())) };
    // The encoder starts when RCS lets it: from then on time counts.
    let steps: Vec<(Instant, Rate)> = s_of_t.iter().map(|&(t, rate)| (Instant::ZERO + t.since(start), rate)).collect();
    let length = end.since(start);
    (bench.hooks().progress)(0, 1, &format!("{} encoding {} s as {name}", e.id, length.as_secs()));
    let frames = match encode(encoder, &steps, length) {
        Ok(frames) => frames,
        Err(why) => return Ok(not_run(why)),
    };
    (bench.hooks().progress)(1, 1, &format!("{} encoded", e.id));
    let run = |buffer| buffer_model::run(&frames, interval, &steps, buffer, Instant::ZERO + length);
    let (none, printed, read) = (run(Buffer::None), run(Buffer::Bits(PRINTED_BITS)), run(Buffer::Bits(READ_BITS)));
    let claims = claims(e, &none, &read);
    let points = points(&none, &printed, &read);
    let caption = format!(
        "{}, seed {}, flow 1; {name}, {} pictures in {:.0} s",
        e.file,
        scenario.seed.get(),
        frames.len(),
        length.as_secs_f64()
    );
    let section = charts(
        section,
        &caption,
        &frames,
        &steps,
        length,
        &[("none", &none), ("16 kbit", &printed), ("16 Mbit", &read)],
    );
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

fn claims(e: &Experiment, none: &[BufferSample], read: &[BufferSample]) -> Vec<Claim> {
    let ratio = none.last().filter(|l| l.mu_s > Rate::ZERO).map(|l| l.mu_r.as_bps() / l.mu_s.as_bps());
    let longest = |samples: &[BufferSample]| {
        let delays = samples.iter().map(|s| s.delay.min(Duration::from_secs(1_000_000)).as_secs_f64());
        delays.reduce(f64::max)
    };
    let fullest = read.iter().map(|s| s.k_bits).fold(0.0, f64::max);
    let why = format!("At most {} kbit of R(t) waited for S(t)", short(fullest / 1e3));
    let meet = "the running means mu_R and mu_S are within 5 % at the end";
    let long = "with the 16-Mbit buffer of Fig. 6(b) the delay reaches tens of seconds (ours: at least 10 s)";
    let zero = "longest d(t) in s: zero by construction, since nothing waits";
    vec![
        e.claim("means-meet", meet, Bound::Within(0.95, 1.05), "mu_R / mu_S at the end; one seed, one clip")
            .exact(ratio),
        e.claim("delay-16mbit", long, Bound::AtLeast(10.0), "longest d(t) in s").because(why).exact(longest(read)),
        e.claim("no-buffer-no-delay", "without a buffer (Fig. 10) none is added", Bound::AtMost(0.0), zero)
            .exact(longest(none)),
    ]
}

fn points(none: &[BufferSample], printed: &[BufferSample], read: &[BufferSample]) -> Vec<Point> {
    let mut points = Vec::new();
    for (name, samples) in [("no buffer", none), ("16 kbit", printed), ("16 Mbit", read)] {
        let Some(last) = samples.last() else { continue };
        let longest =
            samples.iter().map(|s| s.delay.min(Duration::from_secs(1_000_000)).as_secs_f64()).fold(0.0, f64::max);
        let fullest = samples.iter().map(|s| s.k_bits).fold(0.0, f64::max);
        for (metric, value) in [
            ("mu_r_bps", last.mu_r.as_bps()),
            ("mu_s_bps", last.mu_s.as_bps()),
            ("delay_max_s", longest),
            ("buffer_max_bits", fullest),
            ("lost_bits", last.lost_bits),
        ] {
            points.extend(point(name, &[("t_s", last.t.as_secs_f64())], metric, exact(value)));
        }
    }
    points
}

/// At most this many points per line: the eye sees no more.
const MOST_POINTS: usize = 2_000;

fn thinned(samples: &[BufferSample]) -> impl Iterator<Item = &BufferSample> {
    let step = samples.len().div_ceil(MOST_POINTS).max(1);
    samples.iter().step_by(step)
}

fn charts(
    mut section: fairpace_report::Section,
    caption: &str,
    frames: &[(Instant, Bytes)],
    steps: &[(Instant, Rate)],
    length: Duration,
    buffers: &[(&str, &[BufferSample])],
) -> fairpace_report::Section {
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
    let mut table = table(
        "The buffer at its worst, and the means at the end",
        caption.to_owned(),
        ["buffer", "longest delay (s)", "fullest (kbit)", "lost (kbit)", "mu_R (kbit/s)", "mu_S (kbit/s)"],
        [],
    );
    for (name, samples) in buffers {
        let xs: Vec<f64> = thinned(samples).map(|s| s.t.as_secs_f64()).collect();
        let delay = |s: &BufferSample| if s.delay < Duration::MAX { s.delay.as_secs_f64() } else { f64::NAN };
        let key = format!("buffer {name}");
        k = k.series(Series::line(*name, &key, xs.clone(), thinned(samples).map(|s| s.k_bits / 1e3).collect()));
        d = d.series(Series::line(*name, &key, xs, thinned(samples).map(delay).collect()));
        if let Some(last) = samples.last() {
            let most = |f: fn(&BufferSample) -> f64| short(samples.iter().map(f).fold(0.0, f64::max));
            table.rows.push(vec![
                (*name).to_owned(),
                most(|s| s.delay.as_secs_f64()),
                most(|s| s.k_bits / 1e3),
                short(last.lost_bits / 1e3),
                short(kbps(last.mu_r)),
                short(kbps(last.mu_s)),
            ]);
        }
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
    section.table(table)
}
