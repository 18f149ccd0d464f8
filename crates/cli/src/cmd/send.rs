//! `fairpace send`: live media to a receiver.

use crate::args::Send as Args;
use crate::cmd::key;
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::profile;
use crate::stats::Stats;
use crate::stop::Stop;
use crate::term::note;
use fairpace_control::feedback::Form;
use fairpace_control::{BreakerParams, FlowCounters, KindCounters, QsVerdict};
use fairpace_emu::CallFilter;
use fairpace_media::{FrameSource, MediaError, PictureWish, SourceSpec};
use fairpace_net::send::{QuickStartReport, SendConfig, SendEnd, SendObserver, SendReport, SendSample, run as send};
use fairpace_net::{Clock, NetError, resolve};
use fairpace_rtp::{SenderEvent, What};
use fairpace_units::{Duration, Instant, RandomStream, format_duration, format_rate};
use serde_json::{Value, json};
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};

pub(crate) fn run(args: &Args) -> Outcome {
    // Everything that can be wrong is found before the first packet.
    let peer = resolve(&args.to, args.ip.family())?[0];
    let mut config = SendConfig::new(peer);
    config.scheme.clone_from(&args.control.name);
    config.settings = args.control.settings()?;
    config.max_rate = args.control.max_rate;
    config.min_rate = config.min_rate.min(config.max_rate);
    config.quantum = args.quantum;
    config.duration = args.seconds;
    config.session.packet_size = args.packet_size;
    config.session.retransmission = !args.no_repair;
    config.session.fec = !(args.no_repair || args.no_fec);
    config.session.form = args.form.feedback_form;
    if let Some(profile) = profile::apply(&args.form, &config.scheme, &mut config.settings)? {
        config.session.rate_profile = profile;
    }
    config.quick_start = args.quick_start;
    config.key = args.key_file.as_deref().map(key::read).transpose()?;
    config.check()?;
    let controller = args.control.check(&config.settings, config.session.packet_size, config.min_rate)?;
    profile::check_form(&args.form, &config.scheme, &*controller)?;
    let stop = Stop::install()?;
    if args.restart && args.source == "-" {
        return Err(Failure::usage("`--restart` begins the source anew, and standard input has no second beginning")
            .hint("leave out `--restart`, or send a file"));
    }
    let stats = Stats::open(args.stats.as_deref(), args.force)?;
    // The source's threads have what this one has when they begin. Neither the source, be it a file with what a stranger has put
    // into it, nor what the network sends may use more.
    if config.quick_start.is_some() {
        // Each request has another option, which the kernel takes from the privileged only.
        confine::keep_ip_options()?;
    } else {
        confine::drop_capabilities()?;
    }
    SourceSpec::parse(&args.source)?.prepare();
    confine::filter_calls(CallFilter::Plugins, args.quiet);
    let Some(mut source) = open(args, &stop)? else { return Err(Failure::silent(code::INTERRUPTED)) };
    if !source.format().follows_rate {
        note(
            args.quiet,
            &format!("note: `{}` is encoded already and does not follow the controller's rate", args.source),
        );
    }
    let format = source.format();
    let pictures = match (format.width, format.height, format.frame_interval.as_secs_f64()) {
        (0, ..) | (_, 0, _) => String::new(),
        (w, h, interval) => {
            let less = if format.follows_rate && args.size.is_none() { " (smaller while the rate is low)" } else { "" };
            format!(", {w}x{h} at {:.0}/s{less},", 1.0 / interval.max(1e-3))
        }
    };
    note(args.quiet, &format!("sending `{}`{pictures} to {peer} with {}; Ctrl-C ends it", args.source, config.scheme));
    note(args.quiet, &format!("note: {}", key::protection(config.key.as_ref(), key::End::Sender)));
    if let (Some((w, h)), None) = (format.scaled_from, args.size) {
        note(
            args.quiet,
            &format!(
                "note: its pictures are of {w}x{h}, and made smaller to suit low rates; `--size` sends them larger"
            ),
        );
    }
    if format.cut_off {
        note(args.quiet, &format!("note: the end of `{}` is missing: the recording was cut off", args.source));
    }
    if format.sound {
        note(args.quiet, &format!("note: the sound of `{}` is not sent: Fairpace sends pictures only", args.source));
    }
    let mut live = Live {
        shown: !args.quiet && std::io::stderr().is_terminal(),
        quiet: args.quiet,
        keyed: config.key.is_some(),
        next: Instant::ZERO,
        before: None,
        stats,
    };
    let mut restarts = 0;
    let report = loop {
        let report = send(&config, Clock::start(), source.as_mut(), &mut live, stop.flag())?;
        if live.shown {
            eprintln!();
        }
        let SendEnd::Failed(error) = &report.end else { break report };
        let Some(pause) = again_after(args.restart, error, config.breaker) else { break report };
        let left = config.duration.map(|whole| whole.saturating_sub(report.elapsed));
        if left == Some(Duration::ZERO) {
            break report;
        }
        live.note(&format!("{error}; the receiver is asked again in {}", format_duration(pause)));
        if !wait(&stop, pause) {
            break report;
        }
        let Some(again) = open(args, &stop)? else { break report };
        (source, config.duration) = (again, left);
        live.begin_anew();
        restarts += 1;
    };
    if matches!(report.end, SendEnd::PeerBye) {
        live.note("the receiver has said goodbye, and the stream ends here");
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json(&config, &report, restarts))?;
    } else if Stats::is_stdout(args.stats.as_deref()) {
        summary(&mut std::io::stderr().lock(), &report)?;
    } else {
        summary(&mut out, &report)?;
    }
    match report.end {
        SendEnd::Finished | SendEnd::PeerBye => Ok(()),
        SendEnd::Interrupted => Err(Failure::silent(code::INTERRUPTED)),
        SendEnd::Failed(error) => Err(error.into()),
    }
}

/// How long to wait before the receiver is asked again; `None` if it is not. The time is the breaker's triggering interval
/// [RFC 8083 §4.5]; whether the flow begins is the receiver's decision, by its answer to a new challenge.
fn again_after(restart: bool, error: &NetError, breaker: Option<BreakerParams>) -> Option<Duration> {
    let stopped = matches!(
        error,
        NetError::Breaker { .. }
            | NetError::PeerVanished { .. }
            | NetError::PeerBusy { .. }
            | NetError::PeerEnded { .. }
    );
    (restart && stopped).then(|| breaker.unwrap_or_default().triggering_interval())
}

/// Waits; `false` if Ctrl-C came first.
fn wait(stop: &Stop, pause: Duration) -> bool {
    let (clock, (_silent, bell)) = (Clock::start(), mpsc::channel::<()>());
    let end = clock.now() + pause;
    while !stop.asked() && clock.now() < end {
        let _ = bell.recv_timeout(Duration::from_millis(20));
    }
    !stop.asked()
}

/// The source; `None` if Ctrl-C came first. A decoder takes a while to start, and a pipe may never begin: a
/// thread waits for them, and ends with the process.
fn open(args: &Args, stop: &Stop) -> Outcome<Option<Box<dyn FrameSource>>> {
    let spec = SourceSpec::parse(&args.source)?;
    let wish = PictureWish { size: args.size, frames_per_second: args.fps, most_rate: Some(args.control.max_rate) };
    let noise = RandomStream::named(args.seed.unwrap_or(1), "media.model");
    let (give, take) = mpsc::sync_channel(1);
    let opening = std::thread::spawn(move || {
        // Nobody takes it after Ctrl-C.
        let _ = give.send(spec.open(wish, noise));
    });
    while !stop.asked() {
        match take.recv_timeout(Duration::from_millis(20)) {
            Ok(source) => return Ok(Some(source.map_err(unopened)?)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match opening.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => break,
            },
        }
    }
    Ok(None)
}

/// Root may not read every file: its capabilities are gone by then.
fn unopened(error: MediaError) -> Failure {
    let denied = matches!(&error, MediaError::File { source, .. } if source.kind() == ErrorKind::PermissionDenied);
    let failure = Failure::from(error);
    if denied && nix::unistd::geteuid().is_root() {
        return failure
            .hint("`send` reads a file as its user without capabilities: let root read it by its mode, or send `-`");
    }
    failure
}

/// One line, renewed every second.
struct Live {
    shown: bool,
    quiet: bool,
    /// There is a key: who answers has it too.
    keyed: bool,
    next: Instant,
    before: Option<(Instant, FlowCounters)>,
    stats: Stats,
}

impl Live {
    /// Another session begins, with its clock and its counts at zero.
    fn begin_anew(&mut self) {
        (self.next, self.before) = (Instant::ZERO, None);
        self.stats.begin_anew();
    }

    fn note(&self, text: &str) {
        let clear = if self.shown { "\r\x1b[K" } else { "" };
        note(self.quiet, &format!("{clear}{text}"));
    }
}

impl SendObserver for Live {
    fn on_event(&mut self, _now: Instant, event: &SenderEvent) {
        let text = match event {
            SenderEvent::PeerValidated { srtt, .. } => {
                let with = if self.keyed { " with the key" } else { "" };
                format!("the receiver answers{with}; round trip {}", format_duration(*srtt))
            }
            SenderEvent::DscpSeen { class, sent, arrived } if sent != arrived => {
                format!(
                    "note: the network changes the DSCP of {class:?} packets from {} to {}",
                    sent.get(),
                    arrived.get()
                )
            }
            SenderEvent::ReceiverBusy => {
                "note: the receiver serves another sender; waiting for that one to end".to_owned()
            }
            SenderEvent::ReceiverChanged => {
                "note: the receiver was started again; going on with the new one".to_owned()
            }
            SenderEvent::Awake => "note: this machine slept; the receiver has answered again".to_owned(),
            SenderEvent::QuickStart(verdict) => match verdict {
                QsVerdict::Approved(rate) => format!("Quick-Start: the routers approve {}", format_rate(rate.rate())),
                verdict => format!("note: no Quick-Start ({}): {}", verdict.code(), verdict.name()),
            },
            SenderEvent::PacketSize(size) => {
                format!("note: full packets have {size} from now on, as the path carries them")
            }
            _ => return,
        };
        self.note(&text);
    }

    fn on_sample(&mut self, s: &SendSample) {
        self.stats.sample(s.at, || stats_line(s));
        if !self.shown || s.at < self.next {
            return;
        }
        self.next = s.at + core::time::Duration::from_secs(1);
        let (then, flow) = self.before.replace((s.at, s.flow)).unwrap_or_default();
        let span = s.at.since(then).as_secs_f64().max(1e-3);
        let kbps = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8e-3 / span;
        eprint!(
            "\r{:6.0} s  {:<9} allowed {}, video {:.0} kbit/s, dummies {:.0} kbit/s, lost {} packets, RTT {}\x1b[K",
            s.at.as_secs_f64(),
            s.state,
            format_rate(s.rate),
            kbps(s.flow.data.sent_bytes.get(), flow.data.sent_bytes.get()),
            kbps(s.flow.dummy.sent_bytes.get(), flow.dummy.sent_bytes.get()),
            s.flow.data.lost,
            s.srtt.map_or_else(|| "–".to_owned(), format_duration)
        );
    }
}

/// A line of `--stats`.
fn stats_line(s: &SendSample) -> Value {
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    json!({
        "at_s": s.at.as_secs_f64(),
        "state": s.state,
        "reason": s.reason,
        "rate_bps": s.rate.as_bps(),
        "media_rate_bps": s.media_rate.as_bps(),
        "fec_overhead": s.protection.plan.map_or(0.0, |plan| plan.overhead.get()),
        "fec_reason": s.protection.reason.as_str(),
        "srtt_ms": s.srtt.map(ms),
        "rto_ms": ms(s.rto),
        "queue_frames": s.queue.0,
        "queue_bytes": s.queue.1.get(),
        "sent_packets": s.flow.data.sent,
        "sent_bytes": s.flow.data.sent_bytes.get(),
        "acknowledged_packets": s.flow.data.acked,
        "lost_packets": s.flow.data.lost,
        "dummy_packets": s.flow.dummy.sent,
    })
}

fn summary(out: &mut impl std::io::Write, r: &SendReport) -> Outcome {
    let seconds = r.elapsed.as_secs_f64().max(1e-9);
    let fate = match r.feedback_form {
        Form::RtpTfrc => {
            let p = r.p.map_or_else(|| "nothing".to_owned(), |p| format!("a loss event rate of {p:.4}"));
            format!("the receiver measured, last {p}")
        }
        Form::Reports => format!("{} lost as reports say", r.flow.data.lost),
        _ => format!("{} acknowledged, {} lost", r.flow.data.acked, r.flow.data.lost),
    };
    writeln!(
        out,
        "sent {} video packets in {} ({:.0} kbit/s), {} dummies; {fate}",
        r.flow.data.sent,
        format_duration(r.elapsed),
        r.flow.data.sent_bytes.as_f64() * 8e-3 / seconds,
        r.flow.dummy.sent,
    )?;
    if let Some(tcp) = &r.tcp {
        writeln!(
            out,
            "changed between TCP ({}) and UDP {} times; {} segments sent again, window smaller after {} of {} idle periods",
            tcp.algorithm, r.switches, tcp.retransmitted, tcp.idle.shrunk, tcp.idle.periods
        )?;
    }
    Ok(writeln!(
        out,
        "frames: {} pictures taken, {} of them not encoded, {} dropped before sending; packets left late by p50 {}, p99 {}",
        r.captures,
        r.captures.saturating_sub(r.stats.frames),
        r.stats.frames_dropped,
        format_duration(r.pacing.p50),
        format_duration(r.pacing.p99)
    )?)
}

/// The fate of Quick-Start requests; `options` is the number of packets that left with one.
fn quick_start(q: &QuickStartReport, options: u64) -> Value {
    let (answer, after) = (q.first.map(|(_, verdict)| verdict), q.first.map(|(after, _)| after));
    json!({
        "answer": answer.map(QsVerdict::code),
        "reason": answer.map(QsVerdict::name),
        "approved_bps": answer.map(|verdict| verdict.rate().as_bps()),
        "answered_after_ms": after.map(|after| after.as_secs_f64() * 1e3),
        "packets_with_option": options,
        "asked": q.counters.asked, "approved": q.counters.approved, "denied": q.counters.denied,
        "unanswered": q.counters.unanswered, "dropped": q.counters.dropped, "stripped": q.counters.stripped,
        "unknown": q.counters.unknown, "bad_ttl": q.counters.bad_ttl, "bad_rate": q.counters.bad_rate,
        "bad_nonce": q.counters.bad_nonce, "reports": q.counters.reports,
    })
}

fn json(config: &SendConfig, r: &SendReport, restarts: u64) -> Value {
    // Where the receiver measures, nobody knows of a single packet.
    let known = |count: u64| (r.feedback_form != Form::RtpTfrc).then_some(count);
    let kind = |k: &KindCounters| json!({ "sent_packets": k.sent, "sent_bytes": k.sent_bytes.get(), "acknowledged_packets": known(k.acked), "lost_packets": known(k.lost) });
    let ended = match &r.end {
        SendEnd::Finished => "finished".to_owned(),
        SendEnd::Interrupted => "interrupted".to_owned(),
        SendEnd::PeerBye => "peer said goodbye".to_owned(),
        SendEnd::Failed(e) => e.to_string(),
    };
    let sent: serde_json::Map<String, Value> =
        What::ALL.iter().map(|w| (w.as_str().to_owned(), json!(r.stats.sent.of(*w).packets))).collect();
    json!({
        "peer": r.peer.to_string(),
        "controller": config.scheme,
        "elapsed_s": r.elapsed.as_secs_f64(),
        "ended": ended,
        "restarts": restarts,
        "first_rtt_ms": r.validated.map(|(rtt, _)| rtt.as_secs_f64() * 1e3),
        "data": kind(&r.flow.data),
        "dummies": kind(&r.flow.dummy),
        "loss_event_rate": r.p,
        "rwnd_packets": r.rwnd,
        "timeouts": r.flow.timeouts,
        "switches": r.switches,
        "tcp": r.tcp.as_ref().map(|tcp| json!({
            "algorithm": tcp.algorithm,
            "acknowledged_bytes": tcp.acked.get(),
            "retransmitted_segments": tcp.retransmitted,
            "window_reductions": tcp.reductions,
            "slow_start_after_idle": tcp.slow_start_after_idle,
            "idle_periods": tcp.idle.periods,
            "idle_periods_that_shrank_the_window": tcp.idle.shrunk,
        })),
        "feedback": { "form": r.feedback_form.name(), "packets": r.stats.feedback.packets, "bytes": r.stats.feedback.bytes },
        "quick_start": r.quick_start.map(|q| quick_start(&q, r.socket.options)),
        "pictures": r.captures,
        "frames": r.stats.frames,
        "frames_dropped": r.stats.frames_dropped,
        "datagrams": sent,
        "not_sent_packets": r.not_sent,
        "encrypted": config.key.is_some(),
        "unsealed_datagrams": r.unsealed,
        "packet_size_bytes": r.packet_size.get(),
        "pacing_lateness_us": { "p50": r.pacing.p50.as_secs_f64() * 1e6, "p99": r.pacing.p99.as_secs_f64() * 1e6 },
        "cpu": r.cpu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_restart_a_line_is_written_each_second_of_the_new_session() {
        let path = std::env::temp_dir().join(format!("fairpace-restart-{}.jsonl", std::process::id()));
        let stats = Stats::open(Some(&path), false).unwrap();
        let mut live = Live { shown: false, quiet: true, keyed: false, next: Instant::ZERO, before: None, stats };
        let mut session = |name: &str, seconds: u64| {
            for n in 0..=seconds {
                live.stats.sample(Instant::ZERO + Duration::from_secs(n), || json!({ name: n }));
            }
            live.begin_anew();
        };
        session("first", 40);
        session("second", 2);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.lines().count(), 42);
        assert!(text.ends_with("{\"second\":1}\n{\"second\":2}\n"), "{text}");
    }

    //= 8083-4.5-1
    //= 8083-4.5-2
    #[test]
    fn a_stopped_flow_asks_again_only_if_told_to_and_not_before_the_triggering_interval() {
        let peer = "192.0.2.1:5004".parse().unwrap();
        let stopped = NetError::Breaker { peer, reason: String::new() };
        let vanished = NetError::PeerVanished { peer, detail: String::new() };
        let lies = NetError::PeerLies { peer, detail: String::new() };
        let busy = NetError::PeerBusy { peer };
        let ended = NetError::PeerEnded { peer };
        for error in [&stopped, &vanished, &lies, &busy, &ended] {
            assert_eq!(again_after(false, error, None), None);
        }
        assert_eq!([&busy, &ended].map(|e| again_after(true, e, None)), [Some(Duration::from_secs(15)); 2]);
        let slow = BreakerParams { tdr: Duration::from_secs(8), ..BreakerParams::default() };
        assert_eq!(again_after(true, &stopped, None), Some(Duration::from_secs(15)));
        assert_eq!(again_after(true, &vanished, Some(BreakerParams::default())), Some(Duration::from_secs(15)));
        assert_eq!(again_after(true, &stopped, Some(slow)), Some(Duration::from_secs(24)));
        assert_eq!(again_after(true, &lies, None), None);
    }
}
