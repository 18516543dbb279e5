//! Moving datagrams: single, batched, and as trains the kernel cuts and joins (udp(7)).
//!
//! A datagram costs about 3 microseconds of kernel time when sent alone. Batches save a tenth of
//! that; trains (`UDP_SEGMENT`, `UDP_GRO`) save nine tenths and more.

mod error_queue;
mod message;
mod recv_batch;
mod send_batch;
mod send_from;
mod send_marked;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;
use socket2::{SockAddr, SockRef};

use crate::syscall::{socket_addr, syscall_len};

/// One datagram per call: of a received one, what exceeds the buffer is lost, and a length of 0 is
/// an empty datagram. A connected socket fails with `ECONNREFUSED` when the peer answered an
/// earlier datagram with an ICMP message.
pub use crate::stream_io::{recv, send};
pub use error_queue::{ErrorOrigin, QueuedError, take_error};
pub use message::{Message, recv_message};
pub use recv_batch::{RecvBatch, SLOT_LEN_MAX, SLOTS_MAX};
pub use send_batch::{BATCH_MAX, SEGMENTS_MAX, send_many, send_segmented};
pub use send_from::send_from;
pub use send_marked::send_with_tos;

/// [`recv`] with the sender's address, unmapped (recvfrom(2)).
///
/// # Errors
/// As [`recv`].
pub fn recv_from(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    // SAFETY: all-zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut storage_len = ADDRESS_LEN;
    let fd = fd.as_fd().as_raw_fd();

    // SAFETY: both pointer and length pairs describe memory that is writable during the call.
    let len = syscall_len(unsafe {
        libc::recvfrom(
            fd,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
            (&raw mut storage).cast(),
            &raw mut storage_len,
        )
    })?;
    let from =
        socket_addr(&storage).ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))?;
    Ok((len, crate::socket::unmap(from)))
}

/// [`send`] of a socket that is not connected, to this address (sendto(2)). An IPv6 socket also
/// takes an IPv4 address.
///
/// # Errors
/// As [`send`].
pub fn send_to(fd: impl AsFd, data: &[u8], to: &SocketAddr) -> io::Result<usize> {
    SockRef::from(&fd).send_to_with_flags(data, &SockAddr::from(*to), libc::MSG_DONTWAIT)
}

/// Size of a `sockaddr_storage`.
const ADDRESS_LEN: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

/// Option and control message of `include/uapi/linux/udp.h`: payload of one datagram of an outgoing
/// train, `u16`.
pub(crate) const UDP_SEGMENT: c_int = 103;
/// Option and control message of `include/uapi/linux/udp.h`: payload of one datagram of an incoming
/// train, `int`.
pub(crate) const UDP_GRO: c_int = 104;
