//! A queue as a scenario writes it: its kind, its capacity, and the parameters of that kind.
//!
//! Every parameter is optional and has its default here, so that what a run keeps
//! ([`QueueSpec::resolved`]) and what it uses ([`QueueSpec::model`]) cannot differ.

use super::{Chance, Count, QueueRoom, Room, Size, Time, quantity};
use fairpace_path::{Capacity, CoDelParams, FqCoDelParams, PieParams, QueueModel, RedParams, Thresholds};
use fairpace_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSpec {
    /// `drop-tail`, `two-priority` (push-out of low-priority packets), `red` (random early detection), `codel`, `pie`,
    /// or `fq-codel` (a CoDel queue for each flow).
    #[serde(deserialize_with = "quantity::choice")]
    pub kind: QueueKind,
    /// What it holds, the packet in transmission included: `50 pkt`, `64 kB`, `unlimited`.
    pub capacity: Room,
    /// `red`: the average from which on arrivals are dropped by chance, in packets or bytes; a tenth of the
    /// capacity, but at least 5 packets, if absent. The packet in transmission does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_threshold: Option<Room>,
    /// `red`: the average at which the chance is `max_p`; half the capacity, but at least twice
    /// `min_threshold`, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_threshold: Option<Room>,
    /// `red`: the chance at `max_threshold`; 0.1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_p: Option<Chance>,
    /// `red`: weight of the present queue in the average; 0.002 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Chance>,
    /// `red`: whether the chance rises on to 1 at twice `max_threshold`, instead of jumping there; true if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gentle: Option<bool>,
    /// `red`: whether drops keep a distance of 1 / chance arrivals; true if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// `red`: whether the chance is proportional to the packet's size; false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_size: Option<bool>,
    /// `red`: a packet's mean size, for `by_size` and idle times; `pie`: no drops while no more than two of these
    /// wait. The scenario's `packet_size` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_packet_size: Option<Size>,
    /// `red`, `codel`, `pie`, `fq-codel`: whether ECN-capable packets are marked instead of dropped; true for
    /// `fq-codel`, false for the others if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// `codel`, `fq-codel`: the longest standing wait that is let be, 5 ms if absent; `pie`: the wait aimed at, 15 ms
    /// if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Time>,
    /// `codel`, `fq-codel`: how long all must have waited longer before the first drop, about the longest usual RTT;
    /// 100 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// `codel`, `fq-codel`: the size of a largest packet: no drops while no more than this waits; 1500 B if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// `fq-codel`: what a flow may send in its turn; 1514 B if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Size>,
    /// `fq-codel`: how many queues flows are hashed to; 1024 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Count<1, 65_536>>,
    /// `pie`: how often the chance is computed anew; 15 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_interval: Option<Time>,
    /// `pie`: how long a burst after a quiet time passes without drops; 150 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_burst: Option<Time>,
    /// `pie`: from which chance on ECN-capable packets are dropped all the same; 0.1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_threshold: Option<Chance>,
}

/// How a queue is managed: who goes when, and who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// The arrival goes when the queue is full.
    #[default]
    DropTail,
    /// The youngest low-priority packet goes when the queue is full, if the arrival is a normal one; else
    /// the arrival.
    TwoPriority,
    /// Arrivals go by chance, the more the longer the average queue.
    Red,
    /// Packets go when their turn comes, more often while all have waited too long.
    #[serde(rename = "codel")]
    CoDel,
    /// Arrivals go by a chance that a controller of the wait sets.
    Pie,
    /// Flows take turns, each with a CoDel queue of its own.
    #[serde(rename = "fq-codel")]
    FqCoDel,
}

impl QueueKind {
    /// As a scenario writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            QueueKind::DropTail => "drop-tail",
            QueueKind::TwoPriority => "two-priority",
            QueueKind::Red => "red",
            QueueKind::CoDel => "codel",
            QueueKind::Pie => "pie",
            QueueKind::FqCoDel => "fq-codel",
        }
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec {
            kind: QueueKind::DropTail,
            capacity: Room::unlimited(),
            min_threshold: None,
            max_threshold: None,
            max_p: None,
            weight: None,
            gentle: None,
            wait: None,
            by_size: None,
            mean_packet_size: None,
            ecn: None,
            target: None,
            interval: None,
            mtu: None,
            quantum: None,
            flows: None,
            update_interval: None,
            max_burst: None,
            mark_threshold: None,
        }
    }
}

/// What is wrong with one field of a queue.
pub(super) enum QueueProblem {
    /// It has no effect on this kind; on these it has.
    NoEffect(&'static str, &'static [QueueKind]),
    /// It is needed beside another one.
    Missing(&'static str, &'static str),
    /// Its value, why not, what is allowed.
    Bad(&'static str, String, &'static str, &'static str),
}

impl QueueSpec {
    /// What is wrong with it, if anything is.
    pub(super) fn problem(&self, packet_size: Bytes) -> Option<QueueProblem> {
        use QueueKind::{CoDel, FqCoDel, Pie, Red};
        let given: [(_, _, &'static [QueueKind]); 17] = [
            ("min_threshold", self.min_threshold.is_some(), &[Red]),
            ("max_threshold", self.max_threshold.is_some(), &[Red]),
            ("max_p", self.max_p.is_some(), &[Red]),
            ("weight", self.weight.is_some(), &[Red]),
            ("gentle", self.gentle.is_some(), &[Red]),
            ("wait", self.wait.is_some(), &[Red]),
            ("by_size", self.by_size.is_some(), &[Red]),
            ("mean_packet_size", self.mean_packet_size.is_some(), &[Red, Pie]),
            ("ecn", self.ecn.is_some(), &[Red, CoDel, Pie, FqCoDel]),
            ("target", self.target.is_some(), &[CoDel, Pie, FqCoDel]),
            ("interval", self.interval.is_some(), &[CoDel, FqCoDel]),
            ("mtu", self.mtu.is_some(), &[CoDel, FqCoDel]),
            ("quantum", self.quantum.is_some(), &[FqCoDel]),
            ("flows", self.flows.is_some(), &[FqCoDel]),
            ("update_interval", self.update_interval.is_some(), &[Pie]),
            ("max_burst", self.max_burst.is_some(), &[Pie]),
            ("mark_threshold", self.mark_threshold.is_some(), &[Pie]),
        ];
        if let Some(&(key, _, kinds)) = given.iter().find(|(_, given, kinds)| *given && !kinds.contains(&self.kind)) {
            return Some(QueueProblem::NoEffect(key, kinds));
        }
        for (key, value) in [("max_p", self.max_p), ("weight", self.weight)] {
            if value == Some(Chance::ZERO) {
                return Some(QueueProblem::Bad(key, "0".into(), "never drops anything", "above 0, at most 1"));
            }
        }
        let sizes = [("mean_packet_size", &self.mean_packet_size), ("mtu", &self.mtu), ("quantum", &self.quantum)];
        for (key, size) in sizes {
            if let Some(size) = size.as_ref().filter(|s| s.get() == Bytes::ZERO) {
                return Some(QueueProblem::Bad(key, size.text().to_owned(), "is nothing", "at least 1 B"));
            }
        }
        let times =
            [("target", &self.target), ("interval", &self.interval), ("update_interval", &self.update_interval)];
        for (key, time) in times {
            let range = Duration::from_micros(1)..=Duration::from_secs(3_600);
            if let Some(time) = time.as_ref().filter(|t| !range.contains(&t.get())) {
                return Some(QueueProblem::Bad(key, time.text().to_owned(), "is out of range", "from 1 us to 1 h"));
            }
        }
        match (&self.min_threshold, &self.max_threshold) {
            (Some(_), None) => Some(QueueProblem::Missing("max_threshold", "`min_threshold` needs it beside it")),
            (None, Some(_)) => Some(QueueProblem::Missing("min_threshold", "`max_threshold` needs it beside it")),
            (Some(min), Some(max)) if self.thresholds(packet_size).is_none() => {
                let bad = |key, room: &Room, wrong, allowed| {
                    Some(QueueProblem::Bad(key, room.text().to_owned(), wrong, allowed))
                };
                match (min.get(), max.get()) {
                    (QueueRoom::Unlimited, _) => bad("min_threshold", min, "is no threshold", "packets or bytes"),
                    (_, QueueRoom::Unlimited) => bad("max_threshold", max, "is no threshold", "packets or bytes"),
                    (QueueRoom::Packets(a), QueueRoom::Packets(b)) if a >= b => {
                        bad("min_threshold", min, "is not below `max_threshold`", "less than `max_threshold`")
                    }
                    (QueueRoom::Bytes(a), QueueRoom::Bytes(b)) if a >= b => {
                        bad("min_threshold", min, "is not below `max_threshold`", "less than `max_threshold`")
                    }
                    _ => bad(
                        "max_threshold",
                        max,
                        "is not in the unit of `min_threshold`",
                        "both in packets, or both in bytes",
                    ),
                }
            }
            _ => None,
        }
    }

    /// The thresholds given, or those that the capacity suggests; `None` if they make no sense.
    fn thresholds(&self, packet_size: Bytes) -> Option<Thresholds> {
        match (self.min_threshold.as_ref().map(Room::get), self.max_threshold.as_ref().map(Room::get)) {
            (None, None) => Some(Thresholds::for_capacity(self.path_capacity(), self.mean_packet_size(packet_size))),
            (Some(QueueRoom::Packets(min)), Some(QueueRoom::Packets(max))) if min < max => {
                Some(Thresholds::Packets { min, max })
            }
            (Some(QueueRoom::Bytes(min)), Some(QueueRoom::Bytes(max))) if min < max => {
                Some(Thresholds::Bytes { min, max })
            }
            _ => None,
        }
    }

    fn mean_packet_size(&self, packet_size: Bytes) -> Bytes {
        self.mean_packet_size.as_ref().map_or(packet_size, Size::get)
    }

    fn path_capacity(&self) -> Capacity {
        match self.capacity.get() {
            QueueRoom::Packets(n) => Capacity::Packets(n),
            QueueRoom::Bytes(n) => Capacity::Bytes(n),
            QueueRoom::Unlimited => Capacity::Unlimited,
        }
    }

    /// The link part's parameters. Packets have `packet_size` in this scenario.
    pub fn model(&self, packet_size: Bytes) -> QueueModel {
        let capacity = self.path_capacity();
        match self.kind {
            QueueKind::DropTail => QueueModel::DropTail { capacity },
            QueueKind::TwoPriority => QueueModel::TwoPriority { capacity },
            QueueKind::Red => QueueModel::Red(self.red(packet_size)),
            QueueKind::CoDel => QueueModel::CoDel(self.codel(CoDelParams::new(capacity))),
            QueueKind::Pie => QueueModel::Pie(self.pie(packet_size)),
            QueueKind::FqCoDel => {
                let usual = FqCoDelParams::new(capacity);
                QueueModel::FqCoDel(FqCoDelParams {
                    codel: self.codel(usual.codel),
                    quantum: self.quantum.as_ref().map_or(usual.quantum, Size::get),
                    flows: self.flows.map_or(usual.flows, |n| n.get() as u32),
                })
            }
        }
    }

    fn codel(&self, usual: CoDelParams) -> CoDelParams {
        CoDelParams {
            target: self.target.as_ref().map_or(usual.target, Time::get),
            interval: self.interval.as_ref().map_or(usual.interval, Time::get),
            mtu: self.mtu.as_ref().map_or(usual.mtu, Size::get),
            ecn: self.ecn.unwrap_or(usual.ecn),
            ..usual
        }
    }

    fn pie(&self, packet_size: Bytes) -> PieParams {
        let usual = PieParams::new(self.path_capacity(), self.mean_packet_size(packet_size));
        PieParams {
            target: self.target.as_ref().map_or(usual.target, Time::get),
            update_interval: self.update_interval.as_ref().map_or(usual.update_interval, Time::get),
            max_burst: self.max_burst.as_ref().map_or(usual.max_burst, Time::get),
            mark_threshold: self.mark_threshold.map_or(usual.mark_threshold, |p| p.get().get()),
            ecn: self.ecn.unwrap_or(usual.ecn),
            ..usual
        }
    }

    fn red(&self, packet_size: Bytes) -> RedParams {
        let usual = RedParams::for_capacity(self.path_capacity(), self.mean_packet_size(packet_size));
        let number = |chance: Option<Chance>, usual| chance.map_or(usual, |c| c.get().get());
        RedParams {
            thresholds: self.thresholds(packet_size).unwrap_or(usual.thresholds),
            max_probability: number(self.max_p, usual.max_probability),
            weight: number(self.weight, usual.weight),
            gentle: self.gentle.unwrap_or(usual.gentle),
            wait: self.wait.unwrap_or(usual.wait),
            by_size: self.by_size.unwrap_or(usual.by_size),
            ecn: self.ecn.unwrap_or(usual.ecn),
            ..usual
        }
    }

    /// The same queue with its kind's defaults written out.
    #[must_use]
    pub(super) fn resolved(&self, packet_size: Bytes) -> QueueSpec {
        let spec = QueueSpec { kind: self.kind, capacity: self.capacity.clone(), ..QueueSpec::default() };
        match self.model(packet_size) {
            QueueModel::Red(red) => {
                let (min, max) = match red.thresholds {
                    Thresholds::Packets { min, max } => (QueueRoom::Packets(min), QueueRoom::Packets(max)),
                    Thresholds::Bytes { min, max } => (QueueRoom::Bytes(min), QueueRoom::Bytes(max)),
                };
                QueueSpec {
                    min_threshold: Some(min.into()),
                    max_threshold: Some(max.into()),
                    max_p: Chance::new(red.max_probability),
                    weight: Chance::new(red.weight),
                    gentle: Some(red.gentle),
                    wait: Some(red.wait),
                    by_size: Some(red.by_size),
                    mean_packet_size: Some(red.mean_packet_size.into()),
                    ecn: Some(red.ecn),
                    ..spec
                }
            }
            QueueModel::CoDel(codel) => spec.with_codel(&codel),
            QueueModel::FqCoDel(fq) => QueueSpec {
                quantum: Some(fq.quantum.into()),
                flows: Some(Count::new(u64::from(fq.flows))),
                ..spec.with_codel(&fq.codel)
            },
            QueueModel::Pie(pie) => QueueSpec {
                target: Some(pie.target.into()),
                update_interval: Some(pie.update_interval.into()),
                max_burst: Some(pie.max_burst.into()),
                mark_threshold: Chance::new(pie.mark_threshold),
                mean_packet_size: Some(pie.mean_packet_size.into()),
                ecn: Some(pie.ecn),
                ..spec
            },
            QueueModel::DropTail { .. } | QueueModel::TwoPriority { .. } => spec,
        }
    }

    fn with_codel(self, codel: &CoDelParams) -> QueueSpec {
        QueueSpec {
            target: Some(codel.target.into()),
            interval: Some(codel.interval.into()),
            mtu: Some(codel.mtu.into()),
            ecn: Some(codel.ecn),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Packets;

    fn spec(text: &str) -> QueueSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn red_thresholds_come_from_the_capacity_as_in_the_reference_runs() {
        for (capacity, min, max) in [
            ("54 pkt", "5 pkt", "27 pkt"),
            ("1250 pkt", "125 pkt", "625 pkt"),
            ("8 pkt", "5 pkt", "10 pkt"),
            ("unlimited", "5 pkt", "15 pkt"),
            ("200 kB", "20000 B", "100000 B"),
            ("20 kB", "5000 B", "10000 B"), // five packets of 1,000 bytes
        ] {
            let resolved = spec(&format!("kind = \"red\"\ncapacity = \"{capacity}\"")).resolved(Bytes::new(1_000));
            let thresholds = (resolved.min_threshold.unwrap(), resolved.max_threshold.unwrap());
            assert_eq!((thresholds.0.text(), thresholds.1.text()), (min, max), "{capacity}");
        }
    }

    #[test]
    fn a_resolved_queue_means_the_same_and_resolves_to_itself() {
        for text in [
            "kind = \"drop-tail\"\ncapacity = \"50 pkt\"",
            "kind = \"two-priority\"\ncapacity = \"9 kB\"",
            "kind = \"red\"\ncapacity = \"54 pkt\"",
            "kind = \"red\"\nmin_threshold = \"3 kB\"\nmax_threshold = \"7 kB\"\ngentle = false\necn = true",
            "kind = \"codel\"\ncapacity = \"200 pkt\"\ntarget = \"1500 us\"",
            "kind = \"pie\"\nmax_burst = \"0\"\nmean_packet_size = \"100 B\"",
            "kind = \"fq-codel\"\nflows = 7\necn = false",
        ] {
            let (spec, size) = (spec(text), Bytes::new(256));
            let resolved = spec.resolved(size);
            assert_eq!(resolved.model(size), spec.model(size));
            assert_eq!(resolved.resolved(size), resolved);
            assert_eq!(toml::from_str::<QueueSpec>(&toml::to_string(&resolved).unwrap()).unwrap(), resolved);
        }
    }

    #[test]
    fn what_the_scenario_says_reaches_the_link() {
        let text = "kind = \"red\"\ncapacity = \"54 pkt\"\nmin_threshold = \"6 pkt\"\nmax_threshold = \"20 pkt\"\n\
                    max_p = 0.02\nweight = 0.01\ngentle = false\nwait = false\nby_size = true\n\
                    mean_packet_size = \"500 B\"\necn = true";
        let expected = RedParams {
            capacity: Capacity::Packets(Packets::new(54)),
            thresholds: Thresholds::Packets { min: Packets::new(6), max: Packets::new(20) },
            max_probability: 0.02,
            weight: 0.01,
            gentle: false,
            wait: false,
            by_size: true,
            mean_packet_size: Bytes::new(500),
            ecn: true,
        };
        assert_eq!(spec(text).model(Bytes::new(1_000)), QueueModel::Red(expected));

        let ms = Duration::from_millis;
        let text = "kind = \"fq-codel\"\ncapacity = \"99 pkt\"\ntarget = \"7 ms\"\ninterval = \"70 ms\"\n\
                    mtu = \"300 B\"\nquantum = \"400 B\"\nflows = 8\necn = false";
        let capacity = Capacity::Packets(Packets::new(99));
        let codel = CoDelParams { capacity, target: ms(7), interval: ms(70), mtu: Bytes::new(300), ecn: false };
        let expected = FqCoDelParams { codel, quantum: Bytes::new(400), flows: 8 };
        assert_eq!(spec(text).model(Bytes::new(1_000)), QueueModel::FqCoDel(expected));
        let text = text.replace("fq-codel", "codel").replace("quantum = \"400 B\"\nflows = 8\n", "");
        assert_eq!(spec(&text).model(Bytes::new(1_000)), QueueModel::CoDel(codel));

        let text = "kind = \"pie\"\ntarget = \"7 ms\"\nupdate_interval = \"3 ms\"\nmax_burst = \"20 ms\"\n\
                    mark_threshold = 0.2\nmean_packet_size = \"500 B\"\necn = true";
        let expected = PieParams {
            target: ms(7),
            update_interval: ms(3),
            max_burst: ms(20),
            mark_threshold: 0.2,
            ecn: true,
            ..PieParams::new(Capacity::Unlimited, Bytes::new(500))
        };
        assert_eq!(spec(text).model(Bytes::new(1_000)), QueueModel::Pie(expected));
    }
}
