//! The models of other tools, over paths on which the outcome can be worked out.

use fairpace_media::EncoderModelParams;
use fairpace_scenario::Scenario;
use fairpace_units::{Duration, Instant, Rate};
use fairpace_viewer::{About, Fate, Ledger, PathRun, SrtSetup, watch_plain, watch_srt};

const RATE: Rate = Rate::kbps(600.0);

/// 10 Mbit/s and 200 ms for 60 s, with what `more` says of the link.
fn path(more: &str) -> Scenario {
    let text = format!(
        "title = \"t\"\nduration = \"60 s\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"200 ms\"\nqueue = {{ kind = \"drop-tail\", capacity = \"400 pkt\" }}\n{more}\n[[flows]]\nname = \"video\"\ncontroller = \"rcs\"\n"
    );
    Scenario::parse(&text, "path.toml").unwrap()
}

fn encoder() -> EncoderModelParams {
    EncoderModelParams { key_interval: 50, ..EncoderModelParams::default() }
}

fn srt(more: &str, seed: u64, latency_ms: u64, filter: Option<u64>) -> (Ledger, PathRun) {
    let latency = Duration::from_millis(latency_ms);
    watch_srt(&path(more), seed, SrtSetup { rate: RATE, latency, filter, encoder: encoder() }).unwrap()
}

fn plain(more: &str, seed: u64) -> Ledger {
    watch_plain(&path(more), seed, RATE, Duration::from_secs(1), encoder()).unwrap().0
}

const LOSS: &str = "loss = { kind = \"random\", p = 0.02 }";

/// The share of the packets that left again, or that the filter added, of those that left.
fn repairs(path: &PathRun) -> f64 {
    let of = |wanted: fn(&About) -> bool| path.trips.iter().filter(|t| wanted(&t.about)).count() as f64;
    of(|a| matches!(a, About::Repair(_))) / of(|a| matches!(a, About::Media(_)))
}

#[test]
fn where_nothing_is_lost_both_show_everything_and_send_nothing_again() {
    let (ledger, run) = srt("", 1, 1_000, None);
    assert_eq!(ledger.tally().in_time(), 1.0);
    assert_eq!(repairs(&run), 0.0);
    let rtp = plain("", 1);
    assert_eq!(rtp.tally().in_time(), 1.0);
    // A second of latency, 100 ms of path; a datagram of MPEG-TS that is not full waits for the next frame.
    for (ledger, most) in [(&ledger, 1_145), (&rtp, 1_110)] {
        let delays = [0.5, 0.95].map(|share| ledger.glass_to_glass(share).unwrap().as_millis());
        assert!(delays.iter().all(|ms| (1_100..=most).contains(ms)), "{delays:?}");
    }
    // 600 kbit/s of video, some 5 % of MPEG-TS, 44 bytes of headers per 1,316, an ACKACK per datagram or less.
    let sent = run.trips.iter().map(|t| t.size.as_f64()).sum::<f64>() * 8e-3 / 60.0;
    assert!((640.0..720.0).contains(&sent), "{sent}");
}

#[test]
fn plain_rtp_shows_damaged_what_srt_repairs() {
    let ledger = plain(LOSS, 1);
    let damaged = ledger.frames.iter().filter(|f| f.damaged).count() as f64 / ledger.frames.len() as f64;
    // A key frame each 50 pictures, about three packets each: most pictures come after a loss.
    assert!(ledger.tally().in_time() < 0.5 && damaged > 0.5, "{damaged} {:?}", ledger.tally());
    // The screen stands still nowhere.
    assert!(ledger.longest_freeze < Duration::from_millis(200));
    // Five tries in a second.
    let (ledger, run) = srt(LOSS, 1, 1_000, None);
    assert!(ledger.tally().in_time() > 0.999, "{:?}", ledger.tally());
    // Each loss once, and half of them twice: the list of what is missing comes again each half round trip, and the third
    // leaves as the repair arrives.
    assert!((0.015..0.045).contains(&repairs(&run)), "{}", repairs(&run));
}

#[test]
fn srt_cannot_repair_what_has_no_time_for_an_answer_unless_the_filter_does() {
    let (none, run) = srt(LOSS, 1, 120, None);
    assert!(none.tally().in_time() < 0.5, "{:?}", none.tally());
    assert!(repairs(&run) > 0.01);
    let (with, run) = srt(LOSS, 1, 240, Some(10));
    let (without, _) = srt(LOSS, 1, 240, None);
    // One in ten, and what it could not rebuild: two of eleven lost.
    assert!((0.1..0.13).contains(&repairs(&run)), "{}", repairs(&run));
    assert!(with.tally().in_time() > 0.6, "{:?} against {:?}", with.tally(), without.tally());
}

#[test]
fn after_a_blackout_shorter_than_its_latency_srt_shows_everything_and_after_a_longer_one_it_goes_on() {
    let outage = |ms: u64| format!("outages = [{{ start = \"20 s\", length = \"{ms} ms\" }}]");
    let (ledger, _) = srt(&outage(600), 1, 1_000, None);
    assert_eq!(ledger.tally().in_time(), 1.0);
    let (ledger, run) = srt(&outage(3_000), 1, 1_000, None);
    let lost = ledger.frames.iter().filter(|f| f.fate != Fate::InTime && f.fate != Fate::Open).count();
    // The outage less what is repaired in the last second of it, and up to two seconds until a key frame.
    assert!((45..=125).contains(&lost), "{lost}");
    let freeze = ledger.longest_freeze.as_secs_f64();
    assert!((1.8..3.2).contains(&freeze), "{freeze}");
    // The receiver has given up the packets that nobody has any more: its ACKs, and the sender's answers, go on.
    let later = Instant::ZERO + Duration::from_secs(30);
    let answered = run.trips.iter().filter(|t| t.about == About::Control && t.left > later).count();
    assert!(answered > 500, "{answered}");
}

#[test]
fn the_same_seed_gives_the_same_ledger() {
    assert_eq!(srt(LOSS, 3, 500, Some(5)).0, srt(LOSS, 3, 500, Some(5)).0);
    assert_ne!(srt(LOSS, 3, 500, None).0, srt(LOSS, 4, 500, None).0);
}
