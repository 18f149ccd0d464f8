use super::*;
use crate::RawScenario;
use fairpace_path::LossModel;
use fairpace_sim::tcp::{DelayedAck, TcpParams, TcpVariant};
use fairpace_units::Packets;

/// All fields are written out: one that is new and cannot be chosen does not compile here.
#[test]
fn every_parameter_of_tcp_can_be_chosen() {
    let text = r#"
        [path]
        rate = "5 kbit/s"
        rtt = "100 ms"

        [[flows]]
        controller = "tcp-reno"

        [flows.tcp]
        initial_window = 3
        initial_ssthresh = 12
        dup_threshold = 2
        max_window = 1000
        min_rto = "1 s"
        max_rto = "64 s"
        initial_rto = "2 s"
        tick = "0 s"
        delayed_ack = "100 ms"
        limited_transmit = false
        ecn = true
        send_jitter = "10 ms"
        restart_after_idle = false
        handshake = true
    "#;
    let scenario = Scenario::parse(text, "reno.toml").unwrap_or_else(|e| panic!("{e}"));
    let config = sim_config(&scenario, 1, Record::default()).unwrap_or_else(|e| panic!("{e}"));
    let Protocol::Tcp(tcp, _) = &config.flows[0].protocol else { panic!("a TCP flow") };
    let chosen = TcpParams {
        variant: TcpVariant::Reno,
        initial_window: Packets::new(3),
        max_window: Packets::new(1_000),
        initial_ssthresh: Some(Packets::new(12)),
        min_rto: Duration::from_secs(1),
        max_rto: Duration::from_secs(64),
        initial_rto: Duration::from_secs(2),
        tick: Duration::ZERO,
        dup_threshold: 2,
        limited_transmit: false,
        ecn: true,
        send_jitter: Duration::from_millis(10),
        delayed_ack: Some(DelayedAck { timeout: Duration::from_millis(100) }),
        restart_after_idle: false,
        handshake: true,
        ..TcpParams::default()
    };
    assert_eq!(*tcp, chosen);
}

/// A dumbbell whose ends are both some way off: each flow's round trip is that of the path, of each side, and what is drawn for each side apart.
#[test]
fn a_flow_has_links_of_its_own_at_both_ends() {
    let text = |far: &str| {
        format!(
            "[path]\nrate = \"5 Mbit/s\"\nrtt = \"100 ms\"\n[[flows]]\nname = \"tcp\"\ncontroller = \"tcp-reno\"\ncount = 3\n\
             access = {{ rtt = \"10 ms\", rtt_spread = \"4 ms\", rate = \"10 Mbit/s\" }}\n{far}"
        )
    };
    let config = |far: &str| {
        let scenario = Scenario::parse(&text(far), "x.toml").unwrap_or_else(|e| panic!("{e}"));
        sim_config(&scenario, 1, Record::default()).unwrap_or_else(|e| panic!("{e}"))
    };
    let far = "far_access = { rtt = \"20 ms\", rtt_spread = \"6 ms\", rate = \"2 Mbit/s\", loss = { kind = \"random\", p = 0.01 } }";
    let (both, near) = (config(far), config(""));
    let ms = |link: &Option<LinkSpec>| link.as_ref().map(|link| link.delay.propagation.as_secs_f64() * 1e3);
    let mut drawn = Vec::new();
    for (both, near) in both.flows.iter().zip(&near.flows) {
        let Access { forward_in, forward_out, back_in, back_out } = &both.access;
        assert_eq!((ms(forward_in), ms(back_out)), (ms(&near.access.forward_in), ms(&near.access.back_out)));
        assert_eq!((&near.access.forward_out, &near.access.back_in), (&None, &None));
        let (Some(there), Some(back)) = (ms(forward_out), ms(back_in)) else { panic!("no links behind the path") };
        assert!((20.0..26.0).contains(&(there + back)) && (there - back).abs() < 1e-5, "{there} {back}");
        let lossy = |link: &Option<LinkSpec>| link.as_ref().is_some_and(|link| link.loss != LossModel::None);
        assert_eq!([forward_in, forward_out, back_in, back_out].map(lossy), [false, true, false, false]);
        drawn.extend([there + back - 20.0, 2.0 * ms(forward_in).unwrap_or_default() - 10.0]);
    }
    drawn.sort_by(f64::total_cmp);
    assert!(drawn.windows(2).all(|pair| pair[1] - pair[0] > 1e-3), "each is drawn apart: {drawn:?}");
}

const CALLS: &str = r#"
    duration = "2000 s"
    [satellite]
    [[flows]]
    name = "call"
    controller = "tfrc-sp"
    count = 5
    source = { kind = "voip" }
    terminals = "random"
    arrivals = {}
"#;

#[test]
fn calls_come_at_the_mean_interval_of_their_class_and_last_as_long_as_they_should() {
    let scenario = Scenario::parse(CALLS, "calls.toml").unwrap_or_else(|e| panic!("{e}"));
    let calls = instances(&scenario, &scenario.flows[0], 1);
    // Poisson with a mean of 2,000 starts: standard deviation 45; four of them.
    assert!((1_820..=2_180).contains(&calls.len()), "{}", calls.len());
    assert!(calls.windows(2).all(|w| w[0].start <= w[1].start));
    assert_eq!(calls[9].name, "call-10");
    // Exponential of mean 60 s over those of the first half, which nearly all end within the run: the mean of
    // about 1,000 has a standard deviation of 1.9 s; four of them.
    let half = Instant::ZERO + Duration::from_secs(1_000);
    let lengths: Vec<f64> = calls
        .iter()
        .filter(|c| c.start < half)
        .filter_map(|c| c.stop.map(|s| s.since(c.start).as_secs_f64()))
        .collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    assert!((52.0..=68.0).contains(&mean), "{mean}");
}

#[test]
fn another_seed_makes_other_calls_and_the_same_one_the_same() {
    let scenario = Scenario::parse(CALLS, "calls.toml").unwrap_or_else(|e| panic!("{e}"));
    let starts = |seed| instances(&scenario, &scenario.flows[0], seed).iter().map(|c| c.start).collect::<Vec<_>>();
    assert_eq!(starts(1), starts(1));
    assert_ne!(starts(1)[0], starts(2)[0]);
}

const FADING: &str = r#"
    packet_size = "125 B"
    [path]
    rate = "10 Mbit/s"
    [wireless]
    plan = { max_jitter = "50 ms" }
    [[flows]]
    controller = "tfrc"
    user = 0
    quick_start = "320 kbit/s"
"#;

/// Each of these once ran: without the radio, the plan, the request, as an unlimited link, as a silent source.
#[test]
fn a_change_that_cannot_be_simulated_is_refused_and_leaves_nothing_out() {
    let fading = Scenario::parse(FADING, "fading.toml").unwrap_or_else(|e| panic!("{e}"));
    let config = sim_config(&fading, 1, Record::default()).unwrap();
    assert!(matches!(&config.hops[1], HopConfig::Radio { radio, .. } if radio.base_station.is_some()));
    type Change = fn(&mut RawScenario);
    let table: [(Change, &str); 5] = [
        (
            |s| s.wireless.as_mut().unwrap().channel = crate::ChannelSpec::of("markov"),
            "fading: `wireless.channel.transition` is missing",
        ),
        (
            |s| s.wireless.as_mut().unwrap().plan.as_mut().unwrap().max_jitter = Time::ms(1.0),
            "fading: `wireless.plan.max_jitter` is `1 ms`, which is out of range",
        ),
        (
            |s| s.flows[0].quick_start = Some(QuickStartSpec { rate: Speed::kbps(2e6) }),
            "fading: `flows[0].quick_start` is `2 Gbit/s`, which is out of the range of the Quick-Start option",
        ),
        (
            |s| {
                s.path.rate = None;
                s.path.trace = toml::from_str("file = \"nowhere.down\"").ok();
            },
            "fading: `path.trace.file` names `nowhere.down`, which cannot be read: there is no such file",
        ),
        (
            |s| s.flows[0].controller = "tfcr".to_owned(),
            "fading: `flows[0].controller` is `tfcr`, which is not a controller",
        ),
    ];
    for (change, expected) in table {
        assert_eq!(fading.modify(change).unwrap_err().to_string(), expected);
    }
}
