//! Rates stay within their limits, those that routers approve included.

use crate::model::Model;
use crate::operation::{Operation, operation};
use crate::setup::{SIZE, Setup, cases, setup};
use fairpace_control::{Env, QuickStartParams, Safety};
use fairpace_units::{Bytes, Duration, Ecn, Kind, Rate};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn quick_start() -> impl Strategy<Value = QuickStartParams> {
    let rate = prop_oneof![Just(16e3), Just(256e3), 1e3..1e7_f64];
    (rate, any::<u64>(), 1..=255_u8, prop_oneof![Just(0), Just(32)]).prop_map(|(rate, seed, ip_ttl, header)| {
        let params = QuickStartParams::new(Rate::bps(rate), seed).expect("the option can say that");
        QuickStartParams { ip_ttl, header: Bytes::new(header), ..params }
    })
}

/// LDA and TPBA where nobody but they lower the rate: no breaker, no demand.
fn by_reports() -> impl Strategy<Value = Setup> {
    let tpba: &[(&str, &str)] = &[
        ("t_tcp", "100 ms"),
        ("t_running", "1 s"),
        ("t_adapt", "100 ms"),
        ("t_rtcp", "50 ms"),
        ("stop", "percent"),
        ("z", "100"),
    ];
    (setup(), prop_oneof![Just("lda"), Just("ldaf"), Just("tpba"), Just("tpba")]).prop_map(move |(setup, scheme)| {
        let own =
            if scheme == "tpba" { tpba } else { &[("t_adapt", "100 ms"), ("t_rtcp", "50 ms"), ("air_0", "1 Mbit/s")] };
        let settings = own.iter().chain(&[("r_min", "60 kbit/s")]);
        let settings = settings.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Setup { scheme, settings, breaker: false, ..setup }
    })
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Whatever is reported: no rate below r_min, and none that rises within a running period. (AIR is looked at in
    /// `lda/tests.rs`.)
    #[test]
    fn r_min_holds_and_no_running_period_raises_the_rate(
        setup in by_reports(),
        ops in prop::collection::vec(operation(), 1..80),
    ) {
        let mut model = Model::new(setup);
        let mut last: Option<(usize, Rate)> = None;
        for op in ops.iter().filter(|op| !matches!(op, Operation::Demand(_))) {
            model.apply(op);
            for e in model.flow.drain_events().collect::<Vec<_>>() {
                if let fairpace_control::FlowEventKind::RateChanged { rate, .. } = e.what {
                    prop_assert!(rate >= Rate::kbps(60.0) * (1.0 - 1e-9), "{rate}");
                }
            }
            let status = model.flow.status();
            let running = status.state == "running";
            // Each turn back to probing makes an order.
            let turn = model.tcp.orders.len();
            if let Some((turn_then, rate_then)) = last && running && turn == turn_then {
                prop_assert!(status.rate <= rate_then, "{rate_then} {}", status.rate);
            }
            last = running.then_some((turn, status.rate));
        }
    }

    /// Whatever answers and feedback come in whatever order: never more than was approved while it is Quick-Start's
    /// rate, each answer reported once, requests 6 s apart.
    #[test]
    fn whatever_the_routers_say_the_rate_stays_within_its_limits_and_the_approval(
        setup in setup(),
        quick_start in quick_start(),
        ops in prop::collection::vec(operation(), 1..60),
    ) {
        let header = match setup.scheme {
            "tfrc-sp" => setup.settings.get("header").map_or(40.0, |h| h.parse().expect("a number")),
            _ => quick_start.header.as_f64(),
        };
        let mut model = Model::with(setup, Some(quick_start));
        for op in &ops {
            model.apply(op);
            model.check_quick_start(header);
        }
    }

    /// A flow that asks for nothing hears no answers.
    #[test]
    fn without_quick_start_answers_change_nothing(setup in setup(), ops in prop::collection::vec(operation(), 1..40)) {
        let events = |with: bool| {
            let mut model = Model::new(setup.clone());
            for op in ops.iter().filter(|op| with || !matches!(op, Operation::Response { .. })) {
                model.apply(op);
            }
            assert_eq!((model.options.len(), model.flow.quick_start()), (0, None));
            (model.flow.drain_events().collect::<Vec<_>>(), model.sent)
        };
        prop_assert_eq!(events(true), events(false));
    }

    #[test]
    fn whatever_happens_the_rate_stays_within_its_limits(
        setup in setup(),
        ops in prop::collection::vec(operation(), 1..60),
    ) {
        let mut model = Model::new(setup);
        for op in &ops {
            model.apply(op);
        }
    }
}

/// The flow's SRTT may be that of the challenge, 0.6 ms, where TFRC's own is 600 ms, of an acknowledgement that came late: its bursts go
/// by its own.
#[test]
fn a_burst_goes_by_the_schemes_own_round_trip() {
    let ms = Duration::from_millis;
    let env = Env { min_rate: Rate::bps(0.001), max_rate: Rate::mbps(100.0), safety: Safety::Paper, ..Env::default() };
    let env = Env { packet_size: SIZE, ..env };
    let setup = Setup { scheme: "tfrc", settings: BTreeMap::new(), env, breaker: false, srtt: Some(Duration::ZERO) };
    let mut model = Model::new(setup);
    let acks = |last| Operation::Acks { last, of: 1, delay: Duration::ZERO, ecn: Ecn::NotEct };
    for op in [
        Operation::Drive { at_most: ms(406), has_data: true },
        Operation::Drive { at_most: ms(329), has_data: false },
        Operation::Forged { kind: Kind::Data, seq: 0, delay: Duration::ZERO },
        Operation::Drive { at_most: ms(0), has_data: false },
        acks(9),
        Operation::Drive { at_most: ms(11), has_data: true },
        acks(125),
        Operation::Drive { at_most: ms(403), has_data: true },
        Operation::Drive { at_most: ms(0), has_data: true },
    ] {
        model.apply(&op);
    }
}
