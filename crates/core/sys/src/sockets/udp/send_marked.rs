//! Datagrams that differ from those before in the type of service.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_uint, iovec};

use crate::stream_io::SEND_FLAGS;
use crate::syscall::syscall_len;

/// [`super::send`] with a type of service or traffic class for this datagram alone, DSCP and ECN
/// bits together (`IP_TOS`, Linux 3.13, `IPV6_TCLASS`, Linux 2.6.14, as control messages; ip(7),
/// ipv6(7)). A `tos` set for the socket stays.
///
/// # Errors
/// As [`super::send`].
pub fn send_with_tos(fd: impl AsFd, data: &[u8], tos: u8) -> io::Result<usize> {
    let mut slice = iovec {
        iov_base: data.as_ptr().cast_mut().cast(),
        iov_len: data.len(),
    };
    let mut control = Control([0; 6]);

    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_LEN as _;

    // The kernel takes the one of the packet's family and ignores the other. So the call need not
    // find out whether an IPv6 socket is connected to a mapped address.
    let kinds = [
        (libc::SOL_IP, libc::IP_TOS),
        (libc::SOL_IPV6, libc::IPV6_TCLASS),
    ];
    // SAFETY: the control buffer is aligned for a cmsghdr and has room for two with an int behind
    // them (asserted below). Both headers exist and lie inside with their data. The second is at a
    // fixed distance: CMSG_NXTHDR of some C libraries reads the length of the header it returns.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        for (at, (level, kind)) in kinds.into_iter().enumerate() {
            let header = first.byte_add(at * SPACE);
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as c_uint) as _;
            libc::CMSG_DATA(header)
                .cast::<c_int>()
                .write_unaligned(tos.into());
        }
    }

    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the message names `slice` and `control`, which the kernel only reads and which
    // outlive the call.
    syscall_len(unsafe { libc::sendmsg(fd, &raw const message, SEND_FLAGS) })
}

/// Room for two control messages with an `int`, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Control([u64; 6]);

// SAFETY: CMSG_SPACE only computes.
const SPACE: usize = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as c_uint) } as usize;
const CONTROL_LEN: usize = 2 * SPACE;
const _: () = assert!(CONTROL_LEN <= size_of::<Control>());
const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());
