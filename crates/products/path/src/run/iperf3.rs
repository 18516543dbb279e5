//! Examination against a server of iperf3: ordinary tests one after the other, with a probe beside
//! them. What its protocol does not have is named, never estimated.

mod phase_over_iperf3;
mod result;

use linerate_doctor::observation::EndpointObservation;
use linerate_engine::dialect::native::client::Established;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::path::absent::{self, IPERF3_ONLY};
use linerate_model::path::{Dialect, PathSpec, PhaseKind, PhaseTransport};

use super::examination::{Examination, Examined, Start};
use super::identity;
use super::side_measures::{self, Ended};
use super::side_probe::Method;
use super::steering::SharedObserver;
use crate::conclude::unmeasured;
use crate::plan::{LoadPlan, PlannedPhase, plan};
use crate::report::PhaseProgress;
use phase_over_iperf3::{Finished, Iperf3Peer};

/// Streams per direction of a load, unless the user sets them: a test of iperf3 keeps the number of
/// its start.
const STREAMS: u32 = 4;

/// Examines a path to a server of iperf3.
pub(super) fn examine(start: Start<'_>, established: Established) -> Result<Examined, Error> {
    let test = start.test;
    let host = &test.target.host;
    if test.spec.transport == PhaseTransport::Tls {
        let text = format!(
            "{host} answers as an iperf3 server, which has no TLS; test it without --transport tls"
        );
        return Err(Error::new(Outcome::Unreachable, text));
    }

    let target = identity::unproven(&test.target, &established);
    let remote = established.remote;
    let mut planned = plan(&test.spec, Dialect::Iperf3);
    // Its measures are named one by one.
    planned
        .absent
        .retain(|(name, _)| name != PhaseKind::Size.name());
    let connect_time = established.connect_time;
    let first = (established, connect_time);
    let mut examination = side_measures::begin(start, "iperf3", remote, target, &planned, first);

    let is_interrupted =
        examination.run(&planned.phases, |examination, planned, progress| {
            match (planned.spec.kind, planned.load) {
                (PhaseKind::Idle, _) => examination.idle(planned),
                (_, Some(load)) => examination.load(planned, load, progress),
                _ => examination.datagrams(planned),
            }
        });
    examination.check_any(is_interrupted, IPERF3_ONLY)?;
    examination.add_absent();
    Ok(examination.end(is_interrupted))
}

impl Examination<'_, Iperf3Peer> {
    fn load(
        &mut self,
        planned: &PlannedPhase,
        load: LoadPlan,
        progress: PhaseProgress,
    ) -> Result<(), Ended> {
        let load = fixed(load, &self.test.spec, self.peer.side.method);
        let mut spec = planned.spec.clone();
        spec.streams_max = load.streams_max;

        let observer = SharedObserver::default();
        let Finished {
            result,
            handshakes,
            facts,
            ended,
        } = self.run_load(&spec, load, progress, observer.clone());
        self.peer.side.handshakes.extend(handshakes);
        let server = facts.and_then(|facts| EndpointObservation::from_peer(&facts).ok());
        self.peer.has_facts |= server.is_some();
        self.keep_load(result, ended, &observer, server, None)
    }

    fn datagrams(&mut self, planned: &PlannedPhase) -> Result<(), Ended> {
        let spec = self.resolved(planned);
        if spec.rate_bps.is_none() {
            return Err(Ended::Failed(absent::NO_RATE.to_owned()));
        }

        let Finished { result, ended, .. } = self.run_datagrams(&spec);
        ended?;

        if let Some(reason) = unmeasured(&result) {
            return Err(Ended::Failed(reason));
        }

        self.keep(result);
        Ok(())
    }

    fn add_absent(&mut self) {
        let facts = (!self.peer.has_facts).then_some(absent::SERVER_FACTS);
        // A test of iperf3 keeps the number of streams that it began with.
        let single = (self.test.spec.streams != Some(1)).then_some(absent::SINGLE_STREAM);
        let more = [Some(absent::SERVER_RTT), facts, single];
        self.lack_all(more.into_iter().flatten(), IPERF3_ONLY);
    }
}

/// A load whose number of streams stays. Connections that the busy server refuses must end before
/// it, so its end is known.
fn fixed(load: LoadPlan, spec: &PathSpec, method: Method) -> LoadPlan {
    let streams = spec.streams.unwrap_or(STREAMS).max(1).min(load.streams_max);
    let duration_min = if method == Method::Busy {
        load.duration_max
    } else {
        load.duration_min
    };

    LoadPlan {
        duration_min,
        ..load.with_streams(streams)
    }
}
