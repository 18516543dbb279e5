//! One run of the load generator as a page.

use linerate_doctor::report::doubt;
use linerate_document::blocks::Block;
use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series, ShadedRange, from_zero};
use linerate_document::frame::{Card, Head};
use linerate_document::plot::Plot;
use linerate_document::record::RunPage;
use linerate_model::http::{LoadResult, Mode, Second, VerdictClass};
use linerate_model::numbers::rate;
use linerate_model::words::joined;

use super::{LoadReport, amount, details, entry, errors_counted, notes};
use crate::report::labels::{per_s, quantile, time};
use crate::report::{labels, plots};

/// Results as cards, what limits the load, responses over time and latency by quantile; everything
/// else folded.
pub(crate) fn load_page(report: &LoadReport<'_>) -> RunPage {
    let load = report.load;
    let (steps, notes): (Vec<_>, Vec<_>) = notes(report, true)
        .into_iter()
        .partition(|(label, _)| *label == "Do");
    let mut blocks: Vec<Block> = notes
        .into_iter()
        .map(|(label, text)| entry(label, text))
        .collect();
    let drawn = [over_time(load), plots::latency_of(load)];
    blocks.extend(drawn.into_iter().flatten().map(Block::Plot));

    // The title of a page is that of its run.
    let values = details(report).into_iter().map(|block| match block {
        Block::Title(text) => Block::Answer(text),
        block => block,
    });
    RunPage {
        head: Head {
            verdict: verdict(report),
            step: steps
                .into_iter()
                .next()
                .map_or_else(String::new, |(_, text)| text),
            cards: cards(load),
            ..Head::default()
        },
        blocks,
        details: vec![Block::Details("All values".to_owned(), values.collect())],
    }
}

/// `29,500 responses/s, limit: one CPU of the server (likely); no errors`
fn verdict(report: &LoadReport<'_>) -> String {
    let limit = report.verdict.map(|verdict| {
        let class = verdict.primary.class;
        let name = match class {
            VerdictClass::Invalid => "not valid".to_owned(),
            class => format!("limit: {}", labels::limit(class)),
        };
        format!("{name}{}", doubt(verdict.confidence))
    });
    let parts = [
        Some(amount(report.load)),
        limit,
        Some(errors_counted(report.load)),
    ];
    joined(parts.into_iter().flatten(), "; ")
}

fn cards(load: &LoadResult) -> Vec<Card> {
    let latency = &load.latency;
    let is_idle = matches!(load.mode, Mode::Idle { .. });
    let responses = load.ok_per_s().filter(|_| !is_idle);
    let goodput = load.payload_bytes_per_s().filter(|_| !is_idle);

    let rates = [
        responses.map(|per_second| Card::new("responses", format!("{} /s", per_s(per_second)), "")),
        goodput.map(|bytes_per_second| Card::new("goodput", rate(bytes_per_second * 8.0), "")),
    ];
    let quantiles = [
        ("median latency", latency.p50),
        ("p99 latency", latency.p99),
    ];
    let times = quantiles
        .into_iter()
        .filter(|(_, value)| value.is_some())
        .map(|(name, value)| Card::new(name, quantile(value, latency.n), ""));
    rates.into_iter().flatten().chain(times).collect()
}

type Figure = fn(&Second) -> Option<f64>;

/// Responses, their p99 and failures of each second on one time axis.
fn over_time(load: &LoadResult) -> Option<Plot> {
    let warm_up_s = f64::from(load.warmup_seconds);
    let end_s = load.seconds.len() as f64;
    let panel = |name, y: Axis, height, (style, hue), value: Figure| {
        let points = (0_u32..).zip(&load.seconds).filter_map(|(place, second)| {
            // A second is drawn at its middle.
            Some(Point::new(f64::from(place) + 0.5, value(second)?))
        });
        let bands = (warm_up_s > 0.0).then(|| ShadedRange {
            from: 0.0,
            to: warm_up_s,
            label: "warm-up".to_owned(),
        });
        let x = Axis::linear("time", |s| format!("{s:.0} s")).between(0.0, end_s);
        let chart = Chart {
            name,
            bands: bands.into_iter().collect(),
            ..Chart::new(x, y, height, vec![Series::new(name, style, hue, points)])
        };
        chart.checked()
    };

    let panels = [
        panel(
            "responses per second",
            Axis::linear("", from_zero(per_s)),
            190,
            (LineStyle::Main, 0),
            |second| Some(second.ok as f64),
        ),
        panel(
            "p99 latency",
            Axis::linear("", from_zero(time)),
            150,
            (LineStyle::Main, 2),
            |second| Some(second.p99_ns? as f64),
        ),
        panel(
            "failures per second",
            Axis::linear("", from_zero(per_s)),
            60,
            (LineStyle::Bars, 4),
            |second| Some(second.errors as f64).filter(|errors| *errors > 0.0),
        ),
    ];
    let charts: Vec<Chart> = panels.into_iter().flatten().collect();
    let is_a_curve = charts.iter().any(Chart::has_curve);

    is_a_curve.then(|| Plot {
        title: "Over time".to_owned(),
        key: "",
        note: "one run".to_owned(),
        charts,
    })
}
