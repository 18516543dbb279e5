//! Charts of a comparison: the trials of both sides, and the changes with floor and margin.

use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series};
use linerate_document::plot::Plot;
use linerate_model::stats::median;
use linerate_model::two_sample::Judged;

use crate::conclude::compare::Row;

/// Most measures or cells of a chart.
const ROWS_MAX: usize = 8;

/// The charts of the rows that decide.
pub(super) fn plots(rows: &[&Row]) -> Vec<Plot> {
    let deciding = rows.get(..ROWS_MAX).unwrap_or(rows);
    let sides = Plot {
        title: "Trials of both sides".to_owned(),
        key: "",
        note: "dashed: median; the axis does not begin at 0".to_owned(),
        charts: deciding.iter().filter_map(|row| sides(row)).collect(),
    };

    let changes = changes(deciding).map(|chart| Plot {
        title: "B against A".to_owned(),
        key: "",
        note: "vertical: 95 % interval; a change within the floor is noise, one within the margin \
               does not matter"
            .to_owned(),
        charts: vec![chart],
    });
    Some(sides)
        .filter(|plot| !plot.charts.is_empty())
        .into_iter()
        .chain(changes)
        .collect()
}

/// The trials of A on the left, those of B on the right.
fn sides(row: &Row) -> Option<Chart> {
    let info = row.measure.info();
    let sides = [("A", &row.judged.a), ("B", &row.judged.b)];
    let all = || sides.iter().flat_map(|(_, values)| values.iter().copied());
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(f64::NEG_INFINITY, f64::max);
    // Equal values need room around them as well: an axis has a length.
    let air = ((high - low) * 0.2)
        .max(high.abs() * 0.005)
        .max(f64::MIN_POSITIVE);
    let mut series = Vec::new();

    for (hue, (name, values)) in sides.into_iter().enumerate() {
        let left = hue as f64 + 0.6;
        let step = 0.8 / values.len().max(1) as f64;
        let dots = values
            .iter()
            .enumerate()
            .map(|(at, value)| Point::new(left + step * (at as f64 + 0.5), *value));
        series.push(Series::new(name, LineStyle::Dots, hue, dots));

        let middle = median(values)?;
        let ends = [left, left + 0.8].map(|x| Point::new(x, middle));
        series.push(Series::new(
            format!("median of {name}"),
            LineStyle::Limit,
            hue,
            ends,
        ));
    }

    let side = |x: f64| {
        if x < 1.5 {
            "A".to_owned()
        } else {
            "B".to_owned()
        }
    };
    let x = Axis::linear("side", side).at([1.0, 2.0]).between(0.5, 2.5);
    let y = Axis::linear(row.name(), move |value| info.unit.text(value))
        .between((low - air).max(0.0), high + air);

    Chart::new(x, y, 240, series).checked()
}

/// Changes in percent with their intervals, floor and margin.
fn changes(rows: &[&Row]) -> Option<Chart> {
    let rows: Vec<&Row> = rows
        .iter()
        .copied()
        // Differences have units of their own, and no axis in common.
        .filter(|row| row.judged.is_ratio)
        .collect();
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;

    let effect = |(at, row): (u32, &&Row)| {
        let interval = row
            .judged
            .interval
            .map(|interval| (percent(interval.low), percent(interval.high)));
        Point {
            interval,
            ..Point::new(f64::from(at), percent(row.judged.estimate))
        }
    };
    let shade = |size: fn(&Judged) -> f64| -> Vec<Point> {
        let ends = (1_u32..)
            .zip(&rows)
            .flat_map(|(at, row)| [-0.5, 0.5].map(|end| (f64::from(at) + end, row)));
        let ends = ends.map(|(x, row)| (x, size(&row.judged) * 100.0));
        ends.map(|(x, size)| Point {
            interval: Some((-size, size)),
            ..Point::new(x, size)
        })
        .collect()
    };
    let series = vec![
        Series::new("margin", LineStyle::Shade, 2, shade(|judged| judged.margin)),
        Series::new("floor", LineStyle::Shade, 0, shade(|judged| judged.floor)),
        Series::new("change", LineStyle::Dots, 1, (1..).zip(&rows).map(effect)),
    ];
    let ends = series
        .iter()
        .flat_map(|series| &series.points)
        .flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
    let widest = ends
        .map(f64::abs)
        .filter(|end| end.is_finite())
        .fold(0.0, f64::max);
    let names: Vec<String> = rows.iter().map(|row| row.name()).collect();
    let x = Axis::of_names("measure", names);
    let y = Axis::linear("B against A", |percent| format!("{percent:+.1} %"))
        .between(-widest * 1.2, widest * 1.2);

    Chart::new(x, y, 240, series).checked()
}
