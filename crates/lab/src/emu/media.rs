//! A media flow: the sender and the receiver of the wire, each on a thread, and where their frames come from.

use super::endpoint::{Endpoint, Moment};
use fairpace_control::{FlowEvent, FlowEventKind};
use fairpace_media::{
    Codec, EncodedFrame, EncoderModel, Format, FrameSink, FrameSource, MediaError, ReceivedFrame, timestamp_90k,
};
use fairpace_net::receive::{ReceiveConfig, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd, SendObserver, SendSample};
use fairpace_net::{Clock, Family, NetError, UdpSocket};
use fairpace_rtp::header_ext::Extensions;
use fairpace_rtp::{packet, vp8};
use fairpace_sim::FlowId;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::sync::atomic::{AtomicBool, Ordering};

/// What one flow is to do.
#[derive(Debug)]
pub(crate) struct MediaPlan {
    pub(crate) flow: FlowId,
    pub(crate) config: SendConfig,
    pub(crate) receiver: ReceiveConfig,
    pub(crate) source: MediaSource,
    pub(crate) start: Instant,
}

/// Where frames come from.
#[derive(Clone, Debug)]
pub(crate) enum MediaSource {
    /// Data units of so many full packets, always a few more than may leave.
    Greedy(u64),
    /// Full packets at that rate on the wire.
    Constant(Rate),
    /// The encoder model, told the controller's rate.
    Encoder(Box<EncoderModel>),
}

/// Payload of a full packet of that size on the wire, over IPv4.
pub(crate) fn payload(packet_size: Bytes) -> Bytes {
    let headers = 28 + packet::HEADER_LEN + Extensions::FULL_LEN + vp8::DESCRIPTOR_LEN;
    packet_size - Bytes::new(headers as u64)
}

/// The receiver's port; call it inside the receivers' namespace.
pub(crate) fn open_receiver(plan: &MediaPlan, at: std::net::SocketAddr, clock: Clock) -> Result<Receiver, NetError> {
    let config = ReceiveConfig { family: if at.is_ipv4() { Family::V4 } else { Family::V6 }, ..plan.receiver.clone() };
    let socket = UdpSocket::bind(at, true, config.buffers, clock)?;
    Receiver::on(socket, config, clock)
}

/// Receives until it is stopped. An error of the receiver, if there was one.
pub(crate) fn receive(receiver: Receiver, stop: &AtomicBool) -> Option<String> {
    receiver.run(&mut Discard, &mut (), stop).err().map(|e| e.to_string())
}

/// Sends until the flow's end, on a socket that is connected to the receiver.
pub(crate) fn send(
    plan: MediaPlan,
    mut socket: UdpSocket,
    clock: Clock,
    warmup: Instant,
    stop: &AtomicBool,
) -> Endpoint {
    let mut out = Endpoint::new(plan.flow, plan.config.scheme.clone(), plan.start);
    while clock.now() < plan.start && !stop.load(Ordering::Relaxed) {
        let left = plan.start.since(clock.now()).min(Duration::from_millis(50));
        std::thread::park_timeout(std::time::Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(0)));
    }
    let size = plan.config.session.packet_size;
    let mut source: Box<dyn FrameSource> = match plan.source {
        MediaSource::Greedy(packets) => {
            Box::new(Packets::new(Bytes::new(payload(size).get() * packets.max(1)), None, clock.now()))
        }
        MediaSource::Constant(rate) => {
            let media = fairpace_media::media_rate(rate, size, size - payload(size));
            Box::new(Packets::new(payload(size), Some(media), clock.now()))
        }
        MediaSource::Encoder(model) => model,
    };
    let mut watch = Watch { out: &mut out, warmup };
    match send::run_on(&mut socket, &plan.config, clock, source.as_mut(), &mut watch, stop) {
        Ok(report) => {
            out.flow_counters = Some(report.flow);
            out.frames = [report.stats.frames, report.stats.frames_dropped];
            out.unproven = report.stats.rejected.unproven + report.stats.rejected.nonce;
            out.trouble = match report.end {
                SendEnd::Finished | SendEnd::Interrupted | SendEnd::PeerBye => None,
                // The breaker is a result, not a failure.
                SendEnd::Failed(NetError::Breaker { .. }) => None,
                SendEnd::Failed(e) => Some(e.to_string()),
            };
        }
        Err(e) => out.trouble = Some(e.to_string()),
    }
    out
}

struct Watch<'a> {
    out: &'a mut Endpoint,
    warmup: Instant,
}

impl SendObserver for Watch<'_> {
    fn on_flow_event(&mut self, event: &FlowEvent) {
        if let FlowEventKind::Tripped { reason } = event.what {
            self.out.stopped = Some(reason);
        }
        self.out.events.push(*event);
    }

    fn on_sample(&mut self, s: &SendSample) {
        let (_, waiting) = s.queue;
        let moment = Moment {
            at: s.at,
            target_rate: s.rate,
            srtt: s.srtt,
            send_buffer: waiting,
            state: s.state,
            acknowledged: s.flow.data.acked,
            ..Moment::default()
        };
        self.out.note(moment, self.warmup);
    }
}

/// A source of full packets: each, or so many together, is a frame.
#[derive(Debug)]
struct Packets {
    /// Of a frame.
    payload: Bytes,
    /// `None`: more than the controller allows.
    fixed: Option<Rate>,
    rate: Rate,
    /// The last packet's capture.
    last: Instant,
    next: Instant,
}

/// A greedy source gives this much more than may leave, so that there is always a packet waiting. The session
/// asks for less when much waits.
const GREED: f64 = 1.25;
/// After a stall no more than this is caught up on.
const CATCH_UP: Duration = Duration::from_millis(500);

impl Packets {
    fn new(payload: Bytes, fixed: Option<Rate>, now: Instant) -> Packets {
        Packets { payload, fixed, rate: fixed.unwrap_or(Rate::kbps(50.0)), last: now, next: now }
    }

    fn spacing(&self) -> Duration {
        // Slower than one packet a second there is nothing to gain from waiting longer.
        let seconds = self.payload.as_f64() * 8.0 / self.rate.as_bps().max(1.0);
        Duration::from_secs_f64(seconds.clamp(1e-6, 1.0))
    }
}

impl FrameSource for Packets {
    fn format(&self) -> Format {
        let follows_rate = self.fixed.is_none();
        Format { codec: Codec::Filler, width: 0, height: 0, frame_interval: self.spacing(), follows_rate }
    }

    fn set_rate(&mut self, rate: Rate) {
        if self.fixed.is_none() {
            self.rate = rate * GREED;
            // A rise must not wait for the end of a long gap.
            self.next = self.next.min(self.last + self.spacing());
        }
    }

    fn request_key_frame(&mut self) {}

    fn next_frame_at(&self) -> Instant {
        self.next
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        if now < self.next {
            return Ok(None);
        }
        let capture = self.next.max(now - CATCH_UP);
        self.last = capture;
        self.next = capture + self.spacing();
        let data = vec![0; self.payload.get() as usize];
        Ok(Some(EncodedFrame { data, capture, timestamp_90k: timestamp_90k(capture), key: true }))
    }
}

/// Takes frames and keeps none.
struct Discard;

impl FrameSink for Discard {
    fn on_frame(&mut self, _now: Instant, _frame: ReceivedFrame) -> Result<(), MediaError> {
        Ok(())
    }

    fn poll(&mut self, _now: Instant) -> Result<(), MediaError> {
        Ok(())
    }

    fn next(&self) -> Instant {
        Instant::NEVER
    }

    fn take_key_request(&mut self, _now: Instant) -> bool {
        false
    }

    fn finish(&mut self, _now: Instant) -> Result<(), MediaError> {
        Ok(())
    }
}
