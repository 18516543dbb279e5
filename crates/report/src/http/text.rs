//! The report of a study for a terminal: what was answered first, then chapter by chapter on which figures.

use std::fmt::Write;

use linerate_model::http::{Environment, LoadResult, NegotiatedProtocol, Study};

use crate::figures::{clock, rate};

use super::chapters::{Chapter, chapters};
use super::figures::moment;
use super::plots::plots;
use super::preflight::preflight;
use super::style::Style;
use super::tables;
use super::wrap::{LINE_CHARS, wrapped};

/// The report as text in lines of at most 120 columns; only commands to copy may be longer.
#[must_use]
pub fn text(study: &Study, style: Style) -> String {
    let mut out = String::new();
    for line in head(study) {
        paragraph(&mut out, &line, 0, style);
    }
    for chapter in chapters(study) {
        write_chapter(&mut out, &chapter, style);
    }
    let plots = plots(study);
    if !plots.is_empty() {
        let _ = writeln!(out, "\n{}\n", style.bold("Plots in small (the HTML report draws them)"));
        for plot in plots {
            out.push_str(&plot.text(style));
        }
    }
    if !study.checks.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("T6 preflight"));
        out.push_str(&preflight(&study.checks, style));
    }
    let _ = write!(out, "\n{}", tables::environment(study).text(style));
    out
}

/// What was run, from where to where, and what else must be known of it.
pub(super) fn head(study: &Study) -> Vec<String> {
    let mut lines = vec![
        format!(
            "linerate http lab {}: {}, took {}, seed {}",
            study.target,
            moment(study.started_unix_ms),
            clock(study.elapsed_ns as f64 / 1e9),
            study.seed
        ),
        format!("client: {}", host(&study.client)),
        match &study.server {
            Some(server) => format!("server: {}", host(server)),
            None => "server: no agent there, so what it cost is not known".to_owned(),
        },
    ];
    lines.extend(spoken(study));
    if let Some(why) = &study.ceiling_missing {
        lines.push(format!(
            "2xx/s that the network allows (X_net), and shares of it: n/a, {why}"
        ));
    }
    if !study.is_complete {
        lines.push("It did not come to its end: what was finished by then stands here".to_owned());
    }
    lines.extend(study.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// `spoken: HTTP/2 over TLS 1.3 (TLS13_AES_256_GCM_SHA384), 8 requests at a time on each connection`; what everybody
/// expects, HTTP/1.1 in plain text, is not told.
fn spoken(study: &Study) -> Option<String> {
    if study.spoken.iter().all(NegotiatedProtocol::is_plain_http1) {
        return None;
    }
    let all: Vec<String> = study.spoken.iter().map(ToString::to_string).collect();
    let runs = study.cells.iter().flat_map(|cell| &cell.runs);
    let streams = runs.filter_map(|run| run.load.as_ref()).map(LoadResult::streams).max();
    let streams = streams
        .filter(|streams| *streams > 1)
        .map_or_else(String::new, |streams| {
            format!(", {streams} requests at a time on each connection")
        });
    Some(format!("spoken: {}{streams}", all.join(" and ")))
}

fn host(host: &Environment) -> String {
    let mut words = vec![format!("linerate {}", host.version)];
    words.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    words.extend(host.cpus.map(|cpus| format!("{cpus} processors")));
    words.extend(host.device.clone());
    words.extend(host.link_bps.map(|bps| rate(bps as f64)));
    words.extend(host.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    words.join(", ")
}

fn write_chapter(out: &mut String, chapter: &Chapter, style: Style) {
    let _ = writeln!(out, "\n{}", style.bold(&style.line(chapter.heading)));
    paragraph(out, &chapter.sentence, 2, style);
    for table in &chapter.tables {
        let _ = write!(out, "\n{}", table.text(style));
    }
}

/// Text of whatever length in indented lines.
pub(super) fn paragraph(out: &mut String, text: &str, indent: usize, style: Style) {
    for line in wrapped(&style.line(text), LINE_CHARS - indent) {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}
