//! Local addresses and ports for many connections.

use std::net::{IpAddr, SocketAddr};

use linerate_model::http::Ports;

use super::pace::WorkerIndex;

/// Local end of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local<'a> {
    /// Local address; `None`: chosen by the kernel.
    pub address: Option<IpAddr>,
    /// Choice of the port; [`Ports::Auto`]: by the kernel, while it has free ports.
    pub ports: Ports,
    /// Excluded local ports.
    pub ports_skipped: &'a [u16],
}

/// Local address and address of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceTuple {
    pub source: Option<IpAddr>,
    pub destination: SocketAddr,
}

/// Distributes connections over pairs of source and destination, and ports within each pair.
pub(crate) struct PortAllocator {
    pairs: Vec<(SourceTuple, PortSequence)>,
    next: usize,
    pub selection: PortSelection,
}

/// Method by which a socket gets its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortSelection {
    /// `connect` chooses; a range set on the socket makes the search fast.
    Kernel { range: Option<(u16, u16)> },
    /// By bind(2).
    Explicit,
}

impl PortAllocator {
    /// For thread `index` of `threads`; threads never try the same port.
    pub(crate) fn new(
        sources: &[IpAddr],
        destinations: &[SocketAddr],
        selection: PortSelection,
        skipped: &[u16],
        (index, threads): WorkerIndex,
    ) -> Self {
        let mut pairs = Vec::new();
        for destination in destinations {
            let fitting = sources
                .iter()
                .filter(|s| s.is_ipv4() == destination.is_ipv4());
            let mut fitting: Vec<Option<IpAddr>> = fitting.copied().map(Some).collect();
            // Without a source of this family the kernel chooses the address.
            if fitting.is_empty() {
                fitting.push(None);
            }

            for source in fitting {
                let tuple = SourceTuple {
                    source,
                    destination: *destination,
                };
                pairs.push((tuple, port_sequence(skipped, index, threads)));
            }
        }

        // Threads begin with different pairs, so that few connections are distributed as well.
        let next = index as usize % pairs.len().max(1);
        Self {
            pairs,
            next,
            selection,
        }
    }

    /// The next pair with its index; `None` without destinations.
    pub(crate) fn next_pair(&mut self) -> Option<(usize, SourceTuple)> {
        let pair = self.next;
        let (tuple, _) = self.pairs.get(pair)?;
        self.next = (pair + 1) % self.pairs.len();
        Some((pair, *tuple))
    }

    /// The next untried port of a pair; `None` when all were tried.
    pub(crate) fn next_port(&mut self, pair: usize) -> Option<u16> {
        self.pairs.get_mut(pair)?.1.next()
    }
}

/// Ports in the order they are tried: each of the thread's share once, then again, since
/// connections are closed meanwhile.
type PortSequence = Box<dyn Iterator<Item = u16> + Send>;

fn port_sequence(skipped: &[u16], index: u32, threads: u32) -> PortSequence {
    // There are at most 1024 workers, so the sum is a port.
    let first = u16::try_from(u32::from(FIRST_PORT) + index).unwrap_or(u16::MAX);
    let mut skipped = skipped.to_vec();
    skipped.sort_unstable();

    let rounds =
        (0..ROUNDS_MAX).flat_map(move |_| (first..=u16::MAX).step_by(threads.max(1) as usize));
    Box::new(rounds.filter(move |port| skipped.binary_search(port).is_err()))
}

const FIRST_PORT: u16 = 1024;
/// Passes over the whole range before a thread gives up.
const ROUNDS_MAX: u32 = 64;

/// Above 99 % of its range the kernel runs out of ports; well below that its search becomes slow.
pub(crate) fn choose(
    choice: Ports,
    connections_per_tuple: u64,
    range: Option<(u16, u16)>,
) -> PortSelection {
    let room = range.map_or(ROOM_DEFAULT, |(low, high)| {
        u64::from(high.saturating_sub(low)) + 1
    });
    let is_explicit = match choice {
        Ports::Explicit => true,
        Ports::Kernel => false,
        _ => connections_per_tuple * 100 > room * 99,
    };
    if is_explicit {
        PortSelection::Explicit
    } else {
        PortSelection::Kernel {
            range: range.filter(|_| connections_per_tuple > SEARCH_SLOW_FROM),
        }
    }
}

/// The kernel's default range, 32768 to 60999.
const ROOM_DEFAULT: u64 = 28_232;
/// From here on the search takes tenths of a millisecond, unless the socket carries a range itself.
const SEARCH_SLOW_FROM: u64 = 10_000;

/// Parses `net.ipv4.ip_local_reserved_ports`: numbers and ranges, separated by commas. Invalid
/// parts are skipped.
pub fn parse_reserved(text: &str) -> Vec<u16> {
    let mut ports = Vec::new();
    for part in text.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let Ok(low) = low.trim().parse::<u16>()
            && let Ok(high) = high.trim().parse::<u16>()
        {
            ports.extend(low..=high);
        }
    }

    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 80))
    }

    #[test]
    fn threads_never_try_the_same_port() {
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..3 {
            let mut allocator = PortAllocator::new(
                &[],
                &[server()],
                PortSelection::Explicit,
                &[5201],
                (index, 3),
            );
            for _ in 0..18_000 {
                let (pair, _) = allocator.next_pair().expect("there is a destination");
                let port = allocator.next_port(pair).expect("ports are left");
                assert!(port >= 1024 && port != 5201);
                assert!(seen.insert(port), "{port} twice");
            }
        }
    }

    #[test]
    fn sources_and_destinations_alternate() {
        let sources = [IpAddr::from([192, 0, 2, 8]), IpAddr::from([192, 0, 2, 9])];
        let destinations = [server(), SocketAddr::from(([192, 0, 2, 1], 81))];
        let way = PortSelection::Kernel { range: None };
        let mut allocator = PortAllocator::new(&sources, &destinations, way, &[], (0, 1));
        let dealt: Vec<_> = (0..4)
            .filter_map(|_| allocator.next_pair())
            .map(|(pair, _)| pair)
            .collect();
        assert_eq!(dealt, [0, 1, 2, 3]);
    }

    #[test]
    fn ports_are_explicit_above_the_range_of_the_kernel() {
        let range = Some((32768, 60999));
        assert_eq!(choose(Ports::Auto, 28_000, range), PortSelection::Explicit);
        assert_eq!(
            choose(Ports::Auto, 9_000, range),
            PortSelection::Kernel { range: None }
        );
        assert_eq!(
            choose(Ports::Auto, 20_000, range),
            PortSelection::Kernel { range }
        );
        assert_eq!(
            choose(Ports::Kernel, 50_000, range),
            PortSelection::Kernel { range }
        );
    }

    #[test]
    fn reserved_ports_are_numbers_and_ranges() {
        assert_eq!(
            parse_reserved("8080,9000-9002,x,70000\n"),
            [8080, 9000, 9001, 9002]
        );
        assert!(parse_reserved("\n").is_empty());
    }
}
