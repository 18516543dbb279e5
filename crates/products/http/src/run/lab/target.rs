//! The server of an experiment: where it is, whose it is, what it answers.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_model::http::units::nanoseconds;
use linerate_model::outcome::Error;
use linerate_sys::interfaces;

use super::spec::LabSpec;
use crate::plan::cells::{self, PlannedRun};
use crate::plan::estimate;
use crate::probe::{self, ProbeResult, ProbeTarget};
use crate::request::RequestSpec;
use crate::run::server_side::ServerSide;
use crate::run::{generator, probe_error};
use crate::safety_limits::{self, Demand, TargetOwnership, TargetScope};
use crate::target::Target;

/// A server that answered.
#[derive(Debug)]
pub(super) struct TargetServer {
    pub url: Target,
    pub destinations: Vec<SocketAddr>,
    /// Our address on the way there.
    pub client: Option<IpAddr>,
    pub server: Option<ServerSide>,
    pub claims: TargetOwnership,
    pub answer: ProbeResult,
    /// Bodies have the requested size; otherwise that of the one path.
    pub has_sizes: bool,
}

impl TargetServer {
    /// Resolves the server and sends it one request.
    pub(super) fn contact(spec: &LabSpec) -> Result<Self, Error> {
        let target = spec.target.clone();
        let destinations = generator::addresses(&target, &[], None)?;
        let first = *destinations
            .first()
            .ok_or_else(|| Error::usage("the URL names no port"))?;
        let mut control = spec.control.clone();
        control.server = control.server.or_else(|| spec.plan.control.clone());

        let server = ServerSide::contact(first, &control, CONTROL_WAIT_MAX)?;
        let (answer, has_sizes) = ask(spec, first)?;
        let claims = ServerSide::ownership(server.as_ref(), first, spec.claims);
        Ok(Self {
            client: generator::local_address(first),
            url: target,
            destinations,
            server,
            claims,
            answer,
            has_sizes,
        })
    }

    /// The first address.
    pub(super) fn address(&self) -> SocketAddr {
        // `contact` refuses a server without an address.
        self.destinations
            .first()
            .copied()
            .unwrap_or_else(|| SocketAddr::from(([0; 4], 0)))
    }

    pub(super) fn is_local(&self) -> bool {
        interfaces::is_local(self.address().ip())
    }

    /// The request for bodies of this size.
    pub(super) fn request(&self, payload_bytes: u64) -> Result<Vec<u8>, Error> {
        let mut target = self.url.clone();
        if self.has_sizes {
            target.path = path_of(payload_bytes);
        }
        RequestSpec::get().bytes(&target).map_err(Error::usage)
    }

    /// The experiment as it can be made here: a server with one body only has one payload.
    pub(super) fn adapted(&self, spec: &LabSpec) -> LabSpec {
        let mut spec = spec.clone();
        if !self.has_sizes {
            let plan = &mut spec.plan;
            for payloads in [
                &mut plan.payloads.payloads_bytes,
                &mut plan.matrix.payloads_bytes,
                &mut plan.c10k.active.payloads_bytes,
            ] {
                // All sizes would be the same cell.
                payloads.truncate(1);
                payloads
                    .iter_mut()
                    .for_each(|payload| *payload = self.answer.body_bytes);
            }

            plan.c10k.low_rate.payload_bytes = self.answer.body_bytes;
        }

        spec
    }

    /// Checks that this server permits all of an experiment; returns the most bytes a run may
    /// receive.
    pub(super) fn permit(&self, spec: &LabSpec, runs: &[PlannedRun]) -> Result<Option<u64>, Error> {
        let scope = TargetScope::of(self.address().ip(), &interfaces::addresses());
        let mut bytes_max = None;

        for run in runs {
            let demand = Demand {
                connections: run.key.connections,
                mode: cells::mode(&spec.plan, &run.key),
                duration_ns: nanoseconds(
                    spec.plan.defaults.warmup + estimate::window(&spec.plan, &run.key),
                ),
            };
            // The limit follows from the scope and the ownership, so it is the same for all runs.
            bytes_max = safety_limits::check(&demand, scope, self.claims)
                .map_err(|why| Error::usage(format!("{}: {why}", run.key.name())))?;
        }

        Ok(bytes_max)
    }
}

/// Sends one request: for linerate's payloads where the server has them, else for the path of the
/// URL.
fn ask(spec: &LabSpec, address: SocketAddr) -> Result<(ProbeResult, bool), Error> {
    let target = &spec.target;
    let source = &spec.plan.source;
    let ports_skipped = generator::reserved_ports();
    let contact = ProbeTarget {
        address,
        local: generator::local_end(address, &source.addresses, source.ports, &ports_skipped),
        protocol: &spec.protocol,
        connect_timeout: TIMEOUT,
        timeout: TIMEOUT,
    };

    let once = |path: &str| {
        let target = Target {
            path: path.to_owned(),
            ..target.clone()
        };
        let request = RequestSpec::get().bytes(&target).map_err(Error::usage)?;
        probe::send(contact, &request, false).map_err(probe_error)
    };
    // A path in the URL is what the user tests.
    if target.path == "/" {
        let sized = once(&path_of(PROBED_BYTES))?;
        if sized.status == 200 && sized.body_bytes == PROBED_BYTES {
            return Ok((sized, true));
        }
    }

    Ok((once(&target.path)?, false))
}

fn path_of(payload_bytes: u64) -> String {
    format!("/b/{payload_bytes}")
}

const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a control channel that may not exist.
const CONTROL_WAIT_MAX: Duration = Duration::from_secs(10);
/// A size no other server answers by accident.
const PROBED_BYTES: u64 = 1023;
