//! Hops of the path to the client of a session, traced beside its phases.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use linerate_sys::{socket, sockopt};

use crate::hops::HopSockets;

/// Sockets from the address of the control connection to that of the client, and to no other: a
/// client cannot direct the trace at another host. A client rarely has a UDP socket with the number
/// of its control connection, so that its host answers "port unreachable".
pub(super) fn open(
    control: BorrowedFd<'_>,
    device: Option<&str>,
    dscp: u8,
) -> io::Result<HopSockets> {
    let local = socket::local_addr(control)?;
    let remote = socket::peer_addr(control)?;
    HopSockets::open(&remote, &[dscp], |fd| {
        if let Some(device) = device {
            sockopt::bind_device(fd, device)?;
        }
        Ok(socket::bind(fd, &SocketAddr::new(local.ip(), 0))?)
    })
}
