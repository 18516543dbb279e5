//! Options of the IP layer (ip(7), ipv6(7)).

use std::os::fd::AsFd;

use socket2::{Domain, SockRef};

use crate::error::{During, Result};
use crate::option::{SocketOption, option};

/// Confines an IPv6 socket to IPv6; off, a listener on `::` takes IPv4 peers too. Before bind.
pub const IPV6_V6ONLY: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_V6ONLY);

/// Leaves the choice of the local port to `connect`, so that one port serves connections to
/// different peers (Linux 4.2). Before bind; for both families.
pub const IP_BIND_ADDRESS_NO_PORT: SocketOption<bool> =
    option!(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);

/// Off, the socket receives only from multicast groups it has joined itself (Linux 2.6.31).
pub const IP_MULTICAST_ALL: SocketOption<bool> = option!(IPPROTO_IP, IP_MULTICAST_ALL);

/// Fragmentation of IPv4 packets (`IP_PMTUDISC_DO`: never); see [`set_dont_fragment`].
pub const IP_MTU_DISCOVER: SocketOption<u32> = option!(IPPROTO_IP, IP_MTU_DISCOVER);

/// [`IP_MTU_DISCOVER`] of IPv6 packets.
pub const IPV6_MTU_DISCOVER: SocketOption<u32> = option!(IPPROTO_IPV6, IPV6_MTU_DISCOVER);

/// Sets the type of service byte, DSCP and ECN bits together, 0..=255 (`IP_TOS`, `IPV6_TCLASS`).
///
/// An IPv6 socket gets both options, because it sends IPv4 packets to mapped addresses. On a TCP
/// socket the kernel keeps the ECN bits to itself.
///
/// # Errors
/// The operating system's.
pub fn set_tos(fd: impl AsFd, tos: u8) -> Result<()> {
    if is_v6(&fd)? {
        TRAFFIC_CLASS.set_int(&fd, tos.into())?;
    }
    TOS.set_int(fd, tos.into())
}

/// Lets [`crate::udp::Message::tos`] be filled in: type of service and traffic class of received
/// packets (`IP_RECVTOS`, Linux 2.2, `IPV6_RECVTCLASS`, Linux 2.6.14).
///
/// An IPv6 socket gets both options, because it receives IPv4 packets of mapped addresses.
///
/// # Errors
/// The operating system's.
pub fn set_receive_tos(fd: impl AsFd, on: bool) -> Result<()> {
    if is_v6(&fd)? {
        RECEIVE_TRAFFIC_CLASS.set(&fd, on)?;
    }
    RECEIVE_TOS.set(fd, on)
}

/// Sets the time to live or hop limit of outgoing packets, 1..=255 (`IP_TTL`, `IPV6_UNICAST_HOPS`);
/// of both families on an IPv6 socket. Datagrams to groups have their own:
/// [`super::set_multicast_ttl`].
///
/// # Errors
/// The operating system's; `EINVAL` for 0.
pub fn set_ttl(fd: impl AsFd, ttl: u8) -> Result<()> {
    TTL.set_int(&fd, ttl.into())?;
    if is_v6(&fd)? {
        HOP_LIMIT.set_int(fd, ttl.into())?;
    }
    Ok(())
}

/// Lets [`crate::udp::Message::to`] be filled in: local address of received packets (`IP_PKTINFO`,
/// Linux 2.2, ip(7); `IPV6_RECVPKTINFO`, Linux 2.6.14, ipv6(7), which has mapped addresses of IPv4).
///
/// # Errors
/// The operating system's.
pub fn set_receive_destination(fd: impl AsFd, on: bool) -> Result<()> {
    match is_v6(&fd)? {
        true => RECEIVE_DESTINATION_V6.set(fd, on),
        false => RECEIVE_DESTINATION.set(fd, on),
    }
}

/// Lets [`crate::udp::Message::ttl`] be filled in: time to live and hop limit of received packets
/// (`IP_RECVTTL`, Linux 2.2, `IPV6_RECVHOPLIMIT`, Linux 2.6.14); of both families on an IPv6
/// socket.
///
/// # Errors
/// The operating system's.
pub fn set_receive_ttl(fd: impl AsFd, on: bool) -> Result<()> {
    if is_v6(&fd)? {
        RECEIVE_HOP_LIMIT.set(&fd, on)?;
    }
    RECEIVE_TTL.set(fd, on)
}

/// Confines the kernel's choice of a local port to `low..=high` within
/// `net.ipv4.ip_local_port_range` (`IP_LOCAL_PORT_RANGE`, Linux 6.3, ip(7)). With any range, even
/// the system's own, the search takes the same time however many ports are taken.
///
/// # Errors
/// The operating system's.
pub fn set_local_port_range(fd: impl AsFd, low: u16, high: u16) -> Result<()> {
    let packed = u32::from(high) << 16 | u32::from(low);
    LOCAL_PORT_RANGE.set_bytes(fd, &packed.to_ne_bytes(), format_args!("{low}-{high}"))
}

/// From the kernel's `in.h`; C libraries lack it.
const LOCAL_PORT_RANGE: SocketOption = option!(IPPROTO_IP, IP_LOCAL_PORT_RANGE, 51);

/// Forbids (`on`) or allows fragments: with it, datagrams beyond the path MTU fail with `EMSGSIZE`
/// and IPv4 packets carry the DF bit (`IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`). Off means that every
/// packet may be fragmented on the way.
///
/// # Errors
/// The operating system's.
pub fn set_dont_fragment(fd: impl AsFd, on: bool) -> Result<()> {
    if is_v6(&fd)? {
        IPV6_MTU_DISCOVER.set_int(
            &fd,
            if on {
                libc::IPV6_PMTUDISC_DO
            } else {
                libc::IPV6_PMTUDISC_DONT
            },
        )?;
    }

    IP_MTU_DISCOVER.set_int(
        fd,
        if on {
            libc::IP_PMTUDISC_DO
        } else {
            libc::IP_PMTUDISC_DONT
        },
    )
}

/// Sends packets up to the MTU of the own device with the DF bit, whatever path MTU the kernel has
/// learned (`IP_PMTUDISC_PROBE`, Linux 2.6.22, `IPV6_PMTUDISC_PROBE`; ip(7)). Longer datagrams fail
/// with `EMSGSIZE`; a router that refuses one reports the MTU in the error queue:
/// [`crate::udp::take_error`]. [`set_dont_fragment`] undoes it.
///
/// # Errors
/// The operating system's.
pub fn set_path_mtu_probe(fd: impl AsFd) -> Result<()> {
    if is_v6(&fd)? {
        IPV6_MTU_DISCOVER.set_int(&fd, libc::IPV6_PMTUDISC_PROBE)?;
    }
    IP_MTU_DISCOVER.set_int(fd, libc::IP_PMTUDISC_PROBE)
}

/// The path MTU of a connected socket as far as the kernel has learned it, bytes with the IP header
/// (`IP_MTU`, `IPV6_MTU`; ip(7)). That of the own device until a router reports a smaller one.
///
/// # Errors
/// The operating system's; `ENOTCONN` on a socket that is not connected.
pub fn path_mtu(fd: impl AsFd) -> Result<u32> {
    if crate::socket::is_ipv4_socket(&fd) {
        IPV4_PATH_MTU.get(fd)
    } else {
        IPV6_PATH_MTU.get(fd)
    }
}

/// Queues the errors of single datagrams for [`crate::udp::take_error`] (`IP_RECVERR`,
/// `IPV6_RECVERR`, Linux 2.2); of both families on an IPv6 socket. Off, the queue is emptied.
///
/// With it, a socket that is not connected fails with the errors of its destinations, too.
///
/// # Errors
/// The operating system's.
pub fn set_receive_errors(fd: impl AsFd, on: bool) -> Result<()> {
    if is_v6(&fd)? {
        IPV6_RECEIVE_ERRORS.set(&fd, on)?;
    }
    IPV4_RECEIVE_ERRORS.set(fd, on)
}

/// Lets [`crate::udp::QueuedError::extensions_at`] be filled in (`IP_RECVERR_RFC4884`,
/// `IPV6_RECVERR_RFC4884`, Linux 5.9); of both families on an IPv6 socket.
///
/// # Errors
/// The operating system's; `ENOPROTOOPT` of an older kernel.
pub fn set_receive_icmp_extensions(fd: impl AsFd) -> Result<()> {
    if is_v6(&fd)? {
        IPV6_RECEIVE_EXTENSIONS.set(&fd, true)?;
    }
    IPV4_RECEIVE_EXTENSIONS.set(fd, true)
}

fn is_v6(fd: impl AsFd) -> Result<bool> {
    Ok(SockRef::from(&fd)
        .domain()
        .during("getsockopt SO_DOMAIN", "")?
        == Domain::IPV6)
}

const TOS: SocketOption = option!(IPPROTO_IP, IP_TOS);
const TRAFFIC_CLASS: SocketOption = option!(IPPROTO_IPV6, IPV6_TCLASS);
const RECEIVE_TOS: SocketOption<bool> = option!(IPPROTO_IP, IP_RECVTOS);
const RECEIVE_TRAFFIC_CLASS: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_RECVTCLASS);
const TTL: SocketOption = option!(IPPROTO_IP, IP_TTL);
const HOP_LIMIT: SocketOption = option!(IPPROTO_IPV6, IPV6_UNICAST_HOPS);
const RECEIVE_DESTINATION: SocketOption<bool> = option!(IPPROTO_IP, IP_PKTINFO);
const RECEIVE_DESTINATION_V6: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_RECVPKTINFO);
const RECEIVE_TTL: SocketOption<bool> = option!(IPPROTO_IP, IP_RECVTTL);
const RECEIVE_HOP_LIMIT: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_RECVHOPLIMIT);
const IPV4_PATH_MTU: SocketOption<u32> = option!(IPPROTO_IP, IP_MTU);
const IPV6_PATH_MTU: SocketOption<u32> = option!(IPPROTO_IPV6, IPV6_MTU);
const IPV4_RECEIVE_ERRORS: SocketOption<bool> = option!(IPPROTO_IP, IP_RECVERR);
const IPV6_RECEIVE_ERRORS: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_RECVERR);
/// From the kernel's `in.h`; C libraries lack it.
const IPV4_RECEIVE_EXTENSIONS: SocketOption<bool> = option!(IPPROTO_IP, IP_RECVERR_RFC4884, 26);
/// From the kernel's `in6.h`; C libraries lack it.
const IPV6_RECEIVE_EXTENSIONS: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_RECVERR_RFC4884, 31);
