//! The forms of feedback from a receiver: acknowledgements, reports of a receiver that measures, congestion marks.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel, RedParams};
use fairpace_sim::{
    ControllerSpec, FlowConfig, FlowReport, HopConfig, MediaConfig, Protocol, SimConfig, SimReport, run,
};
use fairpace_units::{Bytes, Duration, Packets, Probability, Rate};

fn spec(scheme: &str, settings: &[(&str, &str)]) -> ControllerSpec {
    let env = Env { max_rate: Rate::mbps(20.0), safety: Safety::Paper, ..Env::default() };
    settings.iter().fold(ControllerSpec::named(scheme, env), |spec, (name, value)| spec.with(name, value))
}

/// Alone over 2 Mbit/s (250 packets/s), RTT 100 ms.
fn alone(controller: ControllerSpec, p: f64, queue: QueueModel) -> SimReport {
    let env = Env { max_rate: Rate::mbps(20.0), safety: Safety::Paper, ..Env::default() };
    let media = MediaConfig::new(controller, FlowParams::new(&env));
    let delay = DelayModel::constant(Duration::from_millis(50));
    let config = SimConfig {
        duration: Duration::from_secs(120),
        warmup: Duration::from_secs(20),
        hops: vec![HopConfig::path(
            LinkSpec {
                rate: RateModel::Fixed(Rate::mbps(2.0)),
                delay,
                queue,
                loss: LossModel::Bernoulli(Probability::new(p).unwrap()),
                ..LinkSpec::default()
            },
            LinkSpec { delay, ..LinkSpec::default() },
        )],

        flows: vec![FlowConfig::new("media", Protocol::Media(media))],
        sample: Some(Duration::from_secs(1)),
        ..SimConfig::default()
    };
    run(config).unwrap()
}

fn drop_tail() -> QueueModel {
    QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(50)) }
}

fn last_p(report: &SimReport) -> f64 {
    report.series.last().and_then(|row| row.loss_event_rate).expect("TFRC knows p")
}

/// Alone at 1 and 5 % loss TFRC gets 1.22 / sqrt(p) packets per RTT and less; who counts the losses does
/// not matter, up to the order of a few events.
#[test]
fn it_does_not_matter_who_measures_and_a_receiver_that_does_reports_once_per_rtt() {
    for p in [0.01, 0.05] {
        let [sender, receiver] =
            ["sender", "receiver"].map(|by| alone(spec("tfrc", &[("measured_by", by)]), p, drop_tail()));
        let rate = |r: &SimReport| r.flows[0].throughput().as_bps();
        let ratio = rate(&receiver) / rate(&sender);
        assert!((ratio - 1.0).abs() < 0.03, "P = {p}: {ratio:.3}");
        assert!((last_p(&receiver) / last_p(&sender) - 1.0).abs() < 0.1, "P = {p}");
        let feedback = |r: &SimReport| r.flows[0].whole.feedback_sent.packets.get();
        // 120 s of 104 ms, and a report more for each of about 60 or 200 loss events.
        assert!((1_150..=1_400).contains(&feedback(&receiver)), "P = {p}: {}", feedback(&receiver));
        assert!(feedback(&sender) > 3 * feedback(&receiver), "P = {p}: {}", feedback(&sender));
    }
}

#[test]
fn a_mark_arrives_counts_as_a_loss_event_and_loses_nothing() {
    let size = Capacity::Packets(Packets::new(50));
    let red = RedParams { ecn: true, weight: 0.02, ..RedParams::for_capacity(size, Bytes::new(1_000)) };
    for by in ["sender", "receiver"] {
        let flow =
            |ecn| alone(spec("tfrc", &[("measured_by", by), ("ecn", ecn)]), 0.0, QueueModel::Red(red)).flows.remove(0);
        let (with, without): (FlowReport, FlowReport) = (flow("on"), flow("off"));
        let marked = with.measured.marked.packets.get();
        assert!((20..=60).contains(&marked), "{by}: {marked}");
        assert_eq!(with.measured.dropped_in_all().packets.get(), 0, "{by}");
        // As many drops as there are marks with ECN, and no marks.
        let dropped = without.measured.dropped_in_all().packets.get();
        assert!((20..=60).contains(&dropped), "{by}: {dropped}");
        assert_eq!(without.measured.marked.packets.get(), 0, "{by}");
        for f in [with, without] {
            assert!((1.9..=2.0).contains(&(f.throughput().as_bps() / 1e6)), "{by}: {}", f.throughput());
        }
    }
}

#[test]
fn a_sack_vector_every_20_ms_acknowledges_all_and_at_the_latest_every_eighth_packet() {
    // 250 packets/s of 1,000 bytes, 5 in 20 ms; 1,500 and more of 100 bytes, at least 30.
    for (size, most) in [(1_000, 5.0), (100, 8.0)] {
        let env =
            Env { max_rate: Rate::mbps(20.0), packet_size: Bytes::new(size), safety: Safety::Paper, ..Env::default() };
        let media = MediaConfig {
            feedback: Some(Duration::from_millis(20)),
            ..MediaConfig::new(ControllerSpec::named("aimd", env).with("rwnd", 1_000), FlowParams::new(&env))
        };
        let delay = DelayModel::constant(Duration::from_millis(50));
        let config = SimConfig {
            hops: vec![HopConfig::path(
                LinkSpec { rate: RateModel::Fixed(Rate::mbps(2.0)), delay, queue: drop_tail(), ..LinkSpec::default() },
                LinkSpec { delay, ..LinkSpec::default() },
            )],

            warmup: Duration::from_secs(20),
            flows: vec![FlowConfig {
                packet_size: Bytes::new(size),
                ..FlowConfig::new("aimd", Protocol::Media(media))
            }],
            ..SimConfig::default()
        };
        let f = run(config).unwrap().flows.remove(0);
        let per_vector = f.measured.received.packets.as_f64() / f.measured.feedback_sent.packets.as_f64();
        // (Data received at the end of the window is acknowledged after it.)
        assert!((0.98 * most..=1.001 * most).contains(&per_vector), "{size} B: {per_vector}");
        assert_eq!(f.measured.rtt_samples, f.measured.feedback_received.packets.get());
        let acknowledged = f.measured.acknowledged as f64 / f.measured.received.packets.as_f64();
        assert!((acknowledged - 1.0).abs() < 0.01, "{size} B: {acknowledged}");
    }
}

#[test]
fn the_series_has_p_rtt_and_timeout_and_none_where_there_is_none() {
    let row = |scheme| alone(spec(scheme, &[]), 0.02, drop_tail()).series;
    let rows = row("tfrc");
    let known: Vec<f64> = rows.iter().filter_map(|r| r.loss_event_rate).collect();
    assert_eq!(known.len(), rows.len());
    // Alone nearly each loss is an event of its own. p is the weighted mean of eight intervals, each
    // with a standard deviation of its mean: a third of p, at 120 instants.
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    assert!((0.015..=0.024).contains(&mean), "{mean:.4}");
    for r in &rows[20..] {
        // After slow start: 4 ms of transmission, 100 ms there and back, no queue to speak of.
        assert!((104..=110).contains(&r.srtt.expect("sampled").as_millis()), "{r:?}");
        assert!(r.rto.expect("sampled") >= Duration::from_millis(200), "{r:?}");
    }
    assert!(row("rap").iter().all(|r| r.loss_event_rate.is_none()));
}
