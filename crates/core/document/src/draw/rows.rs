//! Rows below each other: distributions above one axis, and cells of a grid.

use super::ruler::horizontal;
use super::{Anchor, CHAR, Drawing, GAP, HEAD, HUES, NAMES_SHARE, TEXT, cut, widest, width_of};
use crate::boxes::{Boxes, ends};
use crate::heat::HeatMap;

/// Widest cell of a grid, and highest row.
const HEAT_SIDE_MAX: f64 = 90.0;
const HEAT_ROW_MAX: f64 = 30.0;
/// Height of a row with a box.
const BOX_ROW: f64 = 30.0;

/// Rows with a box each, above one axis.
pub(crate) fn boxes(boxes: &Boxes, width: f64) -> Drawing {
    let mut drawing = Drawing::new(width);
    let left = widest(boxes.rows.iter().map(|row| row.name.clone())) + 2.0 * GAP;
    let right = width - 2.0 * GAP - widest(boxes.rows.iter().map(|row| row.text.clone()));
    let x = horizontal(&boxes.axis, ends(&boxes.rows), (left, right));

    let bottom = BOX_ROW * boxes.rows.len() as f64 + GAP;
    for tick in &x.ticks {
        drawing.line("axis", (x.at(*tick), GAP), (x.at(*tick), bottom));
    }

    for (number, row) in boxes.rows.iter().enumerate() {
        let middle = GAP + BOX_ROW * (number as f64 + 0.5);
        let hue = row.hue % HUES;
        let base = middle + TEXT / 3.0;
        drawing.label(GAP, base, Anchor::Start, "name", &row.name);
        drawing.label(right + GAP, base, Anchor::Start, "", &row.text);

        let [low, from, to, high] =
            [row.whisker.0, row.interval.0, row.interval.1, row.whisker.1].map(|value| x.at(value));
        let whisker = format!("whisker h{hue}");
        drawing.line(&whisker, (low, middle), (high, middle));
        for end in [low, high] {
            drawing.line(&whisker, (end, middle - 5.0), (end, middle + 5.0));
        }
        let area = [from, middle - 8.0, to.max(from + 2.0), middle + 8.0];
        drawing.rectangle(&format!("area h{hue}"), area, &row.title);
        let median = x.at(row.median);
        drawing.line("median", (median, middle - 10.0), (median, middle + 10.0));
    }

    drawing.foot(&boxes.axis, &x, bottom);
    drawing
}

/// A grid of cells with the names of its rows and columns.
pub(crate) fn heat(heat: &HeatMap, width: f64) -> Drawing {
    let mut drawing = Drawing::new(width);
    let names_max = (width * NAMES_SHARE / CHAR) as usize;
    let names = heat.rows.iter().map(|row| cut(&row.name, names_max));
    let left = widest(names) + 2.0 * GAP;
    let count = heat.columns.len().max(1) as f64;
    let side = ((width - left - GAP) / count).min(HEAT_SIDE_MAX);
    let high = side.clamp(TEXT, HEAT_ROW_MAX);

    let heads = heat.columns.iter().map(|name| width_of(name) + CHAR);
    // Where names do not fit beside each other, each takes the place of several.
    let every = (heads.fold(0.0, f64::max) / side).ceil().max(1.0) as usize;
    let place = |at: usize| left + side * at as f64;
    for (at, name) in heat.columns.iter().enumerate().step_by(every) {
        let half = width_of(name) / 2.0;
        let middle = (place(at) + side / 2.0).clamp(left.min(half), width - half);
        drawing.label(middle, TEXT, Anchor::Middle, "soft", name);
    }

    for (number, row) in heat.rows.iter().enumerate() {
        let top = HEAD + high * number as f64;
        let base = top + high / 2.0 + TEXT / 3.0;
        let name = cut(&row.name, names_max);
        drawing.label(left - GAP, base, Anchor::End, "", &name);

        for (at, cell) in row.cells.iter().enumerate() {
            let from = place(at);
            let to = place(at + 1);
            let framed = match (cell.is_framed, heat.frames_best) {
                (false, _) => "",
                (true, false) => " framed",
                (true, true) => " framed best",
            };
            let class = match cell.share {
                None => "cell none".to_owned(),
                Some(share) => {
                    let percent = 100.0 * share.clamp(0.0, 1.0);
                    format!("cell{framed}\" style=\"--heat:{percent:.0}%")
                }
            };
            // Frames of neighbours do not hide each other.
            let area = [from + 1.5, top + 1.5, to - 1.5, top + high - 1.5];
            drawing.rectangle(&class, area, &cell.title);

            if width_of(&cell.text) + 2.0 < to - from {
                let middle = f64::midpoint(from, to);
                drawing.label(middle, base, Anchor::Middle, "", &cell.text);
            }
        }
    }

    drawing.height = HEAD + high * heat.rows.len() as f64 + GAP;
    drawing
}
