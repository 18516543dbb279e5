//! Hops of a path: probes with a limited time to live towards the other end, beside a load or
//! without one.
//!
//! The probes of a series have the same addresses and ports, so that routers that distribute flows
//! over several paths keep them on one (ECMP; Paris traceroute). The answers arrive in the error
//! queue of the socket (`IP_RECVERR`, ip(7)), which needs no privilege; the kernel takes only those
//! whose quote has the addresses and ports of the socket.

mod mpls;
mod sockets;
mod trace;
mod tracer;

use std::io;

use linerate_model::path::HopAnswers;
use linerate_native::wire::datagram::HEAD_LEN;
pub use sockets::HopSockets;
use trace::HopTrace;
pub(crate) use tracer::DESCRIPTORS;
use tracer::HopTracer;

/// UDP payload of a probe in bytes.
pub(crate) const PROBE_BYTES: u64 = HEAD_LEN as u64;

/// The trace of a path over several phases: the first one finds the hops, and each measures them.
#[derive(Default)]
pub struct PathTrace {
    known: HopTrace,
    tracer: Option<HopTracer>,
}

impl PathTrace {
    /// Traces in a thread of its own until [`Self::end`].
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub fn start(&mut self, sockets: HopSockets) -> io::Result<()> {
        self.tracer = Some(HopTracer::start(sockets, self.known.clone())?);
        Ok(())
    }

    /// What was found since the start, and the sockets for another phase; `None` where nothing was
    /// started.
    pub fn end(&mut self) -> Option<(Vec<HopAnswers>, HopSockets)> {
        let (trace, sockets) = self.tracer.take()?.finish()?;
        self.known = trace;
        Some((self.known.answers(), sockets))
    }
}
