//! The page of a server that runs: a frame, and what is replaced in it every second.

use linerate_model::live::{LiveLine, LiveServer, LiveSession, LiveState};
use linerate_model::numbers::{clock, rate};
use linerate_model::spec::{Direction, EndCondition, Transport};
use linerate_model::units::ns_to_s;

use crate::blocks::{Block, Document};
use crate::chart::{Axis, Chart, LineStyle, Point, Series};
use crate::frame::{Card, Head};
use crate::number::{counted, known};
use crate::page;
use crate::plot::Plot;
use crate::table::Table;

/// Replaces the content once per event. A page without it loads itself again.
const SCRIPT: &str = "\
const live = document.getElementById('live'), state = document.getElementById('state');
const source = new EventSource('/live');
source.onmessage = event => { live.innerHTML = JSON.parse(event.data); state.textContent = ''; };
source.onerror = () => { state.textContent = 'Not connected. These values are old.'; };
";

/// SHA-256 of the script, as a Content Security Policy names it.
const SCRIPT_HASH: &str = "sha256-gXUkeB49XsYVz6OEk2nz6ee+gIj3J8Se/WomGVvV6A4=";

/// Content Security Policy of [`page()`].
pub fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '{SCRIPT_HASH}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The whole page with what runs now.
pub fn page(state: &LiveState, now_ns: u64) -> String {
    let reload = "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>";
    let frame = page::begin_with("linerate serve", reload);
    let content = content(state, now_ns);
    format!(
        "{frame}<main id=\"live\">{content}</main>\n<p id=\"state\" \
         role=\"status\"></p>\n<script>{SCRIPT}</script>\n{}",
        page::END
    )
}

/// Part of the page that an event replaces.
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

/// Data of an event of the stream: the content as one JSON string.
pub fn event(state: &LiveState, now_ns: u64) -> String {
    // JSON escapes line ends, which would end the field (server-sent events, HTML Living Standard
    // 9.2).
    let content = serde_json::Value::from(content(state, now_ns));
    format!("data: {content}\n\n")
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
    blocks
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
        assert!(page(&LiveState::default(), 0).contains(&format!("<script>{SCRIPT}</script>")));
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

        let page = page(&state, 2_000_000_000);
        assert!(
            page.contains("192.0.2.1:5000") && page.contains("&lt;script&gt;alert(1)"),
            "{page}"
        );
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{page}");

        let event = event(&state, 0);
        assert_eq!(
            event.lines().filter(|line| !line.is_empty()).count(),
            1,
            "one line: {event}"
        );
    }

    #[test]
    fn without_script_the_page_loads_itself_again() {
        assert!(
            page(&LiveState::default(), 0)
                .contains("<noscript><meta http-equiv=\"refresh\" content=\"5\">")
        );
    }
}
