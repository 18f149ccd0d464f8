//! Each field of the schema against values of the wrong kind.

use super::*;

/// Every leaf of the schema as (path in a scenario, its schema), `$ref`s followed.
fn leaves() -> Vec<(String, serde_json::Value)> {
    let root: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let mut found = Vec::new();
    walk(&root, &root, String::new(), &mut found);
    found
}

fn walk(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    path: String,
    found: &mut Vec<(String, serde_json::Value)>,
) {
    let mut schema = schema.clone();
    loop {
        if let Some(reference) = schema.get("$ref").and_then(|r| r.as_str()) {
            schema = root.pointer(reference.trim_start_matches('#')).unwrap().clone();
        } else if let Some(any) = schema.get("anyOf").and_then(|a| a.as_array()) {
            // An option: the first alternative is the value, the second is null.
            schema = any.iter().find(|s| s.get("type").and_then(|t| t.as_str()) != Some("null")).unwrap().clone();
            if schema.get("const").is_some() {
                schema = serde_json::json!({ "format": "fairpace-rate" });
            }
        } else {
            break;
        }
    }
    if let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) {
        for (name, property) in properties {
            let dot = if path.is_empty() { "" } else { "." };
            walk(root, property, format!("{path}{dot}{name}"), found);
        }
    } else if let Some(items) = schema.get("items") {
        walk(root, items, format!("{path}[0]"), found);
    } else {
        found.push((path, schema));
    }
}

/// A scenario whose field `path` is `value`, as TOML with nothing else wrong about the form.
fn scenario_with(path: &str, value: &str) -> String {
    let (mut path, mut value) = (path, value.to_owned());
    while let Some(list) = path.strip_suffix("[0]") {
        (path, value) = (list, format!("[{value}]"));
    }
    let mut text = format!("{path} = {value}");
    // From the inside out: `a.b[0].c = v` is `a.b = [{ c = v }]`.
    while let Some(open) = text.find("[0].") {
        let (before, after) = text.split_at(open);
        text = format!("{before} = [{{ {} }}]", &after[4..]);
    }
    let top = text.split(['.', '[', ' ']).next().unwrap();
    let mut whole = text.clone();
    if top != "flows" {
        whole.push_str("\nflows = [{ controller = \"fixed\" }]");
    }
    if !text.starts_with("path.rate") && !text.starts_with("path.trace") && top != "hop" {
        whole.push_str("\npath.rate = \"10 M\"");
    }
    whole
}

#[test]
fn no_field_of_the_schema_takes_a_value_of_the_wrong_kind() {
    // The list of fields comes from the schema: a new field is tested without a line here.
    let never: &[&str] =
        &["nan", "inf", "-inf", "[[1]]", "1979-05-27", "{ x = 1 }", "[]", "\"\\u0000\"", "18446744073709551616"];
    let text_only: &[&str] = &["0", "-1", "1e308", "9007199254740993", "true"];
    let number_only: &[&str] = &["\"\"", "\"0\"", "\"5\"", "\"-1\"", "true", "-1", "1e308"];
    let quantity: &[&str] = &[
        "\"\"",
        "\"5\"",
        "\"-1 s\"",
        "\"1e400 s\"",
        "\"nan s\"",
        "\"inf s\"",
        "\"٣ s\"",
        "\"1 parsec\"",
        "\"-0.5 M\"",
    ];
    let all = leaves();
    assert!(all.len() > 80, "only {} fields: the walk over the schema is broken", all.len());
    for (path, schema) in all {
        let format = schema.get("format").and_then(|f| f.as_str()).unwrap_or("");
        let kind = schema.get("type").map_or(String::new(), ToString::to_string);
        let mut bad: Vec<&str> = Vec::new();
        if path.ends_with("parameters") {
            // Its values are checked by the controller; the table itself must be one.
            bad.extend(["1", "\"\"", "true", "[]"]);
        } else if matches!(path.as_str(), "name" | "title" | "flows[0].name" | "flows[0].group") {
            bad.extend(text_only);
        } else {
            bad.extend(never);
            match () {
                () if format == "fairpace-probability" || kind.contains("integer") => bad.extend(number_only),
                () if format.starts_with("fairpace-") => bad.extend(text_only.iter().chain(quantity)),
                () if kind.contains("boolean") => bad.extend(["0", "1", "\"true\"", "\"\""]),
                () => bad.extend(text_only.iter().chain(&["\"\"", "\"no such choice\""])),
            }
        }
        for value in bad {
            if path.ends_with("rate")
                && value == "[]"
                && !format.is_empty()
                && path != "path.rate"
                && !path.ends_with("reverse.rate")
            {
                continue; // an empty list of steps is refused where the rate has effect
            }
            let text = scenario_with(&path, value);
            match Scenario::parse(&text, "t.toml") {
                Ok(_) => panic!("`{path} = {value}` was accepted"),
                Err(e) => {
                    let message = e.to_string();
                    assert!(message.starts_with("t.toml:") && message.lines().count() == 1, "{message}");
                    assert!(message.len() < 400, "{message}");
                    // One of a list of numbers, or the list.
                    let named = message.contains(&format!("`{}", path.trim_end_matches("[0]")));
                    // Where the field needs another beside it, that one may be named first.
                    let ok = named || message.contains("duplicate key") || message.ends_with("is missing");
                    assert!(ok, "{path} = {value}: {message}");
                }
            }
        }
    }
}
