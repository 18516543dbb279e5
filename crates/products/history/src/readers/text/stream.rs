//! One stream of a test: its ends and its rows.

use std::net::IpAddr;

use linerate_model::Flow;

use super::row::{Counted, Row};

/// Intervals of one stream.
const INTERVALS_MAX: usize = 1 << 20;

/// One stream in one direction, or the sum of all.
#[derive(Debug, Clone, Default)]
pub(super) struct TextStream {
    pub local: Option<(IpAddr, u16)>,
    pub remote: Option<(IpAddr, u16)>,
    pub mss_bytes: Option<u32>,
    /// Round trip of the handshake.
    pub initial_rtt_us: Option<u32>,
    /// When it was opened, as the line has it.
    pub opened: Option<String>,
    /// `(reverse)` of iperf 2.
    pub is_reverse: bool,
    /// The direction, where a line names it.
    pub flow: Option<Flow>,
    pub intervals: Vec<Row>,
    /// The total without a mark, of iperf 2.
    pub total: Option<Row>,
    pub sender: Option<Row>,
    pub receiver: Option<Row>,
    /// `Sent 183 datagrams`
    pub sent_datagrams: Option<u64>,
    /// The next row is that of the server.
    pub is_server_report: bool,
}

impl TextStream {
    /// Reads
    /// `local 192.0.2.1%eth0 port 39852 connected with 192.0.2.2 port 23080 (icwnd/mss/irtt=14/1448/43)`.
    pub(super) fn opened(rest: &str) -> Option<Self> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [
            "local",
            local,
            "port",
            local_port,
            "connected",
            "to" | "with",
            remote,
            "port",
            remote_port,
            more @ ..,
        ] = words.as_slice()
        else {
            return None;
        };

        let end = |host: &str, port: &str| {
            // The zone of a link-local address has a meaning on its own host alone (RFC 4007,
            // section 6).
            let host = host.split('%').next().and_then(|host| host.parse().ok())?;
            Some((host, port.parse().ok()?))
        };
        let handshake = more
            .iter()
            .find_map(|word| word.strip_prefix("(icwnd/mss/irtt=")?.strip_suffix(')'));
        let mut numbers = handshake
            .into_iter()
            .flat_map(|text| text.split('/'))
            .map(|number| number.parse::<u32>().ok());
        let (_, mss, rtt) = (
            numbers.next(),
            numbers.next().flatten(),
            numbers.next().flatten(),
        );

        let opened = rest.split_once(" on ").map(|(_, time)| time.to_owned());

        Some(Self {
            local: end(local, local_port),
            remote: end(remote, remote_port),
            mss_bytes: mss.filter(|mss| *mss > 0),
            initial_rtt_us: rtt.filter(|us| *us > 0),
            opened,
            is_reverse: more.contains(&"(reverse)"),
            ..Self::default()
        })
    }

    /// The other direction of its connection.
    pub(super) fn back(&self) -> Self {
        Self {
            local: self.local,
            remote: self.remote,
            mss_bytes: self.mss_bytes,
            initial_rtt_us: self.initial_rtt_us,
            flow: Some(Flow::Reverse),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, row: Row) {
        if std::mem::take(&mut self.is_server_report) {
            // The row after `Server Report` is the one that the server counted.
            self.receiver = Some(row);
            return;
        }

        match row.counted {
            Some(Counted::Sender) => self.sender = Some(row),
            Some(Counted::Receiver) => self.receiver = Some(row),
            // iperf 2 marks its total with nothing but its range.
            None if self
                .intervals
                .last()
                .is_some_and(|last| is_total(&row, last)) =>
            {
                self.total = Some(row);
            }
            None if self.intervals.len() < INTERVALS_MAX => self.intervals.push(row),
            None => {}
        }
    }

    /// The total that this end printed without a mark; without intervals that is its only row.
    pub(super) fn unmarked_total(&self) -> Option<&Row> {
        let only = match self.intervals.as_slice() {
            [row] if row.start_s == 0.0 && !row.is_omitted => Some(row),
            _ => None,
        };
        let is_marked =
            self.sender.is_some() || self.receiver.is_some() && self.sent_datagrams.is_none();
        self.total.as_ref().or(only.filter(|_| !is_marked))
    }

    pub(super) fn has_rows(&self) -> bool {
        !self.intervals.is_empty() || self.has_totals()
    }

    pub(super) fn has_totals(&self) -> bool {
        self.total.is_some() || self.sender.is_some() || self.receiver.is_some()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.intervals
            .iter()
            .chain(&self.total)
            .chain(&self.sender)
            .chain(&self.receiver)
    }
}

/// True if a row from 0 on covers all intervals before it. The warm-up of iperf3 begins at 0, too.
fn is_total(row: &Row, last: &Row) -> bool {
    row.start_s == 0.0 && row.end_s >= last.end_s && !row.is_omitted && !last.is_omitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_releases_name_both_ends() {
        let rows = [
            (
                "local 192.0.2.2 port 5201 connected to 192.0.2.1 port 38452",
                None,
                false,
            ),
            (
                "local 192.0.2.1%eth0 port 1 connected with 192.0.2.2 port 2 (reverse) \
                 (icwnd/mss/irtt=14/1448/43) (ct=0.1 ms)",
                Some((1448, 43)),
                true,
            ),
            (
                "local fd77::1 port 39104 connected with fd77::2 port 5001",
                None,
                false,
            ),
        ];
        for (line, handshake, is_reverse) in rows {
            let stream = TextStream::opened(line).unwrap_or_else(|| panic!("{line}"));
            assert!(stream.local.is_some() && stream.remote.is_some(), "{line}");
            assert_eq!(
                (
                    stream.mss_bytes.zip(stream.initial_rtt_us),
                    stream.is_reverse
                ),
                (handshake, is_reverse)
            );
        }

        assert!(
            TextStream::opened("local").is_none()
                && TextStream::opened("Sent 183 datagrams").is_none()
        );
    }
}
