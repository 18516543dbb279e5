//! A server: totals, this host, and a row for every running test.

use linerate_document::{live, sparkline};
use linerate_model::live::{LiveHost, LiveServer, LiveSession};
use linerate_model::numbers::{MISSING, clock, rate};
use linerate_model::units::ns_to_s;
use ratatui_core::text::Span;

use crate::page::{Page, Tone};
use crate::table::{self, Column, Row};

const COLUMNS: [Column; 10] = [
    Column::right("TEST", 5, 2),
    Column::left("CLIENT", 21, 0),
    Column::left("USER", 10, 8),
    Column::left("PROTO", 5, 5),
    Column::left("DIRECTION", 9, 6),
    Column::right("STREAMS", 7, 4),
    Column::right("SECONDS", 7, 3),
    Column::right("NOW", 11, 1),
    Column::right("MEAN", 11, 7),
    Column::right("BESIDE", 6, 9),
];

pub(crate) fn draw(page: &mut Page, server: &LiveServer, host: Option<&LiveHost>) {
    let opening = opening(page, server);
    page.flow(opening);
    totals(page, server);

    if let Some(host) = host.filter(|_| !page.is_small()) {
        let pieces = self::host(page, host);
        page.flow(pieces);
    }

    if !page.is_small() {
        page.blank();
    }

    if server.sessions.is_empty() {
        let text = page.word("no test is running");
        page.line(vec![text]);
        return;
    }

    let rows = server
        .sessions
        .iter()
        .map(|session| row(page, session))
        .collect();
    table::draw(page, &COLUMNS, rows, "tests");
}

fn opening(page: &Page, server: &LiveServer) -> Vec<Span<'static>> {
    let addresses: Vec<String> = server.addresses.iter().map(ToString::to_string).collect();
    let running = match server.tests_max {
        Some(max) => format!("running {}/{max}", server.sessions.len()),
        None => format!("running {}", server.sessions.len()),
    };

    let tone = |count: u64| {
        if count > 0 {
            Tone::Warning
        } else {
            Tone::Plain
        }
    };
    let running = page.piece(
        if server.sessions.is_empty() {
            Tone::Plain
        } else {
            Tone::Good
        },
        running,
    );

    let up = page.word(format!("up {}", clock(ns_to_s(page.view.now_ns).floor())));
    let title = page.piece(Tone::Title, "linerate serve");
    let stopping = server
        .stopping
        .as_ref()
        .map(|signal| page.piece(Tone::Warning, format!("ending: {signal}")));
    let refused = page.piece(tone(server.refused), format!("refused {}", server.refused));
    if page.is_small() {
        return [title, up, running, refused]
            .into_iter()
            .chain(stopping)
            .collect();
    }

    let mut pieces = vec![
        title,
        page.word(addresses.join(", ")),
        up,
        running,
        page.word(format!("tests {}", server.started)),
        refused,
        page.piece(
            tone(server.logins_failed),
            format!("logins failed {}", server.logins_failed),
        ),
    ];
    if let Some((written, lost)) = server.records {
        pieces.push(page.piece(tone(lost), format!("records {written} (lost {lost})")));
    }

    pieces.extend(stopping);
    pieces
}

fn totals(page: &mut Page, server: &LiveServer) {
    let now = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), rate);
    let received = format!("received {}", now(server.received.last()));
    let sent = format!("sent {}", now(server.sent.last()));
    // Two gaps of two blanks separate the three pieces.
    let used = received.len() + sent.len() + 4;

    let both = server
        .received
        .values()
        .zip(server.sent.values())
        .map(|(received, sent)| received + sent);
    let curve = sparkline::row(
        both,
        page.width().saturating_sub(used).min(60),
        page.view.glyphs,
    );
    let pieces = vec![
        page.word(received),
        page.word(sent),
        page.piece(Tone::Curve, curve),
    ];
    page.flow(pieces);
}

/// The CPUs and what the kernel dropped.
pub(crate) fn host(page: &Page, host: &LiveHost) -> Vec<Span<'static>> {
    let busiest = sparkline::maximum(&host.cpus_busy) * 100.0;
    let busy: f64 = host.cpus_busy.iter().sum();

    let cores: String = host
        .cpus_busy
        .iter()
        .take(64)
        .map(|share| sparkline::level(*share, page.view.glyphs))
        .collect();
    let mut pieces = vec![
        page.word(format!("CPUs {busy:.1} of {} busy", host.cpus_busy.len())),
        page.piece(Tone::Curve, cores),
        page.piece(
            if busiest >= 95.0 {
                Tone::Warning
            } else {
                Tone::Plain
            },
            format!("busiest {busiest:.0} %"),
        ),
        page.word(format!("softirq {:.0} %", host.softirq * 100.0)),
    ];

    if let Some(drops) = host.drops {
        let tone = if drops > 0 { Tone::Bad } else { Tone::Plain };
        pieces.push(page.piece(tone, format!("drops {drops}")));
    }

    pieces
}

fn row(page: &Page, session: &LiveSession) -> Row {
    let cells = live::cells(session, page.view.now_ns).map(|text| (Tone::Plain, text));
    let line = session.rate.clone();
    let glyphs = page.view.glyphs;
    (
        cells.into(),
        Box::new(move |width| sparkline::row(line.values(), width, glyphs)),
    )
}
