//! Datagrams from one address of several.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_uint, iovec};
use socket2::SockAddr;

use crate::stream_io::SEND_FLAGS;
use crate::syscall::syscall_len;

/// [`super::send_to`] from this local address, where the socket is bound to all of them
/// (`IP_PKTINFO`, Linux 2.2, `IPV6_PKTINFO`, Linux 2.6.14, as control messages; ip(7), ipv6(7)).
/// Without one the route chooses the address.
///
/// # Errors
/// As [`super::send`]; `EINVAL` for an address that is not local, or not of the family of `to`.
pub fn send_from(
    fd: impl AsFd,
    data: &[u8],
    from: Option<IpAddr>,
    to: &SocketAddr,
) -> io::Result<usize> {
    let Some(from) = from else {
        return super::send_to(fd, data, to);
    };

    // `in_pktinfo`: interface, local address, destination. `in6_pktinfo`: address, interface. The
    // routing table chooses the interface.
    let mut info = [0; INFO_LEN];
    let (level, kind, len) = match from {
        IpAddr::V4(address) => {
            info[4..8].copy_from_slice(&address.octets());
            (
                libc::SOL_IP,
                libc::IP_PKTINFO,
                size_of::<libc::in_pktinfo>(),
            )
        }
        IpAddr::V6(address) => {
            info[..16].copy_from_slice(&address.octets());
            (libc::SOL_IPV6, libc::IPV6_PKTINFO, INFO_LEN)
        }
    };

    let to = SockAddr::from(*to);
    let mut slice = iovec {
        iov_base: data.as_ptr().cast_mut().cast(),
        iov_len: data.len(),
    };
    let mut control = Control([0; 5]);

    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = to.as_ptr().cast_mut().cast();
    message.msg_namelen = to.len();
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    // SAFETY: only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(len as c_uint) } as _;

    // SAFETY: the control buffer is aligned for a cmsghdr and has room for one with the longer
    // structure behind it (asserted below), so the header exists and lies inside with its data.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(len as c_uint) as _;
        libc::CMSG_DATA(header).copy_from_nonoverlapping(info.as_ptr(), len);
    }

    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the message names `to`, `slice` and `control`, which the kernel only reads and which
    // outlive the call.
    syscall_len(unsafe { libc::sendmsg(fd, &raw const message, SEND_FLAGS) })
}

const INFO_LEN: usize = size_of::<libc::in6_pktinfo>();

/// Room for a control message with either structure, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Control([u64; 5]);

// SAFETY: CMSG_SPACE only computes.
const NEEDED_BYTES: u32 = unsafe { libc::CMSG_SPACE(INFO_LEN as c_uint) };
const _: () = assert!(NEEDED_BYTES as usize <= size_of::<Control>());
const _: () = assert!(size_of::<libc::in_pktinfo>() <= INFO_LEN);
const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());
