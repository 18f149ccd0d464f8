//! An experiment, the tools from outside that it may need, and its results.

use crate::claim::{Claim, Verdict};
use crate::reading::{Chosen, Reading};
use fairpace_lab::RunError;
use fairpace_lab::stats::Estimate;
use fairpace_lab::study::{Bench, Store, World};
use fairpace_report::{Section, Table};
use fairpace_units::{Bytes, Duration, Instant, Rate};
use serde::Serialize;
use std::collections::BTreeMap;

/// One experiment: a figure, or several that share their runs.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// `rcs.fig17a`.
    pub id: &'static str,
    /// The experiment's subject.
    pub title: &'static str,
    /// Its scenario, in `scenarios/papers/`.
    pub file: &'static str,
    /// The scenario's text.
    pub scenario: &'static str,
    /// Its readings, the default first; empty if only one is known.
    pub readings: &'static [Reading],
    pub(crate) run: fn(&Experiment, &mut Bench<'_>, &mut Tools<'_>) -> Result<Outcome, RunError>,
}

/// One number of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The reading of the paper.
    pub reading: String,
    /// The scheme.
    pub scheme: String,
    /// Where: `{"p_loss": 0.001}`.
    pub x: BTreeMap<String, f64>,
    /// The quantity: `throughput_pps`.
    pub metric: String,
    /// Mean, interval, number of seeds.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// The results of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Its id.
    pub experiment: String,
    /// Every number.
    pub points: Vec<Point>,
    /// Every claim.
    pub claims: Vec<Claim>,
    /// The reading that counts: the default, or the first of those that were asked for.
    pub reading: String,
    /// Why it was not run, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// Claims x readings, and what the readings are; empty if there was one only.
    #[serde(skip)]
    pub matrix: Vec<Table>,
    /// For the report: charts, tables, text.
    #[serde(skip)]
    pub section: Section,
}

impl Outcome {
    /// The same, as what came out under a reading.
    pub(crate) fn under(mut self, reading: &str) -> Outcome {
        reading.clone_into(&mut self.reading);
        self.points.iter_mut().for_each(|p| reading.clone_into(&mut p.reading));
        self.claims.iter_mut().for_each(|c| reading.clone_into(&mut c.reading));
        self
    }

    /// The same with the points and claims of another reading; the section stays.
    pub(crate) fn beside(mut self, other: Outcome) -> Outcome {
        self.points.extend(other.points);
        self.claims.extend(other.claims);
        self
    }

    /// The claims under the reading that counts.
    pub fn decided_first(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|c| c.reading == self.reading)
    }

    /// The readings of the claims, in order.
    pub fn readings(&self) -> Vec<&str> {
        let mut readings: Vec<&str> = Vec::new();
        for claim in &self.claims {
            if !readings.contains(&claim.reading.as_str()) {
                readings.push(&claim.reading);
            }
        }
        readings
    }

    /// `holds under a, b; fails under c; not decided under d`; none where there is one reading only.
    pub fn verdicts(&self, id: &str) -> Option<String> {
        let of = |verdict: Verdict| {
            let all = self.claims.iter().filter(|c| c.id == id && c.verdict() == verdict);
            all.map(|c| c.reading.as_str()).collect::<Vec<_>>()
        };
        let words = [
            ("holds under", of(Verdict::Holds)),
            ("fails under", of(Verdict::Fails)),
            ("not decided under", of(Verdict::NotDecided)),
        ];
        let parts: Vec<String> =
            words.iter().filter(|(_, of)| !of.is_empty()).map(|(w, of)| format!("{w} {}", of.join(", "))).collect();
        (self.readings().len() > 1).then(|| parts.join("; "))
    }
}

/// The real encoders that `rcs.fig7-9` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoder {
    /// MPEG-2 by groups of pictures, which leaves no picture out.
    Mpeg2,
    /// VP8 as `send` has it: pictures are left out below what its coarsest quantizer gives.
    Vp8,
    /// VP8 that leaves no picture out.
    Vp8Whole,
}

impl Encoder {
    /// The name in captions.
    pub fn name(self) -> &'static str {
        match self {
            Encoder::Mpeg2 => "MPEG-2",
            Encoder::Vp8 => "VP8",
            Encoder::Vp8Whole => "VP8 that leaves no picture out",
        }
    }
}

/// The pictures that an encoder is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Footage {
    /// The clip that ships, in a loop.
    Clip,
    /// Five minutes of it and of two made by a program, with a cut every few seconds.
    Film,
}

/// A real encoder that follows a rate: given the steps of S(t) and a length, the capture time and size of
/// each picture it made. The command supplies it when it was built with one. Several may be at work at the same time.
pub type EncodeFollowing<'a> =
    dyn Fn(Encoder, Footage, &[(Instant, Rate)], Duration) -> Result<Vec<(Instant, Bytes)>, String> + Sync + 'a;

/// The tools from outside that experiments may need.
#[derive(Default)]
pub struct Tools<'a> {
    /// A real encoder; without it `rcs.fig7-9` is reported as not run.
    pub encoder: Option<Box<EncodeFollowing<'a>>>,
    /// The name of the encoder's clip in captions.
    pub clip_name: String,
    /// Time between two pictures.
    pub frame_interval: Duration,
    /// Where scenarios are run; see [`Experiment::in_real_time`].
    pub world: World<'a>,
    /// Where points are kept, and taken from.
    pub store: Option<Store>,
    /// The reading of the run under way.
    pub reading: Chosen,
    /// Whether the run under way is for its claims and their numbers only, as those beside the reading that is drawn: schemes on which no claim
    /// rests are then left out.
    pub claims_only: bool,
}

impl core::fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tools").field("encoder", &self.encoder.is_some()).finish()
    }
}

impl Experiment {
    /// Whether it can be run in real time. The others need the simulator: thousands of runs, or facts that only the
    /// simulator can see.
    pub fn in_real_time(&self) -> bool {
        ["tpba.", "worlds."].iter().any(|p| self.id.starts_with(p))
            || ["agreement.loss", "agreement.kernel"].contains(&self.id)
    }
}
