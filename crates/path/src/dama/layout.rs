//! The order of a super-frame's slots: the plan as a line of places.
//!
//! A carrier's plan gives each terminal `count` places in a row, from `first` on; what is left at the end
//! is nobody's. The places are dealt to the multi-frames in turn, so that each has its share of every
//! terminal within one slot, and in a multi-frame they lie in a row ([`SlotLayout::Contiguous`]) or in
//! steps of the golden ratio ([`SlotLayout::Spread`]). This is a bijection of slots and places: a plan is
//! two numbers per terminal, and no slot can be given twice.
//!
//! ```text
//! place        0  1  2  3  4  5  6  7  8 ...      two multi-frames of six slots: the terminals a (3)
//! terminal     a  a  a  b  b  c  .  .  . ...      b (2) and c (1) have
//! multi-frame  0  1  0  1  0  1  0  1  0 ...      | a a b . . . | a b c . . . |
//! ```

use super::{DamaSpec, SlotLayout};

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    multi_frames: u32,
    per_multi_frame: u32,
    /// The factor that undoes the steps when a slot's number is multiplied by it, modulo the multi-frame; 1 if
    /// contiguous.
    unstep: u32,
}

impl Layout {
    pub(super) fn new(spec: &DamaSpec) -> Self {
        let per_multi_frame = spec.slots_per_multi_frame;
        let unstep = match spec.layout {
            SlotLayout::Contiguous => 1,
            SlotLayout::Spread => unstep(per_multi_frame),
        };
        Layout { multi_frames: spec.slots_per_super_frame / per_multi_frame, per_multi_frame, unstep }
    }

    /// The place of a slot of the super-frame.
    pub(super) fn place(&self, slot: u32) -> u32 {
        let (multi_frame, in_it) = (slot / self.per_multi_frame, slot % self.per_multi_frame);
        let turn = u64::from(in_it) * u64::from(self.unstep) % u64::from(self.per_multi_frame);
        turn as u32 * self.multi_frames + multi_frame
    }

    /// The first slot from `from` on whose place is one of the `count` from `first` on.
    pub(super) fn next_slot(&self, first: u32, count: u32, from: u32) -> Option<u32> {
        if count == 0 {
            return None;
        }
        let end = self.multi_frames * self.per_multi_frame;
        if self.unstep != 1 {
            return (from..end).find(|&slot| (first..first + count).contains(&self.place(slot)));
        }
        let mut from = from;
        while from < end {
            let multi_frame = from / self.per_multi_frame;
            let begin = multi_frame * self.per_multi_frame;
            // The turns t with first <= t * multi_frames + multi_frame < first + count.
            let turn = |place: u32| (place + self.multi_frames - 1 - multi_frame) / self.multi_frames;
            let slot = from.max(begin + turn(first));
            if slot < begin + turn(first + count) {
                return Some(slot);
            }
            from = begin + self.per_multi_frame;
        }
        None
    }
}

/// The inverse of the step nearest to the golden ratio of `slots` that visits all of them.
fn unstep(slots: u32) -> u32 {
    let golden = (f64::from(slots) * 0.618_033_988_749_894_9).round() as u32;
    let step = (golden.max(1)..).find(|&step| gcd(step, slots) == 1).unwrap_or(1);
    let inverse = (1..slots).find(|&inverse| u64::from(inverse) * u64::from(step) % u64::from(slots) == 1);
    inverse.unwrap_or(1)
}

/// The greatest common divisor.
pub(super) fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(layout: SlotLayout, multi_frames: u32, per_multi_frame: u32) -> Layout {
        let slots_per_super_frame = multi_frames * per_multi_frame;
        Layout::new(&DamaSpec {
            layout,
            slots_per_multi_frame: per_multi_frame,
            slots_per_super_frame,
            ..DamaSpec::large()
        })
    }

    fn slots(layout: &Layout, first: u32, count: u32) -> Vec<u32> {
        let next = |from| layout.next_slot(first, count, from);
        std::iter::successors(next(0), |&slot| next(slot + 1)).collect()
    }

    #[test]
    fn the_example_of_the_head() {
        let l = layout(SlotLayout::Contiguous, 2, 6);
        assert_eq!(slots(&l, 0, 3), [0, 1, 6]);
        assert_eq!(slots(&l, 3, 2), [2, 7]);
        assert_eq!(slots(&l, 5, 1), [8]);
        assert_eq!(slots(&l, 6, 0), []);
    }

    #[test]
    fn spread_slots_are_apart() {
        // 24 slots, step 17 (15 and 16 share a factor with 24... 0.618 * 24 = 14.8, then 15, 16, 17):
        // four turns lie at 0, 17, 10, 3.
        let l = layout(SlotLayout::Spread, 1, 24);
        assert_eq!(slots(&l, 0, 4), [0, 3, 10, 17]);
    }

    #[test]
    fn every_place_is_one_slot_and_every_multi_frame_has_its_share() {
        for (kind, multi_frames, per_multi_frame) in [
            (SlotLayout::Contiguous, 3, 24),
            (SlotLayout::Spread, 3, 24),
            (SlotLayout::Spread, 1, 1),
            (SlotLayout::Contiguous, 1, 7),
            (SlotLayout::Spread, 5, 2),
            (SlotLayout::Spread, 2, 144),
        ] {
            let l = layout(kind, multi_frames, per_multi_frame);
            let all = multi_frames * per_multi_frame;
            let mut places: Vec<u32> = (0..all).map(|slot| l.place(slot)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..all).collect::<Vec<_>>());
            for (first, count) in [(0, 1), (1, 3), (all / 2, all / 3), (0, all)] {
                if first + count > all {
                    continue;
                }
                let own = slots(&l, first, count);
                assert!(own.iter().all(|&slot| (first..first + count).contains(&l.place(slot))));
                assert_eq!(own.len() as u32, count);
                for m in 0..multi_frames {
                    let here = own.iter().filter(|&&slot| slot / per_multi_frame == m).count() as u32;
                    assert!(here >= count / multi_frames && here <= count.div_ceil(multi_frames));
                }
            }
        }
    }
}
