//! Errors of single datagrams, as the network or this host reports them (`IP_RECVERR`,
//! `IPV6_RECVERR`; ip(7), ipv6(7)).

use std::io;
use std::os::fd::AsFd;

use super::message::recv_attached;

/// One entry of the error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// The error as a number (errno(3)): `EMSGSIZE`, `EHOSTUNREACH`, `ECONNREFUSED`. 0 in entries
    /// that are no errors.
    pub errno: i32,
    /// Additional information: the MTU in bytes with `EMSGSIZE`.
    info: u32,
}

impl QueuedError {
    /// Largest packet, IP header included, that the link takes that refused this one. `None` for
    /// other errors, and for a router that does not state it (before RFC 1191).
    pub fn mtu_bytes(&self) -> Option<u32> {
        Some(self.info).filter(|mtu| self.errno == libc::EMSGSIZE && *mtu > 0)
    }

    /// `struct sock_extended_err` (`include/uapi/linux/errqueue.h`): errno 4, origin 1, type 1,
    /// code 1, padding 1, information 4, data 4.
    fn parse(data: &[u8]) -> Option<Self> {
        let &[e0, e1, e2, e3, _, _, _, _, i0, i1, i2, i3, ..] = data.first_chunk::<16>()?;
        Some(Self {
            errno: i32::from_ne_bytes([e0, e1, e2, e3]),
            info: u32::from_ne_bytes([i0, i1, i2, i3]),
        })
    }
}

/// Takes the oldest entry of the error queue (recvmsg(2), `MSG_ERRQUEUE`), on a socket with
/// [`crate::sockopt::set_receive_errors`]. One entry per call; the kernel bounds the queue by the
/// receive buffer.
///
/// An ICMP message is also the pending error of the socket: the next call on it fails with the same
/// number, unless the queue is emptied before. A non-empty queue is an error condition to poll(2).
///
/// # Errors
/// `WouldBlock` when the queue is empty; `InvalidData` for an entry without an extended error; else
/// the operating system's.
pub fn take_error(fd: impl AsFd) -> io::Result<QueuedError> {
    let (_, attached) = recv_attached(fd, &mut [], libc::MSG_ERRQUEUE)?;
    let error = attached.error.as_deref().and_then(QueuedError::parse);
    error.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_error_is_read_unless_it_is_cut() {
        // "Packet too big" (RFC 4443 section 3.2) with MTU 1280, laid out by hand.
        let mut bytes = (libc::EMSGSIZE).to_ne_bytes().to_vec();
        bytes.extend([3, 2, 0, 0]);
        bytes.extend(1280_u32.to_ne_bytes());
        bytes.extend([0; 4]);

        let error = QueuedError::parse(&bytes).expect("complete");
        assert_eq!((error.errno, error.mtu_bytes()), (90, Some(1280)));
        assert_eq!(QueuedError::parse(&bytes[..15]), None);
    }

    #[test]
    fn only_a_size_error_with_a_value_has_an_mtu() {
        let error = |errno, info| QueuedError { errno, info };
        assert_eq!(error(libc::EMSGSIZE, 1400).mtu_bytes(), Some(1400));
        assert_eq!(error(libc::EMSGSIZE, 0).mtu_bytes(), None);
        assert_eq!(error(libc::EHOSTUNREACH, 1400).mtu_bytes(), None);
    }
}
