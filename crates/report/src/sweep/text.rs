//! The report for a terminal: the answer first, then why, then the figures.

use std::fmt::Write;

use crate::figures::clock;
use crate::glyphs::Glyphs;
use crate::printable::printable;

use super::plot::bars;
use super::sentences;
use super::values::{self, count, percent};
use linerate_lab::sweep::{Answer, FactorReport, Sweep};

/// The report as text.
#[must_use]
pub fn text(sweep: &Sweep, glyphs: Glyphs) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", sentences::verdict(sweep));
    for remark in sentences::remarks(sweep) {
        let _ = writeln!(out, "  {remark}");
    }
    for factor in &sweep.factors {
        out.push('\n');
        out.push_str(&chapter(sweep, factor, glyphs));
    }
    if let Answer::Use { command, .. }
    | Answer::Inconclusive {
        leader: Some((_, _, command)),
        ..
    } = &sweep.answer
    {
        let _ = writeln!(out, "\nAgain with plain iperf3:\n  {command}");
    }
    let _ = writeln!(out, "\n{}", cost(sweep));
    printable(&out)
}

fn chapter(sweep: &Sweep, factor: &FactorReport, glyphs: Glyphs) -> String {
    let mut out = String::new();
    let lines = sentences::factor(sweep, factor);
    for line in &lines {
        let _ = writeln!(out, "{line}");
    }
    if !lines.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "  {:>10} {:>14} {:>30} {:>5} {:>11} {:>11} {:>8}",
        factor.name,
        "median",
        "interval",
        "runs",
        "CPU client",
        "CPU server",
        last_column(sweep)
    );
    for (place, level) in factor.levels.iter().enumerate() {
        let figures = &level.figures;
        let last = match sweep.protocol {
            "UDP" => figures
                .lost_percent
                .map_or_else(|| "-".to_owned(), |lost| format!("{lost:.2}%")),
            _ => count(figures.retransmits),
        };
        let _ = writeln!(
            out,
            "{} {:>10} {:>14} {:>30} {:>5} {:>11} {:>11} {:>8}",
            if place == factor.advised { '*' } else { ' ' },
            level.label,
            values::value(sweep.objective, level.median),
            level
                .spread
                .map_or_else(|| "-".to_owned(), |spread| values::spread(sweep.objective, spread)),
            level.runs,
            percent(figures.cpu_client_percent),
            percent(figures.cpu_server_percent),
            last
        );
        for failure in &level.failures {
            let _ = writeln!(out, "             failed: {failure}");
        }
    }
    let _ = write!(out, "\n{}", bars(factor, sweep.objective, glyphs));
    out
}

fn last_column(sweep: &Sweep) -> &'static str {
    if sweep.protocol == "UDP" { "lost" } else { "retr" }
}

fn cost(sweep: &Sweep) -> String {
    format!(
        "{} runs of {} s in {} (seed {}); CPU in percent of one core",
        sweep.cost.runs,
        sweep.method.time_s,
        clock(sweep.cost.seconds),
        sweep.method.seed
    )
}
