//! The JSON Schema that follows from rows.

use crate::param::{Form, Row, Table, Usual};
use crate::quantity::{Real, Room, Size, Speed, Time};
use fairpace_units::{Bounds, End};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

impl Table {
    /// Its schema, below `$defs`.
    pub(crate) fn reference(&'static self, generator: &mut SchemaGenerator) -> Schema {
        if !generator.definitions().contains_key(self.name) {
            // Its place is taken before those of the tables in it.
            generator.definitions_mut().insert(self.name.to_owned(), Json::Null);
            let schema = self.schema(generator).to_value();
            generator.definitions_mut().insert(self.name.to_owned(), schema);
        }
        Schema::new_ref(format!("#/$defs/{}", self.name))
    }

    /// Its schema.
    pub(crate) fn schema(&'static self, generator: &mut SchemaGenerator) -> Schema {
        let (usual, mut properties) = ((self.usual)(), Map::new());
        for row in self.rows {
            let mut schema = row.form.schema(generator);
            schema.insert("description".to_owned(), json!(self.description(row)));
            if let Some(default) = usual.get(row.name).filter(|_| matches!(row.usual, Usual::Model)) {
                schema.insert("default".to_owned(), default.clone());
            }
            properties.insert(row.name.to_owned(), schema.to_value());
        }
        let needed = self.rows.iter().filter(|row| matches!(row.usual, Usual::Needed)).map(|row| row.name);
        schemars::json_schema!({
            "description": self.doc, "type": "object", "properties": properties, "additionalProperties": false,
            "required": needed.collect::<Vec<_>>(),
        })
    }

    fn description(&self, row: &Row) -> String {
        let symbol = if row.symbol.is_empty() { String::new() } else { format!(" ({})", row.symbol) };
        let usual = match row.usual {
            Usual::Words(words) => format!("; {words} if absent"),
            Usual::Model | Usual::Needed | Usual::Optional => String::new(),
        };
        format!("{}{symbol}{usual}", row.doc)
    }
}

impl Form {
    /// Its schema: the type with its bounds.
    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let number = |bounds: &Bounds<f64>| {
            let mut schema = schemars::json_schema!({ "type": "number" });
            let ends = [("minimum", "exclusiveMinimum", bounds.low), ("maximum", "exclusiveMaximum", bounds.high)];
            for (at, beyond, end) in ends {
                match end {
                    End::At(x) => schema.insert(at.to_owned(), json!(x)),
                    End::Beyond(x) => schema.insert(beyond.to_owned(), json!(x)),
                    End::Open => None,
                };
            }
            schema
        };
        match self {
            Form::Time(_) => generator.subschema_for::<Time>(),
            Form::Size(_) => generator.subschema_for::<Size>(),
            Form::Room => generator.subschema_for::<Room>(),
            Form::Chance(bounds) => {
                let mut schema = number(bounds);
                schema.insert("format".to_owned(), json!("fairpace-probability"));
                schema
            }
            Form::Real(bounds) => number(bounds),
            Form::Reals => generator.subschema_for::<Vec<Real>>(),
            Form::Matrix => generator.subschema_for::<Vec<Vec<Real>>>(),
            Form::Whole(min, max) => {
                schemars::json_schema!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Form::Flag => schemars::json_schema!({ "type": "boolean" }),
            Form::Word(words) => schemars::json_schema!({ "type": "string", "enum": words }),
            Form::Rate(_) => generator.subschema_for::<Speed>(),
            Form::Text => schemars::json_schema!({ "type": "string" }),
            Form::Table(table) => table.reference(generator),
            Form::Tables(table) => {
                let items = table.reference(generator);
                schemars::json_schema!({ "type": "array", "items": items })
            }
            Form::Either(forms) => {
                let any: Vec<Schema> = forms.iter().map(|form| form.schema(generator)).collect();
                schemars::json_schema!({ "anyOf": any })
            }
            Form::Other(_, schema) => schema(generator),
        }
    }
}
