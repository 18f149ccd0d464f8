//! The readings of `lossy`.
//!
//! The meaning of p decides most, and the paper gives two: the equations of one TCP get the number of drop signals per
//! packet (§3.1), and the protocols the error rate (§3.2). A b is printed in the complex equation alone (§2.1, §2.2, §5).

use crate::reading::Reading;
use fairpace_scenario::{AccessSpec, Parameter, RawScenario};

const ONE_TCP: &[&str] = &["lossy.fig1-3", "lossy.fig25-27"];
const BESIDE: &[&str] = &[
    "lossy.fig5-6",
    "lossy.fig7-12",
    "lossy.fig13-14",
    "lossy.fig16-17",
    "lossy.fig18-19",
    "lossy.fig20-23",
    "lossy.fig28-29",
    "lossy.fig30-33",
];

/// Of one TCP alone, whose measurements the equations are fed with.
pub(super) const ALONE: &[Reading] = &[
    Reading::default(
        "p represents the number of drop signals per packet sent",
        "§3.1",
        "p is each cut of the window, a timeout after a timeout too, per packet sent; b = 2 in the complex equation, in which \
         alone the paper prints a b; TCP acknowledges every packet, as ns-2’s does",
    )
    .touching(ONE_TCP),
    Reading::new(
        "p-indications",
        "the frequency of loss indications per packet sent",
        "§2.2",
        "p is loss indications: a sequence of timeouts is one, as in Padhye’s model",
    )
    .against(&["p-injected"])
    .touching(ONE_TCP),
    Reading::new("p-injected", "the percentage of error added", "§3.1", "p is the injected error")
        .against(&["p-indications"])
        .touching(ONE_TCP),
    Reading::new("b-1", "silent", "§2.2", "b = 1 in the complex equation, too: the TCP that ran acknowledges every packet")
        .against(&["b-2"])
        .touching(ONE_TCP),
    Reading::new("b-2", "silent", "§2.2", "b = 2 in all three equations").against(&["b-1"]).touching(ONE_TCP),
    Reading::new("delayed-acks", "the number of segments acknowledged for each ACK", "§2.2", "TCP acknowledges every second packet")
        .against(&["error-before"])
        .touching(ONE_TCP),
    Reading::new("error-before", "silent", "§3.1", "errors strike before the queue, as with ns-2’s plain `lossmodel`")
        .against(&["delayed-acks"])
        .touching(ONE_TCP),
    Reading::set(
        "padhye",
        &["p-indications", "b-1"],
        "the model as its authors have it, for the TCP that ran",
    ),
    Reading::set(
        "padhye-delayed",
        &["p-indications", "b-2", "delayed-acks"],
        "the same for a TCP with delayed ACKs",
    ),
    Reading::set("before-indications", &["error-before", "p-indications"], "cross of p with the place of the error"),
    Reading::set("before-b-1", &["error-before", "b-1"], "cross of b with the place of the error"),
    Reading::set("before-padhye", &["error-before", "p-indications", "b-1"], "cross of all three"),
];

fn set_rbp(s: &mut RawScenario, only: &[&str], name: &str, value: &str) {
    for flow in s.flows.iter_mut().filter(|f| only.contains(&f.controller.as_str())) {
        flow.parameters.insert(name.to_owned(), Parameter::Text(value.to_owned()));
    }
}

const ALL: &[&str] = &["srp", "crp", "mrp"];

/// The errors on the flows' own links instead of the bottleneck's exit.
fn errors_before(s: &mut RawScenario) {
    let loss = core::mem::take(&mut s.path.loss);
    for flow in &mut s.flows {
        let access = flow.access.get_or_insert_with(AccessSpec::default);
        access.loss = loss.clone();
    }
}

const SPANS: [&str; 3] = ["over-run", "over-round", "over-intervals"];

const ERROR_RATE: Reading = Reading::default(
    "the transmission rate will be re-calculated according to the error rate and other relevant parameters in the round",
    "§3.2",
    "p is lost packets among the last 100; b = 2 in the complex equation, in which alone the paper prints a b",
)
.touching(BESIDE);
const OVER_RUN: Reading =
    Reading::new("over-run", "packet loss rate p are recorded at the end of each simulation", "§3.1", "p over the run")
        .setting(|s| set_rbp(s, ALL, "p_over", "run"))
        .against(&SPANS)
        .touching(BESIDE);
const OVER_ROUND: Reading = Reading::new("over-round", "in the round", "§3.2", "p over the round")
    .setting(|s| set_rbp(s, ALL, "p_over", "round"))
    .against(&SPANS)
    .touching(BESIDE);
const OVER_INTERVALS: Reading =
    Reading::new("over-intervals", "silent", "RFC 5348 §5.4", "p over the last eight loss intervals, as TFRC")
        .setting(|s| set_rbp(s, ALL, "p_over", "intervals"))
        .against(&SPANS)
        .touching(BESIDE);
const INDICATIONS: Reading = Reading::new(
    "indications",
    "the frequency of loss indications per packet sent",
    "§2.2",
    "losses within a round trip are one",
)
.setting(|s| set_rbp(s, ALL, "one_per_rtt", "on"))
.touching(BESIDE);
const B_1: Reading = Reading::new("b-1", "silent", "§2.2", "b = 1 in the complex equation, too")
    .setting(|s| set_rbp(s, &["crp"], "b", "1"))
    .touching(BESIDE);
const KEPT: Reading = Reading::new(
    "x-kept",
    "if packet drop has been detected in a round, the transmission rate will be re-calculated",
    "§3.2",
    "in a round without loss the last X stays in force",
)
.setting(|s| set_rbp(s, ALL, "without_loss", "kept"))
.touching(BESIDE);
const S_IS_X: Reading = Reading::new(
    "s-is-x",
    "the transmission rate will be re-calculated according to the error rate",
    "§3.2",
    "after a round with loss S is X, even upward, where the default takes the lower of the two",
)
.setting(|s| set_rbp(s, ALL, "after_loss", "equation"))
.touching(BESIDE);
const BEFORE: Reading =
    Reading::new("error-before", "silent", "§3.3", "errors strike before the queue, as with ns-2’s plain `lossmodel`")
        .setting(errors_before)
        .touching(&["lossy.fig7-12", "lossy.fig13-14", "lossy.fig18-19", "lossy.fig28-29", "lossy.fig30-33"]);
const TFRC_LIKE: Reading = Reading::set(
    "tfrc-like",
    &["over-intervals", "indications", "b-1"],
    "how TFRC measures p, whole: the intervals are between indications",
);
const LITERAL: Reading = Reading::set(
    "literal-round",
    &["over-round", "x-kept", "s-is-x"],
    "§3.2 taken literally: p of the round, X anew only after a loss, and S is X",
);
const ROUND_KEPT: Reading = Reading::set(
    "round-x-kept",
    &["over-round", "x-kept"],
    "a round without loss has p = 0, so that the span decides what keeping X means",
);

/// Of the protocols beside TCP without errors on the link.
pub(super) const FLOWS: &[Reading] =
    &[ERROR_RATE, OVER_RUN, OVER_ROUND, OVER_INTERVALS, INDICATIONS, B_1, KEPT, S_IS_X, TFRC_LIKE, LITERAL, ROUND_KEPT];

/// The same under errors.
pub(super) const ERRORS: &[Reading] = &[
    ERROR_RATE,
    OVER_RUN,
    OVER_ROUND,
    OVER_INTERVALS,
    INDICATIONS,
    B_1,
    KEPT,
    S_IS_X,
    BEFORE,
    TFRC_LIKE,
    LITERAL,
    ROUND_KEPT,
];

/// The same where TFRC runs, too, with the rest of the cross of span, counting and b.
pub(super) const PAIRED: &[Reading] = &[
    ERROR_RATE,
    OVER_RUN,
    OVER_ROUND,
    OVER_INTERVALS,
    INDICATIONS,
    B_1,
    KEPT,
    S_IS_X,
    BEFORE,
    Reading::new(
        "tfrc-rfc5348",
        "a well known TCP friendly rate based protocol, TFRC [8]",
        "§6.4",
        "TFRC as in RFC 5348, not as in ns-2",
    )
    .setting(|s| {
        for flow in s.flows.iter_mut().filter(|f| f.controller == "tfrc") {
            for key in ["discounting", "increase", "pacing", "reports", "rfc", "w_init", "t_rto", "losses"] {
                flow.parameters.remove(key);
            }
            if flow.parameters.get("equation").is_some_and(|e| e.text() == "complex") {
                flow.parameters.remove("equation");
            }
        }
    }),
    TFRC_LIKE,
    LITERAL,
    ROUND_KEPT,
    Reading::set("indications-b-1", &["indications", "b-1"], "cross of counting and b"),
    Reading::set("run-indications", &["over-run", "indications"], "cross of span and counting"),
    Reading::set("run-b-1", &["over-run", "b-1"], "cross of span and b"),
    Reading::set("run-indications-b-1", &["over-run", "indications", "b-1"], "cross of all three"),
    Reading::set("round-indications", &["over-round", "indications"], "cross of span and counting"),
    Reading::set("round-b-1", &["over-round", "b-1"], "cross of span and b"),
    Reading::set("round-indications-b-1", &["over-round", "indications", "b-1"], "cross of all three"),
    Reading::set("intervals-indications", &["over-intervals", "indications"], "cross of span and counting"),
    Reading::set("intervals-b-1", &["over-intervals", "b-1"], "cross of span and b"),
];
