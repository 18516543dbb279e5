//! A chart as inline SVG with its values as a table below.

use std::convert::Infallible;
use std::fmt::Write;
use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{BoldPoints, DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea};

use crate::backend::{CHAR, PlacedShape, Shape, SvgBackend, TENTHS};
use crate::chart::{Axis, Chart, LineStyle, Point, SLOTS_MAX, Scale, Series};
use crate::page::escaped;
use crate::style::shortened;

const WIDTH: u32 = 800;
/// Room for labels.
const LEFT: u32 = 96;
const RIGHT: u32 = 190;
const TOP: u32 = 22;
const BOTTOM: u32 = 46;
/// Between two labels of an axis.
const X_GAP: f64 = 44.0;
const Y_GAP: f64 = 20.0;
const LEGEND_STEP: u32 = 18;
const HUES: usize = 6;
/// Points of a series beyond which markers would hide the line.
const DENSE: usize = 40;
/// Room of the legend.
const NAME_CHARS_MAX: usize = 22;
/// Places with a text of their own under the pointer; more would be too narrow to point at.
const HOVER_MAX: usize = 100;

type Canvas<'a, 'b> = ChartContext<'a, SvgBackend<'b>, Cartesian2d<AxisTicks, AxisTicks>>;
type Drawn = Result<(), DrawingAreaErrorKind<Infallible>>;

/// Draws a chart of a plot of this title; `label` describes it.
pub(super) fn svg(out: &mut String, chart: &Chart, title: &str, label: &str) {
    // The legend has a line for each series, and may be higher than the drawing.
    let height = chart
        .height
        .max(TOP + BOTTOM + LEGEND_STEP * chart.series.len() as u32);
    let label = escaped(&shortened(label));
    let _ = writeln!(
        out,
        "<div class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{label}\">\n<title>{label}</title>"
    );

    // Writing to a string cannot fail.
    let _ = draw(out, chart, height);
    legend(out, chart, height);
    out.push_str("</svg></div>\n");

    let name = if chart.name.is_empty() {
        title
    } else {
        chart.name
    };
    table(out, chart, &escaped(&shortened(name)));
}

fn draw(out: &mut String, chart: &Chart, height: u32) -> Drawn {
    let root = SvgBackend {
        out,
        size: (WIDTH, height),
    }
    .into_drawing_area();
    let longest = chart
        .x
        .ticks
        .iter()
        .map(|tick| (chart.x.text)(*tick).chars().count())
        .max()
        .unwrap_or(0);
    // Labels on the axis keep the room of one more character between them.
    let gap = X_GAP.max((longest + 1) as f64 * CHAR);
    let x = AxisTicks::new(
        &chart.x,
        chart.x_range(),
        gap / f64::from(WIDTH - LEFT - RIGHT),
    );

    let y = AxisTicks::new(
        &chart.y,
        chart.y_range(),
        Y_GAP / f64::from(height - TOP - BOTTOM),
    );
    let (low, high) = (y.low, y.high);

    let mut canvas = ChartBuilder::on(&root)
        .margin_top(TOP * TENTHS)
        .margin_right(RIGHT * TENTHS)
        .x_label_area_size(BOTTOM * TENTHS)
        .y_label_area_size(LEFT * TENTHS)
        .build_cartesian_2d(x, y)?;
    canvas
        .configure_mesh()
        .set_all_tick_mark_size(4 * TENTHS)
        .x_label_formatter(&|value| (chart.x.text)(*value))
        .y_label_formatter(&|value| (chart.y.text)(*value))
        .draw()?;

    for band in &chart.bands {
        let points = vec![
            (band.from, low),
            (band.to, low),
            (band.to, high),
            (band.from, high),
        ];
        mark(
            &canvas,
            format!("band h{}", band.hue % HUES),
            Shape::Area,
            points,
        )?;
    }

    for series in &chart.series {
        draw_series(&canvas, series)?;
    }

    hover(&canvas, chart, (low, high))?;
    Ok(())
}

fn mark(
    canvas: &Canvas<'_, '_>,
    class: String,
    shape: Shape<'_>,
    points: Vec<(f64, f64)>,
) -> Drawn {
    canvas.plotting_area().draw(&PlacedShape {
        class,
        shape,
        points,
    })
}

fn draw_series(canvas: &Canvas<'_, '_>, series: &Series) -> Drawn {
    // Colours repeat after the last one; symbols still differ.
    let hue = series.hue % HUES;
    let top = |point: &Point| (point.x, point.y);

    let ends = |point: &Point| {
        point
            .interval
            .map(|(low, high)| [(point.x, low), (point.x, high)])
    };
    let is_alone = series.points.len() == 1;
    let class = class(series);

    match series.line_style {
        LineStyle::Dots => {}
        LineStyle::Bars => {
            let bars = series
                .points
                .iter()
                .flat_map(|point| [(point.x, 0.0), top(point)])
                .collect();
            let width = f64::from(WIDTH - LEFT - RIGHT) / series.points.len() as f64 * 0.6;
            mark(canvas, class, Shape::Bars(width.clamp(1.0, 12.0)), bars)?;
        }
        LineStyle::Area | LineStyle::Shade if !is_alone => {
            let [low, high] = [0, 1].map(|end| {
                series
                    .points
                    .iter()
                    .filter_map(move |point| Some(ends(point)?[end]))
            });
            // The line runs around the area: the upper ends to the right, the lower ones back.
            mark(canvas, class, Shape::Area, high.chain(low.rev()).collect())?;
        }
        // One point has no line: its symbol and its interval show it.
        _ if is_alone => {}
        _ => mark(
            canvas,
            class,
            Shape::Line,
            series.points.iter().map(top).collect(),
        )?,
    }

    let is_marked = series.has_symbols() || is_alone;
    for point in &series.points {
        if is_marked {
            mark(
                canvas,
                format!("marker h{hue}"),
                Shape::Symbol(series.hue),
                vec![top(point)],
            )?;
        }

        let is_area = matches!(series.line_style, LineStyle::Area | LineStyle::Shade);
        if let Some(ends) = ends(point).filter(|_| !is_area || is_alone) {
            mark(canvas, format!("whisker h{hue}"), Shape::Line, ends.into())?;
        }

        if point.is_marked {
            mark(
                canvas,
                format!("ring h{hue}"),
                Shape::Ring,
                vec![top(point)],
            )?;
        }

        if let Some(label) = &point.label {
            mark(
                canvas,
                "label".to_owned(),
                Shape::Text("start", label),
                vec![top(point)],
            )?;
        }
    }

    Ok(())
}

impl Series {
    fn has_symbols(&self) -> bool {
        matches!(self.line_style, LineStyle::Main | LineStyle::Dots) && self.points.len() <= DENSE
    }
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

/// Values of all series while the pointer is at a place.
fn hover(canvas: &Canvas<'_, '_>, chart: &Chart, (low, high): (f64, f64)) -> Drawn {
    let slots = chart.slots(HOVER_MAX);
    let ends = canvas.plotting_area().get_x_range();
    let middle = |left: f64, right: f64| match chart.x.scale {
        Scale::Linear => (left + right) / 2.0,
        Scale::Log => (left * right).sqrt(),
    };

    for (number, slot) in slots.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| slots.get(before));
        // A place reaches to the middle between it and its neighbour.
        let from = before.map_or(ends.start, |before| middle(before.to, slot.from));
        let to = slots
            .get(number + 1)
            .map_or(ends.end, |after| middle(slot.to, after.from));

        let cells = chart
            .series
            .iter()
            .zip(&slot.cells)
            .filter_map(|(series, cell)| {
                let cell = cell.as_ref()?;
                Some(format!("{}: {cell}", series.name))
            });
        let text = format!("{}\n{}", slot.name, cells.collect::<Vec<_>>().join("\n"));
        mark(
            canvas,
            String::new(),
            Shape::Hover(text),
            vec![(from, low), (to, high)],
        )?;
    }

    Ok(())
}

/// Names of the axes and of the series.
fn legend(out: &mut String, chart: &Chart, height: u32) {
    let [left, middle] = [8, LEFT + (WIDTH - LEFT - RIGHT) / 2].map(f64::from);
    let name = match (chart.name, &*chart.y.label) {
        ("", label) => label.to_owned(),
        (name, label) if label.is_empty() || label == name => name.to_owned(),
        (name, label) => format!("{name}: {label}"),
    };
    Shape::Text("start", &name).write(out, "name", &[(left, 12.0)]);
    Shape::Text("middle", &chart.x.label).write(out, "", &[(middle, f64::from(height) - 6.0)]);

    let x = f64::from(WIDTH - RIGHT + 12);
    for (place, series) in chart.series.iter().enumerate() {
        let y = f64::from(TOP + 8 + LEGEND_STEP * place as u32);
        match series.line_style {
            LineStyle::Dots => {}
            LineStyle::Area | LineStyle::Bars | LineStyle::Shade => {
                let corners = [
                    (x, y - 5.0),
                    (x + 22.0, y - 5.0),
                    (x + 22.0, y + 5.0),
                    (x, y + 5.0),
                ];
                let style = if series.line_style == LineStyle::Shade {
                    "band"
                } else {
                    "area"
                };
                Shape::Area.write(out, &format!("{style} h{}", series.hue % HUES), &corners);
            }
            _ => Shape::Line.write(out, &class(series), &[(x, y), (x + 22.0, y)]),
        }

        if series.has_symbols() {
            Shape::Symbol(series.hue).write(
                out,
                &format!("marker h{}", series.hue % HUES),
                &[(x + 11.0, y)],
            );
        }

        Shape::Text("start", &cut(&series.name)).write(out, "", &[(x + 28.0, y + 4.0)]);
    }
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect()
}

/// The values as a table, for readers who do not see the drawing.
fn table(out: &mut String, chart: &Chart, name: &str) {
    let _ = write!(
        out,
        "<details><summary>Values: {name}</summary><div class=\"wide\"><table><thead><tr><th \
         scope=\"col\">{}</th>",
        escaped(&chart.x.label)
    );
    let slots = chart.slots(SLOTS_MAX);
    let has_cells = |at: &usize| slots.iter().any(|slot| slot.cells[*at].is_some());
    let listed: Vec<usize> = (0..chart.series.len()).filter(has_cells).collect();
    for at in &listed {
        let _ = write!(
            out,
            "<th scope=\"col\">{}</th>",
            escaped(&shortened(&chart.series[*at].name))
        );
    }

    out.push_str("</tr></thead>\n<tbody>\n");
    for slot in &slots {
        let cells = listed.iter().map(|at| {
            slot.cells[*at]
                .as_deref()
                .unwrap_or(crate::numbers::MISSING)
        });
        let cells: String = cells
            .map(|cell| format!("<td>{}</td>", escaped(&shortened(cell))))
            .collect();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th>{cells}</tr>",
            escaped(&shortened(&slot.name))
        );
    }

    out.push_str("</tbody></table></div></details>\n");
}

/// An axis with its ends and the values that are written at it.
struct AxisTicks {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl AxisTicks {
    /// Labels are at least the share `gap` of the axis apart.
    fn new(axis: &Axis, values: (f64, f64), gap: f64) -> Self {
        let (low, high) = match (axis.range, axis.scale) {
            (Some(range), _) => range,
            (None, Scale::Linear) if values.1 > 0.0 => (0.0, values.1 * 1.05),
            // An axis without a length has no scale.
            (None, Scale::Linear) => (0.0, 1.0),
            (None, Scale::Log) => (values.0 / 1.15, values.1 * 1.15),
        };
        let mut candidates = match (axis.ticks.as_slice(), axis.scale) {
            ([], Scale::Linear) => {
                let steps = (1.0 / gap).clamp(3.0, 8.0) as usize;
                RangedCoordf64::from(low..high).key_points(BoldPoints(steps))
            }
            ([], Scale::Log) => decades(low, high),
            (given, _) => given.to_vec(),
        };
        candidates.retain(|value| (low..=high).contains(value));

        if candidates.is_empty() && axis.scale == Scale::Log {
            // No round value lies on so short an axis.
            candidates.push((low * high).sqrt());
        }

        let mut ruler = Self {
            scale: axis.scale,
            low,
            high,
            ticks: Vec::new(),
        };
        for value in candidates {
            if ruler
                .ticks
                .last()
                .is_none_or(|last| ruler.share(value) - ruler.share(*last) >= gap)
            {
                ruler.ticks.push(value);
            }
        }

        ruler
    }

    /// Where a value lies between the ends.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

impl Ranged for AxisTicks {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, ends: (i32, i32)) -> i32 {
        RangedCoordf64::from(0.0..1.0).map(&self.share(*value), ends)
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        // Only labelled values have a line.
        if hint.weight().allow_light_points() {
            Vec::new()
        } else {
            self.ticks.clone()
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// Powers of ten; between them 2 and 5 where there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last.saturating_sub(first) <= 3 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, values: (f64, f64), gap: f64) -> Vec<String> {
        AxisTicks::new(axis, values, gap)
            .ticks
            .into_iter()
            .map(&axis.text)
            .collect()
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
}
