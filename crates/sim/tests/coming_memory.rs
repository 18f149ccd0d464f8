//! Tens of thousands of short flows, one after another, take the memory of the few that go on. (Alone in its process, whose memory it looks at.)

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::Capacity;
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{
    Coming, ConstantConfig, ControllerSpec, FlowConfig, MediaConfig, Network, Protocol, SimConfig, Source,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Rate};

/// Peak resident memory of this process, kB; `None` where the system does not say.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

/// A flow each 20 ms. How many were taken when they were over, and the kB by which the peak grew after the first tenth of them.
fn growth(flows: u32, protocol: Protocol, lasts: Option<Duration>) -> (usize, u64) {
    let apart = Duration::from_millis(20);
    let each = move || {
        let protocol = protocol.clone();
        (0..flows).map(move |i| {
            let start = Instant::ZERO + apart * i;
            FlowConfig {
                group: "short".to_owned(),
                start,
                stop: lasts.map(|lasts| start + lasts),
                ..FlowConfig::new(format!("short{i}"), protocol.clone())
            }
        })
    };
    let duration = apart * flows + Duration::from_secs(5);
    let config = SimConfig {
        duration,
        coming: Some(Coming::new(each)),
        sample: Some(Duration::from_secs(1)),
        ..SimConfig::default()
    };
    let mut network = Network::new(&config).unwrap();
    let (mut ended, mut rows, mut after_a_tenth) = (0, 0, None);
    for part in 1..=1_000 {
        network.advance(Instant::ZERO + duration / 1_000 * part);
        ended += network.take_ended().len();
        rows += network.take_series().len();
        if part == 100 {
            after_a_tenth = peak_kb();
        }
    }
    let (before, after) = (after_a_tenth.unwrap_or_default(), peak_kb().unwrap_or_default());
    let report = network.into_report();
    assert_eq!((report.flows.len() + ended, report.groups[0].flows), (flows as usize, flows));
    // One each, and one more of those that go on at a sample.
    assert!(rows < flows as usize * 11 / 10, "{rows} rows");
    (ended, after - before)
}

#[test]
fn of_short_flows_that_are_over_nothing_stays() {
    // First those that need least, since a peak stays.
    let constant = ConstantConfig { rate: Rate::mbps(8.0), class: Class::Normal, on_off: None, quick_start: None };
    let env = Env { safety: Safety::Paper, ..Env::default() };
    let media = MediaConfig {
        challenge: false,
        source: Source::Constant(Rate::mbps(8.0)),
        send_buffer: Capacity::Packets(Packets::new(2)),
        ..MediaConfig::new(ControllerSpec::named("tfrc", env), FlowParams::new(&env))
    };
    let transfer = TcpSource::Transfer(Bytes::new(10_000));
    let ten_ms = Some(Duration::from_millis(10));
    for (flows, protocol, lasts) in [
        (30_000, Protocol::Constant(constant), ten_ms),
        (100_000, Protocol::Tcp(TcpParams::default(), transfer), None),
        // A guard that never acts: it is far away when the transfer is done.
        (10_000, Protocol::Tcp(TcpParams::default(), transfer), Some(Duration::from_secs(3_600))),
        (20_000, Protocol::Media(media), ten_ms),
    ] {
        let name = format!("{protocol:.20?}");
        let (ended, kb) = growth(flows, protocol, lasts);
        assert!(ended as u32 > flows - 10, "{name}: {ended} of {flows}");
        // Rows of the links' series take 250 kB of 100,000; a stop that is still to come 16 B.
        assert!(kb < 900, "{name}: {kb} kB more");
    }
}
