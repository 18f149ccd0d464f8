//! The CSV files of a folder, columns by name, and lines made of them.

use super::error::{FolderError, read};
use std::collections::BTreeMap;
use std::path::Path;

/// Points per line beyond which neighbours are averaged: a chart is a thousand pixels wide.
const MAX_POINTS: usize = 1500;

/// A CSV file, column by column name.
#[derive(Default)]
pub(super) struct Rows {
    head: BTreeMap<String, usize>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Rows {
    pub(super) fn read(path: &Path) -> Result<Rows, FolderError> {
        let text = read(path)?;
        let mut lines = text.lines();
        let head = lines.next().map(fields).unwrap_or_default();
        let width = head.len();
        let rows: Vec<Vec<String>> = lines.map(fields).collect();
        if let Some((n, row)) = rows.iter().enumerate().find(|(_, r)| r.len() != width) {
            let problem = format!("line {} has {} fields, the head has {width}", n + 2, row.len());
            return Err(FolderError::Malformed { path: path.to_owned(), problem });
        }
        Ok(Rows { head: head.into_iter().enumerate().map(|(i, name)| (name, i)).collect(), rows })
    }

    pub(super) fn text<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        self.head.get(column).and_then(|i| row.get(*i)).map_or("", String::as_str)
    }

    pub(super) fn number(&self, row: &[String], column: &str) -> Option<f64> {
        self.text(row, column).parse().ok().filter(|v: &f64| v.is_finite())
    }
}

/// The fields of one line of CSV [RFC 4180], without line breaks inside quotes.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                push(&mut out, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => push(&mut out, c),
        }
    }
    out
}

fn push(fields: &mut [String], c: char) {
    if let Some(last) = fields.last_mut() {
        last.push(c);
    }
}

/// At most [`MAX_POINTS`] points: neighbours are averaged, so that the area under the line stays.
pub(super) fn thin(x: Vec<f64>, y: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let block = x.len().div_ceil(MAX_POINTS);
    if block <= 1 {
        return (x, y);
    }
    let mean = |values: &[f64]| {
        let (sum, n) = values.iter().filter(|v| v.is_finite()).fold((0.0, 0), |(s, n), v| (s + v, n + 1));
        if n == 0 { f64::NAN } else { sum / f64::from(n) }
    };
    (x.chunks(block).map(|c| c[0]).collect(), y.chunks(block).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_keep_their_commas_and_quotes() {
        assert_eq!(fields("a,\"b,\"\"c\"\"\",,d"), ["a", "b,\"c\"", "", "d"]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn thinning_keeps_the_mean_and_skips_gaps() {
        let n = MAX_POINTS * 2;
        let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let mut y = vec![2.0; n];
        y[1] = f64::NAN;
        let (x, y) = thin(x, y);
        assert_eq!((x.len(), y.len()), (MAX_POINTS, MAX_POINTS));
        assert_eq!((x[1], y[0]), (2.0, 2.0));
    }
}
