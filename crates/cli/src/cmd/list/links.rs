//! `fairpace list links` and `fairpace list flows`: the tables of a scenario with every field, and the kinds of parts,
//! from the rows that the reader, the check and the schema go by.

use fairpace_scenario::channel::Fading;
use fairpace_scenario::loss::Loss;
use fairpace_scenario::param::Row;
use fairpace_scenario::part::{About, about};
use fairpace_scenario::queue::Queue;
use fairpace_scenario::{AboutTable, SCENARIO};
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

/// A chapter: its title, its key in JSON, and what is in it.
pub(super) type Chapter = (&'static str, &'static str, Vec<Entry>);

/// The chapters about what flows cross.
pub(super) fn links() -> Vec<Chapter> {
    let kinds = |field: &str, of: Vec<About>| of.into_iter().map(|kind| part(field, &kind)).collect::<Vec<_>>();
    let mut links = tables("path");
    links.extend(kinds("queue", about::<Queue>()));
    links.extend(kinds("loss", about::<Loss>()));
    let mut wireless = tables("wireless");
    wireless.extend(kinds("channel", about::<Fading>()));
    vec![
        ("Links: a scenario's [path]", "links", links),
        ("Satellite: a scenario's [satellite], in place of [path]", "satellite", tables("satellite")),
        ("Wireless: a scenario's [wireless], the last hop behind [path]", "wireless", wireless),
        ("Hops: a scenario's [[hop]], several in sequence in place of [path]", "hops", tables("hop[]")),
    ]
}

/// The chapters about the run and its flows.
pub(super) fn flows() -> Vec<Chapter> {
    vec![
        ("Run: the top level of a scenario", "run", tables("")),
        ("Flows: a scenario's [[flows]]", "flows", tables("flows[]")),
    ]
}

/// The table at that place of a scenario, and all below it.
fn tables(at: &str) -> Vec<Entry> {
    let below = |table: &AboutTable| table.at == at || !at.is_empty() && table.at.starts_with(&format!("{at}."));
    SCENARIO.about().into_iter().filter(below).map(table).collect()
}

fn table(table: AboutTable) -> Entry {
    let name = |row: &Row| match table.at.as_str() {
        "" => row.name.to_owned(),
        at => format!("{at}.{}", row.name),
    };
    let parameters = table.fields.iter().map(|(row, usual)| parameter(name(row), row, usual.as_deref()));
    let name = if table.at.is_empty() { "top level".to_owned() } else { format!("[{}]", table.at) };
    Entry { name, doc: table.doc.to_owned(), parameters: parameters.collect(), example: None }
}

fn part(field: &str, kind: &About) -> Entry {
    let parameters = kind.parameters.iter().map(|(row, usual)| parameter(row.name.to_owned(), row, usual.as_deref()));
    let given = if kind.example.is_empty() { String::new() } else { format!(", {}", kind.example) };
    Entry {
        name: kind.name.to_owned(),
        doc: kind.doc.to_owned(),
        parameters: parameters.collect(),
        example: Some(format!("{field} = {{ kind = \"{}\"{given} }}", kind.name)),
    }
}

fn parameter(name: String, row: &Row, usual: Option<&str>) -> Parameter {
    Parameter {
        name,
        default: usual.unwrap_or("none").to_owned(),
        allowed: row.allowed(),
        doc: if row.symbol.is_empty() { row.doc.to_owned() } else { format!("{} ({})", row.doc, row.symbol) },
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
    use fairpace_scenario::Scenario;

    fn chapters() -> impl Iterator<Item = Chapter> {
        links().into_iter().chain(flows())
    }

    #[test]
    fn every_example_of_a_part_is_what_a_scenario_takes() {
        let mut read = 0;
        for entry in chapters().flat_map(|(_, _, entries)| entries) {
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
    fn every_table_of_the_language_is_in_one_chapter_and_says_what_each_field_allows() {
        let mut shown = 0;
        for (title, _, entries) in chapters() {
            for entry in entries {
                shown += usize::from(entry.example.is_none());
                assert!(!entry.doc.is_empty(), "{title}: {}", entry.name);
                assert!(!entry.parameters.is_empty() || entry.example.is_some(), "{title}: {}", entry.name);
                for p in &entry.parameters {
                    assert!(!p.allowed.is_empty() && !p.doc.is_empty(), "{title}: {}", p.name);
                }
            }
        }
        assert_eq!(shown, SCENARIO.about().len());
    }
}
