//! Listeners: one per thread and address; the kernel distributes connections over those of an
//! address (`SO_REUSEPORT`).

use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use linerate_sys::socket::{self, Protocol};
use linerate_sys::{OsError, Result, sockopt};

use super::spec::{Listen, ServerSpec, SocketSpec};

/// Listeners of all threads.
#[derive(Debug)]
pub(super) struct Listeners {
    /// Per thread, one socket per address.
    pub by_thread: Vec<Vec<OwnedFd>>,
    /// Listening addresses.
    pub addresses: Vec<SocketAddr>,
}

/// Opens the listeners of `threads` threads.
///
/// # Errors
/// The operating system's with the address, for instance that it is in use.
pub(super) fn open(spec: &ServerSpec, threads: usize) -> Result<Listeners> {
    let mut listeners = Listeners {
        by_thread: (0..threads).map(|_| Vec::new()).collect(),
        addresses: Vec::new(),
    };
    let mut chosen_port = None;

    for (mut address, is_optional) in spec.listen.addresses() {
        // The port that the kernel chose for IPv4 is used for IPv6, too: clients know one number.
        if let Listen::Everywhere(0) = &spec.listen
            && let Some(port) = chosen_port
        {
            address.set_port(port);
        }

        match resolved(&address) {
            Err(error) if is_optional && is_unknown_family(&error) => continue,
            found => address = found?,
        }

        chosen_port = Some(address.port());
        for thread in &mut listeners.by_thread {
            thread.push(listener(&address, spec)?);
        }

        listeners.addresses.push(address);
    }

    Ok(listeners)
}

/// The address with the port chosen by the kernel. `SO_REUSEPORT` would silently share the port
/// with another server of the same user, so a socket without it tests the port first.
fn resolved(address: &SocketAddr) -> Result<SocketAddr> {
    let probe = bound(address, |_| Ok(()))?;
    socket::listen(&probe, 1)?;
    socket::local_addr(&probe)
}

fn listener(address: &SocketAddr, spec: &ServerSpec) -> Result<OwnedFd> {
    let fd = bound(address, |fd| sockopt::SO_REUSEPORT.set(fd, true))?;
    // Connections inherit the options of their listener, which saves a call for each.
    sockopt::TCP_NODELAY.set(&fd, true)?;
    // Buffer sizes have an effect only before listen(2) (tcp(7)).
    apply(&fd, &spec.socket)?;
    socket::listen(&fd, i32::try_from(spec.backlog).unwrap_or(i32::MAX))?;
    Ok(fd)
}

fn bound(address: &SocketAddr, prepare: impl FnOnce(&OwnedFd) -> Result<()>) -> Result<OwnedFd> {
    let fd = socket::open(address, Protocol::Tcp)?;
    // Connections of a former server in TIME_WAIT do not prevent a restart.
    sockopt::SO_REUSEADDR.set(&fd, true)?;

    if address.is_ipv6() {
        // Otherwise a wildcard of IPv6 takes IPv4 as well (ipv6(7)) and collides with that
        // listener.
        sockopt::IPV6_V6ONLY.set(&fd, true)?;
    }

    prepare(&fd)?;
    socket::bind(&fd, address)?;
    Ok(fd)
}

fn apply(fd: &OwnedFd, options: &SocketSpec) -> Result<()> {
    if let Some(bytes) = options.send_buffer_bytes {
        sockopt::SO_SNDBUF.set(fd, bytes)?;
    }

    if let Some(bytes) = options.receive_buffer_bytes {
        sockopt::SO_RCVBUF.set(fd, bytes)?;
    }

    match &options.congestion {
        Some(name) => sockopt::set_congestion(fd, name),
        None => Ok(()),
    }
}

/// True if the host lacks the address family or has disabled it.
fn is_unknown_family(error: &OsError) -> bool {
    error.is_unsupported() || error.source.kind() == std::io::ErrorKind::AddrNotAvailable
}

/// Accept queue limited by `net.core.somaxconn` (listen(2)); `None` where that cannot be read.
pub(super) fn effective_backlog(wanted: u32) -> Option<u32> {
    let text = fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    let limit: u32 = text.trim().parse().ok()?;
    Some(wanted.min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_port_and_other_servers_do_not() {
        let spec = ServerSpec::on_loopback();
        let listeners = open(&spec, 3).expect("a free port");
        assert_eq!(listeners.by_thread.len(), 3);

        for thread in &listeners.by_thread {
            let addresses: Vec<_> = thread
                .iter()
                .map(|fd| socket::local_addr(fd).expect("bound"))
                .collect();
            assert_eq!(addresses, listeners.addresses);
        }

        let taken = ServerSpec {
            listen: Listen::At(listeners.addresses.clone()),
            ..spec
        };
        let error = open(&taken, 1).expect_err("in use");
        assert!(
            error
                .to_string()
                .contains(&listeners.addresses[0].to_string()),
            "{error}"
        );
    }

    #[test]
    fn both_families_use_one_port() {
        let spec = ServerSpec {
            listen: Listen::Everywhere(0),
            ..ServerSpec::default()
        };
        let listeners = open(&spec, 1).expect("a free port");
        let ports: Vec<_> = listeners.addresses.iter().map(SocketAddr::port).collect();
        assert!(
            ports.iter().all(|port| *port == ports[0] && *port != 0),
            "{ports:?}"
        );
    }

    #[test]
    fn backlog_is_limited_by_the_kernel() {
        assert_eq!(effective_backlog(1), Some(1));
        assert!(effective_backlog(u32::MAX).expect("a kernel") < u32::MAX);
    }
}
