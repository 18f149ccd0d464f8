//! `fairpace send`: live media to a receiver.

mod record;
mod source;
mod streams;

use crate::args::{Adaptation as Who, Send as Args};
use crate::cmd::key;
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::profile;
use crate::stats::Stats;
use crate::stop::Stop;
use crate::term::note;
use fairpace_control::BreakerParams;
use fairpace_emu::CallFilter;
use fairpace_media::{FrameSource, PictureWish, SourceSpec};
use fairpace_net::send::{Adaptation, BadAdaptation, SendConfig, SendEnd, run as send};
use fairpace_net::{Clock, Key, NetError, resolve};
use fairpace_units::{Duration, Instant, format_duration, format_rate};
use record::{Live, json, summary};
use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc;

pub(crate) fn run(args: &Args) -> Outcome {
    if let Some(file) = &args.streams {
        return streams::run(args, file);
    }
    // Without `--streams` the command line has both.
    let (source_name, to) = (args.source.as_deref().unwrap_or_default(), args.to.as_deref().unwrap_or_default());
    // Everything that can be wrong is found before the first packet; first what no host needs to be asked for.
    let adaptation = adaptation(args)?;
    let peer = resolve(to, args.ip.family())?[0];
    let mut config = SendConfig::new(peer);
    config.scheme.clone_from(&args.control.name);
    config.settings = args.control.settings()?;
    config.max_rate = args.control.max_rate;
    config.min_rate = config.min_rate.min(config.max_rate);
    config.adaptation = adaptation;
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
    config.key = args.key_file.as_deref().map(Key::from_file).transpose()?;
    config.check()?;
    let controller = args.control.check(&config.settings, config.session.packet_size, config.min_rate)?;
    profile::check_form(&args.form, &config.scheme, &*controller)?;
    let stop = Stop::install()?;
    if args.restart && source_name == "-" {
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
    SourceSpec::parse(source_name)?.prepare();
    confine::filter_calls(CallFilter::Plugins, args.quiet);
    let Some(mut source) = open(args, &stop)? else { return Err(Failure::silent(code::INTERRUPTED)) };
    if !source.format().follows_rate {
        note(
            args.quiet,
            &format!("note: `{source_name}` is encoded already and does not follow the controller's rate"),
        );
        if args.encoder_rate.is_some() {
            let wrong = format!("`--encoder-rate` is of no effect on `{source_name}`");
            return Err(Failure::usage(wrong).hint("leave it out: the rate is that of the recording"));
        }
    }
    let format = source.format();
    let pictures = match (format.width, format.height, format.frame_interval.as_secs_f64()) {
        (0, ..) | (_, 0, _) => String::new(),
        (w, h, interval) => {
            let varies = format.follows_rate && args.size.is_none() && args.adaptation != Who::Buffer;
            let less = if varies { " (smaller while the rate is low)" } else { "" };
            format!(", {w}x{h} at {:.0}/s{less},", 1.0 / interval.max(1e-3))
        }
    };
    note(args.quiet, &format!("sending `{source_name}`{pictures} to {peer} with {}; Ctrl-C ends it", config.scheme));
    if let (Adaptation::Buffer { rate, size }, true) = (config.adaptation, format.follows_rate) {
        let rate = format_rate(rate);
        note(args.quiet, &format!("note: the encoder keeps {rate}, and {size} may wait for the controller's rate"));
    }
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
        note(args.quiet, &format!("note: the end of `{source_name}` is missing: the recording was cut off"));
    }
    if format.sound {
        note(args.quiet, &format!("note: the sound of `{source_name}` is not sent: Fairpace sends pictures only"));
    }
    let mut live = Live {
        name: None,
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
        SendEnd::Finished | SendEnd::PeerBye => live.stats.lost().outcome(),
        SendEnd::Interrupted => Err(Failure::silent(code::INTERRUPTED)),
        SendEnd::Failed(error) => Err(error.into()),
    }
}

/// The architecture that the command line asks for.
fn adaptation(args: &Args) -> Outcome<Adaptation> {
    let name = args.adaptation.name();
    Adaptation::chosen(name, args.encoder_rate, args.buffer, args.control.max_rate).map_err(|wrong| {
        // As the options are written.
        let option = |field: &str| format!("`--{}`", field.replace('_', "-"));
        match &wrong {
            BadAdaptation::NoEffect { fields, .. } => {
                let options: Vec<String> = fields.iter().map(|field| option(field)).collect();
                let (options, is) = (options.join(" and "), if fields.len() > 1 { "are" } else { "is" });
                Failure::usage(format!("{options} {is} of no effect under `--adaptation {name}`"))
                    .hint("add `--adaptation buffer`")
            }
            BadAdaptation::Rate { found, most } => {
                let wrong = format!("`--encoder-rate` is {found}, and the flow may send {most} at most");
                Failure::usage(wrong).hint("lower it, or raise `--max-rate`: the buffer would only fill")
            }
            BadAdaptation::Size { found } => {
                Failure::usage(format!("`--buffer` is {found}; allowed: {}", wrong.hint()))
            }
            BadAdaptation::Unknown { .. } => Failure::usage(wrong.to_string()).hint(wrong.hint()),
        }
    })
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

/// The source of the command line; `None` if Ctrl-C came first.
fn open(args: &Args, stop: &Stop) -> Outcome<Option<Box<dyn FrameSource>>> {
    let spec = SourceSpec::parse(args.source.as_deref().unwrap_or_default())?;
    let most_rate = adaptation(args)?.most_rate(args.control.max_rate);
    let wish = PictureWish { size: args.size, frames_per_second: args.fps, most_rate: Some(most_rate) };
    source::open(spec, wish, args.seed.unwrap_or(1), stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn after_a_restart_a_line_is_written_each_second_of_the_new_session() {
        let path = std::env::temp_dir().join(format!("fairpace-restart-{}.jsonl", std::process::id()));
        let stats = Stats::open(Some(&path), false).unwrap();
        let mut live =
            Live { name: None, shown: false, quiet: true, keyed: false, next: Instant::ZERO, before: None, stats };
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
