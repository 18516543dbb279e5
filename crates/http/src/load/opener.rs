//! Making sockets that are on their way to the server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{OsError, errno, sockopt};

use super::ports::{Dealer, PortWay, Tuple, choose};
use super::spec::LoadSpec;

/// Opens sockets from the addresses and ports of one lane.
#[derive(Debug)]
pub(crate) struct Opener {
    dealer: Dealer,
    resets_at_end: bool,
    keepalive_s: Option<u32>,
}

/// A socket whose connection is there or on its way.
pub(crate) struct Opened {
    pub(crate) socket: OwnedFd,
    pub(crate) is_connected: bool,
}

impl Opener {
    pub(crate) fn new(spec: &LoadSpec, place: (u32, u32)) -> Self {
        let per_tuple = u64::from(spec.connections).div_ceil(spec.tuples());
        let way = choose(spec.ports, per_tuple, spec.port_range);
        Self {
            dealer: Dealer::new(&spec.sources, &spec.destinations, way, &spec.ports_skipped, place),
            resets_at_end: spec.resets_at_end,
            keepalive_s: spec.tcp_keepalive_s,
        }
    }

    /// Starts the next connection.
    pub(crate) fn open(&mut self) -> io::Result<Opened> {
        let (place, tuple) = self
            .dealer
            .deal()
            .ok_or_else(|| io::Error::from_raw_os_error(errno::EADDRNOTAVAIL))?;
        match self.dealer.way() {
            PortWay::Kernel { range } => self.open_anywhere(&tuple, range).map_err(|error| error.source),
            PortWay::Explicit => self.open_from_ports(place, &tuple),
        }
    }

    fn open_anywhere(&self, tuple: &Tuple, range: Option<(u16, u16)>) -> Result<Opened, OsError> {
        let socket = self.socket(&tuple.destination)?;
        if let Some((low, high)) = range {
            // Kernels before 6.3 lack it; the search is slower there.
            let _ = sockopt::set_local_port_range(&socket, low, high);
        }
        if let Some(source) = tuple.source {
            sockopt::set_bind_address_no_port(&socket, true)?;
            socket::bind(&socket, &SocketAddr::new(source, 0))?;
        }
        connect(socket, &tuple.destination)
    }

    /// Tries ports until one is free towards this destination.
    fn open_from_ports(&mut self, place: usize, tuple: &Tuple) -> io::Result<Opened> {
        let unspecified = match tuple.destination.ip() {
            IpAddr::V4(_) => IpAddr::from([0; 4]),
            IpAddr::V6(_) => IpAddr::from([0_u16; 8]),
        };
        let source = tuple.source.unwrap_or(unspecified);
        while let Some(port) = self.dealer.next_port(place) {
            match self.open_from(SocketAddr::new(source, port), &tuple.destination) {
                Err(error) if is_taken(&error) => {}
                other => return other.map_err(|error| error.source),
            }
        }
        Err(io::Error::from_raw_os_error(errno::EADDRNOTAVAIL))
    }

    fn open_from(&self, local: SocketAddr, destination: &SocketAddr) -> Result<Opened, OsError> {
        let socket = self.socket(destination)?;
        sockopt::set_reuse_addr(&socket, true)?;
        socket::bind(&socket, &local)?;
        connect(socket, destination)
    }

    fn socket(&self, destination: &SocketAddr) -> Result<OwnedFd, OsError> {
        let socket = socket::open(destination, Protocol::Tcp)?;
        sockopt::set_no_delay(&socket, true)?;
        if self.resets_at_end {
            sockopt::set_reset_on_close(&socket)?;
        }
        if let Some(seconds) = self.keepalive_s {
            sockopt::set_keepalive(&socket, true)?;
            sockopt::set_keep_idle(&socket, seconds)?;
        }
        Ok(socket)
    }
}

fn connect(socket: OwnedFd, destination: &SocketAddr) -> Result<Opened, OsError> {
    let is_connected = socket::connect(&socket, destination)? == Connect::Done;
    Ok(Opened { socket, is_connected })
}

fn is_taken(error: &OsError) -> bool {
    matches!(error.errno(), Some(errno::EADDRINUSE | errno::EADDRNOTAVAIL))
}
