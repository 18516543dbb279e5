//! Values of a report that cannot be: faults of programs, and documents that were changed.

use linerate_model::path::PathReport;
use linerate_model::{EndpointTotals, Event};

/// More than any interface carries; rates of shorter times are those of a clock that went
/// backwards.
const RATE_MAX_BPS: f64 = 1e13;
const DURATION_MIN_S: f64 = 0.1;

/// Checks the totals of a test.
///
/// # Errors
/// The implausible value.
pub(super) fn check(events: &[Event]) -> Result<(), String> {
    let summaries = events.iter().filter_map(|event| {
        if let Event::Summary(summary) = event {
            Some(summary)
        } else {
            None
        }
    });
    for stream in summaries.flat_map(|summary| &summary.streams) {
        for end in [stream.sender, stream.receiver].into_iter().flatten() {
            totals(&end)?;
        }
    }

    Ok(())
}

/// Checks the rates of the phases of a path.
///
/// # Errors
/// The implausible value.
pub(super) fn check_path(report: &PathReport) -> Result<(), String> {
    let phases = report.phases.iter();
    let mut rates = phases.flat_map(|phase| phase.down_bps.into_iter().chain(phase.up_bps));
    match rates.find(|bps| *bps > RATE_MAX_BPS) {
        Some(bps) => Err(format!("implausible: {:.0} Gbit/s", bps / 1e9)),
        None => Ok(()),
    }
}

fn totals(end: &EndpointTotals) -> Result<(), String> {
    if let Some(udp) = end.udp.filter(|udp| udp.lost > udp.packets) {
        return Err(format!(
            "implausible: {} of {} datagrams lost",
            udp.lost, udp.packets
        ));
    }

    let rate_bps = end.bits_per_second();
    if end.seconds() >= DURATION_MIN_S && rate_bps > RATE_MAX_BPS {
        return Err(format!("implausible: {:.0} Gbit/s", rate_bps / 1e9));
    }

    Ok(())
}
