//! The HTTP server with what belongs to it: a control channel, and an iperf3 server for the TCP
//! baseline.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use linerate_host::{Tested, Watched};
use linerate_http::run::{RestartableServer, local_address};
use linerate_http::server::{
    Access, Listen, Server as HttpListener, ServerSpec, ServerStats, StartError, ThreadStats,
};
use linerate_model::policy::AccessRules;
use linerate_sys::{errno, interfaces, process};

use super::agent::{self, ControlChannel};
use super::control_channel::OpenChannel;
use crate::server::{self as iperf3, in_use};
use crate::{Error, Outcome};
use linerate_model::link_local::scope_advice;

/// A resolved server.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServePlan {
    /// The server.
    pub spec: ServerSpec,
    /// The control channel; `None` without.
    pub control: Option<ControlChannel>,
    /// The iperf3 server; `None` without.
    pub tcp: Option<TcpSpec>,
}

impl ServePlan {
    /// The server alone.
    pub fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            control: None,
            tcp: None,
        }
    }
}

/// An iperf3 server beside the HTTP server.
#[derive(Debug)]
#[non_exhaustive]
pub struct TcpSpec {
    /// Address; `None` for all.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
    /// Access list: that of the HTTP server.
    pub access: AccessRules,
}

impl TcpSpec {
    /// A server at `port` of all addresses.
    pub fn new(port: u16, access: AccessRules) -> Self {
        Self {
            host: None,
            port,
            access,
        }
    }
}

/// A running HTTP server with its control channel and its iperf3 server.
pub struct HttpServer {
    server: Arc<RestartableServer>,
    control: Option<OpenChannel>,
    tcp: Option<iperf3::Server>,
    /// Addresses, limits and the key of the control channel, one line each.
    pub introduction: String,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

impl HttpServer {
    /// Starts what the plan names.
    ///
    /// # Errors
    /// A listener that cannot be opened, or a host that cannot be observed.
    pub fn start(plan: &ServePlan) -> Result<Self, Error> {
        // Without the privilege to raise the limit fewer connections fit.
        let _ = process::raise_fd_limit();
        let server =
            HttpListener::start(&plan.spec).map_err(|error| start_error(&error, &plan.spec))?;
        let mut introduction = announcement(&plan.spec, &server);
        let listeners = server.addresses().to_vec();

        let tcp = plan.tcp.as_ref().map(open_tcp).transpose()?;
        if let Some(tcp) = &tcp {
            introduction.push_str(&format!(
                "  TCP tests    port {}, for iperf3 clients\n",
                tcp.port()
            ));
        }

        let tcp_port = tcp.as_ref().map(iperf3::Server::port);
        let mut running = Self {
            server: Arc::new(RestartableServer::new(&plan.spec, server, tcp_port)),
            control: None,
            tcp,
            introduction,
            warnings: Vec::new(),
        };

        if let Some(channel) = &plan.control {
            running.open_control(channel)?;
        }

        let control = running
            .control
            .as_ref()
            .map(OpenChannel::address)
            .zip(plan.control.as_ref());
        running
            .introduction
            .push_str(&client_command(&listeners, control));
        Ok(running)
    }

    /// Stops every part and returns a line of statistics for the server and for each thread.
    pub fn stop(self) -> String {
        drop((self.control, self.tcp));
        summary(&self.server.stop())
    }

    /// Opens the control channel. A default port in use only disables the channel.
    fn open_control(&mut self, channel: &ControlChannel) -> Result<(), Error> {
        let port = self.server.port();
        let watched = Watched {
            pids: vec![std::process::id()],
            tested: port.map_or(Tested::Nothing, |port| Tested::Server { port }),
        };
        match agent::open(&watched, Some(Arc::clone(&self.server)), channel) {
            Ok(control) => {
                self.introduction.push_str(&control.introduction());
                self.warnings.extend(control.warnings.iter().cloned());
                self.control = Some(control);
            }
            Err(why) if channel.is_address_chosen || why.outcome == Outcome::Usage => {
                return Err(why);
            }
            Err(why) => self.warnings.push(format!("no control channel: {why}")),
        }

        Ok(())
    }
}

/// A listener that could not be opened, with what to try.
fn start_error(error: &StartError, spec: &ServerSpec) -> Error {
    let StartError::System(error) = error else {
        return Error::failed(error);
    };
    let text = in_use::explained_os(error, "choose another one with --bind");
    let addresses = match &spec.listen {
        Listen::At(addresses) => addresses.as_slice(),
        Listen::Everywhere(_) => &[],
    };
    let advice = addresses
        .iter()
        .find_map(|address| scope_advice(&address.ip().to_string()));
    // bind(2) fails with EINVAL for a link-local address without its interface.
    match advice.filter(|_| error.errno() == Some(errno::EINVAL)) {
        Some(advice) => Error::failed(format!("{text}; {advice}")),
        None => Error::failed(text),
    }
}

/// The command line of a client on another host.
fn client_command(
    listeners: &[SocketAddr],
    control: Option<(SocketAddr, &ControlChannel)>,
) -> String {
    let Some(address) = reachable(listeners) else {
        return String::new();
    };
    let host = address.ip();
    let mut text = format!("  client       linerate http load http://{address}/b/1k");

    // A channel of this host alone is none for clients on others.
    let reached = control.filter(|(control, _)| host.is_loopback() || !control.ip().is_loopback());
    if let Some((control, channel)) = reached {
        // Clients try the port after that of the server by themselves.
        if address.port().checked_add(1) != Some(control.port()) {
            let control = SocketAddr::new(
                if control.ip().is_unspecified() {
                    host
                } else {
                    control.ip()
                },
                control.port(),
            );
            let _ = write!(text, " --control {control}");
        }

        if let Some(file) = &channel.token_file {
            let _ = write!(text, " --token-file {}", file.display());
        }
    }

    text + "\n"
}

/// The address under which clients on other hosts reach one of the listeners. For all addresses of
/// a family that is the one on the default route, or the first that is neither loopback nor
/// link-local; the first listener is for clients here where there is none.
fn reachable(listeners: &[SocketAddr]) -> Option<SocketAddr> {
    let first = listeners.first()?;
    let found = listeners
        .iter()
        .find_map(|listener| Some(SocketAddr::new(address_of(listener.ip())?, listener.port())));
    Some(found.unwrap_or_else(|| {
        let here: IpAddr = if first.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        };
        SocketAddr::new(here, first.port())
    }))
}

fn address_of(listener: IpAddr) -> Option<IpAddr> {
    if !listener.is_unspecified() {
        return Some(listener);
    }

    let is_usable = |address: &IpAddr| match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    };
    // An address of documentation (RFC 5737, RFC 3849) takes the default route; nothing is sent.
    let elsewhere: IpAddr = match listener {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };

    let known = || {
        interfaces::addresses()
            .into_iter()
            .map(|(address, _)| address)
            .filter(is_usable)
    };
    let of_route = local_address(SocketAddr::new(elsewhere, 9)).filter(is_usable);
    of_route.or_else(|| known().find(|address| address.is_ipv4() == listener.is_ipv4()))
}

/// Starts the iperf3 server.
fn open_tcp(spec: &TcpSpec) -> Result<iperf3::Server, Error> {
    iperf3::Server::start(spec.host.clone(), spec.port, spec.access.clone()).map_err(|failure| {
        let text = format!("--tcp {}: {failure}", spec.port);
        Error::failed(in_use::explained(
            &text,
            spec.port,
            "choose another one with --tcp",
        ))
    })
}

fn announcement(spec: &ServerSpec, server: &HttpListener) -> String {
    let addresses: Vec<String> = server
        .addresses()
        .iter()
        .map(|a| format!("http://{a}"))
        .collect();
    let backlog = match server.backlog() {
        Some(effective) if effective < spec.backlog => {
            format!(
                "{effective} (net.core.somaxconn; {} requested)",
                spec.backlog
            )
        }
        Some(effective) => effective.to_string(),
        None => format!("{} requested, limit unknown", spec.backlog),
    };

    let guests = match &spec.access {
        Access::LocalNetworks => "networks of this host, and private addresses".to_owned(),
        Access::Networks(networks) => {
            let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
            networks.join(", ")
        }
    };
    format!(
        "Listening on {}\n  threads      {}\n  backlog      {backlog}\n  connections  at most {}\n  serves       {guests}\n",
        addresses.join(" and "),
        server.threads(),
        server.connections_max(),
    )
}

fn summary(stats: &ServerStats) -> String {
    let mut text = String::from("Served\n");
    line(&mut text, "total", &stats.total());

    for (number, thread) in stats.threads.iter().enumerate() {
        line(&mut text, &format!("thread {number}"), thread);
    }
    text
}

fn line(text: &mut String, name: &str, stats: &ThreadStats) {
    let refused = stats.refused_at_limit + stats.refused_by_address;
    // Writing to memory cannot fail.
    let _ = writeln!(
        text,
        "  {name:<10} {} connections ({refused} refused, {} timed out), {} times without a \
         descriptor, {} requests, {} responses ({} errors), {} B payload, {} B sent, {} B received",
        stats.accepted,
        stats.timed_out,
        stats.descriptors_exhausted,
        stats.requests,
        stats.responses,
        stats.error_responses,
        stats.payload_bytes,
        stats.sent_bytes,
        stats.received_bytes,
    );
}
