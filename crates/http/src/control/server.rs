//! Server of the control channel: a listener, and a thread for each of a few connections.
//!
//! Threads may block, because they are few. At the limit a new connection replaces the oldest unauthenticated one, so that
//! strangers cannot lock the owner out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_model::network::Network;
use linerate_sys::OsError;
use linerate_sys::poll::{Interest, wait_fds};

use super::agent::Agent;
use super::connection;
use super::session::{Closing, Session};
use super::token::Token;
use crate::transport::Transport;

/// Concurrent connections: a client needs two, one for requests and one for samples.
const CONNECTIONS_MAX: usize = 16;
/// Time for connections to finish when the channel closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay before accept(2) is retried without descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Address and access of the channel.
#[derive(Debug, Clone)]
pub struct ControlSpec {
    /// Listening address; port 0: chosen by the kernel.
    pub address: SocketAddr,
    /// Required token. Without one, only this host and [`Self::allow`] have access.
    pub token: Option<Token>,
    /// Networks with access besides this host. Empty with a token: everyone who knows it.
    pub allow: Vec<Network>,
}

impl ControlSpec {
    fn admits(&self, peer: IpAddr) -> bool {
        let is_for_all = self.token.is_some() && self.allow.is_empty();
        is_for_all || peer.is_loopback() || self.allow.iter().any(|network| network.contains(peer))
    }
}

/// An open control channel. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Control {
    address: SocketAddr,
    closing: Arc<Closing>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Opens the channel.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn open(spec: ControlSpec, agent: Arc<dyn Agent>) -> Result<Self, OsError> {
        let failed = |error| OsError::new("listen", spec.address, error);
        let listener = bind(spec.address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let closing = Arc::new(Closing::new()?);
        let sessions = Vec::new();
        let acceptor = Acceptor { listener, spec: Arc::new(spec), agent, closing: Arc::clone(&closing), sessions };
        let thread = thread::Builder::new()
            .name("lr-control".into())
            .spawn(move || acceptor.run())
            .map_err(|error| OsError::new("start a thread", "", error))?;
        Ok(Self { address, closing, thread: Some(thread) })
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Binds; without IPv6 on the host `[::]` falls back to `0.0.0.0`.
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
        self.closing.begin();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Acceptor {
    listener: TcpListener,
    spec: Arc<ControlSpec>,
    agent: Arc<dyn Agent>,
    closing: Arc<Closing>,
    /// In the order of arrival; some may have ended.
    sessions: Vec<Weak<Session>>,
}

impl Acceptor {
    fn run(mut self) {
        let (running, ended) = channel();
        while !self.closing.has_begun() {
            let readable = Interest::READ;
            let fds = [(self.listener.as_fd(), readable), (self.closing.waker().as_fd(), readable)];
            let waited = wait_fds(fds, None);
            match self.listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer.ip().to_canonical(), running.clone()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited.is_ok() => {}
                // Out of descriptors: the connection stays in the queue.
                Err(_) => thread::sleep(PAUSE),
            }
        }
        drop(running);
        for session in self.sessions.iter().filter_map(Weak::upgrade) {
            // Wakes blocked readers.
            session.shut_down(Shutdown::Read);
        }
        // The program may exit after this, and a stream of samples would be cut instead of ended.
        let _ = ended.recv_timeout(CLOSE_TIMEOUT);
    }

    /// Gives a new connection a thread; otherwise it is closed.
    fn admit(&mut self, stream: TcpStream, peer: IpAddr, running: Sender<()>) {
        let is_ready =
            self.spec.admits(peer) && stream.set_nonblocking(false).is_ok() && stream.set_nodelay(true).is_ok();
        let Some(copy) = is_ready.then(|| stream.try_clone().ok()).flatten() else {
            return;
        };
        if !self.make_room() {
            return;
        }
        let session = Arc::new(Session::new(copy, Arc::clone(&self.closing), running));
        self.sessions.push(Arc::downgrade(&session));
        let (spec, agent) = (Arc::clone(&self.spec), Arc::clone(&self.agent));
        // Without a thread the session is dropped.
        let _ = thread::Builder::new().name("lr-control-conn".into()).spawn(move || {
            connection::serve(Transport::new(stream), peer, spec.token.as_ref(), &*agent, &session);
        });
    }

    /// Closes the oldest unauthenticated connection at the limit; `false` without one.
    fn make_room(&mut self) -> bool {
        self.sessions.retain(|session| session.strong_count() > 0);
        if self.sessions.len() < CONNECTIONS_MAX {
            return true;
        }
        let is_replaceable = |session: &Weak<Session>| session.upgrade().is_none_or(|it| !it.is_authenticated());
        let Some(oldest) = self.sessions.iter().position(is_replaceable) else {
            return false;
        };
        if let Some(session) = self.sessions.remove(oldest).upgrade() {
            session.shut_down(Shutdown::Both);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_token_only_this_host_and_named_networks_have_access() {
        let spec = |token: Option<Token>, allow: &[&str]| ControlSpec {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token,
            allow: allow.iter().map(|network| network.parse().expect("a network")).collect(),
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
            assert_eq!(spec.admits(peer.parse().expect("an address")), expected, "{spec:?} {peer}");
        }
    }
}
