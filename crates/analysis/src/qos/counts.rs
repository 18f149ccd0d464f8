//! T_n: how many packets a user's slots deliver, or let leave the queue, in n slots.

use super::process::{Process, Start};
use super::rest::Rest;
use super::walk::{Rule, Walk};

impl Process {
    /// T_n: element x is the probability of exactly x successful transmissions in n slots, x = 0 ..= n.
    pub fn successes(&self, n: u32, start: Start) -> Vec<f64> {
        self.counts(n, start, Rule::SUCCESSES)
    }

    /// As [`Process::successes`], of packets that leave the queue: delivered or given up. The same where tries are
    /// not limited.
    pub fn departures(&self, n: u32, start: Start) -> Vec<f64> {
        self.counts(n, start, Rule::DEPARTURES)
    }

    /// E\[T_n\]: the mean number of successful transmissions in n slots. Stationary it is n times the throughput.
    pub fn mean_successes(&self, n: u32, start: Start) -> f64 {
        let mut mean = 0.0;
        for seed in self.seeds(start) {
            let mut walk = Walk::new(self, &seed, n as usize, 1);
            for _ in 0..n {
                mean += walk.success_at(0);
                walk.step(Rule::UNCOUNTED);
            }
        }
        mean
    }

    fn counts(&self, n: u32, start: Start, rule: Rule) -> Vec<f64> {
        let mut counts = vec![0.0; n as usize + 1];
        for seed in self.seeds(start) {
            let (half, all) = (n as usize / 2, n as usize);
            let mut walk = Walk::new(self, &seed, all, half + 1);
            for _ in 0..half {
                walk.step(rule);
            }
            Rest::new(self, seed.at, half, all, rule).add_to(&walk, &mut counts);
        }
        counts
    }
}
