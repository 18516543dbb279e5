//! Drawings as HTML: a figure with its title, the drawing, and the values in words.

use std::fmt::Write;

use crate::boxes::Boxes;
use crate::draw;
use crate::frame::capitalized;
use crate::heat::HeatMap;
use crate::page::escaped;
use crate::plot::Plot;
use crate::style::shortened;

impl Plot {
    /// As HTML with inline SVG, and the values as a table for readers who do not see it.
    pub fn html(&self, out: &mut String) {
        caption(out, &self.title, &format!("{}{}", self.key, self.note));
        draw::svg(out, &self.sentence(), |width| {
            draw::panels::plot(self, width)
        });

        let summary = escaped(&shortened(&self.title));
        let _ = write!(out, "<details><summary>Values: {summary}</summary>");
        self.values().html(out);
        out.push_str("</details></figure>\n");
    }
}

impl Boxes {
    /// As HTML with inline SVG.
    pub(crate) fn html(&self, out: &mut String) {
        let rows = self
            .rows
            .iter()
            .map(|row| format!("{} {}", row.name, row.text));
        let label = format!("{}: {}", self.title, rows.collect::<Vec<_>>().join("; "));
        caption(out, &self.title, &self.note);
        draw::svg(out, &shortened(&label), |width| {
            draw::rows::boxes(self, width)
        });
        out.push_str("</figure>\n");
    }
}

impl HeatMap {
    /// As HTML with inline SVG.
    pub(crate) fn html(&self, out: &mut String) {
        let cells = || self.rows.iter().flat_map(|row| &row.cells);
        let framed = cells()
            .filter(|cell| cell.is_framed)
            .map(|cell| &*cell.title);
        let framed: Vec<&str> = framed.collect();
        let label = format!(
            "{}: {} rows and {} columns; framed: {}",
            self.title,
            self.rows.len(),
            self.columns.len(),
            if framed.is_empty() {
                "none".to_owned()
            } else {
                framed.join("; ")
            }
        );
        caption(out, &self.title, &self.note);
        draw::svg(out, &shortened(&label), |width| {
            draw::rows::heat(self, width)
        });
        out.push_str("</figure>\n");
    }
}

/// Begins a figure with its title.
fn caption(out: &mut String, title: &str, note: &str) {
    let [title, note] = [&*capitalized(title), note].map(|text| escaped(&shortened(text)));
    let note = match note.as_str() {
        "" => String::new(),
        note => format!(" <small>{note}</small>"),
    };
    let _ = writeln!(out, "<figure><figcaption>{title}{note}</figcaption>");
}
