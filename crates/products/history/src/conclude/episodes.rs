//! What rows of a grid that got worse together have in common: one episode each, from its first bad
//! run to its recovery.

use std::collections::{BTreeMap, BTreeSet};

use linerate_document::number::counted;
use linerate_model::fleet::HostId;

use super::change_point::{AFTER, BEFORE};
use super::grid::{Grid, GridRow, RowKey};

/// Rows that got worse together.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// What the rows have in common: `host c03`, `c01 and c02`, `30 pairs`.
    pub subject: String,
    /// Id of the rule that found it, of hosts and pairs.
    pub finding: Option<String>,
    /// What happened: `5 of 5 pairs fell to 94 Mbit/s`.
    pub text: String,
    /// Places of the rows.
    pub rows: Vec<usize>,
    /// Place of its first run.
    pub began: usize,
    /// The run after which it was found.
    pub found: usize,
    /// The first good run, and the one after which that was found; absent while it lasts.
    pub ended: Option<(usize, usize)>,
}

/// The rate of a cell in relation to that before.
#[derive(Debug, Clone, Copy)]
pub struct CellRatio<'a> {
    /// The cell.
    pub key: &'a RowKey,
    /// 1 where it has not changed.
    pub ratio: f64,
}

/// Cells with one cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The cause: a host, a pair.
    pub subject: String,
    /// Its host, where it is one.
    pub host: Option<String>,
    /// Id of the rule.
    pub finding: Option<String>,
    /// Places in what was grouped.
    pub members: Vec<usize>,
}

/// Finds the outliers among the cells of a fleet and their causes, by the racks of its hosts.
pub type Grouping = fn(&[CellRatio<'_>], &BTreeMap<HostId, String>) -> Vec<Group>;

/// Ratio of a cell without a result.
const ABSENT_RATIO: f64 = 1e-3;

/// The episodes of a grid, in the order in which they were found.
pub fn episodes(grid: &Grid, grouping: Grouping) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = Vec::new();
    // Episode of each row: a row that recovers later than the others begins none of its own.
    let mut of_row: Vec<Option<usize>> = vec![None; grid.rows.len()];

    for at in 0..grid.starts_unix_ms.len() {
        let open = episodes.iter_mut().filter(|one| one.ended.is_none());
        open.for_each(|episode| episode.end_at(grid, at));

        for (row, episode) in grid.rows.iter().zip(&mut of_row) {
            let has_ended = episode.is_some_and(|number| episodes[number].ended.is_some());
            if has_ended && row.degradation(at).is_none() {
                *episode = None;
            }
        }

        let free: Vec<usize> = (0..grid.rows.len())
            .filter(|row| of_row[*row].is_none())
            .collect();
        for group in begun(grid, &free, at, grouping) {
            group
                .members
                .iter()
                .for_each(|row| of_row[*row] = Some(episodes.len()));
            episodes.push(Episode::new(grid, group, at));
        }
    }

    episodes
}

/// Groups of free rows of which a degradation was found after this run.
fn begun(grid: &Grid, free: &[usize], at: usize, grouping: Grouping) -> Vec<Group> {
    let bad: Vec<usize> = free
        .iter()
        .copied()
        .filter(|row| grid.rows[*row].degradation(at).is_some())
        .collect();
    let is_new = |row: &usize| {
        grid.rows[*row]
            .degradations
            .iter()
            .any(|degradation| degradation.found == at)
    };
    if !bad.iter().any(is_new) {
        return Vec::new();
    }

    // Labels have nothing in common that a rule could name.
    if !grid.rows.iter().all(|row| row.key.is_cell()) {
        let alone = |row: usize| Group {
            subject: grid.rows[row].key.source.clone(),
            members: vec![row],
            ..Group::default()
        };
        return bad.into_iter().map(alone).collect();
    }

    let (rows, ratios): (Vec<usize>, Vec<CellRatio<'_>>) = free
        .iter()
        .filter_map(|row| Some((*row, ratio(&grid.rows[*row], at)?)))
        .unzip();
    let mut groups = grouping(&ratios, &grid.racks);
    for group in &mut groups {
        group
            .members
            .iter_mut()
            .for_each(|place| *place = rows[*place]);
    }
    groups.retain(|group| group.members.iter().any(|row| bad.contains(row)));

    // A change of most cells leaves no outlier among them. One of few cells that is no outlier is
    // within the spread of as many cells.
    let others = |row: &usize| !groups.iter().any(|group| group.members.contains(row));
    let others: Vec<usize> = bad.into_iter().filter(others).collect();
    if others.len() * 2 > free.len() {
        groups.push(Group {
            subject: counted(pairs(grid, &others).len(), "pair"),
            members: others,
            ..Group::default()
        });
    }

    groups
}

/// The level of a row after run `at` in relation to that before its degradation, or its last runs to those
/// before; `None` of too few runs.
fn ratio(row: &GridRow, at: usize) -> Option<CellRatio<'_>> {
    let last = (at + 1).saturating_sub(AFTER);
    let ratio = match row.degradation(at) {
        Some(degradation) if degradation.is_absent => ABSENT_RATIO,
        Some(degradation) => row.level(degradation.began..=at)? / degradation.before,
        None => {
            row.level(last..=at)? / row.level(last.saturating_sub(BEFORE)..=last.checked_sub(1)?)?
        }
    };
    Some(CellRatio {
        key: &row.key,
        ratio,
    })
}

fn pairs<'a>(grid: &'a Grid, rows: &[usize]) -> BTreeSet<(&'a str, &'a str)> {
    rows.iter().map(|row| grid.rows[*row].key.pair()).collect()
}

/// The place in the middle.
fn middle(places: impl Iterator<Item = usize>) -> Option<usize> {
    let mut places: Vec<usize> = places.collect();
    places.sort_unstable();
    places.get(places.len().checked_sub(1)? / 2).copied()
}

impl Episode {
    fn new(grid: &Grid, group: Group, at: usize) -> Self {
        let rows = || group.members.iter().map(|row| &grid.rows[*row]);
        let degradations = || rows().filter_map(|row| row.degradation(at));
        let began = middle(degradations().map(|degradation| degradation.began)).unwrap_or(at);

        let levels: Vec<f64> = rows().filter_map(|row| row.level(began..=at)).collect();
        let is_absent = degradations()
            .filter(|degradation| degradation.is_absent)
            .count()
            * 2
            > degradations().count();
        let change = match linerate_model::stats::median(&levels).filter(|_| !is_absent) {
            Some(level) => format!("fell to {}", grid.measure.info().unit.text(level)),
            None => "without a result".to_owned(),
        };
        let text = match &group.host {
            Some(host) => {
                let all = grid.rows.iter().map(|row| row.key.pair());
                let all: BTreeSet<_> = all.filter(|(a, b)| host == a || host == b).collect();
                let changed = pairs(grid, &group.members).len();
                format!("{changed} of {} {change}", counted(all.len(), "pair"))
            }
            None => change,
        };

        Self {
            subject: group.subject,
            finding: group.finding,
            text,
            rows: group.members,
            began,
            found: at,
            ended: None,
        }
    }

    /// It ends when most of its rows are good again.
    fn end_at(&mut self, grid: &Grid, at: usize) {
        let rows = || self.rows.iter().map(|row| &grid.rows[*row]);
        let bad = |at: usize| rows().filter(|row| row.degradation(at).is_some()).count();
        let most = (self.found..at).map(bad).max().unwrap_or(0);
        if bad(at) * 2 < most {
            let degradations = rows().flat_map(|row| &row.degradations);
            let ends = degradations.filter_map(|degradation| degradation.ended);
            let ends = ends.filter(|(_, found)| (self.found..=at).contains(found));
            self.ended = Some((middle(ends.map(|(began, _)| began)).unwrap_or(at), at));
        }
    }

    /// `host c03: 5 of 5 pairs fell to 94 Mbit/s at round 12 (FLT-01)`; `when` names a run.
    pub fn sentence(&self, when: impl Fn(usize) -> String) -> String {
        let rule = match &self.finding {
            Some(id) => format!(" ({id})"),
            None => String::new(),
        };
        format!(
            "{}: {} at {}{rule}",
            self.subject,
            self.text,
            when(self.began)
        )
    }

    /// `host c03: recovered at round 20`; `None` while it lasts.
    pub fn recovery(&self, when: impl Fn(usize) -> String) -> Option<String> {
        let (began, _) = self.ended?;
        Some(format!("{}: recovered at {}", self.subject, when(began)))
    }
}
