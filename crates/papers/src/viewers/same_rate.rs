//! `fixed` against SRT at the same rate: the same play-out delay, the same encoder, paired seeds.
//!
//! "The same rate" has two readings. By its setting, the encoder's rate of SRT is all that `fixed` sends: headers, repair and
//! repair packets have to fit in. On the wire, `fixed` is given what SRT sends there, MPEG-TS, headers and repair included.
//! Where the encodings differ, a control run without loss says by how much.

use super::places::{Alone, HARM_CAPS, Place, Seen, best};
use crate::figure::{table, text};
use crate::{Bench, Bound, Claim, Experiment};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, short};
use fairpace_report::Table;

/// The paths on which this is claimed.
const PATHS: [&str; 2] = ["viewers.demo", "viewers.geo-bursts"];
/// Lost at most: of the pictures whole and in time, a share; of SSIM.
const LESS: f64 = -0.005;

/// The comparison on a path: a row per rate, and the claims at one; nothing on other paths.
pub(super) fn against_srt(
    e: &Experiment,
    alone: &Alone<'_>,
    places: &[Place],
    bench: &mut Bench<'_>,
) -> Result<Option<(Table, Vec<Claim>)>, RunError> {
    let pairs = pairs(places);
    let Some((fixed, srt, cap)) = chosen(&pairs).filter(|_| PATHS.contains(&e.id)) else { return Ok(None) };
    let setting = |fixed: &Place, srt: &Place| Compared::new(e, alone, "setting", fixed, srt);
    let mut rows: Vec<Vec<String>> = pairs.iter().map(|(fixed, srt)| setting(fixed, srt).row(fixed, srt)).collect();
    let (of_fixed, of_srt) = ((fixed.key, fixed.name.as_str()), (srt.key, srt.name.as_str()));
    // To whole kbit/s: the rate is a part of the scenario, and of the table.
    let wire_kbps = srt.mean(|r| r.sent).round();
    let wire = alone.beside(bench, of_fixed, &[Some(wire_kbps)])?.swap_remove(0);
    let on_wire = Compared::new(e, alone, "wire", &wire, srt);
    rows.push(on_wire.row(&wire, srt));
    let kbps = srt.kbps.unwrap_or_default();
    let controls = (alone.control(bench, of_fixed, kbps)?, alone.control(bench, of_srt, kbps)?);
    let within =
        if cap.is_finite() { format!("within a harm of {} %", 100.0 * cap) } else { "whatever it costs".to_owned() };
    let caption = format!(
        "{}; rates at which no run of `fixed` is ended by the breaker, and in the last row `fixed` at what SRT of {} kbit/s, its best {within}, sends; mean ± half-width of the 95 % interval, paired seeds",
        e.file,
        srt.at()
    );
    let table = table("Fairpace, fixed, less SRT at the same rate", caption, HEAD, rows);
    let mut claims = setting(fixed, srt).claims.to_vec();
    claims.push(corrected(e, (fixed, srt), &controls));
    claims.extend(on_wire.claims);
    Ok(Some((table, claims)))
}

/// `fixed` and SRT at each rate of the grid at which no run was ended.
fn pairs(places: &[Place]) -> Vec<(&Place, &Place)> {
    let of = |key: &'static str| places.iter().filter(move |p| p.key == key && p.ended() == 0);
    of("fixed").filter_map(|fixed| Some((fixed, of("srt").find(|srt| srt.kbps == fixed.kbps)?))).collect()
}

/// The pair at SRT's best rate within the least harm, of 5 % at least, within which it has one.
fn chosen<'p>(pairs: &[(&'p Place, &'p Place)]) -> Option<(&'p Place, &'p Place, f64)> {
    let caps = HARM_CAPS.into_iter().filter(|cap| *cap >= 0.05).chain([f64::INFINITY]);
    caps.into_iter().find_map(|cap| {
        let srt = best(pairs.iter().map(|(_, srt)| *srt), "srt", cap)?;
        let (fixed, srt) = pairs.iter().find(|(_, of)| of.kbps == srt.kbps)?;
        Some((*fixed, *srt, cap))
    })
}

const HEAD: [&str; 10] = [
    "rate of SRT's encoder, kbit/s",
    "sent by SRT, kbit/s",
    "rate of fixed, kbit/s",
    "whole and in time, points",
    "at least -0.5",
    "SSIM",
    "at least -0.005",
    "longest freeze, s",
    "at most a round trip",
    "damaged, points",
];

/// A number that is compared.
struct Compare {
    key: &'static str,
    words: &'static str,
    of: fn(&Seen) -> f64,
}

const COMPARED: [Compare; 3] = [
    Compare { key: "whole", words: "as many pictures are whole and in time", of: |r| r.in_time },
    Compare { key: "ssim", words: "the picture is as good", of: |r| r.ssim },
    Compare { key: "freeze", words: "the longest freeze is at most a round trip longer", of: |r| r.freeze },
];

/// `fixed` less SRT.
struct Compared {
    claims: [Claim; 3],
    differences: [Option<Estimate>; 3],
}

impl Compared {
    /// `reading`: of "the same rate", `setting` or `wire`.
    fn new(e: &Experiment, alone: &Alone<'_>, reading: &str, fixed: &Place, srt: &Place) -> Compared {
        let at = if reading == "wire" { "on the wire" } else { "as it is set" };
        let what = format!(
            "fixed at {} kbit/s less SRT, its encoder at {} kbit/s, seed by seed; {} of {} ended by the breaker",
            fixed.at(),
            srt.at(),
            fixed.ended(),
            fixed.runs.len()
        );
        let claims = COMPARED.map(|Compare { key, words, of }| {
            let bound = if key == "freeze" { Bound::AtMost(alone.rtt_s()) } else { Bound::AtLeast(LESS) };
            let statement = format!("at SRT's rate {at} {words}");
            e.claim(format!("same-{reading}-{key}"), statement, bound, &what).number(fixed.less(srt, of))
        });
        Compared { claims, differences: COMPARED.map(|compare| fixed.less(srt, compare.of)) }
    }

    fn row(&self, fixed: &Place, srt: &Place) -> Vec<String> {
        let percent = |e: Option<Estimate>| text(e.map(|e| crate::figure::scaled(e, 100.0)));
        let [whole, ssim, freeze] = self.differences;
        let [whole_says, ssim_says, freeze_says] = self.claims.each_ref().map(verdict);
        vec![
            srt.at(),
            short(srt.mean(|r| r.sent)),
            fixed.at(),
            percent(whole),
            whole_says,
            text(ssim),
            ssim_says,
            text(freeze),
            freeze_says,
            percent(fixed.less(srt, |r| r.damaged)),
        ]
    }
}

/// `holds`, `fails`, or `not decided` at 95 %.
fn verdict(claim: &Claim) -> String {
    match (claim.decided, claim.holds) {
        (false, _) => "not decided",
        (true, true) => "holds",
        (true, false) => "fails",
    }
    .to_owned()
}

/// SSIM, each less its own without loss: how much of it the path took.
fn corrected(e: &Experiment, pair: (&Place, &Place), controls: &(Place, Place)) -> Claim {
    let taken = |place: &Place, control: &Place| -> Vec<f64> {
        place.runs.iter().zip(&control.runs).map(|(with, without)| with.ssim - without.ssim).collect()
    };
    let fixed = taken(pair.0, &controls.0);
    let srt = taken(pair.1, &controls.1);
    let difference: Vec<f64> = fixed.iter().zip(&srt).map(|(fixed, srt)| fixed - srt).collect();
    let what = format!(
        "SSIM less that of a control run without loss ({} and {}), fixed less SRT, seed by seed: both set to {} kbit/s",
        short(controls.0.mean(|r| r.ssim)),
        short(controls.1.mean(|r| r.ssim)),
        pair.1.at()
    );
    let statement = "at SRT's rate as it is set the path takes as little from the picture";
    e.claim("same-setting-ssim-corrected", statement, Bound::AtLeast(LESS), what).number(Estimate::of(&difference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;
    use crate::viewers::EXPERIMENTS;
    use fairpace_lab::Hooks;
    use std::rc::Rc;

    fn place(key: &'static str, kbps: f64, ssim: f64, harm: f64, ended: f64) -> Place {
        let runs = vec![Rc::new(Seen { ssim, ended, ..Seen::default() }), Rc::new(Seen { ssim, ..Seen::default() })];
        Place { key, name: key.to_owned(), kbps: Some(kbps), runs, harm: vec![harm; 2], voice: vec![0.0; 2] }
    }

    #[test]
    fn the_rate_is_srt_s_best_within_the_least_harm_at_which_no_run_was_ended() {
        let places = |harm: f64| {
            let srt = [(200.0, 0.8), (350.0, 0.9), (450.0, 0.95), (600.0, 0.99)];
            let srt = srt.map(|(kbps, ssim)| place("srt", kbps, ssim, if kbps < 400.0 { harm } else { 0.2 }, 0.0));
            let fixed = [200.0, 350.0, 450.0, 600.0];
            let fixed = fixed.map(|kbps| place("fixed", kbps, 0.5, 0.0, f64::from(u8::from(kbps > 500.0))));
            srt.into_iter().chain(fixed).collect::<Vec<_>>()
        };
        for (harm, cap, kbps) in [(0.01, 0.05, 350.0), (0.07, 0.1, 350.0), (0.15, f64::INFINITY, 450.0)] {
            let places = places(harm);
            let pairs = pairs(&places);
            // At 600 kbit/s one run of `fixed` was ended.
            assert_eq!(pairs.len(), 3);
            let (fixed, srt, found) = chosen(&pairs).unwrap();
            assert_eq!(
                (fixed.key, srt.key, fixed.kbps, srt.kbps, found),
                ("fixed", "srt", Some(kbps), Some(kbps), cap)
            );
        }
        assert!(chosen(&[]).is_none());
    }

    #[test]
    fn a_number_holds_or_fails_only_where_its_interval_says_so() {
        let says = |mean: f64, half: f64| {
            let e = Estimate { mean, ci95: Some([mean - half, mean + half]), n: 20 };
            verdict(&Claim::check("x/y", "s", Some(e), Bound::AtLeast(LESS), "w"))
        };
        assert_eq!(
            [says(0.0, 0.001), says(0.0, 0.01), says(-0.01, 0.01), says(-0.02, 0.01)],
            ["holds", "not decided", "not decided", "fails"]
        );
    }

    #[test]
    fn over_the_demo_s_path_fixed_is_compared_at_srt_s_rate_by_setting_and_on_the_wire() {
        let e = EXPERIMENTS.iter().find(|e| e.id == "viewers.demo").unwrap();
        let mut bench = Bench::new(Hooks::default(), Effort::Quick);
        let alone = Alone::new(e, &mut bench).unwrap();
        let knob = [Some(350.0)];
        let places: Vec<Place> = [("fixed", "fixed"), ("srt", "SRT")]
            .into_iter()
            .flat_map(|sender| alone.beside(&mut bench, sender, &knob).unwrap())
            .collect();
        let (table, claims) = against_srt(e, &alone, &places, &mut bench).unwrap().unwrap();
        let ids: Vec<&str> = claims.iter().filter_map(|c| c.id.split('/').nth(1)).collect();
        assert_eq!(
            ids,
            [
                "same-setting-whole",
                "same-setting-ssim",
                "same-setting-freeze",
                "same-setting-ssim-corrected",
                "same-wire-whole",
                "same-wire-ssim",
                "same-wire-freeze"
            ]
        );
        assert!(claims.iter().all(|c| c.measured.is_some()), "{claims:?}");
        // One rate of the grid, and on the wire: some 5 % of MPEG-TS, 3 % of headers, repair and ACKACKs more.
        assert_eq!(table.rows.len(), 2);
        let wire: f64 = table.rows[1][2].parse().unwrap();
        assert!((380.0..450.0).contains(&wire), "{wire}");
        // More rate, a better picture; and by the control run the encodings differ as much as that.
        let measured = |i: usize| claims[i].measured.unwrap();
        assert!(measured(5) > measured(1) && measured(3) > measured(1), "{claims:?}");
        let geo = EXPERIMENTS.iter().find(|e| e.id == "viewers.geo").unwrap();
        assert!(against_srt(geo, &alone, &places, &mut bench).unwrap().is_none());
    }
}
