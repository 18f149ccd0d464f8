//! From a scenario to what its ends are to do in real time, and to the settings of the kernel that fit.

use super::ip::Ip;
use super::media::{self, MediaPlan, MediaSource};
use super::tcp::{self, TcpPlan};
use super::udp::UdpPlan;
use fairpace_control::Safety;
use fairpace_emu::EmuError;
use fairpace_net::TcpConfig;
use fairpace_net::receive::ReceiveConfig;
use fairpace_net::send::SendConfig;
use fairpace_rtp::{ReceiverConfig, SenderConfig};
use fairpace_scenario::{Scenario, SourceKind};
use fairpace_sim::tcp::{TcpParams, TcpVariant};
use fairpace_sim::{ControllerSpec, FlowConfig, FlowId, HopConfig, MediaConfig, Protocol, SimConfig, TcpHalf};
use fairpace_units::{Bytes, Duration, Instant, RandomStream};
use std::collections::{BTreeMap, BTreeSet};

/// Each flow has two threads and two sockets: more than this is more than a machine does on the side.
const MOST_FLOWS: usize = 200;
/// The kernel's least segment of TCP, bytes.
const LEAST_SEGMENT: u64 = 88;
/// The devices' MTU, bytes.
const MTU: u64 = 1_500;

/// All flows, and the machine they need.
#[derive(Debug)]
pub(super) struct Plans {
    pub(super) flows: Vec<Plan>,
    pub(super) about: About,
}

/// The description of the set-up in a run's record.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) algorithms: BTreeMap<String, String>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) notes: Vec<String>,
}

/// One flow.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) stop: Option<Instant>,
    pub(super) end: End,
}

#[derive(Debug)]
pub(super) enum End {
    Tcp(TcpPlan),
    Udp(UdpPlan),
    Media(Box<MediaPlan>),
}

fn refuse<T>(field: &'static str, found: impl ToString, allowed: impl Into<String>) -> Result<T, EmuError> {
    Err(EmuError::Config { field, found: found.to_string(), allowed: allowed.into() })
}

impl Plans {
    pub(super) fn new(scenario: &Scenario, config: &SimConfig, seed: u64, ip: Ip) -> Result<Plans, EmuError> {
        if config.flows.len() > MOST_FLOWS {
            return refuse("flows", config.flows.len(), format!("at most {MOST_FLOWS} in real time"));
        }
        if config.hops.iter().any(|hop| matches!(hop, HopConfig::Radio { radio, .. } if radio.base_station.is_some())) {
            return refuse(
                "wireless.plan",
                "given",
                "none: only the simulator and `fairpace cell` tell senders a base station's windows",
            );
        }
        let mut about = About::default();
        let mut variants = BTreeSet::new();
        let mut params: Option<&TcpParams> = None;
        let mut sack = false;
        // The window after idle is kept for all if it must be for one: TPBA's TCP half is idle while UDP carries the data.
        let mut restart = true;
        let mut flows = Vec::new();
        for (flow, f) in (0..).zip(&config.flows) {
            let started =
                f.start + RandomStream::named(seed, &format!("flow.{}.start", f.name)).duration_below(f.start_spread);
            let end = match &f.protocol {
                Protocol::Tcp(tcp, source) => {
                    check_size(f, ip.tcp_headers() + LEAST_SEGMENT)?;
                    let algorithm = algorithm(scenario, f);
                    if params.is_some_and(|p| different(p, tcp)) {
                        about.note("TCP flows have different settings; the kernel has those of the first");
                    }
                    params.get_or_insert(tcp);
                    variants.insert(tcp.variant.name());
                    sack |= tcp.variant == TcpVariant::Sack;
                    restart &= tcp.restart_after_idle;
                    about.algorithms.insert(f.name.clone(), algorithm.to_owned());
                    End::Tcp(TcpPlan {
                        flow,
                        name: f.name.clone(),
                        algorithm,
                        ip,
                        packet_size: f.packet_size,
                        params: tcp.clone(),
                        source: *source,
                        start: started,
                        stop: f.stop,
                        end: Instant::ZERO + config.duration,
                        seed,
                    })
                }
                Protocol::Constant(constant) => {
                    check_size(f, ip.udp_headers() + 1)?;
                    if constant.quick_start.is_some() {
                        return refuse("quick_start", "given", "nothing: only simulated flows ask for Quick-Start");
                    }
                    End::Udp(UdpPlan {
                        flow,
                        name: f.name.clone(),
                        ip,
                        packet_size: u32::try_from(f.packet_size.get()).unwrap_or(u32::MAX),
                        config: *constant,
                        start: started,
                        stop: f.stop,
                        end: Instant::ZERO + config.duration,
                        seed,
                    })
                }
                Protocol::Media(media) => {
                    check_size(f, media::headers(ip) + media::LEAST_PAYLOAD)?;
                    if let Some(half) = &media.tcp {
                        params.get_or_insert(&half.params);
                        sack |= half.params.variant == TcpVariant::Sack;
                        restart &= half.params.restart_after_idle;
                        about.algorithms.insert(f.name.clone(), "reno".to_owned());
                        let packets = FlowConfig { packet_size: segment(f, half), ..f.clone() };
                        check_size(&packets, ip.tcp_headers() + LEAST_SEGMENT)?;
                    }
                    End::Media(Box::new(media_plan(scenario, config, flow, f, media, started, seed, ip, &mut about)?))
                }
                Protocol::External => {
                    return refuse("flows", "a flow of packets from outside", "flows of the scenario");
                }
            };
            flows.push(Plan { stop: f.stop, end });
        }
        if variants.len() > 1 {
            about.note("TCP flows have different loss recovery; with SACK for one the kernel has it for all");
        }
        if let Some(params) = params {
            tcp_settings(params, sack, restart, &mut about);
        }
        Ok(Plans { flows, about })
    }
}

impl About {
    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

fn check_size(flow: &FlowConfig, least: u64) -> Result<(), EmuError> {
    if (least..=MTU).contains(&flow.packet_size.get()) {
        return Ok(());
    }
    let allowed = format!("{least} B to {MTU} B for a flow of that kind in real time");
    refuse("packet_size", format!("{} for the flow {}", flow.packet_size, flow.name), allowed)
}

/// A full segment of a media flow's TCP half.
fn segment(flow: &FlowConfig, half: &TcpHalf) -> Bytes {
    half.segment_size.unwrap_or(flow.packet_size)
}

/// The kernel's name of a TCP flow's congestion control.
fn algorithm(scenario: &Scenario, flow: &FlowConfig) -> &'static str {
    match scenario.flows.iter().find(|f| f.group == flow.group).map(|f| f.controller.as_str()) {
        Some("tcp-cubic") => "cubic",
        Some("tcp-bbr") => "bbr",
        _ => "reno",
    }
}

/// Whether the kernel would need settings for each.
fn different(a: &TcpParams, b: &TcpParams) -> bool {
    let settings = |p: &TcpParams| (p.min_rto, p.dup_threshold, p.ecn);
    settings(a) != settings(b)
}

/// The scenario's TCP settings, in the kernel's words. Features that simulated TCP does not have are switched off.
fn tcp_settings(p: &TcpParams, sack: bool, restart: bool, about: &mut About) {
    let on = |yes: bool| u8::from(yes).to_string();
    let mut set = |key: &str, value: String| {
        about.sysctls.insert(format!("net.ipv4.{key}"), value);
    };
    set("tcp_sack", on(sack));
    for off in ["tcp_dsack", "tcp_timestamps", "tcp_frto", "tcp_early_retrans", "tcp_recovery", "tcp_comp_sack_nr"] {
        set(off, on(false));
    }
    // Else an ACK may wait for the next, so that segments leave in pairs.
    set("tcp_min_tso_segs", "1".to_owned());
    set("tcp_reordering", p.dup_threshold.to_string());
    set("tcp_max_reordering", p.dup_threshold.to_string());
    set("tcp_ecn", on(p.ecn));
    set("tcp_slow_start_after_idle", on(restart));
    set("tcp_rto_min_us", p.min_rto.as_micros().to_string());
    // A receiver's buffer is no limit but the one that the scenario names.
    set("tcp_rmem", "4096 8388608 67108864".to_owned());
    if p.variant == TcpVariant::Reno {
        about.note("the kernel's Reno stays in recovery as NewReno does");
    }
    if p.send_jitter > Duration::ZERO {
        about.note("`send_jitter` is the simulator's only: real hosts send when they are given the processor");
    }
    if p.ns2 {
        about.note("`ns2` is the simulator's only: the kernel's SACK repairs as Linux does");
    }
    if p.initial_ssthresh.is_some() {
        about.note("`initial_ssthresh` is the simulator's only");
    }
}

#[allow(clippy::too_many_arguments)] // all that a scenario says of one flow
fn media_plan(
    scenario: &Scenario,
    sim: &SimConfig,
    flow: FlowId,
    f: &FlowConfig,
    media: &MediaConfig,
    start: Instant,
    seed: u64,
    ip: Ip,
    about: &mut About,
) -> Result<MediaPlan, EmuError> {
    let ControllerSpec::Named { scheme, settings, env } = &media.controller else {
        return refuse("controller", "one from outside", "one of `fairpace list controllers`");
    };
    let Some(spec) = scenario.flows.iter().find(|s| s.group == f.group && s.controller == *scheme) else {
        return refuse("controller", scheme, "one of the scenario's flows");
    };
    let paper = env.safety == Safety::Paper;
    if paper {
        about.note(
            "`safety = \"paper\"`: the circuit breaker and the rate cap are off; controllers keep their protections",
        );
    }
    if media.initial_rtt.is_some() {
        about.note("`initial_rtt` is the simulator's only: senders begin with a challenge, and know the RTT from it");
    }
    if spec.send_buffer.is_some() || spec.tolerable_delay.is_some() {
        about.note("`send_buffer` and `tolerable_delay` are the simulator's only");
    }
    let adus = spec.source.as_ref().filter(|s| s.kind == SourceKind::Adus);
    let config = SendConfig {
        scheme: scheme.clone(),
        tcp: TcpConfig { segment: media.tcp.as_ref().map(|half| segment(f, half)), ..TcpConfig::default() },
        // As in the simulator, where the next data unit is there when the one before has left; less would hold back
        // packets that may leave at once.
        queue_limit: adus.map(|_| f.packet_size + f.packet_size),
        settings: settings.clone(),
        min_rate: env.min_rate,
        start_rate: env.start_rate,
        max_rate: env.max_rate,
        quantum: media.flow.quantum,
        breaker: media.flow.breaker,
        session: SenderConfig {
            packet_size: f.packet_size,
            data_dscp: media.flow.data_class.dscp(),
            form: media.form,
            // As the simulator's sources, which wait as long as it takes.
            max_queue_delay: Some(Duration::MAX),
            ..SenderConfig::default()
        },
        sample: sim.sample.unwrap_or(Duration::from_millis(100)).min(Duration::from_millis(100)),
        trace: true,
        quick_start: media.flow.quick_start.map(|ask| ask.rate.rate()),
        // Its address is not known yet.
        ..SendConfig::new(std::net::SocketAddr::from(([0, 0, 0, 0], 0)))
    };
    let feedback = media.feedback.unwrap_or(Duration::ZERO);
    let receiver = ReceiveConfig {
        tcp: media.tcp.is_some(),
        tcp_window: media.tcp.as_ref().and_then(|half| tcp::window(&half.params, segment(f, half), ip)),
        family: ip.family(),
        session: ReceiverConfig { feedback_interval: feedback, ack_interval: feedback, ..ReceiverConfig::default() },
        ..ReceiveConfig::new(0)
    };
    let rate = |r: &fairpace_scenario::Speed| r.get().with_packets_of(f.packet_size);
    let source = match &spec.source {
        None => MediaSource::Greedy,
        Some(s) => match s.kind {
            SourceKind::Saturated => MediaSource::Greedy,
            SourceKind::Constant | SourceKind::Voip | SourceKind::VideoCall | SourceKind::Iptv => {
                MediaSource::Constant(s.rate.as_ref().map(rate).unwrap_or_default())
            }
            SourceKind::Adus => MediaSource::Adus(s.packets.map_or(1, |n| n.get()).max(1)),
            SourceKind::Encoder => MediaSource::Encoder(Box::new(fairpace_scenario::encoder::model(
                &f.name,
                s.rate.as_ref().map(rate),
                seed,
            ))),
        },
    };
    Ok(MediaPlan { flow, ip, config, receiver, source, start })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_control::feedback::Form;
    use fairpace_scenario::{Record, sim_config};

    #[test]
    fn a_flow_asks_for_the_form_of_feedback_that_the_scenario_names() {
        let form = |feedback: &str| {
            let text = format!(
                "[path]\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"rap\"\nfeedback = \"{feedback}\"\n"
            );
            let scenario = Scenario::parse(&text, "forms.toml").unwrap();
            let config = sim_config(&scenario, 1, Record::default()).unwrap();
            let plans = Plans::new(&scenario, &config, 1, Ip::V4).unwrap();
            let End::Media(plan) = &plans.flows[0].end else { panic!("{:?}", plans.flows) };
            (plan.config.session.form, plan.receiver.session.feedback_interval)
        };
        let ms = Duration::from_millis(20);
        assert_eq!(form("twcc 20 ms"), (Some(Form::Twcc), ms));
        assert_ne!(form("20 ms").0, Some(Form::Twcc));
    }
}
