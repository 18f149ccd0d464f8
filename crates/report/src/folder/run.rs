//! The results of one scenario, as its run has them or its folder keeps them, and the summary of all of it.

use super::error::{FolderError, read};
use super::rows::Rows;
use super::shown::short;
use crate::Page;
use fairpace_lab::RunSet;
use fairpace_lab::events::TerminalEvent;
use fairpace_lab::metrics::{GroupSummary, RunSummary};
use fairpace_lab::results::SeedResults;
use fairpace_lab::summary::{Metric, Summary};
use fairpace_scenario::RawScenario;
use std::path::Path;

/// Stopped flows that are named above everything else.
const MAX_NOTICES: usize = 5;

/// The contents that were read.
pub(super) struct Run {
    /// The controller, where several are compared.
    pub(super) variant: Option<String>,
    pub(super) summary: Summary,
    pub(super) scenario: RawScenario,
    pub(super) series: Rows,
    pub(super) links: Rows,
    /// With a satellite only.
    pub(super) terminal_rows: Rows,
    pub(super) slots: Rows,
    pub(super) events: Vec<TerminalEvent>,
    /// With a wireless link only.
    pub(super) user_rows: Rows,
    pub(super) radio_slots: Rows,
    pub(super) jitter_rows: Rows,
    /// With data units only.
    pub(super) adu_rows: Rows,
}

impl Run {
    /// From memory.
    pub(super) fn of(set: &RunSet, variant: Option<&str>) -> Run {
        let rows = |name: &str| set.table(name).map(Rows::from).unwrap_or_default();
        let events = set.runs.iter().filter_map(SeedResults::terminal_events).flat_map(str::lines);
        Run {
            variant: variant.map(str::to_owned),
            summary: set.summary(),
            scenario: (*set.scenario).clone(),
            series: rows("series"),
            links: rows("link_series"),
            terminal_rows: rows("terminals"),
            slots: rows("slots"),
            user_rows: rows("users"),
            radio_slots: rows("radio_slots"),
            jitter_rows: rows("jitter"),
            adu_rows: rows("adus"),
            events: events.filter_map(|line| serde_json::from_str(line).ok()).collect(),
        }
    }

    /// From what a run has left on disk.
    pub(super) fn read(folder: &Path, variant: Option<&str>) -> Result<Run, FolderError> {
        let malformed = |name: &str, problem: String| FolderError::Malformed { path: folder.join(name), problem };
        let summary = Summary::from_json(&read(&folder.join("summary.json"))?)
            .map_err(|e| malformed("summary.json", e.to_string()))?;
        if summary.runs().is_empty() {
            return Err(malformed("summary.json", "it holds no run".to_owned()));
        }
        let scenario = toml::from_str(&read(&folder.join("scenario.toml"))?)
            .map_err(|e| malformed("scenario.toml", e.message().to_owned()))?;
        let if_any = |name: &str| match folder.join(name) {
            path if path.exists() => Rows::read(&path),
            _ => Ok(Rows::default()),
        };
        Ok(Run {
            variant: variant.map(str::to_owned),
            summary,
            scenario,
            series: Rows::read(&folder.join("series.csv"))?,
            links: Rows::read(&folder.join("link_series.csv"))?,
            terminal_rows: if_any("terminals.csv")?,
            slots: if_any("slots.csv")?,
            user_rows: if_any("users.csv")?,
            radio_slots: if_any("radio_slots.csv")?,
            jitter_rows: if_any("jitter.csv")?,
            adu_rows: if_any("adus.csv")?,
            events: match folder.join("events.jsonl") {
                path if path.exists() => read(&path)?
                    .lines()
                    .map(serde_json::from_str)
                    .collect::<Result<_, _>>()
                    .map_err(|e| malformed("events.jsonl", e.to_string()))?,
                _ => Vec::new(),
            },
        })
    }

    /// The first seed's summary; there is one, or the folder was refused.
    pub(super) fn first(&self) -> &RunSummary {
        &self.summary.runs()[0]
    }

    pub(super) fn title(&self) -> String {
        match (&self.scenario.title, &self.scenario.name) {
            (title, _) if !title.is_empty() => title.clone(),
            (_, name) => format!("Scenario {name}"),
        }
    }

    pub(super) fn label(&self) -> String {
        self.variant.clone().unwrap_or_default()
    }

    pub(super) fn caption(&self) -> String {
        let which = match self.summary.runs() {
            [run] => format!("seed {}", run.seed),
            runs => format!("mean of {} seeds, 95 % intervals", runs.len()),
        };
        let first = self.first();
        format!("Scenario {}; {which}; the first {} s left out", first.scenario, short(first.warmup_s))
    }

    pub(super) fn world(&self) -> &str {
        &self.first().world
    }

    pub(super) fn describe(&self, mut page: Page, world: &str) -> Page {
        let first = self.first();
        let seeds: Vec<String> = self.summary.runs().iter().map(|r| r.seed.to_string()).collect();
        page = page
            .meta("scenario", format!("`{}`", first.scenario))
            .meta("world", world)
            .meta("duration", format!("{} s", short(first.duration_s)))
            .meta("seeds", seeds.join(", "))
            .meta("made by", format!("Fairpace {}", env!("CARGO_PKG_VERSION")));
        if self.summary.interrupted() {
            page = page.notice("The run was interrupted: what is here is valid, but not all that was asked for");
        }
        for warning in &first.warnings {
            page = page.notice(warning);
        }
        if let [one, others @ ..] = self.summary.runs()
            && !others.is_empty()
            && others.iter().all(|other| other.groups == one.groups)
        {
            page = page.notice("Nothing in this scenario is random: its seeds are one run, without an interval");
        }
        let stopped: Vec<_> = first.flows.iter().filter_map(|f| Some((&f.name, f.stopped.as_ref()?))).collect();
        for (name, why) in stopped.iter().take(MAX_NOTICES) {
            page = page.notice(format!("The circuit breaker stopped `{name}`: {why}"));
        }
        if stopped.len() > MAX_NOTICES {
            page = page.notice(format!("The circuit breaker stopped {} more flows", stopped.len() - MAX_NOTICES));
        }
        page
    }

    /// Why not to trust what was run against the clock, what was different there, and how well the machine kept up.
    pub(super) fn in_real_time(&self, mut page: Page) -> Page {
        for run in self.summary.runs() {
            let Some(about) = &run.emulated else { continue };
            for why in &about.invalid {
                page = page.notice(format!("Seed {} is not valid: {why}", run.seed));
            }
            let (p50, p99, cpu) = (about.lateness_p50_ms, about.lateness_p99_ms, about.cpu);
            let late = format!("late by p50 {p50:.2} ms, p99 {p99:.2} ms; CPU {:.0} %", cpu * 100.0);
            page = page.meta(format!("emulator, seed {}", run.seed), late);
        }
        for note in self.first().emulated.iter().flat_map(|about| &about.notes) {
            page = page.notice(format!("In real time: {note}"));
        }
        page
    }

    /// One sentence: what each group got.
    pub(super) fn result(&self) -> String {
        let groups = self.first().groups.iter().map(|g| {
            let each = if g.flows == 1 { "" } else { " each" };
            format!("{} {} kbit/s{each}", g.name, short(self.metric(g, Metric::ThroughputBps).0 / 1e3))
        });
        groups.collect::<Vec<_>>().join(", ")
    }

    /// How long packets of sources with rates of their own take, from there to the receiver.
    pub(super) fn waits(&self) -> String {
        let groups = self.first().groups.iter().filter(|g| g.lost_in_send_buffer.is_some());
        let waits = groups.filter_map(|g| {
            let (p95, _) = self.metric(g, Metric::E2eP95Ms);
            p95.is_finite().then(|| format!("{} within {} ms", g.name, short(p95)))
        });
        waits.collect::<Vec<_>>().join(", ")
    }

    /// A group's number: the mean over the seeds with its interval, or the only seed's; not a number if there is none.
    pub(super) fn metric(&self, group: &GroupSummary, metric: Metric) -> (f64, Option<[f64; 2]>) {
        match self.summary.metrics().iter().find(|m| m.group == group.name && m.metric == metric) {
            Some(m) => (m.estimate.mean, m.estimate.ci95),
            None => (metric.of(group).unwrap_or(f64::NAN), None),
        }
    }
}
