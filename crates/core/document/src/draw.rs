//! Drawings as inline SVG, and the elements that they consist of. Colour, width and dash of an element are those of its CSS class, so light, dark and print are
//! matters of the style sheet.

pub(crate) mod panels;
pub(crate) mod rows;
mod ruler;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::page::escaped;
use crate::style::shortened;

/// Widths of the drawings of a plot, in units of text of 12: for a page, and for a narrow screen.
const WIDTHS: [f64; 2] = [900.0, 400.0];
/// Widest character of a label; the reader's font is not known.
const CHAR: f64 = 6.8;
/// Height of a label.
const TEXT: f64 = 14.0;
/// Between the name of a chart and its axis.
const HEAD: f64 = 24.0;
/// Between a chart and what is beside it.
const GAP: f64 = 8.0;
/// Part of the width that names of series may have.
const NAMES_SHARE: f64 = 0.26;
/// Least distance of two points of a line, in tenths.
const APART: f64 = 12.0;
const HUES: usize = 6;

/// A drawing before it is text.
pub(crate) struct Drawing {
    pub width: f64,
    pub height: f64,
    /// Elements behind the labels.
    shapes: String,
    pub labels: Vec<Label>,
}

/// Text of a drawing.
pub(crate) struct Label {
    pub x: f64,
    /// Its base line.
    pub y: f64,
    anchor: Anchor,
    class: String,
    text: String,
}

enum Anchor {
    Start,
    Middle,
    End,
}

impl Label {
    /// Left, top, right and bottom.
    #[cfg(test)]
    fn bounds(&self) -> [f64; 4] {
        let width = width_of(&self.text);
        let left = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - width / 2.0,
            Anchor::End => self.x - width,
        };
        [left, self.y - 10.0, left + width, self.y + 3.0]
    }
}

/// Writes a drawing in each of the widths; `label` says what it shows.
pub(crate) fn svg(label: &str, drawing: impl Fn(f64) -> Drawing) -> String {
    let mut out = String::new();
    let label = escaped(label);
    for (class, width) in ["broad", "narrow"].into_iter().zip(WIDTHS) {
        let drawing = drawing(width);
        let _ = writeln!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {:.0}\" role=\"img\" \
             aria-label=\"{label}\">\n{}",
            drawing.height, drawing.shapes
        );
        for label in &drawing.labels {
            label.write(&mut out);
        }

        out += "</svg>\n";
    }
    out
}

fn widest(texts: impl Iterator<Item = String>) -> f64 {
    texts.map(|text| width_of(&text)).fold(0.0, f64::max)
}

fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR
}

fn cut(name: &str, chars_max: usize) -> String {
    if name.chars().count() <= chars_max {
        return name.to_owned();
    }
    let kept = name.chars().take(chars_max.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A coordinate without needless digits.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl Label {
    fn write(&self, out: &mut String) {
        let anchor = match self.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match self.class.as_str() {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let x = short(self.x);
        let y = short(self.y);
        let text = escaped(&self.text);
        let _ = writeln!(
            out,
            "<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"
        );
    }
}

impl Drawing {
    const fn new(width: f64) -> Self {
        Self {
            width,
            height: 0.0,
            shapes: String::new(),
            labels: Vec::new(),
        }
    }

    fn label(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        if !text.is_empty() {
            self.labels.push(Label {
                x,
                y,
                anchor,
                class: class.to_owned(),
                text: shortened(text),
            });
        }
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &[(from, true), (to, false)]);
    }

    /// A line through the points; a new one begins at those that are marked. A point that is not
    /// visibly apart from the one before it is left out.
    fn path(&mut self, class: &str, points: &[((f64, f64), bool)]) {
        let mut data = String::new();
        // Steps between rounded places, so that no error adds up.
        let tenths = |value: f64| (value * 10.0).round();
        let mut last = (0.0, 0.0);

        for (number, ((x, y), begins)) in points.iter().enumerate() {
            let x = tenths(*x);
            let y = tenths(*y);
            let step = (x - last.0, y - last.1);
            let is_apart = step.0.abs() >= APART || step.1.abs() >= APART;
            if !is_apart && !begins && number + 1 < points.len() {
                continue;
            }

            let (letter, to) = if *begins { ('M', (x, y)) } else { ('l', step) };
            let _ = write!(
                data,
                "{letter}{} {}",
                short(to.0 / 10.0),
                short(to.1 / 10.0)
            );
            last = (x, y);
        }
        let _ = writeln!(self.shapes, "<path class=\"{class}\" d=\"{data}\"/>");
    }

    fn rectangle(&mut self, class: &str, [left, top, right, bottom]: [f64; 4], title: &str) {
        let [x, y, width, height] =
            [left, top, (right - left).max(0.0), (bottom - top).max(0.0)].map(short);
        let title = match title {
            "" => String::new(),
            title => format!("<title>{}</title>", escaped(title)),
        };
        let _ = writeln!(
            self.shapes,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" \
             height=\"{height}\">{title}</rect>"
        );
    }

    /// Series are distinguishable by their symbols, without colours.
    fn symbol(&mut self, hue: usize, (x, y): (f64, f64)) {
        let outline = match hue % 4 {
            0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
            1 => "m-3.5-3.5h7v7h-7z",
            2 => "m0-5l4.5 8h-9z",
            _ => "m0-5l5 5l-5 5l-5-5z",
        };
        let x = short(x);
        let y = short(y);
        let hue = hue % HUES;
        let _ = writeln!(
            self.shapes,
            "<path class=\"marker h{hue}\" d=\"M{x} {y}{outline}\"/>"
        );
    }
}
