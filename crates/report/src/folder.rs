//! The page of a results folder, from what is on disk: the same whether the run has just ended or is a
//! year old.
//!
//! Reads `summary.json`, `scenario.toml`, `series.csv` and `link_series.csv`, with a satellite `terminals.csv`,
//! `slots.csv` and `events.jsonl`, with a wireless link `users.csv`, `radio_slots.csv` and `jitter.csv`, and with data
//! units `adus.csv`, as [`results`](crate::results) writes them. Columns are found by name, so that a folder with more of them is read as
//! well.

mod adus;
mod satellite;
mod wireless;

use super::{Axis, BandKind, Chart, Lane, Page, Section, Series, Span, Table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Points per line beyond which neighbours are averaged: a chart is a thousand pixels wide.
const MAX_POINTS: usize = 1500;
/// A table with more rows than this is folded.
const MAX_OPEN_ROWS: usize = 12;
/// Lanes of the timeline at most; more flows are in `series.csv`.
const MAX_LANES: usize = 6;

/// Flows in the table at most; all are in `flows.csv`.
const MAX_FLOWS: usize = 200;
/// Stopped flows that are named above everything else.
const MAX_NOTICES: usize = 5;

/// Why no page could be made of a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file is missing or unreadable.
    #[error("`{}` cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file is not what it should be.
    #[error("`{}` is not as a run writes it: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The page of one run's folder.
///
/// # Errors
/// [`FolderError`] if the folder is not a run's.
pub fn run_page(folder: &Path) -> Result<Page, FolderError> {
    let run = Run::read(folder, None)?;
    let mut page = Page::new(run.title()).subtitle(match run.waits() {
        waits if waits.is_empty() => run.result(),
        waits => format!("{}. End to end, 95 % of packets: {waits}", run.result()),
    });
    page = run.in_real_time(run.describe(page, run.world())).section(run.numbers());
    if let Some(section) = run.satellite() {
        page = page.section(section);
    }
    for section in run.wireless() {
        page = page.section(section);
    }
    if let Some(section) = run.adus() {
        page = page.section(section);
    }
    Ok(page.section(run.over_time(std::slice::from_ref(&run))).section(run.each_flow()))
}

/// The page of several runs of the same path: the name of each and its folder below `folder`.
///
/// # Errors
/// As [`run_page`].
pub fn compare_page(folder: &Path, names: &[String]) -> Result<Page, FolderError> {
    let runs: Vec<Run> =
        names.iter().map(|n| Run::read(&folder.join(folder_name(n)), Some(n))).collect::<Result<_, _>>()?;
    let Some(first) = runs.first() else {
        return Err(FolderError::Malformed { path: folder.to_owned(), problem: "it holds no run".into() });
    };
    let mut page = Page::new(format!("{}: {}", first.title(), names.join(", ")))
        .subtitle(runs.iter().map(|r| format!("{}: {}", r.label(), r.result())).collect::<Vec<_>>().join(". "));
    let mut worlds: Vec<&str> = runs.iter().map(Run::world).collect();
    worlds.dedup();
    page = first.describe(page, &worlds.join(", "));
    for run in &runs {
        page = run.in_real_time(page);
    }
    let mut section = Section::new("numbers", "In numbers");
    let mut table = Table { title: "Groups".into(), caption: first.caption(), ..Table::default() };
    for run in &runs {
        let t = run.groups();
        table.head = [vec!["with".into()], t.head].concat();
        table.rows.extend(t.rows.into_iter().map(|row| [vec![run.label()], row].concat()));
    }
    section = section.table(table);
    page = page.section(section).section(first.over_time(&runs));
    Ok(page)
}

/// The folder of one of several runs: `rap:fine_grain=on` has characters that no file should have.
pub fn folder_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// What was read.
struct Run {
    /// The controller, where several are compared.
    variant: Option<String>,
    summary: Value,
    scenario: toml::Table,
    series: Rows,
    links: Rows,
    /// With a satellite only.
    terminal_rows: Rows,
    slots: Rows,
    events: Vec<Value>,
    /// With a wireless link only.
    user_rows: Rows,
    radio_slots: Rows,
    jitter_rows: Rows,
    /// With data units only.
    adu_rows: Rows,
}

/// A CSV file, column by column name.
#[derive(Default)]
struct Rows {
    head: BTreeMap<String, usize>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    fn read(path: &Path) -> Result<Rows, FolderError> {
        let text = read(path)?;
        let mut lines = text.lines();
        let head = lines.next().map(fields).unwrap_or_default();
        let width = head.len();
        let rows: Vec<Vec<String>> = lines.map(fields).collect();
        if let Some((n, row)) = rows.iter().enumerate().find(|(_, r)| r.len() != width) {
            let problem = format!("line {} has {} fields, the head has {width}", n + 2, row.len());
            return Err(FolderError::Malformed { path: path.to_owned(), problem });
        }
        Ok(Rows { head: head.into_iter().enumerate().map(|(i, name)| (name, i)).collect(), rows })
    }

    fn text<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        self.head.get(column).and_then(|i| row.get(*i)).map_or("", String::as_str)
    }

    fn number(&self, row: &[String], column: &str) -> Option<f64> {
        self.text(row, column).parse().ok().filter(|v: &f64| v.is_finite())
    }
}

/// The fields of one line of CSV [RFC 4180], without line breaks inside quotes.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                push(&mut out, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => push(&mut out, c),
        }
    }
    out
}

fn push(fields: &mut [String], c: char) {
    if let Some(last) = fields.last_mut() {
        last.push(c);
    }
}

fn read(path: &Path) -> Result<String, FolderError> {
    std::fs::read_to_string(path).map_err(|error| FolderError::Unreadable { path: path.to_owned(), error })
}

impl Run {
    fn read(folder: &Path, variant: Option<&str>) -> Result<Run, FolderError> {
        let malformed = |name: &str, problem: String| FolderError::Malformed { path: folder.join(name), problem };
        let summary = serde_json::from_str(&read(&folder.join("summary.json"))?)
            .map_err(|e| malformed("summary.json", e.to_string()))?;
        let scenario = read(&folder.join("scenario.toml"))?
            .parse()
            .map_err(|e: toml::de::Error| malformed("scenario.toml", e.message().to_owned()))?;
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

    /// The first seed's summary: all of it if there was one seed.
    fn first(&self) -> &Value {
        self.summary["runs"].get(0).unwrap_or(&self.summary)
    }

    fn seeds(&self) -> Vec<String> {
        match self.summary["seeds"].as_array() {
            Some(seeds) => seeds.iter().map(ToString::to_string).collect(),
            None => vec![self.summary["seed"].to_string()],
        }
    }

    fn title(&self) -> String {
        let text = |key: &str| self.scenario.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        match (text("title"), text("name")) {
            (title, _) if !title.is_empty() => title,
            (_, name) => format!("Scenario {name}"),
        }
    }

    fn label(&self) -> String {
        self.variant.clone().unwrap_or_default()
    }

    fn caption(&self) -> String {
        let seeds = self.seeds();
        let which = if seeds.len() == 1 {
            format!("seed {}", seeds[0])
        } else {
            format!("mean of {} seeds, 95 % intervals", seeds.len())
        };
        let name = self.first()["scenario"].as_str().unwrap_or_default();
        format!(
            "Scenario {name}; {which}; the first {} s left out",
            short(self.first()["warmup_s"].as_f64().unwrap_or(0.0))
        )
    }

    fn world(&self) -> &str {
        self.first()["world"].as_str().unwrap_or("sim")
    }

    fn describe(&self, mut page: Page, world: &str) -> Page {
        let first = self.first();
        page = page
            .meta("scenario", format!("`{}`", first["scenario"].as_str().unwrap_or_default()))
            .meta("world", world)
            .meta("duration", format!("{} s", short(first["duration_s"].as_f64().unwrap_or(0.0))))
            .meta("seeds", self.seeds().join(", "))
            .meta("made by", format!("Fairpace {}", env!("CARGO_PKG_VERSION")));
        let cut = self.summary["interrupted"].as_bool() == Some(true) || first["interrupted"].as_bool() == Some(true);
        if cut {
            page = page.notice("The run was interrupted: what is here is valid, but not all that was asked for");
        }
        for warning in list(&first["warnings"]) {
            page = page.notice(warning.as_str().unwrap_or_default());
        }
        let stopped: Vec<_> = list(&first["flows"]).iter().filter(|f| f["stopped"].is_string()).collect();
        for flow in stopped.iter().take(MAX_NOTICES) {
            page = page.notice(format!(
                "The circuit breaker stopped `{}`: {}",
                flow["name"].as_str().unwrap_or_default(),
                flow["stopped"].as_str().unwrap_or_default()
            ));
        }
        if stopped.len() > MAX_NOTICES {
            page = page.notice(format!("The circuit breaker stopped {} more flows", stopped.len() - MAX_NOTICES));
        }
        page
    }

    /// Why not to trust what was run against the clock, what was different there, and how well the machine kept up.
    fn in_real_time(&self, mut page: Page) -> Page {
        let first = self.first();
        let runs = list(&self.summary["runs"]);
        for run in if runs.is_empty() { std::slice::from_ref(first) } else { runs } {
            let about = &run["emulated"];
            for why in list(&about["invalid"]) {
                let (seed, why) = (&run["seed"], why.as_str().unwrap_or_default());
                page = page.notice(format!("Seed {seed} is not valid: {why}"));
            }
            let number = |key: &str| about[key].as_f64();
            if let (Some(p50), Some(p99), Some(cpu)) =
                (number("lateness_p50_ms"), number("lateness_p99_ms"), number("cpu"))
            {
                let late = format!("late by p50 {p50:.2} ms, p99 {p99:.2} ms; CPU {:.0} %", cpu * 100.0);
                page = page.meta(format!("emulator, seed {}", run["seed"]), late);
            }
        }
        for note in list(&first["emulated"]["notes"]) {
            page = page.notice(format!("In real time: {}", note.as_str().unwrap_or_default()));
        }
        page
    }

    /// One sentence: what each group got.
    fn result(&self) -> String {
        let groups = list(&self.first()["groups"]).iter().map(|g| {
            let each = if g["flows"].as_u64() == Some(1) { "" } else { " each" };
            format!(
                "{} {} kbit/s{each}",
                g["name"].as_str().unwrap_or_default(),
                short(self.metric(g, "throughput_bps").0 / 1e3)
            )
        });
        groups.collect::<Vec<_>>().join(", ")
    }

    /// How long packets of sources with rates of their own take, from there to the receiver.
    fn waits(&self) -> String {
        let groups = list(&self.first()["groups"]).iter().filter(|g| g["lost_in_send_buffer"].is_number());
        let waits = groups.filter_map(|g| {
            let p95 = match self.metric(g, "e2e_p95_ms") {
                (mean, _) if mean.is_finite() => mean,
                _ => g["e2e_ms"]["p95"].as_f64()?,
            };
            Some(format!("{} within {} ms", g["name"].as_str().unwrap_or_default(), short(p95)))
        });
        waits.collect::<Vec<_>>().join(", ")
    }

    /// A group's number: the mean over the seeds with its interval, or the only seed's.
    fn metric(&self, group: &Value, metric: &str) -> (f64, Option<(f64, f64)>) {
        let found =
            list(&self.summary["metrics"]).iter().find(|m| m["group"] == group["name"] && m["metric"] == metric);
        match found {
            Some(m) => {
                let end = |i: usize| m["ci95"].get(i).and_then(Value::as_f64);
                (m["mean"].as_f64().unwrap_or(f64::NAN), end(0).zip(end(1)))
            }
            None => (group[metric].as_f64().unwrap_or(f64::NAN), None),
        }
    }

    fn groups(&self) -> Table {
        let groups = list(&self.first()["groups"]);
        // Where sources have rates of their own, packets wait before they are sent, and may be late; there the
        // goodput is the throughput.
        let own_rates = groups.iter().any(|g| g["lost_in_send_buffer"].is_number());
        let mut columns = vec![
            ("throughput (kbit/s)", "throughput_bps", 1e-3),
            ("goodput (kbit/s)", "goodput_bps", 1e-3),
            ("loss (%)", "loss_ratio", 100.0),
            ("dummies (%)", "overhead", 100.0),
            ("delay p95 (ms)", "owd_p95_ms", 1.0),
            ("Jain", "jain_index", 1.0),
        ];
        if own_rates {
            let dummies = groups.iter().any(|g| g["overhead"].as_f64().unwrap_or(0.0) > 0.0);
            columns.retain(|(_, metric, _)| *metric != "goodput_bps" && (dummies || *metric != "overhead"));
            columns.extend([
                ("e2e p50 (ms)", "e2e_p50_ms", 1.0),
                ("e2e p95 (ms)", "e2e_p95_ms", 1.0),
                ("lost unsent (%)", "lost_in_send_buffer", 100.0),
                ("late (%)", "late", 100.0),
            ]);
        }
        if groups.iter().any(|g| g["outage"].is_number()) {
            columns.push(("delay outage (%)", "outage", 100.0));
        }
        let rows = groups.iter().map(|g| {
            let cell = |metric: &str, scale: f64| match self.metric(g, metric) {
                // Of one seed a delay stands in its distribution.
                (mean, _) if !mean.is_finite() => metric
                    .strip_suffix("_ms")
                    .and_then(|m| m.split_once('_'))
                    .and_then(|(delay, quantile)| g[&format!("{delay}_ms")][quantile].as_f64())
                    .map_or_else(|| "–".into(), short),
                (mean, Some((low, high))) if !metric.ends_with("_ms") => {
                    format!("{} ± {}", short(mean * scale), short((high - low) / 2.0 * scale))
                }
                (mean, _) => short(mean * scale),
            };
            let mut row = vec![g["name"].as_str().unwrap_or_default().to_owned(), g["flows"].to_string()];
            row.extend(columns.iter().map(|(_, metric, scale)| cell(metric, *scale)));
            row
        });
        Table {
            title: "Groups".into(),
            caption: self.caption(),
            head: ["group", "flows"]
                .into_iter()
                .chain(columns.iter().map(|(title, ..)| *title))
                .map(String::from)
                .collect(),
            rows: rows.collect(),
        }
    }

    /// The flows one by one; folded where they are many.
    fn each_flow(&self) -> Section {
        let seed = self.seeds().into_iter().next().unwrap_or_default();
        let flow_head = [
            "flow",
            "controller",
            "throughput (kbit/s)",
            "sent (packets)",
            "received (packets)",
            "dummies (packets)",
            "SRTT (ms)",
            "stopped",
        ];
        let all = list(&self.first()["flows"]);
        let left_out =
            all.len().saturating_sub(MAX_FLOWS) as u64 + self.first()["flows_left_out"].as_u64().unwrap_or(0);
        let flows = all.iter().take(MAX_FLOWS).map(|f| {
            let number = |key: &str, scale: f64| f[key].as_f64().map_or_else(|| "–".into(), |v| short(v * scale));
            vec![
                f["name"].as_str().unwrap_or_default().to_owned(),
                f["controller"].as_str().unwrap_or_default().to_owned(),
                number("throughput_bps", 1e-3),
                f["sent_packets"].to_string(),
                f["received_packets"].to_string(),
                f["dummies_packets"].to_string(),
                number("srtt_ms", 1.0),
                f["stopped"].as_str().unwrap_or("no").to_owned(),
            ]
        });
        let table = Table {
            title: "Flows".into(),
            caption: match left_out {
                0 => format!("seed {seed}"),
                n => format!("seed {seed}; {n} more flows in flows.csv"),
            },
            head: flow_head.map(String::from).to_vec(),
            rows: flows.collect(),
        };
        let fold = table.rows.len() > MAX_OPEN_ROWS;
        let section = Section::new("flows", "Flow by flow").table(table);
        if fold { section.folded() } else { section }
    }

    fn numbers(&self) -> Section {
        let seed = self.seeds().into_iter().next().unwrap_or_default();
        let link_head = [
            "link",
            "utilization (%)",
            "transmitted (packets)",
            "queue full",
            "early",
            "pushed out",
            "link errors",
            "outage",
            "marked",
            "mean queue (packets)",
            "longest",
        ];
        let links = list(&self.first()["links"]).iter().map(|l| {
            let drops = |key: &str| {
                (l["drops_packets"][key].as_u64().unwrap_or(0) + l["low_drops_packets"][key].as_u64().unwrap_or(0))
                    .to_string()
            };
            vec![
                l["name"].as_str().unwrap_or_default().to_owned(),
                l["utilization"].as_f64().map_or_else(|| "–".into(), |u| short(u * 100.0)),
                l["transmitted_packets"].to_string(),
                drops("queue_full"),
                drops("early"),
                drops("pushed_out"),
                drops("link_error"),
                drops("outage"),
                l["marked_packets"].as_u64().unwrap_or(0).to_string(),
                l["queue_mean_packets"].as_f64().map_or_else(|| "–".into(), short),
                l["queue_max_packets"].to_string(),
            ]
        });
        let links = Table {
            title: "Links, with packets dropped by reason".into(),
            caption: format!("seed {seed}"),
            head: link_head.map(String::from).to_vec(),
            rows: links.collect(),
        };
        let section = Section::new("numbers", "In numbers").table(self.groups());
        // Over a satellite a flow need not have a link of its own.
        if links.rows.is_empty() { section } else { section.table(links) }
    }

    /// The groups of the first seed: name, and the colour key of its controller (or its own name, if an
    /// earlier group has that controller).
    fn keys(&self) -> Vec<(String, String)> {
        let mut keys: Vec<(String, String)> = Vec::new();
        for group in list(&self.first()["groups"]) {
            let name = group["name"].as_str().unwrap_or_default();
            let controller = self.controllers(name).next().unwrap_or(name);
            let key = if keys.iter().any(|(_, k)| k == controller) { name } else { controller };
            keys.push((name.to_owned(), key.to_owned()));
        }
        keys
    }

    /// The mean of a column over the flows of a group, at each instant of the first seed.
    fn mean(&self, group: &str, column: &str, scale: f64) -> (Vec<f64>, Vec<f64>) {
        let rows = &self.series;
        let seed = self.first()["seed"].to_string();
        let mut x: Vec<f64> = Vec::new();
        let mut sums: Vec<(f64, u32)> = Vec::new();
        for row in rows.rows.iter().filter(|r| rows.text(r, "seed") == seed && rows.text(r, "group") == group) {
            let Some(t) = rows.number(row, "t_s") else { continue };
            // Rows come in order of time; all flows of one instant stand together.
            if x.last() != Some(&t) {
                x.push(t);
                sums.push((0.0, 0));
            }
            if let (Some(value), Some(sum)) = (rows.number(row, column), sums.last_mut()) {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
        let y = sums.iter().map(|(sum, n)| if *n == 0 { f64::NAN } else { sum * scale / f64::from(*n) }).collect();
        thin(x, y)
    }

    /// The controllers of a group's flows, as the scenario says: the summary need not have all flows.
    fn controllers<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a str> {
        let flows = self.scenario.get("flows").and_then(toml::Value::as_array).into_iter().flatten();
        let text = |f: &'a toml::Value, key: &str| f.get(key).and_then(toml::Value::as_str);
        flows.filter(move |f| text(f, "group") == Some(group)).filter_map(move |f| text(f, "controller"))
    }

    /// Whether a group's flows are those whose controller is exchanged.
    fn compared(&self, group: &str) -> bool {
        let name = self.variant.as_deref().map(|v| v.split(':').next().unwrap_or(v));
        self.controllers(group).any(|c| Some(c) == name)
    }

    /// Whether it stands for that world beside another.
    fn is_world(&self, world: &str) -> bool {
        self.variant.as_deref() == Some(world) && self.first()["world"] == world
    }

    fn states(&self) -> Vec<Lane> {
        let rows = &self.series;
        let seed = self.first()["seed"].to_string();
        let keys: BTreeMap<String, String> = self.keys().into_iter().collect();
        let mut lanes: Vec<Lane> = Vec::new();
        for row in rows.rows.iter().filter(|r| rows.text(r, "seed") == seed && !rows.text(r, "state").is_empty()) {
            let (Some(t), flow, state) = (rows.number(row, "t_s"), rows.text(row, "flow"), rows.text(row, "state"))
            else {
                continue;
            };
            if self.variant.is_some() && !self.compared(rows.text(row, "group")) {
                continue;
            }
            let name = self.variant.as_ref().map_or_else(|| flow.to_owned(), |v| format!("{v} {flow}"));
            let lane = match lanes.iter_mut().position(|l| l.name == name) {
                Some(i) => &mut lanes[i],
                None if lanes.len() < MAX_LANES => {
                    let of_group = || keys.get(rows.text(row, "group")).cloned().unwrap_or_default();
                    let colour = self.variant.as_ref().map_or_else(of_group, |v| variant_key(v));
                    lanes.push(Lane { name, colour, spans: Vec::new() });
                    let last = lanes.len() - 1;
                    &mut lanes[last]
                }
                None => continue,
            };
            match lane.spans.last_mut() {
                Some(span) if span.label.eq_ignore_ascii_case(state) => span.to = t,
                other => {
                    if let Some(before) = other {
                        before.to = t;
                    }
                    lane.spans.push(Span { from: t, to: t, label: capital(state) });
                }
            }
        }
        // A lane that never changes says nothing.
        lanes.retain(|l| l.spans.len() > 1);
        lanes
    }

    /// Shades what happens to the path: outages, and stretches slower than the first rate.
    fn set_up(&self, mut chart: Chart) -> Chart {
        let path = self.scenario.get("path").and_then(toml::Value::as_table);
        let end = self.first()["duration_s"].as_f64().unwrap_or(0.0);
        let seconds = |v: Option<&toml::Value>| {
            v.and_then(toml::Value::as_str)
                .and_then(|t| fairpace_units::parse_duration(t).ok())
                .map(|d| d.as_secs_f64())
        };
        for step in path.and_then(|p| p.get("rate")).and_then(toml::Value::as_array).into_iter().flatten().skip(1) {
            let label = step.get("rate").and_then(toml::Value::as_str).unwrap_or_default();
            if let Some(at) = seconds(step.get("at")).filter(|at| *at < end) {
                chart = chart.band(at, at, label, BandKind::Note);
            }
        }
        for outage in path.and_then(|p| p.get("outages")).and_then(toml::Value::as_array).into_iter().flatten() {
            if let (Some(at), Some(length)) = (seconds(outage.get("start")), seconds(outage.get("length"))) {
                chart = chart.band(at, (at + length).min(end), "outage", BandKind::Outage);
            }
        }
        chart
    }

    /// End-to-end delay of the groups whose sources have rates of their own, and what of it is the network's.
    fn end_to_end(&self, runs: &[Run], time: Axis, caption: &str) -> Chart {
        let waits = runs.iter().filter(|r| !r.waits().is_empty());
        let waits = waits.map(|r| if runs.len() > 1 { format!("{}: {}", r.label(), r.waits()) } else { r.waits() });
        let title = format!("End to end, 95 % of packets: {}", waits.collect::<Vec<_>>().join("; "));
        let mut chart = Chart::new(title, time, Axis::new("end-to-end delay", "ms"))
            .caption(format!("{caption}; from the source, with the time in the send buffer; means of each interval"));
        for run in runs {
            for (group, key) in run.keys() {
                let own_rate = |g: &Value| g["name"].as_str() == Some(&group) && g["lost_in_send_buffer"].is_number();
                if !list(&run.first()["groups"]).iter().any(own_rate) {
                    continue;
                }
                let (x, y) = run.mean(&group, "e2e_ms", 1.0);
                chart = match &run.variant {
                    Some(v) => chart.series(Series::line(format!("{v}: {group}"), variant_key(v), x, y)),
                    None => {
                        let (x1, y1) = run.mean(&group, "owd_ms", 1.0);
                        let once_sent = Series::line(format!("{group}, once sent"), key.clone(), x1, y1).reference();
                        chart.series(Series::line(group, key, x, y)).series(once_sent)
                    }
                };
            }
        }
        chart
    }

    fn over_time(&self, runs: &[Run]) -> Section {
        let end = self.first()["duration_s"].as_f64().unwrap_or(0.0);
        let time = || Axis::new("time", "s").range(0.0, end);
        let seed = self.seeds().into_iter().next().unwrap_or_default();
        // The title's numbers are means over the seeds; a curve is one seed's.
        let which = match self.seeds().len() {
            1 => format!("seed {seed}"),
            n => format!("curve: seed {seed}; numbers: mean of {n} seeds"),
        };
        let caption = format!(
            "Scenario {}; {which}; mean over the flows of each group",
            self.first()["scenario"].as_str().unwrap_or_default()
        );
        let lines = |title: &str, y: Axis, column: &str, scale: f64, stepped: bool| {
            let mut chart = Chart::new(title, time(), y).caption(caption.clone());
            for run in runs {
                for (group, key) in run.keys() {
                    let (x, y) = run.mean(&group, column, scale);
                    if !y.iter().any(|v| v.is_finite() && *v != 0.0) {
                        continue;
                    }
                    // Beside each other, everything of one run has the colour of its controller; what is the
                    // same in all of them (TCP, background) is thin and dashed. Of two worlds, everything simulated is.
                    let series = if stepped { Series::stepped } else { Series::line };
                    let series = match &run.variant {
                        Some(v) if run.is_world("sim") => series(format!("{v}: {group}"), key, x, y).reference(),
                        Some(v) if run.is_world("emu") => series(format!("{v}: {group}"), key, x, y),
                        Some(v) if run.compared(&group) => series(format!("{v}: {group}"), variant_key(v), x, y),
                        Some(v) => series(format!("{v}: {group}"), variant_key(v), x, y).reference(),
                        None => series(group, key, x, y),
                    };
                    chart = chart.series(series);
                }
            }
            chart
        };
        let got =
            runs.iter().map(|r| if runs.len() > 1 { format!("{}: {}", r.label(), r.result()) } else { r.result() });
        let rate = lines(
            &format!("Received: {}", got.collect::<Vec<_>>().join("; ")),
            Axis::new("throughput", "kbit/s"),
            "throughput_bps",
            1e-3,
            true,
        );
        let target =
            lines("What the controllers allow", Axis::new("allowed rate", "kbit/s"), "target_rate_bps", 1e-3, true);
        let dummies = lines("Dummy packets sent", Axis::new("dummies", "kbit/s"), "dummy_rate_bps", 1e-3, true);
        let srtt =
            lines("Smoothed round-trip time, as the senders see it", Axis::new("SRTT", "ms"), "srtt_ms", 1.0, false);
        let e2e = self.end_to_end(runs, time(), &caption);
        let mut states =
            Chart::new("What the controllers were doing", time(), Axis::default()).caption(format!("seed {seed}"));
        states.lanes = runs.iter().flat_map(Run::states).collect();
        let mut queue = Chart::new("Packets waiting before the bottleneck", time(), Axis::new("queue", "packets"))
            .caption(format!("seed {seed}"));
        for run in runs.iter().filter(|r| r.first()["satellite"].is_null()) {
            let rows = &run.links;
            let wanted = |r: &&Vec<String>| rows.text(r, "seed") == seed && rows.text(r, "link") == "bottleneck";
            let points = rows
                .rows
                .iter()
                .filter(wanted)
                .filter_map(|r| rows.number(r, "t_s").zip(rows.number(r, "queue_packets")));
            let (x, y) = points.unzip();
            let (x, y) = thin(x, y);
            let (name, key) = match &run.variant {
                Some(v) => (v.clone(), variant_key(v)),
                None => ("bottleneck".to_owned(), "link".to_owned()),
            };
            queue = queue.series(Series::stepped(name, key, x, y));
        }
        let mut section = Section::new("time", "Over time")
            .text("Drag to zoom, double-click to go back, click a name to hide its line.")
            .synced();
        for chart in [rate, e2e, target, states, srtt, dummies, queue] {
            if !chart.series.is_empty() || !chart.lanes.is_empty() {
                section = section.chart(self.set_up(chart));
            }
        }
        section
    }
}

/// The colour key of `rap:fine_grain=on`: the palette knows some variants by name.
fn variant_key(variant: &str) -> String {
    match variant {
        "rap:fine_grain=on" => "rap-fine-grain".to_owned(),
        other => other.to_owned(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// At most [`MAX_POINTS`] points: neighbours are averaged, so that the area under the line stays.
fn thin(x: Vec<f64>, y: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let block = x.len().div_ceil(MAX_POINTS);
    if block <= 1 {
        return (x, y);
    }
    let mean = |values: &[f64]| {
        let (sum, n) = values.iter().filter(|v| v.is_finite()).fold((0.0, 0), |(s, n), v| (s + v, n + 1));
        if n == 0 { f64::NAN } else { sum / f64::from(n) }
    };
    (x.chunks(block).map(|c| c[0]).collect(), y.chunks(block).map(mean).collect())
}

fn short(v: f64) -> String {
    let digits = match v.abs() {
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 || a == 0.0 => 2,
        _ => 4,
    };
    let text = format!("{v:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_keep_their_commas_and_quotes() {
        assert_eq!(fields("a,\"b,\"\"c\"\"\",,d"), ["a", "b,\"c\"", "", "d"]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn thinning_keeps_the_mean_and_skips_gaps() {
        let n = MAX_POINTS * 2;
        let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let mut y = vec![2.0; n];
        y[1] = f64::NAN;
        let (x, y) = thin(x, y);
        assert_eq!((x.len(), y.len()), (MAX_POINTS, MAX_POINTS));
        assert_eq!((x[1], y[0]), (2.0, 2.0));
    }

    #[test]
    fn a_controllers_settings_make_a_plain_folder_name() {
        assert_eq!(folder_name("rap:fine_grain=on"), "rap-fine_grain-on");
        assert_eq!(folder_name("../x"), "..-x");
    }

    #[test]
    fn a_folder_without_a_run_is_said_to_be_so() {
        let error = run_page(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.starts_with("`/nonexistent/summary.json` cannot be read"), "{error}");
    }
}
