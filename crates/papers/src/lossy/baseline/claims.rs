//! The claims of Figs. 1 to 3 and 25 to 27 under a reading, from whatever was measured.

use super::runs::{Data, Reading, best, within};
use crate::{Bound, Claim, Experiment};
use fairpace_control::Equation;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::largest;

/// The claims of Figs. 1 to 3 under a reading, from whatever was measured.
pub(super) fn fig1_3_claims(e: &Experiment, data: &Data, reading: &Reading) -> Vec<Claim> {
    let errors = data.errors();
    let deviation = |equation, error: f64| (error, data.deviation(reading, equation, error));
    let mut claims = vec![
        e.claim(
            "simple-over",
            "the simple equation overestimates from 5 % error on",
            Bound::Above(0.0),
            "smallest mean deviation in percent, at {at} % error",
        )
        .everywhere(within(&errors, 5.0, 100.0).iter().map(|&x| deviation(Equation::Simple, x))),
    ];
    let of = |x: f64| data.per_seed(reading.runs, x, |o, x| reading.deviation(Equation::Simple, o, x));
    let step = |before: f64, after: f64| {
        Estimate::of(&of(after).iter().zip(&of(before)).map(|(a, b)| a - b).collect::<Vec<_>>())
    };
    let from_5 = within(&errors, 5.0, 100.0);
    claims.push(
        e.claim(
            "simple-grows",
            "and increasingly so",
            Bound::Above(0.0),
            "smallest step of the mean deviation between neighbouring errors, in points, up to {at} %",
        )
        .monotone(&from_5, step),
    );
    claims.push(
        e.claim(
            "simple-90",
            "beyond 10 % error it overshoots by more than 90 %",
            Bound::Above(90.0),
            "smallest mean deviation in percent, at {at} % error",
        )
        .everywhere(within(&errors, 10.1, 100.0).iter().map(|&x| deviation(Equation::Simple, x))),
    );
    claims.push(
        e.claim(
            "complex-under",
            "the complex equation underestimates at low error, up to 10 %",
            Bound::Below(0.0),
            "largest mean deviation in percent, at {at} % error",
        )
        .everywhere(within(&errors, 0.0, 10.0).iter().map(|&x| deviation(Equation::Complex, x))),
    );
    let inside = data.distance(reading, Equation::Complex, &within(&errors, 15.0, 25.0));
    for (side, words_of_side, low, high) in
        [("below", "than below 15 %", 0.0, 14.9), ("above", "than above 25 %", 25.1, 100.0)]
    {
        let outside = data.distance(reading, Equation::Complex, &within(&errors, low, high));
        claims.push(
            e.claim(
                format!("complex-best-15-25-{side}"),
                format!("the complex equation is better between 15 and 25 % error {words_of_side}"),
                Bound::Below(1.0),
                format!(
                    "mean |deviation| inside / outside; it is least at {} % error",
                    best(data, reading, Equation::Complex).map_or("–".to_owned(), |error| error.to_string())
                ),
            )
            .number(data.ratio(&inside, &outside)),
        );
    }
    claims
}

/// |modified| / |complex| at each error below 20 %: the largest, and where it is.
pub(super) fn least_gain(data: &Data, reading: &Reading) -> (f64, Option<Estimate>) {
    let ratio = |error: f64| {
        let [complex, modified] =
            [Equation::Complex, Equation::Modified].map(|equation| data.distance(reading, equation, &[error]));
        data.ratio(&modified, &complex)
    };
    largest(within(&data.errors(), 0.0, 19.9).iter().map(|&x| (x, ratio(x))))
}

pub(super) fn fig25_27_claims(e: &Experiment, data: &Data, reading: &Reading) -> Vec<Claim> {
    let (at, most) = least_gain(data, reading);
    let low = within(&data.errors(), 0.0, 19.9);
    let [complex, modified] =
        [Equation::Complex, Equation::Modified].map(|equation| data.distance(reading, equation, &low));
    let beyond = data.distance(reading, Equation::Modified, &within(&data.errors(), 20.1, f64::INFINITY));
    vec![
        e.claim(
            "modified-closer",
            "the modified equation is closer than the complex one at every error below 20 %",
            Bound::Below(1.0),
            format!("largest ratio of mean |deviation|, modified / complex, at {at} % error"),
        )
        .number(most),
        e.claim(
            "modified-closer-on-average",
            "it is closer on the average over the errors below 20 %",
            Bound::Below(1.0),
            "ratio of mean |deviation|, modified / complex",
        )
        .number(data.ratio(&modified, &complex)),
        e.claim(
            "modified-worse-beyond-20",
            "the modified equation's performance is not as good beyond 20 % error",
            Bound::Above(1.0),
            "ratio of mean |deviation|, beyond 20 % / below",
        )
        .number(data.ratio(&beyond, &modified)),
    ]
}
