//! A received message, and what the kernel attaches to it (cmsg(3)).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_uint, iovec, msghdr};

use super::{ADDRESS_LEN, UDP_GRO};
use crate::clock::RealtimeOffset;
use crate::socket::unmap;
use crate::syscall::{socket_addr, syscall_len};

/// One received message: a datagram or, on a socket with [`crate::sockopt::UDP_GRO`], a train of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The bytes, cut at the length of the slot or buffer.
    pub data: &'a [u8],
    /// Payload of one datagram. Less than [`Self::full_len`] when the kernel joined several, of
    /// which the last may be shorter; otherwise equal to it.
    pub segment_len: usize,
    /// The sender, unmapped.
    pub from: Option<SocketAddr>,
    /// Length of the message as it came; what exceeds the slot or buffer is lost.
    pub full_len: usize,
    /// When the kernel received it, by the wall clock, ns since 1970; of joined datagrams the
    /// first. `None` without [`crate::sockopt::SO_TIMESTAMPNS`].
    pub stamped_unix_ns: Option<u64>,
    /// Type of service (IPv4) or traffic class (IPv6) of the packet, DSCP and ECN bits together.
    /// `None` without [`crate::sockopt::set_receive_tos`].
    pub tos: Option<u8>,
    /// Time to live (IPv4) or hop limit (IPv6) with which the packet arrived. `None` without
    /// [`crate::sockopt::set_receive_ttl`].
    pub ttl: Option<u8>,
    /// Local address that the packet was sent to, unmapped. `None` without
    /// [`crate::sockopt::set_receive_destination`].
    pub to: Option<IpAddr>,
}

/// See [`Message::arrival_ns`].
pub(super) fn arrival_ns(
    stamped_unix_ns: Option<u64>,
    offset: RealtimeOffset,
    read_ns: u64,
) -> u64 {
    stamped_unix_ns.map_or(read_ns, |stamp_ns| {
        offset.monotonic_ns(stamp_ns).min(read_ns)
    })
}

impl<'a> Message<'a> {
    /// Number of datagrams in the message, at least one: an empty datagram is one too.
    pub fn datagrams(&self) -> usize {
        self.full_len.div_ceil(self.segment_len.max(1)).max(1)
    }

    /// When it arrived by the monotonic clock. `read_ns`, when it was read, replaces a missing
    /// stamp and bounds one.
    pub fn arrival_ns(&self, offset: RealtimeOffset, read_ns: u64) -> u64 {
        arrival_ns(self.stamped_unix_ns, offset, read_ns)
    }

    /// The datagrams one by one, as far as they are in [`Self::data`]; nothing for an empty one.
    pub fn segments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.data.chunks(self.segment_len.max(1))
    }

    /// The message of a header the kernel filled in, `full_len` bytes long, of which `buffer` holds
    /// the beginning.
    ///
    /// # Safety
    /// As [`Attached::of`].
    pub(super) unsafe fn of(
        header: &msghdr,
        address: &libc::sockaddr_storage,
        buffer: &'a [u8],
        full_len: usize,
    ) -> Self {
        // SAFETY: the caller guarantees the same.
        Self::new(&unsafe { Attached::of(header, address) }, buffer, full_len)
    }

    fn new(attached: &Attached, buffer: &'a [u8], full_len: usize) -> Self {
        Self {
            data: &buffer[..full_len.min(buffer.len())],
            segment_len: attached
                .segment_len
                .map_or(full_len, |len| len.min(full_len)),
            from: attached.address,
            full_len,
            stamped_unix_ns: attached.stamped_unix_ns,
            tos: attached.tos,
            ttl: attached.ttl,
            to: attached.to,
        }
    }
}

/// [`super::recv_from`] with everything the kernel attaches (recvmsg(2)). For one datagram at a
/// time; see [`super::RecvBatch`] for many.
///
/// # Errors
/// As [`super::recv`].
pub fn recv_message(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<Message<'_>> {
    // With MSG_TRUNC the kernel returns the full length of what it cut.
    let (full_len, attached) = recv_attached(fd, buffer, libc::MSG_TRUNC)?;
    Ok(Message::new(&attached, buffer, full_len))
}

/// Length of the next message, which `buffer` receives, and what is attached to it.
pub(super) fn recv_attached(
    fd: impl AsFd,
    buffer: &mut [u8],
    flags: c_int,
) -> io::Result<(usize, Attached)> {
    // SAFETY: all-zero bytes are a valid sockaddr_storage, and a valid msghdr.
    let (mut address, mut header): (libc::sockaddr_storage, msghdr) = unsafe { std::mem::zeroed() };
    let mut control = Control::EMPTY;
    let mut slice = iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };

    header.msg_name = (&raw mut address).cast();
    header.msg_namelen = ADDRESS_LEN;
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;

    let (fd, flags) = (fd.as_fd().as_raw_fd(), flags | libc::MSG_DONTWAIT);
    // SAFETY: the header names `address`, the buffer and `control` with their true sizes; all are
    // writable and outlive the call.
    let len = syscall_len(unsafe { libc::recvmsg(fd, &raw mut header, flags) })?;
    // SAFETY: the call succeeded, and `control` is still there.
    Ok((len, unsafe { Attached::of(&header, &address) }))
}

/// What the kernel attached to a message.
#[derive(Default)]
pub(super) struct Attached {
    /// The other end, unmapped.
    pub(super) address: Option<SocketAddr>,
    /// Payload of one datagram of a joined train.
    pub(super) segment_len: Option<usize>,
    pub(super) stamped_unix_ns: Option<u64>,
    pub(super) tos: Option<u8>,
    pub(super) ttl: Option<u8>,
    pub(super) to: Option<IpAddr>,
    /// `struct sock_extended_err`, and perhaps an address behind it.
    pub(super) error: Option<Vec<u8>>,
}

impl Attached {
    /// # Safety
    /// As [`for_each_control`].
    pub(super) unsafe fn of(header: &msghdr, address: &libc::sockaddr_storage) -> Self {
        let mut attached = Self {
            address: (header.msg_namelen > 0)
                .then(|| socket_addr(address))
                .flatten()
                .map(unmap),
            ..Self::default()
        };
        // SAFETY: the caller guarantees the same.
        unsafe { for_each_control(header, |level, kind, data| attached.take(level, kind, data)) };
        attached
    }

    /// Keeps what one control message holds. An IPv6 socket gets those of IPv4 for packets of
    /// mapped addresses.
    fn take(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_UDP, UDP_GRO) => {
                self.segment_len = int(data)
                    .and_then(|len| usize::try_from(len).ok())
                    .filter(|len| *len > 0);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => self.stamped_unix_ns = nanoseconds(data),
            (libc::SOL_IP, libc::IP_TOS) | (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                self.tos = header_field(data);
            }
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                self.ttl = header_field(data);
            }
            // `ipi_spec_dst` of `in_pktinfo` (ip(7)), `ipi6_addr` of `in6_pktinfo` (ipv6(7)).
            (libc::SOL_IP, libc::IP_PKTINFO) => self.to = address::<4>(data.get(4..)),
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => self.to = address::<16>(Some(data)),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                self.error = Some(data.to_vec());
            }
            _ => {}
        }
    }
}

/// Calls `each` with level, type and data of the control messages of a header, in their order.
///
/// # Safety
/// A successful recvmsg(2) or recvmmsg(2) has filled in `header`, and its control buffer is still
/// there.
unsafe fn for_each_control(header: &msghdr, mut each: impl FnMut(c_int, c_int, &[u8])) {
    // SAFETY: only computes.
    let head_len = unsafe { libc::CMSG_LEN(0) } as usize;
    // SAFETY: the kernel set the length of the control buffer to what it wrote, so that header and
    // data of each message lie inside; it keeps each header aligned, and bytes have no alignment.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(head) = control.as_ref() {
            // The type of the field differs between C libraries.
            let with_head: usize = head.cmsg_len as _;
            let len = with_head.saturating_sub(head_len);
            each(
                head.cmsg_level,
                head.cmsg_type,
                std::slice::from_raw_parts(libc::CMSG_DATA(control), len),
            );
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
}

fn int(data: &[u8]) -> Option<c_int> {
    data.first_chunk().map(|bytes| c_int::from_ne_bytes(*bytes))
}

/// A field of eight bits: one byte for `IP_TOS`, an `int` for the others.
fn header_field(data: &[u8]) -> Option<u8> {
    match data {
        [byte] => Some(*byte),
        _ => u8::try_from(int(data)?).ok(),
    }
}

/// The address at the begin of these bytes, unmapped.
fn address<const N: usize>(data: Option<&[u8]>) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    let address = data?.first_chunk::<N>()?;
    Some(IpAddr::from(*address).to_canonical())
}

/// A time since 1970; `None` for one before and for fewer bytes than a `timespec`.
fn nanoseconds(data: &[u8]) -> Option<u64> {
    if data.len() < size_of::<libc::timespec>() {
        return None;
    }

    // SAFETY: there are as many bytes as the structure has, all bit patterns are valid, and the
    // read is unaligned.
    let time = unsafe { data.as_ptr().cast::<libc::timespec>().read_unaligned() };
    let (seconds, rest) = (
        u64::try_from(time.tv_sec).ok()?,
        u64::try_from(time.tv_nsec).ok()?,
    );
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

/// Room for the control messages of one message, aligned as `cmsghdr` wants it: length of a segment,
/// a local address, or an extended error with an address, time, type of service, time to live.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control([u64; CONTROL_WORDS]);

impl Control {
    pub(super) const EMPTY: Self = Self([0; CONTROL_WORDS]);
}

const CONTROL_WORDS: usize = 18;

// SAFETY: CMSG_SPACE only computes.
const NEEDED_BYTES: u32 = unsafe {
    libc::CMSG_SPACE(
        (size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>()) as c_uint,
    ) + libc::CMSG_SPACE(size_of::<libc::timespec>() as c_uint)
        + 2 * libc::CMSG_SPACE(size_of::<c_int>() as c_uint)
};
const _: () = assert!(NEEDED_BYTES as usize <= size_of::<Control>());
const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_eight_bits_come_as_a_byte_or_an_int() {
        let int = |value: c_int| value.to_ne_bytes().to_vec();
        for (data, field) in [
            (vec![0xb8], Some(0xb8)),
            (int(0xb8), Some(0xb8)),
            (int(255), Some(255)),
            (int(256), None),
            (int(-1), None),
            (vec![], None),
            (vec![1, 2, 3], None),
        ] {
            assert_eq!(header_field(&data), field, "{data:?}");
        }
    }

    #[test]
    fn a_cut_control_message_gives_no_value() {
        let mut attached = Attached::default();
        attached.take(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &[1; 7]);
        attached.take(libc::SOL_UDP, UDP_GRO, &[1; 3]);
        attached.take(libc::SOL_IP, libc::IP_TTL, &[1; 2]);
        assert_eq!(
            (attached.stamped_unix_ns, attached.segment_len, attached.ttl),
            (None, None, None)
        );
    }
}
