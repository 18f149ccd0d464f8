//! `fairpace receive`: take media in, judge it as a viewer would, pass it on.

mod many;
mod session;

use crate::args::{Playout, Receive as Args, Sessions};
use crate::cmd::key;
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::outputs;
use crate::profile;
use crate::stop::Stop;
use crate::term::note;
use fairpace_emu::CallFilter;
use fairpace_media::{Adaptive, PlayoutParams, Recorder};
use fairpace_net::receive::{Last, ReceiveConfig, ReceiveEnd, Receiver};
use fairpace_net::{Clock, Key, resolve};
use fairpace_rtp::{AllowedSender, Codec, sdp};
use session::{Files, Live, outcome, tell};
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

pub(crate) fn run(args: &Args) -> Outcome {
    let mut config = ReceiveConfig::new(args.port);
    config.family = args.ip.family();
    config.duration = args.seconds;
    config.key = args.key_file.as_deref().map(Key::from_file).transpose()?;
    let protection = key::protection(config.key.as_ref(), key::End::Receiver);
    if let Some(interval) = args.feedback {
        (config.session.feedback_interval, config.session.ack_interval) = (interval, interval);
    }
    config.session.from.clone_from(&args.from);
    let is_heard = |from: &AllowedSender| config.family.admits(&(from.ip(), 0).into());
    if let Some(other) = args.from.first().filter(|_| !args.from.iter().any(is_heard)) {
        let (named, heard) = if other.ip().is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        return Err(Failure::usage(format!("`--from` names {named} addresses, and only {heard} is listened to"))
            .hint("leave out `-4` or `-6`, or name addresses of that family"));
    }
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
    if args.senders > 1 {
        many::check(args)?;
        many::make_room(&mut config, args.senders);
    }
    let usual = PlayoutParams { repair: !args.no_repair, damaged: !args.no_damaged, ..PlayoutParams::default() };
    let playout = match args.playout {
        Playout::Auto => PlayoutParams { adaptive: Some(Adaptive::default()), ..usual },
        Playout::Fixed(delay) => PlayoutParams { delay, ..usual },
    };
    let forward = args.forward.as_deref().map(|to| resolve(to, args.ip.family())).transpose()?.map(|all| all[0]);
    config.forward = forward;
    let sdp = args.sdp.clone().or_else(|| Some(PathBuf::from(format!("fairpace-{}.sdp", forward?.port()))));
    outputs::distinct(&[
        ("--out", args.out.as_deref()),
        ("--stats", args.stats.as_deref()),
        ("--sdp", sdp.as_deref()),
        ("--offer", args.offer.as_deref()),
    ])?;
    let payload_type = config.forward_type;
    let offered = config.session.rate_profile.unwrap_or_default();
    let receiver = Receiver::open(config, Clock::start())?;
    let mut files = Files::open(args)?;
    let first = if args.senders > 1 { None } else { Some(files.next(args)?) };
    let stop = Stop::install()?;
    let described = forward.zip(sdp).map(|(to, path)| {
        let text = sdp::describe(to, payload_type, Codec::Vp8);
        let written = outputs::write_whole(&path, text.as_bytes(), args.force);
        // The name may be nobody's choice; a full disk has its own remedy.
        written.map(|()| (to, path)).map_err(|e| match e.code {
            code::USAGE => e.hint("`--sdp FILE` writes it elsewhere, --force over what is there"),
            _ => e,
        })
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
    let Some((mut recording, mut stats)) = first else { return many::serve(args, receiver, files, playout, &stop) };
    let mut sessions = receiver.begin()?;
    let (mut number, mut counted, mut failed) = (1, 0, None);
    loop {
        let mut recorder = Recorder::new(playout);
        let path = recording.as_ref().map(|(_, path)| path.clone());
        if let Some((file, path)) = recording {
            recorder = recorder.to_file(file, path)?;
        }
        let mut live = Live::new(args, number, stats);
        let last = match args.sessions() {
            Sessions::Number(1) => Last::Whoever,
            Sessions::Number(n) if n == counted + 1 => Last::IfItCounts,
            Sessions::Number(_) | Sessions::Forever => Last::No,
        };
        let report = sessions.serve(last, &mut recorder, &mut live, stop.flag())?;
        if live.shown {
            eprintln!();
        }
        let totals = *recorder.playout().totals();
        let (counts, goes_on) = (report.counts, report.goes_on);
        counted += u64::from(counts);
        let never_came =
            number > 1 && report.stats.media.received == 0 && matches!(report.end, ReceiveEnd::Interrupted);
        // Packets of nobody, without a picture: anybody can send some, as often as he likes.
        let is_nothing = goes_on && !counts && totals.frames.in_time == 0;
        if never_came || is_nothing {
            files.unused()?;
        } else {
            tell(args, number, &report, &totals)?;
        }
        let outcome = outcome(report.end);
        // A recording that could not be written to its end is none to be told of as such.
        let is_written = outcome.as_ref().err().is_none_or(|failure| failure.code != code::FAILED);
        if let Some(path) = path.filter(|_| totals.frames.in_time > 0 && is_written) {
            note(args.quiet, &format!("recorded `{}`", path.display()));
        }
        if !goes_on {
            return failed.map_or(outcome, Err).and_then(|()| files.whole());
        }
        if let Err(failure) = outcome.as_ref().map_err(|failure| failure.message.clone()) {
            note(!counts && args.quiet, &format!("session {number}: {failure}"));
        }
        if counts {
            failed = failed.or(outcome.err());
        }
        note(args.quiet, "waiting for the next sender; Ctrl-C ends it");
        number += u64::from(!is_nothing);
        (recording, stats) = files.next(args)?;
    }
}
