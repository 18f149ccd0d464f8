//! The scenarios behind the tables of ns-2, and a reader for the tables. Shared by the test
//! `ns2_reference` and the example `ns2_table`.

use std::collections::BTreeMap;

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{Access, ControllerSpec, FlowConfig, HopConfig, MediaConfig, Protocol, SimConfig, SimReport, run};
use fairpace_units::{Bytes, Duration, Instant, Packets, Probability, RandomStream, Rate};

/// One row of a table, by column.
pub(crate) struct Row(BTreeMap<String, String>);

impl Row {
    pub(crate) fn text(&self, column: &str) -> &str {
        self.0.get(column).unwrap_or_else(|| panic!("the table has no column `{column}`"))
    }

    pub(crate) fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or_else(|e| panic!("`{column}`: {e}"))
    }
}

/// Reads a table: a line of names, then values.
pub(crate) fn table(csv: &str) -> Vec<Row> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().expect("a header").collect();
    lines.map(|values| Row(names.iter().map(|n| (*n).to_owned()).zip(values.map(str::to_owned)).collect())).collect()
}

pub(crate) const RAP_SATELLITE: &str = include_str!("../../../../reference/ns2/rap_satellite.csv");
pub(crate) const TCP_SATELLITE: &str = include_str!("../../../../reference/ns2/tcp_satellite.csv");
pub(crate) const RENO_BASELINE: &str = include_str!("../../../../reference/ns2/reno_baseline.csv");
pub(crate) const MIXED: &str = include_str!("../../../../reference/ns2/mixed_fairness.csv");
pub(crate) const MIXED_JITTER: &str = include_str!("../../../../reference/ns2/mixed_fairness_jitter.csv");

/// The peer in the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    Rap { fine_grain: bool },
    Tcp { variant: TcpVariant, jitter: Duration },
}

impl Peer {
    pub(crate) fn of(name: &str, fine_grain: bool, jitter: Duration) -> Peer {
        match name {
            "RAP" => Peer::Rap { fine_grain },
            "Reno" => Peer::Tcp { variant: TcpVariant::Reno, jitter },
            "Newreno" => Peer::Tcp { variant: TcpVariant::NewReno, jitter },
            "Sack1" => Peer::Tcp { variant: TcpVariant::Sack, jitter },
            other => panic!("the tables have no `{other}`"),
        }
    }

    fn protocol(self) -> Protocol {
        match self {
            Peer::Rap { fine_grain } => {
                let env = Env { max_rate: Rate::mbps(100.0), safety: Safety::Paper, ..Env::default() };
                let controller =
                    ControllerSpec::named("rap", env).with("fine_grain", if fine_grain { "on" } else { "off" });
                // This sender asks for the RTT first; ns-2's sends a packet and waits 2 s or for its ACK.
                Protocol::Media(MediaConfig::new(controller, FlowParams::new(&env)))
            }
            Peer::Tcp { variant, jitter } => {
                Protocol::Tcp(TcpParams { variant, send_jitter: jitter, ..TcpParams::default() }, TcpSource::Ftp)
            }
        }
    }

    fn ack_size(self) -> Bytes {
        Bytes::new(if matches!(self, Peer::Rap { .. }) { 44 } else { 40 })
    }
}

fn link(rate: Rate, delay: Duration, queue: u64, p_loss: f64) -> LinkSpec {
    LinkSpec {
        rate: RateModel::Fixed(rate),
        delay: DelayModel::constant(delay),
        queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(queue)) },
        loss: LossModel::Bernoulli(Probability::new(p_loss).expect("a probability from the table")),
        ..LinkSpec::default()
    }
}

fn flow(name: String, group: &str, peer: Peer, seed: u64, one_way: Duration, p_loss: f64) -> FlowConfig {
    let rate = Rate::mbps(100.0);
    // ± 0.5 ms on each access link.
    let offset = RandomStream::named(seed, &format!("{name}.access")).duration_below(Duration::from_millis(1));
    let delay = (one_way + offset).saturating_sub(Duration::from_micros(500));
    FlowConfig {
        group: group.to_owned(),
        start_spread: Duration::from_secs(1),
        access: Access {
            forward_in: Some(link(rate, delay, 10_000, p_loss)),
            back_out: Some(link(rate, delay, 10_000, 0.0)),
            ..Access::default()
        },
        ack_size: peer.ack_size(),
        ..FlowConfig::new(name, peer.protocol())
    }
}

const CAPACITY: f64 = 10.4; // Mbit/s: 1,300 packets/s of 1,000 B

/// Ten flows of one kind over the satellite.
pub(crate) fn satellite(peer: Peer, p_loss: f64, rtt: Duration, k: u64, seed: u64, seconds: u64) -> SimConfig {
    let access = Duration::from_millis(1);
    let delay = rtt / 2 - access;
    SimConfig {
        seed,
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(50),
        hops: vec![HopConfig::path(
            link(Rate::mbps(CAPACITY), delay, k, p_loss),
            link(Rate::mbps(CAPACITY), delay, 10_000, 0.0),
        )],

        flows: (0..10).map(|i| flow(format!("f{i}"), "all", peer, seed, access, 0.0)).collect(),
        checkpoints: vec![Instant::from_secs_f64(200.0)],
        ..SimConfig::default()
    }
}

/// Five flows over long lossy access links, five over short clean ones, one bottleneck.
pub(crate) fn mixed(x: Peer, y: Peer, p_loss: f64, k: u64, rtt: [Duration; 2], seed: u64, seconds: u64) -> SimConfig {
    let delay = Duration::from_millis(45);
    let [x_access, y_access] = rtt.map(|rtt| rtt / 2 - delay);
    SimConfig {
        seed,
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(50),
        hops: vec![HopConfig::path(
            link(Rate::mbps(CAPACITY), delay, k, 0.0),
            link(Rate::mbps(CAPACITY), delay, 10_000, 0.0),
        )],

        flows: (0..5)
            .map(|i| flow(format!("x{i}"), "x", x, seed, x_access, p_loss))
            .chain((0..5).map(|i| flow(format!("y{i}"), "y", y, seed, y_access, 0.0)))
            .collect(),
        ..SimConfig::default()
    }
}

/// One Reno alone on one channel: a row of `reno_baseline.csv`.
fn channel(row: &Row, seed: u64, seconds: u64) -> SimConfig {
    let rate = Rate::bps(row.number("bandwidth_bps"));
    let delay = Duration::from_secs_f64(row.number("delay_s"));
    let error = row.number("error");
    let before = row.text("error_position") == "before";
    // A hop without rate or delay, which loses packets before they reach the queue.
    let lossy = LinkSpec { rate: RateModel::Unlimited, ..link(rate, Duration::ZERO, 1, error) };
    let tcp = TcpParams { variant: TcpVariant::Reno, max_window: Packets::new(1_000), ..TcpParams::default() };
    SimConfig {
        seed,
        duration: Duration::from_secs(seconds),
        hops: vec![HopConfig::path(
            link(rate, delay, 50, if before { 0.0 } else { error }),
            link(rate, delay, 50, 0.0),
        )],

        flows: vec![FlowConfig {
            access: Access { forward_in: before.then_some(lossy), ..Access::default() },
            packet_size: Bytes::new(row.number("packet_B") as u64),
            ..FlowConfig::new("reno", Protocol::Tcp(tcp, TcpSource::Ftp))
        }],
        ..SimConfig::default()
    }
}

/// The values of `reno_baseline.csv`, by its columns.
pub(crate) type Channel = BTreeMap<&'static str, f64>;

pub(crate) fn channel_outcome(row: &Row, seed: u64, seconds: u64) -> Channel {
    let report = run(channel(row, seed, seconds)).expect("the scenarios are valid");
    let flow = &report.flows[0];
    let tcp = flow.tcp.expect("a TCP flow").measured;
    let sent = tcp.counters.sent as f64;
    let indications = tcp.counters.loss_indications() as f64;
    let in_seconds = |time: Option<Duration>| time.map_or(0.0, |t| t.as_secs_f64());
    // As in the table, where a loss before the queue counts as its drop.
    let queue = report.links[0].whole.dropped(fairpace_path::DropReason::QueueFull).packets;
    let before = report.links.get(2).map_or(Packets::new(0), |l| l.whole.total().dropped_in_all().packets);
    BTreeMap::from([
        ("sent_bps", flow.measured.sent.bytes.as_f64() * 8.0 / seconds as f64),
        ("goodput_bps", flow.measured.unique.bytes.as_f64() * 8.0 / seconds as f64),
        ("p_ind", indications / sent),
        ("p_cuts", (tcp.counters.fast_retransmits + tcp.counters.timeouts) as f64 / sent),
        ("timeout_frac", tcp.counters.timeout_sequences as f64 / indications),
        ("rtt_s", in_seconds(tcp.mean_srtt())),
        ("rto_s", in_seconds(tcp.mean_rto())),
        // As the table, which sampled the window only while there was an RTT estimate.
        ("cwnd_pkts", tcp.mean_cwnd_while_estimated().unwrap_or_default()),
        ("queue_drop_frac", (queue + before).as_f64() / sent),
    ])
}

/// Mean over seeds of one column.
pub(crate) fn column(runs: &[Channel], name: &str) -> f64 {
    runs.iter().map(|c| c[name]).sum::<f64>() / runs.len() as f64
}

/// The measurements of one run.
pub(crate) struct Outcome {
    /// Mean over the flows of a group, packets/s, in the measured window.
    pub(crate) pps: BTreeMap<String, f64>,
    /// Mean over all flows from 0 to 200 s.
    pub(crate) pps_0_200: f64,
    pub(crate) jain: f64,
    pub(crate) queue_drop_frac: f64,
}

pub(crate) fn outcome(config: SimConfig) -> Outcome {
    let report = run(config).expect("the scenarios are valid");
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for f in &report.flows {
        groups.entry(f.group.clone()).or_default().push(f.goodput_pps());
    }
    let all: Vec<f64> = report.flows.iter().map(|f| f.goodput_pps()).collect();
    let (sum, squares): (f64, f64) = (all.iter().sum(), all.iter().map(|x| x * x).sum());
    Outcome {
        pps: groups.into_iter().map(|(g, v)| (g, v.iter().sum::<f64>() / v.len() as f64)).collect(),
        pps_0_200: early(&report),
        jain: sum * sum / (all.len() as f64 * squares),
        queue_drop_frac: {
            let c = *report.links[0].measured();
            c.dropped(fairpace_path::DropReason::QueueFull).packets.as_f64() / c.total().offered.packets.as_f64()
        },
    }
}

fn early(report: &SimReport) -> f64 {
    let counts = report.flows.iter().filter_map(|f| f.checkpoints.first());
    counts.map(|(at, c)| c.unique.packets.as_f64() / at.as_secs_f64()).sum::<f64>() / report.flows.len() as f64
}

/// Mean over seeds of what `f` reads off each outcome.
pub(crate) fn mean(outcomes: &[Outcome], f: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(f).sum::<f64>() / outcomes.len() as f64
}
