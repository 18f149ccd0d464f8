//! Counting packets and bytes, and what a count is per time.

use fairpace_path::Count;
use fairpace_units::{Bytes, Duration, Packets, Rate};

/// Both numbers of two counts, one by one.
pub(crate) fn zip(a: Count, b: Count, op: fn(u64, u64) -> u64) -> Count {
    Count {
        packets: Packets::new(op(a.packets.get(), b.packets.get())),
        bytes: Bytes::new(op(a.bytes.get(), b.bytes.get())),
    }
}

/// So many packets more, of that size.
#[inline]
pub(crate) fn count(counter: &mut Count, packets: u64, size: u32) {
    counter.packets += Packets::new(packets);
    counter.bytes += Bytes::new(packets * u64::from(size));
}

/// Bytes of a window as a rate; zero if the window is empty.
pub(crate) fn per_second(bytes: Bytes, window: Duration) -> Rate {
    Rate::bps(ratio(bytes.as_f64() * 8.0, window))
}

/// An amount per second; zero if the window is empty.
pub(crate) fn ratio(amount: f64, window: Duration) -> f64 {
    let seconds = window.as_secs_f64();
    if seconds == 0.0 { 0.0 } else { amount / seconds }
}
