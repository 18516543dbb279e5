//! The server of the control channel: a listener, and a thread for each of a few connections.
//!
//! Threads may block, because there are few of them. When all places are taken, the oldest connection that has not
//! shown the secret makes room, so strangers cannot keep the owner out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_model::network::Network;
use linerate_sys::OsError;
use linerate_sys::poll::{EventFd, Interest, wait_fds};

use super::agent::Agent;
use super::connection;
use super::token::Token;
use super::transport::Transport;

/// Connections at a time: a client needs two, one to ask and one for readings.
const CONNECTIONS_MAX: usize = 16;
/// Pause after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for connections to say their last word when the channel closes.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where the channel is, and for whom.
#[derive(Debug, Clone)]
pub struct ControlSpec {
    /// Where it listens; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// What clients have to show. Without one, only this host and [`Self::allow`] are served.
    pub token: Option<Token>,
    /// Networks that are served besides this host. Empty with a token: everybody who shows it.
    pub allow: Vec<Network>,
}

impl ControlSpec {
    fn admits(&self, peer: IpAddr) -> bool {
        let is_for_all = self.token.is_some() && self.allow.is_empty();
        is_for_all || peer.is_loopback() || self.allow.iter().any(|network| network.contains(peer))
    }
}

/// A control channel that is open. Dropping it closes it and everything on it.
#[derive(Debug)]
pub struct Control {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    bell: EventFd,
    is_over: AtomicBool,
    places: Mutex<Vec<Place>>,
    /// Rings when a place is given up.
    left: Condvar,
}

/// A connection somebody has.
#[derive(Debug)]
struct Place {
    number: u64,
    stream: TcpStream,
    has_proved: bool,
}

impl Control {
    /// Opens the channel.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn open(spec: ControlSpec, agent: Arc<dyn Agent>) -> Result<Self, OsError> {
        let failed = |error| OsError::new("listen", spec.address, error);
        let listener = bind(spec.address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            bell: EventFd::new()?,
            is_over: AtomicBool::new(false),
            places: Mutex::default(),
            left: Condvar::new(),
        });
        let gate = Gate {
            listener,
            spec: Arc::new(spec),
            agent,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new()
            .name("lr-control".into())
            .spawn(move || gate.run())
            .map_err(|error| OsError::new("start a thread", "", error))?;
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Listens; on all addresses of IPv4 where all of both families are wanted and the host has no IPv6.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let is_everywhere = address.is_ipv6() && address.ip().is_unspecified();
    match TcpListener::bind(address) {
        Err(error) if is_everywhere && error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        other => other,
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.bell.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let places = self.shared.lock();
        for place in places.iter() {
            // Readers wake up; a connection that is gone already needs no end.
            let _ = place.stream.shutdown(Shutdown::Read);
        }
        // The program may end after this, and a stream of readings would break off instead of ending.
        let left = &self.shared.left;
        let _ = left.wait_timeout_while(places, FAREWELL, |places| !places.is_empty());
    }
}

struct Gate {
    listener: TcpListener,
    spec: Arc<ControlSpec>,
    agent: Arc<dyn Agent>,
    shared: Arc<Shared>,
}

impl Gate {
    fn run(self) {
        let mut number = 0;
        while !self.shared.is_over.load(Ordering::Acquire) {
            let readable = Interest::READ;
            let fds = [(self.listener.as_fd(), readable), (self.shared.bell.as_fd(), readable)];
            let waited = wait_fds(fds, None);
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    number += 1;
                    self.admit(stream, peer.ip().to_canonical(), number);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited.is_ok() => {}
                // Out of descriptors: whoever waits is still there later.
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Gives a newcomer a place and a thread; without either it is closed.
    fn admit(&self, stream: TcpStream, peer: IpAddr, number: u64) {
        let is_ready =
            self.spec.admits(peer) && stream.set_nonblocking(false).is_ok() && stream.set_nodelay(true).is_ok();
        let Some(copy) = is_ready.then(|| stream.try_clone().ok()).flatten() else {
            return;
        };
        if !self.shared.take_place(Place {
            number,
            stream: copy,
            has_proved: false,
        }) {
            return;
        }
        let (spec, agent, shared) = (
            Arc::clone(&self.spec),
            Arc::clone(&self.agent),
            Arc::clone(&self.shared),
        );
        let started = thread::Builder::new().name("lr-control-conn".into()).spawn(move || {
            let presence = Presence {
                shared: &shared,
                number,
            };
            connection::serve(Transport::new(stream), peer, spec.token.as_ref(), &*agent, &presence);
        });
        if started.is_err() {
            self.shared.leave(number);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_place(&self, place: Place) -> bool {
        let mut places = self.lock();
        if places.len() >= CONNECTIONS_MAX {
            // They stand in the order in which they came.
            let Some(oldest) = places.iter().position(|place| !place.has_proved) else {
                return false;
            };
            let _ = places.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        places.push(place);
        true
    }

    fn leave(&self, number: u64) {
        self.lock().retain(|place| place.number != number);
        self.left.notify_all();
    }
}

/// The place of one connection; dropping it gives it up.
pub(super) struct Presence<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Presence<'_> {
    /// Notes that it has shown the secret, or needs none.
    pub(super) fn prove(&self) {
        let mut places = self.shared.lock();
        places
            .iter_mut()
            .filter(|place| place.number == self.number)
            .for_each(|place| place.has_proved = true);
    }

    /// Whether the channel closes.
    pub(super) fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Acquire)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.shared.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_secret_only_this_host_and_the_named_networks_come_in() {
        let spec = |token: Option<Token>, allow: &[&str]| ControlSpec {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token,
            allow: allow
                .iter()
                .map(|network| network.parse().expect("a network"))
                .collect(),
        };
        let token = || Token::fresh().ok();
        let rows: [(ControlSpec, &str, bool); 8] = [
            (spec(None, &[]), "127.0.0.1", true),
            (spec(None, &[]), "::1", true),
            (spec(None, &[]), "10.0.0.1", false),
            (spec(None, &["10.0.0.0/8"]), "10.0.0.1", true),
            (spec(None, &["10.0.0.0/8"]), "11.0.0.1", false),
            (spec(token(), &[]), "11.0.0.1", true),
            (spec(token(), &["10.0.0.0/8"]), "11.0.0.1", false),
            (spec(token(), &["10.0.0.0/8"]), "10.0.0.1", true),
        ];
        for (spec, peer, expected) in rows {
            assert_eq!(
                spec.admits(peer.parse().expect("an address")),
                expected,
                "{spec:?} {peer}"
            );
        }
    }
}
