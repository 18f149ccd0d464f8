//! `fairpace doctor`: what this machine allows, each with the remedy.

use crate::args::{Doctor, LONG_VERSION};
use crate::error::{Outcome, code};
use crate::term::{Ink, note, paint};
use fairpace_emu::CallFilter;
use fairpace_net::doctor::{DoctorConfig, Fact, Health, examine};
use serde_json::{Map, json};
use std::io::{IsTerminal as _, Write as _};

pub(crate) fn run(args: &Doctor) -> Outcome {
    let quiet = args.json || !std::io::stderr().is_terminal();
    let mut facts = examine(DoctorConfig::default(), |step| note(quiet, &format!("… {step}")));
    facts.push(call_filter());
    facts.push(video());
    let mut out = std::io::stdout().lock();
    if args.json {
        let list: Vec<_> = facts
            .iter()
            .map(|f| {
                let numbers: Map<String, serde_json::Value> =
                    f.numbers.iter().map(|(name, v)| ((*name).to_owned(), json!(v))).collect();
                json!({
                    "id": f.id, "title": f.title, "health": word(f.health), "found": f.found,
                    "remedy": f.remedy, "numbers": numbers,
                })
            })
            .collect();
        let version = json!({ "version": env!("CARGO_PKG_VERSION"), "commit": env!("FAIRPACE_COMMIT"), "gst": cfg!(feature = "gst") });
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "fairpace": version, "facts": list }))?)?;
    } else {
        writeln!(out, "Fairpace {}\n", LONG_VERSION)?;
        for f in &facts {
            let (mark, ink) = match f.health {
                Health::Ok => ("✔", Ink::Good),
                Health::Limited => ("~", Ink::Faint),
                Health::Broken => ("✘", Ink::Bad),
            };
            writeln!(out, "{} {}: {}", paint(mark, ink), paint(f.title, Ink::Bold), f.found)?;
            if let Some(remedy) = &f.remedy {
                writeln!(out, "    remedy: {remedy}")?;
            }
        }
    }
    if facts.iter().any(|f| f.health == Health::Broken) {
        return Err(crate::error::Failure::silent(code::FAILED));
    }
    Ok(())
}

fn word(health: Health) -> &'static str {
    match health {
        Health::Ok => "good",
        Health::Limited => "limited",
        Health::Broken => "broken",
    }
}

/// Whether the kernel has filters of system calls, by trying one.
fn call_filter() -> Fact {
    let (health, found, remedy) = match CallFilter::supported() {
        Ok(()) => (Health::Ok, "`send`, `receive` and `relay` run under one".to_owned(), None),
        Err(e) => (Health::Limited, e.to_string(), e.hint()),
    };
    Fact { id: "seccomp", title: "filters of system calls", health, found, remedy, numbers: Vec::new() }
}

/// Whether this build can show and encode real video.
fn video() -> Fact {
    let (health, found, remedy) = if cfg!(feature = "gst") {
        (Health::Ok, "real video through GStreamer".to_owned(), None)
    } else {
        let remedy =
            "build with `cargo build --release -p fairpace --features gst` (packages/demo.txt lists what it needs)";
        (Health::Limited, "built without GStreamer: IVF files and filler only".to_owned(), Some(remedy.to_owned()))
    };
    Fact { id: "video", title: "video", health, found, remedy, numbers: Vec::new() }
}
