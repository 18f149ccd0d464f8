//! The real encoder in virtual time: as fast as it can, against a series of rates known beforehand.

use super::clip::{Clip, Pictures};
use super::encoder::{Encoder, EncoderParams};
use crate::MediaError;
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// A single picture takes milliseconds; an encoder that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The frame sizes R(t) of the real encoder, looping the clip for `duration`, when its target is
/// the series S(t) [rcs §III-F Fig. 7]. Each entry of `rates` holds from its instant to the next;
/// the first holds before it too. A skipped picture gives no entry.
///
/// One encoder thread at a fixed speed: the same call gives the same sizes.
///
/// # Errors
/// vp8enc is missing or fails; an empty series.
pub fn encode_following(
    clip: &Clip,
    rates: &[(Instant, Rate)],
    duration: Duration,
) -> Result<Vec<(Instant, Bytes)>, MediaError> {
    encode_following_with(clip, rates, duration, EncoderParams::default())
}

/// As [`encode_following`], with an encoder set otherwise. Its `start_rate` has no effect.
///
/// # Errors
/// As [`encode_following`], and a parameter out of range.
pub fn encode_following_with(
    clip: &Clip,
    rates: &[(Instant, Rate)],
    duration: Duration,
    params: EncoderParams,
) -> Result<Vec<(Instant, Bytes)>, MediaError> {
    let Some(&(_, first)) = rates.first() else {
        let allowed = "it must have at least one entry";
        return Err(MediaError::Parameter { field: "rates", found: "empty".to_owned(), allowed });
    };
    let mut encoder = Encoder::new(&clip.name, &clip.format, EncoderParams { start_rate: first, ..params })?;
    let mut pictures = Pictures::from_clip(clip);
    let interval = clip.format.interval();
    let mut sizes = Vec::new();
    let mut rates = rates.iter().copied().peekable();
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + duration {
        while let Some((_, rate)) = rates.next_if(|&(from, _)| from <= now) {
            encoder.set_rate(rate);
        }
        if let Some(picture) = pictures.next()?
            && !encoder.must_skip(now)
        {
            encoder.push(&picture, now, interval, false)?;
            let frame = encoder.pull(PATIENCE)?.ok_or_else(|| encoder.failed("no frame came out"))?;
            sizes.push((frame.capture, Bytes::new(frame.data.len() as u64)));
        }
        now += interval;
    }
    Ok(sizes)
}
