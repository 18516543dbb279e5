//! Samples this host and the processes of a test repeatedly, at little cost.

use std::net::IpAddr;
use std::path::Path;

use linerate_sys::netlink::Family;
use linerate_sys::{clock, cpu};

use crate::collect::identity;
use crate::kernel::HostCounters;
use crate::kernel::cgroup::Group;
use crate::kernel::file::Buffer;
use crate::kernel::process::Processes;
use crate::kernel::sockets::{Sockets, Tested};
use crate::nic::ethtool::EthtoolQuery;
use crate::nic::links::{self, GET_LINK, Link};
use crate::nic::route;
use crate::prelude::*;
use crate::short_file;

/// From this many sockets on, a dump of all of them takes too long for every sample.
const SOCKETS_FEW: u64 = 5_000;
const SOCK_DIAG: &str = "sock_diag";

/// Objects that are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Ids of the processes, which are added up.
    pub pids: Vec<u32>,
    /// Which connections are those of the test.
    pub tested: Tested,
}

/// Depth of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Cheap values: for every step of a period.
    Quick,
    /// Everything, whatever the number of sockets and pages: for the ends of a period.
    Full,
}

/// Samples a host. Files are opened once and read again; new threads are found within a second.
#[derive(Debug)]
pub struct Sampler {
    watched: Watched,
    /// Facts that every sample repeats: identity of the host, the limit of TIME_WAIT, the device of
    /// the route.
    constant: Snapshot,
    counters: HostCounters,
    processes: Processes,
    group: Group,
    sockets: Result<Sockets, ReadError>,
    device: Result<Device, ReadError>,
    buffer: Buffer,
    /// CPU time of all samples.
    spent_ns: u64,
}

impl Sampler {
    /// Opens every source. What cannot be opened is absent from every sample, with the reason.
    pub fn open(watched: Watched) -> Self {
        let mut sampler = Self {
            constant: constant(),
            counters: HostCounters::open(),
            processes: Processes::open(&watched.pids, clock::monotonic_ns()),
            group: Group::of(watched.pids.first().copied().unwrap_or(0)),
            sockets: Sockets::open(),
            device: Err(ReadError::missing("no peer is known yet")),
            buffer: Buffer::new(),
            spent_ns: 0,
            watched,
        };
        if let Tested::Client { server, .. } = sampler.watched.tested {
            // A server learns its peer with the first connection, a client knows it from the start.
            sampler.set_peer(server.ip());
        }

        sampler
    }

    /// Objects that it samples.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Samples these processes from now on, added up.
    pub fn sample_processes(&mut self, pids: Vec<u32>) {
        if pids != self.watched.pids {
            self.processes = Processes::open(&pids, clock::monotonic_ns());
            self.watched.pids = pids;
        }
    }

    /// Samples the device of the route to this peer from now on.
    pub fn set_peer(&mut self, peer: IpAddr) {
        self.constant = constant();
        self.device = Device::towards(peer, &mut self.constant);
    }

    /// Takes one sample. If the sampled program is this one, the cost of sampling is not counted as
    /// its own.
    pub fn sample(&mut self, depth: Depth) -> Snapshot {
        let before_ns = thread_ns();
        let mut sample = self.constant.clone();
        sample.monotonic_ns = Some(clock::monotonic_ns());
        self.counters.record(&mut sample, &mut self.buffer);
        self.group.record(&mut sample, &mut self.buffer);

        let is_own = self.watched.pids.contains(&std::process::id());
        // A program that samples itself would report its own overhead as that of the test.
        let own_ns = if is_own { self.spent_ns } else { 0 };
        let is_full = depth == Depth::Full;
        self.processes
            .record(&mut sample, is_full, own_ns, &mut self.buffer);

        if let Err(why) = self
            .device
            .as_mut()
            .map_err(|why| why.clone())
            .and_then(|device| device.record(&mut sample))
        {
            record_absent(&mut sample, "nic.stats64", &why, links::SRC);
        }

        if let Err(why) = self.record_connections(&mut sample, depth) {
            record_absent(&mut sample, "test.sockets", &why, SOCK_DIAG);
        }

        self.spent_ns = self
            .spent_ns
            .saturating_add(thread_ns().saturating_sub(before_ns));
        sample
    }

    /// Records the connections of the test and the queue of its listener.
    fn record_connections(&mut self, sample: &mut Snapshot, depth: Depth) -> Result<(), ReadError> {
        let tested = self.watched.tested;
        let sockets = self.sockets.as_mut().map_err(|why| why.clone())?;

        match tested {
            Tested::Nothing => return Ok(()),
            Tested::Server { port } => {
                sample.set("test.role", "server", "sampler");
                if let Some(queue) = sockets.accept_queue(port)? {
                    sample.set("test.accept_queue", queue.peak, SOCK_DIAG);
                    sample.set("test.backlog", queue.limit.unwrap_or(0), SOCK_DIAG);
                }
            }
            Tested::Client { ports, .. } => {
                sample.set("test.role", "client", "sampler");
                sample.set_known("test.ports_max", ports, "sampler");
            }
        }

        let counts = ["sock.tcp.inuse", "sock.tcp6.inuse", "sock.tcp.tw"]
            .map(|key| sample.whole(key).unwrap_or(0));
        // `tcp.inuse` of /proc/net/sockstat is one read of a counter; a dump copies each socket
        // under a lock of the hash table.
        let are_few =
            sample.whole("sock.tcp.inuse").is_some() && counts.iter().sum::<u64>() < SOCKETS_FEW;
        if depth == Depth::Full || are_few {
            let states = sockets.states(tested)?;
            sample.set("test.sockets.total", states.total(), SOCK_DIAG);
            for (state, count) in states.named() {
                sample.set(format!("test.sockets.{state}"), count, SOCK_DIAG);
            }
        }

        // `TCP_INFO` of every connection takes the lock of each socket, which the sampled program
        // needs too.
        if depth == Depth::Full
            && let Some(bytes) = sockets.mss_bytes(tested)?
        {
            sample.set_in("test.mss_bytes", bytes, "bytes", SOCK_DIAG);
        }

        Ok(())
    }
}

/// Facts that do not change from sample to sample.
fn constant() -> Snapshot {
    let mut snapshot = identity();
    let limit = short_file::read_number("/proc/sys/net/ipv4/tcp_max_tw_buckets");
    snapshot.set_known("sysctl.net.ipv4.tcp_max_tw_buckets", limit, "procfs:sys");
    snapshot
}

fn thread_ns() -> u64 {
    let spent = cpu::thread_time();
    clock::as_ns(spent.user + spent.system)
}

/// The device of the route to the peer.
#[derive(Debug)]
struct Device {
    index: u32,
    client: NetlinkClient,
}

impl Device {
    /// Finds the device and records its constant facts.
    fn towards(peer: IpAddr, snapshot: &mut Snapshot) -> Result<Self, ReadError> {
        let all = links::all();
        route::record(snapshot, peer, &all);
        let name = snapshot.text("route.peer.dev");
        let link = name.and_then(|name| all.iter().find(|link| link.name == name));
        let link = link.ok_or_else(|| ReadError::missing(format!("no route to {peer}")))?;
        link.record_facts(snapshot, &all);

        let nic = format!("nic.{}", link.name);
        let directory = Path::new("/sys/class/net").join(&link.name);
        let is_wireless =
            directory.join("wireless").exists() || directory.join("phy80211").exists();
        snapshot.set(format!("{nic}.net.wireless"), is_wireless, "sysfs");
        snapshot.set(
            format!("{nic}.net.vlan_tagged"),
            link.is_tagged(&all),
            links::SRC,
        );
        EthtoolQuery::open().link(snapshot, &link.name);

        Ok(Self {
            index: link.index,
            client: NetlinkClient::open(Family::Route)?,
        })
    }

    /// Records its counters.
    fn record(&mut self, snapshot: &mut Snapshot) -> Result<(), ReadError> {
        // `struct ifinfomsg`: the index is its second 32-bit field.
        let mut body = [0_u8; 16];
        // By index and not by name: a device may be renamed while a test runs.
        body[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let response = self.client.get(GET_LINK, &body)?;
        let link: Link = links::link(&response)
            .ok_or_else(|| ReadError::missing("the response is cut short"))?;
        link.record_counters(snapshot);

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use linerate_model::facts;
    use linerate_sys::cpu::thread_time;

    #[test]
    fn sample_finds_the_test_and_costs_little() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("an address");
        let own = |tested| Watched {
            pids: vec![std::process::id()],
            tested,
        };
        let mut at_server = Sampler::open(own(Tested::Server {
            port: server.port(),
        }));
        at_server.set_peer(server.ip());

        let ports = Some(28_232);
        let mut at_client = Sampler::open(own(Tested::Client { server, ports }));
        let _clients: Vec<TcpStream> = (0..2)
            .map(|_| TcpStream::connect(server).expect("connect"))
            .collect();

        let sample = at_server.sample(Depth::Full);
        for (key, expected) in [
            ("test.accept_queue", 2),
            ("test.sockets.established", 2),
            ("test.sockets.total", 2),
            ("process.count", 1),
        ] {
            assert_eq!(sample.whole(key), Some(expected), "{key}: {sample:?}");
        }

        for key in [
            "process.rss_high_water_bytes",
            "process.pss_bytes",
            "sock.tcp.alloc",
            "test.mss_bytes",
        ] {
            assert!(sample.whole(key) > Some(0), "{key}: {sample:?}");
        }

        assert_eq!(
            sample.text("nic.lo.net.kind"),
            Some("loopback"),
            "{sample:?}"
        );
        for key in ["net.snmp.Tcp.OutSegs", "process.cpu_ns", "cpu.0.user"] {
            assert!(
                sample
                    .counters
                    .get(key)
                    .is_some_and(|counter| counter.v > 0),
                "{key}"
            );
        }

        // Other programs may have thousands of sockets, which only a full sample reads.
        let sample = at_client.sample(Depth::Full);
        assert_eq!(
            (
                sample.whole("test.sockets.total"),
                sample.whole("test.ports_max")
            ),
            (Some(2), ports)
        );

        for key in sample.facts.keys().chain(sample.counters.keys()) {
            assert!(facts::find(key).is_some(), "{key} is not explained");
        }

        const SAMPLES: u32 = 50;

        let before = thread_time();
        (0..SAMPLES).for_each(|_| drop(at_server.sample(Depth::Quick)));
        let after = thread_time();
        let each = ((after.user + after.system) - (before.user + before.system)) / SAMPLES;

        // Half a percent of 200 ms is 1 ms; what an unoptimised build on a slow machine needs stays
        // far below.
        assert!(each.as_millis() < 20, "{each:?}");
    }

    #[test]
    fn counters_of_the_device_grow_by_what_is_sent() {
        let own = Watched {
            pids: vec![std::process::id()],
            tested: Tested::Nothing,
        };
        let mut sampler = Sampler::open(own);
        sampler.set_peer([127, 0, 0, 1].into());

        let mut sent = || sampler.sample(Depth::Quick).counters["nic.lo.stats64.tx_bytes"].v;
        let before = sent();
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        socket.send_to(&[0; 1000], address).expect("send");
        assert!(sent() >= before + 1000);
    }

    #[test]
    fn missing_value_is_absent_with_reason() {
        let no_process = Watched {
            pids: vec![0x3fff_fff0],
            tested: Tested::Nothing,
        };
        let sample = Sampler::open(no_process).sample(Depth::Full);
        assert!(
            sample.counters.contains_key("cpu.0.user"),
            "the host exists"
        );

        for key in [
            "process.cpu_ns",
            "process.thread",
            "process.rss_bytes",
            "process.rss_high_water_bytes",
            "process.fds",
            "cgroup.memory.current",
            "cgroup.pids.current",
            "nic.stats64",
        ] {
            assert!(
                sample.facts.contains_key(key) && sample.value(key).is_none(),
                "{key}"
            );
            assert!(facts::find(key).is_some(), "{key} is not explained");
        }
    }
}
