//! WireGuard: its peers by generic netlink (`linux/wireguard.h`), its workers by their names.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_sys::netlink::Family;

use super::{Headers, Tunnel};
use crate::prelude::*;
use crate::{netlink as nl, short_file};

/// UDP, and type, receiver, counter and authentication of a data message.
const HEADERS_BYTES: u32 = 8 + 32;
/// Peers that are read.
const PEERS_MAX: usize = 8;
/// Workers of the kernel that are read.
const WORKERS_MAX: usize = 4096;

/// Port and peers of a device; `None` without `CAP_NET_ADMIN`.
pub(super) fn read(index: u32) -> Option<Tunnel> {
    const GET_DEVICE: u8 = 0;
    const INDEX: u16 = 1;

    let mut body = vec![GET_DEVICE, 1, 0, 0];
    nl::push(&mut body, INDEX, &index.to_ne_bytes());
    let mut tunnel = Tunnel {
        headers: Headers::Bytes(HEADERS_BYTES),
        ..Tunnel::default()
    };

    let mut client = NetlinkClient::open(Family::Generic).ok()?;
    let family = client.generic_family("wireguard")?;
    // The response has the private key as well, which is not read.
    let each = |payload: &[u8]| add(&mut tunnel, payload.get(4..).unwrap_or_default());
    client.dump(family, &body, each).ok()?;
    Some(tunnel)
}

/// Adds the port and the peers of one message.
fn add(tunnel: &mut Tunnel, device: &[u8]) {
    const LISTEN_PORT: u16 = 6;
    const PEERS: u16 = 8;
    const ENDPOINT: u16 = 4;

    tunnel.port = u16_of(device, LISTEN_PORT)
        .filter(|port| *port > 0)
        .or(tunnel.port);
    let peers = attributes(attribute(device, PEERS).unwrap_or_default());
    let endpoints = peers.filter_map(|(_, peer)| endpoint(attribute(peer, ENDPOINT)?));
    let room = PEERS_MAX.saturating_sub(tunnel.remotes.len());
    tunnel.remotes.extend(endpoints.take(room));
}

/// The address of a `struct sockaddr_in` or `struct sockaddr_in6`.
fn endpoint(socket: &[u8]) -> Option<IpAddr> {
    const INET: u16 = 2;

    if u16_at(socket, 0)? == INET {
        let octets = socket.get(4..)?.first_chunk::<4>()?;
        Some(Ipv4Addr::from(*octets).into())
    } else {
        let octets = socket.get(8..)?.first_chunk::<16>()?;
        Some(Ipv6Addr::from(*octets).into())
    }
}

/// CPUs whose workers encrypted or decrypted last for a device; `None` where none did. Other work
/// takes their names over.
pub(super) fn worker_cpus(device: &str) -> Option<String> {
    // All threads of the kernel are children of kthreadd, process 2.
    let threads = short_file::read("/proc/2/task/2/children")?;
    let names = threads
        .split(' ')
        .take(WORKERS_MAX)
        .filter_map(|thread| short_file::read(format!("/proc/{thread}/comm")));
    let cpus: BTreeSet<u32> = names.filter_map(|name| worker_cpu(&name, device)).collect();
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    (!cpus.is_empty()).then(|| cpus.join(" "))
}

/// The CPU in the name of a worker: `kworker/1:2-wg-crypt-wg0`, with `+` while it works.
fn worker_cpu(name: &str, device: &str) -> Option<u32> {
    let (worker, queue) = name.strip_prefix("kworker/")?.split_once(['-', '+'])?;
    if queue.strip_prefix("wg-crypt-") != Some(device) {
        return None;
    }
    worker.split_once(':')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{encoded, push};

    #[test]
    fn peers_of_all_messages_are_its_ends() {
        let v4 = [
            &2_u16.to_ne_bytes()[..],
            &[0xca, 0x6c, 192, 0, 2, 9],
            &[0; 8],
        ]
        .concat();
        let v6 = [&10_u16.to_ne_bytes()[..], &[0; 6], &[0x20; 16], &[0; 4]].concat();
        let peer = |socket: &[u8]| encoded(0, &[encoded(1, &[7; 32]), encoded(4, socket)].concat());
        let without = encoded(0, &encoded(1, &[8; 32]));
        let mut tunnel = Tunnel {
            headers: Headers::Bytes(HEADERS_BYTES),
            ..Tunnel::default()
        };

        let mut first = encoded(6, &51820_u16.to_ne_bytes());
        push(&mut first, 8, &[peer(&v4), without].concat());
        add(&mut tunnel, &first);
        assert_eq!(tunnel.remotes, [IpAddr::from([192, 0, 2, 9])]);
        assert_eq!(tunnel.overhead_bytes(Some(1500)), 60);

        add(&mut tunnel, &encoded(8, &peer(&v6)));
        assert_eq!(tunnel.remotes.len(), 2);
        assert_eq!(tunnel.port, Some(51820));
        assert_eq!(tunnel.overhead_bytes(Some(1500)), 80);
    }

    #[test]
    fn workers_have_their_cpu_and_their_device_in_their_name() {
        for (name, cpu) in [
            ("kworker/1:2-wg-crypt-wg0", Some(1)),
            ("kworker/12:0H+wg-crypt-wg0", Some(12)),
            ("kworker/1:2-wg-crypt-wg01", None),
            ("kworker/1:2-events", None),
            ("kworker/u4:2-wg-crypt-wg0", None),
            ("wg-crypt-wg0", None),
        ] {
            assert_eq!(worker_cpu(name, "wg0"), cpu, "{name}");
        }
    }
}
