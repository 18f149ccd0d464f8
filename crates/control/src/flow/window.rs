//! The window that a receiver, or a base station on the way, allows.

#[derive(Debug, Default)]
pub(super) struct Window {
    /// The largest number that a sack vector has named as received.
    sacked: Option<u64>,
    rwnd: Option<u32>,
}

impl Window {
    /// The window said last, packets.
    pub(super) const fn rwnd(&self) -> Option<u32> {
        self.rwnd
    }

    /// Packet `ack` is the largest that a sack vector names: whether what the vector says of the window is the newest word.
    pub(super) fn is_newest(&mut self, ack: u64) -> bool {
        let newest = self.sacked.is_none_or(|last| ack >= last);
        if newest {
            self.sacked = Some(ack);
        }
        newest
    }

    /// `None` says nothing: the last window stands. Gives the window if it has changed.
    pub(super) fn set(&mut self, rwnd: Option<u32>) -> Option<u32> {
        let changed = rwnd.filter(|_| rwnd != self.rwnd)?;
        self.rwnd = Some(changed);
        self.rwnd
    }
}
