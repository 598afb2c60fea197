//! Where the rows of a command go: to stdout, and nothing else does. Messages, questions and progress go to stderr.
//!
//! A row is a line of a table for a person at a terminal, a line of the same columns without borders in a pipe, and with
//! `--json` one object on one line. A pipe that its reader has closed ends a command at once, quietly and with exit code 0:
//! every method answers [`Code::ClosedPipe`](crate::exit::Code::ClosedPipe) as its failure, for the command to pass on.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::exit::Failure;
use crate::format;

/// What rows look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With borders, fitted to the width of the terminal.
    Table,
    /// Aligned columns, and nothing shortened.
    Plain,
    /// One object on one line.
    Json,
}

/// Stdout, held by one command until it ends. Buffered: nothing is certain to be out before [`Output::finish`].
#[derive(Debug)]
pub struct Output {
    out: BufWriter<StdoutLock<'static>>,
    style: Style,
}

impl Output {
    pub fn new(json: bool) -> Output {
        let stdout = io::stdout();
        let style = match (json, stdout.is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::Table,
            (false, false) => Style::Plain,
        };
        Output { out: BufWriter::with_capacity(64 * 1024, stdout.lock()), style }
    }

    pub fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// Writes one object on a line, for programs.
    pub fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, object)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| Failure::stdout(&error))
    }

    /// Writes one line of text, for people. What comes from a file has gone through [`format::printable`].
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes()).and_then(|()| self.bytes(b"\n"))
    }

    /// Writes bytes that the caller has laid out.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(|error| Failure::stdout(&error))
    }

    /// Writes rows in the style that stdout takes, for people.
    pub fn rows(&mut self, rows: &Rows) -> Result<(), Failure> {
        self.line(&if self.style == Style::Table { rows.bordered() } else { rows.aligned() })
    }

    /// Has what was written so far seen before something is asked or takes long.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| Failure::stdout(&error))
    }

    /// Whether everything got out.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| Failure::stdout(&error))
    }
}

/// A column of [`Rows`].
#[derive(Clone, Copy, Debug)]
pub struct Column {
    title: &'static str,
    right: bool,
}

/// A column of text.
pub fn text(title: &'static str) -> Column {
    Column { title, right: false }
}

/// A column of numbers.
pub fn number(title: &'static str) -> Column {
    Column { title, right: true }
}

/// Rows with a header.
#[derive(Clone, Debug)]
pub struct Rows {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    pub fn new(columns: &[Column]) -> Rows {
        Rows { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each column, in their order.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.iter().map(|cell| format::printable(cell)).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn bordered(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(self.columns.iter().map(|column| Cell::new(column.title)));
        for row in &self.rows {
            table.add_row(self.columns.iter().zip(row).map(|(column, cell)| {
                Cell::new(cell).set_alignment(if column.right { CellAlignment::Right } else { CellAlignment::Left })
            }));
        }
        table.to_string()
    }

    fn aligned(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.to_uppercase()).collect();
        let all = || std::iter::once(&titles).chain(&self.rows);
        let widths: Vec<usize> =
            (0..titles.len()).map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let cells = self.columns.iter().zip(&widths).zip(row).map(|((column, &width), cell)| {
                if column.right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        all().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let mut rows = Rows::new(&[text("topic"), number("bytes")]);
        rows.push(vec!["a".into(), "7".into()]);
        rows.push(vec!["\u{1b}[31mréd".into(), "1234567".into()]);
        rows
    }

    #[test]
    fn columns_line_up_and_control_characters_do_not_reach_the_terminal() {
        assert_eq!(rows().aligned(), "TOPIC            BYTES\na                    7\n\\u{1b}[31mréd  1234567");
        let bordered = rows().bordered();
        assert!(bordered.contains("│ \\u{1b}[31mréd ┆ 1234567 │"), "{bordered}");
        assert!(bordered.contains("│ a             ┆       7 │"), "{bordered}");
    }
}
