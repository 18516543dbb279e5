//! One frame for all kinds of run: the answer, why, charts, values, hosts, how to repeat it, the
//! record.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_model::measure::MeasureName;
use linerate_model::path::PathReport;
use linerate_model::record::{Body, Detail, RunKind, RunRecord, RunState, TestDetail, Trial};
use linerate_model::spec::{Direction, Transport};
use linerate_model::stored_name;

use super::intervals::TimeRange;
use super::measures::{self, Values, has_own_trials, value};
use super::product::{ProductReport, RunPage};
use super::{charts, hosts};
use crate::blocks::{Block, Document, Download};
use crate::frame::Head;
use crate::number::{counted, local_time};
use crate::numbers::{MISSING, digits};
use crate::table::Table;

/// Most runs of one report.
pub const RUNS_MAX: usize = 200;
/// Most runs of a page that are shown in full.
const DETAILED_MAX: usize = 10;
/// Most bytes of the charts of a page.
const CHARTS_BYTES_MAX: usize = 600_000;
/// Most bytes of a deflated record, and of all those of a page.
const RECORDS_BYTES_MAX: usize = 180_000;

/// The whole page.
pub(super) fn page(records: &[RunRecord], stretch: TimeRange, product: ProductReport) -> String {
    let shown = shown(records);
    let mut document = Document {
        name: "linerate report",
        blocks: overview(records, product),
    };
    let is_part = records.len() > 1;
    let all = &records[..records.len().min(RUNS_MAX)];
    let over_runs = charts::over_runs(all).filter(|_| is_part);
    document.blocks.extend(over_runs.map(Block::Plot));
    for record in shown {
        document
            .blocks
            .extend(framed(record, stretch, product, is_part));
    }
    // Charts are cut before the files are added, which have a limit of their own.
    limit_charts(&mut document.blocks);
    document.blocks.extend(raw(shown));

    document.html()
}

/// The report as text.
pub(super) fn summary(records: &[RunRecord], product: ProductReport) -> Document {
    let is_one = records.len() == 1;
    let mut blocks = overview(records, product);
    for record in shown(records) {
        let title = title(record, product, " to ");
        blocks.push(if is_one {
            Block::Title(title)
        } else {
            Block::Heading(title)
        });
        blocks.extend(run(record, product));
    }
    Document {
        name: "linerate report",
        blocks,
    }
}

fn shown(records: &[RunRecord]) -> &[RunRecord] {
    &records[..records.len().min(DETAILED_MAX)]
}

/// One row per run, where there are several.
fn overview(records: &[RunRecord], product: ProductReport) -> Vec<Block> {
    if records.len() < 2 {
        return Vec::new();
    }

    let result = |record: &RunRecord| {
        let measures = measures::all(record);
        let sentences = measures::primary(&measures)
            .into_iter()
            .filter_map(Values::best);
        let all = sentences.collect::<Vec<_>>().join("; ");
        if all.is_empty() {
            MISSING.to_owned()
        } else {
            all
        }
    };
    // A store has any number of runs.
    let rows: Vec<&RunRecord> = records.iter().take(RUNS_MAX).collect();
    let table = Table::of("", "", &rows)
        .text("run", |record| record.run_id.short())
        .text("started", |record| local_time(&record.started_at))
        .text("what", |record| title(record, product, " to "))
        .text("state", |record| record.state.words().to_owned())
        .text("result", |record| result(record));

    let mut notes = Vec::new();
    if records.len() > RUNS_MAX {
        notes.push(format!(
            "the first {RUNS_MAX} of {} runs; name fewer, or select them with --since or a label",
            records.len()
        ));
    }

    if records.len() > DETAILED_MAX {
        notes.push(format!("the first {DETAILED_MAX} runs follow in full"));
    }

    let title = format!("{} runs", records.len());
    vec![
        Block::Title(title),
        Block::Table(table.notes(notes).table()),
    ]
}

/// Title given by the user, or what was run.
fn title(record: &RunRecord, product: ProductReport, arrow: &str) -> String {
    let what = match &record.body {
        Body::Sweep(_) => "sweep".to_owned(),
        Body::Test | Body::Session(_) => match (path(record), test(record)) {
            (Some(report), _) => format!("path test, profile {}", stored_name(report.profile)),
            (None, Some(detail)) => test_name(detail),
            (None, None) => "throughput test".to_owned(),
        },
        Body::HttpLoad(_) => "HTTP load".to_owned(),
        Body::HttpLab(_) => "HTTP lab".to_owned(),
        Body::Doctor => "diagnosis".to_owned(),
        _ => (product.name)(record).unwrap_or_else(|| stored_name(record.kind)),
    };
    let ends = match (&record.path.client, &record.path.server) {
        (Some(client), Some(server)) => format!("{client}{arrow}{server}: "),
        (None, Some(server)) => format!("to {server}: "),
        (Some(client), None) => format!("{client}: "),
        (None, None) => String::new(),
    };

    let title = record
        .title
        .as_ref()
        .map_or_else(String::new, |title| format!("{title}: "));
    format!("{title}{ends}{what}")
}

fn test(record: &RunRecord) -> Option<&TestDetail> {
    record.trials.iter().find_map(|trial| match &trial.detail {
        Some(Detail::Test(detail)) => Some(&**detail),
        _ => None,
    })
}

/// The report of the first test of a path.
fn path(record: &RunRecord) -> Option<&PathReport> {
    record.trials.iter().find_map(|trial| match &trial.detail {
        Some(Detail::Path(report)) => Some(&**report),
        _ => None,
    })
}

/// `TCP, 4 streams, down`
fn test_name(detail: &TestDetail) -> String {
    let spec = &detail.header.spec;
    let transport = match spec.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
        Transport::Sctp => "SCTP",
    };

    let direction = match spec.direction {
        Direction::Forward => "up",
        Direction::Reverse => "down",
        Direction::Bidirectional => "up and down",
    };
    format!(
        "{transport}, {}, {direction}",
        counted(spec.streams as usize, "stream")
    )
}

/// One run as text.
fn run(record: &RunRecord, product: ProductReport) -> Vec<Block> {
    let measures = measures::all(record);
    let mut blocks: Vec<Block> = answers(record, &measures, product, |values| values.best())
        .into_iter()
        .map(Block::Answer)
        .collect();
    blocks.push(Block::Remark(made(record)));
    blocks.extend(record.notes.iter().map(|note| Block::Remark(note.clone())));

    if let Some(diagnosis) = &record.diagnosis {
        blocks.push(Block::Heading("What limits it".to_owned()));
        blocks.extend((product.diagnosis)(diagnosis));
    }

    blocks.extend((product.blocks)(record).unwrap_or_default());
    // The report of a path has its values in its own order.
    let values = values(&measures).filter(|_| path(record).is_none());
    blocks.extend(
        values
            .into_iter()
            .flat_map(|table| [Block::Heading("Values".to_owned()), Block::Table(table)]),
    );
    blocks.extend(hosts::hosts(record));
    blocks.extend(repeat(record));

    blocks
}

/// One run in the order of the frame: the answer, pictures, why, and everything else folded.
fn framed(
    record: &RunRecord,
    stretch: TimeRange,
    product: ProductReport,
    is_part: bool,
) -> Vec<Block> {
    let measures = measures::all(record);
    let RunPage {
        mut head,
        blocks: pictures,
        details,
    } = (product.page)(record).unwrap_or_else(|| generic(record, &measures, stretch, product));

    head.title = title(record, product, " → ");
    head.facts = facts(record);
    head.is_part = is_part;
    let mut blocks = vec![Block::Head(head)];
    blocks.extend(record.notes.iter().map(|note| Block::Remark(note.clone())));
    blocks.extend(pictures);

    if let Some(diagnosis) = &record.diagnosis {
        blocks.push(Block::Heading("Why".to_owned()));
        blocks.extend((product.findings)(diagnosis));
    }

    let trials = measures::trials(record, &measures).filter(|_| !has_own_trials(record));
    // The report of a path has its values in its own order.
    let values = values(&measures).filter(|_| path(record).is_none());
    let tables = [("All measures", values), ("All trials", trials)];
    let folded = tables.into_iter().filter_map(|(name, table)| {
        Some(Block::Details(name.to_owned(), vec![Block::Table(table?)]))
    });
    let details: Vec<Block> = details.into_iter().chain(folded).collect();
    if !details.is_empty() {
        blocks.push(Block::Heading("Details".to_owned()));
        blocks.extend(details);
    }
    blocks.extend(hosts::hosts(record));
    blocks.extend(repeat(record));

    blocks
}

/// The page of a run without one of its product.
fn generic(
    record: &RunRecord,
    measures: &[Values<'_>],
    stretch: TimeRange,
    product: ProductReport,
) -> RunPage {
    let mut blocks = Vec::new();
    if stretch != TimeRange::default() {
        let end = if stretch.to_ns == u64::MAX {
            "the end".to_owned()
        } else {
            seconds(stretch.to_ns)
        };
        let text = format!(
            "Charts: from {} to {end} of each trial. The values are those of the whole run.",
            seconds(stretch.from_ns)
        );
        blocks.push(Block::Remark(text));
    }

    let plots = charts::plots(record, measures, stretch);
    if plots.is_empty() && matches!(record.kind, RunKind::Test | RunKind::Session) {
        blocks.push(Block::Paragraph(
            "No charts: no values over time were recorded.".to_owned(),
        ));
    }
    blocks.extend((product.blocks)(record).unwrap_or_default());
    blocks.extend(plots.into_iter().map(Block::Plot));

    let mut found = answers(record, measures, product, |values| values.best_median());
    let limit = record.diagnosis.as_deref().map(product.limit);
    let (sentence, step) = limit.unwrap_or_default();
    found.extend((!sentence.is_empty()).then_some(sentence));
    RunPage {
        head: Head {
            verdict: found.join("; "),
            step: step.unwrap_or_default(),
            cards: measures::cards(measures),
            ..Head::default()
        },
        blocks,
        details: Vec::new(),
    }
}

/// Median and interval of every measure; settings have no common value.
fn values(measures: &[Values<'_>]) -> Option<Table> {
    let has_settings = measures::primary(measures)
        .first()
        .is_some_and(|values| values.settings().len() > 1);
    measures::table(measures).filter(|_| !has_settings)
}

/// Answers of the run; of a run without a result the reason.
fn answers(
    record: &RunRecord,
    measures: &[Values<'_>],
    product: ProductReport,
    sentence: fn(&Values<'_>) -> Option<String>,
) -> Vec<String> {
    let reason = record
        .reason
        .as_ref()
        .or_else(|| record.trials.iter().find_map(|trial| trial.reason.as_ref()));
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let elapsed = seconds(record.elapsed_ns);
    let state = match record.state {
        RunState::Complete => None,
        RunState::Partial => Some(format!("Incomplete, {elapsed} of it{reason}")),
        RunState::Failed => Some(format!("Failed after {elapsed}{reason}")),
        RunState::Interrupted => Some(format!("Interrupted after {elapsed}{reason}")),
        RunState::Refused => Some(format!("Refused{reason}")),
        RunState::NoAnswer => Some(format!("No answer{reason}")),
        RunState::Ended => Some(format!("The process ended without a result{reason}")),
        RunState::Running => Some("Not finished yet".to_owned()),
    };

    let answers: Vec<String> = match &record.body {
        // Its cells have no common value.
        Body::HttpLab(Some(_)) => Vec::new(),
        _ => (product.answers)(record).unwrap_or_else(|| {
            measures::primary(measures)
                .into_iter()
                .filter_map(sentence)
                .collect()
        }),
    };
    let loss = measures
        .iter()
        .filter(|values| is_loss(values) && !has_own_trials(record))
        .filter_map(|values| {
            let median = values.median().filter(|median| *median > 0.0)?;
            let way = measures::way(values.way);
            Some(
                format!(
                    "{} of the datagrams lost {way}",
                    value(&values.info, median)
                )
                .trim_end()
                .to_owned(),
            )
        });
    let answers: Vec<String> = state.into_iter().chain(answers).chain(loss).collect();

    let has_own = matches!(record.kind, RunKind::Doctor | RunKind::HttpLab);
    if answers.is_empty() && !has_own {
        vec!["No result was recorded.".to_owned()]
    } else {
        answers
    }
}

fn is_loss(values: &Values<'_>) -> bool {
    values.info.measure == MeasureName::LostShare
}

fn seconds(ns: u64) -> String {
    format!("{} s", digits(ns as f64 / 1e9))
}

/// `Run 9a3c01d2, 2026-11-23T20:00:00.000Z, took 10.0 s, by linerate 0.1.0`
fn made(record: &RunRecord) -> String {
    format!(
        "Run {}, {}, took {}, by {}",
        record.run_id.short(),
        record.started_at,
        seconds(record.elapsed_ns),
        made_by(record).join(", ")
    )
}

/// `30 November 2026, 20:00`, `took 10.0 s`, ...
fn facts(record: &RunRecord) -> Vec<String> {
    let took = format!("took {}", seconds(record.elapsed_ns));
    let mut facts = vec![local_time(&record.started_at), took];
    facts.extend(made_by(record));
    facts.push(format!("run {}", record.run_id.short()));
    facts
}

/// Program, origin and labels.
fn made_by(record: &RunRecord) -> Vec<String> {
    let origin = &record.origin;
    let behind = |name: &Option<String>| {
        name.as_ref()
            .map_or_else(String::new, |name| format!(" {name}"))
    };
    let imported = origin
        .imported
        .as_ref()
        .map(|import| format!("imported from {}{}", import.format, behind(&import.name)));
    let labels = record
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"));

    let program = format!("{}{}", origin.tool, behind(&origin.version));
    std::iter::once(program)
        .chain(imported)
        .chain(labels)
        .collect()
}

/// The command line, ready to paste.
fn repeat(record: &RunRecord) -> Vec<Block> {
    if record.origin.argv.is_empty() {
        return Vec::new();
    }

    let words: Vec<String> = record.origin.argv.iter().map(|word| quoted(word)).collect();
    vec![
        Block::Heading("Command line".to_owned()),
        Block::Verbatim(words.join(" ")),
    ]
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    // These characters have no meaning to a shell (sh(1)).
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        // A quote ends the quoted part, is escaped alone, and begins the next part.
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Leaves out charts beyond [`CHARTS_BYTES_MAX`].
fn limit_charts(blocks: &mut Vec<Block>) {
    let mut used = 0;
    let mut left_out = 0;
    blocks.retain(|block| {
        let Block::Plot(plot) = block else {
            return true;
        };
        // Only the drawing shows its size. Behind the limit small charts are left out as well.
        used += plot.html().len();

        let is_kept = used <= CHARTS_BYTES_MAX;
        left_out += usize::from(!is_kept);
        is_kept
    });

    if left_out > 0 {
        blocks.push(Block::Paragraph(format!(
            "{left_out} more charts are left out, because the page would be too large."
        )));
    }
}

/// The records as files.
fn raw(records: &[RunRecord]) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Raw data".to_owned())];
    let mut left = RECORDS_BYTES_MAX;

    for record in records {
        let id = record.run_id.short();
        let (bytes, what) = match deflated(record) {
            whole if whole.len() <= left => (whole, ""),
            _ => {
                let mut short = record.clone();
                // The values over time are the largest part; measures and facts stay.
                short.trials = record.trials.iter().map(without_series).collect();
                (
                    deflated(&short),
                    " without its values over time, which would make the page too large",
                )
            }
        };
        if bytes.len() > left {
            blocks.push(Block::Paragraph(format!(
                "The record of run {id} is left out, because the page would be too large."
            )));
            continue;
        }

        left -= bytes.len();
        blocks.push(Block::Download(Download {
            name: format!("linerate-{id}.json.gz"),
            label: format!("Record of run {id}{what}"),
            media_type: "application/gzip",
            bytes,
        }));
    }

    blocks
}

fn without_series(trial: &Trial) -> Trial {
    let mut short = trial.clone();
    short.series = Vec::new();

    if let Some(Detail::Path(report)) = &mut short.detail {
        for phase in &mut report.phases {
            phase.series = Vec::new();
            phase.rtt_series = Vec::new();
        }
        if let Some(idle) = &mut report.idle {
            idle.rtt_series = Vec::new();
        }
    }

    short
}

fn deflated(record: &RunRecord) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let text = serde_json::to_vec(record).unwrap_or_default();
    // Writing to memory cannot fail.
    let _ = encoder.write_all(&text);
    encoder.finish().unwrap_or_default()
}
