//! A report as data: sections of sentences, tables and plots, written as text for a terminal or as one HTML file without
//! script.

pub(crate) mod chart;
pub(crate) mod plot;
mod scale;
pub(crate) mod style;
mod svg;
pub(crate) mod table;
pub(crate) mod wrap;

use std::fmt::Write;

use crate::page::{self, escaped};
use plot::Plot;
use style::{Style, shortened};
use table::Table;
use wrap::{LINE_CHARS, wrapped};

/// A report.
pub(crate) struct Document {
    /// Name of the HTML page.
    pub name: &'static str,
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a report.
pub(crate) enum Block {
    /// The first line.
    Title(String),
    /// The first line of a section.
    Heading(String),
    /// The answer of a section, in one sentence.
    Answer(String),
    /// A sentence of its own.
    Paragraph(String),
    /// What qualifies an answer.
    Remark(String),
    /// Sentences, one on a line.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
    /// Lines that are never broken, so that commands can be copied.
    Verbatim(String),
    /// A part that HTML shows on demand, and text does not.
    Details(&'static str, Box<Self>),
}

impl Document {
    /// Lines of at most 120 columns; only verbatim ones may be longer.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            block.text(&mut out, style);
        }
        out
    }

    /// One HTML file, light or dark as the reader's system is.
    pub(crate) fn html(&self) -> String {
        let mut out = page::begin(self.name);
        for block in &self.blocks {
            block.html(&mut out);
        }
        out.push_str(page::END);
        out
    }
}

impl Block {
    fn text(&self, out: &mut String, style: Style) {
        match self {
            Self::Title(text) | Self::Remark(text) => paragraph(out, text, 0, style),
            Self::Heading(text) => {
                let _ = writeln!(out, "\n{}", style.bold(&style.line(text)));
            }
            Self::Answer(text) => paragraph(out, text, 2, style),
            Self::Paragraph(text) => {
                out.push('\n');
                paragraph(out, text, 0, style);
            }
            Self::List(lines) => lines.iter().for_each(|line| paragraph(out, line, 2, style)),
            Self::Table(table) => {
                let _ = write!(out, "\n{}", table.text(style));
            }
            Self::Plot(plot) => {
                let _ = write!(out, "\n{}", plot.text(style));
            }
            Self::Verbatim(text) => {
                for line in text.lines() {
                    let _ = writeln!(out, "{}", style.characters(line));
                }
            }
            Self::Details(..) => {}
        }
    }

    fn html(&self, out: &mut String) {
        let line = |text: &str| escaped(&shortened(text));
        let _ = match self {
            Self::Title(text) => writeln!(out, "<h1>{}</h1>", line(text)),
            Self::Heading(text) => writeln!(out, "<h2>{}</h2>", line(text)),
            Self::Answer(text) => writeln!(out, "<p><strong>{}</strong></p>", line(text)),
            Self::Paragraph(text) => writeln!(out, "<p>{}</p>", line(text)),
            Self::Remark(text) => writeln!(out, "<p class=\"remark\">{}</p>", line(text)),
            Self::List(lines) => {
                let items: String = lines.iter().map(|one| format!("<li>{}</li>\n", line(one))).collect();
                writeln!(out, "<ul>{items}</ul>")
            }
            Self::Verbatim(text) => writeln!(out, "<pre>{}</pre>", escaped(text)),
            Self::Table(table) => {
                table.html(out);
                Ok(())
            }
            Self::Plot(plot) => {
                plot.html(out);
                Ok(())
            }
            Self::Details(summary, block) => {
                let _ = writeln!(out, "<details><summary>{}</summary>", line(summary));
                block.html(out);
                writeln!(out, "</details>")
            }
        };
    }
}

/// Text of any length in indented lines.
pub(crate) fn paragraph(out: &mut String, text: &str, indent: usize, style: Style) {
    for line in wrapped(&style.line(text), LINE_CHARS - indent) {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}
