//! Is a stream real, and which number has a packet [RFC 3550 A.1]?

/// Packets in sequence before a source is believed.
pub const MIN_SEQUENTIAL: u8 = 2;
/// A gap up to this is loss.
pub const MAX_DROPOUT: u16 = 3_000;
/// A step back up to this is reordering.
pub const MAX_MISORDER: u16 = 100;

/// Sequence number validation, with numbers that never wrap.
///
/// A source that a challenge has announced does not begin anew far behind numbers that have come in sequence: packets from there were held
/// back on their way, for longer than reordering lasts. Only behind a number that stands alone, as damage leaves it, two in sequence
/// are a restart there too.
///
/// ```text
///            second in sequence            jump > MAX_DROPOUT, then one in sequence
///  Probation -----------------> Valid ----------------------------------------------> Valid (restarted)
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Validator {
    /// Packets in sequence still to come.
    probation: u8,
    /// Where counting began, extended.
    base: u64,
    /// Highest so far, extended. Cycles in the bits above 16, as in the RFC.
    highest: u64,
    announced: bool,
    /// Packets with numbers of their own that came in turn since the last leap, that one included; two at most are counted.
    in_turn: u8,
    /// After a large jump: the number that would confirm it.
    jump_to: Option<u16>,
    /// How many times the source has started anew.
    pub restarts: u32,
}

/// The fate of a packet's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Part of the stream; its extended number.
    Accepted(u64),
    /// Part of the stream, which has begun anew with it.
    Restarted(u64),
    /// Not (yet) believed.
    Rejected,
}

impl Validator {
    /// Before its first packet. `announced`: a challenge named this SSRC, so that no probation is needed.
    pub fn new(first: u16, announced: bool) -> Self {
        let start = (1 << 16) + u64::from(first);
        Validator {
            probation: if announced { 0 } else { MIN_SEQUENTIAL },
            // One cycle up, so that reordering before the first packet cannot go below zero.
            base: start,
            highest: start - 1,
            announced,
            in_turn: 0,
            jump_to: None,
            restarts: 0,
        }
    }

    /// Whether the source is believed.
    pub const fn is_valid(&self) -> bool {
        self.probation == 0
    }

    /// Extended number of the first packet counted.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Extended highest number.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Takes in a packet's number: `update_seq` of [RFC 3550 A.1].
    pub fn update(&mut self, sequence: u16) -> Verdict {
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if self.probation > 0 {
            if ahead == 1 {
                self.highest += 1;
                self.probation -= 1;
                if self.probation == 0 {
                    self.base = self.highest;
                    return Verdict::Accepted(self.highest);
                }
            } else {
                self.probation = MIN_SEQUENTIAL - 1;
                self.highest = (1 << 16) + u64::from(sequence);
            }
            return Verdict::Rejected;
        }
        let behind = 0_u16.wrapping_sub(ahead);
        if ahead < MAX_DROPOUT {
            self.in_turn = match ahead {
                0 => self.in_turn,
                1..=MAX_MISORDER => (self.in_turn + 1).min(2),
                _ => 1,
            };
            self.highest += u64::from(ahead);
            self.jump_to = None;
            Verdict::Accepted(self.highest)
        } else if self.announced && self.in_turn == 2 && behind <= MAX_DROPOUT {
            Verdict::Accepted(self.highest - u64::from(behind))
        } else if ahead <= 0_u16.wrapping_sub(MAX_MISORDER) {
            // A large jump. Two in sequence: the other side has restarted without telling us.
            if self.jump_to == Some(sequence) {
                self.highest = ((self.highest >> 16) + 1) << 16 | u64::from(sequence);
                self.base = self.highest;
                self.jump_to = None;
                self.in_turn = 2;
                self.restarts += 1;
                return Verdict::Restarted(self.highest);
            }
            self.jump_to = Some(sequence.wrapping_add(1));
            Verdict::Rejected
        } else {
            // Duplicate or reordered.
            Verdict::Accepted(self.highest - u64::from(behind))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_believed_at_its_second_packet_in_sequence() {
        let mut v = Validator::new(10, false);
        assert_eq!(v.update(10), Verdict::Rejected);
        assert_eq!(v.update(12), Verdict::Rejected, "not in sequence: begins again");
        assert_eq!(v.update(13), Verdict::Accepted((1 << 16) + 13));
        assert!(v.is_valid());
        let mut announced = Validator::new(10, true);
        assert_eq!(announced.update(10), Verdict::Accepted((1 << 16) + 10));
    }

    fn valid(first: u16) -> Validator {
        let mut v = Validator::new(first, true);
        v.update(first);
        v
    }

    #[test]
    fn a_gap_below_3000_is_loss_and_one_above_is_a_jump() {
        let mut v = valid(0);
        assert_eq!(v.update(2_999), Verdict::Accepted((1 << 16) + 2_999));
        let mut v = valid(0);
        assert_eq!(v.update(3_000), Verdict::Rejected);
        assert_eq!(v.highest(), 1 << 16);
    }

    #[test]
    fn two_in_sequence_after_a_jump_are_a_restart() {
        let mut v = valid(0);
        assert_eq!(v.update(40_000), Verdict::Rejected);
        assert_eq!(v.update(40_002), Verdict::Rejected);
        assert_eq!(v.update(40_003), Verdict::Restarted((2 << 16) + 40_003));
        assert_eq!((v.base(), v.restarts), ((2 << 16) + 40_003, 1));
    }

    /// Held back for longer than reordering lasts, however many in sequence.
    #[test]
    fn an_announced_source_does_not_begin_anew_far_behind_numbers_in_sequence() {
        let mut v = valid(5_000);
        v.update(5_001);
        for n in (2_001..2_100).chain(4_000..4_500) {
            assert_eq!(v.update(n), Verdict::Accepted((1 << 16) + u64::from(n)));
        }
        assert_eq!((v.update(5_002), v.restarts), (Verdict::Accepted((1 << 16) + 5_002), 0));
        // Farther back than a dropout is no number of this stream's packets under way.
        assert_eq!([2_001, 2_002].map(|n| v.update(n)), [Verdict::Rejected, Verdict::Accepted((1 << 16) + 2_002)]);
    }

    /// One packet's number was damaged: those that follow are far behind it, and nothing comes near it.
    #[test]
    fn an_announced_source_goes_on_behind_a_number_that_stands_alone() {
        let mut v = valid(5_000);
        v.update(5_001);
        assert_eq!(v.update(7_000), Verdict::Accepted((1 << 16) + 7_000));
        // A copy of it is no second one.
        assert_eq!(v.update(7_000), Verdict::Accepted((1 << 16) + 7_000));
        assert_eq!([5_003, 5_004].map(|n| v.update(n)), [Verdict::Rejected, Verdict::Restarted((2 << 16) + 5_004)]);
        // The same as the very first packet.
        let mut v = valid(7_000);
        assert_eq!([5_001, 5_002].map(|n| v.update(n)), [Verdict::Rejected, Verdict::Restarted((2 << 16) + 5_002)]);
    }

    #[test]
    fn a_hundred_back_is_reordering_and_more_is_a_jump() {
        // A.1: udelta <= RTP_SEQ_MOD - MAX_MISORDER is a jump, so 99 back is reordering and 100 is not.
        let mut v = Validator::new(999, false);
        v.update(999);
        v.update(1_000);
        assert_eq!(v.update(901), Verdict::Accepted((1 << 16) + 901));
        assert_eq!(v.update(900), Verdict::Rejected);
    }

    #[test]
    fn the_wrap_counts_a_cycle_and_reordering_across_it_does_not() {
        let mut v = valid(65_534);
        assert_eq!(v.update(1), Verdict::Accepted((2 << 16) + 1));
        assert_eq!(v.update(65_535), Verdict::Accepted((1 << 16) + 65_535));
        assert_eq!(v.update(2), Verdict::Accepted((2 << 16) + 2));
    }
}
