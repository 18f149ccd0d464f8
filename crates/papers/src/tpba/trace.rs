//! The course of one run, row by row, and its pictures.

use super::numbers;
use super::setup::{HEADER, PER_SECOND, SAMPLE, is_media};
use fairpace_lab::RunError;
use fairpace_lab::study::Job;
use fairpace_report::{Axis, BandKind, Chart, Series};
use fairpace_scenario::Record;
use fairpace_sim::FrameRecord;
use serde::{Deserialize, Serialize};

/// A flow of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct FlowRates {
    /// `flow 1`, …
    pub(super) group: String,
    /// Payload received, kbit/s, per row.
    pub(super) kbps: Vec<f64>,
}

/// The course of one run, row by row.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Trace {
    /// In order of the scenario.
    pub(super) flows: Vec<FlowRates>,
    /// The state of flow 3's controller at the end of each row.
    pub(super) states: Vec<String>,
    /// The rate that the controller allowed, kbit/s of payload.
    pub(super) allowed: Vec<f64>,
    /// Flow 3's data units: for what is computed of a run, not to be kept.
    #[serde(skip)]
    pub(super) adus: Vec<FrameRecord>,
    /// Flow 3's data that was dropped, and sent.
    pub(super) dropped: f64,
    pub(super) sent: f64,
    /// Why numbers of a run in real time are not to be trusted.
    pub(super) invalid: Vec<String>,
}

/// Runs one seed.
pub(super) fn trace(job: &Job<'_>) -> Result<Trace, RunError> {
    let s = job.scenario;
    let run = job.run(Record { series: true, ..Record::default() })?;
    let wire = s.packet_size.get().as_f64();
    let full = (wire - HEADER) / wire;
    let mut trace = Trace::default();
    for (flow, report) in run.report.flows.iter().enumerate() {
        let rows = || run.report.series.iter().filter(move |r| r.flow == flow as u32);
        let mut kbps: Vec<f64> = rows().map(|r| r.throughput.as_bps() * full / 1e3).collect();
        let media = is_media(&report.group);
        if let (true, Some(sent)) = (media, &report.media) {
            trace.states = rows().map(|r| r.state.to_owned()).collect();
            trace.allowed = rows().map(|r| r.target_rate.as_bps() * full / 1e3).collect();
            trace.adus.clone_from(&sent.frame_records);
            (trace.dropped, trace.sent) =
                (report.whole.dropped_in_all().packets.as_f64(), report.whole.sent.packets.as_f64());
            let small = s.flows.iter().any(|f| is_media(&f.group) && f.packet_size.is_some());
            if small {
                kbps = arrived(&trace.adus, kbps.len());
            }
        }
        trace.flows.push(FlowRates { group: report.group.clone(), kbps });
    }
    trace.invalid = run.summary.emulated.map_or(Vec::new(), |e| e.invalid);
    Ok(trace)
}

/// Payload of the data units that were complete in each row, kbit/s: of small ones, whose share of a packet depends on
/// the transport.
pub(super) fn arrived(adus: &[FrameRecord], rows: usize) -> Vec<f64> {
    let mut bits = vec![0.0; rows];
    for adu in adus {
        let row = adu.complete.map(|at| (u128::from(at.as_nanos().saturating_sub(1)) / SAMPLE.as_nanos()) as usize);
        if let Some(row) = row.and_then(|row| bits.get_mut(row)) {
            *row += adu.size.as_f64() * 8.0;
        }
    }
    bits.iter().map(|b| b / SAMPLE.as_secs_f64() / 1e3).collect()
}

/// A time in which flow 3's controller did one thing; rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period<'a> {
    pub(super) state: &'a str,
    pub(super) from: usize,
    pub(super) to: usize,
}

pub(super) fn periods(states: &[String]) -> Vec<Period<'_>> {
    let mut all: Vec<Period<'_>> = Vec::new();
    for (row, state) in states.iter().enumerate() {
        match all.last_mut() {
            Some(last) if last.state == *state => last.to = row + 1,
            _ => all.push(Period { state, from: row, to: row + 1 }),
        }
    }
    all
}

impl Trace {
    /// Rates over periods of so many rows, of the flows of these groups.
    pub(super) fn over(&self, per: usize, groups: &[&str]) -> Vec<Vec<f64>> {
        let lines = self.flows.iter().filter(|f| groups.contains(&f.group.as_str()));
        lines.map(|f| numbers::over(&f.kbps, per)).collect()
    }

    /// The same over S_average, of all.
    pub(super) fn each_second(&self) -> Vec<Vec<f64>> {
        self.flows.iter().map(|f| numbers::over(&f.kbps, PER_SECOND)).collect()
    }

    pub(super) fn periods(&self) -> Vec<Period<'_>> {
        periods(&self.states)
    }
}

/// As the functions of `numbers` want them.
pub(super) fn slices(rates: &[Vec<f64>]) -> Vec<&[f64]> {
    rates.iter().map(Vec::as_slice).collect()
}

/// Rates of all flows of a run against time, over periods of so many rows.
pub(super) fn rates_chart(title: impl Into<String>, caption: impl Into<String>, run: &Trace, per: usize) -> Chart {
    let axes = (Axis::new("time", "s"), Axis::new("rate of payload", "kbit/s"));
    let mut chart = Chart::new(title, axes.0, axes.1).caption(caption);
    for flow in &run.flows {
        let y = numbers::over(&flow.kbps, per);
        let x = (1..=y.len()).map(|j| (j * per) as f64 * SAMPLE.as_secs_f64()).collect();
        chart = chart.series(Series::line(name(&flow.group), flow.group.clone(), x, y));
    }
    chart
}

/// Shades the time in which flow 3 probes.
pub(super) fn shade(mut chart: Chart, run: &Trace) -> Chart {
    let at = |row: usize| row as f64 * SAMPLE.as_secs_f64();
    for p in run.periods().iter().filter(|p| p.state == "probing") {
        chart = chart.band(at(p.from), at(p.to), "TCP", BandKind::State);
    }
    chart
}

pub(super) fn name(group: &str) -> String {
    if is_media(group) { format!("{group} (media)") } else { format!("{group} (TCP)") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_rows_in_which_the_state_is_the_same() {
        let states = ["probing", "probing", "draining", "running", "running", "probing"].map(str::to_owned);
        let all = periods(&states);
        let of = |state, from, to| Period { state, from, to };
        assert_eq!(all, [of("probing", 0, 2), of("draining", 2, 3), of("running", 3, 5), of("probing", 5, 6)]);
    }
}
