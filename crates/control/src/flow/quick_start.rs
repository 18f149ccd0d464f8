//! Quick-Start at a flow's sender: the requests, and what an answer is worth.

use crate::quick_start::{QsCounters, QsEcho, QsVerdict, QuickStartParams, Requester};
use fairpace_units::{Bytes, Duration, Instant, QsFunction, QsOption, QsRate, QsResponse, Rate};

/// The loss rate that is known, and how much data was lost.
pub(super) type Losses = (f64, u64);

/// The rate that the routers have approved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Approval {
    pub(super) rate: QsRate,
    /// The header bytes that the rate includes for each packet.
    pub(super) header: Bytes,
    /// From the request to the answer.
    pub(super) elapsed: Duration,
}

#[derive(Debug)]
pub(super) struct QuickStart {
    /// `None`: the flow asks for nothing.
    requester: Option<Box<Requester>>,
    /// The losses when the last request left.
    lost_when_asked: Losses,
    /// The newest verdict, until it is taken.
    verdict: Option<QsVerdict>,
}

impl QuickStart {
    pub(super) fn new(params: Option<QuickStartParams>) -> QuickStart {
        QuickStart { requester: params.map(|p| Box::new(Requester::new(p))), lost_when_asked: (0.0, 0), verdict: None }
    }

    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.requester.is_some()
    }

    pub(super) fn counters(&self) -> Option<&QsCounters> {
        self.requester.as_ref().map(|q| q.counters())
    }

    /// The option of a data packet that leaves now: a report that is owed, else a request if one may be sent and the
    /// controller has a use for it (`limit`).
    #[inline]
    pub(super) fn option(
        &self,
        now: Instant,
        srtt: Option<Duration>,
        limit: impl FnOnce(&QuickStartParams) -> Option<Rate>,
    ) -> Option<QsOption> {
        let q = self.requester.as_ref()?;
        q.report().or_else(|| {
            let limit = q.may_ask(now, srtt).then(|| limit(q.params()))??;
            q.request(QsRate::at_most(limit))
        })
    }

    /// A packet with that option has left, one of data or one `apart`: whether the option is a request.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        option: QsOption,
        srtt: Option<Duration>,
        losses: Losses,
        apart: bool,
    ) -> bool {
        let Some(q) = &mut self.requester else { return false };
        if apart {
            q.on_sent_apart(now, option, srtt);
        } else {
            q.on_sent(now, option, srtt);
        }
        let asked = option.function == QsFunction::Request;
        if asked {
            self.lost_when_asked = losses;
        }
        asked
    }

    /// Feedback has come on what left until `departure`.
    #[inline]
    pub(super) fn on_feedback(&mut self, now: Instant, departure: Instant) -> Option<QsVerdict> {
        let verdict = self.requester.as_mut()?.on_feedback(now, departure);
        self.verdict = verdict.or(self.verdict);
        verdict
    }

    /// The newest verdict, once.
    pub(super) const fn take_verdict(&mut self) -> Option<QsVerdict> {
        self.verdict.take()
    }

    /// An answer has come: its verdict, and the approval to use if nothing was lost since the request: nothing is begun
    /// that a loss would end at once [RFC 5634 §3.2.3].
    pub(super) fn on_response(
        &mut self,
        now: Instant,
        response: &QsResponse,
        losses: Losses,
    ) -> Option<(QsVerdict, Option<Approval>)> {
        let judged = self.requester.as_mut()?.on_response(now, response);
        self.judged(judged, losses)
    }

    /// As [`on_response`](Self::on_response), of the answer to a packet apart.
    pub(super) fn on_echo(
        &mut self,
        now: Instant,
        echo: &QsEcho,
        losses: Losses,
    ) -> Option<(QsVerdict, Option<Approval>)> {
        let judged = self.requester.as_mut()?.on_echo(now, echo);
        self.judged(judged, losses)
    }

    fn judged(
        &mut self,
        (verdict, elapsed): (QsVerdict, Duration),
        losses: Losses,
    ) -> Option<(QsVerdict, Option<Approval>)> {
        self.verdict = Some(verdict);
        let q = self.requester.as_ref()?;
        let header = q.params().header;
        let lossless = losses.0 <= self.lost_when_asked.0 && losses.1 <= self.lost_when_asked.1;
        let approval = match verdict {
            QsVerdict::Approved(rate) if lossless => Some(Approval { rate, header, elapsed }),
            _ => None,
        };
        Some((verdict, approval))
    }
}
