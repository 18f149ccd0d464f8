//! `fairpace sweep --dask`: batches are run by a Dask cluster, with which the Python package speaks.
//!
//! The package has a process of its own beside this one, and the sweep's folder as long as it lasts; `python/fairpace/_cluster.py` says
//! what passes between the two. The process ends with its standard input, and so with this program, however that ends.

use crate::args::Sweep as Args;
use crate::error::{Failure, Outcome, code};
use crate::stop::Stop;
use fairpace_lab::sweep::{Design, Spec};
use fairpace_scenario::Scenario;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Names another interpreter than `python3`.
const INTERPRETER: &str = "FAIRPACE_PYTHON";
/// While the process is silent the stop flag is looked at this often.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The sweep as the package is asked for it.
pub(super) fn request(args: &Args, address: &str, scenario: &Scenario, spec: &Spec, dir: &Path) -> Value {
    let (design, drawn) = match spec.design {
        Design::Grid => ("grid", None),
        Design::List => ("list", None),
        Design::Random { points, .. } => ("random", Some(points)),
        Design::LatinHypercube { points, .. } => ("latin", Some(points)),
    };
    // Recordings that it names are read from there.
    let folder = std::path::absolute(scenario.folder().join(".")).unwrap_or_else(|_| scenario.folder().to_owned());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "dask": address,
        "scenario": scenario.to_toml(),
        "file": folder.join(format!("{}.toml", scenario.name)),
        "vary": spec.vary,
        "options": {
            "design": design,
            "points": drawn,
            "design_seed": args.design_seed,
            "seeds": spec.seeds.seeds,
            "batch": spec.seeds.batch,
            "ci_width": args.ci_width.as_ref().map(|width| [args.metric.as_ref(), Some(width)]),
            "most_seeds": args.ci_width.as_ref().map(|_| args.most_seeds()),
            "metric": spec.metric,
            "folder": dir,
            "shard": args.shard.as_deref().unwrap_or("1/1"),
            "force": args.results.force,
            "retry": args.retry,
        },
    })
}

/// A line from the package's process.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Progress { done: usize, needed: usize, what: String },
    Notice { notice: String },
    Error { error: String, hint: Option<String>, kind: String },
}

/// The package's process, at work on a sweep.
pub(super) struct Cluster<'a> {
    python: String,
    child: Child,
    /// Open until the work is over or nobody wants it any more.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    said: Option<JoinHandle<String>>,
    stop: &'a Stop,
    done: usize,
    /// The batches that were in the folder, counted in words.
    found: String,
}

impl<'a> Cluster<'a> {
    /// Starts the process, and waits until every point is checked and the cluster is reached.
    pub(super) fn begin(request: &Value, stop: &'a Stop, quiet: bool) -> Outcome<Cluster<'a>> {
        let python = std::env::var(INTERPRETER).unwrap_or_else(|_| "python3".to_owned());
        let mut command = Command::new(&python);
        // -P: a folder that happens to be called so, where the command is run, is not the package.
        command.args(["-P", "-m", "fairpace._cluster"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::usage(format!("there is no Python: `{python}` is not found"))
                .hint(format!("`--dask` needs Python 3.11 or later with the package (`pip install './python[dask]'` in the repository); {INTERPRETER} names it")),
            _ => Failure::new(code::FAILED, format!("`{python}` cannot be started: {error}")),
        })?;
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            // One that has ended already says why.
            let _ = writeln!(input, "{request}");
        }
        let (send, lines) = channel();
        let out = child.stdout.take();
        std::thread::spawn(move || {
            let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok);
            lines.map_while(|line| send.send(line).ok()).for_each(drop);
        });
        let err = child.stderr.take();
        let said = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = err.map(|mut err| err.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut cluster =
            Cluster { python, child, input, lines, said: Some(said), stop, done: 0, found: String::new() };
        let mut before = None;
        while before.is_none() {
            match cluster.next()? {
                Some(Line::Progress { done, what, .. }) => before = Some((done, what)),
                Some(Line::Notice { notice }) => crate::term::note(quiet, &notice),
                Some(Line::Error { error, hint, kind }) => return Err(failure(error, hint, &kind)),
                None if stop.asked() => {
                    return Err(Failure::new(code::INTERRUPTED, "interrupted before the first batch"));
                }
                None => return Err(cluster.broken()),
            }
        }
        (cluster.done, cluster.found) = before.unwrap_or_default();
        Ok(cluster)
    }

    /// Batches that were there already.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// All batches that were in the folder, counted in words; empty if there was none.
    pub(super) fn found(&self) -> &str {
        &self.found
    }

    /// Waits for the end. Whether it was interrupted.
    pub(super) fn wait(&mut self, report: &dyn Fn(usize, usize, &str), notice: &dyn Fn(&str)) -> Outcome<bool> {
        loop {
            match self.next()? {
                Some(Line::Progress { done, needed, what }) => report(done, needed, &what),
                Some(Line::Notice { notice: text }) => notice(&text),
                Some(Line::Error { error, hint, kind }) => return Err(failure(error, hint, &kind)),
                None if self.stop.asked() => return Ok(true),
                None if self.status()?.success() => return Ok(false),
                None => return Err(self.broken()),
            }
        }
    }

    /// The next line; none when the process has ended, which it is made to when the stop flag is set.
    fn next(&mut self) -> Outcome<Option<Line>> {
        loop {
            match self.lines.recv_timeout(LOOK_UP) {
                Ok(line) => {
                    let read = serde_json::from_str(&line);
                    return Ok(Some(read.unwrap_or(Line::Notice { notice: line })));
                }
                Err(RecvTimeoutError::Timeout) if self.stop.asked() => self.input = None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.status()?;
                    return Ok(None);
                }
            }
        }
    }

    fn status(&mut self) -> Outcome<ExitStatus> {
        let python = &self.python;
        self.child.wait().map_err(|e| Failure::new(code::FAILED, format!("`{python}` cannot be waited for: {e}")))
    }

    /// The failure of a process that has ended without a word on standard output.
    fn broken(&mut self) -> Failure {
        let python = &self.python;
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        if said.contains("No module named 'fairpace'") || said.contains("No module named fairpace") {
            return Failure::usage(format!("`{python}` has no package `fairpace` that knows `--dask`"))
                .hint(format!("`{python} -m pip install './python[dask]'` in the repository, or the wheel; {INTERPRETER} names another interpreter"));
        }
        if said.contains("Unknown option: -P") {
            return Failure::usage(format!("`{python}` is older than 3.11"))
                .hint(format!("{INTERPRETER} names another interpreter"));
        }
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing was said").to_owned();
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        Failure::new(code::FAILED, format!("the package's process has ended ({status}): {last}"))
            .hint("every finished batch is kept: the same command goes on from there")
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        // With its input the process ends.
        self.input = None;
        let _ = self.child.wait();
    }
}

fn failure(error: String, hint: Option<String>, kind: &str) -> Failure {
    let code = match kind {
        "occupied" => return Failure::usage(error).hint(crate::error::OCCUPIED),
        "usage" => code::USAGE,
        "scenario" => code::SCENARIO,
        "peer" => code::PEER,
        _ => code::FAILED,
    };
    Failure { message: error, hint, code }
}
