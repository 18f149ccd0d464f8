//! ns-2's dumbbells of TFRC beside TCP, with and without injected losses, and of general AIMD beside TCP. Shared by
//! the test `ns2_dumbbell` and the example `ns2_table`.

use fairpace_control::{Env, FlowParams, Safety};
use fairpace_path::{
    Capacity, DelayModel, DropReason, LinkSpec, LossModel, QueueModel, RateModel, RedParams, Thresholds,
};
use fairpace_sim::tcp::{TcpParams, TcpSource, TcpVariant};
use fairpace_sim::{Access, ControllerSpec, FlowConfig, HopConfig, MediaConfig, Protocol, SimConfig, run};
use fairpace_units::{Bytes, Duration, Packets, Probability, RandomStream, Rate};

use crate::scenario::{Row, table};

const LOSSY: &str = include_str!("../../../../reference/ns2/tfrc_dumbbell_lossy.csv");
const VARIANTS: &str = include_str!("../../../../reference/ns2/tfrc_dumbbell_variants.csv");
const CLEAN: &str = include_str!("../../../../reference/ns2/clean_dumbbell.csv");
const CLEAN_JITTER: &str = include_str!("../../../../reference/ns2/clean_dumbbell_jitter.csv");
const AIMD: &str = include_str!("../../../../reference/ns2/aimd.csv");

/// So many TCP and as many flows of media over one bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Dumbbell {
    n_each: usize,
    rate: Rate,
    /// Of the bottleneck, one way.
    delay: Duration,
    packet: u64,
    red: Option<(u64, u64)>,
    /// Packets, as ns-2's `limit_`.
    buffer: u64,
    /// Rate and greatest delay of the links at the sides.
    side: (Rate, Duration),
    /// Share of packets lost, and whether before the queue or behind the transmitter.
    error: f64,
    error_before: bool,
    /// Of the way in of each flow, without reordering.
    jitter: Duration,
    tcp: TcpParams,
    warmup: u64,
    seconds: u64,
}

impl Dumbbell {
    /// A row of `tfrc_dumbbell_lossy.csv` or `tfrc_dumbbell_variants.csv`: 20 and 20 flows, 5 kbit/s each.
    fn lossy(row: &Row, variant: Option<&str>) -> Dumbbell {
        let mut tcp = TcpParams { variant: TcpVariant::Reno, max_window: Packets::new(1_000), ..TcpParams::default() };
        let (mut packet, mut buffer, mut red) = (256, 54, (5, 27));
        match variant {
            None => {}
            Some("send_jitter_10ms") => tcp.send_jitter = Duration::from_millis(10),
            Some("minrto1s_tick100ms") => {
                (tcp.min_rto, tcp.tick) = (Duration::from_secs(1), Duration::from_millis(100));
            }
            Some("packet512") => (packet, buffer, red) = (512, 27, (5, 14)),
            Some(other) => panic!("the table has no variant `{other}`"),
        }
        Dumbbell {
            n_each: 20,
            rate: Rate::kbps(200.0),
            delay: Duration::from_millis(50),
            packet,
            red: (row.text("queue") == "RED").then_some(red),
            buffer,
            side: (Rate::mbps(10.0), Duration::from_millis(3)),
            error: row.number("error_pct") / 100.0,
            error_before: row.text("error_position") == "before",
            jitter: Duration::ZERO,
            tcp,
            warmup: 0,
            seconds: 250,
        }
    }

    /// A row of `clean_dumbbell.csv` or `clean_dumbbell_jitter.csv`: 15 Mbit/s, 20 to 140 s.
    fn clean(row: &Row, jitter: Duration) -> Dumbbell {
        let variant = variant(row);
        Dumbbell {
            n_each: row.number("n_each") as usize,
            rate: Rate::bps(row.number("bottleneck_bps")),
            delay: Duration::from_millis(50),
            packet: 1_000,
            red: (row.text("queue") == "RED").then_some((25, 125)),
            buffer: 250,
            side: (Rate::mbps(100.0), Duration::from_millis(1)),
            error: 0.0,
            error_before: false,
            jitter: Duration::ZERO,
            tcp: TcpParams { variant, send_jitter: jitter, ..TcpParams::default() },
            warmup: 20,
            seconds: 140,
        }
    }

    /// A row of `aimd.csv`: base RTT about 85 ms, 20 to 320 s.
    fn aimd(row: &Row) -> Dumbbell {
        Dumbbell {
            n_each: row.number("n_each") as usize,
            rate: Rate::bps(row.number("bottleneck_bps")),
            delay: Duration::from_millis(40),
            packet: 1_000,
            red: Some((row.number("red_min") as u64, row.number("red_max") as u64)),
            buffer: row.number("buffer_pkts") as u64,
            side: (Rate::mbps(100.0), Duration::from_micros(2_500)),
            error: 0.0,
            error_before: false,
            jitter: Duration::ZERO,
            tcp: TcpParams { variant: variant(row), ..TcpParams::default() },
            warmup: 20,
            seconds: 320,
        }
    }

    /// The same with drop-tail in place of RED, and one service time of jitter on every way in against phase effects.
    pub(crate) fn drop_tail(self) -> Dumbbell {
        Dumbbell { red: None, jitter: Bytes::new(self.packet) / self.rate, ..self }
    }

    /// Size of a data packet in bytes.
    pub(crate) fn packet(&self) -> u64 {
        self.packet
    }

    fn queue(&self) -> QueueModel {
        // ns-2's RED has room for `limit_` packets behind the one in transmission, its drop-tail for one fewer.
        let Some((min, max)) = self.red else {
            return QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(self.buffer)) };
        };
        let capacity = Capacity::Packets(Packets::new(self.buffer + 1));
        let thresholds = Thresholds::Packets { min: Packets::new(min), max: Packets::new(max) };
        QueueModel::Red(RedParams { thresholds, ..RedParams::for_capacity(capacity, Bytes::new(self.packet)) })
    }

    /// `media` against TCP.
    fn config(&self, media: &ControllerSpec, seed: u64) -> SimConfig {
        let delay = DelayModel::constant(self.delay);
        let loss = LossModel::Bernoulli(Probability::new(self.error).expect("a probability from the table"));
        let plenty = QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(10_000)) };
        let link = |delay, loss| LinkSpec {
            rate: RateModel::Fixed(self.side.0),
            delay: DelayModel::constant(delay),
            queue: plenty,
            loss,
            ..LinkSpec::default()
        };
        let flow = |i: usize, group: &str, protocol| {
            let name = format!("{group}{i}");
            let side = |side| RandomStream::named(seed, &format!("{name}.{side}")).duration_below(self.side.1);
            let (near, far) = (side("near"), side("far"));
            let lossy = if self.error_before { loss } else { LossModel::None };
            let way_in = DelayModel { jitter: self.jitter, ..DelayModel::constant(near) };
            FlowConfig {
                group: group.to_owned(),
                start_spread: Duration::from_secs(2),
                access: Access {
                    forward_in: Some(LinkSpec { delay: way_in, ..link(near, lossy) }),
                    forward_out: Some(link(far, LossModel::None)),
                    back_in: Some(link(far, LossModel::None)),
                    back_out: Some(link(near, LossModel::None)),
                },
                packet_size: Bytes::new(self.packet),
                ..FlowConfig::new(name, protocol)
            }
        };
        let env = env(self.packet);
        let media = || Protocol::Media(MediaConfig::new(media.clone(), FlowParams::new(&env)));
        let tcp = || Protocol::Tcp(self.tcp.clone(), TcpSource::Ftp);
        SimConfig {
            seed,
            duration: Duration::from_secs(self.seconds),
            warmup: Duration::from_secs(self.warmup),
            hops: vec![HopConfig::path(
                LinkSpec {
                    rate: RateModel::Fixed(self.rate),
                    delay,
                    queue: self.queue(),
                    loss: if self.error_before { LossModel::None } else { loss },
                    ..LinkSpec::default()
                },
                LinkSpec { rate: RateModel::Fixed(self.rate), delay, queue: plenty, ..LinkSpec::default() },
            )],

            flows: (0..self.n_each)
                .map(|i| flow(i, "tcp", tcp()))
                .chain((0..self.n_each).map(|i| flow(i, "media", media())))
                .collect(),
            ..SimConfig::default()
        }
    }

    /// The mean over `seeds` runs, with ns-2's TCP(alpha, beta) of the row in the place of the scheme.
    pub(crate) fn mean_of_tcp(&self, row: &Row, seeds: u64) -> Shares {
        let tcp = TcpParams { increase: row.number("alpha"), decrease: row.number("beta"), ..self.tcp.clone() };
        let outcome = |seed| {
            let mut config = self.config(&scheme("fixed", self.packet), seed);
            for flow in config.flows.iter_mut().filter(|f| f.group == "media") {
                flow.protocol = Protocol::Tcp(tcp.clone(), TcpSource::Ftp);
            }
            self.outcome(config)
        };
        Shares::mean(&(1..=seeds).map(outcome).collect::<Vec<_>>())
    }

    /// The mean over `seeds` runs.
    pub(crate) fn mean(&self, media: &ControllerSpec, seeds: u64) -> Shares {
        Shares::mean(&(1..=seeds).map(|seed| self.outcome(self.config(media, seed))).collect::<Vec<_>>())
    }

    /// Means over the flows of each group, of a flow's fair share; duplicates count, as in the tables.
    fn outcome(&self, config: SimConfig) -> Shares {
        let report = run(config).expect("the scenarios are valid");
        let norm = |group: &str| {
            let rates = report.flows.iter().filter(|f| f.group == group).map(|f| f.throughput().as_bps());
            rates.sum::<f64>() / (self.rate.as_bps() / 2.0)
        };
        let queue = *report.links[0].measured();
        let dropped = [DropReason::QueueFull, DropReason::Early].map(|r| queue.dropped(r).packets.as_f64());
        let drops = dropped.iter().sum::<f64>() / queue.total().offered.packets.as_f64();
        // As in the tables, where a loss before the queue counts as its drop.
        let before = if self.error_before { self.error } else { 0.0 };
        Shares { tcp: norm("tcp"), media: norm("media"), queue_drop_frac: before + (1.0 - before) * drops }
    }
}

/// Every row of the four tables that `wanted` likes: its name, the set-up, and the row.
pub(crate) fn rows(wanted: impl Fn(&str) -> bool) -> Vec<(String, Dumbbell, Row)> {
    let mut rows = Vec::new();
    for row in table(LOSSY) {
        let name = format!("lossy {} {} {} %", row.text("queue"), row.text("error_position"), row.text("error_pct"));
        rows.push((name, Dumbbell::lossy(&row, None), row));
    }
    for row in table(VARIANTS) {
        let name = format!("{} {} %", row.text("variant"), row.text("error_pct"));
        rows.push((name, Dumbbell::lossy(&row, Some(row.text("variant"))), row));
    }
    for (csv, jitter, what) in [(CLEAN, 0, ""), (CLEAN_JITTER, 530, ", jitter")] {
        for row in table(csv) {
            let name = format!("clean {} {} {}+{2}{what}", row.text("queue"), row.text("tcp"), row.text("n_each"));
            rows.push((name, Dumbbell::clean(&row, Duration::from_micros(jitter)), row));
        }
    }
    rows.retain(|(name, ..)| wanted(name));
    rows
}

/// Every row of `aimd.csv`: its name, the set-up, the scheme with the row's alpha and beta, and the row.
pub(crate) fn aimd_rows() -> Vec<(String, Dumbbell, ControllerSpec, Row)> {
    let named = |row: Row| {
        let [tcp, alpha, beta, scenario, n] = ["tcp", "alpha", "beta", "scenario", "n_each"].map(|c| row.text(c));
        let name = format!("aimd {alpha}/{beta} {tcp} {scenario} {n}+{n}");
        let aimd = scheme("aimd", 1_000).with("alpha", alpha).with("beta", beta);
        (name, Dumbbell::aimd(&row), aimd, row)
    };
    table(AIMD).into_iter().map(named).collect()
}

fn variant(row: &Row) -> TcpVariant {
    match row.text("tcp") {
        "Reno" => TcpVariant::Reno,
        "Sack1" => TcpVariant::Sack,
        other => panic!("the table has no `{other}`"),
    }
}

/// The measurements of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    pub(crate) tcp: f64,
    pub(crate) media: f64,
    pub(crate) queue_drop_frac: f64,
}

impl Shares {
    fn mean(of: &[Shares]) -> Shares {
        let mean = |f: fn(&Shares) -> f64| of.iter().map(f).sum::<f64>() / of.len() as f64;
        Shares { tcp: mean(|s| s.tcp), media: mean(|s| s.media), queue_drop_frac: mean(|s| s.queue_drop_frac) }
    }
}

fn env(packet: u64) -> Env {
    let packet_size = Bytes::new(packet);
    Env { packet_size, min_rate: Rate::bps(1.0), max_rate: Rate::mbps(100.0), safety: Safety::Paper, ..Env::default() }
}

/// A scheme of the registry for packets of that size.
pub(crate) fn scheme(name: &str, packet: u64) -> ControllerSpec {
    ControllerSpec::named(name, env(packet))
}

/// ns-2's TFRC: the receiver measures, and what is not as in RFC 3448 (README).
pub(crate) fn ns2_tfrc(packet: u64) -> ControllerSpec {
    scheme("tfrc", packet)
        .with("measured_by", "receiver")
        .with("rfc", "3448")
        .with("equation", "complex")
        .with("w_init", "rfc3390")
        .with("discounting", "ns2")
        .with("t_rto", "tcp")
        .with("losses", "ns2")
        .with("increase", "ns2")
        .with("pacing", "ns2")
        .with("reports", "ns2")
}
