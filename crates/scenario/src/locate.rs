//! Where in the file a field stands: its path, its line.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Paths and places of everything in a TOML document.
pub(crate) struct Locator {
    nodes: Vec<Node>,
    line_starts: Vec<usize>,
}

struct Node {
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

impl Locator {
    pub(super) fn new(text: &str, document: &Spanned<DeTable<'_>>) -> Locator {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let mut nodes = Vec::new();
        walk_table(document.get_ref(), "", &mut nodes);
        Locator { nodes, line_starts }
    }

    /// Of a scenario that no file holds: nothing has a line.
    pub(super) fn nowhere() -> Locator {
        Locator { nodes: Vec::new(), line_starts: Vec::new() }
    }

    /// The line (from 1) of a byte of the text.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= byte).max(1)
    }

    /// The path of the smallest thing that holds `span`: `flows[2].controller`. Empty for the top.
    pub(super) fn path_of(&self, span: &Range<usize>) -> String {
        let holds = |r: &Range<usize>| r.start <= span.start && span.end <= r.end && !r.is_empty();
        self.nodes
            .iter()
            .flat_map(|n| [(&n.key, n), (&n.value, n)])
            .filter(|(range, _)| holds(range))
            .min_by_key(|(range, _)| range.end - range.start)
            .map_or_else(String::new, |(_, n)| n.path.clone())
    }

    /// The line of the field with this path, or of the nearest thing around it that is there; 0 without a file.
    pub(super) fn line_of(&self, path: &str) -> usize {
        if self.line_starts.is_empty() {
            return 0;
        }
        let mut path = path;
        loop {
            if let Some(node) = self.nodes.iter().find(|n| n.path == path) {
                let at = if node.value.is_empty() { node.key.start } else { node.value.start };
                return self.line_at(at);
            }
            match path.rfind(['.', '[']) {
                Some(cut) => path = &path[..cut],
                None => return 1,
            }
        }
    }

    /// Whether the file itself says something about this path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.nodes.iter().any(|n| n.path == path)
    }
}

fn walk_table(table: &DeTable<'_>, prefix: &str, nodes: &mut Vec<Node>) {
    for (key, value) in table.iter() {
        let path = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        walk_value(value, key.span(), path, nodes);
    }
}

fn walk_value(value: &Spanned<DeValue<'_>>, key: Range<usize>, path: String, nodes: &mut Vec<Node>) {
    match value.get_ref() {
        DeValue::Table(table) => walk_table(table, &path, nodes),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk_value(item, item.span(), format!("{path}[{index}]"), nodes);
            }
        }
        _ => {}
    }
    nodes.push(Node { path, key, value: value.span() });
}
