//! Hops of the path from the client, traced beside a phase.

use std::net::SocketAddr;

use linerate_model::path::{PhaseResult, PhaseSpec, absent};
use linerate_native::wire::message::Ready;
use linerate_sys::socket;

use super::control::NativeClient;
use super::event_loop::EventLoop;
use super::flow::ReserveFlow;
use super::{NativeError, bind};
use crate::hops::{HopSockets, PathTrace};

/// What the phases have in common.
#[derive(Default)]
pub(super) struct KnownHops {
    trace: PathTrace,
    /// Local end of the flow, which all phases have: another port may be routed another way.
    local: Option<SocketAddr>,
}

impl NativeClient {
    /// Opens the flow of the trace, the one at this place of those that the server grants. `None`
    /// where it is not wanted, and where this host or the server has no flow for it.
    pub(super) fn open_hops(
        &mut self,
        spec: &PhaseSpec,
        place: u32,
        dscps: &[u8],
        ready: &Ready,
        events: &mut EventLoop<'_>,
        result: &mut PhaseResult,
    ) -> Result<Option<HopSockets>, NativeError> {
        // A server that opens no flow of probes opens none for this either.
        let is_blocked = result.absent.iter().any(|(figure, _)| figure == "udp");
        if !spec.hops || is_blocked {
            return Ok(None);
        }

        let mut lack = |reason: String| result.absent.push((absent::HOPS.to_owned(), reason));
        let granted = self.granted(ready).into_iter().nth(place as usize);
        let Some(granted) = granted else {
            lack("the server grants no flow for it".to_owned());
            return Ok(None);
        };
        let flow = ReserveFlow {
            local: self.hops.local,
            ..self.reserve(granted)
        };
        let Some(fd) = self.open_flow(flow, events)? else {
            lack(absent::UDP_BLOCKED.to_owned());
            return Ok(None);
        };

        self.hops.local = socket::local_addr(&fd).ok();
        let target = self.probe_target(0);
        let dscps = [&[spec.dscp], dscps].concat();
        let sockets = HopSockets::of_flow(fd, granted.id, &target.remote, &dscps, |fd| {
            bind(fd, &target.bind, &target.remote).map_err(std::io::Error::from)
        });
        match sockets {
            Ok(sockets) => Ok(Some(sockets)),
            Err(error) => {
                lack(error.to_string());
                Ok(None)
            }
        }
    }

    /// Begins to trace.
    pub(super) fn start_hops(
        &mut self,
        phase: &PhaseSpec,
        sockets: Option<HopSockets>,
    ) -> Result<(), NativeError> {
        if let Some(sockets) = sockets {
            self.hops.trace.start(phase, || Ok(sockets))?;
        }
        Ok(())
    }

    /// Ends the trace; the result has its answers. The server opens a flow for each phase.
    pub(super) fn end_hops(&mut self, result: &mut PhaseResult) {
        result.local.hops = self.hops.trace.end();
        self.hops.trace.close();
    }
}
