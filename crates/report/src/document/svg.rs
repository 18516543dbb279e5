//! A chart as inline SVG with its numbers as a table below.

use std::fmt::Write;

use crate::page::escaped;

use super::chart::{Chart, LineStyle, Point, Series};
use super::scale::Ruler;
use super::style::shortened;

const WIDTH: f64 = 800.0;
/// Room for labels.
const LEFT: f64 = 96.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;
/// Between two labels of an axis.
const X_GAP: f64 = 44.0;
const Y_GAP: f64 = 20.0;
const LEGEND_STEP: f64 = 18.0;
const HUES: usize = 6;
const MARKERS: usize = 4;

/// Draws a chart; `label` describes it.
pub(crate) fn svg(out: &mut String, chart: &Chart, label: &str) {
    let height = chart.height.max(TOP + BOTTOM + LEGEND_STEP * chart.series.len() as f64);
    let label = escaped(&shortened(label));
    let _ = writeln!(
        out,
        "<div class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">\n<title>{label}</title>"
    );
    let canvas = Canvas {
        x: Ruler::new(&chart.x, chart.x_range(), (LEFT, WIDTH - RIGHT)),
        y: Ruler::new(&chart.y, chart.y_range(), (height - BOTTOM, TOP)),
        height,
    };
    canvas.axes(out, chart);
    for series in &chart.series {
        canvas.series(out, series);
    }
    legend(out, chart);
    out.push_str("</svg></div>\n");
    numbers(out, chart, &label);
}

struct Canvas {
    x: Ruler,
    y: Ruler,
    height: f64,
}

impl Canvas {
    fn axes(&self, out: &mut String, chart: &Chart) {
        let (right, bottom) = (WIDTH - RIGHT, self.height - BOTTOM);
        for value in self.y.ticks(&chart.y, Y_GAP) {
            let y = self.y.place(value);
            let _ = writeln!(
                out,
                "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>{}",
                text(LEFT - 8.0, y + 4.0, "end", &(chart.y.text)(value))
            );
        }
        for value in self.x.ticks(&chart.x, X_GAP) {
            let x = self.x.place(value);
            let _ = writeln!(
                out,
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>{}",
                text(x, bottom + 16.0, "middle", &(chart.x.text)(value))
            );
        }
        let middle = TOP + (bottom - TOP) / 2.0;
        let _ = writeln!(
            out,
            "{}<g transform=\"translate(14 {middle:.1}) rotate(-90)\">{}</g>",
            text(LEFT + (right - LEFT) / 2.0, bottom + 36.0, "middle", chart.x.label),
            text(0.0, 0.0, "middle", chart.y.label)
        );
    }

    fn series(&self, out: &mut String, series: &Series) {
        let hue = series.hue % HUES;
        let corner = |point: &Point| format!("{:.1},{:.1}", self.x.place(point.x), self.y.place(point.y));
        let corners: Vec<String> = series.points.iter().map(corner).collect();
        let _ = writeln!(
            out,
            "<polyline class=\"line {} h{hue}\" points=\"{}\"/>",
            line_class(series.line_style),
            corners.join(" ")
        );
        let has_markers = series.line_style == LineStyle::Main && series.points.len() <= DENSE;
        let is_alone = series.points.len() == 1;
        for point in &series.points {
            let (x, y) = (self.x.place(point.x), self.y.place(point.y));
            if has_markers || is_alone {
                out.push_str(&marker(x, y, series.hue));
            }
            if let Some((low, high)) = point.interval {
                let (low, high) = (self.y.place(low), self.y.place(high));
                let _ = writeln!(
                    out,
                    "<line class=\"whisker h{hue}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>"
                );
            }
            if point.is_marked {
                let _ = writeln!(out, "<circle class=\"ring h{hue}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/>");
            }
            if let Some(label) = &point.label {
                let _ = writeln!(out, "{}", text(x + 7.0, y - 7.0, "start", label));
            }
        }
    }
}

/// Points of a series beyond which markers would hide the line.
const DENSE: usize = 40;

fn legend(out: &mut String, chart: &Chart) {
    let x = WIDTH - RIGHT + 12.0;
    for (place, series) in chart.series.iter().enumerate() {
        let y = TOP + 8.0 + LEGEND_STEP * place as f64;
        let hue = series.hue % HUES;
        let _ = write!(
            out,
            "<line class=\"line {} h{hue}\" x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>",
            line_class(series.line_style),
            x + 22.0
        );
        if series.line_style == LineStyle::Main && series.points.len() <= DENSE {
            out.push_str(&marker(x + 11.0, y, series.hue));
        }
        let _ = writeln!(out, "{}", text(x + 28.0, y + 4.0, "start", &cut(&series.name)));
    }
}

/// What the legend has room for.
const NAME_CHARS_MAX: usize = 22;

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect()
}

fn line_class(style: LineStyle) -> &'static str {
    match style {
        LineStyle::Main => "main",
        LineStyle::Thin => "thin",
        LineStyle::Limit => "limit",
    }
}

/// Circle, square, triangle, diamond: series are distinguishable without colours.
fn marker(x: f64, y: f64, hue: usize) -> String {
    let class = format!("marker h{}", hue % HUES);
    match hue % MARKERS {
        0 => format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\n"),
        1 => {
            let (x, y) = (x - 3.5, y - 3.5);
            format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"7\" height=\"7\"/>\n")
        }
        2 => format!("<path class=\"{class}\" d=\"M{x:.1} {y:.1}m0 -5l4.5 8h-9z\"/>\n"),
        _ => format!("<path class=\"{class}\" d=\"M{x:.1} {y:.1}m0 -5l5 5l-5 5l-5 -5z\"/>\n"),
    }
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escaped(&shortened(text));
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

/// The same as a table, for readers who do not see it.
fn numbers(out: &mut String, chart: &Chart, label: &str) {
    let _ = write!(
        out,
        "<details><summary>Figures: {label}</summary><div class=\"wide\"><table><thead><tr><th scope=\"col\">{}</th>",
        escaped(chart.x.label)
    );
    for series in &chart.series {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(&shortened(&series.name)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in chart.rows() {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    out.push_str("</tbody></table></div></details>\n");
}
