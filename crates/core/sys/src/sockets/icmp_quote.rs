//! ICMP errors with the IP headers that they quote, by a raw socket (raw(7), `CAP_NET_RAW`). The error
//! queue of a UDP socket has the quoted payload alone.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{During, Result};
use crate::option::{SocketOption, option};
use crate::udp::recv_from;

/// Receives "destination unreachable" and "time exceeded" of one family; non-blocking.
#[derive(Debug)]
pub struct QuoteSocket {
    socket: Socket,
    is_v6: bool,
}

/// The UDP datagram that an error quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedDatagram<'a> {
    /// Destination of the datagram.
    pub to: IpAddr,
    /// TOS byte or traffic class with which it reached the sender of the error.
    pub tos: u8,
    /// From its UDP header on: source port, destination port, length and checksum, then the payload
    /// as far as it is quoted.
    pub udp: &'a [u8],
}

/// Types of the two errors (RFC 792; RFC 4443 section 3).
const ERRORS_V4: [u8; 2] = [3, 11];
const ERRORS_V6: [u8; 2] = [1, 3];
/// Before the quote: type, code, checksum and four bytes that depend on the type.
const ICMP_HEAD_LEN: usize = 8;
const IPV6_HEAD_LEN: usize = 40;
const UDP: u8 = 17;
/// From the kernel's `icmp.h` and `icmpv6.h`; C libraries lack them. A set bit is a type that the
/// socket does not receive.
const ICMP_FILTER: SocketOption = option!(SOL_RAW, ICMP_FILTER, 1);
const ICMPV6_FILTER: SocketOption = option!(IPPROTO_ICMPV6, ICMPV6_FILTER, 1);

impl QuoteSocket {
    /// A socket for the errors of a family.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`; else the operating system's.
    pub fn open(is_v6: bool) -> Result<Self> {
        let (domain, protocol) = match is_v6 {
            false => (Domain::IPV4, Protocol::ICMPV4),
            true => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new_raw(domain, Type::RAW.cloexec().nonblocking(), Some(protocol))
            .during("socket", "raw icmp")?;

        let mut blocked = [u8::MAX; 32];
        for kind in if is_v6 { ERRORS_V6 } else { ERRORS_V4 } {
            // Both errors are in the first word, which has the byte order of the host.
            let word = u32::from_ne_bytes([blocked[0], blocked[1], blocked[2], blocked[3]]);
            blocked[..4].copy_from_slice(&(word & !(1 << kind)).to_ne_bytes());
        }
        match is_v6 {
            false => ICMP_FILTER.set_bytes(&socket, &blocked[..4], "")?,
            true => ICMPV6_FILTER.set_bytes(&socket, &blocked, "")?,
        }
        Ok(Self { socket, is_v6 })
    }

    /// The next error that quotes a UDP datagram, and its sender; `None` when none has arrived.
    ///
    /// # Errors
    /// The operating system's.
    pub fn receive<'a>(
        &self,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<(IpAddr, Option<QuotedDatagram<'a>>)>> {
        match recv_from(&self.socket, buffer) {
            Ok((len, from)) => {
                let message = buffer.get(..len).unwrap_or_default();
                let quote = if self.is_v6 {
                    quote_v6(message)
                } else {
                    quote_v4(message)
                };
                Ok(Some((from.ip(), quote)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for QuoteSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The quote of a message with its IP header, as raw sockets of IPv4 receive it.
fn quote_v4(packet: &[u8]) -> Option<QuotedDatagram<'_>> {
    let message = packet.get(header_len(packet)?..)?;
    if !ERRORS_V4.contains(message.first()?) {
        return None;
    }

    let quoted = message.get(ICMP_HEAD_LEN..)?;
    let address: [u8; 4] = quoted.get(16..20)?.try_into().ok()?;
    (*quoted.get(9)? == UDP).then_some(QuotedDatagram {
        to: Ipv4Addr::from(address).into(),
        tos: *quoted.get(1)?,
        udp: quoted.get(header_len(quoted)?..)?,
    })
}

/// The quote of a message without its IP header, as raw sockets of IPv6 receive it.
fn quote_v6(message: &[u8]) -> Option<QuotedDatagram<'_>> {
    if !ERRORS_V6.contains(message.first()?) {
        return None;
    }

    let quoted = message.get(ICMP_HEAD_LEN..)?;
    let address: [u8; 16] = quoted.get(24..IPV6_HEAD_LEN)?.try_into().ok()?;
    (*quoted.get(6)? == UDP).then_some(QuotedDatagram {
        to: Ipv6Addr::from(address).into(),
        // Between the version and the flow label (RFC 8200 section 3).
        tos: quoted.first()? << 4 | quoted.get(1)? >> 4,
        udp: quoted.get(IPV6_HEAD_LEN..)?,
    })
}

/// Bytes of an IPv4 header with its options (RFC 791 section 3.1).
fn header_len(packet: &[u8]) -> Option<usize> {
    packet.first().map(|first| usize::from(first & 0x0f) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP header and the beginning of a payload.
    const DATAGRAM: [u8; 10] = [0x80, 0, 0x14, 0x51, 0, 12, 0, 0, 7, 8];

    fn header_v4(protocol: u8, tos: u8) -> Vec<u8> {
        // With four bytes of options.
        let mut header = vec![0; 24];
        (header[0], header[1], header[9]) = (0x46, tos, protocol);
        header[16..20].copy_from_slice(&[192, 0, 2, 7]);
        header
    }

    #[test]
    fn quotes_of_ipv4_have_the_layout_of_rfc_792() {
        let message = |kind: u8, protocol| {
            let parts = [
                header_v4(1, 0xc0),
                vec![kind, 0, 0, 0, 0, 0, 0, 0],
                header_v4(protocol, 0xba),
                DATAGRAM.to_vec(),
            ];
            parts.concat()
        };
        let time_exceeded = message(11, UDP);
        let quote = quote_v4(&time_exceeded).expect("a quote");
        assert_eq!((quote.tos, quote.udp), (0xba, DATAGRAM.as_slice()));
        assert_eq!(quote.to, IpAddr::from([192, 0, 2, 7]));

        assert_eq!(quote_v4(&message(0, UDP)), None, "an echo reply");
        assert_eq!(quote_v4(&message(11, 6)), None, "a segment of TCP");
        for len in 0..time_exceeded.len() - DATAGRAM.len() {
            assert_eq!(quote_v4(&time_exceeded[..len]), None, "cut at {len}");
        }
    }

    #[test]
    fn quotes_of_ipv6_have_the_layout_of_rfc_4443() {
        let to: Ipv6Addr = "2001:db8::7".parse().expect("an address");
        let mut message = vec![3, 0, 0, 0, 0, 0, 0, 0];
        let mut header = [0; IPV6_HEAD_LEN];
        (header[0], header[1], header[6]) = (0x6b, 0xa5, UDP);
        header[24..].copy_from_slice(&to.octets());
        message.extend(header);
        message.extend(DATAGRAM);

        let quote = quote_v6(&message).expect("a quote");
        assert_eq!((quote.tos, quote.udp), (0xba, DATAGRAM.as_slice()));
        assert_eq!(quote.to, IpAddr::from(to));
        for len in 0..message.len() - DATAGRAM.len() {
            assert_eq!(quote_v6(&message[..len]), None, "cut at {len}");
        }
    }
}
