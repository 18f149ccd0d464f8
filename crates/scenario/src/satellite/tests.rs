use super::super::Scenario;

/// A scenario with these lines of `[satellite]` and of its flow.
fn text(satellite: &str, flow: &str) -> String {
    format!(
        "duration = \"60 s\"\n[satellite]\n{satellite}\n[[flows]]\ncontroller = \"tfrc\"\n\
         source = {{ kind = \"constant\", rate = \"256 kbit/s\" }}\n{flow}\n"
    )
}

/// The message of a refusal: `geo.toml:3: ...` and the hint.
fn refusal(satellite: &str, flow: &str) -> String {
    let text = text(satellite, flow);
    match Scenario::parse(&text, "geo.toml") {
        Ok(s) => panic!("accepted:\n{text}\n{s:?}"),
        Err(e) => format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
    }
}

const BETWEEN: &str = "terminals = [1, 2]";

#[test]
fn every_refusal_of_a_satellite_names_file_line_field_value_and_remedy() {
    let table = [
        (
            "terminals = 0",
            "geo.toml:3: `satellite.terminals` is `0`, which is out of range\n\
             hint: write a whole number from 1 to 1000000",
        ),
        (
            "terminals = 1",
            "geo.toml:3: `satellite.terminals` is `1`, which is the only terminal, and a flow goes from one to another\n\
             hint: at least 2",
        ),
        (
            "granularity = \"7 Mbit/s\"",
            "geo.toml:3: `satellite.granularity` is `7 Mbit/s`, which is above the capacity of `6.336 Mbit/s`\n\
             hint: at most `capacity`",
        ),
        (
            "granularity = \"0 bit/s\"",
            "geo.toml:3: `satellite.granularity` is `0 bit/s`, which is nothing\n\
             hint: at least 1 bit/s",
        ),
        (
            "granularity = \"45 kbit/s\"",
            "geo.toml:3: `satellite.granularity` is `45 kbit/s`, which does not divide the capacity of `6.336 \
             Mbit/s`, which holds 140.80 of it\nhint: such as 44.93617 kbit/s or 45.257143 kbit/s",
        ),
        (
            "terminals = 300\nminimum = 2\ncarriers = 2",
            "geo.toml:4: `satellite.minimum` is `2`, which is more than a carrier has for 150 terminals: 144 units\n\
             hint: fewer units, fewer terminals, or more carriers",
        ),
        (
            "cra = \"1.3 Mbit/s\"\ncarriers = 1",
            "geo.toml:3: `satellite.cra` is `1.3 Mbit/s`, which is more than the capacity of `6.336 Mbit/s` has for 5 \
             terminals\nhint: at most 1267.2 kbit/s, fewer terminals, or more carriers",
        ),
        (
            "frame = \"small\"\nallocation_delay = 3",
            "geo.toml:4: `satellite.allocation_delay` is `3`, which is too short: a request takes 2 super-frames to the \
             NCC, and its answer as many back\nhint: at least 4",
        ),
        (
            "minimum = 0\nrbdc = false",
            "geo.toml:3: `satellite.minimum` is `0`, which is all there is: `cra`, `rbdc`, `vbdc` and `fca` are off, and \
             nobody would ever get a slot\nhint: at least 1, or switch one of them on",
        ),
        (
            "queue = \"64 kB\"",
            "geo.toml:3: `satellite.queue` is `64 kB`, which is not in packets, which a terminal counts\n\
             hint: a number of packets, as in `1000 pkt`",
        ),
        (
            "release = { a = 0.5, b = 0.6 }",
            "geo.toml:3: `satellite.release.b` is `0.6`, which is out of range\n\
             hint: from 0 to 0.5",
        ),
        (
            "capacity = \"0 bit/s\"",
            "geo.toml:3: `satellite.capacity` is `0 bit/s`, which passes nothing\nhint: from 1 bit/s to 1000 Gbit/s",
        ),
        (
            "carriers = 6",
            "geo.toml:3: `satellite.carriers` is `6`, which is too many to spread 5 terminals over evenly\nhint: at most 5",
        ),
        (
            "frame = \"medium\"",
            "geo.toml:3: `satellite.frame` is `medium`, which is not a frame\n\
             hint: write `small`, `large`, or `{ multi_frame = 24, super_frame = 72 }` with their numbers of slots",
        ),
        (
            "frame = { multi_frame = 24, super_frame = 100 }",
            "geo.toml:3: `satellite.frame.super_frame` is `100`, which is not a multiple of the 24 slots of a \
             multi-frame\nhint: a multiple of `multi_frame`, such as 96 or 120",
        ),
        (
            "frame = { multi_frame = 24 }",
            "geo.toml:3: `satellite.frame.super_frame` is missing\n\
             hint: a whole number from 1 to 1000000: slots of a super-frame, for which they are given out: a multiple of \
             `multi_frame`",
        ),
        (
            "frame = { slot = \"0 B\", multi_frame = 24, super_frame = 72 }",
            "geo.toml:3: `satellite.frame.slot` is `0 B`, which is out of range\nhint: from 1 B to 1000000 B",
        ),
        (
            "propagation = \"11 s\"",
            "geo.toml:3: `satellite.propagation` is `11 s`, which is out of range\nhint: at most 10 s",
        ),
        (
            "vbdc = \"0 s\"",
            "geo.toml:3: `satellite.vbdc` is `0 s`, which is out of range\n\
             hint: above 0 s, or left out",
        ),
        (
            "slots = \"random\"",
            "geo.toml:3: `satellite.slots` is `random`, which is not one of the choices\n\
             hint: allowed: `contiguous`, `spread`",
        ),
        (
            "quick_start = { agent = \"qs\", hold = \"520 ms\" }",
            "geo.toml:3: `satellite.quick_start.hold` has no effect with agent `qs`\n\
             hint: write `agent = \"qsd\"`, or leave `hold` out",
        ),
        (
            "quick_start = { threshold = 0.9 }",
            "geo.toml:3: `satellite.quick_start.threshold` has no effect with agent `none`\n\
             hint: write `agent = \"qs\"`, or leave `threshold` out",
        ),
        (
            "quick_start = { agent = \"qs\", spots = 4 }",
            "geo.toml:3: `satellite.quick_start.spots` has no effect with estimator `broadcast`\n\
             hint: write `estimator = \"listening\"`, or leave `spots` out",
        ),
        (
            "quick_start = { agent = \"qs\", estimator = \"on-demand\", observations = 4 }",
            "geo.toml:3: `satellite.quick_start.observations` has no effect with estimator `on-demand`\n\
             hint: write `estimator = \"broadcast\"`, or leave `observations` out",
        ),
        (
            "fca = true\nquick_start = { agent = \"qs\", estimator = \"tbtp-sum\" }",
            "geo.toml:4: `satellite.quick_start.estimator` is `tbtp-sum`, which sums the slots that are nobody's, and \
             `fca` leaves none\nhint: `broadcast`, `on-demand`, `listening`, or no `fca`",
        ),
        (
            "quick_start = { agent = \"qsd\", hold = \"61 s\" }",
            "geo.toml:3: `satellite.quick_start.hold` is `61 s`, which is out of range\nhint: at most 60 s",
        ),
        (
            "quick_start = { agent = \"qsd\", hold = \"best\" }",
            "geo.toml:3: `satellite.quick_start.hold` is `best`, which is not a duration: it does not begin with a \
             number\nhint: write a number and ns, us, ms, s, min or h, as in `550 ms`",
        ),
        (
            "quick_start = { agent = \"qs\", threshold = 0 }",
            "geo.toml:3: `satellite.quick_start.threshold` is `0`, which approves nothing\nhint: above 0, at most 1",
        ),
        (
            "quick_start = { agent = \"qs\", state_delay = \"0 s\" }",
            "geo.toml:3: `satellite.quick_start.state_delay` is `0 s`, which is out of range\nhint: at least 1 ms",
        ),
        (
            "quick_start = { agent = \"qs\", estimator = \"listening\", \
             fade = { clear = \"0 s\", length = \"1 s\", heard = 0.5 } }",
            "geo.toml:3: `satellite.quick_start.fade.clear` is `0 s`, which is out of range\nhint: at least 1 ms",
        ),
        (
            "[path]\nrate = \"1 Mbit/s\"",
            "geo.toml:3: `path` stands beside `satellite`, and both say what the flows cross\nhint: keep one of them",
        ),
    ];
    let wrong = table.into_iter().filter_map(|(satellite, expected)| {
        let found = refusal(satellite, BETWEEN);
        (found != expected).then(|| format!("--- expected\n{expected}\n+++ found\n{found}\n\n"))
    });
    let wrong: String = wrong.collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_refusal_of_a_flow_over_it_names_file_line_field_value_and_remedy() {
    let table = [
        (
            "",
            "geo.toml:4: `flows[0].terminals` is missing\n\
             hint: say where data enters and leaves, as in `terminals = [1, 2]`, or `\"random\"`",
        ),
        (
            "terminals = [1, 5]",
            "geo.toml:7: `flows[0].terminals` is `[1, 5]`, which names a terminal that there is not: there are 5, \
             numbered from 0\nhint: from 0 to 4",
        ),
        (
            "terminals = [1, 1]",
            "geo.toml:7: `flows[0].terminals` is `[1, 1]`, which is one terminal twice\nhint: two different terminals",
        ),
        (
            "terminals = [1]",
            "geo.toml:7: `flows[0].terminals` is `1 numbers`, which are not two terminals\n\
             hint: write where data enters and leaves, as in `[1, 2]`, or `random`",
        ),
        (
            "terminals = \"any\"",
            "geo.toml:7: `flows[0].terminals` is `any`, which names no terminals\n\
             hint: write where data enters and leaves, as in `[1, 2]`, or `random`",
        ),
        (
            "terminals = [1, 2]\nquick_start = \"79 kbit/s\"",
            "geo.toml:8: `flows[0].quick_start` is `79 kbit/s`, which is out of the range of the Quick-Start option\n\
             hint: from 80 kbit/s to 1.31072 Gbit/s",
        ),
        (
            "terminals = [1, 2]\nquick_start = \"1311 Mbit/s\"",
            "geo.toml:8: `flows[0].quick_start` is `1311 Mbit/s`, which is out of the range of the Quick-Start option\n\
             hint: from 80 kbit/s to 1.31072 Gbit/s",
        ),
        (
            "terminals = [1, 2]\nquick_start = \"320 kbit/s\"\n[[flows]]\ncontroller = \"rap\"\nterminals = [1, 2]\n\
             quick_start = \"320 kbit/s\"",
            "geo.toml:12: `flows[1].quick_start` has no effect on controller `rap`, which does not ask for a rate\n\
             hint: write `tfrc` or `tfrc-sp`, or leave it out",
        ),
        (
            "terminals = [1, 2]\nsend_buffer = \"0 pkt\"",
            "geo.toml:8: `flows[0].send_buffer` is `0 pkt`, which is not a capacity: it is zero\n\
             hint: write a whole number of pkt, or of B, kB, MB, KiB or MiB, as in `50 pkt`, or `unlimited`",
        ),
        (
            "terminals = [1, 2]\ntolerable_delay = \"0 s\"",
            "geo.toml:8: `flows[0].tolerable_delay` is `0 s`, which is out of range\nhint: above 0 s, at most 1 h",
        ),
        (
            "terminals = [1, 2]\narrivals = { interval = \"1 s\" }",
            "geo.toml:8: `flows[0].arrivals.length` is missing\n\
             hint: a mean time, such as `\"60 s\"`; only a kind of stream has its own",
        ),
        (
            "terminals = [1, 2]\narrivals = { interval = \"0 s\", length = \"60 s\" }",
            "geo.toml:8: `flows[0].arrivals.interval` is `0 s`, which is out of range\nhint: at least 1 ms",
        ),
        (
            "terminals = [1, 2]\nstop = \"9 s\"\narrivals = { interval = \"1 s\", length = \"60 s\" }",
            "geo.toml:8: `flows[0].stop` stands beside `arrivals`, which says when flows start and stop\n\
             hint: keep one of them",
        ),
        (
            "terminals = [1, 2]\narrivals = { interval = \"1 ms\", length = \"200 s\" }",
            "geo.toml:1: `sample` is `500 ms`, which makes 24000000 rows for 200000 flows\n\
             hint: a longer interval: at most 10000000 rows",
        ),
    ];
    let wrong = table.into_iter().filter_map(|(flow, expected)| {
        let found = refusal("", flow);
        (found != expected).then(|| format!("--- expected\n{expected}\n+++ found\n{found}\n\n"))
    });
    let wrong: String = wrong.collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn more_flows_than_a_run_can_hold_are_refused() {
    let text = text("", "terminals = [1, 2]\narrivals = { interval = \"1 ms\", length = \"1 s\" }");
    let text = text.replace("duration = \"60 s\"", "duration = \"300 s\"");
    let e = Scenario::parse(&text, "geo.toml").unwrap_err();
    assert_eq!(
        format!("{e}\nhint: {}", e.hint().unwrap_or_default()),
        "geo.toml:8: `flows[0].arrivals.interval` is `1 ms`, which makes about 300000 flows in all\n\
         hint: a longer interval: at most 200000 flows"
    );
}

#[test]
fn a_hold_past_the_no_feedback_timer_runs_with_a_warning_that_names_the_consequence() {
    // RTT_m = 777 ms; 777 + 1,273 = 2,050 > 2,000.
    let warnings = |hold: &str, flow: &str| {
        let quick_start = format!("quick_start = {{ agent = \"qsd\", hold = \"{hold}\" }}");
        let s = Scenario::parse(&text(&quick_start, flow), "geo.toml").unwrap_or_else(|e| panic!("{e}"));
        s.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let asks = "terminals = [1, 2]\nquick_start = \"320 kbit/s\"";
    assert_eq!(
        warnings("max", asks),
        [
            "geo.toml:3: `satellite.quick_start.hold` (T_q) is 1273 ms, which makes the first round trip of `tfrc` 2051 ms: \
          its no-feedback timer of 2000 ms expires before the answer is there, and halves its rate; with at most \
          1222 ms it would not, nor with a `first_timer` above 2051 ms"
        ]
    );
    assert_eq!(warnings("opt", asks), [""; 0]);
    assert_eq!(warnings("max", "terminals = [1, 2]"), [""; 0]);
    assert_eq!(warnings("max", &format!("{asks}\nparameters = {{ first_timer = \"3 s\" }}")), [""; 0]);
}

#[test]
fn what_belongs_to_a_satellite_is_refused_without_one() {
    let refusal = |flow: &str| {
        let text = format!("[path]\nrate = \"1 Mbit/s\"\n[[flows]]\ncontroller = \"tfrc\"\n{flow}\n");
        let e = Scenario::parse(&text, "geo.toml").unwrap_err();
        format!("{e}\nhint: {}", e.hint().unwrap_or_default())
    };
    assert_eq!(
        refusal("terminals = [1, 2]"),
        "geo.toml:5: `flows[0].terminals` has no effect without a satellite\n\
         hint: write `[satellite]` in place of `[path]`, or leave it out"
    );
    assert_eq!(
        refusal("send_buffer = \"2 pkt\""),
        "geo.toml:5: `flows[0].send_buffer` has no effect on a saturated source, which makes a packet when one may be \
         sent\nhint: give the flow a `source` with a rate, or leave it out"
    );
}

#[test]
fn a_satellite_prints_back_to_itself_with_what_its_kinds_of_stream_imply() {
    let text = "duration = \"60 s\"\n[satellite]\nframe = \"small\"\n\
                quick_start = { agent = \"qsd\", hold = \"opt\", estimator = \"listening\" }\n\
                [[flows]]\nname = \"tv\"\ncontroller = \"tfrc\"\nsource = { kind = \"iptv\" }\n\
                terminals = \"random\"\narrivals = { length = \"10 s\" }\nquick_start = \"320 kbit/s\"\n";
    let printed = Scenario::parse(text, "tv.toml").unwrap_or_else(|e| panic!("{e}")).to_toml();
    for line in [
        "frame = \"small\"",
        "capacity = \"6.336 Mbit/s\"",
        "hold = \"opt\"",
        "kind = \"iptv\"",
        "packet_size = \"1316 B\"",
        "send_buffer = \"128 pkt\"",
        "tolerable_delay = \"5 s\"",
        "interval = \"120 s\"",
        "length = \"10 s\"",
        "quick_start = \"320 kbit/s\"",
    ] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
    assert!(!printed.contains("[path]"), "{printed}");
    let again = Scenario::parse(&printed, "tv.toml").unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(again.to_toml(), printed);
}

#[test]
fn the_allocation_delays_in_words_are_those_of_the_frames() {
    let words = format!(
        "{} (large), {} (small)",
        fairpace_path::DamaSpec::large().allocation_delay,
        fairpace_path::DamaSpec::small().allocation_delay
    );
    let crate::param::Usual::Words(said) = crate::SATELLITE.find("allocation_delay").unwrap().usual else {
        panic!("no words")
    };
    assert!(said.starts_with(&words), "{said}");
}
