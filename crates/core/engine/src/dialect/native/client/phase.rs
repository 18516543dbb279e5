//! Runs one phase: tokens, flows, probes, and what the kind of phase needs.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_model::path::{
    ConcurrentProbes, EndpointPhase, PathDirection, PhaseKind, PhaseResult, PhaseSpec, absent,
};
use linerate_model::units::ns_to_s;
use linerate_native::wire::datagram::FlowId;
use linerate_native::wire::hex;
use linerate_native::wire::message::Ready;
use linerate_sys::clock;
use linerate_sys::poll::Interest;

use super::control::NativeClient;
use super::event_loop::{EventLoop, FLOW};
use super::flow::{self, Granted, ReserveFlow};
use super::load_phase::{self, LoadController, LoadObservers};
use super::prober::{ConnectionPlan, FlowPlan, ProbePlan, Prober, SILENCE_NS};
use super::transactions::{self, TransactionPlan};
use super::{NativeError, path_mtu};
use crate::interrupts::Interrupts;
use crate::wait::time_until;

/// Between two UDP probes of a flow.
const PROBE_PERIOD_NS: u64 = 5_000_000;
/// Between two probes over new connections.
const CONNECTION_PERIOD_NS: u64 = 100_000_000;
/// Most probe flows that a server grants.
const FLOWS_MAX: u32 = 8;
/// Shortest round trip that is assumed of that of a TCP handshake.
const RTT_MIN: Duration = Duration::from_millis(1);

impl NativeClient {
    /// Runs a phase. `steering` follows a load; other phases last as long as `spec` allows. `dscps`
    /// are those of further probe flows.
    ///
    /// # Errors
    /// See [`NativeError`]; of a load that the user interrupts, `result` has what was measured
    /// until then.
    pub fn run_phase(
        &mut self,
        spec: &PhaseSpec,
        dscps: &[u8],
        steering: Option<LoadController<'_>>,
        interrupts: &dyn Interrupts,
        result: &mut PhaseResult,
    ) -> Result<(), NativeError> {
        let events = &mut EventLoop::new(interrupts)?;
        let ready = self.open_phase(&with_further_flows(spec), events)?;
        result.started_ns = clock::monotonic_ns();

        match (spec.kind, steering) {
            (PhaseKind::Size, _) => self.examine_sizes(spec, &ready, dscps, events, result),
            (PhaseKind::Down | PhaseKind::Up | PhaseKind::Both, Some(steering)) => {
                let observers = LoadObservers {
                    prober: self.start_prober(spec, &ready, dscps, events, result)?,
                    hops: self.open_hops(spec, hop_flow(spec), dscps, &ready, events, result)?,
                };
                let tokens = tokens(&ready.streams);
                load_phase::run(self, spec, tokens, observers, steering, events, result)
            }
            (PhaseKind::Datagrams | PhaseKind::Pace | PhaseKind::Pps, _) => {
                self.run_datagrams(spec, &ready, events, result)
            }
            (PhaseKind::Rr | PhaseKind::Crr | PhaseKind::Cps, _) => {
                self.run_transactions(spec, &ready, events, result)
            }
            _ => {
                self.start_phase(events)?;
                let prober = self.start_prober(spec, &ready, dscps, events, result)?;
                let hops = self.open_hops(spec, hop_flow(spec), dscps, &ready, events, result)?;
                self.start_hops(spec, hops)?;

                let paused = self.pause(spec.duration_max, events);
                self.end_hops(result);
                if let Some(prober) = prober {
                    self.take_probes(prober, result);
                }

                result.remote = Some(self.stop_phase(events)?);
                paused
            }
        }
    }

    /// Opens the flows and starts the probes; `None` where there is nothing to probe.
    fn start_prober(
        &mut self,
        spec: &PhaseSpec,
        ready: &Ready,
        dscps: &[u8],
        events: &mut EventLoop<'_>,
        result: &mut PhaseResult,
    ) -> Result<Option<Prober>, NativeError> {
        let mut flows: Vec<FlowPlan> = Vec::new();
        let all = self.granted(ready);
        let mut spare = all
            .get(1 + dscps.len())
            .map(|granted| self.reserve(*granted));

        let marks = std::iter::once(spec.dscp).chain(dscps.iter().copied());
        let wanted = all.into_iter().take(spec.probe_flows as usize);
        for (granted, dscp) in wanted.zip(marks) {
            let Some(fd) = self.open_flow(self.reserve(granted), events)? else {
                result
                    .absent
                    .push(("udp".to_owned(), absent::UDP_BLOCKED.to_owned()));
                break;
            };
            flows.push(FlowPlan {
                fd,
                id: granted.id,
                dscp,
                spare: spare.take(),
            });
        }

        let probes = tokens(&ready.probes);
        let connections = (!probes.is_empty()).then(|| ConnectionPlan {
            target: self.probe_target(spec.dscp),
            tokens: probes,
            period_ns: CONNECTION_PERIOD_NS,
            tls: self.tls.clone(),
        });
        if flows.is_empty() && connections.is_none() {
            return Ok(None);
        }

        let plan = ProbePlan {
            flows,
            period_ns: PROBE_PERIOD_NS,
            connections,
        };
        Ok(Some(Prober::start(plan)?))
    }

    /// Moves what the probes found to the result.
    pub(super) fn take_probes(&self, prober: Prober, result: &mut PhaseResult) {
        let found = prober.finish();
        if found.replaced > 0 {
            let text = format!(
                "no UDP probe was answered for {} s or more; the flow was reopened",
                ns_to_s(SILENCE_NS)
            );
            result.local.notes.push(text.clone());
            result.absent.push((absent::PROBES.to_owned(), text));
        }

        let mut flows = found.udp.into_iter();
        result.udp = flows.next().map(|(_, samples)| samples).unwrap_or_default();
        let tos = |direction| move |(sent, received): (u8, u8)| (direction, sent, received);
        let up = found.tos_up.into_iter().map(tos(PathDirection::Up));
        let down = found.tos_down.into_iter().map(tos(PathDirection::Down));

        result.tos = path_mtu::distinct(
            result
                .tos
                .drain(..)
                .chain(up)
                .chain(down)
                .collect::<Vec<_>>(),
        );
        let ConcurrentProbes { tcp, tls, echo } = found.connections;
        if found.refused > 0 && tls.iter().all(|sample| sample.received_ns.is_none()) {
            let text = format!(
                "the server refused {} of {} connections",
                found.refused,
                tcp.len()
            );
            result.absent.push((absent::PROBES.to_owned(), text));
            result.refused += found.refused;
        }

        result.foreign = ConcurrentProbes { tcp, tls, echo };
        result.udp_by_dscp = flows.collect();
    }

    pub(super) fn granted(&self, ready: &Ready) -> Vec<Granted> {
        let granted = ready.flows.iter().filter_map(|grant| {
            Some(Granted {
                id: self.flow_id(grant.flow),
                token: hex::decode(&grant.token)?,
            })
        });
        granted.collect()
    }

    /// Opens a flow; `None` when no request is answered.
    pub(super) fn open_flow(
        &mut self,
        flow: ReserveFlow,
        events: &mut EventLoop<'_>,
    ) -> Result<Option<OwnedFd>, NativeError> {
        let mut opening = flow.open(clock::monotonic_ns())?;
        events.epoll.add(&opening.fd, FLOW, Interest::READ)?;
        while opening.is_awaited() {
            if opening.advance(clock::monotonic_ns()) {
                events.epoll.remove(&opening.fd)?;
                return Ok(Some(opening.fd));
            }

            self.turn(events, time_until(opening.next_ns))?;
        }

        Ok(None)
    }

    /// Opens the first flow that the server grants; `None` without one, or when no request is
    /// answered.
    pub(super) fn open_first_flow(
        &mut self,
        ready: &Ready,
        events: &mut EventLoop<'_>,
    ) -> Result<Option<(FlowId, OwnedFd)>, NativeError> {
        let Some(granted) = self.granted(ready).into_iter().next() else {
            return Ok(None);
        };
        let opened = self.open_flow(self.reserve(granted), events)?;
        Ok(opened.map(|fd| (granted.id, fd)))
    }

    pub(super) fn reserve(&self, granted: Granted) -> ReserveFlow {
        let target = self.probe_target(0);
        ReserveFlow {
            remote: target.remote,
            from: target.bind,
            local: None,
            granted,
        }
    }

    fn examine_sizes(
        &mut self,
        spec: &PhaseSpec,
        ready: &Ready,
        dscps: &[u8],
        events: &mut EventLoop<'_>,
        result: &mut PhaseResult,
    ) -> Result<(), NativeError> {
        self.start_phase(events)?;
        if let Some((id, fd)) = self.open_first_flow(ready, events)? {
            let marks: Vec<u8> = std::iter::once(spec.dscp)
                .chain(dscps.iter().copied())
                .collect();
            // Meanwhile the hops are found: later phases need only measure them.
            let hops = self.open_hops(spec, hop_flow(spec), dscps, ready, events, result)?;
            self.start_hops(spec, hops)?;
            // The TCP handshake of the control connection is a round trip.
            let rtt = self.peer.connect_time.max(RTT_MIN);
            let found = path_mtu::examine(self, events, &fd, id, rtt, &marks);

            flow::close(&fd, id);
            self.end_hops(result);
            let found = found?;
            result.size = found.size;
            result.tos = found.tos;
        } else {
            result
                .absent
                .push(("udp".to_owned(), absent::UDP_BLOCKED.to_owned()));
        }

        result.remote = Some(self.stop_phase(events)?);
        Ok(())
    }

    fn run_transactions(
        &mut self,
        spec: &PhaseSpec,
        ready: &Ready,
        events: &mut EventLoop<'_>,
        result: &mut PhaseResult,
    ) -> Result<(), NativeError> {
        let (Some(token), Some(sizes)) = (tokens(&ready.streams).pop(), spec.transaction) else {
            return Err(NativeError::Protocol(
                "the server grants no stream".to_owned(),
            ));
        };
        self.start_phase(events)?;
        let target = self.probe_target(spec.dscp);
        let connections_max = self.welcome().limits.connections_max;
        let plan = TransactionPlan::new(spec, sizes, target, token, connections_max);
        let started = Instant::now();
        let drops = self.drop_meter();
        let cpu = crate::measure::cpu_usage::CpuMeter::start(clock::monotonic_ns());
        let done = transactions::run(&plan, spec.connections_per_s, self, events);

        result.local = EndpointPhase {
            elapsed_ns: clock::as_ns(started.elapsed()),
            cpu_ns: cpu.cpu_ns(),
            ..EndpointPhase::default()
        };
        if let Some(drops) = drops {
            drops.fill(&mut result.local);
        }

        result.remote = Some(self.stop_phase(events)?);
        let done = done?;
        if done.completed == 0 {
            result.refused = done.refused;
        }

        result.transactions = done.samples;
        result.local.transactions = Some(done.completed);
        result.local.notes = done.notes;
        Ok(())
    }
}

/// The same phase with the flows that only this end knows of: one in reserve, if it has probes and
/// the server grants another one, and that of the trace of the hops.
fn with_further_flows(spec: &PhaseSpec) -> PhaseSpec {
    PhaseSpec {
        probe_flows: hop_flow(spec) + u32::from(spec.hops),
        ..spec.clone()
    }
}

/// Place of the flow of the trace among those that the server grants: behind all others.
fn hop_flow(spec: &PhaseSpec) -> u32 {
    let spare = spec.kind.has_probes() && (1..FLOWS_MAX).contains(&spec.probe_flows);
    spec.probe_flows + u32::from(spare)
}

fn tokens(texts: &[String]) -> Vec<[u8; 16]> {
    texts.iter().filter_map(|text| hex::decode(text)).collect()
}
