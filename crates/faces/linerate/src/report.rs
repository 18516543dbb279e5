//! `linerate report`: reads runs and writes one report of them.

use linerate_document::Style;
use linerate_document::record;
use linerate_document::record::ProductReport;
pub use linerate_document::record::TimeRange;
use linerate_history::conclude::episodes::episodes;
use linerate_history::report::export;
use linerate_history::report::grid::GridReport;
pub use linerate_history::run::grid::GridSpec;
use linerate_history::run::history::local_time;
use linerate_history::run::named::load_named;
use linerate_model::outcome::Error;
use linerate_model::record::RunRecord;
use linerate_store::Place;

/// Records of all products.
pub(crate) const PRODUCTS: ProductReport = ProductReport {
    name: FLEET.name,
    answers: |record| (FLEET.answers)(record).or_else(|| (SWEEP.answers)(record)),
    blocks: |record| {
        (FLEET.blocks)(record)
            .or_else(|| (SWEEP.blocks)(record))
            .or_else(|| (HTTP.blocks)(record))
            .or_else(|| (PATH.blocks)(record))
    },
    diagnosis: linerate_doctor::report::short,
    limit: |diagnosis| {
        let step = linerate_doctor::report::first_step(diagnosis);
        (linerate_doctor::report::sentence(diagnosis), step)
    },
    findings: linerate_doctor::report::cards,
    page: |record| {
        (FLEET.page)(record)
            .or_else(|| (SWEEP.page)(record))
            .or_else(|| (HTTP.page)(record))
            .or_else(|| (PATH.page)(record))
    },
};
const FLEET: ProductReport = linerate_fleet::report::RECORDS;
const HTTP: ProductReport = linerate_http::report::RECORDS;
const PATH: ProductReport = linerate_path::report::RECORDS;
const SWEEP: ProductReport = linerate_sweep::report::RECORDS;

/// Which runs are reported, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReportSpec {
    /// Names of runs, or files.
    pub runs: Vec<String>,
    /// The store, as given with `--store`.
    pub store: Option<String>,
    /// The form.
    pub form: Form,
    /// The part of each trial that charts show.
    pub stretch: TimeRange,
    /// Names and addresses are replaced.
    pub is_anonymous: bool,
    /// Style of the text.
    pub style: Style,
}

impl ReportSpec {
    /// The runs of these names in the history of the user, whole and with all names, for every
    /// terminal and file.
    pub fn new(runs: Vec<String>, form: Form) -> Self {
        Self {
            runs,
            store: None,
            form,
            stretch: TimeRange::default(),
            is_anonymous: false,
            style: Style::PLAIN,
        }
    }
}

/// A form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// One file with charts.
    Html,
    /// CommonMark with tables, short enough for a comment.
    Markdown,
    /// Lines for a terminal.
    Text,
}

/// The report.
///
/// # Errors
/// A name that is no run, or a record that cannot be read.
pub fn report(spec: &ReportSpec) -> Result<String, Error> {
    let mut records = load(spec)?;
    // Names are replaced before any writer, so no form can show one.
    if spec.is_anonymous {
        records = records.iter().map(record::anonymized).collect();
    }

    Ok(match spec.form {
        Form::Html => record::html(&records, spec.stretch, PRODUCTS),
        Form::Markdown => export::markdown::document(&records),
        Form::Text => record::text(&records, PRODUCTS, spec.style),
    })
}

/// The results of many runs by time, and what rows that got worse have in common.
///
/// # Errors
/// No such run, and a store that cannot be read.
pub fn grid(spec: &GridSpec, form: Form, style: Style) -> Result<String, Error> {
    let named = linerate_history::run::grid::grid(spec)?;
    let report = GridReport {
        named: &named,
        episodes: &episodes(&named.grid, linerate_fleet::conclude::changes::group),
        when: &local_time,
    };
    Ok(match form {
        Form::Html => report.html(),
        _ => report.text(style),
    })
}

fn load(spec: &ReportSpec) -> Result<Vec<RunRecord>, Error> {
    let place = Place::find(spec.store.as_deref())?;
    let runs = spec
        .runs
        .iter()
        .map(|name| load_named(place.as_ref(), name));
    Ok(runs.collect::<Result<Vec<_>, _>>()?.concat())
}
