//! Whole sessions for a simulated day: a sender, a receiver, their machines and the path between them, in weather drawn from a seed. Loss in every
//! form, blackouts of one way or both, corruption, replays, forgeries, peers that lie, sleep of up to an hour, restarts; between them calms, at
//! whose ends media must flow.
//!
//! `cargo test` runs half an hour of each scheme. `FAIRPACE_DAY=24` (hours) is what `make soak` runs; `FAIRPACE_DAY=24 FAIRPACE_DAY_SEED=7` is
//! another day, and `FAIRPACE_DAY_SCHEME=rcs` that of one scheme. A failure tells all three, and the same again fails at the same instant; `FAIRPACE_DAY_TRACE=SECONDS` prints what both
//! ends send and hear from then on.

mod watch;
mod weather;
mod world;

use fairpace_control::feedback::Form;
use fairpace_control::schemes;
use fairpace_units::{Duration, Instant};
use world::{Settings, World};

/// Settings beside the usual ones: the forms of feedback that no scheme asks for of itself.
const VARIANTS: [(&str, Settings, Option<Form>); 4] = [
    ("tfrc", &[("measured_by", "receiver")], None),
    ("tfrc-sp", &[("measured_by", "receiver")], None),
    ("fixed", &[("rate", "200 kbit/s")], None),
    ("rcs", &[], Some(Form::Twcc)),
];

/// Packets after which a sender's memory of them is full: a quarter of 2^16 of each of four streams.
const FILLED: u64 = 100_000;

fn all() -> impl Iterator<Item = (&'static str, Settings, Option<Form>)> {
    let usual: Settings = &[];
    schemes().iter().map(move |info| (info.name, usual, None)).chain(VARIANTS)
}

fn number(name: &str, default: f64) -> f64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Pages of this process, in KiB.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_day_of_every_scheme() {
    let (hours, seed) = (number("FAIRPACE_DAY", 0.5), number("FAIRPACE_DAY_SEED", 1.0) as u64);
    let chosen = std::env::var("FAIRPACE_DAY_SCHEME").ok();
    for (scheme, settings, form) in all().filter(|(name, ..)| chosen.as_deref().is_none_or(|chosen| chosen == *name)) {
        let mut world = World::new(scheme, settings, form, seed);
        world.trace_from = Instant::ZERO + Duration::from_secs_f64(number("FAIRPACE_DAY_TRACE", 1e9));
        let mut first = None;
        let end = Instant::ZERO + Duration::from_secs_f64(3_600.0 * hours);
        while world.now < end {
            let until = (world.now + Duration::from_secs(3_600)).min(end);
            world.run_until(until).unwrap_or_else(|wrong| {
                panic!("{scheme} {settings:?} {form:?}: {wrong}\nagain: FAIRPACE_DAY={hours} FAIRPACE_DAY_SEED={seed} FAIRPACE_DAY_SCHEME={scheme}")
            });
            // A day's memory is that of the hour in which all that is remembered had come once: a hundred bytes kept for each packet
            // would be 200 MiB.
            if let Some(now) = resident().filter(|_| world.told.sent >= FILLED) {
                let first = *first.get_or_insert(now);
                assert!(
                    now <= first + first / 100 + 4_096,
                    "{scheme}: {first} KiB after {FILLED} packets, {now} at {}",
                    world.now
                );
            }
        }
        let told = &world.told;
        println!("{scheme} {settings:?} {form:?}: {told:?}");
        assert!(told.media > 1_000 && told.calm as f64 >= 2.0 * hours, "{scheme}: nothing was tried: {told:?}");
    }
}

#[test]
fn a_seed_replays_exactly() {
    let told = |seed| {
        let mut world = World::new("rcs", &[], None, seed);
        world.run_until(Instant::ZERO + Duration::from_secs(600)).unwrap();
        world.told
    };
    assert_eq!(told(3), told(3));
    assert_ne!(told(3).digest, told(4).digest);
}
