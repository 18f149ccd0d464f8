//! The readings of `qsd`.
//!
//! Two questions decide most: until when the approved rate is in use, and where in the multi-frame a terminal's slots
//! are. The default is what §3.3 says of Fig. 4 (a response after 0.8 s, the second report at 2.3 s, the first
//! discarded), under which Figs. 3 to 5 have the paper's order, too.

use super::setup::satellite;
use crate::builtin::time_ms;
use crate::reading::Reading;
use fairpace_scenario::{Parameter, RawScenario, ReleaseKind, SlotPlacement};

fn set_tfrc(s: &mut RawScenario, name: &str, value: &str) {
    for flow in s.flows.iter_mut().filter(|f| f.controller.starts_with("tfrc")) {
        flow.parameters.insert(name.to_owned(), Parameter::Text(value.to_owned()));
    }
}

/// A setting about an approved rate, for flows that ask for one: the runs of others do not depend on it.
fn set_approved(s: &mut RawScenario, name: &str, value: &str) {
    for flow in s.flows.iter_mut().filter(|f| f.controller.starts_with("tfrc") && f.quick_start.is_some()) {
        flow.parameters.insert(name.to_owned(), Parameter::Text(value.to_owned()));
    }
}

const FIGURES: &[&str] =
    &["qsd.fig3", "qsd.fig4", "qsd.fig5", "qsd.fig6", "qsd.eq6", "qsd.fig8", "qsd.fig9", "qsd.table3"];

const NEXT_SPREAD: Reading = Reading::default(
    "After discarding the first feedback report, the TFRC sender receives the second feedback after three RTT",
    "§3.3 (c)",
    "the approved rate is in use until the report after the first on one of its packets; the slots of a terminal are \
     spread over the multi-frame, so that CRA has a constant RTT",
)
.touching(FIGURES);
const VALIDATION_ALL: Reading = Reading::new(
    "validation-all",
    "silent",
    "RFC 5634 §3.2",
    "the approved rate is in use until all packets of its first RTT are acknowledged",
)
.setting(|s| set_approved(s, "qs_validation", "all"))
.touching(FIGURES);
const CONTIGUOUS: Reading = Reading::new(
    "slots-contiguous",
    "silent",
    "§2.1",
    "the slots of a terminal follow each other: one burst in a multi-frame",
)
.setting(|s| satellite(s).slots = SlotPlacement::Contiguous)
.touching(FIGURES);
const ALL_CONTIGUOUS: Reading = Reading::set(
    "all-contiguous",
    &["validation-all", "slots-contiguous"],
    "the cross of the two questions: RFC 5634's validation, and one burst in a multi-frame",
);
const RECEIVED: Reading = Reading::new(
    "received",
    "TFRC therefore throttles the sending rate to the reported received rate",
    "§3.3 (c)",
    "the first report after the approved rate lowers X to X_recv, not to twice as much",
)
.setting(|s| set_approved(s, "qs_limit", "received"))
.touching(FIGURES);
const RECEIVED_CONTIGUOUS: Reading = Reading::set(
    "received-contiguous",
    &["received", "slots-contiguous"],
    "the cross of the rule for the second report with the place of the slots, on which its instant depends",
);

/// Of one flow.
pub(super) const SINGLE: &[Reading] = &[
    NEXT_SPREAD,
    VALIDATION_ALL,
    CONTIGUOUS,
    ALL_CONTIGUOUS,
    RECEIVED,
    RECEIVED_CONTIGUOUS,
    Reading::new(
        "release-decided",
        "silent",
        "eq. (2)",
        "the NCC's last decision falls, not what is in force: all that an NCC can know",
    )
    .setting(|s| satellite(s).release.of = ReleaseKind::Decided),
    Reading::new("t-p-250", "250 ms", "§3.2", "T_p of the text, not Table I's 252 ms")
        .setting(|s| satellite(s).propagation = time_ms(250.0)),
    Reading::new("queue-counts", "silent", "eq. (1)", "the queue counts in the request, with T_s = T_r")
        .setting(|s| satellite(s).vbdc = Some(time_ms(820.4))),
    Reading::new("timer-3s", "silent", "§3.5", "the no-feedback timer is 3 s at first")
        .setting(|s| set_tfrc(s, "first_timer", "3 s")),
    Reading::new("qs-wait", "silent", "§3.3 (a)", "the sender waits for the response")
        .setting(|s| set_approved(s, "qs_wait", "on")),
    Reading::new("x-inst", "silent", "RFC 3448 §4.5", "packets are paced at X_inst: X falls as the RTT rises")
        .setting(|s| set_tfrc(s, "smoothing", "on")),
];

/// Of one flow, for sweeps: only the questions that decide most.
pub(super) const SWEEP: &[Reading] =
    &[NEXT_SPREAD, VALIDATION_ALL, CONTIGUOUS, ALL_CONTIGUOUS, RECEIVED, RECEIVED_CONTIGUOUS];

const ONE_PACKET: Reading = Reading::new(
    "sp-one-packet",
    "This distinction is not significant in these scenarios",
    "§4",
    "TFRC-SP begins with one packet per second, as TFRC, not with 1,460 bytes",
)
.setting(|s| {
    for flow in s.flows.iter_mut().filter(|f| f.controller == "tfrc-sp") {
        flow.parameters.insert("first_rate".to_owned(), Parameter::Text("packet".to_owned()));
    }
})
.touching(&["qsd.fig9", "qsd.table3"]);

/// Of many flows.
pub(super) const MANY: &[Reading] = &[NEXT_SPREAD, VALIDATION_ALL, CONTIGUOUS, ALL_CONTIGUOUS, RECEIVED, ONE_PACKET];

/// Of Table III, which also asks which packets are counted.
pub(super) const TABLE_3: &[Reading] = &[
    NEXT_SPREAD,
    VALIDATION_ALL,
    CONTIGUOUS,
    ALL_CONTIGUOUS,
    RECEIVED,
    ONE_PACKET,
    Reading::new(FIRST_30_S, "silent", "§4", "the fractions are of what flows produced in their first 30 s")
        .against(&[AFTER_RESPONSE]),
    Reading::new(
        AFTER_RESPONSE,
        "when TFRC throttles the output rate of the sender during slow-start",
        "§4",
        "the fractions are of what flows produced in their first 30 s and after the first report reached the sender",
    )
    .against(&[FIRST_30_S]),
    Reading::set(
        "sp-one-packet-after-response",
        &["sp-one-packet", AFTER_RESPONSE],
        "both concern what is lost at a flow's very start: the packets before the response, which one of them leaves out",
    ),
];
pub(super) const FIRST_30_S: &str = "first-30s";
pub(super) const AFTER_RESPONSE: &str = "after-response";
