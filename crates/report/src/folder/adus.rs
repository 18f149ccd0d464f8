//! The section of data units: when they were complete, and which way they took.

use super::{Run, list, short};
use crate::{Axis, BandKind, Chart, Section, Series, Style, Table};

/// Flows with a chart of their own.
const MAX_CHARTS: usize = 4;
/// Data units in a chart; each is a point.
const MAX_POINTS: usize = 4_000;

impl Run {
    /// The section, if the run has data units.
    pub(super) fn adus(&self) -> Option<Section> {
        let flows: Vec<_> = list(&self.first()["flows"]).iter().filter(|f| f["adus"].is_object()).collect();
        if flows.is_empty() {
            return None;
        }
        let text = "A data unit is of use when all of it is there. The time between two that are complete (j_A) shows what a \
                    change of the transport does to them: probing, they go over TCP (shaded), between times over UDP.";
        let mut section = Section::new("adus", "Data units").text(text);
        let of = |value: &serde_json::Value| value.as_f64().map_or("–".to_owned(), short);
        let mut table = Table {
            title: "Time between two data units".to_owned(),
            caption: format!("{}; the measured window", self.caption()),
            head: [
                "flow",
                "sent",
                "complete",
                "over TCP",
                "switches",
                "mean, ms",
                "95 %, ms",
                "longest, ms",
                "at switches: mean, ms",
                "longest, ms",
            ]
            .map(str::to_owned)
            .into(),
            rows: Vec::new(),
        };
        for flow in &flows {
            let (name, a) = (flow["name"].as_str().unwrap_or_default(), &flow["adus"]);
            let (all, switched) = (&a["adu_gap_ms"], &a["switch_gap_ms"]);
            let mut row = vec![name.to_owned()];
            row.extend(["sent", "complete", "over_tcp", "switches"].map(|key| of(&a[key])));
            row.extend([&all["mean"], &all["p95"], &all["max"], &switched["mean"], &switched["max"]].map(of));
            table.rows.push(row);
        }
        for flow in flows.iter().take(MAX_CHARTS) {
            section = section.chart(self.adu_gaps(flow["name"].as_str().unwrap_or_default()));
        }
        Some(section.table(table))
    }

    /// j_A over time; the stretches over TCP are shaded.
    fn adu_gaps(&self, flow: &str) -> Chart {
        let rows = &self.adu_rows;
        let caption = format!("{}; the first seed", self.caption());
        let title = format!("`{flow}`: time between two complete data units");
        let mut chart =
            Chart::new(title, Axis::new("time", "s"), Axis::new("time between data units", "ms")).caption(caption);
        let own: Vec<&Vec<String>> = rows.rows.iter().filter(|row| rows.text(row, "flow") == flow).collect();
        let at = |row: &Vec<String>| rows.number(row, "complete_s").unwrap_or(f64::NAN);
        let mut from = None;
        for row in &own {
            match (rows.text(row, "via") == "tcp", from) {
                (true, None) => from = Some(at(row)),
                (false, Some(began)) => {
                    chart = chart.band(began, at(row), "TCP", BandKind::State);
                    from = None;
                }
                _ => {}
            }
        }
        if let (Some(began), Some(last)) = (from, own.last()) {
            chart = chart.band(began, at(last), "TCP", BandKind::State);
        }
        // Of too many, those that stick out stay.
        let block = own.len().div_ceil(MAX_POINTS).max(1);
        let longest = |rows_of: &[&Vec<String>]| {
            let gaps = rows_of.iter().filter_map(|row| Some((at(row), rows.number(row, "gap_ms")?)));
            gaps.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let (x, y) = own.chunks(block).filter_map(longest).unzip();
        let controller = self.keys().into_iter().find(|(group, _)| group == flow).map_or("tpba".to_owned(), |k| k.1);
        chart.series(Series { style: Style::Points, ..Series::line(flow, controller, x, y) })
    }
}
