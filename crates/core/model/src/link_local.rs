//! Link-local addresses, which are valid on one device alone (RFC 4007).

use std::net::Ipv6Addr;

/// Advice for a link-local address without its device, which the kernel refuses with `EINVAL`.
pub fn scope_advice(host: &str) -> Option<String> {
    let address: Ipv6Addr = host.trim_matches(['[', ']']).parse().ok()?;
    address.is_unicast_link_local().then(|| {
        format!(
            "a link-local address needs the device of this host: {address}%eth0 (`ip -6 address` \
             lists the devices)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_link_local_addresses_without_a_device_need_one() {
        for host in ["fe80::1", "[fe80::1]", "febf::7"] {
            assert!(
                scope_advice(host).is_some_and(|text| text.contains("%eth0")),
                "{host}"
            );
        }

        for host in ["fe80::1%eth0", "2001:db8::1", "10.0.0.1", "lab", ""] {
            assert_eq!(scope_advice(host), None, "{host}");
        }
    }
}
