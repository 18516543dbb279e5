//! Moving bytes through connected stream sockets: the TCP data path.
//!
//! Every call is one system call without allocation; none of them waits. Submitting one block many
//! times per call gains half again in throughput over one block per call: the source stays in the
//! cache, the calls become few.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

use libc::iovec;

use crate::syscall::syscall_len;

/// Most copies of a block that one call submits.
pub const GATHERED_COPIES_MAX: usize = 64;

/// Sends what fits and returns how much that was; never raises `SIGPIPE` (send(2)).
///
/// # Errors
/// `WouldBlock` when the send buffer is full; else the operating system's.
pub fn send(fd: impl AsFd, data: &[u8]) -> io::Result<usize> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: pointer and length describe `data`, which the kernel only reads.
    syscall_len(unsafe { libc::send(fd, data.as_ptr().cast(), data.len(), SEND_FLAGS) })
}

/// Hint that more bytes follow at once (`MSG_MORE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// Nothing follows: a segment that is not full leaves, too.
    No,
    /// A segment that is not full waits for the next call (`MSG_MORE`).
    Soon,
}

/// Sends slices one behind the other in one call (sendmsg(2)). Returns the bytes taken, which may
/// end inside a slice. Slices beyond [`SLICES_MAX`] are left for the next call.
///
/// # Errors
/// As [`send`].
pub fn send_slices(fd: impl AsFd, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize> {
    let flags = match followed {
        Followed::No => SEND_FLAGS,
        Followed::Soon => SEND_FLAGS | libc::MSG_MORE,
    };
    send_slices_with(fd, slices, flags)
}

pub(crate) fn send_slices_with(
    fd: impl AsFd,
    slices: &[IoSlice<'_>],
    flags: i32,
) -> io::Result<usize> {
    // SAFETY: all-zero bytes are a valid msghdr: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // The standard library promises that an IoSlice has the layout of an iovec.
    message.msg_iov = slices.as_ptr().cast::<iovec>().cast_mut();

    // The type of the field differs between C libraries.
    message.msg_iovlen = slices.len().min(SLICES_MAX) as _;
    let fd = fd.as_fd().as_raw_fd();

    // SAFETY: the message names at most all elements of `slices`, each of which describes memory
    // that outlives the call; the kernel only reads through them.
    syscall_len(unsafe { libc::sendmsg(fd, &raw const message, flags) })
}

/// Most slices one [`send_slices`] submits: `UIO_MAXIOV`.
pub const SLICES_MAX: usize = 1024;

/// Receives what is there, at most `buffer.len()` bytes; 0 is end of file (recv(2)).
///
/// # Errors
/// `WouldBlock` when nothing is there; else the operating system's.
pub fn recv(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(fd, buffer, libc::MSG_DONTWAIT)
}

/// Receives without taking: the next [`recv`] gives the same bytes (recv(2), `MSG_PEEK`).
///
/// # Errors
/// As [`recv`].
pub fn peek(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(fd, buffer, libc::MSG_DONTWAIT | libc::MSG_PEEK)
}

fn recv_with(fd: impl AsFd, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: pointer and length describe `buffer`, writable during the call.
    syscall_len(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) })
}

/// Takes up to `len` received bytes without copying them out; 0 is end of file (tcp(7),
/// `MSG_TRUNC`). TCP only.
///
/// # Errors
/// As [`recv`].
pub fn recv_discard(fd: impl AsFd, len: usize) -> io::Result<usize> {
    let fd = fd.as_fd().as_raw_fd();
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: with MSG_TRUNC, TCP writes nothing through the pointer; on other sockets a null
    // pointer is EFAULT.
    syscall_len(unsafe { libc::recv(fd, std::ptr::null_mut(), len, flags) })
}

/// Sends up to `len` bytes of `file` from `offset`, which advances by what was sent (sendfile(2));
/// 0 is the end of the file. Does not wait on a non-blocking socket. Raises `SIGPIPE` on a closed
/// connection unless that is ignored.
///
/// # Errors
/// As [`send`].
pub fn send_file(
    socket: impl AsFd,
    file: impl AsFd,
    offset: &mut u64,
    len: usize,
) -> io::Result<usize> {
    let mut position =
        libc::off_t::try_from(*offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let (socket, file) = (socket.as_fd().as_raw_fd(), file.as_fd().as_raw_fd());

    // SAFETY: `position` is writable during the call; nothing else is passed by pointer.
    let sent = syscall_len(unsafe { libc::sendfile(socket, file, &raw mut position, len) })?;
    *offset = offset.saturating_add(sent as u64);
    Ok(sent)
}

/// A full buffer is an answer, not a reason to wait; a vanished peer is an error, not a signal.
pub(crate) const SEND_FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
