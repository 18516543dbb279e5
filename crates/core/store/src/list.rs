//! Lists of runs: narrow rows and what they are filtered by.

use std::collections::{BTreeMap, HashMap};

use linerate_model::measure::MeasureName;
use linerate_model::record::{RunId, RunKind, RunRow, RunState, Way};
use linerate_model::stats::median;
use linerate_model::stored_name;

use crate::annotate::Label;
use crate::database::{Row, Value};
use crate::encoding::variant;
use crate::{Store, StoreError};

/// Which runs are listed. Everything set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Kind of the run.
    pub kind: Option<RunKind>,
    /// In this state.
    pub state: Option<RunState>,
    /// The client's host has this name.
    pub client: Option<String>,
    /// The server has this name.
    pub server: Option<String>,
    /// A watch of this name started it.
    pub watch: Option<String>,
    /// It has all these labels.
    pub labels: Vec<Label>,
    /// Started at this time or later, in ms since 1970.
    pub since_ms: Option<u64>,
    /// Started before this time, in ms since 1970.
    pub before_ms: Option<u64>,
    /// Keys of the path and of the specification ([`linerate_model::record::RunPath`]).
    pub keys: Option<(String, String)>,
    /// Not imported from another program's report.
    pub measured_here: bool,
    /// Order.
    pub sort: Sort,
    /// Most runs of the list.
    pub limit: Option<u32>,
}

/// Order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Latest start first.
    #[default]
    Newest,
    /// Earliest start first.
    Oldest,
    /// Highest primary measure first; runs without one are left out.
    Highest,
    /// Lowest primary measure first; runs without one are left out.
    Lowest,
}

impl Store {
    /// Lists runs.
    ///
    /// # Errors
    /// What the database reports.
    pub fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let (clauses, parameters) = conditions(filter);
        let order = order(filter.sort);
        let limit = limit(filter);
        let query = format!(
            "SELECT {COLUMNS}, key, value FROM (SELECT id, {COLUMNS} FROM run WHERE {clauses} \
             ORDER BY {order} LIMIT {limit}) AS listed LEFT JOIN label ON label.run = listed.id \
             ORDER BY {order}, key"
        );

        let mut list: Vec<RunRow> = Vec::new();
        self.database.query(&query, &parameters, &mut |row| {
            let next = run_row(row)?;
            if list.last().is_none_or(|last| last.run_id != next.run_id) {
                list.push(next);
            }

            // One row per label.
            // The thirteen columns of the run come first.
            if let (Some(last), Some(key)) = (list.last_mut(), row.get(13)?) {
                last.labels.insert(key, row.get(14)?);
            }

            Ok(())
        })?;

        Ok(list)
    }

    /// Lists runs with the medians of their primary measure in each direction, of the tests that
    /// have it in both.
    ///
    /// # Errors
    /// What the database reports.
    pub fn list_both_ways(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let (clauses, parameters) = conditions(filter);
        let order = order(filter.sort);
        let limit = limit(filter);
        let listed = format!("SELECT id FROM run WHERE {clauses} ORDER BY {order} LIMIT {limit}");
        let mut both_ways = self.both_ways(&listed, &parameters)?;

        let mut list = self.list(filter)?;
        for row in &mut list {
            row.both_ways = both_ways.remove(&row.run_id);
        }

        Ok(list)
    }

    fn both_ways(
        &self,
        listed: &str,
        parameters: &[Value],
    ) -> Result<HashMap<RunId, (f64, f64)>, StoreError> {
        let query = format!(
            "SELECT run.run_id, measure.way, measure.value FROM run JOIN measure ON measure.run = \
             run.id AND measure.name = run.primary_measure JOIN trial ON trial.run = run.id AND \
             trial.no = measure.trial WHERE run.id IN ({listed}) AND run.kind IN ('test', \
             'session') AND trial.state = 'complete' AND is_warm_up = 0 ORDER BY run.run_id, \
             measure.way, measure.value"
        );
        let values = self.database.all(&query, parameters, way_value)?;
        let mut both_ways = HashMap::new();

        for run in values.chunk_by(|a, b| a.0 == b.0) {
            let ways = middle(run, Way::Forward).zip(middle(run, Way::Reverse));
            both_ways.extend(run.first().map(|(id, ..)| *id).zip(ways));
        }

        Ok(both_ways)
    }
}

fn order(sort: Sort) -> &'static str {
    match sort {
        Sort::Newest => "started_ms DESC, id DESC",
        Sort::Oldest => "started_ms, id",
        Sort::Highest => "primary_value DESC, id DESC",
        Sort::Lowest => "primary_value, id",
    }
}

fn limit(filter: &Filter) -> i64 {
    filter.limit.map_or(i64::MAX, i64::from)
}

/// The run, the direction and the value of a measure.
type WayValue = (RunId, String, f64);

fn way_value(row: &Row) -> Result<WayValue, StoreError> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Median of the values of a direction.
fn middle(values: &[WayValue], way: Way) -> Option<f64> {
    let way = stored_name(way);
    let values: Vec<f64> = values
        .iter()
        .filter(|(_, of, _)| *of == way)
        .map(|(.., value)| *value)
        .collect();
    median(&values)
}

impl Store {
    /// The median of a measure over the complete trials of each run that has it, in the first of
    /// these directions that the run has. In the order of the runs' ids.
    ///
    /// # Errors
    /// What the database reports.
    pub fn medians(
        &self,
        filter: &Filter,
        measure: MeasureName,
        ways: &[Way],
    ) -> Result<Vec<(RunId, f64)>, StoreError> {
        let (clauses, mut parameters) = conditions(filter);
        parameters.push(Value::Text(measure.to_string()));

        let query = format!(
            "SELECT run_id, way, value FROM (SELECT id, run_id FROM run WHERE {clauses}) AS listed \
             JOIN measure ON measure.run = listed.id JOIN trial ON trial.run = listed.id AND \
             trial.no = measure.trial WHERE name = ${} AND trial.state = 'complete' AND is_warm_up \
             = 0 ORDER BY run_id, way, value",
            parameters.len()
        );
        let values = self.database.all(&query, &parameters, way_value)?;
        let runs = values.chunk_by(|a, b| a.0 == b.0);

        let median = |values: &[WayValue]| {
            let median = ways.iter().find_map(|way| middle(values, *way))?;
            Some((values.first()?.0, median))
        };
        Ok(runs.filter_map(median).collect())
    }
}

/// The run of a trial, its factors, and the value of a measure.
pub type TrialValue = (RunId, BTreeMap<String, String>, f64);

impl Store {
    /// The values of a measure in the complete trials of the listed runs, whatever their direction.
    ///
    /// # Errors
    /// What the database reports.
    pub fn trial_values(
        &self,
        filter: &Filter,
        measure: MeasureName,
    ) -> Result<Vec<TrialValue>, StoreError> {
        let (clauses, mut parameters) = conditions(filter);
        parameters.push(Value::Text(measure.to_string()));

        let query = format!(
            "SELECT run_id, factors, value FROM (SELECT id, run_id FROM run WHERE {clauses}) AS \
             listed JOIN measure ON measure.run = listed.id JOIN trial ON trial.run = listed.id AND \
             trial.no = measure.trial WHERE name = ${} AND trial.state = 'complete' AND is_warm_up \
             = 0",
            parameters.len()
        );
        self.database.all(&query, &parameters, |row| {
            let factors = serde_json::from_str(&row.get::<String>(1)?);
            let factors = factors.map_err(|error| StoreError::damaged("factors", error))?;
            Ok((row.get(0)?, factors, row.get(2)?))
        })
    }
}

const COLUMNS: &str = "run_id, kind, state, reason, title, started_ms, elapsed_ns, client, server, \
                       watch, trials, primary_measure, primary_value";

fn conditions(filter: &Filter) -> (String, Vec<Value>) {
    // A filter without conditions needs a clause as well.
    let mut clauses = vec!["TRUE".to_owned()];
    let mut parameters = Vec::new();
    let mut add = |clause: &str, value: Option<Value>| {
        if let Some(value) = value {
            parameters.push(value);
            clauses.push(clause.replace('?', &format!("${}", parameters.len())));
        }
    };

    let text = |text: &Option<String>| text.clone().map(Value::Text);
    // Integers of both databases have a sign.
    let time = |time_ms: Option<u64>| time_ms.map(|ms| Value::from(ms.min(i64::MAX as u64)));
    add(
        "kind = ?",
        filter.kind.map(|kind| Value::Text(stored_name(kind))),
    );
    add(
        "state = ?",
        filter
            .state
            .filter(|state| *state != RunState::Ended)
            .map(|state| Value::Text(stored_name(state))),
    );
    add("client = ?", text(&filter.client));
    add("server = ?", text(&filter.server));
    add("watch = ?", text(&filter.watch));
    add("started_ms >= ?", time(filter.since_ms));
    add("started_ms < ?", time(filter.before_ms));
    add(
        "path_key = ?",
        filter.keys.clone().map(|(path, _)| Value::Text(path)),
    );
    add(
        "spec_key = ?",
        filter.keys.clone().map(|(_, spec)| Value::Text(spec)),
    );

    for label in &filter.labels {
        add(
            // The clause has two parameters, and the second call closes it.
            "EXISTS (SELECT 1 FROM label WHERE label.run = run.id AND key = ?",
            Some(Value::Text(label.key.clone())),
        );
        add("value = ?)", Some(Value::Text(label.value.clone())));
    }

    if filter.state == Some(RunState::Ended) {
        // Stores of earlier versions have the other name.
        clauses.push("state IN ('ended', 'crashed')".to_owned());
    }

    if filter.measured_here {
        clauses.push("source_key IS NULL".to_owned());
    }

    if matches!(filter.sort, Sort::Highest | Sort::Lowest) {
        clauses.push("primary_value IS NOT NULL".to_owned());
    }

    (clauses.join(" AND "), parameters)
}

fn run_row(row: &Row) -> Result<RunRow, StoreError> {
    let text = |column: usize| row.get::<String>(column);
    let measure: Option<String> = row.get(11)?;
    let value: Option<f64> = row.get(12)?;

    Ok(RunRow {
        run_id: row.get(0)?,
        kind: variant(text(1)?)?,
        state: variant(text(2)?)?,
        reason: row.get(3)?,
        title: row.get(4)?,
        started_unix_ms: row.get(5)?,
        elapsed_ns: row.get(6)?,
        client: row.get(7)?,
        server: row.get(8)?,
        watch: row.get(9)?,
        trials: row.get(10)?,
        primary: measure.and_then(|measure| measure.parse().ok()).zip(value),
        both_ways: None,
        labels: BTreeMap::new(),
    })
}
