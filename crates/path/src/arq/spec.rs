//! The parts of a wireless link, as plain data.

use crate::{Capacity, Channel, ChannelError};
use fairpace_units::{Bounds, Bytes, Duration, InWords};

/// The link layer's answer to a transmission that failed. Its users' packets stay in order: while one waits for its
/// next try, those behind it wait too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ArqScheme {
    /// Nothing: the packet is lost. As nobody acknowledges, all pieces of a packet are sent in any case.
    None,
    /// Again in the next slot, until it succeeds [aimd §IV: *persistent*].
    #[default]
    Persistent,
    /// Again in the next slot, but a piece that has failed 1 + `retries` times is given up, and the rest of
    /// its packet with it.
    Limited {
        /// Tries after the first.
        retries: u32,
    },
    /// One slot of silence, then again, until it succeeds [aimd §IV-A: *optimal*, after Zhang and Wasserman].
    Optimal,
}

impl ArqScheme {
    /// Slots of silence between a failure and the next try of the same packet, `retry_delay` apart: 1 for
    /// `Optimal`, 0 for the others.
    pub const fn silence(self) -> u32 {
        match self {
            ArqScheme::Optimal => 1,
            _ => 0,
        }
    }
}

/// A slotted wireless link from a base station to its users [aimd §III, §IV].
///
/// Slot k lasts from k `slot` to (k + 1) `slot`. One user sends in it, one packet or a piece of one; who has no
/// packet there when the slot begins does not send. Silence and `retry_delay` are counted in slots of the
/// link, whoever they belong to: they are times. A user's channel steps in every slot of the link too.
#[derive(Clone, Debug, PartialEq)]
pub struct ArqSpec {
    /// τ: how long a slot lasts, from 1 us to 60 s [aimd §IV: 5 ms].
    pub slot: Duration,
    /// The bytes that a slot carries, at least 1 [aimd §IV: 125 bytes]; larger packets are cut into pieces of that
    /// size, each of which needs a successful slot. A slot carries one piece at most, however small.
    pub slot_size: Bytes,
    /// The answer to failed transmissions.
    pub scheme: ArqScheme,
    /// Slots that pass between a failure and the next try of the same packet, beside the silence of
    /// `Optimal`; up to 10,000 [aimd §IV-A: the acknowledgment is there when the next slot begins, 0].
    pub retry_delay: u32,
    /// From the end of a packet's last slot to its arrival; up to 31 years.
    pub delay: Duration,
    /// A slot goes to one of the users who can send in it, by their weights; otherwise slots are
    /// dedicated to users by their weights, and lost if they cannot send.
    pub work_conserving: bool,
    /// From 1 to 1,000 users.
    pub users: Vec<ArqUser>,
}

/// One user of the link: a queue and a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ArqUser {
    /// Its part of the slots, against the weights of the others; from 1, and all together at most 10,000.
    pub weight: u32,
    /// The size of the user's queue, the packet under way included: one more than B in [aimd §III-B]'s R + B.
    pub buffer: Capacity,
    /// How its slots fail.
    pub channel: Channel,
}

/// Why an [`ArqSpec`] is refused: the field, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArqError {
    /// A number out of its range.
    #[error("`{field}` is {found}; it must be {allowed}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The value given.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A weight with which a user would never send.
    #[error("`users[{user}].weight` is 0; the least is 1")]
    NoWeight {
        /// The user's index, from zero.
        user: usize,
    },
    /// More weight than slots can be dealt out by.
    #[error("the weights of `users` add up to {found}; at most 10000: divide them by a common factor")]
    WeightSum {
        /// Their sum.
        found: u64,
    },
    /// A queue without room.
    #[error("`users[{user}].buffer` is 0; the least is 1 packet or 1 byte (the packet under way counts)")]
    NoBuffer {
        /// The user's index, from zero.
        user: usize,
    },
    /// A channel that cannot be.
    #[error("`users[{user}].channel`: {error}")]
    Channel {
        /// The user's index, from zero.
        user: usize,
        /// The fault of the channel.
        error: ChannelError,
    },
}

const MOST_USERS: usize = 1_000;
const MOST_WEIGHT: u64 = 10_000;

impl ArqSpec {
    /// How long a slot may last.
    pub const SLOT: Bounds<Duration> = Bounds::of(Duration::from_micros(1), Duration::from_secs(60));
    /// The sizes that a slot may have.
    pub const SLOT_SIZE: Bounds<Bytes> = Bounds::of(Bytes::new(1), Bytes::new(1_000_000));
    /// The most of slots between a failure and the next try.
    pub const LONGEST_RETRY_DELAY: u32 = 10_000;
    /// The delay behind the slot as it may be: 31 years.
    pub const DELAY: Bounds<Duration> = Bounds::ANY.up_to(Duration::from_secs(1_000_000_000));

    /// The downlink of [aimd §IV] for one user: 200 kbit/s in slots of 5 ms, 125 bytes each, persistent ARQ, no
    /// delay behind the slot.
    pub fn downlink(channel: Channel, buffer: Capacity) -> ArqSpec {
        ArqSpec {
            slot: Duration::from_millis(5),
            slot_size: Bytes::new(125),
            scheme: ArqScheme::Persistent,
            retry_delay: 0,
            delay: Duration::ZERO,
            work_conserving: true,
            users: vec![ArqUser { weight: 1, buffer, channel }],
        }
    }

    /// Whether a link can be made of this.
    ///
    /// # Errors
    /// The first field that cannot be.
    pub fn validate(&self) -> Result<(), ArqError> {
        in_range("slot", self.slot, &Self::SLOT)?;
        in_range("slot_size", self.slot_size, &Self::SLOT_SIZE)?;
        in_range("retry_delay", u64::from(self.retry_delay), &Bounds::of(0, u64::from(Self::LONGEST_RETRY_DELAY)))?;
        in_range("delay", self.delay, &Self::DELAY)?;
        in_range("users", self.users.len() as u64, &Bounds::of(1, MOST_USERS as u64))?;
        for (user, ArqUser { weight, buffer, channel }) in self.users.iter().enumerate() {
            if *weight == 0 {
                return Err(ArqError::NoWeight { user });
            }
            check_buffer(user, *buffer)?;
            channel.validate().map_err(|error| ArqError::Channel { user, error })?;
        }
        let found = self.users.iter().map(|user| u64::from(user.weight)).sum();
        if found > MOST_WEIGHT { Err(ArqError::WeightSum { found }) } else { Ok(()) }
    }

    /// The owner of each slot of the frame that repeats for ever, if slots are dedicated: smooth weighted round robin,
    /// which spreads each user's slots evenly. A work-conserving link gives the same frame while all users send.
    pub fn frame(&self) -> Vec<u32> {
        let common = self.users.iter().fold(0, |common, user| gcd(common, user.weight)).max(1);
        let weights: Vec<i64> = self.users.iter().map(|user| i64::from(user.weight / common)).collect();
        let total: i64 = weights.iter().sum();
        let mut credit = vec![0; weights.len()];
        let mut next = || {
            let mut best = 0;
            for (i, weight) in weights.iter().enumerate() {
                credit[i] += weight;
                if credit[i] > credit[best] {
                    best = i;
                }
            }
            credit[best] -= total;
            best as u32
        };
        (0..total).map(|_| next()).collect()
    }
}

/// Whether anything fits in.
pub(super) fn check_buffer(user: usize, buffer: Capacity) -> Result<(), ArqError> {
    match buffer {
        Capacity::Packets(n) if n.get() == 0 => Err(ArqError::NoBuffer { user }),
        Capacity::Bytes(n) if n.get() == 0 => Err(ArqError::NoBuffer { user }),
        _ => Ok(()),
    }
}

fn in_range<T>(field: &'static str, found: T, bounds: &Bounds<T>) -> Result<(), ArqError>
where
    T: Copy + PartialOrd + InWords,
{
    if bounds.contain(found) {
        return Ok(());
    }
    Err(ArqError::OutOfRange { field, found: found.in_words(), allowed: bounds.to_string() })
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
