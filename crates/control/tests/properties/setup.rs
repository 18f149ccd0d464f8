//! The schemes under test, with their settings and environments.

use fairpace_control::{Controller, Env, Flow, FlowParams, Safety, build, schemes};
use fairpace_units::{Bytes, Duration, Rate};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(crate) const SIZE: Bytes = Bytes::new(1_000);

pub(crate) fn cases(default: u32) -> ProptestConfig {
    // Files with failing cases are for a person to commit as named tests, not for the tree.
    ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A scheme with some of its settings varied, in an environment.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) scheme: &'static str,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) env: Env,
    pub(crate) breaker: bool,
    pub(crate) srtt: Option<Duration>,
}

impl Setup {
    pub(crate) fn controller(&self) -> Box<dyn Controller> {
        build(self.scheme, &self.settings, &self.env).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn flow(&self, params: impl FnOnce(&mut FlowParams)) -> Flow {
        let mut p = FlowParams { trace: true, ..FlowParams::new(&self.env) };
        if !self.breaker {
            p.breaker = None;
        }
        params(&mut p);
        Flow::new(self.controller(), p)
    }

    /// Whether the scheme sends by TCP too.
    pub(crate) fn has_tcp_half(&self) -> bool {
        self.controller().tcp().is_some()
    }
}

/// TFRC as ns-2 has it.
const NS2: &[(&str, &str)] = &[
    ("measured_by", "receiver"),
    ("rfc", "3448"),
    ("w_init", "rfc3390"),
    ("equation", "complex"),
    ("discounting", "ns2"),
    ("t_rto", "tcp"),
    ("losses", "ns2"),
    ("increase", "ns2"),
    ("pacing", "ns2"),
    ("reports", "ns2"),
];

/// Settings in which a scheme does something else than by default, flags apart. A scheme without a row is tried with its
/// defaults and its flags.
const VARIANTS: &[(&str, &[(&str, &str)])] = &[
    ("auto", &[("loss_waiting", "1 ms"), ("most_loss", "0")]),
    ("rcs", &[("s_target", "200 pkt/s")]),
    ("rcs", &[("backoff", "off"), ("old_losses", "count"), ("loss_in_detected", "restart")]),
    ("rcs", &[("wdsn_rounding", "exact"), ("wdsn_test", "text"), ("gap_after_backoff", "count")]),
    ("rcs", &[("wdsn_rounding", "up"), ("dummy_acks_in_detected", "count"), ("t_b", "none"), ("rto_backoff", "on")]),
    ("rcs", &[("increase", "dummy"), ("t_b", "1 s")]),
    ("rcs", &[("increase", "timed")]),
    ("rap", &[("fine_grain", "on")]),
    ("srp", &[("p_over", "round")]),
    ("crp", &[("ecn", "on"), ("b", "2")]),
    ("crp", &[("p_over", "20 packets"), ("min_rto", "1 ms")]),
    ("mrp", &[("one_per_rtt", "off")]),
    ("mrp", &[("p_over", "run"), ("ecn", "on")]),
    ("tfrc", &[("ecn", "on"), ("discounting", "on"), ("outage", "rfc")]),
    ("tfrc", &[("rfc", "3448"), ("equation", "modified"), ("smoothing", "off"), ("w_init", "rfc3390")]),
    ("tfrc", &[("measured_by", "receiver"), ("equation", "simple")]),
    ("tfrc", &[("measured_by", "receiver"), ("rfc", "3448"), ("t_gran", "10 ms")]),
    ("tfrc", &[("measured_by", "receiver"), ("rfc", "3448"), ("qs_validation", "next")]),
    ("tfrc", &[("qs_wait", "on"), ("first_timer", "3 s"), ("ecn", "on")]),
    ("tfrc", NS2),
    ("tfrc-sp", &[("measured_by", "receiver"), ("t_gran", "20 ms"), ("header", "0")]),
    ("aimd", &[("beta", "0.5"), ("rwnd", "25"), ("ecn", "on")]),
    ("aimd", &[("alpha", "3"), ("beta", "0.1"), ("initial_window", "10")]),
    ("lda", &[("r_0", "200 pkt/s"), ("air_0", "100 kbit/s"), ("t_adapt", "500 ms"), ("t_rtcp", "200 ms")]),
    ("ldaf", &[("r_0", "100 pkt/s"), ("r_min", "60 kbit/s"), ("r_f", "6"), ("t_adapt", "1 s")]),
    (
        "tpba",
        &[
            ("t_tcp", "100 ms"),
            ("t_running", "1 s"),
            ("t_adapt", "300 ms"),
            ("t_rtcp", "100 ms"),
            ("stop", "percent"),
            ("z", "100"),
        ],
    ),
    (
        "tpba",
        &[
            ("t_running", "500 ms"),
            ("t_adapt", "100 ms"),
            ("stop", "cwnd-cycle"),
            ("z", "50"),
            ("reprobe_below", "0.6"),
        ],
    ),
    ("fixed", &[("rate", "300 pkt/s")]),
];

/// Any scheme of the registry: as it is, with each of its flags at random, or in one of [`VARIANTS`].
pub(crate) fn setup() -> impl Strategy<Value = Setup> {
    let plain = (0..schemes().len()).prop_map(|i| (schemes()[i].name, BTreeMap::new()));
    let flags = (0..schemes().len(), any::<u64>()).prop_map(|(i, bits)| {
        let flags = schemes()[i].params.iter().filter(|p| p.unit() == "flag").enumerate();
        let on = |n: usize| if bits >> n & 1 == 1 { "on" } else { "off" };
        (schemes()[i].name, flags.map(|(n, p)| (p.name.to_owned(), on(n).to_owned())).collect())
    });
    let variants = (0..VARIANTS.len()).prop_map(|i| {
        let (scheme, settings) = VARIANTS[i];
        (scheme, settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    });
    let scheme = prop_oneof![2 => plain, 1 => flags, 3 => variants];
    let srtt = prop_oneof![
        Just(None),
        (1_u64..2_000).prop_map(|ms| Some(Duration::from_millis(ms))),
        Just(Some(Duration::ZERO)),
        Just(Some(Duration::from_secs(100))),
    ];
    (scheme, any::<bool>(), any::<bool>(), srtt, 0..3_usize).prop_map(
        |((scheme, settings), paper, breaker, srtt, limits)| {
            let (min_rate, max_rate) = [
                (Rate::bps(100.0), Rate::mbps(10.0)),
                (Rate::kbps(50.0), Rate::mbps(3.0)),
                (Rate::bps(1e-3), Rate::mbps(100.0)),
            ][limits];
            let safety = if paper { Safety::Paper } else { Safety::Default };
            let env = Env { packet_size: SIZE, min_rate, start_rate: None, max_rate, safety };
            Setup { scheme, settings, env, breaker, srtt }
        },
    )
}

#[test]
fn the_setups_cover_every_scheme() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let tree = setup().new_tree(&mut runner).expect("a setup");
        seen.insert(proptest::strategy::ValueTree::current(&tree).scheme);
    }
    assert_eq!(seen, schemes().iter().map(|s| s.name).collect());
}
