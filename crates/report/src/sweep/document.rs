//! The report of a sweep: the answer first, then why, then the metrics.

use linerate_lab::stats::Interval;
use linerate_lab::sweep::{FactorResult, Level, Recommendation, Run, RunMetrics, Sweep};

use super::sentences;
use super::values::{self, count, lost, percent, round_trip};
use crate::document::chart::{Axis, Chart, LineStyle, Point, Series};
use crate::document::plot::Plot;
use crate::document::style::Style;
use crate::document::table::{Cell, Column, Table, numbers};
use crate::document::{Block, Document};
use crate::glyphs::Glyphs;
use crate::numbers::{MISSING, clock};

/// The report as text.
#[must_use]
pub fn text(sweep: &Sweep, glyphs: Glyphs) -> String {
    document(sweep).text(Style {
        glyphs,
        is_coloured: false,
    })
}

/// The report as one HTML file.
#[must_use]
pub fn html(sweep: &Sweep) -> String {
    document(sweep).html()
}

fn document(sweep: &Sweep) -> Document {
    let mut blocks = vec![Block::Title(sentences::verdict(sweep))];
    blocks.extend(sentences::remarks(sweep).into_iter().map(Block::Remark));
    for factor in &sweep.factors {
        blocks.push(Block::Heading(factor.name.to_owned()));
        blocks.push(Block::List(sentences::factor(sweep, factor)));
        blocks.push(Block::Plot(plot(sweep, factor)));
        blocks.push(Block::Table(levels(sweep, factor)));
    }
    if let Recommendation::Use { command, .. }
    | Recommendation::Inconclusive {
        leader: Some((_, _, command)),
        ..
    } = &sweep.answer
    {
        blocks.push(Block::Heading("Again with plain iperf3".to_owned()));
        blocks.push(Block::Verbatim(command.clone()));
    }
    blocks.push(Block::Paragraph(cost(sweep)));
    blocks.push(Block::Details("All runs", Box::new(Block::Table(runs(sweep)))));
    Document {
        name: "linerate sweep",
        blocks,
    }
}

fn cost(sweep: &Sweep) -> String {
    format!(
        "{} to {} port {}{}: {} runs of {} s in {}, {} planned; seed {}; CPU in percent of one core",
        sweep.protocol,
        sweep.host,
        sweep.port,
        if sweep.is_reverse { ", the server sends" } else { "" },
        sweep.cost.runs,
        sweep.method.time_s,
        clock(sweep.cost.seconds),
        sweep.estimate.runs,
        sweep.method.seed
    )
}

/// Medians with their intervals over levels. Levels have equal distances, as on a ladder.
fn plot(sweep: &Sweep, factor: &FactorResult) -> Plot {
    let objective = sweep.objective;
    let labels: Vec<String> = factor.levels.iter().map(|level| level.label.clone()).collect();
    let label = move |place: f64| labels.get(place as usize - 1).cloned().unwrap_or_default();
    let places = || (1..=factor.levels.len()).map(|place| place as f64);
    let point = |(place, level): (f64, &Level)| Point {
        x: place,
        y: level.median,
        is_marked: place as usize == factor.advised + 1,
        interval: level.interval.map(|Interval { low, high }| (low, high)),
        ..Point::default()
    };
    let chart = Chart {
        name: "",
        x: Axis::linear(factor.name, label).at(places()),
        y: Axis::linear(values::title(objective), move |value| values::value(objective, value)),
        series: vec![Series {
            name: "median".to_owned(),
            line_style: LineStyle::Main,
            hue: 0,
            points: places().zip(&factor.levels).map(point).collect(),
        }],
        height: 300.0,
        has_bars: true,
    };
    Plot {
        number: None,
        title: format!("{} by {}", values::title(objective), factor.name),
        key: "vertical: interval; ",
        note: "ringed or *: advised".to_owned(),
        charts: vec![chart],
    }
}

fn levels(sweep: &Sweep, factor: &FactorResult) -> Table {
    let row = |(place, level): (usize, &Level)| {
        let interval = level.interval.map_or_else(
            || MISSING.to_owned(),
            |interval| values::interval(sweep.objective, interval),
        );
        let mut cells = vec![
            Cell::marked(level.label.clone(), place == factor.advised),
            values::value(sweep.objective, level.median).into(),
            interval.into(),
            level.runs.to_string().into(),
        ];
        cells.extend(metric_cells(sweep, &level.metrics));
        cells
    };
    let failures = factor.levels.iter().flat_map(|level| {
        let failures = level.failures.iter();
        failures.map(|failure| format!("{} failed: {failure}", level.label))
    });
    let heads = [factor.name, "median", "interval", "runs"];
    Table {
        id: "",
        title: String::new(),
        columns: numbers(heads).chain(metric_heads(sweep)).collect(),
        rows: factor.levels.iter().enumerate().map(row).collect(),
        notes: failures.collect(),
    }
}

fn metric_heads(sweep: &Sweep) -> impl Iterator<Item = Column> {
    let last = if sweep.protocol == "UDP" { "lost" } else { "retransmits" };
    numbers(["CPU client", "CPU server", last, "round trip"])
}

fn metric_cells(sweep: &Sweep, metrics: &RunMetrics) -> [Cell; 4] {
    [
        percent(metrics.cpu_client_percent).into(),
        percent(metrics.cpu_server_percent).into(),
        if sweep.protocol == "UDP" {
            lost(metrics.lost_percent).into()
        } else {
            count(metrics.retransmits).into()
        },
        round_trip(metrics.rtt_us).into(),
    ]
}

fn runs(sweep: &Sweep) -> Table {
    let row = |(number, run): (usize, &Run)| {
        let name = if run.is_warm_up {
            "warm-up".to_owned()
        } else {
            number.to_string()
        };
        let mut cells: Vec<Cell> = vec![name.into(), format!("{:.1}", run.started_s).into()];
        cells.extend(run.levels.iter().map(|level| Cell::from(level.as_str())));
        match &run.outcome {
            Ok((value, metrics)) => {
                cells.push(values::value(sweep.objective, *value).into());
                cells.extend(metric_cells(sweep, metrics));
            }
            Err(text) => cells.push(format!("failed: {text}").into()),
        }
        cells
    };
    let names = sweep
        .planned
        .iter()
        .map(|planned| Column::Number(planned.name.to_owned()));
    Table {
        id: "",
        title: String::new(),
        columns: numbers(["run", "start s"])
            .chain(names)
            .chain(numbers(["value"]))
            .chain(metric_heads(sweep))
            .collect(),
        rows: sweep.runs.iter().enumerate().map(row).collect(),
        notes: Vec::new(),
    }
}
