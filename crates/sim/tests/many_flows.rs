//! A run of 20,000 short flows takes the memory of those that go on, and finds what a run of few would.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DamaSpec, DelayModel, LinkSpec, LossModel, RateModel};
use fairpace_sim::tcp::{DelayedAck, TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{
    ConstantConfig, ControllerSpec, DeJitter, DelayBaseline, FlowConfig, HopConfig, MANY_FLOWS, MediaConfig, Protocol,
    RouteHop, SimConfig, SimReport, Source, run,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Probability, RandomStream, Rate};

/// Telephone calls of 16 kbit/s and 5 s on average, `per_second` of them, between five terminals.
fn calls(count: u32, per_second: f64) -> SimConfig {
    let env = Env { safety: Safety::Paper, packet_size: Bytes::new(160), ..Env::default() };
    let controller = ControllerSpec::named("tfrc-sp", env).with("measured_by", "receiver");
    let media = MediaConfig {
        challenge: false,
        source: Source::Constant(Rate::kbps(16.0)),
        send_buffer: Capacity::Packets(Packets::new(2)),
        de_jitter: Some(DeJitter { tolerable: Duration::from_millis(100), above: DelayBaseline::Least }),
        ..MediaConfig::new(controller, FlowParams::new(&env))
    };
    let mut random = RandomStream::named(1, "calls");
    let mut now = Instant::ZERO;
    let flows = (0..count)
        .map(|i| {
            now += random.exponential(Duration::from_secs_f64(1.0 / per_second));
            let from = random.below(5) as u32;
            let to = (from + 1 + random.below(4) as u32) % 5;
            FlowConfig {
                group: "calls".to_owned(),
                start: now,
                stop: Some(now + random.exponential(Duration::from_secs(5))),
                route: vec![RouteHop::terminals(1, [from, to])],
                packet_size: Bytes::new(160),
                ..FlowConfig::new(format!("call-{i}"), Protocol::Media(media.clone()))
            }
        })
        .collect();
    SimConfig {
        duration: now.since(Instant::ZERO) + Duration::from_secs(60),
        hops: vec![HopConfig::path(LinkSpec::default(), LinkSpec::default()), HopConfig::satellite(DamaSpec::large())],
        flows,
        opening: Some(Duration::from_secs(2)),
        ..SimConfig::default()
    }
}

/// Peak resident memory of this process, MiB; `None` where the system does not say.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse::<u64>().ok().map(|kb| kb / 1_024)
}

fn sum(report: &SimReport, f: fn(&fairpace_sim::FlowCounts) -> u64) -> u64 {
    report.flows.iter().map(|flow| f(&flow.whole)).sum()
}

#[test]
fn twenty_thousand_short_flows_take_the_memory_of_those_that_go_on() {
    let config = calls(20_000, 20.0);
    let before = peak_mib();
    let report = run(config).unwrap();
    // 1 kB of configuration and 3 kB of state and report for each, and a few MB for the hundred that go on.
    if let (Some(before), Some(after)) = (before, peak_mib()) {
        assert!(after - before < 120, "{before} MiB of configuration, then {after} MiB");
    }
    let report = &report;
    assert_eq!(report.flows.len(), 20_000);
    // 20 calls/s, 5 s: 100 go on at once. Of each, its timers and the satellite's entry are pending.
    let begun = report.flows.iter().filter(|f| f.whole.sent.packets.get() > 0).count();
    assert!(begun > 19_000, "{begun}");
    let group = &report.groups[0];
    assert_eq!((group.name.as_str(), group.flows, report.groups.len()), ("calls", 20_000, 1));
    assert_eq!(group.e2ed.count(), sum(report, |c| c.received.packets.get()));
    assert_eq!(group.owd.count(), group.e2ed.count());
    assert!(group.opening.count() < group.e2ed.count() && group.opening.count() > group.e2ed.count() / 5);
    assert!(group.owd.min() > Duration::from_millis(252) && group.e2ed.quantile(0.5) >= group.owd.quantile(0.5));
    // Each packet is accounted for, at the ends and on the satellite.
    assert!(report.flows.iter().all(|f| f.whole.under_way() == 0));
    for f in &report.flows {
        let waiting = f.media.as_ref().unwrap().send_buffer.get() / 160;
        let c = &f.whole;
        assert_eq!((c.sent.packets + c.overflowed.packets).get() + waiting, c.produced.packets.get(), "{}", f.name);
        assert!(c.late.packets <= c.received.packets);
    }
    let satellite = &report.satellites[0];
    let delivered: u64 = satellite.terminals.iter().map(|t| t.whole.delivered.packets.get()).sum();
    assert_eq!(delivered, sum(report, |c| (c.received.packets + c.feedback_received.packets).get()));
}

#[test]
fn one_of_many_is_the_same_as_one_of_few() {
    // The first hundred calls alone, and beside as many flows that never begin as make them many.
    let mut few = calls(100, 2.0);
    few.sample = Some(Duration::from_secs(1));
    let mut many = few.clone();
    let idle = FlowConfig { start: Instant::from_secs_f64(1e6), ..few.flows[0].clone() };
    let idle = |i| FlowConfig { name: format!("idle-{i}"), group: "idle".to_owned(), ..idle.clone() };
    many.flows.extend((0..MANY_FLOWS as u32).map(idle));
    let (few, many) = (run(few).unwrap(), run(many).unwrap());
    for (a, b) in few.flows.iter().zip(&many.flows) {
        assert_eq!((a.name.as_str(), a.whole, a.srtt, a.stopped), (b.name.as_str(), b.whole, b.srtt, b.stopped));
        let (m, n) = (a.media.as_ref().unwrap(), b.media.as_ref().unwrap());
        assert_eq!((m.counters, m.rate, m.state, m.frames), (n.counters, n.rate, n.state, n.frames));
        assert_eq!((a.owd.mean(), a.e2ed.mean(), a.e2ed.max()), (b.owd.mean(), b.e2ed.mean(), b.e2ed.max()));
        let (fine, coarse) = (a.e2ed.quantile(0.9).as_secs_f64(), b.e2ed.quantile(0.9).as_secs_f64());
        assert!(a.e2ed.count() == 0 || (0.99..=1.07).contains(&(coarse / fine)), "{fine} {coarse}");
    }
    let median = |r: &SimReport| (r.groups[0].e2ed.quantile(0.5), r.groups[0].opening.quantile(0.5));
    assert_eq!(median(&few), median(&many));
    // Rows are those of the flows that go on.
    let rows = |r: &SimReport| r.series.iter().filter(|row| row.throughput > Rate::ZERO).count();
    assert_eq!(rows(&few), rows(&many));
    assert!(many.series.len() * 4 < few.series.len(), "{} {}", many.series.len(), few.series.len());
}

#[test]
fn a_flow_whose_end_comes_before_its_beginning_never_begins() {
    let mut config = calls(1, 1.0);
    config.flows[0].start = Instant::from_secs_f64(5.0);
    config.flows[0].stop = Some(Instant::from_secs_f64(4.0));
    config.duration = Duration::from_secs(60);
    let report = run(config).unwrap();
    assert_eq!(report.flows[0].whole, fairpace_sim::FlowCounts::default());
}

/// So many flows of each kind, 50 ms apart, of some hundred ms each, over a link that loses 2 %.
fn comers_and_goers(each: u32) -> SimConfig {
    let env = Env { safety: Safety::Paper, packet_size: Bytes::new(1_000), ..Env::default() };
    let media = MediaConfig {
        challenge: false,
        source: Source::Constant(Rate::kbps(400.0)),
        ..MediaConfig::new(ControllerSpec::named("tfrc", env), FlowParams::new(&env))
    };
    let delayed = TcpParams {
        variant: TcpVariant::Sack,
        delayed_ack: Some(DelayedAck { timeout: Duration::from_millis(100) }),
        ..TcpParams::default()
    };
    let constant = ConstantConfig { rate: Rate::kbps(400.0), class: Class::Normal, on_off: None, quick_start: None };
    let kinds = [
        ("transfer", Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(20_000)))),
        ("stopped", Protocol::Tcp(delayed, TcpSource::Ftp)),
        ("constant", Protocol::Constant(constant)),
        ("media", Protocol::Media(media)),
    ];
    let lossy = LinkSpec {
        rate: RateModel::Fixed(Rate::mbps(20.0)),
        delay: DelayModel::constant(Duration::from_millis(10)),
        loss: LossModel::Bernoulli(Probability::new(0.02).unwrap()),
        ..LinkSpec::default()
    };
    let flows = (0..each).flat_map(|i| {
        let start = Instant::ZERO + Duration::from_millis(50) * i;
        kinds.clone().map(|(name, protocol)| FlowConfig {
            group: name.to_owned(),
            start,
            stop: (name != "transfer").then(|| start + Duration::from_millis(300)),
            ..FlowConfig::new(format!("{name}-{i}"), protocol)
        })
    });
    SimConfig {
        flows: flows.collect(),
        duration: Duration::from_millis(50) * each + Duration::from_secs(10),
        warmup: Duration::from_secs(1),
        hops: vec![HopConfig::path(lossy.clone(), lossy)],
        sample: Some(Duration::from_millis(250)),
        ..SimConfig::default()
    }
}

#[test]
fn no_flow_of_any_kind_has_rows_after_its_end() {
    let config = comers_and_goers(200);
    let report = run(config.clone()).unwrap();
    assert_eq!(report.flows.len(), 800);
    for (i, flow) in (0..).zip(&report.flows) {
        let rows: Vec<_> = report.series.iter().filter(|row| row.flow == i).collect();
        // Lost segments are sent again first; most flows end within a second.
        let last = rows.last().unwrap();
        assert!(rows.len() <= 40, "{}: {} rows", flow.name, rows.len());
        assert_eq!(last.state, "over", "{}", flow.name);
        assert!(rows.iter().rev().skip(1).all(|row| row.state != "over"), "{}: one row when it is over", flow.name);
        // The rows have everything that the flow did.
        let bits: f64 = rows.iter().map(|row| row.throughput.as_bps() * 0.25).sum();
        assert!((bits / 8.0 - flow.whole.received.bytes.as_f64()).abs() < 1.0, "{}", flow.name);
        assert_eq!(flow.whole.under_way(), 0);
        if flow.group == "transfer" {
            let finished = flow.finished.unwrap();
            assert!(last.at >= finished && last.at.since(finished) < Duration::from_millis(600), "{}", flow.name);
        }
    }
    // Samples grow with the flows that go on, not with those that were: some ten of 800.
    assert!(report.series.len() < 800 * 8, "{}", report.series.len());
}

#[test]
fn what_is_over_is_reported_as_if_it_had_been_kept() {
    // Sixty flows of each kind alone, and beside as many that never begin as make them many.
    let few = comers_and_goers(60);
    let mut many = few.clone();
    let idle = FlowConfig { start: Instant::from_secs_f64(1e6), ..few.flows[0].clone() };
    let idle = |i| FlowConfig { name: format!("idle-{i}"), group: "idle".to_owned(), ..idle.clone() };
    many.flows.extend((0..MANY_FLOWS as u32).map(idle));
    assert!(few.flows.len() < MANY_FLOWS);
    let (few, many) = (run(few).unwrap(), run(many).unwrap());
    for (a, b) in few.flows.iter().zip(&many.flows) {
        assert_eq!((a.name.as_str(), a.whole, a.measured), (b.name.as_str(), b.whole, b.measured));
        assert_eq!((a.srtt, a.finished, a.stopped, a.tcp), (b.srtt, b.finished, b.stopped, b.tcp), "{}", a.name);
    }
    assert!(few.flows.iter().any(|f| f.tcp.is_some_and(|tcp| tcp.counters.timeouts > 0)), "some had to wait");
    // The same rows too, but for those of flows that have not begun, and for the state of what is over.
    let rows = |r: &SimReport| {
        let rows = r.series.iter().filter(|row| row.throughput > Rate::ZERO);
        rows.map(|row| (row.at, row.flow, row.throughput, row.drops)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&few), rows(&many));
    let last = |r: &SimReport, i: u32| r.series.iter().filter(|row| row.flow == i).map(|row| row.at).max();
    for i in 0..few.flows.len() as u32 {
        assert_eq!(last(&few, i), last(&many, i), "{}", few.flows[i as usize].name);
    }
}
