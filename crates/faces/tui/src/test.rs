//! A test of a client: its goodput, and a row for every stream.

use linerate_document::{live, sparkline};
use linerate_model::live::{LiveHost, LiveLine, LivePhase, LiveStream, LiveTest};
use linerate_model::numbers::{MISSING, bytes, digits, rate};
use linerate_model::spec::Direction;
use linerate_model::stream::Flow;
use linerate_model::units::ns_to_s;
use ratatui_core::text::Span;

use crate::page::{Page, Tone};
use crate::server;
use crate::table::{self, Column, Row};

const COLUMNS: [Column; 8] = [
    Column::right("STREAM", 6, 0),
    Column::left("TO", 6, 2),
    Column::right("NOW", 11, 1),
    Column::right("RETR", 6, 3),
    Column::right("RTT", 9, 4),
    Column::right("CWND", 9, 5),
    Column::right("LOST", 6, 6),
    Column::right("JITTER", 9, 7),
];

/// Most rows of a chart.
const CHART_ROWS_MAX: usize = 12;
/// Fewest rows of a terminal with a chart.
const ROWS_WITH_CHART: usize = 16;

pub(crate) fn draw(page: &mut Page, test: &LiveTest, host: Option<&LiveHost>) {
    let pieces = opening(page, test);
    page.flow(pieces);
    totals(page, test);

    if let Some(host) = host.filter(|_| !page.is_small()) {
        let pieces = server::host(page, host);
        page.flow(pieces);
    }

    for warning in test.warnings.iter().rev().take(1) {
        let piece = page.piece(Tone::Warning, format!("warning: {warning}"));
        page.line(vec![piece]);
    }

    chart(page, test);
    if !test.streams.is_empty() {
        let rows = test
            .streams
            .iter()
            .map(|stream| row(page, stream))
            .collect();
        table::draw(page, &COLUMNS, rows, "streams");
    }
}

fn opening(page: &Page, test: &LiveTest) -> Vec<Span<'static>> {
    let mut pieces = vec![page.piece(Tone::Title, "linerate")];
    if !test.host.is_empty() {
        pieces.push(page.word(format!("{} port {}", test.host, test.port)));
    }

    if let Some((transport, direction, _)) = test.agreed {
        pieces.push(page.word(live::transport(transport)));
        pieces.push(page.word(match direction {
            Direction::Forward => "to the server",
            Direction::Reverse => "from the server",
            Direction::Bidirectional => "both directions",
        }));
    }

    if test.streams_all > 0 {
        pieces.push(page.word(format!("streams {}", test.streams_all)));
    }

    pieces.push(phase(page, test));
    pieces
}

/// The state in words, with the seconds of a running test.
fn phase(page: &Page, test: &LiveTest) -> Span<'static> {
    let ran_s = test
        .started_ns
        .map(|started| ns_to_s(page.view.now_ns.saturating_sub(started)).floor());
    let seconds = || live::seconds(ran_s.unwrap_or(0.0), test.agreed.map(|(.., end)| end));

    match &test.phase {
        LivePhase::Connecting => page.piece(Tone::Warning, "connecting"),
        LivePhase::Opening => page.piece(Tone::Warning, "opening streams"),
        LivePhase::WarmUp => page.piece(Tone::Warning, "warm-up, not counted"),
        LivePhase::Running => page.piece(Tone::Good, format!("running {} s", seconds())),
        LivePhase::Done => page.piece(Tone::Good, "complete"),
        LivePhase::Failed(reason) => page.piece(Tone::Bad, format!("failed: {reason}")),
    }
}

fn totals(page: &mut Page, test: &LiveTest) {
    let mut pieces = Vec::new();
    for (name, line) in [("to server", &test.forward), ("from server", &test.reverse)] {
        if let Some(now) = line.last() {
            pieces.push(page.piece(Tone::Title, format!("{name} {}", rate(now))));
        }
    }

    if let Some(mean) = test.mean_bps() {
        pieces.push(page.word(format!("mean {}", rate(mean))));
    }

    if let Some(retransmits) = test.retransmits {
        pieces.push(page.word(format!("retransmits {retransmits}")));
    }

    if let (Some(lost), Some(expected)) = (test.lost, test.expected) {
        let tone = if lost > 0 { Tone::Warning } else { Tone::Plain };
        pieces.push(page.piece(tone, format!("lost {lost} of {expected}")));
    }

    page.flow(pieces);
}

/// The goodput of each direction over its newest points, where there is room.
fn chart(page: &mut Page, test: &LiveTest) {
    let lines: Vec<(&str, &LiveLine)> =
        [("to server", &test.forward), ("from server", &test.reverse)]
            .into_iter()
            .filter(|(_, line)| line.last().is_some())
            .collect();
    if usize::from(page.view.rows) < ROWS_WITH_CHART || lines.is_empty() {
        return;
    }

    let for_streams = test.streams.len().min(8) + 3;
    let each = page.rows_left().saturating_sub(for_streams) / lines.len();
    let height = each.saturating_sub(2).min(CHART_ROWS_MAX);
    if height < 2 {
        return;
    }

    for (name, line) in lines {
        let width = page.width();
        let highest = sparkline::maximum(&line.values().rev().take(width).collect::<Vec<_>>());
        page.blank();

        let head = page.word(format!(
            "{name}, bit/s per interval, 0 to {}",
            rate(highest)
        ));
        page.line(vec![head]);

        for text in sparkline::rows(line.values(), width, height, page.view.glyphs) {
            let piece = page.piece(Tone::Curve, text);
            page.line(vec![piece]);
        }
    }
}

fn row(page: &Page, stream: &LiveStream) -> Row {
    let known = |text: Option<String>| (Tone::Plain, text.unwrap_or_else(|| MISSING.to_owned()));
    let cells = vec![
        known(Some((stream.id.0 + 1).to_string())),
        known(Some(
            if stream.flow == Flow::Forward {
                "server"
            } else {
                "client"
            }
            .to_owned(),
        )),
        known(stream.rate.last().map(rate)),
        known(stream.retransmits.map(|count| count.to_string())),
        known(
            stream
                .rtt_us
                .map(|us| format!("{} ms", digits(f64::from(us) / 1e3))),
        ),
        known(stream.cwnd_bytes.map(|size| bytes(size as f64))),
        known(stream.lost.map(|count| count.to_string())),
        known(stream.jitter_s.map(|s| format!("{} ms", digits(s * 1e3)))),
    ];

    let line = stream.rate.clone();
    let glyphs = page.view.glyphs;
    (
        cells,
        Box::new(move |width| sparkline::row(line.values(), width, glyphs)),
    )
}
