//! Output for people: tables, colours where a terminal wants them, progress on stderr.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stderr, stdout};

/// Whether stdout takes colours: a terminal, and nobody said `NO_COLOR` (<https://no-color.org>).
pub(crate) fn colours() -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    stdout().is_terminal() && !forbidden && !dumb
}

/// A look in the terminal; nothing depends on it.
#[derive(Clone, Copy)]
pub(crate) enum Ink {
    Bold,
    Faint,
    Good,
    Bad,
}

/// Dresses `text`, if stdout takes colours.
pub(crate) fn paint(text: &str, ink: Ink) -> String {
    let code = match ink {
        Ink::Bold => "1",
        Ink::Faint => "2",
        Ink::Good => "32",
        Ink::Bad => "31",
    };
    if colours() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// A table set in columns: the first to the left, numbers to the right.
#[derive(Default)]
pub(crate) struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// With column heads.
    pub(crate) fn new(head: &[&str]) -> Self {
        Columns { rows: vec![head.iter().map(|h| (*h).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes it, each line after `indent`; the first line is the head.
    pub(crate) fn print(&self, out: &mut impl Write, indent: &str) -> std::io::Result<()> {
        self.write(out, indent, true)
    }

    /// The same for a table without a head.
    pub(crate) fn print_plain(&self, out: &mut impl Write, indent: &str) -> std::io::Result<()> {
        self.write(out, indent, false)
    }

    fn write(&self, out: &mut impl Write, indent: &str, head: bool) -> std::io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
        let right = |c: usize| {
            if !head {
                return false;
            }
            let mut cells =
                self.rows.iter().skip(1).filter_map(|r| r.get(c)).filter(|t| !t.is_empty() && *t != "–").peekable();
            c > 0
                && cells.peek().is_some()
                && cells.all(|t| t.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '<'))
        };
        let layout: Vec<(usize, bool)> = (0..columns).map(|c| (width(c), right(c))).collect();
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = String::from(indent);
            for (c, text) in row.iter().enumerate() {
                let (width, right) = layout[c];
                let gap = " ".repeat(width - text.chars().count());
                let last = c + 1 == row.len();
                let _ = match (right, last) {
                    (true, _) => write!(line, "{gap}{text}"),
                    (false, true) => write!(line, "{text}"),
                    (false, false) => write!(line, "{text}{gap}"),
                };
                if !last {
                    line.push_str("  ");
                }
            }
            writeln!(out, "{}", if head && i == 0 { paint(&line, Ink::Bold) } else { line })?;
        }
        Ok(())
    }
}

/// A remark on stderr, unless `quiet`.
pub(crate) fn note(quiet: bool, text: &str) {
    if !quiet {
        // Nobody reads it: nothing to be done about that.
        let _ = writeln!(stderr(), "{text}");
    }
}

/// A progress bar over `length` steps, shown only on a terminal and unless `quiet`.
pub(crate) fn progress(quiet: bool, length: u64, what: &str) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    // The template is ours; a wrong one would show in the first test that draws.
    if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg} {eta}") {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    bar
}
