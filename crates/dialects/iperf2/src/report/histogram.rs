//! Distributions, one line each.

use linerate_model::metrics::{Histogram, HistogramKind};

use super::options::Options;
use super::row::{Row, times};

/// The line behind its label, without a line end.
pub(super) fn line(options: &Options, row: &Row<'_>, histogram: &Histogram) -> String {
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
