//! Which network device has which address (`getifaddrs(3)`), and in which network namespace.

use std::ffi::CStr;
use std::iter;
use std::net::IpAddr;
use std::os::unix::net::UnixDatagram;

use crate::error::{During, Result};
use crate::option::option;
use crate::syscall::socket_addr;

/// Number of this process's network namespace, which no other one gets before the next boot
/// (`SO_NETNS_COOKIE`).
///
/// # Errors
/// The operating system's; `ENOPROTOOPT` before Linux 5.14.
pub fn namespace_cookie() -> Result<u64> {
    let socket = UnixDatagram::unbound().during("socket", "")?;
    let mut cookie = [0; size_of::<u64>()];
    let option: crate::option::SocketOption = option!(SOL_SOCKET, SO_NETNS_COOKIE);
    option.get_bytes(socket, &mut cookie)?;
    Ok(u64::from_ne_bytes(cookie))
}

/// True for an address of this host.
pub fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || device_of(address).is_some()
}

/// The device that has this address. `None` where none has it, as with addresses of multicast
/// groups, or where the kernel does not report it.
pub fn device_of(address: IpAddr) -> Option<String> {
    let list = DeviceList::query()?;
    let entry = list.iter().find(|entry| ip(entry) == Some(address))?;
    // SAFETY: the C library gives every entry a NUL-terminated name that lives as long as the list.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    Some(name.to_string_lossy().into_owned())
}

/// The addresses of this host, each with the length of its network's prefix in bits. Empty where
/// the kernel does not report it.
pub fn addresses() -> Vec<(IpAddr, u8)> {
    let list = DeviceList::query();
    let entries = list.iter().flat_map(DeviceList::iter);
    entries
        .filter_map(|entry| Some((ip(entry)?, prefix_len(entry)?)))
        .collect()
}

/// The address of an entry; devices without one have entries, too.
fn ip(entry: &libc::ifaddrs) -> Option<IpAddr> {
    // SAFETY: the C library filled the entry, and it lives as long as the list.
    unsafe { address_at(entry.ifa_addr) }
}

/// Bits that are set in the mask of an entry.
fn prefix_len(entry: &libc::ifaddrs) -> Option<u8> {
    // SAFETY: as in `ip`.
    let ones = match unsafe { address_at(entry.ifa_netmask) }? {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    u8::try_from(ones).ok()
}

/// The internet address at a pointer.
///
/// # Safety
/// The pointer is null or leads to as many bytes as an address of the family it names has.
unsafe fn address_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller promises that it is null or leads to an address.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    let len = match family {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };

    // SAFETY: all-zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: an address of this family has `len` bytes, and the storage has room for every
    // address.
    unsafe { std::ptr::copy_nonoverlapping(address.cast::<u8>(), (&raw mut storage).cast(), len) };

    socket_addr(&storage).map(|address| address.ip())
}

/// List that `getifaddrs(3)` allocated.
struct DeviceList(*mut libc::ifaddrs);

impl DeviceList {
    fn query() -> Option<Self> {
        let mut head = std::ptr::null_mut();
        // SAFETY: the result pointer outlives the call.
        let code = unsafe { libc::getifaddrs(&raw mut head) };
        (code == 0).then_some(Self(head))
    }

    fn iter(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        // SAFETY: the list came from getifaddrs and lives until `self` drops; its end is a null
        // pointer.
        let head = unsafe { self.0.as_ref() };
        // SAFETY: as above for every further link.
        iter::successors(head, |entry| unsafe { entry.ifa_next.as_ref() })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list came from a successful getifaddrs and is freed once.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_the_loopback_address() {
        assert_eq!(device_of([127, 0, 0, 1].into()).as_deref(), Some("lo"));
    }

    #[test]
    fn every_socket_of_this_process_is_in_one_namespace() {
        let Ok(cookie) = namespace_cookie() else {
            return;
        };
        assert!(cookie != 0 && namespace_cookie().is_ok_and(|again| again == cookie));
    }

    #[test]
    fn the_loopback_network_is_a_class_a() {
        assert!(addresses().contains(&([127, 0, 0, 1].into(), 8)));
    }

    #[test]
    fn unassigned_addresses_have_no_device() {
        assert_eq!(device_of([239, 1, 2, 3].into()), None);
    }
}
