//! The router's decisions by hand, and the rules that hold for any.

use super::*;
use proptest::prelude::*;

fn ms(t: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(t)
}

fn code(code: u8) -> QsRate {
    QsRate::from_code(code).expect("a code")
}

fn request(rate: u8) -> QsOption {
    QsOption {
        function: QsFunction::Request,
        rate: code(rate),
        qs_ttl: 91,
        ip_ttl: 63,
        nonce: QsNonce::new(0x1234_5678),
    }
}

fn random() -> RandomStream {
    RandomStream::named(1, "router.quick_start")
}

/// Neither limits nor shares.
fn plain() -> RouterParams {
    RouterParams { per_source: 1_000, in_all: 1_000, source_share: 1.0, ..RouterParams::default() }
}

fn router(params: RouterParams) -> QsRouter {
    QsRouter::new(&params, random()).expect("a router")
}

/// The satellite's channel [qsd Table I] with that load.
fn channel(used_kbps: f64) -> Free {
    Free { capacity: Rate::mbps(6.336), used: Rate::kbps(used_kbps) }
}

fn ask(router: &mut QsRouter, at: Instant, source: u64, rate: u8, free: Free) -> QsVerdict {
    router.on_request(at, source, &mut request(rate), || free)
}

//= 4782-3.3-1
//= 4782-3.3-8
#[test]
fn approvals_fill_the_pool_up_to_the_threshold_and_no_further() {
    // 0.8 x 6,336 - 2,000 = 3,068.8 kbit/s. 1,280 leaves 1,788.8, once more 508.8: of the third 1,280
    // there fit 320, then 160 of 188.8; the 28.8 that are left are less than the least rate, 80.
    let mut router = router(plain());
    let verdicts = [5, 5, 5, 2, 1].map(|rate| ask(&mut router, ms(1), 0, rate, channel(2_000.0)));
    use QsVerdict::{Approved, Reduced, Refused};
    let nothing = Refused(Refusal::NothingFree);
    assert_eq!(verdicts, [Approved(code(5)), Approved(code(5)), Reduced(code(3)), Approved(code(2)), nothing]);
    assert_eq!(router.recent_approvals(ms(1)), Rate::kbps(3_040.0));
    let counted = QsCounters { approved: 3, reduced: 1, refused: [0, 0, 0, 0, 0, 1], reports: 0, below_free: 0 };
    assert_eq!(*router.counters(), counted);
}

//= 4782-3.3-1
#[test]
fn a_link_loaded_to_the_threshold_approves_nothing() {
    // 5,068.8 - 4,988.8 = 80 kbit/s: the least rate there is.
    let verdict = |used| ask(&mut router(plain()), ms(1), 0, 1, channel(used));
    assert_eq!(verdict(4_988.8), QsVerdict::Approved(code(1)));
    assert_eq!(verdict(4_988.9), QsVerdict::Refused(Refusal::NothingFree));
    assert_eq!(verdict(6_336.0), QsVerdict::Refused(Refusal::NothingFree));
}

//= 4782-3.3-8
#[test]
fn an_approval_is_forgotten_after_m_intervals_and_not_before() {
    let mut router = router(plain());
    // 640 kbit/s fit into 5,068.8 - 4,400 = 668.8 once.
    assert_eq!(ask(&mut router, ms(100), 0, 4, channel(4_400.0)), QsVerdict::Approved(code(4)));
    let nothing = QsVerdict::Refused(Refusal::NothingFree);
    assert_eq!(ask(&mut router, ms(399), 0, 4, channel(4_400.0)), nothing);
    assert_eq!(ask(&mut router, ms(400), 0, 4, channel(4_400.0)), QsVerdict::Approved(code(4)), "2 x 150 ms later");
    let longer = RouterParams { intervals: 3, ..plain() };
    let mut router = QsRouter::new(&longer, random()).expect("a router");
    ask(&mut router, ms(100), 0, 4, channel(4_400.0));
    assert_eq!(ask(&mut router, ms(400), 0, 4, channel(4_400.0)), nothing);
}

//= 4782-3.3-4
//= 4782-3.1-4
#[test]
fn approving_lowers_both_ttls_and_leaves_rate_and_nonce() {
    let mut option = request(3);
    router(plain()).on_request(ms(1), 0, &mut option, || channel(0.0));
    assert_eq!(option, QsOption { qs_ttl: 90, ip_ttl: 62, ..request(3) });
    let mut wraps = QsOption { qs_ttl: 0, ..request(3) };
    let before = wraps.ttl_diff();
    router(plain()).on_request(ms(1), 0, &mut wraps, || channel(0.0));
    assert_eq!((wraps.qs_ttl, wraps.ttl_diff()), (255, before), "modulo 256");
}

//= 4782-3.3-5
//= 4782-3.3-6
//= 4782-3.4-2
#[test]
fn lowering_by_two_steps_makes_four_bits_of_the_nonce_anew() {
    // Codes 5 to 3: the pairs of 5 and 4 are the bits 6 to 9. Each must take each of its values, and no
    // other bit may change.
    let (mut differs, mut seen) = (0, [0_u32; 16]);
    let mut router = router(plain());
    let tight = Free { capacity: Rate::kbps(500.0), used: Rate::ZERO };
    for i in 0..1_600_u64 {
        let mut option = request(5);
        let verdict = router.on_request(ms(i * 300), 0, &mut option, || tight);
        assert_eq!((verdict, option.rate), (QsVerdict::Reduced(code(3)), code(3)));
        assert_eq!((option.qs_ttl, option.ip_ttl), (90, 62));
        differs |= option.nonce.get() ^ request(5).nonce.get();
        seen[(option.nonce.get() >> 6 & 0xf) as usize] += 1;
    }
    assert_eq!(differs, 0b11_1100_0000);
    // 100 of each: four standard deviations are 4 sqrt(1600 x 1/16 x 15/16) = 39.
    assert!(seen.iter().all(|n| (61..=139).contains(n)), "{seen:?}");
}

//= 4782-3.3-2
#[test]
fn refusing_zeroes_rate_qs_ttl_and_nonce_and_the_next_router_keeps_it_so() {
    let mut option = request(3);
    let mut router = router(plain());
    router.on_request(ms(1), 0, &mut option, || channel(6_000.0));
    let zeroed = QsOption { rate: QsRate::ZERO, qs_ttl: 0, nonce: QsNonce::new(0), ip_ttl: 62, ..request(3) };
    assert_eq!(option, zeroed);
    let verdict = router.on_request(ms(2), 0, &mut option, || unreachable!("nobody needs to know what is free"));
    assert_eq!(verdict, QsVerdict::Refused(Refusal::NoRate));
    assert_eq!(option, QsOption { ip_ttl: 61, ..zeroed });
}

//= 4782-3.3-10
#[test]
fn nothing_is_approved_where_the_packets_of_a_flow_part() {
    let mut router = router(RouterParams { per_packet_multipath: true, ..plain() });
    assert_eq!(ask(&mut router, ms(1), 0, 1, channel(0.0)), QsVerdict::Refused(Refusal::Multipath));
}

//= 4782-3.3.1-1
#[test]
fn a_report_of_the_approved_rate_passes_untouched() {
    let report = QsOption { function: QsFunction::Report, ..request(15) };
    let mut option = report;
    let mut router = router(plain());
    let verdict = router.on_request(ms(1), 0, &mut option, || unreachable!("a report asks for nothing"));
    assert_eq!(verdict, QsVerdict::Report);
    assert_eq!(option, QsOption { ip_ttl: 62, ..report });
    assert_eq!((router.counters().reports, router.recent_approvals(ms(1))), (1, Rate::ZERO));
}

//= 4782-3.3-3
#[test]
fn a_hop_that_does_not_know_quick_start_shows_in_the_ttl_diff() {
    let mut option = request(3);
    pass_unaware(&mut option);
    assert_eq!(option, QsOption { ip_ttl: 62, ..request(3) });
    assert_ne!(option.ttl_diff(), request(3).ttl_diff());
    let mut expired = QsOption { ip_ttl: 0, ..request(3) };
    pass_unaware(&mut expired);
    router(plain()).on_request(ms(1), 0, &mut expired, || channel(0.0));
    assert_eq!(expired, QsOption { ip_ttl: 0, ..request(3) }, "a TTL of zero does not become 255");
}

//= 4782-9.6-1
#[test]
fn each_source_and_all_together_are_considered_so_often_per_second() {
    let params = RouterParams { per_source: 2, in_all: 5, source_share: 1.0, ..RouterParams::default() };
    let mut router = router(params);
    // Without load; 80 kbit/s each do not fill the pool.
    let mut ask = |at, source| ask(&mut router, at, source, 1, channel(0.0));
    let approved = QsVerdict::Approved(code(1));
    let [source, total] = [Refusal::SourceLimit, Refusal::TotalLimit].map(QsVerdict::Refused);
    // Two of source 1 at once, the next token half a second later.
    assert_eq!([0, 0, 0, 499].map(|at| ask(ms(at), 1)), [approved, approved, source, source]);
    assert_eq!([500, 500].map(|at| ask(ms(at), 1)), [approved, source]);
    // In all five at once: 1 asked three times, and 500 ms brought back two and a half tokens.
    assert_eq!([2, 3, 4, 5, 6].map(|other| ask(ms(500), other)), [approved, approved, approved, approved, total]);
    // However long nobody asks, no bucket holds more than a second's tokens.
    assert_eq!([1, 1, 1].map(|other| ask(ms(60_000), other)), [approved, approved, source]);
    assert_eq!([2, 3, 4, 5].map(|other| ask(ms(60_000), other)), [approved, approved, approved, total]);
}

#[test]
fn who_shares_a_bucket_with_whom_is_different_at_each_router() {
    let [a, b] = [1, 2].map(|seed| QsRouter::new(&plain(), RandomStream::named(seed, "router")).expect("a router"));
    let beside =
        |router: &QsRouter| -> Vec<u64> { (1..100_000).filter(|s| router.sorted(*s) == router.sorted(0)).collect() };
    let (first, second) = (beside(&a), beside(&b));
    // 100,000 / 256 = 390.6 each, deviation 19.7; in both 1.5.
    assert!(
        (300..=480).contains(&first.len()) && (300..=480).contains(&second.len()),
        "{}, {}",
        first.len(),
        second.len()
    );
    let both = first.iter().filter(|s| second.contains(s)).count();
    assert!(both < 12, "{both}");
}

#[test]
fn no_source_holds_more_than_a_quarter_of_what_the_others_leave() {
    // 5,068.8 kbit/s are free. Source 1 may hold 1,267.2: 640 of the 1,280 that it asks for, then 320, 160 and
    // 80 more, which makes 1,200. 3,868.8 are left: a quarter is 967.2 for source 2.
    let mut router = router(RouterParams::default());
    let mut ask = |source, rate| ask(&mut router, ms(1), source, rate, channel(0.0));
    let held: Vec<_> = [5, 5, 5, 5].iter().map(|rate| ask(1, *rate)).collect();
    assert_eq!(held, [4, 3, 2, 1].map(|rate| QsVerdict::Reduced(code(rate))));
    assert_eq!(ask(1, 5), QsVerdict::Refused(Refusal::SourceShare));
    let share = QsVerdict::Refused(Refusal::SourceShare);
    let second = [QsVerdict::Approved(code(3)), QsVerdict::Approved(code(4)), share];
    assert_eq!([ask(2, 3), ask(2, 4), ask(2, 4)], second, "320, then 640 of 647.2");
}

/// One flow of 1,024 kbit/s asks for 1,280 of 5,068.8 that are free: less than its media with a share, all of it without.
#[test]
fn without_our_own_rules_a_lone_source_gets_what_it_asks_for_and_their_decisions_are_counted() {
    let mut ours = router(RouterParams::default());
    assert_eq!(ask(&mut ours, ms(1), 1, 5, channel(0.0)), QsVerdict::Reduced(code(4)));
    assert_eq!((ours.counters().below_free, ours.counters().by_own_rules()), (1, 1));
    let mut published = router(RouterParams::default().without_own_rules());
    assert_eq!(ask(&mut published, ms(1), 1, 5, channel(0.0)), QsVerdict::Approved(code(5)));
    // Lowered by what is free, which is the RFC's rule.
    let lowered = ask(&mut published, ms(1_000), 2, 6, channel(4_000.0));
    assert!(lowered.approved().is_some_and(|rate| rate < code(6)), "{lowered:?}");
    // Twelve requests in an instant: more than a source may make with our limit of ten.
    for _ in 0..12 {
        ask(&mut ours, ms(2_000), 3, 1, channel(0.0));
        ask(&mut published, ms(2_000), 3, 1, channel(0.0));
    }
    assert!(ours.counters().by_own_rules() >= 3, "{:?}", ours.counters());
    assert_eq!(published.counters().by_own_rules(), 0);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let error = |params: RouterParams| QsRouter::new(&params, random()).expect_err("refused").to_string();
    let default = RouterParams::default();
    let zero = "`quick_start.threshold` is 0; it must be above 0 and at most 1";
    assert_eq!(error(RouterParams { threshold: 0.0, ..default }), zero);
    assert!(error(RouterParams { threshold: f64::NAN, ..default }).contains("`quick_start.threshold` is NaN"));
    assert!(error(RouterParams { source_share: 1.01, ..default }).contains("`quick_start.source_share` is 1.01"));
    assert!(
        error(RouterParams { intervals: 0, ..default }).contains("`quick_start.intervals` is 0; it must be at least 1")
    );
    assert!(error(RouterParams { per_source: 0, ..default }).contains("`quick_start.per_source`"));
    assert!(error(RouterParams { in_all: 0, ..default }).contains("`quick_start.in_all`"));
    assert!(error(RouterParams { state_delay: Duration::ZERO, ..default }).contains("`quick_start.state_delay` is 0"));
    assert!(error(RouterParams { state_delay: Duration::MAX, ..default }).contains("`quick_start.in_all` is 100"));
    let load = LoadWindow { observations: 0, ..default.load };
    assert!(error(RouterParams { load, ..default }).contains("`quick_start.load.observations` is 0"));
}

/// One arrival at a router: how long after the one before, what, from whom, at which load.
fn arrival() -> impl Strategy<Value = (u64, QsOption, u64, f64)> {
    let option = (0..=15_u8, any::<u8>(), any::<u8>(), any::<u32>(), any::<bool>()).prop_map(
        |(rate, qs_ttl, ip_ttl, nonce, report)| {
            let function = if report { QsFunction::Report } else { QsFunction::Request };
            QsOption { function, rate: code(rate), qs_ttl, ip_ttl, nonce: QsNonce::new(nonce) }
        },
    );
    (0..200_u64, option, 0..4_u64, 0.0..20e6_f64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// The target algorithm as the RFC prints it, over the list of all approvals ever.
    //= 4782-3.3-1
    //= 4782-D-1
    #[test]
    fn decisions_equal_the_rfcs_pseudo_code(arrivals in prop::collection::vec(arrival(), 1..60)) {
        let params = plain();
        let (mut router, mut now, mut all) = (router(params), Instant::ZERO, Vec::new());
        for (gap, mut option, source, used) in arrivals {
            now += Duration::from_millis(gap);
            let asked = option;
            let bandwidth = 10e6;
            let verdict = router.on_request(now, source, &mut option, || Free { capacity: Rate::bps(bandwidth), used: Rate::bps(used) });
            if asked.function == QsFunction::Report {
                continue;
            }
            let recent_qs_approvals: f64 =
                all.iter().filter(|(at, _)| now < *at + Duration::from_millis(300)).map(|(_, rate)| rate).sum();
            let util_bw = used + recent_qs_approvals;
            let mut approved = 0.0_f64;
            if util_bw < params.threshold * bandwidth {
                approved = (params.threshold * bandwidth - util_bw).min(asked.rate.rate().as_bps());
                // round_down, to what can be said: 0 or 40,000 x 2^n.
                approved = (1..=15).map(|n| 40_000.0 * f64::from(1 << n)).filter(|r| *r <= approved).fold(0.0, f64::max);
            }
            all.push((now, approved));
            prop_assert_eq!(verdict.approved().map_or(0.0, |rate| rate.rate().as_bps()), approved);
        }
    }

    /// [safety] T16, and what each verdict may do to an option.
    //= 4782-3.3-5
    //= 4782-3.4-2
    #[test]
    fn no_chain_of_routers_raises_a_rate_or_touches_what_it_must_not(
        sent in arrival(), loads in prop::collection::vec((0.0..12e6_f64, any::<bool>()), 0..8),
    ) {
        let sent = sent.1;
        let mut option = sent;
        for (i, (used, knows)) in loads.iter().enumerate() {
            let before = option;
            let hop = before.ip_ttl.min(1);
            if !knows {
                pass_unaware(&mut option);
                prop_assert_eq!(option, QsOption { ip_ttl: before.ip_ttl - hop, ..before });
                continue;
            }
            let mut router = QsRouter::new(&plain(), RandomStream::named(i as u64, "chain")).expect("a router");
            let free = Free { capacity: Rate::mbps(10.0), used: Rate::bps(*used) };
            let verdict = router.on_request(Instant::ZERO, 0, &mut option, || free);
            prop_assert!(option.rate <= before.rate);
            prop_assert_eq!(option.function, before.function);
            prop_assert_eq!(option.ip_ttl, before.ip_ttl - hop);
            match verdict {
                QsVerdict::Report => prop_assert_eq!(option, QsOption { ip_ttl: option.ip_ttl, ..before }),
                QsVerdict::Refused(_) => {
                    prop_assert_eq!((option.rate, option.qs_ttl, option.nonce.get()), (QsRate::ZERO, 0, 0));
                }
                QsVerdict::Approved(rate) | QsVerdict::Reduced(rate) => {
                    prop_assert_eq!(option.rate, rate);
                    prop_assert_eq!(option.ttl_diff(), before.ttl_diff());
                    // Rate 15 -> 14 is the highest pair on the left: bits 0-1 of the RFC's Table 2, counted
                    // from the most significant of thirty. Only the pairs from the old rate down to the new may differ.
                    let steps = u32::from(before.rate.code() - rate.code());
                    let may_differ = ((1_u64 << (2 * steps)) - 1) << (2 * rate.code());
                    prop_assert_eq!(u64::from(option.nonce.get() ^ before.nonce.get()) & !may_differ, 0);
                }
            }
        }
        prop_assert!(option.rate <= sent.rate);
    }

    /// [safety] T15: whatever is asked, by whom, and however the load moves.
    #[test]
    fn what_is_approved_never_exceeds_the_pool(
        arrivals in prop::collection::vec(arrival(), 1..60), share in 0.01..=1.0_f64,
    ) {
        let params = RouterParams { source_share: share, ..RouterParams::default() };
        let (mut router, mut now) = (router(params), Instant::ZERO);
        for (gap, mut option, source, used) in arrivals {
            now += Duration::from_millis(gap);
            let free = Free { capacity: Rate::mbps(10.0), used: Rate::bps(used) };
            if router.on_request(now, source, &mut option, || free).approved().is_some() {
                let sum = router.recent_approvals(now).as_bps();
                prop_assert!(sum <= 0.8 * 10e6 - used, "{sum} approved at a load of {used}");
            }
        }
    }
}
