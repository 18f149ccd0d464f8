//! A flow as the network keeps it: its endpoint while there is one, its counts, and what is noted of it.
//!
//! In a run of many flows most of them have not begun or are over. Those take little: an endpoint is made when
//! its flow begins, and let go when the flow has ended and nothing of it is under way.

use fairpace_control::feedback::Form;
use fairpace_control::{Controller, FlowEvent, StopReason};
use fairpace_units::{Bytes, Class, Duration, Instant, RandomStream, Rate, Via};

use crate::SimError;
use crate::config::{ControllerSpec, FlowConfig, MediaConfig, Protocol};
use crate::constant::ConstantSender;
use crate::counts::per_second;
use crate::delay_histogram::DelayHistogram;
use crate::media::{self, MediaEndpoint};
use crate::packet::FlowId;
use crate::report::{FlowCounts, FlowReport, MediaReport, SeriesRow, TcpReport};
use crate::tcp::endpoint::TcpEndpoint;
use crate::tcp::{TcpSender, TcpTally};

/// From so many flows on, a run keeps of each only what its report needs: see
/// [`SimReport::flows`](crate::SimReport::flows).
pub const MANY_FLOWS: usize = 256;

/// In such a run the events of so many flows of each group are collected: 20,000 calls would have gigabytes of them.
pub const MOST_FLOWS_TRACED: u32 = 100;

pub(crate) struct FlowState {
    pub(crate) endpoint: Endpoint,
    pub(crate) counts: FlowCounts,
    pub(crate) owd: DelayHistogram,
    pub(crate) e2ed: DelayHistogram,
    pub(crate) ack_size: u32,
    pub(crate) class_override: Option<Class>,
    /// Data with a longer one-way delay is counted, in nanoseconds; the greatest number if none is to be.
    pub(crate) delay_bound: u64,
    /// The same for RTTs.
    pub(crate) rtt_bound: u64,
    /// Its feedback is sack vectors: a base station gives it a window.
    pub(crate) takes_window: bool,
    /// Its place among the groups.
    pub(crate) group: u32,
    /// Its [`FlowConfig::stop`] has come: nothing new is sent.
    pub(crate) ended: bool,
    /// When the entries of its timers in the event set come up: the sender's slow one (TCP's
    /// timeout), the receiver's, and the sender's fast one (pacing, jitter, bursts). Slow and fast
    /// apart, so that arming the fast one does not leave entries of the slow one behind.
    pub(crate) armed: [Instant; 3],
    /// When it begins.
    pub(crate) started: Instant,
    /// Counts at earlier instants; `None` while these are zero.
    marks: Option<Box<Marks>>,
    checkpoints: Vec<(Instant, FlowCounts)>,
    name: Box<str>,
    protocol: Box<str>,
}

pub(crate) enum Endpoint {
    Tcp(Box<TcpEndpoint>),
    Media(Box<MediaEndpoint>),
    Constant(Box<ConstantSender>),
    External,
    /// Media that has not begun.
    Planned(Box<Plan>),
    /// Media that is over.
    Over(Box<Over>),
}

impl Endpoint {
    /// The TCP sender that it is, or has.
    fn tcp(&self) -> Option<&TcpSender> {
        match self {
            Endpoint::Tcp(tcp) => Some(&tcp.tx),
            Endpoint::Media(media) => media.tcp(),
            _ => None,
        }
    }
}

/// The plan of a media endpoint that is not yet built.
pub(crate) struct Plan {
    config: MediaConfig,
    packet_size: Bytes,
    ack_size: Bytes,
    seed: u64,
    tcp_jitter: RandomStream,
    trace: bool,
}

/// The remains of a media endpoint that has ended.
pub(crate) struct Over {
    srtt: Option<Duration>,
    stopped: Option<StopReason>,
    media: MediaReport,
    events: Vec<FlowEvent>,
}

/// As of the end of the warm-up, and of the last sample.
#[derive(Clone, Copy, Default)]
struct Marks {
    at_warmup: FlowCounts,
    tcp_at_warmup: TcpTally,
    at_sample: FlowCounts,
    /// Number and sum of one-way and end-to-end delays.
    delays_at_sample: [(u64, u128); 2],
}

impl Plan {
    fn build(&self) -> Result<MediaEndpoint, fairpace_control::ParamError> {
        let Plan { config, packet_size, ack_size, seed, tcp_jitter, trace } = self;
        MediaEndpoint::new(config, *packet_size, *ack_size, *seed, tcp_jitter.clone(), *trace)
    }
}

fn is_windowed(controller: &dyn Controller) -> bool {
    controller.feedback_form() == Form::SackVector
}

/// Who sends over TCP begins with it: nobody else may have one.
fn check_tcp_half(
    flow: &FlowConfig,
    media: &MediaConfig,
    controller: &dyn Controller,
    name: &str,
) -> Result<(), SimError> {
    let (flow, name) = (flow.name.clone(), name.to_owned());
    match (controller.via(), &media.tcp) {
        (Via::Tcp, None) => Err(SimError::NoTcpHalf { flow, controller: name }),
        (Via::Udp, Some(_)) => Err(SimError::UselessTcpHalf { flow, controller: name }),
        (Via::Tcp, Some(_)) | (Via::Udp, None) => Ok(()),
    }
}

impl FlowState {
    /// `many`: the flow is one of many. `bursty`: packets may come faster than they were sent.
    pub(crate) fn new(
        config: &FlowConfig,
        group: u32,
        seed: u64,
        trace: bool,
        many: bool,
        bursty: bool,
    ) -> Result<FlowState, SimError> {
        let stream = |purpose: &str| RandomStream::named(seed, &format!("flow.{}.{purpose}", config.name));
        let size = config.packet_size.get() as u32;
        let mut takes_window = false;
        let (endpoint, protocol) = match &config.protocol {
            Protocol::Tcp(params, source) => {
                let tcp = TcpEndpoint::new(params, source, size, stream("jitter"), stream("onoff"));
                (Endpoint::Tcp(Box::new(tcp)), format!("tcp-{}", params.variant.name()))
            }
            Protocol::Media(media) => {
                let source = |source| SimError::Controller { flow: config.name.clone(), source };
                let mut plan = Plan {
                    config: media.clone(),
                    packet_size: config.packet_size,
                    ack_size: config.ack_size,
                    seed: stream("source").bits(),
                    tcp_jitter: stream("jitter"),
                    trace,
                };
                plan.config.flow.bursty_path |= bursty;
                let name = match &media.controller {
                    ControllerSpec::Named { scheme, .. } => scheme.clone(),
                    ControllerSpec::Custom(_) => "custom".to_owned(),
                };
                let endpoint = if many {
                    let controller = media::controller(media).map_err(source)?;
                    check_tcp_half(config, media, &*controller, &name)?;
                    takes_window = is_windowed(&*controller);
                    Endpoint::Planned(Box::new(plan))
                } else {
                    let built = plan.build().map_err(source)?;
                    check_tcp_half(config, media, built.flow.controller(), &name)?;
                    takes_window = is_windowed(built.flow.controller());
                    Endpoint::Media(Box::new(built))
                };
                (endpoint, name)
            }
            Protocol::Constant(constant) => {
                let sender = ConstantSender::new(constant, size, stream("onoff"), stream("quick_start"));
                (Endpoint::Constant(Box::new(sender)), "constant".to_owned())
            }
            Protocol::External => (Endpoint::External, "external".to_owned()),
        };
        let delays = || if many { DelayHistogram::coarse() } else { DelayHistogram::default() };
        Ok(FlowState {
            endpoint,
            counts: FlowCounts::default(),
            owd: delays(),
            e2ed: delays(),
            ack_size: config.ack_size.get() as u32,
            class_override: config.class_override,
            delay_bound: config.delay_bound.map_or(u64::MAX, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
            rtt_bound: u64::MAX,
            takes_window,
            group,
            ended: false,
            armed: [Instant::NEVER; 3],
            started: config.start + stream("start").duration_below(config.start_spread),
            marks: None,
            checkpoints: Vec::new(),
            name: config.name.as_str().into(),
            protocol: protocol.into(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The flow begins, unless its end came before.
    pub(crate) fn start(&mut self, at: Instant) {
        if self.ended {
            return;
        }
        if let Endpoint::Planned(plan) = &self.endpoint
            // Its controller has been tried.
            && let Ok(media) = plan.build()
        {
            self.endpoint = Endpoint::Media(Box::new(media));
        }
        match &mut self.endpoint {
            Endpoint::Tcp(tcp) => tcp.start(at),
            Endpoint::Media(media) => media.start(at),
            Endpoint::Constant(constant) => constant.start(at),
            Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => {}
        }
    }

    /// Nothing new is sent from now on.
    pub(crate) fn stop(&mut self) {
        self.ended = true;
        match &mut self.endpoint {
            Endpoint::Tcp(tcp) => tcp.stop(),
            Endpoint::Media(media) => media.stop(),
            Endpoint::Constant(constant) => constant.stop(),
            Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => {}
        }
    }

    /// Lets the endpoint go if it is media that has ended, nothing of it is under way, and its receiver owes no
    /// feedback (other than RTCP reports, which end with it).
    pub(crate) fn retire(&mut self) {
        let Endpoint::Media(media) = &mut self.endpoint else { return };
        let ended = self.ended || media.stopped().is_some();
        if ended && self.counts.under_way() == 0 && media.owes_nothing() && media.tcp_is_over() {
            let (srtt, stopped, events) = (media.flow.srtt(), media.stopped(), media.flow.drain_events().collect());
            self.endpoint = Endpoint::Over(Box::new(Over { srtt, stopped, media: media.report(true), events }));
        }
    }

    pub(crate) fn note_checkpoint(&mut self, at: Instant) {
        self.checkpoints.push((at, self.counts));
    }

    pub(crate) fn end_warmup(&mut self, at: Instant) {
        if self.counts != FlowCounts::default() || self.marks.is_some() {
            let marks = self.marks.get_or_insert_default();
            marks.at_warmup = self.counts;
            if let Some(tcp) = self.endpoint.tcp() {
                marks.tcp_at_warmup = tcp.tally(at);
            }
            marks.delays_at_sample = [(0, 0); 2];
        }
        self.owd.clear();
        self.e2ed.clear();
    }

    /// The events since the last sample, `interval` ago, as a row.
    pub(crate) fn sample(&mut self, at: Instant, flow: FlowId, interval: Duration) -> SeriesRow {
        let marks = self.marks.get_or_insert_default();
        let since = self.counts.since(&marks.at_sample);
        marks.at_sample = self.counts;
        let delays = [self.owd.total(), self.e2ed.total()];
        let [owd, e2ed] = [0, 1].map(|k| {
            let ((n, sum), (n_before, sum_before)) = (delays[k], marks.delays_at_sample[k]);
            (sum - sum_before).checked_div(u128::from(n - n_before)).map(|ns| Duration::from_nanos(ns as u64))
        });
        marks.delays_at_sample = delays;
        let mut row = SeriesRow {
            at,
            flow,
            send_rate: per_second(since.sent.bytes, interval),
            throughput: per_second(since.received.bytes, interval),
            dummy_rate: per_second(since.dummies_sent.bytes, interval),
            target_rate: Rate::ZERO,
            cwnd: 0.0,
            rwnd: None,
            srtt: None,
            rto: None,
            loss_event_rate: None,
            send_buffer: Bytes::ZERO,
            owd,
            e2ed,
            drops: since.dropped_in_all().packets.get(),
            state: "",
        };
        match &self.endpoint {
            Endpoint::Tcp(tcp) => {
                row.cwnd = tcp.tx.cwnd();
                row.srtt = tcp.tx.srtt();
                row.rto = row.srtt.map(|_| tcp.tx.rto());
                row.state = tcp.tx.phase().name();
            }
            Endpoint::Media(media) => {
                row.target_rate = media.flow.target_rate();
                row.srtt = media.flow.srtt();
                row.rto = row.srtt.map(|_| media.flow.rto());
                row.loss_event_rate = media.flow.status().p;
                row.send_buffer = media.waiting();
                row.cwnd = media.tcp().map_or(0.0, TcpSender::cwnd);
                if let Some(windows) = media.flow.controller().windows() {
                    (row.cwnd, row.rwnd) = (windows.cwnd, Some(windows.rwnd));
                }
                row.state = if media.stopped().is_some() { "stopped" } else { media.flow.status().state };
            }
            Endpoint::Constant(constant) => row.state = constant.state(),
            Endpoint::External => row.state = "external",
            Endpoint::Planned(_) => {}
            Endpoint::Over(_) => row.state = "over",
        }
        row
    }

    /// The events of the controller since the last call.
    pub(crate) fn drain_events(&mut self) -> Vec<FlowEvent> {
        match &mut self.endpoint {
            Endpoint::Media(media) => media.flow.drain_events().collect(),
            Endpoint::Over(over) => std::mem::take(&mut over.events),
            _ => Vec::new(),
        }
    }

    /// The results until `end`. `last`: it is not asked again, and records may be moved.
    pub(crate) fn report(&mut self, end: Instant, window: Duration, group: &str, last: bool) -> FlowReport {
        let marks = self.marks.as_deref().copied().unwrap_or_default();
        let mut report = FlowReport {
            name: self.name.to_string(),
            group: group.to_owned(),
            protocol: self.protocol.to_string(),
            started: self.started,
            window,
            measured: self.counts.since(&marks.at_warmup),
            whole: self.counts,
            checkpoints: self.checkpoints.clone(),
            owd: if last { std::mem::take(&mut self.owd) } else { self.owd.clone() },
            e2ed: if last { std::mem::take(&mut self.e2ed) } else { self.e2ed.clone() },
            srtt: None,
            finished: None,
            stopped: None,
            tcp: None,
            media: None,
        };
        let of_media = |report: &mut FlowReport, media: &mut MediaEndpoint| {
            report.srtt = media.flow.srtt();
            report.stopped = media.stopped();
            report.media = Some(media.report(last));
        };
        report.tcp = self.endpoint.tcp().map(|tcp| TcpReport {
            counters: tcp.counters(),
            measured: tcp.tally(end).since(&marks.tcp_at_warmup),
            cwnd: tcp.cwnd(),
            ssthresh: tcp.ssthresh(),
        });
        match &mut self.endpoint {
            Endpoint::Tcp(tcp) => {
                report.srtt = tcp.tx.srtt();
                report.finished = tcp.finished;
            }
            Endpoint::Media(media) => of_media(&mut report, media),
            Endpoint::Planned(plan) => {
                if let Ok(mut media) = plan.build() {
                    of_media(&mut report, &mut media);
                }
            }
            Endpoint::Over(over) => {
                (report.srtt, report.stopped) = (over.srtt, over.stopped);
                report.media = Some(over.media.clone());
                if last {
                    over.media.packet_records = Vec::new();
                    over.media.frame_records = Vec::new();
                }
            }
            Endpoint::Constant(_) | Endpoint::External => {}
        }
        report
    }
}
