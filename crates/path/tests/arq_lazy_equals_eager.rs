//! The lazy wireless link and one that goes from slot to slot agree on every exit, drop, slot, queue and counter,
//! however often the lazy one is asked; nothing comes out before its instant, and no packet gets lost on the books.

mod arq_eager;

use arq_eager::{Seen, SeenUser, What};
use fairpace_path::{Arq, ArqScheme, ArqSpec, ArqUser, Capacity, Channel, Plain};
use fairpace_units::{Bytes, Duration, Instant, Packets};
use proptest::prelude::*;

const SLOTS: u64 = 120;

fn channel() -> impl Strategy<Value = Channel> {
    let row = prop::collection::vec(0.05..1.0_f64, 3);
    prop_oneof![
        (0.0..0.95_f64).prop_map(|p_e| Channel::memoryless(p_e).unwrap()),
        (0.05..0.9_f64, 0.0..0.9_f64).prop_map(|(p_e, lambda)| Channel::two_state(p_e, lambda).unwrap()),
        (prop::collection::vec(row, 3), prop::collection::vec(0.0..=1.0_f64, 3)).prop_map(|(mut rows, mut error)| {
            for row in &mut rows {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|p| *p /= sum);
            }
            error[0] *= 0.5;
            Channel { transition: rows, error }
        }),
    ]
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        (1_u64..8).prop_map(|n| Capacity::Packets(Packets::new(n))),
        (1_u64..1_000).prop_map(|n| Capacity::Bytes(Bytes::new(n))),
        Just(Capacity::Unlimited),
    ]
}

fn spec() -> impl Strategy<Value = ArqSpec> {
    let scheme = prop_oneof![
        Just(ArqScheme::None),
        Just(ArqScheme::Persistent),
        (0_u32..3).prop_map(|retries| ArqScheme::Limited { retries }),
        Just(ArqScheme::Optimal),
    ];
    let users = prop::collection::vec((1_u32..6, capacity(), channel()), 1..5);
    let times = (prop_oneof![Just(5_000_000_u64), 1_000_u64..10_000_000], 0_u64..40_000_000, 0_u32..4);
    (times, 1_u64..200, scheme, any::<bool>(), users).prop_map(
        |((slot, delay, retry_delay), slot_size, scheme, work_conserving, users)| ArqSpec {
            slot: Duration::from_nanos(slot),
            slot_size: Bytes::new(slot_size),
            scheme,
            retry_delay,
            delay: Duration::from_nanos(delay),
            work_conserving,
            users: users.into_iter().map(|(weight, buffer, channel)| ArqUser { weight, buffer, channel }).collect(),
        },
    )
}

/// Slot, part of a slot, user, size, new buffer: at slots' beginnings, inside them, and some at once.
type RawEvent = (u64, u64, u32, u64, Option<Capacity>);

fn raw_events() -> impl Strategy<Value = Vec<RawEvent>> {
    let part = prop_oneof![2 => Just(0), 1 => 1_u64..1_000];
    let new_buffer = prop_oneof![9 => Just(None), 1 => capacity().prop_map(Some)];
    prop::collection::vec((0..SLOTS * 3 / 4, part, 0_u32..5, 0_u64..400, new_buffer), 0..120)
}

fn events(spec: &ArqSpec, raw: &[RawEvent]) -> Vec<(Instant, What)> {
    let tau = spec.slot.as_nanos() as u64;
    let mut events: Vec<_> = (0..)
        .zip(raw)
        .map(|(id, &(slot, part, user, size, buffer))| {
            let user = user % spec.users.len() as u32;
            let what = match buffer {
                Some(capacity) => What::Buffer { user, capacity },
                None => What::Packet { user, size, id },
            };
            (Instant::from_nanos(slot * tau + tau * part / 1_000), what)
        })
        .collect();
    events.sort_by_key(|&(at, _)| at);
    events
}

/// As an engine does it; `pokes` are instants at which somebody looks as well.
fn lazy(spec: &ArqSpec, events: &[(Instant, What)], end: Instant, pokes: &[u64], late: bool) -> Seen {
    let mut arq: Arq<Plain> = Arq::new(spec, 7, "wlan").unwrap();
    arq.record_drops(true);
    arq.record_slots(true);
    let mut seen = Seen::default();
    let mut inside = 0_usize;
    let take = |arq: &mut Arq<Plain>, seen: &mut Seen, inside: &mut usize, now: Instant| {
        while let Some((user, packet)) = arq.pop(now) {
            seen.exits.push((now, user, packet.id));
            *inside -= 1;
        }
        while let Some((at, reason, _, packet)) = arq.take_dropped() {
            assert!(at <= now);
            seen.drops.push((at, reason, packet.id));
            *inside -= 1;
        }
        assert_eq!(arq.inside(), *inside);
        assert!(arq.next() > now, "asked at {now}, again at {}", arq.next());
    };
    let pokes = pokes.iter().map(|&at| (Instant::from_nanos(at % end.as_nanos()), None));
    let mut all: Vec<_> = events.iter().map(|&(at, what)| (at, Some(what))).chain(pokes).collect();
    all.sort_by_key(|&(at, _)| at);
    all.push((end, None));
    for (at, what) in all {
        while !late && arq.next() <= at {
            let now = arq.next();
            take(&mut arq, &mut seen, &mut inside, now);
        }
        match what {
            Some(What::Packet { user, size, id }) => {
                inside += 1;
                arq.push(at, user, Plain { id, ..Plain::new(Bytes::new(size)) });
            }
            Some(What::Buffer { user, capacity }) => {
                arq.advance(at);
                arq.set_buffer(user, capacity).unwrap();
            }
            None => arq.advance(at),
        }
    }
    if late {
        take(&mut arq, &mut seen, &mut inside, end);
    }
    while let Some((at, reason, _, packet)) = arq.take_dropped() {
        seen.drops.push((at, reason, packet.id));
    }
    while let Some(slot) = arq.take_slot() {
        assert_eq!(slot.start.as_nanos(), slot.slot * spec.slot.as_nanos() as u64);
        seen.slots.push((slot.slot, slot.user, slot.outcome));
    }
    for user in 0..arq.users() {
        let counters = arq.counters(user);
        let link = &counters.link;
        let ended = end.as_nanos() / spec.slot.as_nanos() as u64;
        assert_eq!(counters.used + counters.silent + counters.waiting + counters.idle, ended);
        assert_eq!(link.elapsed(), end.since(Instant::ZERO));
        seen.users.push(SeenUser {
            used: counters.used,
            failed: counters.failed,
            silent: counters.silent,
            waiting: counters.waiting,
            idle: counters.idle,
            transmitted: (link.transmitted.packets, link.transmitted.bytes),
            queue: (arq.queue_len(user), arq.queue_bytes(user)),
            max_queue: (link.max_queue, link.max_queue_bytes),
            busy_ns: link.busy().as_nanos(),
            // To the nearest nanosecond of the mean times the time.
            packet_ns: (link.mean_queue() * end.as_nanos() as f64).round() as u128,
        });
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn lazy_equals_eager(
        spec in spec(), raw in raw_events(), pokes in prop::collection::vec(any::<u64>(), 0..30),
    ) {
        let events = events(&spec, &raw);
        let (mut expected, end) = arq_eager::run(&spec, 7, "wlan", &events, SLOTS);
        expected.exits.retain(|&(at, _, _)| at <= end);
        let seen = lazy(&spec, &events, end, &pokes, false);
        prop_assert_eq!(&seen, &expected);
        // Who comes only in the end finds the same, in the same order.
        let mut late = lazy(&spec, &events, end, &[], true);
        for (exit, expected) in late.exits.iter_mut().zip(&expected.exits) {
            exit.0 = expected.0;
        }
        prop_assert_eq!(&late, &expected);
    }
}
