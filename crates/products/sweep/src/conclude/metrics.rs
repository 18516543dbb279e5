//! Metrics of one run, from the summary of its test.

use linerate_model::interval::TcpLimits;
use linerate_model::record::{Detail, Trial};
use linerate_model::sweep::{Objective, RunMetrics, Sweep};
use linerate_model::{EndpointTotals, Flow, StreamSummary, Summary, measure};

use crate::run::runner::{Observation, RunError};
use crate::spec::LOSS_PERCENT_MAX;

const GIB: f64 = 1_073_741_824.0;

/// The compared value of a run.
///
/// # Errors
/// The figure that is missing.
pub fn value(objective: Objective, metrics: &RunMetrics) -> Result<f64, &'static str> {
    match objective {
        Objective::Throughput => Ok(metrics.received_bps),
        Objective::LowLoss => {
            let lost_percent = metrics
                .lost_percent
                .ok_or("the server did not report lost datagrams")?;
            // 0 ranks below the rate of every setting that loses little enough.
            Ok(if lost_percent < LOSS_PERCENT_MAX {
                metrics.received_bps
            } else {
                0.0
            })
        }
        Objective::Latency => metrics
            .rtt_us
            .ok_or("the kernel reports no round-trip time"),
        Objective::CpuPerByte => {
            let client = metrics
                .cpu_client_percent
                .ok_or("the system reports no CPU times")?;
            cpu_s_per_gib(
                // Some servers do not report their CPU time; a remark of the report says so.
                client + metrics.cpu_server_percent.unwrap_or(0.0),
                metrics.received_bps,
            )
            .ok_or("nothing was received")
        }
    }
}

/// The metrics of a run; `None` when the receiver's bytes are unknown.
pub fn run_metrics(summary: &Summary) -> Option<RunMetrics> {
    // A sweep has one direction, so the flow of the first stream is that of all.
    let flow = summary.streams.first()?.flow;
    let counted = measure::received(summary, flow)?;
    // Servers count until their sockets are empty, so their own rate may exceed that of the link.
    let received = delivered(summary, flow).unwrap_or(counted);
    let seconds = received.seconds();

    let rtt_us = mean(summary, |stream| {
        stream
            .tcp?
            .mean_rtt_us
            // 0: the kernel has no sample of the round-trip time.
            .filter(|rtt| *rtt > 0)
            .map(f64::from)
    });

    let mut metrics = RunMetrics {
        received_bps: received.bits_per_second(),
        sent_bps: measure::sent(summary, flow).map(|sent| sent.bits_per_second()),
        cpu_client_percent: summary.cpu_local.map(|cpu| cpu.total_percent),
        cpu_server_percent: summary.cpu_remote.map(|cpu| cpu.total_percent),
        retransmits: measure::retransmits(summary, flow).map(|count| count as f64),
        ..RunMetrics::default()
    };
    metrics.retransmits_per_s = metrics
        .retransmits
        .filter(|_| seconds > 0.0)
        .map(|count| count / seconds);
    metrics.rtt_us = rtt_us;

    // Little's law: the bytes in flight are those of one round-trip time.
    // A run shorter than the round-trip time has all of its data in flight.
    metrics.in_flight_share = rtt_us
        .filter(|_| seconds > 0.0)
        .map(|rtt| (rtt / 1e6 / seconds).min(1.0));
    metrics.window_bytes = mean(summary, |stream| {
        stream.tcp?.max_snd_wnd_bytes.map(|bytes| bytes as f64)
    });
    metrics.window_limited_share = mean(summary, |stream| {
        limited_share(stream, |limits| limits.rwnd_limited_us)
    });
    metrics.buffer_limited_share = mean(summary, |stream| {
        limited_share(stream, |limits| limits.sndbuf_limited_us)
    });

    let lost_share = measure::datagrams(summary, flow).and_then(|datagrams| datagrams.lost_share());
    metrics.lost_percent = lost_share.map(|share| share * 100.0);
    Some(metrics)
}

/// Bytes that reached the receiver within the measured time, over that time. Servers count until
/// their sockets are empty, and at the start of the measured time what lay out of order before it,
/// so that their rate may exceed that of the link.
fn delivered(summary: &Summary, flow: Flow) -> Option<EndpointTotals> {
    let streams = summary.streams.iter().filter(|stream| stream.flow == flow);
    let totals: Option<Vec<EndpointTotals>> = streams.map(|stream| stream.delivered).collect();
    totals?.into_iter().reduce(|sum, next| {
        let bytes = sum.bytes.saturating_add(next.bytes);
        // Streams run at the same time, so their times are not added.
        EndpointTotals::new(bytes, sum.duration_ns.max(next.duration_ns), None)
    })
}

/// Share of the time with data to send in which a sender waited for something else than the
/// network.
fn limited_share(stream: &StreamSummary, limited_us: fn(&TcpLimits) -> u64) -> Option<f64> {
    let limits = stream.tcp?.limits?;
    (limits.busy_us > 0).then(|| (limited_us(&limits) as f64 / limits.busy_us as f64).min(1.0))
}

/// Mean of the streams of which it is known.
fn mean(summary: &Summary, figure: impl Fn(&StreamSummary) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = summary.streams.iter().filter_map(figure).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn cpu_s_per_gib(cpu_percent: f64, received_bps: f64) -> Option<f64> {
    // Seconds of CPU per second, over GiB per second.
    (received_bps > 0.0).then(|| cpu_percent / 100.0 / (received_bps / 8.0 / GIB))
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Level of every factor, in their order.
    pub levels: Vec<String>,
    /// Seconds from the start of the sweep to the start of this run.
    pub started_s: f64,
    /// It is not counted: it came first, or was too short for the path.
    pub is_warm_up: bool,
    /// Value and metrics, or why there are none.
    pub outcome: Result<Observation, RunError>,
}

/// The runs of a sweep that was recorded, in the order of time.
pub fn recorded_runs(sweep: &Sweep, trials: &[Trial]) -> Vec<Run> {
    trials
        .iter()
        .map(|trial| recorded_run(sweep, trial))
        .collect()
}

fn recorded_run(sweep: &Sweep, trial: &Trial) -> Run {
    let level = |name: &str| trial.factors.get(name).cloned().unwrap_or_default();
    let summary = match &trial.detail {
        Some(Detail::Test(detail)) => detail.summary.as_ref(),
        _ => None,
    };
    let measured = || {
        let metrics = summary.and_then(run_metrics)?;
        value(sweep.plan.objective, &metrics)
            .ok()
            .map(|value| Observation { value, metrics })
    };
    let outcome = match &trial.reason {
        Some(reason) => Err(reason.clone()),
        None => measured().ok_or_else(|| "the test had no result".to_owned()),
    };

    Run {
        levels: sweep
            .plan
            .factors
            .iter()
            .map(|factor| level(&factor.name))
            .collect(),
        started_s: trial.started_ns as f64 / 1e9,
        is_warm_up: trial.is_warm_up,
        outcome: outcome.map_err(RunError::Failed),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::summary::{TcpSummary, UdpTotals};
    use linerate_model::{CpuUsage, EndpointTotals, StreamSummary};

    use super::*;

    fn stream(receiver: Option<EndpointTotals>, tcp: Option<TcpSummary>) -> StreamSummary {
        StreamSummary {
            receiver,
            tcp,
            ..StreamSummary::default()
        }
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
        let mut summary = Summary {
            streams: vec![
                stream(second(1000), tcp(100)),
                stream(second(500), tcp(300)),
            ],
            cpu_local: Some(CpuUsage {
                total_percent: 50.0,
                user_percent: 0.0,
                system_percent: 0.0,
            }),
            ..Summary::default()
        };

        let seen = run_metrics(&summary).expect("both arrived");
        assert_eq!(seen.received_bps.to_bits(), 12_000_f64.to_bits());
        assert_eq!((seen.retransmits, seen.rtt_us), (Some(6.0), Some(200.0)));
        assert_eq!(
            (seen.cpu_client_percent, seen.cpu_server_percent),
            (Some(50.0), None)
        );
        assert_eq!(seen.lost_percent, None);
        summary.streams[1].tcp = None;
        assert_eq!(
            run_metrics(&summary).expect("both arrived").retransmits,
            None
        );
        summary.streams[1].receiver = None;
        assert_eq!(run_metrics(&summary), None);
        assert_eq!(run_metrics(&Summary::default()), None);
    }

    #[test]
    fn rate_is_that_of_the_measured_time_and_not_of_what_arrived_later() {
        // The server counted 5.2 s, with half a megabyte that had arrived before them.
        let mut one = stream(
            Some(EndpointTotals::new(25_300_000, 5_200_000_000, None)),
            None,
        );
        one.delivered = Some(EndpointTotals::new(14_325_000, 3_000_000_000, None));
        let mut tcp = TcpSummary::default();
        (tcp.mean_rtt_us, tcp.retransmits) = (Some(150_000), Some(300));
        tcp.limits = Some(TcpLimits {
            busy_us: 3_000_000,
            rwnd_limited_us: 2_400_000,
            sndbuf_limited_us: 0,
        });
        one.tcp = Some(tcp);

        let seen = run_metrics(&Summary {
            streams: vec![one.clone()],
            ..Summary::default()
        })
        .expect("a result");
        assert_eq!(seen.received_bps.to_bits(), 38.2e6_f64.to_bits());
        assert!(
            seen.in_flight_share
                .is_some_and(|share| (share - 0.05).abs() < 1e-9),
            "{seen:?}"
        );
        assert_eq!(seen.retransmits_per_s, Some(100.0));
        assert_eq!(
            (seen.window_limited_share, seen.buffer_limited_share),
            (Some(0.8), Some(0.0))
        );

        one.delivered = None;
        let seen = run_metrics(&Summary {
            streams: vec![one],
            ..Summary::default()
        })
        .expect("a result");
        assert!(
            (seen.received_bps / 1e6 - 38.9).abs() < 0.1,
            "an older record has what the server counted"
        );
    }

    #[test]
    fn of_datagrams_that_all_vanish_all_are_lost() {
        let udp = |packets| Some(UdpTotals::new(packets, 0, 0, 0.0));
        let mut blocked = stream(Some(EndpointTotals::new(0, 1_000_000_000, udp(0))), None);
        blocked.sender = Some(EndpointTotals::new(140_000, 1_000_000_000, udp(100)));
        assert_eq!(
            run_metrics(&Summary {
                streams: vec![blocked],
                ..Summary::default()
            })
            .expect("a result")
            .lost_percent,
            Some(100.0)
        );
    }

    #[test]
    fn runs_that_lose_too_much_are_worth_nothing() {
        let metrics = |lost_percent| RunMetrics {
            received_bps: 9e7,
            lost_percent,
            ..RunMetrics::default()
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
