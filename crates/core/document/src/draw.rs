//! A plot as inline SVG: its charts one below another on the horizontal axis of the first one.
//! Colour, width and dash of an element are those of its CSS class, so light, dark and print are
//! matters of the style sheet.

use std::fmt::Write;

use crate::boxes::Boxes;
use crate::chart::{Axis, Chart, LineStyle, Point, Scale, Series};
use crate::heat::HeatMap;
use crate::page::escaped;
use crate::plot::Plot;
use crate::style::shortened;

/// Widths of the drawings of a plot, in units of text of 12: for a page, and for a narrow screen.
pub(crate) const WIDTHS: [f64; 2] = [900.0, 400.0];
/// Widest character of a label; the reader's font is not known.
const CHAR: f64 = 6.8;
/// Height of a label.
const TEXT: f64 = 14.0;
/// Between the name of a chart and its axis.
const HEAD: f64 = 24.0;
/// Between a chart and what is beside it.
const GAP: f64 = 8.0;
/// From the end of a line to its name.
const SWATCH: f64 = 20.0;
/// Part of the width that names of series may have.
const NAMES_SHARE: f64 = 0.26;
/// Widest cell of a grid, and highest row.
const HEAT_SIDE_MAX: f64 = 90.0;
const HEAT_ROW_MAX: f64 = 30.0;
/// Height of a row with a box.
const BOX_ROW: f64 = 30.0;
/// Fewest units between two values of a horizontal and of a vertical axis.
const X_STEP: f64 = 48.0;
const Y_STEP: f64 = 26.0;
/// Least distance of two points of a line, in tenths.
const APART: f64 = 12.0;
const HUES: usize = 6;
/// Points of a series beyond which markers would hide the line.
const MARKED_MAX: usize = 15;
/// Places with a text of their own under the pointer; more would be too narrow to point at.
const HOVER_MAX: usize = 40;

/// A drawing before it is text.
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Elements behind the labels.
    shapes: String,
    pub(crate) labels: Vec<Label>,
}

/// Text of a drawing.
pub(crate) struct Label {
    pub(crate) x: f64,
    /// Its base line.
    pub(crate) y: f64,
    anchor: Anchor,
    class: String,
    text: String,
}

#[derive(Clone, Copy)]
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
pub(crate) fn svg(out: &mut String, label: &str, drawing: impl Fn(f64) -> Drawing) {
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
            label.write(out);
        }

        out.push_str("</svg>\n");
    }
}

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
    let names = charts
        .iter()
        .flat_map(|chart| &chart.series)
        .map(|series| cut(&series.name, names_max));
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

/// Rows with a box each, above one axis.
pub(crate) fn boxes(boxes: &Boxes, width: f64) -> Drawing {
    let mut drawing = Drawing::new(width);
    let left = widest(boxes.rows.iter().map(|row| row.name.clone())) + 2.0 * GAP;
    let right = width - 2.0 * GAP - widest(boxes.rows.iter().map(|row| row.text.clone()));
    let x = horizontal(&boxes.axis, boxes.range(), (left, right));

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
            let (from, to) = (place(at), place(at + 1));
            let framed = if cell.is_framed { " framed" } else { "" };
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

/// The names of many series need more room than the chart was given.
fn height_of(chart: &Chart) -> f64 {
    let names = chart.series.iter().filter(|series| !series.name.is_empty());
    f64::from(chart.height).max(names.count() as f64 * TEXT + TEXT)
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

/// A value at an axis, without the zeros that round values end with: `50 Mbit/s`.
fn round_text(axis: &Axis, value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = (axis.text)(value);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') && number.parse::<f64>().is_ok() => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
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
        let (x, y, text) = (short(self.x), short(self.y), escaped(&self.text));
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
            let (x, y) = (tenths(*x), tenths(*y));
            let step = (x - last.0, y - last.1);
            let is_apart = step.0.abs() >= APART || step.1.abs() >= APART;
            if !is_apart && !begins && number + 1 < points.len() {
                continue;
            }

            let (letter, to) = match begins {
                true => ('M', (x, y)),
                false => ('l', step),
            };
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
        let (x, y, hue) = (short(x), short(y), hue % HUES);
        let _ = writeln!(
            self.shapes,
            "<path class=\"marker h{hue}\" d=\"M{x} {y}{outline}\"/>"
        );
    }

    /// Values and name of the horizontal axis below `bottom`, where the drawing ends.
    fn foot(&mut self, axis: &Axis, x: &Ruler, bottom: f64) {
        for tick in &x.ticks {
            let text = round_text(axis, *tick);
            let half = width_of(&text) / 2.0;
            let at = x.at(*tick).min(self.width - half).max(half);
            self.label(at, bottom + TEXT + 2.0, Anchor::Middle, "", &text);
        }

        let middle = f64::midpoint(x.place.0, x.place.1);
        let base = bottom + 2.0 * TEXT + 4.0;
        self.label(middle, base, Anchor::Middle, "soft", &axis.label);
        self.height = base + GAP;
    }

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
            let (from, to) = (self.x.at(band.from), self.x.at(band.to));
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
            let (x, y) = (short(x), short(y));
            let _ = writeln!(
                drawing.shapes,
                "<circle class=\"ring h{hue}\" cx=\"{x}\" cy=\"{y}\" r=\"9\"/>"
            );
        }

        if let Some(label) = &point.label {
            let x = (x + GAP).min(self.x.place.1 - width_of(label));
            let y = (y - GAP).max(self.top + TEXT);
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
            let text = cut(&series.name, chars_max);
            let at = (x + SWATCH - GAP, y + TEXT / 3.0);
            drawing.label(at.0, at.1, Anchor::Start, &format!("end h{hue}"), &text);
        }
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

/// The horizontal axis between two places of the drawing.
fn horizontal(axis: &Axis, values: (f64, f64), place: (f64, f64)) -> Ruler {
    let texts = axis.ticks.iter().chain([&values.1]);
    let longest = widest(texts.map(|tick| round_text(axis, *tick)));
    // Labels keep the room of two characters between them.
    let gap = X_STEP.max(longest + 2.0 * CHAR) / (place.1 - place.0);
    Ruler {
        place,
        ..Ruler::new(axis, values, gap)
    }
}

/// An axis with its ends and the values that are written at it.
struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    /// Where both ends are in the drawing.
    place: (f64, f64),
}

impl Ruler {
    /// Labels are at least the share `gap` of the axis apart.
    fn new(axis: &Axis, values: (f64, f64), gap: f64) -> Self {
        let (low, high) = match (axis.range, axis.scale) {
            (Some(range), _) => range,
            (None, Scale::Linear) if values.1 > 0.0 => (0.0, values.1 * 1.05),
            // An axis without a length has no scale.
            (None, Scale::Linear) => (0.0, 1.0),
            (None, Scale::Log) => (values.0 / 1.15, values.1 * 1.15),
        };
        let mut ruler = Self {
            scale: axis.scale,
            low,
            high,
            ticks: Vec::new(),
            place: (0.0, 1.0),
        };

        let mut candidates = match (axis.ticks.as_slice(), axis.scale) {
            ([], Scale::Linear) => round_steps(low, high, (1.0 / gap).clamp(2.0, 8.0)),
            ([], Scale::Log) => decades(low, high),
            (given, _) => given.to_vec(),
        };
        candidates.retain(|value| (low..=high).contains(value));
        if candidates.is_empty() && axis.scale == Scale::Log {
            // No round value lies on so short an axis.
            candidates.push((low * high).sqrt());
        }

        for value in candidates {
            let last = ruler.ticks.last();
            if last.is_none_or(|last| ruler.at(value) - ruler.at(*last) >= gap) {
                ruler.ticks.push(value);
            }
        }
        ruler
    }

    /// Place of a value; what lies beyond an end is there.
    fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        let (from, to) = self.place;
        from + share.clamp(0.0, 1.0) * (to - from)
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, at most `count` of them.
fn round_steps(low: f64, high: f64, count: f64) -> Vec<f64> {
    let least = (high - low) / count;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= least * 0.999);
    let step = step.unwrap_or(high - low);

    let first = (low / step).ceil();
    let steps = (0..=count.ceil() as u32).map(|number| (first + f64::from(number)) * step);
    steps.collect()
}

/// Powers of ten; between them 2 and 5 where there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last.saturating_sub(first) <= 3 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let powers = (first..=last).map(|power| 10_f64.powi(power));
    powers
        .flat_map(|power| factors.iter().map(move |factor| factor * power))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::BoxRow;
    use crate::chart::ShadedRange;

    fn ticks(axis: &Axis, values: (f64, f64), gap: f64) -> Vec<String> {
        let ruler = Ruler::new(axis, values, gap);
        ruler.ticks.into_iter().map(&axis.text).collect()
    }

    #[test]
    fn ticks_are_round_and_lie_within() {
        let text = |value: f64| value.to_string();
        assert_eq!(
            ticks(&Axis::linear("x", text), (3.0, 117.5), 0.2),
            ["0", "50", "100"]
        );
        assert_eq!(
            ticks(&Axis::log("x", text), (0.9, 1200.0), 0.2),
            ["1", "10", "100", "1000"]
        );

        let short = |value: f64| format!("{value:.1}");
        assert_eq!(ticks(&Axis::log("x", short), (2.5, 2.5), 0.2), ["2.5"]);
        assert_eq!(
            ticks(&Axis::linear("x", text), (0.0, 0.0), 0.4),
            ["0", "0.5", "1"]
        );
    }

    fn timeline() -> Plot {
        let seconds = || Axis::linear("time", |s| format!("{s} s")).between(-2.0, 24.0);
        let points = |high: f64| (0..40).map(move |at| Point::new(f64::from(at) * 0.6, high));
        let series = |name: &str, hue, high| Series::new(name, LineStyle::Main, hue, points(high));
        let rate = |value: f64| format!("{value:.0} Mbit/s");
        let names = ["idle", "down", "up", "both"];
        let bands = (0..).zip(names).map(|(at, name): (u32, &str)| ShadedRange {
            from: f64::from(at) * 6.0 - 2.0,
            to: f64::from(at) * 6.0 + 4.0,
            label: name.to_owned(),
        });

        let goodput = Chart {
            name: "goodput",
            bands: bands.collect(),
            // Their ends are at one place.
            ..Chart::new(
                seconds(),
                Axis::linear("", rate),
                120,
                (0..12)
                    .map(|at| series("a long name of a stream of the test", at, 94.0))
                    .collect(),
            )
        };
        let latency = Chart {
            name: "latency",
            ..Chart::new(
                seconds(),
                Axis::of_range("", (0.03, 900.0), |ms| format!("{ms} ms")),
                90,
                vec![series("round trip", 2, 0.03), series("idle", 3, 900.0)],
            )
        };
        Plot {
            title: "over time".to_owned(),
            key: "",
            note: String::new(),
            charts: vec![goodput, latency],
        }
    }

    fn distributions() -> Boxes {
        let row = |name: &str, ms: f64| BoxRow {
            name: name.to_owned(),
            text: format!("{ms:.1} ms, p99 {:.1} ms", ms * 1.2),
            title: String::new(),
            hue: 0,
            median: ms,
            interval: (ms, ms * 1.1),
            whisker: (ms * 0.9, ms * 1.2),
        };
        Boxes {
            title: "latency".to_owned(),
            note: String::new(),
            axis: Axis::of_range("", (0.03, 142.0), |ms| format!("{ms} ms")),
            rows: vec![row("idle", 0.034), row("down", 99.0), row("both", 118.0)],
        }
    }

    #[test]
    fn labels_are_inside_and_do_not_overlap() {
        for width in WIDTHS {
            for drawing in [plot(&timeline(), width), boxes(&distributions(), width)] {
                for (number, label) in drawing.labels.iter().enumerate() {
                    let [left, top, right, bottom] = label.bounds();
                    assert!(
                        left >= 0.0 && right <= width && top >= 0.0 && bottom <= drawing.height,
                        "{} of {width}: {:?}",
                        label.text,
                        label.bounds()
                    );
                    for other in &drawing.labels[number + 1..] {
                        let [l, t, r, b] = other.bounds();
                        let is_apart = right <= l || r <= left || bottom <= t || b <= top;
                        assert!(is_apart, "{} and {} at {width}", label.text, other.text);
                    }
                }
            }
        }
    }

    #[test]
    fn lines_stay_between_the_ends_of_their_axes_and_break() {
        let mut plot = timeline();
        plot.charts.remove(0);
        plot.charts[0].series[0].breaks = vec![5.0, 11.0];

        let drawing = super::plot(&plot, WIDTHS[0]);
        let mut lines = drawing.shapes.split("class=\"line main h2\" d=\"");
        let data = lines.nth(1).and_then(|line| line.split('"').next());
        let data = data.expect("a line");
        assert_eq!(data.matches('M').count(), 3, "{data}");

        // Steps may lead back; the lines begin at places.
        let numbers = data.split('M').flat_map(|line| line.split('l').take(1));
        let numbers = numbers.flat_map(|place| place.split(' '));
        let mut numbers = numbers.filter_map(|number| number.parse::<f64>().ok());
        assert!(numbers.all(|at| (0.0..=WIDTHS[0]).contains(&at)), "{data}");
    }
}
