//! The files of a session, and its numbers while the session runs and in the end.

use crate::args::{Receive as Args, Sessions};
use crate::error::{Failure, Outcome, code};
use crate::opener::Opener;
use crate::outputs;
use crate::stats::{Lost, Stats};
use crate::term::note;
use fairpace_control::feedback::Form;
use fairpace_media::PlayoutTotals;
use fairpace_net::receive::{ReceiveEnd, ReceiveObserver, ReceiveReport, ReceiveSample};
use fairpace_rtp::{ReceiverEvent, StopReason, StreamStats, What};
use fairpace_units::{Duration, Instant, format_duration};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// The record of a session, for people or as JSON.
pub(super) fn tell(args: &Args, number: u64, report: &ReceiveReport, totals: &PlayoutTotals) -> Outcome {
    let mut out = std::io::stdout().lock();
    if args.json {
        return Ok(writeln!(out, "{}", json(number, report, totals))?);
    }
    let head = match (args.is_one(), report.peer) {
        (true, _) => None,
        (_, Some(peer)) => Some(format!("session {number}, with {peer}:")),
        (_, None) => Some(format!("session {number}:")),
    };
    if Stats::is_stdout(args.stats.as_deref()) {
        summary(&mut std::io::stderr().lock(), head, report, totals)
    } else {
        summary(&mut out, head, report, totals)
    }
}

/// The end of a session, for the exit code.
pub(super) fn outcome(end: ReceiveEnd) -> Outcome {
    match end {
        ReceiveEnd::Bye(_) | ReceiveEnd::Finished | ReceiveEnd::Replaced => Ok(()),
        ReceiveEnd::Interrupted => Err(Failure::silent(code::INTERRUPTED)),
        ReceiveEnd::Failed(error) => Err(Failure::from(error)),
    }
}

/// Without a word, files of so many sessions are kept.
const KEPT: u64 = 1_000;

/// The files of each session.
pub(super) struct Files {
    /// Several sessions, each with its own.
    numbered: Option<Opener>,
    /// As many sessions as may leave files have done so, and this has been told.
    enough: bool,
    /// A pipe or a device for the statistics of several sessions.
    shared: Option<(File, PathBuf)>,
    /// Whether the statistics of all sessions could be written.
    lost: Lost,
}

impl Files {
    pub(super) fn open(args: &Args) -> Outcome<Files> {
        let mut files = Files { numbered: None, enough: false, shared: None, lost: Lost::default() };
        let most = match args.sessions() {
            _ if args.is_one() && args.keep_sessions.is_some() => {
                return Err(Failure::usage(
                    "`--keep-sessions` says how many of several sessions leave files, and one is served",
                )
                .hint("add `--sessions N`, `--sessions forever` or `--senders N`"));
            }
            _ if args.is_one() => return Ok(files),
            Sessions::Number(sessions) => sessions.max(KEPT),
            Sessions::Forever => KEPT,
        };
        let most = args.keep_sessions.map_or(most, u64::from);
        if let Some(path) = args.stats.as_ref().filter(|path| is_special(path)) {
            files.shared = Some((outputs::create(path, args.force)?, path.clone()));
        }
        let numbered = args.stats.iter().filter(|path| !is_special(path) && !Stats::is_stdout(Some(path)));
        let named: Vec<_> = args.out.iter().chain(numbered).map(PathBuf::as_path).collect();
        if !named.is_empty() {
            files.numbered = Some(Opener::start(&named, most, args.force)?);
        }
        Ok(files)
    }

    /// The next session's recording, and its statistics.
    pub(super) fn next(&mut self, args: &Args) -> Outcome<(Option<(File, PathBuf)>, Stats)> {
        if args.is_one() {
            let create = |path: &PathBuf| Ok::<_, Failure>((outputs::create_seekable(path, args.force)?, path.clone()));
            let recording = args.out.as_ref().map(create).transpose()?;
            return Ok((recording, Stats::open(args.stats.as_deref(), args.force)?.telling(&self.lost)));
        }
        let opened = self.numbered.as_mut().map(Opener::next).transpose()?;
        if matches!(opened, Some(None)) && !std::mem::replace(&mut self.enough, true) {
            note(false, "as many sessions have left files as `--keep-sessions` allows: later ones leave none");
        }
        let mut opened = opened.flatten().unwrap_or_default().into_iter();
        let recording = args.out.as_ref().and_then(|_| opened.next());
        let stats = match (opened.next(), &self.shared) {
            (Some((file, path)), _) => Stats::to_file(file, &path)?,
            (None, Some((file, path))) => Stats::to_file(file.try_clone()?, path)?,
            (None, None) => Stats::open(args.stats.as_deref().filter(|path| Stats::is_stdout(Some(path))), false)?,
        };
        Ok((recording, stats.telling(&self.lost)))
    }

    /// Whether the statistics could all be written.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn whole(&self) -> Outcome {
        self.lost.outcome()
    }

    /// The next session's files are opened meanwhile.
    pub(super) fn ask(&mut self) -> Outcome {
        self.numbered.as_mut().filter(|_| !self.enough).map_or(Ok(()), Opener::ask)
    }

    /// The files that were asked for are not needed.
    pub(super) fn unasked(&mut self) -> Outcome {
        self.numbered.as_mut().map_or(Ok(()), Opener::unasked)
    }

    /// The files that were opened last are not needed.
    pub(super) fn unused(&mut self) -> Outcome {
        self.numbered.as_mut().filter(|_| !self.enough).map_or(Ok(()), Opener::unused)
    }
}

/// A pipe or a device.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

pub(super) struct Live {
    pub(super) shown: bool,
    /// Others go on at the same time.
    several: bool,
    quiet: bool,
    session: u64,
    next: Instant,
    bytes: u64,
    /// That datagrams without the key come, or from addresses that are not allowed, has been told.
    told: [bool; 2],
    stats: Stats,
}

impl Live {
    pub(super) fn new(args: &Args, session: u64, stats: Stats) -> Live {
        let several = args.senders > 1;
        let shown = !several && !args.quiet && std::io::stderr().is_terminal();
        Live { shown, several, quiet: args.quiet, session, next: Instant::ZERO, bytes: 0, told: [false; 2], stats }
    }

    fn note(&self, text: &str) {
        let clear = if self.shown { "\r\x1b[K" } else { "" };
        let session = if self.several { format!("session {}: ", self.session) } else { String::new() };
        note(self.quiet, &format!("{clear}{session}{text}"));
    }

    /// Somebody sends in vain, and does not know why.
    fn tell_refused(&mut self, s: &ReceiveSample) {
        let [key, from] = self.told;
        self.told = [key || s.unsealed > 0, from || s.stats.not_allowed > 0];
        if self.told[0] && !key {
            self.note("note: datagrams come that the key does not open, or that came before: sent without it or with another one, or again");
        }
        if self.told[1] && !from {
            self.note("note: datagrams come from an address that `--from` does not name");
        }
    }
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
            ReceiverEvent::Replaced => "another sender comes in place of the silent one".to_owned(),
        };
        self.note(&text);
    }

    fn on_uncounted(&mut self, _now: Instant) {
        self.note(
            "note: it has not shown that it was there, so that it ends no receiver; waiting for the next one (`--from ADDR` takes a sender's word, Ctrl-C ends it)",
        );
    }

    fn on_sample(&mut self, s: &ReceiveSample) {
        let session = self.session;
        self.stats.sample(s.at, || stats_line(session, s));
        self.tell_refused(s);
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
            media.missing(),
            s.stats.dummy.received
        );
        self.bytes = media.bytes;
    }
}

/// A line of `--stats`.
fn stats_line(session: u64, s: &ReceiveSample) -> Value {
    let media = &s.stats.media;
    json!({
        "session": session,
        "at_s": s.at.as_secs_f64(),
        "received_packets": media.received,
        "received_bytes": media.bytes,
        "lost_packets": media.missing(),
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

fn summary(out: &mut impl std::io::Write, head: Option<String>, r: &ReceiveReport, t: &PlayoutTotals) -> Outcome {
    if let Some(head) = head {
        writeln!(out, "{head}")?;
    }
    let seconds = r.elapsed.as_secs_f64().max(1e-9);
    let media = &r.stats.media;
    writeln!(
        out,
        "received {} video packets in {} ({:.0} kbit/s), {} lost, {} came again, {} recovered; {} dummies",
        media.received,
        format_duration(r.elapsed),
        media.bytes as f64 * 8e-3 / seconds,
        media.missing(),
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
    let refused: Vec<String> = [
        (r.unsealed, "that the key does not open, or that came again"),
        (r.stats.not_allowed, "from addresses that `--from` does not name"),
        (r.stats.wrong_address, "from others while this sender was served"),
        (r.stats.malformed, "that are no RTP or RTCP"),
    ]
    .iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, why)| format!("{n} {why}"))
    .collect();
    if !refused.is_empty() {
        writeln!(out, "datagrams not taken in: {}", refused.join(", "))?;
    }
    if r.kernel_drops > 0 {
        writeln!(out, "this machine's kernel dropped {} packets: not the path's loss", r.kernel_drops)?;
    }
    Ok(())
}

fn json(session: u64, r: &ReceiveReport, t: &PlayoutTotals) -> Value {
    let stream = |s: &StreamStats| {
        json!({
            "received_packets": s.received, "expected_packets": s.expected, "lost_packets": s.missing(), "bytes": s.bytes,
            "duplicates": s.duplicates, "reordered": s.reordered, "jitter_ms": s.jitter.as_secs_f64() * 1e3,
        })
    };
    let ended = match &r.end {
        ReceiveEnd::Bye(_) => "bye".to_owned(),
        ReceiveEnd::Finished => "finished".to_owned(),
        ReceiveEnd::Replaced => "replaced".to_owned(),
        ReceiveEnd::Interrupted => "interrupted".to_owned(),
        ReceiveEnd::Failed(e) => e.to_string(),
    };
    let f = &t.frames;
    json!({
        "session": session,
        "peer": r.peer.map(|p| p.to_string()),
        "counts": r.counts,
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
        "not_allowed_datagrams": r.stats.not_allowed,
        "other_senders_datagrams": r.stats.wrong_address,
        "forwarded_packets": r.forwarded,
        "kernel_drops_packets": r.kernel_drops,
        "cpu": r.cpu,
    })
}
