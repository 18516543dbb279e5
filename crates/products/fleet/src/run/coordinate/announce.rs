//! What a run takes, and whether it may.

use std::collections::BTreeSet;

use crate::plan::{Links, PlannedRun};
use crate::report::{Announced, announcement};
use linerate_document::progress::style;
use linerate_model::fleet::{FleetMode, HostId, Task};
use linerate_model::numbers::bytes;
use linerate_model::outcome::Error;

/// Time and data of the tasks that are not finished, as a line, and the number of their cells.
///
/// # Errors
/// It may move more data than is allowed.
pub(super) fn announced(
    run: &PlannedRun,
    finished: &BTreeSet<Task>,
    alive: &BTreeSet<HostId>,
    links_bps: &Links,
) -> Result<(String, usize), Error> {
    let plan = &run.plan;
    let estimate = run.estimate(finished, alive);
    let bytes_max = run.bytes_max(finished, alive, links_bps);
    if let Some(most) = bytes_max.filter(|most| *most > plan.bytes_max) {
        let (most, allowed) = (bytes(most as f64), bytes(plan.bytes_max as f64));
        return Err(Error::usage(format!(
            "the run may move {most}, at most {allowed} are allowed; see --max-bytes and --max-rate"
        )));
    }

    let mut host_bps_max = links_bps.values().copied().reduce(f64::max);
    // Where a host has one test at a time, the limit of a test is that of a host.
    if matches!(
        plan.mode,
        FleetMode::Isolated | FleetMode::Rounds | FleetMode::RackSafe
    ) {
        let rate = plan.test.rate_bps.map(|bps| bps as f64);
        host_bps_max = host_bps_max.into_iter().chain(rate).reduce(f64::min);
    }
    let announced = Announced {
        plan,
        estimate,
        test_time: plan.test.length(),
        bytes_max,
        host_bps_max,
    };
    Ok((announcement(&announced, style()), estimate.cells))
}
