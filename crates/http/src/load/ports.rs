//! Local addresses and ports for many connections.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Who chooses local ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortChoice {
    /// The kernel, unless there are more connections than its range holds.
    #[default]
    Auto,
    /// The kernel, within `net.ipv4.ip_local_port_range`.
    Kernel,
    /// We: any free port from 1024 on, which needs no setting and no privilege.
    Explicit,
}

/// Where one connection leaves from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local<'a> {
    /// Address of this host; `None` for the one that the kernel chooses.
    pub address: Option<IpAddr>,
    /// Who chooses the port; with [`PortChoice::Auto`] the kernel, unless it has none left.
    pub ports: PortChoice,
    /// Local ports that must not be used.
    pub ports_skipped: &'a [u16],
}

/// One way to the server: a local address and one of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: SocketAddr,
}

/// Deals connections over sources and destinations in turn, and ports to each pair of them.
#[derive(Debug)]
pub(crate) struct Dealer {
    walks: Vec<(Tuple, PortWalk)>,
    next: usize,
    way: PortWay,
}

/// How a socket gets its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortWay {
    /// `connect` chooses; with the range, if any, set on the socket so that the search is quick.
    Kernel { range: Option<(u16, u16)> },
    /// Bound before.
    Explicit,
}

impl Dealer {
    /// For thread `index` of `threads`: no two of them are dealt the same port.
    pub(crate) fn new(
        sources: &[IpAddr],
        destinations: &[SocketAddr],
        way: PortWay,
        skipped: &[u16],
        (index, threads): (u32, u32),
    ) -> Self {
        let mut walks = Vec::new();
        for destination in destinations {
            let fitting = sources.iter().filter(|s| s.is_ipv4() == destination.is_ipv4());
            let mut fitting: Vec<Option<IpAddr>> = fitting.copied().map(Some).collect();
            if fitting.is_empty() {
                fitting.push(None);
            }
            for source in fitting {
                let tuple = Tuple {
                    source,
                    destination: *destination,
                };
                walks.push((tuple, PortWalk::new(skipped, index, threads)));
            }
        }
        // Threads begin at different pairs, so that a few connections are spread as well.
        let next = index as usize % walks.len().max(1);
        Self { walks, next, way }
    }

    pub(crate) fn way(&self) -> PortWay {
        self.way
    }

    /// The next pair with its number; `None` without destinations.
    pub(crate) fn deal(&mut self) -> Option<(usize, Tuple)> {
        let place = self.next;
        let (tuple, _) = self.walks.get(place)?;
        self.next = (place + 1) % self.walks.len();
        Some((place, *tuple))
    }

    /// The next port of pair `place` that was not tried yet; `None` when all were.
    pub(crate) fn next_port(&mut self, place: usize) -> Option<u16> {
        self.walks.get_mut(place)?.1.next()
    }
}

/// Ports in the order in which they are tried: each of this thread's share once, then again from the beginning, since
/// connections end as well.
#[derive(Debug)]
struct PortWalk {
    skipped: Vec<u16>,
    next: u32,
    step: u32,
    first: u32,
    tried: u32,
}

impl PortWalk {
    fn new(skipped: &[u16], index: u32, threads: u32) -> Self {
        let first = u32::from(FIRST_PORT) + index;
        let mut skipped = skipped.to_vec();
        skipped.sort_unstable();
        Self {
            skipped,
            next: first,
            step: threads.max(1),
            first,
            tried: 0,
        }
    }

    fn next(&mut self) -> Option<u16> {
        let share = (u32::from(u16::MAX) - u32::from(FIRST_PORT)) / self.step + 1;
        while self.tried < share * ROUNDS_MAX {
            self.tried += 1;
            let Ok(port) = u16::try_from(self.next) else {
                self.next = self.first;
                continue;
            };
            self.next += self.step;
            if self.skipped.binary_search(&port).is_err() {
                return Some(port);
            }
        }
        None
    }
}

const FIRST_PORT: u16 = 1024;
/// Times the whole range is walked through before a thread gives up.
const ROUNDS_MAX: u32 = 64;

/// Connections above which the kernel's choice within its range becomes slow or runs dry.
pub(crate) fn choose(choice: PortChoice, connections_per_tuple: u64, range: Option<(u16, u16)>) -> PortWay {
    let room = range.map_or(ROOM_DEFAULT, |(low, high)| u64::from(high.saturating_sub(low)) + 1);
    let is_explicit = match choice {
        PortChoice::Explicit => true,
        PortChoice::Kernel => false,
        PortChoice::Auto => connections_per_tuple * 100 > room * 99,
    };
    match is_explicit {
        true => PortWay::Explicit,
        false => PortWay::Kernel {
            range: range.filter(|_| connections_per_tuple > SEARCH_SLOW_FROM),
        },
    }
}

/// The kernel's default range, 32768 to 60999.
const ROOM_DEFAULT: u64 = 28_232;
/// Past half of the range the kernel searches for tenths of a millisecond, unless the socket carries a range itself.
const SEARCH_SLOW_FROM: u64 = 10_000;

/// Reads `net.ipv4.ip_local_reserved_ports`: numbers and ranges, separated by commas. What is no port is skipped.
#[must_use]
pub fn parse_reserved(text: &str) -> Vec<u16> {
    let mut ports = Vec::new();
    for part in text.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(low), Ok(high)) = (low.trim().parse::<u16>(), high.trim().parse::<u16>()) {
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
    fn threads_share_the_ports_without_meeting() {
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..3 {
            let mut dealer = Dealer::new(&[], &[server()], PortWay::Explicit, &[5201], (index, 3));
            for _ in 0..18_000 {
                let (place, _) = dealer.deal().expect("there is a destination");
                let port = dealer.next_port(place).expect("ports are left");
                assert!(port >= 1024 && port != 5201);
                assert!(seen.insert(port), "{port} twice");
            }
        }
    }

    #[test]
    fn sources_and_destinations_take_turns() {
        let sources = [IpAddr::from([192, 0, 2, 8]), IpAddr::from([192, 0, 2, 9])];
        let destinations = [server(), SocketAddr::from(([192, 0, 2, 1], 81))];
        let way = PortWay::Kernel { range: None };
        let mut dealer = Dealer::new(&sources, &destinations, way, &[], (0, 1));
        let dealt: Vec<_> = (0..4).filter_map(|_| dealer.deal()).map(|(place, _)| place).collect();
        assert_eq!(dealt, [0, 1, 2, 3]);
    }

    #[test]
    fn more_connections_than_the_range_holds_get_ports_of_ours() {
        let range = Some((32768, 60999));
        assert_eq!(choose(PortChoice::Auto, 28_000, range), PortWay::Explicit);
        assert_eq!(choose(PortChoice::Auto, 9_000, range), PortWay::Kernel { range: None });
        assert_eq!(choose(PortChoice::Auto, 20_000, range), PortWay::Kernel { range });
        assert_eq!(choose(PortChoice::Kernel, 50_000, range), PortWay::Kernel { range });
    }

    #[test]
    fn reserved_ports_are_numbers_and_ranges() {
        assert_eq!(parse_reserved("8080,9000-9002,x,70000\n"), [8080, 9000, 9001, 9002]);
        assert!(parse_reserved("\n").is_empty());
    }
}
