//! The declarations that the package's classes are made from: the rows of every table, and every controller's parameters.

use fairpace_scenario::param::{Form, Row, Usual};
use fairpace_scenario::{AboutTable, SCENARIO};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Every table of a scenario file and every controller, as JSON text: names, effects, allowed values, defaults.
#[pyfunction]
pub(crate) fn declarations() -> String {
    let tables: Vec<Value> = SCENARIO.about().iter().map(table).collect();
    let controllers: Vec<Value> = fairpace_control::schemes()
        .iter()
        .map(|s| {
            let params: Vec<Value> = s
                .params
                .iter()
                .map(|p| json!({ "name": p.name, "symbol": p.symbol, "default": p.default, "allowed": p.range(), "doc": p.doc }))
                .collect();
            json!({ "name": s.name, "title": s.title, "source": s.source, "parameters": params })
        })
        .collect();
    json!({ "tables": tables, "controllers": controllers }).to_string()
}

fn table(about: &AboutTable) -> Value {
    let fields: Vec<Value> = about.fields.iter().map(|(row, default)| field(row, default.as_deref())).collect();
    json!({ "at": about.at, "schema": about.name, "doc": about.doc, "fields": fields })
}

fn field(row: &Row, default: Option<&str>) -> Value {
    json!({
        "name": row.name,
        "symbol": row.symbol,
        "doc": row.doc,
        "allowed": row.allowed(),
        "default": default,
        "needed": row.usual == Usual::Needed,
        "types": types(&row.form),
    })
}

/// The types of Python that a value may have.
fn types(form: &Form) -> Vec<String> {
    let one = |name: &str| vec![name.to_owned()];
    match form {
        Form::Time(_) | Form::Size(_) | Form::Room | Form::Rate(_) | Form::Text => one("str"),
        Form::Chance(_) | Form::Real(_) => one("float"),
        Form::Reals => one("Sequence[float]"),
        Form::Matrix => one("Sequence[Sequence[float]]"),
        Form::Whole(..) => one("int"),
        Form::Flag => one("bool"),
        Form::Word(words) => {
            let words: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
            vec![format!("Literal[{}]", words.join(", "))]
        }
        Form::Table(table) => vec![table.name.to_owned(), "Mapping[str, Any]".to_owned()],
        Form::Tables(table) => vec![format!("Sequence[{} | Mapping[str, Any]]", table.name)],
        Form::Either(forms) => forms.iter().flat_map(types).collect(),
        Form::Other(..) => vec!["str".to_owned(), "float".to_owned(), "Mapping[str, Any]".to_owned()],
    }
}
