//! How much may go to an address that has not proven that it wants it: at most three times what came from there
//! [RFC 9000 §8.1].

/// Bytes sent per byte received, at most.
const AMPLIFICATION: u64 = 3;

/// UDP payload that came from an address, and that went there, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    received: u64,
    sent: u64,
}

impl Budget {
    /// Counts what came from the address.
    pub const fn on_received(&mut self, len: usize) {
        self.received = self.received.saturating_add(len as u64);
    }

    /// Counts a packet that leaves whatever has come.
    pub const fn on_sent(&mut self, len: usize) {
        self.sent = self.sent.saturating_add(len as u64);
    }

    /// Whether a packet of `len` bytes may leave.
    pub const fn affords(&self, len: usize) -> bool {
        self.sent.saturating_add(len as u64) <= AMPLIFICATION.saturating_mul(self.received)
    }

    /// Whether a packet of `len` bytes may leave. Counts the packet if so.
    pub const fn afford(&mut self, len: usize) -> bool {
        let affordable = self.affords(len);
        if affordable {
            self.on_sent(len);
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
