//! Queues as plain data: who waits, and who goes when.

use fairpace_units::{Bounds, Bytes, Duration, Packets};

/// The rule of a queue: the packets that wait, and the one that goes when there is no room for an arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueModel {
    /// First in, first out; an arrival that finds no room is dropped.
    DropTail {
        /// Room for the packet in transmission and those behind it.
        capacity: Capacity,
    },
    /// First in, first out; a normal arrival that finds no room pushes out the youngest waiting
    /// [`Class::Low`](fairpace_units::Class::Low) packet [rcs §III-A].
    TwoPriority {
        /// Room for the packet in transmission and those behind it.
        capacity: Capacity,
    },
    /// First in, first out; arrivals are dropped or marked by chance, the more the longer the
    /// average queue [Floyd and Jacobson 1993].
    Red(RedParams),
    /// RED for two classes in one queue: low-priority packets by the average of all that wait, normal ones by the
    /// average of the normal ones [Clark and Fang 1998].
    Rio(RioParams),
    /// First in, first out; packets are dropped or marked when their turn comes, at growing
    /// frequency while all have waited too long [RFC 8289].
    CoDel(CoDelParams),
    /// First in, first out; arrivals are dropped or marked by a chance that a controller of the
    /// queuing delay sets [RFC 8033].
    Pie(PieParams),
    /// Flows take turns, each with a CoDel queue of its own; new ones go first [RFC 8290].
    FqCoDel(FqCoDelParams),
    /// Two queues with coupled marking: scalable (L4S) traffic in one, all other traffic in the other
    /// [RFC 9332].
    DualPi2(DualPi2Params),
}

impl QueueModel {
    /// The gains that a controller of the wait may have (PIE, DualPI2).
    pub const GAINS: Bounds<f64> = Bounds::of(0.0, 1e9);

    /// How much it holds.
    pub const fn capacity(&self) -> Capacity {
        match self {
            QueueModel::DropTail { capacity } | QueueModel::TwoPriority { capacity } => *capacity,
            QueueModel::Red(red) => red.capacity,
            QueueModel::Rio(rio) => rio.all.capacity,
            QueueModel::CoDel(codel) => codel.capacity,
            QueueModel::Pie(pie) => pie.capacity,
            QueueModel::FqCoDel(fq) => fq.codel.capacity,
            QueueModel::DualPi2(dual) => dual.capacity,
        }
    }
}

impl Default for QueueModel {
    fn default() -> Self {
        QueueModel::DropTail { capacity: Capacity::Unlimited }
    }
}

/// The parameters of a RED queue [Floyd and Jacobson 1993; ns-2 2.35 `queue/red.cc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// The hard limit: room for the packet in transmission and those behind it. ns-2's RED refuses
    /// when `limit_` packets wait, so its `limit_ 50` is 51 packets here.
    pub capacity: Capacity,
    /// Between which averages arrivals are dropped by chance. The average counts what waits, not
    /// the packet in transmission.
    pub thresholds: Thresholds,
    /// The chance as the average reaches the upper threshold, in (0, 1] (max_p; 1 / `linterm_`).
    pub max_probability: f64,
    /// Of the present queue in the moving average, in (0, 1] (w_q, `q_weight_`).
    pub weight: f64,
    /// Whether the chance rises to 1 at twice the upper threshold, instead of jumping there at it.
    pub gentle: bool,
    /// Whether drops keep a distance of at least 1 / chance arrivals (`wait_`).
    pub wait: bool,
    /// Whether the chance is proportional to the packet's size (`bytes_`).
    pub by_size: bool,
    /// Of a packet, in bytes, at least one: the step of the average in an idle time, and what
    /// `by_size` compares with (`mean_pktsize_`).
    pub mean_packet_size: Bytes,
    /// Whether ECN-capable packets are marked where chance decides [RFC 3168 §7].
    pub ecn: bool,
}

/// Two queue lengths in one unit, the lower first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {
    /// The queue is measured in packets.
    Packets {
        /// The lower one (min_th, `thresh_`).
        min: Packets,
        /// The upper one (max_th, `maxthresh_`); above the lower one.
        max: Packets,
    },
    /// The queue is measured in bytes (ns-2's `queue_in_bytes_`).
    Bytes {
        /// The lower one.
        min: Bytes,
        /// The upper one; above the lower one.
        max: Bytes,
    },
}

impl Thresholds {
    /// Thresholds for a queue of that capacity: the lower a tenth of it, at least five packets; the
    /// upper half of it, at least twice the lower one [RED §5: at least twice]. Without a limit 5 and
    /// 15 packets, ns-2's defaults.
    pub fn for_capacity(capacity: Capacity, mean_packet_size: Bytes) -> Thresholds {
        match capacity {
            Capacity::Packets(n) => {
                let min = (n.get() / 10).max(5);
                Thresholds::Packets { min: Packets::new(min), max: Packets::new((n.get() / 2).max(2 * min)) }
            }
            Capacity::Bytes(n) => {
                let min = (n.get() / 10).max(mean_packet_size.get().saturating_mul(5));
                let max = (n.get() / 2).max(min.saturating_mul(2));
                Thresholds::Bytes { min: Bytes::new(min), max: Bytes::new(max) }
            }
            Capacity::Unlimited => Thresholds::Packets { min: Packets::new(5), max: Packets::new(15) },
        }
    }
}

impl RedParams {
    /// The usual parameters for a queue of that capacity: thresholds from it, weight 0.002, max_p
    /// 0.1, gentle, waiting, no ECN.
    pub fn for_capacity(capacity: Capacity, mean_packet_size: Bytes) -> RedParams {
        RedParams {
            capacity,
            thresholds: Thresholds::for_capacity(capacity, mean_packet_size),
            max_probability: RedParams::MAX_PROBABILITY,
            weight: RedParams::WEIGHT,
            gentle: true,
            wait: true,
            by_size: false,
            mean_packet_size,
            ecn: false,
        }
    }

    /// w_q of [RED §4].
    pub const WEIGHT: f64 = 0.002;
    /// max_p as recommended since 1997 (the paper's simulations have 0.02), ns-2's default.
    pub const MAX_PROBABILITY: f64 = 0.1;
}

/// The parameters of a RIO queue [Clark and Fang 1998; ns-2 2.35 `queue/rio.cc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RioParams {
    /// Of low-priority packets, by the average of all that wait; all but thresholds and chance is that of normal
    /// packets, too.
    pub all: RedParams,
    /// Between which averages of the normal packets that wait normal arrivals are dropped by chance.
    pub inside: Thresholds,
    /// The chance of a normal packet as that average reaches the upper threshold, in (0, 1].
    pub inside_max_probability: f64,
}

impl RioParams {
    /// RED for low-priority packets; normal ones are dropped where those have all gone: from the others' upper threshold to
    /// twice that, with the chance 0.02 there [Clark and Fang 1998].
    pub const fn beside(all: RedParams) -> RioParams {
        let inside = match all.thresholds {
            Thresholds::Packets { max, .. } => {
                Thresholds::Packets { min: max, max: Packets::new(max.get().saturating_mul(2)) }
            }
            Thresholds::Bytes { max, .. } => {
                Thresholds::Bytes { min: max, max: Bytes::new(max.get().saturating_mul(2)) }
            }
        };
        RioParams { all, inside, inside_max_probability: 0.02 }
    }
}

/// How much a queue holds, **the packet in transmission included**.
///
/// So `Packets(50)` is one packet in transmission and 49 waiting, which is what ns-2's
/// `queue-limit 50` does: its `DropTail::enque` refuses an arrival when `length + 1 >= limit`, so
/// at most `limit - 1` packets wait, and the one in transmission has already been dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capacity {
    /// So many packets of any size, at least one.
    Packets(Packets),
    /// So many bytes, at least one; a larger packet never gets through.
    Bytes(Bytes),
    /// No limit.
    #[default]
    Unlimited,
}

/// The parameters of a CoDel queue [RFC 8289].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelParams {
    /// The hard limit: room for the packet in transmission and those behind it.
    pub capacity: Capacity,
    /// The longest standing wait that is let be (TARGET); 5 ms [RFC 8289 §4.3].
    pub target: Duration,
    /// How long all must have waited longer before the first drop (INTERVAL), about the longest
    /// usual RTT; 100 ms [RFC 8289 §4.2].
    pub interval: Duration,
    /// The size of a largest packet (MAXPACKET), at least one byte: while no more than this waits,
    /// nothing is dropped; 1,500 bytes.
    pub mtu: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl CoDelParams {
    /// The RFC's constants, without ECN.
    pub const fn new(capacity: Capacity) -> CoDelParams {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        CoDelParams { capacity, target, interval, mtu: Bytes::new(1_500), ecn: false }
    }
}

/// The parameters of an FQ-CoDel queue [RFC 8290].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelParams {
    /// Of each flow's queue. Its capacity is that of all together; when there is no room, the queue
    /// with the most bytes loses packets from its head.
    pub codel: CoDelParams,
    /// The bytes that a flow may send in its turn, at least one; 1,514 [RFC 8290 §5.2.4].
    pub quantum: Bytes,
    /// How many queues flows are hashed to, at least one; 1,024 [RFC 8290 §5.2.5].
    pub flows: u32,
}

impl FqCoDelParams {
    /// The RFC's constants, with ECN as it says [RFC 8290 §5.2.6].
    pub const fn new(capacity: Capacity) -> FqCoDelParams {
        let codel = CoDelParams { ecn: true, ..CoDelParams::new(capacity) };
        FqCoDelParams { codel, quantum: Bytes::new(1_514), flows: 1_024 }
    }
}

/// The parameters of a PIE queue [RFC 8033].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieParams {
    /// The hard limit: room for the packet in transmission and those behind it.
    pub capacity: Capacity,
    /// The queuing delay aimed at (QDELAY_REF); 15 ms.
    pub target: Duration,
    /// How often the chance is computed anew (T_UPDATE); 15 ms.
    pub update_interval: Duration,
    /// How long a burst after a quiet time passes without drops (MAX_BURST); 150 ms.
    pub max_burst: Duration,
    /// Weight of the distance from the target, per second of it; 1/8.
    pub alpha: f64,
    /// Weight of the change since the last update, per second of it; 5/4.
    pub beta: f64,
    /// The size of a packet, at least one byte: nothing is dropped while no more than two of these
    /// wait (MEAN_PKTSIZE).
    pub mean_packet_size: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped while the chance is low.
    pub ecn: bool,
    /// From which chance on they are dropped all the same (mark_ecnth), in [0, 1]; 0.1.
    pub mark_threshold: f64,
}

impl PieParams {
    /// The RFC's constants, without ECN.
    pub const fn new(capacity: Capacity, mean_packet_size: Bytes) -> PieParams {
        PieParams {
            capacity,
            target: Duration::from_millis(15),
            update_interval: Duration::from_millis(15),
            max_burst: Duration::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            mean_packet_size,
            ecn: false,
            mark_threshold: 0.1,
        }
    }
}

/// The parameters of a DualPI2 queue [RFC 9332].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Params {
    /// The hard limit: room for the packet in transmission and those behind it, of both queues together.
    pub capacity: Capacity,
    /// The queuing delay aimed at (target), above zero; 15 ms.
    pub target: Duration,
    /// How often the base chance p' is computed anew (Tupdate), above zero; 16 ms.
    pub update_interval: Duration,
    /// Weight of the distance from the target (alpha), per second of it, 0 or above; 0.16.
    pub alpha: f64,
    /// Weight of the change since the last update (beta), per second of it, 0 or above; 3.2.
    pub beta: f64,
    /// The coupling factor (k), above 0: low-latency packets are marked with k p', classic ones marked or dropped
    /// with p'²; 2.
    pub coupling: f64,
    /// From which wait on the low-latency queue marks by itself (minTh); 0.8 ms.
    pub threshold: Duration,
    /// Over how much more wait its chance rises from 0 to 1 (range); zero is a step; 0.4 ms.
    pub range: Duration,
    /// Its chance is 0 while fewer packets wait behind the one that leaves (Th_len); 1.
    pub threshold_packets: u32,
    /// The classic queue's share of the link while both have packets, above 0 and below 1; 0.1 \[Linux\].
    pub classic_weight: f64,
    /// The size of a largest packet, at least one byte: the low-latency queue's lead after a quiet time is counted in
    /// these; 1,500 bytes.
    pub mtu: Bytes,
}

impl DualPi2Params {
    /// The constants of the RFC's Appendix A for round trips up to 100 ms, and Linux's weights.
    pub const fn new(capacity: Capacity) -> DualPi2Params {
        DualPi2Params {
            capacity,
            target: Duration::from_millis(15),
            update_interval: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            threshold: Duration::from_micros(800),
            range: Duration::from_micros(400),
            threshold_packets: 1,
            classic_weight: 0.1,
            mtu: Bytes::new(1_500),
        }
    }
}
