//! A flow as the network keeps it: its endpoint while there is one, its counts, and what is noted of it.
//!
//! In a run of many flows most of them have not begun or are over. Those take little: an endpoint is made when
//! its flow begins, and let go when the flow is over: it has ended, nothing of it is under way, and nobody owes anything.

use std::ops::Range;
use std::sync::Arc;

use fairpace_control::feedback::Form;
use fairpace_control::{Controller, FlowEvent, StopReason};
use fairpace_units::{Bytes, Class, Duration, Instant, RandomStream, Rate, Via};

use crate::SimError;
use crate::config::{ControllerSpec, FlowConfig, MediaConfig, Protocol};
use crate::constant::ConstantSender;
use crate::counts::per_second;
use crate::delay_histogram::DelayHistogram;
use crate::hop::Hop;
use crate::media::{self, MediaEndpoint};
use crate::packet::{Direction, FlowId};
use crate::prefetch::{prefetch_head, prefetch_part};
use crate::report::{FlowCounts, FlowReport, MediaReport, SeriesRow, TcpReport};
use crate::tcp::endpoint::TcpEndpoint;
use crate::tcp::{TcpParams, TcpSender, TcpSource, TcpStanding, TcpTally};

/// From so many flows on, a run keeps of each only what its report needs: see
/// [`SimReport::flows`](crate::SimReport::flows).
pub const MANY_FLOWS: usize = 256;

/// In such a run the events of so many flows of each group are collected: 20,000 calls would have gigabytes of them.
pub const MOST_FLOWS_TRACED: u32 = 100;

/// In cache lines by use: a segment that arrives touches the first three, an acknowledgement the first one and the fourth.
#[repr(C, align(64))]
pub(crate) struct FlowState {
    pub(crate) endpoint: Endpoint,
    /// When the entries of its timers in the event set come up: the sender's slow one (TCP's
    /// timeout), the receiver's, and the sender's fast one (pacing, jitter, bursts). Slow and fast
    /// apart, so that arming the fast one does not leave entries of the slow one behind.
    pub(crate) armed: [Instant; 3],
    /// The media that its packets enter first, by direction.
    pub(crate) enters: [u32; 2],
    /// The media behind the feeders on its routes, by direction; none if there is no feeder.
    pub(crate) fed: [u32; 2],
    pub(crate) class_override: Option<Class>,
    /// Its [`FlowConfig::stop`] has come: nothing new is sent.
    pub(crate) ended: bool,
    /// All that its TCP connection was to carry is acknowledged. Here, since every arrival asks for it.
    pub(crate) finished: bool,
    /// The answer to a packet goes into a link of the flow's own from which exits are known, by the packet's direction.
    pub(crate) answers_apart: [bool; 2],
    // The second line.
    pub(crate) owd: DelayHistogram,
    // The third line, to the counts of the receiver.
    /// Data with a longer one-way delay is counted, in nanoseconds; the greatest number if none is to be.
    pub(crate) delay_bound: u64,
    pub(crate) ack_size: u32,
    /// Its place among the groups.
    pub(crate) group: u32,
    pub(crate) counts: FlowCounts,
    pub(crate) e2ed: DelayHistogram,
    /// As `delay_bound`, for RTTs.
    pub(crate) rtt_bound: u64,
    /// Its feedback is sack vectors: a base station gives it a window.
    pub(crate) takes_window: bool,
    /// The owner of its place.
    pub(crate) place: Place,
    /// The flow was over at its last row of series: there are no more.
    pub(crate) rows_ended: bool,
    /// When it begins.
    pub(crate) started: Instant,
    /// Counts at earlier instants; `None` while these are zero.
    marks: Option<Box<Marks>>,
    checkpoints: Vec<(Instant, FlowCounts)>,
    name: Box<str>,
    protocol: Box<str>,
}

const _: () = {
    assert!(std::mem::offset_of!(FlowState, owd) == 64 && std::mem::offset_of!(FlowState, delay_bound) == 128);
    let sent = std::mem::offset_of!(FlowState, counts) + std::mem::offset_of!(FlowCounts, sent);
    assert!(sent == FlowState::RECEIVING);
};

pub(crate) enum Endpoint {
    Tcp(Box<TcpEndpoint>),
    Media(Box<MediaEndpoint>),
    Constant(Box<ConstantSender>),
    External,
    /// One that has not begun.
    Planned(Box<Plan>),
    /// One that is over.
    Over(Box<Over>),
}

impl Endpoint {
    /// The standing of the TCP sender that it is, or has.
    fn tcp(&self) -> Option<TcpStanding> {
        match self {
            Endpoint::Tcp(tcp) => Some(tcp.tx.standing()),
            Endpoint::Media(media) => media.tcp().map(TcpSender::standing),
            Endpoint::Over(over) => over.tcp.clone(),
            Endpoint::Constant(_) | Endpoint::External | Endpoint::Planned(_) => None,
        }
    }
}

/// The owner of a place among the flows of a network.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// A flow's own, from the beginning to the end of the run; its number is that of the place.
    Own,
    /// Now that of a flow that came.
    Comer {
        number: FlowId,
        /// Its route among those of flows that come.
        way: u32,
        /// When it stops; never if it does not.
        stop: Instant,
    },
    /// No flow's.
    Vacant,
}

/// The plan of an endpoint that is not yet built.
pub(crate) enum Plan {
    Tcp(TcpPlan),
    Media(Box<MediaPlan>),
}

#[derive(Clone)]
pub(crate) struct TcpPlan {
    params: Arc<TcpParams>,
    source: TcpSource,
    segment_size: u32,
    jitter: RandomStream,
    on_off: RandomStream,
}

pub(crate) struct MediaPlan {
    config: MediaConfig,
    packet_size: Bytes,
    ack_size: Bytes,
    seed: u64,
    tcp_jitter: RandomStream,
    trace: bool,
}

/// The remains of an endpoint that is over: what a report says of it.
#[derive(Default)]
pub(crate) struct Over {
    srtt: Option<Duration>,
    finished: Option<Instant>,
    stopped: Option<StopReason>,
    tcp: Option<TcpStanding>,
    media: Option<Box<MediaReport>>,
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
    /// The endpoint; `None` cannot be, since a controller that is refused was refused at the beginning.
    fn build(&self) -> Option<Endpoint> {
        match self {
            Plan::Tcp(plan) => Some(Endpoint::Tcp(Box::new(plan.build()))),
            Plan::Media(plan) => plan.build().ok().map(|media| Endpoint::Media(Box::new(media))),
        }
    }
}

impl TcpPlan {
    fn build(&self) -> TcpEndpoint {
        let TcpPlan { params, source, segment_size, jitter, on_off } = self.clone();
        TcpEndpoint::new(params, &source, segment_size, jitter, on_off)
    }
}

impl MediaPlan {
    fn build(&self) -> Result<MediaEndpoint, fairpace_control::ParamError> {
        let MediaPlan { config, packet_size, ack_size, seed, tcp_jitter, trace } = self;
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

/// Parameters that flows have in common: of a hundred thousand alike there is one value.
#[derive(Default)]
pub(crate) struct SharedParams {
    tcp: Vec<Arc<TcpParams>>,
}

impl SharedParams {
    /// Looked for among so many of the last that differ.
    const KEPT: usize = 8;

    fn tcp(&mut self, params: &TcpParams) -> Arc<TcpParams> {
        if let Some(same) = self.tcp.iter().find(|kept| ***kept == *params) {
            return Arc::clone(same);
        }
        let new = Arc::new(params.clone());
        self.tcp.truncate(SharedParams::KEPT - 1);
        self.tcp.insert(0, Arc::clone(&new));
        new
    }
}

impl FlowState {
    /// The bytes that a segment touches which arrives, and, beside the first line, those that an acknowledgement does.
    const RECEIVING: usize = 192;
    const SENDING: Range<usize> = FlowState::RECEIVING..256;

    /// `many`: the flow is one of many. `bursty`: packets may come faster than they were sent. `shared`: what flows
    /// before it have in common.
    pub(crate) fn new(
        config: &FlowConfig,
        group: u32,
        seed: u64,
        trace: bool,
        many: bool,
        bursty: bool,
        shared: &mut SharedParams,
    ) -> Result<FlowState, SimError> {
        let stream = |purpose: &str| RandomStream::named(seed, &format!("flow.{}.{purpose}", config.name));
        let size = config.packet_size.get() as u32;
        let mut takes_window = false;
        let (endpoint, protocol) = match &config.protocol {
            Protocol::Tcp(params, source) => {
                let plan = TcpPlan {
                    params: shared.tcp(params),
                    source: *source,
                    segment_size: size,
                    jitter: stream("jitter"),
                    on_off: stream("onoff"),
                };
                let endpoint = if many {
                    Endpoint::Planned(Box::new(Plan::Tcp(plan)))
                } else {
                    Endpoint::Tcp(Box::new(plan.build()))
                };
                (endpoint, format!("tcp-{}", params.variant.name()))
            }
            Protocol::Media(media) => {
                let source = |source| SimError::Controller { flow: config.name.clone(), source };
                let mut plan = MediaPlan {
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
                    Endpoint::Planned(Box::new(Plan::Media(Box::new(plan))))
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
            Protocol::External => {
                // Its driver knows, and says so by `Network::join`.
                takes_window = true;
                (Endpoint::External, "external".to_owned())
            }
        };
        let delays = || if many { DelayHistogram::coarse() } else { DelayHistogram::default() };
        Ok(FlowState {
            endpoint,
            counts: FlowCounts::default(),
            owd: delays(),
            enters: [Hop::ENDPOINT.medium; 2],
            fed: [Hop::ENDPOINT.medium; 2],
            e2ed: delays(),
            ack_size: config.ack_size.get() as u32,
            class_override: config.class_override,
            delay_bound: config.delay_bound.map_or(u64::MAX, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
            rtt_bound: u64::MAX,
            takes_window,
            group,
            ended: false,
            finished: false,
            answers_apart: [false; 2],
            place: Place::Own,
            rows_ended: false,
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

    /// Asks for the flow's own memory that a packet touches which arrives in that direction.
    #[inline(always)]
    pub(crate) fn prefetch(&self, direction: Direction) {
        match direction {
            Direction::Forward => prefetch_head(self, FlowState::RECEIVING),
            Direction::Back => {
                prefetch_head(self, 1);
                prefetch_part(self, FlowState::SENDING);
            }
        }
    }

    /// Asks for the other memory that such a packet touches.
    #[inline(always)]
    pub(crate) fn prefetch_arrival(&self, direction: Direction) {
        if let Endpoint::Tcp(tcp) = &self.endpoint {
            match direction {
                Direction::Forward => prefetch_head(&**tcp, TcpEndpoint::RECEIVING),
                Direction::Back => prefetch_part(&**tcp, TcpEndpoint::RECEIVING..TcpEndpoint::SENDING),
            }
        }
    }

    /// Whether a packet of TCP may arrive at that instant before its time has come: nothing happens to that end of the flow before, and its answers meet no
    /// other packets before an event of theirs.
    #[inline(always)]
    pub(crate) fn may_arrive(&self, at: Instant, direction: Direction) -> bool {
        let Endpoint::Tcp(tcp) = &self.endpoint else { return false };
        let timer = match direction {
            Direction::Forward => tcp.rx.poll_timer(),
            Direction::Back => tcp.poll_timer(),
        };
        at <= timer && self.answers_apart[direction as usize]
    }

    /// The flow begins, unless its end came before.
    pub(crate) fn start(&mut self, at: Instant) {
        if self.ended {
            return;
        }
        if let Endpoint::Planned(plan) = &self.endpoint
            && let Some(built) = plan.build()
        {
            self.endpoint = built;
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

    /// The flow has ended, nothing of it is under way, and its receiver owes no feedback (other than RTCP reports, which
    /// end with it).
    pub(crate) fn is_over(&self) -> bool {
        match &self.endpoint {
            Endpoint::Tcp(tcp) => (self.ended || self.finished) && self.counts.under_way() == 0 && tcp.is_quiet(),
            Endpoint::Media(media) => {
                let ended = self.ended || media.stopped().is_some();
                ended && self.counts.under_way() == 0 && media.owes_nothing() && media.tcp_is_over()
            }
            Endpoint::Constant(_) => self.ended && self.counts.under_way() == 0,
            Endpoint::External | Endpoint::Planned(_) => false,
            Endpoint::Over(_) => true,
        }
    }

    /// The number of the flow that has this place.
    pub(crate) fn number(&self, place: FlowId) -> Option<FlowId> {
        match self.place {
            Place::Own => Some(place),
            Place::Comer { number, .. } => Some(number),
            Place::Vacant => None,
        }
    }

    /// The standing of its TCP, and what that had counted at the end of the warm-up.
    pub(crate) fn tcp_account(&self) -> Option<(TcpStanding, TcpTally)> {
        let before = self.marks.as_deref().map(|marks| marks.tcp_at_warmup).unwrap_or_default();
        self.endpoint.tcp().map(|tcp| (tcp, before))
    }

    /// The place is no flow's any more.
    pub(crate) fn vacate(&mut self) {
        self.place = Place::Vacant;
        self.endpoint = Endpoint::Over(Box::default());
        self.counts = FlowCounts::default();
        (self.marks, self.checkpoints) = (None, Vec::new());
    }

    /// Its packets go the way of that flow's.
    pub(crate) fn go_as(&mut self, other: &FlowState) {
        (self.enters, self.fed, self.answers_apart) = (other.enters, other.fed, other.answers_apart);
    }

    /// Lets the endpoint go if the flow is over. Whether it is, and was not before.
    #[inline]
    pub(crate) fn retire(&mut self) -> bool {
        let may_be = match &self.endpoint {
            Endpoint::Tcp(_) => self.ended || self.finished,
            Endpoint::Media(media) => self.ended || media.stopped().is_some(),
            Endpoint::Constant(_) => self.ended,
            Endpoint::External | Endpoint::Planned(_) | Endpoint::Over(_) => false,
        };
        may_be && self.retire_if_over()
    }

    #[inline(never)]
    fn retire_if_over(&mut self) -> bool {
        if !self.is_over() {
            return false;
        }
        let tcp = self.endpoint.tcp();
        let over = match &mut self.endpoint {
            Endpoint::Tcp(endpoint) => {
                Over { srtt: endpoint.tx.srtt(), finished: endpoint.finished, tcp, ..Over::default() }
            }
            Endpoint::Media(media) => Over {
                srtt: media.flow.srtt(),
                stopped: media.stopped(),
                tcp,
                media: Some(Box::new(media.report(true))),
                events: media.flow.drain_events().collect(),
                ..Over::default()
            },
            _ => Over::default(),
        };
        self.endpoint = Endpoint::Over(Box::new(over));
        true
    }

    pub(crate) fn note_checkpoint(&mut self, at: Instant) {
        if !matches!(self.place, Place::Vacant) {
            self.checkpoints.push((at, self.counts));
        }
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
        // One that never began is as it was made.
        let mut unbegun = if let Endpoint::Planned(plan) = &self.endpoint { plan.build() } else { None };
        let endpoint = unbegun.as_mut().unwrap_or(&mut self.endpoint);
        report.tcp = endpoint.tcp().map(|tcp| TcpReport {
            counters: tcp.counters,
            measured: tcp.tally(end).since(&marks.tcp_at_warmup),
            cwnd: tcp.cwnd,
            ssthresh: tcp.ssthresh,
        });
        match endpoint {
            Endpoint::Tcp(tcp) => {
                report.srtt = tcp.tx.srtt();
                report.finished = tcp.finished;
            }
            Endpoint::Media(media) => {
                report.srtt = media.flow.srtt();
                report.stopped = media.stopped();
                report.media = Some(media.report(last));
            }
            Endpoint::Over(over) => {
                (report.srtt, report.finished, report.stopped) = (over.srtt, over.finished, over.stopped);
                report.media =
                    if last { over.media.take().map(|media| *media) } else { over.media.as_deref().cloned() };
            }
            Endpoint::Constant(_) | Endpoint::External | Endpoint::Planned(_) => {}
        }
        report
    }
}
