//! Sending memory that the kernel borrows instead of copying (`MSG_ZEROCOPY`,
//! Documentation/networking/msg_zerocopy.rst, Linux 4.14).
//!
//! The kernel returns what it borrowed through the error queue of the socket, in the order of the
//! calls. Such memory must stay as it is until then; memory that never changes may be in flight
//! many times at once.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

use crate::error::Result;
use crate::option::{SocketOption, option};
use crate::stream_io::{self, GATHERED_COPIES_MAX, SEND_FLAGS};
use crate::syscall::syscall_len;

/// Lets a socket borrow memory.
///
/// # Errors
/// The operating system's, for instance `ENOPROTOOPT` before Linux 4.14.
pub fn enable(fd: impl AsFd) -> Result<()> {
    let option: SocketOption<bool> = option!(SOL_SOCKET, SO_ZEROCOPY);
    option.set(fd, true)
}

/// Lends the memory of `block` up to `copies` times, one behind the other, in one call (sendmsg(2),
/// `MSG_ZEROCOPY`). Returns the bytes taken, which may end inside a block. More than
/// [`GATHERED_COPIES_MAX`] copies count as that many.
///
/// # Errors
/// `ENOBUFS` when too much memory is in flight; else as [`stream_io::send`].
pub fn send_gathered(fd: impl AsFd, block: &[u8], copies: usize) -> io::Result<usize> {
    let gathered = [IoSlice::new(block); GATHERED_COPIES_MAX];
    stream_io::send_slices_with(
        fd,
        &gathered[..copies.min(GATHERED_COPIES_MAX)],
        SEND_FLAGS | libc::MSG_ZEROCOPY,
    )
}

/// Memory the kernel gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Send calls whose memory is free again, at least one.
    pub calls: u32,
    /// The kernel had copied it after all, because the way of the packet demanded it.
    pub copied: bool,
}

/// The next notice of returned memory.
///
/// # Errors
/// `WouldBlock` when there is none; else the operating system's.
pub fn take_completion(fd: impl AsFd) -> io::Result<Completion> {
    // SAFETY: all-zero bytes are a valid msghdr: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut control = Control([0; 8]);

    // A notice has no data. The emulator of qemu-user calls the kernel only with a place for some.
    let mut data = [0; 1];
    let mut slice = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;

    let fd = fd.as_fd().as_raw_fd();
    loop {
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;

        // SAFETY: the message names `control` and `data` with their sizes and no other memory.
        syscall_len(unsafe { libc::recvmsg(fd, &raw mut message, flags) })?;
        if let Some(completion) = completion(&message) {
            return Ok(completion);
        }
    }
}

fn completion(message: &libc::msghdr) -> Option<Completion> {
    // SAFETY: the kernel set the length of the control buffer to what it wrote, so that the header
    // lies inside.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let wanted = [
        (libc::SOL_IP, libc::IP_RECVERR),
        (libc::SOL_IPV6, libc::IPV6_RECVERR),
    ];
    if !wanted.contains(&(header.cmsg_level, header.cmsg_type)) {
        return None;
    }

    // SAFETY: both kinds begin with a sock_extended_err; the read is unaligned.
    let error = unsafe {
        libc::CMSG_DATA(header)
            .cast::<libc::sock_extended_err>()
            .read_unaligned()
    };
    (error.ee_origin == ORIGIN_ZEROCOPY).then(|| Completion {
        calls: error.ee_data.wrapping_sub(error.ee_info).wrapping_add(1),
        copied: error.ee_code & CODE_COPIED != 0,
    })
}

/// `SO_EE_ORIGIN_ZEROCOPY` (include/uapi/linux/errqueue.h).
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`.
const CODE_COPIED: u8 = 1;

/// Room for an extended error and the address behind it, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Control([u64; 8]);

const _: () =
    assert!(size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>() + 16 <= 64);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn lent_memory_arrives_and_comes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let sender =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut receiver, _) = listener.accept().expect("a connection");

        enable(&sender).expect("Linux 4.14");
        let block = [7_u8; 1000];
        assert_eq!(send_gathered(&sender, &block, 3).expect("room"), 3000);

        let mut received = [0; 3000];
        receiver.read_exact(&mut received).expect("all of it");
        assert_eq!(received, [7; 3000]);

        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        let completion = loop {
            match take_completion(&sender) {
                Err(e)
                    if e.kind() == io::ErrorKind::WouldBlock && std::time::Instant::now() < end => {
                }
                other => break other.expect("a notice"),
            }
        };

        // On loopback the kernel copies nevertheless, and reports it.
        assert_eq!(
            completion,
            Completion {
                calls: 1,
                copied: true
            }
        );
    }
}
