//! Studies and runs whose numbers are known, in every form.

mod around;
mod fixtures;
mod forms;

use linerate_document::{Glyphs, Style};
use linerate_model::http::{
    EndpointStats, HttpVersion, Latency, LoadResult, Mode, NegotiatedProtocol, NegotiatedTls, Study,
};

use super::{LoadReport, html, load_text, text};
use fixtures::{
    client_limited, failing_load, full, hostile, idle_only, interrupted, large, run, without_agent,
};

const BLOCKS: Style = Style {
    glyphs: Glyphs::Blocks,
    ..Style::PLAIN
};

fn all() -> [(&'static str, Study); 7] {
    [
        ("full", full()),
        ("without-agent", without_agent()),
        ("interrupted", interrupted()),
        ("client-limited", client_limited()),
        ("idle-only", idle_only()),
        ("hostile", hostile()),
        ("large", large(20, 50)),
    ]
}

/// Commands to copy may be longer than a line.
fn check_lines(name: &str, text: &str) {
    for line in text.lines() {
        let is_command = ["do  ", "undo  "]
            .iter()
            .any(|label| line.trim_start().starts_with(label));
        assert!(is_command || line.chars().count() <= 120, "{name}: {line}");
        assert!(
            line.chars().all(|c| !linerate_model::printable::acts(c)),
            "{name}: {line:?}"
        );
        assert_eq!(line, line.trim_end(), "{name}");
    }
}

#[test]
fn studies_read_from_the_verdict_to_the_numbers() {
    for (name, study) in all().into_iter().take(5) {
        assert_expected(
            &format!("http/study-{name}.txt"),
            &text(&study, true, Style::PLAIN),
        );
    }
}

#[test]
fn short_studies_fit_a_terminal() {
    let mut shown = String::new();
    for (name, study) in all() {
        let short = text(&study, false, Style::PLAIN);
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(short.lines().all(is_narrow), "{short}");
        // An answer is never cut; one of strangers may have any length.
        assert!(name == "hostile" || short.lines().count() <= 14, "{short}");
        if !["hostile", "large"].contains(&name) {
            shown += &format!("{name}\n{short}\n");
        }
    }

    assert_expected("http/study-brief.txt", &shown);
}

#[test]
fn lines_fit_and_nothing_acts_on_a_terminal() {
    for (name, study) in all() {
        for style in [Style::PLAIN, BLOCKS] {
            check_lines(name, &text(&study, true, style));
            check_lines(name, &text(&study, false, style));
        }
    }

    let style = Style {
        is_coloured: true,
        ..BLOCKS
    };
    let coloured = text(&hostile(), true, style);
    let ours = coloured.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert!(coloured.contains("\u{1b}[1m") && !ours.contains('\u{1b}'));
}

#[test]
fn ascii_is_ascii() {
    let mut study = full();
    study.notes.push("p99 ≥ 5 s".to_owned());
    let text = text(&study, true, Style::PLAIN);
    assert!(
        text.is_ascii(),
        "{:?}",
        text.lines().find(|line| !line.is_ascii())
    );
}

#[test]
fn quantile_of_too_few_values_is_missing() {
    let mut study = full();
    study.cells[3].median.p99_ns = None;
    let text = text(&study, true, Style::PLAIN);
    assert!(text.contains("n/a (n=1018663)  *2.53 ms"), "{text}");
}

#[test]
fn protocol_and_the_reason_of_a_missing_ceiling_are_listed() {
    let mut study = full();
    let mut tls = NegotiatedTls::default();
    (tls.version, tls.cipher) = ("1.3".to_owned(), "TLS13_AES_256_GCM_SHA384".to_owned());

    let mut protocol = NegotiatedProtocol::default();
    (protocol.http, protocol.tls) = (HttpVersion::Http2, Some(tls));
    study.protocol = vec![protocol];

    let load = study.cells[0].runs[0].load.as_mut().expect("a run");
    load.mode = Mode::Closed {
        pipeline: 8,
        think_ns: 0,
    };
    study.ceiling_missing = Some("the speed is unknown".to_owned());

    let lines = [
        "protocol: HTTP/2 over TLS 1.3 (TLS13_AES_256_GCM_SHA384), 8 requests at a time on each \
         connection",
        "responses/s that the network allows: n/a, the speed is unknown",
    ];
    let (shown, page) = (text(&study, true, Style::PLAIN), html(&study));
    let unwrapped = shown.replace('\n', " ");

    for line in lines {
        assert!(unwrapped.contains(line), "{line}\n{shown}");
        assert!(page.contains(line), "{line}");
    }

    assert!(unwrapped.contains("http is n/a inside TLS"), "{shown}");
    study.protocol = vec![NegotiatedProtocol::default()];
    assert!(!text(&study, true, Style::PLAIN).contains("protocol: "));
}

fn report<'a>(
    load: &'a LoadResult,
    ends: Option<(&'a EndpointStats, &'a EndpointStats)>,
) -> LoadReport<'a> {
    LoadReport {
        target: "http://192.168.5.2:8080/b/1k",
        load,
        wire_bps: ends.map(|_| 95e6),
        client: ends.map(|(client, _)| client),
        server: ends.map(|(_, server)| server),
        verdict: None,
        remarks: &[],
    }
}

#[test]
fn runs_of_the_generator_read_as_reviewed() {
    let run = run();
    let ends = run.server.as_ref().map(|server| (&run.client, server));

    let verdict = client_limited()
        .cells
        .last()
        .expect("cells")
        .verdict
        .clone();
    let remarks = ["first answer: 200, Server: nginx\u{1b}[31m".to_owned()];
    let failing = failing_load();
    let open = LoadReport {
        verdict: Some(&verdict),
        remarks: &remarks,
        ..report(&failing, ends)
    };

    // Too few answers for high quantiles.
    let mut short = run.load.clone().expect("a load");
    (short.latency.n, short.latency.p99, short.latency.p999) = (120, None, None);
    let mut empty = short.clone();
    (empty.window_ns, empty.requests, empty.ok) = (0, 0, 0);
    empty.latency = Latency::default();
    empty.seconds.clear();

    let mut idle = empty.clone();
    idle.mode = Mode::Idle { heartbeat_ns: None };

    let reports = [
        ("open", open),
        ("short", report(&short, None)),
        ("empty", report(&empty, None)),
        ("idle", report(&idle, None)),
    ];
    let mut brief = String::new();

    for (name, report) in reports {
        let text = load_text(&report, true, BLOCKS);
        check_lines(name, &text);
        assert_expected(&format!("http/load-{name}.txt"), &text);
        let short = load_text(&report, false, BLOCKS);
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(
            short.lines().count() <= 6 && short.lines().all(is_narrow),
            "{short}"
        );
        brief += &format!("{name}\n{short}\n");
    }

    assert_expected("http/load-brief.txt", &brief);
}

fn assert_expected(name: &str, text: &str) {
    linerate_document::expected::assert_expected_in(env!("CARGO_MANIFEST_DIR"), name, text);
}
