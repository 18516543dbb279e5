//! A drawing as data: axes, series and marks. It is drawn as SVG, summed up as small curves for a terminal, and listed
//! as a table.

use std::collections::BTreeSet;

use super::style::Style;
use crate::numbers::MISSING;

/// One pair of axes with what lies between them.
pub(crate) struct Chart {
    /// Its name within the plot; empty where it is the only one.
    pub name: &'static str,
    /// Left to right.
    pub x: Axis,
    /// Bottom to top.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
    /// Height in units of which the width has 800.
    pub height: f64,
    /// Text shows a bar for each point instead of a curve.
    pub has_bars: bool,
}

/// One axis.
pub(crate) struct Axis {
    /// What, in which unit.
    pub label: &'static str,
    /// How values lie on it.
    pub scale: Scale,
    /// A value with its unit.
    pub text: Box<dyn Fn(f64) -> String>,
    /// Values to write at it; chosen when empty.
    pub ticks: Vec<f64>,
    /// It reaches to here at least, so that axes of several drawings are the same.
    pub reach: f64,
}

/// How values lie on an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From 0.
    Linear,
    /// By ratio; what is not above 0 has no place.
    Log,
}

/// Points that belong together.
pub(crate) struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub line_style: LineStyle,
    /// Series of one hue concern the same thing.
    pub hue: usize,
    /// From left to right.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStyle {
    /// What was measured.
    Main,
    /// What was measured as well.
    Thin,
    /// What was computed.
    Limit,
}

/// One point.
#[derive(Default)]
pub(crate) struct Point {
    /// Left to right.
    pub x: f64,
    /// Bottom to top.
    pub y: f64,
    /// Text beside it.
    pub label: Option<String>,
    /// Whether it has a ring.
    pub is_marked: bool,
    /// Interval in which the value lies.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A point without a label.
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }
}

impl Axis {
    /// An axis from 0.
    pub(crate) fn linear(label: &'static str, text: impl Fn(f64) -> String + 'static) -> Self {
        Self { label, scale: Scale::Linear, text: Box::new(text), ticks: Vec::new(), reach: 0.0 }
    }

    /// An axis by ratio.
    pub(crate) fn log(label: &'static str, text: impl Fn(f64) -> String + 'static) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label, text) }
    }

    /// The same axis, written at these values.
    pub(crate) fn at(mut self, ticks: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = ticks.into_iter().collect();
        self
    }

    /// The same axis, with room for this value.
    pub(crate) fn to(mut self, reach: f64) -> Self {
        self.reach = reach;
        self
    }

    fn has_place_for(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

/// A series in one line of text.
pub(crate) struct Curve {
    /// Which one.
    pub name: String,
    /// One character for each point, thinned.
    pub line: String,
    /// Its first and last point in words.
    pub ends: String,
}

/// Most series of a drawing; more are not distinguishable.
pub(crate) const SERIES_MAX: usize = 8;
/// Most characters of a small curve.
const CURVE_CHARS_MAX: usize = 60;
/// Characters of the longest bar.
const BAR_CHARS: usize = 40;

impl Series {
    /// Points that were measured or computed, from left to right.
    pub(crate) fn new(
        name: impl Into<String>,
        line_style: LineStyle,
        hue: usize,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        Self { name: name.into(), line_style, hue, points: points.into_iter().collect() }
    }
}

impl Chart {
    /// A chart of curves, without a name.
    pub(crate) fn new(x: Axis, y: Axis, height: f64, series: Vec<Series>) -> Self {
        Self { name: "", x, y, series, height, has_bars: false }
    }

    /// Leaves out what has no place on its axes; none when nothing measured is left.
    pub(crate) fn checked(mut self) -> Option<Self> {
        let (x, y) = (&self.x, &self.y);
        for series in &mut self.series {
            series.points.retain(|point| x.has_place_for(point.x) && y.has_place_for(point.y));
        }
        self.series.retain(|series| !series.points.is_empty());
        self.series.iter().any(|series| series.line_style == LineStyle::Main).then_some(self)
    }

    /// Smallest and largest place from left to right.
    pub(crate) fn x_range(&self) -> (f64, f64) {
        self.range(|point| [point.x, point.x])
    }

    /// Smallest and largest value, with the intervals.
    pub(crate) fn y_range(&self) -> (f64, f64) {
        self.range(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [low.min(point.y), high.max(point.y)]
        })
    }

    fn range(&self, values: impl Fn(&Point) -> [f64; 2]) -> (f64, f64) {
        let values = self.series.iter().flat_map(|series| &series.points).flat_map(values);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }

    /// Bars from 0, one for each point.
    pub(crate) fn bars(&self, style: Style) -> Vec<String> {
        let points: Vec<&Point> = self.series.iter().flat_map(|series| &series.points).collect();
        let highest = points.iter().map(|point| point.y).fold(0.0, f64::max);
        let width = points.iter().map(|point| (self.x.text)(point.x).chars().count()).max();
        let bar = |point: &Point| {
            let share = if highest > 0.0 { point.y / highest } else { 0.0 };
            let line = format!(
                "{} {:>width$} {} {}",
                if point.is_marked { '*' } else { ' ' },
                (self.x.text)(point.x),
                style.glyphs.bar(share, BAR_CHARS),
                (self.y.text)(point.y),
                width = width.unwrap_or(0),
            );
            style.line(&line)
        };
        points.into_iter().map(bar).collect()
    }

    /// The drawing as small curves: one for each series that was measured, on a common scale.
    pub(crate) fn curves(&self, style: Style) -> Vec<Curve> {
        let (low, high) = self.y_range();
        let place = |y: f64| match self.y.scale {
            Scale::Linear => y / high,
            Scale::Log if high > low => (y / low).ln() / (high / low).ln(),
            Scale::Log => 1.0,
        };
        let curve = |series: &Series| Curve {
            name: style.line(format!("{} {}", self.name, series.name).trim_start()),
            line: style.glyphs.curve(fitting(&series.points).map(|point| Some(place(point.y)))),
            ends: style.line(&self.ends(&series.points)),
        };
        self.series.iter().filter(|series| series.line_style == LineStyle::Main).map(curve).collect()
    }

    /// `47.5 MB/s (c16) to 103.8 MB/s (c1024)`
    fn ends(&self, points: &[Point]) -> String {
        let text = |point: &Point| format!("{} ({})", (self.y.text)(point.y), (self.x.text)(point.x));
        match points {
            [] => String::new(),
            [only] => text(only),
            [first, .., last] => format!("{} to {}", text(first), text(last)),
        }
    }

    /// Values of all series at each place something was measured at; `n/a` where a series has none.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let mut places: Vec<f64> = self
            .series
            .iter()
            .filter(|series| series.line_style != LineStyle::Limit)
            .flat_map(|series| &series.points)
            .map(|p| p.x)
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let value = |series: &Series, x: f64| {
            let found: BTreeSet<String> = series.points.iter().filter(|p| p.x == x).map(|p| self.value(p)).collect();
            if found.is_empty() { MISSING.to_owned() } else { found.into_iter().collect::<Vec<_>>().join(", ") }
        };
        let row = |x: f64| {
            let cells = self.series.iter().map(|series| value(series, x));
            std::iter::once((self.x.text)(x)).chain(cells).collect()
        };
        places.into_iter().map(row).collect()
    }

    fn value(&self, point: &Point) -> String {
        let label = point.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
        format!("{}{label}", (self.y.text)(point.y))
    }
}

/// As many points as a small curve has room for.
fn fitting(points: &[Point]) -> impl Iterator<Item = &Point> {
    points.iter().step_by(points.len().div_ceil(CURVE_CHARS_MAX).max(1))
}
