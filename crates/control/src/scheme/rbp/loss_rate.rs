//! p: loss indications per packet sent, over whatever span it is measured.
//!
//! A packet counts once its fate, or that of a later one, is known; so does what a timeout gives up.
//! The rule for one indication, and the weighted intervals, are TFRC's history, with our own numbers and
//! departure times.

use crate::tfrc::history::{HistoryParams, LossEvents};
use fairpace_units::{Duration, Instant};

/// Over what p is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum POver {
    /// The last eight loss intervals, weighted.
    Intervals,
    /// The round.
    Round,
    /// So many packets, or all of them if infinite.
    Packets(f64),
}

/// Losses and acknowledgements in, p out.
#[derive(Clone, Debug)]
pub(super) struct LossRate {
    over: POver,
    one_per_rtt: bool,
    events: LossEvents,
    /// The first data packet's number; `None` before it was sent.
    first: Option<u64>,
    /// One more than the highest number sent.
    sent_to: u64,
    /// All numbers below have been counted.
    counted_to: u64,
    /// Packets counted, in the run and in the round.
    packets: f64,
    round_packets: f64,
    round_indications: f64,
    /// The loss rate p of the round before.
    last_round: f64,
    /// Indications per packet, the mean over the last packets.
    mean: f64,
}

impl LossRate {
    pub(super) fn new(over: POver, one_per_rtt: bool) -> LossRate {
        LossRate {
            over,
            one_per_rtt,
            events: LossEvents::new(&HistoryParams::default()),
            first: None,
            sent_to: 0,
            counted_to: 0,
            packets: 0.0,
            round_packets: 0.0,
            round_indications: 0.0,
            last_round: 0.0,
            mean: 0.0,
        }
    }

    /// p, in `[0, 1]`; 0 before the first indication.
    pub(super) fn p(&self) -> f64 {
        match self.over {
            POver::Intervals => self.events.loss_event_rate(),
            POver::Round => self.round_indications / self.round_packets.max(1.0),
            POver::Packets(_) => self.mean,
        }
        .min(1.0)
    }

    /// The p that the rate goes by now: a round's is known at its end.
    pub(super) fn p_gone_by(&self) -> f64 {
        if self.over == POver::Round { self.last_round } else { self.p() }
    }

    pub(super) fn on_sent(&mut self, seq: u64) {
        if self.first.is_none() {
            (self.first, self.counted_to) = (Some(seq), seq);
        }
        self.sent_to = seq + 1;
    }

    pub(super) fn on_acked(&mut self, seq: u64, sent_at: Instant) {
        self.count_to(seq + 1);
        self.events.on_received(seq, sent_at);
    }

    pub(super) fn on_marked(&mut self, seq: u64, sent_at: Instant, srtt: Duration) {
        self.count_to(seq + 1);
        if self.events.on_marked(seq, sent_at, self.span(srtt)) {
            self.indicate(seq);
        }
    }

    pub(super) fn on_lost(&mut self, seq: u64, sent_at: Instant, srtt: Duration) {
        self.count_to(seq + 1);
        if self.events.on_lost(seq, sent_at, self.span(srtt)) {
            self.indicate(seq);
        }
    }

    /// All that is outstanding is given up; the last of it left at `last_sent`.
    pub(super) fn on_timeout(&mut self, indication: bool, last_sent: Instant, srtt: Duration) {
        let seq = self.sent_to.saturating_sub(1);
        self.count_to(self.sent_to);
        if indication && self.events.on_lost(seq, last_sent, self.span(srtt)) {
            self.indicate(seq);
        }
    }

    pub(super) fn begin_round(&mut self) {
        if self.over == POver::Round {
            self.last_round = self.p();
        }
        (self.round_packets, self.round_indications) = (0.0, 0.0);
    }

    /// Losses that left within so long of the first are one indication.
    fn span(&self, srtt: Duration) -> Duration {
        if self.one_per_rtt { srtt } else { Duration::ZERO }
    }

    fn count_to(&mut self, end: u64) {
        for _ in self.counted_to..end {
            self.packets += 1.0;
            self.round_packets += 1.0;
            self.mean -= self.mean * self.gain();
        }
        self.counted_to = self.counted_to.max(end);
    }

    /// One of the packets counted was an indication.
    fn indicate(&mut self, seq: u64) {
        if self.events.events() == 1 {
            self.events.set_first_interval(seq.saturating_sub(self.first.unwrap_or(seq)) as f64);
        }
        self.round_indications += 1.0;
        self.mean += self.gain();
    }

    /// The weight of one packet in the mean: 1/n until there are n packets, so that the mean of few is their own.
    fn gain(&self) -> f64 {
        match self.over {
            POver::Packets(n) => 1.0 / self.packets.min(n),
            POver::Intervals | POver::Round => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Duration = Duration::from_millis(100);

    /// A packet every 10 ms: ten in a round trip.
    fn at(seq: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(10) * seq as u32
    }

    /// Numbers from `from` to `to`, `lost` ones lost, the rest acknowledged in order.
    fn run(over: POver, one_per_rtt: bool, from: u64, to: u64, lost: &[u64]) -> LossRate {
        let mut l = LossRate::new(over, one_per_rtt);
        for seq in from..to {
            l.on_sent(seq);
            if lost.contains(&seq) {
                l.on_lost(seq, at(seq - from), R);
            } else {
                l.on_acked(seq, at(seq - from));
            }
        }
        l
    }

    #[test]
    fn over_the_run_it_is_indications_by_packets() {
        let l = run(POver::Packets(f64::INFINITY), true, 0, 400, &[50, 150, 350]);
        assert!((l.p() - 3.0 / 400.0).abs() < 1e-15, "{}", l.p());
    }

    #[test]
    fn over_n_packets_it_is_the_mean_of_all_until_there_are_n_and_then_fades() {
        assert!((run(POver::Packets(100.0), true, 0, 80, &[50]).p() - 1.0 / 80.0).abs() < 1e-15);
        // 1/100 after the hundredth packet, times 0.99 with each of another hundred
        let p = run(POver::Packets(100.0), true, 0, 200, &[50]).p();
        assert!((p - 0.01 * 0.99_f64.powi(100)).abs() < 1e-15, "{p}");
    }

    #[test]
    fn over_intervals_it_is_tfrcs() {
        // Lost: 50 and 150; 151 to 199 came. I_0 = 200 - 150, I_1 = 100, I_2 = 50 before the first:
        // max((100 + 50)/2, (50 + 100)/2) = 75
        let l = run(POver::Intervals, true, 0, 200, &[50, 150]);
        assert!((l.p() - 1.0 / 75.0).abs() < 1e-15, "{}", l.p());
        // and wherever the numbers begin
        assert_eq!(run(POver::Intervals, true, 1_000, 1_200, &[1_050, 1_150]).p(), l.p());
    }

    #[test]
    fn over_the_round_it_forgets_when_the_next_begins() {
        let mut l = run(POver::Round, true, 0, 20, &[3]);
        assert_eq!((l.p(), l.p_gone_by()), (1.0 / 20.0, 0.0));
        l.begin_round();
        assert_eq!((l.p(), l.p_gone_by()), (0.0, 1.0 / 20.0));
    }

    #[test]
    fn losses_within_a_round_trip_are_one_indication_unless_each_is_to_count() {
        // 20 and 30 left 100 ms apart, 20 and 31 more than that
        for (one_per_rtt, lost, indications) in
            [(true, [20, 25, 30], 1.0), (true, [20, 25, 31], 2.0), (false, [20, 25, 30], 3.0)]
        {
            let l = run(POver::Packets(f64::INFINITY), one_per_rtt, 0, 100, &lost);
            assert!((l.p() - indications / 100.0).abs() < 1e-15, "{lost:?}: {}", l.p());
        }
    }

    #[test]
    fn a_timeout_counts_all_that_was_outstanding_and_is_one_indication() {
        let mut l = run(POver::Packets(f64::INFINITY), true, 0, 100, &[]);
        for seq in 100..120 {
            l.on_sent(seq);
        }
        l.on_timeout(true, at(119), R);
        assert!((l.p() - 1.0 / 120.0).abs() < 1e-15, "{}", l.p());
        l.on_sent(120);
        l.on_timeout(false, at(200), R);
        assert!((l.p() - 1.0 / 121.0).abs() < 1e-15, "{}", l.p());
        // A packet given up may come after all: nothing is counted twice, then or later.
        l.on_acked(105, at(105));
        assert!((l.p() - 1.0 / 121.0).abs() < 1e-15, "{}", l.p());
        l.on_sent(121);
        l.on_acked(121, at(201));
        assert!((l.p() - 1.0 / 122.0).abs() < 1e-15, "{}", l.p());
    }

    #[test]
    fn nine_losses_of_ten_heard_of_at_once_are_no_more_than_one() {
        let mut l = LossRate::new(POver::Packets(2.0), false);
        for seq in 0..10 {
            l.on_sent(seq);
        }
        l.on_acked(9, at(9));
        for seq in 0..9 {
            l.on_lost(seq, at(seq), R);
        }
        assert_eq!(l.p(), 1.0);
    }

    #[test]
    fn a_mark_counts_as_a_loss() {
        let mut l = run(POver::Packets(f64::INFINITY), true, 0, 99, &[]);
        l.on_sent(99);
        l.on_marked(99, at(99), R);
        assert!((l.p() - 0.01).abs() < 1e-15, "{}", l.p());
    }
}
