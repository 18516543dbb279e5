//! Grids of cells whose colour is a share.

use crate::draw;
use crate::plot;
use crate::style::shortened;

/// A grid.
pub struct HeatMap {
    /// Subject.
    pub title: String,
    /// Meaning of rows, columns, colours and frames.
    pub note: String,
    /// Names from left to right.
    pub columns: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<HeatRow>,
}

/// A row, with a cell for each column.
pub struct HeatRow {
    /// Its name.
    pub name: String,
    /// From left to right.
    pub cells: Vec<HeatCell>,
}

/// A cell.
#[derive(Default)]
pub struct HeatCell {
    /// Its colour, 0..=1; `None` of one without a result.
    pub share: Option<f64>,
    /// Its value, where there is room.
    pub text: String,
    /// All about it, while the pointer is on it.
    pub title: String,
    /// It stands out.
    pub is_framed: bool,
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
        plot::caption(out, &self.title, &self.note);
        draw::svg(out, &shortened(&label), |width| draw::heat(self, width));
        out.push_str("</figure>\n");
    }
}
