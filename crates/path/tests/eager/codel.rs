//! CoDel as the pseudo-code of RFC 8289 §5 has it, statement by statement; zero means "not set" there.

use fairpace_path::{CoDelParams, Plain};
use fairpace_units::Ecn;

pub(crate) struct CoDel {
    params: CoDelParams,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

/// Who is sent, whether with a new mark, and who was dropped before.
#[derive(Default)]
pub(crate) struct Chosen {
    pub(crate) packet: Option<Plain>,
    pub(crate) marked: bool,
    pub(crate) dropped: Vec<u64>,
}

impl CoDel {
    pub(crate) fn new(params: CoDelParams) -> Self {
        CoDel { params, first_above_time: 0, drop_next: 0, count: 0, lastcount: 0, dropping: false }
    }

    pub(crate) fn found_nobody(&mut self) {
        let nobody = self.dequeue(&mut Vec::new(), |_| true, 0);
        assert!(nobody.packet.is_none());
    }

    /// From those of the queue that are `mine`.
    pub(crate) fn dequeue(&mut self, queue: &mut Vec<(u64, Plain)>, mine: impl Fn(&Plain) -> bool, now: u64) -> Chosen {
        let mut chosen = Chosen::default();
        let (mut p, mut ok_to_drop) = self.dodequeue(queue, &mine, now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.mark(&mut p, &mut chosen) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                chosen.dropped.push(p.unwrap().id);
                (p, ok_to_drop) = self.dodequeue(queue, &mine, now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !self.mark(&mut p, &mut chosen) {
                chosen.dropped.push(p.unwrap().id);
                (p, _) = self.dodequeue(queue, &mine, now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            let interval = self.params.interval.as_nanos() as i128;
            if delta > 1 && i128::from(now) - i128::from(self.drop_next) < 16 * interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        chosen.packet = p;
        chosen
    }

    fn dodequeue(
        &mut self,
        queue: &mut Vec<(u64, Plain)>,
        mine: impl Fn(&Plain) -> bool,
        now: u64,
    ) -> (Option<Plain>, bool) {
        let Some(head) = queue.iter().position(|(_, p)| mine(p)) else {
            self.first_above_time = 0;
            return (None, false);
        };
        let (tstamp, packet) = queue.remove(head);
        let bytes: u64 = queue.iter().filter(|(_, p)| mine(p)).map(|(_, p)| p.size.get()).sum();
        let mut ok_to_drop = false;
        if u128::from(now - tstamp) < self.params.target.as_nanos() || bytes <= self.params.mtu.get() {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.params.interval.as_nanos() as u64;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn mark(&self, packet: &mut Option<Plain>, chosen: &mut Chosen) -> bool {
        let packet = packet.as_mut().unwrap();
        if !self.params.ecn || packet.ecn == Ecn::NotEct {
            return false;
        }
        packet.ecn = Ecn::Ce;
        chosen.marked = true;
        true
    }

    fn control_law(&self, t: u64) -> u64 {
        t + (self.params.interval.as_nanos() as f64 / (self.count as f64).sqrt()).floor() as u64
    }
}
