use super::*;

fn fading(channel: &Channel, seed: u64) -> Fading {
    channel.validate().unwrap();
    Fading::new(channel, RandomStream::named(seed, "channel"))
}

/// Three states, among them one that is left at once, and errors that are no certainties.
fn three() -> Channel {
    Channel {
        transition: vec![vec![0.9, 0.08, 0.02], vec![0.3, 0.6, 0.1], vec![0.5, 0.5, 0.0]],
        error: vec![0.01, 0.3, 0.9],
    }
}

#[test]
fn the_stationary_distribution_is_the_one_that_stays() {
    // By hand for two states: P(good -> bad) = 0.065, P(bad -> good) = 0.585: bad 0.065 / 0.65 = 0.1.
    let two = Channel::two_state(0.1, 0.35).unwrap();
    assert!((two.transition[0][1] - 0.065).abs() < 1e-15 && (two.transition[1][0] - 0.585).abs() < 1e-15);
    assert!((two.stationary()[1] - 0.1).abs() < 1e-15);
    let cycle = Channel {
        transition: vec![vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0], vec![1.0, 0.0, 0.0]],
        error: vec![0.0, 0.0, 1.0],
    };
    for channel in [Channel::memoryless(0.3).unwrap(), two, three(), cycle] {
        channel.validate().unwrap();
        let pi = channel.stationary();
        assert!((pi.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        for j in 0..channel.states() {
            let next: f64 = (0..channel.states()).map(|i| pi[i] * channel.transition[i][j]).sum();
            assert!((next - pi[j]).abs() < 1e-14, "{channel:?}: {pi:?}");
        }
    }
    // Rare states keep their digits: between a part 1e-12 and the rest.
    let rare = Channel { transition: vec![vec![1.0 - 1e-12, 1e-12], vec![1.0, 0.0]], error: vec![0.0, 1.0] };
    assert!((rare.error_probability() / 1e-12 - 1.0).abs() < 1e-9);
}

#[test]
fn memory_is_the_second_eigenvalue() {
    for (p_e, lambda) in [(0.1, 0.0), (0.1, 0.35), (0.5, -0.9), (0.02, 0.999)] {
        assert!((Channel::two_state(p_e, lambda).unwrap().memory() - lambda).abs() < 1e-12);
    }
    assert_eq!(Channel::memoryless(0.1).unwrap().memory(), 0.0);
    // Eigenvalues worked out: a block of equal rows in the first two states lumps to two states with 0.6 + 0.7 - 1.
    let lumped = Channel {
        transition: vec![vec![0.2, 0.4, 0.4], vec![0.2, 0.4, 0.4], vec![0.1, 0.2, 0.7]],
        error: vec![0.0, 0.0, 1.0],
    };
    assert!((lumped.memory() - 0.3).abs() < 1e-9, "{}", lumped.memory());
    // Circulant: 0.1 + 0.8 w + 0.1 w^2, w the third root of unity: |.| = sqrt(0.35^2 + 0.75 * 0.49) = 0.7.
    let circulant = Channel {
        transition: vec![vec![0.1, 0.8, 0.1], vec![0.1, 0.1, 0.8], vec![0.8, 0.1, 0.1]],
        error: vec![0.0, 0.5, 1.0],
    };
    assert!((circulant.memory() - 0.7).abs() < 1e-9, "{}", circulant.memory());
    // (1, 0, -1) is an eigenvector: 0.2 - 0.5 = -0.3. The third is the trace less these two: 0.8 - 1 + 0.3 = 0.1.
    let negative = Channel {
        transition: vec![vec![0.2, 0.3, 0.5], vec![0.3, 0.4, 0.3], vec![0.5, 0.3, 0.2]],
        error: vec![0.0, 0.5, 1.0],
    };
    assert!((negative.memory() + 0.3).abs() < 1e-9, "{}", negative.memory());
    // All rows the same: none, however many states.
    let none = Channel { transition: vec![vec![0.2, 0.3, 0.5]; 3], error: vec![0.0, 0.5, 1.0] };
    assert_eq!(none.memory(), 0.0);
}

#[test]
fn slots_that_are_skipped_are_stepped_through() {
    let mut every = fading(&three(), 1);
    let all: Vec<bool> = (0..1_000).map(|slot| every.fails(slot)).collect();
    let mut some = fading(&three(), 1);
    for slot in [0, 1, 7, 100, 101, 999] {
        assert_eq!(some.fails(slot), all[slot as usize], "slot {slot}");
        // The same slot again is the same.
        assert_eq!(some.fails(slot), all[slot as usize], "slot {slot}");
    }
}

#[test]
fn failures_come_as_often_and_in_as_long_runs_as_the_chain_says() {
    // Two states, p_e = 0.1, memory 0.35: a run of failures lasts 1 / P(bad -> good) = 1 / 0.585 on average.
    let mut fading = fading(&Channel::two_state(0.1, 0.35).unwrap(), 3);
    let n = 400_000;
    let fails: Vec<bool> = (0..n).map(|slot| fading.fails(slot)).collect();
    let failed = fails.iter().filter(|&&f| f).count() as f64;
    // The variance of a mean is larger by (1 + 0.35) / (1 - 0.35): sd sqrt(0.09 * 2.077 / n) = 0.00068.
    assert!((failed / n as f64 - 0.1).abs() < 4.0 * 0.00068, "{failed}");
    let runs = fails.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
    // sd of a geometric of mean 1.709: 1.10; over 23,400 runs 0.0072.
    assert!((failed / runs - 1.0 / 0.585).abs() < 4.0 * 0.0072, "{}", failed / runs);
}

#[test]
fn a_gap_of_millions_of_slots_ends_in_the_states_of_the_power() {
    // Memory so long that a gap of 5,000,000 slots does not forget all: 0.999_999_8^5e6 = e^-1 = 0.368.
    let lambda = 1.0 - 2e-7;
    let channel = Channel::two_state(0.5, lambda).unwrap();
    let (n, gap) = (4_000, 5_000_000);
    let mut same = 0;
    for seed in 0..n {
        let mut fading = fading(&channel, seed);
        same += u32::from(fading.fails(0) == fading.fails(gap));
    }
    // P(same) = (1 + lambda^gap) / 2 = 0.6839; sd sqrt(0.216 / 4000) = 0.0074.
    let share = f64::from(same) / n as f64;
    assert!((share - 0.5 * (1.0 + (-1.0_f64).exp())).abs() < 4.0 * 0.0074, "{share}");
    // The longest there is.
    let mut fading = fading(&three(), 1);
    fading.fails(u64::MAX / 1_000);
    assert_eq!(fading.slots, u64::MAX / 1_000 + 1);
}

#[test]
fn a_worse_channel_fails_in_all_slots_in_which_the_better_one_does() {
    for lambda in [0.0, 0.35, 0.9] {
        let of = |p_e| fading(&Channel::two_state(p_e, lambda).unwrap(), 5);
        let (mut better, mut worse) = (of(0.05), of(0.1));
        let fails: Vec<(bool, bool)> = (0..20_000).map(|slot| (better.fails(slot), worse.fails(slot))).collect();
        assert!(fails.iter().all(|&(better, worse)| worse || !better));
        assert!(fails.iter().any(|&(better, _)| better) && fails.iter().any(|&(better, worse)| worse && !better));
    }
}
