//! `fairpace send --streams FILE`: several streams from one process.

use super::record::{Live, json as record, summary};
use super::source::open;
use crate::args::{Send as Args, picture_size};
use crate::confine;
use crate::error::{Failure, Outcome, code};
use crate::outputs::{self, raise_file_limit};
use crate::stats::{Lost, Stats};
use crate::stop::Stop;
use crate::term::note;
use fairpace_emu::CallFilter;
use fairpace_media::{FrameSource, Phased, PictureWish, SourceSpec};
use fairpace_net::send::{Adaptation, SendConfig, SendEnd, SendReport, Stream, run_many};
use fairpace_net::{Clock, Family, Key, NetError, resolve};
use fairpace_scenario::{Count, ScenarioError, Size, StreamSpec, Streams, Time};
use fairpace_units::{Duration, Instant, RandomStream};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Synthetic pictures are taken at times spread over this.
const PHASES: Duration = Duration::from_millis(40);

/// A stream, ready to be sent.
struct Ready {
    name: String,
    config: SendConfig,
    source: SourceSpec,
    wish: PictureWish,
    seed: u64,
}

/// How a stream ended: its record, or what prevented its beginning.
type Ended = Result<SendReport, NetError>;

pub(super) fn run(args: &Args, file: &Path) -> Outcome {
    // Everything that can be wrong is found before the first packet.
    let streams = Streams::load(file)?;
    let ready = |(index, spec)| ready(&streams, index, spec, args.ip.family());
    let all: Vec<Ready> = streams.streams().iter().enumerate().map(ready).collect::<Outcome<_>>()?;
    let stop = Stop::install()?;
    raise_file_limit();
    let shared = match args.stats.as_deref().filter(|path| !Stats::is_stdout(Some(path))) {
        Some(path) => Some((outputs::create(path, args.force)?, path)),
        None => None,
    };
    let lost = Lost::default();
    let watched = |one| Ok(live(args, one, lines(args, shared.as_ref())?.telling(&lost)));
    let mut watching: Vec<Live> = all.iter().map(watched).collect::<Outcome<_>>()?;
    // As with one stream: neither a source nor the network may use more.
    confine::drop_capabilities()?;
    all.iter().for_each(|one| one.source.prepare());
    confine::filter_calls(CallFilter::Plugins, args.quiet);
    let mut sources: Vec<Box<dyn FrameSource>> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let found = open(one.source.clone(), one.wish, one.seed, &stop).map_err(|failure| {
            let allowed = failure.hint.unwrap_or_default();
            streams.refuse(index, "source", &format!("cannot be opened: {}", failure.message), &allowed)
        })?;
        let Some(source) = found else { return Err(Failure::silent(code::INTERRUPTED)) };
        // The defaults' rate is for sources that are encoded here.
        if !source.format().follows_rate && streams.says(index, "encoder_rate") {
            let wrong = "is of no effect on a source that is encoded already";
            return Err(streams
                .refuse(index, "encoder_rate", wrong, "leave it out: the rate is the source's own")
                .into());
        }
        let by = PHASES.mul_f64(RandomStream::named(one.seed, "send.phase").uniform());
        sources.push(if one.source.is_synthetic() { Box::new(Phased::new(source, by)) } else { source });
    }
    note(args.quiet, &format!("sending {} streams of `{}`; Ctrl-C ends them", all.len(), file.display()));
    let clear = all.iter().filter(|one| one.config.key.is_none()).count();
    if clear > 0 {
        note(args.quiet, &format!("note: {clear} of them unauthenticated, in clear (`key_file` encrypts)"));
    }
    let mut list: Vec<Stream<'_>> = Vec::new();
    for ((one, source), observer) in all.iter().zip(&mut sources).zip(&mut watching) {
        list.push(Stream { config: one.config.clone(), source: source.as_mut(), observer });
    }
    let mut ended: Vec<Option<Ended>> = all.iter().map(|_| None).collect();
    run_many(&mut list, Clock::start(), stop.flag(), |number, end| {
        if let (Some(one), Some(slot)) = (all.get(number), ended.get_mut(number)) {
            note(args.quiet, &format!("{}: {}", one.name, words(&end)));
            *slot = Some(end);
        }
    })?;
    let ended: Vec<(&Ready, Ended)> = all.iter().zip(ended).filter_map(|(one, end)| Some((one, end?))).collect();
    tell(args, &ended)?;
    outcome(ended)?;
    lost.outcome()
}

/// The configuration of a stream, with what only this machine knows.
fn ready(streams: &Streams, index: usize, spec: &StreamSpec, family: Family) -> Outcome<Ready> {
    let refuse =
        |field: &str, wrong: &str, allowed: &str| -> ScenarioError { streams.refuse(index, field, wrong, allowed) };
    let told = |field: &str, failure: &Failure| {
        refuse(field, &format!("cannot be used: {}", failure.message), failure.hint.as_deref().unwrap_or(""))
    };
    let resolved = resolve(spec.to.as_deref().unwrap_or_default(), family);
    let peer = resolved.map_err(|error| told("to", &error.into()))?[0];
    let mut config = SendConfig::new(peer);
    spec.controller().clone_into(&mut config.scheme);
    config.settings = spec.settings();
    (config.min_rate, config.max_rate) = (spec.least(), spec.most());
    let (rate, size) = (spec.encoder_rate(), spec.buffer.as_ref().map(Size::get));
    config.adaptation = Adaptation::chosen(spec.adaptation(), rate, size, config.max_rate)
        .map_err(|wrong| refuse(wrong.field(), &format!("cannot be used: {wrong}"), &wrong.hint()))?;
    config.quantum = spec.quantum.as_ref().map_or(config.quantum, Time::get);
    config.duration = spec.seconds.as_ref().map(Time::get);
    config.session.packet_size = spec.packet_size.as_ref().map_or(fairpace_units::Bytes::new(1_200), Size::get);
    let no_repair = spec.no_repair.unwrap_or(false);
    config.session.retransmission = !no_repair;
    config.session.fec = !(no_repair || spec.no_fec.unwrap_or(false));
    // The statistics have a line a second.
    config.sample = Duration::from_secs(1);
    let key = spec.key_file.as_ref().map(|path| Key::from_file(&streams.resolve(path)));
    config.key = key.transpose().map_err(|error| told("key_file", &error.into()))?;
    config.check().map_err(|error| {
        let field = if matches!(&error, NetError::Config { field: "packet_size", .. }) { "packet_size" } else { "to" };
        told(field, &error.into())
    })?;
    let suits = config.controller().and_then(|controller| config.adaptation.suits(&*controller, &config.scheme));
    suits.map_err(|error| told("adaptation", &error.into()))?;
    let text = spec.source.as_deref().unwrap_or_default();
    let source = match SourceSpec::parse(text).map_err(|error| told("source", &error.into()))? {
        SourceSpec::File(path) => SourceSpec::File(streams.resolve(&path.to_string_lossy())),
        SourceSpec::Sizes(path) => SourceSpec::Sizes(streams.resolve(&path.to_string_lossy())),
        other => other,
    };
    if let SourceSpec::File(path) | SourceSpec::Sizes(path) = &source
        && std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo() || about.file_type().is_socket())
    {
        let wrong = "is a pipe: it would hold up all streams while it has nothing";
        return Err(refuse("source", wrong, "a file; `cat PIPE | fairpace send -` sends it, alone").into());
    }
    let size = spec.size.as_deref().map(picture_size).transpose();
    let size =
        size.map_err(|wrong| refuse("size", &format!("is no size: {wrong}"), "a width and a height, as in `640x360`"))?;
    let frames_per_second = spec.fps.and_then(|fps| u32::try_from(fps.get()).ok());
    let wish = PictureWish { size, frames_per_second, most_rate: Some(config.adaptation.most_rate(config.max_rate)) };
    let seed = spec.seed.map_or(index as u64 + 1, Count::get);
    Ok(Ready { name: spec.name.clone().unwrap_or_default(), config, source, wish, seed })
}

/// Where a stream's statistics go: to the file of all, or to standard output.
fn lines(args: &Args, shared: Option<&(File, &Path)>) -> Outcome<Stats> {
    match shared {
        Some((file, path)) => Stats::to_file(file.try_clone()?, path),
        None => Stats::open(args.stats.as_deref(), false),
    }
}

fn live(args: &Args, one: &Ready, stats: Stats) -> Live {
    let (name, keyed) = (Some(one.name.clone()), one.config.key.is_some());
    Live { name, shown: false, quiet: args.quiet, keyed, next: Instant::ZERO, before: None, stats }
}

/// The end of a stream in words.
fn words(ended: &Ended) -> String {
    match ended.as_ref().map(|report| &report.end) {
        Ok(SendEnd::Finished) => "finished".to_owned(),
        Ok(SendEnd::Interrupted) => "interrupted".to_owned(),
        Ok(SendEnd::PeerBye) => "the receiver has said goodbye".to_owned(),
        Ok(SendEnd::Failed(error)) | Err(error) => error.to_string(),
    }
}

/// The exit code that a stream alone would have had.
fn code_of(ended: &Ended) -> u8 {
    match ended.as_ref().map(|report| &report.end) {
        Ok(SendEnd::Finished | SendEnd::PeerBye) => 0,
        Ok(SendEnd::Interrupted) => code::INTERRUPTED,
        Ok(SendEnd::Failed(error)) | Err(error) => code::of_net(error),
    }
}

/// The summary of each stream, in the order of the file.
fn tell(args: &Args, ended: &[(&Ready, Ended)]) -> Outcome {
    let mut out = std::io::stdout().lock();
    if args.json {
        let of = |(one, ended): &(&Ready, Ended)| {
            let mut fields = match ended {
                Ok(report) => record(&one.config, report, 0),
                Err(_) => {
                    json!({ "peer": one.config.peer.to_string(), "controller": one.config.scheme, "ended": words(ended) })
                }
            };
            fields["exit_code"] = code_of(ended).into();
            // The thread's time is that of all.
            fields.as_object_mut().map(|fields| fields.remove("cpu"));
            (one.name.clone(), fields)
        };
        let streams: serde_json::Map<String, Value> = ended.iter().map(of).collect();
        let cpu = ended.iter().filter_map(|(_, ended)| Some((ended.as_ref().ok()?.elapsed, ended.as_ref().ok()?.cpu)));
        let cpu = cpu.max_by_key(|(elapsed, _)| *elapsed).map(|(_, cpu)| cpu);
        let code = ended.iter().map(|(_, ended)| code_of(ended)).find(|code| *code != 0).unwrap_or(0);
        return Ok(writeln!(out, "{}", json!({ "streams": streams, "exit_code": code, "cpu": cpu }))?);
    }
    let mut err = std::io::stderr().lock();
    let out: &mut dyn std::io::Write = if Stats::is_stdout(args.stats.as_deref()) { &mut err } else { &mut out };
    for (one, ended) in ended {
        writeln!(out, "{}, to {}: {}; exit code {}", one.name, one.config.peer, words(ended), code_of(ended))?;
        if let Ok(report) = ended {
            summary(out, report)?;
        }
    }
    Ok(())
}

/// Success if every stream ended well; else the failure of the first in the file that did not.
fn outcome(ended: Vec<(&Ready, Ended)>) -> Outcome {
    let (all, failed) = (ended.len(), ended.iter().filter(|(_, ended)| code_of(ended) != 0).count());
    let Some((one, ended)) = ended.into_iter().find(|(_, ended)| code_of(ended) != 0) else { return Ok(()) };
    let error = match ended {
        Ok(SendReport { end: SendEnd::Failed(error), .. }) | Err(error) => error,
        Ok(_) => return Err(Failure::silent(code::INTERRUPTED)),
    };
    let failure = Failure::from(error);
    let message = format!("{failed} of {all} streams failed; `{}`: {}", one.name, failure.message);
    Err(Failure { message, ..failure })
}
