//! Drawings as HTML: a figure with its title, the drawing, and the values in words.

use crate::boxes::Boxes;
use crate::draw;
use crate::frame::capitalized;
use crate::heat::HeatMap;
use crate::page::shown;
use crate::plot::Plot;
use crate::style::shortened;

impl Plot {
    /// As HTML with inline SVG, and the values as a table for readers who do not see it.
    pub(crate) fn html(&self) -> String {
        let note = format!("{}{}", self.key, self.note);
        let drawing = draw::svg(&self.sentence(), |width| draw::panels::plot(self, width));
        let summary = shown(&self.title);
        let values = self.values().html();
        let values = format!("<details><summary>Values: {summary}</summary>{values}</details>");
        figure(&self.title, &note, &(drawing + &values))
    }
}

impl Boxes {
    /// As HTML with inline SVG.
    pub(crate) fn html(&self) -> String {
        let rows = self.rows.iter();
        let rows: Vec<String> = rows
            .map(|row| format!("{} {}", row.name, row.text))
            .collect();
        let label = format!("{}: {}", self.title, rows.join("; "));
        let drawing = draw::svg(&shortened(&label), |width| draw::rows::boxes(self, width));
        figure(&self.title, &self.note, &drawing)
    }
}

impl HeatMap {
    /// As HTML with inline SVG.
    pub(crate) fn html(&self) -> String {
        let cells = self.rows.iter().flat_map(|row| &row.cells);
        let framed: Vec<&str> = cells
            .filter(|cell| cell.is_framed)
            .map(|cell| &*cell.title)
            .collect();
        let framed = match framed.as_slice() {
            [] => "none".to_owned(),
            framed => framed.join("; "),
        };
        let rows = self.rows.len();
        let columns = self.columns.len();
        let label = format!(
            "{}: {rows} rows and {columns} columns; framed: {framed}",
            self.title
        );
        let drawing = draw::svg(&shortened(&label), |width| draw::rows::heat(self, width));
        figure(&self.title, &self.note, &drawing)
    }
}

/// A figure with its title.
fn figure(title: &str, note: &str, content: &str) -> String {
    let [title, note] = [&*capitalized(title), note].map(shown);
    let note = match note.as_str() {
        "" => String::new(),
        note => format!(" <small>{note}</small>"),
    };
    format!("<figure><figcaption>{title}{note}</figcaption>\n{content}</figure>\n")
}
