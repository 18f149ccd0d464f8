//! Who has asked with the key's HMAC, and of whom nothing under its session's keys has come yet: any of them may be a recorded
//! challenge that somebody sends again, from any address.
//!
//! Nothing is kept for one but its salts, its SSRCs and its last tokens. Contexts are made when a packet comes that may be its
//! first, and nothing is sealed for it before. Somebody with a few recordings fills a bounded part, and keeps nobody out: one salt
//! has [`OF_SALT`] addresses, of which the first to ask stays; one address has [`OF_ADDRESS`] salts, told apart by
//! the SSRC of what comes; [`IN_ALL`] are kept in all, and the oldest gives way.

use super::wire::Salt;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Addresses from which one salt asks.
pub(super) const OF_SALT: usize = 16;
/// Salts that ask from one address.
pub(super) const OF_ADDRESS: usize = 64;
/// All of them: some 4 MB.
pub(super) const IN_ALL: usize = 16_384;
/// Challenges of one that may still be echoed.
const MOST_TOKENS: usize = 32;

/// The tokens that may still be echoed, and the numbers of challenges that have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    tokens: std::collections::VecDeque<u64>,
    newest: u32,
    /// Bit n: the n-th number before the newest has come.
    before: u64,
}

impl Heard {
    /// Whether the challenge of this number is new; it is taken down if so. One that is more than 64 older than the newest is not.
    pub(super) fn take(&mut self, number: u32, token: u64) -> bool {
        if let Some(ahead) = number.checked_sub(self.newest).filter(|ahead| *ahead > 0) {
            let moved = self.before.checked_shl(ahead).unwrap_or(0);
            let last = ahead.checked_sub(1).and_then(|n| 1_u64.checked_shl(n)).filter(|_| self.newest > 0);
            (self.newest, self.before) = (number, moved | last.unwrap_or(0));
        } else {
            let behind = self.newest.saturating_sub(number);
            let Some(bit) = behind.checked_sub(1).and_then(|n| 1_u64.checked_shl(n)) else { return false };
            if number == 0 || self.before & bit != 0 {
                return false;
            }
            self.before |= bit;
        }
        if self.tokens.len() >= MOST_TOKENS {
            self.tokens.pop_front();
        }
        self.tokens.push_back(token);
        true
    }

    pub(super) fn has_token(&self, token: u64) -> bool {
        self.tokens.contains(&token)
    }
}

/// One that asks.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) salt: Salt,
    /// The receiver's own salt for it: fresh, so that nothing that was recorded is under these keys.
    pub(super) own: Salt,
    pub(super) ssrcs: [u32; 4],
    pub(super) heard: Heard,
    /// Counts up.
    order: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Asking {
    all: BTreeMap<(SocketAddr, Salt), Asker>,
    by_salt: BTreeMap<(Salt, u64), SocketAddr>,
    by_order: BTreeMap<u64, (SocketAddr, Salt)>,
    next: u64,
}

impl Asking {
    pub(super) fn get_mut(&mut self, from: SocketAddr, salt: &Salt) -> Option<&mut Asker> {
        self.all.get_mut(&(from, *salt))
    }

    /// All askers of an address.
    pub(super) fn of(&self, from: SocketAddr) -> impl DoubleEndedIterator<Item = &Asker> {
        self.all.range((from, [0; super::SALT])..=(from, [0xff; super::SALT])).map(|(_, asker)| asker)
    }

    /// One more, whose challenge is the first that comes.
    pub(super) fn push(&mut self, from: SocketAddr, salt: Salt, own: Salt, ssrcs: [u32; 4]) -> Option<&mut Asker> {
        let order = self.next;
        self.next = self.next.saturating_add(1);
        let of_salt = self.by_salt.range((salt, 0)..=(salt, u64::MAX));
        // The second oldest: the first may be the sender itself, and those behind it what somebody makes of its challenge.
        let crowded = (of_salt.clone().count() >= OF_SALT).then(|| of_salt.clone().nth(1)).flatten();
        if let Some(address) = crowded.map(|(_, address)| *address) {
            self.remove(address, &salt);
        }
        let oldest = (self.of(from).count() >= OF_ADDRESS).then(|| self.of(from).min_by_key(|a| a.order)).flatten();
        if let Some(salt) = oldest.map(|a| a.salt) {
            self.remove(from, &salt);
        }
        if self.all.len() >= IN_ALL
            && let Some((address, salt)) = self.by_order.first_key_value().map(|(_, asker)| *asker)
        {
            self.remove(address, &salt);
        }
        self.by_salt.insert((salt, order), from);
        self.by_order.insert(order, (from, salt));
        let asker = Asker { salt, own, ssrcs, heard: Heard::default(), order };
        Some(self.all.entry((from, salt)).insert_entry(asker).into_mut())
    }

    /// All askers of an address, in the order in which they came; they are not here any more.
    pub(super) fn take(&mut self, from: SocketAddr) -> Vec<Asker> {
        let salts: Vec<Salt> = self.of(from).map(|asker| asker.salt).collect();
        let mut taken: Vec<Asker> = salts.iter().filter_map(|salt| self.remove(from, salt)).collect();
        taken.sort_by_key(|asker| asker.order);
        taken
    }

    /// All askers of all addresses, in the order in which they came; they are not here any more.
    pub(super) fn take_all(&mut self) -> Vec<(SocketAddr, Asker)> {
        let in_order = std::mem::take(&mut self.by_order).into_values();
        self.by_salt.clear();
        in_order.filter_map(|(from, salt)| Some((from, self.all.remove(&(from, salt))?))).collect()
    }

    /// One that was heard elsewhere; the newest, unless it has asked here too.
    pub(super) fn put(&mut self, from: SocketAddr, salt: Salt, own: Salt, ssrcs: [u32; 4], heard: Heard) {
        if self.get_mut(from, &salt).is_none()
            && let Some(put) = self.push(from, salt, own, ssrcs)
        {
            put.heard = heard;
        }
    }

    pub(super) fn remove(&mut self, from: SocketAddr, salt: &Salt) -> Option<Asker> {
        let asker = self.all.remove(&(from, *salt))?;
        self.by_salt.remove(&(*salt, asker.order));
        self.by_order.remove(&asker.order);
        Some(asker)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert!(self.by_salt.len() == self.all.len() && self.by_order.len() == self.all.len());
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 5_000))
    }

    fn salt(n: u16) -> Salt {
        let mut salt = [0; super::super::SALT];
        salt[..2].copy_from_slice(&n.to_be_bytes());
        salt
    }

    #[test]
    fn each_number_is_taken_once_in_any_order_within_64() {
        let mut heard = Heard::default();
        assert!(!heard.take(0, 0), "numbers begin with 1");
        for number in [1, 2, 5, 3, 4, 70, 69, 7, 6] {
            assert!(heard.take(number, number.into()), "{number}");
            assert!(!heard.take(number, 0), "{number} again");
        }
        for old in [1, 5, 3, 6, 7, 69, 70] {
            assert!(!heard.take(old, 0), "{old}");
        }
        assert!(!heard.take(3, 0), "too old to be told");
        assert!(heard.take(u32::MAX, 9) && !heard.take(70, 0) && !heard.take(u32::MAX, 0));
        assert!(heard.take(u32::MAX - 64, 8) && !heard.take(u32::MAX - 65, 8));
        assert!(heard.has_token(9) && heard.has_token(6) && !heard.has_token(0));
    }

    #[test]
    fn the_first_address_of_a_salt_stays_whoever_repeats_its_challenge() {
        let mut asking = Asking::default();
        for n in 0..1_000 {
            asking.push(address(n), salt(7), salt(n), [0; 4]);
        }
        assert_eq!(asking.len(), OF_SALT);
        assert!(asking.get_mut(address(0), &salt(7)).is_some(), "the first");
        assert!(asking.get_mut(address(999), &salt(7)).is_some(), "the last");
        assert!(asking.get_mut(address(1), &salt(7)).is_none());
    }

    #[test]
    fn one_address_and_all_together_have_their_bounds() {
        let mut asking = Asking::default();
        for n in 0..200 {
            asking.push(address(1), salt(n), salt(n), [0; 4]);
        }
        assert_eq!((asking.len(), asking.of(address(1)).count()), (OF_ADDRESS, OF_ADDRESS));
        assert!(asking.of(address(1)).any(|a| a.salt == salt(199)) && asking.of(address(1)).all(|a| a.salt != salt(0)));
        for n in 0..20_000 {
            asking.push(address(n), salt(n), salt(n), [0; 4]);
        }
        assert_eq!(asking.len(), IN_ALL);
        assert!(asking.remove(address(19_999), &salt(19_999)).is_some());
        assert_eq!(asking.len(), IN_ALL - 1);
        assert!(asking.remove(address(0), &salt(0)).is_none(), "the oldest have given way");
    }
}
