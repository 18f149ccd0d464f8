use super::*;
use crate::packet_pair::SAMPLES;
use crate::rtt::RttParams;
use crate::testing::{Path, SIZE, at, made, paper, settings};
use crate::{Flow, FlowParams, Transmit};
use fairpace_units::{Class, Kind};
use proptest::prelude::*;
use std::fmt::Write as _;

const KBIT: f64 = 1e3;

/// The controller alone: each interval of 3 s so many packets, and a report just before it ends.
struct Bench {
    lda: Lda,
    rtt: RttEstimator,
    now: Instant,
    seq: u64,
    lost: i64,
    bottleneck: Option<Rate>,
}

impl Bench {
    fn new(scheme: &'static SchemeInfo, pairs: &[(&str, &str)], env: &Env, rtt: Option<f64>) -> Bench {
        let given = settings(pairs);
        let mut lda = Lda::new(&Settings::new(scheme, &given).unwrap(), env).unwrap();
        let mut estimator = RttEstimator::new(RttParams::default());
        let rtt = rtt.map(Duration::from_secs_f64);
        if let Some(rtt) = rtt {
            estimator.update(rtt);
        }
        lda.start(Instant::ZERO, rtt);
        Bench { lda, rtt: estimator, now: Instant::ZERO, seq: 0, lost: 0, bottleneck: None }
    }

    fn paper(scheme: &'static SchemeInfo, pairs: &[(&str, &str)]) -> Bench {
        let mut bench = Bench::new(scheme, pairs, &paper(), Some(0.1));
        bench.bottleneck = Some(Rate::mbps(1.2));
        bench
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            let sent = Sent { kind: Kind::Data, class: Class::Normal, seq: self.seq, size: SIZE };
            self.lda.on_sent(self.now, &sent);
            self.seq += 1;
        }
    }

    fn report(&mut self, lost: i64) {
        self.lost += lost;
        let report = ReceiverReport::new(self.seq - 1, 0.0, Duration::from_secs(1));
        let report = ReceiverReport { lost: Some(self.lost), bottleneck: self.bottleneck, ..report };
        self.lda.on_receiver_report(self.now, &report, &self.rtt);
    }

    /// One adaptation interval; gives r in kbit/s.
    fn interval(&mut self, packets: u64, lost: i64) -> f64 {
        self.send(packets);
        self.now += Duration::from_secs(2);
        self.report(lost);
        self.adapt()
    }

    fn adapt(&mut self) -> f64 {
        self.now = self.lda.poll_timer();
        self.lda.on_timer(self.now, &self.rtt);
        self.lda.r.as_bps() / KBIT
    }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 5e-4, "{found} is not {expected}");
}

/// [tpba Fig. 2], r and AIR in kbit/s, b = 1,200. (C) is 8,000/0.2 · (3/0.1 + 1) = 1,240 and does not bind.
#[test]
fn the_pseudo_code_by_hand() {
    let mut lda = Bench::paper(&LDA, &[]);
    near(lda.interval(100, 0), 19.9167); // AIR = 10 (1 - 10/1200) = 9.91667
    near(lda.interval(100, 0), 29.6687); // AIR = 9.91667 (1 - 19.91667/1200) = 9.75208
    near(lda.interval(100, 0), 39.1798); // AIR = 9.75208 (1 - 29.66875/1200) = 9.51097
    near(lda.interval(100, 10), 27.4258); // p = 0.1: 39.17972 · 0.7; AIR = 10
    near(lda.interval(100, 0), 37.1973); // AIR = 10 (1 - 27.42580/1200) = 9.77145
    // 1 of 1,000 is 0 of 256, and counts
    near(lda.interval(1_000, 1), 37.0857); // 37.19725 · 0.997
    // R_f p = 1.2: r_min, the flow's min_rate of 1 bit/s
    near(lda.interval(100, 40), 0.001);
    assert_eq!(lda.lda.status().p, Some(0.4));
}

/// The same with AIR_0 in each step, and r_min.
#[test]
fn a_fixed_air_does_not_shrink() {
    let mut ldaf = Bench::paper(&LDAF, &[("r_min", "30 kbit/s"), ("r_0", "200 kbit/s"), ("air_0", "100 kbit/s")]);
    near(ldaf.interval(100, 0), 283.3333); // 200 + 100 (1 - 200/1200)
    near(ldaf.interval(100, 0), 359.7222); // + 100 (1 - 283.3333/1200)
    near(ldaf.interval(100, 20), 143.8889); // · 0.4
    near(ldaf.interval(100, 0), 231.8981); // + 100 (1 - 143.8889/1200)
    near(ldaf.interval(100, 33), 30.0); // · 0.01 is below r_min
}

/// Lines (A): AIR would be negative.
#[test]
fn a_bottleneck_below_the_rate_is_the_rate() {
    let mut lda = Bench::paper(&LDA, &[("r_0", "800 kbit/s")]);
    lda.bottleneck = Some(Rate::kbps(500.0));
    near(lda.interval(100, 0), 500.0);
    near(lda.interval(100, 0), 500.0);
    // With room above, the last step does not pass it: 500 + 10 (1 - 500/505) = 500.1
    lda.bottleneck = Some(Rate::kbps(505.0));
    near(lda.interval(100, 0), 500.099);
    lda.bottleneck = Some(Rate::bps(500_100.0));
    assert!(lda.interval(100, 0) <= 500.1 && lda.lda.air >= Rate::ZERO);
}

/// (C): RTT 2 s and T_adapt 3 s, M = 8,000 bits: 8,000/4 · 2.5 = 5 kbit/s. The bound stays in AIR, as in the
/// pseudo-code.
#[test]
fn the_increase_is_no_more_than_tcps() {
    let mut lda = Bench::new(&LDA, &[], &paper(), Some(2.0));
    near(lda.interval(100, 0), 15.0);
    near(lda.interval(100, 0), 20.0);
    lda.rtt = RttEstimator::new(RttParams::default());
    lda.rtt.update(Duration::from_millis(100));
    near(lda.interval(100, 0), 25.0);
    // b is not known: (B) has nothing to work with. Without an RTT nothing is added.
    let mut unknown = Bench::new(&LDA, &[], &paper(), None);
    near(unknown.interval(100, 0), 10.0);
    let mut fixed = Bench::new(&LDAF, &[], &paper(), Some(0.1));
    near(fixed.interval(100, 0), 20.0);
}

/// A packet that was counted as lost and came after all is taken out; where reports tell no cumulative count, their
/// fraction is taken for the packets that they cover.
#[test]
fn loss_is_what_the_reports_say_together() {
    let mut lda = Bench::paper(&LDA, &[("r_0", "100 kbit/s")]);
    lda.send(100);
    lda.now = at(1.0);
    lda.report(3);
    lda.send(100);
    lda.now = at(2.0);
    lda.report(-2);
    near(lda.adapt(), 98.5); // 1 of 200: 100 · (1 - 0.015)
    lda.send(300);
    let report = |n, fraction| ReceiverReport::new(n, fraction, Duration::from_secs(1));
    lda.lda.on_receiver_report(at(4.0), &report(299, 0.1), &lda.rtt);
    lda.lda.on_receiver_report(at(5.0), &report(499, 0.0), &lda.rtt);
    // old and repeated ones say nothing
    lda.lda.on_receiver_report(at(5.0), &report(499, 1.0), &lda.rtt);
    lda.lda.on_receiver_report(at(5.0), &report(300, 1.0), &lda.rtt);
    near(lda.adapt(), 88.65); // 10 of 300: 98.5 · 0.9
}

/// As in a simulation nothing is known, nothing changes; on a network the rate halves at each adaptation point once
/// reports are overdue.
#[test]
fn where_no_reports_come_the_rate_halves_on_real_networks_only() {
    let real = Env { max_rate: Rate::mbps(10.0), ..Env::default() };
    let mut lda = Bench::new(&LDA, &[("r_0", "800 kbit/s"), ("r_min", "150 kbit/s")], &real, Some(0.1));
    lda.send(100);
    for expected in [400.0, 200.0, 150.0, 150.0] {
        near(lda.adapt(), expected);
    }
    assert_eq!(lda.lda.status().reason, "no reports: halved");
    // Nothing sent, nothing missed.
    let mut idle = Bench::new(&LDA, &[("r_0", "800 kbit/s")], &real, Some(0.1));
    near(idle.adapt(), 800.0);
    let mut paper = Bench::paper(&LDA, &[("r_0", "800 kbit/s")]);
    paper.send(100);
    near(paper.adapt(), 800.0);
}

/// 20 packets in 3 s arrive of a rate that allows 300: at most twice that, and one packet more, is kept.
#[test]
fn an_idle_application_and_an_overstated_bottleneck_do_not_let_the_rate_grow() {
    let real = Env { max_rate: Rate::mbps(10.0), ..Env::default() };
    for overstated in [None, Some(Rate::MAX)] {
        let mut lda = Bench::new(&LDA, &[("r_0", "800 kbit/s")], &real, Some(0.1));
        lda.bottleneck = overstated;
        lda.interval(20, 0);
        near(lda.interval(20, 0), 112.0); // 2 (20 + 1) 8,000 / 3 s
        assert!(lda.lda.bottleneck <= Some(real.max_rate));
        // As a simulation of the paper it goes on rising.
        let mut free = Bench::paper(&LDA, &[("r_0", "800 kbit/s")]);
        free.interval(20, 0);
        assert!(free.interval(20, 0) > 800.0);
    }
}

/// 100 packets/s, of which each third leaves beside the numbers: all of them are 10 ms apart, and the numbers go on.
#[test]
fn a_packet_beside_the_numbers_takes_its_time() {
    for (scheme, rate) in [("lda", "r_0"), ("ldaf", "r_0")] {
        let controller = made(scheme, &[(rate, "100 pkt/s"), ("t_adapt", "1 h")], &paper());
        let mut flow = Flow::new(controller, FlowParams::new(&paper()));
        flow.start(Instant::ZERO, Some(Duration::from_millis(100)));
        let (mut now, mut seqs, mut departures) = (Instant::ZERO, Vec::new(), Vec::new());
        while departures.len() < 15 {
            match flow.poll(now, true) {
                Transmit::Send(permit) if departures.len() % 3 == 2 => {
                    flow.on_sent_unnumbered(now, permit, SIZE);
                    departures.push(now);
                }
                Transmit::Send(permit) => {
                    flow.on_sent(now, permit, SIZE);
                    seqs.push(permit.seq);
                    departures.push(now);
                }
                Transmit::WaitUntil(at) => now = at,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seqs, (0..10).collect::<Vec<_>>());
        // Of the first pair both leave at once, and the gap after it is for both.
        let ms: Vec<u64> = departures.iter().map(|at| (at.as_secs_f64() * 1e3).round() as u64).collect();
        assert_eq!(ms, [0, 0].into_iter().chain((2..15).map(|n| 10 * n)).collect::<Vec<_>>());
        assert_eq!((flow.counters().data.sent, flow.counters().data.sent_bytes.get()), (15, SIZE.get() * 15));
    }
}

/// 100 packets/s: numbers 16 n and 16 n + 1 leave together, and the gap after them is for both.
#[test]
fn pairs_leave_together_and_the_mean_rate_is_kept() {
    let mut path = Path::new(
        made("lda", &[("r_0", "100 pkt/s"), ("t_adapt", "1 h")], &paper()),
        &paper(),
        Duration::from_millis(100),
    );
    path.run(at(1.601), |_| true);
    let ms: Vec<u64> = path.sent.iter().map(|p| (p.at.as_secs_f64() * 1e3).round() as u64).collect();
    assert_eq!(ms[..5], [0, 0, 20, 30, 40]);
    assert_eq!(ms[15..20], [150, 160, 160, 180, 190]);
    assert_eq!((ms.len(), ms.last()), (162, Some(&1_600)));
}

/// A second packet that leaves late makes no pair, and most of the last sixteen must be pairs.
#[test]
fn the_estimate_of_broken_pairs_is_not_believed() {
    let mut pairs = Pairs::new();
    let mut now = Instant::ZERO;
    let mut run = |pairs: &mut Pairs, n: usize, gap: Duration| {
        for seq in 0..n as u64 * PERIOD {
            now += if seq % PERIOD == 1 { gap } else { Duration::from_millis(10) };
            let sent = Sent { kind: Kind::Data, class: Class::Normal, seq, size: SIZE };
            pairs.on_sent(now, &sent, Rate::kbps(800.0), Rate::mbps(10.0));
        }
    };
    run(&mut pairs, 7, Duration::from_millis(5));
    assert!(pairs.are_believed());
    run(&mut pairs, 1, Duration::from_millis(5));
    assert!(!pairs.are_believed());
    run(&mut pairs, SAMPLES, Duration::from_micros(1_700));
    assert!(pairs.are_believed(), "the cap alone puts 0.8 ms between them");
}

/// Without a loss the rise ends a little below sqrt(2 b AIR_0), 155 kbit/s, whatever is fair; with 100 kbit/s below 490.
#[test]
fn the_golden_rise() {
    let mut text = String::from("# time_s r_kbit/s; b = 1.2 Mbit/s, AIR_0 = 10 and 100 kbit/s, 10 % lost at 180 s\n");
    let mut slow = Bench::paper(&LDA, &[]);
    let mut fast = Bench::paper(&LDA, &[("air_0", "100 kbit/s")]);
    let mut last = (0.0, 0.0);
    for n in 1..=80 {
        let lost = if n == 60 { 10 } else { 0 };
        let (a, b) = (slow.interval(100, lost), fast.interval(100, lost));
        if n == 59 {
            last = (a, b);
        }
        writeln!(text, "{} {a:.3} {b:.3}", 3 * n).unwrap();
    }
    assert!((145.0..155.0).contains(&last.0) && (455.0..490.0).contains(&last.1), "{last:?}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/lda-1.2-mbit.txt");
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::write(path, &text).expect(path);
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}")));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// AIR is never negative nor above AIR_0, r never below r_min nor above max_rate; a rise is AIR at most, and only
    /// without loss.
    #[test]
    fn whatever_reports_say(
        fixed in any::<bool>(),
        real in any::<bool>(),
        r_0 in 1.0..5_000.0_f64,
        rounds in prop::collection::vec((1..300_u64, prop_oneof![2 => Just(0), 1 => -5..400_i64], prop::option::of(prop_oneof![Just(0.0), Just(1e15), 0.0..3e6_f64]), 1..5_000_u64), 1..40),
    ) {
        let env = Env { min_rate: Rate::bps(100.0), safety: if real { Safety::Default } else { Safety::Paper }, ..paper() };
        let r_0 = format!("{r_0} kbit/s");
        let pairs = [("r_0", r_0.as_str()), ("r_min", "0.5 kbit/s")];
        let mut bench = Bench::new(if fixed { &LDAF } else { &LDA }, &pairs, &env, None);
        for (packets, lost, b, rtt_ms) in rounds {
            bench.rtt = RttEstimator::new(RttParams::default());
            bench.rtt.update(Duration::from_millis(rtt_ms));
            bench.bottleneck = b.map(Rate::bps);
            let before = bench.lda.r;
            bench.interval(packets, lost);
            let Lda { r, air, .. } = bench.lda;
            prop_assert!(r >= Rate::bps(500.0) && r <= env.max_rate, "{r}");
            prop_assert!(air >= Rate::ZERO && air <= Rate::kbps(10.0), "{air}");
            prop_assert!(r.as_bps() <= before.as_bps() + air.as_bps() + 1e-6, "{before} {r} {air}");
            prop_assert!(bench.lda.p == Some(0.0) || r <= before, "{before} {r}");
        }
    }
}
