//! The buffer with a controlled output rate between encoder and network [rcs §III-F Fig. 6].
//!
//! R(t) is what the encoder puts out, S(t) what the network lets through. A frame of n bits
//! counts as a flow of n / T during its interval T (the paper draws R(t) as a rate). The excess over S waits in the
//! buffer:
//!
//! | symbol | here | meaning |
//! | --- | --- | --- |
//! | R(t), S(t) | `r`, `s` | rates, piecewise constant |
//! | k(t) | `k_bits` | buffer content: dk/dt = R - S, never below 0 nor above the maximum (the rest is lost) |
//! | d(t) | `delay` | when a bit that enters at t leaves: the least d with the integral of S over [t, t+d] = k(t) |
//! | mu_R, mu_S | `mu_r`, `mu_s` | running means, [rcs eqs. (5), (6)] |
//!
//! Reading: Fig. 8 gives 16 kbit of buffer and delays above 30 s, which exclude each other at any rate
//! above 0.5 kbit/s; 16 Mbit at about 0.5 Mbit/s gives them. Both are [`Buffer::Bits`]; no buffer
//! (Fig. 10) is [`Buffer::None`]: the encoder's output leaves as it comes.

use fairpace_units::{Bytes, Duration, Instant, Rate};

/// The buffer between encoder and network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Buffer {
    /// Nothing [rcs Fig. 10].
    None,
    /// At most that many bits [rcs Fig. 6].
    Bits(f64),
}

/// The state at one instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BufferSample {
    /// The instant of the change.
    pub t: Instant,
    /// R(t): from here on.
    pub r: Rate,
    /// S(t): from here on.
    pub s: Rate,
    /// k(t).
    pub k_bits: f64,
    /// d(t); [`Duration::MAX`] if S stays zero. After the series' end S keeps its last value.
    pub delay: Duration,
    /// Bits lost to a full buffer up to here.
    pub lost_bits: f64,
    /// mu_R(t); R(0) at zero.
    pub mu_r: Rate,
    /// mu_S(t); S(0) at zero.
    pub mu_s: Rate,
}

/// Runs frames through the buffer up to `end`; one sample at each change of R or S and one at the end.
///
/// `frames` are capture times and sizes, in order: each spreads until the next (the last over `interval`), but
/// over no more than `interval`, so that a skipped picture is a gap. `rates` is S: each entry holds
/// until the next, the first from zero on; nothing may leave if it is empty.
pub fn run(
    frames: &[(Instant, Bytes)],
    interval: Duration,
    rates: &[(Instant, Rate)],
    buffer: Buffer,
    end: Instant,
) -> Vec<BufferSample> {
    let r = flow(frames, interval);
    let mut s: Vec<(Instant, Rate)> = rates.to_vec();
    match s.first_mut() {
        Some(first) => first.0 = Instant::ZERO,
        None => s.push((Instant::ZERO, Rate::ZERO)),
    }
    let mut times: Vec<Instant> = r.iter().chain(&s).map(|&(t, _)| t).filter(|&t| t < end).collect();
    times.push(Instant::ZERO);
    times.push(end);
    times.sort_unstable();
    times.dedup();

    let max = match buffer {
        Buffer::None => 0.0,
        Buffer::Bits(bits) => bits.max(0.0),
    };
    let (mut k, mut lost, mut sum_r, mut sum_s) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    let (mut at_r, mut at_s) = (0, 0);
    let mut samples = Vec::with_capacity(times.len());
    for (i, &t) in times.iter().enumerate() {
        let rate_r = value(&r, &mut at_r, t);
        let rate_s = value(&s, &mut at_s, t);
        let mean = |sum: f64, now: Rate| if t == Instant::ZERO { now } else { Rate::bps(sum / t.as_secs_f64()) };
        samples.push(BufferSample {
            t,
            r: rate_r,
            s: rate_s,
            k_bits: k,
            delay: drain_time(&s, at_s, t, k),
            lost_bits: lost,
            mu_r: mean(sum_r, rate_r),
            mu_s: mean(sum_s, rate_s),
        });
        let Some(&next) = times.get(i + 1) else { break };
        let dt = next.since(t).as_secs_f64();
        sum_r += rate_r.as_bps() * dt;
        sum_s += rate_s.as_bps() * dt;
        if buffer != Buffer::None {
            // R - S has one sign until `next`, so the buffer meets at most one of its two ends.
            let free = k + (rate_r.as_bps() - rate_s.as_bps()) * dt;
            lost += (free - max).max(0.0);
            k = free.max(0.0).min(max);
        }
    }
    samples
}

/// Frames as a rate over time; zero between them where pictures were skipped.
fn flow(frames: &[(Instant, Bytes)], interval: Duration) -> Vec<(Instant, Rate)> {
    let mut r = vec![(Instant::ZERO, Rate::ZERO)];
    for (i, &(at, size)) in frames.iter().enumerate() {
        let spread_end = at + interval;
        let until = frames.get(i + 1).map_or(spread_end, |&(next, _)| next.min(spread_end));
        let dt = until.since(at).as_secs_f64();
        // Two frames at one instant have no rate; they do not come from an encoder.
        let rate = if dt > 0.0 { Rate::bps(size.as_f64() * 8.0 / dt) } else { Rate::ZERO };
        r.push((at, rate));
        r.push((until, Rate::ZERO));
    }
    // Of several entries at one instant the last counts: `value` goes past the others.
    r
}

/// The series' value at `t`, and its index; `at` only moves forward.
fn value(series: &[(Instant, Rate)], at: &mut usize, t: Instant) -> Rate {
    while series.get(*at + 1).is_some_and(|&(next, _)| next <= t) {
        *at += 1;
    }
    series[*at].1
}

/// d(t): the time in which S, from `t` on, carries `bits` away.
fn drain_time(s: &[(Instant, Rate)], at: usize, t: Instant, bits: f64) -> Duration {
    let (mut left, mut from, mut waited) = (bits, t, Duration::ZERO);
    for (i, &(_, rate)) in s.iter().enumerate().skip(at) {
        if left <= 0.0 {
            break;
        }
        let room = match s.get(i + 1) {
            Some(&(until, _)) => rate.as_bps() * until.since(from).as_secs_f64(),
            None => f64::INFINITY,
        };
        // At rate zero and without an end, zero times infinity: nothing leaves any more.
        if room >= left && rate > Rate::ZERO {
            let seconds = left / rate.as_bps();
            return Duration::try_from_secs_f64(seconds).map_or(Duration::MAX, |d| waited.saturating_add(d));
        }
        let Some(&(until, _)) = s.get(i + 1) else { return Duration::MAX };
        left -= room;
        waited = waited.saturating_add(until.since(from));
        from = from.max(until);
    }
    waited
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const MS40: Duration = Duration::from_millis(40);

    /// `n` frames of `bytes` each 40 ms.
    fn frames(n: u64, bytes: u64) -> Vec<(Instant, Bytes)> {
        (0..n).map(|i| (at(40 * i), Bytes::new(bytes))).collect()
    }

    fn last(samples: &[BufferSample]) -> BufferSample {
        *samples.last().unwrap()
    }

    #[test]
    fn what_exceeds_the_rate_waits_and_takes_its_time_to_leave() {
        // 2,500 B per 40 ms are 500 kbit/s; S = 300 kbit/s. After 1 s, 200 kbit wait; they take
        // 200/300 s = 666.67 ms.
        let out = run(&frames(25, 2_500), MS40, &[(Instant::ZERO, Rate::kbps(300.0))], Buffer::Bits(16e6), at(1_000));
        let end = last(&out);
        assert!((end.k_bits - 200e3).abs() < 1.0, "{end:?}");
        assert!(end.delay.abs_diff(Duration::from_nanos(666_666_667)) < Duration::from_micros(1), "{end:?}");
        assert!((end.mu_r.as_bps() - 500e3).abs() < 1.0 && (end.mu_s.as_bps() - 300e3).abs() < 1.0);
        assert_eq!(end.lost_bits, 0.0);
    }

    #[test]
    fn a_full_buffer_loses_the_rest() {
        // As above with 16 kbit: full after 80 ms; of 200 kbit too much, 184 kbit are lost. The
        // delay cannot exceed 16/300 s = 53.3 ms: 16 kbit cannot give tens of seconds.
        let out = run(&frames(25, 2_500), MS40, &[(Instant::ZERO, Rate::kbps(300.0))], Buffer::Bits(16e3), at(1_000));
        let end = last(&out);
        assert!((end.k_bits - 16e3).abs() < 1e-6 && (end.lost_bits - 184e3).abs() < 1.0, "{end:?}");
        let most = out.iter().map(|s| s.delay).max().unwrap();
        assert!(most.abs_diff(Duration::from_nanos(53_333_333)) < Duration::from_micros(1), "{most:?}");
    }

    #[test]
    fn sixteen_megabit_at_half_a_megabit_a_second_are_32_seconds() {
        // R = 1 Mbit/s against S = 0.5: after 32 s there are 16 Mbit, and the next bit waits 32 s.
        let out = run(&frames(800, 5_000), MS40, &[(Instant::ZERO, Rate::kbps(500.0))], Buffer::Bits(16e6), at(32_000));
        let end = last(&out);
        assert!(end.delay.abs_diff(Duration::from_secs(32)) < Duration::from_millis(1), "{end:?}");
    }

    #[test]
    fn without_a_buffer_nothing_waits_and_nothing_is_lost() {
        let out = run(&frames(25, 2_500), MS40, &[(Instant::ZERO, Rate::kbps(300.0))], Buffer::None, at(1_000));
        assert!(out.iter().all(|s| s.k_bits == 0.0 && s.delay == Duration::ZERO && s.lost_bits == 0.0));
    }

    #[test]
    fn the_delay_looks_ahead_at_the_rate_that_will_be() {
        // 100 kbit are there at 200 ms (R 1 Mbit/s, S 500 kbit/s); then S stops for a second, then
        // has 1 Mbit/s: the last bit leaves after 1 s + 100 ms.
        let s = [(at(0), Rate::kbps(500.0)), (at(200), Rate::ZERO), (at(1_200), Rate::mbps(1.0))];
        let out = run(&frames(5, 5_000), MS40, &s, Buffer::Bits(16e6), at(2_000));
        let then = out.iter().find(|x| x.t == at(200)).unwrap();
        assert!((then.k_bits - 100e3).abs() < 1.0, "{then:?}");
        assert!(then.delay.abs_diff(Duration::from_millis(1_100)) < Duration::from_micros(1), "{then:?}");
        assert!(last(&out).k_bits == 0.0);
    }

    #[test]
    fn a_skipped_picture_is_a_gap() {
        let f = [(at(0), Bytes::new(5_000)), (at(80), Bytes::new(5_000))];
        let out = run(&f, MS40, &[(Instant::ZERO, Rate::mbps(1.0))], Buffer::Bits(1e6), at(120));
        let rates: Vec<_> = out.iter().map(|s| (s.t, s.r.as_bps())).collect();
        assert_eq!(rates, [(at(0), 1e6), (at(40), 0.0), (at(80), 1e6), (at(120), 0.0)]);
    }

    proptest! {
        /// Bits in = bits out + bits lost + bits held, against a naive walk in steps of 0.1 ms.
        #[test]
        fn the_exact_buffer_is_what_a_fine_walk_finds(
            sizes in prop::collection::vec(0_u64..8_000, 1..20),
            s_kbps in prop::collection::vec(0.0_f64..1_500.0, 1..10),
            max in 0.0_f64..200e3,
        ) {
            let f: Vec<_> = sizes.iter().enumerate().map(|(i, &b)| (at(40 * i as u64), Bytes::new(b))).collect();
            let s: Vec<_> = s_kbps.iter().enumerate().map(|(i, &r)| (at(70 * i as u64), Rate::kbps(r))).collect();
            let end = at(900);
            let out = last(&run(&f, MS40, &s, Buffer::Bits(max), end));
            let (mut k, mut lost) = (0.0_f64, 0.0);
            for step in 0..9_000_u64 {
                // All changes lie on whole milliseconds, so a step never straddles one.
                let t = step / 10;
                let r = f.get((t / 40) as usize).map_or(0.0, |&(_, b)| b.as_f64() * 8.0 / 0.040);
                let s = s_kbps[((t / 70) as usize).min(s_kbps.len() - 1)] * 1e3;
                k += (r - s) * 1e-4;
                lost += (k - max).max(0.0);
                k = k.clamp(0.0, max);
            }
            prop_assert!((out.k_bits - k).abs() < 1e-3 && (out.lost_bits - lost).abs() < 1e-3, "{:?} {} {}", out, k, lost);
        }

        #[test]
        fn no_series_makes_it_panic(
            f in prop::collection::vec((0_u64..3_000, 0_u64..10_000), 0..20),
            s in prop::collection::vec((0_u64..3_000, 0.0_f64..1e6), 0..20),
        ) {
            let mut f: Vec<_> = f.into_iter().map(|(t, b)| (at(t), Bytes::new(b))).collect();
            let mut s: Vec<_> = s.into_iter().map(|(t, r)| (at(t), Rate::bps(r))).collect();
            f.sort_unstable();
            s.sort_by_key(|&(t, _)| t);
            for x in run(&f, MS40, &s, Buffer::Bits(1e5), at(3_000)) {
                prop_assert!((0.0..=1e5).contains(&x.k_bits) && x.lost_bits >= 0.0);
            }
        }
    }
}
