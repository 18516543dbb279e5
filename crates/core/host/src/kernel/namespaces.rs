//! Sockets in other network namespaces of this machine (network_namespaces(7), proc_pid_net(5)).

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::kernel::process;
use crate::short_file;

/// Namespaces that are read.
const NAMESPACES_MAX: usize = 256;
/// Bytes of one table that are read: some 50,000 sockets.
const TABLE_MAX_BYTES: u64 = 8 << 20;
const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];

/// True where a socket in another network namespace of this machine is connected to this address,
/// as the other end of a test between two containers of one machine is. Namespaces of processes
/// that this user may not read are left out.
pub fn is_peer_in_other_namespace(own: SocketAddr) -> bool {
    let own = SocketAddr::new(own.ip().to_canonical(), own.port());
    let mut seen: BTreeSet<PathBuf> = namespace("self").into_iter().collect();

    for pid in process::numbers() {
        let Some(namespace) = namespace(&pid.to_string()) else {
            continue;
        };
        // One process per namespace is enough: /proc/PID/net shows the tables of its namespace.
        if !seen.insert(namespace) {
            continue;
        }
        if TABLES
            .iter()
            .any(|table| has_remote(&table_of(pid, table), own))
        {
            return true;
        }
        if seen.len() > NAMESPACES_MAX {
            return false;
        }
    }

    false
}

/// True if this machine has network namespaces besides the one of this process: of processes, or
/// with a name (ip-netns(8)). Those of processes that this user may not read are left out.
pub fn has_other_namespaces() -> bool {
    let own = namespace("self");
    let is_other = |pid: u32| namespace(&pid.to_string()).is_some_and(|one| Some(one) != own);
    short_file::entries("/run/netns").next().is_some() || process::numbers().any(is_other)
}

/// The link names the inode of the namespace, equal for all processes in it (namespaces(7)).
fn namespace(pid: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// A table of the namespace of a process; empty where it cannot be read.
fn table_of(pid: u32, name: &str) -> String {
    let mut text = String::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/net/{name}")) {
        // What was read before an error is a table as well.
        let _ = file.take(TABLE_MAX_BYTES).read_to_string(&mut text);
    }
    text
}

/// True for a row of a table with this remote address.
fn has_remote(table: &str, wanted: SocketAddr) -> bool {
    let remotes = table
        .lines()
        .skip(1)
        .filter_map(|row| row.split_whitespace().nth(2).and_then(address));
    remotes.into_iter().any(|remote| remote == wanted)
}

/// `0100007F:1451`: words of the address in the byte order of this machine, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let words: Option<Vec<u8>> = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok())
        .try_fold(Vec::new(), |mut bytes, word| {
            // The kernel prints each 32-bit word in the order of the host (`%08X` of
            // `tcp4_seq_show`).
            bytes.extend(word?.to_ne_bytes());
            Some(bytes)
        });
    let bytes = words?;
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
        16 => Ipv6Addr::from(*bytes.first_chunk::<16>()?).to_canonical(),
        _ => return None,
    };

    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_addresses_of_both_families_are_found_in_a_table() {
        let row = |remote: &str| {
            format!(
                "  sl  local_address rem_address   st\n   0: 0200630A:1451 {remote} 01 0:0 00:0 0 \
                 0 0 1"
            )
        };
        let v4 = row(&format!("{:08X}:D431", u32::from_ne_bytes([10, 99, 0, 1])));
        assert!(has_remote(
            &v4,
            "10.99.0.1:54321".parse().expect("an address")
        ));
        assert!(!has_remote(
            &v4,
            "10.99.0.1:54322".parse().expect("an address")
        ));
        assert!(!has_remote(
            &v4,
            "10.99.0.2:54321".parse().expect("an address")
        ));

        let words = [[0; 4], [0; 4], [0, 0, 0xff, 0xff], [10, 99, 0, 1]].map(u32::from_ne_bytes);
        let mapped: String = words.iter().map(|word| format!("{word:08X}")).collect();
        assert!(has_remote(
            &row(&format!("{mapped}:D431")),
            "10.99.0.1:54321".parse().expect("an address")
        ));

        for damaged in ["", "x", "0:1", "0000000G:1", "00000000", "00000000:99999"] {
            assert!(
                !has_remote(&row(damaged), "0.0.0.0:1".parse().expect("an address")),
                "{damaged}"
            );
        }
    }

    #[test]
    fn sockets_of_this_namespace_are_in_no_other_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = std::net::TcpStream::connect(listener.local_addr().expect("an address"))
            .expect("a connection");
        assert!(!is_peer_in_other_namespace(
            client.local_addr().expect("an address")
        ));
    }
}
