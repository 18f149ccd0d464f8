use super::*;

const QPSK_KBIT: FadingError = FadingError::Modulation { kind: Modulation::Qpsk, bits: 1_000 };

fn channel(states: usize, doppler: f64, error: FadingError) -> Channel {
    Channel::rayleigh(&Rayleigh { states, mean_snr_db: 20.0, doppler, error }).unwrap()
}

/// J_0 squared.
fn power_correlation(doppler: f64) -> f64 {
    libm::j0(2.0 * PI * doppler).powi(2)
}

/// I_0(z) e^-z.
fn bessel_scaled(z: f64) -> f64 {
    // The mean of e^(z (cos φ - 1)) over the circle; the rule of equal parts is exact to rounding for this many.
    let parts = 40 + (12.0 * z.sqrt()) as u32;
    (0..parts).map(|i| (z * ((2.0 * PI * f64::from(i) / f64::from(parts)).cos() - 1.0)).exp()).sum::<f64>()
        / f64::from(parts)
}

/// The probability that two powers of correlation r lie between these edges: the density of Rice integrated over
/// the rectangle by Simpson's rule.
fn by_quadrature(x: (f64, f64), y: (f64, f64), r: f64) -> f64 {
    let density = |x: f64, y: f64| {
        let bessel = 2.0 * (r * x * y).sqrt() / (1.0 - r);
        (bessel - (x + y) / (1.0 - r)).exp() * bessel_scaled(bessel) / (1.0 - r)
    };
    let steps = 200;
    let weight = |i: u32| if i == 0 || i == steps { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    let (h, g) = ((x.1 - x.0) / f64::from(steps), (y.1 - y.0) / f64::from(steps));
    let inner = |x: f64| (0..=steps).map(|j| weight(j) * density(x, y.0 + g * f64::from(j))).sum::<f64>() * g / 3.0;
    (0..=steps).map(|i| weight(i) * inner(x.0 + h * f64::from(i))).sum::<f64>() * h / 3.0
}

#[test]
fn joint_probabilities_are_those_of_the_bivariate_rayleigh_density() {
    let edges = [0.0, 0.3, 0.8, 2.0, f64::INFINITY];
    for r in [0.05, 0.5, 0.9] {
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let here = joint(&edges, r, i, j);
            let by_rule = by_quadrature((edges[i], edges[i + 1]), (edges[j], edges[j + 1]), r);
            assert!((here - by_rule).abs() < 1e-7, "r = {r}, {i} to {j}: {here}, {by_rule}");
        }
        let here = joint(&edges, r, 2, 3);
        let by_rule = by_quadrature((0.8, 2.0), (2.0, 40.0), r);
        assert!((here - by_rule).abs() < 2e-6, "r = {r}, the last: {here}, {by_rule}");
    }
}

#[test]
fn the_chain_has_the_fading_as_its_stationary_distribution() {
    for (states, doppler) in [(2, 0.3), (8, 0.05), (16, 0.001), (5, 7.0)] {
        let modulated = channel(states, doppler, QPSK_KBIT);
        modulated.validate().unwrap();
        for pi in modulated.stationary() {
            assert!((pi - 1.0 / states as f64).abs() < 1e-9, "{states} states, {doppler}: {pi}");
        }
        // p_e = 1 - e^(-0.1): 10 dB of 20 dB.
        let threshold = channel(states, doppler, FadingError::Threshold { snr_db: 10.0 });
        threshold.validate().unwrap();
        let p_e = threshold.error_probability();
        assert!((p_e - 0.095_162_582).abs() < 1e-8, "{states} states, {doppler}: {p_e}");
    }
}

#[test]
fn slow_fading_crosses_levels_as_often_as_wang_and_moayeri_say() {
    // N(A) τ / π_k, with N(A) = √(2πA) f_D e^-A.
    let doppler = 0.001;
    let states = 8;
    let channel = channel(states, doppler, QPSK_KBIT);
    for k in 0..states - 1 {
        let a = -(1.0 - (k + 1) as f64 / states as f64).ln();
        let crossings = (2.0 * PI * a).sqrt() * doppler * (-a).exp() * states as f64;
        let (up, down) = (channel.transition[k][k + 1], channel.transition[k + 1][k]);
        assert!((up / crossings - 1.0).abs() < 1e-3, "level {a}: {up}, {crossings}");
        assert!((down / crossings - 1.0).abs() < 1e-3, "level {a}: {down}, {crossings}");
        if let Some(&far) = channel.transition[k].get(k + 2) {
            assert!(far < 1e-9, "{far}");
        }
    }
}

#[test]
fn the_slowest_fading_is_still_exact() {
    // The same at f_D τ = 0.00001, where e^-z would be far below the smallest number.
    let channel = channel(2, 1e-5, FadingError::Threshold { snr_db: 10.0 });
    let crossings = (2.0 * PI * 0.1).sqrt() * 1e-5 * libm::exp(-0.1) / 0.095_162_582;
    assert!((channel.transition[0][1] / crossings - 1.0).abs() < 1e-5, "{}, {crossings}", channel.transition[0][1]);
}

#[test]
fn fading_that_is_faster_than_a_slot_has_no_memory() {
    // J_0 is zero at 2.404826: f_D τ = 0.382740.
    let channel = channel(2, 0.382_740, FadingError::Threshold { snr_db: 10.0 });
    assert!(channel.memory().abs() < 1e-9, "{}", channel.memory());
    assert!((channel.transition[1][0] - 0.095_162_582).abs() < 1e-8);
}

#[test]
fn with_many_states_the_memory_is_the_correlation_of_the_powers() {
    // The eigenvalues of the fading itself are the powers of r; states that are intervals lose some of it.
    let r = power_correlation(0.05);
    let memory: Vec<f64> = [4, 16, 64].map(|states| channel(states, 0.05, QPSK_KBIT).memory()).into();
    assert!(memory[0] < memory[1] && memory[1] < memory[2] && memory[2] < r, "{memory:?}, {r}");
    assert!(memory[2] > r - 0.004, "{memory:?}, {r}");
}

#[test]
fn a_threshold_among_many_states_divides_them() {
    // p_e = 0.0952 of 32 states: 3 fail, each as probable as the other.
    let channel = channel(32, 0.01, FadingError::Threshold { snr_db: 10.0 });
    assert_eq!(channel.error.iter().filter(|&&e| e == 1.0).count(), 3);
    assert_eq!(channel.error.iter().filter(|&&e| e == 0.0).count(), 29);
    let pi = channel.stationary();
    assert!((pi[0] - 0.095_162_582 / 3.0).abs() < 1e-9 && (pi[31] - 0.904_837_418 / 29.0).abs() < 1e-9);
    // However rare or frequent failures are, there is a state for each side.
    for (snr_db, p_e) in [(-70.0, 1e-9), (33.0, 1.0 - 2.163e-9)] {
        let rayleigh =
            Rayleigh { states: 2, mean_snr_db: 20.0, doppler: 0.01, error: FadingError::Threshold { snr_db } };
        let channel = Channel::rayleigh(&rayleigh).unwrap();
        assert_eq!(channel.error, [1.0, 0.0]);
        assert!((channel.error_probability() / p_e - 1.0).abs() < 1e-3, "{}", channel.error_probability());
    }
}

#[test]
fn the_mean_bit_error_is_that_of_the_textbook() {
    // Proakis, Digital Communications, §14.3, mean SNR 100 (20 dB) per bit; for QPSK 50 of 100 per symbol:
    // BPSK (1 - √(γ̄ / (1 + γ̄))) / 2 = 0.002481, DPSK 1 / (2 (1 + γ̄)) = 0.004950, FSK 1 / (2 + γ̄) = 0.009804.
    for (kind, expected) in [
        (Modulation::Bpsk, 0.002_481_4),
        (Modulation::Qpsk, 0.5 * (1.0 - (50.0_f64 / 51.0).sqrt())),
        (Modulation::Dbpsk, 0.5 / 101.0),
        (Modulation::Fsk, 1.0 / 102.0),
    ] {
        let channel = channel(8, 0.05, FadingError::Modulation { kind, bits: 1 });
        let p_e = channel.error_probability();
        assert!((p_e - expected).abs() < 1e-7, "{kind:?}: {p_e}, {expected}");
        // Mostly in the lowest state, and less the better the state.
        assert!(channel.error.windows(2).all(|e| e[0] > e[1]), "{:?}", channel.error);
    }
}

#[test]
fn a_slot_of_many_bits_fails_more_often_and_at_every_mean_snr() {
    for mean_snr_db in [5.0, 10.0, 40.0, 80.0] {
        let rayleigh = Rayleigh { states: 6, mean_snr_db, doppler: 0.02, error: QPSK_KBIT };
        let channel = Channel::rayleigh(&rayleigh).unwrap();
        // By the rule of equal parts over the distribution function, finest where nothing is lost.
        let (snr, parts) = (from_db(mean_snr_db), 100_000);
        let fails = |u: f64| {
            let wrong = Modulation::Qpsk.bit_error(-snr * libm::log1p(-u));
            1.0 - (1.0 - wrong).powi(1_000)
        };
        // u = v^3 to be dense at the low end.
        let v = |i: u32| (f64::from(i) + 0.5) / f64::from(parts);
        let expected = (0..parts).map(|i| 3.0 * v(i) * v(i) * fails(v(i).powi(3))).sum::<f64>() / f64::from(parts);
        let p_e = channel.error_probability();
        assert!((p_e / expected - 1.0).abs() < 1e-5, "{mean_snr_db} dB: {p_e}, {expected}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let fine = Rayleigh { states: 4, mean_snr_db: 20.0, doppler: 0.05, error: FadingError::Threshold { snr_db: 10.0 } };
    let refused = |rayleigh: Rayleigh| Channel::rayleigh(&rayleigh).unwrap_err().to_string();
    assert_eq!(refused(Rayleigh { states: 1, ..fine }), "`states` is 1; it must be from 2 to 64");
    assert_eq!(
        refused(Rayleigh { mean_snr_db: f64::NAN, ..fine }),
        "`mean_snr_db` is NaN; it must be from -100 to 100 dB"
    );
    assert_eq!(
        refused(Rayleigh { doppler: 0.0, ..fine }),
        "`doppler` is 0; it must be from 0.00001 to 100 (Doppler frequency times slot)"
    );
    assert_eq!(
        refused(Rayleigh { error: FadingError::Threshold { snr_db: 40.0 }, ..fine }),
        "`error.snr_db` is 40; it must be from 90 dB below to 13 dB above `mean_snr_db`"
    );
    let error = FadingError::Modulation { kind: Modulation::Bpsk, bits: 0 };
    assert_eq!(refused(Rayleigh { error, ..fine }), "`error.bits` is 0; it must be at least 1");
    let error = FadingError::Modulation { kind: Modulation::Bpsk, bits: u32::MAX };
    assert_eq!(
        refused(Rayleigh { mean_snr_db: -100.0, error, ..fine }),
        "`error` is 1 in every state: nothing would ever pass"
    );
}

#[test]
fn the_example_of_the_book() {
    // docs/links/arq.md: a threshold 10 dB below the mean, two states.
    for (doppler, p_stay_bad, memory) in
        [(0.01, 0.925, 0.917), (0.046, 0.662, 0.627), (0.1, 0.358, 0.291), (0.2, 0.152, 0.063), (0.3827, 0.095, 0.0)]
    {
        let channel = channel(2, doppler, FadingError::Threshold { snr_db: 10.0 });
        assert!((channel.transition[0][0] - p_stay_bad).abs() < 6e-4, "{doppler}: {:?}", channel.transition);
        assert!((channel.memory() - memory).abs() < 6e-4, "{doppler}: {}", channel.memory());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    #[test]
    fn whatever_is_allowed_makes_a_channel_with_the_distribution_of_the_fading(
        states in 2_usize..=64, mean_snr_db in -100.0..=100.0_f64, log_doppler in -3.5..=2.0_f64,
        threshold in -90.0..=13.0_f64, bits in 1_u32.., kind in 0_usize..5,
    ) {
        let kinds = [Modulation::Bpsk, Modulation::Qpsk, Modulation::Dbpsk, Modulation::Fsk];
        let error = match kinds.get(kind) {
            Some(&kind) => FadingError::Modulation { kind, bits },
            None => FadingError::Threshold { snr_db: mean_snr_db + threshold },
        };
        let rayleigh = Rayleigh { states, mean_snr_db, doppler: libm::pow(10.0, log_doppler), error };
        match Channel::rayleigh(&rayleigh) {
            Ok(channel) => {
                let edges = rayleigh.states().0;
                for (pi, edge) in channel.stationary().iter().zip(edges.windows(2)) {
                    let expected = libm::exp(-edge[0]) - libm::exp(-edge[1]);
                    proptest::prop_assert!((pi - expected).abs() < 1e-9, "{pi}, {expected}");
                }
            }
            // So weak a signal that not one of these bits can be told.
            Err(error) => proptest::prop_assert_eq!(error, ChannelError::NothingPasses),
        }
    }
}
