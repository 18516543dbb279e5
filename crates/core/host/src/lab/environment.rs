//! A host before an experiment: limits, variables, other load, and the route to the peer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use std::{fs, thread};

use linerate_model::http::Environment;
use linerate_model::snapshot::Snapshot;

use crate::kernel::programs::ProcessTimes;
use crate::kernel::sockets::{Sockets, Tested};
use crate::kernel::{self, cpu};
use crate::lab::endpoint::{Period, link_bps, missing, mtu_bytes, peak};
use crate::sampler::{Depth, Sampler, Watched};

/// A program that took fewer ticks of 10 ms is not worth a name.
const TICKS_MIN: u64 = 2;

/// Kinds of `rtnetlink(7)` that wrap packets into others.
const TUNNELS: &str =
    "tun wireguard gre gretap ip6gre ip6gretap ipip ip6tnl sit vti vti6 xfrm vxlan geneve";

/// Facts to read.
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
    /// Time for which other load is observed. The program under test must be idle.
    pub period: Duration,
}

/// Reads this host; takes [`EnvironmentQuery::period`].
pub fn environment(query: &EnvironmentQuery<'_>) -> Environment {
    let pid = query.pids.first().copied().unwrap_or_else(std::process::id);
    let mut sampler = Sampler::open(Watched {
        pids: query.pids.to_vec(),
        tested: query
            .port
            .map_or(Tested::Nothing, |port| Tested::Server { port }),
    });

    if let Some(peer) = query.peer {
        sampler.set_peer(peer);
    }

    let first = sampler.sample(Depth::Quick);
    let before = ProcessTimes::read().ticks;
    thread::sleep(query.period);

    let mut last = sampler.sample(Depth::Quick);
    let busiest_other = busiest_other(&before, &ProcessTimes::read().ticks, query.pids);
    let mut period = Period::begin(first);
    period.add(last.clone());
    cpu::record(&mut last);
    kernel::variables(&mut last);
    kernel::limits(&mut last, pid);

    let mut found = settings(&last, query.peer.is_some());
    found.version = query.version.to_owned();
    found.busiest_other = busiest_other;
    found.can_raise_nofile =
        may_raise_limits(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default());
    sockets(&mut found, query.port);
    others(&mut found, &period);

    found
}

/// The settings among the facts of a host.
fn settings(facts: &Snapshot, has_peer: bool) -> Environment {
    let nic = facts
        .text("route.peer.dev")
        .map(|device| format!("nic.{device}"));
    let of_nic = |fact: &str| nic.as_ref().map(|nic| format!("{nic}.{fact}"));
    let kind = of_nic("net.kind")
        .and_then(|key| facts.text(&key))
        .unwrap_or_default();
    let flag = |fact: &str| of_nic(fact).and_then(|key| facts.flag(&key));

    let errors = |way: &str| {
        Some(
            facts
                .counters
                .get(&of_nic(&format!("stats64.{way}_errors"))?)?
                .v,
        )
    };
    let sysctl = |name: &str| facts.whole(&format!("sysctl.{name}"));
    let small = |name: &str| sysctl(name).and_then(|value| u8::try_from(value).ok());

    let words = |name: &str| {
        facts
            .value(&format!("sysctl.{name}"))
            .map(ToString::to_string)
    };
    let relevant = |key: &str| {
        RELEVANT.split(' ').any(|known| known == key) || has_peer && key.starts_with("route.")
    };
    Environment {
        kernel: facts.kernel.clone(),
        boot_id: facts.boot_id.clone(),
        governor: facts.text("cpu.freq.governor").map(str::to_owned),
        device: facts.text("route.peer.dev").map(str::to_owned),
        is_loopback: kind == "loopback",
        is_wireless_or_tunnel: TUNNELS.split(' ').any(|tunnel| tunnel == kind)
            || flag("net.wireless") == Some(true),
        is_vlan: flag("net.vlan_tagged"),
        link_bps: nic.as_ref().and_then(|nic| link_bps(facts, nic)),
        mtu_bytes: nic.as_ref().and_then(|nic| mtu_bytes(facts, nic)),
        is_full_duplex: of_nic("link.duplex").and_then(|key| Some(facts.text(&key)? == "full")),
        nic_errors: errors("rx")
            .zip(errors("tx"))
            .map(|(rx, tx)| rx.saturating_add(tx)),
        nofile_soft: facts.whole("limits.nofile.soft"),
        nofile_hard: facts.whole("limits.nofile.hard"),
        nr_open: sysctl("fs.nr_open"),
        file_max: sysctl("fs.file-max"),
        port_range: words("net.ipv4.ip_local_port_range")
            .and_then(|text| numbers(&text).map(|[low, high]| (low, high))),
        reserved_ports: words("net.ipv4.ip_local_reserved_ports"),
        tw_reuse: small("net.ipv4.tcp_tw_reuse"),
        timestamps: small("net.ipv4.tcp_timestamps"),
        somaxconn: sysctl("net.core.somaxconn"),
        max_syn_backlog: sysctl("net.ipv4.tcp_max_syn_backlog"),
        tcp_mem_pages: words("net.ipv4.tcp_mem").and_then(|text| numbers(&text)),
        conntrack: peak(
            facts.whole("limits.conntrack.count"),
            facts.whole("limits.conntrack.max"),
        ),
        memory_available_bytes: facts.whole("mem.available_bytes"),
        missing: facts
            .facts
            .iter()
            .filter(|(key, _)| relevant(key))
            .filter_map(|(key, fact)| missing(key, fact))
            .collect(),
        ..Environment::default()
    }
}

/// Facts whose absence is reported.
const RELEVANT: &str = "\
    sysctl.fs.nr_open sysctl.fs.file-max sysctl.net.ipv4.ip_local_port_range \
    sysctl.net.ipv4.ip_local_reserved_ports sysctl.net.ipv4.tcp_tw_reuse \
    sysctl.net.ipv4.tcp_timestamps sysctl.net.core.somaxconn sysctl.net.ipv4.tcp_max_syn_backlog \
    sysctl.net.ipv4.tcp_mem cpu.ticks sock.tcp cgroup.throttled_ns process.cpu_ns";

/// Exactly `N` numbers.
fn numbers<T: FromStr, const N: usize>(text: &str) -> Option<[T; N]> {
    let numbers: Option<Vec<T>> = text
        .split_ascii_whitespace()
        // One more than `N`, so that a longer list is no match.
        .take(N + 1)
        .map(|word| word.parse().ok())
        .collect();
    numbers?.try_into().ok()
}

/// `CAP_SYS_RESOURCE` among the effective capabilities of `/proc/*/status` (capabilities(7)).
fn may_raise_limits(status: &str) -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits & SYS_RESOURCE != 0)
}

fn sockets(found: &mut Environment, port: Option<u16>) {
    let mut ports = Vec::new();
    let queue = Sockets::open().and_then(|mut sockets| {
        sockets.listeners(0, |socket| ports.push(socket.local.port()))?;
        port.map_or(Ok(None), |port| sockets.accept_queue(port))
    });
    match queue {
        Ok(queue) => found.backlog = queue.and_then(|queue| queue.limit),
        Err(why) => found.missing.push(format!("listening ports: {why}")),
    }

    ports.sort_unstable();
    ports.dedup();
    found.listening_ports = ports;
}

/// Load of other programs over a period.
fn others(found: &mut Environment, period: &Period) {
    let stats = period.stats();
    found.cpus = stats.cpus;
    found.time_wait = stats.time_wait;
    found.steal = stats.cpu_steal;
    found.is_throttled = stats.throttled.map(|share| share > 0.0);

    let own = stats.process_cpu_ns.zip(stats.cpus).map(|(ns, cpus)| {
        let all_ns = stats.window_ns as f64 * f64::from(cpus.max(1));
        if all_ns > 0.0 {
            ns as f64 / all_ns
        } else {
            0.0
        }
    });
    found.other_load = stats
        .cpu_busy
        .map(|busy| (busy - own.unwrap_or(0.0)).max(0.0));
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
        assert!(
            found.port_range.is_some_and(|(low, high)| low < high),
            "{found:?}"
        );
        assert!(
            found.cpus > Some(0)
                && found.memory_available_bytes > Some(0)
                && found.nr_open > Some(0),
            "{found:?}"
        );
        assert!(
            found.time_wait.is_some() && found.other_load.is_some_and(|load| load <= 1.0),
            "{found:?}"
        );
    }

    #[test]
    fn names_of_the_kernel_are_parsed() {
        assert_eq!(numbers("32768 60999"), Some([32_768_u16, 60_999]));
        for text in ["1", "1 2 3", "1 x", "-1 2", "1 70000"] {
            assert_eq!(numbers::<u16, 2>(text), None, "{text}");
        }

        assert!(may_raise_limits("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(
            !may_raise_limits("CapEff:\t0000000000000000\n") && !may_raise_limits("CapEff: z\n")
        );
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
        assert_eq!(
            busiest_other(&before, &after, &[1]).as_deref(),
            Some("p2 (2)")
        );
        assert_eq!(busiest_other(&before, &before, &[1]), None, "all were idle");
    }
}
