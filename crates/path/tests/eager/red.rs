//! RED by its definition: one step of the average for each packet that could have left, and the
//! formulas of the paper and of ns-2 one after the other.

use fairpace_path::{Plain, RedParams, Thresholds};
use fairpace_units::{Bytes, Ecn, RandomStream};

pub(crate) struct Red {
    params: RedParams,
    random: RandomStream,
    average: f64,
    /// Sizes of the arrivals since the last drop or mark.
    since: Vec<u64>,
    was_above: bool,
}

impl Red {
    pub(crate) fn new(params: RedParams, random: RandomStream) -> Self {
        Red { params, random, average: 0.0, since: Vec::new(), was_above: false }
    }

    /// Whether the arrival is dropped beside the hard limit, which is reached or not; a mark is set in it.
    pub(crate) fn on_arrival(&mut self, waiting: &[Bytes], idle_work: u128, full: bool, packet: &mut Plain) -> bool {
        self.update(waiting, &[idle_work]);
        let draw = self.random.uniform();
        let drop = self.judge(waiting, draw, packet);
        if full {
            self.forget();
        }
        drop
    }

    /// The count begins anew.
    pub(crate) fn forget(&mut self) {
        self.since.clear();
    }

    /// The average, after idle times in which so much work could have been done.
    pub(crate) fn update(&mut self, waiting: &[Bytes], idle: &[u128]) {
        let p = self.params;
        let one = u128::from(p.mean_packet_size.get()) * super::WORK_PER_BYTE;
        for _ in 0..idle.iter().map(|work| work / one).sum() {
            self.average *= 1.0 - p.weight;
        }
        let q = match p.thresholds {
            Thresholds::Packets { .. } => waiting.len() as f64,
            Thresholds::Bytes { .. } => waiting.iter().map(|b| b.get()).sum::<u64>() as f64,
        };
        self.average = (1.0 - p.weight) * self.average + p.weight * q;
    }

    /// Whether the average drops the arrival, with that random number.
    pub(crate) fn judge(&mut self, waiting: &[Bytes], draw: f64, packet: &mut Plain) -> bool {
        let p = self.params;
        let mean = p.mean_packet_size.as_f64();
        let (min, max) = match p.thresholds {
            Thresholds::Packets { min, max } => (min.as_f64(), max.as_f64()),
            Thresholds::Bytes { min, max } => (min.as_f64(), max.as_f64()),
        };
        self.since.push(packet.size.get());

        if self.average < min || waiting.len() < 2 {
            self.was_above = false;
            return false;
        }
        let limit = if p.gentle { max * 2.0 } else { max };
        if self.average >= limit {
            self.since.clear();
            return true;
        }
        if !self.was_above {
            self.was_above = true;
            self.since = vec![packet.size.get()];
            return false;
        }
        let base = if self.average < max {
            p.max_probability * (self.average - min) / (max - min)
        } else {
            p.max_probability + (1.0 - p.max_probability) * (self.average - max) / max
        };
        let count = match p.by_size {
            true => self.since.iter().sum::<u64>() as f64 / mean,
            false => self.since.len() as f64,
        };
        let chance = match (p.wait, count * base) {
            (true, x) if x < 1.0 => 0.0,
            (true, x) if x < 2.0 => base / (2.0 - x),
            (false, x) if x < 1.0 => base / (1.0 - x),
            _ => 1.0,
        };
        let scale = if p.by_size && chance < 1.0 { packet.size.as_f64() / mean } else { 1.0 };
        if draw >= chance * scale {
            return false;
        }
        self.since.clear();
        if p.ecn && packet.ecn != Ecn::NotEct {
            packet.ecn = Ecn::Ce;
            return false;
        }
        true
    }
}
