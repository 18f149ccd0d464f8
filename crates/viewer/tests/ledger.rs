//! The fates of frames over simulated paths, with the sessions of the wire.

use fairpace_media::{Adaptive, PlayoutParams};
use fairpace_rtp::ReceiverConfig;
use fairpace_scenario::Scenario;
use fairpace_units::{Duration, Instant};
use fairpace_viewer::{Clip, Fate, FrameEntry, Ledger, SenderSetup, Watched, watch};

const DEMO: &str = include_str!("../../../scenarios/demo.toml");

/// A path of 10 Mbit/s and 200 ms with what `more` says of the link, for 20 s.
fn path(more: &str) -> Scenario {
    let text = format!(
        "title = \"t\"\nduration = \"20 s\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"200 ms\"\nqueue = {{ kind = \"drop-tail\", capacity = \"100 pkt\" }}\n{more}\n[[flows]]\nname = \"video\"\ncontroller = \"rcs\"\n"
    );
    Scenario::parse(&text, "path.toml").unwrap()
}

fn seen(scenario: &Scenario, seed: u64, scheme: &str, repair: bool, playout: PlayoutParams) -> Watched {
    let (name, rate) = scheme.split_once(' ').unwrap_or((scheme, ""));
    let mut setup = SenderSetup::new(name);
    if !rate.is_empty() {
        setup.settings.insert("rate".to_owned(), rate.to_owned());
    }
    setup.session.retransmission = repair;
    let receiver = ReceiverConfig { nack: repair, ..ReceiverConfig::default() };
    watch(scenario, seed, setup, receiver, PlayoutParams { repair, ..playout }).unwrap()
}

fn fixed(ms: u64) -> PlayoutParams {
    PlayoutParams { delay: Duration::from_millis(ms), ..PlayoutParams::default() }
}

#[test]
fn on_a_path_that_loses_nothing_every_frame_is_in_time() {
    for scheme in ["auto", "rcs", "rap", "tfrc", "srp", "crp", "mrp", "tfrc-sp", "aimd", "fixed 600kbit/s"] {
        let w = seen(&path(""), 1, scheme, true, fixed(700));
        let tally = w.ledger.tally();
        assert_eq!(tally.known(), tally.of(Fate::InTime) + tally.of(Fate::NotEncoded), "{scheme}: {tally:?}");
        // A controller may have to find out first what the path bears.
        assert!(tally.of(Fate::NotEncoded) <= 25, "{scheme}: {tally:?}");
        assert!(tally.known() >= 460 && w.stopped().is_none(), "{scheme}: {tally:?}");
    }
}

#[test]
fn every_capture_has_one_entry_and_the_packets_of_all_are_those_that_left() {
    let scenario = Scenario::parse(DEMO, "demo.toml").unwrap();
    for scheme in ["rcs", "tfrc", "fixed 600kbit/s"] {
        let w = seen(&scenario, 3, scheme, true, fixed(1_000));
        let stats = w.sender.session().stats();
        let sum =
            |f: fn(&fairpace_viewer::FrameEntry) -> u32| w.ledger.frames.iter().map(|e| u64::from(f(e))).sum::<u64>();
        assert_eq!(sum(|e| e.packets), stats.sent.of(fairpace_rtp::What::Media).packets, "{scheme}");
        assert_eq!(sum(|e| e.repairs), stats.sent.of(fairpace_rtp::What::Retransmission).packets, "{scheme}");
        let gaps = w.ledger.frames.windows(2).map(|f| f[1].capture.since(f[0].capture));
        let wrong: Vec<_> = gaps.filter(|gap| gap.as_millis().abs_diff(40) > 11).collect();
        assert!(wrong.is_empty(), "{scheme}: {wrong:?}");
        let totals = w.receiver.playout().totals();
        let late_at_the_end = w.ledger.tally().of(Fate::Open);
        let in_time = w.ledger.tally().of(Fate::InTime);
        assert!((in_time..=in_time + late_at_the_end).contains(&totals.frames.in_time), "{scheme}");
    }
}

#[test]
fn the_same_seed_gives_the_same_ledger_and_another_another() {
    let scenario = Scenario::parse(DEMO, "demo.toml").unwrap();
    let ledger = |seed| seen(&scenario, seed, "rap", true, fixed(1_000)).ledger.to_string();
    assert_eq!(ledger(1), ledger(1));
    assert_ne!(ledger(1), ledger(2));
}

/// Means over ten seeds: share in time, longest freeze in seconds, packets sent again of all media packets.
fn means(scenario: &Scenario, scheme: &str, repair: bool, playout: PlayoutParams) -> (f64, f64, f64) {
    let runs: Vec<Watched> = (1..=10).map(|seed| seen(scenario, seed, scheme, repair, playout)).collect();
    let mean = |f: &dyn Fn(&Watched) -> f64| runs.iter().map(f).sum::<f64>() / runs.len() as f64;
    let sent = |w: &Watched, what| w.sender.session().stats().sent.of(what).packets as f64;
    (
        mean(&|w| w.ledger.tally().in_time()),
        mean(&|w| w.ledger.longest_freeze.as_secs_f64()),
        mean(&|w| sent(w, fairpace_rtp::What::Retransmission) / sent(w, fairpace_rtp::What::Media).max(1.0)),
    )
}

#[test]
fn with_one_packet_in_fifty_lost_repair_brings_nearly_all_frames_in_time() {
    let lossy = path("loss = { kind = \"random\", p = 0.02 }");
    for scheme in ["tfrc", "fixed 600kbit/s"] {
        let (without, ..) = means(&lossy, scheme, false, fixed(700));
        let (with, freeze, again) = means(&lossy, scheme, true, fixed(700));
        // A key frame each ten seconds, and one asked for at each loss: most frames refer to a lost one.
        assert!(without < 0.80, "{scheme}: {without}");
        assert!(with > 0.98 && freeze < 0.5, "{scheme}: {with}, {freeze} s");
        // Lost 2 in 100, and of the answers 2 in 100; few need a copy where there is time for two round trips.
        assert!((0.015..0.035).contains(&again), "{scheme}: {again}");
    }
}

#[test]
fn after_a_loss_that_nothing_repairs_the_picture_goes_on_damaged_instead_of_standing_still() {
    let lossy = path("loss = { kind = \"random\", p = 0.005 }");
    let damaged = seen(&lossy, 1, "fixed 600kbit/s", false, fixed(300));
    let still = seen(&lossy, 1, "fixed 600kbit/s", false, PlayoutParams { damaged: false, ..fixed(300) });
    let clip = Clip::named("film").unwrap();
    let ssim = |w: &Watched| clip.ssim(&w.ledger).unwrap();
    let shown = |w: &Watched| w.ledger.frames.iter().filter(|f| f.damaged).count();
    assert!(shown(&damaged) > 20 && shown(&still) == 0, "{} {}", shown(&damaged), shown(&still));
    let freeze = |w: &Watched| w.ledger.longest_freeze;
    assert!(freeze(&damaged) * 2 < freeze(&still), "{:?} {:?}", freeze(&damaged), freeze(&still));
    assert!(ssim(&damaged) > ssim(&still) + 0.02, "{} {}", ssim(&damaged), ssim(&still));
    // A damaged picture counts as none that came whole.
    assert_eq!(damaged.ledger.tally().of(Fate::InTime), still.ledger.tally().of(Fate::InTime));
}

#[test]
fn a_blackout_costs_its_own_length_and_less_than_a_round_trip() {
    let dark = path("outages = [{ start = \"8 s\", length = \"3 s\" }]");
    for scheme in ["rcs", "rap", "tfrc", "mrp", "fixed 600kbit/s"] {
        let (in_time, freeze, again) = means(&dark, scheme, true, fixed(700));
        // 3 s of 19.5 are dark; what was on its way when it began is lost too.
        assert!(freeze < 3.0 + 0.2 + 0.35, "{scheme}: {freeze} s");
        assert!(in_time > (19.5 - 3.0 - 1.3) / 19.5, "{scheme}: {in_time}");
        assert!(again < 0.08, "{scheme}: {again} of the packets left again");
    }
}

#[test]
fn an_adaptive_play_out_is_a_round_trip_and_a_margin_and_follows_the_queue() {
    let adaptive = PlayoutParams { adaptive: Some(Adaptive::default()), ..PlayoutParams::default() };
    let lossy = path("loss = { kind = \"random\", p = 0.01 }");
    let w = seen(&lossy, 1, "fixed 600kbit/s", true, adaptive);
    let delay = w.receiver.playout().delay();
    // 200 ms, the wait before a request, the margin of 150 ms, and what one frame in a hundred needs.
    assert!((330..=600).contains(&delay.as_millis()), "{delay:?}");
    let (in_time, ..) = means(&lossy, "fixed 600kbit/s", true, adaptive);
    assert!(in_time > 0.97, "{in_time}");
    let without = seen(&path(""), 1, "fixed 600kbit/s", false, adaptive).receiver.playout().delay();
    assert!(without <= Duration::from_millis(500), "{without:?}: nothing to wait for");
}

#[test]
fn a_path_that_changes_its_mind_is_no_worse_with_repair_than_without() {
    // Random loss, then congestion, every three seconds.
    let scenario = Scenario::parse(
        "title = \"t\"\nduration = \"30 s\"\n[path]\nrate = [{ at = \"0 s\", rate = \"4 Mbit/s\" }, { at = \"3 s\", rate = \"400 kbit/s\" }, { at = \"6 s\", rate = \"4 Mbit/s\" }, { at = \"9 s\", rate = \"400 kbit/s\" }, { at = \"12 s\", rate = \"4 Mbit/s\" }, { at = \"15 s\", rate = \"400 kbit/s\" }, { at = \"18 s\", rate = \"4 Mbit/s\" }]\nrtt = \"150 ms\"\nqueue = { kind = \"drop-tail\", capacity = \"40 pkt\" }\nloss = { kind = \"random\", p = 0.02 }\n[[flows]]\nname = \"video\"\ncontroller = \"rcs\"\n",
        "mind.toml",
    )
    .unwrap();
    for scheme in ["auto", "rcs", "rap", "tfrc", "mrp"] {
        let (without, ..) = means(&scenario, scheme, false, fixed(700));
        let (with, ..) = means(&scenario, scheme, true, fixed(700));
        assert!(with > without, "{scheme}: {with} with, {without} without");
    }
    // The default says why, each time: it goes beyond the fair share while packets are lost at random, and gives that back where a
    // queue stands.
    let runs: Vec<Watched> = (1..=4).map(|seed| seen(&scenario, seed, "auto", true, fixed(700))).collect();
    for run in &runs {
        assert!(run.stopped().is_none(), "{:?}", run.stopped());
    }
    let states = || runs.iter().flat_map(|run| run.sender.states());
    let changes = |to: &str, reasons: &[&str]| states().filter(|(_, s, why)| *s == to && reasons.contains(why)).count();
    let gives_back = ["a queue stands", "a queue stays", "lost in a queue", "much is lost"];
    let (free, fair) = (changes("Free", &["no queue"]), changes("Fair", &gives_back));
    assert!(free >= 4 && fair >= 12, "{free} {fair} {:?}", states().collect::<Vec<_>>());
}

#[test]
fn the_delay_from_glass_to_glass_is_that_of_the_pictures_that_were_shown() {
    // 700 ms of play-out, 100 ms of path, and what a packet takes to leave; all alike.
    let w = seen(&path(""), 1, "fixed 600kbit/s", true, fixed(700));
    for share in [0.0, 0.5, 0.95] {
        let delay = w.ledger.glass_to_glass(share).unwrap();
        assert!((800..=815).contains(&delay.as_millis()), "{share}: {delay:?}");
    }
    // Ten that took 1 to 10 s, and others that nobody saw.
    let frame = |(s, fate, damaged): (u64, Fate, bool)| {
        let shown = w.ledger.frames[0];
        FrameEntry { due: Some(shown.capture + Duration::from_secs(s)), fate, damaged, ..shown }
    };
    let seen = (1..=10).map(|s| (s, if s == 3 { Fate::Reference } else { Fate::InTime }, s == 3));
    let not = [(90, Fate::LateByQueue, false), (91, Fate::Hole, false), (92, Fate::Open, true)];
    let frames = seen.chain(not).rev().map(frame).collect();
    let ledger = Ledger { frames, longest_freeze: Duration::ZERO };
    let seconds = [0.0, 0.1, 0.25, 0.5, 0.95, 1.0].map(|share| ledger.glass_to_glass(share).unwrap().as_secs());
    assert_eq!(seconds, [1, 1, 3, 5, 10, 10]);
    assert_eq!(Ledger::default().glass_to_glass(0.5), None);
}

#[test]
fn the_ledger_is_a_table_that_a_person_can_read() {
    let w = seen(&path(""), 1, "fixed 600kbit/s", true, fixed(700));
    let text = w.ledger.to_string();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("capture_s,key,bytes,packets,lost,repairs,repairs_lost,left_ms,ready_ms,due_ms,fate,damaged")
    );
    let first: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!((first[1], first[10], first[11]), ("1", "in time", "0"), "{first:?}");
    assert_eq!(text.lines().count(), w.ledger.frames.len() + 1);
    assert!(w.ledger.frames[0].capture > Instant::ZERO);
}
