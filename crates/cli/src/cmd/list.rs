//! `fairpace list`: controllers, links, media and experiments with their parameters.
//!
//! Controllers and experiments come from their registries. The parts of a link are the fields of a
//! scenario's `[path]`, `[satellite]` and `[wireless]`; a test below reads each example with the scenario's own reader.

use crate::args::{List, ListWhat};
use crate::error::Outcome;
use crate::term::{Columns, Ink, paint};
use fairpace_control::registry;
use fairpace_media::{STREAM_PRESETS, StreamPreset};
use fairpace_scenario::controllers::{CONSTANT, KERNEL_TCP, TCP};
use fairpace_units::format_duration;
use serde_json::{Value, json};
use std::io::Write;

/// A part of a link or a source, and how one writes it.
struct Part {
    name: &'static str,
    /// What it does.
    doc: &'static str,
    /// Name, default, what is allowed.
    params: &'static [(&'static str, &'static str, &'static str)],
    /// A line of a scenario (links), or of the command (media).
    example: &'static str,
}

const LINKS: &[Part] = &[
    Part {
        name: "rate",
        doc: "capacity: fixed, in steps, or unlimited",
        params: &[("path.rate", "none: this or path.trace", "a rate, `unlimited`, or a list of { at, rate }")],
        example: "rate = [{ at = \"0 s\", rate = \"2 Mbit/s\" }, { at = \"12 s\", rate = \"0.8 Mbit/s\" }]",
    },
    Part {
        name: "trace",
        doc: "capacity from a recording, repeated when it ends",
        params: &[
            ("path.trace.file", "none", "a file beside the scenario"),
            ("path.trace.format", "by the file's ending", "mahimahi, csv"),
            ("path.trace.column", "none", "a column of the CSV file, in Mbit/s"),
            ("path.trace.gaps", "hold", "hold, zero, cut"),
        ],
        example: "trace = { file = \"link.trace\", format = \"mahimahi\" }",
    },
    Part {
        name: "delay",
        doc: "propagation, half of it each way, and a random part that reorders only if told to",
        params: &[
            ("path.rtt", "0 s", "a duration"),
            ("path.jitter", "0 s", "a duration"),
            ("path.reorder", "false", "true, false"),
        ],
        example: "rtt = \"550 ms\"",
    },
    Part {
        name: "drop-tail",
        doc: "a queue in which the arrival goes when it is full",
        params: &[("path.queue.capacity", "unlimited", "packets, bytes, or `unlimited`")],
        example: "queue = { kind = \"drop-tail\", capacity = \"50 pkt\" }",
    },
    Part {
        name: "two-priority",
        doc: "a queue in which a normal arrival pushes out the youngest low-priority packet",
        params: &[("path.queue.capacity", "unlimited", "packets, bytes, or `unlimited`")],
        example: "queue = { kind = \"two-priority\", capacity = \"50 pkt\" }",
    },
    Part {
        name: "red",
        doc: "a queue that drops or marks arrivals by chance, the more the longer it is on average (RED)",
        params: &[
            ("path.queue.capacity", "unlimited", "packets, bytes, or `unlimited`"),
            ("path.queue.min_threshold", "a tenth of the capacity, at least 5 pkt", "packets or bytes"),
            ("path.queue.max_threshold", "half the capacity, at least twice the other", "packets or bytes"),
            ("path.queue.max_p", "0.1", "above 0, at most 1"),
            ("path.queue.weight", "0.002", "above 0, at most 1"),
            ("path.queue.gentle", "true", "true, false"),
            ("path.queue.wait", "true", "true, false"),
            ("path.queue.by_size", "false", "true, false"),
            ("path.queue.mean_packet_size", "packet_size", "a size"),
            ("path.queue.ecn", "false", "true, false"),
        ],
        example: "queue = { kind = \"red\", capacity = \"54 pkt\", min_threshold = \"5 pkt\", max_threshold = \"27 pkt\" }",
    },
    Part {
        name: "codel",
        doc: "a queue that drops or marks at its head, more often while all have waited too long (CoDel)",
        params: &[
            ("path.queue.capacity", "unlimited", "packets, bytes, or `unlimited`"),
            ("path.queue.target", "5 ms", "a duration"),
            ("path.queue.interval", "100 ms", "a duration"),
            ("path.queue.mtu", "1500 B", "a size"),
            ("path.queue.ecn", "false", "true, false"),
        ],
        example: "queue = { kind = \"codel\", capacity = \"1000 pkt\" }",
    },
    Part {
        name: "pie",
        doc: "a queue that drops or marks arrivals by a chance that holds the wait at a target (PIE)",
        params: &[
            ("path.queue.capacity", "unlimited", "packets, bytes, or `unlimited`"),
            ("path.queue.target", "15 ms", "a duration"),
            ("path.queue.update_interval", "15 ms", "a duration"),
            ("path.queue.max_burst", "150 ms", "a duration"),
            ("path.queue.mean_packet_size", "packet_size", "a size"),
            ("path.queue.ecn", "false", "true, false"),
            ("path.queue.mark_threshold", "0.1", "a probability"),
        ],
        example: "queue = { kind = \"pie\", capacity = \"1000 pkt\", target = \"20 ms\" }",
    },
    Part {
        name: "fq-codel",
        doc: "flows take turns, new ones first, each with a CoDel queue of its own (FQ-CoDel)",
        params: &[
            ("path.queue.capacity", "unlimited", "packets, bytes, or `unlimited`"),
            ("path.queue.target", "5 ms", "a duration"),
            ("path.queue.interval", "100 ms", "a duration"),
            ("path.queue.mtu", "1500 B", "a size"),
            ("path.queue.quantum", "1514 B", "a size"),
            ("path.queue.flows", "1024", "1 to 65536"),
            ("path.queue.ecn", "true", "true, false"),
        ],
        example: "queue = { kind = \"fq-codel\", capacity = \"1000 pkt\" }",
    },
    Part {
        name: "random",
        doc: "loss by link errors, each packet independently",
        params: &[("path.loss.p", "none", "a probability, 0 to 1")],
        example: "loss = { kind = \"random\", p = 0.01 }",
    },
    Part {
        name: "gilbert-elliott",
        doc: "loss by link errors in bursts: a good and a bad state",
        params: &[
            ("path.loss.good_to_bad", "none", "a probability"),
            ("path.loss.bad_to_good", "none", "a probability"),
            ("path.loss.loss_in_good", "0", "a probability"),
            ("path.loss.loss_in_bad", "1", "a probability"),
        ],
        example: "loss = { kind = \"gilbert-elliott\", good_to_bad = 0.001, bad_to_good = 0.1 }",
    },
    Part {
        name: "outages",
        doc: "times without signal",
        params: &[
            ("path.outages[].start", "none", "a duration"),
            ("path.outages[].length", "none", "a duration"),
            ("path.outages[].direction", "both", "both, forward, reverse"),
        ],
        example: "outages = [{ start = \"24 s\", length = \"3 s\" }]",
    },
    Part {
        name: "quick-start",
        doc: "a router that answers the Quick-Start requests of flows, by the load that it measures on the link",
        params: &[
            ("path.quick_start.threshold", "0.8", "above 0, at most 1"),
            ("path.quick_start.intervals", "2", "1 to 1000"),
            ("path.quick_start.state_delay", "150 ms", "a duration"),
            ("path.quick_start.statistic", "average", "average, peak"),
            ("path.quick_start.observations", "1", "1 to 1000"),
            ("path.quick_start.per_source", "10", "requests per second"),
            ("path.quick_start.in_all", "100", "requests per second"),
            ("path.quick_start.source_share", "0.25", "above 0, at most 1"),
        ],
        example: "quick_start = { threshold = 0.9 }",
    },
];

const SATELLITE: &[Part] = &[
    Part {
        name: "frame",
        doc: "the time on a carrier: slots, multi-frames in which every terminal has its turn, super-frames for which they are given out",
        params: &[
            (
                "satellite.frame",
                "large",
                "small (24 slots, 45.6 ms), large (144, 273 ms), { slot, multi_frame, super_frame }",
            ),
            ("satellite.capacity", "6.336 Mbit/s", "a rate, of each carrier"),
            ("satellite.terminals", "5", "1 to 1000000, numbered from 0"),
            ("satellite.carriers", "as many as the minimum needs", "a number"),
            ("satellite.propagation", "252 ms", "0 to 10 s"),
            ("satellite.queue", "1000 pkt", "packets, of each terminal"),
            ("satellite.slots", "contiguous", "contiguous, spread"),
        ],
        example: "satellite = { frame = \"small\", terminals = 20 }",
    },
    Part {
        name: "dama",
        doc: "how capacity is asked for and given: constant (CRA), rate-based (RBDC), volume-based (VBDC), free (FCA)",
        params: &[
            ("satellite.granularity", "44 kbit/s", "a rate that divides the capacity"),
            ("satellite.minimum", "1", "units of it, of every terminal"),
            ("satellite.allocation_delay", "2 large, 6 small", "super-frames, at least there and back"),
            ("satellite.cra", "0 kbit/s", "a rate"),
            ("satellite.rbdc", "true", "true, false"),
            ("satellite.vbdc", "off", "the time that empties the queue"),
            ("satellite.fca", "false", "true, false"),
            ("satellite.release.a", "1", "above 0, at most 1"),
            ("satellite.release.b", "0.5", "0 to a"),
            ("satellite.release.of", "decided", "decided, in-force"),
        ],
        example: "satellite = { cra = \"88 kbit/s\", vbdc = \"2 s\", release = { a = 1, b = 0.25 } }",
    },
    Part {
        name: "agents",
        doc: "Quick-Start at the terminals: none passes requests on, qs answers them, qsd asks for the capacity too and holds them back",
        params: &[
            ("satellite.quick_start.agent", "none", "none, qs, qsd"),
            ("satellite.quick_start.hold", "0 s", "a duration, max (eq. 3), opt (eq. 6); qsd only"),
            ("satellite.quick_start.threshold", "0.8", "above 0, at most 1"),
            ("satellite.quick_start.intervals", "2", "1 to 1000"),
            ("satellite.quick_start.state_delay", "(T_r + T_a) / intervals", "a duration"),
            ("satellite.quick_start.per_source", "10", "requests per second"),
            ("satellite.quick_start.in_all", "100", "requests per second"),
            ("satellite.quick_start.source_share", "0.25", "above 0, at most 1"),
        ],
        example: "satellite = { quick_start = { agent = \"qsd\", hold = \"opt\" } }",
    },
    Part {
        name: "estimators",
        doc: "how a terminal knows what is free: broadcast by the NCC, on-demand a round trip later, tbtp-sum of nobody's slots, listening to others",
        params: &[
            ("satellite.quick_start.estimator", "broadcast", "broadcast, on-demand, tbtp-sum, listening"),
            ("satellite.quick_start.statistic", "average", "average, peak"),
            ("satellite.quick_start.observations", "1", "1 to 1000 plans"),
            ("satellite.quick_start.inaccuracy", "0", "0 to 1; listening only"),
            ("satellite.quick_start.spots", "1", "1 to 1000; listening only"),
            ("satellite.quick_start.fade", "none", "{ clear, length, heard }; listening only"),
        ],
        example: "satellite = { quick_start = { agent = \"qs\", estimator = \"listening\", inaccuracy = 0.1 } }",
    },
];

const WIRELESS: &[Part] = &[
    Part {
        name: "slots",
        doc: "the downlink behind the path: a packet, or a piece of one, in each slot",
        params: &[
            ("wireless.rate", "200 kbit/s", "a rate, if every slot succeeds"),
            ("wireless.slot", "slot_size / rate", "a duration, 1 us to 60 s; this or slot_size"),
            ("wireless.slot_size", "packet_size", "a size; larger packets are cut"),
            ("wireless.delay", "0 s", "a duration, behind the slot"),
        ],
        example: "wireless = { rate = \"200 kbit/s\", slot = \"5 ms\" }",
    },
    Part {
        name: "arq",
        doc: "what is done about a slot that failed: none loses the packet, persistent sends it again in the next slot, limited too, optimal after a slot of silence",
        params: &[
            ("wireless.scheme", "persistent", "none, persistent, limited, optimal"),
            ("wireless.retries", "none", "0 to 1000000; limited only"),
            ("wireless.retry_delay", "0", "slots between a failure and the next try, up to 10000"),
        ],
        example: "wireless = { scheme = \"limited\", retries = 3, retry_delay = 1 }",
    },
    Part {
        name: "channel",
        doc: "how slots fail: not at all, by a Markov chain of two states or of any number, by Rayleigh fading",
        params: &[
            ("wireless.channel.kind", "clear", "clear, two-state, markov, rayleigh"),
            ("wireless.channel.error_probability", "none", "0 to below 1; two-state"),
            ("wireless.channel.memory", "0", "second eigenvalue, below 1; two-state"),
            ("wireless.channel.transition", "none", "rows of probabilities; markov"),
            ("wireless.channel.error", "none", "a probability for each state; markov"),
            ("wireless.channel.states", "8", "2 to 64; rayleigh"),
            ("wireless.channel.mean_snr_db", "none", "-100 to 100; rayleigh"),
            ("wireless.channel.doppler_hz", "none", "speed / wavelength; rayleigh"),
            ("wireless.channel.threshold_db", "none", "below it slots fail; rayleigh, this or modulation"),
            ("wireless.channel.modulation", "none", "bpsk, qpsk, dbpsk, fsk; rayleigh"),
        ],
        example: "wireless = { channel = { kind = \"two-state\", error_probability = 0.1, memory = 0.35 } }",
    },
    Part {
        name: "users",
        doc: "who shares the slots, each with a queue and a channel, and the way back",
        params: &[
            ("wireless.users[].count", "1", "1 to 1000 in all"),
            ("wireless.users[].weight", "1", "its part of the slots"),
            ("wireless.users[].buffer", "wireless.buffer", "packets, bytes, or `unlimited`"),
            ("wireless.users[].channel", "wireless.channel", "as above"),
            ("wireless.work_conserving", "true", "false: slots that are not needed are lost"),
            ("wireless.buffer", "unlimited", "packets, bytes, or `unlimited`"),
            ("wireless.uplink", "a wire", "{ rate, delay, queue, loss }, of each user"),
        ],
        example: "wireless = { buffer = \"10 pkt\", users = [{ count = 3 }, { weight = 2 }], uplink = { rate = \"100 kbit/s\" } }",
    },
    Part {
        name: "plan",
        doc: "the base station tells flows windows that keep their delay jitter, anew when flows join or leave",
        params: &[
            ("wireless.plan.max_jitter", "none", "a duration, at least one slot (D)"),
            ("wireless.plan.outage", "0.01", "how many packets may have more"),
        ],
        example: "wireless = { plan = { max_jitter = \"50 ms\", outage = 0.01 } }",
    },
];

const MEDIA: &[Part] = &[
    Part {
        name: "FILE",
        doc: "any video that GStreamer decodes, looped, encoded live as VP8 at the controller's rate (build with `--features gst`)",
        params: &[],
        example: "fairpace send clip.mp4 HOST:PORT",
    },
    Part {
        name: "FILE.ivf",
        doc: "VP8 as it is: does not follow the controller; what the rate does not carry is dropped or comes late",
        params: &[],
        example: "fairpace send clip.ivf HOST:PORT",
    },
    Part {
        name: "-",
        doc: "standard input: IVF as it is, any other container through GStreamer",
        params: &[],
        example: "fairpace send - HOST:PORT < clip.ivf",
    },
    Part {
        name: "test-pattern",
        doc: "a moving picture, encoded live (GStreamer)",
        params: &[],
        example: "fairpace send test-pattern HOST:PORT",
    },
    Part {
        name: "model",
        doc: "frames of the sizes that an adaptive encoder would make, with nothing to see; needs no GStreamer",
        params: &[],
        example: "fairpace send model HOST:PORT",
    },
    Part {
        name: "constant:RATE",
        doc: "frames of equal size, with nothing to see; does not follow the controller",
        params: &[],
        example: "fairpace send constant:1Mbit/s HOST:PORT",
    },
    Part {
        name: "sizes:FILE",
        doc: "frames of recorded sizes (one number of bytes per line), looped, with nothing to see",
        params: &[],
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
        for (what, key, value) in [
            (ListWhat::Controllers, "controllers", controllers_json as fn() -> Value),
            (ListWhat::Links, "links", || parts_json(LINKS)),
            (ListWhat::Links, "satellite", || parts_json(SATELLITE)),
            (ListWhat::Links, "wireless", || parts_json(WIRELESS)),
            (ListWhat::Media, "media", || parts_json(MEDIA)),
            (ListWhat::Media, "streams", streams_json),
            (ListWhat::Experiments, "experiments", experiments_json),
        ] {
            if shows(what) {
                all.insert(key.to_owned(), value());
            }
        }
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    if shows(ListWhat::Controllers) {
        controllers(&mut out)?;
    }
    if shows(ListWhat::Links) {
        parts(
            &mut out,
            "Links: the fields of a scenario's [path]; [path.reverse] has rate, queue, loss, jitter, reorder",
            LINKS,
        )?;
        parts(&mut out, "Satellite: the fields of a scenario's [satellite], in place of [path]", SATELLITE)?;
        parts(&mut out, "Wireless: the fields of a scenario's [wireless], the last hop behind [path]", WIRELESS)?;
    }
    if shows(ListWhat::Media) {
        parts(&mut out, "Media: what `fairpace send` and `fairpace demo` take", MEDIA)?;
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
    for scheme in registry::schemes() {
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
            table.row([
                p.name.to_owned(),
                format!("default {}", p.default),
                p.range.to_owned(),
                format!("{}{symbol}", p.doc),
            ]);
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

fn parts(out: &mut impl Write, title: &str, parts: &[Part]) -> std::io::Result<()> {
    heading(out, title)?;
    for part in parts {
        writeln!(out, "  {}  {}", paint(part.name, Ink::Bold), part.doc)?;
        let mut table = Columns::default();
        for (name, default, allowed) in part.params {
            table.row([(*name).to_owned(), format!("default {default}"), (*allowed).to_owned()]);
        }
        table.print_plain(out, "      ")?;
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
    writeln!(out)
}

fn controllers_json() -> Value {
    let media = registry::schemes().iter().map(|s| {
        let params: Vec<Value> = s
            .params
            .iter()
            .map(|p| {
                json!({
                    "name": p.name, "symbol": p.symbol, "default": p.default, "unit": p.unit, "allowed": p.range, "doc": p.doc,
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

fn parts_json(parts: &[Part]) -> Value {
    let part = |p: &Part| {
        let params: Vec<Value> = p
            .params
            .iter()
            .map(|(name, default, allowed)| json!({ "name": name, "default": default, "allowed": allowed }))
            .collect();
        json!({ "name": p.name, "doc": p.doc, "parameters": params, "example": p.example })
    };
    parts.iter().map(part).collect()
}

fn experiments_json() -> Value {
    fairpace_papers::experiments().map(|e| json!({ "id": e.id, "title": e.title })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_scenario::Scenario;

    #[test]
    fn every_example_of_a_link_is_what_a_scenario_takes() {
        // A recording is a file, which is not here.
        for part in LINKS.iter().filter(|p| p.name != "trace") {
            let rate = if part.name == "rate" { "" } else { "rate = \"10 Mbit/s\"\n" };
            let text = format!("[path]\n{rate}{}\n[[flows]]\ncontroller = \"rcs\"\n", part.example);
            Scenario::parse(&text, part.name).unwrap_or_else(|e| panic!("{e}"));
        }
        for part in SATELLITE {
            let text = format!("{}\n[[flows]]\ncontroller = \"tfrc\"\nterminals = [1, 2]\n", part.example);
            Scenario::parse(&text, part.name).unwrap_or_else(|e| panic!("{e}"));
        }
        for part in WIRELESS {
            let text =
                format!("path = {{ rate = \"10 Mbit/s\" }}\n{}\n[[flows]]\ncontroller = \"aimd\"\n", part.example);
            Scenario::parse(&text, part.name).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    #[test]
    fn every_field_of_a_wireless_link_is_listed() {
        let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
        for (table, prefix) in [
            ("WirelessSpec", "wireless"),
            ("ChannelSpec", "wireless.channel"),
            ("WirelessUser", "wireless.users[]"),
            ("PlanSpec", "wireless.plan"),
        ] {
            let fields = schema["$defs"][table]["properties"].as_object().unwrap();
            for name in fields.keys() {
                let field = format!("{prefix}.{name}");
                let listed = WIRELESS.iter().flat_map(|p| p.params).any(|(listed, ..)| listed.starts_with(&field));
                assert!(listed, "{field}");
            }
        }
    }

    #[test]
    fn every_field_of_a_satellite_is_listed() {
        // From the schema: a field that is new is missed here.
        let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
        for (table, prefix) in [("SatelliteSpec", "satellite"), ("SatelliteQuickStart", "satellite.quick_start")] {
            let fields = schema["$defs"][table]["properties"].as_object().unwrap();
            for name in fields.keys().filter(|n| !["quick_start", "release"].contains(&n.as_str())) {
                let field = format!("{prefix}.{name}");
                let listed = SATELLITE.iter().flat_map(|p| p.params).any(|(listed, ..)| *listed == field);
                assert!(listed, "{field}");
            }
        }
    }
}
