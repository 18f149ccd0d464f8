//! RCS around one loss: by a link error, by congestion, by a signal loss [rcs §IV, Figs. 12, 14, 16]. One source, one
//! seed: nothing is random, so numbers have no interval.

use super::setup::RCS;
use crate::builtin::base;
use crate::claim::exact;
use crate::figure::{counted, point, table};
use crate::{Bench, Bound, Claim, Experiment, Outcome, Tools};
use fairpace_control::FlowEventKind;
use fairpace_lab::RunError;
use fairpace_lab::stats::short;
use fairpace_lab::study::{Case, Job, Measure};
use fairpace_report::{Axis, BandKind, Chart, Lane, Series, Span};
use fairpace_scenario::Record;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// The course of a run's first flow.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Trace {
    /// S(t) in packets/s: (from when, how much).
    pub(super) rate: Vec<(f64, f64)>,
    /// States: (from when, which).
    states: Vec<(f64, String)>,
    /// When losses were noticed.
    losses: Vec<f64>,
    /// (when, smoothed RTT in s).
    srtt: Vec<(f64, f64)>,
    end: f64,
}

/// The experiment's one run.
pub(super) fn trace(e: &Experiment, bench: &mut Bench<'_>) -> Result<Rc<Trace>, RunError> {
    traces(e, bench, 1)?.into_iter().next().ok_or(RunError::Interrupted)
}

/// The experiment's runs, one per seed.
pub(super) fn traces(e: &Experiment, bench: &mut Bench<'_>, seeds: usize) -> Result<Vec<Rc<Trace>>, RunError> {
    const MEASURE: Measure<Trace> = Measure { name: "rcs trace", of: watch };
    let found = counted(e, bench, MEASURE, vec![Case::new(RCS.key, 0.0, base(e))], seeds)?;
    Ok(found.runs(RCS.key, 0.0).to_vec())
}

fn watch(job: &Job<'_>) -> Result<Trace, RunError> {
    let run = job.run(Record { series: true, events: true, pcap: false })?;
    let scenario = job.scenario;
    let mut t = Trace { end: scenario.duration.get().as_secs_f64(), ..Trace::default() };
    let size = scenario.packet_size.get();
    for (_, event) in run.report.events.iter().filter(|(flow, _)| *flow == 0) {
        let at = event.at.as_secs_f64();
        match event.what {
            FlowEventKind::StateChanged { to, .. } => t.states.push((at, to.to_owned())),
            FlowEventKind::RateChanged { rate, .. } => t.rate.push((at, rate.as_packets_per_second(size))),
            FlowEventKind::Lost { .. } => t.losses.push(at),
            _ => {}
        }
    }
    let rows = run.report.series.iter().filter(|r| r.flow == 0);
    t.srtt = rows.filter_map(|r| Some((r.at.as_secs_f64(), r.srtt?.as_secs_f64()))).collect();
    Ok(t)
}

impl Trace {
    /// When a state was entered first.
    pub(super) fn first_entry(&self, state: &str) -> Option<f64> {
        self.states.iter().find(|(_, s)| *s == state).map(|(t, _)| *t)
    }

    /// How often a state was entered.
    fn entries(&self, state: &str) -> usize {
        self.states.iter().filter(|(_, s)| *s == state).count()
    }

    /// S just before `t`.
    fn before(&self, t: f64) -> Option<f64> {
        self.rate.iter().take_while(|(at, _)| *at < t - 1e-9).last().map(|(_, s)| *s)
    }

    /// S at `t`, changes at `t` included.
    fn at(&self, t: f64) -> Option<f64> {
        self.rate.iter().take_while(|(at, _)| *at <= t + 1e-9).last().map(|(_, s)| *s)
    }

    /// The smoothed RTT around `t`, in s.
    fn srtt_at(&self, t: f64) -> Option<f64> {
        self.srtt.iter().find(|(at, _)| *at >= t).or(self.srtt.last()).map(|(_, s)| *s)
    }

    /// The first time from `t` on when S is at least so much.
    fn reaches(&self, s: f64, t: f64) -> Option<f64> {
        self.rate.iter().find(|(at, rate)| *at >= t && *rate >= s).map(|(at, _)| *at)
    }

    /// The loss under study: when it was noticed, S0, S afterwards, the SRTT.
    fn loss(&self) -> Option<Loss> {
        let t0 = self.first_entry("Detected")?;
        Some(Loss { t0, s0: self.before(t0)?, halved: self.at(t0)?, srtt: self.srtt_at(t0)? })
    }
}

struct Loss {
    t0: f64,
    s0: f64,
    halved: f64,
    srtt: f64,
}

fn half_claim(e: &Experiment, loss: Option<&Loss>) -> Claim {
    e.claim("halved", "S = S0/2 in Detected", Bound::Within(0.49, 0.51), "S after the loss was noticed / S0")
        .exact(loss.map(|l| l.halved / l.s0))
}

pub(super) fn fig12(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let trace = trace(e, bench)?;
    let loss = trace.loss();
    let regained = loss.as_ref().and_then(|l| Some((trace.reaches(0.95 * l.s0, l.t0 + 1e-6)? - l.t0) / l.srtt));
    let claims = vec![
        e.claim(
            "one-loss",
            "the link loses exactly one data packet (the set-up)",
            Bound::Within(1.0, 1.0),
            "losses noticed",
        )
        .exact(trace.losses.len() as f64),
        half_claim(e, loss.as_ref()),
        e.claim("regained", "S is back to at least 0.95 S0 by t0 + 2 SRTT + 10 %", Bound::AtMost(2.2), "SRTTs from t0")
            .exact(regained),
    ];
    Ok(shown(e, &trace, loss.as_ref(), claims, "One link error costs two round trips"))
}

pub(super) fn fig14(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let trace = trace(e, bench)?;
    let loss = trace.loss();
    // The ACKs of Detected's dummies arrive up to t0 + 2 SRTT (and the queue's wait); the timed increase
    // of Steady comes there too, and is one packet per SRTT.
    let packets = |l: &Loss, s: f64| (s - l.halved) * l.srtt;
    let stays = loss.as_ref().and_then(|l| Some(packets(l, trace.at(l.t0 + 1.99 * l.srtt)?)));
    let again =
        |l: &Loss| trace.states.iter().find(|(t, s)| *s == "Detected" && *t > l.t0).map_or(trace.end, |(t, _)| *t);
    let slope = loss.as_ref().and_then(|l| {
        let (from, to) = (l.t0 + 2.5 * l.srtt, again(l).min(l.t0 + 8.5 * l.srtt) - 1e-6);
        let rise = (trace.at(to)? - trace.at(from)?) * l.srtt;
        // Whole steps only: S is a staircase.
        let steps = trace.rate.iter().filter(|(t, _)| *t > from && *t <= to).count() as f64;
        let span = ((to - from) / l.srtt).round();
        (span >= 2.0 && steps > 0.0).then_some(rise / span)
    });
    let claims = vec![
        half_claim(e, loss.as_ref()),
        e.claim(
            "dummies-raise-nothing",
            "S stays at S0/2 while the dummy ACKs come in",
            Bound::Within(-0.5, 0.5),
            "packets per SRTT gained by t0 + 1.99 SRTT",
        )
        .because(loss.as_ref().map_or(String::new(), |l| {
            let later = trace.at(l.t0 + 1.99 * l.srtt).map_or("–".to_owned(), short);
            format!(
                "S was {} packets/s in Detected and {later} at t0 + 1.99 SRTT, of {} s each",
                short(l.halved),
                short(l.srtt)
            )
        }))
        .exact(stays),
        e.claim(
            "one-packet-per-srtt",
            "then S grows by one packet per SRTT each SRTT",
            Bound::Within(0.8, 1.2),
            "packets per SRTT gained per SRTT, from t0 + 2.5 SRTT on",
        )
        .exact(slope),
    ];
    Ok(shown(e, &trace, loss.as_ref(), claims, "Congestion: RCS starts over at half, like TCP"))
}

pub(super) fn fig16(e: &Experiment, bench: &mut Bench<'_>, _: &mut Tools<'_>) -> Result<Outcome, RunError> {
    let trace = trace(e, bench)?;
    let loss = trace.loss();
    let back = trace.states.iter().position(|(_, s)| *s == "Backoff");
    // The first ACK is what ends Backoff.
    let first_ack = back.and_then(|i| trace.states.get(i + 1)).filter(|(_, s)| *s == "Steady").map(|(t, _)| *t);
    let regained =
        loss.as_ref().zip(first_ack).and_then(|(l, ack)| Some((trace.reaches(0.95 * l.s0, ack)? - ack) / l.srtt));
    let peak = loss.as_ref().zip(first_ack).map(|(l, ack)| {
        let after = trace.rate.iter().filter(|(t, _)| *t >= ack && *t <= ack + 1.5 * l.srtt);
        after.map(|(_, s)| *s).fold(0.0, f64::max) / l.s0
    });
    let halvings = trace.rate.windows(2).filter(|w| matches!(w, [(_, a), (_, b)] if *b < 0.75 * *a)).count();
    let claims = vec![
        half_claim(e, loss.as_ref()),
        e.claim("one-halving", "S is halved exactly once", Bound::Within(1.0, 1.0), "halvings in the whole run")
            .exact(halvings as f64),
        e.claim("backoff", "Backoff is entered", Bound::Within(1.0, 1.0), "times that Backoff was entered")
            .exact(trace.entries("Backoff") as f64),
        e.claim(
            "regained",
            "S0 is regained about one SRTT after the first ACK (ours: 0.95 S0 after 0.8 to 1.2 SRTT)",
            Bound::Within(0.8, 1.2),
            "SRTTs from the first ACK",
        )
        .exact(regained),
        e.claim(
            "no-overshoot",
            "it is S0 that is resumed (ours: S is at most 1.1 S0 in the 1.5 SRTT after the first ACK)",
            Bound::Within(0.95, 1.1),
            "the highest S in that time / S0",
        )
        .exact(peak),
    ];
    Ok(shown(e, &trace, loss.as_ref(), claims, "A signal loss costs one halving, and S comes back at once"))
}

fn shown(e: &Experiment, trace: &Trace, loss: Option<&Loss>, claims: Vec<Claim>, title: &str) -> Outcome {
    let scenario = base(e);
    let caption = format!("{}, seed {}", e.file, scenario.seed.get());
    // A window of ten SRTT around the loss.
    let (from, to) =
        loss.map_or((0.0, trace.end), |l| ((l.t0 - 3.0 * l.srtt).max(0.0), (l.t0 + 8.0 * l.srtt).min(trace.end)));
    let around = || trace.rate.iter().filter(|(t, _)| *t >= from && *t <= to);
    let mut x = vec![from];
    let mut y = vec![trace.at(from).unwrap_or(0.0)];
    for (t, s) in around() {
        x.push(*t);
        y.push(*s);
    }
    x.push(to);
    y.push(trace.at(to).unwrap_or(0.0));
    let axis = || Axis::new("time", "s").range(from, to);
    let mut chart = Chart::new(title, axis(), Axis::new("S(t)", "packets/s"))
        .caption(&caption)
        .series(Series::stepped("RCS", RCS.key, x, y));
    if let Some(l) = loss {
        chart = chart.series(Series::line("S0", "reference", vec![from, to], vec![l.s0, l.s0]).reference());
        chart =
            chart.series(Series::line("S0/2", "reference", vec![from, to], vec![l.s0 / 2.0, l.s0 / 2.0]).reference());
    }
    for outage in &scenario.path.outages {
        let start = outage.start.get().as_secs_f64();
        let end = start + outage.length.get().as_secs_f64();
        if end > from && start < to {
            chart = chart.band(start.max(from), end.min(to), "no signal", BandKind::Outage);
        }
    }
    let mut spans = Vec::new();
    for (i, (t, state)) in trace.states.iter().enumerate() {
        let until = trace.states.get(i + 1).map_or(trace.end, |(t, _)| *t);
        if until > from && *t < to {
            spans.push(Span { from: t.max(from), to: until.min(to), label: state.clone() });
        }
    }
    let lanes = Chart::new("States", axis(), Axis::default()).caption(&caption).lane(Lane {
        name: "RCS".to_owned(),
        colour: RCS.key.to_owned(),
        spans,
    });
    let mut table = table("S(t) around the loss", caption, ["time (s)", "S (packets/s)", "S / S0"], []);
    for (t, s) in around() {
        let relative = loss.map_or("–".to_owned(), |l| short(s / l.s0));
        table.rows.push(vec![format!("{t:.3}"), short(*s), relative]);
    }
    let points = loss.map_or(Vec::new(), |l| {
        let numbers = [("s0_pps", l.s0), ("s_detected_pps", l.halved), ("srtt_s", l.srtt)];
        numbers.iter().filter_map(|(metric, value)| point(RCS.key, &[("t0_s", l.t0)], *metric, exact(*value))).collect()
    });
    let section = e.section().chart(chart).chart(lanes).table(table).synced();
    e.outcome(points, claims, section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effort, lossy, rcs, reproduce, select};
    use fairpace_lab::Hooks;

    #[test]
    fn the_trace_figures_run_and_their_claims_are_decided() {
        let chosen = select(&["rcs.fig12".to_owned(), "rcs.fig14".to_owned(), "rcs.fig16".to_owned()]).unwrap();
        let all =
            reproduce(&chosen, Effort::Usual, &crate::Asked::Default, &mut Tools::default(), &Hooks::default(), |_| ())
                .unwrap();
        assert_eq!(all.outcomes.len(), 3);
        for outcome in &all.outcomes {
            for claim in &outcome.claims {
                assert!(claim.holds, "{}", claim.line());
            }
            assert!(!outcome.section.charts.is_empty());
            let json = serde_json::to_value(outcome).unwrap();
            let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["experiment", "points", "claims", "reading"]);
            let point = &json["points"][0];
            assert!(point["scheme"] == "rcs" && point["x"]["t0_s"].is_number() && point["mean"].is_number());
        }
    }

    #[test]
    fn without_a_real_encoder_figs_7_to_9_are_reported_as_not_run() {
        let chosen = select(&["rcs.fig7-9".to_owned()]).unwrap();
        let all =
            reproduce(&chosen, Effort::Usual, &crate::Asked::Default, &mut Tools::default(), &Hooks::default(), |_| ())
                .unwrap();
        let why = all.outcomes[0].not_run.as_deref().unwrap();
        assert_eq!(why, "it needs a real encoder; build with the `gst` feature");
        assert!(all.outcomes[0].claims.is_empty());
        assert!(all.page().to_html().contains("was not run"));
    }

    #[test]
    fn an_encoder_that_does_as_it_is_told_meets_the_means_and_one_that_doubles_does_not() {
        let id = ["rcs.fig7-9".to_owned()];
        let with = |factor: f64| {
            let encode = move |_: crate::Encoder,
                               _: crate::Footage,
                               rates: &[(fairpace_units::Instant, fairpace_units::Rate)],
                               length: fairpace_units::Duration| {
                let step = fairpace_units::Duration::from_millis(40);
                let pictures = length.as_millis() / 40;
                Ok((0..pictures as u32)
                    .map(|i| {
                        let at = fairpace_units::Instant::ZERO + step * i;
                        let rate = rates.iter().take_while(|(t, _)| *t <= at).last().map_or(rates[0].1, |r| r.1);
                        (at, rate * factor * step)
                    })
                    .collect())
            };
            let mut tools = Tools {
                encoder: Some(Box::new(encode)),
                clip_name: "a test".to_owned(),
                frame_interval: fairpace_units::Duration::from_millis(40),
                ..Tools::default()
            };
            let all = reproduce(
                &select(&id).unwrap(),
                Effort::Usual,
                &crate::Asked::Default,
                &mut tools,
                &Hooks::default(),
                |_| (),
            )
            .unwrap();
            all.outcomes.into_iter().next().unwrap()
        };
        let (obedient, double) = (with(1.0), with(2.0));
        let claim = |o: &Outcome, name: &str| o.claims.iter().find(|c| c.id.ends_with(name)).unwrap().clone();
        assert!(claim(&obedient, "means-meet").holds, "{:?}", obedient.claims);
        assert!(!claim(&obedient, "delay-16mbit").holds, "an obedient encoder fills no buffer: {:?}", obedient.claims);
        // Twice S(t) fills 16 Mbit within a minute at 0.3 Mbit/s and more; then 16 Mbit / S is the delay, tens of seconds. Only an S
        // below 533 kbit/s makes them more than 30.
        assert!(!claim(&double, "means-meet").holds, "{:?}", double.claims);
        assert!(claim(&double, "delay-16mbit").measured.unwrap() > 20.0, "{:?}", double.claims);
        // At one rate, the mean of S(t), what is obedient fills the buffer; twice that is too much either way.
        assert!(claim(&obedient, "one-rate-delays-more").holds, "{:?}", obedient.claims);
        assert!(claim(&double, "one-rate-delays-more").measured.unwrap() < 2.0, "{:?}", double.claims);
        for outcome in [&obedient, &double] {
            assert!(claim(outcome, "no-buffer-no-delay").holds);
        }
    }

    #[test]
    fn ids_select_one_a_family_or_a_paper_and_a_wrong_one_is_named() {
        let ids = |id: &str| select(&[id.to_owned()]).unwrap().iter().map(|e| e.id).collect::<Vec<_>>();
        assert_eq!(ids("rcs").len(), rcs::EXPERIMENTS.len());
        assert_eq!(ids("lossy").len(), lossy::EXPERIMENTS.len());
        assert_eq!(ids("rcs.fig17"), ["rcs.fig17a", "rcs.fig17b", "rcs.fig17c", "rcs.fig17d"]);
        assert_eq!(ids("rcs.fig20"), ["rcs.fig20"]);
        assert_eq!(ids("all").len(), crate::experiments().count());
        let error = select(&["rcs.fig71a".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "`rcs.fig71a` is not an experiment");
        assert_eq!(error.hint(), "did you mean `rcs.fig17a`? `fairpace list experiments` shows all");
    }
}
