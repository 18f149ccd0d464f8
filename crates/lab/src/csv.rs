//! Tables as CSV.

use std::fmt::Write as _;

/// A table being written: numbers plainly, text quoted where it must be, nothing where there is nothing.
pub(crate) struct Table {
    pub(crate) text: String,
    first: bool,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Table {
        Table { text: head.join(",") + "\n", first: true }
    }

    fn gap(&mut self) {
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
    }

    pub(crate) fn text(&mut self, cell: &str) -> &mut Self {
        self.gap();
        if cell.contains([',', '"', '\n', '\r']) {
            let _ = write!(self.text, "\"{}\"", cell.replace('"', "\"\""));
        } else {
            self.text.push_str(cell);
        }
        self
    }

    pub(crate) fn whole(&mut self, n: u64) -> &mut Self {
        self.gap();
        let _ = write!(self.text, "{n}");
        self
    }

    /// Nothing for what is missing or not finite.
    pub(crate) fn number(&mut self, x: impl Into<Option<f64>>) -> &mut Self {
        self.gap();
        if let Some(x) = x.into().filter(|x| x.is_finite()) {
            let _ = write!(self.text, "{x}");
        }
        self
    }

    pub(crate) fn end(&mut self) {
        self.text.push('\n');
        self.first = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_csv_needs_it_and_empty_where_there_is_no_number() {
        let mut t = Table::new(&["a", "b", "c", "d"]);
        t.text("plain").text("two, \"three\"").number(None).number(f64::NAN).end();
        t.whole(7).number(0.5).number(Some(1.0)).text("").end();
        assert_eq!(t.text, "a,b,c,d\nplain,\"two, \"\"three\"\"\",,\n7,0.5,1,\n");
    }
}
