//! The procedure: promises against another model of the same link, and what is nearest to what cannot be.

use super::*;
use fairpace_path::{ArqScheme, Capacity, Channel};
use fairpace_units::Packets;

fn link(channel: Channel, scheme: ArqScheme) -> ArqSpec {
    ArqSpec { scheme, ..ArqSpec::downlink(channel, Capacity::Packets(Packets::new(50))) }
}

fn memoryless(p_e: f64) -> Planner {
    Planner::new(&link(Channel::memoryless(p_e).unwrap(), ArqScheme::Persistent), 0).unwrap()
}

fn unmet(result: Result<Plan, PlanError>) -> Unmet {
    match result {
        Err(PlanError::Unmet(unmet)) => *unmet,
        other => panic!("{other:?}"),
    }
}

/// Pr{Bin(n, q) < w}.
fn binomial_below(n: u32, q: f64, w: u32) -> f64 {
    let term = |x: u32| {
        let choose = (0..x).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        choose * q.powi(x as i32) * (1.0 - q).powi((n - x) as i32)
    };
    (0..w.min(n + 1)).map(term).sum()
}

#[test]
fn the_papers_example() {
    let plan = memoryless(0.1).plan(0.875, &[Need::paper()]).unwrap();
    assert!((plan.alpha - 0.2).abs() < 1e-12);
    let flow = &plan.flows[0];
    assert_eq!((flow.r, flow.d, plan.full_window), (17, 10, 17));
    // W_max: Pr{Bin(27, 0.9) < W} <= 1 %.
    let rwnd = (1..=27).rev().find(|w| binomial_below(27, 0.9, *w) <= 0.01).unwrap();
    assert_eq!((flow.rwnd, plan.buffer), (rwnd, rwnd));
    assert!((flow.outage - binomial_below(27, 0.9, rwnd)).abs() < 1e-12);
    assert!((flow.throughput.as_bps() - 180e3).abs() < 1e-6, "{}", flow.throughput);
    assert!((flow.loss - flow.outage).abs() < 1e-15 && !plan.starves());
    // (1 - beta) R / beta = 17 / 7
    assert!((plan.full_utilization_buffer - 17.0 / 7.0).abs() < 1e-12);
}

/// The closed loop itself: which of the last R - 1 slots delivered, as bits (slot before the next: bit 0); all other
/// packets are in the queue. Its stationary distribution by iteration.
struct Loop {
    r: u32,
    window: u32,
    q: f64,
    of: Vec<f64>,
}

impl Loop {
    fn new(r: u32, window: u32, q: f64) -> Loop {
        let lags = 1_usize << (r - 1);
        let mut of = vec![0.0; lags];
        of[0] = 1.0;
        for _ in 0..5_000 {
            let mut next = vec![0.0; lags];
            for (bits, p) in of.iter().enumerate() {
                let success = if bits.count_ones() < window { q } else { 0.0 };
                let moved = (bits << 1) & (lags - 1);
                next[moved] += p * (1.0 - success);
                next[moved | 1] += p * success;
            }
            of = next;
        }
        Loop { r, window, q, of }
    }

    fn throughput(&self) -> f64 {
        let busy = |(bits, p): (usize, &f64)| if bits.count_ones() < self.window { p * self.q } else { 0.0 };
        self.of.iter().enumerate().map(busy).sum()
    }

    /// A packet arrives when the oldest bit, a success, falls out; it is behind all that are in the queue.
    fn outage(&self, d: u32) -> f64 {
        let (mut all, mut late) = (0.0, 0.0);
        let lags = 1_usize << (self.r - 1);
        for (bits, p) in self.of.iter().enumerate().filter(|(bits, p)| bits & (lags >> 1) != 0 && **p > 0.0) {
            let sends = bits.count_ones() < self.window;
            for (success, part) in [(1, if sends { self.q } else { 0.0 }), (0, if sends { 1.0 - self.q } else { 1.0 })]
            {
                let on_the_way = ((bits << 1) & (lags - 1) | success).count_ones();
                all += p * part;
                late += p * part * binomial_below(d + 1, self.q, self.window - on_the_way);
            }
        }
        late / all
    }
}

#[test]
fn the_loop_itself_below_r_at_r_and_above() {
    for (r, q) in [(6, 0.9), (5, 0.6), (9, 0.75)] {
        let planner = memoryless(1.0 - q);
        for window in 1..=r + 3 {
            let truth = Loop::new(r, window, q);
            let flows = |d| [SharedFlow { r, d, bound: 0.5, share: 1.0 }];
            let throughput = planner.throughputs(&flows(1), &[window]).unwrap()[0];
            assert!((throughput - truth.throughput()).abs() < 1e-9, "R {r}, W {window}: {throughput}");
            for d in [1, 2, 4, 9] {
                let outage = planner.outages(&flows(d), &[window]).unwrap()[0];
                assert!((outage - truth.outage(d)).abs() < 1e-9, "R {r}, W {window}, D {d}: {outage}");
            }
        }
    }
}

#[test]
fn a_jitter_so_small_that_the_queue_runs_empty() {
    // D = 1 slot: two slots for all that waits.
    let need = Need { max_jitter: Duration::from_millis(5), outage: 0.05, ..Need::paper() };
    let planner = memoryless(0.1);
    let plan = planner.plan(0.875, &[need]).unwrap();
    let flow = &plan.flows[0];
    assert!(plan.starves() && flow.rwnd < 17, "{flow:?}");
    // A window of 7 more has an outage above 5 % by the loop's own distribution; R is too large to iterate over.
    let exact = |w| binomial_below(18, 0.9, w) / binomial_below(16, 0.9, w);
    assert!(exact(flow.rwnd) <= 0.05 && exact(flow.rwnd + 1) > 0.05);
    assert!((flow.outage - exact(flow.rwnd)).abs() < 1e-12);
    let w = flow.rwnd;
    let throughput = 0.9 * binomial_below(16, 0.9, w) / binomial_below(17, 0.9, w + 1);
    assert!((flow.throughput.as_bps() - 200e3 * throughput).abs() < 1e-6);
}

#[test]
fn windows_far_below_a_long_way() {
    // R = 1000 slots and 40 packets: what is on its way is 40 but for the few that failed, the queue is next to empty.
    let planner = memoryless(0.1);
    let flow = SharedFlow { r: 1_000, d: 1, bound: 0.5, share: 1.0 };
    let outage = planner.outages(&[flow], &[40]).unwrap()[0];
    // Alone in the queue two failures make it late; behind a second, which is there with 40 · 0.1 / (960 · 0.9), one.
    let second = 40.0 * 0.1 / (960.0 * 0.9);
    let exact = 0.01 * (1.0 - second) + (1.0 - 0.81) * second;
    assert!((outage - exact).abs() < 1e-4, "{outage}, {exact}");
    let throughput = planner.throughputs(&[flow], &[40]).unwrap()[0];
    assert!((throughput - 40.0 / 1_000.1).abs() < 1e-3 * throughput, "{throughput}");
}

#[test]
fn below_r_with_memory_and_unequal_rtts_as_simulated() {
    // Means of 10 seeds of 75 s: 140.6 kbit/s (± 0.5), outage 0.54 % (± 0.17).
    let channel = Channel { transition: vec![vec![0.9, 0.1], vec![0.4, 0.6]], error: vec![0.01, 0.5] };
    let planner = Planner::new(&link(channel, ArqScheme::Optimal), 0).unwrap();
    let plan = planner.plan(0.875, &[Need::paper()]).unwrap();
    assert_eq!(plan.flows[0].rwnd, 13);
    assert!((plan.flows[0].throughput.as_bps() / 140.6e3 - 1.0).abs() < 0.02, "{plan:?}");
    assert!((plan.flows[0].outage - 0.0054).abs() < 0.0017, "{plan:?}");
    // 13 and 9 packets, R = 17 and 25: 118.8 (± 0.4) and 61.1 kbit/s (± 0.2).
    let planner = memoryless(0.1);
    let far = Need { min_rtt: Duration::from_millis(125), ..Need::paper() };
    let flows = planner.flows(&[Need { share: 2.0, ..Need::paper() }, far]).unwrap();
    let found = planner.throughputs(&flows, &[13, 9]).unwrap();
    for (found, simulated) in found.iter().zip([118.8, 61.13]) {
        assert!((found * 200.0 / simulated - 1.0).abs() < 0.015, "{found:?}");
    }
    // D = 2, far below R, 6 and 7 packets: 57.5 and 62.8 kbit/s (± 0.1), outage 1.2 and 1.9 % (± 0.2).
    let short = |need| Need { max_jitter: Duration::from_millis(10), ..need };
    let flows = planner.flows(&[short(Need::paper()), short(far)]).unwrap();
    let found: f64 = planner.throughputs(&flows, &[6, 7]).unwrap().iter().sum();
    assert!((found * 200.0 / 120.3 - 1.0).abs() < 0.03, "{found}");
    for outage in planner.outages(&flows, &[6, 7]).unwrap() {
        assert!((0.012..0.025).contains(&outage), "{outage}");
    }
}

#[test]
fn shares_and_unequal_rtts() {
    let far = Need { min_rtt: Duration::from_millis(125), ..Need::paper() };
    let plan = memoryless(0.05).plan(0.5, &[Need::paper(), far, Need { share: 2.0, ..far }]).unwrap();
    assert_eq!(plan.alpha, 1.0);
    assert_eq!(plan.flows.iter().map(|f| f.r).collect::<Vec<_>>(), [17, 25, 25]);
    assert_eq!(plan.buffer, plan.flows.iter().map(|f| f.rwnd).sum::<u32>());
    assert!(plan.flows.iter().all(|f| f.outage <= 0.01 && (f.exact_rwnd - f64::from(f.rwnd)).abs() < 1.0));
    // p (Q + E[T_(R-1)]): the window of twice the share is twice as large.
    assert!((plan.flows[2].exact_rwnd - 2.0 * plan.flows[1].exact_rwnd).abs() < 1e-9);
    // Eq. (4) for flows 2 and 1: (p_2 / p_1) rwnd_1 + p_2 (E[T_24] - E[T_16])
    let by_eq_4 = plan.flows[0].exact_rwnd + 0.25 * 0.95 * 8.0;
    assert!((plan.flows[1].exact_rwnd - by_eq_4).abs() < 1e-9);
    assert!((plan.delivered - 0.95).abs() < 1e-9);
}

#[test]
fn a_sum_that_rounds_well_where_the_largest_does_not() {
    // The largest sum is 23, but of 12 and 11 the one has more than its half, the other less.
    let planner = memoryless(0.04);
    let most = planner.plan(0.875, &[Need::paper(); 2]).unwrap();
    assert_eq!(most.buffer % 2, 1, "{most:?}");
    let half = Need { throughput: Some(Rate::kbps(96.0)), ..Need::paper() };
    let plan = planner.plan(0.875, &[half; 2]).unwrap();
    assert_eq!(plan.buffer, most.buffer - 1);
    assert!(plan.flows.iter().all(|f| f.throughput.as_bps() > 96e3 * (1.0 - 1e-9)));
}

#[test]
fn more_than_the_link_carries() {
    let planner = memoryless(0.1);
    let need = |kbps| Need { throughput: Some(Rate::kbps(kbps)), ..Need::paper() };
    assert!(planner.plan(0.875, &[need(180.0)]).is_ok());
    let unmet = unmet(planner.plan(0.875, &[need(190.0)]));
    assert_eq!(unmet.to_string(), "flow 1 needs 190 kbit/s; its share of what the link delivers is 180 kbit/s");
    let nearest: Vec<String> = unmet.nearest.iter().map(ToString::to_string).collect();
    assert_eq!(nearest, ["a throughput of at most 180 kbit/s", "a link of at least 211.2 kbit/s"]);
}

#[test]
fn what_is_printed_as_possible_is_possible_when_typed_in() {
    let unmet = |needed: Rate, possible: Rate| Unmet {
        flow: 0,
        lack: Lack::Window { needed, possible, total: 10 },
        nearest: vec![Nearest::Throughput(vec![possible]), Nearest::Link(Rate::bps(344_444.5))],
    };
    let printed = |u: &Unmet| u.nearest.iter().map(ToString::to_string).collect::<Vec<_>>();
    let close = unmet(Rate::bps(115_900.0), Rate::bps(115_870.0));
    assert!(
        close.to_string().ends_with(
            "needs 115.9 kbit/s; windows of 10 in all, the largest that keep the delays, give it 115.8 kbit/s"
        )
    );
    assert_eq!(printed(&close), ["a throughput of at most 115.8 kbit/s", "a link of at least 344.5 kbit/s"]);
    // A value of four digits stays as it is.
    let whole = unmet(Rate::kbps(200.0), Rate::bps(180_000.000_001));
    assert_eq!(printed(&whole)[0], "a throughput of at most 180 kbit/s");
}

#[test]
fn a_share_is_refused_as_it_was_given() {
    for (share, shown) in [(0.0, "0"), (f64::INFINITY, "inf"), (-1.0, "-1")] {
        let error = memoryless(0.1).plan(0.875, &[Need { share, ..Need::paper() }]).unwrap_err();
        assert!(error.to_string().starts_with(&format!("share is {shown}; it must be above 0")), "{error}");
    }
}

#[test]
fn a_delay_that_leaves_too_little_throughput() {
    let planner = memoryless(0.1);
    let short = |throughput| Need {
        max_jitter: Duration::from_millis(10),
        throughput: Some(Rate::kbps(throughput)),
        ..Need::paper()
    };
    let unmet = unmet(planner.plan(0.875, &[short(180.0)]));
    assert!(matches!(unmet.lack, Lack::Window { .. }), "{unmet:?}");
    let mut seen = [false; 3];
    for nearest in &unmet.nearest {
        let mut need = short(180.0);
        match nearest {
            Nearest::Throughput(rates) => {
                need.throughput = Some(rates[0]);
                seen[0] = true;
            }
            Nearest::Jitter(jitters) => {
                need.max_jitter = jitters[0];
                seen[1] = true;
                let less = Need { max_jitter: jitters[0] - Duration::from_millis(5), ..need };
                assert!(planner.plan(0.875, &[less]).is_err());
            }
            Nearest::Outage { windows, outage } => {
                need.outage = outage[0];
                seen[2] = true;
                assert_eq!(planner.plan(0.875, &[need]).unwrap().flows[0].rwnd, windows[0]);
            }
            other => panic!("{other}"),
        }
        planner.plan(0.875, &[need]).unwrap();
    }
    assert_eq!(seen, [true; 3], "{unmet:?}");
}

#[test]
fn no_window_is_small_enough() {
    // One packet alone is late if its first two slots fail: 4 %.
    let planner = memoryless(0.2);
    let need = Need { max_jitter: Duration::from_millis(5), ..Need::paper() };
    let unmet = unmet(planner.plan(0.875, &[need]));
    let Lack::Outage { total: 1, outage, .. } = unmet.lack else { panic!("{unmet:?}") };
    assert!((outage - 0.04).abs() < 1e-12);
    let nearest: Vec<String> = unmet.nearest.iter().map(ToString::to_string).collect();
    // 0.2^3 = 0.8 %
    assert_eq!(nearest, ["a tolerable jitter of at least 10 ms", "a delay outage of at least 4 % (rwnd 1)"]);
}

#[test]
fn what_is_given_up_counts_as_loss_and_slows_the_flow() {
    let channel = Channel::memoryless(0.1).unwrap();
    let planner = Planner::new(&link(channel, ArqScheme::Limited { retries: 1 }), 0).unwrap();
    let need = |loss| Need { loss: Some(loss), ..Need::paper() };
    // g = 0.01; 0.4 % of the others are left for what is late.
    let plan = planner.plan(0.875, &[need(0.014)]).unwrap();
    let flow = &plan.flows[0];
    assert!(flow.loss <= 0.014 && flow.outage <= 0.004 / 0.99, "{flow:?}");
    // sqrt(1.5 / 0.01) / 17 of 200 kbit/s
    assert!((flow.throughput.as_bps() - 200e3 * 150.0_f64.sqrt() / 17.0).abs() < 1e-6);
    let unmet = unmet(planner.plan(0.875, &[need(0.009)]));
    assert_eq!(unmet.to_string(), "1 % of the packets are given up after the last try; flow 1 may lose 0.9 %");
    assert_eq!(unmet.nearest, [Nearest::Loss(0.02), Nearest::Persistent]);
    planner.plan(0.875, &[need(0.02)]).unwrap();
}

#[test]
fn what_cannot_be_is_named() {
    let planner = memoryless(0.1);
    let cases = [
        (0.875, Need { max_jitter: Duration::from_millis(4), ..Need::paper() }, "tolerable delay jitter is 4 ms;"),
        (1.0, Need::paper(), "beta is 1;"),
        (0.5, Need { outage: 0.0, ..Need::paper() }, "delay outage is 0;"),
        (0.5, Need { loss: Some(1.5), ..Need::paper() }, "loss is 1.5;"),
        (0.5, Need { share: -1.0, ..Need::paper() }, "share is"),
        (0.5, Need { min_rtt: Duration::from_millis(1), ..Need::paper() }, "minimal RTT is 1 ms;"),
    ];
    for (beta, need, expected) in cases {
        let error = planner.plan(beta, &[Need::paper(), need]).unwrap_err();
        assert!(matches!(error, PlanError::Qos(_)) && error.to_string().starts_with(expected), "{error}");
    }
    assert!(planner.plan(0.5, &[]).is_err());
}

#[test]
fn percent_has_two_digits() {
    let shown = [0.0143, 0.01, 0.5, 1e-5, 0.0, 1.0, 0.00999].map(percent);
    assert_eq!(shown, ["1.4 %", "1 %", "50 %", "0.001 %", "0 %", "100 %", "1 %"]);
}
