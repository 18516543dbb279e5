//! The page of a server that runs: a frame, and what is replaced in it every second.

use linerate_model::live::{LiveLine, LiveServer, LiveSession, LiveState};
use linerate_model::numbers::{MISSING, clock, rate};
use linerate_model::spec::{Direction, EndCondition, Transport};
use linerate_model::units::ns_to_s;

use crate::blocks::{Block, Document};
use crate::chart::{Axis, Chart, LineStyle, Point, Series};
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
const SCRIPT_HASH: &str = "sha256-PE0sws/z3LC0TPWreAapUrbwXpyp4ARG1YYHgonqqn8=";

/// Content Security Policy of [`page()`].
#[must_use]
pub fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '{SCRIPT_HASH}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The whole page with what runs now.
#[must_use]
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
#[must_use]
pub fn content(state: &LiveState, now_ns: u64) -> String {
    let mut blocks = vec![Block::Title("linerate serve".to_owned())];
    match &state.server {
        Some(server) => blocks.extend(of_server(server, now_ns)),
        None => blocks.push(Block::Answer("The server does not listen yet.".to_owned())),
    }

    Document {
        name: "linerate serve",
        blocks,
    }
    .elements()
}

/// Data of an event of the stream: the content as one JSON string.
#[must_use]
pub fn event(state: &LiveState, now_ns: u64) -> String {
    // JSON escapes line ends, which would end the field (server-sent events, HTML Living Standard
    // 9.2).
    let content = serde_json::Value::from(content(state, now_ns));
    format!("data: {content}\n\n")
}

fn of_server(server: &LiveServer, now_ns: u64) -> Vec<Block> {
    let known = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), rate);
    let running = server.sessions.len();
    let most = server
        .tests_max
        .map_or_else(String::new, |max| format!(" of at most {max}"));
    let mut blocks = vec![
        Block::Answer(format!(
            "{running}{most} tests run; received {}, sent {}.",
            known(server.received.last()),
            known(server.sent.last())
        )),
        Block::Paragraph(format!(
            "Up {}; tests {}, refused {}, logins failed {}.",
            clock(ns_to_s(now_ns).floor()),
            server.started,
            server.refused,
            server.logins_failed
        )),
    ];

    if let Some((written, lost)) = server.records {
        blocks.push(Block::Paragraph(format!(
            "Records written {written}, lost {lost}."
        )));
    }

    if let Some(signal) = &server.stopping {
        blocks.push(Block::Remark(format!("The server ends: {signal}.")));
    }

    blocks.extend(
        Table::of("T1", "Running tests", &server.sessions)
            .number("test", |session| session.facts.number.to_string())
            .text("client", |session| session.facts.peer.to_string())
            .text("user", |session| {
                session.facts.user.clone().unwrap_or_else(|| "-".to_owned())
            })
            .text("protocol", |session| transport(session.facts.transport))
            .text("direction", |session| direction(session.facts.direction))
            .number("streams", |session| session.facts.streams.to_string())
            .number("seconds", |session| seconds(session, now_ns))
            .number("now", |session| known(session.rate.last()))
            .number("mean", |session| known(session.mean_bps()))
            .number("beside", |session| session.facts.running_beside.to_string())
            .non_empty()
            .map(Block::Table),
    );
    blocks.extend(plot(server).map(Block::Plot));
    blocks
}

/// Goodput over the newest intervals, the last one at 0.
fn plot(server: &LiveServer) -> Option<Plot> {
    let points = |line: &LiveLine| {
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
    let x = Axis::linear("intervals before now", |value| format!("{value:.0}"))
        .between(-(linerate_model::live::POINTS_MAX as f64), 0.0);
    let y = Axis::linear("goodput", rate);

    Plot::of(
        "Goodput",
        "",
        "of all tests together".to_owned(),
        Chart::new(x, y, 240, series),
    )
}

fn seconds(session: &LiveSession, now_ns: u64) -> String {
    let ran_s = ns_to_s(now_ns.saturating_sub(session.started_ns)).floor();
    match session.end.and_then(EndCondition::duration) {
        Some(all) if !all.is_zero() => format!(
            "{:.0}/{:.0}",
            ran_s.min(all.as_secs_f64()),
            all.as_secs_f64()
        ),
        _ => format!("{ran_s:.0}"),
    }
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
        Transport::Sctp => "SCTP",
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
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
