//! The three steps of a study: is the path clean, what does bare HTTP reach on it, and the whole picture.

use linerate_model::http::Study;

use super::table::Table;
use super::tables;

/// One step with its answer and the figures behind it.
pub(super) struct Chapter {
    /// The question.
    pub heading: &'static str,
    /// The answer in one sentence.
    pub sentence: String,
    /// The figures.
    pub tables: Vec<Table>,
}

const HEADINGS: [&str; 3] = [
    "1 Baseline: is the path clean?",
    "2 Isolation: what does bare HTTP reach on it?",
    "3 Whole picture: throughput, latency, processors and limits of both ends",
];

/// All three, those that were not run as well.
pub(super) fn chapters(study: &Study) -> [Chapter; 3] {
    let [first, second, third] = std::array::from_fn(|place| {
        let sentence = study.sentences[place].clone();
        sentence.unwrap_or_else(|| "not run".to_owned())
    });
    [
        chapter(HEADINGS[0], first, tables::baseline(study)),
        chapter(HEADINGS[1], second, tables::payload(study)),
        chapter(HEADINGS[2], third, whole(study)),
    ]
}

fn chapter(heading: &'static str, sentence: String, tables: impl IntoIterator<Item = Table>) -> Chapter {
    Chapter {
        heading,
        sentence,
        tables: tables.into_iter().collect(),
    }
}

fn whole(study: &Study) -> Vec<Table> {
    let mut all = tables::matrices(study);
    all.extend(tables::rows(study));
    all.extend(tables::idle(study));
    all.extend(tables::busy(study));
    all.extend(tables::passes(study));
    all.extend(tables::limits(study));
    all.extend(tables::verdicts(study));
    all
}
