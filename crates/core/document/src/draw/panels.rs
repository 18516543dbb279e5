//! Charts of a plot, one below another on the horizontal axis of the first one.

use std::fmt::Write;

use super::ruler::{Ruler, horizontal, round_text};
use super::{
    Anchor, CHAR, Drawing, GAP, HEAD, HUES, NAMES_SHARE, TEXT, WIDTHS, cut, short, widest, width_of,
};
use crate::chart::{Chart, LineStyle, Point, Series};
use crate::plot::Plot;

/// From the end of a line to its name.
const SWATCH: f64 = 20.0;
/// Fewest units between two values of a vertical axis.
const Y_STEP: f64 = 26.0;
/// Points of a series beyond which markers would hide the line.
const MARKED_MAX: usize = 15;
/// Places with a text of their own under the pointer; more would be too narrow to point at.
const HOVER_MAX: usize = 40;

/// The charts of a plot.
pub(crate) fn plot(plot: &Plot, width: f64) -> Drawing {
    let charts = &plot.charts;
    let mut drawing = Drawing::new(width);
    let Some(first) = charts.first() else {
        return drawing;
    };
    let rulers: Vec<Ruler> = charts
        .iter()
        .map(|chart| Ruler::new(&chart.y, chart.y_range(), Y_STEP / height_of(chart)))
        .collect();

    let names_max = (width * NAMES_SHARE / CHAR) as usize;
    let names = charts.iter().flat_map(|chart| {
        let series = chart.series.iter();
        series.map(|series| cut(&end_name(chart, series), names_max))
    });
    let right = width - GAP - SWATCH - widest(names);
    let values = charts.iter().zip(&rulers).flat_map(|(chart, ruler)| {
        let ticks = ruler.ticks.iter();
        ticks.map(|tick| round_text(&chart.y, *tick))
    });
    let left = widest(values) + 2.0 * GAP;
    let x = horizontal(&first.x, plot.x_range(), (left, right));

    let mut top = 0.0;
    for (number, (chart, mut y)) in charts.iter().zip(rulers).enumerate() {
        let name = match (chart.name, &*chart.y.label) {
            ("", label) => label.to_owned(),
            (name, label) if label.is_empty() || label == name => name.to_owned(),
            (name, label) => format!("{name}: {label}"),
        };
        // Bold letters are wider.
        let name = cut(&name, ((width - 2.0 * GAP) / CHAR / 1.1) as usize);
        drawing.label(GAP, top + TEXT, Anchor::Start, "name", &name);
        top += HEAD;
        let bottom = top + height_of(chart);
        // Names of bands lie above the highest value.
        let is_named = number == 0 && chart.bands.iter().any(|band| !band.label.is_empty());
        let head = if is_named { TEXT + 4.0 } else { 0.0 };
        y.place = (bottom, top + head);

        let panel = Panel {
            chart,
            x: &x,
            y: &y,
            top,
            bottom,
        };
        panel.draw(&mut drawing, is_named);
        panel.names(&mut drawing, names_max);
        top = bottom + GAP;
    }

    drawing.hover(plot, &x, top - GAP);
    drawing.foot(&first.x, &x, top - GAP);
    drawing
}

/// The names of many series need more room than the chart was given.
fn height_of(chart: &Chart) -> f64 {
    let names = chart.series.iter().filter(|series| !series.name.is_empty());
    f64::from(chart.height).max(names.count() as f64 * TEXT + TEXT)
}

/// One chart at its place.
struct Panel<'a> {
    chart: &'a Chart,
    x: &'a Ruler,
    y: &'a Ruler,
    top: f64,
    bottom: f64,
}

impl Panel<'_> {
    fn draw(&self, drawing: &mut Drawing, has_band_names: bool) {
        let (left, right) = self.x.place;
        for band in &self.chart.bands {
            let from = self.x.at(band.from);
            let to = self.x.at(band.to);
            drawing.rectangle("phase", [from, self.top, to, self.bottom], "");

            let is_wide = width_of(&band.label) <= to - from;
            if has_band_names && is_wide {
                let middle = f64::midpoint(from, to);
                drawing.label(middle, self.top + TEXT, Anchor::Middle, "soft", &band.label);
            }
        }

        for tick in &self.x.ticks {
            let at = self.x.at(*tick);
            drawing.line("axis", (at, self.top), (at, self.bottom));
        }
        for tick in &self.y.ticks {
            let at = self.y.at(*tick);
            drawing.line("axis", (left, at), (right, at));
            let text = round_text(&self.chart.y, *tick);
            drawing.label(left - GAP, at + TEXT / 3.0, Anchor::End, "", &text);
        }

        for series in &self.chart.series {
            self.series(drawing, series);
        }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    fn series(&self, drawing: &mut Drawing, series: &Series) {
        let points = &series.points;
        let class = class(series);
        let hue = series.hue % HUES;
        let is_alone = points.len() == 1;
        let is_area = is_area(series);

        match series.line_style {
            LineStyle::Dots => {}
            LineStyle::Bars => self.bars(drawing, series, &class),
            // One point has no line: its symbol and its interval show it.
            _ if is_alone => {}
            LineStyle::Area | LineStyle::Shade => {
                let end = |upper: bool| {
                    points.iter().filter_map(move |point| {
                        let (low, high) = point.interval?;
                        Some((self.at(point.x, if upper { high } else { low }), false))
                    })
                };
                // The line runs around the area: the upper ends to the right, the lower ones back.
                let mut around: Vec<_> = end(true).chain(end(false).rev()).collect();
                around.iter_mut().take(1).for_each(|first| first.1 = true);
                drawing.path(&class, &around);
            }
            _ => {
                let before = std::iter::once(None).chain(points.iter().map(Some));
                let line = points.iter().zip(before).map(|(point, before)| {
                    let begins = before.is_none_or(|before| series.is_broken(before.x, point.x));
                    (self.at(point.x, point.y), begins)
                });
                drawing.path(&class, &line.collect::<Vec<_>>());
            }
        }

        let has_symbols = is_alone
            || series.line_style == LineStyle::Dots
            || series.line_style == LineStyle::Main && points.len() <= MARKED_MAX;
        for point in points {
            let place = self.at(point.x, point.y);
            if has_symbols {
                drawing.symbol(series.hue, place);
            }
            if let Some((low, high)) = point.interval.filter(|_| !is_area || is_alone) {
                let whisker = format!("whisker h{hue}");
                drawing.line(&whisker, self.at(point.x, low), self.at(point.x, high));
            }
            self.marks(drawing, point, hue);
        }
    }

    fn bars(&self, drawing: &mut Drawing, series: &Series, class: &str) {
        let (left, right) = self.x.place;
        let width = ((right - left) / series.points.len() as f64 * 0.6).clamp(1.0, 12.0);
        for point in &series.points {
            let (x, top) = self.at(point.x, point.y);
            let half = width / 2.0;
            drawing.rectangle(class, [x - half, top, x + half, self.bottom], "");
        }
    }

    fn marks(&self, drawing: &mut Drawing, point: &Point, hue: usize) {
        let (x, y) = self.at(point.x, point.y);
        if point.is_marked {
            let x = short(x);
            let y = short(y);
            let _ = writeln!(
                drawing.shapes,
                "<circle class=\"ring h{hue}\" cx=\"{x}\" cy=\"{y}\" r=\"9\"/>"
            );
        }

        if let Some(label) = &point.label {
            let left = (x + GAP).min(self.x.place.1 - width_of(label));
            // Text that reaches back over its point lies above the circle.
            let above = if left < x { TEXT } else { GAP };
            let x = left;
            let y = (y - above).max(self.top + TEXT);
            drawing.label(x, y, Anchor::Start, "", label);
        }
    }

    /// Names of the series beside their last points, as far apart as their height.
    fn names(&self, drawing: &mut Drawing, chars_max: usize) {
        let mut named: Vec<(f64, &Series)> = self
            .chart
            .series
            .iter()
            .filter(|series| !series.name.is_empty())
            .filter_map(|series| {
                let last = series.points.last()?;
                let y = match last.interval {
                    Some((low, high)) if is_area(series) => f64::midpoint(low, high),
                    _ => last.y,
                };
                Some((self.y.at(y), series))
            })
            .collect();
        named.sort_by(|one, other| one.0.total_cmp(&other.0));

        let mut lowest = self.top + TEXT / 2.0;
        for (y, _) in &mut named {
            *y = y.max(lowest);
            lowest = *y + TEXT;
        }
        let mut highest = self.bottom;
        for (y, _) in named.iter_mut().rev() {
            *y = y.min(highest);
            highest = *y - TEXT;
        }

        let x = self.x.place.1 + GAP;
        for (y, series) in named {
            let hue = series.hue % HUES;
            match series.line_style {
                LineStyle::Dots => drawing.symbol(series.hue, (x + 4.0, y)),
                LineStyle::Bars | LineStyle::Area | LineStyle::Shade => {
                    drawing.rectangle(&class(series), [x, y - 4.0, x + 8.0, y + 4.0], "");
                }
                _ => drawing.line(&class(series), (x, y), (x + 10.0, y)),
            }
            let text = cut(&end_name(self.chart, series), chars_max);
            let at = (x + SWATCH - GAP, y + TEXT / 3.0);
            drawing.label(at.0, at.1, Anchor::Start, &format!("end h{hue}"), &text);
        }
    }
}

/// The name of a series; where no series of the chart has a second point, with its value.
fn end_name(chart: &Chart, series: &Series) -> String {
    let mut measured = chart.series.iter().filter(|series| series.is_data());
    let is_alone = measured.all(|series| series.points.len() == 1);
    match series.points.as_slice() {
        [only] if is_alone && !series.name.is_empty() => {
            format!("{} {}", series.name, (chart.y.text)(only.y))
        }
        _ => series.name.clone(),
    }
}

const fn is_area(series: &Series) -> bool {
    matches!(series.line_style, LineStyle::Area | LineStyle::Shade)
}

fn class(series: &Series) -> String {
    let style = match series.line_style {
        LineStyle::Main => "line main",
        LineStyle::Thin => "line thin",
        LineStyle::Limit => "line limit",
        LineStyle::Bars => "bars",
        LineStyle::Area => "area",
        LineStyle::Dots => "dots",
        LineStyle::Shade => "band",
    };
    format!("{style} h{}", series.hue % HUES)
}

impl Drawing {
    /// Values of all charts while the pointer is at a place.
    fn hover(&mut self, plot: &Plot, x: &Ruler, bottom: f64) {
        // A narrow screen has no pointer.
        if self.width < WIDTHS[0] {
            return;
        }

        let slots = plot.slots(HOVER_MAX);
        for (number, slot) in slots.iter().enumerate() {
            let before = number.checked_sub(1).and_then(|before| slots.get(before));
            // A place reaches to the middle between it and its neighbour.
            let from = before.map_or(x.place.0, |before| {
                f64::midpoint(x.at(before.to), x.at(slot.from))
            });
            let to = slots.get(number + 1).map_or(x.place.1, |after| {
                f64::midpoint(x.at(slot.to), x.at(after.from))
            });
            let series = plot.charts.iter().flat_map(|chart| &chart.series);
            let cells = series
                .zip(&slot.cells)
                .filter_map(|(series, cell)| Some(format!("{}: {}", series.name, cell.as_ref()?)));
            let text = format!("{}\n{}", slot.name, cells.collect::<Vec<_>>().join("\n"));
            self.rectangle("hover", [from, HEAD, to, bottom], &text);
        }
    }
}
