//! VP8 that follows a rate: how `vp8enc` is set, and why.
//!
//! | property | value | why |
//! | --- | --- | --- |
//! | `deadline` | 1 µs | real time: no picture waits for another |
//! | `cpu-used` | negative | a fixed speed. Positive values let libvpx choose the speed by the wall clock, so that the same pictures would give other bytes on a busy machine |
//! | `end-usage` | cbr | the rate is a promise to the network |
//! | `target-bitrate` | **bit/s**, set before each picture | (x264enc would want kbit/s) |
//! | `buffer-size`, `-initial-`, `-optimal-` | a fraction of a second | libvpx aims at a buffer that is half full; with its default of 6 s it corrects a wrong size for seconds |
//! | `undershoot`, `overshoot` | 100 %, 15 % | may give bits back at once, and exceed by little |
//! | `max-intra-bitrate` | 300 % | a key frame weighs at most about three others: on a paced path its size is delay |
//! | `error-resilient` | default | a lost frame spoils no probabilities beyond the next key frame |
//! | `keyframe-max-dist` | 10 s | the receiver asks (PLI) when it needs one |
//! | `lag-in-frames`, `auto-alt-ref` | 0, off | one picture in, one frame out, at once |
//! | `dropframe-threshold` | 0 | we skip ourselves, where it is counted |
//!
//! Below what its coarsest quantizer gives (about 120 kbit/s for the demo's clip at 640x360) VP8 cannot
//! follow by quality. Then pictures are made smaller ([`crate::PictureFit`]), where nobody has asked for their size: scaled on the way to
//! vp8enc, which begins anew with a key frame. Below what the smallest give, captures are skipped: a leaky bucket holds what was produced and drains
//! at the target; while it holds more than [`EncoderParams::skip_above`] of target, the next
//! picture is not encoded.

use super::format::ClipFormat;
use super::{Running, bus_error, init, make, play, refused};
use crate::MediaError;
use fairpace_units::{Duration, Instant, Rate};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use std::collections::VecDeque;

/// How the encoder is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EncoderParams {
    /// Rate before the first `set_rate`.
    pub start_rate: Rate,
    /// Targets below this are raised to it.
    pub min_rate: Rate,
    /// Targets above this are lowered to it.
    pub max_rate: Rate,
    /// Key frames at least so often, in pictures.
    pub key_interval: u32,
    /// libvpx's buffer: over how much time it evens out its rate.
    pub buffer: Duration,
    /// Pictures are skipped while the frames of the past exceed the target by this much of it.
    pub skip_above: Duration,
    /// libvpx's speed, 0 (slow, good) to 16 (fast).
    pub speed: u32,
    /// Threads; one keeps the bytes the same everywhere.
    pub threads: u32,
}

impl Default for EncoderParams {
    fn default() -> Self {
        EncoderParams {
            start_rate: Rate::kbps(300.0),
            min_rate: Rate::kbps(30.0),
            max_rate: Rate::mbps(20.0),
            key_interval: 250,
            buffer: Duration::from_millis(300),
            skip_above: Duration::from_millis(500),
            speed: 8,
            threads: 1,
        }
    }
}

impl EncoderParams {
    /// For a source behind a sender, which limits what waits by itself, and tells as little as half the rate while frames wait. A second
    /// of half the rate is the half second of the default.
    pub fn live() -> Self {
        EncoderParams { skip_above: Duration::from_secs(1), ..EncoderParams::default() }
    }

    /// # Errors
    /// [`MediaError::Parameter`] names the field.
    pub fn check(&self) -> Result<(), MediaError> {
        let wrong = |field, found: String, allowed| Err(MediaError::Parameter { field, found, allowed });
        // libvpx counts whole kbit/s, and takes 0 for "choose yourself".
        if self.min_rate < Rate::kbps(1.0) {
            return wrong("min_rate", self.min_rate.to_string(), "it must be at least 1 kbit/s");
        }
        if self.max_rate < self.min_rate || self.max_rate > Rate::mbps(1_000.0) {
            return wrong("max_rate", self.max_rate.to_string(), "it must lie between min_rate and 1 Gbit/s");
        }
        if !(Duration::from_millis(50)..=Duration::from_secs(60)).contains(&self.buffer) {
            return wrong("buffer", format!("{:?}", self.buffer), "it must be from 50 ms to 60 s");
        }
        if self.speed > 16 {
            return wrong("speed", self.speed.to_string(), "it must be from 0 to 16");
        }
        if !(1..=64).contains(&self.threads) {
            return wrong("threads", self.threads.to_string(), "it must be from 1 to 64");
        }
        if self.key_interval == 0 {
            return wrong("key_interval", "0".to_owned(), "it must be at least 1 picture");
        }
        Ok(())
    }
}

/// An encoded frame as it leaves the encoder.
pub(super) struct Encoded {
    pub(super) capture: Instant,
    pub(super) key: bool,
    pub(super) data: Vec<u8>,
}

/// A running encoder: pictures go in with their capture time, frames come out in the same order.
#[derive(Debug)]
pub(super) struct Encoder {
    pipeline: Running,
    name: String,
    source: gst_app::AppSrc,
    /// The size of the pictures that reach vp8enc.
    size: gst::Element,
    format: ClipFormat,
    vp8enc: gst::Element,
    sink: gst_app::AppSink,
    params: EncoderParams,
    rate: Rate,
    /// The present rate of vp8enc, in bit/s.
    set: i32,
    /// Pictures so far: the encoder's own time. Skipped captures leave no gap in it, because libvpx would
    /// take a gap for a lower picture rate and spend the saved pictures' bits on the others: at
    /// 100 kbit/s 6.6 pictures/s came out instead of 20.
    pushed: u32,
    /// The leaky bucket, in bits, and when it was last drained.
    debt_bits: f64,
    drained_at: Instant,
    /// Capture times of the pictures inside.
    in_flight: VecDeque<Instant>,
}

impl Encoder {
    pub(super) fn new(name: &str, format: &ClipFormat, params: EncoderParams) -> Result<Encoder, MediaError> {
        params.check()?;
        format.check()?;
        init(name)?;
        let pipeline = Running(gst::Pipeline::new());
        let source = gst_app::AppSrc::builder()
            .caps(&format.caps())
            .format(gst::Format::Time)
            // The caller counts what is in flight; the queue itself never refuses.
            .max_bytes(0)
            .build();
        let scale = make("videoscale", name)?;
        // Sides are rounded to even numbers: no bars for that.
        scale.set_property("add-borders", false);
        let size = make("capsfilter", name)?;
        size.set_property("caps", format.caps());
        let vp8enc = make("vp8enc", name)?;
        let sink = gst_app::AppSink::builder().sync(false).build();
        let ms = |part: f64| ((params.buffer.as_secs_f64() * 1e3 * part) as i32).max(1);
        vp8enc.set_property("deadline", 1_i64);
        vp8enc.set_property("cpu-used", -(params.speed as i32));
        vp8enc.set_property_from_str("end-usage", "cbr");
        vp8enc.set_property("buffer-size", ms(1.0));
        vp8enc.set_property("buffer-initial-size", ms(0.5));
        vp8enc.set_property("buffer-optimal-size", ms(0.6));
        vp8enc.set_property("undershoot", 100_i32);
        vp8enc.set_property("overshoot", 15_i32);
        vp8enc.set_property("max-intra-bitrate", 300_i32);
        vp8enc.set_property_from_str("error-resilient", "default");
        vp8enc.set_property("keyframe-max-dist", params.key_interval.min(i32::MAX as u32) as i32);
        vp8enc.set_property("lag-in-frames", 0_i32);
        vp8enc.set_property("auto-alt-ref", false);
        vp8enc.set_property("dropframe-threshold", 0_i32);
        vp8enc.set_property("threads", params.threads as i32);
        vp8enc.set_property("static-threshold", 1_i32);
        let rate = params.start_rate.clamp(params.min_rate, params.max_rate);
        let set = bits_per_second(rate);
        vp8enc.set_property("target-bitrate", set);
        let elements = [source.upcast_ref(), &scale, &size, &vp8enc, sink.upcast_ref()];
        pipeline.0.add_many(elements).map_err(refused(name, "vp8enc"))?;
        gst::Element::link_many(elements).map_err(refused(name, "vp8enc"))?;
        play(&pipeline.0, name)?;
        Ok(Encoder {
            pipeline,
            name: name.to_owned(),
            source,
            size,
            format: *format,
            vp8enc,
            sink,
            params,
            rate,
            set,
            pushed: 0,
            debt_bits: 0.0,
            drained_at: Instant::ZERO,
            in_flight: VecDeque::new(),
        })
    }

    /// The rate from the next picture on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate.clamp(self.params.min_rate, self.params.max_rate);
    }

    /// Pictures that have not reached vp8enc are scaled to that size.
    pub(super) fn set_size(&mut self, (width, height): (u32, u32)) {
        self.size.set_property("caps", ClipFormat { width, height, ..self.format }.caps());
    }

    /// Pictures that have gone in and not come out.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether the past has spent so much that this capture must be left out. A picture that is wanted
    /// as a key frame is left out as well: its turn comes when the bucket has drained.
    pub(super) fn must_skip(&mut self, capture: Instant) -> bool {
        let drained = self.rate.as_bps() * capture.since(self.drained_at).as_secs_f64();
        self.debt_bits = (self.debt_bits - drained).max(0.0);
        self.drained_at = self.drained_at.max(capture);
        self.debt_bits > self.rate.as_bps() * self.params.skip_above.as_secs_f64()
    }

    /// Hands in a picture, to be encoded at the rate of now. Returns at once.
    pub(super) fn push(
        &mut self,
        picture: &gst::Buffer,
        capture: Instant,
        interval: Duration,
        key: bool,
    ) -> Result<(), MediaError> {
        let target = bits_per_second(self.rate);
        if target != self.set {
            // Takes effect with the next picture: vp8enc hands it to libvpx at once.
            self.vp8enc.set_property("target-bitrate", target);
            self.set = target;
        }
        if key {
            let event = gst_video::UpstreamForceKeyUnitEvent::builder().all_headers(true).build();
            if let Some(pad) = self.vp8enc.static_pad("src") {
                pad.send_event(event);
            }
        }
        let mut buffer = picture.copy();
        let time = |d: Duration| gst::ClockTime::from_nseconds(u64::try_from(d.as_nanos()).unwrap_or(0));
        let header = buffer.make_mut();
        header.set_pts(time(interval * self.pushed));
        header.set_dts(gst::ClockTime::NONE);
        header.set_duration(time(interval));
        self.source.push_buffer(buffer).map_err(|e| self.failed(&e.to_string()))?;
        self.pushed = self.pushed.saturating_add(1);
        self.in_flight.push_back(capture);
        Ok(())
    }

    /// The next frame, if there is one within `wait`.
    pub(super) fn pull(&mut self, wait: Duration) -> Result<Option<Encoded>, MediaError> {
        if self.in_flight.is_empty() {
            return Ok(None);
        }
        let wait = gst::ClockTime::from_nseconds(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        let Some(sample) = self.sink.try_pull_sample(wait) else {
            return match bus_error(&self.pipeline.0, &self.name) {
                Some(e) => Err(e),
                None if self.sink.is_eos() => Err(self.failed("it ended by itself")),
                None => Ok(None),
            };
        };
        let Some(capture) = self.in_flight.pop_front() else { return Ok(None) };
        let buffer = sample.buffer().ok_or_else(|| self.failed("a sample without a frame"))?;
        let map = buffer.map_readable().map_err(refused(&self.name, "vp8enc"))?;
        let key = !buffer.flags().contains(gst::BufferFlags::DELTA_UNIT);
        self.debt_bits += map.size() as f64 * 8.0;
        Ok(Some(Encoded { capture, key, data: map.as_slice().to_vec() }))
    }

    pub(super) fn failed(&self, message: &str) -> MediaError {
        bus_error(&self.pipeline.0, &self.name).unwrap_or_else(|| MediaError::Gst {
            input: self.name.clone(),
            element: "vp8enc".to_owned(),
            message: message.to_owned(),
            hint: String::new(),
        })
    }
}

/// `target-bitrate` of vp8enc is in bit/s; libvpx then counts whole kbit/s, so less than one would be none.
fn bits_per_second(rate: Rate) -> i32 {
    (rate.as_bps() as i32).max(1_000)
}
