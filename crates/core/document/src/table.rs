//! Tables: made once from a report, written as text, HTML and comma-separated values.

use std::fmt::Write;

use crate::page::shown;

use crate::style::Style;
use crate::wrap::wrapped;

/// A table with an id, a title with the units, and notes.
pub struct Table {
    /// Its number, for instance `T2`.
    pub id: &'static str,
    /// Subject.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Remarks for readers.
    pub notes: Vec<String>,
}

/// One column.
pub struct Column {
    head: String,
    /// Right-aligned.
    is_number: bool,
}

/// One cell.
#[derive(Clone, Default)]
pub struct Cell {
    text: String,
    is_marked: bool,
    /// Share of the row's best, which HTML shows as a colour.
    heat: Option<f64>,
}

impl Cell {
    /// A cell, marked or not.
    pub fn marked(text: String, is_marked: bool) -> Self {
        Self {
            text,
            is_marked,
            heat: None,
        }
    }

    /// Colours the cell in HTML by a share from 0 to 1.
    pub fn heated(self, heat: Option<f64>) -> Self {
        Self { heat, ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::marked(text.into(), false)
    }
}

/// Builds a table from left to right: each column has a head and a cell for every item.
pub struct TableOf<'a, T> {
    items: &'a [T],
    table: Table,
}

impl<'a, T> TableOf<'a, T> {
    /// A left-aligned column.
    pub fn text<C: Into<Cell>>(self, head: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(head, false, cell)
    }

    /// A right-aligned column.
    pub fn number<C: Into<Cell>>(self, head: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(head, true, cell)
    }

    /// A right-aligned column for each of several keys.
    pub fn numbers<K: Copy>(
        self,
        keys: impl IntoIterator<Item = K>,
        head: impl Fn(K) -> String,
        cell: impl Fn(&'a T, K) -> Cell,
    ) -> Self {
        let column = |table: Self, key| table.number(&head(key), |item| cell(item, key));
        keys.into_iter().fold(self, column)
    }

    fn column<C: Into<Cell>>(
        mut self,
        head: &str,
        is_number: bool,
        cell: impl Fn(&'a T) -> C,
    ) -> Self {
        let head = head.to_owned();
        self.table.columns.push(Column { head, is_number });

        for (row, item) in self.table.rows.iter_mut().zip(self.items) {
            row.push(cell(item).into());
        }
        self
    }

    /// Adds notes below the table.
    pub fn notes<N: Into<String>>(mut self, notes: impl IntoIterator<Item = N>) -> Self {
        self.table.notes.extend(notes.into_iter().map(Into::into));
        self
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }

    /// The table; `None` without rows.
    pub fn non_empty(self) -> Option<Table> {
        (!self.items.is_empty()).then_some(self.table)
    }
}

const GAP: usize = 2;
/// Widest column but the last; longer text wraps.
const INNER_CHARS_MAX: usize = 46;
/// Words of HTML that are never broken.
const WHOLE_CHARS_MAX: usize = 10;
/// Narrowest last column of words before it takes lines of its own.
const WORDS_CHARS_MIN: usize = 24;

impl Table {
    /// A table with a row for each item.
    pub fn of<'a, T>(id: &'static str, title: impl Into<String>, items: &'a [T]) -> TableOf<'a, T> {
        let table = Self {
            id,
            title: title.into(),
            columns: Vec::new(),
            rows: items.iter().map(|_| Vec::new()).collect(),
            notes: Vec::new(),
        };
        TableOf { items, table }
    }

    /// A table of words.
    pub fn of_words<const N: usize>(
        id: &'static str,
        title: impl Into<String>,
        heads: [&str; N],
        rows: &[[String; N]],
    ) -> Self {
        let mut table = Self::of(id, title, rows);
        for (place, head) in heads.into_iter().enumerate() {
            table = table.text(head, |row| row[place].as_str());
        }
        table.table()
    }

    /// The heads and the cells without marks, comma-separated (RFC 4180).
    pub fn csv(&self) -> String {
        csv_line(self.columns.iter().map(|column| &column.head)) + &self.csv_rows()
    }

    /// As [`Self::csv`], without the heads.
    pub fn csv_rows(&self) -> String {
        self.rows
            .iter()
            .map(|row| csv_line(row.iter().map(|cell| &cell.text)))
            .collect()
    }

    /// Lines of at most `style.columns` characters: long words are wrapped in the last column, and
    /// columns that do not fit follow below, beside the first one again.
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        let title = format!("{} {}", self.id, self.title);
        if !title.trim().is_empty() {
            for line in wrapped(&style.line(title.trim()), style.columns) {
                let _ = writeln!(out, "{}", style.bold(&line));
            }
        }

        let rows: Vec<Vec<Cell>> = self.rows.iter().map(|row| plain(row, style)).collect();
        let widths = self.widths(&rows, style);
        for block in blocks(&widths, style.columns) {
            self.block(&mut out, &block, &widths, &rows, style);
        }

        for note in &self.notes {
            for line in wrapped(&style.line(note), style.columns.saturating_sub(2)) {
                let _ = writeln!(out, "  {line}");
            }
        }

        out
    }

    /// All columns fit beside each other.
    pub fn fits(&self, style: Style) -> bool {
        let rows: Vec<Vec<Cell>> = self.rows.iter().map(|row| plain(row, style)).collect();
        blocks(&self.widths(&rows, style), style.columns).len() < 2
    }

    fn widths(&self, rows: &[Vec<Cell>], style: Style) -> Vec<usize> {
        let last = self.columns.len().saturating_sub(1);
        let width = |place: usize, column: &Column| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            let widest = cells.map(|cell| chars(&cell.text)).max().unwrap_or(0);
            // Signs that a terminal cannot show take several characters of ASCII.
            let width = widest.max(chars(&style.line(&column.head)));
            width.min(if place == last {
                style.columns.saturating_sub(GAP)
            } else {
                INNER_CHARS_MAX
            })
        };

        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(p, c)| width(p, c))
            .collect();
        // Words in the last column take what is left of the line.
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();

        if let (
            Some(last),
            Some(Column {
                is_number: false, ..
            }),
        ) = (widths.last_mut(), self.columns.last())
        {
            *last = (*last).min(
                style
                    .columns
                    .saturating_sub(before + GAP)
                    .max(WORDS_CHARS_MIN),
            );
        }

        widths
    }

    fn block(
        &self,
        out: &mut String,
        places: &[usize],
        widths: &[usize],
        rows: &[Vec<Cell>],
        style: Style,
    ) {
        let heads: Vec<Cell> = self
            .columns
            .iter()
            .map(|c| style.line(&c.head).into())
            .collect();
        self.line(out, places, widths, &heads, style);

        for row in rows {
            self.line(out, places, widths, row, style);
        }
    }

    /// One row, over as many lines as the words of its last column need.
    fn line(
        &self,
        out: &mut String,
        places: &[usize],
        widths: &[usize],
        row: &[Cell],
        style: Style,
    ) {
        let lines_of = |place: usize| {
            let cell = row.get(place).cloned().unwrap_or_default();
            let width = widths.get(place).copied().unwrap_or(0).max(1);
            let lines = wrapped(&cell.text, width);
            (place, width, cell.is_marked, lines)
        };
        let cells: Vec<_> = places.iter().map(|place| lines_of(*place)).collect();
        let height = cells
            .iter()
            .map(|(.., lines)| lines.len())
            .max()
            .unwrap_or(0);
        for number in 0..height {
            let mut line = String::new();
            for (place, width, is_marked, lines) in &cells {
                let text = lines.get(number).map_or("", String::as_str);
                let padding = " ".repeat(width.saturating_sub(chars(text)));

                let shown = if *is_marked {
                    style.bold(text)
                } else {
                    text.to_owned()
                };
                let is_text = self
                    .columns
                    .get(*place)
                    .is_some_and(|column| !column.is_number);
                let (before, after) = if is_text {
                    ("", padding.as_str())
                } else {
                    (padding.as_str(), "")
                };
                let _ = write!(line, "{}{before}{shown}{after}", " ".repeat(GAP));
            }

            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    /// The table as HTML.
    pub(crate) fn html(&self) -> String {
        let caption = match self.title.as_str() {
            "" => String::new(),
            title => format!("<caption>{} {}</caption>", self.id, shown(title)),
        };
        let width = match self.columns.len() {
            0..=8 => "",
            9..=12 => " class=\"many\"",
            _ => " class=\"most\"",
        };
        let mut out = format!("<table{width}>{caption}\n<thead><tr>");

        for column in &self.columns {
            let class = class(column);
            let head = shown(&column.head);
            out += &format!("<th scope=\"col\"{class}>{head}</th>");
        }

        out += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            out += "<tr>";
            for (cell, column) in row.iter().zip(&self.columns) {
                let text = shown(&cell.text);
                let heat = cell.heat.map_or_else(String::new, |heat| {
                    format!(" style=\"--heat:{:.0}%\"", 100.0 * heat)
                });
                let label = match text.as_str() {
                    "" => String::new(),
                    _ => format!(" data-label=\"{}\"", shown(&column.head)),
                };
                // Ids and states are not broken where a table is squeezed.
                let is_whole = !column.is_number && text.chars().count() <= WHOLE_CHARS_MAX;
                let whole = match (is_whole, text.as_str()) {
                    (false, _) | (_, "") => class(column),
                    (true, _) => " class=\"words whole\"",
                };
                let class = format!("{whole}{label}{heat}");
                out += &if cell.is_marked {
                    format!("<td{class}><strong>*{text}</strong></td>")
                } else {
                    format!("<td{class}>{text}</td>")
                };
            }

            out += "</tr>\n";
        }

        out += "</tbody></table>\n";
        for note in &self.notes {
            out += &format!("<p class=\"note\">{}</p>\n", shown(note));
        }
        out
    }
}

/// Cells as they are printed: marked ones have a `*` too, because a terminal may not show bold
/// letters.
fn plain(row: &[Cell], style: Style) -> Vec<Cell> {
    let cell = |cell: &Cell| {
        let mark = if cell.is_marked { "*" } else { "" };
        Cell::marked(style.line(&format!("{mark}{}", cell.text)), cell.is_marked)
    };
    row.iter().map(cell).collect()
}

/// Places of columns that fit beside each other; the first one is in every block.
fn blocks(widths: &[usize], line_chars: usize) -> Vec<Vec<usize>> {
    let Some(first) = widths.first() else {
        return Vec::new();
    };
    let mut blocks = vec![vec![0]];
    let mut used = GAP + first;

    for (place, width) in widths.iter().enumerate().skip(1) {
        // A column that is too wide for any line still stands beside the first one.
        if used + GAP + width > line_chars && used > GAP + first {
            // Each block repeats the first column, which names the rows.
            blocks.push(vec![0]);
            used = GAP + first;
        }

        used += GAP + width;
        if let Some(block) = blocks.last_mut() {
            block.push(place);
        }
    }

    blocks
}

fn class(column: &Column) -> &'static str {
    if column.is_number {
        ""
    } else {
        " class=\"words\""
    }
}

/// Comma-separated fields with their line end (RFC 4180).
pub fn csv_line(fields: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted = fields.into_iter().map(|field| {
        let field = field.as_ref();
        if field.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

fn chars(text: &str) -> usize {
    text.chars().count()
}
