//! How much may go to an address that has not proven that it wants it: at most three times what came from there
//! [RFC 9000 §8.1].

/// Bytes sent per byte received, at most.
const AMPLIFICATION: u64 = 3;

/// UDP payload that came from an address, and that went there, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    received: u64,
    sent: u64,
}

impl Budget {
    pub(crate) const fn on_received(&mut self, len: usize) {
        self.received = self.received.saturating_add(len as u64);
    }

    /// Counts a packet that leaves whatever has come.
    pub(crate) const fn on_sent(&mut self, len: usize) {
        self.sent = self.sent.saturating_add(len as u64);
    }

    /// Whether a packet of `len` bytes may leave. Counts the packet if so.
    pub(crate) const fn afford(&mut self, len: usize) -> bool {
        let sent = self.sent.saturating_add(len as u64);
        let affordable = sent <= AMPLIFICATION.saturating_mul(self.received);
        if affordable {
            self.sent = sent;
        }
        affordable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_bytes_leave_for_each_that_came_and_not_one_more() {
        let mut budget = Budget::default();
        assert!(!budget.afford(1), "nothing has come");
        budget.on_received(100);
        assert!(budget.afford(200) && !budget.afford(101) && budget.afford(100));
        // A packet that leaves anyway counts against what comes later.
        budget.on_sent(50);
        budget.on_received(20);
        assert!(!budget.afford(11) && budget.afford(10));
    }
}
