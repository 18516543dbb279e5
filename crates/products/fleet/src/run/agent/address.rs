//! Addresses of a plan on this host.

use std::net::UdpSocket;

use crate::protocol::message::PathAddress;

/// Checks that every address is this host's. A socket that can be bound decides, because a loopback
/// network has more addresses than its device.
///
/// # Errors
/// The first address that is not.
pub(super) fn check(addresses: &[PathAddress]) -> Result<(), String> {
    match addresses
        .iter()
        // bind(2) refuses addresses that no interface has (EADDRNOTAVAIL).
        .find(|own| UdpSocket::bind((own.address, 0)).is_err())
    {
        Some(own) => Err(format!(
            "{}, path {}: no address of this host",
            own.address, own.path
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_another_host_is_refused_by_name() {
        let at = |address: [u8; 4]| PathAddress {
            path: "phys".to_owned(),
            address: address.into(),
        };
        assert_eq!(check(&[at([127, 0, 0, 2])]), Ok(()));
        let refused = check(&[at([127, 0, 0, 2]), at([192, 0, 2, 1])]);
        assert_eq!(
            refused,
            Err("192.0.2.1, path phys: no address of this host".to_owned())
        );
    }
}
