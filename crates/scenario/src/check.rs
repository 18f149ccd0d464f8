//! The checks of a scenario beyond the form of its fields, each refusal with its field.
//!
//! The rule behind many of them: a field that would have no effect is an error, not a silence.

mod fill;
mod flows;
mod hops;

use super::files::{Files, reason};
use super::forms::SENDING_RATES;
use super::locate::Locator;
use super::memory;
use super::part::PartProblem;
use super::satellite::SatelliteSpec;
use super::table::written;
use super::wireless::WirelessSpec;
use super::{
    Capacity, FlowSpec, LossSpec, Parameter, Problem, QueueSpec, RateStep, RawScenario, SCENARIO, ScenarioError,
    ScenarioWarning, TraceFormat, TraceGaps, TraceSpec,
};
use crate::controllers::{self, Family};
use fairpace_control::feedback::Form;
use fairpace_path::{Gaps, Trace};
use fairpace_units::Bytes;
use std::sync::Arc;

/// The most flows of one scenario, all counts together.
const MAX_FLOWS: u64 = 100_000;
/// The most flows that come and go in one run, on average.
const MAX_ARRIVALS: f64 = 200_000.0;
/// The most rows of one run's time series: about a gigabyte in memory.
const MAX_ROWS: u128 = 10_000_000;
/// The longest trace file that is read.
const MAX_TRACE: u64 = 64 << 20;
/// TFRC's parameter: how long it waits for the first feedback.
const FIRST_TIMER: &str = "first_timer";

/// Who checks, and where the text is.
struct Checker<'a> {
    file: &'a str,
    locator: &'a Locator,
    packet_size: Bytes,
}

/// Whether a scenario must have flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flows {
    /// To be run: at least one.
    Needed,
    /// For real packets that come from outside: as many as it has.
    AsGiven,
}

type Checked = Result<(), ScenarioError>;

/// Checks everything, fills in what is implied, and reads the recordings that were not read before. The result is the
/// oddities with which the scenario may be run.
pub(super) fn check(
    scenario: &mut RawScenario,
    files: &mut Files,
    file: &str,
    locator: &Locator,
    flows: Flows,
) -> Result<Vec<ScenarioWarning>, ScenarioError> {
    let c = Checker { file, locator, packet_size: scenario.packet_size.get() };
    c.whole(scenario, files, flows)?;
    Ok(c.warnings(scenario))
}

impl Checker<'_> {
    fn whole(&self, scenario: &mut RawScenario, files: &mut Files, flows: Flows) -> Checked {
        if let Some(problem) = SCENARIO.problem(&written(&*scenario)) {
            return self.refuse(problem);
        }
        self.times(scenario)?;
        if !scenario.hop.is_empty() {
            self.hops(scenario)?;
        } else if scenario.satellite.is_none() {
            self.links(scenario, "path", &scenario.path)?;
            self.trace(scenario, files)?;
        }
        if let Some(satellite) = &scenario.satellite {
            self.satellite(scenario, satellite)?;
        }
        if let Some(wireless) = &scenario.wireless {
            self.wireless(scenario, wireless)?;
        }
        if scenario.flows.is_empty() && flows == Flows::Needed {
            let allowed = "a scenario needs at least one `[[flows]]` with a `controller`".to_owned();
            let problem = if self.locator.has("flows") {
                Problem::Empty { field: "flows".into(), allowed }
            } else {
                Problem::Missing { field: "flows".into(), allowed }
            };
            return Err(self.at("flows", problem));
        }
        let mut total = 0;
        let mut arrivals = 0.0;
        for index in 0..scenario.flows.len() {
            fill::names(scenario, index);
            fill::preset(&mut scenario.flows[index]);
            self.flow(scenario, index)?;
            let flow = &scenario.flows[index];
            if let Some((interval, length)) =
                flow.arrivals.as_ref().and_then(|a| Some((a.interval.as_ref()?, a.length.as_ref()?)))
            {
                let [interval_s, length_s] = [interval, length].map(|t| t.get().as_secs_f64());
                arrivals += scenario.duration.get().as_secs_f64() / interval_s;
                if arrivals > MAX_ARRIVALS {
                    let wrong = format!("makes about {arrivals:.0} flows in all");
                    let allowed = format!("a longer interval: at most {MAX_ARRIVALS} flows");
                    return self.bad(format!("flows[{index}].arrivals.interval"), interval.text(), wrong, allowed);
                }
                // Rows are written for the flows that go on at a time.
                total += (length_s / interval_s).ceil() as u64;
            } else {
                total += flow.count.get();
                if total > MAX_FLOWS {
                    let found = flow.count.get().to_string();
                    let wrong = format!("makes {total} flows in all");
                    return self.bad(
                        format!("flows[{index}].count"),
                        found,
                        wrong,
                        format!("at most {MAX_FLOWS} flows"),
                    );
                }
            }
        }
        self.buffers(scenario)?;
        let rows = scenario.duration.get().as_nanos() / scenario.sample.get().as_nanos() * u128::from(total);
        if rows > MAX_ROWS {
            let wrong = format!("makes {rows} rows for {total} flows");
            return self.bad(
                "sample",
                scenario.sample.text(),
                wrong,
                format!("a longer interval: at most {MAX_ROWS} rows"),
            );
        }
        let needed = memory::needed(scenario, rows);
        let refusal = memory::available(needed).and_then(|available| memory::refusal(total, needed, available));
        if let Some((wrong, allowed)) = refusal {
            return self.bad("flows", format!("{total} flows"), wrong, allowed);
        }
        Ok(())
    }

    fn at(&self, field: &str, problem: Problem) -> ScenarioError {
        ScenarioError { file: self.file.to_owned(), line: self.locator.line_of(field), problem: Box::new(problem) }
    }

    fn bad(
        &self,
        field: impl Into<String>,
        found: impl Into<String>,
        wrong: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Checked {
        let field = field.into();
        let problem = Problem::BadValue {
            field: field.clone(),
            found: found.into(),
            wrong: wrong.into(),
            allowed: allowed.into(),
        };
        Err(self.at(&field, problem))
    }

    fn conflict(&self, field: impl Into<String>, wrong: impl Into<String>, remedy: impl Into<String>) -> Checked {
        let field = field.into();
        Err(self.at(&field, Problem::Conflict { field: field.clone(), wrong: wrong.into(), remedy: remedy.into() }))
    }

    fn missing(&self, field: impl Into<String>, allowed: impl Into<String>) -> Checked {
        let field = field.into();
        Err(self.at(&field, Problem::Missing { field: field.clone(), allowed: allowed.into() }))
    }

    fn times(&self, s: &RawScenario) -> Checked {
        let (duration, warmup, sample) = (s.duration.get(), s.warmup.get(), s.sample.get());
        if warmup >= duration {
            let wrong = format!("leaves nothing of the duration of `{}` to measure", s.duration);
            return self.bad("warmup", s.warmup.text(), wrong, "shorter than `duration`");
        }
        if sample > duration {
            return self.bad("sample", s.sample.text(), "is out of range", "from 1 ms to the `duration`");
        }
        if duration.as_nanos() / sample.as_nanos() > 1_000_000 {
            return self.bad("sample", s.sample.text(), "makes more than a million rows per flow", "a longer interval");
        }
        Ok(())
    }

    fn satellite(&self, scenario: &RawScenario, s: &SatelliteSpec) -> Checked {
        if scenario.hop.is_empty() && (self.locator.has("path") || !scenario.path.is_absent()) {
            return self.conflict(
                "path",
                "stands beside `satellite`, and both say what the flows cross",
                "keep one of them",
            );
        }
        self.part("satellite", s.problem(self.packet_size))?;
        if let Some((key, has, needs)) = s.quick_start.without_effect() {
            let wrong = format!("has no effect with {has}");
            let remedy = format!("write `{needs}`, or leave `{key}` out");
            return self.conflict(format!("satellite.quick_start.{key}"), wrong, remedy);
        }
        Ok(())
    }

    fn wireless(&self, s: &RawScenario, w: &WirelessSpec) -> Checked {
        if s.satellite.is_some() && s.hop.is_empty() {
            let wrong = "stands beside `satellite`, and is the last hop behind a `[path]`";
            let remedy = "keep one of them, or say their order: a `[[hop]]` of each `kind`";
            return self.conflict("wireless", wrong, remedy);
        }
        self.part("wireless", w.problem(self.packet_size))?;
        if let Some(uplink) = &w.uplink {
            self.capacity("wireless.uplink.rate", &uplink.rate)?;
            self.queue("wireless.uplink", &uplink.queue, Some(&uplink.rate))?;
            self.loss("wireless.uplink.loss", &uplink.loss)?;
        }
        Ok(())
    }

    /// Buffers that the base station's plan would overwrite.
    fn buffers(&self, s: &RawScenario) -> Checked {
        let Some(w) = s.wireless.as_ref().filter(|w| w.plan.is_some()) else { return Ok(()) };
        let mut first = 0;
        let default = [crate::WirelessUser::default()];
        let users = if w.users.is_empty() { &default[..] } else { &w.users[..] };
        for (i, user) in users.iter().enumerate() {
            let own = first..first + user.count.get();
            first = own.end;
            let (key, room) = match &user.buffer {
                Some(room) => (format!("wireless.users[{i}].buffer"), room),
                None => ("wireless.buffer".to_owned(), &w.buffer),
            };
            if room.get() == fairpace_path::Capacity::Unlimited {
                continue;
            }
            let here = |f: &&FlowSpec| f.user.is_some_and(|u| own.contains(&u.get()));
            if let Some(flow) = s.flows.iter().filter(here).find(|f| self.has_rwnd(s, f)) {
                let wrong = format!(
                    "stands beside `plan`, which sets it to the windows of `{}` and those beside it",
                    flow.name
                );
                return self.conflict(key, wrong, "keep one of them");
            }
        }
        Ok(())
    }

    /// Whether a flow's receiver can advertise a window.
    fn has_rwnd(&self, s: &RawScenario, flow: &FlowSpec) -> bool {
        controllers::family(&flow.controller) == Some(Family::Media)
            && controllers::build(s, flow).is_ok_and(|c| c.feedback_form() == Form::SackVector)
    }

    fn capacity(&self, field: &str, rate: &Capacity) -> Checked {
        match rate {
            Capacity::Unlimited | Capacity::Fixed(_) => Ok(()),
            Capacity::Steps(steps) => {
                let Some(first) = steps.first() else {
                    let allowed = "write at least `[{ at = \"0 s\", rate = \"2 Mbit/s\" }]`".to_owned();
                    return Err(self.at(field, Problem::Empty { field: field.to_owned(), allowed }));
                };
                if !first.at.get().is_zero() {
                    return self.bad(
                        format!("{field}[0].at"),
                        first.at.text(),
                        "is not the beginning",
                        "the first step is at `0 s`",
                    );
                }
                for (i, pair) in steps.windows(2).enumerate() {
                    if let [before, after] = pair
                        && after.at.get() <= before.at.get()
                    {
                        let wrong = format!("is not after the step before it at `{}`", before.at);
                        return self.bad(
                            format!("{field}[{}].at", i + 1),
                            after.at.text(),
                            wrong,
                            "steps in rising order",
                        );
                    }
                }
                let passes = |step: &RateStep| SENDING_RATES.contain(step.rate.get().with_packets_of(self.packet_size));
                if !steps.iter().any(passes) {
                    return self.bad(
                        format!("{field}[0].rate"),
                        first.rate.text(),
                        "passes nothing, like every step",
                        format!("{SENDING_RATES} in one of them"),
                    );
                }
                Ok(())
            }
        }
    }

    /// The queue of the link `link`, with its rate if it has no recording.
    fn queue(&self, link: &str, queue: &QueueSpec, rate: Option<&Capacity>) -> Checked {
        let size = &self.packet_size;
        let field = format!("{link}.queue");
        self.part(&field, queue.problem(size))?;
        if matches!(rate, Some(Capacity::Unlimited)) && queue.resolved(size) != QueueSpec::default().resolved(size) {
            let remedy = format!("give `{link}` a `rate`, or leave `queue` out");
            return self.conflict(field, "has no effect on a link without rate limit, where nobody waits", remedy);
        }
        Ok(())
    }

    fn loss(&self, field: &str, loss: &LossSpec) -> Checked {
        self.part(field, loss.problem(&()))
    }

    /// The fault of a part of a link, with the field where it stands.
    fn part(&self, field: &str, problem: Option<PartProblem>) -> Checked {
        problem.map_or(Ok(()), |problem| self.refuse(problem.below(field)))
    }

    fn refuse(&self, problem: PartProblem) -> Checked {
        match problem {
            PartProblem::NoEffect(field, with, remedy) => {
                self.conflict(field, format!("has no effect with {with}"), remedy)
            }
            PartProblem::Missing(field, allowed) => self.missing(field, allowed),
            PartProblem::Bad(field, found, wrong, allowed) => self.bad(field, found, wrong, allowed),
        }
    }

    fn trace(&self, s: &RawScenario, files: &mut Files) -> Checked {
        let Some(spec) = &s.path.trace else { return Ok(()) };
        if files.recording(spec).is_none() {
            let trace = self.read_trace(&files.folder, spec)?;
            files.traces.push((spec.clone(), Arc::new(trace)));
        }
        Ok(())
    }

    fn read_trace(&self, folder: &std::path::Path, spec: &TraceSpec) -> Result<Trace, ScenarioError> {
        let field = "path.trace.file";
        let path = folder.join(&spec.file);
        let bad_file = |reason: String| {
            let problem = Problem::BadFile { field: field.to_owned(), path: path.display().to_string(), reason };
            self.at(field, problem)
        };
        let csv = spec.format() == TraceFormat::Csv;
        if csv && spec.column.is_none() {
            self.missing("path.trace.column", "name the column with the rate, such as `column = \"down_mbps\"`")?;
        }
        for (name, given) in [("column", spec.column.is_some()), ("gaps", spec.gaps.is_some())] {
            if !csv && given {
                let wrong = "has no effect on a mahimahi recording, which is no table";
                self.conflict(format!("path.trace.{name}"), wrong, "leave it out, or write `format = \"csv\"`")?;
            }
        }
        let about = std::fs::metadata(&path).map_err(|e| bad_file(format!("cannot be read: {}", reason(&e))))?;
        if !about.is_file() || about.len() > MAX_TRACE {
            return Err(bad_file("is not a regular file of at most 64 MiB".to_owned()));
        }
        let bytes = std::fs::read(&path).map_err(|e| bad_file(format!("cannot be read: {}", reason(&e))))?;
        let text = String::from_utf8(bytes).map_err(|_| bad_file("is not UTF-8 text".to_owned()))?;
        let gaps = match spec.gaps.unwrap_or_default() {
            TraceGaps::Hold => Gaps::Hold,
            TraceGaps::Zero => Gaps::Zero,
            TraceGaps::Cut => Gaps::Cut,
        };
        let parsed = match &spec.column {
            Some(column) if csv => Trace::parse_csv(&text, column, gaps),
            _ => Trace::parse_mahimahi(&text),
        };
        parsed.map_err(|e| bad_file(format!("is not such a recording: {e}")))
    }

    /// Requests that are held back for so long that their senders give up [qsd §3.5].
    fn warnings(&self, s: &RawScenario) -> Vec<ScenarioWarning> {
        let Some(satellite) = &s.satellite else { return Vec::new() };
        let spec = satellite.dama(self.packet_size);
        let field = "satellite.quick_start.hold";
        let asking = s.flows.iter().filter(|f| f.quick_start.is_some());
        let late = asking.filter_map(|flow| {
            let default = || controllers::defaults(flow).find(|(name, _)| name == FIRST_TIMER).map(|(_, text)| text);
            let timer = flow.parameters.get(FIRST_TIMER).map(Parameter::text).or_else(default)?;
            let timer = fairpace_units::parse_duration(&timer).ok()?;
            let w = spec.quick_start.hold_warning(spec.mean_rtt(), timer)?;
            let [hold, first_rtt, timer, longest] =
                [w.hold, w.first_rtt, w.timer, w.longest].map(|d| (d.as_secs_f64() * 1e3).floor());
            let first_rtt = first_rtt + 1.0;
            Some(ScenarioWarning {
                file: self.file.to_owned(),
                line: self.locator.line_of(field),
                text: format!(
                    "`{field}` (T_q) is {hold} ms, which makes the first round trip of `{}` {first_rtt} ms: its no-feedback \
                     timer of {timer} ms expires before the answer is there, and halves its rate; with at most {longest} \
                     ms it would not, nor with a `{FIRST_TIMER}` above {first_rtt} ms",
                    flow.name
                ),
            })
        });
        late.collect()
    }
}
