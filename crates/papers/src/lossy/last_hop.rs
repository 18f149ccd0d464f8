//! One rate-based flow from a proxy beside TCP over a slow last hop: TCP from the proxy, too, or from
//! far away [lossy §4, §6.3, Figs. 16 to 23, 30 to 33].

use super::beside::{self, BOTH, CRP, ERROR, LAST_HOP, PAIRED, SRP, difference, nearer_claims, set_error};
use super::setup::{MEASURE, RunStats, set_buffer, set_packet_size};
use crate::builtin::time_ms;
use crate::figure::{Abscissa, Figure, Scheme, caption};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Measurements, Precision, largest, smallest};
use fairpace_scenario::{Count, RawScenario};

/// TCP flows beside the one.
const TCP_FLOWS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0];
/// Errors in percent.
const ERRORS: [f64; 12] = [0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 25.0, 30.0, 35.0];
/// Those that are not zero.
const WITH_ERROR: &[f64] = ERRORS.split_first().unwrap().1;
/// One-way delay of TCP's side links in ms; the paper gives no range.
const DELAYS: [f64; 7] = [0.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0];

const FIG16_17: Figure<RunStats> = Figure {
    x: Abscissa::new("tcp_flows", "TCP flows beside it", ""),
    places: &TCP_FLOWS,
    schemes: &BOTH,
    vary: set_tcp_flows,
    quantities: LAST_HOP.quantities,
};
const FIG18_19: Figure<RunStats> = Figure { x: ERROR, places: &ERRORS, vary: set_error, ..FIG16_17 };
const FIG20_23: Figure<RunStats> = Figure {
    x: Abscissa::new("side_delay_ms", "one-way delay of TCP's side links", "ms"),
    places: &DELAYS,
    schemes: &BOTH_SIZES,
    vary: set_side_delay,
    ..FIG16_17
};
const FIG30_33: Figure<RunStats> = Figure { places: WITH_ERROR, schemes: PAIRED, ..FIG18_19 };

fn set_tcp_flows(s: &mut RawScenario, flows: f64) {
    for flow in s.flows.iter_mut().filter(|f| f.group == "tcp") {
        flow.count = Count::new(flows as u64);
    }
}

/// 4 x BW x RTT: 150 kbit/s, 410 ms [lossy Table 2].
const BUFFER_BYTES: f64 = 4.0 * 150e3 * 0.41 / 8.0;

pub(super) fn fig16_17(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG16_17.measured(e, bench, MEASURE, Precision::of(LAST_HOP.numbers))?;
    let claims = fig16_17_claims(e, &found);
    let title = |srp: String, crp: String| {
        format!("Beside 40 TCP flows SRP gets {srp} and CRP {crp} times what each of them gets")
    };
    let section = beside::both_section(e, &FIG16_17, &found, &LAST_HOP, 40.0, title, "TCP flows");
    Ok(e.outcome(FIG16_17.points(&found), claims, section))
}

/// The claims of Figs. 16 and 17, from whatever was measured.
fn fig16_17_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let (srp, crp) = (&SRP, &CRP);
    let places = found.xs(srp.key);
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return Vec::new() };
    let mut claims = vec![
        e.claim(
            "srp-grows",
            "SRP's share grows as the link fills",
            Bound::Above(1.0),
            format!("normalized throughput of SRP beside {last} TCP flows / beside {first}"),
        )
        .number(found.relative(srp.key, last, first, LAST_HOP.main())),
        e.claim(
            "at-tcps-cost",
            "at TCP's cost: the gap between SRP and TCP grows",
            Bound::Above(0.0),
            format!("(SRP - TCP) beside {last} TCP flows - beside {first}, in shares"),
        )
        .number(difference(&LAST_HOP.gaps(found, srp.key, last), &LAST_HOP.gaps(found, srp.key, first))),
    ];
    let ratios = || places.iter().map(|&n| (n, LAST_HOP.ratio(found, crp.key, n)));
    for (word, (at, extreme)) in [("least", smallest(ratios())), ("most", largest(ratios()))] {
        claims.push(
            e.claim(
                format!("crp-fair-{word}"),
                format!("CRP stays fair (ours: between 2/3 and 3/2 of TCP): the {word} it gets"),
                Bound::Within(0.667, 1.5),
                format!("ratio CRP / TCP beside {at} TCP flows"),
            )
            .number(extreme),
        );
    }
    claims
}

pub(super) fn fig18_19(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG18_19.measured(e, bench, MEASURE, Precision::of(LAST_HOP.numbers))?;
    let claims = fig18_19_claims(e, &found);
    let title = |srp: String, crp: String| {
        format!("At 10 % error SRP gets {srp} and CRP {crp} times what each TCP beside it gets")
    };
    let section = beside::both_section(e, &FIG18_19, &found, &LAST_HOP, 10.0, title, "the error");
    Ok(e.outcome(FIG18_19.points(&found), claims, section))
}

/// The claims of Figs. 18 and 19, from whatever was measured.
fn fig18_19_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let (srp, crp) = (&SRP, &CRP);
    let places = found.xs(srp.key);
    vec![
        e.claim(
            "srp-above",
            "SRP is above TCP at every error",
            Bound::Above(0.0),
            "smallest SRP - TCP, in shares, at {at} % error",
        )
        .everywhere(places.iter().map(|&x| (x, LAST_HOP.gap(found, srp.key, x)))),
        e.claim(
            "crp-below",
            "CRP is below TCP at every error",
            Bound::Below(0.0),
            "largest CRP - TCP, in shares, at {at} % error",
        )
        .everywhere(places.iter().map(|&x| (x, LAST_HOP.gap(found, crp.key, x)))),
        beside::tcp_falls(e, found, srp, &LAST_HOP, ""),
        beside::tcp_falls(e, found, crp, &LAST_HOP, ""),
        e.claim(
            "srp-diverges",
            "SRP keeps diverging from TCP where the error is high (ours: from 20 % on)",
            Bound::Above(0.0),
            "smallest step of SRP / TCP between neighbouring errors, up to {at} %",
        )
        .monotone(&places.iter().copied().filter(|x| *x >= 20.0).collect::<Vec<_>>(), |from, to| {
            difference(&LAST_HOP.ratios(found, srp.key, to), &LAST_HOP.ratios(found, srp.key, from))
        }),
        e.claim(
            "crp-worse-at-low-error",
            "CRP performs worse where the error is low (ours: below 20 %)",
            Bound::Above(0.0),
            "mean over the errors of |share - TCP's share|, below 20 % less from 20 % on",
        )
        .number(beside::worse_below(found, crp, &LAST_HOP, 20.0)),
    ]
}

/// Packets of 1,024 bytes instead of 256.
const BIG: [Scheme; 2] = [SRP.at("srp-1024").setting(big_packets), CRP.at("crp-1024").setting(big_packets)];
const BOTH_SIZES: [Scheme; 4] = [SRP, CRP, BIG[0], BIG[1]];

fn big_packets(s: &mut RawScenario) {
    set_packet_size(s, 1_024);
    set_buffer(s, BUFFER_BYTES);
}

fn set_side_delay(s: &mut RawScenario, ms: f64) {
    for access in s.flows.iter_mut().filter(|f| f.group == "tcp").filter_map(|f| f.access.as_mut()) {
        access.rtt = time_ms(2.0 * ms);
    }
}

pub(super) fn fig20_23(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG20_23.measured(e, bench, MEASURE, Precision::of(LAST_HOP.numbers))?;
    let caption = caption(e, &found);
    let mut section = e.section().text("The paper gives no range for the delay: 0 to 500 ms one way is ours.");
    let panels = || [(256, &BOTH), (1_024, &BIG)].into_iter();
    for (size, schemes) in panels() {
        let kept = |scheme: &Scheme| {
            Estimate::of(&kept(&found, scheme)).map_or("–".to_owned(), |k| format!("{:.0} %", 100.0 * k.mean))
        };
        let kept: Vec<String> = schemes.iter().map(|s| format!("{} beside {}", kept(s), s.name)).collect();
        let title = format!("Packets of {size} B: from 500 ms away TCP keeps {} of its share", kept.join(" and "));
        section = section.chart(beside::chart(&FIG20_23.x, &found, schemes, &LAST_HOP, title, &caption));
    }
    for (size, schemes) in panels() {
        let title = format!("Shares against the delay, packets of {size} B");
        section = section.table(beside::numbers(&FIG20_23.x, &found, schemes, &LAST_HOP, title));
    }
    Ok(e.outcome(FIG20_23.points(&found), fig20_23_claims(e, &found), section.folded()))
}

/// TCP's throughput from farthest away over its throughput from next door, one number per seed.
fn kept(found: &Measurements<RunStats>, scheme: &Scheme) -> Vec<f64> {
    let places = found.xs(scheme.key);
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return Vec::new() };
    let at = |x| found.values(scheme.key, x, LAST_HOP.tcp());
    at(last).iter().zip(&at(first)).map(|(far, near)| far / near).collect()
}

/// The claims of Figs. 20 to 23, from whatever was measured.
fn fig20_23_claims(e: &Experiment, found: &Measurements<RunStats>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (small, big) in BOTH.iter().zip(&BIG) {
        let name = small.key;
        for (scheme, size) in [(small, 256), (big, 1_024)] {
            claims.push(
                e.claim(
                    format!("tcp-loses-{name}-{size}"),
                    format!("beside {}, TCP loses share as its delay grows (packets of {size} B)", scheme.name),
                    Bound::Below(1.0),
                    "normalized throughput of TCP from farthest away / from next door",
                )
                .number(Estimate::of(&kept(found, scheme))),
            );
        }
        claims.push(
            e.claim(
                format!("stronger-1024-{name}"),
                format!("beside {} the effect is stronger with 1,024 B", small.name),
                Bound::Below(0.0),
                "what TCP keeps, 1,024 B - 256 B",
            )
            .number(difference(&kept(found, big), &kept(found, small))),
        );
    }
    let [srp, crp] = &BIG;
    claims.push(
        e.claim(
            "crp-friendlier-1024",
            "with 1,024 B CRP is friendlier than SRP: TCP keeps more beside CRP, at every delay",
            Bound::Above(0.0),
            "smallest difference of TCP's share, beside CRP - beside SRP, at {at} ms",
        )
        .everywhere(found.xs(srp.key).into_iter().map(|x| {
            let tcp = |scheme: &Scheme| found.values(scheme.key, x, LAST_HOP.tcp());
            (x, difference(&tcp(crp), &tcp(srp)))
        })),
    );
    claims
}

pub(super) fn fig30_33(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let found = FIG30_33.measured(e, bench, MEASURE, Precision::of(LAST_HOP.numbers))?;
    let section = beside::pairs_section(e, &found, &LAST_HOP);
    Ok(e.outcome(
        FIG30_33.points(&found),
        nearer_claims(e, &found, &LAST_HOP, " (on the last hop: ours, no figure of the paper)"),
        section,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;
    use crate::builtin::base;
    use crate::builtin::with;
    use crate::figure::enough;
    use crate::lossy::EXPERIMENTS;
    use fairpace_lab::Hooks;
    use fairpace_scenario::Time;

    fn mini() -> Experiment {
        Experiment { id: "mini", ..*EXPERIMENTS.iter().find(|e| e.id == "lossy.fig20-23").unwrap() }
    }

    fn miniature(figure: Figure<RunStats>) -> Measurements<RunStats> {
        let base = with(&base(&mini()), |s| s.duration = Time::seconds(100.0));
        let mut bench = Bench::new(Hooks::default(), Effort::Seeds(2));
        enough(&mini(), &mut bench, MEASURE, figure.cases(&base), Precision::of(LAST_HOP.numbers)).unwrap()
    }

    #[test]
    fn tcp_loses_share_with_distance_and_the_claim_fails_where_near_and_far_change_places() {
        let mut found = miniature(Figure { places: &[0.0, 500.0], ..FIG20_23 });
        let holds = |found: &Measurements<RunStats>| {
            let claims = fig20_23_claims(&mini(), found);
            assert_eq!(claims.len(), 7);
            claims.iter().filter(|c| c.id.contains("tcp-loses-srp-256") && c.holds).count()
        };
        assert_eq!(holds(&found), 1);
        for cell in &mut found.cells {
            cell.x = vec![500.0 - cell.at()];
        }
        assert_eq!(holds(&found), 0);
    }

    #[test]
    fn a_flow_beside_itself_is_fair_by_the_bounds_and_a_greedy_one_is_not() {
        let found = miniature(Figure { places: &[1.0, 20.0], ..FIG16_17 });
        let claims = fig16_17_claims(&mini(), &found);
        let measured = |name: &str| claims.iter().find(|c| c.id == format!("mini/{name}")).unwrap().measured.unwrap();
        assert!(measured("crp-fair-least") <= measured("crp-fair-most"));
        // Shares are of 150 kbit/s over all flows: beside 20 TCP flows all shares together are at most 21.
        let (own, tcp) = (LAST_HOP.main(), LAST_HOP.tcp());
        let all =
            found.estimate(SRP.key, 20.0, own).unwrap().mean + 20.0 * found.estimate(SRP.key, 20.0, tcp).unwrap().mean;
        assert!((15.0..=21.0).contains(&all), "{all}");
    }

    #[test]
    fn buffers_are_those_of_table_2() {
        let mut s = RawScenario::clone(&base(EXPERIMENTS.iter().find(|e| e.id == "lossy.fig20-23").unwrap()));
        let written = s.path.queue.capacity();
        set_buffer(&mut s, BUFFER_BYTES);
        assert_eq!(s.path.queue.capacity(), written);
        // 4 x 150 kbit/s x 410 ms = 30,750 B = 30.03 packets of 1,024 B, and the one in transmission.
        set_packet_size(&mut s, 1_024);
        set_buffer(&mut s, BUFFER_BYTES);
        assert_eq!(s.path.queue.capacity().text(), "31 pkt");
    }
}
