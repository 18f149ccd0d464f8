//! X by hand: every branch of RFC 5348 §4.2 to §4.5, and of RFC 3448 where it differs.

use super::*;
use proptest::prelude::*;

const S: f64 = 1_460.0;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn params(rfc: Rfc, equation: Equation) -> SenderParams {
    let first_timer = ms(2_000);
    SenderParams {
        rfc,
        equation,
        smoothing: false,
        first_timer,
        rfc3390_window: false,
        ns2_increase: false,
        ns2_reports: false,
        mss: S,
        min: 1e-3,
        max: 1e9,
    }
}

fn sender_by(rfc: Rfc, equation: Equation) -> Sender {
    Sender::new(params(rfc, equation), S)
}

fn sender() -> Sender {
    sender_by(Rfc::Rfc5348, Equation::Tfrc)
}

/// A report on a path of 100 ms.
fn report(x_recv: f64, p: f64) -> Feedback {
    Feedback { r_sample: ms(100), t_rto: None, x_recv, p, new_loss: false, data_limited: false }
}

/// One report was heard at 0, R = 100 ms; infinity is gone, the set holds `x_recv` as of 1 s.
fn steady(x_recv: f64, p: f64) -> Sender {
    let mut t = sender();
    t.start(at(0), None);
    t.on_feedback(at(0), &report(0.0, 0.0));
    t.on_feedback(at(1_000), &report(x_recv, p));
    t
}

fn near(x: f64, wanted: f64) -> bool {
    (x - wanted).abs() <= 0.000_5 * wanted.abs().min(1.0)
}

macro_rules! assert_near {
    ($x:expr, $wanted:expr) => {
        let (x, wanted): (f64, f64) = ($x, $wanted);
        assert!(near(x, wanted), "{x}, not {wanted}");
    };
}

// --- §4.2: initialisation ------------------------------------------------------------------------

//= 5348-4.2-1
//= 5348-4.2-2
#[test]
fn before_any_rtt_a_packet_a_second_and_a_timer_of_two() {
    let mut t = sender();
    t.start(at(0), None);
    assert_eq!((t.x(), t.timer(), t.rtt()), (1_460.0, Duration::from_secs(2), None));
}

//= 5348-4.2-3
#[test]
fn the_initial_window_by_segment_size() {
    for (mss, w_init) in [
        (1_460.0, 4_380.0),
        (536.0, 2_144.0),
        (1_095.0, 4_380.0),
        (2_190.0, 4_380.0),
        (4_000.0, 8_000.0),
        (160.0, 640.0),
    ] {
        assert_eq!(initial_window(mss), w_init, "{mss}");
    }
}

//= 5348-4.2-3
#[test]
fn the_first_rtt_allows_the_initial_window_in_it_whoever_measured_it() {
    // 4380 / 0.1
    let mut t = sender();
    t.start(at(0), None);
    t.on_feedback(at(700), &report(0.0, 0.0));
    assert_near!(t.x(), 43_800.0);
    let mut t = sender();
    t.start(at(0), Some(ms(100)));
    assert_near!(t.x(), 43_800.0);
    assert_eq!(t.timer(), ms(400), "max(4R, 2s/X) = max(0.4, 0.067)");
}

/// The first report says X_recv = 0, as no RTT has passed; it must not hold X down, nor must the
/// second, which may cover a part of an RTT only.
//= 5348-4.2-4
//= 5348-4.3-11
#[test]
fn infinity_limits_nothing_for_two_rtts() {
    let mut t = sender();
    t.start(at(0), None);
    t.on_feedback(at(100), &report(0.0, 0.0));
    t.on_feedback(at(200), &report(1_460.0, 0.0));
    assert_near!(t.x(), 2.0 * 43_800.0);
    t.on_feedback(at(300), &report(20_000.0, 0.0));
    assert_near!(t.x(), 4.0 * 43_800.0);
    // Three RTTs old: gone. 2 * 60000, and not 8 * 43800.
    t.on_feedback(at(400), &report(60_000.0, 0.0));
    assert_near!(t.x(), 120_000.0);
}

// --- §4.3: a report ------------------------------------------------------------------------------

//= 5348-4.3-2
#[test]
fn the_first_sample_is_r_and_later_ones_weigh_a_tenth() {
    let mut t = sender();
    // The challenge's RTT is no report.
    t.start(at(0), Some(ms(500)));
    t.on_feedback(at(500), &report(1e5, 0.0));
    assert_eq!(t.rtt(), Some(ms(100)));
    t.on_feedback(at(600), &Feedback { r_sample: ms(200), ..report(1e5, 0.0) });
    assert_eq!(t.rtt(), Some(ms(110)), "0.9 * 100 + 0.1 * 200");
    t.on_feedback(at(700), &Feedback { r_sample: ms(10), ..report(1e5, 0.0) });
    assert_eq!(t.rtt(), Some(ms(100)), "0.9 * 110 + 0.1 * 10");
}

/// RTO goes with the X before this report, X_Bps with the R after this sample.
//= 5348-4.3-3
//= 5348-4.3-9
//= 5348-4.3-10
#[test]
fn the_steps_come_in_the_rfcs_order() {
    let mut t = sender();
    t.start(at(0), None);
    // X = 1460 still: max(0.4, 2 * 1460 / 1460)
    t.on_feedback(at(100), &report(0.0, 0.0));
    assert_eq!(t.timer(), Duration::from_secs(2));
    // X = 43800: max(4 * 0.11, 2 * 1460 / 43800)
    t.on_feedback(at(200), &Feedback { r_sample: ms(200), ..report(1e6, 0.01) });
    assert_eq!(t.timer(), ms(440));
    // 1460 / (0.11 * 0.08902164)
    assert_near!(t.x(), 149_095.511);
    // A slow sender: 2s/X of the X before, which is the floor s/64.
    t.on_feedback(at(300), &report(0.0, 1.0));
    t.on_feedback(at(600), &report(0.0, 1.0));
    t.on_feedback(at(900), &report(0.0, 1.0));
    assert_near!(t.x(), 22.8125);
    t.on_feedback(at(1_200), &report(1e6, 0.5));
    assert_eq!(t.timer(), Duration::from_secs(128));
    assert!(t.x() > 500.0, "{}", t.x());
}

/// The table of f(p), s = 1460, R = 0.1 s.
//= 5348-3.1-1
//= 5348-3.1-2
//= 5348-3.1-3
#[test]
fn with_losses_x_is_the_equations() {
    for (p, x) in [
        (1e-4, 1_786_519.644),
        (0.001, 560_411.702),
        (0.005, 241_981.537),
        (0.01, 164_005.062),
        (0.02, 106_943.484),
        (0.05, 53_813.926),
        (0.1, 25_843.490),
        (0.2, 7_833.806),
        (0.5, 609.348),
        (1.0, 60.004),
    ] {
        let t = steady(1e8, p);
        assert_near!(t.x_bps(), x);
        assert_near!(t.x(), x);
    }
}

//= 5348-4.3-6
//= 5348-4.3-7
#[test]
fn ordinarily_x_is_at_most_twice_the_best_of_two_rtts() {
    let mut t = steady(20_000.0, 0.01);
    assert_near!(t.x(), 40_000.0);
    t.on_feedback(at(1_100), &report(10_000.0, 0.01));
    t.on_feedback(at(1_200), &report(5_000.0, 0.01));
    assert_near!(t.x(), 40_000.0);
    // 20,000 is three RTTs old.
    t.on_feedback(at(1_300), &report(4_000.0, 0.01));
    assert_near!(t.x(), 20_000.0);
}

//= 5348-8.2.2-1
#[test]
fn three_receive_rates_are_kept_however_many_come() {
    let mut t = steady(50_000.0, 0.01);
    for n in 1..=2 {
        t.on_feedback(at(1_000 + n), &report(1_000.0, 0.01));
        assert_near!(t.x(), 100_000.0);
    }
    t.on_feedback(at(1_003), &report(1_000.0, 0.01));
    assert_near!(t.x(), 2_000.0);
}

//= 5348-4.3-7
#[test]
fn with_losses_x_is_at_least_one_packet_per_64_s() {
    // s/64; the equation at p = 1 gives 60
    assert_near!(steady(0.0, 1.0).x(), 22.8125);
}

/// 200,000 is kept, and renewed, as long as reports say data-limited.
//= 5348-4.3-5
#[test]
fn a_data_limited_sender_keeps_the_best_rate_and_its_double_as_limit() {
    let mut t = steady(200_000.0, 0.002);
    let limited = |x| Feedback { data_limited: true, ..report(x, 0.002) };
    // 1460 / (0.1 * f(0.002)) = 389,294: the equation, below 400,000
    let x_bps = t.x();
    assert!(x_bps < 400_000.0 && x_bps > 380_000.0, "{x_bps}");
    for n in 1..=50 {
        t.on_feedback(at(1_000 + 100 * n), &limited(3_000.0));
        assert_eq!(t.x(), x_bps);
    }
    // No longer limited, and after two RTTs what is really received counts.
    for n in 1..=3 {
        t.on_feedback(at(6_000 + 100 * n), &report(3_000.0, 0.002));
    }
    assert_near!(t.x(), 6_000.0);
}

/// max(200000 / 2, 0.85 * 110000) = 100000 is the limit itself, not its double; the next time
/// max(100000 / 2, 0.85 * 90000) = 76500.
//= 5348-4.3-4
#[test]
fn a_data_limited_sender_that_loses_is_held_to_the_best_of_half_and_85_percent() {
    let mut t = steady(200_000.0, 0.002);
    let lost = |x| Feedback { data_limited: true, new_loss: true, ..report(x, 0.002) };
    t.on_feedback(at(1_100), &lost(110_000.0));
    assert_near!(t.x(), 100_000.0);
    t.on_feedback(at(1_200), &lost(90_000.0));
    assert_near!(t.x(), 76_500.0);
    // Without another loss it is twice 76,500 again.
    t.on_feedback(at(1_300), &Feedback { new_loss: false, ..lost(90_000.0) });
    assert_near!(t.x(), 180_000.0);
}

/// In the first RTTs the initial infinity does not survive a data-limited report.
//= 5348-4.3-5
#[test]
fn a_data_limited_report_ends_the_initial_infinity() {
    let mut t = sender();
    t.start(at(0), Some(ms(100)));
    t.on_feedback(at(100), &Feedback { data_limited: true, ..report(30_000.0, 0.0) });
    assert_near!(t.x(), 60_000.0);
}

//= 5348-4.3-8
#[test]
fn slow_start_doubles_at_most_once_per_rtt() {
    let mut t = steady(1e9, 0.0);
    // Doubled at 1000 ms.
    assert_near!(t.x(), 87_600.0);
    for n in 1..10 {
        t.on_feedback(at(1_000 + 10 * n), &report(1e9, 0.0));
        assert_near!(t.x(), 87_600.0);
    }
    t.on_feedback(at(1_100), &report(1e9, 0.0));
    assert_near!(t.x(), 175_200.0);
}

//= 5348-4.3-8
#[test]
fn slow_start_goes_to_twice_what_was_received_and_never_below_the_initial_rate() {
    let mut t = steady(30_000.0, 0.0);
    assert_near!(t.x(), 60_000.0);
    t.on_feedback(at(2_000), &report(100.0, 0.0));
    assert_near!(t.x(), 43_800.0);
}

#[test]
fn x_stays_within_the_flows_limits() {
    let params = SenderParams { min: 500.0, max: 50_000.0, ..sender().params };
    let mut t = Sender::new(params, S);
    t.start(at(0), Some(ms(100)));
    t.on_feedback(at(200), &report(1e9, 0.0));
    assert_eq!(t.x(), 50_000.0);
    for n in 1..=20 {
        t.on_feedback(at(200 + 100 * n), &report(1.0, 1.0));
    }
    assert_eq!(t.x(), 500.0);
}

#[test]
fn each_equation_may_be_used() {
    // s = 1460, R = 0.1, p = 0.1: simple 1460/(0.1 sqrt(0.2/3)) = 56,546; complex with
    // T = 3 sqrt(0.0375) = 0.581 as RFC 5348; at p = 0.5, T = min(1, 1.299).
    let x = |equation, p| {
        let mut t = sender_by(Rfc::Rfc5348, equation);
        t.start(at(0), Some(ms(100)));
        t.on_feedback(at(100), &report(1e9, p));
        t.x()
    };
    assert_near!(x(Equation::Simple, 0.1), 56_545.557);
    assert_near!(x(Equation::Complex, 0.1), 25_843.490);
    // 14600 / (0.57735 + 4 * 0.5 * 9)
    assert_near!(x(Equation::Complex, 0.5), 785.903);
    // P(Q) = 1.538, at most 1
    assert_near!(x(Equation::Modified, 0.5), 785.903);
    assert!(x(Equation::Modified, 0.1) > x(Equation::Complex, 0.1));
}

// --- §4.4: no report -----------------------------------------------------------------------------

/// X = 164005.062, limit 400000: by the equation. Then halved each time: X_Bps/2 first, then what is in
/// the set; 164005.062/2^12 = 40.040, and the 13th is the floor 1460/64.
//= 5348-4.4-4
//= 5348-4.4-5
//= 5348-4.4-6
//= 5348-4.4-7
#[test]
fn without_reports_x_halves_down_to_the_floor() {
    let mut t = steady(200_000.0, 0.01);
    assert_near!(t.x(), 164_005.062);
    let mut now = at(1_000);
    let mut halved = Vec::new();
    for _ in 0..14 {
        now += t.timer();
        t.on_timer(now, false);
        halved.push(t.x());
        // max(4R, 2s/X)
        let wanted = (4.0 * 0.1_f64).max(2.0 * S / t.x());
        assert!((t.timer().as_secs_f64() - wanted).abs() < 1e-9);
    }
    for (n, wanted) in [(0, 82_002.531), (1, 41_001.266), (11, 40.040), (12, 22.8125), (13, 22.8125)] {
        assert_near!(halved[n], wanted);
    }
    assert_eq!(t.timer(), Duration::from_secs(128));
}

/// The set holds 10,000: X = 20,000, X_Bps = 164,005 > 2 * 10000. Update_Limits(10000).
//= 5348-4.4-4
#[test]
fn the_timer_halves_by_what_was_received_where_that_is_the_limit() {
    let mut t = steady(10_000.0, 0.01);
    assert_near!(t.x(), 20_000.0);
    t.on_timer(at(1_400), false);
    assert_near!(t.x(), 10_000.0);
    assert_near!(t.set.max(), 5_000.0);
}

//= 5348-4.4-1
#[test]
fn before_any_rtt_the_timer_halves_x_unless_nothing_was_sent() {
    let mut t = sender();
    t.start(at(0), None);
    t.on_timer(at(2_000), true);
    assert_eq!((t.x(), t.timer()), (1_460.0, Duration::from_secs(2)));
    t.on_timer(at(4_000), false);
    assert_eq!((t.x(), t.timer()), (730.0, Duration::from_secs(4)));
    for _ in 0..10 {
        t.on_timer(at(9_000), false);
    }
    assert_eq!((t.x(), t.timer()), (22.8125, Duration::from_secs(128)));
}

//= 5348-4.4-3
#[test]
fn in_slow_start_the_timer_halves_x() {
    let mut t = steady(1e9, 0.0);
    t.on_timer(at(1_400), false);
    assert_near!(t.x(), 43_800.0);
    for _ in 0..20 {
        t.on_timer(at(1_800), false);
    }
    assert_near!(t.x(), 22.8125);
}

/// W_init/R = 43800. p = 0: an idle sender keeps what is below 87600; p > 0: one whose X_recv is below
/// 43800 keeps X.
//= 5348-4.4-2
#[test]
fn an_idle_sender_keeps_what_it_could_recover_to() {
    let mut t = steady(43_799.0, 0.0);
    assert_near!(t.x(), 87_598.0);
    t.on_timer(at(1_400), true);
    assert_near!(t.x(), 87_598.0);
    t.on_timer(at(1_800), false);
    assert_near!(t.x(), 43_799.0);

    let mut t = steady(43_800.0, 0.0);
    t.on_timer(at(1_400), true);
    assert_near!(t.x(), 43_800.0);
    t.on_timer(at(1_800), true);
    assert_near!(t.x(), 43_800.0);

    let mut t = steady(43_799.0, 0.001);
    t.on_timer(at(1_400), true);
    assert_near!(t.x(), 87_598.0);
    let mut t = steady(43_800.0, 0.001);
    t.on_timer(at(1_400), true);
    assert_near!(t.x(), 43_800.0);
}

#[test]
fn after_a_blackout_x_is_limited_by_what_arrives_and_not_by_infinity() {
    let mut t = sender();
    t.start(at(0), Some(ms(100)));
    t.on_feedback(at(100), &report(1_460.0, 0.01));
    // Infinity is still in the set, and p > 0: X_Bps/2
    t.on_timer(at(500), false);
    assert_near!(t.x(), 82_002.531);
    assert!(t.set.max().is_finite());
}

// --- §4.5: oscillation reduction -----------------------------------------------------------------

/// sqrt in s: R_sqmean = sqrt(0.1) = 0.316228; a sample of 0.2: 0.9 * 0.316228 + 0.1 * 0.447214 =
/// 0.329326; X_inst / X = 0.329326 / 0.447214 = 0.736396.
//= 5348-4.5-1
#[test]
fn packets_are_paced_slower_while_the_rtt_grows() {
    let mut t = Sender::new(SenderParams { smoothing: true, ..sender().params }, S);
    t.start(at(0), Some(ms(100)));
    t.on_feedback(at(100), &report(1e9, 0.01));
    assert_eq!(t.x_inst(), t.x());
    t.on_feedback(at(200), &Feedback { r_sample: ms(200), ..report(1e9, 0.01) });
    assert_near!(t.x_inst() / t.x(), 0.736_396);
    // Not below s/64.
    for n in 0..3 {
        t.on_feedback(at(500 + 300 * n), &Feedback { r_sample: ms(5_000), ..report(0.0, 1.0) });
    }
    assert!(t.swing < 0.9);
    assert_near!(t.x_inst(), 22.8125);
    let mut t = sender();
    t.start(at(0), Some(ms(100)));
    t.on_feedback(at(100), &report(1e9, 0.01));
    t.on_feedback(at(200), &Feedback { r_sample: ms(200), ..report(1e9, 0.01) });
    assert_eq!(t.x_inst(), t.x(), "off");
}

// --- RFC 3448 ------------------------------------------------------------------------------------

fn older() -> Sender {
    let mut t = sender_by(Rfc::Rfc3448, Equation::Tfrc);
    t.start(at(0), None);
    t
}

/// [RFC 3448 §4.2, §4.3]: a packet per second, then one per RTT.
#[test]
fn rfc_3448_starts_with_one_packet_per_rtt() {
    let mut t = older();
    assert_eq!((t.x(), t.timer()), (1_460.0, Duration::from_secs(2)));
    t.on_feedback(at(100), &report(0.0, 0.0));
    assert_near!(t.x(), 14_600.0);
    // The timer goes with the new X: max(0.4, 0.2).
    assert_eq!(t.timer(), ms(400));
    // Twice what was received last, not the best of two RTTs; doubled once per RTT.
    t.on_feedback(at(200), &report(14_000.0, 0.0));
    assert_near!(t.x(), 28_000.0);
    t.on_feedback(at(250), &report(28_000.0, 0.0));
    assert_near!(t.x(), 28_000.0);
    t.on_feedback(at(300), &report(10_000.0, 0.0));
    assert_near!(t.x(), 20_000.0);
    // An RTT from the challenge changes nothing before the first report.
    let mut t = sender_by(Rfc::Rfc3448, Equation::Tfrc);
    t.start(at(0), Some(ms(100)));
    assert_eq!(t.x(), 1_460.0);
}

/// ns-2's `rate_init_option_ 2`: 4380 / 0.1, whatever the first reports say was received.
#[test]
fn rfc_3448_may_start_with_the_window_of_rfc_3390() {
    let mut t = Sender::new(SenderParams { rfc3390_window: true, ..params(Rfc::Rfc3448, Equation::Tfrc) }, S);
    t.start(at(0), None);
    assert_eq!(t.x(), 1_460.0);
    t.on_feedback(at(100), &report(1_460.0, 0.0));
    assert_near!(t.x(), 43_800.0);
    t.on_feedback(at(200), &report(43_800.0, 0.0));
    assert_near!(t.x(), 87_600.0);
}

/// s/R is 14,600 byte/s, and the equation's rate at p = 0.0001 is far above. The loss that ends slow start sets X at once; from there X
/// rises by two s/R at most, by s/R for the 100 ms since the report before, and never above the equation; it falls at once. No report,
/// the timer leaves the time of the last.
#[test]
fn as_ns2_x_comes_up_to_the_equation_by_a_packet_per_rtt() {
    let mut params = params(Rfc::Rfc3448, Equation::Complex);
    params.ns2_increase = true;
    let mut t = Sender::new(params, S);
    t.start(at(0), None);
    t.on_feedback(at(0), &report(0.0, 0.0));
    t.on_feedback(at(1_000), &report(1e9, 0.01));
    let low = t.x_bps();
    assert_near!(t.x(), low);
    // X was doubled more than two R ago.
    t.on_feedback(at(1_100), &report(1e9, 0.000_1));
    assert_near!(t.x(), low + 2.0 * 14_600.0);
    t.on_feedback(at(1_200), &report(1e9, 0.000_1));
    assert_near!(t.x(), low + 3.0 * 14_600.0);
    t.on_feedback(at(1_250), &report(1e9, 0.000_1));
    assert_near!(t.x(), low + 3.5 * 14_600.0);
    t.on_timer(at(1_320), false);
    let after_timer = t.x();
    t.on_feedback(at(1_350), &report(1e9, 0.000_1));
    assert_near!(t.x(), after_timer + 14_600.0);
    t.on_feedback(at(2_000), &report(1e9, 0.000_1));
    assert_near!(t.x(), after_timer + 3.0 * 14_600.0);
    t.on_feedback(at(2_100), &report(1e9, 0.009));
    assert_near!(t.x(), t.x_bps());
    t.on_feedback(at(2_200), &report(1e9, 0.008_9));
    assert_near!(t.x(), t.x_bps());
    t.on_feedback(at(2_300), &report(1e9, 0.01));
    assert_near!(t.x(), low);
    // Twice what arrived is the limit here, too.
    t.on_feedback(at(2_400), &report(low / 4.0, 0.000_1));
    assert_near!(t.x(), low / 2.0);
}

/// [RFC 3448 §4.3]: min(X_calc, 2 X_recv), data-limited or not.
#[test]
fn rfc_3448_does_not_ask_whether_the_sender_was_data_limited() {
    let mut t = older();
    t.on_feedback(at(100), &report(0.0, 0.0));
    t.on_feedback(at(200), &report(200_000.0, 0.01));
    assert_near!(t.x(), 164_005.062);
    t.on_feedback(at(300), &Feedback { data_limited: true, ..report(3_000.0, 0.01) });
    assert_near!(t.x(), 6_000.0);
}

/// [RFC 3448 §4.4]: X_recv = X_calc/4 first, then X_recv/2, at least s/128; four packets per RTT are
/// 58,400: an idle sender below that keeps its rate.
#[test]
fn rfc_3448_halves_through_x_recv_and_leaves_two_packets_per_rtt_to_an_idle_sender() {
    let mut t = older();
    t.on_feedback(at(100), &report(0.0, 0.0));
    t.on_feedback(at(200), &report(200_000.0, 0.01));
    t.on_timer(at(600), false);
    assert_near!(t.x(), 82_002.531);
    t.on_timer(at(1_000), false);
    assert_near!(t.x(), 41_001.266);
    for n in 0..12 {
        t.on_timer(at(2_000 + n), false);
    }
    assert_near!(t.x(), 22.8125);

    t.on_feedback(at(90_000), &report(60_000.0, 0.01));
    t.on_timer(at(90_400), true);
    assert_near!(t.x(), 60_000.0);
    t.on_timer(at(90_800), true);
    assert_near!(t.x(), 60_000.0);
    t.on_timer(at(91_200), false);
    assert_near!(t.x(), 30_000.0);
}

#[test]
fn rfc_3448_halves_a_rate_that_no_report_has_confirmed() {
    let mut t = older();
    t.on_timer(at(2_000), false);
    assert_eq!((t.x(), t.timer()), (730.0, Duration::from_secs(4)));
}

// --- TFRC-SP -------------------------------------------------------------------------------------

/// 20/(20+40), 160/(160+40) of what 1,460-byte segments would be allowed.
//= 4828-3-1
//= 4828-4.2-1
#[test]
fn headers_take_their_share_of_the_equations_rate() {
    for (n, share) in [(20.0, 1.0 / 3.0), (160.0, 0.8)] {
        let mut t = sender();
        t.set_segment(S, n / (n + 40.0));
        t.start(at(0), Some(ms(100)));
        assert_near!(t.x() / 43_800.0, share);
        t.on_feedback(at(100), &report(1e9, 0.01));
        assert_near!(t.x() / 164_005.062, share);
        // The received rate counts data only.
        t.on_feedback(at(400), &report(1_000.0, 0.01));
        assert_near!(t.x(), 2_000.0);
    }
}

// --- whatever happens ----------------------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
enum Event {
    Report { r_ms: u64, x_recv: f64, p: f64, new_loss: bool, data_limited: bool },
    Timer { idle: bool },
}

fn event() -> impl Strategy<Value = Event> {
    let x_recv = prop_oneof![1 => Just(0.0), 1 => Just(1e12), 8 => 0.0..1e6_f64];
    let p = prop_oneof![4 => Just(0.0), 6 => 1e-6..0.3_f64, 1 => Just(1.0), 1 => Just(5e-324)];
    prop_oneof![
        4 => (1..3_000_u64, x_recv, p, any::<bool>(), any::<bool>()).prop_map(
            |(r_ms, x_recv, p, new_loss, data_limited)| Event::Report { r_ms, x_recv, p, new_loss, data_limited }
        ),
        1 => any::<bool>().prop_map(|idle| Event::Timer { idle }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// With a loss, X is within the equation and twice (a data-limited loss: once) the most that was received, at
    /// least s/64; without, it grows to the double of either at most, or to the initial rate.
    #[test]
    fn x_is_never_more_than_the_rfc_allows(
        events in prop::collection::vec((1..2_000_u64, event()), 1..200),
        rfc in prop_oneof![Just(Rfc::Rfc5348), Just(Rfc::Rfc3448)],
        known in any::<bool>(),
        smoothing in any::<bool>(),
    ) {
        let params = SenderParams { smoothing, ..sender_by(rfc, Equation::Tfrc).params };
        let mut t = Sender::new(params, S);
        t.start(at(0), known.then(|| ms(100)));
        let mut now = at(0);
        for (later, event) in events {
            now += ms(later);
            let (before, had_rtt) = (t.x(), t.rtt().is_some());
            match event {
                Event::Report { r_ms, x_recv, p, new_loss, data_limited } => {
                    t.on_feedback(now, &Feedback { r_sample: ms(r_ms), new_loss, data_limited, ..report(x_recv, p) });
                    prop_assert_eq!(t.p(), p);
                    let lost_while_limited = rfc == Rfc::Rfc5348 && data_limited && new_loss;
                    let limit = t.set.max() * if lost_while_limited { 1.0 } else { 2.0 };
                    let most = if !had_rtt && rfc == Rfc::Rfc5348 {
                        t.initial_rate()
                    } else if p > 0.0 {
                        t.x_bps().min(limit)
                    } else {
                        before.max((2.0 * before).min(limit)).max(t.initial_rate())
                    };
                    prop_assert!(t.x() <= most.max(S / 64.0) * (1.0 + 1e-12), "{} > {most}: {event:?}", t.x());
                }
                Event::Timer { idle } => {
                    t.on_timer(now, idle);
                    prop_assert!(t.x() <= before.max(S / 64.0) * (1.0 + 1e-12), "{} > {before}", t.x());
                }
            }
            prop_assert!(t.x() >= S / 64.0 * (1.0 - 1e-12) && t.x() <= params.max && t.x_inst().is_finite());
            prop_assert!(t.x_inst() >= S / 64.0 && t.timer() >= ms(4) && t.set.len <= 3);
        }
    }
}

/// R = 100 ms, p = 0.2, complex: 0.1 sqrt(0.4/3) = 0.036515; min(1, 3 sqrt(0.075)) = 0.821584,
/// times 0.2 (1 + 1.28) = 0.374642, times t_RTO. 4R: 1460 / 0.186372; 300 ms: 1460 / 0.148908.
#[test]
fn the_timeout_in_the_equation_may_be_given() {
    for (t_rto, x) in [(None, 7_833.8), (Some(ms(300)), 9_804.7)] {
        let mut t = sender_by(Rfc::Rfc5348, Equation::Complex);
        t.start(at(0), Some(ms(100)));
        t.on_feedback(at(100), &Feedback { t_rto, ..report(1e6, 0.2) });
        assert!((t.x() / x - 1.0).abs() < 1e-4, "{t_rto:?}: {}", t.x());
        // p unchanged, another t_RTO: computed anew.
        t.on_feedback(at(200), &Feedback { t_rto: Some(ms(300)), ..report(1e6, 0.2) });
        assert!((t.x() / 9_804.7 - 1.0).abs() < 1e-4, "{t_rto:?}: {}", t.x());
    }
}

/// s/R is 14,600, W_init/R 43,800. Slow start: two rounds at W_init/R, doubled once per R, halved from twice what was received; the loss that
/// ends it leaves what the equation has. Then twice what was received, a packet per R at least; the timer is 2R or two packets' time.
#[test]
fn as_ns2_reports_and_the_timer_set_x() {
    let mut params = params(Rfc::Rfc3448, Equation::Complex);
    (params.ns2_reports, params.rfc3390_window) = (true, true);
    let mut t = Sender::new(params, S);
    t.start(at(0), None);
    for (ms, x_recv, x) in [
        (0, 0.0, 43_800.0),
        (50, 1e9, 43_800.0),
        (160, 1e9, 87_600.0),
        (200, 1e9, 87_600.0), // not an R later
        (300, 20_000.0, 20_000.0),
        (410, 15_000.0, 30_000.0),
    ] {
        t.on_feedback(at(ms), &report(x_recv, 0.0));
        assert_near!(t.x(), x);
    }
    t.on_feedback(at(500), &report(1_000.0, 0.01));
    assert_near!(t.x(), t.x_bps());
    assert!(t.x() > 100_000.0, "{}", t.x());
    t.on_feedback(at(600), &report(1_000.0, 0.01));
    assert_near!(t.x(), 14_600.0);
    assert_eq!(t.timer(), ms(200));
    t.on_timer(at(800), false);
    assert_near!(t.x(), 7_300.0);
    assert_eq!(t.timer(), ms(400));
}

/// X is doubled to 87,600: six packets per R, so that each leaves 7,300 faster. Down, or by the equation, at once.
#[test]
fn as_ns2_x_is_come_up_to_in_the_packets_of_one_rtt() {
    let mut params = params(Rfc::Rfc3448, Equation::Complex);
    (params.ns2_reports, params.rfc3390_window) = (true, true);
    let mut t = Sender::new(params, S);
    t.start(at(0), None);
    assert_eq!(t.climb(), None);
    for (ms, x_recv) in [(0, 0.0), (50, 1e9)] {
        t.on_feedback(at(ms), &report(x_recv, 0.0));
        assert_eq!(t.climb(), None, "{ms}");
    }
    t.on_feedback(at(160), &report(1e9, 0.0));
    for x in [51_100.0, 58_400.0, 65_700.0, 73_000.0, 80_300.0, 87_600.0] {
        assert_near!(t.climb().expect("below X"), x);
    }
    assert_eq!(t.climb(), None);
    t.on_feedback(at(300), &report(20_000.0, 0.0));
    assert_eq!(t.climb(), None);
    t.on_feedback(at(410), &report(1e9, 0.0));
    assert_near!(t.climb().expect("below X"), 20_000.0 + 20_000.0 / (40_000.0 / 14_600.0));
    t.on_feedback(at(500), &report(1e9, 0.01));
    assert_eq!(t.climb(), None);
}
