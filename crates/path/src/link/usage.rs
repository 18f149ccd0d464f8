//! The time that packets spend in queue and transmitter, for the mean queue.

/// Time spent in queue and transmitter, summed over packets when their departure becomes known,
/// which may be in the future. Little's law turns it into the averages over time: one addition
/// per packet instead of one for each change of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) packet_ns: u128,
    pub(super) byte_ns: u128,
    /// How long there was nothing in queue and transmitter, up to when something came last.
    pub(super) idle_ns: u64,
}

impl Usage {
    #[inline(always)]
    pub(super) fn add(&mut self, stay_ns: u64, size: u64) {
        self.packet_ns += u128::from(stay_ns);
        self.byte_ns += u128::from(stay_ns) * u128::from(size);
    }

    /// Adds the sums of another.
    pub(super) fn plus(mut self, packet_ns: u64, byte_ns: u64) -> Self {
        self.packet_ns += u128::from(packet_ns);
        self.byte_ns += u128::from(byte_ns);
        self
    }

    /// Takes back what a packet that still waits has not yet spent.
    pub(super) fn take_back(&mut self, ahead_ns: u64, size: u64) {
        self.packet_ns -= u128::from(ahead_ns);
        self.byte_ns -= u128::from(ahead_ns) * u128::from(size);
    }
}
