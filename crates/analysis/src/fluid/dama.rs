//! The layer-2 loop: what the terminal asks for by eq. (1), and what it is given, by eq. (2).

use super::Link;
use fairpace_path::ReleaseOf;
use std::collections::VecDeque;

/// One terminal and the NCC, from one super-frame's boundary to the next. Rates in bit/s.
pub(super) struct Dama<'a> {
    link: &'a Link,
    /// Under way, the oldest first: one for each super-frame of T_a.
    requests: VecDeque<Request>,
    /// N_B: what is in force, before it is rounded to units.
    n_b: f64,
}

#[derive(Clone, Copy)]
struct Request {
    rate: f64,
    /// The bits that entered the terminal over the T_r before.
    traffic: f64,
}

impl<'a> Dama<'a> {
    /// A terminal that has been idle for long.
    pub(super) fn new(link: &'a Link) -> Dama<'a> {
        let idle = Request { rate: link.c.as_bps(), traffic: 0.0 };
        Dama { link, requests: (0..link.t_a).map(|_| idle).collect(), n_b: idle.rate }
    }

    /// A boundary. `traffic`: R(t), bit/s that entered over the T_r until now; `queue`: q(t), bits in the
    /// uplink queue; `approved`: Quick-Start rates to add, bit/s.
    pub(super) fn boundary(&mut self, traffic: f64, queue: f64, approved: f64) {
        // Eq. (1): R_req = max { R(t) + q(t)/T_s + F, C }. There is no FCA: F = 0.
        let volume = self.link.t_s.map_or(0.0, |t_s| queue / t_s.as_secs_f64());
        let rate = (traffic + volume).max(self.link.c.as_bps()) + approved;
        self.requests.push_back(Request { rate, traffic });
        let Some(request) = self.requests.pop_front() else { return };
        let n_l = match self.link.release {
            ReleaseOf::Decided => request.traffic,
            ReleaseOf::InForce => traffic,
        };
        self.n_b = if request.rate >= self.n_b {
            request.rate
        } else {
            // Eq. (2), but neither below what was asked for nor above what there was.
            let n_b = self.link.a * self.n_b + self.link.b * (n_l - self.n_b);
            n_b.min(self.n_b).max(request.rate)
        };
    }

    /// B: what the uplink queue is served with until the next boundary, bit/s.
    pub(super) fn granted(&self) -> f64 {
        let unit = self.link.unit.as_bps();
        // A whole number of units must not become one more by rounding in the measurement.
        let grant = if unit > 0.0 { (self.n_b / unit - 1e-9).ceil() * unit } else { self.n_b };
        grant.max(self.link.minimum.as_bps()).min(self.link.available.as_bps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_path::DamaSpec;
    use fairpace_units::{Duration, Rate};

    fn large(release_of: ReleaseOf) -> Link {
        Link::try_from(&DamaSpec { release_of, ..DamaSpec::large() }).unwrap()
    }

    /// Grants in kbit/s after each boundary; for each, kbit/s that entered the terminal before it, and what
    /// Quick-Start adds.
    fn grants(link: &Link, boundaries: &[(f64, f64)]) -> Vec<f64> {
        let mut dama = Dama::new(link);
        let after = |&(traffic, approved): &(f64, f64)| {
            dama.boundary(traffic * 1e3, 0.0, approved * 1e3);
            (dama.granted() / 1e3).round()
        };
        boundaries.iter().map(after).collect()
    }

    /// T_a = 2 T_b, units of 44 kbit/s.
    #[test]
    fn a_request_is_answered_t_a_later_in_whole_units_and_released_by_half_of_what_is_unused() {
        let idle = (0.0, 0.0);
        // 256 kbit/s: 5.82 units, so 6 = 264. Then N_B: 256, 128, 64, 32, 16: 264, 132, 88, 44, 44 kbit/s.
        let once = [(256.0, 0.0), idle, idle, idle, idle, idle, idle];
        for release in [ReleaseOf::Decided, ReleaseOf::InForce] {
            assert_eq!(grants(&large(release), &once), [44.0, 44.0, 264.0, 132.0, 88.0, 44.0, 44.0]);
        }
        // All that there is: 144 units less one for each of four others = 6,160 kbit/s.
        assert_eq!(grants(&large(ReleaseOf::InForce), &[(9e3, 0.0), idle, idle])[2], 6_160.0);
    }

    #[test]
    fn what_quick_start_added_falls_before_it_is_in_force_or_not_until_then() {
        // The data comes in the super-frame of the grant, and 256 kbit/s of it from then on.
        let boundaries = [(0.0, 320.0), (0.0, 0.0), (0.0, 0.0), (256.0, 0.0), (256.0, 0.0), (256.0, 0.0)];
        // Decided: 320, then with N_L = 0 of the requests that follow 160, 80; then 256 is asked for.
        assert_eq!(grants(&large(ReleaseOf::Decided), &boundaries), [44.0, 44.0, 352.0, 176.0, 88.0, 264.0]);
        // In force: 320, then with N_L = 256: 320 - 32 = 288, 272; then 256 is asked for: 272 - 8 = 264.
        assert_eq!(grants(&large(ReleaseOf::InForce), &boundaries), [44.0, 44.0, 352.0, 308.0, 308.0, 264.0]);
    }

    #[test]
    fn a_request_is_the_larger_of_traffic_with_queue_and_constant_rate() {
        let link = Link {
            t_s: Some(Duration::from_secs(2)),
            c: Rate::kbps(88.0),
            unit: Rate::ZERO,
            ..large(ReleaseOf::Decided)
        };
        let mut dama = Dama::new(&link);
        assert_eq!(dama.granted(), 88e3, "what is always asked for is there from the start");
        // Eq. (1): 50 kbit/s + 100 kbit / 2 s = 100 kbit/s
        dama.boundary(50e3, 100e3, 0.0);
        dama.boundary(0.0, 0.0, 0.0);
        dama.boundary(0.0, 0.0, 0.0);
        assert_eq!(dama.granted(), 100e3);
        // Eq. (2): 100 + 0.5 (0 - 100) = 50, but 88 is asked for.
        dama.boundary(0.0, 0.0, 0.0);
        assert_eq!(dama.granted(), 88e3);
    }
}
