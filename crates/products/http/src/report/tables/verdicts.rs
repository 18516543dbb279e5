//! What held each cell back, on which evidence, and what to do.

use std::collections::BTreeMap;

use linerate_document::table::Table;
use linerate_model::http::{self as model, CellRun, Flag, Judgement, Study, VerdictClass};
use linerate_model::stored_name;

use crate::report::labels;
use crate::report::numbers::cell as cell_name;

/// One row per class that fits a cell; none without cells.
pub(in crate::report) fn verdicts(study: &Study) -> Option<Table> {
    let rows: Vec<[String; 5]> = study.cells.iter().flat_map(rows).collect();
    let heads = ["cell", "phase", "limit", "confidence", "evidence"];
    let notes = advice(study).into_iter().chain(flags(study)).collect();
    let table = Table::of_words("", "limits of the cells", heads, &rows);
    (!rows.is_empty()).then_some(Table { notes, ..table })
}

fn rows(cell: &model::Cell) -> Vec<[String; 5]> {
    let verdict = &cell.verdict;
    let first = [
        cell_name(&cell.key),
        labels::phase(cell.key.phase),
        labels::limit(verdict.primary.class).to_owned(),
        stored_name(verdict.confidence),
        evidence(&verdict.primary, unused(cell)),
    ];

    let more = verdict.contributing.iter().map(|judgement| {
        let class = format!("+ {}", labels::limit(judgement.class));
        [
            String::new(),
            String::new(),
            class,
            String::new(),
            evidence(judgement, None),
        ]
    });
    std::iter::once(first).chain(more).collect()
}

fn evidence(judgement: &Judgement, unused: Option<String>) -> String {
    let texts = judgement.evidence.iter().map(ToString::to_string);
    texts.chain(unused).collect::<Vec<_>>().join("; ")
}

/// Why runs of a cell are not in its numbers.
fn unused(cell: &model::Cell) -> Option<String> {
    let reason = |run: &CellRun| Some(format!("run {} {}", run.repeat, labels::ending(run)?));
    let reasons: Vec<String> = cell.runs.iter().filter_map(reason).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Each different advice once with its limit and the number of cells, that of most cells first.
pub(in crate::report) fn by_advice(study: &Study) -> Vec<(&'static str, usize, &str)> {
    let mut found: Vec<(&'static str, usize, &str)> = cells_by_advice(study)
        .into_iter()
        .map(|((class, advice), count)| (labels::limit(class), count, advice))
        .collect();
    found.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    found
}

/// Each different advice once, with the number of cells it is for.
fn advice(study: &Study) -> Vec<String> {
    let text = |((class, advice), count): ((VerdictClass, &str), usize)| {
        format!(
            "{} ({}): {advice}",
            labels::limit(class),
            labels::counted(count, "cell")
        )
    };
    cells_by_advice(study).into_iter().map(text).collect()
}

fn cells_by_advice(study: &Study) -> BTreeMap<(VerdictClass, &str), usize> {
    let mut cells: BTreeMap<(VerdictClass, &str), usize> = BTreeMap::new();
    for cell in &study.cells {
        for judgement in std::iter::once(&cell.verdict.primary).chain(&cell.verdict.contributing) {
            if !judgement.advice.is_empty() {
                *cells
                    .entry((judgement.class, &judgement.advice))
                    .or_default() += 1;
            }
        }
    }

    cells
}

/// Each flag once, with the number of cells that have it.
fn flags(study: &Study) -> Vec<String> {
    let mut cells: BTreeMap<Flag, usize> = BTreeMap::new();
    for cell in &study.cells {
        let mut flags: Vec<Flag> = cell
            .runs
            .iter()
            .flat_map(|run| run.flags.iter().copied())
            .collect();
        flags.sort_unstable();
        flags.dedup();

        for flag in flags {
            *cells.entry(flag).or_default() += 1;
        }
    }

    let text =
        |(flag, count)| format!("{}: {}", labels::counted(count, "cell"), labels::flag(flag));
    cells.into_iter().map(text).collect()
}
