//! A drawing as data: axes, series and marks. It is drawn as SVG, listed as a table, and some are
//! drawn as bars on a terminal.

use std::borrow::Cow;

use crate::style::Style;

/// One pair of axes with what lies between them.
pub struct Chart {
    /// Its name within the plot; empty where it is the only one.
    pub name: &'static str,
    /// Left to right.
    pub x: Axis,
    /// Bottom to top.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
    /// Shaded stretches of the left-to-right axis.
    pub bands: Vec<ShadedRange>,
    /// Height in units of which the width has 800.
    pub height: u32,
    /// Text shows a bar for each point; it does not show other charts.
    pub has_bars: bool,
}

/// One axis.
pub struct Axis {
    /// The quantity and its unit.
    pub label: Cow<'static, str>,
    /// Scale of its values.
    pub scale: Scale,
    /// A value with its unit.
    pub text: Box<dyn Fn(f64) -> String>,
    /// Values to write at it; chosen when empty.
    pub ticks: Vec<f64>,
    /// Its ends; chosen from the values when absent.
    pub range: Option<(f64, f64)>,
}

/// A shaded range along the horizontal axis.
pub struct ShadedRange {
    /// Lower end, in the unit of the axis.
    pub from: f64,
    /// Upper end.
    pub to: f64,
    /// Its name, in the first chart of a plot.
    pub label: String,
}

/// Scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    Linear,
    /// By ratio; what is not above 0 has no place.
    Log,
}

/// Points that belong together.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Style of its line.
    pub line_style: LineStyle,
    /// Series of one hue concern the same thing.
    pub hue: usize,
    /// From left to right.
    pub points: Vec<Point>,
    /// Places over which no line leads, from left to right.
    pub breaks: Vec<f64>,
}

/// Style of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LineStyle {
    /// Measured values.
    Main,
    /// Further measured values.
    Thin,
    /// Computed values.
    Limit,
    /// From 0.
    Bars,
    /// The intervals of the points.
    Area,
    /// Points without order.
    Dots,
    /// A computed range: the intervals of the points.
    Shade,
}

/// One point.
#[derive(Default)]
pub struct Point {
    /// Left to right.
    pub x: f64,
    /// Bottom to top.
    pub y: f64,
    /// Text beside it.
    pub label: Option<String>,
    /// A circle is around it.
    pub is_marked: bool,
    /// Interval in which the value lies.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A point without a label.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            ..Self::default()
        }
    }
}

impl Axis {
    /// An axis from 0.
    pub fn linear(
        label: impl Into<Cow<'static, str>>,
        text: impl Fn(f64) -> String + 'static,
    ) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            text: Box::new(text),
            ticks: Vec::new(),
            range: None,
        }
    }

    /// An axis by ratio.
    pub fn log(
        label: impl Into<Cow<'static, str>>,
        text: impl Fn(f64) -> String + 'static,
    ) -> Self {
        Self {
            scale: Scale::Log,
            ..Self::linear(label, text)
        }
    }

    /// An axis with a place for each name.
    pub fn of_names(label: impl Into<Cow<'static, str>>, names: Vec<String>) -> Self {
        let count = names.len() as u32;
        let name = move |at: f64| {
            // Places begin at 1, the list of names at 0.
            let before = (at as usize).saturating_sub(1);
            names.get(before).cloned().unwrap_or_default()
        };
        Self::linear(label, name)
            .at((1..=count).map(f64::from))
            .between(0.5, f64::from(count) + 0.5)
    }

    /// An axis from 0, or by ratio where the values are too far apart for one.
    pub fn of_range(
        label: impl Into<Cow<'static, str>>,
        (low, high): (f64, f64),
        text: impl Fn(f64) -> String + 'static,
    ) -> Self {
        if low > 0.0 && high / low > LINEAR_RATIO_MAX {
            Self::log(label, text)
        } else {
            Self::linear(label, from_zero(text))
        }
    }

    /// Sets the values that are written at the axis.
    pub fn at(mut self, ticks: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = ticks.into_iter().collect();
        self
    }

    /// Sets the ends of the axis.
    pub fn between(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    fn has_place_for(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

/// Smallest and largest value.
pub fn bounds(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let nothing = (f64::INFINITY, f64::NEG_INFINITY);
    let wider = |(low, high): (f64, f64), value| (low.min(value), high.max(value));
    values.into_iter().fold(nothing, wider)
}

/// A value at an axis that begins at 0.
pub fn from_zero(text: impl Fn(f64) -> String) -> impl Fn(f64) -> String {
    move |value| {
        if value == 0.0 {
            "0".to_owned()
        } else {
            text(value)
        }
    }
}

/// Most series of a drawing; more are not distinguishable.
pub const SERIES_MAX: usize = 8;
/// Stretches of which a longer series keeps the lowest and the highest value.
pub(crate) const STRETCHES_MAX: usize = 400;
/// Values of which the highest is more times the lowest have no linear axis in common.
const LINEAR_RATIO_MAX: f64 = 30.0;
/// Fewest measured points of a curve.
const CURVE_POINTS_MIN: usize = 3;
/// Characters of the longest bar.
const BAR_CHARS: usize = 40;

impl Series {
    /// Points that were measured or computed, from left to right.
    pub fn new(
        name: impl Into<String>,
        line_style: LineStyle,
        hue: usize,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        Self {
            name: name.into(),
            line_style,
            hue,
            points: thinned(points.into_iter().collect()),
            breaks: Vec::new(),
        }
    }

    /// No line leads from one side of a break to the other.
    pub(crate) fn is_broken(&self, from: f64, to: f64) -> bool {
        self.breaks.iter().any(|at| (from..to).contains(at))
    }

    pub(crate) fn is_data(&self) -> bool {
        !matches!(self.line_style, LineStyle::Limit | LineStyle::Shade)
    }

    fn is_measured(&self) -> bool {
        self.is_data() && self.line_style != LineStyle::Thin
    }
}

/// The lowest and the highest point of each of [`STRETCHES_MAX`] stretches, so that peaks are kept.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= STRETCHES_MAX {
        return points;
    }

    let stretch = points.len().div_ceil(STRETCHES_MAX);
    let is_kept: Vec<bool> = points
        .chunks(stretch)
        .flat_map(|chunk| {
            let order = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
            let [low, high] = [chunk.iter().min_by(order), chunk.iter().max_by(order)];
            let is_end = move |point: &Point, end: Option<&Point>| {
                // By identity: of several points with one height only one is kept.
                end.is_some_and(|end| std::ptr::eq(end, point))
            };
            chunk
                .iter()
                .map(move |point| is_end(point, low) || is_end(point, high))
        })
        .collect();
    points
        .into_iter()
        .zip(is_kept)
        .filter_map(|(point, is_kept)| is_kept.then_some(point))
        .collect()
}

impl Chart {
    /// A chart of curves, without a name.
    pub fn new(x: Axis, y: Axis, height: u32, series: Vec<Series>) -> Self {
        Self {
            name: "",
            x,
            y,
            series,
            bands: Vec::new(),
            height,
            has_bars: false,
        }
    }

    /// Leaves out what has no place on its axes; none when nothing measured is left.
    pub fn checked(mut self) -> Option<Self> {
        let x = &self.x;
        let y = &self.y;
        for series in &mut self.series {
            series
                .points
                // A logarithmic axis has no place for 0.
                .retain(|point| x.has_place_for(point.x) && y.has_place_for(point.y));
        }

        self.series.retain(|series| !series.points.is_empty());
        self.series.iter().any(Series::is_measured).then_some(self)
    }

    /// True if some measured series has the points of a curve.
    pub fn has_curve(&self) -> bool {
        let mut series = self.series.iter();
        series.any(|series| {
            series.line_style == LineStyle::Main && series.points.len() >= CURVE_POINTS_MIN
        })
    }

    /// Smallest and largest place from left to right.
    pub fn x_range(&self) -> (f64, f64) {
        self.range(|point| [point.x, point.x])
    }

    /// Smallest and largest value, with the intervals.
    pub fn y_range(&self) -> (f64, f64) {
        self.range(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [low.min(point.y), high.max(point.y)]
        })
    }

    fn range(&self, values: impl Fn(&Point) -> [f64; 2]) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        bounds(points.flat_map(values))
    }

    /// Bars from 0, one for each point.
    pub fn bars(&self, style: Style) -> Vec<String> {
        let points: Vec<&Point> = self
            .series
            .iter()
            .flat_map(|series| &series.points)
            .collect();
        // Bars begin at 0, so that values below it have none.
        let highest = points.iter().map(|point| point.y).fold(0.0, f64::max);
        let width = points
            .iter()
            .map(|point| (self.x.text)(point.x).chars().count())
            .max();

        let bar = |point: &Point| {
            let share = if highest > 0.0 {
                point.y / highest
            } else {
                0.0
            };
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_keep_their_peaks() {
        let point = |at: u32| {
            Point::new(
                f64::from(at),
                if at == 20_001 { 9.0 } else { f64::from(at % 2) },
            )
        };
        let series = Series::new("rate", LineStyle::Main, 0, (0..36_000).map(point));
        assert!(series.points.len() <= 2 * STRETCHES_MAX);

        let highest = series
            .points
            .iter()
            .max_by(|a, b| a.y.total_cmp(&b.y))
            .expect("points");
        assert_eq!((highest.x, highest.y), (20_001.0, 9.0));
        assert!(series.points.is_sorted_by_key(|point| point.x));
    }
}
