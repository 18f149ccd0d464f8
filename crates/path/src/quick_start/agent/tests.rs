//! The agent with the numbers of [qsd Table I].

use super::*;
use crate::quick_start::{Observation, Refusal};
use fairpace_units::{QsFunction, QsNonce, QsRate};

/// T_r, T_a and RTT_m of the large frame.
const LARGE: [Duration; 3] =
    [Duration::from_micros(820_364), Duration::from_micros(1_640_727), Duration::from_millis(777)];

fn ms(t: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(t)
}

fn request() -> QsOption {
    QsOption {
        function: QsFunction::Request,
        rate: QsRate::at_most(Rate::kbps(320.0)),
        qs_ttl: 200,
        ip_ttl: 64,
        nonce: QsNonce::new(7),
    }
}

/// The satellite's carrier with so much granted.
fn channel(assigned_mbps: f64) -> Channel {
    let mut channel = Channel::new(RouterParams::default().load);
    channel.observe(Observation {
        capacity: Rate::mbps(6.336),
        assigned: Rate::mbps(assigned_mbps),
        free_assigned: Rate::ZERO,
        sent: Rate::ZERO,
    });
    channel
}

fn spec(agent: Agent) -> AgentSpec {
    AgentSpec::new(agent, LARGE[0], LARGE[1])
}

fn qsd(hold_ms: u64) -> Agent {
    Agent::Qsd { hold: Duration::from_millis(hold_ms) }
}

fn decide(spec: &AgentSpec, option: &mut QsOption, assigned_mbps: f64) -> Decision {
    let mut agent = QsAgent::new(spec, LARGE[2], 1, "terminal1").expect("an agent");
    agent.on_request(ms(1_000), option, 5, &channel(assigned_mbps))
}

#[test]
fn approvals_are_remembered_for_measurement_and_allocation_together() {
    // state_delay = (T_r + T_a) / 2, M = 2 [qsd App. A].
    let router = spec(Agent::Qs).router;
    assert_eq!((router.threshold, router.intervals), (0.8, 2));
    assert_eq!(router.state_delay * 2, LARGE[0] + LARGE[1]);
}

#[test]
fn a_terminal_without_an_agent_fails_the_request() {
    let mut option = request();
    let decision = decide(&spec(Agent::Off), &mut option, 0.0);
    assert_eq!(decision, Decision { verdict: None, hold_until: ms(1_000), add_to_request: Rate::ZERO });
    assert_eq!(option, QsOption { ip_ttl: 63, ..request() });
}

#[test]
fn quick_start_alone_answers_and_neither_holds_nor_asks() {
    let mut option = request();
    let decision = decide(&spec(Agent::Qs), &mut option, 0.0);
    assert_eq!(decision.verdict, Some(QsVerdict::Approved(request().rate)));
    assert_eq!((decision.hold_until, decision.add_to_request), (ms(1_000), Rate::ZERO));
    assert_eq!(option.ttl_diff(), request().ttl_diff());
}

#[test]
fn qsd_holds_for_t_q_and_asks_for_what_it_approved() {
    let decision = decide(&spec(qsd(520)), &mut request(), 0.0);
    assert_eq!((decision.hold_until, decision.add_to_request), (ms(1_520), Rate::kbps(320.0)));
    // 5,068.8 - 4,300 = 768.8 kbit/s are left, of which one source gets a quarter, 192.2: 160.
    let reduced = decide(&spec(qsd(520)), &mut request(), 4.3);
    assert_eq!((reduced.hold_until, reduced.add_to_request), (ms(1_520), Rate::kbps(160.0)));
    let at_once = decide(&spec(qsd(0)), &mut request(), 0.0);
    assert_eq!((at_once.hold_until, at_once.add_to_request), (ms(1_000), Rate::kbps(320.0)));
}

#[test]
fn qsd_lets_go_at_once_what_it_refused_and_what_asks_for_nothing() {
    let refused = decide(&spec(qsd(520)), &mut request(), 6.0);
    assert_eq!(refused.verdict, Some(QsVerdict::Refused(Refusal::NothingFree)));
    assert_eq!((refused.hold_until, refused.add_to_request), (ms(1_000), Rate::ZERO));
    let report = decide(&spec(qsd(520)), &mut QsOption { function: QsFunction::Report, ..request() }, 0.0);
    assert_eq!(
        report,
        Decision { verdict: Some(QsVerdict::Report), hold_until: ms(1_000), add_to_request: Rate::ZERO }
    );
}

#[test]
fn asking_the_ncc_costs_one_round_trip_more_whatever_the_answer() {
    let ask = |agent| AgentSpec { estimator: Estimator::OnDemand, ..spec(agent) };
    assert_eq!(decide(&ask(Agent::Qs), &mut request(), 0.0).hold_until, ms(1_777));
    assert_eq!(decide(&ask(qsd(520)), &mut request(), 0.0).hold_until, ms(2_297));
    assert_eq!(decide(&ask(qsd(520)), &mut request(), 6.0).hold_until, ms(1_777));
    let zero = QsOption { rate: QsRate::ZERO, ..request() };
    assert_eq!(decide(&ask(qsd(520)), &mut { zero }, 0.0).hold_until, ms(1_000), "nobody needs to be asked");
    // 0.25 x 5,068.8 = 1,267.2 kbit/s: three times 320 and once 160 and 80, then the NCC's answer is of no use.
    let mut agent = QsAgent::new(&ask(Agent::Qs), LARGE[2], 1, "terminal1").expect("an agent");
    let answers: Vec<_> = (0..6).map(|_| agent.on_request(ms(1_000), &mut request(), 5, &channel(0.0))).collect();
    assert_eq!(answers[5].verdict, Some(QsVerdict::Refused(Refusal::SourceShare)));
    assert_eq!(answers[5].hold_until, ms(1_777));
}

#[test]
fn a_hold_past_the_no_feedback_timer_is_told_with_what_it_costs() {
    let two = Duration::from_secs(2);
    // 1,273 + 777 = 2,050 ms [qsd §3.5]; with a timer of 3 s all is well.
    let warning = spec(qsd(1_273)).hold_warning(LARGE[2], two).expect("a warning");
    assert_eq!((warning.first_rtt.as_millis(), warning.longest.as_millis()), (2_050, 1_223));
    assert_eq!(
        warning.to_string(),
        "`hold` (T_q) of 1273 ms makes the first round trip 2050 ms long: the sender's no-feedback timer of 2000 ms \
         will have expired before the answer is there; the longest `hold` below it is 1223 ms"
    );
    assert_eq!(spec(qsd(1_273)).hold_warning(LARGE[2], Duration::from_secs(3)), None);
    assert_eq!(spec(qsd(1_223)).hold_warning(LARGE[2], two), None, "just in time");
    assert!(spec(qsd(1_224)).hold_warning(LARGE[2], two).is_some());
    assert_eq!(spec(qsd(520)).hold_warning(LARGE[2], two), None);
    assert_eq!(spec(Agent::Qs).hold_warning(LARGE[2], two), None);
    let on_demand = AgentSpec { estimator: Estimator::OnDemand, ..spec(qsd(520)) };
    assert_eq!(on_demand.hold_warning(LARGE[2], two).map(|w| w.first_rtt.as_millis()), Some(2_074));
}
