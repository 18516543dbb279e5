//! A drawing as data: axes, series and marks. It is drawn as SVG, listed as a table, and some are drawn as bars on a terminal.

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
    /// Text shows a bar for each point; it does not show other charts.
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
        Self { label, scale: Scale::Linear, text: Box::new(text), ticks: Vec::new() }
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

    fn has_place_for(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

/// Most series of a drawing; more are not distinguishable.
pub(crate) const SERIES_MAX: usize = 8;
/// Fewest measured points of a curve.
const CURVE_POINTS_MIN: usize = 3;
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

    /// Whether some measured series has the points of a curve.
    pub(crate) fn has_curve(&self) -> bool {
        let mut series = self.series.iter();
        series.any(|series| series.line_style == LineStyle::Main && series.points.len() >= CURVE_POINTS_MIN)
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
