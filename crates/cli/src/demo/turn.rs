//! One scheme's turn: relay, receiver and sender, each in its own thread, and what they saw put on one
//! time axis.
//!
//! All three share one clock, whose zero is the beginning of the turn. The path's own zero is the first
//! packet, a few milliseconds later; curves are drawn on the turn's axis.

use super::clip::{DemoClip, FRAMES_PER_SECOND};
use super::curves::{averaged, lost_of_each_second, slopes};
use super::model::{Curve, SchemeRun, StillFile, Totals, TurnEnd};
use super::scheme::Scheme;
use crate::args::Demo as Args;
use crate::cmd::relay;
use crate::error::{Failure, Outcome};
use crate::outputs;
use crate::stop::Stop;
use fairpace_control::{FlowEvent, FlowEventKind};
use fairpace_emu::relay::{Relay, RelayReport};
use fairpace_lab::results::write_whole;
use fairpace_media::{FrameRecord, MediaError, PlayoutParams, Recorder, Verdict, stills};
use fairpace_net::receive::{PacketNote, ReceiveConfig, ReceiveObserver, ReceiveReport, ReceiveSample, Receiver};
use fairpace_net::send::{SendConfig, SendEnd, SendObserver, SendReport, SendSample, run as send};
use fairpace_net::{Clock, Family, NetError};
use fairpace_rtp::{ReceiverStats, SenderEvent, StopReason, What};
use fairpace_sim::SimConfig;
use fairpace_units::{Bytes, Duration, Instant, Rate};
use std::io::IsTerminal as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

/// Distance of the points of all curves.
const SAMPLE: Duration = Duration::from_millis(200);
/// States shorter than this are left out of the picture.
const SHORTEST_STATE: Duration = Duration::from_millis(1);
/// After the sender's end: packets under way, the goodbye and the last play-out.
const LINGER: Duration = Duration::from_secs(5);
/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;

/// Moments of the stills, as shares of the turn: in good times, in the slow stretch, and the last picture,
/// which is due a second after it was sent.
const STILLS: [f64; 3] = [0.3, 0.6, 1.03];

/// The data of the other two threads that the progress line shows.
#[derive(Default)]
struct LiveCounters {
    received_bytes: AtomicU64,
    frames: AtomicU64,
    beside_bytes: AtomicU64,
}

/// How the receivers play out. With retransmission a lost packet comes a round trip late: 550 ms, and the
/// queue before it.
pub(super) fn playout(args: &Args) -> PlayoutParams {
    let usual = PlayoutParams::default();
    if args.no_repair {
        return usual;
    }
    PlayoutParams { delay: Duration::from_secs(1), repair: true, ..usual }
}

pub(super) fn run(scheme: &Scheme, clip: &DemoClip, sim: &SimConfig, args: &Args, stop: &Stop) -> Outcome<SchemeRun> {
    let mut source = clip.open()?;
    let clock = Clock::awake();
    let video = format!("{}.ivf", fairpace_report::folder::folder_name(&scheme.label.to_lowercase()));
    let shared = Arc::new(LiveCounters::default());

    // Receiver first, then the relay that knows its port, then the sender.
    let mut receive = ReceiveConfig::new(0);
    receive.family = Family::V4;
    receive.sample = SAMPLE;
    receive.session.nack = !args.no_repair;
    receive.session.fec = !args.no_repair;
    let receiver = Receiver::open(receive, clock)?;
    let recording = args.out.join(&video);
    let recorder = Recorder::new(playout(args)).to_file(outputs::create(&recording, true)?, &recording)?.with_records();
    let mut config = relay::config(sim.clone(), 0, local(receiver.address()?))?;
    config.family = Family::V4;
    config.sample = SAMPLE;
    let relay = Relay::open(config, clock)?;
    let entrance = local(relay.address()?);

    let (receiver_stop, relay_stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (done, received) = mpsc::channel();
    let receiving = {
        let (stop, shared) = (Arc::clone(&receiver_stop), Arc::clone(&shared));
        std::thread::spawn(move || {
            let mut recorder = recorder;
            let mut receive_log = ReceiveLog { shared, ..ReceiveLog::default() };
            let report = receiver.run(&mut recorder, &mut receive_log, &stop);
            // Nobody listens any more if the turn has failed otherwise.
            let _ = done.send((report, recorder, receive_log));
        })
    };
    let relaying = {
        let (stop, shared) = (Arc::clone(&relay_stop), Arc::clone(&shared));
        std::thread::spawn(move || {
            let beside =
                |s: &fairpace_emu::relay::RelaySample| s.flows.iter().map(|f| f.counts.received.bytes.get()).sum();
            relay.run(|sample| shared.beside_bytes.store(beside(sample), Ordering::Relaxed), &stop)
        })
    };

    let mut config = SendConfig::new(entrance);
    config.scheme.clone_from(&scheme.name);
    config.settings.clone_from(&scheme.settings);
    config.sample = SAMPLE;
    config.trace = true;
    config.session.retransmission = !args.no_repair;
    config.session.fec = !args.no_repair;
    config.session.playout = playout(args).delay;
    // The turn counts from its beginning; media flows from the peer's first answer, a round trip later.
    let trip = sim.only_links().map_or(Duration::ZERO, |both| both.map(|l| l.delay.propagation).iter().sum());
    let first_answer = trip + Duration::from_millis(100);
    let media_time = args.seconds.saturating_sub(first_answer);
    config.duration = Some(media_time);
    let live = !args.quiet && std::io::stderr().is_terminal();
    let mut send_log = SendLog { live, seconds: args.seconds, shared: Arc::clone(&shared), ..SendLog::default() };
    let report = send(&config, clock, source.as_mut(), &mut send_log, stop.flag());
    drop(source);
    if live {
        eprintln!();
    }

    let result = match received.recv_timeout(LINGER) {
        Err(RecvTimeoutError::Timeout) => {
            receiver_stop.store(true, Ordering::Relaxed);
            received.recv().ok()
        }
        other => other.ok(),
    };
    // A flow that was stopped leaves the path to TCP: the turn goes on without it, so that this is seen.
    while clock.now() < Instant::ZERO + args.seconds && !stop.asked() {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    relay_stop.store(true, Ordering::Relaxed);
    let relayed = relaying.join().map_err(|_| lost("relay"))?;
    receiving.join().map_err(|_| lost("receiver"))?;
    let (received, recorder, receive_log) = result.ok_or_else(|| lost("receiver"))?;
    let turn = Turn {
        scheme,
        args,
        media_time,
        send_log,
        report: report?,
        receive_log,
        received: received?,
        recorder,
        relayed: relayed?,
    };
    turn.summed_up(video)
}

fn lost(thread: &str) -> Failure {
    Failure::new(
        crate::error::code::FAILED,
        format!("the thread of the {thread} ended without a result: a bug in Fairpace"),
    )
}

fn local(address: SocketAddr) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
}

/// The sender's side, noted as it happens.
#[derive(Default)]
struct SendLog {
    live: bool,
    seconds: Duration,
    shared: Arc<LiveCounters>,
    samples: Vec<SendSample>,
    states: Vec<(Instant, &'static str)>,
    validated: Option<Instant>,
    stopped: Option<(Instant, StopReason)>,
    /// The time of the last progress line, and the counters then.
    shown: (Instant, u64, u64),
}

impl SendObserver for SendLog {
    fn on_event(&mut self, now: Instant, event: &SenderEvent) {
        match event {
            SenderEvent::PeerValidated { .. } => self.validated = Some(now),
            SenderEvent::Stopped(reason) => self.stopped = Some((now, *reason)),
            _ => {}
        }
    }

    fn on_flow_event(&mut self, event: &FlowEvent) {
        if let FlowEventKind::StateChanged { from, to, .. } = event.what {
            if self.states.is_empty() {
                self.states.push((self.validated.unwrap_or(Instant::ZERO), from));
            }
            self.states.push((event.at, to));
        }
    }

    fn on_sample(&mut self, sample: &SendSample) {
        self.samples.push(*sample);
        let (then, received, beside) = self.shown;
        if !self.live || sample.at < then + Duration::from_secs(1) {
            return;
        }
        let now = [&self.shared.received_bytes, &self.shared.beside_bytes].map(|n| n.load(Ordering::Relaxed));
        let span = sample.at.since(then).as_secs_f64();
        let kbps = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8e-3 / span;
        // 78 columns with the longest numbers: in a terminal of 80 it stays one line.
        eprint!(
            "\r  {:2.0}/{:.0} s  {:<9} allowed {:5.0}, got {:5.0}, TCP {:5.0} kbit/s; {:3} frames\x1b[K",
            sample.at.as_secs_f64(),
            self.seconds.as_secs_f64(),
            sample.state,
            sample.rate.as_bps() / 1e3,
            kbps(now[0], received),
            kbps(now[1], beside),
            self.shared.frames.load(Ordering::Relaxed)
        );
        self.shown = (sample.at, now[0], now[1]);
    }
}

/// The receiver's side.
#[derive(Default)]
struct ReceiveLog {
    shared: Arc<LiveCounters>,
    packets: Vec<PacketNote>,
    /// When, and bytes of media with all headers until then.
    bytes: Vec<(Instant, u64)>,
}

impl ReceiveObserver for ReceiveLog {
    fn on_packet(&mut self, packet: &PacketNote) {
        self.packets.push(*packet);
    }

    fn on_sample(&mut self, sample: &ReceiveSample) {
        let bytes = media_bytes(&sample.stats);
        self.bytes.push((sample.at, bytes));
        self.shared.received_bytes.store(bytes, Ordering::Relaxed);
        self.shared.frames.store(sample.frames, Ordering::Relaxed);
    }
}

/// Video received, sent again or not, with all headers.
fn media_bytes(stats: &ReceiverStats) -> u64 {
    [&stats.media, &stats.retransmission].iter().map(|s| s.bytes + s.received * HEADERS).sum()
}

/// A turn that is over.
struct Turn<'a> {
    scheme: &'a Scheme,
    args: &'a Args,
    /// How long the scheme was to send.
    media_time: Duration,
    send_log: SendLog,
    report: SendReport,
    receive_log: ReceiveLog,
    received: ReceiveReport,
    recorder: Recorder,
    relayed: RelayReport,
}

impl Turn<'_> {
    fn summed_up(self, video: String) -> Outcome<SchemeRun> {
        let ended = self.ended();
        let mut remarks = self.relayed.invalid.clone();
        if self.received.socket.kernel_drops > 0 {
            remarks.push(format!("this machine's kernel dropped {} packets", self.received.socket.kernel_drops));
        }
        let shown = self.recorder.playout().totals().frames.in_time > 0;
        let pictures = if shown { self.stills(&video, &mut remarks) } else { Ok(Vec::new()) };
        let rate = |rate: Rate| rate.as_bps() / 1e3;
        let samples = &self.send_log.samples;
        let counted = |get: fn(&SendSample) -> Bytes| slopes(samples.iter().map(|s| (s.at, get(s).get())));
        let sending = |s: &&SendSample| {
            self.send_log.validated.is_some_and(|v| s.at >= v) && self.send_log.stopped.is_none_or(|(at, _)| s.at < at)
        };
        Ok(SchemeRun {
            scheme: self.scheme.name.clone(),
            label: self.scheme.label.clone(),
            elapsed_s: self.report.elapsed.as_secs_f64(),
            target_kbps: samples.iter().filter(sending).map(|s| (s.at.as_secs_f64(), rate(s.rate))).collect(),
            data_kbps: counted(|s| s.flow.data.sent_bytes),
            dummy_kbps: counted(|s| s.flow.dummy.sent_bytes),
            received_kbps: slopes(self.receive_log.bytes.iter().copied()),
            states: self.states(),
            delay_ms: self.delays(),
            loss_percent: self.losses(),
            queue_packets: self.relayed.series.iter().map(|s| (s.at.as_secs_f64(), s.forward.queue as f64)).collect(),
            beside_kbps: self.beside(),
            totals: self.totals(),
            stills: pictures?,
            video: shown.then_some(video),
            ended,
            remarks,
        })
    }

    fn ended(&self) -> TurnEnd {
        let at_s = self.send_log.stopped.map_or(self.report.elapsed.as_secs_f64(), |(at, _)| at.as_secs_f64());
        match &self.report.end {
            SendEnd::Finished => TurnEnd::Completed,
            SendEnd::Interrupted => TurnEnd::Interrupted { at_s },
            SendEnd::PeerBye => TurnEnd::Failed { at_s, reason: "the receiver said goodbye".into() },
            SendEnd::Failed(NetError::Breaker { reason, .. }) => TurnEnd::Breaker { at_s, reason: reason.clone() },
            SendEnd::Failed(error) => TurnEnd::Failed { at_s, reason: error.to_string() },
        }
    }

    /// From, to, state; what came before the peer answered is waiting.
    fn states(&self) -> Vec<(f64, f64, String)> {
        let end = self.send_log.samples.last().map_or(Instant::ZERO, |s| s.at);
        let mut changes: Vec<(Instant, String)> = Vec::new();
        if let Some(validated) = self.send_log.validated {
            changes.push((Instant::ZERO, "Waiting".into()));
            let first = self.send_log.samples.iter().find(|s| s.at >= validated).map_or("", |s| s.state);
            if self.send_log.states.first().is_none_or(|(at, _)| *at > validated) {
                changes.push((validated, first.to_owned()));
            }
        }
        changes.extend(self.send_log.states.iter().map(|(at, state)| (*at, (*state).to_owned())));
        let mut until = end;
        if let Some((at, StopReason::Breaker(_))) = &self.send_log.stopped {
            changes.push((*at, "Stopped".into()));
            until = Instant::ZERO + self.args.seconds;
        }
        let ends: Vec<Instant> = changes.iter().skip(1).map(|(at, _)| *at).chain([until]).collect();
        // A stretch of less than a millisecond cannot be seen, and would stand in the legend.
        let seen = |((from, _), to): &((Instant, String), Instant)| to.since((*from).min(*to)) >= SHORTEST_STATE;
        let spans = changes.into_iter().zip(ends).filter(seen);
        spans.map(|((from, state), to)| (from.as_secs_f64(), to.as_secs_f64(), state)).collect()
    }

    /// Mean one-way delay of the packets that arrived in each interval: both ends have the same clock.
    fn delays(&self) -> Curve {
        let step = SAMPLE.as_secs_f64();
        let mut bins: Vec<(f64, u32)> = Vec::new();
        for p in &self.receive_log.packets {
            let Some(delay) = p.one_way_delay else { continue };
            let bin = (p.arrived.as_secs_f64() / step) as usize;
            if bins.len() <= bin {
                bins.resize(bin + 1, (0.0, 0));
            }
            bins[bin] = (bins[bin].0 + delay as f64 * 1e-6, bins[bin].1 + 1);
        }
        let full = bins.iter().enumerate().filter(|(_, (_, n))| *n > 0);
        full.map(|(i, (sum, n))| ((i as f64 + 0.5) * step, sum / f64::from(*n))).collect()
    }

    /// Of the video packets sent in each second, the share that did not arrive by themselves.
    fn losses(&self) -> Curve {
        let arrived = self.receive_log.packets.iter().filter(|p| !(p.retransmitted || p.recovered)).filter_map(|p| {
            let left = p.arrived.as_nanos().checked_add_signed(-p.one_way_delay?)?;
            Some((p.sequence, left as f64 * 1e-9))
        });
        lost_of_each_second(arrived.collect(), self.report.stats.sent.of(What::Media).packets)
    }

    fn beside(&self) -> Vec<Curve> {
        let flows = self.relayed.series.first().map_or(0, |s| s.flows.len());
        let of = |i: usize| {
            let counted = self
                .relayed
                .series
                .iter()
                .filter_map(move |s| Some((s.at, s.flows.get(i)?.counts.received.bytes.get())));
            // TCP over a long path comes in bursts: a second's mean says more than a fifth's.
            averaged(slopes(counted), 5)
        };
        (0..flows).map(of).collect()
    }

    fn totals(&self) -> Totals {
        let totals = self.recorder.playout().totals();
        let seconds = self.args.seconds.as_secs_f64();
        let interrupted = matches!(self.report.end, SendEnd::Interrupted);
        let media_seconds = if interrupted { self.report.elapsed } else { self.media_time }.as_secs_f64();
        let path_seconds = if interrupted { self.report.elapsed.as_secs_f64() } else { seconds }.max(1e-9);
        let mut delays: Vec<f64> =
            self.receive_log.packets.iter().filter_map(|p| p.one_way_delay).map(|ns| ns as f64 * 1e-6).collect();
        delays.sort_by(f64::total_cmp);
        let quantile =
            |q: f64| delays.get(((delays.len() as f64 * q) as usize).min(delays.len().saturating_sub(1))).copied();
        let media = &self.received.stats.media;
        let unique = media.received.saturating_sub(media.duplicates);
        let sent = self.report.stats.sent.of(What::Media).packets;
        // TCP's share is measured over the turn, not over the time that the last packets take.
        let end = Instant::ZERO + Duration::from_secs_f64(path_seconds);
        let last = self.relayed.series.iter().take_while(|s| s.at <= end).last();
        let beside: u64 = last.map_or(0, |s| s.flows.iter().map(|f| f.counts.received.bytes.get()).sum());
        let f = totals.frames;
        let judged = u64::from(f.frames());
        Totals {
            frames_offered: ((media_seconds * FRAMES_PER_SECOND).round() as u64).max(judged),
            frames_in_time: f.in_time.into(),
            frames_damaged: f.damaged.into(),
            frames_late: f.late.into(),
            frames_lost: u64::from(f.lost_hole) + u64::from(f.lost_reference),
            data_packets_sent: sent,
            data_packets_lost: sent.saturating_sub(unique),
            dummy_packets_sent: self.report.stats.sent.of(What::Dummy).packets,
            feedback_packets: self.received.stats.sent.of(What::Feedback).packets,
            received_kbps: media_bytes(&self.received.stats) as f64 * 8e-3 / path_seconds,
            beside_kbps: beside as f64 * 8e-3 / path_seconds,
            delay_p50_ms: quantile(0.5),
            delay_p95_ms: quantile(0.95),
            longest_freeze_ms: self.longest_freeze().as_secs_f64() * 1e3,
        }
    }

    /// The longest time the screen stood still, from the first frame shown to the moment of the last still, when
    /// the turn's end has been played out: a flow that was stopped leaves the last picture standing.
    fn longest_freeze(&self) -> Duration {
        let shown = |r: &&FrameRecord| r.verdict == Verdict::InTime;
        let dues: Vec<Instant> = self.recorder.records().iter().filter(shown).map(|r| r.due).collect();
        let between = dues.windows(2).map(|w| w[1].since(w[0])).max().unwrap_or_default();
        let length = STILLS.iter().fold(1.0, |last: f64, share| last.max(*share));
        let length = self.args.seconds.mul_f64(length);
        let end = Instant::ZERO + length;
        let to_end = match self.report.end {
            SendEnd::Finished | SendEnd::Failed(_) => dues.last().map_or(length, |last| end.since((*last).min(end))),
            _ => Duration::ZERO,
        };
        between.max(to_end)
    }

    /// The pictures on the screen, as files in the folder. Without ffmpeg there are none, and a remark says so.
    fn stills(&self, video: &str, remarks: &mut Vec<String>) -> Outcome<Vec<StillFile>> {
        let Some(first) = self.recorder.records().first() else { return Ok(Vec::new()) };
        // The picture on the screen at a moment of the turn was captured so much earlier, on the video's own axis.
        let behind = first.due.since(Instant::ZERO).saturating_sub(first.media_time);
        let moments: Vec<Duration> = STILLS.iter().map(|share| self.args.seconds.mul_f64(*share)).collect();
        let times: Vec<Duration> = moments.iter().map(|m| m.saturating_sub(behind)).collect();
        let pictures = match stills(self.args.out.join(video), &times, 480) {
            Ok(pictures) => pictures,
            Err(error @ MediaError::Ffmpeg { .. }) => {
                remarks.push(format!("no pictures: {error}"));
                return Ok(Vec::new());
            }
            // Filler has nothing to see.
            Err(_) => return Ok(Vec::new()),
        };
        let mut files = Vec::new();
        for (moment, still) in moments.iter().zip(pictures) {
            let at_s = moment.as_secs_f64();
            let file = still.as_ref().map(|_| format!("{}-{at_s:.0}s.jpg", video.trim_end_matches(".ivf")));
            if let (Some(name), Some(still)) = (&file, &still) {
                write_whole(&self.args.out.join(name), &still.jpeg)?;
            }
            let stood_still_s = still.map_or(0.0, |s| s.time.saturating_sub(s.taken).as_secs_f64());
            files.push(StillFile { at_s, file, stood_still_s });
        }
        Ok(files)
    }
}
