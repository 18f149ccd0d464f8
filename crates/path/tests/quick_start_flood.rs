//! A flood of Quick-Start requests at a router: 100,000 each second [RFC 4782 §9.6].

use fairpace_path::quick_start::{Free, QsCounters, QsRouter, QsVerdict, RouterParams, SOURCES};
use fairpace_units::{Duration, Instant, QsFunction, QsNonce, QsOption, QsRate, RandomStream, Rate};

/// Ten microseconds between two requests of the flood.
const BETWEEN: Duration = Duration::from_micros(10);

fn request(code: u8) -> QsOption {
    let rate = QsRate::from_code(code).expect("a code");
    QsOption { function: QsFunction::Request, rate, qs_ttl: 7, ip_ttl: 64, nonce: QsNonce::new(99) }
}

/// Half of 10 Mbit/s is used: 3 Mbit/s may be approved.
fn free() -> Free {
    Free { capacity: Rate::mbps(10.0), used: Rate::mbps(5.0) }
}

fn router(trial: u64) -> QsRouter {
    QsRouter::new(&RouterParams::default(), RandomStream::named(trial, "flood")).expect("a router")
}

/// In how many of 200 trials an honest host is told a rate within two intervals (300 ms), asking for 320 kbit/s
/// at a random instant and then every 100 ms, while `attackers` ask for all there is since a second and more. And in
/// how many at once, and in full.
fn trials_approved(attackers: u64) -> [usize; 3] {
    let mut told = [0; 3];
    for trial in 0..200 {
        let mut router = router(trial);
        let mut random = RandomStream::named(trial, "hosts");
        let begin = Instant::ZERO + Duration::from_secs(1) + random.duration_below(Duration::from_millis(500));
        let asks: Vec<_> = (0..3).map(|i| begin + Duration::from_millis(100) * i).collect();
        let (mut now, mut verdicts) = (Instant::ZERO, Vec::new());
        while verdicts.len() < asks.len() {
            if now >= asks[verdicts.len()] {
                verdicts.push(router.on_request(now, 1_000_000, &mut request(3), free));
            }
            router.on_request(now, random.below(attackers), &mut request(15), free);
            now += BETWEEN;
        }
        told[0] += usize::from(verdicts.iter().any(|v| v.approved().is_some()));
        told[1] += usize::from(verdicts[0].approved().is_some());
        told[2] += usize::from(verdicts[0] == QsVerdict::Approved(request(3).rate));
    }
    told
}

#[test]
fn beside_a_flood_an_honest_host_is_told_a_rate() {
    // One attacker holds a quarter of the pool: all that is left to ask is a matter of luck with the 256
    // buckets.
    let [within_two, at_once, in_full] = trials_approved(1);
    assert!(within_two >= 195 && at_once >= 195 && in_full >= 195, "{within_two}, {at_once}, {in_full} of 200");
    // Eight hold 1 - 0.75^8 = 90 %; a quarter of the remaining 300 kbit/s is 75, and rounding down has left
    // them a little less.
    let [within_two, at_once, _] = trials_approved(8);
    assert!(within_two >= 180, "{within_two} of 200, {at_once} at once");
}

#[test]
fn a_flood_of_random_sources_grows_nothing_and_takes_no_more_than_the_pool() {
    let mut router = router(1);
    let mut random = RandomStream::named(1, "hosts");
    let (mut now, mut largest) = (Instant::ZERO, 0.0_f64);
    for _ in 0..1_000_000 {
        if router.on_request(now, random.bits(), &mut request(15), free).approved().is_some() {
            largest = largest.max(router.recent_approvals(now).as_bps());
        }
        now += BETWEEN;
    }
    assert!(largest <= 3e6 && largest > 2e6, "{largest} bit/s of a pool of 3 Mbit/s");
    // 256 buckets of 8 bytes, and at most 100 + 0.3 x 100 approvals of 16 bytes, in a list that doubles.
    assert!(router.memory() <= SOURCES * 8 + 256 * 16, "{} bytes", router.memory());
    // In ten seconds at most 100 + 10 x 100 requests are considered; most of them find the pool empty.
    let QsCounters { approved, reduced, refused, .. } = *router.counters();
    let [no_rate, multipath, source_limit, total_limit, source_share, nothing_free] = refused;
    let considered = approved + reduced + source_share + nothing_free;
    assert!((1_000..=1_100).contains(&considered), "{considered} considered");
    assert_eq!(considered + source_limit + total_limit, 1_000_000);
    assert_eq!((no_rate, multipath), (0, 0));
}
