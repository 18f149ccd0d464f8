//! Fates of frames by hand, and against the definition.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * MS)
}

/// Frame `number` of a 25 frames/s stream, of two packets, complete at `arrival` ms.
fn frame(number: u64, key: bool, arrival: u64) -> ReceivedFrame {
    ReceivedFrame {
        first_sequence: 100 + 2 * number,
        last_sequence: 101 + 2 * number,
        absent_before: u64::MAX,
        timestamp_90k: (number as u32).wrapping_mul(3_600).wrapping_add(0xffff_fff0),
        data: vec![1; 100],
        key,
        via: None,
        arrival: at(arrival),
    }
}

fn params(delay: u64) -> PlayoutParams {
    PlayoutParams { delay: Duration::from_millis(delay), ..PlayoutParams::default() }
}

/// No damaged pictures.
fn whole(delay: u64) -> PlayoutParams {
    PlayoutParams { damaged: false, ..params(delay) }
}

fn drain(p: &mut Playout, now: u64) -> Vec<(u64, Verdict)> {
    std::iter::from_fn(|| p.poll(at(now))).map(|j| (j.number, j.verdict)).collect()
}

const HOLE: Verdict = Verdict::Lost(LostFrame::Hole);
const REFERENCE: Verdict = Verdict::Lost(LostFrame::Reference);

#[test]
fn a_frame_is_shown_exactly_when_due_and_not_before() {
    let mut p = Playout::new(params(200));
    p.push(frame(0, true, 300));
    assert_eq!(p.next(), at(500));
    assert_eq!(drain(&mut p, 499), []);
    assert_eq!(drain(&mut p, 500), [(0, Verdict::InTime)]);
}

#[test]
fn one_millisecond_decides_between_in_time_and_late() {
    // Frame 0 sets the least transit to 300 ms. Frame 1, captured at 40 ms, is due at
    // 40 + 300 + 200 = 540 ms.
    for (arrival, verdict) in [(540, Verdict::InTime), (541, Verdict::Late)] {
        let mut p = Playout::new(params(200));
        p.push(frame(0, true, 300));
        p.push(frame(1, false, arrival));
        assert_eq!(drain(&mut p, 600), [(0, Verdict::InTime), (1, verdict)]);
    }
}

#[test]
fn a_late_frame_still_serves_as_reference() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(1, false, 460)); // due at 440
    p.push(frame(2, false, 470)); // due at 480
    assert_eq!(drain(&mut p, 480), [(0, Verdict::InTime), (1, Verdict::Late), (2, Verdict::InTime)]);
}

#[test]
fn a_frame_waits_for_the_late_one_that_it_refers_to() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(2, false, 470)); // due at 480
    p.push(frame(1, false, 485)); // came last: within the 20 ms for reordering
    assert_eq!(drain(&mut p, 485), [(0, Verdict::InTime), (1, Verdict::Late), (2, Verdict::Late)]);
}

#[test]
fn after_a_hole_pictures_are_damaged_or_not_shown_until_a_key_frame() {
    for (params, after) in [(params(100), Verdict::Damaged), (whole(100), REFERENCE)] {
        let mut p = Playout::new(params);
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        p.push(frame(3, true, 420));
        p.push(frame(4, false, 460));
        let verdicts = drain(&mut p, 1_000);
        assert_eq!(verdicts, [(0, Verdict::InTime), (1, HOLE), (2, after), (3, Verdict::InTime), (4, Verdict::InTime)]);
        let shown = p.totals().frames;
        assert_eq!((shown.in_time, shown.damaged, shown.frames()), (3, u32::from(after == Verdict::Damaged), 5));
        // From frame 0 to 2, or to 3.
        let freeze = if after == Verdict::Damaged { 80 } else { 120 };
        assert_eq!(p.totals().longest_freeze, Duration::from_millis(freeze));
    }
}

#[test]
fn a_gap_is_given_up_when_the_picture_after_it_is_due_however_long_its_answer_takes() {
    // Lost packets come again, and an answer takes 300 ms: without damaged pictures the gap is awaited until 780 ms.
    for (damaged, given_up) in [(true, 480), (false, 780)] {
        let mut p = Playout::new(PlayoutParams { repair: true, damaged, ..params(100) });
        p.set_answer_time(Duration::from_millis(300));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        assert_eq!(drain(&mut p, given_up - 1), [(0, Verdict::InTime)], "{damaged}");
        assert_eq!(drain(&mut p, given_up)[0], (1, HOLE), "{damaged}");
        assert!(p.take_key_request(at(given_up)), "damage lasts until a key frame");
    }
    // A late one that overtook may still have been reordered.
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(2, false, 600));
    assert_eq!(drain(&mut p, 619), [(0, Verdict::InTime)]);
    p.push(frame(1, false, 619));
    assert_eq!(drain(&mut p, 619), [(1, Verdict::Late), (2, Verdict::Late)]);
}

#[test]
fn a_key_frame_is_asked_for_when_the_last_answer_in_time_should_have_come() {
    // Frame 1 is missing, which is noticed at 380 ms; frame 2 is due 1,050 ms later. An answer takes 300 ms, an eighth and 50 ms:
    // two of them fit, the second until 1,155 ms.
    let gap = |repair: bool, left: u64| {
        let mut p = Playout::new(PlayoutParams { repair, ..params(left) });
        p.set_answer_time(Duration::from_millis(300));
        p.push(frame(0, true, 300));
        p.push(frame(2, false, 380));
        p
    };
    let mut p = gap(true, 1_050);
    assert_eq!(p.next_key_request(), at(1_155));
    assert!(!p.take_key_request(at(1_154)) && p.take_key_request(at(1_155)));
    // Once per answer, until the key frame is here.
    assert_eq!(p.next_key_request(), at(1_455));
    p.push(frame(20, true, 1_400));
    assert_eq!(p.next_key_request(), Instant::NEVER);
    // A repair in time, at the last moment.
    let mut p = gap(true, 1_050);
    p.push(frame(1, false, 1_154));
    assert_eq!(p.next_key_request(), Instant::NEVER);
    // A gap behind frames that wait for their time: frame 4 is missing, noticed at 500 ms.
    p.push(frame(3, false, 420));
    p.push(frame(5, false, 500));
    assert_eq!(p.next_key_request(), at(500 + 775));
    // No answer can be in time: as soon as the gap is no reordering. One in its usual time can, with nothing to spare, or the
    // verdict is within 200 ms of the request: at the verdict.
    for (left, asked) in [(975, 1_155), (974, 0), (300, 0), (299, 400), (220, 400), (219, 0)] {
        let asked = if asked == 0 { Instant::NEVER } else { at(asked) };
        assert_eq!(gap(true, left).next_key_request(), asked, "{left}");
    }
    // Nothing is asked for again: at the verdict.
    let mut p = gap(false, 1_050);
    assert_eq!(p.next_key_request(), Instant::NEVER);
    drain(&mut p, 1_430);
    assert_eq!(p.next_key_request(), Instant::ZERO);
}

#[test]
fn nothing_is_shown_before_the_first_key_frame() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, false, 300));
    p.push(frame(1, false, 340));
    assert_eq!(drain(&mut p, 1_000), [(0, REFERENCE), (1, REFERENCE)]);
}

#[test]
fn the_frames_of_a_gap_are_holes_each_at_its_own_place_in_time() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(1, false, 340));
    p.push(frame(4, false, 460));
    let all: Vec<_> = std::iter::from_fn(|| p.poll(at(600))).collect();
    let of = |j: &Judged| (j.number, j.verdict, j.due, j.media_time.as_millis());
    // Frames are 40 ms apart, so two fit between frames 1 (due 440) and 4 (due 560).
    assert_eq!(of(&all[2]), (2, HOLE, at(480), 80));
    assert_eq!(of(&all[3]), (3, HOLE, at(520), 120));
    assert_eq!(of(&all[4]), (4, Verdict::Damaged, at(560), 160));
}

#[test]
fn a_gap_holds_no_more_frames_than_packets() {
    // The encoder left pictures out: 160 ms between two frames, of which one packet is missing.
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(1, false, 340));
    p.push(ReceivedFrame { first_sequence: 105, last_sequence: 106, ..frame(5, true, 500) });
    let lost = drain(&mut p, 900).iter().filter(|(_, v)| *v == HOLE).count();
    assert_eq!(lost, 1);
}

#[test]
fn a_gap_holds_no_more_frames_than_packets_that_did_not_come() {
    // A low rate: the encoder left five pictures out around one of six packets, of which one is missing.
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(1, false, 340));
    p.push(ReceivedFrame { first_sequence: 110, last_sequence: 110, absent_before: 1, ..frame(8, true, 620) });
    let lost = drain(&mut p, 900).iter().filter(|(_, v)| *v == HOLE).count();
    assert_eq!(lost, 1);
}

#[test]
fn a_gap_is_given_up_as_soon_as_a_later_key_frame_is_due() {
    let mut p = Playout::new(PlayoutParams { reorder_wait: Duration::from_secs(5), ..whole(100) });
    p.push(frame(0, true, 300));
    p.push(frame(2, false, 380));
    p.push(frame(3, true, 420)); // due at 520
    assert_eq!(drain(&mut p, 519), [(0, Verdict::InTime)]);
    assert_eq!(drain(&mut p, 520), [(1, HOLE), (2, REFERENCE), (3, Verdict::InTime)]);
}

#[test]
fn a_frame_that_nothing_overtook_is_awaited_however_long_the_blackout() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    assert_eq!(drain(&mut p, 3_000), [(0, Verdict::InTime)]);
    assert_eq!(p.next(), Instant::NEVER);
    p.push(frame(1, false, 3_340));
    assert_eq!(drain(&mut p, 3_340), [(1, Verdict::Late)]);
    assert!(!p.take_key_request(at(3_340)), "nothing is broken");
}

#[test]
fn a_slow_first_frame_buys_no_slack_for_the_others() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 700)); // transit 700
    p.push(frame(1, false, 720)); // transit 680
    p.push(frame(2, false, 380 + 300)); // transit 600: the least
    // Due with 600 + 100: 700, 740, 780. Frame 0 came right then.
    assert_eq!(drain(&mut p, 740), [(0, Verdict::InTime), (1, Verdict::InTime)]);
    assert_eq!(p.next(), at(780));
}

#[test]
fn a_key_frame_is_asked_for_once_per_interval_until_it_comes() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(2, false, 380));
    assert!(!p.take_key_request(at(399)));
    drain(&mut p, 400); // 20 ms after it was overtaken
    assert!(p.take_key_request(at(400)));
    assert!(!p.take_key_request(at(400)) && !p.take_key_request(at(999)));
    assert_eq!(p.next_key_request(), at(1_000));
    assert!(p.take_key_request(at(1_000)));
    p.push(frame(20, true, 1_100));
    assert!(!p.take_key_request(at(5_000)));
    assert_eq!(p.totals().key_requests, 2);
}

#[test]
fn no_key_frame_is_asked_for_when_one_is_already_here() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(2, true, 380));
    assert_eq!(drain(&mut p, 400), [(0, Verdict::InTime), (1, HOLE)]);
    assert!(!p.take_key_request(at(400)));
    assert_eq!(p.next_key_request(), Instant::NEVER);
}

#[test]
fn a_stream_joined_in_the_middle_asks_for_a_key_frame() {
    let mut p = Playout::new(params(100));
    p.push(frame(70, false, 300));
    assert_eq!(drain(&mut p, 300), [(0, REFERENCE)]);
    assert!(p.take_key_request(at(300)));
}

#[test]
fn pictures_that_were_never_encoded_count_as_the_sources() {
    let mut p = Playout::new(params(100));
    // Of ten pictures in 360 ms, four were sent.
    for (n, picture) in [0_u64, 1, 5, 9].into_iter().enumerate() {
        let n = n as u64;
        p.push(ReceivedFrame { timestamp_90k: 3_600 * picture as u32, ..frame(n, n == 0, 300 + 40 * picture) });
    }
    drain(&mut p, 2_000);
    assert_eq!((p.totals().frames.in_time, p.totals().captures), (4, 10));
}

#[test]
fn a_source_that_is_told_of_counts_by_its_own_interval() {
    // Every other picture, of a source that tells of one each 40 ms: 13 were taken until the last of seven.
    let every_other = |told: Option<u64>, apart: u32| {
        let mut p = Playout::new(params(100));
        told.into_iter().for_each(|ms| p.set_frame_interval(Duration::from_millis(ms)));
        for n in 0..7_u32 {
            let arrival = 300 + u64::from(apart * n);
            p.push(ReceivedFrame { timestamp_90k: 90 * apart * n, ..frame(n.into(), n == 0, arrival) });
        }
        drain(&mut p, 5_000);
        p.totals().captures
    };
    assert_eq!((every_other(None, 80), every_other(Some(40), 80)), (7, 13));
    // Who tells of fewer pictures than come is not believed.
    assert_eq!(every_other(Some(100), 40), 7);
}

#[test]
fn what_comes_after_its_verdict_is_counted_and_ignored() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(2, false, 380));
    drain(&mut p, 500);
    p.push(frame(1, false, 501));
    p.push(frame(0, true, 502));
    assert_eq!(drain(&mut p, 9_000), []);
    assert_eq!(p.totals().again, 2);
}

#[test]
fn the_end_judges_what_is_left() {
    let mut p = Playout::new(params(1_000));
    p.push(frame(0, true, 300));
    p.push(frame(2, false, 380));
    let left: Vec<_> = std::iter::from_fn(|| p.finish(at(381))).map(|j| (j.number, j.verdict)).collect();
    assert_eq!(left, [(0, Verdict::InTime), (1, HOLE), (2, Verdict::Damaged)]);
    assert_eq!(p.finish(at(400)), None);
}

#[test]
fn a_second_of_the_table_holds_the_frames_due_in_it() {
    let mut p = Playout::new(params(100));
    // Transit 860: due at 960 ms (second 0), 1,000 and 1,040 ms (second 1).
    for n in 0..3 {
        p.push(frame(n, n == 0, 860 + 40 * n));
    }
    drain(&mut p, 2_000);
    let counts: Vec<_> = p.seconds().iter().map(|s| (s.in_time, s.shown_bytes.get())).collect();
    assert_eq!(counts, [(1, 100), (2, 200)]);
    assert_eq!(p.totals().longest_freeze, Duration::from_millis(40));
}

#[test]
fn a_stream_that_begins_anew_is_not_half_a_million_losses() {
    let mut p = Playout::new(params(100));
    p.push(frame(0, true, 300));
    p.push(frame(1, false, 340));
    drain(&mut p, 440);
    p.push(frame(500_000, true, 500));
    assert_eq!(drain(&mut p, 5_000), [(2, Verdict::InTime)]);
    assert_eq!(p.totals().frames.lost_hole, 0);
}

/// The definition, without a buffer: judge all frames when everything is known. Arrivals in
/// order, so a missing frame is simply missing.
fn oracle(came: &[Option<u64>], keys: &[bool], delay: u64, damaged: bool) -> Vec<Verdict> {
    let mut ready: Option<u64> = None; // of the frame before; None: cannot be decoded
    let mut whole = true;
    came.iter()
        .zip(keys)
        .enumerate()
        .map(|(n, (came, &key))| {
            let Some(arrival) = *came else {
                ready = ready.filter(|_| damaged);
                whole = false;
                return HOLE;
            };
            whole |= key;
            ready = if key { Some(arrival) } else { ready.map(|r| r.max(arrival)) };
            match ready {
                None => REFERENCE,
                Some(r) if r > n as u64 * 40 + 300 + delay => Verdict::Late,
                Some(_) if whole => Verdict::InTime,
                Some(_) => Verdict::Damaged,
            }
        })
        .collect()
}

/// The first packet that is missing, found by looking through all frames.
fn first_gap(p: &Playout) -> u64 {
    p.held.iter().fold(
        p.expected.unwrap(),
        |next, (&first, held)| if first <= next { next.max(held.last_sequence + 1) } else { next },
    )
}

proptest! {
    /// Over streams with losses and growing queues, polled at the instants it names, the
    /// buffer says what the definition says.
    #[test]
    fn every_frame_gets_the_verdict_of_the_definition(
        steps in prop::collection::vec((prop::bool::weighted(0.1), prop::bool::weighted(0.1), 0_u64..200), 1..100),
        delay in 0_u64..300,
        damaged: bool,
    ) {
        // Frames 0 and 1 come with the least transit (so that the interval is known before the first gap),
        // and so does the last, a key frame, so that all is judged.
        let mut previous = 340;
        let mut came = vec![Some(300), Some(340)];
        let mut keys = vec![true, false];
        for &(lost, key, queue) in &steps {
            let arrival = previous.max(came.len() as u64 * 40 + 300 + queue);
            previous = arrival;
            came.push((!lost).then_some(arrival));
            keys.push(key);
        }
        came.push(Some(previous.max(came.len() as u64 * 40 + 300)));
        keys.push(true);
        let mut p = Playout::new(PlayoutParams { damaged, ..params(delay) });
        let mut got = Vec::new();
        for (n, arrival) in came.iter().enumerate() {
            let Some(arrival) = *arrival else { continue };
            while p.next() < at(arrival) {
                let now = p.next();
                got.push(p.poll(now).expect("it named this instant").verdict);
            }
            p.push(frame(n as u64, keys[n], arrival));
        }
        while p.next() != Instant::NEVER {
            let now = p.next();
            got.push(p.poll(now).expect("it named this instant").verdict);
        }
        prop_assert_eq!(got, oracle(&came, &keys, delay, damaged));
    }

    /// Whatever a peer sends: frames leave in order, none is judged twice, all held ones leave, and nothing panics.
    #[test]
    fn any_input_is_judged_in_order_and_once(
        input in prop::collection::vec((0_u64..200, 0_u64..9, any::<u32>(), any::<bool>(), 0_u64..1_000), 0..200),
    ) {
        let mut p = Playout::new(params(100));
        let (mut now, mut judged, mut pushed) = (0, 0, 0_u64);
        for (first, length, timestamp_90k, key, step) in input {
            now += step;
            let (first_sequence, last_sequence) = (first, (first + length).saturating_sub(1));
            let data = vec![0; 8];
            let absent_before = first % 7;
            let (via, arrival) = (None, at(now));
            p.push(ReceivedFrame { first_sequence, last_sequence, absent_before, timestamp_90k, key, via, data, arrival });
            pushed += 1;
            prop_assert_eq!(p.gap, first_gap(&p));
            while let Some(j) = p.poll(at(now)) {
                prop_assert_eq!(j.number, judged);
                prop_assert_eq!(p.gap, first_gap(&p));
                judged += 1;
            }
            let _ = p.take_key_request(at(now));
        }
        while let Some(j) = p.finish(at(now)) {
            prop_assert_eq!(j.number, judged);
            judged += 1;
        }
        prop_assert!(p.held.is_empty());
        let t = p.totals();
        let came = judged - u64::from(t.frames.lost_hole);
        prop_assert_eq!(came + u64::from(t.again) + u64::from(t.refused), pushed);
    }
}
