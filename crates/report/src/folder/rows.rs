//! The tables of a run, columns by name, and lines made of them.

use super::error::{FolderError, read};
use fairpace_lab::{Column, Table, Words};
use std::borrow::Cow;
use std::path::Path;

/// Points per line beyond which neighbours are averaged: a chart is a thousand pixels wide.
const MAX_POINTS: usize = 1500;
/// Characters of a cell in a message.
const MAX_SHOWN: usize = 40;

/// A table of a run: as the run has it in memory, or read from a file.
pub(super) struct Rows(Table);

/// One row of it.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    table: &'a Table,
    at: usize,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows(Table::new(&[]))
    }
}

impl From<Table> for Rows {
    fn from(table: Table) -> Rows {
        Rows(table)
    }
}

impl Rows {
    /// A CSV file: a column is of whole numbers or of numbers where its name says so and all its cells are, and else of text.
    pub(super) fn read(path: &Path) -> Result<Rows, FolderError> {
        let text = read(path)?;
        let mut lines = text.lines();
        let head = lines.next().map(fields).unwrap_or_default();
        let malformed = |problem| FolderError::Malformed { path: path.to_owned(), problem };
        let mut cells: Vec<Cells> = head.iter().map(|name| Cells::of(name)).collect();
        for (n, line) in lines.enumerate() {
            let row = fields(line);
            if row.len() != head.len() {
                let problem = format!("line {} has {} fields, the head has {}", n + 2, row.len(), head.len());
                return Err(malformed(problem));
            }
            for ((name, column), cell) in head.iter().zip(&mut cells).zip(row) {
                if has_unit(name) && !cell.is_empty() && cell.parse::<f64>().is_err() {
                    let shown: String = cell.chars().take(MAX_SHOWN).collect();
                    return Err(malformed(format!("line {} has `{shown}` for {name}, which is no number", n + 2)));
                }
                column.push(cell);
            }
        }
        let mut columns: Vec<(String, Column)> = Vec::with_capacity(head.len());
        for (name, cells) in head.into_iter().zip(cells) {
            // Of two columns of one name the first counts.
            if !columns.iter().any(|(n, _)| *n == name) {
                columns.push((name, cells.0));
            }
        }
        Ok(Rows(Table::of(columns)))
    }

    /// All rows, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.0.len()).map(|at| Row { table: &self.0, at })
    }
}

impl<'a> Row<'a> {
    /// A cell as text; no text where there is nothing.
    pub(super) fn text(self, column: &str) -> Cow<'a, str> {
        match self.table.column(column) {
            Some(Column::Text(words)) => words.get(self.at).unwrap_or_default().into(),
            Some(numbers) => numbers.cell(self.at).unwrap_or_default().into(),
            None => "".into(),
        }
    }

    /// A cell that is a finite number.
    pub(super) fn number(self, column: &str) -> Option<f64> {
        let number = match self.table.column(column)? {
            Column::Whole(all) => all.get(self.at).copied().flatten().map(|n| n as f64),
            Column::Number(all) => all.get(self.at).copied().flatten(),
            Column::Text(words) => words.get(self.at)?.parse().ok(),
        };
        number.filter(|x| x.is_finite())
    }

    /// Whether a cell has this text.
    pub(super) fn is(self, column: &str, text: &str) -> bool {
        match self.table.column(column) {
            Some(Column::Whole(all)) => match all.get(self.at).copied().flatten() {
                Some(n) => text.parse() == Ok(n),
                None => text.is_empty(),
            },
            _ => self.text(column) == text,
        }
    }
}

/// Columns of whole numbers without a unit. Names of flows may look like numbers, and are none.
const COUNTED: &[&str] = &["seed", "terminal", "user", "carrier", "super_frame", "slot", "silent_slots_after", "adu"];

/// Whether a column of that name has numbers only.
fn has_unit(name: &str) -> bool {
    ["_s", "_ms", "_bps", "_pps", "_packets", "_bytes"].iter().any(|unit| name.ends_with(unit))
}

/// A column while its cells are read.
struct Cells(Column);

impl Cells {
    fn of(name: &str) -> Cells {
        let is_counted = has_unit(name) || COUNTED.contains(&name);
        Cells(if is_counted { Column::Whole(Vec::new()) } else { Column::Text(Words::default()) })
    }

    fn push(&mut self, cell: String) {
        // The first cell that is no whole number makes the column numbers, the first that is no number makes it text. Cells
        // before keep their value; digits such as a trailing zero are kept only from whole numbers and text.
        match &mut self.0 {
            Column::Whole(all) if cell.is_empty() => all.push(None),
            Column::Number(all) if cell.is_empty() => all.push(None),
            Column::Whole(all) => match (cell.parse(), cell.parse::<f64>()) {
                (Ok(n), _) => all.push(Some(n)),
                (_, Ok(x)) => {
                    let numbers = all.iter().map(|n| n.map(|n| n as f64)).chain([Some(x)]).collect();
                    self.0 = Column::Number(numbers);
                }
                _ => self.become_text(&cell),
            },
            Column::Number(all) => match cell.parse() {
                Ok(x) => all.push(Some(x)),
                Err(_) => self.become_text(&cell),
            },
            Column::Text(words) => words.extend([cell]),
        }
    }

    fn become_text(&mut self, cell: &str) {
        let before = (0..self.0.len()).map(|row| self.0.cell(row).unwrap_or_default());
        self.0 = Column::Text(before.chain([cell.to_owned()]).collect());
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

    fn read_of(csv: &str) -> Result<Rows, FolderError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), csv).unwrap();
        Rows::read(file.path())
    }

    #[test]
    fn columns_have_the_type_of_all_their_cells() {
        let rows = read_of("seed,x,user,flow\n1,2,7,007\n18446744073709551615,0.5,b,1e3\n,,,\n").unwrap();
        let all: Vec<Row<'_>> = rows.iter().collect();
        let column = |name| all.iter().map(|row| row.text(name)).collect::<Vec<_>>();
        assert_eq!(column("seed"), ["1", "18446744073709551615", ""]);
        assert_eq!(column("user"), ["7", "b", ""]);
        assert_eq!(column("flow"), ["007", "1e3", ""]);
        assert_eq!(column("nowhere"), ["", "", ""]);
        assert_eq!(all.iter().map(|row| row.number("x")).collect::<Vec<_>>(), [Some(2.0), Some(0.5), None]);
        assert_eq!(all[0].number("user"), Some(7.0));
        assert!(all[1].is("seed", "18446744073709551615") && !all[1].is("seed", "1") && all[0].is("x", "2"));
        assert!(all[2].is("seed", "") && !all[2].is("seed", "a") && !all[0].is("flow", "7"));
    }

    #[test]
    fn what_is_no_number_is_named_and_no_gap() {
        let told = |csv: &str| read_of(csv).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(told("t_s,flow\n1,a\nsoon,a\n").ends_with("line 3 has `soon` for t_s, which is no number"));
        assert!(told("t_s,flow\n1,a,b\n").ends_with("line 2 has 3 fields, the head has 2"));
        assert_eq!(told("t_s,flow\n,a\n1e3,soon\n"), "");
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
