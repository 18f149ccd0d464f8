//! The fluid model against numbers worked by hand, against a naive model in small steps, and against what
//! must hold of any cumulative curves.

use fairpace_analysis::fluid::{
    Curve, Delay, Flow, FluidError, Link, Run, Strategy, max_delay, median_delay, phases, run, second_hump,
    smallest_t_q, summary,
};
use fairpace_path::{DamaSpec, ReleaseOf};
use fairpace_units::{Bytes, Duration, QsRate, Rate};
use proptest::prelude::{Just, ProptestConfig, prop_assert, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

fn link(spec: &DamaSpec) -> Link {
    Link::try_from(spec).unwrap()
}

/// Eq. (2) to the letter.
fn large() -> Link {
    link(&DamaSpec { release_of: ReleaseOf::InForce, ..DamaSpec::large() })
}

fn small() -> Link {
    link(&DamaSpec { release_of: ReleaseOf::InForce, ..DamaSpec::small() })
}

/// 256 kbit/s in packets of 1,316 bytes; Quick-Start: 320 kbit/s [qsd §3.3].
fn iptv() -> Flow {
    Flow { rate: Rate::kbps(256.0), packet: Bytes::new(1_316), quick_start: QsRate::from_code(3).unwrap() }
}

fn ms(t: f64) -> Duration {
    Duration::from_secs_f64(t / 1e3)
}

fn near(found: f64, expected: f64, by: f64) {
    assert!((found - expected).abs() <= by, "{found}, expected {expected}");
}

#[test]
fn equations_3_and_6_give_the_numbers_of_the_paper() {
    let t_p = |spec: DamaSpec, t_p| link(&DamaSpec { propagation: Duration::from_millis(t_p), ..spec });
    // Slots of 12,032 bit at 6.336 Mbit/s: T_f = 144 · 1.899 = 273.45 ms, T_r = 820.36, T_a = 1,640.73.
    // RTT_m = 273.45 + 504 = 777.45; T_q,max = 410.18 + 1,640.73 - 777.45.
    near(large().t_q_max_s(), 1.273_454_5, 1e-7);
    // T_f = 45.576, T_r = 136.727, T_a = 820.364; RTT_m = 549.576; T_q,max = 68.364 + 820.364 - 549.576.
    near(small().t_q_max_s(), 0.339_151_5, 1e-7);
    // T_p = 250: RTT_m = 773.45, T_q,opt = (2 · 2,461.09 - 3 · 773.45) / 5
    near(t_p(DamaSpec::large(), 250).t_q_opt_s(), 0.520_363_6, 1e-7);
    // RTT_m = 545.576, T_q,opt = (2 · 957.091 - 3 · 545.576) / 5
    near(t_p(DamaSpec::small(), 250).t_q_opt_s(), 0.055_490_9, 1e-7);
    // 252 takes 4 ms · 3/5 off: the small frame's 55 ms become 53.
    near(small().t_q_opt_s(), 0.053_090_9, 1e-7);
    // The link model's own come out the same.
    for spec in [DamaSpec::large(), DamaSpec::small()] {
        near(link(&spec).t_q_max_s(), spec.t_q_max().as_secs_f64(), 2e-9);
        near(link(&spec).t_q_opt_s(), spec.t_q_opt().as_secs_f64(), 2e-9);
    }
    // The capacity is there before the response: nothing to hold.
    let fast = DamaSpec { propagation: ms(20.0), allocation_delay: 2, ..DamaSpec::small() };
    near(link(&fast).t_q_max_s(), 0.068_364 + 0.273_455 - 0.085_576, 1e-5);
    let far = DamaSpec { allocation_delay: 4, ..DamaSpec::small() };
    near(link(&far).t_q_opt_s(), (2.0 * (0.136_727 + 0.546_909) - 3.0 * 0.549_576) / 5.0, 1e-5);
    assert!(link(&far).t_q_opt_s() < 0.0);
}

/// A link that always has 440 kbit/s for the flow: RTT_m = 777.45 ms alone counts.
fn wide() -> Link {
    link(&DamaSpec { minimum: 10, ..DamaSpec::large() })
}

#[test]
fn slow_start_on_a_wide_link_by_hand() {
    let run = run(&wide(), &iptv(), Strategy::None, Duration::ZERO);
    let (rtt, packet) = (0.777_454_545, 10_528.0);
    // One packet in the first RTT, then min(2X, 2 X_recv), X_recv being X of two RTT before:
    // X = 1, 1, 2, 2, 4, 4, 8, 8 packets per RTT.
    let mut packets = 0.0;
    for (n, x) in [1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0].into_iter().enumerate() {
        near(run.sent.bits_at(n as f64 * rtt), packets * packet, 1e-3);
        packets += x;
    }
    // The next is 16 packets per RTT = 216.7 kbit/s, the one after that as well, then 433: above 256.
    packets += 32.0;
    near(run.sent.bits_at(10.0 * rtt), packets * packet, 1e-3);
    // The longest wait: the last bit before the rate exceeds 256 kbit/s. That bit leaves at 10 RTT.
    let longest = 10.0 * rtt - packets * packet / 256e3 + rtt / 2.0;
    near(max_delay(&run.delays()), longest, 1e-6);
    assert_eq!(second_hump(&run.delays()), None);
}

#[test]
fn quick_start_on_a_wide_link_by_hand() {
    let run = run(&wide(), &iptv(), Strategy::Qs, ms(300.0));
    let rtt = 0.777_454_545;
    // Bit 10,528 is made at 41.1 ms and leaves at RTT + 0; all is over the radio link RTT/2 later.
    near(max_delay(&run.delays()), rtt - 0.041_125 + rtt / 2.0, 1e-6);
    // Backlog at RTT: 256 · 0.7775 - 10.5 = 188.50 kbit, at 3 RTT 128 · 0.7775 less (320 against 256).
    let backlog = |t: f64| run.generator.bits_at(t) - run.sent.bits_at(t);
    near(backlog(rtt), 188_500.4, 0.1);
    near(backlog(3.0 * rtt), 188_500.4 - 64e3 * 2.0 * rtt, 0.1);
    // The second report says 320 kbit/s: X = 640, but the uplink has 440 only, and the backlog goes at 384.
    near(backlog(3.0 * rtt + 0.1), 188_500.4 - 64e3 * 2.0 * rtt - 38_400.0, 0.1);
    near(backlog(5.0 * rtt), 0.0, 1e-6);
}

/// Large frame, started at a super-frame's boundary: the worst phase.
#[test]
fn quick_start_with_dama_by_hand() {
    let (t_b, rtt) = (0.820_363_636, 0.777_454_545);
    let run = run(&large(), &iptv(), Strategy::Qsd(Duration::ZERO), Duration::ZERO);
    // The request leaves at T_b, its slots are there at 3 T_b = 2.4611 s. Until then 44 kbit/s: the packet of
    // the first RTT passes at once, then 44 · (2.4611 - 0.7775) = 74.08 kbit.
    near(run.uplink.bits_at(3.0 * t_b), 10_528.0 + 44e3 * (3.0 * t_b - rtt), 1e-3);
    // Asked for: (10.53 + 320 · 0.0429) / 0.8204 + 320 = 349.6 kbit/s, 8 units = 352.
    near(run.uplink.bits_at(3.0 * t_b + 0.1) - run.uplink.bits_at(3.0 * t_b), 35_200.0, 1e-3);
    // Eq. (4) at 3 RTT: the second report is of (RTT, 2 RTT): 44 kbit/s. X = 88.
    near(run.sent.bits_at(4.0 * rtt) - run.sent.bits_at(3.0 * rtt), 88e3 * rtt, 1e-3);
    // Throttled just as the capacity is there: the second hump.
    assert!(second_hump(&run.delays()).is_some());
    // Without the terminal's knowledge the first request is of the traffic alone: 29.6 kbit/s, the next of
    // 320: at 4 T_b.
    let qs = super_frame_rates(&large(), Strategy::Qs);
    assert_eq!(qs[..4], [44.0, 44.0, 44.0, 352.0]);
}

/// The service of the uplink in each super-frame from the second on (phase 0), kbit/s, while it is busy.
fn super_frame_rates(link: &Link, strategy: Strategy) -> Vec<f64> {
    let (run, t_b) = (run(link, &iptv(), strategy, Duration::ZERO), link.t_b.as_secs_f64());
    let served = |k: f64| run.uplink.bits_at((k + 1.0) * t_b) - run.uplink.bits_at((k + 0.9) * t_b);
    (1..8).map(|k| (served(f64::from(k)) / (0.1 * t_b) / 1e3).round()).collect()
}

#[test]
fn without_release_before_it_is_in_force_a_hold_from_a_third_of_a_second_on_avoids_the_second_hump() {
    // Large frame, all 456 phases: 326 ms. Eq. (6), "a safe value", has 518.
    let most = ms(1_273.0);
    let smallest = smallest_t_q(&large(), &iptv(), most).unwrap();
    assert_eq!(smallest, ms(326.0));
    for t_q in (326..=1_273).step_by(50) {
        assert_eq!(summary(&large(), &iptv(), Strategy::Qsd(Duration::from_millis(t_q))).hump, None, "{t_q} ms");
    }
    let shorter = summary(&large(), &iptv(), Strategy::Qsd(ms(325.0))).hump.unwrap();
    assert!(shorter.rise > 1e-3 && shorter.at > 2.0, "{shorter:?}");
    // In the small frame the first slots are there in time anyway.
    assert_eq!(smallest_t_q(&small(), &iptv(), ms(339.0)), Some(Duration::ZERO));
}

#[test]
fn what_is_released_before_it_is_used_leaves_a_second_hump_at_every_hold() {
    for link in [large(), small()] {
        let link = Link { release: ReleaseOf::Decided, ..link };
        assert_eq!(smallest_t_q(&link, &iptv(), Duration::from_secs_f64(link.t_q_max_s())), None);
    }
}

#[test]
fn phases_are_1_8_ms_apart() {
    assert_eq!((phases(&large()).count(), phases(&small()).count()), (456, 76));
    assert_eq!(phases(&large()).last(), Some(ms(819.0)));
}

#[test]
fn medians_and_humps_by_hand() {
    let delay = |at, transmit| Delay { at, transmit, uplink: 0.0, radio: 0.5 };
    // Up to 2.5 s and down again, in 2 s; then 0.5 s. Over 4 s: 2 s are at 0.5, the median.
    let once = [delay(0.0, 0.0), delay(1.0, 2.0), delay(2.0, 0.0), delay(9.0, 0.0)];
    near(median_delay(&once, Duration::from_secs(4)), 0.5, 1e-9);
    // Over 2 s: half the time is above 1.5 s. Over 3 s: 0.5 s of each of the slopes are below 0.5 + 0.5.
    near(median_delay(&once, Duration::from_secs(2)), 1.5, 1e-9);
    near(median_delay(&once, Duration::from_secs(3)), 1.0, 1e-9);
    // The same if the curve ends where it is at rest.
    near(median_delay(&once[..3], Duration::from_secs(3)), 1.0, 1e-9);
    assert_eq!((max_delay(&once), second_hump(&once)), (2.5, None));
    let twice = [delay(0.0, 0.0), delay(1.0, 2.0), delay(2.0, 1.0), delay(3.0, 1.25), delay(4.0, 0.0)];
    let hump = second_hump(&twice).unwrap();
    assert_eq!((hump.at, hump.delay, hump.rise), (3.0, 1.75, 0.25));
    // Half a millisecond is no hump.
    let ripple = [delay(0.0, 0.0), delay(1.0, 2.0), delay(2.0, 1.0), delay(3.0, 1.0005), delay(4.0, 0.0)];
    assert_eq!(second_hump(&ripple), None);
}

#[test]
fn what_the_model_does_not_have_is_refused_by_name() {
    let refusal = |spec| Link::try_from(&spec).unwrap_err().to_string();
    let fca = DamaSpec { fca: true, ..DamaSpec::large() };
    assert_eq!(refusal(fca), "`fca` is true; the fluid model has no FCA");
    let no_rbdc = DamaSpec { rbdc: false, ..DamaSpec::large() };
    assert_eq!(refusal(no_rbdc), "`rbdc` is false; the fluid model has RBDC always");
    let none = DamaSpec { terminals: 0, ..DamaSpec::large() };
    assert!(matches!(Link::try_from(&none), Err(FluidError::Link(_))));
    let check = |link: &Link, flow: Flow| link.check(&flow).unwrap_err().to_string();
    assert_eq!(large().check(&iptv()), Ok(()));
    assert_eq!(
        check(&large(), Flow { rate: Rate::mbps(6.2), ..iptv() }),
        "`rate` is 6.2 Mbit/s; it must be above 0, and at most 6.16 Mbit/s: what the others leave of the carrier"
    );
    assert_eq!(
        check(&large(), Flow { packet: Bytes::ZERO, ..iptv() }),
        "`packet size` is 0 B; it must be at least 1 B"
    );
    assert_eq!(check(&Link { t_b: ms(0.5), ..large() }, iptv()), "`super-frame` is 500 us; it must be at least 1 ms");
}

/// The same in steps of `STEP` seconds, as plainly as it can be said: S and U after each step.
fn in_steps(link: &Link, flow: &Flow, strategy: Strategy, phase: Duration, until: f64) -> Vec<(f64, f64)> {
    let (r, packet) = (flow.rate.as_bps(), flow.packet.as_f64() * 8.0);
    let rtt = link.rtt_m().as_secs_f64() + strategy.t_q().as_secs_f64();
    let (t_b, t_a) = (link.t_b.as_secs_f64(), link.t_a as usize);
    let steps_of = |t: f64| (t / STEP).round() as usize;
    let quick_start = flow.quick_start.rate().as_bps();

    let mut curves = vec![(0.0, 0.0)];
    let (mut x, mut n, mut next) = (packet / rtt.min(1.0), 1, steps_of(rtt));
    let (mut requests, mut n_b, mut in_force) = (Vec::new(), 0.0_f64, link.minimum.as_bps());
    // A boundary within half a step of the start belongs to the first step: there is none before it.
    let (mut boundary, mut k, mut before) = (steps_of(t_b - phase.as_secs_f64()).max(1), 1.0, 0.0);
    for step in 1..=steps_of(until) {
        let (s, u) = curves[step - 1];
        let g = r * STEP * step as f64;
        let s = (s + x * STEP).min(g);
        let u = (u + in_force * STEP).min(s);
        curves.push((s, u));
        if step == boundary {
            let traffic = (s - before) / t_b;
            before = s;
            let asked = if requests.is_empty() && matches!(strategy, Strategy::Qsd(_)) { quick_start } else { 0.0 };
            requests.push((traffic + asked, traffic));
            if requests.len() > t_a {
                let (request, its_traffic) = requests[requests.len() - 1 - t_a];
                let n_l = if link.release == ReleaseOf::InForce { traffic } else { its_traffic };
                n_b = if request >= n_b { request } else { request.max(n_b - 0.5 * (n_b - n_l).max(0.0)) };
                in_force = n_b.clamp(link.minimum.as_bps(), link.available.as_bps());
            }
            k += 1.0;
            boundary = steps_of(t_b * k - phase.as_secs_f64());
        }
        if step == next {
            if n == 1 {
                x = if strategy == Strategy::None { packet / rtt } else { quick_start.max(packet / rtt) };
                n = if strategy == Strategy::None { 2 } else { 3 };
            } else {
                let end = step - steps_of(link.rtt_m().as_secs_f64());
                let report = (curves[end].1 - curves[end.saturating_sub(steps_of(rtt))].1) / rtt;
                x = (2.0 * x).min(2.0 * report).max(packet / rtt);
                n += 1;
            }
            next = steps_of(rtt * f64::from(n));
        }
    }
    curves
}

const STEP: f64 = 20e-6;

/// Any link that can be scheduled, near those of the paper, any flow that it can carry, any start.
fn any_start() -> impl proptest::strategy::Strategy<Value = (Link, Flow, Strategy, Duration)> {
    let spec = (
        1_u32..30,
        1_u32..4,
        0_u32..4,
        20_u64..400,
        1_u32..4,
        prop_oneof![Just(ReleaseOf::Decided), Just(ReleaseOf::InForce)],
    )
        .prop_map(|(frames, multi, extra, t_p, minimum, release)| {
            let mut spec = DamaSpec {
                slots_per_multi_frame: 6 * frames,
                slots_per_super_frame: 6 * frames * multi,
                propagation: Duration::from_millis(t_p),
                minimum,
                allocation_delay: 100_000,
                ..DamaSpec::large()
            };
            let one_way = (spec.propagation.as_secs_f64() / spec.super_frame().as_secs_f64()).ceil() as u32;
            spec.allocation_delay = (2 * one_way).max(1) + extra;
            Link { release, ..link(&spec) }
        });
    let flow = (16.0..1_500.0, 100_u64..1_500, 1_u8..6).prop_map(|(kbps, packet, code)| Flow {
        rate: Rate::kbps(kbps),
        packet: Bytes::new(packet),
        quick_start: QsRate::from_code(code).unwrap(),
    });
    let strategy = prop_oneof![
        Just(Strategy::None),
        Just(Strategy::Qs),
        (0_u64..1_500).prop_map(|t_q| Strategy::Qsd(Duration::from_millis(t_q))),
    ];
    (spec, flow, strategy, 0.0..1.0)
        .prop_map(|(link, flow, strategy, phase)| (link, flow, strategy, link.t_b.mul_f64(phase)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn bits_are_neither_made_nor_lost_and_pass_each_point_in_order((link, flow, strategy, phase) in any_start()) {
        let Run { generator, sent, uplink, receiver } = run(&link, &flow, strategy, phase);
        for curve in [&generator, &sent, &uplink, &receiver] {
            for pair in curve.corners().windows(2) {
                prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1, "{pair:?}");
            }
        }
        let radio = link.rtt_m().as_secs_f64() / 2.0;
        for curve in [&sent, &uplink] {
            for &(t, _) in curve.corners() {
                let (g, s, u, v) = (generator.bits_at(t), sent.bits_at(t), uplink.bits_at(t), receiver.bits_at(t + radio));
                let rounding = 1e-6 + 1e-9 * g;
                prop_assert!(g >= s - rounding && s >= u - rounding && (u - v).abs() <= rounding, "{t}: {g} {s} {u} {v}");
            }
        }
        // No faster than the carrier.
        for pair in uplink.corners().windows(2) {
            prop_assert!(pair[1].1 - pair[0].1 <= link.available.as_bps() * (pair[1].0 - pair[0].0) + 1e-3);
        }
        // All is out at the end, and its delay is the radio link's; but for a queue that a grant of hardly more
        // than the flow's rate does not drain in ten minutes.
        if generator.corners()[1].0 >= 600.0 {
            return Ok(());
        }
        prop_assert!((generator.end_bits() - uplink.end_bits()).abs() <= 1e-6 + 1e-9 * generator.end_bits());
        let delays = run(&link, &flow, strategy, phase).delays();
        let last = delays[delays.len() - 1];
        prop_assert!((last.end_to_end() - radio).abs() < 1e-6, "{last:?}");
        prop_assert!(delays.windows(2).all(|d| d[0].at <= d[1].at));
    }

    #[test]
    fn a_naive_model_in_small_steps_draws_the_same_curves((link, flow, strategy, phase) in any_start()) {
        // A request that is a bit more than whole units in one of them would be a unit more.
        let (link, until) = (Link { unit: Rate::ZERO, ..link }, 6.0);
        let run = run(&link, &flow, strategy, phase);
        let steps = in_steps(&link, &flow, strategy, phase, until);
        // Both queues at any time, within what comes in 30 ms.
        let close = flow.rate.as_bps() * 0.03 + 2_000.0;
        for (i, &(s, u)) in steps.iter().enumerate().step_by(997) {
            let t = STEP * i as f64;
            let behind = |curve: &Curve| if t <= curve.corners()[curve.corners().len() - 1].0 { Some(curve.bits_at(t)) } else { None };
            if let (Some(s_exact), Some(u_exact)) = (behind(&run.sent), behind(&run.uplink)) {
                prop_assert!((s - s_exact).abs() < close && (u - u_exact).abs() < close, "{t}: {s} {s_exact}, {u} {u_exact}");
            }
        }
    }
}
