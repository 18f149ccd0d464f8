//! The readings of `rcs`.
//!
//! The paper gives no window of TCP, no S_Target, no T_B, no length of a run, and says neither whether ACKs are lost nor
//! what becomes of packets on the air when the signal goes. The defaults are ns-2's where the paper is silent (§V: all of it
//! ran in ns-2), and what §IV-C and §V say of Figs. 15, 16 and 20.

use super::setup::set_loss;
use crate::reading::Reading;
use fairpace_scenario::{Count, InFlight, Parameter, QueueSpec, RawScenario, Time};

const SWEEPS: &[&str] = &["rcs.fig17a", "rcs.fig17b", "rcs.fig17c", "rcs.fig17d", "rcs.fig18", "rcs.fig19"];
const BESIDE_TCP: &[&str] = &["rcs.fig20", "rcs.fig21a-c"];
const DARK: &[&str] = &["rcs.fig16", "rcs.fig22a-b"];

const TARGETS: [&str; 6] =
    ["s-target-60", "s-target-90", "s-target-120", "s-target-130", "s-target-150", "s-target-300"];

fn set_rcs(s: &mut RawScenario, name: &str, value: &str) {
    for flow in s.flows.iter_mut().filter(|f| f.controller == "rcs") {
        flow.parameters.insert(name.to_owned(), Parameter::Text(value.to_owned()));
    }
}

/// A rate of S_Target other than 200 packets/s.
const fn target(key: &'static str, changes: &'static str, set: fn(&mut RawScenario)) -> Reading {
    Reading::new(key, "silent", "§III-B", changes).setting(set).against(&TARGETS).touching(SWEEPS)
}

const ACKS_LOST: Reading = Reading::new(
    "acks-lost",
    "Both data and dummy packets may get lost due to link errors",
    "§V-A",
    "ACKs are lost with P, too: the sentence names data and dummies only",
)
.setting(|s| s.path.reverse.loss = s.path.loss.clone())
.touching(SWEEPS);
const TARGET_60: Reading =
    target("s-target-60", "S_Target = 60 packets/s, less than half the fair share of 130", |s| {
        set_rcs(s, "s_target", "60 pkt/s");
    });
const TARGET_90: Reading = target("s-target-90", "S_Target = 90 packets/s, below the fair share of 130", |s| {
    set_rcs(s, "s_target", "90 pkt/s");
});
const TARGET_120: Reading = target("s-target-120", "S_Target = 120 packets/s, just below the fair share of 130", |s| {
    set_rcs(s, "s_target", "120 pkt/s");
});
const TARGET_130: Reading = target("s-target-130", "S_Target = 130 packets/s, the fair share itself", |s| {
    set_rcs(s, "s_target", "130 pkt/s");
});
const TARGET_150: Reading = target("s-target-150", "S_Target = 150 packets/s, just above the fair share of 130", |s| {
    set_rcs(s, "s_target", "150 pkt/s");
});
const TARGET_300: Reading = target("s-target-300", "S_Target = 300 packets/s, more than twice the fair share", |s| {
    set_rcs(s, "s_target", "300 pkt/s");
});
const RIO: Reading = Reading::new(
    "rio",
    "RCS interacts properly with active queue management (AQM) schemes considering different levels of priority, e.g., RIO",
    "§VI, note 3",
    "the router has RIO in the place of push-out: dummies are dropped between averages of a tenth and a half of the room, data \
     between a half and all of it",
)
.setting(|s| s.path.queue = QueueSpec::of("rio").with("capacity", s.path.queue.capacity()))
.touching(SWEEPS);

/// A run of another length; the signal goes after a third of it.
fn lasting(s: &mut RawScenario, seconds: f64, warmup: f64) {
    s.duration = Time::seconds(seconds);
    s.warmup = Time::seconds(warmup);
    for outage in &mut s.path.outages {
        outage.start = Time::seconds((seconds / 3.0).min(100.0));
    }
}
const LENGTHS: [&str; 4] = ["cold-100s", "cold-300s", "cold-450s", "warm-450s"];
const LONG: &[&str] = &["rcs.fig17a", "rcs.fig18", "rcs.fig22a-b"];
const COLD_100: Reading =
    Reading::new("cold-100s", "silent", "§V", "runs of 100 s from the start on; the signal goes after a third")
        .setting(|s| lasting(s, 100.0, 0.0))
        .against(&LENGTHS)
        .touching(LONG);
const COLD_300: Reading =
    Reading::new("cold-300s", "silent", "§V", "runs of 300 s from the start on; the signal goes after 100 s")
        .setting(|s| lasting(s, 300.0, 0.0))
        .against(&LENGTHS)
        .touching(LONG);
const COLD_450: Reading =
    Reading::new("cold-450s", "silent", "§V", "runs of 450 s from the start on; the signal goes after 100 s")
        .setting(|s| lasting(s, 450.0, 0.0))
        .against(&LENGTHS)
        .touching(LONG);

const LEAVE_OUT: &str = "ACKs are never lost; S_Target is 200 packets/s, between the fair share of 130 and twice that; 450 s, of \
                         which the first 50 s are left out; two priorities with push-out";
const SILENT: Reading = Reading::default(
    "low priority packets, i.e., dummy packets, are discarded first in case of congestion",
    "§V-A",
    LEAVE_OUT,
);

/// Of the sweeps over P.
pub(super) const BY_LOSS: &[Reading] = &[
    SILENT, ACKS_LOST, TARGET_60, TARGET_90, TARGET_120, TARGET_130, TARGET_150, TARGET_300, COLD_100, COLD_300,
    COLD_450, RIO,
];
/// Of the other sweeps: over the round-trip time, the background and the buffer.
pub(super) const SWEPT: &[Reading] =
    &[SILENT, ACKS_LOST, TARGET_60, TARGET_90, TARGET_120, TARGET_130, TARGET_150, TARGET_300, RIO];

const NS2_WINDOW: Reading = Reading::default(
    "In order to investigate the performance of the RCS, we conducted extensive simulation experiments using ns-2",
    "§V",
    "TCP’s window is at most ns-2’s 20 packets, as its packets are ns-2’s 1,000 bytes; ACKs are never lost; S_Target is 200 \
     packets/s",
)
.touching(BESIDE_TCP);
const OPEN_WINDOW: Reading =
    Reading::new("window-open", "silent", "§V-D", "TCP’s window is at most 100,000 packets, out of reach")
        .setting(|s| {
            for tcp in s.flows.iter_mut().filter_map(|f| f.tcp.as_mut()) {
                tcp.max_window = Some(Count::new(100_000));
            }
        })
        .touching(BESIDE_TCP);

/// Beside TCP over the same satellite.
pub(super) const FAIRNESS: &[Reading] = &[NS2_WINDOW, OPEN_WINDOW, ACKS_LOST, TARGET_150, TARGET_300];
/// Beside TCP over clean wire: the lossy links are the media flows' own, whose way back has no loss of the path's.
pub(super) const FAIRNESS_FAR: &[Reading] = &[NS2_WINDOW, OPEN_WINDOW, TARGET_150, TARGET_300];

const IN_FLIGHT_LOST: Reading = Reading::default(
    "Due to the signal loss, source does not receive any ACK during this period",
    "§IV-C",
    "what is on the air when the signal goes is lost, both ways: so no ACK comes in Detected; T_B is 10 SRTT",
)
.touching(DARK);
const IN_FLIGHT_DELIVERED: Reading = Reading::new(
    "in-flight-delivered",
    "silent",
    "§V-E",
    "what is on the air when the signal goes arrives: only what is sent during the outage is lost",
)
.setting(|s| s.path.outages.iter_mut().for_each(|o| o.in_flight = InFlight::Delivered))
.touching(DARK);

/// Of the trace of one signal loss.
pub(super) const ONE_BLACKOUT: &[Reading] = &[IN_FLIGHT_LOST, IN_FLIGHT_DELIVERED];
/// Of signal losses of all lengths.
pub(super) const BLACKOUTS: &[Reading] = &[
    IN_FLIGHT_LOST,
    IN_FLIGHT_DELIVERED,
    Reading::new(
        "t-b-none",
        "If no ACK is received for a certain timeout period",
        "§III-E",
        "T_B is without limit: Backoff waits for an ACK for as long as it takes",
    )
    .setting(|s| set_rcs(s, "t_b", "none")),
    COLD_100,
    COLD_300,
    COLD_450,
    Reading::new(
        "warm-450s",
        "silent",
        "§V",
        "runs of 450 s, of which the first 50 s are left out; the signal goes after 100 s",
    )
    .setting(|s| lasting(s, 450.0, 50.0))
    .against(&LENGTHS),
    TARGET_150,
    TARGET_300,
    Reading::set(
        "cold-100s-t-b-none",
        &["cold-100s", "t-b-none"],
        "both decide how much of a run RCS spends at S0/2 after a long signal loss",
    ),
];

/// Readings of the encoder.
pub(super) const VP8: &str = "vp8";
/// See [`VP8`].
pub(super) const VP8_WHOLE: &str = "vp8-whole";
/// Of the pictures, for any encoder.
pub(super) const FILM: &str = "film";
const LOSS_1E_2: &str = "loss-1e-2";

/// The encoder and the loss behind S(t).
pub(super) const ENCODERS: &[Reading] = &[
    Reading::default(
        "R(t) is the experimental output rate of a MSSG MPEG-2 video encoder when the target source rate is S(t)",
        "§III-F",
        "MPEG-2 by groups of 12 pictures: what a group spends too much is taken from the next, and no picture is left \
         out; P = 0.001",
    ),
    Reading::new(
        VP8,
        "silent",
        "§III-F",
        "VP8 as `send` has it: a buffer of 300 ms, pictures left out where it cannot go low enough",
    )
    .against(&[VP8_WHOLE]),
    Reading::new(VP8_WHOLE, "silent", "§III-F", "VP8 with a buffer of 300 ms that leaves no picture out")
        .against(&[VP8]),
    Reading::new(
        LOSS_1E_2,
        "the environment which will be described in Section V-A",
        "§III-F",
        "P = 0.01: S(t) is lower, below what an encoder's coarsest pictures take",
    )
    .setting(|s| set_loss(s, 0.01)),
    Reading::new(
        FILM,
        "silent",
        "§III-F",
        "five minutes of film with a cut each 2 to 8 s, in the place of a clip of 5.3 s in a loop",
    ),
    Reading::set("vp8-loss-1e-2", &[VP8, LOSS_1E_2], AT_LOW_RATES),
    Reading::set("vp8-whole-loss-1e-2", &[VP8_WHOLE, LOSS_1E_2], AT_LOW_RATES),
    Reading::set("film-loss-1e-2", &[FILM, LOSS_1E_2], AT_THE_HARDEST),
    Reading::set("film-vp8", &[FILM, VP8], AT_THE_HARDEST),
    Reading::set("film-vp8-loss-1e-2", &[FILM, VP8, LOSS_1E_2], AT_THE_HARDEST),
    Reading::set("film-vp8-whole", &[FILM, VP8_WHOLE], AT_THE_HARDEST),
    Reading::set("film-vp8-whole-loss-1e-2", &[FILM, VP8_WHOLE, LOSS_1E_2], AT_THE_HARDEST),
];
const AT_LOW_RATES: &str = "whether an encoder leaves pictures out shows where S(t) is low";
const AT_THE_HARDEST: &str = "the longest delay is that of the shots that the encoder finds hardest while S(t) is low";
