//! A hundred thousand short flows, one after another, take the memory of the few that go on. (Alone in its process, whose memory it looks at.)

use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{Coming, FlowConfig, Network, Protocol, SimConfig};
use fairpace_units::{Bytes, Duration, Instant};

/// Peak resident memory of this process, kB; `None` where the system does not say.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

#[test]
fn a_hundred_thousand_short_flows_take_no_more_memory_than_ten_thousand() {
    const FLOWS: u32 = 100_000;
    let apart = Duration::from_millis(20);
    let each = move || {
        (0..FLOWS).map(move |i| FlowConfig {
            group: "short".to_owned(),
            start: Instant::ZERO + apart * i,
            ..FlowConfig::new(
                format!("short{i}"),
                Protocol::Tcp(TcpParams::default(), TcpSource::Transfer(Bytes::new(10_000))),
            )
        })
    };
    let duration = apart * FLOWS + Duration::from_secs(1);
    let config = SimConfig {
        duration,
        coming: Some(Coming::new(each)),
        sample: Some(Duration::from_secs(1)),
        ..SimConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    let (mut finished, mut rows, mut after_a_tenth) = (0, 0, None);
    for part in 1..=1_000 {
        network.advance(Instant::ZERO + duration / 1_000 * part);
        finished += network.take_over().iter().filter(|(_, flow)| flow.finished.is_some()).count();
        rows += network.take_series().len();
        if part == 100 {
            after_a_tenth = peak_kb();
        }
    }
    assert_eq!(finished, FLOWS as usize);
    // One each, and one more of those that go on at a sample.
    assert!(rows < FLOWS as usize * 11 / 10, "{rows} rows");
    if let (Some(before), Some(after)) = (after_a_tenth, peak_kb()) {
        // Rows of the links' series, of which there are two a second, take 250 kB of it.
        assert!(after - before < 600, "{before} kB after a tenth of them, {after} kB in the end");
    }
    let report = network.into_report();
    assert_eq!((report.flows.len(), report.groups[0].flows), (0, FLOWS));
    assert_eq!(report.groups[0].owd.count(), 10 * u64::from(FLOWS));
}
