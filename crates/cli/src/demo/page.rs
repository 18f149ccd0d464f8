//! The demo's report: what was measured, as charts, bars, a table and pictures.
//!
//! Titles are computed from the numbers: whoever wins, the page says what happened.

use super::model::{Curve, DemoResult, SchemeRun, TurnEnd};
use fairpace_report::{Axis, BandKind, BarRow, Bars, Chart, Image, Lane, Page, Section, Series, Span, Table};
use std::path::Path;

/// The page; pictures are read from `dir`, and left out if they are not there.
pub(crate) fn page(demo: &DemoResult, dir: &Path) -> Page {
    let mut page = Page::new("A real video over a satellite-like path")
        .subtitle(subtitle(demo))
        .meta("clip", demo.source.clone())
        .meta("each scheme", format!("{} s", short(demo.seconds)))
        .meta("seed of the path", demo.seed.to_string())
        .meta("made by", format!("Fairpace {}", demo.fairpace));
    if demo.interrupted {
        let n = demo.schemes.iter().filter(|s| matches!(s.ended, TurnEnd::Completed | TurnEnd::Breaker { .. })).count();
        let turns = if n == 1 { "turn" } else { "turns" };
        page = page.notice(format!("Interrupted after {n} complete {turns}: what follows is valid as far as it goes"));
    }
    for run in &demo.schemes {
        if let Some(end) = early_end(run) {
            page = page.notice(format!("{}: {end}", run.label));
        }
        for remark in &run.remarks {
            page = page.notice(format!("{}: {remark}", run.label));
        }
    }
    page = page.section(frames(demo)).section(over_time(demo));
    if let Some(section) = stills(demo, dir) {
        page = page.section(section);
    }
    page.section(method(demo))
}

/// The remark about a turn that did not take its full time.
pub(crate) fn early_end(run: &SchemeRun) -> Option<String> {
    match &run.ended {
        TurnEnd::Completed => None,
        TurnEnd::Breaker { at_s, reason } => {
            Some(format!("stopped by the circuit breaker at {} s ({reason})", short(*at_s)))
        }
        TurnEnd::Interrupted { at_s } => Some(format!("interrupted at {} s", short(*at_s))),
        TurnEnd::Failed { at_s, reason } => Some(format!("failed at {} s: {reason}", short(*at_s))),
    }
}

fn subtitle(demo: &DemoResult) -> String {
    let each = demo.schemes.iter().map(|s| {
        let stopped = if let TurnEnd::Breaker { at_s, .. } = s.ended {
            format!(", stopped by the circuit breaker at {} s", short(at_s))
        } else {
            String::new()
        };
        format!("{} showed {} % of its frames in time{stopped}", s.label, short(s.totals.in_time_percent()))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// "RCS 92 %, RAP 81 %": every scheme with a number.
fn compare(demo: &DemoResult, unit: &str, number: impl Fn(&SchemeRun) -> f64) -> String {
    let each = demo.schemes.iter().map(|s| format!("{} {}{unit}", s.label, short(number(s))));
    each.collect::<Vec<_>>().join(", ")
}

/// The colour key of a turn: its scheme's, which is the same in every report, or for a second turn of the same
/// scheme one of its own.
fn colour(demo: &DemoResult, run: &SchemeRun) -> String {
    let first = demo.schemes.iter().find(|s| s.scheme == run.scheme);
    if first.is_some_and(|f| f.label != run.label) { run.label.clone() } else { run.scheme.clone() }
}

fn caption(demo: &DemoResult) -> String {
    let p = &demo.path;
    let rates: Vec<String> = p
        .capacity_kbps
        .iter()
        .map(|(at, kbps)| format!("{} Mbit/s from {} s", short(kbps / 1e3), short(*at)))
        .collect();
    let outages: Vec<String> =
        p.outages_s.iter().map(|(at, length)| format!("{} s at {} s", short(*length), short(*at))).collect();
    format!(
        "{}; RTT {} ms; loss {} %; blackout {}; queue {} packets, two priorities; beside: {}; seed {}",
        rates.join(", "),
        short(p.rtt_ms),
        short(100.0 * p.loss_probability),
        if outages.is_empty() { "none".to_owned() } else { outages.join(", ") },
        p.queue_packets,
        if p.beside.is_empty() { "nothing".to_owned() } else { p.beside.join(", ") },
        demo.seed
    )
}

fn frames(demo: &DemoResult) -> Section {
    let rows = demo.schemes.iter().map(|s| {
        let t = &s.totals;
        let values =
            [t.frames_in_time, t.frames_damaged, t.frames_late, t.frames_lost, t.frames_not_sent()].map(|n| n as f64);
        BarRow {
            label: s.label.clone(),
            colour: colour(demo, s),
            values: values.to_vec(),
            note: early_end(s).unwrap_or_default(),
        }
    });
    let bars = Bars {
        title: format!("Frames shown in time: {}", compare(demo, " %", |s| s.totals.in_time_percent())),
        caption: format!(
            "A frame is in time if it can be shown {} ms after the fastest way; a frame with a hole is not shown, those that refer to it are shown damaged, until the next key frame; lost packets {}. Not sent: the allowed rate had no room for the frame, or the flow was stopped",
            short(demo.path.playout_ms),
            if demo.path.retransmission { "are sent again" } else { "stay lost" }
        ),
        parts: ["in time", "damaged", "late", "lost", "not sent"].map(String::from).to_vec(),
        unit: "frames".into(),
        rows: rows.collect(),
    };
    let (head, rows) = summary(demo);
    let table = Table {
        title: "In numbers".into(),
        caption: format!(
            "kbit/s: video received; delay: one way, of its packets; loss: of its packets, before they are sent again; dummies: of all packets sent; TCP: all flows beside together; freeze: the longest. {}",
            caption(demo)
        ),
        head,
        rows,
    };
    Section::new("frames", "What the viewer got").bars(bars).table(table)
}

/// The meaning of the table's columns, in a line for the terminal.
pub(super) const LEGEND: &str = "in time, damaged, late, lost, not sent: frames; loss: of video packets; dummies: of all packets; freeze: the longest";

/// The table of the report and of the terminal.
pub(crate) fn summary(demo: &DemoResult) -> (Vec<String>, Vec<Vec<String>>) {
    let head = [
        "scheme",
        "in time",
        "damaged",
        "late",
        "lost",
        "not sent",
        "kbit/s",
        "delay p50/p95 ms",
        "loss",
        "dummies",
        "TCP kbit/s",
        "freeze s",
    ];
    let rows = demo.schemes.iter().map(|s| {
        let t = &s.totals;
        let delay = match (t.delay_p50_ms, t.delay_p95_ms) {
            (Some(p50), Some(p95)) => format!("{}/{}", short(p50), short(p95)),
            _ => "–".into(),
        };
        vec![
            s.label.clone(),
            format!("{} %", short(t.in_time_percent())),
            t.frames_damaged.to_string(),
            t.frames_late.to_string(),
            t.frames_lost.to_string(),
            t.frames_not_sent().to_string(),
            short(t.received_kbps),
            delay,
            format!("{} %", short(t.loss_percent())),
            format!("{} %", short(t.overhead_percent())),
            short(t.beside_kbps),
            short(t.longest_freeze_ms / 1e3),
        ]
    });
    (head.map(String::from).to_vec(), rows.collect())
}

fn over_time(demo: &DemoResult) -> Section {
    let time = || Axis::new("time", "s").range(0.0, demo.seconds);
    let set_up = |mut chart: Chart| {
        // The slower stretch and the blackout are part of every picture.
        let usual = demo.path.capacity_kbps.first().map_or(0.0, |(_, kbps)| *kbps);
        for (i, (at, kbps)) in demo.path.capacity_kbps.iter().enumerate().filter(|(_, (_, kbps))| *kbps < usual) {
            let to = demo.path.capacity_kbps.get(i + 1).map_or(demo.seconds, |(next, _)| *next).min(demo.seconds);
            if *at < to {
                chart = chart.band(*at, to, format!("{} Mbit/s", short(kbps / 1e3)), BandKind::Note);
            }
        }
        for (at, length) in demo.path.outages_s.iter().filter(|(at, _)| *at < demo.seconds) {
            chart = chart.band(*at, (at + length).min(demo.seconds), "blackout", BandKind::Outage);
        }
        chart
    };
    let lines = |title: String, y: Axis, stepped: bool, curve: &dyn Fn(&SchemeRun) -> Curve| {
        let mut chart = Chart::new(title, time(), y);
        for s in &demo.schemes {
            let (x, y) = curve(s).into_iter().unzip();
            let series = if stepped { Series::stepped } else { Series::line };
            chart = chart.series(series(s.label.clone(), colour(demo, s), x, y));
        }
        set_up(chart)
    };
    let (mut x, mut y): (Vec<f64>, Vec<f64>) = demo.path.capacity_kbps.iter().copied().unzip();
    if let Some(last) = y.last().copied() {
        x.push(demo.seconds);
        y.push(last);
    }
    let rate = lines(
        format!(
            "Rate that each scheme allows its encoder; received on average: {}",
            compare(demo, " kbit/s", |s| s.totals.received_kbps)
        ),
        Axis::new("allowed rate", "kbit/s"),
        true,
        &|s| s.target_kbps.clone(),
    )
    .series(Series::stepped("link capacity", "link", x, y).reference())
    .caption(caption(demo));
    let mut states = Chart::new("What each controller was doing", time(), Axis::default());
    for (i, s) in demo.schemes.iter().enumerate() {
        let spans = s.states.iter().map(|(from, to, label)| Span { from: *from, to: *to, label: label.clone() });
        // One word; the colour says which turn, and a second of the same scheme is numbered.
        let word = |s: &SchemeRun| s.label.split(' ').next().unwrap_or_default().to_owned();
        let before = demo.schemes.iter().take(i).filter(|o| word(o) == word(s)).count();
        let name = if before == 0 { word(s) } else { format!("{} {}", word(s), before + 1) };
        states = states.lane(Lane { name, colour: colour(demo, s), spans: spans.collect() });
    }
    let median = |s: &SchemeRun| s.totals.delay_p50_ms.unwrap_or(0.0);
    let delay = lines(
        format!("One-way delay of the video packets; median: {}", compare(demo, " ms", median)),
        Axis::new("one-way delay", "ms"),
        false,
        &|s| with_gaps(&s.delay_ms),
    );
    let loss = lines(
        format!("Video packets lost: {}", compare(demo, " %", |s| s.totals.loss_percent())),
        Axis::new("packets lost", "%"),
        true,
        &|s| to_the_end(&s.loss_percent, demo.seconds),
    );
    let dummies = lines(
        format!("Dummy packets, of all sent: {}", compare(demo, " %", |s| s.totals.overhead_percent())),
        Axis::new("dummies", "kbit/s"),
        true,
        &|s| s.dummy_kbps.clone(),
    );
    let beside = lines(
        format!(
            "What {} got beside each scheme: {}{}",
            count(demo.path.beside.len()),
            compare(demo, " kbit/s", |s| s.totals.beside_kbps),
            mean(&demo.path.alone_kbps)
                .map_or_else(String::new, |m| format!("; without any video {} kbit/s", short(m)))
        ),
        Axis::new("TCP together", "kbit/s"),
        true,
        &|s| sum(&s.beside_kbps),
    );
    let beside = match demo.path.alone_kbps.iter().map(|(t, v)| (*t, *v)).unzip::<f64, f64, Vec<_>, Vec<_>>() {
        (x, _) if x.is_empty() => beside,
        (x, y) => beside.series(Series::stepped("no video (simulated)", "link", x, y).reference()),
    };
    let queue = lines("Packets waiting before the link".into(), Axis::new("queue", "packets"), true, &|s| {
        s.queue_packets.clone()
    });
    Section::new("time", "Over time")
        .text("Every scheme took the same path in turn; the curves of all turns lie over each other. Drag to zoom, double-click to go back, click a name to hide its line.")
        .chart(rate)
        .chart(set_up(states))
        .chart(delay)
        .chart(loss)
        .chart(dummies)
        .chart(beside)
        .chart(queue)
        .synced()
}

fn count(tcp: usize) -> String {
    match tcp {
        1 => "one TCP flow".into(),
        2 => "two TCP flows".into(),
        n => format!("{n} TCP flows"),
    }
}

fn mean(curve: &Curve) -> Option<f64> {
    (!curve.is_empty()).then(|| curve.iter().map(|(_, v)| v).sum::<f64>() / curve.len() as f64)
}

/// The sum of curves that share their instants.
fn sum(curves: &[Curve]) -> Curve {
    let Some(first) = curves.first() else { return Curve::new() };
    let total = |i: usize| curves.iter().filter_map(|c| c.get(i)).map(|(_, v)| v).sum();
    first.iter().enumerate().map(|(i, (t, _))| (*t, total(i))).collect()
}

/// A curve with a hole where nothing was measured for more than a second: no line is drawn through it.
fn with_gaps(curve: &Curve) -> Curve {
    let mut out = Curve::with_capacity(curve.len());
    for &(t, v) in curve {
        match out.last() {
            Some(&(before, _)) if t - before > 1.0 => out.push(((before + t) / 2.0, f64::NAN)),
            _ => {}
        }
        out.push((t, v));
    }
    out
}

/// A curve of whole seconds, each with its width: steps end where the next second begins, and seconds without
/// a value are holes.
fn to_the_end(curve: &Curve, end: f64) -> Curve {
    let mut out = Curve::with_capacity(curve.len() + 1);
    for (i, &(t, v)) in curve.iter().enumerate() {
        out.push((t, v));
        match curve.get(i + 1) {
            Some((next, _)) if *next <= t + 1.0 => {}
            Some(_) => out.push((t + 1.0, f64::NAN)),
            None if t < end => out.push(((t + 1.0).min(end), v)),
            None => {}
        }
    }
    out
}

/// The bytes of a picture in the folder. A folder may come from somebody else: what it names elsewhere is not shown.
fn picture(dir: &Path, name: &str) -> Option<Vec<u8>> {
    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name);
    let path = dir.join(name);
    let is_file = is_plain && std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    is_file.then(|| std::fs::read(&path).ok()).flatten()
}

fn stills(demo: &DemoResult, dir: &Path) -> Option<Section> {
    let mut times: Vec<f64> = demo.schemes.iter().flat_map(|s| s.stills.iter().map(|still| still.at_s)).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut section =
        Section::new("stills", "The received video").text("What was on the screen at the same moments of each turn.");
    for time in times {
        for s in &demo.schemes {
            let still = s.stills.iter().find(|still| still.at_s == time);
            let data = still.and_then(|still| picture(dir, still.file.as_ref()?)).unwrap_or_default();
            let frozen = still.map_or(0.0, |still| still.stood_still_s);
            // Two frames' time is no freeze.
            let frozen =
                if frozen > 0.09 { format!(", standing still for {} s", short(frozen)) } else { String::new() };
            let caption = format!("{} at {} s{frozen}", s.label, short(time));
            section = section.image(Image { media_type: "image/jpeg".into(), data, caption, colour: colour(demo, s) });
        }
    }
    section.images.iter().any(|i| !i.data.is_empty()).then_some(section)
}

fn method(demo: &DemoResult) -> Section {
    let videos: Vec<String> = demo.schemes.iter().filter_map(|s| s.video.as_ref().map(|v| format!("`{v}`"))).collect();
    let mut section = Section::new("method", "How it was made")
        .text("Each scheme sends the clip as RTP over UDP sockets of this machine, encoded live at the rate that the scheme allows, through a relay that applies the path to every packet in real time. The TCP flows are simulated, in the same link, in real time.")
        .text("The relay draws its losses from the same seed in every turn; what is lost depends on when packets come, so the turns are alike, not equal, and a second demo will give other numbers.");
    if !videos.is_empty() {
        section = section.text(format!(
            "The received videos, as a viewer would have seen them: {}. `ffplay FILE` shows one.",
            videos.join(", ")
        ));
    }
    section
}

/// Three significant digits, for reading.
pub(crate) fn short(v: f64) -> String {
    if !v.is_finite() {
        return "–".into();
    }
    let digits = match v.abs() {
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{v:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_drawn_where_nothing_was_measured() {
        let curve = with_gaps(&vec![(0.1, 5.0), (0.3, 6.0), (3.3, 7.0)]);
        assert_eq!(curve.len(), 4);
        assert!(curve[2].1.is_nan() && (0.3..3.3).contains(&curve[2].0), "{curve:?}");
    }

    #[test]
    fn each_of_six_turns_has_a_colour_and_a_lane_of_its_own() {
        let run = |scheme: &str, label: &str| SchemeRun {
            scheme: scheme.into(),
            label: label.into(),
            states: vec![(0.0, 1.0, "Steady".into())],
            ..SchemeRun::default()
        };
        let turns = [("rcs", "RCS"), ("rap", "RAP"), ("fixed", "Fixed 1 Mbit/s"), ("tfrc", "TFRC"), ("mrp", "MRP")];
        let mut demo = DemoResult { seconds: 1.0, ..DemoResult::default() };
        demo.schemes = turns.iter().map(|(s, l)| run(s, l)).collect();
        demo.schemes.push(run("tfrc", "TFRC measured_by=receiver"));
        let chart = over_time(&demo).charts.into_iter().find(|c| !c.lanes.is_empty()).unwrap();
        let names: Vec<_> = chart.lanes.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["RCS", "RAP", "Fixed", "TFRC", "MRP", "TFRC 2"]);
        let mut colours: Vec<_> = chart.lanes.iter().map(|l| l.colour.as_str()).collect();
        assert_eq!(colours[3], "tfrc", "the first keeps the scheme's own");
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 6);
    }

    #[test]
    fn the_last_second_has_its_width_and_empty_seconds_are_holes() {
        let curve = to_the_end(&vec![(0.0, 1.0), (1.0, 2.0), (3.0, 4.0)], 3.5);
        assert_eq!(curve.iter().map(|(t, _)| *t).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0, 3.5]);
        assert!(curve[2].1.is_nan());
        assert_eq!(curve[4].1, 4.0);
    }

    #[test]
    fn a_picture_is_shown_from_the_folder_and_from_nowhere_else() {
        let all = std::env::temp_dir().join(format!("fairpace-pictures-{}", std::process::id()));
        let dir = all.join("results");
        std::fs::create_dir_all(dir.join("deep")).unwrap();
        for file in ["secret.jpg", "results/still.jpg", "results/deep/still.jpg"] {
            std::fs::write(all.join(file), file).unwrap();
        }
        std::os::unix::fs::symlink(all.join("secret.jpg"), dir.join("link.jpg")).unwrap();
        let absolute = all.join("secret.jpg").to_str().unwrap().to_owned();
        assert_eq!(picture(&dir, "still.jpg").as_deref(), Some(&b"results/still.jpg"[..]));
        for name in [
            "../secret.jpg",
            "./still.jpg",
            "deep/still.jpg",
            "deep/../still.jpg",
            &absolute,
            "link.jpg",
            "deep",
            "..",
            ".",
            "",
        ] {
            assert_eq!(picture(&dir, name), None, "{name:?}");
        }
        std::fs::remove_dir_all(all).unwrap();
    }
}
