//! The numbers of a run that ns-2's tables have too.

use fairpace_lab::RunError;
use fairpace_lab::run::simulate_observed;
use fairpace_lab::stats::jain_index;
use fairpace_lab::study::{Job, Measure};
use fairpace_path::DropReason;
use fairpace_scenario::{Capacity, Record, sim_config};
use fairpace_sim::tcp::{TcpCounters, TcpParams, TcpSource};
use fairpace_sim::{FlowReport, LinkReport, Protocol, SimReport};
use fairpace_units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// One group of flows of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Group {
    /// Delivered per flow, packets/s: in order by TCP, received once by the others.
    pub(super) pps: f64,
    /// The data that reached the receivers, duplicates included, over the fair share.
    pub(super) norm: f64,
    /// The same in order and once.
    pub(super) goodput_norm: f64,
    /// Sent per flow, bit/s.
    pub(super) sent_bps: f64,
    /// In order and once per flow, bit/s.
    pub(super) goodput_bps: f64,
    /// TCP's account, over all flows of the group.
    pub(super) tcp: Option<Tcp>,
}

/// TCP's account of itself.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tcp {
    pub(super) sent: f64,
    pub(super) fast_retransmits: f64,
    pub(super) timeouts: f64,
    pub(super) timeout_sequences: f64,
    /// Of all cuts of the whole run, the warm-up included, those by timeout.
    pub(super) timeout_share: f64,
    /// Means over time and flows: smoothed RTT, timeout, and the window while there is an estimate of both.
    pub(super) rtt_s: f64,
    pub(super) rto_s: f64,
    pub(super) cwnd: f64,
}

/// The measurements of one run, after the warm-up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Seen {
    /// Group `x`, or `media`.
    pub(super) x: Group,
    /// Group `y`, or `tcp`.
    pub(super) y: Group,
    /// Delivered per flow from 0 to 200 s, mean over all, packets/s.
    pub(super) early_pps: f64,
    pub(super) jain: f64,
    /// Dropped by the bottleneck's queue, of the packets that arrived there.
    pub(super) dropped: f64,
    /// The same where a loss before the queue counts as its drop.
    pub(super) dropped_or_lost: f64,
    pub(super) utilisation: f64,
}

pub(super) const MEASURE: Measure<Seen> = Measure { name: "agreement ns2", of: see };

fn see(job: &Job<'_>) -> Result<Seen, RunError> {
    let mut config = sim_config(job.scenario, job.seed, Record::default())?;
    config.checkpoints = vec![EARLY];
    for flow in config.flows.iter_mut().filter(|f| f.group == "media") {
        if let Some(tcp) = general_tcp(&flow.protocol, job) {
            flow.protocol = tcp;
        }
    }
    let (report, now) = simulate_observed(&job.scenario.name, &config, None, job.hooks)?;
    if now < Instant::ZERO + config.duration {
        return Err(RunError::Interrupted);
    }
    let capacity = match &job.scenario.path.rate {
        Some(Capacity::Fixed(rate)) => rate.get().with_packets_of(job.scenario.packet_size.get()).as_bps(),
        _ => f64::NAN,
    };
    Ok(Seen::of(capacity, &report))
}

/// When the early part of a run ends.
const EARLY: Instant = Instant::from_nanos(200_000_000_000);

/// ns-2's AIMD is TCP(alpha, beta): the TCP beside it, with the two constants of the scenario's `aimd`.
fn general_tcp(protocol: &Protocol, job: &Job<'_>) -> Option<Protocol> {
    let Protocol::Media(_) = protocol else { return None };
    let spec = job.scenario.flows.iter().find(|f| f.group == "media" && f.controller == "aimd")?;
    let number = |key: &str| spec.parameters.get(key)?.text().parse::<f64>().ok();
    let beside = job.scenario.flows.iter().find(|f| f.group == "tcp")?;
    let config = sim_config(job.scenario, job.seed, Record::default()).ok()?;
    let tcp = config.flows.into_iter().find(|f| f.group == beside.group)?;
    let Protocol::Tcp(params, _) = tcp.protocol else { return None };
    let params = TcpParams { increase: number("alpha")?, decrease: number("beta")?, ..params };
    Some(Protocol::Tcp(params, TcpSource::Ftp))
}

impl Seen {
    fn of(capacity: f64, report: &SimReport) -> Seen {
        let fair = capacity / report.flows.len().max(1) as f64;
        let all: Vec<f64> = report.flows.iter().map(FlowReport::goodput_pps).collect();
        let early = report.flows.iter().filter_map(|f| f.checkpoints.first());
        let early = early.map(|(at, c)| c.unique.packets.as_f64() / at.as_secs_f64()).sum::<f64>();
        let link = report.links.first().map(|l| *l.measured()).unwrap_or_default();
        let dropped =
            [DropReason::QueueFull, DropReason::Early].map(|r| link.dropped(r).packets.as_f64()).iter().sum::<f64>();
        // Links of the flows' own lose at random only.
        let own = report.links.iter().filter(|l| l.name.contains(".forward_in"));
        let before = own.map(|l: &LinkReport| l.measured().total().dropped_in_all().packets.as_f64()).sum::<f64>();
        let arrived = link.total().offered.packets.as_f64();
        Seen {
            x: Group::of(report, |g| g == "x" || g == "media", fair),
            y: Group::of(report, |g| g == "y" || g == "tcp", fair),
            early_pps: early / report.flows.len().max(1) as f64,
            jain: jain_index(&all).unwrap_or_default(),
            dropped: dropped / arrived,
            dropped_or_lost: (dropped + before) / (arrived + before),
            utilisation: report.links.first().and_then(|l| l.utilization).unwrap_or_default(),
        }
    }
}

impl Group {
    fn of(report: &SimReport, wanted: impl Fn(&str) -> bool, fair: f64) -> Group {
        let flows: Vec<&FlowReport> = report.flows.iter().filter(|f| wanted(&f.group)).collect();
        let n = flows.len().max(1) as f64;
        let mean = |number: &dyn Fn(&FlowReport) -> f64| flows.iter().map(|f| number(f)).sum::<f64>() / n;
        let per_second = |f: &FlowReport, bytes: Bytes| bytes.as_f64() * 8.0 / f.window.as_secs_f64();
        let goodput_bps = mean(&|f| per_second(f, f.measured.unique.bytes));
        Group {
            pps: mean(&FlowReport::goodput_pps),
            norm: mean(&|f| f.throughput().as_bps()) / fair,
            goodput_norm: goodput_bps / fair,
            sent_bps: mean(&|f| per_second(f, f.measured.sent.bytes)),
            goodput_bps,
            tcp: Tcp::of(&flows),
        }
    }
}

impl Tcp {
    fn of(flows: &[&FlowReport]) -> Option<Tcp> {
        let tallies: Vec<_> = flows.iter().map(|f| f.tcp.map(|t| t.measured)).collect::<Option<_>>()?;
        let n = tallies.len() as f64;
        let whole = |number: fn(&TcpCounters) -> u64| {
            flows.iter().filter_map(|f| f.tcp).map(|t| number(&t.counters) as f64).sum::<f64>()
        };
        let (timeouts, cuts) = (whole(|c| c.timeouts), whole(|c| c.timeouts + c.fast_retransmits));
        let sum = |number: fn(&TcpCounters) -> u64| tallies.iter().map(|t| number(&t.counters) as f64).sum::<f64>();
        let seconds = |t: Option<Duration>| t.map_or(0.0, |t| t.as_secs_f64());
        (n > 0.0).then(|| Tcp {
            sent: sum(|c| c.sent),
            fast_retransmits: sum(|c| c.fast_retransmits),
            timeouts: sum(|c| c.timeouts),
            timeout_sequences: sum(|c| c.timeout_sequences),
            timeout_share: timeouts / cuts.max(1.0),
            rtt_s: tallies.iter().map(|t| seconds(t.mean_srtt())).sum::<f64>() / n,
            rto_s: tallies.iter().map(|t| seconds(t.mean_rto())).sum::<f64>() / n,
            cwnd: tallies.iter().filter_map(|t| t.mean_cwnd_while_estimated()).sum::<f64>() / n,
        })
    }

    /// Fast retransmits and timeouts, of all segments.
    pub(super) fn cuts(&self) -> f64 {
        (self.fast_retransmits + self.timeouts) / self.sent
    }

    /// Loss indications, of all segments.
    pub(super) fn indications(&self) -> f64 {
        (self.fast_retransmits + self.timeout_sequences) / self.sent
    }
}
