//! The fluid model beside the simulation of packets [qsd §3.5, Fig. 7].

use super::frame::Frame;
use super::phases::{SWEEP, over_phases, peaks, summits};
use super::setup::{Strategy, dama, satellite};
use super::spread::{Curve, MEDIAN, Spread, T_Q, curves_chart, curves_table, steps};
use crate::builtin::{base, kbps, with};
use crate::{Bench, Bound, Experiment, Outcome, Tools};
use fairpace_analysis::fluid::{self, Flow, Link};
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_report::{Axis, Chart, Series};
use fairpace_scenario::Scenario;
use fairpace_units::{Duration, QsRate, Rate};

/// T_q of Fig. 7.
const FIG7_MS: f64 = 400.0;
/// How many T_q from 0 to T_q,max are compared.
const STEPS: usize = 9;
/// How far the chart goes, s.
const SHOWN: f64 = 8.0;
/// How near the model must come.
const NEAR: f64 = 0.1;
/// The compared settings: a frame and its granularity, kbit/s. In the large frame 44 kbit/s is a slot in each
/// multi-frame, as RTT_m = T_f + 2 T_p supposes; in the small frame 264 kbit/s is.
const COMPARED: [(Frame, f64); 3] = [(Frame::Large, 44.0), (Frame::Small, 264.0), (Frame::Small, 44.0)];

/// The link and the flow of a scenario, for the model; none if it cannot say anything of them.
fn model(scenario: &Scenario) -> Option<(Link, Flow)> {
    let link = Link::try_from(&dama(scenario)).ok()?;
    let flow = scenario.flows.first()?;
    let packet = scenario.packet_size.get();
    let rate = |speed: &fairpace_scenario::Speed| speed.get().with_packets_of(packet);
    let quick_start = QsRate::at_least(rate(&flow.quick_start.as_ref()?.rate))?;
    let flow = Flow { rate: rate(flow.source.as_ref()?.rate.as_ref()?), packet, quick_start };
    link.check(&flow).ok().map(|()| (link, flow))
}

pub(super) fn fig7(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let (mut claims, mut points) = (Vec::new(), Vec::new());
    let mut section = e.section().text(
        "The model knows neither packets nor slots; its equations are its own (docs/fluid.md). What is compared is the \
         greatest end-to-end delay, median over the phases."
            .to_owned(),
    );
    if let Some(chart) = curves(e, bench)? {
        section = section.chart(chart);
    }
    for (frame, unit) in COMPARED {
        let set = |t_q: f64| {
            with(&base(e), |s| {
                frame.set(s);
                satellite(s).granularity = kbps(unit);
                Strategy::Qsd(t_q).set(s);
            })
        };
        let max = frame.t_q().1;
        let holds = steps(max, STEPS);
        let scenarios: Vec<Scenario> = holds.iter().map(|t_q| set(*t_q)).collect();
        let all = summits(e, &scenarios, SWEEP, bench)?;
        let modelled = holds.iter().zip(&scenarios).map(|(t_q, s)| (*t_q, modelled(s, *t_q))).collect();
        let measured = holds.into_iter().zip(all.iter().map(|s| peaks(s))).collect();
        let fluid = Curve { name: "fluid model".to_owned(), colour: "reference", at: modelled };
        let packets = Curve { name: "packets".to_owned(), colour: "qsd-opt", at: measured };
        let offs: Vec<f64> = fluid.medians().iter().zip(packets.medians()).map(|(m, p)| m / p - 1.0).collect();
        let worst = offs.iter().copied().fold(f64::NAN, |w: f64, x| if w.abs() >= x.abs() { w } else { x });
        let words = format!("{} frame, units of {unit} kbit/s", frame.key());
        let statement = format!(
            "the model's greatest delay is within 10 % of the packets' at every T_q from 0 to {} ms, {words}",
            short(max)
        );
        let what = "model / packets - 1 of the medians over the phases, the T_q at which it is farthest from 0";
        let mut claim = e.claim(format!("fluid-{}-{unit}", frame.key()), statement, Bound::Within(-NEAR, NEAR), what);
        if (frame, unit) == (Frame::Small, 44.0) {
            claim = claim.because(format!("{SLOTS} {} % at T_q = 0", short(offs[0] * 100.0)));
        }
        claims.push(claim.exact(worst));
        let shared = [("slots_per_multi_frame", frame.slots()), ("unit_kbps", unit)];
        for (scheme, curve) in [("fluid", &fluid), ("packets", &packets)] {
            points.extend(curve.points(scheme, &T_Q, &shared, &[("e2ed_peak_median_s", MEDIAN)]));
        }
        let title = format!("The model is at most {} % off: {words}", short(worst.abs() * 100.0));
        let caption = format!("{}; medians over the phases, bars from the least to the greatest", e.file);
        let both = [fluid, packets];
        let numbers = format!("{}; s, median over the phases (least to greatest)", e.file);
        let mut table = curves_table(format!("Greatest delay against T_q, {words}"), numbers, &T_Q, &both);
        table.head.push("model / packets - 1".to_owned());
        table.rows.iter_mut().zip(offs).for_each(|(row, off)| row.push(short(off)));
        section = section.chart(curves_chart(title, caption, &T_Q, "greatest end-to-end delay", &both)).table(table);
    }
    Ok(e.outcome(points, claims, section))
}

/// The greatest delay of the model over the phases.
fn modelled(scenario: &Scenario, t_q_ms: f64) -> Option<Spread> {
    let (link, flow) = model(scenario)?;
    let hold = Duration::from_secs_f64(t_q_ms / 1e3);
    let of = fluid::summary(&link, &flow, fluid::Strategy::Qsd(hold)).max;
    let n = fluid::phases(&link).count();
    Some(Spread { median: of.median, least: of.best, greatest: of.worst, middle: [of.best, of.worst], n })
}

const SLOTS: &str = "The model knows no slots for which a packet waits, and its RTT is RTT_m + T_q: it is off by";

/// Fig. 7: the four curves of the model, and where the packets were, in the middle phase.
fn curves(e: &Experiment, bench: &mut Bench<'_>) -> Result<Option<Chart>, RunError> {
    let scenario = with(&base(e), |s| Strategy::Qsd(FIG7_MS).set(s));
    let all = over_phases(e, std::slice::from_ref(&scenario), bench)?;
    let Some((link, flow)) = model(&scenario) else { return Ok(None) };
    let Some(flows) = all.first().map(|p| &p.flows) else { return Ok(None) };
    let i = flows.len() / 2;
    let Some(packets) = flows.get(i) else { return Ok(None) };
    let phase = link.t_b.mul_f64(i as f64 / flows.len() as f64);
    let run = fluid::run(&link, &flow, fluid::Strategy::Qsd(Duration::from_secs_f64(FIG7_MS / 1e3)), phase);
    let title =
        "T_q = 400 ms: what the application made, what TFRC sent, what left the uplink queue, what was received";
    let mut chart =
        Chart::new(title, Axis::new("time since the flow's start", "s").range(0.0, SHOWN), Axis::new("data", "kbit"))
            .caption(format!(
                "{}; phase {} ms; lines: fluid model; dashed: packets",
                e.file,
                short(phase.as_secs_f64() * 1e3)
            ));
    let named = [
        ("generator", "no-qs", &run.generator),
        ("out of TFRC's buffer", "qsd-opt", &run.sent),
        ("out of the uplink queue", "qsd-0", &run.uplink),
        ("received", "qsd-max", &run.receiver),
    ];
    for (name, colour, curve) in named {
        let shown = curve.corners().iter().filter(|c| c.0 <= SHOWN);
        let (mut x, mut y): (Vec<f64>, Vec<f64>) = shown.map(|c| (c.0, c.1 / 1e3)).unzip();
        x.push(SHOWN);
        y.push(curve.bits_at(SHOWN) / 1e3);
        chart = chart.series(Series::line(name, colour, x, y));
    }
    let size = Rate::bps(flow.packet.as_f64() * 8.0).as_bps() / 1e3;
    let sent: Vec<f64> = packets.iter().map(|p| p.sent).collect();
    let received: Vec<f64> = packets.iter().map(|p| p.received).collect();
    for (name, times) in [("packets: sent", sent), ("packets: received", received)] {
        let shown = times.into_iter().enumerate().filter(|(_, at)| *at <= SHOWN);
        let (x, y): (Vec<f64>, Vec<f64>) = shown.map(|(n, at)| (at, (n + 1) as f64 * size)).unzip();
        chart = chart.series(Series::line(name, "reference", x, y).reference());
    }
    Ok(Some(chart))
}
