//! Drawings that belong together, with their title and what a reader must know.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::chart::{Chart, Point, Series, bounds};
use crate::style::{Style, shortened};
use crate::table::{Cell, Table};
use crate::wrap::wrapped;

/// Drawings that belong together.
pub struct Plot {
    /// Subject.
    pub title: String,
    /// Meaning of its lines and marks.
    pub key: &'static str,
    /// Over how many runs, and what a reader must know.
    pub note: String,
    /// One below another, on the horizontal axis of the first one.
    pub charts: Vec<Chart>,
}

/// Most rows of the table of a plot.
const ROWS_MAX: usize = 16;
/// Most series that the sentence of a drawing names.
const SERIES_SAID: usize = 8;

/// Values of all series at a place, or within a stretch of places.
pub(crate) struct Slot {
    /// Lower end, in the unit of the axis.
    pub from: f64,
    /// Upper end.
    pub to: f64,
    /// The place with its unit.
    pub name: String,
    /// A value for each series of each chart that has one here.
    pub cells: Vec<Option<String>>,
}

impl Plot {
    /// A plot of one drawing; none without a curve.
    pub fn of(title: &str, key: &'static str, note: String, chart: Chart) -> Option<Self> {
        let chart = chart.checked().filter(Chart::has_curve)?;
        Some(Self {
            title: title.to_owned(),
            key,
            note,
            charts: vec![chart],
        })
    }

    /// As bars for a terminal.
    pub fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for line in wrapped(
            &style.line(&format!("{} ({})", self.title, self.note)),
            style.columns,
        ) {
            let _ = writeln!(out, "{line}");
        }

        for bar in self
            .charts
            .iter()
            // Curves are drawings: a terminal shows charts of bars alone.
            .filter(|chart| chart.has_bars)
            .flat_map(|chart| chart.bars(style))
        {
            let _ = writeln!(out, "{bar}");
        }

        out
    }

    /// `goodput over time: down 90 Mbit/s to 95 Mbit/s`
    pub(crate) fn sentence(&self) -> String {
        let ends = self.series().filter(|(_, series)| series.is_data());
        let ends = ends.filter_map(|(chart, series)| {
            let order = |a: &&Point, b: &&Point| a.y.total_cmp(&b.y);
            let [low, high] = [
                series.points.iter().min_by(order)?,
                series.points.iter().max_by(order)?,
            ]
            .map(|point| (chart.y.text)(point.y));
            Some(if low == high {
                format!("{} {low}", series.name)
            } else {
                format!("{} {low} to {high}", series.name)
            })
        });
        let ends: Vec<String> = ends.take(SERIES_SAID).collect();
        shortened(&format!("{}: {}", self.title, ends.join("; ")))
    }

    fn series(&self) -> impl Iterator<Item = (&Chart, &Series)> {
        let charts = self.charts.iter();
        charts.flat_map(|chart| chart.series.iter().map(move |series| (chart, series)))
    }

    /// Smallest and largest place from left to right.
    pub(crate) fn x_range(&self) -> (f64, f64) {
        let ends = self.charts.iter().map(Chart::x_range);
        bounds(ends.flat_map(<[f64; 2]>::from))
    }

    /// The values at [`ROWS_MAX`] places or stretches.
    pub(crate) fn values(&self) -> Table {
        let slots = self.slots(ROWS_MAX);
        let x = self.charts.first().map(|chart| chart.x.label.clone());
        let listed = self.series().enumerate().filter(|(at, _)| {
            // A series may have no value at any listed place.
            slots.iter().any(|slot| slot.cells[*at].is_some())
        });
        let listed: Vec<(usize, String)> = listed
            .map(|(at, (chart, series))| match chart.name {
                "" => (at, series.name.clone()),
                name => (at, format!("{name}: {}", series.name)),
            })
            .collect();

        let table = Table::of("", "", &slots).text(&x.unwrap_or_default(), |slot| &*slot.name);
        let head = |(_, name): &(usize, String)| name.clone();
        let cell = |slot: &Slot, (at, _): &(usize, String)| {
            Cell::from(slot.cells[*at].as_deref().unwrap_or_default())
        };
        table.numbers(&listed, head, cell).table()
    }

    /// Values of all series at each place something was measured at. Where there are more than
    /// `slots_max` places, neighbours share a slot, which has the lowest and the highest value.
    pub(crate) fn slots(&self, slots_max: usize) -> Vec<Slot> {
        let series = self.series().filter(|(_, series)| series.is_data());
        let mut places: Vec<f64> = series
            .flat_map(|(_, series)| series.points.iter().map(|point| point.x))
            .collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();

        let text = |place: f64| {
            let first = self.charts.first();
            first.map_or_else(String::new, |chart| (chart.x.text)(place))
        };
        let slot = |places: &[f64]| {
            // Chunks are never empty.
            let from = places[0];
            let to = places[places.len() - 1];
            let [first, last] = [from, to].map(text);
            let cells = self.series();
            Slot {
                from,
                to,
                name: if from == to {
                    first
                } else {
                    format!("{first} to {last}")
                },
                cells: cells
                    .map(|(chart, series)| chart.cell(series, from, to))
                    .collect(),
            }
        };
        places
            .chunks(places.len().div_ceil(slots_max).max(1))
            .map(slot)
            .collect()
    }
}

impl Chart {
    fn cell(&self, series: &Series, from: f64, to: f64) -> Option<String> {
        let points: Vec<&Point> = series
            .points
            .iter()
            .filter(|point| (from..=to).contains(&point.x))
            .collect();
        if from == to {
            // Equal values at one place are listed once.
            let texts: BTreeSet<String> = points.iter().map(|point| self.value(point)).collect();
            return (!texts.is_empty()).then(|| texts.into_iter().collect::<Vec<_>>().join(", "));
        }

        let order = |a: &&&Point, b: &&&Point| a.y.total_cmp(&b.y);
        let low = points.iter().min_by(order).map(|point| self.value(point))?;
        let high = points.iter().max_by(order).map(|point| self.value(point))?;
        Some(if low == high {
            low
        } else {
            format!("{low} to {high}")
        })
    }

    fn value(&self, point: &Point) -> String {
        let label = point
            .label
            .as_ref()
            .map_or_else(String::new, |label| format!(" ({label})"));
        format!("{}{label}", (self.y.text)(point.y))
    }
}
