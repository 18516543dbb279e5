//! Ports and listeners on this host.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::net::{Ipv6Addr, UdpSocket};
use std::process;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// Ports are handed out below the kernel's ephemeral range (32768 and up), so that no client can be
/// given one of them between the moment it is found free and the moment the server binds it.
const FIRST_PORT: u16 = 10_000;
const PORTS: u16 = 22_000;

/// Tests that run at the same time take their ports from different parts of the range.
const PARTS: u16 = 16;
const PORTS_OF_PART: u16 = PORTS / PARTS;

/// A free port, TCP and UDP.
pub fn free_port() -> u16 {
    free_port_run(1)
}

/// A port for an HTTP server. The next one stays free: our clients look for a control channel
/// there, and another test's server would count that as a request.
pub(crate) fn free_http_port() -> u16 {
    free_port_run(2)
}

/// The first of `count` consecutive free ports, TCP and UDP.
pub fn free_port_run(count: u16) -> u16 {
    static NEXT: Mutex<Option<u16>> = Mutex::new(None);

    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    // Consecutive tests in one part begin at different places: connections of the last one may
    // still be closing.
    let mut offset = next.unwrap_or_else(|| wrapped(process::id() * 97, PORTS_OF_PART));
    let in_use = ports_in_use();

    for _ in 0..PORTS_OF_PART {
        if offset + count > PORTS_OF_PART {
            offset = 0;
        }

        let first = FIRST_PORT + part() * PORTS_OF_PART + offset;
        offset += count;

        if (first..first + count).all(|port| !in_use.contains(&port)) {
            *next = Some(offset);
            return first;
        }
    }

    panic!("no run of {count} free ports");
}

/// The part of this test program: nextest numbers the tests that run at the same time.
fn part() -> u16 {
    let slot = env::var("NEXTEST_TEST_GLOBAL_SLOT")
        .ok()
        .and_then(|slot| slot.parse().ok());
    wrapped(slot.unwrap_or_else(process::id), PARTS)
}

fn wrapped(number: u32, end: u16) -> u16 {
    u16::try_from(number % u32::from(end)).unwrap_or(0)
}

/// Local ports of all sockets. To bind a port and close it again would not do: a process that
/// another thread forks meanwhile holds the socket until it executes its program.
fn ports_in_use() -> BTreeSet<u16> {
    let sockets = sockets(process::id(), &["tcp", "tcp6", "udp", "udp6"]);
    sockets.into_iter().map(|(port, _)| port).collect()
}

/// Local port of each socket in these tables of procfs, and whether it listens, in the network
/// namespace of a process.
fn sockets(process: u32, tables: &[&str]) -> Vec<(u16, bool)> {
    let read = |table| fs::read_to_string(format!("/proc/{process}/net/{table}"));
    let tables: Vec<String> = tables.iter().filter_map(|table| read(table).ok()).collect();
    let rows = tables.iter().flat_map(|table| table.lines());
    rows.filter_map(socket).collect()
}

/// Reads one line of `/proc/net/tcp` (proc_net_tcp of the kernel documentation):
/// `sl local remote state …`. The line of titles is none.
fn socket(line: &str) -> Option<(u16, bool)> {
    let mut words = line.split_whitespace();
    let (_, port) = words.nth(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((port, words.nth(1) == Some("0A")))
}

/// True if this host has an IPv6 loopback address.
pub fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// True if some TCP socket of this network namespace listens on the port.
pub fn listens(port: u16) -> bool {
    listens_beside(process::id(), port)
}

/// The same of the network namespace this process is in.
pub fn listens_beside(process: u32, port: u16) -> bool {
    sockets(process, &["tcp", "tcp6"]).contains(&(port, true))
}

/// True if some UDP socket of this network namespace is bound to the port.
pub fn is_bound_udp(port: u16) -> bool {
    is_bound_udp_beside(process::id(), port)
}

/// The same of the network namespace this process is in.
pub fn is_bound_udp_beside(process: u32, port: u16) -> bool {
    let mut sockets = sockets(process, &["udp", "udp6"]).into_iter();
    sockets.any(|(bound, _)| bound == port)
}

/// A UDP socket of this address that sends to a port of this host, and waits this long for what
/// arrives.
#[track_caller]
pub fn udp_socket(address: &str, port: u16, timeout: Duration) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a loopback address");
    socket.connect(("127.0.0.1", port)).expect("a route");
    socket.set_read_timeout(Some(timeout)).expect("a time");
    socket
}

#[cfg(test)]
mod tests {
    use super::{free_port, listens, socket};
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_seen_and_its_absence_too() {
        let port = free_port();
        assert!(!listens(port));
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");

        assert!(listens(port));
        drop(listener);
        assert!(!listens(port));
    }

    #[test]
    fn a_connection_is_not_a_listener() {
        let listener =
            "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0";
        let connection =
            "   1: 0100007F:1451 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0";
        assert_eq!(socket(listener), Some((5201, true)));
        assert_eq!(socket(connection), Some((5201, false)));
    }
}
