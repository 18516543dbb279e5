//! Creates sockets and starts their connections.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use linerate_model::http::Ports;
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{OsError, errno, sockopt};

use super::pace::WorkerIndex;
use super::ports::{Local, PortAllocator, PortSelection, SourceTuple, choose};
use super::spec::LoadSpec;

/// Opens sockets from the addresses and ports of one worker.
pub(crate) struct Opener {
    allocator: PortAllocator,
    resets_at_end: bool,
    keepalive_s: Option<u32>,
}

/// A connected or connecting socket.
pub(crate) struct Opened {
    pub socket: OwnedFd,
    pub is_connected: bool,
}

impl Opener {
    pub(crate) fn new(spec: &LoadSpec, index: WorkerIndex) -> Self {
        let per_tuple = u64::from(spec.connections).div_ceil(spec.tuples());
        let way = choose(spec.ports, per_tuple, spec.port_range);
        Self {
            allocator: PortAllocator::new(
                &spec.sources,
                &spec.destinations,
                way,
                &spec.ports_skipped,
                index,
            ),
            resets_at_end: spec.resets_at_end,
            keepalive_s: spec.tcp_keepalive_s,
        }
    }

    /// For one connection beside a load, with the same selection of ports.
    pub(crate) fn for_one(
        local: &Local<'_>,
        destination: SocketAddr,
        selection: PortSelection,
    ) -> Self {
        let sources = local.address.as_slice();
        let destinations = [destination];
        Self {
            allocator: PortAllocator::new(
                sources,
                &destinations,
                selection,
                local.ports_skipped,
                (0, 1),
            ),
            resets_at_end: false,
            keepalive_s: None,
        }
    }

    /// Starts the next connection.
    pub(crate) fn open(&mut self) -> io::Result<Opened> {
        let (pair, tuple) = self
            .allocator
            .next_pair()
            .ok_or_else(|| io::Error::from_raw_os_error(errno::EADDRNOTAVAIL))?;
        match self.allocator.selection {
            PortSelection::Kernel { range } => self
                .open_anywhere(&tuple, range)
                .map_err(|error| error.source),
            PortSelection::Explicit => self.open_from_ports(pair, &tuple),
        }
    }

    fn open_anywhere(
        &self,
        tuple: &SourceTuple,
        range: Option<(u16, u16)>,
    ) -> Result<Opened, OsError> {
        let socket = self.socket(&tuple.destination)?;
        if let Some((low, high)) = range {
            // Kernels before 6.3 lack the option; the search is slower there.
            let _ = sockopt::set_local_port_range(&socket, low, high);
        }

        if let Some(source) = tuple.source {
            // connect(2) then chooses the port and shares it between destinations; bind(2) would
            // reserve it for all of them (ip(7)).
            sockopt::IP_BIND_ADDRESS_NO_PORT.set(&socket, true)?;
            socket::bind(&socket, &SocketAddr::new(source, 0))?;
        }

        connect(socket, &tuple.destination)
    }

    /// Tries ports until one is free towards this destination.
    fn open_from_ports(&mut self, pair: usize, tuple: &SourceTuple) -> io::Result<Opened> {
        let unspecified = match tuple.destination.ip() {
            IpAddr::V4(_) => IpAddr::from([0; 4]),
            IpAddr::V6(_) => IpAddr::from([0_u16; 8]),
        };
        let source = tuple.source.unwrap_or(unspecified);

        // Each port once: one in use now is not free a moment later.
        for _ in 0..=u16::MAX {
            let Some(port) = self.allocator.next_port(pair) else {
                break;
            };
            let opened = self.open_from(SocketAddr::new(source, port), &tuple.destination);
            if let Some(opened) = opened.map_err(|error| error.source)? {
                return Ok(opened);
            }
        }

        Err(io::Error::from_raw_os_error(errno::EADDRNOTAVAIL))
    }

    /// `None` where the port is in use.
    fn open_from(
        &self,
        local: SocketAddr,
        destination: &SocketAddr,
    ) -> Result<Option<Opened>, OsError> {
        let socket = self.socket(destination)?;
        // Without it bind(2) refuses a port that a connection to another destination uses.
        sockopt::SO_REUSEADDR.set(&socket, true)?;

        match socket::bind(&socket, &local) {
            Err(error) if error.errno() == Some(errno::EADDRINUSE) => return Ok(None),
            // An address of another host has no port at all.
            bound => bound?,
        }

        // A bound port whose pair with the destination is in use fails with EADDRNOTAVAIL here.
        match connect(socket, destination) {
            Err(error) if is_taken(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn socket(&self, destination: &SocketAddr) -> Result<OwnedFd, OsError> {
        let socket = socket::open(destination, Protocol::Tcp)?;
        // Nagle's algorithm (RFC 896) would hold a request back until the one before it is
        // acknowledged.
        sockopt::TCP_NODELAY.set(&socket, true)?;

        if self.resets_at_end {
            sockopt::set_reset_on_close(&socket)?;
        }

        if let Some(seconds) = self.keepalive_s {
            sockopt::SO_KEEPALIVE.set(&socket, true)?;
            sockopt::TCP_KEEPIDLE.set(&socket, seconds)?;
        }

        Ok(socket)
    }
}

fn connect(socket: OwnedFd, destination: &SocketAddr) -> Result<Opened, OsError> {
    let is_connected = socket::connect(&socket, destination)? == Connect::Done;
    Ok(Opened {
        socket,
        is_connected,
    })
}

fn is_taken(error: &OsError) -> bool {
    matches!(
        error.errno(),
        Some(errno::EADDRINUSE | errno::EADDRNOTAVAIL)
    )
}

/// Opens one connection beside a load, from a local address and port chosen as for a load.
///
/// # Errors
/// Those of connect(2); `TimedOut` after `timeout`.
pub(crate) fn connect_one(
    local: &Local<'_>,
    destination: SocketAddr,
    timeout: Duration,
) -> io::Result<TcpStream> {
    let opened = open_one(local, destination)?;
    if !opened.is_connected {
        if !wait_fd(&opened.socket, Interest::WRITE, Some(timeout))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket::take_error(&opened.socket).map_err(|error| error.source)?;
    }

    let stream = TcpStream::from(opened.socket);
    // The probe reads with the timeouts of the socket, which a non-blocking one ignores.
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn open_one(local: &Local<'_>, destination: SocketAddr) -> io::Result<Opened> {
    let open = |way| Opener::for_one(local, destination, way).open();
    let by_kernel = || open(PortSelection::Kernel { range: None });

    match local.ports {
        Ports::Kernel => by_kernel(),
        Ports::Explicit => open(PortSelection::Explicit),
        _ => match by_kernel() {
            // The kernel's range of ports is full (connect(2)); ports outside of it may be free.
            Err(error) if error.raw_os_error() == Some(errno::EADDRNOTAVAIL) => {
                open(PortSelection::Explicit)
            }
            opened => opened,
        },
    }
}
