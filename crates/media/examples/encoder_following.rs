//! How the real encoder follows its target: the numbers of `docs/media/README.md`.
//!
//!     cargo run --release -p fairpace-media --features gst --example encoder_following -- media/bigbuckbunny.mp4

// Measures the wall clock on purpose: how fast the encoder is.
#![allow(clippy::disallowed_methods)]

use fairpace_media::Hint;
use fairpace_media::MediaError;
use fairpace_media::gst::{Clip, ClipFormat, encode_following};
use fairpace_units::{Bytes, Duration, Instant, Rate};

fn main() -> Result<(), MediaError> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "test-pattern".to_owned());
    let clip = match path.as_str() {
        "test-pattern" => Clip::test_pattern(ClipFormat::default()),
        path => Clip::load(path, ClipFormat::default()),
    };
    let clip = clip.inspect_err(|e| eprintln!("hint: {}", e.hint().unwrap_or_default()))?;
    println!("{path}: {} pictures, {:?} a loop", clip.pictures(), clip.length());
    println!(
        "constant target, 60 s: mean, largest 1-s mean, largest frame, scatter of frame sizes, frames, time taken"
    );
    for kbps in [30.0, 60.0, 100.0, 200.0, 300.0, 600.0, 1_200.0, 2_500.0, 5_000.0] {
        let rate = Rate::kbps(kbps);
        let start = std::time::Instant::now();
        let sizes = encode_following(&clip, &[(Instant::ZERO, rate)], Duration::from_secs(60))?;
        let took = start.elapsed();
        let seconds = per_second(&sizes, 60);
        let mean: f64 = seconds.iter().sum::<f64>() / 60.0;
        let max = seconds.iter().copied().fold(0.0, f64::max);
        let largest = sizes.iter().map(|&(_, s)| s.as_f64() * 8.0).fold(0.0, f64::max) / rate.as_bps();
        // Deviation of the logarithm, as the encoder model's `sigma`.
        let logs: Vec<f64> = sizes.iter().map(|&(_, s)| s.as_f64().ln()).collect();
        let centre = logs.iter().sum::<f64>() / logs.len() as f64;
        let sigma = (logs.iter().map(|l| (l - centre) * (l - centre)).sum::<f64>() / logs.len() as f64).sqrt();
        println!(
            "{kbps:6} kbit/s: {:5.1} % {:5.1} % {:4.0} ms of target, sigma {sigma:.2}, {:5}, {:.2} s",
            100.0 * mean / rate.as_bps(),
            100.0 * max / rate.as_bps(),
            largest * 1e3,
            sizes.len(),
            took.as_secs_f64()
        );
    }
    println!(
        "steps: 1.2 Mbit/s, at 23 s 0.3, at 43 s 1.2: output of each 200 ms from the step on, in % of the new target"
    );
    let steps = [(0.0, 1_200.0), (23.0, 300.0), (43.0, 1_200.0)];
    let series: Vec<_> = steps.iter().map(|&(at, k)| (Instant::from_secs_f64(at), Rate::kbps(k))).collect();
    let sizes = encode_following(&clip, &series, Duration::from_secs(60))?;
    for &(at, kbps) in &steps[1..] {
        let mut line = format!("at {at} s:");
        for i in 0..12 {
            let (from, to) = (at + 0.2 * f64::from(i) - 1e-6, at + 0.2 * f64::from(i + 1) - 1e-6);
            let bits: f64 = within(&sizes, from, to) * 8.0;
            line += &format!(" {:.0}", 100.0 * bits / 0.2 / (kbps * 1e3));
        }
        println!("{line}");
    }
    Ok(())
}

fn within(sizes: &[(Instant, Bytes)], from: f64, to: f64) -> f64 {
    sizes.iter().filter(|(t, _)| (from..to).contains(&t.as_secs_f64())).map(|(_, s)| s.as_f64()).sum()
}

fn per_second(sizes: &[(Instant, Bytes)], n: u32) -> Vec<f64> {
    (0..n).map(|i| within(sizes, f64::from(i), f64::from(i) + 1.0) * 8.0).collect()
}
