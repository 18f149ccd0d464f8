//! Two radios on one backbone, each with a base station that promises a delay of its own. A scenario's file has one `[wireless]`; a path of two
//! is made of two files' configurations.

use fairpace_scenario::{Record, Scenario, sim_config};
use fairpace_sim::{FlowReport, HopConfig, SimConfig, SimReport, run};
use fairpace_units::Duration;

/// A cell of two `aimd` flows of unequal round trip whose base station promises `jitter_ms` to all but 1 % of their packets.
fn cell(jitter_ms: u64, error: f64) -> SimConfig {
    let text = format!(
        "duration = \"300 s\"\nwarmup = \"5 s\"\npacket_size = \"125 B\"\nack_size = \"64 B\"\nfeedback = \"every packet\"\n\
         [path]\nrate = \"10 Mbit/s\"\nrtt = \"75 ms\"\n\
         [wireless]\nrate = \"200 kbit/s\"\nchannel = {{ kind = \"two-state\", error_probability = {error} }}\n\
         uplink = {{ rate = \"200 kbit/s\" }}\nplan = {{ max_jitter = \"{jitter_ms} ms\", outage = 0.01 }}\n\
         [[flows]]\nname = \"near-{jitter_ms}\"\ngroup = \"{jitter_ms}\"\ncontroller = \"aimd\"\nparameters = {{ beta = 0.875 }}\nuser = 0\n\
         tolerable_jitter = \"{jitter_ms} ms\"\n\
         [[flows]]\nname = \"far-{jitter_ms}\"\ngroup = \"{jitter_ms}\"\ncontroller = \"aimd\"\nparameters = {{ beta = 0.875 }}\nuser = 0\n\
         tolerable_jitter = \"{jitter_ms} ms\"\naccess = {{ rtt = \"40 ms\" }}\n"
    );
    let scenario = Scenario::parse(&text, "cell.toml").unwrap();
    sim_config(&scenario, 1, Record::default()).unwrap()
}

/// The radio's place among the hops of a cell.
const RADIO: usize = 1;

/// The first cell with the second's radio behind the same backbone.
fn both(mut first: SimConfig, second: SimConfig) -> SimConfig {
    assert!(matches!(first.hops[..], [HopConfig::Links { .. }, HopConfig::Radio { .. }]), "{:?}", first.hops);
    let third = first.hops.len() as u32;
    let mut other = second.hops[RADIO].clone();
    let HopConfig::Radio { name, .. } = &mut other else { panic!("no radio") };
    "other radio".clone_into(name);
    first.hops.push(other);
    for mut flow in second.flows {
        flow.route.iter_mut().filter(|via| via.hop as usize == RADIO).for_each(|via| via.hop = third);
        first.flows.push(flow);
    }
    first
}

/// The part of a flow's packets that were later than they may be.
fn outage(flow: &FlowReport) -> f64 {
    flow.measured.outage.packets.as_f64() / flow.measured.received.packets.as_f64()
}

/// The window that a flow was given first with both flows of its radio there.
fn windows(report: &SimReport, radio: usize) -> Vec<u32> {
    let rows = &report.radios[radio].windows;
    rows[rows.len() - 2..].iter().map(|row| row.rwnd).collect()
}

#[test]
fn each_of_two_radios_keeps_its_own_promise() {
    const OUTAGE: f64 = 0.01;
    let (tight, loose) = (cell(30, 0.05), cell(90, 0.05));
    // Windows are planned by each radio for its own D: those of the cell alone, whatever the other does.
    let alone = [&tight, &loose].map(|cell| windows(&run(cell.clone()).unwrap(), 0));
    let config = both(tight, loose);
    let bounds: Vec<Option<Duration>> = config.flows.iter().map(|flow| flow.delay_bound).collect();
    let jitter = |of: usize| bounds[of].unwrap().saturating_sub(config.min_owd(&config.flows[of]));
    // The same path, D apart: what a packet may wait beyond the least delay and its slot.
    assert_eq!([2, 3].map(|of| jitter(of) - jitter(of - 2)), [Duration::from_millis(60); 2]);
    let report = run(config.clone()).unwrap();
    assert_eq!([0, 1].map(|radio| windows(&report, radio)), alone);
    assert!(alone[0].iter().sum::<u32>() < alone[1].iter().sum::<u32>(), "{alone:?}");
    for flow in &report.flows {
        let received = flow.measured.received.packets.get();
        assert!(received > 15_000, "{}: {received}", flow.name);
        assert!(outage(flow) <= OUTAGE, "{}: {} of {received}", flow.name, outage(flow));
    }
    // By the other's D the loose radio's flows would have broken the promise: it is its own that each keeps.
    let mut exchanged = config;
    for of in [2, 3] {
        exchanged.flows[of].delay_bound = bounds[of - 2];
    }
    let report = run(exchanged).unwrap();
    for flow in &report.flows[2..] {
        assert!(outage(flow) > 5.0 * OUTAGE, "{}: {}", flow.name, outage(flow));
    }
}
