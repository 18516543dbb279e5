//! A comparison of runs: the answer, what differs in the configuration, and the measures.

mod brief;
mod pictures;

use linerate_document::blocks::{Block, Document};
use linerate_document::frame::{Badge, Card, Head};
use linerate_document::number::{counted, general, local_time, per_s};
use linerate_document::record::{RunPage, quoted};
use linerate_document::style::Style;
use linerate_document::table::{Cell, Table};
use linerate_model::finding::Severity;
use linerate_model::measure::Unit;
use linerate_model::two_sample::{Judged, TRIALS_MIN, Verdict};

use crate::conclude::compare::{Change, Comparison, Row, SideInfo, differing};

/// Name of the page.
const NAME: &str = "linerate compare";
/// Measures that a page has in large type.
const CARDS_MAX: usize = 3;
/// Most differences of configuration that text shows.
const CHANGES_SHOWN: usize = 15;
/// Trials of a side that are usual.
const TRIALS_USUAL: u32 = 5;

/// The comparison as text: what fits a terminal, or everything where it `is_verbose`.
pub fn text(comparison: &Comparison, is_verbose: bool, style: Style) -> String {
    if is_verbose {
        document(comparison).text(style)
    } else {
        brief::text(comparison, style)
    }
}

/// The comparison as one HTML file.
pub fn html(comparison: &Comparison) -> String {
    let ranked = brief::ranked(comparison);
    let mut blocks: Vec<Block> = pictures::plots(&ranked)
        .into_iter()
        .map(Block::Plot)
        .collect();
    blocks.extend(configuration(comparison));
    blocks.extend(comparison.notes.iter().cloned().map(Block::Remark));
    if comparison.conclusion == Some(Verdict::TooFew) {
        blocks.extend(more_trials(comparison));
    }

    let folded = |table| Block::Details("All measures".to_owned(), vec![Block::Table(table)]);
    let mut details: Vec<Block> = measures(&comparison.rows).map(folded).into_iter().collect();
    details.extend(sides(comparison));
    let page = RunPage {
        head: head(comparison, &ranked),
        blocks,
        details,
    };
    page.document(NAME).html()
}

/// The answer with the change of the measures that decide.
fn head(comparison: &Comparison, deciding: &[&Row]) -> Head {
    let card = |row: &&Row| {
        let judged = &row.judged;
        let unit = row.measure.info().unit;
        let [a, b] = [&judged.a, &judged.b].map(|side| middle(side, unit));
        let ends = match interval(judged, unit) {
            ends if ends.is_empty() => ends,
            ends => format!("{ends}; "),
        };
        let note = format!("{ends}{a} in A, {b} in B");
        Card::new(row.name(), change(judged, unit), note)
    };
    let badge = comparison.conclusion.map(|conclusion| {
        let severity = match conclusion {
            Verdict::Worse => Severity::High,
            Verdict::Better | Verdict::Same => Severity::Info,
            Verdict::Undecided { .. } | Verdict::TooFew => Severity::Medium,
        };
        Badge::new(verdict_words(conclusion), severity, "B against A")
    });

    Head {
        title: "B against A".to_owned(),
        facts: [("A", &comparison.a), ("B", &comparison.b)]
            .map(|(name, side)| {
                let trials = counted(side.trials, "trial");
                format!("{name}: {trials} of {}", local_time(&side.started_at))
            })
            .into(),
        verdict: brief::title(comparison, deciding),
        badge,
        cards: deciding.iter().take(CARDS_MAX).map(card).collect(),
        ..Head::default()
    }
}

/// The comparison as one JSON object, schema `linerate.compare/1`.
pub fn json(comparison: &Comparison) -> String {
    linerate_document::pretty_json(comparison)
}

fn document(comparison: &Comparison) -> Document {
    let mut blocks = vec![Block::Title(answer(comparison))];
    blocks.extend(configuration(comparison));
    blocks.push(Block::Space);

    blocks.extend(sides(comparison));
    blocks.extend(comparison.notes.iter().cloned().map(Block::Remark));
    if comparison.conclusion == Some(Verdict::TooFew) {
        blocks.push(Block::Space);
        blocks.extend(more_trials(comparison));
    }

    blocks.extend(measures(&comparison.rows).map(Block::Table));
    Document { name: NAME, blocks }
}

/// What is compared, and what is left out.
fn sides(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        blocks.push(Block::entry(name, 3, side_line(side)));
        let reason = |out: &crate::conclude::compare::LeftOut| {
            Block::entry(
                "",
                3,
                format!(
                    "left out: trial {} of {}: {}",
                    out.trial,
                    out.run.short(),
                    out.reason
                ),
            )
        };
        blocks.extend(side.left_out.iter().map(reason));
    }
    blocks
}

fn answer(comparison: &Comparison) -> String {
    let obstacles = comparison.obstacles.join("; ");
    let Some(conclusion) = comparison.conclusion else {
        return format!("not comparable: {obstacles}");
    };

    let deciding = deciding(comparison);
    let forced = if obstacles.is_empty() {
        String::new()
    } else {
        format!("; not comparable: {obstacles}")
    };

    let of_verdict: Vec<&&Row> = deciding
        .iter()
        .filter(|row| row.judged.verdict == conclusion)
        .collect();
    let shown: Vec<String> = match deciding.as_slice() {
        several if several.iter().any(|row| !row.factors.is_empty()) && several.len() > 1 => {
            let cells = counted(several.len(), "cell");
            vec![format!(
                "{} of {cells}, by {}",
                of_verdict.len(),
                conclusion_measure(several)
            )]
        }
        _ => of_verdict.iter().map(|row| result(row)).collect(),
    };
    format!(
        "{}: {}{forced}",
        verdict_words(conclusion),
        shown.join("; ")
    )
}

/// The commands that make enough trials, and compare them.
fn more_trials(comparison: &Comparison) -> Vec<Block> {
    let argv = &comparison.b.argv;
    let is_path_test = matches!(argv.as_slice(), [_, command, ..] if command == "test");

    let words = |words: &[String]| {
        words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (how, commands) = match argv.as_slice() {
        [_, command @ ..] if is_path_test => {
            let repeated = format!(
                "linerate {} --repeat {TRIALS_USUAL}",
                words(&without_repeat(command))
            );
            (
                "Make both sides with these trials, one command before the change and one after it:",
                vec![repeated, "linerate compare last~1 last".to_owned()],
            )
        }
        [_, ..] => (
            "Make five runs of each side with a label of its own, and compare the labels:",
            vec![
                format!(
                    "{}   # five times, as side=a and later as side=b",
                    words(argv)
                ),
                "linerate compare label:side=a label:side=b".to_owned(),
            ],
        ),
        [] => (
            "Import five reports of each side with a label of its own, and compare the labels:",
            vec![
                "linerate history import --label side=a FILE...".to_owned(),
                "linerate history import --label side=b FILE...".to_owned(),
                "linerate compare label:side=a label:side=b".to_owned(),
            ],
        ),
    };
    let commands = commands
        .into_iter()
        .map(|command| Block::verbatim("", 2, command));

    [Block::Remark(how.to_owned())]
        .into_iter()
        .chain(commands)
        .collect()
}

/// A command line without its number of repetitions.
fn without_repeat(command: &[String]) -> Vec<String> {
    const REPEAT: &str = "--repeat";

    let mut kept = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        if word == REPEAT {
            words.next();
        // This drops `--repeat=N`, but no other option whose name begins like it.
        } else if word
            .strip_prefix(REPEAT)
            .is_none_or(|rest| !rest.starts_with('='))
        {
            kept.push(word.clone());
        }
    }

    kept
}

fn conclusion_measure(rows: &[&Row]) -> String {
    rows.first()
        .map(|row| row.measure.info().words())
        .unwrap_or_default()
}

fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Same => "same",
        Verdict::Undecided { .. } => "undecided",
        Verdict::TooFew => "too few trials",
    }
}

/// `received up 941 Mbit/s in A, 853 Mbit/s in B, -9.4 % (-9.6 to -9.2 %; 5 and 5 trials, p 0.0079)`
fn result(row: &Row) -> String {
    let judged = &row.judged;
    let unit = row.measure.info().unit;
    let [a, b] = [&judged.a, &judged.b].map(|side| middle(side, unit));
    let interval = judged
        .interval
        .map_or_else(String::new, |_| format!("{}; ", interval(judged, unit)));

    let trials = format!(
        "{} and {} trials, p {}",
        judged.a.len(),
        judged.b.len(),
        general(judged.p_adjusted, 2)
    );
    let change = change(judged, unit);
    let of = row.name();

    let qualified = match judged.verdict {
        Verdict::Undecided { more_trials } => {
            let loss = loss(judged, unit);
            format!(
                ": a loss of up to {loss} is not excluded; about {more_trials} more runs a side"
            )
        }
        Verdict::TooFew => format!(": a verdict needs {TRIALS_MIN} a side"),
        Verdict::Same => format!(": no change beyond {}", size(judged, judged.margin, unit)),
        Verdict::Worse | Verdict::Better => String::new(),
    };
    format!("{of} {a} in A, {b} in B, {change} ({interval}{trials}){qualified}")
}

/// The largest loss that the trials allow.
fn loss(judged: &Judged, unit: Unit) -> String {
    let loss = judged.loss_max();
    loss.map_or_else(|| "any size".to_owned(), |loss| size(judged, loss, unit))
}

fn middle(values: &[f64], unit: Unit) -> String {
    linerate_model::stats::median(values).map_or_else(
        || linerate_model::numbers::MISSING.to_owned(),
        |value| unit.text(value),
    )
}

/// An effect with its sign: `-9.4 %`, `+12`.
pub(super) fn effect(is_ratio: bool, effect: f64, unit: Unit) -> String {
    let sign = if effect < 0.0 { "-" } else { "+" };
    match is_ratio {
        true if !effect.is_finite() => "from 0".to_owned(),
        // Above this, a number of percent has more digits than one reads.
        true if effect >= 10.0 => format!("x {}", per_s(effect)),
        true => format!("{:+.1} %", (effect - 1.0) * 100.0),
        // A difference of grades is a number of steps, and no grade.
        false if !unit.scale().is_empty() => format!("{effect:+.0}"),
        false => format!("{sign}{}", unit.text(effect.abs())),
    }
}

fn change(judged: &Judged, unit: Unit) -> String {
    effect(judged.is_ratio, judged.estimate, unit)
}

fn interval(judged: &Judged, unit: Unit) -> String {
    judged.interval.map_or_else(String::new, |interval| {
        let [low, high] =
            [interval.low, interval.high].map(|end| effect(judged.is_ratio, end, unit));
        // Both ends share one percent sign.
        format!("{} to {high}", low.trim_end_matches(" %"))
    })
}

/// A floor, a margin or a loss, without a sign.
fn size(judged: &Judged, size: f64, unit: Unit) -> String {
    match judged.is_ratio {
        true => format!("{:.1} %", size * 100.0),
        false if !unit.scale().is_empty() => format!("{size:.0}"),
        false => unit.text(size),
    }
}

/// Measures that decide.
fn deciding(comparison: &Comparison) -> Vec<&Row> {
    let rows = comparison.rows.iter();
    rows.filter(|row| row.is_deciding).collect()
}

/// Changes of the configuration that can matter.
fn changes(comparison: &Comparison) -> Vec<&Change> {
    let changes = comparison.changes.iter();
    changes
        .filter(|change| change.difference.impact > 0)
        .collect()
}

fn configuration(comparison: &Comparison) -> Vec<Block> {
    let shown = changes(comparison);
    let effect = match (comparison.conclusion, shown.is_empty()) {
        (_, true) => {
            return vec![Block::Remark(
                "No difference of configuration is known.".to_owned(),
            )];
        }
        (Some(Verdict::Same), false) => ", without a significant effect",
        _ => "",
    };
    let mut blocks = vec![Block::Heading(format!(
        "Configuration: {}{effect}",
        counted(shown.len(), "difference")
    ))];
    for Change { of, difference } in shown.iter().take(CHANGES_SHOWN) {
        let [a, b] = differing(difference);
        let text = format!(
            "{}: {a} in A, {b} in B ({})",
            difference.key, difference.why
        );
        blocks.push(Block::entry(&format!("  {of}"), 10, text));
    }

    if shown.len() > CHANGES_SHOWN {
        blocks.push(Block::Remark(format!(
            "{} more; --json lists all",
            shown.len() - CHANGES_SHOWN
        )));
    }

    blocks
}

fn side_line(side: &SideInfo) -> String {
    let runs: Vec<String> = side.runs.iter().map(|run| run.short()).collect();
    format!(
        "{} of {}; {}",
        counted(side.trials, "trial"),
        local_time(&side.started_at),
        runs.join(" ")
    )
}

/// `streams 4, length 128K`
fn cell(row: &Row) -> String {
    let factors = row.factors.iter();
    let factors: Vec<String> = factors
        .map(|(name, level)| format!("{name} {level}"))
        .collect();
    factors.join(", ")
}

/// All measures of one cell, or one measure of all cells.
fn measures(rows: &[Row]) -> Option<Table> {
    let has_cells = rows.iter().any(|row| !row.factors.is_empty());
    let unit = |row: &Row| row.measure.info().unit;
    let mut table = Table::of("", "", rows);

    if has_cells {
        table = table.text("cell", cell);
    }

    let bound = |row: &Row| {
        if row.is_lower_bound {
            " (at least)"
        } else {
            ""
        }
    };
    let table = table
        .text("measure", Row::name)
        .number("A", move |row| {
            format!("{}{}", middle(&row.judged.a, unit(row)), bound(row))
        })
        .number("B", move |row| {
            format!("{}{}", middle(&row.judged.b, unit(row)), bound(row))
        })
        .number("B against A", move |row| change(&row.judged, unit(row)))
        .number("95 % interval", move |row| interval(&row.judged, unit(row)))
        .number("floor", move |row| {
            size(&row.judged, row.judged.floor, unit(row))
        })
        .number("p", |row| general(row.judged.p_adjusted, 2))
        .text("verdict", |row| {
            let is_marked = matches!(row.judged.verdict, Verdict::Worse | Verdict::Better);
            Cell::marked(verdict_words(row.judged.verdict).to_owned(), is_marked)
        });

    let notes = ["medians of the trials; a change below the floor is the noise of this path"];
    table.notes(notes).non_empty()
}

#[cfg(test)]
mod tests {
    use crate::conclude::compare::{Settings, compare};
    use linerate_model::finding::Difference;
    use linerate_model::measure::MeasureName;
    use linerate_model::record::{Body, Measure, RunId, RunKind, RunRecord, RunState, Trial, Way};

    use super::*;
    use crate::report::assert_expected;

    fn run(started_unix_ms: u64, rates_mbps: &[f64]) -> RunRecord {
        let measure = |name, value| Measure::new(name, Way::Forward, value);
        let trial = |(no, mbps): (u32, &f64)| {
            let mut repetition = Trial::complete(1);
            repetition.no = no;
            repetition.repeat = no;
            repetition.measures = vec![
                measure(MeasureName::ReceivedBps, mbps * 1e6),
                measure(MeasureName::Retransmits, 3.0),
                measure(MeasureName::RttMeanNs, 250_000.0),
            ];

            repetition
        };

        let mut record = RunRecord::new(
            RunId::new(started_unix_ms, [started_unix_ms as u8; 10]),
            RunKind::Test,
            Body::Test,
            "2026-01-31T12:00:00.000Z".to_owned(),
            started_unix_ms,
        );
        record.state = RunState::Complete;
        record.elapsed_ns = 1_000_000_000;
        record.origin.tool = "linerate".to_owned();
        record.trials = (0..).zip(rates_mbps).map(trial).collect();

        record
    }

    /// The comparison as a terminal of 80 columns shows it.
    fn brief(found: &Comparison) -> String {
        let shown = text(found, false, Style::PLAIN);
        let lines: Vec<&str> = shown.lines().collect();
        let is_narrow = |line: &&str| line.chars().count() <= 80;
        assert!(lines.len() <= 6 && lines.iter().all(is_narrow), "{shown}");

        shown
    }

    const SETTINGS: Settings<'static> = Settings {
        margin: linerate_model::two_sample::MARGIN,
        measure: None,
        is_forced: false,
        earlier: &[],
        experiment_notes: |_, _| Vec::new(),
    };
    const RATES: [f64; 5] = [941.0, 942.1, 940.2, 941.7, 941.3];

    #[test]
    fn the_answer_comes_first_and_configuration_above_the_measures() {
        let mut later = run(9000, &RATES.map(|rate| rate * 0.9));
        later.trials[4].flags.push("foreign-load".to_owned());
        let mut found = compare(&[run(1000, &RATES)], &[later], &SETTINGS);
        let mut shaper =
            Difference::new("nic.*.qdisc.rate", 3, "shapers, pacing and queue lengths");
        shaper.a = Some("1Gbit".to_owned());
        shaper.b = Some("900Mbit".to_owned());
        found.changes.push(Change {
            of: "client".to_owned(),
            difference: shaper,
        });
        assert_expected("compare.txt", &text(&found, true, Style::PLAIN));
        assert_expected("compare-brief.txt", &brief(&found));

        let page = html(&found);
        let places = [
            "<p class=\"verdict\">Worse: ",
            "card badge bad",
            "<figcaption>Trials of both",
            "<figcaption>B against A",
            "Configuration: 1 difference",
        ];
        let places = places.map(|part| {
            page.find(part)
                .unwrap_or_else(|| panic!("no {part} in {page}"))
        });
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(
            page.matches("class=\"marker h0\"").count(),
            2 * (5 + 1),
            "the trials of A and their name in each width"
        );
        assert!(
            page.contains(">-10.0 %</td>") && page.contains(">margin</text>"),
            "{page}"
        );

        let value: serde_json::Value = serde_json::from_str(&json(&found)).expect("JSON");
        assert_eq!(value["schema"], "linerate.compare/1");
        assert_eq!(value["rows"][0]["verdict"], "worse");
        assert_eq!(value["conclusion"]["verdict"], "worse");
    }

    #[test]
    fn each_conclusion_has_a_sentence_with_what_to_do() {
        let line = |rates: &[f64]| {
            let found = compare(&[run(1000, &RATES)], &[run(9000, rates)], &SETTINGS);
            let short = brief(&found);
            let style = Style {
                columns: 400,
                ..Style::PLAIN
            };
            short + &text(&found, true, style).replace('\n', " ")
        };
        let same = line(&RATES);
        for part in [
            "same: no change beyond 5.0 %\nup       A 941, B 941 Mbit/s, +0.0 %",
            "same: received up 941 Mbit/s in A, 941 Mbit/s in B, +0.0 %",
        ] {
            assert!(same.contains(part), "{part}: {same}");
        }

        let few = line(&RATES[..3]);
        for part in [
            "5 and 3 trials; a verdict needs 4 a side",
            "Do       make both sides with `--repeat 5`",
        ] {
            assert!(few.contains(part), "{part}: {few}");
        }

        let noisy = line(&[941.0, 700.0, 1200.0, 820.0, 1000.0]);
        assert!(
            noisy.starts_with("undecided: ") && noisy.contains("Do       make about "),
            "{noisy}"
        );
        assert!(noisy.contains("% is not excluded; about"), "{noisy}");

        let mut other = run(9000, &RATES);
        other.kind = RunKind::HttpLoad;
        other.body = Body::HttpLab(None);

        let found = compare(&[run(1000, &RATES)], &[other], &SETTINGS);
        assert_eq!(found.conclusion, None);
        assert!(brief(&found).starts_with("not comparable: kind of run: test, now http-load\n"));
    }
}
