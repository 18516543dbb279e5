//! Samples this host and one process on it repeatedly, at little cost.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use linerate_model::http::{NicStats, Peak};
use linerate_sys::{clock, cpu, process};

use super::error::ReadError;
use super::file::{KernelFile, Room};
use super::group::Group;
use super::nic::Nic;
use super::process::Processes;
use super::sample::{Depth, Sample};
use super::sockets::Sockets;
use super::text;

/// From this many sockets on, a dump of all of them takes too long for every sample.
const SOCKETS_FEW: u64 = 5_000;
/// Interval at which threads, limits and the like are scanned.
const RESCAN_EVERY_NS: u64 = 1_000_000_000;

/// A thread that ran for less than this part of the time between two samples is not followed.
const HARDLY_RAN: u64 = 20;

/// What is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Ids of the processes, which are added up.
    pub pids: Vec<u32>,
    /// Which connections are those of the test.
    pub tested: Tested,
}

/// Which connections are those of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// None that is known.
    Nothing,
    /// Those to a port of this host.
    Server {
        /// The port.
        port: u16,
    },
    /// Those from this host to a server.
    Client {
        /// The server.
        server: SocketAddr,
        /// Local ports there are for it, over all source addresses.
        ports: Option<u64>,
    },
}

/// Samples a host. Files are opened once and read again; new threads are found within a second.
#[derive(Debug)]
pub struct Sampler {
    watched: Watched,
    process: Processes,
    files: Files,
    group: Result<Group, ReadError>,
    sockets: Result<Sockets, ReadError>,
    nic: Result<Nic, ReadError>,
    room: Room,
    /// Time of the last scan of the threads, and how long each had run.
    threads_before: Option<(u64, BTreeMap<u32, u64>)>,
    rescanned_ns: u64,
    /// CPU time of all samples.
    spent_ns: u64,
}

#[derive(Debug)]
struct Files {
    stat: KernelFile,
    sockstat: KernelFile,
    sockstat6: KernelFile,
    meminfo: KernelFile,
    netstat: KernelFile,
    snmp: KernelFile,
    conntrack: KernelFile,
    conntrack_max: KernelFile,
    tw_buckets: KernelFile,
}

impl Files {
    fn open() -> Self {
        let proc = |name: &str| KernelFile::open(format!("/proc/{name}"));
        Self {
            stat: proc("stat"),
            sockstat: proc("net/sockstat"),
            sockstat6: proc("net/sockstat6"),
            meminfo: proc("meminfo"),
            netstat: proc("net/netstat"),
            snmp: proc("net/snmp"),
            conntrack: proc("sys/net/netfilter/nf_conntrack_count"),
            conntrack_max: proc("sys/net/netfilter/nf_conntrack_max"),
            tw_buckets: proc("sys/net/ipv4/tcp_max_tw_buckets"),
        }
    }
}

impl Sampler {
    /// Opens everything there is. What cannot be opened is absent from every sample, with the reason.
    #[must_use]
    pub fn open(watched: Watched) -> Self {
        let process = Processes::open(&watched.pids);
        Self {
            group: watched
                .pids
                .first()
                .map(|pid| Group::of(*pid))
                .ok_or_else(|| ReadError::not_found("no process")),
            process,
            files: Files::open(),
            sockets: Sockets::open(),
            nic: match watched.tested {
                Tested::Client { server, .. } => Nic::towards(server.ip()),
                _ => Err(ReadError::not_found("the way of the traffic is not known yet")),
            },
            room: Room::new(),
            threads_before: None,
            rescanned_ns: clock::monotonic_ns(),
            spent_ns: 0,
            watched,
        }
    }

    /// What it samples.
    #[must_use]
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Samples these processes from now on, added up.
    pub fn sample_processes(&mut self, pids: Vec<u32>) {
        if pids != self.watched.pids {
            self.process = Processes::open(&pids);
            self.threads_before = None;
            self.watched.pids = pids;
        }
    }

    /// Samples the device of the route to this peer from now on.
    pub fn set_peer(&mut self, peer: IpAddr) {
        self.nic = Nic::towards(peer);
    }

    /// Samples the device of this name from now on.
    pub fn set_device(&mut self, name: &str) {
        self.nic = Nic::named(name);
    }

    /// Takes one sample. If the sampled program is this one, the cost of sampling is not counted as its own.
    pub fn sample(&mut self, depth: Depth) -> Sample {
        let before_ns = thread_ns();
        let sample = self.read_all(depth);
        self.spent_ns = self.spent_ns.saturating_add(thread_ns().saturating_sub(before_ns));
        sample
    }

    fn read_all(&mut self, depth: Depth) -> Sample {
        let mut sample = Sample {
            at_ns: clock::monotonic_ns(),
            ..Sample::default()
        };
        self.cpu_ticks(&mut sample);
        let is_due = sample.at_ns.saturating_sub(self.rescanned_ns) >= RESCAN_EVERY_NS;
        if is_due || depth == Depth::Full {
            self.process.rescan();
            self.rescanned_ns = sample.at_ns;
        }
        self.process(&mut sample, depth);
        self.kernel(&mut sample);
        self.test(&mut sample, depth);
        sample
    }

    fn cpu_ticks(&mut self, sample: &mut Sample) {
        let ticks = self.files.stat.read(&mut self.room).map(text::cpu_ticks);
        let cpus = ticks.and_then(|cpus| {
            if cpus.is_empty() {
                Err(ReadError::lacking("no processors in it"))
            } else {
                Ok(cpus)
            }
        });
        sample.cpus = sample.take("processors", cpus);
        self.group(sample);
    }

    /// The control group of the first process.
    fn group(&mut self, sample: &mut Sample) {
        let (room, group) = (&mut self.room, self.group.as_ref().map_err(Clone::clone));
        let throttled = group.clone().and_then(|group| group.throttled_ns(room));
        sample.throttled_ns = sample.take("throttling", throttled);
        let memory = group.clone().and_then(|group| group.memory(room));
        sample.group_memory = sample.take("memory of the control group", memory);
        let tasks = group.and_then(|group| group.tasks(room));
        sample.group_tasks = sample.take("tasks of the control group", tasks);
    }

    fn process(&mut self, sample: &mut Sample, depth: Depth) {
        let is_own = self.watched.pids.contains(&std::process::id());
        let spent_ns = if is_own { self.spent_ns } else { 0 };
        let cpu_ns = self.process.cpu_ns().map(|ns| ns.saturating_sub(spent_ns));
        sample.process_cpu_ns = sample.take("time of the program", cpu_ns);
        sample.threads_ns = sample.take("time of threads", self.process.threads_ns(&mut self.room));
        self.follow_threads(sample);
        sample.rss_bytes = sample.take("memory of the program", self.process.rss_bytes(&mut self.room));
        sample.fds = sample.take("descriptors", self.process.fds());
        if depth == Depth::Full {
            let high_water = self.process.rss_high_water_bytes();
            sample.rss_high_water_bytes = sample.take("most memory of the program", high_water);
        }
        if depth == Depth::Full
            && let Some((exact, shared)) = sample.take("shared memory of the program", self.process.exact_memory())
        {
            // The kernel's running total is kept per CPU and lags behind.
            sample.rss_bytes = Some(exact);
            sample.pss_bytes = Some(shared);
        }
    }

    /// Finds the CPUs of the threads that ran since the last sample.
    fn follow_threads(&mut self, sample: &mut Sample) {
        sample.processes = u32::try_from(self.watched.pids.len()).unwrap_or(u32::MAX);
        let Some(now) = &sample.threads_ns else { return };
        if let Some((before_ns, before)) = &self.threads_before {
            let least_ns = sample.at_ns.saturating_sub(*before_ns) / HARDLY_RAN;
            for (thread, ns) in now {
                let ran_ns = ns.saturating_sub(before.get(thread).copied().unwrap_or(*ns));
                if ran_ns > least_ns
                    && let Some(cpu) = self.process.cpu_of(*thread)
                {
                    *sample.ran_on_ns.entry(cpu).or_default() += ran_ns;
                }
            }
        }
        self.threads_before = Some((sample.at_ns, now.clone()));
    }

    fn kernel(&mut self, sample: &mut Sample) {
        let (files, room) = (&self.files, &mut self.room);
        let sockstat = files
            .sockstat
            .read(room)
            .and_then(|bytes| text::sockstat(bytes).ok_or_else(|| ReadError::lacking("sockstat has no line of TCP")));
        if let Some(found) = sample.take("sockets", sockstat) {
            // Without IPv6 the file does not exist, and neither do its sockets.
            let sixth = files
                .sockstat6
                .read(room)
                .ok()
                .and_then(text::sockstat6_in_use)
                .unwrap_or(0);
            let limit = files.tw_buckets.read(room).ok().and_then(text::number);
            sample.sockets_in_use = found.in_use.map(|fourth| fourth.saturating_add(sixth));
            sample.sockets_orphaned = found.orphaned;
            sample.sockets_allocated = found.allocated;
            sample.time_wait = found.time_wait.map(|peak| Peak { peak, limit });
            let page_bytes = process::page_bytes();
            sample.socket_memory_bytes = found.memory_pages.map(|pages| pages.saturating_mul(page_bytes));
        }
        let slab = files
            .meminfo
            .read(room)
            .map(|bytes| text::kib_line_bytes(bytes, "SUnreclaim"));
        sample.slab_unreclaimable_bytes = sample.take("memory of the kernel", slab).flatten();
        for (what, file) in [
            ("counters of netstat", &files.netstat),
            ("counters of snmp", &files.snmp),
        ] {
            let counted = file
                .read(room)
                .map(|bytes| text::protocol_counters(bytes, &mut sample.counters));
            let _ = sample.take(what, counted);
        }
        // Without connection tracking there is nothing that could fill up, and nothing is missing.
        if let Some(peak) = files.conntrack.read(room).ok().and_then(text::number) {
            let limit = files.conntrack_max.read(room).ok().and_then(text::number);
            sample.conntrack = Some(Peak { peak, limit });
        }
    }

    /// What concerns the test's own connections and their way.
    fn test(&mut self, sample: &mut Sample, depth: Depth) {
        let nic = self.nic.as_mut().map_err(|why| why.clone()).and_then(Nic::read);
        sample.nic = sample.take("adapter", nic);
        let time_wait = sample.time_wait.map_or(0, |found| found.peak);
        let known = sample.sockets_in_use.map(|used| used.saturating_add(time_wait));
        let are_few = known.is_some_and(|known| known < SOCKETS_FEW);
        let may_walk = depth == Depth::Full || are_few;
        let sockets = match &mut self.sockets {
            Ok(sockets) => sockets,
            Err(why) => return sample.missing.push(("connections", why.to_string())),
        };
        match self.watched.tested {
            Tested::Nothing => {}
            Tested::Server { port } => {
                sample.accept_queue = sample.take("accept queue", sockets.accept_queue(port)).flatten();
                if may_walk && let Some(states) = sample.take("connections", sockets.of_port(port)) {
                    sample.connections = Some(states.established());
                    sample.sockets_by_state = Some(states.named());
                }
                if depth == Depth::Full {
                    sample.mss_bytes = sample.take("segments", sockets.mss_of_port(port)).flatten();
                }
            }
            Tested::Client { server, ports } if may_walk => {
                if let Some(states) = sample.take("local ports", sockets.towards(server)) {
                    let peak = states.total();
                    sample.ports = Some(Peak { peak, limit: ports });
                    sample.sockets_by_state = Some(states.named());
                }
                if depth == Depth::Full {
                    sample.mss_bytes = sample.take("segments", sockets.mss_towards(server)).flatten();
                }
            }
            Tested::Client { .. } => {}
        }
    }

    /// Speed in bit/s and duplex of the link, with its counters.
    ///
    /// # Errors
    /// Why the device is not known.
    pub fn device(&mut self) -> Result<DeviceFacts, ReadError> {
        let nic = self.nic.as_mut().map_err(|why| why.clone())?;
        Ok(DeviceFacts {
            stats: nic.read()?,
            is_full_duplex: nic.link.1,
            is_wireless_or_tunnel: nic.is_wireless_or_tunnel()?,
            is_vlan: nic.is_tagged,
        })
    }
}

fn thread_ns() -> u64 {
    let spent = cpu::thread_time();
    u64::try_from((spent.user + spent.system).as_nanos()).unwrap_or(u64::MAX)
}

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its counters since it exists.
    pub stats: NicStats,
    /// The link carries both directions at once.
    pub is_full_duplex: Option<bool>,
    /// Packets leave it by radio or inside others.
    pub is_wireless_or_tunnel: bool,
    /// Its frames carry the tag of a VLAN.
    pub is_vlan: bool,
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use linerate_sys::cpu::thread_time;

    #[test]
    fn sample_finds_the_test_and_costs_little() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("an address");
        let own = |tested| Watched {
            pids: vec![std::process::id()],
            tested,
        };
        let mut at_server = Sampler::open(own(Tested::Server { port: server.port() }));
        at_server.set_peer(server.ip());
        let mut at_client = Sampler::open(own(Tested::Client {
            server,
            ports: Some(28_232),
        }));
        let _clients: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(server).expect("connect")).collect();

        let sample = at_server.sample(Depth::Full);
        assert_eq!(sample.accept_queue.map(|queue| queue.peak), Some(2), "{sample:?}");
        assert_eq!(sample.connections, Some(2), "{sample:?}");
        assert_eq!(
            sample.sockets_by_state,
            Some([("established".to_owned(), 2)].into()),
            "{sample:?}"
        );
        assert!(sample.rss_high_water_bytes > Some(0), "{sample:?}");
        assert!(
            sample.sockets_allocated >= Some(3) && sample.sockets_orphaned.is_some(),
            "{sample:?}"
        );
        assert!(sample.nic.as_ref().is_some_and(|nic| nic.is_loopback), "{sample:?}");
        assert!(
            sample.pss_bytes > Some(0) && sample.counters.out_segs > Some(0),
            "{sample:?}"
        );
        // Other programs may have thousands of sockets, which only a full sample reads.
        let sample = at_client.sample(Depth::Full);
        assert_eq!(
            sample.ports,
            Some(Peak {
                peak: 2,
                limit: Some(28_232)
            }),
            "{sample:?}"
        );

        const LOOKS: u32 = 50;
        let before = thread_time();
        (0..LOOKS).for_each(|_| drop(at_server.sample(Depth::Quick)));
        let after = thread_time();
        let each = ((after.user + after.system) - (before.user + before.system)) / LOOKS;
        // Half a percent of 200 ms is 1 ms; what an unoptimised build on a slow machine needs stays far below.
        assert!(each.as_millis() < 20, "{each:?}");
    }

    #[test]
    fn missing_value_is_absent_with_reason() {
        let no_process = Watched {
            pids: vec![0x3fff_fff0],
            tested: Tested::Nothing,
        };
        let sample = Sampler::open(no_process).sample(Depth::Full);
        assert_eq!(
            (sample.process_cpu_ns, sample.rss_bytes, sample.fds),
            (None, None, None)
        );
        assert!(sample.cpus.is_some(), "the host is still there");
        for what in [
            "time of the program",
            "memory of the program",
            "most memory of the program",
            "memory of the control group",
            "tasks of the control group",
            "descriptors",
            "adapter",
        ] {
            assert!(
                sample.missing.iter().any(|(missing, _)| *missing == what),
                "{what}: {:?}",
                sample.missing
            );
        }
    }
}
