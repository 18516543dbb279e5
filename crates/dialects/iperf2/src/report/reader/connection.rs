//! The rows of one connection.

use linerate_model::Flow;

use super::row::{End, Row};

/// The rows of one transfer id between two ends: a stream in one direction, or in both on one
/// connection.
pub(super) struct Connection {
    pub id: i64,
    /// Source and destination of its first row.
    pub ends: [End; 2],
    /// The rows in this order of the ends, and those in the other one.
    pub flows: [FlowRows; 2],
    /// The server's report as printed by releases before 2.1.
    pub receiver_report: Option<Row>,
    pub text: String,
    /// Places of its first and of its last row among all rows.
    pub places: (usize, usize),
    /// Time stamp of the row that was read last.
    stamp_ms: Option<u64>,
}

/// The rows of one direction of a connection.
#[derive(Default)]
pub(super) struct FlowRows {
    pub intervals: Vec<Row>,
    pub total: Option<Row>,
}

impl FlowRows {
    pub(super) fn is_empty(&self) -> bool {
        self.intervals.is_empty() && self.total.is_none()
    }

    fn is_closed(&self) -> bool {
        self.is_empty() || self.total.is_some()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Row> {
        self.intervals.iter().chain(&self.total)
    }

    /// The only row, where it begins at 0: the total of a connection without intervals.
    pub(super) fn only_row(&self) -> Option<&Row> {
        match (self.intervals.as_slice(), &self.total) {
            ([row], None) if row.start_ns == 0 => Some(row),
            _ => None,
        }
    }
}

fn is_same(a: &End, b: &End) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// True if a row from 0 on ends no earlier than the interval before it.
pub(super) fn is_total(row: &Row, last: &Row) -> bool {
    row.start_ns == 0 && row.end_ns >= last.end_ns
}

impl Connection {
    pub(super) fn new(row: &Row, place: usize) -> Self {
        Self {
            id: row.id,
            ends: [row.source.clone(), row.destination.clone()],
            flows: Default::default(),
            receiver_report: None,
            text: String::new(),
            places: (place, place),
            stamp_ms: row.stamp_ms,
        }
    }

    fn order(&self, row: &Row) -> Option<usize> {
        let [a, b] = &self.ends;
        let is_forward = is_same(&row.source, a) && is_same(&row.destination, b);
        let is_backward = is_same(&row.source, b) && is_same(&row.destination, a);

        if is_forward {
            Some(0)
        } else {
            is_backward.then_some(1)
        }
    }

    /// True if a row belongs to this connection.
    pub(super) fn takes(&self, row: &Row) -> bool {
        let Some(order) = self.order(row).filter(|_| self.id == row.id) else {
            return false;
        };
        if !self.is_near(row) {
            return false;
        }

        let flow = &self.flows[order];
        let is_next = flow
            .intervals
            .last()
            .is_none_or(|last| row.start_ns >= last.end_ns || is_total(row, last));

        // The only row of a test that is there twice.
        let is_repeated = matches!(flow.intervals.as_slice(), [only] if only.text == row.text);
        // A row that lost its last columns.
        let is_shorter = flow.all().any(|known| known.count > row.count);

        flow.total.is_none() && is_next && !is_repeated && !is_shorter
    }

    /// True if both ends of a row are known, or it was written at the time of the test.
    fn is_near(&self, row: &Row) -> bool {
        let is_known = self
            .ends
            .iter()
            .chain([&row.source, &row.destination])
            .all(Option::is_some);
        // Each of the two stamps may be rounded to a second.
        let longest_ms = row.end_ns.saturating_sub(row.start_ns) / 1_000_000 + 2000;
        let apart_ms = row
            .stamp_ms
            .zip(self.stamp_ms)
            .map(|(row, test)| row.abs_diff(test));

        is_known || apart_ms.is_some_and(|ms| ms <= longest_ms)
    }

    pub(super) fn push(&mut self, row: Row, place: usize) {
        self.stamp_ms = row.stamp_ms;
        self.places.1 = place;
        let order = self.order(&row).unwrap_or(0);
        let [a, b] = &mut self.ends;
        let (source, destination) = if order == 0 { (a, b) } else { (b, a) };
        *source = source.take().or_else(|| row.source.clone());
        *destination = destination.take().or_else(|| row.destination.clone());
        self.text.push_str(&row.text);
        self.text.push('\n');

        let flow = &mut self.flows[order];
        let is_total = flow
            .intervals
            .last()
            .is_some_and(|last| is_total(&row, last));
        if is_total {
            flow.total = Some(row);
        } else {
            flow.intervals.push(row);
        }
    }

    /// Takes the server's report that releases before 2.1 print at the end of a UDP test, with the
    /// ends exchanged.
    pub(super) fn take_receiver_report(&mut self, row: &Row) -> bool {
        // Releases before 2.1 print the server's report with the ends exchanged, over the whole
        // range and with 14 columns.
        let is_reply =
            self.id == row.id && self.order(row) == Some(1) && row.count == 14 && row.start_ns == 0;
        let is_sent = self.flows[1].is_empty() && self.flows[0].all().all(|sent| sent.count == 9);
        let is_last = self.flows[0]
            .all()
            .last()
            .is_some_and(|sent| row.end_ns + 1_000_000_000 >= sent.end_ns);
        let takes = is_reply && is_sent && is_last && self.receiver_report.is_none();
        if takes {
            self.text.push_str(&row.text);
            self.text.push('\n');
            self.receiver_report = Some(row.clone());
        }

        takes
    }

    /// Every direction has its total.
    pub(super) fn is_closed(&self) -> bool {
        self.flows.iter().all(FlowRows::is_closed)
    }

    /// The index of the client's end: the server has the lower port; the other one is the system's
    /// choice.
    pub(super) fn client(&self) -> usize {
        match &self.ends {
            // The port of a client is ephemeral, and mostly higher than that of its server.
            [Some((_, a)), Some((_, b))] => usize::from(a < b),
            [None, _] => 0,
            [Some(_), None] => 1,
        }
    }

    /// The rows of each direction that has some, that of the client's data first. `client` is the
    /// index of the client's end.
    pub(super) fn parts(&self, client: usize) -> Vec<(Flow, &FlowRows)> {
        let parts = [
            (Flow::Forward, &self.flows[client]),
            (Flow::Reverse, &self.flows[1 - client]),
        ];
        parts
            .into_iter()
            .filter(|(_, rows)| !rows.is_empty())
            .collect()
    }

    /// When it began, in ms since 1970. 2.1 stamps a row with the end of its interval, 2.2 a total
    /// alone.
    pub(super) fn started_unix_ms(&self) -> Option<u64> {
        let (_, rows) = *self.parts(self.client()).first()?;
        let first = rows.intervals.first()?;
        let last = rows.intervals.last()?;
        let is_late = |total: &&Row| total.stamp_ms < last.stamp_ms;
        let row = rows.total.as_ref().filter(is_late).unwrap_or(first);

        row.stamp_ms?.checked_sub(row.end_ns / 1_000_000)
    }

    /// End of its last row, counted from its begin.
    pub(super) fn end_ns(&self) -> u64 {
        self.flows
            .iter()
            .flat_map(FlowRows::all)
            .map(|row| row.end_ns)
            .max()
            .unwrap_or(0)
    }
}
