//! The same scenario in both worlds, laid over each other.

use crate::run::RunSet;
use crate::stats::Estimate;
use crate::summary::{GroupMetric, Metric};
use fairpace_scenario::controllers::has_tcp;
use fairpace_scenario::{Capacity, Count, FlowSpec, Scenario, ScenarioError, TcpKind, Time};
use fairpace_units::Duration;
use serde::Serialize;

/// A scenario with its TCP as the kernel has it in real time, the TCP half of a flow that has one too, and the changes in words: the kernel's "reno"
/// repairs losses as NewReno does, recovery is Linux's ([`TcpSpec::linux`](fairpace_scenario::TcpSpec)), SACK is on for all connections if for one, the
/// first window is ten segments, the clock is exact; the settings of the first TCP flow are those of all; and windows are kept over a pause for all if for one.
///
/// # Errors
/// The changed scenario is refused, which is a bug.
pub fn as_the_kernel(scenario: &Scenario) -> Result<(Scenario, Vec<String>), ScenarioError> {
    let mut changes = Vec::new();
    let is_tcp = |f: &FlowSpec| f.controller.starts_with("tcp-");
    let has_half = |f: &FlowSpec| has_tcp(&f.controller);
    let speaks_tcp = |f: &FlowSpec| is_tcp(f) || has_half(f);
    let has_sack = |f: &FlowSpec| match has_half(f) {
        true => f.tcp.as_ref().and_then(|t| t.variant) == Some(TcpKind::Sack),
        false => is_tcp(f) && !["tcp-reno", "tcp-newreno"].contains(&f.controller.as_str()),
    };
    let sack = scenario.flows.iter().any(has_sack);
    let first = scenario.flows.iter().find(|f| speaks_tcp(f)).and_then(|f| f.tcp.clone()).unwrap_or_default();
    // A half keeps its window while it is idle, unless the scenario says otherwise.
    let restarts = scenario.flows.iter().filter(|f| speaks_tcp(f)).all(|f| {
        let said = f.tcp.as_ref().and_then(|t| t.restart_after_idle);
        said.unwrap_or(!has_half(f))
    });
    let why = if sack {
        "SACK is on for all of the run's connections"
    } else {
        "the kernel's Reno stays in recovery as NewReno does"
    };
    let modified = scenario.modify(|s| {
        for flow in s.flows.iter_mut().filter(|f| speaks_tcp(f)) {
            if has_half(flow) {
                let to = if sack { TcpKind::Sack } else { TcpKind::Newreno };
                let tcp = flow.tcp.get_or_insert_default();
                if tcp.variant != Some(to) {
                    changes.push(format!("flow {}: `tcp.variant` is `{to}` here, since {why}", flow.name));
                    tcp.variant = Some(to);
                }
            } else {
                let to = match flow.controller.as_str() {
                    "tcp-reno" | "tcp-newreno" if sack => "tcp-sack",
                    "tcp-reno" => "tcp-newreno",
                    _ => flow.controller.as_str(),
                };
                if to != flow.controller {
                    changes.push(format!("flow {}: `{}` is `{to}` here, since {why}", flow.name, flow.controller));
                    flow.controller = to.to_owned();
                }
            }
            let (pauses, kept) = (has_half(flow) || flow.on_off.is_some(), has_half(flow));
            let tcp = flow.tcp.get_or_insert_default();
            let before = tcp.clone();
            (tcp.initial_window, tcp.initial_ssthresh, tcp.send_jitter) = (Some(Count::new(10)), None, None);
            (tcp.initial_rto, tcp.max_rto, tcp.tick) =
                (Some(Time::seconds(1.0)), Some(Time::seconds(120.0)), Some(Time::seconds(0.0)));
            (tcp.limited_transmit, tcp.linux, tcp.ns2) = (None, Some(true), None);
            (tcp.min_rto, tcp.dup_threshold, tcp.ecn) = (first.min_rto.clone(), first.dup_threshold, first.ecn);
            tcp.restart_after_idle = Some(restarts);
            let told = [
                ("initial_window", before.initial_window.is_some_and(|n| n != Count::new(10)), "10"),
                ("initial_ssthresh", before.initial_ssthresh.is_some(), "the kernel's"),
                ("send_jitter", before.send_jitter.is_some(), "that of a real host"),
                ("initial_rto", before.initial_rto.is_some() && before.initial_rto != tcp.initial_rto, "1 s"),
                ("max_rto", before.max_rto.is_some() && before.max_rto != tcp.max_rto, "120 s"),
                ("tick", before.tick.is_some() && before.tick != tcp.tick, "an exact clock's"),
                ("ns2", before.ns2 == Some(true), "off"),
                ("limited_transmit", before.limited_transmit == Some(false), "on"),
                ("min_rto", before.min_rto != tcp.min_rto, "the first TCP flow's"),
                ("dup_threshold", before.dup_threshold != tcp.dup_threshold, "the first TCP flow's"),
                ("ecn", before.ecn != tcp.ecn, "the first TCP flow's"),
                // A connection that always has data notices nothing of it.
                (
                    "restart_after_idle",
                    pauses && before.restart_after_idle.unwrap_or(!kept) != restarts,
                    "false for all connections",
                ),
            ];
            let told = told.iter().filter(|(_, changed, _)| *changed);
            changes.extend(
                told.map(|(field, _, to)| format!("flow {}: `tcp.{field}` is {to} here, as in real time", flow.name)),
            );
        }
    })?;
    Ok((modified, changes))
}

/// The numbers that are compared, each with its name for people.
const METRICS: [(Metric, &str, f64); 6] = [
    (Metric::ThroughputBps, "throughput, kbit/s", 1e-3),
    (Metric::GoodputBps, "goodput, kbit/s", 1e-3),
    (Metric::LossRatio, "loss, %", 1e2),
    (Metric::OwdP50Ms, "one-way delay, median, ms", 1.0),
    (Metric::OwdP95Ms, "one-way delay, 95 %, ms", 1.0),
    (Metric::JainIndex, "Jain's index", 1.0),
];

/// One number of a group in both worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The group.
    pub group: String,
    /// `throughput_bps`, ...
    pub metric: Metric,
    /// The same for people, with its unit.
    #[serde(skip)]
    pub title: &'static str,
    /// From the metric's unit to the title's.
    #[serde(skip)]
    pub scale: f64,
    /// Over the seeds, in the simulator.
    pub sim: Estimate,
    /// Over the seeds, in the emulator.
    pub emu: Estimate,
    /// `emu` less `sim`.
    pub difference: f64,
    /// Its 95 % interval (the worlds' seeds share their random streams, but not when each number is drawn: two
    /// independent samples; where the simulator's seeds are all one run, that of the emulator alone); `None` with one seed.
    pub difference_ci95: Option<[f64; 2]>,
    /// `difference` / `sim`; `None` if `sim` is zero.
    pub relative: Option<f64>,
}

impl Difference {
    fn new(sim: &GroupMetric, emu: &GroupMetric, title: &'static str, scale: f64) -> Difference {
        let (a, b) = (sim.estimate, emu.estimate);
        let difference = b.mean - a.mean;
        // The half-widths are t times the standard errors of either mean; a number without a spread adds none.
        let half = a.half_width().hypot(b.half_width());
        let both = a.ci95.is_some() && b.ci95.is_some();
        let alone = a.n == 1 && a.ci95.is_none() && b.ci95.is_some();
        Difference {
            group: sim.group.clone(),
            metric: sim.metric,
            title,
            scale,
            sim: a,
            emu: b,
            difference,
            difference_ci95: (both || alone).then_some([difference - half, difference + half]),
            relative: (a.mean != 0.0).then(|| difference / a.mean),
        }
    }
}

/// A change of a scenario that makes its seeds differ and its packets come out of step: a packet's time of jitter on the
/// path. None where the path's rate is no number.
pub fn jitter_of_a_packet(scenario: &Scenario) -> Option<Duration> {
    match &scenario.path.rate {
        Some(Capacity::Fixed(rate)) => {
            let packet = scenario.packet_size.get();
            Some(packet / rate.get().with_packets_of(packet))
        }
        _ => None,
    }
}

/// Group by group, number by number. A quantity without a number in one of the worlds is left out.
pub fn differences(sim: &RunSet, emu: &RunSet) -> Vec<Difference> {
    let (mut sims, emus) = (sim.metrics(), emu.metrics());
    if sim.seeds_differ() == Some(false) {
        // One run, however many seeds.
        for metric in &mut sims {
            metric.estimate = Estimate::exact(metric.estimate.mean);
        }
    }
    let groups = sim.runs.first().map_or(&[][..], |r| &r.summary.groups);
    let mut all = Vec::new();
    for group in groups {
        for (metric, title, scale) in METRICS {
            let find = |set: &[GroupMetric]| set.iter().find(|m| m.group == group.name && m.metric == metric).cloned();
            if let (Some(sim), Some(emu)) = (find(&sims), find(&emus)) {
                all.push(Difference::new(&sim, &emu, title, scale));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hooks;
    use crate::run::{RunOptions, Seeds, run};

    const PATH: &str = "duration = \"5 s\"\n[path]\nrate = \"2 Mbit/s\"\nrtt = \"20 ms\"\nqueue = { kind = \"drop-tail\", capacity = \"10 pkt\" }\n";

    fn scenario(rest: &str) -> Scenario {
        Scenario::parse(&format!("{PATH}{rest}"), "s.toml").unwrap()
    }

    #[test]
    fn a_scenario_is_simulated_with_the_tcp_that_the_kernel_has_and_is_told_so() {
        let (reno, told) = as_the_kernel(&scenario("[[flows]]\nname = \"a\"\ncontroller = \"tcp-reno\"\n")).unwrap();
        assert_eq!(reno.flows[0].controller, "tcp-newreno");
        let tcp = reno.flows[0].tcp.clone().unwrap();
        assert_eq!((tcp.linux, tcp.initial_window), (Some(true), Some(Count::new(10))));
        assert!(told.len() == 1 && told[0].contains("`tcp-reno` is `tcp-newreno` here"), "{told:?}");
        let both = "[[flows]]\nname = \"a\"\ncontroller = \"tcp-sack\"\ntcp = { min_rto = \"300 ms\" }\n\
            [[flows]]\nname = \"b\"\ncontroller = \"tcp-reno\"\ntcp = { initial_window = 2 }\n[[flows]]\ncontroller = \"rap\"\n";
        let (both, told) = as_the_kernel(&scenario(both)).unwrap();
        let controllers: Vec<&str> = both.flows.iter().map(|f| f.controller.as_str()).collect();
        assert_eq!(controllers, ["tcp-sack", "tcp-sack", "rap"]);
        assert_eq!(both.flows[1].tcp.as_ref().unwrap().min_rto, Some(Time::ms(300.0)));
        assert!(both.flows[2].tcp.is_none());
        for wanted in ["b: `tcp-reno` is `tcp-sack`", "b: `tcp.initial_window` is 10", "b: `tcp.min_rto` is the first"]
        {
            assert!(told.iter().any(|t| t.contains(wanted)), "{wanted}: {told:?}");
        }
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn the_tcp_half_of_a_flow_is_simulated_as_the_kernels_too() {
        let both =
            "[[flows]]\nname = \"a\"\ncontroller = \"tpba\"\n[[flows]]\nname = \"b\"\ncontroller = \"tcp-sack\"\n";
        let (both, told) = as_the_kernel(&scenario(both)).unwrap();
        let [half, tcp] = [0, 1].map(|i| both.flows[i].tcp.clone().unwrap());
        assert_eq!(
            (half.variant, half.linux, half.initial_window),
            (Some(TcpKind::Sack), Some(true), Some(Count::new(10)))
        );
        // The kernel keeps the windows of all connections while they are idle, since the half's is kept.
        assert_eq!((half.restart_after_idle, tcp.restart_after_idle), (Some(false), Some(false)));
        assert!(told.len() == 1 && told[0].contains("a: `tcp.variant` is `sack` here"), "{told:?}");
        let alone = "[[flows]]\nname = \"a\"\ncontroller = \"tpba\"\ntcp = { restart_after_idle = true }\n";
        let (alone, told) = as_the_kernel(&scenario(alone)).unwrap();
        let half = alone.flows[0].tcp.clone().unwrap();
        assert_eq!((half.variant, half.restart_after_idle), (Some(TcpKind::Newreno), Some(true)));
        assert!(told.len() == 1 && told[0].contains("`tcp.variant` is `newreno` here"), "{told:?}");
    }

    #[test]
    fn a_window_that_is_kept_over_pauses_for_the_sake_of_another_flow_is_told_of_where_there_are_pauses() {
        let half = "[[flows]]\nname = \"half\"\ncontroller = \"tpba\"\n";
        let bursts =
            "[[flows]]\nname = \"bursts\"\ncontroller = \"tcp-sack\"\non_off = { on = \"1 s\", off = \"1 s\" }\n";
        let file = "[[flows]]\nname = \"file\"\ncontroller = \"tcp-sack\"\n";
        let restarts = "[[flows]]\nname = \"other\"\ncontroller = \"tpba\"\ntcp = { restart_after_idle = true }\n";
        let of = |flows: &[&str]| {
            let told = as_the_kernel(&scenario(&flows.concat())).unwrap().1;
            told.into_iter().filter(|t| t.contains("restart_after_idle")).collect::<Vec<String>>()
        };
        let kept =
            |flow| format!("flow {flow}: `tcp.restart_after_idle` is false for all connections here, as in real time");
        assert_eq!(of(&[half, bursts, file]), [kept("bursts")]);
        assert_eq!(of(&[half, restarts]), [kept("other")]);
        assert!(of(&[half, file]).is_empty() && of(&[bursts, file]).is_empty() && of(&[bursts, restarts]).is_empty());
    }

    #[test]
    fn seeds_without_randomness_are_one_run_without_an_interval() {
        let runs = |jitter: f64| {
            let s = scenario("[[flows]]\nname = \"a\"\ncontroller = \"tcp-sack\"\n");
            let s = s.modify(|s| s.path.jitter = Time::ms(jitter)).unwrap();
            assert_eq!(jitter_of_a_packet(&s), Some(Duration::from_millis(4)));
            run(&s, &RunOptions { seeds: Seeds::Count(3), ..RunOptions::default() }, &Hooks::default()).unwrap()
        };
        let (still, random) = (runs(0.0), runs(4.0));
        assert_eq!((still.seeds_differ(), random.seeds_differ()), (Some(false), Some(true)));
        assert!(still.metrics().iter().all(|m| m.estimate.ci95.is_none() && m.estimate.n == 3));
        assert!(random.metrics().iter().any(|m| m.estimate.ci95.is_some()));
        let of = |sim: &RunSet| differences(sim, &random)[0].clone();
        assert_eq!((of(&still).sim.ci95, of(&still).sim.n), (None, 1));
        assert!(of(&still).difference_ci95.is_some() && of(&random).sim.ci95.is_some());
    }

    fn metric(values: &[f64]) -> GroupMetric {
        let estimate = Estimate::of(values).unwrap();
        GroupMetric { group: "tcp".to_owned(), metric: Metric::ThroughputBps, estimate }
    }

    #[test]
    fn a_difference_is_the_emulators_number_less_the_simulators_with_both_spreads() {
        let d = Difference::new(&metric(&[90.0, 100.0, 110.0]), &metric(&[100.0, 110.0, 120.0]), "", 1.0);
        assert_eq!((d.difference, d.relative), (10.0, Some(0.1)));
        // t(0.975, 2) = 4.302653, s = 10, n = 3: half-widths of 24.84, together 35.13.
        let [low, high] = d.difference_ci95.unwrap();
        assert!((low + 25.13).abs() < 0.01 && (high - 45.13).abs() < 0.01, "{low} {high}");
        let single = Difference::new(&metric(&[0.0]), &metric(&[1.0]), "", 1.0);
        assert_eq!((single.difference_ci95, single.relative), (None, None));
    }
}
