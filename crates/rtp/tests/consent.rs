//! Consent where most of what is sent is lost: asked for more often while no answer comes, and bounded.

mod pair;

use fairpace_rtp::{StopReason, What};
use fairpace_units::Duration;
use pair::*;

/// Half of all packets lost, both ways, from the third second on. At their floor of 100 bit/s these flows send a packet
/// every 4.6 s: three in a row are lost with a probability of 1/8, and a report that tells of a new loss renews no consent.
/// Of 100 seeds 63 ended within two minutes when only packets told of held off the end, and when challenges went out
/// at 15, 20 and 25 s. Now thirty questions or so go out in 15 s, of which none is answered with a probability of 0.75^30, 2 in
/// 10,000: over two minutes of 200 seeds that may happen once.
#[test]
fn half_of_all_packets_lost_does_not_end_a_flow_that_hardly_sends() {
    for scheme in ["lda", "ldaf"] {
        let mut ended = 0;
        for seed in 0..200 {
            let mut p = Pair::usual(scheme, &[]);
            p.run_until(at(3.0));
            (p.forward.disturb, p.back.disturb) = (lossy(2 * seed, 0.5), lossy(2 * seed + 1, 0.5));
            p.run_until(at(120.0));
            ended += u32::from(p.stopped.is_some());
            // A question each 400 ms at most: 117 s of them would be 292.
            let asked = p.count(What::Challenge);
            assert!((2..=294).contains(&asked), "{scheme}, seed {seed}: {asked} challenges");
        }
        assert!(ended <= 2, "{scheme}: {ended} of 200");
    }
}

/// Without packets there is nothing to be told of: questions begin at 15 s, spread between 0.8 and 1.2 times 500 ms, and end
/// with consent.
#[test]
fn unanswered_questions_are_spread_and_end_with_consent() {
    let mut p = Pair::usual("rcs", &[]);
    p.run_until(at(2.0));
    p.fps = 0;
    // Frames that wait, and their feedback.
    p.run_until(at(4.0));
    p.receiver_alive = false;
    p.run_until(at(60.0));
    let (when, reason) = p.stopped.expect("nobody is there");
    assert_eq!(reason, StopReason::ConsentExpired);
    let asked: Vec<_> = p.sent.iter().filter(|l| l.what == What::Challenge).map(|l| l.at).skip(2).collect();
    let first = asked[0];
    assert!(when.since(first) > Duration::from_millis(14_900) && when.since(first) <= Duration::from_secs(15));
    let gaps: Vec<_> = asked.windows(2).map(|w| w[1].since(w[0]).as_secs_f64()).collect();
    assert!(gaps.iter().all(|g| (0.4..=0.6).contains(g)), "{gaps:?}");
    let (least, most) = gaps.iter().fold((1.0_f64, 0.0_f64), |(l, m), g| (l.min(*g), m.max(*g)));
    assert!(least < 0.44 && most > 0.56 && (25..=38).contains(&asked.len()), "{least} {most} {}", asked.len());
}

/// Media that nothing tells of is doubted after 1 s and two intervals of feedback, 1.04 s.
#[test]
fn packets_that_nothing_tells_of_are_asked_about() {
    let mut p = Pair::usual("rcs", &[]);
    p.run_until(at(5.0));
    assert_eq!(p.count(What::Challenge), 2, "the opening ones");
    p.receiver_alive = false;
    p.run_until(at(10.0));
    let asked: Vec<_> = p.sent.iter().filter(|l| l.what == What::Challenge).map(|l| l.at).skip(2).collect();
    assert!((at(6.0)..at(6.2)).contains(&asked[0]) && (6..=10).contains(&asked.len()), "{asked:?}");
    p.receiver_alive = true;
    p.run_until(at(12.0));
    let before = p.count(What::Challenge);
    p.run_until(at(20.0));
    assert_eq!((p.count(What::Challenge), p.stopped), (before, None), "an answer ends the questions");
}
