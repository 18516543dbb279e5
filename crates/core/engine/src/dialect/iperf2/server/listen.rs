//! Opens the listeners of a server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use linerate_iperf2::wire::Version;
use linerate_iperf2::wire::server::{Policy, UdpReverse};
use linerate_model::spec::{AddressFamily, Iperf2Defaults, ServerSpec};
use linerate_model::stream::ListenerFacts;
use linerate_model::{Failure, ServerEvent, ServerReporter, Transport};
use linerate_sys::socket::{self, Family, Protocol};
use linerate_sys::{OsError, sockopt};

use super::half_open::HalfOpenFlows;
use super::iperf2_server::{Iperf2Server, UDP_LISTENER};
use super::udp_listener::UdpListener;
use crate::dialect::iperf2::connect::os;
use crate::dialect::iperf2::sockets;
use crate::error::failure;
use crate::server::{Sessions, open_bound_with};
use crate::wait::first_address;

/// Longest silence of a flow: nothing proves its address, so it keeps its place for a shorter time
/// than a connection.
const FLOW_SILENCE_MAX: Duration = Duration::from_secs(30);

impl Iperf2Server {
    /// Opens the listeners of the specification.
    pub(super) fn open(spec: &ServerSpec, out: &mut dyn ServerReporter) -> Result<Self, Failure> {
        let defaults = spec
            .local
            .end
            .defaults
            .as_deref()
            .cloned()
            .unwrap_or_default();
        let mut server = Self::closed(spec, defaults)?;
        server.drains = true;

        let last_port = spec.local.end.last_port.unwrap_or(spec.local.port);
        for port in spec.local.port..=last_port {
            server.listen(port, server.defaults.test.transport, out)?;
        }

        Ok(server)
    }

    /// Opens both transports on one port, without a report.
    pub(super) fn open_both(spec: &ServerSpec, port: u16) -> Result<Self, Failure> {
        let defaults = Iperf2Defaults {
            dual_stack: true,
            ..Iperf2Defaults::default()
        };
        let mut server = Self::closed(spec, defaults)?;
        server.policy = for_anonymous_clients(spec, server.policy);

        let address = match server.address(port)? {
            // A host without IPv6 is served over IPv4.
            v6 if v6.ip() == Ipv6Addr::UNSPECIFIED && socket::open(&v6, Protocol::Tcp).is_err() => {
                socket::wildcard(Family::V4, port)
            }
            address => address,
        };
        let named = |transport: &str, f: Failure| {
            failure(format!("port {port} (iperf 2, {transport}): {}", f.message))
        };
        server.listen_tcp(address).map_err(|f| named("TCP", f))?;
        server
            .open_udp_listener(address)
            .map_err(|f| named("UDP", f))?;

        server.own_port = Some(address);
        Ok(server)
    }

    /// Opens no listener: connections come from the shared one.
    pub(super) fn open_without_listeners(spec: &ServerSpec) -> Result<Self, Failure> {
        let mut server = Self::closed(spec, Iperf2Defaults::default())?;
        server.policy = for_anonymous_clients(spec, server.policy);
        server.shares_listener = true;
        Ok(server)
    }

    fn closed(spec: &ServerSpec, defaults: Iperf2Defaults) -> Result<Self, Failure> {
        let key = defaults.test.workload.permit_key.clone();
        let policy = Policy {
            version: Version::of(defaults.test.workload.release),
            permit_key: key.map(String::into_bytes),
            reports_delays: defaults.reports_delays,
            idle_timeout: spec
                .policy
                .liveness
                .otherwise
                .clamp(Policy::default().idle_timeout, FLOW_SILENCE_MAX),
            handshake_timeout: defaults
                .handshake_timeout
                .unwrap_or(Policy::default().handshake_timeout),
            ..Policy::default()
        };

        Ok(Self {
            spec: spec.clone(),
            ends: defaults
                .lifetime
                .and_then(|time| Instant::now().checked_add(time)),
            defaults,
            policy,
            listeners: Vec::new(),
            udp_listeners: Vec::new(),
            pending: BTreeMap::new(),
            half_open: HalfOpenFlows::default(),
            sessions: Sessions::new().map_err(|e| os("listener", &e))?,
            next_number: 1,
            accepted: 0,
            own_port: None,
            shares_listener: false,
            drains: false,
            is_stopping: false,
        })
    }

    fn listen(
        &mut self,
        port: u16,
        transport: Transport,
        out: &mut dyn ServerReporter,
    ) -> Result<(), Failure> {
        let address = self.address(port)?;
        let facts = if transport == Transport::Udp {
            self.open_udp_listener(address)?;
            self.udp_listeners
                .last()
                .map(|udp_listener| sockets::facts(udp_listener.fd(), transport))
        } else {
            let refused = self.listen_tcp(address)?;
            refused.iter().for_each(|text| out.warning(text));
            self.listeners
                .last()
                .map(|fd| sockets::facts(fd, transport))
        };

        let is_first = self.spec.local.port == port;
        let group = Some(address.ip()).filter(IpAddr::is_multicast);
        let mut listener = ListenerFacts::new(port, facts.unwrap_or_default(), address.is_ipv6());
        listener.last_port = self.spec.local.end.last_port;
        listener.group = group;

        if is_first {
            out.listener(&listener)
                .map_err(|e| failure(e.to_string()))?;
            out.server_event(&ServerEvent::Listening { address });
        }

        Ok(())
    }

    fn address(&self, port: u16) -> Result<SocketAddr, Failure> {
        let bind = &self.spec.local.bind;
        let wants_v6 = bind.family == Some(AddressFamily::V6) || self.defaults.dual_stack;

        if let Some(host) = &bind.host {
            return first_address(host, port, None)
                .ok_or_else(|| failure(format!("{host}: Host name lookup failure")));
        }

        Ok(socket::wildcard(
            if wants_v6 { Family::V6 } else { Family::V4 },
            port,
        ))
    }

    /// Opens a listener; returns what the system refused.
    fn listen_tcp(&mut self, address: SocketAddr) -> Result<Vec<String>, Failure> {
        let fail = |e: OsError| os("listener bind", &e);
        let mut refused = Vec::new();

        let fd = open_bound_with(address, Protocol::Tcp, !self.defaults.dual_stack, |fd| {
            if let Some(device) = &self.spec.local.bind.device {
                sockopt::bind_device(fd, device)?;
            }

            // Accepted sockets inherit the window only from before listen(2).
            refused = sockets::prepare(fd, &self.defaults.test, false, true);
            Ok(())
        });
        let fd = fd.map_err(fail)?;
        socket::listen(&fd, i32::MAX).map_err(fail)?;
        self.listeners.push(fd);

        Ok(refused)
    }

    /// Opens the listener for flows on this address.
    fn open_udp_listener(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let fail = |e: OsError| os("listener bind", &e);
        let mut test = self.defaults.test.clone();
        test.transport = Transport::Udp;

        let udp_listener =
            UdpListener::open(address, !self.defaults.dual_stack, &test).map_err(fail)?;
        if address.ip().is_multicast() {
            let source = self
                .spec
                .local
                .end
                .multicast_source
                .as_ref()
                .and_then(|s| s.parse().ok());
            // Where the kernel has no such option, datagrams to other groups of this host are taken
            // for ours.
            let _ = sockopt::IP_MULTICAST_ALL.set(udp_listener.fd(), false);
            sockopt::join_group(udp_listener.fd(), address.ip(), source)
                .map_err(|e| os("multicast join", &e))?;
        }

        let index = self.udp_listeners.len() as u64;
        self.sessions
            .watch(udp_listener.fd(), index, UDP_LISTENER)
            .map_err(fail)?;
        self.udp_listeners.push(udp_listener);

        Ok(())
    }
}

/// Bounds of a service for clients without proof of identity.
fn for_anonymous_clients(spec: &ServerSpec, policy: Policy) -> Policy {
    let bounds = UdpReverse {
        silence_max: Some(SILENCE_MAX),
        ..UdpReverse::default()
    };
    Policy {
        udp_reverse: spec.policy.iperf2_udp_reverse.then_some(bounds),
        answers_are_bounded: true,
        ..policy
    }
}

/// Longest silence of a client that sends and to which data are sent.
const SILENCE_MAX: Duration = Duration::from_secs(2);
