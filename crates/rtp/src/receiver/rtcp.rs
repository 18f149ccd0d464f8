//! The pace of the receiver's reports.

use super::config::ReceiverConfig;
use crate::rtcp_timing::{Parameters, RtcpTiming};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};

/// Media that comes so long after a goodbye contradicts the goodbye: frames that were paced out before may be as late.
pub(super) const REORDERING: Duration = Duration::from_millis(250);

/// The pace from now on, at which a sender has the place.
pub(super) fn timing(now: Instant, config: &ReceiverConfig, random: RandomStream) -> RtcpTiming {
    let params = Parameters {
        session_bandwidth: config.session_bandwidth,
        reduced_minimum: config.reduced_minimum,
        // RR with two blocks 56 B, SDES about 20 B
        first_size: config.ip_overhead + Bytes::new(76),
        fixed_interval: None,
    };
    RtcpTiming::new(now, params, false, random)
}
