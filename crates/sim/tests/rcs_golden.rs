//! Figs. 12, 14 and 16 of the RCS paper as tables that a person can read, and what they must show.
//! `FAIRPACE_BLESS=1 cargo test -p fairpace-sim --test rcs_golden` writes them anew.
//!
//! One RCS source over RTT 550 ms. The paper gives S0 = 22 packets/s and no S_Target; 44 leaves room
//! above S0. Time in the tables counts from t0, the detection of the loss, and in SRTT.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fairpace_control::{Env, FlowEventKind, FlowParams, LossHow, Safety};
use fairpace_path::{Capacity, DelayModel, LinkSpec, Outage, OutageAt, QueueModel, RateModel};
use fairpace_sim::{
    Body, ControllerSpec, FlowConfig, HopConfig, MediaConfig, Observer, PacketEvent, PacketFate, Protocol, SimConfig,
    run, run_observed,
};
use fairpace_units::{Bytes, Duration, Instant, Kind, Packets, Rate};

const RTT: f64 = 0.55;
const S_TARGET: f64 = 44.0;
const PACKET: Bytes = Bytes::new(1_000);

fn pps(rate: f64) -> Rate {
    Rate::packets_per_second(rate, PACKET)
}

fn at(seconds: f64) -> Instant {
    Instant::from_secs_f64(seconds)
}

/// One RCS source; `rate` is what the satellite link carries and when.
fn source(rate: Vec<(Instant, Rate)>, k: u64, outage: Vec<Outage>, seconds: f64) -> SimConfig {
    let env = Env { packet_size: PACKET, max_rate: pps(1_000.0), safety: Safety::Paper, ..Env::default() };
    let rcs = ControllerSpec::named("rcs", env).with("s_target", format!("{S_TARGET} pkt/s"));
    let link = |rate| LinkSpec {
        rate,
        delay: DelayModel::constant(Duration::from_millis(275)),
        queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(k)) },
        outage: outage.clone(),
        // No signal where a packet would arrive: what is in the air when the blackout begins is lost.
        outage_at: OutageAt::Receiver,
        ..LinkSpec::default()
    };
    let media =
        MediaConfig { initial_rtt: Some(Duration::from_millis(550)), ..MediaConfig::new(rcs, FlowParams::new(&env)) };
    SimConfig {
        duration: Duration::from_secs_f64(seconds),
        hops: vec![HopConfig::path(link(RateModel::Schedule(rate)), link(RateModel::Unlimited))],

        flows: vec![FlowConfig::new("rcs", Protocol::Media(media))],
        trace: true,
        ..SimConfig::default()
    }
}

/// A row: what happened, when, and what held afterwards.
#[derive(Clone, Debug)]
struct Step {
    t: f64,
    state: String,
    pps: f64,
    what: String,
    lost_by: Option<LossHow>,
}

struct Trace {
    steps: Vec<Step>,
    srtt: f64,
}

impl Trace {
    fn of(config: SimConfig) -> Trace {
        let report = run(config).expect("valid");
        let (mut state, mut rate) = (String::from("Initial"), 0.0);
        let mut steps: Vec<Step> = Vec::new();
        for (_, event) in &report.events {
            let t = event.at.as_secs_f64();
            let (what, lost_by) = match event.what {
                FlowEventKind::StateChanged { to, reason, .. } => {
                    state = to.to_owned();
                    (reason.to_owned(), None)
                }
                FlowEventKind::RateChanged { rate: new, reason } => {
                    rate = new.as_packets_per_second(PACKET);
                    (reason.to_owned(), None)
                }
                FlowEventKind::Lost { seq, how } => (format!("loss of data packet {seq} noticed"), Some(how)),
                _ => panic!("safety is off: {event:?}"),
            };
            let step = Step { t, state: state.clone(), pps: rate, what, lost_by };
            // State and rate change at one instant: one row, both reasons if they differ.
            match steps.last_mut() {
                Some(last) if last.t == t && last.lost_by.is_none() && step.lost_by.is_none() => {
                    let what = if last.what == step.what {
                        step.what.clone()
                    } else {
                        format!("{}; {}", last.what, step.what)
                    };
                    *last = Step { what, ..step };
                }
                _ => steps.push(step),
            }
        }
        let srtt = report.flows[0].srtt.expect("acknowledged").as_secs_f64();
        Trace { steps, srtt }
    }

    /// Index of the first step in that state.
    fn first(&self, state: &str) -> usize {
        self.steps.iter().position(|s| s.state == state).unwrap_or_else(|| panic!("never {state}:\n{}", self.table("")))
    }

    /// S just before step `i`.
    fn before(&self, i: usize) -> f64 {
        self.steps[i - 1].pps
    }

    /// S at time `t`.
    fn rate_at(&self, t: f64) -> f64 {
        self.steps.iter().take_while(|s| s.t <= t).last().expect("before the trace").pps
    }

    fn table(&self, head: &str) -> String {
        let t0 = self.steps.iter().find(|s| s.state == "Detected").map_or(0.0, |s| s.t);
        let mut out = head.to_owned();
        writeln!(out, "t0 = {t0:.3} s, SRTT at the end = {:.1} ms\n", self.srtt * 1e3).unwrap();
        writeln!(out, "{:>9} {:>8}  {:<9} {:>7}  what", "t-t0 s", "SRTT", "state", "S pkt/s").unwrap();
        for s in &self.steps {
            let (t, n) = (s.t - t0, (s.t - t0) / RTT);
            writeln!(out, "{t:>9.3} {n:>8.2}  {:<9} {:>7.2}  {}", s.state, s.pps, s.what).unwrap();
        }
        out
    }

    fn check(&self, name: &str, head: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        let found = self.table(head);
        if std::env::var_os("FAIRPACE_BLESS").is_some() {
            std::fs::write(&path, &found).expect("writable");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{name} has changed; FAIRPACE_BLESS=1 writes it anew. Now:\n{found}");
    }
}

/// When each data packet enters the network.
#[derive(Clone, Default)]
struct DataTimes(Arc<Mutex<Vec<f64>>>);

impl Observer for DataTimes {
    fn on_packet(&mut self, event: &PacketEvent) {
        if let (PacketFate::Sent, Body::Media { kind: Kind::Data, .. }) = (event.fate, event.packet.body) {
            self.0.lock().unwrap().push(event.at.as_secs_f64());
        }
    }
}

/// An outage that hits exactly the data packet sent next after `t`, by being where it arrives.
fn lose_one(config: &SimConfig, t: f64) -> Vec<Outage> {
    let times = DataTimes::default();
    run_observed(config.clone(), Box::new(times.clone())).expect("valid");
    let sent = *times.0.lock().unwrap().iter().find(|s| **s >= t).expect("data is sent");
    // Arrives 275 ms and one transmission (0.77 ms) later; data packets are 20 ms apart at least.
    vec![Outage::of(at(sent + 0.275), Duration::from_millis(3))]
}

/// Narrow while Initial probes, so that it finds about 18 packets/s and Steady begins below S0; then
/// wide, so that nothing but the one loss happens.
fn wide_after_initial(outage: Vec<Outage>, both_ways: bool, seconds: f64) -> SimConfig {
    let mut config = source(vec![(at(0.0), pps(22.0)), (at(1.2), pps(1_300.0))], 2, outage, seconds);
    if let HopConfig::Links { back, .. } = &mut config.hops[0]
        && !both_ways
    {
        back.outage.clear();
    }
    config
}

#[test]
fn fig12_one_loss_by_link_error_is_made_good_in_two_srtt() {
    // S is 20 packets/s when the packet leaves, and has been raised once more, to S0 = 22, when three
    // later ACKs tell, one RTT and three packets later.
    let outage = lose_one(&wide_after_initial(vec![], false, 6.0), 1.95);
    let trace = Trace::of(wide_after_initial(outage, false, 6.0));
    trace.check(
        "fig12.txt",
        "RCS, Fig. 12: S over time, one data packet lost by a link error.\n\
         Path: 22 pkt/s (queue of 2 packets) until Initial is over, then 1300 pkt/s; RTT 550 ms; S_Target 44 pkt/s.\n\
         Expected: S0/2 in Detected, 0.95 S0 or more by t0 + 2 SRTT + 10 %.\n",
    );
    let lost: Vec<&Step> = trace.steps.iter().filter(|s| s.lost_by.is_some()).collect();
    assert_eq!(lost.len(), 1, "one loss");
    assert_eq!(lost[0].lost_by, Some(LossHow::LaterAcks));
    let i = trace.first("Detected");
    let (t0, s0) = (trace.steps[i].t, trace.before(i));
    assert!((s0 - 22.0).abs() < 0.5, "S0 = {s0}");
    assert!((trace.steps[i].pps - s0 / 2.0).abs() < 1e-6, "halved");
    // Nothing changes before Detected is over, one SRTT later.
    assert!((trace.rate_at(t0 + 0.99 * RTT) - s0 / 2.0).abs() < 1e-6);
    let (half_way, back) = (trace.rate_at(t0 + 1.5 * RTT), trace.rate_at(t0 + 2.2 * RTT));
    assert!(half_way < 0.95 * s0, "not before the dummy ACKs: {half_way}");
    // Two timed increases may have been added to what the dummies gave back: 2/SRTT = 3.6.
    assert!(back >= 0.95 * s0 && back <= s0 + 2.0 / RTT, "S = {back} of {s0}");
}

#[test]
fn fig14_after_a_loss_by_congestion_the_dummies_give_nothing_back() {
    let trace = Trace::of(source(vec![(at(0.0), pps(22.0))], 2, vec![], 9.5));
    trace.check(
        "fig14.txt",
        "RCS, Fig. 14: S over time, data lost by congestion.\n\
         Path: 22 pkt/s, queue of 2 packets with two priorities; RTT 550 ms; S_Target 44 pkt/s.\n\
         Expected: S stays at S0/2 after the dummy ACKs, then one packet per SRTT more each SRTT.\n",
    );
    let i = trace.first("Detected");
    let (t0, s0) = (trace.steps[i].t, trace.before(i));
    assert!(s0 > 22.0 && s0 < 44.0, "more than the path carries: {s0}");
    // The ACKs of the dummies sent in [t0, t0 + SRTT] are back by t0 + 2 SRTT (queue included).
    for n in [0.0, 0.5, 1.0, 1.5, 2.0] {
        assert!((trace.rate_at(t0 + n * RTT) - s0 / 2.0).abs() < 1e-6, "at {n} SRTT");
    }
    let grown: Vec<&Step> =
        trace.steps[i..].iter().filter(|s| s.state == "Steady" && s.pps > s0 / 2.0 + 1e-6).collect();
    let steps: Vec<(f64, f64)> = grown.windows(2).map(|w| (w[1].t - w[0].t, w[1].pps - w[0].pps)).collect();
    assert!(steps.len() >= 4, "{steps:?}");
    for (dt, ds) in steps.iter().filter(|(_, ds)| *ds != 0.0) {
        // RTT 550 ms and up to two packets (91 ms) in the queue.
        assert!((0.55..0.65).contains(dt), "every SRTT: {dt}");
        assert!((1.0 / 0.65..1.0 / 0.55).contains(ds), "by 1/SRTT: {ds}");
    }
}

#[test]
fn fig16_a_blackout_of_two_srtt_costs_one_halving_and_is_made_good_in_one_srtt() {
    let blackout = Outage::of(at(2.05), Duration::from_millis(1_100));
    let trace = Trace::of(wide_after_initial(vec![blackout], true, 8.0));
    trace.check(
        "fig16.txt",
        "RCS, Fig. 16: S over time, the signal gone for 2 SRTT.\n\
         Path: 22 pkt/s (queue of 2 packets) until Initial is over, then 1300 pkt/s; RTT 550 ms; S_Target 44 pkt/s.\n\
         Nothing arrives at either end from 2.05 s to 3.15 s: packets in the air are lost too.\n\
         Expected: one halving, Backoff, S0 again about one SRTT after the first ACK.\n",
    );
    let i = trace.first("Detected");
    let s0 = trace.before(i);
    let back = trace.steps[i..].iter().position(|s| s.state == "Backoff").map(|n| i + n).expect("Backoff");
    assert!((trace.steps[back].pps - s0 / 2.0).abs() < 1e-6);
    let first_ack = trace.steps[back..].iter().find(|s| s.state == "Steady").expect("Steady").t;
    let halvings = trace.steps.windows(2).filter(|w| w[1].pps < 0.75 * w[0].pps).count();
    assert_eq!(halvings, 1);
    let regained = trace.steps[back..].iter().find(|s| s.pps >= 0.95 * s0).expect("regained").t;
    assert!(regained - first_ack <= 1.1 * RTT, "{:.2} SRTT", (regained - first_ack) / RTT);
    assert!(regained > first_ack);
}
