//! The comma-separated values of iperf 2 (`-y C`): rows, and the tests they belong to.
//!
//! Rows of one transfer id and one pair of addresses and ports are a connection, and its last row
//! from 0 on is its total. Connections between the same hosts that begin together are the streams
//! of one test.

mod connection;
mod row;
mod run;

use connection::Connection;
use row::{Columns, Row};
pub use run::CsvRun;

/// Connections without a total to which a row can still belong.
const OPEN_MAX: usize = 1024;

/// Rows in the order of the text.
pub struct Rows<'a> {
    utc_offset_s: &'a dyn Fn(i64) -> i64,
    columns: Columns,
    /// Columns of the row that was read last.
    count: usize,
    streams: Pool,
    /// Rows of all streams together.
    sums: Pool,
    /// Rows that were read.
    read: usize,
}

/// Connections, and which of them have no total yet.
#[derive(Default)]
struct Pool {
    connections: Vec<Connection>,
    /// Their positions.
    open: Vec<usize>,
}

impl<'a> Rows<'a> {
    /// No rows. `utc_offset_s` is the offset of local time from UTC at a local time in seconds
    /// since 1970, for times without one.
    pub fn new(utc_offset_s: &'a dyn Fn(i64) -> i64) -> Self {
        Self {
            utc_offset_s,
            columns: Columns::default(),
            count: 0,
            streams: Pool::default(),
            sums: Pool::default(),
            read: 0,
        }
    }

    /// Reads a line; returns whether it is one of iperf 2. The last line of a text can be cut off.
    pub fn line(&mut self, line: &str, is_whole: bool) -> bool {
        if self.columns.header(line) {
            return true;
        }

        let Some(row) = Row::parse(line, &self.columns, self.utc_offset_s) else {
            return false;
        };
        // Without a row before it, the columns of a line that is cut off are not known.
        if row.is_cut(is_whole) || (!is_whole && row.count != self.count) {
            return false;
        }

        self.count = row.count;
        self.read += 1;

        let pool = if row.id >= 0 {
            &mut self.streams
        } else {
            &mut self.sums
        };
        pool.add(row, self.read);
        true
    }

    /// The tests of the rows so far.
    pub fn take_runs(&mut self) -> Vec<CsvRun> {
        let [streams, sums] = [&mut self.streams, &mut self.sums].map(std::mem::take);
        run::runs(streams.connections, sums.connections)
    }
}

impl Pool {
    fn add(&mut self, row: Row, place: usize) {
        if self
            .connections
            .last_mut()
            .is_some_and(|connection| connection.take_receiver_report(&row))
        {
            return;
        }

        let found = self
            .open
            .iter()
            // The newest one: a server uses transfer ids again.
            .rposition(|at| self.connections[*at].takes(&row));
        let open = found.unwrap_or_else(|| {
            if self.open.len() == OPEN_MAX {
                // The oldest connection without a total makes room.
                self.open.remove(0);
            }

            self.open.push(self.connections.len());
            self.connections.push(Connection::new(&row, place));
            self.open.len() - 1
        });

        let connection = &mut self.connections[self.open[open]];
        connection.push(row, place);

        if connection.is_closed() {
            self.open.remove(open);
        }
    }
}
