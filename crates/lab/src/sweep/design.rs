//! The layout of a sweep's points: which values of the axes stand together.

use super::axis::{Axis, Levels, meaning};
use super::error::SweepError;
use fairpace_units::RandomStream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most points of one sweep.
pub const MAX_POINTS: usize = 1_000_000;

/// The layout of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Every value with every other; the last axis changes first.
    #[default]
    Grid,
    /// The first values of all axes, the second ones, …: all axes are of one length.
    List,
    /// So many points, each value drawn by itself.
    Random {
        /// The number of points.
        points: usize,
        /// The seed of the draws.
        seed: u64,
    },
    /// So many points, one in each of so many equal parts of every axis (Latin hypercube) [McKay, Beckman and Conover 1979].
    LatinHypercube {
        /// The number of points.
        points: usize,
        /// The seed of the draws.
        seed: u64,
    },
}

/// A point: a value of each axis, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// 16 hexadecimal digits: what it is of. Another scenario, program or world, or another value, has another.
    pub id: String,
    /// The values, as text of a scenario.
    pub values: Vec<String>,
}

/// The values of all points; a point that would come twice comes once.
pub(super) fn lay_out(axes: &[Axis], design: Design) -> Result<Vec<Vec<String>>, SweepError> {
    let refuse =
        |found: String, wrong: String, allowed: &str| SweepError::Vary { found, wrong, allowed: allowed.to_owned() };
    let mut fields = BTreeSet::new();
    if let Some(twice) = axes.iter().find(|axis| !fields.insert(&axis.field)) {
        return Err(refuse(twice.field.clone(), "is varied twice".to_owned(), "list all of its values behind one `=`"));
    }
    if axes.is_empty() {
        return Err(refuse(
            "the sweep".to_owned(),
            "has no axis".to_owned(),
            "name a field and its values, as in `path.loss.p=1e-4..1e-2/log7`",
        ));
    }
    let listed = |axis: &Axis| -> Result<Vec<String>, SweepError> {
        axis.values().map(<[String]>::to_vec).ok_or_else(|| {
            let Levels::Between { from, to, unit, .. } = &axis.levels else {
                unreachable!("values are listed or lie between")
            };
            let wrong = "is a range without a number of values, which only random designs have".to_owned();
            refuse(format!("{}={from}{unit}..{to}{unit}", axis.field), wrong, "write how many, as in `/5` or `/log5`")
        })
    };
    let points: Vec<Vec<String>> = match design {
        Design::Grid => {
            let axes: Vec<Vec<String>> = axes.iter().map(listed).collect::<Result<_, _>>()?;
            let all = axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.len())).unwrap_or(usize::MAX);
            if all > MAX_POINTS {
                return Err(refuse(
                    "the grid".to_owned(),
                    format!("has {all} points"),
                    "at most 1,000,000: vary fewer values, or draw points at random",
                ));
            }
            let point = |index: usize| {
                let mut rest = index;
                let mut values: Vec<String> = Vec::with_capacity(axes.len());
                for axis in axes.iter().rev() {
                    values.push(axis[rest % axis.len()].clone());
                    rest /= axis.len();
                }
                values.reverse();
                values
            };
            (0..all).map(point).collect()
        }
        Design::List => {
            let axes: Vec<Vec<String>> = axes.iter().map(listed).collect::<Result<_, _>>()?;
            let len = axes.first().map_or(0, Vec::len);
            if let Some(other) = axes.iter().position(|axis| axis.len() != len) {
                return Err(refuse(
                    "the list".to_owned(),
                    format!("has {len} values on its first axis and {} on axis {}", axes[other].len(), other + 1),
                    "give all axes the same number of values",
                ));
            }
            (0..len).map(|i| axes.iter().map(|axis| axis[i].clone()).collect()).collect()
        }
        Design::Random { points, seed } => {
            let columns = columns(axes, points, |axis| {
                let mut stream = RandomStream::named(seed, &format!("sweep.random.{}", axis.field));
                (0..points).map(|_| stream.uniform()).collect()
            })?;
            (0..points).map(|i| columns.iter().map(|column| column[i].clone()).collect()).collect()
        }
        Design::LatinHypercube { points, seed } => {
            let columns = columns(axes, points, |axis| {
                let mut stream = RandomStream::named(seed, &format!("sweep.latin.{}", axis.field));
                let mut parts: Vec<usize> = (0..points).collect();
                for i in (1..points).rev() {
                    parts.swap(i, stream.below(i as u64 + 1) as usize);
                }
                parts.into_iter().map(|part| (part as f64 + stream.uniform()) / points as f64).collect()
            })?;
            (0..points).map(|i| columns.iter().map(|column| column[i].clone()).collect()).collect()
        }
    };
    let mut seen = BTreeSet::new();
    let meanings = |point: &Vec<String>| point.iter().map(|value| meaning(value)).collect::<Vec<_>>();
    Ok(points.into_iter().filter(|point| seen.insert(meanings(point))).collect())
}

fn columns(axes: &[Axis], points: usize, places: impl Fn(&Axis) -> Vec<f64>) -> Result<Vec<Vec<String>>, SweepError> {
    if points == 0 || points > MAX_POINTS {
        return Err(SweepError::Vary {
            found: points.to_string(),
            wrong: "is no number of points".to_owned(),
            allowed: "from 1 to 1,000,000".to_owned(),
        });
    }
    Ok(axes.iter().map(|axis| places(axis).into_iter().map(|place| axis.at(place)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|t| Axis::parse(t).unwrap()).collect()
    }

    #[test]
    fn a_grid_has_every_value_with_every_other_and_a_list_each_once() {
        let two = axes(&["path.loss.p=0.1,0.2", "path.rtt=1 s,2 s"]);
        let text = |points: Vec<Vec<String>>| points.iter().map(|p| p.join(" ")).collect::<Vec<_>>();
        assert_eq!(text(lay_out(&two, Design::Grid).unwrap()), ["0.1 1 s", "0.1 2 s", "0.2 1 s", "0.2 2 s"]);
        assert_eq!(text(lay_out(&two, Design::List).unwrap()), ["0.1 1 s", "0.2 2 s"]);
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_part_of_every_axis() {
        let two = axes(&["path.loss.p=0..1", "flow.a.controller=rcs,rap"]);
        let points = lay_out(&two, Design::LatinHypercube { points: 50, seed: 3 }).unwrap();
        let mut parts: Vec<usize> = points.iter().map(|p| (p[0].parse::<f64>().unwrap() * 50.0) as usize).collect();
        assert_ne!(parts, (0..50).collect::<Vec<_>>(), "in no order");
        parts.sort_unstable();
        assert_eq!(parts, (0..50).collect::<Vec<_>>());
        assert_eq!(points.iter().filter(|p| p[1] == "rcs").count(), 25);
        assert_eq!(points, lay_out(&two, Design::LatinHypercube { points: 50, seed: 3 }).unwrap());
        assert_ne!(points, lay_out(&two, Design::LatinHypercube { points: 50, seed: 4 }).unwrap());
    }

    #[test]
    fn random_points_are_uniform_also_in_the_logarithm_and_the_same_for_the_same_seed() {
        let one = axes(&["path.loss.p=1e-4..1/log"]);
        let design = Design::Random { points: 2_000, seed: 1 };
        let points = lay_out(&one, design).unwrap();
        // Half of them below 1e-2: 1,000 ± 5 deviations of 22.4.
        let below = points.iter().filter(|p| p[0].parse::<f64>().unwrap() < 1e-2).count();
        assert!((888..=1_112).contains(&below), "{below}");
        assert_eq!(points, lay_out(&one, design).unwrap());
        // Another axis beside it changes no draw of the first.
        let two = lay_out(&axes(&["path.loss.p=1e-4..1/log", "path.rtt=1 s..2 s"]), design).unwrap();
        assert!(points.iter().zip(&two).all(|(a, b)| a[0] == b[0]));
    }

    #[test]
    fn a_design_that_makes_no_points_is_refused() {
        for (texts, design, wrong) in [
            (&[][..], Design::Grid, "has no axis"),
            (&["path.loss.p=0..1"], Design::Grid, "a range without a number"),
            (&["path.loss.p=0,1", "path.rtt=1 s"], Design::List, "has 2 values on its first axis and 1"),
            (&["path.loss.p=0,1", "path.loss.p=0"], Design::Grid, "is varied twice"),
            (&["path.loss.p=0,1"], Design::Random { points: 0, seed: 1 }, "no number of points"),
        ] {
            let error = lay_out(&axes(texts), design).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
        let many = axes(&["path.loss.p=0..1/1001", "path.rtt=1 s..2 s/1001"]);
        assert!(lay_out(&many, Design::Grid).unwrap_err().to_string().contains("has 1002001 points"));
    }
}
