//! The report of a sweep: the answer first, then why, then the metrics.

use linerate_document::blocks::{Block, Document};
use linerate_document::chart::{Axis, Chart, LineStyle, Point, Series, ShadedRange};
use linerate_document::frame::{Card, Head};
use linerate_document::number::{known, local_time};
use linerate_document::plot::Plot;
use linerate_document::record::RunPage;
use linerate_document::style::Style;
use linerate_document::table::{Cell, Table, TableOf};
use linerate_model::numbers::{clock, digits};
use linerate_model::stats::Interval;
use linerate_model::sweep::{
    FactorResult, Level, Objective, Provenance, Recommendation, RunMetrics, Sweep,
};

use super::{brief, sentences, values};
use crate::{Run, RunError};

/// The report as text: what fits a terminal, or everything where it `is_verbose`.
pub fn text(sweep: &Sweep, is_verbose: bool, style: Style) -> String {
    if is_verbose {
        document(sweep).text(style)
    } else {
        brief::text(sweep, style)
    }
}

/// The report as one HTML file.
pub fn html(sweep: &Sweep, runs: &[Run]) -> String {
    let mut page = page(sweep, runs);
    let host = &sweep.plan.host;
    let client = sweep.provenance.client.name.as_deref();
    page.head.title = format!("{} → {host}: sweep", client.unwrap_or("client"));
    page.head.facts = vec![local_time(&sweep.provenance.started_at), cost(sweep)];
    page.document("linerate sweep").html()
}

/// The page: the answer, a picture of each factor, and all values folded.
pub(crate) fn page(sweep: &Sweep, runs: &[Run]) -> RunPage {
    let mut blocks = remarks(sweep);
    let mut details = Vec::new();
    for factor in &sweep.factors {
        blocks.push(Block::Plot(plot(sweep, factor)));
        let found = sentences::factor(sweep, factor);
        if !found.is_empty() {
            blocks.push(Block::List(found));
        }
        let levels = vec![Block::Table(levels(sweep, factor))];
        details.push(Block::Details(format!("Levels of {}", factor.name), levels));
    }

    blocks.extend(command(sweep));

    let runs = vec![Block::Table(all_runs(sweep, runs))];
    details.push(Block::Details("All runs".to_owned(), runs));
    details.push(Block::Paragraph(provenance(sweep)));
    details.push(Block::Paragraph(cost(sweep)));
    RunPage {
        head: Head {
            verdict: sentences::verdict(sweep),
            cards: cards(sweep),
            ..Head::default()
        },
        blocks,
        details,
    }
}

/// The advised level of each factor with what is as good, and what it reaches.
fn cards(sweep: &Sweep) -> Vec<Card> {
    if !values::has_advice(sweep) {
        return Vec::new();
    }

    let mut cards: Vec<Card> = sweep.factors.iter().filter_map(advised).collect();
    // The values of the answer, which has runs of its own.
    if let Recommendation::Use { leader, interval } = &sweep.answer {
        let objective = sweep.plan.objective;
        let ends = values::interval(objective, *interval);
        let note = format!("{ends}, {:.0} % confidence", sweep.plan.confidence * 100.0);
        let value = values::value(objective, leader.value);
        cards.push(Card::new(values::title(objective), value, note));
        let rtt_us = leader.metrics.rtt_us;
        let rtt_us = rtt_us.filter(|_| objective != Objective::Latency);
        cards.extend(rtt_us.map(|us| Card::new("round trip", values::delay(us), "")));
    }
    cards
}

/// The advised level of a factor, and the levels that are as good.
fn advised(factor: &FactorResult) -> Option<Card> {
    let level = factor.levels.get(factor.advised)?;
    let ends = [factor.plateau.start(), factor.plateau.end()];
    let [low, high] = ends.map(|at| factor.levels.get(*at).map(|level| &*level.label));
    let note = if low == high {
        String::new()
    } else {
        format!("plateau {} to {}", low?, high?)
    };
    Some(Card::new(&factor.name, &level.label, note))
}

fn document(sweep: &Sweep) -> Document {
    let mut blocks = vec![Block::Title(sentences::verdict(sweep))];
    blocks.extend(self::blocks(sweep));
    Document {
        name: "linerate sweep",
        blocks,
    }
}

/// The parts of the report but its title.
pub(crate) fn blocks(sweep: &Sweep) -> Vec<Block> {
    let mut blocks = remarks(sweep);
    for factor in &sweep.factors {
        let found = sentences::factor(sweep, factor);
        if !found.is_empty() {
            blocks.extend([Block::Heading(factor.name.clone()), Block::List(found)]);
        }

        blocks.push(Block::Plot(plot(sweep, factor)));
        blocks.push(Block::Table(levels(sweep, factor)));
    }

    blocks.extend(command(sweep));

    blocks.push(Block::Paragraph(provenance(sweep)));
    blocks.push(Block::Paragraph(cost(sweep)));
    blocks
}

fn remarks(sweep: &Sweep) -> Vec<Block> {
    let remarks = sentences::remarks(sweep).into_iter();
    remarks.map(Block::Remark).collect()
}

fn command(sweep: &Sweep) -> Vec<Block> {
    let Some(leader) = sweep.answer.leader() else {
        return Vec::new();
    };
    vec![
        Block::Heading("The same test with plain iperf3".to_owned()),
        Block::Verbatim(leader.command.clone()),
    ]
}

fn provenance(sweep: &Sweep) -> String {
    let Provenance {
        started_at,
        client,
        server,
        ..
    } = &sweep.provenance;
    format!(
        "{started_at}: client {client}; server {} ({server})",
        sweep.plan.host
    )
}

fn cost(sweep: &Sweep) -> String {
    format!(
        "{} to {} port {}{}: {} runs of {} s in {}, {} planned; seed {}; CPU in percent of one CPU",
        sweep.plan.protocol(),
        sweep.plan.host,
        sweep.plan.port,
        if sweep.plan.is_reverse {
            ", the server sends"
        } else {
            ""
        },
        sweep.cost.runs,
        sweep.run_time_s.unwrap_or(sweep.plan.time_s),
        clock(sweep.cost.seconds),
        sweep.estimate.runs,
        sweep.plan.seed
    )
}

/// Medians with the ranges of their runs over levels; below them what else the runs measured.
fn plot(sweep: &Sweep, factor: &FactorResult) -> Plot {
    let objective = sweep.plan.objective;
    let has_advice = values::has_advice(sweep);
    let y = Axis::linear(values::title(objective), move |value| {
        values::value(objective, value)
    });

    let point = |place: usize, level: &Level| {
        let interval = level.range.map(|Interval { low, high }| (low, high));
        let is_marked = has_advice && place == factor.advised;
        Some(Point {
            is_marked,
            label: is_marked.then(|| "advised".to_owned()),
            interval,
            ..Point::new(0.0, level.median)
        })
    };
    let main = Chart {
        has_bars: true,
        ..chart(factor, "", 300, y, point)
    };

    let below = |name: &'static str,
                 text: fn(f64) -> String,
                 metric: fn(&RunMetrics) -> Option<f64>| {
        let point =
            |_: usize, level: &Level| metric(&level.metrics).map(|value| Point::new(0.0, value));
        chart(factor, name, 180, Axis::linear(name, text), point).checked()
    };
    let loss = match sweep.plan.protocol() {
        "UDP" => below(
            "lost",
            |percent| format!("{}%", digits(percent)),
            |metrics| metrics.lost_percent,
        ),
        _ => below("retransmits", digits, |metrics| metrics.retransmits),
    };

    let round_trip = below("round trip", values::delay, |metrics| metrics.rtt_us)
        .filter(|_| objective != Objective::Latency);
    Plot {
        title: format!("{} by {}", values::title(objective), factor.name),
        key: "vertical: lowest to highest run; ",
        note: if has_advice {
            "*: advised"
        } else {
            "no level is advised"
        }
        .to_owned(),
        charts: std::iter::once(main)
            .chain(loss)
            .chain(round_trip)
            .collect(),
    }
}

/// A value of each level. Amounts are placed by their ratios, choices at equal distances; what the
/// system chooses is no amount, so it lies to the left of them and no line leads to it.
fn chart(
    factor: &FactorResult,
    name: &'static str,
    height: u32,
    y: Axis,
    value: impl Fn(usize, &Level) -> Option<Point>,
) -> Chart {
    let least = factor
        .levels
        .iter()
        .map(|level| level.level)
        .filter(|level| *level > 0)
        .min();
    let least = least.filter(|_| factor.is_amount);
    let places: Vec<(f64, String)> = (1_u32..)
        .zip(&factor.levels)
        .map(|(number, level)| {
            let place = match least {
                // A logarithmic axis has no zero; the system's choice lies beside the amounts.
                Some(least) if level.level == 0 => least as f64 / 1.5,
                Some(_) => level.level as f64,
                None => f64::from(number),
            };
            (place, level.label.clone())
        })
        .collect();

    let points = |wanted: bool| {
        let is_wanted = move |level: &Level| (least.is_some() && level.level == 0) == wanted;
        let levels = factor
            .levels
            .iter()
            .enumerate()
            .filter(move |(_, level)| is_wanted(level));
        let points = levels.filter_map(|(at, level)| {
            Some(Point {
                x: places[at].0,
                ..value(at, level)?
            })
        });
        points.collect::<Vec<_>>()
    };
    let series = [
        ("chosen by the system", 1, points(true)),
        ("median", 0, points(false)),
    ];
    let series = series
        .into_iter()
        .filter(|(_, _, points)| !points.is_empty());
    let series = series
        .map(|(name, hue, points)| Series::new(name, LineStyle::Main, hue, points))
        .collect();
    let ticks: Vec<f64> = places.iter().map(|(place, _)| *place).collect();
    let plateau = [factor.plateau.start(), factor.plateau.end()];
    let bands = match plateau.map(|at| ticks.get(*at)) {
        [Some(from), Some(to)] if from < to => vec![ShadedRange {
            from: *from,
            to: *to,
            label: "plateau".to_owned(),
        }],
        _ => Vec::new(),
    };

    let label = move |x: f64| {
        places
            .iter()
            // Ticks are these very places, so the comparison is exact.
            .find(|(place, _)| *place == x)
            .map_or_else(String::new, |(_, label)| label.clone())
    };
    let axis = if least.is_some() {
        Axis::log(factor.name.clone(), label)
    } else {
        Axis::linear(factor.name.clone(), label)
    };
    Chart {
        name,
        bands,
        ..Chart::new(axis.at(ticks), y, height, series)
    }
}

fn levels(sweep: &Sweep, factor: &FactorResult) -> Table {
    let levels: Vec<(bool, &Level)> = factor
        .levels
        .iter()
        .enumerate()
        .map(|(place, level)| (values::has_advice(sweep) && place == factor.advised, level))
        .collect();
    let range = |level: &Level| {
        known(level.range, |range| {
            values::interval(sweep.plan.objective, range)
        })
    };

    let failures = factor.levels.iter().flat_map(|level| {
        let failures = level.failures.iter();
        failures.map(|failure| format!("{} failed: {failure}", level.label))
    });
    let table = Table::of("", "", &levels)
        .number(&factor.name, |(is_advised, level)| {
            Cell::marked(level.label.clone(), *is_advised)
        })
        .number("median", |(_, level)| {
            values::value(sweep.plan.objective, level.median)
        })
        .number("lowest to highest run", |(_, level)| range(level))
        .number("runs", |(_, level)| level.runs.to_string());
    with_metrics(table, sweep, |(_, level)| Some(&level.metrics))
        .notes(failures)
        .table()
}

/// Adds the columns of the metrics; cells without any are empty.
fn with_metrics<'a, T>(
    table: TableOf<'a, T>,
    sweep: &Sweep,
    metrics: impl Fn(&T) -> Option<&RunMetrics>,
) -> TableOf<'a, T> {
    let text = |item: &T, figure: fn(&RunMetrics) -> Option<f64>, text: fn(f64) -> String| {
        metrics(item).map_or_else(String::new, |metrics| known(figure(metrics), text))
    };
    let percent = |percent: f64| format!("{percent:.0}%");
    let table = table
        .number("CPU client", |item| {
            text(item, |metrics| metrics.cpu_client_percent, percent)
        })
        .number("CPU server", |item| {
            text(item, |metrics| metrics.cpu_server_percent, percent)
        });
    let table = match sweep.plan.protocol() {
        "UDP" => table.number("lost", |item| {
            text(
                item,
                |metrics| metrics.lost_percent,
                |lost| format!("{lost:.2}%"),
            )
        }),
        _ => table.number("retransmits", |item| {
            text(
                item,
                |metrics| metrics.retransmits,
                |count| format!("{count:.0}"),
            )
        }),
    };

    table.number("round trip", |item| {
        text(item, |metrics| metrics.rtt_us, values::delay)
    })
}

fn all_runs(sweep: &Sweep, runs: &[Run]) -> Table {
    let runs: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    let name = |(number, run): &(usize, &Run)| {
        if run.is_warm_up {
            "warm-up".to_owned()
        } else {
            number.to_string()
        }
    };

    let value = |run: &Run| match &run.outcome {
        Ok(run) => values::value(sweep.plan.objective, run.value),
        Err(error) => format!("failed: {error}"),
    };
    let table = Table::of("", "", &runs)
        .number("run", name)
        .number("start s", |(_, run)| format!("{:.1}", run.started_s));
    let table = with_levels(table, sweep).number("value", |(_, run)| value(run));

    with_metrics(table, sweep, |(_, run)| {
        Some(&run.outcome.as_ref().ok()?.metrics)
    })
    .table()
}

fn with_levels<'a>(
    table: TableOf<'a, (usize, &'a Run)>,
    sweep: &Sweep,
) -> TableOf<'a, (usize, &'a Run)> {
    let level = |(_, run): &(usize, &Run), place: usize| {
        run.levels.get(place).cloned().unwrap_or_default().into()
    };
    let head = |place: usize| sweep.plan.factors[place].name.clone();
    table.numbers(0..sweep.plan.factors.len(), head, level)
}

type Measure = fn(&RunMetrics) -> Option<f64>;

const MEASURES: [(&str, Measure); 7] = [
    ("received_bps", |metrics| Some(metrics.received_bps)),
    ("sent_bps", |metrics| metrics.sent_bps),
    ("cpu_client_percent", |metrics| metrics.cpu_client_percent),
    ("cpu_server_percent", |metrics| metrics.cpu_server_percent),
    ("retransmits", |metrics| metrics.retransmits),
    ("rtt_us", |metrics| metrics.rtt_us),
    ("lost_percent", |metrics| metrics.lost_percent),
];

/// A head line and one line per run, in the order of time.
pub fn csv(sweep: &Sweep, runs: &[Run]) -> String {
    let runs: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    let observation = |run: &Run| run.outcome.clone().ok();
    let text = |value: Option<f64>| value.as_ref().map_or_else(String::new, f64::to_string);
    let error = |run: &Run| run.outcome.as_ref().err().map(RunError::to_string);

    let table = Table::of("", "", &runs)
        .number("run", |(number, _)| number.to_string())
        .number("started_s", |(_, run)| format!("{:.3}", run.started_s))
        .number("warm_up", |(_, run)| run.is_warm_up.to_string());
    let head = format!("value_{}", sweep.plan.objective.key());
    with_levels(table, sweep)
        .number(&head, |(_, run)| {
            text(observation(run).map(|run| run.value))
        })
        .numbers(
            MEASURES,
            |(head, _)| head.to_owned(),
            |(_, run), (_, measure)| {
                text(observation(run).and_then(|run| measure(&run.metrics))).into()
            },
        )
        .number("started_at", |_| sweep.provenance.started_at.clone())
        .number("client", |_| sweep.provenance.client.to_string())
        .number("server", |_| {
            format!("{} ({})", sweep.plan.host, sweep.provenance.server)
        })
        .number("error", |(_, run)| error(run).unwrap_or_default())
        .table()
        .csv()
}
