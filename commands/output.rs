//! Where the rows of a command go: to stdout, and nothing else does. Messages, questions and progress go to stderr.
//!
//! A row is a line of a table for a person at a terminal, a line of the same columns without borders in a pipe, and with
//! `--json` one object on one line. A pipe that its reader has closed ends a command at once, quietly and with exit code 0:
//! every method answers [`Code::ClosedPipe`](crate::exit::Code::ClosedPipe) as its failure, for the command to pass on.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

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

/// Stdout. Buffered: nothing is certain to be out before [`Output::finish`].
pub struct Output {
    out: BufWriter<Box<dyn Write + Send>>,
    style: Style,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("style", &self.style).finish_non_exhaustive()
    }
}

impl Output {
    pub fn new(json: bool) -> Output {
        let stdout = io::stdout();
        let style = match (json, stdout.is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::Table,
            (false, false) => Style::Plain,
        };
        // What std keeps for stdout looks for line ends in all that is written to it.
        let out: Box<dyn Write + Send> = match stdout.as_fd().try_clone_to_owned() {
            Ok(descriptor) => Box::new(File::from(descriptor)),
            Err(_) => Box::new(stdout),
        };
        Output { out: BufWriter::with_capacity(64 * 1024, out), style }
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
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.write_all(b"\n"));
        written.map_err(|error| Failure::stdout(&error))
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

/// For rows that are laid out piece by piece. Errors are for [`Failure::stdout`].
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A JSON object whose fields stay in the order that they were given in; [`object!`] makes one.
#[derive(Clone, Debug)]
pub struct Object(pub Vec<(&'static str, Value)>);

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Makes an [`Object`](crate::output::Object) of names and whatever `serde_json::json!` takes.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::output::Object(vec![$(($name, serde_json::json!($value))),*])
    };
}
pub(crate) use object;

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
