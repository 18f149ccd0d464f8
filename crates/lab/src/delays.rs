//! Delays as results have them: in milliseconds.

use fairpace_sim::DelayHistogram;
use fairpace_units::Duration;
use serde::{Deserialize, Serialize};

/// A distribution of delays in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

pub(crate) fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

impl Delays {
    pub(crate) fn of(h: &DelayHistogram) -> Option<Delays> {
        (h.count() > 0).then(|| Delays {
            mean: ms(h.mean()),
            p50: ms(h.quantile(0.5)),
            p95: ms(h.quantile(0.95)),
            p99: ms(h.quantile(0.99)),
            max: ms(h.max()),
        })
    }
}
