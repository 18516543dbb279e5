//! A report as data: sections of sentences, tables and plots, written as text for a terminal or as
//! one HTML file without script. Every report of a run, a study, a sweep, a diagnosis or a plan is
//! a function to a [`Document`].

use std::fmt::Write;

use base64::Engine as _;
use linerate_model::finding::Severity;
use linerate_model::printable::printable;

use crate::boxes::Boxes;
use crate::frame::{Head, Route, class, element, line};
use crate::heat::HeatMap;
use crate::page::{self, escaped};
use crate::plot::Plot;
use crate::style::Style;
use crate::table::Table;
use crate::wrap::wrapped;

/// A report.
pub struct Document {
    /// Name of the HTML page.
    pub name: &'static str,
    /// From top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a report.
pub enum Block {
    /// The first line.
    Title(String),
    /// The first line of a section.
    Heading(String),
    /// The answer of a section, in one sentence.
    Answer(String),
    /// A sentence of its own.
    Paragraph(String),
    /// Qualification of an answer.
    Remark(String),
    /// Sentences, one on a line.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
    /// Lines that are never broken, so that commands can be copied.
    Verbatim(String),
    /// Text beside a label.
    Entry(Entry),
    /// An empty line of text.
    Space,
    /// A part that HTML shows on demand, and text does not.
    Details(String, Vec<Self>),
    /// A file inside the HTML page.
    Download(Download),
    /// The answer of an HTML page.
    Head(Head),
    /// The path as a line of an HTML page.
    Route(Route),
    /// Distributions, drawn in HTML.
    Boxes(Boxes),
    /// A grid, drawn in HTML.
    Heat(HeatMap),
    /// A finding of an HTML page.
    Finding(FindingCard),
}

/// A finding with its remedy.
pub struct FindingCard {
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub title: String,
    /// Where.
    pub subject: String,
    /// What it means.
    pub text: String,
    /// What a reader unfolds: how to change it, how to undo that, why.
    pub parts: Vec<(&'static str, Vec<Block>)>,
}

/// A file inside an HTML page.
pub struct Download {
    /// Name of the file.
    pub name: String,
    /// Text of the link.
    pub label: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Text beside a label, wrapped within its own column.
#[derive(Default)]
pub struct Entry {
    /// Stands out before the label.
    pub status: String,
    /// Colour of the status; it is bold without one.
    pub severity: Option<Severity>,
    /// With its padding: its length is the column of the text.
    pub label: String,
    /// The text.
    pub text: String,
    /// The text is one line of any length, so that commands can be copied.
    pub is_verbatim: bool,
}

impl Entry {
    fn text(&self, out: &mut String, style: Style) {
        let indent = self.status.chars().count() + self.label.chars().count();
        let status = match (self.status.as_str(), self.severity) {
            ("", _) => String::new(),
            (status, Some(severity)) => style.graded(severity, status),
            (status, None) => style.bold(status),
        };

        let lines = match self.is_verbatim {
            // A line end would begin a second command.
            true => vec![style.characters(&printable(&self.text.replace('\n', " ")))],
            false => wrapped(
                &style.line(&self.text),
                // A long label leaves this column, even if the line exceeds the terminal.
                style.columns.saturating_sub(indent).max(ENTRY_CHARS_MIN),
            ),
        };
        for (number, line) in lines.iter().enumerate() {
            let _ = match number {
                0 => writeln!(
                    out,
                    "{status}{}{line}",
                    style.characters(&printable(&self.label))
                ),
                _ => writeln!(out, "{:indent$}{line}", ""),
            };
        }
    }
}

/// Narrowest column of an entry's text.
const ENTRY_CHARS_MIN: usize = 30;

impl Document {
    /// Lines of at most `style.columns` characters; only verbatim ones may be longer.
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            block.text(&mut out, style);
        }
        out
    }

    /// One HTML file, light or dark as the reader's system is.
    pub fn html(&self) -> String {
        page::begin(self.name) + &self.elements() + page::END
    }

    /// Content of a page inside its frame.
    pub fn elements(&self) -> String {
        elements(&self.blocks)
    }
}

fn elements(blocks: &[Block]) -> String {
    blocks.iter().map(Block::html).collect()
}

impl Block {
    /// Text beside a label of `width` characters.
    pub fn entry(label: &str, width: usize, text: impl Into<String>) -> Self {
        Self::Entry(Entry {
            label: format!("{label:<width$}"),
            text: text.into(),
            ..Entry::default()
        })
    }

    /// Texts below each other, beside a label that is written once.
    pub fn entries(
        label: &str,
        width: usize,
        texts: impl IntoIterator<Item = String>,
    ) -> impl Iterator<Item = Self> {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        let texts = texts.into_iter().zip(labels);
        texts.map(move |(text, label)| Self::entry(label, width, text))
    }

    /// As [`Self::entry`], never wrapped or shortened.
    pub fn verbatim(label: &str, width: usize, text: impl Into<String>) -> Self {
        Self::Entry(Entry {
            label: format!("{label:<width$}"),
            text: text.into(),
            is_verbatim: true,
            ..Entry::default()
        })
    }

    /// Number of lines of its text.
    pub(crate) fn lines(&self, style: Style) -> usize {
        let mut text = String::new();
        self.text(&mut text, style);
        text.lines().count()
    }

    pub(crate) fn text(&self, out: &mut String, style: Style) {
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
                    let _ = writeln!(out, "{}", style.characters(&printable(line)));
                }
            }
            Self::Entry(entry) => entry.text(out, style),
            Self::Space => out.push('\n'),
            // A terminal can neither unfold a part nor save a file, and has sentences for the rest.
            Self::Details(..)
            | Self::Download(_)
            | Self::Head(_)
            | Self::Route(_)
            | Self::Boxes(_)
            | Self::Heat(_)
            | Self::Finding(_) => {}
        }
    }

    fn html(&self) -> String {
        match self {
            Self::Title(text) => format!("<h1>{}</h1>\n", line(text)),
            Self::Heading(text) => format!("<h2>{}</h2>\n", line(text)),
            Self::Answer(text) => format!("<p><strong>{}</strong></p>\n", line(text)),
            Self::Paragraph(text) => format!("<p>{}</p>\n", line(text)),
            Self::Remark(text) => format!("<p class=\"remark\">{}</p>\n", line(text)),
            Self::List(lines) => {
                let items: String = lines
                    .iter()
                    .map(|one| format!("<li>{}</li>\n", line(one)))
                    .collect();
                format!("<ul>{items}</ul>\n")
            }
            Self::Verbatim(text) => format!("<pre>{}</pre>\n", escaped(text)),
            Self::Entry(Entry {
                status,
                label,
                text,
                is_verbatim,
                ..
            }) => {
                let head = [status, label].map(|part| line(part.trim())).join(" ");
                let text = if *is_verbatim {
                    element("code", "", text)
                } else {
                    line(text)
                };
                format!("<p><strong>{head}</strong> {text}</p>\n")
            }
            Self::Space => String::new(),
            Self::Table(table) => table.html(),
            Self::Plot(plot) => plot.html(),
            Self::Details(summary, blocks) => {
                let parts = elements(blocks);
                format!(
                    "<details><summary>{}</summary>\n{parts}</details>\n",
                    line(summary)
                )
            }
            Self::Head(head) => head.html(),
            Self::Route(route) => route.html(),
            Self::Boxes(boxes) => boxes.html(),
            Self::Heat(heat) => heat.html(),
            Self::Finding(finding) => finding.html(),
            Self::Download(Download {
                name,
                label,
                media_type,
                bytes,
            }) => {
                let data = base64::engine::general_purpose::STANDARD.encode(bytes);
                let name = escaped(name);
                let label = line(label);
                format!(
                    "<p><a download=\"{name}\" \
                     href=\"data:{media_type};base64,{data}\">{label}</a></p>\n"
                )
            }
        }
    }
}

impl FindingCard {
    fn html(&self) -> String {
        let mut out = format!(
            "<article class=\"finding {}\"><h3>{} {}</h3>{}\n",
            class(self.severity),
            line(&self.title),
            element(
                "small",
                "severity",
                &linerate_model::stored_name(self.severity)
            ),
            element("p", "note", &self.subject)
        );
        out += &element("p", "", &self.text);

        for (summary, blocks) in &self.parts {
            let parts = elements(blocks);
            out += &format!("<details><summary>{summary}</summary>\n{parts}</details>\n");
        }
        out + "</article>\n"
    }
}

/// Text of any length in indented lines.
pub fn paragraph(out: &mut String, text: &str, indent: usize, style: Style) {
    for line in wrapped(&style.line(text), style.columns.saturating_sub(indent)) {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}
