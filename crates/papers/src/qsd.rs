//! The experiments of `qsd` (Secchi, Sathiaseelan, Potortì, Gotta, Fairhurst): §3 and §4, Figs. 3 to 9,
//! Tables I and III, Appendix A.
//!
//! A single flow on an idle satellite [qsd §3]: `single`, `rates`, `fluid`, `hold`, `estimators`; and aggregates of many
//! [qsd §4]: `aggregate`.
//!
//! # A single flow
//!
//! Five terminals, the first of them the NCC; 256 kbit/s in packets of 1,316 bytes from terminal 1 to terminal 2 under
//! TFRC as in RFC 3448, which the receiver measures; a request for 320 kbit/s with Quick-Start. Nothing is random.
//! The varied quantity is the *phase*: how long after the beginning of a super-frame the flow starts, in steps of 1.8
//! ms [qsd §3.2]. That makes 456 phases in the large frame, 76 in the small one; every one is run.
//!
//! Packet n is produced at the same time after the start in each phase, so medians, least and greatest over the phases
//! are of each packet. The interval of a claim is the middle 95 % of the phases, not a confidence interval: the phases
//! are all that there are.
//!
//! A *second hump* is a rise of the end-to-end delay after it has fallen from its first maximum. Each packet waits for
//! its terminal's slots, for 0 to T_f, and what of it does not fit into them for the next packet's; so the delay is
//! taken as the greatest of the packets of T_f and a packet together, and what falls or rises by less than that does
//! not count (ours). Judged on the worst phase.
//!
//! # Readings
//!
//! `readings.rs`. Two that no run varies from the default by themselves: eq. (2) is applied to the letter (what is in force
//! falls, by the traffic of the interval just ended; `release-decided` is shown for one flow), and ns-2's TFRC does not lower
//! X by the RTT's rise while there is no loss (`smoothing = "off"`; `x-inst` is shown).

mod aggregate;
mod course;
mod estimators;
mod fluid;
mod frame;
mod hold;
mod phases;
mod rates;
mod readings;
mod setup;
mod single;
mod spread;

use crate::Experiment;

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    experiment!(
        "qsd",
        "fig3",
        "one flow with and without demand assignment and Quick-Start",
        single::fig3,
        readings::SINGLE
    ),
    experiment!(
        "qsd",
        "fig4",
        "one flow with demand assignment and Quick-Start, over the phases",
        single::fig4,
        readings::SINGLE
    ),
    experiment!("qsd", "fig5", "one flow without Quick-Start, with it, and with QSD", single::fig5, readings::SINGLE),
    experiment!("qsd", "fig6", "the greatest delay of one flow against its rate", rates::fig6, readings::SWEEP),
    experiment!("qsd", "fig7", "the fluid model beside the packets", fluid::fig7, readings::SWEEP),
    experiment!("qsd", "eq3", "T_q,max", hold::eq3),
    experiment!("qsd", "eq6", "T_q,opt, and the least T_q without a second hump", hold::eq6, readings::SWEEP),
    experiment!("qsd", "appendix", "how a terminal knows what is free", estimators::appendix),
    experiment!(
        "qsd",
        "fig8",
        "delay of television from its start, among other flows",
        aggregate::fig8,
        readings::MANY
    ),
    experiment!(
        "qsd",
        "fig9",
        "delays in the first 30 s of calls, video calls and television",
        aggregate::fig9::fig9,
        readings::MANY
    ),
    experiment!(
        "qsd",
        "table3",
        "packets that the transmit buffers have no room for",
        aggregate::table3::table3,
        readings::TABLE_3
    ),
];

#[cfg(test)]
mod tests;
