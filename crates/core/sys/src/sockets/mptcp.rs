//! Subflows of Multipath TCP connections (RFC 8684; `include/uapi/linux/mptcp.h`).

use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use libc::c_int;

use crate::error::{During, Result};
use crate::option::SocketOption;
use crate::socket::unmap;
use crate::syscall::socket_addr_in;
use crate::tcp_info::{self, TcpInfo};

/// Most subflows that [`subflows`] returns. The path manager of the kernel opens at most 8 beside
/// the first.
pub const SUBFLOWS_MAX: usize = 64;

/// One TCP connection of a Multipath TCP connection.
///
/// Its backup flag (`MP_PRIO`) is in no socket option; sock_diag(7) has it
/// (`MPTCP_SUBFLOW_ATTR_FLAGS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subflow {
    /// Number within the connection, ascending in the order of opening, never used twice (Linux
    /// 6.5).
    pub id: Option<u32>,
    /// Address of this end, unmapped; `None` where the kernel does not give it.
    pub local: Option<SocketAddr>,
    /// Address of the other end, as [`Self::local`].
    pub remote: Option<SocketAddr>,
    /// State of the connection, as [`tcp_info::tcp_info`].
    pub info: TcpInfo,
}

/// The subflows of a connection, in the kernel's order (`MPTCP_FULL_INFO`, Linux 6.5;
/// `MPTCP_SUBFLOW_ADDRS` and `MPTCP_TCPINFO`, Linux 5.16). One whose handshake runs is among them;
/// its `rtt_us` is 0.
///
/// # Errors
/// The operating system's. [`crate::OsError::is_unsupported`] where there are no subflows: on a
/// kernel without these options, on a socket that is not MPTCP, and on a connection that fell back
/// to TCP. `InvalidData` when subflows come and go while an older kernel is read.
pub fn subflows(fd: impl AsFd) -> Result<Vec<Subflow>> {
    match full(&fd) {
        Err(error) if error.is_unsupported() => in_parts(fd),
        other => other,
    }
}

/// Everything in one call.
fn full(fd: impl AsFd) -> Result<Vec<Subflow>> {
    let mut subflows = vec![0; SUBFLOWS_MAX * SUBFLOW_LEN];
    let mut infos = vec![0; SUBFLOWS_MAX * tcp_info::SIZE];
    // `struct mptcp_full_info`: tcp_info of the kernel 4, of ours 4, subflow of the kernel 4, of
    // ours 4, subflows 4, elements of the arrays 4, the arrays 8 each. What the kernel sets must be
    // 0.
    let mut request = Vec::with_capacity(FULL_LEN);

    for size in [0, tcp_info::SIZE, 0, SUBFLOW_LEN, 0, SUBFLOWS_MAX] {
        request.extend((size as u32).to_ne_bytes());
    }

    // The kernel writes at most this number of elements of these sizes, for which both arrays have
    // room, and only during the call.
    for array in [&mut subflows, &mut infos] {
        request.extend((array.as_mut_ptr().expose_provenance() as u64).to_ne_bytes());
    }

    FULL_INFO.get_bytes(fd, &mut request)?;
    let word = |at: usize| usize_at(&request, at).unwrap_or_default();
    let (info_len, subflow_len, count) = (word(4), word(12), word(16));
    let both = elements(&subflows, subflow_len, count).zip(elements(&infos, info_len, count));

    both.map(|(subflow, info)| {
        let (id, addresses) = subflow.split_at_checked(ADDRESSES_AT)?;
        let id = id.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        subflow_of(id, &Addresses::parse(addresses), info)
    })
    .collect::<Option<_>>()
    .ok_or_else(incomplete)
    .during(FULL_INFO.get, "")
}

/// Addresses and states one after the other, until no subflow came or went in between.
fn in_parts(fd: impl AsFd) -> Result<Vec<Subflow>> {
    let addresses = || -> Result<Vec<_>> {
        let read = Elements::read(SUBFLOW_ADDRS, &fd, ADDRESSES_LEN)?;
        Ok(read.iter().map(Addresses::parse).collect())
    };
    for _ in 0..ATTEMPTS {
        let (before, infos) = (
            addresses()?,
            Elements::read(TCP_INFOS, &fd, tcp_info::SIZE)?,
        );
        if before == addresses()? && before.len() == infos.iter().count() {
            let both = before
                .iter()
                .zip(infos.iter())
                .map(|(addresses, info)| subflow_of(None, addresses, info));
            return both
                .collect::<Option<_>>()
                .ok_or_else(incomplete)
                .during(TCP_INFOS.get, "");
        }
    }

    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "subflows come and go",
    ))
    .during(SUBFLOW_ADDRS.get, "")
}

fn subflow_of(id: Option<u32>, addresses: &Addresses, info: &[u8]) -> Option<Subflow> {
    Some(Subflow {
        id,
        local: addresses.local,
        remote: addresses.remote,
        info: tcp_info::decode(info)?,
    })
}

fn incomplete() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's answer is too short",
    )
}

/// `struct mptcp_subflow_addrs`.
#[derive(PartialEq, Eq)]
struct Addresses {
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
}

impl Addresses {
    /// Two addresses of 128 bytes each.
    fn parse(bytes: &[u8]) -> Self {
        let at = |at: usize| bytes.get(at..).and_then(socket_addr_in).map(unmap);
        Self {
            local: at(0),
            remote: at(STORAGE_LEN),
        }
    }
}

/// An answer that begins with `struct mptcp_subflow_data`: its size 4, subflows 4, element of the
/// kernel 4, of ours 4.
struct Elements(Vec<u8>);

impl Elements {
    fn read(option: SocketOption, fd: impl AsFd, len: usize) -> Result<Self> {
        let mut answer = vec![0; HEAD_LEN + SUBFLOWS_MAX * len];
        for (at, size) in [(0, HEAD_LEN), (12, len)] {
            answer[at..at + 4].copy_from_slice(&(size as u32).to_ne_bytes());
        }

        let written = option.get_bytes(fd, &mut answer)?;
        answer.truncate(written);
        Ok(Self(answer))
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let word = |at: usize| usize_at(&self.0, at).unwrap_or_default();
        elements(
            self.0.get(HEAD_LEN..).unwrap_or_default(),
            word(12),
            word(4),
        )
    }
}

/// The first `count` elements of `len` bytes, as far as the bytes reach.
fn elements(bytes: &[u8], len: usize, count: usize) -> impl Iterator<Item = &[u8]> {
    bytes
        .chunks_exact(len.max(1))
        .take(if len == 0 { 0 } else { count })
}

fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

/// Size of a `sockaddr_storage` in the kernel.
const STORAGE_LEN: usize = 128;
/// Size of `struct mptcp_subflow_addrs`.
const ADDRESSES_LEN: usize = 2 * STORAGE_LEN;
/// Offset of the addresses in `struct mptcp_subflow_info`, behind the number and its padding.
const ADDRESSES_AT: usize = 8;
/// Size of `struct mptcp_subflow_info`.
const SUBFLOW_LEN: usize = ADDRESSES_AT + ADDRESSES_LEN;
/// Size of `struct mptcp_full_info` without what concerns the connection as a whole.
const FULL_LEN: usize = 40;
/// Size of `struct mptcp_subflow_data`.
const HEAD_LEN: usize = 16;
/// Readings of an older kernel; subflows come and go rarely.
const ATTEMPTS: usize = 3;

const TCP_INFOS: SocketOption = read_only(2, "getsockopt MPTCP_TCPINFO");
const SUBFLOW_ADDRS: SocketOption = read_only(3, "getsockopt MPTCP_SUBFLOW_ADDRS");
const FULL_INFO: SocketOption = read_only(4, "getsockopt MPTCP_FULL_INFO");

const fn read_only(name: c_int, get: &'static str) -> SocketOption {
    SocketOption {
        level: SOL_MPTCP,
        name,
        set: "",
        get,
        value: PhantomData,
    }
}

/// From the kernel's `socket.h`; C libraries lack it.
const SOL_MPTCP: c_int = 284;

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::poll::{Interest, wait_fd};
    use crate::socket::{self, Protocol};

    /// Both ends of a connection over loopback; `None` on a kernel without MPTCP.
    fn pair(server: Protocol, address: &str) -> Option<(OwnedFd, OwnedFd)> {
        let local = address.parse().expect("test address");
        let client = socket::open(&local, Protocol::Mptcp).ok()?;
        let listener = socket::open(&local, server).expect("socket");
        socket::bind(&listener, &local).expect("bind");
        socket::listen(&listener, 1).expect("listen");
        socket::connect(&client, &socket::local_addr(&listener).expect("address"))
            .expect("connect");
        assert!(wait_fd(&listener, Interest::READ, None).expect("poll"));

        let (accepted, _) = socket::accept(&listener)
            .expect("accept")
            .expect("one waits");
        assert!(wait_fd(&client, Interest::WRITE, None).expect("poll"));
        Some((client, accepted))
    }

    #[test]
    fn both_ways_to_read_give_the_one_subflow_of_a_connection_over_loopback() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((client, server)) = pair(Protocol::Mptcp, address) else {
                return;
            };
            for end in [&client, &server] {
                let ends = (socket::local_addr(end).ok(), socket::peer_addr(end).ok());
                for read in [full(end), in_parts(end), subflows(end)] {
                    let subflows = match read {
                        Err(error) if error.is_unsupported() => continue,
                        other => other.expect("read"),
                    };
                    assert_eq!(subflows.len(), 1, "{address}");
                    assert_eq!((subflows[0].local, subflows[0].remote), ends);
                    assert!(subflows[0].info.snd_mss_bytes > 0 && subflows[0].info.pmtu_bytes > 0);
                }
            }
        }
    }

    #[test]
    fn a_connection_that_fell_back_has_no_subflows() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((client, server)) = pair(Protocol::Tcp, address) else {
                return;
            };
            for end in [client, server] {
                let error = subflows(end).expect_err("the server is plain TCP");
                assert!(error.is_unsupported(), "{error}");
            }
        }
    }

    #[test]
    fn a_short_or_impossible_answer_has_no_elements() {
        let bytes = [0; 10];
        for (len, count, expected) in [(4, 9, 2), (4, 1, 1), (0, 5, 0), (11, 1, 0), (10, 1, 1)] {
            assert_eq!(
                elements(&bytes, len, count).count(),
                expected,
                "{len} {count}"
            );
        }

        assert_eq!(Elements(Vec::new()).iter().count(), 0);
        let addresses = Addresses::parse(&bytes);
        assert_eq!((addresses.local, addresses.remote), (None, None));
    }
}
