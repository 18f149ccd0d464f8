//! The events at a satellite's terminals, each as a line of `events.jsonl`.

use fairpace_path::dama::{DamaEvent, DamaEventKind};
use fairpace_path::quick_start::{QsVerdict, Refusal};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event at a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TerminalEvent {
    /// Of which run.
    pub seed: u64,
    /// When, in simulated time.
    pub t_s: f64,
    /// At which terminal, from 0.
    pub terminal: u32,
    /// The event itself.
    #[serde(flatten)]
    pub what: TerminalEventKind,
}

/// The kinds of events at a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TerminalEventKind {
    /// The terminal asks for capacity, for its traffic, its queue, and approved Quick-Start requests.
    Request {
        /// The traffic that came in the last super-frame.
        traffic_bps: f64,
        /// The bytes that wait.
        queue_bytes: u64,
        /// The rate that was approved and has not been asked for yet.
        quick_start_bps: f64,
        /// The request: all of these together.
        rate_bps: f64,
    },
    /// A burst time plan reaches the terminal.
    Tbtp {
        /// The granted rate.
        rate_bps: f64,
        /// From when on.
        from_s: f64,
    },
    /// A super-frame in which the terminal has slots begins.
    Grant {
        /// The rate of the slots.
        rate_bps: f64,
        /// How many there are.
        slots: u64,
    },
    /// A Quick-Start request passes.
    QuickStart {
        /// `approved`, `reduced`, `report`, or `refused: ` and why; `None`: passed on as it was.
        verdict: Option<Cow<'static, str>>,
        /// The approved rate.
        approved_bps: Option<f64>,
        /// Until when the packet is held.
        hold_until_s: f64,
        /// The addition to the terminal's next request.
        added_to_request_bps: f64,
    },
}

impl TerminalEvent {
    pub(crate) fn new(seed: u64, event: &DamaEvent) -> TerminalEvent {
        let what = match event.what {
            DamaEventKind::Request { traffic, queue, quick_start, rate } => TerminalEventKind::Request {
                traffic_bps: traffic.as_bps(),
                queue_bytes: queue.get(),
                quick_start_bps: quick_start.as_bps(),
                rate_bps: rate.as_bps(),
            },
            DamaEventKind::Tbtp { rate, from } => {
                TerminalEventKind::Tbtp { rate_bps: rate.as_bps(), from_s: from.as_secs_f64() }
            }
            DamaEventKind::Grant { rate, slots } => {
                TerminalEventKind::Grant { rate_bps: rate.as_bps(), slots: slots.into() }
            }
            DamaEventKind::QuickStart(decision) => TerminalEventKind::QuickStart {
                verdict: decision.verdict.map(|v| verdict(v).into()),
                approved_bps: decision.verdict.and_then(QsVerdict::approved).map(|r| r.rate().as_bps()),
                hold_until_s: decision.hold_until.as_secs_f64(),
                added_to_request_bps: decision.add_to_request.as_bps(),
            },
        };
        TerminalEvent { seed, t_s: event.at.as_secs_f64(), terminal: event.terminal, what }
    }
}

fn verdict(verdict: QsVerdict) -> &'static str {
    match verdict {
        QsVerdict::Approved(_) => "approved",
        QsVerdict::Reduced(_) => "reduced",
        QsVerdict::Report => "report",
        QsVerdict::Refused(why) => match why {
            Refusal::NoRate => "refused: no rate is asked for any more",
            Refusal::Multipath => "refused: several ways lead on",
            Refusal::SourceLimit => "refused: too many requests from this source",
            Refusal::TotalLimit => "refused: too many requests",
            Refusal::SourceShare => "refused: the source holds its share already",
            Refusal::NothingFree => "refused: nothing is free",
        },
    }
}
