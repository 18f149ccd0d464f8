//! The wireless link written from its definition: every slot, every user, every channel, one after the other.

use fairpace_path::{ArqScheme, ArqSpec, ArqUser, Capacity, Channel, DropReason, SlotOutcome};
use fairpace_units::{Bytes, Instant, Packets, RandomStream};
use std::collections::VecDeque;

/// A packet, or a new buffer, in order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Packet { user: u32, size: u64, id: u64 },
    Buffer { user: u32, capacity: Capacity },
}

/// The facts that can be told apart from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) exits: Vec<(Instant, u32, u64)>,
    pub(crate) drops: Vec<(Instant, DropReason, u64)>,
    pub(crate) slots: Vec<(u64, u32, SlotOutcome)>,
    pub(crate) users: Vec<SeenUser>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SeenUser {
    pub(crate) used: u64,
    pub(crate) failed: u64,
    pub(crate) silent: u64,
    pub(crate) waiting: u64,
    pub(crate) idle: u64,
    pub(crate) transmitted: (Packets, Bytes),
    pub(crate) queue: (usize, Bytes),
    pub(crate) max_queue: (Packets, Bytes),
    pub(crate) busy_ns: u128,
    pub(crate) packet_ns: u128,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    size: u64,
    id: u64,
    pieces: u64,
    damaged: bool,
    /// Failures of the next piece.
    failures: u32,
}

struct User {
    channel: Channel,
    random: RandomStream,
    state: Option<usize>,
    capacity: Capacity,
    queue: VecDeque<Waiting>,
    silence: u32,
    credit: i64,
    seen: SeenUser,
}

impl User {
    /// One step of the channel: failures first, as documented.
    fn step(&mut self) -> bool {
        let next = match self.state {
            None => self.channel.stationary(),
            Some(state) => self.channel.transition[state].clone(),
        };
        let error = &self.channel.error;
        let fail = (0..next.len()).map(|j| (next[j] * error[j], j, true));
        let pass = (0..next.len()).map(|j| (next[j] * (1.0 - error[j]), j, false));
        let possible: Vec<_> = fail.chain(pass).filter(|&(p, _, _)| p > 0.0).collect();
        let u = self.random.uniform();
        let mut sum = 0.0;
        let mut found = *possible.last().unwrap();
        for &(p, state, fails) in &possible {
            sum += p;
            if u < sum {
                found = (p, state, fails);
                break;
            }
        }
        self.state = Some(found.1);
        found.2
    }

    fn held(&self) -> (u64, u64) {
        (self.queue.len() as u64, self.queue.iter().map(|w| w.size).sum())
    }
}

/// Until that many slots have ended, and half a slot more.
pub(crate) fn run(spec: &ArqSpec, seed: u64, name: &str, events: &[(Instant, What)], slots: u64) -> (Seen, Instant) {
    let tau = spec.slot.as_nanos() as u64;
    let mut users: Vec<User> = (0..)
        .zip(&spec.users)
        .map(|(i, ArqUser { channel, buffer, .. }): (u32, _)| User {
            channel: channel.clone(),
            random: RandomStream::named(seed, &format!("{name}.user{i}.channel")),
            state: None,
            capacity: *buffer,
            queue: VecDeque::new(),
            silence: 0,
            credit: 0,
            seen: SeenUser::default(),
        })
        .collect();
    let mut seen = Seen::default();
    let mut events = events.iter().peekable();
    let mut clock = 0;
    let mut pass_time = |users: &mut Vec<User>, to: u64| {
        for user in users {
            user.seen.busy_ns += if user.queue.is_empty() { 0 } else { u128::from(to - clock) };
            user.seen.packet_ns += u128::from(to - clock) * user.queue.len() as u128;
        }
        clock = to;
    };
    for slot in 0..=slots {
        let (start, end) = (slot * tau, if slot < slots { (slot + 1) * tau } else { slot * tau + tau / 2 + 1 });
        // At the beginning: arrivals of this instant, whose slot it is, who fails.
        let mut until = |users: &mut Vec<User>, seen: &mut Seen, before: u64| {
            while let Some(&&(at, what)) = events.peek()
                && at.as_nanos() < before
            {
                events.next();
                pass_time(users, at.as_nanos());
                arrive(spec, users, seen, at, what);
            }
        };
        until(&mut users, &mut seen, start + 1);
        let can: Vec<bool> = users.iter().map(|u| !u.queue.is_empty() && u.silence == 0).collect();
        let had: Vec<bool> = users.iter().map(|u| !u.queue.is_empty()).collect();
        let quiet: Vec<bool> = users.iter().map(|u| u.silence > 0).collect();
        let fails: Vec<bool> = users.iter_mut().map(User::step).collect();
        until(&mut users, &mut seen, end);
        pass_time(&mut users, end);
        if slot == slots {
            break;
        }
        let sender = choose(spec, &mut users, &can);
        for (i, user) in users.iter_mut().enumerate() {
            user.silence = user.silence.saturating_sub(1);
            if sender == Some(i) {
                user.seen.used += 1;
                user.seen.failed += u64::from(fails[i]);
            } else if quiet[i] {
                user.seen.silent += 1;
            } else if had[i] {
                user.seen.waiting += 1;
            } else {
                user.seen.idle += 1;
            }
        }
        if let Some(i) = sender {
            send(spec, &mut users[i], i as u32, slot, Instant::from_nanos(end), fails[i], &mut seen);
        }
    }
    for user in &mut users {
        let (packets, bytes) = user.held();
        user.seen.queue = (packets as usize, Bytes::new(bytes));
    }
    seen.users = users.into_iter().map(|user| user.seen).collect();
    (seen, Instant::from_nanos(slots * tau + tau / 2 + 1))
}

fn arrive(spec: &ArqSpec, users: &mut [User], seen: &mut Seen, at: Instant, what: What) {
    match what {
        What::Buffer { user, capacity } => users[user as usize].capacity = capacity,
        What::Packet { user, size, id } => {
            let user = &mut users[user as usize];
            let (packets, bytes) = user.held();
            let fits = match user.capacity {
                Capacity::Packets(most) => packets < most.get(),
                Capacity::Bytes(most) => bytes + size <= most.get(),
                Capacity::Unlimited => true,
            };
            if !fits {
                seen.drops.push((at, DropReason::QueueFull, id));
                return;
            }
            let pieces = size.div_ceil(spec.slot_size.get()).max(1);
            user.queue.push_back(Waiting { since: at, size, id, pieces, damaged: false, failures: 0 });
            let (packets, bytes) = user.held();
            let max = &mut user.seen.max_queue;
            *max = (max.0.max(Packets::new(packets)), max.1.max(Bytes::new(bytes)));
        }
    }
}

fn choose(spec: &ArqSpec, users: &mut [User], can: &[bool]) -> Option<usize> {
    let takes_part: Vec<usize> = (0..users.len()).filter(|&i| !spec.work_conserving || can[i]).collect();
    for &i in &takes_part {
        users[i].credit += i64::from(spec.users[i].weight);
    }
    let most = takes_part.iter().map(|&i| users[i].credit).max()?;
    let first = *takes_part.iter().find(|&&i| users[i].credit == most)?;
    users[first].credit -= takes_part.iter().map(|&i| i64::from(spec.users[i].weight)).sum::<i64>();
    can[first].then_some(first)
}

fn send(spec: &ArqSpec, user: &mut User, i: u32, slot: u64, end: Instant, failed: bool, seen: &mut Seen) {
    let head = user.queue.front_mut().unwrap();
    assert!(head.since.as_nanos() <= slot * spec.slot.as_nanos() as u64);
    let mut silence = 0;
    // Whether the packet leaves the queue, and whether it arrives.
    let (leaves, arrives) = if !failed {
        head.pieces -= 1;
        head.failures = 0;
        (head.pieces == 0, head.pieces == 0 && !head.damaged)
    } else {
        head.failures += 1;
        match spec.scheme {
            ArqScheme::None => {
                head.damaged = true;
                head.pieces -= 1;
                (head.pieces == 0, false)
            }
            ArqScheme::Limited { retries } if head.failures == retries + 1 => (true, false),
            ArqScheme::Limited { .. } | ArqScheme::Persistent => {
                silence = spec.retry_delay;
                (false, false)
            }
            ArqScheme::Optimal => {
                silence = spec.retry_delay + 1;
                (false, false)
            }
        }
    };
    user.silence = silence;
    let lost = leaves || spec.scheme == ArqScheme::None;
    let outcome = if failed { SlotOutcome::Failure { silence, lost } } else { SlotOutcome::Success { last: leaves } };
    seen.slots.push((slot, i, outcome));
    if leaves {
        let packet = user.queue.pop_front().unwrap();
        user.seen.transmitted.0 += Packets::new(1);
        user.seen.transmitted.1 += Bytes::new(packet.size);
        if arrives {
            seen.exits.push((end + spec.delay, i, packet.id));
        } else {
            seen.drops.push((end, DropReason::LinkError, packet.id));
        }
    }
}
