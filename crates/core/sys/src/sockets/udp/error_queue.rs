//! Errors of single datagrams, as the network or this host reports them (`IP_RECVERR`,
//! `IPV6_RECVERR`; ip(7), ipv6(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use super::message::{arrival_ns, recv_attached};
use crate::clock::RealtimeOffset;
use crate::socket::unmap;
use crate::syscall::socket_addr_in;

/// Where an error begins (`ee_origin`, `include/uapi/linux/errqueue.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// This host: the datagram did not leave it.
    Local,
    /// An ICMP message.
    Icmp,
    /// An ICMPv6 message.
    Icmp6,
    /// Another entry of the error queue, such as returned memory of [`crate::zerocopy`]; the number
    /// is the kernel's.
    Other(u8),
}

/// One entry of the error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError<'a> {
    /// The error as a number (errno(3)): `EMSGSIZE`, `EHOSTUNREACH`, `ECONNREFUSED`. 0 in entries
    /// that are no errors.
    pub errno: i32,
    /// Where it begins.
    pub origin: ErrorOrigin,
    /// Type of the ICMP or ICMPv6 message (RFC 792, RFC 4443); 0 for other origins.
    pub icmp_type: u8,
    /// Code of the ICMP or ICMPv6 message; 0 for other origins.
    pub icmp_code: u8,
    /// Additional information: the MTU in bytes with `EMSGSIZE`, see [`Self::mtu_bytes`].
    pub info: u32,
    /// The sender of the ICMP message, unmapped; `None` for errors of this host.
    pub offender: Option<IpAddr>,
    /// Destination of the datagram, unmapped; `None` where the kernel does not give it.
    pub to: Option<SocketAddr>,
    /// Beginning of the datagram's payload as the ICMP message quotes it, cut at the length of the
    /// buffer. A router need not quote more than 8 bytes behind the IP header (RFC 792), which
    /// leaves nothing behind that of UDP. Empty for errors of this host.
    pub quoted: &'a [u8],
    /// Where in the whole quote the extensions of the message begin (RFC 4884), in bytes behind the
    /// UDP header. `None` without [`crate::sockopt::set_receive_icmp_extensions`], for a message
    /// that has none, and for one whose extensions the kernel found damaged.
    pub extensions_at: Option<usize>,
    /// When the kernel received the ICMP message, as [`super::Message::stamped_unix_ns`].
    pub stamped_unix_ns: Option<u64>,
    /// Time to live or hop limit with which the ICMP message arrived, as [`super::Message::ttl`].
    pub ttl: Option<u8>,
}

impl QueuedError<'_> {
    /// Largest packet, IP header included, that the link takes that refused this one. `None` for
    /// other errors, and for a router that does not state it (before RFC 1191).
    #[must_use]
    pub fn mtu_bytes(&self) -> Option<u32> {
        Some(self.info).filter(|mtu| self.errno == libc::EMSGSIZE && *mtu > 0)
    }

    /// When the ICMP message arrived, as [`super::Message::arrival_ns`].
    pub fn arrival_ns(&self, offset: RealtimeOffset, read_ns: u64) -> u64 {
        arrival_ns(self.stamped_unix_ns, offset, read_ns)
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
pub fn take_error(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<QueuedError<'_>> {
    let (len, attached) = recv_attached(fd, buffer, libc::MSG_ERRQUEUE)?;
    let error = attached.error.as_deref().and_then(QueuedError::parse);
    Ok(QueuedError {
        to: attached.address,
        quoted: &buffer[..len.min(buffer.len())],
        stamped_unix_ns: attached.stamped_unix_ns,
        ttl: attached.ttl,
        ..error.ok_or(io::ErrorKind::InvalidData)?
    })
}

impl QueuedError<'_> {
    /// `struct sock_extended_err` (`include/uapi/linux/errqueue.h`): errno 4, origin 1, type 1, code 1, padding 1, information 4, data 4; then the address of the
    /// offender.
    fn parse(data: &[u8]) -> Option<Self> {
        let (fixed, address) = data.split_first_chunk::<16>()?;
        let &[
            e0,
            e1,
            e2,
            e3,
            origin,
            icmp_type,
            icmp_code,
            _,
            i0,
            i1,
            i2,
            i3,
            x0,
            x1,
            extension_flags,
            _,
        ] = fixed;
        let origin = match origin {
            ORIGIN_LOCAL => ErrorOrigin::Local,
            ORIGIN_ICMP => ErrorOrigin::Icmp,
            ORIGIN_ICMP6 => ErrorOrigin::Icmp6,
            other => ErrorOrigin::Other(other),
        };

        // `struct sock_ee_data_rfc4884`; an offset of 0 is that of a message without extensions.
        let extensions_at = usize::from(u16::from_ne_bytes([x0, x1]));
        let are_valid = extensions_at > 0 && extension_flags & INVALID_EXTENSIONS == 0;

        Some(Self {
            errno: i32::from_ne_bytes([e0, e1, e2, e3]),
            origin,
            icmp_type,
            icmp_code,
            info: u32::from_ne_bytes([i0, i1, i2, i3]),
            offender: socket_addr_in(address).map(|address| unmap(address).ip()),
            to: None,
            quoted: &[],
            extensions_at: are_valid.then_some(extensions_at),
            stamped_unix_ns: None,
            ttl: None,
        })
    }
}

/// `SO_EE_RFC4884_FLAG_INVALID`.
const INVALID_EXTENSIONS: u8 = 1;
/// `SO_EE_ORIGIN_LOCAL`.
const ORIGIN_LOCAL: u8 = 1;
/// `SO_EE_ORIGIN_ICMP`.
const ORIGIN_ICMP: u8 = 2;
/// `SO_EE_ORIGIN_ICMP6`.
const ORIGIN_ICMP6: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// "Packet too big" (RFC 4443 section 3.2) with MTU 1280 from 2001:db8::9, laid out by hand.
    fn packet_too_big() -> Vec<u8> {
        let mut bytes = (libc::EMSGSIZE).to_ne_bytes().to_vec();
        bytes.extend([3, 2, 0, 0]);
        bytes.extend(1280_u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend((libc::AF_INET6 as u16).to_ne_bytes());
        bytes.extend([0; 6]);
        bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        bytes.extend([0; 4]);

        bytes
    }

    #[test]
    fn an_extended_error_is_read_field_by_field() {
        let error = QueuedError::parse(&packet_too_big()).expect("complete");
        assert_eq!(
            (error.errno, error.origin, error.icmp_type, error.icmp_code),
            (90, ErrorOrigin::Icmp6, 2, 0)
        );
        assert_eq!(
            (error.info, error.offender),
            (1280, "2001:db8::9".parse().ok())
        );
    }

    #[test]
    fn a_cut_error_is_refused_and_a_cut_or_foreign_address_is_absent() {
        let whole = packet_too_big();
        assert_eq!(QueuedError::parse(&whole[..15]), None);
        assert_eq!(
            QueuedError::parse(&whole[..16])
                .expect("fixed part")
                .offender,
            None
        );

        let mut unspecified = whole.clone();
        unspecified[16..18].fill(0);
        assert_eq!(
            QueuedError::parse(&unspecified).expect("complete").offender,
            None
        );

        let origins = [
            (0, ErrorOrigin::Other(0)),
            (1, ErrorOrigin::Local),
            (2, ErrorOrigin::Icmp),
        ];
        for (number, origin) in origins.into_iter().chain([(5, ErrorOrigin::Other(5))]) {
            let mut bytes = whole.clone();
            bytes[4] = number;
            assert_eq!(QueuedError::parse(&bytes).expect("complete").origin, origin);
        }
    }

    #[test]
    fn only_a_size_error_with_a_value_has_an_mtu() {
        let parsed = || QueuedError::parse(&packet_too_big()).expect("complete");
        let error = |errno, info| QueuedError {
            errno,
            info,
            ..parsed()
        };
        assert_eq!(error(libc::EMSGSIZE, 1400).mtu_bytes(), Some(1400));
        assert_eq!(error(libc::EMSGSIZE, 0).mtu_bytes(), None);
        assert_eq!(error(libc::EHOSTUNREACH, 1400).mtu_bytes(), None);
    }
}
