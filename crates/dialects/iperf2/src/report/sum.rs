//! The sum of the streams of a test.

use std::collections::BTreeSet;

use linerate_model::metrics::{Distribution, ReadCounts, WriteCounts};
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::workload::Pairing;
use linerate_model::{StreamRole, UdpInterval};

use super::amount::{bytes, percent};
use super::connection::implies_more;
use super::options::Options;
use super::row::{Row, opening};
use super::stream_columns::{PLAIN_HEADER, datagram_rate, reads};

/// A row of the test, with the number of its stream.
pub(super) type Numbered<'a> = (u32, Row<'a>);

/// Several rows added up.
#[derive(Default)]
pub(super) struct Sum {
    streams: usize,
    start_s: f64,
    end_s: f64,
    bytes: u64,
    writes: WriteCounts,
    retransmits: u64,
    reads: ReadCounts,
    lost: i64,
    datagrams: u64,
    sent_datagrams: u64,
    out_of_order: u64,
    datagrams_per_s: f64,
    received: u64,
    delay: Distribution,
    load_bytes: f64,
    has_senders: bool,
    has_receivers: bool,
}

impl Sum {
    /// Adds up rows of the same boundaries. The sum ends with the last of them.
    pub(super) fn of(rows: &[Numbered<'_>]) -> Self {
        let numbers: BTreeSet<u32> = rows.iter().map(|(number, _)| *number).collect();
        // All rows of an interval begin at the same boundary.
        let start_s = rows.first().map_or(0.0, |(_, row)| row.start_s);
        let mut sum = Self {
            streams: numbers.len(),
            start_s,
            ..Self::default()
        };
        rows.iter().for_each(|(_, row)| sum.add(row));

        sum
    }

    fn add(&mut self, row: &Row<'_>) {
        // Streams end a little apart; the last one ends the test.
        self.end_s = self.end_s.max(row.end_s);
        self.bytes = self.bytes.saturating_add(row.bytes);
        let writes = row.more.writes.unwrap_or_default();
        self.writes.calls = self.writes.calls.saturating_add(writes.calls);
        self.writes.errors = self.writes.errors.saturating_add(writes.errors);

        let tcp = row.tcp.or(row.more.tcp);
        self.retransmits = self
            .retransmits
            .saturating_add(tcp.map_or(0, |tcp| tcp.retransmits));
        let reads = row.more.reads.unwrap_or_default();
        self.reads.calls = self.reads.calls.saturating_add(reads.calls);

        for (sum, bin) in self.reads.bins.iter_mut().zip(reads.bins) {
            *sum = sum.saturating_add(bin);
        }

        let udp = row.udp.unwrap_or_default();
        self.lost = self.lost.saturating_add(udp.lost);
        self.datagrams = self.datagrams.saturating_add(udp.packets);
        self.out_of_order = self.out_of_order.saturating_add(udp.out_of_order);
        self.datagrams_per_s += datagram_rate(row);
        self.received = self
            .received
            .saturating_add(row.more.datagrams_received.unwrap_or(0));

        if let Some(delay) = row.more.one_way {
            self.add_delay(&delay);
            // Little's law: what is in the path is the rate times the delay.
            self.load_bytes += row.bytes_per_s() * delay.mean;
        }

        if row.role == StreamRole::Sender {
            self.has_senders = true;
            self.sent_datagrams = self.sent_datagrams.saturating_add(udp.packets);
        } else {
            self.has_receivers = true;
        }
    }

    fn add_delay(&mut self, delay: &Distribution) {
        let mine = self.delay.count as f64;
        let theirs = delay.count as f64;
        if self.delay.count == 0 {
            self.delay = *delay;
        } else if delay.count > 0 {
            // Means weigh by their counts, or a short stream would count like a long one.
            self.delay.mean = (self.delay.mean * mine + delay.mean * theirs) / (mine + theirs);
            self.delay.min = self.delay.min.min(delay.min);
            self.delay.max = self.delay.max.max(delay.max);
            self.delay.count = self.delay.count.saturating_add(delay.count);
        }
    }

    /// The amounts as a row that is otherwise that of the first stream.
    pub(super) fn row<'a>(&self, first: Row<'a>) -> Row<'a> {
        let packets = self.datagrams;
        let lost = self.lost;
        let out_of_order = self.out_of_order;
        let udp = first
            .udp
            .map(|_| UdpInterval::new(packets, lost, out_of_order, 0.0));
        Row {
            bytes: self.bytes,
            end_s: self.end_s,
            udp,
            ..first
        }
    }

    /// Times, amount and rate.
    pub(super) fn opening(&self, options: &Options) -> String {
        opening(options, self.start_s, self.end_s, self.bytes)
    }

    /// Streams in it; both directions of a connection are one.
    pub(super) fn streams(&self) -> usize {
        self.streams
    }

    /// The beginning of the line.
    pub(super) fn label(&self, options: &Options, test: &TestSpec) -> String {
        // Both directions are one flow, so a count of streams would mislead.
        if test.transport == Transport::Udp && test.workload.pairing == Pairing::Shared {
            return "[SUM] ".to_owned();
        }

        let more = options.enhanced || (!options.is_client() && implies_more(test));
        let counts = match (options.is_new(), options.sum_only) {
            (false, sum_only) => sum_only,
            (true, true) => !options.is_client() || more,
            (true, false) => more,
        };
        if counts {
            format!("[SUM-{}] ", self.streams)
        } else {
            "[SUM] ".to_owned()
        }
    }

    /// Header of these columns, if they have one of their own, and the line behind its label.
    pub(super) fn line(&self, options: &Options, test: &TestSpec) -> (Option<String>, String) {
        let opening = self.opening(options);
        let (header, columns) = if test.transport == Transport::Udp {
            let (header, columns) = self.datagram_columns(options, test);
            (Some(header), columns)
        } else {
            self.stream_columns(options, test)
        };
        (header, format!("{opening}{columns}"))
    }

    /// `[SUM-2] Sent 366 datagrams`, of senders.
    pub(super) fn sent(&self, test: &TestSpec) -> Option<String> {
        if test.transport != Transport::Udp || !self.has_senders {
            return None;
        }

        match (test.workload.pairing, self.has_receivers) {
            // Both directions of a flow count, and what both have moved.
            (Pairing::Shared, _) => Some(format!(
                "[SUM-{}] Sent {} datagrams",
                self.streams.saturating_mul(2),
                self.datagrams
            )),
            (_, false) => Some(format!(
                "[SUM-{}] Sent {} datagrams",
                self.streams, self.sent_datagrams
            )),
            (_, true) => None,
        }
    }

    /// Late datagrams of all streams.
    pub(super) fn out_of_order(&self, options: &Options) -> Option<String> {
        super::stream_columns::out_of_order(options, self.start_s, self.end_s, self.out_of_order)
    }

    /// 2.1.8 shows sums of streams under the header of the streams.
    fn stream_columns(&self, options: &Options, test: &TestSpec) -> (Option<String>, String) {
        let own = |columns: &str| options.is_new().then(|| header(options, columns));
        let writes = format!(
            "  {}/{}{:10}",
            self.writes.calls, self.writes.errors, self.retransmits
        );
        let reads = reads(Some(self.reads));
        let has_delays = test.workload.trip_times;

        match (self.has_senders, self.has_receivers) {
            _ if options.sum_only => (Some(plain_header(options)), String::new()),
            (true, false) if options.enhanced => {
                (own("Transfer    Bandwidth       Write/Err  Rtry"), writes)
            }
            (false, true) if has_delays && options.is_new() => (
                own("Transfer    Bandwidth  InP  Reads=Dist"),
                format!(" {}  {reads}", bytes(self.load_bytes)),
            ),
            (false, true) if options.enhanced => (
                own("Transfer    Bandwidth       Reads=Dist"),
                format!("  {reads}"),
            ),
            _ => (Some(PLAIN_HEADER.to_owned()), String::new()),
        }
    }

    /// Columns of flows on which both ends send.
    pub(super) fn both_ways(&self) -> (String, String) {
        let seconds = self.end_s - self.start_s;
        let per_s = if seconds > 0.0 {
            self.datagrams as f64 / seconds
        } else {
            0.0
        };
        (
            format!("{PLAIN_HEADER}    Datagrams   PPS"),
            format!(" {} {per_s:7.0} pps", self.datagrams),
        )
    }

    fn datagram_columns(&self, options: &Options, test: &TestSpec) -> (String, String) {
        let lost = self.lost;
        let total = self.datagrams;
        let loss = format!("{lost}/{total} ({}%)", percent(lost, total));
        let rate = self.datagrams_per_s;
        let has_delays = test.workload.trip_times;

        let delays = format!(
            "{:.3}/{:.3}/{:.3}",
            self.delay.mean * 1e3,
            self.delay.min * 1e3,
            self.delay.max * 1e3
        );
        let more = options.enhanced || has_delays;

        match (self.has_receivers, options.is_new()) {
            _ if test.workload.pairing == Pairing::Shared => self.both_ways(),
            _ if options.sum_only => (plain_header(options), String::new()),
            (true, _) if !more => (PLAIN_HEADER.to_owned(), format!("   {loss}")),
            (false, _) if !options.enhanced => (PLAIN_HEADER.to_owned(), String::new()),
            (true, true) if has_delays => (
                header(
                    options,
                    "Transfer     Bandwidth      Lost/Total  Latency avg/min/max  Rx/inP PPS",
                ),
                format!(
                    "  {loss}  {delays}  {}/{:.0}        {rate:.0} pps",
                    self.received,
                    rate * self.delay.mean
                ),
            ),
            (true, true) => (
                "[SUM-cnt] Interval     Transfer     Bandwidth       Lost/Total  Latency \
                 avg/min/max  PPS"
                    .to_owned(),
                format!("  {loss}  {delays}  {rate:.0} pps"),
            ),
            // Receivers share the header of senders in 2.1.8.
            (true, false) => (
                header(options, "Transfer     Bandwidth      Write/Err  PPS"),
                format!("  {lost}/{total} {rate:8.0} pps"),
            ),
            (false, _) => (
                header(options, "Transfer     Bandwidth      Write/Err  PPS"),
                format!(
                    "  {}/{} {rate:8.0} pps",
                    self.writes.calls, self.writes.errors
                ),
            ),
        }
    }
}

/// 2.1.8 shows sums under the header of streams, 2.2.1 under one of their own.
fn header(options: &Options, columns: &str) -> String {
    if options.is_new() {
        format!("[SUM-cnt] Interval        {columns}")
    } else {
        format!("[ ID] Interval            {columns}")
    }
}

fn plain_header(options: &Options) -> String {
    if options.is_new() && options.is_client() && !options.enhanced {
        PLAIN_HEADER.to_owned()
    } else {
        "[SUM-cnt] Interval       Transfer     Bandwidth".to_owned()
    }
}
