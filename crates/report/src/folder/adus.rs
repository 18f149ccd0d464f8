//! The section of data units: when they were complete, and which way they took.

use super::rows::Row;
use super::run::Run;
use super::shown::short;
use crate::{Axis, BandKind, Chart, Section, Series, Style, Table};

/// Flows with a chart of their own.
const MAX_CHARTS: usize = 4;
/// Data units in a chart; each is a point.
const MAX_POINTS: usize = 4_000;

impl Run {
    /// The section, if the run has data units.
    pub(super) fn adus(&self) -> Option<Section> {
        let flows: Vec<_> = self.first().flows.iter().filter_map(|f| Some((&f.name, f.adus.as_ref()?))).collect();
        if flows.is_empty() {
            return None;
        }
        let text = "A data unit is of use when all of it is there. The time between two that are complete (j_A) shows what a \
                    change of the transport does to them: probing, they go over TCP (shaded), between times over UDP.";
        let mut section = Section::new("adus", "Data units").text(text);
        let of = |ms: Option<f64>| ms.map_or("–".to_owned(), short);
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
        for (name, a) in &flows {
            let (all, switched) = (a.adu_gap_ms, a.switch_gap_ms);
            let mut row = vec![(*name).clone()];
            row.extend([a.sent, a.complete, a.over_tcp, a.switches].map(|n| short(n as f64)));
            row.extend([all.map(|d| d.mean), all.map(|d| d.p95), all.map(|d| d.max)].map(of));
            row.extend([switched.map(|d| d.mean), switched.map(|d| d.max)].map(of));
            table.rows.push(row);
        }
        for (name, _) in flows.iter().take(MAX_CHARTS) {
            section = section.chart(self.adu_gaps(name));
        }
        Some(section.table(table))
    }

    /// j_A over time; the stretches over TCP are shaded.
    fn adu_gaps(&self, flow: &str) -> Chart {
        let caption = format!("{}; the first seed", self.caption());
        let title = format!("`{flow}`: time between two complete data units");
        let mut chart =
            Chart::new(title, Axis::new("time", "s"), Axis::new("time between data units", "ms")).caption(caption);
        let own: Vec<Row<'_>> = self.adu_rows.iter().filter(|row| row.is("flow", flow)).collect();
        let at = |row: &Row<'_>| row.number("complete_s").unwrap_or(f64::NAN);
        let mut from = None;
        for row in &own {
            match (row.is("via", "tcp"), from) {
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
        let longest = |rows_of: &[Row<'_>]| {
            let gaps = rows_of.iter().filter_map(|row| Some((at(row), row.number("gap_ms")?)));
            gaps.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let (x, y) = own.chunks(block).filter_map(longest).unzip();
        let controller = self.keys().into_iter().find(|(group, _)| group == flow).map_or("tpba".to_owned(), |k| k.1);
        chart.series(Series { style: Style::Points, ..Series::line(flow, controller, x, y) })
    }
}
