//! All data that goes in comes out; faults of the path are noticed.

mod pair;

use fairpace_rtp::{Codec, Frame, ReceiverConfig, ReceiverEvent, SenderConfig, SenderEvent, StopReason, What};
use fairpace_units::{Class, Dscp, Duration, Ecn, Rate};
use pair::*;

#[test]
fn media_arrives_whole_and_in_order_under_rcs() {
    let mut p = Pair::usual("rcs", &[]);
    p.run_until(at(10.0));
    assert_eq!(p.stopped, None);
    // Everything sent has arrived, but for what is on its way (50 ms).
    let sent = p.count(What::Media);
    assert!(p.received.len() <= sent && p.received.len() + 100 > sent, "{} of {sent}", p.received.len());
    assert!(sent > 500);
    assert!(p.received.windows(2).all(|w| w[1].sequence == w[0].sequence + 1));
    // Frames come out as they went in: contiguous and complete.
    assert!(p.assembled.len() > 200);
    assert!(p.assembled.windows(2).all(|w| w[1].first_sequence == w[0].last_sequence + 1));
    // RCS opens with dummies for one round trip [rcs §III-B].
    assert!(p.count(What::Dummy) > 10);
    let stats = p.receiver.stats();
    assert_eq!((stats.media.lost, stats.dummy.lost, stats.malformed, stats.unproven), (0, 0, 0, 0));
    assert_eq!(stats.dummy.dscp, Dscp::LE);
    assert_eq!(p.sender.stats().rejected, Default::default());
    let counters = p.sender.flow().counters();
    assert_eq!((counters.data.lost, counters.dummy.lost), (0, 0));
    assert_eq!(counters.bad, Default::default(), "overlapping reports are sorted out before the flow sees them");
    assert_eq!(counters.data.sent, sent as u64);
    assert!(counters.data.acked + 150 > counters.data.sent);
    // 100 ms there and back. The report says how long it held each ACK, rounded down to 1/1,024 s.
    let srtt = p.sender.flow().srtt().unwrap().as_secs_f64();
    assert!((0.100..0.1011).contains(&srtt), "{srtt}");
    assert!(p.received.iter().all(|g| g.one_way_delay.is_some_and(|d| (d - 50_000_000).abs() < 4_000)));
}

/// Two packets in sequence each second, then thirty, come 300 ms late: at 600 packets/s some 180 numbers behind. An announced stream goes on,
/// and they count as any other.
#[test]
fn packets_held_back_for_longer_than_reordering_lasts_reset_nothing() {
    for held in [2, 30] {
        let mut p = Pair::usual("fixed", &[("rate", "600 pkt/s")]);
        let mut n = 0_u32;
        p.forward.disturb = Box::new(move |_, w| {
            n += u32::from(w.what == What::Media);
            let late = w.what == What::Media && n % 600 < held && n > 600;
            vec![(if late { ms(300) } else { Duration::ZERO }, w)]
        });
        p.run_until(at(10.0));
        let (sent, stats) = (p.count(What::Media) as u64, p.receiver.stats());
        assert_eq!((p.stopped, stats.unproven), (None, 0), "{held} held back");
        assert!(
            sent > 3_000 && stats.media.received + 250 > sent,
            "{held} held back: {} of {sent}",
            stats.media.received
        );
        assert!(stats.media.lost < 250, "{held} held back: {:?}", stats.media);
    }
}

#[test]
fn the_first_round_trip_and_the_marks_come_from_the_challenge() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(0.5));
    assert_eq!(
        p.sender_events[0],
        (at(0.1), SenderEvent::DscpSeen { class: Class::Normal, sent: Dscp::DEFAULT, arrived: Dscp::DEFAULT })
    );
    assert_eq!(
        p.sender_events[1],
        (at(0.1), SenderEvent::PeerValidated { srtt: ms(100), dscp_seen: Some(Dscp::DEFAULT) })
    );
    assert_eq!(
        p.sender_events[2],
        (at(0.1), SenderEvent::DscpSeen { class: Class::Low, sent: Dscp::LE, arrived: Dscp::LE })
    );
    assert!(matches!(p.receiver_events[0].1, ReceiverEvent::NewSource { payload_type: 97, codec: Codec::Generic, .. }));
    // The very first media packet is there: an announced source needs no probation.
    let first = p.sent.iter().find(|l| l.what == What::Media).unwrap();
    assert_eq!(p.received[0].arrived, first.at + ms(50));
}

#[test]
fn every_loss_is_detected_and_nothing_else() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let mut n = 0_u32;
    let mut lost = 0;
    p.frame_bytes = Some(1_000); // two packets; 50 packets/s
    p.forward.disturb = Box::new(move |_, w| {
        if w.what == What::Media {
            n += 1;
            if n.is_multiple_of(37) {
                return vec![];
            }
        }
        vec![(Duration::ZERO, w)]
    });
    p.run_until(at(20.0));
    let sent = p.count(What::Media) as u64;
    lost += sent / 37;
    let counters = p.sender.flow().counters();
    assert!(counters.data.lost <= lost && counters.data.lost + 1 >= lost, "{} of {lost}", counters.data.lost);
    let stats = p.receiver.stats();
    assert!((stats.media.lost - lost as i64).abs() <= 1, "{stats:?}");
    // The sender sees the loss that the receiver reports in its RR: 1/37 = 2.7 %, in 1/256.
    let fraction = p.sender.stats().fraction_lost.unwrap();
    assert!((0.01..0.05).contains(&fraction), "{fraction}");
    let rtt = p.sender.stats().report_rtt.unwrap().as_secs_f64();
    assert!((0.099..0.102).contains(&rtt), "LSR and DLSR: {rtt}");
}

#[test]
fn one_lost_report_in_three_costs_no_acknowledgement() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    let mut n = 0;
    p.back.disturb = Box::new(move |_, w| {
        n += u32::from(w.what == What::Feedback);
        if w.what == What::Feedback && n % 3 == 0 { vec![] } else { vec![(Duration::ZERO, w)] }
    });
    p.run_until(at(10.0));
    let c = p.sender.flow().counters();
    assert_eq!((c.data.lost, c.data.late), (0, 0));
    assert!(c.data.acked + 30 > c.data.sent);
}

#[test]
fn feedback_at_every_packet_is_feedback_at_once() {
    let config = ReceiverConfig { feedback_interval: Duration::ZERO, ..ReceiverConfig::default() };
    let mut p = Pair::new(sender_config(), config, flow("fixed", &[("rate", "100 pkt/s")], Rate::mbps(10.0)), ms(50));
    p.run_until(at(5.0));
    let stats = p.receiver.stats();
    assert_eq!(stats.sent.of(What::Feedback).packets, stats.media.received + stats.dummy.received);
}

#[test]
fn feedback_keeps_its_interval_and_is_counted_apart_from_rtcp() {
    let mut p = Pair::usual("fixed", &[("rate", "500 pkt/s")]);
    p.run_until(at(60.0));
    let stats = p.receiver.stats();
    // 60 s at one report per 20 ms
    let reports = stats.sent.of(What::Feedback).packets;
    assert!((2_900..=3_000).contains(&reports), "{reports}");
    // RTCP: every 2.05 to 6.16 s after the first at 1.03 to 3.08 s
    let rr = stats.sent.of(What::Report);
    assert!((9..=30).contains(&rr.packets), "{rr:?}");
    let sr = p.sender.stats().sent.of(What::Report);
    let rtcp_bps = (rr.bytes + sr.bytes + 28 * (rr.packets + sr.packets)) as f64 * 8.0 / 60.0;
    assert!(rtcp_bps < 0.05 * 1e6, "{rtcp_bps}");
}

#[test]
fn reports_of_both_sides_share_five_percent_where_the_minimum_does_not_bind() {
    // 2 kbit/s: 100 bit/s for RTCP. Reports of some 130 B from two members: every 20 s.
    let bandwidth = Rate::kbps(2.0);
    let config = SenderConfig { session_bandwidth: bandwidth, ..sender_config() };
    let receiver = ReceiverConfig { session_bandwidth: bandwidth, ..ReceiverConfig::default() };
    let mut p = Pair::new(config, receiver, flow("fixed", &[("rate", "5 pkt/s")], Rate::mbps(1.0)), ms(50));
    p.fps = 5;
    p.run_until(at(3_600.0));
    let (rr, sr) = (p.receiver.stats().sent.of(What::Report), p.sender.stats().sent.of(What::Report));
    let bps = (rr.bytes + sr.bytes + 28 * (rr.packets + sr.packets)) as f64 * 8.0 / 3_600.0;
    // Some 180 reports from each, uniform within ± 50 %: 3 standard deviations are 5 %.
    assert!((90.0..110.0).contains(&bps), "{bps}");
    assert!(rr.packets > 100 && sr.packets > 100, "{rr:?} {sr:?}");
}

#[test]
fn dummies_and_their_feedback_are_lower_effort_and_media_is_not() {
    let mut p = Pair::usual("rcs", &[]);
    p.forward.disturb = Box::new(|_, w| {
        let low = matches!(w.dscp.class(), Class::Low);
        match w.what {
            What::Dummy => assert!(low),
            What::Challenge => {}
            _ => assert!(!low, "{:?}", w.what),
        }
        vec![(Duration::ZERO, w)]
    });
    let low_reports = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = low_reports.clone();
    p.back.disturb = Box::new(move |_, w| {
        seen.set(seen.get() + u32::from(w.what == What::Feedback && w.dscp == Dscp::LE));
        vec![(Duration::ZERO, w)]
    });
    p.run_until(at(3.0));
    assert!(low_reports.get() > 2, "{}", low_reports.get());
}

#[test]
fn a_path_that_bleaches_le_gets_few_dummies_and_the_application_is_told() {
    let dummies = |bleach: bool| {
        let mut p = Pair::usual("rcs", &[]);
        p.forward.disturb = Box::new(move |_, mut w| {
            if bleach {
                w.dscp = Dscp::DEFAULT;
            }
            vec![(Duration::ZERO, w)]
        });
        p.run_until(at(0.5));
        let told = p
            .sender_events
            .iter()
            .any(|(_, e)| *e == SenderEvent::DscpSeen { class: Class::Low, sent: Dscp::LE, arrived: Dscp::DEFAULT });
        (p.count(What::Dummy), told)
    };
    // Initial: one round trip of dummies at S_Target, 10 Mbit/s: 100 ms × 1,250 packets/s; a tenth if limited.
    assert_eq!(dummies(false), (125, false));
    let (limited, told) = dummies(true);
    assert!(told && (11..=13).contains(&limited), "{limited}");
}

#[test]
fn retransmission_fills_holes_and_frames_are_whole_again() {
    let whole = |rtx: bool| {
        let config = SenderConfig { retransmission: rtx, codec: Codec::Vp8, ..sender_config() };
        let receiver = ReceiverConfig { nack: rtx, ..ReceiverConfig::default() };
        let mut p = Pair::new(config, receiver, flow("fixed", &[("rate", "200 pkt/s")], Rate::mbps(10.0)), ms(50));
        p.frame_bytes = Some(4_000); // 5 packets, 125 packets/s
        p.forward.disturb = lossy(5, 0.03);
        p.run_until(at(20.0));
        let sent = p.sender.stats().frames;
        let stats = p.receiver.stats();
        (p.assembled.len() as f64 / sent as f64, stats.repaired, stats.media.lost, p)
    };
    // Without: a frame survives with probability 0.97^5 = 0.859.
    let (share, repaired, _, _) = whole(false);
    assert!((0.80..0.91).contains(&share), "{share}");
    assert_eq!(repaired, 0);
    // With: only frames still on their way or being repaired at the end are missing.
    let (share, repaired, lost, p) = whole(true);
    assert!(share > 0.98, "{share}");
    assert!(repaired as i64 > lost * 9 / 10, "{repaired} of {lost}");
    // Retransmissions have a stream of their own; media sequence numbers stay those of media.
    let retransmitted = p.count(What::Retransmission);
    assert!(retransmitted as u64 >= repaired && (retransmitted as f64) < 1.5 * repaired as f64 + 5.0);
    let mut sequences: Vec<u64> = p.received.iter().map(|g| g.sequence).collect();
    let n = sequences.len();
    sequences.sort_unstable();
    sequences.dedup();
    assert_eq!(sequences.len(), n, "nothing twice");
}

#[test]
fn after_a_blackout_what_is_too_late_is_not_sent_again_and_a_key_frame_is_asked_for() {
    let config = SenderConfig { retransmission: true, playout: ms(500), codec: Codec::Vp8, ..sender_config() };
    let receiver = ReceiverConfig { nack: true, ..ReceiverConfig::default() };
    let mut p = Pair::new(config, receiver, flow("fixed", &[("rate", "200 pkt/s")], Rate::mbps(10.0)), ms(50));
    p.forward.disturb = Box::new(|now, w| {
        let dark = (at(4.0)..at(6.0)).contains(&now);
        if dark { Vec::new() } else { vec![(Duration::ZERO, w)] }
    });
    p.run_until(at(4.0));
    assert_eq!(p.sender.stats().too_late, 0);
    let asked = |p: &Pair| p.sender_events.iter().filter(|(_, e)| *e == SenderEvent::KeyFrameRequest).count();
    let before = asked(&p);
    p.run_until(at(6.5));
    // 200 packets/s are lost from 4 to 6 s. The NACK is back at 6.11 s: the 78 that left since 5.61 s may be sent
    // again, some of them twice; the receiver asks for a packet up to four times.
    let again = p.count(What::Retransmission);
    assert!((70..=120).contains(&again), "{again}");
    let late = p.sender.stats().too_late;
    assert!((320..4 * 400).contains(&late), "{late}");
    assert!(asked(&p) > before, "the picture cannot be mended any more");
}

#[test]
fn a_packet_that_comes_late_and_again_is_handed_out_once() {
    // Asked for after 10 ms, a retransmission is here 100 ms later. Originals that are 50 ms late come before
    // it, those that are 300 ms late behind it.
    for late in [50, 300] {
        let config = SenderConfig { retransmission: true, ..sender_config() };
        let receiver = ReceiverConfig { nack: true, ..ReceiverConfig::default() };
        let mut p = Pair::new(config, receiver, flow("fixed", &[("rate", "200 pkt/s")], Rate::mbps(10.0)), ms(50));
        let mut n = 0_u32;
        p.forward.disturb = Box::new(move |_, w| {
            n += u32::from(w.what == What::Media);
            let slow = w.what == What::Media && n.is_multiple_of(40);
            vec![(if slow { ms(late) } else { Duration::ZERO }, w)]
        });
        p.run_until(at(10.0));
        assert!(p.count(What::Retransmission) > 40, "{late} ms");
        let again = p.received.iter().filter(|g| g.retransmitted).count();
        assert_eq!(again > 40, late == 300, "{again} of those {late} ms late");
        let mut sequences: Vec<u64> = p.received.iter().map(|g| g.sequence).collect();
        sequences.sort_unstable();
        assert!(sequences.windows(2).all(|w| w[1] == w[0] + 1), "each once, {late} ms");
        let (late, reordered) = ((p.count(What::Media) / 40) as u64, p.receiver.stats().media.reordered);
        // One in 200 ms is late, by 300 ms at most: the last two may be on their way.
        assert!((reordered..=reordered + 2).contains(&late), "{reordered} of {late}");
    }
}

#[test]
fn a_key_frame_is_asked_for_at_most_every_300_ms() {
    let mut p = Pair::usual("fixed", &[("rate", "200 pkt/s")]);
    p.run_until(at(1.0));
    for i in 0..100 {
        p.receiver.request_key_frame(p.now);
        p.run_until(at(1.0 + 0.01 * f64::from(i)));
    }
    // 1 s: at 0, 0.3, 0.6 and 0.9 s
    assert_eq!(p.receiver.stats().sent.of(What::KeyFrameRequest).packets, 4);
    p.run_until(at(3.0));
    let asked = p.sender_events.iter().filter(|(_, e)| *e == SenderEvent::KeyFrameRequest).count();
    assert!((4..=5).contains(&asked), "{asked}");
}

#[test]
fn a_rate_too_low_for_the_source_drops_old_frames_whole() {
    let mut p = Pair::usual("fixed", &[("rate", "50 pkt/s")]);
    p.frame_bytes = Some(4_500); // 5 packets at 25 frames/s: 125 packets/s
    p.run_until(at(20.0));
    let dropped = p.sender.stats().frames_dropped;
    // 50 of 125 packets/s go: three frames in five are dropped, about 300 of 500.
    assert!((250..=350).contains(&dropped), "{dropped}");
    assert!(p.assembled.windows(2).all(|w| w[1].first_sequence == w[0].last_sequence + 1), "no torn frames");
    // No frame waits longer than the limit of 400 ms, and then takes 5 packets at 20 ms and 50 ms of path.
    for f in &p.assembled {
        let captured =
            at(0.1) + Duration::from_nanos(u64::from(f.timestamp.wrapping_sub(p.assembled[0].timestamp)) * 100_000 / 9);
        let age = f.completed.since(captured);
        assert!(age <= ms(400 + 100 + 50 + 41), "{age:?}");
    }
    let key_requests = p.sender_events.iter().filter(|(_, e)| *e == SenderEvent::KeyFrameRequest).count();
    assert!(key_requests > 10);
}

#[test]
fn ce_marks_come_back() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.forward.disturb = Box::new(|_, mut w| {
        if w.what == What::Media {
            assert_eq!(w.ecn, Ecn::NotEct, "a scheme that heeds no marks asks for none");
            w.ecn = Ecn::Ce;
        }
        vec![(Duration::ZERO, w)]
    });
    p.run_until(at(2.0));
    let media = p.receiver.stats().media;
    assert!(media.ce_marks > 50 && media.ce_marks == media.received);
}

#[test]
fn stopping_says_bye_and_the_receiver_hears_it() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(2.0));
    p.sender.stop(p.now);
    p.run_until(at(4.0));
    assert_eq!(p.stopped, Some((at(2.0), StopReason::Requested)));
    let byes: Vec<_> = p.sent.iter().filter(|l| l.what == What::Bye).map(|l| l.at).collect();
    assert_eq!(byes, [at(2.0), at(2.1), at(2.25)], "said three times");
    assert_eq!(p.sent.last().map(|l| l.what), Some(What::Bye));
    let (when, bye) = p.receiver_events.last().unwrap();
    assert_eq!(*bye, ReceiverEvent::Bye { reason: "it was asked to stop".into() });
    assert_eq!(*when, at(2.55), "50 ms of path and 500 ms to be contradicted");
}

#[test]
fn a_goodbye_that_is_lost_is_said_again_by_either_end() {
    let loses_two = || -> pair::Disturb {
        let mut byes = 0;
        Box::new(move |_, w: pair::Wire| {
            byes += u32::from(w.what == What::Bye);
            if w.what == What::Bye && byes <= 2 { Vec::new() } else { vec![(Duration::ZERO, w)] }
        })
    };
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.forward.disturb = loses_two();
    p.run_until(at(2.0));
    p.sender.stop(p.now);
    p.run_until(at(4.0));
    let (when, bye) = p.receiver_events.last().unwrap();
    assert!(matches!(bye, ReceiverEvent::Bye { .. }));
    assert_eq!(*when, at(2.8), "the third at 2.25 s, 50 ms of path, and 500 ms to be contradicted");
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.back.disturb = loses_two();
    p.run_until(at(2.0));
    p.receiver.stop(p.now);
    p.run_until(at(4.0));
    assert_eq!(p.stopped.map(|(_, reason)| reason), Some(StopReason::PeerBye));
}

#[test]
fn a_sender_that_leaves_before_its_first_frame_is_heard_too() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.fps = 0;
    p.run_until(at(1.0));
    p.sender.stop(p.now);
    p.run_until(at(3.0));
    assert!(matches!(p.receiver_events.last(), Some((t, ReceiverEvent::Bye { .. })) if *t == at(1.55)));
}

#[test]
fn a_receiver_that_leaves_ends_the_sender() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(2.0));
    p.receiver.stop(p.now);
    p.run_until(at(4.0));
    assert!(p.receiver_stopped.is_some());
    assert_eq!(p.stopped, Some((at(2.55), StopReason::PeerBye)));
}

#[test]
fn a_sender_that_vanishes_is_forgotten_and_the_next_one_is_welcome() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(2.0));
    p.forward.disturb = Box::new(|_, _| vec![]);
    p.run_until(at(32.2));
    assert!(matches!(p.receiver_events.last(), Some((t, ReceiverEvent::Vanished)) if (at(31.9)..at(32.2)).contains(t)));
    assert_eq!(p.receiver.peer(), None);
}

#[test]
fn polling_again_at_the_same_instant_says_the_same() {
    let mut p = Pair::usual("rcs", &[]);
    for i in 1..50 {
        p.run_until(at(0.05 * f64::from(i)));
        let a = format!("{:?}", p.sender.poll(p.now));
        let b = format!("{:?}", p.sender.poll(p.now));
        assert_eq!(a, b);
        assert_eq!(format!("{:?}", p.receiver.poll(p.now)), format!("{:?}", p.receiver.poll(p.now)));
    }
}

#[test]
fn the_media_rate_leaves_room_for_the_headers() {
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    p.run_until(at(1.0));
    // 1,000 B packets carry 1,000 - 28 - 12 - 16 - 1 = 943 B of media.
    let share = p.sender.media_rate().as_bps() / p.sender.target_rate().as_bps();
    assert!((share - 0.943).abs() < 1e-9, "{share}");
}

#[test]
fn of_a_rate_that_adapts_an_encoder_is_told_a_tenth_less() {
    for (scheme, share) in [("tfrc", 0.9), ("auto", 0.9), ("fixed", 1.0)] {
        let settings: &[(&str, &str)] = if scheme == "fixed" { &[("rate", "100 pkt/s")] } else { &[] };
        let mut p = Pair::usual(scheme, settings);
        p.frame_bytes = Some(400);
        p.run_until(at(3.0));
        // Less than 100 ms waits.
        let of_target = |rate: Rate| rate.as_bps() / p.sender.target_rate().as_bps();
        let told = of_target(p.sender.media_rate());
        assert!((told - share * 0.943).abs() < 1e-9, "{scheme}: {told} {:?}", p.sender.queue_len());
    }
    // Five seconds of what leaves wait: not below half.
    let mut p = Pair::usual("tfrc", &[]);
    p.run_until(at(3.0));
    let data = vec![0; (p.sender.target_rate() * Duration::from_secs(5)).get() as usize];
    p.sender.push_frame(p.now, Frame { data, timestamp_90k: 300_000, key: true });
    let told = p.sender.media_rate().as_bps() / p.sender.target_rate().as_bps();
    assert!((told - 0.943 / 2.0).abs() < 1e-9, "{told}");
}

/// With 700 ms of play-out packets wait in the path's queue from 2 s on: half of it, then much more than all of it.
#[test]
fn what_the_path_s_queue_takes_of_the_play_out_delay_an_encoder_is_told_less() {
    // 0.9 - 0.4 x (0.5 - 0.3) = 0.82; beyond 1.2 play-out delays the usual 0.9.
    for (queue_ms, share) in [(0, 0.9), (350, 0.82), (1_400, 0.9)] {
        let mut p = Pair::usual("tfrc", &[]);
        p.frame_bytes = Some(200);
        let queue = move |now: fairpace_units::Instant| if now < at(2.0) { Duration::ZERO } else { ms(queue_ms) };
        p.forward.disturb = Box::new(move |now, wire| vec![(queue(now), wire)]);
        p.run_until(at(12.0));
        let told = p.sender.media_rate().as_bps() / p.sender.target_rate().as_bps();
        assert!((told - share * 0.943).abs() < 0.005, "{queue_ms} ms: {told}, {:?}", p.sender.flow().srtt());
    }
}

#[test]
fn an_encoder_that_gives_a_little_too_much_is_told_less_until_nothing_waits() {
    // 5 % over for a minute is 3 s of video more than may leave: 400 ms of it would wait, and the rest be dropped.
    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    let mut longest = Duration::ZERO;
    for i in 0..1_500 {
        p.run_until(at(0.2 + 0.04 * f64::from(i)));
        let rate = p.sender.media_rate();
        p.frame_bytes = Some(((rate * ms(40)).as_f64() * 1.05) as usize);
        longest = longest.max(p.sender.queue_len().1 / p.sender.target_rate());
        assert!(rate >= p.sender.target_rate() * (0.943 / 2.0), "never below half: {rate:?}");
    }
    assert_eq!(p.sender.stats().frames_dropped, 0);
    assert!(longest < ms(200), "{longest:?}");
    // Nothing is given away for it: 60 s at 100 packets/s of 1,000 B.
    let bytes: usize = p.sent.iter().filter(|l| l.what == What::Media).map(|l| l.len + 28).sum();
    assert!((5_800_000..=6_050_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_receiver_that_tells_of_packets_seldom_causes_hardly_a_timeout() {
    // RTT 100 ms. Of what a packet waits for its report at most 25 ms is taken off the RTT, but the timeout waits
    // for all of it. Were it not so, RAP would have 101 and 374.
    for scheme in ["rcs", "rap", "fixed", "tfrc"] {
        for interval in [100, 200] {
            let receiver = ReceiverConfig { feedback_interval: ms(interval), ..ReceiverConfig::default() };
            let mut p = Pair::new(sender_config(), receiver, flow(scheme, &[], Rate::mbps(1.0)), ms(50));
            p.forward.disturb = lossy(3, 0.01);
            p.run_until(at(30.0));
            let (flow, srtt) = (p.sender.flow(), p.sender.flow().srtt().unwrap());
            assert!(flow.counters().timeouts < 10, "{scheme} {interval} ms: {} timeouts", flow.counters().timeouts);
            assert!(srtt < ms(100 + interval), "{scheme} {interval} ms: {srtt:?}");
        }
    }
}

#[test]
fn the_receiver_knows_how_often_the_source_takes_a_picture() {
    let told = |interval| {
        let sender = SenderConfig { frame_interval: interval, ..sender_config() };
        let mut p = Pair::new(sender, ReceiverConfig::default(), flow("fixed", &[], Rate::mbps(2.0)), ms(50));
        let before = p.receiver.frame_interval();
        p.run_until(at(10.0));
        assert_eq!(p.receiver.stats().malformed, 0);
        (before, p.receiver.frame_interval())
    };
    assert_eq!(told(Some(ms(40))), (None, Some(ms(40))));
    assert_eq!(told(None), (None, None));
}
