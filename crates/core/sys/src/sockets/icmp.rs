//! ICMP echo without privileges: datagram sockets of `IPPROTO_ICMP` and `IPPROTO_ICMPV6` (icmp(7)).
//!
//! The kernel writes the identifier and the checksum of a request, and hands a socket the replies
//! with its identifier alone. Whether a user may make such a socket is decided by
//! `net.ipv4.ping_group_range` (Linux 3.0; IPv6 since 3.11).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::{During, Result};
use crate::udp::recv_from;

/// Type of an echo request and of its reply, RFC 792.
const ECHO_V4: (u8, u8) = (8, 0);
/// The same of ICMPv6, RFC 4443 section 4.
const ECHO_V6: (u8, u8) = (128, 129);
/// Type, code, checksum, identifier, sequence number.
const HEAD_LEN: usize = 8;
/// Payload of a request in bytes: with the headers of IPv4 and ICMP 64 bytes, as ping(8) sends by
/// default less 20.
const PAYLOAD_LEN: usize = 36;

/// Sends echo requests to one host and receives its replies; non-blocking.
#[derive(Debug)]
pub struct EchoSocket {
    socket: Socket,
    remote: IpAddr,
}

impl EchoSocket {
    /// A socket for requests to `remote`.
    ///
    /// # Errors
    /// `EACCES` where `net.ipv4.ping_group_range` does not include a group of this process; else
    /// the operating system's.
    pub fn open(remote: IpAddr) -> Result<Self> {
        let (domain, protocol) = match remote {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new_raw(domain, Type::DGRAM.cloexec().nonblocking(), Some(protocol));
        Ok(Self {
            socket: socket.during("socket", format_args!("icmp echo {remote}"))?,
            remote,
        })
    }

    /// Sends a request with this sequence number.
    ///
    /// # Errors
    /// The operating system's, for instance `ENETUNREACH`, or `WouldBlock` when the send buffer is
    /// full.
    pub fn send(&self, sequence: u16) -> io::Result<()> {
        let request = request(self.remote, sequence);
        self.socket
            .send_to(&request, &SockAddr::from(SocketAddr::new(self.remote, 0)))?;
        Ok(())
    }

    /// The sequence number of the next reply from the host; `None` when none has arrived. Other
    /// messages are skipped.
    ///
    /// # Errors
    /// The operating system's. Errors that an ICMP message reports, such as `EHOSTUNREACH`, are
    /// returned once.
    pub fn receive(&self) -> io::Result<Option<u16>> {
        let mut message = [0; HEAD_LEN + PAYLOAD_LEN];
        loop {
            match recv_from(&self.socket, &mut message) {
                Ok((len, from)) => {
                    let sequence = message
                        .get(..len)
                        .and_then(|reply| reply_sequence(self.remote, reply));
                    if from.ip() == self.remote && sequence.is_some() {
                        return Ok(sequence);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A request. Checksum and identifier are left to the kernel.
fn request(remote: IpAddr, sequence: u16) -> [u8; HEAD_LEN + PAYLOAD_LEN] {
    let mut message = [0; HEAD_LEN + PAYLOAD_LEN];
    let (kind, _) = types(remote);
    let [high, low] = sequence.to_be_bytes();
    (message[0], message[6], message[7]) = (kind, high, low);
    message
}

/// The sequence number of an echo reply; `None` of another message.
fn reply_sequence(remote: IpAddr, message: &[u8]) -> Option<u16> {
    let (_, reply) = types(remote);
    match message {
        [kind, 0, _, _, _, _, high, low, ..] if *kind == reply => {
            Some(u16::from_be_bytes([*high, *low]))
        }
        _ => None,
    }
}

fn types(remote: IpAddr) -> (u8, u8) {
    if remote.is_ipv4() { ECHO_V4 } else { ECHO_V6 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::poll::{Interest, wait_fd};

    #[test]
    fn messages_have_the_layout_of_the_rfcs() {
        let v4: IpAddr = [192, 0, 2, 1].into();
        let v6: IpAddr = "2001:db8::1".parse().expect("an address");
        for (remote, request_type, reply_type) in [(v4, 8, 0), (v6, 128, 129)] {
            let mut message = request(remote, 0x1234);
            assert_eq!(message[..8], [request_type, 0, 0, 0, 0, 0, 0x12, 0x34]);
            assert_eq!(
                reply_sequence(remote, &message),
                None,
                "a request is no reply"
            );
            message[0] = reply_type;
            assert_eq!(reply_sequence(remote, &message), Some(0x1234));
            assert_eq!(reply_sequence(remote, &message[..7]), None, "cut short");
        }
    }

    #[test]
    fn this_host_answers_where_the_kernel_allows_requests() {
        let Ok(echo) = EchoSocket::open([127, 0, 0, 1].into()) else {
            return;
        };
        echo.send(7).expect("sent");
        let is_ready =
            wait_fd(&echo, Interest::READ, Some(Duration::from_secs(5))).expect("a wait");
        assert!(is_ready);
        assert_eq!(echo.receive().expect("received"), Some(7));
        assert_eq!(echo.receive().expect("received"), None);
    }
}
