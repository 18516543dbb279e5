//! Geometry of drawings: labels are inside and apart, ticks are round.

use super::panels::plot;
use super::rows::boxes;
use super::ruler::Ruler;
use super::*;
use crate::boxes::{BoxRow, Boxes};
use crate::chart::{Axis, Chart, LineStyle, Point, Series, ShadedRange};
use crate::plot::Plot;

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
fn a_single_point_has_its_value_beside_it() {
    let mut plot = timeline();
    for series in plot.charts.iter_mut().flat_map(|chart| &mut chart.series) {
        series.points.truncate(1);
    }
    plot.charts[0].series.truncate(1);
    plot.charts[0].series[0].name = "down".to_owned();

    let drawing = super::panels::plot(&plot, WIDTHS[0]);
    let is_shown = |text: &str| drawing.labels.iter().any(|label| label.text == text);
    assert!(is_shown("down 94 Mbit/s") && is_shown("idle 900 ms"));
    assert_eq!(drawing.shapes.matches("class=\"marker").count(), 3);
}

#[test]
fn lines_stay_between_the_ends_of_their_axes_and_break() {
    let mut plot = timeline();
    plot.charts.remove(0);
    plot.charts[0].series[0].breaks = vec![5.0, 11.0];

    let drawing = super::panels::plot(&plot, WIDTHS[0]);
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
