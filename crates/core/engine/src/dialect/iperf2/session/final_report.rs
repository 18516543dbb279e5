//! The final report of a flow, for its client.

use std::time::Duration;

use linerate_iperf2::wire::FinalReport;

use crate::dialect::iperf2::connection::Connection;
use crate::dialect::iperf2::datagrams::{self, transit_of};

/// Counts of a flow, for its client.
pub(super) fn final_report(connection: &Connection, bytes: u64) -> FinalReport {
    let flow_totals = connection
        .flow_totals
        .as_ref()
        .map(datagrams::read)
        .unwrap_or_default();
    let started_ns = connection
        .receiver
        .as_ref()
        .and_then(|p| p.started_ns)
        .unwrap_or_default();
    let duration_ns = flow_totals
        .last_arrival_ns
        .saturating_sub(started_ns)
        .max(1000);
    let per_s = flow_totals.datagrams as f64 * 1e9 / duration_ns as f64;

    FinalReport {
        bytes,
        duration: Duration::from_nanos(duration_ns),
        lost: flow_totals.lost,
        out_of_order: flow_totals.out_of_order,
        datagrams: flow_totals.datagrams,
        jitter_s: flow_totals.mean_jitter_s,
        transit_s: connection
            .receiver
            .as_ref()
            .and_then(|p| transit_of(&p.stats)),
        // Conversions of floats saturate.
        datagrams_per_s: per_s.round() as u32,
    }
}
