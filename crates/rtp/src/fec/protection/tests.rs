use super::*;
use crate::fec::{Decoder, Encoder, PAYLOAD_TYPE, emit_packet_header};
use crate::packet::Packet;
use fairpace_units::RandomStream;

fn share(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

/// 1 Mbit/s of 1,200-byte packets over a satellite, with a play-out delay below its round trip.
fn conditions(loss: f64, burst: f64) -> Conditions {
    Conditions {
        loss: share(loss),
        burst,
        rtt: Duration::from_millis(600),
        playout: Duration::from_millis(500),
        packets_per_s: 1e6 / 8.0 / 1_200.0,
        frame: 4.0,
        retransmission: true,
        sent_again: Probability::ZERO,
    }
}

#[test]
fn what_stays_lost_worked_out_by_hand() {
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 5e-5, "{found} {expected}");
    close(remaining(0.1, 1.0, 10, 0), 0.1);
    // N = 10, lambda = 1: P(1) = 1/e = 0.3679; (1 - 0.3679) / 10, for one, two and three repair packets.
    close(remaining(0.1, 1.0, 9, 1), 0.0632);
    close(remaining(0.1, 1.0, 7, 3), 0.0632);
    // b = 2: lambda = t = 0.5: P(0) = 0.6065, P(1) = 0.25 P(0) = 0.1516, P(2) = 1.25 P(1) / 2 = 0.0948;
    // (1 - 0.1516 - 2 x 0.0948) / 10.
    close(remaining(0.1, 2.0, 6, 4), 0.0659);
}

/// Rows of the table in `docs/rtp/fec.md`, column "masks": window, repair packets, loss, burst, residual loss in %.
const MEASURED: [(u16, u16, f64, f64, f64); 10] = [
    (6, 2, 0.03, 1.0, 0.186),
    (25, 5, 0.03, 1.0, 0.048),
    (25, 5, 0.1, 1.0, 2.352),
    (25, 5, 0.03, 2.0, 0.748),
    (100, 10, 0.03, 1.0, 0.054),
    (100, 10, 0.03, 2.0, 0.444),
    (100, 10, 0.03, 5.0, 1.386),
    (100, 20, 0.1, 1.0, 0.236),
    (100, 20, 0.03, 5.0, 0.404),
    (100, 20, 0.03, 20.0, 1.624),
];

#[test]
fn the_formula_is_near_what_was_measured_and_rather_above() {
    for (window, repairs, p, b, measured) in MEASURED {
        let ratio = 100.0 * remaining(p, b, window, repairs) / measured;
        assert!((0.9..6.0).contains(&ratio), "{window} {repairs} {p} {b}: {ratio}");
    }
}

#[test]
fn over_decades_of_loss_the_share_is_kept_and_protection_grows_until_it_cannot_help() {
    for limit in [0.0, 0.05, 0.2, 0.5] {
        for burst in [1.0, 2.0, 5.0, 20.0] {
            for (rtt, playout, rate) in [(20, 200, 250.0), (600, 500, 30.0), (600, 500, 2_000.0), (300, 1_000, 500.0)] {
                let mut before = 0.0;
                for tenths in 0..50 {
                    let loss = 1e-5 * libm::pow(10.0, f64::from(tenths) / 10.0);
                    let c = Conditions {
                        rtt: Duration::from_millis(rtt),
                        playout: Duration::from_millis(playout),
                        packets_per_s: rate,
                        ..conditions(loss, burst)
                    };
                    let d = decide(&c, share(limit));
                    let h = d.overhead();
                    assert!(h / (1.0 + h) <= limit + 1e-9, "{h} of {limit}");
                    assert!(h >= before || d.reason == Reason::Hopeless, "{loss} {burst}: {before} {d:?}");
                    assert_eq!(d.plan.is_some(), matches!(d.reason, Reason::Protects | Reason::Limited));
                    assert!(
                        d.plan.is_none_or(|p| f64::from(p.window) <= rate * playout as f64 / 1e3 && h > loss / 2.0)
                    );
                    before = h;
                }
            }
        }
    }
}

#[test]
fn where_sending_again_is_in_time_there_are_no_repair_packets() {
    // RTT 20 ms, 500 ms: 23 answers; at 20 % of loss 0.36^23 are nothing.
    let near = Conditions { rtt: Duration::from_millis(20), ..conditions(0.2, 1.0) };
    assert_eq!(decide(&near, share(0.3)), Decision { plan: None, reason: Reason::RetransmissionSuffices });
    // The same where nobody sends again, and where no answer comes in time.
    let alone = Conditions { retransmission: false, ..near };
    assert!(decide(&alone, share(0.4)).plan.is_some());
    assert_eq!(decide(&conditions(0.03, 1.0), share(0.3)).reason, Reason::Protects);
    // One answer in time, asked for twice and sent twice: of single losses enough comes.
    let one = |loss, burst| Conditions { rtt: Duration::from_millis(400), ..conditions(loss, burst) };
    assert_eq!(decide(&one(0.03, 1.0), share(0.4)).reason, Reason::RetransmissionSuffices);
    // Bursts of five take both of two that are 30 ms apart, a quarter of the time: fewer repair packets than without.
    let c = Conditions { packets_per_s: 200.0, ..one(0.05, 5.0) };
    let without = Conditions { retransmission: false, ..c };
    let (less, more) = (decide(&c, share(0.5)).overhead(), decide(&without, share(0.5)).overhead());
    assert!(0.0 < less && less < more, "{less} {more}");
}

#[test]
fn the_loss_of_all_answers_worked_out_by_hand() {
    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
    let of = |rtt, burst| all_answers_lost(&Conditions { rtt: Duration::from_millis(rtt), ..conditions(0.1, burst) });
    // None within 470 ms; single losses: both of two with 0.01, so 1 - 0.99^2; and before that one with 1 - 0.99 x 0.9.
    close(of(600, 1.0), 1.0);
    close(of(400, 1.0), 0.0199);
    close(of(200, 1.0), 0.109 * 0.0199);
    // Bursts of two at 104 packets a second: 30 ms are 3.125 packets, 0.5^3.125 = 0.1146; both with 0.01146.
    close(of(400, 2.0), 0.02279);
}

#[test]
fn what_is_sent_again_leaves_less_for_repair_packets() {
    let c = Conditions { sent_again: share(0.15), ..conditions(0.1, 1.0) };
    assert!(most(&c, share(0.2)) < 0.0527, "5 % of the rate: 0.05 / 0.95");
    assert_eq!(decide(&Conditions { sent_again: share(0.3), ..c }, share(0.2)).reason, Reason::Hopeless);
}

#[test]
fn each_reason() {
    let reason = |loss, burst, limit| decide(&conditions(loss, burst), share(limit)).reason;
    assert_eq!(reason(0.0, 1.0, 0.2), Reason::Quiet);
    assert_eq!(reason(0.02, 1.0, 0.3), Reason::Protects);
    assert_eq!(reason(0.08, 1.0, 0.2), Reason::Limited);
    assert_eq!(reason(0.4, 1.0, 0.2), Reason::Hopeless);
    assert_eq!(reason(0.03, 40.0, 0.2), Reason::Hopeless);
    let nothing = Conditions { packets_per_s: 0.0, burst: f64::NAN, ..conditions(0.1, 1.0) };
    assert_eq!(decide(&nothing, share(0.2)).reason, Reason::Quiet);
}

#[test]
fn more_is_decided_at_once_and_less_after_five_quiet_seconds() {
    let mut p = Protection::new(share(0.4));
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    let high = p.update(at(0), &conditions(0.05, 1.0));
    assert_eq!(high.reason, Reason::Protects);
    assert_eq!(p.update(at(1), &conditions(0.0, 1.0)), high);
    let middle = decide(&conditions(0.02, 1.0), share(0.4));
    assert!(middle.overhead() < high.overhead());
    assert_eq!(p.update(at(4), &conditions(0.02, 1.0)), high);
    // The most that was needed since second 1 is what comes next, not the least.
    assert_eq!(p.update(at(6), &conditions(0.0, 1.0)), middle);
    p.update(at(7), &conditions(0.0, 1.0));
    assert_eq!(p.update(at(12), &conditions(0.0, 1.0)), Decision { plan: None, reason: Reason::Quiet });
    assert_eq!(p.update(at(13), &conditions(0.05, 1.0)), high);
    // The share is a bound at every instant.
    let crowded = Conditions { sent_again: share(0.4), ..conditions(0.05, 1.0) };
    assert_eq!(p.update(at(14), &crowded).plan, None);
}

/// The plan in use, encoder and decoder and a path between them: the share of media packets lost for good.
fn measured(plan: Plan, loss: f64, packets: u32) -> f64 {
    let (mut encoder, mut decoder) = (Encoder::new(plan), Decoder::new(1));
    let (mut masks, mut path) = (RandomStream::named(1, "masks"), RandomStream::named(1, "path"));
    let (mut lost, mut back) = (0_u32, 0_u32);
    for n in 0..packets {
        let of = |payload_type, ssrc| Packet {
            marker: false,
            payload_type,
            sequence: n as u16,
            timestamp: n,
            ssrc,
            extensions: Default::default(),
            payload: b"media",
        };
        let mut media = Vec::new();
        of(96, 1).emit(&mut media);
        encoder.on_sent(&media).unwrap();
        if n > 0 && path.uniform() < loss {
            lost += 1;
        } else {
            decoder.on_media(&media).unwrap();
        }
        let mut payload = Vec::new();
        while encoder.poll(&mut masks, &mut payload) {
            let mut repair = Vec::new();
            emit_packet_header(&of(PAYLOAD_TYPE, 2), 1, &mut repair);
            repair.append(&mut payload);
            if path.uniform() >= loss {
                decoder.on_repair(&repair).unwrap();
            }
        }
        while let Some(p) = decoder.poll() {
            let came = Packet::parse(&p).unwrap().timestamp;
            back += u32::from(n - came <= u32::from(plan.window));
        }
    }
    f64::from(lost - back) / f64::from(packets)
}

#[test]
fn the_decided_plan_does_on_the_wire_what_was_decided() {
    for loss in [0.003, 0.01, 0.03, 0.06] {
        let c = conditions(loss, 1.0);
        let d = decide(&c, share(0.4));
        assert_eq!(d.reason, Reason::Protects, "{loss}");
        let stays = measured(d.plan.unwrap(), loss, 60_000);
        // Tolerated: 1 / (104 x 30 s) = 3.2e-4; the formula is right within a factor of two.
        assert!(stays <= 2.0 * 3.2e-4 && stays < loss / 5.0, "{loss}: {stays} with {d:?}");
    }
}

#[test]
fn the_table_of_the_documentation() {
    let table =
        [(0.0003, 0.0), (0.001, 1.9), (0.003, 7.7), (0.01, 9.6), (0.03, 15.4), (0.06, 25.0), (0.1, 34.6), (0.2, 40.4)];
    for (loss, percent) in table {
        let d = decide(&conditions(loss, 1.0), share(0.29));
        assert!((100.0 * d.overhead() - percent).abs() < 0.05, "{loss}: {d:?}");
    }
}
