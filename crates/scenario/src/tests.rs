//! Every message a scenario can earn, in full; what is accepted; and a table over all fields.

use super::*;

const GOOD: &str = r#"
duration = "10 s"

[path]
rate = "1300 pkt/s"
rtt = "550 ms"
queue = { kind = "two-priority", capacity = "50 pkt" }
loss = { kind = "random", p = 1e-3 }

[[flows]]
controller = "fixed"
count = 2
"#;

/// `geo.toml:3: ...` and the hint, for a scenario that must be refused.
fn refusal(text: &str) -> String {
    match Scenario::parse(text, "geo.toml") {
        Ok(s) => panic!("accepted:\n{text}\n{s:?}"),
        Err(e) => match e.hint() {
            Some(hint) => format!("{e}\nhint: {hint}"),
            None => e.to_string(),
        },
    }
}

/// [`GOOD`] with one line replaced or, if no line starts so, added on top.
fn with(line: &str, replacement: &str) -> String {
    if GOOD.lines().any(|l| l.starts_with(line)) {
        let lines = GOOD.lines().map(|l| if l.starts_with(line) { replacement } else { l });
        lines.collect::<Vec<_>>().join("\n")
    } else {
        format!("{replacement}\n{GOOD}")
    }
}

#[test]
fn a_small_scenario_reads_and_fills_in_names_and_defaults() {
    let s = Scenario::parse(GOOD, "folder/geo.toml").unwrap();
    assert_eq!((s.name.as_str(), s.seed.get(), s.flows.len()), ("geo", 1, 1));
    assert_eq!((s.flows[0].name.as_str(), s.flows[0].group.as_str()), ("fixed", "fixed"));
    assert_eq!(s.feedback.get().interval, Some(fairpace_units::Duration::from_millis(20)));
    assert_eq!(s.files.folder, Path::new("folder"));
}

#[test]
fn every_refusal_names_file_line_field_value_and_remedy() {
    let table = [
        (
            with("dur", "duration = 10"),
            "geo.toml:2: `duration` is integer `10`, but must be a duration as text, such as \"550 ms\"",
        ),
        (
            with("dur", "duration = \"10 parsec\""),
            "geo.toml:2: `duration` is `10 parsec`, which is not a duration: the unit is not a time\n\
             hint: write a number and ns, us, ms, s, min or h, as in `550 ms`",
        ),
        (
            with("dur", "duration = \"0 s\""),
            "geo.toml:2: `duration` is `0 s`, which is out of range\nhint: above 0 s, at most a week (168 h)",
        ),
        (
            with("warm", "warmup = \"10 s\""),
            "geo.toml:1: `warmup` is `10 s`, which leaves nothing of the duration of `10 s` to measure\n\
             hint: shorter than `duration`",
        ),
        (
            with("sample", "sample = \"1 us\""),
            "geo.toml:1: `sample` is `1 us`, which is out of range\nhint: from 1 ms to the `duration`",
        ),
        (
            with("count", "count = 10000").replace("duration = \"10 s\"", "duration = \"10 s\"\nsample = \"1 ms\""),
            "geo.toml:3: `sample` is `1 ms`, which makes 100000000 rows for 10000 flows\n\
             hint: a longer interval: at most 10000000 rows",
        ),
        (
            with("packet_size", "packet_size = \"70000 B\""),
            "geo.toml:1: `packet_size` is `70000 B`, which is out of range\n\
             hint: from 1 B to 65507 B, what fits into a datagram",
        ),
        (
            with("saefty", "saefty = \"paper\""),
            "geo.toml:1: `saefty` is not a field\nhint: did you mean `safety`? allowed: `name`, `title`, `seed`, \
             `duration`, `warmup`, `safety`, `packet_size`, `ack_size`, `feedback`, `sample`, `path`, `satellite`, `wireless`, `hop`, \
             `flows`",
        ),
        (
            with("safety", "safety = \"papers\""),
            "geo.toml:1: `safety` is `papers`, which is not one of the choices\n\
             hint: did you mean `paper`? allowed: `default`, `paper`",
        ),
        (with("safety", "safety = 0"), "geo.toml:1: `safety` is integer `0`, but must be `default` or `paper`"),
        (
            with("queue", "queue = { kind = {} }"),
            "geo.toml:7: `path.queue.kind` is map, but must be one of `drop-tail`, `two-priority`, `red`, \
             `codel`, `pie`, `fq-codel`, `dualpi2`",
        ),
        (
            with("count", "max_rate = \"1e20 pkt/s\""),
            "geo.toml:12: `flows[0].max_rate` is `1e20 pkt/s`, which is more than can be simulated with packets of \
             1000 B\nhint: at most ten million packets/s (10000000 pkt/s)",
        ),
        (
            "[path]\nrate = \"unlimited\"\n[[flows]]\ncontroller = \"tcp-reno\"\n".to_owned(),
            "geo.toml:1: `path.rtt` is `0 s`, which makes a path without rate limit and delay, over which `tcp-reno` \
             never ends\nhint: above 0 s, or a `rate` that is not `unlimited`",
        ),
        (
            with("seed", "seed = -1"),
            "geo.toml:1: `seed` is integer `-1`, but must be a whole number from 0 to 9007199254740991",
        ),
        (
            with("feedback", "feedback = \"1 us\""),
            "geo.toml:1: `feedback` is `1 us`, which is not a feedback interval: it is not between 1 ms and 10 s\n\
             hint: write `every packet`, or an interval of 1 ms to 10 s, as in `20 ms`",
        ),
        (
            with("rate", "rate = \"-5 Mbit/s\""),
            "geo.toml:5: `path.rate` is `-5 Mbit/s`, which is not a rate: it is negative\n\
             hint: write a number and bit/s, kbit/s, Mbit/s, Gbit/s (or k, M, G) or pkt/s, as in `2.5 Mbit/s`",
        ),
        (
            with("rate", "rate = \"0 bit/s\""),
            "geo.toml:5: `path.rate` is `0 bit/s`, which passes nothing\n\
             hint: at least 1 bit/s (for a dead time use `outages` or a step)",
        ),
        (
            with("rate", "rate = []"),
            "geo.toml:5: `path.rate` is empty\nhint: write at least `[{ at = \"0 s\", rate = \"2 Mbit/s\" }]`",
        ),
        (
            with("rate", "rate = [{ at = \"1 s\", rate = \"2 Mbit/s\" }]"),
            "geo.toml:5: `path.rate[0].at` is `1 s`, which is not the beginning\nhint: the first step is at `0 s`",
        ),
        (
            with("rate", "rate = [{ at = \"0 s\", rate = \"2 M\" }, { at = \"0 s\", rate = \"1 M\" }]"),
            "geo.toml:5: `path.rate[1].at` is `0 s`, which is not after the step before it at `0 s`\n\
             hint: steps in rising order",
        ),
        (
            with("rate", "rate = [{ at = \"0 s\", rate = \"0 M\" }]"),
            "geo.toml:5: `path.rate[0].rate` is `0 M`, which passes nothing, like every step\n\
             hint: at least 1 bit/s (for a dead time use `outages` or a step)",
        ),
        (
            with("rate", ""),
            "geo.toml:4: `path.rate` is missing\n\
             hint: write `rate = \"10 Mbit/s\"`, or name a recording with `trace`",
        ),
        (
            with("rtt", "trace = { file = \"x.down\" }"),
            "geo.toml:5: `path.rate` stands beside `path.trace`, and both give the capacity\nhint: keep one of them",
        ),
        (
            with("rate", "trace = { file = \"nowhere.down\" }"),
            "geo.toml:5: `path.trace.file` names `nowhere.down`, which cannot be read: there is no such file\n\
             hint: paths are relative to the scenario file",
        ),
        (
            with("rate", "trace = { file = \"x.csv\" }"),
            "geo.toml:5: `path.trace.column` is missing\n\
             hint: name the column with the rate, such as `column = \"down_mbps\"`",
        ),
        (
            with("rate", "trace = { file = \"x.down\", column = \"a\" }"),
            "geo.toml:5: `path.trace.column` has no effect on a mahimahi recording, which is no table\n\
             hint: leave it out, or write `format = \"csv\"`",
        ),
        (
            with("queue", "queue = { capacity = \"0 pkt\" }"),
            "geo.toml:7: `path.queue.capacity` is `0 pkt`, which is not a capacity: it is zero\n\
             hint: write a whole number of pkt, or of B, kB, MB, KiB or MiB, as in `50 pkt`, or `unlimited`",
        ),
        (
            with("queue", "queue = \"red\""),
            "geo.toml:7: `path.queue` is string \"red\", but must be a table, as in `{ field = value }`",
        ),
        (
            with("loss", "reverse = { queue = { kind = \"red\" } }"),
            "geo.toml:8: `path.reverse.queue` has no effect on a link without rate limit, where nobody waits\n\
             hint: give `path.reverse` a `rate`, or leave `queue` out",
        ),
        (
            format!("{GOOD}access = {{ queue = {{ capacity = \"5 pkt\" }} }}\n"),
            "geo.toml:13: `flows[0].access.queue` has no effect on a link without rate limit, where nobody waits\n\
             hint: give `flows[0].access` a `rate`, or leave `queue` out",
        ),
        (
            format!("{GOOD}feedback = \"50 ms\"\nparameters = {{ measured_by = \"receiver\" }}\n")
                .replace("fixed", "tfrc"),
            "geo.toml:13: `flows[0].feedback` has no effect where the receiver measures: it reports once per round \
             trip\nhint: leave it out, or let the sender measure",
        ),
        (
            with("queue", "queue = { kind = \"two-prio\" }"),
            "geo.toml:7: `path.queue.kind` is `two-prio`, which is not one of the choices\n\
             hint: allowed: `drop-tail`, `two-priority`, `red`, `codel`, `pie`, `fq-codel`, `dualpi2`",
        ),
        (
            with("queue", "queue = { kind = \"drop-tail\", max_p = 0.1 }"),
            "geo.toml:7: `path.queue.max_p` has no effect with kind `drop-tail`\n\
             hint: write `kind = \"red\"`, or leave `max_p` out",
        ),
        (
            with("queue", "queue = { kind = \"red\", interval = \"50 ms\" }"),
            "geo.toml:7: `path.queue.interval` has no effect with kind `red`\n\
             hint: write `kind = \"codel\"` or `kind = \"fq-codel\"`, or leave `interval` out",
        ),
        (
            with("queue", "queue = { kind = \"codel\", target = \"0 s\" }"),
            "geo.toml:7: `path.queue.target` is `0 s`, which is out of range\nhint: from 1 us to 1 h",
        ),
        (
            with("queue", "queue = { kind = \"fq-codel\", quantum = \"0 B\" }"),
            "geo.toml:7: `path.queue.quantum` is `0 B`, which is nothing\nhint: at least 1 B",
        ),
        (
            with("queue", "queue = { kind = \"fq-codel\", flows = 0 }"),
            "geo.toml:7: `path.queue.flows` is `0`, which is out of range\nhint: write a whole number from 1 to 65536",
        ),
        (
            with("queue", "queue = { kind = \"red\", max_p = 0 }"),
            "geo.toml:7: `path.queue.max_p` is `0`, which never drops anything\nhint: above 0, at most 1",
        ),
        (
            with("queue", "queue = { kind = \"red\", min_threshold = \"5 pkt\" }"),
            "geo.toml:7: `path.queue.max_threshold` is missing\nhint: `min_threshold` needs it beside it",
        ),
        (
            with("queue", "queue = { kind = \"red\", min_threshold = \"5 pkt\", max_threshold = \"5 pkt\" }"),
            "geo.toml:7: `path.queue.min_threshold` is `5 pkt`, which is not below `max_threshold`\n\
             hint: less than `max_threshold`",
        ),
        (
            with("queue", "queue = { kind = \"red\", min_threshold = \"5 pkt\", max_threshold = \"9 kB\" }"),
            "geo.toml:7: `path.queue.max_threshold` is `9 kB`, which is not in the unit of `min_threshold`\n\
             hint: both in packets, or both in bytes",
        ),
        (
            with("queue", "queue = { kind = \"red\", min_threshold = \"unlimited\", max_threshold = \"9 kB\" }"),
            "geo.toml:7: `path.queue.min_threshold` is `unlimited`, which is no threshold\nhint: packets or bytes",
        ),
        (
            with("loss", "loss = { kind = \"random\", p = 1.5 }"),
            "geo.toml:8: `path.loss.p` is `1.5`, which is not a probability\n\
             hint: write a number from 0 to 1, such as 0.001",
        ),
        (
            with("loss", "loss = { kind = \"random\" }"),
            "geo.toml:8: `path.loss.p` is missing\nhint: kind `random` needs it: a number from 0 to 1",
        ),
        (
            with("loss", "loss = { p = 0.1 }"),
            "geo.toml:8: `path.loss.p` has no effect with kind `none`\n\
             hint: write `kind = \"random\"`, or leave `p` out",
        ),
        (
            with("loss", "reorder = true"),
            "geo.toml:8: `path.reorder` has no effect without `jitter`\nhint: set `jitter`, or leave `reorder` out",
        ),
        (
            with("loss", "outages = [{ start = \"1 s\", length = \"0 s\" }]"),
            "geo.toml:8: `path.outages[0].length` is `0 s`, which has no effect\nhint: above 0 s",
        ),
        (
            with("loss", "outages = [{ start = \"10 s\", length = \"1 s\" }]"),
            "geo.toml:8: `path.outages[0].start` is `10 s`, which is not before the end at `10 s`\n\
             hint: a time within the run",
        ),
        (
            "duration = \"1 s\"\n[path]\nrate = \"1 M\"\n".to_owned(),
            "geo.toml:1: `flows` is missing\nhint: a scenario needs at least one `[[flows]]` with a `controller`",
        ),
        (
            "flows = []\n[path]\nrate = \"1 M\"\n".to_owned(),
            "geo.toml:1: `flows` is empty\nhint: a scenario needs at least one `[[flows]]` with a `controller`",
        ),
        (
            with("controller", "controller = \"fxied\""),
            "geo.toml:11: `flows[0].controller` is `fxied`, which is not a controller\n\
             hint: did you mean `fixed`? `fairpace list controllers` shows all",
        ),
        (
            with("count", "count = 0"),
            "geo.toml:12: `flows[0].count` is `0`, which is out of range\nhint: write a whole number from 1 to 10000",
        ),
        (
            with("count", "name = \"a,b\""),
            "geo.toml:12: `flows[0].name` is `a,b`, which is not a name\n\
             hint: at most 64 characters, no comma, quote or control character",
        ),
        (
            with("count", "[[flows]]\ncontroller = \"fixed\"\nname = \"fixed\""),
            "geo.toml:14: `flows[1].name` is `fixed`, which is the name of a flow before it\nhint: a name of its own",
        ),
        (
            with("count", "tcp = { tick = \"1 ms\" }"),
            "geo.toml:12: `flows[0].tcp` has no effect on controller `fixed`\n\
             hint: it belongs to `tcp-` controllers and `tpba`; leave it out",
        ),
        (
            with("controller", "controller = \"constant\""),
            "geo.toml:10: `flows[0].rate` is missing\nhint: `constant` needs it, as in `rate = \"100 pkt/s\"`",
        ),
        (
            with("count", "start = \"10 s\""),
            "geo.toml:12: `flows[0].start` is `10 s`, which begins after the end at `10 s`\nhint: a time within the run",
        ),
        (
            with("count", "stop = \"0 s\""),
            "geo.toml:12: `flows[0].stop` is `0 s`, which is not after the start\n\
             hint: later than `start` and `start_spread`",
        ),
        (
            with("count", "min_rate = \"2 M\"\nmax_rate = \"1 M\""),
            "geo.toml:12: `flows[0].min_rate` is `2 M`, which is above `max_rate`\nhint: at most `max_rate`",
        ),
        (
            with("count", "start_rate = \"20 M\""),
            "geo.toml:12: `flows[0].start_rate` is `20 Mbit/s`, which is out of range or not of the right kind\n\
             hint: from 100 bit/s (min_rate) to 10 Mbit/s (max_rate)",
        ),
        (
            with("count", "parameters = { raet = \"1 M\" }"),
            "geo.toml:12: `flows[0].parameters.raet` is not a field\nhint: did you mean `rate`? allowed: `rate`",
        ),
        (
            with("count", "parameters = { rate = \"fast\" }"),
            "geo.toml:12: `flows[0].parameters.rate` is `fast`, which is out of range or not of the right kind\n\
             hint: a rate within the flow's limits, or `start`: the flow's start rate, 1 Mbit/s if it has none",
        ),
        (
            with("count", "parameters = { rate = [1] }"),
            "geo.toml:12: `flows[0].parameters.rate` is sequence, but must be text, a number, true or false",
        ),
        (
            with("count", "initial_rtt = \"1 us\""),
            "geo.toml:12: `flows[0].initial_rtt` is `1 us`, which is out of range\nhint: from 100 us to 60 s",
        ),
        (
            with("count", "source = { kind = \"constant\" }"),
            "geo.toml:12: `flows[0].source.rate` is missing\nhint: a constant source needs it, as in `rate = \"1 Mbit/s\"`",
        ),
        (
            with("count", "source = { kind = \"adus\" }"),
            "geo.toml:12: `flows[0].source.packets` is missing\nhint: data units need it, as in `packets = 10`",
        ),
        (
            with("count", "source = { kind = \"constant\", rate = \"1 Mbit/s\", packets = 2 }"),
            "geo.toml:12: `flows[0].source.packets` has no effect on a source without data units of one size\n\
             hint: write `kind = \"adus\"`, or leave it out",
        ),
        (
            with("count", "source = { kind = \"adus\", packets = 2 }\nsend_buffer = \"5 pkt\""),
            "geo.toml:13: `flows[0].send_buffer` has no effect on a saturated source, which makes a packet when one may be \
             sent\nhint: give the flow a `source` with a rate, or leave it out",
        ),
        (
            with("controller", "controller = \"tcp-sack\"\ntcp = { variant = \"reno\" }"),
            "geo.toml:12: `flows[0].tcp.variant` has no effect on controller `tcp-sack`\n\
             hint: the controller's name says it, as in `tcp-sack`; leave it out",
        ),
        (
            with("controller", "controller = \"tcp-sack\"\ntcp = { segment_size = \"552 B\" }"),
            "geo.toml:12: `flows[0].tcp.segment_size` has no effect on controller `tcp-sack`\n\
             hint: `packet_size` says it; leave it out",
        ),
        (
            with("controller", "controller = \"tpba\"\ntcp = { segment_size = \"40 B\" }"),
            "geo.toml:12: `flows[0].tcp.segment_size` is `40 B`, which is out of range\n\
             hint: from 41 B to 65507 B, headers of 40 B included",
        ),
        (
            with("controller", "controller = \"tpba\"\npacket_size = \"20 B\"\ntcp = { segment_size = \"552 B\" }"),
            "geo.toml:13: `flows[0].tcp.segment_size` is `552 B`, which shares segments among packets of 20 B, which have no \
             room for headers of 40 B\nhint: a `packet_size` of at least 41 B",
        ),
        (
            with("controller", "controller = \"tpba\"\ntcp = { variant = \"cubic\" }"),
            "geo.toml:12: `flows[0].tcp.variant` is `cubic`, which is not one of the choices\n\
             hint: allowed: `reno`, `newreno`, `sack`",
        ),
        (
            with("controller", "controller = \"lda\"\nfeedback = \"20 ms\""),
            "geo.toml:12: `flows[0].feedback` has no effect on controller `lda`, which goes by RTCP reports\n\
             hint: set its parameter `t_rtcp`, or leave it out",
        ),
        (
            with("count", "access = { loss = { kind = \"gilbert-elliott\", good_to_bad = 0.1 } }"),
            "geo.toml:12: `flows[0].access.loss.bad_to_good` is missing\n\
             hint: kind `gilbert-elliott` needs it: a number from 0 to 1",
        ),
        (
            "duration = \n".to_owned(),
            "geo.toml:1: is not TOML: string values must be quoted, expected literal string\n\
             hint: the format is TOML (https://toml.io); text is quoted, as in `rtt = \"550 ms\"`",
        ),
        (
            "duration = \"1 s\"\nduration = \"1 s\"\n".to_owned(),
            "geo.toml:2: is not TOML: duplicate key\n\
             hint: the format is TOML (https://toml.io); text is quoted, as in `rtt = \"550 ms\"`",
        ),
    ];
    let mut wrong = String::new();
    for (text, expected) in &table {
        let found = refusal(text);
        if found != *expected {
            wrong.push_str(&format!("--- expected\n{expected}\n+++ found\n{found}\n\n"));
        }
        assert!(found.lines().count() <= 3, "{found}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_a_scenario_prints_reads_back_to_itself_and_holds_every_default() {
    let s = Scenario::parse(GOOD, "geo.toml").unwrap();
    let printed = s.to_toml();
    for line in [
        "seed = 1",
        "warmup = \"0 s\"",
        "safety = \"default\"",
        "rate = \"start\"",
        "capacity = \"50 pkt\"",
        "p = 0.001",
    ] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
    let again = Scenario::parse(&printed, "geo.toml").unwrap();
    assert_eq!(again.to_toml(), printed);
}

#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json");
    let schema = Scenario::json_schema();
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == schema, "docs/scenario.schema.json is stale: run this test with FAIRPACE_BLESS=1");
}

/// Every leaf of the schema as (path in a scenario, its schema), `$ref`s followed.
fn leaves() -> Vec<(String, serde_json::Value)> {
    let root: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let mut found = Vec::new();
    walk(&root, &root, String::new(), &mut found);
    found
}

fn walk(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    path: String,
    found: &mut Vec<(String, serde_json::Value)>,
) {
    let mut schema = schema.clone();
    loop {
        if let Some(reference) = schema.get("$ref").and_then(|r| r.as_str()) {
            schema = root.pointer(reference.trim_start_matches('#')).unwrap().clone();
        } else if let Some(any) = schema.get("anyOf").and_then(|a| a.as_array()) {
            // An option: the first alternative is the value, the second is null.
            schema = any.iter().find(|s| s.get("type").and_then(|t| t.as_str()) != Some("null")).unwrap().clone();
            if schema.get("const").is_some() {
                schema = serde_json::json!({ "format": "fairpace-rate" });
            }
        } else {
            break;
        }
    }
    if let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) {
        for (name, property) in properties {
            let dot = if path.is_empty() { "" } else { "." };
            walk(root, property, format!("{path}{dot}{name}"), found);
        }
    } else if let Some(items) = schema.get("items") {
        walk(root, items, format!("{path}[0]"), found);
    } else {
        found.push((path, schema));
    }
}

/// A scenario whose field `path` is `value`, as TOML with nothing else wrong about the form.
fn scenario_with(path: &str, value: &str) -> String {
    let (mut path, mut value) = (path, value.to_owned());
    while let Some(list) = path.strip_suffix("[0]") {
        (path, value) = (list, format!("[{value}]"));
    }
    let mut text = format!("{path} = {value}");
    // From the inside out: `a.b[0].c = v` is `a.b = [{ c = v }]`.
    while let Some(open) = text.find("[0].") {
        let (before, after) = text.split_at(open);
        text = format!("{before} = [{{ {} }}]", &after[4..]);
    }
    let top = text.split(['.', '[', ' ']).next().unwrap();
    let mut whole = text.clone();
    if top != "flows" {
        whole.push_str("\nflows = [{ controller = \"fixed\" }]");
    }
    if !text.starts_with("path.rate") && !text.starts_with("path.trace") && top != "hop" {
        whole.push_str("\npath.rate = \"10 M\"");
    }
    whole
}

#[test]
fn no_field_of_the_schema_takes_a_value_of_the_wrong_kind() {
    // The list of fields comes from the schema: a new field is tested without a line here.
    let never: &[&str] =
        &["nan", "inf", "-inf", "[[1]]", "1979-05-27", "{ x = 1 }", "[]", "\"\\u0000\"", "18446744073709551616"];
    let text_only: &[&str] = &["0", "-1", "1e308", "9007199254740993", "true"];
    let number_only: &[&str] = &["\"\"", "\"0\"", "\"5\"", "\"-1\"", "true", "-1", "1e308"];
    let quantity: &[&str] = &[
        "\"\"",
        "\"5\"",
        "\"-1 s\"",
        "\"1e400 s\"",
        "\"nan s\"",
        "\"inf s\"",
        "\"٣ s\"",
        "\"1 parsec\"",
        "\"-0.5 M\"",
    ];
    let all = leaves();
    assert!(all.len() > 80, "only {} fields: the walk over the schema is broken", all.len());
    for (path, schema) in all {
        let format = schema.get("format").and_then(|f| f.as_str()).unwrap_or("");
        let kind = schema.get("type").map_or(String::new(), ToString::to_string);
        let mut bad: Vec<&str> = Vec::new();
        if path.ends_with("parameters") {
            // Its values are checked by the controller; the table itself must be one.
            bad.extend(["1", "\"\"", "true", "[]"]);
        } else if matches!(path.as_str(), "name" | "title" | "flows[0].name" | "flows[0].group") {
            bad.extend(text_only);
        } else {
            bad.extend(never);
            match () {
                () if format == "fairpace-probability" || kind.contains("integer") => bad.extend(number_only),
                () if format.starts_with("fairpace-") => bad.extend(text_only.iter().chain(quantity)),
                () if kind.contains("boolean") => bad.extend(["0", "1", "\"true\"", "\"\""]),
                () => bad.extend(text_only.iter().chain(&["\"\"", "\"no such choice\""])),
            }
        }
        for value in bad {
            if path.ends_with("rate")
                && value == "[]"
                && !format.is_empty()
                && path != "path.rate"
                && !path.ends_with("reverse.rate")
            {
                continue; // an empty list of steps is refused where the rate has effect
            }
            let text = scenario_with(&path, value);
            match Scenario::parse(&text, "t.toml") {
                Ok(_) => panic!("`{path} = {value}` was accepted"),
                Err(e) => {
                    let message = e.to_string();
                    assert!(message.starts_with("t.toml:") && message.lines().count() == 1, "{message}");
                    assert!(message.len() < 400, "{message}");
                    // One of a list of numbers, or the list.
                    let named = message.contains(&format!("`{}", path.trim_end_matches("[0]")));
                    // Where the field needs another beside it, that one may be named first.
                    let ok = named || message.contains("duplicate key") || message.ends_with("is missing");
                    assert!(ok, "{path} = {value}: {message}");
                }
            }
        }
    }
}

#[test]
fn files_that_are_no_scenarios_are_refused_without_reading_on() {
    let folder = std::env::temp_dir().join(format!("fairpace-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let noise: Vec<u8> = (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let cases = [
        (folder.join("missing.toml"), "there is no such file"),
        (folder.clone(), "it is a folder"),
        ("/dev/null".into(), "it is not a regular file"),
        ("/dev/full".into(), "it is not a regular file"),
        (file("empty.toml", b""), "`path.rate` is missing"),
        (file("noise.toml", &noise), "it is not UTF-8 text"),
        (file("large.toml", &vec![b'#'; (1 << 20) + 1]), "it has 1048577 bytes; at most 1 MiB is read"),
        (file("nul.toml", b"\0"), "is not TOML"),
        (PathBuf::from("x".repeat(4_096)), "File name too long"),
    ];
    for (path, expected) in cases {
        let error = Scenario::load(&path).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

const HOPS: &str = r#"
[[hop]]
name = "first"
link = { rate = "8 Mbit/s", rtt = "20 ms" }
[[hop]]
name = "geo"
kind = "satellite"
[[hop]]
name = "wifi"
kind = "wireless"
[satellite]
[wireless]
rate = "2 Mbit/s"
"#;

fn hops(flow: &str) -> String {
    format!("{HOPS}[[flows]]\ncontroller = \"tcp-reno\"\n{flow}\n")
}

#[test]
fn a_flow_passes_the_hops_from_where_it_enters_to_where_it_leaves() {
    let route = |flow: &str| {
        let scenario = Scenario::parse(&hops(flow), "hops.toml").unwrap_or_else(|e| panic!("{e}"));
        let config = crate::sim_config(&scenario, 1, crate::Record::default()).unwrap();
        assert_eq!(config.hops.iter().map(|hop| hop.name()).collect::<Vec<_>>(), ["first", "geo", "wifi"]);
        config.flows[0].route.iter().map(|r| (r.hop, r.ports)).collect::<Vec<_>>()
    };
    assert_eq!(route("terminals = [1, 2]\nuser = 0"), [(0, [0, 0]), (1, [1, 2]), (2, [0, 0])]);
    assert_eq!(route("leave = \"geo\"\nterminals = [1, 2]"), [(0, [0, 0]), (1, [1, 2])]);
    assert_eq!(route("enter = \"geo\"\nterminals = [3, 0]\nuser = 0"), [(1, [3, 0]), (2, [0, 0])]);
    assert_eq!(route("leave = \"first\""), [(0, [0, 0])]);
}

#[test]
fn every_refusal_of_hops_names_file_line_field_value_and_remedy() {
    let error = |text: &str| match Scenario::parse(text, "hops.toml") {
        Err(error) => format!("{error}\nhint: {}", error.hint().unwrap_or_default()),
        Ok(_) => panic!("read: {text}"),
    };
    let on_way = "terminals = [0, 1]\nuser = 0\n";
    for (flow, message) in [
        (
            "enter = \"gep\"",
            "hops.toml:16: `flows[0].enter` is `gep`, which is no hop\nhint: one of `first`, `geo`, `wifi`",
        ),
        (
            "enter = \"wifi\"\nleave = \"first\"",
            "hops.toml:17: `flows[0].leave` is `first`, which makes a way backwards: data passes the hops in the order in \
             which they are written\nhint: `leave` not before `enter`, in the order `first`, `geo`, `wifi`",
        ),
        (
            "user = 0",
            "hops.toml:14: `flows[0].terminals` is missing\nhint: say where data enters and leaves, as in \
             `terminals = [1, 2]`, or `\"random\"`",
        ),
        (
            "terminals = [0, 1]",
            "hops.toml:14: `flows[0].user` is missing\nhint: the flow passes a wireless hop: say whose downlink, as in \
             `user = 0`",
        ),
        (
            "leave = \"first\"\nterminals = [0, 1]",
            "hops.toml:17: `flows[0].terminals` has no effect: no satellite is on the flow's way\nhint: let the flow pass \
             the satellite's hop, or leave it out",
        ),
    ] {
        assert_eq!(error(&hops(flow)), message);
    }
    let table = [
        ("name = \"first\"", "name = \"geo\"", "`hop[1].name` is `geo`, which is the name of a hop before it"),
        ("name = \"first\"", "name = \"a.b\"", "`hop[0].name` is `a.b`, which is no name for a hop"),
        ("kind = \"satellite\"", "kind = \"wireless\"", "`hop[2].kind` is the second hop of kind `wireless`"),
        ("[satellite]\n", "", "`satellite` is missing\nhint: hop `geo` is of that kind: write `[satellite]`"),
        ("kind = \"satellite\"", "", "`hop[1].link` is missing"),
        ("rtt = \"20 ms\"", "rtt = \"2 h\"", "`hop[0].link.rtt` is `2 h`, which is out of range"),
        ("[satellite]\n", "[path]\nrate = \"1 Mbit/s\"\n[satellite]\n", "`path` stands beside `hop`"),
    ];
    for (from, to, part) in table {
        let message = error(&hops(on_way).replacen(from, to, 1));
        assert!(message.contains(part), "{message}");
    }
    let plain =
        "[path]\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"tcp-reno\"\nleave = \"first\"\n";
    assert!(error(plain).contains("`flows[0].leave` has no effect without `[[hop]]`"));
}
