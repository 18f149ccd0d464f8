//! The clients of a cell for people and for machines: what each was promised, and what it got.

use crate::term::Columns;
use fairpace_emu::relay::{Gone, News, RelayReport, RelaySample, Standing, Visit};
use fairpace_scenario::Scenario;
use fairpace_sim::Promise;
use fairpace_units::{Instant, Rate, format_duration};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The most names that a line has.
const MOST_NAMES: usize = 8;

/// A line that is longer would not be written over.
const WIDTH: usize = 118;

/// The names of places, as many as a line takes.
pub(super) fn some(names: &[String]) -> String {
    match names.get(..MOST_NAMES).filter(|first| first.len() < names.len()) {
        Some(first) => format!("{}, …", first.join(", ")),
        None => names.join(", "),
    }
}

/// A line for each thing that has happened since the last sample.
pub(super) fn news(names: &[String], sample: &RelaySample) -> Vec<String> {
    let name = |place: usize| names.get(place).map_or("?", String::as_str);
    let at = sample.at.as_secs_f64();
    let line = |news: &News| match *news {
        News::Came(place, client) => format!("{at:6.0} s  {}: {client} has come", name(place)),
        News::Sealed(place) => format!(
            "{at:6.0} s  {}: its feedback is sealed with a key and passes as it is: no window reaches it, and it is not planned; \
                 `receive --rwnd` can give it one",
            name(place)
        ),
        News::NoWindow(place) => format!(
            "{at:6.0} s  {}: its sender takes no window, and it is not planned; `send --control aimd --no-repair` takes one",
            name(place)
        ),
        News::Window(place, rwnd, ref promise) => format!("{at:6.0} s  {}: {}", name(place), window(rwnd, promise)),
        News::Left(place, client, why) => format!("{at:6.0} s  {}: {client} {}", name(place), gone(why)),
        News::Ignores(place) => {
            format!("{at:6.0} s  {}: its sender ignores its window; the others' delays suffer", name(place))
        }
        News::Refused(from) => format!("{at:6.0} s  no place for {from}: all are taken, or others are named"),
    };
    sample.cell.news.iter().map(line).collect()
}

/// A window, and what comes of it.
fn window(rwnd: u32, promise: &Result<Promise, String>) -> String {
    let packets = if rwnd == 1 { "1 packet, the least".to_owned() } else { format!("{rwnd} packets") };
    match promise {
        Ok(p) if p.is_kept() => {
            format!("{packets}, {} kbit/s, at most {} % late", kbps(p.throughput), percent(p.outage))
        }
        Ok(p) => format!(
            "{packets}; the cell is asked for more than it has: {} % late, where {} % were to be at most",
            percent(p.outage),
            percent(p.bound)
        ),
        Err(why) => format!("{packets}; nothing is promised: {why}"),
    }
}

fn gone(why: Gone) -> &'static str {
    match why {
        Gone::Bye => "has said goodbye",
        Gone::Silent => "is silent, and has left",
        Gone::Replaced => "was silent, and another has its place",
        Gone::End => "was there to the end",
    }
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Unknown => "unknown",
        Standing::NoWindow => "takes no window",
        Standing::Sealed => "sealed",
        Standing::Asking => "asking",
        Standing::Planned => "planned",
    }
}

fn kbps(rate: Rate) -> String {
    format!("{:.1}", rate.as_bps() / 1e3)
}

fn percent(part: f64) -> String {
    format!("{:.2}", part * 100.0)
}

/// The line that is written over and over while the cell runs.
pub(super) fn line(now: &RelaySample, before: Option<&RelaySample>) -> String {
    let since = before.map_or(Instant::ZERO, |b| b.at);
    let span = now.at.since(since).as_secs_f64().max(1e-3);
    let flow = |visit: &Visit| {
        let earlier =
            before.and_then(|b| b.cell.clients.iter().find(|v| (v.place, v.from) == (visit.place, visit.from)));
        let bytes = visit.tally.bytes.get() - earlier.map_or(0, |v| v.tally.bytes.get());
        let window = visit.window.map_or_else(|| "–".to_owned(), |w| w.to_string());
        let late = visit.tally.outage().map_or_else(String::new, |o| format!(", late {} %", percent(o)));
        let plan = visit.tally.outage_by_plan().map_or_else(String::new, |o| format!(" (plan {})", percent(o)));
        format!("{}: rwnd {window}, {:.0} kbit/s{late}{plan}", visit.name, bytes as f64 * 8.0 / span / 1e3)
    };
    let flows: Vec<String> = now.cell.clients.iter().map(flow).collect();
    let line = format!("{:6.0} s  {}", now.at.as_secs_f64(), flows.join(" | "));
    line.chars().take(WIDTH).collect()
}

/// A line of `--stats`.
pub(super) fn stats(sample: &RelaySample) -> Value {
    json!({
        "at_s": sample.at.as_secs_f64(),
        "clients": sample.cell.clients.iter().map(client).collect::<Vec<_>>(),
        "refused_packets": sample.cell.refused,
    })
}

fn client(visit: &Visit) -> Value {
    let tally = &visit.tally;
    let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
    json!({
        "place": visit.place,
        "name": visit.name,
        "client": visit.client.to_string(),
        "from_s": visit.from.as_secs_f64(),
        "until_s": visit.end.map(|(at, _)| at.as_secs_f64()),
        "end": visit.end.map(|(_, why)| gone(why)),
        "standing": standing(visit.standing),
        "window": visit.window,
        "promise": visit.promise.map(|p| json!({
            "outage": p.outage, "bound": p.bound, "throughput_bps": p.throughput.as_bps(), "kept_by_plan": p.outage <= p.bound,
        })),
        "packets": tally.data,
        "bytes": tally.bytes.get(),
        "late_packets": tally.late,
        "late_in_path_packets": tally.late_in_path,
        "outage": tally.outage(),
        "outage_by_plan": tally.outage_by_plan(),
        "throughput_bps": bps(tally.rate()),
        "throughput_by_plan_bps": bps(tally.rate_by_plan()),
        "dropped_packets": tally.dropped,
        "larger_packets": tally.larger,
        "windows_written": tally.windows_written,
        "sealed_feedback_packets": tally.sealed_feedback,
        "over_window_packets": tally.over_window,
        "ignores_window": visit.ignores_window,
    })
}

/// All packets of clients that were planned: the part that was late, and the part that was to be at most.
fn planned(visits: &[Visit]) -> (Option<f64>, Option<f64>) {
    let planned = || visits.iter().filter(|v| v.standing == Standing::Planned).map(|v| v.tally);
    let (data, late) = planned().fold((0, 0), |(data, late), t| (data + t.data, late + t.late));
    let (promised, by_plan) = planned().fold((0, 0.0), |(n, sum), t| (n + t.promised, sum + t.late_by_plan));
    let part = |n: u64, of: f64| (n > 0).then(|| of / n as f64);
    (part(data, late as f64), part(promised, by_plan))
}

/// The object of `--json`.
pub(super) fn object(scenario: &Scenario, report: &RelayReport) -> Value {
    let us = |d: fairpace_units::Duration| d.as_secs_f64() * 1e6;
    let (outage, by_plan) = planned(&report.visits);
    let windows: Vec<Value> = report
        .path
        .radios
        .iter()
        .flat_map(|radio| &radio.windows)
        .map(|w| json!({ "at_s": w.at.as_secs_f64(), "flow": report.path.flows.get(w.flow as usize).map(|f| f.name.clone()), "rwnd": w.rwnd }))
        .collect();
    json!({
        "scenario": scenario.name,
        "seed": scenario.seed.get(),
        "elapsed_s": report.elapsed.as_secs_f64(),
        "outage": outage,
        "outage_by_plan": by_plan,
        "clients": report.visits.iter().map(client).collect::<Vec<_>>(),
        "windows": windows,
        "clients_in_all": report.clients,
        "refused_packets": report.strangers,
        "short_plans": report.short_plans,
        "withheld_packets": report.withheld,
        "lateness_us": { "p50": us(report.lateness.p50), "p99": us(report.lateness.p99), "max": us(report.lateness.max) },
        "cpu": report.cpu,
        "invalid": report.invalid,
    })
}

/// The table at the end, and what is to be said beside it.
pub(super) fn summary(out: &mut impl Write, report: &RelayReport) -> io::Result<()> {
    let mut columns = Columns::new(&[
        "flow", "sender", "s", "rwnd", "kbit/s", "by plan", "late %", "by plan", "at most", "packets", "dropped", "",
    ]);
    let dash = || "–".to_owned();
    let rate = |rate: Option<Rate>| rate.map_or_else(dash, kbps);
    let part = |part: Option<f64>| part.map_or_else(dash, percent);
    for visit in &report.visits {
        let tally = &visit.tally;
        let until = visit.end.map_or(visit.from, |(at, _)| at);
        let mut remarks = Vec::new();
        if visit.standing != Standing::Planned {
            remarks.push(standing(visit.standing).to_owned());
        }
        if visit.ignores_window {
            remarks.push(format!("ignores its window, {} packets above it", tally.over_window));
        }
        if tally.sealed_feedback > 0 {
            remarks.push(format!("{} of its feedback passed as they were", tally.sealed_feedback));
        }
        if tally.larger > 0 {
            remarks.push(format!("{} packets larger than planned", tally.larger));
        }
        columns.row([
            visit.name.clone(),
            visit.client.to_string(),
            format!("{:.0} to {:.0}", visit.from.as_secs_f64(), until.as_secs_f64()),
            visit.window.map_or_else(dash, |w| w.to_string()),
            rate(tally.rate()),
            rate(tally.rate_by_plan()),
            part(tally.outage()),
            part(tally.outage_by_plan()),
            part(visit.promise.map(|p| p.bound)),
            tally.data.to_string(),
            tally.dropped.to_string(),
            remarks.join("; "),
        ]);
    }
    columns.print(out, "")?;
    let (outage, by_plan) = planned(&report.visits);
    if let (Some(outage), Some(by_plan)) = (outage, by_plan) {
        writeln!(out, "late in all: {} %; by plan: {} %", percent(outage), percent(by_plan))?;
    }
    if report.short_plans > 0 {
        writeln!(out, "plans in which a flow had no promise, or not what was asked for: {}", report.short_plans)?;
    }
    if report.strangers > 0 {
        writeln!(out, "no place: {} packets refused", report.strangers)?;
    }
    writeln!(
        out,
        "{}; packets released late by p50 {}, p99 {}; CPU {:.0} %",
        format_duration(report.elapsed),
        format_duration(report.lateness.p50),
        format_duration(report.lateness.p99),
        report.cpu * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_emu::relay::{CellSample, LinkSample};
    use fairpace_units::Bytes;

    /// The lines of these news, without the time.
    fn said(news_of: Vec<News>) -> Vec<String> {
        let (forward, back) = (LinkSample::default(), LinkSample::default());
        let cell = CellSample { news: news_of, ..CellSample::default() };
        let sample = RelaySample { at: Instant::ZERO, forward, back, flows: Vec::new(), relayed: Bytes::ZERO, cell };
        let names = ["a", "b"].map(str::to_owned);
        news(&names, &sample).into_iter().map(|line| line.replace("     0 s  ", "")).collect()
    }

    #[test]
    fn a_window_is_told_with_what_the_planning_came_to() {
        let promise = |outage| Ok(Promise { outage, bound: 0.01, throughput: Rate::kbps(46.84) });
        let lines = said(vec![
            News::Window(0, 5, promise(0.002)),
            // Every flow has one packet, and this one keeps its promise all the same.
            News::Window(1, 1, promise(0.004)),
            News::Window(0, 1, promise(0.031)),
            News::Window(1, 6, promise(0.031)),
            News::Window(0, 1, Err("the channel delivers nothing".to_owned())),
            News::Window(1, 6, Err("its base station promises nothing".to_owned())),
        ]);
        assert_eq!(
            lines,
            [
                "a: 5 packets, 46.8 kbit/s, at most 0.20 % late",
                "b: 1 packet, the least, 46.8 kbit/s, at most 0.40 % late",
                "a: 1 packet, the least; the cell is asked for more than it has: 3.10 % late, where 1.00 % were to be at most",
                "b: 6 packets; the cell is asked for more than it has: 3.10 % late, where 1.00 % were to be at most",
                "a: 1 packet, the least; nothing is promised: the channel delivers nothing",
                "b: 6 packets; nothing is promised: its base station promises nothing",
            ]
        );
    }
}
