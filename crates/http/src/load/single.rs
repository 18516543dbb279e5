//! One connection beside a load, opened in the same way.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_model::http::Ports;
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::{errno, socket};

use super::opener::{Opened, Opener};
use super::ports::{Local, PortSelection};

/// Connects from a local address and port as a load does.
///
/// # Errors
/// Those of connect(2); `TimedOut` after `timeout`.
pub(crate) fn connect(local: &Local<'_>, destination: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let opened = open(local, destination)?;
    if !opened.is_connected {
        if !wait_fd(&opened.socket, Interest::WRITE, Some(timeout))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket::take_error(&opened.socket).map_err(|error| error.source)?;
    }
    let stream = TcpStream::from(opened.socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn open(local: &Local<'_>, destination: SocketAddr) -> io::Result<Opened> {
    let open = |way| Opener::for_one(local, destination, way).open();
    let by_kernel = || open(PortSelection::Kernel { range: None });
    match local.ports {
        Ports::Kernel => by_kernel(),
        Ports::Explicit => open(PortSelection::Explicit),
        Ports::Auto => match by_kernel() {
            Err(error) if error.raw_os_error() == Some(errno::EADDRNOTAVAIL) => open(PortSelection::Explicit),
            opened => opened,
        },
    }
}
