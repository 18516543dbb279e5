//! TCP alone, with the engine of the iperf3 dialect.

use std::time::Duration;

use linerate_lab::http::ceiling::Link;
use linerate_lab::http::cells::PlannedTest;
use linerate_model::http::Baseline;
use linerate_model::{Direction, EndCondition, Failure, Flow, Summary, TestSpec, measure};
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
    let spec = TestSpec {
        direction: match planned.direction {
            Flow::Forward => Direction::Forward,
            Flow::Reverse => Direction::Reverse,
        },
        end: EndCondition::Duration(duration),
        streams: planned.streams,
        omit: OMITTED,
        ..TestSpec::default()
    };
    let result = Client::to(host, port, spec).run(signals);
    result.outcome?;
    Ok(baseline(planned, &result.summary.unwrap_or_default(), link))
}

fn baseline(planned: &PlannedTest, summary: &Summary, link: Option<&Link>) -> Baseline {
    let flow = planned.direction;
    let received = measure::received(summary, flow);
    let goodput_bps = received.map_or(0.0, |received| received.bits_per_second());
    let retransmits = measure::retransmits(summary, flow);
    let retransmit_share = || {
        let sent = measure::sent(summary, flow)?;
        measure::retransmit_share(retransmits?, sent.bytes, link?.mss_bytes()?)
    };
    Baseline {
        is_reverse: flow == Flow::Reverse,
        streams: planned.streams,
        goodput_bps,
        of_theory: link.and_then(Link::goodput_bps).map(|most| goodput_bps / most),
        retransmits,
        retransmit_share: retransmit_share(),
        client_cpus: summary.cpu_local.map(measure::cpus),
        server_cpus: summary.cpu_remote.map(measure::cpus),
    }
}

/// Slow start is not part of what the path carries.
const OMITTED: Duration = Duration::from_secs(1);
