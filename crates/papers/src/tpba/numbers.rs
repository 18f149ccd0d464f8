//! The paper's measures, computed from rates over sampling periods and from arrivals of data units [tpba §4, §6], on
//! plain numbers.
//!
//! A rate over `[S j, S (j + 1)]` has number j: `R_i(j)` [tpba §6.2].

use fairpace_lab::stats::{jain_index, mean};
use fairpace_sim::FrameRecord;
use fairpace_units::Via;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Means over `per` samples each; what is left over at the end is not a period.
pub(super) fn over(samples: &[f64], per: usize) -> Vec<f64> {
    samples.chunks_exact(per.max(1)).map(mean).collect()
}

/// n_cross, n_join: the first period from `from` on in which `who` has at least what one of the others has.
pub(super) fn reached(who: &[f64], others: &[&[f64]], from: usize) -> Option<usize> {
    (from..who.len()).find(|&j| others.iter().any(|other| other.get(j).is_some_and(|r| who[j] >= *r)))
}

/// The least n for which all of R(n - 10) ... R(n) lie within `width` of each other.
pub(super) fn settled(rates: &[f64], width: f64) -> Option<usize> {
    let within = |of: &[f64]| range(of) < width;
    rates.windows(11).position(within).map(|first| first + 10)
}

/// Largest less smallest; 0 of nothing.
pub(super) fn range(of: &[f64]) -> f64 {
    let (low, high) = of.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    if of.is_empty() { 0.0 } else { high - low }
}

/// delta R_intra: the range of the flow whose range is largest.
pub(super) fn intra(flows: &[&[f64]], periods: Range<usize>) -> Option<f64> {
    let parts = flows.iter().map(|f| f.get(periods.clone()).filter(|p| !p.is_empty()).map(range));
    parts.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// delta R_ave1, delta R_ave2: by how much the flows' mean rates differ at most.
pub(super) fn apart(flows: &[&[f64]], periods: Range<usize>) -> Option<f64> {
    let means = flows.iter().map(|f| f.get(periods.clone()).filter(|p| !p.is_empty()).map(mean));
    Some(range(&means.collect::<Option<Vec<f64>>>()?))
}

/// f of each of these periods [tpba §4]; none where nobody got anything.
pub(super) fn fairness(flows: &[&[f64]], periods: Range<usize>) -> Vec<Option<f64>> {
    let at = |j: usize| flows.iter().filter_map(|f| f.get(j).copied()).collect::<Vec<f64>>();
    periods.map(|j| jain_index(&at(j))).collect()
}

/// f of the flows' mean rates over these periods.
pub(super) fn fairness_of_means(flows: &[&[f64]], periods: Range<usize>) -> Option<f64> {
    let means = flows.iter().map(|f| f.get(periods.clone()).filter(|p| !p.is_empty()).map(mean));
    jain_index(&means.collect::<Option<Vec<f64>>>()?)
}

/// T_pr, T_pi: periods from `from` until the rate is stable, which is at the end of the first three periods in a row that
/// are within `width` of each other and of the level that it comes to, the mean of the second half of what follows
/// `from`.
pub(super) fn until_stable(rates: &[f64], from: usize, width: f64) -> Option<usize> {
    let after = rates.get(from..)?;
    let level = mean(after.get(after.len() / 2..).filter(|half| !half.is_empty())?);
    let stable = |three: &[f64]| range(three) < width && three.iter().all(|r| (r - level).abs() < width);
    after.windows(3).position(stable).map(|first| first + 3)
}

/// The slope of the line that least squares put through the points: y per x. None if all x are one.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx) * (p.0 - mx)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (sxx > 0.0).then(|| sxy / sxx)
}

/// One j_A: the time between two data units that came one after the other.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Gap {
    /// When the later one was complete, s.
    pub(super) at: f64,
    /// j_A, ms.
    pub(super) ms: f64,
    /// The later one came over UDP, not over TCP.
    pub(super) udp: bool,
    /// The earlier one came the other way.
    pub(super) switch: bool,
    /// Data units between them that never came.
    pub(super) missing: usize,
}

/// j_A of all data units, in the order of their numbers.
pub(super) fn gaps(adus: &[FrameRecord]) -> Vec<Gap> {
    let mut all = Vec::new();
    let mut last: Option<(usize, &FrameRecord, f64)> = None;
    for (n, adu) in adus.iter().enumerate() {
        let Some(at) = adu.complete.map(|at| at.as_secs_f64()) else { continue };
        if let Some((before, earlier, then)) = last {
            let (udp, switch) = (adu.via() == Via::Udp, adu.via() != earlier.via());
            all.push(Gap { at, ms: (at - then) * 1e3, udp, switch, missing: n - before - 1 });
        }
        last = Some((n, adu, at));
    }
    all
}

/// The harm of switching to data units.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Harm {
    /// Sent in part over TCP and in part over UDP.
    pub(super) split: usize,
    /// Sent over TCP and never complete, though the next one was: TCP loses nothing.
    pub(super) lost: usize,
    /// Complete before the one before it, where the transport was switched between them.
    pub(super) reordered: usize,
}

/// Counts it. The last data unit is still under way.
pub(super) fn harm(adus: &[FrameRecord], gaps: &[Gap]) -> Harm {
    let whole = adus.split_last().map_or(adus, |(_, whole)| whole);
    let split = whole.iter().filter(|a| a.over_tcp > 0 && a.over_tcp < a.packets).count();
    let lost = adus.windows(2).filter(|w| w[0].via() == Via::Tcp && w[0].complete.is_none() && w[1].complete.is_some());
    Harm { split, lost: lost.count(), reordered: gaps.iter().filter(|g| g.switch && g.ms < 0.0).count() }
}

/// The value that a part `q` of them does not exceed; of nothing none.
pub(super) fn quantile(of: &[f64], q: f64) -> Option<f64> {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::{Bytes, Instant};

    #[test]
    fn rates_over_a_period_are_means_of_whole_periods() {
        assert_eq!(over(&[1.0, 3.0, 5.0, 7.0, 100.0], 2), [2.0, 6.0]);
        assert!(over(&[1.0], 2).is_empty());
    }

    #[test]
    fn n_cross_is_the_first_period_in_which_one_of_the_others_is_reached() {
        let (r1, r2) = ([600.0, 590.0, 500.0, 480.0], [600.0, 610.0, 410.0, 490.0]);
        assert_eq!(reached(&[10.0, 200.0, 410.0, 400.0], &[&r1, &r2], 0), Some(2));
        assert_eq!(reached(&[10.0, 200.0, 300.0, 400.0], &[&r1, &r2], 0), None);
        // n_join begins where flow 4 does: before that it has as much as one that sends nothing.
        let idle = [0.0, 590.0, 500.0, 480.0];
        assert_eq!(reached(&[0.0, 0.0, 0.0, 485.0], &[&idle], 1), Some(3));
    }

    #[test]
    fn the_three_differences_of_rates_are_those_worked_by_hand() {
        // Periods 1 to 3. Ranges 20, 90, 50; means 410, 350, 300.
        let flows: [&[f64]; 3] =
            [&[0.0, 400.0, 420.0, 410.0], &[9.0, 400.0, 310.0, 340.0], &[0.0, 280.0, 330.0, 290.0]];
        assert_eq!(intra(&flows, 1..4), Some(90.0));
        assert_eq!(apart(&flows, 1..4), Some(110.0));
        assert_eq!(apart(&flows, 1..5), None);
        assert_eq!(intra(&flows, 2..2), None);
    }

    #[test]
    fn a_rate_has_settled_when_eleven_in_a_row_are_within_20_kbit_s() {
        let rates: Vec<f64> = (0..40).map(|j| 150.0 - 140.0 * 0.8_f64.powi(j)).collect();
        // 140 (0.8^j - 0.8^(j + 10)) = 125 * 0.8^j < 20 from j = 9 on, so n = 19.
        assert_eq!(settled(&rates, 20.0), Some(19));
        assert_eq!(settled(&rates[..15], 20.0), None);
    }

    #[test]
    fn f_is_one_for_equal_rates_and_counts_only_who_is_there() {
        let flows: [&[f64]; 2] = [&[400.0, 600.0, 0.0], &[400.0, 200.0, 0.0]];
        assert_eq!(fairness(&flows, 0..3), [Some(1.0), Some(0.8), None]);
        // Means 500 and 300: 800^2 / (2 * 340,000)
        let f = fairness_of_means(&flows, 0..2).unwrap();
        assert!((f - 640_000.0 / 680_000.0).abs() < 1e-12);
    }

    #[test]
    fn a_rate_is_stable_from_three_periods_near_its_last_level_on() {
        // 400-ms periods: the change is at 2; 600 holds for three periods more, but is not what it comes to.
        let rates = [600.0, 600.0, 600.0, 600.0, 600.0, 500.0, 420.0, 405.0, 398.0, 400.0, 402.0, 400.0];
        // From period 6 on: 420, 405, 398 are within 30 of each other and of the level 400.4.
        assert_eq!(until_stable(&rates, 2, 30.0), Some(7));
        let restless: Vec<f64> = (0..20).map(|j| if j % 2 == 0 { 300.0 } else { 500.0 }).collect();
        assert_eq!(until_stable(&restless, 2, 30.0), None);
    }

    #[test]
    fn a_slope_is_that_of_the_least_squares() {
        // (1, 1), (2, 3), (3, 2): sxx = 2, sxy = 1.
        assert_eq!(slope(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]), Some(0.5));
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 3.0)]), None);
    }

    fn adu(over_tcp: u32, complete_ms: Option<u64>) -> FrameRecord {
        let at = |ms: u64| Instant::ZERO + fairpace_units::Duration::from_millis(ms);
        FrameRecord {
            captured: Instant::ZERO,
            size: Bytes::new(5_120),
            key: false,
            packets: 10,
            received: if complete_ms.is_some() { 10 } else { 9 },
            sent: Some(at(1)),
            complete: complete_ms.map(at),
            over_tcp,
        }
    }

    #[test]
    fn j_a_at_a_switch_is_the_time_between_the_last_unit_of_one_way_and_the_first_of_the_other() {
        let adus = [adu(10, Some(100)), adu(10, Some(160)), adu(0, Some(400)), adu(0, None), adu(0, Some(600))];
        let all = gaps(&adus);
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].switch, all[1].switch, all[2].switch), (false, true, false));
        assert!((all[1].ms - 240.0).abs() < 1e-9 && all[1].udp && (all[1].at - 0.4).abs() < 1e-9);
        assert_eq!((all[2].missing, all[1].missing), (1, 0));
        // A loss of UDP is no loss by switching.
        assert_eq!(harm(&adus, &all), Harm::default());
    }

    #[test]
    fn harm_is_a_split_unit_one_that_tcp_lost_and_one_that_overtook_the_other_way() {
        let (split, lost, early) = (adu(4, Some(320)), adu(10, None), adu(0, Some(450)));
        let adus = [adu(10, Some(300)), split, lost, adu(10, Some(500)), early, adu(7, None)];
        let all = gaps(&adus);
        assert_eq!(harm(&adus, &all), Harm { split: 1, lost: 1, reordered: 1 });
    }

    #[test]
    fn quantiles_are_values_that_were_there() {
        let of = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!((quantile(&of, 0.5), quantile(&of, 1.0), quantile(&of, 0.95)), (Some(3.0), Some(5.0), Some(5.0)));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
