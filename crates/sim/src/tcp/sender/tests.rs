//! Windows and retransmissions, worked by hand on a path of 50 ms each way and no bottleneck: what
//! is sent in one round is acknowledged 100 ms later.

use super::*;
use crate::tcp::{DelayedAck, Range, TcpReceiver};
use fairpace_units::Packets;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const ONE_WAY: Duration = Duration::from_millis(50);

enum Message {
    /// Number, marked on the way, CWR.
    Data(u32, bool, bool),
    Ack(TcpAck),
}

/// A sender and a receiver joined by a wire that drops what it is told to.
struct Pair {
    now: Instant,
    tx: TcpSender,
    rx: TcpReceiver,
    wire: BTreeMap<(Instant, u64), Message>,
    order: u64,
    /// (segment, which copy of it: 0 is the first).
    drop: BTreeSet<(u32, u32)>,
    /// Segments whose first copy gets a congestion mark, if it may.
    mark: BTreeSet<u32>,
    copies: BTreeMap<u32, u32>,
    /// (ms, segment, retransmission)
    sent: Vec<(u64, u32, bool)>,
}

impl Pair {
    fn new(params: TcpParams, segments: u32, drop: &[(u32, u32)]) -> Pair {
        let sack = params.variant == TcpVariant::Sack;
        let mut pair = Pair {
            now: Instant::ZERO,
            rx: TcpReceiver::new(sack, params.delayed_ack),
            tx: TcpSender::new(params, RandomStream::named(1, "test.jitter")),
            wire: BTreeMap::new(),
            order: 0,
            drop: drop.iter().copied().collect(),
            mark: BTreeSet::new(),
            copies: BTreeMap::new(),
            sent: Vec::new(),
        };
        pair.tx.on_data(Instant::ZERO, segments);
        pair.transmit();
        pair
    }

    fn transmit(&mut self) {
        while let Some(s) = self.tx.poll_transmit(self.now) {
            self.sent.push((self.now.as_nanos() / 1_000_000, s.seq, s.retransmission));
            let copy = self.copies.entry(s.seq).or_insert(0);
            if !self.drop.contains(&(s.seq, *copy)) {
                let marked = s.ecn == Ecn::Ect0 && self.mark.contains(&s.seq);
                self.order += 1;
                self.wire.insert((self.now + ONE_WAY, self.order), Message::Data(s.seq, marked, s.cwr));
            }
            *copy += 1;
        }
    }

    fn answer(&mut self, ack: Option<TcpAck>) {
        if let Some(ack) = ack {
            self.order += 1;
            self.wire.insert((self.now + ONE_WAY, self.order), Message::Ack(ack));
        }
    }

    fn run_until(&mut self, ms: u64) {
        let end = Instant::from_nanos(ms * 1_000_000);
        loop {
            let timer = self.tx.poll_timer().min(self.rx.poll_timer());
            let arrival = self.wire.first_key_value().map_or(Instant::NEVER, |((t, _), _)| *t);
            self.now = timer.min(arrival);
            if self.now > end {
                self.now = end;
                return;
            }
            if arrival <= timer {
                match self.wire.pop_first().unwrap().1 {
                    Message::Data(seq, ce, cwr) => {
                        self.rx.on_ecn(ce, cwr);
                        let ack = self.rx.on_segment(self.now, seq);
                        self.answer(ack);
                    }
                    Message::Ack(ack) => self.tx.on_ack(self.now, &ack),
                }
            } else {
                self.tx.on_timer(self.now);
                let ack = self.rx.on_timer(self.now);
                self.answer(ack);
            }
            self.transmit();
        }
    }

    /// Segments sent in each round of 100 ms.
    fn rounds(&self) -> Vec<usize> {
        let mut rounds = Vec::new();
        for (ms, ..) in &self.sent {
            let round = (ms / 100) as usize;
            rounds.resize(rounds.len().max(round + 1), 0);
            rounds[round] += 1;
        }
        rounds
    }

    fn retransmissions(&self) -> Vec<(u64, u32)> {
        self.sent.iter().filter(|s| s.2).map(|s| (s.0, s.1)).collect()
    }
}

fn exact(variant: TcpVariant) -> TcpParams {
    TcpParams { variant, tick: Duration::ZERO, ..TcpParams::default() }
}

#[test]
fn slow_start_doubles_the_window_each_round() {
    let mut p = Pair::new(exact(TcpVariant::NewReno), u32::MAX, &[]);
    p.run_until(450);
    assert_eq!(p.rounds(), [2, 4, 8, 16, 32]);
    assert_eq!(p.tx.phase(), TcpPhase::SlowStart);
}

#[test]
fn congestion_avoidance_adds_one_segment_per_round() {
    let params = TcpParams { initial_ssthresh: Some(Packets::new(4)), ..exact(TcpVariant::NewReno) };
    let mut p = Pair::new(params, u32::MAX, &[]);
    p.run_until(750);
    // 2, 4, then w + w/w a little short of one more: 4 ACKs add 1/4 + 1/4.25 + 1/4.49 + 1/4.71 = 0.92.
    // cwnd after the rounds: 4, 4.92, 5.75 (4 ACKs), 6.6 (5), 7.4 (5) ...
    assert_eq!(p.rounds(), [2, 4, 4, 5, 6, 7, 8, 9]);
    assert_eq!(p.tx.phase(), TcpPhase::CongestionAvoidance);
}

/// TCP(0.2, 0.875): the loss in slow start halves 8, the one in congestion avoidance leaves seven eighths, and between
/// them a round adds a fifth of a segment.
#[test]
fn with_other_constants_it_grows_by_alpha_and_keeps_beta_but_halves_in_slow_start() {
    let params = TcpParams { increase: 0.2, decrease: 0.875, ..exact(TcpVariant::Sack) };
    let mut p = Pair::new(params, u32::MAX, &[(6, 0), (200, 0)]);
    p.run_until(350);
    assert_eq!((p.tx.ssthresh(), p.tx.cwnd()), (4.0, 4.0));
    p.run_until(1_550);
    let cwnd = p.tx.cwnd();
    p.run_until(2_550);
    assert!((1.8..=2.0).contains(&(p.tx.cwnd() - cwnd)), "{cwnd} to {} in ten rounds", p.tx.cwnd());
    let (mut before, mut ms) = (0.0, 2_550);
    while p.tx.ssthresh() == 4.0 {
        (before, ms) = (p.tx.cwnd(), ms + 1);
        p.run_until(ms);
    }
    assert!((p.tx.ssthresh() / before - 0.875).abs() < 1e-9, "{} of {before}", p.tx.ssthresh());
    assert_eq!((p.tx.counters().fast_retransmits, p.tx.counters().timeouts), (2, 0));
}

#[test]
fn delayed_acks_slow_the_growth_to_half() {
    let params = TcpParams {
        delayed_ack: Some(DelayedAck { timeout: Duration::from_millis(40) }),
        ..exact(TcpVariant::NewReno)
    };
    let mut p = Pair::new(params, u32::MAX, &[]);
    p.run_until(350);
    // At 100 ms one ACK for 0 and 1: window 3, 2..=4 leave. At 200 ms that of 2 and 3: window 4, three
    // leave; segment 4 is alone, its ACK waits 40 ms: window 5, two more. At 300 ms and 340 ms two
    // ACKs for two segments each: windows 6 and 7, three leave each time. Without delay: 2 4 8 16.
    assert_eq!(p.rounds(), [2, 3, 5, 6]);
}

/// Segments 0..30 in rounds 2, 4, 8, 16; segment 6 (the first of the third round) is lost.
#[test]
fn one_loss_costs_half_the_window_and_one_retransmission_whatever_the_variant() {
    for variant in [TcpVariant::Reno, TcpVariant::NewReno, TcpVariant::Sack] {
        let mut p = Pair::new(exact(variant), u32::MAX, &[(6, 0)]);
        p.run_until(350);
        // Round 3 (at 200 ms) sends 6..14 under cwnd 8. Its ACKs at 300 ms: seven duplicates of 6.
        // The first two let out one new segment each (limited transmit), the third retransmits.
        assert_eq!(p.retransmissions(), [(300, 6)], "{variant:?}");
        // cwnd was 8, 8 in flight: half is 4.
        assert_eq!((p.tx.ssthresh(), p.tx.cwnd()), (4.0, 4.0), "{variant:?}");
        assert_eq!(p.tx.phase(), TcpPhase::Recovery);
        p.run_until(450);
        assert_eq!(p.tx.phase(), TcpPhase::CongestionAvoidance, "{variant:?}");
        assert!((4.0..5.0).contains(&p.tx.cwnd()), "{variant:?} {}", p.tx.cwnd());
        assert_eq!(p.tx.counters().timeouts, 0);
        assert_eq!(p.tx.counters().fast_retransmits, 1);
        assert_eq!(p.tx.counters().retransmitted, 1);
    }
}

#[test]
fn during_recovery_each_further_duplicate_lets_one_segment_out_once_half_the_window_is_gone() {
    let mut p = Pair::new(TcpParams { limited_transmit: false, ..exact(TcpVariant::NewReno) }, u32::MAX, &[(6, 0)]);
    p.run_until(300);
    // Flight 6..14 is 8; ssthresh 4; window 4 + 3 at the third duplicate, + 1 for each of the four
    // more: 11 from 6 on, so new segments 14, 15, 16.
    let new: Vec<u32> = p.sent.iter().filter(|s| s.0 == 300 && !s.2).map(|s| s.1).collect();
    assert_eq!(new, [14, 15, 16]);
}

#[test]
fn two_losses_in_a_window_reno_times_out_newreno_takes_two_rounds_sack_one() {
    let losses = [(14, 0), (20, 0)]; // both in the round of 16 sent at 300 ms
    let run = |variant| {
        let mut p = Pair::new(exact(variant), u32::MAX, &losses);
        p.run_until(1_500);
        assert!(p.rx.in_order() > 30, "{variant:?} got over both losses");
        (p.retransmissions(), p.tx.counters())
    };
    let (sent, counters) = run(TcpVariant::NewReno);
    assert_eq!(sent, [(400, 14), (500, 20)]);
    assert_eq!((counters.timeouts, counters.fast_retransmits), (0, 1));

    let (sent, counters) = run(TcpVariant::Sack);
    assert_eq!(sent, [(400, 14), (400, 20)]);
    assert_eq!((counters.timeouts, counters.fast_retransmits), (0, 1));

    // Reno leaves recovery at the partial ACK, at 500 ms; the duplicates of 20 that follow are below
    // `recover` and mean nothing: one timeout.
    let (sent, counters) = run(TcpVariant::Reno);
    assert_eq!((counters.timeouts, counters.timeout_sequences, counters.fast_retransmits), (1, 1, 1));
    assert_eq!(counters.loss_indications(), 2);
    assert_eq!(sent[0], (400, 14));
    assert_eq!(sent[1].1, 20);
    assert!(sent[1].0 >= 700, "not before 500 ms + min_rto: {sent:?}");
}

#[test]
fn a_sack_recovery_that_is_over_leaves_no_point_below_which_losses_wait_for_the_timer() {
    // 14 of the round at 300 ms is lost; its recovery begins at 400 ms with 32 as what was never sent, and 32 is the first segment
    // that leaves in it. At 500 ms all below 32 has arrived, the recovery is over, and 32 is missing.
    let mut p = Pair::new(exact(TcpVariant::Sack), u32::MAX, &[(14, 0), (32, 0)]);
    p.run_until(1_500);
    assert_eq!(p.retransmissions(), [(400, 14), (500, 32)]);
    assert_eq!((p.tx.counters().timeouts, p.tx.counters().fast_retransmits), (0, 2));
}

#[test]
fn a_loss_and_a_mark_in_one_window_cut_it_once_for_sack_too() {
    // 14 is lost and 20 marked in the round of 16 at 300 ms. The echo goes on until the first segment with CWR has come, behind the
    // retransmission that ends the recovery.
    let mut p = marked(TcpVariant::Sack, &[20], &[(14, 0)]);
    p.run_until(650);
    assert_eq!((p.tx.counters().fast_retransmits, p.tx.counters().timeouts), (1, 0));
    assert!(p.tx.ssthresh() >= 8.0 && p.tx.cwnd() >= 8.0, "{} {}", p.tx.ssthresh(), p.tx.cwnd());
}

#[test]
fn newreno_sends_one_lost_segment_per_partial_ack() {
    let mut p = Pair::new(exact(TcpVariant::NewReno), u32::MAX, &[(14, 0), (17, 0), (20, 0)]);
    p.run_until(700);
    assert_eq!(p.retransmissions(), [(400, 14), (500, 17), (600, 20)]);
    assert_eq!(p.tx.counters().timeouts, 0);
}

#[test]
fn a_partial_ack_takes_what_it_acknowledges_out_of_the_inflated_window() {
    // 14 and 20 of 14..30 lost. 14 duplicates at 400 ms: two new segments by limited transmit, then
    // ssthresh 8 and inflation 3 + 11 = 14: up to 14 + 22 = 36. At 500 ms the ACKs of 30 and 31 come
    // first (inflation 16: 36 and 37 leave), then the partial one for 20: inflation 16 - 6 + 1 = 11,
    // up to 20 + 8 + 11 = 39: 38 leaves; the four duplicates that follow let out one each.
    let mut p = Pair::new(exact(TcpVariant::NewReno), u32::MAX, &[(14, 0), (20, 0)]);
    p.run_until(500);
    let new = |ms| p.sent.iter().filter(|s| s.0 == ms && !s.2).map(|s| s.1).collect::<Vec<_>>();
    assert_eq!(new(400), [30, 31, 32, 33, 34, 35]);
    assert_eq!(new(500), [36, 37, 38, 39, 40, 41, 42]);
}

#[test]
fn the_timer_restarts_at_the_first_partial_ack_only() {
    // Five losses take five rounds. The timer, of at least 200 ms, restarts with the fast retransmit at
    // 400 ms and the first partial ACK at 500 ms; at 600 ms RTTVAR is still 50 x (3/4)^2, the RTO 212 ms,
    // and it runs out at 712 ms, in the middle.
    let losses = [(14, 0), (16, 0), (18, 0), (20, 0), (22, 0)];
    let mut p = Pair::new(exact(TcpVariant::NewReno), u32::MAX, &losses);
    p.run_until(700);
    assert_eq!(p.retransmissions(), [(400, 14), (500, 16), (600, 18), (700, 20)]);
    p.run_until(730);
    assert_eq!(p.tx.counters().timeouts, 1);
}

#[test]
fn linuxs_newreno_restarts_the_timer_at_each_partial_ack_and_repairs_one_segment_per_round() {
    // As above, but each partial ACK gives the timer 200 ms and more again.
    let losses = [(14, 0), (16, 0), (18, 0), (20, 0), (22, 0)];
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::NewReno) }, u32::MAX, &losses);
    p.run_until(1_000);
    assert_eq!(p.retransmissions(), [(400, 14), (500, 16), (600, 18), (700, 20), (800, 22)]);
    assert_eq!(p.tx.counters().timeouts, 0);
}

#[test]
fn sack1_sends_a_hole_again_at_the_first_sack_above_and_counts_a_partial_ack_twice() {
    // Of 14 to 29, sent at 300 ms, 14 is lost, and 31, which limited transmit sends at 400 ms. At 500 ms the ACK of 30 lets out 37; that
    // of 14's retransmission, a partial one up to 31, counts twice: 38 and 39 leave, with 31 still missing. The ACK of 32 is the first
    // with a SACK above 31. By RFC 6675 the third such ACK tells that 31 is lost.
    let at_500 = |ns2| -> Vec<u32> {
        let mut p = Pair::new(TcpParams { ns2, ..exact(TcpVariant::Sack) }, u32::MAX, &[(14, 0), (31, 0)]);
        p.run_until(700);
        assert_eq!((p.tx.counters().retransmitted, p.tx.counters().timeouts), (2, 0));
        p.sent.iter().filter(|s| s.0 == 500).map(|s| s.1).collect()
    };
    assert_eq!(at_500(true), [37, 38, 39, 31, 40, 41, 42, 43]);
    assert_eq!(at_500(false), [37, 38, 39, 40, 31, 41, 42, 43]);
}

#[test]
fn sack1_counts_duplicates_and_forgets_its_scoreboard_with_each_new_ack() {
    for (ns2, phase, kept) in [(true, TcpPhase::SlowStart, 0), (false, TcpPhase::Recovery, 3)] {
        let mut p = Pair::new(TcpParams { ns2, ..exact(TcpVariant::Sack) }, u32::MAX, &[]);
        p.run_until(350);
        let mut ack = TcpAck { next: 14, ..TcpAck::default() };
        ack.sack[0] = Range { start: 20, end: 23 };
        p.tx.on_ack(p.now, &ack);
        assert_eq!(p.tx.phase(), phase, "one duplicate with three segments, ns2 {ns2}");
        p.tx.on_ack(p.now, &TcpAck { next: 15, ..TcpAck::default() });
        assert_eq!(p.tx.scoreboard.sacked(), kept);
    }
}

#[test]
fn ssthresh_is_whole_with_linux_and_ns2() {
    for (linux, ns2, ssthresh) in [(true, false, 4.0), (false, true, 4.0), (false, false, 4.5)] {
        let mut p = Pair::new(TcpParams { linux, ns2, ..exact(TcpVariant::Sack) }, u32::MAX, &[]);
        p.tx.cut(4.5);
        assert_eq!(p.tx.ssthresh(), ssthresh);
    }
}

#[test]
fn linuxs_sack_recovery_sends_in_proportion_to_what_arrives() {
    // Of 14..30, sent at 300 ms, every second one is lost from 14 on; 15, 17, ... 29 arrive, and eight ACKs come at 400 ms. The
    // first two let out 30 and 31 (limited transmit). The third begins the recovery: window 16, ssthresh 8, and 14 goes again.
    // Holes below the highest SACK are lost. n ACKs, the third of them counted, let out ceil(8 n / 16) in all while the pipe is above
    // ssthresh, and 14 was that one: nothing at 21 (n = 2, pipe 22 to 31 and 14: 11), and 16 at 23 (n = 3, pipe 9). At 25 the pipe is
    // 8 (26 to 31, 14, 16): nothing. At 27 it is 6 (28 to 31, 14, 16): 18 and 20. At 29 it is 6 (30, 31, and four), and six arrived
    // for four sent: 22 and 24.
    let losses: Vec<(u32, u32)> = (14..30).step_by(2).map(|seq| (seq, 0)).collect();
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::Sack) }, u32::MAX, &losses);
    p.run_until(400);
    assert_eq!(p.tx.phase(), TcpPhase::Recovery);
    let at_400: Vec<(u32, bool)> = p.sent.iter().filter(|s| s.0 == 400).map(|s| (s.1, s.2)).collect();
    assert_eq!(
        at_400,
        [(30, false), (31, false), (14, true), (16, true), (18, true), (20, true), (22, true), (24, true)]
    );
    p.run_until(1_500);
    assert_eq!((p.tx.counters().timeouts, p.tx.counters().fast_retransmits), (0, 1));
    assert!(p.rx.in_order() > 32);
}

/// A sender of Linux's SACK with a window of four, which has sent 0 to 3 at 0 ms.
fn four_out() -> TcpSender {
    let params = TcpParams {
        linux: true,
        initial_window: Packets::new(4),
        initial_ssthresh: Some(Packets::new(4)),
        ..exact(TcpVariant::Sack)
    };
    let mut tx = TcpSender::new(params, RandomStream::named(1, "test.jitter"));
    tx.on_data(Instant::ZERO, u32::MAX);
    assert_eq!(all(&mut tx, 0), [0, 1, 2, 3]);
    tx
}

/// The segments that leave now.
fn all(tx: &mut TcpSender, ms: u64) -> Vec<u32> {
    std::iter::from_fn(|| tx.poll_transmit(at(ms)).map(|s| s.seq)).collect()
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// An ACK of all below `next`, and of `sacked`.
fn hears(tx: &mut TcpSender, ms: u64, next: u32, sacked: std::ops::Range<u32>) {
    let mut ack = TcpAck { next, ..TcpAck::default() };
    ack.sack[0] = Range { start: sacked.start, end: sacked.end };
    tx.on_ack(at(ms), &ack);
}

/// As above, and 34 is marked: the ACK that ends the first recovery has an echo, and says that 33 is lost.
#[test]
fn linux_cuts_once_by_an_ack_that_tells_of_a_mark_and_of_a_loss() {
    let params = TcpParams { linux: true, ecn: true, ..exact(TcpVariant::Sack) };
    let mut p = Pair::new(params, u32::MAX, &[(14, 0), (14, 1), (33, 0)]);
    p.mark = [34].into_iter().collect();
    p.run_until(590);
    assert_eq!((p.tx.phase(), p.tx.ssthresh(), p.tx.counters().ecn_cuts), (TcpPhase::Recovery, 8.0, 0));
    p.run_until(690);
    let counters = p.tx.counters();
    assert_eq!((p.tx.ssthresh(), counters.fast_retransmits, counters.ecn_cuts, counters.timeouts), (4.0, 2, 1, 0));
}

/// Of a burst of 62 the last one is lost, at a window of 63.
#[test]
fn linux_halves_the_window_at_a_timeout_whatever_is_out() {
    for (linux, ssthresh) in [(true, 31.0), (false, 2.0)] {
        let mut p = Pair::new(TcpParams { linux, ..exact(TcpVariant::Sack) }, 62, &[(61, 0)]);
        p.run_until(2_000);
        assert_eq!((p.tx.counters().timeouts, p.tx.ssthresh()), (1, ssthresh), "linux {linux}");
    }
}

#[test]
fn linux_counts_the_ack_that_ends_a_recovery() {
    let mut tx = four_out();
    for end in 2..=4 {
        hears(&mut tx, 100, 0, 1..end);
        all(&mut tx, 100);
    }
    assert_eq!((tx.phase(), tx.ssthresh(), tx.snd_max), (TcpPhase::Recovery, 2.0, 6));
    hears(&mut tx, 200, 6, 0..0);
    // 0, 4 and 5 are new to it: three segments at a window of two.
    assert_eq!((tx.phase(), tx.cwnd(), tx.counted), (TcpPhase::CongestionAvoidance, 3.0, 1.0));
}

#[test]
fn linux_restarts_the_timer_with_sacks_of_what_left_before_the_first_segment_was_sent_again() {
    let mut tx = four_out();
    for end in 2..=4 {
        hears(&mut tx, 100, 0, 1..end);
        all(&mut tx, 100);
    }
    // 4 and 5 left before 0 left again, 6 after it. No RTT is known, so that the timeout is 3 s.
    let timer = |tx: &TcpSender| tx.poll_timer().as_nanos() / 1_000_000;
    assert_eq!(timer(&tx), 3_100);
    hears(&mut tx, 190, 0, 1..5);
    assert_eq!(timer(&tx), 3_190);
    hears(&mut tx, 200, 0, 1..6);
    assert_eq!(timer(&tx), 3_200);
    assert!(all(&mut tx, 200).contains(&6));
    hears(&mut tx, 300, 0, 1..7);
    assert_eq!(timer(&tx), 3_200);
}

#[test]
fn linux_ends_the_back_off_with_a_sack_of_what_was_never_sent_again() {
    let params = TcpParams { linux: true, ..exact(TcpVariant::Sack) };
    let mut tx = TcpSender::new(params, RandomStream::named(1, "test.jitter"));
    tx.on_data(Instant::ZERO, u32::MAX);
    assert_eq!(all(&mut tx, 0), [0, 1]);
    hears(&mut tx, 100, 1, 0..0);
    assert_eq!(all(&mut tx, 100), [2, 3]);
    tx.on_timer(at(400));
    assert_eq!((all(&mut tx, 400), tx.rto().as_millis()), (vec![1], 600));
    // The ACKs of what was sent again are no samples.
    hears(&mut tx, 500, 2, 0..0);
    assert_eq!((all(&mut tx, 500), tx.rto().as_millis()), (vec![2, 3], 600));
    hears(&mut tx, 600, 3, 0..0);
    assert_eq!(tx.rto().as_millis(), 600);
    assert!(all(&mut tx, 600).contains(&4));
    hears(&mut tx, 700, 3, 4..5);
    assert_eq!(tx.rto().as_millis(), 300);
}

#[test]
fn linux_begins_the_next_recovery_at_once_where_a_loss_is_known_and_sends_nothing_twice() {
    // 14 is lost twice, so that its recovery lasts two rounds; 33, sent in the first of them, is lost, found by the SACK of 34, and sent
    // again in the second. When 14 has come, at 600 ms, 33 is still missing.
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::Sack) }, u32::MAX, &[(14, 0), (14, 1), (33, 0)]);
    p.run_until(590);
    assert_eq!((p.tx.phase(), p.tx.counters().fast_retransmits, p.tx.ssthresh()), (TcpPhase::Recovery, 1, 8.0));
    p.run_until(1_500);
    assert_eq!((p.tx.counters().fast_retransmits, p.tx.counters().timeouts, p.tx.ssthresh()), (2, 0, 4.0));
    assert_eq!(p.retransmissions(), [(400, 14), (500, 14), (500, 33)]);
}

#[test]
fn linux_finds_a_lost_retransmission_by_what_was_sent_after_it_and_the_rfc_waits_for_the_timer() {
    // 14 and 20 of the round at 300 ms are lost, and 14 again at 400 ms. The ACKs of what was sent after that come at 500 ms.
    let run = |linux| {
        let params = TcpParams { linux, ..exact(TcpVariant::Sack) };
        let mut p = Pair::new(params, u32::MAX, &[(14, 0), (20, 0), (14, 1)]);
        p.run_until(1_500);
        (
            p.retransmissions().into_iter().filter(|r| r.1 == 14).map(|r| r.0).collect::<Vec<_>>(),
            p.tx.counters().timeouts,
        )
    };
    assert_eq!(run(true), (vec![400, 500], 0));
    let (sent, timeouts) = run(false);
    assert!(sent[1] > 500 && timeouts == 1, "{sent:?} {timeouts}");
}

#[test]
fn linux_needs_one_sack_and_an_eighth_of_the_round_trip_where_the_rfc_waits_for_the_timer() {
    let run = |linux| {
        let params = TcpParams { linux, ..exact(TcpVariant::Sack) };
        let mut p = Pair::new(params, 4, &[(2, 0)]);
        p.run_until(3_000);
        (p.retransmissions(), p.tx.counters().timeouts, p.rx.in_order())
    };
    // 2 and 3 are the last; the SACK of 3 comes at 200 ms, and 2 goes again 12.5 ms later. By RFC 6675 the timer runs out.
    assert_eq!(run(true), (vec![(212, 2)], 0, 4));
    let (sent, timeouts, all) = run(false);
    assert!(sent[0].0 > 300 && timeouts == 1 && all == 4, "{sent:?}");
}

#[test]
fn linux_waits_anew_for_the_hole_behind_one_that_was_filled_late() {
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::Sack) }, u32::MAX, &[]);
    p.run_until(350);
    assert_eq!(p.tx.acknowledged(), 14);
    let at = |us: u64| Instant::from_nanos(us * 1_000);
    let sacked = |next, start, end| {
        let mut ack = TcpAck { next, ..TcpAck::default() };
        ack.sack[0] = Range { start, end };
        ack
    };
    // 14 is overtaken by 15, and comes before an eighth of 100 ms is over; 16 is the hole then.
    p.tx.on_ack(at(400_000), &sacked(14, 15, 16));
    assert_eq!(p.tx.poll_timer(), at(412_500));
    p.tx.on_ack(at(410_000), &sacked(16, 17, 18));
    let due = at(410_000) + p.tx.srtt().unwrap() / 8;
    assert_eq!(p.tx.poll_timer(), due);
    p.tx.on_timer(at(412_500));
    assert_ne!(p.tx.phase(), TcpPhase::Recovery);
    p.tx.on_timer(due);
    assert_eq!(p.tx.phase(), TcpPhase::Recovery);
    assert_eq!(p.tx.poll_transmit(due).map(|s| (s.seq, s.retransmission)), Some((16, true)));
}

#[test]
fn linux_restarts_the_timer_with_each_retransmission_of_the_first_segment() {
    // 14 leaves at 300 ms, and each of its copies a round trip after the one before: the fifth arrives. The timer of 300 ms that
    // the first retransmission started would have run out at 700 ms.
    let losses = [(14, 0), (14, 1), (14, 2), (14, 3)];
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::Sack) }, u32::MAX, &losses);
    p.run_until(1_000);
    assert_eq!(p.retransmissions(), [(400, 14), (500, 14), (600, 14), (700, 14)]);
    assert_eq!(p.tx.counters().timeouts, 0);
}

#[test]
fn after_a_timeout_linux_keeps_what_arrived_and_finds_a_lost_retransmission() {
    // Of 14..30 all but 15 and 17 are lost, of which the SACKs come at 400 ms: 30 and 31 leave and are lost, too, as is the
    // retransmission of 14. So the timer runs out, and what has arrived is not sent again.
    let losses: Vec<(u32, u32)> =
        (14..32).filter(|seq| ![15, 17].contains(seq)).map(|seq| (seq, 0)).chain([(14, 1), (18, 1)]).collect();
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::Sack) }, u32::MAX, &losses);
    p.run_until(10_000);
    assert!(p.tx.counters().timeouts >= 1 && p.rx.in_order() > 60, "{:?}", p.tx.counters());
    let again = |seq| p.retransmissions().iter().filter(|r| r.1 == seq).count();
    assert_eq!((again(15), again(17)), (0, 0));
    // 18 is lost again in the repair: a SACK of what left after it tells, and no second timeout is needed.
    assert_eq!((again(18), p.tx.counters().timeouts), (2, 1));
}

#[test]
fn newreno_leaves_recovery_with_no_more_than_what_is_in_flight_and_one() {
    for (variant, cwnd) in [(TcpVariant::NewReno, 2.0), (TcpVariant::Sack, 8.0), (TcpVariant::Reno, 8.125)] {
        // The transfer ends with segment 29: when 14 is repaired, nothing is in flight. Reno: 8 + 1/8.
        let mut p = Pair::new(exact(variant), 30, &[(14, 0)]);
        p.run_until(500);
        assert_eq!((p.tx.acknowledged(), p.tx.ssthresh(), p.tx.cwnd()), (30, 8.0, cwnd), "{variant:?}");
    }
}

#[test]
fn a_lost_retransmission_waits_for_the_timer_and_everything_is_sent_again() {
    for variant in [TcpVariant::Reno, TcpVariant::NewReno, TcpVariant::Sack] {
        let mut p = Pair::new(exact(variant), 14, &[(6, 0), (6, 1)]);
        p.run_until(3_000);
        assert_eq!(p.rx.in_order(), 14, "{variant:?}");
        assert_eq!(p.tx.counters().timeouts, 1, "{variant:?}");
        // Two RTT samples of 100 ms: SRTT 100, RTTVAR 50 then 37.5, RTO 100 + 4 x 37.5 = 250 ms. The
        // third, of segment 6, is void (Karn). Restarted by the fast retransmit at 300 ms.
        assert_eq!(p.retransmissions()[1], (550, 6), "{variant:?}");
        // The ACK of segment 6 covers all that had arrived: nothing else needs to go again.
        assert_eq!(p.tx.counters().retransmitted, 2, "{variant:?}");
    }
}

#[test]
fn a_dead_path_backs_off_3_6_12_24_48_then_60_seconds() {
    let drops: Vec<(u32, u32)> = (0..2).flat_map(|seq| (0..20).map(move |copy| (seq, copy))).collect();
    let mut p = Pair::new(exact(TcpVariant::NewReno), 2, &drops);
    p.run_until(250_000);
    let times: Vec<u64> = p.retransmissions().iter().map(|r| r.0 / 1_000).collect();
    assert_eq!(times, [3, 9, 21, 45, 93, 153, 213]);
    assert_eq!((p.tx.cwnd(), p.tx.ssthresh()), (1.0, 2.0));
    let counters = p.tx.counters();
    assert_eq!((counters.timeouts, counters.timeout_sequences, counters.loss_indications()), (7, 1, 1));
}

#[test]
fn reno_halves_a_window_of_three_to_one_and_a_half_and_opens_it_at_the_ack_that_ends_recovery() {
    let params = TcpParams {
        initial_window: Packets::new(3),
        initial_ssthresh: Some(Packets::new(3)),
        ..exact(TcpVariant::Reno)
    };
    let mut p = Pair::new(params, u32::MAX, &[(0, 0)]);
    p.run_until(200);
    // 0, 1, 2 leave, 0 is lost. Two duplicates at 100 ms let out 3 and 4 (limited transmit), whose
    // duplicates come at 200 ms: the third retransmits. Half of 3 is 1.5; ssthresh 1.5 -> 1 -> 2.
    assert_eq!(p.retransmissions(), [(200, 0)]);
    assert_eq!((p.tx.cwnd(), p.tx.ssthresh()), (1.5, 2.0));
    p.run_until(300);
    // The ACK of all five: below ssthresh, so one more.
    assert_eq!((p.tx.acknowledged(), p.tx.cwnd(), p.tx.phase()), (5, 2.5, TcpPhase::CongestionAvoidance));
}

#[test]
fn limited_transmit_after_a_timeout_sends_the_next_lost_segment() {
    let always = [(3_000, 0), (3_100, 1), (3_100, 2)];
    for (limited_transmit, then) in [(true, &[(3_200, 3)][..]), (false, &[])] {
        let params = TcpParams { initial_window: Packets::new(4), limited_transmit, ..exact(TcpVariant::Reno) };
        // All of the first window is lost, and segment 1 once more: the duplicate that 2 makes.
        let mut p = Pair::new(params, u32::MAX, &[(0, 0), (1, 0), (2, 0), (3, 0), (1, 1)]);
        p.run_until(3_250);
        assert_eq!(p.retransmissions(), [&always[..], then].concat(), "limited transmit: {limited_transmit}");
    }
}

#[test]
fn averages_weigh_each_value_with_the_time_it_held() {
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut p = Pair::new(exact(TcpVariant::Reno), u32::MAX, &[]);
    assert_eq!((p.tx.tally(at(0)).mean_cwnd(), p.tx.tally(at(0)).mean_srtt()), (None, None));
    p.run_until(100);
    let first = p.tx.tally(at(100));
    assert_eq!((first.mean_cwnd(), first.mean_rto()), (Some(2.0), None));
    p.run_until(200);
    // 2 for 100 ms, 4 for 100 ms. The first sample comes at 100 ms: SRTT 100, RTO 100 + 4 x 50.
    let both = p.tx.tally(at(200));
    assert!((both.mean_cwnd().unwrap() - 3.0).abs() < 1e-9);
    assert_eq!(both.mean_srtt(), Some(Duration::from_millis(100)));
    assert_eq!(both.mean_rto(), Some(Duration::from_millis(300)));
    let second = both.since(&first);
    assert!((second.mean_cwnd().unwrap() - 4.0).abs() < 1e-9);
    assert_eq!(second.counters.sent, both.counters.sent - first.counters.sent);
}

#[test]
fn karn_the_rtt_of_a_retransmitted_segment_is_never_a_sample() {
    let mut p = Pair::new(exact(TcpVariant::NewReno), 1, &[(0, 0)]);
    p.run_until(10_000);
    assert_eq!(p.rx.in_order(), 1);
    assert_eq!(p.tx.srtt(), None);
    // And the back-off stays until a fresh segment is measured: RTO is still 2 x 3 s.
    assert_eq!(p.tx.rto(), Duration::from_secs(6));
    p.tx.on_data(p.now, 2);
    p.transmit();
    p.run_until(10_200);
    assert_eq!(p.tx.srtt(), Some(Duration::from_millis(100)));
    assert_eq!(p.tx.rto(), Duration::from_millis(300));
}

#[test]
fn the_receivers_window_is_never_exceeded() {
    let params = TcpParams { max_window: Packets::new(10), ..exact(TcpVariant::NewReno) };
    let mut p = Pair::new(params, u32::MAX, &[(40, 0)]);
    p.run_until(650);
    assert_eq!(p.rounds()[..4], [2, 4, 8, 10]);
    assert!(p.tx.outstanding() <= 10);
    assert!(p.tx.cwnd() <= 10.0);
}

#[test]
fn acks_of_what_was_never_sent_and_old_ones_change_nothing() {
    let mut p = Pair::new(exact(TcpVariant::Sack), u32::MAX, &[]);
    p.run_until(250);
    let before = format!("{:?}", p.tx);
    let all = Range { start: 0, end: u32::MAX };
    p.tx.on_ack(p.now, &TcpAck { next: 1_000, sack: [all; 3], ece: true });
    p.tx.on_ack(p.now, &TcpAck { next: 1, sack: [all; 3], ece: true });
    assert_eq!(format!("{:?}", p.tx), before);
}

#[test]
fn an_idle_connection_restarts_from_the_initial_window() {
    let mut p = Pair::new(exact(TcpVariant::NewReno), 62, &[]); // 2 + 4 + 8 + 16 + 32
    p.run_until(5_000);
    assert_eq!(p.tx.cwnd(), 64.0);
    p.tx.on_data(p.now, 162);
    p.transmit();
    assert_eq!(p.sent.iter().filter(|s| s.0 == 5_000).count(), 2);
}

#[test]
fn linuxs_window_grows_by_one_after_as_many_acks_as_it_has_segments() {
    let rounds = |linux| {
        let (initial_window, initial_ssthresh) = (Packets::new(4), Some(Packets::new(4)));
        let mut p =
            Pair::new(TcpParams { linux, initial_window, initial_ssthresh, ..exact(TcpVariant::Sack) }, u32::MAX, &[]);
        p.run_until(450);
        (p.rounds(), p.tx.cwnd())
    };
    assert_eq!(rounds(true), (vec![4, 5, 6, 7, 8], 8.0));
    // 1/cwnd for each ACK: 4.25, 4.49, 4.71, 4.92 after the first four.
    assert_eq!(rounds(false).0[..3], [4, 4, 5]);
}

#[test]
fn a_timeout_in_a_window_that_was_cut_keeps_linuxs_ssthresh() {
    for linux in [false, true] {
        // 14 of the round at 300 ms is lost, its repair at 400 ms, and all that leaves with it or later.
        let losses: Vec<(u32, u32)> =
            (14..200).flat_map(|seq| [(seq, 1), (seq, 2)]).chain((30..200).map(|s| (s, 0))).chain([(14, 0)]).collect();
        let mut p = Pair::new(TcpParams { linux, ..exact(TcpVariant::Sack) }, u32::MAX, &losses);
        p.run_until(400);
        assert_eq!((p.tx.phase(), p.tx.counters().timeouts), (TcpPhase::Recovery, 0));
        let cut = p.tx.ssthresh();
        p.run_until(2_000);
        assert!(p.tx.phase() == TcpPhase::Timeout && p.tx.counters().timeouts >= 2, "linux {linux}");
        assert_eq!(p.tx.ssthresh() == cut, linux, "{} after {cut}", p.tx.ssthresh());
    }
}

/// [RFC 2861 §3] The last segments leave at 400 ms; the timeout is 100 + 200 ms.
#[test]
fn linux_halves_the_window_for_each_timeout_without_sending() {
    for (ms, cwnd, ssthresh) in [(650, 64.0, 50.0), (800, 32.0, 50.0), (1_100, 16.0, 50.0), (5_000, 2.0, 50.0)] {
        let initial_ssthresh = Some(Packets::new(50));
        let mut p = Pair::new(TcpParams { linux: true, initial_ssthresh, ..exact(TcpVariant::Sack) }, 62, &[]);
        p.run_until(ms);
        p.tx.set_cwnd(p.now, 64.0);
        p.tx.on_data(p.now, 400);
        assert_eq!((p.tx.cwnd(), p.tx.ssthresh()), (cwnd, ssthresh), "{ms} ms");
    }
    let mut p = Pair::new(TcpParams { linux: true, ..exact(TcpVariant::Sack) }, 62, &[]);
    p.run_until(2_000);
    p.tx.ssthresh = 10.0;
    p.tx.on_data(p.now, 400);
    assert_eq!((p.tx.cwnd(), p.tx.ssthresh()), (2.0, 48.0), "three quarters are remembered");
}

#[test]
fn a_window_that_was_ordered_is_kept_over_an_idle_time_where_windows_are_kept() {
    for (restart_after_idle, sent) in [(true, 2), (false, 10)] {
        let mut p = Pair::new(TcpParams { restart_after_idle, ..exact(TcpVariant::Reno) }, 62, &[]);
        p.run_until(5_000);
        p.tx.set_cwnd(p.now, 10.0);
        p.tx.on_data(p.now, 162);
        p.transmit();
        assert_eq!(p.sent.iter().filter(|s| s.0 == 5_000).count(), sent);
        p.tx.set_cwnd(p.now, 0.0);
        assert_eq!(p.tx.cwnd(), 1.0);
    }
    // Whoever repairs a loss knows better: the first of two was lost, and its timeout cut the window.
    let mut p = Pair::new(exact(TcpVariant::Reno), 2, &[(0, 0)]);
    p.run_until(3_050);
    assert_eq!((p.tx.phase(), p.tx.cwnd()), (TcpPhase::Timeout, 1.0));
    p.tx.set_cwnd(p.now, 10.0);
    assert_eq!(p.tx.cwnd(), 1.0);
}

#[test]
fn one_mark_is_one_cut_with_linuxs_recovery_too() {
    for linux in [false, true] {
        let params = TcpParams { ecn: true, linux, ..exact(TcpVariant::Sack) };
        let mut p = Pair::new(params, u32::MAX, &[]);
        p.mark = [20].into_iter().collect();
        p.run_until(2_000);
        assert_eq!(p.tx.counters().ecn_cuts, 1, "linux {linux}");
    }
}

/// Windows 2, 4, 8, 16 in rounds of 100 ms; what is sent at 300 ms is 14..30.
fn marked(variant: TcpVariant, mark: &[u32], drop: &[(u32, u32)]) -> Pair {
    let mut p = Pair::new(TcpParams { ecn: true, ..exact(variant) }, u32::MAX, drop);
    p.mark = mark.iter().copied().collect();
    p
}

#[test]
fn marks_halve_the_window_once_in_a_window_of_data_and_the_receiver_is_told() {
    for variant in [TcpVariant::Reno, TcpVariant::NewReno, TcpVariant::Sack] {
        let mut p = marked(variant, &[14, 20], &[]);
        p.run_until(399);
        assert_eq!((p.tx.cwnd(), p.sent.len()), (16.0, 30));
        p.run_until(400);
        // The first of the 16 ACKs echoes: 16 -> 8, and none of them opens the window, because the
        // answer is still to come: eight ACKs make room for nothing, the other eight for one each.
        assert_eq!((p.tx.cwnd(), p.tx.ssthresh(), p.tx.counters().ecn_cuts), (8.0, 8.0, 1), "{variant:?}");
        assert_eq!(p.sent.iter().filter(|s| s.0 == 400).count(), 8);
        p.run_until(500);
        // CWR came with segment 30: no more echoes, congestion avoidance from 8.
        assert_eq!(p.tx.counters().ecn_cuts, 1, "the mark of 20 is of the same window");
        assert!((8.9..9.0).contains(&p.tx.cwnd()), "{}", p.tx.cwnd());
        assert_eq!((p.tx.counters().retransmitted, p.tx.counters().loss_indications()), (0, 0));
    }
}

#[test]
fn a_mark_in_the_next_window_cuts_again() {
    let mut p = marked(TcpVariant::NewReno, &[14, 31], &[]);
    p.run_until(500);
    // 30 leaves at 400 ms with CWR; 31 after it is marked. 8 + 1/8 at the ACK of 30, then 4.06.
    assert_eq!(p.tx.counters().ecn_cuts, 2);
    assert_eq!(p.tx.cwnd(), 8.125 / 2.0);
}

#[test]
fn a_loss_in_a_window_that_a_mark_has_cut_is_repaired_without_a_second_cut() {
    for variant in [TcpVariant::Reno, TcpVariant::NewReno, TcpVariant::Sack] {
        let mut p = marked(variant, &[14], &[(20, 0)]);
        p.run_until(400);
        assert_eq!(p.retransmissions(), [(400, 20)], "{variant:?}");
        assert_eq!((p.tx.cwnd(), p.tx.ssthresh()), (8.0, 8.0), "{variant:?}");
        p.run_until(550);
        assert_eq!(p.tx.counters().timeouts, 0);
        assert!(p.rx.in_order() > 30, "{variant:?}: {}", p.rx.in_order());
    }
}

#[test]
fn a_mark_at_a_window_of_one_is_answered_with_silence_until_the_timer_runs_out() {
    let params = TcpParams { ecn: true, initial_window: Packets::new(1), ..exact(TcpVariant::Reno) };
    let mut p = Pair::new(params, 0, &[]);
    p.mark = BTreeSet::from([0, 1]);
    p.tx.on_data(p.now, u32::MAX);
    p.transmit();
    p.run_until(1_000);
    // 0 is answered at 100 ms: RTO = 100 + 4 x 50. 1 leaves at 400 ms; RTO = 100 + 4 x 37.5 at 500 ms.
    let times: Vec<(u64, u32)> = p.sent.iter().map(|s| (s.0, s.1)).take(3).collect();
    assert_eq!(times, [(0, 0), (400, 1), (750, 2)]);
    assert_eq!((p.tx.counters().ecn_cuts, p.tx.counters().timeouts), (2, 0));
}

#[test]
fn only_new_data_is_ecn_capable_and_only_if_asked_for() {
    for ecn in [false, true] {
        let params = TcpParams { ecn, ..exact(TcpVariant::NewReno) };
        let mut tx = TcpSender::new(params, RandomStream::named(1, "test.jitter"));
        tx.on_data(Instant::ZERO, u32::MAX);
        let first = tx.poll_transmit(Instant::ZERO).unwrap();
        assert_eq!((first.ecn, first.cwr), (if ecn { Ecn::Ect0 } else { Ecn::NotEct }, false));
        while tx.poll_transmit(Instant::ZERO).is_some() {}
        // After the timeout: the old ones again, plain; then, with the window's cut announced, new data.
        let rto = tx.poll_timer();
        tx.on_timer(rto);
        let again = tx.poll_transmit(rto).unwrap();
        assert_eq!((again.seq, again.ecn, again.cwr), (0, Ecn::NotEct, false));
        tx.on_ack(rto, &TcpAck { next: 2, ..TcpAck::default() });
        let new = tx.poll_transmit(rto).unwrap();
        assert_eq!((new.seq, new.ecn, new.cwr), (2, first.ecn, ecn));
        assert!(!tx.poll_transmit(rto).unwrap().cwr, "said once");
    }
}

#[test]
fn send_jitter_delays_each_opportunity_by_less_than_its_maximum() {
    let jitter = Duration::from_millis(10);
    let mut p = Pair::new(TcpParams { send_jitter: jitter, ..exact(TcpVariant::NewReno) }, u32::MAX, &[]);
    p.run_until(104);
    // Nothing leaves at 0; both of the first window leave together within 10 ms.
    assert!(p.sent[0].0 < 10 && p.sent[0].0 == p.sent[1].0);
    p.run_until(2_000);
    assert!(p.sent.len() > 1_000, "{}", p.sent.len());
    assert_eq!(p.tx.counters().retransmitted, 0);
}

proptest! {
    /// Whatever is lost or marked, everything arrives, the window bounds what is out, and no timer is left.
    #[test]
    fn every_transfer_ends(
        variant in prop::sample::select(vec![TcpVariant::Reno, TcpVariant::NewReno, TcpVariant::Sack]),
        drop in prop::collection::btree_set((0_u32..150, 0_u32..3), 0..60),
        delayed in any::<bool>(),
        limited_transmit in any::<bool>(),
        ecn in any::<bool>(),
        mark in prop::collection::btree_set(0_u32..150, 0..60),
        jitter_ms in 0_u64..3,
        recovery in 0..3,
    ) {
        let params = TcpParams {
            limited_transmit,
            linux: recovery == 1,
            ns2: recovery == 2 && variant == TcpVariant::Sack,
            ecn,
            send_jitter: Duration::from_millis(jitter_ms),
            delayed_ack: delayed.then_some(DelayedAck { timeout: Duration::from_millis(100) }),
            max_window: Packets::new(40),
            ..exact(variant)
        };
        let mut p = Pair::new(params, 150, &[]);
        (p.drop, p.mark) = (drop, mark);
        for step in 1..400 {
            p.run_until(step * 500);
            prop_assert!(p.tx.cwnd() >= 1.0 && p.tx.cwnd() <= 40.0);
            prop_assert!(p.tx.ssthresh() >= 2.0);
            prop_assert!(p.tx.outstanding() <= 40);
        }
        prop_assert_eq!(p.rx.in_order(), 150);
        prop_assert_eq!(p.tx.acknowledged(), 150);
        prop_assert_eq!(p.tx.poll_timer(), Instant::NEVER);
    }
}

/// The SYN leaves at 0 ms, data a round trip later, with the initial window; a SYN that is lost goes again after 3 s.
#[test]
fn a_connection_is_opened_by_one_segment_and_data_begins_with_the_initial_window() {
    let params = TcpParams { handshake: true, initial_window: Packets::new(4), ecn: true, ..exact(TcpVariant::Reno) };
    let mut p = Pair::new(params.clone(), u32::MAX, &[]);
    p.run_until(150);
    assert_eq!(p.tx.rto(), Duration::from_millis(300), "the SYN gives an RTT");
    p.run_until(250);
    assert_eq!(p.rounds(), [1, 4, 8]);
    let mut p = Pair::new(params, u32::MAX, &[(0, 0)]);
    p.run_until(3_150);
    assert_eq!(
        p.sent.iter().map(|s| (s.0, s.1)).collect::<Vec<_>>()[..6],
        [(0, 0), (3_000, 0), (3_100, 1), (3_100, 2), (3_100, 3), (3_100, 4)]
    );
    assert_eq!(p.tx.counters().timeouts, 1);
}
