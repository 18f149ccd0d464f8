//! The free places of a store, given out in the order in which they lie.
//!
//! Packets that go into the network one after another come out of a queue about so, and are asked for so. Where they lie one after another, too, a queue
//! of a hundred thousand needs few pages of memory at a time, and the processor brings the next ones by itself. Were the place that was left last taken
//! first, they would lie in no order after a while, since acknowledgements stay for a shorter time than what waits in a queue.

/// Places in a word of bits.
const WORD: u32 = u64::BITS;

/// The free places, a bit each. A round takes them upwards, and then the next one begins.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The free places of one word that this round takes; that word in `free` says that they are taken.
    here: u64,
    word: usize,
    /// So many words are in a round: where an eighth of their places or less was free when it began, more; where more than half, an eighth of it less. So the places in use are few while
    /// there are few packets, and others are found fast.
    round: usize,
    free: Vec<u64>,
}

impl Places {
    /// A free place, which is taken then. If it never was before, it is the first such.
    #[inline(always)]
    pub(super) fn take(&mut self) -> u32 {
        if self.here == 0 {
            self.go_on();
        }
        let bit = self.here.trailing_zeros();
        self.here &= self.here.wrapping_sub(1);
        self.word as u32 * WORD + bit
    }

    /// A place that was taken is free, and taken again when a round comes to its word.
    #[inline(always)]
    pub(super) fn give_back(&mut self, place: u32) {
        self.free[(place / WORD) as usize] |= 1 << (place % WORD);
    }

    /// To the next word that has free places.
    #[inline(never)]
    fn go_on(&mut self) {
        let next = (self.word + 1..self.round).find(|word| self.free[*word] != 0);
        self.word = next.unwrap_or_else(|| self.begin_round());
        self.here = std::mem::take(&mut self.free[self.word]);
    }

    /// The first word of the next round that has free places: there is one.
    #[cold]
    fn begin_round(&mut self) -> usize {
        if self.free_in_round() > self.in_round() / 2 {
            self.round -= self.round / 8;
        }
        while self.free_in_round() <= self.in_round() / 8 {
            self.round += self.round / 8 + 1;
            self.free.resize(self.round.max(self.free.len()), u64::MAX);
        }
        self.free[..self.round].iter().position(|word| *word != 0).unwrap_or_default()
    }

    fn in_round(&self) -> u32 {
        self.round as u32 * WORD
    }

    fn free_in_round(&self) -> u32 {
        self.free[..self.round].iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::RandomStream;
    use std::collections::BTreeSet;

    #[test]
    fn a_place_is_given_to_one_at_a_time_upwards_and_new_ones_only_where_an_eighth_is_not_free() {
        let mut random = RandomStream::named(1, "places");
        let (mut places, mut taken, mut len, mut most) = (Places::default(), BTreeSet::new(), 0, 0);
        // More and more are in use, then hardly any, and more again.
        for (steps, share) in [(200, 1.0), (30_000, 0.6), (30_000, 0.5), (40_000, 0.3), (20_000, 0.7), (20_000, 0.5)] {
            for _ in 0..steps {
                if random.uniform() < share {
                    let place = places.take();
                    assert!(taken.insert(place), "{place} is in use");
                    assert!(place <= len, "{place} of {len}");
                    len = len.max(place + 1);
                    most = most.max(taken.len() as u32);
                } else if let Some(&place) = taken.iter().nth(random.below(taken.len().max(1) as u64) as usize) {
                    taken.remove(&place);
                    places.give_back(place);
                }
                assert!(len <= most + most / 4 + 2 * WORD, "{len} places for {most}");
            }
        }
        assert!(most > 5_000);
    }

    #[test]
    fn what_is_taken_together_lies_together_after_any_number_of_rounds() {
        let mut places = Places::default();
        // A queue of 10,000, and beside each packet of it one that leaves soon.
        let mut queue: std::collections::VecDeque<u32> = (0..10_000).map(|_| places.take()).collect();
        for _ in 0..200_000 {
            let short = places.take();
            places.give_back(queue.pop_front().expect("a queue"));
            queue.push_back(places.take());
            places.give_back(short);
        }
        let apart = queue.iter().zip(queue.iter().skip(1)).filter(|(a, b)| b.wrapping_sub(**a) > 64).count();
        assert!(apart <= queue.len() / 100, "{apart} of {} places are apart from the one before", queue.len());
    }

    #[test]
    fn few_packets_after_many_use_few_places() {
        let mut places = Places::default();
        let all: Vec<u32> = (0..100_000).map(|_| places.take()).collect();
        all.into_iter().for_each(|place| places.give_back(place));
        let mut highest = 0;
        for i in 0..10_000_000 {
            let place = places.take();
            places.give_back(place);
            if i > 9_000_000 {
                highest = highest.max(place);
            }
        }
        assert!(highest < 1_000, "{highest}");
    }
}
