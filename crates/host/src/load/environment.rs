//! A host before an experiment: limits, variables, other load, and the route to the peer.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use linerate_model::http::Environment;
use linerate_sys::process;

use super::period::Period;
use super::sample::{Depth, Sample};
use super::sampler::{Sampler, Tested, Watched};
use super::sockets::Sockets;
use super::text;
use crate::cpu::thread_ticks;
use crate::sysfs::read;

/// Processes that are read.
const PROCESSES_MAX: usize = 65_536;
/// A program that took fewer ticks of 10 ms is not worth a name.
const TICKS_MIN: u64 = 2;

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvironmentQuery<'a> {
    /// Version of linerate.
    pub version: &'a str,
    /// The program under test, the server or the generator: one process, or several.
    pub pids: &'a [u32],
    /// Port it listens on.
    pub port: Option<u16>,
    /// The other end.
    pub peer: Option<IpAddr>,
    /// How long other load is observed. The program under test must be idle.
    pub period: Duration,
}

/// Reads this host; takes [`EnvironmentQuery::period`].
#[must_use]
pub fn environment(query: &EnvironmentQuery<'_>) -> Environment {
    let mut found = Environment {
        version: query.version.to_owned(),
        kernel: Some(process::uname().release),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ..Environment::default()
    };
    limits(&mut found, query.pids);
    variables(&mut found);
    sockets(&mut found, query.port);
    let tested = query.port.map_or(Tested::Nothing, |port| Tested::Server { port });
    let mut sampler = Sampler::open(Watched {
        pids: query.pids.to_vec(),
        tested,
    });
    if let Some(peer) = query.peer {
        sampler.set_peer(peer);
        device(&mut found, &mut sampler);
    }
    let first = sampler.sample(Depth::Quick);
    let before = ticks_of_all();
    thread::sleep(query.period);
    let last = sampler.sample(Depth::Quick);
    found.busiest_other = busiest_other(&before, &ticks_of_all(), query.pids);
    others(&mut found, first, last);
    found
}

fn limits(found: &mut Environment, pids: &[u32]) {
    let pid = pids.first().copied().unwrap_or_else(std::process::id);
    let limits = fs::read(format!("/proc/{pid}/limits")).unwrap_or_default();
    (found.nofile_soft, found.nofile_hard) = text::descriptor_limits(&limits);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    found.can_raise_nofile = may_raise_limits(&status);
    let memory = fs::read("/proc/meminfo").unwrap_or_default();
    found.memory_available_bytes = text::kib_line_bytes(&memory, "MemAvailable");
}

/// `CAP_SYS_RESOURCE` among the effective capabilities of `/proc/*/status` (capabilities(7)).
fn may_raise_limits(status: &str) -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits & SYS_RESOURCE != 0)
}

fn variables(found: &mut Environment) {
    let mut variables = Variables(&mut found.missing);
    found.nr_open = variables.number("fs/nr_open");
    found.file_max = variables.number("fs/file-max");
    found.port_range = variables
        .numbers("net/ipv4/ip_local_port_range")
        .map(|[low, high]| (low, high));
    found.reserved_ports = variables.text("net/ipv4/ip_local_reserved_ports");
    found.tw_reuse = variables.number("net/ipv4/tcp_tw_reuse");
    found.timestamps = variables.number("net/ipv4/tcp_timestamps");
    found.somaxconn = variables.number("net/core/somaxconn");
    found.max_syn_backlog = variables.number("net/ipv4/tcp_max_syn_backlog");
    found.tcp_mem_pages = variables.numbers("net/ipv4/tcp_mem");
}

/// Reads kernel variables and notes those it could not.
struct Variables<'a>(&'a mut Vec<String>);

impl Variables<'_> {
    fn text(&mut self, name: &str) -> Option<String> {
        let path = format!("/proc/sys/{name}");
        let noted = |error: std::io::Error| self.0.push(format!("{path}: {}", linerate_sys::error::io_text(&error)));
        let text = fs::read_to_string(&path).map_err(noted).ok()?;
        Some(text.trim().to_owned())
    }

    fn number<T: FromStr>(&mut self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    fn numbers<T: FromStr, const N: usize>(&mut self, name: &str) -> Option<[T; N]> {
        numbers(&self.text(name)?)
    }
}

/// Exactly so many numbers.
fn numbers<T: FromStr, const N: usize>(text: &str) -> Option<[T; N]> {
    let numbers: Option<Vec<T>> = text
        .split_ascii_whitespace()
        .take(N + 1)
        .map(|word| word.parse().ok())
        .collect();
    numbers?.try_into().ok()
}

fn sockets(found: &mut Environment, port: Option<u16>) {
    let mut ports = Vec::new();
    let found_sockets = Sockets::open().and_then(|mut sockets| {
        sockets.listeners(0, |socket| ports.push(socket.local.port()))?;
        port.map_or(Ok(None), |port| sockets.accept_queue(port))
    });
    match found_sockets {
        Ok(queue) => found.backlog = queue.and_then(|queue| queue.limit),
        Err(why) => found.missing.push(format!("listening ports: {why}")),
    }
    ports.sort_unstable();
    ports.dedup();
    found.listening_ports = ports;
}

fn device(found: &mut Environment, sampler: &mut Sampler) {
    match sampler.device() {
        Ok(device) => {
            found.is_loopback = device.stats.is_loopback;
            found.is_wireless_or_tunnel = device.is_wireless_or_tunnel;
            found.is_vlan = Some(device.is_vlan);
            found.link_bps = device.stats.link_bps;
            found.mtu_bytes = device.stats.mtu_bytes;
            found.is_full_duplex = device.is_full_duplex;
            found.nic_errors = Some(device.stats.errors);
            found.device = Some(device.stats.device);
        }
        Err(why) => found.missing.push(format!("device: {why}")),
    }
}

/// Load of other programs between two samples.
fn others(found: &mut Environment, first: Sample, last: Sample) {
    let mut period = Period::begin(first);
    period.add(last);
    let stats = period.stats();
    found.cpus = stats.cpus;
    found.time_wait = stats.time_wait;
    found.conntrack = stats.conntrack;
    found.steal = stats.cpu_steal;
    found.is_throttled = stats.throttled.map(|share| share > 0.0);
    let own = stats.process_cpu_ns.zip(stats.cpus).map(|(ns, cpus)| {
        let all_ns = stats.window_ns as f64 * f64::from(cpus.max(1));
        if all_ns > 0.0 { ns as f64 / all_ns } else { 0.0 }
    });
    found.other_load = stats.cpu_busy.map(|busy| (busy - own.unwrap_or(0.0)).max(0.0));
    let relevant = ["processors", "sockets", "throttling", "time of the program"];
    let missing = stats
        .missing
        .into_iter()
        .filter(|text| relevant.iter().any(|what| text.starts_with(what)));
    found.missing.extend(missing);
}

/// Ticks of every process, with its name.
fn ticks_of_all() -> BTreeMap<u32, (u64, String)> {
    let entries = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .take(PROCESSES_MAX);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = numbers.filter_map(|pid| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        Some((pid, (thread_ticks(&stat)?, name_in(&stat)?.to_owned())))
    });
    found.collect()
}

/// The name in `/proc/*/stat`, which may hold anything, parentheses included.
fn name_in(stat: &str) -> Option<&str> {
    Some(stat.split_once('(')?.1.rsplit_once(')')?.0)
}

fn busiest_other(
    before: &BTreeMap<u32, (u64, String)>,
    after: &BTreeMap<u32, (u64, String)>,
    own: &[u32],
) -> Option<String> {
    // This process is not counted as other load, even where another process is under test.
    let others = after
        .iter()
        .filter(|(pid, _)| !own.contains(pid) && **pid != std::process::id());
    let grown = others.map(|(pid, (ticks, name))| {
        let earlier = before.get(pid).map_or(*ticks, |(ticks, _)| *ticks);
        (ticks.saturating_sub(earlier), pid, name)
    });
    let (ticks, pid, name) = grown.max_by_key(|(ticks, ..)| *ticks)?;
    (ticks >= TICKS_MIN).then(|| format!("{name} ({pid})"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn this_host_is_described_with_its_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let found = environment(&EnvironmentQuery {
            version: "1.2.3",
            pids: &[std::process::id()],
            port: Some(port),
            peer: Some([127, 0, 0, 1].into()),
            period: Duration::from_millis(50),
        });
        assert!(
            found.is_loopback
                && found.is_vlan == Some(false)
                && !found.is_wireless_or_tunnel
                && found.device.as_deref() == Some("lo"),
            "{found:?}"
        );
        assert!(
            found.listening_ports.contains(&port) && found.backlog > Some(0),
            "{found:?}"
        );
        assert!(
            found.nofile_hard >= found.nofile_soft && found.nofile_soft > Some(0),
            "{found:?}"
        );
        assert!(found.port_range.is_some_and(|(low, high)| low < high), "{found:?}");
        assert!(
            found.cpus > Some(0) && found.memory_available_bytes > Some(0) && found.nr_open > Some(0),
            "{found:?}"
        );
        assert!(
            found.time_wait.is_some() && found.other_load.is_some_and(|load| load <= 1.0),
            "{found:?}"
        );
    }

    #[test]
    fn names_of_the_kernel_are_parsed() {
        assert_eq!(numbers("32768\t60999\n"), Some([32_768_u16, 60_999]));
        for text in ["1", "1 2 3", "1 x", "-1 2", "1 70000"] {
            assert_eq!(numbers::<u16, 2>(text), None, "{text}");
        }
        assert!(may_raise_limits("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(!may_raise_limits("CapEff:\t0000000000000000\n") && !may_raise_limits("CapEff: z\n"));
        assert_eq!(name_in("7 (a) b) S 1"), Some("a) b"));
        assert_eq!(name_in("7"), None);
    }

    #[test]
    fn busiest_other_program_excludes_the_tested_and_new_ones() {
        let table = |rows: &[(u32, u64)]| {
            rows.iter()
                .map(|(pid, ticks)| (*pid, (*ticks, format!("p{pid}"))))
                .collect()
        };
        let before = table(&[(1, 10), (2, 10), (3, 10)]);
        let after = table(&[(1, 90), (2, 20), (3, 12), (4, 500)]);
        assert_eq!(busiest_other(&before, &after, &[1]).as_deref(), Some("p2 (2)"));
        assert_eq!(busiest_other(&before, &before, &[1]), None, "nobody did anything");
    }
}
