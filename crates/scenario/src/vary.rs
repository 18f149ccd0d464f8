//! The same scenario with other values in some of its fields: what a sweep runs.
//!
//! A field is named by its path in the file: `path.loss.p`, `flows[2].start`. A flow or a hop may be named instead of
//! counted: `flow.video.controller`, `hop.sat.link.rate`; `*` is all of them. A value is text as in a scenario, without its
//! quotes: `10 Mbit/s`, `0.001`, `true`; what begins with `{` or `[` is TOML.

use crate::controllers;
use crate::error::{Problem, ScenarioError};
use crate::param::Form;
use crate::raw::{RawScenario, SCENARIO};
use crate::reading::problem_of;
use crate::scenario::Scenario;
use crate::table::written;
use crate::variant::replace_controller;
use serde::Deserialize as _;
use serde_json::{Map, Value as Json};

/// A field of a scenario, by its path.
///
/// ```
/// use fairpace_scenario::{FieldPath, Scenario};
/// let text = "[path]\nrate = \"10 Mbit/s\"\n[[flows]]\nname = \"video\"\ncontroller = \"rcs\"\n";
/// let scenario = Scenario::parse(text, "geo.toml")?;
/// let [rate, controller] = [FieldPath::parse("path.rate")?, FieldPath::parse("flow.video.controller")?];
/// let varied = scenario.with_values([(&rate, "2 Mbit/s"), (&controller, "tfrc")])?;
/// assert_eq!(varied.flows[0].controller, "tfrc");
/// let wrong = scenario.with_values([(&FieldPath::parse("path.rat")?, "1")]).unwrap_err();
/// assert_eq!(wrong.to_string(), "geo: `path.rat` is not a field");
/// assert!(wrong.hint().unwrap().starts_with("did you mean `rate`?"));
/// # Ok::<(), fairpace_scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The field of a table, or the name of a flow or a hop.
    Key(String),
    /// One of a list, from 0.
    Item(usize),
}

/// All flows, or all hops.
const ALL: &str = "*";

impl FieldPath {
    /// Reads a path.
    ///
    /// # Errors
    /// The text is no path; or the path of what a sweep does not vary: `seed`, which has its own place, names, and groups.
    pub fn parse(text: &str) -> Result<FieldPath, ScenarioError> {
        let text = text.trim();
        let allowed =
            || "write the path of a field, as in `path.loss.p`, `flow.NAME.controller` or `flows[0].start`".to_owned();
        let refuse = |wrong: &str, allowed: String| ScenarioError {
            file: if text.is_empty() { "axis".to_owned() } else { text.to_owned() },
            line: 0,
            problem: Box::new(Problem::BadValue {
                field: "field".to_owned(),
                found: text.to_owned(),
                wrong: wrong.to_owned(),
                allowed,
            }),
        };
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, items) = part.split_at(part.find('[').unwrap_or(part.len()));
            if key.is_empty() {
                return Err(refuse("is not a path", allowed()));
            }
            steps.push(Step::Key(key.to_owned()));
            for item in items.split_terminator(']') {
                let number = item.strip_prefix('[').and_then(|n| n.parse().ok());
                steps.push(Step::Item(number.ok_or_else(|| refuse("is not a path", allowed()))?));
            }
        }
        if let Some(Step::Key(first)) = steps.first_mut() {
            match first.as_str() {
                "flow" => "flows".clone_into(first),
                "hops" => "hop".clone_into(first),
                "seed" | "name" | "title" => {
                    let allowed = "leave it out: every point gets the same seeds, and names decide nothing".to_owned();
                    return Err(refuse("is not varied", allowed));
                }
                _ => {}
            }
        }
        let path = FieldPath { text: text.to_owned(), steps };
        match &*path.steps {
            [_, _, Step::Key(last)] if path.is_of_a_list() && (last == "name" || last == "group") => {
                Err(refuse("is not varied", "leave it out: results are told apart by it".to_owned()))
            }
            _ => Ok(path),
        }
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the field holds whole numbers only.
    pub fn is_whole(&self) -> bool {
        let keys = self.steps.iter().enumerate().filter_map(|(i, step)| match step {
            // The second step of a list is a name.
            Step::Key(_) if i == 1 && self.is_of_a_list() => None,
            Step::Key(key) => Some(key.as_str()),
            Step::Item(_) => None,
        });
        let keys: Vec<&str> = keys.collect();
        if let ["flows", "parameters", name] = *keys {
            return controllers::is_whole(name);
        }
        let path = keys.join(".");
        SCENARIO.find(&path).is_some_and(|row| matches!(row.form, Form::Whole(..)))
    }

    /// Whether the field may hold a recording, or name one.
    pub fn is_of_a_recording(&self) -> bool {
        let is_path = matches!(&*self.steps, [Step::Key(key)] if key == "path");
        is_path || self.steps.iter().any(|step| matches!(step, Step::Key(key) if key == "trace"))
    }

    /// Whether both are paths of one field of that scenario, or one is below the other: `flow.video.start` and `flows[0].start`,
    /// `path.loss` and `path.loss.p`.
    pub fn overlaps(&self, other: &FieldPath, scenario: &Scenario) -> bool {
        let steps = self.steps.iter().zip(&other.steps);
        steps.enumerate().all(|(i, (one, other))| {
            let Some(Step::Key(list)) = self.steps.first().filter(|_| i == 1 && self.is_of_a_list()) else {
                return one == other;
            };
            let place = |step: &Step| match step {
                Step::Item(index) => Some(*index),
                Step::Key(name) if list == "hop" => scenario.hop.iter().position(|h| h.name == *name),
                Step::Key(name) => scenario.flows.iter().position(|f| f.name == *name),
            };
            let is_all = |step: &Step| matches!(step, Step::Key(key) if key == ALL);
            is_all(one) || is_all(other) || one == other || (place(one).is_some() && place(one) == place(other))
        })
    }

    fn is_of_a_list(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Key(first)) if first == "flows" || first == "hop")
    }

    /// The flows whose controller this is.
    fn controller_of<'a>(&'a self, raw: &'a RawScenario) -> Option<Result<Vec<&'a str>, Problem>> {
        let (Step::Key(flows), which, Step::Key(last)) = (self.steps.first()?, self.steps.get(1)?, self.steps.get(2)?)
        else {
            return None;
        };
        if flows != "flows" || last != "controller" || self.steps.len() > 3 {
            return None;
        }
        let names: Vec<&str> = raw.flows.iter().map(|f| f.name.as_str()).collect();
        Some(match which {
            Step::Key(name) if name == ALL => Ok(names),
            Step::Key(name) => match names.iter().find(|n| *n == name) {
                Some(name) => Ok(vec![name]),
                None => Err(unknown(&self.text, name, "a flow of the scenario", &names)),
            },
            Step::Item(index) => match names.get(*index) {
                Some(name) => Ok(vec![name]),
                None => Err(self.beyond("flows", *index, names.len())),
            },
        })
    }

    fn beyond(&self, list: &str, index: usize, len: usize) -> Problem {
        let allowed = if len == 0 { format!("the scenario has no `{list}`") } else { format!("from 0 to {}", len - 1) };
        Problem::BadValue {
            field: self.text.clone(),
            found: format!("{list}[{index}]"),
            wrong: "is not there".to_owned(),
            allowed,
        }
    }

    /// The problem from a reader's words.
    fn problem(&self, message: &str) -> Problem {
        // A field in the middle of the path may be the one that nobody knows.
        let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let keys: Vec<&str> = self.text.split('.').collect();
        let known = unknown.and_then(|name| keys.iter().position(|key| key.split('[').next() == Some(name)));
        let field = match (known, unknown) {
            (Some(last), _) => keys[..=last].join("."),
            // One within the value.
            (None, Some(name)) => format!("{}.{name}", self.text),
            (None, None) => self.text.clone(),
        };
        problem_of(message, field)
    }

    /// Sets the field in what is written.
    fn set(&self, at: &mut Json, value: &Json) -> Result<(), Problem> {
        self.set_below(at, &self.steps, "the scenario", value)
    }

    fn set_below(&self, at: &mut Json, steps: &[Step], name: &str, value: &Json) -> Result<(), Problem> {
        let Some((step, rest)) = steps.split_first() else {
            *at = value.clone();
            return Ok(());
        };
        match (step, at) {
            (Step::Key(key), Json::Object(table)) => {
                let next = match rest.first() {
                    None => Json::Null,
                    Some(_) if ["flows", "hop"].contains(&key.as_str()) => Json::Array(Vec::new()),
                    Some(_) => Json::Object(Map::new()),
                };
                self.set_below(table.entry(key.as_str()).or_insert(next), rest, key, value)
            }
            (Step::Item(index), Json::Array(list)) => {
                let len = list.len();
                let item = list.get_mut(*index).ok_or_else(|| self.beyond(name, *index, len))?;
                self.set_below(item, rest, name, value)
            }
            (Step::Key(key), Json::Array(list)) if key == ALL && !list.is_empty() => {
                list.iter_mut().try_for_each(|item| self.set_below(item, rest, name, value))
            }
            (Step::Key(key), Json::Array(list)) => {
                let named = |item: &Json| item["name"].as_str().map(str::to_owned);
                let names: Vec<String> = list.iter().filter_map(named).collect();
                let what = if name == "hop" { "a hop of the scenario" } else { "a flow of the scenario" };
                let item = list.iter_mut().find(|item| item["name"] == key.as_str());
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let item = item.ok_or_else(|| unknown(&self.text, key, what, &names))?;
                self.set_below(item, rest, name, value)
            }
            (_, other) => Err(Problem::Conflict {
                field: self.text.clone(),
                wrong: format!(
                    "goes below `{name}`, which is {}",
                    if other.is_array() { "a list" } else { "a single value" }
                ),
                remedy: format!("vary `{name}` as a whole, or write it as a table in the scenario"),
            }),
        }
    }
}

fn unknown(field: &str, found: &str, what: &'static str, names: &[&str]) -> Problem {
    Problem::UnknownName {
        field: field.to_owned(),
        found: found.to_owned(),
        what,
        allowed: names.iter().map(|n| (*n).to_owned()).collect(),
        list: None,
    }
}

/// The forms that a text may mean, the likely one first.
fn readings(text: &str) -> Vec<Json> {
    let plain = Json::from(text);
    let number = || {
        let whole = text.parse::<i64>().ok().map(Json::from);
        let begins = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        whole.or_else(|| text.parse::<f64>().ok().filter(|x| begins && x.is_finite()).map(Json::from))
    };
    let toml = || {
        let document = format!("x = {text}").parse::<toml::Table>().ok()?;
        serde_json::to_value(document.get("x")?).ok()
    };
    let other = match text {
        "true" => Some(Json::Bool(true)),
        "false" => Some(Json::Bool(false)),
        _ if text.starts_with(['{', '[', '"']) => toml(),
        _ => number(),
    };
    other.into_iter().chain([plain]).collect()
}

impl Scenario {
    /// The scenario with these values in these fields, checked as if it had been read so. A flow that gets another
    /// controller loses the parameters of its own; `rap:fine_grain=on` sets parameters, too.
    ///
    /// # Errors
    /// The scenario has no such field, flow or hop; the field has no such value; or the values do not go together.
    pub fn with_values<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a FieldPath, &'a str)>,
    ) -> Result<Scenario, ScenarioError> {
        let refuse = |problem: Problem| self.error(problem);
        let mut controllers_first = None;
        let mut others = Vec::new();
        for (field, value) in values {
            let base: &Scenario = controllers_first.as_ref().unwrap_or(self);
            match field.controller_of(base) {
                Some(flows) => {
                    let flows = flows.map_err(refuse)?;
                    let is_as_it_is =
                        |name: &&str| base.flows.iter().any(|f| f.name == **name && f.controller == value);
                    // The controller that is there keeps its parameters.
                    if flows.iter().all(is_as_it_is) {
                        continue;
                    }
                    let name = value.split(':').next().unwrap_or(value);
                    let known = controllers::family(name).is_some();
                    if !known {
                        let problem = Problem::UnknownName {
                            field: field.text.clone(),
                            found: value.to_owned(),
                            what: "a controller",
                            allowed: controllers::names().into_iter().map(str::to_owned).collect(),
                            list: Some("fairpace list controllers"),
                        };
                        return Err(refuse(problem));
                    }
                    let replaced = replace_controller(base, value, |f| flows.contains(&f.name.as_str()));
                    controllers_first = Some(replaced.map_err(|e| ScenarioError { file: self.name.clone(), ..e })?);
                }
                None => others.push((field, value)),
            }
        }
        let base = controllers_first.as_ref().unwrap_or(self);
        if others.is_empty() {
            return Ok(base.clone());
        }
        let json = written(&**base);
        let mut likely = json.clone();
        for (field, value) in &others {
            let reading = readings(value).swap_remove(0);
            field.set(&mut likely, &reading).map_err(refuse)?;
        }
        let raw = match RawScenario::deserialize(&likely) {
            Ok(raw) => raw,
            // One field after the other: which one is refused, and in which form it would be read.
            Err(_) => set_one_by_one(json, &others).map_err(refuse)?,
        };
        base.modify(|scenario| *scenario = raw)
    }
}

fn set_one_by_one(mut json: Json, values: &[(&FieldPath, &str)]) -> Result<RawScenario, Problem> {
    let mut last = RawScenario::default();
    for (field, value) in values {
        let mut refused = None;
        let mut read = None;
        for reading in readings(value) {
            let mut tried = json.clone();
            field.set(&mut tried, &reading)?;
            match RawScenario::deserialize(&tried) {
                Ok(raw) => {
                    read = Some((tried, raw));
                    break;
                }
                Err(error) => {
                    let error = error.to_string();
                    // The form that is of the field's type says what to write.
                    let is_of_another_type = |words: &String| words.starts_with("invalid type");
                    if refused.as_ref().is_none_or(is_of_another_type) {
                        refused = Some(error);
                    }
                }
            }
        }
        match read {
            Some(read) => (json, last) = read,
            None => return Err(field.problem(&refused.unwrap_or_default())),
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [path]
        rate = "10 Mbit/s"
        rtt = "50 ms"
        loss = { kind = "random", p = 0.001 }
        queue = { kind = "drop-tail", capacity = "50 pkt" }
        [[flows]]
        name = "video"
        controller = "rcs"
        parameters = { s_target = "2 Mbit/s" }
        [[flows]]
        name = "tcp"
        controller = "tcp-sack"
    "#;

    fn varied(values: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
        let fields: Vec<FieldPath> = values.iter().map(|(f, _)| FieldPath::parse(f).unwrap()).collect();
        let scenario = Scenario::parse(TEXT, "base.toml").unwrap();
        scenario.with_values(fields.iter().zip(values.iter().map(|(_, v)| *v)))
    }

    #[test]
    fn fields_of_every_kind_are_set_as_a_file_would_set_them() {
        let found = varied(&[
            ("path.loss.p", "1e-2"),
            ("path.rate", "2 Mbit/s"),
            ("flow.video.controller", "rap:fine_grain=on"),
            ("flows[1].start", "3 s"),
            ("flow.tcp.count", "4"),
            ("path.reorder", "true"),
            ("path.jitter", "5 ms"),
            ("duration", "20 s"),
        ])
        .unwrap();
        let by_hand = TEXT
            .replace("p = 0.001", "p = 0.01")
            .replace("\"10 Mbit/s\"", "\"2 Mbit/s\"\njitter = \"5 ms\"\nreorder = true")
            .replace("\"rcs\"", "\"rap\"")
            .replace("{ s_target = \"2 Mbit/s\" }", "{ fine_grain = \"on\" }")
            .replace("\"tcp-sack\"", "\"tcp-sack\"\nstart = \"3 s\"\ncount = 4");
        let by_hand = Scenario::parse(&format!("duration = \"20 s\"\n{by_hand}"), "base.toml").unwrap();
        assert_eq!(found.to_toml(), by_hand.to_toml());
    }

    #[test]
    fn a_table_is_a_value_too_and_a_star_is_every_flow() {
        let found = varied(&[("path.queue", "{ kind = \"codel\" }"), ("flow.*.start", "1 s")]).unwrap();
        assert!(found.to_toml().contains("kind = \"codel\""));
        assert!(found.flows.iter().all(|f| f.start.text() == "1 s"));
    }

    #[test]
    fn a_controller_that_is_there_already_keeps_its_parameters() {
        let same = varied(&[("flow.video.controller", "rcs")]).unwrap();
        assert_eq!(same.flows[0].parameters.len(), 1);
        assert!(varied(&[("flow.video.controller", "rap")]).unwrap().flows[0].parameters.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_the_nearest_name() {
        for (field, value, message, hint) in [
            ("path.los.p", "1", "base: `path.los` is not a field", "did you mean `loss`?"),
            ("path.loss.q", "1", "base: `path.loss.q` is not a field", "did you mean `p`?"),
            (
                "flow.vidoe.controller",
                "rcs",
                "base: `flow.vidoe.controller` is `vidoe`, which is not a flow of the scenario",
                "did you mean `video`?",
            ),
            (
                "flow.vidoe.start",
                "1 s",
                "base: `flow.vidoe.start` is `vidoe`, which is not a flow of the scenario",
                "did you mean `video`?",
            ),
            (
                "flow.video.controller",
                "rsc",
                "base: `flow.video.controller` is `rsc`, which is not a controller",
                "did you mean `rcs`?",
            ),
            ("path.rate", "10", "base: `path.rate` is `10`, which", "write"),
            (
                "path.loss.p",
                "2",
                "base: `path.loss.p` is `2`, which is not a probability",
                "write a number from 0 to 1",
            ),
            ("path.loss", "{kind=\"random\",q=0.1}", "base: `path.loss.q` is not a field", "did you mean `p`?"),
            ("path.rate.x", "2", "base: `path.rate.x` goes below `rate`, which is a single value", "vary `rate`"),
            ("flows[7].start", "1 s", "base: `flows[7].start` is `flows[7]`, which is not there", "from 0 to 1"),
            ("hop.a.link", "1", "base: `hop.a.link` is `a`, which is not a hop of the scenario", ""),
        ] {
            let error = varied(&[(field, value)]).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
            assert!(error.hint().unwrap_or_default().starts_with(hint), "{field}: {:?}", error.hint());
        }
    }

    #[test]
    fn what_is_no_path_and_what_is_not_varied_is_refused() {
        for text in ["", "a..b", "flows[x].start", ".path", "seed", "name"] {
            assert!(FieldPath::parse(text).is_err(), "{text}");
        }
        assert!(FieldPath::parse("flow.tcp.count").unwrap().is_whole());
        assert!(!FieldPath::parse("path.rate").unwrap().is_whole());
    }
}
