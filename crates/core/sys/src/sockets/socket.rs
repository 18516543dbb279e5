//! Making, naming, joining and ending sockets.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::{fmt, io};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::errno_text::resolver_text;
use crate::error::{During, OsError, Result, strerror};
use crate::syscall::socket_addr;

/// The transport of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP (tcp(7)).
    Tcp,
    /// Multipath TCP (Linux 5.6, `net.mptcp.enabled`); falls back to TCP when the peer lacks it.
    Mptcp,
    /// UDP (udp(7)).
    Udp,
    /// SCTP, one-to-one style (sctp(7)); needs the kernel module `sctp`.
    Sctp,
}

/// State of a connect after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connect {
    /// The connection stands (always so for UDP).
    Done,
    /// The handshake runs: wait for writability, then ask [`take_error`].
    InProgress,
}

/// An address family to resolve for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: &SocketAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }
}

/// A name that did not resolve. Displays as the resolver's text alone: `Name or service not known`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveError {
    /// The name as the caller gave it.
    pub host: String,
    /// The resolver's text, as `gai_strerror(3)` of glibc gives it.
    pub text: String,
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ResolveError {}

/// Makes a socket for the family of an address; close-on-exec and non-blocking (socket(2)).
///
/// # Errors
/// The operating system's; [`OsError::is_unsupported`] where the kernel lacks the protocol.
pub fn open(addr_family_of: &SocketAddr, protocol: Protocol) -> Result<OwnedFd> {
    let (kind, number) = match protocol {
        Protocol::Tcp => (Type::STREAM, libc::IPPROTO_TCP),
        Protocol::Mptcp => (Type::STREAM, libc::IPPROTO_MPTCP),
        Protocol::Udp => (Type::DGRAM, libc::IPPROTO_UDP),
        Protocol::Sctp => (Type::STREAM, libc::IPPROTO_SCTP),
    };
    let domain = Domain::for_address(*addr_family_of);
    Socket::new_raw(domain, kind.cloexec().nonblocking(), Some(number.into()))
        .map(OwnedFd::from)
        .during(
            "socket",
            format_args!(
                "{} {}",
                protocol.name(),
                if addr_family_of.is_ipv4() {
                    "ipv4"
                } else {
                    "ipv6"
                }
            ),
        )
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// Gives the socket its local address (bind(2)); port 0 lets the kernel choose.
///
/// # Errors
/// The operating system's, for instance `EADDRINUSE`.
pub fn bind(fd: impl AsFd, address: &SocketAddr) -> Result<()> {
    SockRef::from(&fd)
        .bind(&SockAddr::from(*address))
        .during("bind", address)
}

/// Lets peers connect; at most `backlog` connections wait for [`accept`] (listen(2), capped by
/// `net.core.somaxconn`).
///
/// # Errors
/// The operating system's.
pub fn listen(fd: impl AsFd, backlog: i32) -> Result<()> {
    SockRef::from(&fd).listen(backlog).during("listen", "")
}

/// Takes one waiting connection with the peer's address, unmapped; close-on-exec and non-blocking
/// (accept4(2)). `None` when none is queued. Connections that died while waiting are skipped.
///
/// # Errors
/// The operating system's, for instance `EMFILE`.
pub fn accept(fd: impl AsFd) -> io::Result<Option<(OwnedFd, SocketAddr)>> {
    let listener = SockRef::from(&fd);
    loop {
        match listener.accept4(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) {
            Ok((socket, peer)) => {
                let peer = peer.as_socket().ok_or_else(not_internet)?;
                return Ok(Some((socket.into(), unmap(peer))));
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(None),
                Some(libc::EINTR | libc::ECONNABORTED) => {}
                _ => return Err(error),
            },
        }
    }
}

/// Connects, or starts to (connect(2)). An IPv6 address carries its scope and flow information with
/// it.
///
/// # Errors
/// The operating system's, for instance `ENETUNREACH`, or `ECONNREFUSED` at once on loopback.
pub fn connect(fd: impl AsFd, remote: &SocketAddr) -> Result<Connect> {
    match SockRef::from(&fd).connect(&SockAddr::from(*remote)) {
        Ok(()) => Ok(Connect::Done),
        // An interrupted connect continues in the background just as a non-blocking one.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
            Ok(Connect::InProgress)
        }
        Err(source) => Err(OsError::new("connect", remote, source)),
    }
}

/// Takes the socket's pending error (`SO_ERROR`, socket(7)), so that it is reported once.
///
/// # Errors
/// The pending error itself, with operation `connect` and the peer's address where it is known.
pub fn take_error(fd: impl AsFd) -> Result<()> {
    match SockRef::from(&fd)
        .take_error()
        .during("getsockopt SO_ERROR", "")?
    {
        None => Ok(()),
        Some(pending) => {
            let peer = peer_addr(&fd)
                .map(|peer| peer.to_string())
                .unwrap_or_default();
            Err(OsError::new("connect", peer, pending))
        }
    }
}

/// The socket's own address, unmapped (getsockname(2)).
///
/// # Errors
/// The operating system's.
pub fn local_addr(fd: impl AsFd) -> Result<SocketAddr> {
    SockRef::from(&fd)
        .local_addr()
        .and_then(|address| internet(&address))
        .during("getsockname", "")
}

/// The source address of the default route, by which most others reach this host; `None` without
/// one.
pub fn default_source() -> Option<IpAddr> {
    // Addresses of no host (RFC 5737, RFC 3849). Nothing is sent to them.
    ["192.0.2.1:9", "[2001:db8::1]:9"].iter().find_map(|to| {
        let to = to.parse().ok()?;
        let fd = open(&to, Protocol::Udp).ok()?;
        connect(&fd, &to).ok()?;
        Some(local_addr(&fd).ok()?.ip())
    })
}

/// The peer's address, unmapped (getpeername(2)).
///
/// # Errors
/// The operating system's; `ENOTCONN` before a connection stands.
pub fn peer_addr(fd: impl AsFd) -> Result<SocketAddr> {
    SockRef::from(&fd)
        .peer_addr()
        .and_then(|address| internet(&address))
        .during("getpeername", "")
}

fn internet(address: &SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().map(unmap).ok_or_else(not_internet)
}

fn not_internet() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not an internet address")
}

/// An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) as the IPv4 address it represents; others
/// as they are.
pub fn unmap(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// True if the socket's packets are IPv4: an IPv4 socket, or an IPv6 one that talks to an
/// IPv4-mapped address. This decides which header field a type of service goes into. A listener on
/// `::` counts as IPv6.
pub fn is_ipv4_socket(fd: impl AsFd) -> bool {
    local_addr(fd).is_ok_and(|local| local.is_ipv4())
}

/// The address that covers all interfaces of a family.
pub fn wildcard(family: Family, port: u16) -> SocketAddr {
    match family {
        Family::V4 => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        Family::V6 => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    }
}

/// Ends our direction: the peer reads what was sent, then end of file (shutdown(2)).
///
/// # Errors
/// The operating system's; `ENOTCONN` when the connection is gone.
pub fn shutdown_write(fd: impl AsFd) -> Result<()> {
    SockRef::from(&fd)
        .shutdown(Shutdown::Write)
        .during("shutdown", "write")
}

/// Ends both directions and wakes threads blocked in the socket (shutdown(2)).
///
/// # Errors
/// The operating system's; `ENOTCONN` when the connection is gone.
pub fn shutdown_both(fd: impl AsFd) -> Result<()> {
    SockRef::from(&fd)
        .shutdown(Shutdown::Both)
        .during("shutdown", "both")
}

/// Addresses of a host in the resolver's order of preference (getaddrinfo(3)), each with `port`.
///
/// Takes names and numeric addresses, IPv6 ones with a scope too (`fe80::1%eth0`). Waits for DNS as
/// long as the resolver's configuration defines.
///
/// # Errors
/// The resolver's text; a name with a NUL inside, or longer than a resolver accepts, is not known.
pub fn resolve(
    host: &str,
    port: u16,
    family: Option<Family>,
) -> Result<Vec<SocketAddr>, ResolveError> {
    let failed = |text: String| ResolveError {
        host: host.to_owned(),
        text,
    };
    let name = CString::new(host)
        .ok()
        .filter(|_| host.len() <= HOST_LEN_MAX)
        .ok_or_else(|| failed(resolver_text(libc::EAI_NONAME).to_owned()))?;
    let found = AddressList::query(&name, family).map_err(|error| failed(error.text(host)))?;
    let addresses: Vec<_> = found
        .iter()
        .take(ADDRESSES_MAX)
        .map(|mut address| {
            address.set_port(port);
            address
        })
        .collect();
    if addresses.is_empty() {
        return Err(failed(resolver_text(libc::EAI_NONAME).to_owned()));
    }

    Ok(addresses)
}

/// Why `getaddrinfo(3)` failed.
enum LookupError {
    /// Its code.
    Resolver(i32),
    /// The error number of the operating system.
    System(i32),
}

impl LookupError {
    fn text(&self, host: &str) -> String {
        match self {
            // musl calls a numeric address of the other family a name without addresses.
            Self::Resolver(EAI_NODATA) if host.parse::<IpAddr>().is_ok() => {
                resolver_text(EAI_ADDRFAMILY).to_owned()
            }
            Self::Resolver(code) => resolver_text(*code).to_owned(),
            Self::System(errno) => strerror(*errno),
        }
    }
}

/// List that `getaddrinfo(3)` allocated.
struct AddressList(*mut libc::addrinfo);

impl AddressList {
    fn query(name: &CString, family: Option<Family>) -> std::result::Result<Self, LookupError> {
        // SAFETY: all-zero bytes are valid hints: no flags, any family, null pointers.
        let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
        hints.ai_family = match family {
            None => libc::AF_UNSPEC,
            Some(Family::V4) => libc::AF_INET,
            Some(Family::V6) => libc::AF_INET6,
        };

        // Without a socket type every address would come once per type.
        hints.ai_socktype = libc::SOCK_STREAM;
        let mut head = std::ptr::null_mut();

        // SAFETY: `name` is NUL-terminated, the service may be null, hints and result pointer
        // outlive the call.
        let code = unsafe {
            libc::getaddrinfo(
                name.as_ptr(),
                std::ptr::null(),
                &raw const hints,
                &raw mut head,
            )
        };
        match code {
            0 => Ok(Self(head)),
            libc::EAI_SYSTEM => {
                let errno = io::Error::last_os_error().raw_os_error();
                Err(LookupError::System(errno.unwrap_or_default()))
            }
            code => Err(LookupError::Resolver(code)),
        }
    }

    fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        // SAFETY: the list came from getaddrinfo and lives until `self` drops; its end is a null
        // pointer.
        let head = unsafe { self.0.as_ref() };
        // SAFETY: as above for every further link.
        let nodes = std::iter::successors(head, |node| unsafe { node.ai_next.as_ref() });
        nodes.filter_map(|node| {
            // SAFETY: all-zero bytes are a valid sockaddr_storage.
            let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
            let len = usize::try_from(node.ai_addrlen)
                .ok()
                .filter(|len| *len <= size_of_val(&storage))?;
            if node.ai_addr.is_null() {
                return None;
            }

            // SAFETY: ai_addr points to ai_addrlen bytes, checked to fit into the storage.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    node.ai_addr.cast::<u8>(),
                    (&raw mut storage).cast(),
                    len,
                );
            };

            socket_addr(&storage)
        })
    }
}

impl Drop for AddressList {
    fn drop(&mut self) {
        // SAFETY: the list came from a successful getaddrinfo and is freed once.
        unsafe { libc::freeaddrinfo(self.0) };
    }
}

/// Codes of `getaddrinfo(3)` the C library's bindings leave out.
const EAI_NODATA: i32 = -5;
const EAI_ADDRFAMILY: i32 = -9;

/// Longest name handed to the resolver, in bytes: `NI_MAXHOST`, more than any valid name.
const HOST_LEN_MAX: usize = 1025;

/// Most addresses taken from one answer.
const ADDRESSES_MAX: usize = 64;

/// Name of an address in the DNS or the hosts file (getnameinfo(3)); `None` without one. Waits for
/// the resolver.
pub fn name_of(address: IpAddr) -> Option<String> {
    // DNS names have at most 253 characters (RFC 1035).
    let mut name = [0_u8; 256];
    let address = SockAddr::from(SocketAddr::new(address, 0));

    // SAFETY: the address is one of the length that is stated, and the buffer is writable in its
    // whole length during the call.
    let status = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr().cast(),
            name.len() as libc::socklen_t,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    let name = std::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    (status == 0).then(|| name.to_string_lossy().into_owned())
}
