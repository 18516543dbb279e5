//! HELLO: the agent and its host.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;

use crate::protocol::message::{Address, Hello, VERSION, Versions};
use linerate_history::run::record::host_key;
use linerate_host::attachment;
use linerate_store::keys;
use linerate_sys::{clock, interfaces, process};

/// Addresses that are listed, at most.
const ADDRESSES_MAX: usize = 256;

/// The agent and its host, now, with the address of the control path. What cannot be read is absent
/// or empty.
pub(super) fn hello(control_address: Option<IpAddr>) -> Hello {
    Hello {
        protocol: Versions {
            min: VERSION,
            max: VERSION,
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: process::uname().node,
        host_key: host_key(),
        boot_hash: boot_hash(),
        addresses: addresses(),
        control_address,
        mono_ns: clock::monotonic_ns(),
        unix_ns: clock::unix_ns(),
    }
}

/// Hash of the boot id and of the network namespace: containers of one machine are hosts if their
/// networks are.
fn boot_hash() -> Option<String> {
    let boot = clock::boot_id().ok()?;
    // Network namespaces of one machine have interfaces of their own and are hosts of their own.
    let namespace = interfaces::namespace_cookie().unwrap_or(0);
    Some(keys::sha256(format!("{boot} {namespace}").as_bytes()))
}

/// Addresses of this host with their devices, the speeds of these and their ports.
fn addresses() -> Vec<Address> {
    let mut devices = HashMap::new();
    let mut addresses = Vec::new();
    for (address, _) in interfaces::addresses() {
        let Some(device) = interfaces::device_of(address) else {
            continue;
        };
        if addresses.len() == ADDRESSES_MAX {
            break;
        }

        let known = devices.entry(device.clone());
        let (speed_bps, attachment) =
            known.or_insert_with(|| (speed_bps(&device), attachment(&device)));
        addresses.push(Address {
            address,
            speed_bps: *speed_bps,
            ports: attachment.ports.iter().cloned().collect(),
            has_vlan: attachment.has_vlan,
            device,
        });
    }

    addresses
}

/// Speed of a link as the kernel reports it; absent for devices without one.
fn speed_bps(device: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{device}/speed")).ok()?;
    // The kernel reports -1 for an unknown speed (SPEED_UNKNOWN).
    let mbps: u64 = text.trim().parse().ok()?;
    (mbps > 0).then(|| mbps.saturating_mul(1_000_000))
}

/// Local address of the connection that sshd serves (ssh(1), `SSH_CONNECTION`: client address and
/// port, server address and port).
pub(super) fn control_address(connection: &str) -> Option<IpAddr> {
    let address = connection.split_whitespace().nth(2)?;
    // A link-local address has its device behind a percent sign.
    address.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_describes_this_host() {
        let hello = hello(None);
        assert!(!hello.host.is_empty() && hello.mono_ns > 0);

        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(
            hello
                .addresses
                .iter()
                .any(|own| own.address == loopback && own.device == "lo"),
            "{hello:?}"
        );
    }

    #[test]
    fn control_address_is_the_local_end() {
        assert_eq!(
            control_address("192.0.2.1 50000 192.0.2.7 22"),
            Some([192, 0, 2, 7].into())
        );
        assert_eq!(
            control_address("fe80::1%eth0 50000 fe80::2%eth0 22"),
            "fe80::2".parse().ok()
        );
        assert_eq!(control_address("UNKNOWN"), None);
    }
}
