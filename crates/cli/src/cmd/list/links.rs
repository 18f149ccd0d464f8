//! `fairpace list links`: the tables of a scenario that describe links, with every field, from the JSON Schema and from
//! the rows of their parts.

use fairpace_scenario::Scenario;
use fairpace_scenario::channel::Fading;
use fairpace_scenario::loss::Loss;
use fairpace_scenario::part::{About, about};
use fairpace_scenario::queue::Queue;
use serde_json::{Value, json};

/// A table of a scenario, or a kind of part.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) parameters: Vec<Parameter>,
    /// A line of a scenario; none for whole tables.
    pub(super) example: Option<String>,
}

/// A field: its name, what holds if it is absent, what is allowed, what it does.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) default: String,
    pub(super) allowed: String,
    pub(super) doc: String,
}

/// Where a table stands in a scenario, and its name in the schema.
type At = (&'static str, &'static str);

/// The chapters: title, key in JSON, tables.
const CHAPTERS: [(&str, &str, &[At]); 3] = [
    (
        "Links: a scenario's [path]",
        "links",
        &[
            ("path", "PathSpec"),
            ("path.reverse", "ReverseSpec"),
            ("path.trace", "TraceSpec"),
            ("path.outages[]", "OutageSpec"),
            ("path.quick_start", "RouterSpec"),
        ],
    ),
    (
        "Satellite: a scenario's [satellite], in place of [path]",
        "satellite",
        &[
            ("satellite", "SatelliteSpec"),
            ("satellite.frame", "OwnFrame"),
            ("satellite.release", "ReleaseSpec"),
            ("satellite.quick_start", "SatelliteQuickStart"),
            ("satellite.quick_start.fade", "FadeSpec"),
        ],
    ),
    (
        "Wireless: a scenario's [wireless], the last hop behind [path]",
        "wireless",
        &[
            ("wireless", "WirelessSpec"),
            ("wireless.users[]", "WirelessUser"),
            ("wireless.uplink", "UplinkSpec"),
            ("wireless.plan", "PlanSpec"),
        ],
    ),
];

/// Each chapter: its title, its key in JSON, and what is in it.
pub(super) fn chapters() -> Vec<(&'static str, &'static str, Vec<Entry>)> {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap_or_default();
    let tables = |of: &[At]| of.iter().map(|(at, name)| table(&schema, at, name)).collect::<Vec<_>>();
    let kinds = |field: &str, of: Vec<About>| of.into_iter().map(|kind| part(field, &kind)).collect::<Vec<_>>();
    let mut chapters: Vec<_> = CHAPTERS.into_iter().map(|(title, key, of)| (title, key, tables(of))).collect();
    if let [(_, _, links), _, (_, _, wireless)] = &mut chapters[..] {
        links.extend(kinds("queue", about::<Queue>()));
        links.extend(kinds("loss", about::<Loss>()));
        wireless.extend(kinds("channel", about::<Fading>()));
    }
    chapters
}

/// The fields of a table, as the schema has them.
fn table(schema: &Value, at: &str, name: &str) -> Entry {
    let definition = &schema["$defs"][name];
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let fields = definition["properties"].as_object().into_iter().flatten();
    let parameters = fields.map(|(key, field)| Parameter {
        name: format!("{at}.{key}"),
        default: match &field["default"] {
            Value::Null => "none".to_owned(),
            Value::String(text) => text.clone(),
            Value::Object(_) => "as below".to_owned(),
            other => other.to_string(),
        },
        allowed: allowed(schema, field),
        doc: text(&field["description"]),
    });
    let doc = text(&definition["description"]);
    Entry { name: format!("[{at}]"), doc, parameters: parameters.collect(), example: None }
}

/// The values that a schema allows, in a few words.
fn allowed(schema: &Value, field: &Value) -> String {
    let field = match field["$ref"].as_str() {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap_or(field),
        None => field,
    };
    if let Some(any) = field["anyOf"].as_array() {
        let some: Vec<String> =
            any.iter().filter(|s| s["type"] != "null").map(|s| allowed(schema, s)).filter(|s| !s.is_empty()).collect();
        return some.join(", or ");
    }
    if let Some(word) = field["const"].as_str() {
        return format!("`{word}`");
    }
    let words = field["enum"].as_array().or(field["oneOf"].as_array());
    if let Some(words) = words {
        let word = |w: &Value| w.as_str().or(w["const"].as_str()).unwrap_or_default().to_owned();
        return words.iter().map(|w| format!("`{}`", word(w))).collect::<Vec<_>>().join(", ");
    }
    let kind = match &field["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|k| *k != "null").unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    };
    match (field["format"].as_str(), kind) {
        (Some("fairpace-duration"), _) => "a duration".to_owned(),
        (Some("fairpace-rate"), _) => "a rate".to_owned(),
        (Some("fairpace-size"), _) => "a size".to_owned(),
        (Some("fairpace-capacity"), _) => "packets, bytes, or `unlimited`".to_owned(),
        (Some("fairpace-probability"), _) => "a probability".to_owned(),
        (_, "boolean") => "`true` or `false`".to_owned(),
        (_, "integer") => format!("a whole number from {} to {}", field["minimum"], field["maximum"]),
        (_, "number") => "a number".to_owned(),
        (_, "string") => "text".to_owned(),
        (_, "array") => "a list".to_owned(),
        (_, "object") => "a table".to_owned(),
        _ => String::new(),
    }
}

fn part(field: &str, kind: &About) -> Entry {
    let parameters = kind.parameters.iter().map(|(row, usual)| Parameter {
        name: row.name.to_owned(),
        default: usual.clone().unwrap_or_else(|| "none".to_owned()),
        allowed: row.form.allowed(),
        doc: if row.symbol.is_empty() { row.doc.to_owned() } else { format!("{} ({})", row.doc, row.symbol) },
    });
    let given = if kind.example.is_empty() { String::new() } else { format!(", {}", kind.example) };
    Entry {
        name: kind.name.to_owned(),
        doc: kind.doc.to_owned(),
        parameters: parameters.collect(),
        example: Some(format!("{field} = {{ kind = \"{}\"{given} }}", kind.name)),
    }
}

impl Entry {
    pub(super) fn json(&self) -> Value {
        let parameters: Vec<Value> = self
            .parameters
            .iter()
            .map(|p| json!({ "name": p.name, "default": p.default, "allowed": p.allowed, "doc": p.doc }))
            .collect();
        json!({ "name": self.name, "doc": self.doc, "parameters": parameters, "example": self.example })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_a_part_is_what_a_scenario_takes() {
        let mut read = 0;
        for entry in chapters().into_iter().flat_map(|(_, _, entries)| entries) {
            let Some(example) = entry.example else { continue };
            let link = match example.starts_with("channel") {
                true => format!("wireless = {{ {example} }}\npath = {{ rate = \"10 Mbit/s\" }}"),
                false => format!("path = {{ rate = \"10 Mbit/s\", {example} }}"),
            };
            let text = format!("{link}\n[[flows]]\ncontroller = \"rcs\"\n");
            Scenario::parse(&text, &entry.name).unwrap_or_else(|e| panic!("{e}\n{text}"));
            read += 1;
        }
        assert_eq!(read, about::<Queue>().len() + about::<Loss>().len() + about::<Fading>().len());
    }

    #[test]
    fn every_table_of_a_chapter_is_in_the_schema_and_says_what_each_field_allows() {
        for (title, _, entries) in chapters() {
            for entry in entries {
                assert!(!entry.doc.is_empty(), "{title}: {}", entry.name);
                assert!(!entry.parameters.is_empty() || entry.example.is_some(), "{title}: {}", entry.name);
                for p in &entry.parameters {
                    assert!(!p.allowed.is_empty() && !p.doc.is_empty(), "{title}: {}", p.name);
                }
            }
        }
    }
}
