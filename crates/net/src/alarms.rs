//! One timer for many: when each of them is to be asked again.

use fairpace_units::Instant;
use std::collections::BTreeSet;

/// An instant for each of so many numbers, counted from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms {
    at: Vec<Instant>,
    order: BTreeSet<(Instant, usize)>,
}

impl Alarms {
    /// The alarm of `number` rings at `at`, and no more at the instant before; NEVER: it does not ring.
    pub(crate) fn set(&mut self, number: usize, at: Instant) {
        if number >= self.at.len() {
            self.at.resize(number + 1, Instant::NEVER);
        }
        let Some(old) = self.at.get_mut(number).filter(|old| **old != at) else { return };
        self.order.remove(&(*old, number));
        *old = at;
        if at != Instant::NEVER {
            self.order.insert((at, number));
        }
    }

    /// When the next one rings; NEVER if none does.
    pub(crate) fn next(&self) -> Instant {
        self.order.first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Those that have rung by `now`, into `due`, the earliest first. Each rings once.
    pub(crate) fn take_due(&mut self, now: Instant, due: &mut Vec<usize>) {
        due.clear();
        while let Some((at, number)) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            self.order.remove(&(at, number));
            if let Some(old) = self.at.get_mut(number) {
                *old = Instant::NEVER;
            }
            due.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    proptest! {
        /// Beside a plain list that is searched each time.
        #[test]
        fn each_alarm_rings_once_in_order_at_the_last_instant_it_was_set_to(
            steps in prop::collection::vec((0_usize..6, prop::option::of(0_u64..50), any::<bool>()), 1..80),
        ) {
            let (mut alarms, mut plain, mut now) = (Alarms::default(), [Instant::NEVER; 6], at(0));
            let mut due = Vec::new();
            for (number, ms, wait) in steps {
                let until = ms.map_or(Instant::NEVER, at);
                alarms.set(number, until);
                plain[number] = until;
                if wait {
                    now += fairpace_units::Duration::from_millis(3);
                    alarms.take_due(now, &mut due);
                    let mut expected: Vec<_> = (0..6).filter(|n| plain[*n] <= now).collect();
                    expected.sort_by_key(|n| (plain[*n], *n));
                    expected.iter().for_each(|n| plain[*n] = Instant::NEVER);
                    prop_assert_eq!(&due, &expected);
                }
                prop_assert_eq!(alarms.next(), plain.into_iter().min().unwrap());
            }
        }
    }
}
