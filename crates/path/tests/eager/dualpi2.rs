//! DualPI2 as the pseudo-code of RFC 9332, Appendix A, has it: one common list of packets, told apart by their ECN field.

use super::codel::Chosen;
use fairpace_path::{DualPi2Params, Plain};
use fairpace_units::Ecn;

pub(crate) struct DualPi2 {
    params: DualPi2Params,
    p: f64,
    prevq: u64,
    lq_count: f64,
    cq_count: f64,
    credit: f64,
    pub(crate) next_update: u64,
}

fn is_l4s(packet: &Plain) -> bool {
    packet.ecn as u8 % 2 == 1
}

fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

impl DualPi2 {
    pub(crate) fn new(params: DualPi2Params) -> Self {
        let next_update = params.update_interval.as_nanos() as u64;
        let mut new = DualPi2 { params, p: 0.0, prevq: 0, lq_count: 0.0, cq_count: 0.0, credit: 0.0, next_update };
        new.found_nobody();
        new
    }

    pub(crate) fn found_nobody(&mut self) {
        self.credit = self.params.mtu.get() as f64 * (2.0 * self.params.classic_weight - 1.0);
    }

    /// One update, at its own time.
    pub(crate) fn update(&mut self, queue: &[(u64, Plain)]) {
        let now = self.next_update;
        let curq = queue.iter().map(|(arrival, _)| now - arrival).max().unwrap_or(0);
        let s = |ns: u64| ns as f64 / 1e9;
        let target = self.params.target.as_nanos() as u64;
        let i = self.params.alpha * (s(curq) - s(target));
        let d = self.params.beta * (s(curq) - s(self.prevq));
        self.p = (self.p + i + d).clamp(0.0, 1.0);
        self.prevq = curq;
        self.next_update += self.params.update_interval.as_nanos() as u64;
    }

    pub(crate) fn dequeue(&mut self, queue: &mut Vec<(u64, Plain)>, now: u64) -> Chosen {
        let mut chosen = Chosen::default();
        while !queue.is_empty() {
            let waiting = |l4s: bool, queue: &[(u64, Plain)]| queue.iter().filter(|(_, p)| is_l4s(p) == l4s).count();
            let both = waiting(true, queue) > 0 && waiting(false, queue) > 0;
            let l4s = if both { self.credit <= 0.0 } else { waiting(true, queue) > 0 };
            let head = queue.iter().position(|(_, p)| is_l4s(p) == l4s).unwrap();
            let (arrival, mut packet) = queue.remove(head);
            let (p_cl, p_c) = (self.params.coupling * self.p, self.p * self.p);
            let (mut drop, mut mark) = (false, false);
            if l4s && p_cl < 1.0 {
                let over = (now - arrival).saturating_sub(self.params.threshold.as_nanos() as u64) as f64;
                let range = self.params.range.as_nanos() as f64;
                let enough = waiting(true, queue) >= self.params.threshold_packets as usize;
                let native = if !enough || over <= 0.0 {
                    0.0
                } else if over >= range {
                    1.0
                } else {
                    over / range
                };
                mark = recur(&mut self.lq_count, native.max(p_cl));
            } else if l4s {
                drop = recur(&mut self.lq_count, p_c);
                mark = !drop;
            } else if recur(&mut self.cq_count, p_c) {
                drop = packet.ecn == Ecn::NotEct || p_cl >= 1.0;
                mark = !drop;
            }
            if drop {
                chosen.dropped.push(packet.id);
                continue;
            }
            if mark {
                packet.ecn = Ecn::Ce;
                chosen.marked = true;
            }
            if both {
                let (size, w) = (packet.size.get() as f64, self.params.classic_weight);
                self.credit += if l4s { w * size } else { -(1.0 - w) * size };
            }
            chosen.packet = Some(packet);
            break;
        }
        chosen
    }
}
