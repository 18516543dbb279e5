//! The report as one HTML file: no script, nothing loaded from elsewhere, light or dark as the reader's system is.

use std::fmt::Write;

use super::sentences;
use super::values::{self, count, percent};
use crate::figures::clock;
use crate::page::{self, escaped, row};
use linerate_lab::sweep::{Answer, FactorReport, Sweep};

/// The report as a whole document.
#[must_use]
pub fn html(sweep: &Sweep) -> String {
    let mut out = page::begin("linerate sweep");
    let _ = writeln!(out, "<h1>{}</h1>", escaped(&sentences::verdict(sweep)));
    let _ = writeln!(
        out,
        "<p>{} to {} port {}{}; {} runs in {}, {} planned; seed {}</p>",
        sweep.protocol,
        escaped(&sweep.host),
        sweep.port,
        if sweep.is_reverse { ", the server sends" } else { "" },
        sweep.cost.runs,
        clock(sweep.cost.seconds),
        sweep.estimate.runs,
        sweep.method.seed
    );
    for remark in sentences::remarks(sweep) {
        let _ = writeln!(out, "<p class=\"remark\">{}</p>", escaped(&remark));
    }
    for factor in &sweep.factors {
        chapter(&mut out, sweep, factor);
    }
    if let Answer::Use { command, .. }
    | Answer::Inconclusive {
        leader: Some((_, _, command)),
        ..
    } = &sweep.answer
    {
        let _ = writeln!(out, "<h2>Again with plain iperf3</h2>\n<pre>{}</pre>", escaped(command));
    }
    runs(&mut out, sweep);
    out.push_str(page::END);
    out
}

fn chapter(out: &mut String, sweep: &Sweep, factor: &FactorReport) {
    let _ = writeln!(out, "<h2>{}</h2>\n<ul>", escaped(factor.name));
    for line in sentences::factor(sweep, factor) {
        let _ = writeln!(out, "<li>{}</li>", escaped(&line));
    }
    out.push_str("</ul>\n");
    plot(out, sweep, factor);
    out.push_str("<table><tr>");
    for head in [
        factor.name,
        "median",
        "interval",
        "runs",
        "CPU client",
        "CPU server",
        "retransmits",
        "lost",
        "round trip",
    ] {
        let _ = write!(out, "<th>{head}</th>");
    }
    out.push_str("</tr>\n");
    for (place, level) in factor.levels.iter().enumerate() {
        let figures = &level.figures;
        let cells = [
            level.label.clone(),
            values::value(sweep.objective, level.median),
            level
                .spread
                .map_or_else(|| "-".to_owned(), |spread| values::spread(sweep.objective, spread)),
            level.runs.to_string(),
            percent(figures.cpu_client_percent),
            percent(figures.cpu_server_percent),
            count(figures.retransmits),
            figures
                .lost_percent
                .map_or_else(|| "-".to_owned(), |lost| format!("{lost:.2}%")),
            figures
                .rtt_us
                .map_or_else(|| "-".to_owned(), |rtt| format!("{rtt:.0} us")),
        ];
        let class = if place == factor.advised {
            " class=\"advised\""
        } else {
            ""
        };
        row(out, class, &cells);
    }
    out.push_str("</table>\n");
}

fn runs(out: &mut String, sweep: &Sweep) {
    out.push_str("<details><summary>All runs</summary><table><tr>");
    let names = sweep.planned.iter().map(|planned| planned.name);
    for head in
        ["run", "start s"]
            .into_iter()
            .chain(names)
            .chain(["value", "CPU client", "CPU server", "retransmits", "lost"])
    {
        let _ = write!(out, "<th>{}</th>", escaped(head));
    }
    out.push_str("</tr>\n");
    for (number, run) in sweep.runs.iter().enumerate() {
        let mut cells = vec![
            if run.is_warm_up {
                "warm-up".to_owned()
            } else {
                number.to_string()
            },
            format!("{:.1}", run.started_s),
        ];
        cells.extend(run.levels.iter().cloned());
        match &run.outcome {
            Ok((value, figures)) => cells.extend([
                values::value(sweep.objective, *value),
                percent(figures.cpu_client_percent),
                percent(figures.cpu_server_percent),
                count(figures.retransmits),
                figures
                    .lost_percent
                    .map_or_else(|| "-".to_owned(), |lost| format!("{lost:.2}%")),
            ]),
            Err(text) => cells.push(format!("failed: {text}")),
        }
        row(out, "", &cells);
    }
    out.push_str("</table></details>\n");
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 300.0;
/// Room for labels.
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 20.0;

/// Medians with their intervals over levels, from 0. Levels stand at equal distances, as a ladder does.
fn plot(out: &mut String, sweep: &Sweep, factor: &FactorReport) {
    let tops = factor.levels.iter().map(|level| {
        level
            .spread
            .map_or(level.median, |spread| spread.high.max(level.median))
    });
    let highest = tops.fold(0.0, f64::max);
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let step = (WIDTH - LEFT) / factor.levels.len().max(1) as f64;
    let x = |place: usize| LEFT + (place as f64 + 0.5) * step;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value / highest).clamp(0.0, 1.0));
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} by {}\">",
        escaped(values::title(sweep.objective)),
        escaped(factor.name)
    );
    for share in [0.0, 0.5, 1.0] {
        let (value, line) = (highest * share, y(highest * share));
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{line:.1}\" y2=\"{line:.1}\"/><text x=\"{:.0}\" \
             y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            line + 4.0,
            escaped(&values::value(sweep.objective, value))
        );
    }
    if factor.is_amount {
        let ordered = factor.levels.iter().enumerate().filter(|(_, level)| level.level > 0);
        let corners: Vec<String> = ordered
            .map(|(place, level)| format!("{:.1},{:.1}", x(place), y(level.median)))
            .collect();
        let _ = writeln!(out, "<polyline class=\"curve\" points=\"{}\"/>", corners.join(" "));
    }
    for (place, level) in factor.levels.iter().enumerate() {
        if let Some(spread) = level.spread {
            let _ = writeln!(
                out,
                "<line class=\"whisker\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/>",
                x(place),
                y(spread.low),
                y(spread.high)
            );
        }
        let class = if place == factor.advised { "chosen" } else { "dot" };
        let _ = writeln!(
            out,
            "<circle class=\"{class}\" cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"5\"/><text x=\"{0:.1}\" y=\"{2:.1}\" \
             text-anchor=\"middle\">{3}</text>",
            x(place),
            y(level.median),
            HEIGHT - BOTTOM + 20.0,
            escaped(&level.label)
        );
    }
    out.push_str("</svg>\n");
}
