//! Many datagrams per call: separate messages, or a train the kernel cuts.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_uint, iovec};

use super::UDP_SEGMENT;
use crate::syscall::{syscall, syscall_len};

/// Most datagrams one [`send_many`] submits: beyond this the call's own cost no longer shows.
pub const BATCH_MAX: usize = 64;

/// Most segments of one [`send_segmented`] every kernel accepts (`UDP_MAX_SEGMENTS` before Linux
/// 6.9; later 128).
pub const SEGMENTS_MAX: usize = 64;

/// Sends the datagrams that lie one behind the other in `buffer`, each `datagram_len` bytes, the
/// last one perhaps shorter, on a connected socket in one call (sendmmsg(2), Linux 3.0). Returns
/// how many datagrams were accepted: at most [`BATCH_MAX`], fewer when the send buffer fills.
///
/// # Errors
/// `InvalidInput` for a `datagram_len` of 0; otherwise as [`super::send`], and only if not one
/// datagram was accepted.
pub fn send_many(fd: impl AsFd, buffer: &[u8], datagram_len: usize) -> io::Result<usize> {
    if datagram_len == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }

    // SAFETY: all-zero bytes are a valid iovec, and a valid mmsghdr.
    let (mut slices, mut messages): ([iovec; BATCH_MAX], [libc::mmsghdr; BATCH_MAX]) =
        unsafe { std::mem::zeroed() };
    let mut count = 0;

    for ((datagram, slice), message) in buffer
        .chunks(datagram_len)
        .zip(&mut slices)
        .zip(&mut messages)
    {
        *slice = iovec {
            iov_base: datagram.as_ptr().cast_mut().cast(),
            iov_len: datagram.len(),
        };
        message.msg_hdr.msg_iov = slice;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }

    let fd = fd.as_fd().as_raw_fd();
    // The flags are signed or not, depending on the C library.
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;

    // SAFETY: the first `count` messages each name one slice of `buffer`, which the kernel only
    // reads; messages and slices are writable and outlive the call.
    let sent =
        syscall(unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count as c_uint, flags) })?;
    Ok(usize::try_from(sent).unwrap_or_default())
}

/// Sends `buffer` as a train of datagrams of `segment_len` bytes, the last one perhaps shorter, on
/// a connected socket in one call (`UDP_SEGMENT`, Linux 4.18). All or nothing: returns
/// `buffer.len()`.
///
/// `buffer` is at most 65507 bytes (IPv4 payload) and [`SEGMENTS_MAX`] segments. A kernel that does
/// not know trains sends one large datagram silently: check [`crate::caps::Capabilities::udp_gso`]
/// first.
///
/// # Errors
/// `EIO` where the device cannot compute checksums, `EINVAL` for more segments than the kernel
/// takes, `EMSGSIZE` for a train beyond 65507 bytes and for a segment beyond the MTU (`EINVAL` on
/// older kernels), `InvalidInput` for a `segment_len` of 0; otherwise as [`super::send`].
pub fn send_segmented(fd: impl AsFd, buffer: &[u8], segment_len: usize) -> io::Result<usize> {
    if segment_len == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }

    let segment_len =
        u16::try_from(segment_len).map_err(|_| io::Error::from_raw_os_error(libc::EMSGSIZE))?;
    let mut slice = iovec {
        iov_base: buffer.as_ptr().cast_mut().cast(),
        iov_len: buffer.len(),
    };
    let mut control = SegmentControl([0; 3]);

    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = SEGMENT_SPACE as _;

    // SAFETY: the control buffer is aligned for a cmsghdr and has room for one with an u16 behind
    // it (asserted below), so the first header exists and header and data lie inside.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as c_uint) as _;
        libc::CMSG_DATA(header)
            .cast::<u16>()
            .write_unaligned(segment_len);
    }

    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the message names `slice` and `control`, which the kernel only reads and which
    // outlive the call.
    syscall_len(unsafe {
        libc::sendmsg(
            fd,
            &raw const message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    })
}

/// Room for one control message with an `u16`, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct SegmentControl([u64; 3]);

// SAFETY: CMSG_SPACE only computes.
const SEGMENT_SPACE: usize = unsafe { libc::CMSG_SPACE(size_of::<u16>() as c_uint) } as usize;
const _: () = assert!(SEGMENT_SPACE <= size_of::<SegmentControl>());
const _: () = assert!(align_of::<SegmentControl>() >= align_of::<libc::cmsghdr>());
