//! The totals of a session, and those of its flows for their clients.

use std::time::Duration;

use linerate_iperf2::wire::FinalReport;
use linerate_model::metrics::StreamMetrics;
use linerate_model::summary::{EndpointTotals, UdpTotals};
use linerate_model::{Event, Failure};
use linerate_sys::clock;

use super::Session;
use crate::dialect::iperf2::burst_reports;
use crate::dialect::iperf2::connection::Connection;
use crate::dialect::iperf2::datagrams::{self, transit_of};
use crate::measure::stream_stats::distribution;
use crate::reporter::Reporter;

impl Session {
    /// Reports the totals, once; returns what went wrong.
    pub(in crate::dialect::iperf2) fn finish(
        &mut self,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        if self.summary.is_none() && self.run.has_started() {
            burst_reports::report(&self.connections, &self.run, reporter);
            burst_reports::report_left_out(&self.connections, reporter);
            let mut summary = self.run.finish(clock::monotonic_ns(), reporter);

            self.run.quit();
            for row in &mut summary.streams {
                let connection = self
                    .connections
                    .iter()
                    .find(|c| c.directions().any(|p| p.stream.id == row.id));
                let Some(report) = connection.and_then(|c| c.report) else {
                    continue;
                };
                row.receiver = Some(half_of(&report));
                row.peer_metrics = report.transit_s.map(|transit| {
                    let mut metrics = StreamMetrics::default();
                    metrics.one_way = Some(distribution(&transit));
                    metrics.datagrams_per_s = Some(f64::from(report.datagrams_per_s));
                    metrics.datagrams_received = Some(report.datagrams.saturating_sub(report.lost));
                    Box::new(metrics)
                });
            }

            reporter.emit(&Event::Summary(Box::new(summary.clone())));
            self.summary = Some(summary);
        }

        self.failure.clone().map_or(Ok(()), Err)
    }
}

/// What was counted of a flow, for its client.
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

fn half_of(report: &FinalReport) -> EndpointTotals {
    EndpointTotals::new(
        report.bytes,
        clock::as_ns(report.duration),
        Some(UdpTotals::new(
            report.datagrams,
            report.lost,
            report.out_of_order,
            report.jitter_s,
        )),
    )
}
