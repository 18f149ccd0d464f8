//! Tables of results: columns of one length, each of one type, written as CSV.
//!
//! A column's name ends in its unit: `_s`, `_ms`, `_bps`, `_packets`, `_bytes`. A cell that a row does not have is nothing
//! in CSV, and null in columns.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A column's name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its name, with the unit.
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Number,
    Text,
}

/// A column of whole numbers.
pub fn whole(name: impl Into<String>) -> Head {
    Head { name: name.into(), kind: Kind::Whole }
}

/// A column of numbers.
pub fn number(name: impl Into<String>) -> Head {
    Head { name: name.into(), kind: Kind::Number }
}

/// A column of text.
pub fn text(name: impl Into<String>) -> Head {
    Head { name: name.into(), kind: Kind::Text }
}

/// The cells of a column, one per row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Counts, numbers of things, seeds.
    Whole(Vec<Option<u64>>),
    /// Measured numbers: finite where there are any.
    Number(Vec<Option<f64>>),
    /// Names and words, each kept once.
    Text(Words),
}

/// Text of which much is said again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Each text once, in the order in which it was first said; never empty text.
    words: Vec<String>,
    /// The place of each row's text in `words`.
    rows: Vec<Option<u32>>,
    /// The same the other way round.
    #[serde(skip)]
    places: BTreeMap<String, u32>,
}

impl Words {
    /// Each text once; a row's number is its place here.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The place of each row's text; none where there is no text.
    pub fn rows(&self) -> &[Option<u32>] {
        &self.rows
    }

    /// A row's text; none where there is no text.
    pub fn get(&self, row: usize) -> Option<&str> {
        let place = (*self.rows.get(row)?)?;
        self.words.get(place as usize).map(String::as_str)
    }

    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return self.rows.push(None);
        }
        // Rows of one flow follow each other, and so do those of one kind.
        let last = self.rows.len().checked_sub(1).filter(|last| self.get(*last) == Some(text));
        let place = last.and_then(|last| self.rows[last]).unwrap_or_else(|| self.place(text));
        self.rows.push(Some(place));
    }

    /// The place of a text, which is made where there is none.
    fn place(&mut self, text: &str) -> u32 {
        // One that was read has its words only.
        if self.places.len() < self.words.len() {
            self.places = self.words.iter().cloned().zip(0..).collect();
        }
        self.places.get(text).copied().unwrap_or_else(|| {
            let place = self.words.len() as u32;
            self.words.push(text.to_owned());
            self.places.insert(text.to_owned(), place);
            place
        })
    }

    fn append(&mut self, other: &Words) {
        let places: Vec<u32> = other.words.iter().map(|text| self.place(text)).collect();
        self.rows.extend(other.rows.iter().map(|row| row.and_then(|row| places.get(row as usize).copied())));
    }
}

impl<S: AsRef<str>> FromIterator<S> for Words {
    fn from_iter<I: IntoIterator<Item = S>>(all: I) -> Words {
        let mut words = Words::default();
        words.extend(all);
        words
    }
}

impl<S: AsRef<str>> Extend<S> for Words {
    fn extend<I: IntoIterator<Item = S>>(&mut self, all: I) {
        all.into_iter().for_each(|text| self.push(text.as_ref()));
    }
}

/// A table: of one seed, or of several one below the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    columns: Vec<(String, Column)>,
    /// The columns of the row in hand that have their cell.
    #[serde(skip)]
    filled: usize,
}

impl Table {
    /// An empty one, to be filled row by row: each cell in the order of the columns, then [`end`](Self::end).
    pub fn new(heads: &[Head]) -> Table {
        let column = |head: &Head| {
            let column = match head.kind {
                Kind::Whole => Column::Whole(Vec::new()),
                Kind::Number => Column::Number(Vec::new()),
                Kind::Text => Column::Text(Words::default()),
            };
            (head.name.clone(), column)
        };
        Table { columns: heads.iter().map(column).collect(), filled: 0 }
    }

    /// Of whole columns, in order.
    ///
    /// # Panics
    /// A column is longer than another: a mistake of the program.
    pub fn of(columns: Vec<(String, Column)>) -> Table {
        let table = Table { columns, filled: 0 };
        let rows = table.len();
        assert!(table.columns().all(|(_, column)| column.len() == rows), "all columns are of one length");
        table
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns().find(|(n, _)| *n == name).map(|(_, column)| column)
    }

    /// These rows of it, by their numbers.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Table {
        Table::of(self.columns().map(|(name, column)| (name.to_owned(), column.select(rows))).collect())
    }

    /// The same without the columns of these names.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Table {
        self.columns.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }

    /// Its columns by name, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next cell's column. A cell of another type than its column's is a mistake of the program, which the first
    /// test of the table shows.
    fn next(&mut self) -> &mut Column {
        let (_, column) = &mut self.columns[self.filled];
        self.filled += 1;
        column
    }

    /// A cell of text; nothing for no text.
    ///
    /// # Panics
    /// The column is of another type.
    pub fn text(&mut self, cell: &str) -> &mut Self {
        match self.next() {
            Column::Text(words) => words.push(cell),
            other => panic!("text in a column of {}", other.kind()),
        }
        self
    }

    /// A cell that is a whole number.
    ///
    /// # Panics
    /// The column is of another type.
    pub fn whole(&mut self, n: impl Into<Option<u64>>) -> &mut Self {
        match self.next() {
            Column::Whole(rows) => rows.push(n.into()),
            other => panic!("a whole number in a column of {}", other.kind()),
        }
        self
    }

    /// A cell that is a number; nothing for what is missing or not finite.
    ///
    /// # Panics
    /// The column is of another type.
    pub fn number(&mut self, x: impl Into<Option<f64>>) -> &mut Self {
        match self.next() {
            Column::Number(rows) => rows.push(x.into().filter(|x| x.is_finite())),
            other => panic!("a number in a column of {}", other.kind()),
        }
        self
    }

    /// Ends a row.
    ///
    /// # Panics
    /// The row lacks a cell.
    pub fn end(&mut self) {
        assert_eq!(self.filled, self.columns.len(), "a row has a cell for each column");
        self.filled = 0;
    }

    /// The rows of several tables of one kind, one below the other; none of none.
    pub fn stacked<'a>(mut parts: impl Iterator<Item = &'a Table>) -> Option<Table> {
        let mut all = parts.next()?.clone();
        for part in parts {
            for ((_, all), (_, part)) in all.columns.iter_mut().zip(&part.columns) {
                match (all, part) {
                    (Column::Whole(all), Column::Whole(part)) => all.extend_from_slice(part),
                    (Column::Number(all), Column::Number(part)) => all.extend_from_slice(part),
                    (Column::Text(all), Column::Text(part)) => all.append(part),
                    (all, part) => panic!("{} below {}", part.kind(), all.kind()),
                }
            }
        }
        Some(all)
    }

    /// The table as CSV with its head: numbers plainly, text quoted where it must be, nothing where there is nothing.
    pub fn csv(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let mut text = names.join(",") + "\n";
        self.csv_rows(&mut text);
        text
    }

    /// The rows of [`csv`](Self::csv) alone.
    pub(crate) fn csv_rows(&self, text: &mut String) {
        for row in 0..self.len() {
            for (i, (_, column)) in self.columns.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                column.write(row, text);
            }
            text.push('\n');
        }
    }
}

impl Column {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self {
            Column::Whole(rows) => rows.len(),
            Column::Number(rows) => rows.len(),
            Column::Text(words) => words.rows.len(),
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These rows of it, by their numbers.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Column {
        fn of<T: Copy>(all: &[Option<T>], rows: &[usize]) -> Vec<Option<T>> {
            rows.iter().map(|row| all.get(*row).copied().flatten()).collect()
        }
        match self {
            Column::Whole(all) => Column::Whole(of(all, rows)),
            Column::Number(all) => Column::Number(of(all, rows)),
            Column::Text(words) => Column::Text(rows.iter().map(|row| words.get(*row).unwrap_or_default()).collect()),
        }
    }

    /// A cell as text: plainly, and none where there is nothing.
    pub fn cell(&self, row: usize) -> Option<String> {
        match self {
            Column::Whole(all) => all.get(row).copied().flatten().map(|n| n.to_string()),
            Column::Number(all) => all.get(row).copied().flatten().map(|x| x.to_string()),
            Column::Text(words) => words.get(row).map(str::to_owned),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Column::Whole(_) => "whole numbers",
            Column::Number(_) => "numbers",
            Column::Text(_) => "text",
        }
    }

    fn write(&self, row: usize, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Column::Whole(rows) => rows[row].map_or(Ok(()), |n| write!(text, "{n}")),
            Column::Number(rows) => rows[row].map_or(Ok(()), |x| write!(text, "{x}")),
            Column::Text(words) => match words.get(row) {
                Some(cell) if cell.contains([',', '"', '\n', '\r']) => {
                    write!(text, "\"{}\"", cell.replace('"', "\"\""))
                }
                cell => {
                    text.push_str(cell.unwrap_or_default());
                    Ok(())
                }
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::new(&[text("a"), text("b"), number("c"), number("d"), whole("e")]);
        t.text("plain").text("two, \"three\"").number(None).number(f64::NAN).whole(None).end();
        t.text("plain").text("").number(0.5).number(Some(1.0)).whole(7).end();
        t
    }

    #[test]
    fn cells_are_quoted_where_csv_needs_it_and_empty_where_there_is_nothing() {
        assert_eq!(table().csv(), "a,b,c,d,e\nplain,\"two, \"\"three\"\"\",,,\nplain,,0.5,1,7\n");
    }

    #[test]
    fn text_that_is_said_again_is_kept_once() {
        let mut t = Table::new(&[text("flow")]);
        for name in ["video", "video", "voice", "", "video"] {
            t.text(name).end();
        }
        let Some((_, Column::Text(words))) = t.columns().next() else { panic!("a column of text") };
        assert_eq!(words.words(), ["video", "voice"]);
        assert_eq!(words.rows(), [Some(0), Some(0), Some(1), None, Some(0)]);
    }

    #[test]
    fn what_is_kept_comes_back_to_the_bit() {
        let mut t = Table::new(&[number("x"), whole("n"), text("w")]);
        for x in [0.1 + 0.2, 1e-300, f64::MAX, -0.0] {
            t.number(x).whole(u64::MAX).text("w").end();
        }
        let back: Table = serde_json::from_str(&serde_json::to_string(&t).unwrap()).unwrap();
        assert_eq!(back.csv(), t.csv());
        assert_eq!(back.len(), 4);
    }

    #[test]
    fn tables_of_one_kind_are_stacked_whatever_they_were_read_from() {
        let mut other = Table::new(&[text("a"), text("b"), number("c"), number("d"), whole("e")]);
        other.text("new").text("plain").number(2.0).number(None).whole(9).end();
        let read: Table = serde_json::from_str(&serde_json::to_string(&table()).unwrap()).unwrap();
        let all = Table::stacked([&read, &other, &table()].into_iter()).unwrap();
        let rows = |t: &Table| t.csv().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows(&all), [rows(&table()), rows(&other), rows(&table())].concat());
        assert_eq!(Table::stacked([].into_iter()), None);
    }

    #[test]
    fn rows_are_selected_and_columns_left_out() {
        let two = table().select(&[1, 1]).without(&["b", "c"]);
        assert_eq!(two.csv(), "a,d,e\nplain,1,7\nplain,1,7\n");
        assert_eq!(two.column("e").unwrap().cell(0).as_deref(), Some("7"));
        assert_eq!(table().column("c").unwrap().cell(0), None);
        assert_eq!(table().column("z"), None);
    }

    #[test]
    #[should_panic(expected = "all columns are of one length")]
    fn columns_of_different_lengths_are_no_table() {
        let _ = Table::of(vec![
            ("a".to_owned(), Column::Whole(vec![Some(1)])),
            ("b".to_owned(), Column::Whole(Vec::new())),
        ]);
    }

    #[test]
    #[should_panic(expected = "a number in a column of text")]
    fn a_cell_of_the_wrong_type_is_refused() {
        Table::new(&[text("flow")]).number(1.0);
    }
}
