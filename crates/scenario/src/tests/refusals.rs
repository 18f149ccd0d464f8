//! Every message a scenario can earn, in full.

use super::*;

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
            "geo.toml:2: `duration` is `0 s`, which is out of range\nhint: above 0 s, at most 168 h, a week",
        ),
        (
            with("warm", "warmup = \"10 s\""),
            "geo.toml:1: `warmup` is `10 s`, which leaves nothing of the duration of `10 s` to measure\n\
             hint: shorter than `duration`",
        ),
        (
            with("sample", "sample = \"1 us\""),
            "geo.toml:1: `sample` is `1 us`, which is out of range\nhint: at least 1 ms, at most the `duration`",
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
             `rio`, `codel`, `pie`, `fq-codel`, `dualpi2`",
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
             hint: at least 1 bit/s, 0 only as a step or by `outages`",
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
             hint: at least 1 bit/s in one of them",
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
             hint: allowed: `drop-tail`, `two-priority`, `red`, `rio`, `codel`, `pie`, `fq-codel`, `dualpi2`",
        ),
        (
            with("queue", "queue = { kind = \"drop-tail\", max_p = 0.1 }"),
            "geo.toml:7: `path.queue.max_p` has no effect with kind `drop-tail`\n\
             hint: write `kind = \"red\"` or `kind = \"rio\"`, or leave `max_p` out",
        ),
        (
            with("queue", "queue = { kind = \"red\", normal_max_p = 0.1 }"),
            "geo.toml:7: `path.queue.normal_max_p` has no effect with kind `red`\n\
             hint: write `kind = \"rio\"`, or leave `normal_max_p` out",
        ),
        (
            with(
                "queue",
                "queue = { kind = \"rio\", normal_min_threshold = \"9 pkt\", normal_max_threshold = \"5 pkt\" }",
            ),
            "geo.toml:7: `path.queue.normal_min_threshold` is `9 pkt`, which is not below `normal_max_threshold`\n\
             hint: less than `normal_max_threshold`",
        ),
        (
            with("loss", "outages = [{ start = \"1 s\", length = \"1 s\", in_flight = \"gone\" }]"),
            "geo.toml:8: `path.outages[0].in_flight` is `gone`, which is not one of the choices\n\
             hint: allowed: `delivered`, `lost`",
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
            "geo.toml:12: `flows[0].count` is `0`, which is out of range\nhint: write a whole number from 1 to 100000",
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
            with("controller", "controller = \"tpba\"\ntcp = { handshake = true }"),
            "geo.toml:12: `flows[0].tcp.handshake` has no effect on controller `tpba`, whose connection is there before it \
             sends\nhint: leave it out",
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
