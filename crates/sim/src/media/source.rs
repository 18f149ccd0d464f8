//! Where a flow's data comes from, and when.

use crate::config::{FrameSource, Source};
use fairpace_units::{Bytes, Duration, Instant};

/// A source at work.
pub(super) enum SourceState {
    Greedy,
    Adus { packets: u32 },
    Constant { spacing_ns: f64, began: Instant, sent: u64, next: Instant },
    Frames { sizes: std::sync::Arc<[Bytes]>, index: usize, interval: Duration, header: u32, next: Instant },
    Adaptive { encoder: Box<dyn FrameSource>, header: u32, next: Instant },
}

impl SourceState {
    pub(super) fn new(source: &Source, packet_size: u32, seed: u64) -> Self {
        let next = Instant::NEVER;
        match source {
            Source::Greedy => SourceState::Greedy,
            Source::Adus { packets } => SourceState::Adus { packets: *packets },
            Source::Constant(rate) => {
                let spacing_ns = f64::from(packet_size) * 8e9 / rate.as_bps();
                SourceState::Constant { spacing_ns, began: Instant::ZERO, sent: 0, next }
            }
            Source::Frames { sizes, interval, header } => SourceState::Frames {
                sizes: sizes.clone(),
                index: 0,
                interval: *interval,
                header: header.get() as u32,
                next,
            },
            Source::Adaptive { build, header } => {
                SourceState::Adaptive { encoder: build(seed), header: header.get() as u32, next }
            }
        }
    }

    pub(super) fn is_greedy(&self) -> bool {
        matches!(self, SourceState::Greedy | SourceState::Adus { .. })
    }

    pub(super) fn start(&mut self, now: Instant) {
        match self {
            SourceState::Greedy | SourceState::Adus { .. } => {}
            SourceState::Constant { began, next, .. } => (*began, *next) = (now, now),
            SourceState::Frames { next, .. } | SourceState::Adaptive { next, .. } => *next = now,
        }
    }

    pub(super) fn next(&self) -> Instant {
        match self {
            SourceState::Greedy | SourceState::Adus { .. } => Instant::NEVER,
            SourceState::Constant { next, .. }
            | SourceState::Frames { next, .. }
            | SourceState::Adaptive { next, .. } => *next,
        }
    }
}
