//! PIE as the basic pseudo-code of RFC 8033 has it (Appendix A), with the cap of §5.5.

use fairpace_path::{PieParams, Plain};
use fairpace_units::{Bytes, Ecn, RandomStream};

pub(crate) struct Pie {
    params: PieParams,
    random: RandomStream,
    drop_prob: f64,
    /// Of the packet whose transmission began last; none once nobody waits.
    pub(crate) delay: u64,
    qdelay_old: u64,
    burst_allowance: u64,
    pub(crate) next_update: u64,
}

impl Pie {
    pub(crate) fn new(params: PieParams, random: RandomStream) -> Self {
        let next_update = params.update_interval.as_nanos() as u64;
        Pie { params, random, drop_prob: 0.0, delay: 0, qdelay_old: 0, burst_allowance: 0, next_update }
    }

    /// Whether the arrival is dropped beside the hard limit, which is reached or not; a mark is set in it.
    pub(crate) fn on_arrival(&mut self, waiting: &[Bytes], nobody: bool, full: bool, packet: &mut Plain) -> bool {
        let draw = self.random.uniform();
        if nobody {
            self.delay = 0;
        }
        if full {
            return false;
        }
        let half = self.params.target.as_nanos() as u64 / 2;
        if self.drop_prob == 0.0 && self.delay < half && self.qdelay_old < half {
            self.burst_allowance = self.params.max_burst.as_nanos() as u64;
        }
        if self.burst_allowance > 0 || (self.qdelay_old < half && self.drop_prob < 0.2) {
            return false;
        }
        let bytes: u64 = waiting.iter().map(|b| b.get()).sum();
        if bytes <= 2 * self.params.mean_packet_size.get() || draw >= self.drop_prob {
            return false;
        }
        if self.params.ecn && packet.ecn != Ecn::NotEct && self.drop_prob < self.params.mark_threshold {
            packet.ecn = Ecn::Ce;
            return false;
        }
        true
    }

    pub(crate) fn update(&mut self, nobody: bool) {
        if nobody {
            self.delay = 0;
        }
        let current = self.delay;
        let (now, old) = (current as f64 / 1e9, self.qdelay_old as f64 / 1e9);
        let mut p =
            self.params.alpha * (now - self.params.target.as_nanos() as f64 / 1e9) + self.params.beta * (now - old);
        for (below, divisor) in [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)] {
            if self.drop_prob < below {
                p /= divisor;
                break;
            }
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if current == 0 && self.qdelay_old == 0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = current;
        let interval = self.params.update_interval.as_nanos() as u64;
        self.burst_allowance = self.burst_allowance.saturating_sub(interval);
        self.next_update += interval;
    }
}
