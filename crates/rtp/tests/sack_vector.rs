//! ACKs with a sack vector: AIMD's window over RTP, its 24-bit numbers, and what is believed of them.

mod pair;

use fairpace_rtp::feedback::ccfb::wire::{self as ccfb, Metric};
use fairpace_rtp::feedback::claim::{self, Claim};
use fairpace_rtp::feedback::sack_vector::wire::{self as sack_vector, Ack};
use fairpace_rtp::packet::Packet;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{Out, ReceiverConfig, ReceiverSession, Secret, SenderConfig, StopReason, What};
use fairpace_units::{Dscp, Duration, Ecn, Instant, RandomStream, Rate};
use pair::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// RTT 100 ms, at most 10 Mbit/s, frames of whatever the window allows.
fn aimd(settings: &[(&str, &str)], sender: SenderConfig, receiver: ReceiverConfig) -> Pair {
    Pair::new(sender, receiver, flow("aimd", settings, Rate::mbps(10.0)), ms(50))
}

fn usual(settings: &[(&str, &str)]) -> Pair {
    aimd(settings, sender_config(), ReceiverConfig::default())
}

fn read(w: &Wire) -> Ack {
    let packets: Vec<_> = Compound::parse(&w.bytes).unwrap().collect();
    let [Rtcp::App(app)] = packets[..] else { panic!("{packets:?}") };
    Ack::parse(&app).unwrap().unwrap()
}

/// Rewrites each ACK, into any number of them.
fn rewrite(mut change: impl FnMut(Ack) -> Vec<Ack> + 'static) -> Disturb {
    Box::new(move |_, w| {
        if w.what != What::Feedback {
            return vec![(Duration::ZERO, w)];
        }
        let rewritten = change(read(&w)).into_iter().map(|ack| {
            let mut bytes = Vec::new();
            ack.emit(&mut bytes);
            (Duration::ZERO, Wire { bytes, ..w.clone() })
        });
        rewritten.collect()
    })
}

type Tape = Rc<RefCell<VecDeque<(Instant, Wire)>>>;

/// Both directions of a run, as they left.
fn tapped(p: &mut Pair) -> [Tape; 2] {
    let both = [(); 2].map(|()| Rc::new(RefCell::new(VecDeque::new())));
    (p.forward.disturb, p.back.disturb) = (tap(both[0].clone()), tap(both[1].clone()));
    both
}

/// The most packets outstanding at any time, as the wire shows it: media left less the newest acknowledged.
fn most_outstanding(forward: &VecDeque<(Instant, Wire)>, back: &VecDeque<(Instant, Wire)>, one_way: Duration) -> usize {
    let number = |w: &Wire| {
        let p = Packet::parse(&w.bytes).unwrap();
        u32::from(p.extensions.number_high.unwrap()) << 16 | u32::from(p.sequence)
    };
    let media: Vec<_> = forward.iter().filter(|(_, w)| w.what == What::Media).map(|(t, w)| (*t, number(w))).collect();
    let acks: Vec<_> =
        back.iter().filter(|(_, w)| w.what == What::Feedback).map(|(t, w)| (*t + one_way, read(w).ack)).collect();
    let first = media[0].1;
    let of = |(i, (left, _)): (usize, &(Instant, u32))| {
        let acked = acks.iter().filter(|(t, _)| t <= left).map(|(_, a)| a.wrapping_sub(first) & 0xff_ffff).max();
        i + 1 - acked.map_or(0, |newest| newest as usize + 1)
    };
    media.iter().enumerate().map(of).max().unwrap()
}

#[test]
fn each_packet_is_acknowledged_at_once_and_the_window_follows() {
    let mut p = usual(&[]);
    let [forward, back] = tapped(&mut p);
    p.run_until(at(10.0));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
    let arrived = p.receiver.stats().media.received;
    assert!(arrived > 2_000, "{arrived}");
    assert_eq!(p.receiver.stats().sent.of(What::Feedback).packets, arrived);
    let c = p.sender.flow().counters();
    assert_eq!((c.data.lost, c.bad), (0, Default::default()));
    assert!(c.data.acked <= c.data.sent && c.data.acked + 150 > c.data.sent, "{c:?}");
    // Microseconds on the wire, and held back for none.
    assert_eq!(p.sender.flow().srtt(), Some(ms(100)));
    let numbers: Vec<_> = back.borrow().iter().filter(|b| b.1.what == What::Feedback).map(|b| read(&b.1)).collect();
    for (i, two) in numbers.windows(2).enumerate() {
        assert_eq!(two[1].ack, (two[0].ack + 1) & 0xff_ffff);
        assert_eq!(two[1].number, two[0].number.wrapping_add(1));
        // Everything before has arrived: as many bits as there are packets, at most eight.
        assert_eq!(two[1].vector, 0xff >> 8_usize.saturating_sub(i + 1));
        assert_eq!((two[1].rwnd, two[1].delay, two[1].ecn), (None, 0, Ecn::NotEct));
    }
    // Packets are no longer than any other scheme's.
    let media = forward.borrow().iter().find(|(_, w)| w.what == What::Media).cloned().unwrap().1;
    let read = Packet::parse(&media.bytes).unwrap();
    assert!(read.extensions.nonce.is_some() && read.extensions.send_time.is_some());
    assert_eq!(media.bytes.len() - read.payload.len(), 12 + 16);
}

#[test]
fn a_lost_acknowledgement_is_made_up_for_by_the_next_eight() {
    let mut p = usual(&[]);
    // 30 % of the ACKs; nine in a row with probability 2e-5.
    p.back.disturb = lossy(7, 0.3);
    p.run_until(at(10.0));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
    let c = p.sender.flow().counters();
    assert!(c.data.sent > 1_000, "{c:?}");
    assert_eq!((c.data.lost, c.timeouts), (0, 0));

    // All but every ninth: each one tells of nine packets. All but every tenth: one in ten is never told of, and
    // the window falls.
    let every = |n: u64| {
        let mut p = usual(&[("rwnd", "40")]);
        p.frame_bytes = Some(40_000); // always 40 outstanding
        let mut k = 0;
        p.back.disturb = Box::new(move |now, w| {
            // Once the window is open: with two packets outstanding there is no ninth ACK.
            let counts = w.what == What::Feedback && now > at(2.0);
            k += u64::from(counts);
            if counts && !k.is_multiple_of(n) { vec![] } else { vec![(Duration::ZERO, w)] }
        });
        p.run_until(at(10.0));
        p.sender.flow().counters().data
    };
    let nine = every(9);
    assert!(nine.lost == 0 && nine.sent > 1_000, "{nine:?}");
    let ten = every(10);
    assert!(ten.lost > 10 && ten.acked * 2 < nine.acked, "{ten:?}");
}

#[test]
fn what_is_lost_is_known_and_lowers_the_window() {
    let run = |loss| {
        let mut p = usual(&[]);
        p.forward.disturb = lossy(3, loss);
        p.run_until(at(30.0));
        assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
        let (c, r) = (*p.sender.flow().counters(), p.receiver.stats().media);
        // Told within a round trip and three packets; but a run's last losses are not told yet.
        assert!(r.lost >= 0 && c.data.lost <= r.lost as u64 + 1 && c.data.lost + 20 > r.lost as u64, "{c:?} {r:?}");
        c.data.sent
    };
    // AIMD(0.2, 0.875): W = sqrt(alpha (1 + beta) / (2 (1 - beta) p)) = sqrt(1.5 / p): 12 packets at 1 %, 6 at 4 %,
    // that is 3,700 and 1,800 in 30 s; without loss as many as 10 Mbit/s and the encoder allow.
    let (none, one, four) = (run(0.0), run(0.01), run(0.04));
    assert!((2_400..5_500).contains(&one), "{one}");
    assert!((1_000..2_800).contains(&four), "{four}");
    assert!(none > 2 * one, "{none}");
}

// --- rwnd ----------------------------------------------------------------------------------------

#[test]
fn the_window_that_the_receiver_advertises_holds_from_the_first_packet_on() {
    for rwnd in [1, 3, 25, 254, 255, 300] {
        // Up to 255 packets the echo of the challenge says it; beyond, the first ACK does, and the window is 2 then.
        let receiver = ReceiverConfig { rwnd: Some(rwnd), ..ReceiverConfig::default() };
        let mut p = aimd(&[("initial_window", "10"), ("alpha", "100")], sender_config(), receiver);
        p.frame_bytes = Some(40_000); // 8 Mbit/s: more than the window lets through
        let [forward, back] = tapped(&mut p);
        p.run_until(at(5.0));
        assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
        assert_eq!(p.sender.flow().rwnd(), Some(rwnd));
        let most = most_outstanding(&forward.borrow(), &back.borrow(), ms(50));
        assert!(most <= rwnd as usize, "{most} outstanding, rwnd {rwnd}");
        assert!(most == rwnd as usize || rwnd > 25, "{most} outstanding, rwnd {rwnd}: all of it is used");
        for (_, w) in back.borrow().iter().filter(|(_, w)| w.what == What::Feedback) {
            assert_eq!(read(w).rwnd, Some(rwnd as u16));
        }
    }
}

#[test]
fn a_window_lowered_on_the_way_holds_and_a_closed_one_is_probed() {
    let mut p = usual(&[("initial_window", "10")]);
    p.frame_bytes = Some(10_000);
    // A base station writes its own window into the ACKs: 20, then none for some time, then 20 again.
    let rwnd = Rc::new(RefCell::new(Some(20)));
    let told = rwnd.clone();
    p.back.disturb = rewrite(move |ack| vec![Ack { rwnd: *told.borrow(), ..ack }]);
    p.run_until(at(5.0));
    assert_eq!((p.sender.flow().rwnd(), p.sender.stats().rejected), (Some(20), Default::default()));
    *rwnd.borrow_mut() = Some(0);
    p.run_until(at(6.0));
    let before = p.sender.flow().counters().data.sent;
    p.run_until(at(9.0));
    let probes = p.sender.flow().counters().data.sent - before;
    assert!((1..=30).contains(&probes), "one packet per timeout: {probes} in 3 s");
    *rwnd.borrow_mut() = Some(20);
    p.run_until(at(14.0));
    assert!(p.sender.flow().counters().data.sent - before > 300, "it opens again");
    assert_eq!((p.stopped, p.sender.flow().rwnd()), (None, Some(20)));
}

// --- T18: wrap -----------------------------------------------------------------------------------

#[test]
fn starting_just_before_any_wrap_gives_the_identical_run() {
    let run = |first: u32| {
        let config = SenderConfig { first_sequence: Some(first), ..sender_config() };
        let mut p = aimd(&[], config, ReceiverConfig::default());
        p.forward.disturb = lossy(3, 0.02);
        p.back.disturb = lossy(4, 0.1);
        p.run_until(at(15.0));
        let from = u64::from(first & 0xffff);
        let got: Vec<_> = p.received.iter().map(|g| (g.sequence - from, g.arrived, g.len)).collect();
        assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
        (p.sent, got, *p.sender.flow().counters(), p.sender.stats().sent)
    };
    let base = run(0);
    assert!(base.1.len() > 500, "{}", base.1.len());
    for first in [0xff_ffff, (1 << 24) - 500, 0xffff, (1 << 16) - 500, 0x12_3456] {
        assert!(base == run(first), "from {first:#x}");
    }
}

#[test]
fn packets_lost_before_the_first_that_arrives_shift_no_number() {
    // Eleven packets across the wrap are lost: RTP's 16 bits alone would not show that there was one.
    for first in [0xff_fff8, 0x00_fff8, 0x41_fff8] {
        let config = SenderConfig { first_sequence: Some(first), ..sender_config() };
        let mut p = aimd(&[("initial_window", "10")], config, ReceiverConfig::default());
        let mut n = 0;
        p.forward.disturb = Box::new(move |_, w| {
            n += u32::from(w.what == What::Media);
            if w.what == What::Media && n <= 11 { vec![] } else { vec![(Duration::ZERO, w)] }
        });
        p.run_until(at(20.0));
        assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
        let c = p.sender.flow().counters().data;
        assert!(c.lost == 11 && c.acked > 500, "{first:#x}: {c:?}");
    }
}

// --- T1, T2, T3, T6, T9: ACKs that lie ------------------------------------------------------------

#[test]
fn acknowledging_early_is_caught_at_once_and_stops_the_flow_at_the_third_lie() {
    // One packet more than arrived: on its way, or not sent.
    let mut p = usual(&[]);
    p.back.disturb = rewrite(|ack| vec![Ack { ack: (ack.ack + 1) & 0xff_ffff, vector: ack.vector << 1 | 1, ..ack }]);
    p.run_until(at(10.0));
    assert_eq!(p.stopped.map(|s| s.1), Some(StopReason::PeerLied));
    assert_eq!(p.sender.flow().counters().data.acked, 0, "not one false acknowledgement was credited");
    // Far ahead of all that was sent.
    let mut p = usual(&[]);
    p.back.disturb = rewrite(|ack| vec![Ack { ack: (ack.ack + 0x40_0000) & 0xff_ffff, ..ack }]);
    p.run_until(at(10.0));
    assert_eq!(p.stopped.map(|s| s.1), Some(StopReason::PeerLied));
    assert_eq!(p.sender.stats().rejected.unsent, 3);
}

#[test]
fn hiding_a_loss_is_caught_and_gets_nothing() {
    let run = |hide: bool| {
        let mut p = usual(&[]);
        p.forward.disturb = lossy(4, 0.05);
        if hide {
            p.back.disturb = rewrite(|ack| vec![Ack { vector: 0xff, ..ack }]);
        }
        p.run_until(at(20.0));
        p
    };
    let (honest, liar) = (run(false), run(true));
    assert_eq!(liar.stopped.map(|s| s.1), Some(StopReason::PeerLied), "{:?}", liar.sender.stats().rejected);
    assert!(liar.sender.flow().counters().data.acked < honest.sender.flow().counters().data.acked / 2);
    // Before the first packet there is nothing to claim.
    let mut p = usual(&[]);
    p.back.disturb = rewrite(|ack| vec![Ack { vector: 0xff, ..ack }]);
    p.run_until(at(0.4));
    assert!(p.sender.stats().rejected.unsent > 0, "{:?}", p.sender.stats().rejected);
}

/// Damages the nonce of one media packet in `every`.
fn damaged_nonces(every: u32) -> Disturb {
    let mut n = 0;
    Box::new(move |_, mut w| {
        n += u32::from(w.what == What::Media);
        if w.what == What::Media && n.is_multiple_of(every) {
            w.bytes[21] ^= 0xff; // header 12, extension head 4, send time 4, nonce's head 1
        }
        vec![(Duration::ZERO, w)]
    })
}

/// In a window of fewer packets than a vector tells of, too: until the nonce has left it, the window would not move.
#[test]
fn one_damaged_nonce_costs_one_packet_and_makes_no_liar() {
    for window in [1, 2, 4, 8, 9, 40] {
        let mut p = usual(&[("rwnd", &window.to_string())]);
        p.forward.disturb = damaged_nonces(100);
        p.run_until(at(100.0));
        let (c, rejected) = (p.sender.flow().counters(), p.sender.stats().rejected);
        let damaged = c.data.sent / 100;
        assert_eq!(p.stopped, None, "window {window}: {rejected:?}");
        // Its own ACK is wrong, and the first that tells of it no longer may be.
        let few = damaged - 1..=2 * damaged;
        assert!(damaged > 3 && few.contains(&rejected.nonce), "window {window}: {rejected:?}, {damaged} damaged");
        // One timeout each if nothing else is under way.
        let timeouts = if window <= 3 { damaged } else { 0 };
        assert!(
            c.data.lost.abs_diff(damaged) <= 1 && c.timeouts <= timeouts,
            "window {window}: {c:?}, {damaged} damaged"
        );
    }
}

/// Two damaged nonces in one vector, and acknowledgements that are lost between: what is proven is credited, and nothing else.
#[test]
fn damaged_nonces_close_together_under_lost_acknowledgements_stop_nothing() {
    let mut p = usual(&[("rwnd", "12")]);
    p.forward.disturb = damaged_nonces(13);
    p.back.disturb = lossy(5, 0.1);
    p.run_until(at(100.0));
    let c = p.sender.flow().counters().data;
    assert_eq!(p.stopped, None, "{:?}", p.sender.stats().rejected);
    let damaged = c.sent / 13;
    assert!(c.sent > 2_000 && (damaged..damaged * 5 / 4).contains(&c.lost), "{c:?}, {damaged} damaged");
}

/// A liar that adds one packet to all that it says, as if its nonce had been damaged: what it adds is never credited.
#[test]
fn a_false_claim_told_again_with_true_ones_is_not_credited() {
    let mut p = usual(&[("rwnd", "40")]);
    let lost = Rc::new(RefCell::new(Vec::new()));
    let (tell, mut n) = (lost.clone(), 0);
    p.forward.disturb = Box::new(move |_, w| {
        n += u32::from(w.what == What::Media);
        if w.what != What::Media || !n.is_multiple_of(50) {
            return vec![(Duration::ZERO, w)];
        }
        let packet = Packet::parse(&w.bytes).unwrap();
        tell.borrow_mut().push(u32::from(packet.extensions.number_high.unwrap()) << 16 | u32::from(packet.sequence));
        vec![]
    });
    let known = lost.clone();
    p.back.disturb = rewrite(move |ack| {
        let hidden = known.borrow().last().map_or(0, |lost| ack.ack.wrapping_sub(*lost) & 0xff_ffff);
        let bit = if (1..=8).contains(&hidden) { 1 << (hidden - 1) } else { 0 };
        vec![Ack { vector: ack.vector | bit, ..ack }]
    });
    p.run_until(at(20.0));
    let (c, lost) = (p.sender.flow().counters().data, lost.borrow().len() as u64);
    assert!(lost > 20 && c.lost.abs_diff(lost) <= 1, "{c:?}, {lost} lost, {:?}", p.sender.stats().rejected);
}

/// The sums of a liar that does not know the nonces are wrong by another number each time.
#[test]
fn a_sum_that_is_wrong_by_another_number_than_the_one_before_proves_nothing() {
    let mut p = usual(&[("rwnd", "40")]);
    let mut n = 0_u32;
    p.back.disturb = rewrite(move |ack| {
        n += 1;
        vec![Ack { nonce_sum: ack.nonce_sum.wrapping_add(n.saturating_sub(200)), ..ack }]
    });
    p.run_until(at(20.0));
    assert_eq!(p.stopped.map(|s| s.1), Some(StopReason::PeerLied));
    let (c, rejected) = (p.sender.flow().counters().data, p.sender.stats().rejected);
    assert!(c.acked == 200 && rejected.nonce >= 3, "{c:?}, {rejected:?}");
}

#[test]
fn a_damaged_number_costs_one_packet_and_makes_no_liar() {
    let mut p = usual(&[("rwnd", "40")]);
    let mut n = 0;
    p.forward.disturb = Box::new(move |_, mut w| {
        n += u32::from(w.what == What::Media);
        if w.what == What::Media && n % 100 == 1 {
            w.bytes[26] ^= 0x10; // header 12, extension head 4, send time 4, nonce 5, its own head 1: also the very first
        }
        vec![(Duration::ZERO, w)]
    });
    p.run_until(at(20.0));
    assert_eq!(p.stopped, None);
    let (c, rejected) = (p.sender.flow().counters().data, p.sender.stats().rejected);
    let damaged = c.sent / 100;
    assert!(damaged > 10 && rejected.unsent.abs_diff(damaged) <= 2, "{rejected:?}, {damaged} damaged");
    assert!(c.lost.abs_diff(damaged) <= 2, "{c:?}");
}

#[test]
fn acknowledgements_that_come_twice_or_late_again_change_nothing() {
    let trace = |disturb: Disturb| {
        let mut p = usual(&[]);
        p.forward.disturb = lossy(3, 0.01);
        p.back.disturb = disturb;
        p.run_until(at(8.0));
        (p.sent, p.sender.stats().rejected.replayed)
    };
    let (clean, none) = trace(undisturbed());
    assert!(clean.len() > 500 && none == 0, "{}", clean.len());
    let mut stream = RandomStream::named(9, "replay");
    let (replayed, rejected) = trace(Box::new(move |_, w| {
        let mut all = vec![(Duration::ZERO, w.clone()); 2];
        if w.what == What::Feedback {
            all.extend((0..5).map(|_| (stream.duration_below(Duration::from_secs(4)), w.clone())));
        }
        all
    }));
    assert!(replayed == clean);
    assert!(rejected > 1_000, "{rejected}");
}

#[test]
fn acknowledgements_that_overtake_each_other_lose_nothing() {
    let mut p = usual(&[]);
    let mut n = 0_u64;
    p.back.disturb = Box::new(move |_, w| {
        n += 1;
        vec![(ms(n % 3 * 7), w)]
    });
    p.run_until(at(10.0));
    let c = p.sender.flow().counters();
    assert_eq!((c.data.lost, p.sender.stats().rejected), (0, Default::default()));
    assert!(c.data.acked > 1_000, "{c:?}");
}

#[test]
fn an_ack_from_another_receiver_or_in_another_form_is_nothing_to_this_flow() {
    let trace = |disturb: Disturb| {
        let mut p = usual(&[]);
        p.back.disturb = disturb;
        p.run_until(at(5.0));
        (p.sent, p.sender.stats().rejected)
    };
    let (clean, _) = trace(undisturbed());
    let (with, rejected) = trace(rewrite(|ack| {
        vec![
            Ack { receiver: ack.receiver ^ 1, rwnd: Some(0), ..ack },
            ack,
            Ack { number: ack.number.wrapping_add(1 << 20), ..ack },
        ]
    }));
    assert!(with == clean);
    assert!(rejected.wrong_ssrc > 100 && rejected.replayed > 100, "{rejected:?}");
    // Per-packet feedback from the same receiver, with any claim; it is not looked at.
    let (with, rejected) = trace(Box::new(|_, w| {
        let mut all = vec![(Duration::ZERO, w.clone())];
        if w.what == What::Feedback {
            let ack = read(&w);
            let mut bytes = Vec::new();
            claim::emit(&mut bytes, ack.receiver, ack.number.wrapping_add(1), [Claim::default()]);
            let metric = Metric::received(Ecn::NotEct, Duration::ZERO);
            ccfb::emit(&mut bytes, ack.receiver, 0, [(1, ack.ack as u16, vec![metric; 4])]);
            all.push((Duration::ZERO, Wire { bytes, ..w }));
        }
        all
    }));
    assert!(with == clean && rejected.unproven > 100, "{rejected:?}");

    // And a sender that wants per-packet feedback takes no sack vector.
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let [_, back] = tapped(&mut p);
    p.run_until(at(1.0));
    let before = (*p.sender.flow().counters(), p.sender.stats().feedback);
    let echo = back.borrow().iter().find(|(_, w)| w.what == What::Echo).map(|(_, w)| w.bytes.clone()).unwrap();
    let receiver = u32::from_be_bytes(echo[4..8].try_into().unwrap());
    let mut bytes = Vec::new();
    let number = u32::from_be_bytes(echo[32..36].try_into().unwrap()).wrapping_add(500);
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
    let ack = Ack { receiver, number, ack: 5, vector: 0, rwnd: Some(0), dscp, ecn, delay: 0, arrival: 0, nonce_sum: 0 };
    ack.emit(&mut bytes);
    assert_eq!(bytes.len(), sack_vector::LEN);
    p.sender.handle_datagram(p.now, &bytes, dscp, ecn);
    assert_eq!((*p.sender.flow().counters(), p.sender.stats().feedback), before);
    assert_eq!(p.sender.stats().rejected.unproven, 1);
}

#[test]
fn a_receiver_that_is_there_but_never_acknowledges_gets_one_packet_per_timeout() {
    let mut p = usual(&[]);
    p.back.disturb = Box::new(|_, w| if w.what == What::Feedback { vec![] } else { vec![(Duration::ZERO, w)] });
    p.run_until(at(60.0));
    // Two at the start, then after 0.3, 0.6, 1.2, ... s; reports go on, so that the path is not dead.
    assert!((5..=10).contains(&p.count(What::Media)), "{}", p.count(What::Media));
}

// --- the receiver --------------------------------------------------------------------------------

#[test]
fn a_driver_that_hands_in_many_packets_before_it_drains_gets_an_ack_for_each() {
    // The sender's side of a run, once more into a receiver that is asked every 20 packets only.
    let mut p = usual(&[]);
    let [forward, _] = tapped(&mut p);
    p.run_until(at(3.0));
    let mut r = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(3));
    let from = SENDER.parse().unwrap();
    let (mut media, mut acks) = (Vec::new(), Vec::new());
    for (i, (at, w)) in forward.borrow().iter().enumerate() {
        r.handle_datagram(*at, &w.bytes, w.dscp, w.ecn, from);
        if w.what == What::Media {
            media.push(*at);
        }
        if i % 20 == 0 {
            while let Out::Datagram(d) = r.poll(*at) {
                if d.what == What::Feedback {
                    acks.push((
                        *at,
                        read(&Wire {
                            bytes: d.bytes.to_vec(),
                            dscp: d.dscp,
                            ecn: d.ecn,
                            what: d.what,
                            fragments: false,
                            quick_start: None,
                        }),
                    ));
                }
            }
        }
    }
    assert!(acks.len() > 500 && media.len() - acks.len() < 20, "{} of {}", acks.len(), media.len());
    for ((sent, ack), arrived) in acks.iter().zip(&media) {
        // Each says how long it was held back by the driver.
        assert_eq!(u128::from(ack.delay), sent.since(*arrived).as_micros());
    }
    assert!(acks.windows(2).all(|w| w[1].1.ack == (w[0].1.ack + 1) & 0xff_ffff));
}

#[test]
fn acks_gathered_for_a_time_tell_of_every_packet_and_do_not_lengthen_the_round_trip() {
    let receiver = ReceiverConfig { ack_interval: ms(20), ..ReceiverConfig::default() };
    let mut p = aimd(&[("rwnd", "100")], sender_config(), receiver);
    p.run_until(at(20.0));
    assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
    let c = p.sender.flow().counters().data;
    let acks = p.receiver.stats().sent.of(What::Feedback).packets;
    // No more than eight packets in one ACK.
    assert!(acks * 8 >= c.acked && acks < c.acked / 2, "{acks} ACKs, {c:?}");
    assert_eq!(c.lost, 0);
    let srtt = p.sender.flow().srtt().unwrap();
    assert!(srtt >= ms(99) && srtt < ms(110), "{srtt:?}");
}

/// Where lost packets are sent again, the echo alone says the window.
#[test]
fn a_window_that_the_echo_says_holds_without_sack_vectors() {
    for retransmission in [false, true] {
        let sender = SenderConfig { retransmission, ..sender_config() };
        let receiver = ReceiverConfig { rwnd: Some(7), ..ReceiverConfig::default() };
        let mut p = aimd(&[("initial_window", "10")], sender, receiver);
        let mut most = 0;
        for n in 0..500 {
            p.run_until(at(0.01 * f64::from(n)));
            most = most.max(p.sender.flow().flight().0);
        }
        assert_eq!(most, 7, "retransmission {retransmission}");
    }
}

#[test]
fn a_mark_comes_back_with_the_ack_of_its_packet_and_lowers_the_window() {
    let run = |marked: bool| {
        let mut p = usual(&[("ecn", "on")]);
        let mut n = 0;
        p.forward.disturb = Box::new(move |_, mut w| {
            if w.what == What::Media {
                assert_eq!(w.ecn, Ecn::Ect0);
                n += 1;
                if marked && n % 100 == 0 {
                    w.ecn = Ecn::Ce;
                }
            }
            vec![(Duration::ZERO, w)]
        });
        p.run_until(at(20.0));
        assert_eq!((p.stopped, p.sender.stats().rejected), (None, Default::default()));
        assert_eq!(p.sender.flow().counters().data.lost, 0);
        p.sender.flow().counters().data.sent
    };
    let (clean, marked) = (run(false), run(true));
    assert!(marked * 2 < clean, "{marked}, unmarked {clean}");
}

#[test]
fn a_sequence_number_damaged_on_its_way_neither_silences_the_receiver_nor_makes_a_liar() {
    // One packet says that it is `ahead` packets further on: within the vector, beyond it, beyond reordering.
    for ahead in [1, 4, 8, 9, 20, 99, 1_000] {
        let mut p = usual(&[("rwnd", "30")]);
        let mut n = 0;
        p.forward.disturb = Box::new(move |_, mut w| {
            n += u32::from(w.what == What::Media);
            if w.what == What::Media && n == 300 {
                let sequence = u16::from_be_bytes([w.bytes[2], w.bytes[3]]).wrapping_add(ahead);
                w.bytes[2..4].copy_from_slice(&sequence.to_be_bytes());
            }
            vec![(Duration::ZERO, w)]
        });
        p.run_until(at(20.0));
        let (c, rejected) = (p.sender.flow().counters(), p.sender.stats().rejected);
        assert_eq!((p.stopped, c.timeouts), (None, 0), "{ahead} ahead: {rejected:?}");
        assert!((1..=10).contains(&c.data.lost) && c.data.acked > 2_000, "{ahead} ahead: {c:?}");
        assert!(rejected.unsent + rejected.nonce > 0, "{ahead} ahead: {rejected:?}");
    }
}
