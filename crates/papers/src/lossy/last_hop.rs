//! One rate-based flow from a proxy beside TCP over a slow last hop: TCP from the proxy, too, or from
//! far away [lossy §4, §6.3, Figs. 16 to 23, 30 to 33].

use super::beside::{
    self, BOTH_READINGS, CRP, CRP_ROUND, ERROR, LAST_HOP, READINGS, Reading, SRP, SRP_ROUND, Scheme, cells, difference,
    nearer_claims, paired_schemes, set_error,
};
use super::{base, set_buffer, set_packet_size, time_ms};
use crate::bench::{Bench, Cell, Grid, Precision, largest, smallest};
use crate::show::{self, Abscissa};
use crate::{Bound, Claim, Experiment, Outcome, Tools};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_scenario::{Count, RawScenario};

/// TCP flows beside the one.
const TCP_FLOWS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0];
/// Errors in percent.
const ERRORS: [f64; 12] = [0.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 25.0, 30.0, 35.0];
/// One-way delay of TCP's side links in ms; the paper gives no range.
const DELAYS: [f64; 7] = [0.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0];

const TCP_COUNT: Abscissa = Abscissa { key: "tcp_flows", label: "TCP flows beside it", unit: "", log: false };
const SIDE_DELAY: Abscissa =
    Abscissa { key: "side_delay_ms", label: "one-way delay of TCP's side links", unit: "ms", log: false };

fn set_tcp_flows(s: &mut RawScenario, flows: f64) {
    for flow in s.flows.iter_mut().filter(|f| f.group == "tcp") {
        flow.count = Count::new(flows as u64);
    }
}

/// 4 x BW x RTT: 150 kbit/s, 410 ms [lossy Table 2].
const BUFFER_BYTES: f64 = 4.0 * 150e3 * 0.41 / 8.0;

pub(super) fn fig16_17(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let cells = cells(&base(e), &BOTH_READINGS, &TCP_FLOWS, set_tcp_flows);
    let grid = bench.measure(e.id, &cells, &Precision::of(&LAST_HOP.metrics()))?;
    let claims = READINGS.iter().flat_map(|reading| fig16_17_claims(e.id, &grid, reading)).collect();
    let caption = show::caption(e, &grid);
    let mut section = show::section(e);
    for Reading { words, srp, crp, .. } in &READINGS {
        let ratio = |scheme: &Scheme| beside::times(LAST_HOP.ratio(&grid, scheme.key, 40.0));
        let title = format!(
            "Beside 40 TCP flows SRP gets {} and CRP {} times what each of them gets, {words}",
            ratio(srp),
            ratio(crp)
        );
        section = section.chart(beside::chart(&grid, &[*srp, *crp], &title, &caption, &TCP_COUNT, &LAST_HOP));
    }
    for Reading { words, srp, crp, .. } in &READINGS {
        let title = format!("Shares against TCP flows, {words}");
        section = section.table(beside::table(&grid, &[*srp, *crp], &title, &TCP_COUNT, &LAST_HOP));
    }
    Ok(show::outcome(e, show::points(&grid, &TCP_COUNT, &LAST_HOP.quantities()), claims, section.folded()))
}

/// The claims of Figs. 16 and 17 under a reading, from whatever was measured.
fn fig16_17_claims(id: &str, grid: &Grid, reading: &Reading) -> Vec<Claim> {
    let Reading { suffix, words, srp, crp } = reading;
    let places = grid.xs(srp.key);
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return Vec::new() };
    let mut claims = vec![
        Claim::check(
            format!("{id}/srp-grows{suffix}"),
            format!("SRP's share grows as the link fills ({words})"),
            grid.relative(srp.key, last, first, LAST_HOP.main.get),
            Bound::Above(1.0),
            format!("normalized throughput of SRP beside {last} TCP flows / beside {first}"),
        ),
        Claim::check(
            format!("{id}/at-tcps-cost{suffix}"),
            format!("at TCP's cost: the gap between SRP and TCP grows ({words})"),
            difference(&LAST_HOP.gaps(grid, srp.key, last), &LAST_HOP.gaps(grid, srp.key, first)),
            Bound::Above(0.0),
            format!("(SRP - TCP) beside {last} TCP flows - beside {first}, in shares"),
        ),
    ];
    let ratios = || places.iter().map(|&n| (n, LAST_HOP.ratio(grid, crp.key, n)));
    for (word, (at, extreme)) in [("least", smallest(ratios())), ("most", largest(ratios()))] {
        claims.push(
            Claim::check(
                format!("{id}/crp-fair-{word}{suffix}"),
                format!("CRP stays fair (ours: between 2/3 and 3/2 of TCP): the {word} it gets ({words})"),
                extreme,
                Bound::Within(0.667, 1.5),
                format!("ratio CRP / TCP beside {at} TCP flows"),
            )
            .if_it_fails(FEW_PACKETS),
        );
    }
    claims
}

const FEW_PACKETS: &str = "As the share becomes a packet or two per round, one loss in a round is a p of a half or 1";

pub(super) fn fig18_19(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let cells = cells(&base(e), &BOTH_READINGS, &ERRORS, set_error);
    let grid = bench.measure(e.id, &cells, &Precision::of(&LAST_HOP.metrics()))?;
    let claims = READINGS.iter().flat_map(|reading| fig18_19_claims(e.id, &grid, reading)).collect();
    let caption = show::caption(e, &grid);
    let mut section = show::section(e);
    for Reading { words, srp, crp, .. } in &READINGS {
        let ratio = |scheme: &Scheme| beside::times(LAST_HOP.ratio(&grid, scheme.key, 10.0));
        let title = format!(
            "At 10 % error SRP gets {} and CRP {} times what each TCP beside it gets, {words}",
            ratio(srp),
            ratio(crp)
        );
        section = section.chart(beside::chart(&grid, &[*srp, *crp], &title, &caption, &ERROR, &LAST_HOP));
    }
    for Reading { words, srp, crp, .. } in &READINGS {
        let title = format!("Shares against the error, {words}");
        section = section.table(beside::table(&grid, &[*srp, *crp], &title, &ERROR, &LAST_HOP));
    }
    Ok(show::outcome(e, show::points(&grid, &ERROR, &LAST_HOP.quantities()), claims, section.folded()))
}

/// The claims of Figs. 18 and 19 under a reading, from whatever was measured.
fn fig18_19_claims(id: &str, grid: &Grid, reading: &Reading) -> Vec<Claim> {
    let Reading { suffix, words, srp, crp } = reading;
    let places = grid.xs(srp.key);
    let (at, least) = smallest(places.iter().map(|&x| (x, LAST_HOP.gap(grid, srp.key, x))));
    let (crp_at, most) = largest(places.iter().map(|&x| (x, LAST_HOP.gap(grid, crp.key, x))));
    vec![
        Claim::check(
            format!("{id}/srp-above{suffix}"),
            format!("SRP is above TCP at every error ({words})"),
            least,
            Bound::Above(0.0),
            format!("smallest SRP - TCP, in shares, at {at} % error"),
        ),
        Claim::check(
            format!("{id}/crp-below{suffix}"),
            format!("CRP is below TCP at every error ({words})"),
            most,
            Bound::Below(0.0),
            format!("largest CRP - TCP, in shares, at {crp_at} % error"),
        )
        .if_it_fails(CRP_ABOVE),
    ]
}

const CRP_ABOVE: &str = "At the losses that TCP meets here the complex equation overestimates it, as Figs. 1 to 3 show of \
                         one TCP alone; at the highest errors TCP's timeouts back off, and CRP goes on at its equation's \
                         rate: with p over the round, where it is below TCP elsewhere, the two are then alike";

/// Packets of 1,024 bytes instead of 256.
const BIG: [Scheme; 4] =
    [SRP.at("srp-1024"), CRP.at("crp-1024"), SRP_ROUND.at("srp-round-1024"), CRP_ROUND.at("crp-round-1024")];

fn set_side_delay(s: &mut RawScenario, ms: f64) {
    for access in s.flows.iter_mut().filter(|f| f.group == "tcp").filter_map(|f| f.access.as_mut()) {
        access.rtt = time_ms(2.0 * ms);
    }
}

pub(super) fn fig20_23(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let base = base(e);
    let mut all: Vec<Cell> = Vec::new();
    for (size, schemes) in [(256, &BOTH_READINGS), (1_024, &BIG)] {
        all.extend(cells(&base, schemes, &DELAYS, |s, ms| {
            set_packet_size(s, size);
            set_buffer(s, BUFFER_BYTES);
            set_side_delay(s, ms);
        }));
    }
    let grid = bench.measure(e.id, &all, &Precision::of(&LAST_HOP.metrics()))?;
    let claims = fig20_23_claims(e.id, &grid);
    let caption = show::caption(e, &grid);
    let mut section = show::section(e).text("The paper gives no range for the delay: 0 to 500 ms one way is ours.");
    let panels = || {
        let sizes = [(256, &BOTH_READINGS), (1_024, &BIG)];
        sizes.into_iter().flat_map(|(size, schemes)| {
            READINGS.iter().zip(schemes.chunks(2)).map(move |(reading, schemes)| (size, reading.words, schemes))
        })
    };
    for (size, words, schemes) in panels() {
        let kept = |scheme: &Scheme| {
            Estimate::of(&kept(&grid, scheme)).map_or("–".to_owned(), |k| format!("{:.0} %", 100.0 * k.mean))
        };
        let kept: Vec<String> = schemes.iter().map(|s| format!("{} beside {}", kept(s), s.name)).collect();
        let title =
            format!("Packets of {size} B: from 500 ms away TCP keeps {} of its share, {words}", kept.join(" and "));
        section = section.chart(beside::chart(&grid, schemes, &title, &caption, &SIDE_DELAY, &LAST_HOP));
    }
    for (size, words, schemes) in panels() {
        let title = format!("Shares against the delay, packets of {size} B, {words}");
        section = section.table(beside::table(&grid, schemes, &title, &SIDE_DELAY, &LAST_HOP));
    }
    Ok(show::outcome(e, show::points(&grid, &SIDE_DELAY, &LAST_HOP.quantities()), claims, section.folded()))
}

/// What TCP gets from farthest away, over what it gets from next door, one number per seed.
fn kept(grid: &Grid, scheme: &Scheme) -> Vec<f64> {
    let places = grid.xs(scheme.key);
    let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return Vec::new() };
    let at = |x| grid.values(scheme.key, x, LAST_HOP.tcp.get);
    at(last).iter().zip(&at(first)).map(|(far, near)| far / near).collect()
}

/// The claims of Figs. 20 to 23, from whatever was measured.
fn fig20_23_claims(id: &str, grid: &Grid) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (i, (small, big)) in BOTH_READINGS.iter().zip(&BIG).enumerate() {
        let Some(reading) = READINGS.get(i / 2) else { continue };
        let (name, words) = (small.key, reading.words);
        for (scheme, size) in [(small, 256), (big, 1_024)] {
            claims.push(Claim::check(
                format!("{id}/tcp-loses-{name}-{size}"),
                format!("beside {}, TCP loses share as its delay grows (packets of {size} B, {words})", scheme.name),
                Estimate::of(&kept(grid, scheme)),
                Bound::Below(1.0),
                "normalized throughput of TCP from farthest away / from next door",
            ));
        }
        claims.push(
            Claim::check(
                format!("{id}/stronger-1024-{name}"),
                format!("beside {} the effect is stronger with 1,024 B ({words})", small.name),
                difference(&kept(grid, big), &kept(grid, small)),
                Bound::Below(0.0),
                "what TCP keeps, 1,024 B - 256 B",
            )
            .if_it_fails(NOT_STRONGER),
        );
    }
    claims
}

const NOT_STRONGER: &str = "With 1,024 B the window of a TCP next door is a few packets, and it waits for timeouts; from \
                            farther away more packets are under way and fewer of them are lost, which makes up for \
                            part of what the longer round trip costs";

pub(super) fn fig30_33(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let cells = cells(&base(e), &paired_schemes(), &ERRORS[1..], set_error);
    let grid = bench.measure(e.id, &cells, &Precision::of(&LAST_HOP.metrics()))?;
    let claims = nearer_claims(e.id, &grid, &LAST_HOP);
    let section = beside::pairs_section(e, &grid, &LAST_HOP);
    Ok(show::outcome(e, show::points(&grid, &ERROR, &LAST_HOP.quantities()), claims, section))
}

#[cfg(test)]
mod tests {
    use super::super::with;
    use super::*;
    use crate::Effort;
    use crate::lossy::EXPERIMENTS;
    use fairpace_lab::Hooks;
    use fairpace_scenario::Time;

    fn miniature(vary: fn(&mut RawScenario, f64), places: &[f64]) -> Grid {
        let s = base(EXPERIMENTS.iter().find(|e| e.id == "lossy.fig20-23").unwrap());
        let s = with(&s, |s| s.duration = Time::seconds(100.0));
        let all: Vec<Scheme> = BOTH_READINGS.into_iter().chain(BIG).collect();
        let cells = cells(&s, &all, places, vary);
        Bench::new(Hooks::default(), Effort::Seeds(2))
            .measure("mini", &cells, &Precision::of(&LAST_HOP.metrics()))
            .unwrap()
    }

    #[test]
    fn tcp_loses_share_with_distance_and_the_claim_fails_where_near_and_far_change_places() {
        let mut grid = miniature(set_side_delay, &[0.0, 500.0]);
        let holds = |grid: &Grid| {
            let claims = fig20_23_claims("mini", grid);
            assert_eq!(claims.len(), 12);
            claims.iter().filter(|c| c.id.contains("tcp-loses-srp-256") && c.holds).count()
        };
        assert_eq!(holds(&grid), 1);
        for cell in &mut grid.cells {
            cell.x = 500.0 - cell.x;
        }
        assert_eq!(holds(&grid), 0);
    }

    #[test]
    fn a_flow_beside_itself_is_fair_by_the_bounds_and_a_greedy_one_is_not() {
        let grid = miniature(set_tcp_flows, &[1.0, 20.0]);
        let [default, _] = &READINGS;
        let claims = fig16_17_claims("mini", &grid, default);
        let measured = |name: &str| claims.iter().find(|c| c.id == format!("mini/{name}")).unwrap().measured.unwrap();
        assert!(measured("crp-fair-least") <= measured("crp-fair-most"));
        // Shares are of 150 kbit/s over all flows: beside 20 TCP flows all shares together are at most 21.
        let (own, tcp) = (LAST_HOP.main.get, LAST_HOP.tcp.get);
        let all =
            grid.estimate(SRP.key, 20.0, own).unwrap().mean + 20.0 * grid.estimate(SRP.key, 20.0, tcp).unwrap().mean;
        assert!((15.0..=21.0).contains(&all), "{all}");
    }

    #[test]
    fn buffers_are_those_of_table_2() {
        let mut s = RawScenario::clone(&base(EXPERIMENTS.iter().find(|e| e.id == "lossy.fig20-23").unwrap()));
        let written = s.path.queue.capacity.clone();
        set_buffer(&mut s, BUFFER_BYTES);
        assert_eq!(s.path.queue.capacity, written);
        // 4 x 150 kbit/s x 410 ms = 30,750 B = 30.03 packets of 1,024 B, and the one in transmission.
        set_packet_size(&mut s, 1_024);
        set_buffer(&mut s, BUFFER_BYTES);
        assert_eq!(s.path.queue.capacity.text(), "31 pkt");
    }
}
