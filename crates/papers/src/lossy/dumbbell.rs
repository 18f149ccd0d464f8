//! As many rate-based flows as TCP flows over a dumbbell of 5 kbit/s per flow [lossy §3.3 to
//! §3.5, §6.2, §6.4, Figs. 5 to 12, 28, 29].

use super::beside::{self, BOTH, CRP, DUMBBELL, ERROR, PAIRED, SRP, difference, mean_over, nearer_claims, set_error};
use super::setup::{MEASURE, RunStats, set_buffer, set_packet_size};
use crate::builtin::{base, kbps};
use crate::figure::{Abscissa, Figure, Scheme, caption, enough};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Case, Measurements, Precision, largest, smallest};
use fairpace_scenario::{Capacity, Count, RawScenario, Scenario};

/// Flows in all, half of them TCP.
const FLOWS: [f64; 9] = [2.0, 4.0, 10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0];
/// Errors in percent, Figs. 7 to 12.
const ERRORS: [f64; 11] = [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 25.0, 30.0, 35.0];
/// "Low" in the claims: in percent.
const LOW: f64 = 10.0;

const FIG5_6: Figure<RunStats> = Figure {
    x: Abscissa::new("flows", "flows, half of them TCP", ""),
    places: &FLOWS,
    schemes: &BOTH,
    vary: set_flows,
    quantities: DUMBBELL.quantities,
};
const BY_ERROR: Figure<RunStats> = Figure { x: ERROR, places: &ERRORS, vary: set_error, ..FIG5_6 };
const FIG28_29: Figure<RunStats> = Figure { schemes: PAIRED, ..BY_ERROR };

/// Capacity, buffer and the flows' numbers follow the number of flows.
fn set_flows(s: &mut RawScenario, flows: f64) {
    for flow in &mut s.flows {
        flow.count = Count::new((flows / 2.0) as u64);
    }
    s.path.rate = Some(Capacity::Fixed(kbps(5.0 * flows)));
    set_buffer(s, BUFFER_BYTES * flows);
}

/// 5 x BW x RTT of a flow: 5 kbit/s, 110 ms with queue and side links [lossy Table 1].
const BUFFER_BYTES: f64 = 5.0 * 5e3 * 0.11 / 8.0;

fn set_size(s: &mut RawScenario, bytes: u64) {
    set_packet_size(s, bytes);
    set_buffer(s, BUFFER_BYTES * 40.0);
}

pub(super) fn fig5_6(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG5_6.measured(e, bench, MEASURE, Precision::of(DUMBBELL.numbers))?;
    let claims = fig5_6_claims(e, &found);
    let title = |srp: String, crp: String| {
        format!("Without link errors, of 40 flows, SRP gets {srp} and CRP {crp} times what TCP gets")
    };
    let section = beside::both_section(e, &FIG5_6, &found, &DUMBBELL, 40.0, title, "flows");
    Ok(e.outcome(FIG5_6.points(&found), claims, section))
}

/// The claims of Figs. 5 and 6, from whatever was measured.
fn fig5_6_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let (srp, crp) = (&SRP, &CRP);
    let places = found.xs(srp.key);
    let mut claims = vec![
        e.claim(
            "srp-more",
            "SRP takes more than TCP, whatever the number of flows",
            Bound::Above(0.0),
            "smallest SRP - TCP, in shares, with {at} flows",
        )
        .everywhere(places.iter().map(|&n| (n, DUMBBELL.gap(found, srp.key, n)))),
    ];
    let (at, most) = largest(places.iter().map(|&n| (n, DUMBBELL.gap(found, crp.key, n))));
    claims.push(
        e.claim(
            "crp-less",
            "CRP takes less than TCP, whatever the number of flows",
            Bound::Below(0.0),
            format!("largest CRP - TCP, in shares, with {at} flows"),
        )
        .number(most),
    );
    for scheme in [srp, crp] {
        for (from, id_suffix, range) in [(0.0, "", ""), (10.0, "-from-10", " from 10 flows up")] {
            let shares =
                places.iter().filter(|n| **n >= from).map(|&n| (n, found.estimate(scheme.key, n, DUMBBELL.main())));
            let (low_at, _) = smallest(shares.clone());
            let (high_at, _) = largest(shares);
            let at = |n| found.values(scheme.key, n, DUMBBELL.main());
            claims.push(
                e.claim(
                    format!("{}-number-matters-little{id_suffix}", scheme.key),
                    format!(
                        "the number of flows matters little to {}{range} (ours: by at most 0.2 of a share)",
                        scheme.name
                    ),
                    Bound::AtMost(0.2),
                    format!("normalized throughput with {high_at} flows - with {low_at}"),
                )
                .number(difference(&at(high_at), &at(low_at))),
            );
        }
    }
    claims
}

/// A set-up of Figs. 7 to 12: what it is called, the two schemes in it, what it changes.
struct SetUp {
    words: &'static str,
    schemes: [Scheme; 2],
    vary: fn(&mut RawScenario),
}

/// The paper's three.
const SET_UPS: [SetUp; 3] = [
    SetUp { words: "256 B, RED", schemes: [SRP, CRP], vary: |_| () },
    SetUp { words: "512 B, RED", schemes: [SRP.at("srp-512"), CRP.at("crp-512")], vary: |s| set_size(s, 512) },
    SetUp {
        words: "256 B, drop-tail",
        schemes: [SRP.at("srp-drop-tail"), CRP.at("crp-drop-tail")],
        vary: |s| s.path.queue.kind = "drop-tail".into(),
    },
];
const RED_256: &SetUp = &SET_UPS[0];
const RED_512: &SetUp = &SET_UPS[1];
const DROP_TAIL: &SetUp = &SET_UPS[2];

/// The cases of a set-up; its changes come after the error.
fn cases(base: &Scenario, SetUp { schemes, vary, .. }: &SetUp, places: &'static [f64]) -> Vec<Case> {
    let [srp, crp] = *schemes;
    let figure = Figure { places, schemes: &[], ..BY_ERROR };
    [srp, crp].iter().flat_map(|scheme| figure.of(base, &scheme.setting(*vary))).collect()
}

pub(super) fn fig7_12(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let all = SET_UPS.iter().map(|set_up| cases(&base, set_up, &ERRORS));
    let found = enough(e, bench, MEASURE, all.flatten().collect(), Precision::of(DUMBBELL.numbers))?;
    let caption = caption(e, &found);
    let mut section = e.section().text(
        "Errors strike data only, after the transmitter: a lost packet has used the bottleneck. The reading \
         `error-before` has them before the queue.",
    );
    for set_up in &SET_UPS {
        let title = fig7_12_title(&found, set_up);
        section = section.chart(beside::chart(&ERROR, &found, &set_up.schemes, &DUMBBELL, title, &caption));
    }
    for set_up in &SET_UPS {
        let title = format!("Shares against the error: {}", set_up.words);
        section = section.table(beside::numbers(&ERROR, &found, &set_up.schemes, &DUMBBELL, title));
    }
    Ok(e.outcome(BY_ERROR.points(&found), fig7_12_claims(e, &found), section))
}

fn fig7_12_title(found: &Measurements<RunStats>, set_up: &SetUp) -> String {
    let [srp, crp] = &set_up.schemes;
    let at = |key: &str, x| DUMBBELL.ratio(found, key, x).map(|r| r.mean);
    match (at(srp.key, 5.0), at(crp.key, 5.0), at(srp.key, 30.0), at(crp.key, 30.0)) {
        (Some(a), Some(b), Some(c), Some(d)) => format!(
            "{}: at 5 % error SRP gets {a:.1} and CRP {b:.1} times what TCP gets, at 30 % {c:.1} and {d:.1}",
            set_up.words
        ),
        _ => set_up.words.to_owned(),
    }
}

/// The claims of Figs. 7 to 12, from whatever was measured.
fn fig7_12_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for set_up in &SET_UPS {
        let ([srp, crp], words) = (&set_up.schemes, set_up.words);
        let places = found.xs(srp.key);
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else { continue };
        let suffix = srp.key.strip_prefix("srp").filter(|s| !s.is_empty()).unwrap_or("-256");
        for scheme in [srp, crp] {
            claims.push(beside::tcp_falls(e, found, scheme, &DUMBBELL, &format!(" ({words})")));
        }
        claims.push(crp_below(e, found, crp, &format!("crp-below{suffix}"), words));
        claims.push(
            e.claim(
                format!("srp-gap-grows{suffix}"),
                format!("the gap between SRP and TCP grows with the error ({words})"),
                Bound::Above(0.0),
                format!("(SRP - TCP) at {last} % - at {first} %, in shares"),
            )
            .number(difference(&DUMBBELL.gaps(found, srp.key, last), &DUMBBELL.gaps(found, srp.key, first))),
        );
        claims.push(
            e.claim(
                format!("srp-ratio-grows{suffix}"),
                format!("the ratio of SRP to TCP grows with the error ({words})"),
                Bound::Above(0.0),
                format!("SRP / TCP at {last} % - at {first} %"),
            )
            .number(difference(&DUMBBELL.ratios(found, srp.key, last), &DUMBBELL.ratios(found, srp.key, first))),
        );
    }
    for (key, words, low, high) in
        [("srp-nearer-at-low-error", "up to 10 %", 0.0, LOW), ("crp-nearer-at-high-error", "from 25 % on", 25.0, 100.0)]
    {
        let [srp, crp] = &RED_256.schemes;
        let here = || found.xs(srp.key).into_iter().filter(move |x| (low..=high).contains(x));
        let distance =
            |scheme: &Scheme| mean_over(&here().map(|x| DUMBBELL.distances(found, scheme.key, x)).collect::<Vec<_>>());
        let (nearer, other) = if low == 0.0 { (srp, crp) } else { (crp, srp) };
        claims.push(
            e.claim(
                key,
                format!("{} is nearer TCP than {} where the error is {words}", nearer.name, other.name),
                Bound::Below(0.0),
                format!("mean over the errors of |gap|, {} - {}, in shares", nearer.name, other.name),
            )
            .number(difference(&distance(nearer), &distance(other))),
        );
    }
    let all = |scheme: &Scheme| found.xs(scheme.key);
    for (i, name) in ["srp", "crp"].into_iter().enumerate() {
        let (red, tail, big) = (&RED_256.schemes[i], &DROP_TAIL.schemes[i], &RED_512.schemes[i]);
        let apart = all(red).into_iter().flat_map(|x| {
            [DUMBBELL.main(), DUMBBELL.tcp()].map(|metric| {
                let apart = difference(&found.values(red.key, x, metric), &found.values(tail.key, x, metric));
                (x, apart.map(magnitude))
            })
        });
        claims.push(
            e.claim(
                format!("{name}-queues-alike"),
                format!(
                    "RED and drop-tail are alike, for {} and the TCP beside it (ours: within 0.1 of a share)",
                    red.name
                ),
                Bound::AtMost(0.1),
                "largest difference of shares, at {at} % error",
            )
            .everywhere(apart),
        );
        let distance = |scheme: &Scheme| {
            let places: Vec<Vec<f64>> =
                all(scheme).into_iter().map(|x| DUMBBELL.distances(found, scheme.key, x)).collect();
            mean_over(&places)
        };
        claims.push(
            e.claim(
                format!("{name}-512-more-pronounced"),
                format!("with 512 B the gap between {} and TCP is wider than with 256 B", red.name),
                Bound::Above(0.0),
                "mean over the errors of |gap|, 512 B - 256 B, in shares",
            )
            .number(difference(&distance(big), &distance(red))),
        );
    }
    claims
}

fn crp_below(e: &Experiment, found: &Measurements<RunStats>, crp: &Scheme, key: &str, words: &str) -> Claim {
    let low = found.xs(crp.key).into_iter().filter(|x| *x <= LOW);
    e.claim(
        key,
        format!("CRP is below TCP at low error, up to {LOW} % ({words})"),
        Bound::Below(0.0),
        "largest CRP - TCP, in shares, at {at} % error",
    )
    .everywhere(low.map(|x| (x, DUMBBELL.gap(found, crp.key, x))))
}

/// |x| with the interval that belongs to it.
fn magnitude(e: Estimate) -> Estimate {
    if e.mean >= 0.0 {
        return e;
    }
    Estimate { mean: -e.mean, ci95: e.ci95.map(|[low, high]| [-high, -low]), n: e.n }
}

pub(super) fn fig28_29(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG28_29.measured(e, bench, MEASURE, Precision::of(DUMBBELL.numbers))?;
    let section = beside::pairs_section(e, &found, &DUMBBELL);
    Ok(e.outcome(FIG28_29.points(&found), nearer_claims(e, &found, &DUMBBELL, ""), section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::with;
    use crate::lossy::EXPERIMENTS;
    use crate::{Asked, Effort};
    use fairpace_lab::Hooks;
    use fairpace_scenario::Time;

    fn mini() -> Experiment {
        Experiment { id: "mini", ..*EXPERIMENTS.iter().find(|e| e.id == "lossy.fig7-12").unwrap() }
    }

    /// Figs. 7 and 8 in small: 60 s, four flows of each kind, two seeds, two errors, p over the round.
    fn miniature() -> Measurements<RunStats> {
        let base = with(&base(&mini()), |s| {
            s.duration = Time::seconds(60.0);
            set_flows(s, 8.0);
        });
        let cases = Figure { places: &[5.0, 35.0], ..BY_ERROR }.cases(&base);
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
        let round = mini().asked(&Asked::Named(vec!["over-round".to_owned()])).unwrap();
        bench.read_as(round[0].change());
        enough(&mini(), &mut bench, MEASURE, cases, Precision::of(DUMBBELL.numbers)).unwrap()
    }

    fn holds(claims: &[Claim], id: &str) -> bool {
        claims.iter().find(|c| c.id == format!("mini/{id}")).unwrap().holds
    }

    #[test]
    fn the_claims_are_decided_by_the_runs_and_fail_when_the_schemes_change_places() {
        let mut found = miniature();
        let claims = fig7_12_claims(&mini(), &found);
        // A CRP that knows only p = 0, 1/2, 1 hardly sends; SRP ignores timeouts.
        assert!(holds(&claims, "crp-below-256") && holds(&claims, "srp-ratio-grows-256"), "{claims:#?}");
        for cell in &mut found.cells {
            cell.scheme = match cell.scheme.as_str() {
                "srp" => "crp",
                "crp" => "srp",
                other => other,
            }
            .to_owned();
        }
        let claims = fig7_12_claims(&mini(), &found);
        assert!(!holds(&claims, "crp-below-256"), "{claims:#?}");
    }

    #[test]
    fn srp_takes_more_than_tcp_and_the_claim_says_so_only_of_srp() {
        let mut found = miniature();
        // The abscissa of Figs. 5 and 6 is another, the claims are the same.
        assert!(holds(&fig5_6_claims(&mini(), &found), "srp-more"));
        for cell in &mut found.cells {
            cell.scheme = if cell.scheme == "srp" { "crp" } else { "srp" }.to_owned();
        }
        let claims = fig5_6_claims(&mini(), &found);
        assert!(!holds(&claims, "srp-more") && !holds(&claims, "crp-less"), "{claims:#?}");
    }

    #[test]
    fn buffers_are_those_of_table_1() {
        let mut s = RawScenario::clone(&base(EXPERIMENTS.iter().find(|e| e.id == "lossy.fig7-12").unwrap()));
        let written = s.path.queue.capacity();
        set_size(&mut s, 256);
        assert_eq!(s.path.queue.capacity(), written);
        // 5 x 200 kbit/s x 110 ms = 13,750 B = 26.9 packets of 512 B, and the one in transmission.
        set_size(&mut s, 512);
        assert_eq!(s.path.queue.capacity().text(), "28 pkt");
        set_packet_size(&mut s, 256);
        set_flows(&mut s, 2.0);
        assert_eq!((s.path.queue.capacity().text(), s.flows[0].count.get()), ("4 pkt", 1));
    }
}
