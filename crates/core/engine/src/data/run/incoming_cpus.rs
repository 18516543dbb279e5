//! The CPUs on which the kernel processes what streams receive.

use std::collections::BTreeMap;

use linerate_model::StreamRole;
use linerate_sys::sockopt;

use super::open_stream::OpenStream;

/// Streams that are read: a sample of them is enough, and each costs a system call.
const SAMPLED_STREAMS: usize = 64;

/// The CPUs on which segments or datagrams of the streams of this role arrive; none where that is
/// not known.
pub(super) fn of_role(streams: &[OpenStream], role: StreamRole) -> Vec<u32> {
    let of_role = streams.iter().filter(|open| open.stream.role == role);
    used_cpus(
        of_role
            .filter_map(|open| sockopt::incoming_cpu(&open.fd))
            .take(SAMPLED_STREAMS),
    )
}

/// The CPU on which what is received arrives, if it is one.
pub(super) fn only(streams: &[OpenStream]) -> Option<u32> {
    if let [only] = of_role(streams, StreamRole::Receiver)[..] {
        Some(only)
    } else {
        None
    }
}

/// CPUs that have at least half of an equal part of the streams: a thread of the peer that moves
/// leaves some behind.
fn used_cpus(cpu_of_each: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut streams_of = BTreeMap::new();
    for cpu in cpu_of_each {
        *streams_of.entry(cpu).or_insert(0) += 1;
    }

    let streams: usize = streams_of.values().sum();
    let cpus = streams_of.len();
    streams_of
        .into_iter()
        .filter(|(_, count)| 2 * count * cpus >= streams)
        .map(|(cpu, _)| cpu)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use linerate_sys::cpu;

    use super::*;

    #[test]
    fn a_cpu_counts_from_half_of_an_equal_part_of_the_streams_on() {
        let used = |on_first, on_second| {
            used_cpus(std::iter::repeat_n(0, on_first).chain(std::iter::repeat_n(1, on_second)))
        };
        assert_eq!([used(64, 0), used(49, 15), used(15, 49)], [[0], [0], [1]]);
        assert_eq!([used(48, 16), used(1, 1)], [[0, 1]; 2]);
        assert!(used(0, 0).is_empty());
        assert_eq!(used_cpus(0..32).len(), 32);
    }

    #[test]
    fn packets_of_a_thread_on_one_cpu_arrive_there() {
        let online = cpu::affinity().expect("an affinity");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");

        for pinned in online.cpus().take(2) {
            let connect = move || {
                cpu::pin_thread(pinned).expect("a CPU");
                TcpStream::connect(address).expect("a listener")
            };
            let _client = std::thread::spawn(connect).join().expect("no panic");
            let (accepted, _) = listener.accept().expect("a connection");
            assert_eq!(sockopt::incoming_cpu(&accepted), u32::try_from(pinned).ok());
        }
    }

    #[test]
    fn where_nothing_has_arrived_no_cpu_is_known() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        assert_eq!(sockopt::incoming_cpu(&socket), None);
    }
}
