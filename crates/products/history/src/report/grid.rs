//! Results over time: a row for each pair of hosts or label, a column for each run, and the changes
//! that rows have in common.

use std::collections::{BTreeMap, BTreeSet};

use linerate_document::blocks::{Block, Document};
use linerate_document::frame::{Badge, Card, Head};
use linerate_document::heat::{HeatCell, HeatMap, HeatRow};
use linerate_document::number::{counted, known};
use linerate_document::record::RunPage;
use linerate_document::sparkline;
use linerate_document::style::Style;
use linerate_document::table::{Table, TableOf};
use linerate_model::finding::Severity;
use linerate_model::stats::median;

use crate::conclude::change_point::RUNS_MIN;
use crate::conclude::episodes::Episode;
use crate::conclude::grid::{Grid, GridRow};
use crate::run::grid::NamedGrid;

/// Name of the page.
const NAME: &str = "linerate report";
/// Most columns of a picture: more are narrower than a line on a phone.
const COLUMNS_MAX: usize = 36;
/// Most rows of a picture of pairs: those of eight hosts. More are shown by host.
const ROWS_MAX: usize = 56;
/// Most rows of a table of text.
const TEXT_ROWS_MAX: usize = 16;
/// Width of a row of points in text.
const POINTS: usize = 24;
const DAY_MS: u64 = 86_400_000;

/// What a report is made of.
#[derive(Clone, Copy)]
pub struct GridReport<'a> {
    /// The results.
    pub named: &'a NamedGrid,
    /// The changes.
    pub episodes: &'a [Episode],
    /// A time in ms since 1970 as text, `2026-11-30 10:20:00`.
    pub when: &'a dyn Fn(u64) -> String,
}

/// A row of the picture, with the columns as runs.
struct Line<'a> {
    name: String,
    /// Rate in each run in relation to the usual one.
    shares: Vec<Option<f64>>,
    /// The row, where it is one.
    row: Option<&'a GridRow>,
    /// Runs in which an episode of the row began.
    flags: BTreeSet<usize>,
}

impl GridReport<'_> {
    /// The report for a terminal.
    pub fn text(&self, style: Style) -> String {
        let mut blocks = vec![Block::Title(self.verdict()), Block::Space];
        // The only change is the verdict, while it lasts.
        let is_in_verdict = self.episodes.len() == self.open().count() && self.episodes.len() < 2;
        if !is_in_verdict {
            blocks.push(Block::List(self.changes()));
        }
        let mut rows: Vec<(usize, &GridRow)> = self.grid().rows.iter().enumerate().collect();
        // Those with a change come first.
        rows.sort_by_key(|(place, _)| !self.episodes.iter().any(|one| one.rows.contains(place)));
        let left_out = rows.len().saturating_sub(TEXT_ROWS_MAX);
        let rows = rows.into_iter().map(|(_, row)| row).take(TEXT_ROWS_MAX);
        let rows: Vec<&GridRow> = rows.collect();

        let points = |row: &&GridRow| {
            let values = row.values.iter().rev().take(POINTS).rev();
            values
                .map(|value| match (value, usual(row)) {
                    (Some(value), Some(usual)) => sparkline::level(value / usual, style.glyphs),
                    _ => ' ',
                })
                .collect::<String>()
        };
        let note = (left_out > 0).then(|| format!("{left_out} more rows; -o FILE.html has all"));
        let table = self.table(&rows).text("last runs", points).notes(note);
        blocks.push(Block::Table(table.table()));
        Document { name: NAME, blocks }.text(style)
    }

    /// The report as one HTML file.
    pub fn html(&self) -> String {
        let grid = self.grid();
        let mut blocks = vec![Block::Heat(self.heat())];
        if !self.episodes.is_empty() {
            blocks.push(Block::Heading("Changes".to_owned()));
            blocks.push(Block::List(self.changes()));
        }
        let rows: Vec<&GridRow> = grid.rows.iter().collect();
        let table = Block::Table(self.table(&rows).table());

        let page = RunPage {
            head: self.head(),
            blocks,
            details: vec![Block::Details("All rows".to_owned(), vec![table])],
        };
        page.document(NAME).html()
    }

    fn grid(&self) -> &Grid {
        &self.named.grid
    }

    fn start(&self, at: usize) -> String {
        let starts = &self.grid().starts_unix_ms;
        let text = starts.get(at).map(|start| (self.when)(*start));
        // Seconds say nothing about runs that are minutes apart.
        text.map_or_else(String::new, |text| text.chars().take(16).collect())
    }

    /// A run: its number in a watch or of a fleet, and its time.
    fn run(&self, at: usize) -> String {
        match self.named.first_round {
            Some(first) => format!("round {} ({})", at + first, self.start(at)),
            None => self.start(at),
        }
    }

    fn open(&self) -> impl Iterator<Item = &Episode> {
        self.episodes
            .iter()
            .filter(|episode| episode.ended.is_none())
    }

    /// The newest change that lasts, else the newest of all.
    fn verdict(&self) -> String {
        let others = |count: usize| match count {
            0 | 1 => String::new(),
            count => format!(", and {}", counted(count - 1, "more change")),
        };
        let runs = self.grid().starts_unix_ms.len();
        match (self.open().last(), self.episodes.last()) {
            (Some(open), _) => open.sentence(|at| self.run(at)) + &others(self.open().count()),
            (None, Some(last)) => last.recovery(|at| self.run(at)).unwrap_or_default(),
            (None, None) => {
                let text = format!("no change in {}", counted(runs, "run"));
                if self.longest() < RUNS_MIN {
                    text + &format!("; one shows from {RUNS_MIN} runs on")
                } else {
                    text
                }
            }
        }
    }

    /// Most results of a row.
    fn longest(&self) -> usize {
        let rows = self.grid().rows.iter();
        rows.map(|row| row.values.iter().flatten().count())
            .max()
            .unwrap_or(0)
    }

    /// Every change with its recovery, the newest first.
    fn changes(&self) -> Vec<String> {
        let line = |episode: &Episode| {
            let recovery = episode
                .ended
                .map(|(at, _)| format!("; recovered at {}", self.run(at)));
            episode.sentence(|at| self.run(at)) + &recovery.unwrap_or_default()
        };
        self.episodes.iter().rev().map(line).collect()
    }

    fn head(&self) -> Head {
        let grid = self.grid();
        let hosts = grid.rows.iter().filter(|row| row.key.is_cell());
        let hosts: BTreeSet<&str> = hosts
            .flat_map(|row| [&*row.key.source, &*row.key.sink])
            .collect();
        let title = match hosts.len() {
            0 => counted(grid.rows.len(), "row"),
            count => counted(count, "host"),
        };
        let last = grid.starts_unix_ms.len().saturating_sub(1);
        let changes = counted(self.episodes.len(), "change");
        let badge = match (self.open().next(), self.episodes.is_empty()) {
            (Some(_), _) => Badge::new("worse", Severity::High, changes),
            (None, false) => Badge::new("recovered", Severity::Low, changes),
            (None, true) => Badge::new("steady", Severity::Info, changes),
        };

        let unit = grid.measure.info().unit;
        let newest = |row: &GridRow| row.values.iter().rev().copied().flatten().next();
        let rows = grid.rows.iter();
        let now = rows.filter_map(|row| Some((newest(row)?, self.name(row))));
        let lowest = now.min_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = lowest.map(|(value, name)| Card::new("lowest now", unit.text(value), name));
        let middle = middle(grid.rows.iter().map(newest));
        let middle = middle.map(|value| Card::new("median now", unit.text(value), ""));
        let facts = [
            self.named.name.clone(),
            Some(counted(grid.starts_unix_ms.len(), "run")),
            Some(format!("{} to {}", self.start(0), self.start(last))),
        ];

        Head {
            title,
            facts: facts.into_iter().flatten().collect(),
            verdict: self.verdict(),
            // A label keeps its letters.
            is_name_first: hosts.is_empty() && !self.episodes.is_empty(),
            badge: Some(badge),
            cards: middle.into_iter().chain(lowest).collect(),
            ..Head::default()
        }
    }

    /// `c01 → c03`, with the path and the factor where there are several.
    fn name(&self, row: &GridRow) -> String {
        let key = &row.key;
        match (key.is_cell(), self.grid().has_treatments()) {
            (false, _) => key.source.clone(),
            (true, false) => format!("{} → {}", key.source, key.sink),
            (true, true) => format!("{} → {}, {}", key.source, key.sink, key.treatment),
        }
    }

    fn table<'b>(&self, rows: &'b [&'b GridRow]) -> TableOf<'b, &'b GridRow> {
        let unit = self.grid().measure.info().unit;
        let value = |value: Option<f64>| known(value, |value| unit.text(value));
        Table::of("", "", rows)
            .text("row", |row| self.name(row))
            .number("usual", |row| value(usual(row)))
            .number("lowest", |row| {
                value(row.values.iter().copied().flatten().reduce(f64::min))
            })
            .number("last", |row| value(row.values.last().copied().flatten()))
    }

    /// All rows, or hosts where these are too many.
    fn lines(&self) -> Vec<Line<'_>> {
        let rows = &self.grid().rows;
        let by_host = rows.len() > ROWS_MAX && rows.iter().all(|row| row.key.is_cell());
        let mut places: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
        for (place, row) in rows.iter().enumerate() {
            let names = if by_host {
                vec![(0, row.key.source.clone()), (0, row.key.sink.clone())]
            } else {
                vec![(place, self.name(row))]
            };
            for name in names {
                places.entry(name).or_default().push(place);
            }
        }

        let line = |((_, name), places): ((usize, String), Vec<usize>)| {
            let of_rows: Vec<_> = places.iter().map(|at| shares(&rows[*at])).collect();
            let subject = format!("host {name}");
            let flags = self.episodes.iter().filter(|one| {
                if by_host {
                    one.subject == subject
                } else {
                    one.rows.contains(&places[0])
                }
            });
            Line {
                shares: (0..self.grid().starts_unix_ms.len())
                    .map(|run| middle(of_rows.iter().map(|row| row[run])))
                    .collect(),
                row: (!by_host).then(|| &rows[places[0]]),
                flags: flags.map(|one| one.began).collect(),
                name,
            }
        };
        let most = if by_host { usize::MAX } else { ROWS_MAX };
        places.into_iter().take(most).map(line).collect()
    }

    fn heat(&self) -> HeatMap {
        let lines = self.lines();
        let columns = self.columns();
        let unit = self.grid().measure.info().unit;
        let cell = |line: &Line<'_>, runs: &Vec<usize>| {
            let share = middle(runs.iter().map(|run| line.shares[*run]));
            let percent = known(share, |share| format!("{:.0} %", 100.0 * share));
            let value = line.row;
            let value = value.and_then(|row| middle(runs.iter().map(|run| row.values[*run])));
            let shown = value.map_or(percent, |value| unit.text(value));
            let start = runs
                .first()
                .map_or_else(String::new, |run| self.start(*run));
            // A stretch of time without a run is empty.
            let is_lacking = share.is_none() && !runs.is_empty();
            HeatCell {
                share,
                text: if is_lacking { "–" } else { "" }.to_owned(),
                title: format!("{}, {start}: {shown}", line.name),
                is_framed: runs.iter().any(|run| line.flags.contains(run)),
            }
        };
        let rows = lines.iter().map(|line| HeatRow {
            name: line.name.clone(),
            cells: columns.iter().map(|runs| cell(line, runs)).collect(),
        });
        let by_host = lines.iter().all(|line| line.row.is_none());
        let subject = if by_host {
            "median of its pairs"
        } else {
            "rate"
        };
        let names = columns.iter().map(|runs| {
            runs.first()
                .map_or_else(String::new, |run| self.head_of(*run))
        });

        HeatMap {
            title: "Over time".to_owned(),
            note: format!(
                "full colour: {subject} as usual; pale: slow; –: no result; framed: a change begins"
            ),
            columns: names.collect(),
            rows: rows.collect(),
            frames_best: false,
        }
    }

    /// The day of a run, or its time where all are of two days.
    fn head_of(&self, at: usize) -> String {
        let starts = &self.grid().starts_unix_ms;
        let span = starts
            .last()
            .zip(starts.first())
            .map_or(0, |(last, first)| last - first);
        let part = if span > 2 * DAY_MS { 5..10 } else { 11..16 };
        self.start(at).get(part).unwrap_or_default().to_owned()
    }

    /// Runs of each column: one, or those of a stretch of time.
    fn columns(&self) -> Vec<Vec<usize>> {
        let starts = &self.grid().starts_unix_ms;
        let count = match self.named.first_round {
            Some(_) => starts.len(),
            // Each run is of one label.
            None => self.longest(),
        };
        let of_one = self.named.first_round.is_some() && count <= COLUMNS_MAX;
        let mut columns = vec![Vec::new(); count.clamp(1, COLUMNS_MAX)];
        let first = starts.first().copied().unwrap_or(0);
        let span = starts.last().map_or(0, |last| last.saturating_sub(first)) + 1;
        for (run, start) in starts.iter().enumerate() {
            let by_time = start.saturating_sub(first) as usize * columns.len() / span as usize;
            columns[if of_one { run } else { by_time }].push(run);
        }
        columns
    }
}

/// Median of those that there are.
fn middle(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    median(&values.flatten().collect::<Vec<_>>())
}

/// Median of the runs of a row outside its degradations.
fn usual(row: &GridRow) -> Option<f64> {
    let is_good = |at: &usize| {
        let mut degradations = row.degradations.iter();
        !degradations.any(|degradation| {
            degradation.began <= *at && degradation.ended.is_none_or(|(back, _)| *at < back)
        })
    };
    let good = (0..row.values.len()).filter(is_good);
    middle(good.map(|at| row.values[at]))
}

fn shares(row: &GridRow) -> Vec<Option<f64>> {
    let usual = usual(row).filter(|usual| *usual > 0.0);
    let share = |value: &Option<f64>| Some(value.as_ref()? / usual?);
    row.values.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::fleet::HostId;

    use super::*;
    use crate::conclude::episodes::{Group, episodes};
    use crate::conclude::grid::{CELL_MEASURE, RowKey};

    /// Rows of a number of hosts over runs ten minutes apart; the value of a cell in a run.
    fn grid(hosts: usize, runs: usize, value: impl Fn(usize, usize, usize) -> Option<f64>) -> Grid {
        let cells = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
        let entries = cells.filter(|(a, b)| a != b).flat_map(|(a, b)| {
            let value = &value;
            (0..runs).map(move |run| {
                let key = RowKey {
                    source: format!("h{a}"),
                    sink: format!("h{b}"),
                    treatment: "lab".to_owned(),
                };
                (run, key, value(run, a, b))
            })
        });
        let starts = (0..runs as u64).map(|run| run * 600_000).collect();
        Grid::new(CELL_MEASURE, starts, entries.collect())
    }

    /// All cells of the first host that got worse.
    fn first_host(
        cells: &[crate::conclude::episodes::CellRatio<'_>],
        _: &BTreeMap<HostId, String>,
    ) -> Vec<Group> {
        let of_host = (0..cells.len()).filter(|at| cells[*at].key.pair().0 == "h0");
        vec![Group {
            subject: "host h0".to_owned(),
            host: Some("h0".to_owned()),
            finding: Some("FLT-01".to_owned()),
            members: of_host.collect(),
        }]
    }

    fn report(grid: Grid, show: impl Fn(&GridReport<'_>) -> String) -> String {
        let episodes = episodes(&grid, first_host);
        let named = NamedGrid {
            grid,
            name: Some("lab".to_owned()),
            first_round: Some(5),
        };
        let when = |ms: u64| {
            format!(
                "2026-11-{:02} {:02}:{:02}:00",
                1 + ms / DAY_MS,
                ms / 3_600_000 % 24,
                ms / 60_000 % 60
            )
        };
        show(&GridReport {
            named: &named,
            episodes: &episodes,
            when: &when,
        })
    }

    fn slow_host(run: usize, a: usize, b: usize) -> Option<f64> {
        let noise = 1.0 + ((7 * a + 5 * b + 3 * run) % 11) as f64 / 1000.0;
        let is_slow = (12..18).contains(&run) && (a == 0 || b == 0);
        Some(if is_slow { 94e6 } else { 940e6 } * noise)
    }

    #[test]
    fn text_has_the_change_first_and_then_the_rows_that_changed() {
        let text = report(
            grid(3, 16, |run, a, b| slow_host(run + 1, a, b)),
            |report| report.text(Style::PLAIN),
        );
        let first = "host h0: 2 of 2 pairs fell to 94.5 Mbit/s at round 16 (2026-11-01 01:50)";
        assert!(text.starts_with(first), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("->")).collect();
        assert_eq!(rows.len(), 6, "{text}");
        assert!(
            rows[0].starts_with("  h0 -> h1") && rows[5].starts_with("  h2 -> h1"),
            "{text}"
        );
        assert!(rows[0].ends_with("###########....."), "{text}");

        let steady = report(grid(3, 16, |_, a, b| slow_host(0, a, b)), |report| {
            report.text(Style::PLAIN)
        });
        assert!(steady.starts_with("no change in 16 runs"), "{steady}");
        let few = report(grid(3, 4, slow_host), |report| report.text(Style::PLAIN));
        assert!(
            few.starts_with("no change in 4 runs; one shows from 15 runs on"),
            "{few}"
        );
    }

    #[test]
    fn page_has_a_cell_for_each_run_a_frame_where_the_change_begins_and_no_value_where_none_is() {
        let absent =
            |run: usize, a: usize, b: usize| slow_host(run, a, b).filter(|_| run != 3 || a != 1);
        let page = report(grid(3, 24, absent), |report| report.html());
        // Each drawing is there for a page and for a narrow screen.
        assert_eq!(
            page.matches("class=\"cell framed\"").count(),
            2 * 4,
            "{page}"
        );
        assert_eq!(page.matches("class=\"cell none\"").count(), 2 * 2, "{page}");
        assert_eq!(
            page.matches("<rect class=\"cell").count(),
            2 * 6 * 24,
            "{page}"
        );
        assert!(page.contains("recovered at round 23"), "{page}");
    }

    #[test]
    fn many_pairs_are_shown_by_host_and_many_runs_by_time() {
        let page = report(grid(9, 80, slow_host), |report| report.html());
        assert_eq!(
            page.matches("<rect class=\"cell").count(),
            2 * 9 * COLUMNS_MAX,
            "{page}"
        );
        assert_eq!(page.matches("class=\"cell framed\"").count(), 2, "{page}");
    }
}
