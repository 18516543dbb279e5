//! Conversations with the kernel over netlink, as bytes. What the bytes mean is not known here.

use std::io::{Read, Write};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{During, Result};

/// Protocols of netlink (`linux/netlink.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Links, addresses, routes, queueing disciplines: `NETLINK_ROUTE`.
    Route,
    /// Families that are resolved by name, such as ethtool: `NETLINK_GENERIC`.
    Generic,
    /// Firewall tables and rules: `NETLINK_NETFILTER`. Asking takes `CAP_NET_ADMIN`.
    Netfilter,
    /// Sockets of this network namespace: `NETLINK_SOCK_DIAG` (sock_diag(7)).
    SockDiag,
    /// Security associations of IPsec: `NETLINK_XFRM`. Asking takes `CAP_NET_ADMIN`.
    Xfrm,
}

/// A socket to the kernel.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
}

/// The kernel never fills more than this with one message of a dump (`net/netlink/af_netlink.c`).
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The kernel answers at once; a longer wait means that something else is wrong.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

impl Netlink {
    /// Opens a socket.
    ///
    /// # Errors
    /// The operating system's; `EPROTONOSUPPORT` where the kernel has no such protocol.
    pub fn open(family: Family) -> Result<Self> {
        let (name, protocol) = match family {
            Family::Route => ("NETLINK_ROUTE", libc::NETLINK_ROUTE),
            Family::Generic => ("NETLINK_GENERIC", libc::NETLINK_GENERIC),
            Family::Netfilter => ("NETLINK_NETFILTER", libc::NETLINK_NETFILTER),
            Family::SockDiag => ("NETLINK_SOCK_DIAG", libc::NETLINK_SOCK_DIAG),
            Family::Xfrm => ("NETLINK_XFRM", libc::NETLINK_XFRM),
        };
        let domain = Domain::from(libc::AF_NETLINK);
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(protocol)))
            .during("socket", name)?;
        socket
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .during("setsockopt SO_RCVTIMEO", name)?;

        Ok(Self { socket })
    }

    /// Sends one request to the kernel.
    ///
    /// # Errors
    /// The operating system's.
    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        self.socket.write_all(request).during("send", "netlink")
    }

    /// Waits for the next datagram of an answer, one or more messages, and returns its part of
    /// `room`, which [`ANSWER_BYTES_MAX`] bytes make large enough for any.
    ///
    /// # Errors
    /// The operating system's; `EAGAIN` when the kernel does not answer.
    pub fn receive<'a>(&mut self, room: &'a mut [u8]) -> Result<&'a [u8]> {
        let length = self.socket.read(room).during("recv", "netlink")?;
        Ok(room.get(..length).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_a_request_it_cannot_know() {
        let mut netlink = Netlink::open(Family::Route).expect("every kernel has rtnetlink");
        // Length 16, type 0x7fff, flags NLM_F_REQUEST | NLM_F_ACK, sequence 7.
        let mut request = Vec::new();
        request.extend(16_u32.to_ne_bytes());
        request.extend(0x7fff_u16.to_ne_bytes());
        request.extend(5_u16.to_ne_bytes());
        request.extend(7_u32.to_ne_bytes());
        request.extend(0_u32.to_ne_bytes());
        netlink.send(&request).expect("send");

        let mut room = [0; ANSWER_BYTES_MAX];
        let answer = netlink.receive(&mut room).expect("an error message");
        assert_eq!(
            answer.get(4..6),
            Some(2_u16.to_ne_bytes().as_slice()),
            "NLMSG_ERROR"
        );
        assert_eq!(
            answer.get(8..12),
            Some(7_u32.to_ne_bytes().as_slice()),
            "our sequence number"
        );
    }
}
