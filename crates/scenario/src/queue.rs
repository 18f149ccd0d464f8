//! Queues as a scenario writes them: one constant for each kind, a row for each parameter.

use crate::field::{Field, Param};
use crate::param::{CHANCE, Form, Row, Value};
use crate::part::{AnyKind, Family, Given, Kind, Part, PartProblem};
use crate::quantity::Room;
use fairpace_path::{
    Capacity, CoDelParams, DualPi2Params, FqCoDelParams, PieParams, QueueModel, RedParams, RioParams, Thresholds,
};
use fairpace_units::{Bounds, Bytes, Duration};

/// All queues. Defaults depend on the size of the scenario's packets.
#[derive(Debug)]
pub enum Queue {}

/// A queue: who goes when, and who waits.
pub type QueueSpec = Part<Queue>;

impl Family for Queue {
    type Model = QueueModel;
    type Context = Bytes;
    const NAME: &'static str = "QueueSpec";
    const DOC: &'static str = "A queue.";
    const KINDS: &'static [&'static dyn AnyKind<Queue>] =
        &[&DROP_TAIL, &TWO_PRIORITY, &RED, &RIO, &CODEL, &PIE, &FQ_CODEL, &DUALPI2];
}

const DROP_TAIL: Kind<Queue, Capacity> = Kind {
    name: "drop-tail",
    doc: "the arrival goes when there is no room",
    example: "capacity = \"50 pkt\"",
    params: &[capacity(|at| Field::Capacity(at))],
    usual: |_, _| Capacity::Unlimited,
    check: |_, _| None,
    model: |capacity, _, _| QueueModel::DropTail { capacity },
};

const TWO_PRIORITY: Kind<Queue, Capacity> = Kind {
    name: "two-priority",
    doc: "a normal arrival pushes out the youngest low-priority packet when there is no room",
    example: "capacity = \"50 pkt\"",
    params: &[capacity(|at| Field::Capacity(at))],
    usual: |_, _| Capacity::Unlimited,
    check: |_, _| None,
    model: |capacity, _, _| QueueModel::TwoPriority { capacity },
};

/// [Floyd and Jacobson 1993], as in ns-2.
const RED: Kind<Queue, RedParams> = Kind {
    name: "red",
    doc: "arrivals are dropped or marked by chance, the more the longer the queue is on average (RED)",
    example: "capacity = \"54 pkt\", min_threshold = \"5 pkt\", max_threshold = \"27 pkt\"",
    params: &[
        capacity(|red| Field::Capacity(&mut red.capacity)),
        Param {
            row: Row::new(
                "min_threshold",
                "min_th, `thresh_`",
                Form::Room,
                "the average from which on arrivals are dropped by chance; the packet in transmission does not count",
            )
            .usually("a tenth of the capacity, at least 5 pkt"),
            at: |red| Field::Low(&mut red.thresholds),
        },
        Param {
            row: Row::new(
                "max_threshold",
                "max_th, `maxthresh_`",
                Form::Room,
                "the average at which the chance is `max_p`",
            )
            .usually("half the capacity, at least twice `min_threshold`"),
            at: |red| Field::High(&mut red.thresholds),
        },
        Param {
            row: Row::new("max_p", "max_p, 1/`linterm_`", SOME_CHANCE, "the chance at `max_threshold`").wrong(NEVER),
            at: |red| Field::Number(&mut red.max_probability),
        },
        Param { row: WEIGHT, at: |red| Field::Number(&mut red.weight) },
        Param { row: GENTLE, at: |red| Field::Flag(&mut red.gentle) },
        Param { row: WAIT, at: |red| Field::Flag(&mut red.wait) },
        Param { row: BY_SIZE, at: |red| Field::Flag(&mut red.by_size) },
        Param { row: MEAN_SIZE, at: |red| Field::Bytes(&mut red.mean_packet_size) },
        ecn(|red| Field::Flag(&mut red.ecn)),
    ],
    usual: |given, packet_size| RedParams::for_capacity(room(given), mean_size(given, *packet_size)),
    check: |given, _| thresholds(given, ["min_threshold", "max_threshold"]),
    model: |red, _, _| QueueModel::Red(red),
};

/// [Clark and Fang 1998], as in ns-2 where they leave a choice.
const RIO: Kind<Queue, RioParams> = Kind {
    name: "rio",
    doc: "RED by class: low-priority arrivals by the average of all that wait, normal ones by that of the normal ones (RIO)",
    example: "capacity = \"50 pkt\", min_threshold = \"5 pkt\", max_threshold = \"15 pkt\"",
    params: &[
        capacity(|rio| Field::Capacity(&mut rio.all.capacity)),
        Param {
            row: Row::new(
                "min_threshold",
                "min_out, `out_thresh_`",
                Form::Room,
                "the average of all that wait from which on low-priority arrivals are dropped by chance",
            )
            .usually("a tenth of the capacity, at least 5 pkt"),
            at: |rio| Field::Low(&mut rio.all.thresholds),
        },
        Param {
            row: Row::new(
                "max_threshold",
                "max_out, `out_maxthresh_`",
                Form::Room,
                "the average at which their chance is `max_p`",
            )
            .usually("half the capacity, at least twice `min_threshold`"),
            at: |rio| Field::High(&mut rio.all.thresholds),
        },
        Param {
            row: Row::new("max_p", "P_max_out, 1/`out_linterm_`", SOME_CHANCE, "the chance at `max_threshold`")
                .wrong(NEVER),
            at: |rio| Field::Number(&mut rio.all.max_probability),
        },
        Param {
            row: Row::new(
                "normal_min_threshold",
                "min_in, `in_thresh_`",
                Form::Room,
                "the average of the normal packets that wait from which on normal arrivals are dropped by chance",
            )
            .usually("`max_threshold`"),
            at: |rio| Field::Low(&mut rio.inside),
        },
        Param {
            row: Row::new(
                "normal_max_threshold",
                "max_in, `in_maxthresh_`",
                Form::Room,
                "the average at which their chance is `normal_max_p`",
            )
            .usually("twice `max_threshold`"),
            at: |rio| Field::High(&mut rio.inside),
        },
        Param {
            row: Row::new(
                "normal_max_p",
                "P_max_in, 1/`in_linterm_`",
                SOME_CHANCE,
                "the chance at `normal_max_threshold`",
            )
            .wrong(NEVER),
            at: |rio| Field::Number(&mut rio.inside_max_probability),
        },
        Param { row: WEIGHT, at: |rio| Field::Number(&mut rio.all.weight) },
        Param { row: GENTLE, at: |rio| Field::Flag(&mut rio.all.gentle) },
        Param { row: WAIT, at: |rio| Field::Flag(&mut rio.all.wait) },
        Param { row: BY_SIZE, at: |rio| Field::Flag(&mut rio.all.by_size) },
        Param { row: MEAN_SIZE, at: |rio| Field::Bytes(&mut rio.all.mean_packet_size) },
        ecn(|rio| Field::Flag(&mut rio.all.ecn)),
    ],
    usual: |given, packet_size| {
        let mut all = RedParams::for_capacity(room(given), mean_size(given, *packet_size));
        if let [Capacity::Packets(min), Capacity::Packets(max)] = given_thresholds(given) {
            all.thresholds = Thresholds::Packets { min, max };
        } else if let [Capacity::Bytes(min), Capacity::Bytes(max)] = given_thresholds(given) {
            all.thresholds = Thresholds::Bytes { min, max };
        }
        RioParams::beside(all)
    },
    check: |given, _| {
        thresholds(given, ["min_threshold", "max_threshold"])
            .or_else(|| thresholds(given, ["normal_min_threshold", "normal_max_threshold"]))
    },
    model: |rio, _, _| QueueModel::Rio(rio),
};

/// [RFC 8289]
const CODEL: Kind<Queue, CoDelParams> = Kind {
    name: "codel",
    doc: "packets are dropped or marked at the head, more often while all have waited too long (CoDel)",
    example: "capacity = \"1000 pkt\"",
    params: &[
        capacity(|codel| Field::Capacity(&mut codel.capacity)),
        Param { row: TARGET, at: |codel| Field::Duration(&mut codel.target) },
        Param { row: INTERVAL, at: |codel| Field::Duration(&mut codel.interval) },
        Param { row: MTU, at: |codel| Field::Bytes(&mut codel.mtu) },
        ecn(|codel| Field::Flag(&mut codel.ecn)),
    ],
    usual: |_, _| CoDelParams::new(Capacity::Unlimited),
    check: |_, _| None,
    model: |codel, _, _| QueueModel::CoDel(codel),
};

/// [RFC 8033]
const PIE: Kind<Queue, PieParams> = Kind {
    name: "pie",
    doc: "arrivals are dropped or marked by a chance that holds the wait at a target (PIE)",
    example: "capacity = \"1000 pkt\", target = \"20 ms\"",
    params: &[
        capacity(|pie| Field::Capacity(&mut pie.capacity)),
        Param {
            row: Row::new("target", "QDELAY_REF [RFC 8033 §4.3]", SOME_TIME, "the wait aimed at"),
            at: |pie| Field::Duration(&mut pie.target),
        },
        Param {
            row: Row::new(
                "update_interval",
                "T_UPDATE [RFC 8033 §4.2]",
                SOME_TIME,
                "how often the chance is computed anew",
            ),
            at: |pie| Field::Duration(&mut pie.update_interval),
        },
        Param {
            row: Row::new(
                "max_burst",
                "MAX_BURST [RFC 8033 §4.4]",
                Form::Time(Bounds::ANY),
                "how long a burst after a quiet time passes without drops",
            ),
            at: |pie| Field::Duration(&mut pie.max_burst),
        },
        Param {
            row: Row::new(
                "mean_packet_size",
                "MEAN_PKTSIZE [RFC 8033 §4.1]",
                SOME_SIZE,
                "no drops while no more than two of these wait",
            )
            .wrong(NOTHING)
            .usually("`packet_size`"),
            at: |pie| Field::Bytes(&mut pie.mean_packet_size),
        },
        ecn(|pie| Field::Flag(&mut pie.ecn)),
        Param {
            row: Row::new(
                "mark_threshold",
                "mark_ecnth [RFC 8033 §5.1]",
                CHANCE,
                "from which chance on ECN-capable packets are dropped all the same",
            ),
            at: |pie| Field::Number(&mut pie.mark_threshold),
        },
    ],
    usual: |given, packet_size| PieParams::new(Capacity::Unlimited, mean_size(given, *packet_size)),
    check: |_, _| None,
    model: |pie, _, _| QueueModel::Pie(pie),
};

/// [RFC 8290]
const FQ_CODEL: Kind<Queue, FqCoDelParams> = Kind {
    name: "fq-codel",
    doc: "flows take turns, new ones first, each with a CoDel queue of its own (FQ-CoDel)",
    example: "capacity = \"1000 pkt\"",
    params: &[
        capacity(|fq| Field::Capacity(&mut fq.codel.capacity)),
        Param { row: TARGET, at: |fq| Field::Duration(&mut fq.codel.target) },
        Param { row: INTERVAL, at: |fq| Field::Duration(&mut fq.codel.interval) },
        Param { row: MTU, at: |fq| Field::Bytes(&mut fq.codel.mtu) },
        Param {
            row: Row::new("quantum", "quantum [RFC 8290 §5.2.4]", SOME_SIZE, "what a flow may send in its turn")
                .wrong(NOTHING),
            at: |fq| Field::Bytes(&mut fq.quantum),
        },
        Param {
            row: Row::new("flows", "[RFC 8290 §5.2.5]", Form::Whole(1, 65_536), "how many queues flows are hashed to"),
            at: |fq| Field::U32(&mut fq.flows),
        },
        ecn(|fq| Field::Flag(&mut fq.codel.ecn)),
    ],
    usual: |_, _| FqCoDelParams::new(Capacity::Unlimited),
    check: |_, _| None,
    model: |fq, _, _| QueueModel::FqCoDel(fq),
};

/// [RFC 9332]
const DUALPI2: Kind<Queue, DualPi2Params> = Kind {
    name: "dualpi2",
    doc: "ECT(1) packets have a short queue of their own, and both queues mark by one controller (DualPI2, for L4S)",
    example: "capacity = \"1000 pkt\"",
    params: &[
        capacity(|dual| Field::Capacity(&mut dual.capacity)),
        Param {
            row: Row::new("target", "target [RFC 9332 App. A.1]", SOME_TIME, "the wait aimed at"),
            at: |dual| Field::Duration(&mut dual.target),
        },
        Param {
            row: Row::new(
                "update_interval",
                "Tupdate [RFC 9332 App. A.1]",
                SOME_TIME,
                "how often the base chance p' is computed anew",
            ),
            at: |dual| Field::Duration(&mut dual.update_interval),
        },
        Param {
            row: Row::new(
                "alpha",
                "alpha [RFC 9332 App. A.1]",
                GAIN,
                "what p' rises by at an update, for each second above the target",
            ),
            at: |dual| Field::Number(&mut dual.alpha),
        },
        Param {
            row: Row::new(
                "beta",
                "beta [RFC 9332 App. A.1]",
                GAIN,
                "what p' rises by at an update, for each second above the wait at the update before",
            ),
            at: |dual| Field::Number(&mut dual.beta),
        },
        Param {
            row: Row::new(
                "coupling",
                "k [RFC 9332 §2.1]",
                Form::Real(Bounds::above(0.0).up_to(1_000.0)),
                "the ECT(1) queue marks with k p', the other one with p'^2",
            ),
            at: |dual| Field::Number(&mut dual.coupling),
        },
        Param {
            row: Row::new(
                "min_threshold",
                "minTh [RFC 9332 App. A.1]",
                Form::Time(Bounds::ANY),
                "the wait from which on the ECT(1) queue marks by itself",
            ),
            at: |dual| Field::Duration(&mut dual.threshold),
        },
        Param {
            row: Row::new(
                "range",
                "range [RFC 9332 App. A.1]",
                Form::Time(Bounds::ANY),
                "the further wait over which that chance rises from 0 to 1",
            ),
            at: |dual| Field::Duration(&mut dual.range),
        },
        Param {
            row: Row::new(
                "threshold_packets",
                "Th_len [RFC 9332 App. A.1]",
                Form::Whole(0, 65_536),
                "that chance is 0 while fewer packets wait behind the one that leaves",
            ),
            at: |dual| Field::U32(&mut dual.threshold_packets),
        },
        Param {
            row: Row::new(
                "classic_weight",
                "`classic_protection` [Linux]",
                Form::Chance(Bounds::above(0.0).below(1.0)),
                "the other queue's share of the link while both have packets",
            ),
            at: |dual| Field::Number(&mut dual.classic_weight),
        },
        Param {
            row: Row::new("mtu", "MTU", SOME_SIZE, "a largest packet's size: the ECT(1) queue's lead is counted in it")
                .wrong(NOTHING),
            at: |dual| Field::Bytes(&mut dual.mtu),
        },
    ],
    usual: |_, _| DualPi2Params::new(Capacity::Unlimited),
    check: |_, _| None,
    model: |dual, _, _| QueueModel::DualPi2(dual),
};

const WEIGHT: Row =
    Row::new("weight", "w_q, `q_weight_`", SOME_CHANCE, "weight of the present queue in the average").wrong(NEVER);
const GENTLE: Row = Row::new(
    "gentle",
    "`gentle_`",
    Form::Flag,
    "whether the chance rises on to 1 at twice `max_threshold`, instead of jumping there",
);
const WAIT: Row =
    Row::new("wait", "`wait_`", Form::Flag, "whether drops keep a distance of at least 1 / chance arrivals");
const BY_SIZE: Row =
    Row::new("by_size", "`bytes_`", Form::Flag, "whether the chance is proportional to the packet's size");
const MEAN_SIZE: Row =
    Row::new("mean_packet_size", "s, `mean_pktsize_`", SOME_SIZE, "a packet's mean size, for `by_size` and idle times")
        .wrong(NOTHING)
        .usually("`packet_size`");

const GAIN: Form = Form::Real(QueueModel::GAINS);
const SOME_CHANCE: Form = Form::Chance(Bounds::above(0.0).up_to(1.0));
const SOME_SIZE: Form = Form::Size(Bounds::at_least(Bytes::new(1)));
const SOME_TIME: Form = Form::Time(Bounds::of(Duration::from_micros(1), Duration::from_secs(3_600)));
const NEVER: &str = "never drops anything";
const NOTHING: &str = "is nothing";

const TARGET: Row = Row::new("target", "TARGET [RFC 8289 §4.3]", SOME_TIME, "the longest standing wait that is let be");
const INTERVAL: Row = Row::new(
    "interval",
    "INTERVAL [RFC 8289 §4.2]",
    SOME_TIME,
    "how long all must have waited longer before the first drop: about the longest usual RTT",
);
const MTU: Row = Row::new(
    "mtu",
    "MAXPACKET [RFC 8289 §5.3]",
    SOME_SIZE,
    "a largest packet's size: no drops while no more than this waits",
)
.wrong(NOTHING);

const fn capacity<M>(at: fn(&mut M) -> Field<'_>) -> Param<M> {
    Param { row: Row::new("capacity", "", Form::Room, "what it holds, the packet in transmission included"), at }
}

const fn ecn<M>(at: fn(&mut M) -> Field<'_>) -> Param<M> {
    Param { row: Row::new("ecn", "", Form::Flag, "whether ECN-capable packets are marked instead of dropped"), at }
}

impl QueueSpec {
    /// The room of the queue.
    pub fn capacity(&self) -> Room {
        match self.get("capacity") {
            Some(Value::Room(room)) => room.clone(),
            _ => Room::unlimited(),
        }
    }

    /// Makes it hold so much.
    pub fn set_capacity(&mut self, room: Room) {
        self.set("capacity", room);
    }
}

fn room(given: &Given) -> Capacity {
    match given.get("capacity") {
        Some(Value::Room(room)) => room.get(),
        _ => Capacity::Unlimited,
    }
}

fn mean_size(given: &Given, packet_size: Bytes) -> Bytes {
    match given.get("mean_packet_size") {
        Some(Value::Size(size)) => size.get(),
        _ => packet_size,
    }
}

/// The thresholds of all packets as they are given; without a limit if they are not.
fn given_thresholds(given: &Given) -> [Capacity; 2] {
    ["min_threshold", "max_threshold"].map(|key| match given.get(key) {
        Some(Value::Room(room)) => room.get(),
        _ => Capacity::Unlimited,
    })
}

/// Both thresholds or none, in one unit, the lower one first.
fn thresholds(given: &Given, keys: [&str; 2]) -> Option<PartProblem> {
    let missing = |key: usize| {
        let allowed = format!("`{}` needs it beside it", keys[1 - key]);
        Some(PartProblem::Missing(keys[key].to_owned(), allowed))
    };
    let bad = |key: usize, room: &Value, wrong: &str, allowed: &str| {
        Some(PartProblem::Bad(keys[key].to_owned(), room.to_string(), wrong.to_owned(), allowed.to_owned()))
    };
    let (min, max) = match keys.map(|key| given.get(key)) {
        [None, None] => return None,
        [Some(_), None] => return missing(1),
        [None, Some(_)] => return missing(0),
        [Some(min), Some(max)] => (min, max),
    };
    let (Value::Room(low), Value::Room(high)) = (min, max) else { return None };
    let [not_below, below] = ["is not below", "less than"].map(|word| format!("{word} `{}`", keys[1]));
    match (low.get(), high.get()) {
        (Capacity::Unlimited, _) => bad(0, min, "is no threshold", "packets or bytes"),
        (_, Capacity::Unlimited) => bad(1, max, "is no threshold", "packets or bytes"),
        (Capacity::Packets(a), Capacity::Packets(b)) if a >= b => bad(0, min, &not_below, &below),
        (Capacity::Bytes(a), Capacity::Bytes(b)) if a >= b => bad(0, min, &not_below, &below),
        (Capacity::Packets(_), Capacity::Packets(_)) | (Capacity::Bytes(_), Capacity::Bytes(_)) => None,
        _ => bad(1, max, &format!("is not in the unit of `{}`", keys[0]), "both in packets, or both in bytes"),
    }
}

#[cfg(test)]
mod tests;
