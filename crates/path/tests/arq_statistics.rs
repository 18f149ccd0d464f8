//! The wireless link in numbers: successes in n slots, throughput and shares against what the chain says. Four
//! standard deviations allowed (five for each of many), seeds fixed.

use fairpace_path::{Arq, ArqScheme, ArqSpec, ArqUser, Capacity, Channel, Plain};
use fairpace_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

fn spec(scheme: ArqScheme, users: Vec<(u32, Channel)>) -> ArqSpec {
    let buffer = Capacity::Unlimited;
    let users = users.into_iter().map(|(weight, channel)| ArqUser { weight, buffer, channel }).collect();
    ArqSpec { scheme, users, ..ArqSpec::downlink(Channel::memoryless(0.5).unwrap(), buffer) }
}

/// The link after that many slots of 5 ms, in which no queue was ever empty.
fn saturated(spec: &ArqSpec, seed: u64, slots: u64) -> Arq<Plain> {
    let mut arq = Arq::new(spec, seed, "wlan").unwrap();
    for user in 0..arq.users() {
        for _ in 0..slots {
            arq.push(Instant::ZERO, user, Plain::new(Bytes::new(125)));
        }
    }
    arq.advance(Instant::ZERO + Duration::from_millis(5) * slots as u32);
    arq
}

fn successes(arq: &Arq<Plain>, user: u32) -> u64 {
    arq.counters(user).used - arq.counters(user).failed
}

/// T_n(x) of a two-state channel that is good or bad, all sums written out: `silence` slots follow a failure. From
/// slots like any other, or from the one after a success.
fn t_n(p_e: f64, lambda: f64, silence: usize, n: usize, after_success: bool) -> Vec<f64> {
    let bad = |was_bad: bool| if was_bad { p_e + lambda * (1.0 - p_e) } else { p_e * (1.0 - lambda) };
    // Probability of: bad in this slot, slots of silence left, successes so far.
    let place = |bad: bool, left: usize, x: usize| (usize::from(bad) * (silence + 1) + left) * (n + 1) + x;
    let empty = vec![0.0; place(true, silence, n) + 1];
    let mut now = empty.clone();
    let first = if after_success { bad(false) } else { p_e };
    (now[place(false, 0, 0)], now[place(true, 0, 0)]) = (1.0 - first, first);
    for slot in 0..n {
        let mut next = empty.clone();
        for (is_bad, left) in (0..=silence).flat_map(|left| [(false, left), (true, left)]) {
            for x in 0..=slot {
                let p = now[place(is_bad, left, x)];
                let (left, x) = match (left, is_bad) {
                    (0, false) => (0, x + 1),
                    (0, true) => (silence, x),
                    (left, _) => (left - 1, x),
                };
                next[place(true, left, x)] += p * bad(is_bad);
                next[place(false, left, x)] += p * (1.0 - bad(is_bad));
            }
        }
        now = next;
    }
    let of = |x| (0..=silence).map(|left| now[place(false, left, x)] + now[place(true, left, x)]).sum();
    (0..=n).map(of).collect()
}

#[test]
fn the_written_out_sums_are_binomial_without_memory() {
    // C(4, 3) 0.9^3 0.1 = 0.2916, 0.9^4 = 0.6561.
    let t = t_n(0.1, 0.0, 0, 4, false);
    assert!((t[3] - 0.2916).abs() < 1e-12 && (t[4] - 0.6561).abs() < 1e-12);
}

#[test]
fn successes_in_n_slots_are_distributed_as_the_chain_says() {
    // R + D of [aimd §IV]: 17 + 10 slots.
    let n = 27;
    let runs = 20_000;
    for (scheme, retry_delay, silence, p_e, lambda) in [
        (ArqScheme::Persistent, 0, 0, 0.1, 0.0),
        (ArqScheme::Persistent, 0, 0, 0.1, 0.35),
        (ArqScheme::Persistent, 2, 2, 0.1, 0.35),
        (ArqScheme::Optimal, 0, 1, 0.1, 0.35),
        (ArqScheme::Optimal, 1, 2, 0.3, 0.8),
        (ArqScheme::None, 5, 0, 0.05, 0.6),
    ] {
        let channel = Channel::two_state(p_e, lambda).unwrap();
        let spec = ArqSpec { retry_delay, ..spec(scheme, vec![(1, channel)]) };
        let mut seen = vec![0_u64; n + 1];
        for seed in 0..runs {
            seen[successes(&saturated(&spec, seed, n as u64), 0) as usize] += 1;
        }
        for (x, (&seen, t)) in seen.iter().zip(t_n(p_e, lambda, silence, n, false)).enumerate() {
            let (expected, sd) = (t * runs as f64, (t * (1.0 - t) * runs as f64).sqrt());
            assert!((seen as f64 - expected).abs() <= 5.0 * sd + 1.0, "{scheme:?}, {x}: {seen}, {expected}");
        }
    }
}

#[test]
fn limited_arq_has_the_throughput_of_persistent_arq_and_loses_what_fails_each_time() {
    // Without memory each slot succeeds with 0.7, whatever is in it; 1 + 2 tries fail with 0.3^3 = 0.027.
    let spec = spec(ArqScheme::Limited { retries: 2 }, vec![(1, Channel::memoryless(0.3).unwrap())]);
    let n = 200_000;
    let arq = saturated(&spec, 1, n);
    let throughput = successes(&arq, 0) as f64 / n as f64;
    assert!((throughput - 0.7).abs() < 4.0 * (0.21 / n as f64).sqrt(), "{throughput}");
    let link = &arq.counters(0).link;
    let (lost, sent) = (link.total().dropped_in_all().packets.as_f64(), link.transmitted.packets.as_f64());
    assert!((lost / sent - 0.027).abs() < 4.0 * (0.027 * 0.973 / sent).sqrt(), "{}", lost / sent);
}

#[test]
fn the_optimal_scheme_sends_less_than_persistent_arq() {
    // p_e = 0.1, memory 0.35. After a success the next try fails with a = 0.1 * 0.65 = 0.065; after a failure, two slots
    // later, with b = 0.1 + 0.35^2 * 0.9 = 0.21025. So f = a / (a + 1 - b) = 0.07604 of the tries fail, each costs
    // 1 + f slots, and (1 - f) / (1 + f) = 0.8587 packets get through per slot; persistently 0.9.
    let n = 400_000;
    for (scheme, expected) in [(ArqScheme::Optimal, 0.858_66), (ArqScheme::Persistent, 0.9)] {
        let spec = spec(scheme, vec![(1, Channel::two_state(0.1, 0.35).unwrap())]);
        let throughput = successes(&saturated(&spec, 1, n), 0) as f64 / n as f64;
        // The variance of a slot, 0.12, times (1 + 0.35) / (1 - 0.35) for the memory.
        assert!((throughput - expected).abs() < 4.0 * (0.25 / n as f64).sqrt(), "{scheme:?}: {throughput}");
    }
}

#[test]
fn users_have_slots_by_their_weights_and_success_by_their_channels() {
    let channels = [0.0, 0.2, 0.5].map(|p_e| Channel::memoryless(p_e).unwrap());
    let users: Vec<(u32, Channel)> = [5, 3, 2].into_iter().zip(channels).collect();
    let n = 100_000;
    for work_conserving in [true, false] {
        let spec = ArqSpec { work_conserving, ..spec(ArqScheme::Persistent, users.clone()) };
        let arq = saturated(&spec, 1, n);
        for (user, (weight, p_e)) in (0..).zip([(5, 0.0), (3, 0.2), (2, 0.5)]) {
            // All can send in each slot: shares are exact.
            let used = arq.counters(user).used;
            assert_eq!(used, n * weight / 10, "user {user}");
            let failed = arq.counters(user).failed as f64 / used as f64;
            assert!((failed - p_e).abs() <= 4.0 * (p_e * (1.0 - p_e) / used as f64).sqrt(), "user {user}: {failed}");
        }
    }
}

#[test]
fn one_users_channel_and_traffic_do_not_change_anothers_failures() {
    // User 0 has dedicated slots: whatever user 1 is and does, they fail alike.
    let failed = |other: Channel, weight: u32, traffic: bool| {
        let users = vec![(1, Channel::two_state(0.3, 0.5).unwrap()), (weight, other)];
        let spec = ArqSpec { work_conserving: false, ..spec(ArqScheme::Persistent, users) };
        let mut arq = Arq::new(&spec, 9, "wlan").unwrap();
        arq.record_slots(true);
        for _ in 0..2_000 {
            arq.push(Instant::ZERO, 0, Plain::new(Bytes::new(125)));
            if traffic {
                arq.push(Instant::ZERO, 1, Plain::new(Bytes::new(125)));
            }
        }
        arq.advance(Instant::from_secs_f64(5.0));
        let slots = std::iter::from_fn(|| arq.take_slot()).filter(|slot| slot.user == 0);
        slots.map(|slot| (slot.slot, slot.outcome)).collect::<Vec<_>>()
    };
    let alone = failed(Channel::memoryless(0.1).unwrap(), 1, false);
    assert!(alone.len() > 400);
    assert_eq!(failed(Channel::memoryless(0.1).unwrap(), 1, true), alone);
    assert_eq!(failed(Channel::two_state(0.5, 0.9).unwrap(), 1, true), alone);
}

#[test]
fn a_window_of_packets_is_late_as_often_as_equation_3_says() {
    // [aimd eq. (3)]: W packets go round. Each needs a slot and is back at the base station R - 1 slots after its end;
    // R = 17, D = 10. A packet is late if its return takes more than R + D slots: if fewer than W got through in as
    // many, from the slot after the success on that let it go. Exact while the queue is never empty: W at least R.
    let (r, d, tau) = (17, 10, Duration::from_millis(5));
    let (runs, slots) = (60, 8_000);
    for (scheme, silence, lambda, w) in [
        (ArqScheme::Persistent, 0, 0.0, 23),
        (ArqScheme::Persistent, 0, 0.0, 21),
        (ArqScheme::Persistent, 0, 0.35, 20),
        (ArqScheme::Optimal, 1, 0.35, 18),
    ] {
        let spec = spec(scheme, vec![(1, Channel::two_state(0.1, lambda).unwrap())]);
        let shares: Vec<f64> = (0..runs)
            .map(|seed| {
                let mut arq = Arq::new(&spec, seed, "wlan").unwrap();
                let mut coming: VecDeque<Instant> = vec![Instant::ZERO; w].into();
                let mut came = VecDeque::new();
                let (mut packets, mut late) = (0, 0);
                while arq.next().min(*coming.front().unwrap_or(&Instant::NEVER)) < Instant::ZERO + tau * slots {
                    if let Some(&at) = coming.front()
                        && at < arq.next()
                    {
                        coming.pop_front();
                        came.push_back(at);
                        arq.push(at, 0, Plain::new(Bytes::new(125)));
                        continue;
                    }
                    let now = arq.next();
                    while arq.pop(now).is_some() {
                        // The first rounds start all together.
                        let since = now.since(came.pop_front().unwrap());
                        packets += u32::from(now > Instant::ZERO + tau * 200);
                        late += u32::from(now > Instant::ZERO + tau * 200 && since + tau * (r - 1) > tau * (r + d));
                        coming.push_back(now + tau * (r - 1));
                    }
                }
                f64::from(late) / f64::from(packets)
            })
            .collect();
        let mean = shares.iter().sum::<f64>() / runs as f64;
        let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (runs - 1) as f64;
        let expected: f64 = t_n(0.1, lambda, silence, (r + d) as usize, true)[..w].iter().sum();
        let sd = (variance / runs as f64).sqrt();
        assert!((mean - expected).abs() < 4.0 * sd, "{scheme:?}, W = {w}: {mean}, {expected}, sd {sd}");
        assert!(sd < 0.1 * expected, "{scheme:?}, W = {w}: {mean}, sd {sd}");
    }
}
