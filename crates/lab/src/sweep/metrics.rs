//! Metrics of one run, from the summary of its test.

use linerate_model::sweep::{Objective, RunMetrics};
use linerate_model::{Summary, measure};

use super::spec::LOSS_PERCENT_MAX;

const GIB: f64 = 1_073_741_824.0;

/// The compared value of a run.
///
/// # Errors
/// The figure that is missing.
pub fn value(objective: Objective, metrics: &RunMetrics) -> Result<f64, &'static str> {
    match objective {
        Objective::Throughput => Ok(metrics.received_bps),
        Objective::LowLoss => {
            let lost_percent = metrics.lost_percent.ok_or("the server did not report lost datagrams")?;
            Ok(if lost_percent < LOSS_PERCENT_MAX { metrics.received_bps } else { 0.0 })
        }
        Objective::Latency => metrics.rtt_us.ok_or("the kernel reports no round-trip time"),
        Objective::CpuPerByte => {
            let client = metrics.cpu_client_percent.ok_or("the system reports no CPU times")?;
            cpu_s_per_gib(client + metrics.cpu_server_percent.unwrap_or(0.0), metrics.received_bps)
                .ok_or("nothing was received")
        }
        _ => Err("what the sweep looks for is not known"),
    }
}

/// The metrics of a run; `None` when the receiver's bytes are unknown.
#[must_use]
pub fn run_metrics(summary: &Summary) -> Option<RunMetrics> {
    let flow = summary.streams.first()?.flow;
    let received = measure::received(summary, flow)?;
    let rtts: Vec<f64> = summary
        .streams
        .iter()
        .filter_map(|stream| stream.tcp?.mean_rtt_us.filter(|rtt| *rtt > 0).map(f64::from))
        .collect();
    let mut metrics = RunMetrics::default();
    metrics.received_bps = received.bits_per_second();
    metrics.sent_bps = measure::sent(summary, flow).map(|sent| sent.bits_per_second());
    metrics.cpu_client_percent = summary.cpu_local.map(|cpu| cpu.total_percent);
    metrics.cpu_server_percent = summary.cpu_remote.map(|cpu| cpu.total_percent);
    metrics.retransmits = measure::retransmits(summary, flow).map(|count| count as f64);
    metrics.rtt_us = (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64);
    let lost_share = measure::datagrams(summary, flow).and_then(|datagrams| datagrams.lost_share());
    metrics.lost_percent = lost_share.map(|share| share * 100.0);
    Some(metrics)
}

fn cpu_s_per_gib(cpu_percent: f64, received_bps: f64) -> Option<f64> {
    (received_bps > 0.0).then(|| cpu_percent / 100.0 / (received_bps / 8.0 / GIB))
}

#[cfg(test)]
mod tests {
    use linerate_model::summary::TcpSummary;
    use linerate_model::{CpuUsage, EndpointTotals, StreamSummary};

    use super::*;

    fn stream(receiver: Option<EndpointTotals>, tcp: Option<TcpSummary>) -> StreamSummary {
        let mut stream = StreamSummary::default();
        stream.receiver = receiver;
        stream.tcp = tcp;
        stream
    }

    fn second(bytes: u64) -> Option<EndpointTotals> {
        Some(EndpointTotals::new(bytes, 1_000_000_000, None))
    }

    #[test]
    fn metrics_count_received_bytes_and_missing_ones_stay_missing() {
        let tcp = |rtt_us| {
            let mut tcp = TcpSummary::default();
            (tcp.retransmits, tcp.mean_rtt_us) = (Some(3), Some(rtt_us));
            Some(tcp)
        };
        let mut summary = Summary::new(vec![stream(second(1000), tcp(100)), stream(second(500), tcp(300))]);
        summary.cpu_local = Some(CpuUsage::new(50.0, 0.0, 0.0));
        let seen = run_metrics(&summary).expect("both arrived");
        assert_eq!(seen.received_bps.to_bits(), 12_000_f64.to_bits());
        assert_eq!((seen.retransmits, seen.rtt_us), (Some(6.0), Some(200.0)));
        assert_eq!((seen.cpu_client_percent, seen.cpu_server_percent), (Some(50.0), None));
        assert_eq!(seen.lost_percent, None);
        summary.streams[1].tcp = None;
        assert_eq!(run_metrics(&summary).expect("both arrived").retransmits, None);
        summary.streams[1].receiver = None;
        assert_eq!(run_metrics(&summary), None);
        assert_eq!(run_metrics(&Summary::default()), None);
    }

    #[test]
    fn runs_that_lose_too_much_are_worth_nothing() {
        let metrics = |lost_percent| {
            let mut metrics = RunMetrics::default();
            metrics.received_bps = 9e7;
            metrics.lost_percent = lost_percent;
            metrics
        };
        assert_eq!(value(Objective::LowLoss, &metrics(Some(0.09))), Ok(9e7));
        assert_eq!(value(Objective::LowLoss, &metrics(Some(0.1))), Ok(0.0));
        assert!(value(Objective::LowLoss, &metrics(None)).is_err());
    }

    #[test]
    fn cpu_time_is_per_gib() {
        // 1 GiB/s with one and a half cores.
        assert_eq!(cpu_s_per_gib(150.0, GIB * 8.0), Some(1.5));
        assert_eq!(cpu_s_per_gib(150.0, 0.0), None);
    }
}
