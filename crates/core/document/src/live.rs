//! The page of a server that runs: a frame, and what is replaced in it every second.

use std::collections::VecDeque;

use jiff::Timestamp;
use linerate_model::live::{LiveLine, LiveServer, LiveSession, LiveState, PageResults};
use linerate_model::numbers::{change, clock, rate};
use linerate_model::outliers::slow_rates;
use linerate_model::service::PageResult;
use linerate_model::spec::{Direction, EndCondition, Transport};
use linerate_model::units::ns_to_s;

use crate::blocks::{Block, Document};
use crate::charset::Glyphs;
use crate::chart::{Axis, Chart, LineStyle, Point, Series};
use crate::frame::{Card, Head};
use crate::number::{counted, known, local_time};
use crate::page;
use crate::plot::Plot;
use crate::sparkline;
use crate::table::{Cell, Table};

/// Replaces the content every second, and sorts a table by the head that was chosen. A page without
/// it loads itself again.
const SCRIPT: &str = include_str!("live.js");

/// SHA-256 of the script, as a Content Security Policy names it.
const SCRIPT_HASH: &str = "sha256-iZI/VEj3OR6gmCqwbQdXWZH1BDJObigKEMx4qpWPPk4=";

/// Content Security Policy of [`page()`].
pub fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '{SCRIPT_HASH}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The whole page with this content.
pub fn page(content: &str) -> String {
    let reload = "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>";
    let frame = page::begin_with("linerate serve", reload);
    format!(
        "{frame}<main id=\"live\">{content}</main>\n<p id=\"state\" \
         role=\"status\"></p>\n<script>{SCRIPT}</script>\n{}",
        page::END
    )
}

/// Part of the page that is replaced every second.
pub fn content(state: &LiveState, now_ns: u64) -> String {
    let blocks = match &state.server {
        Some(server) => of_server(server, now_ns),
        None => vec![Block::Head(head(
            "The server does not listen yet".to_owned(),
        ))],
    };

    Document {
        name: "linerate serve",
        blocks,
    }
    .elements()
}

fn head(verdict: String) -> Head {
    Head {
        title: "linerate serve".to_owned(),
        verdict,
        ..Head::default()
    }
}

fn of_server(server: &LiveServer, now_ns: u64) -> Vec<Block> {
    let running = server.sessions.len();
    let most = server
        .tests_max
        .map_or_else(String::new, |max| format!(", at most {max}"));
    let mut head = head(format!("{} running{most}", counted(running, "test")));
    head.facts = vec![
        format!("up {}", clock(ns_to_s(now_ns).floor())),
        format!("tests {}", server.started),
        format!("refused {}", server.refused),
        format!("logins failed {}", server.logins_failed),
    ];
    head.cards = vec![
        Card::new("received", known(server.received.last(), rate), ""),
        Card::new("sent", known(server.sent.last(), rate), ""),
    ];
    let mut blocks = vec![Block::Head(head)];
    let (slow, results) = of_results(&server.results);
    blocks.extend(slow);

    if let Some((written, lost)) = server.records {
        blocks.push(Block::Paragraph(format!(
            "Records written {written}, lost {lost}."
        )));
    }

    if let Some(signal) = &server.stopping {
        blocks.push(Block::Remark(format!("The server ends: {signal}.")));
    }

    let rows: Vec<[String; 10]> = server
        .sessions
        .iter()
        .map(|session| cells(session, now_ns))
        .collect();
    blocks.extend(
        Table::of("", "Running tests", &rows)
            .number("test", |row| row[0].as_str())
            .text("client", |row| row[1].as_str())
            .text("user", |row| row[2].as_str())
            .text("protocol", |row| row[3].as_str())
            .text("direction", |row| row[4].as_str())
            .number("streams", |row| row[5].as_str())
            .number("seconds", |row| row[6].as_str())
            .number("now", |row| row[7].as_str())
            .number("mean", |row| row[8].as_str())
            .number("beside", |row| row[9].as_str())
            .non_empty()
            .map(Block::Table),
    );
    blocks.extend(plot(server).map(Block::Plot));
    blocks.extend(results);
    blocks
}

/// Labels and clients whose newest download or upload is slow among those of all, and a row for
/// each.
fn of_results(results: &PageResults) -> (Vec<Block>, Option<Block>) {
    let rows: Vec<ResultRow<'_>> = results.iter().filter_map(ResultRow::of).collect();
    let downs = slow(&rows, |row| row.newest.down_bps);
    let ups = slow(&rows, |row| row.newest.up_bps);
    let judged: Vec<_> = rows.iter().zip(downs).zip(ups).collect();

    let mut remarks = Vec::new();
    for ((row, down), up) in &judged {
        let parts = [("download", down), ("upload", up)];
        let slow: Vec<String> = parts
            .iter()
            .filter_map(|(name, slow)| Some(format!("{name} {}", change((**slow)?))))
            .collect();
        if !slow.is_empty() {
            let text = format!("{} is slow: {}", row.subject, slow.join(", "));
            let ends = counted(rows.len(), "end");
            remarks.push(Block::Remark(format!(
                "{text} against the median of {ends}."
            )));
        }
    }

    let rate_of = |bps: Option<f64>, slow: Option<f64>| {
        // A line must not break before the sign.
        let mark = slow.map(|share| format!(" (slow, {})", change(share).replace(' ', "\u{a0}")));
        let is_slow = mark.is_some();
        Cell::marked(known(bps, rate) + &mark.unwrap_or_default(), is_slow)
    };
    let table = Table::of("", "Results of the test page", &judged)
        .text("label or client", |((row, _), _)| row.subject)
        .text("stored", |((row, _), _)| stored(row.newest.at_unix_ms))
        .number("down", |((row, down), _)| {
            rate_of(row.newest.down_bps, *down)
        })
        .number("up", |((row, _), up)| rate_of(row.newest.up_bps, *up))
        .number("under load", |((row, _), _)| {
            known(row.newest.loaded_ms, |ms| format!("{ms:.1} ms"))
        })
        .number("results", |((row, _), _)| row.all.len().to_string())
        .text("download, newest last", |((row, _), _)| row.line());
    (remarks, table.non_empty().map(Block::Table))
}

/// A time by the clock of this host.
fn stored(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok();
    let moment = moment.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    known(moment, |moment| local_time(&moment.to_string()))
}

/// A label or client with its results.
struct ResultRow<'a> {
    subject: &'a str,
    newest: &'a PageResult,
    all: &'a VecDeque<PageResult>,
}

impl<'a> ResultRow<'a> {
    fn of((subject, all): (&'a str, &'a VecDeque<PageResult>)) -> Option<Self> {
        Some(Self {
            subject,
            newest: all.back()?,
            all,
        })
    }

    /// Its downloads as a line of blocks.
    fn line(&self) -> String {
        let rates = self.all.iter().filter_map(|result| result.down_bps);
        sparkline::row(rates, self.all.len(), Glyphs::Blocks)
    }
}

/// For each row the change to the median, if its rate is slow among those of all rows that have one.
fn slow(rows: &[ResultRow<'_>], rate: impl Fn(&ResultRow<'_>) -> Option<f64>) -> Vec<Option<f64>> {
    let rates: Vec<f64> = rows.iter().filter_map(&rate).collect();
    let mut judged = slow_rates(&rates).into_iter();
    rows.iter()
        .map(|row| rate(row).and_then(|_| judged.next().flatten()))
        .collect()
}

/// Fewest intervals of the axis of time.
const POINTS_MIN: usize = 30;

/// Goodput over the newest intervals, the last one at 0.
fn plot(server: &LiveServer) -> Option<Plot> {
    let points = |line: &LiveLine| {
        // The newest interval lies at 0, the earlier ones on its left.
        let newest = 1.0 - line.values().len() as f64;
        line.values()
            .enumerate()
            .map(|(at, value)| Point::new(newest + at as f64, value))
            .collect::<Vec<_>>()
    };
    let series = vec![
        Series::new("received", LineStyle::Main, 0, points(&server.received)),
        Series::new("sent", LineStyle::Main, 1, points(&server.sent)),
    ];
    let lines = [&server.received, &server.sent];
    let longest = lines.map(|line| line.values().len()).into_iter().max();
    // A server that has just begun fills a part of the width.
    let shown = longest.unwrap_or(0).max(POINTS_MIN);
    let x = Axis::linear("intervals before now", |value| format!("{value:.0}"))
        .between(-(shown as f64), 0.0);
    let y = Axis::linear("goodput", rate);

    Plot::of(
        "Goodput",
        "",
        "of all tests together".to_owned(),
        Chart::new(x, y, 240, series),
    )
}

/// A running test: number, client, user, protocol, direction, streams, seconds, rate now and on
/// average, and tests beside it.
pub fn cells(session: &LiveSession, now_ns: u64) -> [String; 10] {
    let facts = &session.facts;
    let ran_s = ns_to_s(now_ns.saturating_sub(session.started_ns)).floor();
    [
        facts.number.to_string(),
        facts.peer.to_string(),
        facts.user.clone().unwrap_or_else(|| "-".to_owned()),
        transport(facts.transport).to_owned(),
        direction(facts.direction).to_owned(),
        facts.streams.to_string(),
        seconds(ran_s, session.end),
        known(session.rate.last(), rate),
        known(session.mean_bps(), rate),
        facts.running_beside.to_string(),
    ]
}

/// Seconds of a test, and all of them when they are known.
pub fn seconds(ran_s: f64, end: Option<EndCondition>) -> String {
    match end.and_then(EndCondition::duration) {
        // A test ends some moments after its time: no more than all of it is shown.
        Some(all) if !all.is_zero() => format!(
            "{:.0}/{:.0}",
            ran_s.min(all.as_secs_f64()),
            all.as_secs_f64()
        ),
        _ => format!("{ran_s:.0}"),
    }
}

/// Name of a transport protocol.
pub fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
        Transport::Sctp => "SCTP",
    }
}

/// The direction seen from the client.
pub(crate) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "up",
        Direction::Reverse => "down",
        Direction::Bidirectional => "both",
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use linerate_model::ServerEvent;
    use linerate_model::service::TestFacts;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_this_script_and_no_other() {
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
        assert_eq!(SCRIPT_HASH, format!("sha256-{hash}"));
        assert!(SCRIPT.len() <= 6 * 1024);
        assert!(page("").contains(&format!("<script>{SCRIPT}</script>")));
    }

    #[test]
    fn texts_of_clients_are_text() {
        let mut state = LiveState::default();
        let mut facts = TestFacts::new(
            "192.0.2.1:5000".parse().expect("an address"),
            Transport::Tcp,
            Direction::Forward,
            1,
        );
        facts.number = 1;
        facts.user = Some("<script>alert(1)</script>\u{1b}[2J\u{9b}\u{202e}".to_owned());
        state.server_event(&ServerEvent::TestStarted(facts), 0);

        state.server_event(
            &ServerEvent::PageResult(result("<img src=x onerror=alert(2)>\u{202e}", 1e8)),
            0,
        );
        let page = page(&content(&state, 2_000_000_000));
        assert!(page.contains("&lt;img src=x onerror"), "{page}");
        assert!(
            page.contains("192.0.2.1:5000") && page.contains("&lt;script&gt;alert(1)"),
            "{page}"
        );
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{page}");
    }

    fn result(subject: &str, down_bps: f64) -> PageResult {
        PageResult {
            subject: subject.to_owned(),
            at_unix_ms: 1_796_000_000_000,
            down_bps: Some(down_bps),
            up_bps: None,
            loaded_ms: Some(12.5),
        }
    }

    #[test]
    fn one_label_at_100_mbit_is_named_above_the_table() {
        let mut state = LiveState::default();
        for (number, rate) in [940e6, 938e6, 94e6, 941e6, 939e6].into_iter().enumerate() {
            let stored = result(&format!("class-a-{number}"), rate);
            state.server_event(&ServerEvent::PageResult(stored), 0);
        }
        let content = content(&state, 0);
        let expected = "class-a-2 is slow: download -90 % against the median of 5 ends.";
        assert!(content.contains(expected), "{content}");
        assert_eq!(content.matches("(slow, ").count(), 1, "{content}");
        assert!(content.contains("(slow, -90\u{a0}%)"), "{content}");
        assert!(content.contains("November 2026, "), "{content}");
    }

    #[test]
    fn without_script_the_page_loads_itself_again() {
        assert!(page("").contains("<noscript><meta http-equiv=\"refresh\" content=\"5\">"));
    }
}
