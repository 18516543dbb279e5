//! A server that the control channel can restart.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::server::{Listen, Server, ServerSpec, ServerStats};

/// A server that can be restarted on the same addresses.
#[derive(Debug)]
pub struct RestartableServer {
    /// With ports chosen by the kernel.
    spec: ServerSpec,
    /// Port of the iperf3 server beside it.
    pub(super) tcp_port: Option<u16>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` after a failed restart.
    server: Option<Server>,
    /// Statistics before the last restart.
    past: ServerStats,
}

impl RestartableServer {
    /// A running `server` of this specification, beside an iperf3 server at `tcp_port`.
    pub fn new(spec: &ServerSpec, server: Server, tcp_port: Option<u16>) -> Self {
        let mut spec = spec.clone();
        spec.listen = Listen::At(server.addresses().to_vec());
        let state = State {
            server: Some(server),
            past: ServerStats::default(),
        };

        Self {
            spec,
            tcp_port,
            state: Mutex::new(state),
        }
    }

    /// The first port it listens on.
    pub fn port(&self) -> Option<u16> {
        match &self.spec.listen {
            Listen::At(addresses) => addresses.first().map(std::net::SocketAddr::port),
            Listen::Everywhere(port) => Some(*port),
        }
    }

    /// Stops it; statistics per thread, including those before restarts.
    pub fn stop(&self) -> ServerStats {
        let mut state = self.lock();
        state.retire();
        std::mem::take(&mut state.past)
    }

    /// Statistics since the last restart.
    pub(super) fn stats(&self) -> ServerStats {
        self.lock()
            .server
            .as_ref()
            .map(Server::stats)
            .unwrap_or_default()
    }

    /// Restarts its threads.
    ///
    /// # Errors
    /// Why it cannot restart.
    pub(super) fn restart(&self) -> Result<(), String> {
        let mut state = self.lock();
        // Two servers on one port would share its connections, so the old one stops first.
        state.retire();
        let server = Server::start(&self.spec);
        state.server =
            Some(server.map_err(|error| format!("the server could not be restarted: {error}"))?);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn retire(&mut self) {
        if let Some(server) = self.server.take() {
            self.past.threads.extend(server.stop().threads);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn restarted_server_keeps_its_port_and_statistics() {
        let mut spec = ServerSpec::on_loopback();
        spec.threads = Some(2);
        let server = Server::start(&spec).expect("a server");
        let address = server.addresses()[0];
        let server = RestartableServer::new(&spec, server, None);
        assert_eq!(server.port(), Some(address.port()));
        ask(address);
        assert_eq!(server.stats().total().accepted, 1);
        restart(&server);
        assert_eq!(server.stats().total().accepted, 0, "as if new");
        ask(address);
        assert_eq!(server.stop().total().requests, 2);
        assert!(server.stats().threads.is_empty());
    }

    /// A process started by a concurrent test inherits the listeners until it executes.
    fn restart(server: &RestartableServer) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Err(why) = server.restart() {
            assert!(Instant::now() < deadline, "the port is ours: {why}");
            thread::yield_now();
        }
    }

    fn ask(address: SocketAddr) {
        let mut stream = TcpStream::connect(address).expect("connect");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        stream
            .write_all(b"GET /0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("send");

        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
