//! Drawing back end of plotters that writes SVG elements. Colour, width and dash of an element are
//! those of its CSS class, so light, dark and print are matters of the style sheet.

use std::convert::Infallible;
use std::fmt::Write;

use plotters::element::{Drawable, PointCollection};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use crate::page::escaped;
use crate::style::shortened;

/// Coordinates of plotters are integers: tenths of a unit of the drawing.
pub(super) const TENTHS: u32 = 10;
/// Width of a character of the labels.
pub(super) const CHAR: f64 = 7.0;
/// From the top of a line of text to its base.
const ASCENT: f64 = 12.0;

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// Elements of one drawing.
pub(super) struct SvgBackend<'a> {
    pub out: &'a mut String,
    /// Size in units of the drawing.
    pub size: (u32, u32),
}

impl DrawingBackend for SvgBackend<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.size.0 * TENTHS, self.size.1 * TENTHS)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    /// Shapes without an element of their own are made of pixels; no chart has one.
    fn draw_pixel(&mut self, _: BackendCoord, _: BackendColor) -> Drawn {
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, _: &S) -> Drawn {
        Shape::Line.write(self.out, "axis", &[units(from), units(to)]);
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let (x, y) = units(at);
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let below = match style.anchor().v_pos {
            VPos::Top => ASCENT,
            VPos::Center => ASCENT / 3.0,
            VPos::Bottom => 0.0,
        };
        Shape::Text(anchor, text).write(self.out, "", &[(x, y + below)]);

        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        // The reader's font is not known: every character has the same width.
        let tenths = |units: f64| (units * f64::from(TENTHS)) as u32;
        Ok((tenths(text.chars().count() as f64 * CHAR), tenths(ASCENT)))
    }
}

fn units((x, y): BackendCoord) -> (f64, f64) {
    (
        f64::from(x) / f64::from(TENTHS),
        f64::from(y) / f64::from(TENTHS),
    )
}

/// An element at places of a chart.
pub(super) struct PlacedShape<'a> {
    pub class: String,
    pub shape: Shape<'a>,
    pub points: Vec<(f64, f64)>,
}

impl<'a> PointCollection<'a, (f64, f64)> for &'a PlacedShape<'_> {
    type Point = &'a (f64, f64);
    type IntoIter = std::slice::Iter<'a, (f64, f64)>;

    fn point_iter(self) -> Self::IntoIter {
        self.points.iter()
    }
}

impl Drawable<SvgBackend<'_>> for PlacedShape<'_> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        at: I,
        to: &mut SvgBackend<'_>,
        _: (u32, u32),
    ) -> Drawn {
        let points: Vec<(f64, f64)> = at.map(units).collect();
        self.shape.write(to.out, &self.class, &points);
        Ok(())
    }
}

/// Shape at the points of an element.
pub(super) enum Shape<'a> {
    /// From each point to the next.
    Line,
    /// Within a closed line through all points.
    Area,
    /// From every other point to the one after it, this wide.
    Bars(f64),
    /// At the first point. Series are distinguishable by it, without colours.
    Symbol(usize),
    /// Around the first point.
    Ring,
    /// Text at the first point, after its anchor.
    Text(&'static str, &'a str),
    /// Between two corners, invisible: text while the pointer is on it.
    Hover(String),
}

const SYMBOLS: usize = 4;

impl Shape<'_> {
    /// Writes the element at these points, in units of the drawing.
    pub(super) fn write(&self, out: &mut String, class: &str, points: &[(f64, f64)]) {
        let all = || {
            points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let [first, last] =
            [points.first(), points.last()].map(|point| point.copied().unwrap_or_default());
        let (x, y) = first;
        let _ = match self {
            Self::Line if points.len() == 2 => writeln!(
                out,
                "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
                last.0, last.1
            ),
            Self::Line => writeln!(out, "<polyline class=\"{class}\" points=\"{}\"/>", all()),
            Self::Area => writeln!(out, "<polygon class=\"{class}\" points=\"{}\"/>", all()),
            Self::Bars(width) => {
                let bar = |ends: &[(f64, f64)]| {
                    format!("M{:.1} {:.1}V{:.1}", ends[0].0, ends[0].1, ends[1].1)
                };
                // Each chunk has two points, so that both ends of a bar exist.
                let bars: String = points.chunks_exact(2).map(bar).collect();
                writeln!(
                    out,
                    "<path class=\"{class}\" stroke-width=\"{width:.1}\" d=\"{bars}\"/>"
                )
            }
            Self::Symbol(number) => match number % SYMBOLS {
                0 => writeln!(
                    out,
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
                ),
                1 => writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>",
                    x - 3.5,
                    y - 3.5
                ),
                2 => writeln!(
                    out,
                    "<path class=\"{class}\" d=\"M{x:.1} {y:.1}m0 -5l4.5 8h-9z\"/>"
                ),
                _ => writeln!(
                    out,
                    "<path class=\"{class}\" d=\"M{x:.1} {y:.1}m0 -5l5 5l-5 5l-5 -5z\"/>"
                ),
            },
            Self::Ring => writeln!(
                out,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/>"
            ),
            Self::Text(anchor, text) => {
                let text = escaped(&shortened(text));
                let class = if class.is_empty() {
                    String::new()
                } else {
                    format!(" class=\"{class}\"")
                };
                writeln!(
                    out,
                    "<text{class} x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
                )
            }
            Self::Hover(text) => writeln!(
                out,
                "<rect class=\"hover\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\"><title>{}</title></rect>",
                x.min(last.0),
                y.min(last.1),
                (last.0 - x).abs(),
                (last.1 - y).abs(),
                escaped(&shortened(text))
            ),
        };
    }
}
