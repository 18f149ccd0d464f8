//! From counts to curves.

use super::model::Curve;
use fairpace_units::Instant;
use std::collections::BTreeMap;

/// Bytes counted at instants, as kbit/s in the interval that begins at each.
pub(super) fn slopes(counted: impl Iterator<Item = (Instant, u64)>) -> Curve {
    let points: Vec<(Instant, u64)> = counted.collect();
    let each = points.windows(2).filter(|w| w[1].0 > w[0].0);
    each.map(|w| {
        let span = w[1].0.since(w[0].0).as_secs_f64();
        (w[0].0.as_secs_f64(), w[1].1.saturating_sub(w[0].1) as f64 * 8e-3 / span)
    })
    .collect()
}

/// Of the packets sent in each second, the share that is missing, in percent. `arrived` has number and time
/// of departure of those that came; `sent` is how many there were. One that is missing left between its
/// neighbours; those after the last left just after it.
pub(super) fn lost_of_each_second(arrived: BTreeMap<u64, f64>, sent: u64) -> Curve {
    let Some((&first, _)) = arrived.first_key_value() else { return Curve::new() };
    // (sent, lost) of each second.
    let mut seconds: Vec<(u32, u32)> = Vec::new();
    let mut count = |left: f64, lost: u32| {
        let second = left.max(0.0) as usize;
        if seconds.len() <= second {
            seconds.resize(second + 1, (0, 0));
        }
        seconds[second] = (seconds[second].0 + 1, seconds[second].1 + lost);
    };
    let mut before: Option<(u64, f64)> = None;
    for (&number, &left) in &arrived {
        if let Some((n, then)) = before {
            let gap = (number - n) as f64;
            (n + 1..number).for_each(|m| count(then + (left - then) * (m - n) as f64 / gap, 1));
        }
        count(left, 0);
        before = Some((number, left));
    }
    if let Some((last, left)) = before {
        (last + 1..first.saturating_add(sent)).for_each(|_| count(left, 1));
    }
    // Seconds in which nothing was sent have no share.
    let with_share = seconds.iter().enumerate().filter(|(_, (sent, _))| *sent > 0);
    with_share.map(|(i, (sent, lost))| (i as f64, 100.0 * f64::from(*lost) / f64::from(*sent))).collect()
}

/// Means of `n` neighbours at a time.
pub(super) fn averaged(curve: Curve, n: usize) -> Curve {
    curve.chunks(n).map(|c| (c[0].0, c.iter().map(|(_, v)| v).sum::<f64>() / c.len() as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpace_units::Duration;

    #[test]
    fn losses_count_in_the_second_in_which_the_packet_left() {
        // 10 and 13 arrived, 11 and 12 left between them: at 0.8 + 0.4/3 = 0.93 and 1.07 s. Of five sent,
        // the last is missing too. Second 0: 10, 11; second 1: 12, 13, 14.
        let arrived = BTreeMap::from([(10, 0.8), (13, 1.2)]);
        let curve = lost_of_each_second(arrived, 5);
        assert_eq!(curve.len(), 2);
        assert_eq!(curve[0], (0.0, 50.0));
        assert!((curve[1].1 - 200.0 / 3.0).abs() < 1e-9, "{curve:?}");
        assert!(lost_of_each_second(BTreeMap::new(), 5).is_empty());
    }

    #[test]
    fn counters_become_rates() {
        // 2,500 bytes in 0.2 s are 100 kbit/s; a counter that stands still is 0.
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let curve = slopes([(at(0), 0), (at(200), 2_500), (at(400), 2_500)].into_iter());
        assert_eq!(curve, [(0.0, 100.0), (0.2, 0.0)]);
        assert_eq!(averaged(vec![(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)], 2), [(0.0, 2.0), (2.0, 5.0)]);
    }
}
