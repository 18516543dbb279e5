//! IPsec behind an interface: the security association of an `xfrm` device (NETLINK_XFRM,
//! `linux/xfrm.h`, `ip xfrm state`).

use std::net::IpAddr;

use linerate_sys::netlink::Family;

use super::{Headers, Tunnel};
use crate::nic::{links, route};
use crate::prelude::*;

/// Sizes of an ESP packet (RFC 4303).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Esp {
    iv_bytes: u32,
    icv_bytes: u32,
    /// The encrypted part is a multiple of it.
    block_bytes: u32,
    /// Bytes of UDP around ESP (RFC 3948), or 0.
    udp_bytes: u32,
}

impl Esp {
    /// Largest packet that fits into `bytes` behind the outer IP header.
    pub(super) fn largest_bytes(&self, bytes: u32) -> u32 {
        /// Parameters index and sequence number.
        const HEADER_BYTES: u32 = 8;
        /// Length of the padding, and next header.
        const TRAILER_BYTES: u32 = 2;

        let outside = self.udp_bytes + HEADER_BYTES + self.iv_bytes + self.icv_bytes;
        let encrypted = bytes.saturating_sub(outside);
        (encrypted - encrypted % self.block_bytes).saturating_sub(TRAILER_BYTES)
    }
}

/// One association.
#[derive(Debug, PartialEq, Eq)]
struct Association {
    local: IpAddr,
    remote: IpAddr,
    interface: u32,
    esp: Esp,
}

/// The tunnel of an `xfrm` device by `IFLA_INFO_DATA`; `None` without its association or without
/// `CAP_NET_ADMIN`.
pub(super) fn read(data: &[u8]) -> Option<Tunnel> {
    const DEVICE: u16 = 1;
    const INTERFACE: u16 = 2;
    const GET_ASSOCIATION: u16 = 0x12;

    let interface = u32_of(data, INTERFACE)?;
    let loopback = links::all().into_iter().find(|link| link.loopback)?.index;
    // Both directions have the number of the device; only the other end is not of this host.
    let leaves = |one: &Association| {
        one.interface == interface
            && route::device_index(one.remote).is_some_and(|device| device != loopback)
    };
    let mut outgoing = None;
    // A message has the keys as well, which are not read.
    let each = |payload: &[u8]| {
        if outgoing.is_none() {
            outgoing = association(payload).filter(leaves);
        }
    };
    let mut client = NetlinkClient::open(Family::Xfrm).ok()?;
    client.dump(GET_ASSOCIATION, &[], each).ok()?;

    let outgoing = outgoing?;
    Some(Tunnel {
        local: Some(outgoing.local),
        remotes: vec![outgoing.remote],
        port: None,
        device: u32_of(data, DEVICE).filter(|index| *index > 0),
        headers: Headers::Esp(outgoing.esp),
    })
}

/// Reads a `struct xfrm_usersa_info` and its attributes; `None` unless it is of ESP in tunnel mode
/// with algorithms that are known.
fn association(payload: &[u8]) -> Option<Association> {
    const ESP: u8 = 50;
    const TUNNEL: u8 = 1;
    const INET: u16 = 2;
    const INFO_BYTES: usize = 224;
    const CRYPT: u16 = 2;
    const ENCAPSULATION: u16 = 4;
    const AEAD: u16 = 18;
    const AUTH: u16 = 20;
    const INTERFACE: u16 = 31;
    /// Behind the name of an algorithm and the length of its key.
    const CHECK_BITS_AT: usize = 68;

    // Offsets of `id.proto` and `mode`.
    if *payload.get(76)? != ESP || *payload.get(214)? != TUNNEL {
        return None;
    }
    let length = if u16_at(payload, 212)? == INET { 4 } else { 16 };
    let address = |at: usize| route::address_of(payload.get(at..at + length)?);
    let attributes = payload.get(INFO_BYTES..)?;
    let udp_bytes = attribute(attributes, ENCAPSULATION).map_or(0, |_| 8);

    let aead = attribute(attributes, AEAD);
    let algorithm = aead.or_else(|| attribute(attributes, CRYPT))?;
    let (iv_bytes, block_bytes) = sizes(&text(algorithm.get(..64)?))?;
    let checked = aead.or_else(|| attribute(attributes, AUTH));
    let check_bits = checked.map_or(Some(0), |one| u32_at(one, CHECK_BITS_AT))?;

    Some(Association {
        remote: address(56)?,
        local: address(80)?,
        interface: u32_of(attributes, INTERFACE).unwrap_or(0),
        esp: Esp {
            iv_bytes,
            // A length that no algorithm has must not overflow sums.
            icv_bytes: (check_bits / 8).min(64),
            block_bytes,
            udp_bytes,
        },
    })
}

/// Initialization vector and block of an algorithm of the kernel.
fn sizes(name: &str) -> Option<(u32, u32)> {
    // ESP aligns to four bytes at least.
    Some(match name {
        _ if name.starts_with("rfc4106(gcm(") || name.starts_with("rfc4309(ccm(") => (8, 4),
        "rfc7539esp(chacha20,poly1305)" => (8, 4),
        _ if name.starts_with("rfc3686(ctr(") => (8, 4),
        "cbc(des3_ede)" => (8, 8),
        _ if name.starts_with("cbc(") => (16, 16),
        "ecb(cipher_null)" | "cipher_null" => (0, 4),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::push;

    /// An association of IPv4 from 192.0.2.1 to 192.0.2.2.
    fn message(protocol: u8, attributes: &[(u16, &str, u32)]) -> Vec<u8> {
        let mut payload = vec![0; 224];
        payload[56..60].copy_from_slice(&[192, 0, 2, 2]);
        payload[76] = protocol;
        payload[80..84].copy_from_slice(&[192, 0, 2, 1]);
        payload[212..214].copy_from_slice(&2_u16.to_ne_bytes());
        payload[214] = 1;
        for (kind, name, check_bits) in attributes {
            let mut algorithm = vec![0; 64];
            algorithm[..name.len()].copy_from_slice(name.as_bytes());
            algorithm.extend(128_u32.to_ne_bytes());
            algorithm.extend(check_bits.to_ne_bytes());
            push(&mut payload, *kind, &algorithm);
        }
        push(&mut payload, 31, &7_u32.to_ne_bytes());
        payload
    }

    /// The largest packets are those that Linux 6.1 has as the MTU of such a route.
    #[test]
    fn headers_follow_the_algorithms() {
        for (attributes, largest) in [
            (&[(18, "rfc4106(gcm(aes))", 128)][..], 1446),
            (&[(2, "cbc(aes)", 0), (20, "hmac(sha1)", 96)], 1438),
            (
                &[(2, "cbc(aes)", 0), (20, "hmac(sha256)", 128), (4, "", 0)],
                1422,
            ),
        ] {
            let found = association(&message(50, attributes)).expect("an association");
            assert_eq!(found.interface, 7);
            assert_eq!(found.remote, IpAddr::from([192, 0, 2, 2]));
            let tunnel = Tunnel {
                local: Some(found.local),
                headers: Headers::Esp(found.esp),
                ..Tunnel::default()
            };
            assert_eq!(
                tunnel.overhead_bytes(Some(1500)),
                1500 - largest,
                "{attributes:?}"
            );
        }
    }

    #[test]
    fn other_protocols_and_short_messages_have_no_association() {
        let aead = [(18, "rfc4106(gcm(aes))", 128)];
        assert_eq!(association(&message(51, &aead)), None);
        assert_eq!(
            association(&message(50, &[(18, "new(algorithm)", 128)])),
            None
        );
        let whole = message(50, &aead);
        for length in 0..whole.len() {
            association(&whole[..length]);
        }
    }
}
