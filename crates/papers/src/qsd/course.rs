//! The delay of one flow from its start on, over the phases: charts, tables and points of Figs. 3 to 5.

use super::frame::Frame;
use super::phases::{Delay, Packet, Phases};
use super::spread::{Spread, of_phases};
use crate::figure::table;
use crate::{Experiment, Point};
use fairpace_lab::stats::short;
use fairpace_report::{Axis, Chart, Section, Series, Table};

/// A kind of start, and the packets of every phase under it.
pub(super) struct Course<'a> {
    /// Key in points.
    pub(super) key: &'static str,
    /// Name in legends and tables.
    pub(super) name: String,
    /// Key of its colour.
    pub(super) colour: &'static str,
    pub(super) phases: &'a Phases,
}

impl<'a> Course<'a> {
    pub(super) fn new(key: &'static str, name: impl Into<String>, colour: &'static str, phases: &'a Phases) -> Self {
        Course { key, name: name.into(), colour, phases }
    }

    /// A delay over the time at which packets are produced: medians, in a band from the least to the greatest.
    pub(super) fn line(&self, delay: Delay) -> Series {
        let spread = self.phases.spread(delay);
        let of = |number: fn(&Spread) -> f64| spread.iter().map(number).collect::<Vec<f64>>();
        let line = Series::line(&self.name, self.colour, self.phases.born(), of(|s| s.median));
        line.interval(of(|s| s.least), of(|s| s.greatest))
    }

    /// The peak of the median, to three digits.
    pub(super) fn peak(&self) -> String {
        short(self.phases.peak_of_median())
    }
}

/// The section with the courses of a frame: end-to-end delays as a chart, and numbers of them.
pub(super) fn shown(e: &Experiment, section: Section, frame: Frame, title: String, courses: &[Course<'_>]) -> Section {
    let lines = courses.iter().map(|c| c.line(Packet::e2ed)).collect();
    section.chart(chart(e, title, courses, lines)).table(numbers(e, frame, courses))
}

/// A chart of lines of some courses.
pub(super) fn chart(e: &Experiment, title: String, courses: &[Course<'_>], lines: Vec<Series>) -> Chart {
    let chart = Chart::new(title, Axis::new("packet produced after", "s"), Axis::new("delay", "s"));
    lines.into_iter().fold(chart.caption(caption(e, courses)), Chart::series)
}

fn caption(e: &Experiment, courses: &[Course<'_>]) -> String {
    let phases = courses.first().map_or(0, |c| c.phases.flows.len());
    format!("{}; {phases} phases; lines are medians over the phases, bands from the least to the greatest", e.file)
}

/// The numbers of charts of delay.
pub(super) fn numbers(e: &Experiment, frame: Frame, courses: &[Course<'_>]) -> Table {
    let mut table = table(
        format!("End-to-end delay, {} frame", frame.key()),
        caption(e, courses),
        [
            "start",
            "peak of the median (s)",
            "greatest delay: median (s)",
            "least (s)",
            "greatest (s)",
            "median of the packet of 5 s (s)",
            "of 10 s (s)",
            "of 20 s (s)",
            "second hump, worst phase (s)",
        ],
        [],
    );
    for course in courses {
        let spread = course.phases.spread(Packet::e2ed);
        let born = course.phases.born();
        let at = |t: f64| {
            let n = born.partition_point(|b| *b < t);
            spread.get(n).map_or("–".to_owned(), |s| short(s.median))
        };
        let peaks = Spread::of(course.phases.peaks());
        let of = |number: fn(&Spread) -> f64| peaks.as_ref().map_or("–".to_owned(), |s| short(number(s)));
        table.rows.push(vec![
            course.name.clone(),
            short(course.phases.peak_of_median()),
            of(|s| s.median),
            of(|s| s.least),
            of(|s| s.greatest),
            at(5.0),
            at(10.0),
            at(20.0),
            short(course.phases.worst_hump()),
        ]);
    }
    table
}

/// The points of a frame.
pub(super) fn points(frame: Frame, courses: &[Course<'_>]) -> Vec<Point> {
    let mut points = Vec::new();
    for course in courses {
        let n = course.phases.flows.len();
        let x = [("slots_per_multi_frame", frame.slots())];
        let peaks = Spread::of(course.phases.peaks());
        let of = |number: fn(&Spread) -> f64| peaks.as_ref().map_or(f64::NAN, number);
        points.extend(
            [
                of_phases(course.key, &x, "e2ed_median_peak_s", course.phases.peak_of_median(), n),
                of_phases(course.key, &x, "e2ed_peak_median_s", of(|s| s.median), n),
                of_phases(course.key, &x, "e2ed_peak_least_s", of(|s| s.least), n),
                of_phases(course.key, &x, "e2ed_peak_greatest_s", of(|s| s.greatest), n),
                of_phases(course.key, &x, "second_hump_worst_s", course.phases.worst_hump(), n),
            ]
            .into_iter()
            .flatten(),
        );
    }
    points
}
