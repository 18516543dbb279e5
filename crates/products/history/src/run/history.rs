//! `linerate history`: lists, shows and annotates the runs of a store, and keeps the store sound.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use linerate_document::record::ProductReport;
use linerate_document::{Style, record};
use linerate_model::EventSink;
use linerate_model::event::Endpoint;
use linerate_model::outcome::Error;
use linerate_model::printable::{printable, printable_json, printable_lines};
use linerate_model::record::{Detail, RunKind, RunRecord, RunRow};
pub use linerate_store::upkeep::Keep;
pub use linerate_store::{Filter, Label, Sort, parse_label};
use linerate_store::{Place, Store, StoreError, playback, upkeep};
use serde::de::value::{Error as NameError, StrDeserializer};

use super::named::{load_named, one};
use super::record::{timestamp, unix_ms};
use crate::conclude::expect::{Expectations, Missed};
use crate::conclude::limits::missed_by_run;
use crate::report::{export, list};

/// The runs of a store.
#[derive(Debug, Clone)]
pub struct History {
    place: Option<Place>,
}

/// Form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// A table for people.
    Text,
    /// One JSON array.
    Json,
    /// Comma-separated values.
    Csv,
    /// A table in Markdown.
    Markdown,
}

/// Form of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunForm {
    /// The report for people.
    Text,
    /// The record, one line per run.
    Json,
    /// Measures, comma-separated.
    Csv,
    /// Values over time, comma-separated.
    Series,
    /// Markdown.
    Markdown,
    /// The exposition format of Prometheus.
    Prometheus,
    /// OTLP metrics in their JSON form.
    Otlp,
    /// The command line, ready to paste.
    Argv,
}

impl History {
    /// The store of `--store`, or that of the environment.
    ///
    /// # Errors
    /// A value that names no place.
    pub fn find(store: Option<&str>) -> Result<Self, Error> {
        Ok(Self {
            place: Place::find(store)?,
        })
    }

    /// The list in a form; `None` where nothing was ever recorded.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn list(
        &self,
        filter: &Filter,
        form: ListForm,
        style: Style,
    ) -> Result<Option<String>, Error> {
        let rows = match self.open().map(|store| store.list_both_ways(filter)) {
            Err(StoreError::Missing(_)) => return Ok(None),
            rows => rows.and_then(|rows| rows)?,
        };
        Ok(Some(match form {
            ListForm::Text => list::text(&rows, &local_time, style),
            ListForm::Markdown => list::markdown(&rows, &local_time),
            ListForm::Csv => list::csv(&rows),
            ListForm::Json => json(&rows),
        }))
    }

    /// Runs in a form. `product` reports what only a product can.
    ///
    /// # Errors
    /// A name of no run, or a record that cannot be read.
    pub fn show(
        &self,
        names: &[String],
        form: RunForm,
        product: ProductReport,
        style: Style,
    ) -> Result<String, Error> {
        let runs = self.load(names)?;
        Ok(match form {
            RunForm::Text => runs
                .iter()
                .map(|run| self.page(run, product, style))
                .collect::<Vec<_>>()
                .join("\n"),
            RunForm::Json => runs.iter().map(super::record::json).collect(),
            RunForm::Csv => export::csv::measures(&runs),
            RunForm::Series => export::csv::series(&runs),
            RunForm::Markdown => export::markdown::document(&runs),
            RunForm::Prometheus => export::prometheus::exposition(&runs),
            RunForm::Otlp => printable_json(&export::otlp::metrics(&runs).to_string()) + "\n",
            RunForm::Argv => runs.iter().map(argv).collect(),
        })
    }

    /// Limits that runs missed, each by itself.
    ///
    /// # Errors
    /// As [`History::show`].
    pub fn missed(&self, names: &[String], limits: &Expectations) -> Result<Vec<Missed>, Error> {
        Ok(self
            .load(names)?
            .iter()
            .flat_map(|run| missed_by_run(limits, run))
            .collect())
    }

    /// Plays throughput tests back, each into a writer of its own for the end that it was seen
    /// from.
    ///
    /// # Errors
    /// A name of no run, one without a throughput test, or a writer that fails.
    pub fn replay(
        &self,
        names: &[String],
        writer: impl Fn(Endpoint) -> Box<dyn EventSink>,
    ) -> Result<(), Error> {
        let runs = self.load(names)?;
        let tests = runs
            .iter()
            .flat_map(|run| run.trials.iter().map(move |trial| (run.kind, trial)));
        let tests: Vec<_> = tests
            .filter(|(_, trial)| matches!(trial.detail, Some(Detail::Test(_))))
            .collect();
        if tests.is_empty() {
            return Err(Error::failed(
                "the run has no throughput test, which alone has such a report",
            ));
        }

        for (kind, trial) in tests {
            let mut writer = writer(if kind == RunKind::Session {
                Endpoint::Server
            } else {
                Endpoint::Client
            });
            playback(trial)
                .iter()
                .try_for_each(|event| writer.event(event))
                .map_err(Error::failed)?;
        }

        Ok(())
    }

    /// Sets and removes labels of every run of the names.
    ///
    /// # Errors
    /// A name of no run, with which no run is changed, or a store that cannot be written.
    pub fn label(&self, names: &[String], set: &[Label], remove: &[String]) -> Result<(), Error> {
        let store = self.open()?;
        let mut runs = Vec::new();

        for name in names {
            runs.extend(store.resolve(name)?);
        }

        runs.into_iter()
            .try_for_each(|run| store.label(run, set, remove))
            .map_err(Error::from)
    }

    /// Adds a note to the run of a name.
    ///
    /// # Errors
    /// A name of no or several runs, or a store that cannot be written.
    pub fn note(&self, name: &str, text: &str) -> Result<(), Error> {
        let store = self.open()?;
        store
            .add_note(one(&store, name)?, text)
            .map_err(Error::from)
    }

    /// Gives the run of a name the name of a baseline.
    ///
    /// # Errors
    /// As [`History::note`].
    pub fn set_baseline(&self, baseline: &str, name: &str) -> Result<(), Error> {
        let store = self.open()?;
        store
            .set_baseline(baseline, one(&store, name)?)
            .map_err(Error::from)
    }

    /// Removes a baseline; its run stays.
    ///
    /// # Errors
    /// No such baseline, or a store that cannot be written.
    pub fn remove_baseline(&self, baseline: &str) -> Result<(), Error> {
        let removed = self
            .open()
            .and_then(|store| store.remove_baseline(baseline))?;
        if removed {
            Ok(())
        } else {
            Err(Error::usage(format!("no baseline {baseline:?}")))
        }
    }

    /// One line per baseline.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn baselines(&self) -> Result<String, Error> {
        let baselines = self.open().and_then(|store| store.baselines())?;
        Ok(baselines
            .iter()
            .map(|(name, run)| format!("@{}  {}\n", printable(name), run.short()))
            .collect())
    }

    /// Examines the store. The report, and whether nothing is wrong.
    ///
    /// # Errors
    /// A store that cannot be opened.
    pub fn check(&self) -> Result<(String, bool), Error> {
        let check = self.open().and_then(|store| store.check())?;
        let verdict = match check.problems.len() {
            0 => "no damage".to_owned(),
            problems => {
                format!("{problems} problems; linerate history repair saves what can be read")
            }
        };
        let mut report = format!(
            "{} runs, {} in the spool: {verdict}\n",
            check.runs, check.spooled
        );
        report.extend(
            check
                .problems
                .iter()
                .map(|problem| format!("  {}\n", printable(problem))),
        );

        Ok((report, check.problems.is_empty()))
    }

    /// Copies what can be read into a new database. The report, and whether nothing is missing.
    ///
    /// # Errors
    /// A file that is no database of this program, or one that another process writes.
    pub fn repair(&self) -> Result<(String, bool), Error> {
        let repaired = upkeep::repair(self.place()?)?;
        let mut report = format!(
            "{} runs saved; the old file is {}\n",
            repaired.runs,
            printable(&repaired.set_aside.display().to_string())
        );
        report.extend(
            repaired
                .missing
                .iter()
                .map(|line| format!("  missing: {}\n", printable(line))),
        );

        Ok((report, repaired.missing.is_empty()))
    }

    /// Removes what is older than it must be kept; a dry run only counts.
    ///
    /// # Errors
    /// A store that cannot be written.
    pub fn prune(&self, keep: &Keep, dry_run: bool) -> Result<String, Error> {
        let now_ms = unix_ms(Timestamp::now());
        let pruned = self
            .open()
            .and_then(|store| store.prune(keep, now_ms, dry_run))?;

        let verb = if dry_run {
            "would be removed"
        } else {
            "removed"
        };
        Ok(format!(
            "{} runs {verb}, and the values over time of {} runs\n",
            pruned.runs, pruned.without_points
        ))
    }

    /// Recomputes the measures of every trial.
    ///
    /// # Errors
    /// A store that cannot be written.
    pub fn reindex(&self) -> Result<String, Error> {
        let changed = self.open().and_then(|store| store.reindex())?;
        Ok(format!(
            "{changed} trials with other measures than before\n"
        ))
    }

    fn open(&self) -> Result<Store, StoreError> {
        Store::open_existing(self.place()?)
    }

    fn place(&self) -> Result<&Place, StoreError> {
        let none = || StoreError::Usage("--store off: there is no history".to_owned());
        self.place.as_ref().ok_or_else(none)
    }

    fn load(&self, names: &[String]) -> Result<Vec<RunRecord>, Error> {
        let mut runs = Vec::new();
        for name in names {
            runs.extend(load_named(self.place.as_ref(), name)?);
        }
        Ok(runs)
    }

    /// The report of a run, and what its users noted.
    fn page(&self, run: &RunRecord, product: ProductReport, style: Style) -> String {
        let run_alone = std::slice::from_ref(run);
        let mut page = record::text(run_alone, product, style);
        let notes = self
            .open()
            .and_then(|store| store.notes(run.run_id))
            .unwrap_or_default();
        for note in notes {
            let text = printable_lines(&note.text);
            page += &format!("note of {}: {text}\n", local_time(note.written_unix_ms));
        }

        page
    }
}

/// Parses an age (`7d`, `12h`, `30m`) or a date, as ms since 1970. A date begins in the zone of
/// this host.
///
/// # Errors
/// Text that is neither.
pub fn since(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit_s = match &text[digits..] {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        "w" => Some(604_800),
        _ => None,
    };
    let age_s =
        unit_s.and_then(|unit_s: i64| text[..digits].parse::<i64>().ok()?.checked_mul(unit_s));
    let of_age = age_s.and_then(|age_s| Timestamp::now().checked_sub(age_s.seconds()).ok());

    let of_date = || {
        Some(
            text.parse::<Date>()
                .ok()?
                .to_zoned(TimeZone::system())
                .ok()?
                .timestamp(),
        )
    };
    let time = of_age
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(of_date);
    let time = time
        .ok_or_else(|| format!("{text:?}: write an age as 7d or 12h, or a date as 2026-11-30"))?;

    Ok(unix_ms(time))
}

/// A kind or a state by the name under which it is stored.
///
/// # Errors
/// Another name.
pub fn by_name<T: serde::de::DeserializeOwned>(name: &str) -> Result<T, String> {
    T::deserialize(StrDeserializer::<NameError>::new(name)).map_err(|error| error.to_string())
}

fn argv(run: &RunRecord) -> String {
    let words: Vec<String> = run
        .origin
        .argv
        .iter()
        .map(|word| record::quoted(word))
        .collect();
    printable(&words.join(" ")) + "\n"
}

fn json(rows: &[RunRow]) -> String {
    printable_json(&serde_json::to_string(rows).unwrap_or_default()) + "\n"
}

/// A time in ms since 1970 by the clock of this host.
pub fn local_time(unix_ms: u64) -> String {
    let zoned = timestamp(unix_ms).to_zoned(TimeZone::system());
    zoned.strftime("%F %T").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_dates_are_times() {
        let now_ms = u64::try_from(Timestamp::now().as_millisecond()).expect("after 1970");
        let day_ago = since("1d").expect("an age");
        assert!((now_ms - 86_400_000..now_ms - 86_000_000).contains(&day_ago));
        assert_eq!(since("2026-11-30T00:00:00Z"), Ok(1_795_996_800_000));
        assert!(since("2026-11-30").is_ok());

        for wrong in ["", "7", "d", "7x", "99999999999999999999d", "2026-13-01"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
