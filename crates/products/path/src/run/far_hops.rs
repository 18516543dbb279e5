//! Hops of the path to a server of another protocol, from this end alone.

use std::io;
use std::net::SocketAddr;

use linerate_engine::dialect::native::client::bind;
use linerate_engine::hops::HopSockets;

use crate::spec::PathTest;

/// First port of traceroute(8), which hosts answer with "port unreachable". The server's own would
/// take a probe for the first datagram of a stream.
const PORT: u16 = 33434;

/// Sockets of the trace.
pub(super) fn open(test: &PathTest, server: SocketAddr) -> io::Result<HopSockets> {
    let remote = SocketAddr::new(server.ip(), PORT);
    let dscps = [&[test.spec.dscp], test.spec.probe_dscps.as_slice()].concat();
    HopSockets::open(&remote, &dscps, |fd| {
        bind(fd, &test.target.bind, &remote).map_err(io::Error::from)
    })
}
