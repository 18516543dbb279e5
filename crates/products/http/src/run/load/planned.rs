//! A load with everything that this host, the resolver and the server add to the command line.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_doctor::http::run_flags;
use linerate_model::http::LoadResult;
use linerate_model::outcome::Error;
use linerate_model::printable::printable_start;
use linerate_sys::interfaces;

use super::spec::LoadPlan;
use crate::load::{Breaker, LoadSpec};
use crate::probe::ProbeResult;
use crate::run::progress::SecondsPrinter;
use crate::run::requests::CellMark;
use crate::run::sampled_load::{BothSides, Observed};
use crate::run::server_side::ServerSide;
use crate::run::{Stop, generator, protocol_name};
use crate::safety_limits::{self, Demand, TargetOwnership, TargetScope};
use crate::target::Target;

/// Longest name of a server that is shown.
const SERVER_CHARS_MAX: usize = 80;

/// A load that can be run: resolved, permitted, and answered once.
pub(super) struct PlannedLoad {
    /// The server and the path.
    pub target: Target,
    /// The load with addresses and ports.
    pub spec: LoadSpec,
    /// First address of the server.
    pub address: SocketAddr,
    /// The control channel of the server; `None` where there is none.
    pub side: Option<ServerSide>,
    /// Answer to the request before the load.
    pub answer: ProbeResult,
    /// Rate of the path in bit/s as the user knows it.
    pub line_rate_bps: Option<f64>,
    /// Threads of the generator; `None` for the CPUs this process may use.
    pub threads: Option<u32>,
    processes: Option<u32>,
    scope: TargetScope,
    claims: TargetOwnership,
    /// Most bytes that the load may receive.
    bytes_max: Option<u64>,
    tolerates_failures: bool,
}

impl PlannedLoad {
    /// Finds the server and its control channel, checks the limits, and sends one request.
    ///
    /// # Errors
    /// Options that this host or the server does not allow, or a server that does not answer.
    pub(super) fn resolve(plan: &LoadPlan) -> Result<Self, Error> {
        let opening = &plan.opening;
        let spec = generator::completed(plan.spec.clone(), &plan.target, opening)?;
        let address = *spec
            .destinations
            .first()
            .ok_or_else(|| Error::usage("the URL names no port"))?;

        let wait_max = Duration::from_nanos(spec.connect_timeout_ns);
        let side = ServerSide::contact(address, &plan.control, wait_max)?;
        let claims = ServerSide::ownership(side.as_ref(), address, plan.claims);
        let scope = TargetScope::of(address.ip(), &interfaces::addresses());
        // Before the first request: a server beyond the limits gets none.
        let bytes_max =
            safety_limits::check(&Demand::of(&spec), scope, claims).map_err(Error::usage)?;
        let answer = generator::probe_server(&spec, address)?;

        Ok(Self {
            target: plan.target.clone(),
            spec,
            address,
            side,
            answer,
            line_rate_bps: plan.line_rate_bps,
            threads: opening.threads,
            processes: opening.processes,
            scope,
            claims,
            bytes_max,
            tolerates_failures: plan.tolerates_failures,
        })
    }

    /// Remarks for the user about the key of the server.
    pub(super) fn remarks(&self) -> impl Iterator<Item = &str> {
        let remarks = self.side.iter().flat_map(|side| &side.remarks);
        remarks.map(String::as_str)
    }

    /// `192.0.2.7:8080: status 200, 1024 bytes of body, 118 of header, server nginx`
    pub(super) fn introduction(&self) -> String {
        let answer = &self.answer;
        let server = answer
            .server
            .as_deref()
            .map(|name| printable_start(name, SERVER_CHARS_MAX));
        let head = answer
            .head_bytes
            .map_or_else(String::new, |bytes| format!(", {bytes} of header"));

        format!(
            "{}: {}status {}, {} bytes of body{head}, server {}",
            self.address,
            protocol_name(&answer.protocol),
            answer.status,
            answer.body_bytes,
            server.as_deref().unwrap_or("unnamed"),
        )
    }

    /// # Errors
    /// A server that redirects to another host.
    pub(super) fn refuse_redirection(&self) -> Result<(), Error> {
        let to = self
            .answer
            .location
            .as_deref()
            // `Location` of 201 names a new resource (RFC 9110, section 10.2.2).
            .filter(|_| (300..400).contains(&self.answer.status));
        // A relative reference stays on this host, and is no `Target`.
        let there = to.and_then(|to| to.parse::<Target>().ok());

        match there {
            Some(there) if !there.host.eq_ignore_ascii_case(&self.target.host) => {
                Err(Error::failed(
                    "the server redirects to another host, which is not followed; name that one \
                     if it is yours",
                ))
            }
            _ => Ok(()),
        }
    }

    /// True if the server is foreign, so that a user who wants it is asked.
    pub(super) fn needs_confirmation(&self, asks_first: bool) -> bool {
        asks_first && !self.claims.is_ours && !self.is_local()
    }

    /// True if the server is on this host.
    pub(super) fn is_local(&self) -> bool {
        interfaces::is_local(self.address.ip())
    }

    /// Most bytes that this load may receive from the server.
    ///
    /// # Errors
    /// A load that exceeds the limits of the target.
    pub(super) fn permit(&self, load: &LoadSpec) -> Result<Option<u64>, Error> {
        safety_limits::check(&Demand::of(load), self.scope, self.claims).map_err(Error::usage)
    }

    /// Runs the load with both hosts sampled.
    ///
    /// # Errors
    /// The generator's.
    pub(super) fn measure(
        &mut self,
        stop: &mut Stop,
        mut printer: SecondsPrinter,
    ) -> Result<(LoadResult, BothSides), Error> {
        let are_local = generator::are_local(&self.spec);
        let threads = generator::threads(are_local, self.threads);
        let pool = generator::worker_pool(self.spec.connections, threads, self.processes)?;
        let watch = generator::watch(Some(self.address))?;

        let side = self.side.as_mut();
        printer.begin_load(self.spec.duration_ns + self.spec.warmup_ns);
        let mark = CellMark::named("load");
        let hosts = Observed::new(&watch, side, stop, Some(&mut printer), mark);
        let breaker = Breaker::new(
            self.tolerates_failures || self.claims.is_ours,
            self.bytes_max,
        );
        let found = hosts.run(self.spec.clone(), &pool, breaker);
        printer.close();

        let (mut load, sides) = found?;
        load.flags = run_flags(&load);
        // A response under load that takes as long as one alone shows that the connections are too
        // few: two of them with 1 s each allow 2/s.
        load.alone_ns = Some(linerate_sys::clock::as_ns(self.answer.elapsed));
        Ok((load, sides))
    }
}
