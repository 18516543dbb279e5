//! One line of numbers of one stream: of an interval, of the whole test, or of the peer's report.

use std::sync::LazyLock;
use std::time::Duration;

use linerate_model::metrics::{Histogram, HistogramKind, StreamMetrics};
use linerate_model::spec::TestSpec;
use linerate_model::units::{ns_to_s, rate_bps};
use linerate_model::workload::Pairing;
use linerate_model::{
    Direction, EndpointTotals, Flow, IntervalReport, StreamInterval, StreamRole, StreamSummary,
    TcpInterval, UdpInterval,
};

use super::amount::{rate, transfer};
use super::options::Options;

/// The facts of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// Role of this end on the stream.
    pub role: StreamRole,
    /// Start in s.
    pub start_s: f64,
    /// End in s.
    pub end_s: f64,
    /// Payload bytes.
    pub bytes: u64,
    /// TCP facts of a sender.
    pub tcp: Option<TcpInterval>,
    /// UDP facts.
    pub udp: Option<UdpInterval>,
    /// Everything else.
    pub more: &'a StreamMetrics,
    /// The whole test.
    pub is_total: bool,
}

/// Metrics of a stream that has none.
static NONE: LazyLock<StreamMetrics> = LazyLock::new(StreamMetrics::default);

impl<'a> Row<'a> {
    pub(super) fn of_interval(interval: &'a StreamInterval) -> Self {
        Self {
            role: interval.role,
            start_s: ns_to_s(interval.start_ns),
            end_s: ns_to_s(interval.end_ns),
            bytes: interval.bytes,
            tcp: interval.tcp,
            udp: interval.udp,
            // Columns are printed with zeros where the engine measured nothing.
            more: interval.metrics.as_deref().unwrap_or(&NONE),
            is_total: false,
        }
    }

    /// The whole test as this end measured it; `None` where it measured nothing.
    pub(super) fn of_total(stream: &'a StreamSummary) -> Option<Self> {
        let metrics = stream.local_metrics.as_deref();
        Some(Self::of_totals(stream.role, stream.local()?, metrics))
    }

    /// The whole test as one end measured it.
    pub(super) fn of_totals(
        role: StreamRole,
        totals: &EndpointTotals,
        metrics: Option<&'a StreamMetrics>,
    ) -> Self {
        let more = metrics.unwrap_or(&NONE);
        Self {
            role,
            start_s: 0.0,
            end_s: totals.seconds(),
            bytes: totals.bytes,
            tcp: more.tcp,
            udp: totals.udp.map(|udp| {
                UdpInterval::new(
                    udp.packets,
                    // Counters of a peer may be anything.
                    i64::try_from(udp.lost).unwrap_or(i64::MAX),
                    udp.out_of_order,
                    udp.jitter_s,
                )
            }),
            more,
            is_total: true,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }

    pub(super) fn bits_per_s(&self) -> f64 {
        rate_bps(self.bytes, self.seconds())
    }

    pub(super) fn bytes_per_s(&self) -> f64 {
        self.bits_per_s() / 8.0
    }

    /// Start of every line after its label.
    pub(super) fn opening(&self, options: &Options) -> String {
        opening(options, self.start_s, self.end_s, self.bytes)
    }
}

/// The rows of an interval that are shown: none without a grid of intervals, none of less than a
/// quarter of the grid, and no last one of a sender of datagrams.
pub(super) fn shown(
    report: &IntervalReport,
    grid: Option<Duration>,
) -> impl Iterator<Item = &StreamInterval> {
    let shortest_s = grid.map_or(f64::INFINITY, |grid| grid.as_secs_f64() / 4.0);
    report.streams.iter().filter(move |row| {
        let ends_datagrams = report.last && row.udp.is_some() && row.role == StreamRole::Sender;
        row.seconds() >= shortest_s && !ends_datagrams
    })
}

/// Times, amount and rate of a row or a sum.
pub(super) fn opening(options: &Options, start_s: f64, end_s: f64, bytes: u64) -> String {
    let times = times(start_s, end_s, options);
    let amount = transfer(options.units, bytes);
    format!(
        "{times} sec  {amount}s  {}s/sec",
        rate(options.units, rate_bps(bytes, end_s - start_s))
    )
}

/// `0.0000-1.0000`.
pub(super) fn times(start_s: f64, end_s: f64, options: &Options) -> String {
    let decimals = if options.is_new() { 2 } else { 4 };
    format!("{start_s:.decimals$}-{end_s:.decimals$}")
}

/// `[  1] `, with an asterisk for data that run against the connection, and the permit key if there
/// is one.
pub(super) fn label(number: u32, is_reversed: bool, key: Option<&str>) -> String {
    match (key, is_reversed) {
        (Some(key), _) => format!("[{key}({number})] "),
        (None, true) => format!("[ *{number}] "),
        (None, false) => format!("[{number:3}] "),
    }
}

/// Checks whether the data of a stream run against the default direction of this end.
pub(super) fn is_reversed(flow: Flow, spec: &TestSpec, options: &Options) -> bool {
    if flow == Flow::Forward {
        return false;
    }

    match (options.is_client(), spec.workload.pairing) {
        // The server opened this connection, so its data run along with it.
        (true, Pairing::ConnectBack | Pairing::ConnectBackAfterwards) => false,
        (true, _) => true,
        (false, _) => spec.direction == Direction::Bidirectional,
    }
}

/// The line behind its label, without a line end.
pub(super) fn histogram_line(options: &Options, row: &Row<'_>, histogram: &Histogram) -> String {
    let kind = histogram.kind;
    let is_of_bounces = matches!(
        kind,
        HistogramKind::RoundTrips | HistogramKind::Out | HistogramKind::Back
    );
    let gap = if options.is_new() && is_of_bounces {
        "  "
    } else {
        " "
    };

    let whole = if row.is_total { "(f)" } else { "" };
    let count: u64 = histogram.bins.iter().map(|(_, count)| count).sum();
    let bins: Vec<String> = histogram
        .bins
        .iter()
        .map(|(bin, count)| format!("{bin}:{count}"))
        .collect();
    let equals = if bins.is_empty() { "" } else { "=" };
    let [(low, low_bin), (high, high_bin), (top, top_bin)] = histogram.percentiles;
    let mut line = format!(
        "{} sec{gap}{}{whole}-PDF: bin(w={}us):cnt({count}){equals}{} \
         ({low:.2}/{high:.2}/{top}%={low_bin}/{high_bin}/{top_bin},Outliers={},obl/obu={}/{})",
        times(row.start_s, row.end_s, options),
        name(kind),
        histogram.bin_width_us,
        bins.join(","),
        histogram.outliers,
        histogram.below,
        histogram.beyond,
    );

    let shows_largest =
        kind == HistogramKind::Bursts || (options.is_new() && kind == HistogramKind::Datagrams);
    if let Some((largest_s, seen_at_s)) = histogram.largest.filter(|_| shows_largest) {
        line.push_str(&format!(" ({:.3} ms/{seen_at_s:.6})", largest_s * 1e3));
    }

    line
}

fn name(kind: HistogramKind) -> &'static str {
    match kind {
        HistogramKind::Datagrams => "T8",
        HistogramKind::Bursts => "F8",
        HistogramKind::Writes => "W8",
        HistogramKind::RoundTrips => "BB8",
        HistogramKind::Out => "OWD-TX",
        HistogramKind::Back => "OWD-RX",
        HistogramKind::Jitter => "J8",
    }
}
