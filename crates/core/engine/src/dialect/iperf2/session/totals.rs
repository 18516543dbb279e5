//! The totals of a session, and those of its flows for their clients.

use linerate_iperf2::wire::FinalReport;
use linerate_model::metrics::StreamMetrics;
use linerate_model::summary::{EndpointTotals, UdpTotals};
use linerate_model::{Event, Failure};
use linerate_sys::clock;

use super::Session;
use crate::dialect::iperf2::burst_reports;
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
                    let metrics = StreamMetrics {
                        one_way: Some(distribution(&transit)),
                        datagrams_per_s: Some(f64::from(report.datagrams_per_s)),
                        datagrams_received: Some(report.datagrams.saturating_sub(report.lost)),
                        ..StreamMetrics::default()
                    };
                    Box::new(metrics)
                });
            }

            reporter.emit(&Event::Summary(Box::new(summary.clone())));
            self.summary = Some(summary);
        }

        self.failure.clone().map_or(Ok(()), Err)
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
