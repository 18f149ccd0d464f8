//! All that may happen to a flow.

use fairpace_units::{Duration, Ecn, Kind, Rate};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Polls and sends until a wait, as a driver does, then sleeps until its instant, but no
    /// longer than this.
    Drive {
        at_most: Duration,
        has_data: bool,
    },
    /// As before, but wakes up this much later than told.
    Stall(Duration),
    /// Acknowledges some of what was sent: every `of`-th of the last `last` packets.
    Acks {
        last: usize,
        of: usize,
        delay: Duration,
        ecn: Ecn,
    },
    /// Acknowledges this number, sent or not.
    Forged {
        kind: Kind,
        seq: u64,
        delay: Duration,
    },
    Report {
        highest_seq: u64,
        fraction_lost: f64,
    },
    /// An RTCP receiver report with all that it may say, up to the data packet `back` before the next.
    Rtcp {
        back: i64,
        fraction_lost: f64,
        lost: Option<i64>,
        rtt: Option<Duration>,
        bottleneck: Option<Rate>,
    },
    /// From now on TCP delivers at that rate; its window was reduced if so.
    Tcp {
        rate: Rate,
        reduced: bool,
        cwnd: u64,
    },
    /// An AIMD ACK of the data packet `back` before the next, sent or not.
    Sack {
        back: i64,
        vector: u8,
        rwnd: Option<u32>,
        delay: Duration,
        ecn: Ecn,
    },
    /// A report of a receiver that measures, about the packet that left `back` packets ago (if none, about the
    /// start), off by some microseconds.
    RateReport {
        back: usize,
        off: u64,
        delay: Duration,
        received_rate: Rate,
        loss_event_rate: f64,
    },
    Demand(Option<Rate>),
    LimitDummies(bool),
    /// The answer to the Quick-Start option that left `back` options ago, lowered or raised by so many steps, with
    /// a TTL Diff off by so much.
    Response {
        back: usize,
        steps: i8,
        ttl: u8,
    },
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let ms = |range: core::ops::Range<u64>| range.prop_map(Duration::from_millis);
    let kind = prop_oneof![Just(Kind::Data), Just(Kind::Dummy)];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ce)];
    let ecn_of_sacks = ecn.clone();
    let rwnd =
        prop_oneof![6 => Just(None), 1 => Just(Some(0)), 4 => (1..100_u32).prop_map(Some), 1 => Just(Some(u32::MAX))];
    let odd = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(1e308), 0.0..1.0_f64].boxed();
    let p = prop_oneof![4 => Just(0.0), 8 => 0.0..0.2_f64, 1 => Just(1.0), 1 => Just(5e-324), 2 => odd.clone()];
    let x_recv = prop_oneof![
        1 => Just(Rate::ZERO),
        1 => Just(Rate::MAX),
        6 => (0.0..2e7_f64).prop_map(Rate::bps),
    ];
    let demand = prop_oneof![Just(None), Just(Some(Rate::ZERO)), (0.0..2e7).prop_map(|b| Some(Rate::bps(b)))];
    prop_oneof![
        8 => (ms(0..2_000), any::<bool>()).prop_map(|(at_most, data)| Operation::Drive { at_most, has_data: data }),
        6 => (ms(0..600)).prop_map(|at_most| Operation::Drive { at_most, has_data: true }),
        1 => prop_oneof![ms(0..20_000), Just(Duration::from_secs(3_600))].prop_map(Operation::Stall),
        6 => (1..200_usize, 1..5_usize, ms(0..30), ecn)
            .prop_map(|(last, of, delay, ecn)| Operation::Acks { last, of, delay, ecn }),
        2 => (kind, prop_oneof![0..500_u64, any::<u64>()], prop_oneof![ms(0..1_000), Just(Duration::MAX)])
            .prop_map(|(kind, seq, delay)| Operation::Forged { kind, seq, delay }),
        5 => (prop_oneof![8 => 0..40_i64, 1 => -3..0_i64, 1 => any::<i64>()], any::<u8>(), rwnd, ms(0..30), ecn_of_sacks)
            .prop_map(|(back, vector, rwnd, delay, ecn)| Operation::Sack { back, vector, rwnd, delay, ecn }),
        1 => (prop_oneof![0..500_u64, any::<u64>()], odd)
            .prop_map(|(highest_seq, fraction_lost)| Operation::Report { highest_seq, fraction_lost }),
        6 => rtcp(),
        2 => (prop_oneof![1 => Just(0.0), 6 => 0.0..1e7_f64], any::<bool>(), 0..1_000_000_u64)
            .prop_map(|(bps, reduced, cwnd)| Operation::Tcp { rate: Rate::bps(bps), reduced, cwnd }),
        6 => (0..40_usize, prop_oneof![4 => Just(0), 1 => 0..3_000_u64], prop_oneof![ms(0..60), Just(Duration::MAX)], x_recv, p)
            .prop_map(|(back, off, delay, received_rate, loss_event_rate)| Operation::RateReport {
                back, off, delay, received_rate, loss_event_rate
            }),
        1 => demand.prop_map(Operation::Demand),
        1 => any::<bool>().prop_map(Operation::LimitDummies),
        3 => (prop_oneof![4 => Just(0_usize), 1 => 1..4_usize], -3..3_i8, prop_oneof![4 => Just(0), 1 => any::<u8>()])
            .prop_map(|(back, steps, ttl)| Operation::Response { back, steps, ttl }),
    ]
}

fn rtcp() -> impl Strategy<Value = Operation> {
    let back = prop_oneof![8 => 1..40_i64, 1 => -3..1_i64, 1 => any::<i64>()];
    let fraction = prop_oneof![4 => Just(0.0), 4 => 0.0..0.2_f64, 1 => 0.0..=1.0_f64, 1 => Just(f64::NAN)];
    let lost = prop_oneof![2 => Just(None), 6 => (0..60_i64).prop_map(Some), 1 => any::<i64>().prop_map(Some)];
    let rtt = prop::option::of(prop_oneof![Just(0), Just(u64::MAX), 0..3_000_000_000_u64]);
    let bottleneck = prop_oneof![
        Just(None),
        Just(Some(Rate::ZERO)),
        Just(Some(Rate::MAX)),
        (0.0..3e6).prop_map(|b| Some(Rate::bps(b)))
    ];
    (back, fraction, lost, rtt, bottleneck).prop_map(|(back, fraction_lost, lost, rtt, bottleneck)| Operation::Rtcp {
        back,
        fraction_lost,
        lost,
        rtt: rtt.map(Duration::from_nanos),
        bottleneck,
    })
}
