//! How much of a number, and of a table, a page shows.

/// A table with more rows than this is folded.
pub(super) const MAX_OPEN_ROWS: usize = 12;

/// A number as pages have it.
pub(super) fn short(v: f64) -> String {
    let digits = match v.abs() {
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 || a == 0.0 => 2,
        _ => 4,
    };
    let text = format!("{v:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
