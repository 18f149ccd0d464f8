//! Few events are put in order: those of one slot, and one more among others.

use super::entry::Entry;

/// So many events are put in order by moving each to its place; more by a sort.
const FEW: usize = 24;

/// Puts the events of a slot in order.
#[inline(always)]
pub(super) fn put_in_order(entries: &mut [Entry]) {
    if entries.len() > FEW {
        return entries.sort_unstable();
    }
    // Often they are of two batches of packets, or of one.
    let first = run(entries);
    if first < entries.len() && first + run(&entries[first..]) == entries.len() {
        merge(entries, first);
    }
    // And those of one instant.
    for len in 2..=entries.len() {
        sink(&mut entries[..len]);
    }
}

/// How many entries come before the first that is earlier than the one before it.
#[inline(always)]
fn run(entries: &[Entry]) -> usize {
    entries.windows(2).position(|pair| pair[1].at < pair[0].at).map_or(entries.len(), |before| before + 1)
}

/// Merges the first so many of a few entries with the others, both sorted by time, without a branch for each.
#[inline(always)]
fn merge(entries: &mut [Entry], first: usize) {
    let mut runs = [Entry::LAST; FEW + 1];
    runs[..entries.len()].copy_from_slice(entries);
    let (mut here, mut there) = (0, first);
    for place in entries {
        let (a, b) = (runs[here], runs[there]);
        let second = (here == first) | (b.at < a.at);
        *place = if second { b } else { a };
        here += usize::from(!second);
        there += usize::from(second);
    }
}

/// Moves the last of some entries, of which the others are in order, in front of those that are later.
#[inline(always)]
pub(super) fn sink(entries: &mut [Entry]) {
    let Some(&last) = entries.last() else { return };
    let mut place = entries;
    while let [.., before, here] = place
        && before.is_after(&last)
    {
        *here = *before;
        let len = place.len();
        place = &mut place[..len - 1];
    }
    if let Some(here) = place.last_mut() {
        *here = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::{Instant, RandomStream};

    /// Also at the end of time, where nothing is later than the last event.
    #[test]
    fn two_sorted_batches_in_one_slot_come_in_one_order() {
        let mut random = RandomStream::named(1, "batches");
        for begin in [0, 1 << 40, u64::MAX - 20] {
            for first in 0..FEW {
                for second in 0..=FEW - first {
                    let mut at = |len: usize| {
                        let mut run: Vec<_> = (0..len).map(|_| begin + random.below(21)).collect();
                        run.sort_unstable();
                        run
                    };
                    let times = [at(first), at(second)].concat();
                    let mut entries: Vec<_> =
                        (0..).zip(&times).map(|(i, at)| Entry::new(Instant::from_nanos(*at), i, i)).collect();
                    let mut sorted = entries.clone();
                    put_in_order(&mut entries);
                    sorted.sort();
                    assert_eq!(entries, sorted, "{first} and {second} from {begin}");
                }
            }
        }
    }
}
