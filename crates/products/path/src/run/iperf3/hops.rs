//! Hops of the path to a server of iperf3, from this end alone.

use std::io;
use std::net::SocketAddr;

use linerate_engine::dialect::native::client::bind;
use linerate_engine::hops::{HopSockets, PathTrace};
use linerate_model::path::HopAnswers;
use linerate_model::spec::BindSpec;

use crate::spec::PathTest;

/// The trace of an examination.
pub(super) struct ServerHops {
    trace: PathTrace,
    sockets: Option<HopSockets>,
    remote: SocketAddr,
    bind: BindSpec,
}

/// First port of traceroute(8), which hosts answer with "port unreachable". The server's own would
/// take a probe for the first datagram of a stream.
const PORT: u16 = 33434;

impl ServerHops {
    pub(super) fn new(test: &PathTest, remote: SocketAddr) -> Self {
        Self {
            trace: PathTrace::default(),
            sockets: None,
            remote: SocketAddr::new(remote.ip(), PORT),
            bind: test.target.bind.clone(),
        }
    }

    /// Traces until [`Self::end`]; false where this host has no sockets for it.
    pub(super) fn start(&mut self) -> bool {
        let sockets = match self.sockets.take() {
            Some(sockets) => Ok(sockets),
            None => HopSockets::open(&self.remote, |fd| {
                bind(fd, &self.bind, &self.remote).map_err(io::Error::from)
            }),
        };
        sockets
            .and_then(|sockets| self.trace.start(sockets))
            .is_ok()
    }

    /// What was found since the start.
    pub(super) fn end(&mut self) -> Vec<HopAnswers> {
        let Some((answers, sockets)) = self.trace.end() else {
            return Vec::new();
        };
        self.sockets = Some(sockets);
        answers
    }
}
