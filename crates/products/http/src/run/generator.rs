//! From a plan to the generator: addresses, ports, threads and processes of this host.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_doctor::http::{descriptors_for, worker_processes};
use linerate_host::{Tested, Watched};
use linerate_model::http::Ports;
use linerate_model::outcome::Error;
use linerate_sys::socket::{self, Family};
use linerate_sys::{cpu, interfaces, process};

use super::probe_error;
use super::watch::{Watch, cannot_watch};
use crate::load::ports::parse_reserved;
use crate::load::{LoadSpec, Local, Processes, WorkerPool};
use crate::probe::{self, ProbeResult, ProbeTarget};
use crate::target::Target;

/// Settings that the command line leaves to this host.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// Threads; `None` for the CPUs this process may use.
    pub threads: Option<u32>,
    /// Worker processes; `None`: as many as needed.
    pub processes: Option<u32>,
    /// Device whose addresses are local addresses as well.
    pub source_device: Option<String>,
    /// Connections are reset at the end; `None`: depends on the location of the server.
    pub resets_at_end: Option<bool>,
    /// Given addresses of names.
    pub resolved: Vec<Resolved>,
    /// Address family; `true` for IPv6.
    pub only_v6: Option<bool>,
}

/// A given address of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The name.
    pub host: String,
    /// The port for which it holds.
    pub port: u16,
    /// The address.
    pub address: IpAddr,
}

/// A load with what this host and the resolver know: addresses of the server and of the device, and
/// ports.
///
/// # Errors
/// A name or a device without an address.
pub(super) fn completed(
    mut load: LoadSpec,
    target: &Target,
    opening: &Opening,
) -> Result<LoadSpec, Error> {
    load.sources
        .extend(addresses_of_device(opening.source_device.as_deref())?);
    load.destinations = addresses(target, &opening.resolved, opening.only_v6)?;
    // A reset leaves no TIME_WAIT, which keeps ports of this host for a minute.
    load.resets_at_end = opening.resets_at_end.unwrap_or(are_local(&load));
    load.port_range = port_range();
    load.ports_skipped = reserved_ports();

    Ok(load)
}

/// True if all addresses of the server are of this host.
pub(super) fn are_local(load: &LoadSpec) -> bool {
    let mut addresses = load.destinations.iter();
    addresses.all(|address| interfaces::is_local(address.ip()))
}

/// Sends the request of a load once.
///
/// # Errors
/// A server that does not answer, or an invalid request.
pub(super) fn probe_server(load: &LoadSpec, address: SocketAddr) -> Result<ProbeResult, Error> {
    let local = local_end(address, &load.sources, load.ports, &load.ports_skipped);
    let target = ProbeTarget {
        address,
        local,
        protocol: &load.protocol,
        connect_timeout: Duration::from_nanos(load.connect_timeout_ns),
        timeout: Duration::from_nanos(load.timeout_ns),
    };
    probe::send(target, &load.request, load.is_head).map_err(probe_error)
}

/// The addresses of a server: one of its host, with every port.
///
/// # Errors
/// A name that has no address of the family that is wanted.
pub(super) fn addresses(
    target: &Target,
    resolved: &[Resolved],
    only_v6: Option<bool>,
) -> Result<Vec<SocketAddr>, Error> {
    let first_port = *target.ports.start();
    let given = resolved.iter().find(|known| {
        known.host.eq_ignore_ascii_case(&target.host) && target.ports.contains(&known.port)
    });
    let address = match given {
        Some(known) => SocketAddr::new(known.address, first_port),
        None => {
            let family = only_v6.map(|is_v6| if is_v6 { Family::V6 } else { Family::V4 });
            let found = socket::resolve(&target.host, first_port, family).map_err(|error| {
                Error::usage(format!(
                    "cannot find the address of {}: {error}",
                    target.host
                ))
            })?;
            found
                .first()
                .map(|address| socket::unmap(*address))
                .ok_or_else(|| Error::usage(format!("{} has no address", target.host)))?
        }
    };
    let at = |port| {
        // The device of a link-local address stays with it.
        let mut address = address;
        address.set_port(port);
        address
    };

    Ok(target.ports.clone().map(at).collect())
}

/// The addresses of a device; none without one.
///
/// # Errors
/// A device without an address.
fn addresses_of_device(device: Option<&str>) -> Result<Vec<IpAddr>, Error> {
    let Some(device) = device else {
        return Ok(Vec::new());
    };
    let known = interfaces::addresses()
        .into_iter()
        .map(|(address, _)| address);
    let of_device: Vec<IpAddr> = known
        .filter(|address| interfaces::device_of(*address).as_deref() == Some(device))
        .collect();
    if of_device.is_empty() {
        return Err(Error::usage(format!(
            "--src-dev {device}: there is no such device, or it has no address"
        )));
    }

    Ok(of_device)
}

/// Local end of one connection to `server`.
pub(super) fn local_end<'a>(
    server: SocketAddr,
    sources: &[IpAddr],
    ports: Ports,
    ports_skipped: &'a [u16],
) -> Local<'a> {
    let address = sources
        .iter()
        .copied()
        .find(|source| source.is_ipv4() == server.is_ipv4());
    Local {
        address,
        ports,
        ports_skipped,
    }
}

/// The address this host would use towards another; nothing is sent.
pub fn local_address(server: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if server.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(server).ok()?;

    socket.local_addr().ok().map(|local| local.ip())
}

/// Observes this process as the client of a server.
///
/// # Errors
/// A host that cannot be observed.
pub(super) fn watch(server: Option<SocketAddr>) -> Result<Watch, Error> {
    let tested = server.map_or(Tested::Nothing, |server| Tested::Client {
        server,
        ports: None,
    });
    Watch::start(Watched {
        pids: vec![std::process::id()],
        tested,
    })
    .map_err(cannot_watch)
}

/// `net.ipv4.ip_local_port_range`.
pub(super) fn port_range() -> Option<(u16, u16)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u16>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Ports the administrator keeps for others.
pub(super) fn reserved_ports() -> Vec<u16> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_reserved_ports");
    text.map(|text| parse_reserved(&text)).unwrap_or_default()
}

/// Threads of the generator. A server on the same host (`is_local`) is left half of its CPUs.
pub(super) fn threads(is_local: bool, wanted: Option<u32>) -> u32 {
    // taskset(1) and cpusets permit fewer CPUs than are online.
    let cpus = cpu::affinity().map_or_else(|_| cpu::online_cpus(), |affinity| affinity.count());
    let cpus = u32::try_from(cpus).unwrap_or(1);
    wanted
        .unwrap_or(if is_local { cpus / 2 } else { cpus })
        .max(1)
}

/// Threads of this process, or as many worker processes as the limit of descriptors demands.
///
/// # Errors
/// A limit that cannot be read or that no number of processes gets around, or a program that cannot
/// find itself.
pub(super) fn worker_pool(
    connections: u32,
    threads: u32,
    processes: Option<u32>,
) -> Result<WorkerPool, Error> {
    let workers = threads.min(connections);
    let needed = descriptors_for(connections, workers);
    let limit = process::raise_fd_limit_to(needed).map_err(Error::failed)?;
    let enough = processes.or_else(|| worker_processes(connections, workers, limit));
    let count = enough.ok_or_else(|| {
        Error::failed(format!(
            "{connections} connections are too many for processes of {limit} descriptors; raise \
             the limit (ulimit -n)"
        ))
    })?;
    if count <= 1 {
        return Ok(WorkerPool {
            workers,
            processes: None,
        });
    }

    let program = std::env::current_exe()
        .map_err(|error| Error::failed(format!("cannot find this program's file: {error}")))?;
    Ok(WorkerPool {
        // As many in each, so that none has more connections than its descriptors are for.
        workers: workers.div_ceil(count).saturating_mul(count),
        processes: Some(Processes {
            program,
            arguments: vec!["http".to_owned(), "worker".to_owned()],
            count,
        }),
    })
}
