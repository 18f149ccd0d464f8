//! A sender's trust in its receiver: who that is, which reports are new, and which claims are proven.

use crate::sent::Streams;
use crate::{Secret, WireError};

/// Why feedback is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The bytes break a rule of form.
    Malformed,
    /// The reporter has not echoed our challenge, or tells of a stream that is not ours.
    WrongSsrc,
    /// The report number was seen before, is too old, or too far ahead.
    Replayed,
    /// There are no claims, or too few, or nobody asked for this form.
    Unproven,
    /// The sum of nonces is wrong.
    Nonce,
    /// A packet is claimed that was never sent.
    Unsent,
    /// A report of what was measured cannot be true.
    Measured,
}

impl From<WireError> for Refusal {
    fn from(_: WireError) -> Self {
        Refusal::Malformed
    }
}

/// False claims in a row, about different packets, before the flow stops.
const LIES: u32 = 3;

/// The report numbers that have been seen: 64 back, and as far ahead as 10 minutes of lost reports.
#[derive(Clone, Copy, Debug)]
struct ReplayWindow {
    highest: u32,
    /// Bit n: the report `highest - n` was accepted.
    seen: u64,
    /// No report before that one is awaited.
    first: u32,
}

impl ReplayWindow {
    const AHEAD: u32 = 1 << 16;

    /// `next`: the first number to come.
    const fn new(next: u32) -> Self {
        ReplayWindow { highest: next.wrapping_sub(1), seen: 0, first: next }
    }

    const fn is_fresh(&self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.highest);
        let behind = self.highest.wrapping_sub(number);
        let awaited = number.wrapping_sub(self.first) as i32 >= 0;
        (ahead > 0 && ahead <= Self::AHEAD) || (behind < 64 && awaited && self.seen >> behind & 1 == 0)
    }

    /// The peer says, in an answer that nobody else can give, that its next report has that number. A number that cannot follow shows
    /// that one that came before was damaged on its way; reports that were accepted lately stay so.
    const fn resume(&mut self, next: u32) {
        let ahead = next.wrapping_sub(self.highest);
        let behind = self.highest.wrapping_sub(next);
        if behind < 64 {
            if (next.wrapping_sub(self.first) as i32) < 0 {
                self.first = next;
            }
        } else if ahead > Self::AHEAD {
            *self = ReplayWindow::new(next);
        }
    }

    fn accept(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.highest);
        if ahead > 0 && ahead <= Self::AHEAD {
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = number;
        } else {
            let behind = self.highest.wrapping_sub(number);
            self.seen |= 1_u64.checked_shl(behind).unwrap_or(0);
        }
        // Never so far behind that the difference wraps.
        if self.highest.wrapping_sub(self.first) > Self::AHEAD {
            self.first = self.highest.wrapping_sub(Self::AHEAD);
        }
    }
}

/// The claims of some feedback about one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    ssrc: u32,
    /// The sum that the claim must have.
    pub(crate) nonce_sum: u32,
    /// Packets among the claimed ones that were never sent.
    pub(crate) unsent: bool,
    /// Index of the last packet claimed.
    last: u64,
    /// Where the range begins that is told of, if that packet was sent.
    first: Option<u64>,
}

/// The peer, once there is one, and how its claims have fared.
#[derive(Debug)]
pub(crate) struct Trust {
    secret: Secret,
    /// Believe feedback only with the right sum of nonces.
    pub(crate) check_nonces: bool,
    peer: Option<(u32, ReplayWindow)>,
    /// False claims in a row.
    pub(crate) lies: u32,
}

impl Trust {
    pub(crate) const fn new(secret: Secret, check_nonces: bool) -> Self {
        Trust { secret, check_nonces, peer: None, lies: 0 }
    }

    /// From now on `ssrc` is the peer, whose next report has that number.
    pub(crate) const fn admit(&mut self, ssrc: u32, next_report: u32) {
        self.peer = Some((ssrc, ReplayWindow::new(next_report)));
    }

    /// The peer has answered the newest question, and says what the number of its next report is.
    pub(crate) const fn resume(&mut self, next_report: u32) {
        if let Some((_, reports)) = &mut self.peer {
            reports.resume(next_report);
        }
    }

    /// The peer's SSRC; `None` before there is a peer.
    pub(crate) fn peer(&self) -> Option<u32> {
        self.peer.map(|(ssrc, _)| ssrc)
    }

    pub(crate) fn is_peer(&self, ssrc: u32) -> bool {
        self.peer() == Some(ssrc)
    }

    /// # Errors
    /// [`Refusal::WrongSsrc`] if the reporter is not the peer.
    pub(crate) fn check_peer(&self, reporter: u32) -> Result<(), Refusal> {
        if self.is_peer(reporter) { Ok(()) } else { Err(Refusal::WrongSsrc) }
    }

    /// # Errors
    /// [`Refusal::Replayed`] if a report of that number has been accepted, or is too old or too far ahead.
    pub(crate) fn check_number(&self, number: u32) -> Result<(), Refusal> {
        let fresh = self.peer.is_some_and(|(_, reports)| reports.is_fresh(number));
        if fresh { Ok(()) } else { Err(Refusal::Replayed) }
    }

    /// The report of that number is believed.
    pub(crate) fn accept(&mut self, number: u32) {
        if let Some((_, reports)) = &mut self.peer {
            reports.accept(number);
        }
    }

    /// Some feedback is believed: the lies before were not in a row with the next one.
    pub(crate) const fn forgive(&mut self) {
        self.lies = 0;
    }

    /// Why feedback of a form that was not asked for is refused.
    pub(crate) fn unasked(&self, reporter: u32) -> Refusal {
        if self.is_peer(reporter) { Refusal::Unproven } else { Refusal::WrongSsrc }
    }

    pub(crate) const fn has_lied(&self) -> bool {
        self.lies >= LIES
    }

    /// The claim about stream `ssrc`: the packets with these indices, in order; `None`: never sent.
    pub(crate) fn claimed(&self, ssrc: u32, first: Option<u64>, told: impl Iterator<Item = Option<u64>>) -> Claimed {
        let mut claimed = Claimed { ssrc, nonce_sum: 0, unsent: false, last: 0, first };
        for index in told {
            match index {
                Some(index) => {
                    claimed.nonce_sum = claimed.nonce_sum.wrapping_add(self.secret.nonce(ssrc, index));
                    claimed.last = index;
                }
                None => claimed.unsent = true,
            }
        }
        claimed
    }

    /// Whether the sum proves the claim; counts a lie if not. `told_before`: the same feedback has been judged.
    ///
    /// # Errors
    /// [`Refusal::Unsent`] or [`Refusal::Nonce`].
    pub(crate) fn judge(
        &mut self,
        claimed: Claimed,
        nonce_sum: u32,
        told_before: bool,
        streams: &mut Streams,
    ) -> Result<(), Refusal> {
        if !claimed.unsent && claimed.nonce_sum == nonce_sum {
            return Ok(());
        }
        let stream = streams.blamed(claimed.ssrc);
        // Reports overlap: one nonce that was damaged on its way spoils each report that tells of it. Only
        // ranges that do not overlap count as one lie after another.
        if !told_before && (claimed.unsent || claimed.first.is_none_or(|first| first >= stream.lied_until)) {
            stream.lied_until = stream.lied_until.max(claimed.last + 1);
            self.lies = self.lies.saturating_add(1);
        }
        Err(if claimed.unsent { Refusal::Unsent } else { Refusal::Nonce })
    }
}

/// The peer's clock, 1/65,536 s, unwrapped: its 32 bits wrap every 18.2 hours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerClock(Option<u64>);

impl PeerClock {
    /// The time with those low bits that is nearest to the latest one so far.
    pub(crate) fn unwrap(&mut self, time: u32) -> u64 {
        let clock = self.0.unwrap_or(1 << 32 | u64::from(time));
        let step = time.wrapping_sub(clock as u32) as i32;
        let unwrapped = clock.saturating_add_signed(step.into());
        self.0 = Some(clock.max(unwrapped));
        unwrapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_counts_once_from_the_first_on() {
        let mut w = ReplayWindow::new(u32::MAX - 2);
        assert!(!w.is_fresh(u32::MAX - 3), "from before the peer was known");
        for number in [u32::MAX - 2, u32::MAX, 5] {
            assert!(w.is_fresh(number));
            w.accept(number);
            assert!(!w.is_fresh(number));
        }
        assert!(w.is_fresh(u32::MAX - 1) && w.is_fresh(4) && !w.is_fresh(5 + ReplayWindow::AHEAD + 1));
    }

    /// The number in an echo was damaged: 40 too high, or 20,000. The next echo tells the right one.
    #[test]
    fn an_answer_sets_right_what_was_damaged_and_forgets_no_report() {
        for too_high in [40, 20_000, 1 << 31] {
            let mut w = ReplayWindow::new(100 + too_high);
            assert!(!w.is_fresh(100));
            w.resume(100);
            assert!(w.is_fresh(100) && !w.is_fresh(99));
        }
        let mut w = ReplayWindow::new(100);
        (100..200).for_each(|number| w.accept(number));
        // The answer was overtaken by reports.
        w.resume(190);
        assert!((100..200).all(|number| !w.is_fresh(number)) && w.is_fresh(200));
    }

    #[test]
    fn two_billion_reports_later_the_window_is_where_it_was() {
        let mut w = ReplayWindow::new(0);
        for step in 1..=70_000_u32 {
            w.accept(step.wrapping_mul(50_000));
        }
        let highest = 70_000_u32.wrapping_mul(50_000);
        assert!(w.is_fresh(highest.wrapping_add(1)) && w.is_fresh(highest.wrapping_sub(1)) && !w.is_fresh(highest));
    }
}
