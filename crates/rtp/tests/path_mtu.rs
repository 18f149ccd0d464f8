//! The packet size over paths that carry less than was asked for, that come to, and that only seem to.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_rtp::{ReceiverConfig, SenderConfig, SenderEvent, What};
use fairpace_units::{Bytes, Duration, Instant, RandomStream, Rate};
use pair::*;

/// IP and UDP.
const HEADERS: usize = 28;

/// From `from` until `until` only IP packets of `mtu` bytes or less pass; whether others do, `else_lost` says.
fn narrow(from: f64, until: f64, mtu: usize) -> Disturb {
    Box::new(move |now, w| {
        let is_lost = now >= at(from) && now < at(until) && w.bytes.len() + HEADERS > mtu && !w.fragments;
        if is_lost { vec![] } else { vec![(Duration::ZERO, w)] }
    })
}

/// A scheme with the form of feedback that is asked for.
fn pair_of(scheme: &str, form: Option<Form>) -> Pair {
    let config = SenderConfig { form, ..sender_config() };
    let mut p = Pair::new(config, ReceiverConfig::default(), flow(scheme, &[], Rate::mbps(2.0)), ms(50));
    // Full packets at low rates, too.
    (p.fps, p.frame_bytes) = (10, Some(4_000));
    p
}

fn sizes(p: &Pair) -> Vec<(Instant, Bytes)> {
    let told = |(at, e): &(Instant, SenderEvent)| match e {
        SenderEvent::PacketSize(size) => Some((*at, *size)),
        _ => None,
    };
    p.sender_events.iter().filter_map(told).collect()
}

/// When media that had ceased comes again.
fn back_at(p: &Pair, after: Instant) -> Option<Instant> {
    p.received.iter().map(|g| g.arrived).find(|t| *t > after + ms(200))
}

/// A window scheme goes on with its next timeout, and `lda` sends a packet each 0.7 s at its floor.
fn is_slow(scheme: &str) -> bool {
    matches!(scheme, "aimd" | "lda")
}

const EACH_FORM: [(&str, Option<Form>); 8] = [
    ("auto", None),
    ("rcs", None),
    ("aimd", Some(Form::SackVector)),
    ("tfrc", Some(Form::RtpTfrc)),
    ("lda", None),
    ("rap", Some(Form::Twcc)),
    ("fixed", None),
    ("tfrc", None),
];

#[test]
fn a_path_that_comes_to_carry_less_without_a_word_is_found_with_each_form_of_feedback() {
    for (scheme, form) in EACH_FORM {
        let mut p = pair_of(scheme, form);
        p.forward.disturb = narrow(5.0, 1e9, 700);
        p.run_until(at(30.0));
        assert_eq!(p.stopped, None, "{scheme} {form:?}");
        let back = back_at(&p, at(5.2)).expect("media goes on");
        assert!(back < at(if is_slow(scheme) { 12.0 } else { 10.0 }), "{scheme} {form:?}: media goes on at {back}");
        let size = p.sender.packet_size().get();
        assert!((668..=700).contains(&size), "{scheme} {form:?}: {size} B of 700");
        assert_eq!(sizes(&p).last().map(|s| s.1.get()), Some(size), "{scheme} {form:?}");
        let late: Vec<_> = p.sent.iter().filter(|l| l.at > at(15.0) && l.what != What::Challenge).collect();
        assert!(late.len() > 5 && late.iter().all(|l| l.len + HEADERS <= 700), "{scheme} {form:?}");
    }
}

#[test]
fn a_path_that_carries_less_than_the_least_gets_packets_that_may_be_cut_on_the_way() {
    for (scheme, form) in EACH_FORM {
        let mut p = pair_of(scheme, form);
        p.forward.disturb = narrow(5.0, 40.0, 500);
        p.run_until(at(30.0));
        assert_eq!((p.stopped, p.sender.packet_size().get()), (None, 576), "{scheme} {form:?}");
        let back = back_at(&p, at(5.2)).expect("media goes on");
        assert!(back < at(if is_slow(scheme) { 14.0 } else { 11.0 }), "{scheme} {form:?}: media goes on at {back}");
        // When the path carries full packets again, DF is set again.
        p.run_until(at(110.0));
        assert_eq!(p.sender.packet_size().get(), PACKET, "{scheme} {form:?}");
    }
}

#[test]
fn messages_that_packets_are_too_big_change_nothing_by_themselves() {
    for (scheme, form) in EACH_FORM {
        let mut p = pair_of(scheme, form);
        p.run_until(at(3.0));
        let asked = p.count(What::Challenge);
        let mut t = 3.0;
        // A thousand forged messages, of any size.
        for n in 0..1_000_u64 {
            t += 0.02;
            p.run_until(at(t));
            p.sender.hint_path_mtu(p.now, Bytes::new(n * 7 % 1_100));
            assert_eq!(p.sender.packet_size().get(), PACKET, "{scheme} {form:?}");
        }
        assert_eq!((p.stopped, p.sender.packet_size().get()), (None, PACKET), "{scheme} {form:?}");
        assert_eq!(sizes(&p), [], "{scheme} {form:?}");
        // 20 s: a large and a small question each 5 s.
        let asked = p.count(What::Challenge) - asked;
        assert!((2..=10).contains(&asked), "{scheme} {form:?}: {asked}");
        let mut clean = pair_of(scheme, form);
        clean.run_until(p.now);
        let (with, without) = (p.received.len() as f64, clean.received.len() as f64);
        assert!(with > 0.99 * without, "{scheme} {form:?}: {with} packets of {without}");
    }
}

#[test]
fn a_message_that_is_true_gives_the_size_within_a_second() {
    let mut p = pair_of("auto", None);
    p.forward.disturb = narrow(5.0, 1e9, 680);
    p.run_until(at(5.1));
    p.sender.hint_path_mtu(p.now, Bytes::new(680));
    p.run_until(at(20.0));
    assert_eq!(sizes(&p).iter().map(|s| s.1.get()).collect::<Vec<_>>(), [680]);
    let back = back_at(&p, at(5.1)).expect("media goes on");
    assert!(back < at(6.1), "{back}");
}

#[test]
fn a_path_that_carries_full_packets_again_gets_them_within_a_minute() {
    let mut p = pair_of("auto", None);
    p.forward.disturb = narrow(5.0, 20.0, 700);
    p.run_until(at(80.0));
    let sizes: Vec<_> = sizes(&p).iter().map(|s| s.1.get()).collect();
    assert_eq!(sizes.last(), Some(&PACKET), "{sizes:?}");
    assert!(sizes.len() <= 3, "told once down and once up: {sizes:?}");
}

/// Loss, bursts and outages take packets of all sizes.
#[test]
fn loss_without_regard_to_size_costs_no_size_for_long() {
    // Where a third is lost both ways, a question of three pairs errs one time in 25; 30 s later the size is back.
    for (loss, seeds, most_cuts) in [(0.02, 10, 0), (0.1, 10, 1), (0.3, 20, 7)] {
        let (mut cut, mut share) = (0, 0.0);
        for seed in 0..seeds {
            let mut p = pair_of("fixed", None);
            p.run_until(at(2.0));
            (p.forward.disturb, p.back.disturb) = (lossy(2 * seed, loss), lossy(2 * seed + 1, loss));
            p.run_until(at(122.0));
            cut += sizes(&p).iter().filter(|s| s.1.get() < PACKET).count();
            let media: Vec<_> = p.sent.iter().filter(|l| l.what == What::Challenge).collect();
            share +=
                media.iter().map(|l| l.len).sum::<usize>() as f64 / p.sent.iter().map(|l| l.len).sum::<usize>() as f64;
        }
        assert!(cut <= most_cuts, "{loss}: {cut} cuts in {seeds} runs of 2 minutes");
        assert!(share / (seeds as f64) < 0.01, "{loss}: challenges are {} of all bytes", share / seeds as f64);
    }
    for outage in [0.5, 2.0, 6.0] {
        let mut p = pair_of("auto", None);
        p.forward.disturb = narrow(5.0, 5.0 + outage, 0);
        p.run_until(at(40.0));
        assert_eq!((sizes(&p), p.sender.packet_size().get()), (vec![], PACKET), "{outage} s");
    }
}

#[test]
fn a_larger_size_than_the_usual_is_taken_up_when_the_path_has_shown_that_it_carries_it() {
    for (mtu, expected) in [(1_500, 1_500..=1_500), (1_400, 1_368..=1_400), (1_210, 1_200..=1_210)] {
        let mut config = SenderConfig { packet_size: Bytes::new(1_500), ..sender_config() };
        config.form = None;
        let mut p = Pair::new(config, ReceiverConfig::default(), flow("auto", &[], Rate::mbps(2.0)), ms(50));
        p.largest = 1_500;
        p.forward.disturb = narrow(0.0, 1e9, mtu);
        p.run_until(at(20.0));
        assert!(expected.contains(&p.sender.packet_size().get()), "{mtu}: {}", p.sender.packet_size());
        // No media was ever lost for it.
        let media = p.sent.iter().filter(|l| l.what == What::Media && l.at < at(19.0)).count();
        assert!(p.received.len() >= media, "{mtu}: {} of {media}", p.received.len());
        let first = p.sent.iter().find(|l| l.len + HEADERS > 1_200).map(|l| l.what);
        assert_eq!(first, Some(What::Challenge), "{mtu}");
    }
}

/// Whatever comes in whatever order, packets stay within what was asked for, and questions stay few.
#[test]
fn any_sequence_of_hints_refusals_and_losses_keeps_the_size_within_its_bounds() {
    for seed in 0..40 {
        let mut random = RandomStream::named(seed, "events");
        let mut p = pair_of("auto", None);
        p.forward.disturb = lossy(seed, 0.2);
        for _ in 0..400 {
            p.run_until(p.now + Duration::from_secs_f64(random.uniform()));
            let mtu = Bytes::new((random.uniform() * 2_000.0) as u64);
            match (random.uniform() * 3.0) as u32 {
                0 => p.sender.hint_path_mtu(p.now, mtu),
                1 => p.sender.on_too_large(p.now, (random.uniform() * 1_600.0) as usize, Some(mtu)),
                _ => p.forward.disturb = narrow(0.0, 1e9, (random.uniform() * 1_500.0) as usize),
            }
            let size = p.sender.packet_size().get();
            assert!((576..=PACKET).contains(&size), "{seed}: {size}");
        }
        let questions = p.count(What::Challenge) as f64 / p.now.as_secs_f64();
        assert!(questions < 8.0, "{seed}: {questions} a second");
    }
}
