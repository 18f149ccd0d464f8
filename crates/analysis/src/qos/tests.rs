//! The analysis against numbers by hand, against every realisation of the channel (an independent, slot by slot
//! model of the sender), and against the link itself.

use super::*;
use fairpace_path::{Arq, ArqScheme, ArqSpec, ArqUser, Capacity, Channel, Plain};
use fairpace_units::{Bytes, Instant};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const BOTH: [Start; 2] = [Start::Stationary, Start::AfterSuccess];

fn persistent(p_e: f64) -> Process {
    Process::new(&Channel::memoryless(p_e).unwrap(), ArqScheme::Persistent, 0).unwrap()
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
}

// ---- by hand --------------------------------------------------------------------------------------------

#[test]
fn without_memory_successes_are_binomial() {
    let process = persistent(0.1);
    for start in BOTH {
        let t = process.successes(4, start);
        assert_eq!(t.len(), 5);
        // 3 of 4: 4 x 0.9^3 x 0.1.
        for (found, expected) in t.iter().zip([0.0001, 0.0036, 0.0486, 0.2916, 0.6561]) {
            close(*found, expected, 1e-15);
        }
        close(process.mean_successes(4, start), 3.6, 1e-14);
        close(process.mean_successes(0, start), 0.0, 0.0);
        assert_eq!(process.successes(0, start), [1.0]);
    }
    close(process.throughput(), 0.9, 1e-15);
    close(process.give_up_ratio(), 0.0, 0.0);
}

/// A binomial distribution, R = 17 and D = 10, bound 1 %: sums in exact integers, elsewhere.
#[test]
fn the_largest_windows_of_figure_3() {
    let expected = [25, 24, 24, 23, 22, 22, 22, 21, 21, 20];
    for (i, w) in expected.into_iter().enumerate() {
        let process = persistent((i + 1) as f64 / 100.0);
        assert_eq!(largest_window(&process, 17, 10, 0.01, Start::Stationary), Ok(w), "p_e = {} %", i + 1);
        assert_eq!(largest_window(&process, 17, 10, 0.01, Start::AfterSuccess), Ok(w));
        assert_eq!(smallest_jitter(&process, 17, w, 0.01, Start::AfterSuccess).map(|d| d <= 10), Ok(true));
        assert_eq!(smallest_jitter(&process, 17, w + 1, 0.01, Start::AfterSuccess).map(|d| d > 10), Ok(true));
    }
    close(outage(&persistent(0.1), 17, 10, 20, Start::Stationary).unwrap(), 0.003871406744537788, 1e-15);
    close(outage(&persistent(0.1), 17, 10, 21, Start::Stationary).unwrap(), 0.014667778402144121, 1e-15);
    // 28 packets never get through in 27 slots.
    close(outage(&persistent(0.1), 17, 10, 28, Start::Stationary).unwrap(), 1.0, 1e-15);
}

/// Good and bad slots with memory: after a success the next try fails with P(good -> bad) = p_e (1 - lambda); after a
/// failure and a silent slot with p_e + lambda^2 (1 - p_e).
#[test]
fn the_optimal_scheme_by_hand() {
    let (p_e, lambda) = (0.1, 0.35);
    let process = Process::new(&Channel::two_state(p_e, lambda).unwrap(), ArqScheme::Optimal, 0).unwrap();
    let (after_good, after_bad) = (p_e * (1.0 - lambda), p_e + lambda * lambda * (1.0 - p_e));
    // Share of tries that fail, f: f = f after_bad + (1 - f) after_good. A failure takes two slots.
    let f = after_good / (1.0 - after_bad + after_good);
    close(process.throughput(), (1.0 - f) / (1.0 + f), 1e-14);
    // Two slots after a success: good good; good bad; or bad and silence.
    let t = process.successes(2, Start::AfterSuccess);
    close(t[0], after_good, 1e-15);
    close(t[1], (1.0 - after_good) * after_good, 1e-15);
    close(t[2], (1.0 - after_good) * (1.0 - after_good), 1e-15);
    // A slot at random is silent, a failure or a success.
    let t = process.successes(1, Start::Stationary);
    close(t[1], (1.0 - f) / (1.0 + f), 1e-14);
    // The third of three: silence ends the second slot.
    let t = process.successes(3, Start::AfterSuccess);
    close(t[0], after_good * after_bad, 1e-15);
    // A delay more, and what follows a failure is two slots later: lambda cubed.
    let process = Process::new(&Channel::two_state(p_e, lambda).unwrap(), ArqScheme::Optimal, 1).unwrap();
    let after_bad = p_e + lambda * lambda * lambda * (1.0 - p_e);
    close(process.successes(4, Start::AfterSuccess)[0], after_good * after_bad, 1e-15);
    let f = after_good / (1.0 - after_bad + after_good);
    close(process.throughput(), (1.0 - f) / (1.0 + 2.0 * f), 1e-14);
}

/// 'Optimal' pays throughput, and a smaller window, for silence [aimd §IV-A].
#[test]
fn the_optimal_scheme_needs_smaller_windows() {
    for i in 1..=10 {
        let p_e = f64::from(i) / 100.0;
        let optimal = Process::new(&Channel::two_state(p_e, 0.35).unwrap(), ArqScheme::Optimal, 0).unwrap();
        let w = |p: &Process| largest_window(p, 17, 10, 0.01, Start::AfterSuccess).unwrap();
        assert!(w(&optimal) < w(&persistent(p_e)), "p_e = {p_e}");
    }
}

#[test]
fn a_limited_number_of_tries_gives_packets_up() {
    let channel = Channel::memoryless(0.2).unwrap();
    let process = Process::new(&channel, ArqScheme::Limited { retries: 1 }, 0).unwrap();
    close(process.give_up_ratio(), 0.04, 1e-15);
    // Each slot delivers with 0.8, whatever happens to the packets.
    close(process.throughput(), 0.8, 1e-15);
    // 1.2 tries per packet.
    close(process.departure_rate(), 1.0 / 1.2, 1e-15);
    let process = Process::new(&channel, ArqScheme::None, 7).unwrap();
    close(process.give_up_ratio(), 0.2, 1e-15);
    close(process.departure_rate(), 1.0, 1e-15);
    assert_eq!(process.departures(3, Start::AfterSuccess).last().copied().map(|t| (t - 1.0).abs() < 1e-15), Some(true));
    // Two slots of silence before the second try: 1 x 0.8 + 4 x 0.2 slots per packet.
    let process = Process::new(&channel, ArqScheme::Limited { retries: 1 }, 2).unwrap();
    close(process.throughput(), 0.96 / 1.6, 1e-15);
}

#[test]
fn a_user_among_dedicated_slots_has_the_part_that_its_weight_gives_it() {
    let user = |weight| ArqUser { weight, buffer: Capacity::Unlimited, channel: Channel::memoryless(0.1).unwrap() };
    let spec = ArqSpec {
        work_conserving: false,
        users: vec![user(3), user(1)],
        ..ArqSpec::downlink(Channel::memoryless(0.0).unwrap(), Capacity::Unlimited)
    };
    let (most, least) = (Process::of_user(&spec, 0).unwrap(), Process::of_user(&spec, 1).unwrap());
    close(most.throughput(), 0.9 * 0.75, 1e-15);
    close(least.throughput(), 0.9 * 0.25, 1e-15);
    // In 8 slots it has two turns wherever they begin; in 3 it may have none, with probability 1/4.
    close(least.successes(8, Start::Stationary)[2], 0.81, 1e-15);
    close(least.successes(3, Start::Stationary)[0], 0.25 + 0.75 * 0.1, 1e-15);
    // After a success its next turn is the fourth slot.
    close(least.successes(3, Start::AfterSuccess)[0], 1.0, 1e-15);
    close(least.successes(4, Start::AfterSuccess)[1], 0.9, 1e-15);
    // Of 16 slots, four are its own: a window of five never leaves its queue empty.
    assert_eq!((least.full_window(17), least.full_window(18), most.full_window(17)), (5, 6, 13));
    assert_eq!(persistent(0.1).full_window(17), 17);
    let found = Process::of_user(&spec, 2).map(|_| ()).unwrap_err();
    assert_eq!(found.to_string(), "user is 2; it must be 0 to 1; the nearest possible is 1");
}

// ---- every realisation ----------------------------------------------------------------------------------

/// The sender of [`Process`] once more, slot by slot, as it is told in words.
struct Sender {
    channel: Channel,
    scheme: ArqScheme,
    retry_delay: u32,
    turns: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    slot: usize,
    silent: u32,
    failures: u32,
    channel: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Failure,
    Success,
    GivenUp,
}

impl Sender {
    /// The outcome of a slot, in which a try fails if `fails`, and the next state but for the channel.
    fn slot(&self, s: State, fails: bool) -> (Outcome, State) {
        let mut next = State { slot: (s.slot + 1) % self.turns.len(), ..s };
        if s.silent > 0 {
            next.silent -= 1;
            return (Outcome::Nothing, next);
        }
        if !self.turns[s.slot] {
            return (Outcome::Nothing, next);
        }
        next.failures = 0;
        if !fails {
            return (Outcome::Success, next);
        }
        let last = match self.scheme {
            ArqScheme::None => true,
            ArqScheme::Limited { retries } => s.failures == retries,
            ArqScheme::Persistent | ArqScheme::Optimal => false,
        };
        if last {
            return (Outcome::GivenUp, next);
        }
        if matches!(self.scheme, ArqScheme::Limited { .. }) {
            next.failures = s.failures + 1;
        }
        next.silent = self.retry_delay + u32::from(self.scheme == ArqScheme::Optimal);
        (Outcome::Failure, next)
    }

    /// Calls `see` with every possible outcome of the slot, its probability, and the state after it.
    fn branches(&self, s: State, mut see: impl FnMut(f64, Outcome, State)) {
        let e = self.channel.error[s.channel];
        for (fails, p) in [(false, 1.0 - e), (true, e)] {
            let (outcome, next) = self.slot(s, fails);
            for (channel, q) in self.channel.transition[s.channel].iter().enumerate() {
                if p * q > 0.0 {
                    see(p * q, outcome, State { channel, ..next });
                }
            }
        }
    }

    /// By iteration, each step taken with probability one half only, so that nothing is periodic.
    fn stationary(&self) -> BTreeMap<State, f64> {
        let pi = self.channel.stationary();
        let first = |(channel, p): (usize, &f64)| (State { slot: 0, silent: 0, failures: 0, channel }, *p);
        let mut now: BTreeMap<State, f64> = pi.iter().enumerate().map(first).collect();
        loop {
            let mut next: BTreeMap<State, f64> = now.iter().map(|(s, p)| (*s, p / 2.0)).collect();
            for (s, p) in &now {
                self.branches(*s, |q, _, to| *next.entry(to).or_default() += p * q / 2.0);
            }
            let moved: f64 = next.iter().map(|(s, p)| (p - now.get(s).unwrap_or(&0.0)).abs()).sum();
            now = next;
            if moved < 1e-16 {
                return now;
            }
        }
    }

    fn start(&self, start: Start) -> BTreeMap<State, f64> {
        let stationary = self.stationary();
        if start == Start::Stationary {
            return stationary;
        }
        let mut after: BTreeMap<State, f64> = BTreeMap::new();
        for (s, p) in stationary {
            self.branches(s, |q, outcome, to| {
                if outcome == Outcome::Success {
                    *after.entry(to).or_default() += p * q;
                }
            });
        }
        let sum: f64 = after.values().sum();
        after.values_mut().for_each(|p| *p /= sum);
        after
    }

    /// Calls `see` with every realisation of n slots and its probability.
    fn realisations(&self, n: usize, start: Start, see: &mut dyn FnMut(f64, &[Outcome])) {
        let mut outcomes = Vec::with_capacity(n);
        for (s, p) in self.start(start) {
            self.extend(s, p, n, &mut outcomes, see);
        }
    }

    fn extend(&self, s: State, p: f64, n: usize, outcomes: &mut Vec<Outcome>, see: &mut dyn FnMut(f64, &[Outcome])) {
        if n == 0 {
            return see(p, outcomes);
        }
        self.branches(s, |q, outcome, to| {
            outcomes.push(outcome);
            self.extend(to, p * q, n - 1, outcomes, see);
            outcomes.pop();
        });
    }

    fn process(&self) -> Process {
        Process::in_turns(&self.channel, self.scheme, self.retry_delay, &self.turns).unwrap()
    }
}

fn three_states() -> Channel {
    let transition = vec![vec![0.7, 0.2, 0.1], vec![0.0, 0.6, 0.4], vec![0.5, 0.1, 0.4]];
    Channel { transition, error: vec![0.05, 0.4, 1.0] }
}

/// Senders of every kind, and how many slots of each can be enumerated.
fn senders() -> Vec<(Sender, usize)> {
    let mut senders = Vec::new();
    let channels = [
        (Channel::memoryless(0.3).unwrap(), 12),
        (Channel::two_state(0.2, 0.35).unwrap(), 12),
        (Channel::two_state(0.4, -0.5).unwrap(), 9),
        (three_states(), 5),
    ];
    for (channel, n) in channels {
        for scheme in [
            ArqScheme::None,
            ArqScheme::Persistent,
            ArqScheme::Limited { retries: 1 },
            ArqScheme::Limited { retries: 2 },
            ArqScheme::Optimal,
        ] {
            for retry_delay in [0, 2] {
                for turns in [&[true][..], &[false, true], &[true, false, true, false, false]] {
                    let n = if turns.len() == 5 { n.min(9) } else { n };
                    let turns = turns.to_vec();
                    senders.push((Sender { channel: channel.clone(), scheme, retry_delay, turns }, n));
                }
            }
        }
    }
    // A silence that outlasts most of the slots.
    for scheme in [ArqScheme::Persistent, ArqScheme::Limited { retries: 1 }] {
        let channel = Channel::two_state(0.2, 0.35).unwrap();
        senders.push((Sender { channel, scheme, retry_delay: 7, turns: vec![true] }, 12));
    }
    senders
}

#[test]
fn successes_and_departures_are_those_of_every_realisation() {
    for (sender, most) in senders() {
        let process = sender.process();
        for start in BOTH {
            for n in [1, most] {
                let (mut good, mut left) = (vec![0.0; n + 1], vec![0.0; n + 1]);
                sender.realisations(n, start, &mut |p, outcomes| {
                    let successes = outcomes.iter().filter(|o| **o == Outcome::Success).count();
                    let given_up = outcomes.iter().filter(|o| **o == Outcome::GivenUp).count();
                    good[successes] += p;
                    left[successes + given_up] += p;
                });
                let n = n as u32;
                for (found, expected) in [(process.successes(n, start), &good), (process.departures(n, start), &left)] {
                    for (f, e) in found.iter().zip(expected) {
                        let case = (sender.scheme, sender.retry_delay, &sender.turns, start, n);
                        assert!((f - e).abs() < 1e-12, "{case:?}: {found:?} is not {expected:?}");
                    }
                }
                let mean: f64 = good.iter().enumerate().map(|(x, p)| x as f64 * p).sum();
                close(process.mean_successes(n, start), mean, 1e-11);
            }
        }
        let (mut good, mut given_up) = (0.0, 0.0);
        sender.realisations(1, Start::Stationary, &mut |p, outcomes| match outcomes[0] {
            Outcome::Success => good += p,
            Outcome::GivenUp => given_up += p,
            _ => {}
        });
        close(process.throughput(), good, 1e-12);
        close(process.departure_rate(), good + given_up, 1e-12);
        close(process.mean_successes(40, Start::Stationary), 40.0 * good, 1e-10);
    }
}

#[test]
fn outage_and_loss_in_a_window_are_those_of_every_realisation() {
    for (sender, most) in senders() {
        let process = sender.process();
        let n = most.min(9);
        let (r, d) = (n / 2, n - n / 2);
        for start in BOTH {
            for window in [r, r + 1, r + 2] {
                for buffer in [1, 2, window] {
                    let (mut overflow, mut late, mut given_up, mut outage_all) = (0.0, 0.0, 0.0, 0.0);
                    sender.realisations(n, start, &mut |p, outcomes| {
                        let gone = |o: &&Outcome| matches!(o, Outcome::Success | Outcome::GivenUp);
                        let in_time = outcomes.iter().filter(gone).nth(window - 1);
                        if in_time.is_none() {
                            outage_all += p;
                        }
                        let found = window - outcomes[..r - 1].iter().filter(gone).count();
                        match in_time {
                            _ if found > buffer => overflow += p,
                            None => late += p,
                            Some(Outcome::GivenUp) => given_up += p,
                            Some(_) => {}
                        }
                    });
                    let (r, d, window, buffer) = (r as u32, d as u32, window as u32, buffer as u32);
                    close(outage(&process, r, d, window, start).unwrap(), outage_all, 1e-12);
                    close(outage_curve(&process, r, d, window, start).unwrap()[d as usize], outage_all, 1e-12);
                    let loss = loss_in_window(&process, r, d, window, buffer, start).unwrap();
                    close(loss.overflow, overflow, 1e-12);
                    close(loss.late, late, 1e-12);
                    close(loss.given_up, given_up, 1e-12);
                    close(loss.total(), overflow + late + given_up, 1e-12);
                }
            }
        }
    }
}

/// R = 2, 5, 3: of the successes of lags 4 and 3 those of the second flow count, of lag 2 those of the second and third.
#[test]
fn a_shared_queue_is_that_of_every_realisation() {
    let rtts = [2, 5, 3];
    let flows: Vec<SharedFlow> = rtts.map(|r| SharedFlow { r, d: 2, bound: 0.5, share: 1.0 }).to_vec();
    let windows = [2, 3, 1];
    let sender = |scheme, retry_delay, turns: &[bool]| Sender {
        channel: Channel::two_state(0.3, 0.35).unwrap(),
        scheme,
        retry_delay,
        turns: turns.to_vec(),
    };
    for sender in [
        sender(ArqScheme::Persistent, 0, &[true]),
        sender(ArqScheme::Optimal, 0, &[true]),
        sender(ArqScheme::Persistent, 0, &[true, true, false]),
        sender(ArqScheme::Persistent, 5, &[true]),
    ] {
        let process = sender.process();
        let throughput = shared_throughput(&process, &flows, &windows).unwrap();
        close(throughput.iter().sum(), process.throughput(), 1e-14);
        let share: Vec<f64> = throughput.iter().map(|t| t / process.throughput()).collect();
        for start in BOTH {
            let found = shared_outage(&process, &flows, &windows, start).unwrap();
            for (i, found) in found.iter().enumerate() {
                let own = (start == Start::AfterSuccess && rtts[i] < 5).then_some(rtts[i] as usize);
                let (mut late, mut all) = (0.0, 0.0);
                // Lags 4, 3, 2, 1, then the slots of arrival and two more.
                let from = if own.is_some() { Start::Stationary } else { start };
                sender.realisations(7, from, &mut |p, outcomes| {
                    let good = |lag: usize| outcomes[4 - lag] == Outcome::Success;
                    if own.is_some_and(|lag| !good(lag)) {
                        return;
                    }
                    all += p;
                    let counted = |lag: usize| f64::from(u8::from(good(lag) && own != Some(lag)));
                    let far = share[1] * (counted(4) + counted(3));
                    let near = (share[1] + share[2]) * counted(2);
                    let rest = outcomes[3..].iter().filter(|o| **o == Outcome::Success).count();
                    for (up_far, up_near) in [(false, false), (false, true), (true, false), (true, true)] {
                        let rounded = |x: f64, up: bool| {
                            if up { (x.floor() + 1.0, x.fract()) } else { (x.floor(), 1.0 - x.fract()) }
                        };
                        let ((far, p_far), (near, p_near)) = (rounded(far, up_far), rounded(near, up_near));
                        late += if far + near + (rest as f64) < 6.0 { p * p_far * p_near } else { 0.0 };
                    }
                });
                close(*found, late / all, 1e-12);
            }
        }
    }
}

/// Of equal RTTs it does not matter whose packets they are.
#[test]
fn flows_of_equal_rtt_are_one_flow() {
    let process = Process::new(&three_states(), ArqScheme::Optimal, 0).unwrap();
    let flow = |share| SharedFlow { r: 9, d: 4, bound: 0.2, share };
    for start in BOTH {
        let one = outage(&process, 9, 4, 8, start).unwrap();
        for (flows, windows) in [(vec![flow(1.0), flow(3.0)], vec![2, 6]), (vec![flow(1.0); 4], vec![2, 1, 2, 3])] {
            for found in shared_outage(&process, &flows, &windows, start).unwrap() {
                close(found, one, 1e-14);
            }
        }
    }
    let largest = largest_window(&process, 9, 4, 0.2, Start::AfterSuccess).unwrap();
    let (windows, outages) = largest_split(&process, &[flow(1.0), flow(1.0)], Start::AfterSuccess).unwrap();
    assert_eq!(windows.windows.iter().sum::<u32>(), largest);
    assert!(outages.iter().all(|o| *o <= 0.2));
}

// ---- long runs ------------------------------------------------------------------------------------------

/// T_n is a polynomial's coefficients: sum over x of T_n(x) z^x. At the roots of unity it is a product of matrices,
/// and the coefficients are its discrete Fourier transform: another way to the same numbers.
#[test]
fn a_thousand_slots_of_eight_states_agree_with_the_generating_function() {
    let channel = eight_states();
    let n: usize = 1_000;
    let process = Process::new(&channel, ArqScheme::Persistent, 0).unwrap();
    let found = process.successes(n as u32, Start::Stationary);
    close(found.iter().sum(), 1.0, 1e-12);
    let pi = channel.stationary();
    let turn = |k: usize| {
        let angle = -2.0 * std::f64::consts::PI * k as f64 / (n + 1) as f64;
        (angle.cos(), angle.sin())
    };
    let values: Vec<(f64, f64)> = (0..=n)
        .map(|k| {
            let (re, im) = turn(k);
            let mut v: Vec<(f64, f64)> = pi.iter().map(|p| (*p, 0.0)).collect();
            for _ in 0..n {
                let mut next = vec![(0.0, 0.0); 8];
                for (i, (a, b)) in v.iter().enumerate() {
                    let (fail, good) = (channel.error[i], 1.0 - channel.error[i]);
                    let (a, b) = (a * (fail + good * re) - b * good * im, b * (fail + good * re) + a * good * im);
                    for (to, p) in next.iter_mut().zip(&channel.transition[i]) {
                        to.0 += a * p;
                        to.1 += b * p;
                    }
                }
                v = next;
            }
            v.iter().fold((0.0, 0.0), |s, x| (s.0 + x.0, s.1 + x.1))
        })
        .collect();
    for (x, found) in found.iter().enumerate().step_by(7) {
        let term = |(k, v): (usize, &(f64, f64))| {
            // The inverse: the other way round the circle.
            let (re, im) = turn(k * x % (n + 1));
            v.0 * re + v.1 * im
        };
        let expected = values.iter().enumerate().map(term).sum::<f64>() / (n + 1) as f64;
        close(*found, expected, 1e-11);
    }
}

/// Slow fading: neighbours only.
fn eight_states() -> Channel {
    let p = |i: usize, j: usize| match i.abs_diff(j) {
        0 if i == 0 || i == 7 => 0.95,
        0 => 0.9,
        1 => 0.05,
        _ => 0.0,
    };
    let transition = (0..8).map(|i| (0..8).map(|j| p(i, j)).collect()).collect();
    Channel { transition, error: vec![0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.01, 0.0] }
}

/// Packets that go round through the link itself: share of them with more jitter than D, by flow, in each of 20 parts
/// of the run; and deliveries per slot.
fn go_round(spec: &ArqSpec, flows: &[SharedFlow], windows: &[u32], slots: u64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut link = Arq::new(spec, 7, "wlan").unwrap();
    let at = |slot: u64| Instant::from_nanos(slot * spec.slot.as_nanos() as u64);
    // Those in the queue, in its order; those on their way, by when they are back. With when they were delivered last.
    let mut queue: VecDeque<(usize, Option<u64>)> = VecDeque::new();
    let mut away: BTreeMap<u64, Vec<(usize, u64)>> = BTreeMap::new();
    let mut left = windows.to_vec();
    while left.iter().any(|w| *w > 0) {
        for (i, w) in left.iter_mut().enumerate().filter(|(_, w)| **w > 0) {
            link.push(at(0), 0, Plain::new(Bytes::new(125)));
            queue.push_back((i, None));
            *w -= 1;
        }
    }
    let mut late = vec![vec![(0_u64, 0_u64); 20]; flows.len()];
    for slot in 1..=slots {
        while link.pop(at(slot)).is_some() {
            let (i, last) = queue.pop_front().unwrap();
            let count = &mut late[i][((slot - 1) * 20 / slots) as usize];
            if let Some(last) = last {
                count.1 += 1;
                count.0 += u64::from(slot - last > u64::from(flows[i].r + flows[i].d));
            }
            away.entry(slot + u64::from(flows[i].r) - 1).or_default().push((i, slot));
        }
        for (i, last) in away.remove(&slot).unwrap_or_default() {
            link.push(at(slot), 0, Plain::new(Bytes::new(125)));
            queue.push_back((i, Some(last)));
        }
    }
    let rates = late.iter().map(|parts| parts.iter().map(|c| c.1).sum::<u64>() as f64 / slots as f64).collect();
    let part = |c: &(u64, u64)| c.0 as f64 / c.1 as f64;
    (late.iter().map(|parts| parts.iter().map(part).collect()).collect(), rates)
}

fn mean_and_error(parts: &[f64]) -> (f64, f64) {
    let n = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / n;
    let variance = parts.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Packets of 125 bytes over the link of `path`, 400,000 slots: eq. (3) is what comes out, from a window of R on.
#[test]
fn packets_that_go_round_through_the_link_have_the_outage_of_equation_3() {
    for (channel, scheme, window) in [
        (Channel::memoryless(0.1).unwrap(), ArqScheme::Persistent, 21),
        (Channel::two_state(0.1, 0.35).unwrap(), ArqScheme::Optimal, 17),
        (three_states(), ArqScheme::Persistent, 17),
    ] {
        let process = Process::new(&channel, scheme, 0).unwrap();
        let spec = ArqSpec { scheme, ..ArqSpec::downlink(channel, Capacity::Unlimited) };
        let flow = [SharedFlow { r: 17, d: 10, bound: 0.5, share: 1.0 }];
        let (late, rate) = go_round(&spec, &flow, &[window], 400_000);
        let (mean, error) = mean_and_error(&late[0]);
        let expected = outage(&process, 17, 10, window, Start::AfterSuccess).unwrap();
        close(mean, expected, 4.0 * error);
        assert!(error < 0.1 * expected, "{mean} +- {error} says nothing of {expected}");
        close(rate[0], process.throughput(), 0.005);
    }
}

/// Two and four flows, R = 17 and 25, 10 % errors, windows by eq. (4): shares within 1 % of the analysis, and the outage
/// below it, as far as whole windows are no smaller than their share of [`Process::full_window`].
#[test]
fn flows_of_unequal_rtt_have_the_shares_and_the_outage_of_the_analysis() {
    let spec = ArqSpec::downlink(Channel::memoryless(0.1).unwrap(), Capacity::Unlimited);
    let process = persistent(0.1);
    let flow = |r| SharedFlow { r, d: 10, bound: 0.01, share: 1.0 };
    for flows in [vec![flow(17), flow(25)], vec![flow(17), flow(25), flow(17), flow(25)]] {
        let (windows, expected) = largest_split(&process, &flows, Start::AfterSuccess).unwrap();
        let (late, rate) = go_round(&spec, &flows, &windows.windows, 400_000);
        for i in 0..flows.len() {
            close(rate[i] / windows.throughput[i], 1.0, 0.015);
            let (mean, error) = mean_and_error(&late[i]);
            assert!(mean < expected[i] && mean + 4.0 * error > 0.6 * expected[i], "{mean} +- {error}: {expected:?}");
        }
    }
}

// ---- windows by eq. (4) ---------------------------------------------------------------------------------

/// p_e = 0.1 and R = 17, 25: E[T_16] = 14.4 and E[T_24] = 21.6, so the second flow has half of 7.2 packets more.
#[test]
fn equation_4_by_hand() {
    let process = persistent(0.1);
    let flow = |r, share| SharedFlow { r, d: 10, bound: 0.01, share };
    let two = split(&process, &[flow(17, 1.0), flow(25, 1.0)], 23).unwrap();
    close(two.exact[0], 9.7, 1e-12);
    close(two.exact[1], 13.3, 1e-12);
    assert_eq!(two.windows, [10, 13]);
    // 10 - (13 - 3.6) = 0.6.
    close(two.violation, 0.6, 1e-12);
    // 10 / (16 + w) + 13 / (24 + w) = 0.9 at w = 5.66...
    close(two.throughput[0] + two.throughput[1], 0.9, 1e-14);
    let wait = 10.0 / two.throughput[0] - 16.0;
    close(13.0 / two.throughput[1] - 24.0, wait, 1e-10);
    // Three to one: p_1 = 0.75, Q = 22 - (0.75 x 14.4 + 0.25 x 21.6) = 5.8.
    let uneven = split(&process, &[flow(17, 3.0), flow(25, 1.0)], 22).unwrap();
    close(uneven.exact[0], 0.75 * (5.8 + 14.4), 1e-12);
    close(uneven.exact[1], 0.25 * (5.8 + 21.6), 1e-12);
    assert_eq!(uneven.windows, [15, 7]);
    // Equal flows, equal windows; of equal remainders the first is rounded up.
    let four = split(&process, &[flow(17, 1.0); 4], 22).unwrap();
    assert_eq!(four.windows, [6, 6, 5, 5]);
    close(four.violation, 1.0, 1e-12);
    // Windows that do not fill the link go round in R.
    let few = shared_throughput(&process, &[flow(10, 1.0), flow(20, 1.0)], &[2, 2]).unwrap();
    close(few[0], 0.2, 1e-15);
    close(few[1], 0.1, 1e-15);
}

#[test]
fn the_largest_split_is_the_largest_by_trial() {
    for (process, bound) in [
        (persistent(0.1), 0.01),
        (persistent(0.03), 0.05),
        (Process::new(&Channel::two_state(0.1, 0.35).unwrap(), ArqScheme::Optimal, 0).unwrap(), 0.02),
    ] {
        let flow = |r, d, share| SharedFlow { r, d, bound, share };
        for flows in
            [vec![flow(17, 10, 1.0), flow(25, 8, 1.0)], vec![flow(9, 12, 1.0), flow(30, 10, 2.0), flow(17, 11, 1.0)]]
        {
            let (windows, outages) = largest_split(&process, &flows, Start::AfterSuccess).unwrap();
            assert!(outages.iter().all(|o| *o <= bound));
            let fits = |total: u32| {
                let Ok(windows) = split(&process, &flows, total) else { return false };
                let outages = shared_outage(&process, &flows, &windows.windows, Start::AfterSuccess).unwrap();
                outages.iter().all(|o| *o <= bound)
            };
            let trial = (1..=60).rev().find(|total| fits(*total));
            assert_eq!(Some(windows.windows.iter().sum()), trial);
        }
    }
}

// ---- utilization ----------------------------------------------------------------------------------------

#[test]
fn equation_1_by_hand() {
    close(tcp_friendly_alpha(0.5).unwrap(), 1.0, 1e-15);
    close(tcp_friendly_alpha(0.875).unwrap(), 0.2, 1e-15);
    close(tcp_friendly_beta(0.2).unwrap(), 0.875, 1e-15);
    close(tcp_friendly_beta(1.0).unwrap(), 0.5, 1e-15);
}

#[test]
fn equation_2_by_hand() {
    let eta = |beta, r, b, rwnd| utilization(beta, r, b, rwnd).unwrap();
    // TCP without a buffer: three quarters. With R = B never idle.
    assert_eq!(eta(0.5, 20, 0, None), Utilization { stage_one: 0.75, cycle: 0.75, overflows: true });
    assert_eq!(eta(0.5, 20, 20, None), Utilization { stage_one: 1.0, cycle: 1.0, overflows: true });
    // beta u = 3/4: 7/8 of stage I; of the cycle (3/4)(9/4) / (1 - 3/2 + 9/4).
    let half = eta(0.5, 20, 10, None);
    close(half.stage_one, 0.875, 1e-15);
    close(half.cycle, 27.0 / 28.0, 1e-15);
    // R/7 is enough for beta = 0.875.
    close(full_utilization_buffer(0.875, 17).unwrap(), 17.0 / 7.0, 1e-15);
    assert!(eta(0.875, 17, 2, None).stage_one < 1.0);
    close(eta(0.875, 17, 3, None).cycle, 1.0, 0.0);
    // An rwnd of R + B loses nothing; one packet more does.
    assert_eq!(eta(0.5, 20, 5, Some(25)), Utilization { stage_one: 1.0, cycle: 1.0, overflows: false });
    assert!(eta(0.5, 20, 5, Some(26)).overflows);
    close(eta(0.5, 20, 5, Some(15)).cycle, 0.75, 1e-15);
}

/// The cycle run through in small steps: alpha packets more per round, rounds of max(W, R) slots.
#[test]
fn equation_2_is_what_the_sawtooth_of_figure_1_uses() {
    for (beta, r, b) in [(0.5, 17, 0), (0.5, 17, 9), (0.875, 17, 1), (0.875, 100, 10), (0.2, 30, 50)] {
        let (alpha, full, rtt) = (1e-4, f64::from(r + b), f64::from(r));
        let (mut w, mut sent, mut slots, mut sent_1, mut slots_1) = (beta * full, 0.0, 0.0, 0.0, 0.0);
        while w < full {
            sent += w;
            slots += w.max(rtt);
            if w < rtt {
                (sent_1, slots_1) = (sent, slots);
            }
            w += alpha;
        }
        let found = utilization(beta, r, b, None).unwrap();
        close(found.cycle, sent / slots, 1e-5);
        close(found.stage_one, sent_1 / slots_1, 1e-5);
    }
}

// ---- what cannot be -------------------------------------------------------------------------------------

#[test]
fn r_and_d_in_slots() {
    let ms = Duration::from_millis;
    assert_eq!(slots(ms(85), ms(50), ms(5)), Ok((17, 10)));
    // 87 ms is 90 in slots; up to 137 ms are 27 slots, 9 more.
    assert_eq!(slots(ms(87), ms(50), ms(5)), Ok((18, 9)));
    assert_eq!(slots(ms(85), ms(54), ms(5)), Ok((17, 10)));
    let found = |min, jitter, slot| slots(ms(min), ms(jitter), ms(slot)).unwrap_err().to_string();
    assert_eq!(
        found(85, 4, 5),
        "tolerable delay jitter is 4 ms; it must be at least one slot, 5 ms; the nearest possible is 5 ms"
    );
    assert_eq!(
        found(87, 5, 5),
        "tolerable delay jitter is 5 ms; it must be one slot more than the RTT has in whole slots; the nearest possible is 8 ms"
    );
    assert!(found(85, 50, 0).starts_with("slot is "));
    assert!(found(0, 50, 5).starts_with("minimal RTT is "));
    assert!(found(10_000_000, 50, 5).ends_with("the nearest possible is 50 s"), "{}", found(10_000_000, 50, 5));
}

#[test]
fn a_number_out_of_its_range_is_named() {
    let p = persistent(0.1);
    let after = Start::AfterSuccess;
    let flow = SharedFlow { r: 17, d: 10, bound: 0.01, share: 1.0 };
    let text = |e: QosError| e.to_string();
    let bad = [
        (
            outage(&p, 0, 10, 5, after).map(|_| ()),
            "minimal RTT in slots is 0; it must be at least 1; the nearest possible is 1",
        ),
        (
            outage(&p, 17, 0, 5, after).map(|_| ()),
            "tolerable delay jitter in slots is 0; it must be at least 1; the nearest possible is 1",
        ),
        (outage(&p, 17, 10, 0, after).map(|_| ()), "rwnd is 0; it must be at least 1; the nearest possible is 1"),
        (
            outage(&p, 200_000, 10, 1, after).map(|_| ()),
            "minimal RTT in slots is 200000; it must be at most 10000; the nearest possible is 10000",
        ),
        (
            largest_window(&p, 17, 10, 1.0, after).map(|_| ()),
            "delay outage is 1; it must be above 0 and below 1; the nearest possible is 0.999",
        ),
        (
            largest_window(&p, 17, 10, f64::NAN, after).map(|_| ()),
            "delay outage is NaN; it must be above 0 and below 1; the nearest possible is 0.001",
        ),
        (
            largest_window(&p, 1, 1, 1e-3, after).map(|_| ()),
            "no window keeps the delay outage at 0.001: the smallest, 1, has 1.000e-2",
        ),
        (
            loss_in_window(&p, 17, 10, 5, 0, after).map(|_| ()),
            "buffer is 0; it must be at least 1; the nearest possible is 1",
        ),
        (
            tcp_friendly_alpha(1.0).map(|_| ()),
            "beta is 1; it must be above 0 and below 1; the nearest possible is 0.999",
        ),
        (
            utilization(-0.5, 17, 3, None).map(|_| ()),
            "beta is -0.5; it must be above 0 and below 1; the nearest possible is 0.001",
        ),
        (utilization(0.5, 17, 3, Some(0)).map(|_| ()), "rwnd is 0; it must be at least 1; the nearest possible is 1"),
        (
            tcp_friendly_beta(3.0).map(|_| ()),
            "alpha is 3; it must be above 0 and below 3; the nearest possible is 2.999",
        ),
        (check_need(&p, 0.95), "0.9500 packets per slot are needed; the link delivers at most 0.9000 in the long run"),
        (
            check_need(&p, f64::INFINITY),
            "throughput in packets per slot is inf; it must be above 0, and at most 0.9000; the nearest possible is 0.9000",
        ),
        (split(&p, &[], 5).map(|_| ()), "number of flows is 0; it must be at least 1; the nearest possible is 1"),
        (
            split(&p, &[flow, SharedFlow { share: 0.0, ..flow }], 5).map(|_| ()),
            "share is 0; it must be above 0; the nearest possible is 0.001",
        ),
        (
            split(&p, &[flow, SharedFlow { r: 40, ..flow }], 5).map(|_| ()),
            "sum of the windows is 5; it must be at least 13, so that eq. (4) leaves each flow a packet; the nearest \
             possible is 13",
        ),
        (
            shared_outage(&p, &[flow, flow], &[5], after).map(|_| ()),
            "number of windows is 1; it must be that of the flows; the nearest possible is 2",
        ),
        (
            largest_split(&p, &[flow, SharedFlow { bound: 0.0, ..flow }], after).map(|_| ()),
            "delay outage is 0; it must be above 0 and below 1; the nearest possible is 0.001",
        ),
    ];
    for (found, expected) in bad {
        assert_eq!(found.map_err(text), Err(expected.to_owned()));
    }
    // 20 flows cannot do with less than 20 packets.
    let found = largest_split(&p, &[SharedFlow { bound: 1e-3, ..flow }; 20], after).unwrap_err();
    assert!(matches!(found, QosError::OutageAboveBound { window: 20, .. }), "{found:?}");
    check_need(&p, 0.9).unwrap();
}

#[test]
fn channels_and_schemes_that_cannot_be_analysed_are_refused() {
    let refused = |channel: &Channel, scheme, turns: &[bool]| {
        Process::in_turns(channel, scheme, 0, turns).map(|_| ()).unwrap_err()
    };
    let good = Channel::memoryless(0.1).unwrap();
    let broken = Channel { transition: vec![vec![0.5]], error: vec![0.1] };
    assert!(matches!(refused(&broken, ArqScheme::Persistent, &[true]), QosError::Channel(_)));
    // Good and bad in turn, and a silent slot after each failure: who begins in a bad slot never leaves.
    let alternating = Channel { transition: vec![vec![0.0, 1.0], vec![1.0, 0.0]], error: vec![0.0, 1.0] };
    assert_eq!(refused(&alternating, ArqScheme::Optimal, &[true]), QosError::NothingArrives);
    assert_eq!(
        Process::new(&alternating, ArqScheme::Persistent, 0).map(|p| p.throughput()),
        Ok(0.5),
        "without silence it is half a packet per slot"
    );
    assert!(refused(&good, ArqScheme::Persistent, &[false]).to_string().starts_with("turns of the user"));
    assert!(refused(&good, ArqScheme::Persistent, &[true; 2_000]).to_string().contains("1 to 1024"));
    let found = Process::new(&good, ArqScheme::Persistent, 10_001).map(|_| ()).unwrap_err().to_string();
    assert_eq!(found, "retry_delay is 10001; it must be at most 10000; the nearest possible is 10000");
    assert!(refused(&good, ArqScheme::Limited { retries: 5_000 }, &[true]).to_string().starts_with("retries is 5000"));
    // Two classes of slots that never meet, one with errors in half of the slots and one without.
    let never_mix = Channel { transition: vec![vec![0.0, 1.0], vec![1.0, 0.0]], error: vec![0.0, 0.5] };
    assert_eq!(refused(&never_mix, ArqScheme::Persistent, &[true, false]), QosError::Locked);
}

// ---- in general -----------------------------------------------------------------------------------------

fn any_channel() -> impl Strategy<Value = Channel> {
    (1_usize..5).prop_flat_map(|n| {
        let row = prop::collection::vec(0.01_f64..1.0, n);
        (prop::collection::vec(row, n), prop::collection::vec(0.0_f64..0.95, n)).prop_map(|(mut rows, error)| {
            for row in &mut rows {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|p| *p /= sum);
            }
            Channel { transition: rows, error }
        })
    })
}

fn any_scheme() -> impl Strategy<Value = ArqScheme> {
    prop_oneof![
        Just(ArqScheme::None),
        Just(ArqScheme::Persistent),
        Just(ArqScheme::Optimal),
        (0_u32..5).prop_map(|retries| ArqScheme::Limited { retries }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_analysis_is_consistent(
        channel in any_channel(),
        scheme in any_scheme(),
        retry_delay in 0_u32..5,
        mut turns in prop::collection::vec(any::<bool>(), 1..6),
        r in 1_u32..30,
        d in 1_u32..30,
    ) {
        turns[0] = true;
        let process = Process::in_turns(&channel, scheme, retry_delay, &turns).unwrap();
        for start in BOTH {
            let n = r + d;
            let t = process.successes(n, start);
            prop_assert!((t.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(t.iter().all(|p| *p >= 0.0));
            let mean: f64 = t.iter().enumerate().map(|(x, p)| x as f64 * p).sum();
            prop_assert!((mean - process.mean_successes(n, start)).abs() < 1e-10);
            let departures = process.departures(n, start);
            let mut tail = 0.0;
            let curve = outage_curve(&process, r, d, (n / 2).max(1), start).unwrap();
            for w in 1..=n + 1 {
                tail += departures[w as usize - 1];
                let found = outage(&process, r, d, w, start).unwrap();
                prop_assert!((found - tail).abs() < 1e-12, "eq. (3) at W = {w}");
            }
            prop_assert!((tail - 1.0).abs() < 1e-12);
            prop_assert!(curve.windows(2).all(|c| c[1] <= c[0] + 1e-15), "longer bounds, fewer outages");
            let loss = loss_in_window(&process, r, d, 5, 3, start).unwrap();
            prop_assert!(loss.overflow >= 0.0 && loss.late >= 0.0 && loss.given_up >= 0.0 && loss.total() <= 1.0 + 1e-12);
        }
        let mean = process.mean_successes(r, Start::Stationary);
        prop_assert!((mean - f64::from(r) * process.throughput()).abs() < 1e-10);
        // Limited tries give up with what is left of them.
        if !matches!(scheme, ArqScheme::None | ArqScheme::Limited { .. }) {
            prop_assert_eq!(process.give_up_ratio(), 0.0);
        }
    }

    #[test]
    fn whole_windows_are_within_a_packet_of_equation_4(
        p_e in 0.0_f64..0.5,
        flows in prop::collection::vec((1_u32..60, 0.1_f64..1.0), 1..6),
        more in 0_u32..40,
    ) {
        let process = persistent(p_e);
        let flows: Vec<SharedFlow> =
            flows.into_iter().map(|(r, share)| SharedFlow { r, d: 5, bound: 0.5, share }).collect();
        let least = match split(&process, &flows, 0) {
            Err(QosError::OutOfRange { nearest, .. }) => nearest.parse::<u32>().unwrap(),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        let windows = split(&process, &flows, least + more).unwrap();
        prop_assert_eq!(windows.windows.iter().sum::<u32>(), least + more);
        prop_assert!((windows.exact.iter().sum::<f64>() - f64::from(least + more)).abs() < 1e-9);
        for (whole, exact) in windows.windows.iter().zip(&windows.exact) {
            prop_assert!(*whole >= 1 && (f64::from(*whole) - exact).abs() < 1.0);
        }
        // Eq. (4) for each pair.
        let sum: f64 = flows.iter().map(|f| f.share).sum();
        for (f, w) in flows.iter().zip(&windows.exact) {
            let (p, p_0) = (f.share / sum, flows[0].share / sum);
            let mean = |r| process.mean_successes(r - 1, Start::Stationary);
            let right = p / p_0 * windows.exact[0] + p * (mean(f.r) - mean(flows[0].r));
            prop_assert!((w - right).abs() < 1e-9);
        }
        prop_assert!(windows.throughput.iter().sum::<f64>() <= process.throughput() + 1e-12);
    }
}
