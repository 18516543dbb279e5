//! Options that are parsed and whose function does not exist.

use super::message::Stop;
use super::resolve::Command;

/// Refuses a test or a server with such an option.
///
/// # Errors
/// The first of them.
pub(crate) fn check_supported(command: Command) -> Result<Command, Stop> {
    let (local, test, output) = match &command {
        Command::Client { spec, output } => (&spec.local, Some(&spec.test), output),
        Command::Server { spec, output, .. } => {
            let defaults = spec.local.end.defaults.as_ref();
            (&spec.local, defaults.map(|defaults| &defaults.test), output)
        }
    };
    let is_server = matches!(command, Command::Server { .. });

    let rows = [
        (
            test.is_some_and(|test| test.workload.rate_deviation_bps.is_some()),
            "a rate that varies around its target (-b mean,deviation) is not supported",
        ),
        (
            local.end.realtime,
            "the real-time scheduler (-z) is not supported",
        ),
        (
            local.end.send_delay.is_some(),
            "--tcp-tx-delay is not supported",
        ),
        (
            is_server && output.sum_by_destination,
            "sums by destination (--sum-dstip) are not supported",
        ),
        (
            is_server && test.is_some_and(|test| test.pacing.rate_bps.is_some()),
            "a limit on what a server reads (-b) is not supported",
        ),
    ];
    match rows.into_iter().find(|(is_wanted, _)| *is_wanted) {
        Some((_, text)) => Err(Stop::error(format!("ERROR: {text}"))),
        None => Ok(command),
    }
}
