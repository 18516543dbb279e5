//! The plan of a run, what it takes, and its bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::plan::{Estimate, FleetPlan, PlanHost, PlannedRun};
use crate::report::{Announced, announcement};
use crate::spec::inventory::{Host, Reach};
use linerate_model::fleet::{FleetMode, HostId, PlanHash, Task};
use linerate_model::numbers::bytes;

use crate::spec::RunSpec;
use linerate_document::progress::style;
use linerate_model::outcome::Error;

/// Time of a round beside its tests.
const ROUND_OVERHEAD: Duration = Duration::from_millis(1_000);
/// Most payload of all tests without an option, in bytes.
const BYTES_MAX: u64 = 1_000_000_000_000;

/// Rates of the links of the hosts in bit/s, where they are known.
pub(super) type Links = BTreeMap<HostId, f64>;

/// The plan over these paths.
pub(super) fn plan(spec: &RunSpec, paths: &[String], links_bps: &Links) -> FleetPlan {
    let hosts = &spec.hosts.inventory.hosts;
    let host = |host: &Host| PlanHost {
        id: host.id.clone(),
        rack: host.rack.clone(),
        is_target_only: matches!(host.reach, Reach::Server(_)),
    };

    let test = &spec.test;
    // The last of the staggered tests starts after the delays of all others.
    let hosts_staggered = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    FleetPlan {
        hosts: hosts.iter().map(host).collect(),
        topology: spec.topology.clone(),
        mode: spec.mode,
        direction: spec.direction,
        paths: paths.to_vec(),
        variants: spec.variants.clone(),
        repetitions: spec.repetitions,
        crossing: crossing(spec, links_bps),
        sample_rounds: spec.sample_rounds,
        seed: spec.seed,
        options: format!("{test:?}"),
        round_time: test.time
            + test.omit
            + ROUND_OVERHEAD
            + test.stagger.saturating_mul(hosts_staggered),
        budget: spec.budget.unwrap_or(Duration::MAX),
    }
}

/// Hash of the plan as far as it does not depend on what the hosts report.
pub(super) fn identity(spec: &RunSpec, paths: &[String]) -> PlanHash {
    // Link rates come from the hosts, so the identity leaves them out.
    plan(spec, paths, &Links::new()).hash()
}

/// Pairs that each uplink carries: as the inventory has it, else its rate over that of the slowest
/// link of the rack.
fn crossing(spec: &RunSpec, links_bps: &Links) -> BTreeMap<String, u32> {
    let inventory = &spec.hosts.inventory;
    let of_rack = |name: &String, uplink_bps: u64| {
        let members = inventory
            .hosts
            .iter()
            .filter(|host| host.rack.as_ref() == Some(name));
        let slowest_bps = members
            .filter_map(|host| links_bps.get(&host.id))
            .copied()
            .reduce(f64::min)?;
        // An uplink slower than one link still carries one pair at a time.
        Some((uplink_bps as f64 / slowest_bps).max(1.0) as u32)
    };
    let of_entry = |(name, rack): (&String, &crate::spec::inventory::Rack)| {
        let pairs = rack.crossing.or_else(|| of_rack(name, rack.uplink_bps?))?;
        Some((name.clone(), pairs))
    };

    inventory.racks.iter().filter_map(of_entry).collect()
}

/// Time and data of the tasks that are not finished, as a line, and the number of their cells.
///
/// # Errors
/// It may move more data than is allowed.
pub(super) fn announced(
    run: &PlannedRun,
    spec: &RunSpec,
    finished: &BTreeSet<Task>,
    alive: &BTreeSet<HostId>,
    links_bps: &Links,
) -> Result<(String, usize), Error> {
    let estimate = run.estimate(finished, alive);
    let bytes_max = bytes_max(&run.open(finished), spec, alive, links_bps);
    let allowed = spec.bytes_max.unwrap_or(BYTES_MAX);
    if let Some(most) = bytes_max.filter(|most| *most > allowed) {
        let (most, allowed) = (bytes(most as f64), bytes(allowed as f64));
        let text = format!(
            "the run may move {most}, at most {allowed} are allowed; see --max-bytes and --max-rate"
        );
        return Err(Error::usage(text));
    }

    Ok((
        line(&run.plan, spec, estimate, bytes_max, links_bps),
        estimate.cells,
    ))
}

fn line(
    plan: &FleetPlan,
    spec: &RunSpec,
    estimate: Estimate,
    bytes_max: Option<u64>,
    links_bps: &Links,
) -> String {
    let test_time = spec.test.time + spec.test.omit;
    let link = links_bps.values().copied().reduce(f64::max);
    // Where a host has one test at a time.
    let is_single = matches!(
        plan.mode,
        FleetMode::Isolated | FleetMode::Rounds | FleetMode::RackSafe
    );

    let rate = spec
        .test
        .rate_bps
        .map(|bps| bps as f64)
        .filter(|_| is_single);
    let host_bps_max = link.into_iter().chain(rate).reduce(f64::min);
    announcement(
        &Announced {
            plan,
            estimate,
            test_time,
            bytes_max,
            host_bps_max,
        },
        style(),
    )
}

/// Most payload of all tests in bytes; `None` where nothing bounds one of them.
fn bytes_max(
    tasks: &[Task],
    spec: &RunSpec,
    alive: &BTreeSet<HostId>,
    links_bps: &Links,
) -> Option<u64> {
    let seconds = (spec.test.time + spec.test.omit).as_secs_f64();
    let runnable = tasks
        .iter()
        .filter(|task| alive.contains(&task.source) && alive.contains(&task.sink));

    let of_task = |task: &Task| {
        let links = [&task.source, &task.sink]
            .into_iter()
            .filter_map(|host| links_bps.get(host))
            .copied();
        let bps = links
            .chain(spec.test.rate_bps.map(|bps| bps as f64))
            .reduce(f64::min)?;
        Some(bps * seconds / 8.0)
    };
    let all: Option<Vec<f64>> = runnable.map(of_task).collect();
    all.map(|all| all.iter().sum::<f64>() as u64)
}
