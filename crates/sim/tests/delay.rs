//! Where the time of a media packet goes: send buffer, network, de-jitter buffer; worked by hand.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DelayModel, LinkSpec, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{
    ControllerSpec, DeJitter, DelayBaseline, FlowConfig, FlowReport, HopConfig, MediaConfig, Protocol, SimConfig,
    Source, run,
};
use fairpace_units::{Bytes, Duration, Instant, Packets, Rate};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A sender of 10 packets/s whose source makes 20, for a second: one packet every 50 ms from 0 on, one
/// sent every 100 ms.
fn slow_sender(send_buffer: Capacity) -> MediaConfig {
    let env = Env { safety: Safety::Paper, ..Env::default() };
    MediaConfig {
        initial_rtt: Some(ms(100)),
        source: Source::Constant(Rate::packets_per_second(20.0, Bytes::new(1_000))),
        send_buffer,
        record_packets: Some(Duration::from_secs(60)),
        ..MediaConfig::new(ControllerSpec::named("fixed", env).with("rate", "10 pkt/s"), FlowParams::new(&env))
    }
}

fn of(media: MediaConfig, bottleneck: LinkSpec) -> FlowReport {
    let config = SimConfig {
        duration: Duration::from_secs(3),
        hops: vec![HopConfig::path(bottleneck, LinkSpec::default())],
        flows: vec![FlowConfig { stop: Some(at(995)), ..FlowConfig::new("media", Protocol::Media(media)) }],
        ..SimConfig::default()
    };
    run(config).unwrap().flows.remove(0)
}

fn wire(delay: Duration) -> LinkSpec {
    LinkSpec { delay: DelayModel::constant(delay), ..LinkSpec::default() }
}

#[test]
fn the_end_to_end_delay_counts_from_the_source_and_the_one_way_delay_from_the_sender() {
    let flow = of(slow_sender(Capacity::Unlimited), wire(ms(40)));
    let records = &flow.media.as_ref().unwrap().packet_records;
    // Packet n is produced at 50 n, sent at 100 n, received 40 ms later; nothing is sent from 995 ms on.
    assert_eq!(records.len(), 10);
    for (n, r) in (0..).zip(records) {
        assert_eq!((r.seq, r.born, r.sent, r.received), (n, at(50 * n), at(100 * n), Some(at(100 * n + 40))));
        assert_eq!((r.owd(), r.e2ed()), (Some(ms(40)), Some(ms(50 * n + 40))));
    }
    assert_eq!((flow.owd.min(), flow.owd.max()), (ms(40), ms(40)));
    // The mean of 40, 90 ... 490 ms.
    assert_eq!((flow.e2ed.count(), flow.e2ed.mean(), flow.e2ed.max()), (10, ms(265), ms(490)));
    // Of the 20 produced, 10 wait when the flow stops, and its source with it.
    assert_eq!((flow.whole.produced.packets.get(), flow.whole.overflowed.packets.get()), (20, 0));
    assert_eq!(flow.media.unwrap().send_buffer, Bytes::new(10_000));
}

#[test]
fn a_full_send_buffer_refuses_the_newest_and_counts_it() {
    for limit in [Capacity::Packets(Packets::new(2)), Capacity::Bytes(Bytes::new(2_999))] {
        let flow = of(slow_sender(limit), wire(ms(40)));
        let records = &flow.media.as_ref().unwrap().packet_records;
        let born: Vec<u64> = records.iter().map(|r| r.born.as_nanos() / 1_000_000).collect();
        // 50 and 100 wait; 50 leaves, 150 comes; from then on each packet on a full 100 ms finds two there (the
        // source comes first, the departure after it) and each between two departures finds one.
        assert_eq!(born, [0, 50, 100, 150, 250, 350, 450, 550, 650, 750]);
        let c = &flow.whole;
        let waiting = flow.media.as_ref().unwrap().send_buffer.get() / 1_000;
        assert_eq!((c.sent.packets.get(), waiting), (10, 2));
        assert_eq!((c.produced.packets.get(), c.overflowed.packets.get()), (20, 8));
        assert_eq!(c.overflowed.bytes, Bytes::new(8_000));
        // Three packets deep at most: 150 ms and the network.
        assert!(flow.e2ed.max() <= ms(190), "{:?}", flow.e2ed.max());
    }
}

#[test]
fn who_comes_later_than_tolerable_is_discarded_and_the_baseline_decides_who_that_is() {
    // One packet of 1,000 B each 50 ms over 100 kbit/s: 80 ms each, so packet n is received at 80 (n + 1).
    // Its delay is 80 + 30 n; sent and produced at the same time.
    let env = Env { safety: Safety::Paper, ..Env::default() };
    let link = LinkSpec {
        rate: RateModel::Fixed(Rate::kbps(100.0)),
        queue: QueueModel::DropTail { capacity: Capacity::Unlimited },
        ..LinkSpec::default()
    };
    let media = |above| MediaConfig {
        initial_rtt: Some(ms(100)),
        source: Source::Constant(Rate::packets_per_second(20.0, Bytes::new(1_000))),
        de_jitter: Some(DeJitter { tolerable: ms(100), above }),
        ..MediaConfig::new(ControllerSpec::named("fixed", env).with("rate", "1000 pkt/s"), FlowParams::new(&env))
    };
    for above in [DelayBaseline::Least, DelayBaseline::First] {
        let flow = of(media(above), link.clone());
        // The first is the least: late from 180 ms on, which is past packet 3 (170 ms).
        let c = &flow.whole;
        assert_eq!((c.received.packets.get(), c.late.packets.get(), c.late.bytes.get()), (20, 16, 16_000));
    }
    // At 200 kbit/s a packet takes 40 ms. The first meets three packets of somebody else: 159 ms; each after it
    // 10 ms less, down to 40. At 695 ms three more come: the packets of 701 and 751 ms take 154 and 144 ms, more
    // than 100 above the least, and less than the first.
    let late = |above| {
        let burst = |name: &str, start| {
            let params = TcpParams { initial_window: Packets::new(3), ..TcpParams::default() };
            let protocol = Protocol::Tcp(params, TcpSource::Transfer(Bytes::new(3_000)));
            FlowConfig { start, ..FlowConfig::new(name, protocol) }
        };
        let media = FlowConfig {
            start: at(1),
            stop: Some(at(995)),
            ..FlowConfig::new("media", Protocol::Media(MediaConfig { record_packets: Some(ms(5_000)), ..media(above) }))
        };
        let config = SimConfig {
            hops: vec![HopConfig::path(
                LinkSpec { rate: RateModel::Fixed(Rate::kbps(200.0)), ..link.clone() },
                LinkSpec::default(),
            )],
            flows: vec![burst("first", at(0)), media, burst("second", at(695))],
            ..SimConfig::default()
        };
        let flow = run(config).unwrap().flows.remove(1);
        let records = flow.media.unwrap().packet_records;
        let e2ed: Vec<u64> = records.iter().filter_map(|r| r.e2ed()).map(|d| d.as_millis() as u64).collect();
        assert_eq!((e2ed[0], e2ed[1], e2ed[13], e2ed[14], e2ed[15]), (159, 149, 40, 154, 144), "{e2ed:?}");
        flow.whole.late.packets.get()
    };
    assert_eq!((late(DelayBaseline::First), late(DelayBaseline::Least)), (0, 2));
}
