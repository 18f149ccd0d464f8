//! The hops of a path of several, as a scenario writes them.

use super::param::{Form, Row};
use super::quantity;
use super::{PATH, PathSpec, Table};
use serde::{Deserialize, Serialize};

/// One hop of a path of several.
///
/// The rows of [`HOP`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct HopSpec {
    pub name: String,
    #[serde(deserialize_with = "quantity::choice")]
    pub kind: HopKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<PathSpec>,
}

/// One of `[[hop]]`.
pub const HOP: Table = Table::of::<HopSpec>(
    "HopSpec",
    "one hop of a path of several",
    &[
        Row::new(
            "name",
            "",
            Form::Text,
            "for the flows' `enter` and `leave` and for results; letters, digits, `-` and `_`",
        )
        .needed(),
        Row::new(
            "kind",
            "",
            Form::Word(&["link", "satellite", "wireless"]),
            "`link`: its `link` says how; `satellite` and `wireless`, once each at the most: the scenario's table of that name",
        ),
        Row::new("link", "", Form::Table(&PATH), "of a `link`: the fields of `path`, without `trace`").optional(),
    ],
);

/// The kinds of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HopKind {
    /// A link each way.
    #[default]
    Link,
    /// The terminals of `[satellite]`.
    Satellite,
    /// The users of `[wireless]`.
    Wireless,
}
