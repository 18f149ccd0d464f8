//! `fairpace reproduce`: the papers' experiments, each claim printed as it is decided.

use super::run::write_page;
use crate::alone;
use crate::args::{Reproduce as Args, World};
use crate::error::{Failure, OCCUPIED, Outcome, code};
use crate::outputs;
use crate::provenance::Provenance;
use crate::stop::Stop;
use crate::term::{Ink, note, paint, progress};
use fairpace_emu::Sandbox;
use fairpace_lab::results::{remove_torn, write_whole};
use fairpace_lab::{Hooks, RunError};
use fairpace_papers::{Asked, Claim, Effort, Outcome as Found, Store, Tools};
use fairpace_realtime::{Ip, Prepared};
use fairpace_scenario::{Record, Scenario};
#[cfg(feature = "gst")]
use fairpace_units::Duration;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The data of the page in the results folder: `fairpace report` builds it again from there.
pub(crate) const PAGE_FILE: &str = "page.json";
/// Every measured point, as it came: the same command goes on from there.
const POINTS_FILE: &str = "points.jsonl";
const CLAIMS_FILE: &str = "experiments.jsonl";
/// Claims x readings as Markdown, where there were several.
const READINGS_FILE: &str = "readings.md";
const MANIFEST_FILE: &str = "manifest.json";

pub(crate) fn run(args: &Args) -> Outcome {
    if args.ids.is_empty() {
        let mut papers: Vec<&str> = fairpace_papers::experiments().filter_map(|e| e.id.split('.').next()).collect();
        papers.dedup();
        return Err(Failure::usage("no experiment is named").hint(format!(
            "`fairpace reproduce ID`, with the name of a paper ({}) or of one of its experiments, which `fairpace list experiments` shows; `all` takes most of an hour on two cores",
            papers.join(", ")
        )));
    }
    let provenance = Provenance::begin();
    let chosen = fairpace_papers::select(&args.ids).map_err(|e| Failure::usage(e.to_string()).hint(e.hint()))?;
    let asked = match &args.readings[..] {
        [] => Asked::Default,
        [one] if one == "all" => Asked::All,
        names => Asked::Named(names.to_vec()),
    };
    if args.quick && asked == Asked::All {
        return Err(Failure::usage("`--quick` runs the default readings only")
            .hint("leave `--readings all` out, or name readings, each in a `--reading` of its own"));
    }
    fairpace_papers::check_readings(&chosen, &asked).map_err(|e| Failure::usage(e.to_string()).hint(e.hint()))?;
    if args.world == World::Emu {
        refuse_what_is_simulated(&chosen)?;
        if asked != Asked::Default {
            return Err(Failure::usage("`--reading` is for the simulator only").hint("leave out `--world emu`"));
        }
    }
    let effort = match args.seeds {
        Some(n) => Effort::Seeds(n as usize),
        None if args.full => Effort::Full,
        None if args.quick => Effort::Quick,
        None => Effort::Usual,
    };
    let dir = args.results.out.clone().unwrap_or_else(|| default_folder(&args.ids));
    outputs::refuse_others_link(&dir)?;
    std::fs::create_dir_all(&dir).map_err(|e| Failure::file("make", &dir, &e))?;
    if !args.results.force {
        refuse_what_would_be_lost(&dir, &chosen, provenance.program())?;
    }
    let store = Store::open(&dir.join(POINTS_FILE), provenance.program())?;
    remove_torn(&dir).map_err(|e| Failure::file("tidy up", &dir, &e))?;
    // Before anything starts a thread: namespaces are a process's with one thread.
    let real = match args.world {
        World::Sim => None,
        World::Emu => Some((alone::take(args.results.quiet)?, Sandbox::enter()?)),
    };
    let stop = Stop::install()?;
    let prepared = match &real {
        Some((_, sandbox)) => {
            // The runs that are left: the planner takes the points that are kept from a copy.
            let runs = fairpace_papers::real_time_runs(&chosen, effort, Some(store.copy()?));
            let hooks = Hooks { stop: stop.flag(), ..Hooks::default() };
            let beside = args.jobs.unwrap_or(1);
            let minutes = fairpace_papers::real_time(&runs).as_secs_f64() / 60.0 / f64::from(beside);
            let how = if beside == 1 { "one after the other".to_owned() } else { format!("{beside} at a time") };
            note(args.results.quiet, &format!("in real time, {} runs, {how}: about {minutes:.0} minutes", runs.len()));
            Some(Prepared::new(runs, Ip::V4, sandbox, &hooks)?)
        }
        None => None,
    };
    let emulate = |s: &Scenario, seed: u64, _: Record, hooks: &Hooks<'_>| match &prepared {
        Some(prepared) => prepared.run(s, seed, hooks),
        None => Err(RunError::Interrupted),
    };
    let mut tools = tools(chosen.iter().any(|e| e.id == "rcs.fig7-9"))?;
    tools.store = Some(store);
    if prepared.is_some() {
        tools.world = fairpace_papers::World::RealTime(&emulate);
    }
    let bar = progress(args.results.quiet, 1, "simulations");
    let report = |done: usize, total: usize, what: &str| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    };
    let hooks = Hooks { progress: &report, stop: stop.flag(), threads: args.jobs.unwrap_or(0) as usize };
    let mut lines = String::new();
    let mut broken = None;
    let mut shares = Shares::default();
    let result = fairpace_papers::reproduce(&chosen, effort, &asked, &mut tools, &hooks, |found| {
        shares.add(&found.experiment, provenance.elapsed_s());
        let json = serde_json::to_string(found).unwrap_or_default();
        let shown = if args.results.json { writeln!(std::io::stdout(), "{json}") } else { bar.suspend(|| show(found)) };
        // The results go on to the folder although nobody reads them here.
        broken = broken.take().or(shown.err());
        lines.push_str(&json);
        lines.push('\n');
    });
    bar.finish_and_clear();
    let all = result?;
    write_whole(&dir.join(CLAIMS_FILE), lines.as_bytes())?;
    let mut page = all.page();
    page = page.meta("made by", format!("Fairpace {}", crate::args::VERSION));
    write_whole(&dir.join(PAGE_FILE), serde_json::to_string(&page)?.as_bytes())?;
    write_page(&dir.join("report.html"), &page)?;
    let readings = dir.join(READINGS_FILE);
    match all.readings_page() {
        Some(text) => write_whole(&readings, text.as_bytes())?,
        // A table of an earlier run says nothing of this one.
        None if readings.exists() => {
            std::fs::remove_file(&readings).map_err(|e| Failure::file("remove", &readings, &e))?;
        }
        None => {}
    }
    write_whole(&dir.join(MANIFEST_FILE), serde_json::to_string_pretty(&provenance.manifest())?.as_bytes())?;
    if let Some(error) = broken {
        return Err(error.into());
    }
    let claims = || all.outcomes.iter().flat_map(Found::decided_first);
    let (held, total) = (claims().filter(|c| c.holds).count(), claims().count());
    if !args.results.json {
        writeln!(std::io::stdout(), "{}", all.verdict())?;
    }
    let seconds = provenance.elapsed_s();
    note(
        args.results.quiet,
        &format!("{} in {seconds:.0} s; report: {}", all.counted(), dir.join("report.html").display()),
    );
    if let Some(shares) = shares.text() {
        note(args.results.quiet, &shares);
    }
    if let Some(kept) = &all.kept {
        note(args.results.quiet, kept);
    }
    if all.interrupted {
        let left = if all.outcomes.is_empty() {
            "interrupted before any experiment was complete"
        } else {
            "interrupted: the experiments above are whole, the others were not run"
        };
        return Err(Failure::new(code::INTERRUPTED, left));
    }
    if args.strict && held < total {
        return Err(Failure::new(code::CLAIM, format!("{} of {total} claims fail", total - held)));
    }
    Ok(())
}

/// The time that each experiment took.
#[derive(Debug, Default)]
struct Shares {
    /// The experiment, and the seconds that it took, kept points included.
    of: Vec<(String, f64)>,
    so_far: f64,
}

impl Shares {
    /// An experiment is done, so many seconds after the command began.
    fn add(&mut self, experiment: &str, elapsed_s: f64) {
        self.of.push((experiment.to_owned(), elapsed_s - self.so_far));
        self.so_far = elapsed_s;
    }

    /// A line per experiment, the longest first; none of a single one.
    fn text(mut self) -> Option<String> {
        let all: f64 = self.of.iter().map(|(_, seconds)| seconds).sum();
        self.of.sort_by(|a, b| b.1.total_cmp(&a.1));
        let line = |(id, seconds): &(String, f64)| {
            format!("  {:5.1} %  {seconds:8.1} s  {id}", 100.0 * seconds / all.max(f64::MIN_POSITIVE))
        };
        let lines: Vec<String> = self.of.iter().map(line).collect();
        (lines.len() > 1).then(|| format!("time of each experiment:\n{}", lines.join("\n")))
    }
}

/// Points are never lost, whoever made them; claims and report are those of this command.
fn refuse_what_would_be_lost(dir: &Path, chosen: &[&fairpace_papers::Experiment], program: &str) -> Outcome {
    let occupied = |holds: String| Err(Failure::usage(format!("`{}` holds {holds}", dir.display())).hint(OCCUPIED));
    let mut entries = std::fs::read_dir(dir).map_err(|e| Failure::file("read", dir, &e))?;
    if entries.next().is_some() && !dir.join(POINTS_FILE).exists() {
        return occupied("other things than points of experiments".to_owned());
    }
    let manifest = std::fs::read(dir.join(MANIFEST_FILE)).unwrap_or_default();
    if let Ok(found) = serde_json::from_slice::<serde_json::Value>(&manifest)
        && found["program"] != program
    {
        return occupied("the report of another version of the program".to_owned());
    }
    let claims = std::fs::read_to_string(dir.join(CLAIMS_FILE)).unwrap_or_default();
    for found in claims.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        if !chosen.iter().any(|e| found["experiment"] == e.id) {
            return occupied(format!("the claims of {}, which is not asked for now", found["experiment"]));
        }
    }
    Ok(())
}

/// Others beside them are said not to be run.
fn refuse_what_is_simulated(chosen: &[&fairpace_papers::Experiment]) -> Outcome {
    match chosen {
        [first, ..] if chosen.iter().all(|e| !e.in_real_time()) => {
            Err(Failure::usage(format!("`{}` runs in the simulator only", first.id))
                .hint("with `--world emu` name `tpba` or `worlds`, or one of `tpba.*` or `worlds.*`"))
        }
        _ => Ok(()),
    }
}

/// `reproduce rcs` writes to `results/rcs`; several ids have a folder of their own, named after them all.
fn default_folder(ids: &[String]) -> PathBuf {
    /// Names of files end at 255 bytes.
    const LONGEST: usize = 200;
    let mut name = ids.join("_");
    if name.len() > LONGEST {
        name = format!("{}-and-{}-more", ids[0], ids.len() - 1);
    }
    Path::new("results").join(fairpace_report::folder::folder_name(&name))
}

fn show(found: &Found) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", paint(&found.experiment, Ink::Bold))?;
    if let Some(why) = &found.not_run {
        writeln!(out, "  not run: {why}")?;
    }
    for claim in found.decided_first() {
        writeln!(out, "  {}", line(claim))?;
        if let Some(verdicts) = found.verdicts(&claim.id) {
            writeln!(out, "          {verdicts}")?;
        }
        if !claim.holds && !claim.note.is_empty() {
            writeln!(out, "          {}", paint(&claim.note, Ink::Faint))?;
        }
    }
    out.flush()
}

fn line(claim: &Claim) -> String {
    let text = claim.line();
    // The verdict is the line's first word; only it gets a colour.
    let ink = if claim.holds { Ink::Good } else { Ink::Bad };
    match text.trim_start().split_once(' ') {
        Some((verdict, rest)) => format!("{} {rest}", paint(verdict, ink)),
        None => text,
    }
}

/// The real encoder, if this build has one and an experiment wants it.
#[cfg(feature = "gst")]
fn tools<'a>(wanted: bool) -> Outcome<Tools<'a>> {
    use fairpace_media::gst::{Clip, ClipFormat, EncoderParams, Groups, encode_following_with, encode_mpeg2_following};
    use fairpace_papers::{Encoder, Footage};
    use fairpace_units::RandomStream;
    use std::sync::{Arc, Mutex, PoisonError};
    if !wanted {
        return Ok(Tools::default());
    }
    let shipped = crate::demo::ShippedClip::unpack()?;
    let format = ClipFormat::default();
    let clip = Clip::load(shipped.path(), format)?;
    // Made when it is first asked for; a second that asks meanwhile waits.
    let film: Mutex<Option<Arc<Clip>>> = Mutex::new(None);
    let (clip, groups) = (Arc::new(clip), Groups::default());
    Ok(Tools {
        frame_interval: format.interval(),
        clip_name: crate::demo::CLIP_NAME.to_owned(),
        encoder: Some(Box::new(move |encoder, footage, rates, duration| {
            let pictures = || match footage {
                Footage::Clip => Ok(Arc::clone(&clip)),
                Footage::Film => {
                    let mut film = film.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(film) = &*film {
                        return Ok(Arc::clone(film));
                    }
                    let made = |(name, source, pictures)| Clip::generated(name, source, pictures, format);
                    let [zoom, pattern] = GENERATED.map(made);
                    let random = &mut RandomStream::named(1, "reproduce.film");
                    let made = Clip::film(&[(*clip).clone(), zoom?, pattern?], FILM, random)?;
                    Ok(Arc::clone(film.insert(Arc::new(made))))
                }
            };
            let encode = || {
                let pictures = pictures()?;
                let vp8 = |params| encode_following_with(&pictures, rates, duration, params);
                match encoder {
                    Encoder::Mpeg2 => encode_mpeg2_following(&pictures, &groups, rates, duration),
                    Encoder::Vp8 => vp8(EncoderParams::default()),
                    Encoder::Vp8Whole => vp8(EncoderParams { skip_above: Duration::MAX, ..EncoderParams::default() }),
                }
            };
            encode().map_err(|e: fairpace_media::MediaError| e.to_string())
        })),
        ..Tools::default()
    })
}

/// The length of the film, that of the run.
#[cfg(feature = "gst")]
const FILM: Duration = Duration::from_secs(300);
/// Its subjects beside the clip that ships, those of `scripts/record-clips`: a name, ffmpeg's source, pictures.
#[cfg(feature = "gst")]
const GENERATED: [(&str, &str, usize); 2] = [
    ("a zoom", "mandelbrot=size={size}:rate={rate}:end_scale=0.003:maxiter=2000,gblur=sigma=4", 500),
    ("a test pattern", "testsrc2=size={size}:rate={rate}", 250),
];

/// Without GStreamer the experiment is reported as not run, with the reason.
#[cfg(not(feature = "gst"))]
fn tools<'a>(_wanted: bool) -> Outcome<Tools<'a>> {
    Ok(Tools::default())
}

#[cfg(test)]
mod targets;

#[cfg(test)]
mod tests {
    use super::{Shares, default_folder};

    #[test]
    fn the_share_of_each_experiment_is_the_time_since_the_one_before_the_longest_first() {
        let mut shares = Shares::default();
        shares.add("a", 1.0);
        assert_eq!(Shares { of: shares.of.clone(), so_far: 1.0 }.text(), None, "all of it is no share");
        shares.add("b", 4.0);
        let expected = "time of each experiment:\n   75.0 %       3.0 s  b\n   25.0 %       1.0 s  a";
        assert_eq!(shares.text().as_deref(), Some(expected));
    }

    #[test]
    fn the_folder_is_named_after_everything_that_was_asked_for() {
        let of = |ids: &[&str]| default_folder(&ids.iter().map(|&s| s.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["all"]).to_str(), Some("results/all"));
        assert_eq!(of(&["rcs"]).to_str(), Some("results/rcs"));
        assert_eq!(of(&["rcs.fig12", "rcs.fig16"]).to_str(), Some("results/rcs.fig12_rcs.fig16"));
        assert_eq!(of(&["rcs.fig12"; 30]).to_str(), Some("results/rcs.fig12-and-29-more"));
    }
}
