//! TCP alone, with the engine of the iperf3 dialect.

use std::time::Duration;

use linerate_lab::http::ceiling::Link;
use linerate_lab::http::cells::PlannedTest;
use linerate_lab::http::plan::Direction as Way;
use linerate_model::http::Baseline;
use linerate_model::spec::{BindSpec, ClientSpec, LocalOptions};
use linerate_model::{Direction, EndCondition, Failure, Summary, TestSpec};
use linerate_sys::signal::Signals;

use crate::Client;

/// Makes one test against an iperf3 server at `host`.
///
/// # Errors
/// Why there is no result.
pub(super) fn test(
    host: &str,
    port: u16,
    planned: &PlannedTest,
    duration: Duration,
    link: Option<&Link>,
    signals: &Signals,
) -> Result<Baseline, Failure> {
    let spec = ClientSpec {
        host: host.to_owned(),
        local: LocalOptions {
            port,
            bind: BindSpec::default(),
            ..LocalOptions::default()
        },
        test: TestSpec {
            direction: match planned.direction {
                Way::Forward => Direction::Forward,
                Way::Reverse => Direction::Reverse,
            },
            end: EndCondition::Duration(duration),
            streams: planned.streams,
            omit: OMITTED,
            ..TestSpec::default()
        },
        connect_timeout: Some(TIMEOUT),
        server_cpu: None,
        credentials: None,
    };
    let result = Client::new(spec).run(signals);
    result.outcome?;
    Ok(baseline(planned, &result.summary.unwrap_or_default(), link))
}

fn baseline(planned: &PlannedTest, summary: &Summary, link: Option<&Link>) -> Baseline {
    let received = summary.streams.iter().filter_map(|stream| stream.receiver);
    let goodput_bps: f64 = received.map(|half| half.bits_per_second()).sum();
    let retransmits: Option<u64> = summary.streams.iter().map(|stream| stream.tcp?.retransmits).sum();
    let bytes: u64 = summary
        .streams
        .iter()
        .filter_map(|s| s.sender)
        .map(|half| half.bytes)
        .sum();
    let segments = link.and_then(Link::mss_bytes).map(|mss| bytes as f64 / f64::from(mss));
    let cpus = |cpu: Option<linerate_model::CpuUsage>| cpu.map(|cpu| cpu.total_percent / 100.0);
    Baseline {
        is_reverse: planned.direction == Way::Reverse,
        streams: planned.streams,
        goodput_bps,
        of_theory: link.and_then(Link::goodput_bps).map(|most| goodput_bps / most),
        retransmits,
        retransmit_share: retransmits
            .zip(segments.filter(|segments| *segments > 0.0))
            .map(|(lost, segments)| lost as f64 / segments),
        client_cpus: cpus(summary.cpu_local),
        server_cpus: cpus(summary.cpu_remote),
    }
}

/// Slow start is not part of what the path carries.
const OMITTED: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(3);
