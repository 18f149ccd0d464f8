//! The steps of §4.3: a tenth, two intervals that decide, and the way back.

use super::congestion::Judged;
use super::types::{StopReason, Trip};
use fairpace_units::Rate;

/// Intervals in which the cut to a tenth must help [RFC 8083 §4.3].
const INTERVALS_AFTER_CUT: usize = 2;
/// The cut.
const TENTH: f64 = 10.0;
/// The cut goes below this share of what was allowed when the rule tripped.
const SHARE: f64 = 0.35;
/// The most by which the limit grows per interval after a cut that has helped.
const GROWTH: f64 = 2.0;

/// The step that is in force.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// No cut is in force.
    Free,
    /// At most `limit`, a tenth of what was sent when the rule `tripped`: the next two intervals decide.
    Tenth { limit: Rate, tripped: Judged },
    /// The tenth has helped: `limit` grows with each interval, up to the rate that `tripped`.
    Raising { limit: Rate, tripped: Judged },
    /// The flow has ended, for this.
    Ceased(Judged),
}

#[derive(Clone, Debug)]
pub(super) struct Cut {
    responsive: bool,
    step: Step,
}

impl Cut {
    pub(super) const fn new(responsive: bool) -> Cut {
        Cut { responsive, step: Step::Free }
    }

    /// How many intervals are judged, where CB_INTERVAL does not say.
    pub(super) const fn intervals_wanted(&self) -> Option<usize> {
        if matches!(self.step, Step::Tenth { .. }) { Some(INTERVALS_AFTER_CUT) } else { None }
    }

    /// So many intervals as are wanted have been judged. After [`Trip::Cut`] the next judgement must be about packets that
    /// left after it.
    pub(super) fn on_judgement(&mut self, judged: Judged) -> Option<Trip> {
        let over = judged.is_over();
        let next = match self.step {
            Step::Free | Step::Raising { .. } if over => {
                // Where the path has become so slow that a tenth is still over, no more than is allowed.
                let limit = (judged.sent / TENTH).min(judged.allowed * SHARE);
                Step::Tenth { limit, tripped: judged }
            }
            Step::Tenth { .. } if over && judged.lasts => Step::Ceased(judged),
            Step::Tenth { tripped, .. } if !self.responsive => Step::Ceased(tripped),
            Step::Tenth { limit, tripped } | Step::Raising { limit, tripped } => {
                let limit = limit * GROWTH;
                if limit < tripped.sent { Step::Raising { limit, tripped } } else { Step::Free }
            }
            Step::Free | Step::Ceased(_) => return None,
        };
        self.enter(next);
        Some(match next {
            Step::Free => Trip::Lift,
            Step::Tenth { limit, .. } => Trip::Cut(limit),
            Step::Raising { limit, .. } => Trip::Raise(limit),
            Step::Ceased(Judged { sent, allowed, lost, .. }) => {
                Trip::Stop(StopReason::Congestion { sent, allowed, lost })
            }
        })
    }

    /// The one place where the step changes.
    fn enter(&mut self, next: Step) {
        let allowed = match (self.step, next) {
            (Step::Free | Step::Raising { .. }, Step::Tenth { limit, tripped }) => limit < tripped.sent,
            (Step::Tenth { limit, .. } | Step::Raising { limit, .. }, Step::Raising { limit: higher, .. }) => {
                higher <= limit * GROWTH
            }
            (Step::Tenth { .. }, Step::Ceased(_)) | (Step::Raising { .. }, Step::Free) => true,
            _ => false,
        };
        debug_assert!(allowed, "from {:?} to {next:?}", self.step);
        self.step = next;
    }
}
