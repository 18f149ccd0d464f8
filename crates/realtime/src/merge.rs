//! One report of what the path counted and what the ends know, as the simulator would have written it.

use super::endpoint::Endpoint;
use super::ip::Ip;
use fairpace_sim::tcp::TcpTally;
use fairpace_sim::{FlowReport, MediaReport, Protocol, SimConfig, SimReport, TcpReport};
use fairpace_units::{Bytes, Instant, Packets};

/// Puts into the path's report what its ends know better.
pub(super) fn merge(report: &mut SimReport, config: &SimConfig, ip: Ip, ends: Vec<Endpoint>) {
    let end = Instant::ZERO + config.duration;
    // The path is stopped a little after the end; what it noted then is not the run's.
    report.series.retain(|row| row.at <= end);
    report.link_series.retain(|row| row.at <= end);
    for row in &mut report.series {
        let Some(moment) = ends.get(row.flow as usize).and_then(|e| e.at(row.at)) else {
            row.state = "waiting";
            continue;
        };
        (row.target_rate, row.cwnd, row.rwnd) = (moment.target_rate, moment.cwnd, moment.rwnd);
        (row.srtt, row.rto, row.loss_event_rate) = (moment.srtt, moment.rto, moment.loss_event_rate);
        (row.send_buffer, row.state) = (moment.send_buffer, moment.state);
    }
    for mut end in ends {
        let events = std::mem::take(&mut end.events);
        if config.trace {
            report.events.extend(events.into_iter().map(|e| (end.flow, e)));
        }
        if let Some(flow) = report.flows.get_mut(end.flow as usize)
            && let Some(spec) = config.flows.get(end.flow as usize)
        {
            one(flow, &spec.protocol, spec.packet_size, ip.tcp_headers(), end);
        }
    }
}

fn one(flow: &mut FlowReport, protocol: &Protocol, packet_size: Bytes, headers: u64, end: Endpoint) {
    let last = end.last();
    let before = end.at_warmup;
    flow.protocol.clone_from(&end.protocol);
    (flow.started, flow.srtt, flow.finished, flow.stopped) = (end.started, last.srtt, end.finished, end.stopped);
    flow.whole.acknowledged = last.acknowledged;
    flow.measured.acknowledged = last.acknowledged.saturating_sub(before.acknowledged);
    if let Some([at_warmup, all]) = end.in_order {
        // In order: whole packets' worth of what the receiver's program was given.
        let payload = packet_size.get().saturating_sub(headers).max(1);
        let packets = |bytes: u64| bytes.div_ceil(payload);
        for (counts, bytes) in [(&mut flow.whole, all), (&mut flow.measured, all - at_warmup)] {
            let n = packets(bytes.get());
            counts.unique.packets = Packets::new(n);
            counts.unique.bytes = bytes + Bytes::new(n * headers);
        }
        let retransmitted = [last.tcp.retransmitted, last.tcp.retransmitted - before.tcp.retransmitted];
        for (counts, n) in [&mut flow.whole, &mut flow.measured].into_iter().zip(retransmitted) {
            counts.retransmitted.packets = Packets::new(n);
            counts.retransmitted.bytes = Bytes::new(n * packet_size.get());
        }
    }
    if let (Protocol::Tcp(..), Some(areas)) = (protocol, end.areas) {
        flow.tcp = Some(TcpReport {
            counters: last.tcp,
            measured: TcpTally::of(last.tcp.since(&before.tcp), &areas),
            cwnd: last.cwnd,
            ssthresh: end.ssthresh,
        });
    }
    if let Protocol::Media(_) = protocol {
        flow.media = Some(MediaReport {
            counters: end.flow_counters.unwrap_or_default(),
            rate: last.target_rate,
            state: last.state,
            frames: end.frames[0],
            frames_dropped: end.frames[1],
            send_buffer: last.send_buffer,
            feedback_expired: 0,
            feedback_unproven: end.unproven,
            quick_start: None,
            frame_records: end.records,
            packet_records: Vec::new(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Moment;
    use fairpace_sim::tcp::{TcpAreas, TcpCounters, TcpParams, TcpSource};
    use fairpace_sim::{FlowConfig, run};
    use fairpace_units::{Duration, Rate};

    #[test]
    fn what_the_ends_know_is_put_beside_what_the_path_counted() {
        let flow = FlowConfig::new("t", Protocol::Tcp(TcpParams::default(), TcpSource::Ftp));
        let config = SimConfig {
            duration: Duration::from_secs(3),
            warmup: Duration::from_secs(1),
            sample: Some(Duration::from_secs(1)),
            flows: vec![flow],
            ..SimConfig::default()
        };
        let external = FlowConfig { protocol: Protocol::External, ..config.flows[0].clone() };
        let mut report = run(SimConfig { flows: vec![external], ..config.clone() }).unwrap();
        let mut end = Endpoint::new(0, "tcp-reno (kernel)".to_owned(), Instant::ZERO);
        let warmup = Instant::ZERO + config.warmup;
        for (ms, cwnd, retransmitted) in [(500, 10.0, 1), (1_000, 20.0, 2), (2_500, 40.0, 7)] {
            let tcp = TcpCounters { retransmitted, ..TcpCounters::default() };
            let at = Instant::ZERO + Duration::from_millis(ms);
            end.note(Moment { at, cwnd, acknowledged: ms, tcp, state: "slow-start", ..Moment::default() }, warmup);
        }
        end.areas = Some(TcpAreas { cwnd: 60.0, time: 2.0, ..TcpAreas::default() });
        end.in_order = Some([Bytes::new(960), Bytes::new(960 * 11)]);
        merge(&mut report, &config, Ip::V4, vec![end]);
        let cwnd: Vec<f64> = report.series.iter().map(|row| row.cwnd).collect();
        assert_eq!(cwnd, [20.0, 20.0, 40.0], "the last moment before each row");
        let flow = &report.flows[0];
        assert_eq!(flow.measured.acknowledged, 1_500);
        assert_eq!(flow.measured.retransmitted.packets, Packets::new(5));
        assert_eq!((flow.goodput(), flow.goodput_pps()), (Rate::kbps(40.0), 5.0), "10 packets of 1,000 B in 2 s");
        assert_eq!(flow.tcp.unwrap().measured.mean_cwnd(), Some(30.0));
    }
}
