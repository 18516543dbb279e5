//! The comma-separated values of iperf 2 (`-y C`): rows, and the tests they belong to.
//!
//! Rows of one transfer id and one pair of addresses and ports are a test. The last row from 0 on is its total.

mod row;
mod test;

pub(super) use test::CsvTest;

use row::{Columns, Row};

/// Tests without a total to which a row can still belong.
const OPEN_MAX: usize = 1024;

/// Rows in the order of the text.
pub(super) struct Rows<'a> {
    utc_offset_s: &'a dyn Fn(i64) -> i64,
    columns: Columns,
    /// Columns of the row that was read last.
    count: usize,
    tests: Vec<CsvTest>,
    /// Positions of tests without a total.
    open: Vec<usize>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(utc_offset_s: &'a dyn Fn(i64) -> i64) -> Self {
        Self { utc_offset_s, columns: Columns::default(), count: 0, tests: Vec::new(), open: Vec::new() }
    }

    /// Reads a line; returns whether it is one of iperf 2. The last line of a text can be cut off.
    pub(super) fn line(&mut self, line: &str, is_whole: bool) -> bool {
        if self.columns.header(line) {
            return true;
        }
        let Some(row) = Row::parse(line, &self.columns, self.utc_offset_s) else { return false };
        // Without a row before it, the columns of a line that is cut off are not known.
        if row.is_cut(is_whole) || (!is_whole && row.count != self.count) {
            return false;
        }
        self.count = row.count;
        // The sum of all streams is that of its rows.
        if row.id >= 0 {
            self.add(row);
        }
        true
    }

    fn add(&mut self, row: Row) {
        if self.tests.last_mut().is_some_and(|test| test.take_receiver_report(&row)) {
            return;
        }
        let found = self.open.iter().rposition(|at| self.tests[*at].takes(&row));
        let open = found.unwrap_or_else(|| {
            if self.open.len() == OPEN_MAX {
                self.open.remove(0);
            }
            self.open.push(self.tests.len());
            self.tests.push(CsvTest::new(&row));
            self.open.len() - 1
        });
        let test = &mut self.tests[self.open[open]];
        test.push(row);
        if test.is_closed() {
            self.open.remove(open);
        }
    }

    pub(super) fn take_tests(&mut self) -> Vec<CsvTest> {
        self.open.clear();
        std::mem::take(&mut self.tests)
    }
}
