//! `fairpace list`: controllers, links, flows, media and experiments with their parameters.
//!
//! Controllers and experiments come from their registries, links and flows from the scenario's rows (`list/links.rs`).

mod links;

use crate::args::{List, ListWhat};
use crate::error::Outcome;
use crate::term::{Columns, Ink, paint};
use fairpace_media::{STREAM_PRESETS, StreamPreset};
use fairpace_scenario::controllers::{CONSTANT, KERNEL_TCP, TCP};
use fairpace_units::format_duration;
use serde_json::{Value, json};
use std::io::Write;

/// A source of media, and how one writes it.
struct Part {
    name: &'static str,
    /// The entry's description.
    doc: &'static str,
    /// As it is given to the command.
    example: &'static str,
}

const MEDIA: &[Part] = &[
    Part {
        name: "FILE",
        doc: "any video that GStreamer decodes, looped, encoded live as VP8 at the controller's rate (build with `--features gst`)",
        example: "fairpace send clip.mp4 HOST:PORT",
    },
    Part {
        name: "FILE.ivf",
        doc: "VP8 as it is: does not follow the controller; what the rate does not carry is dropped or comes late",
        example: "fairpace send clip.ivf HOST:PORT",
    },
    Part {
        name: "-",
        doc: "standard input: IVF as it is, any other container through GStreamer",
        example: "fairpace send - HOST:PORT < clip.ivf",
    },
    Part {
        name: "test-pattern",
        doc: "a moving picture, encoded live (GStreamer)",
        example: "fairpace send test-pattern HOST:PORT",
    },
    Part {
        name: "model",
        doc: "frames of the sizes that an adaptive encoder would make, with nothing to see; needs no GStreamer",
        example: "fairpace send model HOST:PORT",
    },
    Part {
        name: "constant:RATE",
        doc: "frames of equal size, with nothing to see; does not follow the controller",
        example: "fairpace send constant:1Mbit/s HOST:PORT",
    },
    Part {
        name: "sizes:FILE",
        doc: "frames of recorded sizes (one number of bytes per line), looped, with nothing to see",
        example: "fairpace send sizes:frames.csv HOST:PORT",
    },
];

const TCP_DOC: [&str; 3] =
    ["TCP Reno [RFC 5681]", "TCP NewReno [RFC 6582]", "TCP with selective acknowledgements [RFC 6675]"];
/// In the order of [`KERNEL_TCP`].
const KERNEL_TCP_DOC: [&str; 2] = ["the kernel's CUBIC [RFC 9438]", "the kernel's BBR"];

pub(crate) fn run(args: &List) -> Outcome {
    let shows = |what| args.what.is_none() || args.what == Some(what);
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut all = serde_json::Map::new();
        let mut add = |what, key: &str, value: &dyn Fn() -> Value| {
            if shows(what) {
                all.insert(key.to_owned(), value());
            }
        };
        add(ListWhat::Controllers, "controllers", &controllers_json);
        for (what, chapters) in [(ListWhat::Links, links::links()), (ListWhat::Flows, links::flows())] {
            for (_, key, entries) in chapters {
                add(what, key, &|| entries.iter().map(links::Entry::json).collect());
            }
        }
        add(ListWhat::Media, "media", &media_json);
        add(ListWhat::Media, "streams", &streams_json);
        add(ListWhat::Experiments, "experiments", &experiments_json);
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    if shows(ListWhat::Controllers) {
        controllers(&mut out)?;
    }
    for (what, chapters) in [(ListWhat::Links, links::links()), (ListWhat::Flows, links::flows())] {
        for (title, _, entries) in chapters.into_iter().filter(|_| shows(what)) {
            heading(&mut out, title)?;
            links(&mut out, &entries)?;
        }
    }
    if shows(ListWhat::Media) {
        media(&mut out)?;
        streams(&mut out)?;
    }
    if shows(ListWhat::Experiments) {
        experiments(&mut out)?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    writeln!(out, "{}\n", paint(text, Ink::Bold))
}

fn controllers(out: &mut impl Write) -> std::io::Result<()> {
    heading(out, "Controllers: `controller` of a scenario's flow; those with parameters also for --control")?;
    for scheme in fairpace_control::schemes() {
        writeln!(
            out,
            "  {}  {} {}",
            paint(scheme.name, Ink::Bold),
            scheme.title,
            paint(&format!("[{}]", scheme.source), Ink::Faint)
        )?;
        let mut table = Columns::default();
        for p in scheme.params {
            let symbol = if p.symbol.is_empty() { String::new() } else { format!(" ({})", p.symbol) };
            table.row([p.name.to_owned(), format!("default {}", p.default), p.range(), format!("{}{symbol}", p.doc)]);
        }
        table.print_plain(out, "      ")?;
    }
    for (name, doc) in TCP.iter().zip(TCP_DOC) {
        writeln!(out, "  {}  {doc}; in the simulator, the emulator and the relay", paint(name, Ink::Bold))?;
    }
    for (name, doc) in KERNEL_TCP.iter().zip(KERNEL_TCP_DOC) {
        writeln!(out, "  {}  {doc}; in the emulator", paint(name, Ink::Bold))?;
    }
    writeln!(
        out,
        "  {}  packets at a fixed rate, no feedback; in the simulator and the emulator\n",
        paint(CONSTANT, Ink::Bold)
    )
}

fn links(out: &mut impl Write, entries: &[links::Entry]) -> std::io::Result<()> {
    for entry in entries {
        writeln!(out, "  {}  {}", paint(&entry.name, Ink::Bold), entry.doc)?;
        let mut table = Columns::default();
        for p in &entry.parameters {
            table.row([p.name.clone(), format!("default {}", p.default), p.allowed.clone(), p.doc.clone()]);
        }
        table.print_plain(out, "      ")?;
        if let Some(example) = &entry.example {
            writeln!(out, "      {}", paint(&format!("e.g. {example}"), Ink::Faint))?;
        }
    }
    writeln!(out)
}

fn media(out: &mut impl Write) -> std::io::Result<()> {
    heading(out, "Media: what `fairpace send` and `fairpace demo` take")?;
    for part in MEDIA {
        writeln!(out, "  {}  {}", paint(part.name, Ink::Bold), part.doc)?;
        writeln!(out, "      {}", paint(&format!("e.g. {}", part.example), Ink::Faint))?;
    }
    writeln!(out)
}

fn streams(out: &mut impl Write) -> std::io::Result<()> {
    heading(out, "Kinds of stream: `source` of a scenario's flow; what the flow says itself goes first")?;
    for p in &STREAM_PRESETS {
        writeln!(out, "  {}  {}", paint(p.name, Ink::Bold), p.doc)?;
        let mut table = Columns::default();
        table.row(["send_buffer".to_owned(), format!("{} pkt", p.send_buffer.get())]);
        table.row(["tolerable_delay".to_owned(), format_duration(p.tolerable_delay)]);
        table.row(["arrivals.interval".to_owned(), format_duration(p.mean_interval)]);
        table.row(["arrivals.length".to_owned(), format_duration(p.mean_length)]);
        table.print_plain(out, "      ")?;
        writeln!(out, "      {}", paint(&format!("e.g. source = {{ kind = \"{}\" }}", p.name), Ink::Faint))?;
    }
    writeln!(out)
}

fn streams_json() -> Value {
    let stream = |p: &StreamPreset| {
        json!({
            "name": p.name, "doc": p.doc, "rate_bps": p.rate().as_bps(), "packet_bytes": p.packet_size.get(),
            "send_buffer_packets": p.send_buffer.get(), "tolerable_delay_s": p.tolerable_delay.as_secs_f64(),
            "mean_length_s": p.mean_length.as_secs_f64(), "mean_interval_s": p.mean_interval.as_secs_f64(),
        })
    };
    STREAM_PRESETS.iter().map(stream).collect()
}

fn experiments(out: &mut impl Write) -> std::io::Result<()> {
    heading(out, "Experiments: `fairpace reproduce ID`; a paper's name stands for all of its own")?;
    let mut table = Columns::default();
    for e in fairpace_papers::experiments() {
        table.row([e.id.to_owned(), e.title.to_owned()]);
    }
    table.print_plain(out, "  ")?;
    writeln!(out)?;
    heading(
        out,
        "Readings: `fairpace reproduce ID --reading NAME`, `--readings all`; the first is what it runs under if none is named",
    )?;
    let mut table = Columns::default();
    for e in fairpace_papers::experiments().filter(|e| !e.readings.is_empty()) {
        let names: Vec<&str> = e.readings.iter().map(|r| r.key).collect();
        table.row([e.id.to_owned(), names.join(", ")]);
    }
    table.print_plain(out, "  ")?;
    writeln!(out)
}

fn controllers_json() -> Value {
    let media = fairpace_control::schemes().iter().map(|s| {
        let params: Vec<Value> = s
            .params
            .iter()
            .map(|p| {
                json!({
                    "name": p.name, "symbol": p.symbol, "default": p.default, "unit": p.unit(), "allowed": p.range(), "doc": p.doc,
                })
            })
            .collect();
        json!({ "name": s.name, "title": s.title, "source": s.source, "family": "media", "parameters": params })
    });
    let tcp = TCP
        .iter()
        .zip(TCP_DOC)
        .chain(KERNEL_TCP.iter().zip(KERNEL_TCP_DOC))
        .map(|(name, doc)| json!({ "name": name, "title": doc, "family": "tcp", "parameters": [] }));
    let constant = json!({ "name": CONSTANT, "title": "Packets at a fixed rate, no feedback", "family": "constant", "parameters": [] });
    media.chain(tcp).chain([constant]).collect()
}

fn media_json() -> Value {
    MEDIA.iter().map(|p| json!({ "name": p.name, "doc": p.doc, "example": p.example })).collect()
}

fn experiments_json() -> Value {
    let reading = |r: &fairpace_papers::Reading| json!({ "name": r.key, "words": r.words, "place": r.place, "changes": r.changes });
    let readings = |e: &fairpace_papers::Experiment| e.readings.iter().map(reading).collect::<Vec<_>>();
    fairpace_papers::experiments().map(|e| json!({ "id": e.id, "title": e.title, "readings": readings(e) })).collect()
}
