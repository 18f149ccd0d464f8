//! First in, first out, in numbered places.

/// Entries in order, each with a number one above that of the entry before it. Entry n lies at place n modulo the number
/// of places, a power of two, so that no index wraps by comparison. Takes no memory before the first entry.
///
/// ```
/// use fairpace_path::Ring;
/// let mut ring = Ring::default();
/// ring.push('a');
/// ring.push('b');
/// assert_eq!((ring.front(), ring.get(ring.first() + 1), ring.get(ring.end())), (Some(&'a'), Some(&'b'), None));
/// assert_eq!((ring.pop(), ring.pop(), ring.pop()), (Some('a'), Some('b'), None));
/// ```
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// None, or a power of two. Those without an entry have an old one.
    places: Box<[T]>,
    /// Number of the first entry; numbers go around after the largest.
    first: u32,
    /// Number of the next entry to be pushed.
    end: u32,
}

/// The least that is taken when there is an entry.
const FEWEST_PLACES: usize = 2;

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { places: Box::default(), first: 0, end: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// How many entries there are.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.end.wrapping_sub(self.first)
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Whether the next entry takes more memory.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len() as usize == self.places.len()
    }

    /// The number of the first entry, or of the next one if there is none.
    #[inline(always)]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The number of the next entry.
    #[inline(always)]
    pub fn end(&self) -> u32 {
        self.end
    }

    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }

    /// The entry of a number from [`Ring::first`] to [`Ring::end`]; `None` at the end.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<&T> {
        if number == self.end { None } else { self.places.get(self.place(number)) }
    }

    /// The first entry.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.get(self.first)
    }

    /// The entry that was added last, even if it has been taken out.
    #[inline]
    pub fn last(&self) -> Option<&T> {
        self.places.get(self.place(self.end.wrapping_sub(1)))
    }

    /// Adds an entry behind the others.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        if self.is_full() {
            self.grow(entry);
        }
        let place = self.place(self.end);
        if let Some(place) = self.places.get_mut(place) {
            *place = entry;
            self.end = self.end.wrapping_add(1);
        }
    }

    /// Takes the first entry out.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let entry = *self.front()?;
        self.first = self.first.wrapping_add(1);
        Some(entry)
    }

    /// Takes the first entry out of a full ring and adds one behind the others, at the same place.
    #[inline(always)]
    pub fn turn(&mut self, entry: T) {
        debug_assert!(self.is_full());
        let place = self.place(self.end);
        if let Some(place) = self.places.get_mut(place) {
            *place = entry;
            self.first = self.first.wrapping_add(1);
            self.end = self.end.wrapping_add(1);
        }
    }

    /// Takes the entries before that number out, which is none before the first nor behind the end.
    #[inline(always)]
    pub fn skip_to(&mut self, number: u32) {
        self.first = number;
    }

    /// The entries from a number on, which lie in two pieces.
    #[inline]
    pub fn slices_from(&self, number: u32) -> [&[T]; 2] {
        let begin = self.place(number).min(self.places.len());
        let (later, sooner) = self.places.split_at(begin);
        let len = self.end.wrapping_sub(number) as usize;
        let first = sooner.len().min(len);
        [&sooner[..first], &later[..len - first]]
    }

    /// The entries from a number on.
    #[inline]
    pub fn iter_from(&self, number: u32) -> impl Iterator<Item = &T> {
        let [sooner, later] = self.slices_from(number);
        sooner.iter().chain(later)
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(self.first)
    }

    /// Makes room; the new places have some entry.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, some: T) {
        let places = (2 * self.places.len()).max(FEWEST_PLACES);
        let mut larger = vec![some; places];
        for (i, entry) in (0..).zip(self.iter()) {
            larger[self.first.wrapping_add(i) as usize & (places - 1)] = *entry;
        }
        self.places = larger.into_boxed_slice();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::RandomStream;
    use std::collections::VecDeque;

    /// By definition: a deque. Numbers go around at the largest.
    #[test]
    fn it_gives_what_a_deque_gives_at_every_length_and_around_the_largest_number() {
        let mut random = RandomStream::named(1, "ring");
        let mut ring = Ring { first: u32::MAX - 3_000, end: u32::MAX - 3_000, ..Ring::default() };
        let mut deque = VecDeque::new();
        for step in 0..20_000 {
            // Grows to some hundreds, then shrinks, again and again.
            let grow = if step / 500 % 2 == 0 { 6 } else { 4 };
            if random.below(10) < grow {
                if ring.is_full() && !ring.is_empty() && random.below(2) == 0 {
                    ring.turn(step);
                    deque.pop_front();
                } else {
                    ring.push(step);
                }
                deque.push_back(step);
            } else if random.below(100) == 0 {
                let out = random.below(deque.len() as u64 + 1) as u32;
                ring.skip_to(ring.first().wrapping_add(out));
                deque.drain(..out as usize);
            } else {
                assert_eq!(ring.pop(), deque.pop_front());
            }
            assert_eq!((ring.len() as usize, ring.is_empty()), (deque.len(), deque.is_empty()));
            assert_eq!((ring.front(), ring.get(ring.end())), (deque.front(), None));
            let place = random.below(deque.len() as u64 + 1) as u32;
            assert_eq!(ring.get(ring.first().wrapping_add(place)), deque.get(place as usize));
            assert!(ring.iter_from(ring.first().wrapping_add(place)).eq(deque.range(place as usize..)));
        }
        assert!(ring.iter().eq(deque.iter()));
    }
}
