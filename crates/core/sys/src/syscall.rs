//! The one way from a raw return value to a result.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Turns the −1 of a failed call into the error `errno` names.
pub(crate) fn syscall<T: PartialEq + From<i8>>(returned: T) -> io::Result<T> {
    if returned == T::from(-1) {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned)
    }
}

/// [`syscall`] for calls that return a length or a count.
pub(crate) fn syscall_len(returned: isize) -> io::Result<usize> {
    syscall(returned).map(isize::cast_unsigned)
}

/// A number whose width depends on the machine or the C library.
pub(crate) fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

/// The number in such a width, `max` where it does not fit.
pub(crate) fn narrow<T: TryFrom<u64>>(number: u64, max: T) -> T {
    T::try_from(number).unwrap_or(max)
}

/// The internet address in `storage`; `None` for other families and for an address the kernel did
/// not fill in.
pub(crate) fn socket_addr(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family implies that the storage, which is large and aligned enough for
            // every address, holds a sockaddr_in; all bit patterns are valid for its integers.
            let v4 = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, with sockaddr_in6.
            let v6 = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(
                SocketAddrV6::new(
                    ip,
                    u16::from_be(v6.sin6_port),
                    v6.sin6_flowinfo,
                    v6.sin6_scope_id,
                )
                .into(),
            )
        }
        _ => None,
    }
}

/// [`socket_addr`] of bytes that begin with a `sockaddr_in` or `sockaddr_in6`; what lies behind the
/// bytes counts as 0.
pub(crate) fn socket_addr_in(bytes: &[u8]) -> Option<SocketAddr> {
    // SAFETY: all-zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let len = bytes.len().min(size_of_val(&storage));

    // SAFETY: source and destination hold `len` bytes each and do not overlap; all bit patterns are
    // valid for the storage.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut storage).cast(), len) };
    socket_addr(&storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_one_becomes_the_errno() {
        // SAFETY: closing a descriptor number that cannot exist has no effect but EBADF.
        let error = syscall(unsafe { libc::close(-1) }).expect_err("descriptor -1 is never open");
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        assert_eq!(syscall_len(7).expect("7 is no failure"), 7);
    }

    #[test]
    fn addresses_survive_the_round_trip_through_the_kernels_layout() {
        for text in ["192.0.2.7:5201", "[2001:db8::1]:5201", "[fe80::1%3]:9"] {
            let address: SocketAddr = text.parse().expect("test address");
            let sock_addr = socket2::SockAddr::from(address);
            // SAFETY: SockAddr wraps a sockaddr_storage of full size.
            let storage = unsafe { &*sock_addr.as_ptr().cast::<libc::sockaddr_storage>() };
            assert_eq!(socket_addr(storage), Some(address));
        }
    }

    #[test]
    fn an_empty_storage_is_no_address() {
        // SAFETY: all-zero bytes are a valid sockaddr_storage.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        assert_eq!(socket_addr(&storage), None);
    }
}
