//! A session with a STAMP reflector, which has no control connection and no identity.

use std::net::SocketAddr;

use linerate_engine::dialect::stamp::client::{Measured, measure};
use linerate_model::outcome::{Error, Outcome};
use linerate_model::path::{
    Dialect, EVENT_SCHEMA, FinishedPhase, PathEvent, PathReport, PathState, PathTarget,
};
use linerate_model::spec::AddressFamily;
use linerate_sys::clock;
use linerate_sys::socket::{self, Family};

use super::examination::{Examined, Start};
use crate::conclude::{stamp, stamp_samples};
use crate::plan::PlannedTest;

/// Bytes of a packet, which all answers have too.
const PACKET_LEN: u64 = 44;

/// Measures the path to the reflector of the target.
pub(super) fn examine(start: Start<'_>, planned: &PlannedTest) -> Result<Examined, Error> {
    let Start { test, .. } = start;
    let target = &test.target;
    let wanted = target.bind.family.map(|family| match family {
        AddressFamily::V4 => Family::V4,
        AddressFamily::V6 => Family::V6,
    });
    let remote = socket::resolve(&target.host, target.port, wanted)
        .map_err(|error| unreachable(format!("{}: {error}", target.host)))?
        .into_iter()
        .next()
        .ok_or_else(|| unreachable(format!("{}: no address", target.host)))?;

    let described = PathTarget::new(&target.host, target.port, remote.ip(), Dialect::Stamp);
    (start.observers.on_event)(&PathEvent::Started {
        schema: EVENT_SCHEMA,
        repeat: start.number,
        target: &described,
        spec: &test.spec,
        seconds_max: planned.estimate_s,
    });
    let duration = planned
        .phases
        .iter()
        .map(|phase| phase.spec.duration_max)
        .sum();
    start.observers.progress.line(&format!(
        "{}: STAMP, {} s at most",
        target.host, planned.estimate_s
    ));

    let measured = measure(
        remote,
        &target.bind,
        test.spec.dscp,
        duration,
        start.interrupts,
    )
    .map_err(|error| unreachable(error.text()))?;
    let answered = measured
        .probes
        .iter()
        .filter(|probe| probe.answer.is_some())
        .count() as u64;
    if answered == 0 {
        return Err(silent(&measured, remote));
    }

    let (state, outcome) = if measured.is_interrupted {
        (PathState::Partial, Outcome::Interrupted)
    } else {
        (PathState::Complete, Outcome::Done)
    };
    let mut report = PathReport::new(state, test.spec.profile, described);
    stamp(&measured, &mut report);
    report.elapsed_ns = clock::as_ns(start.started.elapsed());
    report.bytes_sent = measured.probes.len() as u64 * PACKET_LEN;
    report.bytes_received = answered * PACKET_LEN;

    let mut observers = start.observers;
    if let Some(idle) = &report.idle {
        observers.finished(FinishedPhase::Idle(idle));
    }
    let samples = test.wants_samples.then(|| stamp_samples(&measured.probes));
    Ok(Examined {
        report,
        diagnosis: None,
        samples: samples.into_iter().collect(),
        stacks: String::new(),
        outcome,
    })
}

/// The failure of a session without an answer.
fn silent(measured: &Measured, remote: SocketAddr) -> Error {
    match (measured.is_interrupted, measured.is_refused) {
        (true, _) => Error::new(Outcome::Interrupted, "interrupted before the first answer"),
        (_, true) => unreachable(format!(
            "{remote}: no program listens at this UDP port; -p names another one"
        )),
        _ => unreachable(format!(
            "{remote}: no session reflector answers at this UDP port: there is none, a filter of \
             the path drops the packets, or its access list lacks this host"
        )),
    }
}

fn unreachable(text: String) -> Error {
    Error::new(Outcome::Unreachable, text)
}
