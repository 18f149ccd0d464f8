//! The wireless link by hand: slots of 5 ms, and which of them fail is written out (`x`).

mod common;

use common::{ms, packet, span};
use fairpace_path::{
    Arq, ArqScheme, ArqSpec, ArqUser, Capacity, Channel, DropReason, LinkCounters, Plain, SlotOutcome,
};
use fairpace_units::{Bytes, Class, Instant, Packets};

/// A seed with which the first slots of each user fail as in its pattern: `x` fails, `.` does not.
fn seed_for(spec: &ArqSpec, patterns: &[&str]) -> u64 {
    let fits = |seed: u64| {
        patterns.iter().enumerate().all(|(i, pattern)| {
            // Each user alone, sending all the time: the channel does not depend on who sends.
            let saturated = ArqSpec {
                scheme: ArqScheme::None,
                users: spec.users.iter().map(|user| ArqUser { buffer: Capacity::Unlimited, ..user.clone() }).collect(),
                work_conserving: true,
                ..spec.clone()
            };
            let mut arq = Arq::new(&saturated, seed, "wlan").unwrap();
            arq.record_slots(true);
            for _ in 0..pattern.len() {
                arq.push(Instant::ZERO, i as u32, Plain::new(Bytes::new(1)));
            }
            pattern.chars().enumerate().all(|(slot, fate)| {
                arq.advance(ms(5.0 * (slot + 1) as f64));
                let outcome = arq.take_slot().unwrap().outcome;
                matches!(outcome, SlotOutcome::Failure { .. }) == (fate == 'x')
            })
        })
    };
    (0..).find(|&seed| fits(seed)).unwrap()
}

fn user(weight: u32) -> ArqUser {
    ArqUser { weight, buffer: Capacity::Unlimited, channel: Channel::memoryless(0.5).unwrap() }
}

fn link(scheme: ArqScheme, users: Vec<ArqUser>) -> ArqSpec {
    ArqSpec { scheme, users, ..ArqSpec::downlink(Channel::memoryless(0.5).unwrap(), Capacity::Unlimited) }
}

/// `(ms, user, bytes)` in, `(ms, user, number)` out: at its exact instant, an engine being there on time.
fn run(spec: &ArqSpec, patterns: &[&str], arrivals: &[(f64, u32, u64)]) -> (Vec<(f64, u32, u64)>, Arq<Plain>) {
    let mut arq = Arq::new(spec, seed_for(spec, patterns), "wlan").unwrap();
    arq.record_drops(true);
    let mut out = Vec::new();
    let mut take = |arq: &mut Arq<Plain>, now: Instant| {
        while let Some((user, packet)) = arq.pop(now) {
            out.push((now.as_secs_f64() * 1e3, user, packet.id));
        }
    };
    for (id, &(at, user, size)) in (0..).zip(arrivals) {
        while arq.next() <= ms(at) {
            let now = arq.next();
            take(&mut arq, now);
        }
        arq.push(ms(at), user, packet(id, Class::Normal, size));
    }
    while arq.next() != Instant::NEVER {
        let now = arq.next();
        take(&mut arq, now);
    }
    assert_eq!(arq.inside(), 0);
    (out, arq)
}

fn lost(arq: &mut Arq<Plain>) -> Vec<(f64, DropReason, u64)> {
    std::iter::from_fn(|| arq.take_dropped()).map(|(at, why, _, p)| (at.as_secs_f64() * 1e3, why, p.id)).collect()
}

#[test]
fn a_packet_takes_the_slot_that_begins_when_it_arrives_or_the_next() {
    let arrivals = [(10.0, 0, 125), (15.1, 0, 125)];
    let (out, _) = run(&link(ArqScheme::Persistent, vec![user(1)]), &["......"], &arrivals);
    assert_eq!(out, [(15.0, 0, 0), (25.0, 0, 1)]);
}

#[test]
fn persistent_arq_sends_again_in_the_next_slot_and_those_behind_wait() {
    // slot        0   1   2   3   4   5
    //             x   x   .   x   .   .
    // packet      0   0   0   1   1   2
    let arrivals = [(0.0, 0, 125), (1.0, 0, 125), (1.0, 0, 125)];
    let (out, _) = run(&link(ArqScheme::Persistent, vec![user(1)]), &["xx.x.."], &arrivals);
    assert_eq!(out, [(15.0, 0, 0), (25.0, 0, 1), (30.0, 0, 2)]);
}

#[test]
fn the_optimal_scheme_is_silent_for_one_slot_after_a_failure() {
    // slot        0   1   2   3   4   5   6
    //             x   .   x   x   .   .   .
    // packet      0   -   0   -   0   1   2
    let arrivals = [(0.0, 0, 125), (1.0, 0, 125), (1.0, 0, 125)];
    let (out, mut arq) = run(&link(ArqScheme::Optimal, vec![user(1)]), &["x.xx..."], &arrivals);
    assert_eq!(out, [(25.0, 0, 0), (30.0, 0, 1), (35.0, 0, 2)]);
    arq.advance(ms(50.0));
    let counters = arq.counters(0);
    assert_eq!((counters.used, counters.failed, counters.silent), (5, 2, 2));
    assert_eq!((counters.waiting, counters.idle), (0, 3));
}

#[test]
fn silence_that_is_not_over_is_not_yet_counted() {
    let spec = ArqSpec { retry_delay: 3, ..link(ArqScheme::Optimal, vec![user(1)]) };
    let mut arq = Arq::new(&spec, seed_for(&spec, &["x....."]), "wlan").unwrap();
    arq.push(Instant::ZERO, 0, Plain::new(Bytes::new(125)));
    // The packet fails in slot 0, is silent in slots 1 to 4, and is there at the end of slot 5.
    for (now, silent) in [(4.0, 0), (5.0, 0), (10.0, 1), (24.0, 3), (25.0, 4)] {
        arq.advance(ms(now));
        assert_eq!(arq.counters(0).silent, silent, "at {now} ms");
        assert_eq!(arq.next(), if now < 5.0 { ms(5.0) } else { ms(30.0) });
    }
    assert!(arq.pop(ms(30.0)).is_some());
}

#[test]
fn a_retry_delay_is_waited_for_between_a_failure_and_the_next_try_only() {
    // slot        0   1   2   3   4   5   6   7
    //             x   .   .   .   x   .   .   .
    // packet      0   -   -   0   1   -   -   1
    let spec = ArqSpec { retry_delay: 2, ..link(ArqScheme::Persistent, vec![user(1)]) };
    let (out, _) = run(&spec, &["x...x..."], &[(0.0, 0, 125), (1.0, 0, 125)]);
    assert_eq!(out, [(20.0, 0, 0), (40.0, 0, 1)]);
}

#[test]
fn without_arq_what_fails_is_lost_at_the_end_of_its_slot() {
    let arrivals = [(0.0, 0, 125), (1.0, 0, 125), (1.0, 0, 125)];
    let (out, mut arq) = run(&link(ArqScheme::None, vec![user(1)]), &["x.x"], &arrivals);
    assert_eq!(out, [(10.0, 0, 1)]);
    assert_eq!(lost(&mut arq), [(5.0, DropReason::LinkError, 0), (15.0, DropReason::LinkError, 2)]);
    let link: &LinkCounters = &arq.counters(0).link;
    assert_eq!(link.transmitted.packets, Packets::new(3));
    assert_eq!(link.dropped(DropReason::LinkError).bytes, Bytes::new(250));
    assert_eq!(link.class(Class::Normal).delivered.packets, Packets::new(1));
}

#[test]
fn limited_arq_gives_up_after_its_retries_and_the_next_packet_follows_at_once() {
    // slot        0   1   2   3   4
    //             x   x   x   x   .
    // packet      0   0   0   1   1
    let spec = link(ArqScheme::Limited { retries: 2 }, vec![user(1)]);
    let (out, mut arq) = run(&spec, &["xxxx."], &[(0.0, 0, 125), (1.0, 0, 125)]);
    assert_eq!(out, [(25.0, 0, 1)]);
    assert_eq!(lost(&mut arq), [(15.0, DropReason::LinkError, 0)]);
    // Also where the next try would have to wait.
    let spec = ArqSpec { retry_delay: 1, ..link(ArqScheme::Limited { retries: 0 }, vec![user(1)]) };
    let (out, _) = run(&spec, &["x."], &[(0.0, 0, 125), (1.0, 0, 125)]);
    assert_eq!(out, [(10.0, 0, 1)]);
}

#[test]
fn large_packets_are_cut_and_each_piece_needs_a_slot() {
    // 126 bytes are two pieces, 375 are three; an empty one is a piece too.
    // slot        0   1   2   3   4   5   6   7
    //             .   x   .   .   .   x   .   .
    // packet      0   0   0   1   1   1   1   2
    let arrivals = [(0.0, 0, 126), (1.0, 0, 375), (1.0, 0, 0)];
    let (out, _) = run(&link(ArqScheme::Persistent, vec![user(1)]), &[".x...x.."], &arrivals);
    assert_eq!(out, [(15.0, 0, 0), (35.0, 0, 1), (40.0, 0, 2)]);
}

#[test]
fn retries_are_counted_for_each_piece_and_the_rest_goes_with_the_one_given_up() {
    // slot        0   1   2   3   4   5
    //             x   .   x   .   x   x
    // packet      0   0   0   0   0   0   of 500 bytes, 1 retry: pieces 1 and 2 get through, piece 3 does not
    let spec = link(ArqScheme::Limited { retries: 1 }, vec![user(1)]);
    let (out, mut arq) = run(&spec, &["x.x.xx."], &[(0.0, 0, 500), (1.0, 0, 125)]);
    assert_eq!(lost(&mut arq), [(30.0, DropReason::LinkError, 0)]);
    assert_eq!(out, [(35.0, 0, 1)]);
}

#[test]
fn a_packet_behind_one_that_is_given_up_is_not_waited_for_too_long() {
    // Two pieces, given up with the first: the small one behind it is through in the next slot.
    let spec = link(ArqScheme::Limited { retries: 0 }, vec![user(1)]);
    let (out, _) = run(&spec, &["x."], &[(0.0, 0, 1_000), (1.0, 0, 125)]);
    assert_eq!(out, [(10.0, 0, 1)]);
}

#[test]
fn without_arq_nobody_knows_and_all_pieces_are_sent() {
    let arrivals = [(0.0, 0, 375), (1.0, 0, 125)];
    let (out, mut arq) = run(&link(ArqScheme::None, vec![user(1)]), &["x..."], &arrivals);
    assert_eq!(lost(&mut arq), [(15.0, DropReason::LinkError, 0)]);
    assert_eq!(out, [(20.0, 0, 1)]);
}

#[test]
fn the_delay_comes_after_the_slot_and_the_next_slot_does_not_wait_for_it() {
    let spec = ArqSpec { delay: span(12.0), ..link(ArqScheme::Persistent, vec![user(1)]) };
    let (out, _) = run(&spec, &[".."], &[(0.0, 0, 125), (0.0, 0, 125)]);
    assert_eq!(out, [(17.0, 0, 0), (22.0, 0, 1)]);
}

#[test]
fn slots_go_by_weight_to_those_who_can_send() {
    // Weights 3 and 1, all slots succeed: 0, 0, 1, 0, as 3 4 | 1 > 2 3 | 2 > 1 4 | 3 = 1... by the credits
    // (after adding) 3,1 -> 0; 2,2 -> 0; 1,3 -> 1; 4,0 -> 0; and again. From slot 5 on user 1 is alone.
    let spec = link(ArqScheme::Persistent, vec![user(3), user(1)]);
    let arrivals: Vec<_> = [0, 0, 0, 0, 1, 1, 1].map(|user| (0.0, user, 125)).into();
    let (out, mut arq) = run(&spec, &[".......", "......."], &arrivals);
    let order: Vec<u32> = out.iter().map(|&(_, user, _)| user).collect();
    assert_eq!(order, [0, 0, 1, 0, 0, 1, 1]);
    assert_eq!(out.last(), Some(&(35.0, 1, 6)));
    arq.advance(ms(40.0));
    let (a, b) = (arq.counters(0), arq.counters(1));
    assert_eq!((a.used, a.waiting, a.idle), (4, 1, 3));
    assert_eq!((b.used, b.waiting, b.idle), (3, 4, 1));
}

#[test]
fn a_slot_that_nobody_else_can_use_is_not_charged() {
    // Both of weight 1. User 1 sends in slots 0 to 2 alone; then user 0 comes, and they take turns as if new.
    let spec = link(ArqScheme::Persistent, vec![user(1), user(1)]);
    let mut arrivals: Vec<_> = (0..5).map(|_| (0.0, 1, 125)).collect();
    arrivals.extend([(15.0, 0, 125), (15.0, 0, 125)]);
    let (out, _) = run(&spec, &[".......", "......."], &arrivals);
    let order: Vec<u32> = out.iter().map(|&(_, user, _)| user).collect();
    assert_eq!(order, [1, 1, 1, 0, 1, 0, 1]);
}

#[test]
fn the_slot_of_a_silent_user_goes_to_the_other_if_the_link_is_work_conserving() {
    // slot             0   1   2   3   4   5
    // user 0           x               .          packet 0: fails in slot 0, silent in slot 1
    // user 1               .   .                  packets 1 and 2
    // credits after adding: 1,1 -> 0 (-1,1); 1 alone; 0,2 -> 1 (0,0); 0 alone
    let spec = link(ArqScheme::Optimal, vec![user(1), user(1)]);
    let arrivals = [(0.0, 0, 125), (0.0, 1, 125), (0.0, 1, 125)];
    let (out, _) = run(&spec, &["x..", "..."], &arrivals);
    assert_eq!(out, [(10.0, 1, 1), (15.0, 1, 2), (20.0, 0, 0)]);
}

#[test]
fn dedicated_slots_are_lost_if_their_user_cannot_send() {
    // Weights 4 and 2 are 2 and 1: 0, 1, 0 over and over (credits after adding 2,1 -> 0; 1,2 -> 1; 3,0 -> 0).
    let spec = ArqSpec { work_conserving: false, ..link(ArqScheme::Persistent, vec![user(4), user(2)]) };
    // User 1's slots are 1, 4, 7; of user 0's 0, 2, 3 the first fails.
    let arrivals = [(0.0, 0, 125), (0.0, 0, 125), (0.0, 1, 125), (0.0, 1, 125), (11.0, 1, 125)];
    let (out, mut arq) = run(&spec, &["x.......", "........"], &arrivals);
    assert_eq!(out, [(10.0, 1, 2), (15.0, 0, 0), (20.0, 0, 1), (25.0, 1, 3), (40.0, 1, 4)]);
    arq.advance(ms(40.0));
    let (a, b) = (arq.counters(0), arq.counters(1));
    assert_eq!((a.used, a.failed, a.waiting, a.idle), (3, 1, 1, 4));
    assert_eq!((b.used, b.failed, b.waiting, b.idle), (3, 0, 5, 0));
}

#[test]
fn silence_is_time_also_where_slots_are_dedicated() {
    // Every other slot is user 0's: after the failure in slot 0 the slot of silence is user 1's, and slot 2 is used.
    let spec = ArqSpec { work_conserving: false, ..link(ArqScheme::Optimal, vec![user(1), user(1)]) };
    let (out, _) = run(&spec, &["x..."], &[(0.0, 0, 125)]);
    assert_eq!(out, [(15.0, 0, 0)]);
}

#[test]
fn the_packet_under_way_takes_its_place_until_its_slot_ends() {
    let spec = link(ArqScheme::Persistent, vec![ArqUser { buffer: Capacity::Packets(Packets::new(2)), ..user(1) }]);
    // At 4.5 ms the first is under way and the second waits: no room. At 5 ms there is.
    let arrivals = [(0.0, 0, 125), (1.0, 0, 125), (4.5, 0, 125), (5.0, 0, 125)];
    let (out, mut arq) = run(&spec, &["...."], &arrivals);
    assert_eq!(out, [(5.0, 0, 0), (10.0, 0, 1), (15.0, 0, 3)]);
    assert_eq!(lost(&mut arq), [(4.5, DropReason::QueueFull, 2)]);
    assert_eq!(arq.counters(0).link.max_queue, Packets::new(2));
}

#[test]
fn a_smaller_buffer_keeps_what_it_has_and_lets_nothing_in() {
    let spec = link(ArqScheme::Persistent, vec![user(1)]);
    let mut arq = Arq::new(&spec, seed_for(&spec, &["....."]), "wlan").unwrap();
    for id in 0..3 {
        arq.push(ms(0.0), 0, packet(id, Class::Normal, 125));
    }
    arq.set_buffer(0, Capacity::Packets(Packets::new(1))).unwrap();
    arq.push(ms(1.0), 0, packet(3, Class::Normal, 125));
    arq.push(ms(12.0), 0, packet(4, Class::Normal, 125));
    arq.push(ms(15.0), 0, packet(5, Class::Normal, 125));
    let out: Vec<u64> = std::iter::from_fn(|| arq.pop(ms(20.0))).map(|(_, packet)| packet.id).collect();
    assert_eq!(out, [0, 1, 2, 5]);
    assert_eq!(arq.counters(0).link.dropped(DropReason::QueueFull).packets, Packets::new(2));
}

#[test]
fn the_queue_is_averaged_over_time_with_the_packet_under_way() {
    let spec = link(ArqScheme::Persistent, vec![user(1)]);
    let mut arq = Arq::new(&spec, seed_for(&spec, &["x..."]), "wlan").unwrap();
    arq.push(ms(0.0), 0, packet(0, Class::Normal, 125));
    arq.push(ms(2.0), 0, packet(1, Class::Normal, 100));
    // Packet 0 from 0 to 10 ms, packet 1 from 2 ms on: at 12 ms 20 packet ms in 12, and 125*10 + 100*10 byte ms.
    arq.advance(ms(12.0));
    assert!((arq.counters(0).link.mean_queue() - 20.0 / 12.0).abs() < 1e-12);
    assert!((arq.counters(0).link.mean_queue_bytes() - 2_250.0 / 12.0).abs() < 1e-9);
    // The packet is gone at 15 ms; at 30 ms the link was busy for half the time.
    let earlier = *arq.counters(0);
    assert!(arq.pop(ms(15.0)).is_some());
    arq.restart_maximum(0);
    arq.advance(ms(30.0));
    assert_eq!(arq.counters(0).link.utilization(), 0.5);
    let window = arq.counters(0).since(&earlier);
    assert_eq!((window.used, window.failed, window.idle), (1, 0, 3));
    assert_eq!((window.link.elapsed(), window.link.busy()), (span(18.0), span(3.0)));
    assert_eq!(window.link.max_queue, Packets::new(0));
}

#[test]
fn of_the_slots_that_nobody_takes_the_last_are_kept() {
    let spec = ArqSpec { slot: span(0.001), ..link(ArqScheme::None, vec![user(1)]) };
    let mut arq = Arq::new(&spec, 1, "wlan").unwrap();
    arq.record_slots(true);
    let packets = (1 << 18) + 3;
    for id in 0..packets {
        arq.push(Instant::ZERO, 0, packet(id, Class::Normal, 1));
    }
    arq.advance(ms(1_000.0));
    assert_eq!(arq.slots_lost(), 3);
    assert_eq!(arq.take_slot().map(|slot| slot.slot), Some(3));
    assert_eq!(std::iter::from_fn(|| arq.take_slot()).count(), (1 << 18) - 1);
}

#[test]
fn a_frame_spreads_each_users_slots() {
    let frame = |weights: &[u32]| link(ArqScheme::None, weights.iter().map(|&weight| user(weight)).collect()).frame();
    assert_eq!(frame(&[7]), [0]);
    assert_eq!(frame(&[4, 2]), [0, 1, 0]);
    assert_eq!(frame(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
    // As many slots as weight, and at no time more than one slot from its part.
    let frame = frame(&[10, 7, 3]);
    for (user, weight) in [(0, 10), (1, 7), (2, 3)] {
        let count = |slots: &[u32]| slots.iter().filter(|&&owner| owner == user).count();
        assert_eq!(count(&frame), weight);
        for end in 0..20 {
            let (had, part) = (count(&frame[..end]) as f64, (weight * end) as f64 / 20.0);
            assert!((had - part).abs() < 1.0, "user {user} after {end} slots of {frame:?}");
        }
    }
}

#[test]
fn a_century_without_a_packet_is_no_work() {
    // Slots of 1 us: 3e15 of them, and the last of them end where they should.
    let channel = Channel::two_state(0.3, 0.9).unwrap();
    let spec = ArqSpec { slot: span(0.001), ..ArqSpec::downlink(channel, Capacity::Unlimited) };
    let mut arq = Arq::new(&spec, 1, "wlan").unwrap();
    arq.push(Instant::ZERO, 0, packet(0, Class::Normal, 125));
    let century = Instant::from_nanos(3_155_760_000_000_000_000);
    assert!(arq.pop(century).is_some());
    arq.push(century, 0, packet(1, Class::Normal, 125));
    let mut now = century;
    while arq.pop(now).is_none() {
        assert_eq!(arq.next(), now + span(0.001));
        now = arq.next();
    }
    arq.advance(now);
    let counters = arq.counters(0);
    assert_eq!(counters.used, counters.failed + 2);
    assert_eq!(counters.used + counters.idle, now.as_nanos() / 1_000);
    assert_eq!(counters.link.utilization(), counters.link.busy().as_secs_f64() / now.as_secs_f64());
}
