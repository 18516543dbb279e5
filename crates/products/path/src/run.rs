//! The phases of a test against a server, native or of iperf3, and the report of them.

mod ceilings;
mod examination;
mod failure;
mod far_hops;
pub mod identity;
mod iperf3;
mod names;
mod native;
mod ndt7;
mod observers;
mod searches;
mod side_measures;
mod side_probe;
mod stamp;
mod steering;

use std::time::{Duration, Instant};

use linerate_engine::Interrupts;
use linerate_engine::dialect::native::client::{self, Announcement, Opened, Turn};
use linerate_model::outcome::Error;
use linerate_model::path::PhaseKind;

use crate::plan::PlannedTest;
use crate::spec::PathTest;
pub use examination::Examined;
use examination::Start;
use failure::failed;
pub use observers::Observers;

/// Connections at the same time that a search for the highest rate of connections announces.
const CONNECTIONS_MAX: u32 = 10_000;

/// Examines a path once. A signal ends it with a report of the phases that are complete. `planned`
/// is the plan for a native server, and `number` that of the repetition, from 0.
///
/// # Errors
/// Where nothing was measured: the server does not answer, refuses, or is not the one that was
/// demanded.
pub fn examine(
    test: &PathTest,
    planned: &PlannedTest,
    number: u32,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Result<Examined, Error> {
    let started = Instant::now();
    let mut test = test.clone();
    let is_stamp = test.spec.only.contains(&PhaseKind::Stamp);
    let opened = if is_stamp || test.is_ndt7 {
        None
    } else {
        Some(open(&mut test, planned, interrupts, observers)?)
    };

    let start = Start {
        test: &test,
        number,
        started,
        interrupts,
        observers: observers.reborrow(),
    };
    match opened {
        None if is_stamp => stamp::examine(start, planned),
        None => ndt7::examine(start),
        Some(Opened::Native(client)) => {
            for remark in identity::remember(&test.target, client.peer()) {
                let line = format!("linerate test: {remark}");
                start.observers.progress.line(&line);
            }
            Ok(native::examine(start, *client, planned))
        }
        Some(Opened::Iperf3(established)) => iperf3::examine(start, established),
    }
}

/// Opens a session at the first port whose server is free. It is then that of the target.
fn open(
    test: &mut PathTest,
    planned: &PlannedTest,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Result<Opened, Error> {
    let ports = test.ports.unwrap_or(test.target.port.into());
    let mut announcement = announcement(test, planned);
    let mut on_turn = |turn: Turn| observers.progress.update(&queued_line(turn));

    let attempt = |port, is_last| {
        test.target.port = port;
        // Another port may be free at once.
        announcement.wait_max = if is_last {
            test.wait_max
        } else {
            Duration::ZERO
        };
        let target = &test.target;
        let demand = identity::demand(&test.identity, target).map_err(|error| (error, false))?;
        client::open(target, &demand, &announcement, &mut on_turn, interrupts)
            .map_err(|error| (failed(&error, target), error.is_taken()))
    };
    let opened = ports.first_free(attempt, |(_, is_taken)| *is_taken);

    match opened {
        Ok(opened) => {
            if let Some(remark) = ports.remark(test.target.port) {
                observers.progress.line(&format!("linerate test: {remark}"));
            }
            Ok(opened)
        }
        Err((error, true)) if ports.is_range() => {
            Err(Error::new(error.outcome, format!("ports {ports}: {error}")))
        }
        Err((error, _)) => Err(error),
    }
}

/// States what the phases of the plan need, and no more: the server counts it when it admits the
/// session.
fn announcement(test: &PathTest, planned: &PlannedTest) -> Announcement {
    let kinds = planned.kinds();
    // The connections of a search for their rate do not wait for each other.
    let connections_max = if kinds.contains(&PhaseKind::Cps) {
        CONNECTIONS_MAX
    } else {
        planned.streams.transactions
    };

    Announcement {
        streams_max: planned.streams.loads.max(1),
        connections_max,
        duration_max: Duration::from_secs(planned.estimate_s),
        kinds,
        wants_facts: test.wants_facts,
        bytes_max: test.spec.bytes_max,
        wait_max: test.wait_max,
    }
}

fn queued_line(turn: Turn) -> String {
    format!(
        "queued at the server: position {}, about {} s",
        turn.ahead + 1,
        turn.wait.as_secs()
    )
}
