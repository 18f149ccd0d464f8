//! A media flow: the sender and the receiver of the wire, each on a thread, where their frames come from, and when
//! data units are complete.
//!
//! Data units are known only as the receiver sees them. A data unit of which no packet came is listed between the
//! others, with the departure of the one before.

use super::endpoint::{Endpoint, Moment};
use super::ip::Ip;
use fairpace_control::{FlowEvent, FlowEventKind};
use fairpace_media::{
    Codec, EncodedFrame, EncoderModel, Format, FrameSink, FrameSource, MediaError, ReceivedFrame, timestamp_90k,
};
use fairpace_net::receive::{PacketNote, ReceiveConfig, ReceiveObserver, Receiver};
use fairpace_net::send::{self, SendConfig, SendEnd, SendObserver, SendSample};
use fairpace_net::{Clock, NetError, UdpSocket};
use fairpace_rtp::header_ext::Extensions;
use fairpace_rtp::{packet, vp8};
use fairpace_sim::{FlowId, FrameRecord};
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};
use std::sync::atomic::{AtomicBool, Ordering};

/// The plan of one flow.
#[derive(Debug)]
pub(crate) struct MediaPlan {
    pub(crate) flow: FlowId,
    pub(crate) ip: Ip,
    pub(crate) config: SendConfig,
    pub(crate) receiver: ReceiveConfig,
    pub(crate) source: MediaSource,
    pub(crate) start: Instant,
}

/// Where frames come from.
#[derive(Clone, Debug)]
pub(crate) enum MediaSource {
    /// Full packets, always a few more than may leave.
    Greedy,
    /// Data units of so many full packets; the next is there when less than two packets wait.
    Adus(u64),
    /// Full packets at that rate on the wire.
    Constant(Rate),
    /// The encoder model, told the controller's rate.
    Encoder(Box<EncoderModel>),
}

/// The bytes in front of a full packet's payload.
pub(crate) fn headers(ip: Ip) -> u64 {
    ip.udp_headers() + (packet::HEADER_LEN + Extensions::FULL_LEN + vp8::DESCRIPTOR_LEN) as u64
}

/// The least payload: a data unit's number is in it, behind the byte that a video frame's kind is in.
pub(crate) const LEAST_PAYLOAD: u64 = 5;
/// The bytes in front of a simulated packet's payload: IP, UDP and RTP.
const SIMULATED_HEADERS: u64 = 40;

/// Payload of a full packet of that size on the wire.
pub(crate) fn payload(packet_size: Bytes, ip: Ip) -> Bytes {
    Bytes::new(packet_size.get().saturating_sub(headers(ip)))
}

/// The receiver's port; call it inside the receivers' namespace.
pub(crate) fn open_receiver(
    config: ReceiveConfig,
    at: std::net::SocketAddr,
    clock: Clock,
) -> Result<Receiver, NetError> {
    let socket = UdpSocket::bind(at, true, config.buffers, clock)?;
    Receiver::on(socket, config, clock)
}

/// Receives until it is stopped: the data units, if the source gives any, and an error of the receiver, if there was one.
pub(crate) fn receive(
    receiver: Receiver,
    units: Option<Units>,
    stop: &AtomicBool,
) -> (Vec<FrameRecord>, Option<String>) {
    let (mut sink, mut arrivals) = (Numbers::default(), Arrivals::default());
    let ran = match units {
        Some(_) => receiver.run(&mut sink, &mut arrivals, stop),
        None => receiver.run(&mut sink, &mut (), stop),
    };
    let records = units.map_or(Vec::new(), |units| arrivals.records(&units, &sink));
    (records, ran.err().map(|e| e.to_string()))
}

/// The data units of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    /// Packets of each.
    pub(crate) packets: u64,
    pub(crate) packet_size: Bytes,
}

impl MediaPlan {
    /// The flow's data units, if its source gives any.
    pub(crate) fn units(&self) -> Option<Units> {
        match self.source {
            MediaSource::Adus(packets) => Some(Units { packets, packet_size: self.config.session.packet_size }),
            _ => None,
        }
    }
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
    let payload = payload(size, plan.ip);
    let mut source: Box<dyn FrameSource> = match plan.source {
        MediaSource::Greedy => Box::new(Packets::new(payload, Pace::Greedy, clock.now())),
        MediaSource::Adus(packets) => {
            Box::new(Packets::new(Bytes::new(payload.get() * packets), Pace::Waiting, clock.now()))
        }
        MediaSource::Constant(rate) => {
            let media = fairpace_media::media_rate(rate, size, size - payload);
            Box::new(Packets::new(payload, Pace::Fixed(media), clock.now()))
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
            cwnd: s.tcp_cwnd.map_or(0.0, f64::from),
            srtt: s.srtt,
            rto: s.srtt.map(|_| s.rto),
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
    pace: Pace,
    rate: Rate,
    /// Frames so far.
    given: u32,
    /// The last packet's capture.
    last: Instant,
    next: Instant,
}

/// When a source's next frame is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// At a rate of payload.
    Fixed(Rate),
    /// A little sooner than the controller allows.
    Greedy,
    /// Whenever it is asked for.
    Waiting,
}

/// A greedy source gives this much more than may leave, so that there is always a packet waiting. The session
/// asks for less when much waits.
const GREED: f64 = 1.25;
/// After a stall no more than this is caught up on.
const CATCH_UP: Duration = Duration::from_millis(500);

impl Packets {
    fn new(payload: Bytes, pace: Pace, now: Instant) -> Packets {
        let rate = if let Pace::Fixed(rate) = pace { rate } else { Rate::kbps(50.0) };
        Packets { payload, pace, rate, given: 0, last: now, next: now }
    }

    fn spacing(&self) -> Duration {
        // Slower than one packet a second there is nothing to gain from waiting longer.
        let seconds = self.payload.as_f64() * 8.0 / self.rate.as_bps().max(1.0);
        Duration::from_secs_f64(seconds.clamp(1e-6, 1.0))
    }
}

impl FrameSource for Packets {
    fn format(&self) -> Format {
        let follows_rate = self.pace == Pace::Greedy;
        Format {
            codec: Codec::Filler,
            width: 0,
            height: 0,
            frame_interval: self.spacing(),
            follows_rate,
            scaled_from: None,
            sound: false,
            cut_off: false,
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        if self.pace == Pace::Greedy {
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
        let capture = if self.pace == Pace::Waiting { now } else { self.next.max(now - CATCH_UP) };
        self.last = capture;
        self.next = if self.pace == Pace::Waiting { now } else { capture + self.spacing() };
        let mut data = vec![0; self.payload.get() as usize];
        if let Some(number) = data.get_mut(1..LEAST_PAYLOAD as usize) {
            number.copy_from_slice(&self.given.to_be_bytes());
        }
        self.given = self.given.wrapping_add(1);
        Ok(Some(EncodedFrame { data, capture, timestamp_90k: timestamp_90k(capture), key: true }))
    }
}

/// Takes frames, and keeps of them only where their numbers are.
#[derive(Debug, Default)]
struct Numbers {
    /// First packet and number of the last frame.
    last: Option<(u64, u32)>,
}

impl FrameSink for Numbers {
    fn on_frame(&mut self, _now: Instant, frame: ReceivedFrame) -> Result<(), MediaError> {
        if let Some(number) = frame.data.get(1..LEAST_PAYLOAD as usize).and_then(|n| n.try_into().ok()) {
            self.last = Some((frame.first_sequence, u32::from_be_bytes(number)));
        }
        Ok(())
    }
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    sequence: u64,
    left: Instant,
    came: Instant,
    via: Via,
}

/// All packets of a flow's data units that came.
#[derive(Debug, Default)]
struct Arrivals {
    all: Vec<Arrival>,
}

impl ReceiveObserver for Arrivals {
    fn on_packet(&mut self, packet: &PacketNote) {
        // Both ends have one clock.
        let delay = packet.one_way_delay.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        let (sequence, came, via) = (packet.sequence, packet.arrived, packet.via);
        self.all.push(Arrival { sequence, left: came - Duration::from_nanos(delay), came, via });
    }
}

impl Arrivals {
    /// Every data unit up to the last of which something came, in the simulator's terms.
    fn records(mut self, units: &Units, numbers: &Numbers) -> Vec<FrameRecord> {
        let packets = units.packets.max(1);
        // All data units have as many packets, and the flow no others.
        let first = numbers.last.and_then(|(sequence, number)| sequence.checked_sub(u64::from(number) * packets));
        let Some(first) = first else { return Vec::new() };
        self.all.retain(|a| a.sequence >= first);
        self.all.sort_by_key(|a| (a.sequence, a.came));
        self.all.dedup_by_key(|a| a.sequence);
        let size = Bytes::new(packets * units.packet_size.get().saturating_sub(SIMULATED_HEADERS));
        let mut records: Vec<FrameRecord> = Vec::new();
        let mut before = Instant::ZERO;
        for own in self.all.chunk_by(|a, b| (a.sequence - first) / packets == (b.sequence - first) / packets) {
            let Some((head, tail)) = own.first().zip(own.last()) else { continue };
            let number = (head.sequence - first) / packets;
            let record = |captured: Instant, sent: Instant| FrameRecord {
                captured,
                size,
                key: true,
                packets: packets as u32,
                received: 0,
                sent: Some(sent),
                complete: None,
                over_tcp: 0,
            };
            while (records.len() as u64) < number {
                records.push(record(before, before));
            }
            before = tail.left;
            let over_tcp = own.iter().filter(|a| a.via == Via::Tcp).count();
            let all = own.len() as u64 == packets;
            records.push(FrameRecord {
                received: own.len() as u32,
                complete: own.iter().map(|a| a.came).max().filter(|_| all),
                // Of those that did not come, nothing speaks for the other way.
                over_tcp: if over_tcp == own.len() { packets as u32 } else { over_tcp as u32 },
                ..record(head.left, tail.left)
            });
        }
        // One of which nothing came took TCP if its neighbours did.
        for i in 1..records.len().saturating_sub(1) {
            if records[i].received == 0 && [i - 1, i + 1].iter().all(|n| records[*n].via() == Via::Tcp) {
                records[i].over_tcp = packets as u32;
            }
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_units_are_told_by_the_numbers_of_their_packets() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut arrivals = Arrivals::default();
        // Units of two packets, the first of which has number 100. Of unit 1 one packet is lost, of unit 2 all; unit 4
        // overtakes itself.
        let came = [
            (100, 10, Via::Tcp),
            (101, 12, Via::Tcp),
            (103, 20, Via::Udp),
            (106, 40, Via::Tcp),
            (107, 41, Via::Udp),
            (109, 50, Via::Udp),
            (108, 51, Via::Udp),
            (108, 60, Via::Udp),
        ];
        for (sequence, ms, via) in came {
            arrivals.on_packet(&PacketNote {
                sequence,
                arrived: at(ms),
                one_way_delay: Some(5_000_000),
                size: Bytes::new(44),
                retransmitted: false,
                recovered: false,
                via,
            });
        }
        let mut numbers = Numbers::default();
        let mut source = Packets::new(Bytes::new(88), Pace::Waiting, at(0));
        let frames: Vec<Vec<u8>> = (0..5).map(|_| source.next_frame(at(1)).unwrap().unwrap().data).collect();
        let frame = ReceivedFrame {
            first_sequence: 108,
            last_sequence: 109,
            absent_before: 0,
            timestamp_90k: 0,
            data: frames[4].clone(),
            key: true,
            via: Some(Via::Udp),
            arrival: at(51),
        };
        numbers.on_frame(at(51), frame).unwrap();
        let records = arrivals.records(&Units { packets: 2, packet_size: Bytes::new(104) }, &numbers);
        let found: Vec<_> = records.iter().map(|r| (r.received, r.complete, r.over_tcp)).collect();
        let expected = [(2, Some(at(12)), 2), (1, None, 0), (0, None, 0), (2, Some(at(41)), 1), (2, Some(at(51)), 0)];
        assert_eq!(found, expected, "the fourth is split");
        assert_eq!((records[0].captured, records[0].sent, records[0].size), (at(5), Some(at(7)), Bytes::new(128)));
        assert_eq!((records[2].captured, records[2].sent), (at(15), Some(at(15))), "as the one before");
    }
}
