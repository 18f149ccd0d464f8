//! Flows that send over TCP and UDP in turn, and flows that hear of receiver reports only.

use std::sync::{Arc, Mutex};

use fairpace_control::{Env, FlowEventKind, FlowParams, Safety, StopReason};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, Outage, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{
    Body, ControllerSpec, FlowConfig, HopConfig, MediaConfig, Observer, PacketEvent, PacketFate, Protocol,
    ReceiverBehaviour, SimConfig, SimError, SimReport, Source, TcpHalf, run, run_observed,
};
use fairpace_units::{Bytes, Duration, Instant, Packets, Probability, Rate, Via};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn env(safety: Safety) -> Env {
    Env { packet_size: Bytes::new(552), max_rate: Rate::mbps(10.0), safety, ..Env::default() }
}

fn tpba() -> ControllerSpec {
    ControllerSpec::named("tpba", env(Safety::Paper))
}

/// Data units of ten packets with 512 B of payload: ADU2 of [tpba §6.1].
fn media(controller: ControllerSpec) -> MediaConfig {
    let ControllerSpec::Named { scheme, env, .. } = &controller else { panic!("of the registry") };
    MediaConfig {
        source: Source::Adus { packets: 10 },
        initial_rtt: Some(ms(100)),
        record_frames: true,
        tcp: (scheme == "tpba").then(TcpHalf::default),
        ..MediaConfig::new(controller.clone(), FlowParams::new(env))
    }
}

fn flow(name: &str, media: MediaConfig) -> FlowConfig {
    FlowConfig { packet_size: Bytes::new(552), ..FlowConfig::new(name, Protocol::Media(media)) }
}

/// 50 ms each way.
fn path(rate: RateModel, p: f64, seconds: u64, flows: Vec<FlowConfig>) -> SimConfig {
    let delay = DelayModel::constant(ms(50));
    let queue = match rate {
        RateModel::Unlimited => QueueModel::default(),
        _ => QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(20)) },
    };
    let loss = LossModel::Bernoulli(Probability::new(p).unwrap());
    SimConfig {
        duration: Duration::from_secs(seconds),
        hops: vec![HopConfig::path(
            LinkSpec { rate, delay, queue, loss, ..LinkSpec::default() },
            LinkSpec { delay, loss, ..LinkSpec::default() },
        )],

        flows,
        trace: true,
        ..SimConfig::default()
    }
}

/// When the states of flow 0 changed, in ms, and to which.
fn states(report: &SimReport) -> Vec<(u64, &'static str)> {
    let of = |event: &FlowEventKind| match event {
        FlowEventKind::StateChanged { to, .. } => Some(*to),
        _ => None,
    };
    let own = report.events.iter().filter(|(flow, _)| *flow == 0);
    own.filter_map(|(_, e)| Some((e.at.as_nanos() / 1_000_000, of(&e.what)?))).collect()
}

/// A window of four segments, never less and never more, on a path that only takes time: 4 segments per 100 ms are
/// 176.64 kbit/s, 40 packets/s.
///
/// Cycles of 1 s measure that three times: at 3 s it is found. One segment is written ahead of the window, so at 3.0 s
/// 125 are, at 3.1 s 129, at 3.2 s the 130th ends a data unit; the four that leave then are acknowledged at 3.3 s. The
/// running period is over 10 s later, and its data unit is ten packets of 25 ms each. Probing begins with
/// cwnd_new = 4, so the second one is like the first, 250 ms longer at most for its data unit.
fn forward(config: &mut SimConfig) -> &mut LinkSpec {
    match &mut config.hops[0] {
        HopConfig::Links { forward, .. } => forward,
        other => panic!("{other:?}"),
    }
}

#[test]
fn periods_follow_each_other_as_worked_out_by_hand() {
    let four = Packets::new(4);
    let params =
        TcpParams { initial_window: four, max_window: four, tick: Duration::ZERO, ..TcpHalf::default().params };
    let media = MediaConfig { tcp: Some(TcpHalf { params, segment_size: None }), ..media(tpba()) };
    let report = run(path(RateModel::Unlimited, 0.0, 25, vec![flow("media", media)])).unwrap();
    let states = states(&report);
    let names: Vec<&str> = states.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["draining", "running", "probing", "draining", "running"]);
    let [drain, run, probe, drain_again, run_again] = states[..] else { panic!("five") };
    assert_eq!((drain.0, run.0), (3_200, 3_300));
    assert!((13_300..=13_550).contains(&probe.0), "{probe:?}");
    assert!((3_000..=3_300).contains(&(drain_again.0 - probe.0)), "{drain_again:?}");
    assert_eq!(run_again.0 - drain_again.0, 100);
    // 40 packets/s whatever the way, but for the 100 ms of each draining and the packets on their way.
    let flow = &report.flows[0];
    let lacking = 25 * 40 - flow.whole.received.packets.get();
    assert!((4..=16).contains(&lacking), "{lacking}");
    assert_eq!(flow.tcp.unwrap().counters.retransmitted, 0);
    assert_eq!(flow.tcp.unwrap().cwnd, 4.0);
}

/// The same with `drained = sent`: the last four packets leave at 3.2 s, as above. That they have left shows with the next
/// thing that happens to the flow, the acknowledgement of the first of them, at 3.3 s at the latest; nothing waits for the
/// other three.
#[test]
fn with_drained_sent_udp_begins_while_tcp_has_data_on_the_way() {
    let run_with = |drained: &str| {
        let two_rates = tpba().with("drained", drained).with("t_running", "2 s").with("epsilon", "10 Mbit/s");
        let report =
            run(path(RateModel::Fixed(Rate::mbps(1.2)), 0.0, 30, vec![flow("media", media(two_rates))])).unwrap();
        let states = states(&report);
        let of = |name: &str| states.iter().filter(|(_, s)| *s == name).map(|(at, _)| *at).collect::<Vec<u64>>();
        let waits: Vec<u64> = of("draining").iter().zip(of("running")).map(|(from, to)| to - from).collect();
        assert!(waits.len() >= 3, "{states:?}");
        waits
    };
    // A round trip is 100 ms and the wait in the queue: all that is under way has to come back.
    assert!(run_with("acknowledged").iter().all(|ms| *ms >= 100), "{:?}", run_with("acknowledged"));
    assert!(run_with("sent").iter().all(|ms| *ms < 50), "{:?}", run_with("sent"));
}

/// The window of four segments of 552 B again, on the path that only takes time: TCP carries 176.64 kbit/s, of which
/// 163.84 are payload. Packets of 104 B, 64 of them payload, fill eight to a segment. The rate is one on the wire: UDP
/// sends 176.64 kbit/s of such packets, 108.7 of them payload, and not the 163.84 that TCP could carry.
#[test]
fn the_rate_that_tcp_measures_is_kept_on_the_wire_whatever_the_size_of_packets() {
    let four = Packets::new(4);
    let params =
        TcpParams { initial_window: four, max_window: four, tick: Duration::ZERO, ..TcpHalf::default().params };
    let segment_size = Some(Bytes::new(552));
    let small = MediaConfig {
        source: Source::Adus { packets: 1 },
        tcp: Some(TcpHalf { params, segment_size }),
        ..media(tpba())
    };
    let config = FlowConfig { packet_size: Bytes::new(104), ..flow("media", small) };
    let rows = SimConfig { sample: Some(Duration::from_secs(1)), ..path(RateModel::Unlimited, 0.0, 12, vec![config]) };
    let report = run(rows).unwrap();
    assert_eq!(states(&report).iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["draining", "running"]);
    // A row each second: TCP's rate as it was found at 3 s, and UDP's from 4 s on.
    for second in [3, 4, 8, 12] {
        let rate = report.series[second - 1].target_rate.as_bps() / 1e3;
        assert!((rate - 176.64).abs() < 2.0, "{rate} kbit/s at {second} s");
    }
    let records = &report.flows[0].media.as_ref().unwrap().frame_records;
    let of_udp = |from: f64, to: f64| {
        let within = |at: Instant| (from..to).contains(&at.as_secs_f64());
        records.iter().filter(|r| r.over_tcp == 0 && r.sent.is_some_and(within)).count() as f64
    };
    let on_the_wire = of_udp(5.0, 11.0) / 6.0 * 104.0 * 8.0 / 1e3;
    assert!((on_the_wire - 176.64).abs() < 2.0, "{on_the_wire} kbit/s");
}

/// Short periods, 1 % of the packets lost each way, and a queue that overflows beside another TCP.
fn switching(seed: u64, seconds: u64) -> SimConfig {
    let controller = tpba().with("t_tcp", "50 ms").with("epsilon", "10 Mbit/s").with("t_running", "100 ms");
    let other = Protocol::Tcp(TcpParams::default(), TcpSource::Ftp);
    let flows = vec![flow("media", media(controller)), FlowConfig::new("tcp", other)];
    SimConfig { seed, ..path(RateModel::Fixed(Rate::mbps(1.2)), 0.01, seconds, flows) }
}

#[test]
fn no_data_unit_is_torn_or_lost_by_hundreds_of_switches_on_a_path_that_loses_packets() {
    for seed in 1..=3 {
        let report = run(switching(seed, 300)).unwrap();
        let flow = &report.flows[0];
        let records = &flow.media.as_ref().unwrap().frame_records;
        let switches = records.windows(2).filter(|pair| pair[0].via() != pair[1].via()).count();
        assert!(switches >= 300, "{switches}");
        let (last, done) = records.split_last().unwrap();
        let mut before: Option<Instant> = None;
        let (mut over_udp, mut over_tcp) = (u64::from(last.received), 0);
        for (record, next) in done.iter().zip(&records[1..]) {
            assert!(record.over_tcp == 0 || record.over_tcp == record.packets, "{record:?}");
            if record.via() == Via::Udp {
                over_udp += u64::from(record.received);
                continue;
            }
            over_tcp += u64::from(record.received);
            // The last period may go on.
            let over = record.complete.is_some() || next.complete.is_none();
            assert!(over, "{record:?}");
            if let Some(at) = record.complete {
                assert!(before.is_none_or(|b| b <= at), "in order");
                before = Some(at);
            }
            // Data over UDP follows only when TCP is drained.
            if next.via() == Via::Udp {
                assert!(record.complete.is_some_and(|at| at < next.captured), "{record:?}");
            }
        }
        // Packets that arrived over UDP, and segments that arrived in order: one packet each.
        let unique = flow.whole.unique.packets.get();
        assert!(unique - (over_udp + over_tcp) <= 20, "{unique} {over_udp} {over_tcp}");
        // Nothing is made or lost without being counted.
        assert!(flow.whole.under_way() < 100);
        assert!(flow.whole.retransmitted.packets.get() > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let told = |seed| {
        let report = run(switching(seed, 30)).unwrap();
        format!("{:?} {:?}", report.flows[0].media, report.events)
    };
    assert_eq!(told(1), told(1));
    assert_ne!(told(1), told(2));
}

/// Sizes of the TCP segments that are sent for the first time, with the times at which they leave.
#[derive(Clone, Default)]
struct Segments(Arc<Mutex<Vec<(Instant, u32)>>>);

impl Observer for Segments {
    fn on_packet(&mut self, event: &PacketEvent) {
        if let (PacketFate::Sent, Body::TcpData { retransmission: false, .. }) = (event.fate, event.packet.body) {
            self.0.lock().unwrap().push((event.at, event.packet.size));
        }
    }
}

/// ADU1 of [tpba §6.1]: 64 B of payload each. A segment of 552 B has room for eight of them. The first of a period
/// finds nothing outstanding and leaves alone, the last may not be full; TCP waits for all others [RFC 896].
#[test]
fn small_packets_share_segments_over_tcp_and_none_over_udp() {
    let small = MediaConfig {
        source: Source::Adus { packets: 1 },
        tcp: Some(TcpHalf { segment_size: Some(Bytes::new(552)), ..TcpHalf::default() }),
        ..media(tpba().with("t_running", "2 s").with("epsilon", "10 Mbit/s"))
    };
    let config = FlowConfig { packet_size: Bytes::new(104), ..flow("media", small) };
    let seen = Segments::default();
    let report =
        run_observed(path(RateModel::Fixed(Rate::mbps(1.2)), 0.0, 30, vec![config]), Box::new(seen.clone())).unwrap();
    let segments = seen.0.lock().unwrap();
    let part = segments.iter().filter(|(_, size)| *size != 552).count();
    let periods = 1 + states(&report).iter().filter(|(_, name)| *name == "probing").count();
    assert!(periods >= 3, "{periods}");
    assert!((periods..=2 * periods).contains(&part), "{part} of {} in {periods}", segments.len());
    // The payload of the segments is the packets' payload, and each packet arrived once.
    let payload: u64 = segments.iter().map(|(_, size)| u64::from(size - 40)).sum();
    let records = &report.flows[0].media.as_ref().unwrap().frame_records;
    let over_tcp = records.iter().filter(|record| record.over_tcp > 0);
    assert_eq!(payload % 64, 0);
    assert!(over_tcp.count() as u64 - payload / 64 <= 8);
}

/// LDA knows b after 8 pairs, 128 packets; until then AIR stays AIR_0, and (C) allows Mbit/s.
#[test]
fn lda_takes_a_step_of_air_0_every_t_adapt_until_it_knows_the_bottleneck() {
    let spec = |scheme: &str| ControllerSpec::named(scheme, env(Safety::Paper));
    let config = path(RateModel::Fixed(Rate::mbps(1.2)), 0.0, 300, vec![flow("media", media(spec("lda")))]);
    let report = run(SimConfig { sample: Some(Duration::from_secs(1)), ..config.clone() }).unwrap();
    let rate = |second: usize| report.series[second - 1].target_rate.as_bps() / 1e3;
    assert_eq!([rate(1), rate(4), rate(7), rate(10)].map(f64::round), [10.0, 20.0, 30.0, 40.0]);
    // Then AIR shrinks by 1 - r/b each time, and the sum of what is left is small.
    assert!((100.0..300.0).contains(&rate(300)), "{}", rate(300));
    assert_eq!(report.flows[0].whole.dropped_in_all().packets.get(), 0);
    // Reports measure the way there and back, and the time on the wire: (552 + 40 B) / 1.2 Mbit/s is 4 ms at most.
    let srtt = report.flows[0].srtt.unwrap();
    assert!((ms(100)..ms(105)).contains(&srtt), "{srtt:?}");
    // With a fixed AIR it goes on: r(n+1) = r(n) + 10 (1 - r(n)/1200) kbit/s, 1200 (1 - (1 - 10/1200)^n) nearly.
    let fixed = run(SimConfig { flows: vec![flow("media", media(spec("ldaf")))], ..config }).unwrap();
    let last = fixed.flows[0].media.as_ref().unwrap().rate.as_bps() / 1e3;
    assert!((600.0..730.0).contains(&last), "{last}");
}

/// One packet in five is lost. Who says so makes LDA slow; who does not gets the flow's cap and no more.
#[test]
fn a_receiver_that_hides_losses_from_lda_gets_at_most_the_flows_cap() {
    let cap = Rate::kbps(300.0);
    let sent = |receiver| {
        let env = Env { max_rate: cap, ..env(Safety::Default) };
        let lda = ControllerSpec::named("lda", env).with("r_0", "100 kbit/s").with("air_0", "100 kbit/s");
        let media = MediaConfig { receiver, ..media(lda) };
        let report = run(path(RateModel::Fixed(Rate::mbps(1.2)), 0.2, 60, vec![flow("media", media)])).unwrap();
        let sent = report.flows[0].whole.sent.bytes.as_f64() * 8.0 / 60.0;
        assert!(sent <= cap.as_bps() * 1.01, "{sent}");
        sent
    };
    let (honest, liar) = (sent(ReceiverBehaviour::Honest), sent(ReceiverBehaviour::ZeroLossReports));
    assert!(honest < 0.3 * liar && liar > 0.7 * cap.as_bps(), "{honest} {liar}");
}

#[test]
fn a_tcp_half_is_for_whom_sends_over_it() {
    let none = MediaConfig { tcp: None, ..media(tpba()) };
    let refused = run(path(RateModel::Unlimited, 0.0, 1, vec![flow("a", none)])).unwrap_err();
    assert!(matches!(&refused, SimError::NoTcpHalf { flow, controller } if flow == "a" && controller == "tpba"));
    let rap = ControllerSpec::named("rap", env(Safety::Paper));
    let useless = MediaConfig { tcp: Some(TcpHalf::default()), ..media(rap) };
    let refused = run(path(RateModel::Unlimited, 0.0, 1, vec![flow("b", useless)])).unwrap_err();
    assert!(matches!(&refused, SimError::UselessTcpHalf { flow, controller } if flow == "b" && controller == "rap"));
    let narrow = TcpHalf { segment_size: Some(Bytes::new(40)), ..TcpHalf::default() };
    let refused = MediaConfig { tcp: Some(narrow), ..media(tpba()) };
    let refused = run(path(RateModel::Unlimited, 0.0, 1, vec![flow("c", refused)])).unwrap_err();
    assert!(refused.to_string().contains("`flow `c`: tcp.segment_size` is 40"), "{refused}");
}

/// Data units of 250 ms, running periods of 10 s: the path dies 1 s before one ends, so that it is unheard by UDP and then by
/// TCP, for 15 s in all and what lies between two packets or reports.
#[test]
fn a_path_that_dies_at_the_end_of_a_running_period_ends_the_flow_no_later() {
    for left in [1, 5, 9] {
        let spec = ControllerSpec::named("tpba", env(Safety::Default)).with("epsilon", "10 Mbit/s");
        let config = path(RateModel::Fixed(Rate::mbps(1.2)), 0.0, 120, vec![flow("media", media(spec))]);
        let ends = states(&run(config.clone()).unwrap()).iter().find(|(_, name)| *name == "probing").unwrap().0;
        let start = Instant::ZERO + ms(ends - left * 1_000);
        let mut config = config;
        forward(&mut config).outage = vec![Outage::of(start, Duration::from_secs(3_600))];
        let report = run(config).unwrap();
        assert!(matches!(report.flows[0].stopped, Some(StopReason::FeedbackTimeout { .. })), "{left}");
        let tripped = |e: &FlowEventKind| matches!(e, FlowEventKind::Tripped { .. });
        let stopped = report.events.iter().find_map(|(_, e)| tripped(&e.what).then_some(e.at)).unwrap();
        let after = stopped.since(start).as_secs_f64();
        assert!((13.5..=16.5).contains(&after), "{left} s before its end: {after}");
    }
}

/// From 5 s on nothing gets through. TCP's own timeouts would take minutes; the breaker takes 15 s of the state it is in.
#[test]
fn a_dead_path_ends_a_flow_in_either_state_and_its_tcp_falls_silent() {
    for (t_running, state) in [("1 h", "running"), ("100 ms", "probing")] {
        let safe = ControllerSpec::named("tpba", env(Safety::Default)).with("t_running", t_running);
        let epsilon = if state == "running" { "10 Mbit/s" } else { "1 bit/s" };
        let config = flow("media", media(safe.with("epsilon", epsilon)));
        let mut config = path(RateModel::Fixed(Rate::mbps(1.2)), 0.0, 120, vec![config]);
        forward(&mut config).outage = vec![Outage::of(Instant::from_secs_f64(5.0), Duration::from_secs(3_600))];
        let seen = Segments::default();
        let report = run_observed(config, Box::new(seen.clone())).unwrap();
        let flow = &report.flows[0];
        assert!(matches!(flow.stopped, Some(StopReason::FeedbackTimeout { .. })), "{:?}", flow.stopped);
        let stopped =
            report.events.iter().find_map(|(_, e)| matches!(e.what, FlowEventKind::Tripped { .. }).then_some(e.at));
        let stopped = stopped.unwrap().as_secs_f64();
        assert!((19.0..=40.0).contains(&stopped), "{state}: {stopped}");
        let last = seen.0.lock().unwrap().last().unwrap().0.as_secs_f64();
        assert!(last <= stopped, "{state}: {last}");
    }
}

/// A run of many flows lets go of those that are over; a TCP that still repairs losses is not.
#[test]
fn what_tcp_has_sent_when_its_flow_stops_is_delivered_in_runs_of_many_flows_too() {
    let end = Instant::from_secs_f64(2.0);
    let flows = (0..300).map(|i| FlowConfig { stop: Some(end), ..flow(&format!("media-{i}"), media(tpba())) });
    let report = run(path(RateModel::Unlimited, 0.02, 60, flows.collect())).unwrap();
    let mut repaired = 0;
    for flow in &report.flows {
        let records = &flow.media.as_ref().unwrap().frame_records;
        let (last, whole) = records.split_last().unwrap();
        assert!(whole.iter().all(|record| record.complete.is_some()), "{}", flow.name);
        // One segment may have been written and not sent.
        assert!(last.over_tcp - last.received <= 1, "{last:?}");
        assert_eq!(flow.whole.under_way(), 0);
        repaired += flow.whole.retransmitted.packets.get();
    }
    assert!(repaired > 300, "{repaired}");
}
