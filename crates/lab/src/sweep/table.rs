//! Results as columns: each of one type, with its unit in its name.

use std::fmt::Write as _;

/// A table of columns of the same length.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with the unit.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Text; never missing.
    Text(Vec<String>),
    /// Whole numbers; never missing.
    Whole(Vec<u64>),
    /// Numbers, finite or missing.
    Real(Vec<Option<f64>>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::Text(v) => v.len(),
            Values::Whole(v) => v.len(),
            Values::Real(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These rows of it.
    pub fn select(&self, rows: &[usize]) -> Values {
        fn of<T: Clone>(v: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().filter_map(|i| v.get(*i).cloned()).collect()
        }
        match self {
            Values::Text(v) => Values::Text(of(v, rows)),
            Values::Whole(v) => Values::Whole(of(v, rows)),
            Values::Real(v) => Values::Real(of(v, rows)),
        }
    }

    fn write(&self, row: usize, out: &mut String) {
        match self {
            Values::Text(v) => match v.get(row) {
                Some(text) if text.contains([',', '"', '\n', '\r']) => {
                    let _ = write!(out, "\"{}\"", text.replace('"', "\"\""));
                }
                Some(text) => out.push_str(text),
                None => {}
            },
            Values::Whole(v) => {
                let _ = v.get(row).map(|n| write!(out, "{n}"));
            }
            Values::Real(v) => {
                let _ = v.get(row).copied().flatten().map(|x| write!(out, "{x}"));
            }
        }
    }
}

impl Table {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|c| c.name == name).map(|c| &c.values)
    }

    /// The table as CSV [RFC 4180]: a missing number is an empty field.
    pub fn to_csv(&self) -> String {
        let mut out = self.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(",");
        out.push('\n');
        for row in 0..self.rows() {
            for (i, column) in self.columns.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                column.values.write(row, &mut out);
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_csv_with_quotes_where_commas_are_and_nothing_where_no_number_is() {
        let column = |name: &str, values| Column { name: name.to_owned(), values };
        let table = Table {
            columns: vec![
                column("controller", Values::Text(vec!["rcs".into(), "rap:a=1,b=\"2\"".into()])),
                column("seed", Values::Whole(vec![1, 2])),
                column("loss_ratio", Values::Real(vec![Some(0.1), None])),
            ],
        };
        assert_eq!(table.to_csv(), "controller,seed,loss_ratio\nrcs,1,0.1\n\"rap:a=1,b=\"\"2\"\"\",2,\n");
        assert_eq!(table.column("seed").unwrap().select(&[1]), Values::Whole(vec![2]));
    }
}
