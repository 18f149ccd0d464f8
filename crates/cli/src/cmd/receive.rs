//! `fairpace receive`: take media in, judge it as a viewer would, pass it on.

use crate::args::{Playout, Receive as Args};
use crate::cmd::key;
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::outputs;
use crate::profile;
use crate::stats::Stats;
use crate::stop::Stop;
use crate::term::note;
use fairpace_control::feedback::Form;
use fairpace_emu::CallFilter;
use fairpace_media::{Adaptive, PlayoutParams, PlayoutTotals, Recorder};
use fairpace_net::receive::{ReceiveConfig, ReceiveEnd, ReceiveObserver, ReceiveReport, ReceiveSample, Receiver};
use fairpace_net::{Clock, resolve};
use fairpace_rtp::{Codec, ReceiverEvent, StopReason, StreamStats, What, sdp};
use fairpace_units::{Duration, Instant, format_duration};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

pub(crate) fn run(args: &Args) -> Outcome {
    let mut config = ReceiveConfig::new(args.port);
    config.family = args.ip.family();
    config.duration = args.seconds;
    config.key = args.key_file.as_deref().map(key::read).transpose()?;
    let protection = key::protection(config.key.as_ref());
    if let Some(interval) = args.feedback {
        (config.session.feedback_interval, config.session.ack_interval) = (interval, interval);
    }
    config.session.from.clone_from(&args.from);
    config.session.rwnd = args.rwnd;
    config.session.rate_profile = profile::wanted(&args.form)?;
    config.session.form = args.form.feedback_form;
    if args.offer.is_some() && config.session.rate_profile.is_none() {
        return Err(Failure::usage("`--offer` describes a receiver of RTP-TFRC, and none is asked for")
            .hint("add `--feedback-form rtp-tfrc`, or `--peer FILE.sdp`"));
    }
    config.session.nack = !args.no_repair;
    config.session.quick_start = !args.no_quick_start;
    config.session.fec = !(args.no_repair || args.no_fec);
    config.tcp = args.tcp;
    let usual = PlayoutParams { repair: !args.no_repair, damaged: !args.no_damaged, ..PlayoutParams::default() };
    let playout = match args.playout {
        Playout::Auto => PlayoutParams { adaptive: Some(Adaptive::default()), ..usual },
        Playout::Fixed(delay) => PlayoutParams { delay, ..usual },
    };
    let forward = args.forward.as_deref().map(|to| resolve(to, args.ip.family())).transpose()?.map(|all| all[0]);
    config.forward = forward;
    let mut recorder = Recorder::new(playout);
    let payload_type = config.forward_type;
    let offered = config.session.rate_profile.unwrap_or_default();
    let receiver = Receiver::open(config, Clock::start())?;
    if let Some(path) = &args.out {
        recorder = recorder.to_file(outputs::create(path, args.force)?, path)?;
    }
    let stop = Stop::install()?;
    let described = forward.map(|to| {
        let path = args.sdp.clone().unwrap_or_else(|| PathBuf::from(format!("fairpace-{}.sdp", to.port())));
        let text = sdp::describe(to, payload_type, Codec::Vp8);
        let written = outputs::write_whole(&path, text.as_bytes(), args.force);
        written.map(|()| (to, path)).map_err(|e| e.hint("`--sdp FILE` writes it elsewhere, --force over what is there"))
    });
    let described = described.transpose()?;
    if let Some(path) = &args.offer {
        let mut at = receiver.address()?;
        if at.ip().is_unspecified() {
            at.set_ip(if at.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        let text = sdp::describe_measuring(at, Codec::Vp8.payload_type(), Codec::Vp8, offered);
        outputs::write_whole(path, text.as_bytes(), args.force)?;
    }
    let stats = Stats::open(args.stats.as_deref(), args.force)?;
    // Sockets and files are open: nothing that the network sends may use more than these.
    confine::drop_capabilities()?;
    confine::filter_calls(CallFilter::Packets, args.quiet);
    note(args.quiet, &format!("listening on {}; Ctrl-C ends it", receiver.address()?));
    note(args.quiet, &format!("note: {protection}"));
    if let Some(path) = &args.offer {
        let path = path.display();
        note(args.quiet, &format!("`{path}` is for the other tool; elsewhere it needs this host's address in it"));
    }
    if let Some((to, path)) = described {
        // The line is data: somebody may want to run it.
        let line = sdp::ffplay_line(&path.display().to_string());
        note(args.quiet, &format!("passing media on to {to}; `{}` describes it; to play it:", path.display()));
        if args.json { note(args.quiet, &line) } else { writeln!(std::io::stdout(), "{line}")? }
    }
    let mut live = Live {
        shown: !args.quiet && std::io::stderr().is_terminal(),
        quiet: args.quiet,
        next: Instant::ZERO,
        bytes: 0,
        stats,
    };
    let report = receiver.run(&mut recorder, &mut live, stop.flag())?;
    if live.shown {
        eprintln!();
    }
    let totals = *recorder.playout().totals();
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json(&report, &totals))?;
    } else if Stats::is_stdout(args.stats.as_deref()) {
        summary(&mut std::io::stderr().lock(), &report, &totals)?;
    } else {
        summary(&mut out, &report, &totals)?;
    }
    if let Some(path) = args.out.as_ref().filter(|_| totals.frames.in_time > 0) {
        note(args.quiet, &format!("recorded `{}`", path.display()));
    }
    match report.end {
        ReceiveEnd::Bye(_) | ReceiveEnd::Finished => Ok(()),
        ReceiveEnd::Interrupted => Err(Failure::silent(code::INTERRUPTED)),
        ReceiveEnd::Failed(error) => Err(error.into()),
    }
}

struct Live {
    shown: bool,
    quiet: bool,
    next: Instant,
    bytes: u64,
    stats: Stats,
}

impl ReceiveObserver for Live {
    fn on_event(&mut self, _now: Instant, event: &ReceiverEvent) {
        let text = match event {
            ReceiverEvent::NewSource { from, .. } => format!("media from {from}"),
            ReceiverEvent::TcpUp { from } => format!("TCP connection of {from}"),
            ReceiverEvent::NotTold { form } => {
                let what = match form {
                    Form::Twcc => "transport-wide number (header extension 5)",
                    _ => "send time of RTP-TFRC (header extension of `--peer` or `--offer`)",
                };
                format!(
                    "its packets have no {what}: told of one by one (RFC 8888); let the sender add it, or leave out `--feedback-form {form}`"
                )
            }
            ReceiverEvent::Bye { reason } if reason.is_empty() => "the sender said goodbye".to_owned(),
            // Its time or its file was over, or somebody ended it: it does not say which.
            ReceiverEvent::Bye { reason } if *reason == StopReason::Requested.to_string() => {
                "the sender has ended".to_owned()
            }
            ReceiverEvent::Bye { reason } => format!("the sender said goodbye: {}", printable(reason)),
            ReceiverEvent::Vanished => "the sender is silent".to_owned(),
        };
        let clear = if self.shown { "\r\x1b[K" } else { "" };
        note(self.quiet, &format!("{clear}{text}"));
    }

    fn on_sample(&mut self, s: &ReceiveSample) {
        self.stats.sample(s.at, || stats_line(s));
        if !self.shown || s.at < self.next {
            return;
        }
        self.next = s.at + Duration::from_secs(1);
        let media = &s.stats.media;
        eprint!(
            "\r{:6.0} s  {:.0} kbit/s, {} frames complete, {} packets lost, {} dummies\x1b[K",
            s.at.as_secs_f64(),
            media.bytes.saturating_sub(self.bytes) as f64 * 8e-3,
            s.frames,
            media.lost.max(0),
            s.stats.dummy.received
        );
        self.bytes = media.bytes;
    }
}

/// A line of `--stats`.
fn stats_line(s: &ReceiveSample) -> Value {
    let media = &s.stats.media;
    json!({
        "at_s": s.at.as_secs_f64(),
        "received_packets": media.received,
        "received_bytes": media.bytes,
        "lost_packets": media.lost.max(0),
        "repaired_packets": s.stats.repaired,
        "recovered_packets": s.stats.recovered,
        "jitter_ms": media.jitter.as_secs_f64() * 1e3,
        "dummy_packets": s.stats.dummy.received,
        "complete_frames": s.frames,
        "source_frames": s.fates.map(|f| f.source),
        "in_time_frames": s.fates.map(|f| f.in_time),
        "damaged_frames": s.fates.map(|f| f.damaged),
        "late_frames": s.fates.map(|f| f.late),
        "hole_frames": s.fates.map(|f| f.hole),
        "reference_frames": s.fates.map(|f| f.reference),
        "never_sent_frames": s.fates.map(|f| f.never_sent()),
        "longest_freeze_ms": s.fates.map(|f| f.longest_freeze.as_secs_f64() * 1e3),
        "kernel_drops_packets": s.kernel_drops,
    })
}

/// Text from the network, without anything that a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn summary(out: &mut impl std::io::Write, r: &ReceiveReport, t: &PlayoutTotals) -> Outcome {
    let seconds = r.elapsed.as_secs_f64().max(1e-9);
    let media = &r.stats.media;
    writeln!(
        out,
        "received {} video packets in {} ({:.0} kbit/s), {} lost, {} came again, {} recovered; {} dummies",
        media.received,
        format_duration(r.elapsed),
        media.bytes as f64 * 8e-3 / seconds,
        media.lost.max(0),
        r.stats.repaired,
        r.stats.recovered,
        r.stats.dummy.received
    )?;
    let f = &t.frames;
    writeln!(
        out,
        "frames: {} in time ({:.1} % of {} pictures at least; `send` knows how many were taken), {} damaged, {} late, {} lost, {} never sent; longest freeze {}; {} key frames asked for",
        f.in_time,
        100.0 * f64::from(f.in_time) / (t.captures.max(1) as f64),
        t.captures,
        f.damaged,
        f.late,
        f.lost_hole + f.lost_reference,
        t.captures.saturating_sub(f.frames().into()),
        format_duration(t.longest_freeze),
        t.key_requests
    )?;
    if r.socket.kernel_drops > 0 {
        writeln!(out, "this machine's kernel dropped {} packets: not the path's loss", r.socket.kernel_drops)?;
    }
    Ok(())
}

fn json(r: &ReceiveReport, t: &PlayoutTotals) -> Value {
    let stream = |s: &StreamStats| {
        json!({
            "received_packets": s.received, "expected_packets": s.expected, "lost_packets": s.lost, "bytes": s.bytes,
            "duplicates": s.duplicates, "reordered": s.reordered, "jitter_ms": s.jitter.as_secs_f64() * 1e3,
        })
    };
    let ended = match &r.end {
        ReceiveEnd::Bye(_) => "bye".to_owned(),
        ReceiveEnd::Finished => "finished".to_owned(),
        ReceiveEnd::Interrupted => "interrupted".to_owned(),
        ReceiveEnd::Failed(e) => e.to_string(),
    };
    let f = &t.frames;
    json!({
        "peer": r.peer.map(|p| p.to_string()),
        "elapsed_s": r.elapsed.as_secs_f64(),
        "ended": ended,
        "media": stream(&r.stats.media),
        "dummies": stream(&r.stats.dummy),
        "repaired_packets": r.stats.repaired,
        "recovered_packets": r.stats.recovered,
        "malformed_datagrams": r.stats.malformed,
        "frames": {
            "source": t.captures, "in_time": f.in_time, "damaged": f.damaged, "late": f.late, "lost": f.lost_hole + f.lost_reference,
            "never_sent": t.captures.saturating_sub(f.frames().into()),
            "longest_freeze_ms": t.longest_freeze.as_secs_f64() * 1e3, "key_requests": t.key_requests,
        },
        "feedback": {
            "packets": r.stats.sent.of(What::Feedback).packets, "bytes": r.stats.sent.of(What::Feedback).bytes,
        },
        "reports": { "packets": r.stats.sent.of(What::Report).packets, "bytes": r.stats.sent.of(What::Report).bytes },
        "unsealed_datagrams": r.unsealed,
        "forwarded_packets": r.forwarded,
        "kernel_drops_packets": r.socket.kernel_drops,
        "cpu": r.cpu,
    })
}
