//! Takes a snapshot of this host.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use linerate_sys::{clock, privileges, process};

use crate::kernel::cgroup::Group;
use crate::kernel::file::Buffer;
use crate::kernel::{self, HostCounters, cpu, procfs, sockets};
use crate::nic::links::Link;
use crate::nic::{ethtool, links, route, sysfs, tunnel};
use crate::prelude::*;
use crate::tc;

const SOFTIRQS: &str = "/proc/softirqs";

/// Facts to collect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Names of interfaces; empty means the one to the peer, or else all that are switched on.
    pub interfaces: Vec<String>,
    /// The other end of a test.
    pub peer: Option<IpAddr>,
    /// Address of a socket of this process that is connected to it.
    pub connected_from: Option<SocketAddr>,
    /// Also the CPU time of each thread of this process, and what each of its UDP sockets dropped.
    pub own_threads: bool,
}

/// Takes a snapshot. What cannot be read is absent with its reason; an interface that does not
/// exist as well.
pub fn collect(request: &Request) -> Snapshot {
    let mut snapshot = identity();
    let all = links::all();

    // The route first: it names the interface to the peer.
    if let Some(peer) = request.peer {
        route::record(&mut snapshot, peer, &all);
        if let [wanted] = request.interfaces.as_slice() {
            snapshot.set("route.wanted_dev", wanted.as_str(), "command line");
        }
    }

    let mut chosen = chosen(request, &snapshot, &all);
    // A tunnel is as fast as the device that carries it.
    let below = chosen.iter().filter_map(|link| tunnel::below(link, &all));
    for below in below.collect::<Vec<_>>() {
        if !chosen.contains(&below) {
            chosen.push(below);
        }
    }
    // Read once for all interfaces: with hundreds of CPUs the file has megabytes.
    let text = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let interrupts = procfs::interrupts(&text);

    match fs::read_to_string(SOFTIRQS) {
        Ok(text) => procfs::softirqs(&mut snapshot, &text),
        Err(error) => {
            record_absent(
                &mut snapshot,
                "softirq.net_rx",
                &ReadError::file(SOFTIRQS, &error),
                "procfs:softirqs",
            );
        }
    }

    let mut query = ethtool::EthtoolQuery::open();
    for link in &chosen {
        link.record_facts(&mut snapshot, &all);
        tunnel::record(&mut snapshot, link, &all);
        link.record_counters(&mut snapshot);
        query.record(&mut snapshot, &link.name);
        sysfs::record(&mut snapshot, &link.name, &interrupts);
    }

    links::record_duplicates(&mut snapshot, &chosen);
    let names: Vec<(u32, &str)> = chosen
        .iter()
        .map(|link| (link.index, link.name.as_str()))
        .collect();
    tc::record(&mut snapshot, &names);

    for name in request
        .interfaces
        .iter()
        .filter(|name| !all.iter().any(|link| link.name == **name))
    {
        snapshot.set_absent(
            format!("nic.{name}.link"),
            Absence::NoSuchDevice,
            None,
            "rtnetlink:GETLINK",
        );
    }

    cpu::record(&mut snapshot);
    let mut buffer = Buffer::new();
    HostCounters::open().record(&mut snapshot, &mut buffer);

    let group = Group::of(std::process::id());
    group.record_quota(&mut snapshot);
    group.record(&mut snapshot, &mut buffer);
    kernel::record(&mut snapshot);
    cpu::record_own(&mut snapshot);

    if request.own_threads {
        cpu::record_own_threads(&mut snapshot);
        sockets::record_own_udp(&mut snapshot);
    }

    snapshot
}

/// A snapshot without facts: name, kernel, time and boot of this host.
pub(crate) fn identity() -> Snapshot {
    let system = process::uname();
    let mut snapshot = Snapshot::new(system.node, Source::Live);
    snapshot.kernel = Some(system.release);
    snapshot.monotonic_ns = Some(clock::monotonic_ns());
    snapshot.boot_id = clock::boot_id().ok();
    snapshot.privileged = Some(privileges::is_root());
    snapshot
}

fn chosen<'a>(request: &Request, snapshot: &Snapshot, all: &'a [Link]) -> Vec<&'a Link> {
    if !request.interfaces.is_empty() {
        return all
            .iter()
            .filter(|link| request.interfaces.contains(&link.name))
            .collect();
    }
    if let Some(device) = snapshot.text("route.peer.dev") {
        return all.iter().filter(|link| link.name == device).collect();
    }

    // Loopback explains nothing about a network; it is read when there is no other interface.
    let wired: Vec<&Link> = all
        .iter()
        .filter(|link| link.up && !link.loopback)
        .collect();
    if wired.is_empty() {
        all.iter().collect()
    } else {
        wired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::facts;
    use linerate_sys::cpu::thread_time;
    use std::time::Duration;

    /// Loopback, and the first interface with a device behind it where there is one.
    fn interfaces() -> Vec<String> {
        let entries = fs::read_dir("/sys/class/net")
            .into_iter()
            .flatten()
            .flatten();
        let device = entries.filter(|entry| entry.path().join("device").exists());
        let names = device.filter_map(|entry| entry.file_name().into_string().ok());
        names.take(1).chain(["lo".to_owned()]).collect()
    }

    #[test]
    fn snapshot_is_quick_and_small_and_every_key_is_explained() {
        for name in interfaces() {
            let request = Request {
                interfaces: vec![name.clone()],
                ..Request::default()
            };
            let before = thread_time();
            let snapshot = collect(&request);
            let after = thread_time();

            // What a process waits for others is not ours.
            let spent = (after.user + after.system).saturating_sub(before.user + before.system);
            assert!(spent < Duration::from_millis(50), "{name}: {spent:?}");
            let bytes = serde_json::to_vec(&snapshot).expect("plain data").len();

            // Every CPU and every queue has counters of its own.
            let is_small = snapshot.number("cpu.count").is_some_and(|cpus| cpus <= 4.0);
            assert!(bytes < 24 << 10 || !is_small, "{name}: {bytes} bytes");
            assert!(
                snapshot.interfaces().contains(name.as_str()),
                "{:?}",
                snapshot.interfaces()
            );

            let snapshot = collect(&Request {
                peer: Some([127, 0, 0, 1].into()),
                own_threads: true,
                ..request
            });
            for key in snapshot.facts.keys().chain(snapshot.counters.keys()) {
                assert!(facts::find(key).is_some(), "{key} is not explained");
            }
        }
    }
}
