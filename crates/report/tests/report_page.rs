//! The page in a real browser: it opens from disk, draws every chart, and the console stays silent.
//!
//! Needs `chromium` (Debian package of that name); without it the test says so and passes. The page and the
//! screenshots stay under `target/tmp/report-page/`, to be looked at.

use fairpace_checks::browser;
use fairpace_report::{
    Axis, BandKind, BarRow, Bars, Chart, Claim, Image, Lane, Page, Section, Series, Span, Style, Table,
};
use std::path::PathBuf;

/// One of everything: what a demo shows and what a reproduction shows, with awkward values among them.
fn specimen() -> Page {
    let time = || Axis::new("time", "s").range(0.0, 30.0);
    let ts: Vec<f64> = (0..300).map(|i| f64::from(i) * 0.1).collect();
    let rate = |base: f64, dip: f64| -> Vec<f64> {
        ts.iter()
            .map(|t| match *t {
                t if t < 1.5 => base * t / 1.5,
                t if (12.0..20.0).contains(&t) => base * dip + 40.0 * (t * 3.0).sin(),
                t if (24.0..27.0).contains(&t) => 0.0,
                t => base + 60.0 * (t * 2.0).sin(),
            })
            .collect()
    };
    let span = |from, to, label: &str| Span { from, to, label: label.into() };
    let lanes = Chart::new("RCS halves once, waits out the blackout in Backoff and resumes", time(), Axis::default())
        .lane(Lane {
            name: "RCS".into(),
            colour: "rcs".into(),
            spans: vec![
                span(0.0, 1.5, "Initial"),
                span(1.5, 12.4, "Steady"),
                span(12.4, 13.6, "Detected"),
                span(13.6, 25.0, "Steady"),
                span(25.0, 27.6, "Backoff"),
                span(27.6, 30.0, "Steady"),
            ],
        })
        .lane(Lane {
            name: "Fixed".into(),
            colour: "fixed".into(),
            spans: vec![span(0.0, 17.0, "Steady"), span(17.0, 30.0, "Stopped")],
        });
    let setting = |chart: Chart| {
        chart.band(12.0, 20.0, "0.8 Mbit/s", BandKind::Note).band(24.0, 27.0, "blackout", BandKind::Outage)
    };
    let mut gap = rate(900.0, 0.45);
    gap[200] = f64::NAN;
    let rates = Chart::new(
        "RCS follows the capacity; the fixed rate does not",
        time(),
        Axis::new("sending rate", "kbit/s"),
    )
    .caption(
        "GEO path, 2 Mbit/s falling to 0.8 Mbit/s from 12 to 20 s, RTT 550 ms, 1 % loss, blackout 24 to 27 s; seed 1",
    )
    .series(Series::stepped("RCS", "rcs", ts.clone(), gap))
    .series(Series::stepped("RAP", "rap", ts.clone(), rate(300.0, 0.7)))
    .series(Series::stepped("Fixed 1.5 Mbit/s", "fixed", ts[..170].to_vec(), vec![1500.0; 170]))
    .series(
        Series::stepped("Capacity", "link", vec![0.0, 12.0, 20.0, 30.0], vec![2000.0, 800.0, 2000.0, 2000.0])
            .reference(),
    );
    let delay = Chart::new("The queue stays short under RCS", time(), Axis::new("one-way delay", "ms"))
        .series(Series::line("RCS", "rcs", ts.clone(), ts.iter().map(|t| 280.0 + 30.0 * t.sin().abs()).collect()))
        .series(Series::line("RAP", "rap", ts.clone(), ts.iter().map(|t| 276.0 + 12.0 * t.cos().abs()).collect()));
    let p: Vec<f64> = vec![1e-4, 3e-4, 1e-3, 3e-3, 1e-2];
    let sweep = |name: &str, key: &str, y: [f64; 5], half: f64| {
        Series::sweep(name, key, p.clone(), y.to_vec())
            .interval(y.iter().map(|v| v * (1.0 - half)).collect(), y.iter().map(|v| v * (1.0 + half)).collect())
    };
    let fig17a = Chart::new(
        "RCS stays above RAP at every loss probability",
        Axis::new("loss probability P", "").log(),
        Axis::new("throughput", "pkt/s"),
    )
    .caption("10 sources, 1,300 pkt/s, K = 50, RTT 550 ms; mean of 5 seeds, 95 % intervals")
    .series(sweep("RCS", "rcs", [118.0, 117.0, 110.0, 81.0, 42.0], 0.04))
    .series(sweep("RAP", "rap", [84.0, 60.0, 35.0, 20.0, 9.0], 0.08))
    .series(sweep("RAP, fine grain", "rap-fine-grain", [80.0, 64.0, 38.0, 22.0, 11.0], 0.07))
    .series(sweep("TCP NewReno", "tcp-newreno", [90.0, 58.0, 30.0, 17.0, 8.0], 0.05));
    let both_log = Chart::new(
        "Overhead grows with loss",
        Axis::new("loss probability P", "").log(),
        Axis::new("overhead", "%").log(),
    )
    .caption("one series has no value at all, one has a zero that a log axis leaves out")
    .series(Series { style: Style::Points, ..Series::line("RCS", "rcs", p.clone(), vec![0.0, 0.4, 1.5, 7.0, 21.5]) })
    .series(Series::line("nothing", "x", vec![], vec![]));
    let settling = |side: f64| -> Vec<f64> { ts.iter().map(|t| 20.0 + (5.0 + side * 6.0) / (1.0 + t)).collect() };
    let band = Chart::new("The mean settles", Axis::new("time", "s"), Axis::new("mean", "pkt/s"))
        .series(Series::line("RCS", "rcs", ts.clone(), settling(0.0)).interval(settling(-1.0), settling(1.0)));
    let empty = Chart::new("No data came", Axis::new("time", "s"), Axis::new("rate", "kbit/s"));
    let claim = |id: &str, statement: &str, holds, measured, ci95, bound: &str, note: &str| Claim {
        id: id.into(),
        statement: statement.into(),
        holds,
        measured,
        ci95,
        bound: bound.into(),
        note: note.into(),
    };
    let picture = |colour: &str, name: &str| Image {
        media_type: "image/png".into(),
        data: PIXEL.to_vec(),
        caption: format!("{name} at 18 s"),
        colour: colour.into(),
    };
    Page::new("RCS beside RAP and a fixed rate over a satellite path")
        .subtitle("RCS delivered 97 % of its frames in time; RAP was slower by half, and the fixed rate was stopped by the circuit breaker at 17 s")
        .meta("scenario", "`scenarios/geo.toml`")
        .meta("seed", "1")
        .meta("made by", "Fairpace 0.1.0")
        .notice("interrupted after 2 of 3 schemes: what follows is valid as far as it goes")
        .section(
            Section::new("live", "Three schemes, one path")
                .text("Each scheme takes the same path for 30 s, beside two TCP flows. Drag to zoom, double-click to go back; click a name to hide its line.")
                .bars(Bars {
                    title: "RCS shows nearly every frame in time".into(),
                    caption: "750 frames offered to each; play-out delay 600 ms".into(),
                    parts: vec!["in time".into(), "late".into(), "lost".into()],
                    unit: "frames".into(),
                    rows: vec![
                        BarRow { label: "RCS".into(), colour: "rcs".into(), values: vec![702.0, 8.0, 40.0], note: String::new() },
                        BarRow { label: "RAP".into(), colour: "rap".into(), values: vec![640.0, 35.0, 75.0], note: String::new() },
                        BarRow { label: "Fixed 1.5 Mbit/s".into(), colour: "fixed".into(), values: vec![180.0, 120.0, 125.0], note: "stopped by the circuit breaker at 17 s".into() },
                    ],
                })
                .chart(setting(rates))
                .chart(setting(lanes))
                .chart(setting(delay))
                .image(picture("rcs", "RCS"))
                .image(picture("rap", "RAP"))
                .image(picture("fixed", "Fixed 1.5 Mbit/s"))
                .synced(),
        )
        .section(
            Section::new("rcs.fig17a", "Fig. 17(a): throughput against loss")
                .claim(claim("rcs.fig17a/above", "RCS is above RAP everywhere", true, Some(1.4), Some((1.32, 1.48)), "> 1", ""))
                .claim(claim("rcs.fig17a/gain", "at P = 5e-3 RCS carries at least 2.5 times as much as RAP", true, Some(4.03), Some((3.8, 4.25)), ">= 2.5", ""))
                .claim(claim("rcs.fig17b/150", "RCS is above RAP at an RTT of 150 ms", false, Some(0.93), Some((0.9, 0.96)), "> 1", "RAP grows by one packet per SRTT and catches up within the run; the paper's `T_B` is not given"))
                .claim(claim("rcs.fig9", "the encoder follows", false, None, None, "within 5 % of 1", "no encoder on this machine"))
                .chart(fig17a)
                .chart(both_log)
                .chart(band)
                .chart(empty)
                .table(Table {
                    title: "All points".into(),
                    caption: "packets per second".into(),
                    head: vec!["scheme".into(), "P".into(), "throughput (pkt/s)".into()],
                    rows: vec![
                        vec!["RCS".into(), "1e-3".into(), "110.2 ± 1.1".into()],
                        vec!["RAP </script>".into(), "1e-3".into(), "35.0 ± 0.9".into()],
                    ],
                }),
        )
}

/// A grey pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0,
    0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0x68, 0, 0, 0, 0x82, 0, 0x81, 0x77,
    0xcd, 0x72, 0xb6, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn the_page_draws_every_chart_in_a_browser_without_a_word_on_the_console() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report-page");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("report.html");
    let html = specimen().to_html();
    let data = html.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).unwrap().0;
    assert!(!data.contains("NaN") && !data.contains("inf"), "JSON knows no such numbers");
    std::fs::write(&file, &html).unwrap();

    let Some(view) =
        browser::open(&file, &dir.join("browser-dom"), &["--dump-dom".into(), "--window-size=1360,1000".into()])
    else {
        eprintln!("skipped: no `chromium` on this machine (Debian: apt-get install chromium)");
        return;
    };
    assert!(view.console.is_empty(), "{:#?}", view.console);
    // Seven charts: three with a common axis, four beside each other, one of these without any data.
    assert!(view.out.contains("data-drawn=\"7\""), "not all charts were drawn");
    assert_eq!(view.out.matches("class=\"u-wrap\"").count(), 7);
    assert!(view.out.matches("<canvas").count() >= 7);

    for (name, size, dark) in
        [("light", "1360,3300", false), ("dark", "1360,3300", true), ("narrow", "520,5200", false)]
    {
        let mut args = vec![
            format!("--screenshot={}", dir.join(format!("{name}.png")).display()),
            format!("--window-size={size}"),
        ];
        if dark {
            args.push("--blink-settings=preferredColorScheme=0".into());
        }
        let view = browser::open(&file, &dir.join(format!("browser-{name}")), &args).expect("it ran a moment ago");
        assert!(view.console.is_empty(), "{name}: {:#?}", view.console);
        assert!(std::fs::metadata(dir.join(format!("{name}.png"))).unwrap().len() > 20_000, "{name}: nothing drawn");
    }
}
