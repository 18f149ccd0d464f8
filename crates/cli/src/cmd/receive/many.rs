//! `fairpace receive --senders N`: several senders at a time.

use super::session::{Files, Live, outcome, tell};
use crate::args::{Receive as Args, Sessions};
use crate::error::{Failure, Outcome, code};
use crate::outputs::raise_file_limit;
use crate::stop::Stop;
use crate::term::note;
use fairpace_media::{PlayoutParams, Recorder};
use fairpace_net::NetError;
use fairpace_net::receive::{Hall, HallReport, ReceiveConfig, ReceiveReport, Receiver};
use fairpace_units::{Bytes, Duration};
use serde_json::json;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The kernel's room for one sender's datagrams, and for those of all together at the most. The kernel may grant less.
const BUFFER: u64 = 1 << 20;
const MOST_BUFFER: u64 = 16 << 20;

/// Whether all options go with several senders.
pub(super) fn check(args: &Args) -> Outcome {
    let given = [
        ("--forward", args.forward.is_some(), "a player takes one stream"),
        ("--offer", args.offer.is_some(), "a tool of plain RTP cannot show that it hears the receiver"),
        ("--peer", args.form.peer.is_some(), "a tool of plain RTP cannot show that it hears the receiver"),
        ("--feedback-form", args.form.feedback_form.is_some(), "it is for tools of plain RTP, which get no place"),
        ("--tcp", args.tcp, "a TCP half goes with one sender"),
    ];
    match given.iter().find(|(_, given, _)| *given) {
        Some((option, _, why)) => Err(Failure::usage(format!("`{option}` does not go with `--senders`: {why}"))
            .hint("leave out one, or start a receiver of its own for that sender")),
        None => Ok(()),
    }
}

/// Room for the datagrams of so many, and a file or two each.
pub(super) fn make_room(config: &mut ReceiveConfig, senders: u32) {
    config.buffers.receive = Bytes::new((BUFFER * u64::from(senders)).min(MOST_BUFFER));
    config.sample = Duration::from_secs(1);
    raise_file_limit();
}

pub(super) fn serve(args: &Args, receiver: Receiver, files: Files, playout: PlayoutParams, stop: &Stop) -> Outcome {
    let sessions = match args.sessions() {
        Sessions::Number(n) => Some(n),
        Sessions::Forever => None,
    };
    let mut all = All { args, files, playout, recordings: Vec::new(), warned: [false; 4], told: Ok(()), failed: None };
    all.files.ask()?;
    let counts = receiver.serve_many(args.senders as usize, sessions, &mut all, stop.flag())?;
    all.files.unasked()?;
    all.told?;
    if args.json {
        writeln!(io::stdout(), "{}", refused_json(&counts))?;
    }
    let refused: Vec<String> =
        refused(&counts).iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !refused.is_empty() {
        note(args.quiet, &format!("datagrams that belonged to no session: {}", refused.join(", ")));
    }
    match all.failed {
        Some(failure) => Err(failure),
        None if stop.asked() => Err(Failure::silent(code::INTERRUPTED)),
        None => all.files.whole(),
    }
}

/// The counts of refused datagrams, each with its reason.
fn refused(counts: &HallReport) -> [(u64, &'static str); 4] {
    [
        (counts.unsealed, "that the key does not open, or that came again"),
        (counts.door.not_allowed, "from addresses that `--from` does not name"),
        (counts.door.full, "that asked while all places were taken"),
        (counts.strays, "of those who had no place"),
    ]
}

/// The last object of `--json`.
fn refused_json(counts: &HallReport) -> serde_json::Value {
    let HallReport { door, unsealed, strays } = counts;
    json!({
        "session": null,
        "unsealed_datagrams": unsealed,
        "not_allowed_datagrams": door.not_allowed,
        "refused_challenges": door.full,
        "unanswered_challenges": door.held_back,
        "other_senders_datagrams": strays,
    })
}

/// All sessions, those that are over included.
struct All<'a> {
    args: &'a Args,
    files: Files,
    playout: PlayoutParams,
    /// Of sessions that go on, with their numbers.
    recordings: Vec<(u64, PathBuf)>,
    /// Kinds of refused datagrams that have been told of.
    warned: [bool; 4],
    /// Whether summaries could be written.
    told: Outcome,
    /// The first that failed.
    failed: Option<Failure>,
}

impl Hall for All<'_> {
    type Sink = Recorder;
    type Observer = Live;

    fn begin(&mut self, session: u64, _: SocketAddr) -> Result<(Recorder, Live), NetError> {
        let opened = self.files.next(self.args).and_then(|opened| self.files.ask().map(|()| opened));
        let (recording, stats) =
            opened.map_err(|e| NetError::Io { what: "open a session's files", source: io::Error::other(e.message) })?;
        let mut recorder = Recorder::new(self.playout);
        if let Some((file, path)) = recording {
            recorder = recorder.to_file(file, path.clone())?;
            self.recordings.push((session, path));
        }
        Ok((recorder, Live::new(self.args, session, stats)))
    }

    /// Somebody sends in vain, and does not know why.
    fn on_refused(&mut self, counts: &HallReport) {
        for ((n, what), warned) in refused(counts).into_iter().zip(&mut self.warned) {
            if n > 0 && !std::mem::replace(warned, true) {
                note(self.args.quiet, &format!("note: datagrams come {what}"));
            }
        }
    }

    fn end(&mut self, session: u64, report: ReceiveReport, sink: Option<Recorder>) {
        let totals = sink.map(|recorder| *recorder.playout().totals()).unwrap_or_default();
        if self.told.is_ok() {
            self.told = tell(self.args, session, &report, &totals);
        }
        let failed = outcome(report.end).err().filter(|failure| failure.code != code::INTERRUPTED);
        let is_written = failed.as_ref().is_none_or(|failure| failure.code != code::FAILED);
        if let Some(failure) = failed {
            note(self.args.quiet, &format!("session {session}: {}", failure.message));
            self.failed.get_or_insert(failure);
        }
        if let Some(at) = self.recordings.iter().position(|(number, _)| *number == session) {
            let (_, path) = self.recordings.swap_remove(at);
            if totals.frames.in_time > 0 && is_written {
                note(self.args.quiet, &format!("recorded `{}`", path.display()));
            }
        }
    }
}
