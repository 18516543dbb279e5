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
use std::time::Duration;

use linerate_model::path::{HopAnswers, PhaseSpec};
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
    /// Those of the phases before: other ports may be routed another way.
    sockets: Option<HopSockets>,
    tracer: Option<HopTracer>,
}

impl PathTrace {
    /// Traces beside a phase, in a thread of its own, until [`Self::end`]. `open` makes the sockets,
    /// unless an earlier phase has left some.
    ///
    /// # Errors
    /// Those of `open`, and when the system has no descriptor or thread left.
    pub fn start(
        &mut self,
        phase: &PhaseSpec,
        open: impl FnOnce() -> io::Result<HopSockets>,
    ) -> io::Result<()> {
        let sockets = self.sockets.take().map_or_else(open, Ok)?;
        let tracer = HopTracer::start(sockets, self.known.clone(), measure_after(phase))?;
        self.tracer = Some(tracer);
        Ok(())
    }

    /// What was found since the start; nothing where nothing was started.
    pub fn end(&mut self) -> Vec<HopAnswers> {
        let Some((trace, sockets)) = self.tracer.take().and_then(HopTracer::finish) else {
            return Vec::new();
        };
        self.known = trace;
        self.sockets = Some(sockets);
        self.known.answers()
    }

    /// Closes the sockets: the next phase has others.
    pub(crate) fn close(&mut self) {
        self.sockets = None;
    }
}

/// The hops of a load are measured when all its streams run: routers answer a burst of probes and
/// then one per second, so that most answers were those of the first two seconds, which have one
/// stream (7 ms of queue before 37 ms).
fn measure_after(phase: &PhaseSpec) -> Duration {
    const ONE_STREAM_MAX: Duration = Duration::from_secs(2);

    if phase.kind.load_directions().is_empty() {
        Duration::ZERO
    } else {
        ONE_STREAM_MAX.min(phase.duration_max * 2 / 5)
    }
}
